//! The stored results.
//!
//! # Look-ups
//!
//! A store is a number of shards, and each shard a lock-free map from digest to entry. A look-up
//! pins the map's reclamation (a store to a line of its own thread), finds the entry, and compares
//! the whole key. It takes no lock and writes nothing that others read, but for the entry's visited
//! flag, at most once between two visits of the eviction hand.
//!
//! # Memory
//!
//! Each shard has an equal part of `memory_bytes_max` and an account of it. Everything is taken
//! from the account before it is allocated and given back when it is freed: entries with all their
//! parts in the allocator's size classes, their entry in the map, the map's slots (at the largest
//! size that the map may choose for the largest number of entries that the shard ever had), the
//! queues' nodes, the fingerprints of evicted entries. So the account never exceeds the limit,
//! whatever threads insert at once and however long a reader stays.
//!
//! Evicted entries are freed by the map's deferred reclamation: a thread collects up to
//! 32 of them before it tries, and then each waits for the readers that were active. One
//! sixteenth of each shard is kept free of live entries for those; what exceeds 32 KiB in one
//! operation is reclaimed at once. If even so the account is full, the result isn't stored
//! ([`NotStored::MemoryHeld`]). Not in the account: the allocator's fragmentation, up to 27 bytes
//! per entry of one shard while its map grows, and per thread 32 records of 40 bytes.

mod counts;
mod ghost;
mod policy;
mod shard;

use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use papaya::Guard as _;

pub use self::counts::{Countable, Counts};
use self::shard::{Shard, SweptShard};
use crate::entry::{Entry, Lengths, NewEntry};
use crate::key::KeyRef;
use crate::reason::{EvictionReason, InvalidationReason, NotStored};
use crate::sync::lock;

/// How large a store may be.
#[derive(Copy, Clone, Debug)]
pub struct StoreLimits {
    /// All memory of the store.
    pub memory_bytes_max: usize,
    /// The largest response that is stored; also the largest text.
    pub result_bytes_max: usize,
    /// How many shards are wished for. There are fewer if a shard's part of the memory would not
    /// hold eight of the largest results.
    pub shards: usize,
}

/// Judges whether an entry is outdated for good. It is called under a shard's lock: it must be
/// quick and must not call the store.
pub type OutdatedJudge = Box<dyn Fn(&Entry) -> Option<InvalidationReason> + Send + Sync>;

/// The stored results. See the module documentation.
pub struct Store {
    shards: Box<[Shard]>,
    /// How far the bits that choose the shard lie from the right.
    shard_shift: u32,
    result_bytes_max: usize,
    judge: OutdatedJudge,
    sweep: Mutex<StoreCursor>,
    /// How often it was emptied. Read by fills only.
    epoch: AtomicU64,
}

/// Where the next step through the store begins; the default is its beginning.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct StoreCursor {
    shard: usize,
    node: usize,
}

/// Numbers by [`EvictionReason`].
pub type Evictions = Counts<EvictionReason>;
/// Numbers by [`InvalidationReason`].
pub type Invalidations = Counts<InvalidationReason>;

/// What storing a result cost others.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The results that left for it.
    pub evicted: Evictions,
    /// The labels of those among them that could never have been served again, and why.
    pub outdated: Vec<(u32, InvalidationReason)>,
}

/// What one step of a sweep did.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct SweepReport {
    /// Places that were looked at.
    pub examined: usize,
    /// Results that were dropped.
    pub dropped: Invalidations,
    /// The bytes they had.
    pub bytes: usize,
    /// The step reached the end of the store; the next one begins anew.
    pub finished: bool,
}

/// The state of a store.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct StoreStats {
    /// Results that can be looked up.
    pub entries: usize,
    /// Bytes of those results, with all that belongs to each of them.
    pub entry_bytes: usize,
    /// All accounted bytes: also indexes, and results that have left but aren't freed yet.
    pub bytes: usize,
    /// The limit of `bytes`.
    pub memory_bytes_max: usize,
    /// How many shards there are.
    pub shards: usize,
    /// Results stored since the start.
    pub stored: u64,
    /// Results that left to make room, since the start.
    pub evicted: Evictions,
    /// Results that were dropped because they could never be served again, since the start.
    pub invalidated: Invalidations,
}

