//! Simulates clients, a server, its log and the watermark around the real sessions. Everything runs
//! in one thread, in memory and in a time of its own. A seed decides the order of events: a seed
//! that fails fails each time. The sessions use the real store, timeline, fences, analysis and
//! tags.
//!
//! Time passes between steps. Connections are lost, and so is the log: it goes on, or another
//! begins. In all simulations each session must end when its client and its server are gone, and
//! none may panic. What is sent may also be damaged; then nothing is expected of answers.
//!
//! `cache/tests/simulation` tests the cache's rules alone, and is faster. This one also finds old
//! rows that come from a session's wrong idea of its transaction, a statement or an answer.
//!
//! `client.rs` decides what a client may read. Each read must match what its query gives after
//! *one* commit. It must include every acknowledged write through Remora. It must also include
//! every other commit that is visible and that the follower has applied, or that has been visible
//! for longer than `follow.lag_ms_max`. All this is as of when the read was sent.
//! In a transaction at `REPEATABLE READ` all plain reads must show the same commit: that of the
//! server's snapshot, once it has made one.
//!
//! | file | what it is |
//! |---|---|
//! | `statement` | what clients send |
//! | `prepared` | prepared statements, on both sides |
//! | `engine` | the server's rows and transactions |
//! | `log` | its log, byte for byte |
//! | `server` | the server's side of the protocol |
//! | `client` | a client, and what it expects |
//! | `random` | random numbers, from a seed or as a fuzzer chooses them |
//! | `tests` | what is found, and that planted faults are |
//! | `cuts` | apart from all this: every kind of exchange, cut at many places |
//!
//! [`remora_upstream::simulated`] feeds the real applier, and steps the watermark and the
//! catalogue.
//!
//! `REMORA_SIMULATIONS` sets how many seeds are tried by the two tests that try seeds.
//! `REMORA_SIMULATION_FIRST_SEED` sets the first. `REMORA_SIMULATION_SEED` makes them rerun one
//! seed and print each step. The fuzz target `session` chooses the steps by its input
//! ([`of_bytes`]).

mod client;
#[cfg(test)]
mod cuts;
mod engine;
mod log;
mod prepared;
mod random;
mod server;
mod statement;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use remora_cache::BrokenRules;
use remora_engine::reason::Outcome;
use remora_engine::rules::TransactionReads;
use remora_net::Stream;
use remora_upstream::simulated::SimulatedFollower;
use remora_wire::packet::{Extent, extent};
use tokio::task::{JoinHandle, LocalSet, yield_now};
use tokio::time::{Instant, timeout};

use self::client::{Acknowledged, Client, Told};
use self::log::{Format, Log};
use self::random::Random;
use self::server::{MARK_HOLDER, Server, instance};
use self::statement::{Mix, Statement, Write};
use crate::app::build_shared;
use crate::config::{Override, Settings, server_link};
use crate::metrics::Metrics;
use crate::session::{self, ClientConnection, FirstReads, WorkerContext};
use crate::shared::Shared;

/// Steps of one simulation.
const STEPS: usize = 800;
/// Clients of one simulation.
const CLIENTS: usize = 3;
/// Workers that share the clients. All run on one thread.
const WORKERS: usize = 2;
/// How many turns each task gets after a step: more than a message needs from client to server.
const TURNS: usize = 5;

/// `follow.lag_ms_max`.
const LAG_MS_MAX: u64 = 60_000;
/// How much time passes at most, so that nobody waits for longer than is allowed.
const PASSED_MAX: Duration = Duration::from_mins(50);
/// For how long a session may go on when everybody has left: longer than any limit of theirs.
const END_WAIT: Duration = Duration::from_hours(2);
/// How often connections are lost at least, once something was damaged.
const ONE_LOSS_IN_IF_DAMAGED: u64 = 50;
/// How long a pause may last. The longest is longer than a proof allows hits.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(100),
    Duration::from_secs(20),
    Duration::from_secs(61),
];

/// What has happened, so that a test can tell that something has.
#[derive(Debug, Default)]
struct Seen {
    reads: u64,
    reads_inside: u64,
    hits: u64,
    hits_inside: u64,
    hits_prepared: u64,
    commits: u64,
    conflicts: u64,
    /// `SET`s of which the server hadn't heard when they were answered.
    sets_deferred: u64,
    closed: u64,
    /// How often the follower found another log.
    logs: u64,
}

