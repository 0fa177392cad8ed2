//! What a statement may do that its text doesn't show.
//!
//! A view can call functions, a trigger runs with a write, `EXECUTE` and `CALL` run what isn't in
//! the text. Such code can write any table, so the statement is fenced like a write to everything.
//! It can also change the session: set variables, create temporary tables that stand in for others,
//! and, by `EXECUTE` and `CALL`, turn the log off for what the session writes. So afterwards the
//! server is asked before anything is believed of the session again: for its settings, for the
//! number of tables that it has created, and for `sql_log_bin`.
//!
//! While a statement through Remora changes definitions, they are in doubt, until the log has told
//! of it. A statement that is sent meanwhile counts as one that runs code unseen, if it writes a
//! table or reads what may be a view. A procedure may change definitions too, but few do. So for a
//! procedure's sake a known table isn't suspected of having become a view.
//!
//! **Rule.** A statement is harmless if nothing in its text can call code, and none of the views
//! that it names does (by [`remora_upstream::catalogue::HiddenCode`]), and no trigger of the tables
//! that it writes (by the catalogue). Whatever isn't known counts as code.

use remora_cache::{AsOf, Definitions};
use remora_engine::facts::TableFacts;
use remora_engine::session::planned_writes::PlannedWrites;
use remora_engine::session::prepared::PreparedStatement;
use remora_engine::session::state::{Effects, OwnTransaction, TableUse, UnseenCode};
use remora_sql::{Dialect, Mentions, Select, Statement, StatementKind, TableName};
use remora_upstream::catalogue::{CodeBasis, Lookup};
use remora_wire::Capabilities;
use tokio::time::{Instant, timeout};

use super::Session;
use super::exchange::Plan;
use super::questions::{EXECUTE, QUERY};
use crate::digests::KnownRead;

/// A variable that servers have which refuse `SET TRANSACTION` in functions and triggers: MySQL
/// from 5.7 on.
const OF_SERVERS_THAT_REFUSE: &str = "session_track_gtids";
/// The number of names that are kept of a prepared statement; with more it may mention any.
const PREPARED_NAMES_MAX: usize = 128;

/// Text that isn't seen has run, and may have turned the log off before it wrote.
///
/// The server is asked before the session's next statement. But a session can be silent for long,
/// and meanwhile no log tells what was written. So the server is also asked after a time, and when
/// the session ends. It isn't asked at once: the client may want the warnings or the number of rows
/// found, and the question would make the server forget them.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnseenText {
    /// When the first such text ended since the server was last asked.
    ended_at: Instant,
    /// Whether the connection to the server can still be asked on.
    can_be_asked_about: bool,
}

impl UnseenText {
    fn ends_now() -> UnseenText {
        UnseenText {
            ended_at: Instant::now(),
            can_be_asked_about: true,
        }
    }
}

/// Whether the server logs such a statement as one that may change views. Then the list of views
/// is no longer current when the answer comes, and what reads no table had better not rest on it.
fn may_outdate_views(kind: StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Ddl | StatementKind::Flush | StatementKind::AccountManagement
    )
}

/// Whether no statement of a kind reads a table, whatever stands in it.
fn reads_nothing(kind: StatementKind) -> bool {
    use StatementKind as Kind;
    matches!(kind, Kind::Transaction | Kind::Use | Kind::Empty)
}

impl Session {
    /// On what it rests that a statement runs no code unseen; `None` if it may.
    pub(super) fn code_basis(
        &self,
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
    ) -> Option<CodeBasis> {
        if reads_nothing(statement.kind) {
            return Some(CodeBasis::ReadsNothing);
        }
        let mentions = || self.mentions(statement, text, dialect);
        if may_outdate_views(statement.kind) && !mentions().reads_tables() {
            return Some(CodeBasis::ReadsNothing);
        }
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        let tables = || self.basis_of_tables(statement.cacheable.as_ref().ok()?);
        tables().or_else(|| hidden_code.basis(mentions))
    }

