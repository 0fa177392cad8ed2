//! From which hit ratio on does a cache pay? Throughput against the hit ratio, a line for each arm.
//!
//! The article behind E1 shows what a query cache costs that hits 8 % of the time, and asks which
//! ratio it needs.
//!
//! **The hit ratio here** is a property of the load, the same for each arm: the share of queries
//! whose very text was asked before, so that a cache with room and without invalidations answers
//! them from memory. With a probability of *h* a query is one of a hundred hot ones, which are all
//! asked before anything counts and which fit into any cache. Otherwise it holds a text that no
//! query ever held before (when the client began, its process, its thread, a counter): nothing can
//! have its answer. Nothing is written, so nothing is dropped because of a write. What Remora
//! counts is *h* within a few tenths of a percent; the server's own cache and `ProxySQL` can be
//! below it, where results leave before they are asked for again (ProxySQL's after their time to
//! live).
//!
//! Hot and new queries do the same work on the server: they differ in a text that a row is compared
//! with, and which no row has. So *direct* should be a level line, and its slope is what the
//! smaller set of rows that hot queries read saves the processor's own caches.
//!
//! Each arm's break-even is where its line crosses that of *direct*.

use super::filling;
use super::plan::{About, Arm, Data, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use crate::results::{Measured, Median, Place, Published, Scale};

/// Clients.
const CLIENTS: u32 = 8;
/// Rows that a heavy query counts: about a millisecond of the server's work. Much more, and so few
/// queries would be answered that nothing else could be told from them.
const GROUP_ROWS: u32 = 200;
/// Sizes of the server's own cache, MiB: those of E1 between which it didn't get better.
const BUILTIN_MIB: [u32; 2] = [64, 256];
/// What Remora has for results, MiB: as much as the smaller of them.
const REMORA_MIB: u32 = 64;
/// How long `ProxySQL` keeps a result.
const TIME_TO_LIVE_MS: u32 = 10_000;

/// The experiment.
#[derive(Debug)]
pub struct BreakEven;

/// How large the table is.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Rows in all.
    pub rows: u32,
    /// Groups that heavy queries count.
    pub groups: u32,
}

impl Table {
    /// At a scale.
    pub fn at(scale: Scale) -> Table {
        let rows = match scale {
            Scale::Tiny => 2_000,
            Scale::Quick => 100_000,
            Scale::Normal => 400_000,
            Scale::Full => 1_000_000,
        };
        Table {
            rows,
            groups: rows / GROUP_ROWS,
        }
    }

    /// What makes and fills it.
    pub fn statements(self) -> Vec<String> {
        let create = "CREATE TABLE hit_ratio (id INT NOT NULL PRIMARY KEY, part INT NOT NULL, c CHAR(120) NOT NULL, \
                      KEY (part)) ENGINE=InnoDB CHARSET=latin1";
        let values = format!("n, 1 + n MOD {}, {}", self.groups, filling::text(120));
        let mut statements = vec![create.to_owned()];
        statements.extend(filling::fill("hit_ratio", &values, self.rows));
        statements
    }

    /// Queries of which so many percent can be answered from memory.
    pub fn load(self, is_heavy: bool, hits_percent: f64) -> SysbenchLoad {
        let is_heavy = if is_heavy { "on" } else { "off" };
        SysbenchLoad {
            script: Script::Ours("hit_ratio"),
            threads: CLIENTS,
            prepared: false,
            options: vec![
                format!("--rows={}", self.rows),
                format!("--groups={}", self.groups),
                format!("--is-heavy={is_heavy}"),
                format!("--hits-percent={hits_percent}"),
            ],
        }
    }

    fn point(self, is_heavy: bool, hits_percent: f64) -> Point {
        let workload = if is_heavy { "heavy" } else { "light" };
        Point::new(workload, self.load(is_heavy, hits_percent)).at("hit ratio", "%", hits_percent)
    }
}

fn arms(scale: Scale) -> Vec<Arm> {
    let remora = Arm::Remora {
        memory_mib: REMORA_MIB,
    };
    let proxysql = Arm::ProxySql {
        time_to_live_ms: TIME_TO_LIVE_MS,
    };
    let [smaller, larger] = BUILTIN_MIB.map(|mib| Arm::Builtin { mib });
    match scale {
        Scale::Tiny => vec![Arm::Direct, smaller, remora],
        Scale::Quick => vec![Arm::Direct, smaller, proxysql, remora],
        Scale::Normal | Scale::Full => {
            vec![Arm::Direct, smaller, larger, Arm::Hop, proxysql, remora]
        }
    }
}

impl Experiment for BreakEven {
    fn about(&self) -> About {
        let median = |arm: &str| Median::new(Measured::QueriesPerS, "light", arm, Place::At(10.0));
        let [smaller, _] = BUILTIN_MIB.map(|mib| Arm::Builtin { mib }.label());
        About {
            id: "break-even",
            title: "Throughput against the hit ratio",
            question: "From which hit ratio on is each cache faster than none, for light and for heavy queries?",
            source_figure: "left open by E1's article: 4,802 transactions a second without the query cache, 581 with 64 MB of it \
                            that answer about 8 %",
            published: vec![
                Published::new("no query cache", 4_801.84, "transactions/s"),
                Published::new(
                    "query cache of 64 MB, hit ratio about 8 %",
                    580.84,
                    "transactions/s",
                )
                .over(
                    "no query cache",
                    median(&smaller).over(median("direct")),
                    median("remora").over(median("direct")),
                ),
                Published::new("hit ratio of those runs (about)", 8.0, "%"),
            ],
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let table = Table::at(scale);
        let ratios: &[f64] = match scale {
            Scale::Tiny => &[0.0, 100.0],
            Scale::Quick => &[0.0, 50.0, 100.0],
            Scale::Normal | Scale::Full => &[
                0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0,
            ],
        };
        let mut points = Vec::new();
        for is_heavy in [false, true] {
            points.extend(ratios.iter().map(|ratio| table.point(is_heavy, *ratio)));
        }
        let arms = arms(scale);
        let pace = match scale {
            Scale::Tiny => Pace::TINY,
            Scale::Quick => Pace::QUICK,
            Scale::Normal => Pace::new(3, 4, 10),
            Scale::Full => Pace::new(5, 30, 60),
        };
        Plan {
            data: Data::Statements(table.statements()),
            server_options: vec!["--innodb-buffer-pool-size=512M".to_owned()],
            points,
            arms,
            pace,
        }
    }
}
