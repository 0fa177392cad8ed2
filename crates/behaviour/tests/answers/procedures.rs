//! `CALL` and `EXECUTE` as text, which can do nearly anything to a session.
//!
//! Each case is run twice, directly and through Remora, while a third session writes. Every answer
//! must be the same, whatever the code has done, and another session must not get what only this
//! one may see.

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::servers::Kind;
use remora_wire::packet::HEADER_BYTES;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

use crate::session::{READ, T, direct_bytes};

/// What each case can use besides `t`.
const SETUP: [&str; 6] = [
    "CREATE TABLE u (a INT PRIMARY KEY)",
    "INSERT INTO u VALUES (5)",
    "CREATE DATABASE IF NOT EXISTS procedures_other",
    "CREATE TABLE IF NOT EXISTS procedures_other.t (a INT PRIMARY KEY)",
    "REPLACE INTO procedures_other.t VALUES (77)",
    "CREATE PROCEDURE nothing() BEGIN END",
];

/// The rows that are read after each step, as the session's names and settings have them.
const READS: [&str; 3] = [
    READ,
    "SELECT \"a\" FROM u",
    "SELECT a, s FROM t WHERE s > ''",
];

/// Text that only MariaDB lets a procedure or `EXECUTE` run.
const ONLY_MARIADB: [&str; 4] = ["LOCK TABLES", "USE ", "BACKUP ", SEQUENCE];

const SEQUENCE: &str = "CREATE TEMPORARY SEQUENCE";

/// What runs, one statement after the other.
const CODE: [&[&str]; 35] = [
    &["DO 1"],
    &["SELECT a FROM t WHERE a = 1"],
    &["REPLACE INTO u VALUES (CONNECTION_ID())"],
    &["CREATE TEMPORARY TABLE t (x INT)"],
    &["CREATE TEMPORARY TABLE t (x INT)", "FLUSH STATUS"],
    &[
        "CREATE TEMPORARY TABLE t (x INT)",
        "INSERT INTO t VALUES (9)",
        "FLUSH LOCAL STATUS",
        "DO 1",
    ],
    &[
        "CREATE TEMPORARY TABLE t (x INT)",
        "FLUSH STATUS",
        "SET timestamp = 2000000000",
    ],
    &[
        "CREATE TEMPORARY TABLE t (x INT)",
        "SIGNAL SQLSTATE '45000'",
    ],
    &["SET autocommit = 0", "SIGNAL SQLSTATE '45000'"],
    &["SET SESSION sql_mode = 'ANSI_QUOTES'"],
    &["SET NAMES latin1"],
    &["SET SESSION sql_select_limit = 1"],
    &["SET ROLE NONE"],
    &["SET autocommit = 0"],
    &["SET autocommit = 0", "SELECT COUNT(*) FROM t"],
    &["SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    &["SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    &["START TRANSACTION", "SELECT COUNT(*) FROM t"],
    &["START TRANSACTION", "COMMIT"],
    &["ROLLBACK"],
    &["LOCK TABLES procedures_other.t READ"],
    &["USE procedures_other"],
    &["BACKUP LOCK u"],
    &["CREATE TEMPORARY SEQUENCE u"],
    // These limits cut short what the server tells of its counts.
    &[
        "SET sql_select_limit = 1",
        "CREATE TEMPORARY TABLE t (x INT)",
    ],
    &[
        "SET sql_select_limit = 2",
        "CREATE TEMPORARY TABLE t (x INT)",
    ],
    &[
        "SET sql_select_limit = 6",
        "CREATE TEMPORARY TABLE t (x INT)",
    ],
    &["SET max_join_size = 1", "CREATE TEMPORARY TABLE t (x INT)"],
    &["SET TRANSACTION READ ONLY"],
    &["SET SESSION TRANSACTION READ ONLY"],
    &["SET completion_type = 1", "BEGIN", "COMMIT"],
    &["SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1"],
    &["SELECT GET_LOCK(CONCAT('procedures', CONNECTION_ID()), 0)"],
    &["PREPARE z FROM 'SELECT 1'"],
    &["HANDLER t OPEN"],
];

/// What the session does before, and after.
const AROUND: [(&[&str], &[&str]); 3] = [
    (&[], &["COMMIT"]),
    (
        &["BEGIN", "SELECT a FROM t WHERE a = 2"],
        &["COMMIT AND CHAIN", "ROLLBACK"],
    ),
    (&["SET autocommit = 0"], &["COMMIT", "SET autocommit = 1"]),
];

/// What ends the limits that code may have set. What the server told under them must not count.
const LIMITS_END: [&str; 2] = [
    "SET sql_select_limit = DEFAULT",
    "SET max_join_size = DEFAULT",
];

/// Both ways to send what a session sends.
struct Pair<'f> {
    direct: Client,
    guest: Guest<'f>,
    case: String,
    /// Whether the last statement has failed.
    failed: bool,
}

