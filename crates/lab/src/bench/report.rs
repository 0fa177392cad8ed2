//! What the benchmark prints and keeps.

use std::path::Path;

use serde_json::{Value, json};

use super::arms::{Arm, Sample};
use super::mark::{Mark, commit, keep, marks_table, unix_time_s};
use super::memory::{CONNECTIONS, PerResult};
use crate::machine::Machine;
use crate::stats::median;
use crate::table::{Table, grouped};

/// Resident memory of an idle Remora with [`CONNECTIONS`] open connections stays under this, bytes.
const IDLE_BYTES_BELOW: f64 = 64e6;
/// Resident memory of a stored result stays at or under this, bytes.
const RESULT_BYTES_MAX: f64 = 700.0;
/// Hits are at least this share of the bare responder's.
const SHARE_OF_BARE_MIN: f64 = 0.85;

/// Prepared hits are at least this share of hits as text.
const PREPARED_SHARE_MIN: f64 = 0.90;

/// All that was measured.
#[derive(Debug)]
pub(super) struct Findings {
    /// All rounds of all arms.
    pub(super) samples: Vec<Sample>,
    /// sysbench's thread counts.
    pub(super) threads: Vec<u32>,
    /// Resident memory with idle connections, bytes.
    pub(super) idle_bytes: u64,
    /// The cost of a stored result.
    pub(super) per_result: PerResult,
    /// Rounds of each arm.
    pub(super) rounds: u32,
    /// Length of a round, seconds.
    pub(super) seconds: u32,
}

impl Findings {
    /// The median over the rounds.
    fn median(&self, arm: Arm, threads: u32, of: impl Fn(&Sample) -> f64) -> f64 {
        let of_arm = self
            .samples
            .iter()
            .filter(|s| s.arm == arm && s.threads == threads);
        median(&of_arm.map(of).collect::<Vec<f64>>())
    }

    fn rate(&self, arm: Arm, threads: u32) -> f64 {
        self.median(arm, threads, |sample| sample.queries_per_s)
    }

    /// Prints the tables.
    pub(super) fn print(&self) {
        println!("\nMachine: {}", Machine::this());
        println!(
            "sysbench oltp_point_select, uniform keys, text unless said otherwise; TLS with a client of the lab's; medians of {} rounds of {} s, interleaved.\n",
            self.rounds, self.seconds
        );
        for &threads in &self.threads {
            println!("{}", self.rates(threads));
        }
        println!("{}", marks_table(&self.marks()));
    }

    fn rates(&self, threads: u32) -> Table {
        let title = format!("{threads} threads");
        let mut table = Table::new(&[
            &title,
            "queries/s",
            "of direct",
            "p95 ms",
            "CPU µs/query: proxy",
            "server",
            "hits",
        ]);
        for arm in Arm::ALL {
            let of = |of: fn(&Sample) -> f64| self.median(arm, threads, of);
            let ratio = arm.direct().map_or_else(String::new, |direct| {
                let ratio = self.rate(arm, threads) / self.rate(direct, threads).max(1e-9);
                format!("{ratio:.2}")
            });
            table.row([
                arm.name().to_owned(),
                grouped(self.rate(arm, threads)),
                ratio,
                format!("{:.2}", of(|s| s.p95_ms)),
                format!("{:.1}", of(|s| s.proxy_us)),
                format!("{:.1}", of(|s| s.server_us)),
                if arm.has_remora() {
                    format!("{:.1} %", 100.0 * of(|s| s.hit_ratio))
                } else {
                    String::new()
                },
            ]);
        }
        table
    }

    fn ratio_mark(&self, threads: u32, arm: Arm, other: Arm, least: f64) -> Mark {
        let ratio = self.rate(arm, threads) / self.rate(other, threads).max(1e-9);
        Mark {
            what: format!("{} / {}, {threads} threads", arm.name(), other.name()),
            wanted: format!(">= {least:.2}"),
            measured: format!("{ratio:.2}"),
            reached: ratio >= least,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        for &threads in &self.threads {
            marks.push(self.ratio_mark(threads, Arm::RemoraMiss, Arm::HaProxy, 1.0));
            marks.push(self.ratio_mark(threads, Arm::RemoraHit, Arm::Bare, SHARE_OF_BARE_MIN));
            marks.push(self.ratio_mark(threads, Arm::RemoraHit, Arm::DirectHot, 1.0));
            marks.push(self.ratio_mark(
                threads,
                Arm::RemoraHitPrepared,
                Arm::RemoraHit,
                PREPARED_SHARE_MIN,
            ));
            marks.push(self.ratio_mark(threads, Arm::RemoraTls, Arm::HaProxyTls, 1.0));
            marks.push(self.ratio_mark(threads, Arm::RemoraTlsRanges, Arm::HaProxyTlsRanges, 1.0));
        }
        let idle = self.idle_bytes as f64;
        marks.push(Mark {
            what: format!("resident, {} idle connections", grouped(CONNECTIONS as f64)),
            wanted: format!("< {:.0} MB", IDLE_BYTES_BELOW / 1e6),
            measured: format!("{:.1} MB", idle / 1e6),
            reached: idle < IDLE_BYTES_BELOW,
        });
        let result = self.per_result;
        marks.push(Mark {
            what: format!(
                "resident per stored result of {} bytes",
                result.result_bytes
            ),
            wanted: format!("<= {RESULT_BYTES_MAX:.0} bytes"),
            measured: format!("{:.0} bytes", result.resident_bytes),
            reached: result.resident_bytes <= RESULT_BYTES_MAX,
        });
        marks
    }

    fn json(&self) -> Value {
        let mut arms = Vec::new();
        for &threads in &self.threads {
            for arm in Arm::ALL {
                let of = |of: fn(&Sample) -> f64| self.median(arm, threads, of);
                arms.push(json!({
                    "arm": arm.label(),
                    "threads": threads,
                    "queries_per_s": of(|s| s.queries_per_s),
                    "p95_ms": of(|s| s.p95_ms),
                    "proxy_cpu_us": of(|s| s.proxy_us),
                    "server_cpu_us": of(|s| s.server_us),
                    "hit_ratio": of(|s| s.hit_ratio),
                }));
            }
        }
        let marks = self.marks();
        json!({
            "unix_time_s": unix_time_s(),
            "commit": commit(),
            "machine": Machine::this().to_string(),
            "rounds": self.rounds,
            "round_s": self.seconds,
            "arms": arms,
            "idle_connections": CONNECTIONS,
            "idle_resident_bytes": self.idle_bytes,
            "result_bytes": self.per_result.result_bytes,
            "results_stored": self.per_result.results,
            "resident_bytes_per_result": self.per_result.resident_bytes,
            "marks": marks.iter().map(Mark::json).collect::<Vec<Value>>(),
        })
    }

    /// Appends one line to the file of results.
    pub(super) fn keep(&self, file: &Path) -> anyhow::Result<()> {
        keep(&self.json(), file)
    }
}
