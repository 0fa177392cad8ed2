//! The server changes while it is followed: what was checked once must still hold.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use remora_behaviour::front::catch_up;
use remora_behaviour::world::cut_follower;
use remora_testkit::client::Client;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, FOLLOW_USER, Kind, Server, ServerOptions};
use remora_testkit::{metrics, ports};

use crate::relay::Relay;

/// `follow.check_age_ms_max` here.
const CHECK_AGE_MS_MAX: u64 = 1_000;
const READ: &str = "SELECT b FROM t";
const MUST_LOG_REPLICATED: &str = "with GTIDs, it must log what it replicates";

fn options() -> RemoraOptions {
    RemoraOptions::following()
        .with("follow.check_age_ms_max", &CHECK_AGE_MS_MAX.to_string())
        .with("follow.reconnect_ms_min", "5")
        .with("follow.reconnect_ms_max", "100")
}

fn start(further: &[&str]) -> Server {
    let server = start_empty(further, 0);
    server.execute(TABLE).unwrap();
    server
}

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 0)",
];

fn start_empty(further: &[&str], query_cache_mib: u32) -> Server {
    let options = ServerOptions {
        further: further.iter().map(|option| (*option).to_owned()).collect(),
        query_cache_mib,
        ..ServerOptions::default()
    };
    Server::start(options).unwrap()
}

/// A Remora in front of a server.
struct Bed<'a> {
    remora: InProcessRemora,
    server: &'a Server,
}

