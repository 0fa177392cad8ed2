//! Sending a message to the server and relaying its answer, byte for byte, as it comes.
//!
//! **The fence and the answer.** A fence raised for a write is handed on when the server has
//! answered (OK or ERR: a failed statement on a table without transactions changes rows too), or
//! when its connection is gone. If the client leaves while a write runs, the answer is still
//! awaited: the write goes on. If the client doesn't take the answer, it is read ahead of it
//! ([`super::backlog`]). Before the end of the answer is passed on, what the fence was made from is
//! looked at again.

use std::io;
use std::rc::Rc;

use remora_cache::{AsOf, BrokenCode, Fence, FenceScope};
use remora_engine::key::Label;
use remora_engine::reason::{Bypass, Limit, Outcome, Stage};
use remora_engine::session::consequences::Consequences;
use remora_engine::session::planned_writes::{PlannedWrites, PrivilegeStatement};
use remora_engine::session::prepared::{PreparedStatement, StatementId};
use remora_engine::session::state::{Effects, UnseenCode, WriteScope};
use remora_sql::{SessionEffect, ShowNames};
use remora_upstream::catalogue::CodeBasis;
use remora_upstream::clock::Instant;
use remora_upstream::definition_change::DefinitionChange;
use remora_upstream::privileges::{Look, PrivilegeChange};
use remora_wire::command::ResponseKind;
use remora_wire::message::MessageWalker;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};

use super::dispatch::Step;
use super::early::SentOpening;
use super::emulation::Replacement;
use super::fence::Wrote;
use super::fill::Fill;
use super::listening::Heard;
use super::types::Namer;
use super::{BUFFER_BYTES_KEPT, Ended, LAST_WORDS_BYTES, Session};
use crate::digests::Count;

/// `ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_TABLEACCESS_DENIED_ERROR` and
/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: the account may not change privileges, so it hasn't.
const NOT_ALLOWED: [u16; 4] = [1044, 1045, 1142, 1227];
/// `ER_PARSE_ERROR`: nothing has run.
const PARSE_ERROR: u16 = 1064;

/// What a message will do, decided before it is sent.
pub(super) struct Plan {
    /// The shape of the answer.
    pub expect: ResponseKind,
    /// What the statement does to session and transaction.
    pub effects: Effects,
    /// What it writes.
    pub writes: PlannedWrites,
    /// On what it rests that the message runs no code unseen; `None` if it may.
    pub code: Option<CodeBasis>,
    /// Whether it changes rows without a trace in the log.
    pub forgets: bool,
    /// What becomes of the answer.
    pub relay: Relay,
    /// When it was looked up, if memory might have answered it.
    pub looked_up: Option<Instant>,
    /// What it is counted under, and when it came, if it is a statement.
    pub counted: Option<(Label, Instant)>,
    /// What its success means beyond that.
    pub on_success: OnSuccess,
    /// Where in the message its sent part ends, if the client hasn't sent all of it yet.
    pub rest: Option<MessageWalker>,
    /// What was sent before it to open its transaction, and is answered first.
    pub opening: Option<SentOpening>,
}

/// What becomes of an answer on its way to the client.
#[allow(
    clippy::large_enum_variant,
    reason = "a fill stays where it is made: boxing would cost each stored miss an allocation"
)]
pub(super) enum Relay {
    /// It is passed on as it comes.
    Pass,
    /// So it is, and memory keeps it if all about it is right.
    Keep(Fill),
    /// Rows of Remora's own are put into this listing.
    Merge(Box<ShowNames>),
    /// The client gets something of Remora's own instead.
    Replace(Replacement),
    /// It is passed on as it comes, and remembered as the answer to this `SET`.
    LearnSetAnswer(Box<[u8]>),
}

impl Relay {
    /// Takes the fill out: nothing is kept any more.
    pub(super) fn take_fill(&mut self) -> Option<Fill> {
        match std::mem::replace(self, Relay::Pass) {
            Relay::Keep(fill) => Some(fill),
            Relay::Replace(mut replacement) => replacement.take_fill(),
            Relay::Pass | Relay::Merge(_) | Relay::LearnSetAnswer(_) => None,
        }
    }

    /// Takes out what the client gets instead, if it does. What is left says whether memory keeps
    /// the answer.
    fn take_replacement(&mut self) -> Option<Replacement> {
        if !matches!(self, Relay::Replace(_)) {
            return None;
        }
        let Relay::Replace(mut replacement) = std::mem::replace(self, Relay::Pass) else {
            return None;
        };
        if let Some(fill) = replacement.take_fill() {
            *self = Relay::Keep(fill);
        }
        Some(replacement)
    }

