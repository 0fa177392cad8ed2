//! What a replay tells: lines and tables for the terminal, and a directory in the form of
//! [`crate::results`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::lane::Speed;
use super::measured::Durations;
use super::plan::{LeftOut, Plan};
use super::reading::Captured;
use super::turn::Turn;
use super::{Outcome, ReplayOptions};
use crate::machine::Machine;
use crate::results::{Cell, Latency, OpenLoop, Repetition, Results, SCHEMA_VERSION, Scale, State};
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::microseconds_per_query;

/// The directory that results go to.
///
/// # Errors
/// It holds something already.
pub(super) fn directory(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = wanted.map_or_else(dated_directory, Path::to_owned);
    if std::fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!(
            "{} isn't empty: `--output` names another directory",
            directory.display()
        );
    }
    Ok(directory)
}

fn dated_directory() -> PathBuf {
    let now: OffsetDateTime = SystemTime::now().into();
    let (date, clock) = (now.date(), now.time());
    PathBuf::from("results").join(format!(
        "replay-{}{:02}{:02}-{:02}{:02}{:02}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    ))
}

/// What the file holds and what of it is sent.
#[allow(clippy::cast_precision_loss)]
pub(super) fn summary(options: &ReplayOptions, captured: &Captured, plan: &Plan) -> String {
    let mut out = String::new();
    let count = |number: usize| grouped(number as f64);
    let _ = writeln!(
        out,
        "{}: {} statements to send, of {} connections, over {:.1} s",
        options.file.display(),
        count(plan.steps.len()),
        count(plan.connections),
        plan.length().as_secs_f64()
    );
    if plan.shared > 0 {
        let _ = writeln!(
            out,
            "  {} connections share one with others, for more than {} were open at once: their sessions mix",
            count(plan.shared),
            options.connections_max
        );
    }
    if captured.is_cut {
        let _ = writeln!(
            out,
            "  the file holds more than {}: the rest is not read (--statements-max)",
            count(options.statements_max)
        );
    }
    if let Some(first) = &captured.first_malformed {
        let _ = writeln!(
            out,
            "  {} parts could not be read; the first: {first}",
            captured.malformed
        );
    }
    counts(&mut out, "left out", &plan.left_out);
    for (why, count) in &captured.left_out {
        let _ = writeln!(out, "  left out: {} × {why}", grouped(*count as f64));
    }
    if options.writes && options.to.len() * options.rounds as usize > 1 {
        let _ = writeln!(
            out,
            "  what writes is sent in each of the {} turns, so the turns find different data",
            options.to.len() * options.rounds as usize
        );
    }
    out
}

#[allow(clippy::cast_precision_loss)]
fn counts(out: &mut String, what: &str, all: &BTreeMap<String, LeftOut>) {
    for (why, LeftOut { count, example }) in all {
        let _ = writeln!(
            out,
            "  {what}: {} × {why}\n      {example}",
            grouped(*count as f64)
        );
    }
}

/// What was measured.
pub(super) fn tables(options: &ReplayOptions, outcome: &Outcome) -> String {
    let mut out = String::from("\n");
    let is_timed = options.speed != Speed::Max;
    let mut heads = vec!["target", "queries/s", "p50 ms", "p95 ms", "p99 ms"];
    if is_timed {
        heads.extend(["due p50", "due p95", "due p99", "lag p95", "lag max"]);
    }
    heads.extend(["errors", "hits"]);
    let mut table = Table::new(&heads);
    for (number, target) in options.to.iter().enumerate() {
        let turns = of(outcome, number);
        if !turns.is_empty() {
            table.row(row(&target.label, &turns, is_timed));
        }
    }
    let _ = write!(out, "{table}");
    let _ = writeln!(
        out,
        "\n  medians of the turns; latency from when a statement was sent"
    );
    if is_timed {
        let _ = writeln!(
            out,
            "  due: from when it was due, so that waiting for the one before counts; lag: sent so late"
        );
    }
    for (number, target) in options.to.iter().enumerate() {
        let mut errors: BTreeMap<String, LeftOut> = BTreeMap::new();
        for (name, error) in of(outcome, number)
            .iter()
            .flat_map(|turn| &turn.errors_by_kind)
        {
            let known = errors.entry(name.clone()).or_insert_with(|| LeftOut {
                count: 0,
                example: error.example.clone(),
            });
            known.count += error.count;
        }
        counts(&mut out, &format!("{}, errors", target.label), &errors);
    }
    comparisons(&mut out, outcome, &options.to[0].label);
    if let Some(why) = &outcome.ended_early {
        let _ = writeln!(out, "\n  ended before its end: {why}");
    }
    out
}

fn of(outcome: &Outcome, target: usize) -> Vec<&Turn> {
    outcome
        .turns
        .iter()
        .filter(|turn| turn.target == target)
        .collect()
}

fn row(label: &str, turns: &[&Turn], is_timed: bool) -> Vec<String> {
    let middle = |value: &dyn Fn(&Turn) -> f64| {
        median(&turns.iter().map(|turn| value(turn)).collect::<Vec<_>>())
    };
    let ms = |value: &dyn Fn(&Turn) -> f64| format!("{:.3}", middle(value));
    let mut fields = vec![label.to_owned(), grouped(middle(&Turn::queries_per_s))];
    for percent in [50.0, 95.0, 99.0] {
        fields.push(ms(&|turn| turn.latencies.percentile_ms(percent)));
    }
    if is_timed {
        for percent in [50.0, 95.0, 99.0] {
            fields.push(ms(&|turn| turn.from_due.percentile_ms(percent)));
        }
        fields.push(ms(&|turn| turn.lag.percentile_ms(95.0)));
        fields.push(ms(&|turn| turn.lag.max_ms()));
    }
    let errors: u64 = turns.iter().map(|turn| turn.errors).sum();
    fields.push(errors.to_string());
    let ratios: Vec<f64> = turns.iter().filter_map(|turn| turn.hit_ratio).collect();
    fields.push(if ratios.is_empty() {
        "–".to_owned()
    } else {
        format!("{:.1} %", 100.0 * median(&ratios))
    });
    fields
}

fn comparisons(out: &mut String, outcome: &Outcome, first: &str) {
    for comparison in &outcome.comparisons {
        let _ = writeln!(
            out,
            "\n  {} gave the rows of {first} in {} of {} reads",
            comparison.label,
            comparison.compared
                - comparison.different
                - comparison.passing
                - comparison.unsettled.min(comparison.compared),
            comparison.compared
        );
        if comparison.different > 0 {
            let _ = writeln!(
                out,
                "    {} differ, also when asked again:",
                comparison.different
            );
        }
        for example in &comparison.examples {
            let _ = writeln!(out, "      {example}");
        }
        if comparison.passing > 0 {
            let _ = writeln!(
                out,
                "    {} differed once and not when asked again: somebody wrote meanwhile, or it was an old result",
                comparison.passing
            );
        }
        if comparison.unsettled > 0 {
            let _ = writeln!(
                out,
                "    {} have rows that change by themselves, or gave errors when asked again",
                comparison.unsettled
            );
        }
    }
}

/// Writes the directory.
///
/// # Errors
/// It can't be written; the message names the file.
pub(super) fn write(
    directory: &Path,
    options: &ReplayOptions,
    plan: &Plan,
    outcome: &Outcome,
) -> anyhow::Result<()> {
    let make = |path: &Path| {
        std::fs::create_dir_all(path).with_context(|| format!("can't make {}", path.display()))
    };
    make(&directory.join("series"))?;
    let mut cells: Vec<Cell> = options
        .to
        .iter()
        .map(|target| Cell {
            workload: "replay".to_owned(),
            x: None,
            arm: target.label.clone(),
            repetitions: Vec::new(),
        })
        .collect();
    for (place, turn) in (0..).zip(&outcome.turns) {
        let file_name = cells[turn.target]
            .arm
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let series = format!("series/{file_name}-{}.csv", turn.round);
        write_file(&directory.join(&series), series_of(turn).as_bytes())?;
        cells[turn.target]
            .repetitions
            .push(repetition(place, turn, plan, options.speed, series));
    }
    let results = results(options, plan, outcome, cells)?;
    let text = serde_json::to_vec_pretty(&results).context("can't put the results into JSON")?;
    write_file(&directory.join("results.json"), &text)
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("can't write {}", path.display()))
}

fn series_of(turn: &Turn) -> String {
    let mut out = String::from("second,queries_per_s,transactions_per_s,p95_ms,errors\n");
    for second in &turn.seconds {
        let _ = writeln!(
            out,
            "{},{},{},{},{}",
            second.second, second.queries, second.queries, second.p95_ms, second.errors
        );
    }
    out
}

fn latency(durations: &Durations) -> Latency {
    Latency {
        mean: durations.mean_ms(),
        p50: Some(durations.percentile_ms(50.0)),
        p95: durations.percentile_ms(95.0),
        p99: Some(durations.percentile_ms(99.0)),
        max: durations.max_ms(),
    }
}

#[allow(clippy::cast_precision_loss)]
fn repetition(place: u32, turn: &Turn, plan: &Plan, speed: Speed, series: String) -> Repetition {
    let due_s = speed
        .due(plan.length())
        .map(|length| length.as_secs_f64().max(1e-6));
    Repetition {
        turn: place,
        // The capture is what it is: all of it counts. Only the first round finds caches that know
        // none of it.
        warm_up_s: 0.0,
        is_steady: Some(turn.round > 1),
        length_s: turn.length.as_secs_f64(),
        queries: turn.queries,
        queries_per_s: turn.queries_per_s(),
        transactions_per_s: turn.queries_per_s(),
        latency_ms: latency(&turn.latencies),
        open_loop: due_s
            .filter(|_| !turn.from_due.is_empty())
            .map(|due_s| OpenLoop {
                rate_per_s: plan.steps.len() as f64 / due_s,
                reached_per_s: turn.queries_per_s(),
                latency_ms: latency(&turn.from_due),
            }),
        // The targets are somebody else's processes, perhaps on other machines: not known unless
        // told which.
        server_cpu_us: cpu_us(turn.server_cpu, turn),
        proxy_cpu_us: cpu_us(turn.proxy_cpu, turn),
        hit_ratio: turn.hit_ratio,
        checked_reads: 0,
        stale_reads: 0,
        errors: turn.errors,
        counters: counters(turn),
        series,
    }
}

fn cpu_us(cpu: Option<std::time::Duration>, turn: &Turn) -> Option<f64> {
    cpu.map(|cpu| microseconds_per_query(cpu, turn.queries))
}

#[allow(clippy::cast_precision_loss)]
fn counters(turn: &Turn) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::from([("reads".to_owned(), turn.reads as f64)]);
    if !turn.lag.is_empty() {
        counters.insert("lag_ms_p95".to_owned(), turn.lag.percentile_ms(95.0));
        counters.insert("lag_ms_max".to_owned(), turn.lag.max_ms());
    }
    counters
}

