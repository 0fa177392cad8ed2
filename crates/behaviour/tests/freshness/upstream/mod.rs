//! The follower, the watermark and the catalogue, without a session: what the log says becomes what
//! may be served.

mod definitions;
mod follower;
mod server;

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use remora_cache::{FenceScope, Position, Tag, Unservable};
use remora_engine::reason::RestartReason;
use remora_engine::reason::TableRefusal;
use remora_upstream::check::{self, Subject};
use remora_upstream::client::ClientError;
use remora_upstream::{UpstreamConfig, UpstreamState};

use self::follower::{Follower, config, table};
use self::server::{ACCOUNT, Kind, PASSWORD, Server, ask, grant, log_in, set_password, wait_until};

fn app_server(options: &[&str]) -> Server {
    let server = Server::start(options);
    server.sql(
        "CREATE DATABASE app;; CREATE TABLE app.a (i INT PRIMARY KEY, v INT);; \
         CREATE TABLE app.b (i INT PRIMARY KEY);; CREATE TABLE app.m (i INT) ENGINE=MyISAM",
    );
    server
}

#[test]
fn a_commit_outdates_the_results_of_its_tables_and_no_others() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    let (a, b) = (follower.as_of(&table("a")), follower.as_of(&table("b")));
    server.sql("INSERT INTO app.a VALUES (1, 1)");
    follower.wait_outdated("the insert is seen", a, &table("a"));
    follower.catch_up();
    follower.assert_servable(b, &table("b"));
    // Uncommitted and rolled-back changes outdate nothing; MyISAM's are never rolled back.
    let a = follower.as_of(&table("a"));
    let m = follower.as_of(&table("m"));
    // With GTIDs, MySQL allows the two only apart.
    let rolled_back = if server.kind.is_mysql() {
        "INSERT INTO app.m VALUES (1);; BEGIN;; INSERT INTO app.a VALUES (2, 2);; ROLLBACK"
    } else {
        "BEGIN;; INSERT INTO app.a VALUES (2, 2);; INSERT INTO app.m VALUES (1);; ROLLBACK"
    };
    server.sql(rolled_back);
    follower.wait_outdated("the MyISAM row is seen", m, &table("m"));
    follower.catch_up();
    follower.assert_servable(a, &table("a"));
}

#[test]
fn changes_that_the_log_cannot_name_outdate_everything() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    for sql in [
        "SET SESSION binlog_format = STATEMENT;; INSERT INTO app.a VALUES (1, 1)",
        "CREATE USER somebody",
        "CREATE DATABASE another",
    ] {
        let b = follower.as_of(&table("b"));
        server.sql(sql);
        follower.wait_outdated(sql, b, &table("b"));
        follower.catch_up();
    }
}

#[test]
fn a_prepared_transaction_outdates_its_tables_when_it_is_committed() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    let a = follower.as_of(&table("a"));
    let prepare = "XA START 'x';; INSERT INTO app.a VALUES (2, 2);; XA END 'x';; XA PREPARE 'x'";
    server.sql(&format!("{prepare};; XA COMMIT 'x'"));
    follower.wait_outdated("the rows are seen", a, &table("a"));
    follower.catch_up();
    if server.kind == Kind::MySql56 {
        // It rolls back what was prepared when the connection ends.
        return;
    }
    server.sql("DELETE FROM app.a");
    let before = follower.as_of(&table("a"));
    server.sql(prepare);
    // The connection that prepared it is gone, or about to be.
    wait_until("another connection commits", || {
        server.try_sql("XA COMMIT 'x'").is_ok()
    });
    follower.wait_outdated("the rows are seen", before, &table("a"));
    follower.catch_up();
    // The watermark goes on behind it.
    follower.as_of(&table("a"));
}

#[test]
fn a_fence_is_lowered_once_the_write_behind_it_has_been_applied() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    for number in 0..50 {
        let before = follower.as_of(&table("a"));
        let fence = follower
            .timeline
            .raise(FenceScope::Tables(table("a").into()));
        server.sql(&format!("INSERT INTO app.a VALUES ({number}, 1)"));
        assert!(follower.check(before, &table("a")).is_err());
        fence.answered();
        follower.shared.wake();
        let mut seen = Ok(());
        wait_until("the fence is lowered, and the follower proven", || {
            seen = follower.check(before, &table("a"));
            !matches!(
                seen,
                Err(Unservable::Fenced | Unservable::Behind | Unservable::NotLive)
            )
        });
        assert!(matches!(seen, Err(Unservable::Changed(_))), "{seen:?}");
    }
}

