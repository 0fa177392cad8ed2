//! The simulated server's log: events byte for byte as a MariaDB without checksums writes them.

use std::collections::VecDeque;

use remora_binlog::{HEADER_BYTES, event_type};
use remora_upstream::simulated::{LOG_BEGINS_AT, SCHEMA};

use super::engine::{Engine, Place, Row, RowChange};
use super::random::Random;
use super::statement::TABLES;

/// The lengths of post-headers: of QUERY events, and of those about a table's rows.
const QUERY_POST_HEADER_BYTES: u8 = 13;
const TABLE_POST_HEADER_BYTES: u8 = 8;

const VERSION_BYTES: usize = 50;

/// `MYSQL_TYPE_LONG` and `MYSQL_TYPE_LONGLONG`: the columns `id`, `g` and `v`.
const COLUMN_TYPES: [u8; 3] = [3, 3, 8];
const COLUMN_BYTES: [usize; 3] = [4, 4, 8];
const ALL_COLUMNS: u8 = 0b111;
const KEY: u8 = 0b001;

/// How commits are logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    /// `binlog_row_image = MINIMAL`.
    pub(super) is_minimal: bool,
    /// One commit in this many is logged as text; 0: none. It counts as a change of everything.
    pub(super) one_text_in: u64,
    /// One event of rows in this many is too long to be read whole; 0: none.
    pub(super) one_long_in: u64,
}

/// What the follower reads of an event.
pub(super) struct LoggedEvent {
    /// Its beginning, or all of it.
    pub(super) kept: Vec<u8>,
    /// Its length, bytes.
    pub(super) bytes: u64,
}

/// Enough of a row event to tell its table: the header, the table's number, flags.
const ROWS_BEGINNING_BYTES: usize = HEADER_BYTES + 8;

/// What the follower reads.
pub(super) struct Log {
    format: Format,
    server_id: u32,
    /// Where the last event ends.
    offset: u32,
    /// How many commits have been written.
    commits: usize,
    /// What the follower hasn't read.
    unread: VecDeque<LoggedEvent>,
}

impl Log {
    pub(super) fn new(format: Format, server_id: u32) -> Log {
        let mut log = Log {
            format,
            server_id,
            offset: LOG_BEGINS_AT,
            commits: 0,
            unread: VecDeque::new(),
        };
        log.put_format();
        log
    }

    /// The server begins a log in place of this one. It says nothing of the commits so far.
    pub(super) fn restart(&mut self, engine: &Engine) {
        self.offset = LOG_BEGINS_AT;
        self.commits = engine.logged();
        self.unread.clear();
        self.put_format();
    }

    /// Whether there is something to read.
    pub(super) fn has_more(&self, engine: &Engine) -> bool {
        !self.unread.is_empty() || self.commits < engine.logged()
    }

    /// The next event.
    pub(super) fn read(&mut self, engine: &Engine, random: &mut Random) -> Option<LoggedEvent> {
        if self.unread.is_empty() && self.commits < engine.logged() {
            self.commits += 1;
            self.put_commit(engine.changed_by(self.commits), random);
        }
        self.unread.pop_front()
    }

    fn put_format(&mut self) {
        let mut body = 4_u16.to_le_bytes().to_vec();
        let mut version = b"10.11.6-MariaDB-log".to_vec();
        version.resize(VERSION_BYTES, 0);
        body.extend(version);
        body.extend([0; 4]);
        body.push(u8::try_from(HEADER_BYTES).unwrap_or_default());
        let mut lengths = [0; event_type::START_ENCRYPTION as usize];
        for (event, length) in [
            (event_type::QUERY, QUERY_POST_HEADER_BYTES),
            (event_type::TABLE_MAP, TABLE_POST_HEADER_BYTES),
            (event_type::WRITE_ROWS_V1, TABLE_POST_HEADER_BYTES),
            (event_type::UPDATE_ROWS_V1, TABLE_POST_HEADER_BYTES),
            (event_type::DELETE_ROWS_V1, TABLE_POST_HEADER_BYTES),
            (event_type::GTID, 19),
        ] {
            lengths[usize::from(event) - 1] = length;
        }
        body.extend(lengths);
        // The checksum algorithm (none), and the place of this event's own checksum.
        body.extend([0; 5]);
        self.put(event_type::FORMAT_DESCRIPTION, &body);
    }

    fn put_commit(&mut self, changes: &[RowChange], random: &mut Random) {
        let mut body = (self.commits as u64).to_le_bytes().to_vec();
        // Domain 0, no flags, padding.
        body.extend([0; 11]);
        self.put(event_type::GTID, &body);
        if self.format.one_text_in > 0 && random.below(self.format.one_text_in) == 0 {
            for change in changes {
                self.put_text(change.place);
            }
        } else {
            let is_alike = |one: &RowChange, next: &RowChange| one.is_logged_with(next);
            for changes in changes.chunk_by(is_alike) {
                self.put_rows(changes);
                let long_in = self.format.one_long_in;
                if long_in > 0 && random.below(long_in) == 0 {
                    self.shorten_last();
                }
            }
        }
        self.put(event_type::XID, &[0; 8]);
    }

