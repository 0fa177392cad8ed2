//! Sessions that differ get different answers; state that a session has is honoured, hit or not.

use mysql_async::prelude::Queryable;
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::raw::{Packet, Raw, packet};
use remora_behaviour::front::{Front, Guest, PATIENCE, PING, assert_same};

pub(crate) const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];
pub(crate) const READ: &str = "SELECT * FROM t";

pub(crate) fn direct_bytes(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// The server's answer in a session that has been reset, which has another character set on some
/// servers.
fn bytes_after_reset(front: &Front, sql: &str) -> Vec<u8> {
    let mut direct = front.direct();
    direct.command(0x1f, b"", ResponseKind::Single).unwrap();
    direct.query_bytes(sql).unwrap().to_vec()
}

/// Has `sql` answered from memory, in this session.
pub(crate) fn warm(front: &Front, guest: &mut Guest<'_>, sql: &str) {
    let expected = direct_bytes(front, sql);
    guest.becomes_hit(sql, &expected);
}

fn counted(guest: &mut Guest<'_>) -> i64 {
    guest
        .value("SELECT COUNT(*) FROM t")
        .0
        .unwrap()
        .parse()
        .unwrap()
}

mod settings {
    use super::*;

    /// Two ways to set a session up between which the bytes of `query` differ.
    struct Pair {
        one: &'static str,
        two: &'static str,
        query: &'static str,
    }

    const fn pair(one: &'static str, two: &'static str, query: &'static str) -> Pair {
        Pair { one, two, query }
    }

    const TABLES: [&str; 4] = [
        "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40) CHARACTER SET latin1, c CHAR(5), d DATE, ts TIMESTAMP NULL, big TEXT)",
        "INSERT INTO t VALUES (1, 'na\u{ef}ve', 'ab', '2024-03-02', '2024-03-02 12:00:00', 'aaaaaaaaaaaaaaaaz')",
        "INSERT INTO t VALUES (2, 'NA\u{cf}VE', 'AB', '2024-12-31', '2024-12-31 23:30:00', 'aaaaaaaaaaaaaaaab')",
        "INSERT INTO t VALUES (3, 'x', '', '2023-01-01', NULL, 'aaaaaaaaaaaaaaaaa')",
    ];

    const PAIRS: &[Pair] = &[
        pair(
            "SET sql_mode=''",
            "SET sql_mode='ANSI_QUOTES'",
            "SELECT \"s\", a FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='PAD_CHAR_TO_FULL_LENGTH'",
            "SELECT c FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='NO_BACKSLASH_ESCAPES'",
            "SELECT 'a\\nb', a FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='PIPES_AS_CONCAT'",
            "SELECT a || 'x' FROM t WHERE a = 1",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='HIGH_NOT_PRECEDENCE'",
            "SELECT NOT a BETWEEN -5 AND 5 FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='IGNORE_SPACE'",
            "SELECT MAX (a) FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='NO_UNSIGNED_SUBTRACTION'",
            "SELECT CAST(0 AS UNSIGNED) - a FROM t",
        ),
        pair(
            "SET sql_mode=''",
            "SET sql_mode='ONLY_FULL_GROUP_BY'",
            "SELECT s FROM t GROUP BY c",
        ),
        pair(
            "SET time_zone='+00:00'",
            "SET time_zone='+05:30'",
            "SELECT ts FROM t",
        ),
        pair(
            "SET time_zone='+00:00'",
            "SET time_zone='-08:00'",
            "SELECT FROM_UNIXTIME(a) FROM t",
        ),
        pair("SET NAMES utf8mb4", "SET NAMES latin1", "SELECT s FROM t"),
        pair(
            "SET character_set_results=utf8mb4",
            "SET character_set_results=NULL",
            "SELECT s FROM t",
        ),
        pair(
            "SET character_set_client=latin1",
            "SET character_set_client=utf8mb4",
            "SELECT HEX('\u{e9}'), a FROM t",
        ),
        pair(
            "SET NAMES utf8mb4",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SELECT 'a' = 'A', a FROM t",
        ),
        pair(
            "SET collation_connection=utf8mb4_bin",
            "SET collation_connection=latin1_swedish_ci",
            "SELECT HEX(CONCAT(a, 'x')), 'a' < 'B' FROM t",
        ),
        pair(
            "SET sql_select_limit=DEFAULT",
            "SET sql_select_limit=1",
            "SELECT a FROM t",
        ),
        pair(
            "SET group_concat_max_len=1024",
            "SET group_concat_max_len=7",
            "SELECT GROUP_CONCAT(big) FROM t",
        ),
        pair(
            "SET div_precision_increment=4",
            "SET div_precision_increment=9",
            "SELECT a / 3, AVG(a) FROM t GROUP BY a",
        ),
        pair(
            "SET lc_time_names=en_US",
            "SET lc_time_names=fi_FI",
            "SELECT DATE_FORMAT(d, '%W %M'), DAYNAME(d) FROM t",
        ),
        pair(
            "SET default_week_format=0",
            "SET default_week_format=3",
            "SELECT WEEK(d) FROM t",
        ),
        pair(
            "SET max_sort_length=1024",
            "SET max_sort_length=64",
            "SELECT a, big FROM (SELECT a, CONCAT(REPEAT('q', 70), big) AS big FROM t) AS x ORDER BY big",
        ),
        pair(
            "SET max_join_size=DEFAULT",
            "SET max_join_size=1, sql_big_selects=0",
            "SELECT x.a FROM t x, t y, t z",
        ),
        pair(
            "SET max_recursive_iterations=DEFAULT",
            "SET max_recursive_iterations=2",
            "WITH RECURSIVE n AS (SELECT a FROM t WHERE a = 1 UNION ALL SELECT a + 1 FROM n WHERE a < 9) SELECT * FROM n",
        ),
        pair("SET autocommit=1", "SET autocommit=0", "SELECT a FROM t"),
        pair("USE {schema}", "USE {schema}_two", "SELECT a FROM t"),
    ];

    /// Whether the server doesn't know the setting, or heeds it no longer.
    fn is_without_effect(kind: Kind, set: &str) -> bool {
        let is_unknown = kind.is_mysql() && set.contains("max_recursive_iterations");
        is_unknown || kind == Kind::MySql80 && set.contains("max_sort_length")
    }

    /// One session of each kind through Remora, the first being first; each always gets what a
    /// direct session gets.
    fn check(front: &Front, first: &str, second: &str, sql: &str) -> u64 {
        let hits = front.hits();
        let mut answers = Vec::new();
        for set in [first, second, first, second] {
            let (mut direct, mut guest) = (front.direct(), front.guest());
            direct.query(set).unwrap();
            guest.setup(&[set]);
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            for _ in 0..3 {
                let seen = guest.run(sql);
                assert_same(
                    &format!("{set}; {sql}: {}", seen.outcome),
                    &seen.bytes,
                    &expected,
                );
            }
            answers.push(expected);
        }
        assert_ne!(
            answers[0], answers[1],
            "{first} or {second} makes no difference to {sql}"
        );
        front.hits() - hits
    }

    /// How often a pair of settings is tried until memory answers one of them.
    const TRIES_MAX: usize = 5;

    #[test]
    fn two_sessions_that_differ_in_a_setting_never_share_an_answer() {
        // MySQL 5.6 tells that a commit is visible once others' statements have ended: those of
        // other tests are long.
        let front = Front::new("settings", &TABLES);
        let two = [
            "CREATE DATABASE settings_two",
            "CREATE TABLE settings_two.t (a INT)",
        ];
        front.server().execute(two).unwrap();
        // Tables just made are not kept until the server has told that all of it is visible.
        for schema in [front.schema(), "settings_two"] {
            let sql = format!("SELECT a FROM {schema}.t");
            warm(&front, &mut front.guest(), &sql);
        }
        let mut without_hits = Vec::new();
        let kind = front.server().kind();
        for (number, Pair { one, two, query }) in PAIRS.iter().enumerate() {
            if [one, two].iter().any(|set| is_without_effect(kind, set)) {
                continue;
            }
            let (one, two) = (
                one.replace("{schema}", front.schema()),
                two.replace("{schema}", front.schema()),
            );
            let mut hits = 0;
            // On a slow machine the server may not yet have told enough for a hit.
            for attempt in 0..TRIES_MAX {
                // Each order on its own: other text, other keys. What has a hint's form is no
                // comment to be stripped.
                let order = |name| format!("{query} /*+ {name} {number} {attempt} */");
                hits += check(&front, &one, &two, &order("there"));
                hits += check(&front, &two, &one, &order("back"));
                if hits > 0 {
                    break;
                }
            }
            if hits == 0 {
                without_hits.push(query);
            }
        }
        assert!(
            without_hits.len() <= 3,
            "nothing is proven by {without_hits:#?}"
        );
    }

    #[test]
    fn a_setting_changed_in_mid_session_counts_from_the_next_statement_on() {
        let front = Front::new("mid_session", &TABLES);
        let (mut direct, mut guest) = (front.direct(), front.guest());
        let sql = "SELECT ts, s FROM t ORDER BY a";
        for set in [
            "SET time_zone='+01:00'",
            "SET SESSION time_zone='+02:00', sql_select_limit=2",
            "SET @@session.time_zone='+03:00'",
            "SET NAMES latin1",
            "SET CHARACTER SET utf8mb4",
            "SET @@time_zone=DEFAULT",
            "SET sql_select_limit=DEFAULT",
            "SET LOCAL time_zone='+01:00'",
        ] {
            direct.query(set).unwrap();
            guest.setup(&[set]);
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            guest.becomes_hit(sql, &expected);
        }
    }

    #[test]
    fn an_unknown_variable_switches_the_session_to_pass_through_until_it_is_reset() {
        let front = Front::new("unknown_setting", &T);
        let kind = front.server().kind();
        if kind.skips(kind == Kind::MySql56, "it has no COM_RESET_CONNECTION") {
            return;
        }
        let mut guest = front.guest();
        warm(&front, &mut guest, READ);
        let unknown = if front.server().kind().is_mysql() {
            "SET SESSION show_old_temporals = 0"
        } else {
            "SET SESSION max_session_mem_used = 1000000000"
        };
        guest.setup(&[unknown]);
        guest.always_passes(READ, "setting_unknown");
        warm(&front, &mut front.guest(), READ);
        guest.command(0x1f, b"", ResponseKind::Single);
        guest.becomes_hit(READ, &bytes_after_reset(&front, READ));
    }

    #[test]
    fn settings_under_which_rows_depend_on_more_than_tables_pass_through() {
        let front = Front::new("setting_values", &T);
        for (set, reason) in [
            ("SET sql_auto_is_null=1", "setting_value"),
            ("SET character_set_client=sjis", "charset_unsafe"),
            ("SET NAMES gbk", "charset_unsafe"),
            // It compares `'a[b'` as `'a?b'`.
            ("SET collation_connection=swe7_swedish_ci", "charset_unsafe"),
            // It compares `'10'` as one character.
            (
                "SET character_set_client=binary, collation_connection=utf16_general_ci",
                "charset_unsafe",
            ),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "isolation_level",
            ),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
                "isolation_level",
            ),
            ("SET sql_log_bin=0", "writes_unlogged"),
            ("SET SESSION binlog_format=STATEMENT", "writes_unlogged"),
            ("SET sql_mode=ORACLE", "dialect_unknown"),
            // It reads `s <=> ''` as `s IS NULL`.
            ("SET sql_mode=EMPTY_STRING_IS_NULL", "dialect_unknown"),
        ] {
            let kind = front.server().kind();
            let is_unknown = reason == "dialect_unknown" && kind == Kind::MySql80
                || set.contains("EMPTY_STRING") && kind.is_mysql();
            if is_unknown {
                continue;
            }
            let mut guest = front.guest();
            guest.setup(&[set]);
            guest.always_passes(READ, reason);
        }
    }
}

