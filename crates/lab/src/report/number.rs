//! Figures as people write them.

use crate::statistics::bootstrap::{Estimate, Interval};
use crate::table::grouped;

/// With three digits that count, or all of them before the point: `1,234`, `56.7`, `0.0123`.
pub(super) fn plain(value: f64) -> String {
    if !value.is_finite() {
        return if value > 0.0 { "∞" } else { "–" }.to_owned();
    }
    let size = value.abs();
    let digits = match size {
        _ if size >= 100.0 => {
            let sign = if value < 0.0 { "−" } else { "" };
            return format!("{sign}{}", grouped(size));
        }
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.1 => 3,
        _ if size >= 0.01 => 4,
        _ if size < 1e-9 => 0,
        _ => return scientific(value),
    };
    format!("{value:.digits$}").replace('-', "−")
}

/// `3.2·10⁻⁵`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let raised: String = exponent
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            _ => digit
                .to_digit(10)
                .and_then(|value| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(value as usize))
                .unwrap_or(digit),
        })
        .collect();
    format!("{}·10{raised}", digits.replace('-', "−"))
}

/// As [`plain`], but without zeros at its end: for places on an axis.
pub(super) fn place(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 {
        return grouped(value);
    }
    let text = plain(value);
    if text.contains('.') && !text.contains('·') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A place with its unit, in one line: `50 %`, `64`.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() {
        place(value)
    } else {
        format!("{}\u{a0}{unit}", place(value))
    }
}

/// `1.25 ×`.
pub(super) fn ratio(value: f64) -> String {
    format!("{}\u{a0}×", factor(value))
}

/// `1.25`; three digits below 0.1.
pub(super) fn factor(value: f64) -> String {
    match value.abs() {
        size if size < 0.1 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        _ => plain(value),
    }
}

/// `1.25 × (1.20 to 1.30)`, or `1.25 × (no interval)`.
pub(super) fn ratio_estimate(found: Estimate) -> String {
    match found.interval {
        Some(ends) => format!("{} ({})", ratio(found.value), interval(ends, factor)),
        None => format!("{} (no interval)", ratio(found.value)),
    }
}

/// `1.2 to 1.4`.
pub(super) fn interval(interval: Interval, show: impl Fn(f64) -> String) -> String {
    format!("{} to {}", show(interval.low), show(interval.high))
}

/// `1.3 (1.2 to 1.4)`, or `1.3 (no interval)`.
pub(super) fn estimate(estimate: Estimate, show: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some(ends) => format!("{} ({})", show(estimate.value), interval(ends, &show)),
        None => format!("{} (no interval)", show(estimate.value)),
    }
}

/// `1 point`, `2 points`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    let what = if number == 1 { one } else { many };
    format!("{number} {what}")
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_count() {
        assert_eq!(plain(12_345.6), "12,346");
        assert_eq!(plain(56.78), "56.8");
        assert_eq!(plain(1.234), "1.23");
        assert_eq!(plain(0.1234), "0.123");
        assert_eq!(plain(0.0123), "0.0123");
        assert_eq!(plain(0.000_032), "3.2·10⁻⁵");
        assert_eq!(plain(0.0), "0");
        assert_eq!(plain(-2.5), "−2.50");
        assert_eq!(plain(f64::INFINITY), "∞");
        assert_eq!(ratio(0.98), "0.98\u{a0}×");
        assert_eq!(with_unit(50.0, "%"), "50\u{a0}%");
        assert_eq!(place(1_024.0), "1,024");
        assert_eq!(place(0.5), "0.5");
        assert_eq!(place(57.01), "57");
    }
}
