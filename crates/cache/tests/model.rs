//! The timeline and the fences under every kind of interleaving that a scheduler can find.
//!
//! The sources of the timeline are compiled here against shuttle's atomics and mutexes, so that each
//! load and store is a point where another thread may go on. Around them: a server with one row, whose
//! events reach the follower before the row can be seen; a writer through the proxy; a writer elsewhere;
//! the follower, which is lost and comes back; the watermark task; and two readers that fill.
//!
//! Shuttle runs each schedule sequentially consistent. That is what the sources ask for.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../src/fence.rs"]
mod fence;
#[path = "../src/position.rs"]
mod position;
#[path = "../src/reason.rs"]
mod reason;
#[path = "../src/tag.rs"]
mod tag;
#[path = "../src/timeline.rs"]
mod timeline;

mod sync {
    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> shuttle::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as PlainCounter;

use shuttle::thread;

use fence::FenceScope;
use position::Position;
use sync::{AtomicU64, Mutex, Ordering, lock};
use tag::Tag;
use timeline::{AsOf, BrokenRules, Timeline, TimelineLimits};

const LAG_MS_MAX: u64 = 2;

/// Who plays. Small casts reach the deep corners in fewer schedules.
#[derive(Copy, Clone)]
struct Cast {
    writes_through_proxy: usize,
    writes_elsewhere: usize,
    /// How often the follower looks at the log.
    rounds: usize,
    /// The follower is lost half-way, and what happened meanwhile is gone from the log.
    restart: bool,
    reads_per_reader: usize,
    clock_ticks: usize,
}

const EVERYONE: Cast = Cast {
    writes_through_proxy: 2,
    writes_elsewhere: 1,
    rounds: 10,
    restart: true,
    reads_per_reader: 5,
    clock_ticks: 6,
};

/// No clock, no restart: the fences and the watermark alone.
const ONE_WRITER: Cast = Cast {
    writes_through_proxy: 1,
    writes_elsewhere: 0,
    rounds: 3,
    restart: false,
    reads_per_reader: 3,
    clock_ticks: 0,
};

/// No fences: proofs, restart and clock alone.
const WRITER_ELSEWHERE: Cast = Cast {
    writes_through_proxy: 0,
    writes_elsewhere: 2,
    rounds: 4,
    restart: true,
    reads_per_reader: 3,
    clock_ticks: 5,
};

const CASTS: [Cast; 3] = [EVERYONE, ONE_WRITER, WRITER_ELSEWHERE];

/// What readers really got, over all schedules: a model in which nothing happens proves nothing.
#[derive(Default)]
struct Seen {
    schedules: PlainCounter,
    hits: PlainCounter,
    hits_of_late_versions: PlainCounter,
    refused: PlainCounter,
}

/// One row. Commit `n` makes it `n`.
#[derive(Default)]
struct Server {
    /// Commits whose events are out.
    logged: u64,
    /// Commits that a read can see.
    visible: u64,
    /// The commits before the log began anew. Positions count from there.
    log_begins_after: u64,
    /// For each visible commit, the clock soon after.
    visible_at_ms: Vec<u64>,
}

struct World {
    timeline: Arc<Timeline>,
    server: Mutex<Server>,
    /// The store: one key. What was read, and since when it is known to be right.
    stored: Mutex<Option<(AsOf, u64)>>,
    clock_ms: AtomicU64,
    /// The last commit through the proxy whose client has its answer.
    answered: AtomicU64,
    seen: Arc<Seen>,
}

impl Server {
    fn position_of(&self, commit: u64) -> Position {
        Position::new(1, commit - self.log_begins_after).unwrap()
    }

    fn make_visible(&mut self, commit: u64, now_ms: u64) {
        self.visible = self.visible.max(commit);
        while (self.visible_at_ms.len() as u64) < self.visible {
            self.visible_at_ms.push(now_ms);
        }
    }

    /// The log is gone, and a new one begins with small positions.
    fn begin_new_log(&mut self, now_ms: u64) -> Position {
        self.make_visible(self.logged, now_ms);
        self.log_begins_after = self.logged;
        self.position_of(self.logged)
    }
}

fn tags() -> [Tag; 1] {
    [Tag::table("shop", "orders")]
}

impl World {
    fn new(broken: BrokenRules, seen: Arc<Seen>) -> World {
        let limits = TimelineLimits {
            tag_slots: 1,
            fence_slots: 1,
            lag_ms_max: LAG_MS_MAX,
        };
        World {
            timeline: Arc::new(Timeline::new(limits, broken)),
            server: Mutex::new(Server::default()),
            stored: Mutex::new(None),
            clock_ms: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            seen,
        }
    }

    fn now_ms(&self) -> u64 {
        self.clock_ms.load(Ordering::SeqCst)
    }

    /// Commits: first the event is out, then the row is visible (and all rows committed before it),
    /// then this returns.
    fn commit(&self) -> u64 {
        let commit = {
            let mut server = lock(&self.server);
            server.logged += 1;
            server.logged
        };
        lock(&self.server).make_visible(commit, self.now_ms());
        commit
    }

    fn write_through_proxy(&self) {
        let fence = self.timeline.raise(FenceScope::Tables(tags().to_vec()));
        let commit = self.commit();
        self.answered.fetch_max(commit, Ordering::SeqCst);
        fence.answered();
    }

