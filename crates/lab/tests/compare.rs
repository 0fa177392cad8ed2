//! `remora-lab compare` on real runs: a Remora that was slowed on purpose is a regression, a run is
//! none against itself. That a rerun is none either holds with some probability only, and depends
//! on what else the machine does: `report/compare_tests.rs` asks it of drawn samples.
//!
//! Servers: mariadb-10.11
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use remora_lab::experiments::results::Results;
use remora_testkit::programs;
use remora_testkit::scratch::Scratch;

/// Runs the Remora at `REMORA`, but holds it for 0.3 s and lets it run for 0.01 s in turns. The
/// process that it becomes is Remora itself, so that the lab can measure and end it by its id.
/// Waiting is a builtin of the shell, and Remora comes after the shell where both want a processor:
/// else a busy machine lets Remora run for too long.
const SLOWED: &str = r#"#!/bin/bash
if [ "$1" = --version ]; then exec "REMORA" --version; fi
(
    exec 7<> <(:) >/dev/null 2>&1
    while kill -STOP $$; do
        read -rt 0.3 -u 7
        kill -CONT $$ || exit
        read -rt 0.01 -u 7
    done
) &
exec nice -n 5 "REMORA" "$@"
"#;

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_remora-lab"))
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// One point of an experiment, often enough to conclude something, in less than half a minute.
fn run(directory: &Path, further: &[&str]) -> Output {
    let directory = format!("--directory={}", directory.display());
    let arguments = [
        "run",
        "e5",
        "--tiny",
        "--at=1",
        "--repetitions=4",
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

fn slowed(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("slowed-remora");
    let remora = programs::remora().unwrap().display().to_string();
    std::fs::write(&path, SLOWED.replace("REMORA", &remora)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_slowed_remora_is_a_regression_and_a_run_is_none_against_itself() {
    let scratch = Scratch::new().unwrap();
    let [before, slower] = ["before", "slower"].map(|name| scratch.join(name));
    let slowed = slowed(&scratch);
    let other = format!("--remora={}", slowed.display());
    let first = measured(&before, &[]);
    let last = measured(&slower, &[&other]);

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
    assert_eq!(Path::new(program), slowed.canonicalize().unwrap());

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
