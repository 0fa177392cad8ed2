//! A client that goes away during a statement, or says that it will send nothing more: its
//! statement ends, or is answered, as without Remora.

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::raw::{Packet, Raw};
use remora_behaviour::front::{Front, PATIENCE, assert_same, lease};

const SETUP: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
];
const READ: &str = "SELECT v FROM t WHERE id = 1";

/// How many connections run a statement with this in it.
fn running(watcher: &mut Client, part: &str) -> u64 {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE info LIKE '%{part}%' AND id <> CONNECTION_ID()"
    );
    watcher.query_value(&sql).unwrap().unwrap().parse().unwrap()
}

fn wait_until_running(watcher: &mut Client, part: &str, count: u64) {
    let what = format!("{part} to run {count} times");
    wait_for(&what, PATIENCE, || {
        Ok((running(watcher, part) == count).then_some(()))
    })
    .unwrap();
}

/// A connection that keeps everybody waiting for this lock.
fn holder(front: &Front, lock: &str) -> Client {
    let mut holder = front.direct();
    // Whoever had it before may not have ended yet on the server.
    let sql = format!("SELECT GET_LOCK('{lock}', {})", PATIENCE.as_secs());
    let got = holder.query_value(&sql);
    assert_eq!(got.unwrap().as_deref(), Some("1"));
    holder
}

fn log_in(front: &Front) -> Raw {
    let mut raw = Raw::log_in(front.remora().address(), front.schema());
    // What follows isn't the first statement of its session, with questions of Remora's before it.
    raw.query(READ);
    raw.receive_answer();
    raw
}

#[test]
fn a_wait_ends_when_the_client_has_gone() {
    let front = Front::new("gone_clients", &SETUP);
    let _holder = holder(&front, "gone_clients");
    let mut watcher = front.server().root().unwrap();
    for sql in [
        "SELECT GET_LOCK('gone_clients', 1000)",
        "DO GET_LOCK('gone_clients', 1001)",
        "SELECT SLEEP(1002)",
        "SELECT v FROM t WHERE id = 1 AND GET_LOCK('gone_clients', 1003) = 0",
    ] {
        let part = &sql[sql.len() - 10..].replace('\'', "_");
        let mut raw = log_in(&front);
        raw.query(sql);
        wait_until_running(&mut watcher, part, 1);
        drop(raw);
        wait_until_running(&mut watcher, part, 0);
    }
}

#[test]
fn a_prepared_wait_ends_when_the_client_has_gone() {
    let front = Front::new("gone_prepared", &SETUP);
    let _holder = holder(&front, "gone_prepared");
    let mut watcher = front.server().root().unwrap();
    let mut raw = log_in(&front);
    raw.send(0, b"\x16SELECT GET_LOCK('gone_prepared', 2000)");
    let prepared = raw.receive().unwrap();
    assert_eq!(prepared.payload[0], 0);
    // The definition of its column, and its end.
    raw.receive().unwrap();
    raw.receive().unwrap();
    let id = &prepared.payload[1..5];
    raw.send(0, &[b"\x17", id, &[0, 1, 0, 0, 0]].concat());
    wait_until_running(&mut watcher, "GET_LOCK(_gone_prepared_, 2000", 1);
    drop(raw);
    wait_until_running(&mut watcher, "GET_LOCK(_gone_prepared_, 2000", 0);
}

/// What comes after a statement and the end of what is sent.
fn answer_to_a_half_closed_client(
    address: std::net::SocketAddr,
    front: &Front,
    sql: &str,
) -> Vec<Packet> {
    let mut raw = Raw::log_in(address, front.schema());
    raw.query(READ);
    raw.receive_answer();
    raw.query(sql);
    raw.finish_sending();
    raw.receive_all()
}

#[test]
fn a_client_that_only_says_that_it_sends_nothing_more_is_answered() {
    let front = Front::new("half_closed", &SETUP);
    let _holder = holder(&front, "half_closed");
    let expected = front.direct().query_bytes(READ).unwrap().to_vec();
    front.guest().becomes_hit(READ, &expected);
    for sql in [
        READ,
        "SELECT v, CONNECTION_ID() > 0 FROM t",
        "SELECT SLEEP(0.3)",
        "UPDATE t SET v = v WHERE id = 2",
        "SELECT a.v, REPEAT('x', 100000) FROM t a, t b, t c, t d, t e, t f",
        "SELECT GET_LOCK('half_closed', 1000)",
        "nonsense",
    ] {
        let directly = answer_to_a_half_closed_client(front.server().address(), &front, sql);
        let through = answer_to_a_half_closed_client(front.remora().address(), &front, sql);
        assert!(!through.is_empty(), "{sql} is answered");
        let (answer, farewell) = directly.split_at_checked(through.len()).unwrap();
        assert!(through == answer, "{sql}: {} packets", through.len());
        // MySQL 8.0 complains at the end that nothing more came.
        assert!(
            farewell.iter().all(|packet| packet.payload[0] == 0xff) && farewell.len() < 2,
            "{sql}: {farewell:?} is missing"
        );
    }
}

/// What is sent ahead while a statement runs is handled after it, in order.
#[test]
fn what_a_client_sends_ahead_is_answered_in_turn() {
    let front = Front::new("sent_ahead", &SETUP);
    let (mut direct, mut through) = (
        Raw::log_in(front.server().address(), front.schema()),
        log_in(&front),
    );
    direct.query(READ);
    direct.receive_answer();
    let padded = format!("SELECT v, '{}' FROM t", "y".repeat(50_000));
    for raw in [&mut direct, &mut through] {
        raw.query("SELECT SLEEP(0.3)");
        for _ in 0..3 {
            raw.query(READ);
            raw.query(&padded);
            raw.query("SELECT SLEEP(0.05), 3");
        }
    }
    for number in 0..10 {
        assert_eq!(
            through.receive_answer(),
            direct.receive_answer(),
            "{number}"
        );
    }
}

#[test]
fn a_write_whose_client_has_gone_is_fenced_until_it_has_been_answered() {
    let options = RemoraOptions::following();
    let (front, gate) = Front::behind_gate(lease(), "gone_writers", options, &SETUP);
    let mut watcher = front.server().root().unwrap();
    let (mut reader, mut direct) = (front.guest(), front.direct());
    for round in 0..3 {
        let holder = holder(&front, "gone_writers");
        let before = direct.query_bytes(READ).unwrap().to_vec();
        reader.becomes_hit(READ, &before);
        gate.hold(true);
        let mut raw = log_in(&front);
        raw.query(
            "UPDATE t SET v = v + 1 WHERE id = 1 AND COALESCE(GET_LOCK('gone_writers', 3000), 2) >= 0",
        );
        wait_until_running(&mut watcher, "GET_LOCK(_gone_writers_, 3000", 1);
        if round == 1 {
            raw.finish_sending();
        } else {
            drop(raw);
        }
        assert_ne!(reader.run(READ).outcome, "hit", "the fence is up");
        drop(holder);
        wait_until_running(&mut watcher, "GET_LOCK(_gone_writers_, 3000", 0);
        for _ in 0..20 {
            let after = direct.query_bytes(READ).unwrap().to_vec();
            let seen = reader.run(READ);
            assert_same(seen.outcome, &seen.bytes, &after);
        }
        gate.hold(false);
    }
}
