//! A comparison as a page.

use maud::{Markup, html};

use crate::statistics::bootstrap::Verdict;

use super::compare::{Change, Comparison, ExperimentComparison, Finding, Outcome, Overall};
use super::compare_view::{against, rule, with_interval, word};
use super::html::{collapsed, notice, page};
use super::style::arm_name;

const HEADS: [&str; 8] = [
    "workload",
    "at",
    "arm",
    "measure",
    "earlier → later",
    "ratio (95 % interval)",
    "relative to direct",
    "verdict",
];

const OVERALL_HEADS: [&str; 6] = [
    "arm",
    "measure",
    "cells",
    "ratio (95 % interval)",
    "relative to direct",
    "verdict",
];

impl Change {
    fn cells(&self) -> Vec<String> {
        vec![
            self.workload.clone(),
            self.place().unwrap_or_default(),
            arm_name(&self.arm),
            self.measure.clone(),
            self.values(),
            with_interval(self.ratio),
            against(self.against_direct),
            self.word().to_owned(),
        ]
    }

    fn class(&self) -> &'static str {
        match self.finding {
            Finding::Judged(verdict) => class(verdict),
            _ => "",
        }
    }
}

impl Overall {
    fn cells(&self) -> Vec<String> {
        vec![
            arm_name(&self.arm),
            self.measure.clone(),
            self.cells.to_string(),
            with_interval(self.ratio),
            against(self.against_direct),
            word(self.verdict).to_owned(),
        ]
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifferenceShown => "",
    }
}

impl Comparison {
    /// A page that shows it.
    pub fn html(&self) -> String {
        let kind = match (self.outcome(), self.counted().better) {
            (Outcome::Worse, _) => "bad",
            (Outcome::NothingWorse, 1..) => "good",
            _ => "note",
        };
        let contents = html! {
            h1 { "Two runs side by side" }
            (notice(kind, &html! { strong { (self.verdict()) } }))
            p.about { "Earlier: " code { (self.a) } ", later: " code { (self.b) } "." }
            @for experiment in &self.experiments {
                (section(experiment, self.experiments.len() > 1))
            }
            p { (rule()) }
        };
        page("Two runs side by side", &contents)
    }
}

fn section(experiment: &ExperimentComparison, is_one_of_several: bool) -> Markup {
    let differing = experiment.differing();
    html! {
        section {
            h2 { (experiment.experiment) ": " (experiment.title) }
            @if is_one_of_several { p { strong { (experiment.counted().sentence()) } } }
            @for sentence in experiment.stale_sentences() {
                (notice("bad", &html! { strong { (sentence) } }))
            }
            @for note in experiment.notes.iter().cloned().chain(experiment.direct_sentence()) {
                p { (note) }
            }
            @if !differing.is_empty() {
                (table(
                    "What differs, the worst first: medians, and the later run divided by the earlier one",
                    &HEADS,
                    4,
                    differing.iter().map(|change| (change.class(), change.cells())),
                ))
            }
            @if !experiment.overall.is_empty() {
                (table(
                    "Over all cells of an arm: the geometric mean of their ratios, later to earlier",
                    &OVERALL_HEADS,
                    2,
                    experiment.overall.iter().map(|overall| (class(overall.verdict), overall.cells())),
                ))
            }
            (collapsed("Every figure", &table(
                "Every figure: medians of the repetitions, and the later run divided by the earlier one",
                &HEADS,
                4,
                experiment.changes.iter().map(|change| (change.class(), change.cells())),
            )))
        }
    }
}

/// A table whose last column has the verdicts. `names`: so many columns on the left are no figures.
fn table(
    caption: &str,
    heads: &[&str],
    names: usize,
    rows: impl Iterator<Item = (&'static str, Vec<String>)>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr {
                    @for (column, head) in heads.iter().enumerate() {
                        th scope="col" .name[column < names] { (head) }
                    }
                } }
                tbody { @for (class, fields) in rows { (row(names, class, &fields)) } }
            }
        }
    }
}

fn row(names: usize, class: &str, fields: &[String]) -> Markup {
    html! {
        tr {
            @for (column, field) in fields.iter().enumerate() {
                @if column < names {
                    th scope="row" .name { (field) }
                } @else if column + 1 == fields.len() {
                    td class=(class) { (field) }
                } @else {
                    td { (field) }
                }
            }
        }
    }
}
