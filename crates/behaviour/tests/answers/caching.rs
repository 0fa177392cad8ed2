//! What is answered from memory, with which bytes, and what is not, for which reason.

use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{Kind, numbers};

use remora_behaviour::front::{Front, OTHER_PASSWORD, OTHER_USER, PATIENCE};

/// Creates a table `t` with three rows.
const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];

/// Every type whose values can be cached, at its limits, as NULL and as something usual. Where a
/// server lacks a type, another is taken.
fn types(kind: Kind) -> Vec<String> {
    let lacks: &[(&str, &str)] = match kind {
        Kind::MariaDb1011 | Kind::MariaDb114 => &[],
        Kind::MySql80 | Kind::MySql57 => &[("INET6", "CHAR(39)"), ("UUID", "CHAR(36)")],
        Kind::MySql56 => &[
            ("INET6", "CHAR(39)"),
            ("UUID", "CHAR(36)"),
            ("JSON", "TEXT"),
        ],
    };
    let replaced = |statement: &&str| {
        lacks
            .iter()
            .fold((*statement).to_owned(), |text, (type_name, other)| {
                text.replace(type_name, other)
            })
    };
    TYPES.iter().map(replaced).collect()
}

const TYPES: [&str; 4] = [
    "CREATE TABLE types (id INT AUTO_INCREMENT PRIMARY KEY, t1 TINYINT, t2 TINYINT UNSIGNED, b1 BOOL, s1 SMALLINT, m1 MEDIUMINT, \
     i1 INT UNSIGNED ZEROFILL, l1 BIGINT, l2 BIGINT UNSIGNED, d1 DECIMAL(65,30), d2 DECIMAL(5,2) ZEROFILL, f1 FLOAT, f2 DOUBLE, \
     bits BIT(64), da DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP(6) NULL, y YEAR, c CHAR(10), v VARCHAR(255) CHARACTER SET latin1, \
     bi BINARY(5), vb VARBINARY(255), tt TINYTEXT, te TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, \
     e ENUM('x','y',''), st SET('p','q','r'), j JSON, g GEOMETRY, po POINT, ine INET6, uu UUID)",
    "INSERT INTO types (id) VALUES (NULL)",
    "INSERT INTO types VALUES (NULL,-128,255,TRUE,-32768,-8388608,4294967295,-9223372036854775808,18446744073709551615,\
     -12345678901234567890123456789012345.123456789012345678901234567890,-0.01+1,-3.4e38,2.2250738585072014e-308,b'1011','1000-01-01',\
     '9999-12-31 23:59:59','2024-02-29 12:34:56.789012','2038-01-19 03:14:07.5',2155,'abc  ','caf\u{e9}',x'00ff00',x'00ff0a0d',\
     'tiny','text','medium','long',x'00',x'01',x'02',x'03','x','p,r','{\"a\": [1, 2, null]}',ST_GeomFromText('LINESTRING(0 0,1 1)'),\
     POINT(1.5,-2.5),'2001:db8::1','123e4567-e89b-12d3-a456-426614174000')",
    "INSERT INTO types (t1,c,v,vb,te,e,st,f1,f2) VALUES (0,'','','','','','',0,-0e0)",
];

/// A direct client, one whose answer is kept and one that is answered from memory get the same
/// bytes.
fn same_bytes_each_way(front: &Front, sql: &str) {
    let mut direct = front.direct();
    let expected = direct.query_bytes(sql).unwrap().to_vec();
    assert_ne!(
        expected.get(4),
        Some(&0xff),
        "{sql} fails: {}",
        String::from_utf8_lossy(&expected)
    );
    let mut guest = front.guest();
    guest.becomes("fill", sql, Some(&expected));
    guest.becomes_hit(sql, &expected);
    front.guest().becomes_hit(sql, &expected);
}

