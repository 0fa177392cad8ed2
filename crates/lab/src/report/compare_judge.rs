//! Whether a figure of one run differs from that of another.
//!
//! Of many figures some differ by chance, and two runs differ by what else the machine did at the
//! time. So a difference is called one only if
//!
//! 1. the intervals of both medians don't overlap, of at least 3 repetitions each,
//! 2. it is larger than [`SMALLEST_DIFFERENCE`], and, of processor time, than the ticks that the
//!    kernel counts in,
//! 3. it is more than [`standard_errors`] standard errors, with the noise taken from all cells of
//!    both runs together,
//! 4. it shows in the ratio to `direct` of the same run too, where both runs have that: what slows
//!    the whole machine is in both and cancels, and
//! 5. relative to `direct` it is larger than what `direct` itself changed by, for what slows a
//!    machine doesn't slow all arms alike.
//!
//! So `direct` is what the others are judged by, and isn't judged itself, unless a run has no other
//! arm. A proxy's processor time is compared with that of the server in `direct`: both grow when
//! the processor is slower or shared.
//!
//! For each arm all its cells are taken together too, by the geometric mean of their ratios: a
//! small difference that no cell shows by itself shows there.
//!
//! Runs of different machines are compared by their ratios to `direct` alone.

use crate::results::{Coordinate, Repetition, Results};
use crate::statistics::bootstrap::{
    self, Estimate, Good, Interval, REPETITIONS_MIN, RESAMPLES, Resampler, Verdict,
    percentile_interval, ratio_of_medians,
};
use crate::statistics::noise::{pooled_relative_deviation, standard_error_of_ratio};
use crate::stats;

use super::compare::{Change, Direct, Finding, Overall};
use super::figures::{BASELINE, Measure, Workload, workloads};

/// Smaller relative differences are never called one.
pub(super) const SMALLEST_DIFFERENCE: f64 = 0.05;

/// Nor those within so many standard errors, however many repetitions there are.
pub(super) const STANDARD_ERRORS_MIN: f64 = 4.0;

/// So many standard deviations to each side hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

/// So many standard errors are exceeded by chance once in a thousand times (Student's t,
/// two-sided), for 1, 2 … degrees of freedom: a deviation that few values tell may itself be too
/// small by chance. From 17 on it is less than [`STANDARD_ERRORS_MIN`].
const STUDENT: [f64; 16] = [
    636.6, 31.60, 12.92, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587, 4.437, 4.318, 4.221,
    4.140, 4.073, 4.015,
];

/// Two ticks of the kernel's count of processor time, microseconds.
const TICKS_US: f64 = 20_000.0;

/// Only cells whose processor time is so many times what can be told apart count for an arm's mean.
const RESOLVED: f64 = 10.0;

/// What is compared of each cell.
const MEASURES: [Measure; 4] = [
    Measure::Queries,
    Measure::P95,
    Measure::ServerCpu,
    Measure::ProxyCpu,
];

/// What two runs of an experiment show.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) direct: Vec<Direct>,
    pub(super) overall: Vec<Overall>,
    pub(super) changes: Vec<Change>,
}

/// Judges all figures that both runs have.
pub(super) fn all(a: &Results, b: &Results, is_same_machine: bool) -> Judged {
    let mut judged = Judged::default();
    for measure in MEASURES {
        let pairs = pairs(a, b, measure);
        let samples: Vec<&[f64]> = pairs
            .iter()
            .flat_map(|pair| [pair.a.as_slice(), pair.b.as_slice()])
            .collect();
        let judge = Judge {
            measure,
            deviation: pooled_relative_deviation(samples.iter().copied()).unwrap_or(0.0),
            standard_errors: standard_errors(degrees_of_freedom(&samples)),
            is_same_machine,
            judges_direct: pairs.iter().all(|pair| pair.arm == BASELINE),
        };
        let found: Vec<(&Pair<'_>, Change)> = pairs
            .iter()
            .filter_map(|pair| Some((pair, judge.change(pair)?)))
            .collect();
        judged.direct.extend(judge.direct(&found));
        judged.overall.extend(judge.overall(&found));
        judged
            .changes
            .extend(found.into_iter().map(|(_, change)| change));
    }
    judged
}

/// How many standard errors a difference must have, if the standard deviation was found with so
/// many degrees of freedom.
fn standard_errors(freedom: usize) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        _ => STUDENT
            .get(freedom - 1)
            .map_or(STANDARD_ERRORS_MIN, |&needed| {
                needed.max(STANDARD_ERRORS_MIN)
            }),
    }
}

