//! Which changes drop which results, and which leave them alone. docs/what-is-cached.md has the
//! rules.

use remora_cache::{BrokenRules, BrokenTags};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};
use remora_behaviour::outcome::is_unproven;

/// What becomes of a result when something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
}
use Fate::{Dropped, Kept};

const TABLES: [&str; 8] = [
    "CREATE TABLE t (id INT PRIMARY KEY, k INT, name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, \
     price DECIMAL(8,2), day DATE, at DATETIME, y YEAR, big BIGINT UNSIGNED, pad CHAR(60) CHARACTER SET latin1, f DOUBLE, \
     czech VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_czech_ci, title VARBINARY(40), code BINARY(6), body BLOB, KEY (k), KEY (title), \
     KEY (code))",
    "INSERT INTO t SELECT n, n DIV 10, CONCAT('name', n), n / 4, DATE('2024-01-01') + INTERVAL n DAY, \
     '2024-01-01' + INTERVAL n HOUR, 2000 + n MOD 100, n, 'pad', n, CONCAT('c', n), CONCAT('M\u{fc}nchen_', n), CONCAT('k', n), CONCAT('b', n) FROM (SELECT a.n + 10 * b.n + 100 * c.n AS n FROM \
     digits a, digits b, digits c) numbers WHERE n BETWEEN 1 AND 400",
    "CREATE TABLE u (id INT PRIMARY KEY, t_id INT, v INT)",
    "INSERT INTO u SELECT id, id, id * 2 FROM t",
    "CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, v INT, \
     FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO parent VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO child VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
];

const DIGITS: [&str; 2] = [
    "CREATE TABLE digits (n INT)",
    "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
];

fn front(schema: &str) -> Front {
    Front::new(schema, &[&DIGITS[..], &TABLES[..]].concat())
}

