//! Prepared statements of the binary protocol: preparing, executing, closing.
//!
//! An execution is looked up by the text that was prepared, the types and the values of its
//! parameters, if the session's settings are those under which it was prepared. A client that
//! prepares, executes and closes finds the result that another has left.

use std::sync::Arc;

use remora_cache::{KeyRef, Tag};
use remora_engine::reason::{Bypass, Limit, Outcome, Stage};
use remora_engine::session::BUFFER_BYTES_KEPT;
use remora_engine::session::consequences::may_be_unlogged;
use remora_engine::session::found_rows::FoundRows;
use remora_engine::session::planned_writes::PlannedWrites;
use remora_engine::session::prepared::{
    NotKept, PreparedKind, PreparedRead, PreparedStatement, StatementId,
};
use remora_engine::session::state::{Effects, UnseenCode};
use remora_upstream::clock::Instant;
use remora_wire::command::ResponseKind;
use remora_wire::packet::{HEADER_BYTES, put_message};
use remora_wire::{Capabilities, Command};

use super::dispatch::{Prerequisite, Step};
use super::exchange::{Executed, OnSuccess, Plan, Relay};
use super::fill::Read;
use super::look_up::{Look, Place};
use super::types::{Namer, Typed};
use super::{Ended, Session};

/// Bytes of a statement's number at the start of a message's body.
const ID_BYTES: usize = 4;
/// `COM_STMT_CLOSE`.
const CLOSE: u8 = 0x19;

impl Session {
    pub(super) fn handle_prepare(&mut self, message: &[u8], text: &[u8]) -> Result<Step, Ended> {
        let outcome = Outcome::Bypass(Bypass::NotAQuery);
        let Some(dialect) = self.dialect() else {
            // Unknown when it is executed, and counted as everything.
            self.prepared.is_not_noted(may_be_unlogged(text));
            return self.forward(message, Plan::plain(ResponseKind::Prepared), outcome);
        };
        let statement = self.analyse_prepared(text, dialect);
        if self.should_learn_settings(&statement) {
            return Ok(Step::Requires(Prerequisite::LearnSettings));
        }
        let consequences = self.consequences(&statement, text);
        let mentions = self.mentions_to_keep(&statement, text, dialect);
        let mut stripped = self.worker.key_text.take();
        let key = self.key_text(text, &mut stripped);
        let kind = match (statement.cacheable, self.state.fingerprint()) {
            (Err(why), _) => PreparedKind::other(Bypass::Statement(why)),
            (Ok(select), _) if select.counts_found_rows => {
                PreparedKind::other(Bypass::Statement(remora_sql::Refusal::CalcFoundRows))
            }
            (Ok(_), None) => {
                let why = self.state.scope().err();
                PreparedKind::other(why.unwrap_or(Bypass::SettingsUnknown))
            }
            (Ok(select), Some(fingerprint)) => PreparedKind::Read(PreparedRead::new(
                key,
                select,
                fingerprint.clone(),
                self.shared.timeline.as_of(),
            )),
        };
        self.worker.key_text.set(stripped);
        let prepared = PreparedStatement {
            consequences,
            mentions,
            diagnostics: statement.diagnostics,
            found_rows: FoundRows::after(text),
            asks_for_found_rows: statement.diagnostics && FoundRows::is_asked_for_alone(text),
            kind,
            label: self.label_of(text, dialect),
        };
        let plan = Plan {
            effects: Effects {
                may_load_routine: prepared.consequences.effects.may_load_routine,
                ..Effects::NONE
            },
            on_success: OnSuccess::Prepared(Box::new(prepared)),
            ..Plan::plain(ResponseKind::Prepared)
        };
        self.unreplayed_hit.prepares(&message[HEADER_BYTES..]);
        self.forward(message, plan, outcome)
    }

    pub(super) fn handle_execute(
        &mut self,
        message: &[u8],
        body: &[u8],
        command: Command,
    ) -> Result<Step, Ended> {
        let Some(id) = self.statement_meant(body) else {
            if self.should_ask_about_log() {
                return Ok(Step::Requires(Prerequisite::LearnSettings));
            }
            self.trace_execution(Stage::Key, None);
            let plan = self.plan_unknown_execution(command.response_kind_with(body));
            return self.forward(message, plan, Outcome::Write);
        };
        if let Some(step) = self.before_execution(id) {
            return Ok(step);
        }
        let began = Instant::now();
        let mut key = std::mem::take(&mut self.key);
        let step = match self.look_up_by(id, &body[ID_BYTES..], command, &mut key) {
            Ok(place) => self.execute_placed(message, id, place, &key, began),
            Err(why) => {
                let outcome = (Outcome::Bypass(why), began);
                self.execute_on_server(message, id, command, outcome)
            }
        };
        key.clear();
        key.shrink_to(BUFFER_BYTES_KEPT);
        self.key = key;
        step
    }