mod transactions {
    use super::*;

    #[test]
    fn a_repeatable_read_transaction_keeps_its_snapshot() {
        let front = Front::new("snapshots", &T);
        let mut guest = front.guest();
        warm(&front, &mut guest, READ);
        guest.setup(&["START TRANSACTION WITH CONSISTENT SNAPSHOT"]);
        let mut direct = front.direct();
        direct
            .query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            .unwrap();
        let before = direct.query_bytes(READ).unwrap().to_vec();
        let mut writer = front.guest();
        writer.setup(&["INSERT INTO t VALUES (4, 'four')"]);
        warm(&front, &mut writer, READ);
        for _ in 0..3 {
            let seen = guest.run(READ);
            assert_ne!(seen.outcome, "hit", "what is in memory is newer");
            assert_eq!(seen.bytes, before);
        }
        guest.setup(&["COMMIT"]);
        warm(&front, &mut guest, READ);
        assert_eq!(counted(&mut guest), 4);
    }

    #[test]
    fn a_read_committed_transaction_is_served_from_memory_until_it_writes() {
        let front = Front::new("read_committed", &T);
        let (mut guest, mut direct) = (front.guest(), front.direct());
        let set = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
        guest.setup(&[set, "BEGIN"]);
        direct.query(set).unwrap();
        direct.query("BEGIN").unwrap();
        // The flag of the open transaction stands in the answer.
        let expected = direct.query_bytes(READ).unwrap().to_vec();
        guest.becomes_hit(READ, &expected);
        // It sees the commits of others.
        front.guest().setup(&["INSERT INTO t VALUES (4, 'four')"]);
        let expected = direct.query_bytes(READ).unwrap().to_vec();
        guest.becomes_hit(READ, &expected);
        // And its own rows, which nobody else sees.
        direct.query("ROLLBACK").unwrap();
        guest.setup(&["INSERT INTO t VALUES (5, 'five')"]);
        for _ in 0..3 {
            let (count, outcome) = guest.value("SELECT COUNT(*) FROM t");
            assert_eq!(
                (count.as_deref(), outcome),
                (Some("5"), "transaction_has_written")
            );
        }
        let mut other = front.guest();
        assert_eq!(
            other.value("SELECT COUNT(*) FROM t").0.as_deref(),
            Some("4")
        );
        guest.setup(&["COMMIT"]);
        assert_eq!(
            other.value("SELECT COUNT(*) FROM t").0.as_deref(),
            Some("5")
        );
        warm(&front, &mut other, "SELECT COUNT(*) FROM t");
    }

