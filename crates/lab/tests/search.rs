//! The search for results that differ from the server's: a few thousand pairs of a query and a
//! change.
//!
//! `REMORA_SEARCH_SEED` repeats a seed; the long mode is `remora-lab search --pairs 100000`.
//!
//! Servers: every
//! Load: waits
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use remora_cache::BrokenRules;
use remora_lab::search::{self, Bed, Findings, Search, SeededFault, Size};
use remora_testkit::load::Random;
use remora_testkit::servers::Kind;

/// Pairs of each seed.
const PAIRS: u64 = 3_500;
const SEEDS: u64 = 3;
/// By when a broken rule must have been noticed.
const PAIRS_UNTIL_FOUND: u64 = 300_000;
const SIZE: Size = Size {
    questions: 60,
    changes: 15,
    is_mostly_code: false,
};
/// Runs for making a failing case small.
const SHRINK_RUNS: usize = 600;

fn bed(rules: BrokenRules) -> Bed {
    Bed::start(Kind::from_environment().unwrap(), rules).unwrap()
}

fn failures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/search-failures")
}

fn first_seed() -> u64 {
    std::env::var("REMORA_SEARCH_SEED").map_or_else(
        |_| Random::fresh_seed(),
        |text| text.parse().expect("REMORA_SEARCH_SEED is a number"),
    )
}

fn look(bed: &mut Bed, seed: u64, size: Size, pairs: u64, shrink_runs: usize) -> Findings {
    println!("REMORA_SEARCH_SEED={seed}");
    let search = Search {
        seed,
        pairs,
        size,
        until_failure: true,
        shrink_runs,
        failures: failures(),
    };
    search.run(bed, |_| {}).unwrap()
}

/// Every case that was ever found, then some new ones.
#[test]
fn no_held_result_differs_from_the_servers() {
    let mut bed = bed(BrokenRules::default());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("search/regressions");
    for (name, script) in search::regressions(&directory, bed.kind()).unwrap() {
        let run = bed.run(&script).unwrap();
        assert!(run.failure.is_none(), "{name}: {}", run.failure.unwrap());
    }
    let first = first_seed();
    for seed in first..first + SEEDS {
        let findings = look(&mut bed, seed, SIZE, PAIRS, SHRINK_RUNS);
        println!("{}", findings.tallies);
        if let Some(found) = findings.found.first() {
            let (failure, file) = (&found.failure, found.file.display());
            panic!(
                "seed {seed}: {failure}\n{file}:\n{}",
                found.script.to_text()
            );
        }
        let total = findings.tallies.total();
        assert!(
            total.held * 2 > total.questions,
            "too few results were held to prove anything: {total:?}"
        );
        assert!(total.measured > 200 && total.changed > 50, "{total:?}");
    }
}

#[test]
fn a_rule_broken_on_purpose_is_noticed() {
    let kind = Kind::from_environment().unwrap();
    let is_one_of_two = matches!(kind, Kind::MariaDb1011 | Kind::MySql80);
    if kind.skips(
        !is_one_of_two,
        "the rules are Remora's own, and two servers are enough to notice them",
    ) {
        return;
    }
    // The last is a race too short for a real server: the model in crates/cache/tests finds it.
    let faults = SeededFault::ALL.into_iter();
    for fault in faults.filter(|fault| *fault != SeededFault::ShapeRegisteredTooLate) {
        let size = Size {
            is_mostly_code: fault.is_of_code(),
            ..SIZE
        };
        let mut bed = bed(fault.rules());
        let findings = look(&mut bed, first_seed(), size, PAIRS_UNTIL_FOUND, 60);
        let pairs = findings.tallies.total().pairs;
        let found = findings.found.first();
        let found = found.unwrap_or_else(|| panic!("{fault:?} was not noticed in {pairs} pairs"));
        println!("{fault:?}: noticed after {pairs} pairs: {}", found.failure);
        println!("{}", found.script.to_text());
        assert!(
            found.failure.what.starts_with("from memory"),
            "{}",
            found.failure
        );
    }
}
