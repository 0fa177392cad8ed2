//! Prepared statements of the binary protocol, answered from memory.

use std::io::Write as _;
use std::slice;

use remora_testkit::client::{Client, ClientError};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;
use remora_wire::reader::put_length;

use remora_behaviour::front::{Front, Guest, PATIENCE, PING, assert_same};
use remora_behaviour::outcome::is_unproven;

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40), d DATETIME)",
    "INSERT INTO t VALUES (1, 'one', '2024-01-01 10:00:00'), (2, 'two', NULL), (3, NULL, NULL), (10, 'ten', NULL)",
];
const BY_KEY: &str = "SELECT a, s FROM t WHERE a = ?";
const BY_TEXT: &str = "SELECT a, s FROM t WHERE s = ?";
const ALL: &str = "SELECT * FROM t";
/// Uses a table, so that the server empties its list of warnings and hits are possible again.
const EMPTIES_WARNINGS: &str = "SELECT COUNT(*) FROM t";

pub(crate) const PREPARE: u8 = 0x16;
pub(crate) const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;
const RESET: u8 = 0x1a;
const FETCH: u8 = 0x1c;
const READ_ONLY_CURSOR: u8 = 1;

/// A parameter's value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Double(f64),
    Text(String),
    /// A time of ten o'clock.
    TenOClock,
}

use Value::{Double, Int, Null, TenOClock};

pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

impl Value {
    fn type_code(&self) -> u8 {
        match self {
            Null => 0x06,
            Int(_) => 0x08,
            Double(_) => 0x05,
            Value::Text(_) => 0xfd,
            TenOClock => 0x0b,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Null => {}
            Int(number) => out.extend(number.to_le_bytes()),
            Double(number) => out.extend(number.to_le_bytes()),
            Value::Text(text) => {
                match u16::try_from(text.len()) {
                    // Longer than it must be, so that a text of five bytes takes eight.
                    Ok(length) => {
                        out.push(0xfc);
                        out.extend(length.to_le_bytes());
                    }
                    Err(_) => put_length(out, text.len() as u64),
                }
                out.extend(text.as_bytes());
            }
            TenOClock => out.extend([8, 0, 0, 0, 0, 0, 10, 0, 0]),
        }
    }
}

/// Whether an execution says what types its values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Types {
    Named,
    Remembered,
}

pub(crate) fn execution(id: u32, values: &[Value], types: Types, cursor: u8) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend([cursor, 1, 0, 0, 0]);
    if !values.is_empty() {
        let mut nulls = vec![0; values.len().div_ceil(8)];
        for (at, value) in values.iter().enumerate() {
            nulls[at / 8] |= u8::from(matches!(value, Null)) << (at % 8);
        }
        body.extend(nulls);
        body.push(u8::from(types == Types::Named));
        if types == Types::Named {
            body.extend(values.iter().flat_map(|value| [value.type_code(), 0]));
        }
        for value in values {
            value.put(&mut body);
        }
    }
    body
}

/// The statement's number in the answer to a preparation.
pub(crate) fn number_in(answer: &[u8]) -> u32 {
    assert_eq!(answer[4], 0, "not prepared: {answer:?}");
    u32::from_le_bytes(*answer[5..].first_chunk().unwrap())
}

pub(crate) fn prepare(guest: &mut Guest<'_>, sql: &str) -> u32 {
    number_in(
        &guest
            .command(PREPARE, sql.as_bytes(), ResponseKind::Prepared)
            .bytes,
    )
}

/// Executes. On a busy machine the last proof can be too old for a moment; then once more.
pub(crate) fn run(
    guest: &mut Guest<'_>,
    id: u32,
    values: &[Value],
    types: Types,
) -> (&'static str, Vec<u8>) {
    let body = execution(id, values, types, 0);
    let proven = wait_for("the follower to be proven", PATIENCE, || {
        let seen = guest.command(EXECUTE, &body, ResponseKind::Results);
        Ok((!is_unproven(seen.outcome)).then_some((seen.outcome, seen.bytes)))
    });
    proven.unwrap()
}

/// Sends a command that has no answer.
fn send(guest: &mut Guest<'_>, byte: u8, body: &[u8]) {
    let mut message = Vec::new();
    put_message(&mut message, 0, &[&[byte], body].concat());
    let (outcome, written) = guest.observe(|client| client.stream().write_all(&message));
    written.unwrap();
    assert_eq!(outcome, "not_a_query");
}

pub(crate) fn command(client: &mut Client, byte: u8, body: &[u8], expect: ResponseKind) -> Vec<u8> {
    match client.command(byte, body, expect) {
        Ok(_) | Err(ClientError::Server(_)) => client.answer_bytes().to_vec(),
        Err(error) => panic!("{error}"),
    }
}

/// What the server itself answers.
fn truth(front: &Front, sql: &str, values: &[Value]) -> Vec<u8> {
    let mut direct = front.direct();
    let id = number_in(&command(
        &mut direct,
        PREPARE,
        sql.as_bytes(),
        ResponseKind::Prepared,
    ));
    let body = execution(id, values, Types::Named, 0);
    command(&mut direct, EXECUTE, &body, ResponseKind::Results)
}