    #[test]
    fn what_was_rolled_back_was_never_there() {
        let front = Front::new("rollbacks", &T);
        let mut guest = front.guest();
        let mut other = front.guest();
        warm(&front, &mut other, READ);
        let before = direct_bytes(&front, READ);
        for end in ["ROLLBACK", "ROLLBACK AND CHAIN", "ROLLBACK"] {
            guest.setup(&[
                "BEGIN",
                "DELETE FROM t",
                "SAVEPOINT p",
                "INSERT INTO t VALUES (9, 'nine')",
                "ROLLBACK TO p",
            ]);
            assert_eq!(
                guest.value("SELECT COUNT(*) FROM t").0.as_deref(),
                Some("0")
            );
            assert_eq!(other.run(READ).bytes, before);
            guest.setup(&[end]);
            assert_eq!(other.run(READ).bytes, before);
        }
        warm(&front, &mut other, READ);
    }

    #[test]
    fn with_autocommit_off_the_first_read_passes_through_and_commits_fence() {
        let front = Front::new("autocommit_off", &T);
        let mut guest = front.guest();
        let mut other = front.guest();
        guest.setup(&["SET autocommit=0"]);
        assert_eq!(guest.run(READ).outcome, "autocommit_off");
        guest.setup(&["INSERT INTO t VALUES (4, 'four')"]);
        warm(&front, &mut other, READ);
        // An implicit commit: DDL, or autocommit turned on again.
        for (number, commit) in [
            "COMMIT",
            "CREATE TABLE implicit (a INT)",
            "SET autocommit=1",
        ]
        .iter()
        .enumerate()
        {
            guest.setup(&[commit]);
            let expected = direct_bytes(&front, READ);
            assert_eq!(other.run(READ).bytes, expected, "after {commit}");
            warm(&front, &mut other, READ);
            guest.setup(&[&format!("INSERT INTO t (a) VALUES ({})", 100 + number)]);
        }
        assert_eq!(counted(&mut other), 7);
        warm(&front, &mut guest, READ);
    }

