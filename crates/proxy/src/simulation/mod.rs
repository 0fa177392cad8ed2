//! Simulates clients, a server, its log and the watermark around the real sessions. Everything runs
//! in one thread, and a seed decides the order of events. The sessions use real sockets, store,
//! timeline, fences, analysis and tags.
//!
//! `cache/tests/simulation` tests the cache's rules alone, and is faster. This one also finds old
//! rows that come from a session's wrong idea of its transaction, a statement or an answer.
//!
//! `client.rs` decides what a client may read. Each read must match what its query gives after
//! *one* commit. It must include every write through Remora that was acknowledged before the read
//! was sent. In a transaction at `REPEATABLE READ` all plain reads must show the same commit: that
//! of the server's snapshot, once it has made one.
//!
//! | file | what it is |
//! |---|---|
//! | `statement` | what clients send |
//! | `prepared` | prepared statements, on both sides |
//! | `engine` | the server's rows and transactions |
//! | `log` | its log, byte for byte |
//! | `server` | the server's side of the protocol |
//! | `client` | a client, and what it expects |
//! | `random` | random numbers from a seed |
//!
//! `upstream/simulated.rs` feeds the real applier, and steps the watermark and the catalogue.
//!
//! `REMORA_SIMULATIONS` sets how many seeds `no_client_reads_what_its_session_must_not_show` tries.
//! `REMORA_SIMULATION_SEED` makes it rerun one seed and print each step.

mod client;
mod engine;
mod log;
mod prepared;
mod random;
mod server;
mod statement;

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use remora_cache::{BrokenRules, BrokenSnapshots, BrokenTags};
use tokio::net::UnixListener;
use tokio::task::{LocalSet, yield_now};

use self::client::{Acknowledged, Client, Told};
use self::log::{Format, Log};
use self::random::Random;
use self::server::{MARK_HOLDER, Server, instance};
use self::statement::{Mix, Statement, Write};
use crate::app::build_shared;
use crate::config::{Override, Settings, TransactionReads};
use crate::link::ServerLink;
use crate::metrics::Metrics;
use crate::net::Accepted;
use crate::reason::Outcome;
use crate::session::{self, FirstReads, WorkerContext};
use crate::shared::Shared;
use crate::upstream::simulated::SimulatedFollower;

/// Steps of one simulation.
const STEPS: usize = 800;
/// Clients of one simulation.
const CLIENTS: usize = 3;
/// Workers that share the clients. All run on one thread.
const WORKERS: usize = 2;
/// How many turns each task gets after a step: more than a message needs from client to server.
const TURNS: usize = 5;

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
    closed: u64,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.reads += other.reads;
        self.reads_inside += other.reads_inside;
        self.hits += other.hits;
        self.hits_inside += other.hits_inside;
        self.hits_prepared += other.hits_prepared;
        self.commits += other.commits;
        self.conflicts += other.conflicts;
        self.closed += other.closed;
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
    /// How many statements may be at the server; 0: any number.
    statements_max: usize,
    /// How commits are logged.
    format: Format,
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
            statements_max: [0, 0, 1, 2][random.index(4)],
            slow_read: [Duration::ZERO, Duration::MAX, Duration::MAX][random.index(3)],
            format: Format {
                is_minimal: random.below(3) == 0,
                one_text_in: [0, 0, 0, 8][random.index(4)],
                one_long_in: [0, 0, 4][random.index(3)],
            },
        }
    }
}

/// A simulation under way.
struct World {
    may_be_refused: bool,
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
    Ask(crate::upstream::simulated::Asked),
    Answer,
}

impl World {
    /// Logs the clients in.
    async fn new(
        mut random: Random,
        odds: Odds,
        shared: Arc<Shared>,
        listener: UnixListener,
        metrics: &Metrics,
    ) -> World {
        let server = Server::new();
        tokio::task::spawn_local(server::listen(Rc::clone(&server), listener));
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
        let (near, far) = UnixStream::pair().expect("sockets can be made");
        let stream = |socket: UnixStream| {
            socket.set_nonblocking(true).expect("a socket");
            Rc::new(Accepted::Unix(socket).into_stream().expect("a socket"))
        };
        let (near, far) = (stream(near), stream(far));
        let number = self.server.borrow().connections.len() % WORKERS;
        let (shared, worker) = (Arc::clone(&self.shared), Rc::clone(&self.workers[number]));
        tokio::task::spawn_local(session::serve(shared, worker, far));
        log_in(&near).await;
        let server = self.server.borrow();
        let newest = server.connections.last().expect("a session was made");
        Client::new(near, newest.session, self.may_be_refused)
    }

