//! `COM_QUERY`: a statement as text.

use std::ops::Deref;
use std::rc::Rc;

use remora_engine::key::{Label, may_be_select};
use remora_engine::reason::{Bypass, Outcome, Stage};
use remora_engine::session::consequences::Consequences;
use remora_engine::session::found_rows::FoundRows;
use remora_engine::session::planned_writes::PlannedWrites;
use remora_engine::session::state::UnseenCode;
use remora_engine::settings::STATEMENTS_BYTES_MAX;
use remora_engine::settings::TextCharset;
use remora_engine::tags::StringConversion;
use remora_sql::{
    Ambiguity, Dialect, EmulatedStatement, Refusal, SessionEffect, Statement, StatementKind,
    Transaction, UnknownEffect, Writes,
};
use remora_upstream::clock::Instant;
use remora_wire::command::ResponseKind;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::{Capabilities, attributes};

use super::dispatch::{Prerequisite, Step};
use super::exchange::{Plan, Relay};
use super::fill::{Fill, Read};
use super::look_up::{Look, Place};
use super::{Ended, Session};
use crate::config::Storing;
use crate::digests::{KnownAnalysis, KnownRead, Recognised, Room, is_time_for_sample};

/// A statement that memory doesn't answer.
#[derive(Clone, Copy)]
pub(super) struct Planned<'t> {
    /// Its text.
    pub text: &'t [u8],
    /// How the server reads it.
    pub dialect: Dialect,
    /// What it is looked up by.
    pub key: &'t [u8],
    /// Where, if it is.
    pub place: Option<Place>,
    /// When that began.
    pub began: Instant,
    /// What it is counted under.
    pub label: Label,
    /// Whether its result is worth storing; if not, why.
    pub worth_storing: Result<(), Bypass>,
    /// What is known of reads like it.
    pub known: Option<&'t KnownRead>,
}

/// What is known of a statement that memory doesn't answer.
pub(super) struct Analysed {
    /// What it is counted under, if that is known already.
    label: Option<Label>,
    pub worth_storing: Result<(), Bypass>,
    analysis: Analysis,
}

#[allow(
    clippy::large_enum_variant,
    reason = "it stays where it is made: boxing would cost each miss an allocation"
)]
enum Analysis {
    Whole(Statement),
    /// Without values: the result isn't stored.
    Template(Rc<KnownRead>),
}

impl Analysed {
    /// What is known of reads like it.
    pub(super) fn known(&self) -> Option<&KnownRead> {
        match &self.analysis {
            Analysis::Whole(_) => None,
            Analysis::Template(known) => Some(known),
        }
    }
}

impl Deref for Analysed {
    type Target = Statement;

    fn deref(&self) -> &Statement {
        match &self.analysis {
            Analysis::Whole(statement) => statement,
            Analysis::Template(known) => known.template.of_every_row(),
        }
    }
}

impl Session {
    pub(super) fn plan_long_query(&self, start: &[u8]) -> Plan {
        let Some(start) = self.statement_text(start) else {
            return Plan::unknown(ResponseKind::Results);
        };
        let Some(dialect) = self.dialect() else {
            return Plan::with(Consequences::of_unread(start), ResponseKind::Results);
        };
        let statement = remora_sql::analyse_prefix(start, dialect);
        let consequences = Consequences::of_start(&statement, start, |name| self.qualify(name));
        Plan::with(consequences, ResponseKind::Results)
    }

    pub(super) fn handle_query(&mut self, message: &[u8], body: &[u8]) -> Result<Step, Ended> {
        let Some(text) = self.statement_text(body) else {
            if self.should_ask_about_log() {
                return Ok(Step::Requires(Prerequisite::LearnSettings));
            }
            self.trace_text(Stage::Key, None);
            return self.forward(
                message,
                Plan::unknown(ResponseKind::Results),
                Outcome::Write,
            );
        };
        let mut stripped = self.worker.key_text.take();
        let key = self.key_text(text, &mut stripped);
        let step = self.handle_text(message, text, key);
        self.worker.key_text.set(stripped);
        step
    }

