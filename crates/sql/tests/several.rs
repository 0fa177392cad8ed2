//! What several statements in one text do.
//!
//! Servers: none
//! Load: waits

mod common;

use common::{default, everything, nothing};
use remora_sql::{
    EverythingReason as Why, SessionEffect as Session, StatementKind as Kind, Transaction as Tx,
    Writes,
};

#[test]
fn several_statements_in_one_text_do_what_each_of_them_does() {
    for text in [
        "SELECT 1; SELECT 2",
        "SELECT a FROM t; ; SHOW TABLES;",
        "SET @a = 1; SELECT @a; DO 1",
        "SELECT ';' FROM t /* ; */; SELECT `;` FROM t -- ;",
        "(SELECT a FROM t); SELECT a FROM t FOR UPDATE",
    ] {
        nothing(text, Kind::Multi, Session::None, Tx::None);
    }
    for text in [
        "INSERT INTO t VALUES (1); SELECT LAST_INSERT_ID()",
        "SELECT 1; UPDATE t SET a = 1; DELETE FROM u",
    ] {
        everything(text, Why::MultipleStatements);
        assert_eq!(default(text).session, Session::None, "{text}");
        assert_eq!(default(text).transaction, Tx::None, "{text}");
    }
    for text in [
        "SET NAMES utf8mb4; SET SESSION sql_mode = '';",
        "SET time_zone = '+00:00'; SET group_concat_max_len = 1000",
        "SET NAMES utf8mb4; SET @a = 1; SET SESSION lock_wait_timeout = 5",
        "SET SESSION wait_timeout = DEFAULT; SET NAMES utf8",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET NAMES utf8",
    ] {
        nothing(text, Kind::Multi, Session::SettingsChanged, Tx::None);
    }
    let lock = "SELECT GET_LOCK('a', 1); SELECT 1";
    assert_eq!(default(lock).session, Session::UserLock);
}

/// What one of them asks about another of them is the server's own affair.
#[test]
fn a_text_asks_about_the_statement_before_it_if_a_part_of_it_can() {
    for (text, asks) in [
        ("SELECT ROW_COUNT(); SELECT 1", true),
        ("SET @a = 1; SELECT FOUND_ROWS()", true),
        ("DO 1; SELECT Found_Rows()", true),
        ("SET @a = 1; SELECT ROW_COUNT()", false),
        ("INSERT INTO t VALUES (1); DO 1; SELECT FOUND_ROWS()", true),
        ("INSERT INTO t VALUES (1); SELECT ROW_COUNT()", false),
        ("SELECT a FROM t; SELECT FOUND_ROWS()", false),
        ("SELECT 1; SHOW WARNINGS", true),
        ("SET @a = 1; SELECT @@warning_count", true),
        ("SELECT a FROM t; SHOW WARNINGS", false),
        ("SELECT 1; SELECT 2", false),
    ] {
        assert_eq!(default(text).diagnostics, asks, "{text}");
    }
}

#[test]
fn several_statements_in_one_text_may_do_anything_if_one_of_them_may() {
    let many = "SELECT 1;".repeat(64);
    let fewer = "SELECT 1;".repeat(63);
    nothing(&fewer, Kind::Multi, Session::None, Tx::None);
    for text in [
        "SELECT 1; SELECT f()",
        "SELECT 1; BEGIN",
        "SELECT 1; COMMIT; SELECT 2",
        "SELECT 1; CREATE TABLE t (a INT)",
        "SELECT 1; USE d",
        "SELECT 1; SET TRANSACTION READ ONLY",
        "SELECT 1; SET PASSWORD = 'x'",
        "SELECT 1; PREPARE s FROM 'SELECT 1'",
        "SELECT 1; LOCK TABLES t READ",
        "SELECT 1; KILL 5",
        "SELECT 1; nonsense",
        // What stands behind it may be read otherwise.
        "SET NAMES gbk; SELECT 1",
        "SET sql_mode = 'ANSI_QUOTES'; SELECT 1",
        "SET sql_mode = ''; SET NAMES 'utf8\u{e9}'",
        "SET NAMES utf8; SET @a = (SELECT 1)",
        "SET NAMES utf8; SET @a = \"x\"",
        "SET NAMES utf8; SET autocommit = 1",
        "SET NAMES utf8; SET ROLE r",
        "SET NAMES utf8; SET SESSION query_cache_type = OFF",
        "SET NAMES utf8; SET sql_log_bin = 0",
        // Where it ends isn't certain.
        "SELECT 1 /*! ; DROP TABLE t */",
        "SELECT 1 /*!99999 ; DROP TABLE t */; SELECT 2",
        "SELECT 1; SELECT 'a",
        // Bodies of code.
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
        "BEGIN NOT ATOMIC SELECT 1 END",
        "IF 1 THEN SELECT 1; END IF",
        "WHILE 1 DO SELECT 1; END WHILE",
        many.as_str(),
    ] {
        let statement = default(text);
        assert!(matches!(statement.writes, Writes::Everything(_)), "{text}");
        assert!(matches!(statement.session, Session::Unknown(_)), "{text}");
        assert_eq!(statement.transaction, Tx::ImplicitCommit, "{text}");
    }
}
