//! Texts with one skeleton have one analysis, but for their values.
//!
//! Servers: none
//! Load: waits

mod common;

use common::dialects;
use proptest::prelude::*;
use remora_sql::{
    CONSTANT_BYTES_MAX, Dialect, Lexer, ReadTemplate, Statement, StatementKind, TokenKind,
    ValuePlace, WriteTemplate, analyse, skeleton,
};

/// Pieces of statements; `{}` stands for a value.
const PIECES: &[&str] = &[
    "SELECT",
    "a",
    "b2",
    "t.c",
    "FROM",
    "t",
    "u",
    "v AS x",
    "JOIN u ON t.a = u.b",
    "WHERE",
    "a = {}",
    "s LIKE {}",
    "IN ({}, {})",
    "BETWEEN {} AND {}",
    "{}",
    "{}",
    "{}.{}",
    "-{}",
    "({})",
    "AND",
    "OR",
    ",",
    "*",
    "=",
    "GROUP BY {}",
    "ORDER BY {}",
    "LIMIT {}",
    "LIMIT {}, {}",
    "OFFSET {}",
    "COUNT(*)",
    "COUNT(DISTINCT a)",
    "f({})",
    "DATE_FORMAT(a, {})",
    "CAST(a AS DECIMAL({}, {}))",
    "GET_LOCK({}, {})",
    "RAND({})",
    "SLEEP({})",
    "INTERVAL {} DAY",
    "CONVERT({} USING utf8)",
    "INTO OUTFILE {}",
    "FOR UPDATE",
    "LOCK IN SHARE MODE",
    "UNION ALL",
    "SQL_CACHE",
    "EXISTS (SELECT {} FROM u)",
    "@a := {}",
    "@@sql_mode",
    "_utf8{}",
    "_latin1 {}",
    "N{}",
    "x{}",
    "COLLATE utf8_bin",
    "a{}",
    "{}a",
    "1e{}",
    "0x{}",
    "INSERT INTO t VALUES ({}, {})",
    "UPDATE t SET a = {}",
    "DELETE FROM t WHERE a = {}",
    "REPLACE t SET a = {}",
    "CALL p({})",
    "SET a = {}",
    "SET NAMES {}",
    "; DELETE FROM t",
    ";",
    "`q`",
    "\"q\"",
    "@'x{}'",
    "AS {}",
    "DATE {}",
    "TIMESTAMP{}",
    "MATCH (a) AGAINST ({})",
    "JSON_EXTRACT(a, {})",
    "a->{}",
    "SHOW STATUS LIKE {}",
    "KILL {}",
    "HANDLER t READ a = ({})",
    "?",
];

/// Values of each kind; one of a kind takes the place of another.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "9223372036854775807",
    "700000000000",
    "700000000001",
    "7",
    "10",
    "255",
    "9223372036854775808",
    "99999999999999999999999",
    "007",
];
const STRINGS: &[&str] = &[
    "'x'",
    "'remora0'",
    "'remora1'",
    "''",
    "'it''s'",
    "'a\\'b'",
    "'\\\\'",
    "'--'",
    "'/*'",
    "'#'",
    "'; DROP'",
    "'\"'",
    "'`'",
    "'\u{e9}'",
    "'1'",
    "'2020-01-01'",
    "'f(1)'",
    "'12:00:00'",
    "'REPAIR LOCAL TABLE t'",
];
const DOUBLE_QUOTED: &[&str] = &[
    "\"x\"",
    "\"\"",
    "\"it's\"",
    "\"a\\\"b\"",
    "\"/*\"",
    "\"\"\"\"",
];

