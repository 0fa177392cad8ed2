//! `remora-lab`: the demo, the benchmark, and the parts that they run as processes of their own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use remora_lab::{
    apps, bench, demo, drivers, experiments, instructions, replay, report, responder, search,
    training,
};
use remora_testkit::interrupt;

#[derive(Debug, Parser)]
#[command(name = "remora-lab", about = "Experiments with Remora", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A private MariaDB with sample data, Remora in front, and a read load: directly, with the
    /// server's own query cache, and through Remora.
    Demo(demo::DemoOptions),
    /// Measures Remora against a direct connection, HAProxy and a bare responder.
    Bench(bench::BenchOptions),
    /// Counts the instructions that Remora spends on a hit, a miss, a write and the like, and
    /// compares them with the committed figures.
    Instructions(instructions::InstructionsOptions),
    /// Puts a load on a build that writes down what it does, for the compiler to optimise for.
    Train(training::TrainingOptions),
    /// Runs real applications, each directly and through Remora, and compares their pages.
    Apps(apps::AppsOptions),
    /// Runs real drivers of many languages, each directly and through Remora, and compares what
    /// they see.
    Drivers(drivers::DriversOptions),
    /// Looks for results that differ from the server's: random schemas, queries and changes.
    Search(search::SearchOptions),
    /// Runs published experiments side by side, on servers of its own, and writes a report.
    Run(experiments::RunOptions),
    /// Says what the experiments are and what was published.
    List,
    /// Sets two results of the same experiment side by side and says what got better or worse.
    Compare(report::CompareOptions),
    /// Writes the report of a run's directory anew.
    Report {
        /// A directory that a run wrote.
        directory: PathBuf,
    },
    /// Sends captured statements (a slow or general query log, a packet capture) to servers and
    /// proxies, side by side.
    Replay(Box<replay::ReplayOptions>),
    /// Answers each query with the same bytes, until it is killed. The benchmark runs it.
    #[command(hide = true)]
    Responder {
        /// Where clients connect to.
        #[arg(long)]
        listen: SocketAddr,
        /// Threads that serve clients.
        #[arg(long)]
        threads: usize,
        /// The version to greet with.
        #[arg(long)]
        server_version: String,
        /// A file that holds the whole answer to a query.
        #[arg(long)]
        answer: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(status) => status,
        Err(error) if error.is::<interrupt::Interrupted>() || interrupt::is_set() => {
            ExitCode::from(interrupt::EXIT_STATUS)
        }
        Err(error) => {
            eprintln!("\nremora-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let outcome = match command {
        Command::Demo(options) => {
            interrupt::install()?;
            demo::run(&options)
        }
        Command::Bench(options) => {
            interrupt::install()?;
            bench::run(&options)
        }
        Command::Instructions(options) => {
            interrupt::install()?;
            instructions::run(&options)
        }
        Command::Train(options) => {
            interrupt::install()?;
            training::run(&options)
        }
        Command::Apps(options) => {
            interrupt::install()?;
            apps::run(&options)
        }
        Command::Drivers(options) => {
            interrupt::install()?;
            drivers::run(&options)
        }
        Command::Search(options) => {
            interrupt::install()?;
            search::run(&options)
        }
        Command::Run(options) => {
            interrupt::install()?;
            experiments::run(&options)
        }
        Command::List => {
            experiments::list();
            Ok(())
        }
        Command::Compare(options) => return Ok(report::run_compare(&options)),
        Command::Report { directory } => {
            let path = report::rewrite(&directory)?;
            println!("written: {}", path.display());
            Ok(())
        }
        Command::Replay(options) => {
            interrupt::install()?;
            replay::run(&options)
        }
        Command::Responder {
            listen,
            threads,
            server_version,
            answer,
        } => {
            let answer = std::fs::read(&answer)
                .with_context(|| format!("can't read {}", answer.display()))?;
            responder::serve(
                listen,
                threads,
                responder::Script {
                    server_version,
                    answer,
                },
            )
        }
    };
    outcome.map(|()| ExitCode::SUCCESS)
}
