//! What becomes of each query that an application has: statements counted by their digests.
//!
//! A digest is a statement without its values ([`remora_sql::normalise`]). A bounded number of them
//! is counted one by one, the others together, in [`Label::OTHERS`].
//!
//! - A [`Label`] is a place in the table and how often that place has been given away. A stored
//!   result carries the label of the statement that filled it, so that a hit is counted without
//!   looking at the text.
//! - Each worker counts for itself, in [`WorkerDigests`]: one thread writes, whoever reports reads.
//!   Nothing is waited for.
//! - A digest is looked up in a lock-free map on a miss. Only one that isn't known takes a lock,
//!   and only if nobody else has it: otherwise it is counted among the others this time.
//! - In a full table a new digest takes the place of one that was asked for less in the last
//!   [`WINDOW_MS`]. How often those were asked for that have no place is estimated by a sketch of
//!   each worker's own ([`Sketch`]), which never says too few.
//!
//! Counting never decides what is served. It decides whether results of a digest are worth storing
//! (`storing`).

mod counts;
mod digester;
mod known;
mod outdated_by;
mod report;
mod sketch;
mod storing;
#[cfg(test)]
mod tests;
mod text;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use remora_engine::key::Label;
use remora_sql::Digest;

pub use self::counts::{Count, WorkerDigests};
pub(crate) use self::digester::{Digester, Recognised};
pub(crate) use self::known::{KnownAnalysis, KnownRead};
pub use self::outdated_by::OutdatedBy;
pub use self::report::{DigestReport, OutdatedByTable, Refused, since};
pub use self::sketch::Sketch;
use self::storing::StoringTally;
pub(crate) use self::storing::{Room, is_time_for_sample};
pub use self::text::{Order, table};

/// The most digests that can be counted one by one.
pub const COUNT_MAX: u32 = Label::PLACES_MAX;

/// How long it takes at least until the table is looked through again for digests that are hardly
/// asked for.
pub const WINDOW_MS: u64 = 10_000;

/// Of the table, the part that may leave in one window: a sixteenth.
const LEAVING_PART: usize = 16;

/// What a digest stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its number.
    pub digest: Digest,
    /// The normalised text. It holds nothing of a value.
    pub text: String,
    /// When it got its place, milliseconds of Remora's clock.
    pub since_ms: u64,
}

/// A place in the table.
#[derive(Debug, Default)]
struct Slot {
    generation: AtomicU32,
    about: RwLock<Option<Arc<About>>>,
}

fn about(slot: &Slot) -> Option<Arc<About>> {
    let about = slot.about.read();
    about.unwrap_or_else(PoisonError::into_inner).clone()
}

/// What was counted of a digest, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Its number.
    pub digest: Digest,
    /// When it got its place, milliseconds of Remora's clock.
    pub since_ms: u64,
    /// Statements that memory answered.
    pub hits: u64,
    /// Statements that the server answered.
    pub misses: u64,
}

/// What is written only by who gives places away.
#[derive(Debug, Default)]
struct Admission {
    /// The next place that nobody has had.
    next: usize,
    /// Of each place, the calls when the window began.
    calls_before: Vec<u64>,
    /// Places that may be given away, with the calls that they had in the window before; the least
    /// asked for last.
    leaving: Vec<(usize, u64)>,
    /// When the window began.
    window_ms: u64,
}

/// The table. See the module.
#[derive(Debug)]
pub struct Digests {
    slots: Box<[Slot]>,
    known: papaya::HashMap<Digest, Label>,
    admission: Mutex<Admission>,
    workers: Box<[Arc<WorkerDigests>]>,
    /// What the sweep counts: outdated results only.
    sweep: Arc<WorkerDigests>,
}

