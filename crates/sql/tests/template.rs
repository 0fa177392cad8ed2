//! Texts with one skeleton have one analysis, but for their values.
//!
//! Servers: none
//! Load: waits

mod common;

use common::dialects;
use proptest::prelude::*;
use remora_sql::{Dialect, Lexer, ReadTemplate, Statement, TokenKind, analyse, skeleton};

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
    "7",
    "10",
    "255",
    "9223372036854775808",
    "99999999999999999999999",
    "007",
];
const STRINGS: &[&str] = &[
    "'x'",
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

fn check(first: &str, second: &str, dialect: Dialect) -> Result<bool, TestCaseError> {
    let (mut first_skeleton, mut second_skeleton) = (Vec::new(), Vec::new());
    let hashes = (
        skeleton(first.as_bytes(), dialect, &mut first_skeleton),
        skeleton(second.as_bytes(), dialect, &mut second_skeleton),
    );
    if hashes.0.is_none() || hashes.1.is_none() || first_skeleton != second_skeleton {
        return Ok(false);
    }
    prop_assert_eq!(hashes.0, hashes.1);
    prop_assert_eq!(
        tokens(first.as_bytes(), dialect),
        tokens(second.as_bytes(), dialect)
    );
    let (one, two) = (
        analyse(first.as_bytes(), dialect),
        analyse(second.as_bytes(), dialect),
    );
    // A `SET` can be judged by its value.
    if one.kind != remora_sql::StatementKind::Set {
        prop_assert_eq!(effects(&one), effects(&two), "{} and {}", first, second);
    }
    if let (Some(one), Some(two)) = (ReadTemplate::of(&one), ReadTemplate::of(&two)) {
        prop_assert_eq!(one, two);
        return Ok(true);
    }
    Ok(false)
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

#[test]
fn reads_that_differ_in_values_have_one_template() {
    for (first, second) in [
        (
            "SELECT c FROM t WHERE id=1",
            "SELECT c FROM t WHERE id=10001",
        ),
        (
            "SELECT c FROM t WHERE s='x' AND n IN (1, 2) LIMIT 5",
            "SELECT c FROM t WHERE s='it''s' AND n IN (34, 5) LIMIT 10",
        ),
        (
            "SELECT a, 'x' FROM t JOIN u ON t.a = u.b AND u.c > 5",
            "SELECT a, 'y' FROM t JOIN u ON t.a = u.b AND u.c > 6",
        ),
    ] {
        assert!(check(first, second, Dialect::default()).unwrap(), "{first}");
    }
}

#[test]
fn a_template_leaves_out_which_rows_are_read() {
    let statement = analyse(b"SELECT c FROM t WHERE id = 7", Dialect::default());
    let template = ReadTemplate::of(&statement).unwrap();
    let select = template.statement().cacheable.as_ref().unwrap();
    assert!(select.reads.blocks.is_empty() && select.reads.all_columns);
    assert_eq!(
        ReadTemplate::of(&analyse(b"UPDATE t SET a = 1", Dialect::default())),
        None
    );
}
