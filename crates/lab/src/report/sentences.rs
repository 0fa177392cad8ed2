//! What may be said of each arm: computed from its figures, and nothing that their intervals don't
//! show.

use std::collections::BTreeMap;

use crate::statistics::bootstrap::{
    self, Estimate, Interval, REPETITIONS_MIN, Verdict, ratio_of_medians,
};
use crate::statistics::break_even::{Place, break_even};
use crate::statistics::scalability::{Scalability, fit};

use super::figures::{BASELINE, Measure, Sending, Workload};
use super::number::{self, plain, ratio, ratio_estimate, with_unit};
use super::style::arm_name;
use super::verdict;

/// With a larger relative error the law of scalability describes little.
pub(super) const POOR_FIT: f64 = 0.2;

/// What a workload shows: of each arm its name and sentences.
pub(super) fn findings(workload: &Workload<'_>, fits: &Fits<'_>) -> Vec<(String, String)> {
    let subject = verdict::subject(std::slice::from_ref(workload));
    let of_arm = |arm: &&str| {
        let mut sentences = Vec::new();
        // Of the verdict's arm it is said above.
        if *arm != BASELINE && Some(*arm) != subject {
            sentences.extend(verdict::of_arm(workload, arm));
        }
        if workload.is_over("threads") {
            let fit = fits.get(arm);
            sentences.extend(fit.and_then(|fit| scaling_sentence(workload, fit)));
            sentences.extend(flatness_sentence(workload, arm));
        } else if workload.is_over("hit ratio") {
            let pays = pays(workload, arm, "it").filter(|_| Some(*arm) != subject);
            sentences.extend(pays.map(|pays| format!("Break-even: {pays}.")));
        } else if workload.axis.is_some() {
            sentences.extend(growth_sentence(workload, arm));
            sentences.extend(tail_sentence(workload, arm));
        } else {
            sentences.extend(tail_sentence(workload, arm));
        }
        (!sentences.is_empty()).then(|| (arm_name(arm), sentences.join(" ")))
    };
    workload.arms.iter().filter_map(of_arm).collect()
}

/// The law of scalability, fitted to each arm that it can be fitted to. None where the x axis isn't
/// threads.
pub(super) type Fits<'a> = BTreeMap<&'a str, Scalability>;

/// See [`Fits`].
pub(super) fn fits<'a>(workload: &Workload<'a>) -> Fits<'a> {
    if !workload.is_over("threads") {
        return Fits::new();
    }
    let fitted = workload.arms.iter().filter_map(|&arm| {
        let at = |&x: &f64| {
            let values = workload.values(arm, x, Measure::Queries);
            values.into_iter().map(move |y| (x, y))
        };
        let measured: Vec<(f64, f64)> = workload.places.iter().flat_map(at).collect();
        Some((arm, fit(&measured)?))
    });
    fitted.collect()
}

/// Only what the fit shows: a peak among the numbers of threads that were measured.
fn scaling_sentence(workload: &Workload<'_>, found: &Scalability) -> Option<String> {
    let peak = found.intervals?.peak_threads;
    let most = *workload.places.last()?;
    let left = found.best.throughput(most) / found.best.throughput(found.best.peak_threads());
    (peak.high <= most && found.relative_error <= POOR_FIT).then(|| {
        format!(
            "Scalability is negative: by the Universal Scalability Law throughput peaks at {} threads ({}), and at {} \
             threads {} of the peak is left.",
            number::place(found.best.peak_threads().round()),
            number::interval(peak, |value| number::place(value.round())),
            number::place(most),
            ratio(left)
        )
    })
}

/// At the most threads against the best number of threads.
fn flatness_sentence(workload: &Workload<'_>, arm: &str) -> Option<String> {
    let medians = |&x: &f64| {
        let median = workload.median(arm, x, Measure::Queries)?;
        Some((x, median.value))
    };
    let measured: Vec<(f64, f64)> = workload.places.iter().filter_map(medians).collect();
    let &(most, _) = measured.last()?;
    let &(best, _) = measured.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if measured.len() < 2 {
        return None;
    }
    if best.total_cmp(&most).is_eq() {
        return Some(format!(
            "The highest throughput is that with the most threads, {}.",
            number::place(most)
        ));
    }
    change(
        workload,
        arm,
        (best, &format!("{} threads, the best,", number::place(best))),
        (most, &format!("{} threads", number::place(most))),
    )
}

/// At the last place of an axis against the first one.
fn growth_sentence(workload: &Workload<'_>, arm: &str) -> Option<String> {
    let (axis, unit) = workload.axis?;
    let (first, last) = (*workload.places.first()?, *workload.places.last()?);
    if workload.places.len() < 2 {
        return None;
    }
    let from = format!("{axis} {}", with_unit(first, unit));
    let to = with_unit(last, unit);
    change(workload, arm, (first, &from), (last, &to))
}