/// A random statement, and the same with other values.
fn two_texts() -> impl Strategy<Value = (String, String)> {
    let value = (
        0..3_usize,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    );
    let piece = (
        prop::sample::select(PIECES),
        prop::collection::vec(value, 2),
        prop::sample::select(&[" ", " ", " ", "", "\n"][..]),
    );
    let begins = prop::sample::select(
        &[
            "",
            "SELECT ",
            "SELECT a FROM t WHERE ",
            "SELECT {} FROM t WHERE a = ",
        ][..],
    );
    (begins, prop::collection::vec(piece, 0..9)).prop_map(|(begin, pieces)| {
        let mut texts = (begin.replace("{}", "1"), begin.replace("{}", "22"));
        for (piece, values, space) in pieces {
            let mut parts = piece.split("{}");
            let first = parts.next().unwrap_or_default();
            texts.0 += first;
            texts.1 += first;
            for (part, (kind, one, other)) in parts.zip(&values) {
                let kind = [NUMBERS, STRINGS, DOUBLE_QUOTED][*kind];
                texts.0 += kind[one.index(kind.len())];
                texts.1 += kind[other.index(kind.len())];
                texts.0 += part;
                texts.1 += part;
            }
            texts.0 += space;
            texts.1 += space;
        }
        texts
    })
}

/// What stands behind `WHERE`, and what may follow.
const CONDITIONS: &[&str] = &[
    "a = {}",
    "{} = t.a",
    "a <=> {}",
    "b = -{}",
    "b = - -{}",
    "b = +({})",
    "b > {}",
    "{} >= b",
    "b BETWEEN {} AND {}",
    "b BETWEEN -{} AND {}",
    "b < {} + {}",
    "b = {} - {} + {}",
    "b IN ({} + {} - {}, {})",
    "b = -{} + {}",
    "b = {} * {}",
    "(a = {} AND b = {} * {})",
    "c = {} AND{} = d",
    "c BETWEEN{}AND {}",
    "b = {}.{}",
    "b = {} {}",
    "c IN ({}, {})",
    "c IN ({}, -{})",
    "c NOT IN ({}, {})",
    "(a = {} OR a = {})",
    "(a = {} OR b = {})",
    "d IS NULL",
    "d LIKE {}",
    "f(d) = {}",
    "d = COALESCE({}, {})",
    "NOT (a = {})",
    "t.a = u.b",
    "u.c = {}",
    "{}",
    "EXISTS (SELECT 1 FROM v WHERE v.a = {} AND v.b = t.a)",
    "d IN (SELECT e FROM v WHERE v.a > {})",
];
const ENDS: &[&str] = &[
    "",
    "",
    "LIMIT {}",
    "LIMIT {}, {}",
    "LIMIT {} OFFSET {}",
    "ORDER BY {}",
    "GROUP BY a HAVING COUNT(*) > {}",
    "UNION SELECT b FROM v WHERE c = {} LIMIT {}",
];

/// A pattern, and for each `{}` of it whether a number stands there, and which in each text.
type Filled = (
    &'static str,
    Vec<(bool, prop::sample::Index, prop::sample::Index)>,
);

/// One of these patterns, with values.
fn one_of(patterns: &'static [&'static str]) -> impl Strategy<Value = Filled> + Clone {
    let index = any::<prop::sample::Index>;
    let values = prop::collection::vec((prop::bool::ANY, index(), index()), 4);
    (prop::sample::select(patterns), values)
}

/// The patterns behind one another, with the values of the one text and with those of the other.
fn texts_of(parts: impl IntoIterator<Item = Filled>) -> (String, String) {
    let mut texts = (String::new(), String::new());
    for (pattern, values) in parts {
        let mut pieces = pattern.split("{}");
        let first = pieces.next().unwrap_or_default();
        texts.0 += first;
        texts.1 += first;
        for (piece, (is_number, one, other)) in pieces.zip(&values) {
            let kind = if *is_number { NUMBERS } else { STRINGS };
            texts.0 += kind[one.index(kind.len())];
            texts.1 += kind[other.index(kind.len())];
            texts.0 += piece;
            texts.1 += piece;
        }
    }
    texts
}