    fn follow(&self, cast: Cast) {
        let mut next = 1;
        for round in 0..cast.rounds {
            let logged = lock(&self.server).logged;
            while next <= logged {
                let position = lock(&self.server).position_of(next);
                self.timeline.touch(tags()[0], position);
                self.timeline.set_applied(position);
                next += 1;
            }
            if cast.restart && round == cast.rounds / 2 {
                self.timeline.suspend();
                let begin = {
                    let now_ms = self.now_ms();
                    let mut server = lock(&self.server);
                    next = server.logged + 1;
                    server.begin_new_log(now_ms)
                };
                self.timeline.restart(begin);
            } else if cast.restart && round == cast.rounds / 4 {
                self.timeline.suspend();
                self.timeline.resume();
            }
            thread::yield_now();
        }
    }

    fn keep_watermark(&self, cast: Cast) {
        for _ in 0..cast.rounds {
            let epoch = self.timeline.epoch();
            let batch = self.timeline.take_answered();
            let asked_at_ms = self.now_ms();
            let answer = {
                let server = lock(&self.server);
                server.position_of(server.visible)
            };
            self.timeline.advance_visible(epoch, answer);
            thread::yield_now();
            if self.timeline.applied() >= answer {
                self.timeline.prove(epoch, asked_at_ms);
                batch.lower();
            }
        }
    }

    fn read(&self) {
        let answered = self.answered.load(Ordering::SeqCst);
        let now_ms = self.now_ms();
        let stored = *lock(&self.stored);
        if let Some((as_of, version)) = stored {
            match self.timeline.check(as_of, &tags(), now_ms) {
                Ok(()) => return self.examine_hit(version, answered, now_ms),
                Err(_) => self.seen.refused.fetch_add(1, Ordering::Relaxed),
            };
        }
        if let Some(as_of) = self.timeline.as_of() {
            let version = lock(&self.server).visible;
            thread::yield_now();
            *lock(&self.stored) = Some((as_of, version));
        }
    }

    fn examine_hit(&self, version: u64, answered: u64, now_ms: u64) {
        self.seen.hits.fetch_add(1, Ordering::Relaxed);
        if version > 1 {
            self.seen
                .hits_of_late_versions
                .fetch_add(1, Ordering::Relaxed);
        }
        assert!(
            version >= answered,
            "STALE: commit {answered} was answered before the read, which got {version}"
        );
        let server = lock(&self.server);
        if let Some(replaced_at_ms) = server.visible_at_ms.get(usize::try_from(version).unwrap()) {
            assert!(
                now_ms <= replaced_at_ms + LAG_MS_MAX,
                "STALE: a read at {now_ms} ms got {version}, replaced at {replaced_at_ms} ms"
            );
        }
    }
}

/// One run of the whole scene.
fn scene(cast: Cast, broken: BrokenRules, seen: &Arc<Seen>) {
    seen.schedules.fetch_add(1, Ordering::Relaxed);
    let world = Arc::new(World::new(broken, Arc::clone(seen)));
    world.timeline.restart(Position::ZERO);
    world.timeline.prove(world.timeline.epoch(), 0);
    let spawn = |times: usize, act: fn(&World, Cast)| {
        let world = Arc::clone(&world);
        thread::spawn(move || (0..times).for_each(|_| act(&world, cast)))
    };
    let threads = [
        spawn(cast.writes_through_proxy, |world, _| {
            world.write_through_proxy();
        }),
        spawn(cast.writes_elsewhere, |world, _| {
            _ = world.commit();
        }),
        spawn(1, World::follow),
        spawn(1, World::keep_watermark),
        spawn(cast.reads_per_reader, |world, _| world.read()),
        spawn(cast.reads_per_reader, |world, _| world.read()),
        spawn(cast.clock_ticks, |world, _| {
            _ = world.clock_ms.fetch_add(1, Ordering::SeqCst);
        }),
    ];
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

/// The message of the violation, if one is found.
fn violation(casts: &[Cast], broken: BrokenRules, schedules: usize) -> Option<String> {
    let seen = Arc::new(Seen::default());
    let run = AssertUnwindSafe(|| {
        let runs = schedules / casts.len() / 2;
        for &cast in casts {
            let for_pct = Arc::clone(&seen);
            shuttle::check_pct(move || scene(cast, broken, &for_pct), runs, 4);
            let for_random = Arc::clone(&seen);
            shuttle::check_random(move || scene(cast, broken, &for_random), runs);
        }
    });
    let result = catch_unwind(run);
    eprintln!(
        "schedules {}, hits {}, of late versions {}, refused {}",
        seen.schedules.load(Ordering::Relaxed),
        seen.hits.load(Ordering::Relaxed),
        seen.hits_of_late_versions.load(Ordering::Relaxed),
        seen.refused.load(Ordering::Relaxed)
    );
    match result {
        Ok(()) => {
            assert!(seen.hits_of_late_versions.load(Ordering::Relaxed) > schedules as u64 / 100);
            assert!(seen.refused.load(Ordering::Relaxed) > schedules as u64 / 100);
            None
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Some(
                text.or(panic.downcast_ref::<&str>().map(ToString::to_string))
                    .unwrap_or_default(),
            )
        }
    }
}

#[test]
fn no_read_is_older_than_its_promise() {
    assert_eq!(violation(&CASTS, BrokenRules::default(), schedules()), None);
}

/// The search ends at the first violation, so it may be given more schedules than it needs.
fn finds_an_old_row(broken: BrokenRules) -> bool {
    let found = violation(&[ONE_WRITER], broken, 100 * schedules());
    found.is_some_and(|message| message.contains("STALE"))
}

#[test]
fn without_the_watermark_an_old_row_is_served() {
    assert!(finds_an_old_row(BrokenRules {
        watermark: true,
        ..BrokenRules::default()
    }));
}

#[test]
fn without_fences_an_old_row_is_served() {
    assert!(finds_an_old_row(BrokenRules {
        fences: true,
        ..BrokenRules::default()
    }));
}