#[test]
fn a_repeated_select_is_a_hit_with_the_bytes_of_a_direct_answer() {
    let wide = (0..300)
        .map(|n| format!("c{n} INT DEFAULT {n}"))
        .collect::<Vec<_>>()
        .join(", ");
    let wide = format!("CREATE TABLE wide ({wide})");
    let kind = Kind::from_environment().unwrap();
    let (types, many) = (
        types(kind),
        format!(
            "INSERT INTO many SELECT seq, REPEAT(CHAR(64 + seq % 26), 200) FROM {}",
            numbers(2_000)
        ),
    );
    let mut setup = T.to_vec();
    setup.extend(types.iter().map(String::as_str));
    setup.extend([
        wide.as_str(),
        "INSERT INTO wide VALUES ()",
        "CREATE TABLE words (w VARCHAR(100) CHARACTER SET utf8mb4)",
        "INSERT INTO words VALUES ('na\u{ef}ve'), ('\u{1F9A5} sloth'), ('\u{4f60}\u{597d}'), ('')",
        "CREATE TABLE latin (w VARCHAR(100) CHARACTER SET latin1)",
        "INSERT INTO latin VALUES ('na\u{ef}ve'), ('\u{fc}ber')",
        "CREATE TABLE many (n INT PRIMARY KEY, filler VARCHAR(200))",
        many.as_str(),
        "CREATE TABLE long_text (t LONGTEXT)",
        "INSERT INTO long_text VALUES (REPEAT('abcdefgh', 9000))",
        "CREATE TABLE kept_in_memory (a INT) ENGINE=MEMORY",
        "INSERT INTO kept_in_memory VALUES (7)",
    ]);
    let front = Front::new("shapes", &setup);
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM types",
        "SELECT * FROM types ORDER BY id DESC LIMIT 1",
        "SELECT * FROM t WHERE a > 100",
        "SELECT COUNT(*), SUM(a), AVG(a), MIN(s), MAX(s) FROM t",
        "SELECT NULL, a FROM t WHERE s IS NULL",
        "SELECT '' AS blank, a AS `odd ``name` FROM t",
        "SELECT * FROM wide",
        "SELECT w, HEX(w), CHAR_LENGTH(w) FROM words",
        "SELECT * FROM latin",
        "SELECT n, filler FROM many WHERE n <= 1000 ORDER BY n",
        "SELECT * FROM long_text",
        "SELECT * FROM kept_in_memory",
        "WITH big AS (SELECT a FROM t WHERE a > 1) SELECT * FROM big UNION ALL SELECT a + 10 FROM t",
        "SELECT x.a, y.s, ROW_NUMBER() OVER (ORDER BY x.a) FROM t x LEFT JOIN t y ON y.a = x.a + 1",
        "select `a` , ( select max(a) from t ) as m from t where a in (1,2) -- the end",
        "/* first */ SELECT s FROM shapes.t WHERE s = 'one'",
        "(SELECT a FROM t) ORDER BY a DESC",
        "\n\t SELECT a FROM t",
    ] {
        let is_newer = sql.starts_with("WITH") || sql.contains("OVER (");
        if is_newer && !kind.has_common_table_expressions() {
            continue;
        }
        if sql.contains("kept_in_memory") && !kind.is_mysql() {
            continue;
        }
        same_bytes_each_way(&front, sql);
    }
}

#[test]
fn answers_in_another_character_set_are_kept_apart_and_right() {
    let setup = [
        "CREATE TABLE words (w VARCHAR(100) CHARACTER SET utf8mb4)",
        "INSERT INTO words VALUES ('na\u{ef}ve'), ('\u{fc}ber')",
    ];
    let front = Front::new("charsets", &setup);
    let mut answers = Vec::new();
    for charset in ["utf8mb4", "latin1", "utf8mb3", "binary", "cp1251"] {
        let (mut direct, mut guest) = (front.direct(), front.guest());
        let set = format!("SET NAMES {charset}");
        direct.query(&set).unwrap();
        guest.setup(&[&set]);
        let expected = direct.query_bytes("SELECT w FROM words").unwrap().to_vec();
        guest.becomes_hit("SELECT w FROM words", &expected);
        answers.push(expected);
    }
    assert!(
        answers
            .iter()
            .all(|answer| answers.iter().filter(|other| *other == answer).count() == 1)
    );
}

