//! The servers of a run: one without a query cache, and one with, if an arm needs it. Each has its
//! own copy of the data.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::data::{Kept, SYSBENCH_SCHEMA, beginning, root_of};
use super::machine::arguments_of;
use super::plan::{Arm, Data, Plan, Point};
use crate::usage::cpu_time;
use remora_testkit::interrupt;
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions};

/// Connections beyond those of the load: checkers, administrators, Remora's own.
const FURTHER_CONNECTIONS: u32 = 200;
/// A server that used less than this share of a processor is quiet.
const QUIET_SHARE: f64 = 0.05;
/// For so long.
const QUIET_FOR: Duration = Duration::from_millis(200);
/// The longest wait until it is.
const QUIET_PATIENCE: Duration = Duration::from_secs(20);

/// From the end of a server's connections to that of its process.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// The servers. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Stage {
    plain: Option<Server>,
    with_query_cache: Option<Server>,
}

impl Stage {
    /// Starts those that the arms need.
    pub(super) fn start(
        kind: Kind,
        plan: &Plan,
        data: &Kept,
        say: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Stage> {
        let uses_cache = |arm: &Arm| matches!(arm, Arm::Builtin { .. });
        let mut stage = Stage {
            plain: None,
            with_query_cache: None,
        };
        if !plan.arms.iter().all(uses_cache) {
            say("starting a server without a query cache");
            stage.plain = Some(start(kind, plan, data, 0)?);
        }
        if plan.arms.iter().any(uses_cache) {
            say("starting a server with a query cache");
            stage.with_query_cache = Some(start(kind, plan, data, 1)?);
        }
        Ok(stage)
    }

    /// The server of an arm.
    pub(super) fn server(&self, arm: Arm) -> anyhow::Result<&Server> {
        let server = match arm {
            Arm::Builtin { .. } => &self.with_query_cache,
            _ => &self.plain,
        };
        server.as_ref().context("no server was started for the arm")
    }

    fn all(&self) -> impl Iterator<Item = &Server> {
        self.plain.iter().chain(&self.with_query_cache)
    }

    /// Before a measurement: nothing is left of what was done for another, and no cache holds
    /// anything.
    pub(super) fn prepare(&self, arm: Arm, point: &Point) -> anyhow::Result<()> {
        let server = self.server(arm)?;
        let mut root = root_of(server)?;
        // Nobody follows it now, and it would fill the disk.
        root.query("RESET MASTER")?;
        if let Arm::Builtin { mib } = arm {
            root.query("SET GLOBAL query_cache_size = 0")?;
            let bytes = u64::from(mib) << 20;
            root.query(&format!("SET GLOBAL query_cache_size = {bytes}"))?;
        }
        for statement in &point.before {
            root.query(statement)
                .with_context(|| format!("the server refuses {}", beginning(statement)))?;
        }
        drop(root);
        self.wait_until_quiet()
    }

    /// Waits until the servers have done what they put off, or for as long as is reasonable.
    fn wait_until_quiet(&self) -> anyhow::Result<()> {
        let end = Instant::now() + QUIET_PATIENCE;
        let ids: Vec<u32> = self.all().filter_map(Server::id).collect();
        let used = || -> anyhow::Result<Duration> { ids.iter().map(|&id| cpu_time(id)).sum() };
        let mut before = used()?;
        loop {
            interrupt::sleep(QUIET_FOR)?;
            let now = used()?;
            let share = now.saturating_sub(before).as_secs_f64() / QUIET_FOR.as_secs_f64();
            if share <= QUIET_SHARE || Instant::now() > end {
                return Ok(());
            }
            before = now;
        }
    }

    /// After a failure: an error if a server is gone, or goes within a moment, for its clients see
    /// that first.
    pub(super) fn require_servers(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + LAST_BREATH;
        while Instant::now() < end {
            for server in self.plain.iter_mut().chain(&mut self.with_query_cache) {
                if let Some(how) = server.ended_by_itself()? {
                    bail!("{how}");
                }
            }
            std::thread::sleep(QUIET_FOR / 10);
        }
        Ok(())
    }

    /// What the server says of its version.
    pub(super) fn version(&self) -> anyhow::Result<String> {
        let server = self.all().next().context("no server was started")?;
        let version = root_of(server)?.query_value("SELECT VERSION()")?;
        Ok(format!(
            "{} ({})",
            version.unwrap_or_default(),
            server.kind().as_str()
        ))
    }

    /// The servers' command lines, by what to call them.
    pub(super) fn configuration(&self) -> Vec<(String, String)> {
        let named = |name: &str, server: &Option<Server>| {
            let id = server.as_ref().and_then(Server::id)?;
            Some((name.to_owned(), arguments_of(id)))
        };
        let both = [
            named("server", &self.plain),
            named("server with a query cache", &self.with_query_cache),
        ];
        both.into_iter().flatten().collect()
    }
}

fn start(kind: Kind, plan: &Plan, data: &Kept, query_cache_mib: u32) -> anyhow::Result<Server> {
    let threads = plan.points.iter().map(|point| point.load.threads).max();
    let options = ServerOptions {
        kind: Some(kind),
        query_cache_mib,
        connections_max: threads.unwrap_or_default() + FURTHER_CONNECTIONS,
        further: plan.server_options.clone(),
        ..ServerOptions::default()
    };
    let server = Server::start_with_data(options, &data.data())?;
    warm(&server, &plan.data)?;
    Ok(server)
}

/// Reads sysbench's tables once, so that they are in memory as far as there is room.
fn warm(server: &Server, data: &Data) -> anyhow::Result<()> {
    let Data::Sysbench { tables, .. } = data else {
        return Ok(());
    };
    let mut root = root_of(server)?;
    for table in 1..=*tables {
        interrupt::check()?;
        let name = format!("{SYSBENCH_SCHEMA}.sbtest{table}");
        root.query(&format!(
            "SELECT SQL_NO_CACHE SUM(LENGTH(pad)) FROM {name} FORCE INDEX (PRIMARY)"
        ))?;
        root.query(&format!(
            "SELECT SQL_NO_CACHE COUNT(*) FROM {name} FORCE INDEX (k_{table})"
        ))?;
    }
    Ok(())
}

/// The schema that a load works in.
pub(super) fn schema(data: &Data) -> &'static str {
    match data {
        Data::Sysbench { .. } => SYSBENCH_SCHEMA,
        Data::Statements(_) => SCHEMA,
    }
}
