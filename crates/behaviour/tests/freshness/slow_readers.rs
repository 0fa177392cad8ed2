//! A client that doesn't take its answer takes hits away from nobody, however wide the fence of its
//! statement is.

use std::io::Read as _;

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::packet::put_message;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

const SETUP: [&str; 4] = [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)",
    // What it does is not looked at: whoever calls it may write anything.
    "CREATE FUNCTION f (a INT) RETURNS INT DETERMINISTIC NO SQL RETURN a",
    "CREATE TABLE other (v INT)",
];
const HIT: &str = "SELECT v FROM t WHERE id = 1";
/// Rows of three times `t`, each with each.
const ROWS: u64 = 8 * 8 * 8;
/// About 28 MB, more than the sockets take.
const FENCED: &str = "SELECT f(a.id), REPEAT('x', 54321) FROM t a, t b, t c";
/// The same without the function. Nobody wants to keep it.
const HARMLESS: &str = "SELECT CONNECTION_ID() > 0, REPEAT('x', 54321) FROM t a, t b, t c";

/// Sends a statement and reads nothing. The server doesn't give up by itself.
fn ask(front: &Front, sql: &str) -> Client {
    let mut client = front.guest();
    client.setup(&["SET SESSION net_write_timeout = 3600"]);
    client.run(HIT);
    send(client.client(), sql);
    client.into_client()
}

fn send(client: &Client, sql: &str) {
    let mut message = Vec::new();
    put_message(&mut message, 0, &[b"\x03", sql.as_bytes()].concat());
    std::io::Write::write_all(&mut client.stream(), &message).unwrap();
}

/// What comes, up to so many bytes or the end of the connection.
fn read_away(client: &Client, bytes: usize) -> Vec<u8> {
    let mut stream = client.stream();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut all, mut chunk) = (Vec::new(), vec![0; 256 << 10]);
    while all.len() < bytes {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
    all
}

