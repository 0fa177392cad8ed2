//! The shapes that somebody has asked for, table by table: what the follower computes tags for.
//!
//! # Why a shape that is registered late serves no old row
//!
//! A result of a shape is right only if every commit above its `as_of` that concerns it touches its
//! tags. The follower touches those of the shapes that it finds registered; so a result may use a
//! shape only if each commit above its `as_of` was touched by a follower that had found the shape.
//!
//! - *Registering.* The follower says which commit it begins ([`Timeline::begin_commit`]) before it
//!   looks shapes up for it. Whoever registers a shape publishes it first and then reads the last
//!   commit that has begun: `since`. A commit that was touched without the shape had begun before
//!   the publication, so it is at or below `since`. A result uses the shape only if its `as_of` is
//!   at or above `since`, and of the same generation; otherwise it takes the coarse tag this time.
//! - *Rows come before their commit's position is known.* The follower notes the version of the
//!   table's list with which it read the rows, and compares it when the commit has begun; if it has
//!   changed the whole table is touched.
//! - *Retiring.* When a table's definition has changed, the follower, between `begin_commit` and
//!   [`Timeline::set_applied`] of that commit, touches the whole table and drops its shapes. A
//!   result that used one of them took its `as_of` before it looked the shape up. If the `as_of` is
//!   below the commit, the touch outdates the result. It can't be at or above it: an `as_of` is
//!   never above what has been applied, and after `set_applied` the shape isn't found any more.
//!   That holds for the first time that the commit is applied. If it comes again, after a lost
//!   connection, results with a larger `as_of` may use the table's shapes, and its touch wouldn't
//!   outdate them: so then nothing is dropped.
//!
//! The list of a table is read under a short lock: by misses and by the follower, never by a hit.

use std::sync::Arc;

use papaya::HashMap;

use crate::position::Position;
use crate::shape::{Shape, TableTags};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::tag::Tag;
use crate::timeline::{AsOf, Timeline};

/// How many shapes there may be.
#[derive(Clone, Copy, Debug)]
pub struct ShapesLimits {
    /// Of one table. From half of them on, new ones are registered as reading all columns.
    pub table_shapes_max: usize,
    /// Tables that have any.
    pub tables_max: usize,
}

/// Why a result must take the coarse tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooCoarse {
    /// The table has as many shapes as it may.
    TooManyShapes,
    /// As many tables have shapes as may.
    TooManyTables,
    /// The shape was registered after the result's `as_of`.
    TooYoung,
}

/// A registered shape.
struct Published<C> {
    shape: Arc<Shape<C>>,
    /// The commit from which on it is touched, and the generation in which that is known.
    since: (u32, Position),
}

/// The shape by which a read is tagged.
enum Choice<C> {
    /// The one in this place of the list.
    Registered(usize),
    /// One that isn't registered yet.
    New(Shape<C>),
}

struct List<C> {
    shapes: Vec<Published<C>>,
    /// What the follower reads: the same shapes.
    snapshot: ShapesSnapshot<C>,
}

/// The shapes of a table at one moment.
#[derive(Debug)]
pub struct ShapesSnapshot<C> {
    /// Grows with each change of the list.
    version: u64,
    shapes: Arc<[Arc<Shape<C>>]>,
}

impl<C> Clone for ShapesSnapshot<C> {
    fn clone(&self) -> Self {
        ShapesSnapshot {
            version: self.version,
            shapes: Arc::clone(&self.shapes),
        }
    }
}

impl<C> ShapesSnapshot<C> {
    /// Of a table that has none.
    pub fn none() -> ShapesSnapshot<C> {
        ShapesSnapshot {
            version: 0,
            shapes: Arc::default(),
        }
    }

    /// The shapes.
    pub fn shapes(&self) -> &[Arc<Shape<C>>] {
        &self.shapes
    }

