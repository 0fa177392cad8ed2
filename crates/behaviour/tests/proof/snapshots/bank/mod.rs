//! A bank: money is moved between accounts, so all of them together always hold the same.
//!
//! Writers move money through Remora and past it. Readers through Remora read all accounts in one
//! transaction, by many statements of many forms, and add up. If two of those statements show
//! different moments the sum differs, sooner or later.
//!
//! Some readers move money themselves, in the transaction in which they read. Such a transaction
//! sees its own change at once. What it has changed it sees on top of what others have changed
//! meanwhile, for InnoDB changes the newest row: the sum then differs by just that, which is known
//! from the reads before and from the locked rows.

mod accounts;
mod transfers;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use remora_behaviour::world::cut_follower;
use remora_cache::BrokenSnapshots;
use remora_testkit::client::{ClientError, ConnectOptions};
use remora_testkit::load::Random;
use remora_testkit::mixed::asking::Asking;
use remora_testkit::servers::Kind;

use self::accounts::{Account, Bank, Question};
use super::course::{Course, Role};
use super::{
    BROKEN_TIME, Opening, ROUNDS_MAX, Reads, Session, Surroundings, TIME_EACH, TRANSACTIONS, World,
    asking, chunk, long_mode,
};
use crate::is_without_late_rows;

const ACCOUNTS: usize = 200;
const ACCOUNTS_LONG: usize = 1_000;
/// Accounts that are read together.
const CHUNK: usize = 8;
const READERS: usize = 8;
/// Whether they go past Remora.
const WRITERS: [bool; 3] = [false, false, true];
/// A writer lets so many reads pass between two transfers, in tenths of what a sum takes if each
/// account is read alone.
const READS_TENTHS: u64 = 15;
/// Multiplies that where one statement reads many accounts: a transfer then changes more of the
/// results.
const READS_FACTOR_CHUNKED: u64 = 4;
/// The same before tables are altered again, or the log is lost.
const READS_BETWEEN_DISTURBANCES: u64 = 10;
/// Before one read in so many a savepoint is set, and the transaction rolled back to it.
const SAVEPOINT: usize = 60;
/// Before one read in so many, the same question is asked in one text with other statements.
const SEVERAL_AT_ONCE: usize = 30;
/// One transaction of a reader in so many moves money itself.
const OWN_TRANSFER: usize = 8;

/// What all clients share.
struct Run<'a> {
    bank: Bank,
    world: &'a World,
    course: &'a Course,
    own_transfers: AtomicU64,
    transfers: [AtomicU64; 2],
    rolled_back: AtomicU64,
}

/// Sums, and what came of the statements.
#[derive(Debug, Default)]
struct Report {
    sums: u64,
    later_reads: u64,
    hits: u64,
    own_transfers: u64,
    transfers_through: u64,
    transfers_direct: u64,
    rolled_back: u64,
    seconds: f32,
    findings: Vec<String>,
}

impl Report {
    #[allow(clippy::cast_precision_loss)]
    fn hits_percent(&self) -> f32 {
        100.0 * self.hits as f32 / self.later_reads.max(1) as f32
    }

    fn add(&mut self, other: Report) {
        self.sums += other.sums;
        self.later_reads += other.later_reads;
        self.hits += other.hits;
        self.own_transfers += other.own_transfers;
        self.transfers_through += other.transfers_through;
        self.transfers_direct += other.transfers_direct;
        self.rolled_back += other.rolled_back;
        self.seconds += other.seconds;
        self.findings.extend(other.findings);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} sums, {} of them with a transfer of their own; {:.0} % of {} statements behind the first of a \
             transaction came from memory; {} transfers through Remora, {} direct, {} rolled back by the server; {:.1} s",
            self.sums,
            self.own_transfers,
            self.hits_percent(),
            self.later_reads,
            self.transfers_through,
            self.transfers_direct,
            self.rolled_back,
            self.seconds
        )
    }
}

