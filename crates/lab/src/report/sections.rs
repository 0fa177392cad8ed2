//! What a report shows of a workload: throughput, latency, scaling, processor time.

use maud::{Markup, html};

use crate::statistics::bootstrap::{Estimate, Interval, ratio_of_medians};

use super::chart::Mark;
use super::counters;
use super::figures::{BASELINE, Measure, Workload};
use super::html::{Table, figure};
use super::latency::{latency, percentiles};
use super::number::{self, estimate, factor, plain};
use super::over_time;
use super::places::{bars, chart, description, ends, middle, optional, table};
use super::sentences::{self, Fits};
use super::source::Run;
use super::style::{self, Styles, arm_name};
use super::verdict;

/// All of a workload. Links find it by `id`.
pub(super) fn workload(
    workload: &Workload<'_>,
    id: &str,
    styles: &Styles,
    run: &Run,
) -> anyhow::Result<Markup> {
    let fits = sentences::fits(workload);
    let findings = sentences::findings(workload, &fits);
    Ok(html! {
        section id=(id) {
            h2 { (workload.name) }
            @if let Some(verdict) = verdict::of_workload(workload) { p.verdict { (verdict) } }
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

/// The server's and the proxy's, where they were measured.
fn processor_time(workload: &Workload<'_>, styles: &Styles) -> anyhow::Result<Markup> {
    if !workload.has(Measure::ServerCpu) && !workload.has(Measure::ProxyCpu) {
        return Ok(html! {
            h3 { "Processor time per query" }
            p { "Not measured: that takes the processes of the server and of the proxies on this machine." }
        });
    }
    let of = |arm: &str, x: f64, measure| workload.median(arm, x, measure).map(|found| found.value);
    let bars = bars(workload, styles, "CPU, µs/query", |arm, x| {
        let (server, proxy) = (
            of(arm, x, Measure::ServerCpu),
            of(arm, x, Measure::ProxyCpu),
        );
        // A part that wasn't measured isn't drawn.
        server.or(proxy)?;
        Some((server.unwrap_or_default(), proxy.unwrap_or_default(), None))
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
