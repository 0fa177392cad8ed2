//! A crowd: many clients that ask for the same thing at the same moment, when memory doesn't have
//! it. How many statements reach the server, and when the last client has its answer.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;

use super::Size;
use super::mark::{Mark, PartReport};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::cpu_time;
use remora_testkit::client::Client;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions};

/// What Remora counts of each message, by its outcome.
const STATEMENTS: &str = "remora_statements_total";
/// Clients.
const CROWD: u32 = 1_000;
/// Rows that a statement joins with each other: about 4 ms.
const ROWS: u32 = 300;
/// Statements that should reach the server.
const STATEMENTS_MAX: f64 = 1.0;
/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Rounds.
const ROUNDS_MAX: u32 = 3;

/// A way to the server.
struct Arm<'a> {
    name: &'static str,
    address: SocketAddr,
    remora: Option<&'a Remora>,
}

/// What a crowd brought about.
#[derive(Clone, Copy)]
struct Sample {
    /// Statements of clients that reached the server.
    statements: f64,
    /// Until all had their answers, seconds.
    seconds: f64,
    /// The server's processor time, seconds.
    server_seconds: f64,
}

/// Measures.
pub(super) fn run(size: Size, progress: &mut Progress) -> anyhow::Result<PartReport> {
    progress.step("crowds: filling a table");
    let server = filled_server()?;
    let waiting = Remora::start(&server, &RemoraOptions::following())?;
    let asking = RemoraOptions::following().with("cache.fill_wait_ms_max", "0");
    let asking = Remora::start(&server, &asking)?;
    let arm = |name, address, remora| Arm {
        name,
        address,
        remora,
    };
    let arms = [
        arm("direct", server.address(), None),
        arm("Remora, nobody waits", asking.address(), Some(&asking)),
        arm("Remora", waiting.address(), Some(&waiting)),
    ];
    let mut samples = vec![Vec::new(); arms.len()];
    let rounds = size.rounds.min(ROUNDS_MAX);
    for round in 1..=rounds {
        for (arm, samples) in arms.iter().zip(&mut samples) {
            progress.step(&format!("crowds: round {round} of {rounds}: {}", arm.name));
            samples.push(crowd(&server, arm, round)?);
        }
    }
    Ok(report(&arms, &samples))
}

fn report(arms: &[Arm<'_>], samples: &[Vec<Sample>]) -> PartReport {
    let mut table = Table::new(&[
        "through",
        "statements at the server",
        "until all are answered, s",
        "server's CPU, s",
    ]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (arm, samples) in arms.iter().zip(samples) {
        let of = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<_>>());
        let statements = of(|one| one.statements);
        let (seconds, server_seconds) = (of(|one| one.seconds), of(|one| one.server_seconds));
        table.row([
            arm.name.to_owned(),
            grouped(statements),
            format!("{seconds:.2}"),
            format!("{server_seconds:.2}"),
        ]);
        figures.push(
            json!({"arm": arm.name, "statements": statements, "seconds": seconds,
                            "server_cpu_s": server_seconds}),
        );
        if arm.name == "Remora" {
            let most = samples.iter().map(|one| one.statements).fold(0.0, f64::max);
            let what = "statements at the server, the most of any round".to_owned();
            marks.push(Mark::at_most(what, STATEMENTS_MAX, most, ""));
        }
    }
    PartReport {
        title: format!(
            "{} clients ask at the same moment for a result that memory doesn't have.",
            grouped(CROWD.into())
        ),
        table,
        marks,
        figures: json!(figures),
    }
}

fn filled_server() -> anyhow::Result<Server> {
    let server = Server::start(ServerOptions {
        kind: Some(Kind::MariaDb1011),
        connections_max: CROWD + 200,
        ..ServerOptions::default()
    })?;
    server.execute([
        "CREATE DATABASE crowds".to_owned(),
        "CREATE TABLE crowds.t (id INT PRIMARY KEY, v INT)".to_owned(),
        format!("INSERT INTO crowds.t SELECT seq, seq FROM seq_1_to_{ROWS}"),
    ])?;
    Ok(server)
}

/// Has a crowd ask for something new.
fn crowd(server: &Server, arm: &Arm<'_>, round: u32) -> anyhow::Result<Sample> {
    let text = format!(
        "SELECT COUNT(*) FROM crowds.t a, crowds.t b WHERE a.v + b.v > {} AND a.id <> -{round}",
        ROWS / 2
    );
    let mut options = server.app().at(arm.address);
    options.timeout = TIMEOUT;
    let mut clients = Vec::new();
    for _ in 0..CROWD {
        let mut client = options.connect()?;
        // Remora knows the session and the table then.
        client.query("SELECT v FROM crowds.t WHERE id = 1")?;
        clients.push(client);
    }
    let id = server.id().context("the server has ended")?;
    let (before, server_before) = (passed(arm)?, cpu_time(id)?);
    let took = ask_all(&mut clients, &text)?;
    let server_time = cpu_time(id)?.saturating_sub(server_before);
    let statements = match before {
        // What memory answers is counted after its answer was sent, but isn't counted here.
        Some(before) => passed(arm)?.unwrap_or_default() - before,
        None => f64::from(CROWD),
    };
    Ok(Sample {
        statements,
        seconds: took.as_secs_f64(),
        server_seconds: server_time.as_secs_f64(),
    })
}

/// How many statements Remora has passed on.
fn passed(arm: &Arm<'_>) -> anyhow::Result<Option<f64>> {
    let Some(remora) = arm.remora else {
        return Ok(None);
    };
    let metrics = remora.metrics()?;
    let of = |outcome| metrics.sum_where(STATEMENTS, "outcome", outcome);
    Ok(Some(metrics.sum(STATEMENTS) - of("hit")))
}

/// All clients ask, and get the same answer. Gives how long it took from when they were let go.
fn ask_all(clients: &mut [Client], text: &str) -> anyhow::Result<Duration> {
    let [are_ready, may_go] = [(); 2].map(|()| Barrier::new(clients.len() + 1));
    let (are_ready, may_go) = (&are_ready, &may_go);
    std::thread::scope(|scope| {
        let asked: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(move || {
                    are_ready.wait();
                    may_go.wait();
                    client.query_value(text)
                })
            })
            .collect();
        are_ready.wait();
        let began = Instant::now();
        may_go.wait();
        let mut answers = Vec::with_capacity(asked.len());
        for one in asked {
            let answer = one
                .join()
                .map_err(|_| anyhow!("a client's thread panicked"))?;
            answers.push(answer?.context("no number in the answer")?);
        }
        let took = began.elapsed();
        if answers.windows(2).any(|pair| pair[0] != pair[1]) {
            bail!("clients of one crowd got different answers");
        }
        Ok(took)
    })
}
