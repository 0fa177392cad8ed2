//! What statements write, and what they do to the session and the transaction.
//!
//! Servers: none
//! Load: waits

mod common;

use common::{default, everything, nothing, tables_written};
use remora_sql::{
    Dialect, EverythingReason as Why, IsolationLevel, SessionEffect as Session,
    StatementKind as Kind, Transaction as Tx, TransactionDefaults, UnknownEffect, Writes,
    analyse_prefix,
};

#[track_caller]
fn writes(text: &str, kind: Kind, expected: &[&str]) {
    assert_eq!(tables_written(text), expected, "{text}");
    assert_eq!(default(text).kind, kind, "{text}");
    assert!(default(text).cacheable.is_err(), "{text}");
}

#[test]
fn a_table_made_of_json_is_no_call() {
    for text in [
        "SELECT jt.* FROM j, JSON_TABLE(doc, '$.b[*]' \
         COLUMNS (n FOR ORDINALITY, v VARCHAR(20) PATH '$')) AS jt WHERE id = 1",
        "SELECT * FROM JSON_TABLE (UPPER('[]'), '$' COLUMNS (x INT PATH '$', \
         NESTED PATH '$.y[*]' COLUMNS (y DECIMAL(5,2) PATH '$' DEFAULT '0' ON EMPTY))) j",
    ] {
        nothing(text, Kind::Select, Session::None, Tx::None);
    }
    let many = "JSON_TABLE(a, '$' COLUMNS (x INT PATH '$')), ".repeat(17);
    for text in [
        "SELECT JSON_TABLE(a, '$') FROM t",
        "SELECT JSON_TABLE(a, columns) FROM t",
        "SELECT JSON_TABLE(a, ('$' COLUMNS (x INT PATH '$'))) FROM t",
        "SELECT a FROM JSON_TABLE(f(a), '$' COLUMNS (x INT PATH '$')) j",
        "SELECT COLUMNS(a) FROM t",
        &format!("SELECT 1 FROM {many} t"),
    ] {
        everything(text, Why::UnknownFunction);
    }
}

/// Any of these may stand before a write, and what isn't parsed hides where it begins.
#[test]
fn a_write_behind_names_that_are_not_understood_writes_anything() {
    for names in [
        "WITH v (id, n) AS (VALUES ROW(1, 10), ROW(2, 20))",
        "WITH v AS (SELECT x.id FROM JSON_TABLE('[]', '$[*]' COLUMNS (id INT PATH '$.id')) x)",
        "WITH v AS (SELECT id, JSON_VALUE(doc, '$.n' RETURNING SIGNED) n FROM d)",
        "WITH v AS (TABLE u)",
        "WITH v AS (SELECT id FROM u WHERE d > {d '2024-01-01'})",
        "WITH RECURSIVE w AS (SELECT 1), v AS (VALUES ROW(1))",
        "WITH RECURSIVE v AS (SELECT 1 AS id) CYCLE id RESTRICT",
        "WITH v AS (SELECT * FROM (TABLE u) AS x FOR UPDATE)",
    ] {
        for write in [
            "UPDATE t JOIN v USING (id) SET t.n = v.n",
            "DELETE FROM t WHERE id IN (SELECT id FROM v)",
        ] {
            everything(&format!("{names} {write}"), Why::Unreadable);
        }
    }
    for read in [
        "WITH v AS (TABLE u) SELECT * FROM v",
        "WITH v AS (VALUES ROW(1)) TABLE v",
        "WITH v AS (TABLE u) SELECT * FROM v FOR UPDATE",
        "WITH RECURSIVE v AS (SELECT 1 AS a) CYCLE a RESTRICT SELECT * FROM v",
    ] {
        nothing(read, Kind::Select, Session::None, Tx::None);
    }
    // The search for the write ends where the text can't be read.
    everything("WITH v AS (TABLE u) SELECT 'open", Why::Unreadable);
}

#[test]
fn a_score_in_a_write_makes_it_no_less_readable() {
    writes(
        "UPDATE t JOIN u ON MATCH (u.s) AGAINST ('x') > 0 SET t.a = 1",
        Kind::Update,
        &["t", "u"],
    );
}

