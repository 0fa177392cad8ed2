//! Which tables a change touches.

use std::collections::BTreeSet;

use crate::table::LoggedTable;

/// The tables that a commit touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// These.
    Tables(BTreeSet<LoggedTable>),
    /// Any: too many to hold, or the log doesn't name them.
    Everything,
}

impl Touched {
    pub(crate) fn nothing() -> Self {
        Self::Tables(BTreeSet::new())
    }

    /// Adds a table. True if there were too many and all count from here on.
    pub(crate) fn add(&mut self, table: LoggedTable, tables_max: usize) -> bool {
        let Self::Tables(tables) = self else {
            return false;
        };
        tables.insert(table);
        let is_over = tables.len() > tables_max;
        if is_over {
            *self = Self::Everything;
        }
        is_over
    }

    /// Whether nothing was touched.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Tables(tables) if tables.is_empty())
    }
}
