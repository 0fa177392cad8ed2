//! One measurement: a load through an arm, from its begin until it has counted for long enough,
//! with the checker and the trickle beside it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::arms::{Counts, Way, hit_ratio};
use super::checker::{self, Checked};
use super::machine::{FREE_BYTES_TO_GO_ON, require_space};
use super::plan::{Arm, Data, Plan, Point, Script};
use super::stage::schema;
use super::{open_loop, trickle};
use crate::results::{Latency, OpenLoop, Repetition};
use crate::statistics::steady;
use crate::usage::{cpu_time, microseconds_per_query};
use remora_testkit::client::ConnectOptions;
use remora_testkit::sysbench::{Running, Second, Sysbench};

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
    /// Lengths and data.
    pub(super) plan: &'a Plan,
    /// The load.
    pub(super) point: &'a Point,
    /// The way to the server.
    pub(super) arm: Arm,
    /// Its place among all.
    pub(super) turn: u32,
    /// Where the lab's own scripts lie.
    pub(super) scripts: &'a Path,
    /// Chooses keys of the trickle and the open loop.
    pub(super) seed: u64,
}

/// What a measurement gave.
#[derive(Debug)]
pub(super) struct Measured {
    /// The figures; the name of the series isn't set.
    pub(super) repetition: Repetition,
    /// The seconds before anything counted.
    pub(super) warm_up: Vec<Second>,
    /// Those that count.
    pub(super) seconds: Vec<Second>,
    /// The command of the load.
    pub(super) command: String,
    /// The first stale read, in words.
    pub(super) first_stale: Option<String>,
}

/// What was used and counted up to a moment.
struct Moment {
    server: Duration,
    proxy: Option<Duration>,
    counts: Counts,
}

impl Moment {
    fn now(way: &Way<'_>) -> anyhow::Result<Moment> {
        let server = way.server().id().map_or(Ok(Duration::ZERO), cpu_time)?;
        Ok(Moment {
            server,
            proxy: way.proxy_id().map(cpu_time).transpose()?,
            counts: way.counts()?,
        })
    }
}

/// A load that has run.
struct Ran {
    warm_up: Vec<Second>,
    is_steady: Option<bool>,
    seconds: Vec<Second>,
    before: Moment,
    after: Moment,
}

/// The load of a point as a sysbench.
pub(super) fn sysbench(job: &Job<'_>, way: &Way<'_>) -> Sysbench {
    let load = &job.point.load;
    let (Script::Its(name) | Script::Ours(name)) = load.script;
    let mut sysbench = Sysbench::new(name, way.address(), schema(&job.plan.data));
    sysbench.threads = load.threads;
    sysbench.prepared = load.prepared;
    sysbench.further.clone_from(&load.options);
    match (load.script, &job.plan.data) {
        (Script::Its(_), Data::Sysbench { tables, rows }) => {
            (sysbench.tables, sysbench.rows) = (*tables, *rows);
        }
        (Script::Its(_), Data::Statements(_)) => {}
        (Script::Ours(_), _) => {
            sysbench.directory = Some(job.scripts.to_owned());
            (sysbench.tables, sysbench.rows) = (0, 0);
        }
    }
    sysbench
}

/// Measures. `say` is told how it goes, about once a second.
///
/// # Errors
/// sysbench, the checker or the trickle met an error, or the user asked to stop.
pub(super) fn measure(
    job: &Job<'_>,
    way: &Way<'_>,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Measured> {
    let sysbench = sysbench(job, way);
    let checks = way.server().app().at(way.address());
    let load = checks.clone().schema(schema(&job.plan.data));
    let stop = &AtomicBool::new(false);
    let (ran, checked, open) = std::thread::scope(|scope| {
        // Also when what follows fails.
        let ending = SetWhenDropped(stop);
        let checks = scope.spawn(move || checker::run(&checks, stop));
        let trickle = job.point.trickle.as_ref().map(|trickle| {
            let load = load.clone();
            scope.spawn(move || trickle::run(trickle, &load, job.seed, stop))
        });
        let failed =
            || checks.is_finished() || trickle.as_ref().is_some_and(ScopedJoinHandle::is_finished);
        let ran = drive(job, way, sysbench.start()?, &failed, say);
        let open = match &ran {
            Ok(ran) => after_the_load(job, ran, &load, say),
            Err(_) => Ok(None),
        };
        drop(ending);
        let checked = joined(checks)?;
        trickle.map_or(Ok(()), joined)?;
        anyhow::Ok((ran?, checked, open?))
    })?;
    Ok(Measured {
        repetition: repetition(job, way, &ran, &checked, open),
        warm_up: ran.warm_up,
        seconds: ran.seconds,
        command: sysbench.command_line("run"),
        first_stale: checked.first_stale,
    })
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(anyhow::anyhow!("what goes on beside the load panicked")))
}

