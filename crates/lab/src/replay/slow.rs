//! The slow query log of MariaDB and of MySQL 5.6 to 8.0.
//!
//! An entry is a head of lines that begin with `#`, perhaps `use …;`, `SET timestamp=…;`, and the
//! statement, to which the server has added `;`. Nothing marks its end but the head of the next, so
//! a head is known by its first two lines; a statement that holds a whole head behind a `;` at the
//! end of a line is taken for two entries. Source: the MariaDB knowledge base, "Slow Query Log
//! Overview"; the MySQL manual, "The Slow Query Log".

use std::io::BufRead;
use std::sync::Arc;

use super::event::{Action, Bytes, Item, Place, Read, ReadError, Record, use_target};
use super::lines::{
    Connections, Line, Lines, after, contains, is_server_start, is_server_start_further,
    leading_number,
};
use super::time::{self, LogTime};

const ADMINISTRATION: &[u8] = b"# administrator command: ";

/// Reads a slow query log.
#[derive(Debug)]
pub(super) struct SlowLog<R> {
    lines: Lines<R>,
    connections: Connections,
    next_connection: u32,
    /// What the log's last `use` named: it holds for all connections until the next.
    schema: Option<Bytes>,
}

/// What the lines before a statement tell.
#[derive(Debug, Default)]
struct Head {
    /// When it was logged, to the microsecond. Servers that tell whole seconds are asked by
    /// `SET timestamp`.
    logged: Option<LogTime>,
    started: Option<LogTime>,
    timestamp_s: Option<i64>,
    query_us: i64,
    user: Vec<u8>,
    thread: Option<u64>,
    schema: Option<Bytes>,
    is_in_routine: bool,
}

/// Whether an entry begins with these two lines.
pub(super) fn is_entry_start(line: &[u8], next: &[u8]) -> bool {
    if let Some(time) = line.strip_prefix(b"# Time: ") {
        return time.first().is_some_and(u8::is_ascii_digit) && next.starts_with(b"# User@Host: ");
    }
    line.starts_with(b"# User@Host: ")
        && contains(line, b"] @ ")
        && (next.starts_with(b"# Thread_id: ") || next.starts_with(b"# Query_time: "))
}

impl<R: BufRead> SlowLog<R> {
    pub(super) fn new(source: R) -> SlowLog<R> {
        SlowLog {
            lines: Lines::new(source),
            connections: Connections::default(),
            next_connection: 0,
            schema: None,
        }
    }

