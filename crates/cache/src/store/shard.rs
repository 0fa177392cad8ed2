//! One shard of the store: a map for the readers, a policy behind a mutex for the writers.

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use papaya::{Guard as _, HashMap, LocalGuard, ResizeMode};

use super::ghost::Ghost;
use super::policy::{CHUNK, NODE_BYTES, Policy};
use super::{DigestHasher, Evictions, Invalidations, StoreStats, Stored, SweepReport};
use crate::entry::Entry;
use crate::ledger::Ledger;
use crate::reason::{EvictionReason, InvalidationReason, NotStored};
use crate::sync::lock;

type Map = HashMap<u128, Arc<Entry>, BuildHasherDefault<DigestHasher>>;

/// How many removed entries a thread collects before it tries to free them.
const RECLAMATION_BATCH: usize = 32;
/// Removed bytes that are freed at once, without waiting for the batch.
const RECLAIMED_BYTES_AT_ONCE: usize = 32 * 1024;
/// How often room is made before a result is refused.
const RESERVATION_ROUNDS: usize = 2;
/// How many entries are removed or looked at before the lock is released for others.
const UNDER_ONE_LOCK: usize = 128;
/// The map's slots have nine bytes each, and it has at most four slots per entry.
const MAP_SLOT_BYTES: usize = 4 * 9;

pub(super) struct Shard {
    pub(super) map: Map,
    pub(super) ledger: Arc<Ledger>,
    /// The room is needed: results leave for others. Only a hint, read without the lock.
    is_full: AtomicBool,
    /// How much live entries may take, whatever else there is room for.
    results_bytes_max: AtomicUsize,
    /// Guards the policy and every change of the map.
    writers: Mutex<Writers>,
}

struct Writers {
    policy: Policy,
    stored: u64,
    evicted: Evictions,
    invalidated: Invalidations,
}

/// How far a sweep of a shard came.
pub(super) enum SweptShard {
    UpTo(usize),
    Finished,
}

/// The reclamation that all shards of a store share.
pub(super) fn collector() -> seize::Collector {
    seize::Collector::new().batch_size(RECLAMATION_BATCH)
}

impl Shard {
    pub(super) fn new(bytes_max: usize, collector: Arc<seize::Collector>) -> Shard {
        Shard {
            // Blocking: in the other mode, entries removed during a resize are kept until its end.
            // Only writers of this shard could block, and they hold its lock anyway.
            map: HashMap::builder()
                .hasher(BuildHasherDefault::default())
                .shared_collector(collector)
                .resize_mode(ResizeMode::Blocking)
                .build(),
            ledger: Arc::new(Ledger::new(bytes_max)),
            is_full: AtomicBool::new(false),
            results_bytes_max: AtomicUsize::new(usize::MAX),
            writers: Mutex::new(Writers {
                policy: Policy::new(),
                stored: 0,
                evicted: Evictions::default(),
                invalidated: Invalidations::default(),
            }),
        }
    }

