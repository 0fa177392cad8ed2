//! How far a load has come, which all its clients share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use remora_testkit::interrupt;

/// How often a writer looks whether it is time to write.
const LOOK: Duration = Duration::from_millis(1);

/// A client of a load, until it has ended.
pub(super) type Role<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;

/// A load's counters and its end.
#[derive(Debug)]
pub(super) struct Course {
    started: Instant,
    time_max: Duration,
    wanted: u64,
    stop: AtomicBool,
    transactions: AtomicU64,
    /// Reads in transactions.
    reads: AtomicU64,
    /// Those that memory might answer: all but the first of each transaction.
    later_reads: AtomicU64,
    findings: Mutex<Vec<String>>,
}

impl Course {
    /// Of a load that ends after so many transactions that read, or with the first finding.
    pub(super) fn new(wanted: u64, time_max: Duration) -> Course {
        Course {
            started: Instant::now(),
            time_max,
            wanted,
            stop: AtomicBool::new(false),
            transactions: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            later_reads: AtomicU64::new(0),
            findings: Mutex::new(Vec::new()),
        }
    }

    /// Runs clients beside each other until all have ended.
    ///
    /// # Errors
    /// The first failure of a client, which ends the load.
    pub(super) fn run<'a>(&'a self, roles: Vec<Role<'a>>) -> anyhow::Result<()> {
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let start = |role: Role<'a>| {
                scope.spawn(move || {
                    let ending = EndWhenDropped(self);
                    let outcome = role();
                    if outcome.is_ok() {
                        std::mem::forget(ending);
                    }
                    outcome
                })
            };
            let threads: Vec<_> = roles.into_iter().map(start).collect();
            threads
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect()
        });
        for outcome in outcomes {
            outcome
                .map_err(|_| anyhow::anyhow!("it panicked"))
                .flatten()
                .context("a client of the load")?;
        }
        Ok(interrupt::check()?)
    }

    /// Nanoseconds since the load began.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether the load has ended.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
            || interrupt::is_set()
            || self.transactions() >= self.wanted
            || self.started.elapsed() >= self.time_max
    }

    /// A read in a transaction was answered.
    pub(super) fn count_read(&self, is_first: bool) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.later_reads
            .fetch_add(u64::from(!is_first), Ordering::SeqCst);
    }

    /// A transaction that read was judged, or can be.
    pub(super) fn count_transaction(&self) {
        self.transactions.fetch_add(1, Ordering::SeqCst);
    }

    /// How many of them there were.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::SeqCst)
    }

    /// How many reads of transactions memory might have answered.
    pub(super) fn later_reads(&self) -> u64 {
        self.later_reads.load(Ordering::SeqCst)
    }

    /// Waits until others have read so often. Results are then hit as often between two changes on
    /// a busy machine as on one that isn't.
    pub(super) fn await_reads(&self, count: u64) {
        let wanted = self.reads.load(Ordering::SeqCst) + count;
        while self.reads.load(Ordering::SeqCst) < wanted && !self.is_over() {
            std::thread::sleep(LOOK);
        }
    }

    /// Something is wrong. That ends the load.
    pub(super) fn found(&self, what: String) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.push(what);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// All that is wrong.
    pub(super) fn findings(&self) -> Vec<String> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.clone()
    }

    /// How long it has run.
    pub(super) fn took(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Ends the load for all when a client fails.
struct EndWhenDropped<'a>(&'a Course);

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}
