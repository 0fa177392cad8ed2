//! `make bench`: point selects as text, prepared and over TLS, directly, through HAProxy and
//! through Remora, with the limit for a hit; and, part by part, what dropping exactly what a change
//! touches costs and brings.
//!
//! All arms of a part run in one session on the same machine and take turns; the figures belong to
//! the machine, the ratios carry over.

mod arms;
mod builds;
mod changes;
mod closed_loop;
mod concurrency;
mod conflicts;
mod crowds;
mod encrypted;
mod following;
mod heavy;
mod many_tables;
mod many_tags;
mod mark;
mod memory;
mod points;
mod ratio;
mod report;
mod requests;
mod transactions;
mod writes;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use crate::progress::Progress;
use crate::usage;
use remora_testkit::servers::Server;

use arms::Stage;
use mark::{Noise, PartReport};

/// Rows of sysbench's table in the parts about changes.
const ROWS: u32 = 1_000_000;
const ROWS_QUICK: u32 = 100_000;
/// Tables of the part about the catalogue.
const TABLES: u32 = 20_000;
const TABLES_QUICK: u32 = 2_000;

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Point selects, and the memory of connections and results.
    Points,
    /// What a changed row costs the follower with a million results and 16 shapes.
    Changes,
    /// How far the follower lags behind a server that writes at full speed.
    Following,
    /// The hit ratio of sysbench's `oltp_read_write` against that of a perfect oracle.
    Ratio,
    /// Heavy queries with a trickle of writes.
    E8,
    /// Many tables and catalogues of several sizes.
    Tables,
    /// What a hit costs with 32 tags.
    Tags,
    /// Reads inside transactions at `REPEATABLE READ`.
    Transactions,
    /// How many of the transactions that memory begins are refused, beside a row that changes.
    Conflicts,
    /// A thousand clients that ask for the same at once, when memory doesn't have it.
    Crowds,
    /// More clients than the server can work for, with and without a limit of its statements.
    Concurrency,
    /// Writes, with and without a Remora that reads the log.
    Writes,
    /// The plain build of Remora and the guided one (`make release`).
    Builds,
}

impl Part {
    const ALL: [Part; 13] = [
        Part::Points,
        Part::Changes,
        Part::Following,
        Part::Ratio,
        Part::E8,
        Part::Tables,
        Part::Tags,
        Part::Transactions,
        Part::Conflicts,
        Part::Crowds,
        Part::Concurrency,
        Part::Writes,
        Part::Builds,
    ];

    fn name(self) -> &'static str {
        match self {
            Part::Points => "points",
            Part::Changes => "changes",
            Part::Following => "following",
            Part::Ratio => "ratio",
            Part::E8 => "e8",
            Part::Tables => "tables",
            Part::Tags => "tags",
            Part::Transactions => "transactions",
            Part::Conflicts => "conflicts",
            Part::Crowds => "crowds",
            Part::Concurrency => "concurrency",
            Part::Writes => "writes",
            Part::Builds => "builds",
        }
    }

    /// Roughly how long it takes after its server has started.
    fn expected(self, size: Size) -> Duration {
        let rounds = Duration::from_secs((size.rounds * size.seconds).into());
        match self {
            // It has a progress of its own.
            Part::Points => Duration::ZERO,
            Part::Changes => Duration::from_secs(20) + rounds,
            Part::Following | Part::Tags | Part::Writes => 5 * rounds,
            Part::Ratio | Part::Crowds => Duration::from_mins(1),
            Part::E8 => 9 * rounds,
            Part::Builds => 6 * rounds,
            Part::Transactions => 24 * rounds,
            Part::Conflicts => 8 * rounds,
            Part::Concurrency => 18 * rounds,
            Part::Tables => Duration::from_mins(3),
        }
    }

    fn needs_sysbench_table(self) -> bool {
        matches!(
            self,
            Part::Changes
                | Part::Following
                | Part::Ratio
                | Part::Tags
                | Part::Transactions
                | Part::Conflicts
                | Part::Writes
                | Part::Builds
        )
    }
}

