//! Remora's own questions on the session's connection to the server, asked between the client's
//! messages: what the settings are, and the repetition of a statement answered from memory.

use std::io;
use std::rc::Rc;

use remora_cache::{BrokenSurroundings, FenceScope};
use remora_engine::reason::{Bypass, Limit};
use remora_engine::session::replay::Replay;
use remora_engine::session::state::{Effects, TableUse, UnseenCode, WriteScope};
use remora_engine::settings::SettingsQuery;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;
use remora_wire::packet::{HEADER_BYTES, Header, put_message};
use remora_wire::rows::{collation_of_definition, parse_text_row};
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};

use super::counted_rows::FOUND_ROWS;
use super::{Ended, Session};

/// `COM_QUERY`.
pub(super) const QUERY: u8 = 0x03;
/// `COM_PING`.
const PING: u8 = 0x0e;
/// `COM_STMT_EXECUTE`.
pub(super) const EXECUTE: u8 = 0x17;

/// How often a session that is served from memory must be heard of within the time that the server
/// waits for it. When its client falls silent, the server ends it as much too early as it had not
/// been heard of before: by this share of that time at most.
const CONTACTS_IN_PATIENCE: u64 = 10;

impl Session {
    /// Asks the server for the session's settings.
    pub(super) async fn learn_settings(&mut self) -> Result<(), Ended> {
        // Reused, because the answer is several kilobytes. If each question allocated its own, the
        // allocator could release and fetch the same page every time.
        let mut answer = self.worker.capture_buffer();
        let learned = self.learn_settings_by(&mut answer).await;
        self.worker.keep_capture_buffer(answer);
        learned
    }

    /// The same with an empty buffer for the answer.
    async fn learn_settings_by(&mut self, answer: &mut Vec<u8>) -> Result<(), Ended> {
        let Some(query) = self.shared.upstream.settings_query() else {
            self.settings_not_told(Bypass::SettingsUnknown);
            return Ok(());
        };
        let message = [self.query_head(), query.sql().as_bytes()].concat();
        let summary = self
            .ask(&message, ResponseKind::Results, Some(answer))
            .await?;
        if summary.ending != Ending::ResultSet {
            self.settings_not_told(Bypass::SettingsUnknown);
            return Ok(());
        }
        // No row would mean that something in the session keeps the server from giving one.
        let row = last_row(answer).map(|row| parse_text_row(row, query.fields()));
        let Some(Ok(mut row)) = row else {
            self.settings_not_told(Bypass::SettingsUnknown);
            return Ok(());
        };
        if self.state.learn_log(SettingsQuery::logs_changes(&row)) {
            self.shared.timeline.forget();
        }
        SettingsQuery::remove_collation_probe(&mut row);
        let mut sees_mark = query.take_mark(&mut row);
        self.note_overwritten_count(SettingsQuery::take_found_rows(&mut row));
        self.server_waits(query.take_patience_ms(&mut row));
        if self.shared.timeline.broken().surroundings == BrokenSurroundings::Instance {
            SettingsQuery::hide_instance(&mut row);
            sees_mark = true;
        }
        SettingsQuery::append_collation(&mut row, last_collation(answer, query.fields()));
        if let Some(mark) = summary.mark {
            self.state.learn_autocommit(mark.status);
        }
        let known = &self.shared.fingerprints;
        if let Ok(fingerprint) = known.intern(&query, &row, self.state.flavour()) {
            let reads = self.transaction_reads_of(&fingerprint);
            self.state.learn_with_mark(fingerprint, query.mark_number());
            self.state.set_transaction_reads(reads);
            self.state.asked_for_mark(query.mark_number(), sees_mark);
        } else {
            self.shared.metrics.rare.count_limit(Limit::Fingerprints);
            self.settings_not_told(Bypass::FingerprintsFull);
        }
        self.learn_counts().await?;
        self.registration.update(&self.state);
        Ok(())
    }

