//! More clients than the server can work for: what `upstream.statements_max` brings, and what it
//! costs where it isn't needed.

use serde_json::json;

use super::Size;
use super::arms::{BENCH_SCHEMA, Stage};
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::{cpu_time, microseconds_per_query};
use remora_testkit::interrupt;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;
use remora_testkit::sysbench::{Length, Sysbench};

/// Clients that send at the same time.
const CLIENTS: [u32; 3] = [8, 64, 512];
/// Rows of the table, and those that all clients write.
const ROWS: u32 = 100_000;
const CONTENDED_ROWS: u32 = 10;
/// Statements at the server where they are limited.
const STATEMENTS_MAX: &str = "8";
/// Memory of a Remora where nothing hits, MiB: as in the part `points`.
const COLD_MEMORY_MIB: u32 = 8;

/// Least throughput with the limit, of that without, where all clients send at the same time.
const READS_MIN: f64 = 0.90;
const CONTENDED_WRITES_MIN: f64 = 1.50;

/// What the statements do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Any of all rows, none of which is in memory.
    Reads,
    /// Ten rows, whose locks all clients want.
    ContendedWrites,
}

impl Load {
    const ALL: [Load; 2] = [Load::Reads, Load::ContendedWrites];

    fn name(self) -> &'static str {
        match self {
            Load::Reads => "reads, nothing hits",
            Load::ContendedWrites => "writes of ten rows",
        }
    }

    /// Least throughput with the limit, of that without.
    fn least(self) -> f64 {
        match self {
            Load::Reads => READS_MIN,
            Load::ContendedWrites => CONTENDED_WRITES_MIN,
        }
    }

    fn sysbench(self, way: &Way<'_>, clients: u32) -> Sysbench {
        let (script, rows) = match self {
            Load::Reads => ("oltp_point_select", ROWS),
            Load::ContendedWrites => ("oltp_update_non_index", CONTENDED_ROWS),
        };
        let address = way.remora.map_or(way.server.address(), Remora::address);
        let mut sysbench = Sysbench::new(script, address, BENCH_SCHEMA);
        sysbench.rows = rows;
        sysbench.threads = clients;
        sysbench.further = vec![
            "--rand-type=uniform".to_owned(),
            "--mysql-ignore-errors=all".to_owned(),
        ];
        sysbench
    }
}

/// A way to the server.
struct Way<'a> {
    name: &'static str,
    server: &'a Server,
    remora: Option<&'a Remora>,
}

/// What a round showed.
#[derive(Debug, Clone, Copy)]
struct Sample {
    queries_per_s: f64,
    p95_ms: f64,
    /// The server's processor time.
    server_us: f64,
}

/// Measures.
pub(super) fn run(size: Size, progress: &mut Progress) -> anyhow::Result<PartReport> {
    progress.step("concurrency: filling a table");
    let server = Stage::server(2 * CLIENTS[CLIENTS.len() - 1], ROWS)?;
    let start = |statements_max| {
        let options = RemoraOptions {
            memory_mib: Some(COLD_MEMORY_MIB),
            ..RemoraOptions::following()
        };
        Remora::start(
            &server,
            &options.with("upstream.statements_max", statements_max),
        )
    };
    let (unlimited, limited) = (start("0")?, start(STATEMENTS_MAX)?);
    let way = |name, remora| Way {
        name,
        server: &server,
        remora,
    };
    let ways = [
        way("direct", None),
        way("Remora, no limit", Some(&unlimited)),
        way("Remora, at most 8 at the server", Some(&limited)),
    ];
    let mut table = Table::new(&[
        "load",
        "clients",
        "through",
        "queries/s",
        "p95 ms",
        "server's CPU µs/query",
    ]);
    let (mut figures, mut marks) = (Vec::new(), Vec::new());
    for load in Load::ALL {
        for clients in CLIENTS {
            let mut samples = vec![Vec::new(); ways.len()];
            for round in 1..=size.rounds {
                for (way, samples) in ways.iter().zip(&mut samples) {
                    progress.step(&format!(
                        "concurrency: {}, {clients} clients, round {round} of {}: {}",
                        load.name(),
                        size.rounds,
                        way.name
                    ));
                    samples.push(measure(load, way, clients, size)?);
                }
            }
            let medians: Vec<_> = samples.iter().map(|samples| median_of(samples)).collect();
            if clients == CLIENTS[CLIENTS.len() - 1] {
                let [.., unlimited, limited] = &medians[..] else {
                    anyhow::bail!("there are two arms with Remora");
                };
                let what = format!("{}, {clients} clients: limited / not", load.name());
                let ratio = limited.queries_per_s / unlimited.queries_per_s.max(1e-9);
                marks.push(Mark::at_least(what, load.least(), ratio, ""));
            }
            for (way, sample) in ways.iter().zip(medians) {
                table.row([
                    load.name().to_owned(),
                    clients.to_string(),
                    way.name.to_owned(),
                    grouped(sample.queries_per_s),
                    format!("{:.2}", sample.p95_ms),
                    format!("{:.1}", sample.server_us),
                ]);
                figures.push(json!({
                    "load": load.name(), "clients": clients, "arm": way.name,
                    "queries_per_s": sample.queries_per_s, "p95_ms": sample.p95_ms,
                    "server_us": sample.server_us,
                }));
            }
        }
    }
    Ok(PartReport {
        title:
            "More clients than the server can work for, with and without a limit of its statements."
                .to_owned(),
        table,
        marks,
        figures: json!({"runs": figures}),
    })
}

fn measure(load: Load, way: &Way<'_>, clients: u32, size: Size) -> anyhow::Result<Sample> {
    interrupt::check()?;
    let id = way.server.id().unwrap_or_default();
    let before = cpu_time(id)?;
    let report = load
        .sysbench(way, clients)
        .run(Length::Time(size.length()))?;
    let used = cpu_time(id)?.saturating_sub(before);
    Ok(Sample {
        queries_per_s: report.queries_per_s,
        p95_ms: report.p95_ms,
        server_us: microseconds_per_query(used, report.queries),
    })
}

fn median_of(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> f64| median(&samples.iter().map(field).collect::<Vec<_>>());
    Sample {
        queries_per_s: of(|sample| sample.queries_per_s),
        p95_ms: of(|sample| sample.p95_ms),
        server_us: of(|sample| sample.server_us),
    }
}
