//! Published ratios beside what answers to them here.

use maud::{Markup, html};

use crate::results::{Measured, Median, Place, Published, Quotient, Results};
use crate::statistics::bootstrap::{self, Estimate, Good, Verdict, ratio_of_medians};

use super::figures::{Measure, Workload};
use super::html::{Table, collapsed};
use super::number::{self, plain, ratio, ratio_estimate};
use super::style::arm_name;

/// A published ratio that is so near to 1 says that something stayed as it was.
const STAYED: f64 = 0.02;

/// A published ratio, and what answers to it here.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) published: &'a Published,
    /// The published figure below the line.
    pub(super) to: &'a str,
    /// The published ratio.
    pub(super) ratio: f64,
    /// The same here.
    pub(super) here: Result<Quotiented, String>,
    /// The same work through Remora.
    pub(super) remora: Result<Quotiented, String>,
    /// Whether the latter is about how Remora's throughput changes, not about Remora against the
    /// server.
    pub(super) is_within_remora: bool,
    /// Whether it is a ratio of throughputs.
    pub(super) is_about_throughput: bool,
}

/// A ratio of two medians of this run.
#[derive(Debug)]
pub(super) struct Quotiented {
    pub(super) found: Estimate,
    /// What the intervals of the two medians allow to be said.
    pub(super) shown: Shown,
    /// What is divided by what.
    names: (String, String),
    /// Whether both are of the same place.
    pub(super) is_same_place: bool,
    /// The place of what is above the line.
    pub(super) above: String,
    /// The place of what is below it.
    pub(super) below: String,
}

/// What is said of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// It is above 1.
    Above,
    /// It is below 1.
    Below,
    /// It could be 1.
    Neither,
    /// There are too few repetitions to say anything.
    TooFew,
}

/// How what was measured compares with what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It goes the same way.
    Same,
    /// It goes the other way.
    Opposite,
    /// No difference is shown where one was published.
    NotShown,
    /// A difference is shown where none was published.
    New,
    /// There are too few repetitions to say anything.
    TooFew,
}

impl Agreement {
    fn word(self) -> &'static str {
        match self {
            Agreement::Same => "yes",
            Agreement::Opposite => "no, the opposite",
            Agreement::NotShown => "not shown",
            Agreement::New => "no, it differs",
            Agreement::TooFew => "too few repetitions",
        }
    }
}

impl Pair<'_> {
    /// `of “query cache of 64 MB” to “query cache off”`.
    pub(super) fn name(&self) -> String {
        format!("of “{}” to “{}”", self.published.what, self.to)
    }

    /// `None` if it wasn't measured.
    pub(super) fn agreement(&self) -> Option<Agreement> {
        let here = self.here.as_ref().ok()?;
        let is_same = (self.ratio - 1.0).abs() <= STAYED;
        Some(match here.shown {
            Shown::TooFew => Agreement::TooFew,
            Shown::Neither if is_same => Agreement::Same,
            Shown::Neither => Agreement::NotShown,
            _ if is_same => Agreement::New,
            Shown::Above if self.ratio > 1.0 => Agreement::Same,
            Shown::Below if self.ratio < 1.0 => Agreement::Same,
            _ => Agreement::Opposite,
        })
    }
}

/// Each published ratio that something in the experiment answers to, whether or not it was
/// measured.
pub(super) fn pairs<'a>(results: &'a Results, workloads: &[Workload<'_>]) -> Vec<Pair<'a>> {
    let pair = |published: &'a Published| {
        let known = published.ratio.as_ref()?;
        let mut others = results.published.iter();
        let below = others.find(|other| {
            other.what == known.to && other.unit == published.unit && other.value > 0.0
        })?;
        let is_about_throughput = matches!(
            known.remora.above.measure,
            Measured::QueriesPerS | Measured::TransactionsPerS
        );
        Some(Pair {
            published,
            to: &known.to,
            ratio: published.value / below.value,
            here: quotient(&known.here, workloads),
            remora: quotient(&known.remora, workloads),
            is_within_remora: is_about_throughput
                && known.remora.above.arm == known.remora.below.arm,
            is_about_throughput,
        })
    };
    results.published.iter().filter_map(pair).collect()
}

fn measure(measured: Measured) -> Measure {
    match measured {
        Measured::QueriesPerS => Measure::Queries,
        Measured::TransactionsPerS => Measure::Transactions,
        Measured::P50Ms => Measure::P50,
        Measured::P95Ms => Measure::P95,
        Measured::MaxMs => Measure::Longest,
    }
}

/// What was measured of a median, and its parts' names: workload, arm, place, measure.
struct Values {
    x: f64,
    sample: Vec<f64>,
    workload: String,
    arm: String,
    place: String,
    measure: &'static str,
}

