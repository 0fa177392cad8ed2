//! Heavy queries, alone and with one update every 0.1 s: experiment E8.
//!
//! A table has five parts of 100,000 rows. The clients ask for totals of four of them. Updates go
//! the same way as the queries: to a row of the fifth part, to a column that nobody asks for, or to
//! a row that the totals hold. Each answer is checked: a total must hold every update that had been
//! answered when the question was sent, and none that hadn't been sent when the answer came.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;

use super::mark::{Mark, PartReport};
use super::{Size, closed_loop};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::interrupt;
use remora_testkit::load::random::Random;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions};

/// Rows of a part.
const PART_ROWS: usize = 100_000;
/// Parts that are asked for: 1 up to this. Part 0 isn't.
const PARTS: usize = 4;
/// Clients that ask.
const THREADS: u32 = 6;
/// Between two updates.
const PAUSE: Duration = Duration::from_millis(100);
/// Remora's rate under updates that concern nobody, of the direct one.
const RATIO_MIN: f64 = 20.0;

/// What is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Updates {
    OtherRow,
    OtherColumn,
    Own,
}

impl Updates {
    const ALL: [Updates; 3] = [Updates::OtherRow, Updates::OtherColumn, Updates::Own];

    fn name(self) -> &'static str {
        match self {
            Updates::OtherRow => "a row of another part",
            Updates::OtherColumn => "a column that isn't read",
            Updates::Own => "a row that is read",
        }
    }

    /// The statement, and the part whose total it raises.
    fn statement(self, random: &mut Random) -> (String, Option<usize>) {
        let id = 1 + random.below(PART_ROWS);
        let part = 1 + random.below(PARTS);
        match self {
            Updates::OtherRow => {
                let text = format!("UPDATE heavy SET v = v + 1 WHERE part = 0 AND id = {id}");
                (text, None)
            }
            Updates::OtherColumn => {
                let note = random.next();
                let text =
                    format!("UPDATE heavy SET note = '{note}' WHERE part = {part} AND id = {id}");
                (text, None)
            }
            Updates::Own => {
                let text = format!("UPDATE heavy SET v = v + 1 WHERE part = {part} AND id = {id}");
                (text, Some(part))
            }
        }
    }
}

/// Updates of one part's total: sent, and answered.
#[derive(Debug, Default)]
struct Raised {
    sent: AtomicU64,
    answered: AtomicU64,
}

/// The way to the server.
struct Arm {
    name: &'static str,
    address: SocketAddr,
}

/// Measures.
pub(super) fn run(size: Size, progress: &mut Progress) -> anyhow::Result<PartReport> {
    progress.step("e8: filling a table");
    let server = filled_server()?;
    let fine = Remora::start(&server, &RemoraOptions::following())?;
    let coarse = RemoraOptions::following().with("cache.table_shapes_max", "0");
    let coarse = Remora::start(&server, &coarse)?;
    let arm = |name, address| Arm { name, address };
    let arms = [
        arm("direct", server.address()),
        arm("Remora", fine.address()),
        arm("Remora, tags of tables", coarse.address()),
    ];
    let raised: Vec<Raised> = (0..=PARTS).map(|_| Raised::default()).collect();
    let mut rates = vec![vec![Vec::new(); arms.len()]; Updates::ALL.len()];
    for round in 1..=size.rounds {
        for (updates, rates) in Updates::ALL.iter().zip(&mut rates) {
            for (arm, rates) in arms.iter().zip(rates) {
                progress.step(&format!(
                    "e8: round {round} of {}: {}, {}",
                    size.rounds,
                    arm.name,
                    updates.name()
                ));
                let app = server.app().at(arm.address);
                rates.push(measure(&app, *updates, size.length(), &raised)?);
            }
        }
    }
    Ok(report(&arms, &rates))
}