impl Store {
    /// An empty store in which no entry is ever outdated.
    pub fn new(limits: StoreLimits) -> Store {
        Store::with_judge(limits, Box::new(|_| None))
    }

    /// An empty store whose evictions take first what `judge` names.
    pub fn with_judge(limits: StoreLimits, judge: OutdatedJudge) -> Store {
        let largest = limits.result_bytes_max.max(8 * 1024);
        let shards_max = (limits.memory_bytes_max / largest.saturating_mul(8)).max(1);
        // At most the largest power of two that fits.
        let shards_max = 1 << shards_max.ilog2().min(16);
        let shards = limits.shards.max(1).next_power_of_two().min(shards_max);
        let collector = Arc::new(shard::collector());
        let share = limits.memory_bytes_max / shards;
        Store {
            shards: (0..shards)
                .map(|_| Shard::new(share, Arc::clone(&collector)))
                .collect(),
            shard_shift: u128::BITS - shards.ilog2(),
            result_bytes_max: limits.result_bytes_max,
            judge,
            sweep: Mutex::default(),
            epoch: AtomicU64::new(0),
        }
    }

    /// Sets how much of the memory results may take from now on, bytes. It never is more than there
    /// is. Those that are stored stay; [`Store::clear`] drops them.
    pub fn limit_results(&self, bytes: usize) {
        for shard in &self.shards {
            shard.limit_results(bytes / self.shards.len());
        }
    }

    /// Looks a key up, and calls `serve` with the entry while it is pinned: no copy, no reference
    /// count. `digest` is that of the key.
    ///
    /// `serve` must be short and must not insert into or remove from this store: what is evicted
    /// meanwhile can't be freed.
    #[inline]
    pub fn with<R>(
        &self,
        key: &KeyRef<'_>,
        digest: u128,
        serve: impl FnOnce(&Arc<Entry>) -> R,
    ) -> Option<R> {
        let map = &self.shard(digest).map;
        let guard = map.guard();
        let entry = map.get(&digest, &guard)?;
        if !entry.answers(key) {
            return None;
        }
        entry.mark_visited();
        Some(serve(entry))
    }

    /// Whether a result with this key's digest is worth collecting. While there is room it always
    /// is. When the room is needed, only one that was asked for lately is: most results are never
    /// asked for again, and storing each of them would cost every miss an insertion and an
    /// eviction. What isn't wanted now is remembered, and wanted when it comes again.
    pub fn wants(&self, digest: u128) -> bool {
        self.shard(digest).wants(digest)
    }

    /// Whether the shard for this key's digest is full: storing a result then evicts another.
    pub fn is_full(&self, digest: u128) -> bool {
        self.shard(digest).is_full()
    }

    /// Stores a result, in place of an older one with the same key if there is one. Others leave if
    /// the room is needed.
    ///
    /// # Errors
    /// The result isn't stored, and nothing needs to be done about it.
    pub fn insert(&self, new: &NewEntry<'_>) -> Result<Stored, NotStored> {
        let mut stored = Stored::default();
        self.insert_noting(new, &mut stored)?;
        Ok(stored)
    }

    /// The same. `stored` also tells what has left for a result that isn't stored after all.
    ///
    /// # Errors
    /// The result isn't stored, and nothing needs to be done about it.
    pub fn insert_noting(&self, new: &NewEntry<'_>, stored: &mut Stored) -> Result<(), NotStored> {
        if new.response.len() > self.result_bytes_max {
            return Err(NotStored::TooLarge);
        }
        if new.key.text.len() > self.result_bytes_max {
            return Err(NotStored::TextTooLong);
        }
        let lengths = Lengths::of(new)?;
        let digest = new.key.digest();
        let shard = self.shard(digest);
        shard.reserve(lengths.cost(), &self.judge, stored)?;
        let entry = Entry::new(new, lengths, Arc::clone(&shard.ledger));
        let is_current = || self.epoch() == new.epoch;
        shard.publish(digest, entry, is_current, &self.judge, stored)
    }

