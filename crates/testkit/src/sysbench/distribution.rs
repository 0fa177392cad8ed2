//! How latencies are distributed, in sysbench's own buckets.

use std::collections::BTreeMap;

/// Latencies by bucket. sysbench has 1,024 of them between a microsecond and 100 s, each 1.8 %
/// above the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// By the bucket's value, microseconds.
    counts: BTreeMap<u64, u64>,
}

impl Distribution {
    /// Adds `count` latencies of `ms` milliseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn add(&mut self, ms: f64, count: u64) {
        // A negative or senseless number becomes 0.
        *self.counts.entry((ms * 1e3).round() as u64).or_default() += count;
    }

    /// What has come since an earlier state of the same distribution.
    #[must_use]
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let left = |(&bucket, &count): (&u64, &u64)| {
            let before = earlier.counts.get(&bucket).copied().unwrap_or_default();
            (count > before).then(|| (bucket, count - before))
        };
        Distribution {
            counts: self.counts.iter().filter_map(left).collect(),
        }
    }

    /// How many latencies.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The mean, milliseconds; 0 for none.
    #[allow(clippy::cast_precision_loss)]
    pub fn mean_ms(&self) -> f64 {
        let sum: f64 = self
            .counts
            .iter()
            .map(|(&bucket, &count)| bucket as f64 * count as f64)
            .sum();
        sum / 1e3 / self.count().max(1) as f64
    }

    /// The latency that `percent` of all don't exceed, milliseconds; 0 for none.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let wanted = ((self.count() as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        for (&bucket, &count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return bucket as f64 / 1e3;
            }
        }
        0.0
    }

    /// The longest, milliseconds; 0 for none.
    pub fn max_ms(&self) -> f64 {
        self.percentile_ms(100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_what_came_since() {
        let mut earlier = Distribution::default();
        earlier.add(500.0, 7);
        let mut now = earlier.clone();
        for ms in 1..=100 {
            now.add(f64::from(ms), 1);
        }
        let since = now.since(&earlier);
        assert_eq!(since.count(), 100);
        assert!((since.percentile_ms(50.0) - 50.0).abs() < 1e-9);
        assert!((since.percentile_ms(99.0) - 99.0).abs() < 1e-9);
        assert!((since.max_ms() - 100.0).abs() < 1e-9);
        assert!((since.mean_ms() - 50.5).abs() < 1e-9);
        assert!((Distribution::default().max_ms() - 0.0).abs() < 1e-9);
    }
}
