//! The program from its start to its end: `check`, `serve` with what it needs and without, signals,
//! a server that dies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::metrics;
use remora_testkit::process::wait_for;
use remora_testkit::programs;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{FOLLOW_USER, Kind, Server, ServerOptions};

use remora_wire::Capabilities;

use remora_behaviour::front::raw::Raw;
use remora_behaviour::front::{Front, Guest, PATIENCE, lease};

/// The built program; builds it if nobody has.
pub(crate) fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build_if_missing).clone()
}

fn build_if_missing() -> PathBuf {
    if let Ok(path) = programs::remora() {
        return path;
    }
    // target/<profile>/deps/lifecycle-…
    let own = std::env::current_exe().unwrap();
    let profile = own.ancestors().nth(2).unwrap();
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .args(["build", "--package=remora", "--bin=remora"])
        .env("CARGO_TARGET_DIR", profile.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "remora can't be built");
    programs::remora().unwrap()
}

fn serve(server: &Server, options: &RemoraOptions) -> Remora {
    program();
    Remora::start(server, options).unwrap()
}

fn server_with(further: &[&str]) -> Server {
    let options = ServerOptions {
        further: further.iter().map(|text| (*text).to_owned()).collect(),
        ..ServerOptions::default()
    };
    Server::start(options).unwrap()
}

/// Runs `remora check` as this account, whose password is that of the usual one.
fn check(server: &Server, user: &str) -> Output {
    Command::new(program())
        .arg("check")
        .arg(format!("--upstream={}", server.address()))
        .arg(format!("--follow-user={user}"))
        .arg(format!(
            "--follow-password-file={}",
            server.follow_password_file().display()
        ))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn make_account(server: &Server, user: &str) {
    let password = remora_testkit::servers::FOLLOW_PASSWORD;
    let identified = server.kind().identified_by(password);
    let statements = [format!("CREATE USER {user}@'%' {identified}")];
    server.execute(statements).unwrap();
}

fn through(remora: &Remora, server: &Server) -> Result<Client, ClientError> {
    server.app().at(remora.address()).connect()
}

#[test]
fn check_finds_nothing_wrong_with_a_server_that_is_set_up_right() {
    let server = lease();
    let output = check(&server, FOLLOW_USER);
    let page = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{page}{}",
        text(&output.stderr)
    );
    assert!(page.contains("Caching can be on."), "{page}");
    assert!(!page.contains("PROBLEM"), "{page}");
}

#[test]
fn check_says_how_to_fix_a_server_without_a_log_of_rows() {
    const WITHOUT_GTIDS: [&str; 3] = [
        "--gtid-mode=OFF",
        "--enforce-gtid-consistency=OFF",
        "--skip-log-slave-updates",
    ];
    let kind = Kind::from_environment().unwrap();
    let mut cases = vec![
        ("--binlog-format=MIXED", "SET GLOBAL binlog_format = 'ROW';"),
        ("--skip-log-bin", "log_bin=binlog"),
        ("--binlog-ignore-db=hidden", "binlog_ignore_db"),
    ];
    if kind.has_query_cache() {
        cases.push((
            "--query-cache-type=ON",
            "SET GLOBAL query_cache_type = OFF;",
        ));
    }
    if kind.is_mysql() {
        cases.push(("--gtid-mode=OFF", "gtid_mode"));
    } else {
        cases.push((
            "--binlog-optimize-thread-scheduling=OFF",
            "removing binlog_optimize_thread_scheduling=OFF under [mariadbd], then a restart",
        ));
    }
    for (option, remedy) in cases {
        let mut further = vec![option];
        // A MySQL needs its log for GTIDs.
        if kind.is_mysql() && (option == "--skip-log-bin" || option == WITHOUT_GTIDS[0]) {
            further.extend(WITHOUT_GTIDS);
        }
        let server = server_with(&further);
        let output = check(&server, FOLLOW_USER);
        let page = text(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{option}: {page}{}",
            text(&output.stderr)
        );
        assert!(
            page.contains("PROBLEM") && page.contains(remedy),
            "{option}: {page}"
        );
        // What can be fixed by a statement is fixed by it.
        if remedy.ends_with(';') {
            server.execute([remedy]).unwrap();
            assert_eq!(
                check(&server, FOLLOW_USER).status.code(),
                Some(0),
                "{option}"
            );
        }
    }
}

