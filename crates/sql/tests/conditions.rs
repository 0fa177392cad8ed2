//! Which rows and columns a cacheable statement reads, as far as its text says it with certainty.
//!
//! Servers: none
//! Load: waits

mod common;

use common::default;
use common::describe::{conditions, described};
use remora_sql::{
    CONDITIONS_MAX, Dialect, EQUALITIES_MAX, NameUse, Reads, Refusal, Select, Test, analyse,
    analyse_prepared,
};

fn select(text: &str, dialect: Dialect) -> Select {
    match analyse_prepared(text.as_bytes(), dialect).cacheable {
        Ok(select) => select,
        Err(refusal) => panic!("{text}: {refusal:?}"),
    }
}

fn reads(text: &str) -> Reads {
    select(text, Dialect::default()).reads
}

/// What the `WHERE` says of the one table `t`.
#[track_caller]
fn says_in(dialect: Dialect, filter: &str, expected: &str) {
    let text = format!("SELECT x FROM t WHERE {filter}");
    let reads = select(&text, dialect).reads;
    assert_eq!(conditions(&reads.blocks[0]), expected, "{filter}");
}

#[track_caller]
fn says(filter: &str, expected: &str) {
    says_in(Dialect::default(), filter, expected);
}

/// The blocks of a statement, as `common::describe` writes them.
#[track_caller]
fn blocks(text: &str, expected: &[&str]) {
    let select = select(text, Dialect::default());
    assert_eq!(described(&select), expected, "{text}");
}

const NONE: &str = "";

#[test]
fn comparisons_with_constants_are_conditions() {
    for (filter, expected) in [
        ("a = 5", "a in 5"),
        ("5 = a", "a in 5"),
        ("a <=> 5", "a in 5"),
        ("a < 5", "a < 5"),
        ("5 < a", "a > 5"),
        ("a <= 5", "a <= 5"),
        ("5 >= a", "a <= 5"),
        ("a > 5", "a > 5"),
        ("5 <= a", "a >= 5"),
        ("a >= -5", "a >= -5"),
        ("a BETWEEN 1 AND 9", "a >= 1 <= 9"),
        ("a BETWEEN 9 AND 1", "a >= 9 <= 1"),
        ("a IN (1)", "a in 1"),
        ("a IN (1, '2', ?)", "a in 1 '2' ?0"),
        ("a IS NULL", "a null"),
        ("a = 1 OR a = 2", "a in 1 2"),
        ("a = 1 || 2 = a OR (a IN (3, 4))", "a in 1 2 3 4"),
        ("a = 1 AND b = 2", "a in 1, b in 2"),
        ("a = 1 && b > 2 AND c", "a in 1, b > 2"),
        (
            "(a = 1 AND (b = 2)) AND ((c < 3) AND f)",
            "a in 1, b in 2, c < 3",
        ),
        ("(a) = (5)", "a in 5"),
        ("t.a = 5", "t.a in 5"),
        ("s.t.a = 5", "s.t.a in 5"),
        ("`t`.`select` = 5", "t.select in 5"),
        ("t.select = 5", "t.select in 5"),
        ("`a``b` = 5", "a`b in 5"),
        ("a BETWEEN 1 AND 2 AND b = 3", "a >= 1 <= 2, b in 3"),
        ("b = 3 AND a BETWEEN 1 AND 2", "b in 3, a >= 1 <= 2"),
        ("a > 1 AND a < 9", "a > 1, a < 9"),
        ("a = 1 AND (b = 2 OR c = 3)", "a in 1"),
        ("a = 1 AND NOT b = 2 AND c = 3", "a in 1, c in 3"),
        ("a = 1 AND (b = 2 XOR c) AND d = 4", "a in 1, d in 4"),
        // Each side implies an equality, whatever else it says.
        ("(a = 1 AND b LIKE 'x') OR a = 2", "a in 1 2"),
    ] {
        says(filter, expected);
    }
}

