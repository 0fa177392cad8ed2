//! Which columns of its tables a statement reads, and whether it may do with them what it does.
//!
//! A result may be kept if it depends on rows of tables alone. Three kinds of columns can carry
//! more into it:
//!
//! - **`TIME`.** The server completes such a value with today's date where it compares or converts
//!   it. It does neither where the value is only shown, or sorted or grouped by
//!   ([`NameUse::Shown`](remora_sql::NameUse::Shown)).
//! - **JSON on MySQL before 8.0.31**, where a value can be such a `TIME`. It is completed where it
//!   is converted to a date ([`Reads::makes_dates`](remora_sql::Reads::makes_dates)).
//! - **Virtual columns**, which the server calculates when they are read. If their expression has
//!   one value under all settings, they depend on the columns that it names, and count as those:
//!   what the log says of the virtual column itself is what the *writer's* session calculated. Else
//!   the statement may not name them.
//!
//! Names aren't resolved here: a column counts as used by each name that it could have, and as
//! named if it can't be told. What isn't certain is refused.

use remora_cache::ColumnSet;
use remora_sql::{NameUse, Select, Source};

use super::read::ReadTables;
use crate::facts::{ColumnFacts, TableFacts, ValueOrigin};
use crate::reason::TableRefusal;

/// The columns of a source that its statement can read.
pub(super) fn columns_read(select: &Select, source: &Source, facts: &TableFacts) -> ColumnSet {
    if source.reads_all.is_some() || select.reads.all_columns || !has_plain_names(facts) {
        return ColumnSet::ALL;
    }
    let mut reads = ColumnSet::EMPTY;
    for (ordinal, column) in facts.columns.iter().enumerate() {
        if !select.reads.names.contains(&column.name) {
            continue;
        }
        match &column.values {
            ValueOrigin::Calculated(origins) => {
                for origin in origins.iter() {
                    reads.insert(usize::from(*origin));
                }
            }
            ValueOrigin::Stored => reads.insert(ordinal),
            ValueOrigin::Uncertain => return ColumnSet::ALL,
        }
    }
    reads
}

/// Whether a statement does with the columns of its tables only what leaves its result to depend on
/// their rows alone. `tables` are those of [`Select::tables`], in their order.
///
/// # Errors
///
/// The number of a table because of which the result may not be kept, and why.
pub fn check_columns(select: &Select, tables: &[ReadTables]) -> Result<(), (usize, TableRefusal)> {
    let mut numbered = tables.iter().enumerate();
    numbered.try_for_each(|(number, table)| {
        let makes_dates = select.reads.makes_dates;
        check_table(select, number, &table.facts, makes_dates).map_err(|why| (number, why))
    })
}

/// The same for one of the tables, by its number among [`Select::tables`]. `makes_dates`: the
/// statement, or one that reads its result, converts something to dates.
///
/// # Errors
///
/// Why the result may not be kept.
pub fn check_table(
    select: &Select,
    number: usize,
    facts: &TableFacts,
    makes_dates: bool,
) -> Result<(), TableRefusal> {
    if !facts.columns.iter().any(ColumnFacts::is_limited) {
        return Ok(());
    }
    let of_all = use_of_all(select, number, facts);
    for column in facts.columns.iter() {
        let used = of_all.max(select.reads.names.use_of(&column.name));
        if let Some(why) = column.refusal(used, makes_dates) {
            return Err(why);
        }
    }
    Ok(())
}

/// What is done with every column of a table, whether or not it is named.
fn use_of_all(select: &Select, number: usize, facts: &TableFacts) -> Option<NameUse> {
    let sources = select.reads.blocks.iter().flat_map(|block| &block.sources);
    let mut reads = sources
        .filter(|source| source.table == Some(number))
        .map(|source| source.reads_all)
        .peekable();
    let is_placed = reads.peek().is_some();
    if select.reads.all_columns || !is_placed || !has_plain_names(facts) {
        return Some(NameUse::Any);
    }
    reads.max().flatten()
}

