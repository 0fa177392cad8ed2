//! The sweep: frees, little by little, what changes have outdated and nobody has asked for since,
//! and counts it under the statement that it was an answer to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use remora_cache::{Entry, InvalidationReason, Timeline};
use remora_engine::key::{Note, fingerprint_of, is_binary, text_of_key};
use remora_sql::{Dialect, Statement};

use crate::digests::{Count, OutdatedBy, WorkerDigests};
use crate::shared::Shared;
use crate::shared::outdated::{OutdatedResult, Reads};

/// Of the results that one step drops, so many are looked at for the tables that outdated them.
/// That takes some 10 us each, on the thread that accepts clients.
const LOOKED_AT_MAX: usize = 64;
/// And so many bytes of their statements are read.
const READ_BYTES_MAX: usize = 64 * 1024;

/// Why an entry can never be served again, if that is so.
pub(crate) fn outdated(
    timeline: &Timeline,
    entry: &Entry,
    now_ms: u64,
) -> Option<InvalidationReason> {
    let expired = entry.has_expired(now_ms);
    timeline
        .outdated(entry.as_of(), entry.tags())
        .or(expired.then_some(InvalidationReason::Expired))
}

/// Sweeps for ever: a step each `interval`, which looks at `entries_max` results.
pub(crate) async fn run(shared: Arc<Shared>, interval: Duration, entries_max: usize) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let sweep = Sweep {
        digests: shared.digests.sweep(),
        shared,
    };
    loop {
        ticks.tick().await;
        sweep.step(entries_max);
    }
}

struct Sweep {
    shared: Arc<Shared>,
    /// Its own counters.
    digests: Arc<WorkerDigests>,
}

/// What one step may still look at.
struct Budget {
    results: usize,
    bytes: usize,
}

impl Budget {
    fn covers(&mut self, entry: &Entry) -> bool {
        let bytes = entry.text().len();
        let covers = self.results > 0 && self.bytes >= bytes;
        if covers {
            self.results -= 1;
            self.bytes -= bytes;
        }
        covers
    }
}

impl Sweep {
    fn step(&self, entries_max: usize) {
        let shared = &self.shared;
        let now_ms = shared.clock.now_ms();
        let mut budget = Budget {
            results: LOOKED_AT_MAX,
            bytes: READ_BYTES_MAX,
        };
        shared.store.sweep_step(
            entries_max,
            |entry| outdated(&shared.timeline, entry, now_ms),
            |entry, reason| self.count(entry, reason, &mut budget),
        );
    }

    fn count(&self, entry: &Entry, reason: InvalidationReason, budget: &mut Budget) {
        let Some(mut by) = OutdatedBy::told_without_tables(reason) else {
            return;
        };
        if reason == InvalidationReason::Changed && budget.covers(entry) {
            // A panic would end the thread that accepts clients.
            let told = catch_unwind(AssertUnwindSafe(|| self.outdated_by(entry)));
            by = told.ok().flatten().unwrap_or(by);
        }
        // Only whoever counts statements learns soon who has got a place.
        let label = self.shared.digests.current(Note::of(entry).label);
        self.digests.count(label, Count::Outdated);
        self.digests.count_outdated_by(label, by);
    }

    /// The tables whose changes outdated it. `None` if the settings are forgotten under which its
    /// statement was read, or names can't be told.
    fn outdated_by(&self, entry: &Entry) -> Option<OutdatedBy> {
        let shared = &self.shared;
        let settings = shared.fingerprints.get(fingerprint_of(entry.scope()))?;
        let (text, analyse): (_, fn(&[u8], Dialect) -> Statement) = if is_binary(entry.scope()) {
            (text_of_key(entry.text()), remora_sql::analyse_prepared)
        } else {
            (entry.text(), remora_sql::analyse)
        };
        let dialect = shared.upstream.aged(settings.dialect?);
        let select = analyse(text, dialect).cacheable.ok()?;
        let names = select.tables.iter().map(|name| settings.qualify(name));
        let names: Vec<_> = names.collect::<Option<_>>()?;
        let tables = names.iter().map(|name| shared.known_table(*name));
        let reads = Reads {
            select: &select,
            tables: tables.collect(),
            names,
            // Those of an execution aren't at hand: nothing is narrowed by them.
            bound: &[],
            conversion: settings.string_conversion,
        };
        let outdated = OutdatedResult::of(entry, &shared.timeline);
        Some(shared.outdated_by(&outdated, &reads))
    }
}