#[test]
fn accounts_and_the_schema_mysql_count_as_privileges() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    for sql in [
        "CREATE USER u@localhost IDENTIFIED BY 'x'",
        "GRANT SELECT ON app.* TO u@localhost",
        "INSERT INTO mysql.time_zone_name VALUES ('x', 1)",
        // What isn't read may be about accounts.
        "SET sql_mode = ANSI_QUOTES;; GRANT INSERT ON \"app\".* TO u@localhost",
    ] {
        let epoch = follower.shared.privilege_epoch();
        server.sql(sql);
        wait_until(sql, || follower.shared.privilege_epoch() > epoch);
    }
    follower.catch_up();
    let epoch = follower.shared.privilege_epoch();
    server.sql("CREATE VIEW app.v AS SELECT i FROM app.a;; CREATE DATABASE d;; DROP DATABASE d");
    follower.catch_up();
    assert_eq!(follower.shared.privilege_epoch(), epoch);
}

const TABLES: &str = "CREATE DATABASE other;; \
    CREATE TABLE app.child (i INT PRIMARY KEY, p INT, \
      FOREIGN KEY (p) REFERENCES app.a (i) ON DELETE CASCADE);; \
    CREATE TABLE other.grandchild (i INT, c INT, \
      FOREIGN KEY (c) REFERENCES app.child (i) ON UPDATE SET NULL);; \
    CREATE TABLE app.keeps (i INT, p INT, FOREIGN KEY (p) REFERENCES app.a (i));; \
    CREATE TABLE app.last (i INT, c INT, \
      FOREIGN KEY (c) REFERENCES app.child (i) ON UPDATE CASCADE);; \
    CREATE VIEW app.v AS SELECT * FROM app.a;; \
    CREATE TABLE app.parts (i INT) PARTITION BY HASH (i) PARTITIONS 2;; \
    CREATE TABLE app.csv (i INT NOT NULL) ENGINE=CSV;; \
    CREATE TABLE app.memory (i INT) ENGINE=MEMORY;; \
    CREATE TABLE app.hours (opens TIME);; \
    CREATE TABLE app.trig (i INT);; \
    CREATE TRIGGER app.t BEFORE INSERT ON app.trig FOR EACH ROW SET @x = 1;; \
    CREATE TABLE app.`back\\slash` (i INT);; \
    CREATE TABLE app.`it's` (i INT)";
const TABLES_OF_MARIADB: &str = "CREATE SEQUENCE app.s;; \
    CREATE TABLE app.versioned (i INT) WITH SYSTEM VERSIONING;; \
    CREATE TABLE app.aria (i INT) ENGINE=Aria";

