//! The lab's own workloads: each runs without an error, directly and through Remora, and asks what
//! it says it asks.
//!
//! Servers: mariadb-10.11
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use remora_lab::experiments::plan::{Script, SysbenchLoad};
use remora_lab::experiments::{break_even, e2, e8, e9, social};
use remora_lab::results::Scale;
use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions};
use remora_testkit::sysbench::{Length, Report, Sysbench};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;
const THREADS: u32 = 4;

/// A server with some tables, and a Remora in front of it.
struct Bed {
    // Dropped in this order.
    remora: InProcessRemora,
    server: Server,
}

/// What Remora counted meanwhile.
#[derive(Debug)]
struct Counted {
    hits: f64,
    misses: f64,
}

impl Counted {
    fn hits_percent(&self) -> f64 {
        100.0 * self.hits / (self.hits + self.misses).max(1.0)
    }
}

impl Bed {
    fn with(statements: &[String]) -> Bed {
        let server = Server::start(ServerOptions {
            kind: Some(Kind::MariaDb1011),
            ..ServerOptions::default()
        })
        .unwrap();
        server.execute(statements).unwrap();
        let remora = InProcessRemora::start(&server, &RemoraOptions::unhurried()).unwrap();
        Bed { remora, server }
    }

    fn sysbench(&self, load: &SysbenchLoad, through: bool) -> Sysbench {
        let Script::Ours(script) = load.script else {
            panic!("{load:?} is not the lab's own")
        };
        let address = if through {
            self.remora.address()
        } else {
            self.server.address()
        };
        let mut sysbench = Sysbench::new(script, address, SCHEMA);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        sysbench.directory = Some(root.join("sysbench"));
        sysbench.tables = 0;
        sysbench.threads = load.threads;
        sysbench.prepared = load.prepared;
        sysbench.further.clone_from(&load.options);
        sysbench
    }

    fn run(&self, load: &SysbenchLoad, through: bool, length: Length) -> Report {
        let report = self.sysbench(load, through).run(length).unwrap();
        assert_eq!(report.reconnects, 0, "{load:?}: {report:?}");
        report
    }

    /// Runs a load through Remora.
    fn count(&self, load: &SysbenchLoad, events: u64) -> Counted {
        let totals = || {
            let metrics = self.remora.metrics().unwrap();
            let sum = |name| metrics.sum(name);
            (sum("remora_hits_total"), sum("remora_misses_total"))
        };
        let before = totals();
        self.run(load, true, Length::Events(events));
        let after = totals();
        Counted {
            hits: after.0 - before.0,
            misses: after.1 - before.1,
        }
    }

    /// Asks until an answer comes from memory: then the table is known, and Remora up to date.
    fn wait_for_a_hit(&self, text: &str) {
        let hits = || Ok::<f64, anyhow::Error>(self.remora.metrics()?.sum("remora_hits_total"));
        let mut client = self.through();
        wait_for("a hit", PATIENCE, || {
            let before = hits()?;
            client.query(text)?;
            Ok((hits()? > before).then_some(()))
        })
        .unwrap();
    }

    fn through(&self) -> Client {
        let app = self.server.app().at(self.remora.address());
        app.connect().unwrap()
    }

    /// What the server says, as a number.
    fn number(&self, text: &str) -> u64 {
        let mut client = self.server.app().connect().unwrap();
        client.query_value(text).unwrap().unwrap().parse().unwrap()
    }
}

/// Runs it directly and through Remora.
fn runs_both_ways(bed: &Bed, load: &SysbenchLoad) {
    let events = 300;
    for through in [false, true] {
        let report = bed.run(load, through, Length::Events(events));
        assert!(report.queries >= events, "{load:?}: {report:?}");
    }
}

fn with_threads(mut load: SysbenchLoad) -> SysbenchLoad {
    load.threads = THREADS;
    load
}

fn with_option(mut load: SysbenchLoad, option: &str) -> SysbenchLoad {
    // Of two the last one counts.
    load.options.push(option.to_owned());
    load
}

#[test]
fn light_and_heavy_queries_run() {
    let table = e8::Table::at(Scale::Tiny);
    let bed = Bed::with(&table.statements());
    for is_heavy in [false, true] {
        runs_both_ways(&bed, &with_threads(table.load(is_heavy)));
    }
}

#[test]
fn the_tables_of_e8_are_as_described() {
    let table = e8::Table::at(Scale::Tiny);
    let bed = Bed::with(&table.statements());
    assert_eq!(
        bed.number("SELECT COUNT(*) FROM light_heavy"),
        u64::from(table.rows)
    );
    let part = u64::from(table.rows / 17);
    for asked in 1..=16 {
        let count = format!("SELECT COUNT(*) FROM light_heavy WHERE part = {asked}");
        assert_eq!(bed.number(&count), part, "part {asked}");
    }
    let fan_out =
        "SELECT MAX(n) FROM (SELECT COUNT(*) n FROM light_heavy WHERE k > 0 GROUP BY k) AS counts";
    assert_eq!(bed.number(fan_out), 16);
}

