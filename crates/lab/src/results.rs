//! What a run of an experiment leaves: `results.json`, which the report is made of and which runs
//! are compared by.
//!
//! Raw series lie beside it, one CSV file for each repetition ([`Repetition::series`]).

use std::collections::BTreeMap;

pub use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Grows when the meaning of a field changes; a reader refuses another one.
pub const SCHEMA_VERSION: u32 = 2;

/// A run of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// As on the command line: `e1`.
    pub experiment: String,
    /// A line on what it is.
    pub title: String,
    /// What was asked.
    pub question: String,
    /// What others published.
    pub published: Vec<Published>,
    /// How large it was.
    pub scale: Scale,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Whether all of it was measured.
    pub state: State,
    /// Where it ran.
    pub machine: Machine,
    /// Of each program its version: `server`, `sysbench`, `haproxy`, `remora` …
    pub versions: BTreeMap<String, String>,
    /// The configuration of each program, whole.
    pub configuration: BTreeMap<String, String>,
    /// The commands that were run, as one would type them; repeated ones once.
    pub commands: Vec<String>,
    /// What was measured.
    pub cells: Vec<Cell>,
}

/// A figure that somebody published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Of what: `query cache of 64 MB`.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Its unit: `transactions/s`.
    pub unit: String,
    /// Its ratio to another figure, and what answers to that here. `None`: nothing does.
    pub ratio: Option<PublishedRatio>,
}

impl Published {
    /// A figure that nothing here answers to.
    pub fn new(what: &str, value: f64, unit: &str) -> Published {
        Published {
            what: what.to_owned(),
            value,
            unit: unit.to_owned(),
            ratio: None,
        }
    }

    /// The same with its ratio to another published figure of the same unit, and what answers to
    /// that.
    #[must_use]
    pub fn over(mut self, to: &str, here: Quotient, remora: Quotient) -> Published {
        self.ratio = Some(PublishedRatio {
            to: to.to_owned(),
            here,
            remora,
        });
        self
    }
}

/// A published figure over another one: only ratios carry over to another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRatio {
    /// [`Published::what`] of the figure below the line.
    pub to: String,
    /// The same here.
    pub here: Quotient,
    /// What Remora shows on the same work.
    pub remora: Quotient,
}

/// A median of a run over another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quotient {
    /// Above the line.
    pub above: Median,
    /// Below it.
    pub below: Median,
}

/// A median over the repetitions of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Median {
    /// [`Cell::workload`].
    pub workload: String,
    /// [`Cell::arm`].
    pub arm: String,
    /// Where on the x axis.
    pub place: Place,
    /// Of what.
    pub measure: Measured,
}

impl Median {
    /// A median.
    pub fn new(measure: Measured, workload: &str, arm: &str, place: Place) -> Median {
        Median {
            workload: workload.to_owned(),
            arm: arm.to_owned(),
            place,
            measure,
        }
    }

    /// Over another one.
    pub fn over(self, below: Median) -> Quotient {
        Quotient { above: self, below }
    }
}

/// A place on a workload's x axis.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The last one; the only one where there is no axis.
    Last,
    /// Where the median is highest.
    Highest,
    /// Here.
    At(f64),
}

/// A field of [`Repetition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Queries a second.
    QueriesPerS,
    /// Transactions a second.
    TransactionsPerS,
    /// The median latency, milliseconds.
    P50Ms,
    /// The 95th percentile of the latency, milliseconds.
    P95Ms,
    /// The longest latency, milliseconds.
    MaxMs,
}

/// How large a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Seconds: for tests of the lab itself. The figures mean nothing.
    Tiny,
    /// A few minutes for all experiments together.
    Quick,
    /// Tens of minutes for each.
    Normal,
    /// As published, as far as the machine has room.
    Full,
}

/// Whether all of it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was.
    Complete,
    /// The rest can be measured by the same command with the same directory.
    Incomplete {
        /// What ended it.
        why: String,
    },
}

/// One load through one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What is asked: `point selects`. Cells of one workload share a chart.
    pub workload: String,
    /// Where on the chart's x axis, if there is one.
    pub x: Option<Coordinate>,
    /// The arm's label: `direct`, `builtin_64mib`, `hop`, `proxysql`, `remora`.
    pub arm: String,
    /// In the order in which they were measured.
    pub repetitions: Vec<Repetition>,
}

/// A place on an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// `threads`, `hit ratio`, `capacity`.
    pub axis: String,
    /// `%`; empty for a count.
    pub unit: String,
    /// Where.
    pub value: f64,
}

/// One measurement of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Its place among all measurements of the run, from 0: arms take turns in random order.
    pub turn: u32,
    /// Seconds of load before anything counted.
    pub warm_up_s: f64,
    /// Whether the throughput had become steady by then; `None` if that was too short to tell.
    pub is_steady: Option<bool>,
    /// Seconds that count.
    pub length_s: f64,
    /// Queries in all.
    pub queries: u64,
    /// Queries a second.
    pub queries_per_s: f64,
    /// Transactions (sysbench's events) a second.
    pub transactions_per_s: f64,
    /// Latency of a transaction, or of a query where the load has none.
    pub latency_ms: Latency,
    /// Latency at a set rate, from when a query was due: `None` if that wasn't measured.
    pub open_loop: Option<OpenLoop>,
    /// The server's processor time per query, microseconds; `None` if it wasn't measured, as of a
    /// server elsewhere.
    pub server_cpu_us: Option<f64>,
    /// The proxy's processor time per query, microseconds; `None` without a proxy.
    pub proxy_cpu_us: Option<f64>,
    /// Share of reads that were answered from a cache, 0 to 1; `None` if the arm has none or
    /// doesn't tell.
    pub hit_ratio: Option<f64>,
    /// Reads that the checker beside the load judged.
    pub checked_reads: u64,
    /// Those of them that lacked a write that had been answered before they were sent.
    pub stale_reads: u64,
    /// Deadlocks and the like.
    pub errors: u64,
    /// What else the arm counted meanwhile, by name: `Qcache_inserts`. Also states at the end:
    /// `Qcache_free_blocks`.
    #[serde(default)]
    pub counters: BTreeMap<String, f64>,
    /// The file of its series, relative to the directory: columns
    /// `second,queries_per_s,transactions_per_s,p95_ms,errors`.
    pub series: String,
}

/// How latencies are distributed, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median, if it was measured (sysbench gives one percentile and the mean).
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile, if it was measured.
    pub p99: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// Latency at a set rate, without coordinated omission.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Queries a second that were due.
    pub rate_per_s: f64,
    /// Queries a second that were answered.
    pub reached_per_s: f64,
    /// From when a query was due to its answer.
    pub latency_ms: Latency,
}
