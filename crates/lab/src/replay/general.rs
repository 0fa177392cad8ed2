//! The general query log of MariaDB and of MySQL 5.6 to 8.0.
//!
//! An entry's first line has a time (MySQL up to 5.6 and MariaDB leave it out where it is that of
//! the entry before), a connection's number, a command and what the command carries; that goes on
//! over the lines which don't begin an entry. A statement with a line of that form is taken for
//! two. Source: the MariaDB knowledge base, "General Query Log"; the MySQL manual, "The General
//! Query Log".

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use super::event::{
    Action, Bytes, Item, Place, Read, ReadError, Record, begins_with_word, use_target,
};
use super::lines::{Connections, Line, Lines, is_server_start, is_server_start_further};
use super::time::{self, LogTime};

/// What a server calls its commands there.
const COMMANDS: &[&str] = &[
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed insert",
    "Change user",
    "Binlog Dump",
    "Table Dump",
    "Connect Out",
    "Register Slave",
    "Register Replica",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Binlog Dump GTID",
    "Reset Connection",
    "Reset connection",
    "clone",
    "Group Replication Data Stream subscription",
    "Subscribe Group Replication Stream",
    "Error",
    "Unimpl get tid",
    "Bulk_execute",
    "Slave_worker",
    "Slave_IO",
    "Slave_SQL",
    "Com_multi",
    "Statement",
];

/// Reads a general query log.
#[derive(Debug)]
pub(super) struct GeneralLog<R> {
    lines: Lines<R>,
    connections: Connections,
    next_connection: u32,
    /// The time of the last entry that told it.
    now: Option<LogTime>,
    sessions: HashMap<u32, Session>,
}

#[derive(Debug, Default)]
struct Session {
    schema: Option<Bytes>,
    /// The last statement was `EXECUTE …`: the log has what that executes once more, as a command.
    has_executed_by_text: bool,
}

/// The first line of an entry, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start<'a> {
    time: Option<LogTime>,
    thread: &'a [u8],
    command: &'static str,
    argument: &'a [u8],
}

/// Whether an entry begins with this line.
pub(super) fn is_entry_start(line: &[u8]) -> bool {
    Start::parse(line).is_some()
}

impl<'a> Start<'a> {
    fn parse(line: &'a [u8]) -> Option<Start<'a>> {
        let tab = line.iter().take(40).position(|&byte| byte == b'\t')?;
        let (time, rest) = line.split_at(tab);
        let rest = &rest[1..];
        let (time, rest) = if time.is_empty() {
            (None, rest.strip_prefix(b"\t")?)
        } else {
            (Some(time::parse(time)?), rest)
        };
        let rest = rest.trim_ascii_start();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (thread, rest) = rest.split_at(digits);
        let rest = rest.strip_prefix(b" ").filter(|_| digits > 0)?;
        let end = rest.iter().position(|&byte| byte == b'\t');
        let (name, argument) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest.trim_ascii_end(), &[][..]),
        };
        let command = COMMANDS.iter().find(|command| command.as_bytes() == name)?;
        Some(Start {
            time,
            thread,
            command,
            argument,
        })
    }
}

impl<R: BufRead> GeneralLog<R> {
    pub(super) fn new(source: R) -> GeneralLog<R> {
        GeneralLog {
            lines: Lines::new(source),
            connections: Connections::default(),
            next_connection: 0,
            now: None,
            sessions: HashMap::new(),
        }
    }

    fn entry(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            let Some(line) = self.lines.next()? else {
                return Ok(None);
            };
            if is_server_start(&line.bytes) {
                self.pass_server_start()?;
            } else if let Some(start) = Start::parse(&line.bytes) {
                let rest = self.rest_of_entry()?;
                if let Some(item) = self.entry_of(start, &rest) {
                    return Ok(Some(item));
                }
            } else if !line.bytes.trim_ascii().is_empty() {
                self.rest_of_entry()?;
                return Err(ReadError::malformed(
                    Place::Line(line.number),
                    "no entry begins here (a time, a connection's number, a command are expected)",
                ));
            }
        }
    }

    fn pass_server_start(&mut self) -> Result<(), ReadError> {
        self.connections.server_started();
        self.sessions.clear();
        while is_server_start_further(self.lines.peek_bytes(0)?) {
            self.lines.next()?;
        }
        Ok(())
    }

    /// The lines up to the next entry.
    fn rest_of_entry(&mut self) -> Result<Vec<Line>, ReadError> {
        let mut rest = Vec::new();
        while let Some(line) = self.lines.peek(0)? {
            if is_server_start(&line.bytes) || is_entry_start(&line.bytes) {
                break;
            }
            rest.extend(self.lines.next()?);
        }
        Ok(rest)
    }

    /// What an entry says; `None` if it is nothing to be sent and nothing lost either.
    fn entry_of(&mut self, start: Start<'_>, rest: &[Line]) -> Option<Item> {
        self.now = start.time.or(self.now);
        let connection = self
            .connections
            .number(start.thread, &mut self.next_connection);
        let session = self.sessions.entry(connection).or_default();
        let mut argument = start.argument.to_vec();
        for line in rest {
            argument.push(b'\n');
            argument.extend_from_slice(&line.bytes);
        }
        let has_executed_by_text = std::mem::take(&mut session.has_executed_by_text);
        let schema = session.schema.clone();
        let action = match start.command {
            "Connect" | "Change user" => {
                session.schema = connected_schema(&argument);
                return None;
            }
            "Init DB" => {
                session.schema = Some(Arc::from(argument));
                return None;
            }
            // What is prepared comes again, with its values, when it is executed.
            "Prepare" | "Close stmt" | "Reset stmt" | "Ping" => return None,
            "Query" => {
                if let Some(schema) = use_target(&argument) {
                    session.schema = Some(Arc::from(schema));
                }
                session.has_executed_by_text = begins_with_word(&argument, "EXECUTE");
                Action::Query(Arc::from(argument))
            }
            "Execute" if has_executed_by_text => return None,
            "Execute" => Action::Query(Arc::from(argument)),
            "Quit" => {
                self.connections.ended(start.thread);
                self.sessions.remove(&connection);
                Action::Quit
            }
            command => return Some(Item::LeftOut(format!("command {command}").into())),
        };
        let Some(now) = self.now else {
            return Some(Item::LeftOut("before the log's first time".into()));
        };
        Some(Item::Record(Record {
            sent_us: now.us,
            is_whole_second: now.is_whole_second,
            connection,
            schema,
            action,
        }))
    }
}

