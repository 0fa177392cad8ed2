//! The file in which a process saves its results for the next one (`cache.state_file`).
//!
//! | file | what it holds |
//! |---|---|
//! | `header` | what the results rest on: the log, the settings of sessions, the kinds of reads |
//! | `records` | the results, and the checksum at the end |
//! | `restore` | the start: the file is taken, checked, and its results are put into the store |
//! | `save` | the stop: the results that may outlive the process are written |
//!
//! [`remora_cache::SavedResults`] says which results may be saved and why the next process
//! may serve them. [`remora_upstream::saved`] proves that the log goes on. This module sees to what
//! those two leave open: that a key means the same again, and that the file is what was written.
//!
//! - *A key means the same.* Its text is read under the same rules by the same build of Remora: of
//!   another one the file is not read, for how tags and keys are made is no format. Its scope is
//!   made anew from what the server had told of the session's settings.
//! - *Privileges.* Only what sessions read that had logged in, chosen their schema and taken up
//!   their role after the last change of privileges is saved. Sessions of the next process
//!   get it if nothing has changed since: a change behind the end of the log that was read touches
//!   everything. No result is served before that has been read.
//! - *The file is taken once.* It is removed before anything of it is believed. What happens
//!   afterwards without a trace in the log is forgotten by the process that saw it, and a file that
//!   stayed would bring it back.
//! - *It is whole.* It ends with a checksum of all bytes before, which is compared before any
//!   result is taken over. It is written aside and renamed.
//! - *It is Remora's.* It is as private as the data (mode 0600), and one that others may write or
//!   read isn't believed.
//!
//! What the checks of the server find while it is followed, nobody finds while no Remora runs. So
//! the time between is bounded (`cache.state_age_ms_max`).

mod header;
mod records;
mod restore;
mod save;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use xxhash_rust::xxh3::Xxh3Default;

use self::records::sum_up;
pub(crate) use self::restore::StateFile;
pub(crate) use self::save::save;
use crate::config::Settings;

/// Results between two looks at the clock.
const RESULTS_BETWEEN_LOOKS: usize = 32;

/// The file and its limits.
#[derive(Debug, Clone)]
pub(crate) struct StateOptions {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// How old it may be when it is taken over, milliseconds.
    age_ms_max: u64,
    /// For how long results are written, milliseconds.
    write_ms_max: u64,
    /// For how long they are read, milliseconds.
    read_ms_max: u64,
    /// Whether comments are stripped from the texts of keys.
    strip_comments: bool,
}

impl StateOptions {
    /// None if no file is named.
    pub(crate) fn of(settings: &Settings) -> Option<StateOptions> {
        let cache = &settings.cache;
        Some(StateOptions {
            path: cache.state_file.clone()?,
            age_ms_max: cache.state_age_ms_max,
            write_ms_max: cache.state_write_ms_max,
            read_ms_max: cache.state_read_ms_max,
            strip_comments: cache.strip_comments,
        })
    }
}

/// Opens a file for reading. None if there is none.
fn open(path: &Path) -> io::Result<Option<File>> {
    // A symbolic link is refused, and a pipe doesn't block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the file is written before it takes its name.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Which build of Remora this is: its version, and the hash of the running program.
fn build() -> io::Result<String> {
    let mut hash = Xxh3Default::new();
    sum_up(&mut hash, File::open("/proc/self/exe")?)?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{version} {:032x}", hash.digest128()))
}
