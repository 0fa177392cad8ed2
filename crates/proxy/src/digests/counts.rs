//! What one worker counts of each digest.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use remora_engine::key::Label;
use remora_engine::reason::Outcome;

use super::outdated_by::{OutdatedBy, OutdatedByCounts};
use super::report::DigestReport;
use super::storing::{Decision, Room, StoringTally};
use crate::metrics::{BUCKETS, add, bucket_bound_seconds, bucket_of, nanoseconds};

/// Different reasons that are counted of a digest: it rarely has more than two.
const REFUSALS_MAX: usize = 4;
/// One miss in so many counts as fast.
const FAST_PART: u64 = 20;

/// What is counted of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Memory answered with so many bytes after so long.
    Hit {
        /// Of the response.
        bytes: usize,
        /// From reading the statement to handing over the answer.
        took: Duration,
    },
    /// The server answered after so long.
    Miss {
        /// From reading the statement to the end of the answer.
        took: Duration,
    },
    /// What became of a statement that the server was asked.
    Outcome(Outcome),
    /// A stored result was dropped that a change had outdated.
    Outdated,
}

/// The counters of one worker, which alone writes them.
#[derive(Debug)]
pub struct WorkerDigests {
    /// Made when a digest is first counted here.
    blocks: Box<[OnceLock<Box<Block>>]>,
    /// Statements forgotten to make room for others.
    forgotten_statements: AtomicU64,
}

/// The counters of a digest.
#[derive(Debug, Default)]
struct Block {
    /// Of the place, when these counters began. Whoever reads with another generation finds
    /// nothing.
    generation: AtomicU32,
    hits: AtomicU64,
    hit_bytes: AtomicU64,
    hit_nanoseconds: AtomicU64,
    misses: AtomicU64,
    miss_nanoseconds: AtomicU64,
    writes: AtomicU64,
    fills: AtomicU64,
    outdated: AtomicU64,
    /// Misses whose results were to be stored.
    stored: AtomicU64,
    /// Misses whose results weren't worth storing.
    skipped: AtomicU64,
    /// Whether that pays.
    storing: Decision,
    /// Made when a result was first outdated. Whoever reports holds the lock for a moment; a hit
    /// never takes it.
    outdated_by: Mutex<Option<Box<OutdatedByCounts>>>,
    /// An outcome's index and one, and how often; 0: free.
    refusals: [(AtomicU32, AtomicU64); REFUSALS_MAX],
    refusals_of_other_reasons: AtomicU64,
    hit_seconds: [AtomicU32; BUCKETS],
    miss_seconds: [AtomicU32; BUCKETS],
}

fn add_to_bucket(buckets: &[AtomicU32; BUCKETS], took: Duration) {
    let bucket = &buckets[bucket_of(took)];
    bucket.store(bucket.load(Relaxed).saturating_add(1), Relaxed);
}

impl Block {
    fn count(&self, count: Count) {
        match count {
            Count::Hit { bytes, took } => {
                add(&self.hits, 1);
                add(&self.hit_bytes, bytes as u64);
                add(&self.hit_nanoseconds, nanoseconds(took));
                add_to_bucket(&self.hit_seconds, took);
            }
            Count::Miss { took } => {
                add(&self.misses, 1);
                add(&self.miss_nanoseconds, nanoseconds(took));
                add_to_bucket(&self.miss_seconds, took);
            }
            Count::Outcome(Outcome::Fill) => add(&self.fills, 1),
            Count::Outcome(Outcome::Write) => add(&self.writes, 1),
            Count::Outcome(outcome) => self.count_refusal(outcome),
            Count::Outdated => add(&self.outdated, 1),
        }
    }

    fn count_refusal(&self, outcome: Outcome) {
        let Ok(number) = u32::try_from(outcome.index() + 1) else {
            return;
        };
        for (of, count) in &self.refusals {
            let known = of.load(Relaxed);
            if known == 0 {
                of.store(number, Relaxed);
            }
            if known == 0 || known == number {
                return add(count, 1);
            }
        }
        add(&self.refusals_of_other_reasons, 1);
    }

    fn with_outdated_by<T>(&self, run: impl FnOnce(&mut Option<Box<OutdatedByCounts>>) -> T) -> T {
        let by = self.outdated_by.lock();
        run(&mut by.unwrap_or_else(PoisonError::into_inner))
    }

    /// How long a fast miss takes: the middle of the bucket that holds the 5th percentile. `None`
    /// without misses.
    fn fast_miss(&self) -> Option<Duration> {
        let counts = self
            .miss_seconds
            .each_ref()
            .map(|count| u64::from(count.load(Relaxed)));
        let fast = counts.iter().sum::<u64>().div_ceil(FAST_PART);
        let mut passed = 0;
        let bucket = counts.iter().position(|count| {
            passed += count;
            *count > 0 && passed >= fast
        })?;
        let bound = bucket_bound_seconds(bucket.min(BUCKETS - 2));
        Some(Duration::from_secs_f64(bound * 0.75))
    }

    /// As new, for another digest.
    fn clear(&self, generation: u32) {
        let counters = [
            &self.hits,
            &self.hit_bytes,
            &self.hit_nanoseconds,
            &self.misses,
            &self.miss_nanoseconds,
            &self.writes,
            &self.fills,
            &self.outdated,
            &self.stored,
            &self.skipped,
            &self.refusals_of_other_reasons,
        ];
        for counter in counters {
            counter.store(0, Relaxed);
        }
        self.storing.clear();
        self.with_outdated_by(Option::take);
        for (of, count) in &self.refusals {
            of.store(0, Relaxed);
            count.store(0, Relaxed);
        }
        for bucket in self.hit_seconds.iter().chain(&self.miss_seconds) {
            bucket.store(0, Relaxed);
        }
        self.generation.store(generation, Relaxed);
    }
}

