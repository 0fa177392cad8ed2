//! Which statements can be cached, what they read, and why others can't.
//!
//! Servers: none
//! Load: waits

mod common;

use common::{default, tables_read};
use remora_sql::{
    Dialect, EverythingReason, FUNCTIONS, Refusal, SessionEffect, StatementKind, Transaction,
    Writes, analyse, analyse_prepared, normalise,
};

#[track_caller]
fn reads(text: &str, expected: &[&str]) {
    assert_eq!(tables_read(text), expected, "{text}");
    let statement = default(text);
    assert_eq!(statement.kind, StatementKind::Select, "{text}");
    assert_eq!(statement.writes, Writes::Nothing, "{text}");
    assert_eq!(statement.session, SessionEffect::None, "{text}");
    assert_eq!(statement.transaction, Transaction::None, "{text}");
    assert!(!statement.diagnostics, "{text}");
}

#[track_caller]
fn refused(text: &str, expected: Refusal) {
    assert_eq!(default(text).cacheable, Err(expected), "{text}");
}

#[test]
fn simple_selects_read_their_tables() {
    reads("SELECT c FROM sbtest1 WHERE id=5", &["sbtest1"]);
    reads("select * from `we``ird`.`a b` limit 3", &["we`ird.a b"]);
    reads("  /* trace 7 */ SELECT 1 FROM t -- end", &["t"]);
    reads("SELECT 1 FROM t # end", &["t"]);
    reads("SELECT 1 FROM t;", &["t"]);
    reads(
        "SELECT a b, c AS 'd', e \"f\" FROM t AS u WHERE u.a <=> NULL",
        &["t"],
    );
    reads("SELECT t.`select`, t.from FROM t", &["t"]);
    reads("SELECT * FROM 2fa", &["2fa"]);
    reads(
        "SELECT SQL_CACHE DISTINCT STRAIGHT_JOIN SQL_SMALL_RESULT a FROM t",
        &["t"],
    );
    reads(
        "SELECT rank, date, year, status, offset, value, name FROM t",
        &["t"],
    );
    reads(
        "SELECT DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00' FROM t",
        &["t"],
    );
    reads(
        "SELECT _utf8mb4'x' COLLATE utf8mb4_bin, N'y', 'a' 'b', x'4D', 0x4D, b'1' FROM t",
        &["t"],
    );
    reads("SELECT -1, +.5, 1.5e-3, 1e10, ~a, !b, a--1 FROM t", &["t"]);
}

#[test]
fn every_kind_of_join_is_followed() {
    reads(
        "SELECT * FROM a, b.c JOIN d ON a.x = d.x",
        &["a", "b.c", "d"],
    );
    reads(
        "SELECT * FROM a LEFT OUTER JOIN b USING (x, y) RIGHT JOIN c ON 1",
        &["a", "b", "c"],
    );
    reads(
        "SELECT * FROM a NATURAL LEFT JOIN b CROSS JOIN c INNER JOIN d",
        &["a", "b", "c", "d"],
    );
    reads("SELECT * FROM a STRAIGHT_JOIN b ON a.x=b.x", &["a", "b"]);
    reads(
        "SELECT * FROM (a, (b JOIN c)) LEFT JOIN (d JOIN e ON 1) ON 1",
        &["a", "b", "c", "d", "e"],
    );
    reads("SELECT * FROM a JOIN b JOIN c ON 1 ON 2", &["a", "b", "c"]);
    reads(
        "SELECT * FROM a x USE INDEX (i), b IGNORE KEY FOR ORDER BY (PRIMARY), c",
        &["a", "b", "c"],
    );
    reads(
        "SELECT * FROM a PARTITION (p0, p1) AS x FORCE INDEX (i) JOIN b",
        &["a", "b"],
    );
    reads(
        "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.x = a.x) l",
        &["a", "b"],
    );
}

