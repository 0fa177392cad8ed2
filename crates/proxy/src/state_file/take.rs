//! The start of a process: what the one before has left is taken, checked, and taken over.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, BufReader, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use remora_cache::{KeyRef, NewEntry, SavedResults};
use remora_engine::key::{Label, Note, fingerprint_of, with_fingerprint};
use remora_engine::reason::StateOutcome;
use remora_engine::settings::SettingsQuery;

use super::header::{Header, Renamed, restore_digests, restore_shapes};
use super::records::{Record, is_whole, read_header};
use super::{StateOptions, build, unix_ms};
use crate::shared::Shared;
use crate::upstream::saved::Resumption;

/// Results between two looks at the clock.
const RESULTS_BETWEEN_LOOKS: u64 = 1_024;

/// A file that was taken: nobody finds it any more.
#[derive(Debug)]
pub(crate) struct StateFile {
    header: Header,
    /// At the first result.
    file: BufReader<File>,
    options: StateOptions,
}

impl StateFile {
    /// Takes the file of the process before. Whatever is wrong with it, it is removed.
    pub(crate) fn take(shared: &Shared, options: &StateOptions) -> Result<StateFile, StateOutcome> {
        let path = &options.path;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path);
        if let Err(error) = &opened
            && error.kind() == io::ErrorKind::NotFound
        {
            return Err(StateOutcome::NoFile);
        }
        // Before anything of it is believed, and for good: see the documentation of the module.
        if let Err(error) = remove(path) {
            tracing::error!(
                "cache.state_file: {} can't be removed ({error}); Remora needs the right to write \
                 to its directory",
                path.display()
            );
            return Err(StateOutcome::Unreadable);
        }
        let file = opened.map_err(|_| StateOutcome::Unreadable)?;
        let taken = StateFile::check(shared, options, file);
        taken.map_err(|wrong| wrong.unwrap_or(StateOutcome::Unreadable))
    }

    /// None: the system refused it.
    fn check(
        shared: &Shared,
        options: &StateOptions,
        file: File,
    ) -> Result<StateFile, Option<StateOutcome>> {
        let system = |_: io::Error| None;
        let metadata = file.metadata().map_err(system)?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || metadata.mode() & 0o077 != 0 || !is_own {
            return Err(Some(StateOutcome::OpenToOthers));
        }
        let mut file = BufReader::new(file);
        if !is_whole(&mut file, metadata.len()).map_err(system)? {
            return Err(Some(StateOutcome::Damaged));
        }
        file.rewind().map_err(system)?;
        let header = read_header(&mut file).map_err(system)?;
        // What another build has written need not even have these fields.
        let header: Option<Header> = header.and_then(|header| serde_json::from_slice(&header).ok());
        let header = header.ok_or(Some(StateOutcome::OtherBuild))?;
        if header.build != build().map_err(system)? {
            return Err(Some(StateOutcome::OtherBuild));
        }
        if header.rules != shared.rules.text() || header.strip_comments != options.strip_comments {
            return Err(Some(StateOutcome::OtherRules));
        }
        Ok(StateFile {
            header,
            file,
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
        let age_ms = unix_ms().checked_sub(self.header.saved_at_ms);
        let is_young = |age_ms: &u64| *age_ms <= self.options.age_ms_max;
        let age_ms = age_ms.filter(is_young).ok_or(StateOutcome::TooOld)?;
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
        let (taken, bytes) = read.map_err(|_| StateOutcome::Damaged)?;
        shared.restored.count(taken);
        tracing::info!(
            "took over {taken} results ({bytes} bytes) that were written to {} {age_ms} ms ago, in \
             {} ms; they are served when the log has been followed up to now",
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
        let mut read = 0_u64;
        while record.read_next(&mut self.file)? {
            if read.is_multiple_of(RESULTS_BETWEEN_LOOKS) && began.elapsed() > time {
                tracing::warn!("cache.state_read_ms_max is over, the other results are left out");
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
    remove_file(path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
