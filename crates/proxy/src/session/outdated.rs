//! What outdated a result that was looked up: told after the look-up, when the server is about to
//! be asked anyway. Then the statement is at hand.

use std::sync::Arc;

use remora_cache::{Entry, InvalidationReason};
use remora_engine::key::Note;

use super::Session;
use super::fill::Read;
use crate::digests::{Count, OutdatedBy};
use crate::shared::outdated::{OutdatedResult, Reads};

impl Session {
    /// A result was found that can never be served again.
    pub(super) fn drop_outdated(&mut self, entry: &Arc<Entry>, reason: InvalidationReason) {
        let digests = &self.worker.digests;
        if let Some(untold) = self.outdated.take() {
            digests.count_outdated_by(untold.label, OutdatedBy::Unknown);
        }
        if !self.shared.store.remove_if_same(entry, reason) {
            // Whoever was first has counted it: the sweep, another session, a newer result.
            return;
        }
        let label = Note::of(entry).label;
        match reason {
            InvalidationReason::Changed => {
                digests.count(label, Count::Outdated);
                self.outdated = Some(OutdatedResult::of(entry, &self.shared.timeline));
            }
            InvalidationReason::Everything | InvalidationReason::Forgotten => {
                digests.count(label, Count::Outdated);
                digests.count_outdated_by(label, OutdatedBy::Everything);
            }
            InvalidationReason::Cleared | InvalidationReason::Faulty => {
                digests.count(label, Count::Outdated);
            }
            InvalidationReason::Expired => {}
        }
    }

    /// Tells what outdated the result that a statement would have had from memory, if there was
    /// one.
    pub(super) fn tell_outdated(&mut self, digest: u128, read: &Read<'_>) {
        let Some(outdated) = self.outdated.take() else {
            return;
        };
        let is_its_own = outdated.digest == digest;
        let reads = is_its_own.then(|| self.reads_of(read)).flatten();
        let by = reads.map_or(OutdatedBy::Unknown, |reads| {
            self.shared.outdated_by(&outdated, &reads)
        });
        self.worker.digests.count_outdated_by(outdated.label, by);
    }

    fn reads_of<'a>(&'a self, read: &'a Read<'_>) -> Option<Reads<'a>> {
        let names = read.select.tables.iter();
        Some(Reads {
            select: read.select,
            names: names
                .map(|name| self.qualify(name))
                .collect::<Option<_>>()?,
            tables: self.tables_of(read).ok(),
            bound: read.bound,
            conversion: self.string_conversion(),
        })
    }
}