impl WorkerDigests {
    pub(super) fn new(places: usize) -> WorkerDigests {
        WorkerDigests {
            blocks: (0..places).map(|_| OnceLock::new()).collect(),
            forgotten_statements: AtomicU64::new(0),
        }
    }

    /// Counts. Only the worker's own thread may call it.
    pub fn count(&self, label: Label, count: Count) {
        if let Some(block) = self.block_to_count(label) {
            block.count(count);
        }
    }

    /// Counts what outdated a result. Only the worker's own thread may call it.
    pub fn count_outdated_by(&self, label: Label, by: OutdatedBy) {
        if let Some(block) = self.block_to_count(label) {
            block.with_outdated_by(|counts| counts.get_or_insert_default().count(by));
        }
    }

    pub(super) fn count_forgotten_statement(&self) {
        add(&self.forgotten_statements, 1);
    }

    pub(super) fn forgotten_statements(&self) -> u64 {
        self.forgotten_statements.load(Relaxed)
    }

    fn block_to_count(&self, label: Label) -> Option<&Block> {
        let block = self.blocks.get(label.index())?.get_or_init(Box::default);
        let generation = block.generation.load(Relaxed);
        if generation != label.generation() {
            // The label of a result that was stored for whoever had the place before says nothing
            // of who has it now.
            let since = label.generation().wrapping_sub(generation) & Label::GENERATION_MASK;
            let is_older = since > Label::GENERATION_MASK / 2;
            if is_older {
                return self.block_to_count(Label::OTHERS);
            }
            block.clear(label.generation());
        }
        Some(block)
    }

    fn block(&self, index: usize, generation: u32) -> Option<&Block> {
        let block = self.blocks.get(index)?.get()?;
        (block.generation.load(Relaxed) == generation).then_some(&**block)
    }

    /// How long the misses of a digest took here on average, if there were any.
    pub(super) fn mean_miss(&self, label: Label) -> Option<Duration> {
        let block = self.block(label.index(), label.generation())?;
        let nanoseconds = block.miss_nanoseconds.load(Relaxed);
        let mean = nanoseconds.checked_div(block.misses.load(Relaxed))?;
        Some(Duration::from_nanos(mean))
    }

    /// Whether the result of a miss should be stored; see [`Decision::should_store`]. Only the
    /// worker's own thread may call it.
    pub(super) fn should_store(
        &self,
        label: Label,
        now_ms: u64,
        room: Room,
        tally: impl FnOnce() -> StoringTally,
    ) -> bool {
        // Until a digest has a miss that is counted, nothing is known of it.
        let Some(block) = self.block(label.index(), label.generation()) else {
            return true;
        };
        let decision = &block.storing;
        let should_store = decision.should_store(now_ms, room, || block.fast_miss(), tally);
        if !should_store {
            add(&block.skipped, 1);
        }
        should_store
    }

    /// The result of a miss is going to be stored. Only the worker's own thread may call it.
    pub(super) fn note_stored(
        &self,
        label: Label,
        room: Room,
        tally: impl FnOnce() -> StoringTally,
    ) {
        if let Some(block) = self.block_to_count(label) {
            add(&block.stored, 1);
            block.storing.note_stored(room, || block.fast_miss(), tally);
        }
    }

    pub(super) fn storing_tally_at(&self, label: Label) -> StoringTally {
        let block = self.block(label.index(), label.generation());
        block.map_or(StoringTally::default(), |block| StoringTally {
            hits: block.hits.load(Relaxed),
            skipped: block.skipped.load(Relaxed),
            stored: block.stored.load(Relaxed),
        })
    }

    pub(super) fn calls_at(&self, index: usize, generation: u32) -> u64 {
        let (hits, misses) = self.tally_at(index, generation);
        hits + misses
    }

    /// Hits and misses.
    pub(super) fn tally_at(&self, index: usize, generation: u32) -> (u64, u64) {
        let block = self.block(index, generation);
        block.map_or((0, 0), |block| {
            (block.hits.load(Relaxed), block.misses.load(Relaxed))
        })
    }

    pub(super) fn add_to(&self, index: usize, generation: u32, report: &mut DigestReport) {
        let Some(block) = self.block(index, generation) else {
            return;
        };
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        report.hits += read(&block.hits);
        report.hit_bytes += read(&block.hit_bytes);
        report.hit_us += read(&block.hit_nanoseconds) / 1_000;
        report.misses += read(&block.misses);
        report.miss_us += read(&block.miss_nanoseconds) / 1_000;
        report.writes += read(&block.writes);
        report.fills += read(&block.fills);
        report.outdated += read(&block.outdated);
        report.only_a_sample |= block.storing.samples();
        block.with_outdated_by(|by| {
            if let Some(by) = by {
                report.add_outdated_by(by);
            }
        });
        report.refusals_of_other_reasons += read(&block.refusals_of_other_reasons);
        for (of, count) in &block.refusals {
            let index = of.load(Relaxed).checked_sub(1);
            if let Some(outcome) = index.and_then(|index| Outcome::all().get(index as usize)) {
                report.add_refusals(*outcome, read(count));
            }
        }
        let buckets = |buckets: &[AtomicU32; BUCKETS], totals: &mut [u64; BUCKETS]| {
            for (total, bucket) in totals.iter_mut().zip(buckets) {
                *total += u64::from(bucket.load(Relaxed));
            }
        };
        buckets(&block.hit_seconds, &mut report.hit_buckets);
        buckets(&block.miss_seconds, &mut report.miss_buckets);
    }
}
