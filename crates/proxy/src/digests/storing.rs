//! Whether storing the results of a digest pays.
//!
//! Storing a result has a cost: working out what it depends on, copying it, dropping it later. A
//! result that is asked for again saves the server's time. Where results are hardly asked for again
//! before they change or leave, a miss is cheaper if it stores nothing.
//!
//! Each worker decides for itself, by what all workers have counted of the digest:
//!
//! - It begins by storing all. After [`RESULTS_BEFORE_CHECK`] results it compares what hits have
//!   saved with that cost. If they saved less than half, it **samples**.
//! - While it samples, it stores everything in one of [`SAMPLE`] slices of time. Results in memory
//!   are still served. When the hits have saved what the sample cost, it stores all again. The
//!   ratio of hits to stored results is the same in a sample as overall, since both shrink alike.
//!   Not so in a full memory: there hits are compared with the cost of storing everything. All
//!   digests and workers use the same slices, so a transaction pays for storing its reads only now
//!   and then.
//! - After that, the next check waits for as many results as there were misses while sampling, as
//!   long as there is room in memory. A large memory warms up slowly: at first few results are
//!   asked for again. If that check finds that storing doesn't pay after all, sampling lasts longer
//!   each time: what hits find in memory anyway, a sample can't tell from what it has stored.
//!
//! A hit is taken to save what a fast miss takes: the 5th percentile. On a busy machine slower
//! misses mostly wait for a processor, and storing makes everyone wait longer.
//!
//! Nothing here decides what is served. A wrong decision stores one result too few or too many.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Results stored before the first check whether that pays.
pub(super) const RESULTS_BEFORE_CHECK: u32 = 2_048;
/// The most results stored before a later check.
const RESULTS_BEFORE_CHECK_MAX: u32 = 1 << 16;
/// How many slices sampling lasts at least, after storing has been tried again in vain: at first,
/// and at most.
const SLICES_AGAIN: std::ops::RangeInclusive<u32> = 16..=1_024;
/// While sampling, one slice of time in so many stores results.
const SAMPLE: u64 = 16;
/// How long a slice of time is, milliseconds.
const SLICE_MS: u64 = 250;
/// A sample says nothing with fewer results than this.
const SAMPLE_RESULTS: u64 = 512;
/// What storing one result costs: about 10,500 instructions, and a place in memory.
const STORING_COST: Duration = Duration::from_micros(10);
/// What a hit costs.
const HIT_COST: Duration = Duration::from_micros(10);
/// The least that a hit saves: the way to the server and back.
const SAVED_MIN: Duration = Duration::from_micros(20);

/// What all workers have counted of a digest, as far as it says whether storing pays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StoringTally {
    /// Statements that memory answered.
    pub hits: u64,
    /// Misses whose results weren't, as that isn't worth it.
    pub skipped: u64,
    /// Misses whose results were to be stored.
    pub stored: u64,
}

/// Whether there is room for one more result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is.
    Free,
    /// Another one has to leave.
    Full,
}

impl StoringTally {
    fn since(self, before: StoringTally) -> StoringTally {
        StoringTally {
            hits: self.hits.saturating_sub(before.hits),
            skipped: self.skipped.saturating_sub(before.skipped),
            stored: self.stored.saturating_sub(before.stored),
        }
    }
}

/// One worker's decision about one digest. Only that worker writes it.
#[derive(Debug, Default)]
pub(super) struct Decision {
    samples: AtomicBool,
    /// Results to store until the next check; 0 before the first.
    until_check: AtomicU32,
    /// The slice of time of the last miss while sampling.
    slice: AtomicU64,
    /// Misses since sampling began.
    misses_while_sampling: AtomicU32,
    /// Slices of time that sampling lasts at least: more, the more often storing turned out not to
    /// pay after all.
    slices_min: AtomicU32,
    /// The slice in which sampling began.
    began_slice: AtomicU64,
    hits_before: AtomicU64,
    skipped_before: AtomicU64,
    stored_before: AtomicU64,
}

impl Decision {
    /// As at the beginning.
    pub(super) fn clear(&self) {
        self.samples.store(false, Relaxed);
        for counter in [
            &self.until_check,
            &self.misses_while_sampling,
            &self.slices_min,
        ] {
            counter.store(0, Relaxed);
        }
        self.slice.store(0, Relaxed);
        self.begin_from(StoringTally::default());
    }

    /// Whether only a sample is stored now.
    pub(super) fn samples(&self) -> bool {
        self.samples.load(Relaxed)
    }

    /// Whether the result of a miss should be stored. `fast_miss`: how long a fast miss of
    /// the digest takes. It and `tally` are only worked out now and then.
    #[inline]
    pub(super) fn should_store(
        &self,
        now_ms: u64,
        room: Room,
        fast_miss: impl FnOnce() -> Option<Duration>,
        tally: impl FnOnce() -> StoringTally,
    ) -> bool {
        if !self.samples() {
            return true;
        }
        let misses_while_sampling = self.misses_while_sampling.load(Relaxed);
        self.misses_while_sampling
            .store(misses_while_sampling.saturating_add(1), Relaxed);
        let slice = now_ms / SLICE_MS;
        if self.began_slice.load(Relaxed) == u64::MAX {
            self.began_slice.store(slice, Relaxed);
        }
        if self.slice.load(Relaxed) != slice {
            self.slice.store(slice, Relaxed);
            self.check_while_sampling(now_ms, room, fast_miss(), tally());
        }
        !self.samples() || is_time_for_sample(now_ms)
    }

