//! Contents of servers: filled once for each kind of server, kept as the data directory of a server
//! that was shut down, and copied for a run.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};

use super::machine::short_digest;
use super::plan::{Data, Plan};
use crate::machine::processors;
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions, copy_data_directory};
use remora_testkit::sysbench::Sysbench;
use remora_testkit::{interrupt, programs};

/// How much is kept at most, bytes on disk. The contents that were not used for the longest time go
/// first; those of the run at hand stay, however large they are.
const KEPT_BYTES_MAX: u64 = 40 << 30;
/// Goes up when contents are made in another way, so that those of before are not taken.
const REVISION: u32 = 1;
/// The schema of sysbench's tables.
pub(super) const SYSBENCH_SCHEMA: &str = "sbtest";
/// The longest that a statement or a shutdown may take.
const PATIENCE: Duration = Duration::from_hours(1);
const UNFINISHED: &str = "unfinished-";

/// Contents that are there to be copied, and stay while this lives.
#[derive(Debug)]
pub(super) struct Kept {
    directory: PathBuf,
    _lock: File,
}

impl Kept {
    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }
}

/// The contents, from what is kept or else filled now; `say` is told what goes on.
///
/// # Errors
/// The server is missing or refused a statement, the disk is full, or the user asked to stop.
pub(super) fn get(kind: Kind, plan: &Plan, say: &mut dyn FnMut(&str)) -> anyhow::Result<Kept> {
    let root = &programs::cache_directory().join("data").join("filled");
    std::fs::create_dir_all(root).with_context(|| format!("can't make {}", root.display()))?;
    let lock = File::create(root.join("lock")).context("can't make a lock file")?;
    // Of several runs that want something filled, one after the other does it.
    lock.lock().context("can't lock the cache directory")?;
    remove_unfinished(root);
    let text = format!("{REVISION} {:?}", plan.data);
    let name = format!("{}-{}", kind.version()?, short_digest(text.as_bytes()));
    let directory = root.join(name);
    if !directory.is_dir() {
        say("filling a server with the experiment's data (it is kept for later runs)");
        fill(root, kind, plan, &directory)?;
    }
    let used = File::create(directory.join("used")).context("can't mark the data as used")?;
    used.set_modified(SystemTime::now())?;
    used.lock_shared().context("can't lock the data")?;
    make_room(root, KEPT_BYTES_MAX, &directory);
    Ok(Kept {
        directory,
        _lock: used,
    })
}

