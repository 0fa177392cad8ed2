//! What is compared, and one measured round of it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;

use super::closed_loop;
use super::encrypted::{self, Reads};
use crate::usage::{cpu_time, microseconds_per_query};
use remora_testkit::certificates::Authority;
use remora_testkit::client::ConnectOptions;
use remora_testkit::process::{Process, Program};
use remora_testkit::proxies::{HaProxy, Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server, ServerOptions};
use remora_testkit::sysbench::{Length, Sysbench};
use remora_testkit::{interrupt, ports};

/// sysbench's usual name for its schema. Column definitions name it, so that an answer has its
/// usual length.
pub(super) const BENCH_SCHEMA: &str = "sbtest";
/// Rows of the table, and how many of them are asked for when everything hits.
pub(super) const ROWS: u32 = 1_000_000;
const HOT_ROWS: u32 = 1_000;
/// Memory of the Remora where nothing hits, MiB: room for about one in a hundred rows, so that it
/// is full and each result that is stored drives out another.
const COLD_MEMORY_MIB: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// One arm of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// The server, any of all rows.
    Direct,
    /// HAProxy in TCP mode, any of all rows.
    HaProxy,
    /// Remora with nothing hitting: any of all rows.
    RemoraMiss,
    /// The server, a thousand rows.
    DirectHot,
    /// Remora with everything hitting: a thousand rows.
    RemoraHit,
    /// The same with prepared statements.
    RemoraHitPrepared,
    /// The bare responder.
    Bare,
    /// HAProxy that speaks TLS with the client, any of all rows.
    HaProxyTls,
    /// Remora that does, with nothing hitting.
    RemoraTls,
    /// The same, a thousand rows at a time.
    HaProxyTlsRanges,
    /// The same.
    RemoraTlsRanges,
}

/// What drives an arm.
enum Driver {
    /// sysbench, with prepared statements or without.
    Sysbench { prepared: bool },
    /// Reads over TLS.
    Encrypted(Reads),
}

impl Arm {
    /// All, in the order in which they take turns.
    pub(super) const ALL: [Arm; 11] = [
        Arm::Direct,
        Arm::HaProxy,
        Arm::RemoraMiss,
        Arm::DirectHot,
        Arm::RemoraHit,
        Arm::RemoraHitPrepared,
        Arm::Bare,
        Arm::HaProxyTls,
        Arm::RemoraTls,
        Arm::HaProxyTlsRanges,
        Arm::RemoraTlsRanges,
    ];

    /// As a report shows it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arm::Direct => "direct, 1 M rows",
            Arm::HaProxy => "HAProxy, 1 M rows",
            Arm::RemoraMiss => "Remora, nothing hits",
            Arm::DirectHot => "direct, 1,000 rows",
            Arm::RemoraHit => "Remora, all hits",
            Arm::RemoraHitPrepared => "Remora, all hits, prepared",
            Arm::Bare => "bare responder",
            Arm::HaProxyTls => "HAProxy, TLS",
            Arm::RemoraTls => "Remora, TLS, nothing hits",
            Arm::HaProxyTlsRanges => "HAProxy, TLS, ranges",
            Arm::RemoraTlsRanges => "Remora, TLS, ranges",
        }
    }

    /// As the file of results calls it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Arm::Direct => "direct",
            Arm::HaProxy => "haproxy",
            Arm::RemoraMiss => "remora_miss",
            Arm::DirectHot => "direct_hot",
            Arm::RemoraHit => "remora_hit",
            Arm::RemoraHitPrepared => "remora_hit_prepared",
            Arm::Bare => "bare_responder",
            Arm::HaProxyTls => "haproxy_tls",
            Arm::RemoraTls => "remora_tls_miss",
            Arm::HaProxyTlsRanges => "haproxy_tls_ranges",
            Arm::RemoraTlsRanges => "remora_tls_ranges",
        }
    }

    fn rows(self) -> u32 {
        match self {
            Arm::DirectHot | Arm::RemoraHit | Arm::RemoraHitPrepared | Arm::Bare => HOT_ROWS,
            _ => ROWS,
        }
    }

    fn driver(self) -> Driver {
        match self {
            Arm::HaProxyTls | Arm::RemoraTls => Driver::Encrypted(Reads::Rows),
            Arm::HaProxyTlsRanges | Arm::RemoraTlsRanges => Driver::Encrypted(Reads::Ranges),
            _ => Driver::Sysbench {
                prepared: self == Arm::RemoraHitPrepared,
            },
        }
    }

    /// The arm that stands for the server alone, under the same load; none where nothing was
    /// measured.
    pub(super) fn direct(self) -> Option<Arm> {
        match self {
            Arm::Direct | Arm::HaProxy | Arm::RemoraMiss => Some(Arm::Direct),
            Arm::DirectHot | Arm::RemoraHit | Arm::RemoraHitPrepared | Arm::Bare => {
                Some(Arm::DirectHot)
            }
            _ => None,
        }
    }

    /// Whether Remora takes part.
    pub(super) fn has_remora(self) -> bool {
        matches!(
            self,
            Arm::RemoraMiss
                | Arm::RemoraHit
                | Arm::RemoraHitPrepared
                | Arm::RemoraTls
                | Arm::RemoraTlsRanges
        )
    }
}

