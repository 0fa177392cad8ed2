//! What a write costs through Remora: beside the hop, the server's log is read.
//!
//! Only the Remora of the arm that is measured runs. Any other one would read the log as well, and
//! slow each arm down.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Size;
use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::{cpu_time, microseconds_per_query};
use remora_testkit::interrupt;
use remora_testkit::proxies::{HaProxy, Remora, RemoraOptions};
use remora_testkit::servers::Server;
use remora_testkit::sysbench::{Length, Sysbench};

const SCRIPT: &str = "oltp_update_non_index";
/// sysbench's threads, and HAProxy's.
const THREADS: u32 = 8;
const HAPROXY_THREADS: usize = 2;
/// Memory of a Remora, MiB. Nothing is read, so it stays empty.
const MEMORY_MIB: u32 = 8;
/// Least throughput, of HAProxy.
const OF_HAPROXY_MIN: f64 = 0.97;

/// A way to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Arm {
    Direct,
    HaProxy,
    /// Through HAProxy, while a Remora reads the log: what that costs without its hop.
    Followed,
    Remora,
    Guided(PathBuf),
}

impl Arm {
    fn name(&self) -> &'static str {
        match self {
            Arm::Direct => "direct",
            Arm::HaProxy => "HAProxy",
            Arm::Followed => "HAProxy, the log read by a Remora",
            Arm::Remora => "Remora",
            Arm::Guided(_) => "Remora, guided build",
        }
    }

    fn runs_remora(&self) -> bool {
        !matches!(self, Arm::Direct | Arm::HaProxy)
    }
}

/// What a round of an arm showed.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    queries_per_s: f64,
    p95_ms: f64,
    /// Processor time of a write: the server's, HAProxy's, Remora's.
    server_us: f64,
    haproxy_us: f64,
    remora_us: f64,
}

/// Measures. `server` has sysbench's table. `guided` is the guided build, if it is there.
pub(super) fn run(
    server: &Server,
    guided: &Path,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    let haproxy = HaProxy::start(server.address(), HAPROXY_THREADS, None)?;
    let mut arms = vec![Arm::Direct, Arm::HaProxy, Arm::Followed, Arm::Remora];
    if guided.is_file() {
        arms.push(Arm::Guided(guided.to_owned()));
    }
    let mut samples = vec![Vec::new(); arms.len()];
    for round in 1..=size.rounds {
        for (arm, samples) in arms.iter().zip(&mut samples) {
            let (name, rounds) = (arm.name(), size.rounds);
            progress.step(&format!("writes: round {round} of {rounds}: {name}"));
            samples.push(measure(arm, server, &haproxy, size)?);
        }
    }
    let medians: Vec<_> = samples.iter().map(|samples| median_of(samples)).collect();
    Ok(report(&arms, &medians))
}

fn measure(arm: &Arm, server: &Server, haproxy: &HaProxy, size: Size) -> anyhow::Result<Sample> {
    interrupt::check()?;
    let options = RemoraOptions {
        memory_mib: Some(MEMORY_MIB),
        program: match arm {
            Arm::Guided(program) => Some(program.clone()),
            _ => None,
        },
        ..RemoraOptions::following()
    };
    let remora = arm
        .runs_remora()
        .then(|| Remora::start(server, &options))
        .transpose()?;
    let address: SocketAddr = match (arm, &remora) {
        (Arm::Remora | Arm::Guided(_), Some(remora)) => remora.address(),
        (Arm::HaProxy | Arm::Followed, _) => haproxy.address(),
        _ => server.address(),
    };
    let processes = [
        server.id(),
        Some(haproxy.id()),
        remora.as_ref().map(Remora::id),
    ];
    let used = || processes.map(|id| id.map(cpu_time).transpose());
    let before = used();
    let mut sysbench = Sysbench::new(SCRIPT, address, BENCH_SCHEMA);
    sysbench.rows = size.rows();
    sysbench.threads = THREADS;
    sysbench.further = vec!["--rand-type=uniform".to_owned()];
    let report = sysbench.run(Length::Time(size.length()))?;
    let mut spent = [0.0; 3];
    for ((spent, before), after) in spent.iter_mut().zip(before).zip(used()) {
        if let (Some(before), Some(after)) = (before?, after?) {
            *spent = microseconds_per_query(after.saturating_sub(before), report.queries);
        }
    }
    let [server_us, haproxy_us, remora_us] = spent;
    Ok(Sample {
        queries_per_s: report.queries_per_s,
        p95_ms: report.p95_ms,
        server_us,
        haproxy_us,
        remora_us,
    })
}

fn median_of(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> f64| median(&samples.iter().map(field).collect::<Vec<_>>());
    Sample {
        queries_per_s: of(|sample| sample.queries_per_s),
        p95_ms: of(|sample| sample.p95_ms),
        server_us: of(|sample| sample.server_us),
        haproxy_us: of(|sample| sample.haproxy_us),
        remora_us: of(|sample| sample.remora_us),
    }
}

fn report(arms: &[Arm], samples: &[Sample]) -> PartReport {
    let mut table = Table::new(&[
        "through",
        "writes/s",
        "of HAProxy",
        "p95 ms",
        "server's CPU µs/write",
        "HAProxy's",
        "Remora's",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    let of_haproxy = arms.iter().zip(samples);
    let of_haproxy = of_haproxy
        .filter(|(arm, _)| **arm == Arm::HaProxy)
        .map(|(_, sample)| sample.queries_per_s)
        .fold(1e-9, f64::max);
    for (arm, sample) in arms.iter().zip(samples) {
        let ratio = sample.queries_per_s / of_haproxy;
        table.row([
            arm.name().to_owned(),
            grouped(sample.queries_per_s),
            format!("{ratio:.2}"),
            format!("{:.2}", sample.p95_ms),
            format!("{:.1}", sample.server_us),
            format!("{:.1}", sample.haproxy_us),
            format!("{:.1}", sample.remora_us),
        ]);
        figures.push(json!({
            "arm": arm.name(), "queries_per_s": sample.queries_per_s, "p95_ms": sample.p95_ms,
            "server_us": sample.server_us, "haproxy_us": sample.haproxy_us,
            "remora_us": sample.remora_us,
        }));
        if matches!(arm, Arm::Remora | Arm::Guided(_)) {
            let what = format!("{} / HAProxy", arm.name());
            marks.push(Mark::at_least(what, OF_HAPROXY_MIN, ratio, ""));
        }
    }
    PartReport {
        title: format!("Writes of one row, {THREADS} threads, text, {SCRIPT}."),
        table,
        marks,
        figures: json!({"runs": figures}),
    }
}
