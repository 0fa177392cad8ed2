//! `make drivers`: real drivers, each directly and through Remora.
//!
//! The programs lie in the repository's `drivers`; each does the checks of `matrix::CHECKS` and
//! prints a line for each, see `drivers/README.md`. Here they get a private server, a Remora and a
//! fresh schema each, and what they print is judged.

mod accounts;
mod bed;
mod matrix;
mod report;
mod runs;
mod security;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;

use crate::progress::Progress;
use bed::Bed;
use matrix::{DRIVERS, Driver};
use runs::Run;

/// So many servers are gone through side by side: the programs wait for much of their time.
const RUNS_AT_ONCE: u32 = 2;
/// A usual run of one program.
const USUAL_RUN: Duration = Duration::from_secs(15);

/// Options of `make drivers`.
#[derive(Debug, Clone, clap::Args)]
pub struct DriversOptions {
    /// Only these drivers, by name.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these servers: the kinds of `scripts/servers --list` and `mariadb-10.11`, with `+tls`
    /// for TLS on both sides.
    #[arg(long, value_delimiter = ',')]
    pub runs: Option<Vec<Run>>,
    /// Only these checks, by name.
    #[arg(long, value_delimiter = ',')]
    pub checks: Vec<String>,
    /// Runs no program: starts the first server, prints the environment for one, to run it by hand,
    /// and waits to be interrupted.
    #[arg(long)]
    pub keep: bool,
    /// Shows all that the programs write.
    #[arg(long)]
    pub verbose: bool,
}

/// Runs the matrix.
///
/// # Errors
/// A driver did not do what is expected of it, a part is missing or did not start, or the user
/// asked to stop.
pub fn run(options: &DriversOptions) -> anyhow::Result<()> {
    let drivers = chosen(&options.only)?;
    let runs = options.runs.clone().unwrap_or_else(Run::defaults);
    if options.keep {
        let first = runs.first().copied().unwrap_or_default();
        return Bed::start(first)?.keep();
    }
    let programs = u32::try_from(drivers.len() * runs.len())?;
    let progress = Mutex::new(Progress::new(USUAL_RUN * programs / RUNS_AT_ONCE));
    let mut faults = Vec::new();
    for pair in runs.chunks(RUNS_AT_ONCE as usize) {
        let done: Vec<anyhow::Result<Done>> = std::thread::scope(|scope| {
            let threads: Vec<_> = pair
                .iter()
                .map(|run| scope.spawn(|| run_all(*run, &drivers, options, &progress)))
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|done| done.unwrap_or_else(|_| bail!("a thread of the matrix has panicked")))
                .collect()
        });
        progress_of(&progress).done();
        for one in done {
            let one = one?;
            println!("\n{}", one.page);
            faults.extend(one.faults);
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("the matrix has faults:\n  {}", faults.join("\n  "))
}

/// What one server's run has shown.
struct Done {
    page: String,
    faults: Vec<String>,
}

/// Runs all drivers against one server, one after the other.
fn run_all(
    run: Run,
    drivers: &[&'static Driver],
    options: &DriversOptions,
    progress: &Mutex<Progress>,
) -> anyhow::Result<Done> {
    let step = |what: &str| progress_of(progress).step(&format!("{run}: {what}"));
    step("starting a server and Remora");
    let bed = Bed::start(run)?;
    let mut reports = Vec::new();
    let mut faults = Vec::new();
    for driver in drivers {
        step(driver.name);
        let (report, plugins) = bed.run(driver, options)?;
        let found = report.faults(&plugins, run, &options.checks);
        if !found.is_empty() {
            eprintln!("\n{run}: {} has faults. {}", driver.name, bed.state());
        }
        let name = driver.name;
        faults.extend(
            found
                .into_iter()
                .map(|fault| format!("{run}: {name}: {fault}")),
        );
        reports.push(report);
    }
    let page = format!("{run}: {}\n\n{}", bed.version(), report::matrix(&reports));
    Ok(Done { page, faults })
}

fn progress_of(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<&'static Driver>> {
    if let Some(name) = only
        .iter()
        .find(|name| !DRIVERS.iter().any(|d| d.name == **name))
    {
        let known: Vec<&str> = DRIVERS.iter().map(|driver| driver.name).collect();
        bail!("no driver is called {name}; there are {}", known.join(", "));
    }
    let all = DRIVERS.iter();
    Ok(all
        .filter(|d| only.is_empty() || only.iter().any(|name| name == d.name))
        .collect())
}