#[test]
fn a_table_is_found_wherever_a_query_can_stand() {
    for text in [
        "SELECT (SELECT x FROM b) FROM a",
        "SELECT * FROM a WHERE x IN (SELECT x FROM b)",
        "SELECT * FROM a WHERE (x, y) NOT IN (SELECT x, y FROM b)",
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b)",
        "SELECT * FROM a WHERE x = ANY (SELECT x FROM b)",
        "SELECT * FROM a WHERE x <> ALL (SELECT x FROM b)",
        "SELECT * FROM a WHERE x BETWEEN (SELECT 1 FROM b) AND 3",
        "SELECT * FROM a WHERE x LIKE (SELECT y FROM b) ESCAPE '!'",
        "SELECT CASE x WHEN 1 THEN (SELECT 1 FROM b) END FROM a",
        "SELECT IF(x, (SELECT 1 FROM b), 2) FROM a",
        "SELECT COUNT(DISTINCT x, (SELECT 1 FROM b)) FROM a",
        "SELECT DATE_ADD(x, INTERVAL (SELECT 1 FROM b) DAY) FROM a",
        "SELECT GROUP_CONCAT(x ORDER BY (SELECT 1 FROM b)) FROM a",
        "SELECT SUM(x) OVER (PARTITION BY (SELECT 1 FROM b)) FROM a",
        "SELECT CAST((SELECT 1 FROM b) AS SIGNED) FROM a",
        "SELECT x FROM a GROUP BY (SELECT 1 FROM b) WITH ROLLUP",
        "SELECT x FROM a HAVING (SELECT 1 FROM b)",
        "SELECT x FROM a ORDER BY (SELECT 1 FROM b) DESC",
        "SELECT x FROM a JOIN (SELECT * FROM b) d ON 1",
        "SELECT x FROM a JOIN ((SELECT * FROM b) UNION (SELECT 1)) d ON 1",
        "SELECT x FROM a WHERE ((SELECT 1 FROM b) + 1)",
        "SELECT x FROM a WHERE ((SELECT 1 FROM b) UNION (SELECT 2)) = 1",
        "SELECT x FROM a WINDOW w AS (ORDER BY (SELECT 1 FROM b))",
        "SELECT x FROM a UNION SELECT x FROM b",
        "(SELECT x FROM a) UNION ALL (SELECT x FROM b ORDER BY 1 LIMIT 2) LIMIT 3",
        "SELECT x FROM a EXCEPT SELECT x FROM b",
        "(SELECT x FROM a INTERSECT SELECT x FROM b)",
        "SELECT x FROM a WHERE ROW(1, (SELECT 1 FROM b)) = ROW(1, 2)",
        "SELECT TRIM(BOTH (SELECT 1 FROM b) FROM x) FROM a",
        "WITH c AS (SELECT * FROM a) SELECT * FROM c, b",
        "SELECT x FROM a, b WHERE MATCH (x) AGAINST ('y' IN BOOLEAN MODE)",
    ] {
        let mut found = tables_read(text);
        found.sort();
        assert_eq!(found, ["a", "b"], "{text}");
    }
}

#[test]
fn names_of_common_table_expressions_count_where_they_are_visible_only() {
    reads(
        "WITH c AS (SELECT * FROM t) SELECT * FROM c x JOIN c y",
        &["t"],
    );
    reads("WITH c AS (SELECT * FROM c) SELECT * FROM c", &["c"]);
    reads(
        "WITH c AS (SELECT * FROM t) SELECT * FROM s.c",
        &["t", "s.c"],
    );
    reads(
        "WITH c AS (SELECT * FROM d), e AS (SELECT * FROM c) SELECT * FROM e",
        &["d"],
    );
    reads(
        "(WITH c AS (SELECT 1 FROM t) SELECT * FROM c) UNION SELECT * FROM c",
        &["t", "c"],
    );
    reads(
        "SELECT * FROM t WHERE x IN (WITH c AS (SELECT 1) SELECT * FROM c) AND (SELECT 1 FROM c)",
        &["t", "c"],
    );
    reads(
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c, t",
        &["t"],
    );
    reads(
        "WITH c AS (SELECT * FROM t) SELECT * FROM (WITH d AS (SELECT * FROM u) SELECT * FROM c, d) x",
        &["t", "u"],
    );
}