    async fn run(&mut self) -> Result<(), String> {
        for number in 0..STEPS {
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
            }
            self.server.borrow_mut().notice_closed();
            self.follower.load();
            self.listen().await?;
            if let Some(what) = self.server.borrow_mut().unexpected.take() {
                return Err(format!("the server didn't expect: {what}"));
            }
        }
        let of_workers = self.workers.iter();
        self.seen.hits = of_workers.map(|it| it.metrics.outcome(Outcome::Hit)).sum();
        self.seen.commits = self.server.borrow().engine.logged() as u64;
        Ok(())
    }

    /// All that is logged becomes visible and is applied; what is wanted is asked and answered.
    fn catch_up(&mut self) {
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
        if self.log.has_more(engine) && self.random.below(self.odds.read_delay) == 0 {
            steps.push(Step::ReadLog);
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
        // What was changed elsewhere counts from when the follower has read it.
        let known = self.follower.applied().min(engine.visible());
        let mut acknowledged = self.acknowledged.clone();
        acknowledged.extend(1..=known);
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
            Err(_) if client.may_be_closed => Ok(()),
            sent => sent.map_err(|error| error.to_string()),
        }
    }

    /// Hands the clients what has come for them. Whoever was closed connects again.
    async fn listen(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            let told = self.clients[number].receive(&self.server.borrow().engine);
            let Some(told) = told.map_err(|why| format!("client {number}: {why}"))? else {
                continue;
            };
            if self.is_told {
                eprintln!("    client {number}: {told:?}");
            }
            if told.is_closed {
                let session = self.clients[number].session;
                let may_be = self.clients[number].may_be_closed;
                if !may_be && !self.server.borrow().was_killed(session) {
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
        self.seen.closed += u64::from(told.is_closed);
        if let Some(is_inside) = told.read_inside {
            self.seen.reads += 1;
            self.seen.reads_inside += u64::from(is_inside);
            self.seen.hits_inside += u64::from(is_inside && told.is_hit);
            self.seen.hits_prepared += told.prepared_hits;
        }
    }
}

async fn log_in(stream: &crate::net::Stream) {
    let mut chunk = [0; 1024];
    for packet in [Client::login(), Vec::new()] {
        loop {
            stream.readable().await.expect("the session lives");
            match stream.try_read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => {
                    assert!(read.expect("the session lives") > 0);
                    break;
                }
            }
        }
        stream.write_all(&packet).await.expect("the session lives");
    }
}

/// The settings of a simulation: few slots, and time limits too long to be reached.
fn settings(socket: &Path, transaction_reads: &str, statements_max: usize) -> Settings {
    let socket = format!("unix:{}", socket.display());
    let statements_max = statements_max.to_string();
    let options = [
        ("upstream.address", socket.as_str()),
        ("upstream.statements_max", &statements_max),
        ("upstream.statement_wait_ms_max", "3600000"),
        ("workers.threads", &WORKERS.to_string()),
        ("cache.transaction_reads", transaction_reads),
        ("cache.storing", "always"),
        ("cache.shards", "1"),
        ("cache.tag_slots", "4096"),
        ("cache.fence_slots", "1024"),
        ("cache.snapshot_wait_ms_max", "10000"),
        ("cache.fill_wait_ms_max", "3600000"),
        ("follow.lag_ms_max", "60000"),
    ];
    let options = options.map(|(option, value)| Override {
        flag: option.to_owned(),
        option: option.to_owned(),
        value: value.to_owned(),
    });
    Settings::load(None, &options).expect("the options are right")
}

/// Runs one simulation: whether anything was wrong, and what happened.
fn simulate(
    seed: u64,
    transaction_reads: &str,
    broken: BrokenRules,
    is_told: bool,
) -> Result<Seen, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("server");
    let mut random = Random::new(seed);
    let odds = Odds::draw(&mut random);
    let settings = settings(&socket, transaction_reads, odds.statements_max);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Sockets are looked at between any two turns of a task.
        .event_interval(1)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let listener = UnixListener::bind(&socket).expect("a socket");
        let metrics = Metrics::new(WORKERS);
        let link = ServerLink::new(&settings.listen, &settings.upstream).expect("no files");
        let shared = build_shared(&settings, broken, &metrics, Arc::new(link), None);
        let world = World::new(random, odds, shared, listener, &metrics);
        let mut world = Box::pin(world).await;
        world.is_told = is_told;
        world.run().await.map(|()| world.seen)
    })
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The value of `cache.transaction_reads` that a seed gives.
fn transaction_reads_of(seed: u64) -> &'static str {
    match seed % 7 {
        0 => "off",
        1..4 => "after_snapshot",
        _ => "early",
    }
}