#[test]
fn the_catalogue_knows_tables_and_hears_of_ddl() {
    let server = app_server(&[]);
    server.sql(TABLES);
    let mut refused = vec![
        ("v", TableRefusal::ViewHidden),
        ("m", TableRefusal::VisibleLate),
        ("csv", TableRefusal::Engine),
        ("absent", TableRefusal::Missing),
        ("A", TableRefusal::Missing),
    ];
    let mut cached = vec!["parts", "it's", "back\\slash", "child", "hours"];
    if server.kind.is_mysql() {
        cached.push("memory");
    } else {
        server.sql(TABLES_OF_MARIADB);
        refused.extend([
            ("memory", TableRefusal::VisibleLate),
            ("s", TableRefusal::Sequence),
            ("versioned", TableRefusal::SystemVersioned),
            ("aria", TableRefusal::VisibleLate),
        ]);
    }
    let follower = Follower::start_live(&server);
    let a = follower.facts("a");
    assert_eq!(a.cacheable, Ok(()));
    assert!(a.is_transactional && a.writes_are_foreseeable);
    let names: Vec<_> = a
        .cascades_to
        .iter()
        .map(|(s, t)| format!("{s}.{t}"))
        .collect();
    assert_eq!(names, ["app.child", "app.last", "other.grandchild"]);
    // What is read from a child depends on its parents too.
    let parents = |table: &str| -> Vec<Tag> {
        let facts = follower.facts(table);
        facts.cascade_parents.iter().map(|it| it.tag).collect()
    };
    let ancestors = [Tag::table("app", "a"), Tag::table("app", "child")];
    assert_eq!(parents("last"), ancestors);
    assert_eq!(parents("keeps"), []);
    let m = follower.facts("m");
    assert!(!m.is_transactional && m.writes_are_foreseeable);
    for name in cached {
        assert_eq!(follower.facts(name).cacheable, Ok(()), "{name}");
    }
    assert!(!follower.facts("trig").writes_are_foreseeable);
    for (name, why) in refused {
        assert_eq!(follower.facts(name).cacheable, Err(why), "{name}");
    }
    server.sql("CREATE TRIGGER app.u BEFORE INSERT ON app.a FOR EACH ROW SET @x = 1");
    wait_until("the trigger is seen", || {
        !follower.facts("a").writes_are_foreseeable
    });
    server.sql("CREATE TABLE app.absent (i INT)");
    wait_until("the table is seen", || {
        follower.facts("absent").cacheable.is_ok()
    });
    server.sql("ALTER TABLE app.keeps ADD FOREIGN KEY (p) REFERENCES app.a (i) ON DELETE SET NULL");
    wait_until("the foreign key is seen", || {
        parents("keeps") == [Tag::table("app", "a")]
    });
}

/// InnoDB's own list of foreign keys cuts such names off, so that they can be another table's, or
/// leaves the key out.
#[test]
fn foreign_keys_of_tables_with_long_names_are_known() {
    let server = app_server(&[]);
    // Each `-` takes five characters in a file's name.
    let common = format!("{}abcd", "-".repeat(37));
    let [parent, child] = ["parent", "child"].map(|end| format!("{common}_{end}"));
    server.sql(&format!(
        "CREATE TABLE app.`{common}` (i INT PRIMARY KEY);; \
         CREATE TABLE app.`{parent}` (i INT PRIMARY KEY);; \
         CREATE TABLE app.`{child}` (i INT, FOREIGN KEY (i) REFERENCES app.`{parent}` (i) \
           ON DELETE CASCADE)"
    ));
    server.sql("GRANT PROCESS ON *.* TO remora@'127.0.0.1'");
    let follower = Follower::start_live(&server);
    let cascades = |table: &str| follower.facts(table).cascades_to.clone();
    assert_eq!(cascades(&parent), [("app".to_owned(), child)]);
    assert_eq!(cascades(&common), []);
}

/// Managed servers note every few minutes that they are alive.
#[test]
fn what_a_provider_writes_beside_the_accounts_outdates_nothing() {
    let server = app_server(&[]);
    server.sql("CREATE TABLE mysql.rds_heartbeat2 (id INT PRIMARY KEY, value BIGINT)");
    let follower = Follower::start_live(&server);
    let a = follower.as_of(&table("a"));
    server.sql("INSERT INTO mysql.rds_heartbeat2 VALUES (1, 1)");
    server.sql("UPDATE mysql.rds_heartbeat2 SET value = 2");
    follower.catch_up();
    follower.assert_servable(a, &table("a"));
}

/// The log file was begun under another number.
#[test]
fn a_server_is_followed_after_its_number_has_changed() {
    let server = app_server(&[]);
    server.sql("SET GLOBAL server_id = 4242");
    let follower = Follower::start_live(&server);
    let a = follower.as_of(&table("a"));
    server.sql("INSERT INTO app.a VALUES (1, 1)");
    follower.wait_outdated("the insert is seen", a, &table("a"));
}

/// With a limit of its own a server would leave tables out that are locked for longer.
#[test]
fn questions_wait_for_locks_as_long_as_it_takes() {
    let server = app_server(&[]);
    server.sql("SET GLOBAL lock_wait_timeout = 1");
    let waits = ask(&server.endpoint(), "SELECT @@lock_wait_timeout");
    assert_eq!(waits, "31536000");
}

