//! Lists that transactions read and append to at random; [`remora_testkit::histories`] judges what
//! they have seen.
//!
//! The same load also runs past Remora. Nothing may be found there: that shows that the checker
//! asks no more than InnoDB promises.

mod clients;
mod tables;

use remora_behaviour::front::catch_up;
use remora_cache::BrokenSnapshots;
use remora_testkit::client::Client;
use remora_testkit::histories::{self, Span, Step, Transaction};
use remora_testkit::load::Random;
use remora_testkit::mixed::asking::Asking;

use self::clients::Run;
use self::tables::Question;
use super::course::Course;
use super::{
    BROKEN_TIME, ROUNDS_MAX, Reads, Surroundings, TIME_EACH, TRANSACTIONS, World, long_mode,
};
use crate::is_without_late_rows;

/// So many transactions are judged together. The next ones get new lists.
const JUDGED_TOGETHER: u64 = 1_000;

/// What came of one or more loads.
#[derive(Debug, Default)]
struct Report {
    transactions: usize,
    steps: usize,
    appends: usize,
    rolled_back: usize,
    later_reads: u64,
    hits: u64,
    seconds: f32,
    findings: Vec<String>,
}

impl Report {
    #[allow(clippy::cast_precision_loss)]
    fn hits_percent(&self) -> f32 {
        100.0 * self.hits as f32 / self.later_reads.max(1) as f32
    }

    fn add(&mut self, other: Report) {
        self.transactions += other.transactions;
        self.steps += other.steps;
        self.appends += other.appends;
        self.rolled_back += other.rolled_back;
        self.later_reads += other.later_reads;
        self.hits += other.hits;
        self.seconds += other.seconds;
        self.findings.extend(other.findings);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} transactions with {} reads of lists and {} appends, {} rolled back; {:.0} % of {} statements behind \
             the first read of a transaction came from memory; {:.1} s",
            self.transactions,
            self.steps - self.appends,
            self.appends,
            self.rolled_back,
            self.hits_percent(),
            self.later_reads,
            self.seconds
        )
    }
}

/// Whether the clients that could go through Remora do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Through,
    Direct,
}

/// Makes lists, has transactions work on them, and judges those.
fn run(world: &World, way: Way, course: &Course, seed: u64) -> anyhow::Result<Report> {
    let mut direct = world.direct().connect()?;
    tables::create(&mut direct)?;
    // Until Remora has seen the new tables, a transaction that memory begins may read the old ones.
    // The history doesn't have their rows.
    catch_up(&world.remora);
    let hits = world.hits();
    let run = Run::new(world, way, course);
    course.run(run.roles(&mut Random::new(seed)))?;
    let hits = world.hits() - hits;
    let mut history = run.into_history();
    history.push(read_all(&mut direct, course)?);
    let steps = || history.iter().flat_map(|transaction| &transaction.steps);
    let is_append = |step: &&Step| matches!(step, Step::Append(..));
    let is_rolled_back = |transaction: &&Transaction| transaction.commit.is_none();
    let anomalies = histories::check(&history);
    Ok(Report {
        transactions: history.len(),
        steps: steps().count(),
        appends: steps().filter(is_append).count(),
        rolled_back: history.iter().filter(is_rolled_back).count(),
        later_reads: course.later_reads(),
        hits,
        seconds: course.took().as_secs_f32(),
        findings: anomalies.iter().map(ToString::to_string).collect(),
    })
}

/// The last transaction sees all that was committed.
fn read_all(client: &mut Client, course: &Course) -> anyhow::Result<Transaction> {
    let sent_ns = course.now_ns();
    client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let snapshot = Some(Span {
        sent_ns,
        answered_ns: course.now_ns(),
    });
    let mut steps = Vec::new();
    for question in Question::of_all_lists() {
        steps.extend(question.ask(client, &mut Asking::Text)?);
    }
    client.query("COMMIT")?;
    Ok(Transaction {
        client: "the last one, direct".to_owned(),
        steps,
        snapshot,
        commit: None,
    })
}

