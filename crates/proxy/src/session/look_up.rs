//! Looking a statement up, and answering it from memory.

use std::sync::Arc;

use remora_cache::{Entry, InvalidationReason, KeyRef, Scope, Unservable};
use remora_engine::key::{Label, Note, may_be_select};
use remora_engine::reason::Stage;
use remora_engine::session::prepared::StatementId;
use remora_upstream::clock::Instant;

use super::dispatch::Step;
use super::early::{EarlyHit, TooMuch};
use super::{Ended, Session};
use crate::digests::Count;

/// Where a statement is looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub scope: Scope,
    pub digest: u128,
}

/// An entry that was handed to the client's socket.
pub(super) struct Sent {
    /// The length of its response.
    bytes: usize,
    /// What the entry says of itself.
    note: Note,
    /// The entry and how much of it was taken, if something remains to be done with it.
    rest: Option<(Arc<Entry>, usize)>,
    /// Whether it was chosen to be verified.
    verify: bool,
    /// What must be remembered of it, as the server doesn't know of the transaction.
    early: Option<Box<EarlyHit>>,
}

/// What a look-up found.
pub(super) enum Look {
    /// Nothing that can be of use.
    Nothing,
    /// An entry, and it was sent.
    Sent(Sent),
    /// An entry that may not be served now but perhaps later.
    NotNow(Label, Unservable),
    /// One of a transaction's first read: it may be served when the server has made the snapshot.
    NeedsSnapshot(Label),
    /// An entry that may never be served again.
    Outdated(Arc<Entry>, InvalidationReason),
}

impl Session {
    /// Where a key text is looked up, if it can be that of a `SELECT` and the session allows
    /// look-ups.
    pub(super) fn place_of(&self, text: &[u8]) -> Option<Place> {
        if !may_be_select(text) || self.may_be_elsewhere() {
            return None;
        }
        let scope = self.state.scope().ok()?;
        Some(Place {
            scope,
            digest: KeyRef { scope, text }.digest(),
        })
    }

    /// Looks a key text up and sends what is stored, if that may be served now.
    #[inline]
    pub(super) fn look_up(
        &self,
        place: Place,
        text: &[u8],
        message_bytes: usize,
        began: Instant,
    ) -> Result<Look, Ended> {
        let Ok(remembers) = self.may_remember_hit(message_bytes) else {
            return Ok(Look::Nothing);
        };
        match self.find(place, text, began, |entry| self.serve(entry, remembers)) {
            Ok(sent) => sent.map(Look::Sent),
            Err(look) => Ok(look),
        }
    }

    /// Whether a hit now must be remembered; `Err`: there is no room, so the server must answer.
    #[inline]
    pub(super) fn may_remember_hit(&self, message_bytes: usize) -> Result<bool, TooMuch> {
        let may_open_early = self.state.may_open_early();
        if may_open_early || self.state.must_have_snapshot() {
            // Only then does anything wait.
            self.keep_waiting_fills();
        }
        if may_open_early {
            self.remembers_hits(message_bytes)
        } else {
            Ok(false)
        }
    }

