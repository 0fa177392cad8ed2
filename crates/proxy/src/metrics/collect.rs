//! From counters and states to the text that Prometheus reads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use remora_engine::reason::{Limit, NotVerified, Outcome, StateOutcome, TraceDropped, Verdict};

use super::catalogue::{self as metric, Kind, Metric};
use super::histogram::{BUCKETS, HistogramTotals, bucket_bound_seconds};
use super::{Caching, Histogram, Metrics, Observation, Reachability, WorkerMetrics};

/// The media type of what [`encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics in the `OpenMetrics` text format.
pub fn encode(
    metrics: &Arc<Metrics>,
    observation: Observation,
    uptime: Duration,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    let scrape = Scrape {
        metrics: Arc::clone(metrics),
        observation,
        uptime,
    };
    registry.register_collector(Box::new(scrape));
    let mut text = String::with_capacity(16 << 10);
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// What one scrape shows.
#[derive(Debug)]
struct Scrape {
    metrics: Arc<Metrics>,
    observation: Observation,
    uptime: Duration,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page { encoder };
        self.process(&mut page)?;
        self.statements(&mut page)?;
        self.connections(&mut page)?;
        self.store(&mut page)?;
        self.follower(&mut page)
    }
}

impl Scrape {
    fn process(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge_by(metric::BUILD, [([env!("CARGO_PKG_VERSION")], 1)])?;
        page.gauge_seconds(metric::UPTIME, self.uptime)?;
        match resident_bytes() {
            Some(bytes) => page.gauge(metric::RESIDENT, bytes),
            None => Ok(()),
        }
    }

    fn statements(&self, page: &mut Page<'_>) -> fmt::Result {
        let total = |outcome| self.sum(|worker| worker.outcome(outcome));
        let counted = Outcome::all()
            .iter()
            .map(|outcome| (outcome, total(*outcome)));
        // An outcome that has never happened is left out: there are more than a hundred.
        let happened = counted.filter(|(outcome, count)| *count > 0 || outcome.reason().is_empty());
        page.counters(
            metric::STATEMENTS,
            happened.map(|(outcome, count)| ([outcome.as_str(), outcome.reason()], count)),
        )?;
        let misses = Outcome::all().iter().filter(|outcome| outcome.is_miss());
        let misses = misses.map(|outcome| total(*outcome));
        page.counter(metric::HITS, total(Outcome::Hit))?;
        page.counter(metric::MISSES, misses.sum())?;
        page.counter(metric::HIT_BYTES, self.sum(WorkerMetrics::hit_bytes))?;
        page.histogram(
            metric::HIT_SECONDS,
            &self.histogram(|worker| &worker.hit_seconds),
        )?;
        page.histogram(
            metric::MISS_SECONDS,
            &self.histogram(|worker| &worker.miss_seconds),
        )
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.observation;
        let rare = &self.metrics.rare;
        let caching = match state.caching {
            Caching::On => ([""], 1),
            Caching::Off(reason) => ([reason.as_str()], 0),
        };
        page.gauge_by(metric::CACHING, [caching])?;
        page.gauge(
            metric::UPSTREAM_UP,
            u64::from(state.upstream == Reachability::Reachable),
        )?;
        page.counter(
            metric::UPSTREAM_FAILURES,
            load(&rare.upstream_connect_failures),
        )?;
        let statements = state.statements.unwrap_or_default();
        page.gauge(metric::STATEMENTS_RUNNING, statements.running)?;
        page.gauge(metric::STATEMENTS_WAITING, statements.waiting)?;
        page.counter(metric::STATEMENT_WAITS, load(&rare.statement_waits))?;
        let waited = Duration::from_micros(load(&rare.statement_wait_us));
        page.counter_seconds(metric::STATEMENT_WAIT_TIME, waited)?;
        page.gauge(metric::CONNECTIONS, state.connections)?;
        page.counter(
            metric::CONNECTIONS_ACCEPTED,
            load(&rare.connections_accepted),
        )?;
        page.counter(metric::PROTOCOL_ERRORS, load(&rare.protocol_errors))?;
        page.counter(
            metric::CLIENT_BYTES_IN,
            self.sum(WorkerMetrics::client_bytes_in),
        )?;
        page.counter(
            metric::CLIENT_BYTES_OUT,
            self.sum(WorkerMetrics::client_bytes_out),
        )?;
        page.gauge(metric::FINGERPRINTS, state.fingerprints)?;
        page.gauge(metric::DIGESTS, state.digests)?;
        let given_up = Verdict::GivenUp.as_str();
        let verdicts = Verdict::ALL.iter().filter(|it| **it != Verdict::GivenUp);
        let verdicts = verdicts.map(|it| ([it.as_str(), ""], rare.verdict(*it)));
        let reasons = NotVerified::ALL.iter();
        let reasons = reasons.map(|why| ([given_up, why.as_str()], rare.not_verified(*why)));
        page.counters(metric::VERIFICATIONS, verdicts.chain(reasons))?;
        page.gauge(metric::DIGESTS_OFF, state.digests_off)?;
        page.counter(metric::TRACES, load(&rare.traces))?;
        let dropped = TraceDropped::ALL.iter();
        let dropped = dropped.map(|why| ([why.as_str()], rare.traces_dropped(*why)));
        page.counters(metric::TRACES_DROPPED, dropped)?;
        let limits = Limit::ALL.iter().map(|limit| {
            let elsewhere = state.limits.iter().filter(|(other, _)| other == limit);
            let elsewhere: u64 = elsewhere.map(|(_, count)| count).sum();
            ([limit.as_str()], rare.limit(*limit) + elsewhere)
        });
        page.counters(metric::LIMITS, limits)?;
        page.gauge(metric::RULES, state.rules.count)?;
        page.counters(metric::RULE_DECISIONS, by_reason(&state.rules.decisions))?;
        page.counters(metric::RULES_RELOADS, by_reason(&state.rules.reloads))
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        let store = &self.observation.store;
        let outcome = store.restored_outcome.map(StateOutcome::as_str);
        page.gauge_by(metric::STATE_FILE, outcome.map(|outcome| ([outcome], 1)))?;
        page.gauge(metric::STATE_RESULTS, store.restored)?;
        page.gauge(metric::STORE_ENTRIES, store.entries)?;
        page.gauge(metric::STORE_BYTES, store.bytes)?;
        page.gauge(metric::STORE_BYTES_MAX, store.bytes_max)?;
        page.counters(metric::EVICTIONS, by_reason(&store.evictions))?;
        page.counters(metric::INVALIDATIONS, by_reason(&store.invalidations))?;
        page.gauge(metric::FILLS_IN_FLIGHT, store.fills_in_flight)?;
        page.gauge(metric::FILL_WAITERS, store.fill_waiters)?;
        page.counter(metric::FILL_WAITS, load(&self.metrics.rare.fill_waits))
    }

