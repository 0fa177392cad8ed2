//! From a message to what is done with it.
//!
//! `message -> command -> hit | miss -> analysis -> fill | write | bypass`
//!
//! A hit needs no analysis: the key is the text itself, and only analysed statements get in.

use std::sync::Arc;
use std::time::Instant;

use remora_cache::{Entry, InvalidationReason, KeyRef, Scope, Unservable};
use remora_sql::{Dialect, Refusal, SessionEffect, Statement, Transaction, Writes};
use remora_wire::command::Expect;
use remora_wire::message::MessageWalker;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::{Capabilities, Command};

use super::exchange::{Exchange, Plan, Settling};
use super::fence::PlannedWrites;
use super::fill::Fill;
use super::prepared::{PreparedStatement, StatementId};
use super::state::Effects;
use super::{Ended, Session};
use crate::reason::{Bypass, Limit, Outcome};

/// What is to be done next in a session.
#[allow(
    clippy::large_enum_variant,
    reason = "one exists at a time, and boxing costs each miss"
)]
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
    /// The server must be asked for the session's settings; then the message is looked at again.
    LearnSettings,
    /// The server must run the statement last answered from memory, so that its diagnostics tell of
    /// it; then the message is looked at again.
    RepeatHit,
    /// A message was sent to the server: its answer must be relayed.
    Exchange(Exchange),
    /// The client leaves.
    Quit,
}

impl Step {
    /// Whether the message stays where it is, to be looked at again.
    pub(super) fn leaves_the_message(&self) -> bool {
        matches!(self, Step::LearnSettings | Step::RepeatHit)
    }
}

/// Where a statement is looked up.
#[derive(Debug, Clone, Copy)]
struct Place {
    scope: Scope,
    digest: u128,
}

/// An entry that was handed to the client's socket.
struct Sent {
    /// The length of its response.
    bytes: usize,
    /// The entry and how much of it was taken, if that wasn't all.
    rest: Option<(Arc<Entry>, usize)>,
}

/// What a look-up found.
enum Look {
    /// Nothing that can be of use.
    Nothing,
    /// An entry, and it was sent.
    Sent(Sent),
    /// An entry that may not be served now but perhaps later.
    NotNow(Unservable),
    /// An entry that may never be served again.
    Outdated(Arc<Entry>, InvalidationReason),
}

impl Session {
    /// Handles a complete message.
    pub(super) fn handle(&mut self, message: &[u8]) -> Result<Step, Ended> {
        let command = Command::from_byte(message.get(HEADER_BYTES).copied().unwrap_or_default());
        let body = message.get(HEADER_BYTES + 1..).unwrap_or_default();
        match command {
            Command::Query => self.handle_query(message, body),
            Command::StmtPrepare => self.handle_prepare(message, body),
            Command::StmtExecute | Command::StmtBulkExecute => {
                self.handle_execute(message, body, command)
            }
            Command::StmtClose => {
                if let Some(id) = statement_id(body) {
                    self.prepared.remove(id);
                }
                let outcome = Outcome::Bypass(Bypass::NotAQuery);
                self.forward(message, Plan::plain(command.expect()), outcome)
            }
            Command::Quit => {
                self.send(message)?;
                Ok(Step::Quit)
            }
            other => self.handle_other(message, other),
        }
    }

    /// Handles a message that is too long to be held: `start` is what there is of it.
    pub(super) fn handle_long(&mut self, start: &[u8], complete: bool) -> Result<Step, Ended> {
        let command = Command::from_byte(start.get(HEADER_BYTES).copied().unwrap_or_default());
        let body = start.get(HEADER_BYTES + 1..).unwrap_or_default();
        let mut plan = match command {
            Command::Query => self.plan_long_query(body),
            // A long preparation stays unknown, and counts as everything when it is executed.
            Command::StmtPrepare => Plan::plain(command.expect()),
            Command::StmtExecute | Command::StmtBulkExecute => self.plan_execution(body, command),
            other => Self::plan_other(other),
        };
        self.shared.metrics.rare.count_limit(Limit::StatementBytes);
        if !complete {
            let mut walker = MessageWalker::new();
            walker.feed(start);
            plan.rest = Some(walker);
        }
        self.forward(start, plan, Outcome::Bypass(Bypass::StatementTooLong))
    }

