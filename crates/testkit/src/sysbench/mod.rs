//! Runs sysbench, unmodified, and reads its report.
//!
//! | file | what it knows |
//! |---|---|
//! | `running` | a sysbench that is read while it runs, second by second |
//! | `second` | what it says each second |
//! | `distribution` | how its latencies are distributed |

mod distribution;
mod running;
mod second;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::process::Program;
use crate::programs;
use crate::scratch::Scratch;
use crate::servers::{APP_PASSWORD, APP_USER};
pub use distribution::Distribution;
pub use running::Running;
pub use second::Second;

/// The scripts that Debian's sysbench 1.0 brings for databases.
pub const SCRIPTS: [&str; 11] = [
    "oltp_read_write",
    "oltp_read_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
];

/// How long preparing tables may take.
const PREPARE_PATIENCE: Duration = Duration::from_hours(3);
/// How much longer than it was told a run may take.
const RUN_PATIENCE: Duration = Duration::from_mins(2);

/// A sysbench to be run.
#[derive(Debug, Clone)]
pub struct Sysbench {
    /// One of [`SCRIPTS`], or one in `directory`, without its ending.
    pub script: String,
    /// Where further scripts lie.
    pub directory: Option<PathBuf>,
    /// Where it connects to, as [`APP_USER`].
    pub address: SocketAddr,
    /// The schema of its tables.
    pub schema: String,
    /// How many tables. 0: the script has no options for the number of tables and rows.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u32,
    /// Client threads.
    pub threads: u32,
    /// Whether it uses prepared statements (`--db-ps-mode=auto`) or text only (`disable`).
    pub prepared: bool,
    /// Further options, each in the form `--name=value`.
    pub further: Vec<String>,
}

/// How long a run lasts.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// So long.
    Time(Duration),
    /// So many events of all threads together.
    Events(u64),
}

/// What sysbench reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Transactions (events) a second.
    pub transactions_per_s: f64,
    /// Queries a second.
    pub queries_per_s: f64,
    /// Queries in all.
    pub queries: u64,
    /// 95th percentile of an event's latency, milliseconds.
    pub p95_ms: f64,
    /// Errors that sysbench takes for a part of life: deadlocks, lock timeouts, duplicate keys.
    pub ignored_errors: u64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
}

impl Sysbench {
    /// A script on one table of 1,000 rows with one thread and text statements.
    pub fn new(script: &str, address: SocketAddr, schema: &str) -> Sysbench {
        Sysbench {
            script: script.to_owned(),
            directory: None,
            address,
            schema: schema.to_owned(),
            tables: 1,
            rows: 1_000,
            threads: 1,
            prepared: false,
            further: Vec::new(),
        }
    }

    /// Creates and fills its tables.
    pub fn prepare(&self) -> anyhow::Result<()> {
        let output = self.execute("prepare", &[], PREPARE_PATIENCE)?;
        refuse_errors(&output)
    }

    /// Drops its tables.
    pub fn clean_up(&self) -> anyhow::Result<()> {
        let output = self.execute("cleanup", &[], PREPARE_PATIENCE)?;
        refuse_errors(&output)
    }

    /// Runs it.
    ///
    /// # Errors
    /// sysbench could not run, met an error that it does not take for a part of life, or did not
    /// say what it measured.
    pub fn run(&self, length: Length) -> anyhow::Result<Report> {
        let (limits, patience) = match length {
            Length::Time(time) => (
                [
                    format!("--time={}", time.as_secs().max(1)),
                    "--events=0".to_owned(),
                ],
                time + RUN_PATIENCE,
            ),
            Length::Events(count) => (
                ["--time=0".to_owned(), format!("--events={count}")],
                RUN_PATIENCE,
            ),
        };
        let output = self.execute("run", &limits, patience)?;
        refuse_errors(&output)?;
        Report::parse(&output).with_context(|| format!("can't read sysbench's report:\n{output}"))
    }

    fn execute(&self, what: &str, limits: &[String], patience: Duration) -> anyhow::Result<String> {
        let scratch = Scratch::new()?;
        let script = match &self.directory {
            None => self.script.clone(),
            Some(directory) => {
                let path = directory.join(&self.script).with_extension("lua");
                path.display().to_string()
            }
        };
        Program::new("sysbench", programs::find("sysbench")?, scratch.join("log"))
            .arg(script)
            .args(self.options(&self.address.port().to_string()))
            .args(limits)
            .arg(what)
            .run(patience)
            .with_context(|| format!("sysbench {} {what} on {}", self.script, self.address))
    }

    /// All options but those that say how long it runs.
    fn options(&self, port: &str) -> Vec<String> {
        let ps_mode = if self.prepared { "auto" } else { "disable" };
        let mut options = vec![
            "--db-driver=mysql".to_owned(),
            format!("--mysql-host={}", self.address.ip()),
            format!("--mysql-port={port}"),
            format!("--mysql-user={APP_USER}"),
            format!("--mysql-password={APP_PASSWORD}"),
            format!("--mysql-db={}", self.schema),
        ];
        // Scripts that aren't of its own may not know these.
        if self.tables > 0 {
            options.push(format!("--tables={}", self.tables));
            options.push(format!("--table-size={}", self.rows));
        }
        options.extend([
            format!("--threads={}", self.threads),
            format!("--db-ps-mode={ps_mode}"),
        ]);
        options.extend(self.further.iter().cloned());
        options
    }
}

/// sysbench ends with success after some errors; its output tells.
fn refuse_errors(output: &str) -> anyhow::Result<()> {
    match output
        .lines()
        .find(|line| line.starts_with("FATAL") || line.starts_with("ALERT"))
    {
        Some(line) => bail!("sysbench: {line}"),
        None => Ok(()),
    }
}

impl Report {
    fn parse(output: &str) -> Option<Report> {
        let (queries, queries_per_s) = total_and_rate(output, "queries:")?;
        let (_, transactions_per_s) = total_and_rate(output, "transactions:")
            .or_else(|| total_and_rate(output, "queries:"))?;
        Some(Report {
            transactions_per_s,
            queries_per_s,
            queries,
            p95_ms: after(output, "95th percentile:")?.parse().ok()?,
            ignored_errors: total_and_rate(output, "ignored errors:")?.0,
            reconnects: total_and_rate(output, "reconnects:")?.0,
        })
    }
}

/// The rest of the line that begins with `label`.
fn after<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    output
        .lines()
        .find_map(|line| line.trim().strip_prefix(label))
        .map(str::trim)
}

/// From `12345  (1234.50 per sec.)`.
fn total_and_rate(output: &str, label: &str) -> Option<(u64, f64)> {
    let mut words = after(output, label)?.split_whitespace();
    let total = words.next()?.parse().ok()?;
    let rate = words.next()?.trim_start_matches('(').parse().ok()?;
    Some((total, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let output = "
SQL statistics:
    queries performed:
        read:                            12000
        total:                           12000
    transactions:                        600    (59.90 per sec.)
    queries:                             12000  (1198.00 per sec.)
    ignored errors:                      2      (0.20 per sec.)
    reconnects:                          0      (0.00 per sec.)
Latency (ms):
         95th percentile:                       21.50
";
        let expected = Report {
            transactions_per_s: 59.9,
            queries_per_s: 1198.0,
            queries: 12_000,
            p95_ms: 21.5,
            ignored_errors: 2,
            reconnects: 0,
        };
        assert_eq!(Report::parse(output), Some(expected));
    }
}
