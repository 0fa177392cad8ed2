//! Comparisons of made-up runs.

use std::path::Path;

use crate::results::Scale;
use crate::statistics::bootstrap::Verdict;
use crate::statistics::testing::seeded;
use remora_testkit::load::random::Random;

use super::compare::{Change, Outcome, compare};
use super::testing::{Synthetic, everything};
use super::tests::{assert_well_formed, written};

/// What `make check` and `make test` leave out.
mod exhaustive {
    use super::*;

    #[test]
    fn a_planted_regression_is_called_one_and_a_rerun_is_not() {
        let mut random = seeded();
        for _ in 0..3 {
            let mut run = |remora: f64| written(&everything(Random::new(random.next()), remora));
            let (before, again, slower) = (run(1.0), run(1.0), run(0.75));
            let rerun = compare(before.path(), again.path()).unwrap();
            let called: Vec<_> = rerun.regressions().collect();
            assert!(called.is_empty(), "{called:?}");
            assert_eq!(
                rerun.overall_regressions().count(),
                0,
                "{}",
                rerun.text(true)
            );
            let regression = compare(before.path(), slower.path()).unwrap();
            let called: Vec<_> = regression.regressions().collect();
            let is_planted = |change: &&Change| change.arm == "remora";
            assert!(called.iter().all(is_planted), "{called:?}");
            let cells = called
                .iter()
                .filter(|change| change.measure == "queries/s")
                .count();
            assert!(cells >= 17, "{cells} of 19 cells");
            let overall: Vec<_> = regression.overall_regressions().collect();
            assert!(
                overall
                    .iter()
                    .any(|found| found.arm == "remora" && found.measure == "queries/s")
            );
            assert!(
                overall.iter().all(|found| found.arm == "remora"),
                "{overall:?}"
            );
            let back = compare(slower.path(), before.path()).unwrap();
            assert_eq!(back.regressions().count(), 0);
            let better = back.experiments[0].changes.iter();
            assert!(better.filter(|change| change.is(Verdict::Better)).count() >= 17);
            assert!(regression.text(false).contains("WORSE"));
            assert_well_formed(&regression.html());
        }
    }
}

#[test]
fn a_small_regression_that_no_cell_shows_shows_over_all_cells() {
    let mut random = seeded();
    let mut run = |remora: f64| written(&everything(Random::new(random.next()), remora));
    let (before, slower) = (run(1.0), run(0.92));
    let comparison = compare(before.path(), slower.path()).unwrap();
    let found = comparison
        .overall_regressions()
        .find(|found| found.measure == "queries/s");
    let found = found.unwrap();
    assert_eq!((found.arm.as_str(), found.cells), ("remora", 19));
    assert!((0.89..0.95).contains(&found.ratio.value), "{found:?}");
}

#[test]
fn a_slower_machine_is_no_regression() {
    let before = written(&everything(seeded(), 1.0));
    let mut run = everything(seeded(), 1.0);
    for repetition in run
        .results
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.repetitions)
    {
        repetition.queries_per_s *= 0.5;
    }
    let busy = written(&run);
    let is_ours = |change: &&Change| change.arm == "remora" && change.measure == "queries/s";
    let comparison = compare(before.path(), busy.path()).unwrap();
    assert_eq!(comparison.regressions().filter(is_ours).count(), 0);
    // Without direct beside it there is nothing to tell the machine from Remora by.
    run.results.cells.retain(|cell| cell.arm != "direct");
    let alone = written(&run);
    let comparison = compare(before.path(), alone.path()).unwrap();
    assert!(comparison.regressions().filter(is_ours).count() > 15);
}

/// A run in which an arm has these multiples of its throughput.
fn with_speeds(speed: impl Fn(&str) -> f64) -> tempfile::TempDir {
    let mut run = everything(seeded(), 1.0);
    for cell in &mut run.results.cells {
        for repetition in &mut cell.repetitions {
            repetition.queries_per_s *= speed(&cell.arm);
        }
    }
    written(&run)
}

#[test]
fn a_machine_that_slows_arms_unevenly_is_no_regression() {
    let before = with_speeds(|_| 1.0);
    let speeds = |remora: f64| move |arm: &str| if arm == "remora" { remora } else { 0.5 };
    let ours = |later: &tempfile::TempDir| {
        let comparison = compare(before.path(), later.path()).unwrap();
        let is_ours = |change: &&Change| change.arm == "remora" && change.measure == "queries/s";
        comparison.regressions().filter(is_ours).count()
    };
    // Everything runs at half its speed, Remora at a little less: that too can come from the
    // machine.
    assert_eq!(ours(&with_speeds(speeds(0.35))), 0);
    assert!(ours(&with_speeds(speeds(0.15))) > 15);
    let comparison = compare(before.path(), with_speeds(|_| 0.5).path()).unwrap();
    assert_eq!(comparison.outcome(), Outcome::NothingWorse);
    let shown = comparison.text(false);
    let (_, direct) = shown
        .split_once("direct itself, by which the others are judged: ")
        .expect(&shown);
    let ratio: f64 = direct[..4].parse().expect(direct);
    assert!((0.45..0.55).contains(&ratio), "{shown}");
}

