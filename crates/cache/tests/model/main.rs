//! The timeline, the fences and the shapes under every kind of interleaving that a scheduler can
//! find.
//!
//! The sources are compiled here against shuttle's atomics and mutexes, so that each load and store
//! is a point where another thread may go on. Around them: a server with a table of two rows, whose
//! events reach the follower before the rows can be seen; writers through the proxy, each with the
//! fences of its own row; writers elsewhere, also of definitions; the follower, which is lost and
//! comes back; the watermark task; readers that fill by key, with the tags of a shape when they
//! may; transactions at `REPEATABLE READ`, some of which memory answers before the server knows of
//! them, and the task that asks for them where the log ends.
//!
//! Shuttle runs each schedule sequentially consistent. That is what the sources ask for. The map of
//! tables in `shapes.rs` is the real one, which shuttle doesn't know: it only ever gets one table,
//! at the first read.
//!
//! `REMORA_SCHEDULES` sets how many schedules are tried, `SHUTTLE_RANDOM_SEED` which. A violation
//! is printed with its cast and its schedule; `REMORA_CAST` and `REMORA_SCHEDULE`, set to these,
//! run it again.
//!
//! Servers: none
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../../src/answered.rs"]
mod answered;
#[path = "../../src/early.rs"]
mod early;
#[path = "../../src/fence.rs"]
mod fence;
#[path = "../../src/position.rs"]
mod position;
#[path = "../../src/reason.rs"]
mod reason;
#[path = "../../src/shape.rs"]
mod shape;
#[path = "../../src/shapes.rs"]
#[allow(clippy::enum_variant_names)]
mod shapes;
#[path = "../../src/snapshot.rs"]
mod snapshot;
#[path = "../../src/tag.rs"]
mod tag;
#[path = "../../src/timeline.rs"]
mod timeline;
mod world;

mod sync {
    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> shuttle::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as PlainCounter, Ordering};

use shuttle::thread;

use timeline::{BrokenRules, BrokenSnapshots};
use world::{Cast, Faults, Seen, Slip, World};

const NOBODY: Cast = Cast {
    name: "nobody",
    writes_through_proxy: [0, 0],
    writes_elsewhere: 0,
    definitions: 0,
    rounds: 3,
    loses_connection: false,
    restart: false,
    reads_per_reader: 3,
    transactions: [0, 0],
    early_transactions: 0,
    end_questions: 0,
    evictions: 0,
    clock_ticks: 0,
};

const EVERYONE: Cast = Cast {
    name: "everyone",
    writes_through_proxy: [2, 1],
    writes_elsewhere: 1,
    definitions: 1,
    rounds: 10,
    loses_connection: true,
    restart: true,
    reads_per_reader: 5,
    transactions: [1, 0],
    early_transactions: 0,
    end_questions: 1,
    evictions: 1,
    clock_ticks: 6,
};

/// No clock, no restart: the fences, the shapes and the watermark alone.
const ONE_WRITER: Cast = Cast {
    name: "one writer",
    writes_through_proxy: [1, 0],
    ..NOBODY
};

/// Each has the fences of its own row: neither must make the other's reader old.
const TWO_WRITERS: Cast = Cast {
    name: "two writers",
    writes_through_proxy: [1, 1],
    rounds: 4,
    ..NOBODY
};

/// Shapes are dropped while they are used, and some of the log comes again.
const DEFINITIONS: Cast = Cast {
    name: "definitions",
    writes_through_proxy: [1, 0],
    definitions: 1,
    rounds: 5,
    loses_connection: true,
    reads_per_reader: 4,
    evictions: 1,
    ..NOBODY
};

/// No fences: proofs, restart and clock alone.
const WRITER_ELSEWHERE: Cast = Cast {
    name: "writer elsewhere",
    writes_elsewhere: 2,
    rounds: 4,
    restart: true,
    clock_ticks: 5,
    ..NOBODY
};

/// Snapshots alone: no reads outside.
const TRANSACTIONS: Cast = Cast {
    name: "transactions",
    writes_elsewhere: 1,
    rounds: 2,
    reads_per_reader: 0,
    transactions: [1, 1],
    end_questions: 1,
    ..NOBODY
};

/// With fences, a log that begins anew and transactions that stay open.
const TRANSACTIONS_OVER_A_RESTART: Cast = Cast {
    name: "transactions over a restart",
    writes_through_proxy: [1, 0],
    writes_elsewhere: 1,
    rounds: 4,
    restart: true,
    transactions: [2, 1],
    ..TRANSACTIONS
};

/// Both rows change, each by itself, and are read together.
const EARLY_TRANSACTIONS: Cast = Cast {
    name: "early transactions",
    writes_through_proxy: [1, 1],
    rounds: 3,
    reads_per_reader: 0,
    transactions: [1, 1],
    early_transactions: 2,
    end_questions: 1,
    ..NOBODY
};

