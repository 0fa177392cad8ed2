//! Two builds of Remora side by side: the plain one, and the guided one (`make release`), which the
//! compiler has optimised for what a training run did.

use std::net::SocketAddr;
use std::path::Path;

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

const SCRIPT: &str = "oltp_point_select";
/// sysbench's threads, and HAProxy's.
const THREADS: u32 = 8;
const HAPROXY_THREADS: usize = 2;
/// Rows that are asked for when everything hits.
const HOT_ROWS: u32 = 1_000;
/// Memory of a Remora where nothing hits, MiB: as in the part `points`.
const COLD_MEMORY_MIB: u32 = 8;
/// Least throughput of the guided build, of the plain one.
const MISSES_MIN: f64 = 1.10;
const HITS_MIN: f64 = 1.08;
/// Least throughput where nothing hits, of HAProxy.
const PLAIN_OF_HAPROXY_MIN: f64 = 1.05;
const GUIDED_OF_HAPROXY_MIN: f64 = 1.15;

/// What the statements do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Misses,
    Hits,
}

impl Load {
    const ALL: [Load; 2] = [Load::Misses, Load::Hits];

    fn name(self) -> &'static str {
        match self {
            Load::Misses => "nothing hits",
            Load::Hits => "everything hits",
        }
    }

    fn rows(self, size: Size) -> u32 {
        match self {
            Load::Misses => size.rows(),
            Load::Hits => HOT_ROWS,
        }
    }
}

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    HaProxy,
    Plain,
    Guided,
}

impl Arm {
    const ALL: [Arm; 3] = [Arm::HaProxy, Arm::Plain, Arm::Guided];

    fn name(self) -> &'static str {
        match self {
            Arm::HaProxy => "HAProxy",
            Arm::Plain => "Remora, plain build",
            Arm::Guided => "Remora, guided build",
        }
    }
}

/// One build, for what hits and for what doesn't.
struct Build {
    hot: Remora,
    cold: Remora,
}

impl Build {
    fn start(server: &Server, program: Option<&Path>) -> anyhow::Result<Build> {
        let start = |memory_mib| {
            let options = RemoraOptions {
                program: program.map(Path::to_owned),
                memory_mib,
                ..RemoraOptions::following()
            };
            Remora::start(server, &options)
        };
        Ok(Build {
            hot: start(None)?,
            cold: start(Some(COLD_MEMORY_MIB))?,
        })
    }

    fn of(&self, load: Load) -> &Remora {
        match load {
            Load::Hits => &self.hot,
            Load::Misses => &self.cold,
        }
    }
}

/// What a round of an arm showed.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    queries_per_s: f64,
    p95_ms: f64,
    /// The proxy's processor time.
    proxy_us: f64,
}

struct Ways {
    haproxy: HaProxy,
    plain: Build,
    guided: Build,
}

impl Ways {
    fn place(&self, arm: Arm, load: Load) -> (SocketAddr, u32) {
        let of = |build: &Build| (build.of(load).address(), build.of(load).id());
        match arm {
            Arm::HaProxy => (self.haproxy.address(), self.haproxy.id()),
            Arm::Plain => of(&self.plain),
            Arm::Guided => of(&self.guided),
        }
    }

    fn measure(&self, arm: Arm, load: Load, size: Size) -> anyhow::Result<Sample> {
        interrupt::check()?;
        let (address, id) = self.place(arm, load);
        let before = cpu_time(id)?;
        let mut sysbench = Sysbench::new(SCRIPT, address, BENCH_SCHEMA);
        sysbench.rows = load.rows(size);
        sysbench.threads = THREADS;
        sysbench.further = vec!["--rand-type=uniform".to_owned()];
        let report = sysbench.run(Length::Time(size.length()))?;
        let used = cpu_time(id)?.saturating_sub(before);
        Ok(Sample {
            queries_per_s: report.queries_per_s,
            p95_ms: report.p95_ms,
            proxy_us: microseconds_per_query(used, report.queries),
        })
    }
}

/// Measures. `server` has sysbench's table; `guided` is the guided build.
pub(super) fn run(
    server: &Server,
    guided: &Path,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    progress.step("builds: starting what takes part");
    let ways = Ways {
        haproxy: HaProxy::start(server.address(), HAPROXY_THREADS, None)?,
        plain: Build::start(server, None)?,
        guided: Build::start(server, Some(guided))?,
    };
    let mut samples = [const { [const { Vec::new() }; Arm::ALL.len()] }; Load::ALL.len()];
    // The first round fills memory, and isn't counted.
    for round in 0..=size.rounds {
        for (load, samples) in Load::ALL.into_iter().zip(&mut samples) {
            for (arm, samples) in Arm::ALL.into_iter().zip(samples) {
                progress.step(&format!(
                    "builds: round {round} of {}: {}, {}",
                    size.rounds,
                    arm.name(),
                    load.name()
                ));
                let sample = ways.measure(arm, load, size)?;
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
    }
    Ok(report(&samples))
}

fn median_of(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> f64| median(&samples.iter().map(field).collect::<Vec<_>>());
    Sample {
        queries_per_s: of(|sample| sample.queries_per_s),
        p95_ms: of(|sample| sample.p95_ms),
        proxy_us: of(|sample| sample.proxy_us),
    }
}

fn report(samples: &[[Vec<Sample>; Arm::ALL.len()]; Load::ALL.len()]) -> PartReport {
    let mut table = Table::new(&[
        "load",
        "through",
        "queries/s",
        "of HAProxy",
        "p95 ms",
        "proxy's CPU µs/query",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (load, arms) in Load::ALL.into_iter().zip(samples) {
        let [haproxy, plain, guided] = arms.each_ref().map(|samples| median_of(samples));
        for (arm, sample) in Arm::ALL.into_iter().zip([haproxy, plain, guided]) {
            table.row([
                load.name().to_owned(),
                arm.name().to_owned(),
                grouped(sample.queries_per_s),
                format!(
                    "{:.2}",
                    sample.queries_per_s / haproxy.queries_per_s.max(1e-9)
                ),
                format!("{:.2}", sample.p95_ms),
                format!("{:.1}", sample.proxy_us),
            ]);
            figures.push(json!({
                "load": load.name(), "arm": arm.name(), "queries_per_s": sample.queries_per_s,
                "p95_ms": sample.p95_ms, "proxy_us": sample.proxy_us,
            }));
        }
        let ratio = |one: Sample, other: Sample| one.queries_per_s / other.queries_per_s.max(1e-9);
        let mut mark = |what: &str, least, measured| {
            let what = format!("{}: {what}", load.name());
            marks.push(Mark::at_least(what, least, measured, ""));
        };
        let of_plain = "guided / plain build";
        match load {
            Load::Misses => {
                mark(of_plain, MISSES_MIN, ratio(guided, plain));
                mark(
                    "plain build / HAProxy",
                    PLAIN_OF_HAPROXY_MIN,
                    ratio(plain, haproxy),
                );
                mark(
                    "guided build / HAProxy",
                    GUIDED_OF_HAPROXY_MIN,
                    ratio(guided, haproxy),
                );
            }
            Load::Hits => mark(of_plain, HITS_MIN, ratio(guided, plain)),
        }
    }
    PartReport {
        title: format!("The plain and the guided build, {THREADS} threads, text."),
        table,
        marks,
        figures: json!({"runs": figures}),
    }
}
