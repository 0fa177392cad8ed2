//! What a report says of the run itself: its state, stale reads, noise, the machine, the
//! configuration.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::results::{Results, Scale, State};
use crate::stats;

use super::figures::{Measure, OURS, Workload};
use super::html::{Table, collapsed, notice};
use super::number::{counted, plain};
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

/// Stale reads: a count.
pub(super) fn stale_reads(results: &Results) -> Markup {
    let by_arm = by_arm(results);
    let total = by_arm
        .values()
        .fold((0, 0), |sum, arm| (sum.0 + arm.0, sum.1 + arm.1));
    let (who, (stale, checked)) = match by_arm.get(OURS) {
        Some(&ours) => ("Stale reads through Remora: ", ours),
        None => ("Stale reads: ", total),
    };
    let others = by_arm
        .iter()
        .filter(|(arm, (stale, _))| by_arm.contains_key(OURS) && **arm != OURS && *stale > 0);
    let kind = match (stale, checked) {
        (0, 0) => "note",
        (0, _) => "good",
        _ => "bad",
    };
    notice(
        kind,
        &html! {
            strong {
                @if checked == 0 { (who) "not checked" } @else { (who) (count(stale)) }
            }
            @if checked > 0 { " of " (count(checked)) " reads checked" }
            @for (arm, (stale, checked)) in others {
                "; through " (arm_name(arm)) ": " (count(*stale)) " of " (count(*checked))
            }
            "."
        },
    )
}

/// Of each arm the stale and the checked reads.
fn by_arm(results: &Results) -> BTreeMap<&str, (u64, u64)> {
    let mut by_arm: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for cell in &results.cells {
        let (stale, checked) = by_arm.entry(&cell.arm).or_default();
        for repetition in &cell.repetitions {
            *stale += repetition.stale_reads;
            *checked += repetition.checked_reads;
        }
    }
    by_arm
}

/// A section with a count for each arm, if anything was checked.
pub(super) fn stale_reads_by_arm(results: &Results) -> Markup {
    let caption = "Reads that lacked a write that had been answered before";
    let mut table = Table::new(caption, 1, ["arm", "stale reads", "checked reads"]);
    let by_arm = by_arm(results);
    for (arm, (stale, checked)) in by_arm.iter().filter(|(_, (_, checked))| *checked > 0) {
        table.row([arm_name(arm), count(*stale), count(*checked)]);
    }
    html! {
        @if !table.is_empty() {
            h2 { "Stale reads" }
            (table.markup())
        }
    }
}

/// What was measured, how much of it, when and where: a few facts at the top.
pub(super) fn first_facts(results: &Results) -> Markup {
    let machine = &results.machine;
    let is_replay = results.experiment == "replay";
    html! {
        dl {
            dt { "measured" } dd { (state_in_a_line(results)) ": " (amount(results)) }
            @if !is_replay { dt { "scale" } dd { (scale_name(results.scale)) } }
            dt { "begun" } dd { (results.started) }
            dt { @if is_replay { "sent from" } @else { "machine" } }
            dd {
                (machine.processor) ", " (counted(machine.processors as usize, "logical processor", "logical processors"))
                ", " (plain(gib(machine.memory_bytes))) " GiB of memory"
            }
            @for program in ["server", "remora"] {
                @if let Some(version) = results.versions.get(program) { dt { (program) } dd { (version) } }
            }
        }
    }
}

/// Whether all was measured.
pub(super) fn state_in_a_line(results: &Results) -> String {
    match &results.state {
        State::Complete => "all".to_owned(),
        State::Incomplete { why } => format!("not all ({why})"),
    }
}

/// `8 loads through 3 arms, 120 measurements of 20 s each`.
fn amount(results: &Results) -> String {
    let cells: Vec<_> = results
        .cells
        .iter()
        .filter(|cell| !cell.repetitions.is_empty())
        .collect();
    let mut loads: Vec<_> = cells.iter().map(|cell| (&cell.workload, &cell.x)).collect();
    loads.dedup();
    let loads = loads
        .iter()
        .enumerate()
        .filter(|(number, load)| !loads[..*number].contains(load))
        .count();
    let arms: BTreeSet<&str> = cells.iter().map(|cell| cell.arm.as_str()).collect();
    let lengths: Vec<f64> = cells
        .iter()
        .flat_map(|cell| &cell.repetitions)
        .map(|repetition| repetition.length_s)
        .collect();
    if lengths.is_empty() {
        return "nothing".to_owned();
    }
    format!(
        "{} through {}, {} of {} s",
        counted(loads, "load", "loads"),
        counted(arms.len(), "arm", "arms"),
        counted(lengths.len(), "measurement", "measurements"),
        plain(stats::median(&lengths))
    )
}

#[allow(clippy::cast_precision_loss)]
fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
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
    html! {
        h2 { "Where and how it ran" }
        dl {
            dt { "processor" } dd { (machine.processor) ", " (machine.processors) " logical" }
            dt { "memory" } dd { (plain(gib(machine.memory_bytes))) " GiB" }
            dt { "kernel" } dd { (machine.kernel) }
            @for (program, version) in &results.versions {
                dt { (program) } dd { (version) }
            }
        }
        p {
            @if results.experiment == "replay" {
                "This is the machine that sent the statements; the targets may be elsewhere."
            } @else {
                "Load, proxy and server shared these processors, so a proxy's own work slows the others down."
            }
        }
        (collapsed("Commands", &html! {
            pre tabindex="0" { @for command in &results.commands { (command) "\n" } }
        }))
        @for (program, text) in &results.configuration {
            (collapsed(&format!("Configuration of {program}"), &html! { pre tabindex="0" { (text) } }))
        }
    }
}
