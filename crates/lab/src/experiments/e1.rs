//! E1: what a query cache costs that doesn't hit.

use super::plan::{About, Arm, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use super::sbtest::Sbtest;
use crate::results::{Measured, Median, Place, Published, Scale};

/// See the module.
pub(super) struct E1;

/// The workload that is as published.
const AS_PUBLISHED: &str = "complex read-only OLTP";
/// What the published figures are compared with.
const OFF: &str = "query cache off";

/// What was published, transactions a second.
const PUBLISHED_TPS: [(&str, f64); 5] = [
    (OFF, 4_801.84),
    ("query cache of 64 MB", 580.84),
    ("query cache of 128 MB", 216.45),
    ("query cache of 256 MB", 444.47),
    (
        "query cache of 256 MB with query_cache_min_res_unit=512",
        2_000.0,
    ),
];

/// What was published, 95th percentile of a transaction's latency, ms.
const PUBLISHED_P95_MS: [(&str, f64); 4] = [
    (OFF, 71.97),
    ("query cache of 64 MB", 214.74),
    ("query cache of 128 MB", 666.36),
    ("query cache of 256 MB", 320.52),
];

/// The counters of one published run.
const PUBLISHED_COUNTERS: [(&str, f64); 6] = [
    ("Com_select", 4_746_219.0),
    ("Qcache_hits", 407_451.0),
    ("Qcache_inserts", 4_745_672.0),
    ("Qcache_lowmem_prunes", 4_691_295.0),
    ("Qcache_queries_in_cache", 54_377.0),
    ("Qcache_total_blocks", 130_059.0),
];

/// The figures of each size of the query cache over that of none, where an arm has such a size.
fn beside(rows: &[(&str, f64)], unit: &str, measure: Measured) -> Vec<Published> {
    let arm_of = |what: &str| match what {
        "query cache of 64 MB" => Some(Arm::Builtin { mib: 64 }),
        "query cache of 128 MB" => Some(Arm::Builtin { mib: 128 }),
        "query cache of 256 MB" => Some(Arm::Builtin { mib: 256 }),
        _ => None,
    };
    let median = |arm: &str| Median::new(measure, AS_PUBLISHED, arm, Place::Last);
    let published = |&(what, value): &(&str, f64)| {
        let figure = Published::new(what, value, unit);
        let Some(arm) = arm_of(what) else {
            return figure;
        };
        let here = median(&arm.label()).over(median("direct"));
        figure.over(OFF, here, median("remora").over(median("direct")))
    };
    rows.iter().map(published).collect()
}

impl Experiment for E1 {
    fn about(&self) -> About {
        About {
            id: "e1",
            title: "The cost of a query cache that doesn't hit",
            question: "What does a cache of results cost where hardly anything is asked twice, and does it cost more when it \
                       is larger?",
            source_figure: "complex read-only OLTP, 100 connections, 10 M rows, 16 cores: 4,802 transactions/s without a \
                            query cache, 581, 216 and 444 with one of 64, 128 and 256 MB",
            published: [
                beside(&PUBLISHED_TPS, "transactions/s", Measured::TransactionsPerS),
                beside(&PUBLISHED_P95_MS, "ms", Measured::P95Ms),
                PUBLISHED_COUNTERS
                    .map(|(what, value)| Published::new(what, value, ""))
                    .to_vec(),
            ]
            .concat(),
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let size = Size::of(scale);
        let load = |further: &[&str]| SysbenchLoad {
            script: Script::Its("oltp_read_only"),
            threads: size.threads,
            prepared: false,
            options: [&["--rand-type=uniform"], further]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        // As published; and the same statements without BEGIN and COMMIT, for Remora answers
        // nothing from memory within a transaction that wants to see one state of everything.
        let points = vec![
            Point::new(AS_PUBLISHED, load(&[])),
            Point::new(
                "complex read-only OLTP, without transactions",
                load(&["--skip-trx=on"]),
            ),
        ];
        let mut arms = vec![Arm::Direct];
        arms.extend(size.builtin_mib.iter().map(|&mib| Arm::Builtin { mib }));
        arms.extend([
            Arm::Hop,
            Arm::ProxySql {
                time_to_live_ms: 1_000,
            },
            // As much as the largest of the others.
            Arm::Remora { memory_mib: 256 },
        ]);
        Plan {
            data: size.tables.data(),
            server_options: vec![size.tables.server_option()],
            points,
            arms,
            pace: size.pace,
        }
    }
}

struct Size {
    tables: Sbtest,
    threads: u32,
    builtin_mib: &'static [u32],
    pace: Pace,
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Tiny => Size {
                tables: Sbtest::TINY,
                threads: 2,
                builtin_mib: &[64],
                pace: Pace::TINY,
            },
            Scale::Quick => Size {
                tables: Sbtest::QUICK,
                threads: 100,
                builtin_mib: &[64, 256],
                pace: Pace::QUICK,
            },
            Scale::Normal => Size {
                tables: Sbtest::NORMAL,
                threads: 100,
                builtin_mib: &[64, 128, 256],
                pace: Pace::new(5, 10, 15),
            },
            Scale::Full => Size {
                tables: Sbtest {
                    tables: 4,
                    rows: 2_500_000,
                    buffer_pool_mib: 4_096,
                },
                threads: 100,
                builtin_mib: &[64, 128, 256],
                pace: Pace::new(5, 900, 300),
            },
        }
    }
}
