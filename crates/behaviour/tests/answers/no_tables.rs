//! Statements that read no table: `SELECT 1`, as pools ask before they lend a connection.

use remora_testkit::client::ConnectOptions;

use remora_behaviour::front::{Front, assert_same};

use super::session::warm;

/// Their values follow from the text and the session's settings.
const CONSTANT: &[&str] = &[
    "SELECT 1",
    "SELECT 1 FROM DUAL",
    "select 1 /* ping */",
    "SELECT 'x', NULL, TRUE, -1.50, 1e3, 0x41, b'101', DATE '2024-02-29'",
    "SELECT UPPER('na\u{ef}ve') AS up, CONCAT('a', 2), MD5(''), 7 DIV 2, 1 / 3",
    "SELECT 1 FROM DUAL WHERE FALSE",
    "SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC LIMIT 1",
    "SELECT * FROM (SELECT 1 AS a) AS x WHERE EXISTS (SELECT 2)",
    "SELECT @@SESSION.sql_mode, 1",
];

/// The values of these depend on more, or the server is asked on purpose.
const OTHERS: &[(&str, &str)] = &[
    ("SELECT NOW()", "statement_clock_function"),
    ("SELECT CONNECTION_ID()", "statement_session_function"),
    ("SELECT VERSION()", "statement_session_function"),
    ("SELECT RAND()", "statement_random_function"),
    ("SELECT @a", "statement_user_variable"),
    ("SELECT @@version_comment", "statement_system_variable"),
    ("SELECT SQL_NO_CACHE 1", "statement_no_cache"),
    ("SELECT SQL_CALC_FOUND_ROWS 1", "statement_calc_found_rows"),
];

/// The server's answer to a client that connects like this.
fn direct_bytes_as(options: &ConnectOptions, sql: &str) -> Vec<u8> {
    let mut direct = options.connect().unwrap();
    direct.query_bytes(sql).unwrap().to_vec()
}

#[test]
fn a_select_without_tables_is_a_hit_with_the_bytes_of_a_direct_answer() {
    let front = Front::new("no_tables", &["CREATE TABLE t (a INT)"]);
    let mut guest = front.guest();
    // Whatever the client's capabilities, it gets the server's bytes.
    for sql in CONSTANT {
        warm(&front, &mut guest, sql);
        for flavour in front.flavours() {
            let expected = direct_bytes_as(&flavour, sql);
            front.guest_as(&flavour).becomes_hit(sql, &expected);
        }
    }
    for (sql, reason) in OTHERS {
        guest.always_passes(sql, reason);
    }
}

/// The settings that tell other results apart tell these apart, too.
#[test]
fn what_a_constant_means_depends_on_the_session() {
    let front = Front::new("no_tables_settings", &[]);
    for (set, other, sql) in [
        (
            "SET sql_mode = ''",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SELECT 'a\\nb'",
        ),
        (
            "SET NAMES utf8mb4",
            "SET NAMES latin1",
            "SELECT HEX('\u{e9}')",
        ),
        (
            "SET sql_select_limit = 1",
            "SET sql_select_limit = 2",
            "SELECT 1 UNION SELECT 2",
        ),
    ] {
        for set in [set, other] {
            let mut direct = front.direct();
            direct.query(set).unwrap();
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            let mut guest = front.guest();
            guest.setup(&[set]);
            guest.becomes_hit(sql, &expected);
        }
    }
}

/// The server opens no transaction for them, and makes no snapshot.
#[test]
fn inside_a_transaction_the_server_is_asked() {
    let front = Front::new(
        "no_tables_transaction",
        &[
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (a INT)",
            "INSERT INTO u VALUES (1)",
        ],
    );
    warm(&front, &mut front.guest(), "SELECT 1");
    let mut guest = front.guest();
    guest.setup(&["BEGIN"]);
    guest.always_passes("SELECT 1", "snapshot_not_made");
    front.direct().query("UPDATE t SET a = 2").unwrap();
    front.catch_up();
    // Its snapshot begins here, not with `SELECT 1`.
    assert_eq!(guest.value("SELECT a FROM t").0.as_deref(), Some("2"));
    // Once the snapshot is proven, `SELECT 1` still goes to the server.
    guest.becomes("hit", "SELECT a FROM u", None);
    guest.always_passes("SELECT 1", "no_tables_in_transaction");
    guest.setup(&["COMMIT", "SET autocommit = 0"]);
    let mut direct = front.direct();
    direct.query("SET autocommit = 0").unwrap();
    let expected = direct.query_bytes("SELECT 1").unwrap().to_vec();
    for _ in 0..3 {
        assert_eq!(guest.run("SELECT 1").bytes, expected);
    }
}

#[test]
fn what_counts_rows_counts_those_of_a_constant() {
    let front = Front::new("no_tables_counts", &[]);
    let mut guest = front.guest();
    let sql = "SELECT 1 UNION SELECT 2";
    warm(&front, &mut guest, sql);
    assert_eq!(guest.value("SELECT FOUND_ROWS()").0.as_deref(), Some("2"));
    warm(&front, &mut guest, sql);
    assert_eq!(guest.value("SELECT ROW_COUNT()").0.as_deref(), Some("-1"));
}

/// Whether a statement without tables empties the list of warnings depends on the server.
#[test]
fn warnings_from_before_a_hit_are_not_shown_after_it() {
    const READ: &str = "SELECT a FROM t";
    const OTHER: &str = "SELECT 'from memory'";
    let front = Front::new(
        "no_tables_warnings",
        &[
            "CREATE TABLE t (a INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
        ],
    );
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for sql in [READ, OTHER] {
        warm(&front, &mut guest, sql);
    }
    for left_by in ["DROP TABLE IF EXISTS nothing", "INSERT INTO t VALUES (1)"] {
        for between in [
            &[OTHER][..],
            &[READ],
            &[READ, OTHER],
            &[OTHER, READ],
            &[READ, "SELECT @a"],
            &["SELECT @a", READ, OTHER],
            &["DO 1", READ, "DO 1"],
            &[READ, "SET autocommit = 1"],
            &[READ, "BEGIN", "COMMIT"],
            &[READ, "USE no_tables_warnings"],
        ] {
            let _ = direct.query(left_by);
            let _ = guest.client().query(left_by);
            front.catch_up();
            for sql in between {
                let expected = direct.query_bytes(sql).unwrap().to_vec();
                assert_same(sql, guest.client().query_bytes(sql).unwrap(), &expected);
            }
            let expected = direct.query_bytes("SHOW WARNINGS").unwrap().to_vec();
            let seen = guest.client().query_bytes("SHOW WARNINGS").unwrap();
            assert_same(&format!("{left_by}, {between:?}"), seen, &expected);
        }
    }
    // A table's read has emptied the list, and is kept as well.
    guest.client().query(READ).unwrap();
    guest.settle();
    guest.becomes_hit(READ, direct.query_bytes(READ).unwrap());
}
