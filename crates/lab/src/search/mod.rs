//! The oracle by search: random schemas, data, queries and changes against a real server with
//! Remora in front.
//!
//! A [`Script`] is made of a seed by [`generate`]: tables of all types with keys, foreign keys,
//! triggers, partitions, views and code behind them; queries that are held; and changes.
//! [`Bed::run`] applies the changes one after the other, through Remora or past it, and after each
//! compares every held result with what the server says: right after the answer if it was written
//! through Remora, otherwise once Remora has seen the change (or while the log that would tell it
//! is held back), and again when dropped results have been filled anew. Some of the sessions that
//! changed something ask then: what memory tells them must be what the server tells that session.
//! In a race, readers ask while changes are made. On demand more happens around the statements
//! ([`Surroundings`]): commits that come late, facts and privileges that change, another server
//! behind the address. What differs is a [`Failure`]; [`shrink`] makes
//! its script small, and it is written to a file of SQL that can be kept under
//! `crates/lab/search/regressions`, which the test runs first.
//!
//! It knows nothing of how Remora decides what to drop; that it notices is shown by
//! [`SeededFault`]s.

mod answer;
mod bed;
mod changes;
mod conditions;
mod definitions;
mod dice;
mod fault;
mod front;
pub mod generate;
mod hidden;
mod joins;
mod questions;
mod report;
mod run;
mod schema;
mod script;
mod shrink;
mod surroundings;
mod types;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

pub use bed::Bed;
use dice::Dice;
pub use fault::SeededFault;
pub use front::Build;
pub use generate::Size;
pub use report::{Tallies, Tally};
pub use run::{Failure, Run};
pub use script::{Change, Question, Route, Script, Statement};
pub use shrink::shrink;
pub use surroundings::Surroundings;

use crate::progress::Progress;
use remora_testkit::interrupt;
use remora_testkit::load::Random;
use remora_testkit::programs;
use remora_testkit::servers::Kind;

/// One case of so many is a race.
const RACES: u64 = 6;
/// Runs that making a failing case small may take, unless the user says otherwise.
const SHRINK_RUNS: usize = 1_500;
/// So many cases are run in any case before a search that finds no pairs is given up.
const CASES_MIN: u64 = 20;
/// So many crashes of the server itself are overlooked.
const CRASHES_MAX: usize = 10;
/// Pairs a second, for the first guess at how long a search takes.
const USUAL_PAIRS_PER_SECOND: u64 = 500;

/// Options of `remora-lab search`.
#[derive(Debug, Clone, clap::Args)]
pub struct SearchOptions {
    /// How many pairs of a query and a change to check.
    #[arg(long, default_value_t = 100_000)]
    pub pairs: u64,
    /// The seed; without one, a fresh one is taken and printed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The server, by the names of `scripts/servers --list`, or `mariadb-10.11`;
    /// `REMORA_TEST_SERVER` otherwise.
    #[arg(long)]
    pub server: Option<String>,
    /// Queries held in a case.
    #[arg(long, default_value_t = 100)]
    pub queries: usize,
    /// Changes in a case.
    #[arg(long, default_value_t = 30)]
    pub changes: usize,
    /// Breaks a rule on purpose: the search must then find something.
    #[arg(long)]
    pub fault: Option<SeededFault>,
    /// Most changes run code that their text doesn't show.
    #[arg(long)]
    pub mostly_code: bool,
    /// What else happens around the statements. A rule that is broken on purpose chooses those in
    /// which it shows.
    #[arg(long)]
    pub surroundings: Option<Surroundings>,
    /// The program of another build, which is searched in place of this one.
    #[arg(long, value_name = "PATH", conflicts_with = "fault")]
    pub remora: Option<PathBuf>,
    /// Runs that making a failing case small may take.
    #[arg(long, value_name = "NUMBER", default_value_t = SHRINK_RUNS)]
    pub shrink_runs: usize,
    /// Goes on after a failure.
    #[arg(long)]
    pub keep_going: bool,
    /// Runs the script in this file instead, and nothing else.
    #[arg(long)]
    pub replay: Option<PathBuf>,
    /// Where scripts of failures are written.
    #[arg(long, default_value = "target/search-failures")]
    pub failures: PathBuf,
}

/// A search: what is looked for, and for how long.
#[derive(Debug, Clone)]
pub struct Search {
    /// Everything follows from it.
    pub seed: u64,
    /// Ends when so many pairs have been checked.
    pub pairs: u64,
    /// How large each case is.
    pub size: Size,
    /// Ends with the first failure.
    pub until_failure: bool,
    /// Runs that making a failing case small may take; 0: it is left as it is.
    pub shrink_runs: usize,
    /// Where scripts of failures are written.
    pub failures: PathBuf,
}

/// A failure with its small script.
#[derive(Debug)]
pub struct Found {
    /// The seed of its case.
    pub seed: u64,
    /// What differs in the small script.
    pub failure: Failure,
    /// The small script.
    pub script: Script,
    /// Where it was written.
    pub file: PathBuf,
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Counts by shape.
    pub tallies: Tallies,
    /// Cases that were run.
    pub cases: u64,
    /// Cases at which the server itself crashed.
    pub crashes: Vec<PathBuf>,
    /// Failures.
    pub found: Vec<Found>,
}

