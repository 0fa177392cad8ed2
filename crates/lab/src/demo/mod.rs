//! `make demo`: a small shop, read directly, with the server's own query cache, and through Remora.
//!
//! The arms take turns, so that whatever else the machine does strikes all alike. Two servers hold
//! the same data: one with the server's own query cache, one without, which is read directly and
//! through Remora. In each arm one writer goes the readers' way and another goes to the server
//! itself; the oracle judges every value of the stock that is read.

mod round;
mod shop;

use std::time::Duration;

use anyhow::Context as _;

use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use remora_testkit::client::ConnectOptions;
use remora_testkit::interrupt;
use remora_testkit::load::{Oracle, Random};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{
    APP_PASSWORD, APP_USER, FOLLOW_USER, Kind, SCHEMA, Server, ServerOptions,
};

use round::{Findings, READERS, Round};
use shop::Visitors;

/// Memory for results, of the server's query cache and of Remora alike, MiB.
const CACHE_MIB: u32 = 64;
/// How long a write past Remora may stay unseen through it: Remora's own `follow.lag_ms_max`.
const LAG_ALLOWED: Duration = Duration::from_secs(1);
/// Between two rounds, so that what the last one left behind is done.
const SETTLE: Duration = Duration::from_millis(300);
/// What starting and loading takes, roughly.
const PREPARATION: Duration = Duration::from_secs(8);

/// The demo's options.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoOptions {
    /// Leave Remora and its server running until Ctrl-C, to try it with a client of your own.
    #[arg(long)]
    pub keep: bool,
    /// Rounds of each arm.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Length of a round, seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
}

/// Everything that runs during the demo. Dropped in this order.
struct Stage {
    remora: Remora,
    plain: Server,
    caching: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Direct,
    QueryCache,
    Remora,
}

const ARMS: [Arm; 3] = [Arm::Direct, Arm::QueryCache, Arm::Remora];

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Arm::Direct => "directly",
            Arm::QueryCache => "server's query cache",
            Arm::Remora => "through Remora",
        }
    }
}

/// What is known of an arm so far.
#[derive(Debug, Default)]
struct Outcome {
    rates: Vec<f64>,
    findings: Findings,
    hits: f64,
}

/// Runs the demo.
///
/// # Errors
/// A part is missing or did not start, a client met an error, or the user asked to stop.
pub fn run(options: &DemoOptions) -> anyhow::Result<()> {
    let rounds = options.rounds * u32::try_from(ARMS.len())?;
    let round = Duration::from_secs(options.seconds.into());
    let mut progress = Progress::new(PREPARATION + rounds * (round + SETTLE));
    let stage = Stage::prepare(&mut progress)?;
    let results = stage.rounds(options, &mut progress)?;
    progress.done();
    report(&results);
    explain(options, &stage);
    if options.keep {
        wait_for_interrupt()?;
    }
    Ok(())
}

impl Stage {
    fn prepare(progress: &mut Progress) -> anyhow::Result<Stage> {
        progress.step("starting two private MariaDB servers in temporary directories");
        let options = ServerOptions {
            kind: Some(Kind::MariaDb1011),
            buffer_pool_mib: 128,
            ..ServerOptions::default()
        };
        let plain = Server::start(options.clone())?;
        let caching = Server::start(ServerOptions {
            query_cache_mib: CACHE_MIB,
            ..options
        })?;
        progress.step(&format!(
            "loading {} rows of a small shop into each",
            grouped_count(shop::ROWS)
        ));
        for server in [&plain, &caching] {
            shop::load(server).context("can't load the sample data")?;
            interrupt::check()?;
        }
        progress.step("starting Remora in front of the first");
        let options = RemoraOptions {
            memory_mib: Some(CACHE_MIB),
            ..RemoraOptions::following()
        };
        let remora = Remora::start(&plain, &options)?;
        Ok(Stage {
            remora,
            plain,
            caching,
        })
    }

