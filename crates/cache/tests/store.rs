//! What the store promises: exactly what was stored for exactly this key, and never too much
//! memory.
//!
//! Servers: none
#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use remora_cache::{
    AsOf, BrokenRules, Entry, EvictionReason, InvalidationReason, KeyRef, NewEntry, NotStored,
    Position, Scope, Store, StoreCursor, StoreLimits, Stored, Tag, Timeline, TimelineLimits,
};

const SMALL: StoreLimits = StoreLimits {
    memory_bytes_max: 512 * 1024,
    result_bytes_max: 16 * 1024,
    shards: 4,
};

fn as_of(offset: u64) -> AsOf {
    let limits = TimelineLimits {
        tag_slots: 1,
        fence_slots: 1,
        lag_ms_max: 1,
    };
    let timeline = Timeline::new(limits, BrokenRules::default());
    timeline.restart(Position::new(1, offset).unwrap());
    timeline.prove(timeline.epoch(), 0);
    timeline.as_of().unwrap()
}

fn text(number: u64) -> String {
    format!("SELECT {number}")
}

fn insert(store: &Store, number: u64, response: &[u8]) -> Result<Stored, NotStored> {
    let text = text(number);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: text.as_bytes(),
    };
    let tags = [Tag::table("s", &text)];
    store.insert(&NewEntry {
        key,
        tags: &tags,
        as_of: as_of(1),
        response,
        label: 0,
        epoch: store.epoch(),
        expires_at_ms: None,
    })
}

fn get(store: &Store, number: u64) -> Option<Arc<Entry>> {
    let text = text(number);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: text.as_bytes(),
    };
    store.with(&key, key.digest(), Arc::clone)
}

#[test]
fn a_hit_is_for_exactly_this_text_in_exactly_this_scope() {
    let store = Store::new(SMALL);
    let tags = [Tag::definitions()];
    for scope in 0..20 {
        let key = KeyRef {
            scope: Scope::new(scope).unwrap(),
            text: b"SELECT 1",
        };
        let response = scope.to_le_bytes();
        store
            .insert(&NewEntry {
                key,
                tags: &tags,
                as_of: as_of(1),
                response: &response,
                label: 0,
                epoch: store.epoch(),
                expires_at_ms: None,
            })
            .unwrap();
    }
    for scope in 0..20 {
        let key = KeyRef {
            scope: Scope::new(scope).unwrap(),
            text: b"SELECT 1",
        };
        let response = store.with(&key, key.digest(), |entry| entry.response().to_vec());
        assert_eq!(response, Some(scope.to_le_bytes().to_vec()));
    }
    let other = KeyRef {
        scope: Scope::new(0).unwrap(),
        text: b"select 1",
    };
    let stored = KeyRef {
        scope: Scope::new(0).unwrap(),
        text: b"SELECT 1",
    };
    assert!(store.with(&other, other.digest(), |_| ()).is_none());
    // A collision of digests, as an attacker could make one.
    assert!(store.with(&other, stored.digest(), |_| ()).is_none());
}

#[test]
fn a_newer_result_takes_the_place_of_an_older_one_and_not_the_reverse() {
    let store = Store::new(SMALL);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: b"SELECT 1",
    };
    let put = |offset, response: &[u8]| {
        store.insert(&NewEntry {
            key,
            tags: &[],
            as_of: as_of(offset),
            response,
            label: 0,
            epoch: store.epoch(),
            expires_at_ms: None,
        })
    };
    put(5, b"old").unwrap();
    let bytes = store.stats().entry_bytes;
    let stored = put(6, b"new").unwrap();
    assert_eq!(stored.evicted.of(EvictionReason::Replaced), 1);
    assert_eq!(put(5, b"old").unwrap_err(), NotStored::NewerStored);
    let response = store.with(&key, key.digest(), |entry| entry.response().to_vec());
    assert_eq!(response.as_deref(), Some(&b"new"[..]));
    assert_eq!(store.stats().entries, 1);
    assert_eq!(store.stats().entry_bytes, bytes);
}

