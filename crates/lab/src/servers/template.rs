//! A fresh data directory takes seconds to make and a moment to copy: it is made once for each
//! version of the server and kept in the user's cache directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::process::Program;
use crate::programs;
use crate::scratch::Scratch;

/// InnoDB's redo log. Small, for it is copied with each data directory.
pub(super) const REDO_LOG_SIZE: &str = "24M";

const PATIENCE: Duration = Duration::from_mins(2);

/// Makes `directory` a fresh data directory.
pub(super) fn copy_to(directory: &Path) -> anyhow::Result<()> {
    let template = template()?;
    let log = directory.with_extension("copy.log");
    Program::new("cp", programs::find("cp")?, log)
        .args(["-r", "--reflink=auto", "--"])
        .arg(template)
        .arg(directory)
        .run(PATIENCE)
        .context("can't copy a fresh data directory")?;
    Ok(())
}

/// Whether this process runs as root, which MariaDB wants to be told.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The template's path; makes it first if need be.
fn template() -> anyhow::Result<PathBuf> {
    let root = cache_directory();
    std::fs::create_dir_all(&root).with_context(|| format!("can't make {}", root.display()))?;
    let template = root.join(format!("{}-{REDO_LOG_SIZE}", version()?));
    if template.is_dir() {
        return Ok(template);
    }
    // Of several processes that find it missing, one makes it and the others wait.
    let lock = File::create(root.join("lock")).context("can't make a lock file")?;
    lock.lock().context("can't lock the cache directory")?;
    if !template.is_dir() {
        make(&root, &template)?;
    }
    Ok(template)
}

fn make(root: &Path, template: &Path) -> anyhow::Result<()> {
    let scratch = Scratch::new()?;
    let unfinished = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(root)?;
    let data = unfinished.path().join("data");
    let mut program = Program::new(
        "mariadb-install-db",
        programs::find("mariadb-install-db")?,
        scratch.join("log"),
    )
    .arg("--no-defaults")
    .arg(format!("--datadir={}", data.display()))
    .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
    .arg(format!("--innodb-log-file-size={REDO_LOG_SIZE}"));
    if is_root() {
        program = program.arg("--user=root");
    }
    program
        .run(PATIENCE)
        .context("can't make a fresh data directory")?;
    std::fs::rename(&data, template).context("can't keep the fresh data directory")
}

fn cache_directory() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("remora-lab")
}

/// The server's version as a part of a file name.
fn version() -> anyhow::Result<String> {
    let output = std::process::Command::new(programs::find("mariadbd")?)
        .args(["--no-defaults", "--version"])
        .output()
        .context("can't run mariadbd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .with_context(|| format!("mariadbd does not tell its version: {text:?}"))?;
    Ok(version.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-"))
}