/// Executes until memory answers; every answer on the way must be the server's.
fn warm(front: &Front, guest: &mut Guest<'_>, sql: &str, values: &[Value]) {
    let expected = truth(front, sql, values);
    let id = prepare(guest, sql);
    let mut last = "";
    let result = wait_for("a hit", PATIENCE, || {
        let (outcome, bytes) = run(guest, id, values, Types::Named);
        assert_same(sql, &bytes, &expected);
        last = outcome;
        Ok((outcome == "hit").then_some(()))
    });
    result.unwrap_or_else(|error| panic!("{sql} {values:?}: {last}: {error}"));
    send(guest, CLOSE, &id.to_le_bytes());
}

#[test]
fn what_one_session_executed_another_finds_by_text_types_and_values() {
    let front = Front::new("prepared_hits", &T);
    let mut one = front.guest();
    let cases = [
        (BY_KEY, vec![Int(1)]),
        (BY_KEY, vec![Int(2)]),
        (BY_KEY, vec![text("1")]),
        (BY_KEY, vec![Null]),
        (BY_TEXT, vec![text("two")]),
        (BY_TEXT, vec![Int(0)]),
        (ALL, vec![]),
        (
            "SELECT ?, a + ?, s FROM t ORDER BY a LIMIT ?",
            vec![text("x"), Int(5), Int(2)],
        ),
        ("SELECT ?, 1", vec![Int(5)]),
        ("SELECT ?, 1", vec![text("5")]),
    ];
    for (sql, values) in &cases {
        // Some comparisons of different types leave warnings, and then there is nothing to find.
        if !matches!(values[..], [Int(0)]) {
            warm(&front, &mut one, sql, values);
        }
    }
    let mut other = front.guest();
    for (sql, values) in &cases {
        other.setup(&[EMPTIES_WARNINGS]);
        let expected = truth(&front, sql, values);
        let id = prepare(&mut other, sql);
        let (outcome, bytes) = run(&mut other, id, values, Types::Named);
        assert_same(sql, &bytes, &expected);
        assert_eq!(
            outcome == "hit",
            !matches!(values[..], [Int(0)]),
            "{sql} {values:?}: {outcome}"
        );
        send(&mut other, CLOSE, &id.to_le_bytes());
    }
}

#[test]
fn the_same_text_has_one_answer_as_text_and_another_in_binary() {
    let front = Front::new("prepared_formats", &T);
    let mut guest = front.guest();
    let as_text = front.direct().query_bytes(ALL).unwrap().to_vec();
    warm(&front, &mut guest, ALL, &[]);
    guest.becomes_hit(ALL, &as_text);
    warm(&front, &mut guest, ALL, &[]);
    guest.becomes_hit(ALL, &as_text);
}

#[test]
fn a_write_is_never_followed_by_the_old_row() {
    let front = Front::new("prepared_fresh", &T);
    let (mut reader, mut writer) = (front.guest(), front.direct());
    let mut through = front.guest();
    let read = prepare(&mut reader, BY_KEY);
    let write = prepare(&mut through, "UPDATE t SET s = ? WHERE a = ?");
    let mut hits = 0;
    for round in 0..200 {
        warm(&front, &mut reader, BY_KEY, &[Int(1)]);
        hits += u32::from(run(&mut reader, read, &[Int(1)], Types::Named).0 == "hit");
        let new = format!("value {round}");
        if round % 20 == 19 {
            // Elsewhere: the log tells of it, in a while.
            writer
                .query(&format!("UPDATE t SET s = '{new}' WHERE a = 1"))
                .unwrap();
            let expected = truth(&front, BY_KEY, &[Int(1)]);
            wait_for("the new row", PATIENCE, || {
                Ok(
                    (run(&mut reader, read, &[Int(1)], Types::Remembered).1 == expected)
                        .then_some(()),
                )
            })
            .unwrap();
        } else {
            let written = run(&mut through, write, &[text(&new), Int(1)], Types::Named);
            assert_eq!(written.0, "write");
            let expected = truth(&front, BY_KEY, &[Int(1)]);
            let seen = run(&mut reader, read, &[Int(1)], Types::Remembered);
            assert_same("after a write through Remora", &seen.1, &expected);
        }
    }
    // A busy machine makes proofs old now and then.
    assert!(hits >= 100, "{hits} hits");
}

