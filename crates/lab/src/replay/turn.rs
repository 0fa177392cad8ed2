//! One replay of all that is planned to one target.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{PoisonError, atomic::Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::lane::{self, Kept, Shared, Speed};
use super::measured::{Durations, Sample, Second, Tally};
use super::plan::{LeftOut, Plan};
use crate::usage;
use remora_testkit::client::ConnectOptions;
use remora_testkit::interrupt;
use remora_testkit::metrics::Metrics;

/// Batches of samples that may wait to be counted.
const BATCHES_MAX: usize = 4_096;
const LANE_STACK_BYTES: usize = 512 << 10;
/// How often it is told how far a turn is.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// How long answers are waited for after Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// Where statements are sent.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called in tables and results.
    pub label: String,
    /// How to connect.
    pub connect: ConnectOptions,
    /// Where a Remora's metrics are.
    pub admin: Option<SocketAddr>,
    /// The process of a proxy on this machine.
    pub proxy_pid: Option<u32>,
    /// The server's process, if it is on this machine.
    pub server_pid: Option<u32>,
}

/// What one turn has measured.
#[derive(Debug, Default)]
pub struct Turn {
    /// Which target: its place in the list.
    pub target: usize,
    /// Its round, from 1.
    pub round: u32,
    /// Until the last answer.
    pub length: Duration,
    /// Answers, errors among them.
    pub queries: u64,
    /// `SELECT`s among them.
    pub reads: u64,
    /// Errors among them.
    pub errors: u64,
    /// From sending to the answer.
    pub latencies: Durations,
    /// From when it was due to the answer; none where nothing is due.
    pub from_due: Durations,
    /// From when it was due to sending.
    pub lag: Durations,
    /// The series.
    pub seconds: Vec<Second>,
    /// Errors by number.
    pub errors_by_kind: BTreeMap<String, LeftOut>,
    /// What comparable reads gave: places in the plan, in order, with what their rows come to.
    pub digests: Vec<(u32, u64)>,
    /// Share of reads that a Remora answered from memory.
    pub hit_ratio: Option<f64>,
    /// Processor time of the server meanwhile.
    pub server_cpu: Option<Duration>,
    /// Processor time of the proxy meanwhile.
    pub proxy_cpu: Option<Duration>,
    /// Why it ended before its end.
    pub ended_early: Option<String>,
}

impl Turn {
    /// Answers a second.
    #[allow(clippy::cast_precision_loss)]
    pub fn queries_per_s(&self) -> f64 {
        self.queries as f64 / self.length.as_secs_f64().max(1e-6)
    }
}

/// How statements are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// How fast.
    pub speed: Speed,
    /// Whether to keep what reads gave.
    pub with_digests: bool,
}

/// How far a turn is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// Answers so far.
    pub queries: u64,
    /// Since the turn's beginning.
    pub elapsed: Duration,
    /// How far sending lags behind now: 95th percentile of the turn so far, milliseconds.
    pub lag_p95_ms: f64,
}

