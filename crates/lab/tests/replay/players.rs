//! Replaying.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use remora_lab::replay::{Outcome, Plan, replay};
use remora_lab::results::{Results, State};
use remora_testkit::client::ConnectOptions;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server, ServerOptions};

use crate::options;

/// A general log with each statement on its connection, so many milliseconds after the beginning.
fn log(statements: &[(u64, u32, &str)]) -> String {
    let mut out = String::new();
    for (at_ms, connection, text) in statements {
        let (second, ms) = (at_ms / 1_000, at_ms % 1_000);
        let time = format!(
            "2023-01-01T12:{:02}:{:02}.{ms:03}000Z",
            second / 60,
            second % 60
        );
        writeln!(out, "{time}\t{connection:5} Query\t{text}").unwrap();
    }
    out
}

struct Bed {
    server: Server,
    scratch: Scratch,
}

impl Bed {
    fn new() -> Bed {
        let server = Server::start(ServerOptions::default()).unwrap();
        server
            .execute([
                "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)",
                "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
            ])
            .unwrap();
        let scratch = Scratch::new().unwrap();
        std::fs::write(scratch.join("password"), APP_PASSWORD).unwrap();
        Bed { server, scratch }
    }

    /// The arguments for a log, beside targets.
    fn arguments(&self, log: &str, further: &[&str]) -> Vec<String> {
        let (file, password) = (self.scratch.join("log"), self.scratch.join("password"));
        std::fs::write(&file, log).unwrap();
        let own = [
            file.display().to_string(),
            format!("--user={APP_USER}"),
            format!("--password-file={}", password.display()),
            "--schema=lab".to_owned(),
        ];
        own.into_iter()
            .chain(further.iter().map(|&text| text.to_owned()))
            .collect()
    }

    fn replay(&self, log: &str, further: &[&str]) -> (Plan, Outcome) {
        let direct = format!("--to=direct={}", self.server.address());
        let mut arguments = self.arguments(log, further);
        arguments.insert(0, direct);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        replay(&options(&arguments), &mut |_| ()).unwrap()
    }

    fn values(&self) -> String {
        let mut client = self.server.app().connect().unwrap();
        client.query_value("SELECT SUM(v) FROM t").unwrap().unwrap()
    }
}

/// Reads of three rows on four connections, many times over, with one that fails.
fn reads() -> String {
    let texts: Vec<String> = (0..400)
        .map(|n| format!("SELECT v FROM t WHERE id = {}", 1 + n % 3))
        .collect();
    let mut all: Vec<(u64, u32, &str)> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| (n as u64, u32::try_from(n % 4).unwrap(), text.as_str()))
        .collect();
    all.push((400, 1, "SELECT nothing FROM nowhere"));
    all.push((401, 1, "SELECT NOW(6)"));
    log(&all)
}

/// Has the reads' results in memory: how soon that is so depends on the machine's load.
fn warm(bed: &Bed, remora: &InProcessRemora) {
    let mut client = bed.server.app().at(remora.address()).connect().unwrap();
    let hits = || remora.metrics().unwrap().sum("remora_hits_total");
    for id in 1..=3 {
        wait_for("a hit", PATIENCE, || {
            let before = hits();
            client.query(&format!("SELECT v FROM t WHERE id = {id}"))?;
            Ok((hits() > before).then_some(()))
        })
        .unwrap();
    }
}

#[test]
fn reads_give_the_same_through_remora_and_hit() {
    let bed = Bed::new();
    let remora = InProcessRemora::start(&bed.server, &RemoraOptions::unhurried()).unwrap();
    warm(&bed, &remora);
    let (to, admin) = (
        format!("--to=remora={}", remora.address()),
        format!("--admin=remora={}", remora.admin()),
    );
    let (plan, outcome) = bed.replay(
        &reads(),
        &[
            &to,
            &admin,
            "--speed=max",
            "--rounds=2",
            "--compare-results",
        ],
    );
    assert_eq!(
        (plan.steps.len(), plan.connections, plan.lanes.len()),
        (402, 4, 4)
    );
    assert_eq!(outcome.turns.len(), 4);
    for turn in &outcome.turns {
        assert_eq!((turn.queries, turn.errors), (402, 1));
        let (name, error) = turn.errors_by_kind.first_key_value().unwrap();
        assert!(
            name.starts_with("1146") && error.example.contains("nowhere"),
            "{name} {error:?}"
        );
        let hit_ratio = turn.hit_ratio;
        assert_eq!(hit_ratio.is_some(), turn.target == 1);
        assert!(hit_ratio.is_none_or(|ratio| ratio > 0.9), "{hit_ratio:?}");
        assert!(turn.from_due.is_empty() && turn.ended_early.is_none());
    }
    let comparison = &outcome.comparisons[0];
    // The one that fails and the one that tells the time can't be compared.
    assert_eq!(
        (
            comparison.compared,
            comparison.different,
            comparison.passing
        ),
        (800, 0, 0)
    );
}