/// Runs the bank once; the tables are there.
fn run(world: &World, bank: Bank, course: &Course, seed: u64) -> anyhow::Result<Report> {
    let run = Run {
        bank,
        world,
        course,
        own_transfers: AtomicU64::new(0),
        transfers: [AtomicU64::new(0), AtomicU64::new(0)],
        rolled_back: AtomicU64::new(0),
    };
    let hits = world.hits();
    let mut seeds = Random::new(seed);
    let mut roles: Vec<Role<'_>> = Vec::new();
    for reader in 0..READERS {
        let (run, random) = (&run, Random::new(seeds.next()));
        let opening = Opening::ALL[reader % Opening::ALL.len()];
        let asking = asking(reader, READERS);
        roles.push(Box::new(move || run.read_on(opening, asking, random)));
    }
    for is_direct in WRITERS {
        let (run, random) = (&run, Random::new(seeds.next()));
        roles.push(Box::new(move || run.write_on(is_direct, random)));
    }
    match world.surroundings {
        Surroundings::Definitions => roles.push(Box::new(|| run.alter_on())),
        Surroundings::Lost => {
            let random = Random::new(seeds.next());
            let run = &run;
            roles.push(Box::new(move || run.disturb_on(random)));
        }
        _ => {}
    }
    course.run(roles)?;
    let [through, direct] = run.transfers.map(AtomicU64::into_inner);
    Ok(Report {
        sums: course.transactions(),
        later_reads: course.later_reads(),
        hits: world.hits() - hits,
        own_transfers: run.own_transfers.into_inner(),
        transfers_through: through,
        transfers_direct: direct,
        rolled_back: run.rolled_back.into_inner(),
        seconds: course.took().as_secs_f32(),
        findings: course.findings(),
    })
}

/// A transaction that is under way.
struct Transaction<'r> {
    run: &'r Run<'r>,
    session: &'r mut Session,
    reads: usize,
    /// Its statements and what they gave, for findings.
    words: String,
}