fn results(
    options: &ReplayOptions,
    plan: &Plan,
    outcome: &Outcome,
    cells: Vec<Cell>,
) -> anyhow::Result<Results> {
    let mut versions = BTreeMap::from([(
        "remora-lab".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    )]);
    for (target, version) in options.to.iter().zip(&outcome.versions) {
        versions.insert(format!("server of {}", target.label), version.clone());
    }
    let mut configuration = BTreeMap::new();
    configuration.insert("statements".to_owned(), statements(plan));
    if !outcome.comparisons.is_empty() {
        let mut text = String::new();
        comparisons(&mut text, outcome, &options.to[0].label);
        configuration.insert("comparison of rows".to_owned(), text);
    }
    let started = OffsetDateTime::from(outcome.started.unwrap_or_else(SystemTime::now));
    let started = started
        .replace_nanosecond(0)
        .unwrap_or(started)
        .format(&Rfc3339);
    Ok(Results {
        schema_version: SCHEMA_VERSION,
        experiment: "replay".to_owned(),
        title: format!("Replay of {}", options.file.display()),
        question: "What do the captured statements get from each target?".to_owned(),
        published: Vec::new(),
        scale: Scale::Normal,
        started: started.context("can't tell the time")?,
        state: match &outcome.ended_early {
            None => State::Complete,
            Some(why) => State::Incomplete { why: why.clone() },
        },
        machine: Machine::this(),
        versions,
        configuration,
        commands: vec![std::env::args().collect::<Vec<_>>().join(" ")],
        cells,
    })
}

fn statements(plan: &Plan) -> String {
    let reads = plan.steps.iter().filter(|step| step.is_read).count();
    let mut out = format!(
        "sent = {}\nreads = {reads}\nconnections = {}\nconnections_at_once_max = {}\nlength_s = {:.3}\n",
        plan.steps.len(),
        plan.connections,
        plan.lanes.len(),
        plan.length().as_secs_f64()
    );
    counts(&mut out, "left out", &plan.left_out);
    out
}