#[test]
fn a_target_with_other_rows_is_found_out() {
    let (bed, other) = (Bed::new(), Bed::new());
    other
        .server
        .execute(["UPDATE t SET v = 31 WHERE id = 3"])
        .unwrap();
    let to = format!("--to=other={}", other.server.address());
    for manner in ["--tls", "--writes"] {
        let (_, outcome) = bed.replay(
            &reads(),
            &[
                &to,
                manner,
                "--rounds=1",
                "--compare-results",
                "--speed=max",
            ],
        );
        let comparison = &outcome.comparisons[0];
        assert!(comparison.different > 0, "{comparison:?}");
        assert_eq!(comparison.examples, ["SELECT v FROM t WHERE id = 3"]);
        assert!(comparison.different < comparison.compared);
    }
}

#[test]
fn latency_counts_from_when_a_statement_was_due() {
    let bed = Bed::new();
    let text = log(&[
        (0, 1, "SELECT SLEEP(0.4)"),
        (100, 1, "SELECT 1"),
        (150, 2, "SELECT 2"),
    ]);
    let (_, outcome) = bed.replay(&text, &["--rounds=1"]);
    let turn = &outcome.turns[0];
    assert_eq!((turn.queries, turn.errors), (3, 0));
    // The second statement of the first connection was due 300 ms before it could be sent.
    assert!(turn.lag.max_ms() >= 290.0, "{}", turn.lag.max_ms());
    // A third of that in the mean, however slow the machine is.
    assert!(turn.from_due.mean_ms() > turn.latencies.mean_ms() + 90.0);
    assert!(turn.from_due.percentile_ms(50.0) >= 290.0);
    let (_, faster) = bed.replay(&text, &["--rounds=1", "--speed=2"]);
    assert!(faster.turns[0].lag.max_ms() >= 340.0);
}

#[test]
fn what_writes_is_sent_only_when_asked_for() {
    let bed = Bed::new();
    let text = log(&[
        (0, 1, "SELECT v FROM t"),
        (1, 1, "UPDATE t SET v = v + 1 WHERE id = 1"),
        (2, 1, "DROP TABLE IF EXISTS t2"),
        (3, 2, "KILL 1"),
    ]);
    let (plan, outcome) = bed.replay(&text, &["--rounds=2"]);
    assert_eq!(plan.left_out.len(), 3, "{:?}", plan.left_out);
    assert_eq!(outcome.turns[0].queries, 1);
    assert_eq!(bed.values(), "60");
    bed.replay(&text, &["--rounds=2", "--writes"]);
    assert_eq!(bed.values(), "62");
}

#[test]
fn connections_are_bounded() {
    let bed = Bed::new();
    let texts: Vec<(u64, u32, &str)> = (0..60)
        .map(|n| (u64::from(n), n % 20, "SELECT v FROM t"))
        .collect();
    let (plan, outcome) = bed.replay(&log(&texts), &["--rounds=1", "--connections-max=3"]);
    assert_eq!((plan.connections, plan.lanes.len()), (20, 3));
    assert!(plan.shared > 0);
    assert_eq!((outcome.turns[0].queries, outcome.turns[0].errors), (60, 0));
}

fn results(directory: &Path) -> Results {
    serde_json::from_slice(&std::fs::read(directory.join("results.json")).unwrap()).unwrap()
}

/// The built program with these arguments.
fn program(bed: &Bed, arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_remora-lab"));
    command
        .arg("replay")
        .arg(format!("--to=a={}", bed.server.address()))
        .arg(format!("--to=b={}", bed.server.address()))
        .args(arguments)
        .stdin(Stdio::null());
    command
}

#[test]
fn the_program_shows_a_table_and_leaves_results() {
    let bed = Bed::new();
    let directory = bed.scratch.join("results");
    let output = format!("--output={}", directory.display());
    let text = format!(
        "{}2023-01-01T12:00:00.500000Z\t    1 Query\tDELETE FROM t\n",
        reads()
    );
    let server_pid = format!("--server-pid={}", bed.server.id().unwrap());
    let proxy_pid = format!("--proxy-pid=b={}", std::process::id());
    let further = ["--rounds=2", &output, &server_pid, &proxy_pid];
    let arguments = bed.arguments(&text, &further);
    let ran = program(&bed, &arguments).output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{out}{err}");
    for part in [
        "402 statements to send, of 4 connections",
        "1 × writes (DELETE)",
        "due p99",
        "1146",
    ] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
    let results = results(&directory);
    assert_eq!(
        (results.experiment.as_str(), &results.state),
        ("replay", &State::Complete)
    );
    let arms: Vec<_> = results.cells.iter().map(|cell| cell.arm.as_str()).collect();
    assert_eq!(arms, ["a", "b"]);
    let server_cpu_us = results
        .cells
        .iter()
        .flat_map(|cell| &cell.repetitions)
        .map(|turn| turn.server_cpu_us.unwrap());
    assert!(server_cpu_us.sum::<f64>() > 0.0);
    let has_proxy = |cell: usize| {
        results.cells[cell]
            .repetitions
            .iter()
            .all(|turn| turn.proxy_cpu_us.is_some())
    };
    assert!(!has_proxy(0) && has_proxy(1));
    for repetition in results.cells.iter().flat_map(|cell| &cell.repetitions) {
        assert_eq!((repetition.queries, repetition.errors), (402, 1));
        assert!(repetition.open_loop.is_some());
        let series = std::fs::read_to_string(directory.join(&repetition.series)).unwrap();
        let queries: u64 = series
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(queries, 402);
    }
    let read = |further: &[&str]| {
        let read = Command::new(env!("CARGO_BIN_EXE_remora-lab"))
            .args(further)
            .current_dir(&directory)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&read.stderr).into_owned();
        (read.status.code(), err)
    };
    let (code, err) = read(&["report", "."]);
    assert_eq!(code, Some(0), "{err}");
    // It can be read, but two rounds are too few to judge anything by.
    let (code, err) = read(&["compare", ".", "."]);
    assert!(
        code == Some(2) && err.contains("no figure that could be judged"),
        "{code:?}: {err}"
    );
    assert!(directory.join("report.html").is_file());
    let again = program(&bed, &arguments).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("isn't empty"));
}

