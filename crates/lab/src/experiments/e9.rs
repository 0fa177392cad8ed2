//! E9: a big result and the unstable response.
//!
//! A join of two tables gives 30,000 rows of 6 bytes, 180 KB of data (330 KB on the wire in the
//! text protocol). The source saw it take a steady 160 ms alone, and under load anywhere from 50
//! microseconds (from the query cache) to a second (stored there block by block, taking the cache's
//! lock for each). Those are two things, which are measured apart:
//!
//! - joins that nobody has asked for before: each is done by the server and then stored by what
//!   stores;
//! - the same few joins again and again: a cache that has room answers them all.
//!
//! Small queries run beside both. They are asked with pauses by clients of their own, so that there
//! are about as many through each arm: their share of the machine doesn't grow with what an arm
//! saves. Latencies are those of joins alone; queries a second are all.

use super::filling;
use super::plan::{About, Arm, Data, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use crate::results::{Measured, Median, Place, Published, Quotient, Scale};

/// Rows of the first table that a join finds. Each has as many in the second as make up the result.
const OWNERS: u32 = 300;
/// Rows that small queries ask for.
const SMALL_ROWS: u32 = 10_000;
/// Clients that ask small questions.
const BESIDE: u32 = 8;
/// Between two questions of one of them, microseconds.
const PAUSE_US: u32 = 2_000;
/// What the server's own cache and Remora have for results, MiB.
const MEMORY_MIB: u32 = 64;

/// The workload of one client and nothing beside it.
const ALONE: &str = "the join alone";
/// That of joins which are done and stored.
const FIRST_TIME: &str = "joins asked for the first time, small queries beside";
/// What was published of the join alone.
const WAS_ALONE: &str = "alone";

/// The experiment.
#[derive(Debug)]
pub struct E9;

/// How large the tables are.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// Different joins.
    pub groups: u32,
    /// Rows that each gives.
    pub result_rows: u32,
}

impl Tables {
    /// At a scale.
    pub fn at(scale: Scale) -> Tables {
        let (groups, result_rows) = match scale {
            Scale::Tiny => (2, 3_000),
            Scale::Quick => (4, 30_000),
            Scale::Normal => (8, 30_000),
            Scale::Full => (16, 30_000),
        };
        Tables {
            groups,
            result_rows,
        }
    }

    /// What makes and fills them.
    pub fn statements(self) -> Vec<String> {
        let owners = self.groups * OWNERS;
        let mut statements: Vec<String> = [
            "CREATE TABLE owners (id INT NOT NULL PRIMARY KEY, part INT NOT NULL, note CHAR(20) NOT NULL, \
             KEY (part)) ENGINE=InnoDB CHARSET=latin1",
            "CREATE TABLE parts (id INT NOT NULL PRIMARY KEY, owner INT NOT NULL, name CHAR(6) NOT NULL, \
             KEY (owner, name)) ENGINE=InnoDB CHARSET=latin1",
            "CREATE TABLE small (id INT NOT NULL PRIMARY KEY, note CHAR(50) NOT NULL) ENGINE=InnoDB CHARSET=latin1",
        ]
        .map(str::to_owned)
        .to_vec();
        let owner = format!("n, 1 + n MOD {}, ''", self.groups);
        statements.extend(filling::fill("owners", &owner, owners));
        let part = format!("n, 1 + n MOD {owners}, LEFT(MD5(n), 6)");
        let parts = self.groups * self.result_rows;
        statements.extend(filling::fill("parts", &part, parts));
        let small = format!("n, {}", filling::text(50));
        statements.extend(filling::fill("small", &small, SMALL_ROWS));
        statements
    }

    /// So many clients that join, beside others.
    pub fn load(self, clients: u32, is_new: bool, beside: u32) -> SysbenchLoad {
        let is_new = if is_new { "on" } else { "off" };
        SysbenchLoad {
            script: Script::Ours("big_result"),
            threads: clients + beside,
            prepared: false,
            options: vec![
                format!("--groups={}", self.groups),
                format!("--is-new={is_new}"),
                format!("--beside={beside}"),
                format!("--pause-us={PAUSE_US}"),
                format!("--small-rows={SMALL_ROWS}"),
            ],
        }
    }

    fn points(self, clients: &[u32]) -> Vec<Point> {
        let point = |workload: &str, load, clients: u32| {
            Point::new(workload, load).at("clients that join", "", clients.into())
        };
        let mut points = vec![point(ALONE, self.load(1, true, 0), 1)];
        for &clients in clients {
            points.push(point(FIRST_TIME, self.load(clients, true, BESIDE), clients));
        }
        for &clients in clients {
            let again = "the same joins again and again, small queries beside";
            points.push(point(again, self.load(clients, false, BESIDE), clients));
        }
        points
    }
}

/// The longest join under load over what one takes alone, without a cache. It is the storing that
/// took long in the source, so these are joins that are stored.
fn longest_over_alone(arm: &str) -> Quotient {
    let longest = Median::new(Measured::MaxMs, FIRST_TIME, arm, Place::Last);
    longest.over(Median::new(Measured::P50Ms, ALONE, "direct", Place::Last))
}

impl Experiment for E9 {
    fn about(&self) -> About {
        About {
            id: "e9",
            title: "The big result and the unstable response",
            question: "Does a join of 30,000 rows take about as long each time, with small queries beside it and a cache that \
                       stores what it gives?",
            source_figure: "180 KB: a steady 160 ms alone; under load with the query cache anywhere from 0.05 ms to 1 s",
            published: vec![
                Published::new(WAS_ALONE, 160.0, "ms"),
                Published::new("under load with the query cache, the shortest", 0.05, "ms"),
                Published::new(
                    "under load with the query cache, the longest",
                    1_000.0,
                    "ms",
                )
                .over(
                    WAS_ALONE,
                    longest_over_alone(&Arm::Builtin { mib: MEMORY_MIB }.label()),
                    longest_over_alone("remora"),
                ),
            ],
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let tables = Tables::at(scale);
        let clients: &[u32] = match scale {
            Scale::Tiny => &[2],
            Scale::Quick => &[4],
            Scale::Normal => &[1, 4, 16],
            Scale::Full => &[1, 4, 16, 64],
        };
        let builtin = Arm::Builtin { mib: MEMORY_MIB };
        let remora = Arm::Remora {
            memory_mib: MEMORY_MIB,
        };
        let time_to_live_ms = 1_000;
        let arms = match scale {
            Scale::Tiny | Scale::Quick => vec![Arm::Direct, builtin, remora],
            Scale::Normal | Scale::Full => vec![
                Arm::Direct,
                builtin,
                Arm::Hop,
                Arm::ProxySql { time_to_live_ms },
                remora,
            ],
        };
        let pace = match scale {
            Scale::Tiny => Pace::new(1, 1, 2),
            Scale::Quick => Pace::QUICK,
            Scale::Normal => Pace::new(3, 10, 15),
            Scale::Full => Pace::new(5, 60, 60),
        };
        Plan {
            data: Data::Statements(tables.statements()),
            server_options: vec!["--innodb-buffer-pool-size=512M".to_owned()],
            points: tables.points(clients),
            arms,
            pace,
        }
    }
}
