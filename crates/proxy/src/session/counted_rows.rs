//! `SELECT SQL_CALC_FOUND_ROWS …` and the `SELECT FOUND_ROWS()` that follows it, as a pair.
//!
//! The server counts the rows when it reads the result. Its answer to the question is kept beside
//! the result, with the same tags and the same `as_of`. It is looked up by the result's key and
//! bytes, so a count is never given with another result's bytes. The result is served only
//! together with its count, which the session then holds until its next statement. No statement
//! has to be run again for it.
//!
//! Two results of one key with equal bytes may differ in their counts, if a commit came between of
//! which the follower hasn't heard yet. Until it has, the older count may be given, as any older
//! result may.
//!
//! Without `LIMIT` and the like, the number of rows is the count, so nothing more is kept.
//!
//! Only outside transactions, for the question as nearly everybody writes it. MySQL 8.0 warns of
//! both statements, and answers with warnings aren't kept.

use std::sync::Arc;

use remora_cache::{Entry, KeyRef, Scope};
use remora_engine::key::{Label, Note};
use remora_upstream::clock::Instant;
use remora_wire::result_set::Parts;
use xxhash_rust::xxh3::xxh3_128;

use super::dispatch::Step;
use super::fill::Fill;
use super::found_rows::ROWS_MAX;
use super::{Ended, Session};
use crate::digests::Count;

/// The question.
pub(super) const FOUND_ROWS: &[u8] = b"SELECT FOUND_ROWS()";

/// A result that was kept, whose rows the server has counted. The question may come next.
pub(super) struct CountedRows {
    /// Its answer is kept under the same conditions.
    pub(super) fill: Box<Fill>,
    /// What it is looked up by.
    pub(super) key: Vec<u8>,
}

/// What the count of a result is looked up by. No statement begins so, so none is answered with it.
pub(super) fn key_of_count(key: &[u8], response: &[u8]) -> Vec<u8> {
    [b"\0", &xxh3_128(response).to_le_bytes()[..], key].concat()
}

impl Session {
    /// The answer to this statement, which goes to the server now, is to be kept if it asks for the
    /// count of the result that was kept just before.
    pub(super) fn fill_of_count(&mut self, text: &[u8], label: Label) -> Option<Fill> {
        let counted = self.counted_rows.take()?;
        if text != FOUND_ROWS || !self.state.is_certainly_outside_transaction() {
            return None;
        }
        self.fill_text = counted.key;
        let mut fill = *counted.fill;
        fill.label = label;
        Some(fill)
    }

    /// Finds the count of a result that is about to be served, and holds it.
    #[cold]
    pub(super) fn finds_count(&self, scope: Scope, key: &[u8], entry: &Entry) -> bool {
        let key = key_of_count(key, entry.response());
        let key = KeyRef { scope, text: &key };
        let count = self.shared.store.with(&key, key.digest(), Arc::clone);
        let count = count.filter(|count| {
            count.as_of() == entry.as_of() && self.counted(count).is_some_and(|n| n <= ROWS_MAX)
        });
        let is_known = count.is_some();
        self.count_of_hit.set(count);
        is_known
    }

    /// Answers a question for the count of the hit just before it. `None`: the session holds none.
    pub(super) fn count_from_memory(
        &mut self,
        text: &[u8],
        began: Instant,
    ) -> Result<Option<Step>, Ended> {
        if text != FOUND_ROWS || self.must_contact_server(self.shared.clock.to_ms(began)) {
            return Ok(None);
        }
        let Some(entry) = self.unreplayed_hit.ask_for_count() else {
            return Ok(None);
        };
        self.trace = None;
        let response = entry.response();
        let written = self.client.write_now(response)?;
        let (bytes, took) = (response.len(), began.elapsed());
        self.worker.metrics.count_hit(bytes, took);
        let hit = Count::Hit { bytes, took };
        self.worker.digests.count(Note::of(&entry).label, hit);
        self.looked_again_for = None;
        Ok(Some(Step::FinishHit { entry, written }))
    }

    /// The number in the answer to the question.
    pub(super) fn counted(&self, count: &Entry) -> Option<usize> {
        let parts = Parts::of(count.response(), self.capabilities()).ok()?;
        // One field, as text behind its length.
        let (length, digits) = parts.rows.first()?.split_first()?;
        let digits = digits.get(..usize::from(*length))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}