    /// Has the client get where the time went in place of the answer. What was to be kept still is.
    pub(super) fn analysed(self) -> Relay {
        let fill = match self {
            Relay::Keep(fill) => Some(Box::new(fill)),
            Relay::Pass | Relay::Merge(_) | Relay::Replace(_) | Relay::LearnSetAnswer(_) => None,
        };
        Relay::Replace(Replacement::Analysed(fill))
    }
}

/// What the success of a command means for the session.
#[derive(Debug)]
pub(super) enum OnSuccess {
    /// Nothing more.
    Plain,
    /// A statement was prepared.
    Prepared(Box<PreparedStatement>),
    /// A prepared statement was executed.
    Executed(Executed),
    /// The session is as after its login.
    Reset,
    /// Multi-statements were switched.
    OptionChanged,
    /// What is stored is to be dropped, before the client is told.
    EmptyStore,
}

/// An execution of a prepared statement, by the server.
#[derive(Debug)]
pub(super) struct Executed {
    /// The statement.
    pub id: StatementId,
    /// Who named the parameters' types in the message, if it names them.
    pub named: Option<Namer>,
    /// What was visible before it was sent.
    pub at: Option<AsOf>,
    /// Whether the session's settings were others than when it was prepared, or may have been.
    pub under_others: bool,
}

impl Plan {
    /// A message without effects.
    pub(super) fn plain(expect: ResponseKind) -> Plan {
        Plan {
            expect,
            effects: Effects::NONE,
            writes: PlannedWrites::Nothing,
            code: Some(CodeBasis::ReadsNothing),
            forgets: false,
            relay: Relay::Pass,
            looked_up: None,
            counted: None,
            on_success: OnSuccess::Plain,
            rest: None,
            opening: None,
        }
    }

    /// A message that may do anything.
    pub(super) fn unknown(expect: ResponseKind) -> Plan {
        Plan::with(Consequences::unknown(), expect)
    }

    /// A message with these consequences.
    pub(super) fn with(consequences: Consequences, expect: ResponseKind) -> Plan {
        let Consequences {
            effects,
            writes,
            unlogged,
        } = consequences;
        Plan {
            effects,
            writes,
            forgets: unlogged,
            ..Plan::plain(expect)
        }
    }
}

/// A message that is on its way to the server.
pub(super) struct Exchange {
    plan: Plan,
    /// Taken before the message was sent.
    look: Look,
    /// Keeps Remora's own questions away from the tables whose definitions it changes.
    _definitions: Option<DefinitionChange>,
    writing: Writing,
}

/// What a message writes, while it is on its way.
pub(super) struct Writing {
    wrote: Option<Wrote>,
    /// On what it rests that the message runs no code unseen; `None` if it may.
    code: Option<CodeBasis>,
    fence: Option<Fence>,
    /// Raised because what the first was made from has changed.
    wider: Option<Fence>,
    /// Whether it changes what results are without a trace in the log.
    forgets: bool,
    /// What it does to privileges.
    privileges: Option<PrivilegeWrite>,
    /// The server has answered it to the end.
    is_answered: bool,
}

/// A statement that may change privileges, while it is on its way.
pub(super) struct PrivilegeWrite {
    /// How it does that.
    pub kind: PrivilegeStatement,
    /// Until it is over, nobody knows which privileges the server sees.
    pub change: PrivilegeChange,
}

impl Writing {
    /// What a plan says, before its fence is up.
    pub(super) fn new(plan: &Plan, privileges: Option<PrivilegeWrite>) -> Writing {
        Writing {
            wrote: None,
            code: plan.code,
            fence: None,
            wider: None,
            forgets: plan.forgets,
            privileges,
            is_answered: false,
        }
    }

    /// The code that may have run with it and isn't seen.
    fn unseen_code(&self) -> UnseenCode {
        let of_reads = match self.code {
            Some(_) => UnseenCode::None,
            None => UnseenCode::Possible,
        };
        let of_writes = self.wrote.as_ref().map(|wrote| wrote.unseen_code);
        of_reads.max(of_writes.unwrap_or(UnseenCode::None))
    }

    /// Whether the server has used a table with transactions for it, as far as it writes one.
    fn uses_transaction(&self) -> bool {
        self.wrote
            .as_ref()
            .is_some_and(|wrote| wrote.uses_transaction)
    }