#[test]
fn what_was_on_its_way_when_the_store_was_emptied_is_not_stored() {
    let store = Store::new(SMALL);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: b"SELECT 1",
    };
    let epoch = store.epoch();
    let put = |epoch| {
        store.insert(&NewEntry {
            key,
            tags: &[],
            as_of: as_of(1),
            response: b"",
            label: 0,
            epoch,
            expires_at_ms: None,
        })
    };
    put(epoch).unwrap();
    store.clear();
    assert_eq!(put(epoch).unwrap_err(), NotStored::Cleared);
    assert_eq!(store.stats().entries, 0);
    put(store.epoch()).unwrap();
    assert_eq!(store.stats().entries, 1);
}

#[test]
fn no_result_from_before_a_clear_is_found_after_it() {
    let store = Store::new(SMALL);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: b"SELECT 1",
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let epoch = store.epoch();
                    // Whether it is taken is what the other thread is about.
                    let _ = store.insert(&NewEntry {
                        key,
                        tags: &[],
                        as_of: as_of(1),
                        response: &epoch.to_le_bytes(),
                        label: 0,
                        epoch,
                        expires_at_ms: None,
                    });
                }
            });
        }
        for _ in 0..2_000 {
            store.clear();
            let now = store.epoch();
            let found = store.with(&key, key.digest(), |entry| entry.response().to_vec());
            if let Some(found) = found {
                assert_eq!(found, now.to_le_bytes());
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn what_cannot_be_stored_is_refused_with_a_reason() {
    let store = Store::new(SMALL);
    let long = vec![0; 16 * 1024 + 1];
    assert_eq!(insert(&store, 1, &long), Err(NotStored::TooLarge));
    let tags = vec![Tag::definitions(); 256];
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: b"SELECT 1",
    };
    let new = NewEntry {
        key,
        tags: &tags,
        as_of: as_of(1),
        response: b"",
        label: 0,
        epoch: store.epoch(),
        expires_at_ms: None,
    };
    assert_eq!(store.insert(&new).unwrap_err(), NotStored::TooManyTags);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: &long,
    };
    let new = NewEntry {
        key,
        tags: &[],
        as_of: as_of(1),
        response: b"",
        label: 0,
        epoch: store.epoch(),
        expires_at_ms: None,
    };
    assert_eq!(store.insert(&new).unwrap_err(), NotStored::TextTooLong);
    let tiny = Store::new(StoreLimits {
        memory_bytes_max: 100,
        ..SMALL
    });
    assert_eq!(insert(&tiny, 1, b"x"), Err(NotStored::NoRoom));
    assert_eq!(store.stats().entries, 0);
}

#[test]
fn hot_results_survive_a_scan() {
    let store = Store::new(SMALL);
    let response = [7; 200];
    for number in 0..200 {
        insert(&store, number, &response).unwrap();
        assert!(get(&store, number).is_some());
    }
    for number in 1000..20_000 {
        insert(&store, number, &response).unwrap();
        if number % 10 == 0 {
            get(&store, number / 10 % 200);
        }
    }
    let hot = (0..200)
        .filter(|number| get(&store, *number).is_some())
        .count();
    assert!(hot >= 190, "{hot} of 200 are left");
    let evicted = store.stats().evicted;
    assert!(evicted.of(EvictionReason::SmallQueue) > 15_000);
}

#[test]
fn a_result_that_comes_again_soon_after_its_eviction_stays() {
    let store = Store::new(StoreLimits { shards: 1, ..SMALL });
    for number in 0..3000 {
        insert(&store, number, &[0; 200]).unwrap();
    }
    let gone: Vec<u64> = (0..3000)
        .rev()
        .filter(|n| get(&store, *n).is_none())
        .take(100)
        .collect();
    for number in &gone {
        insert(&store, *number, &[0; 200]).unwrap();
    }
    // Never asked for since, and yet not in the way of the scan.
    for number in 10_000..12_000 {
        insert(&store, number, &[0; 200]).unwrap();
    }
    let back = gone
        .iter()
        .filter(|number| get(&store, **number).is_some())
        .count();
    assert!(back > 80, "{back} of 100");
}

