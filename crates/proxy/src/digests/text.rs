//! Digests as a table for a terminal.

use std::fmt::Write as _;

use super::DigestReport;
use crate::terminal::{shortened, three_digits};

/// What digests are ordered by, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Order {
    /// Time that statements took, from memory and at the server.
    #[default]
    Time,
    /// Statements.
    Calls,
    /// Statements that the server answered.
    Misses,
    /// Time that memory saved.
    Saved,
    /// Results that a change had outdated.
    Outdated,
}

impl Order {
    fn key(self, digest: &DigestReport) -> u64 {
        match self {
            Order::Time => digest.hit_us + digest.miss_us,
            Order::Calls => digest.calls,
            Order::Misses => digest.misses,
            Order::Saved => digest.saved_us,
            Order::Outdated => digest.outdated,
        }
    }
}

/// The longest part of a statement that is shown, characters.
const TEXT_CHARS_MAX: usize = 80;

/// The first `count_max` of the digests that were asked for, in an order, with a line for each.
pub fn table(digests: &[DigestReport], order: Order, count_max: usize) -> String {
    let mut shown: Vec<&DigestReport> = digests.iter().filter(|digest| digest.calls > 0).collect();
    shown.sort_by_key(|digest| std::cmp::Reverse(order.key(digest)));
    let mut text = String::from(
        "digest                 calls   hits    time   saved  miss p99  outdated  mostly not kept because  statement\n",
    );
    for digest in shown.iter().take(count_max) {
        let _ = writeln!(text, "{}", line(digest));
    }
    if shown.is_empty() {
        text.push_str("no statement was counted yet\n");
    } else if shown.len() > count_max {
        let _ = writeln!(text, "and {} more", shown.len() - count_max);
    }
    text
}

fn line(digest: &DigestReport) -> String {
    #[allow(clippy::cast_precision_loss)]
    let hits = 100.0 * digest.hits as f64 / digest.calls.max(1) as f64;
    let reason = digest.refusals.first();
    format!(
        "{:<16} {:>11} {hits:>5.1}% {:>7} {:>7} {:>9} {:>9}  {:<23}  {}",
        digest.digest.as_deref().unwrap_or("-"),
        digest.calls,
        duration(digest.hit_us + digest.miss_us),
        duration(digest.saved_us),
        digest.miss_p99_us.map_or("-".to_owned(), duration),
        digest.outdated,
        reason.map_or("-", |refused| refused.reason.as_str()),
        shortened(
            digest.text.as_deref().unwrap_or("(all others)"),
            TEXT_CHARS_MAX
        ),
    )
}

/// Three digits and a unit.
fn duration(microseconds: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let number = microseconds as f64;
    let (number, unit) = match microseconds {
        0..1_000 => return format!("{microseconds} µs"),
        1_000..1_000_000 => (number / 1e3, "ms"),
        1_000_000..3_600_000_000 => (number / 1e6, "s"),
        _ => (number / 3.6e9, "h"),
    };
    three_digits(number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str, calls: u64, miss_us: u64) -> DigestReport {
        let mut digest = DigestReport::new(None);
        digest.text = Some(text.to_owned());
        (digest.calls, digest.misses, digest.miss_us) = (calls, calls, miss_us);
        digest
    }

    #[test]
    fn the_largest_comes_first_and_what_has_no_room_is_counted() {
        let all = [digest("a", 5, 10), digest("b", 9, 5), digest("c", 1, 20)];
        let order = |order| {
            let table = table(&all, order, 2);
            let lines: Vec<&str> = table.lines().skip(1).collect();
            assert_eq!(lines.last(), Some(&"and 1 more"));
            lines[..2]
                .iter()
                .map(|line| line.rsplit(' ').next().unwrap().to_owned())
                .collect::<String>()
        };
        assert_eq!(order(Order::Calls), "ba");
        assert_eq!(order(Order::Time), "ca");
    }

    #[test]
    fn a_statement_has_one_line_and_not_too_long_a_one() {
        let table = table(&[digest(&"x\n".repeat(200), 1, 1)], Order::Time, 5);
        assert_eq!(table.lines().count(), 2);
        assert!(table.lines().all(|line| line.chars().count() < 190));
        assert!(table.contains('…'));
    }

    #[test]
    fn times_have_three_digits() {
        let times = [0, 999, 1_500, 12_340, 1_234_000, 99_000_000, 7_200_000_000];
        let shown: Vec<String> = times.map(duration).to_vec();
        let expected = [
            "0 µs", "999 µs", "1.50 ms", "12.3 ms", "1.23 s", "99.0 s", "2.00 h",
        ];
        assert_eq!(shown, expected);
    }
}
