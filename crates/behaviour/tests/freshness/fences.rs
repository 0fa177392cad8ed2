//! A client that has the answer to its write never reads what was before, while the log that tells
//! Remora of the write is held back: only the fence protects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use remora_testkit::client::{ConnectOptions, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};

/// Reads of rows 1 and 2, as text.
const READS: [&str; 10] = [
    "SELECT v FROM t WHERE id = 1",
    "SELECT v FROM t WHERE id = 2",
    "SELECT * FROM t WHERE id IN (1, 2, 40)",
    "SELECT v FROM t WHERE id BETWEEN 1 AND 30",
    "SELECT SUM(v) FROM t",
    "SELECT COUNT(*) FROM t",
    "SELECT id FROM t WHERE k = 1 ORDER BY id",
    "SELECT id FROM t WHERE name = 'one' ORDER BY id",
    "SELECT t.v FROM t JOIN u ON u.id = t.id WHERE t.id = 1",
    "SELECT v FROM t WHERE v > 0 ORDER BY id",
];

/// Writes to them, with the values that are bound to each.
fn writes(kind: Kind) -> Vec<(&'static str, Vec<Value>)> {
    let text = |text: &str| Value::Text(text.as_bytes().to_vec());
    let mut writes = vec![
        ("UPDATE t SET v = v + 1 WHERE id = 1", vec![]),
        (
            "UPDATE t SET v = v + 1, name = 'two' WHERE id IN (1, 2)",
            vec![],
        ),
        ("UPDATE t SET k = k + 1, name = 'one' WHERE id = 2", vec![]),
        (
            "UPDATE t SET v = ? WHERE id = ?",
            vec![Value::Int(77), Value::Int(1)],
        ),
        (
            "UPDATE t SET v = ? WHERE id = ?",
            vec![text("78"), text("2")],
        ),
        ("UPDATE t SET v = v + 1 WHERE name = 'ONE'", vec![]),
        ("DELETE FROM t WHERE id = 2", vec![]),
        ("INSERT INTO t VALUES (2, 1, 1, 'one')", vec![]),
        (
            "INSERT INTO t (v, id, k, name) VALUES (?, ?, 1, 'x')",
            vec![Value::Int(5), Value::Int(3)],
        ),
        ("UPDATE t SET id = 90 WHERE id = 2", vec![]),
        ("REPLACE INTO t VALUES (1, 9, 1, 'one')", vec![]),
        ("UPDATE t SET v = v + 1", vec![]),
    ];
    if kind == Kind::MySql80 {
        // What the name stands for isn't understood.
        writes.extend([
            (
                "WITH n (id, v) AS (VALUES ROW(1, 10)) UPDATE t JOIN n USING (id) SET t.v = n.v",
                vec![],
            ),
            (
                "WITH n AS (TABLE u) DELETE FROM t WHERE id IN (SELECT id FROM n) AND v > ?",
                vec![Value::Int(0)],
            ),
        ]);
    }
    writes
}

fn run(guest: &mut Guest<'_>, sql: &str, values: &[Value]) {
    if values.is_empty() {
        return guest.setup(&[sql]);
    }
    let client = guest.client();
    let statement = client.prepare(sql.as_bytes()).unwrap();
    // The second time the types are remembered.
    let times = if sql.starts_with("INSERT") { 1 } else { 2 };
    for _ in 0..times {
        let answer = client.execute(statement, values).unwrap();
        assert_ne!(answer.bytes().get(4), Some(&0xff), "{sql} fails");
    }
}