#[test]
fn a_row_longer_than_a_packet_is_relayed_right_and_not_kept() {
    let setup = [
        "CREATE TABLE large (id INT PRIMARY KEY, b LONGBLOB)",
        "INSERT INTO large VALUES (1, REPEAT('0123456789abcdef', 1048600)), (2, 'small')",
    ];
    let front = Front::new("large_rows", &setup);
    let sql = "SELECT * FROM large ORDER BY id";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    assert!(expected.len() > 16 << 20);
    let mut guest = front.guest();
    guest.becomes("answer_too_large", sql, Some(&expected));
    guest.becomes("answer_too_large", sql, Some(&expected));
    assert_eq!(front.hits(), 0);
    // The connection is in step after it.
    same_bytes_each_way(&front, "SELECT id FROM large WHERE id = 2");
}

#[test]
fn a_result_above_the_limit_is_not_kept_and_one_below_is() {
    let setup = [
        "CREATE TABLE t (s TEXT)",
        "INSERT INTO t VALUES (REPEAT('x', 3000))",
    ];
    let options = RemoraOptions::following().with("cache.result_bytes_max", "4KiB");
    let front = Front::with("limits", options, &setup);
    let mut guest = front.guest();
    let twice = "SELECT s, s FROM t";
    let expected = front.direct().query_bytes(twice).unwrap().to_vec();
    guest.becomes_hit(
        "SELECT s FROM t",
        front.direct().query_bytes("SELECT s FROM t").unwrap(),
    );
    for _ in 0..3 {
        let seen = guest.run(twice);
        assert_eq!(seen.bytes, expected);
        assert!(
            seen.outcome == "not_stored_too_large" || seen.outcome == "answer_too_large",
            "{}",
            seen.outcome
        );
    }
}

/// Reads that are never kept, and why.
const REASONS: &[(&str, &str)] = &[
    ("SELECT NOW(), a FROM t", "statement_clock_function"),
    (
        "SELECT a FROM t WHERE CURRENT_TIMESTAMP > 0",
        "statement_clock_function",
    ),
    (
        "SELECT a, UNIX_TIMESTAMP() FROM t",
        "statement_clock_function",
    ),
    (
        "SELECT a FROM t ORDER BY RAND()",
        "statement_random_function",
    ),
    ("SELECT UUID(), a FROM t", "statement_random_function"),
    ("SELECT @x, a FROM t", "statement_user_variable"),
    ("SELECT @x := a FROM t", "statement_user_variable"),
    ("SELECT @@version, a FROM t", "statement_system_variable"),
    ("SELECT a FROM t FOR UPDATE", "statement_locking_read"),
    (
        "SELECT a FROM t LOCK IN SHARE MODE",
        "statement_locking_read",
    ),
    (
        "SELECT SQL_CALC_FOUND_ROWS a FROM t UNION SELECT a FROM t LIMIT 1",
        "statement_calc_found_rows",
    ),
    ("SELECT SQL_NO_CACHE a FROM t", "statement_no_cache"),
    ("SELECT USER(), a FROM t", "statement_session_function"),
    (
        "SELECT CONNECTION_ID(), a FROM t",
        "statement_session_function",
    ),
    ("SELECT SLEEP(0), a FROM t", "statement_delay_function"),
    (
        "SELECT IS_FREE_LOCK('l'), a FROM t",
        "statement_lock_function",
    ),
    (
        "SELECT FOUND_ROWS(), a FROM t",
        "statement_previous_statement_function",
    ),
    (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'reasons'",
        "statement_system_schema",
    ),
    ("SELECT user FROM mysql.user", "statement_system_schema"),
    ("SHOW TABLES", "statement_not_select"),
    ("SELECT a FROM v", "table_view"),
    ("SELECT a FROM one", "table_view"),
    ("SELECT a FROM isam", "table_visible_late"),
    ("SELECT a FROM aria", "table_visible_late"),
    ("SELECT a FROM heap", "table_visible_late"),
    (
        "SELECT a FROM timed WHERE at > '10:00'",
        "table_time_columns",
    ),
    ("SELECT MAX(at) FROM timed", "table_time_columns"),
    (
        "SELECT * FROM (SELECT * FROM timed) x",
        "table_time_columns",
    ),
    ("SELECT hour FROM computed", "table_virtual_columns"),
    ("SELECT * FROM computed", "table_virtual_columns"),
    (
        "SELECT a FROM clocked WHERE moment > 5",
        "table_virtual_columns",
    ),
    ("SELECT a FROM versioned", "table_system_versioned"),
    ("SELECT CAST(s AS SIGNED) FROM t", "answer_has_warnings"),
    ("SELECT a / 0 FROM t", "answer_has_warnings"),
    (
        "SELECT a, MATCH (s) AGAINST ('one') FROM searched",
        "statement_full_text_score",
    ),
];

