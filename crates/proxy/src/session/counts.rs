//! What the server has counted in the session: the evidence of what code did that isn't seen.
//!
//! Code may create a temporary table, which then stands in for another of its name. What functions
//! and triggers create is counted as well: by MySQL among all tables, by MariaDB apart. Procedures
//! and executed text can also lock tables and begin XA transactions. Each such statement is
//! counted, too.
//!
//! `FLUSH STATUS` resets the counts: on MySQL, that of any session resets those of all; elsewhere a
//! procedure may run it. It also resets the count of bytes received. So if the server has received
//! less than was sent since a place before the code (`counts_from`), the counts were reset since.

use remora_engine::session::counts::{CountedTables, SessionCounts};
use remora_net::Stream;
use remora_wire::command::ResponseKind;
use remora_wire::rows::parse_text_row;
use remora_wire::walker::Ending;

use super::questions::payloads_of;
use super::{Ended, Session};

/// The question. Servers answer in the order of names, and leave out those they don't have.
const COUNTS: &str = "SHOW SESSION STATUS WHERE Variable_name IN ('Bytes_received', 'Com_backup', \
     'Com_backup_lock', 'Com_binlog', 'Com_create_sequence', 'Com_create_table', \
     'Com_create_temporary_table', 'Com_flush', 'Com_lock_tables', 'Com_xa_start', 'Uptime')";
/// The names in the answer that are not those of locks.
const BYTES_RECEIVED: &[u8] = b"bytes_received";
const ALL_CREATED: &[u8] = b"com_create_table";
const TEMPORARY_CREATED: &[u8] = b"com_create_temporary_table";
/// The last one. Without it the answer isn't whole: `sql_select_limit` cuts this one, too.
const LAST: &[u8] = b"uptime";
/// Fields of a row: name and value.
const FIELDS: usize = 2;

impl Session {
    /// Whether the server must be asked now how many tables the session has created. Once code has
    /// run that isn't seen, nobody could say which of them it created.
    pub(super) fn should_recount_tables(&self) -> bool {
        self.state.wants_tables_recounted() && self.shared.upstream.settings_query().is_some()
    }

    /// A message is about to be sent, and with it perhaps code.
    pub(super) fn note_counts_before(&mut self) {
        if self.state.is_reset_of_counts_harmless() {
            self.counts_from = self.server.bytes_written();
        }
    }

    /// Asks the server for the counts, if code ran that isn't seen, or will.
    pub(super) async fn learn_counts(&mut self) -> Result<(), Ended> {
        if !self.state.wants_tables_created() && !self.state.wants_tables_recounted() {
            return Ok(());
        }
        let mut answer = Vec::new();
        let message = [self.query_head(), COUNTS.as_bytes()].concat();
        let summary = self
            .ask(&message, ResponseKind::Results, Some(&mut answer))
            .await?;
        let told = Told::of(&answer).filter(|_| summary.ending == Ending::ResultSet);
        let sent_bytes = self.server.bytes_written() - self.counts_from;
        // Of a compressed message fewer bytes are received than were written here.
        let is_comparable = !self.server.is_compressed();
        self.state.learn_counts(told.map(|told| SessionCounts {
            tables: told.tables,
            locks: told.locks,
            were_reset: is_comparable.then_some(told.received_bytes < sent_bytes),
        }));
        self.counts_from = counted_from(&self.server);
        Ok(())
    }
}

/// Where the comparison starts, right after an answer. One byte that the server has received
/// already is counted again. So if its counts are reset before the next message, it tells of one
/// byte too few, and the reset is noticed.
pub(super) fn counted_from(server: &Stream) -> u64 {
    server.bytes_written().saturating_sub(1)
}

/// An answer to [`COUNTS`].
#[derive(Debug, PartialEq, Eq)]
struct Told {
    tables: CountedTables,
    locks: u64,
    received_bytes: u64,
}

impl Told {
    /// `None` if it isn't whole.
    fn of(answer: &[u8]) -> Option<Told> {
        let rows = payloads_of(answer).filter_map(|row| parse_text_row(row, FIELDS).ok());
        Told::by(rows.filter_map(|row| named_count(&row)))
    }

    fn by(rows: impl Iterator<Item = (Vec<u8>, u64)>) -> Option<Told> {
        let (mut received, mut all, mut temporary, mut locks) = (None, None, None, 0);
        let mut is_whole = false;
        for (name, count) in rows {
            match name.as_slice() {
                BYTES_RECEIVED => received = Some(count),
                ALL_CREATED => all = Some(CountedTables::All(count)),
                TEMPORARY_CREATED => temporary = Some(CountedTables::Temporary(count)),
                LAST => is_whole = true,
                _ => locks += count,
            }
        }
        Some(Told {
            tables: temporary.or(all).filter(|_| is_whole)?,
            locks,
            received_bytes: received?,
        })
    }
}

/// A row of `SHOW STATUS`, if its value is a number: the name in small letters.
fn named_count(row: &[Option<Vec<u8>>]) -> Option<(Vec<u8>, u64)> {
    let [Some(name), Some(value)] = row else {
        return None;
    };
    let count = std::str::from_utf8(&narrow(value)).ok()?.parse().ok()?;
    Some((narrow(name).to_ascii_lowercase(), count))
}

/// ASCII text in any character set: in the wide ones zeros stand between its bytes.
fn narrow(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_any_character_set() {
        let row =
            |name: &[u8], value: &[u8]| named_count(&[Some(name.to_vec()), Some(value.to_vec())]);
        let twelve = Some((ALL_CREATED.to_vec(), 12));
        assert_eq!(row(b"Com_create_table", b"12"), twelve);
        assert_eq!(row(b"\0U\0p", b"\x001\x002"), Some((b"up".to_vec(), 12)));
        assert_eq!(row(ALL_CREATED, b""), None);
    }

    #[test]
    fn an_answer_counts_if_it_is_whole() {
        let told = |rows: &[(&[u8], u64)]| {
            let rows = rows.iter().map(|(name, count)| (name.to_vec(), *count));
            Told::by(rows)
        };
        let mysql: [(&[u8], u64); 5] = [
            (BYTES_RECEIVED, 100),
            (ALL_CREATED, 2),
            (b"com_lock_tables", 3),
            (b"com_xa_start", 4),
            (LAST, 1000),
        ];
        let all = told(&mysql).unwrap();
        assert_eq!(all.tables, CountedTables::All(2));
        assert_eq!((all.locks, all.received_bytes), (7, 100));
        for left_out in [0, 1, 4] {
            let mut rows = mysql.to_vec();
            rows.remove(left_out);
            assert_eq!(told(&rows), None, "{left_out}");
        }
        let mariadb = [&mysql[..3], &[(TEMPORARY_CREATED, 0)], &mysql[3..]].concat();
        let temporary = told(&mariadb).unwrap();
        assert_eq!(temporary.tables, CountedTables::Temporary(0));
        assert_eq!(temporary.locks, 7);
    }
}
