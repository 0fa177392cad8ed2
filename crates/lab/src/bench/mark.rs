//! What a measurement is held against, and what a part of the benchmark leaves behind.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::table::Table;
use crate::usage;

/// A mark and what was measured against it.
pub(super) struct Mark {
    /// What was measured.
    pub(super) what: String,
    /// The mark, with its unit.
    pub(super) wanted: String,
    /// What was measured, with its unit.
    pub(super) measured: String,
    /// Whether the mark was reached.
    pub(super) reached: bool,
}

impl Mark {
    /// Reached if the measure is no more than `most`.
    pub(super) fn at_most(what: impl Into<String>, most: f64, measured: f64, unit: &str) -> Mark {
        Mark {
            what: what.into(),
            wanted: format!("<= {most:.2} {unit}"),
            measured: format!("{measured:.2} {unit}"),
            reached: measured <= most,
        }
    }

    /// Reached if the measure is `least` or more.
    pub(super) fn at_least(what: impl Into<String>, least: f64, measured: f64, unit: &str) -> Mark {
        Mark {
            what: what.into(),
            wanted: format!(">= {least:.2} {unit}"),
            measured: format!("{measured:.2} {unit}"),
            reached: measured >= least,
        }
    }

    /// For the file of results.
    pub(super) fn json(&self) -> Value {
        json!({"what": self.what, "wanted": self.wanted, "measured": self.measured,
               "reached": self.reached})
    }
}

/// Marks as they are printed.
pub(super) fn marks_table(marks: &[Mark]) -> Table {
    let mut table = Table::new(&["mark", "wanted", "measured", "reached"]);
    for mark in marks {
        let reached = if mark.reached { "yes" } else { "NO" };
        table.row([
            mark.what.as_str(),
            mark.wanted.as_str(),
            mark.measured.as_str(),
            reached,
        ]);
    }
    table
}

/// What a part of the benchmark found.
pub(super) struct PartReport {
    /// What was measured, and how, in a sentence or two.
    pub(super) title: String,
    /// The figures as they are printed.
    pub(super) table: Table,
    /// What they are held against.
    pub(super) marks: Vec<Mark>,
    /// The figures for the file of results.
    pub(super) figures: Value,
}

impl PartReport {
    /// Prints it and appends it as a line to the file of results.
    pub(super) fn publish(&self, part: &str, noise: &Noise, file: &Path) -> anyhow::Result<()> {
        println!("\n{part}: {}\n", self.title);
        println!("{}", self.table);
        println!("{}", marks_table(&self.marks));
        println!("  Noise: {noise}.");
        let line = json!({
            "unix_time_s": unix_time_s(),
            "commit": commit(),
            "machine": Machine::this().to_string(),
            "part": part,
            "others_share_of_cpu": noise.json(),
            "figures": self.figures,
            "marks": self.marks.iter().map(Mark::json).collect::<Vec<Value>>(),
        });
        keep(&line, file)
    }
}

/// How much of the machine others took right before and after a part: what as many spinning threads
/// as there are processors did not get.
pub(super) struct Noise {
    before: Option<f64>,
    after: Option<f64>,
}

/// How long the threads spin.
const SPIN: Duration = Duration::from_millis(300);

impl Noise {
    /// Before the part.
    pub(super) fn begin() -> Noise {
        Noise {
            before: others_share(),
            after: None,
        }
    }

    /// After it.
    pub(super) fn end(&mut self) {
        self.after = others_share();
    }

    /// The shares before and after, between 0 and 1; null where the system doesn't tell.
    fn json(&self) -> Value {
        json!([self.before, self.after])
    }
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: Option<f64>| {
            share.map_or_else(|| "?".to_owned(), |share| format!("{:.0}", share * 100.0))
        };
        let (before, after) = (percent(self.before), percent(self.after));
        write!(
            f,
            "others took {before} % of the processors before and {after} % after it"
        )
    }
}

fn others_share() -> Option<f64> {
    let threads = std::thread::available_parallelism().ok()?.get();
    let spin = || {
        let (began, used) = (Instant::now(), usage::own_thread_cpu_time());
        while began.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        let used = usage::own_thread_cpu_time().saturating_sub(used);
        1.0 - used.as_secs_f64() / began.elapsed().as_secs_f64()
    };
    let shares: Option<Vec<f64>> = std::thread::scope(|scope| {
        let spinning: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, f64>| thread.join().ok();
        spinning.into_iter().map(join).collect()
    });
    let shares = shares?;
    #[allow(clippy::cast_precision_loss)]
    let count = shares.len().max(1) as f64;
    Some((shares.iter().sum::<f64>() / count).clamp(0.0, 1.0))
}

/// Now, as the file of results has it.
pub(super) fn unix_time_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Appends one line to the file of results.
pub(super) fn keep(line: &Value, file: &Path) -> anyhow::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("can't make {}", directory.display()))?;
    }
    let mut out = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .with_context(|| format!("can't write {}", file.display()))?;
    writeln!(out, "{line}").context("can't keep the results")
}

/// The commit that was measured, with a mark if the files differ from it; empty outside a
/// repository.
pub(super) fn commit() -> String {
    let output = std::process::Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    }
}