/// The first byte of an error's payload.
const ERR: u8 = 0xff;

impl Pair<'_> {
    /// Sends a statement both ways. The answers must be the same, errors included.
    fn run(&mut self, sql: &str) {
        let expected = answer(&mut self.direct, sql);
        self.failed = expected.get(HEADER_BYTES) == Some(&ERR);
        let seen = self.guest.observe(|client| answer(client, sql));
        let what = format!("{}: {sql} ({})", self.case, seen.0);
        assert_same(&what, &seen.1, &expected);
    }

    fn run_all(&mut self, texts: &[impl AsRef<str>]) {
        for sql in texts {
            self.run(sql.as_ref());
        }
    }

    fn read(&mut self) {
        for read in READS {
            self.run(read);
        }
        // After an error it still tells of a read before. Remora may have asked something since.
        if !self.failed {
            self.run("SELECT FOUND_ROWS()");
        }
    }
}

fn answer(client: &mut Client, sql: &str) -> Vec<u8> {
    // An error is an answer as well.
    let _ = client.query_bytes(sql);
    client.answer_bytes().to_vec()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// How code can be run in a session, each way with what must stand in it before.
fn ways(code: &[&str], number: usize) -> Vec<(String, Vec<String>)> {
    let body = code.join("; ");
    let dynamic: Vec<_> = code
        .iter()
        .map(|text| {
            let text = quoted(text);
            format!("SET @q = {text}; PREPARE q FROM @q; EXECUTE q; DEALLOCATE PREPARE q")
        })
        .collect();
    let create =
        |kind: char, body: &str| format!("CREATE PROCEDURE {kind}{number}() BEGIN {body}; END");
    let executed = code.iter().flat_map(|text| {
        [
            format!("SET @q = {}", quoted(text)),
            "PREPARE q FROM @q".to_owned(),
            "EXECUTE q".to_owned(),
        ]
    });
    vec![
        (create('p', &body), vec![format!("CALL p{number}()")]),
        (
            create('d', &dynamic.join("; ")),
            vec![format!("CALL d{number}()"), "CALL nothing()".to_owned()],
        ),
        (String::new(), executed.collect()),
    ]
}

#[test]
fn after_code_that_is_not_seen_a_session_reads_what_the_server_would_give_it() {
    let front = Front::new("procedures", &[&T[..], &SETUP].concat());
    let kind = front.server().kind();
    let mut writer = front.direct();
    let mut other = front.guest();
    let (first, mut next) = (10, 10);
    for (number, code) in CODE.into_iter().enumerate() {
        let begins_with = |word: &&str| code.iter().any(|text| text.starts_with(*word));
        // 11.4 logs this so that, without PROCESS, everything is fenced from then on.
        let is_fenced = kind == Kind::MariaDb114 && begins_with(&SEQUENCE);
        if kind.is_mysql() && ONLY_MARIADB.iter().any(begins_with) || is_fenced {
            continue;
        }
        for (create, texts) in ways(code, number) {
            // Some code may stand in no procedure.
            if !create.is_empty() && writer.query(&create).is_err() {
                continue;
            }
            for (before, after) in AROUND {
                front.catch_up();
                let mut pair = Pair {
                    direct: front.direct(),
                    guest: front.guest(),
                    case: format!("{kind:?}, {before:?}, {texts:?} of {code:?}"),
                    failed: false,
                };
                for read in READS {
                    let expected = answer(&mut pair.direct, read);
                    pair.guest.becomes("hit", read, Some(&expected));
                }
                pair.run_all(before);
                // Which this session may see or not, before it is committed and after.
                writer.query("BEGIN").unwrap();
                let insert = format!("INSERT INTO t VALUES ({next}, 'late')");
                writer.query(&insert).unwrap();
                next += 1;
                pair.run_all(&texts);
                // Before the last of several, Remora asks what those before it have done.
                let asks_for_rows = if texts.len() == 1 {
                    "FOUND_ROWS(), "
                } else {
                    ""
                };
                pair.run(&format!("SELECT {asks_for_rows}ROW_COUNT()"));
                pair.read();
                pair.read();
                writer.query("ROLLBACK").unwrap();
                writer.query(&insert).unwrap();
                front.catch_up();
                pair.read();
                pair.read();
                pair.run_all(after);
                pair.read();
                pair.read();
                pair.run_all(&LIMITS_END);
                pair.read();
                pair.read();
                for read in READS {
                    let truth = direct_bytes(&front, read);
                    assert_same(&pair.case, &other.run(read).bytes, &truth);
                }
                drop(pair);
                // An answer tells whether an index was used, which depends on the number of rows.
                writer.query("DELETE FROM t WHERE s = 'late'").unwrap();
            }
        }
    }
    // Each case inserts one row. If fewer ran, the server refused to create the procedures.
    assert!(next - first >= 150, "{} cases", next - first);
}

#[test]
fn memory_answers_a_session_again_after_a_call_or_an_executed_text() {
    let setup = ["CREATE PROCEDURE p() SELECT 1"];
    let front = Front::new("after_calls", &[&T[..], &setup].concat());
    let all = direct_bytes(&front, READ);
    let mut guest = front.guest();
    for texts in [
        &["CALL p()"][..],
        &["PREPARE q FROM 'SELECT 2'", "EXECUTE q"],
        &[
            "SET @a = 1",
            "PREPARE q FROM 'SELECT ?'",
            "EXECUTE q USING @a",
        ],
    ] {
        guest.becomes_hit(READ, &all);
        guest.setup(texts);
        // The first read afterwards may be of another isolation level, for all that is known.
        assert_eq!(guest.run(READ).outcome, "next_transaction_differs");
        guest.becomes_hit(READ, &all);
    }
    guest.setup(&["BEGIN", "CALL p()"]);
    guest.always_passes(READ, "next_transaction_differs");
    guest.setup(&["COMMIT"]);
    guest.becomes_hit(READ, &all);
}

#[test]
fn a_session_passes_through_after_code_that_may_have_left_something() {
    let setup = [
        "CREATE PROCEDURE p() BEGIN END",
        "CREATE PROCEDURE creates() BEGIN CREATE TEMPORARY TABLE x (a INT); DROP TABLE x; END",
        "CREATE PROCEDURE flushes() BEGIN CREATE TEMPORARY TABLE x (a INT); FLUSH STATUS; END",
        "CREATE PROCEDURE locks() FLUSH TABLES t",
        "CREATE PROCEDURE x() BEGIN XA START 'remora'; XA END 'remora'; XA ROLLBACK 'remora'; END",
    ];
    let front = Front::new("leaving_calls", &[&T[..], &setup].concat());
    let all = direct_bytes(&front, READ);
    for (texts, why) in [
        (
            &["LOCK TABLES t READ", "CALL p()", "UNLOCK TABLES"][..],
            "session_unknown",
        ),
        (&["CALL x()"], "session_unknown"),
        (&["CALL locks()"], "session_unknown"),
        (&["CALL creates()"], "temporary_tables"),
        (&["CALL flushes()"], "temporary_tables"),
    ] {
        // On a slow machine privileges can count as changed meanwhile, which is a reason of its
        // own: then another session is tried.
        let other = "session_unknown";
        let guest = wait_for("a session with this reason", PATIENCE, || {
            let mut guest = front.guest();
            guest.becomes_hit(READ, &all);
            guest.setup(texts);
            let reason = wait_for("a reason that stays", PATIENCE, || {
                let seen = guest.run(READ).outcome;
                assert_ne!(seen, "hit", "{texts:?}");
                Ok([why, other].contains(&seen).then_some(seen))
            })?;
            Ok((reason == why).then_some(guest))
        });
        guest.unwrap().always_passes(READ, why);
    }
}
