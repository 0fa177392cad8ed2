//! What the analysis says of all reads that differ only in their values.

use crate::reads::Reads;
use crate::select::Select;
use crate::statement::Statement;

/// The analysis of a cacheable read, without what depends on values: which rows it reads.
///
/// It holds for every statement with the same [`crate::skeleton`] and dialect, if quotes and
/// backslashes are certain. No value has an effect: what a statement calls, names and locks is in
/// the skeleton. A value may still make one of them uncacheable, so use it only where the result
/// isn't stored. If one were stored anyway, any change of its tables would drop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTemplate(Statement);

impl ReadTemplate {
    /// That of a statement; `None` if it can't be cached.
    pub fn of(statement: &Statement) -> Option<ReadTemplate> {
        let select = statement.cacheable.as_ref().ok()?;
        let every_row = Reads {
            all_columns: true,
            ..Reads::default()
        };
        Some(ReadTemplate(Statement {
            cacheable: Ok(Select {
                tables: select.tables.clone(),
                reads: every_row,
                says_cache: select.says_cache,
                rows_come_from_tables: select.rows_come_from_tables,
                // A value decides that.
                filters_by_conditions_only: false,
                counts_found_rows: select.counts_found_rows,
            }),
            narrowed: None,
            writes: statement.writes.clone(),
            ..*statement
        }))
    }

    /// The analysis.
    pub fn statement(&self) -> &Statement {
        &self.0
    }
}