#[test]
fn a_lost_connection_forgets_nothing_if_the_log_goes_on() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    let (a, b) = (follower.as_of(&table("a")), follower.as_of(&table("b")));
    for round in 0..6 {
        let command = if round % 2 == 0 {
            "Binlog Dump"
        } else {
            "Sleep"
        };
        // Only connections that are open now, not their replacements: on a slow machine none of
        // those would ever get ready.
        let newest = server.newest_connection_id();
        let what = &format!("COMMAND = '{command}' AND ID <= {newest}");
        let connections = || follower.shared.counters.connections.load(Ordering::Relaxed);
        let before = connections();
        // It may be doing something else just now.
        wait_until("a connection to end", || server.kill(what) > 0);
        if round % 3 == 2 {
            server.sql("FLUSH BINARY LOGS");
        }
        server.sql(&format!("INSERT INTO app.a VALUES ({}, 1)", 100 + round));
        wait_until("a new connection", || {
            connections() > before || {
                // It may have been one that was ending, or only looked something up.
                server.kill(what);
                false
            }
        });
        follower.wait_live();
        follower.catch_up();
    }
    assert!(follower.check(a, &table("a")).is_err());
    follower.assert_servable(b, &table("b"));
    assert_eq!(follower.restarts(RestartReason::FirstStart), 1);
    assert_eq!(
        follower
            .shared
            .restarts()
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>(),
        1
    );
}

/// Whatever is done to the log, nothing from before is served after it.
fn forgets(reason: &[RestartReason], act: impl FnOnce(&mut Server)) {
    let mut server = app_server(&[]);
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    let b = follower.as_of(&table("b"));
    act(&mut server);
    wait_until("everything is forgotten", || {
        let outdated = follower
            .timeline
            .outdated(b, table("b").into_iter())
            .is_some();
        outdated && reason.iter().any(|reason| follower.restarts(*reason) > 0)
    });
    follower.wait_live();
    assert!(follower.check(b, &table("b")).is_err());
    let b = follower.as_of(&table("b"));
    server.sql("INSERT INTO app.b VALUES (777)");
    follower.wait_outdated("the log is followed again", b, &table("b"));
}

#[test]
fn a_server_that_was_shut_down_and_started_again_is_followed_anew() {
    forgets(&[RestartReason::ServerRestarted], |server| {
        server.restart();
    });
}

#[test]
fn a_server_that_crashed_is_followed_anew() {
    forgets(&[RestartReason::ServerRestarted], |server| {
        server.crash_and_start();
    });
}

#[test]
fn another_server_on_the_same_port_is_followed_anew() {
    let reasons = [
        RestartReason::LogChanged,
        RestartReason::LogPurged,
        RestartReason::LogUnreadable,
        RestartReason::PositionWentBack,
        // Remora was there before its account had been given its privileges.
        RestartReason::ServerUnsuitable,
    ];
    forgets(&reasons, |server| {
        server.replace();
        server.sql("CREATE DATABASE app;; CREATE TABLE app.b (i INT PRIMARY KEY)");
    });
}

#[test]
fn a_log_that_was_reset_is_followed_anew() {
    let reasons = [
        RestartReason::PositionWentBack,
        RestartReason::LogChanged,
        RestartReason::LogPurged,
        RestartReason::ServerRestarted,
        RestartReason::LogUnreadable,
    ];
    forgets(&reasons, |server| {
        server.sql("RESET MASTER");
    });
    forgets(&reasons, |server| {
        server.sql("FLUSH BINARY LOGS;; FLUSH BINARY LOGS;; RESET MASTER");
    });
    forgets(&reasons, |server| {
        // The new log has as many transactions as the old one before anybody looks: setting up made
        // the accounts, the schema and three tables, and then there was a row.
        let executed = if server.kind.is_mysql() {
            let row = server.sql("SELECT @@global.gtid_executed").remove(0);
            let text = String::from_utf8(row[0].clone().unwrap()).unwrap();
            let last = text.rsplit('-').next().unwrap();
            last.parse().unwrap()
        } else {
            7
        };
        let same: Vec<_> = (0..executed)
            .map(|i| format!("REPLACE INTO app.b VALUES ({i})"))
            .collect();
        server.sql(&format!("RESET MASTER;; {}", same.join(";; ")));
    });
    forgets(&reasons, |server| {
        // The new log is longer than the old one before anybody looks.
        let fill: Vec<_> = (0..200)
            .map(|i| format!("REPLACE INTO app.b VALUES ({i})"))
            .collect();
        server.sql(&format!("RESET MASTER;; {}", fill.join(";; ")));
    });
}