    /// What must be done before an execution can be judged.
    fn before_execution(&self, id: StatementId) -> Option<Step> {
        let statement = self.prepared.get(id)?;
        if statement.diagnostics && !self.unreplayed_hit.is_none() {
            return Some(Step::Requires(Prerequisite::RepeatHit));
        }
        if statement.asks_for_found_rows && self.found_rows.is_some() {
            return Some(Step::Requires(Prerequisite::SetFoundRows));
        }
        let asks = statement.read().is_ok() && self.wants_settings() && self.shared.is_caching();
        let consequences = &statement.consequences;
        let doubts_log =
            consequences.writes != PlannedWrites::Nothing && self.should_ask_about_log();
        let asks_all_the_same = || {
            !statement.diagnostics
                && (self.should_recount_tables()
                    || self.should_ask_what_ran()
                    || self.must_ask_before_code(|| self.code_basis_of(statement)))
        };
        if asks || doubts_log || asks_all_the_same() {
            return Some(Step::Requires(Prerequisite::LearnSettings));
        }
        self.before_what_may_ask(consequences.effects.session)
            .map(Step::Requires)
    }

    /// Where an execution is looked up, and the key by which; or why it isn't.
    fn look_up_by(
        &mut self,
        id: StatementId,
        body: &[u8],
        command: Command,
        key: &mut Vec<u8>,
    ) -> Result<Place, Bypass> {
        let capabilities = self.capabilities();
        let server = self.check_server();
        let binds_transaction = self.binds_transaction();
        let read = self.prepared.lookup(id)?;
        if command != Command::StmtExecute {
            return Err(Bypass::PreparedStatement);
        }
        let Some(execution) = read.execution(body, capabilities) else {
            return Err(Bypass::PreparedParameters);
        };
        let read = if read.names_others(&execution) {
            self.complete_unreplayed_hit(id);
            self.prepared.lookup(id)?
        } else {
            read
        };
        if read.name_types(&execution) && binds_transaction {
            // What memory has answered may have to be run again, under the types of before.
            return Err(Bypass::PreparedParameters);
        }
        let scope = self.state.binary_scope()?;
        server?;
        let now = self.state.fingerprint().map(|now| now.id);
        if now != Some(read.fingerprint.id) || read.types_were_named_elsewhere(&execution) {
            return Err(Bypass::PreparedElsewhere);
        }
        let placed = read.put_key(&execution, &self.shared.timeline, key);
        if placed == Err(Bypass::PreparedBeforeDefinition) {
            self.want_definitions_seen();
        }
        placed?;
        let digest = KeyRef { scope, text: key }.digest();
        Ok(Place { scope, digest })
    }

    /// A statement was prepared before a definition changed. When the server has prepared it again,
    /// only a newer watermark tells that this was after the change.
    fn want_definitions_seen(&self) {
        let shared = &self.shared;
        if shared
            .timeline
            .needs_fresher_watermark(&[Tag::any_definition()])
        {
            shared.upstream.wake();
        }
    }

    fn execute_placed(
        &mut self,
        message: &[u8],
        id: StatementId,
        place: Place,
        key: &[u8],
        began: Instant,
    ) -> Result<Step, Ended> {
        match self.look_up(place, key, message.len(), began)? {
            Look::Sent(sent) => self.after_hit(&message[HEADER_BYTES..], Some(id), sent, began),
            Look::NeedsSnapshot(label) => {
                self.begins_with(label);
                Ok(Step::Requires(Prerequisite::MakeSnapshot))
            }
            Look::NotNow(_, why) if let Some(snapshot) = self.should_await_proof(why) => {
                Ok(Step::Requires(Prerequisite::AwaitProof(snapshot)))
            }
            Look::NotNow(_, why) => {
                self.mark(Stage::Check);
                let outcome = Outcome::Bypass(Bypass::Unservable(why));
                self.execute_on_server(message, id, Command::StmtExecute, (outcome, began))
            }
            Look::Outdated(entry, reason) => {
                self.drop_outdated(&entry, reason);
                self.fill_execution(message, id, place, key, began)
            }
            Look::Nothing => self.fill_execution(message, id, place, key, began),
        }
    }