#[test]
fn the_server_learns_the_types_that_only_memory_has_seen() {
    let front = Front::new("prepared_types", &T);
    warm(&front, &mut front.guest(), BY_KEY, &[text("1")]);
    let mut guest = front.guest();
    let id = prepare(&mut guest, BY_KEY);
    assert_eq!(run(&mut guest, id, &[text("1")], Types::Named).0, "hit");
    // The server has never heard of this statement's types.
    for value in ["2", "10", "2"] {
        let (_, bytes) = run(&mut guest, id, &[text(value)], Types::Remembered);
        assert_same(value, &bytes, &truth(&front, BY_KEY, &[text(value)]));
    }
    // A message too long to be looked up after types that only memory has seen.
    warm(&front, &mut front.guest(), BY_TEXT, &[text("one")]);
    let id = prepare(&mut guest, BY_TEXT);
    assert_eq!(run(&mut guest, id, &[text("one")], Types::Named).0, "hit");
    let long = text(&"x".repeat(60_000));
    let (outcome, bytes) = run(
        &mut guest,
        id,
        std::slice::from_ref(&long),
        Types::Remembered,
    );
    assert_ne!(outcome, "hit");
    assert_same("long", &bytes, &truth(&front, BY_TEXT, &[long]));
}

/// The server learns the types from the client's own execution. If that one needs no snapshot, the
/// transaction has none after it either.
#[test]
fn types_that_only_memory_has_seen_make_no_snapshot() {
    const BOTH: &str = "SELECT a, s FROM t WHERE a = ? AND s <> ?";
    let options = RemoraOptions::following().with("cache.statement_bytes_max", "100000");
    let front = Front::with("prepared_types_snapshot", options, &T);
    let warmed = [text("1"), text("x")];
    warm(&front, &mut front.guest(), BOTH, &warmed);
    // Short; too long for a buffer; too long to be held.
    for (at, length) in [1, 60_000, 200_000].into_iter().enumerate() {
        let mut guest = front.guest();
        let id = prepare(&mut guest, BOTH);
        assert_eq!(run(&mut guest, id, &warmed, Types::Named).0, "hit");
        guest.setup(&["BEGIN"]);
        let null = [Null, text(&"x".repeat(length))];
        let (outcome, bytes) = run(&mut guest, id, &null, Types::Remembered);
        assert_ne!(outcome, "hit");
        let mut twin = front.direct();
        twin.query("BEGIN").unwrap();
        let known = twin.prepare(BOTH.as_bytes()).unwrap().0;
        let mut directly = |values: &[Value]| {
            let body = execution(known, values, Types::Named, 0);
            command(&mut twin, EXECUTE, &body, ResponseKind::Results)
        };
        assert_same("no row", &bytes, &directly(&null));
        let write = format!("UPDATE t SET s = 'new {at}' WHERE a = 2");
        front.direct().query(&write).unwrap();
        front.settle();
        // As the twin it has no snapshot yet, so this one shows the write.
        let row = [text("2"), text("x")];
        let (_, bytes) = run(&mut guest, id, &row, Types::Remembered);
        assert_same("the write", &bytes, &directly(&row));
    }
}

/// Types can't be put into a message of several packets.
#[test]
fn the_server_learns_types_before_a_message_of_16_mib() {
    let front = Front::new("prepared_types_16_mib", &T);
    warm(&front, &mut front.guest(), BY_TEXT, &[text("one")]);
    let mut guest = front.guest();
    let id = prepare(&mut guest, BY_TEXT);
    assert_eq!(run(&mut guest, id, &[text("one")], Types::Named).0, "hit");
    let long = [text(&"x".repeat(17 << 20))];
    for _ in 0..2 {
        let (_, bytes) = run(&mut guest, id, &long, Types::Remembered);
        assert_same("long", &bytes, &truth(&front, BY_TEXT, &long));
    }
    let (_, bytes) = run(&mut guest, id, &[text("two")], Types::Remembered);
    assert_same("two", &bytes, &truth(&front, BY_TEXT, &[text("two")]));
}

/// What memory has answered is run again under the types that it had, though others were named
/// since: under those its values would mean something else.
#[test]
fn an_execution_that_is_run_again_has_the_types_that_it_had() {
    let options = RemoraOptions::following().with("cache.transaction_reads", "early");
    let front = Front::with("prepared_retyped_early", options, &T);
    let early = wait_for("an early transaction", PATIENCE, || {
        let mut guest = front.guest();
        let id = prepare(&mut guest, BY_KEY);
        // The result is in memory.
        for sql in ["BEGIN", "COMMIT"] {
            guest.setup(&[sql]);
            run(&mut guest, id, &[Int(10)], Types::Named);
        }
        guest.setup(&["BEGIN"]);
        // Once: the second read could be answered in a snapshot that the server has made.
        let body = execution(id, &[Int(10)], Types::Remembered, 0);
        let seen = guest.command(EXECUTE, &body, ResponseKind::Results);
        Ok((seen.outcome == "hit").then_some((guest, id)))
    });
    let (mut guest, id) = early.unwrap();
    // The row changes and changes back: the answer is the same.
    for text in ["other", "ten"] {
        let write = format!("UPDATE t SET s = '{text}' WHERE a = 10");
        front.direct().query(&write).unwrap();
    }
    front.settle();
    // Read as a DOUBLE, the bytes of the 10 would be almost 0: no row, and so a conflict.
    let body = execution(id, &[Double(1.5)], Types::Named, 0);
    let (outcome, answer) = guest.observe(|client| {
        client
            .command(EXECUTE, &body, ResponseKind::Results)
            .map(drop)
    });
    assert_eq!(outcome, "prepared_parameters", "{answer:?}");
}

