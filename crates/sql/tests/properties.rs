//! What must hold for every text.
//!
//! Servers: none
//! Load: waits

mod common;

use common::{default, dialects, names};
use proptest::prelude::*;
use remora_sql::{
    Class, Dialect, FUNCTIONS, Keyword, Lexer, Test, TokenKind, Writes, analyse, analyse_logged,
    analyse_prefix, find_function,
};

const FRAGMENTS: &[&str] = &[
    "SELECT",
    "FROM",
    "t",
    "WHERE",
    "(",
    ")",
    ",",
    "f(",
    "NOW()",
    "=",
    "1",
    "'x'",
    "`q`",
    ".",
    "JOIN",
    "ON",
    "UNION",
    "WITH",
    "AS",
    "IN",
    ";",
    "/*",
    "*/",
    "/*!",
    "--",
    "#",
    "\n",
    "'",
    "\"",
    "\\",
    "@a",
    "@@b",
    ":=",
    "INSERT",
    "INTO",
    "SET",
    "UPDATE",
    "DELETE",
    "CASE",
    "END",
    "BETWEEN",
    "AND",
    "NOT",
    "COUNT(",
    "OVER",
    "LIMIT",
    "FOR",
    "CREATE",
    "TABLE",
    "BEGIN",
    "XA",
    "EXPLAIN",
    "STATEMENT",
    "INTERVAL",
    "DAY",
    "?",
    "*",
    "-",
    "NEXT VALUE FOR",
];

/// Fragments of statements, put together without sense.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(FRAGMENTS);
    prop::collection::vec((fragment, prop::sample::select(&["", " "][..])), 0..40).prop_map(
        |parts| {
            parts
                .iter()
                .flat_map(|(text, space)| [*text, *space])
                .collect()
        },
    )
}

fn tokens(text: &[u8], dialect: Dialect) -> Vec<(usize, usize, TokenKind)> {
    let mut lexer = Lexer::new(text, dialect);
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End {
            return found;
        }
        found.push((token.start, token.end, token.kind));
        if token.kind == TokenKind::Invalid {
            return found;
        }
    }
}

