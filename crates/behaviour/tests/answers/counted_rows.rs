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

/// What comes between, and what is asked then, is as behind the server's own answers.
#[test]
fn the_count_is_that_of_the_statement_before() {
    let front = Front::new("counted_rows_before", &TABLES);
    let mut guest = front.guest();
    let mut direct = front.direct();
    if !warns(&front) {
        becomes_hits(&front, &mut guest, COUNTED);
        becomes_hits(&front, &mut guest, OTHER);
    }
    let plain = "SELECT id FROM t WHERE a = 4";
    for before in [
        &[COUNTED, plain][..],
        &[COUNTED, "SET @a = 1"],
        &[COUNTED, "SET @a = 1", "DELETE FROM t WHERE id = 1000"],
        &[COUNTED, QUESTION],
        &[COUNTED, QUESTION, "SET @a = 1"],
        &[COUNTED, QUESTION, QUESTION],
        &[COUNTED, OTHER, COUNTED],
        &[COUNTED, "BEGIN", "COMMIT"],
        &["BEGIN", COUNTED],
        &["COMMIT", COUNTED, "SELECT FOUND_ROWS() + 1"],
        &[COUNTED, "SET SESSION query_cache_type = 1"],
    ] {
        if before.iter().any(|sql| sql.contains("query_cache")) && front.server().kind().is_mysql()
        {
            continue;
        }
        for question in [QUESTION, "SHOW WARNINGS", "SELECT ROW_COUNT()"] {
            for sql in before {
                let of_server = direct.query_bytes(sql).unwrap().to_vec();
                let seen = guest.run(sql).bytes;
                // The server's own cache has its own warnings of it.
                if !sql.contains("query_cache") {
                    assert_same(sql, &seen, &of_server);
                }
            }
            let of_server = direct.query_bytes(question).unwrap().to_vec();
            let shown = format!("{}; {question}", before.join("; "));
            let seen = guest.run(question).bytes;
            if !(shown.contains("query_cache") && question != QUESTION) {
                assert_same(&shown, &seen, &of_server);
            }
        }
    }
}

/// Remora's own questions come between, and set the server's count.
#[test]
fn no_other_count_is_kept() {
    let front = Front::new("counted_rows_other", &TABLES);
    if warns(&front) {
        return;
    }
    let plain = "SELECT id FROM t WHERE a = 4";
    let mut other = front.guest();
    let of_plain = front.direct().query_bytes(plain).unwrap().to_vec();
    other.becomes_hit(plain, &of_plain);
    for between in [
        "EXPLAIN REMORA ANALYZE SELECT id FROM t WHERE a = 4",
        "SET SESSION query_cache_type = @@session.query_cache_type",
        "SELECT id FROM t WHERE a = 4",
    ] {
        front
            .direct()
            .query("UPDATE t SET a = a + 1 WHERE id = 5")
            .unwrap();
        front.settle();
        let mut guest = front.guest();
        // A fill, something else, and then the question.
        guest.setup(&[COUNTED, between, QUESTION]);
        for _ in 0..3 {
            pair(&front, &mut other, COUNTED);
        }
    }
}

/// A result without its count is of no use, unless its rows tell the count.
#[test]
fn who_does_not_ask_gets_hits_without_limit_only() {
    let front = Front::new("counted_rows_unasked", &TABLES);
    let mut guest = front.guest();
    for _ in 0..5 {
        assert_ne!(guest.run(COUNTED).outcome, "hit");
    }
    if warns(&front) {
        return;
    }
    let whole = "SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE a < 100 ORDER BY id";
    let expected = front.direct().query_bytes(whole).unwrap().to_vec();
    guest.becomes_hit(whole, &expected);
    assert_eq!(guest.value(QUESTION).0.as_deref(), Some("4"));
    guest.still_hits(whole, &expected);
    guest.setup(&["SET @a = 1"]);
    assert_eq!(guest.value(QUESTION).0.as_deref(), Some("4"));
}
