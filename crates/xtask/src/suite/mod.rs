//! Runs the test programs: each on the servers that it states, as many at a time as the processors
//! have time for.
//!
//! | file | what it knows |
//! |---|---|
//! | `build` | which programs there are, from `cargo test --no-run` |
//! | `statement` | what a program's first lines say of it |
//! | `job` | one program on one server, or a command: its process, log and outcome |
//! | `schedule` | which jobs run side by side |
//! | `processors` | how busy the machine is |
//! | `report` | the table at the end |

mod build;
mod job;
mod processors;
mod report;
mod schedule;
pub(crate) mod statement;

use std::time::Instant;

use anyhow::{bail, ensure};
use clap::Args;

use build::Program;
use job::{Extent, Job, ProgramRun};
use statement::{KINDS, Servers, Tier};

/// The program whose tests that are usually left out only take long. Those of others need
/// something that isn't there.
const LONG: &str = "simulation";

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// With these servers only (`mariadb-10.11`, `mysql-8.0`, …). Programs without a server then
    /// don't run.
    kinds: Vec<String>,
    /// Only what a quick check takes: no program that says `Tier: test`, and the first server only.
    #[arg(long, conflicts_with = "long")]
    check: bool,
    /// Only this program, by its name (`answers`) or with its package (`remora-wire::packets`). Can
    /// be repeated.
    #[arg(long = "only", value_name = "PROGRAM")]
    only: Vec<String>,
    /// Runs this program again and again, so many times, until it fails. With --only for what it
    /// is.
    #[arg(long, value_names = ["TIMES", "PROGRAM"], num_args = 2)]
    repeat: Vec<String>,
    /// Only tests whose names contain this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Also what takes long: programs that say `Tier: test on …` on their other servers, modules
    /// called `exhaustive`, and the simulation's tests that are usually left out (`#[ignore]`).
    #[arg(long)]
    long: bool,
    /// Runs this command of the shell as well, beside the test programs, once they are built. Can
    /// be repeated.
    #[arg(long = "beside", value_name = "COMMAND")]
    beside: Vec<String>,
    /// Only says what would run where.
    #[arg(long)]
    list: bool,
}

/// Runs what the options ask for; whether all of it passed.
///
/// # Errors
/// Something doesn't build, a program doesn't say where it runs, or there is no such server or
/// program.
pub(crate) fn run(options: &TestOptions) -> anyhow::Result<bool> {
    for kind in &options.kinds {
        ensure!(
            KINDS.contains(&kind.as_str()),
            "unknown server '{kind}'; there are {}",
            KINDS.join(", ")
        );
    }
    let (times, only) = wanted(options)?;
    let started = Instant::now();
    let programs = build::programs()?;
    for name in &only {
        ensure!(
            programs.iter().any(|program| program.is_called(name)),
            "there is no test program '{name}'; --list shows them"
        );
    }
    println!("built in {} s", started.elapsed().as_secs());
    let mut jobs: Vec<Job> = options.beside.iter().cloned().map(Job::Command).collect();
    for round in 0..times {
        for program in &programs {
            if only.is_empty() || only.iter().any(|name| program.is_called(name)) {
                jobs.extend(jobs_of(program, options, round));
            }
        }
    }
    if options.list {
        for job in &jobs {
            println!("{job}");
        }
        return Ok(true);
    }
    let logs = build::target_directory().join("test-logs");
    let until_failure = times > 1;
    let outcomes = schedule::run(jobs, &logs, until_failure)?;
    Ok(report::tell(&outcomes, started.elapsed()))
}

/// How often, and which programs; none stands for all.
fn wanted(options: &TestOptions) -> anyhow::Result<(usize, Vec<String>)> {
    let [times, program] = &options.repeat[..] else {
        return Ok((1, options.only.clone()));
    };
    match times.parse() {
        Ok(times) if times > 0 => Ok((times, vec![program.clone()])),
        _ => bail!("--repeat wants a number of times, not '{times}'"),
    }
}

fn jobs_of(program: &Program, options: &TestOptions, round: usize) -> Vec<Job> {
    let tier = &program.statement.tier;
    if options.check && *tier != Tier::Check {
        return Vec::new();
    }
    let names_program = !options.only.is_empty() || !options.repeat.is_empty();
    let takes_all = options.long || names_program;
    let is_taken = |kind: &str| match tier {
        Tier::TestOn(kinds) => takes_all || !options.kinds.is_empty() || kinds.contains(&kind),
        Tier::Check | Tier::Test => true,
    };
    let kinds: Vec<Option<&'static str>> = match &program.statement.servers {
        Servers::None if options.kinds.is_empty() => vec![None],
        Servers::None => Vec::new(),
        Servers::These(kinds) => kinds
            .iter()
            .filter(|kind| options.kinds.is_empty() || options.kinds.iter().any(|one| one == *kind))
            .filter(|kind| !options.check || **kind == KINDS[0])
            .filter(|kind| is_taken(kind))
            .map(|kind| Some(*kind))
            .collect(),
    };
    let extent = match (options.check, takes_all) {
        (true, _) => Extent::Quick,
        (false, false) => Extent::Usual,
        (false, true) => Extent::Long,
    };
    kinds
        .into_iter()
        .map(|kind| {
            Job::Program(ProgramRun {
                program: program.clone(),
                kind,
                filter: options.filter.clone(),
                round,
                with_ignored: options.long && program.name == LONG,
                extent,
            })
        })
        .collect()
}
