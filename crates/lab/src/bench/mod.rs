//! `make bench`: point selects as text, prepared and over TLS; directly, through HAProxy and through Remora; and the
//! limit for a hit.
//!
//! All arms run in one session on the same machine and take turns; the figures belong to the machine, the ratios
//! carry over.

mod arms;
mod encrypted;
mod memory;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use crate::progress::Progress;
use crate::table::grouped;
use crate::usage;

use arms::{Arm, Stage};
use report::Findings;

/// sysbench's thread counts.
const THREADS: [u32; 2] = [8, 100];
/// Results stored to measure the memory of one.
const RESULTS: usize = 200_000;
const RESULTS_QUICK: usize = 50_000;
/// Before the first round, so that what is to hit is there.
const WARM_UP: Duration = Duration::from_secs(2);
/// What starting, filling the table and measuring memory takes, roughly.
const PREPARATION: Duration = Duration::from_mins(1);

/// The benchmark's options.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {
    /// Short rounds: to see that it works. The figures mean little.
    #[arg(long)]
    pub quick: bool,
    /// Rounds of each arm [default: 5; 2 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: Option<u32>,
    /// Length of a round, seconds [default: 5; 1 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: Option<u32>,
    /// File that a line with the results is appended to.
    #[arg(long, default_value = "results/bench.jsonl")]
    pub results: PathBuf,
}

/// Runs the benchmark.
///
/// # Errors
/// A part is missing or did not start, sysbench met an error, or the user asked to stop.
pub fn run(options: &BenchOptions) -> anyhow::Result<()> {
    usage::raise_open_files_limit();
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 5 });
    let seconds = options.seconds.unwrap_or(if options.quick { 1 } else { 5 });
    let length = Duration::from_secs(seconds.into());
    let runs = u32::try_from(Arm::ALL.len() * THREADS.len())? * rounds;
    let mut progress = Progress::new(PREPARATION + runs * length);

    progress.step(&format!(
        "filling a table of {} rows",
        grouped(f64::from(arms::ROWS))
    ));
    let server = Stage::server(u32::try_from(memory::CONNECTIONS)? + 200)?;
    progress.step("measuring memory: idle connections");
    let idle_bytes = memory::idle_connections(&server)?;
    progress.step("measuring memory: stored results");
    let results = if options.quick {
        RESULTS_QUICK
    } else {
        RESULTS
    };
    let per_result = memory::per_result(&server, results)?;

    progress.step("starting the arms and warming up");
    let threads = std::thread::available_parallelism()?.get();
    let stage = Stage::start(server, threads)?;
    stage.measure(Arm::RemoraMiss, THREADS[0], WARM_UP)?;
    stage.measure(Arm::RemoraHit, THREADS[0], WARM_UP)?;
    stage.measure(Arm::RemoraHitPrepared, THREADS[0], WARM_UP)?;
    let mut samples = Vec::new();
    for round in 1..=rounds {
        for threads in THREADS {
            for arm in Arm::ALL {
                let name = arm.name();
                progress.step(&format!(
                    "round {round} of {rounds}: {threads} threads, {name}"
                ));
                samples.push(stage.measure(arm, threads, length)?);
            }
        }
    }
    progress.done();
    let threads = THREADS.to_vec();
    let findings = Findings {
        samples,
        threads,
        idle_bytes,
        per_result,
        rounds,
        seconds,
    };
    findings.print();
    findings.keep(&options.results)?;
    println!("Kept as a line of {}.", options.results.display());
    Ok(())
}
