//! The tags that a commit touches.
//!
//! The rows of a transaction come before the event that commits it. Their tags are computed as they
//! come and kept until then; see [`remora_cache::Shapes`] for why the list of shapes is looked at
//! again when the commit has begun.
//!
//! A row's change concerns a shape if the row was inserted or deleted, or if one of the shape's
//! columns has changed. To a shape of existing rows, insertions don't matter. Then the tags of both
//! images are touched: the row leaves the results of its old values and enters those of its new
//! ones.

use std::ops::ControlFlow;

use remora_binlog::{Event, Field, LoggedTable, Rows, TableMap};
use remora_cache::{
    BrokenTags, ColumnSet, Position, Shape, ShapesSnapshot, TableTags, TagSet, Timeline, Value,
    ValueHash, interval_of,
};

use super::TableShapes;
use super::codec::{Codec, KnownValue};

/// A table whose rows the open transaction has changed.
struct ChangedTable {
    name: LoggedTable,
    tags: TableTags,
    /// The shapes by which its rows were read.
    shapes: ShapesSnapshot<Codec>,
    /// Its rows' tags say too little: all of it counts as changed.
    is_whole: bool,
}

/// What the log tells of a table's changes in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// Every changed row, but for those that cascades changed.
    Rows,
    /// The same, and some statement may have changed it by a cascade only: it gave no rows of it.
    ///
    /// Results of a table that cascades can change have the tags of the parents' keys, on every
    /// server. So a cascade touches them by the parent's rows, and the name alone says nothing new.
    RowsIfAny,
    /// Not every changed row.
    Nothing,
}

/// What the open transaction will have touched.
pub struct ChangeTags {
    tables: Vec<ChangedTable>,
    tags: TagSet,
    tags_max: usize,
    /// There was more than is told apart: all tables count as wholes.
    is_over: bool,
    broken: BrokenTags,
    over_bound: u64,
}

impl ChangeTags {
    /// At most `tags_max` tags of one transaction are told apart; with more its tables count as
    /// wholes.
    pub fn new(tags_max: usize, broken: BrokenTags) -> ChangeTags {
        ChangeTags {
            tables: Vec::new(),
            tags: TagSet::default(),
            tags_max,
            is_over: false,
            broken,
            over_bound: 0,
        }
    }

    /// How many transactions had more tags than are told apart, since the start.
    pub fn over_bound(&self) -> u64 {
        self.over_bound
    }

    /// Takes in the rows of an event.
    pub fn take(&mut self, event: &Event, shapes: &TableShapes) {
        match event {
            Event::Rows {
                table: Some(table),
                rows,
                ..
            } => self.take_rows(table, rows.as_ref(), shapes),
            Event::Payload(Some(events)) => {
                for event in events {
                    self.take(event, shapes);
                }
            }
            _ => {}
        }
    }

    fn take_rows(&mut self, table: &TableMap, rows: Option<&Rows>, shapes: &TableShapes) {
        self.read_rows(table, rows, shapes);
        // Each table takes room too.
        if self.tags.len() + self.tables.len() > self.tags_max {
            self.over_bound += 1;
            self.is_over = true;
            self.tags.clear();
            self.tables.clear();
        }
    }