#[test]
fn a_log_that_was_purged_while_away_is_followed_anew() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    let b = follower.as_of(&table("b"));
    // The account is locked out for a while.
    server.sql(&set_password(server.kind, ACCOUNT, "other"));
    server.kill("TRUE");
    wait_until("the account is refused", || {
        matches!(follower.shared.state(), UpstreamState::Refused(_))
    });
    assert_eq!(follower.check(b, &table("b")), Err(Unservable::NotLive));
    server.sql("FLUSH BINARY LOGS;; FLUSH BINARY LOGS");
    let newest = server.sql("SHOW MASTER STATUS")[0][0].clone().unwrap();
    let newest = String::from_utf8(newest).unwrap();
    wait_until("the log is purged", || {
        server.sql(&format!("PURGE BINARY LOGS TO '{newest}'"));
        server.sql("SHOW BINARY LOGS").len() == 1
    });
    server.sql(&set_password(server.kind, ACCOUNT, PASSWORD));
    follower.wait_live();
    assert_eq!(follower.restarts(RestartReason::LogPurged), 1);
    assert!(follower.check(b, &table("b")).is_err());
}

#[test]
fn what_keeps_caching_off_is_named_and_fixed_while_running() {
    let server = app_server(&[]);
    server.sql("REVOKE TRIGGER ON *.* FROM remora@'127.0.0.1';; SET GLOBAL binlog_format = MIXED");
    let follower = Follower::start(config(&server));
    let mut subjects = Vec::new();
    wait_until("findings", || {
        if let UpstreamState::CachingOff(findings) = follower.shared.state() {
            let off = |finding: &&check::Finding| finding.severity == check::Severity::CachingOff;
            subjects = findings
                .iter()
                .filter(off)
                .map(|finding| finding.subject)
                .collect();
        }
        !subjects.is_empty()
    });
    assert_eq!(subjects, [Subject::LogFormat, Subject::Privileges]);
    assert!(follower.timeline.as_of().is_none());
    let grant = grant(server.kind, ACCOUNT);
    server.sql(&format!("SET GLOBAL binlog_format = ROW;; {grant}"));
    follower.wait_live();
}

#[test]
fn a_server_that_does_not_answer_stops_hits_and_keeps_fences() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    let b = follower.as_of(&table("b"));
    let id = server.id();
    let signal = |name: &str| Command::new("kill").args([name, &id]).status().unwrap();
    signal("-STOP");
    wait_until("the server is stopped", || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        status
            .lines()
            .any(|line| line.starts_with("State:") && line.contains("stopped"))
    });
    follower
        .timeline
        .raise(FenceScope::Tables(table("b").into()))
        .answered();
    follower.shared.wake();
    wait_until("hits stop", || {
        follower.check(b, &table("b")) != Err(Unservable::Fenced)
    });
    assert!(matches!(
        follower.check(b, &table("b")),
        Err(Unservable::NotLive | Unservable::Behind)
    ));
    signal("-CONT");
    follower.wait_live();
    wait_until("hits again", || follower.check(b, &table("b")).is_ok());
}

#[test]
fn many_writers_are_followed_without_a_gap() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (server, follower, failures) = (&server, &follower, &failures);
            scope.spawn(move || {
                for number in 0..40 {
                    let key = writer * 1_000 + number;
                    server.sql(&format!("REPLACE INTO app.a VALUES ({key}, {number})"));
                    follower.catch_up();
                    let before = follower.timeline.visible();
                    if follower.timeline.applied() < before {
                        failures.lock().unwrap().push(key);
                    }
                }
            });
        }
    });
    assert_eq!(*failures.lock().unwrap(), Vec::<i32>::new());
}