#[cfg(test)]
impl Seen {
    fn add(&mut self, other: &Seen) {
        self.reads += other.reads;
        self.reads_inside += other.reads_inside;
        self.hits += other.hits;
        self.hits_inside += other.hits_inside;
        self.hits_prepared += other.hits_prepared;
        self.commits += other.commits;
        self.conflicts += other.conflicts;
        self.sets_deferred += other.sets_deferred;
        self.closed += other.closed;
        self.logs += other.logs;
    }
}

/// How often things happen by chance.
#[derive(Debug, Clone, Copy)]
struct Odds {
    /// One step in this many may write past Remora.
    one_write_in: u64,
    /// One step in this many may close a connection.
    one_loss_in: u64,
    /// How slowly the first client goes on.
    client_delay: u64,
    /// How slowly commits become visible.
    show_delay: u64,
    /// How slowly the log comes.
    read_delay: u64,
    /// After how many of four steps, on average, the log and the watermark catch up.
    pace: u64,
    /// One step in this many may let time pass; 0: none.
    one_pause_in: u64,
    /// One step in this many may take the log away from the follower; 0: none.
    one_lost_log_in: u64,
    /// One step in this many may damage a message or an answer; 0: none.
    one_damage_in: u64,
    /// How many statements may be at the server; 0: any number.
    statements_max: usize,
    /// How commits are logged.
    format: Format,
    /// What a socket holds, bytes.
    socket_bytes: usize,
    /// From when on a first read counts as slow: all do, or none.
    slow_read: Duration,
}

impl Odds {
    fn draw(random: &mut Random) -> Odds {
        Odds {
            one_write_in: [5, 20, 100, 400][random.index(4)],
            one_loss_in: [50, 1_000, 10_000][random.index(3)],
            client_delay: [1, 10, 40][random.index(3)],
            show_delay: [1, 5][random.index(2)],
            read_delay: [1, 8][random.index(2)],
            pace: [0, 1, 3, 4][random.index(4)],
            one_pause_in: [0, 12, 60][random.index(3)],
            one_lost_log_in: [0, 0, 60, 300][random.index(4)],
            one_damage_in: 0,
            statements_max: [0, 0, 1, 2][random.index(4)],
            socket_bytes: [40, 300, 65_536, 65_536][random.index(4)],
            slow_read: [Duration::ZERO, Duration::MAX, Duration::MAX][random.index(3)],
            format: Format {
                is_minimal: random.below(3) == 0,
                one_text_in: [0, 0, 0, 8][random.index(4)],
                one_long_in: [0, 0, 4][random.index(3)],
            },
        }
    }
}

/// What a simulation is of.
#[derive(Debug, Clone, Copy)]
struct Setup<'a> {
    /// `cache.transaction_reads`.
    transaction_reads: &'a str,
    broken: BrokenRules,
    /// What is sent may be damaged, by either side. After that nothing is expected of answers, but
    /// each session must come to its end.
    damages: bool,
    /// Whether each step is printed.
    is_told: bool,
}

/// A simulation under way.
struct World {
    may_be_refused: bool,
    /// Something was damaged.
    is_damaged: bool,
    sessions: RefCell<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
    workers: Vec<Rc<WorkerContext>>,
    random: Random,
    mix: Mix,
    odds: Odds,
    server: Rc<RefCell<Server>>,
    log: Log,
    follower: SimulatedFollower,
    clients: Vec<Client>,
    acknowledged: Acknowledged,
    /// When each commit could first be seen.
    shown_at: Vec<Instant>,
    /// How much time has passed.
    passed: Duration,
    next_value: u64,
    is_told: bool,
    seen: Seen,
}

/// What may happen next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Send(usize),
    Run(usize),
    Deliver(usize),
    /// A client leaves, whatever is on its way, and another comes.
    Leave(usize),
    Kill(usize),
    WriteElsewhere,
    ShowCommit,
    /// The follower reads one event.
    ReadLog,
    /// Its connection is lost.
    LoseLog,
    /// It is connected again: to the same log, or to another.
    FindLog {
        is_same: bool,
    },
    PassTime(Duration),
    DamageAnswer(usize),
    SendDamaged(usize),
    Ask(remora_upstream::simulated::Asked),
    Answer,
}