#[test]
fn data_changes_name_their_tables() {
    writes(
        "INSERT INTO t (a, b) VALUES (1, NOW()), (2, UUID())",
        Kind::Insert,
        &["t"],
    );
    writes(
        "INSERT LOW_PRIORITY IGNORE s.t SET a = 1",
        Kind::Insert,
        &["s.t"],
    );
    writes("INSERT INTO t VALUE (1)", Kind::Insert, &["t"]);
    writes(
        "INSERT INTO t PARTITION (p) (a) VALUES (1) RETURNING a",
        Kind::Insert,
        &["t"],
    );
    writes(
        "INSERT INTO t SELECT a, COUNT(*) FROM u",
        Kind::Insert,
        &["t"],
    );
    writes(
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
        Kind::Insert,
        &["t"],
    );
    writes(
        "INSERT INTO t VALUES (1) AS n ON DUPLICATE KEY UPDATE a = n.a",
        Kind::Insert,
        &["t"],
    );
    writes("REPLACE t VALUES (?, ?)", Kind::Replace, &["t"]);
    writes(
        "UPDATE t SET a = 1 WHERE id = 3 LIMIT 1",
        Kind::Update,
        &["t"],
    );
    writes(
        "UPDATE LOW_PRIORITY IGNORE s.a x JOIN b USING (i) SET b.c = 1",
        Kind::Update,
        &["s.a", "b"],
    );
    writes(
        "UPDATE t FOR PORTION OF p FROM '2000-01-01' TO '2001-01-01' SET a = 1",
        Kind::Update,
        &["t"],
    );
    writes(
        "WITH c AS (SELECT 1 FROM u) UPDATE t, c SET a = 1",
        Kind::Update,
        &["u", "t"],
    );
    writes("DELETE FROM t WHERE a = 1", Kind::Delete, &["t"]);
    writes(
        "DELETE QUICK FROM s.t PARTITION (p) ORDER BY a LIMIT 1",
        Kind::Delete,
        &["s.t"],
    );
    writes(
        "DELETE x, s.b.* FROM a x, s.b WHERE x.i = b.i",
        Kind::Delete,
        &["a", "s.b"],
    );
    writes(
        "DELETE FROM x USING a AS x JOIN b",
        Kind::Delete,
        &["a", "b"],
    );
    writes("DELETE HISTORY FROM t", Kind::Delete, &["t"]);
    writes(
        "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE s.t (a, @b) SET c = UPPER(@b)",
        Kind::Load,
        &["s.t"],
    );
    writes("LOAD XML INFILE 'x' INTO TABLE t", Kind::Load, &["t"]);
    // What it says before the name can't hide the name.
    writes(
        "/* x */ INSERT /* y */ INTO # z\n t VALUES ('; DROP')",
        Kind::Insert,
        &["t"],
    );
}

#[test]
fn built_in_functions_of_the_session_add_nothing_to_what_a_write_changes() {
    for call in [
        "ROW_COUNT()",
        "FOUND_ROWS()",
        "LAST_INSERT_ID()",
        "LAST_INSERT_ID(a + 1)",
        "CONNECTION_ID()",
        "USER()",
        "CURRENT_USER()",
        "SESSION_USER()",
        "DATABASE()",
        "VERSION()",
        "UUID()",
        "UUID_SHORT()",
        "RAND()",
        "NOW(6)",
        "SYSDATE()",
    ] {
        let insert = "INSERT INTO t (a, b) SELECT 1, 2 FROM DUAL WHERE";
        for text in [
            format!("{insert} {call} > 0 ON DUPLICATE KEY UPDATE b = t.b + 1"),
            format!("INSERT INTO t VALUES (1, {call})"),
            format!("REPLACE INTO t SELECT {call}, a FROM u"),
            format!("UPDATE t SET a = a + {call}"),
            format!("DELETE FROM t WHERE a = {call}"),
        ] {
            let statement = default(&text);
            assert_eq!(tables_written(&text), ["t"], "{text}");
            assert_eq!(statement.session, Session::None, "{text}");
        }
        // Somebody's function of the same name, which only a schema or quotes call.
        let (name, arguments) = call.split_once('(').unwrap();
        for name in [format!("s.{name}"), format!("`{name}`")] {
            let text = format!("INSERT INTO t SELECT {name}({arguments} FROM u");
            everything(&text, Why::UnknownFunction);
        }
    }
}

