//! The start: what the previous process has saved is checked and taken over.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use remora_cache::{KeyRef, NewEntry, SavedResults};
use remora_engine::key::{Label, Note, fingerprint_of, with_fingerprint};
use remora_engine::reason::StateOutcome;
use remora_engine::settings::SettingsQuery;
use remora_upstream::saved::Resumption;

use super::header::{Header, Renamed, restore_digests, restore_shapes};
use super::records::{Record, begins_like_one, is_whole, read_header};
use super::{RESULTS_BETWEEN_LOOKS, StateOptions, aside, build, open, remove_if_there, unix_ms};
use crate::shared::Shared;

/// A file that was taken: nobody finds it any more.
#[derive(Debug)]
pub(crate) struct StateFile {
    header: Header,
    file: BufReader<File>,
    bytes: u64,
    /// Until then it can be taken over.
    good_until: tokio::time::Instant,
    options: StateOptions,
}

impl StateFile {
    /// Takes the file of the previous process. Whatever is wrong with it, it is removed; what can't
    /// be such a file stays.
    pub(crate) fn take(shared: &Shared, options: &StateOptions) -> Result<StateFile, StateOutcome> {
        let path = &options.path;
        let system = |what: &'static str| {
            move |error: io::Error| {
                tracing::error!("cache.state_file: {}{what}: {error}", path.display());
                StateOutcome::Unreadable
            }
        };
        // One that an interrupted stop has left.
        remove_if_there(&aside(path)).map_err(system(
            ".new is left from an interrupted stop and can't be removed",
        ))?;
        let Some(mut file) = open(path).map_err(system(" can't be read"))? else {
            return Err(StateOutcome::NoFile);
        };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if !is_file || !begins_like_one(&mut file).map_err(system(" can't be read"))? {
            tracing::error!(
                "cache.state_file: {} isn't a file of Remora's results, so it is left alone; remove it or name another",
                path.display()
            );
            return Err(StateOutcome::Damaged);
        }
        // Before anything of it is believed, and for good: see the documentation of the module.
        remove(path).map_err(system(
            " can't be removed (Remora needs write permission on its directory)",
        ))?;
        StateFile::check(shared, options, file)
    }

    fn check(
        shared: &Shared,
        options: &StateOptions,
        file: File,
    ) -> Result<StateFile, StateOutcome> {
        let system = |_: io::Error| StateOutcome::Unreadable;
        let metadata = file.metadata().map_err(system)?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        // It could be found by another name.
        let has_names = metadata.nlink() != 0;
        if metadata.mode() & 0o077 != 0 || !is_own || has_names {
            return Err(StateOutcome::OpenToOthers);
        }
        let mut file = BufReader::new(file);
        // What another build has written need not even have these fields.
        file.rewind().map_err(system)?;
        let header = read_header(&mut file).map_err(system)?;
        let header: Option<Header> = header.and_then(|json| serde_json::from_slice(&json).ok());
        let header = header.ok_or(StateOutcome::OtherBuild)?;
        if header.build != build().map_err(system)? {
            return Err(StateOutcome::OtherBuild);
        }
        if header.rules != shared.rules.text() || header.strip_comments != options.strip_comments {
            return Err(StateOutcome::OtherRules);
        }
        let age_ms = unix_ms().checked_sub(header.saved_at_ms);
        let left_ms = age_ms.and_then(|age_ms| options.age_ms_max.checked_sub(age_ms));
        let left_ms = left_ms.ok_or(StateOutcome::TooOld)?;
        Ok(StateFile {
            header,
            file,
            bytes: metadata.len(),
            good_until: tokio::time::Instant::now() + Duration::from_millis(left_ms),
            options: options.clone(),
        })
    }

    /// What the follower goes on with. `epoch` is [`remora_cache::Store::epoch`] of before anybody
    /// could connect.
    pub(crate) fn into_resumption(self, shared: &Arc<Shared>, epoch: u64) -> Resumption {
        let log = self.header.log.clone();
        let (told, shared) = (Arc::clone(shared), Arc::clone(shared));
        Resumption {
            log,
            good_until: self.good_until,
            take_results: Box::new(move |question, results| {
                self.take_results(&shared, question, results, epoch)
            }),
            tell: Box::new(move |outcome| told.restored.tell(outcome)),
        }
    }

    fn take_results(
        mut self,
        shared: &Shared,
        question: &SettingsQuery,
        results: SavedResults,
        epoch: u64,
    ) -> Result<(), StateOutcome> {
        let began = Instant::now();
        let damaged = |_: io::Error| StateOutcome::Damaged;
        self.file.rewind().map_err(damaged)?;
        if !is_whole(&mut self.file, self.bytes).map_err(damaged)? {
            return Err(StateOutcome::Damaged);
        }
        // To the first result.
        self.file.rewind().map_err(damaged)?;
        read_header(&mut self.file).map_err(damaged)?;
        // Before the results: see the documentation of `SavedResults`.
        restore_shapes(&shared.upstream.shapes, &self.header.tables)?;
        let privilege_epoch = shared.upstream.privilege_epoch();
        let mut fingerprints = HashMap::new();
        for record in &self.header.fingerprints {
            let id = record.intern(&shared.fingerprints, question, privilege_epoch)?;
            fingerprints.insert(record.id, id);
        }
        let now_ms = shared.clock.now_ms();
        let renamed = Renamed {
            fingerprints,
            labels: restore_digests(&shared.digests, &self.header.digests, now_ms),
        };
        let read = self.read_results(shared, &renamed, results, epoch, began);
        let (taken, bytes) = read.map_err(damaged)?;
        shared.restored.count(taken);
        tracing::info!(
            "took over {taken} results ({bytes} bytes) from {} in {} ms; they are served once \
             Remora has caught up with the log",
            self.options.path.display(),
            began.elapsed().as_millis()
        );
        Ok(())
    }

    /// Puts the results into the store. Gives how many, and their bytes.
    fn read_results(
        &mut self,
        shared: &Shared,
        renamed: &Renamed,
        results: SavedResults,
        epoch: u64,
        began: Instant,
    ) -> io::Result<(u64, usize)> {
        let time = Duration::from_millis(self.options.read_ms_max);
        let (mut taken, mut bytes) = (0_u64, 0);
        let mut record = Record::default();
        let mut read = 0_usize;
        while record.read_next(&mut self.file)? {
            if read.is_multiple_of(RESULTS_BETWEEN_LOOKS) && began.elapsed() > time {
                tracing::warn!(
                    "reading cache.state_file took longer than cache.state_read_ms_max: the other \
                     results are left out; raise it to keep more"
                );
                break;
            }
            if put(shared, renamed, results, epoch, &record).is_some() {
                taken += 1;
                bytes += record.response.len();
            }
            read += 1;
        }
        Ok((taken, bytes))
    }
}