const CASTS: [Cast; 8] = [
    EVERYONE,
    ONE_WRITER,
    TWO_WRITERS,
    DEFINITIONS,
    WRITER_ELSEWHERE,
    TRANSACTIONS,
    TRANSACTIONS_OVER_A_RESTART,
    EARLY_TRANSACTIONS,
];

/// One run of the whole scene.
fn scene(cast: Cast, faults: Faults, seen: &Arc<Seen>) {
    seen.schedules.fetch_add(1, Ordering::Relaxed);
    let world = Arc::new(World::new(faults, Arc::clone(seen)));
    let mut threads = Vec::new();
    let mut spawn = |times: usize, act: fn(&World, Cast)| {
        if times > 0 {
            let world = Arc::clone(&world);
            threads.push(thread::spawn(move || {
                (0..times).for_each(|_| act(&world, cast));
            }));
        }
    };
    spawn(cast.writes_through_proxy[0], |world, _| {
        world.write_through_proxy(0);
    });
    spawn(cast.writes_through_proxy[1], |world, _| {
        world.write_through_proxy(1);
    });
    spawn(cast.writes_elsewhere, |world, _| world.write_elsewhere());
    spawn(cast.definitions, |world, _| world.define_elsewhere());
    spawn(1, World::follow);
    spawn(1, World::keep_watermark);
    spawn(cast.reads_per_reader, |world, _| world.read(0));
    let of_the_second = usize::from(cast.writes_through_proxy[1] > 0);
    spawn(cast.reads_per_reader * of_the_second, |world, _| {
        world.read(1);
    });
    spawn(cast.reads_per_reader * (1 - of_the_second), |world, _| {
        world.read(0);
    });
    for transactions in cast.transactions {
        spawn(transactions, World::run_transaction);
    }
    spawn(cast.early_transactions, |world, _| world.run_early());
    spawn(cast.end_questions, |world, _| world.ask_for_end());
    spawn(cast.evictions, |world, _| world.evict());
    spawn(cast.clock_ticks, |world, _| world.tick());
    for thread in threads {
        thread.join().unwrap();
    }
}