#[test]
fn a_call_that_may_run_somebodys_code_writes_everything() {
    for text in [
        "SELECT f(a) FROM t",
        "SELECT s.f(a) FROM t",
        "SELECT s . f (a) FROM t",
        "SELECT `abs`(a) FROM t",
        "SELECT s.abs(a) FROM t",
        "SELECT NOW(), f() FROM t",
        "SELECT @x := f()",
        "SELECT 1 WHERE f()",
        "SELECT * FROM t WHERE a = ? AND f(a)",
        "SELECT SUM (a) FROM t",
        "SELECT rank() FROM t",
        // Names on servers that don't know the words.
        "SELECT SQL_CACHE(1)",
        "SELECT SQL_CACHE (a) FROM t",
        "SELECT 1 FROM (SELECT DISTINCT SQL_CACHE(a) FROM t) d",
        "SELECT over(a) FROM t",
        "DO over(1)",
        "SELECT a FROM t LIMIT 1 ROWS EXAMINED f()",
        "INSERT INTO t VALUES (f())",
        "INSERT INTO t (a) VALUES (s.f())",
        "INSERT INTO t SELECT f() FROM u",
        "UPDATE t SET a = f()",
        "DELETE FROM t WHERE f(a)",
        "WITH c AS (SELECT f()) DELETE FROM t",
        "LOAD DATA INFILE 'x' INTO TABLE t SET a = f()",
        "CREATE TABLE t AS SELECT f() AS a",
        "CREATE TABLE t VALUES (f())",
        "DO f()",
        "SET @a = f()",
        "SET time_zone = f()",
        "SHOW TABLES WHERE f()",
        "EXPLAIN SELECT * FROM (SELECT f()) d",
        "HANDLER t READ FIRST WHERE f()",
        "SET STATEMENT max_statement_time = 1 FOR SELECT f()",
        "SELECT regexp_replace(a, 'b', 'c') FROM t",
    ] {
        everything(text, Why::UnknownFunction);
        let effect = Session::Unknown(UnknownEffect::StoredFunction);
        assert_eq!(default(text).session, effect, "{text}");
    }
    everything("SELECT NEXT VALUE FOR s FROM t", Why::Sequence);
    everything("INSERT INTO t VALUES (PREVIOUS VALUE FOR s)", Why::Sequence);
    everything("SELECT nextval(s)", Why::UnknownFunction);
}

#[test]
fn known_functions_write_nothing_even_if_their_result_is_not_kept() {
    for text in [
        "SELECT NOW()",
        "SELECT LAST_INSERT_ID()",
        "SELECT VERSION()",
        "SELECT @@version",
    ] {
        nothing(text, Kind::Select, Session::None, Tx::None);
    }
    nothing(
        "SELECT GET_LOCK('x', 1)",
        Kind::Select,
        Session::UserLock,
        Tx::None,
    );
    nothing(
        "DO RELEASE_LOCK('x')",
        Kind::Do,
        Session::UserLock,
        Tx::None,
    );
    nothing("DO SLEEP(1)", Kind::Do, Session::None, Tx::None);
    nothing(
        "SELECT * FROM t LIMIT 1 ROWS EXAMINED 3",
        Kind::Select,
        Session::None,
        Tx::None,
    );
    nothing(
        "SELECT a, LAG(a, 1) OVER (ORDER BY b) INTO @x, @y FROM t",
        Kind::Select,
        Session::None,
        Tx::None,
    );
    nothing("TABLE t", Kind::Other, Session::None, Tx::None);
}

#[test]
fn doubtful_data_changes_write_everything() {
    everything("INSERT DELAYED INTO t VALUES (1)", Why::Delayed);
    everything("INSERT INTO größe VALUES (1)", Why::TableName);
    everything("INSERT INTO `#mysql50#t` VALUES (1)", Why::TableName);
    everything("UPDATE a JOIN gröβe SET x = 1", Why::TableName);
    everything("INSERT INTO", Why::Unreadable);
    everything("UPDATE t", Why::Unreadable);
    everything("DELETE FROM a, b", Why::Unreadable);
    everything("INSERT INTO t VALUES ('x", Why::Unreadable);
    everything(
        "INSERT INTO t VALUES (1) /*!99999 , (f()) */",
        Why::Unreadable,
    );
    everything(
        "INSERT INTO t VALUES (1); DELETE FROM u",
        Why::MultipleStatements,
    );
    everything("GARBAGE", Why::UnknownStatement);
}

