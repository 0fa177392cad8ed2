//! From conditions and rows to tags: what the proxy does with SQL and row images, done for the
//! simulation's own.

use remora_cache::{
    ColumnSet, INTERVAL_LEVELS, Shape, ShapeColumn, TableTags, Tag, Value, ValueHash, interval_of,
};

use crate::Fault;
use crate::server::{COLUMNS, Condition, Definition, ID, Read, Row, RowChange, Write};

const INTERVALS_MAX: i128 = 2;

pub fn table_tags(table: usize) -> TableTags {
    TableTags::new("shop", ["orders", "lines"][table])
}

/// Another type has other numbers for the same values.
fn number(value: i64, codec: u8) -> i128 {
    i128::from(value) + (i128::from(codec) << 64)
}

fn hash(number: i128) -> ValueHash {
    Value::Integer(number).hash()
}

fn column(definition: Definition, column: usize) -> ShapeColumn<u8> {
    ShapeColumn {
        ordinal: definition.ordinal(column),
        codec: definition.codec(column),
    }
}

/// The shape of a read, and the values of its tags.
pub fn shape_of(
    read: &Read,
    definition: Definition,
    fault: Fault,
) -> (Shape<u8>, Vec<Vec<ValueHash>>) {
    let table = table_tags(read.table);
    let mut reads = ColumnSet::EMPTY;
    for column in &read.columns {
        reads.insert(definition.ordinal(*column).into());
    }
    match &read.condition {
        Condition::All => (Shape::equal(table, &[], reads), vec![Vec::new()]),
        Condition::In(columns) => {
            let shape: Vec<_> = columns
                .iter()
                .map(|(name, _)| column(definition, *name))
                .collect();
            let mut values = vec![Vec::new()];
            for (name, one_of) in columns {
                let codec = definition.codec(*name);
                let longer = |shorter: &Vec<ValueHash>| -> Vec<Vec<ValueHash>> {
                    let with =
                        |value: &i64| [&shorter[..], &[hash(number(*value, codec))]].concat();
                    one_of.iter().map(with).collect()
                };
                values = values.iter().flat_map(longer).collect();
            }
            (Shape::equal(table, &shape, reads), values)
        }
        Condition::Between(name, from, to) => {
            let codec = definition.codec(*name);
            let (level, mut intervals) = cover(number(*from, codec), number(*to, codec));
            if fault == Fault::IntervalBound && intervals.len() > 1 {
                intervals.pop();
            }
            let values = intervals.iter().map(|interval| vec![hash(*interval)]);
            let shape = Shape::interval(table, column(definition, *name), level, reads);
            (shape, values.collect())
        }
    }
}

fn cover(from: i128, to: i128) -> (u8, Vec<i128>) {
    let cover = INTERVAL_LEVELS.into_iter().find_map(|level| {
        let (first, last) = (interval_of(from, level), interval_of(to, level));
        (last - first < INTERVALS_MAX).then(|| (level, (first..=last).collect()))
    });
    cover.unwrap()
}

/// The tags of a changed row.
pub fn tags_of_change(
    change: &RowChange,
    definition: Definition,
    shape: &Shape<u8>,
    fault: Fault,
) -> Vec<Tag> {
    let mut tags = Vec::new();
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        let mut changed = ColumnSet::EMPTY;
        for name in 0..COLUMNS {
            let ordinal = usize::from(definition.ordinal(name));
            let narrows = shape
                .columns()
                .iter()
                .any(|c| usize::from(c.ordinal) == ordinal);
            let is_ignored = narrows && fault == Fault::ConditionColumn;
            if before[name] != after[name] && !is_ignored {
                changed.insert(ordinal);
            }
        }
        if !shape.reads().intersects(&changed) {
            return tags;
        }
    }
    let is_update = change.before.is_some() && change.after.is_some();
    if let Some(row) = &change.before
        && !(is_update && fault == Fault::BeforeImage)
    {
        tags.extend(tag_of_image(row, change.table, definition, shape));
    }
    if let Some(row) = &change.after {
        tags.extend(tag_of_image(row, change.table, definition, shape));
    }
    tags
}

fn tag_of_image(row: &Row, table: usize, definition: Definition, shape: &Shape<u8>) -> Option<Tag> {
    let table = table_tags(table);
    let mut values = Vec::new();
    for column in shape.columns() {
        let name = (0..COLUMNS).find(|name| definition.ordinal(*name) == column.ordinal)?;
        if definition.codec(name) != column.codec {
            // The value can't be read as the shape wants it.
            return shape
                .columns()
                .first()
                .map(|first| table.column(first.ordinal));
        }
        let value = number(row[name], column.codec);
        let value = shape
            .interval_level()
            .map_or(value, |level| interval_of(value, level));
        values.push(hash(value));
    }
    Some(shape.tag(table, &values))
}

/// What a write fences: its value, if one column that it doesn't assign narrows it, or its table.
pub fn fences_of(write: &Write, definition: Definition, fault: Fault) -> Vec<Tag> {
    let table = table_tags(write.table());
    let narrow = match write {
        Write::Update(_, Condition::In(columns), assigned, _) => {
            let mut unassigned = columns.iter().filter(|(name, _)| name != assigned);
            unassigned.next().cloned()
        }
        Write::Delete(_, Condition::In(columns)) => columns.first().cloned(),
        Write::Insert(_, row) => Some((ID, vec![row[ID]])),
        _ => None,
    };
    let Some((name, values)) = narrow else {
        return table.fences().to_vec();
    };
    let mut fences = Vec::new();
    let columns = u16::try_from(COLUMNS).unwrap();
    for value in values {
        let value = if fault == Fault::FencesOfAnotherValue {
            value + 1
        } else {
            value
        };
        let number = number(value, definition.codec(name));
        let ordinal = definition.ordinal(name);
        table.fences_of_value(ordinal, hash(number), Some(number), columns, &mut fences);
    }
    fences
}
