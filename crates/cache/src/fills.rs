//! At most one fill per key, and who waits for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::reason::FillRefused;
use crate::store::DigestHasher;
use crate::sync::{AtomicUsize, Ordering, lock};
use crate::timeline::AsOf;

const SHARDS: usize = 64;

#[derive(Default)]
struct Shard {
    fills: Mutex<Fills>,
    /// How many of its fills are in flight, and how many have ended: read without the lock.
    in_flight: AtomicUsize,
    ended: AtomicUsize,
}

#[derive(Default)]
struct Fills {
    by_digest: HashMap<u128, InFlight, BuildHasherDefault<DigestHasher>>,
    /// Numbers given to fills and to who waits for them.
    numbers: u64,
}

impl Fills {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

/// The digests of the keys that are being filled, so that one of many clients that miss the same
/// key at once fills it, and the others can wait for it.
///
/// What waits gets nothing from the fill but its end: then it looks the key up as if it had come
/// just now. So a result that somebody waited for is as fresh as any other.
///
/// Bounded: at most `fills_max`, rounded up to a multiple of 64 and split evenly over 64 shards,
/// each behind its own mutex; a miss that fills takes it twice or three times, a hit never. At most
/// `waiters_max` wait.
pub struct FillsInFlight {
    shards: Box<[Shard]>,
    fills_per_shard_max: usize,
    waiters: AtomicUsize,
    waiters_max: usize,
}

/// A fill that has begun and not ended.
struct InFlight {
    /// What its result will be right since.
    as_of: AsOf,
    /// Tells it from a later one of the same key.
    number: u64,
    stage: FillStage,
    waiters: Vec<(u64, Waker)>,
}

/// How far a fill is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FillStage {
    /// The server hasn't answered.
    Asked,
    /// The answer comes in pieces, as fast as one client takes them.
    Answering,
    /// Somebody waited as long as one should: nobody else is to wait for it.
    GivenUp,
    /// It has ended, whether or not the result was kept.
    Ended,
}

/// Why nobody may wait for a fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoWait {
    /// No fill of this key is in flight, or it isn't worth waiting for.
    Nothing,
    /// As many wait as may.
    Full,
}

/// The right to fill one key. Its end, also by a panic or a dropped connection, is the fill's end.
#[must_use = "dropping the permit ends the fill"]
pub struct FillPermit {
    fills: Arc<FillsInFlight>,
    digest: u128,
}

/// Somebody who waits for a fill. Dropped, it waits no longer.
pub struct FillWait {
    fills: Arc<FillsInFlight>,
    digest: u128,
    /// The fill's.
    number: u64,
    /// The fill's.
    as_of: AsOf,
    /// Its own.
    waiter: u64,
    /// The stage that it has been told of.
    seen: FillStage,
}

impl FillsInFlight {
    /// Nothing in flight, at most about `fills_max` later. At most `waiters_max` wait at a time.
    pub fn new(fills_max: usize, waiters_max: usize) -> Arc<FillsInFlight> {
        Arc::new(FillsInFlight {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            fills_per_shard_max: fills_max.div_ceil(SHARDS),
            waiters: AtomicUsize::new(0),
            waiters_max,
        })
    }

    /// Begins a fill.
    ///
    /// # Errors
    /// Another fill of this key is in flight, or too many others are. Neither is a fault: the query
    /// goes to the server, and its result isn't stored.
    pub fn begin(self: &Arc<Self>, digest: u128, as_of: AsOf) -> Result<FillPermit, FillRefused> {
        let shard = self.shard(digest);
        let mut fills = lock(&shard.fills);
        if fills.by_digest.contains_key(&digest) {
            return Err(FillRefused::InFlight);
        }
        if fills.by_digest.len() >= self.fills_per_shard_max {
            return Err(FillRefused::Full);
        }
        let fill = InFlight {
            as_of,
            number: fills.number(),
            stage: FillStage::Asked,
            waiters: Vec::new(),
        };
        fills.by_digest.insert(digest, fill);
        shard.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(FillPermit {
            fills: Arc::clone(self),
            digest,
        })
    }

