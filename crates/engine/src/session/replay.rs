//! What memory answered and the server has not seen.
//!
//! `FOUND_ROWS()`, `ROW_COUNT()` and `SHOW WARNINGS` tell of the statement before them. If that was
//! answered from memory, the server must run it first; until another statement goes there it is
//! kept.

use std::sync::Arc;

use remora_cache::Entry;

use super::prepared::StatementId;

/// The statement last answered from memory, if the server has seen none since.
#[derive(Default)]
pub struct UnreplayedHit {
    /// The message's payload; empty if there is none.
    payload: Vec<u8>,
    kind: HitKind,
    /// The prepared statement that it executes.
    statement: Option<StatementId>,
    /// The answer to `FOUND_ROWS()`, if it says `SQL_CALC_FOUND_ROWS`.
    count: Option<Arc<Entry>>,
    /// The client has closed that statement since.
    is_closed: bool,
    /// The client has sent a ping since, and after it nothing that sets `ROW_COUNT()`, too.
    is_pinged: bool,
    /// A preparation that was sent to the server since, and isn't answered.
    preparation: Option<Box<[u8]>>,
    /// The last preparation since that failed: its error is what `SHOW WARNINGS` tells of.
    failed: Option<Box<[u8]>>,
}

/// What memory has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HitKind {
    /// A statement with a result.
    #[default]
    Result,
    /// The same, and then the question for its count.
    AskedResult,
    /// One that ended a transaction of which the server knew nothing, or a `SET`. It has no result.
    Control,
}

/// What must happen so that the server's diagnostics are those that the client expects.
#[derive(Debug)]
pub struct Replay {
    /// The message that the server must run.
    pub payload: Vec<u8>,
    /// Whether the question for its count follows, which memory has answered, too.
    pub asks_for_count: bool,
    /// The statement that is to be closed afterwards.
    pub close: Option<StatementId>,
    /// The preparation that must fail again then.
    pub failed: Option<Box<[u8]>>,
    /// Whether a ping follows.
    pub ping: bool,
}

impl UnreplayedHit {
    /// Its message's payload; empty if there is none.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// It says `SQL_CALC_FOUND_ROWS`, and this is the answer to `FOUND_ROWS()`.
    #[inline]
    pub fn counts(&mut self, count: Option<Arc<Entry>>) {
        self.count = count;
    }

    /// The answer to `FOUND_ROWS()`, if it is known.
    #[inline]
    pub fn count(&self) -> Option<&Arc<Entry>> {
        self.count.as_ref()
    }

    /// Memory answers that question, if it can: the first time. The next one is about this one. Not
    /// behind a ping or a preparation, whose place among them isn't kept.
    pub fn ask_for_count(&mut self) -> Option<Arc<Entry>> {
        let is_alone = !self.is_pinged && self.failed.is_none() && self.preparation.is_none();
        let count = self
            .count
            .clone()
            .filter(|_| is_alone && !self.is_asked())?;
        self.kind = HitKind::AskedResult;
        Some(count)
    }

