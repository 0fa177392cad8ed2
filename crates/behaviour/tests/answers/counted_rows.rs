//! `SQL_CALC_FOUND_ROWS` and the `FOUND_ROWS()` behind it, both from memory.

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};
use remora_testkit::process::wait_for;
use remora_testkit::servers::Kind;

const COUNTED: &str = "SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE a < 100 ORDER BY id LIMIT 2";
const OTHER: &str = "SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE a = 1 ORDER BY id LIMIT 1";
const QUESTION: &str = "SELECT FOUND_ROWS()";

const TABLES: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO t (a) VALUES (1), (1), (1), (4), (500)",
];

/// Both of a pair, each compared with the server's; the outcomes.
fn pair(front: &Front, guest: &mut Guest<'_>, counted: &str) -> (&'static str, &'static str) {
    let mut direct = front.direct();
    let rows = direct.query_bytes(counted).unwrap().to_vec();
    let count = direct.query_bytes(QUESTION).unwrap().to_vec();
    let first = guest.run(counted);
    assert_same(counted, &first.bytes, &rows);
    let second = guest.run(QUESTION);
    assert_same(QUESTION, &second.bytes, &count);
    (first.outcome, second.outcome)
}

fn becomes_hits(front: &Front, guest: &mut Guest<'_>, counted: &str) {
    let hits = wait_for("both from memory", PATIENCE, || {
        Ok((pair(front, guest, counted) == ("hit", "hit")).then_some(()))
    });
    hits.unwrap();
}

/// MySQL 8.0 warns of both, and answers with warnings aren't kept.
fn warns(front: &Front) -> bool {
    front.server().kind() == Kind::MySql80
}

#[test]
fn the_count_comes_from_memory_with_the_rows() {
    let front = Front::new("counted_rows", &TABLES);
    if warns(&front) {
        return;
    }
    let mut guest = front.guest();
    becomes_hits(&front, &mut guest, COUNTED);
    becomes_hits(&front, &mut guest, OTHER);
    // Another session has both at once, in any order of the pairs.
    let mut other = front.guest();
    for counted in [COUNTED, OTHER, COUNTED] {
        becomes_hits(&front, &mut other, counted);
    }
    // The server hasn't seen them: what it is asked else is as behind the statements themselves.
    assert_eq!(other.value(QUESTION).0.as_deref(), Some("1"));
}

#[test]
fn a_change_changes_both() {
    let front = Front::new("counted_rows_change", &TABLES);
    let mut guest = front.guest();
    for round in 0..4 {
        if !warns(&front) {
            becomes_hits(&front, &mut guest, COUNTED);
        }
        // It is counted, but not among the first two.
        let write = format!("INSERT INTO t (a) VALUES ({})", 10 + round);
        if round % 2 == 0 {
            guest.setup(&[&write]);
        } else {
            front.direct().query(&write).unwrap();
            front.settle();
        }
        pair(&front, &mut guest, COUNTED);
    }
}

#[test]
fn the_count_is_that_of_the_statement_before() {
    let front = Front::new("counted_rows_before", &TABLES);
    let mut guest = front.guest();
    let mut direct = front.direct();
    for _ in 0..3 {
        pair(&front, &mut guest, COUNTED);
        pair(&front, &mut guest, OTHER);
    }
    let plain = "SELECT id FROM t WHERE a = 4";
    for before in [
        &[COUNTED, plain][..],
        &[COUNTED, "SET @a = 1"],
        &[COUNTED, QUESTION],
        &[COUNTED, OTHER, COUNTED],
        &[COUNTED, "BEGIN", "COMMIT"],
        &["BEGIN", COUNTED],
        &["COMMIT", COUNTED, "SELECT FOUND_ROWS() + 1"],
        &[COUNTED, "SELECT 1 FROM nowhere"],
    ] {
        for sql in before {
            let of_server = direct.query_bytes(sql).unwrap().to_vec();
            assert_same(sql, &guest.run(sql).bytes, &of_server);
        }
        let of_server = direct.query_bytes(QUESTION).unwrap().to_vec();
        assert_same(&before.join("; "), &guest.run(QUESTION).bytes, &of_server);
    }
}
