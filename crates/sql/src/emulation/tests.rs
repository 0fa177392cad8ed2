use super::EmulatedVariable as V;
use super::VariableScope as S;
use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Option<EmulatedStatement<'_>> {
    recognise(text.as_bytes(), Dialect::default())
}

fn shown(text: &str) -> ShowNames {
    match read(text) {
        Some(EmulatedStatement::Show(show)) => show,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn lists_of_status_and_variables_are_known_with_their_filters() {
    for (text, is_global, takes, leaves) in [
        ("SHOW STATUS", false, "Qcache_hits", ""),
        (
            "show global status like 'Qcache%'",
            true,
            "Qcache_hits",
            "Queries",
        ),
        ("SHOW /*!50002 GLOBAL */ STATUS", true, "Qcache_hits", ""),
        (
            "SHOW LOCAL STATUS LIKE 'qcache\\_hits';",
            false,
            "Qcache_hits",
            "Qcachexhits",
        ),
        (
            "SHOW SESSION STATUS WHERE Variable_name = 'qcache_HITS'",
            false,
            "Qcache_hits",
            "Qcache_inserts",
        ),
        (
            "SHOW STATUS WHERE `variable_name` IN ('Uptime', 'Qcache_hits') OR Variable_name LIKE 'x%'",
            false,
            "Qcache_hits",
            "Qcache_inserts",
        ),
        (
            "/* a */ SHOW -- b\n GLOBAL\tSTATUS LIKE \"%hits\"",
            true,
            "Qcache_hits",
            "Qcache_inserts",
        ),
    ] {
        let show = shown(text);
        assert_eq!(
            (show.listing, show.is_global),
            (NameListing::Status, is_global),
            "{text}"
        );
        assert!(show.filter.takes(takes), "{text}");
        assert!(leaves.is_empty() || !show.filter.takes(leaves), "{text}");
    }
    let show = shown("show variables like 'query_cache_%'");
    assert_eq!(show.listing, NameListing::Variables);
    assert!(show.filter.takes("query_cache_size") && !show.filter.takes("have_query_cache"));
}

#[test]
fn what_could_mean_something_else_goes_to_the_server() {
    for text in [
        "SHOW STATUS; SELECT 1",
        "SHOW STATUS LIKE 'a' 'b'",
        "SHOW STATUS LIKE N'a'",
        "SHOW STATUS LIKE 'a\\n'",
        "SHOW STATUS LIKE 'it''s'",
        "SHOW STATUS LIKE 'é'",
        "SHOW STATUS WHERE Value > 5",
        "SHOW STATUS WHERE Variable_name = 'a' AND Value > 5",
        "SHOW STATUS WHERE NOT Variable_name = 'a'",
        "SHOW STATUS WHERE Variable_name = 'a '",
        "SHOW STATUS WHERE Variable_name = CONCAT('a')",
        "SHOW STATUS LIKE",
        "SHOW TABLE STATUS",
        "SHOW SLAVE STATUS",
        "SHOW GLOBAL",
        "SHOW STATUS FROM t",
        "SELECT @@version",
        "SELECT @@query_cache_size FROM t",
        "SELECT @@query_cache_size INTO OUTFILE '/tmp/a'",
        "SELECT @@query_cache_size + 1",
        "SELECT @@query_cache_size, f()",
        "SELECT @@query_cache_size, @a",
        "SELECT @@query_cache_size, @@a := 1",
        "SELECT @@query_cache_size UNION SELECT 1",
        "SELECT @@query_cache_size; DROP TABLE t",
        "SELECT @@ query_cache_size",
        "SELECT @@session.query_cache_size",
        "SELECT @@other.query_cache_size",
        "SELECT /*!50001 @@query_cache_size */",
        "SELECT '@@query_cache_size'",
        "SELECT 1, @@query_cache_size",
        "SET autocommit = 1",
        "SET @query_cache_size = 1",
        "SET autocommit = 1, SESSION query_cache_type = OFF",
        "SET GLOBAL max_connections = @@query_cache_size",
        "SET GLOBAL query_cache_size = 1; DROP TABLE t",
        "SET STATEMENT query_cache_type = OFF FOR SELECT 1",
        "FLUSH QUERY CACHE, TABLES",
        "FLUSH TABLES",
        "FLUSH QUERY",
        "RESET MASTER",
        "RESET QUERY CACHE; SELECT 1",
        "EXPLAIN REMORA",
        "EXPLAIN REMORA a",
        "EXPLAIN REMORA UPDATE t SET a = 1",
        "EXPLAIN REMORA SELECT 1; DROP TABLE t",
        "/*!50001 EXPLAIN REMORA SELECT 1 */",
        "DESCRIBE remora '%'",
        "EXPLAIN SELECT 1",
        "SHOW REMORA ENTRIES; DROP TABLE t",
        "",
        ";",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn variables_in_a_list_are_found_where_they_stand() {
    let text = "/* driver 8.0 */SELECT  @@session.auto_increment_increment AS inc, @@query_cache_size AS size, @@Global.Query_Cache_Type LIMIT 1;";
    let Some(EmulatedStatement::Select(list)) = read(text) else {
        panic!("{:?}", read(text));
    };
    let found: Vec<_> = list
        .uses
        .iter()
        .map(|one| {
            (
                &text[one.start..one.end],
                one.variable,
                one.scope,
                one.has_alias,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "@@query_cache_size",
                EmulatedVariable::Size,
                VariableScope::Default,
                true
            ),
            (
                "@@Global.Query_Cache_Type",
                EmulatedVariable::Type,
                VariableScope::Global,
                false
            ),
        ]
    );
}

#[test]
fn assignments_are_read_or_kept_from_the_server() {
    let one = |scope, variable, value| {
        let set = EmulatedSet::Assignments(vec![Assignment {
            variable,
            scope,
            value,
        }]);
        Some(EmulatedStatement::Set(set))
    };
    for (text, scope, variable, value) in [
        (
            "SET GLOBAL query_cache_size = 1048576",
            S::Global,
            V::Size,
            EmulatedValue::Number(1 << 20),
        ),
        (
            "set @@global.query_cache_size:=64*1024*1024;",
            S::Global,
            V::Size,
            EmulatedValue::Number(64 << 20),
        ),
        (
            "SET @@GLOBAL.query_cache_limit = -1",
            S::Global,
            V::Limit,
            EmulatedValue::Number(-1),
        ),
        (
            "SET query_cache_type = DEMAND",
            S::Default,
            V::Type,
            EmulatedValue::Word("DEMAND".into()),
        ),
        (
            "SET LOCAL query_cache_type = 'on'",
            S::Session,
            V::Type,
            EmulatedValue::String("on".into()),
        ),
        (
            "SET GLOBAL query_cache_type = DEFAULT",
            S::Global,
            V::Type,
            EmulatedValue::Default,
        ),
        (
            "SET GLOBAL query_cache_size = 1.5",
            S::Global,
            V::Size,
            EmulatedValue::Fraction("1.5".into()),
        ),
        (
            "SET GLOBAL query_cache_size = 99999999999999999999",
            S::Global,
            V::Size,
            EmulatedValue::Number(i128::MAX),
        ),
    ] {
        assert_eq!(read(text), one(scope, variable, value), "{text}");
    }
    for text in [
        "SET autocommit = 1, GLOBAL query_cache_size = 0",
        "SET GLOBAL query_cache_size = (SELECT 1)",
        "SET GLOBAL query_cache_size = @a := 1",
        "SET GLOBAL query_cache_size = f(1)",
        "SET /*!50001 GLOBAL */ query_cache_size = @a",
        "SET GLOBAL query_cache_size = 1, max_connections = 5",
        "SET GLOBAL max_connections = 5, query_cache_size = 1",
        "SET GLOBAL max_connections = 5, @@session.autocommit = 1, query_cache_size = 1",
    ] {
        let mixed = EmulatedStatement::Set(EmulatedSet::Mixed(EmulatedVariable::Size));
        assert_eq!(read(text), Some(mixed), "{text}");
    }
}

#[test]
fn a_value_that_the_server_must_be_asked_for_is_left_in_the_text() {
    for (text, expression, uses) in [
        ("SET GLOBAL query_cache_size = @a", "@a", &[][..]),
        (
            "SET GLOBAL query_cache_size=@`a b` , query_cache_limit = 1;",
            "@`a b`",
            &[],
        ),
        ("SET @@global.query_cache_size = 1 + 1", "1 + 1", &[]),
        ("SET GLOBAL query_cache_size = (@a*1024) ", "(@a*1024)", &[]),
        (
            "SET GLOBAL query_cache_size = @@global.max_connections * 2",
            "@@global.max_connections * 2",
            &[],
        ),
        (
            "SET GLOBAL query_cache_size = @@max_connections",
            "@@max_connections",
            &[],
        ),
        (
            "SET GLOBAL query_cache_size = @@query_cache_limit + @@global.query_cache_limit",
            "@@query_cache_limit + @@global.query_cache_limit",
            &["@@query_cache_limit", "@@global.query_cache_limit"],
        ),
    ] {
        let Some(EmulatedStatement::Set(EmulatedSet::Assignments(all))) = read(text) else {
            panic!("{text}: {:?}", read(text));
        };
        let EmulatedValue::Expression(found) = &all[0].value else {
            panic!("{text}: {all:?}");
        };
        assert_eq!(&text[found.start..found.end], expression, "{text}");
        let found: Vec<_> = found
            .uses
            .iter()
            .map(|one| &text[one.start..one.end])
            .collect();
        assert_eq!(found, uses, "{text}");
    }
}

#[test]
fn values_that_are_saved_are_found() {
    for (text, uses) in [
        ("SET @a = @@query_cache_type", &["@@query_cache_type"][..]),
        (
            "SET @a := @@global.query_cache_size, @b = @@sql_mode, @c = @@query_cache_limit / 2;",
            &["@@global.query_cache_size", "@@query_cache_limit"],
        ),
        ("SET @a = 1", &[]),
        ("SET @a = @@sql_mode", &[]),
        ("SET @a = @@query_cache_type, autocommit = 1", &[]),
        ("SET @a = (SELECT @@query_cache_type)", &[]),
        (
            "SELECT @@global.query_cache_type, @@version INTO @a, @b",
            &["@@global.query_cache_type"],
        ),
        ("SELECT @@query_cache_type INTO OUTFILE 'x'", &[]),
    ] {
        let found = match read(text) {
            Some(EmulatedStatement::Save(found) | EmulatedStatement::Select(found)) => found.uses,
            None => Vec::new(),
            other => panic!("{text}: {other:?}"),
        };
        let found: Vec<_> = found.iter().map(|one| &text[one.start..one.end]).collect();
        assert_eq!(found, uses, "{text}");
    }
}

#[test]
fn the_last_word_for_the_scope_holds_for_what_is_behind_it() {
    use VariableScope as S;
    for (text, expected) in [
        (
            "SET GLOBAL query_cache_limit = 1, query_cache_type = 0",
            [S::Global, S::Global],
        ),
        (
            "SET GLOBAL query_cache_limit = 1, SESSION query_cache_type = 0",
            [S::Global, S::Session],
        ),
        (
            "SET query_cache_type = 0, GLOBAL query_cache_type = 0",
            [S::Default, S::Global],
        ),
        (
            "SET @@global.query_cache_limit = 1, query_cache_type = 0",
            [S::Global, S::Default],
        ),
        (
            "SET GLOBAL query_cache_limit = 1, @@query_cache_type = 0",
            [S::Global, S::Default],
        ),
    ] {
        let Some(EmulatedStatement::Set(EmulatedSet::Assignments(all))) = read(text) else {
            panic!("{text}");
        };
        let scopes: Vec<_> = all.iter().map(|one| one.scope).collect();
        assert_eq!(scopes, expected, "{text}");
    }
    for text in [
        "SET @@global.max_connections = 5, query_cache_type = 1",
        "SET GLOBAL max_connections = 5, SESSION query_cache_type = 1",
        "SET GLOBAL max_connections = 5, @@session.query_cache_type = 1",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn commands_and_remoras_own_statements_are_known() {
    assert_eq!(read("FLUSH QUERY CACHE"), Some(EmulatedStatement::Flush));
    assert_eq!(
        read("flush local query cache ;"),
        Some(EmulatedStatement::Flush)
    );
    assert_eq!(
        read("RESET /* all */ QUERY CACHE"),
        Some(EmulatedStatement::Reset)
    );
    let shown = |what: &str, pattern: Option<&str>, limit| {
        Some(EmulatedStatement::ShowRemora(ShowRemora {
            what: what.to_owned(),
            pattern: pattern.map(Pattern::new),
            limit,
            is_complete: true,
        }))
    };
    assert_eq!(read("SHOW REMORA entries"), shown("ENTRIES", None, None));
    assert_eq!(
        read("SHOW REMORA DIGESTS LIKE 'SELECT%' LIMIT 5"),
        shown("DIGESTS", Some("SELECT%"), Some(5))
    );
    assert_eq!(read("SHOW REMORA"), shown("", None, None));
    for text in ["SHOW REMORA ENTRIES WHERE digest = 'a'", "SHOW REMORA 'a'"] {
        let Some(EmulatedStatement::ShowRemora(show)) = read(text) else {
            panic!("{text}");
        };
        assert!(!show.is_complete, "{text}");
    }
    assert_eq!(
        read("explain remora SELECT a FROM t"),
        Some(EmulatedStatement::ExplainRemora {
            analyze: false,
            statement: b"SELECT a FROM t"
        })
    );
    assert_eq!(
        read("EXPLAIN REMORA SELECT /*! STRAIGHT_JOIN */ a FROM t"),
        Some(EmulatedStatement::ExplainRemora {
            analyze: false,
            statement: b"SELECT /*! STRAIGHT_JOIN */ a FROM t"
        })
    );
    assert_eq!(
        read("EXPLAIN REMORA ANALYZE (SELECT 1)"),
        Some(EmulatedStatement::ExplainRemora {
            analyze: true,
            statement: b"(SELECT 1)"
        })
    );
}

#[test]
fn a_pattern_matches_as_like_does() {
    for (pattern, name, expected) in [
        ("%", "", true),
        ("", "", true),
        ("", "a", false),
        ("Q%", "qcache", true),
        ("%che", "qcacheche", true),
        ("a%b%c", "axxbyyc", true),
        ("a%b%c", "axxbyy", false),
        ("a_c", "abc", true),
        ("a\\_c", "abc", false),
        ("a\\_c", "a_c", true),
        ("%\\%", "5%", true),
        ("_", "", false),
        ("\\", "\\", true),
    ] {
        assert_eq!(
            Pattern::new(pattern).matches(name),
            expected,
            "{pattern} {name}"
        );
    }
}

/// Pieces of which statements like these are made.
const PIECES: &[&str] = &[
    "SHOW",
    "GLOBAL",
    "STATUS",
    "VARIABLES",
    "LIKE",
    "'Qcache%'",
    "WHERE",
    "Variable_name",
    "=",
    "IN",
    "(",
    ")",
    ",",
    ";",
    "SELECT",
    "@@",
    "query_cache_size",
    "global.",
    "AS",
    "FROM",
    "t",
    "INTO",
    "@a",
    "SET",
    "64",
    "*",
    "-",
    "RESET",
    "QUERY",
    "CACHE",
    "FLUSH",
    "EXPLAIN",
    "REMORA",
    "ANALYZE",
    "ENTRIES",
    "LIMIT",
    "/*",
    "*/",
    "/*!50001",
    "-- ",
    "\n",
    "'",
    "\"",
    "`",
    "\\",
    "UNION",
    "DROP",
];

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = recognise(&bytes, Dialect::default());
    }

    #[test]
    fn what_is_taken_is_one_statement_that_reads_and_writes_no_table(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
        spaces in any::<bool>(),
    ) {
        let text = pieces.join(if spaces { " " } else { "" });
        let Some(found) = recognise(text.as_bytes(), Dialect::default()) else {
            return Ok(());
        };
        let statement = crate::analyse(text.as_bytes(), Dialect::default());
        prop_assert!(statement.cacheable.is_err(), "{text}");
        // Nothing but the last token may be a semicolon.
        let mut lexer = crate::Lexer::new(text.as_bytes(), Dialect::default());
        let mut ended = false;
        loop {
            match lexer.next_token().kind {
                crate::TokenKind::End => break,
                crate::TokenKind::Semicolon => ended = true,
                kind => {
                    prop_assert!(!ended, "{text}");
                    prop_assert!(kind != crate::TokenKind::Invalid, "{text}");
                }
            }
        }
        if let EmulatedStatement::Select(list) = found {
            let words: Vec<_> = text.split_whitespace().collect();
            prop_assert!(!words.contains(&"FROM") || text.contains("AS FROM") || text.contains("ASFROM"), "{text}");
            prop_assert!(!words.contains(&"INTO") || text.contains("AS INTO") || text.contains("ASINTO"), "{text}");
            for one in list.uses {
                prop_assert!(text[one.start..one.end].starts_with("@@"), "{text}");
            }
        }
    }
}
