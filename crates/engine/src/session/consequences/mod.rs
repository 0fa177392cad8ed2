//! What follows when the server runs a statement, as far as its text tells.
//!
//! This is decided once, for whoever sends the statement: as a text, prepared, in pieces, or in
//! place of another. What else follows, from triggers, cascades and views, only the catalogue
//! knows.

mod words;

use remora_cache::Definitions;
use remora_sql::{
    EverythingReason, SessionEffect, Statement, StatementKind, TableName, Transaction,
    UnknownEffect, Writes, has_word, may_move_rows_unlogged,
};

pub use self::words::may_be_unlogged;
use self::words::{
    contains, creates_table, may_run_text, names_privilege_setting, names_privileges,
    names_the_log, renames_table, shows_routine_of_schema,
};
use super::counts::CreatedCount;
use super::planned_writes::{PlannedWrites, PrivilegeStatement};
use super::snapshot::Evidence;
use super::state::{Effects, OwnTransaction, TableUse, UnseenCode};

/// What follows when the server runs a statement.
#[derive(Debug, Clone)]
pub struct Consequences {
    /// What it does to the session and its transaction.
    pub effects: Effects,
    /// What it writes.
    pub writes: PlannedWrites,
    /// It may change what reads give without a trace in the log.
    pub unlogged: bool,
}

impl Consequences {
    /// What follows from a statement with this text. `qualify` gives schema and name of a table as
    /// the session means it; `None` if that isn't certain.
    pub fn of<'n>(
        statement: &'n Statement,
        text: &[u8],
        qualify: impl Fn(&'n TableName) -> Option<(&'n str, &'n str)>,
    ) -> Consequences {
        let mut consequences = Consequences::by_analysis(statement, text, qualify);
        if turns_the_log_off(statement, text) {
            consequences.turn_log_off();
        }
        if let Some(how) = privileges_unlogged(statement, text) {
            consequences.writes = PlannedWrites::Privileges(how);
        }
        consequences
    }

    /// What follows from a statement of which only the start is known. It may do anything. Its
    /// words aren't searched for more: a long text is most often an `INSERT`, and its values may be
    /// words of any kind.
    pub fn of_start<'n>(
        statement: &'n Statement,
        start: &[u8],
        qualify: impl Fn(&'n TableName) -> Option<(&'n str, &'n str)>,
    ) -> Consequences {
        let mut consequences = Consequences::by_analysis(statement, start, qualify);
        consequences.effects.may_turn_log_off = true;
        consequences
    }

    fn by_analysis<'n>(
        statement: &'n Statement,
        text: &[u8],
        qualify: impl Fn(&'n TableName) -> Option<(&'n str, &'n str)>,
    ) -> Consequences {
        Consequences {
            effects: effects_of(statement, text),
            writes: PlannedWrites::of(statement, qualify),
            unlogged: statement.unlogged,
        }
    }

    /// What follows from a message that may do anything. The server is asked afterwards whether the
    /// session's changes are still logged (`may_turn_log_off`), so it doesn't count as unlogged.
    pub fn unknown() -> Consequences {
        let effects = Effects {
            session: SessionEffect::Unknown(UnknownEffect::UnknownStatement),
            transaction: Transaction::ImplicitCommit,
            may_turn_log_off: true,
            definitions: Definitions::Perhaps,
            ..Effects::NONE
        };
        Consequences {
            effects,
            writes: PlannedWrites::Everything,
            unlogged: false,
        }
    }

    /// What follows from a statement that the server reads as a language of its own, `ORACLE`'s
    /// say: it may do whatever its words say.
    pub fn of_unread(text: &[u8]) -> Consequences {
        let mut consequences = Consequences::unknown();
        consequences.effects.may_turn_log_off = may_run_text(text);
        consequences.unlogged = may_move_rows_unlogged(text);
        if names_the_log(text) {
            consequences.turn_log_off();
        }
        if names_privileges(text) {
            consequences.writes = PlannedWrites::Privileges(PrivilegeStatement::Hidden);
        }
        consequences
    }

