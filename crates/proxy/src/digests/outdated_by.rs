//! By which tables results of a digest were outdated.

use remora_cache::InvalidationReason;

/// Different tables that are told apart: a statement rarely reads more.
const TABLES_MAX: usize = 8;

/// What outdated one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutdatedBy {
    /// Changes of these tables, by schema and name.
    Tables(Vec<(String, String)>),
    /// A commit that may have changed anything, or a log that was lost.
    Everything,
    /// That can't be told: no table that the statement reads has changed, so something else shares
    /// a place with one of its tags; the statement's tables aren't known any more; or they weren't
    /// looked for.
    Unknown,
}

impl OutdatedBy {
    /// What is known by the reason for which a result was dropped; `None` if no change outdated it.
    pub(crate) fn told_without_tables(reason: InvalidationReason) -> Option<OutdatedBy> {
        match reason {
            InvalidationReason::Changed => Some(OutdatedBy::Unknown),
            InvalidationReason::Everything | InvalidationReason::Forgotten => {
                Some(OutdatedBy::Everything)
            }
            InvalidationReason::Cleared
            | InvalidationReason::Expired
            | InvalidationReason::Faulty => None,
        }
    }
}

/// The counts of one digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OutdatedByCounts {
    /// By schema and name.
    pub tables: Vec<((String, String), u64)>,
    /// Of tables that had no room.
    pub other_tables: u64,
    pub everything: u64,
    pub unknown: u64,
}

impl OutdatedByCounts {
    pub(super) fn count(&mut self, by: OutdatedBy) {
        match by {
            OutdatedBy::Tables(tables) => {
                for table in tables {
                    self.count_table(table);
                }
            }
            OutdatedBy::Everything => self.everything += 1,
            OutdatedBy::Unknown => self.unknown += 1,
        }
    }

    fn count_table(&mut self, table: (String, String)) {
        if let Some((_, count)) = self.tables.iter_mut().find(|(known, _)| *known == table) {
            *count += 1;
        } else if self.tables.len() < TABLES_MAX {
            self.tables.push((table, 1));
        } else {
            self.other_tables += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_outdate_a_result() {
        use InvalidationReason as Reason;
        let told = OutdatedBy::told_without_tables;
        assert_eq!(told(Reason::Changed), Some(OutdatedBy::Unknown));
        for reason in [Reason::Everything, Reason::Forgotten] {
            assert_eq!(told(reason), Some(OutdatedBy::Everything));
        }
        for reason in [Reason::Cleared, Reason::Expired, Reason::Faulty] {
            assert_eq!(told(reason), None);
        }
    }

    #[test]
    fn more_tables_than_have_room_are_counted_together() {
        let mut counts = OutdatedByCounts::default();
        let table = |number: usize| ("shop".to_owned(), format!("t{number}"));
        counts.count(OutdatedBy::Tables((0..TABLES_MAX + 3).map(table).collect()));
        counts.count(OutdatedBy::Tables(vec![table(0)]));
        counts.count(OutdatedBy::Everything);
        counts.count(OutdatedBy::Unknown);
        assert_eq!(counts.tables.len(), TABLES_MAX);
        assert_eq!(counts.tables[0], (table(0), 2));
        assert_eq!(
            (counts.other_tables, counts.everything, counts.unknown),
            (3, 1, 1)
        );
    }
}
