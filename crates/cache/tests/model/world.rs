//! The server, the proxy's parts and what is asked of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64 as PlainCounter;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::early::EarlyRead;
use crate::fence::FenceScope;
use crate::position::Position;
use crate::reason::Unservable;
use crate::shape::{ColumnSet, Shape, ShapeColumn, TableTags, Value};
use crate::shapes::{Shapes, ShapesLimits, ShapesSnapshot};
use crate::snapshot::Snapshot;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::tag::Tag;
use crate::timeline::{AsOf, BrokenRules, Timeline, TimelineLimits};

pub const LAG_MS_MAX: u64 = 2;
/// The two rows, by their keys. The first is the one that most readers ask for.
const KEYS: [i128; 2] = [5, 7];
const READS_PER_TRANSACTION: usize = 2;
/// Of one that memory answers.
const READS_EARLY: usize = 3;
/// Then the question is given up, as nobody may be left to write or to follow.
const LOOKS_AT_APPLIED: usize = 2;
/// `id` and `value`.
const COLUMNS: u16 = 2;
/// Above every position of the log.
const NEVER_APPLIED: Position = Position::new(2, 0).unwrap();

/// Who plays. Small casts reach the deep corners in fewer schedules.
#[derive(Copy, Clone, Debug)]
pub struct Cast {
    pub name: &'static str,
    /// Writes through the proxy to each of the rows.
    pub writes_through_proxy: [usize; 2],
    /// Writes elsewhere to the first row.
    pub writes_elsewhere: usize,
    /// Changes of the table's definition, elsewhere; each changes what all rows show.
    pub definitions: usize,
    /// How often the follower looks at the log.
    pub rounds: usize,
    /// The follower loses its connection, and some of the log comes again.
    pub loses_connection: bool,
    /// The follower is lost half-way, and what happened meanwhile is gone from the log.
    pub restart: bool,
    pub reads_per_reader: usize,
    /// Of each of two sessions.
    pub transactions: [usize; 2],
    /// Of a third session: those that memory answers before the server knows of them.
    pub early_transactions: usize,
    /// How often the server is asked where its log ends, by nobody in particular.
    pub end_questions: usize,
    /// Stored results that are evicted.
    pub evictions: usize,
    pub clock_ticks: usize,
}

/// What is done wrong, so that the model shows that it notices.
#[derive(Copy, Clone, Default, Debug)]
pub struct Faults {
    /// By the sources.
    pub rules: BrokenRules,
    /// By those who use them.
    pub slip: Slip,
}

#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Slip {
    #[default]
    None,
    /// The follower doesn't look whether the shapes have changed since it read the rows.
    NoSecondLook,
    /// The follower drops the shapes of a changed definition after it has said that the commit is
    /// applied.
    RetiresLate,
    /// A reader takes its `as_of` after it has looked the shape up.
    AsOfLate,
    /// A writer raises the fences of the other row's value.
    FencesOfAnotherRow,
    /// A transaction notes the last question about the log's end before its snapshot is made.
    EarlyMadeAfter,
    /// A transaction that lacked the proof alone looks at nothing else again.
    LateProof,
}

/// What readers really got, over all schedules: a model in which nothing happens proves nothing.
#[derive(Default)]
pub struct Seen {
    pub schedules: PlainCounter,
    pub hits: PlainCounter,
    pub hits_of_late_versions: PlainCounter,
    /// Hits of results that a fine tag kept although their table had changed since.
    pub hits_kept_by_tags: PlainCounter,
    pub refused: PlainCounter,
    /// Fills that had to take the table's tag.
    pub coarse_fills: PlainCounter,
    /// Of reads in transactions.
    pub hits_in_snapshots: PlainCounter,
    pub snapshot_unproven: PlainCounter,
    pub newer_than_snapshot: PlainCounter,
    /// In transactions of which the server didn't know yet.
    pub early_hits: PlainCounter,
    pub earlier_reads_changed: PlainCounter,
    /// Reads of those that hold in the snapshot that the server made then.
    pub opened: PlainCounter,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Change {
    Row(usize),
    Definition,
}

impl Change {
    fn concerns(self, row: usize) -> bool {
        self == Change::Definition || self == Change::Row(row)
    }
}

/// A table of two rows. Commit `n` makes the row that it changes `n`.
#[derive(Default)]
struct Server {
    /// Commits whose events are out: the first is number 1.
    log: Vec<Change>,
    /// Commits that a read can see.
    visible: u64,
    /// The commits before the log began anew. Positions count from there.
    log_begins_after: u64,
    /// For each visible commit, the clock soon after.
    visible_at_ms: Vec<u64>,
}

impl Server {
    fn logged(&self) -> u64 {
        self.log.len() as u64
    }