#[test]
fn a_quiet_log_is_told_from_a_dead_connection() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counters = &follower.shared.counters;
    // A connection counts as dead after a second, and a machine may stand still for one. A follower
    // that always takes a quiet connection for dead never sees so many heartbeats on one.
    let now = || (read(&counters.connections), read(&counters.events));
    let mut since = now();
    wait_until("heartbeats", || {
        let (connections, events) = now();
        if connections != since.0 {
            since = (connections, events);
        }
        events > since.1 + 30
    });
}

/// A MySQL that tells of no commit is understood once every connection has been seen idle. Nobody
/// asks for that while nothing is served, and the next probe may be far off.
#[test]
fn a_statement_that_runs_at_the_start_does_not_hold_up_serving_once_it_has_ended() {
    let server = app_server(&[]);
    if server.kind.skips(
        server.kind != Kind::MySql56,
        "it tells what was committed before the start",
    ) {
        return;
    }
    std::thread::scope(|scope| {
        let running = "FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'";
        let long = scope.spawn(|| server.try_sql("SELECT SLEEP(600)"));
        let running = || server.sql(&format!("SELECT ID {running}"));
        wait_until("the statement to run", || !running().is_empty());
        let follower = Follower::start(UpstreamConfig {
            lag_ms_max: 10_000_000,
            ..config(&server)
        });
        let asks = || follower.shared.counters.asks.load(Ordering::Relaxed);
        wait_until("questions without a wish", || asks() >= 4);
        assert_eq!(follower.timeline.as_of(), None);
        let id = String::from_utf8(running()[0][0].clone().unwrap()).unwrap();
        server.sql(&format!("KILL QUERY {id}"));
        let _ = long.join().unwrap();
        wait_until("proof", || follower.timeline.as_of().is_some());
    });
}

/// Behind the last event of a file the server may send heartbeats until it has begun the next,
/// which takes seconds for a file of a gigabyte: they say where the old file ended. Taken for a
/// place in the next file, that was beyond everything, and fences were lowered before their writes
/// had been seen.
#[test]
fn heartbeats_between_two_files_move_nothing_on() {
    let server = app_server(&["--max-allowed-packet=128M"]);
    server.sql("CREATE TABLE app.long_rows (v LONGBLOB)");
    let follower = Follower::start(UpstreamConfig {
        heartbeat_ms: 1,
        ..config(&server)
    });
    follower.wait_live();
    for round in 0..20 {
        server.sql(
            "INSERT INTO app.long_rows VALUES (REPEAT('x', 4000000));; DELETE FROM app.long_rows;; \
             FLUSH BINARY LOGS",
        );
        server.sql(&format!("INSERT INTO app.b VALUES ({round})"));
        follower.catch_up();
        // Before the log's end is asked for: a server may write a checkpoint at any time.
        let applied = follower.timeline.applied();
        let end = server.sql("SHOW MASTER STATUS").remove(0);
        let text = |at: usize| String::from_utf8(end[at].clone().unwrap()).unwrap();
        let number = text(0).rsplit('.').next().unwrap().parse().unwrap();
        let end = Position::new(number, text(1).parse().unwrap()).unwrap();
        assert!(applied <= end, "{applied} of {end} in round {round}");
    }
}

#[test]
fn an_event_too_long_to_hold_still_names_its_table() {
    let server = app_server(&["--max-allowed-packet=128M"]);
    server.sql("CREATE TABLE app.long_rows (v LONGBLOB)");
    let follower = Follower::start_live(&server);
    let (long, b) = (
        follower.as_of(&table("long_rows")),
        follower.as_of(&table("b")),
    );
    // MySQL 5.6 takes no row that is larger than a tenth of InnoDB's own log.
    let bytes = if server.kind == Kind::MySql56 {
        4_000_000
    } else {
        40_000_000
    };
    server.sql(&format!(
        "INSERT INTO app.long_rows VALUES (REPEAT('x', {bytes}))"
    ));
    follower.wait_outdated("the long row is seen", long, &table("long_rows"));
    follower.catch_up();
    follower.assert_servable(b, &table("b"));
    assert_eq!(
        follower
            .shared
            .counters
            .events_oversized
            .load(Ordering::Relaxed),
        1
    );
    let b = follower.as_of(&table("b"));
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.wait_outdated("the log goes on", b, &table("b"));
}

