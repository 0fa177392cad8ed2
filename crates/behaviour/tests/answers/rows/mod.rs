//! The rows in the log of a real server: every column type, every kind of change, each row image
//! that the server can write, with random values. What is decoded is compared with what `SELECT`
//! says.

mod types;
mod unlogged;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use self::types::{Shown, Type, types};
use remora_binlog::{
    ColumnKind, DecoderLimits, Event, EventHeader, Field, LoggedColumn, RowImage, Rows, RowsKind,
    StreamDecoder, event_type,
};
use remora_testkit::client::Client;
use remora_testkit::load::Random;
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions};

const MAGIC_BYTES: usize = 4;

/// A row as texts, each `None` for NULL; without the columns that were not logged.
type Seen = BTreeMap<usize, Option<String>>;
/// A change: which kind, the row before, the row after.
type Change = (RowsKind, Option<Seen>, Option<Seen>);
/// Rows by their key.
type Table = BTreeMap<String, Seen>;

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    digits.collect()
}

fn shown(how: Shown, column: LoggedColumn, bytes: &[u8]) -> String {
    let kind = column.kind;
    if how == Shown::Length {
        return String::new();
    }
    let text = match kind {
        ColumnKind::Integer { .. } => {
            let is_unsigned = how == Shown::Unsigned;
            assert!(column.unsigned.is_none_or(|said| said == is_unsigned));
            kind.integer(bytes, is_unsigned)
                .map(|value| value.to_string())
        }
        ColumnKind::Decimal { .. } => kind.decimal(bytes).map(|value| value.to_string()),
        ColumnKind::Bit { .. } => kind.bit(bytes).map(|value| value.to_string()),
        ColumnKind::Year => kind.year(bytes).map(|value| format!("{value:04}")),
        ColumnKind::Date => kind
            .date(bytes)
            .map(|date| format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)),
        ColumnKind::DateTime { .. } | ColumnKind::OldDateTime => kind.datetime(bytes).map(|at| {
            let date = at.date;
            format!(
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
                date.year, date.month, date.day, at.hour, at.minute, at.second, at.microsecond
            )
        }),
        ColumnKind::Enum { .. } => kind.enum_index(bytes).map(|index| index.to_string()),
        _ => kind.text(bytes).map(hex),
    };
    text.unwrap_or_else(|| panic!("{column:?}: {bytes:?}"))
}

fn seen(rows: &Rows, image: RowImage<'_>, types: &[&Type]) -> Seen {
    let columns = &rows.map().columns;
    assert_eq!(columns.len(), types.len() + 1);
    let fields = columns.iter().enumerate().filter_map(|(at, column)| {
        // The first is the key.
        let how = at.checked_sub(1).map_or(Shown::Value, |at| types[at].shown);
        match image.field(at) {
            Field::Absent => None,
            Field::Null => Some((at, None)),
            Field::Bytes(bytes) => Some((at, Some(shown(how, *column, bytes)))),
        }
    });
    fields.collect()
}

fn events(log: &[u8]) -> Vec<&[u8]> {
    let mut rest = &log[MAGIC_BYTES..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = EventHeader::parse(rest).unwrap().event_bytes as usize;
        events.push(&rest[..length]);
        rest = &rest[length..];
    }
    events
}

/// Whether the server says which numbers have no sign: MySQL 8.0 does, MariaDB is asked to in one
/// test.
fn tells_signs(rows: &Rows) -> bool {
    let mut columns = rows.map().columns.iter();
    columns.all(|column| {
        let is_integer = matches!(column.kind, ColumnKind::Integer { .. });
        column.unsigned.is_some() || !is_integer
    })
}

/// The changes of the table `t` in a log, and the types of the log's events.
fn changes(log: &[u8], types: &[&Type], signs: bool) -> (Vec<Change>, Vec<u8>) {
    let limits = DecoderLimits::default();
    let mut decoder = StreamDecoder::new("binlog".into(), MAGIC_BYTES as u64, limits);
    let (mut changes, mut event_types) = (Vec::new(), Vec::new());
    for event in events(log) {
        let decoded = decoder.decode(event).unwrap();
        event_types.push(decoded.header.event_type);
        let inner = match decoded.event {
            Event::Payload(events) => events.unwrap(),
            event => vec![event],
        };
        for event in inner {
            let Event::Rows { table, rows, .. } = event else {
                continue;
            };
            let table = table.unwrap();
            if table.table.table != "t" {
                continue;
            }
            let rows = rows.unwrap_or_else(|| panic!("unread: {table:?}"));
            assert_eq!(tells_signs(&rows), signs);
            rows.for_each(|change| {
                let see =
                    |image: Option<RowImage<'_>>| image.map(|image| seen(&rows, image, types));
                changes.push((rows.kind(), see(change.before), see(change.after)));
                ControlFlow::Continue(())
            })
            .unwrap();
        }
    }
    (changes, event_types)
}