/// What a run left that was killed while it filled. The root's lock is held.
fn remove_unfinished(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn fill(root: &Path, kind: Kind, plan: &Plan, directory: &Path) -> anyhow::Result<()> {
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(root)
        .with_context(|| format!("can't make a directory in {}", root.display()))?;
    let mut server = Server::start(ServerOptions {
        kind: Some(kind),
        further: filling_options(kind, &plan.server_options),
        ..ServerOptions::default()
    })?;
    let mut root_client = root_of(&server)?;
    execute(&server, &mut root_client, &plan.data)?;
    if kind.is_mysql() {
        root_client.query("RESET MASTER")?;
    }
    // All work is done before the data is kept, not when it is measured.
    root_client.query("SET GLOBAL innodb_fast_shutdown = 0")?;
    drop(root_client);
    let made = server.stop_for_data(PATIENCE)?;
    let kept = unfinished.path().join("data");
    if std::fs::rename(&made, &kept).is_err() {
        // It lies on another disk.
        copy_data_directory(&made, &kept)?;
    }
    std::fs::write(unfinished.path().join("about.txt"), about(&plan.data))?;
    std::fs::rename(unfinished.path(), directory)
        .with_context(|| format!("can't name {}", directory.display()))
}

/// As in the experiment, but without what is only of use when many are waiting.
fn filling_options(kind: Kind, of_experiment: &[String]) -> Vec<String> {
    let mut options = of_experiment.to_vec();
    // The log of what is filled would be as large as the data, and nobody reads it.
    if !kind.is_mysql() {
        options.push("--skip-log-bin".to_owned());
    }
    options.push("--innodb-flush-log-at-trx-commit=0".to_owned());
    options
}

fn execute(server: &Server, root: &mut Client, data: &Data) -> anyhow::Result<()> {
    match data {
        Data::Sysbench { tables, rows } => {
            root.query(&format!("CREATE DATABASE {SYSBENCH_SCHEMA}"))?;
            let sysbench = filler(*tables, *rows, server.address());
            sysbench.prepare().context("can't fill sysbench's tables")
        }
        Data::Statements(statements) => {
            root.query(&format!("USE {SCHEMA}"))?;
            for statement in statements {
                interrupt::check()?;
                root.query(statement)
                    .with_context(|| format!("the server refuses {}", beginning(statement)))?;
            }
            Ok(())
        }
    }
}

/// The sysbench that makes its tables.
fn filler(tables: u32, rows: u32, address: SocketAddr) -> Sysbench {
    let mut sysbench = Sysbench::new("oltp_read_only", address, SYSBENCH_SCHEMA);
    (sysbench.tables, sysbench.rows) = (tables, rows);
    sysbench.threads = u32::try_from(processors()).unwrap_or(1).min(tables);
    sysbench
}

/// The command that fills, if there is one.
pub(super) fn command(data: &Data) -> Option<String> {
    let Data::Sysbench { tables, rows } = data else {
        return None;
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Some(filler(*tables, *rows, address).command_line("prepare"))
}

/// The administrator, who is patient.
pub(super) fn root_of(server: &Server) -> anyhow::Result<Client> {
    let mut options = ConnectOptions::new(server.address(), "root", "");
    options.timeout = PATIENCE;
    options
        .connect()
        .context("can't connect to the private server as root")
}

/// Enough of a statement to know it by.
pub(super) fn beginning(statement: &str) -> String {
    const SHOWN: usize = 120;
    let mut text: String = statement.chars().take(SHOWN).collect();
    if statement.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

/// The contents in a line or a few.
pub(super) fn about(data: &Data) -> String {
    match data {
        Data::Sysbench { tables, rows } => {
            format!("{tables} tables of sysbench's, {rows} rows each\n")
        }
        Data::Statements(statements) => {
            let lines: Vec<String> = statements.iter().map(|text| beginning(text)).collect();
            lines.join("\n") + "\n"
        }
    }
}

/// Removes what was not used for the longest time until no more than `bytes_max` are kept. What is
/// in use stays.
fn make_room(root: &Path, bytes_max: u64, keep: &Path) {
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .map(|path| {
            let used = std::fs::metadata(path.join("used")).and_then(|meta| meta.modified());
            (
                used.unwrap_or(SystemTime::UNIX_EPOCH),
                bytes_on_disk(&path),
                path,
            )
        })
        .collect();
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in kept {
        if total <= bytes_max {
            return;
        }
        if path != keep && remove_unused(&path).is_ok() {
            total -= bytes;
        }
    }
}

fn remove_unused(path: &Path) -> anyhow::Result<()> {
    if let Ok(used) = File::open(path.join("used"))
        && used.try_lock().is_err()
    {
        bail!("{} is in use", path.display());
    }
    std::fs::remove_dir_all(path).context("can't remove old data")
}

fn bytes_on_disk(path: &Path) -> u64 {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + entries
        .map(|entry| bytes_on_disk(&entry.path()))
        .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(root: &Path, name: &str, age_s: u64) -> PathBuf {
        let path = root.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("data"), vec![1; 100_000]).unwrap();
        let used = File::create(path.join("used")).unwrap();
        used.set_modified(SystemTime::now() - Duration::from_secs(age_s))
            .unwrap();
        path
    }

    #[test]
    fn the_oldest_contents_go_first_and_those_in_use_stay() {
        let root = tempfile::tempdir().unwrap();
        let oldest_but_used = content(root.path(), "a", 400);
        let old = content(root.path(), "b", 300);
        let newer = content(root.path(), "c", 200);
        let kept = content(root.path(), "d", 500);
        let lock = File::open(oldest_but_used.join("used")).unwrap();
        lock.lock_shared().unwrap();
        make_room(root.path(), 330_000, &kept);
        assert!(oldest_but_used.exists() && kept.exists() && newer.exists());
        assert!(!old.exists());
    }
}
