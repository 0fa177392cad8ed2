//! Point selects as text, prepared and over TLS, and the memory of connections and results.

use std::path::Path;
use std::time::Duration;

use super::Size;
use super::arms::{self, Arm, Stage};
use super::memory;
use super::report::Findings;
use crate::progress::Progress;
use crate::table::grouped;

/// sysbench's thread counts.
const THREADS: [u32; 2] = [8, 100];
/// Results stored to measure the memory of one.
const RESULTS: usize = 200_000;
const RESULTS_QUICK: usize = 50_000;
/// Before the first round, so that what is to hit is there.
const WARM_UP: Duration = Duration::from_secs(2);
/// What starting, filling the table and measuring memory takes, roughly.
const PREPARATION: Duration = Duration::from_mins(1);

/// Measures, prints and keeps.
pub(super) fn run(size: Size, file: &Path) -> anyhow::Result<()> {
    let Size {
        rounds,
        seconds,
        quick,
    } = size;
    let length = Duration::from_secs(seconds.into());
    let runs = u32::try_from(Arm::ALL.len() * THREADS.len())? * rounds;
    let mut progress = Progress::new(PREPARATION + runs * length);

    progress.step(&format!(
        "filling a table of {} rows",
        grouped(f64::from(arms::ROWS))
    ));
    let server = Stage::server(u32::try_from(memory::CONNECTIONS)? + 200, arms::ROWS)?;
    progress.step("measuring memory: idle connections");
    let idle_bytes = memory::idle_connections(&server)?;
    progress.step("measuring memory: stored results");
    let results = if quick { RESULTS_QUICK } else { RESULTS };
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
    findings.keep(file)
}