#[test]
fn definitions_of_tables_name_them() {
    for (text, expected) in [
        (
            "CREATE TABLE t (a VARCHAR(10), KEY k (a), CHECK (a > 1))",
            vec!["t"],
        ),
        (
            "CREATE OR REPLACE TABLE IF NOT EXISTS s.t LIKE u",
            vec!["s.t"],
        ),
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (3))",
            vec!["t"],
        ),
        ("CREATE TABLE t SELECT a, MAX(b) FROM u", vec!["t"]),
        ("CREATE UNIQUE INDEX i ON t (a)", vec!["t"]),
        ("DROP INDEX i ON s.t", vec!["s.t"]),
        (
            "ALTER TABLE t ADD COLUMN b INT DEFAULT (1), RENAME TO s.u",
            vec!["t", "s.u"],
        ),
        ("ALTER IGNORE TABLE t RENAME u", vec!["t", "u"]),
        (
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j",
            vec!["t"],
        ),
        (
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
            vec!["t", "u"],
        ),
        ("DROP TABLE IF EXISTS a, s.b CASCADE", vec!["a", "s.b"]),
        ("TRUNCATE TABLE t", vec!["t"]),
        ("TRUNCATE s.t", vec!["s.t"]),
        (
            "RENAME TABLE a TO b, s.c TO s.d",
            vec!["a", "b", "s.c", "s.d"],
        ),
        ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE a, b", vec!["a", "b"]),
        ("ANALYZE TABLE t", vec!["t"]),
        ("REPAIR TABLE t QUICK", vec!["t"]),
    ] {
        writes(text, Kind::Ddl, &expected);
        assert_eq!(default(text).transaction, Tx::ImplicitCommit, "{text}");
    }
    for text in [
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`b` SQL SECURITY INVOKER VIEW v AS SELECT f()",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE DATABASE d",
        "ALTER DATABASE d COLLATE utf8mb4_bin",
        "DROP VIEW v",
        "DROP TRIGGER g",
        "CREATE SEQUENCE s",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "ALTER VIEW v AS SELECT 2",
        "DROP SCHEMA d",
    ] {
        everything(text, Why::Definitions);
        assert_eq!(default(text).transaction, Tx::ImplicitCommit, "{text}");
    }
    nothing(
        "CREATE TEMPORARY TABLE t (a INT)",
        Kind::Ddl,
        Session::TemporaryTable,
        Tx::None,
    );
    nothing(
        "DROP TEMPORARY TABLE IF EXISTS t",
        Kind::Ddl,
        Session::TemporaryTable,
        Tx::None,
    );
    everything("CREATE TEMPORARY TABLE t SELECT f()", Why::UnknownFunction);
    // It can only take one away from a session that has created it.
    assert_eq!(default("DROP TABLE t, u").session, Session::None);
}

#[test]
fn account_management_writes_everything_and_commits() {
    for text in [
        "GRANT SELECT (a, b) ON t TO u@h",
        "REVOKE ALL ON *.* FROM u",
        "CREATE USER 'u'@'%' IDENTIFIED BY 'x'",
        "ALTER USER u ACCOUNT LOCK",
        "DROP USER u",
        "RENAME USER a TO b",
        "SET PASSWORD FOR u = PASSWORD('x')",
        "SET DEFAULT ROLE r",
        "CREATE ROLE r",
        "DROP ROLE r",
    ] {
        everything(text, Why::AccountManagement);
        assert_eq!(default(text).kind, Kind::AccountManagement, "{text}");
        assert_eq!(default(text).transaction, Tx::ImplicitCommit, "{text}");
    }
    nothing("SET ROLE r", Kind::Set, Session::Role, Tx::None);
}

/// `@@name` without a scope means the next transaction for what transactions are like. With another
/// effect beside it there is no name for both.
#[test]
fn set_can_hold_for_the_next_transaction_only() {
    let set = |text: &str, session| nothing(text, Kind::Set, session, Tx::None);
    for text in [
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET @@transaction_isolation = 'READ-UNCOMMITTED'",
        "SET @@`tx_isolation` = 'READ-UNCOMMITTED', @a = 1",
        "SET lock_wait_timeout = 1, @@TX_READ_ONLY = 1",
    ] {
        set(text, Session::NextTransaction);
    }
    for text in [
        "SET @@tx_isolation = 'READ-UNCOMMITTED', time_zone = '+00:00'",
        "SET sql_log_bin = 0, @@tx_isolation = 'READ-UNCOMMITTED'",
        "SET GLOBAL max_connections = 1, @@tx_isolation = 'SERIALIZABLE', sql_mode = ''",
    ] {
        set(text, Session::Unknown(UnknownEffect::UnknownVariable));
    }
}

