//! What an application runs on: a server, a Remora, and the application twice, once for each way to
//! the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use remora_testkit::process::{PATIENCE, Process, Program, wait_for};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server, ServerOptions};
use remora_testkit::{interrupt, ports, programs};

use super::Verified;
use super::description::Application;
use super::http::{Browser, SITE};
use super::statements::Selects;
use crate::usage::cpu_time;

/// The schema that the application has for itself.
const SCHEMA: &str = "application";
/// Longest time for an application to put its content into the schema.
const FILLING: Duration = Duration::from_mins(5);
/// Processes that an application serves pages with, on each way.
const WEB_WORKERS: u32 = 3;
/// The server's own query cache, where that is measured, MiB.
const QUERY_CACHE_MIB: u32 = 64;

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Past Remora.
    Direct,
    /// Through it.
    Remora,
}

/// An application with all that it runs on.
#[derive(Debug)]
pub(super) struct Bed {
    // Dropped in this order.
    direct: Web,
    through: Option<Web>,
    remora: Option<Remora>,
    server: Server,
    scratch: Scratch,
    application: Application,
    seed: u64,
}

/// What a server's own query cache has done.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryCache {
    hits: u64,
    selects: u64,
}

impl QueryCache {
    /// The share of SELECTs that it answered since an earlier moment.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn share_since(self, earlier: QueryCache) -> f64 {
        let selects = self.selects.saturating_sub(earlier.selects).max(1);
        self.hits.saturating_sub(earlier.hits) as f64 / selects as f64
    }
}

/// One application's processes.
#[derive(Debug)]
struct Web {
    _process: Process,
    address: SocketAddr,
}

impl Bed {
    /// Starts a server, lets the application fill it, and starts the rest.
    pub(super) fn start(
        application: &Application,
        kind: Option<Kind>,
        remora: &RemoraOptions,
        seed: u64,
    ) -> anyhow::Result<Bed> {
        let further = vec!["--max-allowed-packet=64M".to_owned()];
        let server = Server::start(ServerOptions {
            kind,
            buffer_pool_mib: 256,
            further,
            ..ServerOptions::default()
        })?;
        server.execute([format!("CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")])?;
        let scratch = Scratch::new()?;
        let log = scratch.join("fill.log");
        script(
            "fill",
            application,
            &scratch,
            server.address(),
            None,
            seed,
            log,
        )?
        .run(FILLING)
        .with_context(|| format!("{} could not be filled", application.name))?;
        let direct = Web::start(application, &scratch, server.address(), "direct", seed)?;
        // It is new to what it is asked, as everything is after a restart.
        let remora = Remora::start(&server, remora)?;
        let through = Web::start(application, &scratch, remora.address(), "remora", seed)?;
        Ok(Bed {
            direct,
            through: Some(through),
            remora: Some(remora),
            server,
            scratch,
            application: application.clone(),
            seed,
        })
    }

    /// Where the application listens that takes this way.
    pub(super) fn web(&self, way: Way) -> SocketAddr {
        match (way, &self.through) {
            (Way::Remora, Some(web)) => web.address,
            _ => self.direct.address,
        }
    }

    /// Ends Remora, and starts the server again with its own query cache, if it has one, and with
    /// the log of all statements at the path that is given back.
    pub(super) fn without_remora(&mut self) -> anyhow::Result<PathBuf> {
        self.through = None;
        self.remora = None;
        let log = self.scratch.join("general.log");
        let has_query_cache = self.has_query_cache();
        self.server.restart_with(|options| {
            if has_query_cache {
                options.query_cache_mib = QUERY_CACHE_MIB;
            }
            options.further.push("--general-log=ON".to_owned());
            options
                .further
                .push(format!("--general-log-file={}", log.display()));
        })?;
        let address = self.server.address();
        self.direct = Web::start(
            &self.application,
            &self.scratch,
            address,
            "again",
            self.seed,
        )?;
        Ok(log)
    }

    /// Whether the server has a query cache of its own that is measured.
    fn has_query_cache(&self) -> bool {
        !self.server.kind().is_mysql()
    }

    /// What the server's own query cache has done since it was started; `None`: it has none.
    pub(super) fn query_cache(&self) -> anyhow::Result<Option<QueryCache>> {
        if !self.has_query_cache() {
            return Ok(None);
        }
        let mut root = self.server.root()?;
        let mut value = |name: &str| {
            let rows = root
                .query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?
                .rows()?;
            let field = rows
                .into_iter()
                .next()
                .and_then(|row| row.into_iter().nth(1));
            let text = String::from_utf8_lossy(&field.flatten().unwrap_or_default()).into_owned();
            text.parse::<u64>()
                .with_context(|| format!("{name} is {text:?}"))
        };
        // MariaDB counts a hit as a SELECT, too.
        Ok(Some(QueryCache {
            hits: value("Qcache_hits")?,
            selects: value("Com_select")?,
        }))
    }