    /// An execution that memory doesn't answer but may keep.
    fn fill_execution(
        &mut self,
        message: &[u8],
        id: StatementId,
        place: Place,
        key: &[u8],
        began: Instant,
    ) -> Result<Step, Ended> {
        let Some(typed) = self.with_types(message, id, Command::StmtExecute) else {
            return Ok(Step::Requires(Prerequisite::DeliverTypes(id)));
        };
        if self.binds_transaction() {
            return Ok(Step::Requires(Prerequisite::OpenTransaction));
        }
        if let Some(first) = self.required_before_sending(message) {
            return Ok(Step::Requires(first));
        }
        self.trace_execution(Stage::LookUp, Some(id));
        self.note_fills_ended(place);
        let mut plan = self.plan_unsent(&typed, id, Command::StmtExecute);
        plan.looked_up = Some(began);
        let capabilities = self.capabilities();
        let read = self.prepared.get(id).and_then(|known| {
            let read = known.read().ok()?;
            let body = message.get(HEADER_BYTES + 1 + ID_BYTES..)?;
            let execution = read.execution(body, capabilities)?;
            Some((
                Arc::clone(&read.select),
                read.bound_values(&execution),
                Arc::clone(&read.text),
                known.label,
            ))
        });
        let fill = read.map(|(select, bound, text, label)| {
            let read = Read {
                select: &select,
                bound: &bound,
                statement: &text,
                label,
            };
            let worth_storing = self.is_worth_storing(label, place, began);
            self.plan_fill(place, &read, key, worth_storing)
        });
        let outcome = match fill {
            Some(Ok(fill)) => {
                plan.rest_on_tables(|| fill.as_of_tables());
                plan.relay = Relay::Keep(fill);
                Outcome::Fill
            }
            Some(Err(why)) => {
                if why == Bypass::NotWorthStoring
                    && let Some(read) = self.prepared.read(id)
                {
                    plan.rest_on_tables(|| self.tables_of_unstored(&read.select, None));
                }
                Outcome::Bypass(why)
            }
            None => Outcome::Bypass(Bypass::PreparedStatement),
        };
        if let Some(first) = self.take_look_again() {
            return Ok(Step::Requires(first));
        }
        self.note_sent(&typed.message, id);
        self.forward(&typed.message, plan, outcome)
    }

    fn execute_on_server(
        &mut self,
        message: &[u8],
        id: StatementId,
        command: Command,
        (outcome, began): (Outcome, Instant),
    ) -> Result<Step, Ended> {
        let Some(typed) = self.with_types(message, id, command) else {
            return Ok(Step::Requires(Prerequisite::DeliverTypes(id)));
        };
        if self.binds_transaction() {
            return Ok(Step::Requires(Prerequisite::OpenTransaction));
        }
        if let Some(first) = self.required_before_sending(message) {
            return Ok(Step::Requires(first));
        }
        self.trace_execution(Stage::Key, Some(id));
        let mut plan = self.plan_execution(&typed, id, command);
        plan.looked_up = Some(began);
        // By what its text says, not by what code might do.
        let writes = self
            .prepared
            .get(id)
            .map(|known| &known.consequences.writes);
        let outcome = match writes {
            Some(PlannedWrites::Nothing) => outcome,
            _ => Outcome::Write,
        };
        self.forward(&typed.message, plan, outcome)
    }

    /// What an execution on the server does. The message, or what there is of it, will be sent: a
    /// transaction that memory has answered was opened before, or the message is refused.
    pub(super) fn plan_execution(
        &mut self,
        typed: &Typed<'_>,
        id: StatementId,
        command: Command,
    ) -> Plan {
        let plan = self.plan_unsent(typed, id, command);
        self.note_sent(&typed.message, id);
        plan
    }

    /// The same for a statement that isn't known.
    pub(super) fn plan_unknown_execution(&self, expect: ResponseKind) -> Plan {
        Plan {
            forgets: self.prepared.has_lost_unlogged(),
            ..Plan::unknown(expect)
        }
    }

    /// The same for one that isn't certain to be sent.
    fn plan_unsent(&mut self, typed: &Typed<'_>, id: StatementId, command: Command) -> Plan {
        let message = &typed.message[..];
        let capabilities = self.capabilities();
        let expect =
            command.response_kind_with(message.get(HEADER_BYTES + 1..).unwrap_or_default());
        let Some(statement) = self.prepared.get(id) else {
            return self.plan_unknown_execution(expect);
        };
        let mut plan = Plan {
            counted: Some((statement.label, Instant::now())),
            ..Plan::with(statement.consequences.clone(), expect)
        };
        let code = self.code_basis_of(statement);
        if code.is_none() || self.state.doubts_next_transaction() {
            let hidden_code = &self.shared.upstream.catalogue.hidden_code;
            if code.is_none() && hidden_code.is_named(|| statement.mentions.clone()) {
                plan.effects.unseen_code = UnseenCode::Known;
            }
            let select = statement.read().ok().map(|read| &*read.select);
            plan.effects.own_transaction = self.own_transaction(None, &plan.writes, select);
        }
        // Else its names may mean tables in another schema.
        let now = self.state.fingerprint().map(|now| now.id);
        let read = statement.read().ok();
        let read = read.filter(|read| now == Some(read.fingerprint.id));
        let under_others = read.is_none();
        plan.effects.snapshot = self.evidence_of(read.map(|read| &*read.select));
        plan.rest_on(code);
        let at = self.shared.timeline.as_of();
        let body = message
            .get(HEADER_BYTES + 1 + ID_BYTES..)
            .unwrap_or_default();
        if let Some(statement) = self.prepared.get_mut(id) {
            let mut names_types = false;
            if command == Command::StmtExecute {
                let bound;
                (bound, names_types) = statement.bind(body, capabilities);
                plan.writes.bind(&bound);
            } else {
                // Many executions in one.
                statement.forget_write_types();
            }
            plan.on_success = OnSuccess::Executed(Executed {
                id,
                named: typed.named(names_types),
                at,
                under_others,
            });
        }
        if let Some(read) = self.prepared.read_mut(id) {
            let execution = read.execution(body, capabilities);
            let names_types = execution.is_some_and(|execution| execution.types().is_some());
            plan.on_success = OnSuccess::Executed(Executed {
                id,
                named: typed.named(names_types),
                at,
                under_others,
            });
        }
        plan
    }