/// Where servers don't agree, or the answer depends on how they compare names.
#[test]
fn what_may_be_a_common_table_expression_or_a_table_is_not_cached() {
    for text in [
        // Another case may be another name.
        "WITH c AS (SELECT 1 FROM t) SELECT * FROM C",
        "WITH c AS (SELECT 1 FROM t) SELECT * FROM \u{e9}",
        // MariaDB doesn't see expressions of an outer WITH within those of an inner one.
        "WITH a AS (SELECT 10 AS x) SELECT * FROM t, (WITH b AS (SELECT x FROM a) SELECT x FROM b) d",
        "WITH a AS (SELECT 1) SELECT * FROM t WHERE x IN (WITH a AS (SELECT * FROM a) SELECT x FROM a)",
        "WITH a AS (SELECT 1), b AS (WITH c AS (SELECT 1 FROM a) SELECT * FROM c) SELECT * FROM b",
        // Below RECURSIVE it sees those that come later.
        "WITH RECURSIVE a AS (SELECT * FROM c), c AS (SELECT 5 AS y) SELECT * FROM a",
        "WITH RECURSIVE a AS (SELECT * FROM C), c AS (SELECT 5 AS y) SELECT * FROM a",
        // It reads an expression that is used twice again where it is used the second time.
        "WITH c AS (SELECT * FROM d), d AS (SELECT * FROM c) SELECT * FROM d",
        "WITH b AS (SELECT * FROM C), C AS (SELECT 5 AS y), d AS (SELECT * FROM b UNION ALL SELECT * FROM b) SELECT * FROM d",
        // MySQL reads an expression where it is used.
        "WITH c AS (SELECT * FROM a) SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM c) d",
    ] {
        refused(text, Refusal::TableName);
    }
    // What has a schema is a table.
    reads(
        "WITH c AS (SELECT 1 FROM t) SELECT * FROM s.C",
        &["t", "s.C"],
    );
}

#[test]
fn a_comment_that_every_server_executes_is_part_of_the_statement() {
    reads("SELECT /*! STRAIGHT_JOIN */ a FROM t, u", &["t", "u"]);
    reads("SELECT a FROM t /*!40001 JOIN u USING (b) */", &["t", "u"]);
    reads("SELECT a FROM t /*!50600 WHERE s = '*/ b' */;", &["t"]);
    reads("/*! SELECT a */ FROM t", &["t"]);
    reads("SELECT a FROM t /*!00000 , u */", &["t", "u"]);
    refused("SELECT a /*! INTO @x */ FROM t", Refusal::Into);
    refused("SELECT a FROM t /*! ; */", Refusal::MultipleStatements);
    refused("SELECT a, /*! RAND() */ FROM t", Refusal::RandomFunction);
    refused("SELECT /*! SQL_NO_CACHE */ a FROM t", Refusal::NoCache);
    refused("SELECT a FROM t /*! FOR UPDATE */", Refusal::LockingRead);
    refused(
        "SELECT a FROM t /*! ; DELETE FROM t */",
        Refusal::MultipleStatements,
    );
    refused("SELECT a FROM t /*! WHERE b", Refusal::Syntax);
    let writes = |text: &str| default(text).writes != Writes::Nothing;
    assert!(writes("SELECT a FROM t /*! WHERE f(b) */"));
    assert!(writes("SELECT a FROM t /*!50700 WHERE f(b) */"));
}

#[test]
fn a_comment_that_servers_read_differently_is_refused() {
    for comment in [
        "/*!50601 , b */",
        "/*!50700 , b */",
        "/*!050600 , b */",
        "/*!100100 , b */",
        "/*!5060 , b */",
        "/*M! , b */",
        "/*M!100100 , b */",
        "/*! , /* b */ c */",
        "/*! /*+ x */ , b */",
        "/*! , b # x\n */",
        "/*! , b -- x\n */",
    ] {
        let text = format!("SELECT a {comment} FROM t");
        refused(&text, Refusal::Syntax);
        assert_ne!(default(&text).writes, Writes::Nothing, "{text}");
    }
}