#[test]
fn no_kind_of_read_is_older_than_any_kind_of_write() {
    let (front, gate) = Front::behind_gate(
        lease(),
        "fences",
        RemoraOptions::following(),
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, k INT, name VARCHAR(20), KEY (k))",
            "INSERT INTO t VALUES (1, 1, 1, 'one'), (2, 2, 1, 'two'), (40, 4, 4, 'four')",
            "CREATE TABLE u (id INT PRIMARY KEY)",
            "INSERT INTO u VALUES (1), (2)",
        ],
    );
    let (mut reader, mut writer) = (front.guest(), front.guest());
    for (sql, values) in writes(front.server().kind()) {
        for read in READS {
            let before = front.direct().query_bytes(read).unwrap().to_vec();
            reader.becomes_hit(read, &before);
        }
        gate.hold(true);
        run(&mut writer, sql, &values);
        for read in READS {
            let after = front.direct().query_bytes(read).unwrap().to_vec();
            let seen = reader.run(read);
            assert_same(
                &format!("{read} after {sql}: {}", seen.outcome),
                &seen.bytes,
                &after,
            );
        }
        gate.hold(false);
    }
}

/// Statements of which the last writes what can't be seen at a glance, each with a global
/// `sql_mode`. `f` writes, as do functions that are called like the words which the server doesn't
/// know.
fn hidden_writes(has_hint: bool, has_windows: bool) -> Vec<(&'static str, Vec<&'static [u8]>)> {
    let mut hidden: Vec<(&str, Vec<&[u8]>)> = vec![
        ("ANSI_QUOTES", vec![br#"DO "f"(1)"#]),
        ("ANSI_QUOTES", vec![br#"SELECT "f"(1)"#]),
        ("NO_BACKSLASH_ESCAPES", vec![br"DO '\', f(1), ' -- '"]),
        (
            "NO_BACKSLASH_ESCAPES",
            vec![br"SELECT NOW(), '\', f(1), ' -- '"],
        ),
        // The two first bytes of the string are one character.
        (
            "",
            vec![b"SET NAMES sjis", b"DO '\x95\x5c\\'', f(1), ' -- '"],
        ),
        // So they are if no text has said it. What a routine sets ends with it.
        (
            "",
            vec![
                b"PREPARE s FROM 'SET NAMES sjis'",
                b"EXECUTE s",
                b"DO '\x95\x5c\\'', f(1), ' -- '",
            ],
        ),
        // What only the server sees of several statements changes how the next is read.
        (
            "",
            vec![
                b"SELECT v FROM t",
                b"SELECT 1; SET sql_mode = 'ANSI_QUOTES'",
                br#"DO "f"(1)"#,
            ],
        ),
        (
            "",
            vec![
                b"USE fences_of_hidden_other",
                b"SELECT v FROM t",
                b"SELECT 1; USE fences_of_hidden",
                b"UPDATE t SET v = v + 1",
            ],
        ),
        (
            "",
            vec![
                b"LOCK TABLES t WRITE",
                b"SELECT 1; SET sql_mode = 'ANSI_QUOTES'",
                b"UNLOCK TABLES",
                br#"DO "f"(1)"#,
            ],
        ),
        (
            "",
            vec![b"BEGIN", b"UPDATE t SET v = v + 1", b"RESET QUERY CACHE"],
        ),
    ];
    if !has_hint {
        hidden.push(("", vec![b"SELECT SQL_CACHE(1)"]));
    }
    if !has_windows {
        hidden.push(("", vec![b"DO over(1)"]));
    }
    hidden
}

/// Functions that write, called in ways that not every server and every `sql_mode` takes for a
/// call; and what commits a write without looking like it.
#[test]
fn no_read_is_older_than_a_write_that_is_hard_to_see() {
    let server = lease();
    let body = "(a INT) RETURNS INT BEGIN UPDATE t SET v = v + 1 WHERE id = 1; RETURN a; END";
    let identified = server.kind().identified_by("plain-password");
    let mut setup = vec![
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)".to_owned(),
        "INSERT INTO t VALUES (1, 1)".to_owned(),
        "SET GLOBAL log_bin_trust_function_creators = 1".to_owned(),
        format!("CREATE USER plain@'%' {identified}"),
        "GRANT ALL ON fences_of_hidden.* TO plain@'%'".to_owned(),
        "CREATE DATABASE fences_of_hidden_other".to_owned(),
        "CREATE TABLE fences_of_hidden_other.t (id INT PRIMARY KEY, v INT)".to_owned(),
        "GRANT ALL ON fences_of_hidden_other.* TO plain@'%'".to_owned(),
    ];
    let (has_hint, has_windows) = match server.kind() {
        Kind::MySql80 => (false, true),
        Kind::MySql57 | Kind::MySql56 => (true, false),
        _ => (true, true),
    };
    let mut names = vec!["f"];
    if !has_hint {
        names.push("sql_cache");
    }
    if !has_windows {
        names.push("over");
    }
    setup.extend(
        names
            .iter()
            .map(|name| format!("CREATE FUNCTION {name}{body}")),
    );
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let options = RemoraOptions::following();
    let (front, gate) =
        Front::behind_gate(Arc::clone(&server), "fences_of_hidden", options, &setup);
    let mut reader = front.guest();
    let read = "SELECT v FROM t WHERE id = 1";

    let hidden = hidden_writes(has_hint, has_windows);
    let plain =
        ConnectOptions::new(server.address(), "plain", "plain-password").schema("fences_of_hidden");
    let alone = ConnectOptions {
        without: Capabilities::MULTI_STATEMENTS,
        ..plain.clone()
    };
    let mut root = server.root().unwrap();
    let all = hidden.iter().flat_map(|(mode, statements)| {
        let is_batch = |text: &&[u8]| text.starts_with(b"SELECT 1;");
        let alone = (!statements.iter().any(is_batch)).then_some(&alone);
        alone
            .into_iter()
            .chain([&plain])
            .map(move |options| (mode, statements, options))
    });
    for (mode, statements, options) in all {
        let before = front.direct().query_bytes(read).unwrap().to_vec();
        // A session begins with the global mode, of which nothing has told Remora when its first
        // statement comes.
        let modes = [*mode, ""].map(|mode| format!("SET GLOBAL sql_mode = '{mode}'"));
        root.query(&modes[0]).unwrap();
        let mut writer = front.guest_as(options);
        root.query(&modes[1]).unwrap();
        let (last, first) = statements.split_last().unwrap();
        for statement in first {
            let answer = writer.command(0x03, statement, ResponseKind::Results);
            assert_ne!(answer.bytes.get(4), Some(&0xff));
        }
        reader.becomes_hit(read, &before);
        gate.hold(true);
        // Without the privilege `RELOAD`, what resets the query cache commits all the same.
        let answer = writer.command(0x03, last, ResponseKind::Results);
        let is_refused = answer.bytes.get(4) == Some(&0xff);
        let what = String::from_utf8_lossy(last);
        assert_eq!(is_refused, what.starts_with("RESET"), "{what}");
        let after = front.direct().query_bytes(read).unwrap().to_vec();
        assert_ne!(after, before, "{what} writes");
        let seen = reader.run(read);
        let what = format!("{what} under {mode:?}: {}", seen.outcome);
        assert_same(&what, &seen.bytes, &after);
        gate.hold(false);
    }
}

#[test]
fn a_write_that_calls_built_in_functions_fences_only_its_table() {
    let (front, gate) = Front::behind_gate(
        lease(),
        "fences_of_calls",
        RemoraOptions::following(),
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))",
            "CREATE TABLE u (id INT PRIMARY KEY)",
            "INSERT INTO u VALUES (1), (2)",
        ],
    );
    let (mut reader, mut writer) = (front.guest(), front.guest());
    let (written, other) = ("SELECT id, v FROM t ORDER BY id", "SELECT id FROM u");
    // Remora asks for a session's settings, the default schema among them, before its first read or
    // write; but not before one that looks back at the statement before it, which must be the
    // client's own.
    writer.run(other);
    let expected = front.direct().query_bytes(other).unwrap().to_vec();
    for call in [
        "ROW_COUNT()",
        "FOUND_ROWS()",
        "LAST_INSERT_ID()",
        "CONNECTION_ID()",
        "USER()",
        "UUID()",
    ] {
        for read in [written, other] {
            let before = front.direct().query_bytes(read).unwrap().to_vec();
            reader.becomes_hit(read, &before);
        }
        gate.hold(true);
        writer.setup(&[&format!(
            "INSERT INTO t SELECT 1, CONCAT({call}, '-', NOW(6)) FROM DUAL WHERE {call} IS NOT NULL \
             ON DUPLICATE KEY UPDATE v = CONCAT({call}, '-', UUID())"
        )]);
        let after = front.direct().query_bytes(written).unwrap().to_vec();
        let seen = reader.run(written);
        assert_same(&format!("{written} after {call}"), &seen.bytes, &after);
        assert_ne!(seen.outcome, "hit", "{call}");
        reader.still_hits(other, &expected);
        gate.hold(false);
    }
}