    /// The server's version, as it tells it.
    pub(super) fn server_version(&self) -> anyhow::Result<String> {
        let version = self.server.root()?.query_value("SELECT VERSION()")?;
        version.context("the server tells no version")
    }

    /// What Remora has counted of SELECTs since it was started.
    pub(super) fn selects(&self) -> anyhow::Result<Selects> {
        let remora = self.remora.as_ref().context("Remora isn't running")?;
        Selects::of(remora.admin())
    }

    /// Waits until Remora has applied all that the server has logged so far.
    pub(super) fn catch_up(&self) -> anyhow::Result<()> {
        let remora = self.remora.as_ref().context("Remora isn't running")?;
        let position = self.server.position()?;
        let (file, offset) = position.split_once(':').context("no position")?;
        let number = |text: &str| text.parse::<f64>().ok();
        let wanted = file.rsplit('.').next().and_then(number).zip(number(offset));
        let wanted = wanted.with_context(|| format!("{position} is no position"))?;
        wait_for("Remora to apply the log", PATIENCE, || {
            let metrics = remora.metrics()?;
            let applied = (
                metrics.sum("remora_follower_log_file"),
                metrics.sum("remora_follower_log_offset_bytes"),
            );
            Ok((applied >= wanted).then_some(()))
        })
    }

    /// What came of the hits that Remora verified, if it did.
    pub(super) fn verified(&self) -> anyhow::Result<Option<Verified>> {
        let remora = self.remora.as_ref().context("Remora isn't running")?;
        let metrics = remora.metrics()?;
        let name = "remora_verifications_total";
        let hits = metrics.sum(name);
        let faults = metrics.sum_where(name, "verdict", "fault");
        Ok((hits > 0.0).then_some(Verified { hits, faults }))
    }

    /// The processor time that the server has used since it was started.
    pub(super) fn server_time(&self) -> anyhow::Result<Duration> {
        cpu_time(self.server.id().context("the server isn't running")?)
    }

    /// The processor time that Remora has used since it was started.
    pub(super) fn remora_time(&self) -> anyhow::Result<Duration> {
        self.remora
            .as_ref()
            .map_or(Ok(Duration::ZERO), |remora| cpu_time(remora.id()))
    }
}

impl Web {
    fn start(
        application: &Application,
        scratch: &Scratch,
        server: SocketAddr,
        name: &str,
        seed: u64,
    ) -> anyhow::Result<Web> {
        let address = ports::free()?;
        let log = scratch.join(&format!("{name}.log"));
        let program = script(
            "serve",
            application,
            scratch,
            server,
            Some(address),
            seed,
            log,
        )?;
        let mut process = program.spawn()?;
        let mut browser = Browser::new()?;
        process
            .wait_until("the application's first page", PATIENCE, || {
                let page = browser.get(address, &application.start[0]).ok();
                // It may listen before it is ready.
                page.filter(|page| page.status < 500)
            })
            .with_context(|| format!("{} did not start", application.name))?;
        Ok(Web {
            _process: process,
            address,
        })
    }
}

/// One of the application's programs with its environment.
fn script(
    name: &str,
    application: &Application,
    scratch: &Scratch,
    server: SocketAddr,
    listen: Option<SocketAddr>,
    seed: u64,
    log: PathBuf,
) -> anyhow::Result<Program> {
    let installed = programs::cache_directory().join("applications");
    let listen = listen.map(|address| address.to_string());
    let all = [
        ("APP_HOST", server.ip().to_string()),
        ("APP_PORT", server.port().to_string()),
        ("APP_USER", APP_USER.to_owned()),
        ("APP_PASSWORD", APP_PASSWORD.to_owned()),
        ("APP_SCHEMA", SCHEMA.to_owned()),
        ("APP_SITE", SITE.to_owned()),
        ("APP_SEED", seed.to_string()),
        ("APP_WORKERS", WEB_WORKERS.to_string()),
        ("APP_LISTEN", listen.unwrap_or_default()),
        ("APP_INSTALLED", installed.display().to_string()),
        ("APP_SCRATCH", scratch.path().display().to_string()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
    ];
    let assignments = all.map(|(name, value)| format!("{name}={value}"));
    let program = Program::new(name, programs::find("env")?, log);
    Ok(program
        .args(assignments)
        .arg(application.directory.join(name)))
}

/// Serves an application on both ways until the user asks to stop.
pub(super) fn keep(
    application: &Application,
    kind: Option<Kind>,
    remora: &RemoraOptions,
    seed: u64,
) -> anyhow::Result<()> {
    let bed = Bed::start(application, kind, remora, seed)?;
    let (direct, through) = (bed.web(Way::Direct), bed.web(Way::Remora));
    println!("{} (send `Host: {SITE}`)", application.name);
    println!("  directly         http://{direct}/");
    println!("  through Remora   http://{through}/");
    println!(
        "  server           {}, schema {SCHEMA}",
        bed.server.address()
    );
    if let Some(remora) = &bed.remora {
        println!("  Remora's admin   http://{}/", remora.admin());
    }
    loop {
        interrupt::sleep(Duration::from_secs(1))?;
    }
}