#[test]
fn outdated_results_leave_first() {
    let is_outdated = Box::new(|entry: &Entry| {
        let digit = entry.text().last().copied();
        digit
            .filter(|digit| digit % 2 == 1)
            .map(|_| InvalidationReason::Changed)
    });
    let store = Store::with_judge(SMALL, is_outdated);
    let mut told = 0;
    for number in 0..1000 {
        let stored = insert(&store, number, &[0; 500]).unwrap();
        told += stored.outdated.len() as u64;
        // Asked for, and still worth nothing.
        get(&store, number);
    }
    let stats = store.stats();
    assert!(stats.evicted.of(EvictionReason::Outdated) > 200);
    assert_eq!(stats.evicted.of(EvictionReason::Outdated), told);
    let stored = insert(&store, 999, &[0; 500]).unwrap();
    assert_eq!(stored.evicted.of(EvictionReason::Replaced), 1);
    assert_eq!(stored.outdated, [(0, InvalidationReason::Changed)]);
    let stored = insert(&store, 998, &[0; 500]).unwrap();
    assert_eq!(stored.evicted.of(EvictionReason::Replaced), 1);
    assert_eq!(stored.outdated, []);
    assert_eq!(stats.evicted.of(EvictionReason::SmallQueue), 0);
}

#[test]
fn a_sweep_drops_what_is_outdated_and_nothing_else() {
    let store = Store::new(SMALL);
    for number in 0..600 {
        insert(&store, number, &[0; 100]).unwrap();
    }
    let is_outdated = |entry: &Entry| {
        let odd = entry.text().last().is_some_and(|digit| digit % 2 == 1);
        odd.then_some(InvalidationReason::Forgotten)
    };
    let (mut dropped, mut told) = (0, Vec::new());
    loop {
        let report = store.sweep_step(10, is_outdated, |entry, reason| {
            told.push((entry.text().to_vec(), reason));
        });
        assert!(report.examined <= 11);
        dropped += report.dropped.of(InvalidationReason::Forgotten);
        if report.finished {
            break;
        }
    }
    assert_eq!(dropped, 300);
    let odd = (1..600).step_by(2).map(|number| {
        let text = text(number).into_bytes();
        (text, InvalidationReason::Forgotten)
    });
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let mut odd: Vec<_> = odd.collect();
    odd.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(told, odd);
    for number in 0..600 {
        assert_eq!(get(&store, number).is_some(), number % 2 == 0);
    }
    assert_eq!(
        store.stats().invalidated.of(InvalidationReason::Forgotten),
        300
    );
}

#[test]
fn a_walk_shows_each_entry_once_and_changes_nothing() {
    let store = Store::new(SMALL);
    for number in 0..600 {
        insert(&store, number, &[0; 100]).unwrap();
    }
    let before = store.stats();
    for budget in [1, 10, 100_000] {
        let mut texts = HashSet::new();
        let mut next = Some(StoreCursor::default());
        while let Some(from) = next {
            let mut shown = 0;
            next = store.walk_step(from, budget, |entry| {
                shown += 1;
                assert!(texts.insert(entry.text().to_vec()));
                assert!(!entry.was_asked_for());
            });
            assert!(shown <= budget);
        }
        assert_eq!(texts.len(), 600);
    }
    assert_eq!(store.stats(), before);
    get(&store, 7).unwrap();
    let mut asked_for = 0;
    let end = store.walk_step(StoreCursor::default(), usize::MAX, |entry| {
        asked_for += usize::from(entry.was_asked_for());
    });
    assert_eq!((asked_for, end), (1, None));
}

#[test]
fn only_this_very_entry_is_removed() {
    let store = Store::new(SMALL);
    insert(&store, 1, b"old").unwrap();
    let old = get(&store, 1).unwrap();
    insert(&store, 1, b"new").unwrap();
    assert!(!store.remove_if_same(&old, InvalidationReason::Changed));
    let new = get(&store, 1).unwrap();
    assert_eq!(new.response(), b"new");
    assert!(store.remove_if_same(&new, InvalidationReason::Changed));
    assert!(get(&store, 1).is_none());
    assert!(!store.remove_if_same(&new, InvalidationReason::Changed));
}

