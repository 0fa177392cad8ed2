//! The directory of a run: `run.json` says what is measured in it, `results.json` what has been,
//! `series/` has a file for each measurement.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::results::{Results, SCHEMA_VERSION, Scale};
use remora_testkit::sysbench::Second;

const RUN: &str = "run.json";
const RESULTS: &str = "results.json";
const SERIES: &str = "series";

/// What is measured in a directory. Two runs with the same of it do the same in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// As on the command line.
    pub(super) experiment: String,
    /// How large.
    pub(super) scale: Scale,
    /// The kind of server.
    pub(super) server: String,
    /// The labels of the arms, in the plan's order.
    pub(super) arms: Vec<String>,
    /// What is measured otherwise than the plan says, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changed: Vec<String>,
    /// Chooses the order of the measurements.
    pub(super) seed: u64,
}

/// A directory that no other process writes into.
#[derive(Debug)]
pub(super) struct RunDirectory {
    path: PathBuf,
    identity: Identity,
    _lock: File,
}

impl RunDirectory {
    /// Opens or makes it. Without a `seed` it is the one of the run that is in it, or `fresh_seed`.
    ///
    /// # Errors
    /// It holds something else, another process writes into it, or it can't be made.
    pub(super) fn open(
        path: &Path,
        wanted: Identity,
        seed: Option<u64>,
    ) -> anyhow::Result<RunDirectory> {
        let shown = path.display();
        let file = path.join(RUN);
        std::fs::create_dir_all(path.join(SERIES))
            .with_context(|| format!("can't make the directory {shown}"))?;
        let mut identity = wanted;
        identity.seed = seed.unwrap_or(identity.seed);
        if file.exists() {
            let found = read_identity(&file)?;
            if seed.is_none() {
                identity.seed = found.seed;
            }
            if found != identity {
                bail!(
                    "{shown} holds another run: it has {found}, and this is {identity}; choose another --directory"
                );
            }
        } else if path.join(RESULTS).exists() {
            bail!("{shown} has a {RESULTS}, but no {RUN}: choose another --directory");
        } else {
            write_whole(&file, &serde_json::to_string_pretty(&identity)?)?;
        }
        let lock = File::open(&file).with_context(|| format!("can't read {}", file.display()))?;
        if lock.try_lock().is_err() {
            bail!("another process measures into {shown}");
        }
        Ok(RunDirectory {
            path: path.to_owned(),
            identity,
            _lock: lock,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is measured in it.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What has been measured, if something has.
    pub(super) fn results(&self) -> anyhow::Result<Option<Results>> {
        measured_in(&self.path)
    }

    /// Keeps what has been measured. At every moment the file is whole.
    pub(super) fn keep(&self, results: &Results) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(results)?;
        write_whole(&self.path.join(RESULTS), &text)
    }

    /// Keeps the seconds of a measurement; gives the file's name for
    /// [`crate::results::Repetition::series`].
    pub(super) fn keep_series(
        &self,
        turn: u32,
        arm: &str,
        warm_up: &[Second],
        seconds: &[Second],
    ) -> anyhow::Result<String> {
        let name = format!("{SERIES}/{turn:04}-{arm}.csv");
        write_whole(&self.path.join(&name), &table(seconds))?;
        let before = format!("{SERIES}/{turn:04}-{arm}-warm-up.csv");
        write_whole(&self.path.join(before), &table(warm_up))?;
        Ok(name)
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} at scale {:?} on {} with arms {}, ",
            self.experiment,
            self.scale,
            self.server,
            self.arms.join(", "),
        )?;
        for changed in &self.changed {
            write!(f, "{changed}, ")?;
        }
        write!(f, "seed {}", self.seed)
    }
}

/// What has been measured in a directory, if something has.
///
/// # Errors
/// Its results can't be read, or are of another version of the format.
pub(super) fn measured_in(directory: &Path) -> anyhow::Result<Option<Results>> {
    let file = directory.join(RESULTS);
    if !file.exists() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("can't read {}", file.display()))?;
    let results: Results = serde_json::from_str(&text)
        .with_context(|| format!("{} is no file of results", file.display()))?;
    let (found, known) = (results.schema_version, SCHEMA_VERSION);
    if found != known {
        bail!(
            "{} has version {found} of the format, this program knows {known}; choose another --directory",
            file.display()
        );
    }
    Ok(Some(results))
}

fn read_identity(file: &Path) -> anyhow::Result<Identity> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no file of a run", file.display()))
}

/// The seconds as CSV, numbered from 1.
fn table(seconds: &[Second]) -> String {
    let mut text = "second,queries_per_s,transactions_per_s,p95_ms,errors\n".to_owned();
    for (number, second) in (1..).zip(seconds) {
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "{number},{:.2},{:.2},{:.3},{}",
            second.queries_per_s(),
            second.transactions_per_s(),
            second.p95_ms,
            second.errors + second.reconnects
        );
    }
    text
}

/// Writes a file that is there whole or as it was before.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("can't write {}", file.display());
    let unfinished = file.with_extension("unfinished");
    std::fs::write(&unfinished, text).with_context(context)?;
    std::fs::rename(&unfinished, file).with_context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(seed: u64) -> Identity {
        Identity {
            experiment: "e1".to_owned(),
            scale: Scale::Tiny,
            server: "mariadb-10.11".to_owned(),
            arms: vec!["direct".to_owned()],
            changed: Vec::new(),
            seed,
        }
    }

    #[test]
    fn a_directory_keeps_its_seed_and_refuses_another_run() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("run");
        drop(RunDirectory::open(&path, identity(5), None).unwrap());
        let again = RunDirectory::open(&path, identity(6), None).unwrap();
        assert_eq!(again.identity().seed, 5);
        let locked = RunDirectory::open(&path, identity(5), None).unwrap_err();
        assert!(locked.to_string().contains("another process"), "{locked}");
        drop(again);
        let other = RunDirectory::open(&path, identity(6), Some(6)).unwrap_err();
        assert!(other.to_string().contains("another run"), "{other}");
        let mut larger = identity(5);
        larger.scale = Scale::Quick;
        let other = RunDirectory::open(&path, larger, None).unwrap_err();
        assert!(other.to_string().contains("another run"), "{other}");
    }

    #[test]
    fn seconds_become_lines() {
        let second = Second {
            length_s: 2.0,
            transactions: 10,
            reads: 100,
            p95_ms: 1.5,
            ..Second::default()
        };
        let text = table(&[second.clone(), second]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "1,50.00,5.00,1.500,0");
        assert_eq!(lines.len(), 3);
    }
}