impl World {
    /// Logs the clients in.
    async fn new(mut random: Random, odds: Odds, shared: Arc<Shared>, metrics: &Metrics) -> World {
        let server = Server::new();
        let follower =
            SimulatedFollower::start(Arc::clone(&shared.upstream), instance(), MARK_HOLDER);
        follower.load();
        let workers = (0..WORKERS).map(|number| {
            let of_worker = metrics.worker(number).expect("there is a worker");
            let digests = shared.digests.worker(number).expect("there is a worker");
            let mut context = WorkerContext::new(&shared, of_worker, digests);
            context.first_reads = FirstReads::with_slow(odds.slow_read);
            Rc::new(context)
        });
        let workers = workers.collect();
        let mix = Mix::draw(&mut random);
        let may_be_refused = shared.limits.transaction_reads == TransactionReads::Early;
        let mut world = World {
            may_be_refused,
            is_damaged: false,
            sessions: RefCell::default(),
            shared,
            workers,
            odds,
            random,
            mix,
            server,
            log: Log::new(odds.format, instance().server_id),
            follower,
            clients: Vec::new(),
            acknowledged: Acknowledged::new(),
            shown_at: Vec::new(),
            passed: Duration::ZERO,
            next_value: 100,
            is_told: false,
            seen: Seen::default(),
        };
        for _ in 0..CLIENTS {
            let client = world.connect().await;
            world.clients.push(client);
        }
        world
    }

    /// Logs a client in.
    async fn connect(&self) -> Client {
        let (near, of_client) = Stream::pair(self.odds.socket_bytes);
        let (of_server, far) = Stream::pair(self.odds.socket_bytes);
        let conversation = server::converse(Rc::clone(&self.server), Rc::new(far));
        tokio::task::spawn_local(conversation);
        let number = self.server.borrow().connections.len() % WORKERS;
        let (shared, worker) = (Arc::clone(&self.shared), Rc::clone(&self.workers[number]));
        let of_server = Some(Box::new(of_server));
        let session = session::serve(
            shared,
            worker,
            Rc::new(ClientConnection::new(of_client)),
            of_server,
        );
        let session = tokio::task::spawn_local(session);
        self.sessions.borrow_mut().push(session);
        let near = Rc::new(near);
        log_in(&near).await;
        let server = self.server.borrow();
        let newest = server.connections.last().expect("a session was made");
        Client::new(near, newest.session, self.may_be_refused)
    }

    async fn run(&mut self) -> Result<(), String> {
        let is_chosen = !self.random.is_used_up();
        for number in 0..STEPS {
            if is_chosen && self.random.is_used_up() {
                break;
            }
            let possible = self.possible();
            if possible.is_empty() {
                continue;
            }
            let step = possible[self.random.index(possible.len())];
            if self.is_told {
                eprintln!("{number}: {step:?}");
            }
            self.take(step).await?;
            if self.random.below(4) < self.odds.pace {
                self.catch_up();
            }
            for _ in 0..TURNS {
                yield_now().await;
                self.listen().await?;
            }
            self.server.borrow_mut().notice_closed();
            self.follower.load();
            self.note_shown();
            if let Some(what) = self.server.borrow_mut().unexpected.take()
                && !self.is_damaged
            {
                return Err(format!("the server didn't expect: {what}"));
            }
        }
        let of_workers = self.workers.iter();
        self.seen.hits = of_workers.map(|it| it.metrics.outcome(Outcome::Hit)).sum();
        self.seen.commits = self.server.borrow().engine.logged() as u64;
        self.end().await
    }

    /// Everybody leaves: each session comes to its end, and none has failed.
    async fn end(&mut self) -> Result<(), String> {
        self.clients.clear();
        self.server.borrow_mut().stop();
        for (number, session) in self.sessions.take().into_iter().enumerate() {
            // Time passes when nobody has anything to do.
            let ended = timeout(END_WAIT, session).await;
            let ended = ended.map_err(|_| format!("session {number} goes on with nobody"))?;
            ended.map_err(|error| format!("a session: {error}"))?;
        }
        Ok(())
    }

