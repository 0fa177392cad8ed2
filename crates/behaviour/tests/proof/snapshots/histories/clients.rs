//! Clients that read lists and append to them, and write down what came of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use remora_testkit::client::ClientError;
use remora_testkit::histories::{Key, Span, Step, Transaction};
use remora_testkit::load::Random;
use remora_testkit::mixed::asking::Asking;

use super::Way;
use super::tables::{self, KEYS, Question};
use crate::snapshots::course::{Course, Role};
use crate::snapshots::{Opening, Reads, Session, Surroundings, World, asking};

const READERS: usize = 9;
/// The last ones go past Remora.
const READERS_DIRECT: usize = 1;
/// Whether they go past Remora.
const WRITERS: [bool; 3] = [false, false, true];
/// The most statements in most transactions of a reader …
const STEPS_MAX: usize = 12;
/// … but one in so many is longer: much changes meanwhile.
const LONG: usize = 3;
const LONG_STEPS_MAX: usize = 80;
/// One transaction of a reader in so many appends, too …
const APPENDS: usize = 10;
/// … by about so many of its statements.
const OWN_APPENDS: usize = 3;
/// Appends in a transaction of a writer.
const WRITES_MAX: usize = 4;
/// A writer lets about so many reads pass between two transactions.
const READS_BETWEEN_WRITES: usize = 200;
/// Who reads past Remora, and so faster than the others, lets so many reads pass each time.
const READS_BETWEEN_DIRECT: u64 = 30;
/// One transaction in so many that append is rolled back.
const ROLLBACK: usize = 6;
/// Most appends go to a few lists, which are others after so many elements: the others are hit.
const HOT_LISTS: usize = 8;
const HOT_ELEMENTS: u64 = 40;

/// `follow.lag_ms_max`, nanoseconds.
const LAG_NS_MAX: u64 = 1_000_000_000;

/// After so many elements other columns are read, where that is wanted.
const SHAPE_ELEMENTS: u64 = 20;

/// A load on the lists.
pub(super) struct Run<'a> {
    world: &'a World,
    way: Way,
    course: &'a Course,
    elements: AtomicU64,
    history: Mutex<Vec<Transaction>>,
}

