//! The state of a running Remora, gathered when somebody scrapes or checks its health.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::acceptor::open_connections;
use crate::config::{OptionInForce, Settings};
use crate::metrics::{
    Caching, FollowerObservation, Observation, Observed, Reachability, ReasonCounts,
    RulesObservation, StoreObservation,
};
use crate::reason::{CachingOff, Limit, Reason};
use crate::shared::Shared;

/// Whether the server could be reached when a client last needed it. Written only when that changes.
#[derive(Debug)]
pub struct LastAttempt(RwLock<Reachability>);

impl LastAttempt {
    /// Before any attempt.
    pub fn none() -> LastAttempt {
        LastAttempt(RwLock::new(Reachability::Untried))
    }

    /// An attempt ended like this.
    pub fn record(&self, result: Reachability) {
        if *self.0.read().unwrap_or_else(PoisonError::into_inner) != result {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = result;
        }
    }

    /// The last result.
    pub fn get(&self) -> Reachability {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Gathers the state for the admin listener.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    loads: Vec<Arc<AtomicUsize>>,
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
        settings: &Settings,
    ) -> Observer {
        Observer {
            shared,
            loads,
            configuration: settings.in_force(),
        }
    }

    fn caching(&self) -> Caching {
        let off = self
            .shared
            .face
            .configured_off
            .or_else(|| self.shared.upstream.state().caching_off());
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
                Limit::TableCounts,
                self.shared.upstream.table_changes.of_others(),
            ),
            (Limit::Digests, self.shared.digests.without_place()),
        ]
    }

    fn follower(&self) -> FollowerObservation {
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
            table_changes: self.shared.upstream.table_changes.get(),
        }
    }
}

impl Observed for Observer {
    fn observe(&self) -> Observation {
        let (shape_tables, shapes) = self.shared.upstream.shapes.len();
        Observation {
            caching: self.caching(),
            upstream: self.shared.last_attempt.get(),
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
            follower: self.follower(),
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