/// MySQL 8.0 compares texts as numbers once a number was bound.
#[test]
fn an_execution_after_one_with_other_types_is_left_to_the_server() {
    let front = Front::new("prepared_other_types", &T);
    let (number, zero) = (Int(0), text("zero"));
    warm(&front, &mut front.guest(), BY_TEXT, slice::from_ref(&zero));
    let mut direct = front.direct();
    let known = direct.prepare(BY_TEXT.as_bytes()).unwrap().0;
    let mut guest = front.guest();
    let id = prepare(&mut guest, BY_TEXT);
    let sequence = [
        (&number, Types::Named),
        (&Null, Types::Named),
        (&zero, Types::Named),
        (&zero, Types::Remembered),
        (&number, Types::Named),
    ];
    for (at, (value, types)) in sequence.into_iter().enumerate() {
        let values = slice::from_ref(value);
        let body = execution(known, values, types, 0);
        let expected = command(&mut direct, EXECUTE, &body, ResponseKind::Results);
        let (outcome, bytes) = run(&mut guest, id, values, types);
        assert_same(&format!("{at}"), &bytes, &expected);
        if at >= 2 {
            assert_eq!(outcome, "prepared_parameters", "{at}");
        }
    }
    // A statement of its own has no such past.
    guest.setup(&[EMPTIES_WARNINGS]);
    let id = prepare(&mut guest, BY_TEXT);
    let (outcome, bytes) = run(&mut guest, id, slice::from_ref(&zero), Types::Named);
    assert_eq!(outcome, "hit");
    assert_same("new", &bytes, &truth(&front, BY_TEXT, &[zero]));
}

#[test]
fn an_execution_too_long_to_be_held_finds_the_types_too() {
    let options = RemoraOptions::following().with("cache.statement_bytes_max", "1024");
    let front = Front::with("prepared_long", options, &T);
    warm(&front, &mut front.guest(), BY_TEXT, &[text("one")]);
    let mut guest = front.guest();
    let id = prepare(&mut guest, BY_TEXT);
    assert_eq!(run(&mut guest, id, &[text("one")], Types::Named).0, "hit");
    for _ in 0..2 {
        let long = [text(&"x".repeat(50_000))];
        let (outcome, bytes) = run(&mut guest, id, &long, Types::Remembered);
        assert_eq!(outcome, "text_too_long");
        assert_same("long", &bytes, &truth(&front, BY_TEXT, &long));
        assert_eq!(
            run(&mut guest, id, &[text("one")], Types::Remembered).0,
            "hit"
        );
    }
}

#[test]
fn what_is_sent_in_pieces_or_fetched_goes_to_the_server() {
    let front = Front::new("prepared_pieces", &T);
    let mut guest = front.guest();
    warm(&front, &mut guest, BY_TEXT, &[text("one")]);
    let id = prepare(&mut guest, BY_TEXT);
    let mut piece = id.to_le_bytes().to_vec();
    piece.extend([0, 0]);
    piece.extend(b"two");
    send(&mut guest, LONG_DATA, &piece);
    // The value of a parameter that was sent ahead isn't in the message; what is there would be
    // "one".
    let ahead = execution_of_ahead(id, Types::Named);
    let seen = guest.command(EXECUTE, &ahead, ResponseKind::Results);
    assert_eq!(seen.outcome, "prepared_long_data");
    assert_same("two", &seen.bytes, &truth(&front, BY_TEXT, &[text("two")]));
    assert_eq!(
        run(&mut guest, id, &[text("one")], Types::Remembered).0,
        "hit"
    );
    // A cursor: its rows come by command, and an execution without one closes it.
    let opened = guest.command(
        EXECUTE,
        &execution(id, &[text("one")], Types::Named, READ_ONLY_CURSOR),
        ResponseKind::ResultsOrCursor,
    );
    assert_eq!(opened.outcome, "prepared_cursor");
    let fetch = [&id.to_le_bytes()[..], &10_u32.to_le_bytes()].concat();
    let rows = guest.command(FETCH, &fetch, ResponseKind::Rows).bytes;
    assert_ne!(rows[4], 0xff, "{rows:?}");
    assert_eq!(
        run(&mut guest, id, &[text("one")], Types::Remembered).0,
        "prepared_cursor"
    );
    let none = guest.command(FETCH, &fetch, ResponseKind::Rows).bytes;
    assert_eq!(none[4], 0xff, "the cursor is closed");
    // After an error the transaction's state is known with the next answer only.
    guest.setup(&[EMPTIES_WARNINGS]);
    assert_eq!(
        run(&mut guest, id, &[text("one")], Types::Remembered).0,
        "hit"
    );
    guest.command(RESET, &id.to_le_bytes(), ResponseKind::Single);
    assert_eq!(
        run(&mut guest, id, &[text("one")], Types::Remembered).0,
        "hit"
    );
}

