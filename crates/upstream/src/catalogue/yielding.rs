//! Keeping out of the way of statements that change definitions.
//!
//! While MariaDB, and MySQL before 8.0, answer a question about a table's definition, they hold a
//! lock on it. A statement that changes the definition waits for that, for microseconds; or is
//! refused at once, if it says `NOWAIT` or the session's `lock_wait_timeout` is 0. So while such a
//! statement is on its way through Remora, nothing is asked about its tables, and it is sent only
//! when the questions on their way have been answered.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Catalogue, TableKey};

/// Questions about definitions are on their way, as long as this is held.
pub(crate) struct Asking<'c>(&'c Catalogue);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.requests().is_asking = false;
        self.0.quiet_bell.notify_waiters();
    }
}

impl Catalogue {
    /// Nothing is asked about these tables, by their names as a statement writes them, until they
    /// are released.
    pub(crate) fn hold<'n>(
        &self,
        names: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Vec<TableKey> {
        let tables: Vec<_> = names
            .map(|(schema, table)| self.key(schema, table))
            .collect();
        let mut requests = self.requests();
        for table in &tables {
            *requests.held.entry(table.clone()).or_default() += 1;
        }
        tables
    }

    /// They have been held for long enough.
    pub(crate) fn release(&self, tables: &[TableKey]) {
        let mut requests = self.requests();
        for table in tables {
            if let Some(times) = requests.held.get_mut(table) {
                *times -= 1;
                if *times == 0 {
                    requests.held.remove(table);
                }
            }
        }
    }

    /// Questions about these tables are about to be sent; about those that are held back they
    /// aren't.
    pub(crate) fn begin_asking(&self, batch: &mut Vec<TableKey>) -> Asking<'_> {
        let mut requests = self.requests();
        let held = |key: &TableKey| requests.held.contains_key(key);
        batch.retain(|key| !held(key));
        requests.is_asking = true;
        Asking(self)
    }

    /// A question about all views is about to be sent. The server looks into every table to answer
    /// it; so while a statement that changes a definition is on its way, it isn't: `None`.
    pub(crate) fn begin_asking_about_all(&self) -> Option<Asking<'_>> {
        let mut requests = self.requests();
        if !requests.held.is_empty() {
            return None;
        }
        requests.is_asking = true;
        Some(Asking(self))
    }

    /// Whether questions are on their way.
    pub fn is_asking(&self) -> bool {
        self.requests().is_asking
    }

    /// Waits until those that are on their way have been answered. False if that takes longer than
    /// `limit`.
    pub async fn until_quiet(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            // Made before the look, it hears every ring since.
            let rung = self.quiet_bell.notified();
            if !self.is_asking() {
                return true;
            }
            if timeout_at(end, rung).await.is_err() {
                return false;
            }
        }
    }
}
