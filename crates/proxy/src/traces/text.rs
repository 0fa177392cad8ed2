//! Traces as a table for a terminal.

use std::fmt::Write as _;

use super::TraceReport;
use crate::terminal::{shortened, three_digits};

/// The longest part of a statement that is shown, characters.
const TEXT_CHARS_MAX: usize = 60;

/// The traces in the order in which they came, with a line for each: what became of it, its time,
/// and where that went.
pub fn table(traces: &[TraceReport]) -> String {
    let mut text = String::from(
        "outcome                          time     bytes  stages, and the statement\n",
    );
    for trace in traces {
        let outcome = trace.reason.as_deref().unwrap_or(&trace.outcome);
        let stages = trace.stages.iter();
        let stages: Vec<String> = stages
            .map(|stage| format!("{} {}", stage.stage, duration(stage.us)))
            .collect();
        let _ = writeln!(
            text,
            "{outcome:<26} {:>10} {:>9}  {}",
            duration(trace.us),
            trace.bytes,
            stages.join(", ")
        );
        let statement = trace.text.as_deref().unwrap_or("(not readable)");
        let digest = trace.digest.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{:>47}  {digest}  {}",
            "",
            shortened(statement, TEXT_CHARS_MAX)
        );
    }
    if traces.is_empty() {
        text.push_str("no statement was traced yet: observe.trace_sample is the share that is\n");
    }
    text
}

fn duration(microseconds: f64) -> String {
    let (number, unit) = match microseconds {
        small if small < 1e3 => (small, "µs"),
        middle if middle < 1e6 => (middle / 1e3, "ms"),
        large => (large / 1e6, "s"),
    };
    three_digits(number, unit)
}

#[cfg(test)]
mod tests {
    use super::super::StageReport;
    use super::*;

    #[test]
    fn a_trace_has_two_lines() {
        let trace = TraceReport {
            at_ms: 0,
            command: "query".to_owned(),
            digest: Some("0123456789abcdef".to_owned()),
            text: Some("SELECT\n?".repeat(40)),
            account: None,
            schema: None,
            outcome: "hit".to_owned(),
            reason: None,
            error: None,
            bytes: 7,
            traceparent: None,
            us: 1_234.0,
            stages: vec![StageReport {
                stage: "key".to_owned(),
                us: 0.5,
            }],
        };
        let table = table(&[trace]);
        assert_eq!(table.lines().count(), 3, "{table}");
        assert!(table.contains("1.23 ms") && table.contains("key 0.50 µs"));
        assert!(table.contains('…'));
    }
}