impl Digests {
    /// For so many workers and the sweep, with places for so many digests; with none, all are
    /// counted together.
    pub fn new(workers: usize, count_max: u32) -> Digests {
        let places = count_max.min(COUNT_MAX - 1) as usize + 1;
        Digests {
            slots: (0..places).map(|_| Slot::default()).collect(),
            known: papaya::HashMap::new(),
            admission: Mutex::new(Admission {
                next: 1,
                calls_before: vec![0; places],
                ..Admission::default()
            }),
            workers: (0..workers)
                .map(|_| Arc::new(WorkerDigests::new(places)))
                .collect(),
            sweep: Arc::new(WorkerDigests::new(places)),
        }
    }

    /// The counters of one worker; none if there are fewer.
    pub fn worker(&self, index: usize) -> Option<Arc<WorkerDigests>> {
        self.workers.get(index).cloned()
    }

    /// The counters of the sweep.
    pub fn sweep(&self) -> Arc<WorkerDigests> {
        Arc::clone(&self.sweep)
    }

    /// How many have a place of their own.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none has one.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Statements that were counted under no digest of their own.
    pub fn without_place(&self) -> u64 {
        self.calls_at(0)
    }

    /// Statements that workers have forgotten to make room for others.
    pub fn forgotten_statements(&self) -> u64 {
        self.workers
            .iter()
            .map(|worker| worker.forgotten_statements())
            .sum()
    }

    /// How many can have one.
    pub fn count_max(&self) -> usize {
        self.slots.len() - 1
    }

    /// The label of a digest, which may get a place now. `normal` is its text; `sketch` counts
    /// those without a place and belongs to the calling thread.
    pub fn label(&self, digest: Digest, normal: &[u8], sketch: &mut Sketch, now_ms: u64) -> Label {
        if let Some(label) = self.known.pin().get(&digest) {
            return *label;
        }
        if self.count_max() == 0 {
            return Label::OTHERS;
        }
        let calls = sketch.add(digest, now_ms);
        // Somebody else is giving a place away: this one is counted among the others, and tries
        // again.
        let Ok(mut admission) = self.admission.try_lock() else {
            return Label::OTHERS;
        };
        // It may have got one meanwhile.
        if let Some(label) = self.known.pin().get(&digest) {
            return *label;
        }
        let Some(index) = self.place_for(&mut admission, calls, now_ms) else {
            return Label::OTHERS;
        };
        self.give(index, digest, normal, now_ms)
    }

    /// Whether a label is that of a digest which has its place still.
    fn is_current(&self, label: Label) -> bool {
        label != Label::OTHERS && self.generation_at(label.index()) == label.generation()
    }

    /// The label, or that of the others if its digest has lost its place.
    pub(crate) fn current(&self, label: Label) -> Label {
        if self.is_current(label) {
            label
        } else {
            Label::OTHERS
        }
    }

    /// What all workers have counted of a digest.
    fn storing_tally(&self, label: Label) -> StoringTally {
        let of = |worker: &Arc<WorkerDigests>| worker.storing_tally_at(label);
        self.workers
            .iter()
            .map(of)
            .fold(StoringTally::default(), |sum, one| StoringTally {
                hits: sum.hits + one.hits,
                skipped: sum.skipped + one.skipped,
                stored: sum.stored + one.stored,
            })
    }

    /// A free place, or that of a digest that was asked for less than `calls` times in a window.
    fn place_for(&self, admission: &mut Admission, calls: u64, now_ms: u64) -> Option<usize> {
        if admission.next < self.slots.len() {
            admission.next += 1;
            return Some(admission.next - 1);
        }
        if now_ms.saturating_sub(admission.window_ms) >= WINDOW_MS {
            self.begin_window(admission, now_ms);
        }
        let (index, least) = *admission.leaving.last()?;
        (calls > least).then(|| {
            admission.leaving.pop();
            index
        })
    }

