//! Plain-text tables.

use std::fmt;

/// A table: the first column is aligned to the left, the others to the right.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Table {
        Table {
            rows: vec![heads.iter().map(|&head| head.to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, fields: impl IntoIterator<Item = T>) {
        self.rows.push(fields.into_iter().map(Into::into).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let lengths = self.rows.iter().filter_map(|row| row.get(column));
            lengths
                .map(|field| field.chars().count())
                .max()
                .unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            let fields = row.iter().zip(&widths).enumerate();
            let padded: Vec<String> = fields
                .map(|(column, (field, &width))| match column {
                    0 => format!("{field:<width$}"),
                    _ => format!("{field:>width$}"),
                })
                .collect();
            writeln!(f, "  {}", padded.join("  ").trim_end())?;
            if number == 0 {
                let length = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
                writeln!(f, "  {}", "─".repeat(length))?;
            }
        }
        Ok(())
    }
}

/// A whole number with commas between groups of three digits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn grouped(number: f64) -> String {
    let digits = (number.max(0.0).round() as u64).to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["arm", "q/s"]);
        table.row(["direct", "1,000"]);
        table.row(["r", "20"]);
        let expected = "  arm       q/s\n  ─────────────\n  direct  1,000\n  r          20\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(999.6), "1,000");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
        assert_eq!(grouped(12.0), "12");
    }
}