/// What is no comparison of a column with a constant, or is only an operand of something else.
const LOOK_ALIKES: &[&str] = &[
    "a = 1 = 1",
    "1 = a = 1",
    "1 < a < 5",
    "a < b < 5",
    "a = 5 IS NULL",
    "a = 5 IS TRUE",
    "(a = 5) IS NOT TRUE",
    "(a = 5) = 0",
    "a IS NULL = 0",
    "a IS NULL IS NULL",
    "a IS NOT NULL",
    "a = 1 + b",
    "a + 0 = 1",
    "-a = 5",
    "+a = 5",
    "~a = 5",
    "a = 5 COLLATE utf8mb4_bin",
    "a COLLATE utf8mb4_bin = 'x'",
    "BINARY a = 'x'",
    "a = BINARY 'x'",
    "a = _utf8mb4'x'",
    "a = N'x'",
    "a = 'x' N'y'",
    "a = x'41'",
    "a = 0x41",
    "a = b'1'",
    "a = 1e0",
    "a = 1.5e3",
    "a = DATE '2020-01-01'",
    "a = NULL",
    "a <=> NULL",
    "a <=> ?",
    "a IN (1, NULL)",
    "a IN (1, b)",
    "a IN ((1, 2))",
    "a IN (SELECT 1)",
    "a IN ((SELECT 1))",
    "a NOT IN (1)",
    "5 IN (a)",
    "(a, b) = (1, 2)",
    "(a, b) IN ((1, 2))",
    "ROW(a) = 1",
    "a <> 5",
    "a != 5",
    "NOT a = 5",
    "NOT (a = 5)",
    "! a = 5",
    "!(a = 5)",
    "a = NOT 5",
    "a = 5 OR b = 6",
    "a = 5 OR b = 6 AND a = 7",
    "a = 5 OR a = 6 AND b = 7",
    "a = 5 OR t.a = 6",
    "a = 5 OR A = 6",
    "a = 5 OR a > 6",
    "a = 5 OR a IS NULL",
    "a = 5 OR b",
    "a = 5 XOR a = 6",
    "a = 5 AND b XOR c",
    "a = 5 IN (0)",
    "a IN (0) = 0",
    "a = 5 BETWEEN 0 AND 1",
    "a NOT BETWEEN 1 AND 2",
    "a BETWEEN 1 AND b",
    "a BETWEEN 1 AND b = 3",
    "a BETWEEN 1 AND 2 = 0",
    "a BETWEEN 1 AND 2 IS NULL",
    "a BETWEEN 1 AND 2 IN (0)",
    "a BETWEEN NULL AND 2",
    "5 BETWEEN a AND 9",
    "a LIKE 'x'",
    "a LIKE 5 = 0",
    "a REGEXP 'x'",
    "a SOUNDS LIKE 'x'",
    "a = 5 SOUNDS LIKE 'x'",
    "a = ANY (SELECT 5)",
    "a = ALL (SELECT 5)",
    "a = (SELECT 5)",
    "(SELECT 5) = a",
    "a = ((SELECT 5) UNION (SELECT 6))",
    "IF(a = 5, 1, 1)",
    "COALESCE(a, 5) = 5",
    "CASE WHEN a = 5 THEN 1 ELSE 1 END",
    "CASE a WHEN 5 THEN 1 END = 5",
    "a = ABS(5)",
    "a = 5 | b",
    "a = 5 & 7",
    "a = 5 ^ 7",
    "a = 5 << 1",
    "a = 10 / 2",
    "a = 10 DIV 2",
    "a = 10 MOD 3",
    "a = 1.5 + 1",
    "a = -'5'",
    "a = +'5'",
    "a = -?",
    "a = ? + 1",
    "a = TRUE",
    "a -> '$.x' = 5",
    "a + INTERVAL 1 DAY = 5",
    "a = 5 + INTERVAL 1 DAY",
    "`größe` = 5",
    "`ö`.a = 5",
    "EXISTS (SELECT 1)",
    "a",
    "1",
];

#[test]
fn nothing_is_said_of_what_only_looks_like_a_condition() {
    for filter in LOOK_ALIKES {
        says(filter, NONE);
    }
}