    /// An execution is going to the server.
    fn note_sent(&mut self, message: &[u8], id: StatementId) {
        let capabilities = self.capabilities();
        let body = message
            .get(HEADER_BYTES + 1 + ID_BYTES..)
            .unwrap_or_default();
        if let Some(read) = self.prepared.read_mut(id) {
            let execution = read.execution(body, capabilities);
            read.sent(execution.as_ref(), self.state.fingerprint());
        }
    }

    /// The statement that a message's body means, if that can be told.
    pub(super) fn statement_meant(&self, body: &[u8]) -> Option<StatementId> {
        let id = StatementId(u32::from_le_bytes(*body.first_chunk()?));
        // Only MariaDB leaves this flag out.
        let is_mariadb = !self.capabilities().has(Capabilities::MYSQL);
        self.prepared.resolve(id, is_mariadb)
    }

    pub(super) fn handle_close(&mut self, message: &[u8], body: &[u8]) -> Result<Step, Ended> {
        let outcome = Outcome::Bypass(Bypass::NotAQuery);
        if let Some(id) = self.statement_meant(body) {
            self.complete_unreplayed_hit(id);
            self.prepared.remove(id);
            if self.unreplayed_hit.puts_off_closing(id) {
                self.worker.metrics.count(outcome);
                self.trace = None;
                return Ok(Step::Answered);
            }
        }
        self.forward(message, Plan::plain(ResponseKind::Nothing), outcome)
    }

    /// Closes a statement whose closing was put off.
    pub(super) fn close_late(&mut self, id: StatementId) -> Result<(), Ended> {
        let mut message = Vec::with_capacity(HEADER_BYTES + 1 + ID_BYTES);
        let [a, b, c, d] = id.0.to_le_bytes();
        put_message(&mut message, 0, &[CLOSE, a, b, c, d]);
        self.send(&message)
    }

    /// Whether the message is a value for an execution to come, and memory has answered the last
    /// execution of the same statement. Should the server have to run that one after all, it would
    /// take the value: so it must run it before.
    pub(super) fn would_be_taken_by_hit(&self, command: Command, body: &[u8]) -> bool {
        command == Command::StmtSendLongData
            && self
                .statement_meant(body)
                .is_some_and(|id| self.unreplayed_hit.executes(id))
    }

    pub(super) fn handle_long_data(&mut self, body: &[u8]) {
        if let Some(id) = self.statement_meant(body) {
            self.prepared.sends_long_data(id);
        }
    }

    /// A preparation was answered.
    pub(super) fn prepared_as(
        &mut self,
        id: Option<(StatementId, u16)>,
        statement: PreparedStatement,
    ) {
        self.unreplayed_hit.was_prepared(id.is_some());
        let Some((id, parameters)) = id else {
            self.prepared.none_prepared();
            return;
        };
        let limit = match self.prepared.insert(id, parameters, statement) {
            Ok(()) => return,
            Err(NotKept::Statement) => Limit::PreparedStatements,
            Err(NotKept::Text) => Limit::PreparedTexts,
        };
        self.shared.metrics.rare.count_limit(limit);
    }

    /// An execution was answered by the server.
    pub(super) fn executed(&mut self, executed: &Executed, succeeded: bool) {
        // A message that failed may have done so before the server read the types.
        let doubtful = executed.named.filter(|_| !succeeded);
        if doubtful.is_some()
            && let Some(statement) = self.prepared.get_mut(executed.id)
        {
            statement.forget_write_types();
        }
        let Some(read) = self.prepared.read_mut(executed.id) else {
            return;
        };
        read.executed(executed.at.filter(|_| succeeded), executed.under_others);
        match doubtful {
            None => {}
            Some(Namer::Client) => read.forget_types(),
            // To the client it is long since that the server got them.
            Some(Namer::Remora) => read.server_may_lack_types(),
        }
    }
}
