//! The follower's side against a real MariaDB: private, on its own port, ended with the test.

#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use remora::clock::Clock;
use remora::net::Endpoint;
use remora::upstream::catalogue::{Lookup, TableFacts, TableRefusal};
use remora::upstream::check::{self, Subject};
use remora::upstream::client::{Account, Client};
use remora::upstream::{
    self, RestartReason, UpstreamConfig, UpstreamShared, UpstreamState, server_facts,
};
use remora_cache::{AsOf, BrokenRules, FenceScope, Tag, Timeline, TimelineLimits, Unservable};
use remora_wire::rows::Row;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_mins(1);
const LAG_MS_MAX: u64 = 1_000;

/// Waits for a condition; a failure says which.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A data directory as the server's installer leaves it; made once.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("mariadb-install-db")
            .args([
                "--no-defaults",
                "--user=root",
                "--auth-root-authentication-method=normal",
            ])
            .args([
                "--skip-test-db",
                &format!("--datadir={}", dir.path().display()),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        dir
    });
    made.path()
}

struct Server {
    dir: TempDir,
    port: u16,
    options: Vec<String>,
    child: Option<Child>,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Server {
            dir: tempfile::tempdir().unwrap(),
            port,
            options,
            child: None,
        };
        server.fresh_data();
        server.launch();
        server
    }

    fn fresh_data(&self) {
        let data = self.dir.path().join("data");
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(template(), &data);
    }

    fn launch(&mut self) {
        let dir = self.dir.path().display();
        let child = Command::new("mariadbd")
            .args([
                "--no-defaults",
                "--user=root",
                "--bind-address=127.0.0.1",
                "--server-id=41",
            ])
            .args([
                format!("--datadir={dir}/data"),
                format!("--socket={dir}/socket"),
            ])
            .args([
                format!("--port={}", self.port),
                "--innodb-buffer-pool-size=16M".into(),
            ])
            .args([
                "--log-bin=binlog",
                "--binlog-format=ROW",
                "--performance-schema=OFF",
            ])
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        wait_until("the server accepts connections", || {
            self.try_sql("SELECT 1").is_some()
        });
        self.sql("CREATE OR REPLACE USER remora@'127.0.0.1' IDENTIFIED BY 'secret'");
        let family = server_facts::Family::MariaDb;
        self.sql(&check::grant_statement(family, "remora@'127.0.0.1'"));
    }

    /// Ends it by its own process id.
    fn stop(&mut self, signal: &str) {
        if let Some(mut child) = self.child.take() {
            let _ = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status();
            let _ = child.wait();
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: self.port,
        }
    }

    fn try_sql(&self, sql: &str) -> Option<Vec<Row>> {
        let account = Account {
            user: "root".into(),
            password: String::new(),
        };
        let limit = Duration::from_secs(10);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            // root is root@localhost: over the socket.
            let endpoint = Endpoint::Unix(self.dir.path().join("socket"));
            let mut client = Client::connect(&endpoint, &account, limit, limit)
                .await
                .ok()?;
            client
                .execute("SET SESSION sql_mode = DEFAULT")
                .await
                .ok()?;
            let mut rows = Vec::new();
            for statement in sql.split(";;") {
                let result = client.query(statement, 10_000).await;
                rows = result.unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
            Some(rows)
        })
    }

    /// Statements, separated by two semicolons, on one connection of root's.
    fn sql(&self, sql: &str) -> Vec<Row> {
        self.try_sql(sql).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("-KILL");
    }
}

