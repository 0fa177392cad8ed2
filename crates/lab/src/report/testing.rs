//! Directories as runs leave them, with figures that were made up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::results::{
    Cell, Coordinate, Latency, Machine, OpenLoop, Published, Repetition, Results, SCHEMA_VERSION,
    Scale, State,
};
use crate::statistics::testing::log_normal;
use remora_testkit::load::random::Random;

/// Where a cell lies: the axis, its unit, the value.
pub(super) type Place = Option<(&'static str, &'static str, f64)>;

/// A run in the making.
#[derive(Debug)]
pub(super) struct Synthetic {
    pub(super) results: Results,
    series: BTreeMap<String, String>,
    random: Random,
    /// The standard deviation of the logarithm of throughput.
    pub(super) noise: f64,
    pub(super) repetitions: u32,
}

impl Synthetic {
    pub(super) fn new(experiment: &str, random: Random) -> Synthetic {
        let results = Results {
            schema_version: SCHEMA_VERSION,
            experiment: experiment.to_owned(),
            title: "The cost of a query cache that does not hit".to_owned(),
            question: "From which hit ratio does a query cache pay? <b>&".to_owned(),
            published: vec![
                Published::new("query cache off", 4_801.84, "transactions/s"),
                Published::new("query cache of 64 MB", 580.84, "transactions/s"),
            ],
            scale: Scale::Normal,
            started: "2026-11-21T20:00:00Z".to_owned(),
            state: State::Complete,
            machine: Machine {
                processor: "Example 9000".to_owned(),
                processors: 2,
                memory_bytes: 8 << 30,
                kernel: "6.1.0".to_owned(),
            },
            versions: [
                ("server", "MariaDB 10.11.6"),
                ("remora", "0.1.0"),
                ("sysbench", "1.0.20"),
            ]
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .into(),
            configuration: [(
                "remora".to_owned(),
                "[cache]\nmemory = \"64MiB\"\n".to_owned(),
            )]
            .into(),
            commands: vec!["sysbench oltp_point_select --threads=8 run".to_owned()],
            cells: Vec::new(),
        };
        Synthetic {
            results,
            series: BTreeMap::new(),
            random,
            noise: 0.03,
            repetitions: 5,
        }
    }

    /// Adds a cell with this median of queries a second.
    pub(super) fn cell(&mut self, workload: &str, place: Place, arm: &str, queries_per_s: f64) {
        let repetitions = (0..self.repetitions)
            .map(|_| self.repetition(arm, queries_per_s))
            .collect();
        self.results.cells.push(Cell {
            workload: workload.to_owned(),
            x: place.map(|(axis, unit, value)| Coordinate {
                axis: axis.to_owned(),
                unit: unit.to_owned(),
                value,
            }),
            arm: arm.to_owned(),
            repetitions,
        });
    }

    fn repetition(&mut self, arm: &str, median: f64) -> Repetition {
        let queries_per_s = log_normal(&mut self.random, median, self.noise);
        let turn = u32::try_from(self.series.len()).unwrap();
        let series = format!("series/{turn:04}.csv");
        let mut text = "second,queries_per_s,transactions_per_s,p95_ms,errors\n".to_owned();
        for second in 1..=30 {
            let dip = if second == 17 && arm.starts_with("builtin") {
                0.2
            } else {
                1.0
            };
            let now = log_normal(&mut self.random, queries_per_s * dip, 0.04);
            writeln!(text, "{second},{now:.1},{now:.1},1.5,0").unwrap();
        }
        self.series.insert(series.clone(), text);
        let latency = |scale: f64| Latency {
            mean: scale * 1.1,
            p50: Some(scale),
            p95: scale * 2.0,
            p99: Some(scale * 3.0),
            max: scale * 20.0,
        };
        let closed = 8_000.0 / queries_per_s;
        let has_proxy = matches!(arm, "hop" | "proxysql" | "remora");
        Repetition {
            turn,
            warm_up_s: 8.0,
            is_steady: Some(true),
            length_s: 30.0,
            queries: 30 * 50_000,
            queries_per_s,
            transactions_per_s: queries_per_s,
            latency_ms: latency(closed),
            open_loop: Some(OpenLoop {
                rate_per_s: queries_per_s / 2.0,
                reached_per_s: queries_per_s / 2.0,
                latency_ms: latency(closed / 4.0),
            }),
            server_cpu_us: Some(if arm == "remora" { 0.8 } else { 24.0 }),
            proxy_cpu_us: has_proxy.then_some(9.0),
            hit_ratio: (arm != "direct" && arm != "hop").then_some(0.91),
            checked_reads: 1_000,
            stale_reads: 0,
            errors: 0,
            counters: if arm.starts_with("builtin") {
                [("Qcache_inserts".to_owned(), 4_745_672.0)].into()
            } else {
                BTreeMap::new()
            },
            series,
        }
    }

    /// Writes what a run leaves.
    pub(super) fn write(&self, directory: &Path) {
        std::fs::create_dir_all(directory.join("series")).unwrap();
        let text = serde_json::to_string_pretty(&self.results).unwrap();
        std::fs::write(directory.join("results.json"), text).unwrap();
        for (name, text) in &self.series {
            std::fs::write(directory.join(name), text).unwrap();
        }
    }
}

/// All kinds of workloads: over threads, over hit ratios, over capacities and without an axis.
/// `remora` is Remora's speed: 1 for as it was.
pub(super) fn everything(random: Random, remora: f64) -> Synthetic {
    let mut run = Synthetic::new("e1", random);
    for threads in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0] {
        let law = |lambda: f64, sigma: f64, kappa: f64| {
            lambda * threads / (1.0 + sigma * (threads - 1.0) + kappa * threads * (threads - 1.0))
        };
        let place = Some(("threads", "", threads));
        let name = "point selects";
        run.cell(name, place, "direct", law(18_000.0, 0.2, 0.0));
        run.cell(name, place, "builtin_64mib", law(16_000.0, 0.5, 0.02));
        run.cell(name, place, "builtin_256mib", law(15_000.0, 0.6, 0.03));
        run.cell(name, place, "hop", law(9_000.0, 0.2, 0.000_1));
        run.cell(name, place, "proxysql", law(10_000.0, 0.2, 0.000_1));
        run.cell(name, place, "remora", remora * law(25_000.0, 0.15, 0.0));
    }
    for percent in [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0] {
        let place = Some(("hit ratio", "%", percent));
        run.cell("light queries", place, "direct", 40_000.0);
        run.cell(
            "light queries",
            place,
            "builtin_64mib",
            9_000.0 + 100.0 * percent,
        );
        run.cell(
            "light queries",
            place,
            "remora",
            remora * (22_000.0 + 600.0 * percent),
        );
    }
    for capacity in [64.0, 1_024.0, 16_384.0] {
        let place = Some(("capacity", "tables", capacity));
        run.cell("many tables", place, "direct", 100_000.0 / capacity.sqrt());
        run.cell("many tables", place, "remora", remora * 60_000.0);
    }
    run.cell("a big result", None, "direct", 6.0);
    run.cell("a big result", None, "builtin_64mib", 3.0);
    run.cell("a big result", None, "remora", remora * 900.0);
    run
}
