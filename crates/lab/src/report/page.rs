//! A report as a whole, and the index of several.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::results::Results;

use super::about_run;
use super::beside;
use super::figures::{Workload, workloads};
use super::html::{Table, page};
use super::sections;
use super::source::Run;
use super::style::styles;
use super::verdict;

/// The report of one run.
pub(super) fn report(run: &Run) -> anyhow::Result<String> {
    let results = &run.results;
    let workloads = workloads(results);
    let styles = styles(results.cells.iter().map(|cell| cell.arm.as_str()));
    let pairs = beside::pairs(results, &workloads);
    let sections: Vec<Markup> = (1..)
        .zip(&workloads)
        .map(|(number, workload)| sections::workload(workload, &section_id(number), &styles, run))
        .collect::<anyhow::Result<_>>()?;
    let contents = html! {
        header {
            h1 { (heading(results)) }
            p.question { (results.question) }
        }
        (about_run::warnings(run))
        p.lead { (verdict::of_run(results, &workloads, &pairs)) }
        (about_run::stale_reads(results))
        (about_run::first_facts(results))
        @if workloads.len() > 1 { (contents_list(&workloads)) }
        p { (verdict::confidence(&workloads)) }
        (beside::section(results, &pairs))
        @for section in sections { (section) }
        (about_run::stale_reads_by_arm(results))
        (about_run::noise(&workloads))
        (about_run::surroundings(results))
    };
    Ok(page(&heading(results), &contents))
}

fn section_id(number: usize) -> String {
    format!("workload-{number}")
}

/// A verdict on each workload, and a link to its section.
fn contents_list(workloads: &[Workload<'_>]) -> Markup {
    html! {
        ul {
            @for (number, workload) in (1..).zip(workloads) {
                li {
                    a href=(format!("#{}", section_id(number))) { (workload.name) } ": "
                    (verdict::of_workload(workload).unwrap_or_else(|| "Nothing to compare with direct.".to_owned()))
                }
            }
        }
    }
}

/// The verdict on a run.
pub(super) fn verdict(results: &Results, workloads: &[Workload<'_>]) -> String {
    verdict::of_run(results, workloads, &beside::pairs(results, workloads))
}

fn heading(results: &Results) -> String {
    format!("{}: {}", results.experiment, results.title)
}

/// What each of several runs found, by the name of its directory.
pub(super) fn index(runs: &[(String, Run)]) -> String {
    let found: Vec<(&String, &Results, String)> = runs
        .iter()
        .map(|(directory, run)| {
            let workloads: Vec<Workload<'_>> = workloads(&run.results);
            (directory, &run.results, verdict(&run.results, &workloads))
        })
        .collect();
    let heads = ["experiment", "scale", "stale reads", "measured"];
    let mut table = Table::new("All runs", 1, heads);
    for (_, results, _) in &found {
        table.row([
            results.experiment.clone(),
            about_run::scale_name(results.scale).to_owned(),
            about_run::stale_reads_in_a_line(results),
            about_run::state_in_a_line(results),
        ]);
    }
    let contents = html! {
        h1 { "Published experiments, side by side" }
        p.about { "Each experiment has a report of its own, with charts, tables and the configuration." }
        @for (directory, results, lead) in &found {
            section {
                h2 { a href=(format!("{}/{}", encoded(directory), super::REPORT)) { (heading(results)) } }
                p { (results.question) }
                p.lead { (lead) }
            }
        }
        h2 { "In a table" }
        (table.markup())
    };
    page("Published experiments, side by side", &contents)
}

/// As a part of a link.
fn encoded(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string can't fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}