#[test]
fn set_tells_what_the_assignments_do_together() {
    let set = |text: &str, session| nothing(text, Kind::Set, session, Tx::None);
    for text in [
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET CHARACTER SET utf8mb4",
        "SET CHARSET 'latin1'",
        "SET sql_mode = ''",
        "SET @@session.time_zone := '+00:00'",
        "SET SESSION group_concat_max_len = 1024 * 2",
        "SET LOCAL `div_precision_increment` = 3",
        "SET @@sql_select_limit = DEFAULT",
        "SET tx_isolation = 'READ-COMMITTED'",
        "SET @@session.transaction_isolation = 'READ-COMMITTED'",
        "SET @@local.tx_read_only = 1",
        "SET wait_timeout = 3, sql_mode = (SELECT 'ANSI'), @a = 3",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY, READ WRITE",
        "SET SESSION TRANSACTION READ",
        "SET SESSION TRANSACTION SNAPSHOT",
        "SET wait_timeout = 100",
        "SET SESSION idle_transaction_timeout = 100",
        "/*!40101 SET NAMES utf8 */",
    ] {
        set(text, Session::SettingsChanged);
    }
    for text in [
        "SET lock_wait_timeout = 100",
        "SET FOREIGN_KEY_CHECKS=0, UNIQUE_CHECKS=0",
        "SET @a = 1, @`b` := UPPER('x')",
        "SET @a = (SELECT MAX(a) FROM t)",
        "SET GLOBAL max_connections = 100",
        "SET @@global.read_only = 1",
        "SET PERSIST foo = 1",
        "SET GLOBAL TRANSACTION READ ONLY",
    ] {
        set(text, Session::None);
    }
    for text in [
        "SET sql_log_bin = 0",
        "SET SESSION binlog_format = 'STATEMENT'",
        "SET sql_mode = '', @@sql_log_bin = 0",
        "SET wsrep_on = OFF",
    ] {
        set(text, Session::BinlogOff);
    }
    for text in [
        "SET foo = 1",
        "SET time_zone = '+00:00', foo = 2",
        "SET GLOBAL a = 1, foo = 2",
    ] {
        set(text, Session::Unknown(UnknownEffect::UnknownVariable));
    }
    for text in [
        "SET",
        "SET x",
        "SET a.b = 1",
        "SET = 3",
        "SET @a = 1,",
        "SET NAMES",
    ] {
        everything(text, Why::Unreadable);
    }
    for text in [
        "SET GLOBAL binlog_format = 'ROW'",
        "SET @@global.server_id = 2",
        "SET GLOBAL gtid_slave_pos = ''",
    ] {
        everything(text, Why::Setting);
    }
}

#[test]
fn autocommit_is_told_by_the_words_if_nothing_else_is_said() {
    let set = |autocommit| {
        Session::TransactionDefaults(TransactionDefaults {
            autocommit: Some(autocommit),
            ..TransactionDefaults::default()
        })
    };
    for text in [
        "SET autocommit = 0",
        "set AUTOCOMMIT=off;",
        "SET @@autocommit = FALSE",
        "SET SESSION autocommit = 0",
        "SET @@session.autocommit := 0",
        "SET LOCAL `autocommit` = 0",
        "SET unique_checks = 0, autocommit = 0, @a = 3, lock_wait_timeout = DEFAULT",
        "/*!40101 SET autocommit = 0 */",
    ] {
        nothing(text, Kind::Set, set(false), Tx::None);
    }
    for text in [
        "SET autocommit = 1",
        "SET @@autocommit = ON",
        "SET SESSION autocommit=true",
        "SET @@local.autocommit = 1",
        "SET foreign_key_checks = 1, autocommit = 1",
    ] {
        nothing(text, Kind::Set, set(true), Tx::ImplicitCommit);
    }
    // Not this session's.
    for text in ["SET GLOBAL autocommit = 1", "SET @@global.autocommit = 0"] {
        nothing(text, Kind::Set, Session::None, Tx::None);
    }
}

#[test]
fn what_transactions_are_like_is_told_by_the_words() {
    type Level = IsolationLevel;
    for (text, isolation, read_only) in [
        ("SET SESSION TRANSACTION READ ONLY", None, Some(true)),
        ("set session transaction read write;", None, Some(false)),
        (
            "SET LOCAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            Some(Level::Serializable),
            None,
        ),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            Some(Level::RepeatableRead),
            Some(true),
        ),
        (
            "SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED",
            Some(Level::ReadCommitted),
            Some(false),
        ),
        (
            "SET SESSION /* x */ TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            Some(Level::ReadUncommitted),
            None,
        ),
    ] {
        let defaults = TransactionDefaults {
            isolation,
            read_only,
            autocommit: None,
        };
        let effect = Session::TransactionDefaults(defaults);
        nothing(text, Kind::Set, effect, Tx::None);
    }
    let first = TransactionDefaults {
        isolation: Some(Level::Serializable),
        read_only: Some(true),
        autocommit: Some(true),
    };
    let later = TransactionDefaults {
        isolation: None,
        read_only: Some(false),
        autocommit: None,
    };
    let both = TransactionDefaults {
        isolation: Some(Level::Serializable),
        read_only: Some(false),
        autocommit: Some(true),
    };
    assert_eq!(first.then(later), both);
}