    /// The result of a miss is going to be stored: everything else allows it.
    #[inline]
    pub(super) fn note_stored(
        &self,
        room: Room,
        fast_miss: impl FnOnce() -> Option<Duration>,
        tally: impl FnOnce() -> StoringTally,
    ) {
        if self.samples() {
            return;
        }
        match self.until_check.load(Relaxed) {
            0 => self.until_check.store(RESULTS_BEFORE_CHECK, Relaxed),
            1 => self.check_while_storing(fast_miss(), tally()),
            // What fills the memory only takes time while there is room.
            left if room == Room::Full => self
                .until_check
                .store(RESULTS_BEFORE_CHECK.min(left) - 1, Relaxed),
            left => self.until_check.store(left - 1, Relaxed),
        }
    }

    fn check_while_storing(&self, fast_miss: Option<Duration>, tally: StoringTally) {
        let lately = tally.since(self.before());
        self.begin_from(tally);
        if saved_by(lately.hits, fast_miss) < cost_of(lately.stored) / 2 {
            // Nothing but what hits find in memory anyway may have made it seem to pay.
            let was_tried_again = self.misses_while_sampling.load(Relaxed) > 0;
            let before = self.slices_min.load(Relaxed);
            let (first, last) = (*SLICES_AGAIN.start(), *SLICES_AGAIN.end());
            let slices_min = if was_tried_again {
                (2 * before).clamp(first, last)
            } else {
                0
            };
            self.slices_min.store(slices_min, Relaxed);
            self.samples.store(true, Relaxed);
            self.misses_while_sampling.store(0, Relaxed);
            self.began_slice.store(u64::MAX, Relaxed);
        } else {
            self.slices_min.store(0, Relaxed);
            self.misses_while_sampling.store(0, Relaxed);
            self.until_check.store(RESULTS_BEFORE_CHECK, Relaxed);
        }
    }

    fn check_while_sampling(
        &self,
        now_ms: u64,
        room: Room,
        fast_miss: Option<Duration>,
        tally: StoringTally,
    ) {
        let lately = tally.since(self.before());
        let cost = cost_of(match room {
            Room::Free => lately.stored.max(SAMPLE_RESULTS),
            // There would be no more hits if all were stored.
            Room::Full => lately.stored + lately.skipped,
        });
        let lasted = (now_ms / SLICE_MS).saturating_sub(self.began_slice.load(Relaxed));
        let is_long_enough = lasted >= u64::from(self.slices_min.load(Relaxed));
        if is_long_enough && saved_by(lately.hits, fast_miss) >= cost {
            self.begin_from(tally);
            self.samples.store(false, Relaxed);
            let patience = self
                .misses_while_sampling
                .load(Relaxed)
                .clamp(RESULTS_BEFORE_CHECK, RESULTS_BEFORE_CHECK_MAX);
            self.until_check.store(patience, Relaxed);
        } else if is_time_for_sample(now_ms) && lately.stored >= SAMPLE_RESULTS {
            // The last sample has had its time to be hit; a new one begins.
            self.begin_from(tally);
        }
    }

    fn before(&self) -> StoringTally {
        StoringTally {
            hits: self.hits_before.load(Relaxed),
            skipped: self.skipped_before.load(Relaxed),
            stored: self.stored_before.load(Relaxed),
        }
    }

    fn begin_from(&self, tally: StoringTally) {
        self.hits_before.store(tally.hits, Relaxed);
        self.skipped_before.store(tally.skipped, Relaxed);
        self.stored_before.store(tally.stored, Relaxed);
    }
}

/// Whether results are stored at this time, where only a sample is. `now_ms`: milliseconds of
/// Remora's clock.
pub(crate) fn is_time_for_sample(now_ms: u64) -> bool {
    // One in each group, at a place of its own: whoever asks at regular times must not miss it
    // for ever.
    let (group, slice) = (now_ms / SLICE_MS / SAMPLE, now_ms / SLICE_MS % SAMPLE);
    group.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SAMPLE.ilog2()) == slice
}

fn saved_by(hits: u64, fast_miss: Option<Duration>) -> u128 {
    let by_one = fast_miss.map_or(SAVED_MIN, |miss| miss.saturating_sub(HIT_COST));
    u128::from(hits) * by_one.max(SAVED_MIN).as_nanos()
}

