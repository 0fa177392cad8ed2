//! The ways to a server, and what is counted on each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use super::data::root_of;
use super::machine::arguments_of;
use super::plan::{Arm, Point};
use crate::machine::processors;
use remora_testkit::programs;
use remora_testkit::proxies::{HaProxy, ProxySql, Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server};

/// Connections that a proxy has room for beyond those of the load.
const FURTHER_CONNECTIONS: u32 = 100;

/// What every server counts that says something about the work.
const SERVER_COUNTERS: [&str; 2] = ["Com_select", "Opened_tables"];
/// What Remora counts that does.
const REMORA_COUNTERS: [&str; 5] = [
    "remora_hits_total",
    "remora_misses_total",
    "remora_evictions_total",
    "remora_invalidations_total",
    "remora_catalogue_loads_total",
];
/// States of its memory.
const REMORA_STATES: [&str; 2] = ["remora_store_entries", "remora_store_bytes"];
/// Of MariaDB's and MySQL's query cache: states, not counters.
const QUERY_CACHE_STATES: [&str; 4] = [
    "Qcache_free_blocks",
    "Qcache_free_memory",
    "Qcache_queries_in_cache",
    "Qcache_total_blocks",
];

/// Why an arm can't be measured here, if it can't.
pub(super) fn why_left_out(arm: Arm, kind: Kind) -> Option<String> {
    match arm {
        Arm::Builtin { .. } if !kind.has_query_cache() => {
            Some(format!("{} has no query cache", kind.as_str()))
        }
        Arm::ProxySql { .. } if programs::find("proxysql").is_err() => {
            Some("no `proxysql` is installed".to_owned())
        }
        _ => None,
    }
}

/// What stands in front of the server.
#[derive(Debug)]
enum Proxy {
    None,
    HaProxy(HaProxy),
    ProxySql(ProxySql),
    Remora(Remora),
}

/// A way to a server: with a proxy that was started for one measurement, so that nothing is in its
/// memory, and that ends when this is dropped, so that it takes nothing from other arms.
#[derive(Debug)]
pub(super) struct Way<'a> {
    proxy: Proxy,
    arm: Arm,
    server: &'a Server,
}

/// What was counted up to a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// Numbers that only grow.
    counters: BTreeMap<String, f64>,
    /// Numbers that say how things are.
    states: BTreeMap<String, f64>,
}

impl<'a> Way<'a> {
    /// Starts what it needs. `remora`: the program, if it isn't that of [`programs::remora`].
    pub(super) fn start(
        arm: Arm,
        server: &'a Server,
        point: &Point,
        remora: Option<&Path>,
    ) -> anyhow::Result<Way<'a>> {
        let connections_max = point.load.threads + FURTHER_CONNECTIONS;
        let proxy = match arm {
            Arm::Direct | Arm::Builtin { .. } => Proxy::None,
            Arm::Hop => {
                let address = server.address();
                let haproxy = HaProxy::start_for(address, processors(), connections_max, None)?;
                Proxy::HaProxy(haproxy)
            }
            Arm::ProxySql { time_to_live_ms } => Proxy::ProxySql(ProxySql::start(
                server,
                processors(),
                connections_max,
                time_to_live_ms,
            )?),
            Arm::Remora { memory_mib } => {
                let options = RemoraOptions {
                    program: remora.map(Path::to_owned),
                    memory_mib: Some(memory_mib),
                    set: point.remora_options.clone(),
                    ..RemoraOptions::following()
                };
                Proxy::Remora(Remora::start(server, &options)?)
            }
        };
        Ok(Way { proxy, arm, server })
    }

    /// Where clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        match &self.proxy {
            Proxy::None => self.server.address(),
            Proxy::HaProxy(haproxy) => haproxy.address(),
            Proxy::ProxySql(proxysql) => proxysql.address(),
            Proxy::Remora(remora) => remora.address(),
        }
    }

    /// The server behind it.
    pub(super) fn server(&self) -> &'a Server {
        self.server
    }

    /// The proxy's process id, if there is a proxy.
    pub(super) fn proxy_id(&self) -> Option<u32> {
        match &self.proxy {
            Proxy::None => None,
            Proxy::HaProxy(haproxy) => Some(haproxy.id()),
            Proxy::ProxySql(proxysql) => Some(proxysql.id()),
            Proxy::Remora(remora) => Some(remora.id()),
        }
    }

    /// The proxy's name and configuration, if there is a proxy.
    pub(super) fn configuration(&self) -> Option<(String, String)> {
        let (name, text) = match &self.proxy {
            Proxy::None => return None,
            Proxy::HaProxy(haproxy) => ("haproxy", haproxy.configuration().to_owned()),
            Proxy::ProxySql(proxysql) => ("proxysql", proxysql.configuration().to_owned()),
            Proxy::Remora(remora) => ("remora", arguments_of(remora.id())),
        };
        Some((name.to_owned(), text))
    }

    /// What has been counted until now.
    pub(super) fn counts(&self) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        let rows = root_of(self.server)?.query("SHOW GLOBAL STATUS")?.rows()?;
        for row in rows {
            let text = |index: usize| {
                let bytes = row.get(index).cloned().flatten().unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let (name, Ok(value)) = (text(0), text(1).parse::<f64>()) else {
                continue;
            };
            let is_of_cache =
                matches!(self.arm, Arm::Builtin { .. }) && name.starts_with("Qcache_");
            if QUERY_CACHE_STATES.contains(&name.as_str()) && is_of_cache {
                counts.states.insert(name, value);
            } else if is_of_cache || SERVER_COUNTERS.contains(&name.as_str()) {
                counts.counters.insert(name, value);
            }
        }
        match &self.proxy {
            Proxy::None | Proxy::HaProxy(_) => {}
            Proxy::ProxySql(proxysql) => {
                let of_cache = proxysql.counters()?.into_iter();
                let of_cache = of_cache.filter(|(name, _)| name.starts_with("Query_Cache_"));
                counts.counters.extend(of_cache);
            }
            Proxy::Remora(remora) => {
                let metrics = remora.metrics()?;
                let named = |name: &&str| ((*name).to_owned(), metrics.sum(name));
                counts.counters.extend(REMORA_COUNTERS.iter().map(named));
                counts.states.extend(REMORA_STATES.iter().map(named));
            }
        }
        Ok(counts)
    }
}

