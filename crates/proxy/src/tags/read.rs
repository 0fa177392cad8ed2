//! The tags of a `SELECT`'s result.
//!
//! Each table that is read, each time that it is read, gives tags of its own: narrowed by the conditions that
//! restrict it, for the columns that the statement names. The result depends on all of them.

use std::sync::Arc;

use remora_cache::{
    AsOf, BrokenTags, ColumnSet, INTERVAL_LEVELS, Shape, ShapeColumn, TableTags, Tag, Value,
    ValueHash, interval_of,
};
use remora_sql::{Block, Bound, Condition, Select, Source, Test};
use remora_wire::execute::BoundValue;

use super::codec::{Codec, Known};
use super::literal::Literal;
use super::resolve::{ordinal_of, restricted};
use super::{INTERVALS_MAX, RESULT_TAGS_MAX, TableShapes, VALUES_MAX};
use crate::upstream::catalogue::{CascadeParent, TableFacts};

/// A table that a statement names, as the catalogue knows it.
#[derive(Debug, Clone)]
pub struct ReadTables {
    /// Its tags.
    pub tags: TableTags,
    /// Its facts.
    pub facts: Arc<TableFacts>,
}

/// What a result is read under.
pub struct ReadTags<'a> {
    /// The registered shapes.
    pub shapes: &'a TableShapes,
    /// The result's, taken before this was made.
    pub as_of: AsOf,
    /// The faults of a test.
    pub broken: BrokenTags,
    /// The values that the execution binds; empty for a statement as text.
    pub bound: &'a [BoundValue<'a>],
}

/// The tags of a statement's result. `tables` are those of [`Select::tables`], in their order; `parent_facts` gives
/// the facts of a table from which a cascade can reach one of them, if they are known.
pub fn tags_of_read(
    select: &Select,
    tables: &[ReadTables],
    under: &ReadTags<'_>,
    mut parent_facts: impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut is_read = vec![false; tables.len()];
    for block in &select.reads.blocks {
        for (at, source) in block.sources.iter().enumerate() {
            let Some((table, number)) = source
                .table
                .and_then(|number| Some((tables.get(number)?, number)))
            else {
                continue;
            };
            is_read[number] = true;
            let plan = Plan::of(select, block, at, tables, under);
            plan.put_tags(table, under, &mut tags);
        }
    }
    for (table, is_read) in tables.iter().zip(is_read) {
        if !is_read {
            add(&mut tags, table.tags.any());
        }
        put_cascades(&table.facts, under, &mut parent_facts, &mut tags);
        put_view(&table.facts, &mut tags);
    }
    if tags.len() > RESULT_TAGS_MAX {
        tags.clear();
        for table in tables {
            add(&mut tags, table.tags.any());
            for parent in &table.facts.cascade_parents {
                add(&mut tags, parent.tag);
            }
            put_view(&table.facts, &mut tags);
        }
    }
    tags
}

/// A view's result depends on the tables that it reads, as wholes, and on what reaches them.
fn put_view(facts: &TableFacts, tags: &mut Vec<Tag>) {
    if !facts.view_of.is_empty() {
        for tag in &facts.cascaded_from {
            add(tags, *tag);
        }
    }
}

fn add(tags: &mut Vec<Tag>, tag: Tag) {
    if !tags.contains(&tag) {
        tags.push(tag);
    }
}

/// How one read of one table is narrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    narrowing: Narrowing,
    reads: ColumnSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Narrowing {
    /// Its columns can't be told from each other in the log.
    Impossible,
    /// All rows; or rows with certain values in each of some columns.
    Equal(Vec<(ShapeColumn<Codec>, Vec<ValueHash>)>),
    /// Rows whose value in the column lies between the two, both included. Reversed: none.
    Range(ShapeColumn<Codec>, i128, i128),
}

impl Plan {
    fn of(
        select: &Select,
        block: &Block,
        source: usize,
        tables: &[ReadTables],
        under: &ReadTags<'_>,
    ) -> Plan {
        let of_source = &block.sources[source];
        let facts = |number: usize| {
            let facts = &tables.get(number)?.facts;
            (!facts.columns.is_empty()).then_some(&**facts)
        };
        let Some(own) = of_source
            .table
            .and_then(facts)
            .filter(|own| own.columns_match_log)
        else {
            return Plan {
                narrowing: Narrowing::Impossible,
                reads: ColumnSet::ALL,
            };
        };
        let mut columns = Columns::default();
        for condition in &block.conditions {
            if let Some((restricted, ordinal)) = restricted(block, condition, facts)
                && restricted == source
            {
                columns.take(own, ordinal, condition, under);
            }
        }
        Plan {
            narrowing: columns.narrowing(own),
            reads: columns_read(select, of_source, own),
        }
    }

