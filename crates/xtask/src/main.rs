//! What the repository does to itself. `make` and `scripts/` call it; `cargo run -p xtask -- help`
//! lists what it does.

mod suite;

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
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Test(options) => suite::run(&options),
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