#[test]
fn the_dialect_decides_what_binds_and_what_is_a_string() {
    let concat = Dialect {
        pipes_as_concat: true,
        ..Dialect::default()
    };
    says_in(concat, "a = 1 || a = 2", NONE);
    says_in(concat, "a = '1' || '2'", NONE);
    says_in(concat, "a = 1 OR a = 2", "a in 1 2");
    let high = Dialect {
        high_not_precedence: true,
        ..Dialect::default()
    };
    says_in(high, "NOT a = 5", NONE);
    says_in(high, "NOT a = 5 AND b = 6", "b in 6");
    says_in(Dialect::default(), "NOT a = 5 AND b = 6", "b in 6");
    let ansi = Dialect {
        ansi_quotes: true,
        ..Dialect::default()
    };
    says_in(ansi, "a = \"b\"", "a = b");
    says_in(ansi, "\"a\" = 'b'", "a in 'b'");
    says("a = \"b\"", "a in 'b'");
    says("\"a\" = 5", NONE);
    let plain = Dialect {
        no_backslash_escapes: true,
        ..Dialect::default()
    };
    says_in(plain, r"a = 'x\n'", r"a in 'x\\n'");
    says_in(plain, r"a = '\'", r"a in '\\'");
    says_in(Dialect::default(), r"a = 'x\n'", r"a in 'x\n'");
}

#[test]
fn constants_are_folded_exactly_or_not_at_all() {
    for (constant, expected) in [
        ("5", "5"),
        ("-5", "-5"),
        ("- -5", "5"),
        ("+5", "5"),
        ("((5))", "5"),
        ("-(5)", "-5"),
        ("5+0", "5"),
        ("5 - 7", "-2"),
        ("1--1", "2"),
        ("2*3", "6"),
        ("2+3*4", "14"),
        ("(2+3)*4", "20"),
        ("-0", "0"),
        ("0005", "5"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "decimal 18446744073709551616"),
        ("-18446744073709551616", "decimal -18446744073709551616"),
        ("12.50", "decimal 12.50"),
        ("-12.50", "decimal -12.50"),
        ("- -12.50", "decimal 12.50"),
        (".5", "decimal 0.5"),
        ("-.5", "decimal -0.5"),
        ("5.", "decimal 5"),
        ("'a' 'b'\n\"c\"", "'abc'"),
        ("'it''s'", "'it\\'s'"),
        ("'say \"\"'", "'say \\\"\\\"'"),
        ("\"a\"\"b'\"", "'a\\\"b\\''"),
        (
            r"'\0\b\n\r\t\Z\'\\\%\_\q'",
            r"'\x00\x08\n\r\t\x1a\'\\\\%\\_q'",
        ),
        ("''", "''"),
        ("?", "?0"),
    ] {
        says(&format!("a = {constant}"), &format!("a in {expected}"));
    }
    for constant in [
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "9223372036854775808 - 1",
        "18446744073709551615 + 0",
        "-18446744073709551615",
        "-(-9223372036854775808)",
        "4611686018427387904 * 2",
    ] {
        says(&format!("a = {constant}"), NONE);
    }
}

#[test]
fn parameters_are_numbered_over_the_whole_statement() {
    blocks(
        "SELECT ?, (SELECT ? FROM u WHERE b = ?) FROM t WHERE c = ? AND d IN (?, 7) LIMIT ?",
        &["t#1 | c in ?3 @0, d in ?4 7 @0", "u#0 | b in ?2 @0"],
    );
    blocks(
        "(SELECT x FROM t LIMIT ?) UNION SELECT x FROM t WHERE a BETWEEN ? AND ?",
        &["t#0 | ", "t#0 | a >= ?1 <= ?2 @0"],
    );
}