#[test]
fn what_depends_on_more_than_its_tables_passes_through_with_its_reason() {
    let kind = Kind::from_environment().unwrap();
    let mut setup = T.to_vec();
    setup.extend([
        "CREATE VIEW v AS SELECT a FROM t WHERE a < UNIX_TIMESTAMP()",
        "CREATE VIEW one AS SELECT 1 AS a",
        "CREATE TABLE isam (a INT) ENGINE=MyISAM",
        "CREATE TABLE timed (a INT, at TIME)",
        "CREATE TABLE searched (a INT PRIMARY KEY, s VARCHAR(20), FULLTEXT (s))",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1",
    ]);
    if !kind.is_mysql() {
        setup.extend([
            "CREATE SEQUENCE seq",
            "CREATE TABLE aria (a INT) ENGINE=Aria",
            "CREATE TABLE heap (a INT) ENGINE=MEMORY",
            "CREATE TABLE versioned (a INT) WITH SYSTEM VERSIONING",
            "CREATE TABLE clocked (a INT, moment BIGINT AS (UNIX_TIMESTAMP()) VIRTUAL)",
        ]);
    }
    if kind != Kind::MySql56 {
        setup.push("CREATE TABLE computed (a INT, at TIME, hour INT AS (HOUR(at)) VIRTUAL)");
    }
    let front = Front::new("reasons", &setup);
    let mut guest = front.guest();
    for (sql, reason) in REASONS {
        let reads = |tables: &[&str]| {
            tables
                .iter()
                .any(|table| sql.split(' ').any(|it| it == *table))
        };
        let is_missing = kind.is_mysql() && reads(&["aria", "heap", "versioned", "clocked"])
            // It does not warn of a division by zero.
            || kind == Kind::MySql56 && (reads(&["computed"]) || sql.contains("a / 0"));
        if is_missing {
            continue;
        }
        guest.always_passes(sql, reason);
    }
    wait_for(
        "the catalogue to know that a table is missing",
        PATIENCE,
        || {
            // After an error, only the next answer tells whether a transaction is open.
            guest.setup(&["DO 1"]);
            let outcome = guest.run("SELECT a FROM absent").outcome;
            assert_eq!(guest.run("SELECT a FROM t").outcome, "status_uncertain");
            Ok((outcome == "table_missing").then_some(()))
        },
    )
    .unwrap();
    for sql in [
        "SELECT f(), a FROM t",
        "SELECT NEXTVAL(seq), a FROM t",
        "SELECT a FROM t PROCEDURE ANALYSE()",
        "SELECT a /*M!100000 , s */ FROM t",
        "SELECT a FROM t /*! ; DO 1 */",
        "SELECT a FROM t; CALL p()",
    ] {
        let seen = guest.run(sql);
        assert_eq!(seen.outcome, "write", "{sql} may write");
    }
    assert_eq!(front.hits(), 0);
}