#[test]
fn autocommit_with_anything_else_counts_as_a_change_of_settings() {
    let changed = Session::SettingsChanged;
    for text in [
        "SET autocommit = 0, sql_mode = ''",
        "SET NAMES utf8, autocommit = 0",
        "SET autocommit = 0, sort_buffer_size = @a + 1",
        "SET autocommit = 0, sql_mode = CONCAT(@@sql_mode, ',ANSI')",
        "SET autocommit = 0, @a = 'x'",
        "SET autocommit = OFF, GLOBAL max_connections = 1 + 1",
        // Servers differ in whether this is the session's.
        "SET GLOBAL max_connections = 100, autocommit = 0",
    ] {
        nothing(text, Kind::Set, changed, Tx::None);
    }
    for text in [
        "SET autocommit = 0 + 1",
        "SET autocommit = -0",
        "SET autocommit = 00",
        "SET autocommit = 2",
        "SET autocommit = '1'",
        "SET autocommit = `on`",
        "SET autocommit = DEFAULT",
        "SET autocommit = @a",
        "SET autocommit = ?",
        "SET autocommit = @@global.autocommit",
        "SET autocommit = (0)",
        "SET autocommit = 0, autocommit = 1",
        "SET autocommit = 1, time_zone = '+00:00'",
    ] {
        nothing(text, Kind::Set, changed, Tx::ImplicitCommit);
    }
    // A query may have read something in a transaction that the server has lost sight of.
    for (text, transaction) in [
        ("SET @a = (SELECT MAX(a) FROM t), autocommit = 0", Tx::None),
        ("SET autocommit = 0, @a = (SELECT MAX(a) FROM t)", Tx::None),
        (
            "SET autocommit = OFF, sort_buffer_size = (TABLE t)",
            Tx::None,
        ),
        (
            "SET autocommit = (SELECT MAX(a) FROM t)",
            Tx::ImplicitCommit,
        ),
        (
            "SET autocommit = EXISTS (WITH x AS (VALUES (1)) TABLE x)",
            Tx::ImplicitCommit,
        ),
    ] {
        let unknown = Session::Unknown(UnknownEffect::QueryBesideAutocommit);
        nothing(text, Kind::Set, unknown, transaction);
    }
    // A sequence is read, and what a function says counts for the next transaction only, or keeps
    // changes out of the log.
    for (text, effect) in [
        (
            "SET autocommit = 0, @a = NEXT VALUE FOR s",
            Session::Unknown(UnknownEffect::QueryBesideAutocommit),
        ),
        (
            "SET @@tx_isolation = f()",
            Session::Unknown(UnknownEffect::UnknownVariable),
        ),
        ("SET sql_log_bin = f()", Session::BinlogOff),
    ] {
        assert_eq!(default(text).session, effect, "{text}");
    }
    nothing(
        "SET autocommit = 1, sql_log_bin = 0",
        Kind::Set,
        Session::BinlogOff,
        Tx::ImplicitCommit,
    );
    for text in [
        "SET autocommit = 1, foo = 2",
        "SET autocommit = 1, @@tx_isolation = 'SERIALIZABLE'",
        "SET @@tx_read_only = 1, autocommit = 1",
    ] {
        let unknown = Session::Unknown(UnknownEffect::UnknownVariable);
        nothing(text, Kind::Set, unknown, Tx::ImplicitCommit);
    }
}

#[test]
fn set_statement_is_its_inner_statement() {
    writes(
        "SET STATEMENT max_statement_time = 1, lock_wait_timeout = 2 FOR DELETE FROM t",
        Kind::Delete,
        &["t"],
    );
    everything(
        "SET STATEMENT sql_log_bin = 0 FOR DELETE FROM t",
        Why::UnloggedSetting,
    );
    everything(
        "SET STATEMENT foo = 0 FOR DELETE FROM t",
        Why::UnloggedSetting,
    );
    // The transaction that the statement begins keeps its level.
    for lasts in [
        "SET STATEMENT tx_isolation = 'READ-COMMITTED' FOR SELECT a FROM t",
        "SET STATEMENT transaction_isolation = 'READ-COMMITTED' FOR SELECT a FROM t",
        "SET STATEMENT max_statement_time = 1 FOR CALL p()",
    ] {
        everything(lasts, Why::Unreadable);
    }
    assert!(
        default("SET STATEMENT sql_select_limit = 1 FOR SELECT a FROM t")
            .cacheable
            .is_err()
    );
}