    fn rounds(
        &self,
        options: &DemoOptions,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<Outcome>> {
        let visitors = Visitors::new();
        // One oracle for each server.
        let oracles = [(); 2].map(|()| Oracle::new(shop::PRODUCTS, 0, LAG_ALLOWED));
        let mut results: Vec<Outcome> = ARMS.iter().map(|_| Outcome::default()).collect();
        let mut seeds = Random::new(Random::fresh_seed());
        for number in 1..=options.rounds {
            let seed = seeds.next();
            for (arm, result) in ARMS.into_iter().zip(&mut results) {
                let server = self.server(arm);
                let title = format!("round {number} of {}: {}", options.rounds, arm.name());
                progress.step(&title);
                let round = Round {
                    arm: &self.connect_options(arm),
                    server: &server.app(),
                    visitors: &visitors,
                    oracle: &oracles[usize::from(arm == Arm::QueryCache)],
                    length: Duration::from_secs(options.seconds.into()),
                    seed,
                };
                let hits_before = self.hits(arm)?;
                let findings = round.run(|rate| {
                    progress.update(&format!("{title}: {} queries/s", grouped(rate)));
                })?;
                result.hits += self.hits(arm)? - hits_before;
                result.rates.push(findings.queries_per_s());
                result.findings.add(findings);
                interrupt::sleep(SETTLE)?;
            }
        }
        Ok(results)
    }

    fn server(&self, arm: Arm) -> &Server {
        match arm {
            Arm::QueryCache => &self.caching,
            Arm::Direct | Arm::Remora => &self.plain,
        }
    }

    fn connect_options(&self, arm: Arm) -> ConnectOptions {
        let app = self.server(arm).app();
        match arm {
            Arm::Remora => app.at(self.remora.address()),
            Arm::Direct | Arm::QueryCache => app,
        }
    }

    /// How many reads the arm's cache has answered since its start.
    fn hits(&self, arm: Arm) -> anyhow::Result<f64> {
        match arm {
            Arm::Direct => Ok(0.0),
            Arm::Remora => Ok(self.remora.metrics()?.sum("remora_hits_total")),
            Arm::QueryCache => {
                let text = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                            WHERE VARIABLE_NAME = 'QCACHE_HITS'";
                let hits = self.caching.root()?.query_value(text)?;
                Ok(hits
                    .context("the server does not count its cache's hits")?
                    .parse()?)
            }
        }
    }
}

fn wait_for_interrupt() -> anyhow::Result<()> {
    println!("Both are running until you press Ctrl-C.");
    loop {
        interrupt::sleep(Duration::from_secs(1))?;
    }
}

fn grouped_count(count: usize) -> String {
    grouped(f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
}

#[allow(clippy::cast_precision_loss)]
fn report(results: &[Outcome]) {
    println!(
        "\nA small shop of {} rows, {READERS} readers, two writers that sell ten things a second:\n",
        grouped_count(shop::ROWS)
    );
    let mut table = Table::new(&[
        "",
        "queries/s",
        "p95 latency",
        "hit ratio",
        "reads checked",
        "stale reads",
    ]);
    for (arm, result) in ARMS.into_iter().zip(results) {
        let ratio = 100.0 * result.hits / (result.findings.reads as f64).max(1.0);
        table.row([
            arm.name().to_owned(),
            grouped(median(&result.rates)),
            format!("{:.2} ms", result.findings.latencies.percentile_ms(95.0)),
            if arm == Arm::Direct {
                "–".to_owned()
            } else {
                format!("{ratio:.0} %")
            },
            grouped(result.findings.checked as f64),
            result.findings.stale_count.to_string(),
        ]);
    }
    println!("{table}");
    for (arm, result) in ARMS.into_iter().zip(results) {
        for stale in &result.findings.stale {
            println!("  stale, {}: {stale}", arm.name());
        }
    }
}

fn explain(options: &DemoOptions, stage: &Stage) {
    let (remora, server) = (stage.remora.address(), stage.plain.address());
    if options.keep {
        println!(
            "Remora listens on {remora}, its server on {server}. Point a client at Remora:\n\n\
             \x20   mariadb --host 127.0.0.1 --port {} --user {APP_USER} --password={APP_PASSWORD} {SCHEMA}\n\n\
             What it counts: http://{}/metrics\n",
            remora.port(),
            stage.remora.admin(),
        );
    } else {
        println!(
            "To try it with a client of your own, leave it running:\n\n\
             \x20   make demo ARGS=--keep\n"
        );
    }
    println!(
        "On your own server, make an account for Remora and start it; applications then connect to its port:\n\n\
         \x20   CREATE USER {FOLLOW_USER}@'%' IDENTIFIED BY '…';\n\
         \x20   GRANT REPLICATION SLAVE, BINLOG MONITOR, TRIGGER, REFERENCES ON *.* TO {FOLLOW_USER}@'%';\n\n\
         \x20   remora check --upstream 127.0.0.1:3306 --follow-user {FOLLOW_USER} --follow-password-file FILE\n\
         \x20   remora serve --upstream 127.0.0.1:3306 --listen 127.0.0.1:3307 --follow-user {FOLLOW_USER} \
         --follow-password-file FILE\n"
    );
}
