//! How one read of one table is narrowed: a plan, from which its tags are made, and the words that
//! explain them.

use std::sync::Arc;

use remora_cache::{
    BrokenTags, ColumnSet, INTERVAL_LEVELS, Shape, ShapeColumn, TableTags, Tag, Value, ValueHash,
    interval_of,
};
use remora_sql::{Block, Bound, Condition, Select, Test};

use super::codec::{Codec, KnownValue};
use super::columns::columns_read;
use super::conditions::{Conditions, OnColumn};
use super::literal::Literal;
use super::read::{ReadTables, ReadTags, add, facts_of};
use super::{INTERVALS_MAX, VALUES_MAX};
use crate::facts::{ColumnKind, TableFacts};
use crate::reason::Coarse;

/// How one read of one table is narrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TagPlan {
    pub(super) narrowing: Narrowing,
    pub(super) reads: ColumnSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Narrowing {
    /// It can't be, for this reason.
    Impossible(Coarse),
    /// All rows; or rows with certain values in each of some columns.
    Equal(Vec<EqualColumn>),
    /// All rows, and only what happens to those that are there.
    Existing,
    /// Rows whose value in the column lies between the two, both included. Reversed: none.
    Range(ShapeColumn<Codec>, End, End),
}

/// A column that has certain values in the rows that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EqualColumn {
    pub(super) column: ShapeColumn<Codec>,
    pub(super) values: Vec<ValueHash>,
    /// The number of the block's condition that says so.
    pub(super) condition: usize,
    /// That condition is about another column, which must be equal to this one.
    pub(super) is_implied: bool,
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) number: i128,
    /// The number of the block's condition that says so.
    pub(super) condition: usize,
}

impl TagPlan {
    /// Of a source of a block, which has these conditions.
    pub(super) fn of<'f>(
        select: &Select,
        (block, conditions): (
            &Block,
            &Conditions<'_, impl Fn(usize) -> Option<&'f TableFacts>>,
        ),
        source: usize,
        tables: &[ReadTables],
        under: &ReadTags<'_>,
    ) -> TagPlan {
        let of_source = &block.sources[source];
        let Some(own) = of_source
            .table
            .and_then(|number| facts_of(tables, number))
            .filter(|own| own.columns_match_log)
        else {
            let table = of_source.table.and_then(|number| tables.get(number));
            let is_view = table.is_some_and(|table| !table.facts.view_of.is_empty());
            return TagPlan {
                narrowing: Narrowing::Impossible(if is_view {
                    Coarse::View
                } else {
                    Coarse::ColumnsUnknown
                }),
                reads: ColumnSet::ALL,
            };
        };
        let mut columns = Columns::default();
        for on in conditions.on(source) {
            columns.take(own, on, &block.conditions[on.number], under);
        }
        TagPlan {
            narrowing: columns.narrowing(own),
            reads: columns_read(select, of_source, own),
        }
    }

    /// Adds the read's tags; the table's coarse one if there is a reason.
    pub(super) fn put_tags(
        &self,
        table: &ReadTables,
        under: &ReadTags<'_>,
        tags: &mut Vec<Tag>,
    ) -> Result<Arc<Shape<Codec>>, Coarse> {
        let tagged = self.put_fine_tags(table, under, tags);
        if tagged.is_err() {
            add(tags, table.tags.any());
        }
        tagged
    }

    /// `Err`: the table's coarse tag must do, and none is added.
    fn put_fine_tags(
        &self,
        table: &ReadTables,
        under: &ReadTags<'_>,
        tags: &mut Vec<Tag>,
    ) -> Result<Arc<Shape<Codec>>, Coarse> {
        let of = table.tags;
        let (wanted, values) = self.shape(of, under.broken)?;
        if tags.contains(&of.any()) {
            return Err(Coarse::ReadAsWhole);
        }
        let shape = under.find(of, &wanted).map_err(Coarse::from)?;
        let at_large = if shape.is_of_existing() {
            of.existing()
        } else {
            of.whole()
        };
        add(tags, at_large);
        if let Some(first) = shape.columns().first() {
            add(tags, of.column(first.ordinal));
        }
        for values in values {
            add(tags, shape.tag(of, &values));
        }
        Ok(shape)
    }

    /// The shape, and each combination of values.
    fn shape(
        &self,
        table: TableTags,
        broken: BrokenTags,
    ) -> Result<(Shape<Codec>, Vec<Vec<ValueHash>>), Coarse> {
        match &self.narrowing {
            Narrowing::Impossible(why) => Err(*why),
            Narrowing::Equal(columns) if columns.is_empty() && self.reads == ColumnSet::ALL => {
                Err(Coarse::NothingNarrows)
            }
            Narrowing::Equal(columns) => {
                let shape: Vec<_> = columns.iter().map(|equal| equal.column).collect();
                Ok((
                    Shape::equal(table, &shape, self.reads),
                    combinations(columns),
                ))
            }
            Narrowing::Existing => Ok((Shape::of_existing(table, self.reads), vec![Vec::new()])),
            Narrowing::Range(column, from, to) => {
                let (level, mut intervals) =
                    cover(from.number, to.number).ok_or(Coarse::NothingNarrows)?;
                if broken == BrokenTags::IntervalBounds && intervals.len() > 1 {
                    intervals.pop();
                }
                let values = intervals.into_iter();
                let values = values.map(|interval| vec![Value::Integer(interval).hash()]);
                Ok((
                    Shape::interval(table, *column, level, self.reads),
                    values.collect(),
                ))
            }
        }
    }
}