#[test]
fn transactions() {
    let tx = |text: &str, expected| nothing(text, Kind::Transaction, Session::None, expected);
    tx("BEGIN", Tx::Begin);
    tx("begin work;", Tx::Begin);
    tx(
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        Tx::Begin,
    );
    tx("COMMIT AND CHAIN", Tx::Commit);
    tx("COMMIT WORK RELEASE", Tx::Commit);
    tx("ROLLBACK", Tx::Rollback);
    tx("ROLLBACK AND NO CHAIN", Tx::Rollback);
    tx("ROLLBACK WORK TO SAVEPOINT a", Tx::RollbackToSavepoint);
    tx("ROLLBACK TO a", Tx::RollbackToSavepoint);
    tx("SAVEPOINT a", Tx::Savepoint);
    tx("RELEASE SAVEPOINT a", Tx::Savepoint);
    for text in [
        "BEGIN NOT ATOMIC SELECT 1; END",
        "BEGIN NOT ATOMIC INSERT INTO t VALUES (1)",
    ] {
        everything(text, Why::MultipleStatements);
    }
    for (text, expected) in [
        ("XA START 'x'", Tx::Begin),
        ("XA END 'x'", Tx::None),
        ("XA PREPARE 'x'", Tx::None),
        ("XA COMMIT 'x'", Tx::Commit),
        ("XA ROLLBACK 'x'", Tx::Rollback),
    ] {
        assert_eq!(default(text).transaction, expected, "{text}");
        everything(text, Why::UnknownStatement);
    }
}

#[test]
fn what_hides_its_work_writes_everything_and_leaves_the_session_unknown() {
    for (text, why) in [
        ("CALL p(1)", Why::Procedure),
        ("EXECUTE s USING @a", Why::DynamicSql),
        ("EXECUTE IMMEDIATE 'DROP TABLE t'", Why::DynamicSql),
        ("SELECT 1; CALL p()", Why::MultipleStatements),
        ("IF 1 THEN SELECT 1; END IF", Why::MultipleStatements),
        ("BINLOG 'AAAA'", Why::UnknownStatement),
        ("CHANGE MASTER TO MASTER_HOST = 'x'", Why::UnknownStatement),
        ("START SLAVE", Why::Replication),
        ("RESET MASTER", Why::Replication),
        ("INSTALL SONAME 'x'", Why::UnknownStatement),
    ] {
        everything(text, why);
        assert!(
            matches!(default(text).session, Session::Unknown(_)),
            "{text}"
        );
        assert_eq!(default(text).transaction, Tx::ImplicitCommit, "{text}");
    }
}

#[test]
fn administration() {
    nothing("USE d", Kind::Use, Session::DefaultSchema, Tx::None);
    nothing("SHOW CREATE TABLE t", Kind::Show, Session::None, Tx::None);
    nothing("DESC t", Kind::Explain, Session::None, Tx::None);
    nothing(
        "EXPLAIN FORMAT=JSON UPDATE t SET a = 1",
        Kind::Explain,
        Session::None,
        Tx::None,
    );
    nothing(
        "EXPLAIN EXTENDED SELECT * FROM t",
        Kind::Explain,
        Session::None,
        Tx::None,
    );
    nothing(
        "EXPLAIN FOR CONNECTION 3",
        Kind::Explain,
        Session::None,
        Tx::None,
    );
    nothing("HELP 'x'", Kind::Explain, Session::None, Tx::None);
    nothing("KILL QUERY 3", Kind::Other, Session::None, Tx::None);
    nothing("CHECKSUM TABLE t", Kind::Other, Session::None, Tx::None);
    nothing(
        "PREPARE s FROM 'DELETE FROM t'",
        Kind::Prepare,
        Session::None,
        Tx::None,
    );
    nothing(
        "DEALLOCATE PREPARE s",
        Kind::Prepare,
        Session::None,
        Tx::None,
    );
    nothing("HANDLER t OPEN", Kind::Handler, Session::None, Tx::None);
    nothing(
        "LOCK TABLES t WRITE, u READ",
        Kind::Lock,
        Session::LockedTables,
        Tx::ImplicitCommit,
    );
    nothing(
        "UNLOCK TABLES",
        Kind::Lock,
        Session::UnlockedTables,
        Tx::ImplicitCommit,
    );
    for text in [
        "FLUSH STATUS",
        "FLUSH LOCAL BINARY LOGS",
        "RESET QUERY CACHE",
    ] {
        nothing(text, Kind::Flush, Session::None, Tx::ImplicitCommit);
    }
    everything("RESET QUERY CACHE, MASTER", Why::Replication);
    everything("FLUSH TABLES", Why::Flush);
    everything("FLUSH STATUS, TABLES", Why::Flush);
    for text in [
        "FLUSH PRIVILEGES",
        "FLUSH PRIVILEGES, STATUS",
        "FLUSH STATUS, PRIVILEGES",
        "FLUSH LOCAL BINARY LOGS, PRIVILEGES",
    ] {
        everything(text, Why::AccountManagement);
    }
    everything("FLUSH TABLES privileges", Why::Flush);
    everything("FLUSH BINARY LOGS, HOSTS", Why::Flush);
    everything("FLUSH TABLES WITH READ LOCK", Why::Flush);
    assert_eq!(
        default("FLUSH TABLES t WITH READ LOCK").session,
        Session::LockedTables
    );
    writes(
        "ANALYZE FORMAT=JSON UPDATE t SET a = 1",
        Kind::Update,
        &["t"],
    );
    everything("EXPLAIN ANALYZE CALL p()", Why::Unreadable);
}