#[test]
fn check_prints_the_grant_that_an_account_lacks() {
    let server = server_with(&[]);
    make_account(&server, "weak");
    let output = check(&server, "weak");
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{page}");
    let grant = page.split("fix it with: ").find_map(|rest| {
        let line = rest.lines().next()?;
        (line.starts_with("GRANT ") && line.contains("REPLICATION SLAVE")).then(|| line.to_owned())
    });
    let grant = grant.unwrap_or_else(|| panic!("no GRANT in {page}"));
    // It can be run as it is printed.
    server
        .execute([&grant])
        .unwrap_or_else(|error| panic!("{grant}: {error:#}"));
    let output = check(&server, "weak");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn check_says_why_it_can_not_look() {
    let server = lease();
    let output = check(&server, "nobody_at_all");
    assert_eq!(output.status.code(), Some(1));
    let line = text(&output.stderr);
    assert!(
        line.contains("follow.user") && line.contains("Access denied"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn a_follower_that_can_not_follow_leaves_a_plain_proxy_that_says_so() {
    let server = server_with(&[]);
    make_account(&server, "weak");
    server
        .execute(["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"])
        .unwrap();
    let password = server.follow_password_file().display().to_string();
    for user in ["weak", "nobody_at_all"] {
        let options = RemoraOptions::default()
            .with("follow.user", user)
            .with("follow.password_file", &password);
        let remora = serve(&server, &options);
        let reason = wait_for("the reason to be told", PATIENCE, || {
            let page = metrics::get(remora.admin(), "/readyz")?;
            assert_eq!(page.status, 200, "clients are served");
            let told = ["refused", "unsuitable", "privileges", "account"];
            let body = page.body.to_lowercase();
            Ok(told
                .iter()
                .any(|word| body.contains(word))
                .then_some(page.body))
        });
        let reason = reason.unwrap();
        assert!(reason.contains("remora check"), "{reason}");
        let mut client = through(&remora, &server).unwrap();
        for _ in 0..5 {
            assert_eq!(
                client.query_value("SELECT a FROM t").unwrap().as_deref(),
                Some("1")
            );
        }
        let page = remora.metrics().unwrap();
        assert!(page.sum("remora_hits_total").abs() < 0.5);
        assert!(page.sum("remora_caching").abs() < 0.5);
        assert!(page.sum("remora_store_entries").abs() < 0.5);
        wait_for("a loud line in the log", PATIENCE, || {
            Ok(remora.log_tail().contains("ERROR").then_some(()))
        })
        .unwrap_or_else(|error| panic!("{error}: {}", remora.log_tail()));
    }
}

#[test]
fn the_metrics_show_hits() {
    let server = lease();
    server
        .execute(["CREATE TABLE shown (a INT)", "INSERT INTO shown VALUES (1)"])
        .unwrap();
    let remora = serve(&server, &RemoraOptions::following());
    let mut client = through(&remora, &server).unwrap();
    wait_for("hits", PATIENCE, || {
        assert_eq!(
            client.query_value("SELECT a FROM shown")?.as_deref(),
            Some("1")
        );
        let page = remora.metrics()?;
        let hits = page.sum_where("remora_statements_total", "outcome", "hit");
        let is_shown = page.sum("remora_hits_total") > 4.5
            && hits > 4.5
            && page.sum("remora_store_entries") > 0.5;
        Ok(is_shown.then_some(()))
    })
    .unwrap();
    assert!(metrics::get(remora.admin(), "/healthz").unwrap().is_ok());
    assert!(metrics::get(remora.admin(), "/readyz").unwrap().is_ok());
}

/// A statement that takes long, seen running at the server.
pub(crate) fn start_long_statement(
    server: &Server,
    mut client: Client,
    sql: &'static str,
) -> std::thread::JoinHandle<Option<String>> {
    let id = client.connection_id();
    let running = std::thread::spawn(move || client.query_value(sql).ok().flatten());
    let mut root = server.root().unwrap();
    let text = sql.replace('\'', "''");
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND info = '{text}'"
    );
    wait_for("the statement to run", PATIENCE, || {
        Ok((root.query_value(&sql)?.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
    running
}

#[test]
fn at_sigterm_running_statements_finish_and_everything_else_ends() {
    let server = lease();
    // The statement ends when it may, and not by this.
    let options = RemoraOptions::following().with("shutdown.grace_ms", "3600000");
    let mut remora = serve(&server, &options);
    let (address, admin) = (remora.address(), remora.admin());
    let mut idle = Raw::log_in(address, "lab");
    let mut holder = server.app().connect().unwrap();
    let held = holder.query_value("SELECT GET_LOCK('awaited', 0)").unwrap();
    assert_eq!(held.as_deref(), Some("1"));
    let awaiting = "SELECT GET_LOCK('awaited', 3600)";
    let running = start_long_statement(&server, through(&remora, &server).unwrap(), awaiting);
    std::thread::scope(|scope| {
        // If this fails, the lock is released, and nobody waits for the statement.
        let mut holder = holder;
        let stopping = scope.spawn(|| remora.stop().unwrap());
        assert_eq!(idle.receive(), None, "an idle connection is closed");
        wait_for("new connections to be refused", PATIENCE, || {
            Ok(std::net::TcpStream::connect(address).is_err().then_some(()))
        })
        .unwrap();
        let readiness = metrics::get(admin, "/readyz").unwrap();
        assert_eq!(readiness.status, 503);
        assert!(readiness.body.contains("stopping"), "{}", readiness.body);
        assert!(!running.is_finished(), "all that while the statement runs");
        holder.query("SELECT RELEASE_LOCK('awaited')").unwrap();
        assert_eq!(running.join().unwrap().as_deref(), Some("1"));
        assert!(stopping.join().unwrap(), "the exit status is 0");
    });
}

#[test]
fn at_sigterm_a_statement_that_waits_for_its_turn_gets_it() {
    let server = lease();
    let options = RemoraOptions::following()
        .with("shutdown.grace_ms", "3600000")
        .with("upstream.statements_max", "1")
        .with("upstream.statement_wait_ms_max", "3600000");
    let mut remora = serve(&server, &options);
    let address = remora.address();
    let mut holder = server.app().connect().unwrap();
    holder.query_value("SELECT GET_LOCK('first', 0)").unwrap();
    let mut waiter = through(&remora, &server).unwrap();
    let awaiting = "SELECT GET_LOCK('first', 3600)";
    let first = start_long_statement(&server, through(&remora, &server).unwrap(), awaiting);
    let second = std::thread::spawn(move || waiter.query_value("SELECT 7").ok().flatten());
    wait_for("the second to wait for its turn", PATIENCE, || {
        let waiting = remora.metrics()?.sum("remora_statements_waiting");
        Ok((waiting > 0.5).then_some(()))
    })
    .unwrap();
    std::thread::scope(|scope| {
        let mut holder = holder;
        let stopping = scope.spawn(|| remora.stop().unwrap());
        wait_for("new connections to be refused", PATIENCE, || {
            Ok(std::net::TcpStream::connect(address).is_err().then_some(()))
        })
        .unwrap();
        holder.query("SELECT RELEASE_LOCK('first')").unwrap();
        assert_eq!(first.join().unwrap().as_deref(), Some("1"));
        assert_eq!(second.join().unwrap().as_deref(), Some("7"));
        assert!(stopping.join().unwrap(), "the exit status is 0");
    });
}

#[test]
fn a_statement_that_outlasts_the_grace_period_does_not_keep_it_from_ending() {
    let server = lease();
    let options = RemoraOptions::following().with("shutdown.grace_ms", "100");
    let mut remora = serve(&server, &options);
    let client = through(&remora, &server).unwrap();
    let running = start_long_statement(&server, client, "SELECT SLEEP(3600)");
    assert!(remora.stop().unwrap(), "the exit status is 0");
    assert_eq!(running.join().unwrap(), None);
}

/// A transaction of which the server knows, and one that memory has answered so far.
#[test]
fn at_sigterm_open_transactions_may_go_on_to_their_end() {
    let server = lease();
    server
        .execute([
            "CREATE TABLE unit (id INT PRIMARY KEY, v INT)",
            "INSERT INTO unit VALUES (1, 0), (2, 0)",
        ])
        .unwrap();
    let options = RemoraOptions::following()
        .with("shutdown.grace_ms", "3600000")
        .with("cache.transaction_reads", "early");
    let mut remora = serve(&server, &options);
    let mut idle = Raw::log_in(remora.address(), "lab");
    let mut writer = through(&remora, &server).unwrap();
    writer.query("BEGIN").unwrap();
    writer.query("UPDATE unit SET v = 1 WHERE id = 1").unwrap();
    let mut reader = through(&remora, &server).unwrap();
    reader.query("BEGIN").unwrap();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| remora.stop().unwrap());
        assert_eq!(idle.receive(), None, "an idle connection is closed");
        let read = "SELECT v FROM unit WHERE id = 1";
        assert_eq!(reader.query_value(read).unwrap().as_deref(), Some("0"));
        writer.query("UPDATE unit SET v = 1 WHERE id = 2").unwrap();
        assert_eq!(reader.query_value(read).unwrap().as_deref(), Some("0"));
        writer.query("COMMIT").unwrap();
        assert!(writer.query(read).is_err(), "then its connection is closed");
        assert!(!stopping.is_finished(), "one is still open");
        reader.query("ROLLBACK").unwrap();
        assert!(reader.query(read).is_err());
        assert!(stopping.join().unwrap(), "the exit status is 0");
    });
    let mut direct = server.app().connect().unwrap();
    let sum = direct.query_value("SELECT SUM(v) FROM unit").unwrap();
    assert_eq!(sum.as_deref(), Some("2"));
}

#[test]
fn a_transaction_that_outlasts_the_grace_period_is_rolled_back() {
    let server = lease();
    server
        .execute(["CREATE TABLE unit (id INT PRIMARY KEY)"])
        .unwrap();
    let options = RemoraOptions::following().with("shutdown.grace_ms", "100");
    let mut remora = serve(&server, &options);
    let mut client = through(&remora, &server).unwrap();
    client.query("BEGIN").unwrap();
    client.query("INSERT INTO unit VALUES (1)").unwrap();
    assert!(remora.stop().unwrap(), "the exit status is 0");
    assert!(client.query("COMMIT").is_err());
    let mut direct = server.app().connect().unwrap();
    wait_for("the server to roll back", PATIENCE, || {
        let open = direct.query_value("SELECT COUNT(*) FROM unit LOCK IN SHARE MODE")?;
        Ok((open.as_deref() == Some("0")).then_some(()))
    })
    .unwrap();
}

fn refusal_of(configuration: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("remora.toml");
    std::fs::write(&file, configuration).unwrap();
    let output = Command::new(program())
        .args(["serve", "--config"])
        .arg(Path::new(&file))
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_wrong_configuration_is_one_line_and_exit_status_2() {
    for (configuration, arguments, names) in [
        (
            "[cache]\nmemory_bytes_maximum = 5\n",
            &[][..],
            "memory_bytes_maximum",
        ),
        ("[cash]\nmemory_bytes_max = \"5MiB\"\n", &[], "cash"),
        ("[workers]\nthreads = \"many\"\n", &[], "workers.threads"),
        ("[workers\n", &[], "remora.toml"),
        ("", &["--set=cache.sharts=4"], "cache.sharts"),
        ("", &["--upstream=nowhere"], "--upstream"),
    ] {
        let (status, line) = refusal_of(configuration, arguments);
        assert_eq!(status, Some(2), "{line}");
        assert!(line.contains(names), "{line} names {names}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
}

#[test]
fn an_address_in_use_is_said_at_once() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let (status, line) = refusal_of(
        "[admin]\nlisten = \"off\"\n",
        &[&format!("--listen={address}")],
    );
    assert_eq!(status, Some(1), "{line}");
    assert!(
        line.contains("listen.addresses") && line.contains(&address.to_string()),
        "{line}"
    );
}

#[test]
fn when_the_server_dies_clients_get_errors_and_when_it_is_back_caching_resumes() {
    let mut server = server_with(&[]);
    server
        .execute(["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"])
        .unwrap();
    let remora = serve(&server, &RemoraOptions::following());
    let id = remora.id();
    let mut client = through(&remora, &server).unwrap();
    let hits = || remora.metrics().unwrap().sum("remora_hits_total");
    wait_for("a hit", PATIENCE, || {
        client.query("SELECT a FROM t")?;
        Ok((hits() > 0.5).then_some(()))
    })
    .unwrap();

    server.crash().unwrap();
    wait_for("the connection to end", PATIENCE, || {
        Ok(client
            .query("SELECT a FROM t")
            .map(drop)
            .is_err()
            .then_some(()))
    })
    .unwrap();
    let refused = through(&remora, &server)
        .err()
        .and_then(|error| error.code());
    assert_eq!(refused, Some(2003));
    wait_for("not to be ready", PATIENCE, || {
        Ok((metrics::get(remora.admin(), "/readyz")?.status == 503).then_some(()))
    })
    .unwrap();
    assert!(
        metrics::get(remora.admin(), "/healthz").unwrap().is_ok(),
        "Remora itself lives"
    );

    server.start_again().unwrap();
    server.execute(["UPDATE t SET a = 2"]).unwrap();
    wait_for("to be ready, before any client has tried", PATIENCE, || {
        Ok((metrics::get(remora.admin(), "/readyz")?.status == 200).then_some(()))
    })
    .unwrap();
    let mut client = wait_for("a connection", PATIENCE, || {
        Ok(through(&remora, &server).ok())
    })
    .unwrap();
    assert_eq!(
        client.query_value("SELECT a FROM t").unwrap().as_deref(),
        Some("2")
    );
    let before = hits();
    wait_for("hits again", PATIENCE, || {
        assert_eq!(client.query_value("SELECT a FROM t")?.as_deref(), Some("2"));
        Ok((hits() > before + 2.5).then_some(()))
    })
    .unwrap();
    assert_eq!(remora.id(), id);
    assert_eq!(metrics::get(remora.admin(), "/readyz").unwrap().status, 200);
}

#[test]
fn remora_may_start_before_its_server() {
    let mut server = server_with(&[]);
    server
        .execute(["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"])
        .unwrap();
    server.stop().unwrap();
    let remora = remora_testkit::proxies::InProcessRemora::start(
        &server,
        &RemoraOptions::default()
            .with("follow.user", FOLLOW_USER)
            .with(
                "follow.password_file",
                &server.follow_password_file().display().to_string(),
            ),
    )
    .unwrap();
    let options = server.app().at(remora.address());
    assert_eq!(
        options.connect().err().and_then(|error| error.code()),
        Some(2003)
    );
    server.start_again().unwrap();
    remora.wait_until_caching().unwrap();
    let mut client = options.connect().unwrap();
    wait_for("a hit", PATIENCE, || {
        assert_eq!(client.query_value("SELECT a FROM t")?.as_deref(), Some("1"));
        Ok((remora.metrics()?.sum("remora_hits_total") > 0.5).then_some(()))
    })
    .unwrap();
}

/// How often a session asks that shall not be idle.
const PACE: Duration = Duration::from_millis(20);

/// Asks for longer than the server waits for a session to say something.
fn outlives_the_wait_timeout(front: &Front, guest: &mut Guest<'_>, setup: &[&str]) {
    guest.setup(setup);
    let expected = {
        let mut direct = front.direct();
        for sql in setup {
            direct.query(sql).unwrap();
        }
        direct.query_bytes("SELECT a FROM t").unwrap().to_vec()
    };
    let id = guest.client().connection_id().to_string();
    guest.becomes_hit("SELECT a FROM t", &expected);
    let end = Instant::now() + WAIT_TIMEOUT + WAIT_TIMEOUT / 2;
    let before = front.hits();
    while Instant::now() < end {
        assert_eq!(guest.run("SELECT a FROM t").bytes, expected);
        // Asking without a pause would only keep other tests waiting.
        std::thread::sleep(PACE);
    }
    assert!(front.hits() > before + 10, "it was served from memory");
    assert_eq!(
        guest.value("SELECT CONNECTION_ID()").0,
        Some(id),
        "on the connection that it had"
    );
}

/// Less than the time for which Remora leaves a session to itself unless configured otherwise, and
/// much more than a busy machine keeps a statement waiting.
const WAIT_TIMEOUT: Duration = Duration::from_secs(8);

fn front_for_wait_timeouts(schema: &str) -> Front {
    let setup = ["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"];
    Front::new(schema, &setup)
}

#[test]
fn a_session_served_from_memory_alone_keeps_its_connection_to_the_server() {
    let front = front_for_wait_timeouts("long_sessions");
    let mut guest = front.guest();
    // Remora knows the session's settings before they change.
    let expected = front
        .direct()
        .query_bytes("SELECT a FROM t")
        .unwrap()
        .to_vec();
    guest.becomes_hit("SELECT a FROM t", &expected);
    outlives_the_wait_timeout(&front, &mut guest, &["SET SESSION wait_timeout = 8"]);
}

#[test]
fn the_wait_timeout_that_a_session_begins_with_counts() {
    const CLIENT_INTERACTIVE: Capabilities = Capabilities(1 << 10);
    let front = front_for_wait_timeouts("long_sessions_global");
    let mut root = front.server().root().unwrap();
    let cases = [
        ("wait_timeout", Capabilities(0)),
        ("interactive_timeout", CLIENT_INTERACTIVE),
    ];
    for (variable, further) in cases {
        let options = ConnectOptions {
            further,
            ..front.options()
        };
        let mut set = |value: &str| {
            root.query(&format!("SET GLOBAL {variable} = {value}"))
                .map(drop)
        };
        set("8").unwrap();
        let mut guest = front.guest_as(&options);
        set("DEFAULT").unwrap();
        outlives_the_wait_timeout(&front, &mut guest, &[]);
    }
}

#[test]
fn a_transaction_served_from_memory_alone_outlives_the_time_for_idle_ones() {
    let front = front_for_wait_timeouts("long_transactions");
    if front.server().kind().is_mysql() {
        println!("left out: only MariaDB ends sessions for their idle transactions");
        return;
    }
    let mut guest = front.guest();
    let setup = [
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION idle_transaction_timeout = 8",
        "BEGIN",
    ];
    outlives_the_wait_timeout(&front, &mut guest, &setup);
}
