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
use remora_engine::session::counts::CreatedCount;
use remora_engine::session::planned_writes::{PlannedWrites, PrivilegeStatement};
use remora_engine::session::prepared::PreparedStatement;
use remora_engine::session::snapshot::Evidence;
use remora_engine::session::state::{Effects, OwnTransaction, TableUse, UnseenCode};
use remora_sql::{
    Dialect, EverythingReason, Mentions, Refusal, Select, SessionEffect, Statement, StatementKind,
    TableName, UnknownEffect, Writes, has_word, may_move_rows_unlogged,
};
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

/// What a statement does besides answering.
pub(super) fn effects_of(statement: &Statement, text: &[u8]) -> Effects {
    Effects {
        session: statement.session,
        literal_set: None,
        transaction: statement.transaction,
        control: statement.control,
        // Which of several statements runs a trigger isn't told apart.
        unseen_code: match statement.kind {
            StatementKind::Multi if statement.writes != Writes::Nothing => UnseenCode::Known,
            _ => UnseenCode::None,
        },
        created: created_count(statement.kind, text),
        may_turn_log_off: matches!(statement.session, SessionEffect::Unknown(_))
            && may_run_text(text),
        definitions: definitions_changed(statement, text),
        own_transaction: OwnTransaction::Unknown,
        code_leaves_next_transaction: false,
        may_load_routine: match statement.kind {
            StatementKind::Prepare => true,
            StatementKind::Show | StatementKind::Multi => shows_routine_of_schema(text),
            _ => statement.session.runs_code(),
        },
        table_use: table_use(statement, text),
        snapshot: Evidence::None,
    }
}

/// Whether it uses a table. What lists tables and columns (`SHOW`) keeps no locks.
fn table_use(statement: &Statement, text: &[u8]) -> TableUse {
    let uses_none = match (statement.kind, &statement.cacheable) {
        (StatementKind::Select, Ok(select)) => select.tables.is_empty(),
        (StatementKind::Select, Err(why)) => *why == Refusal::NoTables,
        (StatementKind::Set | StatementKind::Show, _) => {
            !has_word(text, b"select") && !statement.session.runs_code()
        }
        (StatementKind::Use | StatementKind::Empty, _) => true,
        _ => statement.control.is_some(),
    };
    if uses_none {
        TableUse::None
    } else {
        TableUse::Possible
    }
}

/// Whether a `SHOW` may name a routine with its schema: `SHOW CREATE FUNCTION`, say. It may be one
/// of several statements.
fn shows_routine_of_schema(text: &[u8]) -> bool {
    let kinds = [&b"function"[..], b"procedure", b"package"];
    text.contains(&b'.') && kinds.iter().any(|kind| has_word(text, kind))
}

/// What a statement may change of the definitions that tell which code other statements run.
///
/// Among changes of tables that it names, only a rename counts: triggers move with their table, and
/// a view can then take the table's old name.
fn definitions_changed(statement: &Statement, text: &[u8]) -> Definitions {
    use EverythingReason as Reason;
    let of_tables = [Reason::TableName, Reason::UnknownFunction, Reason::Sequence];
    let is_any = matches!(&statement.writes, Writes::Everything(why) if !of_tables.contains(why));
    match (statement.kind, statement.session) {
        (StatementKind::Ddl, _) if is_any || renames_table(text) => Definitions::Changed,
        (StatementKind::Ddl | StatementKind::Set | StatementKind::Xa, _)
        | (_, SessionEffect::Unknown(UnknownEffect::StoredFunction)) => Definitions::Kept,
        (_, SessionEffect::Unknown(_)) if is_any => Definitions::Perhaps,
        _ => Definitions::Kept,
    }
}

/// Whether a text has one of the words by which other text is run.
pub(super) fn may_run_text(text: &[u8]) -> bool {
    [&b"execute"[..], b"call"]
        .iter()
        .any(|word| contains(text, word))
}

/// Whether a statement that wasn't understood mentions `sql_log_bin`: several statements in one,
/// text to be executed. Then its changes, and the session's from here on, may leave no trace.
pub(super) fn turns_the_log_off(statement: &Statement, text: &[u8]) -> bool {
    matches!(statement.session, SessionEffect::Unknown(_)) && names_the_log(text)
}

