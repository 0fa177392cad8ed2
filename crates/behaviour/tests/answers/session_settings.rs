//! Every session setting that can change a result is part of the key, and every other variable is
//! known not to be.

use std::collections::BTreeSet;
use std::time::Duration;

use remora_sql::{CONTACT_SETTINGS, Dialect, RESULT_SETTINGS, SessionEffect, analyse};
use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::servers::Kind;
use remora_wire::Capabilities;

use remora_behaviour::front::{Front, assert_same, lease};

mod harmless;

/// What two values of a setting do to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The bytes of its answer differ.
    Differs,
    /// They may: on some servers they don't, or nothing is known that makes them.
    MayDiffer,
    /// A session can't change it here, for this reason.
    Fixed(&'static str),
}
use Effect::{Differs, Fixed, MayDiffer};

/// A setting, two statements that set it, and a query. With `SET GLOBAL`, sessions begin after it.
struct Case {
    setting: &'static str,
    effect: Effect,
    one: &'static str,
    two: &'static str,
    query: &'static str,
}

const fn case(
    setting: &'static str,
    effect: Effect,
    one: &'static str,
    two: &'static str,
    query: &'static str,
) -> Case {
    Case {
        setting,
        effect,
        one,
        two,
        query,
    }
}

const fn fixed(setting: &'static str, why: &'static str) -> Case {
    case(setting, Fixed(why), "", "", "")
}

const TABLES: [&str; 5] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40), c CHAR(5), d DATE, ts TIMESTAMP NULL, big TEXT, KEY (s))",
    "INSERT INTO t VALUES (1, 'na\u{ef}ve', 'ab', '2024-03-02', '2024-03-02 12:00:00', 'aaaaaaaaaaaaaaaaz')",
    "INSERT INTO t VALUES (2, 'NA\u{cf}VE', 'AB', '2024-12-31', '2024-12-31 23:30:00', 'aaaaaaaaaaaaaaaab')",
    "INSERT INTO t VALUES (3, 'x', '', '2023-01-01', NULL, 'aaaaaaaaaaaaaaaaa')",
    "ANALYZE TABLE t",
];