/// Inserts that aren't committed count in how well each row fits, and in nothing else.
#[test]
fn a_full_text_search_says_from_memory_which_rows_fit() {
    let front = Front::new(
        "searched",
        &[
            "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40), FULLTEXT (s))",
            "INSERT INTO t VALUES (1, 'alpha beta'), (2, 'gamma delta'), (3, 'alpha gamma')",
        ],
    );
    let which = "SELECT a FROM t WHERE MATCH (s) AGAINST ('alpha') ORDER BY a";
    let score = "SELECT a, MATCH (s) AGAINST ('alpha') FROM t ORDER BY a";
    let mut guest = front.guest();
    let mut writer = front.direct();
    writer.query("BEGIN").unwrap();
    for a in 100..200 {
        let insert = format!("INSERT INTO t VALUES ({a}, 'filler')");
        writer.query(&insert).unwrap();
    }
    let expected = front.direct().query_bytes(which).unwrap().to_vec();
    guest.becomes_hit(which, &expected);
    guest.always_passes(score, "statement_full_text_score");
    writer.query("ROLLBACK").unwrap();
    for sql in [which, score] {
        let expected = front.direct().query_bytes(sql).unwrap().to_vec();
        assert_eq!(guest.run(sql).bytes, expected, "{sql}");
    }
}

/// A stored function can write, so a call of one must never be taken for a call of a built-in.
#[test]
fn no_name_that_is_known_as_a_built_in_calls_a_stored_function() {
    let front = Front::new("stored_names", &[]);
    let (mut direct, mut guest) = (front.direct(), front.guest());
    // From here on the session's settings are known.
    guest.setup(&["DO 1"]);
    let mut stored = Vec::new();
    let further = remora_sql::FURTHER_FUNCTIONS.iter();
    let further = further.map(|further| further.function.name);
    let names = remora_sql::FUNCTIONS.iter().map(|known| known.name);
    for name in names.chain(further) {
        let create =
            format!("CREATE FUNCTION `{name}` (x INT) RETURNS INT DETERMINISTIC RETURN 424242");
        // What can't be created can't be called either.
        if direct
            .query(&create)
            .and_then(|answer| answer.rows())
            .is_err()
        {
            continue;
        }
        let call = format!("SELECT {name}(0)");
        // A built-in may want other arguments.
        if direct.query_value(&call).ok().flatten().as_deref() == Some("424242") {
            assert_eq!(guest.run(&call).outcome, "write", "{call} may write");
            stored.push(name);
        }
    }
    let is_old = front.server().kind() == Kind::MySql56;
    assert_eq!(stored.contains(&"JSON_VALID"), is_old, "{stored:?}");
}

#[test]
fn a_write_drops_the_results_of_its_table_and_of_no_other() {
    let mut setup = T.to_vec();
    setup.extend([
        "CREATE TABLE u (a INT PRIMARY KEY)",
        "INSERT INTO u VALUES (5)",
    ]);
    let front = Front::new("drops", &setup);
    let mut reader = front.guest();
    let mut writer = front.guest();
    let other = front
        .direct()
        .query_bytes("SELECT a FROM u")
        .unwrap()
        .to_vec();
    reader.becomes_hit("SELECT a FROM u", &other);
    for (number, write) in [
        "INSERT INTO t VALUES (10, 'ten')",
        "UPDATE t SET s = 'TEN' WHERE a = 10",
        "REPLACE INTO t VALUES (10, 'zehn')",
        "INSERT INTO t SELECT a + 100, s FROM t AS older",
        "INSERT INTO t VALUES (10, 'dix') ON DUPLICATE KEY UPDATE s = 'dix'",
        "DELETE FROM t WHERE a = 10",
        "TRUNCATE t",
        "INSERT INTO t (a) VALUES (1)",
    ]
    .into_iter()
    .enumerate()
    {
        let expected = front
            .direct()
            .query_bytes("SELECT * FROM t")
            .unwrap()
            .to_vec();
        reader.becomes_hit("SELECT * FROM t", &expected);
        writer.becomes("write", write, None);
        let expected = front
            .direct()
            .query_bytes("SELECT * FROM t")
            .unwrap()
            .to_vec();
        let seen = reader.run("SELECT * FROM t");
        assert_ne!(seen.outcome, "hit", "{number}: after {write}");
        assert_eq!(seen.bytes, expected, "after {write}");
        if write != "TRUNCATE t" {
            let other = front
                .direct()
                .query_bytes("SELECT a FROM u")
                .unwrap()
                .to_vec();
            reader.still_hits("SELECT a FROM u", &other);
        }
    }
}