fn report(arms: &[Arm], rates: &[Vec<Vec<f64>>]) -> PartReport {
    let mut table = Table::new(&[
        "every 0.1 s an update of",
        "through",
        "queries/s",
        "of direct",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (updates, rates) in Updates::ALL.iter().zip(rates) {
        let medians: Vec<f64> = rates.iter().map(|rates| median(rates)).collect();
        let direct = medians.first().copied().unwrap_or_default().max(1e-9);
        for (arm, rate) in arms.iter().zip(&medians) {
            table.row([
                updates.name().to_owned(),
                arm.name.to_owned(),
                grouped(*rate),
                format!("{:.2}", rate / direct),
            ]);
            figures.push(json!({"updates": updates.name(), "arm": arm.name,
                                "queries_per_s": rate, "of_direct": rate / direct}));
        }
        let ratio = medians.get(1).copied().unwrap_or_default() / direct;
        if *updates != Updates::Own {
            let what = format!("Remora / direct, updates of {}", updates.name());
            marks.push(Mark::at_least(what, RATIO_MIN, ratio, ""));
        }
    }
    PartReport {
        title: format!(
            "totals over 100,000 rows asked for by {THREADS} clients, one update every 0.1 s; every answer was checked and right."
        ),
        table,
        marks,
        figures: json!(figures),
    }
}

fn filled_server() -> anyhow::Result<Server> {
    let server = Server::start(ServerOptions {
        kind: Some(Kind::MariaDb1011),
        buffer_pool_mib: 512,
        ..ServerOptions::default()
    })?;
    let fill = |part: usize| {
        format!(
            "INSERT INTO heavy SELECT {part}, seq, seq MOD 100, 0, '' FROM seq_1_to_{PART_ROWS}"
        )
    };
    let create = "CREATE TABLE heavy (part INT, id INT, k INT NOT NULL, v BIGINT NOT NULL,                   note VARCHAR(100) NOT NULL, PRIMARY KEY (part, id)) ENGINE=InnoDB";
    server.execute(std::iter::once(create.to_owned()).chain((0..=PARTS).map(fill)))?;
    Ok(server)
}

/// Queries a second.
fn measure(
    app: &ConnectOptions,
    updates: Updates,
    length: Duration,
    raised: &[Raised],
) -> anyhow::Result<f64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let updater = scope.spawn(|| update(app, updates, &stop, raised));
        let report = closed_loop::run(app, THREADS, length, |client, random| {
            ask(client, 1 + random.below(PARTS), raised)
        });
        stop.store(true, Ordering::SeqCst);
        updater
            .join()
            .map_err(|_| anyhow!("the writer panicked"))??;
        Ok(report?.queries_per_s)
    })
}

fn update(
    app: &ConnectOptions,
    updates: Updates,
    stop: &AtomicBool,
    raised: &[Raised],
) -> anyhow::Result<()> {
    let mut client = app.connect()?;
    let mut random = Random::new(Random::fresh_seed());
    while !stop.load(Ordering::SeqCst) {
        let (text, part) = updates.statement(&mut random);
        let raised = part.and_then(|part| raised.get(part));
        if let Some(raised) = raised {
            raised.sent.fetch_add(1, Ordering::SeqCst);
        }
        client.query(&text)?;
        if let Some(raised) = raised {
            raised.answered.fetch_add(1, Ordering::SeqCst);
        }
        interrupt::sleep(PAUSE)?;
    }
    Ok(())
}

/// Asks for a part's totals and checks their sum.
fn ask(client: &mut Client, part: usize, raised: &[Raised]) -> anyhow::Result<()> {
    let raised = raised.get(part).context("a part that isn't there")?;
    let least = raised.answered.load(Ordering::SeqCst);
    let text = format!("SELECT k, COUNT(*), SUM(v) FROM heavy WHERE part = {part} GROUP BY k");
    let rows = client.query(&text)?.rows()?;
    let most = raised.sent.load(Ordering::SeqCst);
    let mut sum = 0;
    for row in &rows {
        let field = row.get(2).and_then(Option::as_deref).context("a total")?;
        sum += std::str::from_utf8(field)?.parse::<u64>()?;
    }
    if rows.len() != 100 || !(least..=most).contains(&sum) {
        bail!(
            "a wrong answer: {} rows, and the total of part {part} is {sum}, not from {least} to {most}",
            rows.len()
        );
    }
    Ok(())
}
