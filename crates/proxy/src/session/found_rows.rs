//! `FOUND_ROWS()` after a hit and statements that leave its value alone.
//!
//! The server has not seen the hit. As long as it has seen nothing since, it runs the hit when the
//! client asks ([`remora_engine::session::replay`]). After a statement that can't be right any
//! more: the statement may have changed the rows, the settings or the schema. So when such a
//! statement is sent, Remora counts the rows of the hit's result while it is still there. When the
//! client asks, the server first runs a statement that reads no table and gives as many rows.
//!
//! Remora's question for the settings overwrites the server's count, too. So it asks for that as
//! well, and the count is kept in the same way.
//!
//! What else is told of the statement before, `ROW_COUNT()` and the warnings, is that of the
//! statement that the server has seen. A question for both is left alone.

use remora_cache::KeyRef;
use remora_engine::session::found_rows::{FoundRows, may_find_more_than_it_gives};
use remora_wire::Command;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::result_set::Parts;

use super::questions::{EXECUTE, QUERY};
use super::{Ended, Session};
use remora_wire::command::ResponseKind;

/// With more rows, the count isn't passed on.
pub(super) const ROWS_MAX: usize = 1_000_000;
/// A variable that servers have whose `UPDATE` sets the count of found rows, and which warn of such
/// counts: MySQL 8.0.
const OF_MYSQL_80: &str = "resultset_metadata";
/// The same for `DO`: MySQL 5.7.
const OF_SERVERS_THAT_COUNT_DO: &str = "session_track_gtids";

/// What `FOUND_ROWS()` must give the client, and wouldn't.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwedCount {
    rows: usize,
    /// They are those of a hit that the server hasn't seen. Else Remora's own question has
    /// overwritten the server's count.
    is_of_hit: bool,
}

impl OwedCount {
    fn of_hit(rows: usize) -> OwedCount {
        OwedCount {
            rows,
            is_of_hit: true,
        }
    }
}

/// A statement without a table that gives so many rows.
fn rows_from_nothing(count: usize) -> String {
    const TEN: &str = "(SELECT 1 AS n UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 \
         UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 \
         UNION ALL SELECT 1 UNION ALL SELECT 1)";
    if count == 0 {
        return "SELECT 1 FROM (SELECT 1 AS n) t0 WHERE n = 2".to_owned();
    }
    let digits = count.ilog10() + 1;
    let tables = (0..digits).map(|at| format!("{TEN} t{at}"));
    let tables: Vec<String> = tables.collect();
    format!("SELECT 1 FROM {} LIMIT {count}", tables.join(" JOIN "))
}

impl Session {
    /// A message is about to go to the server: what `FOUND_ROWS()` gives after it.
    pub(super) fn note_found_rows(&mut self, message: &[u8]) {
        let is_of_hit = self.unreplayed_hit.has_result();
        if !is_of_hit && self.found_rows.is_none() {
            return;
        }
        if !self.keeps_found_rows(message) {
            self.found_rows = None;
        } else if is_of_hit {
            self.keep_count_of_hit();
        }
    }

    /// The server is about to get a statement that leaves `FOUND_ROWS()` alone: keeps the count of
    /// the hit that it hasn't seen.
    pub(super) fn keep_count_of_hit(&mut self) {
        self.found_rows = self.rows_of_unreplayed_hit().map(OwedCount::of_hit);
    }

    /// Remora's own question has overwritten the server's count. The answer tells what it was.
    pub(super) fn note_overwritten_count(&mut self, count: Option<usize>) {
        if self.found_rows.is_none() && !self.unreplayed_hit.has_result() {
            self.found_rows = count
                .filter(|rows| *rows <= ROWS_MAX)
                .map(|rows| OwedCount {
                    rows,
                    is_of_hit: false,
                });
        }
    }

