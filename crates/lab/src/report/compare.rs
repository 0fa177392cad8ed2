//! Two runs side by side, cell by cell.
//!
//! Of many cells some differ by chance, and two runs differ by what else the machine did at the time. So a difference is
//! called one only if
//!
//! 1. the intervals of both medians don't overlap, of at least 3 repetitions each,
//! 2. it is larger than [`SMALLEST_DIFFERENCE`],
//! 3. it is more than [`STANDARD_ERRORS`] standard errors, with the noise taken from all cells of both runs together (of
//!    a hundred cells that don't differ, one in a hundred comparisons then calls one different), and
//! 4. it shows in the ratio to `direct` of the same run too, where both runs have that: the machine's own changes are
//!    in both and cancel.
//!
//! For each arm all its cells are taken together too, by the geometric mean of their ratios: a small difference that
//! no cell shows by itself shows there.
//!
//! Runs of different machines are compared by their ratios to `direct` alone.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use crate::experiments::results::{Cell, Coordinate, Machine, Results, State};
use crate::statistics::bootstrap::{
    self, Estimate, Good, Interval, REPETITIONS_MIN, RESAMPLES, Resampler, Verdict,
    percentile_interval, ratio_of_medians,
};
use crate::statistics::noise::{pooled_relative_deviation, standard_error_of_ratio};
use crate::stats;

use super::about_run::scale_name;
use super::figures::{BASELINE, Measure, workloads};
use super::source;

/// Smaller relative differences are never called one.
pub const SMALLEST_DIFFERENCE: f64 = 0.05;

/// Nor those within so many standard errors.
pub const STANDARD_ERRORS: f64 = 4.0;

/// So many standard deviations to each side hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

/// What is compared of each cell.
const MEASURES: [Measure; 4] = [
    Measure::Queries,
    Measure::P95,
    Measure::ServerCpu,
    Measure::ProxyCpu,
];

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
    /// What a reader must know: other machines, other versions, incomplete runs, cells that only one has.
    pub notes: Vec<String>,
    /// By arm and measure.
    pub overall: Vec<Overall>,
    /// By cell and measure.
    pub changes: Vec<Change>,
    /// Stale reads in all, of the earlier and the later run.
    pub stale_reads: (u64, u64),
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
    pub verdict: Verdict,
}

/// A figure of an arm in both runs, over all its cells.
#[derive(Debug, Clone)]
pub struct Overall {
    /// The arm's label.
    pub arm: String,
    /// What is compared, with its unit.
    pub measure: String,
    /// How many.
    pub cells: usize,
    /// The geometric mean of the cells' ratios, later to earlier.
    pub ratio: Estimate,
    /// The same of the figures' ratios to `direct`.
    pub against_direct: Option<Estimate>,
    /// Whether the later run is better.
    pub verdict: Verdict,
}

impl Comparison {
    /// The arms that are called worse over all their cells, in all experiments.
    pub fn overall_regressions(&self) -> impl Iterator<Item = &Overall> {
        let overall = self
            .experiments
            .iter()
            .flat_map(|experiment| &experiment.overall);
        overall.filter(|overall| overall.verdict == Verdict::Worse)
    }

    /// The changes that are called worse, in all experiments.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        let changes = self
            .experiments
            .iter()
            .flat_map(|experiment| &experiment.changes);
        changes.filter(|change| change.verdict == Verdict::Worse)
    }
}

/// Compares the run in directory `b` with the earlier one in `a`. Both hold one experiment, or both hold the same ones
/// in their subdirectories.
///
/// # Errors
///
/// A run can't be read, or is of another version of the schema, another experiment or another scale than the other.
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

/// A cell's values in both runs, with those of `direct` beside it.
struct Pair<'a> {
    workload: &'a str,
    x: Option<Coordinate>,
    arm: &'a str,
    a: Vec<f64>,
    b: Vec<f64>,
    direct_a: Vec<f64>,
    direct_b: Vec<f64>,
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
    let is_same_machine = is_same(&a.machine, &b.machine);
    let (mut changes, mut overall) = (Vec::new(), Vec::new());
    for measure in MEASURES {
        let pairs = pairs(a, b, measure);
        let samples = pairs
            .iter()
            .flat_map(|pair| [pair.a.as_slice(), pair.b.as_slice()]);
        let deviation = pooled_relative_deviation(samples).unwrap_or(0.0);
        let judge = Judge {
            good: measure.good(),
            deviation,
            is_same_machine,
        };
        let found = pairs.iter().filter_map(|pair| judge.change(pair, measure));
        let found: Vec<Change> = found.collect();
        overall.extend(judge.overall(&pairs, &found, measure));
        changes.extend(found);
    }
    let stale = |results: &Results| -> u64 {
        let repetitions = results.cells.iter().flat_map(|cell| &cell.repetitions);
        repetitions.map(|repetition| repetition.stale_reads).sum()
    };
    Ok(ExperimentComparison {
        experiment: a.experiment.clone(),
        title: a.title.clone(),
        notes: notes(a, b),
        overall,
        changes,
        stale_reads: (stale(a), stale(b)),
    })
}