/// A server sends heartbeats while it begins the next file of its log. One of them once moved the
/// follower past everything in that file, so that fences were lowered before their writes had been
/// seen.
#[test]
fn no_read_is_older_than_a_write_in_a_file_that_was_begun_slowly() {
    let options = RemoraOptions::following().with("follow.heartbeat_ms", "5");
    let setup = [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 0)",
        "CREATE TABLE long_rows (v LONGBLOB)",
    ];
    let (front, gate) = Front::behind_gate(lease(), "slow_file", options, &setup);
    let (mut reader, mut writer, mut direct) = (front.guest(), front.guest(), front.direct());
    let timeline = &front.remora().app().unwrap().shared().timeline;
    let read = "SELECT v FROM t WHERE id = 1";
    for _ in 0..3 {
        for _ in 0..5 {
            direct
                .query("INSERT INTO long_rows VALUES (REPEAT('x', 6000000))")
                .unwrap();
        }
        let before = direct.query_bytes(read).unwrap().to_vec();
        reader.becomes_hit(read, &before);
        let file = timeline.applied().file_number();
        direct.query("FLUSH BINARY LOGS").unwrap();
        wait_for("the next file", PATIENCE, || {
            Ok((timeline.applied().file_number() > file).then_some(()))
        })
        .unwrap();
        gate.hold(true);
        writer.setup(&["UPDATE t SET v = v + 1 WHERE id = 1"]);
        let after = direct.query_bytes(read).unwrap().to_vec();
        // Until the fence is taken, its position asked for, and the fence lowered, if it is.
        for _ in 0..20 {
            let seen = reader.run(read);
            assert_same(seen.outcome, &seen.bytes, &after);
        }
        gate.hold(false);
    }
}

