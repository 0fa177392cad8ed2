//! How long answers took.

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::{Chart, Line, Point};
use super::figures::{Measure, Sending, Workload};
use super::html::{Table, collapsed, figure};
use super::number::{self, plain};
use super::places::{chart, ends, middle, table};
use super::style::{self, Styles, arm_name};

/// What latencies are called: who sends decides from when they count.
struct Words {
    closed_title: &'static str,
    closed_caption: &'static str,
    open_title: &'static str,
    open_caption: &'static str,
    /// Behind `Percentiles of latency`.
    closed: &'static str,
    open: &'static str,
}

const OF_SYSBENCH: Words = Words {
    closed_title: "Latency in a closed loop, 95th percentile",
    closed_caption: "Latency in sysbench's closed loop: medians of the repetitions, with the 95 % interval of the 95th percentile",
    open_title: "Latency at a set rate, without coordinated omission, 95th percentile",
    open_caption: "Latency at a set rate, from when a query was due: medians of the repetitions",
    closed: "in a closed loop",
    open: "at a set rate",
};

const OF_A_TIMED_REPLAY: Words = Words {
    closed_title: "Latency from when a statement was sent, 95th percentile",
    closed_caption: "Latency with the captured timing, from sending a statement to its answer: medians of the turns, with the \
                     95 % interval of the 95th percentile",
    open_title: "Latency from when a statement was due, without coordinated omission, 95th percentile",
    open_caption: "Latency with the captured timing, from when a statement was due to its answer: medians of the turns",
    closed: "from sending",
    open: "from when a statement was due",
};

const OF_A_FAST_REPLAY: Words = Words {
    closed_title: "Latency in a closed loop, 95th percentile",
    closed_caption: "Latency where each connection sends as soon as it is answered: medians of the turns, with the 95 % \
                     interval of the 95th percentile",
    ..OF_SYSBENCH
};

fn words(workload: &Workload<'_>) -> Words {
    match workload.sending {
        Sending::Sysbench => OF_SYSBENCH,
        Sending::Replay if workload.has(Measure::OpenP95) => OF_A_TIMED_REPLAY,
        Sending::Replay => OF_A_FAST_REPLAY,
    }
}

/// From sending to the answer, and, where that was measured, from when a query was due.
pub(super) fn latency(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    let words = words(workload);
    let closed = [Measure::Mean, Measure::P50, Measure::P99, Measure::Longest];
    let closed = latency_figure(
        workload,
        styles,
        (words.closed_title, words.closed_caption),
        Measure::P95,
        &closed,
    )?;
    if !workload.has(Measure::OpenP95) {
        return Ok(closed);
    }
    let open = [
        Measure::OpenRate,
        Measure::OpenReached,
        Measure::OpenMean,
        Measure::OpenP50,
        Measure::OpenP99,
        Measure::OpenLongest,
    ];
    let open = latency_figure(
        workload,
        styles,
        (words.open_title, words.open_caption),
        Measure::OpenP95,
        &open,
    )?;
    Ok(html! { (closed) (open) })
}

/// A chart of the 95th percentile, and a table with it and other measures.
fn latency_figure(
    workload: &Workload<'_>,
    styles: &Styles,
    (title, caption): (&str, &str),
    p95: Measure,
    others: &[Measure],
) -> anyhow::Result<Markup> {
    let of = |arm: &str, x: f64, measure| workload.median(arm, x, measure);
    let mut heads = vec![p95.title(), "interval"];
    heads.extend(others.iter().map(|measure| measure.title()));
    let table = table(workload, caption, &heads, |arm, x| {
        let found = of(arm, x, p95);
        let mut fields = vec![middle(found), ends(found)];
        fields.extend(others.iter().map(|&measure| middle(of(arm, x, measure))));
        fields
    });
    Ok(figure(
        title,
        &style::legend(&workload.arms, styles, workload.has_lines()),
        &chart(workload, styles, p95, Vec::new())?,
        &table,
    ))
}

/// Percentiles of latency, a chart for each place.
pub(super) fn percentiles(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    let closed = [
        ("mean", Measure::Mean),
        ("50 %", Measure::P50),
        ("95 %", Measure::P95),
        ("99 %", Measure::P99),
        ("max", Measure::Longest),
    ];
    let open = [
        ("mean", Measure::OpenMean),
        ("50 %", Measure::OpenP50),
        ("95 %", Measure::OpenP95),
        ("99 %", Measure::OpenP99),
        ("max", Measure::OpenLongest),
    ];
    let words = words(workload);
    let mut charts = Vec::new();
    for &x in &workload.places {
        let place = workload.axis.map_or_else(String::new, |(axis, unit)| {
            format!(", {axis} {}", number::with_unit(x, unit))
        });
        for (name, measures) in [(words.closed, closed), (words.open, open)] {
            let title = format!("Percentiles of latency {name}{place}");
            charts.extend(percentile_figure(workload, styles, x, &title, &measures)?);
        }
    }
    Ok(collapsed(
        "Percentiles of latency",
        &html! { @for chart in charts { (chart) } },
    ))
}

fn percentile_figure(
    workload: &Workload<'_>,
    styles: &Styles,
    x: f64,
    title: &str,
    measures: &[(&str, Measure)],
) -> anyhow::Result<Option<Markup>> {
    let of = |arm: &str, measure| workload.median(arm, x, measure).map(|found| found.value);
    let measured: Vec<&(&str, Measure)> = measures
        .iter()
        .filter(|(_, measure)| workload.arms.iter().any(|arm| of(arm, *measure).is_some()))
        .collect();
    if measured.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = measured.iter().map(|(name, _)| *name).collect();
    let mut heads = vec!["arm"];
    heads.extend(&names);
    let mut table = Table::new(format!("{title}, ms"), 1, heads);
    let mut lines = Vec::new();
    for arm in &workload.arms {
        let values: Vec<Option<f64>> = measured
            .iter()
            .map(|(_, measure)| of(arm, *measure))
            .collect();
        let mut at = -1.0;
        let points = values.iter().filter_map(|value| {
            at += 1.0;
            value.map(|y| Point {
                x: at,
                y,
                bar: None,
            })
        });
        let points: Vec<Point> = points.collect();
        if let (Some(style), false) = (styles.get(*arm), points.is_empty()) {
            lines.push(Line {
                style: *style,
                points,
                markers_every: 1,
            });
            let mut row = vec![arm_name(arm)];
            row.extend(
                values
                    .iter()
                    .map(|value| value.map_or_else(|| "–".to_owned(), plain)),
            );
            table.row(row);
        }
    }
    let values = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.y);
    let chart = Chart {
        x: Axis::of_names("percentile", &names),
        y: Axis::for_latencies("ms", values),
        lines,
        marks: Vec::new(),
    };
    let chart = chart.markup(&format!(
        "{title}. The table after it holds the same figures."
    ))?;
    let legend = style::legend(&workload.arms, styles, true);
    Ok(Some(figure(title, &legend, &chart, &table)))
}