#[test]
fn a_direct_write_drops_the_results_of_its_table() {
    let front = Front::new("direct_writes", &T);
    let mut reader = front.guest();
    let mut direct = front.direct();
    for number in 0..5 {
        let before = direct
            .query_bytes("SELECT COUNT(*) FROM t")
            .unwrap()
            .to_vec();
        reader.becomes_hit("SELECT COUNT(*) FROM t", &before);
        direct
            .query(&format!("INSERT INTO t (a) VALUES ({})", 100 + number))
            .unwrap();
        let after = direct
            .query_bytes("SELECT COUNT(*) FROM t")
            .unwrap()
            .to_vec();
        wait_for("the new count", PATIENCE, || {
            let seen = reader.run("SELECT COUNT(*) FROM t").bytes;
            assert!(seen == before || seen == after);
            Ok((seen == after).then_some(()))
        })
        .unwrap();
        reader.becomes_hit("SELECT COUNT(*) FROM t", &after);
    }
}

#[test]
fn results_of_before_a_ddl_are_not_served_after_it() {
    let front = Front::new("ddl", &T);
    let mut reader = front.guest();
    let mut writer = front.guest();
    let kind = front.server().kind();
    for ddl in [
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
        "ALTER TABLE t MODIFY s VARCHAR(99)",
        if kind.is_mysql() {
            "ALTER TABLE t DROP COLUMN b, DROP COLUMN s"
        } else {
            "CREATE OR REPLACE TABLE t (a INT)"
        },
        "RENAME TABLE t TO old, old TO t",
        "DROP TABLE t",
        match kind {
            // With GTIDs on, rows and definition can't be in one statement.
            Kind::MySql56 | Kind::MySql57 => "CREATE TABLE t (z INT)",
            _ => "CREATE TABLE t AS SELECT 1 AS z",
        },
    ] {
        let before = front
            .direct()
            .query_bytes("SELECT * FROM t")
            .unwrap()
            .to_vec();
        if before.get(4) != Some(&0xff) {
            reader.becomes_hit("SELECT * FROM t", &before);
        }
        writer.becomes("write", ddl, None);
        let after = front
            .direct()
            .query_bytes("SELECT * FROM t")
            .unwrap()
            .to_vec();
        let seen = reader.run("SELECT * FROM t");
        assert_eq!(seen.bytes, after, "after {ddl}");
    }
    // A view in place of the table: it must not be kept as the table was.
    writer.setup(&[
        "RENAME TABLE t TO base",
        "CREATE VIEW t AS SELECT * FROM base",
    ]);
    let view = front
        .direct()
        .query_bytes("SELECT * FROM t")
        .unwrap()
        .to_vec();
    reader.becomes_hit("SELECT * FROM t", &view);
    writer.becomes("write", "INSERT INTO base VALUES (77)", None);
    let after = front
        .direct()
        .query_bytes("SELECT * FROM t")
        .unwrap()
        .to_vec();
    assert_ne!(after, view);
    assert_eq!(reader.run("SELECT * FROM t").bytes, after);
}