    fn put_tags(&self, table: &ReadTables, under: &ReadTags<'_>, tags: &mut Vec<Tag>) {
        let before = tags.len();
        if self.put_fine_tags(table, under, tags).is_none() {
            tags.truncate(before);
            add(tags, table.tags.any());
        }
    }

    /// `None`: the table's coarse tag must do.
    fn put_fine_tags(
        &self,
        table: &ReadTables,
        under: &ReadTags<'_>,
        tags: &mut Vec<Tag>,
    ) -> Option<()> {
        let of = table.tags;
        let (wanted, values) = self.shape(of, under.broken)?;
        if tags.contains(&of.any()) {
            return None;
        }
        let shape = under.shapes.find(of, &wanted, under.as_of).ok()?;
        add(tags, of.whole());
        if let Some(first) = shape.columns().first() {
            add(tags, of.column(first.ordinal));
        }
        for values in values {
            add(tags, shape.tag(of, &values));
        }
        Some(())
    }

    /// The shape, and each combination of values.
    fn shape(
        &self,
        table: TableTags,
        broken: BrokenTags,
    ) -> Option<(Shape<Codec>, Vec<Vec<ValueHash>>)> {
        match &self.narrowing {
            Narrowing::Impossible => None,
            Narrowing::Equal(columns) if columns.is_empty() && self.reads == ColumnSet::ALL => None,
            Narrowing::Equal(columns) => {
                let shape: Vec<_> = columns.iter().map(|(column, _)| *column).collect();
                Some((
                    Shape::equal(table, &shape, self.reads),
                    combinations(columns),
                ))
            }
            Narrowing::Range(column, from, to) => {
                let (level, mut intervals) = cover(*from, *to)?;
                if broken == BrokenTags::IntervalBounds && intervals.len() > 1 {
                    intervals.pop();
                }
                let values = intervals.into_iter();
                let values = values.map(|interval| vec![Value::Integer(interval).hash()]);
                Some((
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
    equal: Vec<(ShapeColumn<Codec>, Vec<ValueHash>)>,
    ranges: Vec<(ShapeColumn<Codec>, Option<i128>, Option<i128>)>,
}

impl Columns {
    fn take(
        &mut self,
        facts: &TableFacts,
        ordinal: usize,
        condition: &Condition,
        under: &ReadTags<'_>,
    ) -> Option<()> {
        let column = &facts.columns[ordinal];
        let codec = Codec::of(&column.kind)?;
        let column = ShapeColumn {
            ordinal: u16::try_from(ordinal).ok()?,
            codec,
        };
        match &condition.test {
            Test::IsNull if facts.columns[ordinal].is_nullable => {
                self.equal(column, vec![Known::null().hash]);
            }
            Test::IsNull => {}
            Test::In(constants) => {
                let literals: Vec<_> = constants
                    .iter()
                    .map(|constant| Literal::of(constant, under.bound))
                    .collect();
                let values = known(codec, &literals, under.broken)?;
                let mut values: Vec<_> = values.into_iter().map(|value| value.hash).collect();
                values.sort_unstable();
                values.dedup();
                self.equal(column, values);
            }
            Test::Range { from, to } => {
                let ends = [from, to].map(Option::as_ref);
                let literals: Vec<_> = ends
                    .iter()
                    .flatten()
                    .map(|end| Literal::of(&end.value, under.bound))
                    .collect();
                let numbers = known(codec, &literals, under.broken)?;
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
                self.ranges.push((column, from, to));
            }
        }
        Some(())
    }

    fn equal(&mut self, column: ShapeColumn<Codec>, values: Vec<ValueHash>) {
        match self.equal.iter_mut().find(|(known, _)| *known == column) {
            // Both restrict it: the shorter list is as right as the other.
            Some((_, known)) if known.len() <= values.len() => {}
            Some((_, known)) => *known = values,
            None => self.equal.push((column, values)),
        }
    }

    fn narrowing(mut self, facts: &TableFacts) -> Narrowing {
        // Writers mostly name the primary key; and the order must not depend on how a statement is written.
        let place_in_key = |ordinal: u16| facts.key_columns.iter().position(|key| *key == ordinal);
        self.equal.sort_by_key(|(column, _)| {
            let place = place_in_key(column.ordinal);
            (place.is_none(), place, column.ordinal)
        });
        self.equal.truncate(remora_cache::EQUALITY_COLUMNS_MAX);
        while self
            .equal
            .iter()
            .map(|(_, values)| values.len())
            .product::<usize>()
            > VALUES_MAX
        {
            let longest = (0..self.equal.len()).max_by_key(|at| self.equal[*at].1.len());
            self.equal.remove(longest.unwrap_or(0));
        }
        if !self.equal.is_empty() {
            return Narrowing::Equal(self.equal);
        }
        match self.range(facts) {
            Some((column, from, to)) => Narrowing::Range(column, from, to),
            None => Narrowing::Equal(Vec::new()),
        }
    }

    /// The narrowest range that has both ends.
    fn range(&self, facts: &TableFacts) -> Option<(ShapeColumn<Codec>, i128, i128)> {
        let ranges = self.ranges.iter().map(|(column, ..)| *column);
        let closed = ranges.filter_map(|column| {
            let own = || self.ranges.iter().filter(|(known, ..)| *known == column);
            let from = own().filter_map(|(_, from, _)| *from).max()?;
            let to = own().filter_map(|(_, _, to)| *to).min()?;
            Some((column, from, to))
        });
        let is_key = |ordinal: u16| facts.key_columns.contains(&ordinal);
        closed
            .filter(|(_, from, to)| cover(*from, *to).is_some())
            .min_by_key(|(column, from, to)| (to - from, !is_key(column.ordinal), column.ordinal))
    }
}

/// The values of constants that stand in one condition; `None` if one of them isn't certain.
pub(super) fn known(
    codec: Codec,
    literals: &[Literal<'_>],
    broken: BrokenTags,
) -> Option<Vec<Known>> {
    /// Where text stands among numbers the server may compare all of them as doubles.
    const EXACT_MAX: i128 = 1 << 53;
    let values: Option<Vec<Known>> = literals
        .iter()
        .map(|literal| codec.constant(literal, broken))
        .collect();
    let values = values?;
    let is_text = |literal: &Literal<'_>| matches!(literal, Literal::Text(_));
    let is_mixed = literals.iter().any(is_text) && !literals.iter().all(is_text);
    let is_small = |value: &Known| value.number.is_some_and(|number| number.abs() < EXACT_MAX);
    (!is_mixed || values.iter().all(is_small)).then_some(values)
}

/// Whether a number of an integer column is the same to the server whether or not it takes it for signed.
///
/// MySQL 5.6 compares the three numbers of a `BETWEEN` as signed ones, of an unsigned column too: there
/// 18446744073709551615 is -1.
fn has_one_sign(codec: Codec, number: Option<i128>) -> bool {
    let is_integer = matches!(codec, Codec::Integer { .. });
    !is_integer || number.is_some_and(|number| number <= i128::from(i64::MAX))
}

/// Each combination of one value of each column.
fn combinations(columns: &[(ShapeColumn<Codec>, Vec<ValueHash>)]) -> Vec<Vec<ValueHash>> {
    columns.iter().fold(vec![Vec::new()], |all, (_, values)| {
        let longer = |one: &Vec<ValueHash>| -> Vec<Vec<ValueHash>> {
            let with = |value: &ValueHash| one.iter().copied().chain([*value]).collect();
            values.iter().map(with).collect()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// The intervals of the lowest level that cover a range with few of them; `None` if it is too long. None are needed
/// for a reversed range, which holds nothing.
fn cover(from: i128, to: i128) -> Option<(u8, Vec<i128>)> {
    if from > to {
        return Some((INTERVAL_LEVELS[0], Vec::new()));
    }
    INTERVAL_LEVELS.into_iter().find_map(|level| {
        let (first, last) = (interval_of(from, level), interval_of(to, level));
        (last - first < INTERVALS_MAX).then(|| (level, (first..=last).collect()))
    })
}

/// The columns of a source that its statement can read.
fn columns_read(select: &Select, source: &Source, facts: &TableFacts) -> ColumnSet {
    let is_plain = facts.columns.iter().all(|column| column.name.is_ascii());
    if source.reads_all || select.reads.all_columns || !is_plain {
        return ColumnSet::ALL;
    }
    let mut reads = ColumnSet::EMPTY;
    for (ordinal, column) in facts.columns.iter().enumerate() {
        if select.reads.names.contains(&column.name) {
            reads.insert(ordinal);
        }
    }
    reads
}

/// A table that cascades can change depends on the parents' rows and on the columns that the keys refer to.
fn put_cascades(
    facts: &TableFacts,
    under: &ReadTags<'_>,
    parent_facts: &mut impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
    tags: &mut Vec<Tag>,
) {
    for parent in &facts.cascade_parents {
        if tags.contains(&parent.tag) {
            continue;
        }
        let plan = parent_facts(parent).and_then(|facts| {
            let mut reads = ColumnSet::EMPTY;
            for column in &parent.columns {
                reads.insert(ordinal_of(&facts, column)?);
            }
            let is_known = !parent.columns.is_empty() && facts.columns_match_log;
            let narrowing = Narrowing::Equal(Vec::new());
            is_known.then_some((Plan { narrowing, reads }, facts))
        });
        match plan {
            Some((plan, facts)) => {
                let tags_of_parent = TableTags::new(&parent.schema, &parent.table);
                let table = ReadTables {
                    tags: tags_of_parent,
                    facts,
                };
                plan.put_tags(&table, under, tags);
            }
            None => add(tags, parent.tag),
        }
    }
}
