//! Which column of which source a name in a block means.
//!
//! Names that can mean several things mean nothing here: their conditions aren't used.

use remora_sql::{Block, ColumnName, Condition, Source};

use crate::facts::TableFacts;

/// The ordinal of a column by its name, in any ASCII case.
pub(super) fn ordinal_of(facts: &TableFacts, column: &str) -> Option<usize> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(column);
    facts.columns.iter().position(|known| is_it(&known.name))
}

/// A column: the number of its source in the block, and its ordinal.
pub(super) type Place = (usize, usize);

/// Which column a name means; `None` if that isn't certain. `facts_of` gives the facts of a table
/// by its number in the statement, if it is a table whose columns are known.
pub(super) fn place_of<'f>(
    block: &Block,
    name: &ColumnName,
    facts_of: &impl Fn(usize) -> Option<&'f TableFacts>,
) -> Option<Place> {
    match &name.table {
        Some(table) => qualified(block, name, table, facts_of),
        None => unqualified(block, name, facts_of),
    }
}

/// The column that a condition restricts; `None` if that isn't certain.
pub(super) fn restricted<'f>(
    block: &Block,
    condition: &Condition,
    facts_of: impl Fn(usize) -> Option<&'f TableFacts>,
) -> Option<Place> {
    let found = place_of(block, &condition.column, &facts_of);
    found.filter(|(source, _)| condition.restricts.contains(*source))
}

fn qualified<'f>(
    block: &Block,
    name: &ColumnName,
    table: &str,
    facts_of: &impl Fn(usize) -> Option<&'f TableFacts>,
) -> Option<Place> {
    // Whether letter case counts depends on the server (`lower_case_table_names`). Where it does, a
    // name in another case can mean a table of the query outside.
    let is_it = |source: &Source| {
        let is_schema = match (&name.schema, &source.schema) {
            (Some(wanted), Some(schema)) => wanted == schema,
            (None, _) => true,
            (Some(_), None) => false,
        };
        is_schema && source.name.eq_ignore_ascii_case(table)
    };
    let source = only(
        block
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| is_it(source)),
    )?;
    if source.1.name != table {
        return None;
    }
    let facts = facts_of(source.1.table?)?;
    Some((source.0, ordinal_of(facts, &name.column)?))
}

fn unqualified<'f>(
    block: &Block,
    name: &ColumnName,
    facts_of: &impl Fn(usize) -> Option<&'f TableFacts>,
) -> Option<Place> {
    let mut found = None;
    for (at, source) in block.sources.iter().enumerate() {
        // A source whose columns aren't known could have it too.
        let facts = facts_of(source.table?)?;
        if let Some(column) = ordinal_of(facts, &name.column)
            && found.replace((at, column)).is_some()
        {
            return None;
        }
    }
    found
}

/// The only item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
