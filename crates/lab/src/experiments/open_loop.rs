//! Latency at a set rate: statements are sent when they are due, and latency counts from then, so
//! that an answer that takes long shows in those that had to wait for it (no coordinated omission).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::plan::OpenLoopLoad;
use super::trickle::fill_in;
use crate::results::{Latency, OpenLoop};
use crate::stats::Latencies;
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::interrupt;
use remora_testkit::load::Random;

/// Clients at most. Where all of them wait for an answer, what is due waits too, and that counts.
const CLIENTS_MAX: u32 = 128;

/// What all clients share.
struct Clock {
    began: Instant,
    between: Duration,
    /// How many have been taken.
    taken: AtomicU64,
    due_in_all: u64,
}

impl Clock {
    /// When the next one is due that nobody has taken; `None` when all are taken.
    fn take(&self) -> Option<Instant> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let after = self.between.as_secs_f64() * as_f64(number);
        (number < self.due_in_all).then(|| self.began + Duration::from_secs_f64(after))
    }
}

/// Sends statements at `rate_per_s` for `length`, over as many connections as the load had.
///
/// # Errors
/// A client met an error, or the user asked to stop.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn run(
    load: &OpenLoopLoad,
    rate_per_s: f64,
    length: Duration,
    threads: u32,
    through: &ConnectOptions,
    seed: u64,
) -> anyhow::Result<OpenLoop> {
    let rate_per_s = rate_per_s.max(1.0);
    let connect = |_| through.connect().context("a client of the open loop");
    let clients = (0..threads.clamp(1, CLIENTS_MAX))
        .map(connect)
        .collect::<anyhow::Result<Vec<Client>>>()?;
    let clock = Clock {
        began: Instant::now(),
        between: Duration::from_secs_f64(1.0 / rate_per_s),
        taken: AtomicU64::new(0),
        due_in_all: (rate_per_s * length.as_secs_f64()) as u64,
    };
    let mut seeds = Random::new(seed);
    let parts: Vec<anyhow::Result<Latencies>> = std::thread::scope(|scope| {
        let start = |client| {
            let (clock, random) = (&clock, Random::new(seeds.next()));
            scope.spawn(move || one_client(client, load, clock, random))
        };
        let running: Vec<_> = clients.into_iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Latencies>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a client of the open loop panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let took = clock.began.elapsed();
    interrupt::check()?;
    let mut all = Latencies::new();
    for part in parts {
        all.add(&part?);
    }
    Ok(OpenLoop {
        rate_per_s,
        reached_per_s: as_f64(all.count()) / took.as_secs_f64(),
        latency_ms: Latency {
            mean: all.mean_ms(),
            p50: Some(all.percentile_ms(50.0)),
            p95: all.percentile_ms(95.0),
            p99: Some(all.percentile_ms(99.0)),
            max: all.percentile_ms(100.0),
        },
    })
}

fn one_client(
    mut client: Client,
    load: &OpenLoopLoad,
    clock: &Clock,
    mut random: Random,
) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::new();
    if load.statements.is_empty() {
        return Ok(latencies);
    }
    while let Some(due) = clock.take() {
        if interrupt::is_set() {
            break;
        }
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        let statement = &load.statements[random.below(load.statements.len())];
        client.query(&fill_in(statement, load.below, &mut random))?;
        latencies.record(due.elapsed());
    }
    Ok(latencies)
}

#[allow(clippy::cast_precision_loss)]
fn as_f64(count: u64) -> f64 {
    count as f64
}
