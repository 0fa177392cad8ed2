//! One round of one arm: visitors read, and now and then something is sold.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use super::shop::{Read, Visitors};
use crate::stats::Latencies;
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::interrupt;
use remora_testkit::load::{Oracle, Random, Route, StaleRead};

/// Connections that read.
pub(super) const READERS: usize = 8;
/// Pause of each of the two writers between two sales.
const SALE_PAUSE: Duration = Duration::from_millis(200);
/// Of so many sales, one comes with an order.
const ORDER_EVERY: u64 = 5;
/// How many connections may tell of a stale read in full.
const STALE_KEPT_MAX: usize = 10;
const UPDATE_EVERY: Duration = Duration::from_millis(250);

/// What a round found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Statements that read.
    pub(super) reads: u64,
    /// Of these, those whose value the oracle has judged.
    pub(super) checked: u64,
    /// Statements that wrote.
    pub(super) writes: u64,
    /// How long each read took.
    pub(super) latencies: Latencies,
    /// Reads that were older than they may be.
    pub(super) stale_count: u64,
    /// Some of them.
    pub(super) stale: Vec<StaleRead>,
    /// How long the round lasted.
    pub(super) length: Duration,
}

impl Findings {
    /// Reads and writes a second.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn queries_per_s(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.length.as_secs_f64().max(1e-9)
    }

    /// Adds those of another.
    pub(super) fn add(&mut self, other: Findings) {
        self.reads += other.reads;
        self.checked += other.checked;
        self.writes += other.writes;
        self.latencies.add(&other.latencies);
        self.stale_count += other.stale_count;
        self.stale.extend(other.stale);
        self.stale.truncate(STALE_KEPT_MAX);
        self.length += other.length;
    }
}

/// Who takes part in a round.
#[derive(Debug)]
pub(super) struct Round<'a> {
    /// How readers and the first writer connect.
    pub(super) arm: &'a ConnectOptions,
    /// How the second writer connects: always to the server itself.
    pub(super) server: &'a ConnectOptions,
    /// What they ask.
    pub(super) visitors: &'a Visitors,
    /// What they may see.
    pub(super) oracle: &'a Oracle,
    /// How long it lasts.
    pub(super) length: Duration,
    /// Chooses the statements.
    pub(super) seed: u64,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    reads: AtomicU64,
}

impl Round<'_> {
    /// Runs it; `watch` is told now and then how many queries a second there have been.
    pub(super) fn run(&self, mut watch: impl FnMut(f64)) -> anyhow::Result<Findings> {
        let shared = Shared::default();
        let started = Instant::now();
        let outcome: anyhow::Result<Vec<Findings>> = std::thread::scope(|scope| {
            let mut seeds = Random::new(self.seed);
            let mut threads = Vec::new();
            for _ in 0..READERS {
                let (shared, random) = (&shared, Random::new(seeds.next()));
                threads.push(scope.spawn(move || shared.end_on_error(self.reader(shared, random))));
            }
            for (options, route) in [(self.arm, Route::Through), (self.server, Route::Direct)] {
                let (shared, random) = (&shared, Random::new(seeds.next()));
                let writer = move || self.writer(shared, options, route, random);
                threads.push(scope.spawn(move || shared.end_on_error(writer())));
            }
            while started.elapsed() < self.length && !shared.is_over() && !interrupt::is_set() {
                std::thread::sleep(UPDATE_EVERY.min(self.length.saturating_sub(started.elapsed())));
                watch(shared.rate(started.elapsed()));
            }
            shared.over.store(true, Ordering::SeqCst);
            let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Findings>>| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a client panicked")))
            };
            threads.into_iter().map(join).collect()
        });
        let length = started.elapsed();
        interrupt::check()?;
        let mut all = Findings::default();
        outcome?.into_iter().for_each(|findings| all.add(findings));
        all.length = length;
        Ok(all)
    }

    fn reader(&self, shared: &Shared, mut random: Random) -> anyhow::Result<Findings> {
        let mut client = self.arm.connect().context("a reader can't connect")?;
        let mut findings = Findings::default();
        while !shared.is_over() {
            let read = self.visitors.read(&mut random);
            let sent = Instant::now();
            if let Some(stale) = self.one_read(&mut client, &read)? {
                findings.stale_count += 1;
                findings.stale.push(*stale);
                findings.stale.truncate(STALE_KEPT_MAX);
            }
            findings.latencies.record(sent.elapsed());
            findings.reads += 1;
            findings.checked += u64::from(matches!(read, Read::Sold(..)));
            shared.reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(findings)
    }

    fn one_read(&self, client: &mut Client, read: &Read) -> anyhow::Result<Option<Box<StaleRead>>> {
        let text = read.text();
        let Read::Sold(product, _) = read else {
            client.query(text).with_context(|| text.to_owned())?;
            return Ok(None);
        };
        let floor = self.oracle.before_read(*product);
        let sold = client.query_value(text).with_context(|| text.to_owned())?;
        let sold = sold.context("a product without stock")?.parse()?;
        Ok(self.oracle.judge(floor, sold, || text.to_owned()).err())
    }

    fn writer(
        &self,
        shared: &Shared,
        options: &ConnectOptions,
        route: Route,
        mut random: Random,
    ) -> anyhow::Result<Findings> {
        let mut client = options.connect().context("a writer can't connect")?;
        let mut findings = Findings::default();
        if route == Route::Direct {
            // The two writers take turns in every arm: each sale drops what is kept of its table,
            // so whether they meet would decide how much can hit.
            shared.pause(SALE_PAUSE / 2);
        }
        let mut next_sale = Instant::now();
        while !shared.is_over() {
            let product = self.visitors.product_sold(&mut random);
            let turn = self.oracle.begin_write(product);
            client.query(&Visitors::sale(product, turn.value()))?;
            turn.done(route);
            findings.writes += 1;
            if findings.writes.is_multiple_of(ORDER_EVERY) {
                client.query(&self.visitors.order(&mut random))?;
                findings.writes += 1;
            }
            next_sale += SALE_PAUSE;
            shared.pause(next_sale.saturating_duration_since(Instant::now()));
        }
        Ok(findings)
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// One client's failure ends the round for all.
    fn end_on_error(&self, outcome: anyhow::Result<Findings>) -> anyhow::Result<Findings> {
        if outcome.is_err() {
            self.over.store(true, Ordering::SeqCst);
        }
        outcome
    }

    #[allow(clippy::cast_precision_loss)]
    fn rate(&self, elapsed: Duration) -> f64 {
        self.reads.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64().max(1e-9)
    }

    fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        while !self.is_over() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
