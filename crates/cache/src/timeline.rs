//! What the log has shown so far, and whether a result may still be served.
//!
//! # The rule
//!
//! An entry carries its tags and its `as_of`: the value of the visible watermark taken before its
//! query was sent. It may be served if and only if
//!
//! - the follower was live and in the entry's generation,
//! - no tag is fenced,
//! - `changed_at[tag] <= as_of` for each tag, and no change to everything lies above `as_of`,
//! - the follower has been proven to have applied all that the server had at some moment within
//!   the last `lag_ms_max` milliseconds.
//!
//! # What it promises
//!
//! - *After a write through this Remora*: a read that is sent to Remora after the writer got its
//!   answer never gets an older row. The fence is raised before the server can make the write
//!   visible, and lowered only when the follower has applied a position that the server gave after
//!   the answer, so by then `changed_at` holds the write's position `p`. An entry with
//!   `as_of >= p` was read after the write became visible; every other one is refused.
//! - *After a write elsewhere*: a row is served at most `lag_ms_max` milliseconds after a commit
//!   has replaced it, as the server counts its commits (one more for the rounding of the caller's
//!   clock, plus the time between the caller's look at its clock and the moment the bytes leave).
//!   This is a hard bound, whatever happens to the follower's connection; the usual delay is that
//!   of the log event.
//! - *A fill never poisons.* A change that a fill's read may have missed has a position above the
//!   watermark taken before it, whenever its event arrives, before or after the fill is stored.
//!
//! # Why the order of the loads matters
//!
//! A check loads, in this order: `proved_at`, the fences, `changed_at` and the floor, the state.
//! Each of these cells is written by others at any time, and the check takes no lock. Every load
//! here is `SeqCst` (on x86-64 a plain load; on 64-bit ARM `ldar`), every write a `SeqCst` store or
//! read-modify-write, so all of them have one total order that agrees with each thread's program
//! order. The argument for each pair of neighbours:
//!
//! - `proved_at` **before** `changed_at`. Whoever calls [`Timeline::prove`] for a moment `t` does
//!   it after the touches of all commits up to `t`. A reader that sees the proof therefore sees
//!   those touches, if it looks at them *afterwards*. In the other order a touch and its proof
//!   could both fall between the two loads, and a row that is too old would pass with the new
//!   proof.
//! - fences **before** `changed_at`. A fence is lowered after the touch of its write. A reader that
//!   finds it lowered finds the touch. A reader that finds it not yet raised began before the write
//!   was even sent, so it overlaps the write and may see the row of before.
//! - the state **last**. [`Timeline::restart`] first publishes the new generation (not live), then
//!   resets `proved_at`, clears `changed_at` and the floor, and sets the watermark. A reader that
//!   saw any of the reset cells must then see the new state, which isn't its entry's. A reader that
//!   finds its own generation live has seen none of them.
//!   A proof of an earlier generation can't vouch for an entry of a later one either: the entry's
//!   `as_of` was given out live, hence after a proof in its own generation, hence after the reset.
//!
//! [`Timeline::as_of`] loads the state, the watermark, and the state again. If both are the same,
//! live and of one generation, the watermark lies between them and is of that generation: `restart`
//! changes the state before the watermark, and goes live only after it.
//!
//! # Who may call what
//!
//! Readers: any thread, any time. Fences: any thread. [`Timeline::forget`]: any thread. `restart`,
//! `suspend`, `resume`, `touch`, `touch_everything`, `set_applied`: the follower, in the order of
//! the log, and all touches of a commit before the `set_applied` that passes it. `advance_visible`
//! and `prove` belong to questions that were asked of the server; each carries the [`Epoch`] in
//! which it was asked, so that an answer from before a restart can't speak of the log after it.
//! What the timeline can't know: whether a question went to the same server, and the same log, as
//! the follower reads. Positions of two logs don't compare, so a caller whose questions may have
//! reached another server (its connection was made anew, the server's identity or start has
//! changed) calls `suspend` before it believes an answer, and then `restart`.

use crate::answered::AnsweredFences;
use crate::position::Position;
use crate::reason::{InvalidationReason, Unservable};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, lock};
use crate::tag::Tag;