/// What becomes of the result of `read` when `change` is made on the server.
fn fate(front: &Front, guest: &mut Guest<'_>, read: &str, change: &str) -> Fate {
    let mut direct = front.direct();
    let before = direct.query_bytes(read).unwrap().to_vec();
    guest.becomes_hit(read, &before);
    // A result that was read before its shape's first commit was visible depends on the whole
    // table: what is asked here is what becomes of the next.
    front.settle();
    front.remora().app().unwrap().shared().flush();
    guest.becomes_hit(read, &before);
    for statement in change.split("; ") {
        direct
            .query(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    front.catch_up();
    let after = direct.query_bytes(read).unwrap().to_vec();
    let seen = wait_for("the follower to be live", PATIENCE, || {
        let seen = guest.run(read);
        assert_same(&format!("{read} after {change}"), &seen.bytes, &after);
        // On a busy machine the last proof can be too old for a moment: then nothing is served,
        // whether it was dropped or not.
        Ok((!is_unproven(seen.outcome)).then_some(seen))
    });
    let outcome = seen.unwrap().outcome;
    println!("{read} after {change}: {outcome}");
    match outcome {
        "hit" => Kept,
        _ => Dropped,
    }
}

fn check(front: &Front, cases: &[(&str, &str, Fate)]) {
    let mut guest = front.guest();
    for (read, change, expected) in cases {
        let seen = fate(front, &mut guest, read, change);
        assert_eq!(seen, *expected, "{read}, then {change}");
    }
}

#[test]
fn a_change_of_one_row_leaves_results_about_others_alone() {
    check(
        &front("tags_rows"),
        &[
            (
                "SELECT * FROM t WHERE id = 5",
                "UPDATE t SET pad = 'x' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id = 5",
                "UPDATE t SET pad = 'x' WHERE id = 5",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE 5 = id",
                "DELETE FROM t WHERE id = 399",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id = 398",
                "DELETE FROM t WHERE id = 398",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id = 398",
                "INSERT INTO t (id) VALUES (399)",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id = 398",
                "INSERT INTO t (id) VALUES (398)",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id IN (5, 6, 9)",
                "UPDATE t SET pad = 'y' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id IN (5, 6, 9)",
                "UPDATE t SET pad = 'y' WHERE id = 9",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id = 5 OR id = 6",
                "UPDATE t SET pad = 'z' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id = 5 OR id = 6",
                "UPDATE t SET pad = 'z' WHERE id = 6",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id = '5'",
                "UPDATE t SET pad = 'q' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT * FROM t WHERE id = '5'",
                "UPDATE t SET pad = 'q' WHERE id = 5",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id = 5 + 0",
                "UPDATE t SET pad = 'r' WHERE id = 7",
                Kept,
            ),
            // What isn't certain is coarse.
            (
                "SELECT * FROM t WHERE id = 5.0",
                "UPDATE t SET pad = 's' WHERE id = 7",
                Dropped,
            ),
            (
                "SELECT * FROM t WHERE id = 5 OR k = 900",
                "UPDATE t SET pad = 's2' WHERE id = 7",
                Dropped,
            ),
        ],
    );
}

#[test]
fn a_row_leaves_the_results_of_its_old_values_and_enters_those_of_its_new_ones() {
    check(
        &front("tags_moves"),
        &[
            (
                "SELECT id FROM t WHERE k = 3 ORDER BY id",
                "UPDATE t SET k = 4 WHERE id = 35",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE k = 3 ORDER BY id",
                "UPDATE t SET k = 3 WHERE id = 35",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE k = 3 ORDER BY id",
                "UPDATE t SET k = 5 WHERE id = 47",
                Kept,
            ),
            (
                "SELECT id FROM t WHERE k = 3 ORDER BY id",
                "UPDATE t SET k = NULL WHERE id = 47",
                Kept,
            ),
            (
                "SELECT id FROM t WHERE k = 3 ORDER BY id",
                "UPDATE t SET k = NULL WHERE id = 36",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE k IS NULL ORDER BY id",
                "UPDATE t SET k = NULL WHERE id = 37",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE k IS NULL ORDER BY id",
                "UPDATE t SET k = 7 WHERE id = 38",
                Kept,
            ),
            (
                "SELECT name FROM t WHERE k = 8 AND id = 81",
                "UPDATE t SET name = 'o' WHERE id = 82",
                Kept,
            ),
            (
                "SELECT name FROM t WHERE k = 8 AND id = 81",
                "UPDATE t SET k = 1 WHERE id = 81",
                Dropped,
            ),
        ],
    );
}

#[test]
fn a_change_of_a_column_that_is_not_read_drops_nothing() {
    check(
        &front("tags_columns"),
        &[
            (
                "SELECT name FROM t WHERE id = 5",
                "UPDATE t SET pad = 'x' WHERE id = 5",
                Kept,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "UPDATE t SET name = 'x' WHERE id = 5",
                Dropped,
            ),
            ("SELECT SUM(k) FROM t", "UPDATE t SET pad = 'x'", Kept),
            (
                "SELECT SUM(k) FROM t",
                "UPDATE t SET k = 0 WHERE id = 12",
                Dropped,
            ),
            (
                "SELECT COUNT(*) FROM t",
                "UPDATE t SET pad = 'y', k = 1, name = NULL",
                Kept,
            ),
            (
                "SELECT COUNT(*) FROM t",
                "DELETE FROM t WHERE id = 400",
                Dropped,
            ),
            (
                "SELECT COUNT(*) FROM t WHERE k = 1",
                "UPDATE t SET pad = 'z'",
                Kept,
            ),
            (
                "SELECT id FROM t WHERE id = 5 ORDER BY pad",
                "UPDATE t SET pad = 'q' WHERE id = 5",
                Dropped,
            ),
            (
                "SELECT t.* FROM t WHERE id = 5",
                "UPDATE t SET f = 0.5 WHERE id = 5",
                Dropped,
            ),
        ],
    );
}

#[test]
fn ranges_are_dropped_by_what_lies_in_them_or_close_by() {
    check(
        &front("tags_ranges"),
        &[
            (
                "SELECT pad FROM t WHERE id BETWEEN 10 AND 99 ORDER BY id",
                "UPDATE t SET pad = 'a' WHERE id = 300",
                Kept,
            ),
            (
                "SELECT pad FROM t WHERE id BETWEEN 10 AND 99 ORDER BY id",
                "UPDATE t SET pad = 'a' WHERE id = 10",
                Dropped,
            ),
            (
                "SELECT pad FROM t WHERE id BETWEEN 10 AND 99 ORDER BY id",
                "UPDATE t SET pad = 'a' WHERE id = 99",
                Dropped,
            ),
            (
                "SELECT pad FROM t WHERE id >= 10 AND id < 100 ORDER BY id",
                "UPDATE t SET pad = 'b' WHERE id = 300",
                Kept,
            ),
            (
                "SELECT pad FROM t WHERE id >= 10 AND id < 100 ORDER BY id",
                "UPDATE t SET pad = 'b' WHERE id = 50",
                Dropped,
            ),
            (
                "SELECT pad FROM t WHERE id BETWEEN 99 AND 10",
                "UPDATE t SET pad = 'c' WHERE id = 50",
                Kept,
            ),
            (
                "SELECT pad FROM t WHERE id > 100 ORDER BY id",
                "UPDATE t SET pad = 'c2' WHERE id = 50",
                Dropped,
            ),
            (
                "SELECT pad FROM t WHERE id > 100 ORDER BY id",
                "UPDATE t SET k = 0 WHERE id = 150",
                Kept,
            ),
            (
                "SELECT pad FROM t WHERE id BETWEEN -5 AND 3 ORDER BY id",
                "UPDATE t SET pad = 'd' WHERE id = 3",
                Dropped,
            ),
            (
                "SELECT pad FROM t WHERE id BETWEEN -5 AND 3 ORDER BY id",
                "INSERT INTO t (id) VALUES (-4)",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE day BETWEEN '2024-01-05' AND '2024-01-20' ORDER BY id",
                "UPDATE t SET day = '2024-01-20' WHERE id = 300",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE day BETWEEN '2024-01-05' AND '2024-01-20' ORDER BY id",
                "UPDATE t SET day = '2024-09-20' WHERE id = 301",
                Kept,
            ),
            (
                "SELECT id FROM t WHERE at >= '2024-01-02' AND at < '2024-01-03' ORDER BY id",
                "UPDATE t SET at = '2024-01-02 23:59:59' WHERE id = 300",
                Dropped,
            ),
            (
                "SELECT id FROM t WHERE at >= '2024-01-02' AND at < '2024-01-03' ORDER BY id",
                "UPDATE t SET at = '2031-01-02' WHERE id = 301",
                Kept,
            ),
        ],
    );
}

/// Types of columns, each with what is told apart and what isn't.
const TYPES: &[(&str, &str, Fate)] = &[
    (
        "SELECT id FROM t WHERE name = 'name5'",
        "UPDATE t SET name = 'other' WHERE id = 7",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE name = 'NAME5 '",
        "UPDATE t SET name = 'Name5' WHERE id = 8",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE name = 'nome' ORDER BY id",
        "UPDATE t SET name = 'n\u{f6}me' WHERE id = 9",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE name = 'n\u{f6}me' ORDER BY id",
        "UPDATE t SET name = 'nome' WHERE id = 10",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE price = 1.5",
        "UPDATE t SET price = 9.75 WHERE id = 12",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE price = 1.50",
        "UPDATE t SET price = 1.5 WHERE id = 13",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE price = 3 ORDER BY id",
        "UPDATE t SET price = 3.00 WHERE id = 14",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE day = '2024-01-06'",
        "UPDATE t SET day = '2025-01-06' WHERE id = 15",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE day = '2024-01-06'",
        "UPDATE t SET day = '2024-01-06' WHERE id = 16",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE day = '2024-1-6'",
        "UPDATE t SET day = '2024-01-06' WHERE id = 17",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE y = 2030",
        "UPDATE t SET y = 2031 WHERE id = 18",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE y = 2030 ORDER BY id",
        "UPDATE t SET y = 30 WHERE id = 19",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE big = 18446744073709551615",
        "UPDATE t SET big = 18446744073709551615 WHERE id = 20",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE big = 18446744073709551615",
        "UPDATE t SET big = 1 WHERE id = 21",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE f = 22",
        "UPDATE t SET f = 0.5 WHERE id = 23",
        Dropped,
    ),
    // Bytes, in whatever alphabet.
    (
        "SELECT id FROM t WHERE title = 'M\u{fc}nchen_5'",
        "UPDATE t SET title = 'm\u{fc}nchen_5' WHERE id = 7",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE title = 'M\u{fc}nchen_5' ORDER BY id",
        "UPDATE t SET title = 'M\u{fc}nchen_5' WHERE id = 8",
        Dropped,
    ),
    // Padding doesn't count.
    (
        "SELECT id FROM t WHERE code = 'k5\\0\\0\\0\\0' ORDER BY id",
        "UPDATE t SET code = 'k5' WHERE id = 7",
        Dropped,
    ),
    (
        "SELECT id FROM t WHERE code = 'k5\\0\\0\\0\\0' ORDER BY id",
        "UPDATE t SET code = 'k50' WHERE id = 9",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE body IN ('b5', 'b6') ORDER BY id",
        "UPDATE t SET body = 'b7' WHERE id = 9",
        Kept,
    ),
    (
        "SELECT id FROM t WHERE body IN ('b5', 'b6') ORDER BY id",
        "UPDATE t SET body = 'b6' WHERE id = 9",
        Dropped,
    ),
    // `ch` is a letter of its own there.
    (
        "SELECT id FROM t WHERE czech = 'c5'",
        "UPDATE t SET czech = 'x' WHERE id = 7",
        Dropped,
    ),
];

#[test]
fn each_type_is_compared_as_the_server_does() {
    check(&front("tags_types"), TYPES);
}

#[test]
fn each_table_of_a_join_is_narrowed_by_its_own_conditions() {
    const INNER: &str =
        "SELECT u.v, t.name FROM t JOIN u ON u.t_id = t.id WHERE t.id = 5 AND u.id = 5";
    const LEFT: &str =
        "SELECT t.id, u.v FROM t LEFT JOIN u ON u.t_id = t.id AND u.v = 10 WHERE t.id = 5";
    const OUTSIDE: &str = "SELECT t.id, u.v FROM t LEFT JOIN u ON u.t_id = t.id AND t.k = 99 WHERE t.id IN (5, 6) ORDER BY 1";
    check(
        &front("tags_joins"),
        &[
            (INNER, "UPDATE t SET name = 'a' WHERE id = 7", Kept),
            (INNER, "UPDATE u SET v = 0 WHERE id = 7", Kept),
            (INNER, "UPDATE t SET name = 'a' WHERE id = 5", Dropped),
            (INNER, "UPDATE u SET v = 0 WHERE id = 5", Dropped),
            (LEFT, "UPDATE t SET id = 5000 WHERE id = 8", Kept),
            (LEFT, "UPDATE u SET v = 11 WHERE id = 8", Kept),
            (LEFT, "UPDATE u SET v = 10, t_id = 5 WHERE id = 8", Dropped),
            // The condition on the preserved side says nothing of which of its rows are read.
            (OUTSIDE, "UPDATE t SET k = 98 WHERE id = 6", Dropped),
            (
                "SELECT id FROM t WHERE id = 5 UNION SELECT v FROM u WHERE id = 6",
                "UPDATE u SET v = 1 WHERE id = 7",
                Kept,
            ),
            (
                "SELECT id FROM t WHERE id = 5 UNION SELECT v FROM u WHERE id = 6",
                "UPDATE u SET v = 1 WHERE id = 6",
                Dropped,
            ),
            (
                "SELECT (SELECT v FROM u WHERE u.id = 9) FROM t WHERE t.id = 5",
                "UPDATE u SET v = 1 WHERE id = 10",
                Kept,
            ),
            (
                "SELECT (SELECT v FROM u WHERE u.id = 9) FROM t WHERE t.id = 5",
                "UPDATE u SET v = 1 WHERE id = 9",
                Dropped,
            ),
            (
                "SELECT x.id FROM (SELECT id, k FROM t WHERE id = 12) AS x WHERE x.k = 1",
                "UPDATE t SET k = 2 WHERE id = 13",
                Kept,
            ),
            (
                "SELECT x.id FROM (SELECT id, k FROM t WHERE id = 12) AS x WHERE x.k = 1",
                "UPDATE t SET k = 2 WHERE id = 12",
                Dropped,
            ),
        ],
    );
}

#[test]
fn a_table_of_a_join_is_narrowed_by_what_its_columns_must_equal() {
    const BY_KEY: &str = "SELECT u.v, t.name FROM t JOIN u ON u.t_id = t.id WHERE t.id = 5";
    const LEFT: &str = "SELECT u.v FROM t LEFT JOIN u ON t.id = u.t_id WHERE t.id IN (5, 6)";
    const THROUGH: &str =
        "SELECT child.v FROM t, u, child WHERE child.id = u.t_id AND u.t_id = t.id AND t.id = 2";
    const TEXT: &str = "SELECT a.id FROM t a JOIN t b ON a.name = b.name WHERE a.name = 'NAME5'";
    const PRESERVED: &str = "SELECT u.id FROM u LEFT JOIN t ON u.t_id = t.id AND t.id = 5";
    const ELSEWHERE: &str =
        "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.t_id AND t.id = 5)";
    check(
        &front("tags_equal"),
        &[
            (BY_KEY, "UPDATE u SET v = 0 WHERE id = 7", Kept),
            (BY_KEY, "INSERT INTO u VALUES (5001, 6, 1)", Kept),
            (BY_KEY, "UPDATE u SET v = 0 WHERE id = 5", Dropped),
            (BY_KEY, "UPDATE u SET t_id = 5 WHERE id = 8", Dropped),
            (BY_KEY, "INSERT INTO u VALUES (5002, 5, 1)", Dropped),
            (LEFT, "UPDATE u SET v = 0 WHERE id = 7", Kept),
            (LEFT, "DELETE FROM u WHERE t_id = 6", Dropped),
            (THROUGH, "UPDATE child SET v = 9 WHERE id = 3", Kept),
            (THROUGH, "UPDATE child SET v = 9 WHERE id = 2", Dropped),
            (TEXT, "UPDATE t SET name = 'other' WHERE id = 7", Kept),
            (TEXT, "UPDATE t SET name = 'Name5 ' WHERE id = 9", Dropped),
            // Every row of these counts.
            (PRESERVED, "DELETE FROM u WHERE id = 9", Dropped),
            (ELSEWHERE, "UPDATE u SET t_id = 5 WHERE id = 10", Dropped),
        ],
    );
}

/// Reads with a name in a join that means a table of the query outside, although one inside has it
/// too. Older servers look for none outside.
const SCOPED: [&str; 2] = [
    "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM t, u JOIN child ON t.id = u.t_id WHERE t.id = 5)",
    "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u JOIN child ON t.id = u.t_id JOIN t ON 1 WHERE t.id = 5)",
];

#[test]
fn what_a_join_can_not_see_is_the_outer_querys() {
    let front = front("tags_scopes");
    let is_taken = |read: &str| front.direct().query(read).is_ok();
    for read in SCOPED.into_iter().filter(|read| is_taken(read)) {
        let changes = [
            "UPDATE u SET t_id = 7 WHERE id = 8",
            "UPDATE u SET t_id = 8 WHERE id = 8",
        ];
        check(&front, &changes.map(|change| (read, change, Dropped)));
    }
}

#[test]
fn a_name_in_another_case_may_be_the_outer_querys() {
    const OUTER: &str = "SELECT T.v FROM u T WHERE EXISTS (SELECT 1 FROM t WHERE T.id = 5)";
    const EQUAL: &str = "SELECT T.v FROM u T WHERE EXISTS (SELECT 1 FROM t, child WHERE T.t_id = child.v AND t.id = 1)";
    let front = front("tags_case");
    let cases = [
        (OUTER, "DELETE FROM t WHERE id = 398", Dropped),
        (EQUAL, "UPDATE child SET v = 9 WHERE id = 3", Dropped),
    ];
    check(&front, &cases);
}

#[test]
fn without_the_scope_rule_an_old_result_is_kept() {
    let broken = BrokenRules {
        tags: BrokenTags::ScopeOfJoins,
        ..BrokenRules::default()
    };
    let setup = [&DIGITS[..], &TABLES[..]].concat();
    let options = RemoraOptions::following();
    let front = Front::breaking(broken, lease(), "tags_no_scopes", options, &setup);
    let is_taken = |read: &str| front.direct().query(read).is_ok();
    for (number, read) in SCOPED
        .into_iter()
        .enumerate()
        .filter(|(_, read)| is_taken(read))
    {
        // There is such a row already, so the answer stays as it was.
        let change = format!("INSERT INTO u VALUES ({}, 7, 0)", 9_000 + number);
        check(&front, &[(read, &change, Kept)]);
    }
}

#[test]
fn cascades_drop_children_only_where_keys_change() {
    check(
        &front("tags_cascades"),
        &[
            (
                "SELECT v FROM child WHERE id = 2",
                "UPDATE parent SET v = 9 WHERE id = 1",
                Kept,
            ),
            (
                "SELECT v FROM child WHERE id = 1",
                "DELETE FROM parent WHERE id = 1",
                Dropped,
            ),
            (
                "SELECT parent_id FROM child WHERE id = 2",
                "UPDATE parent SET id = 12 WHERE id = 2",
                Dropped,
            ),
            (
                "SELECT v FROM child WHERE parent_id = 3",
                "DELETE FROM parent WHERE id = 3",
                Dropped,
            ),
        ],
    );
}

/// A new parent has no children. One that takes another's place takes the children with it.
#[test]
fn new_parents_drop_no_children_unless_they_take_the_place_of_another() {
    let front = front("tags_new_parents");
    let read = "SELECT v FROM child WHERE id < 100";
    check(
        &front,
        &[
            (read, "INSERT INTO parent VALUES (4, 4), (5, 5)", Kept),
            (read, "INSERT IGNORE INTO parent VALUES (4, 4)", Kept),
            (read, "INSERT INTO parent SELECT 6, id FROM t LIMIT 1", Kept),
            (
                read,
                "INSERT INTO parent VALUES (1, 9) ON DUPLICATE KEY UPDATE id = 11",
                Dropped,
            ),
            (read, "REPLACE INTO parent VALUES (2, 9)", Dropped),
            (read, "REPLACE INTO parent VALUES (7, 7)", Kept),
            (
                "SELECT v FROM child WHERE parent_id = 3",
                "REPLACE INTO parent SELECT 3, 9",
                Dropped,
            ),
            (
                "SELECT v FROM child WHERE id = 99",
                "DELETE FROM parent WHERE id = 4",
                Dropped,
            ),
        ],
    );
}

#[test]
fn without_the_deletions_of_parents_an_old_result_is_kept() {
    let broken = BrokenRules {
        tags: BrokenTags::DeletedParents,
        ..BrokenRules::default()
    };
    let setup = [&DIGITS[..], &TABLES[..]].concat();
    let options = RemoraOptions::following();
    let front = Front::breaking(broken, lease(), "tags_old_parents", options, &setup);
    // Nothing is there, so the answer stays as it was.
    let read = "SELECT v FROM child WHERE id = 99";
    check(&front, &[(read, "DELETE FROM parent WHERE id = 2", Kept)]);
}

#[test]
fn what_can_not_be_narrowed_drops_everything_of_its_table() {
    let front = front("tags_wholes");
    check(
        &front,
        &[
            (
                "SELECT name FROM t WHERE id = 5",
                "ALTER TABLE t ADD COLUMN extra INT",
                Dropped,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "UPDATE t SET name = 'x' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "ALTER TABLE t MODIFY id BIGINT",
                Dropped,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "UPDATE t SET name = 'y' WHERE id = 7",
                Kept,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "UPDATE t SET name = 'y' WHERE id = 5",
                Dropped,
            ),
            (
                "SELECT v FROM u WHERE id = 5",
                "RENAME TABLE u TO w; CREATE TABLE u LIKE w",
                Dropped,
            ),
            (
                "SELECT name FROM t WHERE id = 5",
                "TRUNCATE TABLE t",
                Dropped,
            ),
        ],
    );
}

/// A writer that logs only the columns that it changed, and the primary key, says less of its rows.
#[test]
fn images_with_few_columns_drop_more_and_never_less() {
    let front = front("tags_images");
    let mut guest = front.guest();
    let cases = [
        (
            "SELECT name FROM t WHERE id = 5",
            "UPDATE t SET name = 'x' WHERE id = 7",
            Some(Kept),
        ),
        (
            "SELECT name FROM t WHERE id = 5",
            "UPDATE t SET name = 'x' WHERE id = 5",
            Some(Dropped),
        ),
        (
            "SELECT id FROM t WHERE k = 3 ORDER BY id",
            "UPDATE t SET k = 3 WHERE id = 61",
            Some(Dropped),
        ),
        (
            "SELECT id FROM t WHERE k = 3 ORDER BY id",
            "UPDATE t SET k = 9 WHERE id = 61",
            Some(Dropped),
        ),
        (
            "SELECT id FROM t WHERE k = 3 ORDER BY id",
            "DELETE FROM t WHERE id = 35",
            Some(Dropped),
        ),
        (
            "SELECT name FROM t WHERE k = 3 ORDER BY id",
            "UPDATE t SET name = 'z' WHERE id = 36",
            Some(Dropped),
        ),
        (
            "SELECT name FROM t WHERE k = 3 ORDER BY id",
            "UPDATE t SET pad = 'z' WHERE id = 36",
            Some(Kept),
        ),
    ];
    for image in ["MINIMAL", "NOBLOB"] {
        for (read, change, expected) in cases {
            let change = format!(
                "SET binlog_row_image = {image}; {change}{}",
                if image == "NOBLOB" {
                    " /* again */"
                } else {
                    ""
                }
            );
            let seen = fate(&front, &mut guest, read, &change);
            if image == "MINIMAL" {
                assert_eq!(Some(seen), expected, "{read}, then {change}");
            }
        }
    }
}

#[test]
fn a_virtual_column_changes_with_what_it_is_calculated_from() {
    let front = front("tags_virtual");
    if front.server().kind() == Kind::MySql56 {
        return;
    }
    front
        .server()
        .execute([
            format!("USE {}", front.schema()),
            // Between stored columns, whose places in the log must not move.
            "CREATE TABLE w (twice INT AS (a * 2) VIRTUAL, id INT PRIMARY KEY, a INT, \
             more INT AS (twice + 1) VIRTUAL, b INT, KEY (twice))"
                .to_owned(),
            "INSERT INTO w (id, a, b) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)".to_owned(),
        ])
        .unwrap();
    let cases = [
        (
            "SELECT twice FROM w WHERE id = 1",
            "a = a + 1 WHERE id = 1",
            Dropped,
        ),
        (
            "SELECT more FROM w WHERE id = 1",
            "a = a + 1 WHERE id = 1",
            Dropped,
        ),
        (
            "SELECT more FROM w WHERE id = 1",
            "a = a + 1 WHERE id = 2",
            Kept,
        ),
        (
            "SELECT more FROM w WHERE id = 1",
            "b = b + 1 WHERE id = 1",
            Kept,
        ),
        (
            "SELECT id FROM w WHERE twice = 4",
            "a = a + 1 WHERE id = 3",
            Dropped,
        ),
        (
            "SELECT id FROM w WHERE twice = 4",
            "b = b + 1 WHERE id = 3",
            Kept,
        ),
        (
            "SELECT * FROM w WHERE id = 1",
            "b = b + 1 WHERE id = 1",
            Dropped,
        ),
        (
            "SELECT * FROM w WHERE id = 1",
            "b = b + 1 WHERE id = 3",
            Kept,
        ),
    ];
    let mut guest = front.guest();
    for image in ["FULL", "MINIMAL"] {
        for (read, change, expected) in cases {
            let change = format!("SET binlog_row_image = {image}; UPDATE w SET {change}");
            let seen = fate(&front, &mut guest, read, &change);
            // An image with few columns may say too little to keep a result.
            if image == "FULL" || expected == Dropped {
                assert_eq!(seen, expected, "{read}, then {change}");
            }
        }
    }
}

#[test]
fn a_label_narrows_like_its_number() {
    let front = front("tags_labels");
    front
        .server()
        .execute([
            format!("USE {}", front.schema()),
            "CREATE TABLE tickets (id INT PRIMARY KEY, state ENUM('new', 'open', 'done'), v INT)"
                .to_owned(),
            "INSERT INTO tickets VALUES (1, 'new', 1), (2, 'open', 2), (3, 'done', 3)".to_owned(),
        ])
        .unwrap();
    let open = "SELECT id, v FROM tickets WHERE state = 'open'";
    let numbered = "SELECT id, v FROM tickets WHERE state IN (1, 2)";
    check(
        &front,
        &[
            (open, "UPDATE tickets SET v = 5 WHERE id = 1", Kept),
            (open, "UPDATE tickets SET v = 5 WHERE id = 2", Dropped),
            (
                open,
                "UPDATE tickets SET state = 'open' WHERE id = 3",
                Dropped,
            ),
            (
                open,
                "UPDATE tickets SET state = 'done' WHERE id = 3",
                Dropped,
            ),
            (numbered, "UPDATE tickets SET v = 6 WHERE id = 3", Kept),
            (numbered, "UPDATE tickets SET v = 6 WHERE id = 1", Dropped),
        ],
    );
}

#[test]
fn results_that_only_show_a_time_column_are_narrowed_like_others() {
    let front = front("tags_time_of_day");
    front
        .server()
        .execute([
            format!("USE {}", front.schema()),
            "CREATE TABLE hours (id INT PRIMARY KEY, opens TIME, closes TIME(3), name VARCHAR(20))"
                .to_owned(),
            "INSERT INTO hours VALUES (1, '08:00', '17:30:00.25', 'a'), (2, '09:00', '12:00', 'b')"
                .to_owned(),
        ])
        .unwrap();
    let (read, sorted) = (
        "SELECT * FROM hours WHERE id = 1",
        "SELECT name FROM hours ORDER BY opens",
    );
    check(
        &front,
        &[
            (
                read,
                "UPDATE hours SET opens = '07:00' WHERE id = 1",
                Dropped,
            ),
            (read, "UPDATE hours SET opens = '08:30' WHERE id = 2", Kept),
            (
                sorted,
                "UPDATE hours SET closes = '13:00' WHERE id = 2",
                Kept,
            ),
            (
                sorted,
                "UPDATE hours SET opens = '06:00' WHERE id = 2",
                Dropped,
            ),
        ],
    );
}

/// A functional index has a column that only the log shows.
#[test]
fn tables_with_hidden_columns_are_not_narrowed() {
    let front = front("tags_hidden");
    if front.server().kind() != Kind::MySql80 {
        return;
    }
    front
        .server()
        .execute([
            format!("USE {}", front.schema()),
            "CREATE TABLE h (id INT PRIMARY KEY, a INT, KEY ((a + 1)))".to_owned(),
            "INSERT INTO h VALUES (1, 1), (2, 2)".to_owned(),
        ])
        .unwrap();
    check(
        &front,
        &[(
            "SELECT a FROM h WHERE id = 1",
            "UPDATE h SET a = 3 WHERE id = 1",
            Dropped,
        )],
    );
}