    fn plan_long_query(&self, start: &[u8]) -> Plan {
        let Some(dialect) = self.dialect() else {
            return Plan::unknown(Expect::Results);
        };
        let statement = remora_sql::analyse_prefix(start, dialect);
        Plan {
            effects: effects_of(&statement),
            writes: self.plan_writes(&statement.writes),
            ..Plan::plain(Expect::Results)
        }
    }

    fn handle_query(&mut self, message: &[u8], text: &[u8]) -> Result<Step, Ended> {
        let place = self.place_of(text);
        let began = Instant::now();
        if let Some(place) = place {
            match self.look_up(place, text, began)? {
                Look::Sent(sent) => return Ok(self.after_hit(text, sent, began)),
                Look::NotNow(why) => {
                    // Only reads without effects are ever stored, so it needs no analysis.
                    let outcome = Outcome::Bypass(Bypass::Unservable(why));
                    return self.forward(message, Plan::plain(Expect::Results), outcome);
                }
                Look::Outdated(entry, reason) => {
                    self.shared.store.remove_if_same(&entry, reason);
                }
                Look::Nothing => {}
            }
        }
        self.handle_miss(message, text, place, began)
    }

    /// Where the text is looked up, if it can be a `SELECT` and the session allows look-ups.
    fn place_of(&self, text: &[u8]) -> Option<Place> {
        if !may_be_select(text) {
            return None;
        }
        let scope = self.state.scope().ok()?;
        Some(Place {
            scope,
            digest: KeyRef { scope, text }.digest(),
        })
    }

    /// Looks a statement up and sends what is stored, if that may be served now.
    fn look_up(&self, place: Place, text: &[u8], began: Instant) -> Result<Look, Ended> {
        let shared = &*self.shared;
        let now_ms = shared.clock.to_ms(began);
        if now_ms.saturating_sub(self.server_contact_ms) > shared.limits.server_contact_ms_max {
            // Else the server would end a session that it hears nothing from.
            return Ok(Look::Nothing);
        }
        let key = KeyRef {
            scope: place.scope,
            text,
        };
        let look = shared.store.with(&key, place.digest, |entry| {
            match shared
                .timeline
                .check_tags(entry.as_of(), entry.tags(), now_ms)
            {
                Ok(()) => {
                    let response = entry.response();
                    let written = self.client.write_now(response)?;
                    let rest = (written < response.len()).then(|| (Arc::clone(entry), written));
                    Ok::<_, Ended>(Look::Sent(Sent {
                        bytes: response.len(),
                        rest,
                    }))
                }
                Err(why) => Ok(match why.invalidation() {
                    Some(reason) => Look::Outdated(Arc::clone(entry), reason),
                    None => Look::NotNow(why),
                }),
            }
        });
        look.unwrap_or(Ok(Look::Nothing))
    }

    fn after_hit(&mut self, text: &[u8], sent: Sent, began: Instant) -> Step {
        self.worker.metrics.count_hit(sent.bytes, began.elapsed());
        self.unseen_hit.clear();
        self.unseen_hit.extend_from_slice(text);
        match sent.rest {
            None => Step::Answered,
            Some((entry, written)) => Step::FinishHit { entry, written },
        }
    }