impl Counts {
    /// What was counted since an earlier moment, and the states now.
    pub(super) fn since(&self, earlier: &Counts) -> BTreeMap<String, f64> {
        let grown = |(name, value): (&String, &f64)| {
            let before = earlier.counters.get(name).copied().unwrap_or_default();
            (name.clone(), value - before)
        };
        let mut counted: BTreeMap<String, f64> = self.counters.iter().map(grown).collect();
        counted.extend(self.states.clone());
        counted
    }
}

/// The share of reads that were answered from the arm's cache, by what was counted; `None` if it
/// has none, or if nothing was read. `reads` are those of the load: a proxy that looks only some of
/// them up still didn't answer the others.
pub(super) fn hit_ratio(
    arm: Arm,
    kind: Kind,
    counted: &BTreeMap<String, f64>,
    reads: f64,
) -> Option<f64> {
    let of = |name: &str| counted.get(name).copied().unwrap_or_default();
    let (hits, all) = match arm {
        Arm::Direct | Arm::Hop => return None,
        // MySQL counts only those as SELECTs that it executes.
        Arm::Builtin { .. } if kind.is_mysql() => {
            let hits = of("Qcache_hits");
            (hits, hits + of("Com_select"))
        }
        Arm::Builtin { .. } => (of("Qcache_hits"), of("Com_select")),
        Arm::ProxySql { .. } => (
            of("Query_Cache_count_GET_OK"),
            reads.max(of("Query_Cache_count_GET")),
        ),
        Arm::Remora { .. } => {
            let hits = of("remora_hits_total");
            (hits, reads.max(hits + of("remora_misses_total")))
        }
    };
    (all > 0.0).then_some(hits / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_were_not_looked_up_count_too() {
        let remora = Arm::Remora { memory_mib: 1 };
        let counted = [("remora_hits_total", 20.0), ("remora_misses_total", 30.0)];
        let counted = counted.map(|(name, value)| (name.to_owned(), value)).into();
        let ratio = |reads| hit_ratio(remora, Kind::MariaDb1011, &counted, reads).unwrap();
        assert!((ratio(40.0) - 0.4).abs() < 1e-9);
        assert!((ratio(200.0) - 0.1).abs() < 1e-9);
        assert_eq!(hit_ratio(Arm::Hop, Kind::MariaDb1011, &counted, 40.0), None);
    }
}
