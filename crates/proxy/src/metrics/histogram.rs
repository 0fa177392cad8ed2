//! A histogram of durations that costs three additions to count into.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::single_writer::add;

/// How many buckets there are: the first ends at a microsecond, each next one at twice the time,
/// the last one is open.
pub const BUCKETS: usize = 26;

/// Durations, counted in buckets that double. Only one thread may count.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            nanoseconds: AtomicU64::new(0),
        }
    }
}

/// The upper bound of a bucket in seconds; infinite for the last.
pub fn bucket_bound_seconds(bucket: usize) -> f64 {
    if bucket + 1 >= BUCKETS {
        return f64::INFINITY;
    }
    Duration::from_micros(1 << bucket).as_secs_f64()
}

/// A duration in nanoseconds; no more than 64 bits hold. In 64 bits throughout: dividing longer
/// numbers takes as long as all else that is counted of a hit.
pub fn nanoseconds(took: Duration) -> u64 {
    took.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(took.subsec_nanos()))
}

/// The bucket that a duration belongs to: the first whose bound is not below it.
pub fn bucket_of(took: Duration) -> usize {
    let microseconds = nanoseconds(took).div_ceil(1_000);
    let bucket = microseconds.max(1).next_power_of_two().ilog2() as usize;
    bucket.min(BUCKETS - 1)
}

impl Histogram {
    /// Something took so long.
    pub fn observe(&self, took: Duration) {
        add(&self.buckets[bucket_of(took)], 1);
        add(&self.nanoseconds, nanoseconds(took));
    }
}

/// The sum of several histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistogramTotals {
    /// Counts by bucket.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations.
    pub seconds: f64,
}

impl HistogramTotals {
    /// Adds what a histogram has counted.
    pub fn add(&mut self, histogram: &Histogram) {
        for (total, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *total += bucket.load(Relaxed);
        }
        self.seconds += Duration::from_nanos(histogram.nanoseconds.load(Relaxed)).as_secs_f64();
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What was counted after `before`, which is an older sum of the same histograms.
    #[must_use]
    pub fn less(&self, before: &HistogramTotals) -> HistogramTotals {
        let bucket = |bucket| {
            let (now, then): (u64, u64) = (self.buckets[bucket], before.buckets[bucket]);
            now.saturating_sub(then)
        };
        HistogramTotals {
            buckets: std::array::from_fn(bucket),
            seconds: (self.seconds - before.seconds).max(0.0),
        }
    }

    /// The duration that a share of them (0 to 1) does not exceed, as Prometheus'
    /// `histogram_quantile` estimates it: evenly spread within its bucket, and the last bound for
    /// what lies behind. None if nothing was counted.
    pub fn quantile_seconds(&self, share: f64) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)]
        let float = |count: u64| count as f64;
        let rank = share * float(self.count());
        let mut below = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            if count > 0 && float(below + count) >= rank {
                let lower = bucket.checked_sub(1).map_or(0.0, bucket_bound_seconds);
                let upper = bucket_bound_seconds(bucket.min(BUCKETS - 2));
                let part = (rank - float(below)).max(0.0) / float(count);
                return Some(lower + (upper - lower).max(0.0) * part);
            }
            below += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        for nanoseconds in [
            0,
            1,
            999,
            1_000,
            1_001,
            2_000,
            2_001,
            1_000_000,
            16_777_216_000,
        ] {
            let took = Duration::from_nanos(nanoseconds);
            let bucket = bucket_of(took);
            assert!(
                took.as_secs_f64() <= bucket_bound_seconds(bucket),
                "{took:?}"
            );
            assert!(
                bucket == 0 || took.as_secs_f64() > bucket_bound_seconds(bucket - 1),
                "{took:?}"
            );
        }
        assert_eq!(bucket_of(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn totals_add_up() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.observe(Duration::from_millis(3));
        other.observe(Duration::from_millis(4));
        other.observe(Duration::from_secs(100));
        let mut totals = HistogramTotals::default();
        totals.add(&one);
        totals.add(&other);
        assert_eq!(totals.count(), 3);
        assert!((totals.seconds - 100.007).abs() < 1e-9);
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_that_holds_it() {
        assert_eq!(HistogramTotals::default().quantile_seconds(0.5), None);
        let histogram = Histogram::default();
        for _ in 0..99 {
            histogram.observe(Duration::from_micros(3));
        }
        let mut before = HistogramTotals::default();
        before.add(&histogram);
        histogram.observe(Duration::from_secs(100));
        let mut totals = HistogramTotals::default();
        totals.add(&histogram);
        let median = totals.quantile_seconds(0.5).unwrap();
        assert!((2e-6..=4e-6).contains(&median), "{median}");
        let last_bound = bucket_bound_seconds(BUCKETS - 2);
        assert_eq!(totals.quantile_seconds(1.0), Some(last_bound));
        let later = totals.less(&before);
        assert_eq!(
            (later.count(), later.quantile_seconds(0.0)),
            (1, Some(last_bound))
        );
    }
}