/// How a statement may change privileges without a trace in the log; `None` if it can't. Either it
/// isn't understood and mentions them, so that the server may read them again. Or it takes them
/// away, and may fail in the middle. Or it changes a setting by which the server judges them.
pub(super) fn privileges_unlogged(
    statement: &Statement,
    text: &[u8],
) -> Option<PrivilegeStatement> {
    // That one of several statements was refused says nothing of the others.
    let may_hide = match (statement.kind, statement.session) {
        // No function can change privileges.
        (_, SessionEffect::Unknown(UnknownEffect::StoredFunction)) => false,
        (_, SessionEffect::Unknown(_)) => names_privileges(text),
        // Those that are understood change rows and settings.
        (StatementKind::Multi, _) => names_privilege_setting(text),
        (StatementKind::AccountManagement, _) if contains(text, b"revoke") => {
            return Some(PrivilegeStatement::Revoke);
        }
        _ => false,
    };
    if may_hide {
        return Some(PrivilegeStatement::Hidden);
    }
    sets_privileges(statement, text).then_some(PrivilegeStatement::Reload)
}

/// Whether a text that isn't understood may change what reads give without a trace in the log.
pub(super) fn may_be_unlogged(text: &[u8]) -> bool {
    may_move_rows_unlogged(text) || names_privileges(text)
}

/// Whether a text mentions privileges, or a setting by which the server judges them.
pub(super) fn names_privileges(text: &[u8]) -> bool {
    contains(text, b"privileges") || has_word(text, b"revoke") || names_privilege_setting(text)
}

/// Settings of the server that change what accounts may do, without a word in the log.
const PRIVILEGE_SETTINGS: [&[u8]; 3] = [
    b"mandatory_roles",
    b"partial_revokes",
    b"activate_all_roles_on_login",
];

fn names_privilege_setting(text: &[u8]) -> bool {
    PRIVILEGE_SETTINGS.iter().any(|name| contains(text, name))
}

/// Whether a statement may change one of these settings.
fn sets_privileges(statement: &Statement, text: &[u8]) -> bool {
    // Only with a value of the server's own: `GLOBAL`, `PERSIST`.
    let is_global = || contains(text, b"global") || contains(text, b"persist");
    statement.kind == StatementKind::Set && is_global() && names_privilege_setting(text)
}

