//! Throughput second by second: a dip that a minute's mean hides is the finding.

use maud::{Markup, html};

use crate::results::Repetition;
use crate::stats;

use super::axis::Axis;
use super::chart::{Chart, Line, Point};
use super::figures::Workload;
use super::html::{Table, collapsed, figure};
use super::number::{self, plain};
use super::source::{Run, Second};
use super::style::{self, Styles, arm_name};

/// Of a longer series, so many stretches are drawn, each with its lowest and its highest second.
const STRETCHES_MAX: usize = 150;

/// A chart for each place.
pub(super) fn series(
    workload: &Workload<'_>,
    styles: &Styles,
    run: &Run,
) -> anyhow::Result<Markup> {
    let mut charts = Vec::new();
    for &x in &workload.places {
        charts.extend(at_place(workload, styles, run, x)?);
    }
    if charts.is_empty() {
        return Ok(html! {});
    }
    Ok(collapsed(
        "Throughput second by second",
        &html! { @for chart in charts { (chart) } },
    ))
}

fn at_place(
    workload: &Workload<'_>,
    styles: &Styles,
    run: &Run,
    x: f64,
) -> anyhow::Result<Option<Markup>> {
    let place = workload.axis.map_or_else(String::new, |(axis, unit)| {
        format!(", {axis} {}", number::with_unit(x, unit))
    });
    let heads = [
        "arm",
        "slowest second",
        "5 % are below",
        "median",
        "fastest second",
        "slowest of median, %",
    ];
    let caption = "Queries/s of single seconds, of all repetitions together";
    let mut table = Table::new(caption, 1, heads);
    let mut lines = Vec::new();
    for arm in &workload.arms {
        let repetitions = workload.repetitions(arm, x);
        let all: Vec<f64> = repetitions
            .iter()
            .filter_map(|repetition| run.series.get(&repetition.series))
            .flatten()
            .map(|second| second.queries_per_s)
            .collect();
        if all.is_empty() {
            continue;
        }
        table.row(row(arm, all));
        let shown = typical(&repetitions).and_then(|one| run.series.get(&one.series));
        if let (Some(style), Some(seconds)) = (styles.get(*arm), shown) {
            let points = thinned(seconds);
            lines.push(Line {
                style: *style,
                markers_every: (points.len() / 6).max(1),
                points,
            });
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let chart = Chart {
        x: Axis::of_time("seconds", points().map(|point| point.x)),
        y: Axis::from_zero("queries/s", points().map(|point| point.y)),
        lines,
        marks: Vec::new(),
    };
    let title =
        format!("Second by second{place}: of each arm the repetition with the median throughput");
    let chart = chart.markup(&format!(
        "{title}. The table after it sums all repetitions up."
    ))?;
    let legend = style::legend(&workload.arms, styles, true);
    Ok(Some(figure(&title, &legend, &chart, &table)))
}

fn row(arm: &str, mut all: Vec<f64>) -> Vec<String> {
    all.sort_by(f64::total_cmp);
    let (slowest, fastest) = (all[0], all[all.len() - 1]);
    let median = stats::median(&all);
    let share = if median > 0.0 {
        slowest / median * 100.0
    } else {
        0.0
    };
    vec![
        arm_name(arm),
        plain(slowest),
        plain(all[all.len() / 20]),
        plain(median),
        plain(fastest),
        plain(share),
    ]
}

/// The repetition whose throughput is the median; of an even number the lower one of the middle
/// two.
fn typical<'a>(repetitions: &[&'a Repetition]) -> Option<&'a Repetition> {
    let mut sorted = repetitions.to_vec();
    sorted.sort_by(|a, b| a.queries_per_s.total_cmp(&b.queries_per_s));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// All seconds, or the lowest and highest of each stretch in their order.
fn thinned(seconds: &[Second]) -> Vec<Point> {
    let point = |second: &Second| Point {
        x: second.second,
        y: second.queries_per_s,
        bar: None,
    };
    if seconds.len() <= 2 * STRETCHES_MAX {
        return seconds.iter().map(point).collect();
    }
    let length = seconds.len().div_ceil(STRETCHES_MAX);
    let ends = |stretch: &[Second]| -> Vec<Point> {
        let by = |a: &&Second, b: &&Second| a.queries_per_s.total_cmp(&b.queries_per_s);
        let mut ends: Vec<&Second> = [stretch.iter().min_by(by), stretch.iter().max_by(by)]
            .into_iter()
            .flatten()
            .collect();
        ends.sort_by(|a, b| a.second.total_cmp(&b.second));
        ends.into_iter().map(point).collect()
    };
    seconds.chunks(length).flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_of_one_second_is_drawn_however_long_the_series() {
        let mut seconds: Vec<Second> = (0..3_600)
            .map(|second| Second {
                second: f64::from(second),
                queries_per_s: 1_000.0,
            })
            .collect();
        seconds[1_234].queries_per_s = 3.0;
        let points = thinned(&seconds);
        assert!(points.len() <= 2 * STRETCHES_MAX);
        assert!(
            points
                .iter()
                .any(|point| point.y < 4.0 && (point.x - 1_234.0).abs() < 1e-9)
        );
        assert!(points.windows(2).all(|pair| pair[0].x <= pair[1].x));
    }
}
