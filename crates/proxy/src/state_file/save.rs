//! The stop: the results that may outlive the process are written.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use remora_cache::{Entry, StoreCursor};
use remora_engine::key::fingerprint_of;
use remora_engine::reason::StateNotSaved;
use remora_upstream::saved::SavedLog;

use super::header::{Header, SettingsRecord, digests_of, tables_of};
use super::records::{Writer, begins_like_one};
use super::restore::remove_saved;
use super::{RESULTS_BETWEEN_LOOKS, StateOptions, aside, build, open, remove_if_there, unix_ms};
use crate::shared::Shared;

/// What was written.
struct Saved {
    results: u64,
    /// Whether the time was over before all were written.
    is_part: bool,
}

/// Saves the results for the next process, and says in the log what came of it. Only when every
/// session has ended and nothing is followed any more.
///
/// `is_cut`: writes were cut off meanwhile. What they still change at the server need not be in the
/// log.
pub(crate) fn save(shared: &Shared, log: Option<SavedLog>, is_cut: bool, options: &StateOptions) {
    let not_saved = |why: StateNotSaved, error: &str| {
        tracing::warn!(
            reason = why.as_str(),
            "results aren't saved, the next start begins with an empty memory: {}{error}",
            why.describe()
        );
        if let Err(error) = remove_saved(&options.path) {
            tracing::error!(
                "cache.state_file: {} can't be removed ({error}); remove it before the next start",
                options.path.display()
            );
        }
    };
    if is_cut {
        return not_saved(StateNotSaved::CutOff, "");
    }
    let Some(log) = log else {
        return not_saved(StateNotSaved::Unsettled, "");
    };
    let path = options.path.display();
    match save_to_file(shared, log, options) {
        Ok(saved) => {
            let rest = if saved.is_part {
                "; the rest is left out, cache.state_write_ms_max was reached"
            } else {
                ""
            };
            tracing::info!(
                "wrote {} results to {path} for the next start{rest}",
                saved.results
            );
        }
        Err(error) => not_saved(StateNotSaved::WriteFailed, &format!(" {path}: {error}")),
    }
}

fn save_to_file(shared: &Shared, log: SavedLog, options: &StateOptions) -> io::Result<Saved> {
    if let Some(mut other) = open(&options.path)?
        && !begins_like_one(&mut other)?
    {
        return Err(io::Error::other(
            "it isn't a file of Remora's results; name another",
        ));
    }
    let aside = aside(&options.path);
    // One that an interrupted stop has left.
    remove_if_there(&aside)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)?;
    let written = write(shared, log, options, &file).and_then(|saved| {
        rename(&aside, &options.path)?;
        Ok(saved)
    });
    if written.is_err() {
        // It is of no use, and what can't be removed now the next start removes.
        let _ = remove_if_there(&aside);
    }
    written
}

fn write(shared: &Shared, log: SavedLog, options: &StateOptions, file: &File) -> io::Result<Saved> {
    let began = Instant::now();
    let privilege_epoch = shared.upstream.privilege_epoch();
    let fingerprints: Vec<_> = shared
        .fingerprints
        .saved()
        .into_iter()
        .filter_map(|saved| SettingsRecord::of(saved, privilege_epoch))
        .collect();
    let ids: HashSet<u64> = fingerprints.iter().map(|record| record.id).collect();
    let header = Header {
        build: build()?,
        saved_at_ms: unix_ms(),
        rules: shared.rules.text(),
        strip_comments: options.strip_comments,
        log,
        fingerprints,
        tables: tables_of(&shared.upstream.shapes),
        digests: digests_of(&shared.digests),
    };
    let header = serde_json::to_vec(&header)?;
    let mut writer = Writer::begin(BufWriter::new(file), &header)?;
    let is_part = !add_results(shared, &ids, &mut writer, began, options)?;
    Ok(Saved {
        results: writer.finish()?,
        is_part,
    })
}

/// Adds the results that may outlive the process. False if the time was over before.
fn add_results<W: Write>(
    shared: &Shared,
    ids: &HashSet<u64>,
    writer: &mut Writer<W>,
    began: Instant,
    options: &StateOptions,
) -> io::Result<bool> {
    let time = Duration::from_millis(options.write_ms_max);
    let mut cursor = Some(StoreCursor::default());
    while let Some(from) = cursor {
        if began.elapsed() > time {
            return Ok(false);
        }
        let mut failed = None;
        cursor = shared
            .store
            .walk_step(from, RESULTS_BETWEEN_LOOKS, |entry| {
                if failed.is_none() && outlives(shared, ids, entry) {
                    failed = writer.add(entry).err();
                }
            });
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(true)
}

/// Whether the next process may serve it.
fn outlives(shared: &Shared, ids: &HashSet<u64>, entry: &Entry) -> bool {
    // The time of an expiry is one of this process's clock.
    entry.expires_at_ms().is_none()
        && ids.contains(&fingerprint_of(entry.scope()))
        && shared.timeline.outlives(entry.as_of(), entry.tags())
}
