//! What a running sysbench says each second, by the lab's addition to its scripts
//! (`per_second.lua`).

use super::Distribution;

/// What a running sysbench said once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Seconds since its threads began.
    pub at_s: f64,
    /// Seconds that the counts are of.
    pub length_s: f64,
    /// Threads that run.
    pub threads: u64,
    /// Transactions (sysbench's events).
    pub transactions: u64,
    /// Queries that read.
    pub reads: u64,
    /// Queries that write.
    pub writes: u64,
    /// Other queries, such as BEGIN and COMMIT.
    pub others: u64,
    /// Errors that it takes for a part of life.
    pub errors: u64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// 95th percentile of a transaction's latency, milliseconds.
    pub p95_ms: f64,
    /// Latencies of all transactions since its threads began.
    pub latencies: Distribution,
}

impl Second {
    /// Queries of all kinds.
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Queries of all kinds, a second.
    pub fn queries_per_s(&self) -> f64 {
        self.rate(self.queries())
    }

    /// Transactions a second.
    pub fn transactions_per_s(&self) -> f64 {
        self.rate(self.transactions)
    }

    #[allow(clippy::cast_precision_loss)]
    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.length_s.max(1e-9)
    }

    fn parse(line: &str) -> Option<Second> {
        let words: Vec<&str> = line
            .strip_prefix("lab second ")?
            .split_whitespace()
            .collect();
        let float = |index: usize| words.get(index)?.parse::<f64>().ok();
        let count = |index: usize| words.get(index)?.parse::<u64>().ok();
        Some(Second {
            at_s: float(0)?,
            length_s: float(1)?,
            threads: count(2)?,
            transactions: count(3)?,
            reads: count(4)?,
            writes: count(5)?,
            others: count(6)?,
            errors: count(7)?,
            reconnects: count(8)?,
            p95_ms: float(9)?,
            latencies: Distribution::default(),
        })
    }
}

/// Puts seconds together from the lines that sysbench writes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The end of what came, not yet a whole line.
    partial: String,
    current: Option<Second>,
}

impl Reader {
    /// Takes what has come; gives the seconds that are complete, and the first line that tells of
    /// an error.
    pub(super) fn feed(&mut self, text: &str) -> (Vec<Second>, Option<String>) {
        self.partial.push_str(text);
        let lines = std::mem::take(&mut self.partial);
        let (whole, rest) = lines.rsplit_once('\n').unwrap_or(("", &lines));
        rest.clone_into(&mut self.partial);
        let (mut seconds, mut error) = (Vec::new(), None);
        for line in whole.lines() {
            if line.starts_with("FATAL") || line.starts_with("ALERT") {
                error.get_or_insert_with(|| line.to_owned());
            } else if line == "lab end" {
                seconds.extend(self.current.take());
            } else if let Some(second) = Second::parse(line) {
                self.current = Some(second);
            } else if let Some(second) = &mut self.current
                && let Some((ms, count)) = bucket(line)
            {
                second.latencies.add(ms, count);
            }
        }
        (seconds, error)
    }
}

/// From `       0.321 |****      12`.
fn bucket(line: &str) -> Option<(f64, u64)> {
    let (value, rest) = line.split_once('|')?;
    let count = rest.split_whitespace().next_back()?;
    Some((value.trim().parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Threads started!\n\n\
        lab second 1.000200 1.000200 4 100 1400 0 200 3 0 2.350000\n       \
        value  ------------- distribution ------------- count\n       \
        1.000 |****************************************     60\n       \
        2.500 |**************************                   40\n\
        lab end\n";

    #[test]
    fn a_second_is_read_from_pieces_of_text() {
        for cut in 0..TEXT.len() {
            let mut reader = Reader::default();
            let (mut seconds, error) = reader.feed(&TEXT[..cut]);
            assert_eq!(error, None);
            seconds.extend(reader.feed(&TEXT[cut..]).0);
            let [second] = seconds.as_slice() else {
                panic!("cut at {cut}: {seconds:?}")
            };
            assert_eq!((second.transactions, second.queries()), (100, 1_600));
            assert_eq!((second.threads, second.errors), (4, 3));
            assert_eq!(second.latencies.count(), 100);
            assert!((second.latencies.percentile_ms(95.0) - 2.5).abs() < 1e-9);
        }
    }

    #[test]
    fn an_error_is_noticed() {
        let (seconds, error) = Reader::default().feed("FATAL: unable to connect\n");
        assert!(seconds.is_empty());
        assert_eq!(error.as_deref(), Some("FATAL: unable to connect"));
    }
}