/// The benchmark's options.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {
    /// Short rounds: to see that it works. The figures mean little.
    #[arg(long)]
    pub quick: bool,
    /// Only these parts, with commas between them [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Rounds of each arm [default: 5; 2 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: Option<u32>,
    /// Length of a round, seconds [default: 5; 1 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: Option<u32>,
    /// Tables of the part `tables` [default: 20,000; 2,000 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub tables: Option<u32>,
    /// The guided build, for the parts `builds`, which is left out without one, and `writes`.
    #[arg(long, default_value = "target/guided/remora")]
    pub guided: PathBuf,
    /// File that a line with the results is appended to.
    #[arg(long, default_value = "results/bench.jsonl")]
    pub results: PathBuf,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Rounds of each arm.
    rounds: u32,
    /// Length of a round, seconds.
    seconds: u32,
    /// Whether tables and counts are small too.
    quick: bool,
}

impl Size {
    fn length(self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// Rows of sysbench's table.
    fn rows(self) -> u32 {
        if self.quick { ROWS_QUICK } else { ROWS }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// A part is missing or did not start, sysbench met an error, or the user asked to stop.
pub fn run(options: &BenchOptions) -> anyhow::Result<()> {
    usage::raise_open_files_limit();
    let size = Size {
        rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 5 }),
        seconds: options.seconds.unwrap_or(if options.quick { 1 } else { 5 }),
        quick: options.quick,
    };
    let parts = || {
        let has_what_it_needs = |part: &Part| *part != Part::Builds || options.guided.is_file();
        let is_wanted = move |part: &Part| {
            options.only.contains(part) || options.only.is_empty() && has_what_it_needs(part)
        };
        Part::ALL.into_iter().filter(is_wanted)
    };
    if parts().any(|part| part == Part::Points) {
        points::run(size, &options.results)?;
    }
    let expected = parts().map(|part| part.expected(size)).sum();
    let mut progress = Progress::new(expected);
    let server = if parts().any(Part::needs_sysbench_table) {
        progress.step("filling sysbench's table");
        Some(Stage::server(200, size.rows())?)
    } else {
        None
    };
    for part in parts().filter(|part| *part != Part::Points) {
        let mut noise = Noise::begin();
        let report = measure(part, size, options, server.as_ref(), &mut progress)?;
        noise.end();
        progress.done();
        report.publish(part.name(), &noise, &options.results)?;
    }
    println!("Kept in {}.", options.results.display());
    Ok(())
}

/// One part. `server` has sysbench's table if the part needs it.
fn measure(
    part: Part,
    size: Size,
    options: &BenchOptions,
    server: Option<&Server>,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    let of_sysbench = || server.context("sysbench's table wasn't filled");
    let tables = if size.quick { TABLES_QUICK } else { TABLES };
    match part {
        Part::Points => anyhow::bail!("point selects are measured on their own"),
        Part::Changes => changes::run(of_sysbench()?, size, progress),
        Part::Following => following::run(of_sysbench()?, size, progress),
        Part::Ratio => ratio::run(of_sysbench()?, size, progress),
        Part::E8 => heavy::run(size, progress),
        Part::Tables => many_tables::run(options.tables.unwrap_or(tables), size, progress),
        Part::Tags => many_tags::run(of_sysbench()?, size, progress),
        Part::Transactions => transactions::run(of_sysbench()?, size, progress),
        Part::Conflicts => conflicts::run(of_sysbench()?, size, progress),
        Part::Crowds => crowds::run(size, progress),
        Part::Concurrency => concurrency::run(size, progress),
        Part::Writes => writes::run(of_sysbench()?, &options.guided, size, progress),
        Part::Builds => builds::run(of_sysbench()?, &options.guided, size, progress),
    }
}