    /// Removes this very entry, which a look-up found outdated; not another one that has taken its
    /// place meanwhile. Says whether it was there.
    pub fn remove_if_same(&self, entry: &Arc<Entry>, reason: InvalidationReason) -> bool {
        let digest = entry.key().digest();
        self.shard(digest).remove_if_same(digest, entry, reason)
    }

    /// Looks at `budget` places (at most one more) and drops what `outdated` names. `dropped` is
    /// told of each, outside the shard's lock. Steps walk through the store and start again at its
    /// end.
    pub fn sweep_step(
        &self,
        budget: usize,
        outdated: impl Fn(&Entry) -> Option<InvalidationReason>,
        mut dropped: impl FnMut(&Entry, InvalidationReason),
    ) -> SweepReport {
        let mut cursor = lock(&self.sweep);
        let mut report = SweepReport::default();
        while report.examined < budget {
            let left = budget - report.examined;
            let shard = &self.shards[cursor.shard];
            match shard.sweep(cursor.node, left, &outdated, &mut dropped, &mut report) {
                SweptShard::UpTo(node) => cursor.node = node,
                SweptShard::Finished => {
                    cursor.node = 0;
                    cursor.shard += 1;
                    // Also an empty shard takes some time.
                    report.examined += 1;
                }
            }
            if cursor.shard == self.shards.len() {
                cursor.shard = 0;
                report.finished = true;
                break;
            }
        }
        report
    }

    /// Shows the entries in `budget` places (at most one more) from `from` on, and changes nothing.
    /// Gives where the next step begins, or `None` at the end. Look-ups aren't held up; what is
    /// stored or leaves between two steps may be seen or not. `visit` is called under a shard's
    /// lock: it must be quick and must not call the store.
    pub fn walk_step(
        &self,
        from: StoreCursor,
        budget: usize,
        mut visit: impl FnMut(&Entry),
    ) -> Option<StoreCursor> {
        let mut cursor = from;
        let mut examined = 0;
        while examined < budget {
            let shard = self.shards.get(cursor.shard)?;
            match shard.walk(cursor.node, budget - examined, &mut visit) {
                SweptShard::UpTo(node) => {
                    examined += node - cursor.node;
                    cursor.node = node;
                }
                SweptShard::Finished => {
                    examined += 1;
                    cursor = StoreCursor {
                        shard: cursor.shard + 1,
                        node: 0,
                    };
                }
            }
        }
        (cursor.shard < self.shards.len()).then_some(cursor)
    }

    /// How often everything was dropped. A result is stored only if that hasn't happened since this
    /// was asked.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Drops everything that is stored now, and keeps from being stored what is on its way: when
    /// this returns, no result is found whose [`NewEntry::epoch`] was taken before the call.
    pub fn clear(&self) {
        // First. Whoever stores a result looks at it under the lock of the shard: either before
        // that is emptied, and the result leaves with the others, or afterwards, and then it is
        // seen.
        self.epoch.fetch_add(1, Ordering::SeqCst);
        for shard in &self.shards {
            shard.clear();
        }
    }

    /// The state of the store. Shards are read one after the other.
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            shards: self.shards.len(),
            ..StoreStats::default()
        };
        for shard in &self.shards {
            shard.add_stats(&mut stats);
        }
        stats
    }

    /// Asks the map to free what has left, as far as readers allow. For idle moments.
    pub fn reclaim(&self) {
        if let Some(shard) = self.shards.first() {
            shard.map.guard().flush();
        }
    }

    fn shard(&self, digest: u128) -> &Shard {
        // With one shard the shift is the whole width.
        let index = digest.checked_shr(self.shard_shift).unwrap_or(0);
        &self.shards[index as usize]
    }
}

/// Gives back the digest, which is a hash already.
#[derive(Default)]
pub(crate) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    // The low bits; the high ones choose the shard.
    #[allow(clippy::cast_possible_truncation)]
    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}
