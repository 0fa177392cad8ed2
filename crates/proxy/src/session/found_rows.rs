//! `FOUND_ROWS()` after a hit and statements that leave its value alone.
//!
//! The server has not seen the hit. As long as it has seen nothing since, it runs the hit when the
//! client asks ([`super::replay`]). After a statement that can't be right any more: the statement
//! may have changed the rows, the settings or the schema. So when such a statement is sent, the
//! rows of the hit's result are counted, while it is there; and when the client asks, the server
//! first runs a statement that reads no table and gives as many rows.
//!
//! What else is told of the statement before, `ROW_COUNT()` and the warnings, is that of the
//! statement that the server has seen. A question for both is left alone.

use remora_cache::KeyRef;
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

/// What a statement does with the count of found rows, if it has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundRows {
    /// It leaves it alone, on every server.
    Kept,
    /// An `UPDATE`.
    KeptByUpdate,
    /// A `DO`.
    KeptByDo,
    /// It sets it, or that isn't known.
    Set,
}

impl FoundRows {
    /// What this statement does. In doubt it is said to set the count.
    pub(super) fn after(text: &[u8]) -> FoundRows {
        let word = |word: &&[u8]| !word.is_empty();
        let mut words = text
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .filter(word);
        let first = words.next().unwrap_or_default();
        // A comment or anything else before it leaves the rest unknown; so may another statement
        // behind it.
        let text = text.trim_ascii();
        let before_end = text.strip_suffix(b";").unwrap_or(text);
        if !text.starts_with(first) || before_end.contains(&b';') {
            return FoundRows::Set;
        }
        let first = first.to_ascii_uppercase();
        // Each of these may begin what reads; a definition says once what it defines.
        let mut tables = 0;
        let reads = |word: &[u8]| {
            let is_table = word.eq_ignore_ascii_case(b"table");
            tables += usize::from(is_table);
            [&b"select"[..], b"with", b"returning"]
                .iter()
                .any(|one| word.eq_ignore_ascii_case(one))
        };
        let kept = match &first[..] {
            b"TRUNCATE" | b"LOCK" | b"UNLOCK" | b"FLUSH" => return FoundRows::Kept,
            b"SET" | b"BEGIN" | b"START" | b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE"
            | b"USE" | b"INSERT" | b"REPLACE" | b"DELETE" | b"CREATE" | b"ALTER" | b"DROP" => {
                FoundRows::Kept
            }
            b"UPDATE" => FoundRows::KeptByUpdate,
            b"DO" => FoundRows::KeptByDo,
            _ => return FoundRows::Set,
        };
        let tables_max = usize::from(matches!(&first[..], b"CREATE" | b"ALTER" | b"DROP"));
        if words.any(reads) || tables > tables_max {
            FoundRows::Set
        } else {
            kept
        }
    }

    /// Whether a statement asks for the count, and for nothing else about the statement before it.
    pub(super) fn is_asked_for_alone(text: &[u8]) -> bool {
        let text = text.trim_ascii().to_ascii_lowercase();
        let has = |what: &str| text.windows(what.len()).any(|part| part == what.as_bytes());
        let is_of_other_kind = text.starts_with(b"show") || text.starts_with(b"get");
        has("found_rows(")
            && !is_of_other_kind
            && !["row_count", "warning_count", "error_count"]
                .into_iter()
                .any(has)
    }
}

/// Whether a result can have another number of rows than is found: then nothing is said of it.
pub(super) fn may_find_more_than_it_gives(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "limit",
        "union",
        "intersect",
        "except",
        "rollup",
        "fetch",
        "rownum",
    ]
    .iter()
    .any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
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
            self.found_rows = self.rows_of_unreplayed_hit();
        }
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
                let read = self.prepared.get(id)?.read.as_ref().ok()?;
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
        if let Some(count) = self.found_rows.take() {
            let statement = rows_from_nothing(count);
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
    fn statements_without_result_keep_the_count() {
        for text in [
            "SET @a = 1",
            " set names utf8",
            "INSERT INTO t VALUES (1)",
            "BEGIN",
            "lock tables t read",
            "TRUNCATE TABLE t",
            "DELETE FROM selects",
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
        ] {
            assert_eq!(FoundRows::after(text.as_bytes()), FoundRows::Kept, "{text}");
        }
        for text in [
            "",
            "SELECT 1",
            "/* a */ SET @a = 1",
            "SET @a = (SELECT 1)",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t TABLE u",
            "CREATE TABLE t TABLE u",
            "CREATE TABLE t AS SELECT 1",
            "INSERT INTO t VALUES (1) RETURNING a",
            "DELETE FROM t WHERE a IN (select b FROM u)",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "CALL p()",
            "SET @a = 1; CALL p()",
            "SHOW TABLES",
            "\"SET\" x",
        ] {
            assert_eq!(FoundRows::after(text.as_bytes()), FoundRows::Set, "{text}");
        }
        assert_eq!(
            FoundRows::after(b"UPDATE t SET a = 1"),
            FoundRows::KeptByUpdate
        );
        assert_eq!(FoundRows::after(b"do 1"), FoundRows::KeptByDo);
    }

    #[test]
    fn a_question_for_more_than_the_count_is_told_apart() {
        for text in ["SELECT FOUND_ROWS()", " set @a = found_rows()"] {
            assert!(FoundRows::is_asked_for_alone(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT FOUND_ROWS(), ROW_COUNT()",
            "SELECT FOUND_ROWS(), @@warning_count",
            "SHOW WARNINGS -- found_rows()",
            "SELECT @found_rows",
        ] {
            assert!(!FoundRows::is_asked_for_alone(text.as_bytes()), "{text}");
        }
    }

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
