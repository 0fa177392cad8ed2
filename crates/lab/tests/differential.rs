//! Every packet of every answer is the server's own, in every case and every mode.
//!
//! `REMORA_LAB_SERVER` chooses the server; `REMORA_DIFFERENTIAL_CASE` and `REMORA_DIFFERENTIAL_MODE` leave out all whose
//! names don't contain them; `REMORA_DIFFERENTIAL_OUTCOMES=1` prints what became of each read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use remora_lab::differential::case::Case;
use remora_lab::differential::mode::Mode;
use remora_lab::differential::report::Report;
use remora_lab::differential::suite::Suite;
use remora_lab::proxies::RemoraOptions;
use remora_lab::servers::{Server, ServerOptions};

fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("differential");
    Case::load_all(&directory).unwrap()
}

fn server() -> Server {
    let mut options = ServerOptions::default();
    options.further.push("--max-allowed-packet=64M".to_owned());
    Server::start(options).unwrap()
}

/// Whether the environment leaves this name in.
fn is_wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |part| name.contains(&part))
}

fn run(
    suite: &Suite<'_>,
    cases: &[Case],
    modes: &[Mode],
    kind: remora_lab::servers::Kind,
) -> Report {
    let mut report = Report::default();
    for mode in modes {
        if !is_wanted("REMORA_DIFFERENTIAL_MODE", mode.name) || !(mode.takes)(kind) {
            continue;
        }
        let (mut of_mode, began) = (Report::default(), std::time::Instant::now());
        for case in cases {
            if is_wanted("REMORA_DIFFERENTIAL_CASE", &case.name) {
                suite.run(case, mode, &mut of_mode).unwrap();
            }
        }
        println!(
            "{}: {} statements, {} comparisons, {} hits, {} problems, {:.1} s",
            mode.name,
            of_mode.statements,
            of_mode.comparisons,
            of_mode.hits,
            of_mode.problems.len(),
            began.elapsed().as_secs_f32()
        );
        report.statements += of_mode.statements;
        report.comparisons += of_mode.comparisons;
        report.hits += of_mode.hits;
        report.problems.append(&mut of_mode.problems);
        report.outcomes.append(&mut of_mode.outcomes);
    }
    report
}

#[test]
fn every_answer_is_the_servers_own() {
    let (server, cases) = (server(), cases());
    let mut suite = Suite::start(&server, RemoraOptions::following()).unwrap();
    suite.with_outcomes = std::env::var_os("REMORA_DIFFERENTIAL_OUTCOMES").is_some();
    let report = run(&suite, &cases, Mode::PLAIN, server.kind());
    for outcome in &report.outcomes {
        println!("{outcome}");
    }
    println!("{report}");
    assert!(report.problems.is_empty(), "see above");
}

#[test]
fn the_suite_notices_what_is_wrong() {
    let server = server();
    let suite = Suite::start(&server, RemoraOptions::following()).unwrap();
    let problems = |text: &str| {
        let case = Case::parse("wrong", text).unwrap();
        let mut report = Report::default();
        suite.run(&case, &Mode::PLAIN[1], &mut report).unwrap();
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