/// A cacheable statement has no effect at all.
fn check_consistency(text: &[u8], dialect: Dialect) {
    let statement = analyse(text, dialect);
    if let Ok(select) = &statement.cacheable {
        assert_eq!(statement.writes, Writes::Nothing);
        assert_eq!(statement.session, remora_sql::SessionEffect::None);
        assert_eq!(statement.transaction, remora_sql::Transaction::None);
        assert!(!statement.diagnostics);
        for block in &select.reads.blocks {
            let count = block.sources.len();
            let known = |table: usize| table < select.tables.len();
            assert!(
                block
                    .sources
                    .iter()
                    .all(|source| source.table.is_none_or(known))
            );
            for condition in &block.conditions {
                assert!(!condition.restricts.is_empty());
                assert!(!(count..64).any(|index| condition.restricts.contains(index)));
                assert!(select.reads.names.contains(&condition.column.column));
                if let Test::Column(other) = &condition.test {
                    assert!(select.reads.names.contains(&other.column));
                }
            }
        }
    }
    if let Some(write) = &statement.narrowed {
        assert_eq!(statement.writes, Writes::Tables(vec![write.table.clone()]));
    }
    if let Writes::Tables(tables) = &statement.writes {
        assert!(!tables.is_empty());
    }
    assert!(analyse_prefix(text, dialect).cacheable.is_err());
    let _ = analyse_logged(text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), dialect in dialects()) {
        check_consistency(&bytes, dialect);
    }

    #[test]
    fn no_fragments_make_it_panic(text in fragments(), dialect in dialects()) {
        check_consistency(text.as_bytes(), dialect);
    }

    #[test]
    fn garbage_is_never_cacheable(text in "[^sS(wW/#\\-; \t\r\n]{1,20}.{0,40}") {
        prop_assert!(default(&text).cacheable.is_err());
    }

    #[test]
    fn tokens_cover_the_text_but_for_space_and_comments(text in fragments(), dialect in dialects()) {
        let bytes = text.as_bytes();
        let mut lexer = Lexer::new(bytes, dialect);
        let mut position = 0;
        loop {
            let token = lexer.next_token();
            prop_assert!(token.start >= position && token.end >= token.start);
            if !lexer.saw_executable_comment() {
                // What is left out gives no token of its own.
                let gap = &bytes[position..token.start];
                prop_assert!(tokens(gap, dialect).is_empty(), "{:?}", text);
            }
            if token.kind == TokenKind::Invalid {
                prop_assert_eq!(token.end, bytes.len());
            }
            position = token.end;
            if matches!(token.kind, TokenKind::End | TokenKind::Invalid) {
                prop_assert_eq!(position, bytes.len());
                break;
            }
        }
    }

    #[test]
    fn an_unknown_functions_call_writes_everything(
        name in "[a-zA-Z_$][a-zA-Z0-9_]{0,12}",
        place in 0..8_usize,
        quoted in any::<bool>(),
        spaced in any::<bool>(),
    ) {
        let known = find_function(name.as_bytes()).is_some()
            || Keyword::of(name.as_bytes()) != Keyword::Other;
        prop_assume!(quoted || (!known && !name.starts_with('$')));
        // `_utf8` and the like begin a literal.
        prop_assume!(quoted || !name.starts_with('_'));
        let name = if quoted { format!("`{name}`") } else { name };
        let call = format!("{name}{}(a, 1)", if spaced { " " } else { "" });
        let text = match place {
            0 => format!("SELECT {call} FROM t"),
            1 => format!("SELECT a FROM t WHERE b = {call}"),
            2 => format!("SELECT a FROM t JOIN u ON {call}"),
            3 => format!("SELECT a FROM t ORDER BY {call}"),
            4 => format!("SELECT COUNT({call}) FROM t"),
            5 => format!("SELECT a FROM t WHERE b IN (SELECT {call} FROM u)"),
            6 => format!("SELECT CASE WHEN {call} THEN 1 ELSE 2 END FROM t"),
            _ => format!("INSERT INTO t VALUES (1, {call})"),
        };
        let statement = default(&text);
        prop_assert!(statement.cacheable.is_err(), "{}", text);
        prop_assert!(matches!(statement.writes, Writes::Everything(_)), "{}", text);
    }

    #[test]
    fn space_and_comments_between_tokens_change_no_tables(
        (text, tables) in selects(),
        trivia in prop::collection::vec(
            prop_oneof![Just(" "), Just("\n\t"), Just(" /* f( */ "), Just(" -- g(\n"), Just("#'\n"), Just("")],
            1..8,
        ),
    ) {
        let mut spaced = String::new();
        let mut previous_end = 0;
        for (index, (start, end, _)) in tokens(text.as_bytes(), Dialect::default()).iter().enumerate() {
            spaced.push_str(&text[previous_end..*start]);
            // Not before a `(`: there it would change the meaning.
            if text.as_bytes()[*start] != b'(' && previous_end != *start {
                spaced.push_str(trivia[index % trivia.len()]);
            }
            spaced.push_str(&text[*start..*end]);
            previous_end = *end;
        }
        let read = default(&spaced).cacheable.map(|select| names(&select.tables));
        prop_assert_eq!(read.map(sorted), Ok(tables), "{}", spaced);
    }

    #[test]
    fn a_select_reads_exactly_the_tables_in_it((text, tables) in selects()) {
        let read = default(&text).cacheable.map(|select| names(&select.tables));
        prop_assert_eq!(read.map(sorted), Ok(tables), "{}", text);
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

const TABLES: &[&str] = &["t0", "s.t1", "t2", "t3", "s.t4", "t5"];

/// A query and the tables in it, sorted.
fn selects() -> impl Strategy<Value = (String, Vec<String>)> {
    let table =
        prop::sample::select(TABLES).prop_map(|name| (name.to_owned(), vec![name.to_owned()]));
    let query = table.prop_map(|(name, tables)| (format!("SELECT a FROM {name}"), tables));
    query
        .prop_recursive(4, 24, 3, |inner| {
            let table = prop::sample::select(TABLES);
            prop_oneof![
                (inner.clone(), table.clone(), 0..9_usize).prop_map(
                    |((query, mut tables), name, form)| {
                        tables.push(name.to_owned());
                        (around(&query, name, form), tables)
                    }
                ),
                (inner.clone(), inner, any::<bool>()).prop_map(
                    |((left, mut tables), (right, more), all)| {
                        tables.extend(more);
                        (
                            format!("({left}) UNION {}({right})", if all { "ALL " } else { "" }),
                            tables,
                        )
                    }
                ),
            ]
        })
        .prop_map(|(text, tables)| (text, sorted(tables)))
}

/// A query on the table `name` with another query inside.
fn around(query: &str, name: &str, form: usize) -> String {
    match form {
        0 => {
            format!("SELECT a, ({query}) AS b FROM {name} AS x WHERE x.a = 'SELECT 1 FROM hidden'")
        }
        1 => format!("SELECT * FROM {name} WHERE a IN ({query}) AND b BETWEEN 1 AND 2"),
        2 => format!("SELECT COUNT(*) FROM ({query}) d LEFT JOIN {name} ON d.a = {name}.a"),
        3 => format!("SELECT a FROM {name} WHERE NOT EXISTS ({query}) GROUP BY a HAVING a > 1"),
        4 => format!("WITH c (z) AS ({query}) SELECT z FROM c, {name} ORDER BY 1 LIMIT 3"),
        5 => format!(
            "SELECT CASE WHEN a = ANY ({query}) THEN 1 ELSE -1 END y FROM {name} LIMIT 2, 3"
        ),
        6 => format!(
            "SELECT IFNULL(({query}), 0) FROM {name} x USE INDEX (i) WHERE x.`from` LIKE 'a%'"
        ),
        7 => format!("SELECT SUM(a) OVER (PARTITION BY b ORDER BY ({query})) FROM {name}"),
        _ => format!(
            "SELECT a FROM ({name} JOIN ({query}) d USING (a)) WHERE a <> 'it''s' OR b IS NULL"
        ),
    }
}

#[test]
fn every_function_that_may_be_cached_is_described() {
    for function in FUNCTIONS {
        let cacheable = matches!(
            function.class,
            Class::Pure | Class::Aggregate | Class::Window
        );
        assert_eq!(function.class.is_deterministic(), cacheable);
        assert!(
            function
                .name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        );
    }
    for volatile in [
        "NOW",
        "RAND",
        "UUID",
        "SLEEP",
        "USER",
        "FOUND_ROWS",
        "GET_LOCK",
        "LOAD_FILE",
    ] {
        let found =
            find_function(volatile.as_bytes()).map(|function| function.class.is_deterministic());
        assert_eq!(found, Some(false), "{volatile}");
    }
    for absent in [
        "NEXTVAL",
        "SETVAL",
        "ENCRYPT",
        "PASSWORD",
        "MASTER_GTID_WAIT",
        "REGEXP_REPLACE",
    ] {
        assert!(find_function(absent.as_bytes()).is_none(), "{absent}");
    }
}

/// A conjunct and what it says of its column, if it says anything.
fn conjuncts() -> impl Strategy<Value = (String, Option<String>)> {
    let constant = || {
        prop_oneof![
            any::<i64>().prop_map(|value| (value.to_string(), value.to_string())),
            (0..100_i64, 0..100_i64)
                .prop_map(|(a, b)| (format!("{a}-{b}*2"), (a - b * 2).to_string())),
            "[a-z']{0,6}".prop_map(|text| (
                format!("'{}'", text.replace('\'', "''")),
                format!("'{}'", text.replace('\'', "\\'")),
            )),
        ]
    };
    let column = || prop::sample::select(&["a", "b", "t.c", "`d`"][..]);
    let shown = |column: &str| column.replace('`', "");
    let comparison =
        prop::sample::select(&[("=", "in", "="), ("<", "<", ">"), (">=", ">=", "<=")][..]);
    prop_oneof![
        (column(), comparison, constant(), any::<bool>()).prop_map(
            move |(column, (sign, word, mirrored), (text, value), turned)| {
                let says = format!("{} {word} {value}", shown(column));
                let text = if turned {
                    format!("{text} {mirrored} {column}")
                } else {
                    format!("{column} {sign} {text}")
                };
                (text, Some(says))
            }
        ),
        (
            column(),
            prop::collection::vec(constant(), 1..4),
            any::<bool>()
        )
            .prop_map(move |(column, constants, as_or)| {
                let values: Vec<&str> = constants.iter().map(|(_, value)| &**value).collect();
                let says = format!("{} in {}", shown(column), values.join(" "));
                let texts: Vec<&str> = constants.iter().map(|(text, _)| &**text).collect();
                let equals = |text: &&str| format!("{column} = {text}");
                let text = if as_or {
                    format!(
                        "({})",
                        texts.iter().map(equals).collect::<Vec<_>>().join(" OR ")
                    )
                } else {
                    format!("{column} IN ({})", texts.join(", "))
                };
                (text, Some(says))
            }),
        (column(), constant(), constant()).prop_map(move |(column, low, high)| {
            let says = format!("{} >= {} <= {}", shown(column), low.1, high.1);
            (
                format!("{column} BETWEEN {} AND {}", low.0, high.0),
                Some(says),
            )
        }),
        (column(), constant(), 0..9_usize).prop_map(|(column, (text, _), form)| {
            let text = match form {
                0 => format!("NOT {column} = {text}"),
                1 => format!("{column} = {text} IS NULL"),
                2 => format!("({column} = {text} OR e > 1)"),
                3 => format!("{column} <> {text}"),
                4 => format!("({column} = {text}) = 1"),
                5 => format!("{column} NOT IN ({text})"),
                6 => format!("{column} IN (SELECT {text})"),
                7 => format!("IF({column} = {text}, 1, 0)"),
                _ => format!("{column} = {text} | e"),
            };
            (text, None)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn exactly_the_conjuncts_that_compare_with_constants_are_conditions(
        conjuncts in prop::collection::vec((conjuncts(), 0..3_usize), 1..6),
        form in 0..4_usize,
    ) {
        let texts: Vec<String> = conjuncts
            .iter()
            .map(|((text, _), depth)| format!("{}{text}{}", "(".repeat(*depth), ")".repeat(*depth)))
            .collect();
        let says: Vec<&str> = conjuncts.iter().filter_map(|((_, says), _)| says.as_deref()).collect();
        let filter = texts.join(" AND ");
        let text = match form {
            0 => format!("SELECT x FROM t WHERE {filter}"),
            1 => format!("SELECT x FROM t JOIN u ON ({filter}) GROUP BY y"),
            2 => format!("UPDATE t SET x = 1 WHERE {filter} LIMIT 3"),
            _ => format!("DELETE FROM t WHERE {filter} ORDER BY y"),
        };
        let statement = default(&text);
        let found = match (&statement.narrowed, &statement.cacheable) {
            (Some(write), _) => common::describe::rows(write),
            (None, Ok(select)) => common::describe::conditions(&select.reads.blocks[0]),
            (None, Err(refusal)) => panic!("{text}: {refusal:?}"),
        };
        prop_assert_eq!(found, says.join(", "), "{}", text);
    }
}