/// What one round of one arm showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// The arm.
    pub(super) arm: Arm,
    /// sysbench's threads.
    pub(super) threads: u32,
    /// Queries a second.
    pub(super) queries_per_s: f64,
    /// 95th percentile of the latency, milliseconds.
    pub(super) p95_ms: f64,
    /// The server's processor time per query, microseconds.
    pub(super) server_us: f64,
    /// The proxy's (or the bare responder's) processor time per query, microseconds.
    pub(super) proxy_us: f64,
    /// Share of queries that were answered from memory.
    pub(super) hit_ratio: f64,
}

/// Everything that runs during the benchmark. Dropped in this order.
#[derive(Debug)]
pub(super) struct Stage {
    haproxy: HaProxy,
    haproxy_tls: HaProxy,
    cold: Remora,
    hot: Remora,
    bare: BareResponder,
    server: Server,
}

impl Stage {
    /// Starts the server and fills its table with so many rows.
    pub(super) fn server(connections_max: u32, rows: u32) -> anyhow::Result<Server> {
        let server = Server::start(ServerOptions {
            kind: Some(Kind::MariaDb1011),
            buffer_pool_mib: 512,
            connections_max,
            ..ServerOptions::default()
        })?;
        server.execute([format!("CREATE DATABASE {BENCH_SCHEMA}")])?;
        let mut sysbench = Sysbench::new("oltp_point_select", server.address(), BENCH_SCHEMA);
        sysbench.rows = rows;
        sysbench.prepare().context("can't fill sysbench's table")?;
        Ok(server)
    }

    /// Starts what stands in front of the server. `threads`: of HAProxy and of the bare responder.
    pub(super) fn start(server: Server, threads: usize) -> anyhow::Result<Stage> {
        let authority = Authority::new()?;
        let certificate = authority.issue("bench", &["IP:127.0.0.1"])?;
        let haproxy = HaProxy::start(server.address(), threads, None)?;
        let haproxy_tls = HaProxy::start(server.address(), threads, Some(&certificate))?;
        let cold_options = RemoraOptions {
            memory_mib: Some(COLD_MEMORY_MIB),
            ..RemoraOptions::following()
        }
        .with_certificate(&certificate);
        let cold = Remora::start(&server, &cold_options)?;
        let hot = Remora::start(&server, &RemoraOptions::following())?;
        let bare = BareResponder::start(&server, threads)?;
        Ok(Stage {
            haproxy,
            haproxy_tls,
            cold,
            hot,
            bare,
            server,
        })
    }

    /// One round of an arm.
    pub(super) fn measure(
        &self,
        arm: Arm,
        threads: u32,
        length: Duration,
    ) -> anyhow::Result<Sample> {
        interrupt::check()?;
        let server_id = self.server.id().context("the server is gone")?;
        let cpu = |id: Option<u32>| id.map_or(Ok(Duration::ZERO), cpu_time);
        let (server_before, proxy_before) = (cpu_time(server_id)?, cpu(self.proxy_id(arm))?);
        let hits_before = self.hits(arm)?;
        let report = self.drive(arm, threads, length)?;
        let server_used = cpu_time(server_id)?.saturating_sub(server_before);
        let proxy_used = cpu(self.proxy_id(arm))?.saturating_sub(proxy_before);
        #[allow(clippy::cast_precision_loss)]
        let hit_ratio = (self.hits(arm)? - hits_before) / (report.queries as f64).max(1.0);
        Ok(Sample {
            arm,
            threads,
            queries_per_s: report.queries_per_s,
            p95_ms: report.p95_ms,
            server_us: microseconds_per_query(server_used, report.queries),
            proxy_us: microseconds_per_query(proxy_used, report.queries),
            hit_ratio,
        })
    }