    /// What a statement is looked up by: its text, or what is put into `stripped`. What can't be a
    /// `SELECT` isn't read for that.
    pub(super) fn key_text<'t>(&self, text: &'t [u8], stripped: &'t mut Vec<u8>) -> &'t [u8] {
        let differs = self.state.strips_comments()
            && may_be_select(text)
            && remora_sql::may_differ_from_key_text(text)
            && self
                .dialect()
                .is_some_and(|dialect| remora_sql::key_text(text, dialect, stripped));
        if differs { stripped } else { text }
    }

    /// A statement whose text is known, and what it is looked up by.
    fn handle_text(&mut self, message: &[u8], text: &[u8], key: &[u8]) -> Result<Step, Ended> {
        let place = self.place_of(key);
        let began = Instant::now();
        if let Some(place) = place {
            match self.look_up(place, key, message.len(), began)? {
                Look::Sent(sent) => {
                    return self.after_hit(&message[HEADER_BYTES..], None, sent, began);
                }
                Look::NotNow(..) | Look::NeedsSnapshot(_) if self.should_recount_tables() => {
                    return Ok(Step::Requires(Prerequisite::LearnSettings));
                }
                Look::NeedsSnapshot(label) => {
                    self.begins_with(label);
                    return Ok(Step::Requires(Prerequisite::MakeSnapshot));
                }
                Look::NotNow(_, why) if let Some(snapshot) = self.should_await_proof(why) => {
                    return Ok(Step::Requires(Prerequisite::AwaitProof(snapshot)));
                }
                Look::NotNow(label, why) => {
                    self.trace_text(Stage::Check, Some(text));
                    // Only reads without effects are ever stored, so it needs no analysis.
                    let outcome = Outcome::Bypass(Bypass::Unservable(why));
                    let plan = Plan {
                        looked_up: Some(began),
                        counted: Some((label, began)),
                        ..Plan::plain(ResponseKind::Results)
                    };
                    let plan = self.with_code_of_entry(plan, text);
                    let message = self.message_as_read(message);
                    return self.forward(&message, plan, outcome);
                }
                Look::Outdated(entry, reason) => {
                    self.drop_outdated(&entry, reason);
                }
                Look::Nothing => {}
            }
            // Before it is read: all of that comes twice to what must wait. What asks about a hit
            // may be answered from memory, too.
            if self.unreplayed_hit.is_none()
                && let Some(first) = self.required_before_sending(message)
            {
                return Ok(Step::Requires(first));
            }
            self.note_fills_ended(place);
        }
        self.handle_miss(message, text, key, place, began)
    }