/// What the conditions of a statement stand behind, the conditions with what joins them, and what
/// comes behind.
fn with_conditions(
    begins: &'static [&'static str],
    joins: &'static [&'static str],
    ends: &'static [&'static str],
) -> impl Strategy<Value = Vec<Filled>> {
    let conditions = prop::collection::vec((one_of(CONDITIONS), prop::sample::select(joins)), 1..5);
    let all = (one_of(begins), conditions, one_of(ends));
    all.prop_map(|(begin, conditions, end)| {
        let mut parts = vec![begin];
        for (at, (condition, join)) in conditions.into_iter().enumerate() {
            if at > 0 {
                parts.push((join, Vec::new()));
            }
            parts.push(condition);
        }
        parts.extend([(" ", Vec::new()), end]);
        parts
    })
}

/// A random read that can mostly be cached, and the same with other values.
fn two_reads() -> impl Strategy<Value = (String, String)> {
    const BEGINS: &[&str] = &[
        "SELECT a, {} FROM t WHERE ",
        "SELECT t.b, COUNT(*) FROM t JOIN u ON t.a = u.b AND u.c = {} WHERE ",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.b AND u.c > {} WHERE ",
        "SELECT x FROM (SELECT a AS x FROM t WHERE b = {}) AS d JOIN u ON x = u.b WHERE ",
    ];
    with_conditions(BEGINS, &[" AND ", " AND ", " OR "], ENDS).prop_map(texts_of)
}

const WRITES: &[&str] = &[
    "UPDATE t SET a = {}, b = b + {} WHERE ",
    "UPDATE t AS x SET a = {}, b2 = DEFAULT WHERE ",
    "UPDATE IGNORE t SET a = -{} WHERE ",
    "UPDATE t, u SET t.a = {} WHERE ",
    "DELETE FROM t WHERE ",
    "DELETE t FROM t JOIN u ON t.a = u.b AND u.c = {} WHERE ",
    "INSERT INTO t (a, b, c, d) SELECT a, {}, {}, 1 FROM u WHERE ",
];
const INSERTS: &[&str] = &[
    "INSERT INTO t VALUES ({}, {})",
    "INSERT INTO t VALUES ({}, -{}), ({}, NULL)",
    "INSERT t (a, b) VALUES ({} + {}, {})",
    "INSERT INTO t (a, b) VALUES ({}, {}.{})",
    "INSERT INTO t (a, b) VALUES ({} {}, {})",
    "INSERT INTO t SET a = {}, b = f({}), c = {}",
    "INSERT INTO t VALUES ({}, DEFAULT) RETURNING {}",
    "INSERT INTO t VALUES ({}, {}) ON DUPLICATE KEY UPDATE a = {}",
    "REPLACE INTO t VALUES ({}, {})",
    "INSERT INTO t VALUES ({}, {}); DELETE FROM u",
    // It can't be read, and may run what the string says.
    "INSERT INTO t VALUES (@\u{e9}); EXECUTE IMMEDIATE {}",
];
const WRITE_ENDS: &[&str] = &["", "", "LIMIT {}", "ORDER BY {}", "ORDER BY a LIMIT {}"];

/// A random write of rows, and the same with other values.
fn two_writes() -> impl Strategy<Value = (String, String)> {
    let inserts = one_of(INSERTS).prop_map(|insert| vec![insert]);
    let others = with_conditions(WRITES, &[" AND "], WRITE_ENDS);
    prop_oneof![others, inserts].prop_map(texts_of)
}

/// The tokens, without the values.
fn tokens(text: &[u8], dialect: Dialect) -> Vec<(TokenKind, &[u8])> {
    let mut lexer = Lexer::new(text, dialect);
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        let is_value = matches!(
            token.kind,
            TokenKind::Number | TokenKind::String | TokenKind::Invalid
        );
        found.push((
            token.kind,
            if is_value {
                &[][..]
            } else {
                lexer.bytes(token)
            },
        ));
        if matches!(token.kind, TokenKind::End | TokenKind::Invalid) {
            return found;
        }
    }
}

/// What an analysis says of a statement's effects.
fn effects(statement: &Statement) -> String {
    let Statement {
        kind,
        writes,
        session,
        transaction,
        control,
        diagnostics,
        ..
    } = statement;
    format!("{kind:?} {writes:?} {session:?} {transaction:?} {control:?} {diagnostics:?}")
}