#[test]
fn a_time_is_never_part_of_a_key() {
    let front = Front::new("prepared_time", &T);
    let mut guest = front.guest();
    let id = prepare(&mut guest, "SELECT a FROM t WHERE d < ?");
    for _ in 0..3 {
        // Compared with a date and time it is completed with today's date.
        assert_eq!(
            run(&mut guest, id, &[TenOClock], Types::Named).0,
            "prepared_parameters"
        );
    }
}

#[test]
fn a_statement_prepared_under_other_settings_is_not_looked_up() {
    let front = Front::new("prepared_settings", &T);
    let sql = "SELECT 'a' || 'b' AS x, a FROM t WHERE a = ?";
    let mut guest = front.guest();
    let id = prepare(&mut guest, sql);
    guest.setup(&["SET sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')"]);
    // Under these settings the same text means something else, and is kept.
    let here = prepare(&mut guest, sql);
    wait_for("a hit", PATIENCE, || {
        let (outcome, bytes) = run(&mut guest, here, &[Int(1)], Types::Named);
        assert_ne!(bytes, truth(&front, sql, &[Int(1)]));
        Ok((outcome == "hit").then_some(()))
    })
    .unwrap();
    for _ in 0..3 {
        let (outcome, bytes) = run(&mut guest, id, &[Int(1)], Types::Named);
        assert_eq!(outcome, "prepared_elsewhere");
        assert_same(sql, &bytes, &truth(&front, sql, &[Int(1)]));
    }
    // The default schema counts too: the name means the table that it meant.
    let mut direct = front.direct();
    for sql in [
        "CREATE DATABASE IF NOT EXISTS prepared_settings_b",
        "CREATE TABLE prepared_settings_b.t (a INT, s VARCHAR(10))",
        "INSERT INTO prepared_settings_b.t VALUES (1, 'other')",
    ] {
        direct.query(sql).unwrap();
    }
    let mut guest = front.guest();
    let id = prepare(&mut guest, BY_KEY);
    guest.setup(&["USE prepared_settings_b"]);
    for _ in 0..3 {
        let (_, bytes) = run(&mut guest, id, &[Int(1)], Types::Named);
        assert_same(BY_KEY, &bytes, &truth(&front, BY_KEY, &[Int(1)]));
    }
}

