//! E8: light and heavy queries, with and without a trickle of writes.
//!
//! A table of rows of 260 bytes. Sixteen of its seventeen parts are asked for, row by row, by a
//! secondary index with about 16 rows for each value, and, where queries are heavy, by counting a
//! part: with a million rows that is 58,824 of them. Rows of the seventeenth part are there to be
//! updated without concerning any question.
//!
//! The source doesn't say how keys are chosen: here all are equally likely.

use std::time::Duration;

use super::filling;
use super::plan::{About, Arm, Data, Experiment, Pace, Plan, Point, Script, SysbenchLoad, Trickle};
use crate::results::{Measured, Median, Place, Published, Scale};

/// Parts that are asked for. One more is not.
const PARTS: u32 = 16;
/// Rows with the same value of the secondary index.
const FAN_OUT: u32 = 16;
/// Different updates, spread over the rows that they choose from.
const UPDATES: u32 = 500;
/// Between two updates.
const PAUSE: Duration = Duration::from_millis(100);
/// What the server's own cache and Remora have for results, MiB.
const MEMORY_MIB: u32 = 256;

/// The experiment.
#[derive(Debug)]
pub struct E8;

/// Which rows are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// None.
    None,
    /// Rows that heavy queries count.
    OfCountedRows,
    /// Rows that no query asks for.
    OfOtherRows,
}

impl Updates {
    /// What a workload's name says of them.
    fn suffix(self) -> &'static str {
        match self {
            Updates::None => "",
            Updates::OfCountedRows => ", updates of rows that are counted",
            Updates::OfOtherRows => ", updates of rows that nobody asks for",
        }
    }
}

/// How large the table is.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Rows in all.
    pub rows: u32,
}

impl Table {
    /// At a scale.
    pub fn at(scale: Scale) -> Table {
        let rows = match scale {
            Scale::Tiny => 3_400,
            Scale::Quick => 68_000,
            Scale::Normal => 340_000,
            Scale::Full => 1_000_000,
        };
        Table { rows }
    }

    /// The last id of those that are asked for.
    pub fn asked_rows(self) -> u32 {
        self.rows / (PARTS + 1) * PARTS
    }

    /// What makes and fills it.
    pub fn statements(self) -> Vec<String> {
        let asked = self.asked_rows();
        let keys = asked / FAN_OUT;
        // 4 + 4 + 4 + 8 + 240 bytes. Counting reads the index alone.
        let create = "CREATE TABLE light_heavy (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, part INT NOT NULL, \
                      v BIGINT NOT NULL, c CHAR(240) NOT NULL, KEY (k), KEY (part, v)) ENGINE=InnoDB CHARSET=latin1";
        let values = format!(
            "n, IF(n <= {asked}, 1 + n MOD {keys}, 0), IF(n <= {asked}, 1 + n MOD {PARTS}, 0), 0, {}",
            filling::text(240)
        );
        let mut statements = vec![create.to_owned()];
        statements.extend(filling::fill("light_heavy", &values, self.rows));
        statements
    }

    /// What is sent beside the queries. Rows are named by their ids, as an application names them.
    pub fn trickle(self, updates: Updates) -> Option<Trickle> {
        let (first, count) = match updates {
            Updates::None => return None,
            Updates::OfCountedRows => (1, self.asked_rows()),
            Updates::OfOtherRows => (self.asked_rows() + 1, self.rows - self.asked_rows()),
        };
        // Odd, or they would all be of the same few parts.
        let step = (count / UPDATES) | 1;
        let ids = (first..first + count).step_by(step as usize);
        let update = |id| format!("UPDATE light_heavy SET v = v + 1 WHERE id = {id}");
        Some(Trickle {
            statements: ids.map(update).collect(),
            below: 1,
            pause: PAUSE,
        })
    }

    /// The queries, without a number of clients.
    pub fn load(self, is_heavy: bool) -> SysbenchLoad {
        let mut options = vec![
            format!("--asked-rows={}", self.asked_rows()),
            format!("--fan-out={FAN_OUT}"),
        ];
        if is_heavy {
            options.push(format!("--groups={PARTS}"));
        }
        SysbenchLoad {
            script: Script::Ours(if is_heavy { "heavy" } else { "light" }),
            threads: 1,
            prepared: false,
            options,
        }
    }

    fn point(self, is_heavy: bool, updates: Updates, clients: u32) -> Point {
        let kind = if is_heavy { "heavy" } else { "light" };
        let workload = format!("{kind}{}", updates.suffix());
        let mut point = Point::new(&workload, self.load(is_heavy)).threads(clients);
        point.trickle = self.trickle(updates);
        point
    }
}