    /// The same for a statement that was prepared.
    pub(super) fn code_basis_of(&self, statement: &PreparedStatement) -> Option<CodeBasis> {
        let mentions = &statement.mentions;
        if !mentions.reads_tables() {
            return Some(CodeBasis::ReadsNothing);
        }
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        let tables = || {
            let read = statement.read().ok()?;
            let now = self.state.fingerprint()?;
            // Else its names may mean tables in another schema.
            (now.id == read.fingerprint.id).then(|| self.basis_of_tables(&read.select))?
        };
        tables().or_else(|| hidden_code.basis(|| mentions.clone()))
    }

    /// Whether a statement may read a view that is known to run code.
    pub(super) fn names_known_code(
        &self,
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
    ) -> bool {
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        hidden_code.is_named(|| self.mentions(statement, text, dialect))
    }

    /// The basis of a `SELECT` that names tables only, while nothing but text that isn't seen may
    /// be changing definitions.
    fn basis_of_tables(&self, select: &Select) -> Option<CodeBasis> {
        let timeline = &self.shared.timeline;
        if timeline.definitions() != Definitions::Perhaps {
            return None;
        }
        self.look_up_tables(select).map(CodeBasis::Tables)
    }

    /// Since when a `SELECT` is known to name tables with transactions only.
    fn look_up_tables(&self, select: &Select) -> Option<AsOf> {
        // Before the tables are looked up.
        let as_of = self.shared.timeline.as_of()?;
        let are_tables = select.tables.iter().all(|name| self.is_transactional(name));
        are_tables.then_some(as_of)
    }

    /// The same of a read that isn't stored. What was found for one like it holds until a
    /// definition changes.
    pub(super) fn tables_of_unstored(
        &self,
        select: &Select,
        known: Option<&KnownRead>,
    ) -> Option<AsOf> {
        let fingerprint = self.state.fingerprint()?.id;
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        let found = known.and_then(|known| known.names_tables_since(fingerprint));
        if let Some(as_of) = found.filter(|as_of| hidden_code.holds_since(*as_of)) {
            return Some(as_of);
        }
        let as_of = self.look_up_tables(select)?;
        if let Some(known) = known {
            known.note_tables(fingerprint, as_of);
        }
        Some(as_of)
    }

    /// Whether a name is known to be that of a table with transactions, and not of a view.
    fn is_transactional(&self, name: &TableName) -> bool {
        let qualified = self.qualify(name);
        qualified.is_some_and(|(schema, table)| self.is_transactional_table(schema, table))
    }

    fn is_transactional_table(&self, schema: &str, table: &str) -> bool {
        let found = self.shared.upstream.catalogue.lookup(schema, table);
        matches!(found, Lookup::Known(facts) if facts.is_transactional)
    }

    /// Whether the server uses a table with transactions for a statement that writes this, or reads
    /// that.
    ///
    /// MySQL uses none for a statement if it sees early that no row can be concerned: by the
    /// partitions that the condition leaves. No trigger runs then either.
    pub(super) fn own_transaction(
        &self,
        kind: Option<StatementKind>,
        writes: &PlannedWrites,
        select: Option<&Select>,
    ) -> OwnTransaction {
        use StatementKind as Kind;
        let is_used = |schema: &str, table: &str| self.is_transactional_table(schema, table);
        let reads = |select: &Select| {
            let mut tables = select.tables.iter();
            if self.is_on_mariadb() {
                tables.any(|name| self.uses_transaction(name))
            } else {
                !select.tables.is_empty() && tables.all(|name| self.uses_transaction(name))
            }
        };
        let inserts = matches!(kind, Some(Kind::Insert | Kind::Replace));
        if writes.writes_rows_of(is_used) {
            self.own_transaction_of_write(inserts)
        } else if select.is_some_and(reads) {
            OwnTransaction::Certain
        } else {
            OwnTransaction::Unknown
        }
    }