/// Replays to one target.
///
/// # Errors
/// Its metrics can't be read, or there are no threads. What becomes of the statements is in the
/// result.
pub(super) fn play(
    target: &Target,
    plan: &Plan,
    manner: Manner,
    mut show: impl FnMut(Standing),
) -> anyhow::Result<Turn> {
    let hits_before = hits(target)?;
    let (server_before, proxy_before) = (cpu(target.server_pid)?, cpu(target.proxy_pid)?);
    let shared = Shared::new(plan, &target.connect, manner.speed, manner.with_digests);
    let mut tally = Tally::default();
    let mut last_answer = Duration::ZERO;
    let kept = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(BATCHES_MAX);
        let mut lanes = Vec::new();
        for number in 0..plan.lanes.len() {
            let (shared, sender) = (&shared, sender.clone());
            let spawned = std::thread::Builder::new()
                .name(format!("lane {number}"))
                .stack_size(LANE_STACK_BYTES)
                .spawn_scoped(scope, move || lane::run(shared, number, sender));
            match spawned {
                Ok(lane) => lanes.push(lane),
                Err(error) => {
                    shared.is_stopped.store(true, Ordering::Relaxed);
                    return Err(error).context(
                        "no thread for a connection; --connections-max lowers their number",
                    );
                }
            }
        }
        drop(sender);
        (tally, last_answer) = count(&receiver, &shared, &mut show);
        Ok(lanes
            .into_iter()
            .filter_map(|lane| lane.join().ok())
            .collect::<Vec<Kept>>())
    })?;
    let why = shared
        .why_stopped
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let mut turn = Turn {
        length: last_answer,
        queries: tally.queries,
        reads: tally.reads,
        errors: tally.errors,
        latencies: std::mem::take(&mut tally.latencies),
        from_due: std::mem::take(&mut tally.from_due),
        lag: std::mem::take(&mut tally.lag),
        ended_early: why.or_else(|| interrupt::is_set().then(|| "interrupted".to_owned())),
        ..Turn::default()
    };
    turn.seconds = tally.into_seconds();
    turn.keep(kept);
    turn.server_cpu = cpu_since(server_before, target.server_pid);
    turn.proxy_cpu = cpu_since(proxy_before, target.proxy_pid);
    turn.hit_ratio = hit_ratio(hits_before, target, turn.reads);
    Ok(turn)
}

/// Counts samples until all lanes have ended.
fn count(
    receiver: &mpsc::Receiver<Vec<Sample>>,
    shared: &Shared<'_>,
    show: &mut impl FnMut(Standing),
) -> (Tally, Duration) {
    let (mut tally, mut last_answer) = (Tally::default(), Duration::ZERO);
    let mut shown = Instant::now();
    let mut over_since = None;
    loop {
        match receiver.recv_timeout(SHOW_EVERY) {
            Ok(samples) => {
                for sample in &samples {
                    last_answer = last_answer.max(sample.answered);
                    tally.add(sample);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return (tally, last_answer),
        }
        if shown.elapsed() >= SHOW_EVERY {
            shown = Instant::now();
            show(Standing {
                queries: tally.queries,
                elapsed: shared.begun.elapsed(),
                lag_p95_ms: tally.lag.percentile_ms(95.0),
            });
        }
        if shared.is_over() && over_since.get_or_insert_with(Instant::now).elapsed() > GRACE {
            shared.break_off();
        }
    }
}

impl Turn {
    fn keep(&mut self, kept: Vec<Kept>) {
        for one in kept {
            for (name, error) in one.errors {
                self.errors_by_kind
                    .entry(name)
                    .and_modify(|known| known.count += error.count)
                    .or_insert(error);
            }
            self.digests.extend(one.digests);
        }
        self.digests.sort_unstable();
    }
}

/// What a process has used so far.
fn cpu(pid: Option<u32>) -> anyhow::Result<Option<Duration>> {
    pid.map(usage::cpu_time).transpose()
}

fn cpu_since(before: Option<Duration>, pid: Option<u32>) -> Option<Duration> {
    // Where the process has ended meanwhile, the turn has other things to say.
    Some(cpu(pid).ok()??.saturating_sub(before?))
}

/// The hits of a target that is a Remora, so far.
fn hits(target: &Target) -> anyhow::Result<Option<f64>> {
    let Some(admin) = target.admin else {
        return Ok(None);
    };
    let metrics = Metrics::fetch(admin)
        .with_context(|| format!("{admin} doesn't tell the metrics of {}", target.label))?;
    Ok(Some(metrics.sum("remora_hits_total")))
}

#[allow(clippy::cast_precision_loss)]
fn hit_ratio(before: Option<f64>, target: &Target, reads: u64) -> Option<f64> {
    // Where the Remora has ended meanwhile, the turn has other things to say.
    let after = hits(target).ok()??;
    let hits = after - before?;
    (reads > 0).then(|| (hits / reads as f64).clamp(0.0, 1.0))
}