#[test]
fn a_definition_changed_since_the_preparation_reaches_the_client() {
    let front = Front::new("prepared_ddl", &T);
    let mut guest = front.guest();
    let id = prepare(&mut guest, ALL);
    warm(&front, &mut guest, ALL, &[]);
    front
        .direct()
        .query("ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
        .unwrap();
    let expected = truth(&front, ALL, &[]);
    front.catch_up();
    let (_, bytes) = run(&mut guest, id, &[], Types::Named);
    assert!(bytes.len() >= expected.len());
    // Another session fills; the statement prepared before must go to the server once.
    warm(&front, &mut front.guest(), ALL, &[]);
    let mut seen = Vec::new();
    wait_for("a hit", PATIENCE, || {
        let (outcome, bytes) = run(&mut guest, id, &[], Types::Named);
        assert_same(ALL, &bytes, &expected);
        seen.push(outcome);
        Ok((outcome == "hit").then_some(()))
    })
    .unwrap();
}

#[test]
fn diagnostics_tell_of_a_prepared_statement_that_memory_answered() {
    let front = Front::new("prepared_diagnostics", &T);
    warm(&front, &mut front.guest(), ALL, &[]);
    warm(&front, &mut front.guest(), BY_KEY, &[Int(1)]);
    let ask = |guest: &mut Guest<'_>, sql| guest.value(sql).0;
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    let all = prepare(&mut guest, ALL);
    let by_key = prepare(&mut guest, BY_KEY);
    for _ in 0..2 {
        assert_eq!(run(&mut guest, all, &[], Types::Named).0, "hit");
        assert_eq!(ask(&mut guest, "SELECT FOUND_ROWS()").as_deref(), Some("4"));
        assert_eq!(run(&mut guest, by_key, &[Int(1)], Types::Named).0, "hit");
        assert_eq!(
            run(&mut guest, by_key, &[Int(1)], Types::Remembered).0,
            "hit"
        );
        assert_eq!(ask(&mut guest, "SELECT FOUND_ROWS()").as_deref(), Some("1"));
        assert_eq!(run(&mut guest, all, &[], Types::Named).0, "hit");
        assert_eq!(ask(&mut guest, "SELECT ROW_COUNT()").as_deref(), Some("-1"));
    }
    // Closed before the question.
    assert_eq!(run(&mut guest, by_key, &[Int(1)], Types::Named).0, "hit");
    assert_eq!(run(&mut guest, all, &[], Types::Named).0, "hit");
    send(&mut guest, CLOSE, &by_key.to_le_bytes());
    send(&mut guest, CLOSE, &all.to_le_bytes());
    assert_eq!(ask(&mut guest, "SELECT FOUND_ROWS()").as_deref(), Some("4"));
    // Of a closed statement nobody knows whether it runs code: its repetition was fenced.
    warm(&front, &mut front.guest(), BY_KEY, &[Int(1)]);
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    let by_key = prepare(&mut guest, BY_KEY);
    assert_eq!(run(&mut guest, by_key, &[Int(1)], Types::Named).0, "hit");
    assert_eq!(
        run(&mut guest, by_key, &[Int(1)], Types::Remembered).0,
        "hit"
    );
    send(&mut guest, CLOSE, &by_key.to_le_bytes());
    assert_eq!(ask(&mut guest, "SELECT FOUND_ROWS()").as_deref(), Some("1"));
}

/// What is run again for diagnostics doesn't take the value that the client has sent ahead for its
/// next execution.
#[test]
fn a_value_sent_ahead_is_kept_for_the_clients_own_execution() {
    let long = "x".repeat(200_000);
    for mode in ["after_snapshot", "early"] {
        let options = RemoraOptions::following()
            .with("cache.transaction_reads", mode)
            .with("cache.statement_bytes_max", "1024");
        let front = Front::with(&format!("prepared_ahead_{mode}"), options, &T);
        warm(&front, &mut front.guest(), BY_TEXT, &[text("one")]);
        // Short; too long to be held.
        for value in ["two", &long] {
            for types in [Types::Named, Types::Remembered] {
                let mut guest = front.guest();
                let id = prepare(&mut guest, BY_TEXT);
                assert_eq!(run(&mut guest, id, &[text("one")], Types::Named).0, "hit");
                let piece = [&id.to_le_bytes()[..], &[0, 0], value.as_bytes()].concat();
                guest.command(LONG_DATA, &piece, ResponseKind::Nothing);
                let warnings = front
                    .direct()
                    .query_bytes("SHOW WARNINGS")
                    .unwrap()
                    .to_vec();
                assert_same("warnings", &guest.run("SHOW WARNINGS").bytes, &warnings);
                let ahead = execution_of_ahead(id, types);
                let seen = guest.command(EXECUTE, &ahead, ResponseKind::Results);
                let expected = truth(&front, BY_TEXT, &[text(value)]);
                assert_same("sent ahead", &seen.bytes, &expected);
            }
        }
    }
}

/// An execution whose one value was sent ahead.
fn execution_of_ahead(id: u32, types: Types) -> Vec<u8> {
    let mut body = execution(id, &[text("one")], types, 0);
    // The length takes three bytes.
    body.truncate(body.len() - "one".len() - 3);
    body
}

#[test]
fn a_ping_after_a_hit_counts_for_row_count() {
    let front = Front::new("prepared_ping", &T);
    let mut direct = front.direct();
    direct.query(ALL).unwrap();
    command(&mut direct, PING, b"", ResponseKind::Single);
    let expected = direct.query_value("SELECT ROW_COUNT()").unwrap();
    let mut guest = front.guest();
    let as_text = front.direct().query_bytes(ALL).unwrap().to_vec();
    guest.becomes_hit(ALL, &as_text);
    guest.command(PING, b"", ResponseKind::Single);
    assert_eq!(guest.value("SELECT ROW_COUNT()").0, expected);
}

#[test]
fn statements_are_closed_on_the_server_too() {
    let front = Front::new("prepared_closing", &T);
    warm(&front, &mut front.guest(), BY_KEY, &[Int(1)]);
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    let open = |guest: &mut Guest<'_>| {
        let sql = "SHOW SESSION STATUS LIKE 'Com_stmt_close'";
        let (_, rows) = guest.observe(|client| client.query(sql).unwrap().rows().unwrap());
        let text = String::from_utf8(rows[0][1].clone().unwrap()).unwrap();
        text.parse::<u32>().unwrap()
    };
    let before = open(&mut guest);
    for _ in 0..10 {
        let id = prepare(&mut guest, BY_KEY);
        assert_eq!(run(&mut guest, id, &[Int(1)], Types::Named).0, "hit");
        send(&mut guest, CLOSE, &id.to_le_bytes());
    }
    assert_eq!(open(&mut guest) - before, 10);
}

#[test]
fn texts_beyond_the_limit_are_not_kept_and_it_shows() {
    let options = RemoraOptions::following().with("workers.prepared_text_bytes_max", "1024");
    let front = Front::with("prepared_limit", options, &T);
    let mut guest = front.guest();
    warm(&front, &mut guest, BY_KEY, &[Int(1)]);
    let padded = |n: usize| format!("SELECT a FROM t WHERE a = ? /*+ {} */", "x".repeat(n));
    let first = prepare(&mut guest, &padded(900));
    let second = prepare(&mut guest, &padded(901));
    for _ in 0..3 {
        let (outcome, bytes) = run(&mut guest, second, &[Int(1)], Types::Named);
        assert_eq!(outcome, "prepared_texts_full");
        assert_same("over", &bytes, &truth(&front, &padded(901), &[Int(1)]));
    }
    send(&mut guest, CLOSE, &first.to_le_bytes());
    warm(&front, &mut guest, &padded(901), &[Int(1)]);
}