/// How many schedules are tried in all; `REMORA_SCHEDULES` sets another number.
fn schedules() -> usize {
    std::env::var("REMORA_SCHEDULES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6_000)
}

/// The message of the violation, if one is found. The schedule is on the standard error output
/// then.
fn violation(casts: &[Cast], faults: Faults, schedules: usize) -> Option<String> {
    let seen = Arc::new(Seen::default());
    let playing = AssertUnwindSafe(std::cell::Cell::new(""));
    let run = AssertUnwindSafe(|| {
        let mut left = schedules;
        while left > 0 {
            // In turns, as each of the schedulers finds what the others miss.
            let runs = left.min(1_000 * casts.len());
            left -= runs;
            for &cast in casts {
                playing.set(cast.name);
                let [few, more, random] = [0; 3].map(|_| Arc::clone(&seen));
                let runs = (runs / casts.len()).div_ceil(3);
                shuttle::check_pct(move || scene(cast, faults, &few), runs, 2);
                shuttle::check_pct(move || scene(cast, faults, &more), runs, 4);
                shuttle::check_random(move || scene(cast, faults, &random), runs);
            }
        }
    });
    let result = catch_unwind(run);
    let count = |counter: &PlainCounter| counter.load(Ordering::Relaxed);
    eprintln!(
        "schedules {}, hits {}, of late versions {}, kept by tags {}, refused {}, coarse fills {}, \
         hits in snapshots {}, unproven {}, newer {}, early hits {}, earlier ones changed {}, opened {}",
        count(&seen.schedules),
        count(&seen.hits),
        count(&seen.hits_of_late_versions),
        count(&seen.hits_kept_by_tags),
        count(&seen.refused),
        count(&seen.coarse_fills),
        count(&seen.hits_in_snapshots),
        count(&seen.snapshot_unproven),
        count(&seen.newer_than_snapshot),
        count(&seen.early_hits),
        count(&seen.earlier_reads_changed),
        count(&seen.opened)
    );
    match result {
        Ok(()) => {
            let few = schedules as u64 / 100;
            assert!(count(&seen.hits_of_late_versions) > few);
            assert!(count(&seen.hits_kept_by_tags) > few / 4);
            assert!(count(&seen.refused) > few);
            assert!(count(&seen.coarse_fills) > few);
            assert!(count(&seen.hits_in_snapshots) > few);
            assert!(count(&seen.snapshot_unproven) > few / 4);
            assert!(count(&seen.newer_than_snapshot) > few / 20);
            assert!(count(&seen.early_hits) > few);
            assert!(count(&seen.opened) > few / 4);
            None
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or(panic.downcast_ref::<&str>().map(ToString::to_string));
            let cast = playing.get();
            Some(format!(
                "{} (REMORA_CAST='{cast}', REMORA_SCHEDULE: the failing schedule above)",
                text.unwrap_or_default()
            ))
        }
    }
}

#[test]
fn the_tags_of_the_model_do_not_meet() {
    world::assert_that_no_tags_meet();
}

#[test]
fn no_read_is_older_than_its_promise() {
    if let Ok(schedule) = std::env::var("REMORA_SCHEDULE") {
        let name = std::env::var("REMORA_CAST").unwrap_or_default();
        let cast = CASTS.into_iter().find(|cast| cast.name == name);
        let cast = cast.expect("REMORA_CAST names the schedule's cast");
        let seen = Arc::new(Seen::default());
        return shuttle::replay(
            move || scene(cast, Faults::default(), &seen),
            schedule.trim(),
        );
    }
    assert_eq!(violation(&CASTS, Faults::default(), schedules()), None);
}

/// The search ends at the first violation, so it may be given more schedules than it needs.
fn finds(what: &str, cast: Cast, faults: Faults) -> bool {
    let found = violation(&[cast], faults, 100 * schedules());
    found.is_some_and(|message| message.contains(what))
}

fn finds_an_old_row(cast: Cast, faults: Faults) -> bool {
    finds("STALE", cast, faults)
}

/// A row in a transaction that isn't that of its snapshot.
fn finds_a_torn_read(faults: Faults) -> bool {
    finds("TORN", TRANSACTIONS, faults)
}

fn finds_a_torn_early_read(faults: Faults) -> bool {
    finds("TORN", EARLY_TRANSACTIONS, faults)
}

fn of_snapshots(snapshots: BrokenSnapshots) -> Faults {
    rules(BrokenRules {
        snapshots,
        ..BrokenRules::default()
    })
}

fn rules(rules: BrokenRules) -> Faults {
    Faults {
        rules,
        ..Faults::default()
    }
}

#[test]
fn without_the_watermark_an_old_row_is_served() {
    let faults = rules(BrokenRules {
        watermark: true,
        ..BrokenRules::default()
    });
    assert!(finds_an_old_row(ONE_WRITER, faults));
}

#[test]
fn without_fences_an_old_row_is_served() {
    let faults = rules(BrokenRules {
        fences: true,
        ..BrokenRules::default()
    });
    assert!(finds_an_old_row(ONE_WRITER, faults));
}

#[test]
fn with_the_fences_of_another_row_an_old_row_is_served() {
    let faults = Faults {
        slip: Slip::FencesOfAnotherRow,
        ..Faults::default()
    };
    assert!(finds_an_old_row(ONE_WRITER, faults));
}

#[test]
fn with_a_shape_that_earlier_touches_did_not_know_an_old_row_is_served() {
    let faults = rules(BrokenRules {
        shapes: true,
        ..BrokenRules::default()
    });
    assert!(finds_an_old_row(ONE_WRITER, faults));
}

#[test]
fn without_a_second_look_at_the_shapes_an_old_row_is_served() {
    let faults = Faults {
        slip: Slip::NoSecondLook,
        ..Faults::default()
    };
    assert!(finds_an_old_row(ONE_WRITER, faults));
}

#[test]
fn with_shapes_dropped_after_their_commit_is_applied_an_old_row_is_served() {
    let faults = Faults {
        slip: Slip::RetiresLate,
        ..Faults::default()
    };
    assert!(finds_an_old_row(DEFINITIONS, faults));
}

#[test]
fn with_an_as_of_that_is_taken_after_the_shape_an_old_row_is_served() {
    let faults = Faults {
        slip: Slip::AsOfLate,
        ..Faults::default()
    };
    assert!(finds_an_old_row(DEFINITIONS, faults));
}

#[test]
fn with_results_newer_than_the_snapshot_a_read_is_torn() {
    assert!(finds_a_torn_read(of_snapshots(BrokenSnapshots::Low)));
}

#[test]
fn without_a_proof_of_what_the_snapshot_shows_a_read_is_torn() {
    assert!(finds_a_torn_read(of_snapshots(BrokenSnapshots::High)));
}

#[test]
fn with_a_question_counted_before_the_snapshot_is_made_a_read_is_torn() {
    assert!(finds_a_torn_read(Faults {
        slip: Slip::EarlyMadeAfter,
        ..Faults::default()
    }));
}

#[test]
fn with_a_proof_that_is_looked_at_after_the_changes_a_read_is_torn() {
    assert!(finds_a_torn_read(Faults {
        slip: Slip::LateProof,
        ..Faults::default()
    }));
}

#[test]
fn without_a_look_at_what_memory_has_answered_before_a_read_is_torn() {
    assert!(finds_a_torn_early_read(of_snapshots(
        BrokenSnapshots::EarlyHits
    )));
}

#[test]
fn with_a_snapshot_that_need_not_show_what_memory_has_answered_a_read_is_torn() {
    assert!(finds_a_torn_early_read(of_snapshots(
        BrokenSnapshots::EarlySnapshot
    )));
}
