//! What Remora's memory holds: idle connections, and stored results.

use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::arms::BENCH_SCHEMA;
use crate::usage::resident_bytes;
use remora_testkit::client::ConnectOptions;
use remora_testkit::interrupt;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;

/// Open connections of the first measurement.
pub(super) const CONNECTIONS: usize = 1_000;
/// Connections that fill the store.
const FILLERS: usize = 4;
/// Results stored before the second measurement begins, so that what is made once has been made.
const FIRST: usize = 2_000;
/// Memory for results while it is measured, MiB: more than is needed.
const MEMORY_MIB: u32 = 1_024;
const PATIENCE: Duration = Duration::from_secs(30);

/// The resident memory of a fresh Remora that holds so many idle connections, bytes.
pub(super) fn idle_connections(server: &Server) -> anyhow::Result<u64> {
    let remora = Remora::start(server, &RemoraOptions::following())?;
    let options = server.app().at(remora.address());
    let connect = |number: usize| {
        interrupt::check()?;
        options
            .connect()
            .with_context(|| format!("connection {number} of {CONNECTIONS}"))
    };
    let connections = (1..=CONNECTIONS)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let resident = resident_bytes(remora.id())?;
    drop(connections);
    Ok(resident)
}

/// What storing results of one row of sysbench's table cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerResult {
    /// Length of a result as it is sent, bytes.
    pub(super) result_bytes: usize,
    /// How many were stored.
    pub(super) results: f64,
    /// Growth of the resident memory for each, bytes.
    pub(super) resident_bytes: f64,
}

/// Has a fresh Remora store `count` results and looks at its resident memory before and after.
#[allow(clippy::cast_precision_loss)]
pub(super) fn per_result(server: &Server, count: usize) -> anyhow::Result<PerResult> {
    let options = RemoraOptions {
        memory_mib: Some(MEMORY_MIB),
        ..RemoraOptions::following()
    };
    // None of them is asked for again.
    let options = options.with("cache.storing", "always");
    let remora = Remora::start(server, &options)?;
    let mut app = server.app().at(remora.address()).schema(BENCH_SCHEMA);
    app.deprecate_eof = false;
    let result_bytes = fill(&app, 0, FIRST)?;
    let (entries_before, resident_before) = (entries(&remora)?, resident_bytes(remora.id())?);
    fill(&app, FIRST, FIRST + count)?;
    let wanted = entries_before + count as f64 * 0.9;
    wait_for("results to be stored", PATIENCE, || {
        Ok((entries(&remora)? >= wanted).then_some(()))
    })
    .with_context(|| remora.log_tail())?;
    let results = entries(&remora)? - entries_before;
    let grown = resident_bytes(remora.id())?.saturating_sub(resident_before);
    Ok(PerResult {
        result_bytes,
        results,
        resident_bytes: grown as f64 / results.max(1.0),
    })
}

fn entries(remora: &Remora) -> anyhow::Result<f64> {
    Ok(remora.metrics()?.sum("remora_store_entries"))
}

/// Asks for the rows from `first` up to, not including, `end`; gives the length of one answer.
fn fill(app: &ConnectOptions, first: usize, end: usize) -> anyhow::Result<usize> {
    std::thread::scope(|scope| {
        let filler = |offset: usize| {
            scope.spawn(move || -> anyhow::Result<usize> {
                let mut client = app.connect()?;
                let mut length = 0;
                for id in (first + offset..end).step_by(FILLERS) {
                    interrupt::check()?;
                    let text = format!("SELECT c FROM sbtest1 WHERE id={}", id + 1);
                    length = client.query(&text)?.bytes().len();
                }
                Ok(length)
            })
        };
        let threads: Vec<_> = (0..FILLERS).map(filler).collect();
        let mut length = 0;
        for thread in threads {
            length = thread.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(length)
    })
}