    /// Whether the session was last asked for another mark than the follower has now: nobody knows
    /// whether it is on the server that is followed.
    pub(super) fn mark_is_stale(&self) -> bool {
        self.state.mark_asked_for() != self.shared.upstream.mark_number()
    }

    /// Whether the session isn't known to be on the server that is followed: it hasn't seen the
    /// follower's present mark. Before the first mark nothing is served anyway.
    pub(super) fn may_be_elsewhere(&self) -> bool {
        let number = self.shared.upstream.mark_number();
        number != 0 && !self.state.has_seen_mark(number)
    }

    /// Why nothing is looked up or kept for the session, if that is the reason.
    pub(super) fn check_server(&self) -> Result<(), Bypass> {
        if !self.may_be_elsewhere() {
            Ok(())
        } else if self.mark_is_stale() {
            Err(Bypass::SettingsUnknown)
        } else {
            Err(Bypass::OtherInstance)
        }
    }

    /// Whether asking the server for the session's settings would make look-ups possible.
    pub(super) fn wants_settings(&self) -> bool {
        self.state.wants_settings() || (self.mark_is_stale() && self.state.scope().is_ok())
    }

    fn settings_not_told(&mut self, why: Bypass) {
        if self.state.not_told(why) {
            self.shared.timeline.forget();
        }
    }

    /// How long the server waits for the session to say something, milliseconds, if not for ever.
    fn server_waits(&mut self, patience_ms: Option<u64>) {
        let configured = self.shared.limits.server_contact_ms_max;
        let share = patience_ms.map(|patience| patience / CONTACTS_IN_PATIENCE);
        self.server_contact_ms_max = share.map_or(configured, |share| share.min(configured));
    }

