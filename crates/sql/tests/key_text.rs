//! What must hold of every text and the text by which it is looked up.
//!
//! Servers: none
//! Load: waits

mod common;

use common::dialects;
use proptest::prelude::*;
use remora_sql::{Dialect, Lexer, TokenKind, analyse, analyse_prepared, key_text};

/// Parts of statements, most of them for what a reader of bytes may get wrong.
const PARTS: &[&str] = &[
    "SELECT",
    "select",
    "FROM",
    "from",
    "VALUES",
    "DISTINCT",
    "WITH x AS",
    "UNION",
    "WHERE",
    "LIMIT 1",
    "EXTRACT(YEAR FROM d)",
    "a",
    "t",
    "t.from",
    "@from",
    "é",
    "\u{a0}",
    "2fa",
    "1",
    ".5",
    "1.",
    "0x41",
    "(",
    ")",
    ",",
    ".",
    "=",
    "*",
    "/",
    "-",
    "--",
    "#",
    "+",
    "'x  y'",
    "'it''s'",
    "'a\\'",
    "\\",
    "'",
    "\"",
    "\"b  c\"",
    "`",
    "`q  r`",
    "/* c */",
    "/* it's */",
    "/*+ h */",
    "/*+ 'h' */",
    "/*! x */",
    "/*!50503 x */",
    "/*!99999 x */",
    "/*M! x */",
    "/*",
    "*/",
    "/**/",
    "-- d\n",
    "--\te\n",
    "--f",
    "# g\n",
    "# it's\n",
    "\0",
    "\u{7f}",
    "_utf8mb4",
    "N",
    "x",
    ";",
];
const GAPS: &[&str] = &[
    "",
    "",
    " ",
    " ",
    "  ",
    "\n",
    "\t ",
    "\r\n",
    " /* z */ ",
    "/**/",
    " -- y\n",
    "\u{b}",
    "\u{c}",
];

fn texts() -> impl Strategy<Value = String> {
    let part = (prop::sample::select(PARTS), prop::sample::select(GAPS));
    prop::collection::vec(part, 0..24)
        .prop_map(|parts| parts.iter().flat_map(|(part, gap)| [*part, *gap]).collect())
}

/// What follows the list of what is selected, in words.
const BEHIND_THE_LIST: &[&str] = &[
    "t",
    "AS",
    "u",
    "WHERE",
    "c",
    "=",
    "'x  /* y */'",
    "AND",
    "d",
    "IN",
    "(",
    "SELECT  e  FROM",
    "v",
    "WHERE",
    "f",
    "=",
    "\"it's\"",
    ")",
    "UNION",
    "SELECT  1,  `g  h`  FROM",
    "w",
    "LIMIT",
    "1",
];

/// Gaps that the servers pass over, before each word of [`BEHIND_THE_LIST`] and at the end.
fn gaps() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&GAPS[2..]), BEHIND_THE_LIST.len() + 1)
}

fn with_gaps(gaps: &[&str]) -> String {
    let words = BEHIND_THE_LIST.iter().chain([&""]);
    let behind = gaps.iter().zip(words).flat_map(|(gap, word)| [*gap, *word]);
    ["SELECT a, b  + 1 FROM"]
        .into_iter()
        .chain(behind)
        .collect()
}

fn key_of(text: &[u8], dialect: Dialect) -> Vec<u8> {
    let mut key = Vec::new();
    if key_text(text, dialect, &mut key) {
        key
    } else {
        text.to_vec()
    }
}

/// Kinds and bytes; of what can't be read only that.
fn tokens(text: &[u8], dialect: Dialect) -> Vec<(TokenKind, Vec<u8>)> {
    let mut lexer = Lexer::new(text, dialect);
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::End => return found,
            TokenKind::Invalid => {
                found.push((token.kind, Vec::new()));
                return found;
            }
            kind => found.push((kind, lexer.bytes(token).to_vec())),
        }
    }
}

fn check(text: &[u8], dialect: Dialect) {
    let key = key_of(text, dialect);
    assert_eq!(
        tokens(text, dialect),
        tokens(&key, dialect),
        "{} | {}",
        text.escape_ascii(),
        key.escape_ascii()
    );
    assert_eq!(analyse(text, dialect), analyse(&key, dialect));
    assert_eq!(
        analyse_prepared(text, dialect),
        analyse_prepared(&key, dialect)
    );
    assert_eq!(key_of(&key, dialect), key, "of a key text");
    assert!(key.len() <= text.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_text_means_what_its_key_text_means(text in texts(), dialect in dialects()) {
        check(text.as_bytes(), dialect);
    }

    #[test]
    fn any_bytes_mean_what_their_key_text_means(bytes in prop::collection::vec(any::<u8>(), 0..60), dialect in dialects()) {
        check(&bytes, dialect);
        check(&[b"SELECT a FROM t  ", &bytes[..]].concat(), dialect);
    }

    #[test]
    fn gaps_behind_the_list_make_no_difference(one in gaps(), other in gaps()) {
        let [one, other] = [one, other].map(|gaps| with_gaps(&gaps));
        let key_of = |text: &str| key_of(text.as_bytes(), Dialect::default());
        prop_assert_eq!(key_of(&one), key_of(&other), "{} | {}", one, other);
    }

    #[test]
    fn a_gap_within_the_list_makes_one(one in prop::sample::select(GAPS), other in prop::sample::select(GAPS)) {
        let [one, other] = [one, other].map(|gap| format!("SELECT a{gap}+ b FROM t"));
        let key_of = |text: &str| key_of(text.as_bytes(), Dialect::default());
        prop_assert_eq!(one == other, key_of(&one) == key_of(&other));
    }
}
