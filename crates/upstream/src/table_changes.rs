//! How often each table was changed, for a bounded number of tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use remora_binlog::LoggedTable;
use remora_cache::{Position, Tag};

/// Counts the commits that changed each table. The follower counts when it has applied them; nobody
/// else waits.
#[derive(Debug)]
pub struct TableChanges {
    tables_max: usize,
    counts: Mutex<TableCounts>,
    /// The last commit that changed each table, by the table's tag.
    latest: Mutex<HashMap<Tag, Position>>,
}

/// The counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Commits by the table that they changed.
    pub of: HashMap<Arc<LoggedTable>, u64>,
    /// The same of all tables that have no count of their own, together.
    pub others: u64,
}

impl TableChanges {
    /// For so many tables.
    pub fn new(tables_max: usize) -> TableChanges {
        TableChanges {
            tables_max,
            counts: Mutex::default(),
            latest: Mutex::default(),
        }
    }

    /// The commit at `at` is about to touch these: whoever finds a touch finds that it was of them.
    pub fn begin(&self, tables: &BTreeSet<LoggedTable>, at: Position) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        for table in tables {
            let tag = Tag::table(&table.schema, &table.table);
            if latest.len() < self.tables_max || latest.contains_key(&tag) {
                latest.insert(tag, at);
            }
        }
    }

    /// The log was restarted, and positions of before compare with none of it.
    pub fn forget_positions(&self) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clear();
    }

    /// Whether a commit above `position` is known to have changed the table; `None` if too many
    /// tables were changed for that to be told.
    pub fn has_changed_since(&self, table: Tag, position: Position) -> Option<bool> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.get(&table) {
            Some(at) => Some(*at > position),
            None => (latest.len() < self.tables_max).then_some(false),
        }
    }

    /// A commit changed these.
    pub fn count(&self, tables: &BTreeSet<LoggedTable>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for table in tables {
            if let Some(count) = counts.of.get_mut(table) {
                *count += 1;
            } else if counts.of.len() < self.tables_max {
                counts.of.insert(Arc::new(table.clone()), 1);
            } else {
                counts.others += 1;
            }
        }
    }

    /// Changes of one table since the start. `None`: it has no count of its own.
    pub fn of(&self, schema: &str, table: &str) -> Option<u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.of.get(&LoggedTable::new(schema, table)).copied();
        let has_room = counts.of.len() < self.tables_max;
        count.or(has_room.then_some(0))
    }

    /// Changes of tables that have no count of their own.
    pub fn of_others(&self) -> u64 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.others
    }

    /// The counts now.
    pub fn get(&self) -> TableCounts {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_beyond_the_limit_are_counted_together() {
        let changes = TableChanges::new(2);
        let table = |name: &str| LoggedTable::new("shop", name);
        changes.count(&["a", "b"].map(table).into());
        changes.count(&["a", "b", "c", "d"].map(table).into());
        changes.count(&["a", "c"].map(table).into());
        let counts = changes.get();
        let expected = [("a", 3), ("b", 2)].map(|(name, count)| (Arc::new(table(name)), count));
        assert_eq!(counts.of, HashMap::from(expected));
        assert_eq!((counts.others, changes.of_others()), (3, 3));
        assert_eq!(
            (changes.of("shop", "a"), changes.of("shop", "c")),
            (Some(3), None)
        );
        assert_eq!(TableChanges::new(1).of("shop", "a"), Some(0));
        assert_eq!(TableChanges::new(0).get(), TableCounts::default());
    }

    #[test]
    fn the_last_change_of_a_table_is_known_unless_there_are_too_many() {
        let changes = TableChanges::new(2);
        let at = |offset| Position::new(1, offset).unwrap();
        let tag = |name| Tag::table("shop", name);
        changes.begin(&[LoggedTable::new("shop", "a")].into(), at(100));
        assert_eq!(changes.has_changed_since(tag("a"), at(99)), Some(true));
        assert_eq!(changes.has_changed_since(tag("a"), at(100)), Some(false));
        assert_eq!(changes.has_changed_since(tag("b"), at(1)), Some(false));
        let more = ["b", "c"].map(|name| LoggedTable::new("shop", name));
        changes.begin(&more.into(), at(200));
        assert_eq!(changes.has_changed_since(tag("b"), at(100)), Some(true));
        assert_eq!(changes.has_changed_since(tag("c"), at(100)), None);
        changes.forget_positions();
        assert_eq!(changes.has_changed_since(tag("a"), at(1)), Some(false));
    }
}
