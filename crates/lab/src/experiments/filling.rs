//! Statements that fill the tables of the lab's own workloads. Any server takes them.

use remora_testkit::servers::numbers;

/// Rows that one statement makes: so many that it pays, and so few that progress is seen.
const CHUNK_ROWS: u32 = 10_000;

/// The ranges that rows from 1 to `last` are made in, both ends included.
pub(super) fn chunks(last: u32) -> impl Iterator<Item = (u32, u32)> {
    let firsts = (0..last).step_by(CHUNK_ROWS as usize);
    firsts.map(move |before| {
        let end = before.saturating_add(CHUNK_ROWS).min(last);
        (before + 1, end)
    })
}

/// Statements that insert so many rows. `values` are those of a row, in which `n` stands for its
/// number, from 1 on.
pub(super) fn fill(table: &str, values: &str, rows: u32) -> Vec<String> {
    let chunk = |(first, last): (u32, u32)| {
        let (before, count) = (first - 1, last - first + 1);
        format!(
            "INSERT INTO {table} SELECT {values} FROM (SELECT {before} + seq AS n FROM {}) AS made",
            numbers(count)
        )
    };
    chunks(rows).map(chunk).collect()
}

/// A text of so many bytes, its own for each row.
pub(super) fn text(bytes: u32) -> String {
    format!("RPAD(MD5(n), {bytes}, MD5(n + 1))")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_every_row_once() {
        let all: Vec<(u32, u32)> = chunks(25_000).collect();
        assert_eq!(all, [(1, 10_000), (10_001, 20_000), (20_001, 25_000)]);
        assert_eq!(chunks(10_000).count(), 1);
        assert_eq!(chunks(0).count(), 0);
    }
}
