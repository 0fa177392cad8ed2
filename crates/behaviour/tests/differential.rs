//! Every packet of every answer is the server's own, in every case and every mode.
//!
//! `REMORA_TEST_SERVER` chooses the server; `REMORA_DIFFERENTIAL_CASE` and
//! `REMORA_DIFFERENTIAL_MODE` leave out all but those that they name, separated by `;`.
//! `REMORA_DIFFERENTIAL_OUTCOMES=1` prints what became of each read.
//!
//! Servers: every
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Instant;

use remora_behaviour::differential::case::Case;
use remora_behaviour::differential::mode::Mode;
use remora_behaviour::differential::report::Report;
use remora_behaviour::differential::suite::Suite;
use remora_testkit::certificates::Authority;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{Kind, Server, ServerOptions};

fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("differential");
    Case::load_all(&directory).unwrap()
}

fn server() -> Server {
    Server::start(options()).unwrap()
}

fn options() -> ServerOptions {
    let mut options = ServerOptions::default();
    for option in [
        "--max-allowed-packet=64M",
        "--log-bin-trust-function-creators=1",
        // A slow answer says so in its flags, and this machine may be busy.
        "--long-query-time=3600",
    ] {
        options.further.push(option.to_owned());
    }
    options
}

/// A server that offers TLS, where it can, and a Remora's options to offer it too.
fn sealed_server(authority: &Authority) -> (Server, RemoraOptions) {
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let mut options = options();
    if Kind::from_environment().unwrap() == Kind::MariaDb1011 {
        options.further.push(format!("--ssl-cert={certificate}"));
        options.further.push(format!("--ssl-key={key}"));
    }
    let of_remora = RemoraOptions::storing_all()
        .with("listen.tls_certificate_file", &certificate.to_string())
        .with("listen.tls_key_file", &key.to_string());
    (Server::start(options).unwrap(), of_remora)
}

/// Whether the environment leaves this name in: it is one of those named, separated by `;`, or
/// nothing is named.
fn is_wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |names| names.split(';').any(|one| one == name))
}

fn run(suite: &Suite<'_>, cases: &[Case], modes: &[Mode], kind: Kind) -> Report {
    let is_wanted_mode =
        |mode: &&Mode| is_wanted("REMORA_DIFFERENTIAL_MODE", mode.name) && (mode.takes)(kind);
    let modes: Vec<&Mode> = modes.iter().filter(is_wanted_mode).collect();
    let mut reports: Vec<Report> = modes.iter().map(|_| Report::default()).collect();
    for case in cases {
        if is_wanted("REMORA_DIFFERENTIAL_CASE", &case.name) {
            let began = Instant::now();
            suite.run(case, &modes, &mut reports).unwrap();
            println!("{}: {:.1} s", case.name, began.elapsed().as_secs_f32());
        }
    }
    let mut all = Report::default();
    for (mode, of_mode) in modes.iter().zip(reports) {
        for line in of_mode.outcomes.iter().chain(&of_mode.problems) {
            println!("{line}");
        }
        println!("{}: {of_mode}", mode.name);
        all.add(of_mode);
    }
    all
}

fn check(report: &Report) {
    println!("{report}");
    let first: Vec<&str> = report.problems.iter().take(3).map(String::as_str).collect();
    assert!(
        first.is_empty(),
        "above are all; the first:\n{}",
        first.join("\n")
    );
}

#[test]
fn every_answer_is_the_servers_own() {
    let (server, cases) = (server(), cases());
    let mut suite = Suite::start(&server, RemoraOptions::storing_all()).unwrap();
    suite.with_outcomes = std::env::var_os("REMORA_DIFFERENTIAL_OUTCOMES").is_some();
    let report = run(&suite, &cases, Mode::PLAIN, server.kind());
    check(&report);
}

#[test]
fn every_answer_is_the_servers_own_on_sealed_connections() {
    let (authority, cases) = (Authority::new().unwrap(), cases());
    let (server, options) = sealed_server(&authority);
    let suite = Suite::start(&server, options).unwrap();
    let report = run(&suite, &cases, Mode::SEALED, server.kind());
    check(&report);
}

#[test]
fn there_are_enough_cases() {
    let statements: usize = cases().iter().map(|case| case.steps.len()).sum();
    println!("{} cases, {statements} statements", cases().len());
    assert!(statements >= 600, "{statements}");
}

#[test]
fn the_suite_notices_what_is_wrong() {
    let server = server();
    let suite = Suite::start(&server, RemoraOptions::storing_all()).unwrap();
    let problems = |text: &str| {
        let case = Case::parse("wrong", text).unwrap();
        let mut report = [Report::default()];
        suite.run(&case, &[&Mode::PLAIN[1]], &mut report).unwrap();
        let [report] = report;
        report.problems
    };
    let table = "CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\n";
    let with = |text: &str| problems(&format!("{table}{text}"));
    assert_eq!(with("SELECT a FROM t; -- hit: yes"), Vec::<String>::new());
    // An expectation of a hit, and one of none.
    assert!(with("SELECT a FROM t WHERE a < RAND() * 0; -- hit: yes")[0].contains("never a hit"));
    assert!(with("SELECT a FROM t;\nSELECT a FROM t;\nSELECT a FROM t; -- hit: yes\nSELECT a FROM t; -- hit: no")[0].contains("must not be"));
    // An error that isn't expected, and none where one is.
    assert!(with("SELECT b FROM t;")[0].contains("error 1054"));
    assert!(with("SELECT a FROM t; -- error: 1054")[0].contains("error 0"));
    // Bytes that differ.
    assert!(!with("SELECT CONNECTION_ID();").is_empty());
    assert_eq!(
        with("SELECT CONNECTION_ID(); -- mask: connection"),
        Vec::<String>::new()
    );
}
