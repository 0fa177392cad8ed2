//! Finding the programs that the lab runs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Directories that hold servers and are not on everybody's PATH.
const SERVER_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The path of an installed program.
///
/// # Errors
/// It isn't installed; the message says how to install it.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SERVER_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .with_context(|| {
            format!("the program `{name}` is not installed; `scripts/setup test` installs all there is to install")
        })
}

/// The path of the built `remora`: what the environment's `REMORA_BINARY` names, or else the
/// program beside the one that runs (a test's is one directory further down).
///
/// # Errors
/// It isn't built.
pub fn remora() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("REMORA_BINARY") {
        let path = PathBuf::from(path);
        if !path.is_file() {
            bail!("REMORA_BINARY names {}, which is no file", path.display());
        }
        return Ok(path);
    }
    let own = std::env::current_exe().context("can't tell where this program lies")?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("remora"))
        .find(|candidate| is_program(candidate))
        .with_context(|| {
            format!(
                "there is no built `remora` beside {}; run `cargo build -p remora` (with --release if this is a release build)",
                own.display()
            )
        })
}

/// The path of another built `remora` than [`remora()`]'s, whole, so that it holds in every
/// directory.
///
/// # Errors
/// There is no program at `path`.
pub fn other_remora(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let remedy = "name the `remora` of a build, such as target/release/remora";
    let whole = path
        .canonicalize()
        .with_context(|| format!("can't find the Remora {shown}; {remedy}"))?;
    let is_executable = rustix::fs::access(&whole, rustix::fs::Access::EXEC_OK).is_ok();
    if !is_program(&whole) || !is_executable {
        bail!("{shown} is no program; {remedy}");
    }
    Ok(whole)
}

/// Where the lab keeps what it made or fetched once, for all runs of this user.
pub fn cache_directory() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("remora-lab")
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
