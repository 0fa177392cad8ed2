//! The verdict on a run, or on one of its workloads, in a sentence. Nothing is said that intervals
//! don't show.

use crate::results::Results;
use crate::statistics::bootstrap::{self, REPETITIONS_MIN, Verdict, ratio_of_medians};

use super::beside::{Agreement, Pair, Shown};
use super::figures::{BASELINE, Measure, OURS, Workload};
use super::number::{counted, factor, listed, plain, ratio, ratio_estimate};
use super::sentences;
use super::style::arm_name;

/// How an arm did against the baseline, place by place.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Ratios of the places where it was shown to be faster.
    faster: Vec<f64>,
    /// Ratios of those where it was shown to be slower.
    slower: Vec<f64>,
    /// Ratios of those where no difference was shown.
    open: Vec<f64>,
    /// Those of them that have too few repetitions to show one.
    too_few: usize,
}

impl Tally {
    /// Adds an arm's places of a workload.
    pub(super) fn add(&mut self, workload: &Workload<'_>, arm: &str) {
        for &x in &workload.places {
            let old = workload.values(BASELINE, x, Measure::Queries);
            let new = workload.values(arm, x, Measure::Queries);
            let Some(ratio) = ratio_of_medians(&new, &old) else {
                continue;
            };
            self.too_few += usize::from(ratio.interval.is_none());
            match bootstrap::compare(&old, &new, Measure::Queries.good()) {
                Verdict::Better => self.faster.push(ratio.value),
                Verdict::Worse => self.slower.push(ratio.value),
                Verdict::NoDifferenceShown => self.open.push(ratio.value),
            }
        }
    }

