//! What a report says of the run itself: published figures, stale reads, noise, the machine, the configuration.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::experiments::results::{Results, Scale, State};
use crate::stats;

use super::figures::{Measure, OURS, Workload};
use super::html::{Table, collapsed, notice};
use super::number::{self, plain};
use super::source::Run;
use super::style::arm_name;

/// A scale's name as on the command line.
pub(super) fn scale_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Tiny => "tiny",
        Scale::Quick => "quick",
        Scale::Normal => "normal",
        Scale::Full => "full",
    }
}

/// What a reader must know before any figure.
pub(super) fn warnings(run: &Run) -> Markup {
    let results = &run.results;
    html! {
        @if let State::Incomplete { why } = &results.state {
            (notice("bad", &html! {
                strong { "This run is incomplete: " } (why) ". What was measured is here; the same command with the same \
                directory measures the rest."
            }))
        }
        @if results.scale == Scale::Tiny {
            (notice("bad", &html! {
                strong { "Tiny scale: " } "for tests of the lab itself. The figures mean nothing."
            }))
        }
        @if !run.notes.is_empty() {
            (notice("note", &html! {
                strong { "Not all of the run could be read: " } (run.notes.join("; ")) "."
            }))
        }
    }
}

/// Stale reads: a count for each arm.
pub(super) fn stale_reads(results: &Results) -> Markup {
    let mut by_arm: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for cell in &results.cells {
        let (stale, checked) = by_arm.entry(&cell.arm).or_default();
        for repetition in &cell.repetitions {
            *stale += repetition.stale_reads;
            *checked += repetition.checked_reads;
        }
    }
    let heads = ["arm", "stale reads", "checked reads"];
    let mut table = Table::new(
        "Reads that lacked a write that had been answered before",
        1,
        heads,
    );
    for (arm, (stale, checked)) in &by_arm {
        table.row([arm_name(arm), count(*stale), count(*checked)]);
    }
    let total = by_arm
        .values()
        .fold((0, 0), |sum, arm| (sum.0 + arm.0, sum.1 + arm.1));
    let (who, (stale, checked)) = match by_arm.get(OURS) {
        Some(&ours) => ("Stale reads through Remora: ", ours),
        None => ("Stale reads: ", total),
    };
    let kind = match (stale, checked) {
        (0, 0) => "note",
        (0, _) => "good",
        _ => "bad",
    };
    html! {
        (notice(kind, &html! {
            strong {
                @if checked == 0 { (who) "not checked" } @else { (who) (count(stale)) }
            }
            @if checked == 0 { "." } @else { " of " (count(checked)) " checked." }
        }))
        (table.markup())
    }
}

/// In all: stale and checked reads, through Remora if it was measured.
pub(super) fn stale_reads_in_a_line(results: &Results) -> String {
    let ours: Vec<_> = results
        .cells
        .iter()
        .filter(|cell| cell.arm == OURS)
        .collect();
    let cells = if ours.is_empty() {
        results.cells.iter().collect()
    } else {
        ours
    };
    let repetitions = || cells.iter().flat_map(|cell| &cell.repetitions);
    let stale: u64 = repetitions().map(|repetition| repetition.stale_reads).sum();
    let checked: u64 = repetitions()
        .map(|repetition| repetition.checked_reads)
        .sum();
    match checked {
        0 => "not checked".to_owned(),
        _ => format!("{} of {}", count(stale), count(checked)),
    }
}

#[allow(clippy::cast_precision_loss)]
fn count(number: u64) -> String {
    crate::table::grouped(number as f64)
}

/// What others published.
pub(super) fn published(results: &Results) -> Markup {
    let heads = ["what", "figure", "unit", "of the first with this unit"];
    let mut table = Table::new("Published figures; only their ratios carry over", 1, heads);
    for figure in &results.published {
        let first = results
            .published
            .iter()
            .find(|other| other.unit == figure.unit);
        let share = first.filter(|first| first.value != 0.0).map_or_else(
            || "–".to_owned(),
            |first| number::ratio(figure.value / first.value),
        );
        table.row([
            figure.what.clone(),
            plain(figure.value),
            figure.unit.clone(),
            share,
        ]);
    }
    html! {
        h2 { "What was published" }
        @if table.is_empty() { p { "Nothing that can be put side by side." } } @else { (table.markup()) }
    }
}

/// How far repetitions of the same are from each other.
pub(super) fn noise(workloads: &[Workload<'_>]) -> Markup {
    let mut spreads: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for workload in workloads {
        for arm in &workload.arms {
            for &x in &workload.places {
                let values = workload.values(arm, x, Measure::Queries);
                spreads
                    .entry(arm)
                    .or_default()
                    .extend(spread_percent(&values));
            }
        }
    }
    let heads = ["arm", "points", "typical spread, %", "largest spread, %"];
    let caption = "From the lowest to the highest throughput of a point's repetitions, as a share of their median";
    let mut table = Table::new(caption, 1, heads);
    for (arm, spreads) in spreads.iter().filter(|(_, spreads)| !spreads.is_empty()) {
        let largest = spreads.iter().copied().fold(0.0, f64::max);
        table.row([
            arm_name(arm),
            spreads.len().to_string(),
            plain(stats::median(spreads)),
            plain(largest),
        ]);
    }
    html! {
        h2 { "The noise of the machine" }
        @if table.is_empty() {
            p { "No point was measured more than once, so the noise isn't known and small differences mean nothing." }
        } @else {
            p { "The same was measured again and again, with other arms in between. Differences of this size need no cause." }
            (table.markup())
        }
    }
}

/// From the lowest to the highest value, % of the median. `None` for a single one.
fn spread_percent(values: &[f64]) -> Option<f64> {
    let median = stats::median(values);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (values.len() > 1 && median > 0.0).then(|| (highest - lowest) / median * 100.0)
}

/// Where and how it ran.
pub(super) fn surroundings(results: &Results) -> Markup {
    let machine = &results.machine;
    #[allow(clippy::cast_precision_loss)]
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    html! {
        h2 { "Where and how it ran" }
        dl {
            dt { "processor" } dd { (machine.processor) ", " (machine.processors) " logical" }
            dt { "memory" } dd { (plain(gib)) " GiB" }
            dt { "kernel" } dd { (machine.kernel) }
            @for (program, version) in &results.versions {
                dt { (program) } dd { (version) }
            }
        }
        p { "Load, proxy and server shared these processors, so a proxy's own work slows the others down." }
        (collapsed("Commands", &html! {
            pre tabindex="0" { @for command in &results.commands { (command) "\n" } }
        }))
        @for (program, text) in &results.configuration {
            (collapsed(&format!("Configuration of {program}"), &html! { pre tabindex="0" { (text) } }))
        }
    }
}