#[test]
fn text_that_differs_in_one_byte_is_another_key() {
    let front = Front::new("texts", &T);
    let mut guest = front.guest();
    let mut direct = front.direct();
    let texts = [
        "SELECT a FROM t WHERE s = 'one'",
        "SELECT a FROM t WHERE s = 'ona'",
        "SELECT a FROM t WHERE s = 'ONE'",
        "SELECT a FROM t WHERE s = 'one '",
        "SELECT a FROM t WHERE s = ' one'",
        "SELECT A FROM t WHERE s = 'one'",
        "SELECT a+1 FROM t WHERE s = 'one'",
        "SELECT a + 1 FROM t WHERE s = 'one'",
        "SELECT a  +  1 FROM t WHERE s = 'one'",
        "SELECT a/* 1 */+1 FROM t WHERE s = 'one'",
        "SELECT a FROM t WHERE s = 'one' /*+ 1 */",
        "SELECT * FROM (SELECT a + 1 FROM t WHERE s = 'one') AS x",
        "SELECT * FROM (SELECT a  + 1 FROM t WHERE s = 'one') AS x",
        "SELECT a FROM t WHERE s = 'two'",
    ];
    for sql in texts {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        let first = guest.run(sql);
        assert_ne!(first.outcome, "hit", "{sql}");
        assert_eq!(first.bytes, expected);
        guest.becomes_hit(sql, &expected);
    }
    for sql in texts {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        assert_eq!(guest.run(sql).bytes, expected);
    }
}

/// Each with texts that are looked up by the same key, the first of which is stored.
const SPELLINGS: [&[&str]; 6] = [
    &[
        "SELECT a, s FROM t WHERE s = 'one'",
        "/* app:web */ SELECT a, s FROM t WHERE s = 'one'",
        "SELECT a, s FROM t WHERE s = 'one' /*traceparent='00-4bf92f35-00f0-01',route='it%27s'*/",
        "SELECT a, s FROM t WHERE s = 'one' -- it's",
        "SELECT a, s FROM t WHERE s = 'one'# it's",
        "\n  SELECT a, s FROM t\n  WHERE\ts /* \" */ = 'one'\r\n  ",
    ],
    &[
        "SELECT a FROM t WHERE s = ' /* a  b */ -- c'",
        "SELECT a FROM t  WHERE s = ' /* a  b */ -- c' /* d */",
    ],
    &[
        "SELECT a  + 1, (SELECT MAX(a)  FROM t), 'x  y' FROM t",
        "-- d\nSELECT a  + 1, (SELECT MAX(a)  FROM t), 'x  y' FROM t /* d */",
    ],
    &[
        "SELECT * FROM (SELECT a  * 2 FROM t WHERE a > 0) AS x",
        "SELECT * FROM (SELECT a  * 2 FROM t  WHERE/**/a > 0)\nAS x -- d",
    ],
    &[
        "SELECT a  - 1 FROM t UNION SELECT 9  * a FROM t ORDER BY 1",
        "SELECT a  - 1 FROM t  UNION/**/SELECT 9  * a FROM t\nORDER BY  1",
    ],
    &[
        "( SELECT a FROM t WHERE a - -1 > 0 ) LIMIT 1",
        "  ( SELECT a FROM t WHERE a - -1 > 0 /*)*/)  LIMIT 1",
    ],
];

#[test]
fn texts_that_differ_in_comments_and_white_space_share_results_and_each_gets_its_own_bytes() {
    // Nobody else's definitions outdate what is kept.
    let front = Front::new("spellings", &T);
    let mut guest = front.guest();
    let mut direct = front.direct();
    for spellings in SPELLINGS {
        let stored = direct.query_bytes(spellings[0]).unwrap().to_vec();
        guest.becomes_hit(spellings[0], &stored);
        for sql in spellings {
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            guest.still_hits(sql, &expected);
        }
    }
}

