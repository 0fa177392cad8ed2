//! E2: a table cache that gets slower as it grows.
//!
//! The source reads 100,000 empty tables in turn with several sizes of the server's table cache.
//! That is the first of the two workloads: *direct* is the published experiment. What Remora has of
//! that kind is its catalogue of definitions: in the second the server's cache stays as it is and
//! the catalogue has room for so many tables. With too little room a table's statement passes
//! through and its definition is loaded in the background, over and over; with enough, each
//! definition is loaded once. The mark: a larger catalogue is never the slower one. *Direct* has
//! the same work at each of its places and shows how even the machine is.
//!
//! Unlike the source's tables these are InnoDB's, whose results Remora keeps, and they share one
//! file: so many files would take longer than the tables.

use super::plan::{About, Arm, Data, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use crate::results::{Measured, Median, Place, Published, Quotient, Scale};

/// Clients, each with a share of the tables.
const CLIENTS: u32 = 4;
/// Memory for results, MiB: the least that Remora takes. A result that is kept needs no definition
/// any more, and it is definitions that are asked about.
const MEMORY_MIB: u32 = 1;
/// The size of the server's table cache where it isn't asked about: what servers have by default.
const SERVER_DEFAULT: u32 = 2_000;

/// The workload in which the server's own cache grows.
const SERVERS: &str = "the server's table cache";
/// That in which Remora's catalogue does.
const REMORAS: &str = "Remora's catalogue";

/// The experiment.
#[derive(Debug)]
pub struct E2;

/// How many tables there are.
pub fn tables(scale: Scale) -> u32 {
    match scale {
        Scale::Tiny => 100,
        Scale::Quick => 4_000,
        Scale::Normal => 20_000,
        Scale::Full => 100_000,
    }
}

/// What makes them.
pub fn statements(tables: u32) -> Vec<String> {
    let create = |number| format!("CREATE TABLE t{number} (a INT) ENGINE=InnoDB");
    (0..tables).map(create).collect()
}

/// Reads them in turn.
pub fn load(tables: u32) -> SysbenchLoad {
    SysbenchLoad {
        script: Script::Ours("tables"),
        threads: CLIENTS,
        prepared: false,
        options: vec![format!("--tables={tables}")],
    }
}

/// The server's own cache has room for so many.
fn server_point(tables: u32, capacity: u32) -> Point {
    let mut point = Point::new(SERVERS, load(tables)).at("capacity", "", capacity.into());
    point.before = server_cache(capacity);
    point.remora_options = small_results();
    point
}

/// Remora's catalogue has room for so many.
fn remora_point(tables: u32, capacity: u32) -> Point {
    let mut point = Point::new(REMORAS, load(tables)).at("capacity", "", capacity.into());
    point.before = server_cache(SERVER_DEFAULT);
    let option = |name: &str, value: u32| (name.to_owned(), value.to_string());
    point.remora_options = small_results();
    point.remora_options.extend([
        option("follow.catalogue_tables_max", capacity),
        // Clients go faster than definitions are loaded: all of them may wait.
        option("follow.catalogue_queue_max", 1_000_000),
    ]);
    point
}

/// What so little memory asks for: these may have an eighth of it at most.
fn small_results() -> Vec<(String, String)> {
    ["cache.result_bytes_max", "cache.statement_bytes_max"]
        .map(|name| (name.to_owned(), "64KiB".to_owned()))
        .to_vec()
}

/// The older servers of the source had one cache for what are two now.
fn server_cache(tables: u32) -> Vec<String> {
    ["table_open_cache", "table_definition_cache"]
        .map(|name| format!("SET GLOBAL {name} = {tables}"))
        .to_vec()
}

/// The published capacities, one over the other.
fn larger_over_smaller(workload: &str, arm: &str) -> Quotient {
    let at = |capacity| Median::new(Measured::QueriesPerS, workload, arm, Place::At(capacity));
    at(16_384.0).over(at(64.0))
}

impl Experiment for E2 {
    fn about(&self) -> About {
        About {
            id: "e2",
            title: "Many tables, and a cache of their definitions that grows",
            question: "Is a larger cache of tables, the server's or Remora's, ever slower than a small one?",
            source_figure: "100,000 tables, MySQL 5.0.85: 12 s with a table cache of 64, 660 s with one of 16,384",
            published: vec![
                Published::new("table cache of 64", 8_500.0, "tables/s"),
                Published::new("table cache of 16,384", 151.0, "tables/s").over(
                    "table cache of 64",
                    larger_over_smaller(SERVERS, "direct"),
                    larger_over_smaller(REMORAS, "remora"),
                ),
            ],
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let tables = tables(scale);
        let capacities: &[u32] = match scale {
            Scale::Tiny | Scale::Quick => &[64, 16_384],
            Scale::Normal => &[64, 1_024, 16_384],
            Scale::Full => &[64, 1_024, 16_384, 131_072],
        };
        let points_of = |point: fn(u32, u32) -> Point| {
            capacities
                .iter()
                .map(move |&capacity| point(tables, capacity))
        };
        let points = points_of(server_point)
            .chain(points_of(remora_point))
            .collect();
        // The first pass over all tables loads their definitions, at up to a millisecond each.
        let pace = match scale {
            Scale::Tiny => Pace::new(1, 1, 2),
            Scale::Quick => Pace::new(3, 2, 3),
            Scale::Normal => Pace::new(3, 10, 40),
            Scale::Full => Pace::new(5, 60, 600),
        };
        Plan {
            data: Data::Statements(statements(tables)),
            server_options: vec![
                "--innodb-buffer-pool-size=512M".to_owned(),
                "--innodb-file-per-table=0".to_owned(),
                "--innodb-flush-method=nosync".to_owned(),
            ],
            points,
            arms: vec![
                Arm::Direct,
                Arm::Remora {
                    memory_mib: MEMORY_MIB,
                },
            ],
            pace,
        }
    }
}