/// How much two texts have in common.
#[derive(Debug, PartialEq, Eq)]
enum Shared {
    /// Their skeletons differ, or they aren't cached.
    Nothing,
    /// Their effects.
    Effects,
    /// Also which rows they read or write, but for values.
    Rows,
}

/// Whether the text may hold a `SET`, alone or among several statements. That can be judged by its
/// value, and no template is made of it.
fn may_set(statement: &Statement, text: &str, dialect: Dialect) -> bool {
    let mut words = tokens(text.as_bytes(), dialect).into_iter();
    match statement.kind {
        StatementKind::Set => true,
        StatementKind::Multi => words.any(|(_, word)| word.eq_ignore_ascii_case(b"set")),
        _ => false,
    }
}

fn check(first: &str, second: &str, dialect: Dialect) -> Result<Shared, TestCaseError> {
    let skeleton_of = |text: &str| {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let hash = skeleton(text.as_bytes(), dialect, &mut bytes, &mut values)?;
        Some((hash, bytes, values))
    };
    let (Some(of_first), Some(of_second)) = (skeleton_of(first), skeleton_of(second)) else {
        return Ok(Shared::Nothing);
    };
    if of_first.1 != of_second.1 {
        return Ok(Shared::Nothing);
    }
    prop_assert_eq!(of_first.0, of_second.0);
    prop_assert_eq!(
        tokens(first.as_bytes(), dialect),
        tokens(second.as_bytes(), dialect)
    );
    let (one, two) = (
        analyse(first.as_bytes(), dialect),
        analyse(second.as_bytes(), dialect),
    );
    if !may_set(&one, first, dialect) {
        prop_assert_eq!(effects(&one), effects(&two), "{} and {}", first, second);
    }
    let write = WriteTemplate::of(&one, first.as_bytes(), dialect, &of_first.2);
    if let Some(write) = write {
        let Some(other) = write.with_values(second.as_bytes(), dialect, &of_second.2) else {
            return Ok(Shared::Effects);
        };
        prop_assert_eq!(other, two, "{} and {}", first, second);
        return Ok(Shared::Rows);
    }
    let template = |statement: &Statement, text: &str, values: &[ValuePlace]| {
        ReadTemplate::of(statement, text.as_bytes(), dialect, values)
    };
    let (Some(of_one), Some(of_two)) = (
        template(&one, first, &of_first.2),
        template(&two, second, &of_second.2),
    ) else {
        // What one of them can't be used for, the other's template must not be used for either.
        if let Some(of_one) = template(&one, first, &of_first.2) {
            let other = of_one.with_values(second.as_bytes(), dialect, &of_second.2);
            prop_assert_eq!(other, None, "{} and {}", first, second);
        }
        return Ok(Shared::Nothing);
    };
    prop_assert_eq!(of_one.of_every_row(), of_two.of_every_row());
    let Some(other) = of_one.with_values(second.as_bytes(), dialect, &of_second.2) else {
        return Ok(Shared::Effects);
    };
    prop_assert_eq!(other, two, "{} and {}", first, second);
    Ok(Shared::Rows)
}

#[test]
fn a_set_among_several_statements_may_be_judged_by_its_value() {
    let texts = ["SET NAMES 0 GROUP BY 'a\\'b'", "SET NAMES 0 GROUP BY 'x'"];
    for (before, after) in [("", ""), ("; ", ""), ("", "; SELECT 1")] {
        let [one, other] = texts.map(|text| format!("{before}{text}{after}"));
        check(&one, &other, Dialect::default()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40_000))]

    #[test]
    fn the_skeleton_determines_what_a_statement_does((first, second) in two_texts(), dialect in dialects()) {
        check(&first, &second, dialect)?;
    }

    #[test]
    fn random_texts_with_the_same_skeleton_have_the_same_tokens(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "SELECT", " ", "a", "1", "23", ".", "e5", "'", "\\", "x", "''", "\"", "`", "(", ",", "-", "--", "IN", "@", "0x1",
                "\u{e9}", "'b'", "'it''s'", "2fa", "+", "e", "0", "N", "_utf8", ";", "'\\\\'", "\"\"", "$",
            ]),
            0..10,
        ),
        others in prop::collection::vec(prop::sample::select(vec!["", "1", "7", "23", "'b'", "'-'", "\"x\"", "a", "''"]), 10),
        changes in prop::collection::vec(prop::bool::weighted(0.3), 10),
        dialect in dialects(),
    ) {
        let first = pieces.concat();
        let changed = pieces.iter().zip(&others).zip(&changes);
        let second: String = changed.map(|((piece, other), change)| if *change { *other } else { *piece }).collect();
        check(&first, &second, dialect)?;
    }
}