impl<'a> Bed<'a> {
    fn new(server: &'a Server) -> Bed<'a> {
        Bed::with(server, &options())
    }

    fn with(server: &'a Server, options: &RemoraOptions) -> Bed<'a> {
        Bed {
            remora: InProcessRemora::start(server, options).unwrap(),
            server,
        }
    }

    fn client(&self) -> Client {
        let options = self.server.app().at(self.remora.address());
        options.connect().unwrap()
    }

    fn sum(&self, metric: &str) -> f64 {
        self.remora.metrics().unwrap().sum(metric)
    }

    fn forgotten(&self, reason: &str) -> f64 {
        let metrics = self.remora.metrics().unwrap();
        metrics.sum_where("remora_forgotten_total", "reason", reason)
    }

    fn readiness(&self) -> String {
        metrics::get(self.remora.admin(), "/readyz").unwrap().body
    }

    /// Asks on a new connection until an answer comes from memory; gives it.
    fn hit(&self, sql: &str) -> String {
        self.hit_of(&mut self.client(), sql)
    }

    /// The same on a connection that there is.
    fn hit_of(&self, client: &mut Client, sql: &str) -> String {
        wait_for("a hit", PATIENCE, || {
            let before = self.sum("remora_hits_total");
            let value = client.query_value(sql)?.unwrap();
            Ok((self.sum("remora_hits_total") > before).then_some(value))
        })
        .unwrap()
    }

    /// Statements that passed through because their sessions are on another server.
    fn on_other_servers(&self) -> f64 {
        let metrics = self.remora.metrics().unwrap();
        metrics.sum_where("remora_statements_total", "reason", "other_instance")
    }

    fn wait_for_off(&self, reason: &str, subject: Option<&str>) {
        let off = format!("caching: off ({reason})");
        let finding = subject.map(|subject| format!("\n{subject}: "));
        wait_for(&format!("{off} {finding:?}"), PATIENCE, || {
            let page = self.readiness();
            let names = finding.as_ref().is_none_or(|it| page.contains(it));
            Ok((page.contains(&off) && names).then_some(()))
        })
        .unwrap();
    }

    /// The server is found unfit because of this.
    fn wait_for_finding(&self, subject: &str) {
        self.wait_for_off("server_unsuitable", Some(subject));
        let metrics = self.remora.metrics().unwrap();
        let named = metrics.sum_where("remora_server_findings", "subject", subject);
        assert!(named > 0.5, "{subject}");
        assert!(metrics.sum("remora_caching") < 0.5, "{subject}");
    }

    fn wait_until_caching(&self) {
        self.remora.wait_until_caching().unwrap();
    }

    /// Reads that are sent when the last good check has become too old get this.
    fn is_told_in_time(&self, expected: &str, began: Instant, age_ms_max: u64) {
        let mut client = self.client();
        loop {
            // One more for the rounding of Remora's clock.
            let may_be_old = began.elapsed() <= Duration::from_millis(age_ms_max + 1);
            let value = client.query_value(READ).unwrap().unwrap();
            if value == expected {
                return;
            }
            assert!(may_be_old, "{value} instead of {expected}");
        }
    }
}

/// A log file is known by the second in which it was begun: two servers that begin theirs in one
/// second and write the same have the same log.
fn wait_for_the_next_second() {
    let second = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let now = second();
    wait_for("the next second", PATIENCE, || {
        Ok((second() > now).then_some(()))
    })
    .unwrap();
}

fn value(server: &Server, sql: &str) -> String {
    let mut client = server.app().connect().unwrap();
    client.query_value(sql).unwrap().unwrap()
}

fn unlogged(server: &Server, statement: &str) {
    server.execute(["SET sql_log_bin = 0", statement]).unwrap();
}

/// Two servers with the same contents; the second is to replicate from the first and doesn't log
/// what it replicates, where a server can be had that way.
fn primary_and_replica() -> (Server, Server) {
    let primary = start(&["--server-id=2"]);
    let without_log = ["--skip-log-slave-updates"];
    // With GTIDs, it insists on that log. It is refused as a replica for another reason.
    let further = if primary.kind() == Kind::MySql56 {
        &[][..]
    } else {
        &without_log
    };
    (primary, start(further))
}

fn start_replicating(primary: &Server, replica: &Server) {
    let position = primary.position().unwrap();
    let (file, offset) = position.split_once(':').unwrap();
    let port = primary.address().port();
    replica
        .execute([
            &format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
                 MASTER_USER = '{APP_USER}', MASTER_PASSWORD = '{APP_PASSWORD}', MASTER_SSL = 0, \
                 MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {offset}"
            ),
            "START SLAVE",
        ])
        .unwrap();
}

fn stop_replicating(replica: &Server) {
    replica.execute(["STOP SLAVE", "RESET SLAVE ALL"]).unwrap();
}

fn replicate_a_change(primary: &Server, replica: &Server, to: u32) {
    let set = format!("UPDATE t SET b = {to}");
    primary.execute([set]).unwrap();
    wait_for("the change to be replicated", PATIENCE, || {
        Ok((value(replica, READ) == to.to_string()).then_some(()))
    })
    .unwrap();
}

#[test]
fn a_row_replicated_past_the_log_is_not_old_for_longer_than_a_check_counts() {
    let (primary, replica) = primary_and_replica();
    let bed = Bed::new(&replica);
    assert_eq!(bed.hit(READ), "0");
    start_replicating(&primary, &replica);
    let began = Instant::now();
    replicate_a_change(&primary, &replica, 1);
    bed.is_told_in_time("1", began, CHECK_AGE_MS_MAX);
    bed.wait_for_finding("replica");
    replicate_a_change(&primary, &replica, 2);
    assert_eq!(bed.client().query_value(READ).unwrap().unwrap(), "2");
    stop_replicating(&replica);
    bed.wait_until_caching();
    assert_eq!(bed.hit(READ), "2");
    assert!(bed.forgotten("server_unsuitable") > 0.5);
}

#[test]
fn what_was_replicated_past_the_log_between_two_checks_is_noticed() {
    /// Long enough to replicate a row between two checks.
    const AGE_MS_MAX: u64 = 8_000;
    let (primary, replica) = primary_and_replica();
    if replica
        .kind()
        .skips(replica.kind() == Kind::MySql56, MUST_LOG_REPLICATED)
    {
        return;
    }
    let age = AGE_MS_MAX.to_string();
    let bed = Bed::with(&replica, &options().with("follow.check_age_ms_max", &age));
    assert_eq!(bed.hit(READ), "0");
    start_replicating(&primary, &replica);
    let began = Instant::now();
    replicate_a_change(&primary, &replica, 1);
    stop_replicating(&replica);
    bed.is_told_in_time("1", began, AGE_MS_MAX);
    wait_for("everything to be forgotten", PATIENCE, || {
        // A check may have come while it ran.
        let forgotten = bed.forgotten("changes_unlogged") + bed.forgotten("server_unsuitable");
        Ok((forgotten > 0.5).then_some(()))
    })
    .unwrap();
    bed.wait_until_caching();
    assert_eq!(bed.hit(READ), "1");
}

/// A change with `sql_log_bin = 0` stands for one that was replicated from MySQL.
#[test]
fn replication_that_leaves_gtid_slave_pos_as_it_was_is_noticed() {
    let server = start(&[]);
    if server
        .kind()
        .skips(server.kind().is_mysql(), "its set of transactions tells")
    {
        return;
    }
    let port = ports::free().unwrap().port();
    let bed = Bed::new(&server);
    for (round, start) in (1..).zip(["START SLAVE", "START ALL SLAVES"]) {
        bed.hit(READ);
        // A check may come while it runs, or before it has begun to.
        let forgotten = || bed.forgotten("changes_unlogged") + bed.forgotten("server_unsuitable");
        let before = forgotten();
        server
            .execute([
                &format!("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}"),
                start,
            ])
            .unwrap();
        unlogged(&server, &format!("UPDATE t SET b = {round}"));
        stop_replicating(&server);
        wait_for("the change to be seen", PATIENCE, || {
            Ok((bed.client().query_value(READ)? == Some(round.to_string())).then_some(()))
        })
        .unwrap();
        wait_for("that to be counted", PATIENCE, || {
            Ok((forgotten() > before + 0.5).then_some(()))
        })
        .unwrap();
        bed.wait_until_caching();
        assert_eq!(bed.hit(READ), round.to_string());
    }
}

#[test]
fn what_was_replicated_past_the_log_while_nobody_followed_is_noticed() {
    let (primary, replica) = primary_and_replica();
    if replica
        .kind()
        .skips(replica.kind() == Kind::MySql56, MUST_LOG_REPLICATED)
    {
        return;
    }
    let relay = Relay::start(replica.address());
    let bed = behind(&replica, relay.address());
    for round in 1..=2 {
        assert_eq!(bed.hit(READ), (round - 1).to_string());
        relay.move_to(ports::free().unwrap());
        cut_follower(&replica);
        wait_for("nobody to follow", PATIENCE, || {
            Ok((bed.sum("remora_caching") < 0.5).then_some(()))
        })
        .unwrap();
        start_replicating(&primary, &replica);
        replicate_a_change(&primary, &replica, round);
        stop_replicating(&replica);
        relay.move_to(replica.address());
        bed.wait_until_caching();
        assert_eq!(bed.hit(READ), round.to_string());
        assert!(bed.forgotten("changes_unlogged") > f64::from(round) - 0.5);
    }
}

/// The next log file can't be opened, for instance because there are too many open files: the
/// server goes on without a log, and `@@log_bin` stays on.
#[test]
fn a_log_that_the_server_closes_ends_caching() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind == Kind::MySql56,
        "it can't be told to go on without a log",
    ) {
        return;
    }
    let server = if kind.is_mysql() {
        start(&["--binlog-error-action=IGNORE_ERROR"])
    } else {
        start(&[])
    };
    let bed = Bed::new(&server);
    let mut client = bed.client();
    assert_eq!(bed.hit_of(&mut client, READ), "0");
    let position = server.position().unwrap();
    let (file, _) = position.split_once(':').unwrap();
    let (base, _) = file.rsplit_once('.').unwrap();
    // Before it begins a file, it writes this one.
    let in_the_way = Path::new(&value(&server, "SELECT @@datadir")).join(format!("{base}.~rec~"));
    std::fs::create_dir(in_the_way).unwrap();
    // Whether it says that it failed differs.
    let _ = server.root().unwrap().query("FLUSH BINARY LOGS");
    assert_eq!(value(&server, "SELECT @@log_bin"), "1");
    assert!(server.position().is_err(), "it has no log any more");
    for own in 1..5 {
        client.query(&format!("UPDATE t SET b = {own}")).unwrap();
        let seen = client.query_value(READ).unwrap().unwrap();
        assert_eq!(seen, own.to_string());
    }
    let began = Instant::now();
    server.execute(["UPDATE t SET b = 5"]).unwrap();
    bed.is_told_in_time("5", began, CHECK_AGE_MS_MAX);
    bed.wait_for_finding("binary_log");
    assert!(bed.sum("remora_forgotten_total") > 0.5);
}

