//! What was compared, and what was different.

use std::fmt;
use std::fmt::Write as _;

use super::case::Step;
use super::mask::{hide_statement_number, visible_packets};
use super::side::{Exchange, PREPARE, PREPARE_AGAIN};

/// So many bytes of a packet are shown, from a little before the first difference on.
const SHOWN_BYTES: usize = 96;
/// So many bytes of a statement are shown.
const STATEMENT_BYTES: usize = 400;

/// Where a comparison stands.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The case's name.
    pub case: &'a str,
    /// The mode's name.
    pub mode: &'a str,
    /// The statement.
    pub step: &'a Step,
}

impl Place<'_> {
    fn heading(&self) -> String {
        let text = self.step.text();
        let shown = &text[..text.len().min(STATEMENT_BYTES)];
        format!(
            "{}.sql:{} [{}]\n    {}",
            self.case,
            self.step.line,
            self.mode,
            String::from_utf8_lossy(shown)
        )
    }
}

/// The counts of a run, and everything that was not as it should be.
#[derive(Debug, Default)]
pub struct Report {
    /// Statements that were run, each in each mode.
    pub statements: u64,
    /// Answers that were compared.
    pub comparisons: u64,
    /// Answers that came from memory.
    pub hits: u64,
    /// What was not as it should be, each readable by itself.
    pub problems: Vec<String>,
    /// Each read's last outcome, if it is wanted.
    pub outcomes: Vec<String>,
}

impl Report {
    /// Compares the answers that a step got directly and through Remora. Where the second side was
    /// asked more often, the direct side's last answer counts.
    pub fn compare(
        &mut self,
        place: Place<'_>,
        numbered: bool,
        direct: &[Exchange],
        through: &[Exchange],
    ) {
        self.statements += 1;
        let compared = |seen: &&Exchange| seen.what != PREPARE_AGAIN;
        for (index, seen) in through.iter().filter(compared).enumerate() {
            let alike = |one: &&Exchange| one.what == seen.what;
            let expected = direct.get(index).filter(alike);
            let Some(expected) = expected.or_else(|| direct.iter().rfind(alike)) else {
                self.problem(place, &format!("{} was not run directly", seen.what));
                continue;
            };
            self.comparisons += 1;
            self.hits += u64::from(seen.outcome == crate::outcome::HIT);
            if let Some(difference) = difference(place, numbered, expected, seen) {
                self.problem(place, &format!("answer {}: {difference}", index + 1));
            }
        }
        if through.iter().filter(compared).count() < direct.len() {
            self.problem(place, "fewer answers than directly");
        }
    }

    /// Adds another's counts and problems.
    pub fn add(&mut self, other: Report) {
        self.statements += other.statements;
        self.comparisons += other.comparisons;
        self.hits += other.hits;
        self.problems.extend(other.problems);
        self.outcomes.extend(other.outcomes);
    }

    /// Notes something that is not as it should be.
    pub fn problem(&mut self, place: Place<'_>, what: &str) {
        self.problems
            .push(format!("{}\n    {what}\n", place.heading()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} statements, {} comparisons, {} hits, {} problems",
            self.statements,
            self.comparisons,
            self.hits,
            self.problems.len()
        )
    }
}