    /// The same for one that writes rows of such a table.
    pub(super) fn own_transaction_of_write(&self, inserts: bool) -> OwnTransaction {
        if inserts || self.is_on_mariadb() {
            OwnTransaction::Certain
        } else {
            OwnTransaction::IfCodeRan
        }
    }

    /// Whether it is known of a name that whoever reads it uses a table with transactions. On
    /// MariaDB only `InnoDB` is cached.
    fn uses_transaction(&self, name: &TableName) -> bool {
        let catalogue = &self.shared.upstream.catalogue;
        let known = |schema: &str, table: &str| match catalogue.lookup(schema, table) {
            Lookup::Known(facts) => Some(facts),
            Lookup::Loading | Lookup::Unavailable => None,
        };
        let Some(facts) = self
            .qualify(name)
            .and_then(|(schema, table)| known(schema, table))
        else {
            return false;
        };
        if self.is_on_mariadb() {
            return facts.is_transactional || facts.cacheable.is_ok();
        }
        let is_one = |facts: &TableFacts| facts.is_transactional && !facts.is_partitioned;
        let is_part = |facts: &TableFacts| is_one(facts) || !facts.view_of.is_empty();
        let mut parts = facts
            .view_of
            .iter()
            .map(|(schema, table)| known(schema, table));
        let is_whole_view = facts.cacheable.is_ok() && !facts.view_of.is_empty();
        is_one(&facts)
            || is_whole_view && parts.all(|part| part.is_some_and(|facts| is_part(&facts)))
    }

    fn is_on_mariadb(&self) -> bool {
        !self.capabilities().has(Capabilities::MYSQL)
    }

    /// Whether the server refuses to let functions and triggers say what the next transaction is
    /// like.
    pub(super) fn refuses_next_transaction_in_code(&self) -> bool {
        let query = self.shared.upstream.settings_query();
        query.is_some_and(|query| query.asks_for(OF_SERVERS_THAT_REFUSE))
    }

    /// The plan of a statement whose result is in memory, and may not be served now, but isn't
    /// outdated either. It ran no code when that was kept; no view in it has changed since, unless
    /// the list isn't current.
    pub(super) fn with_code_of_entry(&self, mut plan: Plan, text: &[u8]) -> Plan {
        let hidden_code = &self.shared.upstream.catalogue.hidden_code;
        let tables = || {
            if self.shared.timeline.definitions() != Definitions::Perhaps {
                return None;
            }
            let statement = self.analyse(text, self.dialect()?);
            self.basis_of_tables(statement.cacheable.as_ref().ok()?)
        };
        // With autocommit off the server may keep its tables' metadata locks.
        plan.effects.table_use = TableUse::Possible;
        plan.rest_on(hidden_code.basis_of_kept_result().or_else(tables));
        plan
    }

    /// The same for a message with a statement that memory has answered, which the server is to run
    /// now: a view in it may have come to run code since.
    pub(super) fn code_basis_of_message(&self, payload: &[u8]) -> Option<CodeBasis> {
        let (command, body) = payload.split_first()?;
        match *command {
            QUERY => {
                let (text, dialect) = (self.statement_text(body)?, self.dialect()?);
                self.code_basis(&self.analyse(text, dialect), text, dialect)
            }
            EXECUTE => self.code_basis_of(self.prepared.get(self.statement_meant(body)?)?),
            _ => None,
        }
    }

    /// The names that a statement mentions.
    fn mentions(&self, statement: &Statement, text: &[u8], dialect: Dialect) -> Mentions {
        match &statement.cacheable {
            // Read otherwise, it may name others.
            _ if !self.tells_values_apart(text) => Mentions::anything(),
            Ok(select) => Mentions::of_tables(select.tables.iter().map(|name| &*name.table)),
            Err(_) => Mentions::of(text, dialect),
        }
    }

