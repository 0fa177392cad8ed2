//! `remora-lab run`, as a user runs it, at a scale of seconds: what it leaves, also when it is
//! interrupted and when its server dies.
//!
//! Servers: mariadb-10.11
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use remora_lab::results::{Repetition, Results, SCHEMA_VERSION, State};
use remora_testkit::process::{Process, Program, Signal, wait_for};
use remora_testkit::scratch::Scratch;

const PATIENCE: Duration = Duration::from_mins(2);

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_remora-lab").into()
}

fn arguments(experiment: &str, directory: &Path) -> Vec<String> {
    let directory = format!("--directory={}", directory.display());
    ["run", experiment, "--tiny", &directory]
        .map(str::to_owned)
        .to_vec()
}

fn run(experiment: &str, directory: &Path) -> Output {
    std::process::Command::new(program())
        .args(arguments(experiment, directory))
        .output()
        .unwrap()
}

fn begin(experiment: &str, directory: &Path, scratch: &Scratch) -> Process {
    Program::new("remora-lab", program(), scratch.join("log"))
        .args(arguments(experiment, directory))
        .spawn()
        .unwrap()
}

fn results(directory: &Path) -> Option<Results> {
    let text = std::fs::read_to_string(directory.join("results.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn repetitions(results: &Results) -> Vec<&Repetition> {
    let cells = results.cells.iter();
    cells.flat_map(|cell| &cell.repetitions).collect()
}

fn wait_for_a_measurement(process: &mut Process, directory: &Path) -> Results {
    process
        .wait_until("a measurement", PATIENCE, || {
            results(directory).filter(|results| !repetitions(results).is_empty())
        })
        .unwrap()
}

fn end_of(process: &mut Process) -> Option<i32> {
    wait_for("the end of the run", PATIENCE, || process.ended())
        .unwrap()
        .code()
}

/// The processes that a process started, with those that they started.
fn descendants(of: u32) -> Vec<(u32, String)> {
    let parent_and_name = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let parent: u32 = after.split_whitespace().nth(1)?.parse().ok()?;
        Some((parent, name))
    };
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let all: Vec<(u32, u32, String)> = ids
        .filter_map(|id| parent_and_name(id).map(|(parent, name)| (id, parent, name)))
        .collect();
    let (mut found, mut parents) = (Vec::new(), vec![of]);
    while let Some(parent) = parents.pop() {
        for (id, _, name) in all.iter().filter(|(_, its, _)| *its == parent) {
            found.push((*id, name.clone()));
            parents.push(*id);
        }
    }
    found
}

fn expect_gone(processes: &[(u32, String)]) {
    for (id, name) in processes {
        wait_for(&format!("the end of {name}"), PATIENCE, || {
            let is_there = Path::new(&format!("/proc/{id}")).exists();
            Ok((!is_there).then_some(()))
        })
        .unwrap();
    }
}

fn check_figures(repetition: &Repetition, directory: &Path) {
    assert!(
        repetition.queries > 0 && repetition.length_s > 0.5,
        "{repetition:?}"
    );
    assert!(repetition.queries_per_s > 0.0 && repetition.transactions_per_s > 0.0);
    assert!(repetition.server_cpu_us.unwrap() > 0.0, "{repetition:?}");
    let latency = repetition.latency_ms;
    let (p50, p99) = (latency.p50.unwrap(), latency.p99.unwrap());
    assert!(0.0 < p50 && p50 <= latency.p95 && latency.p95 <= p99 && p99 <= latency.max);
    assert!(0.0 < latency.mean && latency.mean <= latency.max);
    assert!(repetition.checked_reads > 0, "{repetition:?}");
    assert_eq!(repetition.stale_reads, 0, "{repetition:?}");
    let series = std::fs::read_to_string(directory.join(&repetition.series)).unwrap();
    let mut lines = series.lines();
    let head = "second,queries_per_s,transactions_per_s,p95_ms,errors";
    assert_eq!(lines.next(), Some(head));
    let sum: f64 = lines
        .map(|line| line.split(',').nth(1).unwrap().parse::<f64>().unwrap())
        .sum();
    assert!(sum > 0.0, "{series}");
}

#[test]
fn e1_leaves_figures_of_every_arm() {
    let scratch = Scratch::new().unwrap();
    let directory = scratch.join("results");
    let output = run("e1", &directory);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let results = results(&directory).unwrap();
    assert_eq!(results.schema_version, SCHEMA_VERSION);
    assert_eq!(results.state, State::Complete);
    for repetition in repetitions(&results) {
        check_figures(repetition, &directory);
    }
    let arm = |label: &str| {
        let reads = "complex read-only OLTP, without transactions";
        let cell = results
            .cells
            .iter()
            .find(|cell| cell.arm == label && cell.workload == reads);
        &cell.unwrap_or_else(|| panic!("no arm {label}")).repetitions[0]
    };
    for (label, has_proxy, has_cache) in [
        ("direct", false, false),
        ("builtin_64mib", false, true),
        ("hop", true, false),
        ("remora", true, true),
    ] {
        assert_eq!(arm(label).proxy_cpu_us.is_some(), has_proxy, "{label}");
        assert_eq!(arm(label).hit_ratio.is_some(), has_cache, "{label}");
    }
    for label in ["builtin_64mib", "remora"] {
        let ratio = arm(label).hit_ratio.unwrap();
        assert!(ratio > 0.0 && ratio <= 1.0, "{label}: {ratio}");
    }
    assert!(arm("builtin_64mib").counters["Qcache_inserts"] > 0.0);
    for name in ["server", "sysbench", "haproxy", "remora"] {
        assert!(!results.versions[name].is_empty(), "{name}");
        assert!(
            name == "sysbench" || !results.configuration[name].is_empty(),
            "{name}"
        );
    }
    assert!(
        results.commands[0].starts_with("sysbench oltp_read_only "),
        "{:?}",
        results.commands
    );
}

#[test]
fn an_interrupted_run_ends_its_processes_and_goes_on_in_its_directory() {
    let scratch = Scratch::new().unwrap();
    let directory = scratch.join("results");
    let mut process = begin("e5", &directory, &scratch);
    wait_for_a_measurement(&mut process, &directory);
    let children = descendants(process.id());
    assert!(!children.is_empty());
    process.signal(Signal::INT).unwrap();
    assert_eq!(end_of(&mut process), Some(130));
    expect_gone(&children);
    let first = results(&directory).unwrap();
    let why = "interrupted".to_owned();
    assert_eq!(first.state, State::Incomplete { why });
    let measured = repetitions(&first).len();

    let other = run("e1", &directory);
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        !other.status.success() && said.contains("holds another run"),
        "{said}"
    );

    let output = run("e5", &directory);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let whole = results(&directory).unwrap();
    assert_eq!(whole.state, State::Complete);
    assert_eq!(whole.started, first.started);
    let all = repetitions(&whole);
    assert!(all.len() > measured, "nothing was left to be measured");
    for before in repetitions(&first) {
        assert!(all.contains(&before), "measured again: {before:?}");
    }
    let turns: HashSet<u32> = all.iter().map(|repetition| repetition.turn).collect();
    assert_eq!(turns.len(), all.len());
    assert_eq!(whole.cells.len(), 4);
    let open_loops: Vec<_> = all.iter().filter_map(|r| r.open_loop).collect();
    assert_eq!(open_loops.len(), 2);
    for open_loop in open_loops {
        assert!(open_loop.reached_per_s > 0.0, "{open_loop:?}");
        let latency = open_loop.latency_ms;
        assert!(
            0.0 < latency.mean && latency.mean <= latency.max,
            "{latency:?}"
        );
    }
}

#[test]
fn a_server_that_dies_in_mid_run_leaves_what_was_measured_and_the_reason() {
    let scratch = Scratch::new().unwrap();
    let directory = scratch.join("results");
    let mut process = begin("e5", &directory, &scratch);
    wait_for_a_measurement(&mut process, &directory);
    let children = descendants(process.id());
    let is_server = |child: &&(u32, String)| child.1.starts_with("mariadbd");
    let server = children.iter().find(is_server).unwrap().0;
    let server = rustix::process::Pid::from_raw(i32::try_from(server).unwrap()).unwrap();
    rustix::process::kill_process(server, Signal::KILL).unwrap();
    assert_eq!(end_of(&mut process), Some(1));
    expect_gone(&children);
    let results = results(&directory).unwrap();
    let State::Incomplete { why } = &results.state else {
        panic!("{:?}", results.state)
    };
    assert!(why.contains("the server ended by itself"), "{why}");
    assert!(!repetitions(&results).is_empty());
}