/// To MariaDB: the statement that was prepared last.
const LAST: u32 = u32::MAX;

/// What went before may have fenced everything until the log is read as far.
fn last_becomes_hit(guest: &mut Guest<'_>) {
    wait_for("a hit of the statement prepared last", PATIENCE, || {
        let outcome = run(guest, LAST, &[Int(1)], Types::Named).0;
        Ok((outcome == "hit").then_some(()))
    })
    .unwrap();
}

#[test]
fn on_mariadb_a_number_means_the_statement_prepared_last() {
    let front = Front::new("prepared_last", &T);
    if front.server().kind().is_mysql() {
        println!("left out: only MariaDB knows this number");
        return;
    }
    warm(&front, &mut front.guest(), BY_KEY, &[Int(1)]);
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    let nothing = run(&mut guest, LAST, &[], Types::Named).1;
    assert_eq!(nothing[4], 0xff, "{nothing:?}");
    guest.setup(&["DO 1"]);
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    let first = prepare(&mut guest, BY_KEY);
    last_becomes_hit(&mut guest);
    let second = prepare(&mut guest, "UPDATE t SET s = 'last' WHERE a = ?");
    assert_eq!(run(&mut guest, LAST, &[Int(2)], Types::Named).0, "write");
    assert_eq!(
        run(&mut guest, first, &[Int(2)], Types::Named).1,
        truth(&front, BY_KEY, &[Int(2)])
    );
    send(&mut guest, CLOSE, &second.to_le_bytes());
    assert_eq!(run(&mut guest, LAST, &[Int(2)], Types::Named).1[4], 0xff);
    // What is run again for its diagnostics is the statement that it was.
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    front.settle();
    warm(&front, &mut guest, BY_KEY, &[Int(1)]);
    prepare(&mut guest, BY_KEY);
    last_becomes_hit(&mut guest);
    prepare(&mut guest, "UPDATE t SET s = 'not asked for' WHERE a = ?");
    guest.run("SHOW WARNINGS");
    let written = "SELECT COUNT(*) FROM t WHERE s = 'not asked for'";
    let count = front.direct().query_value(written).unwrap();
    assert_eq!(count.as_deref(), Some("0"));
    // One that is too long to be read is the last one all the same.
    let mut guest = front.guest();
    guest.setup(&["DO 1"]);
    warm(&front, &mut guest, BY_KEY, &[Int(1)]);
    prepare(&mut guest, BY_KEY);
    last_becomes_hit(&mut guest);
    let long = format!(
        "SELECT COUNT(*) + ? FROM t WHERE s <> '{}'",
        "x".repeat(300 << 10)
    );
    let long = prepare(&mut guest, &long);
    let by_number = run(&mut guest, long, &[Int(1)], Types::Named).1;
    let (outcome, by_last) = run(&mut guest, LAST, &[Int(1)], Types::Named);
    assert_ne!(outcome, "hit");
    assert_eq!(by_last, by_number);
}

#[test]
fn constants_beyond_the_limit_are_not_kept_either_and_it_shows() {
    let option = "workers.prepared_text_bytes_max";
    let options = RemoraOptions::following().with(option, "2048");
    let front = Front::with("prepared_constants", options, &T);
    let reached = || {
        let metrics = front.remora().metrics().unwrap();
        metrics.sum_where("remora_limit_reached_total", "limit", option)
    };
    let mut guest = front.guest();
    warm(&front, &mut guest, BY_KEY, &[Int(1)]);
    let updates = |n: usize| format!("UPDATE t SET s = 'new' WHERE s = '{}'", "x".repeat(n));
    // What a preparation means is noted when its answer has been sent.
    let first = prepare(&mut guest, &updates(900));
    guest.setup(&["DO 1"]);
    assert!(reached() < 0.5);
    let inserts = format!(
        "INSERT INTO t (a, s) VALUES {}",
        ["(?, 'some text')"; 60].join(", ")
    );
    let second = prepare(&mut guest, &inserts);
    guest.setup(&["DO 1"]);
    assert!(reached() > 0.5, "60 rows are more than what is left");
    // What it writes is fenced all the same.
    let values: Vec<Value> = (100..160).map(Int).collect();
    assert_eq!(run(&mut guest, second, &values, Types::Named).0, "write");
    let (_, bytes) = {
        let id = prepare(&mut guest, ALL);
        run(&mut guest, id, &[], Types::Named)
    };
    assert_same(ALL, &bytes, &truth(&front, ALL, &[]));
    // With the first one closed there is room again.
    send(&mut guest, CLOSE, &first.to_le_bytes());
    send(&mut guest, CLOSE, &second.to_le_bytes());
    let before = reached();
    prepare(&mut guest, &updates(900));
    guest.setup(&["DO 1"]);
    assert!(reached() < before + 0.5);
}