/// The cells that both runs have, in the order of the earlier one.
fn pairs<'a>(a: &'a Results, b: &'a Results, measure: Measure) -> Vec<Pair<'a>> {
    let (old, new) = (workloads(a), workloads(b));
    let mut pairs = Vec::new();
    for workload in &old {
        let same = |other: &&super::figures::Workload<'_>| {
            other.name == workload.name && other.axis == workload.axis
        };
        let Some(other) = new.iter().find(same) else {
            continue;
        };
        for arm in &workload.arms {
            for &x in &workload.places {
                let coordinate = workload.axis.map(|(axis, unit)| Coordinate {
                    axis: axis.to_owned(),
                    unit: unit.to_owned(),
                    value: x,
                });
                pairs.push(Pair {
                    workload: workload.name,
                    x: coordinate,
                    arm,
                    a: workload.values(arm, x, measure),
                    b: other.values(arm, x, measure),
                    direct_a: workload.values(BASELINE, x, measure),
                    direct_b: other.values(BASELINE, x, measure),
                });
            }
        }
    }
    pairs
}

/// How figures of one measure are judged.
struct Judge {
    good: Good,
    /// The standard deviation of the logarithm of one value.
    deviation: f64,
    is_same_machine: bool,
}

impl Judge {
    fn change(&self, pair: &Pair<'_>, measure: Measure) -> Option<Change> {
        let ratio = ratio_of_medians(&pair.b, &pair.a)?;
        let against_direct = (pair.arm != BASELINE)
            .then(|| against_direct(pair))
            .flatten();
        let error = standard_error_of_ratio(self.deviation, pair.a.len(), pair.b.len());
        let overlaps =
            bootstrap::compare(&pair.a, &pair.b, self.good) == Verdict::NoDifferenceShown;
        let itself = (!overlaps).then(|| self.verdict(ratio.value, error));
        let verdict = self.both(itself, against_direct, error);
        let enough = pair.a.len().min(pair.b.len()) >= REPETITIONS_MIN;
        Some(Change {
            workload: pair.workload.to_owned(),
            x: pair.x.clone(),
            arm: pair.arm.to_owned(),
            measure: measure.title().to_owned(),
            a: bootstrap::median(&pair.a)?,
            b: bootstrap::median(&pair.b)?,
            ratio,
            against_direct,
            verdict: if enough {
                verdict
            } else {
                Verdict::NoDifferenceShown
            },
        })
    }