impl Transaction<'_> {
    fn ask(&mut self, question: &Question) -> Result<i64, ClientError> {
        let amount = question.ask(&mut self.session.client, &mut self.session.asking)?;
        let is_first = self.reads == 0 && self.run.world.reads == Reads::AfterSnapshot;
        self.run.course.count_read(is_first);
        self.reads += 1;
        let _ = writeln!(self.words, "{amount} by {question}");
        Ok(amount)
    }

    fn sum(&mut self, has_written: bool, random: &mut Random) -> Result<i64, ClientError> {
        let _ = writeln!(self.words, "all:");
        let mut sum = 0;
        for question in self.run.bank.all(!has_written, random) {
            if random.below(SAVEPOINT) == 0 {
                self.session.client.query("SAVEPOINT here")?;
                self.session.client.query("ROLLBACK TO here")?;
            }
            if random.below(SEVERAL_AT_ONCE) == 0 {
                let text = question.among_others();
                let _ = writeln!(self.words, "{text}");
                self.session.client.query(&text)?;
            }
            sum += self.ask(&question)?;
        }
        Ok(sum)
    }

    fn expect(&mut self, what: &str, seen: i64, expected: i64) {
        if seen != expected {
            let words = format!("{what}: {seen}, not {expected}\n{}", self.words);
            self.run.course.found(words);
        }
    }

    fn lock(&mut self, account: Account) -> Result<i64, ClientError> {
        let balance = transfers::lock(&mut self.session.client, account)?.unwrap_or(0);
        let _ = writeln!(self.words, "{balance} in {account:?}, locked");
        Ok(balance)
    }

    /// Moves money between its reads, and sees that.
    fn transfer(&mut self, random: &mut Random) -> Result<(), ClientError> {
        let [from, to] = transfers::two_that_stay(self.run.bank, random);
        let amount = transfers::amount(random);
        let total = self.run.bank.total();
        let locks_first = random.below(2) == 0;
        let mut newest = [0, 0];
        if locks_first {
            newest = [self.lock(from)?, self.lock(to)?];
        }
        let before = [self.ask(&from.question())?, self.ask(&to.question())?];
        let sum = self.sum(false, random)?;
        self.expect("before the transfer", sum, total);
        if !locks_first {
            newest = [self.lock(from)?, self.lock(to)?];
        }
        transfers::add(&mut self.session.client, from, -amount)?;
        transfers::add(&mut self.session.client, to, amount)?;
        let _ = writeln!(self.words, "moved {amount} from {from:?} to {to:?}");
        let after = [self.ask(&from.question())?, self.ask(&to.question())?];
        self.expect("own payment", after[0], newest[0] - amount);
        self.expect("own receipt", after[1], newest[1] + amount);
        let by_others = newest.iter().sum::<i64>() - before.iter().sum::<i64>();
        let sum = self.sum(true, random)?;
        self.expect("after the transfer", sum, total + by_others);
        self.run.own_transfers.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Run<'_> {
    fn read_on(&self, opening: Opening, asking: Asking, mut random: Random) -> anyhow::Result<()> {
        let mut session = Session::connect(&self.world.through(), opening, asking)?;
        while !self.course.is_over() {
            match self.read_all(&mut session, &mut random) {
                Ok(()) => self.course.count_transaction(),
                Err(error) => {
                    session.give_up(error)?;
                    self.rolled_back.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        Ok(())
    }

    fn read_all(&self, session: &mut Session, random: &mut Random) -> Result<(), ClientError> {
        session.open()?;
        let opening = session.opening;
        let mut transaction = Transaction {
            run: self,
            session,
            reads: 0,
            words: format!("{opening:?}\n"),
        };
        if opening != Opening::ReadOnly && random.below(OWN_TRANSFER) == 0 {
            transaction.transfer(random)?;
        } else {
            let sum = transaction.sum(false, random)?;
            transaction.expect("all accounts", sum, self.bank.total());
        }
        match random.below(3) {
            0 => session.commit(),
            1 => session.roll_back(),
            // The next `BEGIN` ends it.
            _ if opening == Opening::Begin => Ok(()),
            _ => session.commit(),
        }
    }

    fn write_on(&self, is_direct: bool, mut random: Random) -> anyhow::Result<()> {
        let options = if is_direct {
            self.world.direct()
        } else {
            self.world.through()
        };
        let times = chunk().map_or(1, |_| READS_FACTOR_CHUNKED);
        let reads = self.bank.statements() * times * READS_TENTHS / 10;
        let mut session = Session::connect(&options, Opening::Begin, Asking::Text)?;
        while !self.course.is_over() {
            let moved = transfers::transfer(&mut session.client, self.bank, &mut random);
            let counter = match moved {
                Ok(()) => &self.transfers[usize::from(is_direct)],
                Err(error) => {
                    session.give_up(error)?;
                    &self.rolled_back
                }
            };
            counter.fetch_add(1, Ordering::SeqCst);
            self.course
                .await_reads(random.below(2 * usize::try_from(reads)?) as u64);
        }
        Ok(())
    }

    /// Alters tables, through Remora and past it.
    fn alter_on(&self) -> anyhow::Result<()> {
        let mut ways = [
            self.world.through().connect()?,
            self.world.direct().connect()?,
        ];
        let kind = Kind::from_environment()?;
        let mut round = 0;
        // A round leaves the tables as they were.
        while !self.course.is_over() {
            for (nth, text) in accounts::alterations(kind).enumerate() {
                self.await_disturbance();
                let client = &mut ways[(nth + round) % 2];
                client.query(text).with_context(|| text.to_owned())?;
            }
            round += 1;
        }
        Ok(())
    }

    /// Ends Remora's connections, rotates the log, and moves money without it.
    fn disturb_on(&self, mut random: Random) -> anyhow::Result<()> {
        let mut direct = self.world.direct().connect()?;
        let mut unlogged = Session::connect(&self.world.through(), Opening::Begin, Asking::Text)?;
        unlogged.client.query("SET sql_log_bin = 0")?;
        loop {
            self.await_disturbance();
            if self.course.is_over() {
                return Ok(());
            }
            match random.below(3) {
                0 => cut_follower(&self.world.server),
                1 => direct.query("FLUSH BINARY LOGS").map(drop)?,
                _ => {
                    let client = &mut unlogged.client;
                    let moved = transfers::transfer(client, self.bank, &mut random);
                    moved.or_else(|error| unlogged.give_up(error))?;
                }
            }
        }
    }

    fn await_disturbance(&self) {
        let reads = self.bank.statements() * READS_BETWEEN_DISTURBANCES;
        self.course.await_reads(reads);
    }
}

fn bank() -> Bank {
    let accounts = match long_mode() {
        Some(_) => ACCOUNTS_LONG,
        None => ACCOUNTS,
    };
    Bank::new(accounts, chunk().unwrap_or(CHUNK))
}

fn world_with_accounts(surroundings: Surroundings, reads: Reads, broken: BrokenSnapshots) -> World {
    let world = World::new(surroundings, reads, broken);
    let options: ConnectOptions = world.direct();
    bank().create(&mut options.connect().unwrap()).unwrap();
    world
}

/// Of the statements behind a transaction's first, so many percent must come from memory.
fn every_sum_is_the_same(surroundings: Surroundings, reads: Reads, hits_percent: f32) {
    let wanted = long_mode().unwrap_or(TRANSACTIONS);
    let world = world_with_accounts(surroundings, reads, BrokenSnapshots::Right);
    let time = TIME_EACH * u32::try_from(wanted).unwrap_or(u32::MAX);
    let mut report = Report::default();
    for round in 0..ROUNDS_MAX as u64 {
        let course = Course::new(wanted, time);
        report.add(run(&world, bank(), &course, world.seed ^ round).unwrap());
        println!("{surroundings:?}, {reads:?}: {report}");
        let mut direct = world.direct().connect().unwrap();
        println!("{}", Bank::told_now(&mut direct).unwrap());
        assert_eq!(report.findings, Vec::<String>::new());
        let moves = report.transfers_direct.min(report.transfers_through);
        if report.hits_percent() > hits_percent && report.own_transfers > 0 && moves > 20 {
            return;
        }
    }
    panic!("too little came from memory, or was written, to prove anything: {report}");
}

#[test]
fn all_accounts_always_hold_the_same() {
    every_sum_is_the_same(Surroundings::Plain, Reads::AfterSnapshot, 20.0);
}

#[test]
fn all_accounts_always_hold_the_same_when_the_log_comes_late() {
    every_sum_is_the_same(Surroundings::LateLog, Reads::AfterSnapshot, 10.0);
}

#[test]
fn all_accounts_always_hold_the_same_when_rows_come_late() {
    if !is_without_late_rows() {
        every_sum_is_the_same(Surroundings::LateRows, Reads::AfterSnapshot, 15.0);
    }
}

/// MySQL 5.6 and 5.7 themselves lose rows from a snapshot when the table is altered: with
/// `cache.transaction_reads = "off"`, which leaves all these reads to the server, sums differ, too.
#[test]
fn all_accounts_always_hold_the_same_while_tables_are_altered() {
    let kind = Kind::from_environment().unwrap();
    let loses_rows = matches!(kind, Kind::MySql56 | Kind::MySql57);
    if !kind.skips(loses_rows, "a snapshot lacks rows of tables altered since") {
        every_sum_is_the_same(Surroundings::Definitions, Reads::AfterSnapshot, 8.0);
    }
}

#[test]
fn all_accounts_always_hold_the_same_while_the_log_is_lost() {
    every_sum_is_the_same(Surroundings::Lost, Reads::AfterSnapshot, 4.0);
}

fn broken(surroundings: Surroundings, reads: Reads, rule: BrokenSnapshots) {
    let world = world_with_accounts(surroundings, reads, rule);
    let course = Course::new(u64::MAX, BROKEN_TIME);
    let report = run(&world, bank(), &course, world.seed).unwrap();
    println!("{rule:?}: {report}");
    let first = report.findings.first();
    println!("{}", first.expect("a sum that differs"));
}

#[test]
fn a_sum_differs_if_a_newer_result_is_served() {
    broken(
        Surroundings::Plain,
        Reads::AfterSnapshot,
        BrokenSnapshots::Low,
    );
}

#[test]
fn a_sum_differs_if_what_the_snapshot_may_show_needs_no_proof() {
    broken(
        Surroundings::LateLog,
        Reads::AfterSnapshot,
        BrokenSnapshots::High,
    );
}

#[test]
fn a_sum_differs_if_a_transactions_own_writes_count_for_nothing() {
    broken(
        Surroundings::Plain,
        Reads::AfterSnapshot,
        BrokenSnapshots::OwnWrites,
    );
}

#[test]
fn all_accounts_always_hold_the_same_in_transactions_that_memory_begins() {
    every_sum_is_the_same(Surroundings::Plain, Reads::Early, 20.0);
}

#[test]
fn all_accounts_always_hold_the_same_in_such_transactions_when_the_log_comes_late() {
    every_sum_is_the_same(Surroundings::LateLog, Reads::Early, 10.0);
}

#[test]
fn all_accounts_always_hold_the_same_in_such_transactions_when_rows_come_late() {
    if !is_without_late_rows() {
        every_sum_is_the_same(Surroundings::LateRows, Reads::Early, 10.0);
    }
}

#[test]
fn all_accounts_always_hold_the_same_in_such_transactions_while_the_log_is_lost() {
    every_sum_is_the_same(Surroundings::Lost, Reads::Early, 4.0);
}

#[test]
fn a_sum_differs_if_the_server_need_not_show_what_memory_has_answered() {
    broken(
        Surroundings::Plain,
        Reads::Early,
        BrokenSnapshots::EarlySnapshot,
    );
}
