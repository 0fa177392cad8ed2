//! What an experiment is: data, loads, arms, and how often.

use std::time::Duration;

use crate::results::{Coordinate, Published, Scale};
use crate::statistics::steady;

/// An experiment.
pub trait Experiment: Sync {
    /// What it is called and what it asks.
    fn about(&self) -> About;
    /// What is measured at a scale.
    fn plan(&self, scale: Scale) -> Plan;
}

/// What an experiment is called and what it asks.
#[derive(Debug, Clone)]
pub struct About {
    /// As on the command line: `e1`.
    pub id: &'static str,
    /// A line, for `remora-lab list`.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// The figure that it answers to, in a line.
    pub source_figure: &'static str,
    /// What was published.
    pub published: Vec<Published>,
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the servers hold. Filled once, and reused by later runs with the same data.
    pub data: Data,
    /// Further options of the server: `--innodb-buffer-pool-size=512M`.
    pub server_options: Vec<String>,
    /// The loads.
    pub points: Vec<Point>,
    /// The ways to the server.
    pub arms: Vec<Arm>,
    /// How often and how long.
    pub pace: Pace,
}

impl Plan {
    /// How many measurements there are.
    pub fn measurements(&self) -> u32 {
        let cells = self.points.len() * self.arms.len();
        u32::try_from(cells).unwrap_or(u32::MAX) * self.pace.repetitions
    }

    /// About how long so many of its measurements take, without filling tables. A warm-up usually
    /// ends before its longest.
    pub fn expected(&self, measurements: u32) -> Duration {
        let open_loop = self.points.iter().any(|point| point.open_loop.is_some());
        let lengths = self.pace.length * if open_loop { 2 } else { 1 };
        let share = if self.pace.judges_steadiness() {
            0.75
        } else {
            1.0
        };
        let warm_up = self.pace.warm_up_max.mul_f64(share);
        measurements * (lengths + warm_up + OVERHEAD)
    }
}

/// Of a measurement, what is neither warm-up nor counts: starting a proxy, waiting for quiet.
const OVERHEAD: Duration = Duration::from_millis(1_200);

/// How often and how long each point is measured through each arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How often. Of fewer than three nothing can be concluded.
    pub repetitions: u32,
    /// How long a measurement counts.
    pub length: Duration,
    /// The longest time until the throughput is taken for steady.
    pub warm_up_max: Duration,
}

impl Pace {
    /// So many measurements, each of so many seconds after a warm-up of so many at most.
    pub const fn new(repetitions: u32, length_s: u64, warm_up_s_max: u64) -> Pace {
        Pace {
            repetitions,
            length: Duration::from_secs(length_s),
            warm_up_max: Duration::from_secs(warm_up_s_max),
        }
    }

    /// To see that everything works.
    pub const TINY: Pace = Pace::new(1, 1, 1);
    /// To see large differences, in minutes.
    pub const QUICK: Pace = Pace::new(3, 2, 1);

    /// Whether a warm-up can be long enough to tell that it has become steady. If not, all warm-ups
    /// take the same time.
    pub fn judges_steadiness(&self) -> bool {
        self.warm_up_max.as_secs() >= steady::VALUES_MIN as u64
    }
}

/// What the servers hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Data {
    /// sysbench's tables in the schema `sbtest`.
    Sysbench {
        /// How many.
        tables: u32,
        /// Rows of each.
        rows: u32,
    },
    /// What these statements make, in the schema `lab`.
    Statements(Vec<String>),
}

/// A load.
#[derive(Debug, Clone)]
pub struct Point {
    /// What is asked. Points of one workload share a chart.
    pub workload: String,
    /// Where on the chart's x axis.
    pub x: Option<Coordinate>,
    /// What sends it.
    pub load: SysbenchLoad,
    /// Beside it, one statement after another with pauses.
    pub trickle: Option<Trickle>,
    /// After it, statements at a set rate.
    pub open_loop: Option<OpenLoopLoad>,
    /// Run as root on the server before each measurement: `SET GLOBAL table_open_cache=64`.
    pub before: Vec<String>,
    /// Further options of Remora by their full names, with their values.
    pub remora_options: Vec<(String, String)>,
}

impl Point {
    /// A load and nothing beside it.
    pub fn new(workload: &str, load: SysbenchLoad) -> Point {
        Point {
            workload: workload.to_owned(),
            x: None,
            load,
            trickle: None,
            open_loop: None,
            before: Vec::new(),
            remora_options: Vec::new(),
        }
    }

    /// The same at a place on the axis `threads`, with so many.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Point {
        self.load.threads = threads;
        self.at("threads", "", threads.into())
    }

    /// The same at a place on an axis.
    #[must_use]
    pub fn at(mut self, axis: &str, unit: &str, value: f64) -> Point {
        self.x = Some(Coordinate {
            axis: axis.to_owned(),
            unit: unit.to_owned(),
            value,
        });
        self
    }
}

/// Statements that are sent when they are due, whether or not those before have been answered.
/// Latency counts from when one was due.
#[derive(Debug, Clone)]
pub struct OpenLoopLoad {
    /// The rate: this share of the queries a second that the load reached in the same measurement,
    /// above 0 and up to 1.
    pub share: f64,
    /// One of them at random. `{n}` stands for a random number below `below`.
    pub statements: Vec<String>,
    /// See `statements`.
    pub below: u64,
}

/// A load that sysbench sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysbenchLoad {
    /// What sysbench runs.
    pub script: Script,
    /// Client threads.
    pub threads: u32,
    /// With prepared statements (`--db-ps-mode=auto`) or as text (`disable`).
    pub prepared: bool,
    /// Further options: `--rand-type=uniform`.
    pub options: Vec<String>,
}

/// What sysbench runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// One of those that it brings.
    Its(&'static str),
    /// One of the lab's own: the file's name in `crates/lab/sysbench`, without its ending.
    Ours(&'static str),
}

/// Statements beside a load, one after another, on a connection of their own through the same arm.
#[derive(Debug, Clone)]
pub struct Trickle {
    /// Sent in turn. `{n}` stands for a random number below `below`.
    pub statements: Vec<String>,
    /// See `statements`.
    pub below: u64,
    /// Between two of them.
    pub pause: Duration,
}

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arm {
    /// None but the network.
    Direct,
    /// The server's own query cache.
    Builtin {
        /// `query_cache_size`, MiB.
        mib: u32,
    },
    /// HAProxy in TCP mode.
    Hop,
    /// ProxySQL whose rules keep every `SELECT` for so long. Left out where it isn't installed.
    ProxySql {
        /// Milliseconds.
        time_to_live_ms: u32,
    },
    /// Remora with so much memory for results.
    Remora {
        /// MiB.
        memory_mib: u32,
    },
}

impl Arm {
    /// As in [`crate::results::Cell::arm`].
    pub fn label(self) -> String {
        match self {
            Arm::Direct => "direct".to_owned(),
            Arm::Builtin { mib } => format!("builtin_{mib}mib"),
            Arm::Hop => "hop".to_owned(),
            Arm::ProxySql { .. } => "proxysql".to_owned(),
            Arm::Remora { .. } => "remora".to_owned(),
        }
    }
}