    pub(super) fn limit_results(&self, bytes: usize) {
        self.results_bytes_max.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Whether a result for this digest should be stored: while there is room always, else only if
    /// it was asked for lately. What is not wanted is remembered, and wanted when it comes again.
    pub(super) fn wants(&self, digest: u128) -> bool {
        if !self.is_full() {
            return true;
        }
        lock(&self.writers).policy.ghost().recall(digest)
    }

    /// Takes `cost` bytes from the account, for an entry to be made. Evicts if that is needed.
    pub(super) fn reserve(
        &self,
        cost: usize,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) -> Result<(), NotStored> {
        if cost > self.results_bytes_max.load(Ordering::Relaxed) {
            return Err(NotStored::NoRoom);
        }
        for _ in 0..RESERVATION_ROUNDS {
            if self.ledger.try_take(cost) {
                return Ok(());
            }
            let (live, target) = {
                let policy = &lock(&self.writers).policy;
                (policy.bytes(), self.live_target(policy.nodes()))
            };
            if cost > target {
                return Err(NotStored::NoRoom);
            }
            // No more than that: if memory is held by what has left already, evicting more would
            // empty the shard and free nothing.
            self.evict((live + cost).saturating_sub(target), judge, stored);
            self.map.guard().flush();
        }
        if self.ledger.try_take(cost) {
            Ok(())
        } else {
            Err(NotStored::MemoryHeld)
        }
    }

    /// Makes an entry visible, in place of an older one of the same digest. Evicts down to what the
    /// shard keeps free. `is_current` says whether the entry may still become visible.
    pub(super) fn publish(
        &self,
        digest: u128,
        entry: Arc<Entry>,
        is_current: impl Fn() -> bool,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) -> Result<(), NotStored> {
        let mut removed = Vec::new();
        let grew;
        let published = {
            let guard = self.map.guard();
            let mut writers = lock(&self.writers);
            let nodes = writers.policy.nodes();
            let old = self.map.get(&digest, &guard);
            let published = match old {
                _ if !is_current() => Err(NotStored::Cleared),
                Some(old) if old.answers(&entry.key()) && old.as_of() > entry.as_of() => {
                    Err(NotStored::NewerStored)
                }
                Some(old) => {
                    removed.extend(writers.policy.replace(old, &entry));
                    writers.count_eviction(EvictionReason::Replaced, old, judge, stored);
                    Ok(())
                }
                None => self.add(&mut writers, digest, &entry, &guard, judge, stored),
            };
            if published.is_ok() {
                writers.stored += 1;
                self.map.insert(digest, entry, &guard);
                let target = self.live_target(writers.policy.nodes());
                while writers.policy.bytes() > target && removed.len() < UNDER_ONE_LOCK {
                    let Some(victim) = self.evict_one(&mut writers, &guard, judge, stored) else {
                        break;
                    };
                    removed.push(victim);
                }
            }
            // Now and then also frees the tables that the growing map has left behind.
            grew = writers.policy.nodes() > nodes;
            published
        };
        self.drop_removed(removed, grew);
        published
    }

    /// Removes this entry, if it is still the one in its place.
    pub(super) fn remove_if_same(
        &self,
        digest: u128,
        entry: &Arc<Entry>,
        reason: InvalidationReason,
    ) -> bool {
        let mut removed = Vec::new();
        {
            let guard = self.map.guard();
            let mut writers = lock(&self.writers);
            let present = self.map.get(&digest, &guard);
            if present.is_some_and(|present| Arc::ptr_eq(present, entry)) {
                removed.extend(writers.policy.remove(entry));
                self.map.remove(&digest, &guard);
                writers.invalidated.count(reason);
                // A look-up found it: its successor is wanted.
                writers.policy.ghost().remember(digest);
                self.note_room(&writers.policy);
            }
        }
        let was_there = !removed.is_empty();
        self.drop_removed(removed, false);
        was_there
    }

    /// Looks at up to `budget` nodes from `node` on.
    pub(super) fn sweep(
        &self,
        node: usize,
        budget: usize,
        outdated: &impl Fn(&Entry) -> Option<InvalidationReason>,
        dropped: &mut impl FnMut(&Entry, InvalidationReason),
        report: &mut SweepReport,
    ) -> SweptShard {
        let mut removed = Vec::new();
        let mut reasons = Vec::new();
        let swept = {
            let guard = self.map.guard();
            let mut writers = lock(&self.writers);
            let end = (node + budget.min(UNDER_ONE_LOCK)).min(writers.policy.nodes());
            for index in node..end {
                let Some(entry) = writers.policy.entry_at(index) else {
                    continue;
                };
                let Some(reason) = outdated(entry) else {
                    continue;
                };
                let entry = Arc::clone(entry);
                writers.policy.remove(&entry);
                self.map.remove(&entry.key().digest(), &guard);
                writers.invalidated.count(reason);
                report.dropped.count(reason);
                report.bytes += entry.cost();
                removed.push(entry);
                reasons.push(reason);
            }
            report.examined += end.saturating_sub(node);
            self.note_room(&writers.policy);
            if end >= writers.policy.nodes() {
                SweptShard::Finished
            } else {
                SweptShard::UpTo(end)
            }
        };
        for (entry, reason) in removed.iter().zip(reasons) {
            dropped(entry, reason);
        }
        self.drop_removed(removed, false);
        swept
    }

    /// Shows up to `budget` nodes from `node` on.
    pub(super) fn walk(
        &self,
        node: usize,
        budget: usize,
        visit: &mut impl FnMut(&Entry),
    ) -> SweptShard {
        let writers = lock(&self.writers);
        let nodes = writers.policy.nodes();
        let end = (node + budget.min(UNDER_ONE_LOCK)).min(nodes);
        for entry in (node..end).filter_map(|index| writers.policy.entry_at(index)) {
            visit(entry);
        }
        if end >= nodes {
            SweptShard::Finished
        } else {
            SweptShard::UpTo(end)
        }
    }

    pub(super) fn clear(&self) {
        lock(&self.writers).policy.ghost().clear();
        loop {
            let mut removed = Vec::new();
            {
                let guard = self.map.guard();
                let mut writers = lock(&self.writers);
                while removed.len() < UNDER_ONE_LOCK {
                    let Some(entry) = writers.policy.any() else {
                        break;
                    };
                    writers.policy.remove(&entry);
                    self.map.remove(&entry.key().digest(), &guard);
                    writers.invalidated.count(InvalidationReason::Cleared);
                    removed.push(entry);
                }
            }
            let is_empty = removed.is_empty();
            self.drop_removed(removed, true);
            if is_empty {
                self.is_full.store(false, Ordering::Relaxed);
                return;
            }
        }
    }

    /// After entries have left by themselves: with an eighth free, there is room again.
    fn note_room(&self, policy: &Policy) {
        let target = self.live_target(policy.nodes());
        if policy.bytes() < target - target / 8 && self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn add_stats(&self, stats: &mut StoreStats) {
        let writers = lock(&self.writers);
        stats.entries += writers.policy.entries();
        stats.entry_bytes += writers.policy.bytes();
        stats.bytes += self.ledger.taken();
        stats.memory_bytes_max += self.ledger.bytes_max();
        stats.stored += writers.stored;
        stats.evicted.add(&writers.evicted);
        stats.invalidated.add(&writers.invalidated);
    }

    /// How many bytes of live entries the shard aims at: a sixteenth is left for those that have
    /// left but aren't freed, and what the indexes take or may take is not for entries.
    fn live_target(&self, nodes: usize) -> usize {
        let max = self.ledger.bytes_max();
        let index = nodes * (NODE_BYTES + MAP_SLOT_BYTES) + Ghost::bytes_for(nodes);
        let results = self.results_bytes_max.load(Ordering::Relaxed);
        (max - max / 16).saturating_sub(index).min(results)
    }

    /// Lets the memory of evicted entries grow with the number of entries. It forgets then, so it
    /// grows in large steps.
    fn fit_ghost(&self, policy: &mut Policy) {
        let nodes = policy.nodes();
        let ghost = policy.ghost();
        let (old, new) = (ghost.bytes(), Ghost::bytes_for(nodes));
        if new > old + old / 4 && self.ledger.try_take(new) {
            ghost.resize_for(nodes);
            self.ledger.give_back(old);
        }
    }

    /// Gives the entry a node, growing the slab or evicting another entry.
    fn add(
        &self,
        writers: &mut Writers,
        digest: u128,
        entry: &Arc<Entry>,
        guard: &LocalGuard<'_>,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) -> Result<(), NotStored> {
        let chunk_bytes = CHUNK * (NODE_BYTES + MAP_SLOT_BYTES);
        if !writers.policy.has_free_node()
            && self.ledger.try_take(chunk_bytes)
            && !writers.policy.grow()
        {
            self.ledger.give_back(chunk_bytes);
        }
        if !writers.policy.has_free_node() {
            // Freed at once but for the map's own reference.
            self.evict_one(writers, guard, judge, stored);
        }
        if writers.policy.add(entry, digest) {
            Ok(())
        } else {
            Err(NotStored::NoRoom)
        }
    }

    /// Evicts at least `bytes` bytes if there are as many, and frees what can be freed.
    fn evict(
        &self,
        bytes: usize,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) {
        let mut left = bytes;
        while left > 0 {
            let mut removed = Vec::new();
            {
                let guard = self.map.guard();
                let mut writers = lock(&self.writers);
                while left > 0 && removed.len() < UNDER_ONE_LOCK {
                    let victim = self.evict_one(&mut writers, &guard, judge, stored);
                    let Some(victim) = victim else { break };
                    left = left.saturating_sub(victim.cost());
                    removed.push(victim);
                }
            }
            let is_empty = removed.is_empty();
            self.drop_removed(removed, true);
            if is_empty {
                return;
            }
        }
    }

    fn evict_one(
        &self,
        writers: &mut Writers,
        guard: &LocalGuard<'_>,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) -> Option<Arc<Entry>> {
        self.fit_ghost(&mut writers.policy);
        let is_outdated = |entry: &Entry| judge(entry).is_some();
        let (victim, reason) = writers.policy.evict(is_outdated)?;
        self.is_full.store(true, Ordering::Relaxed);
        self.map.remove(&victim.key().digest(), guard);
        writers.count_eviction(reason, &victim, judge, stored);
        Some(victim)
    }

    /// Drops what was removed, outside the lock and without a guard of this thread.
    fn drop_removed(&self, removed: Vec<Arc<Entry>>, at_once: bool) {
        let bytes: usize = removed.iter().map(|entry| entry.cost()).sum();
        drop(removed);
        if at_once || bytes > RECLAIMED_BYTES_AT_ONCE {
            self.map.guard().flush();
        }
    }
}

impl Writers {
    fn count_eviction(
        &mut self,
        reason: EvictionReason,
        victim: &Entry,
        judge: &impl Fn(&Entry) -> Option<InvalidationReason>,
        stored: &mut Stored,
    ) {
        self.evicted.count(reason);
        stored.evicted.count(reason);
        if matches!(reason, EvictionReason::Outdated | EvictionReason::Replaced) {
            let outdated = judge(victim).map(|reason| (victim.label(), reason));
            stored.outdated.extend(outdated);
        }
    }
}