/// Whether `sql_log_bin` stands in a text.
pub(super) fn names_the_log(text: &[u8]) -> bool {
    contains(text, b"sql_log_bin")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

/// Whether a definition may give a table another name.
fn renames_table(text: &[u8]) -> bool {
    let is = |word: &[u8], other: &[u8]| word.eq_ignore_ascii_case(other);
    let mut words = words(text).peekable();
    while let Some(word) = words.next() {
        let renames_part = words.peek().is_some_and(|next| {
            [&b"column"[..], b"index", b"key"]
                .iter()
                .any(|part| is(next, part))
        });
        if is(word, b"rename") && !renames_part {
            return true;
        }
    }
    false
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

fn created_count(kind: StatementKind, text: &[u8]) -> CreatedCount {
    match kind {
        StatementKind::Ddl if creates_table(text) => CreatedCount::OneMore,
        // Comments may stand between its words.
        StatementKind::Ddl if has_word(text, b"create") && has_word(text, b"table") => {
            CreatedCount::Unknown
        }
        StatementKind::Flush => CreatedCount::Unknown,
        _ => CreatedCount::Same,
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|word| !word.is_empty())
}

/// Whether a text begins with the words `CREATE TABLE`.
fn creates_table(text: &[u8]) -> bool {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    [&b"create"[..], b"table"].iter().all(|expected| {
        words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(expected))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_created_is_counted() {
        for (text, count) in [
            ("CREATE TABLE t (a INT)", CreatedCount::OneMore),
            ("\n create\ttable t SELECT 1", CreatedCount::OneMore),
            ("CREATE/**/TABLE t (a INT)", CreatedCount::Unknown),
            ("CREATE OR REPLACE TABLE t (a INT)", CreatedCount::Unknown),
            ("/* */ CREATE TABLE t (a INT)", CreatedCount::Unknown),
            (
                "CREATE ALGORITHM = TEMPTABLE VIEW v AS SELECT 1",
                CreatedCount::Same,
            ),
            ("CREATE VIEW v AS TABLE t", CreatedCount::Unknown),
            ("FLUSH STATUS", CreatedCount::Unknown),
            ("CREATE VIEW v AS SELECT 1", CreatedCount::Same),
            ("INSERT INTO t VALUES ('create table')", CreatedCount::Same),
        ] {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            let counted = effects_of(&statement, text.as_bytes()).created;
            assert_eq!(counted, count, "{text}");
        }
    }

    #[test]
    fn a_setting_of_privileges_is_known_wherever_it_is_assigned() {
        for (text, sets) in [
            ("SET GLOBAL partial_revokes = ON", true),
            ("set @@global.`Mandatory_Roles` = 'r'", true),
            (
                "SET sql_mode = '', PERSIST activate_all_roles_on_login = 1",
                true,
            ),
            ("SET @@persist.partial_revokes=1", true),
            ("SET @partial_revokes = 1", false),
            ("SET GLOBAL max_connections = 10", false),
            ("SELECT @@global.partial_revokes", false),
        ] {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            assert_eq!(sets_privileges(&statement, text.as_bytes()), sets, "{text}");
        }
        let hidden = b"PREPARE s FROM 'SET GLOBAL partial_revokes = ON'";
        assert!(names_privileges(hidden));
        let several = b"SET GLOBAL mandatory_roles = ''; SELECT a FROM t";
        let statement = remora_sql::analyse(several, Dialect::default());
        let how = privileges_unlogged(&statement, several);
        assert_eq!(how, Some(PrivilegeStatement::Hidden), "one may be refused");
        for (text, how) in [
            (
                "REVOKE SELECT ON t FROM a, b",
                Some(PrivilegeStatement::Revoke),
            ),
            (
                "DO 1; REVOKE SELECT ON t FROM a, b",
                Some(PrivilegeStatement::Hidden),
            ),
            (
                "DO 1; /*!50000REVOKE SELECT ON t FROM a */",
                Some(PrivilegeStatement::Hidden),
            ),
            ("INSERT INTO t VALUES ('revoke'); SELECT 1", None),
            ("SELECT f('revoke') FROM t", None),
            ("GRANT SELECT ON t TO a, b", None),
        ] {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            assert_eq!(
                privileges_unlogged(&statement, text.as_bytes()),
                how,
                "{text}"
            );
        }
    }

    #[test]
    fn a_definition_changes_which_code_runs_if_it_is_of_code_or_moves_a_table() {
        use Definitions::{Changed, Kept, Perhaps};
        for (text, expected) in [
            (
                "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                Changed,
            ),
            ("CREATE OR REPLACE VIEW v AS SELECT 1", Changed),
            ("DROP FUNCTION f", Changed),
            ("ALTER EVENT e DISABLE", Changed),
            ("RENAME TABLE a TO b", Changed),
            ("ALTER TABLE a RENAME b", Changed),
            (
                "ALTER TABLE a RENAME COLUMN c TO d, RENAME KEY k TO l",
                Kept,
            ),
            ("ALTER TABLE a ADD rename_count INT", Kept),
            ("CREATE TABLE a (i INT)", Kept),
            ("CREATE TABLE a AS SELECT f(1) AS i", Kept),
            ("TRUNCATE a", Kept),
            ("CALL p()", Perhaps),
            ("EXECUTE s", Perhaps),
            ("SELECT 1; DROP VIEW v", Perhaps),
            ("no statement", Perhaps),
            ("SELECT f(1)", Kept),
            ("INSERT INTO t VALUES (1)", Kept),
            ("SET TRANSACTION READ ONLY", Kept),
        ] {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            let effects = effects_of(&statement, text.as_bytes());
            assert_eq!(effects.definitions, expected, "{text}");
        }
    }

    #[test]
    fn text_that_runs_text_may_turn_the_log_off() {
        for (text, may) in [
            ("EXECUTE IMMEDIATE @s", true),
            ("call p()", true),
            ("SELECT 1; KILL 5", false),
        ] {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            let effects = effects_of(&statement, text.as_bytes());
            assert_eq!(effects.may_turn_log_off, may, "{text}");
        }
        let harmless = remora_sql::analyse(b"SELECT call_id FROM t", Dialect::default());
        assert!(!effects_of(&harmless, b"SELECT call_id FROM t").may_turn_log_off);
    }
}
