//! How many of the transactions that memory begins are refused, with `cache.transaction_reads =
//! "early"`.
//!
//! All transactions read the same row. Then each changes a row of its own, so the server has to
//! know of it. Another client, past Remora, changes the row that all read so many times a second. A
//! transaction is refused (error 1213) if such a change comes between its read and the snapshot
//! that the server makes for its write. Where the server answers the first read, none is refused.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;

use super::Size;
use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::table::{Table, grouped};
use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::interrupt;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::Server;

/// Clients with transactions.
const CLIENTS: u32 = 8;
/// Changes of the row that all read, a second.
const CHANGES_PER_S: [u32; 4] = [1, 10, 100, 1_000];
/// The modes that are compared.
const MODES: [&str; 2] = ["after_snapshot", "early"];
/// `ER_LOCK_DEADLOCK`
const TRY_AGAIN: u16 = 1213;

/// What became of transactions.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    committed: u64,
    refused: u64,
    /// Reads of the row that all read, answered from memory.
    hits: f64,
    seconds: f64,
}

impl Sample {
    fn add(&mut self, other: Sample) {
        self.committed += other.committed;
        self.refused += other.refused;
        self.hits += other.hits;
        self.seconds += other.seconds;
    }

    #[allow(clippy::cast_precision_loss)]
    fn transactions(self) -> f64 {
        ((self.committed + self.refused) as f64).max(1.0)
    }

    #[allow(clippy::cast_precision_loss)]
    fn refused_of_a_million(self) -> f64 {
        1e6 * self.refused as f64 / self.transactions()
    }
}

/// Measures.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    let rows: Vec<String> = (1..=CLIENTS).map(|id| format!("({id}, 0)")).collect();
    server.execute([
        format!("CREATE TABLE {BENCH_SCHEMA}.hot (id INT PRIMARY KEY, n INT) ENGINE=InnoDB"),
        format!("INSERT INTO {BENCH_SCHEMA}.hot VALUES (1, 0)"),
        format!("CREATE TABLE {BENCH_SCHEMA}.own (id INT PRIMARY KEY, n INT) ENGINE=InnoDB"),
        format!("INSERT INTO {BENCH_SCHEMA}.own VALUES {}", rows.join(", ")),
    ])?;
    let start = |mode: &str| {
        let options = RemoraOptions::following().with("cache.transaction_reads", mode);
        Remora::start(server, &options)
    };
    let remoras = [start(MODES[0])?, start(MODES[1])?];
    let mut samples = [[Sample::default(); MODES.len()]; CHANGES_PER_S.len()];
    for round in 1..=size.rounds {
        for (rate, samples) in CHANGES_PER_S.into_iter().zip(&mut samples) {
            for ((mode, remora), sample) in MODES.into_iter().zip(&remoras).zip(samples) {
                progress.step(&format!(
                    "conflicts: round {round} of {}: {mode}, {rate} changes a second",
                    size.rounds
                ));
                sample.add(measure(server, remora, rate, size.length())?);
            }
        }
    }
    server.execute([
        format!("DROP TABLE {BENCH_SCHEMA}.hot"),
        format!("DROP TABLE {BENCH_SCHEMA}.own"),
    ])?;
    Ok(report(&samples))
}

fn measure(
    server: &Server,
    remora: &Remora,
    rate: u32,
    length: Duration,
) -> anyhow::Result<Sample> {
    interrupt::check()?;
    let hits = || anyhow::Ok(remora.metrics()?.sum("remora_hits_total"));
    let before = hits()?;
    let is_over = AtomicBool::new(false);
    let (committed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let writer = scope.spawn(|| change(server.address(), rate, &is_over));
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|id| {
                let (is_over, committed, refused) = (&is_over, &committed, &refused);
                scope.spawn(move || transact(remora.address(), id, is_over, committed, refused))
            })
            .collect();
        while started.elapsed() < length
            && !clients
                .iter()
                .any(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client
                .join()
                .map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        writer
            .join()
            .map_err(|_| anyhow::anyhow!("the writer panicked"))?
    })?;
    Ok(Sample {
        committed: committed.into_inner(),
        refused: refused.into_inner(),
        hits: hits()? - before,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn connect(address: SocketAddr) -> Result<Client, ClientError> {
    let options = ConnectOptions::new(
        address,
        remora_testkit::servers::APP_USER,
        remora_testkit::servers::APP_PASSWORD,
    );
    options.schema(BENCH_SCHEMA).connect()
}

/// Changes the row that all read, so often.
fn change(address: SocketAddr, rate: u32, is_over: &AtomicBool) -> anyhow::Result<()> {
    let mut client = connect(address)?;
    let started = Instant::now();
    for nth in 1_u32.. {
        // Against the start, so that a late change makes the next one come sooner.
        let due = Duration::from_secs(1) * nth / rate;
        while started.elapsed() < due {
            if is_over.load(Ordering::SeqCst) {
                return Ok(());
            }
            let left = due.saturating_sub(started.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
        client.query("UPDATE hot SET n = n + 1 WHERE id = 1")?;
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// Runs transactions until it is over.
fn transact(
    address: SocketAddr,
    id: u32,
    is_over: &AtomicBool,
    committed: &AtomicU64,
    refused: &AtomicU64,
) -> anyhow::Result<()> {
    let mut client = connect(address)?;
    let write = format!("UPDATE own SET n = n + 1 WHERE id = {id}");
    let statements = ["BEGIN", "SELECT n FROM hot WHERE id = 1", &write, "COMMIT"];
    while !is_over.load(Ordering::SeqCst) {
        let mut outcome = Ok(());
        for statement in statements {
            outcome = client.query(statement).map(drop);
            if outcome.is_err() {
                break;
            }
        }
        match outcome {
            Ok(()) => committed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.code() == Some(TRY_AGAIN) => {
                refused.fetch_add(1, Ordering::Relaxed)
            }
            Err(error) => return Err(error).context("a transaction of the benchmark"),
        };
    }
    Ok(())
}

fn report(samples: &[[Sample; MODES.len()]]) -> PartReport {
    let mut table = Table::new(&[
        "changes/s of the row",
        "transaction_reads",
        "transactions/s",
        "hits %",
        "refused",
        "of a million",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (rate, samples) in CHANGES_PER_S.into_iter().zip(samples) {
        for (mode, sample) in MODES.into_iter().zip(samples) {
            let transactions_per_s = sample.transactions() / sample.seconds.max(1e-9);
            let of_a_million = sample.refused_of_a_million();
            table.row([
                rate.to_string(),
                mode.to_owned(),
                grouped(transactions_per_s),
                format!("{:.0}", 100.0 * sample.hits / sample.transactions()),
                sample.refused.to_string(),
                grouped(of_a_million),
            ]);
            figures.push(json!({
                "changes_per_s": rate, "mode": mode, "transactions_per_s": transactions_per_s,
                "transactions": sample.transactions(), "refused": sample.refused,
                "refused_of_a_million": of_a_million, "hits": sample.hits,
            }));
            if mode == MODES[0] {
                let what = format!("{mode}, {rate} changes/s: refused");
                marks.push(Mark::at_most(what, 0.0, of_a_million, "of a million"));
            }
        }
    }
    PartReport {
        title: format!(
            "Transactions that read a row which changes, and write one of their own: {CLIENTS} clients, one row for all."
        ),
        table,
        marks,
        figures: json!({"runs": figures}),
    }
}