#[test]
fn no_client_reads_what_its_session_must_not_show() {
    let right = BrokenRules::default();
    if let Some(seed) = number_from("REMORA_SIMULATION_SEED") {
        let seen = simulate(seed, transaction_reads_of(seed), right, true);
        eprintln!("{:?}", seen.expect("nothing is wrong"));
        return;
    }
    let seeds = number_from("REMORA_SIMULATIONS").unwrap_or(200);
    let mut all = Seen::default();
    for seed in 0..seeds {
        match simulate(seed, transaction_reads_of(seed), right, false) {
            Err(what) => panic!("REMORA_SIMULATION_SEED={seed}: {what}"),
            Ok(seen) => all.add(&seen),
        }
    }
    eprintln!("{seeds} seeds: {all:?}");
    // A simulation in which nothing happens proves nothing.
    assert!(all.hits > seeds * 10, "{all:?}");
    assert!(all.hits_inside > seeds, "{all:?}");
    assert!(all.hits_prepared > seeds, "{all:?}");
    assert!(all.commits > seeds * 5, "{all:?}");
    assert!(all.closed > seeds / 10, "{all:?}");
}

#[test]
fn broken_rules_of_freshness_are_found() {
    let right = BrokenRules::default();
    let fences = BrokenRules {
        fences: true,
        ..right
    };
    let watermark = BrokenRules {
        watermark: true,
        ..right
    };
    for broken in [fences, watermark] {
        assert_found(broken, "off", 10_000);
    }
}

#[test]
fn broken_rules_of_snapshots_are_found() {
    for (broken, transaction_reads) in [
        (BrokenSnapshots::Low, "after_snapshot"),
        (BrokenSnapshots::High, "after_snapshot"),
        (BrokenSnapshots::OwnWrites, "after_snapshot"),
        (BrokenSnapshots::EarlySnapshot, "early"),
    ] {
        assert_found(snapshots(broken), transaction_reads, 10_000);
    }
}

#[test]
fn broken_rules_of_tags_are_found() {
    for tags in [
        BrokenTags::BeforeImage,
        BrokenTags::ConditionColumns,
        BrokenTags::IntervalBounds,
    ] {
        let broken = BrokenRules {
            tags,
            ..BrokenRules::default()
        };
        assert_found(broken, "off", 10_000);
    }
}

/// What `make check` leaves out.
mod long {
    use super::{BrokenSnapshots, assert_found, snapshots};

    #[test]
    fn broken_rules_of_first_reads_are_found() {
        for (broken, transaction_reads) in [
            (BrokenSnapshots::FirstReads, "after_snapshot"),
            (BrokenSnapshots::BoundTooSoon, "early"),
        ] {
            assert_found(snapshots(broken), transaction_reads, 10_000);
        }
    }
}

/// These take several events in a certain order, or early in a simulation.
#[test]
#[ignore = "takes minutes"]
fn rules_that_are_seldom_needed_are_found_when_broken() {
    for (broken, transaction_reads) in [
        (BrokenSnapshots::Shapes, "after_snapshot"),
        (BrokenSnapshots::EarlyHits, "early"),
    ] {
        assert_found(snapshots(broken), transaction_reads, 40_000);
    }
}

fn snapshots(snapshots: BrokenSnapshots) -> BrokenRules {
    BrokenRules {
        snapshots,
        ..BrokenRules::default()
    }
}

/// Some seed shows that the rules are broken, and shows nothing if they are not.
fn assert_found(broken: BrokenRules, transaction_reads: &str, seeds_max: u64) {
    let run = |seed, broken| simulate(seed, transaction_reads, broken, false).err();
    let found = (0..seeds_max).find(|seed| run(*seed, broken).is_some());
    let seed = found.unwrap_or_else(|| panic!("{broken:?} isn't found"));
    eprintln!("{broken:?}: seed {seed}");
    assert_eq!(
        run(seed, BrokenRules::default()),
        None,
        "seed {seed}, {transaction_reads}"
    );
}
