//! sysbench's `oltp_read_only` as it is: reads inside transactions at `REPEATABLE READ`.
//!
//! A transaction reads ten rows by key and four ranges of a hundred rows. Some of it repeats, or
//! all, or nothing. And one that reads a single row, with `BEGIN`, which memory answers only before
//! the server knows of the transaction. Besides the rate it is told what the server has to do for a
//! transaction, with Remora's questions.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::Size;
use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::cpu_time;
use remora_testkit::interrupt;
use remora_testkit::proxies::{HaProxy, Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_testkit::sysbench::{Length, Sysbench};

/// sysbench's threads, and HAProxy's.
const THREADS: u32 = 8;
const HAPROXY_THREADS: usize = 2;
/// Size of the server's own query cache, MiB.
const QUERY_CACHE_MIB: u32 = 256;
/// Memory of the Remora where nothing hits, MiB.
const COLD_MEMORY_MIB: u32 = 8;
/// Of direct, where nearly everything could hit.
const RATE_MIN: f64 = 1.5;
const SERVER_TIME_MAX: f64 = 0.25;
/// Of Remora without reads in transactions, where nothing hits.
const COLD_MIN: f64 = 0.97;

/// What the transactions read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Hot,
    /// About 95 % of the reads have been asked before, once the first round has run.
    Repeated,
    /// About 90 % of them.
    Skewed,
    Cold,
    Single,
}

impl Load {
    const ALL: [Load; 5] = [
        Load::Hot,
        Load::Repeated,
        Load::Skewed,
        Load::Cold,
        Load::Single,
    ];

    fn name(self) -> &'static str {
        match self {
            Load::Hot => "1,000 rows",
            Load::Repeated => "all rows, 95 % repeat",
            Load::Skewed => "all rows, 90 % repeat",
            Load::Cold => "all rows",
            Load::Single => "one read, 1,000 rows",
        }
    }

    fn rows(self, size: Size) -> u32 {
        match self {
            Load::Hot | Load::Single => 1_000,
            Load::Repeated | Load::Skewed | Load::Cold => size.rows(),
        }
    }

    /// Whether at least 95 % of its reads could hit: for such the marks are named.
    fn has_mark(self) -> bool {
        matches!(self, Load::Hot | Load::Repeated)
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Load::Hot | Load::Cold => &["--rand-type=uniform"],
            Load::Repeated => &["--rand-type=pareto", "--rand-pareto-h=0.03"],
            Load::Skewed => &["--rand-type=pareto", "--rand-pareto-h=0.05"],
            Load::Single => &[
                "--rand-type=uniform",
                "--point-selects=1",
                "--range-selects=off",
            ],
        }
    }
}

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Direct,
    HaProxy,
    BuiltIn,
    Off,
    Remora,
    Early,
}

impl Arm {
    const ALL: [Arm; 6] = [
        Arm::Direct,
        Arm::HaProxy,
        Arm::BuiltIn,
        Arm::Off,
        Arm::Remora,
        Arm::Early,
    ];

    /// Its median among those of all arms.
    fn of<T: Copy>(self, medians: &[T; Arm::ALL.len()]) -> T {
        medians[self as usize]
    }

    fn name(self) -> &'static str {
        match self {
            Arm::Direct => "direct",
            Arm::HaProxy => "HAProxy",
            Arm::BuiltIn => "query cache, direct",
            Arm::Off => "Remora, reads in transactions off",
            Arm::Remora => "Remora",
            Arm::Early => "Remora, early",
        }
    }
}

/// All that takes part. Dropped in this order.
struct Ways<'s> {
    haproxy: HaProxy,
    /// For what could hit, and for what couldn't.
    remoras: [Remoras; 2],
    built_in: Server,
    server: &'s Server,
}

/// One for each way to read in transactions.
struct Remoras {
    off: Remora,
    after_snapshot: Remora,
    early: Remora,
}

