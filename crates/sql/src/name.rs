//! Names of tables.

/// A table (or view) as it is written in a statement: without quotes, case kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema, if one is written; else the session's default schema is meant.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

impl TableName {
    /// The schema that is meant when the session's default schema is `default_schema`; `None` if
    /// the name has none and the session neither.
    pub fn schema_or<'a>(&'a self, default_schema: Option<&'a str>) -> Option<&'a str> {
        self.schema.as_deref().or(default_schema)
    }
}
