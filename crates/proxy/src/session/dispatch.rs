//! From a message to what is done with it.
//!
//! `message -> command -> hit | miss -> analysis -> fill | write | bypass`
//!
//! A hit needs no analysis: the key is the text itself, or what of it can matter
//! ([`remora_sql::key_text`]), and only analysed statements get in.

use std::borrow::Cow;
use std::sync::Arc;

use remora_cache::{Entry, FillWait, Snapshot};
use remora_engine::reason::{Bypass, Limit, Outcome, Stage};
use remora_engine::session::consequences::may_be_unlogged;
use remora_engine::session::planned_writes::{PlannedWrites, PrivilegeStatement};
use remora_engine::session::prepared::StatementId;
use remora_engine::session::state::Effects;
use remora_sql::{SessionEffect, Transaction};
use remora_wire::message::MessageWalker;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::{Capabilities, Command};

use super::early::SentOpening;
use super::emulation::Assigning;
use super::exchange::{Exchange, OnSuccess, Plan, PrivilegeWrite, Writing};
use super::{Ended, Session};
use crate::shared::Waiting;

/// `COM_REFRESH`: flushes what its bits say, privileges among them, without a trace in the log.
const REFRESH: u8 = 0x07;

/// So much is kept of a long message that is refused, bytes: its command, and which prepared
/// statement it means.
const REFUSED_BYTES_KEPT: usize = HEADER_BYTES + 5;

/// What is to be done next in a session.
pub(super) enum Step {
    /// Nothing: the message is answered, or needs no answer.
    Answered,
    /// The rest of an entry must be written to the client.
    FinishHit {
        /// The entry being sent.
        entry: Arc<Entry>,
        /// How much of its response the socket took, bytes.
        written: usize,
    },
    /// The rest of an answer of Remora's own must be written to the client.
    Send {
        /// Its packets.
        packets: Vec<u8>,
        /// How much of it the socket took, bytes.
        written: usize,
    },
    /// The client must be told an error, and the connection be closed: nobody could go on after the
    /// message that is refused.
    Refuse {
        /// The error.
        packets: Vec<u8>,
    },
    /// The server must answer what memory has answered, so that the two can be compared. First the
    /// rest of the entry must be written to the client.
    Verify {
        /// The entry that was served.
        entry: Arc<Entry>,
        /// How much of its response the socket took, bytes.
        written: usize,
    },
    /// Something must be done first; then the message, which stays where it is, is looked at again.
    Requires(Prerequisite),
    /// The message is refused, and the client hasn't sent all of it: the rest must be read first.
    /// With the message's first bytes.
    Discard(Box<(MessageWalker, Vec<u8>)>),
    /// The server must say whether the account may assign; then the variables change, and the
    /// client is told.
    Assign(Box<Assigning>),
    /// A message was sent to the server: its answer must be relayed.
    Exchange(Box<Exchange>),
    /// The client leaves.
    Quit,
}

impl Step {
    /// Whether the message stays where it is, to be looked at again.
    pub(super) fn leaves_the_message(&self) -> bool {
        matches!(self, Step::Requires(_))
    }

    /// Whether the message at hand goes to the server, or may yet.
    pub(super) fn needs_server(&self) -> bool {
        matches!(
            self,
            Step::Requires(_) | Step::Exchange(_) | Step::Assign(_)
        )
    }
}

/// What must be done before a message can be handled.
pub(super) enum Prerequisite {
    /// The server must be asked for the session's settings.
    LearnSettings,
    /// The server must run the statement last answered from memory, so that its diagnostics tell of
    /// it.
    RepeatHit,
    /// The server must find as many rows as a hit had that it hasn't seen.
    SetFoundRows,
    /// The server must be told the types of the parameters, which only memory has been told.
    DeliverTypes(StatementId),
    /// The answers to Remora's own questions about definitions must be awaited, before one is
    /// changed.
    AwaitCatalogue,
    /// The follower must be proven to have applied all that the open transaction may see.
    AwaitProof(Snapshot),
    /// Another client's answer to the same statement must have come into memory, or not.
    AwaitFill(Box<FillWait>),
    /// Nothing but another look at the message: memory has the answer since, or it is refused.
    LookAgain,
    /// Fewer statements must run at the server.
    AwaitTurn(Waiting),
    /// The server must be sent the `SET`s that were answered in its place.
    SendPendingSets,
    /// The server must open the transaction that memory has answered so far.
    OpenTransaction,
    /// The same, and the server must make its snapshot, so that memory may answer the first read.
    MakeSnapshot,
}