    /// From now on nothing is certain.
    fn damaged(&mut self) {
        self.is_damaged = true;
        self.server.borrow_mut().is_lenient = true;
        self.odds.one_loss_in = self.odds.one_loss_in.min(ONE_LOSS_IN_IF_DAMAGED);
    }

    fn note_shown(&mut self) {
        let visible = self.server.borrow().engine.visible();
        // The first state was there before everything.
        self.shown_at.resize(visible + 1, Instant::now());
    }

    /// All that is logged becomes visible and is applied; what is wanted is asked and answered.
    fn catch_up(&mut self) {
        if self.follower.is_lost() {
            return;
        }
        let mut server = self.server.borrow_mut();
        let engine = &mut server.engine;
        while engine.visible() < engine.logged() {
            engine.show_next();
        }
        while let Some(event) = self.log.read(engine, &mut self.random) {
            self.follower.take(&event.kept, event.bytes);
        }
        for asked in self.follower.wanted() {
            self.follower.ask(asked);
        }
        while self.follower.is_asking() {
            self.follower.answer(engine.visible(), engine.logged());
        }
    }

    fn possible(&mut self) -> Vec<Step> {
        let server = self.server.borrow();
        let mut steps = Vec::new();
        for (at, client) in self.clients.iter().enumerate() {
            // The first one may be slow, so that much happens within its transactions.
            let delay = if at == 0 { self.odds.client_delay } else { 1 };
            if !client.is_waiting() && self.random.below(delay) == 0 {
                steps.push(Step::Send(at));
            }
        }
        steps.extend(server.runnable().into_iter().map(Step::Run));
        steps.extend(server.deliverable().into_iter().map(Step::Deliver));
        let engine = &server.engine;
        if !engine.is_committing(server.elsewhere) && self.random.below(self.odds.one_write_in) == 0
        {
            steps.push(Step::WriteElsewhere);
        }
        if self.random.below(self.odds.one_loss_in) == 0 {
            steps.extend((0..self.clients.len()).map(Step::Leave));
            steps.extend(server.open().into_iter().map(Step::Kill));
        }
        if engine.visible() < engine.logged() && self.random.below(self.odds.show_delay) == 0 {
            steps.push(Step::ShowCommit);
        }
        if self.follower.is_lost() {
            steps.extend([true, false].map(|is_same| Step::FindLog { is_same }));
        } else if self.log.has_more(engine) && self.random.below(self.odds.read_delay) == 0 {
            steps.push(Step::ReadLog);
        }
        let is_drawn = |random: &mut Random, one_in| one_in > 0 && random.below(one_in) == 0;
        if is_drawn(&mut self.random, self.odds.one_lost_log_in) {
            steps.push(Step::LoseLog);
        }
        if is_drawn(&mut self.random, self.odds.one_damage_in) {
            steps.extend(server.deliverable().into_iter().map(Step::DamageAnswer));
            steps.extend((0..self.clients.len()).map(Step::SendDamaged));
        }
        if self.passed < PASSED_MAX && is_drawn(&mut self.random, self.odds.one_pause_in) {
            steps.extend(PAUSES.map(Step::PassTime));
        }
        steps.extend(self.follower.wanted().into_iter().map(Step::Ask));
        if self.follower.is_asking() {
            steps.push(Step::Answer);
        }
        steps
    }