    /// A statement that memory doesn't answer.
    fn handle_miss(
        &mut self,
        message: &[u8],
        text: &[u8],
        place: Option<Place>,
        began: Instant,
    ) -> Result<Step, Ended> {
        let Some(statement) = self.analyse(text) else {
            let outcome = Outcome::Bypass(Bypass::DialectUnknown);
            return self.forward(message, Plan::unknown(Expect::Results), outcome);
        };
        if self.should_learn_settings(&statement) {
            return Ok(Step::LearnSettings);
        }
        if statement.diagnostics && !self.unseen_hit.is_empty() {
            return Ok(Step::RepeatHit);
        }
        let mut plan = Plan {
            effects: effects_of(&statement),
            writes: self.plan_writes(&statement.writes),
            looked_up: place.map(|_| began),
            ..Plan::plain(Expect::Results)
        };
        if turns_the_log_off(&statement, text) {
            plan.effects.session = SessionEffect::BinlogOff;
            plan.writes = PlannedWrites::Everything;
            plan.forgets = true;
        }
        let outcome = match self.plan_read(&statement, place, text) {
            Ok(fill) => {
                plan.fill = Some(fill);
                Outcome::Fill
            }
            Err(_) if plan.writes != PlannedWrites::Nothing => Outcome::Write,
            Err(why) => Outcome::Bypass(why),
        };
        self.forward(message, plan, outcome)
    }

    /// Plans to keep the statement's answer, or says why it can't be kept.
    fn plan_read(
        &mut self,
        statement: &Statement,
        place: Option<Place>,
        text: &[u8],
    ) -> Result<Fill, Bypass> {
        let select = statement
            .cacheable
            .as_ref()
            .map_err(|why| Bypass::Statement(*why))?;
        let scope = self.state.scope()?;
        // Text that a look-up passed over for its first letter is no `SELECT`.
        let place = place.ok_or(Bypass::Statement(Refusal::NotSelect))?;
        debug_assert_eq!(scope, place.scope);
        self.plan_fill(place.scope, place.digest, select, text)
    }

    fn should_learn_settings(&self, statement: &Statement) -> bool {
        self.state.wants_settings()
            && !statement.diagnostics
            && self.shared.is_caching()
            && (statement.cacheable.is_ok() || matches!(statement.writes, Writes::Tables(_)))
    }

    /// Analyses text as the server reads this session's, as far as that is known. What the default
    /// dialect can't read right, it reads as something that writes everything. `None`: the server
    /// reads a language that Remora doesn't.
    fn analyse(&self, text: &[u8]) -> Option<Statement> {
        Some(remora_sql::analyse(text, self.dialect()?))
    }

    fn dialect(&self) -> Option<Dialect> {
        self.state
            .fingerprint()
            .map_or(Some(Dialect::default()), |known| known.dialect)
    }

    fn handle_prepare(&mut self, message: &[u8], text: &[u8]) -> Result<Step, Ended> {
        let outcome = Outcome::Bypass(Bypass::NotAQuery);
        let Some(statement) = self.analyse(text) else {
            // Unknown when it is executed, and counted as everything.
            return self.forward(message, Plan::plain(Expect::Prepared), outcome);
        };
        if self.should_learn_settings(&statement) {
            return Ok(Step::LearnSettings);
        }
        let mut effects = effects_of(&statement);
        if turns_the_log_off(&statement, text) {
            effects.session = SessionEffect::BinlogOff;
        }
        let prepared = PreparedStatement {
            effects,
            writes: self.plan_writes(&statement.writes),
            diagnostics: statement.diagnostics,
        };
        let settling = Settling::Prepared(Box::new(prepared));
        let plan = Plan {
            settling,
            ..Plan::plain(Expect::Prepared)
        };
        self.forward(message, plan, outcome)
    }

    fn handle_execute(
        &mut self,
        message: &[u8],
        body: &[u8],
        command: Command,
    ) -> Result<Step, Ended> {
        let known = statement_id(body).and_then(|id| self.prepared.get(id));
        if known.is_some_and(|statement| statement.diagnostics) && !self.unseen_hit.is_empty() {
            return Ok(Step::RepeatHit);
        }
        let plan = self.plan_execution(body, command);
        let outcome = match plan.writes {
            PlannedWrites::Nothing => Outcome::Bypass(Bypass::PreparedStatement),
            _ => Outcome::Write,
        };
        self.forward(message, plan, outcome)
    }