/// Transactions that are in the server's set and in no log: everything is forgotten, and hits come
/// back.
#[test]
fn transactions_that_were_never_logged_outdate_everything_and_do_not_stop_hits() {
    let server = app_server(&[]);
    if server.kind != Kind::MySql80 {
        // Only there can transactions be declared executed beside others.
        return;
    }
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    for number in 0..3 {
        let b = follower.as_of(&table("b"));
        let first = number * 10 + 1;
        server.sql(&format!(
            "SET GLOBAL gtid_purged = '+aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:{first}-{}';; \
             INSERT INTO app.a VALUES ({number}, 1)",
            first + 5
        ));
        // They may have changed it.
        follower.wait_outdated("they are noticed", b, &table("b"));
        follower.wait_live();
        assert_eq!(
            follower.restarts(RestartReason::ChangesUnlogged),
            number + 1
        );
    }
    let a = follower.as_of(&table("a"));
    server.sql("INSERT INTO app.a VALUES (100, 1)");
    follower.wait_outdated("commits are seen", a, &table("a"));
}

/// Proofs wait for the first answer that names such a transaction, until the server is also asked
/// where its log ended then. Meanwhile transactions ask for the log's end alone.
#[test]
fn questions_for_the_end_of_the_log_do_not_hide_transactions_that_were_never_logged() {
    let server = app_server(&[]);
    if server.kind != Kind::MySql80 {
        // Only there can transactions be declared executed beside others.
        return;
    }
    let mut config = config(&server);
    // Nobody asks unless somebody wants it.
    config.lag_ms_max = 1_000_000;
    let follower = Follower::start(config);
    follower.wait_live();
    server.sql("SET GLOBAL gtid_purged = '+aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1'");
    let fence = FenceScope::Tables(table("a").to_vec());
    follower.timeline.raise(fence).answered();
    follower.shared.wake();
    wait_until("they are noticed", || {
        follower.shared.ask_for_end();
        follower.restarts(RestartReason::ChangesUnlogged) > 0
    });
    follower.wait_live();
}

#[test]
fn commits_that_become_visible_in_any_order_are_followed() {
    let server = app_server(&["--binlog-order-commits=OFF"]);
    if !server.kind.is_mysql() {
        // Nothing is cached there.
        return;
    }
    let follower = Follower::start_live(&server);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (server, follower) = (&server, &follower);
            scope.spawn(move || {
                for number in 0..20 {
                    let key = writer * 1_000 + number;
                    server.sql(&format!("REPLACE INTO app.a VALUES ({key}, {number})"));
                    follower.catch_up();
                }
            });
        }
    });
    let a = follower.as_of(&table("a"));
    assert!(a.position() > remora_cache::Position::ZERO);
}

/// Remora's own accounts may use any plugin that the server has for passwords.
#[test]
fn each_password_plugin_lets_remora_in() {
    let server = app_server(&[]);
    if server.kind != Kind::MySql80 {
        // The older ones here were built without TLS, and so without RSA.
        return;
    }
    let password = "se cret'\u{e4}";
    for plugin in [
        "mysql_native_password",
        "caching_sha2_password",
        "sha256_password",
    ] {
        server.sql(&format!(
            "CREATE USER {plugin}@'127.0.0.1' IDENTIFIED WITH {plugin} BY 'se cret''\u{e4}';; \
             CREATE USER {plugin}@localhost IDENTIFIED WITH {plugin} BY 'se cret''\u{e4}'"
        ));
        // The first time the server needs the password itself, then its cache may do.
        for _ in 0..2 {
            for endpoint in [server.endpoint(), server.socket()] {
                let result = log_in(&endpoint, plugin, password);
                assert!(result.is_ok(), "{plugin} {endpoint}: {result:?}");
                let result = log_in(&endpoint, plugin, "other");
                let code = result.as_ref().err().and_then(ClientError::server_code);
                assert_eq!(code, Some(1045), "{plugin} {endpoint}: {result:?}");
                let result = log_in(&endpoint, plugin, "");
                let code = result.as_ref().err().and_then(ClientError::server_code);
                assert_eq!(code, Some(1045), "{plugin} {endpoint}: {result:?}");
            }
        }
    }
}