/// Whether each column has a name that can be found among those of a statement.
fn has_plain_names(facts: &TableFacts) -> bool {
    facts.columns.iter().all(|column| column.name.is_ascii())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora_cache::TableTags;
    use remora_sql::{Dialect, analyse};

    use super::*;
    use crate::facts::ColumnKind;

    const A: usize = 0;
    const T: usize = 1;
    const B: usize = 4;

    /// A table with the columns a, t (a TIME), v (which is calculated from a and b), w (calculated
    /// from more than the row), b, and j (JSON in which a TIME may be).
    fn facts(name: &str) -> ReadTables {
        let column = |name: &str, values| {
            let kind = match name {
                "t" => ColumnKind::Time,
                "j" => ColumnKind::JsonWithTimes,
                _ => ColumnKind::Other,
            };
            ColumnFacts {
                values,
                ..ColumnFacts::new(name, kind)
            }
        };
        let from = [A, B].map(|at| u16::try_from(at).unwrap());
        let columns = [
            column("a", ValueOrigin::Stored),
            column("t", ValueOrigin::Stored),
            column("v", ValueOrigin::Calculated(from.into())),
            column("w", ValueOrigin::Uncertain),
            column("b", ValueOrigin::Stored),
            column("j", ValueOrigin::Stored),
        ];
        let facts = TableFacts {
            columns: Arc::from(columns.to_vec()),
            ..TableFacts::refused("s", name, TableRefusal::View)
        };
        ReadTables {
            tags: TableTags::of(facts.tag),
            facts: Arc::new(facts),
        }
    }

    fn checked(text: &str) -> Result<(), TableRefusal> {
        let select = select(text);
        let tables: Vec<_> = select.tables.iter().map(|one| facts(&one.table)).collect();
        check_columns(&select, &tables).map_err(|(_, why)| why)
    }

    fn select(text: &str) -> Select {
        let statement = analyse(text.as_bytes(), Dialect::default());
        statement.cacheable.unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn a_time_column_may_be_shown_and_sorted_by() {
        for text in [
            "SELECT a, b FROM x WHERE v > 5",
            "SELECT a, x.t AS hour FROM x WHERE b = 5 ORDER BY hour",
            "SELECT a FROM x ORDER BY t LIMIT 3",
            "SELECT a FROM x, y WHERE EXISTS (SELECT 1 FROM z WHERE z.a = y.v)",
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
        for text in [
            "SELECT a FROM x WHERE t > b",
            "SELECT a FROM x WHERE b IN (SELECT t FROM y)",
            "SELECT a FROM x JOIN y USING (t)",
            "SELECT t AS hour FROM x HAVING hour > b",
            "SELECT t FROM x UNION SELECT b FROM y",
        ] {
            assert_eq!(checked(text), Err(TableRefusal::TimeColumns), "{text}");
        }
    }

    #[test]
    fn json_in_which_a_time_may_be_makes_no_dates() {
        for text in [
            "SELECT CONCAT(j, a) FROM x WHERE j > 5",
            "SELECT j FROM x WHERE YEAR(b) = 5",
            "SELECT a FROM x WHERE YEAR(b) = 5",
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
        for text in [
            "SELECT YEAR(COALESCE(j, a)) FROM x",
            "SELECT a FROM x WHERE CAST(j AS DATE) > b",
            "SELECT MAX(j) FROM x WHERE b > a + INTERVAL 1 DAY",
            "SELECT DATE(k) FROM (SELECT j AS k FROM x) AS y",
        ] {
            assert_eq!(checked(text), Err(TableRefusal::JsonWithTimes), "{text}");
        }
    }

    #[test]
    fn a_column_that_depends_on_more_than_the_row_may_not_be_named() {
        for text in [
            "SELECT w FROM x",
            "SELECT a FROM x ORDER BY w",
            "SELECT a FROM x WHERE b IN (SELECT w FROM y)",
        ] {
            assert_eq!(checked(text), Err(TableRefusal::VirtualColumns), "{text}");
        }
        assert_eq!(checked("SELECT a AS w FROM x"), Ok(()), "no column");
    }

    #[test]
    fn what_is_read_without_a_name_counts() {
        for (text, is_refused) in [
            ("SELECT * FROM x", true),
            ("SELECT x.* FROM x", true),
            ("SELECT a FROM x NATURAL JOIN y", true),
            ("SELECT _rowid FROM x", true),
            ("SELECT a FROM x WHERE EXISTS (SELECT * FROM y)", true),
            ("SELECT COUNT(*) FROM x", false),
        ] {
            assert_eq!(checked(text).is_err(), is_refused, "{text}");
        }
        let select = select("SELECT a FROM x");
        let mut table = facts("x");
        let mut facts = TableFacts::clone(&table.facts);
        let mut columns = facts.columns.to_vec();
        columns[0].name = "é".into();
        facts.columns = columns.into();
        table.facts = Arc::new(facts);
        assert!(
            check_columns(&select, &[table]).is_err(),
            "a name that isn't ASCII"
        );
    }

    #[test]
    fn a_calculated_column_reads_what_it_is_calculated_from() {
        let reads = |text: &str| {
            let select = select(text);
            columns_read(
                &select,
                &select.reads.blocks[0].sources[0],
                &facts("x").facts,
            )
        };
        let of = |ordinals: &[usize]| {
            let mut set = ColumnSet::EMPTY;
            for ordinal in ordinals {
                set.insert(*ordinal);
            }
            set
        };
        assert_eq!(reads("SELECT v FROM x"), of(&[A, B]));
        assert_eq!(reads("SELECT a, t FROM x"), of(&[A, T]));
        assert_eq!(reads("SELECT b FROM x WHERE v = 5"), of(&[A, B]));
        assert_eq!(reads("SELECT x.* FROM x"), ColumnSet::ALL);
    }
}