/// Each question costs the server time, so it is asked only as often as reads need it.
#[test]
fn while_no_read_is_turned_away_the_server_is_asked_seldom() {
    const WRITES: usize = 3_000;
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind == Kind::MySql56,
        "there, each commit takes several questions",
    ) {
        return;
    }
    let setup = [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 0), (2, 0)",
    ];
    let front = Front::new("asked_seldom", &setup);
    let (mut writer, mut reader) = (front.guest(), front.guest());
    let read = "SELECT v FROM t WHERE id = 1";
    reader.becomes_hit(read, front.direct().query_bytes(read).unwrap());
    writer.run("UPDATE t SET v = v + 1 WHERE id = 1");
    front.catch_up();
    let upstream = &front.remora().app().unwrap().shared().upstream;
    let asks = || upstream.counters.asks.load(Ordering::Relaxed);

    let (began, before) = (Instant::now(), asks());
    for _ in 0..WRITES {
        let written = writer.client().query("UPDATE t SET v = v + 1 WHERE id = 1");
        written.unwrap();
    }
    let (took, asked) = (began.elapsed(), asks() - before);
    // One for each 10 ms. At the beginning one for each millisecond, for 100 of them.
    let most = u64::try_from(took.as_millis() / 10).unwrap() + 130;
    assert!(asked <= most, "{asked} times in {took:?}");

    let after = front.direct().query_bytes(read).unwrap().to_vec();
    reader.becomes_hit(read, &after);
}
