//! `remora-lab run` and `remora-lab list`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::plan::Experiment;
use super::run::{Request, measure_into};
use super::{all, find, machine};
use crate::report;
use crate::results::{Results, Scale};
use crate::table::Table;
use remora_testkit::interrupt;
use remora_testkit::servers::Kind;

/// Options of `remora-lab run`.
#[derive(Debug, Clone, clap::Args)]
pub struct RunOptions {
    /// The experiments, as `remora-lab list` names them, or `all`.
    #[arg(required = true)]
    pub experiments: Vec<String>,
    /// A few minutes for all experiments together.
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// As published, as far as the machine has room. Takes hours.
    #[arg(long)]
    pub full: bool,
    /// Seconds: to see that everything works.
    #[arg(long, hide = true, conflicts_with_all = ["quick", "full"])]
    pub tiny: bool,
    /// Where the report and the results go. A run that was interrupted goes on in its directory.
    /// Several experiments have a directory each in it [default: results/EXPERIMENT-DATE].
    #[arg(long)]
    pub directory: Option<PathBuf>,
    /// The kind of server [default: mariadb-10.11].
    #[arg(long, value_parser = Kind::named)]
    pub server: Option<Kind>,
    /// Only these arms, by their names or the beginnings of them:
    /// direct,builtin,hop,proxysql,remora.
    #[arg(long, value_delimiter = ',')]
    pub arms: Vec<String>,
    /// Only the measurements at these places on the x axis, such as numbers of threads: 8,64.
    #[arg(long, value_delimiter = ',', value_name = "PLACE")]
    pub at: Vec<f64>,
    /// How often each is measured. Of fewer than 3 nothing is concluded; more show smaller
    /// differences [default: as many as the scale has].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub repetitions: Option<u32>,
    /// The Remora to measure, to compare it with another build [default: the one that lies beside
    /// this program].
    #[arg(long, value_name = "PATH")]
    pub remora: Option<PathBuf>,
    /// Chooses the order of the measurements [default: another one each time].
    #[arg(long)]
    pub seed: Option<u64>,
}

impl RunOptions {
    fn scale(&self) -> Scale {
        match (self.tiny, self.quick, self.full) {
            (true, _, _) => Scale::Tiny,
            (_, true, _) => Scale::Quick,
            (_, _, true) => Scale::Full,
            _ => Scale::Normal,
        }
    }

    fn chosen(&self) -> anyhow::Result<Vec<&'static dyn Experiment>> {
        if self.experiments.iter().any(|name| name == "all") {
            return Ok(all().to_vec());
        }
        let known = || {
            let names: Vec<&str> = all()
                .iter()
                .map(|experiment| experiment.about().id)
                .collect();
            names.join(", ")
        };
        let found = |name: &String| {
            find(name).with_context(|| {
                format!(
                    "no experiment is called {name}; there are {} and all",
                    known()
                )
            })
        };
        self.experiments.iter().map(found).collect()
    }

    /// The directory of each experiment.
    fn directories(&self, ids: &[&str]) -> Vec<PathBuf> {
        let date = machine::now().replace([':', 'T'], "-").replace('Z', "");
        let several = ids.len() > 1;
        let name = if several {
            "all"
        } else {
            ids.first().copied().unwrap_or_default()
        };
        let default = || Path::new("results").join(format!("{name}-{date}"));
        let root = self.directory.clone().unwrap_or_else(default);
        let one = |id: &&str| if several { root.join(id) } else { root.clone() };
        ids.iter().map(one).collect()
    }
}

/// Runs experiments, one after the other. That one fails does not keep the next from its turn.
///
/// # Errors
/// An experiment could not be run to its end, or the user asked to stop.
pub fn run(options: &RunOptions) -> anyhow::Result<()> {
    let experiments = options.chosen()?;
    let ids: Vec<&str> = experiments
        .iter()
        .map(|experiment| experiment.about().id)
        .collect();
    let directories = options.directories(&ids);
    let mut failed = Vec::new();
    for (&experiment, directory) in experiments.iter().zip(&directories) {
        let request = Request {
            experiment,
            scale: options.scale(),
            kind: options.server.unwrap_or(Kind::ALL[0]),
            arms: options.arms.clone(),
            at: options.at.clone(),
            repetitions: options.repetitions,
            remora: options.remora.clone(),
            seed: options.seed,
            directory: directory.clone(),
        };
        let outcome = measure_into(&request);
        if let Ok(results) = &outcome {
            show(results, directory)?;
        }
        if let Err(error) = outcome {
            if interrupt::is_set() {
                // Interruptions are not failures, so nobody else shows it.
                eprintln!("{error:#}");
                return Err(error);
            }
            if experiments.len() == 1 {
                return Err(error);
            }
            eprintln!("\nremora-lab: {error:#}");
            failed.push(experiment.about().id);
        }
    }
    if experiments.len() > 1
        && let Some(root) = directories.first().and_then(|path| path.parent())
    {
        report::write_index(root)?;
        println!("All of them: {}", root.join(report::INDEX).display());
    }
    if !failed.is_empty() {
        bail!("not everything was measured: {}", failed.join(", "));
    }
    Ok(())
}

/// Shows the medians and what they say, and where the report is.
fn show(results: &Results, directory: &Path) -> anyhow::Result<()> {
    let mut table = Table::new(&[
        "load",
        "arm",
        "queries/s",
        "p95 ms",
        "server µs",
        "proxy µs",
        "hits",
        "stale",
    ]);
    for cell in &results.cells {
        let median = |of: &dyn Fn(&crate::results::Repetition) -> Option<f64>| {
            let values: Vec<f64> = cell.repetitions.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| crate::stats::median(&values))
        };
        let shown = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let place = cell.x.as_ref().map_or_else(String::new, |x| {
            format!(", {} {}{}", x.axis, x.value, x.unit)
        });
        let stale: u64 = cell.repetitions.iter().map(|r| r.stale_reads).sum();
        table.row([
            format!("{}{place}", cell.workload),
            cell.arm.clone(),
            shown(median(&|r| Some(r.queries_per_s)), 0),
            shown(median(&|r| Some(r.latency_ms.p95)), 2),
            shown(median(&|r| r.server_cpu_us), 1),
            shown(median(&|r| r.proxy_cpu_us), 1),
            shown(median(&|r| r.hit_ratio), 3),
            stale.to_string(),
        ]);
    }
    println!("\n{}: {}\n\n{table}", results.experiment, results.title);
    for sentence in report::found(directory)? {
        println!("{sentence}");
    }
    println!("Report: {}", directory.join(report::REPORT).display());
    Ok(())
}

/// Prints what each experiment is, and about how long it takes at each scale.
pub fn list() {
    let mut out = std::io::stdout().lock();
    for experiment in all() {
        let about = experiment.about();
        let took = [
            ("--quick", Scale::Quick),
            ("default", Scale::Normal),
            ("--full", Scale::Full),
        ]
        .map(|(name, scale)| {
            let plan = experiment.plan(scale);
            let minutes = plan.expected(plan.measurements()).as_secs().div_ceil(60);
            format!("{name} {}", hours_and_minutes(minutes))
        })
        .join(", ");
        let lines = format!(
            "{:<11} {}\n{:<11} source: {}\n{:<11} takes about: {took}",
            about.id, about.title, "", about.source_figure, ""
        );
        if writeln!(out, "{lines}").is_err() {
            // Whoever reads it has enough.
            return;
        }
    }
}

fn hours_and_minutes(minutes: u64) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
