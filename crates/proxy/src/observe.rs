//! The state of a running Remora, gathered when somebody scrapes or checks its health.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use remora_engine::reason::{CachingOff, Limit, Reason};
use tokio::sync::watch;

use crate::acceptor::open_connections;
use crate::config::{OptionInForce, Settings};
use crate::metrics::{
    Caching, FollowerObservation, Observation, Observed, ReasonCounts, RulesObservation,
    StatementsObservation, StoreObservation,
};
use crate::shared::Shared;
use crate::worker::Phase;

/// Gathers the state for the admin listener.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    loads: Vec<Arc<AtomicUsize>>,
    phase: watch::Receiver<Phase>,
    configuration: Vec<OptionInForce>,
}

/// Why the settings keep everything from being cached, if they do.
pub(crate) fn configured_off(settings: &Settings) -> Option<CachingOff> {
    if !settings.cache.enabled {
        Some(CachingOff::Disabled)
    } else if settings.account.is_none() {
        Some(CachingOff::NoAccount)
    } else {
        None
    }
}

impl Observer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        loads: Vec<Arc<AtomicUsize>>,
        phase: watch::Receiver<Phase>,
        settings: &Settings,
    ) -> Observer {
        Observer {
            shared,
            loads,
            phase,
            configuration: settings.in_force(),
        }
    }

    fn caching(&self, follower_off: Option<CachingOff>) -> Caching {
        let is_stopping = *self.phase.borrow() != Phase::Running;
        let off = is_stopping
            .then_some(CachingOff::Stopping)
            .or(self.shared.emulation.configured_off)
            .or_else(|| {
                let is_off = !self.shared.query_cache.is_on();
                is_off.then_some(CachingOff::QueryCacheOff)
            })
            .or(follower_off);
        off.map_or(Caching::On, Caching::Off)
    }

    fn store(&self) -> StoreObservation {
        let stats = self.shared.store.stats();
        StoreObservation {
            entries: stats.entries as u64,
            bytes: stats.bytes as u64,
            bytes_max: stats.memory_bytes_max as u64,
            evictions: counts(|reason| stats.evicted.of(reason)),
            invalidations: counts(|reason| stats.invalidated.of(reason)),
            fills_in_flight: self.shared.fills.len() as u64,
            fill_waiters: self.shared.fills.waiters() as u64,
            restored_outcome: self.shared.restored.outcome(),
            restored: self.shared.restored.results(),
        }
    }

    fn rules(&self) -> RulesObservation {
        let rules = &self.shared.rules;
        RulesObservation {
            count: rules.get().len() as u64,
            decisions: rules.decisions(),
            reloads: rules.reloads(),
        }
    }

    fn limits(&self) -> Vec<(Limit, u64)> {
        let counters = &self.shared.upstream.counters;
        let [dropped, evicted] = self.shared.upstream.catalogue.counts();
        vec![
            (
                Limit::EventBytes,
                counters.events_oversized.load(Ordering::Relaxed),
            ),
            (
                Limit::CheckAge,
                counters.checks_late.load(Ordering::Relaxed),
            ),
            (
                Limit::TransactionTables,
                counters.commits_over_bound.load(Ordering::Relaxed),
            ),
            (
                Limit::TransactionTags,
                counters.transactions_of_many_tags.load(Ordering::Relaxed),
            ),
            (Limit::Shapes, self.shared.upstream.shapes.refused()),
            (Limit::QueryTime, counters.timeouts.load(Ordering::Relaxed)),
            (Limit::CatalogueQueue, dropped),
            (
                Limit::CatalogueScanTime,
                counters.catalogue_scan_timeouts.load(Ordering::Relaxed),
            ),
            (Limit::CatalogueTables, evicted),
            (
                Limit::CatalogueViews,
                counters.catalogue_views_over_bound.load(Ordering::Relaxed),
            ),
            (
                Limit::TableCounts,
                self.shared.upstream.table_changes.of_others(),
            ),
            (Limit::Digests, self.shared.digests.without_place()),
            (
                Limit::KnownStatements,
                self.shared.digests.forgotten_statements(),
            ),
        ]
    }

    fn follower(&self, findings: Vec<(&'static str, String)>) -> FollowerObservation {
        let counters = &self.shared.upstream.counters;
        let timeline = &self.shared.timeline;
        let applied = timeline.applied();
        let proved_at_ms = timeline.proved_at_ms();
        let age_ms = self.shared.clock.now_ms().saturating_sub(proved_at_ms);
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        FollowerObservation {
            lag: (proved_at_ms > 0).then(|| Duration::from_millis(age_ms)),
            applied_file: applied.file_number(),
            applied_offset: applied.offset(),
            events: read(&counters.events),
            bytes: read(&counters.event_bytes),
            commits: read(&counters.commits),
            commits_of_everything: read(&counters.commits_of_everything),
            catch_up: Duration::from_micros(read(&counters.lag_us_last)),
            catch_up_max: Duration::from_micros(read(&counters.lag_us_max)),
            fence_batches: read(&counters.batches_waiting),
            connections: read(&counters.connections),
            forgotten: self.shared.upstream.restarts(),
            watermark_queries: read(&counters.asks),
            log_end_queries: read(&counters.end_asks),
            check_age: self.shared.upstream.check_age(),
            checks: read(&counters.checks),
            checks_failed: read(&counters.checks_failed),
            findings,
            table_changes: self.shared.upstream.table_changes.get(),
        }
    }
}

impl Observed for Observer {
    fn observe(&self) -> Observation {
        // Read once: the findings belong to the reason beside which they are shown.
        let state = self.shared.upstream.state();
        let findings = state
            .findings()
            .map(|finding| (finding.subject.as_str(), finding.meaning.clone()));
        let (shape_tables, shapes) = self.shared.upstream.shapes.len();
        let turns = self.shared.turns.as_ref();
        Observation {
            caching: self.caching(state.caching_off()),
            upstream: self.shared.reachability(),
            statements: turns.map(|turns| StatementsObservation {
                running: turns.running() as u64,
                waiting: turns.waiting() as u64,
            }),
            connections: open_connections(&self.loads) as u64,
            fingerprints: self.shared.fingerprints.len() as u64,
            digests: self.shared.digests.len() as u64,
            digests_off: self.shared.verification.off.len() as u64,
            catalogue_tables: self.shared.upstream.catalogue.len() as u64,
            shape_tables: shape_tables as u64,
            shapes: shapes as u64,
            catalogue_batches: self
                .shared
                .upstream
                .counters
                .catalogue_batches
                .load(Ordering::Relaxed),
            catalogue_loads: self
                .shared
                .upstream
                .counters
                .catalogue_loads
                .load(Ordering::Relaxed),
            limits: self.limits(),
            rules: self.rules(),
            store: self.store(),
            follower: self.follower(findings.collect()),
        }
    }

    fn configuration(&self) -> &[OptionInForce] {
        &self.configuration
    }
}

fn counts<R: Reason>(count: impl Fn(R) -> u64) -> ReasonCounts {
    R::ALL
        .iter()
        .map(|reason| (reason.as_str(), count(*reason)))
        .collect()
}