    /// Some statement that changes the table. Remora can't tell what else it does.
    fn put_text(&mut self, (table, _): Place) {
        let mut body = vec![0; 8];
        body.push(u8::try_from(SCHEMA.len()).unwrap_or_default());
        // Neither an error nor variables.
        body.extend([0; 4]);
        body.extend(SCHEMA.as_bytes());
        body.push(0);
        body.extend(format!("UPDATE {} SET v = v + @x", TABLES[table]).as_bytes());
        self.put(event_type::QUERY, &body);
    }

    /// Changes of one kind, in one table.
    fn put_rows(&mut self, changes: &[RowChange]) {
        let Some(first) = changes.first() else {
            return;
        };
        let table = first.place.0;
        let number = [1 + u8::try_from(table).unwrap_or_default(), 0, 0, 0, 0, 0];
        self.put_table_map(number, TABLES[table]);
        let (event, images) = self.images_of(first);
        let mut rows = number.to_vec();
        // The last of its statement.
        rows.extend([1, 0]);
        rows.push(u8::try_from(COLUMN_TYPES.len()).unwrap_or_default());
        rows.extend(&images);
        for change in changes {
            let rows_of = [change.before, change.after].into_iter().flatten();
            for (columns, row) in images.iter().zip(rows_of) {
                // None of them is NULL.
                rows.push(0);
                let values = [change.place.1, row.group, row.value];
                for (at, (value, bytes)) in values.into_iter().zip(COLUMN_BYTES).enumerate() {
                    if columns & (1 << at) != 0 {
                        rows.extend(&value.to_le_bytes()[..bytes]);
                    }
                }
            }
        }
        self.put(event, &rows);
    }
    fn put_table_map(&mut self, number: [u8; 6], table: &str) {
        let mut map = number.to_vec();
        map.extend([1, 0]);
        for name in [SCHEMA, table] {
            map.push(u8::try_from(name.len()).unwrap_or_default());
            map.extend(name.as_bytes());
            map.push(0);
        }
        map.push(u8::try_from(COLUMN_TYPES.len()).unwrap_or_default());
        map.extend(COLUMN_TYPES);
        // No metadata, and no column is nullable.
        map.extend([0, 0]);
        self.put(event_type::TABLE_MAP, &map);
    }

    /// The event that tells of such a change, and the columns in each of its images.
    fn images_of(&self, change: &RowChange) -> (u8, Vec<u8>) {
        let is_minimal = self.format.is_minimal;
        let key = if is_minimal { KEY } else { ALL_COLUMNS };
        match (change.before, change.after) {
            (None, _) => (event_type::WRITE_ROWS_V1, vec![ALL_COLUMNS]),
            (Some(_), None) => (event_type::DELETE_ROWS_V1, vec![key]),
            (Some(before), Some(after)) => {
                let changed = before.columns_unlike(after);
                let changed = if is_minimal { changed } else { ALL_COLUMNS };
                (event_type::UPDATE_ROWS_V1, vec![key, changed])
            }
        }
    }

    /// The last event comes as one that is too long to be read whole.
    fn shorten_last(&mut self) {
        if let Some(last) = self.unread.back_mut() {
            last.kept.truncate(ROWS_BEGINNING_BYTES);
        }
    }

    fn put(&mut self, event: u8, body: &[u8]) {
        let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
        self.offset += length;
        // No time.
        let mut bytes = vec![0; 4];
        bytes.push(event);
        bytes.extend(self.server_id.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(body);
        self.unread.push_back(LoggedEvent {
            kept: bytes,
            bytes: length.into(),
        });
    }
}

impl RowChange {
    /// Whether one event can tell of both.
    fn is_logged_with(&self, other: &RowChange) -> bool {
        let kind = |change: &RowChange| {
            let changed = change.before.zip(change.after);
            let changed = changed.map(|(before, after)| before.columns_unlike(after));
            (change.before.is_some(), change.after.is_some(), changed)
        };
        self.place.0 == other.place.0 && kind(self) == kind(other)
    }
}

impl Row {
    /// A bit for each column that differs.
    fn columns_unlike(self, other: Row) -> u8 {
        u8::from(self.group != other.group) << 1 | u8::from(self.value != other.value) << 2
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora_cache::BrokenRules;
    use remora_upstream::simulated::SimulatedFollower;

    use super::super::server::{MARK_HOLDER, instance};
    use super::*;

    /// A server that says that it has lost changes has moved its position past commits that can't
    /// be seen yet.
    #[test]
    fn after_an_incident_everything_is_fenced() {
        let settings = super::super::settings("after_snapshot", 0);
        let (shared, _metrics) = super::super::shared(&settings, BrokenRules::default());
        let upstream = Arc::clone(&shared.upstream);
        let mut follower = SimulatedFollower::start(upstream, instance(), MARK_HOLDER);
        let format = Format {
            is_minimal: false,
            one_text_in: 0,
            one_long_in: 0,
        };
        let mut log = Log::new(format, instance().server_id);
        let mut follow = |log: &mut Log| {
            for event in log.unread.drain(..) {
                follower.take(&event.kept, event.bytes);
            }
            shared.timeline.has_fences()
        };
        assert!(!follow(&mut log));
        log.put(event_type::INCIDENT, &[1, 0, 0]);
        assert!(follow(&mut log));
    }
}
