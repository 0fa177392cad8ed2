//! What the repository does to itself. `make` and `scripts/` call it; `cargo run -p xtask -- help`
//! lists what it does.

mod suite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "xtask",
    about = "Runs the tests and checks the rules of the repository"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds and runs the test programs, each on the servers that it states.
    Test(suite::TestOptions),
    /// Checks the rules of the repository: what breaks one is printed, with how to fix it.
    Tidy,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Test(options) => suite::run(&options),
        Command::Tidy => tidy::run(&root()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