const RECURSION: &str = "WITH RECURSIVE n AS (SELECT a FROM t WHERE a = 1 UNION ALL SELECT a + 1 FROM n WHERE a < 9) SELECT * FROM n";
const SELECT: &str = "SELECT a FROM t";
const UPDATE: &str = "UPDATE t SET a = a";

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("autocommit", Differs, "SET autocommit=1", "SET autocommit=0", SELECT),
    case("block_encryption_mode", Differs, "SET block_encryption_mode='aes-128-ecb'", "SET block_encryption_mode='aes-256-ecb'", "SELECT HEX(AES_ENCRYPT('x', 'key')), a FROM t"),
    case("character_set_client", Differs, "SET character_set_client=latin1", "SET character_set_client=utf8mb4", "SELECT HEX('\u{e9}'), a FROM t"),
    case("character_set_collations", Differs, "SET character_set_collations='utf8mb4=utf8mb4_bin'", "SET character_set_collations='utf8mb4=utf8mb4_general_ci'", "SELECT _utf8mb4'a' = _utf8mb4'A', a FROM t"),
    case("character_set_connection", Differs, "SET character_set_connection=latin1", "SET character_set_connection=utf8mb4", "SELECT HEX(CONCAT(a, '\u{e9}')) FROM t"),
    case("character_set_database", MayDiffer, "SET character_set_database=latin1", "SET character_set_database=utf8mb4", "SELECT s, CHARSET('x') FROM t"),
    case("character_set_results", Differs, "SET character_set_results=utf8mb4", "SET character_set_results=latin1", "SELECT s FROM t"),
    case("character_set_results", Differs, "SET character_set_results=utf8mb4", "SET character_set_results=NULL", "SELECT CONVERT(s USING latin1) FROM t"),
    case("character_set_server", MayDiffer, "SET character_set_server=latin1", "SET character_set_server=utf8mb4", "SELECT s, CHARSET('x') FROM t"),
    case("collation_connection", Differs, "SET collation_connection=utf8mb4_bin", "SET collation_connection=utf8mb4_general_ci", "SELECT 'a' = 'A', a FROM t"),
    case("collation_database", MayDiffer, "SET collation_database=latin1_bin", "SET collation_database=utf8mb4_bin", "SELECT s, 'a' = 'A' FROM t"),
    case("collation_server", MayDiffer, "SET collation_server=latin1_bin", "SET collation_server=utf8mb4_bin", "SELECT s, 'a' = 'A' FROM t"),
    case("completion_type", Differs, "SET completion_type=NO_CHAIN", "SET completion_type=CHAIN", "COMMIT"),
    case("cte_max_recursion_depth", Differs, "SET cte_max_recursion_depth=1000", "SET cte_max_recursion_depth=2", RECURSION),
    case("default_collation_for_utf8mb4", Differs, "SET default_collation_for_utf8mb4=utf8mb4_general_ci", "SET default_collation_for_utf8mb4=utf8mb4_0900_ai_ci", "SELECT _utf8mb4'a' = _utf8mb4'a ', a FROM t"),
    case("default_regex_flags", Differs, "SET default_regex_flags=''", "SET default_regex_flags='DOTALL'", "SELECT 'a\\nb' REGEXP 'a.b', a FROM t"),
    case("default_regex_flags", Differs, "SET GLOBAL default_regex_flags=''", "SET GLOBAL default_regex_flags='DOTALL'", "SELECT 'a\\nb' REGEXP 'a.b', a FROM t"),
    case("default_week_format", Differs, "SET default_week_format=0", "SET default_week_format=3", "SELECT WEEK(d) FROM t"),
    case("div_precision_increment", Differs, "SET div_precision_increment=4", "SET div_precision_increment=9", "SELECT a / 3, AVG(a) FROM t GROUP BY a"),
    case("group_concat_max_len", Differs, "SET group_concat_max_len=1024", "SET group_concat_max_len=7", "SELECT GROUP_CONCAT(big) FROM t"),
    case("innodb_ft_enable_stopword", MayDiffer, "SET innodb_ft_enable_stopword=0", "SET innodb_ft_enable_stopword=1", SELECT),
    case("innodb_ft_user_stopword_table", MayDiffer, "SET innodb_ft_user_stopword_table=NULL", "SET innodb_ft_user_stopword_table=DEFAULT", SELECT),
    case("join_buffer_size", MayDiffer, "SET join_buffer_size=128", "SET join_buffer_size=262144", "SELECT x.a, y.a FROM t x, t y"),
    case("join_cache_level", Differs, "SET join_cache_level=0", "SET join_cache_level=2", "SELECT x.a, y.a FROM t x, t y"),
    case("lc_time_names", Differs, "SET lc_time_names=en_US", "SET lc_time_names=de_DE", "SELECT DATE_FORMAT(d, '%W %M'), DAYNAME(d) FROM t"),
    case("log_slow_query_time", Differs, "SET log_slow_query_time=100", "SET log_slow_query_time=0", SELECT),
    case("long_query_time", Differs, "SET long_query_time=100", "SET long_query_time=0", SELECT),
    case("max_allowed_packet", Differs, "SET GLOBAL max_allowed_packet=1048576", "SET GLOBAL max_allowed_packet=16777216", "SELECT LENGTH(REPEAT('x', 2000000)), a FROM t"),
    case("max_error_count", MayDiffer, "SET max_error_count=0", "SET max_error_count=64", "SELECT CAST(big AS SIGNED) FROM t"),
    case("max_join_size", Differs, "SET max_join_size=DEFAULT, sql_big_selects=1", "SET max_join_size=1, sql_big_selects=0", "SELECT x.a FROM t x, t y, t z"),
    case("max_recursive_iterations", Differs, "SET max_recursive_iterations=DEFAULT", "SET max_recursive_iterations=2", RECURSION),
    case("max_sort_length", MayDiffer, "SET max_sort_length=1024", "SET max_sort_length=64", "SELECT a, big FROM (SELECT a, CONCAT(REPEAT('q', 70), big) AS big FROM t) AS x ORDER BY big"),
    case("new_mode", MayDiffer, "SET new_mode=''", "SET new_mode=DEFAULT", SELECT),
    case("note_verbosity", Differs, "SET note_verbosity='basic'", "SET note_verbosity='basic,unusable_keys'", "SELECT a FROM t WHERE a > 100 AND s = 1"),
    case("note_verbosity", Differs, "SET GLOBAL note_verbosity='basic'", "SET GLOBAL note_verbosity='basic,unusable_keys'", "SELECT a FROM t WHERE a > 100 AND s = 10"),
    fixed("old", "it is read-only, or deprecated in favour of old_mode"),
    case("old_mode", Differs, "SET old_mode=''", "SET old_mode='UTF8_IS_UTF8MB3'", "SELECT CHARSET(_utf8'x'), a FROM t"),
    case("optimizer_switch", MayDiffer, "SET optimizer_switch=DEFAULT", "SET optimizer_switch='derived_merge=off,index_merge=off'", "SELECT x.a, y.a FROM t x, (SELECT * FROM t) AS y"),
    fixed("query_cache_type", "the server's own cache is off where Remora caches"),
    case("resultset_metadata", Differs, "SET resultset_metadata=FULL", "SET resultset_metadata=NONE", SELECT),
    case("session_track_gtids", MayDiffer, "SET session_track_gtids=OFF", "SET session_track_gtids=OWN_GTID", SELECT),
    case("session_track_schema", MayDiffer, "SET session_track_schema=0", "SET session_track_schema=1", SELECT),
    case("session_track_state_change", MayDiffer, "SET session_track_state_change=0", "SET session_track_state_change=1", SELECT),
    case("session_track_system_variables", MayDiffer, "SET session_track_system_variables=''", "SET session_track_system_variables='*'", SELECT),
    case("session_track_transaction_info", MayDiffer, "SET session_track_transaction_info=OFF", "SET session_track_transaction_info=CHARACTERISTICS", SELECT),
    case("sql_auto_is_null", MayDiffer, "SET sql_auto_is_null=0", "SET sql_auto_is_null=1", "SELECT a FROM t WHERE a IS NULL"),
    case("sql_big_selects", Differs, "SET max_join_size=1, sql_big_selects=1", "SET max_join_size=1, sql_big_selects=0", "SELECT x.a FROM t x, t y, t z WHERE x.a > 0"),
    case("sql_buffer_result", MayDiffer, "SET sql_buffer_result=0", "SET sql_buffer_result=1", SELECT),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='ANSI_QUOTES'", "SELECT \"s\", a FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='PAD_CHAR_TO_FULL_LENGTH'", "SELECT c FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='NO_BACKSLASH_ESCAPES'", "SELECT 'a\\nb', a FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='PIPES_AS_CONCAT'", "SELECT a || 'x' FROM t WHERE a = 1"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='HIGH_NOT_PRECEDENCE'", "SELECT NOT a BETWEEN -5 AND 5 FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='IGNORE_SPACE'", "SELECT MAX (a) FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='NO_UNSIGNED_SUBTRACTION'", "SELECT CAST(0 AS UNSIGNED) - a FROM t"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='ONLY_FULL_GROUP_BY'", "SELECT s FROM t GROUP BY c"),
    case("sql_mode", Differs, "SET sql_mode=''", "SET sql_mode='REAL_AS_FLOAT,ANSI'", "SELECT \"a\" || 'y' FROM t"),
    case("sql_mode", MayDiffer, "SET sql_mode=''", "SET sql_mode='ERROR_FOR_DIVISION_BY_ZERO'", "SELECT a / 0 FROM t"),
    case("sql_mode", MayDiffer, "SET sql_mode=''", "SET sql_mode='ALLOW_INVALID_DATES'", "SELECT CAST('2024-02-31' AS DATE), a FROM t"),
    case("sql_mode", MayDiffer, "SET sql_mode=''", "SET sql_mode='STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'", "SELECT CAST('2024-00-31' AS DATE), a FROM t"),
    case("sql_notes", MayDiffer, "SET sql_notes=0", "SET sql_notes=1", "SELECT a FROM t WHERE a > 100 AND s = 1"),
    case("sql_quote_show_create", Differs, "SET sql_quote_show_create=0", "SET sql_quote_show_create=1", "SHOW CREATE TABLE t"),
    case("sql_safe_updates", Differs, "SET sql_safe_updates=0", "SET sql_safe_updates=1", UPDATE),
    case("sql_select_limit", Differs, "SET sql_select_limit=DEFAULT", "SET sql_select_limit=1", SELECT),
    case("standard_compliant_cte", Differs, "SET standard_compliant_cte=1", "SET standard_compliant_cte=0", "WITH RECURSIVE n AS (SELECT a FROM t WHERE a = 1 UNION SELECT x.a + 1 FROM n AS x, n AS y WHERE x.a < 3) SELECT * FROM n"),
    case("system_versioning_asof", MayDiffer, "SET system_versioning_asof=DEFAULT", "SET system_versioning_asof='2020-01-01'", SELECT),
    case("time_zone", Differs, "SET time_zone='+00:00'", "SET time_zone='+05:30'", "SELECT ts FROM t"),
    case("time_zone", Differs, "SET time_zone='+00:00'", "SET time_zone='-08:00'", "SELECT FROM_UNIXTIME(a) FROM t"),
    case("transaction_isolation", MayDiffer, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", SELECT),
    case("transaction_read_only", Differs, "SET SESSION TRANSACTION READ WRITE", "SET SESSION TRANSACTION READ ONLY", UPDATE),
    case("tx_isolation", MayDiffer, "SET tx_isolation='READ-COMMITTED'", "SET tx_isolation='REPEATABLE-READ'", SELECT),
    case("tx_read_only", Differs, "SET tx_read_only=0", "SET tx_read_only=1", UPDATE),
    case("windowing_use_high_precision", MayDiffer, "SET windowing_use_high_precision=0", "SET windowing_use_high_precision=1", "SELECT AVG(a / 3e0) OVER (ORDER BY a ROWS 1 PRECEDING) FROM t"),
];

