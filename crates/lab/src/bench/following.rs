//! How far Remora lags behind a server that writes as fast as it can.
//!
//! sysbench writes to the server directly. Beside it a probe changes a row of a table of its own,
//! directly too, and from the server's answer on reads it through Remora again and again, until it
//! gets the new value. That time holds the way of the log to Remora, the follower's work, and a
//! read or two; on a machine whose processors are all taken it holds their waiting for a processor,
//! too.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;

use super::Size;
use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::{Latencies, median};
use crate::table::{Table, grouped};
use crate::usage::thread_cpu_time;
use remora_testkit::client::Client;
use remora_testkit::interrupt;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;
use remora_testkit::sysbench::{Length, Report, Sysbench};

/// sysbench's threads.
const THREADS: u32 = 8;
/// How many kinds of reads are registered.
const SHAPES: usize = 16;
/// 99 of 100 commits are applied so soon, milliseconds.
const LAG_MS_MAX: f64 = 1.0;
/// Between two probes.
const PAUSE: Duration = Duration::from_millis(1);
/// What the probe reads.
const READ: &str = "SELECT v FROM probe WHERE id = 1";
/// Longest wait for the follower.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arm {
    name: &'static str,
    /// What sysbench runs; `None`: nothing.
    script: Option<&'static str>,
    has_shapes: bool,
}

const ARMS: [Arm; 5] = [
    Arm {
        name: "no load, 16 shapes",
        script: None,
        has_shapes: true,
    },
    Arm {
        name: "oltp_update_non_index, no shapes",
        script: Some("oltp_update_non_index"),
        has_shapes: false,
    },
    Arm {
        name: "oltp_update_non_index, 16 shapes",
        script: Some("oltp_update_non_index"),
        has_shapes: true,
    },
    Arm {
        name: "oltp_write_only, no shapes",
        script: Some("oltp_write_only"),
        has_shapes: false,
    },
    Arm {
        name: "oltp_write_only, 16 shapes",
        script: Some("oltp_write_only"),
        has_shapes: true,
    },
];

/// What a round of an arm showed.
struct Sample {
    lag: Latencies,
    /// A read of the same row from the server itself: what anything takes on this machine just
    /// then.
    direct_read: Latencies,
    commits_per_s: f64,
    /// The follower's processor time for a commit.
    commit_us: f64,
    /// From sysbench's end until all of the log was applied.
    drained_ms: f64,
}

/// Measures.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    server.execute([
        format!("CREATE TABLE {BENCH_SCHEMA}.probe (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"),
        format!("INSERT INTO {BENCH_SCHEMA}.probe VALUES (1, 0)"),
    ])?;
    let mut samples: Vec<Vec<Sample>> = ARMS.iter().map(|_| Vec::new()).collect();
    for round in 1..=size.rounds {
        for (arm, samples) in ARMS.iter().zip(&mut samples) {
            progress.step(&format!(
                "following: round {round} of {}: {}",
                size.rounds, arm.name
            ));
            samples.push(measure(server, *arm, size)?);
        }
    }
    server.execute([format!("DROP TABLE {BENCH_SCHEMA}.probe")])?;
    Ok(report(&samples))
}