impl Prerequisite {
    /// Whether questions of Remora's own go to the server on the session's connection.
    pub(super) fn asks_the_server(&self) -> bool {
        match self {
            Prerequisite::LearnSettings
            | Prerequisite::RepeatHit
            | Prerequisite::SetFoundRows
            | Prerequisite::DeliverTypes(_) => true,
            Prerequisite::AwaitCatalogue
            | Prerequisite::AwaitProof(_)
            | Prerequisite::AwaitFill(_)
            | Prerequisite::AwaitTurn(_)
            | Prerequisite::LookAgain
            // They must go out before the transaction opens.
            | Prerequisite::SendPendingSets
            | Prerequisite::OpenTransaction
            | Prerequisite::MakeSnapshot => false,
        }
    }

    /// The part of a statement's time that it takes.
    fn stage(&self) -> Stage {
        match self {
            Prerequisite::AwaitFill(_) => Stage::Fill,
            Prerequisite::AwaitTurn(_) => Stage::Turn,
            _ => Stage::Questions,
        }
    }
}

impl Session {
    /// Does what a message requires.
    pub(super) async fn fulfil(&mut self, prerequisite: Prerequisite) -> Result<(), Ended> {
        let stage = prerequisite.stage();
        let done = match prerequisite {
            Prerequisite::LearnSettings => self.learn_settings().await,
            Prerequisite::RepeatHit => self.repeat_hit().await,
            Prerequisite::SetFoundRows => self.set_found_rows().await,
            Prerequisite::DeliverTypes(id) => self.deliver_types(id).await,
            Prerequisite::AwaitCatalogue => {
                self.await_catalogue().await;
                Ok(())
            }
            Prerequisite::AwaitProof(snapshot) => {
                self.await_proof(snapshot).await;
                Ok(())
            }
            Prerequisite::AwaitFill(wait) => {
                // Others may run meanwhile.
                self.turn = None;
                Box::pin(self.await_fill(*wait)).await;
                Ok(())
            }
            Prerequisite::AwaitTurn(waiting) => Box::pin(self.await_turn(waiting)).await,
            Prerequisite::LookAgain => Ok(()),
            Prerequisite::SendPendingSets => Box::pin(self.send_pending_sets()).await,
            Prerequisite::OpenTransaction => Box::pin(self.open_transaction(false)).await,
            Prerequisite::MakeSnapshot => Box::pin(self.open_transaction(true)).await,
        };
        self.mark(stage);
        done
    }

    /// Handles a complete message.
    pub(super) fn handle(&mut self, message: &[u8]) -> Result<Step, Ended> {
        let command = Command::from_byte(message.get(HEADER_BYTES).copied().unwrap_or_default());
        let body = message.get(HEADER_BYTES + 1..).unwrap_or_default();
        if self.refusal.is_some() && gets_answer(message) {
            return self.refuse(message, message.len());
        }
        let may_be_in_memory = matches!(
            command,
            Command::Query | Command::StmtExecute | Command::StmtBulkExecute
        );
        if !may_be_in_memory && let Some(first) = self.required_before_sending(message) {
            return Ok(Step::Requires(first));
        }
        match command {
            Command::Query => self.handle_query(message, body),
            Command::StmtPrepare => self.handle_prepare(message, body),
            Command::StmtExecute | Command::StmtBulkExecute => {
                self.handle_execute(message, body, command)
            }
            Command::StmtClose => self.handle_close(message, body),
            Command::Quit if self.should_ask_what_ran() => {
                Ok(Step::Requires(Prerequisite::LearnSettings))
            }
            Command::Quit => {
                self.send(message)?;
                Ok(Step::Quit)
            }
            Command::ChangeUser => self.handle_change_user(message),
            other => self.handle_other(message, body, other),
        }
    }