    async fn take(&mut self, step: Step) -> Result<(), String> {
        let server = Rc::clone(&self.server);
        match step {
            Step::Leave(at) => self.clients[at] = self.connect().await,
            Step::Send(at) => self.send(at, &mut server.borrow_mut())?,
            Step::Run(at) => server.borrow_mut().run(at, &mut self.random),
            Step::Deliver(at) => server.borrow_mut().deliver(at, &mut self.random),
            Step::WriteElsewhere => {
                self.next_value += 1;
                let write = Write::draw(&mut self.random, &self.mix, self.next_value);
                let mut server = server.borrow_mut();
                let elsewhere = server.elsewhere;
                server.engine.run(elsewhere, &Statement::Write(write));
            }
            Step::Kill(at) => server.borrow_mut().kill(at),
            Step::ShowCommit => server.borrow_mut().engine.show_next(),
            Step::ReadLog => {
                let event = self.log.read(&server.borrow().engine, &mut self.random);
                if let Some(event) = event {
                    self.follower.take(&event.kept, event.bytes);
                }
            }
            Step::LoseLog => self.follower.lose(),
            Step::FindLog { is_same: true } => self.follower.go_on(),
            Step::FindLog { is_same: false } => {
                let engine = &server.borrow().engine;
                self.log.restart(engine);
                // Its files may have lower numbers: positions in it say nothing of the other's.
                let file = 1 + self.random.below(4);
                self.follower.restart(file, engine.logged());
                self.seen.logs += 1;
            }
            Step::PassTime(time) => {
                self.passed += time;
                tokio::time::advance(time).await;
            }
            Step::DamageAnswer(at) => {
                server.borrow_mut().damage(at, &mut self.random);
                self.damaged();
            }
            Step::SendDamaged(at) => {
                let (random, mix) = (&mut self.random, &self.mix);
                let statement = Statement::draw(random, mix, false, self.next_value);
                self.clients[at].send_damaged(&statement, random);
                self.damaged();
            }
            Step::Ask(asked) => self.follower.ask(asked),
            Step::Answer => {
                let engine = &server.borrow().engine;
                self.follower.answer(engine.visible(), engine.logged());
            }
        }
        Ok(())
    }

    /// A client sends its next statement.
    fn send(&mut self, at: usize, server: &mut Server) -> Result<(), String> {
        self.next_value += 1;
        let random = &mut self.random;
        let is_inside = self.clients[at].is_in_transaction();
        let statement = Statement::draw(random, &self.mix, is_inside, self.next_value);
        if self.is_told {
            eprintln!("    {}", statement.text());
        }
        let known = (statement.text(), statement.clone());
        server.statements.extend([known]);
        let (client, engine) = (&mut self.clients[at], &server.engine);
        // What was changed elsewhere counts from when the follower has read it, and in any case
        // when it could be seen for as long as a proof allows hits.
        let read = self.follower.applied().min(engine.visible());
        let is_old = |at: &Instant| at.elapsed() > Duration::from_millis(LAG_MS_MAX);
        let old = self.shown_at.partition_point(is_old).saturating_sub(1);
        let mut acknowledged = self.acknowledged.clone();
        acknowledged.extend(1..=read.max(old));
        let sent = if client.has_sent_ahead() {
            match random.below(3) {
                0 => client.send(Statement::Warnings, acknowledged, engine),
                _ => client.send_rest(random, acknowledged, engine),
            }
        } else if !self.mix.prepares(&statement, random) {
            client.send(statement, acknowledged, engine)
        } else if random.below(6) == 0 && client.send_ahead(&statement).unwrap_or(false) {
            Ok(())
        } else {
            client.send_prepared(statement, random, acknowledged, engine)
        };
        match sent {
            // It is noticed next.
            Err(_) if client.may_be_closed || self.is_damaged => Ok(()),
            sent => sent.map_err(|error| error.to_string()),
        }
    }

    /// Hands the clients what has come for them. Whoever was closed connects again.
    async fn listen(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            let told = self.clients[number].receive(&self.server.borrow().engine);
            let told = match told {
                Ok(Some(told)) => told,
                Ok(None) => continue,
                Err(_) if self.is_damaged => {
                    self.clients[number] = self.connect().await;
                    continue;
                }
                Err(why) => return Err(format!("client {number}: {why}")),
            };
            if self.is_told {
                eprintln!("    client {number}: {told:?}");
            }
            if told.is_closed {
                let session = self.clients[number].session;
                let may_be = self.clients[number].may_be_closed;
                let is_due = may_be || self.is_damaged;
                if !is_due && !self.server.borrow().was_killed(session) {
                    return Err(format!("client {number}: its session was closed"));
                }
                self.clients[number] = self.connect().await;
            }
            self.note(&told);
        }
        Ok(())
    }

    fn note(&mut self, told: &Told) {
        if let Some(commit) = told.acknowledged {
            self.acknowledged.insert(commit);
        }
        self.seen.conflicts += u64::from(told.is_conflict);
        self.seen.sets_deferred += told.sets_deferred;
        self.seen.closed += u64::from(told.is_closed);
        if let Some(is_inside) = told.read_inside {
            self.seen.reads += 1;
            self.seen.reads_inside += u64::from(is_inside);
            self.seen.hits_inside += u64::from(is_inside && told.is_hit);
            self.seen.hits_prepared += told.prepared_hits;
        }
    }
}

