//! What tables for a terminal have in common.

/// Text on one line, no longer than so many characters. A name may hold anything; a terminal should
/// get one line of it.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    let one_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = one_line.clone().take(chars_max).collect();
    if one_line.count() > chars_max {
        short.pop();
        short.push('…');
    }
    short
}

/// A number with three digits, if it is below a thousand, and a unit.
pub(crate) fn three_digits(number: f64, unit: &str) -> String {
    let digits = if number < 10.0 {
        2
    } else {
        usize::from(number < 100.0)
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [(0.0, "0.00 s"), (9.87, "9.87 s"), (98.7, "98.7 s")] {
            assert_eq!(three_digits(number, "s"), text);
        }
        assert_eq!(three_digits(987.4, "s"), "987 s");
    }

    #[test]
    fn text_stays_on_its_line() {
        assert_eq!(shortened("a\nb\tc", 5), "a b c");
        assert_eq!(shortened("abcdef", 5), "abcd…");
        assert_eq!(shortened("äöüäö", 5), "äöüäö");
    }
}
