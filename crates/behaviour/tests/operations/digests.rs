//! What becomes of each query, counted under its digest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use remora::digests::{DigestReport, Order};
use remora::top::{self, View};
use remora_testkit::client::Value;
use remora_testkit::load::Random;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, PATIENCE, lease};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(20))",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')",
];

fn report(front: &Front) -> Vec<DigestReport> {
    front.remora().app().unwrap().shared().digests.report()
}

fn of(front: &Front, text: &str) -> Option<DigestReport> {
    let digests = report(front);
    digests
        .into_iter()
        .find(|digest| digest.text.as_deref() == Some(text))
}

#[test]
fn statements_that_differ_in_values_and_spelling_are_one_query() {
    // Nobody else's definitions outdate what is kept.
    let front = Front::new("one_query", &TABLE);
    let mut guest = front.guest();
    for (sql, times) in [
        ("SELECT a, b FROM t WHERE a = 1", 3),
        ("select a, b from t where a=2 -- trace 7", 2),
        ("/* trace 8 */ SELECT a,\nb FROM t WHERE a = 3", 2),
    ] {
        let expected = front.direct().query_bytes(sql).unwrap().to_vec();
        guest.becomes_hit(sql, &expected);
        for _ in 1..times {
            assert_eq!(guest.run(sql).outcome, "hit");
        }
    }
    // A statement is counted here right after it was counted in the metrics.
    let digest = wait_for("seven hits to be counted", PATIENCE, || {
        let digest = of(&front, "SELECT a, b FROM t WHERE a = ?");
        Ok(digest.filter(|digest| digest.hits >= 7))
    });
    let digest = digest.unwrap();
    assert!(digest.hits == 7 && digest.fills >= 3, "{digest:#?}");
    assert!(digest.misses >= 3 && digest.miss_us > 0, "{digest:#?}");
    assert!(digest.hit_bytes > 0 && digest.hit_p99_us.is_some());
    assert_eq!(of(&front, "SELECT a, b FROM t WHERE a = 1"), None);
}

#[test]
fn a_write_is_seen_where_its_results_are_asked_for() {
    let front = Front::new("seen_write", &TABLE);
    let (mut guest, mut writer) = (front.guest(), front.guest());
    let sql = "SELECT b FROM t WHERE a = 2";
    let mut writes = 0;
    wait_for("a result to be found outdated", PATIENCE, || {
        let expected = front.direct().query_bytes(sql).unwrap().to_vec();
        guest.becomes_hit(sql, &expected);
        let written = writer.run("UPDATE t SET b = b + 1 WHERE a = 2").outcome;
        assert_eq!(written, "write");
        writes += 1;
        let expected = front.direct().query_bytes(sql).unwrap().to_vec();
        guest.becomes_hit(sql, &expected);
        let digest = of(&front, "SELECT b FROM t WHERE a = ?").unwrap();
        Ok((digest.outdated > 0).then_some(()))
    })
    .unwrap();
    let write = wait_for("the write to be counted", PATIENCE, || {
        let write = of(&front, "UPDATE t SET b = b + ? WHERE a = ?");
        Ok(write.filter(|write| write.calls >= writes))
    });
    let write = write.unwrap();
    assert_eq!((write.calls, write.writes, write.hits), (writes, writes, 0));
}

/// Has a result outdated by a write, until that is noticed. Gives the digest's report.
fn outdate(
    front: &Front,
    guest: &mut Guest<'_>,
    sql: &str,
    normal: &str,
    write: &str,
) -> DigestReport {
    let before = of(front, normal).map_or(0, |digest| digest.outdated);
    let mut direct = front.direct();
    let outdated = wait_for("a result to be found outdated", PATIENCE, || {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        guest.becomes_hit(sql, &expected);
        // Past Remora or through it makes no difference.
        guest.run(write);
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        guest.becomes_hit(sql, &expected);
        let digest = of(front, normal).filter(|digest| digest.outdated > before);
        Ok(digest.filter(all_are_told))
    });
    outdated.unwrap()
}

/// Whether it has been looked for what outdated each of them: a moment after they are counted.
fn all_are_told(digest: &DigestReport) -> bool {
    let of_tables: u64 = digest.outdated_by.iter().map(|by| by.count).sum();
    let others = digest.outdated_by_everything + digest.outdated_by_unknown;
    of_tables + digest.outdated_by_other_tables + others >= digest.outdated
}

/// The tables that outdated results, with their counts, by name.
fn tables_of(digest: &DigestReport) -> Vec<(&str, u64)> {
    let mut tables: Vec<_> = digest
        .outdated_by
        .iter()
        .map(|by| (by.table.as_str(), by.count))
        .collect();
    tables.sort_unstable();
    tables
}