    /// The server has answered it to the end.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Whether its answer must be awaited even if the client leaves.
    pub(super) fn must_finish(&self) -> bool {
        self.fence.is_some()
    }

    /// The server has answered, if it has. To be called before the client gets that.
    pub(super) fn settle_privileges(&mut self, ending: Option<Ending>) {
        let Some(PrivilegeWrite { kind, change }) = self.privileges.take() else {
            return;
        };
        let is_refused = matches!(ending, Some(Ending::Err(code)) if NOT_ALLOWED.contains(&code));
        let may_be_partial = match ending {
            Some(Ending::Err(code)) => code != PARSE_ERROR,
            None => true,
            Some(_) => false,
        };
        match kind {
            PrivilegeStatement::Logged
            | PrivilegeStatement::Revoke
            | PrivilegeStatement::Reload
                if is_refused =>
            {
                change.refused();
            }
            PrivilegeStatement::Logged => drop(change),
            PrivilegeStatement::Revoke if !may_be_partial => drop(change),
            PrivilegeStatement::Revoke
            | PrivilegeStatement::Reload
            | PrivilegeStatement::Hidden => {
                drop(change);
                self.forgets = true;
            }
        }
    }
}

impl Exchange {
    pub(super) fn new(
        plan: Plan,
        writing: Writing,
        look: Look,
        definitions: Option<DefinitionChange>,
    ) -> Exchange {
        Exchange {
            plan,
            look,
            writing,
            _definitions: definitions,
        }
    }
}

/// A piece of an answer, after what could be done at once has been done.
pub(super) struct Piece {
    pub(super) progress: Progress,
    /// What the client's socket did not take.
    pub(super) unsent: Vec<u8>,
}

/// Who gets an answer.
pub(super) enum Receiver {
    /// The client.
    Client,
    /// The client, when it has taken what came before.
    Behind,
    /// Nobody: the client has left.
    Left(io::Error),
}

impl Session {
    /// Sees a message through: sends what remains of it, relays the answer, settles its effects.
    pub(super) async fn exchange(&mut self, mut exchange: Box<Exchange>) -> Result<(), Ended> {
        let Exchange {
            plan,
            look,
            writing,
            ..
        } = &mut *exchange;
        let result = self.converse(plan, writing, *look).await;
        let was_sent = writing.must_finish() || writing.is_answered;
        self.hand_on_fence(writing);
        if let Some(fill) = plan.relay.take_fill() {
            self.count_bypass(fill.label, Bypass::AnswerCutShort);
        }
        if self.fill_text.capacity() > BUFFER_BYTES_KEPT {
            self.fill_text = Vec::new();
        }
        if result.is_err() {
            let runs_text = was_sent && plan.effects.may_turn_log_off;
            self.cut_short(runs_text, writing.is_answered);
        }
        let Some(summary) = result? else {
            self.registration.update(&self.state);
            return Ok(());
        };
        self.registration.answered();
        if summary.succeeded() {
            let privileges = self.shared.privileges();
            match plan.effects.session {
                SessionEffect::DefaultSchema => self.state.chose_schema(privileges.end_look(*look)),
                SessionEffect::Role => self.state.chose_role(privileges.end_look(*look)),
                _ if matches!(plan.on_success, OnSuccess::Reset) => {
                    // Its role is the one of a login again.
                    self.state.chose_role(privileges.end_look(*look));
                }
                _ => {}
            }
        }
        if plan.effects.may_load_routine {
            let epoch = self.shared.privileges().end_look(*look);
            self.state.perhaps_looked_at_privileges(epoch);
        }
        plan.effects.unseen_code = plan.effects.unseen_code.max(writing.unseen_code());
        self.note_own_transaction(&mut plan.effects, writing);
        if self.shared.timeline.broken().code == BrokenCode::Session {
            plan.effects.unseen_code = UnseenCode::None;
        }
        let wrote = writing.wrote.as_ref().map(|wrote| &wrote.scope);
        self.settle(plan, wrote, &summary);
        self.registration.update(&self.state);
        Ok(())
    }

    /// Whether a statement had a transaction of its own, as far as that makes a difference.
    fn note_own_transaction(&self, effects: &mut Effects, writing: &Writing) {
        if writing.uses_transaction() {
            let of_write = self.own_transaction_of_write(false);
            effects.own_transaction = effects.own_transaction.max(of_write);
        }
        effects.code_leaves_next_transaction = !effects.session.runs_procedure()
            && effects.runs_code()
            && self.refuses_next_transaction_in_code();
    }