#[test]
fn a_statement_that_looks_back_says_so() {
    for text in [
        "SELECT FOUND_ROWS()",
        "SELECT ROW_COUNT() FROM t",
        "SELECT @@warning_count",
        "SELECT @@session.error_count",
        "SHOW WARNINGS",
        "SHOW COUNT(*) ERRORS",
        "GET DIAGNOSTICS @n = NUMBER",
        "INSERT INTO t SELECT FOUND_ROWS()",
        "SET @a = ROW_COUNT()",
    ] {
        assert!(default(text).diagnostics, "{text}");
        assert!(default(text).cacheable.is_err(), "{text}");
    }
    assert!(!default("SHOW TABLES").diagnostics);
}

#[test]
fn nothing_but_space_and_comments_is_empty() {
    for text in ["", "  ", ";", "-- x", "/* x */ # y", "/*!40000 */"] {
        let statement = default(text);
        assert_eq!(statement.writes, Writes::Nothing, "{text}");
        assert_eq!(statement.kind, Kind::Empty, "{text}");
    }
}

#[test]
fn of_a_statement_too_long_to_be_read_only_the_kind_is_known() {
    for (text, kind) in [
        ("INSERT INTO t VALUES (1), (", Kind::Insert),
        ("SELECT * FROM t WHERE id IN (1, 2", Kind::Select),
        ("UPDATE t SET a = 'xxxxx", Kind::Update),
    ] {
        let statement = analyse_prefix(text.as_bytes(), Dialect::default());
        assert_eq!(statement.kind, kind);
        assert_eq!(statement.writes, Writes::Everything(Why::Truncated));
        assert_eq!(
            statement.session,
            Session::Unknown(UnknownEffect::Truncated)
        );
        assert!(statement.cacheable.is_err());
    }
}

#[test]
fn a_statement_that_says_nothing_else_than_that_a_transaction_begins_or_ends_is_told_apart() {
    use remora_sql::TransactionControl as Control;
    for (text, expected) in [
        ("BEGIN", Control::Begin),
        (" begin work ; ", Control::Begin),
        ("/* trace */ START TRANSACTION", Control::Begin),
        ("START TRANSACTION READ ONLY -- x", Control::BeginReadOnly),
        ("COMMIT", Control::Commit),
        ("commit work", Control::Commit),
        ("ROLLBACK;", Control::Rollback),
    ] {
        assert_eq!(default(text).control, Some(expected), "{text}");
    }
    for text in [
        "START TRANSACTION WORK",
        "START TRANSACTION READ WRITE",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT",
        "START SLAVE",
        "BEGIN NOT ATOMIC SELECT 1; END",
        "BEGIN; SELECT 1",
        "BEGIN; -- x",
        "BEGIN /*!40000 WORK */",
        "/*!99999 x */ COMMIT",
        "COMMIT AND CHAIN",
        "COMMIT RELEASE",
        "ROLLBACK TO a",
        "SAVEPOINT a",
        "XA START 'x'",
        "SELECT 1",
    ] {
        assert_eq!(default(text).control, None, "{text}");
    }
}
