//! Numbers as people read them.

/// Bytes, with a binary unit: `96 MiB`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 1_024.0 && unit + 1 < UNITS.len() {
        scaled /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", short(scaled), UNITS[unit])
}

/// A number with as many digits as say something: `0.25`, `3.4`, `12`, `1,234,567`.
pub(crate) fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size.fract() == 0.0 || size >= 10.0 => return grouped(value),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    // `1.96` was rounded to `2.0`.
    text.strip_suffix(".0")
        .or_else(|| text.strip_suffix(".00"))
        .unwrap_or(&text)
        .to_owned()
}

/// A whole number with a comma at each thousand.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.254, "0.25"),
            (1.96, "2"),
            (3.44, "3.4"),
            (12.6, "13"),
            (1_234_567.0, "1,234,567"),
            (-1_000.0, "-1,000"),
        ] {
            assert_eq!(short(value), expected);
        }
        assert_eq!(bytes(100_663_296.0), "96 MiB");
        assert_eq!(bytes(512.0), "512 bytes");
        assert_eq!(bytes(1_610_612_736.0), "1.5 GiB");
    }
}