/// How large a timeline is and how old a proof may be.
#[derive(Copy, Clone, Debug)]
pub struct TimelineLimits {
    /// Slots of `changed_at`, rounded up to a power of two; 8 bytes each. Tags that share a slot
    /// outdate each other's results.
    pub tag_slots: usize,
    /// Slots of fences, rounded up to a power of two; about 8 bytes each. Tables that share a slot
    /// are fenced together.
    pub fence_slots: usize,
    /// For how many milliseconds a proof that the follower has caught up allows hits.
    pub lag_ms_max: u64,
}

/// Switches that break the rules of consistency, so that a test can show that it notices. The
/// product never sets them.
#[derive(Copy, Clone, Default, Debug)]
pub struct BrokenRules {
    /// The applied position takes the place of the visible watermark: in `as_of`, and where a fill
    /// is refused because the watermark is behind.
    pub watermark: bool,
    /// Raised fences are ignored by checks.
    pub fences: bool,
    /// A shape is used although commits above the result's `as_of` may have been touched without
    /// it.
    pub shapes: bool,
    /// How tags are made of conditions and rows.
    pub tags: BrokenTags,
    /// What is thought of code that a statement's text doesn't show.
    pub code: BrokenCode,
    /// What is thought of the server around the statements.
    pub surroundings: BrokenSurroundings,
    /// What is thought of a transaction's snapshot.
    pub snapshots: BrokenSnapshots,
    /// The rules about a late or replaced log.
    pub liveness: BrokenLiveness,
}

/// Faults about a late or replaced log, for tests.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub enum BrokenLiveness {
    /// None.
    #[default]
    Right,
    /// A proof never grows too old.
    OldProofs,
    /// A restart forgets nothing.
    Restarts,
    /// What an earlier process has saved counts as newer than every commit.
    Saved,
}

/// Faults about the snapshots of transactions, for tests.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub enum BrokenSnapshots {
    /// None.
    #[default]
    Right,
    /// A result may be newer than what the snapshot is known to show.
    Low,
    /// The follower needn't have applied everything that the snapshot may show.
    High,
    /// A result may be newer if none of its tags has changed since: its shape may be newer, too.
    Shapes,
    /// What the transaction has written itself counts for nothing.
    OwnWrites,
    /// A transaction of which the server doesn't know may get results of different moments.
    EarlyHits,
    /// The snapshot that the server makes then need not show what memory has answered.
    EarlySnapshot,
    /// It counts as showing that although a fence stands over it.
    EarlyFences,
    /// The first hit of a transaction that the server doesn't know of needn't prove that its read
    /// needs a snapshot.
    BoundTooSoon,
    /// The server is told to make the snapshot for any first read that memory has, even if the read
    /// itself would make none.
    FirstReads,
    /// The server is never sent a `SET` that was answered in its place.
    PendingSetsDropped,
}

/// Faults about the server around the statements, for tests.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub enum BrokenSurroundings {
    /// None.
    #[default]
    Right,
    /// The watermark passes commits of which nothing tells that they can be seen.
    LateCommits,
    /// What later checks of the server find counts for nothing.
    Facts,
    /// A session on another server counts as one on the server that is followed.
    Instance,
    /// A fence comes down when its client doesn't take the answer, not when the answer ends.
    SlowReaders,
}

/// Faults about code that a statement's text doesn't show, for tests.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub enum BrokenCode {
    /// None.
    #[default]
    Right,
    /// Functions that views call count as writing nothing.
    Views,
    /// Such code counts as changing nothing in the session that runs it.
    Session,
}

/// Faults in the making of tags, for tests.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub enum BrokenTags {
    /// None.
    #[default]
    Right,
    /// The image of a row before its change is ignored.
    BeforeImage,
    /// A change of a column that narrows a shape, and isn't read otherwise, is ignored.
    ConditionColumns,
    /// The last interval of a range is left out if there are several.
    IntervalBounds,
    /// Text is taken as it is, whatever its collation.
    TextFolding,
    /// Columns that must be equal narrow the preserved side of an outer join too.
    PreservedSide,
    /// Names in the condition of a join mean any table of the block.
    ScopeOfJoins,
    /// The deletion of a row counts as little as its insertion where a cascade may follow it.
    DeletedParents,
}

/// Since when a result is known to be right: the watermark before its query was sent, and the
/// generation in which that was so.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AsOf {
    generation: u32,
    position: Position,
}

