//! The last ten minutes, second by second, so that a page that is opened shows what was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use remora_engine::reason::Outcome;
use serde::Serialize;

use crate::metrics::{
    Caching, Histogram, HistogramTotals, Metrics, Observation, ReasonCounts, WorkerMetrics,
};

/// How often a sample is taken.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// How many are kept: ten minutes of them, some 100 KiB.
const SAMPLES_MAX: usize = 600;

/// What happened between two looks at the counters, and the states at the second.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub(super) struct Sample {
    /// From 1, one more each time.
    number: u64,
    /// Milliseconds since 1970.
    at_ms: u64,
    /// The time between the two looks.
    over_ms: u64,
    hits: u64,
    misses: u64,
    writes: u64,
    /// Statements that were not looked up in memory and write nothing.
    passed: u64,
    hit_p50_us: Option<f64>,
    hit_p99_us: Option<f64>,
    miss_p50_us: Option<f64>,
    miss_p99_us: Option<f64>,
    store_bytes: u64,
    entries: u64,
    /// Results that made room.
    evicted: u64,
    /// Results that were dropped because they were outdated.
    invalidated: u64,
    lag_ms: Option<u64>,
    caching: bool,
    connections: u64,
    /// Statements at the server, and those that wait for their turn, where they are limited.
    statements_running: Option<u64>,
    statements_waiting: Option<u64>,
    /// Times that everything was forgotten.
    forgotten: u64,
}

/// The counters at one look, all since the start.
#[derive(Debug, Clone, Default)]
struct Totals {
    hits: u64,
    misses: u64,
    writes: u64,
    passed: u64,
    hit_seconds: HistogramTotals,
    miss_seconds: HistogramTotals,
    evicted: u64,
    invalidated: u64,
    forgotten: u64,
}

impl Totals {
    fn of(metrics: &Metrics, state: &Observation) -> Totals {
        let histogram = |of: fn(&WorkerMetrics) -> &Histogram| {
            let mut totals = HistogramTotals::default();
            for worker in metrics.workers() {
                totals.add(of(worker));
            }
            totals
        };
        let mut totals = Totals {
            hit_seconds: histogram(|worker| &worker.hit_seconds),
            miss_seconds: histogram(|worker| &worker.miss_seconds),
            evicted: sum(&state.store.evictions),
            invalidated: sum(&state.store.invalidations),
            forgotten: sum(&state.follower.forgotten),
            ..Totals::default()
        };
        for outcome in Outcome::all() {
            let of_workers = metrics.workers().iter();
            let count: u64 = of_workers.map(|worker| worker.outcome(*outcome)).sum();
            match outcome {
                Outcome::Hit => totals.hits += count,
                Outcome::Write => totals.writes += count,
                outcome if outcome.is_miss() => totals.misses += count,
                _ => totals.passed += count,
            }
        }
        totals
    }
}

fn sum(counts: &ReasonCounts) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

/// A quantile in microseconds, to a tenth.
fn microseconds(totals: &HistogramTotals, quantile: f64) -> Option<f64> {
    let seconds = totals.quantile_seconds(quantile)?;
    Some((seconds * 1e7).round() / 10.0)
}

/// Milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, whole_ms)
}

pub(super) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The samples, the oldest first.
#[derive(Debug)]
pub(super) struct History {
    samples: VecDeque<Sample>,
    /// How many were ever taken: the number of the last.
    taken: u64,
    before: Totals,
    before_at: Instant,
}

impl History {
    /// Begins to count now.
    pub(super) fn new(metrics: &Metrics, state: &Observation) -> History {
        History {
            samples: VecDeque::new(),
            taken: 0,
            before: Totals::of(metrics, state),
            before_at: Instant::now(),
        }
    }