    #[test]
    fn set_transaction_counts_for_one_transaction() {
        let front = Front::new("set_transaction", &T);
        let mut guest = front.guest();
        warm(&front, &mut guest, READ);
        guest.setup(&["SET TRANSACTION ISOLATION LEVEL READ COMMITTED"]);
        guest.always_passes(READ, "next_transaction_differs");
        let mut guest = front.guest();
        guest.setup(&["SET TRANSACTION READ ONLY", "BEGIN"]);
        let error = guest.run("INSERT INTO t VALUES (7, 'seven')").bytes;
        assert!(String::from_utf8_lossy(&error).contains("READ ONLY"));
        guest.setup(&["COMMIT"]);
        warm(&front, &mut guest, READ);
    }

    /// `SET @@name` without a scope sets what holds for the next transaction.
    #[test]
    fn rows_that_were_never_committed_are_not_kept() {
        let front = Front::new("never_committed", &T);
        let name = match front.server().kind() {
            Kind::MySql80 => "transaction_isolation",
            _ => "tx_isolation",
        };
        let (mut writer, mut other) = (front.direct(), front.guest());
        let read = "SELECT COUNT(*) FROM t";
        let truth = writer.query_value(read).unwrap();
        for set in [
            format!("SET @@{name} = 'READ-UNCOMMITTED'"),
            format!("SET @@{name} = 'READ-UNCOMMITTED', time_zone = '+00:00'"),
            "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED".to_owned(),
        ] {
            let mut guest = front.guest();
            writer.query("BEGIN").unwrap();
            writer.query("INSERT INTO t (a) VALUES (1000)").unwrap();
            guest.setup(&["DO 1", &set]);
            let dirty = guest.value(read).0;
            assert_ne!(dirty, truth, "{set}");
            writer.query("ROLLBACK").unwrap();
            assert_eq!(other.value(read).0, truth, "{set}");
            assert_eq!(other.value(read).0, truth, "{set}");
        }
        // With a scope, or without `@@`, it is the session's: what each transaction is like.
        for set in [
            format!("SET @@session.{name} = 'READ-COMMITTED'"),
            format!("SET SESSION {name} = 'READ-COMMITTED'"),
            format!("SET {name} = 'READ-COMMITTED'"),
        ] {
            let mut guest = front.guest();
            guest.setup(&[&set]);
            let expected = direct_bytes(&front, read);
            warm(&front, &mut guest, read);
            assert_eq!(guest.run(read).bytes, expected);
            assert_eq!(
                guest.value(&format!("SELECT @@{name}")).0.as_deref(),
                Some("READ-COMMITTED")
            );
        }
    }

    #[test]
    fn a_transaction_ended_by_a_deadlock_or_a_lost_connection_leaves_nothing_behind() {
        let front = Front::new("broken_transactions", &T);
        let mut other = front.guest();
        let before = direct_bytes(&front, READ);
        let mut guest = front.guest();
        guest.setup(&["BEGIN", "DELETE FROM t"]);
        let id = guest.client().connection_id();
        front.server().execute([format!("KILL {id}")]).unwrap();
        assert!(guest.client().query("COMMIT").is_err());
        other.becomes_hit(READ, &before);
    }
}

