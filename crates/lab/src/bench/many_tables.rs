//! Many tables, each read once and again, with catalogues of several sizes: experiment E2.
//!
//! Three passes over all tables. The first finds no definitions; it ends when all have been loaded,
//! which sessions don't wait for. The second finds those for which the catalogue has room, and its
//! answers are kept. The third is answered from memory where they were.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::json;

use super::Size;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::{cpu_time, resident_bytes};
use remora_testkit::client::ConnectOptions;
use remora_testkit::interrupt;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions};

/// The catalogue's capacities.
const CAPACITIES: [u32; 4] = [64, 1_024, 16_384, 131_072];
/// Clients, each with a part of the tables.
const CLIENTS: usize = 4;
/// The rate of a larger catalogue, of the smallest one's.
const RATE_MIN: f64 = 0.9;
/// Remora's processor time per table in the first pass, of that with the smallest catalogue.
const CPU_MAX: f64 = 1.1;
/// Memory for results, MiB: more than is needed.
const MEMORY_MIB: u32 = 1_024;
/// Rounds: each takes long.
const ROUNDS_MAX: u32 = 2;
/// Longest wait for an answer: the server opens tables.
const TIMEOUT: Duration = Duration::from_mins(5);

/// What a round showed of one capacity.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Tables a second in each pass.
    rates: [f64; PASSES.len()],
    /// Remora's processor time per table in each pass, microseconds: what the server does, and what
    /// others take of the processors, isn't in it.
    cpu_us: [f64; PASSES.len()],
    /// Share of the third pass that was answered from memory.
    hits: f64,
    /// Definitions loaded for each table, in all passes.
    loads_per_table: f64,
    /// Resident memory for each table after all passes, its results included.
    table_bytes: f64,
}

/// The passes.
const PASSES: [&str; 3] = ["first", "second", "third"];

/// Measures.
pub(super) fn run(tables: u32, size: Size, progress: &mut Progress) -> anyhow::Result<PartReport> {
    progress.step(&format!("tables: making {}", grouped(tables.into())));
    let server = filled_server(tables, progress)?;
    let rounds = size.rounds.min(ROUNDS_MAX);
    let mut samples: Vec<Vec<Sample>> = CAPACITIES.iter().map(|_| Vec::new()).collect();
    // The server's own caches.
    pass(&server.app(), tables)?;
    for round in 1..=rounds {
        // Whatever the server does the slower the longer it runs, it does to all of them.
        let mut turns: Vec<_> = CAPACITIES.iter().zip(&mut samples).collect();
        if round % 2 == 0 {
            turns.reverse();
        }
        for (capacity, samples) in turns {
            progress.step(&format!(
                "tables: round {round} of {rounds}, capacity {}",
                grouped((*capacity).into())
            ));
            samples.push(measure(&server, tables, *capacity)?);
        }
    }
    Ok(report(tables, &samples))
}

fn report(tables: u32, samples: &[Vec<Sample>]) -> PartReport {
    let mut table = Table::new(&[
        "capacity",
        "first pass, tables/s",
        "second",
        "third",
        "CPU µs/table: first",
        "second",
        "third",
        "hits of the third",
        "loads per table",
        "bytes per table",
    ]);
    let (mut marks, mut figures, mut smallest) = (Vec::new(), Vec::new(), None);
    for (capacity, samples) in CAPACITIES.iter().zip(samples) {
        let of =
            |of: &dyn Fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<f64>>());
        let rates: [f64; PASSES.len()] = std::array::from_fn(|pass| of(&|s| s.rates[pass]));
        let cpu_us: [f64; PASSES.len()] = std::array::from_fn(|pass| of(&|s| s.cpu_us[pass]));
        let (loads, bytes) = (of(&|s| s.loads_per_table), of(&|s| s.table_bytes));
        let hits = of(&|s| s.hits);
        let capacity_text = grouped((*capacity).into());
        let mut row = vec![capacity_text.clone()];
        row.extend(rates.map(grouped));
        row.extend(cpu_us.map(|us| format!("{us:.0}")));
        row.push(format!("{:.0} %", hits * 100.0));
        row.extend([format!("{loads:.2}"), grouped(bytes)]);
        table.row(row);
        figures.push(
            json!({"capacity": capacity, "tables_per_s": rates, "cpu_us": cpu_us, "hits": hits,
                            "loads_per_table": loads, "table_bytes": bytes}),
        );
        let (smallest, least_cpu_us) = smallest.get_or_insert((rates, cpu_us));
        if *capacity != CAPACITIES[0] {
            let what = format!("Remora's CPU, capacity {capacity_text} / 64, first pass");
            marks.push(Mark::at_most(
                what,
                CPU_MAX,
                cpu_us[0] / least_cpu_us[0],
                "",
            ));
            for (name, (rate, least)) in PASSES.iter().zip(rates.iter().zip(&*smallest)) {
                let what = format!("capacity {capacity_text} / 64, {name} pass");
                marks.push(Mark::at_least(what, RATE_MIN, rate / least, ""));
            }
        }
    }
    PartReport {
        title: format!(
            "{} tables of one column, each read by one of {CLIENTS} clients: until all definitions are loaded, again, and from memory. Bytes: resident memory, results included.",
            grouped(tables.into())
        ),
        table,
        marks,
        figures: json!({"tables": tables, "capacities": figures}),
    }
}