#[test]
fn what_depends_on_more_than_tables_and_settings_is_refused() {
    refused("SELECT NOW() FROM t", Refusal::ClockFunction);
    refused("SELECT CURRENT_TIMESTAMP FROM t", Refusal::ClockFunction);
    refused("SELECT UNIX_TIMESTAMP() FROM t", Refusal::ClockFunction);
    reads("SELECT UNIX_TIMESTAMP(x) FROM t", &["t"]);
    refused("SELECT * FROM t WHERE d > UTC_DATE", Refusal::ClockFunction);
    refused("SELECT TIMEDIFF(a, b) FROM t", Refusal::TimeOfDay);
    refused("SELECT CAST(a AS TIME) FROM t", Refusal::TimeOfDay);
    refused("SELECT TIME '10:00' FROM t", Refusal::TimeOfDay);
    refused("SELECT * FROM t ORDER BY RAND()", Refusal::RandomFunction);
    refused("SELECT UUID() FROM t", Refusal::RandomFunction);
    refused("SELECT USER() FROM t", Refusal::SessionFunction);
    refused("SELECT CURRENT_USER FROM t", Refusal::SessionFunction);
    refused("SELECT DATABASE() FROM t", Refusal::SessionFunction);
    refused("SELECT CURRENT_ROLE FROM t", Refusal::SessionFunction);
    refused(
        "SELECT ExtractValue(a, '//b[$@i]') FROM t",
        Refusal::SessionFunction,
    );
    reads("SELECT `current_role`, t.current_role FROM t", &["t"]);
    refused("SELECT a größe FROM t", Refusal::NonAsciiWord);
    reads("SELECT a `größe` FROM t", &["t"]);
    refused(
        "SELECT LAST_INSERT_ID() FROM t",
        Refusal::PreviousStatementFunction,
    );
    refused("SELECT SLEEP(1) FROM t", Refusal::DelayFunction);
    refused("SELECT LOAD_FILE('x') FROM t", Refusal::FileFunction);
    refused(
        "SELECT CONVERT_TZ(a, 'SYSTEM', 'UTC') FROM t",
        Refusal::ServerStateFunction,
    );
    refused("SELECT DEFAULT(a) FROM t", Refusal::ColumnValueFunction);
    refused("SELECT VALUES(a) FROM t", Refusal::ColumnValueFunction);
    refused("SELECT @a FROM t", Refusal::UserVariable);
    refused("SELECT @a := a + 1 FROM t", Refusal::UserVariable);
    for variable in [
        "@@version",
        "@@global.sql_mode",
        "@@persist.sql_mode",
        "@@other.sql_mode",
        "@@session.other.sql_mode",
        "@@`session`.sql_mode",
        "@@session",
        "@@autocommit",
        "@@session.autocommit",
        "@@query_cache_type",
        "@@last_insert_id",
        "@@wait_timeout",
    ] {
        let text = format!("SELECT {variable}");
        assert_eq!(
            default(&text).cacheable,
            Err(Refusal::SystemVariable),
            "{text}"
        );
    }
    refused("SELECT * FROM t WHERE id = ?", Refusal::Placeholder);
}

#[test]
fn session_settings_in_the_key_can_be_read() {
    for text in [
        "SELECT @@sql_mode",
        "SELECT @@SESSION.sql_mode",
        "SELECT @@Local.`Time_Zone` AS zone, 1",
        "SELECT @@session.transaction_isolation, @@collation_connection FROM DUAL",
    ] {
        let select = default(text).cacheable.unwrap();
        assert!(select.tables.is_empty(), "{text}");
        // Its row says nothing of a transaction's snapshot.
        assert!(!select.rows_come_from_tables, "{text}");
    }
    let select = default("SELECT @@sql_mode, id FROM t").cacheable.unwrap();
    assert!(select.rows_come_from_tables);
}

