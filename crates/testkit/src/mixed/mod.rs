//! Counters in tables of many kinds, written and read in many forms, each read judged by the
//! oracle.
//!
//! | file | what it holds |
//! |---|---|
//! | `tables.rs` | the kinds of tables: foreign keys, triggers, engines |
//! | `questions.rs` | what readers ask, and what answers must hold |
//! | `asking.rs` | as text, or by prepared statements |
//! | `writes.rs` | the forms of a write |
//! | `clients.rs` | who reads and writes, and how answers are judged |
//!
//! **So that caching happens**: at each moment most writers are busy with one kind of table, the
//! *hot* one, which changes after [`MixedLoad::hot`] and some reads. The others rest meanwhile, and
//! results from them can be served. A result that was kept wrongly is served then, too, and found.

pub mod asking;
mod clients;
pub mod questions;
pub mod tables;
pub mod writes;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

pub use clients::run;

use crate::client::ConnectOptions;

/// Who reads and writes, and for how long.
#[derive(Debug, Clone)]
pub struct MixedLoad {
    /// How clients connect to Remora.
    pub through: ConnectOptions,
    /// How clients connect to the server.
    pub direct: ConnectOptions,
    /// Whether the server is a MySQL, not a MariaDB.
    pub is_mysql: bool,
    /// Clients that read through Remora.
    pub readers: usize,
    /// Clients that write through Remora.
    pub writers_through: usize,
    /// Clients that write to the server directly.
    pub writers_direct: usize,
    /// The longest pause of a writer between two writes.
    pub write_pause: Duration,
    /// For how long, at least, one kind of table is written most.
    pub hot: Duration,
    /// Reads to be checked.
    pub reads: u64,
    /// When to give up.
    pub time: Duration,
    /// Whether to end at the first stale read.
    pub until_stale: bool,
    /// Chooses everything.
    pub seed: u64,
}

/// What a load found.
#[derive(Debug)]
pub struct MixedReport {
    /// Reads that were checked.
    pub reads: u64,
    /// Writes through Remora that had their answer.
    pub writes_through: u64,
    /// Direct writes that had their answer.
    pub writes_direct: u64,
    /// Writes that lost a deadlock, and were rolled back.
    pub deadlocks: u64,
    /// Answers that were older than allowed.
    pub stale_count: u64,
    /// The first of them, in words.
    pub stale: Vec<String>,
    /// Answers that can't be: values that nobody wrote or committed, rows missing.
    pub impossible: Vec<String>,
    /// Values read, of counters that had a direct write before.
    pub reads_after_direct: u64,
    /// Of those that lacked the direct write: its age when the read was sent, microseconds.
    pub lag_us: Histogram<u64>,
    /// How long it ran.
    pub took: Duration,
}

impl MixedReport {
    /// The age of direct writes that reads lacked, in words.
    pub fn lag(&self) -> String {
        let lagging = self.lag_us.len();
        if lagging == 0 {
            return format!(
                "of {} values read after a direct write, none lacked it",
                self.reads_after_direct
            );
        }
        format!(
            "of {} values read after a direct write, {lagging} lacked it; age of the write: median {} us, 99 % {} us, \
             largest {} us",
            self.reads_after_direct,
            self.lag_us.value_at_quantile(0.5),
            self.lag_us.value_at_quantile(0.99),
            self.lag_us.max()
        )
    }
}

impl std::fmt::Display for MixedReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} reads checked, {} writes through Remora, {} direct, {} deadlocks, in {:.1} s; {} stale, {} impossible; {}",
            self.reads,
            self.writes_through,
            self.writes_direct,
            self.deadlocks,
            self.took.as_secs_f32(),
            self.stale_count,
            self.impossible.len(),
            self.lag()
        )
    }
}

/// The last direct write of each counter that had its answer.
#[derive(Debug)]
struct Trail(Vec<Mutex<Option<(u64, Instant)>>>);

impl Trail {
    fn new(counters: usize) -> Trail {
        Trail((0..counters).map(|_| Mutex::new(None)).collect())
    }

    fn cell(&self, counter: usize) -> std::sync::MutexGuard<'_, Option<(u64, Instant)>> {
        self.0[counter]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