/// What the conditions say of each column.
#[derive(Default)]
struct Columns {
    equal: Vec<EqualColumn>,
    ranges: Vec<RangeColumn>,
}

/// A column whose value lies in a range in the rows that matter.
struct RangeColumn {
    column: ShapeColumn<Codec>,
    from: Option<i128>,
    to: Option<i128>,
    condition: usize,
    is_implied: bool,
}

impl Columns {
    fn take(
        &mut self,
        facts: &TableFacts,
        on: OnColumn,
        condition: &Condition,
        under: &ReadTags<'_>,
    ) -> Option<()> {
        let OnColumn { ordinal, .. } = on;
        let column = &facts.columns[ordinal];
        let (kind, codec) = (&column.kind, Codec::of(&column.kind)?);
        let column = ShapeColumn {
            ordinal: u16::try_from(ordinal).ok()?,
            codec,
        };
        match &condition.test {
            Test::IsNull if facts.columns[ordinal].is_nullable => {
                self.equal(column, vec![KnownValue::null().hash], on);
            }
            // What follows from an equality is told with the conditions that it follows from.
            Test::Column(_) | Test::IsNull => {}
            Test::In(constants) => {
                let literals: Vec<_> = constants
                    .iter()
                    .map(|constant| under.literal(constant))
                    .collect();
                let values = known((kind, codec), &literals, under.broken)?;
                let mut values: Vec<_> = values.into_iter().map(|value| value.hash).collect();
                values.sort_unstable();
                values.dedup();
                self.equal(column, values, on);
            }
            Test::Range { from, to } => {
                let ends = [from, to].map(Option::as_ref);
                let literals: Vec<_> = ends
                    .iter()
                    .flatten()
                    .map(|end| under.literal(&end.value))
                    .collect();
                let numbers = known((kind, codec), &literals, under.broken)?;
                let mut numbers = numbers.into_iter().map(|value| value.number);
                let is_between = ends.iter().all(Option::is_some);
                if is_between && !numbers.clone().all(|number| has_one_sign(codec, number)) {
                    return None;
                }
                let mut end = |end: Option<&Bound>| match end {
                    Some(_) => numbers.next()?.map(Some),
                    None => Some(None),
                };
                let (from, to) = (end(ends[0])?, end(ends[1])?);
                self.ranges.push(RangeColumn {
                    column,
                    from,
                    to,
                    condition: on.number,
                    is_implied: on.is_implied,
                });
            }
        }
        Some(())
    }

    fn equal(&mut self, column: ShapeColumn<Codec>, values: Vec<ValueHash>, on: OnColumn) {
        let equal = EqualColumn {
            column,
            values,
            condition: on.number,
            is_implied: on.is_implied,
        };
        match self.equal.iter_mut().find(|known| known.column == column) {
            // Both restrict it: the shorter list is as right as the other.
            Some(known) if known.values.len() <= equal.values.len() => {}
            Some(known) => *known = equal,
            None => self.equal.push(equal),
        }
    }

    fn narrowing(mut self, facts: &TableFacts) -> Narrowing {
        // Writers mostly name the primary key; and the order must not depend on how a statement is
        // written.
        let place_in_key = |ordinal: u16| facts.key_columns.iter().position(|key| *key == ordinal);
        self.equal.sort_by_key(|EqualColumn { column, .. }| {
            let place = place_in_key(column.ordinal);
            (place.is_none(), place, column.ordinal)
        });
        self.drop_what_is_too_much();
        // An implied equality may fit many rows, such as a status. A written range was meant to
        // narrow.
        let says_equal = self.equal.iter().any(|equal| !equal.is_implied);
        let says_range = self.ranges.iter().any(|range| !range.is_implied);
        if !self.equal.is_empty() && (says_equal || !says_range) {
            return Narrowing::Equal(self.equal);
        }
        match self.range(facts) {
            Some((column, from, to)) => Narrowing::Range(column, from, to),
            None => Narrowing::Equal(self.equal),
        }
    }