/// Reads the load's seconds until enough of them count. `failed`: what goes on beside it has ended,
/// and must not have.
fn drive(
    job: &Job<'_>,
    way: &Way<'_>,
    mut running: Running,
    failed: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Ran> {
    let mut next = |say: &mut dyn FnMut(&str), what: &str| {
        let second = running.next_second()?;
        say(&format!("{what}: {:.0} queries/s", second.queries_per_s()));
        require_space(&std::env::temp_dir(), FREE_BYTES_TO_GO_ON)?;
        if failed() {
            anyhow::bail!("what goes on beside the load has ended");
        }
        anyhow::Ok(second)
    };
    let pace = &job.plan.pace;
    let mut is_steady = pace.judges_steadiness().then_some(false);
    let (mut warm_up, mut rates) = (Vec::new(), Vec::new());
    while is_steady != Some(true) {
        let second = next(say, "warming up")?;
        rates.push(second.queries_per_s());
        is_steady = is_steady.map(|_| steady::is_steady(&rates));
        // A little less, for no second is exactly one.
        let is_long = second.at_s >= pace.warm_up_max.as_secs_f64() - 0.1;
        warm_up.push(second);
        if is_long {
            break;
        }
    }
    let before = Moment::now(way)?;
    let from_s = warm_up.last().map_or(0.0, |second| second.at_s);
    let mut seconds: Vec<Second> = Vec::new();
    let until_s = from_s + pace.length.as_secs_f64() - 0.1;
    while seconds.last().is_none_or(|second| second.at_s < until_s) {
        seconds.push(next(say, "measuring")?);
    }
    let after = Moment::now(way)?;
    running.end()?;
    Ok(Ran {
        warm_up,
        is_steady,
        seconds,
        before,
        after,
    })
}

fn after_the_load(
    job: &Job<'_>,
    ran: &Ran,
    through: &ConnectOptions,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Option<OpenLoop>> {
    let Some(load) = &job.point.open_loop else {
        return Ok(None);
    };
    let (queries, _, length_s) = totals(&ran.seconds);
    #[allow(clippy::cast_precision_loss)]
    let rate_per_s = queries as f64 / length_s * load.share;
    say(&format!("open loop: {rate_per_s:.0} queries/s are due"));
    let threads = job.point.load.threads;
    let length = job.plan.pace.length;
    open_loop::run(load, rate_per_s, length, threads, through, job.seed).map(Some)
}

/// Queries, transactions and seconds.
fn totals(seconds: &[Second]) -> (u64, u64, f64) {
    let queries = seconds.iter().map(Second::queries).sum();
    let transactions = seconds.iter().map(|second| second.transactions).sum();
    let length_s: f64 = seconds.iter().map(|second| second.length_s).sum();
    (queries, transactions, length_s.max(1e-9))
}

#[allow(clippy::cast_precision_loss)]
fn repetition(
    job: &Job<'_>,
    way: &Way<'_>,
    ran: &Ran,
    checked: &Checked,
    open_loop: Option<OpenLoop>,
) -> Repetition {
    let (queries, transactions, length_s) = totals(&ran.seconds);
    let latencies = match (ran.warm_up.last(), ran.seconds.last()) {
        (Some(first), Some(last)) => last.latencies.since(&first.latencies),
        _ => remora_testkit::sysbench::Distribution::default(),
    };
    let counters = ran.after.counts.since(&ran.before.counts);
    let used = |after: Duration, before: Duration| {
        microseconds_per_query(after.saturating_sub(before), queries)
    };
    let proxy = ran.after.proxy.zip(ran.before.proxy);
    let reads: u64 = ran.seconds.iter().map(|second| second.reads).sum();
    Repetition {
        turn: job.turn,
        warm_up_s: ran.warm_up.last().map_or(0.0, |second| second.at_s),
        is_steady: ran.is_steady,
        length_s,
        queries,
        queries_per_s: queries as f64 / length_s,
        transactions_per_s: transactions as f64 / length_s,
        latency_ms: Latency {
            mean: latencies.mean_ms(),
            p50: Some(latencies.percentile_ms(50.0)),
            p95: latencies.percentile_ms(95.0),
            p99: Some(latencies.percentile_ms(99.0)),
            max: latencies.max_ms(),
        },
        open_loop,
        server_cpu_us: Some(used(ran.after.server, ran.before.server)),
        proxy_cpu_us: proxy.map(|(after, before)| used(after, before)),
        // Of a load that reads nothing it would be that of the checker.
        hit_ratio: if reads > 0 {
            hit_ratio(job.arm, way.server().kind(), &counters, reads as f64)
        } else {
            None
        },
        checked_reads: checked.reads,
        stale_reads: checked.stale,
        errors: ran.seconds.iter().map(|s| s.errors + s.reconnects).sum(),
        counters,
        series: String::new(),
    }
}