    fn of(workloads: &[Workload<'_>], arm: &str) -> Tally {
        let mut tally = Tally::default();
        for workload in workloads {
            tally.add(workload, arm);
        }
        tally
    }

    fn places(&self) -> usize {
        self.faster.len() + self.slower.len() + self.open.len()
    }

    /// `Remora is faster than direct at 2 of 5 points (1.20 to 1.90 ×) and slower at 3 (0.50 to
    /// 0.80 ×)`. `None` if there is nothing to compare.
    fn clause(&self, arm: &str) -> Option<String> {
        let all = self.places();
        if all == 0 {
            return None;
        }
        if self.too_few == all {
            let measured = range(&self.open);
            return Some(format!(
                "{arm} has {measured} the throughput of direct, measured too few times to conclude anything"
            ));
        }
        let mut parts = Vec::new();
        let words = [("faster", &self.faster), ("slower", &self.slower)];
        for (word, ratios) in words.into_iter().filter(|(_, ratios)| !ratios.is_empty()) {
            let than = if parts.is_empty() { " than direct" } else { "" };
            let places = places(ratios.len(), all, parts.is_empty());
            parts.push(format!("{word}{than}{places} ({})", range(ratios)));
        }
        if !self.open.is_empty() {
            let from = if parts.is_empty() { " from direct" } else { "" };
            let places = places(self.open.len(), all, parts.is_empty());
            let why = match self.too_few {
                0 => String::new(),
                few => format!(", {few} of them measured too few times"),
            };
            parts.push(format!("not shown to differ{from}{places}{why}"));
        }
        Some(format!("{arm} is {}", listed(&parts)))
    }
}

/// ` at all 5 points`, ` at 2 of 5 points`, ` at 2`; nothing where there is but one.
fn places(some: usize, all: usize, is_first: bool) -> String {
    match (some, is_first) {
        _ if all == 1 => String::new(),
        (some, true) if some == all && all == 2 => " at both points".to_owned(),
        (some, true) if some == all => format!(" at all {all} points"),
        (some, true) => format!(" at {some} of {all} points"),
        (some, false) => format!(" at {some}"),
    }
}

/// `0.5 to 1.2 ×`.
fn range(ratios: &[f64]) -> String {
    let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = ratios.iter().copied().fold(0.0, f64::max);
    if factor(lowest) == factor(highest) {
        ratio(lowest)
    } else {
        format!("{} to {}", factor(lowest), ratio(highest))
    }
}

/// The verdict on a run.
pub(super) fn of_run(results: &Results, workloads: &[Workload<'_>], pairs: &[Pair<'_>]) -> String {
    if results.cells.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    let is_about_throughput = pairs.first().is_none_or(|pair| pair.is_about_throughput);
    let ours = break_evens(workloads)
        .or_else(|| pairs.iter().find_map(within_remora))
        .or_else(|| {
            let arm = subject(workloads).filter(|_| is_about_throughput)?;
            Tally::of(workloads, arm).clause(&arm_name(arm))
        });
    let mut parts: Vec<String> = ours.into_iter().collect();
    if parts.is_empty() && is_about_throughput {
        parts.push(
            "no arm was measured at the same point as direct, so none is compared".to_owned(),
        );
    }
    parts.extend(published(pairs));
    sentence(&parts.join("; "))
}

/// The verdict on a workload: on Remora, or on whatever else was compared with `direct`.
pub(super) fn of_workload(workload: &Workload<'_>) -> Option<String> {
    let workloads = std::slice::from_ref(workload);
    let arm = subject(workloads)?;
    if let Some(clause) = sentences::pays(workload, arm, &arm_name(arm)) {
        return Some(sentence(&clause));
    }
    let clause = Tally::of(workloads, arm).clause(&arm_name(arm));
    clause.as_deref().map(sentence)
}

/// The same on another arm: `It is …`.
pub(super) fn of_arm(workload: &Workload<'_>, arm: &str) -> Option<String> {
    let clause = Tally::of(std::slice::from_ref(workload), arm).clause("it");
    clause.as_deref().map(sentence)
}

/// From which hit ratio on it pays, for each workload that asks that.
fn break_evens(workloads: &[Workload<'_>]) -> Option<String> {
    let arm = subject(workloads)?;
    let clauses: Vec<String> = workloads
        .iter()
        .filter_map(|workload| {
            let clause = sentences::pays(workload, arm, &arm_name(arm))?;
            Some(format!("{}: {clause}", workload.name))
        })
        .collect();
    // In a run that also asks other things they aren't the verdict.
    (!clauses.is_empty() && clauses.len() == workloads.len()).then(|| clauses.join("; "))
}

/// Remora, or the first arm that was compared with the baseline.
pub(super) fn subject<'a>(workloads: &[Workload<'a>]) -> Option<&'a str> {
    let mut arms: Vec<&str> = workloads
        .iter()
        .flat_map(|workload| workload.arms.iter().copied())
        .filter(|arm| *arm != BASELINE)
        .collect();
    arms.sort_by_key(|arm| *arm != OURS);
    arms.into_iter()
        .find(|arm| Tally::of(workloads, arm).places() > 0)
}

/// Where the question isn't how fast Remora is but how that changes.
fn within_remora(pair: &Pair<'_>) -> Option<String> {
    let found = pair
        .remora
        .as_ref()
        .ok()
        .filter(|_| pair.is_within_remora)?;
    let (above, below) = (&found.above, &found.below);
    if found.is_same_place {
        return Some(format!("Remora's throughput is highest at {above}"));
    }
    let times = ratio_estimate(found.found);
    let said = match found.shown {
        Shown::Above => "a rise",
        Shown::Below => "a fall",
        Shown::Neither => "no change is shown",
        Shown::TooFew => "measured too few times to conclude anything",
    };
    Some(format!(
        "Remora's throughput at {above} is {times} that at {below}: {said}"
    ))
}