fn nothing_is_found(surroundings: Surroundings, reads: Reads, way: Way, hits_percent: f32) {
    let wanted = long_mode().unwrap_or(TRANSACTIONS);
    let world = World::new(surroundings, reads, BrokenSnapshots::Right);
    let mut report = Report::default();
    let rounds = wanted.div_ceil(JUDGED_TOGETHER);
    for round in 0..rounds + ROUNDS_MAX as u64 {
        let count = wanted.min(JUDGED_TOGETHER);
        let time = TIME_EACH * u32::try_from(count).unwrap_or(u32::MAX);
        let course = Course::new(count, time);
        report.add(run(&world, way, &course, world.seed ^ round).unwrap());
        println!("{surroundings:?}, {reads:?}, {way:?}: {report}");
        assert_eq!(report.findings, Vec::<String>::new());
        let is_proof = report.hits_percent() >= hits_percent && report.appends > 50;
        if round + 1 >= rounds && is_proof {
            return;
        }
    }
    panic!("too little came from memory, or was written, to prove anything: {report}");
}

#[test]
fn histories_fit_one_order_of_snapshots_and_commits() {
    nothing_is_found(
        Surroundings::Plain,
        Reads::AfterSnapshot,
        Way::Through,
        15.0,
    );
}

#[test]
fn histories_fit_one_order_when_the_log_comes_late() {
    nothing_is_found(
        Surroundings::LateLog,
        Reads::AfterSnapshot,
        Way::Through,
        8.0,
    );
}

#[test]
fn histories_fit_one_order_when_rows_come_late() {
    if !is_without_late_rows() {
        nothing_is_found(
            Surroundings::LateRows,
            Reads::AfterSnapshot,
            Way::Through,
            8.0,
        );
    }
}

#[test]
fn histories_fit_one_order_when_shapes_are_new() {
    nothing_is_found(
        Surroundings::NewShapes,
        Reads::AfterSnapshot,
        Way::Through,
        4.0,
    );
}

/// Such a transaction shows a moment between its first read and the first statement that the server
/// answers.
#[test]
fn histories_of_transactions_that_memory_begins_fit_one_order() {
    nothing_is_found(Surroundings::Plain, Reads::Early, Way::Through, 10.0);
}

#[test]
fn histories_of_such_transactions_fit_one_order_when_the_log_comes_late() {
    nothing_is_found(Surroundings::LateLog, Reads::Early, Way::Through, 6.0);
}

#[test]
fn histories_past_remora_fit_one_order() {
    nothing_is_found(Surroundings::Plain, Reads::AfterSnapshot, Way::Direct, 0.0);
}

/// Loads of which each is short, for what is wrong is only found when it is over.
fn broken(surroundings: Surroundings, rule: BrokenSnapshots) {
    let world = World::new(surroundings, Reads::AfterSnapshot, rule);
    let started = std::time::Instant::now();
    let mut round = 0;
    while started.elapsed() < BROKEN_TIME {
        let course = Course::new(TRANSACTIONS, BROKEN_TIME);
        let report = run(&world, Way::Through, &course, world.seed ^ round).unwrap();
        println!("{rule:?}: {report}");
        if let Some(finding) = report.findings.last() {
            println!("{finding}");
            return;
        }
        round += 1;
    }
    panic!("nothing was found");
}

#[test]
fn a_skew_is_found_if_a_newer_result_is_served() {
    broken(Surroundings::Plain, BrokenSnapshots::Low);
}

#[test]
fn a_skew_is_found_if_what_the_snapshot_may_show_needs_no_proof() {
    broken(Surroundings::LateLog, BrokenSnapshots::High);
}

#[test]
fn a_skew_is_found_if_shapes_may_be_younger_than_the_snapshot() {
    broken(Surroundings::NewShapes, BrokenSnapshots::Shapes);
}
