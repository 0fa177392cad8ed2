//! The query cache's variables and counters, filled with what Remora has.
//!
//! `docs/query-cache.md` says what each means here.

use remora_cache::{EvictionReason, StoreStats};
use remora_engine::emulation::CacheType;
use remora_engine::emulation::{MIN_RES_UNIT_BYTES, OwnValues};
use remora_engine::reason::{About, Bypass, Outcome};
use remora_sql::{EmulatedVariable, NameListing, Refusal};

use crate::shared::Shared;

/// The names and values that belong into a listing, in the order of their names; `own` are the
/// session's or the global ones, as is asked for.
pub(crate) fn listed(
    shared: &Shared,
    listing: NameListing,
    own: OwnValues,
) -> Vec<(&'static str, String)> {
    match listing {
        NameListing::Status => counters(shared),
        NameListing::Variables => EmulatedVariable::ALL
            .iter()
            .map(|variable| (variable.name(), value(shared, *variable, own)))
            .collect(),
    }
}

/// A variable's value, as `SHOW VARIABLES` writes it; `own` are the session's values or the global
/// ones, as is asked for.
pub(crate) fn value(shared: &Shared, variable: EmulatedVariable, own: OwnValues) -> String {
    let settings = &shared.query_cache;
    match variable {
        EmulatedVariable::Have => "YES".to_owned(),
        EmulatedVariable::Limit => settings.limit_bytes().to_string(),
        EmulatedVariable::MinResUnit => MIN_RES_UNIT_BYTES.to_string(),
        EmulatedVariable::Size => settings.size_bytes().to_string(),
        EmulatedVariable::StripComments if own.strip_comments => "ON".to_owned(),
        EmulatedVariable::StripComments | EmulatedVariable::WlockInvalidate => "OFF".to_owned(),
        EmulatedVariable::Type => match own.cache_type {
            CacheType::Off => "OFF".to_owned(),
            CacheType::On => "ON".to_owned(),
            CacheType::Demand => "DEMAND".to_owned(),
        },
    }
}

/// The counters, as `SHOW STATUS` lists them.
fn counters(shared: &Shared) -> Vec<(&'static str, String)> {
    let stats = shared.store.stats();
    let size = stats.memory_bytes_max.min(shared.query_cache.size_bytes());
    let free = size.saturating_sub(stats.bytes);
    let free_blocks = u64::from(free > 0);
    let entries = stats.entries as u64;
    let numbers = [
        ("Qcache_free_blocks", free_blocks),
        ("Qcache_free_memory", free as u64),
        ("Qcache_hits", outcomes(shared, |one| one == Outcome::Hit)),
        ("Qcache_inserts", stats.stored),
        ("Qcache_lowmem_prunes", pruned(&stats)),
        (
            "Qcache_not_cached",
            outcomes(shared, is_select_that_is_not_cached),
        ),
        ("Qcache_queries_in_cache", entries),
        ("Qcache_total_blocks", entries + free_blocks),
    ];
    numbers
        .map(|(name, number)| (name, number.to_string()))
        .into()
}

/// Results that left because the room was needed; one that a newer result replaced needed none.
fn pruned(stats: &StoreStats) -> u64 {
    let all = EvictionReason::ALL.iter();
    let for_room = all.filter(|reason| **reason != EvictionReason::Replaced);
    for_room.map(|reason| stats.evicted.of(*reason)).sum()
}

fn outcomes(shared: &Shared, counts: impl Fn(Outcome) -> bool) -> u64 {
    let all = Outcome::all().iter().filter(|outcome| counts(**outcome));
    let of_workers = |outcome: &Outcome| -> u64 {
        let workers = shared.metrics.workers();
        workers.iter().map(|worker| worker.outcome(*outcome)).sum()
    };
    all.map(of_workers).sum()
}

/// Statements other than `SELECT` don't count, as with the server's own cache.
fn is_select_that_is_not_cached(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Hit
        | Outcome::Fill
        | Outcome::Write
        | Outcome::Transaction
        | Outcome::Conflict
        | Outcome::Refused
        | Outcome::Bypass(Bypass::Statement(Refusal::NotSelect)) => false,
        Outcome::Bypass(why) => why.about() != About::Command,
    }
}
