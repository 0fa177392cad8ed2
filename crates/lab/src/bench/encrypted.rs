//! A closed loop of reads over TLS. sysbench speaks TLS only as the protocol has it, behind the greeting; HAProxy, which
//! knows nothing of the protocol, only from the first byte on. The same client does both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;

use crate::client::ConnectOptions;
use crate::load::random::Random;

/// The longest latency that is told apart, microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reads {
    /// One row, about 200 bytes.
    Rows,
    /// A thousand rows, about 130,000 bytes.
    Ranges,
}

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

/// Reads with so many connections for so long.
///
/// # Errors
/// A client met an error.
pub(super) fn run(
    options: &ConnectOptions,
    reads: Reads,
    rows: u32,
    threads: u32,
    length: Duration,
) -> anyhow::Result<Report> {
    let (stop, queries) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut seeds = Random::new(Random::fresh_seed());
    let mut latency_us = Histogram::<u64>::new_with_max(LATENCY_US_MAX, 3)?;
    let connect = |_| options.connect().context("a client over TLS");
    let clients = (0..threads)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let began = Instant::now();
    let parts: Vec<anyhow::Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for mut client in clients {
            let (stop, queries) = (&stop, &queries);
            let mut random = Random::new(seeds.next());
            running.push(scope.spawn(move || {
                let mut latency_us = Histogram::<u64>::new_with_max(LATENCY_US_MAX, 3)?;
                while !stop.load(Ordering::Relaxed) {
                    let text = reads.text(&mut random, rows);
                    let sent = Instant::now();
                    client.query(&text)?;
                    let took = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
                    latency_us.saturating_record(took);
                    queries.fetch_add(1, Ordering::Relaxed);
                }
                Ok(latency_us)
            }));
        }
        std::thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Histogram<u64>>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let took = began.elapsed();
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

impl Reads {
    fn text(self, random: &mut Random, rows: u32) -> String {
        let first = 1 + random.below(rows as usize);
        match self {
            Reads::Rows => format!("SELECT c FROM sbtest1 WHERE id={first}"),
            Reads::Ranges => {
                let last = first + 999;
                format!("SELECT c FROM sbtest1 WHERE id BETWEEN {first} AND {last}")
            }
        }
    }
}