    fn change(&self, commit: u64) -> Change {
        self.log[usize::try_from(commit - 1).unwrap()]
    }

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
        self.make_visible(self.logged(), now_ms);
        self.log_begins_after = self.logged();
        self.position_of(self.logged())
    }

    /// What a read of the row shows: the last visible commit that concerns it.
    fn version_of(&self, row: usize) -> u64 {
        self.version_in(row, self.visible)
    }

    /// What it shows in a snapshot of the commits up to `last`.
    fn version_in(&self, row: usize, last: u64) -> u64 {
        let mut shown = (1..=last).rev();
        shown
            .find(|commit| self.change(*commit).concerns(row))
            .unwrap_or(0)
    }

    /// When that version was replaced; `None` if it is the last.
    fn replaced_at_ms(&self, row: usize, version: u64) -> Option<u64> {
        let mut later = version + 1..=self.visible;
        let replaced_by = later.find(|commit| self.change(*commit).concerns(row))?;
        Some(self.visible_at_ms[usize::try_from(replaced_by - 1).unwrap()])
    }
}

#[derive(Clone)]
struct Stored {
    as_of: AsOf,
    tags: Vec<Tag>,
    version: u64,
    is_fine: bool,
}

pub struct World {
    timeline: Arc<Timeline>,
    shapes: Shapes<u8>,
    server: Mutex<Server>,
    /// The store: a key for each row.
    stored: Mutex<[Option<Stored>; 2]>,
    /// What transactions have read of each row.
    exact: Mutex<[Option<Stored>; 2]>,
    clock_ms: AtomicU64,
    /// For each row, the last commit through the proxy whose client has its answer.
    answered: [AtomicU64; 2],
    faults: Faults,
    seen: Arc<Seen>,
}

/// A name with which the tags that the model tells apart have slots of their own.
fn table() -> TableTags {
    TableTags::new("shop", "t4")
}

/// `SELECT value FROM orders WHERE id = …`.
fn by_key() -> Shape<u8> {
    let mut reads = ColumnSet::EMPTY;
    reads.insert(1);
    Shape::equal(
        table(),
        &[ShapeColumn {
            ordinal: 0,
            codec: 0,
        }],
        reads,
    )
}

fn fences_of_row(row: usize) -> Vec<Tag> {
    let mut fences = Vec::new();
    // No read of the model has a range.
    let value = Value::Integer(KEYS[row]).hash();
    table().fences_of_value(0, value, None, COLUMNS, &mut fences);
    fences
}

/// What the follower does with a commit, once it has begun it.
struct Commit {
    position: Position,
    change: Change,
    rows_read_with: ShapesSnapshot<u8>,
    tags: Vec<Tag>,
}

/// Where much time may pass: a schedule in which others run here needs to be likely.
fn dawdle() {
    if thread_rng().gen_bool(0.5) {
        thread::yield_now();
    }
}

impl World {
    pub fn new(faults: Faults, seen: Arc<Seen>) -> World {
        let limits = TimelineLimits {
            tag_slots: TAG_SLOTS,
            fence_slots: FENCE_SLOTS,
            lag_ms_max: LAG_MS_MAX,
        };
        let timeline = Arc::new(Timeline::new(limits, faults.rules));
        let server = Server::default();
        timeline.restart(server.position_of(0));
        timeline.prove(timeline.epoch(), 0);
        let limits = ShapesLimits {
            table_shapes_max: 2,
            tables_max: 1,
        };
        World {
            shapes: Shapes::new(Arc::clone(&timeline), limits),
            timeline,
            server: Mutex::new(server),
            stored: Mutex::new([None, None]),
            exact: Mutex::new([None, None]),
            clock_ms: AtomicU64::new(0),
            answered: [AtomicU64::new(0), AtomicU64::new(0)],
            faults,
            seen,
        }
    }

    pub fn tick(&self) {
        self.clock_ms.fetch_add(1, Ordering::SeqCst);
    }

    fn now_ms(&self) -> u64 {
        self.clock_ms.load(Ordering::SeqCst)
    }

