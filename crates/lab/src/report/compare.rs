//! Two runs side by side, figure by figure. How they are judged: see `compare_judge`.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use crate::results::{Cell, Coordinate, Machine, Results, State};
use crate::statistics::bootstrap::{Estimate, Verdict};

use super::about_run::scale_name;
use super::compare_judge as judge;
use super::source;

/// Two runs side by side.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The directory of the earlier run.
    pub a: String,
    /// That of the later one.
    pub b: String,
    /// One for each experiment.
    pub experiments: Vec<ExperimentComparison>,
}

/// Two runs of one experiment.
#[derive(Debug, Clone)]
pub struct ExperimentComparison {
    /// As on the command line: `e1`.
    pub experiment: String,
    /// A line on what it is.
    pub title: String,
    /// What a reader must know: other machines, other versions, incomplete runs, cells that only
    /// one has.
    pub notes: Vec<String>,
    /// How `direct` itself changed, by which the other arms are judged.
    pub direct: Vec<Direct>,
    /// By arm and measure.
    pub overall: Vec<Overall>,
    /// By cell and measure.
    pub changes: Vec<Change>,
    /// Of each arm that had any in one of the runs.
    pub stale_reads: Vec<StaleReads>,
}

/// How `direct` changed, over all its cells.
#[derive(Debug, Clone)]
pub struct Direct {
    /// What is compared, with its unit.
    pub measure: String,
    /// The geometric mean of the cells' ratios, later to earlier.
    pub ratio: f64,
}

/// What is said of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Whether the later one is better.
    Judged(Verdict),
    /// It was measured too seldom in one of the runs.
    TooFew,
    /// It is one of `direct`, by which the others are judged.
    Direct,
}

/// A figure of a cell in both runs.
#[derive(Debug, Clone)]
pub struct Change {
    /// What is asked.
    pub workload: String,
    /// Where on the x axis.
    pub x: Option<Coordinate>,
    /// The arm's label.
    pub arm: String,
    /// What is compared, with its unit: `queries/s`.
    pub measure: String,
    /// The median of the earlier run.
    pub a: Estimate,
    /// That of the later one.
    pub b: Estimate,
    /// The later one divided by the earlier one.
    pub ratio: Estimate,
    /// The same of the figures' ratios to `direct`, where both runs have it.
    pub against_direct: Option<Estimate>,
    /// Whether the later one is better.
    pub finding: Finding,
}

/// A figure of an arm in both runs, over all its cells.
#[derive(Debug, Clone)]
pub struct Overall {
    /// The arm's label.
    pub arm: String,
    /// What is compared, with its unit.
    pub measure: String,
    /// How many; at least 2.
    pub cells: usize,
    /// The geometric mean of the cells' ratios, later to earlier.
    pub ratio: Estimate,
    /// The same of the figures' ratios to `direct`.
    pub against_direct: Option<Estimate>,
    /// Whether the later run is better.
    pub verdict: Verdict,
}

/// Answers of an arm that lacked a write which had been answered before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleReads {
    /// The arm's label.
    pub arm: String,
    /// In the earlier run.
    pub a: u64,
    /// In the later one.
    pub b: u64,
}

impl StaleReads {
    /// Whether the later run had more. ProxySQL's time to live promises nothing.
    pub fn is_worse(&self) -> bool {
        self.b > self.a && self.arm != "proxysql"
    }
}

impl Change {
    /// Whether this is what is said of it.
    pub fn is(&self, verdict: Verdict) -> bool {
        self.finding == Finding::Judged(verdict)
    }
}

/// How many figures got better and worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Shown to be worse in the later run.
    pub worse: usize,
    /// Shown to be better.
    pub better: usize,
    /// Neither.
    pub no_difference: usize,
    /// Not judged, for they were measured too seldom.
    pub too_few: usize,
}

impl Counted {
    /// Those that were judged.
    pub fn judged(self) -> usize {
        self.worse + self.better + self.no_difference
    }
}

/// What a comparison ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is shown to have got worse.
    NothingWorse,
    /// Something is.
    Worse,
    /// There was nothing that could be judged.
    NotCompared,
}

impl ExperimentComparison {
    /// How many figures got better and worse.
    pub fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for change in &self.changes {
            match change.finding {
                Finding::Judged(Verdict::Worse) => counted.worse += 1,
                Finding::Judged(Verdict::Better) => counted.better += 1,
                Finding::Judged(Verdict::NoDifferenceShown) => counted.no_difference += 1,
                Finding::TooFew => counted.too_few += 1,
                Finding::Direct => {}
            }
        }
        counted
    }
}

impl Comparison {
    /// The arms that are called worse over all their cells, in all experiments.
    pub fn overall_regressions(&self) -> impl Iterator<Item = &Overall> {
        let overall = self.experiments.iter().flat_map(|found| &found.overall);
        overall.filter(|overall| overall.verdict == Verdict::Worse)
    }