    /// Whether the server must hear from the session: nothing is served until it has.
    #[inline]
    pub(super) fn must_contact_server(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.server_contact_ms) > self.server_contact_ms_max
    }

    /// Whether the next statement that uses a table must go to the server, to empty its list of
    /// warnings. Else `SHOW WARNINGS` could show old ones later.
    #[inline]
    pub(super) fn must_empty_warnings(&self) -> bool {
        self.state.may_have_warnings() && self.shared.upstream.keeps_warnings()
    }

    /// Looks a key text up, and has what is stored served, if that may be done now.
    #[inline]
    pub(super) fn find<T>(
        &self,
        place: Place,
        text: &[u8],
        began: Instant,
        serve: impl FnOnce(&Arc<Entry>) -> T,
    ) -> Result<T, Look> {
        let shared = &*self.shared;
        self.mark(Stage::Key);
        let now_ms = shared.clock.to_ms(began);
        if self.must_contact_server(now_ms) {
            // Else the server would end a session that it hears nothing from.
            return Err(Look::Nothing);
        }
        let key = KeyRef {
            scope: place.scope,
            text,
        };
        let is_outdated = |entry: &Entry| shared.timeline.outdated(entry.as_of(), entry.tags());
        let look = shared.store.with(&key, place.digest, |entry| {
            self.mark(Stage::LookUp);
            let (as_of, timeline) = (entry.as_of(), &shared.timeline);
            let check = match self.state.snapshot() {
                _ if self.has_written(entry.tags()) => Err(Unservable::OwnWrites),
                None => timeline
                    .check_tags(as_of, entry.tags(), now_ms)
                    .and_then(|()| self.check_early()),
                Some(snapshot) => timeline.check_in_snapshot(as_of, entry.tags(), now_ms, snapshot),
            };
            self.mark(Stage::Check);
            match check {
                Ok(()) if entry.has_expired(now_ms) => Err(Look::Outdated(
                    Arc::clone(entry),
                    InvalidationReason::Expired,
                )),
                // A statement without a table leaves the list as it is at the server, too.
                Ok(()) if self.must_empty_warnings() && entry.tags().next().is_some() => {
                    Err(Look::Nothing)
                }
                Ok(()) if self.state.must_have_snapshot() => {
                    Err(if self.should_make_snapshot(entry) {
                        Look::NeedsSnapshot(Note::of(entry).label)
                    } else {
                        Look::Nothing
                    })
                }
                Ok(()) if self.would_bind_too_soon(entry) => Err(Look::Nothing),
                Ok(())
                    if Note::of(entry).counts_found_rows
                        && !self.finds_count(place.scope, text, entry) =>
                {
                    Err(Look::Nothing)
                }
                Ok(()) => Ok(serve(entry)),
                // One that is fenced may be outdated as well. Then nothing that was known of its
                // statement when it was kept holds any more.
                Err(why) => Err(match why.invalidation().or_else(|| is_outdated(entry)) {
                    Some(reason) => Look::Outdated(Arc::clone(entry), reason),
                    None => self.turn_away(entry, why),
                }),
            }
        });
        look.unwrap_or(Err(Look::Nothing))
    }

    /// What the look-up of an entry found that isn't served now.
    fn turn_away(&self, entry: &Entry, why: Unservable) -> Look {
        self.note_turned_away(why);
        if self.state.must_have_snapshot() {
            // The server answers, and what its answer tells of the snapshot is wanted.
            return Look::Nothing;
        }
        Look::NotNow(Note::of(entry).label, why)
    }

    /// Has a newer watermark asked for soon, if for want of one a result isn't served.
    pub(super) fn note_turned_away(&self, why: Unservable) {
        if matches!(why, Unservable::Fenced | Unservable::NewerThanSnapshot) {
            self.shared.upstream.turned_away();
        }
    }

    /// Sends what is stored.
    #[inline]
    fn serve(&self, entry: &Arc<Entry>, remembers: bool) -> Result<Sent, Ended> {
        let response = entry.response();
        let written = self.client.write_now(response)?;
        let verify = self.worker.verify.draws();
        let rest = (written < response.len() || verify).then(|| (Arc::clone(entry), written));
        Ok(Sent {
            bytes: response.len(),
            note: Note::of(entry),
            rest,
            verify,
            early: remembers.then(|| Box::new(EarlyHit::of(entry))),
        })
    }

    /// Memory has answered a message.
    pub(super) fn after_hit(
        &mut self,
        payload: &[u8],
        statement: Option<StatementId>,
        sent: Sent,
        began: Instant,
    ) -> Result<Step, Ended> {
        let (bytes, took) = (sent.bytes, began.elapsed());
        if self.trace.is_some() {
            self.trace_hit(payload, statement, bytes, began + took);
            if sent.rest.is_none() {
                self.end_trace(Stage::Settle);
            }
        }
        if self.state.may_open_early() {
            let whole = self.with_all_types(payload, statement);
            self.note_early_hit(&whole, sent.early);
        }
        if self.first_read.is_some() {
            self.note_read(sent.note.label);
        }
        self.worker.metrics.count_hit(bytes, took);
        self.worker
            .digests
            .count(sent.note.label, Count::Hit { bytes, took });
        self.looked_again_for = None;
        self.counted_rows = None;
        if let Some(closed) = self.unreplayed_hit.set(payload, statement) {
            self.close_late(closed)?;
        }
        if sent.note.counts_found_rows {
            self.unreplayed_hit.counts(self.count_of_hit.take());
        }
        Ok(match sent.rest {
            None => Step::Answered,
            Some((entry, written)) if sent.verify => Step::Verify { entry, written },
            Some((entry, written)) => Step::FinishHit { entry, written },
        })
    }
}