#[test]
fn a_filter_restricts_every_source_and_the_condition_of_a_join_its_operands() {
    let joined = |from: &str, expected: &str| {
        blocks(&format!("SELECT 1 FROM {from}"), &[expected]);
    };
    joined("a, b WHERE x = 1", "a#0 b#1 | x in 1 @0 1");
    joined("a JOIN b ON x = 1", "a#0 b#1 | x in 1 @0 1");
    joined("a STRAIGHT_JOIN b ON x = 1", "a#0 b#1 | x in 1 @0 1");
    joined("a CROSS JOIN b ON x = 1", "a#0 b#1 | x in 1 @0 1");
    joined("a LEFT JOIN b ON x = 1", "a#0 b#1 | x in 1 @1");
    joined("a LEFT JOIN b ON x IS NULL", "a#0 b#1 | ");
    joined(
        "a LEFT JOIN b ON y = 1 WHERE x IS NULL",
        "a#0 b#1 | y in 1 @1",
    );
    joined(
        "a JOIN b ON y = 1 WHERE x IS NULL",
        "a#0 b#1 | x null @0 1, y in 1 @0 1",
    );
    joined("a RIGHT OUTER JOIN b ON x = 1", "a#0 b#1 | x in 1 @0");
    joined(
        "a LEFT JOIN b ON x = 1 WHERE y = 2",
        "a#0 b#1 | y in 2 @0 1, x in 1 @1",
    );
    joined(
        "z, a JOIN b ON x = 1 LEFT JOIN c ON y = 2 RIGHT JOIN d ON v = 3, e JOIN f ON w = 4",
        "z#0 a#1 b#2 c#3 d#4 e#5 f#6 | x in 1 @1 2, y in 2 @3, v in 3 @1 2 3, w in 4 @5 6",
    );
    joined(
        "a LEFT JOIN (b JOIN c ON x = 1) ON y = 2",
        "a#0 b#1 c#2 | x in 1 @1 2, y in 2 @1 2",
    );
    joined(
        "(a LEFT JOIN b ON x = 1) JOIN c ON y = 2",
        "a#0 b#1 c#2 | x in 1 @1, y in 2 @0 1 2",
    );
    joined("a LEFT JOIN (b, c) ON x = 1", "a#0 b#1 c#2 | x in 1 @1 2");
    // To which join they belong is not for this parser to say.
    joined("a JOIN b JOIN c ON x = 1 ON y = 2", "a#0 b#1 c#2 | ");
    joined("a LEFT JOIN b JOIN c ON x = 1 ON y = 2", "a#0 b#1 c#2 | ");
    joined("a CROSS JOIN b LEFT JOIN c ON x = 1", "a#0 b#1 c#2 | ");
    joined(
        "a JOIN b JOIN c ON x = 1 JOIN d ON y = 2",
        "a#0 b#1 c#2 d#3 | ",
    );
    joined("a JOIN b ON 1 ON x = 1", "a#0 b#1 | ");
    joined(
        "a JOIN b JOIN c ON x = 1 ON 1 WHERE y = 2",
        "a#0 b#1 c#2 | y in 2 @0 1 2",
    );
}

#[test]
fn columns_that_must_be_equal_are_told_with_what_they_restrict() {
    let joined = |from: &str, expected: &str| {
        blocks(&format!("SELECT 1 FROM {from}"), &[expected]);
    };
    joined(
        "a JOIN b ON a.x = b.y WHERE a.x = 5",
        "a#0 b#1 | a.x in 5 @0 1, a.x = b.y @0 1",
    );
    joined("a, b WHERE (x = `b`.y)", "a#0 b#1 | x = b.y @0 1");
    joined("a LEFT JOIN b ON x = y", "a#0 b#1 | x = y @1");
    joined("a RIGHT JOIN b ON x = y", "a#0 b#1 | x = y @0");
    joined(
        "a LEFT JOIN (b JOIN c ON x = y) ON y = z",
        "a#0 b#1 c#2 | x = y @1 2, y = z @1 2",
    );
    joined("a JOIN b USING (x) WHERE x = y AND y = x", "a#0 b#1 | ");
    joined("a JOIN b USING (x) WHERE y = a.x", "a#0 b#1 | y = a.x @0 1");
    // Equalities leave what else is said as it was.
    joined(
        "a, b WHERE (x = 1 AND x = y) OR x = 2",
        "a#0 b#1 | x in 1 2 @0 1",
    );
    let many = |count: usize, what: &str| vec![what; count].join(" AND ");
    let both = format!("{} AND {}", many(40, "x = y"), many(70, "x = 1"));
    let text = format!("SELECT 1 FROM a, b WHERE {both}");
    let select = analyse(text.as_bytes(), Dialect::default())
        .cacheable
        .unwrap();
    let conditions = &select.reads.blocks[0].conditions;
    let equalities = conditions
        .iter()
        .filter(|one| matches!(one.test, Test::Column(_)));
    let equalities = equalities.count();
    assert_eq!(equalities, EQUALITIES_MAX);
    assert_eq!(conditions.len() - equalities, CONDITIONS_MAX);
    for other in [
        "x <=> y",
        "x <> y",
        "x < y",
        "NOT x = y",
        "x = y OR z = 1",
        "x = y OR x = z",
        "x = -y",
        "x = y + 0",
        "x = BINARY y",
        "x = y COLLATE utf8mb4_bin",
        "(x = y) = 1",
        "x = y IS TRUE",
        "(x, v) = (y, w)",
        "x = `ö`",
    ] {
        joined(&format!("a, b WHERE {other}"), "a#0 b#1 | ");
    }
}

