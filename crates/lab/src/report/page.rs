//! A report as a whole, and the index of several.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::experiments::results::{Results, State};

use super::about_run;
use super::figures::{Workload, workloads};
use super::html::{Table, page};
use super::sections;
use super::sentences;
use super::source::Run;
use super::style::styles;

/// The report of one run.
pub(super) fn report(run: &Run) -> anyhow::Result<String> {
    let results = &run.results;
    let workloads = workloads(results);
    let styles = styles(results.cells.iter().map(|cell| cell.arm.as_str()));
    let sections: Vec<Markup> = workloads
        .iter()
        .map(|workload| sections::workload(workload, &styles, run))
        .collect::<anyhow::Result<_>>()?;
    let contents = html! {
        header {
            h1 { (heading(results)) }
            p.about { (about(results)) }
        }
        (about_run::warnings(run))
        h2 { "What was asked" }
        p { (results.question) }
        h2 { "What was found" }
        p.lead { (sentences::lead(&workloads)) }
        p { (sentences::confidence(&workloads)) }
        (about_run::stale_reads(results))
        (about_run::published(results))
        @for section in sections { (section) }
        (about_run::noise(&workloads))
        (about_run::surroundings(results))
    };
    Ok(page(&heading(results), &contents))
}

fn heading(results: &Results) -> String {
    format!("{}: {}", results.experiment, results.title)
}

fn about(results: &Results) -> String {
    format!(
        "Scale {}, begun {}",
        about_run::scale_name(results.scale),
        results.started
    )
}

/// What each of several runs found, by the name of its directory.
pub(super) fn index(runs: &[(String, Run)]) -> String {
    let found: Vec<(&String, &Results, String)> = runs
        .iter()
        .map(|(directory, run)| {
            let workloads: Vec<Workload<'_>> = workloads(&run.results);
            (directory, &run.results, sentences::lead(&workloads))
        })
        .collect();
    let heads = ["experiment", "scale", "stale reads", "measured"];
    let mut table = Table::new("All runs", 1, heads);
    for (_, results, _) in &found {
        let state = match &results.state {
            State::Complete => "all".to_owned(),
            State::Incomplete { why } => format!("not all: {why}"),
        };
        table.row([
            results.experiment.clone(),
            about_run::scale_name(results.scale).to_owned(),
            about_run::stale_reads_in_a_line(results),
            state,
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
