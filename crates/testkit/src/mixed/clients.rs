//! Readers and writers, and the judgement of what they read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use remora_wire::rows::Row;

use super::asking::Asking;
use super::questions::{self, Question, Shape, Total};
use super::tables::{COUNTERS, Kind};
use super::writes::{Form, Writer};
use super::{MixedLoad, MixedReport, Trail};
use crate::client::{Client, ClientError};
use crate::interrupt;
use crate::load::oracle::{Floor, Oracle, Route};
use crate::load::random::Random;

/// How many findings are kept in words.
const KEPT_MAX: usize = 20;
/// `ER_LOCK_DEADLOCK` and `ER_XA_RBDEADLOCK`: the transaction was rolled back.
const DEADLOCKS: [u16; 2] = [1213, 1614];
/// The longest lag that is told apart, microseconds.
const LAG_US_MAX: u64 = 60_000_000;
/// A writer lets at least so many reads pass between two writes, and a kind stays hot for at least
/// so many: on a machine that is busy, results are served as often between two changes as on one
/// that isn't.
const READS_BETWEEN_WRITES: u64 = 350;
const READS_WHILE_HOT: u64 = 1_500;
/// How often a writer looks whether it is time to write.
const LOOK: Duration = Duration::from_millis(1);
/// One write in so many goes to another kind than the hot one.
const ELSEWHERE: usize = 30;

struct Run<'a> {
    load: &'a MixedLoad,
    oracle: &'a Oracle,
    questions: Vec<Question>,
    trail: Trail,
    started: Instant,
    stop: AtomicBool,
    reads: AtomicU64,
    writes: [AtomicU64; 2],
    findings: Mutex<MixedReport>,
    hot: Mutex<Hot>,
}

/// The kind that is written most, and since when.
struct Hot {
    kind: usize,
    since: Instant,
    reads: u64,
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Reader,
    Writer(Route),
}

/// What is known of one counter before a read of it is sent.
struct Before {
    floor: Floor,
    direct: Option<(u64, Instant)>,
}

