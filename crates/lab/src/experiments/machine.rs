//! With which programs a run is made, when, and whether there is room for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use super::plan::Arm;
use remora_testkit::programs;

/// What must be left on a disk for a measurement to begin, bytes.
pub(super) const FREE_BYTES_TO_BEGIN: u64 = 256 << 20;
/// What must be left for one to go on, bytes: enough to write down what was measured.
pub(super) const FREE_BYTES_TO_GO_ON: u64 = 64 << 20;

/// Now, as RFC 3339 has it, UTC, to the second.
pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Of each program that a run with these arms needs, but the server, its version. `remora`: the
/// program, if there is an arm for it.
///
/// # Errors
/// One is missing; the message says how to get it.
pub(super) fn versions(
    arms: &[Arm],
    remora: Option<&Path>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    let sysbench = programs::find("sysbench")?;
    versions.insert("sysbench".to_owned(), told(&sysbench, &["--version"])?);
    if arms.contains(&Arm::Hop) {
        let version = told(&programs::find("haproxy")?, &["-v"])?;
        versions.insert("haproxy".to_owned(), version);
    }
    if arms.iter().any(|arm| matches!(arm, Arm::ProxySql { .. })) {
        let version = told(&programs::find("proxysql")?, &["--version"])?;
        versions.insert("proxysql".to_owned(), version);
    }
    if let Some(path) = remora {
        let (version, build) = (told(path, &["--version"])?, digest(path)?);
        if !version.starts_with("remora ") {
            bail!(
                "{} is no Remora: of itself it says {version}",
                path.display()
            );
        }
        versions.insert("remora".to_owned(), format!("{version} (build {build})"));
    }
    Ok(versions)
}

/// The first line that a program says of itself.
fn told(path: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(path)
        .args(arguments)
        .output()
        .with_context(|| format!("can't run {}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.map(|line| line.trim().to_owned())
        .with_context(|| format!("{} does not tell its version", path.display()))
}

/// The beginning of a file's SHA-256: versions of one number can be told apart by it.
fn digest(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    Ok(short_digest(&bytes))
}

/// The first 12 digits of a SHA-256.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    let digits = digits.iter().map(|byte| format!("{byte:02x}"));
    digits.take(6).collect()
}

/// An error if the disk that holds a directory has less than so many bytes left.
pub(super) fn require_space(directory: &Path, bytes_min: u64) -> anyhow::Result<()> {
    let space = rustix::fs::statvfs(directory)
        .with_context(|| format!("can't ask for the space in {}", directory.display()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < bytes_min {
        bail!(
            "the disk of {} is full: {} MiB are left, and a measurement wants {} MiB; make room and run the same \
             command again, or set TMPDIR to a directory on a larger disk",
            directory.display(),
            free >> 20,
            bytes_min >> 20
        );
    }
    Ok(())
}

/// The arguments with which a process was started, one a line.
pub(super) fn arguments_of(process_id: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{process_id}/cmdline")).unwrap_or_default();
    let words = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
    words.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_enough_room_is_named() {
        require_space(Path::new("/tmp"), 1).unwrap();
        let error = require_space(Path::new("/tmp"), u64::MAX).unwrap_err();
        assert!(
            error.to_string().starts_with("the disk of /tmp is full: "),
            "{error}"
        );
    }
}
