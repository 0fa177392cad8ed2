//! Transactions of which the server doesn't know yet, and which memory answers before it does
//! (`cache.transaction_reads = "early"`).
//!
//! `BEGIN` is answered in the server's place, as are `COMMIT` and `ROLLBACK` of a transaction that
//! memory has answered wholly. With autocommit off the first read opens the transaction. The server
//! hears of it when a message comes that memory can't answer:
//!
//! - Memory has answered nothing yet, or each answer has a moment of its own (`READ COMMITTED`):
//!   the server gets `BEGIN`, and the message behind it. A read is sent together with it. This is
//!   so with `after_snapshot`, too. There memory answers reads at this point only if each has a
//!   moment of its own, or after the server has made the snapshot; see `first_read.rs`. With `off`
//!   the server gets `BEGIN` at once.
//! - Else it is told to make the transaction's snapshot now, and what memory has answered must hold
//!   in it: [`remora_cache::EarlyRead`] has the rule, and why it is right. If something doesn't,
//!   the transaction is rolled back, and the client gets error 1213, which asks it to try again.

use std::ops::Range;

use remora_cache::{AsOf, BrokenSnapshots, EarlyRead, Entry, Snapshot, Unservable};
use remora_engine::key::Note;
use remora_engine::reason::Limit;
use remora_engine::session::planned_writes::PlannedWrites;
use remora_engine::session::snapshot::{Evidence, OpenSnapshot};
use remora_engine::session::state::Effects;
use remora_sql::{Transaction, TransactionControl};
use remora_wire::Command;
use remora_wire::command::ResponseKind;
use remora_wire::packet::{Extent, HEADER_BYTES, Header, extent, put_message};
use remora_wire::response::{OK_MARK, ServerError};
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::dispatch::{Prerequisite, Step, gets_answer};
use super::exchange::{OnSuccess, Plan};
use super::questions::QUERY;
use super::refusal::Refusal;
use super::{BUFFER_BYTES_KEPT, Ended, Session};

/// A read may be sent behind `BEGIN` before that is answered if it is no longer than this, bytes.
const SENT_TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// `ER_LOCK_DEADLOCK`: the transaction was rolled back, and the client is asked to try it again.
const TRY_AGAIN: (u16, &str) = (1213, "40001");

/// What is remembered of such a transaction. Kept for the session's next one.
#[derive(Default)]
pub(super) struct EarlyTransaction {
    /// What began it; none if autocommit is off and a read did.
    begin: Option<TransactionControl>,
    answered: Vec<Answered>,
    /// The messages that memory answered, one behind the other.
    messages: Vec<u8>,
}

/// An answer that memory gave.
struct Answered {
    read: EarlyRead,
    /// Its message's payload.
    message: Range<usize>,
    /// Of the answer's bytes.
    hash: u128,
}

impl EarlyTransaction {
    /// What the answers depend on.
    pub(super) fn reads(&self) -> impl Iterator<Item = &EarlyRead> {
        self.answered.iter().map(|answered| &answered.read)
    }

    fn begins(&mut self, begin: Option<TransactionControl>) {
        self.begin = begin;
        self.answered.clear();
        self.messages.clear();
        self.messages.shrink_to(BUFFER_BYTES_KEPT);
    }

    fn is_full(&self, limit: usize) -> bool {
        self.answered.len() >= limit
    }
}

/// What is remembered of a hit in a transaction in which all reads must show one moment.
pub(super) struct EarlyHit {
    read: EarlyRead,
    hash: u128,
}

impl EarlyHit {
    /// Of this result, which was handed to the client.
    pub(super) fn of(entry: &Entry) -> EarlyHit {
        EarlyHit {
            read: EarlyRead {
                as_of: entry.as_of(),
                tags: entry.tags().collect(),
            },
            hash: xxh3_128(entry.response()),
        }
    }
}

