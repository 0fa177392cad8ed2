//! The fences of a statement that writes.
//!
//! A fence can be as fine as a value if the statement changes only rows with certain values in one
//! column, and not that column; see [`TableTags::fences_of_value`] for why that covers every result
//! that it can concern. The caller makes sure that no trigger and no cascade carries the change
//! elsewhere. None follows a new row.

use remora_cache::{BrokenTags, TableTags, Tag};
use remora_sql::{Condition, Constant, NarrowedWrite, Test, WrittenRows};
use remora_wire::execute::BoundValue;

use super::codec::{Codec, KnownValue, range_of};
use super::literal::{Literal, StringConversion};
use super::plan::known;
use super::resolve::ordinal_of;
use crate::facts::{ColumnFacts, ColumnKind, TableFacts};

/// The most values that one statement fences one by one.
const FENCED_VALUES_MAX: usize = 16;
/// With more columns than these a write fences its table: each other column has a fence of its own.
const COLUMNS_MAX: usize = 64;

/// Fills in the values that an execution binds. What isn't certain stays a parameter, which narrows
/// nothing.
pub fn bind(write: &mut NarrowedWrite, bound: &[BoundValue<'_>]) {
    let fill = |constant: &mut Constant| {
        if let Constant::Parameter(at) = constant {
            match bound.get(*at) {
                Some(BoundValue::Integer(number)) => *constant = Constant::Integer(*number),
                Some(BoundValue::Text(text)) => *constant = Constant::Text(text.to_vec()),
                Some(BoundValue::Null | BoundValue::Other) | None => {}
            }
        }
    };
    match &mut write.rows {
        WrittenRows::Where(conditions) => {
            for condition in conditions {
                if let Test::In(constants) = &mut condition.test {
                    constants.iter_mut().for_each(fill);
                }
            }
        }
        WrittenRows::Values { rows, .. } => {
            rows.iter_mut().flatten().flatten().for_each(fill);
        }
    }
}

/// What a write to the table fences that no cascade follows. `narrowed` says which rows it changes,
/// if its text does.
///
/// Columns of bytes narrow nothing here. The server converts the strings of a prepared write as the
/// session's settings said when it was prepared, or when its parameters' types were named.
pub fn fences_of_write(
    table: TableTags,
    facts: &TableFacts,
    narrowed: Option<&NarrowedWrite>,
) -> Vec<Tag> {
    let narrow = narrowed.and_then(|write| narrow(table, facts, write));
    narrow.unwrap_or_else(|| table.fences_without_cascades().to_vec())
}

fn narrow(table: TableTags, facts: &TableFacts, write: &NarrowedWrite) -> Option<Vec<Tag>> {
    if !facts.columns_match_log || facts.columns.len() > COLUMNS_MAX {
        return None;
    }
    let (ordinal, values) = match &write.rows {
        WrittenRows::Where(conditions) => by_condition(facts, conditions, &write.assigned)?,
        WrittenRows::Values { columns, rows } => {
            let by_key = facts
                .key_columns
                .iter()
                .map(|ordinal| usize::from(*ordinal));
            let mut found = by_key.filter_map(|ordinal| {
                let values = by_values(facts, ordinal, columns.as_deref(), rows)?;
                Some((ordinal, values))
            });
            found.next()?
        }
    };
    if values.len() > FENCED_VALUES_MAX {
        return None;
    }
    let mut fences = Vec::new();
    let columns = u16::try_from(facts.columns.len()).ok()?;
    let ordinal = u16::try_from(ordinal).ok()?;
    for value in &values {
        table.fences_of_value(ordinal, value.hash, value.number, columns, &mut fences);
    }
    fences.sort_unstable();
    fences.dedup();
    Some(fences)
}

/// The column, and its values, to which the conditions restrict the rows: the primary key's if
/// there is a choice.
fn by_condition(
    facts: &TableFacts,
    conditions: &[Condition],
    assigned: &[String],
) -> Option<(usize, Vec<KnownValue>)> {
    let restricted = conditions.iter().filter_map(|condition| {
        let Test::In(constants) = &condition.test else {
            return None;
        };
        // The statement has one table: a qualified name can only mean that one.
        let ordinal = ordinal_of(facts, &condition.column.column)?;
        let column = &facts.columns[ordinal];
        let is_assigned = assigned
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&column.name));
        if is_assigned || column.is_computed {
            return None;
        }
        let codec = Codec::of(&column.kind)?;
        let literals: Vec<_> = constants
            .iter()
            .map(|constant| Literal::of(constant, &[], StringConversion::ToConnection))
            .collect();
        let values = known((&column.kind, codec), &literals, BrokenTags::Right)?;
        Some((ordinal, values))
    });
    restricted.min_by_key(|(ordinal, values)| {
        let place = facts
            .key_columns
            .iter()
            .position(|key| usize::from(*key) == *ordinal);
        (place.is_none(), place, values.len(), *ordinal)
    })
}

/// The values that an `INSERT` gives to a column, if each of them is stored as it is written.
fn by_values(
    facts: &TableFacts,
    ordinal: usize,
    columns: Option<&[String]>,
    rows: &[Vec<Option<Constant>>],
) -> Option<Vec<KnownValue>> {
    let column = facts.columns.get(ordinal)?;
    let at = match columns {
        Some(columns) => columns
            .iter()
            .position(|name| name.eq_ignore_ascii_case(&column.name))?,
        None => ordinal,
    };
    let is_whole = |row: &Vec<_>| columns.is_some() || row.len() == facts.columns.len();
    rows.iter()
        .filter(|row| is_whole(row))
        .map(|row| {
            let constant = row.get(at)?.as_ref()?;
            // Only integers narrow here, so conversion doesn't matter.
            let literal = Literal::of(constant, &[], StringConversion::ToConnection);
            stored_as_written(column, &literal)
        })
        .collect::<Option<Vec<_>>>()
        .filter(|values| values.len() == rows.len())
}

/// Integers that fit their column are stored as they are, unless the server computes the column.
/// Other values may be rounded, cut or converted. Zero, in a column that counts by itself, may
/// become the next number.
fn stored_as_written(column: &ColumnFacts, literal: &Literal<'_>) -> Option<KnownValue> {
    let (&ColumnKind::Integer { bytes, unsigned }, &Literal::Integer(number)) =
        (&column.kind, literal)
    else {
        return None;
    };
    let range = range_of(bytes, unsigned);
    let is_counted = column.is_auto_increment && number == 0;
    let is_kept = range.contains(&number) && !is_counted && !column.is_computed;
    let codec = Codec::of(&column.kind)?;
    codec
        .constant(literal, BrokenTags::Right)
        .filter(|_| is_kept)
}