/// A running follower.
struct Follower {
    shared: Arc<UpstreamShared>,
    timeline: Arc<Timeline>,
    clock: Clock,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn config(server: &Server) -> UpstreamConfig {
    UpstreamConfig {
        endpoint: server.endpoint(),
        account: Account {
            user: "remora".into(),
            password: "secret".into(),
        },
        server_id: 3_000_000_001,
        lag_ms_max: LAG_MS_MAX,
        ask_interval_us_min: 500,
        connect_timeout_ms: 2_000,
        query_timeout_ms: 2_000,
        reconnect_ms_min: 5,
        reconnect_ms_max: 100,
        catalogue_tables_max: 1_000,
        catalogue_queue_max: 100,
        transaction_tables_max: 16,
        event_bytes_max: 1 << 20,
        heartbeat_ms: 100,
    }
}

impl Follower {
    fn start(config: UpstreamConfig) -> Follower {
        let limits = TimelineLimits {
            tag_slots: 4_096,
            fence_slots: 4_096,
            lag_ms_max: LAG_MS_MAX,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        let clock = Clock::start();
        let shared = Arc::new(UpstreamShared::new(&config, Arc::clone(&timeline), clock));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = {
            let (timeline, shared) = (Arc::clone(&timeline), Arc::clone(&shared));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(upstream::run(config, timeline, shared, async {
                    let _ = stopped.await;
                }));
            })
        };
        Follower {
            shared,
            timeline,
            clock,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn start_live(server: &Server) -> Follower {
        let follower = Follower::start(config(server));
        follower.wait_live();
        follower
    }

    fn wait_live(&self) {
        wait_until("the follower is live", || {
            self.shared.state() == UpstreamState::Following { lagging: false }
        });
    }

    /// A watermark at which nothing of `tags` is known to be newer: what a fill would take.
    fn as_of(&self, tags: &[Tag]) -> AsOf {
        let mut as_of = None;
        wait_until("a fresh watermark", || {
            if self.timeline.needs_fresher_watermark(tags) {
                self.shared.wake();
                return false;
            }
            as_of = self.timeline.as_of();
            as_of.is_some_and(|as_of| self.check(as_of, tags).is_ok())
        });
        as_of.unwrap()
    }

    fn check(&self, as_of: AsOf, tags: &[Tag]) -> Result<(), Unservable> {
        self.timeline.check(as_of, tags, self.clock.now_ms())
    }

    fn wait_outdated(&self, what: &str, as_of: AsOf, tags: &[Tag]) {
        wait_until(what, || {
            self.timeline
                .outdated(as_of, tags.iter().copied())
                .is_some()
        });
    }

    /// Everything that the server has now has been applied: as a fence would wait for it.
    fn catch_up(&self) {
        let tag = Tag::table("nowhere", "fence");
        self.timeline
            .raise(FenceScope::Tables(vec![tag]))
            .answered();
        self.shared.wake();
        wait_until("the fence is lowered", || {
            self.timeline
                .as_of()
                .is_some_and(|as_of| self.check(as_of, &[tag]).is_ok())
        });
    }

    fn facts(&self, table: &str) -> Arc<TableFacts> {
        let mut facts = None;
        wait_until(table, || {
            if let Lookup::Known(known) = self.shared.catalogue.lookup("app", table) {
                facts = Some(known);
            }
            facts.is_some()
        });
        facts.unwrap()
    }

    fn restarts(&self, reason: RestartReason) -> u64 {
        let label = reason.as_str();
        self.shared
            .restarts()
            .into_iter()
            .find(|(name, _)| *name == label)
            .unwrap()
            .1
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

fn table(name: &str) -> [Tag; 1] {
    [Tag::table("app", name)]
}

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
    assert_eq!(follower.check(b, &table("b")), Ok(()));
    // Uncommitted and rolled-back changes outdate nothing; MyISAM's are never rolled back.
    let a = follower.as_of(&table("a"));
    let m = follower.as_of(&table("m"));
    server.sql("BEGIN;; INSERT INTO app.a VALUES (2, 2);; INSERT INTO app.m VALUES (1);; ROLLBACK");
    follower.wait_outdated("the MyISAM row is seen", m, &table("m"));
    follower.catch_up();
    assert_eq!(follower.check(a, &table("a")), Ok(()));
}

#[test]
fn changes_that_the_log_cannot_name_outdate_everything() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    for sql in [
        "SET SESSION binlog_format = STATEMENT;; INSERT INTO app.a VALUES (1, 1)",
        "XA START 'x';; INSERT INTO app.a VALUES (2, 2);; XA END 'x';; XA PREPARE 'x';; XA COMMIT 'x'",
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
        wait_until("the fence is lowered", || {
            follower.check(before, &table("a")) != Err(Unservable::Fenced)
        });
        assert!(matches!(
            follower.check(before, &table("a")),
            Err(Unservable::Changed(_))
        ));
    }
}

#[test]
fn accounts_and_the_schema_mysql_count_as_privileges() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    for sql in [
        "CREATE USER u@localhost IDENTIFIED BY 'x'",
        "GRANT SELECT ON app.* TO u@localhost",
        "UPDATE mysql.global_priv SET Priv = Priv WHERE User = 'nobody';; \
         INSERT INTO mysql.time_zone_name VALUES ('x', 1)",
    ] {
        let epoch = follower.shared.privilege_epoch();
        server.sql(sql);
        wait_until(sql, || follower.shared.privilege_epoch() > epoch);
    }
}

#[test]
fn the_catalogue_knows_tables_and_hears_of_ddl() {
    let server = app_server(&[]);
    server.sql(
        "CREATE DATABASE other;; \
         CREATE TABLE app.child (i INT PRIMARY KEY, p INT, \
           FOREIGN KEY (p) REFERENCES app.a (i) ON DELETE CASCADE);; \
         CREATE TABLE other.grandchild (i INT, c INT, \
           FOREIGN KEY (c) REFERENCES app.child (i) ON UPDATE SET NULL);; \
         CREATE TABLE app.keeps (i INT, p INT, FOREIGN KEY (p) REFERENCES app.a (i));; \
         CREATE VIEW app.v AS SELECT * FROM app.a;; CREATE SEQUENCE app.s;; \
         CREATE TABLE app.versioned (i INT) WITH SYSTEM VERSIONING;; \
         CREATE TABLE app.virt (i INT, d INT AS (i + 1) VIRTUAL);; \
         CREATE TABLE app.parts (i INT) PARTITION BY HASH (i) PARTITIONS 2;; \
         CREATE TABLE app.csv (i INT NOT NULL) ENGINE=CSV;; \
         CREATE TABLE app.aria (i INT) ENGINE=Aria;; \
         CREATE TABLE app.hours (opens TIME);; \
         CREATE TABLE app.trig (i INT);; \
         CREATE TRIGGER app.t BEFORE INSERT ON app.trig FOR EACH ROW SET @x = 1;; \
         CREATE TABLE app.`it's` (i INT)",
    );
    let follower = Follower::start_live(&server);
    let a = follower.facts("a");
    assert_eq!(a.cacheable, Ok(()));
    assert!(a.is_transactional && a.writes_are_foreseeable);
    let names: Vec<_> = a
        .cascades_to
        .iter()
        .map(|(s, t)| format!("{s}.{t}"))
        .collect();
    assert_eq!(names, ["app.child", "other.grandchild"]);
    let m = follower.facts("m");
    assert!(!m.is_transactional && m.writes_are_foreseeable);
    assert_eq!(follower.facts("parts").cacheable, Ok(()));
    assert_eq!(follower.facts("it's").cacheable, Ok(()));
    assert!(!follower.facts("trig").writes_are_foreseeable);
    for (name, why) in [
        ("v", TableRefusal::View),
        ("s", TableRefusal::Sequence),
        ("versioned", TableRefusal::SystemVersioned),
        ("virt", TableRefusal::VirtualColumns),
        ("m", TableRefusal::VisibleLate),
        ("aria", TableRefusal::VisibleLate),
        ("hours", TableRefusal::TimeColumns),
        ("csv", TableRefusal::Engine),
        ("absent", TableRefusal::Missing),
        ("A", TableRefusal::Missing),
    ] {
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
}

#[test]
fn a_lost_connection_forgets_nothing_if_the_log_goes_on() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    server.sql("INSERT INTO app.b VALUES (1)");
    follower.catch_up();
    let (a, b) = (follower.as_of(&table("a")), follower.as_of(&table("b")));
    for round in 0..6 {
        let what = if round % 2 == 0 {
            "COMMAND = 'Binlog Dump'"
        } else {
            "COMMAND = 'Sleep'"
        };
        let connections = || follower.shared.counters.connections.load(Ordering::Relaxed);
        let before = connections();
        kill(&server, what);
        if round % 3 == 2 {
            server.sql("FLUSH BINARY LOGS");
        }
        server.sql(&format!("INSERT INTO app.a VALUES ({}, 1)", 100 + round));
        wait_until("a new connection", || connections() > before);
        follower.wait_live();
        follower.catch_up();
    }
    assert!(follower.check(a, &table("a")).is_err());
    assert_eq!(follower.check(b, &table("b")), Ok(()));
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
        server.stop("-TERM");
        server.launch();
    });
}