#[test]
fn what_reads_no_table_is_cached_if_its_value_is_certain() {
    for text in [
        "SELECT 1",
        "SELECT 1 FROM DUAL",
        "SELECT UPPER('a'), @@sql_mode",
        "SELECT 1 UNION SELECT 2",
        "SELECT * FROM (SELECT 1) AS x",
    ] {
        let select = default(text).cacheable.unwrap();
        assert!(select.tables.is_empty(), "{text}");
        assert!(!select.rows_come_from_tables, "{text}");
    }
    refused("SELECT NOW()", Refusal::ClockFunction);
    refused("SELECT CONNECTION_ID()", Refusal::SessionFunction);
    refused("SELECT my_function()", Refusal::UnknownFunction);
    refused("SELECT @a", Refusal::UserVariable);
    // With a name taken wrongly for an expression's, nothing would ever drop the result.
    refused("WITH x AS (SELECT 1) SELECT * FROM x", Refusal::TableName);
    // Servers count the rows of such a statement in their own ways.
    refused("SELECT SQL_CALC_FOUND_ROWS 1", Refusal::CalcFoundRows);
    refused(
        "SELECT SQL_CALC_FOUND_ROWS @@sql_mode",
        Refusal::CalcFoundRows,
    );
}

#[test]
fn statements_of_other_forms_are_refused() {
    refused("SELECT * FROM mysql.user", Refusal::SystemSchema);
    refused(
        "SELECT * FROM t, INFORMATION_SCHEMA.TABLES",
        Refusal::SystemSchema,
    );
    refused(
        "SELECT * FROM t WHERE a IN (SELECT 1 FROM `sys`.x)",
        Refusal::SystemSchema,
    );
    refused("SELECT * FROM t FOR UPDATE", Refusal::LockingRead);
    refused(
        "SELECT * FROM t FOR SHARE OF t SKIP LOCKED",
        Refusal::LockingRead,
    );
    refused("SELECT * FROM t LOCK IN SHARE MODE", Refusal::LockingRead);
    refused(
        "SELECT * FROM (SELECT * FROM t FOR UPDATE) d",
        Refusal::LockingRead,
    );
    refused("SELECT a INTO @x FROM t", Refusal::Into);
    refused("SELECT a FROM t INTO OUTFILE '/x'", Refusal::Into);
    refused("SELECT a FROM t PROCEDURE ANALYSE()", Refusal::Procedure);
    refused(
        "SELECT SQL_CALC_FOUND_ROWS a FROM t WHERE a IN (SELECT b FROM u)",
        Refusal::CalcFoundRows,
    );
    refused("SELECT SQL_NO_CACHE a FROM t", Refusal::NoCache);
    refused("SELECT * FROM t FOR SYSTEM_TIME ALL", Refusal::SystemTime);
    refused(
        "SELECT a FROM t; SELECT b FROM t",
        Refusal::MultipleStatements,
    );
    refused(
        "SELECT a FROM t; /* an empty one follows */",
        Refusal::MultipleStatements,
    );
    refused(
        "SELECT /*+ SET_VAR(sql_mode = ANSI) */ a FROM t",
        Refusal::OptimizerHint,
    );
    reads("SELECT /*+ NO_INDEX_MERGE(t) */ a FROM t", &["t"]);
    refused("SELECT * FROM größe", Refusal::TableName);
    refused("SELECT * FROM `#mysql50#t`", Refusal::TableName);
    for text in [
        "SELECT",
        "SELECT a FROM",
        "SELECT a FROM t WHERE",
        "SELECT a FROM t WHERE (a",
        "SELECT a FROM t)",
        "SELECT a FROM a.b.c",
        "SELECT a FROM .t",
        "SELECT a FROM t LIMIT 1 ROWS EXAMINED 3",
        "SELECT a FROM t TABLESAMPLE (3)",
        "SELECT a FROM JSON_TABLE('[]', '$' COLUMNS (x INT PATH '$')) j",
        "SELECT a FROM t UNION VALUES (1)",
        "SELECT a FROM t WHERE a IN (TABLE u)",
        "SELECT a FROM { OJ t LEFT JOIN u ON 1 }",
        "SELECT a FROM t FULL JOIN u ON b = c",
        "SELECT 'a",
        "SELECT a FROM t /* never closed",
        "SELECT a FROM t /*!99999 JOIN u */",
        "SELECT a FROM t /*M! JOIN u */",
        "SELECT a FROM t\0, u",
    ] {
        refused(text, Refusal::Syntax);
    }
    for text in [
        "VALUES (1)",
        "TABLE t",
        "SHOW TABLES",
        "INSERT INTO t VALUES (1)",
        "",
    ] {
        assert!(default(text).cacheable.is_err(), "{text}");
    }
}