impl AsOf {
    /// An `as_of` of the given parts, for an entry that gives back what it was given.
    pub(crate) const fn from_parts(generation: u32, position: Position) -> AsOf {
        AsOf {
            generation,
            position,
        }
    }

    /// The generation; it counts what was forgotten.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The visible watermark.
    pub const fn position(self) -> Position {
        self.position
    }
}

/// The stretch of the log between two restarts. Positions compare only within one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Epoch(u64);

/// On a cache line of its own (two, as they are fetched in pairs), so that readers of one cell
/// aren't disturbed by writers of another.
#[repr(align(128))]
struct Padded<T>(T);

/// What the follower's side must remember besides what readers see.
struct FollowerSide {
    epoch: u64,
    generation: u32,
    /// A proof has been given in this epoch.
    proven: bool,
    suspended: bool,
    /// Generations have run out; the timeline never goes live again.
    exhausted: bool,
}

impl FollowerSide {
    fn is_live(&self) -> bool {
        self.proven && !self.suspended && !self.exhausted
    }

    /// The word that readers compare: the generation, and whether it is live.
    fn state(&self) -> u64 {
        u64::from(self.generation) << 1 | u64::from(self.is_live())
    }

    fn next_generation(&mut self) {
        match self.generation.checked_add(1) {
            Some(next) => self.generation = next,
            None => self.exhausted = true,
        }
    }
}

/// Changes, watermark, fences and state of one followed server. See the module documentation.
pub struct Timeline {
    changed_at: Box<[AtomicU64]>,
    pub(crate) fence_slots: Box<[AtomicU32]>,
    lag_ms_max: u64,
    broken: BrokenRules,
    /// `generation << 1 | live`. Read by every hit, written seldom.
    state: AtomicU64,
    floor: AtomicU64,
    pub(crate) fence_all: AtomicU32,
    /// How many fences there are of each kind of doubt about definitions. Never read by a hit.
    pub(crate) doubts: [AtomicU32; 2],
    /// Fences that were dropped without an answer.
    pub(crate) cut_writes: AtomicU64,
    /// Read by every hit, written at each proof.
    proved_at_ms: Padded<AtomicU64>,
    /// How often the server was asked where its log ends. See [`crate::snapshot`].
    pub(crate) end_questions: AtomicU64,
    /// The last such question whose answer the follower has applied.
    pub(crate) end_proven: AtomicU64,
    /// Written at each commit, read by fills only.
    applied: Padded<AtomicU64>,
    /// The commit whose touches are being made; `applied` when they have been.
    applying: Padded<AtomicU64>,
    visible: AtomicU64,
    follower_side: Padded<Mutex<FollowerSide>>,
    pub(crate) answered: Mutex<AnsweredFences>,
}

impl Timeline {
    /// A timeline that is not live and knows nothing; [`Timeline::restart`] gives it a beginning.
    pub fn new(limits: TimelineLimits, broken: BrokenRules) -> Timeline {
        let tag_slots = limits.tag_slots.max(1).next_power_of_two();
        let fence_slots = limits.fence_slots.max(1).next_power_of_two();
        let side = FollowerSide {
            epoch: 0,
            generation: 0,
            proven: false,
            suspended: false,
            exhausted: false,
        };
        Timeline {
            changed_at: (0..tag_slots).map(|_| AtomicU64::new(0)).collect(),
            fence_slots: (0..fence_slots).map(|_| AtomicU32::new(0)).collect(),
            lag_ms_max: limits.lag_ms_max,
            broken,
            state: AtomicU64::new(side.state()),
            floor: AtomicU64::new(0),
            fence_all: AtomicU32::new(0),
            doubts: [AtomicU32::new(0), AtomicU32::new(0)],
            cut_writes: AtomicU64::new(0),
            proved_at_ms: Padded(AtomicU64::new(0)),
            end_questions: AtomicU64::new(0),
            end_proven: AtomicU64::new(0),
            applied: Padded(AtomicU64::new(0)),
            applying: Padded(AtomicU64::new(0)),
            visible: AtomicU64::new(0),
            follower_side: Padded(Mutex::new(side)),
            answered: Mutex::new(AnsweredFences::new(fence_slots)),
        }
    }

    // ---- The follower's side -------------------------------------------------------------------

    /// Begins anew at `at`: everything older is forgotten, the applied position and the watermark
    /// are `at`. Live only after a [`Timeline::prove`] that was asked for afterwards.
    ///
    /// `at` must be visible: every commit at or before it can be seen by a read sent now.
    pub fn restart(&self, at: Position) {
        self.restart_under_lock(&mut lock(&self.follower_side.0), at);
    }