/// A statement that opens a transaction, sent before the message that needs it.
#[derive(Debug)]
pub(super) struct SentOpening {
    /// The watermark before it was sent.
    low: Option<AsOf>,
    /// The message, if it may only be sent when the transaction is open.
    held: Option<Vec<u8>>,
}

impl SentOpening {
    /// Whether the message has not been sent.
    pub(super) fn holds_message(&self) -> bool {
        self.held.is_some()
    }
}

/// How the server is to open a transaction.
enum Opening {
    /// As the client began it. Nothing that memory has answered binds its snapshot.
    Plain(&'static str),
    /// With its snapshot.
    WithSnapshot(&'static str),
}

impl Opening {
    fn of(begin: Option<TransactionControl>, must_show_one_moment: bool) -> Opening {
        match (begin, must_show_one_moment) {
            (Some(TransactionControl::BeginReadOnly), true) => {
                Opening::WithSnapshot("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            }
            (_, true) => Opening::WithSnapshot("START TRANSACTION WITH CONSISTENT SNAPSHOT"),
            (Some(TransactionControl::BeginReadOnly), false) => {
                Opening::Plain("START TRANSACTION READ ONLY")
            }
            (_, false) => Opening::Plain("START TRANSACTION"),
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Opening::Plain(text) | Opening::WithSnapshot(text) => text,
        }
    }
}

/// What opening the transaction that `begin` began does to the session.
fn begin_effects(begin: Option<TransactionControl>) -> Effects {
    Effects {
        transaction: Transaction::Begin,
        control: Some(begin.unwrap_or(TransactionControl::Begin)),
        ..Effects::NONE
    }
}

impl Session {
    /// Answers a statement that begins or ends a transaction in the server's place, if the server
    /// needn't know of it.
    pub(super) fn control_early(
        &mut self,
        control: TransactionControl,
        message: &[u8],
    ) -> Result<Option<Step>, Ended> {
        let is_silent = !self.state.is_early() && self.server_contact_is_due();
        if is_silent || !self.may_answer_for_server() {
            return Ok(None);
        }
        let begins = matches!(
            control,
            TransactionControl::Begin | TransactionControl::BeginReadOnly
        );
        if begins && self.begun_early() == Some(TransactionControl::BeginReadOnly) {
            // The server would make the next transaction read-only, too.
            return Ok(None);
        }
        let Some(status) = self.state.answer_to(control) else {
            return Ok(None);
        };
        self.note_found_rows(message);
        let closed = self.unreplayed_hit.clear();
        match control {
            TransactionControl::Begin | TransactionControl::BeginReadOnly => {
                self.early.get_or_insert_default().begins(Some(control));
                self.state.opens_early(status);
            }
            TransactionControl::Commit | TransactionControl::Rollback => {
                self.forget_early();
                self.state.ends_early(status);
                // What the client asks about the statement before is about this one. It does
                // nothing at the server, which knows of no transaction.
                self.unreplayed_hit.set_control(&message[HEADER_BYTES..]);
            }
        }
        if let Some(closed) = closed {
            self.close_late(closed)?;
        }
        let [low, high] = status.0.to_le_bytes();
        let payload = [OK_MARK, 0, 0, low, high, 0, 0];
        self.answer_for_server(&payload).map(Some)
    }

    /// Whether what memory has answered in the open transaction still shows one moment with a
    /// result that was found to be servable just now.
    #[inline]
    pub(super) fn check_early(&self) -> Result<(), Unservable> {
        match &self.early {
            Some(early) if self.state.is_early() => self.shared.timeline.check_early(early.reads()),
            _ => Ok(()),
        }
    }

    /// Whether this would be the transaction's first hit, although the result doesn't prove that
    /// its read needs a snapshot. Without Remora the server might make none for it, and makes none
    /// for a locking read. After a hit, Remora has it make the snapshot before the next statement,
    /// whatever that is. A later plain read could then miss commits made in between.
    #[inline]
    pub(super) fn would_bind_too_soon(&self, entry: &Entry) -> bool {
        self.state.may_open_early()
            && self.state.reads_first()
            && !self.binds_transaction()
            && !Note::of(entry).makes_snapshot
            && self.shared.timeline.broken().snapshots != BrokenSnapshots::BoundTooSoon
    }

    /// Whether a hit now must be remembered; `Err`: there is no room, so the server must answer.
    pub(super) fn remembers_hits(&self, message_bytes: usize) -> Result<bool, TooMuch> {
        if !self.state.reads_first() {
            return Ok(false);
        }
        let limit = self.shared.limits.early_reads_max;
        let is_full = self
            .early
            .as_ref()
            .is_some_and(|early| self.state.is_early() && early.is_full(limit));
        if is_full {
            self.shared.metrics.rare.count_limit(Limit::EarlyReads);
        }
        if is_full || message_bytes > BUFFER_BYTES_KEPT {
            return Err(TooMuch);
        }
        Ok(true)
    }

    /// Memory has answered a message in a transaction of which the server doesn't know, or with
    /// autocommit off in none yet.
    pub(super) fn note_early_hit(&mut self, payload: &[u8], hit: Option<Box<EarlyHit>>) {
        if !self.state.is_early() {
            self.state.reads_early();
            if !self.state.is_early() {
                return;
            }
            self.early.get_or_insert_default().begins(None);
            self.registration.update(&self.state);
        }
        if let (Some(hit), Some(early)) = (hit, &mut self.early) {
            let start = early.messages.len();
            early.messages.extend_from_slice(payload);
            early.answered.push(Answered {
                read: hit.read,
                message: start..early.messages.len(),
                hash: hit.hash,
            });
        }
    }

    /// What began the transaction of which the server doesn't know, if there is one.
    fn begun_early(&self) -> Option<TransactionControl> {
        let early = self.early.as_ref().filter(|_| self.state.is_early());
        early.and_then(|early| early.begin)
    }

    pub(super) fn forget_early(&mut self) {
        if let Some(early) = &mut self.early {
            early.begins(None);
        }
    }

    /// What must be done before a message is sent to the server: the step, if it must be looked at
    /// again afterwards. If memory has answered nothing that binds the transaction, the server gets
    /// `BEGIN` before the message.
    pub(super) fn open_before(
        &mut self,
        message: &[u8],
        plan: &mut Plan,
    ) -> Result<Option<Step>, Ended> {
        let ends_session = matches!(plan.on_success, OnSuccess::Reset)
            || plan.expect == ResponseKind::Authentication;
        if !self.state.is_early() || ends_session {
            // If the session ends, so does its transaction, and the server never hears of it.
            return Ok(None);
        }
        if plan.effects.control.is_some() && self.state.may_keep_table_locks() {
            // It is for the locks that the server holds. What memory has answered ends with it.
            self.forget_early();
            self.state.ends_early(self.state.status_outside());
            return Ok(None);
        }
        let command = Command::from_byte(message.get(HEADER_BYTES).copied().unwrap_or_default());
        let is_heard = gets_answer(message) || command == Command::StmtSendLongData;
        if is_heard && self.binds_transaction() {
            // What was sent ahead would go to what is run again.
            return Ok(Some(Step::Requires(Prerequisite::OpenTransaction)));
        }
        if !gets_answer(message) {
            return Ok(None);
        }
        let early = self.early.as_deref();
        let opening = Opening::of(early.and_then(|early| early.begin), false);
        let mut begin = Vec::new();
        let payload = [self.query_head(), opening.text().as_bytes()].concat();
        put_message(&mut begin, 0, &payload);
        let low = self.shared.timeline.as_of();
        self.send(&begin)?;
        // Should `BEGIN` fail, what was sent with it runs outside a transaction. A read does no
        // harm there. A long message could take several turns of a compressed connection.
        let reads_only = message.len() <= SENT_TOGETHER_BYTES_MAX
            && matches!(plan.effects.snapshot, Evidence::InRows | Evidence::InAnswer)
            && plan.writes == PlannedWrites::Nothing
            && plan.rest.is_none()
            && plan.code.is_some();
        plan.opening = Some(SentOpening {
            low,
            held: (!reads_only).then(|| message.to_vec()),
        });
        Ok(None)
    }

    /// Awaits the server's answer to the `BEGIN` that was sent before a message, and sends the
    /// message if it was held. Gives the summary if `BEGIN` failed: the client has its error in
    /// place of the message's answer, which would be of the kind `expect`.
    pub(super) async fn await_opening(
        &mut self,
        sent: SentOpening,
        expect: ResponseKind,
    ) -> Result<Option<Summary>, Ended> {
        let begun = std::mem::take(&mut self.outbox);
        self.server.write_all(&begun).await?;
        let packet = self.read_packet().await?;
        let mut walker = ResponseWalker::new(ResponseKind::Results, self.capabilities());
        let Progress::Done(summary) = walker.feed(&packet)?.1 else {
            return Err(Ended::closed());
        };
        if !summary.succeeded() {
            self.forget_early();
            self.state.ends_early(self.state.status_outside());
            self.client.write_all(&packet).await?;
            match sent.held {
                None => drop(self.skip_answer_to(expect).await?),
                // The client believes that the server has this one: the types of its parameters, or
                // its first part.
                Some(message) if !is_whole_query(&message) => return Err(Ended::closed()),
                Some(_) => {}
            }
            return Ok(Some(summary));
        }
        self.opened(self.begun_early(), sent.low, &summary);
        // The message is under way.
        self.state.sends(sent.low);
        if let Some(message) = sent.held {
            self.send(&message)?;
        }
        Ok(None)
    }

    /// The server has opened the transaction. `low`: the watermark before it was told to.
    fn opened(&mut self, begin: Option<TransactionControl>, low: Option<AsOf>, summary: &Summary) {
        self.forget_early();
        self.state.sends(low);
        self.state.after(&begin_effects(begin), None, summary);
    }

    /// Reads one packet from the server, and nothing behind it.
    async fn read_packet(&mut self) -> Result<Vec<u8>, Ended> {
        let mut packet = vec![0; HEADER_BYTES];
        let mut filled = 0;
        while filled < packet.len() {
            let count = self.read_server(&mut packet[filled..]).await?;
            if count == 0 {
                return Err(Ended::closed());
            }
            filled += count;
            if filled == HEADER_BYTES
                && let Some(header) = Header::peek(&packet)
            {
                packet.resize(HEADER_BYTES + header.length, 0);
            }
        }
        Ok(packet)
    }

    /// Has the server open the transaction that memory has answered so far, and sees to it that it
    /// shows there what memory has answered. If it can't, the next message is refused. If memory
    /// has answered nothing, `with_snapshot` says whether the server makes the snapshot now; it may
    /// refuse to.
    pub(super) async fn open_transaction(&mut self, with_snapshot: bool) -> Result<(), Ended> {
        let begin = self.begun_early();
        let is_bound = self.binds_transaction();
        if !self.state.is_early() {
            // What is there is an older transaction's.
            self.forget_early();
        }
        let early = std::mem::take(&mut *self.early.get_or_insert_default());
        let mut opening = Opening::of(begin, is_bound || with_snapshot);
        // Before the snapshot is made.
        let low = self.shared.timeline.as_of();
        let (mut summary, mut answer) = self.ask_to_open(&opening).await?;
        if with_snapshot && !is_bound && matches!(summary.ending, Ending::Err(_)) {
            // The client must not notice: it has sent no such statement.
            self.server_makes_snapshots = false;
            opening = Opening::of(begin, false);
            (summary, answer) = self.ask_to_open(&opening).await?;
        }
        if let Ending::Err(_) = summary.ending {
            self.state.ends_early(self.state.status_outside());
            self.state.after(&begin_effects(begin), None, &summary);
            let payload = answer.get(HEADER_BYTES..).unwrap_or_default();
            self.refusal = Some(Box::new(Refusal::conflict(ServerError::parse(payload)?)));
            return Ok(());
        }
        self.opened(begin, low, &summary);
        let holds = match opening {
            Opening::Plain(_) => true,
            Opening::WithSnapshot(_) => {
                let made_after = self.shared.timeline.end_questions();
                // A warning says that the transaction isn't one that shows a snapshot.
                let is_made = summary.mark.is_some_and(|mark| mark.warnings == 0);
                let snapshot = low.map(|low| Snapshot { low, made_after });
                let snapshot = snapshot.filter(|_| is_made);
                self.state.has_snapshot(match snapshot {
                    Some(snapshot) => OpenSnapshot::Made(snapshot),
                    None => OpenSnapshot::Perhaps(low),
                });
                self.holds_on_server(&early, snapshot).await?
            }
        };
        if !holds {
            self.roll_back_early().await?;
        }
        self.registration.update(&self.state);
        Ok(())
    }

    /// Sends a statement that opens a transaction; gives the answer, too.
    async fn ask_to_open(&mut self, opening: &Opening) -> Result<(Summary, Vec<u8>), Ended> {
        let text = [self.query_head(), opening.text().as_bytes()].concat();
        let mut answer = Vec::new();
        let summary = self
            .ask(&text, ResponseKind::Results, Some(&mut answer))
            .await?;
        Ok((summary, answer))
    }

    /// Whether the transaction's snapshot on the server shows what memory has answered.
    async fn holds_on_server(
        &mut self,
        early: &EarlyTransaction,
        snapshot: Option<Snapshot>,
    ) -> Result<bool, Ended> {
        if let Some(snapshot) = snapshot {
            self.await_proof(snapshot).await;
        }
        for answered in &early.answered {
            let timeline = &self.shared.timeline;
            if snapshot.is_some_and(|snapshot| timeline.holds_in(&answered.read, snapshot)) {
                continue;
            }
            let mut hash = Xxh3::new();
            let message = &early.messages[answered.message.clone()];
            self.run_again(message, |piece| hash.update(piece)).await?;
            if hash.digest128() != answered.hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the transaction on the server, and has the client told to try it again.
    async fn roll_back_early(&mut self) -> Result<(), Ended> {
        let text = [self.query_head(), b"ROLLBACK AND NO CHAIN NO RELEASE"].concat();
        self.state.sends(None);
        let summary = self.ask(&text, ResponseKind::Results, None).await?;
        let rollback = Effects {
            transaction: Transaction::Rollback,
            ..Effects::NONE
        };
        self.state.after(&rollback, None, &summary);
        self.found_rows = None;
        if let Some(closed) = self.unreplayed_hit.clear() {
            self.close_late(closed)?;
        }
        let (code, sql_state) = TRY_AGAIN;
        self.refusal = Some(Box::new(Refusal::conflict(ServerError::new(
            code,
            sql_state,
            "What this transaction had read from Remora's memory has changed; try restarting transaction",
        ))));
        Ok(())
    }

    /// Whether memory has answered something that binds the open transaction to a moment.
    pub(super) fn binds_transaction(&self) -> bool {
        self.state.is_early()
            && self
                .early
                .as_ref()
                .is_some_and(|early| !early.answered.is_empty())
    }
}

/// Whether a message is a statement as text, and all of it.
fn is_whole_query(message: &[u8]) -> bool {
    let is_query = message.get(HEADER_BYTES).copied() == Some(QUERY);
    let is_whole = matches!(
        extent(message, 0),
        Ok(Extent::Complete { bytes, .. }) if bytes == message.len()
    );
    is_query && is_whole
}

/// Memory must not answer: more than is remembered of a transaction would have to be.
pub(super) struct TooMuch;