fn cost_of(stored: u64) -> u128 {
    u128::from(stored) * STORING_COST.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: Option<Duration> = Some(Duration::from_micros(110));

    /// A worker with one digest; what it stores is never outdated.
    #[derive(Default)]
    struct Worker {
        decision: Decision,
        tally: StoringTally,
        memory: std::collections::HashSet<u64>,
        memory_max: Option<usize>,
        asked: u64,
        now_ms: u64,
    }

    impl Worker {
        /// Asks, a tenth of a millisecond after the last one. Gives whether it was a hit.
        fn ask(&mut self, key: u64) -> bool {
            self.asked += 1;
            if self.asked.is_multiple_of(10) {
                self.now_ms += 1;
            }
            if self.memory.contains(&key) {
                self.tally.hits += 1;
                return true;
            }
            let tally = self.tally;
            if self
                .decision
                .should_store(self.now_ms, self.room(), || MISS, || tally)
            {
                self.tally.stored += 1;
                let tally = self.tally;
                self.decision.note_stored(self.room(), || MISS, || tally);
                if self.room() == Room::Full {
                    let any = self.memory.iter().next().copied();
                    any.map(|any| self.memory.remove(&any));
                }
                self.memory.insert(key);
            } else {
                self.tally.skipped += 1;
            }
            false
        }

        fn room(&self) -> Room {
            let is_full = self.memory_max.is_some_and(|max| self.memory.len() >= max);
            if is_full { Room::Full } else { Room::Free }
        }

        fn samples(&self) -> bool {
            self.decision.samples()
        }
    }

    /// Numbers without an order.
    fn scattered(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        })
    }

    #[test]
    fn results_never_asked_for_again_are_soon_only_sampled() {
        let mut worker = Worker::default();
        for key in 0..100_000 {
            worker.ask(key);
        }
        assert!(worker.samples());
        let beside = worker.tally.stored - u64::from(RESULTS_BEFORE_CHECK);
        let expected = (100_000 - u64::from(RESULTS_BEFORE_CHECK)) / SAMPLE;
        assert!(beside < expected * 2, "{beside}");
    }

    #[test]
    fn results_that_are_asked_for_again_are_stored() {
        let mut worker = Worker::default();
        for key in scattered(1).take(200_000) {
            worker.ask(key % 20_000);
            assert!(!worker.samples());
        }
    }

    #[test]
    fn a_large_memory_fills_almost_as_fast() {
        const KEYS: u64 = 300_000;
        let mut worker = Worker::default();
        let hits = |worker: &mut Worker, seed| {
            let asked = scattered(seed).take(2 * 300_000);
            asked.filter(|key| worker.ask(key % KEYS)).count()
        };
        hits(&mut worker, 1);
        assert!(!worker.samples());
        // Without sampling it would be 865 of 1,000.
        let share = worker.memory.len() as u64 * 1_000 / KEYS;
        assert!(share > 750, "{share}");
    }

    #[test]
    fn a_small_memory_is_not_filled_over_and_over() {
        let mut worker = Worker {
            memory_max: Some(2_000),
            ..Worker::default()
        };
        for key in scattered(3).take(300_000) {
            worker.ask(key % 200_000);
        }
        // A hit in a hundred wouldn't pay for storing all others.
        assert!(worker.samples());
        assert!(worker.tally.stored < 300_000 / 8, "{:?}", worker.tally);
        assert!(worker.tally.hits > 1_500, "{:?}", worker.tally);
    }

    #[test]
    fn a_result_that_stops_changing_is_soon_stored_again() {
        let mut worker = Worker::default();
        for _ in 0..=RESULTS_BEFORE_CHECK {
            worker.ask(7);
            worker.memory.clear();
        }
        assert!(worker.samples());
        let began_ms = worker.now_ms;
        while !worker.ask(7) {}
        assert!(worker.now_ms - began_ms <= 2 * SAMPLE * SLICE_MS);
    }

    #[test]
    fn it_stores_again_when_the_sample_pays() {
        let mut worker = Worker::default();
        let mut keys = 0..;
        while !worker.samples() {
            worker.ask(keys.next().unwrap());
        }
        let mut asked = 0;
        let began_ms = worker.now_ms;
        while worker.samples() {
            // One in ten is new.
            worker.ask(if asked % 10 == 0 {
                2_000_000 + asked
            } else {
                1_000_000 + asked % 1_000
            });
            asked += 1;
        }
        assert!(worker.now_ms - began_ms < 2 * SAMPLE * SLICE_MS);
    }

    #[test]
    fn a_slow_query_pays_off_with_few_hits() {
        let tally = |stored| StoringTally {
            hits: 1,
            skipped: 0,
            stored,
        };
        let judged = |saved| {
            let decision = Decision::default();
            for _ in 0..=RESULTS_BEFORE_CHECK {
                decision.note_stored(
                    Room::Free,
                    || Some(saved),
                    || tally(u64::from(RESULTS_BEFORE_CHECK)),
                );
            }
            decision.samples()
        };
        assert!(judged(Duration::from_micros(100)));
        assert!(!judged(Duration::from_millis(100)));
    }

    #[test]
    fn another_digest_starts_afresh() {
        let mut worker = Worker::default();
        for key in 0..10_000 {
            worker.ask(key);
        }
        assert!(worker.samples());
        worker.decision.clear();
        assert!(
            !worker.samples()
                && worker
                    .decision
                    .should_store(0, Room::Free, || None, StoringTally::default)
        );
    }
}