mod state {
    use super::*;

    #[test]
    fn a_temporary_table_hides_the_one_that_is_cached() {
        let front = Front::new("temporary", &T);
        let mut guest = front.guest();
        warm(&front, &mut guest, READ);
        guest.setup(&[
            "CREATE TEMPORARY TABLE t (z INT)",
            "INSERT INTO t VALUES (42)",
        ]);
        for _ in 0..3 {
            let (value, outcome) = guest.value(READ);
            assert_eq!(
                (value.as_deref(), outcome),
                (Some("42"), "temporary_tables")
            );
        }
        let mut other = front.guest();
        warm(&front, &mut other, READ);
        guest.setup(&["DROP TEMPORARY TABLE t"]);
        assert_eq!(guest.run(READ).bytes, direct_bytes(&front, READ));
        let kind = front.server().kind();
        if kind.skips(kind == Kind::MySql56, "it has no COM_RESET_CONNECTION") {
            return;
        }
        guest.command(0x1f, b"", ResponseKind::Single);
        guest.becomes_hit(READ, &bytes_after_reset(&front, READ));
    }

    #[test]
    fn a_session_that_holds_table_locks_passes_through() {
        let front = Front::new("locks", &T);
        let mut guest = front.guest();
        warm(&front, &mut guest, READ);
        guest.setup(&["LOCK TABLES t READ"]);
        guest.always_passes(READ, "locked_tables");
        guest.setup(&["UNLOCK TABLES"]);
        warm(&front, &mut guest, READ);
        guest.setup(&[
            "LOCK TABLES t WRITE",
            "INSERT INTO t VALUES (4, 'four')",
            "UNLOCK TABLES",
        ]);
        assert_eq!(guest.run(READ).bytes, direct_bytes(&front, READ));
        // Under a lock, other tables are refused as the server refuses them.
        guest.setup(&["CREATE TABLE u (a INT)"]);
        warm(&front, &mut guest, "SELECT * FROM u");
        guest.setup(&["LOCK TABLES t READ"]);
        assert!(
            String::from_utf8_lossy(&guest.run("SELECT * FROM u").bytes).contains("was not locked")
        );
    }

    #[test]
    fn the_default_schema_follows_use_and_init_db() {
        let front = Front::new("use_one", &T);
        front
            .server()
            .execute([
                "CREATE DATABASE use_two",
                "CREATE TABLE use_two.t (a INT)",
                "INSERT INTO use_two.t VALUES (22)",
            ])
            .unwrap();
        let one = direct_bytes(&front, READ);
        let two = front
            .options()
            .schema("use_two")
            .connect()
            .unwrap()
            .query_bytes(READ)
            .unwrap()
            .to_vec();
        let mut guest = front.guest();
        guest.becomes_hit(READ, &one);
        guest.setup(&["USE use_two"]);
        guest.becomes_hit(READ, &two);
        guest.command(0x02, b"use_one", ResponseKind::Single);
        guest.becomes_hit(READ, &one);
        guest.setup(&["USE `use_two`"]);
        assert_eq!(guest.run(READ).bytes, two);
        let refused = guest.command(0x02, b"absent", ResponseKind::Single);
        assert!(String::from_utf8_lossy(&refused.bytes).contains("Unknown database"));
        guest.becomes_hit(READ, &two);
    }

    #[test]
    fn a_reset_connection_is_as_after_its_login() {
        let front = Front::new("resets", &T);
        let kind = front.server().kind();
        if kind.skips(kind == Kind::MySql56, "it has no COM_RESET_CONNECTION") {
            return;
        }
        let mut guest = front.guest();
        let usual = bytes_after_reset(&front, READ);
        guest.setup(&[
            "SET sql_select_limit=1",
            "SET @x=1",
            "BEGIN",
            "INSERT INTO t VALUES (9, 'nine')",
        ]);
        guest.command(0x1f, b"", ResponseKind::Single);
        guest.becomes_hit(READ, &usual);
        assert_eq!(guest.value("SELECT @x").0, None);
    }