/// New connections take such settings over, and so would Remora's own.
#[test]
fn settings_of_the_server_do_not_change_what_remora_knows_of_tables() {
    let server = start(&[]);
    let bed = Bed::new(&server);
    let mut client = bed.client();
    assert_eq!(bed.hit_of(&mut client, READ), "0");
    // As many as it takes to find the server fit to be cached in front of.
    server
        .execute([
            "SET GLOBAL sql_select_limit = 40",
            "SET GLOBAL autocommit = 0",
            "SET GLOBAL lock_wait_timeout = 1",
            "SET GLOBAL init_connect = 'SET completion_type = 1; START TRANSACTION WITH CONSISTENT SNAPSHOT'",
            // Then Remora looks at tables over a new connection.
            "CREATE USER somebody",
        ])
        .unwrap();
    let mut root = server.root().unwrap();
    let id = root.connection_id();
    let newest = format!(
        "SELECT MAX(id) > {id} FROM information_schema.processlist WHERE user = '{FOLLOW_USER}'"
    );
    wait_for("a new connection of Remora's", PATIENCE, || {
        Ok((root.query_value(&newest)?.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
    let columns: Vec<_> = (1..=50).map(|n| format!("c{n:02} INT")).collect();
    let wide = format!(
        "CREATE TABLE wide ({}, PRIMARY KEY (c01))",
        columns.join(", ")
    );
    server
        .execute([&wide, "INSERT INTO wide (c01, c50) VALUES (1, 0)", "COMMIT"])
        .unwrap();
    client.query("SET autocommit = 1").unwrap();
    for column in ["c50", "c51"] {
        let read = format!("SELECT {column} FROM wide WHERE c01 = 1");
        assert_eq!(bed.hit_of(&mut client, &read), "0");
        let change = format!("UPDATE wide SET {column} = 1");
        server.execute([&change, "COMMIT"]).unwrap();
        catch_up(&bed.remora);
        assert_eq!(client.query_value(&read).unwrap().unwrap(), "1", "{column}");
        if column == "c50" {
            // What was known of the table before is of another one now.
            let add = "ALTER TABLE wide ADD COLUMN c51 INT DEFAULT 0";
            server.execute([add]).unwrap();
        }
    }
}

#[test]
fn an_account_that_no_longer_sees_triggers_turns_caching_off() {
    let server = start(&[]);
    server
        .execute([
            "CREATE TABLE u (a INT)",
            "CREATE TRIGGER after_u AFTER INSERT ON u FOR EACH ROW UPDATE t SET b = b + 1",
        ])
        .unwrap();
    let bed = Bed::new(&server);
    let mut client = bed.client();
    let account = format!("{FOLLOW_USER}@'%'");
    let revoke = format!("REVOKE TRIGGER ON *.* FROM {account}");
    let grant = format!("GRANT TRIGGER ON *.* TO {account}");
    for is_logged in [true, false] {
        let run = |statement: &str| {
            if is_logged {
                server.execute([statement]).unwrap();
            } else {
                unlogged(&server, statement);
            }
        };
        bed.hit(READ);
        run(&revoke);
        bed.wait_for_finding("privileges");
        client.query("INSERT INTO u VALUES (1)").unwrap();
        let seen = client.query_value(READ).unwrap().unwrap();
        assert_eq!(seen, value(&server, READ), "logged: {is_logged}");
        run(&grant);
        bed.wait_until_caching();
    }
    assert!(bed.forgotten("server_unsuitable") > 1.5);
}

/// Settings that can be changed on a running server: what turns caching off, what it is about, and
/// what turns it on again.
fn settings(kind: Kind) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut settings = vec![(
        "SET GLOBAL binlog_format = 'MIXED'",
        "log_format",
        "SET GLOBAL binlog_format = 'ROW'",
    )];
    if kind.has_query_cache() {
        settings.push((
            "SET GLOBAL query_cache_type = ON",
            "query_cache",
            "SET GLOBAL query_cache_type = OFF",
        ));
    }
    if !kind.is_mysql() {
        // What triggers write for replicated rows is in no log then.
        settings.push((
            "SET GLOBAL slave_run_triggers_for_rbr = 'YES'",
            "replica",
            "SET GLOBAL slave_run_triggers_for_rbr = 'NO'",
        ));
    }
    if matches!(kind, Kind::MySql80 | Kind::MySql57) {
        settings.push((
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "gtids",
            "SET GLOBAL gtid_mode = ON",
        ));
    }
    settings
}

#[test]
fn a_setting_that_is_changed_turns_caching_off_until_it_is_changed_back() {
    // Where it is off at the start, it can't be turned on.
    let has_query_cache = Kind::from_environment().unwrap().has_query_cache();
    let server = start_empty(&[], u32::from(has_query_cache));
    server.execute(TABLE).unwrap();
    if has_query_cache {
        let off = "SET GLOBAL query_cache_type = OFF";
        server.execute([off]).unwrap();
    }
    let bed = Bed::new(&server);
    let settings = settings(server.kind());
    for (round, (change, subject, back)) in (1_u32..).zip(&settings) {
        bed.hit(READ);
        server.execute([change]).unwrap();
        bed.wait_for_finding(subject);
        // Whatever happened to the log meanwhile: nothing of before comes back.
        unlogged(&server, &format!("UPDATE t SET b = {round}"));
        server.execute([back]).unwrap();
        bed.wait_until_caching();
        assert_eq!(bed.hit(READ), round.to_string(), "{change}");
        assert!(
            bed.forgotten("server_unsuitable") > f64::from(round) - 0.5,
            "{change}"
        );
    }
    let findings = bed.sum("remora_server_findings");
    assert!(findings < 0.5, "{findings}");
}

/// Remora in front of an address that isn't the server's own.
fn behind(server: &Server, address: SocketAddr) -> Bed<'_> {
    let options = options().with("upstream.address", &address.to_string());
    Bed::with(server, &options)
}

#[test]
fn an_address_that_moves_is_followed_to_the_other_server() {
    let (old, new) = (start(&[]), start(&["--server-id=2"]));
    new.execute(["UPDATE t SET b = 100"]).unwrap();
    let relay = Relay::start(old.address());
    let bed = behind(&old, relay.address());
    assert_eq!(bed.hit(READ), "0");
    relay.move_to(new.address());
    wait_for("everything to be forgotten", PATIENCE, || {
        Ok((bed.forgotten("log_changed") > 0.5).then_some(()))
    })
    .unwrap();
    bed.wait_until_caching();
    assert_eq!(bed.hit(READ), "100");
    // It is the new server's log that is followed.
    new.execute(["UPDATE t SET b = 101"]).unwrap();
    wait_for("the change to be seen", PATIENCE, || {
        Ok((bed.hit(READ) == "101").then_some(()))
    })
    .unwrap();
    // And back, while both are up.
    relay.move_to(old.address());
    wait_for("everything to be forgotten", PATIENCE, || {
        Ok((bed.forgotten("log_changed") > 1.5).then_some(()))
    })
    .unwrap();
    bed.wait_until_caching();
    assert_eq!(bed.hit(READ), "0");
}

/// Servers made from one image tell the same of themselves. The port is as in a container of its
/// own, and so is the file that names the process.
#[test]
fn sessions_on_a_server_that_looks_like_the_followed_one_share_nothing_with_it() {
    let scratch = Scratch::new().unwrap();
    let pid_file = format!("--pid-file={}", scratch.join("pid").display());
    let old = start(&[&pid_file]);
    wait_for_the_next_second();
    let new = start(&[&pid_file]);
    new.execute(["UPDATE t SET b = 100"]).unwrap();
    let relay = Relay::start(old.address());
    let options = options()
        .with("upstream.address", &relay.address().to_string())
        // So that the follower stays where it is while the address moves.
        .with("follow.check_age_ms_max", "3600000");
    let bed = Bed::with(&old, &options);
    let mut before = bed.client();
    assert_eq!(bed.hit_of(&mut before, READ), "0");
    relay.move_to_disguised(new.address());
    let mut after = bed.client();
    let passed = bed.on_other_servers();
    for _ in 0..5 {
        assert_eq!(after.query_value(READ).unwrap().unwrap(), "100");
        assert_eq!(before.query_value(READ).unwrap().unwrap(), "0");
    }
    wait_for("the reads to be counted", PATIENCE, || {
        Ok((bed.on_other_servers() > passed + 4.5).then_some(()))
    })
    .unwrap();
    assert_eq!(bed.hit_of(&mut before, READ), "0");
    // Now the follower comes to the other one, and the sessions stay where they are.
    let forgotten = bed.sum("remora_forgotten_total");
    cut_follower(&old);
    wait_for("everything to be forgotten", PATIENCE, || {
        Ok((bed.sum("remora_forgotten_total") > forgotten).then_some(()))
    })
    .unwrap();
    bed.wait_until_caching();
    wait_for("hits of the sessions on the other server", PATIENCE, || {
        assert_eq!(before.query_value(READ)?.unwrap(), "0");
        let hits = bed.sum("remora_hits_total");
        assert_eq!(after.query_value(READ)?.unwrap(), "100");
        Ok((bed.sum("remora_hits_total") > hits + 0.5).then_some(()))
    })
    .unwrap();
    for _ in 0..5 {
        assert_eq!(before.query_value(READ).unwrap().unwrap(), "0");
        assert_eq!(bed.hit_of(&mut after, READ), "100");
    }
}

/// Each of the follower's sessions has a mark of its own. Whoever was on its server still is.
#[test]
fn sessions_go_on_with_what_is_kept_when_the_follower_has_connected_anew() {
    let server = start(&[]);
    let bed = Bed::new(&server);
    let mut client = bed.client();
    let id = client.prepare(READ.as_bytes()).unwrap();
    assert_eq!(bed.hit_of(&mut client, READ), "0");
    let executed_hit = |client: &mut Client| {
        wait_for("a hit of an execution", PATIENCE, || {
            let before = bed.sum("remora_hits_total");
            client.execute(id, &[])?;
            Ok((bed.sum("remora_hits_total") > before).then_some(()))
        })
        .unwrap();
    };
    executed_hit(&mut client);
    for _ in 0..3 {
        let connections = bed.sum("remora_follower_connections_total");
        cut_follower(&server);
        wait_for("the follower to connect anew", PATIENCE, || {
            let now = bed.sum("remora_follower_connections_total");
            Ok((now > connections).then_some(()))
        })
        .unwrap();
        bed.wait_until_caching();
        executed_hit(&mut client);
        assert_eq!(bed.hit_of(&mut client, READ), "0");
    }
    assert!(bed.on_other_servers() < 0.5);
}

#[test]
fn nothing_is_served_while_the_server_can_not_be_checked() {
    let server = start(&[]);
    let relay = Relay::start(server.address());
    let bed = behind(&server, relay.address());
    bed.hit(READ);
    relay.hold_checks(true);
    bed.wait_for_off("unchecked", None);
    let mut client = bed.client();
    let before = bed.sum("remora_hits_total");
    let reached = "remora_limit_reached_total";
    wait_for("the limit to be counted", PATIENCE, || {
        assert_eq!(client.query_value(READ)?.unwrap(), "0");
        let metrics = bed.remora.metrics()?;
        let times = metrics.sum_where(reached, "limit", "follow.check_age_ms_max");
        Ok((times > 0.5).then_some(()))
    })
    .unwrap();
    assert!(bed.sum("remora_hits_total") < before + 0.5);
    let age = bed.sum("remora_server_check_age_seconds");
    assert!(age * 1_000.0 > 1_000.0, "{age}");
    relay.hold_checks(false);
    bed.wait_until_caching();
    assert_eq!(bed.hit(READ), "0");
    // What was in memory is served again: the log was followed all the while.
    assert!(bed.sum("remora_forgotten_total") < 1.5);
    assert!(bed.sum("remora_server_checks_total") > 0.5);
}

/// Debian's package of it.
const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";

/// A Galera cluster of one node. It listens for others on a port that the system chooses.
fn start_node() -> Server {
    start(&[
        "--wsrep-on=ON",
        &format!("--wsrep-provider={GALERA}"),
        "--wsrep-cluster-address=gcomm://",
        "--wsrep-node-address=127.0.0.1",
        "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:0;gcache.size=1M",
    ])
}

/// A Remora in front of a server that it won't follow.
fn in_vain(server: &Server) -> Bed<'_> {
    let mut options = options().with("follow.user", FOLLOW_USER).with(
        "follow.password_file",
        &server.follow_password_file().display().to_string(),
    );
    // That it caches isn't waited for.
    options.follow = false;
    Bed::with(server, &options)
}

#[test]
fn a_node_of_a_galera_cluster_is_not_cached_even_while_it_says_that_wsrep_is_off() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind != Kind::MariaDb1011,
        "Galera comes with Debian's server only",
    ) {
        return;
    }
    let node = start_node();
    assert_eq!(value(&node, "SELECT @@GLOBAL.wsrep_on"), "1");
    let bed = in_vain(&node);
    bed.wait_for_finding("cluster");
    // New sessions write past the cluster, and the node still applies what others write.
    node.execute(["SET GLOBAL wsrep_on = OFF"]).unwrap();
    assert_eq!(value(&node, "SELECT @@GLOBAL.wsrep_on"), "0");
    let looked = || bed.remora.app().unwrap().shared().upstream.reached();
    let before = looked();
    wait_for("the server to be looked at again", PATIENCE, || {
        // The first of these may have begun before.
        Ok((looked() > before + 2).then_some(()))
    })
    .unwrap();
    bed.wait_for_finding("cluster");
    in_vain(&node).wait_for_finding("cluster");
    let mut client = bed.client();
    for round in 1..4 {
        node.execute([format!("UPDATE t SET b = {round}")]).unwrap();
        for _ in 0..2 {
            let seen = client.query_value(READ).unwrap().unwrap();
            assert_eq!(seen, round.to_string());
        }
    }
    assert!(bed.sum("remora_hits_total") < 0.5);
}

/// Its library is named, but wsrep was off when the server was started: it can't be turned on.
#[test]
fn a_server_that_could_have_been_a_node_of_a_cluster_is_cached() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind != Kind::MariaDb1011,
        "Galera comes with Debian's server only",
    ) {
        return;
    }
    let server = start(&[&format!("--wsrep-provider={GALERA}")]);
    let bed = Bed::new(&server);
    assert_eq!(bed.hit(READ), "0");
    server.execute(["UPDATE t SET b = 1"]).unwrap();
    wait_for("the change to be seen", PATIENCE, || {
        Ok((bed.hit(READ) == "1").then_some(()))
    })
    .unwrap();
}