impl Search {
    /// Runs it on a bed. Told is how many pairs have been checked, after each case.
    ///
    /// # Errors
    /// A case can't be run; the message says which. That is worth a look too.
    pub fn run(&self, bed: &mut Bed, mut told: impl FnMut(u64)) -> anyhow::Result<Findings> {
        let (mut dice, mut findings) = (Dice::new(self.seed), Findings::default());
        while findings.tallies.total().pairs < self.pairs {
            interrupt::check()?;
            let seed = dice.seed();
            findings.cases += 1;
            if findings.cases > self.pairs.max(CASES_MIN) {
                bail!(
                    "{} cases gave {} pairs only",
                    findings.cases,
                    findings.tallies.total().pairs
                );
            }
            let is_race = findings.cases.is_multiple_of(RACES);
            let script = generate::script(seed, bed.kind(), self.size, is_race);
            let run = match bed.run(&script) {
                Ok(run) => run,
                Err(error) => {
                    let why = format!("{error:#}\n{}", bed.server_log());
                    let file = self.write(bed, seed, &script, &why)?;
                    if bed.has_crashed() && findings.crashes.len() < CRASHES_MAX {
                        findings.crashes.push(file);
                        bed.renew()?;
                        continue;
                    }
                    return Err(error.context(format!(
                        "case {seed} can't be run; it is in {}",
                        file.display()
                    )));
                }
            };
            findings.tallies.add(&run.tallies);
            if let Some(failure) = run.failure {
                eprintln!("case {seed}: {failure}");
                let (script, failure) = shrink(bed, &script, failure, self.shrink_runs);
                let file = self.write(bed, seed, &script, &failure.to_string())?;
                findings.found.push(Found {
                    seed,
                    failure,
                    script,
                    file,
                });
                if self.until_failure {
                    break;
                }
            }
            told(findings.tallies.total().pairs);
        }
        Ok(findings)
    }

    fn write(&self, bed: &Bed, seed: u64, script: &Script, why: &str) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(&self.failures).context("can't make the directory for failures")?;
        let file = self
            .failures
            .join(format!("{}-{seed}.sql", bed.kind().as_str()));
        let remarks: Vec<String> = why.lines().map(|line| format!("-- # {line}\n")).collect();
        std::fs::write(&file, format!("{}{}", remarks.concat(), script.to_text()))
            .context("can't write a failure")?;
        Ok(file)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let change = self
            .change
            .map_or("no change".to_owned(), |at| format!("change {}", at + 1));
        write!(
            f,
            "query {} after {change}: {}\n  server: {}\n  Remora: {}",
            self.question + 1,
            self.what,
            self.expected,
            self.got
        )
    }
}

/// The scripts of a directory that are for a kind of server, with their names.
///
/// # Errors
/// A file can't be read.
pub fn regressions(directory: &Path, kind: Kind) -> anyhow::Result<Vec<(String, Script)>> {
    let mut all = Vec::new();
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        let script = Script::parse(&text).with_context(|| name.clone())?;
        if script.servers.is_empty() || script.servers.iter().any(|one| one == kind.as_str()) {
            all.push((name, script));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// `remora-lab search`.
///
/// # Errors
/// Something was found, or a part is missing or did not start, or the user asked to stop.
pub fn run(options: &SearchOptions) -> anyhow::Result<()> {
    let kind = kind(options.server.as_deref())?;
    let other = options.remora.as_deref().map(programs::other_remora);
    let build = Build {
        program: other.transpose()?,
        broken: options.fault.map(SeededFault::rules).unwrap_or_default(),
    };
    let mut bed = Bed::start(kind, build)?;
    if let Some(file) = &options.replay {
        return replay(&mut bed, file);
    }
    let seed = options.seed.unwrap_or_else(Random::fresh_seed);
    let search = Search {
        seed,
        pairs: options.pairs,
        size: Size {
            questions: options.queries.max(1),
            changes: options.changes.max(1),
            is_mostly_code: options.mostly_code,
            surroundings: options
                .surroundings
                .or(options.fault.and_then(SeededFault::surroundings)),
        },
        until_failure: !options.keep_going,
        shrink_runs: options.shrink_runs,
        failures: options.failures.clone(),
    };
    let mut progress = Progress::new(Duration::from_secs(options.pairs / USUAL_PAIRS_PER_SECOND));
    progress.step(&format!("{}: seed {seed}", kind.as_str()));
    let began = Instant::now();
    let findings = search.run(&mut bed, |pairs| {
        progress.update(&format!("{pairs} pairs of {}", options.pairs));
    })?;
    progress.done();
    println!(
        "{}: seed {seed}, {} cases, {:.0} s\n",
        kind.as_str(),
        findings.cases,
        began.elapsed().as_secs_f64()
    );
    println!("{}", findings.tallies);
    for file in &findings.crashes {
        println!("the server itself crashed at {}", file.display());
    }
    for found in &findings.found {
        println!(
            "{}\n{}\n{}",
            found.file.display(),
            found.failure,
            found.script.to_text()
        );
    }
    match findings.found.len() {
        0 => Ok(()),
        count => bail!("{count} results differ from the server's"),
    }
}

fn replay(bed: &mut Bed, file: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let script = Script::parse(&text)?;
    let run = match bed.run(&script) {
        Ok(run) => run,
        Err(error) => return Err(error.context(bed.server_log())),
    };
    println!("{}", run.tallies);
    match run.failure {
        None => Ok(()),
        Some(failure) => bail!("{failure}"),
    }
}

fn kind(name: Option<&str>) -> anyhow::Result<Kind> {
    let Some(name) = name else {
        return Kind::from_environment();
    };
    let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    known.with_context(|| format!("no server is called {name}"))
}