    /// The same, if it has neither begun before nor forgotten anything. Gives the generation.
    pub(crate) fn restart_if_new(&self, at: Position) -> Option<u32> {
        let mut side = lock(&self.follower_side.0);
        if side.epoch != 0 || side.generation != 0 {
            return None;
        }
        self.restart_under_lock(&mut side, at);
        Some(side.generation)
    }

    fn restart_under_lock(&self, side: &mut FollowerSide, at: Position) {
        side.epoch += 1;
        side.proven = false;
        side.suspended = false;
        if self.broken.liveness != BrokenLiveness::Restarts {
            side.next_generation();
        }
        // First the state, then what it covers: see "Why the order of the loads matters".
        self.state.store(side.state(), Ordering::SeqCst);
        self.proved_at_ms.0.store(0, Ordering::SeqCst);
        for changed_at in &self.changed_at {
            // Most are 0, and a load is far cheaper than this store. Only the follower, which calls
            // this, sets others.
            if changed_at.load(Ordering::SeqCst) != 0 {
                changed_at.store(0, Ordering::SeqCst);
            }
        }
        self.floor.store(0, Ordering::SeqCst);
        self.applying.0.store(at.to_bits(), Ordering::SeqCst);
        self.applied.0.store(at.to_bits(), Ordering::SeqCst);
        self.visible.store(at.to_bits(), Ordering::SeqCst);
    }

    /// The follower is lost: hits and fills stop. Nothing is forgotten.
    pub fn suspend(&self) {
        let mut side = lock(&self.follower_side.0);
        side.suspended = true;
        self.state.store(side.state(), Ordering::SeqCst);
    }

    /// The follower goes on at the applied position, without a gap.
    ///
    /// If it was live it is so again at once. The commits that it has yet to catch up with are
    /// bounded as ever by the age of the last proof.
    pub fn resume(&self) {
        let mut side = lock(&self.follower_side.0);
        side.suspended = false;
        self.state.store(side.state(), Ordering::SeqCst);
    }

    /// Forgets all results, stored or in flight, because of a change that the log doesn't show
    /// (`sql_log_bin=0`). Positions, proofs and fences stay as they are.
    ///
    /// Any thread may call it. For a write through this Remora: after the server's answer and
    /// before the write's fence is given as answered. Then a fill that may have missed the write
    /// took its `as_of` before this call, and a later one reads after the answer.
    pub fn forget(&self) {
        let mut side = lock(&self.follower_side.0);
        side.next_generation();
        self.state.store(side.state(), Ordering::SeqCst);
    }

    /// The touches of the commit at `at` are about to be made. Whatever is looked up to make them
    /// is looked up after this call: see [`crate::Shapes`].
    ///
    /// A commit that comes again, after a lost connection, takes nothing back.
    pub fn begin_commit(&self, at: Position) {
        self.applying.0.fetch_max(at.to_bits(), Ordering::SeqCst);
    }

    /// The last commit whose touches have begun. What is published before this call is seen by the
    /// touches of every later commit.
    pub(crate) fn applying(&self) -> Position {
        Position::from_bits(self.applying.0.load(Ordering::SeqCst))
    }

    /// The rules that a test has broken.
    pub fn broken(&self) -> BrokenRules {
        self.broken
    }

    /// The present generation.
    pub(crate) fn generation(&self) -> u32 {
        generation_of(self.state.load(Ordering::SeqCst))
    }

    /// A commit at `at` touched `tag`. All touches of a commit come before the `set_applied` that
    /// passes it.
    pub fn touch(&self, tag: Tag, at: Position) {
        self.slot(tag).fetch_max(at.to_bits(), Ordering::SeqCst);
    }

    /// A commit at `at` may have touched anything.
    pub fn touch_everything(&self, at: Position) {
        self.floor.fetch_max(at.to_bits(), Ordering::SeqCst);
    }

    /// Everything at or before `at` has been touched.
    pub fn set_applied(&self, at: Position) {
        self.applied.0.store(at.to_bits(), Ordering::SeqCst);
    }

    /// How far the follower has come.
    pub fn applied(&self) -> Position {
        Position::from_bits(self.applied.0.load(Ordering::SeqCst))
    }

