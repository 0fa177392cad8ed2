//! What a report shows of a workload: throughput, latency, scaling, processor time.

use maud::{Markup, html};

use crate::statistics::bootstrap::{Estimate, Interval, ratio_of_medians};

use super::axis::Axis;
use super::bars::{Bar, Bars};
use super::chart::{Chart, Line, Mark, Point};
use super::counters;
use super::figures::{BASELINE, Measure, Workload};
use super::html::{Table, collapsed, figure};
use super::number::{self, estimate, factor, plain};
use super::over_time;
use super::sentences::{self, Fits};
use super::source::Run;
use super::style::{self, Styles, arm_name};

/// All of a workload.
pub(super) fn workload(
    workload: &Workload<'_>,
    styles: &Styles,
    run: &Run,
) -> anyhow::Result<Markup> {
    let fits = sentences::fits(workload);
    let findings = sentences::findings(workload, &fits);
    Ok(html! {
        section {
            h2 { (workload.name) }
            @if !findings.is_empty() {
                ul { @for (arm, finding) in &findings { li { b { (arm) ": " } (finding) } } }
            }
            (throughput(workload, styles)?)
            @if workload.is_over("threads") { (scaling(workload, &fits)) }
            (latency(workload, styles)?)
            (processor_time(workload, styles)?)
            (percentiles(workload, styles)?)
            (over_time::series(workload, styles, run)?)
            (counters::counters(workload))
        }
    })
}