    #[test]
    fn a_changed_user_gets_its_own_answers() {
        let front = Front::new("change_user", &T);
        front
            .server()
            .execute([
                "CREATE DATABASE change_user_two",
                "CREATE TABLE change_user_two.t (a INT)",
                "INSERT INTO change_user_two.t VALUES (5)",
            ])
            .unwrap();
        let pool = |address: std::net::SocketAddr| {
            let options = mysql_async::OptsBuilder::default()
                .ip_or_hostname("127.0.0.1")
                .tcp_port(address.port())
                .user(Some("app"))
                .pass(Some("app-password"))
                .db_name(Some("change_user"))
                .prefer_socket(false);
            mysql_async::Opts::from(options)
        };
        run_async(async {
            let mut through = mysql_async::Conn::new(pool(front.remora().address()))
                .await
                .unwrap();
            for _ in 0..5 {
                let rows: Vec<i32> = through.query("SELECT a FROM t").await.unwrap();
                assert_eq!(rows, [1, 2, 3]);
            }
            let options = mysql_async::ChangeUserOpts::default()
                .with_user(Some(remora_behaviour::front::OTHER_USER.to_owned()))
                .with_pass(Some(remora_behaviour::front::OTHER_PASSWORD.to_owned()))
                .with_db_name(Some("change_user_two".to_owned()));
            through.change_user(options).await.unwrap();
            for _ in 0..5 {
                let rows: Vec<i32> = through.query("SELECT a FROM t").await.unwrap();
                assert_eq!(rows, [5]);
                let user: Option<String> =
                    through.query_first("SELECT CURRENT_USER()").await.unwrap();
                assert_eq!(user.as_deref(), Some("other@%"));
            }
            through.disconnect().await.unwrap();
        });
    }

    /// What a client may do between a statement and its question about it.
    #[derive(Debug, Clone, Copy)]
    enum Interlude {
        Nothing,
        Ping,
        Prepare,
        Statistics,
    }

    impl Interlude {
        fn run(self, client: &mut Client) {
            match self {
                Interlude::Nothing => {}
                Interlude::Ping => drop(client.command(PING, b"", ResponseKind::Single).unwrap()),
                Interlude::Prepare => {
                    client
                        .command(0x16, b"SELECT 1", ResponseKind::Prepared)
                        .unwrap();
                }
                Interlude::Statistics => {
                    client.command(0x09, b"", ResponseKind::Single).unwrap();
                }
            }
        }

        fn observed(self, guest: &mut Guest<'_>) {
            if !matches!(self, Interlude::Nothing) {
                guest.observe(|client| self.run(client));
            }
        }
    }

    /// Statement by statement the same through Remora and directly, the last one being a question.
    fn asks_right(front: &Front, before: &str, sql: &str, interlude: Interlude, question: &str) {
        let (mut direct, mut guest) = (front.direct(), front.guest());
        warm(front, &mut guest, sql);
        guest.run(before);
        direct.query_bytes(before).unwrap();
        warm(front, &mut guest, sql);
        direct.query_bytes(sql).unwrap();
        interlude.observed(&mut guest);
        interlude.run(&mut direct);
        let expected = direct.query_bytes(question).unwrap().to_vec();
        let seen = guest.run(question);
        let what = format!("{before}; {sql}; {interlude:?}; {question}");
        assert_same(&what, &seen.bytes, &expected);
    }

    const LIMITED: &str = "SELECT a FROM t ORDER BY a LIMIT 2";

    #[test]
    fn questions_about_the_statement_before_are_right_after_a_hit() {
        let front = Front::new("questions", &T);
        for before in [
            "SELECT 'x' + 1",
            "INSERT INTO t VALUES (1, 'double')",
            "UPDATE t SET s = s",
        ] {
            for question in [
                "SELECT FOUND_ROWS()",
                "SELECT ROW_COUNT()",
                "SHOW WARNINGS",
                "SHOW ERRORS",
                "SHOW COUNT(*) WARNINGS",
                "SELECT @@warning_count, @@error_count",
                "SELECT LAST_INSERT_ID()",
                "GET DIAGNOSTICS @n = NUMBER",
            ] {
                for sql in [LIMITED, READ] {
                    asks_right(&front, before, sql, Interlude::Nothing, question);
                }
            }
        }
    }

    #[test]
    fn questions_about_a_hit_are_right_after_commands_in_between() {
        let front = Front::new("diagnostics", &T);
        for interlude in [Interlude::Ping, Interlude::Prepare, Interlude::Statistics] {
            for question in ["SELECT FOUND_ROWS()", "SHOW WARNINGS"] {
                asks_right(&front, "SELECT 'x' + 1", LIMITED, interlude, question);
            }
        }
    }

    #[test]
    fn the_last_insert_id_outlives_a_hit() {
        let front = Front::new(
            "insert_ids",
            &["CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, s TEXT)"],
        );
        let mut guest = front.guest();
        guest.setup(&[
            "INSERT INTO t (s) VALUES ('x'), ('y')",
            "INSERT INTO t (s) VALUES ('z')",
        ]);
        warm(&front, &mut guest, READ);
        assert_eq!(
            guest.value("SELECT LAST_INSERT_ID()").0.as_deref(),
            Some("3")
        );
    }
}

fn run_async<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn async_options(options: &ConnectOptions, port: u16) -> mysql_async::Opts {
    mysql_async::OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some(options.user.clone()))
        .pass(Some(options.password.clone()))
        .db_name(Some(options.schema.clone()))
        .prefer_socket(false)
        .into()
}

mod forms {
    use super::*;