/// Counts all parts, updates rows, and counts all parts again.
fn hits_after_updates(updates: e8::Updates) -> Counted {
    let table = e8::Table::at(Scale::Tiny);
    let bed = Bed::with(&table.statements());
    let counts = with_option(table.load(true), "--heavy-percent=100");
    let part = "SELECT COUNT(*) FROM light_heavy WHERE part = 1 AND v >= 0";
    bed.wait_for_a_hit(part);
    bed.count(&counts, 400);
    let mut client = bed.through();
    for statement in table.trickle(updates).unwrap().statements {
        client.query(&statement).unwrap();
    }
    assert!(bed.number("SELECT SUM(v) FROM light_heavy") > 100);
    // Not one of the counts: it says that the log has been read.
    bed.wait_for_a_hit("SELECT COUNT(*) FROM light_heavy WHERE part = 0 AND v >= 0");
    bed.count(&counts, 100)
}

#[test]
fn updates_of_counted_rows_drop_counts() {
    let counted = hits_after_updates(e8::Updates::OfCountedRows);
    assert!(counted.misses >= 15.0, "{counted:?}");
}

#[test]
fn updates_of_rows_that_nobody_asks_for_drop_no_counts() {
    let counted = hits_after_updates(e8::Updates::OfOtherRows);
    assert!(counted.misses < 1.0, "{counted:?}");
}

#[test]
fn the_hit_ratio_is_what_the_axis_says() {
    let table = break_even::Table::at(Scale::Tiny);
    let bed = Bed::with(&table.statements());
    bed.wait_for_a_hit("SELECT c FROM hit_ratio WHERE id = 1");
    for is_heavy in [false, true] {
        runs_both_ways(&bed, &table.load(is_heavy, 50.0));
        for percent in [0.0, 25.0, 50.0, 90.0, 100.0] {
            // Few hot questions, for asking them all at the beginning counts here too.
            let load = with_option(table.load(is_heavy, percent), "--hot=10");
            let counted = bed.count(&load, 4_000);
            let measured = counted.hits_percent();
            assert!(
                (measured - percent).abs() < 4.0,
                "{percent} % wanted, {measured:.1} % measured, heavy: {is_heavy}"
            );
        }
    }
}

#[test]
fn big_results_run_and_small_queries_beside_them_are_no_events() {
    let tables = e9::Tables::at(Scale::Tiny);
    let bed = Bed::with(&tables.statements());
    for part in 1..=tables.groups {
        let join = format!(
            "SELECT COUNT(*) FROM owners JOIN parts ON parts.owner = owners.id WHERE owners.part = {part}"
        );
        assert_eq!(bed.number(&join), u64::from(tables.result_rows));
        bed.wait_for_a_hit(&join);
    }
    for is_new in [false, true] {
        runs_both_ways(&bed, &tables.load(2, is_new, 0));
        let report = bed.run(&tables.load(2, is_new, 2), false, Length::Events(400));
        // Both rates would be the same if all 400 were events.
        let joins = report.transactions_per_s;
        assert!(report.queries_per_s > joins * 1.01, "{report:?}");
        let alone = bed.count(&tables.load(2, is_new, 0), 50);
        let hits = alone.hits_percent();
        assert!(if is_new { hits < 1.0 } else { hits > 90.0 }, "{alone:?}");
    }
}

#[test]
fn many_tables_are_read_in_turn() {
    let tables = e2::tables(Scale::Tiny);
    let bed = Bed::with(&e2::statements(tables));
    runs_both_ways(&bed, &e2::load(tables));
    // Twice around. That all are answered from memory says that all have been asked for;
    // definitions are loaded in the background, so it takes a moment.
    wait_for("all tables in memory", PATIENCE, || {
        let counted = bed.count(&e2::load(tables), u64::from(tables) * 2);
        Ok((counted.misses < 1.0).then_some(()))
    })
    .unwrap();
}

#[test]
fn the_social_graph_keeps_its_counts_right() {
    let nodes = social::nodes(Scale::Tiny);
    let bed = Bed::with(&social::statements(nodes));
    let wrong = "SELECT COUNT(*) FROM counts LEFT JOIN (SELECT id1, link_type, COUNT(*) AS n FROM links WHERE visibility = 1 \
                 GROUP BY id1, link_type) AS seen ON seen.id1 = counts.id AND seen.link_type = counts.link_type \
                 WHERE counts.links <> COALESCE(seen.n, 0)";
    assert_eq!(bed.number(wrong), 0);
    let (links, hidden) = (
        "SELECT COUNT(*) FROM links",
        "SELECT COUNT(*) FROM links WHERE visibility = 0",
    );
    let links_before = bed.number(links);
    // With one thread: LinkBench's way of deleting a link lets two who delete the same one count
    // twice.
    for through in [false, true] {
        bed.run(&social::load(nodes), through, Length::Events(3_000));
    }
    assert!(bed.number(links) > links_before);
    assert!(bed.number(hidden) > 0);
    assert!(bed.number("SELECT COUNT(*) FROM nodes WHERE version > 0") > 0);
    assert!(bed.number("SELECT MAX(id) FROM nodes") > u64::from(nodes));
    assert!(bed.number("SELECT COUNT(*) FROM nodes WHERE id <= 1000") < u64::from(nodes));
    assert_eq!(bed.number(wrong), 0);
    runs_both_ways(&bed, &with_threads(social::load(nodes)));
}