fn values(median: &Median, workloads: &[Workload<'_>]) -> Result<Values, String> {
    let measure = measure(median.measure);
    let arm = arm_name(&median.arm);
    let workload = workloads
        .iter()
        .find(|workload| workload.name == median.workload);
    let Some(workload) = workload else {
        return Err(format!("not in this run: {}", median.workload));
    };
    let at = |x: &f64| workload.values(&median.arm, *x, measure);
    let measured: Vec<f64> = workload
        .places
        .iter()
        .copied()
        .filter(|x| !at(x).is_empty())
        .collect();
    if measured.is_empty() {
        return Err(format!("not in this run: {arm}"));
    }
    let middle = |x: &f64| workload.median(&median.arm, *x, measure).map(|it| it.value);
    let x = match median.place {
        Place::Last => measured.last().copied(),
        Place::Highest => measured.iter().copied().max_by(|a, b| {
            middle(a)
                .partial_cmp(&middle(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        }),
        Place::At(wanted) => measured
            .iter()
            .copied()
            .find(|x| x.total_cmp(&wanted).is_eq()),
    };
    let place = |x: f64| place_name(workload, median.place, x);
    match (x, median.place) {
        (Some(x), _) => Ok(Values {
            x,
            sample: at(&x),
            workload: workload.name.to_owned(),
            arm,
            place: place(x),
            measure: measure.title(),
        }),
        (None, Place::At(wanted)) => Err(format!("not in this run: {}", place(wanted))),
        (None, _) => Err(format!("not in this run: {arm}")),
    }
}

/// `256 threads (the most)`, `capacity 64`; nothing where there is no axis.
fn place_name(workload: &Workload<'_>, place: Place, x: f64) -> String {
    let Some((axis, unit)) = workload.axis else {
        return String::new();
    };
    if workload.places.len() == 1 && !matches!(place, Place::At(_)) {
        return String::new();
    }
    let (name, last) = match axis {
        "threads" => (format!("{} threads", number::place(x)), " (the most)"),
        _ => (
            format!("{axis} {}", number::with_unit(x, unit)),
            " (the last)",
        ),
    };
    let which = match place {
        Place::Highest => " (the best)",
        Place::Last => last,
        Place::At(_) => "",
    };
    format!("{name}{which}")
}

fn quotient(quotient: &Quotient, workloads: &[Workload<'_>]) -> Result<Quotiented, String> {
    let above = values(&quotient.above, workloads)?;
    let below = values(&quotient.below, workloads)?;
    let Some(found) = ratio_of_medians(&above.sample, &below.sample) else {
        return Err("not in this run: the median below the line is 0".to_owned());
    };
    // High or low, good or bad: only the direction counts here.
    let shown = match bootstrap::compare(&below.sample, &above.sample, Good::High) {
        _ if found.interval.is_none() => Shown::TooFew,
        Verdict::Better => Shown::Above,
        Verdict::Worse => Shown::Below,
        Verdict::NoDifferenceShown => Shown::Neither,
    };
    Ok(Quotiented {
        found,
        shown,
        names: names(&above, &below),
        is_same_place: above.x.total_cmp(&below.x).is_eq(),
        above: above.place,
        below: below.place,
    })
}

/// What is divided by what, in as few words as tell it: what both have in common is said once, at
/// the end.
fn names(above: &Values, below: &Values) -> (String, String) {
    let parts = |values: &Values| {
        let place = Some(values.place.clone()).filter(|place| !place.is_empty());
        [
            Some(values.arm.clone()),
            place,
            Some(values.workload.clone()),
            Some(values.measure.to_owned()),
        ]
    };
    let (mut common, mut tops, mut bottoms) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, (top, bottom)) in parts(above).into_iter().zip(parts(below)).enumerate() {
        // A workload or a measure that both have goes without saying.
        match top == bottom {
            true if kind < 2 => common.extend(top),
            true => {}
            false => {
                tops.extend(top);
                bottoms.extend(bottom);
            }
        }
    }
    bottoms.extend(common);
    (tops.join(", "), format!("÷ {}", bottoms.join(", ")))
}

/// The published ratios beside those that were measured.
pub(super) fn section(results: &Results, pairs: &[Pair<'_>]) -> Markup {
    html! {
        h2 { "Published beside measured" }
        @if pairs.is_empty() {
            p { "No ratio was published that anything here answers to." }
        } @else {
            p { "Only ratios carry over from one machine to another, so these are ratios: the first figure divided by the second." }
            (table(pairs))
        }
        @if !results.published.is_empty() {
            (collapsed("All published figures", &all(results).markup()))
        }
    }
}

fn table(pairs: &[Pair<'_>]) -> Markup {
    let caption = "Published ratios beside measured ones, with 95 % intervals";
    let heads = [
        "published",
        "measured here",
        "as published?",
        "Remora, on the same work",
    ];
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table.beside {
                caption { (caption) }
                thead { tr {
                    th.name scope="col" { "ratio" }
                    @for head in heads { th scope="col" { (head) } }
                } }
                tbody {
                    @for pair in pairs {
                        tr {
                            th.name scope="row" {
                                (pair.published.what)
                                span.of { "÷ " (pair.to) ", " (pair.published.unit) }
                            }
                            td { (ratio(pair.ratio)) }
                            (measured(&pair.here))
                            td { (pair.agreement().map_or("–", Agreement::word)) }
                            (measured(&pair.remora))
                        }
                    }
                }
            }
        }
    }
}

fn measured(found: &Result<Quotiented, String>) -> Markup {
    html! {
        td {
            @match found {
                Ok(found) => {
                    (ratio_estimate(found.found))
                    span.of { (found.names.0) }
                    span.of { (found.names.1) }
                },
                Err(why) => { "–" span.of { (why) } },
            }
        }
    }
}

/// What others published, as it is.
fn all(results: &Results) -> Table {
    let mut table = Table::new(
        "As published, on machines of its own",
        1,
        ["what", "figure", "unit"],
    );
    for figure in &results.published {
        table.row([
            figure.what.clone(),
            plain(figure.value),
            figure.unit.clone(),
        ]);
    }
    table
}
