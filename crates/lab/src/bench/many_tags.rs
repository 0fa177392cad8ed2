//! What a hit costs with 32 tags and more, against one.
//!
//! Both are the same statement, `SELECT c FROM sbtest1 WHERE id IN (…)` with 32 values of which one
//! is in the table, through two Remoras: one with kinds of reads, so that each value has a tag, and
//! one without, so that the table has one. Beside it the look-up and the check alone, in this
//! process.

use std::hint::black_box;
use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use remora_cache::{
    BrokenRules, KeyRef, NewEntry, Position, Scope, Store, StoreLimits, TableTags, Tag, Timeline,
    TimelineLimits,
};
use serde_json::json;

use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use super::{Size, closed_loop};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::{cpu_time, microseconds_per_query, own_thread_cpu_time};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;

/// Values in each statement.
const VALUES: usize = 32;
/// Statements that take turns.
const STATEMENTS: usize = 5_000;
/// Clients.
const THREADS: u32 = 8;
/// A hit with many tags costs at most so much of one with a single tag.
const COST_MAX: f64 = 1.15;
/// Results in the look-ups without a network.
const ENTRIES: usize = 100_000;
/// Look-ups in a round.
const LOOK_UPS: usize = 1_000_000;
const SCOPE: Scope = Scope::new(1).unwrap();

/// What a round of an arm showed.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    hits_per_s: f64,
    /// Remora's processor time.
    hit_us: f64,
    /// The look-up and the check alone.
    look_up_ns: f64,
}

/// Measures.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    progress.step("tags: starting");
    let coarse = RemoraOptions::following().with("cache.table_shapes_max", "0");
    let remoras = [
        Remora::start(server, &coarse)?,
        Remora::start(server, &RemoraOptions::following())?,
    ];
    let statements: Vec<String> = (1..=STATEMENTS).map(statement).collect();
    for remora in &remoras {
        warm_up(server, remora.address(), &statements)?;
    }
    let cores = [Core::new(1)?, Core::new(VALUES + 2)?];
    let mut samples = [Vec::new(), Vec::new()];
    for round in 1..=size.rounds {
        progress.step(&format!("tags: round {round} of {}", size.rounds));
        for ((remora, core), samples) in remoras.iter().zip(&cores).zip(&mut samples) {
            let mut sample = over_network(server, remora, &statements, size)?;
            sample.look_up_ns = core.look_up()?;
            samples.push(sample);
        }
    }
    Ok(report(&samples))
}

fn report(samples: &[Vec<Sample>; 2]) -> PartReport {
    let [one, many] = samples.each_ref().map(|samples| {
        let of = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<f64>>());
        Sample {
            hits_per_s: of(|s| s.hits_per_s),
            hit_us: of(|s| s.hit_us),
            look_up_ns: of(|s| s.look_up_ns),
        }
    });
    let mut table = Table::new(&[
        "tags of each result",
        "hits/s",
        "Remora's CPU, µs/hit",
        "look-up and check, ns",
    ]);
    for (name, sample) in [("the table's", one), ("34: 32 values and 2", many)] {
        table.row([
            name.to_owned(),
            grouped(sample.hits_per_s),
            format!("{:.2}", sample.hit_us),
            format!("{:.0}", sample.look_up_ns),
        ]);
    }
    let marks = vec![
        Mark::at_most(
            "CPU of a hit with 34 tags / with one",
            COST_MAX,
            many.hit_us / one.hit_us,
            "",
        ),
        Mark::at_least(
            "hits a second with 34 tags / with one",
            1.0 / COST_MAX,
            many.hits_per_s / one.hits_per_s,
            "",
        ),
    ];
    let json = |sample: Sample| {
        json!({"hits_per_s": sample.hits_per_s, "hit_us": sample.hit_us,
               "look_up_ns": sample.look_up_ns})
    };
    PartReport {
        title: format!(
            "the same statement with {VALUES} values through a Remora with fine tags and one without, {THREADS} clients, all hits."
        ),
        table,
        marks,
        figures: json!({"one": json(one), "many": json(many)}),
    }
}

/// Asks for one row that is there, and others that aren't.
fn statement(id: usize) -> String {
    let others = (1..VALUES).map(|other| format!(",{}", 2_000_000_000 + id * VALUES + other));
    let others: String = others.collect();
    format!("SELECT c FROM sbtest1 WHERE id IN ({id}{others})")
}

