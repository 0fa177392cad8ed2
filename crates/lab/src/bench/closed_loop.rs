//! Clients of the lab's own, each of which asks again as soon as it has its answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::interrupt;
use remora_testkit::load::random::Random;

/// The longest latency that is told apart, microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;

/// What a run showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// Queries in all.
    pub(super) queries: u64,
    /// Queries a second.
    pub(super) queries_per_s: f64,
    /// 95th percentile of the latency, milliseconds.
    pub(super) p95_ms: f64,
}

/// Calls `ask` again and again on so many connections for so long.
///
/// # Errors
/// A client met an error.
pub(super) fn run(
    options: &ConnectOptions,
    threads: u32,
    length: Duration,
    ask: impl Fn(&mut Client, &mut Random) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Report> {
    let (stop, queries) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut seeds = Random::new(Random::fresh_seed());
    let mut latency_us = Histogram::<u64>::new_with_max(LATENCY_US_MAX, 3)?;
    let connect = |_| options.connect().context("a client of the benchmark");
    let clients = (0..threads)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let began = Instant::now();
    let parts: Vec<anyhow::Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for mut client in clients {
            let (stop, queries, ask) = (&stop, &queries, &ask);
            let mut random = Random::new(seeds.next());
            running.push(scope.spawn(move || {
                let mut latency_us = Histogram::<u64>::new_with_max(LATENCY_US_MAX, 3)?;
                while !stop.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    ask(&mut client, &mut random)?;
                    let took = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
                    latency_us.saturating_record(took);
                    queries.fetch_add(1, Ordering::Relaxed);
                }
                Ok(latency_us)
            }));
        }
        // If the user asks to stop, the clients still end in order.
        let _ = interrupt::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Histogram<u64>>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let took = began.elapsed();
    interrupt::check()?;
    for part in parts {
        latency_us.add(part?)?;
    }
    let queries = queries.into_inner();
    #[allow(clippy::cast_precision_loss)]
    Ok(Report {
        queries,
        queries_per_s: queries as f64 / took.as_secs_f64(),
        p95_ms: latency_us.value_at_quantile(0.95) as f64 / 1e3,
    })
}