fn degrees_of_freedom(samples: &[&[f64]]) -> usize {
    let counting = |sample: &&[f64]| sample.iter().filter(|value| **value > 0.0).count();
    samples
        .iter()
        .map(|sample| counting(sample).saturating_sub(1))
        .sum()
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
    /// Differences up to this are not told apart.
    resolution: f64,
}

/// The cells that both runs have, in the order of the earlier one.
fn pairs<'a>(a: &'a Results, b: &'a Results, measure: Measure) -> Vec<Pair<'a>> {
    let (old, new) = (workloads(a), workloads(b));
    let mut pairs = Vec::new();
    for workload in &old {
        let same =
            |other: &&Workload<'_>| other.name == workload.name && other.axis == workload.axis;
        let Some(other) = new.iter().find(same) else {
            continue;
        };
        for arm in &workload.arms {
            for &x in &workload.places {
                pairs.push(pair(workload, other, arm, x, measure));
            }
        }
    }
    pairs
}

fn pair<'a>(
    old: &Workload<'a>,
    new: &Workload<'a>,
    arm: &'a str,
    x: f64,
    measure: Measure,
) -> Pair<'a> {
    let against = match measure {
        Measure::ProxyCpu => Measure::ServerCpu,
        other => other,
    };
    let is_cpu_time = against == Measure::ServerCpu;
    let repetitions = [old.repetitions(arm, x), new.repetitions(arm, x)].concat();
    Pair {
        workload: old.name,
        x: old.axis.map(|(axis, unit)| Coordinate {
            axis: axis.to_owned(),
            unit: unit.to_owned(),
            value: x,
        }),
        arm,
        a: old.values(arm, x, measure),
        b: new.values(arm, x, measure),
        direct_a: old.values(BASELINE, x, against),
        direct_b: new.values(BASELINE, x, against),
        resolution: if is_cpu_time {
            ticks_per_query(&repetitions)
        } else {
            0.0
        },
    }
}

/// What ticks are of a query's processor time, microseconds, where that is most.
#[allow(clippy::cast_precision_loss)]
fn ticks_per_query(repetitions: &[&Repetition]) -> f64 {
    let each = repetitions
        .iter()
        .map(|repetition| TICKS_US / repetition.queries.max(1) as f64);
    each.fold(0.0, f64::max)
}

/// How figures of one measure are judged.
struct Judge {
    measure: Measure,
    /// The standard deviation of the logarithm of one value.
    deviation: f64,
    /// So many a difference must have.
    standard_errors: f64,
    is_same_machine: bool,
    /// For there is nothing else.
    judges_direct: bool,
}

impl Judge {
    fn change(&self, pair: &Pair<'_>) -> Option<Change> {
        let ratio = ratio_of_medians(&pair.b, &pair.a)?;
        let against_direct = (pair.arm != BASELINE)
            .then(|| against_direct(pair))
            .flatten();
        let finding = if pair.a.len().min(pair.b.len()) < REPETITIONS_MIN {
            Finding::TooFew
        } else if pair.arm == BASELINE && !self.judges_direct {
            Finding::Direct
        } else {
            Finding::Judged(self.judged(pair, ratio, against_direct))
        };
        Some(Change {
            workload: pair.workload.to_owned(),
            x: pair.x.clone(),
            arm: pair.arm.to_owned(),
            measure: self.measure.title().to_owned(),
            a: bootstrap::median(&pair.a)?,
            b: bootstrap::median(&pair.b)?,
            ratio,
            against_direct,
            finding,
        })
    }

    fn judged(&self, pair: &Pair<'_>, ratio: Estimate, against: Option<Estimate>) -> Verdict {
        let error = standard_error_of_ratio(self.deviation, pair.a.len(), pair.b.len());
        let overlap = bootstrap::compare(&pair.a, &pair.b, self.good());
        let apart = (stats::median(&pair.a) - stats::median(&pair.b)).abs();
        let overlaps = overlap == Verdict::NoDifferenceShown && self.is_same_machine;
        if overlaps || apart <= pair.resolution {
            return Verdict::NoDifferenceShown;
        }
        self.both(ratio, against, error)
    }