    /// The server has answered what writes, or won't any more: the fence, if one is up, goes to the
    /// watermark.
    pub(super) fn hand_on_fence(&self, writing: &mut Writing) {
        writing.settle_privileges(None);
        let fences = [writing.fence.take(), writing.wider.take()];
        if fences.iter().any(Option::is_some) {
            self.hand_on(fences.into_iter().flatten(), writing.forgets);
        }
    }

    /// The same for fences. `forgets`: it changed what results are without a trace in the log.
    pub(super) fn hand_on(&self, fences: impl Iterator<Item = Fence>, forgets: bool) {
        if forgets || self.state.writes_are_unlogged() {
            // The log won't tell of this change. While the fence is up nothing is served, and
            // when it is down nothing from before this moment is.
            self.shared.timeline.forget();
        }
        let mut stops_all = forgets;
        for fence in fences {
            stops_all |= fence.stops_all();
            fence.answered();
        }
        // Such a fence stops too much to wait for a read that needs it lowered.
        if stops_all {
            self.shared.upstream.wake();
        } else {
            self.shared.upstream.want_watermark();
        }
    }

    /// Everything up to the end of the answer. No summary: the message gets no answer of its own.
    async fn converse(
        &mut self,
        plan: &mut Plan,
        writing: &mut Writing,
        look: Look,
    ) -> Result<Option<Summary>, Ended> {
        if let Some(opening) = plan.opening.take()
            && let Some(failed) = self.await_opening(opening, plan.expect).await?
        {
            return Ok(Some(failed));
        }
        if let Err(ended) = self.send_all(plan, writing).await {
            return Err(self.relay_last_words(ended).await);
        }
        match plan.expect {
            ResponseKind::Nothing => Ok(None),
            ResponseKind::Authentication => self.relay_change_user(look).await.map(|()| None),
            ResponseKind::Stream => self.relay_stream().await.map(Some),
            _ => self.relay_answer(plan, writing).await.map(Some),
        }
    }

    /// Finds out what a message will write, and raises the fence that it needs.
    pub(super) fn fence(&self, plan: &Plan, writing: &mut Writing) {
        writing.wrote = self.resolve_writes(&plan.writes);
        writing.fence = self.raise_fence(&plan.effects, writing.wrote.as_ref());
    }

    async fn send_all(&mut self, plan: &mut Plan, writing: &mut Writing) -> Result<(), Ended> {
        if !self.outbox.is_empty() {
            let outbox = std::mem::take(&mut self.outbox);
            self.server.write_all(&outbox).await?;
        }
        if let Some(mut walker) = plan.rest.take() {
            let mut at_end = |session: &Session| session.fence(plan, writing);
            while self
                .relay_message_piece(&mut walker, &mut at_end)
                .await?
                .is_none()
            {}
        }
        Ok(())
    }

    /// Relays some of a message from the client. Gives its payload's length when it has ended;
    /// before its end is sent, `at_end` is called.
    pub(super) async fn relay_message_piece(
        &mut self,
        walker: &mut MessageWalker,
        mut at_end: impl FnMut(&Session),
    ) -> Result<Option<u64>, Ended> {
        if self.inbox.is_empty() {
            self.read_into_inbox().await?;
        }
        let (used, end) = walker.feed(&self.inbox);
        if end.is_some() {
            at_end(self);
        }
        self.server.write_all(&self.inbox[..used]).await?;
        self.inbox.consume(used);
        Ok(end.map(|end| end.payload_bytes))
    }