    /// Commits: first the event is out, then the row is visible (and all rows committed before it),
    /// then this returns.
    fn commit(&self, change: Change) -> u64 {
        let commit = {
            let mut server = lock(&self.server);
            server.log.push(change);
            server.logged()
        };
        dawdle();
        lock(&self.server).make_visible(commit, self.now_ms());
        commit
    }

    pub fn write_elsewhere(&self) {
        self.commit(Change::Row(0));
    }

    pub fn define_elsewhere(&self) {
        self.commit(Change::Definition);
    }

    pub fn write_through_proxy(&self, row: usize) {
        let fenced = if self.faults.slip == Slip::FencesOfAnotherRow {
            1 - row
        } else {
            row
        };
        let fence = self
            .timeline
            .raise(FenceScope::Tables(fences_of_row(fenced)));
        let commit = self.commit(Change::Row(row));
        self.answered[row].fetch_max(commit, Ordering::SeqCst);
        fence.answered();
    }

    pub fn evict(&self) {
        lock(&self.stored)[0] = None;
        thread::yield_now();
    }

    pub fn follow(&self, cast: Cast) {
        let mut next = 1;
        for round in 0..cast.rounds {
            while next <= lock(&self.server).logged() {
                self.apply(next);
                next += 1;
            }
            if cast.restart && round == cast.rounds / 2 {
                self.timeline.suspend();
                let begin = {
                    let now_ms = self.now_ms();
                    let mut server = lock(&self.server);
                    next = server.logged() + 1;
                    server.begin_new_log(now_ms)
                };
                self.timeline.restart(begin);
            } else if cast.loses_connection && round % 2 == 1 {
                self.timeline.suspend();
                // Two commits come again, if the log has as many.
                next = next
                    .saturating_sub(2)
                    .max(lock(&self.server).log_begins_after + 1);
                self.timeline.resume();
            }
            thread::yield_now();
        }
    }

    /// As the product does: the rows come first, then the event that commits them.
    fn apply(&self, number: u64) {
        let (position, change) = {
            let server = lock(&self.server);
            (server.position_of(number), server.change(number))
        };
        let rows_read_with = self.shapes.snapshot(table());
        let tags = match change {
            Change::Row(row) => {
                let value = Value::Integer(KEYS[row]).hash();
                let shapes = rows_read_with.shapes().iter();
                shapes.map(|shape| shape.tag(table(), &[value])).collect()
            }
            Change::Definition => Vec::new(),
        };
        dawdle();
        self.timeline.begin_commit(position);
        self.touch(&Commit {
            position,
            change,
            rows_read_with,
            tags,
        });
        if position > self.timeline.applied() {
            self.timeline.set_applied(position);
        }
        if self.faults.slip == Slip::RetiresLate && change == Change::Definition {
            dawdle();
            self.shapes.retire(table(), NEVER_APPLIED);
        }
    }

    fn touch(&self, commit: &Commit) {
        let Commit { position: at, .. } = *commit;
        let is_definition = commit.change == Change::Definition;
        if is_definition && self.faults.slip != Slip::RetiresLate {
            self.shapes.retire(table(), at);
        }
        for tag in &commit.tags {
            self.timeline.touch(*tag, at);
        }
        self.timeline.touch(table().any(), at);
        let has_changed = || {
            let version = self.shapes.snapshot(table()).version();
            version != commit.rows_read_with.version() && self.faults.slip != Slip::NoSecondLook
        };
        if is_definition || has_changed() {
            self.timeline.touch(table().whole(), at);
        }
    }

