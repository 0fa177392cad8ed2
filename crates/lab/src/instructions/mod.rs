//! `make instructions`: the instructions that Remora spends on what it does most, compared with
//! committed figures.
//!
//! Times differ from run to run and from machine to machine; instructions hardly do, so that a
//! change of a few per cent can fail a check. The built program runs on valgrind's processor, with
//! one worker and nothing to do by the clock. Each path is taken one time after the other, in
//! batches; a figure is the median of the batches. What is too much must be so in three processes.
//!
//! | file | what it knows |
//! |---|---|
//! | `callgrind` | valgrind: how a program runs under it, and what its threads have spent |
//! | `bed` | the server, Remora in front, and a batch of one path |
//! | `paths` | what is counted |
//! | `baseline` | the committed figures, and when a comparison fails |
//! | `build` | what compiled the program, and how |

mod baseline;
mod bed;
mod build;
mod callgrind;
mod paths;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use remora_testkit::interrupt;

use crate::stats::median;
use crate::table::{Table, grouped};

use baseline::{Figures, percent_more};
use bed::Bed;
use paths::Path;

/// Batches of each path.
const BATCHES: usize = 5;
/// A path that takes too much in one process is measured in others, up to so many in all. What lies
/// in the allocator's pages differs from process to process. Where nothing else keeps a page in
/// use, mimalloc gives it back and takes a fresh one each time: `settings` took 75,500 instead of
/// 73,000 in three of nineteen processes, in each batch alike. Code that got slower is so in each.
const PROCESSES_MAX: usize = 3;

/// The options of the comparison.
#[derive(Debug, Clone, clap::Args)]
pub struct InstructionsOptions {
    /// Write the figures to the file instead of comparing them with it.
    #[arg(long)]
    pub update: bool,
    /// The file with the committed figures.
    #[arg(long, default_value = "results/instructions.json")]
    pub baseline: PathBuf,
    /// Directory for callgrind's profiles of each path's last batch: one file for each thread, for
    /// `callgrind_annotate`.
    #[arg(long)]
    pub profiles: Option<PathBuf>,
}

/// Counts the instructions of each path, and compares them with the committed figures or replaces
/// those.
///
/// # Errors
/// A path takes more instructions than committed and tolerated, or could not be measured.
pub fn run(options: &InstructionsOptions) -> anyhow::Result<()> {
    // Before the work, so that a file that can't be read fails at once.
    let committed = if options.update {
        None
    } else {
        Some(Figures::read(&options.baseline)?)
    };
    let mut measured = measure(committed.as_ref(), options.profiles.as_deref())?;
    let Some(committed) = committed else {
        measured.write(&options.baseline)?;
        println!("written: {}", options.baseline.display());
        return Ok(());
    };
    let mut comparison = measured.compare(&committed, &options.baseline);
    for _ in 1..PROCESSES_MAX {
        if comparison.failure().is_none() {
            break;
        }
        println!("Some took too much. Is it so in another process, too?");
        measured.take_lower(&measure(Some(&committed), options.profiles.as_deref())?);
        comparison = measured.compare(&committed, &options.baseline);
    }
    if let Some(renewal) = comparison.renewal() {
        println!("{renewal}");
    }
    match comparison.failure() {
        Some(failure) => bail!(failure),
        None => Ok(()),
    }
}

/// Measures each path; shows the figures beside the committed ones.
fn measure(
    committed: Option<&Figures>,
    profiles: Option<&std::path::Path>,
) -> anyhow::Result<Figures> {
    if let Some(directory) = profiles {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("can't make {}", directory.display()))?;
    }
    let mut figures = build::figures()?;
    let mut bed = Bed::start()?;
    let mut table = Table::new(&[
        "instructions",
        "measured",
        "batches differ",
        "committed",
        "change",
    ]);
    for path in Path::ALL {
        bed.warm_up(path)?;
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            interrupt::check()?;
            batches.push(bed.measure(path, profiles)?);
        }
        let figure = rounded(median(&batches));
        let figure_before = committed.and_then(|all| all.instructions.get(path.name()));
        let before = figure_before.map(|&before| (before, percent_more(before, figure)));
        table.row(row(path, &batches, before));
        figures.instructions.insert(path.name().to_owned(), figure);
    }
    println!("{table}");
    Ok(figures)
}

/// A path's row: `before` is the committed figure, and the change since in per cent.
fn row(path: Path, batches: &[f64], before: Option<(u64, f64)>) -> Vec<String> {
    let figure = median(batches);
    let highest = batches.iter().copied().fold(f64::MIN, f64::max);
    let lowest = batches.iter().copied().fold(f64::MAX, f64::min);
    let spread = (highest - lowest) / figure * 100.0;
    let mut row = vec![
        path.name().to_owned(),
        grouped(figure),
        format!("{spread:.2} %"),
    ];
    row.extend(match before {
        Some((before, change)) => [grouped(count(before)), format!("{change:+.1} %")],
        None => ["-".to_owned(), "-".to_owned()],
    });
    row
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rounded(figure: f64) -> u64 {
    figure.round() as u64
}

#[allow(clippy::cast_precision_loss)]
fn count(figure: u64) -> f64 {
    figure as f64
}
