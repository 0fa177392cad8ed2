//! How many tables a session has created, as the server counts them, and what else it counts.

/// What the server has counted in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCounts {
    /// The tables that it has created.
    pub tables: CountedTables,
    /// Statements that may leave something behind and that functions and triggers can't contain:
    /// `LOCK TABLES`, `FLUSH`, `BACKUP`, `BINLOG`, `XA START`, `CREATE SEQUENCE`. That they can't
    /// contain `CREATE TEMPORARY SEQUENCE` either was measured on MariaDB 10.11 and 11.4.
    pub locks: u64,
    /// Whether the counts were reset when that was not harmless any more
    /// ([`super::state::SessionState::is_reset_of_counts_harmless`]); `None` if that isn't known.
    pub were_reset: Option<bool>,
}

/// What the server has counted of the tables that a session has created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedTables {
    /// Temporary tables only.
    Temporary(u64),
    /// Every `CREATE TABLE`.
    All(u64),
}

/// What a statement does to that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedCount {
    /// Nothing.
    Same,
    /// It is a `CREATE TABLE`, and counted unless it fails early.
    OneMore,
    /// Anything: it may be a `CREATE TABLE`, or begin the count again (`FLUSH STATUS`).
    Unknown,
}

/// The tables that a session has created before everybody's eyes.
#[derive(Debug, Clone, Copy)]
pub(super) struct TablesCreated {
    count: u64,
    /// Whether the server has counted just as many. Nobody knows whether one that failed counts.
    pub(super) is_certain: bool,
}

impl Default for TablesCreated {
    fn default() -> TablesCreated {
        TablesCreated {
            count: 0,
            is_certain: true,
        }
    }
}

impl TablesCreated {
    pub(super) fn one_more(&mut self, succeeded: bool) {
        self.count += 1;
        self.is_certain &= succeeded;
    }

    /// None, as far as is known.
    pub(super) fn is_zero(self) -> bool {
        self.count == 0
    }

    /// The server told, and no code has run.
    pub(super) fn recount(&mut self, counted: CountedTables) {
        self.is_certain = true;
        if let CountedTables::All(count) = counted {
            self.count = count;
        }
    }

    /// Whether the session needn't have created any other. A session that creates temporary tables
    /// before everybody's eyes passes through by that alone.
    pub(super) fn explains(self, counted: CountedTables) -> bool {
        match counted {
            CountedTables::Temporary(count) => count == 0,
            CountedTables::All(count) => self.is_certain && count == self.count,
        }
    }
}