    pub fn keep_watermark(&self, cast: Cast) {
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

    pub fn read(&self, row: usize) {
        let answered = self.answered[row].load(Ordering::SeqCst);
        let now_ms = self.now_ms();
        let stored = lock(&self.stored)[row].clone();
        if let Some(stored) = stored {
            match self.timeline.check(stored.as_of, &stored.tags, now_ms) {
                Ok(()) => return self.examine_hit(row, &stored, answered, now_ms),
                Err(_) => self.seen.refused.fetch_add(1, Ordering::Relaxed),
            };
        }
        self.fill(row);
    }

    fn fill(&self, row: usize) {
        let Some(mut as_of) = self.timeline.as_of() else {
            return;
        };
        dawdle();
        let fine = self.shape_of_reads(as_of);
        if self.faults.slip == Slip::AsOfLate {
            dawdle();
            let Some(late) = self.timeline.as_of() else {
                return;
            };
            as_of = late;
        }
        let tags = self.tags_of_read(row, fine.as_deref());
        let version = lock(&self.server).version_of(row);
        thread::yield_now();
        lock(&self.stored)[row] = Some(Stored {
            as_of,
            tags,
            version,
            is_fine: fine.is_some(),
        });
    }

    fn shape_of_reads(&self, as_of: AsOf) -> Option<Arc<Shape<u8>>> {
        self.shapes.find(table(), &by_key(), as_of).ok()
    }

    fn tags_of_read(&self, row: usize, fine: Option<&Shape<u8>>) -> Vec<Tag> {
        if let Some(shape) = fine {
            let value = Value::Integer(KEYS[row]).hash();
            vec![
                table().whole(),
                table().column(0),
                shape.tag(table(), &[value]),
            ]
        } else {
            self.seen.coarse_fills.fetch_add(1, Ordering::Relaxed);
            vec![table().any()]
        }
    }

    fn examine_hit(&self, row: usize, stored: &Stored, answered: u64, now_ms: u64) {
        let count = |counter: &PlainCounter| _ = counter.fetch_add(1, Ordering::Relaxed);
        let version = stored.version;
        count(&self.seen.hits);
        if version > 1 {
            count(&self.seen.hits_of_late_versions);
        }
        let any = [table().any()];
        if stored.is_fine
            && self
                .timeline
                .outdated(stored.as_of, any.into_iter())
                .is_some()
        {
            count(&self.seen.hits_kept_by_tags);
        }
        assert!(
            version >= answered,
            "STALE: commit {answered} was answered before the read, which got {version}"
        );
        if let Some(replaced_at_ms) = lock(&self.server).replaced_at_ms(row, version) {
            assert!(
                now_ms <= replaced_at_ms + LAG_MS_MAX,
                "STALE: a read at {now_ms} ms got {version}, replaced at {replaced_at_ms} ms"
            );
        }
    }
}

/// Transactions at `REPEATABLE READ`. They read the first row, and the second if it ever changes.
impl World {
    pub fn run_transaction(&self, cast: Cast) {
        let Some(low) = self.timeline.as_of() else {
            return;
        };
        let asked_before = self.timeline.end_questions();
        // The server takes the snapshot, and its first row comes.
        let shown = lock(&self.server).visible;
        let made_after = match self.faults.slip {
            Slip::EarlyMadeAfter => asked_before,
            _ => self.timeline.end_questions(),
        };
        let snapshot = Snapshot { low, made_after };
        self.ask_for_end();
        let rows = 1 + usize::from(cast.writes_through_proxy[1] > 0);
        for _ in 0..READS_PER_TRANSACTION {
            self.read_in(thread_rng().gen_range(0..rows), snapshot, shown);
        }
    }

    fn read_in(&self, row: usize, snapshot: Snapshot, shown: u64) {
        let version = lock(&self.server).version_in(row, shown);
        let now_ms = self.now_ms();
        let stored = lock(&self.exact)[row].clone();
        if let Some(stored) = stored {
            let count = |counter: &PlainCounter| _ = counter.fetch_add(1, Ordering::Relaxed);
            let Stored { as_of, tags, .. } = &stored;
            let tags = tags.iter().copied();
            let check = self
                .timeline
                .check_in_snapshot(*as_of, tags, now_ms, snapshot);
            let is_late_proof = check == Err(Unservable::SnapshotUnproven)
                && self.faults.slip == Slip::LateProof
                && self.timeline.covers(snapshot);
            match check {
                Err(Unservable::SnapshotUnproven) if !is_late_proof => {
                    count(&self.seen.snapshot_unproven);
                }
                Err(Unservable::NewerThanSnapshot) => count(&self.seen.newer_than_snapshot),
                Err(_) if !is_late_proof => count(&self.seen.refused),
                _ => {
                    count(&self.seen.hits_in_snapshots);
                    assert_eq!(
                        stored.version, version,
                        "TORN: {as_of:?} in {snapshot:?} that shows the commits up to {shown}"
                    );
                    return;
                }
            }
        }
        self.fill_in(row, snapshot, version);
    }