fn report(samples: &[Vec<Sample>]) -> PartReport {
    let mut table = Table::new(&[
        "server's load",
        "commits/s",
        "follower's CPU, µs/commit",
        "lag p50 ms",
        "p99 ms",
        "p99.9 ms",
        "direct read p99 ms",
        "probes",
        "caught up after ms",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (arm, samples) in ARMS.iter().zip(samples) {
        let of = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<f64>>());
        let (mut lag, mut direct_read) = (Latencies::new(), Latencies::new());
        for sample in samples {
            lag.add(&sample.lag);
            direct_read.add(&sample.direct_read);
        }
        let direct_p99 = direct_read.percentile_ms(99.0);
        let [p50, p99, p999] = [50.0, 99.0, 99.9].map(|percent| lag.percentile_ms(percent));
        #[allow(clippy::cast_precision_loss)]
        let probes = lag.count() as f64;
        table.row([
            arm.name.to_owned(),
            grouped(of(|s| s.commits_per_s)),
            format!("{:.1}", of(|s| s.commit_us)),
            format!("{p50:.2}"),
            format!("{p99:.2}"),
            format!("{p999:.2}"),
            format!("{direct_p99:.2}"),
            grouped(probes),
            format!("{:.1}", of(|s| s.drained_ms)),
        ]);
        if arm.has_shapes {
            let what = format!("lag p99, {}", arm.name);
            marks.push(Mark::at_most(what, LAG_MS_MAX, p99, "ms"));
        }
        figures.push(json!({
            "arm": arm.name, "commits_per_s": of(|s| s.commits_per_s),
            "follower_us_per_commit": of(|s| s.commit_us), "lag_p50_ms": p50, "lag_p99_ms": p99,
            "lag_p999_ms": p999, "direct_read_p99_ms": direct_p99, "probes": probes, "drained_ms": of(|s| s.drained_ms),
        }));
    }
    PartReport {
        title: format!(
            "sysbench writes to the server with {THREADS} threads at full speed; the lag is the time from a commit's answer until a read through Remora shows it. All share the machine's processors."
        ),
        table,
        marks,
        figures: json!(figures),
    }
}

fn measure(server: &Server, arm: Arm, size: Size) -> anyhow::Result<Sample> {
    let options = if arm.has_shapes {
        RemoraOptions::following()
    } else {
        RemoraOptions::following().with("cache.table_shapes_max", "0")
    };
    let remora = Remora::start(server, &options)?;
    let mut through = connect(server, Some(&remora))?;
    if arm.has_shapes {
        register(&remora, &mut through)?;
    }
    let commits_before = remora.metrics()?.sum("remora_follower_commits_total");
    let cpu_before = thread_cpu_time(remora.id(), "remora-follower")?;
    let began = Instant::now();
    let load = arm.script.map(|script| start_load(server, script, size));
    let (mut lag, mut direct_read) = (Latencies::new(), Latencies::new());
    let mut direct = connect(server, None)?;
    let is_over = || match &load {
        Some(load) => load.is_finished(),
        None => began.elapsed() >= size.length(),
    };
    while !is_over() {
        interrupt::check()?;
        lag.record(probe(&mut direct, &mut through)?);
        let asked = Instant::now();
        direct.query(READ)?;
        direct_read.record(asked.elapsed());
        std::thread::sleep(PAUSE);
    }
    let took = began.elapsed();
    if let Some(load) = load {
        load.join()
            .map_err(|_| anyhow!("sysbench's thread panicked"))??;
    }
    let drained = catch_up(server, &remora)?;
    let used = thread_cpu_time(remora.id(), "remora-follower")?.saturating_sub(cpu_before);
    let commits = remora.metrics()?.sum("remora_follower_commits_total") - commits_before;
    Ok(Sample {
        lag,
        direct_read,
        commits_per_s: commits / took.as_secs_f64(),
        commit_us: used.as_secs_f64() * 1e6 / commits.max(1.0),
        drained_ms: drained.as_secs_f64() * 1e3,
    })
}

fn connect(server: &Server, remora: Option<&Remora>) -> anyhow::Result<Client> {
    let app = server.app().schema(BENCH_SCHEMA);
    let app = match remora {
        Some(remora) => app.at(remora.address()),
        None => app,
    };
    Ok(app.connect()?)
}

/// Reads sysbench's table in as many ways as there are to be shapes.
fn register(remora: &Remora, client: &mut Client) -> anyhow::Result<()> {
    let lists = ["c", "k", "pad", "c, pad"];
    let conditions = [
        "id = 5",
        "k = 5",
        "id BETWEEN 1 AND 100",
        "k BETWEEN 1 AND 100",
    ];
    #[allow(clippy::cast_precision_loss)]
    let wanted = SHAPES as f64;
    // The first ones find no definition of the table yet.
    wait_for("the shapes to be registered", PATIENCE, || {
        for list in lists {
            for condition in conditions {
                client.query(&format!("SELECT {list} FROM sbtest1 WHERE {condition}"))?;
            }
        }
        let shapes = remora.metrics()?.sum("remora_shapes");
        Ok((shapes >= wanted).then_some(()))
    })
}

fn start_load(
    server: &Server,
    script: &'static str,
    size: Size,
) -> JoinHandle<anyhow::Result<Report>> {
    let mut sysbench = Sysbench::new(script, server.address(), BENCH_SCHEMA);
    sysbench.rows = size.rows();
    sysbench.threads = THREADS;
    sysbench.further = vec!["--rand-type=uniform".to_owned()];
    let length = Length::Time(size.length());
    std::thread::spawn(move || sysbench.run(length))
}

/// How long a commit takes to show.
fn probe(direct: &mut Client, through: &mut Client) -> anyhow::Result<Duration> {
    // So that the old value is in memory.
    let old = through.query_value(READ)?.context("the probe's row")?;
    let new = (old.parse::<u64>()? + 1).to_string();
    direct.query(&format!("UPDATE probe SET v = {new} WHERE id = 1"))?;
    let committed = Instant::now();
    loop {
        if through.query_value(READ)?.as_ref() == Some(&new) {
            return Ok(committed.elapsed());
        }
        if committed.elapsed() > PATIENCE {
            bail!("a commit isn't shown after {PATIENCE:?}");
        }
    }
}

/// Waits until all that the server has is applied.
fn catch_up(server: &Server, remora: &Remora) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let position = server.position()?;
    let (_, offset) = position.split_once(':').context("a position")?;
    let offset: f64 = offset.parse()?;
    wait_for("the follower to catch up", PATIENCE, || {
        let applied = remora.metrics()?.sum("remora_follower_log_offset_bytes");
        Ok((applied >= offset).then_some(()))
    })?;
    Ok(began.elapsed())
}
