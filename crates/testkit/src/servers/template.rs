//! A fresh data directory takes seconds to make and a moment to copy: it is made once for each
//! version of each server and kept in the user's cache directory.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::Kind;
use crate::process::Program;
use crate::programs;
use crate::scratch::Scratch;

/// Goes up when a template is made in another way, so that those of before are not taken.
const REVISION: u32 = 2;

const PATIENCE: Duration = Duration::from_mins(2);
/// Data directories of experiments have gigabytes.
const COPY_PATIENCE: Duration = Duration::from_mins(30);

/// Makes `directory` a fresh data directory, in which root may connect by TCP without a password.
pub(super) fn copy_to(kind: Kind, directory: &Path) -> anyhow::Result<()> {
    let template = template(kind)?;
    copy(&template, directory)
}

/// Copies a data directory; at once where the file system lets copies share their blocks.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    run_cp(&["--reflink=auto"], from, to)
}

fn run_cp(options: &[&str], from: &Path, to: &Path) -> anyhow::Result<()> {
    Program::new("cp", programs::find("cp")?, to.with_extension("copy.log"))
        .arg("-r")
        .args(options)
        .arg("--")
        .arg(from)
        .arg(to)
        .run(COPY_PATIENCE)
        .with_context(|| format!("can't copy the data directory {}", from.display()))?;
    Ok(())
}

/// Whether this process runs as root, which servers want to be told.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The template's path; makes it first if need be.
fn template(kind: Kind) -> anyhow::Result<PathBuf> {
    let root = programs::cache_directory().join("data");
    std::fs::create_dir_all(&root).with_context(|| format!("can't make {}", root.display()))?;
    let template = root.join(format!("{}-{REVISION}", kind.version()?));
    if template.is_dir() {
        return Ok(template);
    }
    // Of several processes that find it missing, one makes it and the others wait.
    let lock = File::create(root.join("lock")).context("can't make a lock file")?;
    lock.lock().context("can't lock the cache directory")?;
    if !template.is_dir() {
        make(kind, &root, &template)?;
    }
    Ok(template)
}

fn make(kind: Kind, root: &Path, template: &Path) -> anyhow::Result<()> {
    let scratch = Scratch::new()?;
    let unfinished = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(root)?;
    let data = unfinished.path().join("data");
    let program = match kind {
        Kind::MariaDb1011 | Kind::MariaDb114 => install_db(kind, &scratch)?,
        Kind::MySql80 | Kind::MySql57 => initialize(kind, &scratch)?,
        Kind::MySql56 => {
            let base = kind.base().context("it was fetched")?;
            copy(&base.join("data"), &data)?;
            // Without statements this makes only the redo log.
            Program::new("mysqld", kind.program()?, scratch.join("log"))
                .args(["--no-defaults", "--bootstrap"])
        }
    };
    let mut program = program
        .arg(format!("--datadir={}", data.display()))
        // Else it removes the temporary tables of servers that are running.
        .arg(format!("--tmpdir={}", scratch.path().display()))
        .arg(kind.redo_log_argument())
        .args(kind.base_arguments());
    if is_root() {
        program = program.arg("--user=root");
    }
    program
        .run(PATIENCE)
        .with_context(|| format!("can't make a fresh data directory of {}", kind.as_str()))?;
    if kind == Kind::MariaDb114 {
        make_certificate(&data, &scratch)?;
    }
    // A server that finds no UUID makes one; servers must not share theirs.
    let _ = std::fs::remove_file(data.join("auto.cnf"));
    // Most of it are zeros. As holes they cost nothing in each copy.
    let sparse = unfinished.path().join("sparse");
    run_cp(&["--sparse=always"], &data, &sparse)?;
    std::fs::rename(&sparse, template).context("can't keep the fresh data directory")
}

/// MariaDB's own script.
fn install_db(kind: Kind, scratch: &Scratch) -> anyhow::Result<Program> {
    const NAME: &str = "mariadb-install-db";
    let path = match kind.base() {
        None => programs::find(NAME)?,
        Some(base) => base.join("scripts").join(NAME),
    };
    Ok(Program::new(NAME, path, scratch.join("log")).args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ]))
}

/// MySQL's own way since 5.7. It makes root for the Unix socket only.
fn initialize(kind: Kind, scratch: &Scratch) -> anyhow::Result<Program> {
    let statements = scratch.join("accounts.sql");
    let text = format!(
        "CREATE USER root@'127.0.0.1' {};\n\
        GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n",
        kind.identified_by("")
    );
    std::fs::write(&statements, text).context("can't write statements for a server")?;
    let mut program = Program::new("mysqld", kind.program()?, scratch.join("log"))
        .args(["--no-defaults", "--initialize-insecure"])
        .arg(format!("--init-file={}", statements.display()));
    if kind == Kind::MySql80 {
        program = program.arg("--disable-log-bin");
    }
    Ok(program)
}

/// A key and a certificate that the server signed itself, as this kind makes at each start.
fn make_certificate(data: &Path, scratch: &Scratch) -> anyhow::Result<()> {
    Program::new("openssl", programs::find("openssl")?, scratch.join("log"))
        .args(["req", "-x509", "-newkey", "rsa:2048", "-noenc"])
        .args(["-days", "36500", "-subj", "/CN=localhost"])
        .args([
            OsString::from("-keyout"),
            data.join("server-key.pem").into(),
        ])
        .args([OsString::from("-out"), data.join("server-cert.pem").into()])
        .run(PATIENCE)
        .context("can't make a certificate")?;
    Ok(())
}