    /// The present stretch of the log. Take it before asking the server for a position.
    pub fn epoch(&self) -> Epoch {
        Epoch(lock(&self.follower_side.0).epoch)
    }

    /// Every commit at or before `visible` can be seen by a read sent now; the server said so to a
    /// question asked in `epoch`. A smaller position than the present one, or one of an earlier
    /// epoch, changes nothing.
    pub fn advance_visible(&self, epoch: Epoch, visible: Position) {
        let side = lock(&self.follower_side.0);
        if side.epoch == epoch.0 {
            self.visible.fetch_max(visible.to_bits(), Ordering::SeqCst);
        }
    }

    /// The visible watermark.
    pub fn visible(&self) -> Position {
        Position::from_bits(self.visible.load(Ordering::SeqCst))
    }

    /// The follower has applied all that the server had at the moment `asked_at_ms` of the caller's
    /// monotonic clock, read before the question was sent, in `epoch`. Makes a restarted timeline
    /// live. A proof of an earlier epoch proves nothing: it returns `false`.
    pub fn prove(&self, epoch: Epoch, asked_at_ms: u64) -> bool {
        let mut side = lock(&self.follower_side.0);
        if side.epoch != epoch.0 {
            return false;
        }
        let proved_at_ms = match self.broken.liveness {
            BrokenLiveness::OldProofs => u64::MAX,
            _ => asked_at_ms,
        };
        self.proved_at_ms
            .0
            .fetch_max(proved_at_ms, Ordering::SeqCst);
        side.proven = true;
        let state = side.state();
        // Most proofs change nothing here, and a store would take the line away from the readers.
        if self.state.load(Ordering::SeqCst) != state {
            self.state.store(state, Ordering::SeqCst);
        }
        true
    }

    /// Runs `act` if `epoch` is the present one. No restart can happen meanwhile.
    pub(crate) fn in_epoch(&self, epoch: Epoch, act: impl FnOnce()) {
        let side = lock(&self.follower_side.0);
        if side.epoch == epoch.0 {
            act();
        }
    }

    // ---- Readers -------------------------------------------------------------------------------

    /// Whether hits and fills are possible at all.
    pub fn is_live(&self) -> bool {
        self.state.load(Ordering::SeqCst) & 1 == 1
    }

    /// The moment of the last proof in this epoch, in milliseconds of the caller's clock; 0 before
    /// the first.
    pub fn proved_at_ms(&self) -> u64 {
        self.proved_at_ms.0.load(Ordering::SeqCst)
    }

    /// What a fill must carry, taken before its query is sent. `None`: not live, don't fill.
    pub fn as_of(&self) -> Option<AsOf> {
        let before = self.state.load(Ordering::SeqCst);
        let position = self.watermark();
        let after = self.state.load(Ordering::SeqCst);
        if before != after || after & 1 == 0 {
            return None;
        }
        Some(AsOf {
            generation: generation_of(after),
            position,
        })
    }

    /// Whether a result with these tags, filled now, would be refused because the watermark is
    /// still below a change that the follower has already seen. Then it pays to ask the server for
    /// a newer one first.
    pub fn needs_fresher_watermark(&self, tags: &[Tag]) -> bool {
        let visible = self.watermark().to_bits();
        self.floor.load(Ordering::SeqCst) > visible
            || tags
                .iter()
                .any(|tag| self.slot(*tag).load(Ordering::SeqCst) > visible)
    }

    /// What fills go by: the visible watermark, unless a test breaks that rule.
    ///
    /// Never more than the follower has applied. A larger `as_of` would be right for the rows that
    /// were read, but not for what they were read with: a definition, or a shape, that a commit
    /// between the two has replaced.
    fn watermark(&self) -> Position {
        if self.broken.watermark {
            self.applied()
        } else {
            self.visible().min(self.applied())
        }
    }

    /// Whether a result with this `as_of` and these tags may be served at `now_ms`, which the
    /// caller has read from its monotonic clock before the call.
    pub fn check(&self, as_of: AsOf, tags: &[Tag], now_ms: u64) -> Result<(), Unservable> {
        self.check_tags(as_of, tags.iter().copied(), now_ms)
    }