#[test]
fn a_server_that_crashed_is_followed_anew() {
    forgets(&[RestartReason::ServerRestarted], |server| {
        server.stop("-KILL");
        server.launch();
    });
}

#[test]
fn another_server_on_the_same_port_is_followed_anew() {
    let reasons = [
        RestartReason::LogChanged,
        RestartReason::LogPurged,
        RestartReason::LogUnreadable,
    ];
    forgets(&reasons, |server| {
        server.stop("-KILL");
        server.fresh_data();
        server.launch();
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
    server.sql("ALTER USER remora@'127.0.0.1' IDENTIFIED BY 'other'");
    kill(&server, "TRUE");
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
    server.sql("ALTER USER remora@'127.0.0.1' IDENTIFIED BY 'secret'");
    follower.wait_live();
    assert_eq!(follower.restarts(RestartReason::LogPurged), 1);
    assert!(follower.check(b, &table("b")).is_err());
}

/// Ends the follower's connections, or those of them that do this.
fn kill(server: &Server, condition: &str) {
    let ids = server.sql(&format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'remora' AND {condition}"
    ));
    for id in ids {
        let id = String::from_utf8(id[0].clone().unwrap()).unwrap();
        // It may be gone by itself.
        server.sql(&format!(
            "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; KILL {id}; END"
        ));
    }
}

#[test]
fn what_keeps_caching_off_is_named_and_mended_while_running() {
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
    let grant = check::grant_statement(server_facts::Family::MariaDb, "remora@'127.0.0.1'");
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
    let id = server.child.as_ref().unwrap().id().to_string();
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
    let before = read(&counters.events);
    // A connection counts as dead after a second; this many heartbeats take longer.
    wait_until("heartbeats", || read(&counters.events) > before + 15);
    assert_eq!(read(&counters.connections), 1);
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
    server.sql("INSERT INTO app.long_rows VALUES (REPEAT('x', 40000000))");
    follower.wait_outdated("the long row is seen", long, &table("long_rows"));
    follower.catch_up();
    assert_eq!(follower.check(b, &table("b")), Ok(()));
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
