//! A comparison in words, and on the terminal.

use std::fmt;

use crate::statistics::bootstrap::{Estimate, Verdict};
use crate::table::Table;

use super::compare::{
    Change, Comparison, Counted, ExperimentComparison, Finding, Overall, StaleReads,
};
use super::compare_judge::{SMALLEST_DIFFERENCE, STANDARD_ERRORS_MIN};
use super::figures::BASELINE;
use super::number::{self, counted, factor, interval, plain};

/// No line on the terminal is longer, characters.
pub(super) const COLUMNS: usize = 120;

/// A load's name is never cut shorter than this.
const LOAD_MIN: usize = 12;

/// What is compared, short enough for a terminal.
fn short(measure: &str) -> &str {
    match measure {
        "95th percentile, ms" => "p95 ms",
        "server CPU, µs/query" => "server µs",
        "proxy CPU, µs/query" => "proxy µs",
        other => other,
    }
}

/// `0.50 (0.45 to 0.55)`.
pub(super) fn with_interval(found: Estimate) -> String {
    match found.interval {
        Some(ends) => format!("{} ({})", factor(found.value), interval(ends, factor)),
        None => factor(found.value),
    }
}

pub(super) fn against(found: Option<Estimate>) -> String {
    found.map_or_else(|| "–".to_owned(), with_interval)
}

pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "WORSE",
        Verdict::NoDifferenceShown => "–",
    }
}

impl Change {
    /// `point selects, threads 8`.
    pub(super) fn place(&self) -> Option<String> {
        let x = self.x.as_ref()?;
        Some(format!(
            "{} {}",
            x.axis,
            number::with_unit(x.value, &x.unit)
        ))
    }

    pub(super) fn values(&self) -> String {
        format!("{} → {}", plain(self.a.value), plain(self.b.value))
    }

    /// What is said of it in a word.
    pub(super) fn word(&self) -> &'static str {
        match self.finding {
            Finding::Judged(verdict) => word(verdict),
            Finding::TooFew => "too few",
            Finding::Direct => "",
        }
    }

    /// All but the load.
    fn fields(&self) -> [String; 6] {
        [
            self.arm.clone(),
            short(&self.measure).to_owned(),
            self.values(),
            factor(self.ratio.value),
            against(self.against_direct),
            self.word().to_owned(),
        ]
    }

    /// How far from no change, for sorting.
    fn distance(&self) -> f64 {
        self.ratio.value.ln().abs()
    }
}

impl Counted {
    /// `2 of 48 figures got worse, 1 better, 45 show no difference.`
    pub(super) fn sentence(self) -> String {
        let judged = self.judged();
        let mut said = vec![match judged {
            0 => "Nothing could be compared.".to_owned(),
            _ => format!(
                "{} of {} got worse, {} better, {} show no difference.",
                self.worse,
                counted(judged, "figure", "figures"),
                self.better,
                self.no_difference
            ),
        }];
        if self.too_few > 0 {
            let too_few = counted(self.too_few, "figure", "figures");
            said.push(format!(
                "Not judged: {too_few}, measured fewer than 3 times in one of the runs (`run --repetitions 3` measures \
                 as often)."
            ));
        }
        said.join(" ")
    }
}

impl ExperimentComparison {
    /// What differs, the worst first, then the best.
    pub(super) fn differing(&self) -> Vec<&Change> {
        let mut found: Vec<&Change> = Vec::new();
        for verdict in [Verdict::Worse, Verdict::Better] {
            let mut these: Vec<&Change> = self
                .changes
                .iter()
                .filter(|change| change.is(verdict))
                .collect();
            these.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
            found.extend(these);
        }
        found
    }

    /// The arms that differ over all their cells.
    pub(super) fn differing_overall(&self) -> Vec<&Overall> {
        let differs = |found: &&Overall| found.verdict != Verdict::NoDifferenceShown;
        self.overall.iter().filter(differs).collect()
    }

    /// `remora over all its 4 cells: queries/s 0.75 (0.74 to 0.76), WORSE.`
    pub(super) fn overall_sentences(&self) -> Vec<String> {
        let sentence = |found: &&Overall| {
            format!(
                "{} over all its {} cells: {} {}, relative to direct {}: {}.",
                found.arm,
                found.cells,
                short(&found.measure),
                with_interval(found.ratio),
                against(found.against_direct),
                word(found.verdict)
            )
        };
        self.differing_overall().iter().map(sentence).collect()
    }

    /// How `direct` itself changed.
    pub(super) fn direct_sentence(&self) -> Option<String> {
        let each = self
            .direct
            .iter()
            .map(|direct| format!("{} × {}", factor(direct.ratio), short(&direct.measure)));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| {
            format!(
                "{BASELINE} itself, by which the others are judged: {}.",
                each.join(", ")
            )
        })
    }

    pub(super) fn stale_sentences(&self) -> Vec<String> {
        let sentence = |stale: &StaleReads| {
            format!(
                "Stale reads through {}: {} in the earlier run, {} in the later one{}",
                stale.arm,
                stale.a,
                stale.b,
                if stale.is_worse() { ": WORSE." } else { "." }
            )
        };
        self.stale_reads.iter().map(sentence).collect()
    }
}

