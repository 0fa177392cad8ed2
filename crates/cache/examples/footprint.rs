//! What a stored result costs, and how long a look-up takes.
//!
//! `cargo run --release -p remora-cache --example footprint [results] [response bytes] [shards]`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use remora_cache::{
    BrokenRules, Entry, KeyRef, NewEntry, Position, Scope, Store, StoreLimits, Tag, Timeline,
    TimelineLimits,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SCOPE: Scope = Scope::new(1).unwrap();

/// Resident bytes of this process, from `/proc/self/statm`.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse::<usize>().ok());
    pages.expect("the second field is the resident pages") * 4096
}

fn argument(index: usize, default: usize) -> usize {
    std::env::args()
        .nth(index)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// A statement of 50 bytes.
fn text(number: usize) -> String {
    format!("SELECT c FROM sbtest1 WHERE id = {number:<17}")
}

fn main() {
    let results = argument(1, 200_000);
    let response = vec![b'x'; argument(2, 195)];
    let timeline = live_timeline();
    let before = resident_bytes();
    let store = Store::new(StoreLimits {
        memory_bytes_max: 8 << 30,
        result_bytes_max: 1 << 20,
        shards: argument(3, 64),
    });
    fill(&store, &timeline, results, &response);
    println!(
        "resident: {} bytes per result",
        (resident_bytes() - before) / results
    );
    let stats = store.stats();
    println!("accounted: {} bytes per result", stats.bytes / results);
    println!(
        "of that the entry itself: {} bytes",
        stats.entry_bytes / results
    );
    measure_look_ups(&store, &timeline, results);
}

fn live_timeline() -> Timeline {
    let limits = TimelineLimits {
        tag_slots: 1 << 16,
        fence_slots: 1 << 12,
        lag_ms_max: 1000,
    };
    let timeline = Timeline::new(limits, BrokenRules::default());
    timeline.restart(Position::ZERO);
    timeline.prove(timeline.epoch(), 1);
    timeline
}

fn fill(store: &Store, timeline: &Timeline, results: usize, response: &[u8]) {
    let as_of = timeline.as_of().expect("live after a proof");
    let tags = [Tag::table("sbtest", "sbtest1")];
    let begin = Instant::now();
    for number in 0..results {
        let text = text(number);
        let key = KeyRef {
            scope: SCOPE,
            text: text.as_bytes(),
        };
        store
            .insert(&NewEntry {
                key,
                tags: &tags,
                as_of,
                response,
                label: 0,
                epoch: store.epoch(),
                expires_at_ms: None,
            })
            .expect("there is room");
    }
    println!(
        "{} results of {} bytes",
        store.stats().entries,
        response.len()
    );
    println!(
        "insert: {} ns",
        begin.elapsed().as_nanos() / results as u128
    );
}

fn measure_look_ups(store: &Store, timeline: &Timeline, results: usize) {
    let texts: Vec<String> = (0..results).map(text).collect();
    let measure = |name: &str, step: usize, look_up: &dyn Fn(&KeyRef<'_>) -> u128| {
        let begin = Instant::now();
        let mut sum = 0;
        let mut number = 0;
        for _ in 0..results {
            number = (number + step) % results;
            sum ^= look_up(&KeyRef {
                scope: SCOPE,
                text: texts[number].as_bytes(),
            });
        }
        black_box(sum);
        println!(
            "{name}: {} ns",
            begin.elapsed().as_nanos() / results as u128
        );
    };
    let hit = |key: &KeyRef<'_>| {
        let serve = |entry: &Arc<Entry>| {
            timeline
                .check_tags(entry.as_of(), entry.tags(), 2)
                .expect("nothing has changed");
            entry.response().len() as u128
        };
        store.with(key, key.digest(), serve).expect("it is stored")
    };
    let find = |key: &KeyRef<'_>| {
        let serve = |entry: &Arc<Entry>| entry.response().len() as u128;
        store.with(key, key.digest(), serve).expect("it is stored")
    };
    // Far enough apart that neither the cache nor the prefetcher helps.
    let scattered = 7_919 * 31;
    measure("digest alone, scattered", scattered, &|key| key.digest());
    measure("first hit with check, scattered", scattered, &hit);
    measure("hit with check, scattered", scattered, &hit);
    measure("look-up without check, scattered", scattered, &find);
    measure("hit with check, the same result", 0, &hit);
    measure("digest alone, the same text", 0, &|key| key.digest());
}