    fn fill_in(&self, row: usize, snapshot: Snapshot, version: u64) {
        let as_of = snapshot.low;
        let fine = self.shape_of_reads(as_of);
        let tags = self.tags_of_read(row, fine.as_deref());
        if self.timeline.covers(snapshot) {
            lock(&self.exact)[row] = Some(Stored {
                as_of,
                tags,
                version,
                is_fine: fine.is_some(),
            });
        }
    }

    /// A transaction that memory answers; then the server opens it.
    pub fn run_early(&self) {
        let mut reads = Vec::new();
        for _ in 0..READS_EARLY {
            self.read_early(thread_rng().gen_range(0..2), &mut reads);
            dawdle();
        }
        let Some(low) = self.timeline.as_of() else {
            return;
        };
        let shown = lock(&self.server).visible;
        let made_after = self.timeline.end_questions();
        let snapshot = Snapshot { low, made_after };
        self.ask_for_end();
        for (row, version, read) in reads {
            if self.timeline.holds_in(&read, snapshot) {
                self.seen.opened.fetch_add(1, Ordering::Relaxed);
                assert_eq!(
                    version,
                    lock(&self.server).version_in(row, shown),
                    "TORN: {read:?} in {snapshot:?} that shows the commits up to {shown}"
                );
            }
        }
    }

    fn read_early(&self, row: usize, reads: &mut Vec<(usize, u64, EarlyRead)>) {
        let now_ms = self.now_ms();
        let Some(stored) = lock(&self.exact)[row].clone() else {
            return;
        };
        let Stored { as_of, tags, .. } = &stored;
        let check = self.timeline.check(*as_of, tags, now_ms);
        let count = |counter: &PlainCounter| _ = counter.fetch_add(1, Ordering::Relaxed);
        let earlier = || {
            self.timeline
                .check_early(reads.iter().map(|(_, _, read)| read))
        };
        match check.and_then(|()| earlier()) {
            Ok(()) => count(&self.seen.early_hits),
            Err(Unservable::EarlierRead) => return count(&self.seen.earlier_reads_changed),
            Err(_) => return count(&self.seen.refused),
        }
        let read = EarlyRead {
            as_of: *as_of,
            tags: tags.clone().into(),
        };
        reads.push((row, stored.version, read));
        let server = lock(&self.server);
        let mut moments = 0..=server.visible;
        let shows_all = |shown: u64| {
            let mut all = reads.iter();
            all.all(|(row, version, _)| server.version_in(*row, shown) == *version)
        };
        assert!(
            moments.any(shows_all),
            "TORN: no moment up to {} shows {reads:?}",
            server.visible
        );
    }

    pub fn ask_for_end(&self) {
        let epoch = self.timeline.epoch();
        let question = self.timeline.begin_end_question();
        let end = {
            let server = lock(&self.server);
            server.position_of(server.logged())
        };
        for _ in 0..LOOKS_AT_APPLIED {
            if self.timeline.applied() >= end {
                return self.timeline.prove_end(epoch, question);
            }
            dawdle();
        }
    }
}

/// So few that clearing them takes few steps, and so many that the model's tags don't meet.
const TAG_SLOTS: usize = 16;
const FENCE_SLOTS: usize = 16;

/// Tags that share a slot outdate each other's results, which would hide faults.
pub fn assert_that_no_tags_meet() {
    let slots = |tags: &[Tag], shift: u32, slots: usize| {
        let slot = |tag: &Tag| (tag.to_bits() >> shift) & (slots as u64 - 1);
        tags.iter()
            .map(slot)
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    let value = |key| by_key().tag(table(), &[Value::Integer(key).hash()]);
    let read = [
        table().any(),
        table().whole(),
        table().column(0),
        value(KEYS[0]),
        value(KEYS[1]),
    ];
    assert_eq!(slots(&read, 0, TAG_SLOTS), read.len());
    assert_eq!(slots(&read, 32, FENCE_SLOTS), read.len());
    let [own, other] = [value(KEYS[0]), value(KEYS[1])].map(|tag| [tag]);
    let with = |tag: &[Tag]| [&fences_of_row(0)[..], tag].concat();
    let alone = slots(&fences_of_row(0), 32, FENCE_SLOTS);
    assert_eq!(slots(&with(&own), 32, FENCE_SLOTS), alone);
    assert_eq!(slots(&with(&other), 32, FENCE_SLOTS), alone + 1);
    let whole = [table().whole()];
    assert_eq!(slots(&with(&whole), 32, FENCE_SLOTS), alone + 1);
}