    fn read_rows(&mut self, table: &TableMap, rows: Option<&Rows>, shapes: &TableShapes) {
        if self.is_over {
            return;
        }
        let at = self.table(&table.table, shapes);
        let Some(rows) = rows else {
            self.tables[at].is_whole = true;
            return;
        };
        let ChangedTable {
            tags,
            shapes,
            is_whole,
            ..
        } = &mut self.tables[at];
        if *is_whole || shapes.shapes().is_empty() {
            return;
        }
        let mut reader = RowReader {
            table,
            tags: *tags,
            shapes: shapes.shapes(),
            broken: self.broken,
            touched: &mut self.tags,
        };
        let tags_max = self.tags_max;
        let read = rows.for_each(|row| {
            reader.take(row.before.as_ref(), row.after.as_ref());
            if reader.touched.len() > tags_max {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        *is_whole |= read.is_err();
    }

    /// The place of a table in the list.
    fn table(&mut self, name: &LoggedTable, shapes: &TableShapes) -> usize {
        if let Some(at) = self.tables.iter().position(|known| known.name == *name) {
            return at;
        }
        let tags = TableTags::new(&name.schema, &name.table);
        self.tables.push(ChangedTable {
            name: name.clone(),
            tags,
            shapes: shapes.snapshot(tags),
            is_whole: false,
        });
        self.tables.len() - 1
    }

    /// Touches what was taken in, for a commit at `at` that the timeline has been told of
    /// ([`Timeline::begin_commit`]), in these tables.
    pub fn touch(
        &self,
        timeline: &Timeline,
        shapes: &TableShapes,
        at: Position,
        tables: impl Iterator<Item = (TableTags, Telling)>,
    ) {
        for tag in &self.tags {
            timeline.touch(*tag, at);
        }
        for (tags, telling) in tables {
            timeline.touch(tags.any(), at);
            // Tables whose names differ in letter case only have the same tags.
            let mut known = self
                .tables
                .iter()
                .filter(|known| known.tags == tags)
                .peekable();
            let has_rows = known.peek().is_some();
            let version = shapes.snapshot(tags).version();
            let are_read = known.all(|known| !known.is_whole && known.shapes.version() == version);
            let is_narrow = match telling {
                _ if self.is_over => false,
                Telling::Rows => has_rows && are_read,
                Telling::RowsIfAny => are_read,
                Telling::Nothing => false,
            };
            if !is_narrow {
                timeline.touch(tags.whole(), at);
            }
        }
    }

    /// Forgets what was taken in: the transaction has been applied.
    pub fn clear(&mut self) {
        self.tables.clear();
        self.tags.clear();
        self.is_over = false;
    }
}

/// Reads rows of one table.
struct RowReader<'a> {
    table: &'a TableMap,
    tags: TableTags,
    shapes: &'a [std::sync::Arc<Shape<Codec>>],
    broken: BrokenTags,
    touched: &'a mut TagSet,
}

type Image<'a> = remora_binlog::RowImage<'a>;

impl RowReader<'_> {
    fn take(&mut self, before: Option<&Image<'_>>, after: Option<&Image<'_>>) {
        let changed = match (before, after) {
            (Some(before), Some(after)) => changed_columns(self.table.columns.len(), before, after),
            _ => ColumnSet::ALL,
        };
        let is_update = before.is_some() && after.is_some();
        for shape in self.shapes {
            if is_update && !self.concerns(shape, &changed) {
                continue;
            }
            if shape.is_of_existing() && !is_update && self.is_left_out(before) {
                continue;
            }
            if self.broken != BrokenTags::BeforeImage || !is_update {
                self.touch_image(shape, before, None);
            }
            self.touch_image(shape, after, before);
        }
    }

    /// Whether a row that was inserted or deleted doesn't matter where only existing ones do.
    fn is_left_out(&self, before: Option<&Image<'_>>) -> bool {
        before.is_none() || self.broken == BrokenTags::DeletedParents
    }

    fn concerns(&self, shape: &Shape<Codec>, changed: &ColumnSet) -> bool {
        if self.broken == BrokenTags::ConditionColumns
            && let [column] = shape.columns()
        {
            let mut own = ColumnSet::EMPTY;
            own.insert(column.ordinal.into());
            return *changed != own && shape.reads().intersects(changed);
        }
        shape.reads().intersects(changed)
    }

    /// Touches the tag of one image. What an image after an update leaves out is as it was
    /// `before`.
    fn touch_image(
        &mut self,
        shape: &Shape<Codec>,
        image: Option<&Image<'_>>,
        before: Option<&Image<'_>>,
    ) {
        let Some(image) = image else {
            return;
        };
        let mut values = [KnownValue::null().hash; remora_cache::EQUALITY_COLUMNS_MAX];
        for (slot, column) in values.iter_mut().zip(shape.columns()) {
            let ordinal = usize::from(column.ordinal);
            let field = match (image.field(ordinal), before) {
                (Field::Absent, Some(before)) => before.field(ordinal),
                (field, _) => field,
            };
            let kind = self.table.columns.get(ordinal).map(|column| column.kind);
            let known = kind.and_then(|kind| column.codec.field(kind, field, self.broken));
            let value = match (known, shape.interval_level()) {
                (Some(known), None) => Some(known.hash),
                (Some(known), Some(level)) => interval_hash(known, level),
                (None, _) => None,
            };
            match value {
                Some(value) => *slot = value,
                None => return self.touch_column(shape),
            }
        }
        let values = &values[..shape.columns().len()];
        self.touched.insert(shape.tag(self.tags, values));
    }

    /// The value of a column of the shape isn't known: all results that its first column narrows
    /// are touched.
    fn touch_column(&mut self, shape: &Shape<Codec>) {
        if let Some(first) = shape.columns().first() {
            self.touched.insert(self.tags.column(first.ordinal));
        }
    }
}

/// The interval in which a value lies; that of NULL, which is in no range, is one that no range
/// has.
fn interval_hash(known: KnownValue, level: u8) -> Option<ValueHash> {
    if known == KnownValue::null() {
        return Some(Value::Null.hash());
    }
    let number = known.number?;
    Some(Value::Integer(interval_of(number, level)).hash())
}

/// The columns that an update has changed, or may have changed.
fn changed_columns(columns: usize, before: &Image<'_>, after: &Image<'_>) -> ColumnSet {
    let mut changed = ColumnSet::EMPTY;
    for ordinal in 0..columns {
        let after = after.field(ordinal);
        // An image after an update has all that was changed.
        if after != Field::Absent && after != before.field(ordinal) {
            changed.insert(ordinal);
        }
    }
    changed
}