    #[test]
    fn prepared_writes_fence() {
        let front = Front::new("prepared", &T);
        let mut reader = front.guest();
        run_async(async {
            let options = async_options(&front.options(), front.remora().address().port());
            let mut prepared = mysql_async::Conn::new(options).await.unwrap();
            for number in 10..20 {
                warm(&front, &mut reader, READ);
                let rows: Vec<(i32, Option<String>)> = prepared
                    .exec("SELECT * FROM t WHERE a < ?", (4,))
                    .await
                    .unwrap();
                assert_eq!(rows.len(), 3);
                prepared
                    .exec_drop("INSERT INTO t VALUES (?, ?)", (number, "prepared"))
                    .await
                    .unwrap();
                let seen = reader.run(READ);
                assert_ne!(seen.outcome, "hit");
                assert_eq!(seen.bytes, direct_bytes(&front, READ));
            }
            prepared.disconnect().await.unwrap();
        });
        // And those prepared as text.
        let mut writer = front.guest();
        writer.setup(&["PREPARE p FROM 'UPDATE t SET s = ?'", "SET @s = 'all'"]);
        warm(&front, &mut reader, READ);
        writer.setup(&["EXECUTE p USING @s"]);
        assert_eq!(reader.run(READ).bytes, direct_bytes(&front, READ));
        warm(&front, &mut reader, READ);
        if front.server().kind().is_mysql() {
            writer.setup(&["PREPARE p FROM 'DELETE FROM t'", "EXECUTE p"]);
        } else {
            writer.setup(&["EXECUTE IMMEDIATE 'DELETE FROM t'"]);
        }
        assert_eq!(reader.run(READ).bytes, direct_bytes(&front, READ));
    }

    #[test]
    fn a_local_file_is_loaded_through_remora_and_drops_results() {
        let front = Front::new("local_file", &T);
        let mut reader = front.guest();
        warm(&front, &mut reader, READ);
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        let load = |raw: &mut Raw, rows: std::ops::Range<i32>, pieces: usize| {
            raw.query("LOAD DATA LOCAL INFILE 'some/file' INTO TABLE t");
            let request = raw.receive().unwrap();
            assert_eq!(request.payload, b"\xfbsome/file");
            let lines: Vec<u8> = rows
                .flat_map(|n| format!("{n}\tfrom a file\n").into_bytes())
                .collect();
            let mut sequence = request.sequence;
            for piece in lines.chunks(lines.len().div_ceil(pieces)) {
                sequence = sequence.wrapping_add(1);
                raw.send(sequence, piece);
            }
            sequence = sequence.wrapping_add(1);
            raw.send(sequence, b"");
            let answer = raw.receive().unwrap();
            assert_eq!(
                (answer.sequence, answer.payload[0]),
                (sequence.wrapping_add(1), 0),
                "{answer:?}"
            );
        };
        load(&mut raw, 1000..1003, 1);
        let expected = direct_bytes(&front, READ);
        let seen = reader.run(READ);
        assert_ne!(seen.outcome, "hit");
        assert_eq!(seen.bytes, expected);
        warm(&front, &mut reader, READ);
        // Many packets, more than numbers for them.
        load(&mut raw, 2000..12_000, 700);
        assert_eq!(counted(&mut reader), 3 + 3 + 10_000);
        // The connection is in step after it, also when the client has no file.
        raw.query("LOAD DATA LOCAL INFILE 'absent' INTO TABLE t");
        let request = raw.receive().unwrap();
        raw.send(request.sequence + 1, b"");
        assert_eq!(raw.receive().unwrap().payload[0], 0);
        raw.query("SELECT 1");
        assert_eq!(raw.receive_answer().len(), 5);
    }

    #[test]
    fn a_call_gives_all_its_results_and_drops_what_it_writes() {
        let mut setup = T.to_vec();
        setup.push("CREATE PROCEDURE p(n INT) BEGIN SELECT a FROM t ORDER BY a; INSERT INTO t VALUES (n, 'called'); SELECT COUNT(*) FROM t; END");
        let front = Front::new("calls", &setup);
        let mut reader = front.guest();
        warm(&front, &mut reader, READ);
        let mut guest = front.guest();
        let answer = guest.run("CALL p(10)");
        assert_eq!(answer.outcome, "write");
        front.direct().query("DELETE FROM t WHERE a = 10").unwrap();
        let deleted = direct_bytes(&front, READ);
        assert_eq!(answer.bytes, direct_bytes(&front, "CALL p(10)"));
        reader.comes_to_hit(READ, &deleted, &direct_bytes(&front, READ));
        guest.run("CALL p(11)");
        assert_eq!(reader.run(READ).bytes, direct_bytes(&front, READ));
    }