    fn drive(
        &self,
        arm: Arm,
        threads: u32,
        length: Duration,
    ) -> anyhow::Result<closed_loop::Report> {
        let prepared = match arm.driver() {
            Driver::Sysbench { prepared } => prepared,
            Driver::Encrypted(reads) => {
                let mut options = self.server.app().schema(BENCH_SCHEMA).at(self.address(arm));
                options.tls = arm.has_remora();
                options.tls_first = !options.tls;
                return encrypted::run(&options, reads, arm.rows(), threads, length);
            }
        };
        let mut sysbench = Sysbench::new("oltp_point_select", self.address(arm), BENCH_SCHEMA);
        sysbench.rows = arm.rows();
        sysbench.threads = threads;
        sysbench.prepared = prepared;
        sysbench.further = vec!["--rand-type=uniform".to_owned()];
        let report = sysbench.run(Length::Time(length))?;
        Ok(closed_loop::Report {
            queries: report.queries,
            queries_per_s: report.queries_per_s,
            p95_ms: report.p95_ms,
        })
    }

    fn address(&self, arm: Arm) -> SocketAddr {
        match arm {
            Arm::Direct | Arm::DirectHot => self.server.address(),
            Arm::HaProxy => self.haproxy.address(),
            Arm::HaProxyTls | Arm::HaProxyTlsRanges => self.haproxy_tls.address(),
            Arm::RemoraMiss | Arm::RemoraTls | Arm::RemoraTlsRanges => self.cold.address(),
            Arm::RemoraHit | Arm::RemoraHitPrepared => self.hot.address(),
            Arm::Bare => self.bare.address,
        }
    }

    fn proxy_id(&self, arm: Arm) -> Option<u32> {
        match arm {
            Arm::Direct | Arm::DirectHot => None,
            Arm::HaProxy => Some(self.haproxy.id()),
            Arm::HaProxyTls | Arm::HaProxyTlsRanges => Some(self.haproxy_tls.id()),
            Arm::RemoraMiss | Arm::RemoraTls | Arm::RemoraTlsRanges => Some(self.cold.id()),
            Arm::RemoraHit | Arm::RemoraHitPrepared => Some(self.hot.id()),
            Arm::Bare => Some(self.bare.process.id()),
        }
    }

    fn hits(&self, arm: Arm) -> anyhow::Result<f64> {
        let remora = match arm {
            Arm::RemoraMiss | Arm::RemoraTls | Arm::RemoraTlsRanges => &self.cold,
            Arm::RemoraHit | Arm::RemoraHitPrepared => &self.hot,
            _ => return Ok(0.0),
        };
        Ok(remora.metrics()?.sum("remora_hits_total"))
    }
}

/// The bare responder as a process of its own, so that its processor time can be told from others'.
#[derive(Debug)]
pub(super) struct BareResponder {
    process: Process,
    address: SocketAddr,
    _scratch: Scratch,
}

impl BareResponder {
    /// Starts one that answers as `server` answers for the first row of sysbench's table.
    pub(super) fn start(server: &Server, threads: usize) -> anyhow::Result<BareResponder> {
        let mut app = server.app().schema(BENCH_SCHEMA);
        app.deprecate_eof = false;
        let mut client = app.connect()?;
        let version = client
            .query_value("SELECT VERSION()")?
            .context("a server without a version")?;
        let answer = client
            .query_bytes("SELECT c FROM sbtest1 WHERE id=1")?
            .to_vec();
        let scratch = Scratch::new()?;
        let address = ports::free()?;
        let file = scratch.join("answer");
        std::fs::write(&file, answer).context("can't write the stored answer")?;
        let own = std::env::current_exe().context("can't tell where this program lies")?;
        let mut process = Program::new("bare responder", own, scratch.join("log"))
            .args(["responder", "--listen"])
            .arg(address.to_string())
            .args(["--threads".to_owned(), threads.to_string()])
            .args([
                "--server-version".to_owned(),
                version,
                "--answer".to_owned(),
            ])
            .arg(file)
            .spawn()?;
        let options = ConnectOptions::new(address, APP_USER, APP_PASSWORD);
        process
            .wait_until("the bare responder", PATIENCE, || options.connect().ok())
            .context("the bare responder did not start")?;
        Ok(BareResponder {
            process,
            address,
            _scratch: scratch,
        })
    }
}
