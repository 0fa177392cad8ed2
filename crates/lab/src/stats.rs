//! Medians and percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The median; of an even number of values, the mean of the middle two. 0 for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => 0.0,
        Some(&upper) if sorted.len() % 2 == 1 => upper,
        Some(&upper) => f64::midpoint(sorted[middle - 1], upper),
    }
}

/// Latencies, in microseconds, up to a minute, to three digits.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

const LATENCY_US_MAX: u64 = 60_000_000;

impl Latencies {
    /// None yet.
    pub fn new() -> Latencies {
        // The bounds are constants that the histogram accepts; anything else would be one that
        // grows.
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
            .unwrap_or_else(|_| unreachable!("constant bounds"));
        Latencies { histogram }
    }

    /// Adds one; longer ones count as a minute.
    pub fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX);
        self.histogram.saturating_record(microseconds.max(1));
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Latencies) {
        // Both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean, milliseconds; 0 for none.
    pub fn mean_ms(&self) -> f64 {
        self.histogram.mean() / 1_000.0
    }

    /// The latency that `percent` of all don't exceed, milliseconds.
    #[allow(clippy::cast_precision_loss)]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.histogram.value_at_percentile(percent) as f64 / 1_000.0
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!((median(&[]) - 0.0).abs() < 1e-9);
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn percentiles_of_joined_latencies() {
        let (mut a, mut b) = (Latencies::new(), Latencies::new());
        for ms in 1..=50 {
            a.record(Duration::from_millis(ms));
            b.record(Duration::from_millis(50 + ms));
        }
        a.add(&b);
        assert_eq!(a.count(), 100);
        assert!((a.percentile_ms(95.0) - 95.0).abs() < 0.2);
    }
}