/// What is asked, and what is updated meanwhile.
fn workloads(scale: Scale) -> &'static [(bool, Updates)] {
    const ALL: [(bool, Updates); 6] = [
        (false, Updates::None),
        (false, Updates::OfCountedRows),
        (false, Updates::OfOtherRows),
        (true, Updates::None),
        (true, Updates::OfCountedRows),
        (true, Updates::OfOtherRows),
    ];
    const QUICK: [(bool, Updates); 4] = [ALL[0], ALL[3], ALL[4], ALL[5]];
    const TINY: [(bool, Updates); 2] = [ALL[0], ALL[4]];
    match scale {
        Scale::Tiny => &TINY,
        Scale::Quick => &QUICK,
        Scale::Normal | Scale::Full => &ALL,
    }
}

fn clients(scale: Scale) -> &'static [u32] {
    match scale {
        Scale::Tiny => &[4],
        Scale::Quick => &[16],
        Scale::Normal => &[4, 16, 64],
        Scale::Full => &[4, 8, 16, 32, 64],
    }
}

fn arms(scale: Scale) -> Vec<Arm> {
    let builtin = Arm::Builtin { mib: MEMORY_MIB };
    let remora = Arm::Remora {
        memory_mib: MEMORY_MIB,
    };
    match scale {
        Scale::Tiny | Scale::Quick => vec![Arm::Direct, builtin, remora],
        Scale::Normal | Scale::Full => {
            let time_to_live_ms = 1_000;
            vec![
                Arm::Direct,
                builtin,
                Arm::Hop,
                Arm::ProxySql { time_to_live_ms },
                remora,
            ]
        }
    }
}

/// Light queries without updates; of the rest no figures were published.
fn published() -> Vec<Published> {
    let unit = "queries/s";
    let at = |clients: f64| {
        let off = format!("light, {clients} clients, query cache off (about)");
        let on = format!("light, {clients} clients, query cache on (at most)");
        let median =
            |arm: &str| Median::new(Measured::QueriesPerS, "light", arm, Place::At(clients));
        let builtin = Arm::Builtin { mib: MEMORY_MIB }.label();
        let published = Published::new(&on, 5_000.0, unit).over(
            &off,
            median(&builtin).over(median("direct")),
            median("remora").over(median("direct")),
        );
        [Published::new(&off, 10_000.0, unit), published]
    };
    [at(32.0), at(64.0)].concat()
}

impl Experiment for E8 {
    fn about(&self) -> About {
        About {
            id: "e8",
            title: "Light and heavy queries, with and without a trickle of writes",
            question: "What does a cache give light queries and counts of many rows, and what is left of it when one row is \
                       updated every 0.1 s?",
            source_figure: "light queries, 32 and 64 clients: about 10,000 a second without the query cache, under 5,000 with \
                            it; heavy ones: it wins, and with updates it is no better than none",
            published: published(),
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let table = Table::at(scale);
        let mut points = Vec::new();
        for &(is_heavy, updates) in workloads(scale) {
            for &clients in clients(scale) {
                points.push(table.point(is_heavy, updates, clients));
            }
        }
        let pace = match scale {
            Scale::Tiny => Pace::TINY,
            Scale::Quick => Pace::QUICK,
            Scale::Normal => Pace::new(3, 5, 15),
            Scale::Full => Pace::new(5, 30, 60),
        };
        let pool_mib = if scale == Scale::Full { 2_048 } else { 512 };
        Plan {
            data: Data::Statements(table.statements()),
            server_options: vec![format!("--innodb-buffer-pool-size={pool_mib}M")],
            points,
            arms: arms(scale),
            pace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(updates: Updates) -> Vec<u32> {
        let statements = Table { rows: 1_700 }.trickle(updates).unwrap().statements;
        let id = |text: &String| text.rsplit(' ').next().unwrap().parse().unwrap();
        statements.iter().map(id).collect()
    }

    #[test]
    fn updates_are_of_the_rows_that_they_are_said_to_be_of() {
        let (counted, other) = (ids(Updates::OfCountedRows), ids(Updates::OfOtherRows));
        assert!(
            counted.iter().all(|id| (1..=1_600).contains(id)),
            "{counted:?}"
        );
        assert!(
            other.iter().all(|id| (1_601..=1_700).contains(id)),
            "{other:?}"
        );
        assert!(counted.len() > 100 && other.len() == 100);
    }
}