#[test]
fn the_table_whose_change_outdated_a_join_is_named() {
    let mut statements = TABLE.to_vec();
    statements.push("CREATE TABLE u (a INT PRIMARY KEY, c INT)");
    statements.push("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
    let front = Front::new("named", &statements);
    let mut guest = front.guest();
    let joins = [
        (
            "SELECT t.b, u.c FROM t JOIN u ON u.a = t.a WHERE t.a = 2 AND u.a = 2",
            "SELECT t.b, u.c FROM t JOIN u ON u.a = t.a WHERE t.a = ? AND u.a = ?",
        ),
        (
            "SELECT COUNT(*) FROM t JOIN u WHERE t.b < u.c",
            "SELECT COUNT(*) FROM t JOIN u WHERE t.b < u.c",
        ),
    ];
    for (sql, normal) in joins {
        let digest = outdate(
            &front,
            &mut guest,
            sql,
            normal,
            "UPDATE u SET c = c + 1 WHERE a = 2",
        );
        assert_eq!(tables_of(&digest), [("u", digest.outdated)], "{digest:#?}");
        assert_eq!(digest.outdated_by[0].schema, front.schema());
        let of_u = digest.outdated;
        let digest = outdate(
            &front,
            &mut guest,
            sql,
            normal,
            "UPDATE t SET b = b + 1 WHERE a = 2",
        );
        let of_t = digest.outdated - of_u;
        assert_eq!(
            tables_of(&digest),
            [("t", of_t), ("u", of_u)],
            "{digest:#?}"
        );
        let digest = outdate(
            &front,
            &mut guest,
            sql,
            normal,
            "ALTER TABLE u COMMENT = 'changed'",
        );
        let of_u = digest.outdated - of_t;
        assert_eq!(
            tables_of(&digest),
            [("t", of_t), ("u", of_u)],
            "{digest:#?}"
        );
        let untold = digest.outdated_by_unknown + digest.outdated_by_everything;
        assert_eq!(
            (untold, digest.outdated_by_other_tables),
            (0, 0),
            "{digest:#?}"
        );
    }
}

#[test]
fn results_that_nobody_asks_for_again_are_counted_when_they_are_dropped() {
    let mut statements = TABLE.to_vec();
    statements.push("CREATE TABLE u (a INT PRIMARY KEY, c INT)");
    statements.push("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
    let options = RemoraOptions::following();
    let front = Front::on(lease(), "swept", options, &statements);
    let mut guest = front.guest();
    let one = ("SELECT b FROM t WHERE a = ?", "UPDATE t SET b = b + 1", "t");
    let two = (
        "SELECT t.b, u.c FROM t JOIN u ON u.a = t.a WHERE t.a = ?",
        "UPDATE u SET c = c + 1",
        "u",
    );
    for (normal, write, table) in [one, two] {
        for value in ["1", "2", "3"] {
            guest.becomes("hit", &normal.replace('?', value), None);
        }
        let before = of(&front, normal).unwrap().outdated;
        front.direct().query(write).unwrap();
        let digest = wait_for("what nobody asks for to be dropped", PATIENCE, || {
            let digest = of(&front, normal).filter(|digest| digest.outdated >= before + 3);
            Ok(digest.filter(all_are_told))
        });
        let digest = digest.unwrap();
        assert_eq!(
            tables_of(&digest),
            [(table, digest.outdated)],
            "{digest:#?}"
        );
    }
    // Whoever noticed it, each was counted once.
    wait_for("each drop to be counted once", PATIENCE, || {
        let counted: u64 = report(&front).iter().map(|digest| digest.outdated).sum();
        let shared = front.remora().app().unwrap().shared().clone();
        Ok((counted == shared.store.stats().invalidated.total()).then_some(()))
    })
    .unwrap();
}

#[test]
fn what_reaches_a_table_or_stands_behind_a_view_is_named() {
    let statements = [
        "CREATE TABLE parent (a INT PRIMARY KEY, s INT)",
        "CREATE TABLE child (a INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (a) ON UPDATE CASCADE)",
        "INSERT INTO parent VALUES (1, 1), (2, 2)",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
        "CREATE VIEW seen AS SELECT a, s FROM parent",
    ];
    let front = Front::new("reached", &statements);
    let mut guest = front.guest();
    let view = (
        "SELECT s FROM seen WHERE a = 1",
        "SELECT s FROM seen WHERE a = ?",
    );
    let digest = outdate(
        &front,
        &mut guest,
        view.0,
        view.1,
        "UPDATE parent SET s = s + 1 WHERE a = 1",
    );
    assert_eq!(
        tables_of(&digest),
        [("parent", digest.outdated)],
        "{digest:#?}"
    );
    let child = (
        "SELECT p FROM child WHERE a = 1",
        "SELECT p FROM child WHERE a = ?",
    );
    let cascade = "UPDATE parent SET a = a + 10 WHERE s > 0 AND a IN (SELECT * FROM (SELECT MAX(p) FROM child WHERE a = 1) AS one)";
    let digest = outdate(&front, &mut guest, child.0, child.1, cascade);
    assert!(
        tables_of(&digest).contains(&("parent", digest.outdated)),
        "{digest:#?}"
    );
}

#[test]
fn what_a_place_in_common_outdated_is_not_told_of_a_table() {
    // The fewest places that there can be.
    let options = RemoraOptions::following().with("cache.tag_slots", "64");
    let mut statements = TABLE.to_vec();
    statements.push("CREATE TABLE other (a INT PRIMARY KEY, b INT, KEY (b))");
    let front = Front::on(lease(), "places", options, &statements);
    let mut guest = front.guest();
    let (sql, normal) = ("SELECT b FROM t WHERE a = 3", "SELECT b FROM t WHERE a = ?");
    // So that rows of the other table have tags of their own.
    guest.becomes("hit", "SELECT b FROM other WHERE a = 1", None);
    let mut number = 0;
    let digest = wait_for("a place in common", PATIENCE, || {
        number += 1;
        let write = format!("INSERT INTO other VALUES ({number}, 0)");
        guest.becomes("hit", sql, None);
        guest.run(&write);
        guest.becomes("hit", sql, None);
        let digest = of(&front, normal).filter(|digest| digest.outdated_by_unknown > 0);
        Ok(digest.filter(all_are_told))
    });
    let digest = digest.unwrap();
    assert!(digest.outdated_by.is_empty(), "{digest:#?}");
    assert_eq!(digest.outdated_by_unknown, digest.outdated, "{digest:#?}");
}

#[test]
fn a_prepared_statement_s_results_are_traced_too() {
    let front = Front::new("traced", &TABLE);
    let mut client = front.guest();
    let (normal, mut direct) = ("SELECT s FROM t WHERE a = ?", front.direct());
    let id = client
        .client()
        .prepare(b"SELECT s FROM t WHERE a = ?")
        .unwrap();
    let digest = wait_for("a result to be found outdated", PATIENCE, || {
        wait_for("a hit", PATIENCE, || {
            let hits = front.hits();
            client.client().execute(id, &[Value::Int(1)])?;
            Ok((front.hits() > hits).then_some(()))
        })?;
        direct
            .query("UPDATE t SET s = FLOOR(RAND() * 1e9) WHERE a = 1")
            .unwrap();
        client.client().execute(id, &[Value::Int(1)])?;
        let digest = of(&front, normal).filter(|digest| !digest.outdated_by.is_empty());
        Ok(digest.filter(all_are_told))
    });
    let digest = digest.unwrap();
    assert_eq!(tables_of(&digest), [("t", digest.outdated)], "{digest:#?}");
}

/// What a client saw of each query: hits, fills, writes, and everything else by its reason.
type Seen = BTreeMap<&'static str, BTreeMap<&'static str, u64>>;

/// Statements of every kind, with what they are without their values.
const FORMS: [(&str, &str); 9] = [
    (
        "SELECT b FROM t WHERE a = {}",
        "SELECT b FROM t WHERE a = ?",
    ),
    (
        "SELECT s FROM t WHERE a IN ({}, 2)",
        "SELECT s FROM t WHERE a IN (...)",
    ),
    (
        "SELECT COUNT(*) FROM t WHERE b > {}",
        "SELECT COUNT(*) FROM t WHERE b > ?",
    ),
    (
        "SELECT NOW(), a FROM t WHERE a = {}",
        "SELECT NOW(), a FROM t WHERE a = ?",
    ),
    ("SELECT RAND({}), a FROM t", "SELECT RAND(?), a FROM t"),
    (
        "SELECT no_such_column + {} FROM t",
        "SELECT no_such_column + ? FROM t",
    ),
    (
        "UPDATE t SET b = b + 1 WHERE a = {}",
        "UPDATE t SET b = b + ? WHERE a = ?",
    ),
    ("SELECT REPEAT(s, 9{}) FROM t", "SELECT REPEAT(s, ?) FROM t"),
    ("DO {}", "DO ?"),
];

fn run_some(guest: &mut Guest<'_>, random: &mut Random, seen: &mut Seen) {
    for _ in 0..400 {
        let (form, normal) = FORMS[random.below(FORMS.len())];
        let sql = form.replace("{}", &(1 + random.below(3)).to_string());
        let (outcome, answer) = guest.observe(|client| client.query(&sql).map(drop));
        // Errors are the server's own.
        drop(answer);
        *seen.entry(normal).or_default().entry(outcome).or_default() += 1;
    }
}

#[test]
fn what_is_counted_is_what_clients_saw() {
    let seed = std::env::var("SEED").ok();
    let seed = seed.map_or_else(Random::fresh_seed, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Random::new(seed);
    // So small that one of the forms is too large to be kept.
    let options = RemoraOptions::following().with("cache.result_bytes_max", "1KiB");
    let front = Front::with("recount", options, &TABLE);
    let mut seen = Seen::new();
    for _ in 0..3 {
        run_some(&mut front.guest(), &mut random, &mut seen);
    }
    for (normal, outcomes) in &seen {
        let total: u64 = outcomes.values().sum();
        let counted = wait_for("all to be counted", PATIENCE, || {
            let digest = of(&front, normal);
            Ok(digest.filter(|digest| digest.calls == total))
        });
        let digest = counted.unwrap_or_else(|_| panic!("{outcomes:?}: {:#?}", of(&front, normal)));
        let saw = |outcome| outcomes.get(outcome).copied().unwrap_or(0);
        assert_eq!(digest.hits, saw("hit"), "{normal}");
        assert_eq!(digest.misses, total - saw("hit"), "{normal}");
        assert_eq!(digest.fills, saw("fill"), "{normal}");
        assert_eq!(digest.writes, saw("write"), "{normal}");
        for refused in &digest.refusals {
            assert_eq!(refused.count, saw(&refused.reason), "{normal}: {refused:?}");
        }
        let refused: u64 = digest.refusals.iter().map(|refused| refused.count).sum();
        let others = total - saw("hit") - saw("fill") - saw("write");
        assert_eq!(
            refused + digest.refusals_of_other_reasons,
            others,
            "{normal}: {outcomes:?}"
        );
    }
}

#[test]
fn prepared_statements_are_counted_with_those_as_text() {
    let front = Front::new("counted_prepared", &TABLE);
    let mut client = front
        .options()
        .at(front.remora().address())
        .connect()
        .unwrap();
    let id = client.prepare(b"SELECT s FROM t WHERE a = ?").unwrap();
    let digest = wait_for("a hit of a prepared statement", PATIENCE, || {
        client.execute(id, &[Value::Int(1)])?;
        let digest = of(&front, "SELECT s FROM t WHERE a = ?");
        Ok(digest.filter(|digest| digest.hits > 0))
    });
    let digest = digest.unwrap();
    assert!(digest.fills > 0 && digest.misses > 0, "{digest:#?}");
    client.query("SELECT s FROM t WHERE a = 2").unwrap();
    wait_for("the text to be counted", PATIENCE, || {
        let now = of(&front, "SELECT s FROM t WHERE a = ?").unwrap();
        Ok((now.calls > digest.calls).then_some(()))
    })
    .unwrap();
}

#[test]
fn what_happens_is_watched_in_pictures() {
    let front = Front::new("watched", &TABLE);
    let admin = front.remora().admin();
    let view = View {
        order: Order::Calls,
        count_max: 5,
        interval: Duration::from_millis(100),
        pictures: Some(1),
        clears: false,
    };
    let mut guest = front.guest();
    let before = guest.run("SELECT a FROM t WHERE b = 10");
    wait_for("what happened before to be counted", PATIENCE, || {
        let digest = of(&front, "SELECT a FROM t WHERE b = ?");
        Ok(digest.filter(|digest| digest.calls > 0))
    })
    .unwrap();
    let is_over = AtomicBool::new(false);
    let text = "SELECT s FROM t WHERE a = ?";
    let mut picture = String::new();
    let shown = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut client = front.options().at(front.remora().address()).connect();
            let client = client.as_mut().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                client.query("SELECT s FROM t WHERE a = 3").unwrap();
            }
        });
        let begun = wait_for("the load to be counted", PATIENCE, || {
            Ok(of(&front, text).filter(|digest| digest.calls > 0))
        });
        // It may stand still for a while.
        let shown = begun.and_then(|_| {
            wait_for("a picture of the load", PATIENCE, || {
                let mut bytes = Vec::new();
                top::run(admin, &view, &mut bytes)?;
                picture = String::from_utf8(bytes)?;
                let is_idle = picture.contains("\n0 hits/s and 0 misses/s");
                let is_seen = picture.contains("caching on") && picture.contains(text);
                Ok((is_seen && !is_idle).then_some(()))
            })
        });
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap();
        shown
    });
    shown.unwrap_or_else(|error| panic!("{error:#}: {picture}"));
    assert_ne!(before.outcome, "hit");
    // It happened before.
    assert!(!picture.contains("SELECT a FROM t WHERE b"), "{picture}");
}