#[test]
fn the_session_decides_how_quotes_and_backslashes_are_read() {
    let ansi = Dialect {
        ansi_quotes: true,
        ..Dialect::default()
    };
    let plain = Dialect {
        no_backslash_escapes: true,
        ..Dialect::default()
    };
    let text = br#"SELECT * FROM "t" WHERE a = 'x'"#;
    let read = analyse(text, ansi)
        .cacheable
        .map(|select| common::names(&select.tables));
    assert_eq!(read, Ok(vec!["t".to_owned()]));
    assert_eq!(
        analyse(text, Dialect::default()).cacheable,
        Err(Refusal::Syntax)
    );

    let text = br"SELECT '\' FROM t -- ' FROM u";
    let read = |dialect| {
        analyse(text, dialect)
            .cacheable
            .map(|s| common::names(&s.tables))
    };
    assert_eq!(read(plain), Ok(vec!["t".to_owned()]));
    assert_eq!(read(Dialect::default()), Ok(vec!["u".to_owned()]));
}

#[test]
fn a_space_before_the_parenthesis_can_mean_a_stored_function() {
    let ignoring = Dialect {
        ignore_space: true,
        ..Dialect::default()
    };
    refused("SELECT COUNT (a) FROM t", Refusal::UnknownFunction);
    refused("SELECT COUNT (*) FROM t", Refusal::Syntax);
    assert!(matches!(
        default("SELECT COUNT (*) FROM t").writes,
        Writes::Everything(_)
    ));
    refused("SELECT COUNT/* */(a) FROM t", Refusal::UnknownFunction);
    assert!(
        analyse(b"SELECT COUNT (*) FROM t", ignoring)
            .cacheable
            .is_ok()
    );
    assert!(
        analyse(b"SELECT COUNT/* */(a) FROM t", ignoring)
            .cacheable
            .is_err()
    );
    reads("SELECT CONCAT (a, 'x'), IF (a, 1, 2) FROM t", &["t"]);
}

#[test]
fn a_name_that_an_old_server_leaves_to_stored_functions_is_no_functions() {
    let newer = Dialect {
        natives: remora_sql::Natives::MySql57,
        ..Dialect::default()
    };
    for call in ["JSON_EXTRACT(a, '$.b')", "json_valid(a)"] {
        let text = format!("SELECT {call} FROM t");
        let old = default(&text);
        assert_eq!(old.cacheable, Err(Refusal::UnknownFunction), "{text}");
        assert!(matches!(old.writes, Writes::Everything(_)), "{text}");
        assert!(analyse(text.as_bytes(), newer).cacheable.is_ok(), "{text}");
        let text = format!("UPDATE t SET a = {call}");
        assert!(
            matches!(default(&text).writes, Writes::Everything(_)),
            "{text}"
        );
        let writes = analyse(text.as_bytes(), newer).writes;
        assert!(matches!(writes, Writes::Tables(_)), "{text}");
    }
}