#[test]
fn without_the_option_each_text_is_a_key_of_its_own() {
    let options = RemoraOptions::following().with("cache.strip_comments", "false");
    let front = Front::with("unstripped", options, &T);
    let mut guest = front.guest();
    for sql in SPELLINGS[0] {
        let expected = front.direct().query_bytes(sql).unwrap().to_vec();
        assert_ne!(guest.run(sql).outcome, "hit", "{sql}");
        guest.becomes_hit(sql, &expected);
    }
}

#[test]
fn clients_with_and_without_deprecate_eof_never_get_each_others_bytes() {
    let front = Front::new("eof", &T);
    let kind = front.server().kind();
    if kind.skips(!kind.tracks_sessions(), "it has no DEPRECATE_EOF") {
        return;
    }
    for (order, first_has_it) in [("a", true), ("b", false)] {
        let sql = format!("SELECT a, s /* {order} */ FROM t");
        for has_it in [first_has_it, !first_has_it] {
            let mut options = front.options();
            options.deprecate_eof = has_it;
            let expected = options
                .connect()
                .unwrap()
                .query_bytes(&sql)
                .unwrap()
                .to_vec();
            let mut guest = front.guest_as(&options);
            assert_ne!(guest.run(&sql).outcome, "hit");
            guest.becomes_hit(&sql, &expected);
        }
    }
}

#[test]
fn the_same_text_in_two_schemas_has_two_answers() {
    let front = Front::new("schema_one", &T);
    front
        .server()
        .execute([
            "CREATE DATABASE schema_two",
            "CREATE TABLE schema_two.t (a INT)",
            "INSERT INTO schema_two.t VALUES (99)",
        ])
        .unwrap();
    let two = front.options().schema("schema_two");
    let sql = "SELECT a FROM t";
    for _ in 0..2 {
        for options in [front.options(), two.clone()] {
            let expected = options
                .connect()
                .unwrap()
                .query_bytes(sql)
                .unwrap()
                .to_vec();
            front.guest_as(&options).becomes_hit(sql, &expected);
        }
    }
    // A write to one leaves the other's result where it is.
    let mut writer = front.guest();
    writer.setup(&["INSERT INTO schema_two.t VALUES (100)"]);
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    let mut reader = front.guest();
    reader.becomes_hit(sql, &expected);
    let expected = two.connect().unwrap().query_bytes(sql).unwrap().to_vec();
    assert_eq!(front.guest_as(&two).run(sql).bytes, expected);
}

#[test]
fn an_account_never_gets_what_only_another_may_read() {
    let identified = Kind::from_environment().unwrap().identified_by("little");
    // Made here and not for all: a change of accounts drops the results of every test at the time.
    let account = format!("CREATE USER reader_of_little@'%' {identified}");
    let front = Front::new("accounts", &[T[0], T[1], &account]);
    front
        .server()
        .execute(["GRANT SELECT (a) ON accounts.t TO reader_of_little@'%'"])
        .unwrap();
    let mut little = front.options();
    little.user = "reader_of_little".to_owned();
    little.password = "little".to_owned();
    let mut other = front.options();
    other.user = OTHER_USER.to_owned();
    other.password = OTHER_PASSWORD.to_owned();

    let sql = "SELECT s FROM t";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    front.guest().becomes_hit(sql, &expected);
    let mut guest = front.guest_as(&little);
    let refusal = little.connect().unwrap().query_bytes(sql).unwrap().to_vec();
    for _ in 0..3 {
        assert_eq!(guest.run(sql).bytes, refusal);
    }
    let seen = front.guest_as(&other).run(sql);
    assert_ne!(seen.outcome, "hit", "another account's result");
    assert_eq!(seen.bytes, expected);
    // What it may read, it is served.
    let allowed = "SELECT a FROM t";
    let expected = little
        .connect()
        .unwrap()
        .query_bytes(allowed)
        .unwrap()
        .to_vec();
    guest.becomes_hit(allowed, &expected);
}
