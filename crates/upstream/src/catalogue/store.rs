//! Where facts are kept: sharded, bounded, with a replacement that a scan doesn't upset.
//!
//! Each shard is a queue in the order of arrival, and a hand that walks it from old to new (SIEVE).
//! A look-up only marks what it found. Room is made where the hand stands: it passes what is
//! marked, takes the mark off, and evicts the first that has none. So tables that are asked for
//! again and again stay, and a scan of tables that are asked for once evicts its own. An eviction
//! looks at no more than [`STEPS_MAX`] tables, however many there are.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use remora_cache::{AsOf, Tag};
use remora_engine::facts::TableFacts;

/// Shards: more than threads that ask at the same time. Fewer where there is little to divide.
const SHARDS_MAX: usize = 64;
/// Tables that make a shard worth it.
const SHARD_TABLES_MIN: usize = 16;
/// How many marked tables an eviction passes before it takes a marked one.
const STEPS_MAX: usize = 64;
/// No slot.
const NONE: u32 = u32::MAX;

/// Facts, and what they hold for.
#[derive(Debug, Clone)]
pub(super) struct StoredFacts {
    /// Taken before the questions on the tables were sent.
    pub(super) as_of: AsOf,
    /// Taken before the questions on foreign keys were sent.
    pub(super) relations_as_of: AsOf,
    /// The table's definition.
    pub(super) definition: Tag,
    /// A view's: the definitions of what it reads.
    pub(super) further: Box<[Tag]>,
    pub(super) facts: Arc<TableFacts>,
}

#[derive(Debug)]
struct Slot {
    key: Arc<[u8]>,
    known: StoredFacts,
    /// Asked for since the hand last passed.
    used: AtomicBool,
    /// Asked for since it was loaded.
    served: AtomicBool,
    newer: u32,
    older: u32,
}