#[test]
fn every_deterministic_function_can_be_cached_in_its_own_form() {
    let forms = [
        "(a, b)",
        "(a)",
        "()",
        "(a AS CHAR(3) CHARACTER SET latin1)",
        "(a USING utf8mb4)",
        "(YEAR FROM a)",
        "(a IN b)",
        "(a, INTERVAL 1 DAY)",
        "(DAY, a, b)",
        "(DATE, 'USA')",
        "(a) OVER (ORDER BY b)",
        "() OVER w",
    ];
    let newer = Dialect {
        natives: remora_sql::Natives::MySql57,
        ..Dialect::default()
    };
    for function in FUNCTIONS
        .iter()
        .filter(|function| function.class.is_deterministic())
    {
        let can = forms.iter().any(|form| {
            let text = format!("SELECT {}{form} FROM t", function.name);
            analyse(text.as_bytes(), newer).cacheable.is_ok()
        });
        assert!(can, "{}", function.name);
    }
    reads(
        "SELECT TRIM(x), TRIM(TRAILING FROM a), SUBSTRING(a FROM 1 FOR 2), CHAR(65 USING utf8mb4) FROM t",
        &["t"],
    );
    reads(
        "SELECT CONVERT(a, UNSIGNED INTEGER), CAST(a AS DOUBLE PRECISION), INTERVAL(1, 2, 3) FROM t",
        &["t"],
    );
    reads(
        "SELECT a + INTERVAL 1 DAY, INTERVAL (1 + 1) HOUR + a, a MOD 2, MOD(a, 2) FROM t",
        &["t"],
    );
    reads(
        "SELECT a NOT LIKE 'x' ESCAPE '!', a RLIKE 'b', a SOUNDS LIKE b, a IS NOT TRUE FROM t",
        &["t"],
    );
    reads(
        "SELECT a || b && c XOR d, NOT a = b, a IS NULL, BINARY a = 'x', c -> '$.x' FROM t",
        &["t"],
    );
}

#[test]
fn nesting_and_the_number_of_tables_are_bounded() {
    let deep = |count: usize, open: &str, close: &str| {
        format!(
            "SELECT {}1{} FROM t",
            open.repeat(count),
            close.repeat(count)
        )
    };
    reads(&deep(20, "(", ")"), &["t"]);
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("NOT ", ""),
        ("ABS(", ")"),
        ("(SELECT ", ")"),
    ] {
        refused(&deep(100_000, open, close), Refusal::NestingTooDeep);
    }
    refused(
        &format!("{} 1", "EXPLAIN ".repeat(100_000)),
        Refusal::NotSelect,
    );
    let parens = "(".repeat(100_000);
    assert!(default(&format!("{parens}SELECT 1")).cacheable.is_err());
    assert!(
        default(&format!("SELECT 1 FROM {parens}t"))
            .cacheable
            .is_err()
    );

    let many: Vec<String> = (0..65).map(|number| format!("t{number}")).collect();
    reads(&format!("SELECT 1 FROM {}", many[..64].join(",")), &{
        many[..64].iter().map(String::as_str).collect::<Vec<_>>()
    });
    refused(
        &format!("SELECT 1 FROM {}", many.join(",")),
        Refusal::TooManyTables,
    );
}

/// Each of these would take many seconds if every part were compared with all parts before it.
#[test]
fn the_time_for_a_long_text_grows_with_its_length() {
    let names: Vec<String> = (0..60_000).map(|number| format!("n{number:x}")).collect();
    let (list, stars) = (names.join(","), vec!["t.*"; 30_000].join(","));
    let select = default(&format!("SELECT {list} FROM t")).cacheable.unwrap();
    assert!(select.reads.names.contains("NEA5F"));
    assert!(!select.reads.names.contains("nea60"));
    let joins = vec!["t"; 60_000].join(",");
    refused(
        &format!("SELECT {stars} FROM {joins}"),
        Refusal::TooManyTables,
    );
    let expressions: Vec<_> = names[..6_000]
        .iter()
        .map(|name| format!("{name} AS (SELECT 1)"))
        .collect();
    let with = format!("WITH {} SELECT 1 FROM t", expressions.join(","));
    refused(&with, Refusal::TooManyTables);
    let dropped = default(&format!("DROP TABLE {list}"));
    assert_eq!(
        dropped.writes,
        Writes::Everything(EverythingReason::TooManyTables)
    );
    let signs = format!("SELECT {}a FROM t", "+".repeat(256 << 10));
    let mut normal = Vec::new();
    normalise(signs.as_bytes(), Dialect::default(), &mut normal);
    assert!(normal.starts_with(b"SELECT"));
}