    fn entry(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            let Some(line) = self.lines.next()? else {
                return Ok(None);
            };
            if is_server_start(&line.bytes) {
                self.pass_server_start()?;
            } else if is_entry_start(&line.bytes, self.lines.peek_bytes(0)?) {
                return self.entry_at(&line).map(Some);
            } else if !line.bytes.trim_ascii().is_empty() {
                self.pass_to_entry()?;
                return Err(ReadError::malformed(
                    Place::Line(line.number),
                    "no entry begins here (`# Time:` or `# User@Host:` is expected)",
                ));
            }
        }
    }

    fn pass_server_start(&mut self) -> Result<(), ReadError> {
        self.connections.server_started();
        self.schema = None;
        while is_server_start_further(self.lines.peek_bytes(0)?) {
            self.lines.next()?;
        }
        Ok(())
    }

    /// Whether the next line begins something else than the statement at hand.
    fn is_at_boundary(&mut self) -> Result<bool, ReadError> {
        let Some(line) = self.lines.peek(0)? else {
            return Ok(true);
        };
        if is_server_start(&line.bytes) {
            return Ok(true);
        }
        if !line.bytes.starts_with(b"# ") {
            return Ok(false);
        }
        let line = line.bytes.clone();
        Ok(is_entry_start(&line, self.lines.peek_bytes(1)?))
    }

    fn pass_to_entry(&mut self) -> Result<(), ReadError> {
        while !self.is_at_boundary()? {
            self.lines.next()?;
        }
        Ok(())
    }

    fn entry_at(&mut self, first: &Line) -> Result<Item, ReadError> {
        let place = Place::Line(first.number);
        let mut head = Head::default();
        head.read(&first.bytes);
        while self.lines.peek_bytes(0)?.starts_with(b"#")
            && !self.lines.peek_bytes(0)?.starts_with(ADMINISTRATION)
        {
            if let Some(line) = self.lines.next()? {
                head.read(&line.bytes);
            }
        }
        self.settings(&mut head)?;
        let statement = self.statement(place)?;
        let sent = head.sent().ok_or_else(|| {
            ReadError::malformed(
                place,
                "an entry that doesn't tell when it was (`SET timestamp=…;`)",
            )
        })?;
        if head.is_in_routine {
            return Ok(Item::LeftOut("inside a stored routine".into()));
        }
        let name = match head.thread {
            Some(thread) => thread.to_string().into_bytes(),
            // Before MySQL 5.6 the log doesn't tell.
            None => head.user.clone(),
        };
        let connection = self.connections.number(&name, &mut self.next_connection);
        let action = match statement.strip_prefix(ADMINISTRATION) {
            None => Action::Query(statement.into()),
            Some(b"Quit") => {
                self.connections.ended(&name);
                Action::Quit
            }
            Some(command) => {
                let command = String::from_utf8_lossy(command);
                return Ok(Item::LeftOut(format!("command {command}").into()));
            }
        };
        Ok(Item::Record(Record {
            sent_us: sent.us,
            is_whole_second: sent.is_whole_second,
            connection,
            schema: head.schema.or_else(|| self.schema.clone()),
            action,
        }))
    }

    /// What the log has to set before the statement.
    fn settings(&mut self, head: &mut Head) -> Result<(), ReadError> {
        let line = self.lines.peek_bytes(0)?;
        if let Some(name) = line.strip_prefix(b"use ") {
            // MariaDB quotes the name; MySQL doesn't, whatever it holds.
            let name = match use_target(line) {
                Some(name) if line.contains(&b'`') => name,
                _ => name.strip_suffix(b";").unwrap_or(name).to_vec(),
            };
            let name: Bytes = Arc::from(name);
            // A statement of this form comes behind the timestamp.
            if self.lines.peek_bytes(1)?.starts_with(b"SET ") {
                self.schema = Some(name);
                self.lines.next()?;
            }
        }
        let line = self.lines.peek_bytes(0)?;
        if let Some(assignments) = line.strip_prefix(b"SET ")
            && let Some(number) = after(assignments, b"timestamp=")
            && assignments.ends_with(b";")
        {
            head.timestamp_s = leading_number(number).and_then(|number| i64::try_from(number).ok());
            self.lines.next()?;
        }
        Ok(())
    }

    /// The statement's lines, without the `;` that the server has added.
    fn statement(&mut self, place: Place) -> Result<Vec<u8>, ReadError> {
        let mut text: Vec<u8> = Vec::new();
        let mut is_first = true;
        loop {
            let is_ended = text.ends_with(b";") && !is_first;
            let Some(line) = self.lines.peek(0)? else {
                break;
            };
            let is_start = is_server_start(&line.bytes);
            if is_start || (is_ended && self.is_at_boundary()?) {
                break;
            }
            if let Some(line) = self.lines.next()? {
                if !is_first {
                    text.push(b'\n');
                }
                text.extend_from_slice(&line.bytes);
                is_first = false;
            }
        }
        if text.pop() != Some(b';') {
            return Err(ReadError::malformed(
                place,
                "the entry is cut short: its statement doesn't end with `;`",
            ));
        }
        Ok(text)
    }
}

impl<R: BufRead> Iterator for SlowLog<R> {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        self.entry().transpose()
    }
}

impl Head {
    /// Takes what a line tells. Lines that tell nothing of use are many and differ from server to
    /// server.
    fn read(&mut self, line: &[u8]) {
        if let Some(text) = line.strip_prefix(b"# Time: ") {
            self.logged = time::parse(text);
        } else if let Some(text) = line.strip_prefix(b"# User@Host: ") {
            self.user = text.to_vec();
            self.thread = after(text, b"]  Id:").and_then(leading_number);
        } else if let Some(text) = line.strip_prefix(b"# Thread_id: ") {
            self.thread = leading_number(text);
            self.schema = after(text, b"  Schema: ").map(|rest| {
                let end = rest.windows(10).position(|window| window == b"  QC_hit: ");
                Arc::from(rest[..end.unwrap_or(rest.len())].trim_ascii())
            });
        } else if let Some(text) = line.strip_prefix(b"# Query_time: ") {
            self.query_us = microseconds(text);
            self.started = after(text, b" Start: ")
                .and_then(|text| text.split(u8::is_ascii_whitespace).next())
                .and_then(time::parse);
        } else if line.starts_with(b"# Stored_routine: ") {
            self.is_in_routine = true;
        }
    }

    /// When the statement was sent.
    fn sent(&self) -> Option<LogTime> {
        if let Some(started) = self.started {
            return Some(started);
        }
        if let Some(logged) = self.logged.filter(|logged| !logged.is_whole_second) {
            return Some(LogTime {
                us: logged.us.saturating_sub(self.query_us),
                is_whole_second: false,
            });
        }
        self.timestamp_s.map(|seconds| LogTime {
            us: seconds.saturating_mul(1_000_000),
            is_whole_second: true,
        })
    }
}

