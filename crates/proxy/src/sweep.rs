//! The sweep: frees, little by little, what changes have outdated and nobody has asked for since,
//! and counts it under the statement that it was an answer to.

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

/// The longest statement that is read for its tables, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

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

impl Sweep {
    fn step(&self, entries_max: usize) {
        let shared = &self.shared;
        let now_ms = shared.clock.now_ms();
        let mut looked_at = 0;
        shared.store.sweep_step(
            entries_max,
            |entry| outdated(&shared.timeline, entry, now_ms),
            |entry, reason| self.count(entry, reason, &mut looked_at),
        );
    }

    fn count(&self, entry: &Entry, reason: InvalidationReason, looked_at: &mut usize) {
        let label = Note::of(entry).label;
        let by = match reason {
            InvalidationReason::Changed if *looked_at < LOOKED_AT_MAX => {
                *looked_at += 1;
                self.outdated_by(entry).unwrap_or(OutdatedBy::Unknown)
            }
            InvalidationReason::Changed => OutdatedBy::Unknown,
            InvalidationReason::Everything | InvalidationReason::Forgotten => {
                OutdatedBy::Everything
            }
            InvalidationReason::Cleared
            | InvalidationReason::Expired
            | InvalidationReason::Faulty => return,
        };
        self.digests.count(label, Count::Outdated);
        self.digests.count_outdated_by(label, by);
    }

    /// The tables whose changes outdated it. `None` if its statement is too long, the settings are
    /// forgotten under which it was read, or names can't be told.
    fn outdated_by(&self, entry: &Entry) -> Option<OutdatedBy> {
        let shared = &self.shared;
        let settings = shared.fingerprints.get(fingerprint_of(entry.scope()))?;
        let is_prepared = is_binary(entry.scope());
        let (text, analyse): (_, fn(&[u8], Dialect) -> Statement) = if is_prepared {
            (text_of_key(entry.text()), remora_sql::analyse_prepared)
        } else {
            (entry.text(), remora_sql::analyse)
        };
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let dialect = shared.upstream.aged(settings.dialect?);
        let select = analyse(text, dialect).cacheable.ok()?;
        let names = select.tables.iter().map(|name| settings.qualify(name));
        let names: Vec<_> = names.collect::<Option<_>>()?;
        let tables = names.iter().map(|name| shared.known_table(*name));
        let reads = Reads {
            select: &select,
            tables: tables.collect(),
            names,
            bound: (!is_prepared).then_some(&[]),
            conversion: settings.string_conversion,
        };
        let outdated = OutdatedResult::of(entry, &shared.timeline);
        Some(shared.outdated_by(&outdated, &reads))
    }
}