    #[test]
    fn statements_of_any_length_arrive_whole_and_drop_results() {
        let front = Front::new(
            "long_text",
            &["CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)"],
        );
        let mut reader = front.guest();
        let lengths = "SELECT a, LENGTH(b), MD5(b) FROM t";
        // Below and above statement_bytes_max (256 KiB), at a packet's limit, and above it.
        for length in [1_000, 300_000, (1 << 24) - 26, (1 << 24) - 1, 17 << 20] {
            warm(&front, &mut reader, lengths);
            let value: String = ('a'..='z').cycle().take(length).collect();
            let mut writer = front.guest();
            let seen = writer.run(&format!("INSERT INTO t (b) VALUES ('{value}')"));
            assert_eq!(seen.bytes[4], 0, "{}", String::from_utf8_lossy(&seen.bytes));
            let seen = reader.run(lengths);
            assert_eq!(seen.bytes, direct_bytes(&front, lengths), "{length}");
            assert_ne!(seen.outcome, "hit");
            // The writer is in step.
            let (seen, _) = writer.value("SELECT MAX(LENGTH(b)) FROM t");
            assert_eq!(seen, Some(length.to_string()));
        }
        // A long read is a read.
        let long_read = format!("SELECT /* {} */ COUNT(*) FROM t", "x".repeat(300_000));
        assert_eq!(
            reader.value(&long_read),
            (Some("5".to_owned()), "text_too_long")
        );
    }

    #[test]
    fn a_query_is_killed_from_another_connection() {
        let front = Front::new("kills", &T);
        let mut sleeper = front
            .options()
            .at(front.remora().address())
            .connect()
            .unwrap();
        let id = sleeper.connection_id();
        let sleeping = std::thread::spawn(move || {
            let code = sleeper
                .query("SELECT a, SLEEP(100) FROM t")
                .map(drop)
                .unwrap_err()
                .code();
            (code, sleeper.query_value("SELECT COUNT(*) FROM t").unwrap())
        });
        let mut root = front.server().root().unwrap();
        let running = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND info LIKE '%SLEEP%'"
        );
        wait_for("the sleeping query", PATIENCE, || {
            Ok((root.query_value(&running)?.as_deref() == Some("1")).then_some(()))
        })
        .unwrap();
        // Not observed: the sleeper's next statement may be counted meanwhile.
        let mut killer = front.guest();
        killer.client().query(&format!("KILL QUERY {id}")).unwrap();
        assert_eq!(sleeping.join().unwrap(), (Some(1317), Some("3".to_owned())));
    }

    /// What is the same however an answer came: everything but the numbers of its packets is in the
    /// payloads, and those too.
    fn pipeline(
        address: std::net::SocketAddr,
        schema: &str,
        statements: &[&str],
    ) -> Vec<Vec<Packet>> {
        let mut raw = Raw::log_in(address, schema);
        let mut bytes = Vec::new();
        for sql in statements {
            bytes.extend(packet(0, &[b"\x03", sql.as_bytes()].concat()));
            bytes.extend(packet(0, b"\x0e"));
        }
        raw.send_bytes(&bytes);
        let answers = (0..statements.len() * 2).map(|number| {
            let mut answer = raw.receive_answer();
            if number % 2 == 1 {
                // MySQL tells with a ping's answer how many warnings the statement before it had,
                // and after a hit that is the last statement that the server saw.
                let payload = &mut answer[0].payload;
                let count_at = payload.len() - 2;
                payload[count_at..].fill(0);
            }
            answer
        });
        answers.collect()
    }

    #[test]
    fn commands_sent_ahead_are_answered_in_order() {
        let front = Front::new("pipelines", &T);
        let statements = [
            "SELECT * FROM t",
            "SELECT * FROM t",
            "SELECT s FROM t WHERE a = 1",
            "UPDATE t SET s = 'uno' WHERE a = 1",
            "SELECT s FROM t WHERE a = 1",
            "SELECT * FROM t",
            "SELECT broken FROM",
            "SELECT s FROM t WHERE a = 1",
            "SELECT FOUND_ROWS()",
            "UPDATE t SET s = 'one' WHERE a = 1",
            "SELECT s FROM t WHERE a = 1",
            "SELECT * FROM t",
            "SELECT * FROM t",
        ];
        let expected = pipeline(front.server().address(), front.schema(), &statements);
        for _ in 0..10 {
            assert_eq!(
                pipeline(front.remora().address(), front.schema(), &statements),
                expected
            );
        }
        wait_for("hits in a pipeline", PATIENCE, || {
            assert_eq!(
                pipeline(front.remora().address(), front.schema(), &statements[..3]),
                expected[..6]
            );
            Ok((front.hits() > 5).then_some(()))
        })
        .unwrap();
    }

    #[test]
    fn a_message_that_comes_byte_by_byte_is_one_message() {
        let front = Front::with("trickle", RemoraOptions::following(), &T);
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        let mut direct = Raw::log_in(front.server().address(), front.schema());
        direct.query(READ);
        let expected = direct.receive_answer();
        for _ in 0..3 {
            for byte in packet(0, &[b"\x03", READ.as_bytes()].concat()) {
                raw.send_bytes(&[byte]);
            }
            assert_eq!(raw.receive_answer(), expected);
        }
    }
}
