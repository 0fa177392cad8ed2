//! What Remora counts, and how it is shown to Prometheus.
//!
//! - [`WorkerMetrics`]: one for each worker, counted on the path of every statement. Each has its
//!   cache lines for itself, so counting never waits for another core.
//! - [`RareCounters`]: what happens seldom enough to be counted in one place.
//! - [`Observation`]: what is a state rather than a count; whoever owns it is asked at the scrape,
//!   through [`Observed`].
//!
//! Each metric is declared once, with its name, kind and help, in [`declared`]; `docs/metrics.md`
//! is made from that.

mod catalogue;
mod collect;
mod histogram;
mod observation;
mod single_writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use catalogue::{Kind, Metric, declared, reference_markdown};
pub use collect::{CONTENT_TYPE, encode};
pub use histogram::{
    BUCKETS, Histogram, HistogramTotals, bucket_bound_seconds, bucket_of, nanoseconds,
};
pub use observation::{
    Caching, FollowerObservation, Observation, Observed, Reachability, ReasonCounts,
    RulesObservation, StatementsObservation, StoreObservation,
};
use remora_engine::reason::{Limit, NotVerified, Outcome, Reason, TraceDropped, Verdict};
pub use single_writer::add;

/// All that is counted. One for each Remora in the process; clones of the `Arc` go to whoever
/// counts.
#[derive(Debug)]
pub struct Metrics {
    workers: Box<[Arc<WorkerMetrics>]>,
    /// What happens seldom.
    pub rare: RareCounters,
}

impl Metrics {
    /// Counters for so many workers, all 0.
    pub fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            rare: RareCounters::default(),
        })
    }

    /// The counters of one worker, from 0; none if there are fewer workers.
    pub fn worker(&self, index: usize) -> Option<Arc<WorkerMetrics>> {
        self.workers.get(index).cloned()
    }

    /// The counters of every worker.
    pub fn workers(&self) -> &[Arc<WorkerMetrics>] {
        &self.workers
    }
}

/// The counters of one worker. Only that worker may count here: additions by two threads could be
/// lost.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    outcomes: [AtomicU64; Outcome::COUNT],
    /// Time from reading a statement to handing over its answer from memory.
    pub hit_seconds: Histogram,
    /// Time from reading a statement to the end of the server's answer, for those that count as
    /// misses.
    pub miss_seconds: Histogram,
    client_bytes_in: AtomicU64,
    client_bytes_out: AtomicU64,
    hit_bytes: AtomicU64,
}

impl Default for WorkerMetrics {
    fn default() -> Self {
        Self {
            outcomes: [const { AtomicU64::new(0) }; Outcome::COUNT],
            hit_seconds: Histogram::default(),
            miss_seconds: Histogram::default(),
            client_bytes_in: AtomicU64::new(0),
            client_bytes_out: AtomicU64::new(0),
            hit_bytes: AtomicU64::new(0),
        }
    }
}

impl WorkerMetrics {
    /// A statement had this outcome.
    pub fn count(&self, outcome: Outcome) {
        add(&self.outcomes[outcome.index()], 1);
    }

    /// A statement was answered from memory with so many bytes, after so long.
    pub fn count_hit(&self, bytes: usize, took: Duration) {
        self.count(Outcome::Hit);
        add(&self.hit_bytes, bytes as u64);
        self.hit_seconds.observe(took);
    }

    /// So many bytes came from clients.
    pub fn count_client_bytes_in(&self, bytes: usize) {
        add(&self.client_bytes_in, bytes as u64);
    }

    /// So many bytes went to clients, other than from memory: [`WorkerMetrics::count_hit`] has
    /// those.
    pub fn count_client_bytes_out(&self, bytes: usize) {
        add(&self.client_bytes_out, bytes as u64);
    }

    /// How many statements had this outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].load(Relaxed)
    }

    /// Bytes that came from clients.
    pub fn client_bytes_in(&self) -> u64 {
        self.client_bytes_in.load(Relaxed)
    }

    /// Bytes that went to clients, from memory or from the server.
    pub fn client_bytes_out(&self) -> u64 {
        self.client_bytes_out.load(Relaxed) + self.hit_bytes()
    }

    /// Bytes that went to clients from memory.
    pub fn hit_bytes(&self) -> u64 {
        self.hit_bytes.load(Relaxed)
    }
}

/// Counters of what happens seldom: shared by all threads.
#[derive(Debug)]
pub struct RareCounters {
    limits: Box<[AtomicU64]>,
    verdicts: [AtomicU64; Verdict::ALL.len()],
    not_verified: [AtomicU64; NotVerified::ALL.len()],
    traces_dropped: [AtomicU64; TraceDropped::ALL.len()],
    /// Client connections accepted.
    pub connections_accepted: AtomicU64,
    /// Client connections closed because a client or the server broke the protocol.
    pub protocol_errors: AtomicU64,
    /// Connections to the server that could not be established for a client.
    pub upstream_connect_failures: AtomicU64,
    /// Statements that were traced.
    pub traces: AtomicU64,
    /// Statements that waited until another client's answer was complete or had failed.
    pub fill_waits: AtomicU64,
    /// Statements that waited for their turn at the server.
    pub statement_waits: AtomicU64,
    /// How long they waited in all, microseconds.
    pub statement_wait_us: AtomicU64,
}

impl Default for RareCounters {
    fn default() -> Self {
        Self {
            limits: Limit::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            verdicts: Default::default(),
            not_verified: Default::default(),
            traces_dropped: Default::default(),
            connections_accepted: AtomicU64::new(0),
            protocol_errors: AtomicU64::new(0),
            upstream_connect_failures: AtomicU64::new(0),
            traces: AtomicU64::new(0),
            fill_waits: AtomicU64::new(0),
            statement_waits: AtomicU64::new(0),
            statement_wait_us: AtomicU64::new(0),
        }
    }
}

impl RareCounters {
    /// A configured limit kept something from happening.
    pub fn count_limit(&self, limit: Limit) {
        self.limits[limit.ordinal()].fetch_add(1, Relaxed);
    }

    /// A hit was verified, and this was found.
    pub fn count_verdict(&self, verdict: Verdict) {
        self.verdicts[verdict.ordinal()].fetch_add(1, Relaxed);
    }

    /// How often this was found.
    pub fn verdict(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict.ordinal()].load(Relaxed)
    }

    /// A hit was chosen and not verified. Counts as a verdict, too.
    pub fn count_not_verified(&self, why: NotVerified) {
        self.count_verdict(Verdict::GivenUp);
        self.not_verified[why.ordinal()].fetch_add(1, Relaxed);
    }

    /// How often a hit was not verified for this reason.
    pub fn not_verified(&self, why: NotVerified) -> u64 {
        self.not_verified[why.ordinal()].load(Relaxed)
    }

    /// So many traces were not sent.
    pub fn count_traces_dropped(&self, why: TraceDropped, count: u64) {
        self.traces_dropped[why.ordinal()].fetch_add(count, Relaxed);
    }

    /// How many traces were not sent for this reason.
    pub fn traces_dropped(&self, why: TraceDropped) -> u64 {
        self.traces_dropped[why.ordinal()].load(Relaxed)
    }

    /// How often a limit kept something from happening.
    pub fn limit(&self, limit: Limit) -> u64 {
        self.limits[limit.ordinal()].load(Relaxed)
    }
}