    /// The same, to be kept for when it is executed.
    pub(super) fn mentions_to_keep(
        &self,
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
    ) -> Mentions {
        self.mentions(statement, text, dialect)
            .bounded(PREPARED_NAMES_MAX)
    }

    /// Whether the server must be asked, before the session writes, if that will be logged. Also
    /// where nothing is cached now: what is kept may be served again later.
    pub(super) fn should_ask_about_log(&self) -> bool {
        self.state.log_is_doubtful()
            && self.state.lacks_settings()
            && self.shared.upstream.settings_query().is_some()
    }

    /// Whether the server must be asked what text that isn't seen has left of the log, before
    /// anything that asks for nothing about the statement before it. What such text wrote itself
    /// can't be fenced until then: if the log is off, its event never comes.
    pub(super) fn should_ask_what_ran(&self) -> bool {
        self.state.has_run_text() && self.should_ask_about_log()
    }

    /// When the server must be asked that even if the session stays silent.
    pub(super) fn asks_what_ran_at(&self) -> Option<Instant> {
        let text = self.unseen_text.filter(|_| self.should_ask_what_ran())?;
        Some(text.ended_at + self.shared.limits.unseen_text_wait)
    }

    /// A message has been answered; its effects aren't settled yet.
    pub(super) fn note_unseen_text(&mut self, effects: &Effects) {
        if effects.may_turn_log_off && !self.state.has_run_text() {
            self.unseen_text = Some(UnseenText::ends_now());
        }
    }

    /// An exchange has failed, and the session is about to end. Its message may have run text that
    /// isn't seen; if the server hasn't answered to the end, it can't be asked anything.
    pub(super) fn cut_short(&mut self, runs_text: bool, is_answered: bool) {
        if runs_text {
            self.state.runs_text();
            self.unseen_text = Some(UnseenText::ends_now());
        }
        if let Some(text) = &mut self.unseen_text {
            text.can_be_asked_about &= is_answered;
        }
    }

    /// The session ends: the last chance to ask whether text that isn't seen has left the log off.
    /// If the server doesn't tell, everything is forgotten when the session is dropped.
    pub(super) async fn ask_at_the_end(&mut self) {
        let can_be_asked = self.unseen_text.is_some_and(|text| text.can_be_asked_about);
        if can_be_asked && self.should_ask_what_ran() {
            let limit = self.shared.limits.unseen_text_wait;
            if !matches!(timeout(limit, self.learn_settings()).await, Ok(Ok(()))) {
                tracing::debug!("the server did not tell what a session has left of the log");
            }
        }
    }

    /// Whether the server must be asked about the log before a statement that rests on `code`: code
    /// that isn't seen may write.
    pub(super) fn must_ask_before_code(&self, code: impl FnOnce() -> Option<CodeBasis>) -> bool {
        self.should_ask_about_log() && code().is_none()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.state.has_run_text() {
            // Nobody can be asked any more whether what it wrote is in the log.
            self.shared.timeline.forget();
        }
    }
}

impl Plan {
    /// Lets a plan rest on this. Without it the statement may do what code does that isn't seen.
    pub(super) fn rest_on(&mut self, code: Option<CodeBasis>) {
        self.code = code;
        if code.is_some() {
            return;
        }
        if !matches!(self.writes, PlannedWrites::Privileges(_)) {
            self.writes = PlannedWrites::Everything;
        }
        self.effects.unseen_code = self.effects.unseen_code.max(UnseenCode::Possible);
    }

    /// What names tables only, and no view, needs no list of views. `as_of`: since when that is
    /// known.
    pub(super) fn rest_on_tables(&mut self, as_of: impl FnOnce() -> Option<AsOf>) {
        if let Some(CodeBasis::Listed(_)) = self.code
            && let Some(as_of) = as_of()
        {
            self.code = Some(CodeBasis::Tables(as_of));
        }
    }
}
