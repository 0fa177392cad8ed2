//! A table as the log names it.

use std::fmt;

/// A table by the names in the log (as the server stores them).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoggedTable {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
}

impl LoggedTable {
    /// A table of a schema.
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            schema: schema.into(),
            table: table.into(),
        }
    }
}

impl fmt::Display for LoggedTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.schema, self.table)
    }
}