/// Checks pairs of texts. At least a tenth of them must share their analysis.
fn check_pairs(texts: impl Strategy<Value = (String, String)>) {
    const CASES: u32 = 20_000;
    let shared = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(CASES));
    let outcome = runner.run(&(texts, dialects()), |((first, second), dialect)| {
        if check(&first, &second, dialect)? == Shared::Rows {
            shared.set(shared.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    println!("{} of {CASES} had one template", shared.get());
    assert!(shared.get() > CASES / 10);
}

#[test]
fn the_skeleton_and_the_values_determine_which_rows_are_read() {
    check_pairs(two_reads());
}

#[test]
fn the_skeleton_and_the_values_determine_which_rows_are_written() {
    check_pairs(two_writes());
}

#[test]
fn writes_that_differ_in_values_have_one_template() {
    for (first, second) in [
        (
            "UPDATE t SET c = 'x', n = n + 1 WHERE id = 5",
            "UPDATE t SET c = 'it''s', n = n + 9 WHERE id = 70000",
        ),
        (
            "DELETE FROM t WHERE a IN (1, -2) AND s = 'x' LIMIT 5",
            "DELETE FROM t WHERE a IN (3, -4) AND s = 'y' LIMIT 9",
        ),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL)",
            "INSERT INTO t (a, b) VALUES (30, ''), (-4, NULL)",
        ),
        ("INSERT INTO t SET a = 1", "INSERT INTO t SET a = 2"),
        // Which rows it changes isn't known, whatever the values.
        ("REPLACE INTO t VALUES (1)", "REPLACE INTO t VALUES (2)"),
        ("UPDATE t SET a = f(1)", "UPDATE t SET a = f(2)"),
    ] {
        let shared = check(first, second, Dialect::default()).unwrap();
        assert_eq!(shared, Shared::Rows, "{first}");
    }
}

#[test]
fn a_write_whose_analysis_may_depend_on_a_value_is_analysed() {
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(2_000));
    for (first, second) in [
        ("INSERT INTO t VALUES (1.5)", "INSERT INTO t VALUES (2.5)"),
        (
            "INSERT INTO t VALUES (1 + 2)",
            "INSERT INTO t VALUES (3 + 4)",
        ),
        (
            "INSERT INTO t VALUES ('a' 'b')",
            "INSERT INTO t VALUES ('c' 'd')",
        ),
        ("INSERT INTO t VALUES ('x')", &long),
        (
            "DELETE FROM t WHERE id = 1",
            "DELETE FROM t WHERE id = 99999999999999999999",
        ),
        (
            "UPDATE t SET a = 1 WHERE id = 1 - 2",
            "UPDATE t SET a = 1 WHERE id = 3 - 4",
        ),
        ("DELETE FROM t LIMIT 5", "DELETE FROM t LIMIT 0"),
    ] {
        let shared = check(first, second, Dialect::default()).unwrap();
        assert_eq!(shared, Shared::Effects, "{first}");
    }
}

