//! Events of the log that take long to arrive.

use std::time::Duration;

use remora_behaviour::front::{Front, lease};
use remora_testkit::log_gate::{LONG_PIECES, LogGate};
use remora_testkit::proxies::RemoraOptions;

/// For how long the follower lets a server be silent, and waits for progress.
const GIVES_UP_AFTER: Duration = Duration::from_secs(1);

/// If the follower gave it up each time, it would never be there.
#[test]
fn an_event_may_take_longer_than_the_follower_waits_for_one() {
    let server = lease();
    let gate = LogGate::start(server.address()).unwrap();
    let options = RemoraOptions::following()
        .with("upstream.address", &gate.address().to_string())
        .with("follow.lag_ms_max", "200")
        .with("follow.heartbeat_ms", "50");
    let table = "CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB)";
    let front = Front::on(server, "long_events", options, &[table]);
    let mut guest = front.guest();
    guest.becomes("hit", "SELECT a FROM t", None);
    gate.trickle(2 * GIVES_UP_AFTER / u32::try_from(LONG_PIECES).unwrap());
    let insert = "INSERT INTO t VALUES (1, REPEAT('x', 1000000))";
    front.direct().query(insert).unwrap();
    front.catch_up();
    let expected = front
        .direct()
        .query_bytes("SELECT a FROM t")
        .unwrap()
        .to_vec();
    guest.becomes_hit("SELECT a FROM t", &expected);
}