/// Sends the login when the greeting is there, and takes what that is answered with.
async fn log_in(stream: &Stream) {
    for (number, packet) in [(0, Client::login()), (2, Vec::new())] {
        let mut received = Vec::new();
        while !matches!(extent(&received, number), Ok(Extent::Complete { .. })) {
            stream.readable().await.expect("the session lives");
            let mut chunk = [0; 1024];
            match stream.try_read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => {
                    let count = read.expect("the session lives");
                    assert!(count > 0, "the session lives");
                    received.extend_from_slice(&chunk[..count]);
                }
            }
        }
        stream.write_all(&packet).await.expect("the session lives");
    }
}

/// The settings of a simulation: few slots. Waits for a turn and for another's fill may take an
/// hour, longer than a simulation lasts. Waits for a snapshot do run out.
fn settings(transaction_reads: &str, statements_max: usize) -> Settings {
    let statements_max = statements_max.to_string();
    let options = [
        ("upstream.statements_max", statements_max.as_str()),
        ("upstream.statement_wait_ms_max", "3600000"),
        ("workers.threads", &WORKERS.to_string()),
        ("cache.transaction_reads", transaction_reads),
        ("cache.storing", "always"),
        ("cache.shards", "1"),
        ("cache.tag_slots", "4096"),
        ("cache.fence_slots", "1024"),
        ("cache.snapshot_wait_ms_max", "10000"),
        ("cache.fill_wait_ms_max", "3600000"),
        ("follow.lag_ms_max", &LAG_MS_MAX.to_string()),
    ];
    let options = options.map(|(option, value)| Override {
        flag: option.to_owned(),
        option: option.to_owned(),
        value: value.to_owned(),
    });
    Settings::load(None, &options).expect("the options are right")
}

/// Runs one simulation: whether anything was wrong, and what happened.
fn simulate(mut random: Random, setup: Setup<'_>) -> Result<Seen, String> {
    let mut odds = Odds::draw(&mut random);
    if setup.damages {
        odds.one_damage_in = [20, 300][random.index(2)];
    }
    let settings = settings(setup.transaction_reads, odds.statements_max);
    in_simulated_time(async {
        let (shared, metrics) = shared(&settings, setup.broken);
        let world = World::new(random, odds, shared, &metrics);
        let mut world = Box::pin(world).await;
        world.is_told = setup.is_told;
        world.run().await.map(|()| world.seen)
    })
}

/// What all sessions of a Remora share, and what they count.
fn shared(settings: &Settings, broken: BrokenRules) -> (Arc<Shared>, Arc<Metrics>) {
    let metrics = Metrics::new(WORKERS);
    let link = server_link(&settings.listen, &settings.upstream).expect("no files");
    let shared = build_shared(settings, broken, &metrics, Arc::new(link), None);
    (shared, metrics)
}

/// Runs tasks of one thread. Time passes when none of them has anything to do.
fn in_simulated_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, future)
}

/// Runs the simulation that a fuzzer's bytes choose: the first one says what it is of, the others
/// what happens.
///
/// # Errors
///
/// What was wrong.
pub fn of_bytes(bytes: &[u8]) -> Result<(), String> {
    let Some((first, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let setup = Setup {
        transaction_reads: transaction_reads_of(u64::from(*first >> 1)),
        broken: BrokenRules::default(),
        damages: first & 1 == 1,
        is_told: std::env::var_os("REMORA_SIMULATION_TOLD").is_some(),
    };
    simulate(Random::chosen(bytes), setup).map(drop)
}

/// The value of `cache.transaction_reads` that a seed gives.
fn transaction_reads_of(seed: u64) -> &'static str {
    match seed % 7 {
        0 => "off",
        1..4 => "after_snapshot",
        _ => "early",
    }
}
