//! What is measured while statements are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest duration that is told apart, microseconds: six hours.
const DURATION_US_MAX: u64 = 6 * 3_600 * 1_000_000;

/// Durations, microseconds, to three digits.
#[derive(Debug, Clone)]
pub struct Durations {
    histogram: Histogram<u64>,
}

impl Durations {
    /// None yet.
    pub fn new() -> Durations {
        Durations::with_digits(3)
    }

    fn with_digits(digits: u8) -> Durations {
        let histogram = Histogram::new_with_bounds(1, DURATION_US_MAX, digits)
            .unwrap_or_else(|_| unreachable!("constant bounds"));
        Durations { histogram }
    }

    /// Adds one.
    pub fn record(&mut self, duration: Duration) {
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(DURATION_US_MAX);
        self.histogram.saturating_record(microseconds.max(1));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// What `percent` of all don't exceed, milliseconds.
    #[allow(clippy::cast_precision_loss)]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.histogram.value_at_percentile(percent) as f64 / 1e3
    }

    /// The mean, milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.histogram.mean() / 1e3
    }

    /// The longest, milliseconds.
    #[allow(clippy::cast_precision_loss)]
    pub fn max_ms(&self) -> f64 {
        self.histogram.max() as f64 / 1e3
    }
}

impl Default for Durations {
    fn default() -> Durations {
        Durations::new()
    }
}

/// A statement that was answered, or was to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// When the answer was there, since the turn's beginning.
    pub(super) answered: Duration,
    /// From sending it to the answer.
    pub(super) latency: Duration,
    /// From when it was due to the answer; `None` where nothing is due.
    pub(super) from_due: Option<Duration>,
    /// From when it was due to sending it.
    pub(super) lag: Option<Duration>,
    pub(super) failed: bool,
    pub(super) is_read: bool,
}

/// A second of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// From 0.
    pub second: u64,
    /// Answers in it, errors among them.
    pub queries: u64,
    /// 95th percentile of the latency from sending, milliseconds.
    pub p95_ms: f64,
    /// Errors among the answers.
    pub errors: u64,
}

#[derive(Debug)]
struct OpenSecond {
    queries: u64,
    errors: u64,
    latencies: Durations,
}

/// What a turn has measured so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) queries: u64,
    pub(super) reads: u64,
    pub(super) errors: u64,
    pub(super) latencies: Durations,
    pub(super) from_due: Durations,
    pub(super) lag: Durations,
    open: BTreeMap<u64, OpenSecond>,
    seconds: BTreeMap<u64, Second>,
}

/// Samples come at most so late, seconds; then a second's percentile is fixed.
const SECONDS_OPEN: u64 = 10;

impl Tally {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.queries += 1;
        self.reads += u64::from(sample.is_read);
        self.errors += u64::from(sample.failed);
        if !sample.failed {
            self.latencies.record(sample.latency);
            if let Some(from_due) = sample.from_due {
                self.from_due.record(from_due);
            }
        }
        if let Some(lag) = sample.lag {
            self.lag.record(lag);
        }
        let second = sample.answered.as_secs();
        if let Some(fixed) = self.seconds.get_mut(&second) {
            fixed.queries += 1;
            fixed.errors += u64::from(sample.failed);
            return;
        }
        let open = self.open.entry(second).or_insert_with(|| OpenSecond {
            queries: 0,
            errors: 0,
            latencies: Durations::with_digits(2),
        });
        open.queries += 1;
        open.errors += u64::from(sample.failed);
        open.latencies.record(sample.latency);
        self.fix_before(second.saturating_sub(SECONDS_OPEN));
    }

    fn fix_before(&mut self, second: u64) {
        while let Some(entry) = self
            .open
            .first_entry()
            .filter(|entry| *entry.key() < second)
        {
            let (second, open) = entry.remove_entry();
            let fixed = Second {
                second,
                queries: open.queries,
                p95_ms: open.latencies.percentile_ms(95.0),
                errors: open.errors,
            };
            self.seconds.insert(second, fixed);
        }
    }

    /// All seconds from the first to the last, also those without an answer.
    pub(super) fn into_seconds(mut self) -> Vec<Second> {
        self.fix_before(u64::MAX);
        let last = self.seconds.keys().next_back().copied();
        let empty = |second| Second {
            second,
            queries: 0,
            p95_ms: 0.0,
            errors: 0,
        };
        let at = |second| {
            self.seconds
                .get(&second)
                .copied()
                .unwrap_or_else(|| empty(second))
        };
        last.map(|last| (0..=last).map(at).collect())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(answered_s: u64, latency_ms: u64, failed: bool) -> Sample {
        Sample {
            answered: Duration::from_secs(answered_s),
            latency: Duration::from_millis(latency_ms),
            from_due: Some(Duration::from_millis(2 * latency_ms)),
            lag: Some(Duration::from_millis(latency_ms)),
            failed,
            is_read: true,
        }
    }

    #[test]
    fn seconds_without_an_answer_are_in_the_series() {
        let mut tally = Tally::default();
        for (second, latency_ms) in [(0, 10), (0, 20), (30, 5), (2, 7)] {
            tally.add(&sample(second, latency_ms, second == 2));
        }
        assert_eq!((tally.queries, tally.errors), (4, 1));
        assert!((tally.latencies.max_ms() - 20.0).abs() < 0.1);
        assert!((tally.from_due.max_ms() - 40.0).abs() < 0.1);
        let seconds = tally.into_seconds();
        assert_eq!(seconds.len(), 31);
        assert_eq!(
            (seconds[0].queries, seconds[1].queries, seconds[2].errors),
            (2, 0, 1)
        );
        assert!((seconds[0].p95_ms - 20.0).abs() < 1.0);
    }
}