    /// Its changes, and the session's from here on, may leave no trace.
    fn turn_log_off(&mut self) {
        self.effects.session = SessionEffect::BinlogOff;
        self.writes = PlannedWrites::Everything;
        self.unlogged = true;
    }
}

/// What a statement does besides answering.
fn effects_of(statement: &Statement, text: &[u8]) -> Effects {
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
    use StatementKind as Kind;
    match (statement.kind, &statement.cacheable) {
        (Kind::Select, Ok(select)) if select.tables.is_empty() => TableUse::None,
        (Kind::Select, Ok(_)) | (Kind::Insert | Kind::Replace | Kind::Update | Kind::Delete, _) => {
            TableUse::Certain
        }
        (Kind::Set | Kind::Show, _)
            if has_word(text, b"select") || statement.session.runs_code() =>
        {
            TableUse::Possible
        }
        (Kind::Set | Kind::Show | Kind::Use | Kind::Empty, _) => TableUse::None,
        _ if statement.control.is_some() => TableUse::None,
        _ => TableUse::Possible,
    }
}

/// What a statement does to the server's count of the tables that the session has created.
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

/// Whether a statement that wasn't understood mentions `sql_log_bin`: several statements in one,
/// text to be executed. Then its changes, and the session's from here on, may leave no trace.
fn turns_the_log_off(statement: &Statement, text: &[u8]) -> bool {
    matches!(statement.session, SessionEffect::Unknown(_)) && names_the_log(text)
}

/// How a statement may change privileges without a trace in the log; `None` if it can't. Either it
/// isn't understood and mentions them, so that the server may read them again. Or it takes them
/// away, and may fail in the middle. Or it changes a setting by which the server judges them.
fn privileges_unlogged(statement: &Statement, text: &[u8]) -> Option<PrivilegeStatement> {
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

/// Whether a statement may change one of these settings.
fn sets_privileges(statement: &Statement, text: &[u8]) -> bool {
    // Only with a value of the server's own: `GLOBAL`, `PERSIST`.
    let is_global = || contains(text, b"global") || contains(text, b"persist");
    statement.kind == StatementKind::Set && is_global() && names_privilege_setting(text)
}

#[cfg(test)]
mod tests {
    use remora_sql::Dialect;

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
    fn what_may_turn_the_log_off_writes_anything_and_leaves_no_trace() {
        let of = |text: &str| {
            let statement = remora_sql::analyse(text.as_bytes(), Dialect::default());
            Consequences::of(&statement, text.as_bytes(), |_| Some(("shop", "t")))
        };
        for text in [
            "CALL p('SET sql_log_bin = 0')",
            "DELETE FROM t; SET SQL_LOG_BIN = 0",
        ] {
            for consequences in [of(text), Consequences::of_unread(text.as_bytes())] {
                assert_eq!(
                    consequences.effects.session,
                    SessionEffect::BinlogOff,
                    "{text}"
                );
                assert_eq!(consequences.writes, PlannedWrites::Everything, "{text}");
                assert!(consequences.unlogged, "{text}");
            }
        }
        let start = b"INSERT INTO t VALUES ('revoke', 'privileges', 'sql_log_bin'), (";
        let statement = remora_sql::analyse_prefix(start, Dialect::default());
        let long = Consequences::of_start(&statement, start, |_| Some(("shop", "t")));
        assert_ne!(long.effects.session, SessionEffect::BinlogOff);
        assert!(long.effects.may_turn_log_off && !long.unlogged);
        assert_eq!(long.writes, PlannedWrites::Unnamed);
        let value = of("INSERT INTO t VALUES ('sql_log_bin')");
        assert_eq!(value.effects.session, SessionEffect::None);
        assert!(matches!(value.writes, PlannedWrites::Tables { .. }));
        assert!(!value.unlogged);
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