/// How often each session asks at least.
const TRIES_MIN: usize = 3;
/// How often a session asks whose answers don't come from memory: some never do.
const TRIES_MAX: usize = 60;

/// The variables that a session of this server has of its own.
fn session_variables(client: &mut Client) -> BTreeSet<String> {
    let rows = client
        .query("SHOW SESSION VARIABLES")
        .unwrap()
        .rows()
        .unwrap();
    let names = rows.into_iter().map(|row| {
        let name = row.into_iter().next().flatten().unwrap();
        String::from_utf8(name).unwrap().to_ascii_lowercase()
    });
    let names: Vec<String> = names.collect();
    let own = names.into_iter().filter(|name| {
        let asked = client.query(&format!("SELECT @@session.{name}"));
        // 1238: it is a global one.
        !matches!(asked, Err(ClientError::Server(_)))
    });
    own.collect()
}

/// A session that `set` has been run for: in it, or before it began if it is about all.
fn session(options: &ConnectOptions, set: &str) -> Result<Client, ClientError> {
    if set.starts_with("SET GLOBAL") {
        return options.connect();
    }
    let mut client = options.connect()?;
    client.query(set)?;
    Ok(client)
}

/// One session of each kind through Remora, the first being first: each always gets what a direct
/// session gets. Gives how many hits there were, or why a session can't be set up so.
fn check(front: &Front, case: &Case, order: [&str; 2], sql: &str) -> Result<u64, ClientError> {
    let mut options = front.options();
    if case.setting == "resultset_metadata" {
        options.further = Capabilities::OPTIONAL_RESULTSET_METADATA;
    }
    let hits = front.hits();
    let mut answers = Vec::new();
    for set in [order, order].concat() {
        if set.starts_with("SET GLOBAL") {
            front.direct().query(set)?;
        }
        let mut direct = session(&options, set)?;
        let mut through = session(&options.clone().at(front.remora().address()), set)?;
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        let before = front.hits();
        for time in 0..TRIES_MAX {
            let seen = through.query_bytes(sql).unwrap();
            assert_same(&format!("{set}; {sql}"), seen, &expected);
            if time >= TRIES_MIN && front.hits() > before {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        answers.push(expected);
    }
    let differ = answers[0] != answers[1];
    assert!(
        differ || case.effect != Differs,
        "{order:?} make no difference to {sql}"
    );
    Ok(front.hits() - hits)
}

#[test]
fn two_sessions_that_differ_in_a_result_setting_get_their_own_bytes() {
    let front = Front::new("result_settings", &TABLES);
    let known = session_variables(&mut front.direct());
    let (mut run, mut hits, mut not_run) = (0, 0, Vec::new());
    for (number, case) in CASES.iter().enumerate() {
        if !known.contains(case.setting) || matches!(case.effect, Fixed(_)) {
            continue;
        }
        let restore = format!("SELECT @@global.{}", case.setting);
        let before = front.direct().query_value(&restore);
        // Each order on its own: other text, other keys. What has a hint's form is no comment to be
        // stripped.
        let there = check(
            &front,
            case,
            [case.one, case.two],
            &format!("{} /*+ {number} */", case.query),
        );
        let back = check(
            &front,
            case,
            [case.two, case.one],
            &format!("{} /*+ back {number} */", case.query),
        );
        // The setting itself. The hint keeps the cases apart.
        let itself = check(
            &front,
            case,
            [case.one, case.two],
            &format!("SELECT @@session.{} /*+ itself {number} */", case.setting),
        );
        if case.one.starts_with("SET GLOBAL") {
            let value = before.unwrap().unwrap();
            let value = value
                .parse::<u64>()
                .map_or(format!("'{value}'"), |n| n.to_string());
            let set = format!("SET GLOBAL {} = {value}", case.setting);
            front.direct().query(&set).unwrap();
        }
        match (there, back, itself) {
            (Ok(one), Ok(two), Ok(three)) => {
                run += 1;
                hits += one + two + three;
            }
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => {
                not_run.push(format!("{}: {error}", case.one));
            }
        }
    }
    println!("{run} cases, {hits} hits; not here: {not_run:#?}");
    // Values that this server doesn't have.
    assert!(
        not_run.len() <= 8 && run >= 40 && hits > run,
        "{run} {hits} {not_run:#?}"
    );
}

#[test]
fn every_result_setting_has_a_case() {
    for setting in RESULT_SETTINGS {
        let has_case = CASES.iter().any(|case| case.setting == setting.name);
        assert!(has_case, "{} has no case", setting.name);
    }
    for case in CASES {
        let known = RESULT_SETTINGS
            .iter()
            .any(|setting| setting.name == case.setting);
        assert!(known, "{} is no result setting", case.setting);
    }
}

#[test]
fn every_session_variable_is_in_the_key_or_known_not_to_change_a_result() {
    let server = lease();
    let mut client = server.app().connect().unwrap();
    let mut unknown = Vec::new();
    for name in session_variables(&mut client) {
        let known = RESULT_SETTINGS.iter().find(|setting| setting.name == name);
        let in_key = known.is_some();
        let reason = harmless::reason(&name);
        let effect = analyse(
            format!("SET SESSION {name} = 1").as_bytes(),
            Dialect::default(),
        );
        assert!(
            in_key != reason.is_some() || !in_key,
            "{name} is in both lists"
        );
        match effect.session {
            SessionEffect::SettingsChanged | SessionEffect::TransactionDefaults(_) => {
                assert!(in_key || CONTACT_SETTINGS.contains(&&*name), "{name}");
            }
            // What a session does under it isn't trusted at all.
            SessionEffect::BinlogOff => {}
            _ if reason.is_none() => unknown.push(name),
            _ => {}
        }
    }
    let kind = server.kind();
    assert_eq!(
        unknown,
        Vec::<String>::new(),
        "not classified, on {}",
        Kind::as_str(kind)
    );
}
