//! `remora-lab compare`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::compare::{Outcome, compare};
use super::save;

/// Exit statuses other than 0.
const WORSE: u8 = 1;
const NOT_COMPARED: u8 = 2;

/// What `remora-lab compare` is asked.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Exit status: 0 if nothing is shown to have got worse, 1 if something is, 2 if the runs could not \
                        be compared."
)]
pub struct CompareOptions {
    /// The directory of the earlier run, or of several experiments' runs.
    pub a: PathBuf,
    /// That of the later one.
    pub b: PathBuf,
    /// Show every figure, not only those that differ.
    #[arg(long)]
    pub all: bool,
    /// Write the comparison as a page to this file too.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Compares two runs, shows it on the terminal and, if asked, writes a page. Gives the exit status:
/// 0 if nothing got worse, 1 if something did, 2 if they could not be compared, which is then said
/// on standard error.
pub fn run_compare(options: &CompareOptions) -> ExitCode {
    match show(options) {
        Ok(Outcome::NothingWorse) => ExitCode::SUCCESS,
        Ok(Outcome::Worse) => ExitCode::from(WORSE),
        Ok(Outcome::NotCompared) => {
            eprintln!("remora-lab: the runs have no figure that could be judged");
            ExitCode::from(NOT_COMPARED)
        }
        Err(error) => {
            eprintln!("remora-lab: {error:#}");
            ExitCode::from(NOT_COMPARED)
        }
    }
}

fn show(options: &CompareOptions) -> anyhow::Result<Outcome> {
    let comparison = compare(&options.a, &options.b)?;
    // Whoever pages through it may have seen enough before its end.
    match std::io::stdout().write_all(comparison.text(options.all).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            return Err(error).context("can't show the comparison");
        }
        _ => {}
    }
    if let Some(path) = &options.html {
        save(path, &comparison.html())?;
        eprintln!("\nwritten: {}", path.display());
    }
    Ok(comparison.outcome())
}