    /// Whether memory has answered it.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.kind == HitKind::AskedResult
    }

    /// Whether there is none.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.payload.is_empty()
    }

    /// Whether it is one that has a result.
    #[inline]
    pub fn has_result(&self) -> bool {
        !self.is_none() && self.kind != HitKind::Control
    }

    /// Remora has answered a statement that ends a transaction, or a `SET`.
    #[inline]
    pub fn set_control(&mut self, payload: &[u8]) {
        debug_assert!(self.is_none());
        self.payload.extend_from_slice(payload);
        self.kind = HitKind::Control;
    }

    /// Memory has answered a message. Gives the statement of an earlier one whose closing was put
    /// off.
    #[must_use]
    #[inline]
    pub fn set(&mut self, payload: &[u8], statement: Option<StatementId>) -> Option<StatementId> {
        let closed = self.clear();
        self.payload.extend_from_slice(payload);
        if let Some(id) = statement {
            put_statement(&mut self.payload, id);
        }
        self.statement = statement;
        closed
    }

    /// The server will see another statement. Gives the statement whose closing was put off.
    #[must_use]
    #[inline]
    pub fn clear(&mut self) -> Option<StatementId> {
        self.payload.clear();
        self.payload.shrink_to(super::BUFFER_BYTES_KEPT);
        self.kind = HitKind::Result;
        self.count = None;
        self.is_pinged = false;
        self.preparation = None;
        self.failed = None;
        let closed = std::mem::take(&mut self.is_closed);
        self.statement.take().filter(|_| closed)
    }

    /// The client closes a statement. Gives whether that must wait, because the statement may have
    /// to be run.
    #[inline]
    pub fn puts_off_closing(&mut self, id: StatementId) -> bool {
        let is_it = self.executes(id);
        self.is_closed |= is_it;
        is_it
    }

    /// Whether it executes this statement, which isn't closed.
    #[inline]
    pub fn executes(&self, id: StatementId) -> bool {
        self.statement == Some(id) && !self.is_closed
    }

    /// The server would have to get it in this form.
    pub fn replace_payload(&mut self, payload: Vec<u8>) {
        self.payload = payload;
    }

    /// The client sends a ping.
    #[inline]
    pub fn note_ping(&mut self) {
        self.is_pinged = true;
    }

    /// The client prepares a statement, which leaves the diagnostics alone unless it fails.
    #[inline]
    pub fn prepares(&mut self, payload: &[u8]) {
        if !self.is_none() {
            self.preparation = Some(payload.into());
        }
    }

    /// The server has answered that preparation.
    #[inline]
    pub fn was_prepared(&mut self, succeeded: bool) {
        let preparation = self.preparation.take();
        if !succeeded && preparation.is_some() {
            self.failed = preparation;
            // The error comes after the ping.
            self.is_pinged = false;
        }
    }

    /// What the server must do now. There is nothing left to replay afterwards.
    pub fn take(&mut self) -> Replay {
        let payload = std::mem::take(&mut self.payload);
        let ping = self.is_pinged;
        let failed = self.failed.take();
        let asks_for_count = self.is_asked();
        Replay {
            payload,
            asks_for_count,
            close: self.clear(),
            failed,
            ping,
        }
    }
}

/// Makes an execution name its statement: MariaDB's clients can say "the one prepared last", and
/// that may be another when it is run.
#[inline]
pub fn put_statement(execution: &mut [u8], id: StatementId) {
    if let Some(number) = execution.get_mut(1..5) {
        number.copy_from_slice(&id.0.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StatementId = StatementId(7);

    #[test]
    fn a_statement_that_may_have_to_be_run_is_closed_later() {
        let mut hit = UnreplayedHit::default();
        assert_eq!(hit.set(b"execute 7", Some(ID)), None);
        assert!(!hit.puts_off_closing(StatementId(8)));
        assert!(hit.puts_off_closing(ID));
        assert_eq!(hit.set(b"select", None), Some(ID), "another hit");
        assert!(!hit.puts_off_closing(ID), "closed already");
        assert_eq!(hit.clear(), None);
        assert!(hit.is_none());
    }

    #[test]
    fn a_preparation_that_failed_is_repeated_after_the_hit() {
        let mut hit = UnreplayedHit::default();
        hit.prepares(b"no hit before");
        hit.was_prepared(false);
        assert_eq!(hit.set(b"select", None), None);
        hit.prepares(b"good");
        hit.was_prepared(true);
        assert!(hit.take().failed.is_none());
        assert_eq!(hit.set(b"select", None), None);
        for (payload, succeeded) in [(b"bad 1", false), (b"bad 2", false), (b"good2", true)] {
            hit.prepares(payload);
            hit.was_prepared(succeeded);
        }
        assert_eq!(hit.take().failed.as_deref(), Some(&b"bad 2"[..]));
        assert!(hit.take().failed.is_none());
    }

    #[test]
    fn what_was_seen_is_not_repeated() {
        let mut hit = UnreplayedHit::default();
        assert_eq!(hit.set(b"e\xff\xff\xff\xff 7", Some(ID)), None);
        assert!(hit.puts_off_closing(ID));
        hit.note_ping();
        let replay = hit.take();
        assert_eq!(replay.payload, b"e\x07\0\0\0 7");
        assert!(replay.ping && replay.close == Some(ID));
        assert!(hit.is_none());
        assert_eq!(hit.clear(), None);
    }
}