    fn follower(&self, page: &mut Page<'_>) -> fmt::Result {
        let follower = &self.observation.follower;
        if let Some(lag) = follower.lag {
            page.gauge_seconds(metric::LAG, lag)?;
        }
        page.gauge_seconds(metric::CATCH_UP, follower.catch_up)?;
        page.gauge_seconds(metric::CATCH_UP_MAX, follower.catch_up_max)?;
        page.gauge(metric::APPLIED_FILE, follower.applied_file)?;
        page.gauge(metric::APPLIED_OFFSET, follower.applied_offset)?;
        page.counter(metric::FOLLOWER_EVENTS, follower.events)?;
        page.counter(metric::FOLLOWER_BYTES, follower.bytes)?;
        page.counter(metric::FOLLOWER_COMMITS, follower.commits)?;
        page.counter(
            metric::COMMITS_OF_EVERYTHING,
            follower.commits_of_everything,
        )?;
        let changes = &follower.table_changes;
        let of_tables = changes.of.iter();
        let of_tables =
            of_tables.map(|(table, count)| ([&table.schema[..], &table.table[..]], *count));
        let of_others = (changes.others > 0).then_some((["", ""], changes.others));
        page.counters(metric::TABLE_CHANGES, of_tables.chain(of_others))?;
        page.counter(metric::FOLLOWER_CONNECTIONS, follower.connections)?;
        page.counters(metric::FORGOTTEN, by_reason(&follower.forgotten))?;
        page.counter(metric::WATERMARK_QUERIES, follower.watermark_queries)?;
        page.counter(metric::LOG_END_QUERIES, follower.log_end_queries)?;
        if let Some(age) = follower.check_age {
            page.gauge_seconds(metric::CHECK_AGE, age)?;
        }
        page.counter(metric::CHECKS, follower.checks)?;
        page.counter(metric::CHECKS_FAILED, follower.checks_failed)?;
        let findings = follower.findings.iter();
        page.gauge_by(
            metric::FINDINGS,
            findings.map(|(subject, _)| ([*subject], 1)),
        )?;
        page.gauge(metric::FENCE_BATCHES, follower.fence_batches)?;
        page.counter(metric::CATALOGUE_LOADS, self.observation.catalogue_loads)?;
        page.counter(
            metric::CATALOGUE_BATCHES,
            self.observation.catalogue_batches,
        )?;
        page.gauge(metric::CATALOGUE_TABLES, self.observation.catalogue_tables)?;
        page.gauge(metric::SHAPE_TABLES, self.observation.shape_tables)?;
        page.gauge(metric::SHAPES, self.observation.shapes)
    }