    /// How `direct` changed, if the others are judged by it.
    fn direct(&self, found: &[(&Pair<'_>, Change)]) -> Option<Direct> {
        let of_direct = found.iter().filter(|(pair, _)| pair.arm == BASELINE);
        let ratios = of_direct.map(|(_, change)| Some(change.ratio));
        let mean = geometric_mean(ratios, 0.0).filter(|_| !self.judges_direct)?;
        Some(Direct {
            measure: self.measure.title().to_owned(),
            ratio: mean.value,
        })
    }

    /// Each arm's cells together. Those without repetitions enough are left out.
    fn overall(&self, found: &[(&Pair<'_>, Change)]) -> Vec<Overall> {
        let mut arms: Vec<&str> = found.iter().map(|(pair, _)| pair.arm).collect();
        arms.sort_unstable();
        arms.dedup();
        let overall = |arm: &&str| {
            let is_in = |pair: &Pair<'_>, change: &Change| {
                let larger = change.a.value.max(change.b.value);
                pair.arm == *arm
                    && matches!(change.finding, Finding::Judged(_))
                    && larger > RESOLVED * pair.resolution
            };
            let cells: Vec<&(&Pair<'_>, Change)> = found
                .iter()
                .filter(|(pair, change)| is_in(pair, change))
                .collect();
            (cells.len() > 1).then(|| self.of_arm(arm, &cells))?
        };
        arms.iter().filter_map(overall).collect()
    }

    fn of_arm(&self, arm: &str, cells: &[&(&Pair<'_>, Change)]) -> Option<Overall> {
        let errors = cells
            .iter()
            .map(|(pair, _)| standard_error_of_ratio(self.deviation, pair.a.len(), pair.b.len()));
        let error = mean_error(&errors.collect::<Vec<f64>>())?;
        let changes = || cells.iter().map(|(_, change)| change);
        let ratio = geometric_mean(changes().map(|change| Some(change.ratio)), error)?;
        let against_direct = geometric_mean(
            changes().map(|change| change.against_direct),
            error * std::f64::consts::SQRT_2,
        );
        Some(Overall {
            arm: arm.to_owned(),
            measure: self.measure.title().to_owned(),
            cells: cells.len(),
            ratio,
            against_direct,
            verdict: self.both(ratio, against_direct, error),
        })
    }

    fn good(&self) -> Good {
        self.measure.good()
    }

    fn verdict(&self, ratio: f64, error: f64) -> Verdict {
        let distance = ratio.ln().abs();
        if distance > SMALLEST_DIFFERENCE.ln_1p() && distance > self.standard_errors * error {
            self.good().verdict(ratio)
        } else {
            Verdict::NoDifferenceShown
        }
    }

    /// The verdict on a figure itself and on its ratio to `direct`: where they disagree, nothing is
    /// shown.
    fn both(&self, ratio: Estimate, against: Option<Estimate>, error: f64) -> Verdict {
        let itself = self.verdict(ratio.value, error);
        let relative = against.map(|found| {
            let excludes_one = found
                .interval
                .is_some_and(|interval| !interval.contains(1.0));
            let of_direct = (ratio.value / found.value).ln().abs();
            let is_explained = self.is_same_machine && found.value.ln().abs() <= of_direct;
            if excludes_one && !is_explained {
                // Four medians are in it instead of two.
                self.verdict(found.value, error * std::f64::consts::SQRT_2)
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

/// Of ratios, with the interval that the standard error of its logarithm gives. `None` if one is
/// missing or not above 0.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_values_tell_the_noise_the_larger_a_difference_must_be() {
        assert_eq!(degrees_of_freedom(&[&[1.0, 2.0, 3.0], &[0.0, 5.0], &[]]), 2);
        assert!(standard_errors(0).is_infinite());
        let needed: Vec<f64> = (1..40).map(standard_errors).collect();
        assert!(needed.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(needed.iter().all(|&needed| needed >= STANDARD_ERRORS_MIN));
    }
}
