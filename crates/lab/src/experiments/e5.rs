//! E5: more connections than processors.

use super::plan::{About, Arm, Experiment, OpenLoopLoad, Pace, Plan, Point, Script, SysbenchLoad};
use super::sbtest::Sbtest;
use crate::results::{Measured, Median, Place, Published, Scale};

/// See the module.
pub(super) struct E5;

/// The workload.
const POINT_SELECTS: &str = "point selects";

/// What was published: the mark is that the most connections are as good as the best number of
/// them.
fn published() -> Vec<Published> {
    let best = "the best number of threads, 4,096";
    let most_over_best = |arm: &str| {
        let at = |place| Median::new(Measured::QueriesPerS, POINT_SELECTS, arm, place);
        at(Place::Last).over(at(Place::Highest))
    };
    vec![
        Published::new("8 threads", 138_244.0, "queries/s"),
        Published::new("16 threads", 205_629.0, "queries/s"),
        Published::new(best, 208_140.0, "queries/s"),
        Published::new("the most threads, 4,096", 208_140.0, "queries/s").over(
            best,
            most_over_best("direct"),
            most_over_best("remora"),
        ),
    ]
}

impl Experiment for E5 {
    fn about(&self) -> About {
        About {
            id: "e5",
            title: "More connections than processors",
            question: "Does throughput stay flat when there are many more connections than processors?",
            source_figure: "point selects on 8 tables of 3 M rows, 16 logical processors: 138,244 queries/s at 8 threads, \
                            205,629 at 16, then flat to 208,140 at 4,096",
            published: published(),
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let size = Size::of(scale);
        let point = |&threads: &u32| {
            let load = SysbenchLoad {
                script: Script::Its("oltp_point_select"),
                threads,
                prepared: false,
                options: vec!["--rand-type=uniform".to_owned()],
            };
            let mut point = Point::new(POINT_SELECTS, load).threads(threads);
            if size.open_loop_threads.contains(&threads) {
                point.open_loop = Some(size.open_loop());
            }
            point
        };
        Plan {
            data: size.tables.data(),
            server_options: vec![size.tables.server_option()],
            points: size.threads.iter().map(point).collect(),
            arms: size.arms.to_vec(),
            pace: size.pace,
        }
    }
}

const REMORA: Arm = Arm::Remora { memory_mib: 256 };
const ALL_ARMS: &[Arm] = &[
    Arm::Direct,
    Arm::Builtin { mib: 64 },
    Arm::Hop,
    Arm::ProxySql {
        time_to_live_ms: 1_000,
    },
    REMORA,
];

struct Size {
    tables: Sbtest,
    threads: &'static [u32],
    /// Where latency is measured at a set rate too.
    open_loop_threads: &'static [u32],
    arms: &'static [Arm],
    pace: Pace,
}

impl Size {
    /// The same queries, at half of what the closed loop reached.
    fn open_loop(&self) -> OpenLoopLoad {
        let statement = |table| format!("SELECT c FROM sbtest{table} WHERE id={{n}}");
        OpenLoopLoad {
            share: 0.5,
            statements: (1..=self.tables.tables).map(statement).collect(),
            below: self.tables.rows.into(),
        }
    }

    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Tiny => Size {
                tables: Sbtest::TINY,
                threads: &[1, 4],
                open_loop_threads: &[4],
                arms: &[Arm::Direct, REMORA],
                pace: Pace::TINY,
            },
            Scale::Quick => Size {
                tables: Sbtest::QUICK,
                threads: &[2, 32, 256],
                open_loop_threads: &[32],
                arms: &[Arm::Direct, Arm::Hop, REMORA],
                pace: Pace::QUICK,
            },
            Scale::Normal => Size {
                tables: Sbtest::NORMAL,
                threads: &[1, 2, 4, 8, 16, 64, 256, 1_024],
                open_loop_threads: &[16, 256],
                arms: ALL_ARMS,
                pace: Pace::new(3, 8, 10),
            },
            Scale::Full => Size {
                tables: Sbtest {
                    tables: 8,
                    rows: 3_000_000,
                    buffer_pool_mib: 8_192,
                },
                threads: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096],
                open_loop_threads: &[16, 256, 4_096],
                arms: ALL_ARMS,
                pace: Pace::new(5, 60, 60),
            },
        }
    }
}