    /// Each arm's cells together. Those without repetitions enough are left out.
    fn overall(&self, pairs: &[Pair<'_>], changes: &[Change], measure: Measure) -> Vec<Overall> {
        let mut arms: Vec<&str> = changes.iter().map(|change| change.arm.as_str()).collect();
        arms.sort_unstable();
        arms.dedup();
        let of_arm = |arm: &str| {
            let cells: Vec<&Change> = changes
                .iter()
                .filter(|change| change.arm == arm && change.ratio.interval.is_some())
                .collect();
            let errors = pairs
                .iter()
                .filter(|pair| pair.arm == arm && pair.a.len().min(pair.b.len()) >= REPETITIONS_MIN)
                .map(|pair| standard_error_of_ratio(self.deviation, pair.a.len(), pair.b.len()));
            let error = mean_error(&errors.collect::<Vec<f64>>())?;
            let ratio = geometric_mean(cells.iter().map(|cell| Some(cell.ratio)), error)?;
            let doubled = error * std::f64::consts::SQRT_2;
            let against_direct =
                geometric_mean(cells.iter().map(|cell| cell.against_direct), doubled);
            let itself = Some(self.verdict(ratio.value, error));
            Some(Overall {
                arm: arm.to_owned(),
                measure: measure.title().to_owned(),
                cells: cells.len(),
                ratio,
                against_direct,
                verdict: self.both(itself, against_direct, error),
            })
        };
        arms.into_iter().filter_map(of_arm).collect()
    }

    fn verdict(&self, ratio: f64, error: f64) -> Verdict {
        if is_large(ratio, error) {
            self.good.verdict(ratio)
        } else {
            Verdict::NoDifferenceShown
        }
    }

    /// The verdict on a figure itself and on its ratio to `direct`: where they disagree, nothing is shown.
    fn both(&self, itself: Option<Verdict>, against: Option<Estimate>, error: f64) -> Verdict {
        let itself = itself.unwrap_or(Verdict::NoDifferenceShown);
        let relative = against.map(|found| {
            let excludes_one = found
                .interval
                .is_some_and(|interval| !interval.contains(1.0));
            // Four medians are in it instead of two.
            let error = error * std::f64::consts::SQRT_2;
            if excludes_one {
                self.verdict(found.value, error)
            } else {
                Verdict::NoDifferenceShown
            }
        });
        match (self.is_same_machine, relative) {
            (true, Some(relative)) if relative != itself => Verdict::NoDifferenceShown,
            (true, _) => itself,
            (false, relative) => relative.unwrap_or(Verdict::NoDifferenceShown),
        }
    }
}

/// The standard error of the mean of figures with these.
fn mean_error(errors: &[f64]) -> Option<f64> {
    let count = f64::from(u32::try_from(errors.len()).ok()?);
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    (count > 0.0).then(|| squares.sqrt() / count)
}

/// Of ratios, with the interval that the standard error of its logarithm gives. `None` if one is missing or not above 0.
fn geometric_mean(
    ratios: impl Iterator<Item = Option<Estimate>>,
    standard_error: f64,
) -> Option<Estimate> {
    let logarithms: Vec<f64> = ratios
        .map(|ratio| {
            ratio
                .map(|ratio| ratio.value.ln())
                .filter(|value| value.is_finite())
        })
        .collect::<Option<_>>()?;
    let count = f64::from(u32::try_from(logarithms.len()).ok()?);
    let mean = logarithms.iter().sum::<f64>() / count;
    let away = NORMAL_95 * standard_error;
    mean.is_finite().then(|| Estimate {
        value: mean.exp(),
        interval: Some(Interval {
            low: (mean - away).exp(),
            high: (mean + away).exp(),
        }),
    })
}

fn is_large(ratio: f64, standard_error: f64) -> bool {
    let distance = ratio.ln().abs();
    distance > SMALLEST_DIFFERENCE.ln_1p() && distance > STANDARD_ERRORS * standard_error
}

/// How the ratio to `direct` changed.
fn against_direct(pair: &Pair<'_>) -> Option<Estimate> {
    let all = [&pair.b, &pair.a, &pair.direct_b, &pair.direct_a];
    if all
        .iter()
        .any(|values| values.is_empty() || stats::median(values) <= 0.0)
    {
        return None;
    }
    let of = |[b, a, direct_b, direct_a]: [f64; 4]| (b / direct_b) / (a / direct_a);
    let mut random = bootstrap::generator();
    let mut resamplers = all.map(|values| Resampler::new(values));
    let interval = all
        .iter()
        .all(|values| values.len() >= REPETITIONS_MIN)
        .then(|| {
            let mut draw = |_| of(resamplers.each_mut().map(|each| each.median(&mut random)));
            percentile_interval((0..RESAMPLES).map(&mut draw))
        })
        .flatten();
    Some(Estimate {
        value: of(all.map(|values| stats::median(values))),
        interval,
    })
}

/// The kernel's version may differ, and with it how much memory is left.
fn is_same(a: &Machine, b: &Machine) -> bool {
    a.processor == b.processor && a.processors == b.processors
}

fn notes(a: &Results, b: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_same(&a.machine, &b.machine) {
        notes.push(
            "The runs are of different machines: only changes of the ratio to direct are judged."
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
        if let Some(new) = b.versions.get(program).filter(|new| *new != old) {
            notes.push(format!("{program}: {old}, later {new}."));
        }
    }
    for (which, one, other) in [("earlier", a, b), ("later", b, a)] {
        let is_in = |cell: &&Cell| {
            let same = |found: &Cell| {
                found.workload == cell.workload && found.arm == cell.arm && found.x == cell.x
            };
            !other.cells.iter().any(same)
        };
        let missing = one.cells.iter().filter(is_in).count();
        if missing > 0 {
            notes.push(format!("Only in the {which} run: {missing} cells."));
        }
    }
    notes
}