fn truth(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// Waits until the server has begun to answer.
fn wait_for_answer(client: &Client) {
    client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    client.stream().peek(&mut [0]).unwrap();
}

fn limit(front: &Front, option: &str) -> f64 {
    let metrics = front.remora().metrics().unwrap();
    metrics.sum_where("remora_limit_reached_total", "limit", option)
}

#[test]
fn a_fence_does_not_wait_for_a_client_that_takes_nothing() {
    let front = Front::new("slow_readers", &SETUP);
    let expected = truth(&front, FENCED);
    let hit = truth(&front, HIT);
    let mut reader: Guest<'_> = front.guest();
    reader.becomes_hit(HIT, &hit);
    let slow = ask(&front, FENCED);
    wait_for_answer(&slow);
    reader.becomes_hit(HIT, &hit);
    // And it gets its answer when it takes it, byte for byte.
    assert_same(FENCED, &read_away(&slow, expected.len()), &expected);
    send(&slow, HIT);
    assert_same(HIT, &read_away(&slow, hit.len()), &hit);
}

#[test]
fn a_client_that_takes_nothing_is_let_go_of_when_what_is_held_for_it_is_full() {
    let options = RemoraOptions::following()
        .with("workers.fenced_answer_bytes_max", "1MiB")
        .with("workers.fenced_answer_wait_ms", "300");
    let front = Front::with("slow_readers_limits", options, &SETUP);
    let expected = truth(&front, FENCED);
    let harmless = truth(&front, HARMLESS);
    let hit = truth(&front, HIT);
    // Without a fence a client may be as slow as it likes.
    let slow_but_harmless = ask(&front, HARMLESS);
    wait_for_answer(&slow_but_harmless);
    let mut reader = front.guest();
    reader.becomes_hit(HIT, &hit);
    let slow = ask(&front, FENCED);
    wait_for_answer(&slow);
    reader.becomes_hit(HIT, &hit);
    let seen = read_away(&slow, expected.len());
    assert!(seen.len() < expected.len(), "the connection was closed");
    assert_same("what came", &seen, &expected[..seen.len()]);
    for option in [
        "workers.fenced_answer_bytes_max",
        "workers.fenced_answer_wait_ms",
    ] {
        assert!(limit(&front, option) > 0.5, "{option}");
    }
    let seen = read_away(&slow_but_harmless, harmless.len());
    assert_same(HARMLESS, &seen, &harmless);
    // The memory is free again: a further one is held in turn.
    let small = "SELECT f(a.id), REPEAT('x', 1234) FROM t a, t b";
    assert_same(small, &reader.run(small).bytes, &truth(&front, small));
}

/// What a slow reader's statement has written is fenced all the same until the log has told of it.
#[test]
fn what_a_statement_with_a_slow_reader_writes_is_never_read_as_it_was() {
    let setup = [
        &SETUP[..],
        &[
            "SET GLOBAL log_bin_trust_function_creators = 1",
            "CREATE FUNCTION w (a INT) RETURNS INT BEGIN \
             UPDATE other SET v = v + 1; RETURN a; END",
            "INSERT INTO other VALUES (0)",
        ],
    ]
    .concat();
    let front = Front::new("slow_writers", &setup);
    let mut reader = front.guest();
    let read = "SELECT v FROM other";
    let sql = "SELECT w(a.id), REPEAT('x', 54321) FROM t a, t b, t c";
    for _ in 0..3 {
        reader.becomes_hit(read, &truth(&front, read));
        let before: u64 = reader.value(read).0.unwrap().parse().unwrap();
        let slow = ask(&front, sql);
        wait_for_answer(&slow);
        // Until the whole statement has run and its rows come from memory.
        let seen = reader.becomes("hit", read, None);
        assert_same(read, &seen, &truth(&front, read));
        let after: u64 = reader.value(read).0.unwrap().parse().unwrap();
        assert_eq!(after, before + ROWS, "each row has been written");
    }
}

/// The server begins when it has the whole statement, so nothing is fenced before.
#[test]
fn a_statement_that_is_not_sent_to_its_end_fences_nothing() {
    let front = Front::new("slow_senders", &SETUP);
    let hit = truth(&front, HIT);
    let mut reader = front.guest();
    reader.becomes_hit(HIT, &hit);
    let mut slow = front.guest();
    slow.run(HIT);
    let long = format!(
        "UPDATE t SET v = 11 WHERE id = 1 /* {} */",
        "x".repeat(1 << 20)
    );
    let mut message = Vec::new();
    put_message(&mut message, 0, &[b"\x03", long.as_bytes()].concat());
    let (begin, end) = message.split_at(message.len() - 100);
    let (outcome, ()) = slow.observe(|client| {
        std::io::Write::write_all(&mut client.stream(), begin).unwrap();
    });
    assert_eq!(outcome, "text_too_long");
    for _ in 0..3 {
        reader.still_hits(HIT, &hit);
    }
    std::io::Write::write_all(&mut slow.client().stream(), end).unwrap();
    wait_for_answer(slow.client());
    assert_same(HIT, &reader.run(HIT).bytes, &truth(&front, HIT));
    assert_ne!(truth(&front, HIT), hit);
}

/// Remora can't ask what became of the log before the client has the answer.
#[test]
fn what_a_procedure_wrote_without_the_log_is_outdated_though_its_client_takes_nothing() {
    let setup = [
        &SETUP[..],
        &[
            "CREATE PROCEDURE p() BEGIN SET sql_log_bin = 0; UPDATE other SET v = v + 1; \
             SELECT REPEAT('x', 54321) FROM t a, t b, t c; END",
            "INSERT INTO other VALUES (0)",
        ],
    ]
    .concat();
    let front = Front::new("slow_unlogged", &setup);
    let read = "SELECT v FROM other";
    let mut reader = front.guest();
    let before = truth(&front, read);
    reader.becomes_hit(read, &before);
    let slow = ask(&front, "CALL p()");
    wait_for_answer(&slow);
    let after = truth(&front, read);
    assert_ne!(after, before);
    let known = wait_for("the change to be known", PATIENCE, || {
        let seen = reader.run(read);
        Ok((seen.outcome == "hit" && seen.bytes == after).then_some(()))
    });
    known.unwrap();
    for _ in 0..3 {
        let seen = reader.run(read);
        assert_same(seen.outcome, &seen.bytes, &after);
    }
}