#[test]
fn a_joined_column_is_no_single_tables() {
    let joined = |from: &str, expected: &str| {
        blocks(&format!("SELECT 1 FROM {from}"), &[expected]);
    };
    joined(
        "a JOIN b USING (X) WHERE x = 1 AND a.x = 2 AND y = 3",
        "a#0 b#1 | a.x in 2 @0 1, y in 3 @0 1",
    );
    joined("a JOIN b ON x = 1 JOIN c USING (x)", "a#0 b#1 c#2 | ");
    joined(
        "a JOIN b USING (`ö`) WHERE x = 1 AND a.x = 2",
        "a#0 b#1 | a.x in 2 @0 1",
    );
    joined(
        "a NATURAL LEFT JOIN b WHERE x = 1 AND a.x = 2",
        "a#0* b#1* | a.x in 2 @0 1",
    );
    joined("a NATURAL JOIN b JOIN c ON a.x = 1", "a#0* b#1* c#2* | ");
    joined(
        "a NATURAL JOIN b, c JOIN d ON c.x = 1",
        "a#0* b#1* c#2* d#3* | c.x in 1 @2 3",
    );
}

#[test]
fn every_select_is_a_block_of_its_own() {
    blocks(
        "SELECT 1 FROM a WHERE x = 1 UNION SELECT 2 FROM b WHERE y = 2",
        &["a#0 | x in 1 @0", "b#1 | y in 2 @0"],
    );
    blocks(
        "SELECT 1 FROM (SELECT z FROM a WHERE x = 1) d JOIN b ON z = 3 WHERE y = 2",
        &["d b#1 | y in 2 @0 1, z in 3 @0 1", "a#0 | x in 1 @0"],
    );
    blocks(
        "WITH c AS (SELECT x FROM a WHERE x = 1) SELECT 1 FROM c AS k, s.c WHERE y = 2",
        &["a#0 | x in 1 @0", "k s.c#1 | y in 2 @0 1"],
    );
    blocks(
        "SELECT (SELECT 1 FROM b WHERE x = 1) FROM a WHERE EXISTS (SELECT 1 FROM c WHERE y = 2) \
         AND z = 3 HAVING (SELECT 1 FROM d WHERE v = 4) AND u = 5",
        &[
            "a#1 | z in 3 @0",
            "b#0 | x in 1 @0",
            "c#2 | y in 2 @0",
            "d#3 | v in 4 @0",
        ],
    );
    blocks(
        "SELECT 1 FROM a JOIN b ON x = 1 AND y IN (SELECT 2 FROM c WHERE z = 3)",
        &["a#0 b#1 | x in 1 @0 1", "c#2 | z in 3 @0"],
    );
    blocks(
        "SELECT 1 FROM ((SELECT x FROM a WHERE x = 1) UNION (SELECT x FROM b)) d WHERE y = 2",
        &[" d | y in 2 @0 1", "a#0 | x in 1 @0", "b#1 | "],
    );
    blocks(
        "SELECT 1 FROM a x, a y WHERE x.i = 1 AND y.i = 2",
        &["x#0 y#0 | x.i in 1 @0 1, y.i in 2 @0 1"],
    );
    blocks(
        "SELECT 1 FROM a GROUP BY x HAVING x = 1 ORDER BY x = 1",
        &["a#0 | "],
    );
}

#[test]
fn stars_and_partitions_read_every_column() {
    blocks("SELECT * FROM a, b", &["a#0* b#1* | "]);
    blocks("SELECT b.*, a.x FROM a, b", &["a#0 b#1* | "]);
    blocks("SELECT s.b.* FROM a, s.b", &["a#0 s.b#1* | "]);
    blocks("SELECT k.* FROM a k, b", &["k#0* b#1 | "]);
    blocks("SELECT B.* FROM a, b", &["a#0* b#1* | "]);
    blocks("SELECT COUNT(*), a.x * 2 FROM a", &["a#0 | "]);
    blocks("SELECT 1 FROM a PARTITION (p), b", &["a#0* b#1 | "]);
    blocks(
        "SELECT 1 FROM a WHERE EXISTS (SELECT * FROM b)",
        &["a#0 | ", "b#1* | "],
    );
    assert!(!reads("SELECT B.* FROM a, b").all_columns);
    assert!(reads("SELECT (SELECT a.* FROM b) FROM a").all_columns);
}

