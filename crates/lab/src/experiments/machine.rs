//! Where a run takes place, and with which programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use super::plan::Arm;
use super::results::Machine;
use crate::programs;

/// What must be left on a disk for a measurement to begin, bytes.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// This machine. What the system doesn't tell is empty or 0.
pub(crate) fn machine() -> Machine {
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpu_info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or_else(String::new, |(_, name)| name.trim().to_owned());
    let memory_info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kib: u64 = memory_info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        processor,
        processors: u32::try_from(processors()).unwrap_or(u32::MAX),
        memory_bytes: memory_kib << 10,
        kernel: kernel.trim().to_owned(),
    }
}

/// Logical processors that this process may use.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Now, as RFC 3339 has it, UTC, to the second.
pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Of each program that a run with these arms needs, but the server, its version.
///
/// # Errors
/// One is missing; the message says how to get it.
pub(super) fn versions(arms: &[Arm]) -> anyhow::Result<BTreeMap<String, String>> {
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
    if arms.iter().any(|arm| matches!(arm, Arm::Remora { .. })) {
        let path = programs::remora()?;
        let (version, build) = (told(&path, &["--version"])?, digest(&path)?);
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

/// An error if the disk that holds a directory is all but full.
pub(super) fn require_space(directory: &Path) -> anyhow::Result<()> {
    let space = rustix::fs::statvfs(directory)
        .with_context(|| format!("can't ask for the space in {}", directory.display()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < FREE_BYTES_MIN {
        bail!(
            "the disk of {} is full: {} MiB are left, and a measurement wants {} MiB; make room and run the same \
             command again, or set TMPDIR to a directory on a larger disk",
            directory.display(),
            free >> 20,
            FREE_BYTES_MIN >> 20
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
    fn this_machine_is_known() {
        let machine = machine();
        assert!(
            machine.processors > 0 && machine.memory_bytes > 1 << 20,
            "{machine:?}"
        );
        assert!(now().ends_with('Z'));
        assert!(!arguments_of(std::process::id()).is_empty());
    }
}
