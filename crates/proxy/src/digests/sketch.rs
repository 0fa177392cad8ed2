//! How often digests were asked for that have no place of their own: a count-min sketch.
//!
//! Source: Cormode and Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and
//! its Applications", 2005.

use remora_sql::Digest;

use super::WINDOW_MS;

/// Rows; the estimate is the least of one counter in each.
const ROWS: usize = 4;
/// Counters of a row: with `n` calls in a window an estimate is too high by more than `n / 750` in
/// 2 of 100 cases.
const COLUMNS: usize = 2_048;

/// Counts calls by digest in 16 KiB, never too few of them. All counts are halved when a window
/// ends.
#[derive(Debug)]
pub struct Sketch {
    counters: Box<[[u16; COLUMNS]; ROWS]>,
    window_ms: u64,
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch {
            counters: Box::new([[0; COLUMNS]; ROWS]),
            window_ms: 0,
        }
    }
}

impl Sketch {
    /// Counts a call, and gives how many there were at most since about the last window began.
    pub fn add(&mut self, digest: Digest, now_ms: u64) -> u64 {
        if now_ms.saturating_sub(self.window_ms) >= WINDOW_MS {
            self.window_ms = now_ms;
            let counters = self.counters.iter_mut().flatten();
            counters.for_each(|counter| *counter /= 2);
        }
        // A digest's bits are even; each row takes others of them.
        let mut bits = digest.number();
        let mut least = u16::MAX;
        for row in self.counters.iter_mut() {
            #[allow(clippy::cast_possible_truncation)]
            let counter = &mut row[bits as usize % COLUMNS];
            *counter = counter.saturating_add(1);
            least = least.min(*counter);
            bits >>= 64 / ROWS;
        }
        least.into()
    }
}