/// Puts a result into the store. None if it can't be there: that costs a miss.
fn put(
    shared: &Shared,
    renamed: &Renamed,
    results: SavedResults,
    epoch: u64,
    record: &Record,
) -> Option<()> {
    let scope = record.scope()?;
    let fingerprint = renamed.fingerprints.get(&fingerprint_of(scope))?;
    let scope = with_fingerprint(scope, *fingerprint).ok()?;
    let note = Note::from_number(record.note);
    let label = renamed.labels.get(&note.label).copied();
    let note = Note {
        label: label.unwrap_or(Label::OTHERS),
        ..note
    };
    let key = KeyRef {
        scope,
        text: &record.text,
    };
    // With less memory than before those that are in stay in.
    if shared.store.is_full(key.digest()) {
        return None;
    }
    let entry = NewEntry {
        key,
        tags: &record.tags,
        as_of: results.as_of(record.as_of)?,
        response: &record.response,
        label: note.number(),
        epoch,
        expires_at_ms: None,
    };
    shared.store.insert(&entry).ok().map(drop)
}

/// Removes a file for good: also if the machine stops now.
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes a file that a previous process has saved and this one hasn't taken: it is of no use to
/// any later one.
pub(super) fn remove_saved(path: &Path) -> io::Result<()> {
    let Some(mut file) = open(path)? else {
        return Ok(());
    };
    if begins_like_one(&mut file)? {
        remove(path)?;
    }
    Ok(())
}