#[test]
fn an_interrupted_replay_keeps_what_it_has_measured() {
    let bed = Bed::new();
    let directory = bed.scratch.join("results");
    let output = format!("--output={}", directory.display());
    // The first connection's second statement is sent when the first was answered, and sleeps. The
    // other connection's is due much later.
    let text = log(&[
        (0, 1, "SELECT v FROM t"),
        (1, 1, "SELECT SLEEP(600)"),
        (600_000, 2, "SELECT 2"),
    ]);
    let arguments = bed.arguments(&text, &["--rounds=1", &output]);
    let mut child = program(&bed, &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut root = bed.server.root().unwrap();
    wait_for("the statement that sleeps", PATIENCE, || {
        let rows = root
            .query("SELECT 1 FROM information_schema.processlist WHERE info = 'SELECT SLEEP(600)'")?
            .rows()?;
        Ok((!rows.is_empty()).then_some(()))
    })
    .unwrap();
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut status = None;
    wait_for("the end of the replay", PATIENCE, || {
        status = child.try_wait()?;
        Ok(status)
    })
    .unwrap();
    assert_eq!(status.unwrap().code(), Some(130));
    let results = results(&directory);
    // Nobody told the server's process.
    let mut turns = results.cells.iter().flat_map(|cell| &cell.repetitions);
    assert!(turns.all(|turn| turn.server_cpu_us.is_none()));
    assert!(
        matches!(&results.state, State::Incomplete { why } if why.contains("interrupted")),
        "{:?}",
        results.state
    );
    assert_eq!(results.cells[0].repetitions[0].queries, 1);
}

#[test]
fn an_account_by_caching_sha2_password_is_let_in() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind != Kind::MySql80,
        "only MySQL 8.0 has caching_sha2_password",
    ) {
        return;
    }
    let server = Server::start(ServerOptions::default()).unwrap();
    server
        .execute(["CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'a password'"])
        .unwrap();
    let mut options = ConnectOptions::new(server.address(), "sha2", "a password");
    let refused = options.connect().unwrap_err().to_string();
    assert!(refused.contains("authentication plugin"), "{refused}");
    options.tls = true;
    options.connect().unwrap().query("SELECT 1").unwrap();
    // Now the server remembers the account.
    options.tls = false;
    options.connect().unwrap().query("SELECT 1").unwrap();
    options.password = "another".to_owned();
    options.tls = true;
    assert_eq!(options.connect().unwrap_err().code(), Some(1_045));
}

#[test]
fn a_target_that_dies_is_given_up_and_what_it_answered_is_kept() {
    let mut bed = Bed::new();
    let texts: Vec<(u64, u32, &str)> = (0..600).map(|n| (n * 100, 1, "SELECT v FROM t")).collect();
    let mut arguments = bed.arguments(&log(&texts), &["--rounds=2"]);
    arguments.insert(0, format!("--to=direct={}", bed.server.address()));
    let outcome = std::thread::scope(|scope| {
        let replayed = scope.spawn(|| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            replay(&options(&arguments), &mut |_| ()).unwrap().1
        });
        let mut root = bed.server.root().unwrap();
        wait_for("answers", PATIENCE, || {
            let selects = root.query("SHOW GLOBAL STATUS LIKE 'Com_select'")?.rows()?;
            let count = String::from_utf8(selects[0][1].clone().unwrap())?;
            Ok((count.parse::<u32>()? > 8).then_some(()))
        })
        .unwrap();
        bed.server.crash().unwrap();
        replayed.join().unwrap()
    });
    let why = outcome.ended_early.unwrap();
    assert!(
        why.starts_with("direct: it has answered nothing for 10 s"),
        "{why}"
    );
    assert_eq!(outcome.turns.len(), 1);
    let turn = &outcome.turns[0];
    assert!(turn.errors > 0 && turn.queries > turn.errors, "{turn:?}");
}
