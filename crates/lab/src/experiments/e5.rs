//! E5: more connections than processors.

use std::time::Duration;

use super::plan::{About, Arm, Data, Experiment, OpenLoopLoad, Plan, Point, Script, SysbenchLoad};
use super::results::{Published, Scale};

/// See the module.
pub(super) struct E5;

/// What was published, queries a second.
const PUBLISHED: [(&str, f64); 3] = [
    ("8 threads", 138_244.0),
    ("16 threads", 205_629.0),
    ("4,096 threads", 208_140.0),
];

impl Experiment for E5 {
    fn about(&self) -> About {
        let published = |&(what, value): &(&str, f64)| Published {
            what: what.to_owned(),
            value,
            unit: "queries/s".to_owned(),
        };
        About {
            id: "e5",
            title: "More connections than processors",
            question: "Does throughput stay flat when there are many more connections than processors?",
            source_figure: "point selects on 8 tables of 3 M rows, 16 logical processors: 138,244 queries/s at 8 threads, \
                            205,629 at 16, then flat to 208,140 at 4,096",
            published: PUBLISHED.iter().map(published).collect(),
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
            let mut point = Point::new("point selects", load).threads(threads);
            if size.open_loop_threads.contains(&threads) {
                point.open_loop = Some(size.open_loop());
            }
            point
        };
        Plan {
            data: Data::Sysbench {
                tables: size.tables,
                rows: size.rows,
            },
            server_options: vec![format!(
                "--innodb-buffer-pool-size={}M",
                size.buffer_pool_mib
            )],
            points: size.threads.iter().map(point).collect(),
            arms: size.arms.to_vec(),
            repetitions: size.repetitions,
            length: Duration::from_secs(size.seconds),
            warm_up_max: Duration::from_secs(size.warm_up_s_max),
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
    tables: u32,
    rows: u32,
    buffer_pool_mib: u32,
    threads: &'static [u32],
    /// Where latency is measured at a set rate too.
    open_loop_threads: &'static [u32],
    arms: &'static [Arm],
    repetitions: u32,
    seconds: u64,
    warm_up_s_max: u64,
}

impl Size {
    /// The same queries, at half of what the closed loop reached.
    fn open_loop(&self) -> OpenLoopLoad {
        let statement = |table| format!("SELECT c FROM sbtest{table} WHERE id={{n}}");
        OpenLoopLoad {
            share: 0.5,
            statements: (1..=self.tables).map(statement).collect(),
            below: self.rows.into(),
        }
    }

    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Tiny => Size {
                tables: 1,
                rows: 1_000,
                buffer_pool_mib: 64,
                threads: &[1, 4],
                open_loop_threads: &[4],
                arms: &[Arm::Direct, REMORA],
                repetitions: 1,
                seconds: 1,
                warm_up_s_max: 1,
            },
            Scale::Quick => Size {
                tables: 4,
                rows: 50_000,
                buffer_pool_mib: 256,
                threads: &[2, 32, 256],
                open_loop_threads: &[32],
                arms: &[Arm::Direct, Arm::Hop, REMORA],
                // Of fewer nothing can be concluded.
                repetitions: 3,
                seconds: 2,
                warm_up_s_max: 2,
            },
            Scale::Normal => Size {
                tables: 4,
                rows: 250_000,
                buffer_pool_mib: 1_024,
                threads: &[1, 2, 4, 8, 16, 64, 256, 1_024],
                open_loop_threads: &[16, 256],
                arms: ALL_ARMS,
                repetitions: 3,
                seconds: 8,
                warm_up_s_max: 10,
            },
            Scale::Full => Size {
                tables: 8,
                rows: 3_000_000,
                buffer_pool_mib: 8_192,
                threads: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096],
                open_loop_threads: &[16, 256, 4_096],
                arms: ALL_ARMS,
                repetitions: 5,
                seconds: 60,
                warm_up_s_max: 60,
            },
        }
    }
}