#[test]
fn reads_that_differ_in_values_have_one_template() {
    for (first, second) in [
        (
            "SELECT c FROM t WHERE id=1",
            "SELECT c FROM t WHERE id=10001",
        ),
        ("SELECT c FROM t WHERE id=1", "SELECT c FROM t WHERE id=0"),
        (
            "SELECT c FROM t WHERE s='x' AND n IN (1, -2) LIMIT 5",
            "SELECT c FROM t WHERE s='it''s' AND n IN (34, -5) LIMIT 10",
        ),
        (
            "SELECT c FROM t WHERE s=\"x\" LIMIT 0, 5",
            "SELECT c FROM t WHERE s=\"a\\\"b\" LIMIT 20, 5",
        ),
        (
            "SELECT a, 'x' FROM t JOIN u ON t.a = u.b AND u.c > 5 WHERE t.d BETWEEN 1 AND 3",
            "SELECT a, 'y' FROM t JOIN u ON t.a = u.b AND u.c > 6 WHERE t.d BETWEEN 9 AND 3",
        ),
        ("SELECT c FROM t", "SELECT c FROM t"),
    ] {
        let shared = check(first, second, Dialect::default()).unwrap();
        assert_eq!(shared, Shared::Rows, "{first}");
    }
}

#[test]
fn a_read_whose_analysis_may_depend_on_a_value_is_analysed() {
    let long = format!("SELECT c FROM t WHERE s='{}'", "x".repeat(2_000));
    // Together too long to be a constant; whether a condition is lost decides about the other.
    let beside = |condition: &str| format!("SELECT c FROM t WHERE (a=1 AND {condition}) OR a=5");
    let of_strings = |string: &str| beside(&format!("s='{string}' '{string}'"));
    let strings = ["p", &"x".repeat(900)].map(of_strings);
    let digits = "0".repeat(CONSTANT_BYTES_MAX - 2);
    let decimals = ["1", "11"].map(|whole| beside(&format!("s={whole}.{digits}")));
    for (first, second) in [
        // Nothing is read.
        ("SELECT c FROM t LIMIT 5", "SELECT c FROM t LIMIT 0"),
        // A number of another type.
        (
            "SELECT c FROM t WHERE id=1",
            "SELECT c FROM t WHERE id=99999999999999999999",
        ),
        // Calculated, or joined, from several values.
        (
            "SELECT c FROM t WHERE id=1+2",
            "SELECT c FROM t WHERE id=3+4",
        ),
        (
            "SELECT c FROM t WHERE id=1-2+3",
            "SELECT c FROM t WHERE id=10-2+3",
        ),
        (
            "SELECT c FROM t WHERE s='remora0' AND'remora0'=u",
            "SELECT c FROM t WHERE s='zzz' AND'remora0'=u",
        ),
        (
            "SELECT c FROM t WHERE s='a' 'b'",
            "SELECT c FROM t WHERE s='c' 'd'",
        ),
        ("SELECT c FROM t WHERE d=1.5", "SELECT c FROM t WHERE d=2.5"),
        // Too long to be a constant.
        ("SELECT c FROM t WHERE s='x'", &long),
        (&strings[0], &strings[1]),
        (&decimals[0], &decimals[1]),
    ] {
        let shared = check(first, second, Dialect::default()).unwrap();
        assert_eq!(shared, Shared::Effects, "{first}");
    }
}

#[test]
fn a_template_leaves_out_which_rows_are_read() {
    let of = |text: &str| {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let (text, dialect) = (text.as_bytes(), Dialect::default());
        skeleton(text, dialect, &mut bytes, &mut values).unwrap();
        ReadTemplate::of(&analyse(text, dialect), text, dialect, &values)
    };
    let template = of("SELECT c FROM t WHERE id = 7").unwrap();
    let select = template.of_every_row().cacheable.as_ref().unwrap();
    assert!(select.reads.blocks.is_empty() && select.reads.all_columns);
    let makes_dates = |text: &str| {
        let template = of(text).unwrap();
        let select = template.of_every_row().cacheable.as_ref().unwrap();
        select.reads.makes_dates
    };
    assert!(!makes_dates("SELECT c FROM t WHERE id = 7"));
    assert!(makes_dates("SELECT YEAR(c) FROM t WHERE id = 7"));
    assert!(of("UPDATE t SET a = 1").is_none());
}