/// A server with a table of all types, and what it must have logged.
struct Bench {
    server: Server,
    client: Client,
    random: Random,
    types: Vec<&'static Type>,
    /// What changed, with the rows whole.
    expected: Vec<Change>,
    last_id: usize,
    /// The log says which numbers have no sign.
    signs: bool,
}

impl Bench {
    fn start(further: &[&str]) -> Bench {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("SEED={seed}");
        let server = Server::start(ServerOptions {
            further: further.iter().map(ToString::to_string).collect(),
            ..ServerOptions::default()
        })
        .unwrap();
        let types = types(server.kind());
        let signs = server.kind() == Kind::MySql80
            || further.iter().any(|option| option.contains("row-metadata"));
        let mut client = server.root().unwrap();
        let definitions: Vec<_> = (types.iter().enumerate())
            .map(|(at, kind)| format!("c{at} {}", kind.definition))
            .collect();
        let definitions = definitions.join(", ");
        for statement in [
            &format!("USE {SCHEMA}"),
            "SET NAMES utf8mb4",
            "SET time_zone = '+00:00'",
            &format!(
                "CREATE TABLE t (id INT PRIMARY KEY, {definitions}) ENGINE=InnoDB DEFAULT CHARSET latin1"
            ),
        ] {
            client
                .query(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        Bench {
            server,
            client,
            random: Random::new(seed),
            types,
            expected: Vec::new(),
            last_id: 0,
            signs,
        }
    }

    fn run(&mut self, statement: &str) {
        let answer = self.client.query(statement);
        answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// The rows as the server tells them.
    fn rows(&mut self) -> Table {
        let asked: Vec<_> = (self.types.iter().enumerate())
            .map(|(at, kind)| match (kind.shown, kind.definition) {
                (Shown::Hex, _) => format!("HEX(c{at})"),
                (Shown::Padded, _) => format!("HEX(TRIM(TRAILING X'00' FROM c{at}))"),
                (Shown::Index, _) => format!("c{at} + 0"),
                (Shown::Length, _) => format!("IF(c{at} IS NULL, NULL, '')"),
                (_, bits) if bits.starts_with("BIT") => format!("c{at} + 0"),
                (_, datetime) if datetime.starts_with("DATETIME") => {
                    format!("DATE_FORMAT(c{at}, '%Y-%m-%d %H:%i:%s.%f')")
                }
                _ => format!("CAST(c{at} AS CHAR)"),
            })
            .collect();
        let statement = format!("SELECT id, {} FROM t", asked.join(", "));
        let rows = self.client.query(&statement).unwrap().rows().unwrap();
        let text = |value: &Option<Vec<u8>>| {
            value
                .as_ref()
                .map(|bytes| String::from_utf8(bytes.clone()).unwrap())
        };
        rows.iter()
            .map(|row| {
                let seen: Seen = row.iter().map(text).enumerate().collect();
                (seen[&0].clone().unwrap(), seen)
            })
            .collect()
    }

    fn value(&mut self, at: usize) -> String {
        if self.random.below(5) == 0 {
            "NULL".to_owned()
        } else {
            (self.types[at].make)(&mut self.random)
        }
    }

    /// Runs a statement that changes rows, and notes what it changed.
    fn change(&mut self, kind: RowsKind, statement: &str) {
        let before = self.rows();
        self.run(statement);
        let after = self.rows();
        let ids: Vec<_> = match kind {
            RowsKind::Write => after
                .keys()
                .filter(|id| !before.contains_key(*id))
                .collect(),
            RowsKind::Update => before
                .keys()
                .filter(|id| before.get(*id) != after.get(*id))
                .collect(),
            RowsKind::Delete => before
                .keys()
                .filter(|id| !after.contains_key(*id))
                .collect(),
        };
        for id in ids {
            let change = (kind, before.get(id).cloned(), after.get(id).cloned());
            self.expected.push(change);
        }
    }

    /// Inserts two rows, with values for some of the columns.
    fn insert(&mut self) {
        let chosen: Vec<_> = (0..self.types.len())
            .filter(|_| self.random.below(3) > 0)
            .collect();
        let names: Vec<_> = chosen.iter().map(|at| format!(", c{at}")).collect();
        let rows: Vec<_> = (0..2)
            .map(|_| {
                self.last_id += 1;
                let values: Vec<_> = chosen
                    .iter()
                    .map(|at| format!(", {}", self.value(*at)))
                    .collect();
                format!("({}{})", 1000 + self.last_id, values.concat())
            })
            .collect();
        let statement = format!(
            "INSERT INTO t (id{}) VALUES {}",
            names.concat(),
            rows.join(", ")
        );
        self.change(RowsKind::Write, &statement);
    }

    /// Changes some columns of up to three rows.
    fn update(&mut self) {
        let chosen: Vec<_> = (0..self.types.len())
            .filter(|_| self.random.below(8) == 0)
            .collect();
        let mut set: Vec<_> = chosen
            .iter()
            .map(|at| format!("c{at} = {}", self.value(*at)))
            .collect();
        // Always a value that the row never had, so that the change shows.
        set.push(format!("c4 = {}", 1_000_000_000 + self.expected.len()));
        let first = 1000 + self.random.below(self.last_id);
        let statement = format!(
            "UPDATE t SET {} WHERE id BETWEEN {first} AND {} ORDER BY id",
            set.join(", "),
            first + 2
        );
        self.change(RowsKind::Update, &statement);
    }

    fn delete(&mut self) {
        let id = 1001 + self.random.below(self.last_id);
        self.change(
            RowsKind::Delete,
            &format!("DELETE FROM t WHERE id IN ({id}, {})", id + 1),
        );
    }

    /// Random changes; then compares them with the log. Gives the types of the log's events.
    fn check(&mut self, image: &str) -> Vec<u8> {
        self.run(&format!("SET binlog_row_image = {image}"));
        let from = self.expected.len();
        for _ in 0..12 {
            self.insert();
            self.update();
            self.update();
            self.delete();
        }
        let directory = self.server.log_path().parent().unwrap().join("data");
        let log = std::fs::read(directory.join("binlog.000001")).unwrap();
        let (changes, event_types) = changes(&log, &self.types, self.signs);
        assert_eq!(changes.len(), self.expected.len(), "{image}");
        assert!(changes.len() > from + 36, "{image}: {}", changes.len());
        let both = self.expected.iter().zip(&changes).skip(from);
        for (number, (expected, logged)) in both.enumerate() {
            compare(&format!("{image} {number}"), image, expected, logged);
        }
        event_types
    }
}

/// Whether the logged images say what the rows are.
fn compare(place: &str, image: &str, expected: &Change, logged: &Change) {
    assert_eq!(expected.0, logged.0, "{place}");
    for (row, logged) in [(&expected.1, &logged.1), (&expected.2, &logged.2)] {
        assert_eq!(row.is_some(), logged.is_some(), "{place}");
        let (Some(row), Some(logged)) = (row, logged) else {
            continue;
        };
        assert!(!logged.is_empty(), "{place}");
        for (column, value) in logged {
            assert_eq!(*value, row[column], "{place}: column {column}");
        }
        let is_complete = logged.len() == row.len();
        assert!(is_complete || image != "FULL", "{place}");
    }
    // What isn't logged is as documented.
    let (kind, before, after) = expected;
    let absent = |image: &Option<Seen>, column: &usize| {
        image
            .as_ref()
            .is_some_and(|image| !image.contains_key(column))
    };
    for (column, value) in after.iter().flatten() {
        if absent(&logged.2, column) {
            let earlier = before.as_ref().map_or(&None, |row| &row[column]);
            assert_eq!(
                (earlier, place),
                (value, place),
                "{kind:?}: column {column}"
            );
        }
    }
    if *kind != RowsKind::Write {
        assert!(!absent(&logged.1, &0), "{place}: the key is always logged");
    }
}

/// The row images that it knows.
fn images(kind: Kind) -> &'static [&'static str] {
    if kind == Kind::MariaDb114 {
        &["FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"]
    } else {
        &["FULL", "MINIMAL", "NOBLOB"]
    }
}

#[test]
fn every_value_of_every_row_image_is_what_the_server_says() {
    let mut bench = Bench::start(&[]);
    for image in images(bench.server.kind()) {
        bench.check(image);
    }
}

#[test]
fn values_are_the_same_where_the_log_is_compressed_or_of_an_older_version() {
    let kind = Kind::from_environment().unwrap();
    let (further, expected): (&[&str], _) = match kind {
        Kind::MySql56 | Kind::MySql57 => (
            &["--log-bin-use-v1-row-events=1"],
            event_type::UPDATE_ROWS_V1,
        ),
        Kind::MySql80 => {
            let further = &[
                "--binlog-transaction-compression=1",
                "--binlog-row-metadata=FULL",
            ];
            (further, event_type::TRANSACTION_PAYLOAD)
        }
        Kind::MariaDb1011 | Kind::MariaDb114 => (
            &[
                "--log-bin-compress=1",
                "--log-bin-compress-min-len=10",
                "--binlog-row-metadata=FULL",
            ],
            event_type::UPDATE_ROWS_COMPRESSED_V1,
        ),
    };
    let mut bench = Bench::start(further);
    for image in images(kind) {
        let types = bench.check(image);
        assert!(types.contains(&expected), "{types:?}");
    }
}