    fn plan_execution(&self, body: &[u8], command: Command) -> Plan {
        let known = statement_id(body).and_then(|id| self.prepared.get(id));
        match known {
            Some(statement) => Plan {
                effects: statement.effects.clone(),
                writes: statement.writes.clone(),
                forgets: statement.effects.session == SessionEffect::BinlogOff,
                ..Plan::plain(command.expect())
            },
            None => Plan::unknown(command.expect()),
        }
    }

    fn handle_other(&mut self, message: &[u8], command: Command) -> Result<Step, Ended> {
        let plan = Self::plan_other(command);
        self.forward(message, plan, Outcome::Bypass(Bypass::NotAQuery))
    }

    fn plan_other(command: Command) -> Plan {
        let plan = Plan::plain(command.expect());
        let rollback = Effects {
            session: SessionEffect::None,
            transaction: Transaction::Rollback,
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
            Command::ResetConnection => Plan {
                effects: rollback,
                settling: Settling::Reset,
                ..plan
            },
            Command::ChangeUser => Plan {
                effects: rollback,
                ..plan
            },
            Command::SetOption => Plan {
                settling: Settling::OptionChanged,
                ..plan
            },
            Command::Other(_) => Plan::unknown(command.expect()),
            _ => plan,
        }
    }

    /// Raises the fence that the plan needs, then sends the message.
    pub(super) fn forward(
        &mut self,
        message: &[u8],
        plan: Plan,
        outcome: Outcome,
    ) -> Result<Step, Ended> {
        if !matches!(outcome, Outcome::Fill) {
            self.worker.metrics.count(outcome);
        }
        let wrote = self.resolve_writes(&plan.writes);
        let fence = self.raise_fence(&plan.effects, wrote.as_ref());
        if !leaves_diagnostics(message) {
            self.unseen_hit.clear();
        }
        let epoch = self.shared.privilege_epoch();
        self.send(message)?;
        Ok(Step::Exchange(Exchange::new(plan, wrote, fence, epoch)))
    }

    /// Sends to the server what its socket takes, and keeps the rest for the exchange.
    fn send(&mut self, message: &[u8]) -> Result<(), Ended> {
        self.server_contact_ms = self.shared.clock.now_ms();
        let written = self.server.write_now(message)?;
        self.outbox.extend_from_slice(&message[written..]);
        Ok(())
    }

    /// The protocol features in use.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.state.capabilities()
    }
}

fn effects_of(statement: &Statement) -> Effects {
    Effects {
        session: statement.session,
        transaction: statement.transaction,
    }
}

/// Whether a message leaves alone what a client can ask about the statement before it: a connection pool's
/// ping must not come between a hit and `FOUND_ROWS()`.
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

fn statement_id(body: &[u8]) -> Option<StatementId> {
    body.first_chunk()
        .map(|bytes| StatementId(u32::from_le_bytes(*bytes)))
}

/// Whether text can be a `SELECT` at all, by its first letter: only such text is looked up.
fn may_be_select(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(
        first,
        Some(b's' | b'S' | b'w' | b'W' | b'(' | b'/' | b'-' | b'#')
    )
}

/// Whether a statement that wasn't understood mentions `sql_log_bin`: several statements in one,
/// text to be executed. Then its changes, and the session's from here on, may leave no trace.
fn turns_the_log_off(statement: &Statement, text: &[u8]) -> bool {
    const NAME: &[u8] = b"sql_log_bin";
    matches!(statement.session, SessionEffect::Unknown(_))
        && text
            .windows(NAME.len())
            .any(|window| window.eq_ignore_ascii_case(NAME))
}
