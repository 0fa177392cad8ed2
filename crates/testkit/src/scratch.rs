//! Temporary directories that don't outlive their use, not even when their process is killed.
//!
//! Each holds a locked file. The system drops the lock when its process ends, however that happens,
//! so the next one to make a directory can tell the abandoned ones and removes them.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

const PREFIX: &str = "remora-lab-";
const LOCK: &str = "in-use";

/// A temporary directory, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    /// Held for its lock.
    _lock: File,
}

impl Scratch {
    /// A new, empty directory below the system's directory for temporary files.
    pub fn new() -> anyhow::Result<Scratch> {
        let root = std::env::temp_dir();
        remove_abandoned(&root);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&root)
            .with_context(|| format!("can't make a directory in {}", root.display()))?;
        let unlocked = directory.path().join("lock");
        let lock = File::create(&unlocked).context("can't make a lock file")?;
        lock.lock().context("can't lock a new file")?;
        // Under its final name it has never been seen unlocked.
        std::fs::rename(&unlocked, directory.path().join(LOCK))
            .context("can't name a lock file")?;
        Ok(Scratch {
            directory,
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A path in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// Removes the directories whose process has ended without doing so. What can't be removed stays:
/// it may be another user's.
fn remove_abandoned(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_owner() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_in_use_is_left_alone_and_an_abandoned_one_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (used, abandoned) = (
            root.path().join("remora-lab-a"),
            root.path().join("remora-lab-b"),
        );
        for directory in [&used, &abandoned] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join(LOCK), "").unwrap();
        }
        let lock = File::open(used.join(LOCK)).unwrap();
        lock.lock().unwrap();
        remove_abandoned(root.path());
        assert!(used.exists());
        assert!(!abandoned.exists());
    }
}