    /// Takes a sample; the oldest leaves if there are too many.
    pub(super) fn take(&mut self, metrics: &Arc<Metrics>, state: &Observation) {
        let now = Totals::of(metrics, state);
        let at = Instant::now();
        let over = at.saturating_duration_since(self.before_at);
        self.taken += 1;
        let sample = sample(self.taken, over, &now, &self.before, state);
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.before = now;
        self.before_at = at;
    }

    /// Those with a greater number.
    pub(super) fn after(&self, number: u64) -> Vec<Sample> {
        let later = self.samples.iter().filter(|sample| sample.number > number);
        later.cloned().collect()
    }
}

fn sample(
    number: u64,
    over: Duration,
    now: &Totals,
    before: &Totals,
    state: &Observation,
) -> Sample {
    // Counters of other threads are read one after the other: a sum may seem to go back by what
    // happened between.
    let more = |of: fn(&Totals) -> u64| of(now).saturating_sub(of(before));
    let hits = now.hit_seconds.less(&before.hit_seconds);
    let misses = now.miss_seconds.less(&before.miss_seconds);
    Sample {
        number,
        at_ms: unix_ms(),
        over_ms: whole_ms(over),
        hits: more(|totals| totals.hits),
        misses: more(|totals| totals.misses),
        writes: more(|totals| totals.writes),
        passed: more(|totals| totals.passed),
        hit_p50_us: microseconds(&hits, 0.5),
        hit_p99_us: microseconds(&hits, 0.99),
        miss_p50_us: microseconds(&misses, 0.5),
        miss_p99_us: microseconds(&misses, 0.99),
        store_bytes: state.store.bytes,
        entries: state.store.entries,
        evicted: more(|totals| totals.evicted),
        invalidated: more(|totals| totals.invalidated),
        lag_ms: state.follower.lag.map(whole_ms),
        caching: state.caching == Caching::On,
        connections: state.connections,
        statements_running: state.statements.map(|statements| statements.running),
        statements_waiting: state.statements.map(|statements| statements.waiting),
        forgotten: more(|totals| totals.forgotten),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{FollowerObservation, Reachability, RulesObservation, StoreObservation};

    fn state() -> Observation {
        Observation {
            caching: Caching::On,
            upstream: Reachability::Reachable,
            statements: None,
            connections: 3,
            fingerprints: 0,
            digests: 0,
            digests_off: 0,
            catalogue_tables: 0,
            shape_tables: 0,
            shapes: 0,
            catalogue_loads: 0,
            catalogue_batches: 0,
            limits: Vec::new(),
            rules: RulesObservation::default(),
            store: StoreObservation::default(),
            follower: FollowerObservation::default(),
        }
    }

    #[test]
    fn a_sample_tells_what_happened_since_the_one_before() {
        let metrics = Metrics::new(1);
        let worker = metrics.worker(0).unwrap();
        worker.count_hit(10, Duration::from_micros(3));
        let mut history = History::new(&metrics, &state());
        worker.count_hit(10, Duration::from_micros(3));
        worker.count_hit(10, Duration::from_micros(3));
        worker.count(Outcome::Write);
        history.take(&metrics, &state());
        history.take(&metrics, &state());
        let samples = history.after(0);
        let [first, second] = &samples[..] else {
            panic!("{samples:?}")
        };
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!((first.hits, first.misses, first.writes), (2, 0, 1));
        assert_eq!((second.hits, second.writes), (0, 0));
        let p99 = first.hit_p99_us.unwrap();
        assert!((2.0..=4.0).contains(&p99), "{p99}");
        assert_eq!(second.hit_p99_us, None);
        assert_eq!(history.after(1), samples[1..]);
        assert_eq!(history.after(2), []);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let metrics = Metrics::new(1);
        let mut history = History::new(&metrics, &state());
        for _ in 0..SAMPLES_MAX + 5 {
            history.take(&metrics, &state());
        }
        let samples = history.after(0);
        assert_eq!((samples.len(), samples[0].number), (SAMPLES_MAX, 6));
    }
}