    /// Waits until the client sends more, and takes what there is then: perhaps nothing.
    pub(super) async fn read_into_inbox(&mut self) -> Result<(), Ended> {
        self.client.readable().await?;
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        match self.client.try_read(&mut scratch) {
            Ok(0) => Err(Ended::closed()),
            Ok(count) => {
                worker.metrics.count_client_bytes_in(count);
                self.inbox.extend(&scratch[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the rest of a message that is refused from the client, and answers it.
    pub(super) async fn discard(
        &mut self,
        walker: &mut MessageWalker,
        start: &[u8],
    ) -> Result<(), Ended> {
        let payload_bytes = loop {
            let (used, end) = walker.feed(&self.inbox);
            self.inbox.consume(used);
            if let Some(end) = end {
                break end.payload_bytes;
            }
            self.read_into_inbox().await?;
        };
        let bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        match self.refuse(start, bytes)? {
            Step::Send { packets, written } => {
                Ok(self.client.write_all(&packets[written..]).await?)
            }
            Step::Refuse { packets } => {
                self.client.write_all(&packets).await?;
                Err(Ended::closed())
            }
            _ => Ok(()),
        }
    }

    /// The server stopped listening: what it said before it did is the client's to know.
    async fn relay_last_words(&mut self, ended: Ended) -> Ended {
        let mut chunk = vec![0; LAST_WORDS_BYTES];
        while let Ok(count @ 1..) = self.server.try_read(&mut chunk) {
            if self.client.write_all(&chunk[..count]).await.is_err() {
                break;
            }
        }
        ended
    }

    async fn relay_answer(
        &mut self,
        plan: &mut Plan,
        writing: &mut Writing,
    ) -> Result<Summary, Ended> {
        let mut walker = ResponseWalker::new(plan.expect, self.capabilities());
        if let Relay::Merge(names) = &plan.relay
            && let Some(summary) = self.relay_merged(&mut walker, names).await?
        {
            return Ok(summary);
        }
        if let Some(replacement) = plan.relay.take_replacement() {
            return self
                .relay_replaced(&mut walker, plan, replacement, writing)
                .await;
        }
        let mut receiver = Receiver::Client;
        loop {
            let progress = self
                .relay_piece(&mut walker, plan, writing, &mut receiver)
                .await?;
            let left = matches!(receiver, Receiver::Left(_));
            match progress {
                Progress::Done(summary) if !left => return Ok(summary),
                Progress::LocalFile if !left => self.relay_local_file().await?,
                Progress::More if !left || writing.must_finish() => {}
                _ => {
                    return Err(match receiver {
                        Receiver::Left(error) => error.into(),
                        Receiver::Client | Receiver::Behind => Ended::closed(),
                    });
                }
            }
        }
    }

    /// Waits for some of an answer, and passes it on.
    async fn relay_piece(
        &mut self,
        walker: &mut ResponseWalker,
        plan: &mut Plan,
        writing: &mut Writing,
        receiver: &mut Receiver,
    ) -> Result<Progress, Ended> {
        if let Heard::ClientLeft(error) = self.await_server().await? {
            *receiver = Receiver::Left(error);
            return Ok(Progress::More);
        }
        let Some(piece) = self.read_piece(walker, plan, writing, receiver)? else {
            return Ok(Progress::More);
        };
        let mut progress = piece.progress;
        if !piece.unsent.is_empty() {
            if writing.must_finish() {
                // Apart, for the time it takes: few sessions ever need what it needs.
                let ahead = Box::pin(self.relay_ahead(walker, plan, writing, piece, receiver));
                progress = ahead.await?;
            } else if let Err(error) = self.client.write_all(&piece.unsent).await {
                *receiver = Receiver::Left(error);
            }
        }
        self.mark(Stage::Write);
        Ok(progress)
    }

    /// Reads what the server sent, sends what the client takes, and keeps it if it may be kept.
    pub(super) fn read_piece(
        &mut self,
        walker: &mut ResponseWalker,
        plan: &mut Plan,
        writing: &mut Writing,
        receiver: &mut Receiver,
    ) -> Result<Option<Piece>, Ended> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let count = match self.server.try_read(&mut scratch) {
            Ok(0) => return Err(Ended::closed()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.trace_answer(count);
        let chunk = &scratch[..count];
        let (used, progress) = walker.feed(chunk)?;
        if let Relay::LearnSetAnswer(text) = &plan.relay {
            // In several pieces it is not worth the trouble.
            if matches!(progress, Progress::Done(_)) {
                self.learn_set_answer(text, &chunk[..used]);
            }
            plan.relay = Relay::Pass;
        }
        if let Progress::Done(summary) = progress {
            writing.answered();
            self.look_again_at(writing);
            self.note_evidence(&mut plan.effects, walker.has_rows());
            writing.settle_privileges(Some(summary.ending));
            if summary.succeeded() && matches!(plan.on_success, OnSuccess::EmptyStore) {
                self.shared.flush();
            }
        }
        let mut unsent = Vec::new();
        match receiver {
            Receiver::Client => match self.client.write_now(chunk) {
                Ok(written) => unsent.extend_from_slice(&chunk[written..]),
                Err(error) => *receiver = Receiver::Left(error),
            },
            Receiver::Behind => unsent.extend_from_slice(chunk),
            Receiver::Left(_) => {}
        }
        self.mark(Stage::Write);
        self.worker.metrics.count_client_bytes_out(count);
        if matches!(plan.relay, Relay::Keep(_)) {
            self.keep_piece(plan, &chunk[..used], progress);
            self.mark(Stage::Store);
        }
        if used < count {
            // More than the answer: the server says why it will close. It was relayed; nothing can
            // be told apart after it.
            return Err(Ended::closed());
        }
        if matches!(progress, Progress::Done(_)) {
            // The client may take its time.
            self.turn = None;
        }
        Ok(Some(Piece { progress, unsent }))
    }

    /// The server has executed what writes; its answer hasn't been passed on yet.
    ///
    /// What is found now may have run before the change that made the difference was known, like a
    /// write past Remora: until the fence is up, readers may be as late as the log.
    pub(super) fn look_again_at(&self, writing: &mut Writing) {
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        let is_resolved = |wrote| self.is_as_resolved(wrote);
        let is_as_known = writing.wrote.as_ref().is_none_or(is_resolved)
            && writing.code.is_none_or(|basis| hidden_code.holds(basis));
        if is_as_known {
            return;
        }
        let uses_transaction = writing.uses_transaction();
        let wrote = writing.wrote.insert(Wrote::everything(true));
        wrote.uses_transaction = uses_transaction;
        let is_fenced_later = self.state.is_certainly_in_transaction() && writing.fence.is_none();
        if !is_fenced_later {
            writing.wider = Some(self.shared.timeline.raise(FenceScope::Everything));
        }
    }

    pub(super) fn keep_piece(&mut self, plan: &mut Plan, piece: &[u8], progress: Progress) {
        let Some(fill) = plan.relay.take_fill() else {
            return;
        };
        match progress {
            Progress::Done(summary) => {
                self.finish_fill(fill, piece, &summary, plan.effects.snapshot);
            }
            Progress::More => {
                let label = fill.label;
                match self.capture(fill, piece) {
                    Ok(fill) => plan.relay = Relay::Keep(fill),
                    Err(why) => self.count_bypass(label, why),
                }
            }
            Progress::LocalFile => {
                self.count_bypass(fill.label, Bypass::AnswerIsNotOneResultSet);
            }
        }
    }

    pub(super) fn count_bypass(&self, label: Label, why: Bypass) {
        if why == Bypass::AnswerTooLarge {
            self.shared.metrics.rare.count_limit(Limit::ResultBytes);
        }
        self.count(Some(label), Outcome::Bypass(why));
    }

    /// Counts what became of a message; `label` if it is a statement.
    pub(super) fn count(&self, label: Option<Label>, outcome: Outcome) {
        self.worker.metrics.count(outcome);
        self.trace_outcome(outcome);
        if let Some(label) = label {
            self.worker.digests.count(label, Count::Outcome(outcome));
        }
    }

    fn settle(&mut self, plan: &mut Plan, wrote: Option<&WriteScope>, summary: &Summary) {
        if let (Some(recorder), Ending::Err(code)) = (&self.trace, summary.ending) {
            recorder.failed(code);
        }
        if let Some(began) = plan.looked_up {
            self.worker.metrics.miss_seconds.observe(began.elapsed());
        }
        if let Some((label, began)) = plan.counted {
            let took = began.elapsed();
            self.note_server_took(label, took);
            self.worker.digests.count(label, Count::Miss { took });
        }
        self.note_unseen_text(&plan.effects);
        self.state.after(&plan.effects, wrote, summary);
        match std::mem::replace(&mut plan.on_success, OnSuccess::Plain) {
            OnSuccess::Prepared(statement) => {
                let id = match summary.ending {
                    Ending::Prepared {
                        statement_id,
                        parameters,
                    } => Some((StatementId(statement_id), parameters)),
                    _ => None,
                };
                self.prepared_as(id, *statement);
            }
            OnSuccess::Executed(executed) => self.executed(&executed, summary.succeeded()),
            OnSuccess::Reset if summary.succeeded() => {
                let global = self.shared.query_cache.own_values();
                self.state.reset(summary.mark, global);
                self.forget_early();
                self.prepared.clear();
            }
            OnSuccess::Plain | OnSuccess::Reset | OnSuccess::EmptyStore => {}
            OnSuccess::OptionChanged => self.state.option_changed(),
        }
    }
}
