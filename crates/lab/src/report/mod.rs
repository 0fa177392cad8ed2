//! What a run leaves, for people: `report.html`, an index of several, and the comparison of two.
//!
//! | file | what it holds |
//! |---|---|
//! | `source` | reading a run's directory |
//! | `figures` | what was measured, by workload, arm and place on the x axis |
//! | `number` | figures as people write them |
//! | `style` | colours, dashes and markers of the arms, and the page's style sheet |
//! | `axis`, `chart`, `bars` | charts |
//! | `verdict`, `sentences` | what may be said about the figures |
//! | `html` | tables, figures and the page around them |
//! | `page`, `beside`, `sections`, `latency`, `over_time`, `counters`, `about_run` | a report and its parts |
//! | `places` | tables and charts with a row or a point for each arm and place |
//! | `compare`, `compare_judge` | two runs, figure by figure |
//! | `compare_view`, `compare_page`, `compare_command` | the comparison on the terminal, as a page, as a command |

mod about_run;
mod axis;
mod bars;
mod beside;
mod chart;
pub mod compare;
mod compare_command;
mod compare_judge;
mod compare_page;
#[cfg(test)]
mod compare_tests;
mod compare_view;
mod counters;
mod figures;
mod html;
mod latency;
mod number;
mod over_time;
mod page;
mod places;
mod sections;
mod sentences;
mod source;
mod style;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod verdict;
#[cfg(test)]
mod verdict_tests;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

pub use compare::compare;
pub use compare_command::{CompareOptions, run_compare};

/// The report's name in a run's directory.
pub const REPORT: &str = "report.html";

/// The index's name in a directory with several runs.
pub const INDEX: &str = "index.html";

/// Writes `report.html` into the directory of one experiment's run, from the `results.json` and the
/// series there.
///
/// # Errors
///
/// The results can't be read, are of another version of the schema, or the report can't be written.
/// Series that are missing or damaged are no error: the report says so.
pub fn write(directory: &Path) -> anyhow::Result<()> {
    let run = source::read(directory)?;
    save(&directory.join(REPORT), &page::report(&run)?)
}

/// What a run found, in a few sentences: as the report begins.
///
/// # Errors
///
/// As for [`write()`], but that nothing is written.
pub fn found(directory: &Path) -> anyhow::Result<Vec<String>> {
    let run = source::read(directory)?;
    let workloads = figures::workloads(&run.results);
    Ok(vec![
        page::verdict(&run.results, &workloads),
        verdict::confidence(&workloads),
        format!(
            "Stale reads: {}.",
            about_run::stale_reads_in_a_line(&run.results)
        ),
    ])
}

/// Writes `index.html` into a directory whose subdirectories hold one experiment's run each: what
/// each of them found, with links to their reports.
///
/// # Errors
///
/// No subdirectory holds a run, one can't be read, or the index can't be written.
pub fn write_index(directory: &Path) -> anyhow::Result<()> {
    let runs: Vec<(String, source::Run)> = source::subdirectories(directory)?
        .into_iter()
        .map(|path| Ok((source::name(&path), source::read(&path)?)))
        .collect::<anyhow::Result<_>>()?;
    save(&directory.join(INDEX), &page::index(&runs))
}

/// Writes the report of a run anew, or, of a directory with several runs, all of theirs and the
/// index. Returns the file to look at.
///
/// # Errors
///
/// As for [`write()`] and [`write_index`].
pub fn rewrite(directory: &Path) -> anyhow::Result<PathBuf> {
    if directory.join(source::RESULTS).exists() {
        write(directory)?;
        return Ok(directory.join(REPORT));
    }
    for run in source::subdirectories(directory)? {
        write(&run)?;
    }
    write_index(directory)?;
    Ok(directory.join(INDEX))
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!(
            "can't write {}: it is a directory; name a file",
            path.display()
        );
    }
    std::fs::write(path, text).with_context(|| {
        let path = path.display();
        format!("can't write {path}: see that its directory exists and the disk has room")
    })
}