    /// What differs as soon as the list has changed.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// All registered shapes. `C` says how a column's values are read.
pub struct Shapes<C> {
    timeline: Arc<Timeline>,
    limits: ShapesLimits,
    tables: HashMap<u64, Arc<Mutex<List<C>>>>,
    table_count: AtomicUsize,
    refused: AtomicU64,
}

impl<C: Clone + Eq + std::hash::Hash + Send + Sync + 'static> Shapes<C> {
    /// None yet.
    pub fn new(timeline: Arc<Timeline>, limits: ShapesLimits) -> Shapes<C> {
        Shapes {
            timeline,
            limits,
            tables: HashMap::new(),
            table_count: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The shape by which a result that was given `as_of` *before this call* may be tagged:
    /// `wanted`, or one that reads more columns. Registers it if it is new.
    ///
    /// # Errors
    /// Why the result must take the coarse tag.
    pub fn find(
        &self,
        table: TableTags,
        wanted: &Shape<C>,
        as_of: AsOf,
    ) -> Result<Arc<Shape<C>>, TooCoarse> {
        let list = self.list(table)?;
        let mut list = lock(&list);
        let found = self.find_or_publish(&mut list, table, wanted)?;
        let published = &mut list.shapes[found];
        if published.since.0 != as_of.generation() {
            published.since = self.now();
        }
        let (generation, since) = published.since;
        let is_old_enough = generation == as_of.generation() && as_of.position() >= since;
        if is_old_enough || self.timeline.broken().shapes {
            Ok(Arc::clone(&published.shape))
        } else {
            Err(TooCoarse::TooYoung)
        }
    }

    /// What [`Shapes::find`] would give, without registering anything: for telling about a read,
    /// not for making one. A shape that isn't registered yet counts as old enough.
    ///
    /// # Errors
    /// Why a result would take the coarse tag.
    pub fn foresee(
        &self,
        table: TableTags,
        wanted: &Shape<C>,
        as_of: AsOf,
    ) -> Result<Arc<Shape<C>>, TooCoarse> {
        let tables = self.tables.pin();
        let Some(list) = tables.get(&table.base()) else {
            if self.table_count.load(Ordering::Relaxed) >= self.limits.tables_max {
                return Err(TooCoarse::TooManyTables);
            }
            return match self.choose(&List::new(), table, wanted)? {
                Choice::Registered(_) => Err(TooCoarse::TooYoung),
                Choice::New(shape) => Ok(Arc::new(shape)),
            };
        };
        let list = lock(list);
        match self.choose(&list, table, wanted)? {
            Choice::New(shape) => Ok(Arc::new(shape)),
            Choice::Registered(at) => {
                let Published { shape, since } = &list.shapes[at];
                let is_of_then = since.0 == as_of.generation();
                if is_of_then && as_of.position() < since.1 {
                    return Err(TooCoarse::TooYoung);
                }
                Ok(Arc::clone(shape))
            }
        }
    }

    /// Registers a shape that results of an earlier process are tagged with. Before the follower
    /// applies anything: see [`crate::SavedResults`].
    ///
    /// # Errors
    /// There is no room for it. Then none of those results may be taken over.
    pub fn restore(&self, table: TableTags, shape: Shape<C>) -> Result<(), TooCoarse> {
        let list = self.list(table)?;
        let mut list = lock(&list);
        if list.place_of(&shape).is_some() {
            return Ok(());
        }
        if list.shapes.len() >= self.limits.table_shapes_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TooCoarse::TooManyShapes);
        }
        self.publish(&mut list, shape);
        Ok(())
    }

    /// All shapes, by the tag of their table. For a timeline that stands still.
    pub fn all(&self) -> Vec<(Tag, Vec<Arc<Shape<C>>>)> {
        let tables = self.tables.pin();
        let of_table = |(base, list): (&u64, &Arc<Mutex<List<C>>>)| {
            let shapes = lock(list).snapshot.shapes().to_vec();
            (Tag::from_bits(*base), shapes)
        };
        let all = tables.iter().map(of_table);
        all.filter(|(_, shapes)| !shapes.is_empty()).collect()
    }

    /// The shapes of a table. For the follower.
    pub fn snapshot(&self, table: TableTags) -> ShapesSnapshot<C> {
        let tables = self.tables.pin();
        match tables.get(&table.base()) {
            Some(list) => lock(list).snapshot.clone(),
            None => ShapesSnapshot::none(),
        }
    }