    /// Keeps as many columns and values as a shape may have. What is implied goes first.
    fn drop_what_is_too_much(&mut self) {
        let is_too_much = |equal: &[EqualColumn]| {
            let values = equal.iter().map(|one| one.values.len());
            equal.len() > remora_cache::EQUALITY_COLUMNS_MAX
                || values.product::<usize>() > VALUES_MAX
        };
        while is_too_much(&self.equal) {
            let is_over = self.equal.len() > remora_cache::EQUALITY_COLUMNS_MAX;
            let burden = |at: &usize| {
                let EqualColumn {
                    values, is_implied, ..
                } = &self.equal[*at];
                if is_over {
                    (*is_implied, *at)
                } else {
                    (*is_implied && values.len() > 1, values.len())
                }
            };
            let worst = (0..self.equal.len()).max_by_key(burden);
            self.equal.remove(worst.unwrap_or(0));
        }
    }

    /// The narrowest range that has both ends.
    fn range(&self, facts: &TableFacts) -> Option<(ShapeColumn<Codec>, End, End)> {
        let closed = self.ranges.iter().filter_map(|RangeColumn { column, .. }| {
            let own = || self.ranges.iter().filter(|known| known.column == *column);
            let end = |range: &RangeColumn, number: Option<i128>| {
                let condition = range.condition;
                number.map(|number| End { number, condition })
            };
            let from = own().filter_map(|range| end(range, range.from));
            let to = own().filter_map(|range| end(range, range.to));
            let from = from.max_by_key(|end| end.number)?;
            let to = to.min_by_key(|end| end.number)?;
            Some((*column, from, to))
        });
        let is_key = |ordinal: u16| facts.key_columns.contains(&ordinal);
        closed
            .filter(|(_, from, to)| cover(from.number, to.number).is_some())
            .min_by_key(|(column, from, to)| {
                let length = to.number - from.number;
                (length, !is_key(column.ordinal), column.ordinal)
            })
    }
}

/// The values of constants that stand in one condition; `None` if one of them isn't certain.
pub(super) fn known(
    (kind, codec): (&ColumnKind, Codec),
    literals: &[Literal<'_>],
    broken: BrokenTags,
) -> Option<Vec<KnownValue>> {
    /// Where text stands among numbers the server may compare all of them as doubles.
    const EXACT_MAX: i128 = 1 << 53;
    let values: Option<Vec<KnownValue>> = literals
        .iter()
        .map(|literal| match literal {
            Literal::Any(at) => Some(KnownValue::any(*at)),
            _ => codec.constant(&literal.of_column(kind), broken),
        })
        .collect();
    let values = values?;
    let is_text = |literal: &Literal<'_>| matches!(literal, Literal::Text { .. });
    let is_mixed = literals.iter().any(is_text) && !literals.iter().all(is_text);
    let is_small = |value: &KnownValue| value.number.is_some_and(|number| number.abs() < EXACT_MAX);
    (!is_mixed || values.iter().all(is_small)).then_some(values)
}

/// Whether a number of an integer column is the same to the server whether or not it takes it for
/// signed.
///
/// MySQL 5.6 compares the three numbers of a `BETWEEN` as signed ones, of an unsigned column too:
/// there 18446744073709551615 is -1.
fn has_one_sign(codec: Codec, number: Option<i128>) -> bool {
    let is_integer = matches!(codec, Codec::Integer { .. });
    !is_integer || number.is_some_and(|number| number <= i128::from(i64::MAX))
}

/// Each combination of one value of each column.
fn combinations(columns: &[EqualColumn]) -> Vec<Vec<ValueHash>> {
    let mut all = vec![Vec::new()];
    for EqualColumn { values, .. } in columns {
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for one in &all {
            longer.extend(values.iter().map(|value| [one, &[*value][..]].concat()));
        }
        all = longer;
    }
    all
}

/// The intervals of the lowest level that cover a range with few of them; `None` if it is too long.
/// None are needed for a reversed range, which holds nothing.
pub(super) fn cover(from: i128, to: i128) -> Option<(u8, Vec<i128>)> {
    if from > to {
        return Some((INTERVAL_LEVELS[0], Vec::new()));
    }
    INTERVAL_LEVELS.into_iter().find_map(|level| {
        let (first, last) = (interval_of(from, level), interval_of(to, level));
        (last - first < INTERVALS_MAX).then(|| (level, (first..=last).collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: i128) -> ValueHash {
        Value::Integer(number).hash()
    }

    fn column(ordinal: u16, values: &[i128]) -> EqualColumn {
        let codec = Codec::Date;
        EqualColumn {
            column: ShapeColumn { ordinal, codec },
            values: values.iter().map(|value| hash(*value)).collect(),
            condition: 0,
            is_implied: false,
        }
    }

    #[test]
    fn each_combination_of_values_is_given_once_and_in_order() {
        let columns = [column(0, &[1, 2]), column(1, &[3]), column(2, &[4, 5])];
        let expected = [[1, 3, 4], [1, 3, 5], [2, 3, 4], [2, 3, 5]];
        let expected = expected.map(|numbers| numbers.map(hash).to_vec());
        assert_eq!(combinations(&columns), expected);
        assert_eq!(combinations(&[]), [Vec::new()], "all rows");
        let is_never = [column(0, &[1]), column(1, &[])];
        assert!(combinations(&is_never).is_empty());
    }
}