    /// The same as [`Timeline::check`], with the tags of an entry.
    #[inline]
    pub fn check_tags(
        &self,
        as_of: AsOf,
        tags: impl Iterator<Item = Tag> + Clone,
        now_ms: u64,
    ) -> Result<(), Unservable> {
        // The order of these four steps is the consistency argument: see the module documentation.
        let proved_at_ms = self.proved_at_ms.0.load(Ordering::SeqCst);
        if now_ms.saturating_sub(proved_at_ms) > self.lag_ms_max {
            return Err(self.explain(as_of, Unservable::Behind));
        }
        if !self.broken.fences && self.is_fenced(tags.clone()) {
            return Err(self.explain(as_of, Unservable::Fenced));
        }
        if let Some(reason) = self.changed_since(as_of.position, tags) {
            return Err(self.explain(as_of, reason));
        }
        if self.state.load(Ordering::SeqCst) != u64::from(as_of.generation) << 1 | 1 {
            return Err(self.explain(as_of, Unservable::Forgotten));
        }
        Ok(())
    }

    /// Whether a result can never be served again, for sweeps and evictions. It costs less than a
    /// check, and says nothing on whether the result may be served now.
    pub fn outdated(
        &self,
        as_of: AsOf,
        tags: impl Iterator<Item = Tag>,
    ) -> Option<InvalidationReason> {
        let changed = self.changed_since(as_of.position, tags);
        if generation_of(self.state.load(Ordering::SeqCst)) != as_of.generation {
            return Some(InvalidationReason::Forgotten);
        }
        changed.and_then(Unservable::invalidation)
    }

    /// Whether a fence stands over everything with this tag.
    pub fn has_fence(&self, tag: Tag) -> bool {
        self.is_fenced(std::iter::once(tag))
    }

    /// The tags of a result that a later commit touched, or something that shares a slot with them:
    /// to tell what outdated it. A commit to everything is in none.
    pub fn changed_tags(
        &self,
        as_of: AsOf,
        tags: impl Iterator<Item = Tag>,
    ) -> impl Iterator<Item = Tag> {
        let as_of = as_of.position.to_bits();
        tags.filter(move |tag| self.slot(*tag).load(Ordering::SeqCst) > as_of)
    }

    #[inline]
    pub(crate) fn is_fenced(&self, mut tags: impl Iterator<Item = Tag>) -> bool {
        self.fence_all.load(Ordering::SeqCst) != 0
            || tags.any(|tag| self.fence_slots[self.fence_slot(tag)].load(Ordering::SeqCst) != 0)
    }

    #[inline]
    pub(crate) fn changed_since(
        &self,
        as_of: Position,
        mut tags: impl Iterator<Item = Tag>,
    ) -> Option<Unservable> {
        let changed = tags.position(|tag| self.slot(tag).load(Ordering::SeqCst) > as_of.to_bits());
        if let Some(index) = changed {
            return Some(Unservable::Changed(index));
        }
        (self.floor.load(Ordering::SeqCst) > as_of.to_bits()).then_some(Unservable::Everything)
    }

    /// The reason that tells most: a timeline that isn't live, or an earlier generation, explains
    /// whatever else was found.
    #[cold]
    fn explain(&self, as_of: AsOf, found: Unservable) -> Unservable {
        let state = self.state.load(Ordering::SeqCst);
        if state & 1 == 0 {
            Unservable::NotLive
        } else if generation_of(state) != as_of.generation {
            Unservable::Forgotten
        } else if found == Unservable::Forgotten {
            // Not live for the moment of the check, live again now.
            Unservable::NotLive
        } else {
            found
        }
    }

    #[inline]
    fn slot(&self, tag: Tag) -> &AtomicU64 {
        let mask = self.changed_at.len() - 1;
        &self.changed_at[low_bits(tag.to_bits()) & mask]
    }

    /// The fence slot of a tag: other bits of the hash than the change's slot.
    #[inline]
    pub(crate) fn fence_slot(&self, tag: Tag) -> usize {
        let mask = self.fence_slots.len() - 1;
        low_bits(tag.to_bits() >> 32) & mask
    }
}

/// The low bits of a hash, as an index to be masked.
#[allow(clippy::cast_possible_truncation)]
const fn low_bits(hash: u64) -> usize {
    hash as usize
}

/// The generation in a state word, which holds one of 32 bits above the live bit.
#[allow(clippy::cast_possible_truncation)]
const fn generation_of(state: u64) -> u32 {
    (state >> 1) as u32
}