    /// What stands before the text of a query without attributes.
    pub(super) fn query_head(&self) -> &'static [u8] {
        if self.capabilities().has(Capabilities::QUERY_ATTRIBUTES) {
            &[QUERY, 0, 1]
        } else {
            &[QUERY]
        }
    }

    /// Has the server run the statement last answered from memory, and drops the answer: what the
    /// client asks next is about that statement.
    pub(super) async fn repeat_hit(&mut self) -> Result<(), Ended> {
        let sets_found_rows = self.unreplayed_hit.has_result();
        let Replay {
            payload,
            asks_for_count,
            close,
            failed,
            ping,
        } = self.unreplayed_hit.take();
        if sets_found_rows {
            self.found_rows = None;
        }
        self.run_again(&payload, ignore).await?;
        if asks_for_count {
            let question = [self.query_head(), FOUND_ROWS].concat();
            self.ask(&question, ResponseKind::Results, None).await?;
        }
        if let Some(failed) = failed {
            self.ask(&failed, ResponseKind::Prepared, None).await?;
        }
        if ping {
            self.ask(&[PING], ResponseKind::Single, None).await?;
        }
        if let Some(id) = close {
            self.close_late(id)?;
        }
        Ok(())
    }

    /// Has the server run a statement that memory has answered. What it runs is no longer what it
    /// was then if a view has been replaced since: so it is fenced like any other.
    pub(super) async fn run_what_was_answered(
        &mut self,
        payload: &[u8],
        take: impl FnMut(&[u8]),
    ) -> Result<Summary, Ended> {
        let everything = |session: &Session| session.shared.timeline.raise(FenceScope::Everything);
        self.note_own_read();
        let code = self.code_basis_of_message(payload);
        let fence = code.is_none().then(|| everything(self));
        let message = self.as_the_server_reads(payload);
        let asked = self
            .ask_in_pieces(&message, ResponseKind::Results, take)
            .await;
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        if code.is_some_and(|basis| hidden_code.holds(basis)) {
            return asked;
        }
        let fence = fence.unwrap_or_else(|| everything(self));
        if self.state.log_is_doubtful() {
            // Nobody has asked whether what it wrote is logged.
            self.state.writes_in_doubt();
        }
        self.hand_on(std::iter::once(fence), false);
        let summary = asked?;
        let effects = Effects {
            unseen_code: UnseenCode::Possible,
            code_leaves_next_transaction: self.refuses_next_transaction_in_code(),
            table_use: TableUse::Possible,
            ..Effects::NONE
        };
        self.state
            .after(&effects, Some(&WriteScope::Everything), &summary);
        Ok(summary)
    }

    /// Sends a message of Remora's and reads the whole answer, into `answer` if given.
    pub(super) async fn ask(
        &mut self,
        payload: &[u8],
        expect: ResponseKind,
        mut answer: Option<&mut Vec<u8>>,
    ) -> Result<Summary, Ended> {
        let take = |piece: &[u8]| {
            if let Some(answer) = answer.as_deref_mut() {
                answer.extend_from_slice(piece);
            }
        };
        self.ask_in_pieces(payload, expect, take).await
    }

    pub(super) async fn ask_in_pieces(
        &mut self,
        payload: &[u8],
        expect: ResponseKind,
        take: impl FnMut(&[u8]),
    ) -> Result<Summary, Ended> {
        if !self.pending_sets.is_empty() {
            // Apart, for the time it takes: it is rare.
            Box::pin(self.send_pending_sets()).await?;
        }
        self.ask_now(payload, expect, take).await
    }

    /// The same, without sending pending `SET`s first.
    pub(super) async fn ask_now(
        &mut self,
        payload: &[u8],
        expect: ResponseKind,
        take: impl FnMut(&[u8]),
    ) -> Result<Summary, Ended> {
        // The server is asked something else.
        self.counted_rows = None;
        let mut message = std::mem::take(&mut self.outbox);
        put_message(&mut message, 0, payload);
        self.server.write_all(&message).await?;
        self.read_answer(expect, take).await
    }

    /// Reads a whole answer of which nobody wants to know more than its end.
    pub(super) async fn skip_answer_to(&mut self, expect: ResponseKind) -> Result<Summary, Ended> {
        self.read_answer(expect, ignore).await
    }

    /// Reads a whole answer that no client gets, and hands it on in pieces.
    async fn read_answer(
        &mut self,
        expect: ResponseKind,
        mut take: impl FnMut(&[u8]),
    ) -> Result<Summary, Ended> {
        let mut walker = ResponseWalker::new(expect, self.capabilities());
        let worker = Rc::clone(&self.worker);
        loop {
            self.server.readable().await?;
            let mut scratch = worker.scratch.borrow_mut();
            let count = match self.server.try_read(&mut scratch) {
                Ok(0) => return Err(Ended::closed()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            let piece = &scratch[..count];
            let (_, progress) = walker.feed(piece)?;
            take(piece);
            if let Progress::Done(summary) = progress {
                return Ok(summary);
            }
        }
    }
}

/// For an answer of which nobody wants to know more than its end.
fn ignore(_piece: &[u8]) {}

/// In which collation the last of so many columns of a result set is sent; `None` if the answer has
/// no definitions.
fn last_collation(answer: &[u8], columns: usize) -> Option<u16> {
    let mut rest = answer;
    // The first packet has the number of columns.
    for _ in 0..columns {
        rest = rest.get(HEADER_BYTES + Header::peek(rest)?.length..)?;
    }
    let header = Header::peek(rest)?;
    collation_of_definition(rest.get(HEADER_BYTES..HEADER_BYTES + header.length)?)
}

/// The payloads of a whole answer's packets: of a result set the definitions of its columns, its
/// rows and end marks.
pub(super) fn payloads_of(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = answer;
    std::iter::from_fn(move || {
        let end = HEADER_BYTES + Header::peek(rest)?.length;
        let payload = rest.get(HEADER_BYTES..end)?;
        rest = &rest[end..];
        Some(payload)
    })
}

/// The payload of the last row of a result set: the packet before the end mark; `None` if there is
/// none. What stands before it depends on whether this client wants definitions and their own end
/// mark.
pub(super) fn last_row(answer: &[u8]) -> Option<&[u8]> {
    let (mut last, mut before_last) = (None, None);
    for payload in payloads_of(answer) {
        before_last = last.replace(payload);
    }
    before_last
}