    /// Handles a message that is too long to be held: `start` is what there is of it.
    pub(super) fn handle_long(&mut self, start: &[u8], complete: bool) -> Result<Step, Ended> {
        let command = Command::from_byte(start.get(HEADER_BYTES).copied().unwrap_or_default());
        let body = start.get(HEADER_BYTES + 1..).unwrap_or_default();
        if self.refusal.is_some() && gets_answer(start) {
            if complete {
                return self.refuse(start, start.len());
            }
            let mut walker = MessageWalker::new();
            walker.feed(start);
            let start = start[..start.len().min(REFUSED_BYTES_KEPT)].to_vec();
            return Ok(Step::Discard(Box::new((walker, start))));
        }
        if self.should_ask_about_log() {
            return Ok(Step::Requires(Prerequisite::LearnSettings));
        }
        if self.would_be_taken_by_hit(command, body) {
            return Ok(Step::Requires(Prerequisite::RepeatHit));
        }
        if let Some(first) = self.required_before_sending(start) {
            return Ok(Step::Requires(first));
        }
        if self.binds_transaction() && gets_answer(start) {
            return Ok(Step::Requires(Prerequisite::OpenTransaction));
        }
        match command {
            Command::Query => self.trace_text(Stage::Key, None),
            Command::StmtExecute | Command::StmtBulkExecute => {
                self.trace_execution(Stage::Key, self.statement_meant(body));
            }
            _ => {}
        }
        let mut sent = Cow::Borrowed(start);
        let mut plan = match command {
            Command::Query => self.plan_long_query(body),
            // A long preparation stays unknown, and counts as everything when it is executed.
            Command::StmtPrepare => {
                self.prepared.is_not_noted(may_be_unlogged(body));
                Plan::plain(command.response_kind())
            }
            Command::StmtExecute | Command::StmtBulkExecute => match self.statement_meant(body) {
                Some(id) => {
                    let Some(typed) = self.with_types(start, id, command) else {
                        return Ok(Step::Requires(Prerequisite::DeliverTypes(id)));
                    };
                    let plan = self.plan_execution(&typed, id, command);
                    sent = typed.message;
                    plan
                }
                None => self.plan_unknown_execution(command.response_kind_with(body)),
            },
            other => self.plan_other(other, body),
        };
        self.shared.metrics.rare.count_limit(Limit::StatementBytes);
        if !complete {
            let mut walker = MessageWalker::new();
            walker.feed(start);
            plan.rest = Some(walker);
        }
        self.forward(&sent, plan, Outcome::Bypass(Bypass::StatementTooLong))
    }

    pub(super) fn handle_other(
        &mut self,
        message: &[u8],
        body: &[u8],
        command: Command,
    ) -> Result<Step, Ended> {
        let asks = tells_of_the_statement_before(command) && !self.unreplayed_hit.is_none();
        if asks || self.would_be_taken_by_hit(command, body) {
            return Ok(Step::Requires(Prerequisite::RepeatHit));
        }
        let ends_session = matches!(command, Command::ResetConnection | Command::ChangeUser);
        if ends_session && self.should_ask_what_ran() {
            return Ok(Step::Requires(Prerequisite::LearnSettings));
        }
        let plan = self.plan_other(command, body);
        self.forward(message, plan, Outcome::Bypass(Bypass::NotAQuery))
    }

    fn plan_other(&mut self, command: Command, body: &[u8]) -> Plan {
        let plan = Plan::plain(command.response_kind());
        let rollback = Effects {
            transaction: Transaction::Rollback,
            ..Effects::NONE
        };
        match command {
            Command::InitDb => {
                let session = SessionEffect::DefaultSchema;
                Plan {
                    effects: Effects {
                        session,
                        ..Effects::NONE
                    },
                    ..plan
                }
            }
            Command::StmtSendLongData => {
                self.handle_long_data(body);
                plan
            }
            Command::Ping => {
                self.unreplayed_hit.note_ping();
                plan
            }
            Command::ResetConnection => Plan {
                effects: rollback,
                on_success: OnSuccess::Reset,
                ..plan
            },
            Command::ChangeUser => Plan {
                effects: rollback,
                ..plan
            },
            Command::SetOption => Plan {
                on_success: OnSuccess::OptionChanged,
                ..plan
            },
            Command::Other(REFRESH) => Plan {
                writes: PlannedWrites::Privileges(PrivilegeStatement::Hidden),
                ..Plan::unknown(command.response_kind())
            },
            Command::Other(_) => Plan::unknown(command.response_kind()),
            _ => plan,
        }
    }

    /// What must come before a message goes to the server. To be asked before anything is noted of
    /// it, as it is looked at again afterwards.
    pub(super) fn required_before_sending(&mut self, message: &[u8]) -> Option<Prerequisite> {
        if !self.pending_sets.is_empty() && gets_answer(message) {
            return Some(Prerequisite::SendPendingSets);
        }
        self.take_turn(message)
    }