impl Comparison {
    /// The verdict, in a sentence or two.
    pub fn verdict(&self) -> String {
        let mut said = vec![self.counted().sentence()];
        let overall = self.overall_regressions().count();
        if overall > 0 {
            let measures = counted(overall, "measure", "measures");
            said.push(format!("Over all cells of an arm {measures} got worse."));
        }
        let mut stale = self.experiments.iter().flat_map(|found| &found.stale_reads);
        if stale.any(StaleReads::is_worse) {
            said.push("There are more STALE READS.".to_owned());
        }
        said.join(" ")
    }

    /// As it is shown on the terminal: what differs, or all.
    pub fn text(&self, is_all: bool) -> String {
        Text {
            comparison: self,
            is_all,
        }
        .to_string()
    }
}

/// How a verdict comes about.
pub(super) fn rule() -> String {
    format!(
        "A figure differs if the intervals of both medians don't overlap and the difference is larger than {} % and \
         than {STANDARD_ERRORS_MIN} standard errors (more where few repetitions tell the noise), in the figure itself \
         and relative to {BASELINE} in the same run, and larger relative to {BASELINE} than what {BASELINE} itself \
         changed by.",
        plain(SMALLEST_DIFFERENCE * 100.0)
    )
}

/// A comparison for the terminal.
struct Text<'a> {
    comparison: &'a Comparison,
    is_all: bool,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.comparison;
        write!(f, "{}", wrapped("", &found.verdict()))?;
        writeln!(f, "\nearlier: {}\nlater:   {}", found.a, found.b)?;
        for experiment in &found.experiments {
            let head = format!("{}: {}", experiment.experiment, experiment.title);
            write!(f, "\n{}", wrapped("", &head))?;
            if found.experiments.len() > 1 {
                write!(f, "{}", wrapped("  ", &experiment.counted().sentence()))?;
            }
            self.experiment(f, experiment)?;
        }
        write!(f, "\n{}", wrapped("", &rule()))
    }
}

impl Text<'_> {
    fn experiment(&self, f: &mut fmt::Formatter<'_>, found: &ExperimentComparison) -> fmt::Result {
        let stale = found.stale_sentences();
        let overall = found.overall_sentences();
        let notes = found.notes.iter().cloned().chain(found.direct_sentence());
        for sentence in stale.into_iter().chain(overall).chain(notes) {
            write!(f, "{}", wrapped("  ", &sentence))?;
        }
        let shown = if self.is_all {
            found.changes.iter().collect()
        } else {
            found.differing()
        };
        if shown.is_empty() {
            return Ok(());
        }
        write!(f, "\n{}", table(&shown))
    }
}

/// The figures as a table, no broader than the terminal.
fn table(changes: &[&Change]) -> Table {
    const HEADS: [&str; 7] = [
        "load",
        "arm",
        "measure",
        "earlier → later",
        "ratio",
        "relative to direct",
        "",
    ];
    let rows: Vec<[String; 6]> = changes.iter().map(|change| change.fields()).collect();
    let length = |text: &str| text.chars().count();
    let width = |column: usize| {
        let fields = rows.iter().map(|row| length(&row[column]));
        fields.max().unwrap_or(0).max(length(HEADS[column + 1]))
    };
    // Two spaces before each column.
    let others: usize = (0..6).map(|column| width(column) + 2).sum();
    let room = COLUMNS.saturating_sub(others + 2).max(LOAD_MIN);
    let mut table = Table::new(&HEADS);
    for (change, fields) in changes.iter().zip(rows) {
        let load = match change.place() {
            Some(place) => {
                let rest = room.saturating_sub(length(&place) + 2);
                format!("{}, {place}", cut(&change.workload, rest))
            }
            None => change.workload.clone(),
        };
        table.row(std::iter::once(cut(&load, room)).chain(fields));
    }
    table
}

/// With its end left out where it is longer.
fn cut(text: &str, length_max: usize) -> String {
    if text.chars().count() <= length_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(length_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// In lines that fit the terminal, each with `indent` before it.
fn wrapped(indent: &str, text: &str) -> String {
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    let mut length = indent.len();
    for word in text.split(' ') {
        let more = word.chars().count() + 1;
        if length > indent.len() && length + more > COLUMNS {
            lines.push_str(&line);
            lines.push('\n');
            indent.clone_into(&mut line);
            length = indent.len();
        }
        if length > indent.len() {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += more - 1;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_broken_between_words() {
        let text = "a word ".repeat(60);
        let lines = wrapped("  ", text.trim());
        assert!(lines.lines().count() > 3);
        for line in lines.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
            assert!(
                line.starts_with("  a ") || line.starts_with("  word "),
                "{line}"
            );
        }
        assert_eq!(lines.split_whitespace().count(), 120);
        assert_eq!(cut("point selects", 7), "point…");
        assert_eq!(cut("point", 5), "point");
    }
}