#[test]
fn every_name_that_can_mean_a_column_is_noted() {
    let names = |text: &str| {
        let mut names: Vec<String> = reads(text).names.iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(
        names("SELECT A, t.B, s.t.`C``c`, COUNT(d), a FROM t JOIN u USING (e, F)"),
        ["a", "b", "c`c", "d", "e", "f"]
    );
    assert_eq!(
        names(
            "SELECT SUM(c) OVER (PARTITION BY d ORDER BY e) FROM t \
             WHERE f IN (SELECT g FROM u WHERE h = i) AND MATCH (a, t.b) AGAINST ('x') \
             GROUP BY j HAVING k ORDER BY l LIMIT 3"
        ),
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
    );
    assert_eq!(
        names("SELECT t.select, t.`from` FROM t"),
        ["from", "select"]
    );
    assert!(!reads("SELECT a FROM t").all_columns);
    for name in ["_rowid", "_ROWID", "`größe`", "row_start", "t.row_end"] {
        assert!(
            reads(&format!("SELECT {name} FROM t")).all_columns,
            "{name}"
        );
    }
}

#[test]
fn a_column_is_only_shown_where_its_value_meets_no_other() {
    let use_of = |text: &str| reads(text).names.use_of("t");
    for text in [
        "SELECT t FROM a",
        "SELECT T FROM a",
        "SELECT 1 + b, a.t, s.a.`t` FROM a WHERE b = 5",
        "SELECT DISTINCT (t) FROM a",
        "(SELECT t FROM a LIMIT 3)",
        "SELECT t AS x FROM a ORDER BY x DESC",
        "SELECT t x, b AS y FROM a HAVING y > 5",
        "SELECT t AS t FROM a GROUP BY t",
        "SELECT b FROM a ORDER BY b, t DESC",
        "SELECT b, MAX(c) FROM a GROUP BY a.t ORDER BY MAX(c)",
        "SELECT t FROM a WHERE b IN (SELECT c FROM d ORDER BY t LIMIT 1)",
        "SELECT t FROM a WHERE EXISTS (SELECT * FROM d WHERE c = 5)",
    ] {
        assert_eq!(use_of(text), Some(NameUse::Shown), "{text}");
    }
    for text in [
        "SELECT t + 0 FROM a",
        "SELECT -t FROM a",
        "SELECT +t FROM a",
        "SELECT BINARY t FROM a",
        "SELECT t COLLATE utf8mb4_bin FROM a",
        "SELECT b, t > c FROM a",
        "SELECT t, MAX(t) FROM a",
        "SELECT MAX(t), t FROM a",
        "SELECT t FROM a WHERE t > '10:00'",
        "SELECT t FROM a WHERE t IS NULL",
        "SELECT t FROM a HAVING t > c",
        "SELECT t FROM a JOIN b USING (t)",
        "SELECT t FROM a ORDER BY t + 0",
        "SELECT t FROM a GROUP BY IFNULL(t, c)",
        "SELECT COUNT(DISTINCT t) FROM a",
        "SELECT SUM(b) OVER (ORDER BY t) FROM a",
        "SELECT GROUP_CONCAT(b ORDER BY t) FROM a",
        "SELECT (SELECT t) FROM a",
        "SELECT b FROM a ORDER BY (SELECT t FROM d LIMIT 1) > c",
        "SELECT b FROM a WHERE c IN (SELECT t FROM d)",
        "SELECT b FROM a WHERE EXISTS (SELECT t FROM d)",
        // Under another name.
        "SELECT t AS x FROM a HAVING x > c",
        "SELECT t x FROM a ORDER BY x + 0",
        "SELECT t AS X, (SELECT MAX(x)) FROM a",
        "SELECT t AS 'x' FROM a",
        "SELECT t AS `ü` FROM a",
        "SELECT t AS ` x` FROM a HAVING x > c",
        "SELECT t AS `\tx` FROM a",
        "SELECT t AS `a1234567890123456789012345678901234567890123456789012345678901234` FROM a",
        // What one block shows, another may use.
        "SELECT t FROM a UNION SELECT c FROM d",
        "(SELECT t FROM a) UNION ALL (SELECT c FROM d) ORDER BY 1",
        "WITH x (y) AS (SELECT t FROM a) SELECT y > c FROM x",
        "WITH x AS (SELECT 1) SELECT t FROM a",
        "SELECT y > c FROM (SELECT t FROM a) AS x (y)",
        "SELECT * FROM (SELECT t FROM a) x",
    ] {
        assert_eq!(use_of(text), Some(NameUse::Any), "{text}");
    }
    assert_eq!(use_of("SELECT b FROM a"), None);
    let many: Vec<_> = (0..100).map(|number| format!("c{number}")).collect();
    let names = reads(&format!("SELECT {} FROM a", many.join(", "))).names;
    assert_eq!(names.use_of("c63"), Some(NameUse::Shown));
    assert_eq!(names.use_of("C64"), Some(NameUse::Any));
}

#[test]
fn what_a_star_means_is_only_shown_where_it_is_listed() {
    let use_of_all = |text: &str| {
        let reads = reads(text);
        let sources = reads.blocks.iter().flat_map(|block| &block.sources);
        sources.filter_map(|source| source.reads_all).max()
    };
    for text in [
        "SELECT * FROM a",
        "SELECT a.* FROM a JOIN b USING (c)",
        "SELECT *, c > d FROM a ORDER BY 3",
        "SELECT A.* FROM a",
        "SELECT c FROM a WHERE EXISTS (SELECT * FROM b)",
        "SELECT * FROM a WHERE NOT EXISTS ((SELECT b.* FROM b WHERE b.c = a.c))",
        "SELECT c FROM a PARTITION (p)",
    ] {
        assert_eq!(use_of_all(text), Some(NameUse::Shown), "{text}");
    }
    for text in [
        "SELECT * FROM a NATURAL JOIN b",
        "SELECT c FROM a NATURAL LEFT JOIN b",
        "SELECT c FROM a WHERE EXISTS (SELECT * FROM b NATURAL JOIN d)",
        "SELECT c FROM a WHERE d IN (SELECT * FROM b)",
        "SELECT c FROM a WHERE EXISTS (SELECT 1 FROM b WHERE d IN (SELECT * FROM e))",
        "SELECT c FROM a WHERE (d, e) = (SELECT * FROM b)",
        "SELECT c FROM a ORDER BY (SELECT * FROM b)",
        "SELECT COUNT(*) FROM (SELECT * FROM a) x",
        "SELECT * FROM a UNION SELECT * FROM b",
        "SELECT c FROM a WHERE EXISTS (SELECT * FROM b UNION SELECT * FROM d)",
        "WITH x AS (SELECT * FROM a) SELECT c FROM x",
    ] {
        assert_eq!(use_of_all(text), Some(NameUse::Any), "{text}");
    }
    assert_eq!(use_of_all("SELECT c FROM a"), None);
}

#[test]
fn a_full_text_search_depends_on_rows_that_the_conditions_leave_out() {
    blocks(
        "SELECT a FROM t WHERE id = 5 AND MATCH (a) AGAINST ('x')",
        &["t#0 | "],
    );
    blocks(
        "SELECT 1 FROM t WHERE id = 5 AND c IN (SELECT c FROM u WHERE MATCH (a) AGAINST ('x'))",
        &["t#0 | ", "u#1 | "],
    );
}

#[test]
fn a_full_text_search_may_say_which_rows_fit_and_not_how_well() {
    let refusal = |text: &str| {
        let analysed = analyse_prepared(text.as_bytes(), Dialect::default());
        analysed.cacheable.err()
    };
    let search = "MATCH (a) AGAINST ('x')";
    for (text, is_score) in [
        ("SELECT b FROM t WHERE @", false),
        ("SELECT b FROM t WHERE NOT @ OR (@ AND b = 1) XOR @", false),
        (
            "SELECT b FROM t WHERE b > 1 AND @ ORDER BY b LIMIT 3",
            false,
        ),
        ("SELECT b FROM t JOIN u ON t.i = u.i AND @", false),
        (
            "SELECT b FROM t WHERE MATCH (a) AGAINST ('+x -y' IN BOOLEAN MODE)",
            false,
        ),
        (
            "SELECT b FROM t WHERE b IN (SELECT b FROM u WHERE @) AND c = 2",
            false,
        ),
        ("SELECT (SELECT COUNT(*) FROM u WHERE @) + 1 FROM t", false),
        (
            "SELECT b FROM t WHERE CASE WHEN @ THEN TRUE ELSE FALSE END = TRUE",
            false,
        ),
        ("SELECT CASE WHEN @ AND c = 1 THEN 'x' END FROM t", false),
        ("SELECT b FROM t WHERE CASE 0.5 WHEN @ THEN 1 END", true),
        ("SELECT b FROM t WHERE CASE WHEN b THEN @ END", true),
        ("SELECT b FROM t WHERE CASE WHEN @ > 0.5 THEN 1 END", true),
        ("SELECT b FROM t WHERE @ LIMIT 3", true),
        (
            "SELECT b FROM t WHERE b = (SELECT b FROM u WHERE @ LIMIT 1)",
            true,
        ),
        ("SELECT b FROM t WHERE POSITION((@) IN b)", true),
        ("SELECT b, @ FROM t", true),
        ("SELECT b, @ AS score FROM t WHERE @", true),
        ("SELECT b FROM t WHERE @ ORDER BY @", true),
        ("SELECT b FROM t WHERE @ > 0.5", true),
        ("SELECT b FROM t WHERE (@) > 0.5", true),
        ("SELECT b FROM t WHERE 0.5 < (@)", true),
        ("SELECT b FROM t WHERE (@ AND 1) + 1", true),
        ("SELECT b FROM t WHERE -@", true),
        ("SELECT b FROM t WHERE -(@)", true),
        ("SELECT b FROM t WHERE BINARY (@)", true),
        ("SELECT b FROM t WHERE NOT (@)", false),
        ("SELECT b FROM t WHERE @ ORDER BY NULL LIMIT 3", true),
        ("SELECT b FROM t WHERE @ IS TRUE", true),
        ("SELECT b FROM t WHERE b BETWEEN 0 AND @", true),
        ("SELECT b FROM t WHERE ROUND(@) = 1", true),
        ("SELECT b FROM t WHERE IF(@, 1, 0)", true),
        ("SELECT b FROM t WHERE b IN (SELECT @ FROM u)", true),
        ("SELECT b FROM t GROUP BY b HAVING MAX(@) > 1", true),
        (
            "SELECT b FROM t WHERE MATCH (a) AGAINST ('x' WITH QUERY EXPANSION)",
            true,
        ),
    ] {
        let text = text.replace('@', search);
        let expected = is_score.then_some(Refusal::FullTextScore);
        assert_eq!(refusal(&text), expected, "{text}");
    }
}

#[test]
fn what_is_too_much_to_keep_says_nothing() {
    let list = |count: usize| vec!["1"; count].join(",");
    let count = |filter: &str| {
        let reads = reads(&format!("SELECT 1 FROM t WHERE {filter}"));
        reads.blocks[0].conditions.len()
    };
    assert_eq!(count(&format!("a IN ({})", list(256))), 1);
    assert_eq!(count(&format!("a IN ({})", list(257))), 0);
    assert_eq!(count(&format!("a IN ({}) OR a = 1", list(256))), 0);
    assert_eq!(count(&format!("a = '{}'", "x".repeat(1024))), 1);
    assert_eq!(count(&format!("a = '{}'", "x".repeat(1025))), 0);
    assert_eq!(count(&format!("a = '{}'", "''".repeat(1024))), 1);
    assert_eq!(count(&format!("a = {}", "9".repeat(2000))), 0);
    assert_eq!(count(&vec!["a = 1"; 70].join(" AND ")), 64);
    let sources = |count: usize| {
        let from: Vec<String> = (0..count).map(|number| format!("t AS t{number}")).collect();
        reads(&format!("SELECT 1 FROM {} WHERE a = 1", from.join(","))).blocks[0]
            .conditions
            .len()
    };
    assert_eq!((sources(64), sources(65)), (1, 0));
}

#[test]
fn text_without_bound_values_has_no_parameters() {
    let text = "UPDATE t SET a = 1 WHERE b = ? AND c = 2";
    let statement = default(text);
    let write = statement.narrowed.unwrap();
    assert_eq!(common::describe::rows(&write), "c in 2");
    let prepared = analyse_prepared(text.as_bytes(), Dialect::default());
    assert_eq!(
        common::describe::rows(&prepared.narrowed.unwrap()),
        "b in ?0, c in 2"
    );
    assert!(
        analyse(b"SELECT 1 FROM t", Dialect::default())
            .narrowed
            .is_none()
    );
}