/// What a round of an arm showed.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    transactions_per_s: f64,
    p95_ms: f64,
    /// The server's processor time for a transaction, microseconds.
    server_us: f64,
    /// Remora's questions where the log ends, for a transaction.
    questions: f64,
    /// Statements answered from memory, of all.
    hits: f64,
}

impl<'s> Ways<'s> {
    fn start(server: &'s Server, size: Size) -> anyhow::Result<Ways<'s>> {
        let remora = |reads: &str, memory_mib| {
            let options = RemoraOptions {
                memory_mib,
                ..RemoraOptions::following()
            };
            Remora::start(server, &options.with("cache.transaction_reads", reads))
        };
        let all = |memory_mib| -> anyhow::Result<Remoras> {
            Ok(Remoras {
                off: remora("off", memory_mib)?,
                after_snapshot: remora("after_snapshot", memory_mib)?,
                early: remora("early", memory_mib)?,
            })
        };
        Ok(Ways {
            haproxy: HaProxy::start(server.address(), HAPROXY_THREADS, None)?,
            remoras: [all(None)?, all(Some(COLD_MEMORY_MIB))?],
            built_in: built_in(size)?,
            server,
        })
    }

    fn remora(&self, arm: Arm, load: Load) -> Option<&Remora> {
        let remoras = &self.remoras[usize::from(load == Load::Cold)];
        match arm {
            Arm::Off => Some(&remoras.off),
            Arm::Remora => Some(&remoras.after_snapshot),
            Arm::Early => Some(&remoras.early),
            Arm::Direct | Arm::HaProxy | Arm::BuiltIn => None,
        }
    }

    fn address(&self, arm: Arm, load: Load) -> SocketAddr {
        match (arm, self.remora(arm, load)) {
            (_, Some(remora)) => remora.address(),
            (Arm::HaProxy, _) => self.haproxy.address(),
            (Arm::BuiltIn, _) => self.built_in.address(),
            _ => self.server.address(),
        }
    }

    fn measure(
        &self,
        arm: Arm,
        load: Load,
        size: Size,
        length: Duration,
    ) -> anyhow::Result<Sample> {
        interrupt::check()?;
        let server = match arm {
            Arm::BuiltIn => &self.built_in,
            _ => self.server,
        };
        let id = server.id().context("the server is gone")?;
        let counted = |name| match self.remora(arm, load) {
            Some(remora) => remora.metrics().map(|metrics| metrics.sum(name)),
            None => Ok(0.0),
        };
        let (hits, questions) = ("remora_hits_total", "remora_log_end_queries_total");
        let before = (cpu_time(id)?, counted(hits)?, counted(questions)?);
        let mut sysbench = Sysbench::new("oltp_read_only", self.address(arm, load), BENCH_SCHEMA);
        sysbench.rows = load.rows(size);
        sysbench.threads = THREADS;
        sysbench.further = load.options().iter().map(|&text| text.to_owned()).collect();
        let report = sysbench.run(Length::Time(length))?;
        let transactions = (report.transactions_per_s * length.as_secs_f64()).max(1.0);
        #[allow(clippy::cast_precision_loss)]
        let queries = (report.queries as f64).max(1.0);
        let server_time = cpu_time(id)?.saturating_sub(before.0);
        Ok(Sample {
            transactions_per_s: report.transactions_per_s,
            p95_ms: report.p95_ms,
            server_us: server_time.as_secs_f64() * 1e6 / transactions,
            questions: (counted(questions)? - before.2) / transactions,
            hits: (counted(hits)? - before.1) / queries,
        })
    }
}

/// A server with a query cache of its own.
fn built_in(size: Size) -> anyhow::Result<Server> {
    let server = Server::start(ServerOptions {
        kind: Some(Kind::MariaDb1011),
        buffer_pool_mib: 512,
        query_cache_mib: QUERY_CACHE_MIB,
        connections_max: 200,
        ..ServerOptions::default()
    })?;
    server.execute([format!("CREATE DATABASE {BENCH_SCHEMA}")])?;
    let mut sysbench = Sysbench::new("oltp_read_only", server.address(), BENCH_SCHEMA);
    sysbench.rows = size.rows();
    sysbench.prepare().context("can't fill sysbench's table")?;
    Ok(server)
}

/// Measures. `server` has sysbench's table.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    progress.step("transactions: starting what takes part");
    let ways = Ways::start(server, size)?;
    let mut samples = vec![vec![Vec::new(); Arm::ALL.len()]; Load::ALL.len()];
    // The first round fills memory, and isn't counted.
    for round in 0..=size.rounds {
        for (load, samples) in Load::ALL.into_iter().zip(&mut samples) {
            for (arm, samples) in Arm::ALL.into_iter().zip(samples) {
                progress.step(&format!(
                    "transactions: round {round} of {}: {}, {}",
                    size.rounds,
                    arm.name(),
                    load.name()
                ));
                let sample = ways.measure(arm, load, size, size.length())?;
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
    }
    Ok(report(&samples, size))
}

fn median_of(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> f64| median(&samples.iter().map(field).collect::<Vec<_>>());
    Sample {
        transactions_per_s: of(|sample| sample.transactions_per_s),
        p95_ms: of(|sample| sample.p95_ms),
        server_us: of(|sample| sample.server_us),
        questions: of(|sample| sample.questions),
        hits: of(|sample| sample.hits),
    }
}

fn report(samples: &[Vec<Vec<Sample>>], size: Size) -> PartReport {
    let mut table = Table::new(&[
        "reads",
        "through",
        "transactions/s",
        "of direct",
        "p95 ms",
        "server µs",
        "of direct",
        "questions",
        "hits %",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (load, arms) in Load::ALL.into_iter().zip(samples) {
        let medians = Arm::ALL.map(|arm| median_of(&arms[arm as usize]));
        let direct = Arm::Direct.of(&medians);
        for (arm, sample) in Arm::ALL.into_iter().zip(&medians) {
            let rate = sample.transactions_per_s / direct.transactions_per_s.max(1e-9);
            let time = sample.server_us / direct.server_us.max(1e-9);
            table.row([
                load.name().to_owned(),
                arm.name().to_owned(),
                grouped(sample.transactions_per_s),
                format!("{rate:.2}"),
                format!("{:.2}", sample.p95_ms),
                grouped(sample.server_us),
                format!("{time:.2}"),
                format!("{:.3}", sample.questions),
                format!("{:.1}", 100.0 * sample.hits),
            ]);
            figures.push(json!({
                "load": load.name(), "arm": arm.name(),
                "transactions_per_s": sample.transactions_per_s, "p95_ms": sample.p95_ms,
                "server_us": sample.server_us, "questions": sample.questions,
                "hits": sample.hits,
            }));
            if load.has_mark() && matches!(arm, Arm::Remora | Arm::Early) {
                let what = |what| format!("{} / direct, {}: {what}", arm.name(), load.name());
                marks.push(Mark::at_least(what("transactions"), RATE_MIN, rate, ""));
                let server = what("server time");
                marks.push(Mark::at_most(server, SERVER_TIME_MAX, time, ""));
            }
        }
        if load == Load::Cold {
            let (off, on) = (Arm::Off.of(&medians), Arm::Remora.of(&medians));
            let what = "nothing hits: Remora with reads in transactions / without";
            let ratio = on.transactions_per_s / off.transactions_per_s.max(1e-9);
            marks.push(Mark::at_least(what, COLD_MIN, ratio, ""));
        }
    }
    PartReport {
        title: format!(
            "oltp_read_only in transactions at REPEATABLE READ, {THREADS} threads, text, a table of {} rows.",
            grouped(size.rows().into())
        ),
        table,
        marks,
        figures: json!({"runs": figures}),
    }
}
