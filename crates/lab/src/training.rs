//! The load for the profile that guides `make release`.
//!
//! sysbench's own mixes, unmodified, through one Remora: reads that hit and that don't, as text and
//! prepared, transactions, and writes with the log that they make. Each gets the same time, so the
//! compiler learns which way statements usually go, not how often which kind comes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use remora_testkit::interrupt;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_testkit::sysbench::{Length, Sysbench};

use crate::progress::Progress;

const SCHEMA: &str = "sbtest";
/// Rows of the table, and how many of them are read where everything hits.
const ROWS: u32 = 100_000;
const HOT_ROWS: u32 = 1_000;
/// Memory of the Remora, MiB: less than all rows need, so that results are driven out, too.
const MEMORY_MIB: u32 = 16;
/// Clients: some that share a wait of the runtime's, as in use.
const THREADS: u32 = 8;

/// Options of the training.
#[derive(Debug, Clone, clap::Args)]
pub struct TrainingOptions {
    /// The built program that writes down what it does. It does so when it ends.
    #[arg(long)]
    pub program: PathBuf,
    /// Length of each load, seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
}

/// A load: a script, and the rows that it uses.
struct Load {
    script: &'static str,
    rows: u32,
    prepared: bool,
}

const fn load(script: &'static str, rows: u32, prepared: bool) -> Load {
    Load {
        script,
        rows,
        prepared,
    }
}

const LOADS: [Load; 9] = [
    load("oltp_point_select", ROWS, false),
    load("oltp_point_select", ROWS, true),
    load("oltp_point_select", HOT_ROWS, false),
    load("oltp_point_select", HOT_ROWS, true),
    load("select_random_ranges", ROWS, false),
    load("oltp_read_only", ROWS, false),
    load("oltp_read_only", HOT_ROWS, true),
    load("oltp_read_write", ROWS, false),
    load("oltp_read_write", ROWS, true),
];

/// Runs the loads, and has the program end.
///
/// # Errors
/// A program is missing or did not start, sysbench met an error, or the user asked to stop.
pub fn run(options: &TrainingOptions) -> anyhow::Result<()> {
    let length = Duration::from_secs(options.seconds.into());
    let loads = u32::try_from(LOADS.len())?;
    let mut progress = Progress::new(Duration::from_secs(10) + loads * length);
    progress.step("filling sysbench's table");
    let server = Server::start(ServerOptions {
        kind: Some(Kind::MariaDb1011),
        ..ServerOptions::default()
    })?;
    server.execute([format!("CREATE DATABASE {SCHEMA}")])?;
    let mut sysbench = Sysbench::new("oltp_read_write", server.address(), SCHEMA);
    sysbench.rows = ROWS;
    sysbench.prepare().context("can't fill sysbench's table")?;
    let remora = RemoraOptions {
        program: Some(options.program.clone()),
        memory_mib: Some(MEMORY_MIB),
        ..RemoraOptions::following()
    };
    let mut remora = Remora::start(&server, &remora)?;
    for load in &LOADS {
        interrupt::check()?;
        progress.step(&format!("{}, {} rows", load.script, load.rows));
        let mut sysbench = Sysbench::new(load.script, remora.address(), SCHEMA);
        sysbench.rows = load.rows;
        sysbench.threads = THREADS;
        sysbench.prepared = load.prepared;
        sysbench.run(Length::Time(length))?;
    }
    let ended = remora.stop()?;
    progress.done();
    ensure!(
        ended,
        "Remora didn't end when it was told to, and wrote nothing down"
    );
    Ok(())
}