    fn sum(&self, of: impl Fn(&WorkerMetrics) -> u64) -> u64 {
        self.metrics.workers().iter().map(|worker| of(worker)).sum()
    }

    fn histogram(&self, of: impl Fn(&WorkerMetrics) -> &Histogram) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        for worker in self.metrics.workers() {
            totals.add(of(worker));
        }
        totals
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

fn by_reason(counts: &[(&'static str, u64)]) -> impl Iterator<Item = ([&'static str; 1], u64)> {
    counts.iter().map(|(reason, count)| ([*reason], *count))
}

/// The process's resident memory, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Writes metrics as they are declared.
struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    fn begin(&mut self, metric: Metric) -> Result<MetricEncoder<'_>, fmt::Error> {
        // The exposition's writer adds `_total` to a counter's name by itself.
        let name = match metric.kind {
            Kind::Counter => metric.name.strip_suffix("_total").unwrap_or(metric.name),
            Kind::Gauge | Kind::Histogram => metric.name,
        };
        let kind = match metric.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        // As the registry does for its own metrics: the sentence ends with a full stop.
        let help = format!("{}.", metric.help);
        self.encoder.encode_descriptor(name, &help, None, kind)
    }

    fn counter(&mut self, metric: Metric, value: u64) -> fmt::Result {
        self.begin(metric)?
            .encode_counter::<NoLabelSet, u64, f64>(&value, None)
    }

    fn counter_seconds(&mut self, metric: Metric, value: Duration) -> fmt::Result {
        self.begin(metric)?
            .encode_counter::<NoLabelSet, f64, f64>(&value.as_secs_f64(), None)
    }

    fn gauge(&mut self, metric: Metric, value: u64) -> fmt::Result {
        self.begin(metric)?.encode_gauge(&value)
    }

    fn gauge_seconds(&mut self, metric: Metric, value: Duration) -> fmt::Result {
        self.begin(metric)?.encode_gauge(&value.as_secs_f64())
    }

    fn counters<'a, const N: usize>(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = ([&'a str; N], u64)>,
    ) -> fmt::Result {
        let mut family = self.begin(metric)?;
        for (labels, value) in values {
            let labels = pairs(metric, labels);
            let mut encoder = family.encode_family(&labels)?;
            encoder.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge_by<const N: usize>(
        &mut self,
        metric: Metric,
        values: impl IntoIterator<Item = ([&'static str; N], u64)>,
    ) -> fmt::Result {
        let mut family = self.begin(metric)?;
        for (labels, value) in values {
            family
                .encode_family(&pairs(metric, labels))?
                .encode_gauge(&value)?;
        }
        Ok(())
    }

    fn histogram(&mut self, metric: Metric, totals: &HistogramTotals) -> fmt::Result {
        let buckets: [(f64, u64); BUCKETS] =
            std::array::from_fn(|bucket| (bucket_bound_seconds(bucket), totals.buckets[bucket]));
        let mut encoder = self.begin(metric)?;
        encoder.encode_histogram::<NoLabelSet>(totals.seconds, totals.count(), &buckets, None)
    }
}

/// The metric's label names with the values at hand.
fn pairs<const N: usize>(metric: Metric, values: [&str; N]) -> Vec<(&'static str, &str)> {
    debug_assert_eq!(metric.labels.len(), N, "{}", metric.name);
    metric.labels.iter().copied().zip(values).collect()
}