/// A server with so many tables. All are in one file: so many files would take longer than the
/// tables.
fn filled_server(tables: u32, progress: &mut Progress) -> anyhow::Result<Server> {
    let server = Server::start(ServerOptions {
        kind: Some(Kind::MariaDb1011),
        buffer_pool_mib: 512,
        further: vec![
            "--innodb-file-per-table=0".to_owned(),
            "--innodb-flush-method=nosync".to_owned(),
        ],
        ..ServerOptions::default()
    })?;
    let mut root = server.root()?;
    root.query(&format!("USE {SCHEMA}"))?;
    root.query("SET sql_log_bin = 0")?;
    for number in 0..tables {
        if number % 1_000 == 0 {
            interrupt::check()?;
            progress.update(&format!("tables: made {}", grouped(number.into())));
        }
        root.query(&format!("CREATE TABLE t{number} (a INT) ENGINE=InnoDB"))?;
    }
    Ok(server)
}

fn measure(server: &Server, tables: u32, capacity: u32) -> anyhow::Result<Sample> {
    let mut options = RemoraOptions::following()
        .with("follow.catalogue_tables_max", &capacity.to_string())
        // Clients go faster than definitions are loaded: all of them may wait.
        .with("follow.catalogue_queue_max", "1000000");
    options.memory_mib = Some(MEMORY_MIB);
    let remora = Remora::start(server, &options)?;
    let mut app = server.app().at(remora.address());
    app.timeout = TIMEOUT;
    // The catalogue first asks for what it needs of all tables.
    remora_testkit::process::wait_for("the catalogue", TIMEOUT, || {
        app.connect()?.query("SELECT a FROM t0")?;
        Ok((remora.metrics()?.sum("remora_store_entries") > 0.0).then_some(()))
    })?;
    let resident = resident_bytes(remora.id())?;
    let loads =
        || -> anyhow::Result<f64> { Ok(remora.metrics()?.sum("remora_catalogue_loads_total")) };
    let mut cpu = vec![cpu_time(remora.id())?];
    let began = Instant::now();
    pass(&app, tables)?;
    remora_testkit::process::wait_for("the definitions", TIMEOUT, || {
        Ok((loads()? >= f64::from(tables)).then_some(()))
    })?;
    let first = f64::from(tables) / began.elapsed().as_secs_f64();
    cpu.push(cpu_time(remora.id())?);
    let second = pass(&app, tables)?;
    cpu.push(cpu_time(remora.id())?);
    let hits_before = remora.metrics()?.sum("remora_hits_total");
    let third = pass(&app, tables)?;
    cpu.push(cpu_time(remora.id())?);
    let per_table = |pass: usize| {
        cpu[pass + 1].saturating_sub(cpu[pass]).as_secs_f64() * 1e6 / f64::from(tables)
    };
    let hits = remora.metrics()?.sum("remora_hits_total") - hits_before;
    let grown = resident_bytes(remora.id())?.saturating_sub(resident);
    #[allow(clippy::cast_precision_loss)]
    Ok(Sample {
        rates: [first, second, third],
        cpu_us: std::array::from_fn(per_table),
        hits: hits / f64::from(tables),
        loads_per_table: loads()? / f64::from(tables),
        table_bytes: grown as f64 / f64::from(tables),
    })
}

/// Reads each table once; gives tables a second.
fn pass(app: &ConnectOptions, tables: u32) -> anyhow::Result<f64> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let reader = |first: usize| {
            scope.spawn(move || -> anyhow::Result<()> {
                let mut client = app.connect()?;
                for number in (first..tables as usize).step_by(CLIENTS) {
                    interrupt::check()?;
                    client.query(&format!("SELECT * FROM t{number}"))?;
                }
                Ok(())
            })
        };
        let readers: Vec<_> = (0..CLIENTS).map(reader).collect();
        for reader in readers {
            reader.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(f64::from(tables) / began.elapsed().as_secs_f64())
    })
}
