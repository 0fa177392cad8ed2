//! A comparison on the terminal and as a page.

use std::fmt;

use maud::{Markup, html};

use crate::statistics::bootstrap::Verdict;
use crate::table::Table;

use super::compare::{
    Change, Comparison, ExperimentComparison, Overall, SMALLEST_DIFFERENCE, STANDARD_ERRORS,
};
use super::html::{notice, page};
use super::number::{self, counted, plain, ratio_estimate};
use super::style::arm_name;

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "WORSE",
        Verdict::NoDifferenceShown => "no difference shown",
    }
}

impl Change {
    /// Workload, place, arm, measure, both figures, the ratio, the ratio of the ratios to `direct`, the verdict.
    fn fields(&self) -> [String; 8] {
        let place = self.x.as_ref().map_or_else(String::new, |x| {
            format!("{} {}", x.axis, number::with_unit(x.value, &x.unit))
        });
        [
            self.workload.clone(),
            place,
            arm_name(&self.arm),
            self.measure.clone(),
            format!("{} → {}", plain(self.a.value), plain(self.b.value)),
            ratio_estimate(self.ratio),
            self.against_direct
                .map_or_else(|| "–".to_owned(), ratio_estimate),
            word(self.verdict).to_owned(),
        ]
    }
}

const HEADS: [&str; 8] = [
    "workload",
    "at",
    "arm",
    "measure",
    "earlier → later",
    "ratio (95 % interval)",
    "against direct",
    "verdict",
];

impl Overall {
    /// Arm, measure, number of cells, the ratio, the ratio of the ratios to `direct`, the verdict.
    fn fields(&self) -> [String; 6] {
        [
            arm_name(&self.arm),
            self.measure.clone(),
            self.cells.to_string(),
            ratio_estimate(self.ratio),
            self.against_direct
                .map_or_else(|| "–".to_owned(), ratio_estimate),
            word(self.verdict).to_owned(),
        ]
    }
}

const OVERALL_HEADS: [&str; 6] = [
    "arm",
    "measure",
    "cells",
    "ratio (95 % interval)",
    "against direct",
    "verdict",
];

impl ExperimentComparison {
    fn count(&self, verdict: Verdict) -> usize {
        self.changes
            .iter()
            .filter(|change| change.verdict == verdict)
            .count()
    }

    /// The arms that differ over all their cells: `Remora, queries/s: 0.75 × (0.74 to 0.76), WORSE.`
    pub fn overall_sentences(&self) -> Vec<String> {
        let differ = |overall: &&Overall| overall.verdict != Verdict::NoDifferenceShown;
        let shown = self.overall.iter().filter(differ).map(|overall| {
            format!(
                "{}, {}, over {}: {}, {}.",
                arm_name(&overall.arm),
                overall.measure,
                counted(overall.cells, "cell", "cells"),
                ratio_estimate(overall.ratio),
                word(overall.verdict)
            )
        });
        shown.collect()
    }

    /// What the comparison shows.
    pub fn sentence(&self) -> String {
        let all = counted(self.changes.len(), "figure", "figures");
        let (better, worse) = (self.count(Verdict::Better), self.count(Verdict::Worse));
        match (better, worse) {
            _ if self.changes.is_empty() => "Nothing was measured in both runs.".to_owned(),
            (0, 0) => format!("Of {all} none is shown to differ."),
            (better, 0) => format!("Of {all} {better} got better, and none worse."),
            (0, worse) => format!("Of {all} {worse} got WORSE, and none better."),
            (better, worse) => format!("Of {all} {worse} got WORSE and {better} better."),
        }
    }

    fn stale_sentence(&self) -> Option<String> {
        match self.stale_reads {
            (0, 0) => None,
            (a, b) => Some(format!(
                "Stale reads: {a} in the earlier run, {b} in the later one."
            )),
        }
    }
}

/// How a verdict comes about.
fn rule() -> String {
    format!(
        "A difference is called one if the intervals of both medians don't overlap and it is larger than {} % and than \
         {STANDARD_ERRORS} standard errors, in the figure itself and in its ratio to direct.",
        plain(SMALLEST_DIFFERENCE * 100.0)
    )
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "earlier: {}\nlater:   {}\n{}", self.a, self.b, rule())?;
        for experiment in &self.experiments {
            writeln!(f, "\n{}: {}", experiment.experiment, experiment.title)?;
            for note in &experiment.notes {
                writeln!(f, "  {note}")?;
            }
            let mut table = Table::new(&OVERALL_HEADS);
            for overall in &experiment.overall {
                table.row(overall.fields());
            }
            writeln!(f, "\n{table}")?;
            let mut table = Table::new(&HEADS);
            for change in &experiment.changes {
                table.row(change.fields());
            }
            writeln!(f, "{table}{}", experiment.sentence())?;
            for sentence in experiment.overall_sentences() {
                writeln!(f, "{sentence}")?;
            }
            if let Some(sentence) = experiment.stale_sentence() {
                writeln!(f, "{sentence}")?;
            }
        }
        Ok(())
    }
}

impl Comparison {
    /// A page that shows it.
    pub fn html(&self) -> String {
        let contents = html! {
            h1 { "Two runs side by side" }
            p.about { "Earlier: " code { (self.a) } ", later: " code { (self.b) } "." }
            p { (rule()) }
            @for experiment in &self.experiments { (section(experiment)) }
        };
        page("Two runs side by side", &contents)
    }
}

fn section(experiment: &ExperimentComparison) -> Markup {
    let kind = match (
        experiment.count(Verdict::Worse),
        experiment.count(Verdict::Better),
    ) {
        (0, 0) => "note",
        (0, _) => "good",
        _ => "bad",
    };
    html! {
        section {
            h2 { (experiment.experiment) ": " (experiment.title) }
            (notice(kind, &html! { strong { (experiment.sentence()) } }))
            @for sentence in experiment.overall_sentences() { p { (sentence) } }
            @if let Some(sentence) = experiment.stale_sentence() {
                (notice("bad", &html! { strong { (sentence) } }))
            }
            @for note in &experiment.notes { p { (note) } }
            (table(
                "Over all cells of an arm: the geometric mean of their ratios, later to earlier",
                &OVERALL_HEADS,
                2,
                experiment.overall.iter().map(|overall| (overall.verdict, overall.fields().to_vec())),
            ))
            (table(
                "By cell: medians of the repetitions, and the later run divided by the earlier one",
                &HEADS,
                4,
                experiment.changes.iter().map(|change| (change.verdict, change.fields().to_vec())),
            ))
        }
    }
}

fn table(
    caption: &str,
    heads: &[&str],
    names: usize,
    rows: impl Iterator<Item = (Verdict, Vec<String>)>,
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
                tbody { @for (verdict, fields) in rows { (row(names, verdict, &fields)) } }
            }
        }
    }
}

fn row(names: usize, verdict: Verdict, fields: &[String]) -> Markup {
    let class = match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifferenceShown => "",
    };
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