impl<'a> Run<'a> {
    /// One on the lists of this world, which are empty.
    pub(super) fn new(world: &'a World, way: Way, course: &'a Course) -> Run<'a> {
        Run {
            world,
            way,
            course,
            elements: AtomicU64::new(1),
            history: Mutex::default(),
        }
    }

    /// All that its clients did.
    pub(super) fn into_history(self) -> Vec<Transaction> {
        self.history
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Its clients.
    pub(super) fn roles(&self, seeds: &mut Random) -> Vec<Role<'_>> {
        let mut roles: Vec<Role<'_>> = Vec::new();
        for reader in 0..READERS {
            let random = Random::new(seeds.next());
            let way = self.way_of(reader >= READERS - READERS_DIRECT);
            let opening = Opening::ALL[reader % Opening::ALL.len()];
            let asking = asking(reader, READERS);
            roles.push(Box::new(move || self.read_on(way, opening, asking, random)));
        }
        for is_direct in WRITERS {
            let random = Random::new(seeds.next());
            let way = self.way_of(is_direct);
            roles.push(Box::new(move || self.write_on(way, random)));
        }
        roles
    }

    fn way_of(&self, is_direct: bool) -> Way {
        if is_direct { Way::Direct } else { self.way }
    }

    fn connect(&self, way: Way, opening: Opening, asking: Asking) -> Result<Session, ClientError> {
        let options = match way {
            Way::Through => self.world.through(),
            Way::Direct => self.world.direct(),
        };
        Session::connect(&options, opening, asking)
    }

    fn read_on(
        &self,
        way: Way,
        opening: Opening,
        asking: Asking,
        mut random: Random,
    ) -> anyhow::Result<()> {
        let mut session = self.connect(way, opening, asking)?;
        while !self.course.is_over() {
            let appends = opening != Opening::ReadOnly && random.below(APPENDS) == 0;
            let is_long = random.below(LONG) == 0;
            let steps_max = if is_long { LONG_STEPS_MAX } else { STEPS_MAX };
            let steps = 1 + random.below(steps_max);
            let is_append: Vec<bool> = (0..steps)
                .map(|_| appends && random.below(steps) < OWN_APPENDS)
                .collect();
            self.transaction(way, &mut session, &is_append, &mut random)?;
            if way == self.way {
                self.course.count_transaction();
            } else {
                self.course.await_reads(READS_BETWEEN_DIRECT);
            }
        }
        Ok(())
    }

    fn write_on(&self, way: Way, mut random: Random) -> anyhow::Result<()> {
        let mut session = self.connect(way, Opening::Begin, Asking::Text)?;
        while !self.course.is_over() {
            let is_append = vec![true; 1 + random.below(WRITES_MAX)];
            self.transaction(way, &mut session, &is_append, &mut random)?;
            let reads = random.below(2 * READS_BETWEEN_WRITES);
            self.course.await_reads(reads as u64);
        }
        Ok(())
    }

    /// Runs a transaction with these statements, and writes down what came of it.
    fn transaction(
        &self,
        way: Way,
        session: &mut Session,
        is_append: &[bool],
        random: &mut Random,
    ) -> anyhow::Result<()> {
        let mut transaction = Transaction {
            client: format!("{way:?}, {:?}", session.opening),
            steps: Vec::new(),
            snapshot: None,
            commit: None,
        };
        let counts = way == self.way;
        let outcome = self.run_steps(session, &mut transaction, counts, is_append, random);
        if let Err(error) = outcome {
            session.give_up(error)?;
        }
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push(transaction);
        Ok(())
    }

    fn run_steps(
        &self,
        session: &mut Session,
        transaction: &mut Transaction,
        counts: bool,
        is_append: &[bool],
        random: &mut Random,
    ) -> Result<(), ClientError> {
        let ((), opened) = self.timed(|| session.open())?;
        if session.opening == Opening::ConsistentSnapshot {
            transaction.snapshot = Some(opened);
        }
        let mut is_first = true;
        for is_append in is_append {
            if *is_append {
                self.append(session, transaction, random)?;
                continue;
            }
            // Some are asked often, and hit often; the others are asked seldom.
            let bound = 1 + random.below(KEYS.end);
            let question = Question::about(random.below(bound), self.others(), random);
            let (reads, span) =
                self.timed(|| question.ask(&mut session.client, &mut session.asking))?;
            transaction.steps.extend(reads);
            let snapshot = transaction.snapshot.get_or_insert(span);
            if self.world.reads == Reads::Early && session.opening != Opening::ConsistentSnapshot {
                snapshot.answered_ns = span.answered_ns;
                if is_first {
                    // Outside a transaction memory may lack so much of what others write past it.
                    snapshot.sent_ns = snapshot.sent_ns.saturating_sub(LAG_NS_MAX);
                }
            }
            if counts {
                self.course
                    .count_read(is_first && self.world.reads == Reads::AfterSnapshot);
            }
            is_first = false;
        }
        self.end(session, transaction, is_append.contains(&true), random)
    }

    /// Which other columns are read now.
    fn others(&self) -> usize {
        if self.world.surroundings != Surroundings::NewShapes {
            return 0;
        }
        let elements = self.elements.load(Ordering::SeqCst);
        usize::try_from(elements / SHAPE_ELEMENTS).unwrap_or_default()
    }

    /// Whether the statement fails or not, it is written down: who appends may have done so.
    fn append(
        &self,
        session: &mut Session,
        transaction: &mut Transaction,
        random: &mut Random,
    ) -> Result<(), ClientError> {
        let element = self.elements.fetch_add(1, Ordering::SeqCst);
        let key = key_to_write(element, random);
        transaction.steps.push(Step::Append(key, element));
        tables::append(&mut session.client, key, element)
    }

    fn end(
        &self,
        session: &mut Session,
        transaction: &mut Transaction,
        has_appended: bool,
        random: &mut Random,
    ) -> Result<(), ClientError> {
        if has_appended && random.below(ROLLBACK) == 0 {
            return session.roll_back();
        }
        let ((), span) = self.timed(|| session.commit())?;
        transaction.commit = Some(span);
        Ok(())
    }

    fn timed<T>(
        &self,
        run: impl FnOnce() -> Result<T, ClientError>,
    ) -> Result<(T, Span), ClientError> {
        let sent_ns = self.course.now_ns();
        let value = run()?;
        let answered_ns = self.course.now_ns();
        Ok((
            value,
            Span {
                sent_ns,
                answered_ns,
            },
        ))
    }
}

fn key_to_write(element: u64, random: &mut Random) -> Key {
    let nth = usize::try_from(element / HOT_ELEMENTS).unwrap_or_default();
    // Far from the last ones, in both tables.
    (nth * 5 + random.below(HOT_LISTS) * 7) % KEYS.end
}