    /// Looks for those that were hardly asked for since the last window began.
    fn begin_window(&self, admission: &mut Admission, now_ms: u64) {
        admission.window_ms = now_ms;
        admission.leaving.clear();
        for index in 1..self.slots.len() {
            let calls = self.calls_at(index);
            let before = std::mem::replace(&mut admission.calls_before[index], calls);
            let lately = calls.saturating_sub(before);
            admission.leaving.push((index, lately));
        }
        admission
            .leaving
            .sort_unstable_by_key(|(_, lately)| std::cmp::Reverse(*lately));
        let leaving_max = self.count_max().div_ceil(LEAVING_PART);
        let staying = admission.leaving.len().saturating_sub(leaving_max);
        admission.leaving.drain(..staying);
    }

    fn give(&self, index: usize, digest: Digest, normal: &[u8], now_ms: u64) -> Label {
        let slot = &self.slots[index];
        let about = Arc::new(About {
            digest,
            text: String::from_utf8_lossy(normal).into_owned(),
            since_ms: now_ms,
        });
        let before = slot
            .about
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(about);
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        let label = Label::new(index, generation);
        let known = self.known.pin();
        if let Some(before) = before {
            known.remove(&before.digest);
        }
        known.insert(digest, label);
        label
    }

    /// Calls that were counted at a place for whoever has it now.
    fn calls_at(&self, index: usize) -> u64 {
        let generation = self.generation_at(index);
        let of = |worker: &Arc<WorkerDigests>| worker.calls_at(index, generation);
        self.workers.iter().map(of).sum()
    }

    fn generation_at(&self, index: usize) -> u32 {
        let generation = self.slots[index].generation.load(Ordering::Acquire);
        Label::new(index, generation).generation()
    }

    /// What was counted of every digest, and last of the others together.
    pub fn report(&self) -> Vec<DigestReport> {
        self.reports().collect()
    }

    /// The same one by one.
    pub fn reports(&self) -> impl Iterator<Item = DigestReport> {
        let own = (1..self.slots.len()).filter_map(|index| {
            let generation = self.generation_at(index);
            let about = about(&self.slots[index])?;
            Some(self.report_at(index, generation, Some(&about)))
        });
        own.chain(std::iter::once_with(|| self.report_at(0, 0, None)))
    }

    /// Every digest that has a place, by its label.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Label, Arc<About>)> {
        (1..self.slots.len()).filter_map(|index| {
            let label = Label::new(index, self.generation_at(index));
            Some((label, self.about(label)?))
        })
    }

    /// What a label stands for, if it has its place still.
    pub fn about(&self, label: Label) -> Option<Arc<About>> {
        // Before and after: the place may be given away meanwhile.
        let about = about(
            self.slots
                .get(label.index())
                .filter(|_| self.is_current(label))?,
        );
        about.filter(|_| self.is_current(label))
    }

    /// What was counted of one digest, or with none of the others together; none if it has no
    /// place.
    pub fn report_of(&self, digest: Option<Digest>) -> Option<DigestReport> {
        let Some(digest) = digest else {
            return Some(self.report_at(0, 0, None));
        };
        let label = *self.known.pin().get(&digest)?;
        let index = label.index();
        let about = about(&self.slots[index]).filter(|about| about.digest == digest)?;
        Some(self.report_at(index, label.generation(), Some(&about)))
    }

    /// What was counted of every digest, in short: much less work than [`Digests::report`].
    pub fn tallies(&self) -> impl Iterator<Item = Tally> {
        (1..self.slots.len()).filter_map(|index| {
            let generation = self.generation_at(index);
            let about = about(&self.slots[index])?;
            let tallies = self.workers.iter();
            let (hits, misses) = tallies
                .map(|worker| worker.tally_at(index, generation))
                .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
            Some(Tally {
                digest: about.digest,
                since_ms: about.since_ms,
                hits,
                misses,
            })
        })
    }

    fn report_at(&self, index: usize, generation: u32, about: Option<&About>) -> DigestReport {
        let mut report = DigestReport::new(about);
        for worker in self.workers.iter().chain([&self.sweep]) {
            worker.add_to(index, generation, &mut report);
        }
        report.finish();
        report
    }
}