/// What differs between two answers, packet by packet; `None` if nothing does.
fn difference(
    place: Place<'_>,
    numbered: bool,
    expected: &Exchange,
    seen: &Exchange,
) -> Option<String> {
    let mask = place.step.mask;
    let mut direct = visible_packets(&expected.bytes, mask, expected.capabilities);
    let mut through = visible_packets(&seen.bytes, mask, seen.capabilities);
    if seen.what == PREPARE {
        hide_statement_number(&mut direct);
        hide_statement_number(&mut through);
    }
    if !numbered {
        for (sequence, _) in direct.iter_mut().chain(&mut through) {
            *sequence = 0;
        }
    }
    if direct == through && expected.failure == seen.failure {
        return None;
    }
    let mut text = format!(
        "{} ({}): {} packets instead of {}",
        seen.what,
        seen.outcome,
        through.len(),
        direct.len()
    );
    for (side, failure) in [("direct", &expected.failure), ("through", &seen.failure)] {
        if let Some(failure) = failure {
            let _ = write!(text, "\n      {side}: the connection failed: {failure}");
        }
    }
    for index in 0..direct.len().max(through.len()) {
        let (one, other) = (direct.get(index), through.get(index));
        if one == other {
            continue;
        }
        let at = first_difference(one, other);
        let _ = write!(text, "\n      packet {}, byte {at}:", index + 1);
        let _ = write!(text, "\n        direct  {}", shown(one, at));
        let _ = write!(text, "\n        through {}", shown(other, at));
    }
    Some(text)
}

fn first_difference(one: Option<&(u8, Vec<u8>)>, other: Option<&(u8, Vec<u8>)>) -> usize {
    let (Some((_, one)), Some((_, other))) = (one, other) else {
        return 0;
    };
    let pairs = one.iter().zip(other);
    pairs.take_while(|(a, b)| a == b).count()
}

/// A packet's number and length, and its bytes around `at` as text and in hexadecimal.
fn shown(packet: Option<&(u8, Vec<u8>)>, at: usize) -> String {
    let Some((sequence, payload)) = packet else {
        return "nothing".to_owned();
    };
    let start = at.saturating_sub(16).min(payload.len());
    let window = &payload[start..payload.len().min(start + SHOWN_BYTES)];
    let mut text = format!("number {sequence}, {} bytes, from {start}: ", payload.len());
    for &byte in window {
        let readable = byte == b' ' || byte.is_ascii_graphic();
        text.push(if readable { char::from(byte) } else { '.' });
    }
    text.push_str(" |");
    for byte in window {
        let _ = write!(text, " {byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use remora_wire::Capabilities;

    use super::super::case::Case;
    use super::*;

    fn exchange(bytes: &[u8]) -> Exchange {
        Exchange {
            what: "query",
            bytes: bytes.to_vec(),
            code: 0,
            failure: None,
            outcome: "",
            capabilities: Capabilities::DEPRECATE_EOF,
        }
    }

    fn problems(numbered: bool, direct: &[&[u8]], through: &[&[u8]]) -> Vec<String> {
        let case = Case::parse("a", "SELECT 1;").unwrap();
        let place = Place {
            case: "a",
            mode: "b",
            step: &case.steps[0],
        };
        let all = |side: &[&[u8]]| side.iter().map(|bytes| exchange(bytes)).collect::<Vec<_>>();
        let mut report = Report::default();
        report.compare(place, numbered, &all(direct), &all(through));
        report.problems
    }

    #[test]
    fn each_difference_is_found_and_shown() {
        let ok: &[u8] = b"\x01\0\0\x01\x00";
        let other: &[u8] = b"\x01\0\0\x01\xfe";
        let renumbered: &[u8] = b"\x01\0\0\x02\x00";
        assert_eq!(problems(true, &[ok], &[ok, ok]), Vec::<String>::new());
        assert_eq!(problems(false, &[ok], &[renumbered]), Vec::<String>::new());
        assert_eq!(problems(true, &[ok], &[renumbered]).len(), 1);
        assert_eq!(problems(true, &[ok, ok], &[ok]).len(), 1);
        assert_eq!(problems(true, &[ok], &[ok, other]).len(), 1);
        let both = problems(true, &[ok, ok], &[other, other]);
        assert_eq!(both.len(), 2);
        assert!(
            both[0].contains("a.sql:1 [b]") && both[0].contains(" fe"),
            "{}",
            both[0]
        );
        assert_eq!(problems(true, &[ok], &[&[ok, ok].concat()]).len(), 1);
    }
}