/// Runs the load. The tables must exist (see [`super::tables::create`]) and the oracle know as many
/// counters.
///
/// # Errors
/// A client met an error other than a deadlock, or the user asked to stop.
pub fn run(load: &MixedLoad, oracle: &Oracle) -> anyhow::Result<MixedReport> {
    let run = Run {
        load,
        oracle,
        questions: shuffled(load.seed),
        trail: Trail::new(COUNTERS),
        started: Instant::now(),
        stop: AtomicBool::new(false),
        reads: AtomicU64::new(0),
        writes: [AtomicU64::new(0), AtomicU64::new(0)],
        findings: Mutex::new(nothing_found()?),
        hot: Mutex::new(Hot {
            kind: 0,
            since: Instant::now(),
            reads: 0,
        }),
    };
    let roles = std::iter::repeat_n(Role::Reader, load.readers)
        .chain(std::iter::repeat_n(
            Role::Writer(Route::Through),
            load.writers_through,
        ))
        .chain(std::iter::repeat_n(
            Role::Writer(Route::Direct),
            load.writers_direct,
        ));
    let outcomes: Vec<anyhow::Result<()>> = std::thread::scope(|scope| {
        let mut seeds = Random::new(load.seed);
        let threads: Vec<_> = roles
            .map(|role| {
                let (run, random) = (&run, Random::new(seeds.next()));
                scope.spawn(move || run.client(role, random))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    for outcome in outcomes {
        outcome?;
    }
    interrupt::check()?;
    Ok(run.report())
}

/// All questions, in an order of the seed: it says which are asked often.
fn shuffled(seed: u64) -> Vec<Question> {
    let (mut all, mut random) = (questions::all(), Random::new(seed));
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

fn nothing_found() -> anyhow::Result<MixedReport> {
    Ok(MixedReport {
        reads: 0,
        writes_through: 0,
        writes_direct: 0,
        deadlocks: 0,
        stale_count: 0,
        stale: Vec::new(),
        impossible: Vec::new(),
        reads_after_direct: 0,
        lag_us: Histogram::new_with_max(LAG_US_MAX, 2).context("a histogram")?,
        took: Duration::ZERO,
    })
}

impl Run<'_> {
    fn report(self) -> MixedReport {
        let took = self.started.elapsed();
        let mut report = self
            .findings
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        report.reads = self.reads.into_inner();
        [report.writes_through, report.writes_direct] = self.writes.map(AtomicU64::into_inner);
        report.took = took;
        report
    }

    fn findings(&self) -> MutexGuard<'_, MixedReport> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || interrupt::is_set()
            || self.reads.load(Ordering::Relaxed) >= self.load.reads
            || self.started.elapsed() >= self.load.time
    }

    fn client(&self, role: Role, mut random: Random) -> anyhow::Result<()> {
        let outcome = match role {
            Role::Reader => self.read_on(&mut random),
            Role::Writer(route) => self.write_on(route, &mut random),
        };
        if outcome.is_err() {
            self.stop.store(true, Ordering::SeqCst);
        }
        outcome.with_context(|| format!("a client of the load ({role:?})"))
    }

    fn read_on(&self, random: &mut Random) -> anyhow::Result<()> {
        let is_repeatable = random.below(3) == 0;
        let mut client = self.connect(Route::Through, is_repeatable, random)?;
        let mut asking = Asking::choose(random);
        while !self.is_over() {
            if random.below(20) == 0 {
                self.read_in_transaction(&mut client, &mut asking, is_repeatable, random)?;
            } else {
                let question = self.choose(random);
                self.ask(&mut client, &mut asking, question, &self.before(question))?;
            }
        }
        Ok(())
    }

    fn connect(
        &self,
        route: Route,
        is_repeatable: bool,
        random: &mut Random,
    ) -> Result<Client, ClientError> {
        let options = match route {
            Route::Through => &self.load.through,
            Route::Direct => &self.load.direct,
        };
        let mut options = options.clone();
        options.deprecate_eof = random.below(2) == 0;
        let mut client = options.connect()?;
        let level = if is_repeatable {
            "REPEATABLE READ"
        } else {
            "READ COMMITTED"
        };
        client.query(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
        Ok(client)
    }

    fn choose(&self, random: &mut Random) -> &Question {
        // Some are asked often, and hit often; the others are asked seldom.
        let bound = random.below(self.questions.len()) + 1;
        &self.questions[random.below(bound)]
    }

    /// Two questions in one transaction. At `REPEATABLE READ` both tell of the moment of the first.
    fn read_in_transaction(
        &self,
        client: &mut Client,
        asking: &mut Asking,
        is_repeatable: bool,
        random: &mut Random,
    ) -> anyhow::Result<()> {
        client.query("BEGIN")?;
        let (first, second) = (self.choose(random), self.choose(random));
        let early = self.before(second);
        self.ask(client, asking, first, &self.before(first))?;
        let before = if is_repeatable {
            early
        } else {
            self.before(second)
        };
        self.ask(client, asking, second, &before)?;
        client.query("COMMIT")?;
        Ok(())
    }

    fn before(&self, question: &Question) -> Vec<Before> {
        let counters = question.counters();
        // The floors last: their clock is that of the sending.
        let direct: Vec<_> = counters
            .iter()
            .map(|counter| *self.trail.cell(*counter))
            .collect();
        counters
            .iter()
            .zip(direct)
            .map(|(counter, direct)| Before {
                floor: self.oracle.before_read(*counter),
                direct,
            })
            .collect()
    }

    fn ask(
        &self,
        client: &mut Client,
        asking: &mut Asking,
        question: &Question,
        before: &[Before],
    ) -> anyhow::Result<()> {
        let sent_at = Instant::now();
        let rows = asking
            .ask(client, &question.text)
            .with_context(|| question.text.clone())?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        let judged = match question.shape {
            Shape::Rows { .. } => self.judge_rows(question, before, &rows, sent_at),
            Shape::Number { total, .. } => self.judge_number(question, total, before, &rows),
        };
        if let Err(impossible) = judged {
            let mut findings = self.findings();
            if findings.impossible.len() < KEPT_MAX {
                findings.impossible.push(impossible);
            }
        }
        Ok(())
    }

    fn judge_rows(
        &self,
        question: &Question,
        before: &[Before],
        rows: &[Row],
        sent_at: Instant,
    ) -> Result<(), String> {
        let counters = question.counters();
        for (counter, value) in question.read_rows(rows)? {
            let at = counters.iter().position(|known| *known == counter);
            let before = &before[at.ok_or("a counter that nobody asked for")?];
            let text = || question.text.clone();
            if let Err(stale) = self.oracle.judge(before.floor, value, text) {
                self.found_stale(stale.to_string());
            }
            if let Some((written, ok_at)) = before.direct {
                self.note_lag((value < written).then(|| sent_at.saturating_duration_since(ok_at)));
            }
            self.oracle
                .judge_newest(counter, value)
                .map_err(|never| format!("{never:?} {}", question.text))?;
        }
        Ok(())
    }

    fn judge_number(
        &self,
        question: &Question,
        total: Total,
        before: &[Before],
        rows: &[Row],
    ) -> Result<(), String> {
        let seen = question.read_number(rows)?;
        let oldest = before.iter().map(|before| before.floor.oldest_allowed());
        let newest = question.counters().into_iter();
        let newest = newest.map(|counter| self.oracle.newest(counter));
        let (lowest, highest): (u64, u64) = match total {
            Total::Sum => (oldest.sum(), newest.sum()),
            Total::Max => (
                oldest.max().unwrap_or_default(),
                newest.max().unwrap_or_default(),
            ),
            Total::Count => (before.len() as u64, before.len() as u64),
        };
        if seen > highest || total == Total::Count && seen < lowest {
            return Err(format!("{seen}, at most {highest}: {}", question.text));
        }
        if seen < lowest {
            self.found_stale(format!("{seen}, but at least {lowest}: {}", question.text));
        }
        Ok(())
    }

    fn found_stale(&self, words: String) {
        let mut findings = self.findings();
        findings.stale_count += 1;
        if findings.stale.len() < KEPT_MAX {
            findings.stale.push(words);
        }
        if self.load.until_stale {
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    fn note_lag(&self, lag: Option<Duration>) {
        let mut findings = self.findings();
        findings.reads_after_direct += 1;
        if let Some(lag) = lag {
            let lag_us = u64::try_from(lag.as_micros()).unwrap_or(LAG_US_MAX);
            findings.lag_us.saturating_record(lag_us);
        }
    }

    fn write_on(&self, route: Route, random: &mut Random) -> anyhow::Result<()> {
        let is_repeatable = random.below(2) == 0;
        let mut client = self.connect(route, is_repeatable, random)?;
        let mut prepared = HashMap::new();
        while !self.is_over() {
            let kind = self.kind_to_write(random);
            let form = Form::choose(kind, random);
            let mut writer = Writer {
                client: &mut client,
                route,
                is_mysql: self.load.is_mysql,
                prepared,
            };
            let written = self.write(&mut writer, kind, form, random);
            prepared = writer.prepared;
            let row = written.with_context(|| format!("{form:?} of {kind:?}"))?;
            self.writes[usize::from(route == Route::Direct)].fetch_add(1, Ordering::Relaxed);
            if let Some(row) = row.filter(|_| route == Route::Through && random.below(2) == 0) {
                self.read_back(&mut client, kind, row, random)?;
            }
            self.pause(random);
        }
        Ok(())
    }

    fn pause(&self, random: &mut Random) {
        let pause_us = self.load.write_pause.as_micros().max(1);
        let bound = usize::try_from(pause_us).unwrap_or(usize::MAX);
        let next = self.reads.load(Ordering::Relaxed) + READS_BETWEEN_WRITES;
        std::thread::sleep(Duration::from_micros(random.below(bound) as u64));
        while self.reads.load(Ordering::Relaxed) < next && !self.is_over() {
            std::thread::sleep(LOOK);
        }
    }

    fn kind_to_write(&self, random: &mut Random) -> Kind {
        let reads = self.reads.load(Ordering::Relaxed);
        let mut hot = self.hot.lock().unwrap_or_else(PoisonError::into_inner);
        if hot.since.elapsed() >= self.load.hot && reads >= hot.reads + READS_WHILE_HOT {
            *hot = Hot {
                kind: (hot.kind + 1) % Kind::ALL.len(),
                since: Instant::now(),
                reads,
            };
        }
        if random.below(ELSEWHERE) == 0 {
            Kind::ALL[random.below(Kind::ALL.len())]
        } else {
            Kind::ALL[hot.kind]
        }
    }

    /// Writes once. No row: a deadlock was lost.
    fn write(
        &self,
        writer: &mut Writer<'_>,
        kind: Kind,
        form: Form,
        random: &mut Random,
    ) -> anyhow::Result<Option<usize>> {
        match writer.write(self.oracle, kind, form, random) {
            Ok(row) => {
                if writer.route == Route::Direct {
                    self.leave_trail(kind, row, form);
                }
                Ok(Some(row))
            }
            Err(error) if error.code().is_some_and(|code| DEADLOCKS.contains(&code)) => {
                self.findings().deadlocks += 1;
                if form == Form::Xa {
                    let name = writer.client.connection_id();
                    // Whichever state it was left in.
                    for end in ["END", "ROLLBACK"] {
                        let _ = writer.client.query(&format!("XA {end} '{name}'"));
                    }
                } else {
                    writer.client.query("ROLLBACK")?;
                    writer.client.query("SET autocommit = 1")?;
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn leave_trail(&self, kind: Kind, row: usize, form: Form) {
        if form == Form::Rollback {
            return;
        }
        // Another writer may have written since; then this one's is no longer the last.
        let counter = kind.counter(row);
        let value = self.oracle.newest(counter);
        let mut cell = self.trail.cell(counter);
        if cell.is_none_or(|(known, _)| known < value) {
            *cell = Some((value, Instant::now()));
        }
    }

    /// The nearest reader of a write: its own connection, at once.
    fn read_back(
        &self,
        client: &mut Client,
        kind: Kind,
        row: usize,
        random: &mut Random,
    ) -> anyhow::Result<()> {
        let counter = kind.counter(row);
        let mut fitting = self
            .questions
            .iter()
            .filter(|question| question.counters().contains(&counter));
        let nth = random.below(fitting.clone().count().max(1));
        match fitting.nth(nth) {
            Some(question) => self.ask(client, &mut Asking::Text, question, &self.before(question)),
            None => Ok(()),
        }
    }
}