    /// Drops the shapes of a table whose definition has changed. For the follower: between the
    /// `begin_commit` and the `set_applied` of the commit at `at`, which touches the whole table.
    ///
    /// A commit that comes again drops nothing: its touches don't outdate the results that were
    /// read after it.
    pub fn retire(&self, table: TableTags, at: Position) {
        if at <= self.timeline.applied() {
            return;
        }
        let tables = self.tables.pin();
        if let Some(list) = tables.get(&table.base()) {
            let mut list = lock(list);
            if !list.shapes.is_empty() {
                list.shapes.clear();
                list.publish();
            }
        }
    }

    /// Drops the shapes of all tables: after a commit of everything, under the same rule.
    pub fn retire_all(&self, at: Position) {
        if at <= self.timeline.applied() {
            return;
        }
        for list in self.tables.pin().values() {
            let mut list = lock(list);
            if !list.shapes.is_empty() {
                list.shapes.clear();
                list.publish();
            }
        }
    }

    /// Shapes that were refused because a limit was reached, since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Tables that have, or had, shapes; and shapes.
    pub fn len(&self) -> (usize, usize) {
        let tables = self.tables.pin();
        let shapes = tables.values().map(|list| lock(list).shapes.len()).sum();
        (tables.len(), shapes)
    }

    fn list(&self, table: TableTags) -> Result<Arc<Mutex<List<C>>>, TooCoarse> {
        let tables = self.tables.pin();
        if let Some(list) = tables.get(&table.base()) {
            return Ok(Arc::clone(list));
        }
        if self.table_count.load(Ordering::Relaxed) >= self.limits.tables_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TooCoarse::TooManyTables);
        }
        let mut is_new = false;
        let list = tables.get_or_insert_with(table.base(), || {
            is_new = true;
            Arc::new(Mutex::new(List::new()))
        });
        if is_new {
            self.table_count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Arc::clone(list))
    }

    /// The place in the list of the shape, or of the one that stands for it.
    fn find_or_publish(
        &self,
        list: &mut List<C>,
        table: TableTags,
        wanted: &Shape<C>,
    ) -> Result<usize, TooCoarse> {
        match self.choose(list, table, wanted) {
            Ok(Choice::Registered(found)) => Ok(found),
            Ok(Choice::New(shape)) => Ok(self.publish(list, shape)),
            Err(why) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(why)
            }
        }
    }

    /// The shape, or the one that stands for it.
    fn choose(
        &self,
        list: &List<C>,
        table: TableTags,
        wanted: &Shape<C>,
    ) -> Result<Choice<C>, TooCoarse> {
        if let Some(found) = list.place_of(wanted) {
            return Ok(Choice::Registered(found));
        }
        let half = self.limits.table_shapes_max.div_ceil(2);
        if list.shapes.len() < half {
            return Ok(Choice::New(wanted.clone()));
        }
        let wide = wanted.reading_all(table);
        if let Some(found) = list.place_of(&wide) {
            return Ok(Choice::Registered(found));
        }
        if list.shapes.len() < self.limits.table_shapes_max {
            return Ok(Choice::New(wide));
        }
        Err(TooCoarse::TooManyShapes)
    }

    fn publish(&self, list: &mut List<C>, shape: Shape<C>) -> usize {
        list.shapes.push(Published {
            shape: Arc::new(shape),
            since: (0, Position::ZERO),
        });
        list.publish();
        let last = list.shapes.len() - 1;
        // The follower takes the list's lock to read it: it finds the shape from when the lock is
        // released. A commit that begins in between waits for it there.
        list.shapes[last].since = self.now();
        last
    }

    /// The last commit that has begun, and then the generation: if a restart comes between, the
    /// generation is that of a log of which no commit had begun when the shape was published.
    fn now(&self) -> (u32, Position) {
        let applying = self.timeline.applying();
        (self.timeline.generation(), applying)
    }
}

impl<C: Eq> List<C> {
    fn new() -> List<C> {
        List {
            shapes: Vec::new(),
            snapshot: ShapesSnapshot::none(),
        }
    }

    fn place_of(&self, wanted: &Shape<C>) -> Option<usize> {
        self.shapes
            .iter()
            .position(|published| *published.shape == *wanted)
    }

    fn publish(&mut self) {
        self.snapshot = ShapesSnapshot {
            version: self.snapshot.version + 1,
            shapes: self
                .shapes
                .iter()
                .map(|published| Arc::clone(&published.shape))
                .collect(),
        };
    }
}
