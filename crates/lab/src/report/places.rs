//! Tables and charts of a workload: a row, a point or a bar for each arm and place.

use maud::Markup;

use crate::statistics::bootstrap::{Estimate, Interval};

use super::axis::Axis;
use super::bars::{Bar, Bars};
use super::chart::{Chart, Line, Mark, Point};
use super::figures::{Measure, Workload};
use super::html::Table;
use super::number::{self, plain};
use super::style::{Styles, arm_name};

/// `Line chart of queries/s over threads: direct, Remora. The table after it holds the same
/// figures.`
pub(super) fn description(kind: &str, what: &str, workload: &Workload<'_>) -> String {
    let over = workload
        .axis
        .map_or_else(String::new, |(axis, _)| format!(" over {axis}"));
    let arms: Vec<String> = workload.arms.iter().map(|arm| arm_name(arm)).collect();
    format!(
        "{kind} of {what}{over}, {}: {}. The table after it holds the same figures.",
        workload.name,
        arms.join(", ")
    )
}

/// The names of the columns that say where: the arm, and the place on the x axis if there is one.
fn place_heads(workload: &Workload<'_>) -> Vec<String> {
    let mut heads = vec!["arm".to_owned()];
    heads.extend(workload.axis.map(|(axis, unit)| match unit {
        "" => axis.to_owned(),
        unit => format!("{axis}, {unit}"),
    }));
    heads
}

fn place_fields(workload: &Workload<'_>, arm: &str, x: f64) -> Vec<String> {
    let mut fields = vec![arm_name(arm)];
    fields.extend(workload.axis.map(|_| number::place(x)));
    fields
}

/// A table with a row for each arm and place that was measured.
pub(super) fn table(
    workload: &Workload<'_>,
    caption: &str,
    heads: &[&str],
    fields: impl Fn(&str, f64) -> Vec<String>,
) -> Table {
    let mut all_heads = place_heads(workload);
    let names = all_heads.len();
    all_heads.extend(heads.iter().map(|&head| head.to_owned()));
    let mut table = Table::new(caption, names, all_heads);
    for arm in &workload.arms {
        for &x in &workload.places {
            if !workload.repetitions(arm, x).is_empty() {
                let mut row = place_fields(workload, arm, x);
                row.extend(fields(arm, x));
                table.row(row);
            }
        }
    }
    table
}

/// A figure, or a dash for none.
pub(super) fn optional(found: Option<Estimate>, show: impl Fn(Estimate) -> String) -> String {
    found.map_or_else(|| "–".to_owned(), show)
}

/// A median without its interval.
pub(super) fn middle(found: Option<Estimate>) -> String {
    optional(found, |found| plain(found.value))
}

/// A median's interval.
pub(super) fn ends(found: Option<Estimate>) -> String {
    let interval = found.and_then(|found| found.interval);
    interval.map_or_else(|| "–".to_owned(), |ends| number::interval(ends, plain))
}

/// A measure over the workload's axis: lines, or bars if there is none.
pub(super) fn chart(
    workload: &Workload<'_>,
    styles: &Styles,
    measure: Measure,
    marks: Vec<Mark>,
) -> anyhow::Result<Markup> {
    let what = measure.title();
    let Some((axis, unit)) = workload.axis.filter(|_| workload.has_lines()) else {
        let bars = bars(workload, styles, what, |arm, x| {
            let found = workload.median(arm, x, measure)?;
            Some((found.value, 0.0, found.interval))
        });
        return bars.markup(&description("Bar chart", what, workload));
    };
    let lines: Vec<Line> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let points = workload.places.iter().filter_map(|&x| {
                let found = workload.median(arm, x, measure)?;
                let bar = found.interval.map(|Interval { low, high }| (low, high));
                Some(Point {
                    x,
                    y: found.value,
                    bar,
                })
            });
            Some(Line {
                style: *styles.get(*arm)?,
                points: points.collect(),
                markers_every: 1,
            })
        })
        .collect();
    let values = lines.iter().flat_map(|line| &line.points);
    let values = values.flat_map(|point| [point.y, point.bar.map_or(point.y, |(_, high)| high)]);
    let y = match measure {
        Measure::Queries => Axis::from_zero(what, values),
        _ => Axis::for_latencies(what, values),
    };
    Chart {
        x: Axis::of_places(axis, unit, &workload.places),
        y,
        lines,
        marks,
    }
    .markup(&description("Line chart", what, workload))
}

/// Bars for each place and arm: the lower and the upper part, and an interval.
pub(super) fn bars(
    workload: &Workload<'_>,
    styles: &Styles,
    title: &str,
    heights: impl Fn(&str, f64) -> Option<(f64, f64, Option<Interval>)>,
) -> Bars {
    let group = |&x: &f64| -> Vec<Bar> {
        let bar = |arm: &&str| {
            let (lower, upper, interval) = heights(arm, x)?;
            Some(Bar {
                style: *styles.get(*arm)?,
                lower,
                upper,
                ends: interval.map(|Interval { low, high }| (low, high)),
            })
        };
        workload.arms.iter().filter_map(bar).collect()
    };
    let groups: Vec<Vec<Bar>> = workload.places.iter().map(group).collect();
    let names: Vec<String> = match workload.axis {
        Some((_, unit)) => workload
            .places
            .iter()
            .map(|&x| number::with_unit(x, unit))
            .collect(),
        None => vec![String::new()],
    };
    let highest = groups.iter().flatten().map(|bar| {
        let top = bar.lower + bar.upper;
        bar.ends.map_or(top, |(_, high)| high.max(top))
    });
    Bars {
        x: Axis::of_names(workload.axis.map_or("", |(axis, _)| axis), &names),
        y: Axis::from_zero(title, highest),
        groups,
    }
}