    /// The changes that are called worse, in all experiments.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        let changes = self.experiments.iter().flat_map(|found| &found.changes);
        changes.filter(|change| change.is(Verdict::Worse))
    }

    /// How many figures got better and worse in all experiments.
    pub fn counted(&self) -> Counted {
        let mut all = Counted::default();
        for counted in self.experiments.iter().map(ExperimentComparison::counted) {
            all.worse += counted.worse;
            all.better += counted.better;
            all.no_difference += counted.no_difference;
            all.too_few += counted.too_few;
        }
        all
    }

    /// Whether anything got worse: a figure, an arm over all its cells, or the number of stale
    /// reads.
    pub fn outcome(&self) -> Outcome {
        let mut stale = self.experiments.iter().flat_map(|found| &found.stale_reads);
        let is_worse = self.regressions().next().is_some()
            || self.overall_regressions().next().is_some()
            || stale.any(StaleReads::is_worse);
        match (is_worse, self.counted().judged()) {
            (true, _) => Outcome::Worse,
            (false, 0) => Outcome::NotCompared,
            (false, _) => Outcome::NothingWorse,
        }
    }
}

/// Compares the run in directory `b` with the earlier one in `a`. Both hold one experiment, or both
/// hold the same ones in their subdirectories.
///
/// # Errors
///
/// A run can't be read, or is of another version of the schema, another experiment or another scale
/// than the other.
pub fn compare(a: &Path, b: &Path) -> anyhow::Result<Comparison> {
    let (earlier, later) = (runs(a)?, runs(b)?);
    let names = |runs: &[Results]| -> Vec<String> {
        runs.iter().map(|run| run.experiment.clone()).collect()
    };
    let (shown_a, shown_b) = (a.display(), b.display());
    ensure!(
        names(&earlier) == names(&later),
        "{shown_a} holds {} and {shown_b} holds {}: only runs of the same experiments can be compared",
        names(&earlier).join(", "),
        names(&later).join(", ")
    );
    let experiments = earlier
        .iter()
        .zip(&later)
        .map(|(a, b)| experiment(a, b))
        .collect::<anyhow::Result<_>>()?;
    Ok(Comparison {
        a: shown_a.to_string(),
        b: shown_b.to_string(),
        experiments,
    })
}

/// The run in a directory, or those in its subdirectories, by experiment.
fn runs(directory: &Path) -> anyhow::Result<Vec<Results>> {
    let directories: Vec<PathBuf> = if directory.join(source::RESULTS).exists() {
        vec![directory.to_owned()]
    } else {
        source::subdirectories(directory)?
    };
    let mut runs: Vec<Results> = directories
        .iter()
        .map(|directory| source::read_results(directory))
        .collect::<anyhow::Result<_>>()?;
    runs.sort_by(|a, b| a.experiment.cmp(&b.experiment));
    Ok(runs)
}

fn experiment(a: &Results, b: &Results) -> anyhow::Result<ExperimentComparison> {
    if a.scale != b.scale {
        bail!(
            "the runs of {} are of the scales {} and {}: only runs of the same scale can be compared",
            a.experiment,
            scale_name(a.scale),
            scale_name(b.scale)
        );
    }
    let judged = judge::all(a, b, is_same(&a.machine, &b.machine));
    Ok(ExperimentComparison {
        experiment: a.experiment.clone(),
        title: a.title.clone(),
        notes: notes(a, b),
        direct: judged.direct,
        overall: judged.overall,
        changes: judged.changes,
        stale_reads: stale_reads(a, b),
    })
}

fn stale_reads(a: &Results, b: &Results) -> Vec<StaleReads> {
    let mut arms: Vec<&str> = Vec::new();
    for cell in a.cells.iter().chain(&b.cells) {
        if !arms.contains(&cell.arm.as_str()) {
            arms.push(&cell.arm);
        }
    }
    let of = |results: &Results, arm: &str| -> u64 {
        let cells = results.cells.iter().filter(|cell| cell.arm == arm);
        let repetitions = cells.flat_map(|cell| &cell.repetitions);
        repetitions.map(|repetition| repetition.stale_reads).sum()
    };
    let found = arms.into_iter().map(|arm| StaleReads {
        arm: arm.to_owned(),
        a: of(a, arm),
        b: of(b, arm),
    });
    found.filter(|stale| stale.a + stale.b > 0).collect()
}

/// The kernel's version may differ, and with it how much memory is left.
fn is_same(a: &Machine, b: &Machine) -> bool {
    a.processor == b.processor && a.processors == b.processors
}

fn notes(a: &Results, b: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_same(&a.machine, &b.machine) {
        notes.push(
            "The runs are of different machines: only changes of the ratio to direct are judged, and those too can \
             come from the machine."
                .to_owned(),
        );
    }
    if a.machine.kernel != b.machine.kernel {
        notes.push(format!(
            "kernel: {}, later {}.",
            a.machine.kernel, b.machine.kernel
        ));
    }
    for (which, run) in [("earlier", a), ("later", b)] {
        if let State::Incomplete { why } = &run.state {
            notes.push(format!("The {which} run is incomplete: {why}."));
        }
    }
    for (program, old) in &a.versions {
        match b.versions.get(program) {
            Some(new) if new != old => notes.push(format!("{program}: {old}, later {new}.")),
            Some(same) if program == "remora" => {
                notes.push(format!("The same Remora in both: {same}."));
            }
            _ => {}
        }
    }
    for (which, one, other) in [("earlier", a, b), ("later", b, a)] {
        let missing = one.cells.iter().filter(|cell| !has(other, cell)).count();
        if missing > 0 {
            notes.push(format!("Only in the {which} run: {missing} cells."));
        }
    }
    notes
}

fn has(results: &Results, cell: &Cell) -> bool {
    let is_it = |found: &Cell| {
        found.workload == cell.workload && found.arm == cell.arm && found.x == cell.x
    };
    results.cells.iter().any(is_it)
}