#[test]
fn what_a_reader_holds_counts_until_it_lets_go() {
    let store = Store::new(StoreLimits { shards: 1, ..SMALL });
    let mut held = Vec::new();
    let mut refused = 0;
    for number in 0..200 {
        match insert(&store, number, &[0; 10_000]) {
            Ok(_) => held.extend(get(&store, number)),
            Err(NotStored::MemoryHeld) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(store.stats().bytes <= SMALL.memory_bytes_max);
    }
    assert!(refused > 100);
    let entries = store.stats().entries;
    assert!(entries > 10, "held memory empties nothing: {entries}");
    assert!(held.iter().all(|entry| entry.response() == [0; 10_000]));
    held.clear();
    store.reclaim();
    for number in 0..200 {
        insert(&store, number, &[0; 10_000]).unwrap();
    }
}

/// Several threads insert, look up, remove and sweep; the limit holds at every moment.
#[test]
fn the_limit_holds_while_threads_insert() {
    let store = Store::new(SMALL);
    let done = AtomicBool::new(false);
    let highest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u64)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..5_000_u64 {
                        let number = round * 7 % 900 + thread;
                        let length = usize::try_from(number * 37 % 9000).unwrap();
                        let fill = number.to_le_bytes()[0];
                        let result = insert(store, number, &vec![fill; length]);
                        assert!(matches!(result, Ok(_) | Err(NotStored::MemoryHeld)));
                        if let Some(entry) = get(store, number) {
                            assert_eq!(entry.response(), vec![fill; length]);
                            if round % 13 == 0 {
                                store.remove_if_same(&entry, InvalidationReason::Changed);
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let bytes = store.stats().bytes;
                assert!(bytes <= SMALL.memory_bytes_max);
                highest.fetch_max(bytes as u64, Ordering::Relaxed);
                store.sweep_step(50, |_| None, |_, _| ());
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(highest.load(Ordering::Relaxed) > SMALL.memory_bytes_max as u64 / 2);
    let stats = store.stats();
    assert!(stats.entries > 0);
    let left = stats.evicted.total() + stats.invalidated.total() + stats.entries as u64;
    assert_eq!(
        stats.stored, left,
        "every stored result is there or is counted as gone"
    );
}

#[derive(Clone, Debug)]
enum Operation {
    Insert { number: u64, length: usize },
    Get { number: u64 },
    Remove { number: u64 },
    Sweep { budget: usize, parity: u8 },
    Clear,
}

fn operation() -> impl Strategy<Value = Operation> {
    let number = 0_u64..400;
    let length = prop_oneof![8 => 0_usize..600, 2 => 0_usize..16_384];
    prop_oneof![
        60 => (number.clone(), length).prop_map(|(number, length)| Operation::Insert { number, length }),
        30 => number.clone().prop_map(|number| Operation::Get { number }),
        8 => number.prop_map(|number| Operation::Remove { number }),
        2 => (1_usize..200, 0_u8..2).prop_map(|(budget, parity)| Operation::Sweep { budget, parity }),
        1 => Just(Operation::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_hit_returns_what_was_stored_last_within_the_limit(
        operations in prop::collection::vec(operation(), 1..1500),
        memory_bytes_max in 20_000_usize..400_000,
        shards in 1_usize..5,
    ) {
        let limits = StoreLimits { memory_bytes_max, result_bytes_max: 16_384, shards };
        let store = Store::new(limits);
        let mut last: HashMap<u64, usize> = HashMap::new();
        for operation in operations {
            match operation {
                Operation::Insert { number, length } => {
                    let response = vec![number.to_le_bytes()[0]; length];
                    if insert(&store, number, &response).is_ok() {
                        last.insert(number, length);
                    }
                }
                Operation::Get { number } => {
                    if let Some(entry) = get(&store, number) {
                        let expected = vec![number.to_le_bytes()[0]; last[&number]];
                        prop_assert_eq!(entry.response(), expected);
                        prop_assert_eq!(entry.text().to_vec(), text(number).into_bytes());
                    }
                }
                Operation::Remove { number } => {
                    if let Some(entry) = get(&store, number) {
                        prop_assert!(store.remove_if_same(&entry, InvalidationReason::Changed));
                    }
                }
                Operation::Sweep { budget, parity } => {
                    let outdated = |entry: &Entry| {
                        let odd = entry.text().last().is_some_and(|digit| digit % 2 == parity);
                        odd.then_some(InvalidationReason::Changed)
                    };
                    store.sweep_step(budget, outdated, |_, _| ());
                }
                Operation::Clear => store.clear(),
            }
            let stats = store.stats();
            prop_assert!(stats.bytes <= memory_bytes_max);
            let left = stats.evicted.total() + stats.invalidated.total() + stats.entries as u64;
            prop_assert_eq!(stats.stored, left);
        }
        let index_bytes = {
            store.clear();
            store.reclaim();
            store.stats()
        };
        prop_assert_eq!(index_bytes.entries, 0);
        prop_assert_eq!(index_bytes.entry_bytes, 0);
    }

    #[test]
    fn positions_keep_their_parts_and_their_order(
        a in (0_u64..1 << 24, 0_u64..1 << 40),
        b in (0_u64..1 << 24, 0_u64..1 << 40),
    ) {
        let position = |(file, offset)| Position::new(file, offset).unwrap();
        prop_assert_eq!((position(a).file_number(), position(a).offset()), a);
        prop_assert_eq!(position(a).cmp(&position(b)), a.cmp(&b));
    }
}

#[test]
fn a_position_that_cannot_be_packed_is_none() {
    assert_eq!(Position::new(1 << 24, 0), None);
    assert_eq!(Position::new(0, 1 << 40), None);
    assert_eq!(Position::new(0, 0), Some(Position::ZERO));
}

#[test]
fn after_clear_only_the_indexes_are_accounted() {
    let store = Store::new(SMALL);
    for number in 0..1000 {
        insert(&store, number, &[0; 300]).unwrap();
    }
    store.clear();
    store.reclaim();
    let first = store.stats();
    assert_eq!((first.entries, first.entry_bytes), (0, 0));
    for number in 0..1000 {
        insert(&store, number, &[0; 300]).unwrap();
    }
    store.clear();
    store.reclaim();
    assert_eq!(
        store.stats().bytes,
        first.bytes,
        "nothing is lost from round to round"
    );
    assert!(first.bytes < SMALL.memory_bytes_max / 4);
}

fn wants(store: &Store, number: u64) -> bool {
    let text = text(number);
    let key = KeyRef {
        scope: Scope::new(1).unwrap(),
        text: text.as_bytes(),
    };
    store.wants(key.digest())
}

/// Stores as a session does: only what is wanted.
fn offer(store: &Store, number: u64) {
    if wants(store, number) {
        insert(store, number, &[7; 1000]).unwrap();
    }
}

#[test]
fn a_store_with_room_wants_everything() {
    let store = Store::new(SMALL);
    assert!((0..100).all(|number| wants(&store, number)));
}

#[test]
fn a_full_store_wants_what_comes_again_and_not_what_comes_once() {
    let store = Store::new(SMALL);
    (0..2_000).for_each(|number| offer(&store, number));
    let stored = store.stats().stored;
    (10_000..10_400).for_each(|number| offer(&store, number));
    let taken = store.stats().stored - stored;
    assert!(taken < 40, "{taken} of 400 that came once were stored");
    let again = (20_000..20_050).filter(|number| {
        offer(&store, *number);
        wants(&store, *number)
    });
    assert!(again.count() > 40, "what comes again is wanted");
}

#[test]
fn a_full_store_wants_the_successor_of_what_a_change_outdated() {
    let store = Store::new(SMALL);
    (0..2_000).for_each(|number| offer(&store, number));
    let held: Vec<u64> = (0..2_000).filter(|n| get(&store, *n).is_some()).collect();
    for number in held.iter().take(20) {
        let entry = get(&store, *number).unwrap();
        assert!(store.remove_if_same(&entry, InvalidationReason::Changed));
        assert!(wants(&store, *number));
    }
}

#[test]
fn a_store_that_was_emptied_has_room_again() {
    let store = Store::new(SMALL);
    (0..2_000).for_each(|number| offer(&store, number));
    store.clear();
    assert!((30_000..30_100).all(|number| wants(&store, number)));
}