#[test]
fn every_reason_has_a_label_and_a_sentence() {
    let mut labels = std::collections::HashSet::new();
    for refusal in Refusal::ALL {
        assert!(labels.insert(refusal.as_str()), "{refusal:?} twice");
        assert!(refusal.describe().ends_with('.'), "{refusal:?}");
        assert!(
            refusal
                .as_str()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        );
    }
}

#[test]
fn a_prepared_statement_may_have_placeholders_wherever_a_value_stands() {
    for text in [
        "SELECT c FROM t WHERE id = ?",
        "SELECT ?, c + ? FROM t WHERE a BETWEEN ? AND ? OR b IN (?, ?) LIKE ?",
        "SELECT c FROM t ORDER BY c LIMIT ? OFFSET ?",
        "SELECT c FROM t LIMIT ?, ?",
        "SELECT COALESCE(c, ?) FROM t WHERE d > ? - INTERVAL ? DAY",
        "SELECT * FROM (SELECT c FROM t WHERE id = ?) AS u WHERE c = ?",
    ] {
        let prepared = analyse_prepared(text.as_bytes(), Dialect::default());
        let tables = prepared.cacheable.map(|select| select.tables.len());
        assert_eq!(tables, Ok(1), "{text}");
        refused(text, Refusal::Placeholder);
    }
}

#[test]
fn placeholders_excuse_nothing_else_in_a_prepared_statement() {
    for (text, expected) in [
        ("SELECT NOW() FROM t WHERE id = ?", Refusal::ClockFunction),
        (
            "SELECT c FROM t WHERE id = ? FOR UPDATE",
            Refusal::LockingRead,
        ),
        ("SELECT RAND(?)", Refusal::RandomFunction),
        ("SELECT BIN(c) FROM t", Refusal::PreparedColumns),
        ("SELECT CONV(?, 10, 2) FROM t", Refusal::PreparedColumns),
        ("SELECT c FROM ?", Refusal::Syntax),
    ] {
        let prepared = analyse_prepared(text.as_bytes(), Dialect::default());
        assert_eq!(prepared.cacheable, Err(expected), "{text}");
    }
}

/// MySQL 8.0 doesn't know the hint: to it this is a column with an alias.
#[test]
fn a_hint_that_may_be_a_columns_name_reads_every_column() {
    let reads_all = |text: &str| default(text).cacheable.unwrap().reads.all_columns;
    assert!(reads_all("SELECT SQL_CACHE a FROM t WHERE id = 1"));
    assert!(!reads_all("SELECT a FROM t WHERE id = 1"));
}

#[test]
fn a_filter_of_conditions_alone_is_told() {
    let only = |text: &str| default(text).cacheable.unwrap().filters_by_conditions_only;
    for text in [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE a = 1 AND (b = 'x' OR b = 'y') AND c IN (1, 2) LIMIT 1",
        "SELECT a FROM t WHERE a = 1 LIMIT 0, 5",
        "SELECT a FROM t WHERE a = 1 LIMIT 5 OFFSET 0",
    ] {
        assert!(only(text), "{text}");
    }
    for text in [
        "SELECT a FROM t WHERE a = 1 AND 1 = 0",
        "SELECT a FROM t WHERE 1 = 0 AND a = 1",
        "SELECT a FROM t WHERE NOT (a = 1)",
        "SELECT a FROM t WHERE (a = 1) = 0",
        "SELECT a FROM t WHERE a = 1 OR b = 2",
        "SELECT a FROM t WHERE a = 1 AND (b = 2 OR c = 3)",
        "SELECT a FROM t WHERE a = 1 AND b LIKE 'x'",
        "SELECT a FROM t WHERE a IN (1, NULL)",
        "SELECT a FROM t LIMIT 0",
        "SELECT a FROM t /*! LIMIT 0 */",
        "SELECT a FROM t LIMIT 5, 0",
        "SELECT a FROM t LIMIT 00 OFFSET 5",
        "SELECT a FROM t JOIN u ON t.a = u.a AND t.b < u.b WHERE a = 1",
    ] {
        assert!(!only(text), "{text}");
    }
}
