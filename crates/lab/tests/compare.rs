//! `remora-lab compare` on real runs of two builds: what it names and refuses, and how it ends.
//!
//! How fast a run is depends on what else the machine does, so no verdict can rest on it: the runs
//! are real, and their figures are set before they are compared. What is called a difference is
//! asked of drawn samples in `report/compare_tests.rs`.
//!
//! Servers: mariadb-10.11
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use remora_lab::results::{Latency, Repetition, Results};
use remora_testkit::programs;
use remora_testkit::scratch::Scratch;

/// Another build: a program that becomes the Remora at `REMORA`.
const OTHER_BUILD: &str = r#"#!/bin/sh
exec "REMORA" "$@"
"#;
/// Repetitions of each cell once its figures are set: enough to conclude something.
const REPETITIONS: u32 = 5;

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_remora-lab"))
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// One point of an experiment, measured once.
fn run(directory: &Path, further: &[&str]) -> Output {
    let directory = format!("--directory={}", directory.display());
    let arguments = [
        "run",
        "e5",
        "--tiny",
        "--at=1",
        "--repetitions=1",
        "--arms=direct,remora",
        &directory,
    ];
    lab(&[&arguments, further].concat())
}

fn measured(directory: &Path, further: &[&str]) -> Results {
    let output = run(directory, further);
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(directory.join("results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn compare(a: &Path, b: &Path, further: &[&str]) -> (Option<i32>, String) {
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let output = lab(&[&["compare", a, b], further].concat());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    (output.status.code(), said(&output))
}

fn other_build(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("other-remora");
    let remora = programs::remora().unwrap().display().to_string();
    std::fs::write(&path, OTHER_BUILD.replace("REMORA", &remora)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Sets a run's figures to those of a quiet machine, on which Remora answers so many queries a
/// second.
fn set_figures(directory: &Path, mut results: Results, remora_queries_per_s: f64) -> Results {
    for cell in &mut results.cells {
        let queries_per_s = match &*cell.arm {
            "remora" => remora_queries_per_s,
            _ => 10_000.0,
        };
        let measured = cell.repetitions[0].clone();
        // No two are quite the same.
        let places = (0..REPETITIONS).map(|number| 1.0 + 0.001 * f64::from(number));
        cell.repetitions = places
            .map(|place| repetition(&measured, queries_per_s * place))
            .collect();
    }
    let text = serde_json::to_string(&results).unwrap();
    std::fs::write(directory.join("results.json"), text).unwrap();
    results
}

/// What was measured, with other figures.
fn repetition(measured: &Repetition, queries_per_s: f64) -> Repetition {
    let query_ms = 1_000.0 / queries_per_s;
    Repetition {
        queries_per_s,
        transactions_per_s: queries_per_s,
        latency_ms: Latency {
            mean: query_ms,
            p50: measured.latency_ms.p50.map(|_| query_ms),
            p95: query_ms,
            p99: measured.latency_ms.p99.map(|_| query_ms),
            max: query_ms,
        },
        server_cpu_us: measured.server_cpu_us.map(|_| 20.0),
        proxy_cpu_us: measured.proxy_cpu_us.map(|_| query_ms * 100.0),
        ..measured.clone()
    }
}

#[test]
fn a_slower_build_is_a_regression_and_a_run_is_none_against_itself() {
    let scratch = Scratch::new().unwrap();
    let [before, slower] = ["before", "slower"].map(|name| scratch.join(name));
    let other_build = other_build(&scratch);
    let other = format!("--remora={}", other_build.display());
    let first = set_figures(&before, measured(&before, &[]), 5_000.0);
    let last = set_figures(&slower, measured(&slower, &[&other]), 2_500.0);

    let (status, shown) = compare(&before, &before, &["--all"]);
    println!("{shown}");
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.starts_with("0 of "), "{shown}");
    assert!(shown.contains("The same Remora in both"), "{shown}");

    let (status, regression) = compare(&before, &slower, &["--all"]);
    println!("{regression}");
    assert_eq!(status, Some(1), "{regression}");
    let is_it = |line: &&str| line.contains("queries/s") && line.ends_with("WORSE");
    let worse = regression.lines().find(is_it);
    assert!(
        worse.is_some_and(|line| line.contains("remora")),
        "{regression}"
    );
    // The build is named, so that one sees which it is.
    assert_ne!(first.versions["remora"], last.versions["remora"]);
    assert!(
        regression.contains(&last.versions["remora"]),
        "{regression}"
    );
    let program = &last.configuration["remora program"];
    assert_eq!(Path::new(program), other_build.canonicalize().unwrap());

    let (status, improved) = compare(&slower, &before, &[]);
    assert_eq!(status, Some(0), "{improved}");
    let is_it = |line: &str| line.contains("queries/s") && line.ends_with("better");
    assert!(improved.lines().any(is_it), "{improved}");

    let output = run(&before, &[&other]);
    let why = said(&output);
    assert!(
        !output.status.success() && why.contains("was begun with"),
        "{why}"
    );
}

#[test]
fn what_can_not_be_compared_or_measured_is_refused_with_the_reason() {
    let scratch = Scratch::new().unwrap();
    let gone = scratch.join("gone");
    let (status, why) = compare(&gone, &gone, &[]);
    assert_eq!(status, Some(2), "{why}");
    assert!(
        why.contains("give a directory that a run wrote") || why.contains("can't read"),
        "{why}"
    );
    for (remora, expected) in [
        ("no/such/remora", "can't find the Remora no/such/remora"),
        ("/", "/ is no program"),
        ("/bin/true", "/bin/true is no Remora"),
    ] {
        let output = run(&scratch.join("run"), &["--remora", remora]);
        let why = said(&output);
        assert!(!output.status.success() && why.contains(expected), "{why}");
    }
    let output = run(&scratch.join("run"), &["--at=7"]);
    let why = said(&output);
    assert!(
        why.contains("e5 measures nothing at 7; its places are 1, 4"),
        "{why}"
    );
}
