//! The hit ratio of sysbench's `oltp_read_write` (`--skip-trx=on`, uniform keys) against that of a
//! perfect oracle.
//!
//! One client of the lab's own sends the same statements, so that their order is known: the oracle
//! is asked about each of them in that order. Over all rows hardly anything repeats; so the same is
//! measured over fewer of them, where most reads repeat and many are outdated.

use std::time::Instant;

use serde_json::json;

use super::Size;
use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use super::requests::{Oracle, transaction};
use crate::progress::Progress;
use crate::table::{Table, grouped};
use remora_testkit::interrupt;
use remora_testkit::load::random::Random;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;

/// Transactions of 18 statements in a run.
const TRANSACTIONS: u32 = 5_000;
const TRANSACTIONS_QUICK: u32 = 1_000;
/// Keys of the runs in which much repeats.
const FEWER_KEYS: u32 = 5_000;
/// How far Remora may be from the oracle, points.
const POINTS_MAX: f64 = 2.0;
/// Memory for results, MiB: more than is needed.
const MEMORY_MIB: u32 = 1_024;

/// What a run showed.
struct Outcome {
    keys: u32,
    is_fine: bool,
    /// Shares between 0 and 1.
    oracle: f64,
    remora: f64,
    queries_per_s: f64,
    /// Why results were dropped, and statements not answered from memory, with counts.
    reasons: Vec<(String, f64)>,
}

/// Measures.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    let seed = Random::fresh_seed();
    let mut outcomes = Vec::new();
    for keys in [size.rows(), FEWER_KEYS] {
        for is_fine in [true, false] {
            let keys_text = grouped(keys.into());
            let kind = if is_fine {
                "fine tags"
            } else {
                "tags of tables"
            };
            progress.step(&format!("ratio: {keys_text} keys, {kind}"));
            outcomes.push(measure(server, size, keys, is_fine, seed)?);
        }
    }
    Ok(report(&outcomes, size, seed))
}

fn report(outcomes: &[Outcome], size: Size, seed: u64) -> PartReport {
    let mut table = Table::new(&[
        "keys",
        "tags",
        "oracle %",
        "Remora %",
        "points",
        "queries/s",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        let (oracle, remora) = (100.0 * outcome.oracle, 100.0 * outcome.remora);
        let tags = if outcome.is_fine { "fine" } else { "tables" };
        let keys = grouped(outcome.keys.into());
        table.row([
            keys.clone(),
            tags.to_owned(),
            format!("{oracle:.2}"),
            format!("{remora:.2}"),
            format!("{:.2}", oracle - remora),
            grouped(outcome.queries_per_s),
        ]);
        if outcome.is_fine {
            let what = format!("hit ratio below the oracle's, {keys} keys");
            marks.push(Mark::at_most(what, POINTS_MAX, oracle - remora, "points"));
        }
        figures.push(json!({
            "keys": outcome.keys, "tags": tags, "oracle_percent": oracle,
            "remora_percent": remora, "queries_per_s": outcome.queries_per_s,
            "reasons": outcome.reasons,
        }));
    }
    PartReport {
        title: format!(
            "oltp_read_write, skip-trx, uniform, one client, {} transactions a run, a table of {} rows.",
            grouped(transactions(size).into()),
            grouped(size.rows().into())
        ),
        table,
        marks,
        figures: json!({"runs": figures, "seed": seed}),
    }
}

fn transactions(size: Size) -> u32 {
    if size.quick {
        TRANSACTIONS_QUICK
    } else {
        TRANSACTIONS
    }
}

#[allow(clippy::cast_precision_loss)]
fn measure(
    server: &Server,
    size: Size,
    keys: u32,
    is_fine: bool,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let mut options = RemoraOptions::following();
    options.memory_mib = Some(MEMORY_MIB);
    if !is_fine {
        options = options.with("cache.table_shapes_max", "0");
    }
    let remora = Remora::start(server, &options)?;
    let app = server.app().schema(BENCH_SCHEMA).at(remora.address());
    let mut client = app.connect()?;
    let mut random = Random::new(seed);
    let mut oracle = Oracle::new(keys as usize);
    let hits_before = remora.metrics()?.sum("remora_hits_total");
    let began = Instant::now();
    let mut queries = 0;
    for _ in 0..transactions(size) {
        interrupt::check()?;
        for request in transaction(&mut random, keys as usize) {
            client.query(&request.text)?;
            oracle.take(&request);
            queries += 1;
        }
    }
    let took = began.elapsed();
    let metrics = remora.metrics()?;
    let mut reasons = Vec::new();
    for name in ["remora_statements_total", "remora_invalidations_total"] {
        let labelled = metrics.labelled(name).into_iter();
        let counted = labelled.filter(|(_, count)| *count > 0.0);
        reasons.extend(counted.map(|(labels, count)| (format!("{name}{{{labels}}}"), count)));
    }
    Ok(Outcome {
        keys,
        is_fine,
        oracle: oracle.ratio(),
        remora: (metrics.sum("remora_hits_total") - hits_before) / oracle.reads.max(1) as f64,
        queries_per_s: f64::from(queries) / took.as_secs_f64(),
        reasons,
    })
}