    /// The text of a query, behind its attributes if it can have them; `None` if it can't be found.
    ///
    /// The attributes are no part of the key: only a loadable function can read them, and that
    /// makes a statement one that isn't kept.
    pub(super) fn statement_text<'b>(&self, body: &'b [u8]) -> Option<&'b [u8]> {
        if !self.capabilities().has(Capabilities::QUERY_ATTRIBUTES) {
            return Some(body);
        }
        attributes::statement_text(body).ok().map(|(_, text)| text)
    }

    /// A statement that memory doesn't answer.
    fn handle_miss(
        &mut self,
        message: &[u8],
        text: &[u8],
        key: &[u8],
        place: Option<Place>,
        began: Instant,
    ) -> Result<Step, Ended> {
        let looked_up = place.map_or(Stage::Key, |_| Stage::LookUp);
        self.trace_text(looked_up, Some(text));
        let Some(dialect) = self.dialect() else {
            if self.should_ask_about_log() {
                return Ok(Step::Requires(Prerequisite::LearnSettings));
            }
            let outcome = Outcome::Bypass(Bypass::DialectUnknown);
            let plan = Plan::with(Consequences::of_unread(text), ResponseKind::Results);
            return self.forward(message, plan, outcome);
        };
        let analysed = self.analyse_miss(text, dialect, place, began);
        let statement = &*analysed;
        let emulated = self.emulated_statement(statement, text, dialect);
        self.mark(Stage::Analysis);
        let asks_before_code = || {
            !statement.diagnostics
                && (self.should_ask_what_ran()
                    || self.must_ask_before_code(|| self.code_basis(statement, text, dialect)))
        };
        if self.should_learn_settings(statement)
            || self.should_learn_settings_for_set(statement, text)
            || asks_before_code()
        {
            return Ok(Step::Requires(Prerequisite::LearnSettings));
        }
        if statement.diagnostics && !self.unreplayed_hit.is_none() {
            let step = self.count_from_memory(text, began)?;
            return Ok(step.unwrap_or(Step::Requires(Prerequisite::RepeatHit)));
        }
        if statement.diagnostics && self.found_rows.is_some() && FoundRows::is_asked_for_alone(text)
        {
            return Ok(Step::Requires(Prerequisite::SetFoundRows));
        }
        if let Some(first) = self.before_what_may_ask(statement.session) {
            return Ok(Step::Requires(first));
        }
        if let Some(control) = statement.control
            && let Some(step) = self.control_early(control, message)?
        {
            return Ok(step);
        }
        if let Some(step) = self.defer_set(statement, message, text)? {
            return Ok(step);
        }
        if let Some(emulated) = &emulated
            && let Some(step) = self.forward_emulated(emulated, statement, text, dialect, began)
        {
            return step;
        }
        if let Some(first) = self.required_before_sending(message) {
            return Ok(Step::Requires(first));
        }
        if self.must_await_catalogue(statement) {
            return Ok(Step::Requires(Prerequisite::AwaitCatalogue));
        }
        let message = self.statement_as_read(message, statement);
        let asked = Planned {
            text,
            dialect,
            key,
            place,
            began,
            label: self.label_of_analysed(&analysed, text, dialect),
            worth_storing: analysed.worth_storing,
            known: analysed.known(),
        };
        let (mut plan, mut outcome) = self.plan_statement(statement, &asked);
        if let Some(first) = self.take_look_again() {
            return Ok(Step::Requires(first));
        }
        if let Some(fill) = self.fill_of_count(text, asked.label) {
            plan.relay = Relay::Keep(fill);
            outcome = Outcome::Fill;
        }
        if let Some(EmulatedStatement::Show(names)) = emulated {
            plan.relay = Relay::Merge(Box::new(names));
        } else if let Some(relay) = self.relay_of_set(statement, text) {
            plan.relay = relay;
        }
        self.forward(&message, plan, outcome)
    }

    /// What a statement will do, and what becomes of it.
    pub(super) fn plan_statement(
        &mut self,
        statement: &Statement,
        asked: &Planned<'_>,
    ) -> (Plan, Outcome) {
        let Planned {
            text,
            place,
            began,
            label,
            ..
        } = *asked;
        let consequences = self.consequences(statement, text);
        let mut plan = Plan {
            looked_up: place.map(|_| began),
            counted: Some((label, began)),
            ..Plan::with(consequences, ResponseKind::Results)
        };
        if self.settings_follow_from(statement, text, asked.dialect) {
            plan.effects.literal_set = Some(text.into());
        }
        // Before the tables are looked up, so that what becomes known of their views meanwhile is
        // found again when the answer comes.
        let code = self.code_basis(statement, text, asked.dialect);
        let outcome = match self.plan_read(statement, asked) {
            Ok(fill) => {
                plan.relay = Relay::Keep(fill);
                Outcome::Fill
            }
            Err(_) if plan.writes != PlannedWrites::Nothing => Outcome::Write,
            Err(why) => Outcome::Bypass(why),
        };
        if code.is_none() || self.state.doubts_next_transaction() {
            if code.is_none() && self.names_known_code(statement, text, asked.dialect) {
                plan.effects.unseen_code = UnseenCode::Known;
            }
            let select = statement.cacheable.as_ref().ok();
            plan.effects.own_transaction =
                self.own_transaction(Some(statement.kind), &plan.writes, select);
        }
        plan.effects.snapshot = self.evidence_of(statement.cacheable.as_ref().ok());
        plan.rest_on(code);
        match (&plan.relay, &statement.cacheable) {
            (Relay::Keep(fill), _) => {
                let as_of = fill.as_of_tables();
                plan.rest_on_tables(|| as_of);
            }
            (_, Ok(select)) if asked.worth_storing.is_err() => {
                plan.rest_on_tables(|| self.tables_of_unstored(select, asked.known));
            }
            _ => {}
        }
        (plan, outcome)
    }

    /// Plans to keep the statement's answer, or says why it can't be kept.
    fn plan_read(&mut self, statement: &Statement, asked: &Planned<'_>) -> Result<Fill, Bypass> {
        let select = statement
            .cacheable
            .as_ref()
            .map_err(|why| Bypass::Statement(*why))?;
        let scope = self.state.scope()?;
        self.check_server()?;
        let is_alone = self.state.is_certainly_outside_transaction();
        if select.counts_found_rows && (!is_alone || self.warns_of_found_rows()) {
            return Err(Bypass::Statement(Refusal::CalcFoundRows));
        }
        // Text that a look-up passed over for its first letter is no `SELECT`.
        let place = asked.place.ok_or(Bypass::Statement(Refusal::NotSelect))?;
        debug_assert_eq!(scope, place.scope);
        let read = Read {
            select,
            bound: &[],
            statement: asked.key,
            label: asked.label,
        };
        self.plan_fill(place, &read, asked.key, asked.worth_storing)
    }

    /// Whether a read's result is worth storing. Says nothing about whether it may be stored.
    pub(super) fn is_worth_storing(
        &self,
        label: Label,
        place: Place,
        began: Instant,
    ) -> Result<(), Bypass> {
        let shared = &self.shared;
        let now_ms = shared.clock.to_ms(began);
        let should_store = match shared.limits.storing {
            Storing::Always => true,
            Storing::Sample => is_time_for_sample(now_ms),
            Storing::Adaptive => {
                let (digests, room) = (&self.worker.digests, self.room_for(place));
                digests.should_store(&shared.digests, label, now_ms, room)
            }
        };
        should_store.then_some(()).ok_or(Bypass::NotWorthStoring)
    }

    /// Whether there is room for one more result.
    pub(super) fn room_for(&self, place: Place) -> Room {
        if self.shared.store.is_full(place.digest) {
            Room::Full
        } else {
            Room::Free
        }
    }

    /// Whether the server is asked for the session's settings first: for a look-up, to know what a
    /// statement writes, or what it is at all.
    pub(super) fn should_learn_settings(&self, statement: &Statement) -> bool {
        if statement.diagnostics {
            return false;
        }
        if self.should_recount_tables() {
            return true;
        }
        // Before a transaction rather than in it, where the question might be noticed.
        let may_read = statement.cacheable.is_ok() || statement.transaction == Transaction::Begin;
        if !self.state.lacks_settings() {
            return may_read && self.wants_settings() && self.shared.is_caching();
        }
        if statement.writes != Writes::Nothing && self.should_ask_about_log() {
            return true;
        }
        let may_count_tables = [StatementKind::Ddl, StatementKind::Flush].contains(&statement.kind);
        if may_count_tables && self.state.wants_tables_created() {
            // Afterwards the server could perhaps no longer tell.
            return self.shared.upstream.settings_query().is_some();
        }
        if is_ambiguous(statement) {
            // Also where nothing is cached now: else the session would pass through when something
            // is.
            return self.shared.upstream.settings_query().is_some();
        }
        let passes_through = self.state.passes_through();
        self.shared.is_caching()
            && match &statement.writes {
                Writes::Tables(_) => passes_through || self.state.wants_settings(),
                _ => self.state.wants_settings() && may_read,
            }
    }

    /// What comes before a statement that may ask about the one before it, though its text doesn't
    /// show that: it runs a procedure, or can't be read. It may also leave the count of found rows
    /// as it was. Functions aren't taken for such: that would run each hit before them twice.
    pub(super) fn before_what_may_ask(&self, session: SessionEffect) -> Option<Prerequisite> {
        let function = SessionEffect::Unknown(UnknownEffect::StoredFunction);
        let may_ask = matches!(session, SessionEffect::Unknown(_)) && session != function;
        if !may_ask {
            None
        } else if !self.unreplayed_hit.is_none() {
            Some(Prerequisite::RepeatHit)
        } else {
            self.must_set_found_rows_for_code()
                .then_some(Prerequisite::SetFoundRows)
        }
    }

    /// What a statement is counted under. One of which it isn't certain where its values end has no
    /// digest, so that nothing of a value can stand in one.
    pub(super) fn label_of(&self, text: &[u8], dialect: Dialect) -> Label {
        let recognised = self.recognise(text, dialect);
        recognised.map_or(Label::OTHERS, |recognised| recognised.label)
    }

    /// What is known of a statement by its text without values; `None` where it isn't certain what
    /// its values are.
    fn recognise(&self, text: &[u8], dialect: Dialect) -> Option<Recognised> {
        let shared = &self.shared;
        let recognise = || {
            let digests = &self.worker.digests;
            digests.recognise(&shared.digests, text, dialect, &shared.clock)
        };
        self.tells_values_apart(text).then(recognise)
    }

    /// Analyses a statement that memory doesn't answer, and decides whether its result is worth
    /// storing. If an earlier one with the same skeleton was analysed, that will mostly do.
    pub(super) fn analyse_miss(
        &self,
        text: &[u8],
        dialect: Dialect,
        place: Option<Place>,
        began: Instant,
    ) -> Analysed {
        let may_write = may_write_rows(text);
        let recognised = if may_write || place.is_some() && may_be_read(text) {
            self.recognise(text, dialect)
        } else {
            // It may be one that Remora answers itself, and then it isn't counted.
            None
        };
        let label = recognised.as_ref().map(|known| known.label);
        let is_worth_storing = || match (place, label) {
            (Some(place), Some(label)) => self.is_worth_storing(label, place, began),
            _ => Ok(()),
        };
        // If the settings aren't known, other SQL modes may give the text another meaning. Only a
        // full analysis looks at those.
        let known = recognised.filter(|_| self.state.fingerprint().is_some());
        let mut worth_storing = None;
        if let Some(shared) = known.as_ref().and_then(|known| known.analysis.as_ref()) {
            if let KnownAnalysis::Read(read) = shared {
                let is_stored = worth_storing.insert(is_worth_storing()).is_ok();
                // What has outdated a result is told by the rows that it read.
                if !is_stored && self.outdated.is_none() {
                    return Analysed {
                        label,
                        worth_storing: Err(Bypass::NotWorthStoring),
                        analysis: Analysis::Template(Rc::clone(read)),
                    };
                }
            }
            let digests = &self.worker.digests;
            if let Some(statement) = digests.analysis_by_template(shared, text, dialect) {
                debug_assert_eq!(statement, self.analyse(text, dialect));
                return Analysed {
                    label,
                    worth_storing: worth_storing.unwrap_or(Ok(())),
                    analysis: Analysis::Whole(statement),
                };
            }
        }
        let statement = self.analyse(text, dialect);
        // Without a digest of its own, a statement isn't in the table.
        let is_new = |known: Recognised| known.analysis.is_none() && known.label != Label::OTHERS;
        if (may_write || statement.cacheable.is_ok()) && known.is_some_and(is_new) {
            self.worker.digests.remember(text, dialect, &statement);
        }
        let worth_storing = match worth_storing {
            None if statement.cacheable.is_ok() => is_worth_storing(),
            known => known.unwrap_or(Ok(())),
        };
        Analysed {
            label,
            worth_storing,
            analysis: Analysis::Whole(statement),
        }
    }

    /// What a statement is counted under that was analysed.
    pub(super) fn label_of_analysed(
        &self,
        analysed: &Analysed,
        text: &[u8],
        dialect: Dialect,
    ) -> Label {
        let label = analysed.label;
        label.unwrap_or_else(|| self.label_of(text, dialect))
    }

    /// Whether the session's settings after a statement follow from its text.
    fn settings_follow_from(&self, statement: &Statement, text: &[u8], dialect: Dialect) -> bool {
        statement.session == SessionEffect::SettingsChanged
            && text.len() <= STATEMENTS_BYTES_MAX
            && self.state.may_know_settings_after()
            && self.tells_values_apart(text)
            && remora_sql::sets_to_literals(text, dialect)
    }

    /// What the server does with the texts of the session's statements.
    pub(super) fn string_conversion(&self) -> StringConversion {
        let fingerprint = self.state.fingerprint();
        fingerprint.map_or(StringConversion::ToConnection, |known| {
            known.string_conversion
        })
    }

    /// Whether it is certain where strings begin and end in a text: what its character set is, and
    /// what a backslash means.
    pub(super) fn tells_values_apart(&self, text: &[u8]) -> bool {
        match self.state.fingerprint().map(|known| known.charset) {
            Some(TextCharset::Utf8 | TextCharset::AsciiSafe) => true,
            Some(TextCharset::Unsafe) => text.is_ascii(),
            None => text.is_ascii() && !text.contains(&b'\\'),
        }
    }

    /// What a statement does, in a dialect that [`Session::dialect`] gave: as far as that isn't
    /// known, in any that it may be.
    pub(super) fn analyse(&self, text: &[u8], dialect: Dialect) -> Statement {
        self.ambiguity().analyse(text, dialect)
    }

    /// The same for a statement that is being prepared.
    pub(super) fn analyse_prepared(&self, text: &[u8], dialect: Dialect) -> Statement {
        self.ambiguity().analyse_prepared(text, dialect)
    }

    /// What isn't known of how the server reads this session's text.
    fn ambiguity(&self) -> Ambiguity {
        let charset = self.state.fingerprint().map(|known| known.charset);
        Ambiguity {
            modes: charset.is_none(),
            characters: matches!(charset, None | Some(TextCharset::Unsafe)),
            takes_several: self.takes_several(),
        }
    }

    /// Whether the server may take several statements in one text.
    fn takes_several(&self) -> bool {
        self.state.passes_through()
            || self.state.may_have_switched_multi_statements()
            || self.capabilities().has(Capabilities::MULTI_STATEMENTS)
    }

    /// How the server reads this session's text, as far as that is known; see [`Session::analyse`].
    /// `None`: the server reads a language that Remora doesn't.
    pub(super) fn dialect(&self) -> Option<Dialect> {
        if self.state.is_foreign() {
            return None;
        }
        let known = self.state.fingerprint();
        let dialect = known.map_or(Some(Dialect::default()), |known| known.dialect)?;
        Some(self.shared.upstream.aged(dialect))
    }
}

/// Whether text can be a read, by its first letters.
fn may_be_read(text: &[u8]) -> bool {
    begins_with_one_of(text, &[b"select", b"with", b"("])
}

/// Whether text can be a write of rows, by its first letters.
fn may_write_rows(text: &[u8]) -> bool {
    begins_with_one_of(text, &[b"insert", b"update", b"delete", b"replace"])
}

fn begins_with_one_of(text: &[u8], words: &[&[u8]]) -> bool {
    let text = text.trim_ascii_start();
    let begins = |word: &&[u8]| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    words.iter().any(begins)
}

/// Whether it isn't known what the statement does, because it can be read in more than one way.
fn is_ambiguous(statement: &Statement) -> bool {
    matches!(statement.cacheable, Err(Refusal::Ambiguous))
}