/// What became of the published ratios here.
fn published(pairs: &[Pair<'_>]) -> Option<String> {
    if pairs.is_empty() {
        return None;
    }
    let measured: Vec<(&Pair<'_>, Agreement)> = pairs
        .iter()
        .filter_map(|pair| Some((pair, pair.agreement()?)))
        .collect();
    if let [(pair, agreement)] = measured[..] {
        return one(pair, agreement);
    }
    let count = |wanted: Agreement| {
        measured
            .iter()
            .filter(|(_, found)| *found == wanted)
            .count()
    };
    let words = [
        (
            Agreement::Same,
            "go the same way here",
            "goes the same way here",
        ),
        (Agreement::NotShown, "aren't shown here", "isn't shown here"),
        (
            Agreement::Opposite,
            "go the other way here",
            "goes the other way here",
        ),
        (Agreement::New, "aren't level here", "isn't level here"),
        (
            Agreement::TooFew,
            "were measured too few times to conclude anything",
            "was measured too few times to conclude anything",
        ),
    ];
    let all = measured.len();
    if all == 0 {
        return Some("no published ratio has its like in this run".to_owned());
    }
    if let Some((_, several, _)) = words.iter().find(|word| count(word.0) == all) {
        let all = if all == 2 {
            "both".to_owned()
        } else {
            format!("all {all}")
        };
        return Some(format!(
            "{all} published ratios with their like in this run {several}"
        ));
    }
    let mut parts = Vec::new();
    for (agreement, several, single) in words {
        match count(agreement) {
            0 => {}
            1 => parts.push(format!("1 {single}")),
            number => parts.push(format!("{number} {several}")),
        }
    }
    Some(format!(
        "of {all} published ratios with their like in this run, {}",
        listed(&parts)
    ))
}

/// The only published ratio that was measured.
fn one(pair: &Pair<'_>, agreement: Agreement) -> Option<String> {
    let found = ratio_estimate(pair.here.as_ref().ok()?.found);
    let said = match agreement {
        Agreement::Same => "goes the same way here",
        Agreement::Opposite => "goes the other way here",
        Agreement::NotShown => "isn't shown here",
        Agreement::New => "isn't level here",
        Agreement::TooFew => "was measured too few times here to conclude anything",
    };
    let ours = pair
        .remora
        .as_ref()
        .ok()
        .filter(|_| !pair.is_about_throughput);
    let ours = ours.map_or_else(String::new, |ours| {
        format!(", and {} through Remora", ratio_estimate(ours.found))
    });
    Some(format!(
        "the published ratio {}, {}, {said}: {found}{ours}",
        pair.name(),
        ratio(pair.ratio)
    ))
}

/// With a capital letter and a full stop.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// How many repetitions there are, and what may be concluded from them.
pub(super) fn confidence(workloads: &[Workload<'_>]) -> String {
    let counts: Vec<usize> = workloads
        .iter()
        .flat_map(|workload| {
            workload.arms.iter().flat_map(|arm| {
                workload
                    .places
                    .iter()
                    .map(|&x| workload.repetitions(arm, x).len())
            })
        })
        .filter(|&count| count > 0)
        .collect();
    let Some(fewest) = counts.iter().copied().min() else {
        return "Nothing was measured.".to_owned();
    };
    if fewest < REPETITIONS_MIN {
        return format!(
            "Some points have only {}: of fewer than {REPETITIONS_MIN} there is no interval, and nothing is concluded.",
            counted(fewest, "repetition", "repetitions")
        );
    }
    // That all n values of one sample are above all n of another has a probability of n! n! /
    // (2n)!.
    let by_chance = match fewest {
        3 => " Of points that don't differ about one in 10 is called different by chance.",
        4 => " Of points that don't differ about one in 35 is called different by chance.",
        _ => " Of points that don't differ about one in 100 is called different by chance.",
    };
    let covers = 1.0 - 0.5_f64.powi(i32::try_from(fewest).unwrap_or(i32::MAX) - 1);
    // See the module on the bootstrap.
    let most = if (6..20).contains(&fewest) {
        0.88
    } else {
        bootstrap::CONFIDENCE
    };
    let covers = covers.min(most) * 100.0;
    format!(
        "Each point has at least {fewest} repetitions. Intervals are percentile bootstrap intervals of the median; with \
         so many repetitions they cover the true median with a probability of about {} %. Where two intervals overlap, no \
         difference is claimed.{by_chance}",
        plain(covers)
    )
}
