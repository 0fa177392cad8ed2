//! `SQL_CACHE` on servers that know it, warn of it, or take it for a name.

use remora_cache::Unservable;
use remora_engine::reason::{Bypass, Outcome};
use remora_testkit::client::ConnectOptions;
use remora_testkit::process::wait_for;
use remora_wire::Capabilities;

use super::{READ, TABLE, told};
use remora_behaviour::front::{Front, PATIENCE, assert_same};

/// A statement with the hint that can't be read as one with a column `SQL_CACHE`, and without the
/// hint.
const HINTED: &[(&str, &str)] = &[
    ("SELECT SQL_CACHE * FROM t", "SELECT * FROM t"),
    ("SELECT SQL_CACHE *, a FROM t", "SELECT *, a FROM t"),
    ("SELECT SQL_CACHE t.a FROM t", "SELECT t.a FROM t"),
    ("SELECT SQL_CACHE `t`.* FROM t", "SELECT `t`.* FROM t"),
    ("SELECT SQL_CACHE COUNT(*) FROM t", "SELECT COUNT(*) FROM t"),
    ("SELECT SQL_CACHE ABS (a) FROM t", "SELECT ABS (a) FROM t"),
    ("SELECT SQL_CACHE 1 FROM t", "SELECT 1 FROM t"),
    ("SELECT SQL_CACHE 1.5, b FROM t", "SELECT 1.5, b FROM t"),
    ("SELECT SQL_CACHE NULL, b FROM t", "SELECT NULL, b FROM t"),
    (
        "SELECT SQL_CACHE CASE a WHEN 1 THEN 2 END FROM t",
        "SELECT CASE a WHEN 1 THEN 2 END FROM t",
    ),
    (
        "SELECT SQL_CACHE DISTINCT b FROM t",
        "SELECT DISTINCT b FROM t",
    ),
    (
        "SELECT SQL_CACHE HIGH_PRIORITY b FROM t",
        "SELECT HIGH_PRIORITY b FROM t",
    ),
    (
        "SELECT SQL_CACHE SQL_BIG_RESULT b FROM t",
        "SELECT SQL_BIG_RESULT b FROM t",
    ),
    (
        "SELECT STRAIGHT_JOIN SQL_CACHE t.b FROM t",
        "SELECT STRAIGHT_JOIN t.b FROM t",
    ),
    ("SELECT SQL_CACHE b AS c FROM t", "SELECT b AS c FROM t"),
    (
        "SELECT /* x */ SQL_CACHE `b` AS c FROM t",
        "SELECT /* x */ `b` AS c FROM t",
    ),
];

#[test]
fn a_hint_that_the_server_cannot_read_is_taken_out() {
    let front = Front::new("face_hint", &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    // A server that doesn't know the hint takes this for a column and its alias.
    let doubtful = "SELECT SQL_CACHE a FROM t";
    guest.becomes("hit", READ, None);
    for (hinted, bare) in HINTED {
        // MySQL 5.7 warns of the hint, so its answer with the hint is the one to have.
        let asked = if front.server().kind().has_query_cache() {
            hinted
        } else {
            let (code, _, message) = told(&mut direct, hinted);
            assert_eq!(code, 1064, "{hinted}: {message}");
            bare
        };
        let expected = direct.query_bytes(asked).unwrap().to_vec();
        guest.becomes_hit(hinted, &expected);
        let warnings = direct.query_bytes("SHOW WARNINGS").unwrap().to_vec();
        let seen = guest.client().query_bytes("SHOW WARNINGS").unwrap();
        assert_same(hinted, seen, &warnings);
    }
    let analysed = "EXPLAIN REMORA ANALYZE SELECT SQL_CACHE t.b, t.a FROM t";
    guest.client().query(analysed).map(drop).unwrap();
    let expected = direct.query_bytes(doubtful).unwrap().to_vec();
    for _ in 0..3 {
        assert_same(
            doubtful,
            guest.client().query_bytes(doubtful).unwrap(),
            &expected,
        );
    }
}

/// How often a result was found that a fence kept from being served.
fn fenced(front: &Front) -> u64 {
    let outcome = Outcome::Bypass(Bypass::Unservable(Unservable::Fenced));
    let metrics = &front.remora().app().unwrap().shared().metrics;
    let workers = metrics.workers().iter();
    workers.map(|worker| worker.outcome(outcome)).sum()
}

#[test]
fn a_hint_is_taken_out_on_every_way_to_the_server() {
    let front = Front::new("face_hint_ways", &TABLE);
    let hinted = "SELECT SQL_CACHE t.b FROM t WHERE a = 1";
    let asked = if front.server().kind().has_query_cache() {
        hinted
    } else {
        "SELECT t.b FROM t WHERE a = 1"
    };
    let plain = front.options();
    let attributed = ConnectOptions {
        further: Capabilities::QUERY_ATTRIBUTES,
        ..front.options()
    };
    for options in [plain, attributed] {
        let mut guest = front.guest_as(&options);
        let mut direct = options.connect().unwrap();
        let expected = direct.query_bytes(asked).unwrap().to_vec();
        guest.becomes_hit(hinted, &expected);
        // A result is there, and a write that is on its way keeps it from being served.
        let mut holder = front.direct();
        holder.query("BEGIN").unwrap();
        holder
            .query("SELECT b FROM t WHERE a = 1 FOR UPDATE")
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = front.options().at(front.remora().address());
                writer.further = options.further;
                let update = "UPDATE t SET b = b + 1 WHERE a = 1";
                writer.connect().unwrap().query(update).map(drop).unwrap();
            });
            let before = fenced(&front);
            wait_for("a fence", PATIENCE, || {
                let seen = guest.client().query_bytes(hinted).unwrap();
                assert_same(hinted, seen, &expected);
                Ok((fenced(&front) > before).then_some(()))
            })
            .unwrap();
            holder.query("COMMIT").unwrap();
        });
        // It was served, and the server is asked about it.
        let expected = direct.query_bytes(asked).unwrap().to_vec();
        guest.becomes_hit(hinted, &expected);
        direct.query_bytes(asked).unwrap();
        let warnings = direct.query_bytes("SHOW WARNINGS").unwrap().to_vec();
        let seen = guest.client().query_bytes("SHOW WARNINGS").unwrap();
        assert_same(hinted, seen, &warnings);
        guest.becomes_hit(hinted, &expected);
        let rows = guest.client().query_value("SELECT FOUND_ROWS()").unwrap();
        assert_eq!(rows.as_deref(), Some("1"));
    }
}