/// The microseconds of a number of seconds with a fraction; 0 if it is none.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a query takes less than 200,000 years"
)]
fn microseconds(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    let seconds: f64 = std::str::from_utf8(&text[..end])
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|seconds: &f64| seconds.is_finite())
        .unwrap_or_default();
    (seconds * 1e6) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &str =
        "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
# Time: 230101 12:00:00
# User@Host: app[app] @ localhost [127.0.0.1]
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000123  Lock_time: 0.000045  Rows_sent: 1  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 57
use shop;
SET timestamp=1672574400;
SELECT ';
# Time: 230101 12:00:00
', 1;
# User@Host: app[app] @ localhost [127.0.0.1]
# Thread_id: 6  Schema:   QC_hit: No
# Query_time: 0.5  Lock_time: 0.000045  Rows_sent: 1  Rows_examined: 0
SET last_insert_id=3,timestamp=1672574401;
# a comment
SELECT 2;
# User@Host: app[app] @ localhost [127.0.0.1]
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000001  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
SET timestamp=1672574402;
# administrator command: Quit;
";

    fn read(text: &str) -> Vec<Read> {
        SlowLog::new(text.as_bytes()).collect()
    }

    fn record(read: &Read) -> &Record {
        match read {
            Ok(Item::Record(record)) => record,
            other => panic!("{other:?}"),
        }
    }

    fn text(read: &Read) -> String {
        match &record(read).action {
            Action::Query(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn statements_of_many_lines_are_read_whole() {
        let all = read(MARIADB);
        assert_eq!(all.len(), 3);
        assert_eq!(text(&all[0]), "SELECT ';\n# Time: 230101 12:00:00\n', 1");
        assert_eq!(text(&all[1]), "# a comment\nSELECT 2");
        assert_eq!(text(&all[2]), "Quit");
    }

    #[test]
    fn an_entry_tells_its_connection_its_schema_and_its_time() {
        let all = read(MARIADB);
        let records: Vec<_> = all.iter().map(record).collect();
        let connections: Vec<_> = records.iter().map(|record| record.connection).collect();
        assert_eq!(connections, [0, 1, 0]);
        assert_eq!(records[0].schema.as_deref(), Some(&b"shop"[..]));
        assert_eq!(records[1].schema.as_deref(), Some(&b""[..]));
        assert_eq!(records[0].sent_us, 1_672_574_400_000_000);
        assert!(records[0].is_whole_second);
    }

    #[test]
    fn mysql_tells_microseconds_and_the_thread_beside_the_user() {
        let all = read(
            "# Time: 2023-01-01T12:00:01.500000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.250000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
use shop;
SET timestamp=1672574401;
use other;
# Time: 2023-01-01T12:00:02.000000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0 Thread_id: 8 Errno: 0 Start: 2023-01-01T12:00:01.999900Z End: 2023-01-01T12:00:02.000000Z
SET timestamp=1672574402;
SELECT 1;
",
        );
        assert_eq!(text(&all[0]), "use other");
        assert_eq!(record(&all[0]).sent_us, 1_672_574_401_250_000);
        assert_eq!(record(&all[0]).schema.as_deref(), Some(&b"shop"[..]));
        assert_eq!(record(&all[1]).sent_us, 1_672_574_401_999_900);
        assert_eq!(record(&all[1]).connection, record(&all[0]).connection);
    }

    #[test]
    fn what_is_broken_is_named_by_its_line_and_the_rest_goes_on() {
        let broken = MARIADB.replace("Time\t\t    Id Command\tArgument\n", "garbage\nmore\n");
        let all = read(&broken);
        let error = all[0].as_ref().unwrap_err();
        assert_eq!(error.place, Place::Line(3));
        assert_eq!(all.len(), 4);
        assert_eq!(text(&all[2]), "# a comment\nSELECT 2");
        let cut = &MARIADB[..MARIADB.len() - 3];
        let all = read(cut);
        assert!(
            all[2]
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains("line 20: the entry is cut short"),
            "{all:?}"
        );
    }

    #[test]
    fn what_ran_in_a_stored_routine_is_left_out() {
        let inside = MARIADB.replace(
            "# Rows_affected: 0  Bytes_sent: 57",
            "# Stored_routine: shop.f",
        );
        assert_eq!(
            read(&inside)[0],
            Ok(Item::LeftOut("inside a stored routine".into()))
        );
    }
}