#[derive(Debug)]
struct Shard {
    places: HashMap<Arc<[u8]>, u32>,
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
    hand: u32,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard {
            places: HashMap::new(),
            slots: Vec::new(),
            newest: NONE,
            oldest: NONE,
            hand: NONE,
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Store {
    shards: Box<[RwLock<Shard>]>,
    hasher: RandomState,
    shard_tables_max: usize,
    evictions: AtomicU64,
}

impl Store {
    /// Room for `tables_max` tables, rounded up to a multiple of the shards.
    pub(super) fn new(tables_max: usize) -> Store {
        let shards = (tables_max / SHARD_TABLES_MIN).clamp(1, SHARDS_MAX);
        Store {
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            shard_tables_max: tables_max.div_ceil(shards).clamp(1, NONE as usize),
            evictions: AtomicU64::new(0),
        }
    }

    /// Facts of a table that still hold.
    pub(super) fn find(
        &self,
        key: &[u8],
        is_outdated: impl Fn(&StoredFacts) -> bool,
    ) -> Option<Arc<TableFacts>> {
        self.look(key, is_outdated, |slot| {
            // A store would take the line away from other readers.
            if !slot.used.load(Ordering::Relaxed) {
                slot.used.store(true, Ordering::Relaxed);
                slot.served.store(true, Ordering::Relaxed);
            }
        })
    }

    /// The same for whoever needs no table kept for it.
    pub(super) fn peek(
        &self,
        key: &[u8],
        is_outdated: impl Fn(&StoredFacts) -> bool,
    ) -> Option<Arc<TableFacts>> {
        self.look(key, is_outdated, |_| ())
    }

    #[inline]
    fn look(
        &self,
        key: &[u8],
        is_outdated: impl Fn(&StoredFacts) -> bool,
        mark: impl FnOnce(&Slot),
    ) -> Option<Arc<TableFacts>> {
        let shard = self.shard(key);
        let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
        let slot = &shard.slots[*shard.places.get(key)? as usize];
        if is_outdated(&slot.known) {
            return None;
        }
        mark(slot);
        Some(Arc::clone(&slot.known.facts))
    }

    /// How many shards there are.
    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Shows every table of a shard. Nobody who only looks up waits meanwhile.
    pub(super) fn of_shard<T>(
        &self,
        shard: usize,
        show: impl Fn(&[u8], &StoredFacts) -> T,
    ) -> Vec<T> {
        let Some(shard) = self.shards.get(shard) else {
            return Vec::new();
        };
        let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
        let slots = shard
            .places
            .values()
            .map(|place| &shard.slots[*place as usize]);
        slots.map(|slot| show(&slot.key, &slot.known)).collect()
    }

    /// Keeps facts in place of what was known of the table; evicts another one if there is no room.
    /// Says whether that one had been loaded for nothing: nobody has asked for it since.
    pub(super) fn insert(
        &self,
        key: &[u8],
        known: StoredFacts,
        is_outdated: impl Fn(&StoredFacts) -> bool,
    ) -> bool {
        let shard = self.shard(key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = shard.places.get(key).copied() {
            shard.slots[place as usize].known = known;
            return false;
        }
        let slot = Slot {
            key: key.into(),
            known,
            used: AtomicBool::new(false),
            served: AtomicBool::new(false),
            newer: NONE,
            older: NONE,
        };
        if shard.slots.len() < self.shard_tables_max {
            let place = u32::try_from(shard.slots.len()).unwrap_or(NONE);
            shard.slots.push(slot);
            shard.link(place);
            return false;
        }
        self.evictions.fetch_add(1, Ordering::Relaxed);
        let place = shard.evict(is_outdated);
        let evicted = std::mem::replace(&mut shard.slots[place as usize], slot);
        shard.link(place);
        !evicted.served.into_inner()
    }

    /// How many tables are known, outdated ones included.
    pub(super) fn len(&self) -> usize {
        let len = |shard: &RwLock<Shard>| {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            shard.slots.len()
        };
        self.shards.iter().map(len).sum()
    }

    /// Tables that made room for others, since the start.
    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(key);
        &self.shards[usize::try_from(hash % self.shards.len() as u64).unwrap_or(0)]
    }
}

impl Shard {
    /// Makes the slot the newest.
    fn link(&mut self, place: u32) {
        let newest = self.newest;
        let slot = &mut self.slots[place as usize];
        slot.older = newest;
        slot.newer = NONE;
        let key = Arc::clone(&slot.key);
        match self.slots.get_mut(newest as usize) {
            Some(before) => before.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
        self.places.insert(key, place);
    }

    /// Takes a table out of a shard that isn't empty; its slot is to be filled and linked again.
    fn evict(&mut self, is_outdated: impl Fn(&StoredFacts) -> bool) -> u32 {
        let mut at = self.start_of_hand();
        for _ in 0..STEPS_MAX {
            let slot = &self.slots[at as usize];
            if is_outdated(&slot.known) || !slot.used.swap(false, Ordering::Relaxed) {
                break;
            }
            self.hand = slot.newer;
            at = self.start_of_hand();
        }
        let slot = &self.slots[at as usize];
        let (newer, older) = (slot.newer, slot.older);
        self.places.remove(&slot.key);
        match self.slots.get_mut(older as usize) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(after) => after.older = older,
            None => self.newest = older,
        }
        self.hand = newer;
        at
    }

    /// Where the hand stands; behind the newest it begins again at the oldest.
    fn start_of_hand(&self) -> u32 {
        if self.hand == NONE {
            self.oldest
        } else {
            self.hand
        }
    }
}

#[cfg(test)]
mod tests {
    use remora_cache::{BrokenRules, Position, Timeline, TimelineLimits};
    use remora_engine::reason::TableRefusal;

    use super::*;

    fn known() -> StoredFacts {
        let limits = TimelineLimits {
            tag_slots: 1,
            fence_slots: 1,
            lag_ms_max: 1,
        };
        let timeline = Timeline::new(limits, BrokenRules::default());
        timeline.restart(Position::new(1, 100).unwrap());
        timeline.prove(timeline.epoch(), 1);
        let as_of = timeline.as_of().unwrap();
        StoredFacts {
            as_of,
            relations_as_of: as_of,
            definition: Tag::definition("s", "t"),
            further: Box::default(),
            facts: Arc::new(TableFacts::refused("s", "t", TableRefusal::View)),
        }
    }

    fn name(number: usize) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    /// What a look-up and the load after it do.
    fn ask(store: &Store, key: &[u8], known: &StoredFacts) -> bool {
        let found = store.find(key, |_| false).is_some();
        if !found {
            store.insert(key, known.clone(), |_| false);
        }
        found
    }

    #[test]
    fn room_is_bounded_and_every_table_can_be_found_again() {
        let (store, known) = (Store::new(100), known());
        for number in 0..10_000 {
            ask(&store, &name(number), &known);
            assert!(store.find(&name(number), |_| false).is_some());
        }
        assert!((64..=112).contains(&store.len()), "{}", store.len());
        assert_eq!(store.evictions(), 10_000 - store.len() as u64);
        // The lists are whole: each shard's queue has all of its tables, both ways.
        for shard in &store.shards {
            let shard = shard.read().unwrap();
            let (mut at, mut count, mut before) = (shard.oldest, 0, NONE);
            while let Some(slot) = shard.slots.get(at as usize) {
                assert_eq!(slot.older, before);
                assert_eq!(shard.places.get(&slot.key), Some(&at));
                (before, at, count) = (at, slot.newer, count + 1);
            }
            assert_eq!((before, count), (shard.newest, shard.slots.len()));
            assert_eq!(shard.places.len(), shard.slots.len());
        }
    }

    #[test]
    fn an_eviction_says_whether_anybody_had_asked_for_the_table() {
        let (store, known) = (Store::new(1), known());
        let insert = |number| store.insert(&name(number), known.clone(), |_| false);
        assert!(!insert(0), "nothing left for the first");
        assert!(insert(1), "nobody asked for 0");
        store.find(&name(1), |_| false).unwrap();
        assert!(!insert(2), "1 was asked for");
        assert!(!insert(2), "2 is still there");
        assert!(insert(3), "nobody asked for 2");
    }

    #[test]
    fn a_scan_does_not_push_out_what_is_used() {
        let (store, known) = (Store::new(1_024), known());
        for _ in 0..2 {
            for number in 0..200 {
                ask(&store, &name(number), &known);
            }
        }
        for number in 1_000..21_000 {
            ask(&store, &name(number), &known);
            // One of the used ones each: 100 tables of the scan between two uses.
            ask(&store, &name(number % 200), &known);
        }
        let kept = (0..200).filter(|number| store.find(&name(*number), |_| false).is_some());
        assert!(kept.count() > 195);
    }

    #[test]
    fn what_is_outdated_goes_first() {
        let (store, known) = (Store::new(16), known());
        for number in 0..16 {
            ask(&store, &name(number), &known);
            ask(&store, &name(number), &known);
        }
        let used = store.find(&name(3), |_| false).unwrap();
        drop(used);
        // All but one hold; the hand passes those before it.
        let facts = Arc::new(TableFacts::refused("s", "old", TableRefusal::View));
        let old = StoredFacts {
            facts: Arc::clone(&facts),
            ..known.clone()
        };
        store.insert(&name(7), old, |_| false);
        store.insert(&name(16), known, |known| Arc::ptr_eq(&known.facts, &facts));
        assert!(store.find(&name(7), |_| false).is_none());
        for number in (0..17).filter(|number| *number != 7) {
            assert!(store.find(&name(number), |_| false).is_some(), "{number}");
        }
    }
}