#[test]
fn a_verdict_comes_first_and_then_what_differs_the_worst_first() {
    let mut random = seeded();
    let mut run = |remora: f64| written(&everything(Random::new(random.next()), remora));
    let (before, slower) = (run(1.0), run(0.6));
    let comparison = compare(before.path(), slower.path()).unwrap();
    assert_eq!(comparison.outcome(), Outcome::Worse);
    let shown = comparison.text(false);
    let first = shown.lines().next().unwrap();
    assert!(
        first.contains(" figures got worse, ") && first.contains(" show no difference."),
        "{shown}"
    );
    assert!(
        shown.contains("remora over all its 19 cells: queries/s 0."),
        "{shown}"
    );
    let rows = |text: &str| text.lines().filter(|line| line.contains(" → ")).count() - 1;
    let counted = comparison.counted();
    assert_eq!(rows(&shown), counted.worse + counted.better);
    assert_eq!(
        rows(&comparison.text(true)),
        comparison.experiments[0].changes.len()
    );
    let distances: Vec<f64> = comparison.experiments[0]
        .differing()
        .iter()
        .filter(|change| change.is(Verdict::Worse))
        .map(|change| change.ratio.value.ln().abs())
        .collect();
    assert!(distances.is_sorted_by(|a, b| a >= b), "{distances:?}");
    for line in comparison
        .text(true)
        .lines()
        .filter(|line| !line.starts_with("earlier"))
    {
        assert!(
            line.chars().count() <= 120 || line.starts_with("later"),
            "{line}"
        );
    }
    let html = comparison.html();
    assert!(html.find(&comparison.verdict()).unwrap() < html.find("<table").unwrap());
}

#[test]
fn too_few_repetitions_are_not_taken_for_no_difference() {
    let run = || {
        let mut run = Synthetic::new("e1", seeded());
        run.repetitions = 2;
        for arm in ["direct", "remora"] {
            run.cell("point selects", Some(("threads", "", 8.0)), arm, 1_000.0);
        }
        written(&run)
    };
    let comparison = compare(run().path(), run().path()).unwrap();
    assert_eq!(comparison.outcome(), Outcome::NotCompared);
    let verdict = comparison.verdict();
    assert!(
        verdict.starts_with("Nothing could be compared. Not judged: 7 figures"),
        "{verdict}"
    );
}

#[test]
fn more_stale_reads_are_worse() {
    let with = |arm: &str| {
        let mut run = everything(seeded(), 1.0);
        let mut cells = run.results.cells.iter_mut();
        let cell = cells.find(|cell| cell.arm == arm).unwrap();
        cell.repetitions[0].stale_reads = 1;
        written(&run)
    };
    let before = written(&everything(seeded(), 1.0));
    let of = |later: &tempfile::TempDir| compare(before.path(), later.path()).unwrap();
    let worse = of(&with("remora"));
    assert_eq!(worse.outcome(), Outcome::Worse);
    assert!(
        worse.verdict().contains("more STALE READS"),
        "{}",
        worse.verdict()
    );
    assert_eq!(of(&with("proxysql")).outcome(), Outcome::NothingWorse);
    let back = compare(with("remora").path(), before.path()).unwrap();
    assert_eq!(back.outcome(), Outcome::NothingWorse);
}

#[test]
fn processor_time_of_less_than_two_ticks_is_no_difference() {
    let with = |queries: u64, server_cpu_us: f64| {
        let mut run = Synthetic::new("e1", seeded());
        for arm in ["direct", "remora"] {
            run.cell("point selects", None, arm, 1_000.0);
        }
        for repetition in &mut run.results.cells[1].repetitions {
            (repetition.queries, repetition.server_cpu_us) = (queries, Some(server_cpu_us));
        }
        written(&run)
    };
    let outcome = |queries| {
        let (a, b) = (with(queries, 1.0), with(queries, 2.0));
        compare(a.path(), b.path()).unwrap().outcome()
    };
    // A tick is 10 ms: of 10,000 queries, 1 µs for each.
    assert_eq!(outcome(10_000), Outcome::NothingWorse);
    assert_eq!(outcome(1_000_000), Outcome::Worse);
}

#[test]
fn runs_that_can_not_be_compared_are_refused() {
    let of = |experiment: &str, scale: Scale| {
        let mut run = Synthetic::new(experiment, seeded());
        run.results.scale = scale;
        written(&run)
    };
    let refused = |a: &Path, b: &Path| format!("{:#}", compare(a, b).unwrap_err());
    let (e1, e2) = (of("e1", Scale::Quick), of("e2", Scale::Quick));
    let full = of("e1", Scale::Full);
    assert!(refused(e1.path(), e2.path()).contains("the same experiments"));
    assert!(refused(e1.path(), full.path()).contains("the scales quick and full"));
    let mut other = Synthetic::new("e1", seeded());
    other.results.schema_version += 1;
    let other = written(&other);
    assert!(refused(e1.path(), other.path()).contains("version 3 of the schema"));
    assert!(refused(e1.path(), &e1.path().join("gone")).contains("can't read"));
    std::fs::write(e2.path().join("results.json"), "{").unwrap();
    assert!(refused(e1.path(), e2.path()).contains("isn't what a run wrote"));
}