    /// Waits for the fill of a key that the server hasn't answered yet.
    ///
    /// # Errors
    /// There is none, or too many wait already.
    pub fn wait_for(self: &Arc<Self>, digest: u128) -> Result<FillWait, NoWait> {
        let shard = self.shard(digest);
        // The one that was in the way has ended: no need for the lock.
        if shard.in_flight.load(Ordering::Relaxed) == 0 {
            return Err(NoWait::Nothing);
        }
        let mut fills = lock(&shard.fills);
        let (number, as_of) = match fills.by_digest.get(&digest) {
            Some(fill) if fill.stage == FillStage::Asked => (fill.number, fill.as_of),
            _ => return Err(NoWait::Nothing),
        };
        let waiter = fills.number();
        drop(fills);
        if self.waiters.fetch_add(1, Ordering::Relaxed) >= self.waiters_max {
            self.waiters.fetch_sub(1, Ordering::Relaxed);
            return Err(NoWait::Full);
        }
        Ok(FillWait {
            fills: Arc::clone(self),
            digest,
            number,
            as_of,
            waiter,
            seen: FillStage::Asked,
        })
    }

    /// How many fills are in flight.
    pub fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| lock(&shard.fills).by_digest.len())
            .sum()
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait for one.
    pub fn waiters(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }

    /// How many fills have ended among those that share a shard with this key.
    pub fn ended(&self, digest: u128) -> usize {
        self.shard(digest).ended.load(Ordering::Relaxed)
    }

    /// Moves a fill on, and wakes who waits for it. With a number: only that one.
    fn move_on(&self, digest: u128, number: Option<u64>, stage: FillStage) {
        let mut fills = lock(&self.shard(digest).fills);
        let waiters = match fills.by_digest.get_mut(&digest) {
            Some(fill) if number.is_none_or(|number| number == fill.number) => {
                fill.stage = stage;
                std::mem::take(&mut fill.waiters)
            }
            _ => return,
        };
        drop(fills);
        wake(waiters);
    }

    fn end(&self, digest: u128) {
        let shard = self.shard(digest);
        let mut fills = lock(&shard.fills);
        let ended = fills.by_digest.remove(&digest);
        shard.in_flight.fetch_sub(1, Ordering::Relaxed);
        shard.ended.fetch_add(1, Ordering::Relaxed);
        drop(fills);
        if let Some(ended) = ended {
            wake(ended.waiters);
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn shard(&self, digest: u128) -> &Shard {
        &self.shards[(digest >> 64) as usize % SHARDS]
    }
}

fn wake(waiters: Vec<(u64, Waker)>) {
    for (_, waker) in waiters {
        waker.wake();
    }
}

impl FillPermit {
    /// The answer has begun, and more of it is to come.
    pub fn note_answering(&self) {
        let fills = &self.fills;
        fills.move_on(self.digest, None, FillStage::Answering);
    }
}

impl Drop for FillPermit {
    fn drop(&mut self) {
        self.fills.end(self.digest);
    }
}

impl FillWait {
    /// Waits until the fill is further than it was known to be.
    pub async fn next_stage(&mut self) -> FillStage {
        poll_fn(|context| self.poll_stage(context)).await
    }

    fn poll_stage(&mut self, context: &Context<'_>) -> Poll<FillStage> {
        let mut fills = lock(&self.fills.shard(self.digest).fills);
        let fill = fills.by_digest.get_mut(&self.digest);
        let stage = match fill.filter(|fill| fill.number == self.number) {
            None => FillStage::Ended,
            Some(fill) if fill.stage == self.seen => {
                let waker = context.waker().clone();
                match fill.waiters.iter_mut().find(|one| one.0 == self.waiter) {
                    Some(known) => known.1 = waker,
                    None => fill.waiters.push((self.waiter, waker)),
                }
                return Poll::Pending;
            }
            Some(fill) => fill.stage,
        };
        self.seen = stage;
        Poll::Ready(stage)
    }

    /// What the fill's result will be right since.
    pub fn as_of(&self) -> AsOf {
        self.as_of
    }

    /// It has taken longer than one should wait: nobody else is to wait for this fill.
    pub fn give_up(self) {
        let fills = &self.fills;
        fills.move_on(self.digest, Some(self.number), FillStage::GivenUp);
    }
}

impl Drop for FillWait {
    fn drop(&mut self) {
        let mut fills = lock(&self.fills.shard(self.digest).fills);
        if let Some(fill) = fills.by_digest.get_mut(&self.digest)
            && fill.number == self.number
        {
            fill.waiters.retain(|(waiter, _)| *waiter != self.waiter);
        }
        drop(fills);
        self.fills.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::position::Position;

    use super::*;

    fn as_of() -> AsOf {
        AsOf::from_parts(1, Position::ZERO)
    }

    #[test]
    fn one_fill_per_key_until_its_permit_ends() {
        let fills = FillsInFlight::new(1000, 10);
        let permit = fills.begin(7, as_of()).unwrap();
        assert_eq!(fills.begin(7, as_of()).err(), Some(FillRefused::InFlight));
        let other = fills.begin(8, as_of()).unwrap();
        assert_eq!(fills.len(), 2);
        drop(permit);
        assert!(fills.begin(7, as_of()).is_ok());
        drop(other);
        assert!(fills.is_empty());
    }

    #[test]
    fn fills_are_bounded() {
        let fills = FillsInFlight::new(64, 10);
        let permits: Vec<_> = (0..10_000)
            .filter_map(|n| fills.begin(n << 64 | n, as_of()).ok())
            .collect();
        assert_eq!(permits.len(), 64);
        assert_eq!(
            fills.begin(u128::MAX, as_of()).err(),
            Some(FillRefused::Full)
        );
    }

    /// Whether a wait goes on; if not, the stage that it tells.
    fn stage(wait: &mut FillWait) -> Option<FillStage> {
        match wait.poll_stage(&Context::from_waker(Waker::noop())) {
            Poll::Ready(stage) => Some(stage),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_waits_is_told_of_each_stage_once_and_of_the_end() {
        let fills = FillsInFlight::new(1000, 10);
        assert_eq!(fills.wait_for(7).err(), Some(NoWait::Nothing));
        let permit = fills.begin(7, as_of()).unwrap();
        let mut wait = fills.wait_for(7).unwrap();
        assert_eq!((stage(&mut wait), fills.waiters()), (None, 1));
        permit.note_answering();
        assert_eq!(stage(&mut wait), Some(FillStage::Answering));
        assert_eq!(stage(&mut wait), None);
        // How long the rest takes depends on one client.
        assert_eq!(fills.wait_for(7).err(), Some(NoWait::Nothing));
        drop(permit);
        let later = fills.begin(7, as_of()).unwrap();
        assert_eq!(
            stage(&mut wait),
            Some(FillStage::Ended),
            "not the later one"
        );
        drop((wait, later));
        assert_eq!(fills.waiters(), 0);
    }

    #[test]
    fn a_fill_that_takes_too_long_is_waited_for_by_nobody() {
        let fills = FillsInFlight::new(1000, 10);
        let permit = fills.begin(7, as_of()).unwrap();
        let (one, mut other) = (fills.wait_for(7).unwrap(), fills.wait_for(7).unwrap());
        assert_eq!(stage(&mut other), None);
        one.give_up();
        assert_eq!(stage(&mut other), Some(FillStage::GivenUp));
        assert_eq!(fills.wait_for(7).err(), Some(NoWait::Nothing));
        let old = other;
        drop(permit);
        // What was given up was that fill, not the next one of the key.
        let _permit = fills.begin(7, as_of()).unwrap();
        old.give_up();
        assert!(fills.wait_for(7).is_ok());
    }

    #[test]
    fn waiters_are_bounded_and_leave_nothing_behind() {
        let fills = FillsInFlight::new(1000, 3);
        let permit = fills.begin(7, as_of()).unwrap();
        let mut waits: Vec<_> = (0..3).map(|_| fills.wait_for(7).unwrap()).collect();
        assert_eq!(fills.wait_for(7).err(), Some(NoWait::Full));
        for wait in &mut waits {
            // Each is there once, however often it is polled.
            assert_eq!((stage(wait), stage(wait)), (None, None));
        }
        let registered = || lock(&fills.shard(7).fills).by_digest[&7].waiters.len();
        assert_eq!(registered(), 3);
        drop(waits.pop());
        assert_eq!(registered(), 2);
        assert!(fills.wait_for(7).is_ok());
        drop((waits, permit));
        assert_eq!((fills.waiters(), fills.len()), (0, 0));
    }
}