    /// Whether the count must be set before a procedure, which may ask for it. One that Remora's
    /// question has overwritten isn't: each call would cost a second question.
    pub(super) fn must_set_found_rows_for_code(&self) -> bool {
        self.found_rows.is_some_and(|owed| owed.is_of_hit)
    }

    fn keeps_found_rows(&self, message: &[u8]) -> bool {
        let command = Command::from_byte(message.get(HEADER_BYTES).copied().unwrap_or_default());
        let body = message.get(HEADER_BYTES + 1..).unwrap_or_default();
        let after = match command {
            Command::Query => self.statement_text(body).map(FoundRows::after),
            Command::StmtExecute => self
                .statement_meant(body)
                .and_then(|id| self.prepared.get(id))
                .map(|statement| statement.found_rows),
            Command::InitDb | Command::FieldList => Some(FoundRows::Kept),
            _ => None,
        };
        match after {
            Some(FoundRows::Kept) => true,
            Some(FoundRows::KeptByUpdate) => !self.server_has(OF_MYSQL_80),
            Some(FoundRows::KeptByDo) => !self.server_has(OF_SERVERS_THAT_COUNT_DO),
            Some(FoundRows::Set) | None => false,
        }
    }

    /// Whether the server has this variable, or that isn't known.
    fn server_has(&self, variable: &str) -> bool {
        let query = self.shared.upstream.settings_query();
        query.is_none_or(|query| query.asks_for(variable))
    }

    /// Whether the server warns of `SQL_CALC_FOUND_ROWS`.
    pub(super) fn warns_of_found_rows(&self) -> bool {
        self.server_has(OF_MYSQL_80)
    }

    /// How many rows the hit had that the server has not seen, if its result is still there.
    pub(super) fn rows_of_unreplayed_hit(&self) -> Option<usize> {
        if self.unreplayed_hit.is_asked() {
            return Some(1);
        }
        if let Some(count) = self.unreplayed_hit.count() {
            return self.counted(count).filter(|rows| *rows <= ROWS_MAX);
        }
        let payload = self.unreplayed_hit.payload();
        let (command, body) = payload.split_first()?;
        let (mut stripped, mut key) = (Vec::new(), Vec::new());
        let (scope, text) = match *command {
            QUERY => {
                let text = self.statement_text(body)?;
                if may_find_more_than_it_gives(text) {
                    return None;
                }
                let text = self.key_text(text, &mut stripped);
                (self.place_of(text)?.scope, text)
            }
            EXECUTE => {
                let id = self.statement_meant(body)?;
                let read = self.prepared.read(id)?;
                if may_find_more_than_it_gives(&read.text) {
                    return None;
                }
                let execution = read.execution(body.get(4..)?, self.capabilities())?;
                let timeline = &self.shared.timeline;
                read.put_key(&execution, timeline, &mut key).ok()?;
                (self.state.binary_scope().ok()?, &key[..])
            }
            _ => return None,
        };
        let key = KeyRef { scope, text };
        let rows = self.shared.store.with(&key, key.digest(), |entry| {
            let parts = Parts::of(entry.response(), self.capabilities()).ok()?;
            Some(parts.rows.len())
        });
        rows.flatten().filter(|rows| *rows <= ROWS_MAX)
    }

    /// Has the server find as many rows as the hit that it hasn't seen.
    pub(super) async fn set_found_rows(&mut self) -> Result<(), Ended> {
        if let Some(owed) = self.found_rows.take() {
            let statement = rows_from_nothing(owed.rows);
            let message = [self.query_head(), statement.as_bytes()].concat();
            self.ask(&message, ResponseKind::Results, None).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_from_as_few_tables_as_give_them() {
        for (count, tables) in [(1, 1), (9, 1), (10, 2), (999, 3)] {
            let text = rows_from_nothing(count);
            assert_eq!(text.matches(") t").count(), tables, "{text}");
            assert!(text.ends_with(&format!("LIMIT {count}")), "{text}");
        }
        assert!(!rows_from_nothing(0).contains("LIMIT"));
    }
}