/// `Line chart of queries/s over threads: direct, Remora. The table after it holds the same figures.`
fn description(kind: &str, what: &str, workload: &Workload<'_>) -> String {
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

fn optional(found: Option<Estimate>, show: impl Fn(Estimate) -> String) -> String {
    found.map_or_else(|| "–".to_owned(), show)
}

fn middle(found: Option<Estimate>) -> String {
    optional(found, |found| plain(found.value))
}

fn ends(found: Option<Estimate>) -> String {
    let interval = found.and_then(|found| found.interval);
    interval.map_or_else(|| "–".to_owned(), |ends| number::interval(ends, plain))
}

/// A measure over the workload's axis: lines, or bars if there is none.
fn chart(
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
fn bars(
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

fn throughput(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    let marks = break_even_marks(workload, styles);
    let table = table(
        workload,
        "Throughput: medians of the repetitions with 95 % intervals",
        &[
            "runs",
            "queries/s",
            "interval",
            "transactions/s",
            "× direct",
            "hits, %",
            "errors",
            "not steady",
        ],
        |arm, x| {
            let repetitions = workload.repetitions(arm, x);
            let queries = workload.median(arm, x, Measure::Queries);
            let of_baseline = ratio_of_medians(
                &workload.values(arm, x, Measure::Queries),
                &workload.values(BASELINE, x, Measure::Queries),
            );
            let errors: u64 = repetitions.iter().map(|repetition| repetition.errors).sum();
            let restless = repetitions
                .iter()
                .filter(|repetition| repetition.is_steady == Some(false));
            vec![
                repetitions.len().to_string(),
                middle(queries),
                ends(queries),
                middle(workload.median(arm, x, Measure::Transactions)),
                optional(of_baseline, |found| estimate(found, factor)),
                middle(workload.median(arm, x, Measure::HitPercent)),
                errors.to_string(),
                restless.count().to_string(),
            ]
        },
    );
    Ok(figure(
        "Throughput",
        &style::legend(&workload.arms, styles, workload.has_lines()),
        &chart(workload, styles, Measure::Queries, marks)?,
        &table,
    ))
}

fn break_even_marks(workload: &Workload<'_>, styles: &Styles) -> Vec<Mark> {
    if !workload.is_over("hit ratio") {
        return Vec::new();
    }
    let unit = workload.axis.map_or("", |(_, unit)| unit);
    let found = workload.arms.iter().filter_map(|arm| {
        let found = sentences::break_even_of(workload, arm)?;
        found.value.is_finite().then_some(Mark {
            colour: styles.get(*arm)?.colour,
            x: found.value,
            word: number::with_unit(found.value, unit),
        })
    });
    found.collect()
}

fn scaling(workload: &Workload<'_>, fits: &Fits<'_>) -> Markup {
    let heads = [
        "arm",
        "λ, queries/s",
        "σ, contention",
        "κ, coherency",
        "peak, threads",
        "off by, %",
    ];
    let caption = "Universal Scalability Law, fitted to all repetitions, with 95 % intervals";
    let mut table = Table::new(caption, 1, heads);
    let mut poor = Vec::new();
    for arm in &workload.arms {
        let Some(found) = fits.get(arm) else {
            continue;
        };
        let shown =
            |value: f64, interval: Option<Interval>| estimate(Estimate { value, interval }, plain);
        let of = found.intervals;
        if found.relative_error > sentences::POOR_FIT {
            poor.push(arm_name(arm));
        }
        table.row([
            arm_name(arm),
            shown(found.best.lambda, of.map(|of| of.lambda)),
            shown(found.best.sigma, of.map(|of| of.sigma)),
            shown(found.best.kappa, of.map(|of| of.kappa)),
            shown(found.best.peak_threads(), of.map(|of| of.peak_threads)),
            plain(found.relative_error * 100.0),
        ]);
    }
    html! {
        h3 { "Scalability" }
        @if table.is_empty() {
            p { "Too few numbers of threads were measured to fit the Universal Scalability Law: it takes three." }
        } @else {
            p {
                "X(N) = λN / (1 + σ(N − 1) + κN(N − 1)): λ is the throughput of one thread, σ the share of the work that only \
                 one thread can do at a time, κ what each pair of threads costs. With κ above 0 more threads bring less \
                 beyond the peak."
            }
            @if !poor.is_empty() {
                p { "The law is more than 20 % off for " (number::listed(&poor)) ": its coefficients describe little there." }
            }
            (table.markup())
        }
    }
}

fn latency(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    let of = |arm: &str, x: f64, measure| workload.median(arm, x, measure);
    let closed = [Measure::Mean, Measure::P50, Measure::P99, Measure::Longest];
    let mut heads = vec!["95th percentile, ms", "interval"];
    heads.extend(closed.map(Measure::title));
    let closed_table = table(
        workload,
        "Latency in sysbench's closed loop: medians of the repetitions, with the 95 % interval of the 95th percentile",
        &heads,
        |arm, x| {
            let p95 = of(arm, x, Measure::P95);
            let mut fields = vec![middle(p95), ends(p95)];
            fields.extend(closed.map(|measure| middle(of(arm, x, measure))));
            fields
        },
    );
    let legend = || style::legend(&workload.arms, styles, workload.has_lines());
    let closed_figure = figure(
        "Latency in a closed loop, 95th percentile",
        &legend(),
        &chart(workload, styles, Measure::P95, Vec::new())?,
        &closed_table,
    );
    if !workload.has(Measure::OpenP95) {
        return Ok(closed_figure);
    }
    let open = [
        Measure::OpenRate,
        Measure::OpenReached,
        Measure::OpenMean,
        Measure::OpenP50,
        Measure::OpenP99,
        Measure::OpenLongest,
    ];
    let mut heads = vec!["95th percentile, ms", "interval"];
    heads.extend(open.map(Measure::title));
    let open_table = table(
        workload,
        "Latency at a set rate, from when a query was due: medians of the repetitions",
        &heads,
        |arm, x| {
            let p95 = of(arm, x, Measure::OpenP95);
            let mut fields = vec![middle(p95), ends(p95)];
            fields.extend(open.map(|measure| middle(of(arm, x, measure))));
            fields
        },
    );
    let open_figure = figure(
        "Latency at a set rate, without coordinated omission, 95th percentile",
        &legend(),
        &chart(workload, styles, Measure::OpenP95, Vec::new())?,
        &open_table,
    );
    Ok(html! { (closed_figure) (open_figure) })
}

fn processor_time(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    let of = |arm: &str, x: f64, measure| workload.median(arm, x, measure).map(|found| found.value);
    let bars = bars(workload, styles, "CPU, µs/query", |arm, x| {
        let proxy = of(arm, x, Measure::ProxyCpu).unwrap_or_default();
        Some((of(arm, x, Measure::ServerCpu)?, proxy, None))
    });
    let table = table(
        workload,
        "Processor time per query: medians of the repetitions",
        &[
            Measure::ServerCpu.title(),
            Measure::ProxyCpu.title(),
            "both, µs/query",
        ],
        |arm, x| {
            let (server, proxy) = (
                of(arm, x, Measure::ServerCpu),
                of(arm, x, Measure::ProxyCpu),
            );
            let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), plain);
            let both = server.map(|server| server + proxy.unwrap_or_default());
            vec![show(server), show(proxy), show(both)]
        },
    );
    Ok(figure(
        "Processor time per query: the server's below, a proxy's paler on top",
        &style::legend(&workload.arms, styles, false),
        &bars.markup(&description(
            "Bar chart",
            "processor time per query",
            workload,
        ))?,
        &table,
    ))
}

/// Percentiles of latency, a chart for each place.
fn percentiles(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
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
    let mut charts = Vec::new();
    for &x in &workload.places {
        let place = workload.axis.map_or_else(String::new, |(axis, unit)| {
            format!(", {axis} {}", number::with_unit(x, unit))
        });
        for (name, measures) in [("in a closed loop", closed), ("at a set rate", open)] {
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
