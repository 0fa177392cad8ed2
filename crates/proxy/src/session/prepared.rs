//! What each prepared statement of a session will do when it is executed.

use std::collections::HashMap;

use super::fence::PlannedWrites;
use super::state::Effects;

/// The server's number of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StatementId(pub u32);

/// A prepared statement, as far as its execution concerns the cache and the session.
#[derive(Debug, Clone)]
pub(super) struct PreparedStatement {
    /// What it does to the session.
    pub effects: Effects,
    /// What it writes.
    pub writes: PlannedWrites,
    /// Whether its result tells of the statement before it.
    pub diagnostics: bool,
}

/// A session's prepared statements, up to a limit. One that isn't here may write everything.
#[derive(Debug)]
pub(super) struct PreparedStatements {
    known: HashMap<StatementId, PreparedStatement>,
    capacity: usize,
}

impl PreparedStatements {
    /// Room for `capacity` statements.
    pub(super) fn new(capacity: usize) -> PreparedStatements {
        PreparedStatements {
            known: HashMap::new(),
            capacity,
        }
    }

    /// Keeps a statement. Gives false if there is no room: then it counts as unknown.
    pub(super) fn insert(&mut self, id: StatementId, statement: PreparedStatement) -> bool {
        // A number that is used anew never means the old statement.
        self.known.remove(&id);
        let has_room = self.known.len() < self.capacity;
        if has_room {
            self.known.insert(id, statement);
        }
        has_room
    }

    /// The statement with this number.
    pub(super) fn get(&self, id: StatementId) -> Option<&PreparedStatement> {
        self.known.get(&id)
    }

    /// Forgets a statement that the client closed.
    pub(super) fn remove(&mut self, id: StatementId) {
        self.known.remove(&id);
    }

    /// Forgets all: the session was reset.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}