/// `From 64 threads to 1,024 threads throughput falls: 0.80 × (0.78 to 0.82).`
fn change(
    workload: &Workload<'_>,
    arm: &str,
    (from, from_text): (f64, &str),
    (to, to_text): (f64, &str),
) -> Option<String> {
    let old = workload.values(arm, from, Measure::Queries);
    let new = workload.values(arm, to, Measure::Queries);
    let factor = ratio_of_medians(&new, &old)?;
    let verdict = match bootstrap::compare(&old, &new, Measure::Queries.good()) {
        Verdict::Better => "rises",
        Verdict::Worse => "falls",
        Verdict::NoDifferenceShown => "isn't shown to change",
    };
    Some(format!(
        "From {from_text} to {to_text} throughput {verdict}: {}.",
        ratio_estimate(factor)
    ))
}

/// From which hit ratio on an arm pays.
pub(super) fn break_even_of(workload: &Workload<'_>, arm: &str) -> Option<Estimate> {
    if arm == BASELINE {
        return None;
    }
    let places: Vec<Place> = workload
        .places
        .iter()
        .map(|&x| Place {
            x,
            arm: workload.values(arm, x, Measure::Queries),
            baseline: workload.values(BASELINE, x, Measure::Queries),
        })
        .collect();
    break_even(&places)
}

/// `it pays from a hit ratio of 12 % on (95 % interval: 10 % to 14 %)`. `None` where that isn't
/// asked or can't be told.
pub(super) fn pays(workload: &Workload<'_>, arm: &str, who: &str) -> Option<String> {
    let found = break_even_of(workload, arm).filter(|_| workload.is_over("hit ratio"))?;
    let unit = workload.axis.map_or("", |(_, unit)| unit);
    let (first, last) = (workload.places.first(), workload.places.last());
    let end = |place: Option<&f64>| with_unit(place.copied().unwrap_or_default(), unit);
    let what = match found.value {
        value if value == f64::INFINITY => {
            format!(
                "{who} isn't as fast as direct at the highest hit ratio measured, {}",
                end(last)
            )
        }
        value if value == f64::NEG_INFINITY => {
            format!(
                "{who} isn't slower than direct by the medians at any hit ratio measured, from {} on",
                end(first)
            )
        }
        value => format!(
            "{who} pays from a hit ratio of {} on",
            with_unit(value, unit)
        ),
    };
    let Some(Interval { low, high }) = found.interval else {
        return Some(format!(
            "{what}, by the medians of fewer than {REPETITIONS_MIN} repetitions: nothing is concluded"
        ));
    };
    let low = match low {
        value if value == f64::INFINITY => format!("above {}", end(last)),
        value if value == f64::NEG_INFINITY => format!("below {}", end(first)),
        value => with_unit(value, unit),
    };
    let high = match high {
        value if value == f64::INFINITY => format!("above {}", end(last)),
        value if value == f64::NEG_INFINITY => format!("below {}", end(first)),
        value => with_unit(value, unit),
    };
    let within = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    Some(format!("{what} (95 % interval: {within})"))
}

/// How unstable responses are at the last place: the tail over the median.
fn tail_sentence(workload: &Workload<'_>, arm: &str) -> Option<String> {
    let x = *workload.places.last()?;
    let of = |measure| workload.median(arm, x, measure).map(|found| found.value);
    let (open, closed) = (of(Measure::OpenP50), of(Measure::P50));
    let (middle, tail, longest, loop_name) = match (open, closed) {
        (Some(middle), _) => (
            middle,
            of(Measure::OpenP99)?,
            of(Measure::OpenLongest)?,
            match workload.sending {
                Sending::Sysbench => "At a set rate",
                Sending::Replay => "From when a statement was due",
            },
        ),
        (None, Some(middle)) => (
            middle,
            of(Measure::P99)?,
            of(Measure::Longest)?,
            match workload.sending {
                Sending::Sysbench => "In a closed loop",
                Sending::Replay => "From sending a statement",
            },
        ),
        (None, None) => return None,
    };
    let axis = workload.axis.filter(|_| workload.places.len() > 1);
    let place = axis.map_or_else(String::new, |(axis, unit)| {
        format!(", {axis} {},", with_unit(x, unit))
    });
    (middle > 0.0).then(|| {
        format!(
            "{loop_name}{place} the 99th percentile is {} times the median of {} ms, the longest response {} times.",
            plain(tail / middle),
            plain(middle),
            plain(longest / middle)
        )
    })
}