/// What the server answers to executions in one transaction, the first with types.
fn truths_inside(front: &Front, sql: &str, values: &[Value]) -> Vec<Vec<u8>> {
    let mut direct = front.direct();
    let id = direct.prepare(sql.as_bytes()).unwrap().0;
    direct.query("BEGIN").unwrap();
    let types = [Types::Named]
        .into_iter()
        .chain(std::iter::repeat(Types::Remembered));
    let of = |(value, types): (&Value, Types)| {
        let body = execution(id, slice::from_ref(value), types, 0);
        command(&mut direct, EXECUTE, &body, ResponseKind::Results)
    };
    values.iter().zip(types).map(of).collect()
}

/// A message may be looked at more than once before memory answers it: here it waits for proof that
/// the follower has applied what the snapshot may show.
#[test]
fn the_server_learns_the_types_of_an_execution_that_had_to_wait() {
    const FIRST: &str = "SELECT s FROM t WHERE a = 1";
    // Whatever the machine does, the proof comes in time.
    let options = RemoraOptions::following().with("cache.snapshot_wait_ms_max", "10000");
    let front = Front::with("prepared_waiting", options, &T);
    let mut waited = 0;
    for number in 0..20 {
        // Each time a statement that nobody has executed yet.
        let sql = format!("SELECT a, s, {number} FROM t WHERE a = ?");
        let truths = truths_inside(&front, &sql, &[text("2"), text("10")]);
        let mut guest = front.guest();
        let id = prepare(&mut guest, &sql);
        let warm = wait_for("a hit", PATIENCE, || {
            guest.setup(&["ROLLBACK", "BEGIN", FIRST]);
            let (outcome, bytes) = run(&mut guest, id, &[text("2")], Types::Named);
            assert_same(&sql, &bytes, &truths[0]);
            Ok((outcome == "hit").then_some(()))
        });
        warm.unwrap();
        let mut guest = front.guest();
        let id = prepare(&mut guest, &sql);
        guest.setup(&["BEGIN", FIRST]);
        let body = execution(id, &[text("2")], Types::Named, 0);
        let first = guest.command(EXECUTE, &body, ResponseKind::Results);
        assert_same(&sql, &first.bytes, &truths[0]);
        waited += usize::from(first.outcome == "hit");
        let body = execution(id, &[text("10")], Types::Remembered, 0);
        let second = guest.command(EXECUTE, &body, ResponseKind::Results);
        assert_same(&sql, &second.bytes, &truths[1]);
    }
    assert!(waited > 0, "memory answered none");
}

/// The client believes that the server has the types of what was refused, and won't name them
/// again.
#[test]
fn the_types_of_an_execution_that_was_refused_are_not_lost() {
    let options = RemoraOptions::following().with("cache.transaction_reads", "early");
    let front = Front::with("prepared_refused", options, &T);
    let write = "UPDATE t SET s = ? WHERE a = 3";
    for prepared in [BY_KEY, write] {
        let mut guest = front.guest();
        let id = prepare(&mut guest, prepared);
        let refused = wait_for("a refused execution", PATIENCE, || {
            // The types are named once only.
            let types = Types::Named;
            guest.setup(&["ROLLBACK", "BEGIN"]);
            if guest.run("SELECT s FROM t WHERE a = 1").outcome != "hit" {
                return Ok(None);
            }
            let change = "UPDATE t SET s = CONCAT('x', s) WHERE a = 1";
            front.direct().query(change).unwrap();
            front.catch_up();
            let body = execution(id, &[text("10")], types, 0);
            let seen = guest.command(EXECUTE, &body, ResponseKind::Results);
            Ok(Some(seen.outcome))
        });
        assert_eq!(refused.unwrap(), "conflict");
        if prepared == write {
            // Nothing tells the server of them without writing.
            assert!(guest.client().query("SELECT 1").is_err());
            continue;
        }
        let (_, bytes) = run(&mut guest, id, &[text("10")], Types::Remembered);
        assert_same(prepared, &bytes, &truth(&front, prepared, &[text("10")]));
    }
}

/// A message that is too long to be looked up may name other types. What comes after it without any
/// means those, though it could be read as of the types before.
#[test]
fn the_types_of_an_execution_that_is_not_looked_up_count() {
    let options = RemoraOptions::following().with("cache.statement_bytes_max", "1024");
    let front = Front::with("prepared_retyped", options, &T);
    let below = "SELECT a, s FROM t WHERE a < ?";
    let short = text("three");
    let mut bytes = Vec::new();
    short.put(&mut bytes);
    let number = Int(i64::from_le_bytes(bytes[..].try_into().unwrap()));
    warm(&front, &mut front.guest(), below, slice::from_ref(&number));
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let id = prepare(&mut guest, below);
    let known = direct.prepare(below.as_bytes()).unwrap().0;
    let long = text(&"x".repeat(5_000));
    for (value, types) in [
        (&number, Types::Named),
        (&long, Types::Named),
        (&short, Types::Remembered),
    ] {
        let values = slice::from_ref(value);
        let body = execution(known, values, types, 0);
        let expected = command(&mut direct, EXECUTE, &body, ResponseKind::Results);
        let (_, bytes) = run(&mut guest, id, values, types);
        assert_same("retyped", &bytes, &expected);
    }
}