/// The schema in `user@host on schema using TCP/IP`; `None` if the line has another form, as where
/// access was denied.
fn connected_schema(argument: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(argument).ok()?;
    let text = text
        .rsplit_once(" using ")
        .map_or(text, |(before, _)| before);
    let (account, schema) = text
        .rsplit_once(" on ")
        .or_else(|| Some((text.strip_suffix(" on")?, "")))?;
    account
        .contains('@')
        .then(|| Arc::from(schema.trim().as_bytes()))
}

impl<R: BufRead> Iterator for GeneralLog<R> {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        self.entry().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &str = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
230101  9:00:00\t     5 Connect\tapp@localhost on shop using TCP/IP
\t\t     5 Query\tSELECT 1,
'\t\t  two'
\t\t     6 Connect\troot@localhost on  using Socket
230101  9:00:01\t     6 Init DB\tother
\t\t     6 Query\tselect 2
\t\t     5 Prepare\tSELECT ?
\t\t     5 Execute\tSELECT 7
\t\t     5 Query\tEXECUTE s
\t\t     5 Execute\tSELECT 8
\t\t     5 Field List\tt
\t\t     5 Quit\t
";

    fn read(text: &str) -> Vec<Read> {
        GeneralLog::new(text.as_bytes()).collect()
    }

    fn texts(all: &[Read]) -> Vec<String> {
        let text = |read: &Read| match read {
            Ok(Item::Record(record)) => match &record.action {
                Action::Query(text) => String::from_utf8(text.to_vec()).unwrap(),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        };
        all.iter().map(text).collect()
    }

    fn record(read: &Read) -> &Record {
        match read {
            Ok(Item::Record(record)) => record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_time_holds_until_the_next_and_statements_go_on_over_lines() {
        let all = read(MARIADB);
        let expected = [
            "SELECT 1,\n'\t\t  two'",
            "select 2",
            "SELECT 7",
            "EXECUTE s",
            "Ok(LeftOut(\"command Field List\"))",
            "Quit",
        ];
        assert_eq!(texts(&all), expected);
        assert_eq!(record(&all[1]).sent_us - record(&all[0]).sent_us, 1_000_000);
        assert_eq!(record(&all[0]).schema.as_deref(), Some(&b"shop"[..]));
        assert_eq!(record(&all[1]).schema.as_deref(), Some(&b"other"[..]));
        assert_eq!(record(&all[1]).connection, 1);
    }

    #[test]
    fn mysql_tells_each_time_to_the_microsecond() {
        let all = read(
            "2023-01-01T12:00:00.000001Z\t    8 Connect\troot@localhost on shop
2023-01-01T12:00:00.000002Z\t    8 Query\tUSE `x y`
2023-01-01T12:00:00.000003Z\t    8 Query\tselect 1
",
        );
        assert_eq!(record(&all[1]).sent_us - record(&all[0]).sent_us, 1);
        assert_eq!(record(&all[0]).schema.as_deref(), Some(&b"shop"[..]));
        assert_eq!(record(&all[1]).schema.as_deref(), Some(&b"x y"[..]));
    }

    #[test]
    fn a_connection_number_that_comes_again_is_another_connection() {
        let again = format!("{MARIADB}\t\t     5 Query\tselect 3\n");
        let all = read(&again);
        assert_eq!(record(all.last().unwrap()).connection, 2);
    }

    #[test]
    fn what_comes_before_any_entry_is_named_by_its_line() {
        let all = read(&format!("garbage\nmore\n{MARIADB}"));
        assert_eq!(all[0].as_ref().unwrap_err().place, Place::Line(1));
        assert_eq!(all.len(), 7);
        let tail = MARIADB
            .split_once("two'\n")
            .unwrap()
            .1
            .replace("230101  9:00:01", "\t");
        assert!(texts(&read(&tail))[0].contains("before the log's first time"));
    }

    #[test]
    fn schemas_of_connections() {
        let schema = |text: &str| {
            connected_schema(text.as_bytes())
                .map(|schema| String::from_utf8(schema.to_vec()).unwrap())
        };
        assert_eq!(
            schema("a on b@h on shop using SSL/TLS").as_deref(),
            Some("shop")
        );
        assert_eq!(schema("a@h on  using Socket").as_deref(), Some(""));
        assert_eq!(schema("a@h on").as_deref(), Some(""));
        assert_eq!(
            schema("Access denied for user 'a'@'h' (using password: YES)"),
            None
        );
    }
}