fn warm_up(server: &Server, address: SocketAddr, statements: &[String]) -> anyhow::Result<()> {
    let mut client = server.app().schema(BENCH_SCHEMA).at(address).connect()?;
    for _ in 0..2 {
        for statement in statements {
            client.query(statement)?;
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)]
fn over_network(
    server: &Server,
    remora: &Remora,
    statements: &[String],
    size: Size,
) -> anyhow::Result<Sample> {
    let options = server.app().schema(BENCH_SCHEMA).at(remora.address());
    let (cpu_before, hits_before) = (cpu_time(remora.id())?, hits(remora)?);
    let report = closed_loop::run(&options, THREADS, size.length(), |client, random| {
        client.query(&statements[random.below(statements.len())])?;
        Ok(())
    })?;
    let used = cpu_time(remora.id())?.saturating_sub(cpu_before);
    let ratio = (hits(remora)? - hits_before) / report.queries as f64;
    if ratio < 0.99 {
        bail!(
            "only {:.1} % were hits: nothing was measured",
            ratio * 100.0
        );
    }
    Ok(Sample {
        hits_per_s: report.queries_per_s,
        hit_us: microseconds_per_query(used, report.queries),
        look_up_ns: 0.0,
    })
}

fn hits(remora: &Remora) -> anyhow::Result<f64> {
    Ok(remora.metrics()?.sum("remora_hits_total"))
}

/// A store and a timeline of the product's sizes whose results have so many tags.
struct Core {
    store: Store,
    timeline: Timeline,
    texts: Vec<String>,
}

impl Core {
    fn new(tags: usize) -> anyhow::Result<Core> {
        let limits = TimelineLimits {
            tag_slots: 2 << 20,
            fence_slots: 65_536,
            lag_ms_max: 1_000,
        };
        let timeline = Timeline::new(limits, BrokenRules::default());
        timeline.restart(Position::new(1, 1).context("a position")?);
        timeline.prove(timeline.epoch(), 1);
        let store = Store::new(StoreLimits {
            memory_bytes_max: 1 << 30,
            result_bytes_max: 1 << 20,
            shards: 64,
        });
        let as_of = timeline.as_of().context("the timeline isn't live")?;
        let texts: Vec<String> = (0..ENTRIES).map(statement).collect();
        for (number, text) in texts.iter().enumerate() {
            let table = TableTags::new(BENCH_SCHEMA, "sbtest1");
            let further = (1..tags).map(|tag| Tag::table(BENCH_SCHEMA, &format!("{number}.{tag}")));
            let tags: Vec<Tag> = std::iter::once(table.any()).chain(further).collect();
            let new = NewEntry {
                key: key(text),
                tags: &tags,
                as_of,
                response: &[b'x'; 195],
                label: 0,
                epoch: store.epoch(),
                expires_at_ms: None,
            };
            let stored = store.insert(&new);
            stored.map_err(|why| anyhow::anyhow!("a result wasn't stored: {why:?}"))?;
        }
        Ok(Core {
            store,
            timeline,
            texts,
        })
    }

    /// Nanoseconds for the digest, the look-up and the check.
    #[allow(clippy::cast_precision_loss)]
    fn look_up(&self) -> anyhow::Result<f64> {
        let began = own_thread_cpu_time();
        let mut found = 0;
        for text in self.texts.iter().cycle().take(LOOK_UPS) {
            let key = key(text);
            let is_allowed = self.store.with(&key, key.digest(), |entry| {
                black_box(entry.response());
                self.timeline
                    .check_tags(entry.as_of(), entry.tags(), 1)
                    .is_ok()
            });
            found += usize::from(is_allowed == Some(true));
        }
        if found != LOOK_UPS {
            bail!("{found} of {LOOK_UPS} look-ups found their result");
        }
        let used = own_thread_cpu_time().saturating_sub(began);
        Ok(used.as_secs_f64() * 1e9 / LOOK_UPS as f64)
    }
}

fn key(text: &str) -> KeyRef<'_> {
    KeyRef {
        scope: SCOPE,
        text: text.as_bytes(),
    }
}