    /// Raises the fence that the plan needs, then sends the message. If the client hasn't sent all
    /// of that, the fence can wait until it has: the server doesn't begin before.
    pub(super) fn forward(
        &mut self,
        message: &[u8],
        mut plan: Plan,
        outcome: Outcome,
    ) -> Result<Step, Ended> {
        if let Some(first) = self.required_before_sending(message) {
            return Ok(Step::Requires(first));
        }
        if let Some(step) = self.open_before(message, &mut plan)? {
            return Ok(step);
        }
        self.note_forwarded(&plan);
        self.note_counts_before();
        self.looked_again_for = None;
        self.look_again = None;
        if !outcome.is_miss() {
            // What memory could never have answered took no time for its being missed.
            plan.looked_up = None;
        }
        if !matches!(outcome, Outcome::Fill) {
            self.count(plan.counted.map(|(label, _)| label), outcome);
        }
        if plan.writes != PlannedWrites::Nothing && self.state.log_is_doubtful() {
            // Nobody could be asked whether it will be logged.
            self.state.writes_in_doubt();
        }
        let privileges = self.shared.privileges();
        let look = privileges.begin_look();
        let writes_privileges = match plan.writes {
            PlannedWrites::Privileges(kind) => Some(PrivilegeWrite {
                kind,
                change: privileges.begin_change(),
            }),
            _ => None,
        };
        let mut writing = Writing::new(&plan, writes_privileges);
        if plan.rest.is_none() {
            self.fence(&plan, &mut writing);
        }
        if !leaves_diagnostics(message) {
            self.note_found_rows(message);
            if let Some(closed) = self.unreplayed_hit.clear() {
                self.close_late(closed)?;
            }
        }
        // A session that ends leaves the transaction that the server doesn't know.
        if may_read(message) && (!self.state.is_early() || plan.opening.is_some()) {
            let wants_low = self.state.wants_low(&plan.effects);
            let low = wants_low.then(|| self.shared.timeline.as_of()).flatten();
            self.state.sends(low);
        }
        self.mark(Stage::Plan);
        let is_held = plan
            .opening
            .as_ref()
            .is_some_and(SentOpening::holds_message);
        if !is_held {
            self.send(message)?;
        }
        let definitions = self.definition_change.take();
        let exchange = Exchange::new(plan, writing, look, definitions);
        Ok(Step::Exchange(Box::new(exchange)))
    }

    /// Sends to the server what its socket takes, and keeps the rest for the exchange.
    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), Ended> {
        debug_assert!(self.pending_sets.is_empty() || !gets_answer(message));
        self.server_contact_ms = self.shared.clock.now_ms();
        self.counted_rows = None;
        // Behind what waits already.
        let written = if self.outbox.is_empty() {
            self.server.write_now(message)?
        } else {
            0
        };
        self.outbox.extend_from_slice(&message[written..]);
        Ok(())
    }

    /// The protocol features in use.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.state.capabilities()
    }
}

/// Whether the server answers a message.
pub(super) fn gets_answer(message: &[u8]) -> bool {
    let command = message
        .get(HEADER_BYTES)
        .map(|byte| Command::from_byte(*byte));
    !matches!(
        command,
        Some(Command::StmtClose | Command::StmtSendLongData | Command::Quit)
    )
}

/// Whether the command's answer counts the warnings of the statement before it, as MySQL's does.
fn tells_of_the_statement_before(command: Command) -> bool {
    matches!(
        command,
        Command::InitDb | Command::SetOption | Command::FieldList | Command::ProcessInfo
    )
}

/// Whether the server could read a table for a message, and so take a transaction's snapshot.
fn may_read(message: &[u8]) -> bool {
    let command = message
        .get(HEADER_BYTES)
        .map(|byte| Command::from_byte(*byte));
    !matches!(
        command,
        Some(Command::Ping | Command::Statistics | Command::StmtClose | Command::StmtSendLongData)
    )
}

/// Whether a message leaves alone what a client can ask about the statement before it: a connection
/// pool's ping must not come between a hit and `FOUND_ROWS()`.
fn leaves_diagnostics(message: &[u8]) -> bool {
    let command = message
        .get(HEADER_BYTES)
        .map(|byte| Command::from_byte(*byte));
    matches!(
        command,
        Some(
            Command::Ping
                | Command::Statistics
                | Command::StmtPrepare
                | Command::StmtClose
                | Command::StmtSendLongData
        )
    )
}
