//! The rows in the bytes that real servers wrote, within bounds, and damaged. What every type's
//! values mean is compared with live servers in `crates/behaviour/tests/answers/rows`.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use remora_binlog::*;

const MARIADB: &[u8] = include_bytes!("fixtures/mariadb-10.11-a.binlog");
const LOGS: [&[u8]; 5] = [
    MARIADB,
    include_bytes!("fixtures/mariadb-11.4.binlog"),
    include_bytes!("fixtures/mysql-5.6.binlog"),
    include_bytes!("fixtures/mysql-5.7.binlog"),
    MYSQL_8_0,
];
const MYSQL_8_0: &[u8] = include_bytes!("fixtures/mysql-8.0.binlog");
const MAGIC_BYTES: usize = 4;

fn decoder(limits: DecoderLimits) -> StreamDecoder {
    StreamDecoder::new("binlog.000001".into(), MAGIC_BYTES as u64, limits)
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

/// The events, those in payloads one by one.
fn decoded(log: &[u8], limits: DecoderLimits) -> Vec<Event> {
    let mut decoder = decoder(limits);
    let mut all = Vec::new();
    for event in events(log) {
        match decoder.decode(event).unwrap().event {
            Event::Payload(events) => all.extend(events.unwrap()),
            event => all.push(event),
        }
    }
    all
}

fn written(field: Field<'_>, kind: ColumnKind) -> String {
    match field {
        Field::Absent => "-".to_owned(),
        Field::Null => "NULL".to_owned(),
        Field::Bytes(bytes) => match kind.integer(bytes, false) {
            Some(number) => number.to_string(),
            None => String::from_utf8_lossy(kind.text(bytes).unwrap_or(b"?")).into_owned(),
        },
    }
}

fn image(rows: &Rows, image: Option<RowImage<'_>>) -> String {
    let Some(image) = image else {
        return String::new();
    };
    let columns = rows.map().columns.iter().enumerate();
    let fields = columns.map(|(at, column)| written(image.field(at), column.kind));
    fields.collect::<Vec<_>>().join(",")
}

/// Each row's change, as `table: before > after`.
fn changes(events: &[Event]) -> Vec<String> {
    let mut changes = Vec::new();
    for event in events {
        if let Event::Rows {
            rows: Some(rows), ..
        } = event
        {
            let table = &rows.map().table.table;
            rows.for_each(|change| {
                let (before, after) = (image(rows, change.before), image(rows, change.after));
                changes.push(format!("{table}: {before} > {after}"));
                ControlFlow::Continue(())
            })
            .unwrap();
        }
    }
    changes
}

fn count(events: &[Event], is_counted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| is_counted(event)).count()
}

fn is_read(event: &Event) -> bool {
    matches!(event, Event::Rows { rows: Some(_), .. })
}

fn is_unread(event: &Event) -> bool {
    matches!(event, Event::Rows { rows: None, .. })
}

#[test]
fn the_rows_of_a_real_log_are_read() {
    let seen = changes(&decoded(MARIADB, DecoderLimits::default()));
    let long = "compressible ".repeat(10);
    let changed = "y".repeat(190);
    for expected in [
        "parent:  > 1,a",
        "parent: 1,a > 1,x",
        "parent: 1,x > ",
        "child:  > 2,2",
        "m:  > 3,w",
        &format!("parent:  > 13,{long}"),
        &format!("parent: 12,{long} > 12,{changed}"),
        &format!("parent: 13,{changed} > "),
    ] {
        assert!(
            seen.iter().any(|change| change == expected),
            "{expected}: {seen:#?}"
        );
    }
}

#[test]
fn every_row_event_of_real_logs_is_read_but_those_with_parts_of_documents() {
    for log in LOGS {
        let events = decoded(log, DecoderLimits::default());
        assert!(count(&events, is_read) > 5);
        assert!(changes(&events).len() >= count(&events, is_read));
        let unread: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Rows {
                    table, rows: None, ..
                } => Some(table.as_ref().unwrap().table.table.as_str()),
                _ => None,
            })
            .collect();
        let expected: &[&str] = if log == MYSQL_8_0 { &["doc"] } else { &[] };
        assert_eq!(unread, expected);
    }
}

#[test]
fn a_callback_that_breaks_gets_no_further_row() {
    let mut calls = 0;
    for event in decoded(MARIADB, DecoderLimits::default()) {
        if let Event::Rows {
            rows: Some(rows), ..
        } = event
        {
            calls = 0;
            rows.for_each(|_| {
                calls += 1;
                ControlFlow::Break(())
            })
            .unwrap();
        }
    }
    assert_eq!(calls, 1);
}

#[test]
fn rows_that_inflate_beyond_the_bound_are_not_read() {
    let limits = DecoderLimits {
        rows_bytes_max: 100,
        ..DecoderLimits::default()
    };
    assert_eq!(count(&decoded(MARIADB, limits), is_unread), 3);
}

#[test]
fn rows_past_the_bounds_of_a_payload_are_not_read_and_each_table_is_named() {
    let limits = DecoderLimits::default();
    let tables = |events: &[Event]| {
        let mut tables: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Rows { table, .. } => Some(table.as_ref().unwrap().table.clone()),
                _ => None,
            })
            .collect();
        tables.sort();
        tables.dedup();
        tables
    };
    let whole = decoded(MYSQL_8_0, limits);
    for small in [
        DecoderLimits {
            payload_rows_bytes_max: 30,
            ..limits
        },
        DecoderLimits {
            payload_events_max: 8,
            ..limits
        },
    ] {
        let seen = decoded(MYSQL_8_0, small);
        assert!(count(&seen, is_unread) > 0);
        assert_eq!(tables(&seen), tables(&whole));
    }
}

fn meaning(query: &Query) -> QueryMeaning {
    let text = String::from_utf8_lossy(&query.text).to_lowercase();
    match text.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["begin", ..] => QueryMeaning::Begin,
        ["commit" | "rollback"] => QueryMeaning::End,
        ["xa", "commit"] => QueryMeaning::XaEnd,
        ["xa" | "savepoint", _] => QueryMeaning::Nothing,
        _ => QueryMeaning::Tables {
            tables: vec![LoggedTable::new("app", "as_text")],
            definitions: true,
            relations: false,
        },
    }
}

/// The tables of the commit that ends at an offset of MariaDB's log: all, and those that aren't
/// given by rows. Row events are oversized if `is_oversized`.
fn commit_at(end_offset: u64, is_oversized: bool) -> (String, String) {
    let mut decoder = decoder(DecoderLimits::default());
    let mut transactions = Transactions::new(8);
    for event in events(MARIADB) {
        let before = decoder.offset();
        let is_rows = (23..=25).contains(&event[4]) || (166..=168).contains(&event[4]);
        let decoded = if is_rows && is_oversized {
            decoder.decode_oversized(&event[..40], event.len() as u64)
        } else {
            decoder.decode(event)
        };
        let commits = transactions.apply(&decoded.unwrap(), before, meaning);
        let mut commits = commits.into_iter().flatten();
        if let Some(commit) = commits.find(|commit| commit.end_offset == end_offset) {
            let Touched::Tables(touched) = &commit.touched else {
                panic!("{commit:?}");
            };
            let names = |tables: Vec<&LoggedTable>| {
                let names: Vec<_> = tables.iter().map(|table| table.table.as_str()).collect();
                names.join(" ")
            };
            let unlogged = commit.unlogged.union(&commit.only_named).collect();
            return (names(touched.iter().collect()), names(unlogged));
        }
    }
    panic!("no commit ends at {end_offset}");
}

#[test]
fn a_commit_says_which_tables_are_not_given_by_rows_alone() {
    for (end_offset, touched, unlogged) in [
        (769, "as_text", "as_text"),
        (1408, "parent", ""),
        (2131, "child parent", "child"), // a cascade
        (2680, "parent", ""),            // with a savepoint
        (3355, "as_text", "as_text"),    // binlog_format=STATEMENT
        (3670, "parent", ""),            // XA PREPARE
        (3800, "parent", "parent"),      // XA COMMIT
        (4105, "parent", ""),            // compressed rows
    ] {
        let expected = (touched.to_owned(), unlogged.to_owned());
        assert_eq!(commit_at(end_offset, false), expected, "{end_offset}");
    }
    let oversized = ("parent".to_owned(), "parent".to_owned());
    assert_eq!(commit_at(1408, true), oversized);
}

/// An event of a log without checksums.
fn event_of(event_type: u8, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0; HEADER_BYTES];
    event[4] = event_type;
    event[14] = 0x20;
    event.extend_from_slice(body);
    let length = u32::try_from(event.len()).unwrap();
    event[9..13].copy_from_slice(&length.to_le_bytes());
    event
}

/// A decoder behind the format description of a log, as if it had no checksums.
fn behind_format(log: &[u8]) -> StreamDecoder {
    let mut format = events(log)[0].to_vec();
    let algorithm_at = format.len() - 5;
    format[algorithm_at] = 0;
    let mut decoder = decoder(DecoderLimits::default());
    decoder.decode(&format).unwrap();
    decoder
}

/// A table map of `s.t` with number 7.
fn table_map(types: &[u8], metadata: &[u8], optional: &[u8]) -> Vec<u8> {
    let mut body = b"\x07\0\0\0\0\0\x01\0\x01s\0\x01t\0".to_vec();
    body.push(u8::try_from(types.len()).unwrap());
    body.extend_from_slice(types);
    body.push(u8::try_from(metadata.len()).unwrap());
    body.extend_from_slice(metadata);
    body.extend(std::iter::repeat_n(0, types.len().div_ceil(8)));
    body.extend_from_slice(optional);
    event_of(event_type::TABLE_MAP, &body)
}

fn map_of(log: &[u8], types: &[u8], metadata: &[u8], optional: &[u8]) -> Arc<TableMap> {
    let mut decoder = behind_format(log);
    let map = decoder.decode(&table_map(types, metadata, optional));
    match map.unwrap().event {
        Event::TableMap { table, .. } => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_kinds_of_columns_come_from_types_and_metadata() {
    let kinds = |types: &[u8], metadata: &[u8]| -> Vec<ColumnKind> {
        let map = map_of(MYSQL_8_0, types, metadata, b"");
        map.columns.iter().map(|column| column.kind).collect()
    };
    // CHAR(255), CHAR(256), CHAR(1023), ENUM, SET: one type.
    let strings = kinds(&[254; 5], &[0xfe, 255, 0xee, 0, 0xce, 255, 247, 2, 248, 8]);
    let char_of = |bytes_max| ColumnKind::Char { bytes_max };
    let (index, set) = (ColumnKind::Enum { bytes: 2 }, ColumnKind::Set { bytes: 8 });
    assert_eq!(
        strings,
        [char_of(255), char_of(256), char_of(1023), index, set]
    );
    let decimal = ColumnKind::Decimal {
        precision: 65,
        decimals: 30,
    };
    let others = kinds(&[246, 16, 18, 252], &[65, 30, 5, 1, 6, 4]);
    assert_eq!(
        others,
        [
            decimal,
            ColumnKind::Bit { bits: 13 },
            ColumnKind::DateTime { decimals: 6 },
            ColumnKind::Blob { length_bytes: 4 }
        ]
    );
}

#[test]
fn a_table_with_a_type_that_is_not_known_has_no_columns_and_its_rows_are_not_read() {
    for (log, types, metadata) in [
        (MYSQL_8_0, &[3, 200][..], &[][..]),
        (MYSQL_8_0, &[246], &[66, 2]),    // too many digits
        (MYSQL_8_0, &[246], &[5]),        // cut short
        (MYSQL_8_0, &[3], &[1]),          // more than there should be
        (MYSQL_8_0, &[252], &[5]),        // no size of a length
        (MYSQL_8_0, &[18], &[7]),         // no fraction
        (MYSQL_8_0, &[16], &[0, 9]),      // 72 bits
        (MYSQL_8_0, &[254], &[0x44, 10]), // no string
        (MARIADB, &[12], &[]),            // may have a fraction
    ] {
        let mut decoder = behind_format(log);
        decoder.decode(&table_map(types, metadata, b"")).unwrap();
        let rows = event_of(
            event_type::WRITE_ROWS_V1,
            b"\x07\0\0\0\0\0\x01\0\x01\xff\xfe\x01\x02\x03\x04",
        );
        match decoder.decode(&rows).unwrap().event {
            Event::Rows { table, rows, .. } => {
                assert!(table.unwrap().columns.is_empty(), "{types:?}");
                assert_eq!(rows, None);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(map_of(MYSQL_8_0, &[12], &[], b"").columns.len(), 1);
}

#[test]
fn numbers_without_a_sign_are_marked_where_the_log_says_so() {
    let signs = |optional: &[u8]| -> Vec<Option<bool>> {
        // INT, DATE, BIGINT, TINYINT.
        let map = map_of(MYSQL_8_0, &[3, 10, 8, 1], &[], optional);
        map.columns.iter().map(|column| column.unsigned).collect()
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(signs(b"\x01\x01\xa0"), [yes, None, no, yes]);
    // Behind a field that says something else.
    assert_eq!(signs(b"\x02\x02\x01\x02\x01\x01\x40"), [no, None, yes, no]);
    // Odd, cut short, or not there: nothing is said.
    for odd in [
        &b"\x01\x02\xa0\x00"[..],
        b"\x01\x01",
        b"\x01\x05\xa0",
        b"\x01",
        b"",
    ] {
        assert_eq!(signs(odd), [None; 4]);
    }
}

/// The rows of an event of a table with one INT.
fn rows_of(event_type: u8, behind_flags: &[u8]) -> Option<Rows> {
    let mut decoder = behind_format(MYSQL_8_0);
    decoder.decode(&table_map(&[3], &[], b"")).unwrap();
    let mut body = b"\x07\0\0\0\0\0\x01\0".to_vec();
    body.extend_from_slice(behind_flags);
    match decoder.decode(&event_of(event_type, &body)).unwrap().event {
        Event::Rows { rows, .. } => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn row_events_that_do_not_fit_their_table_are_not_read() {
    let v1 = |bytes: &[u8]| rows_of(event_type::WRITE_ROWS_V1, bytes);
    assert!(v1(b"\x01\xff\xfe\x01\x02\x03\x04").is_some());
    assert_eq!(v1(b"\x02\xff\xfe\x01\x02\x03\x04"), None); // another number of columns
    assert_eq!(v1(b"\x01\x00\xfe\x01\x02\x03\x04"), None); // rows without columns
    assert_eq!(v1(b"\x01\xff"), None); // no rows
    assert_eq!(v1(b""), None);
    let v2 = |bytes: &[u8]| rows_of(event_type::UPDATE_ROWS_V2, bytes);
    let update = b"\x01\xff\xff\xfe\x01\0\0\0\xfe\x02\0\0\0";
    assert!(v2(&[b"\x02\0", &update[..]].concat()).is_some());
    assert!(v2(&[b"\x04\0xx", &update[..]].concat()).is_some());
    assert_eq!(v2(&[b"\x01\0", &update[..]].concat()), None);
    let partial = [b"\x02\0", &update[..]].concat();
    assert_eq!(rows_of(event_type::PARTIAL_UPDATE_ROWS, &partial), None);
    let rows = v1(b"\x01\xff\xfe\x01\x02\x03\x04\xfe\x01").unwrap();
    let mut seen = 0;
    let read = rows.for_each(|_| {
        seen += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((read.is_err(), seen), (true, 1));
}

#[test]
fn decimals_are_written_as_the_server_does_and_in_one_form() {
    let kind = |precision, decimals| ColumnKind::Decimal {
        precision,
        decimals,
    };
    // The example in MySQL's decimal.c: 1234567890.1234 as DECIMAL(14, 4).
    let bytes = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
    let number = kind(14, 4).decimal(&bytes).unwrap();
    assert_eq!(number.text(), "1234567890.1234");
    let negative = bytes.map(|byte| !byte);
    let number = kind(14, 4).decimal(&negative).unwrap();
    assert_eq!(number.text(), "-1234567890.1234");
    let texts = |precision, decimals, bytes: &[u8]| {
        let number = kind(precision, decimals).decimal(bytes).unwrap();
        (number.text().to_owned(), number.canonical().to_owned())
    };
    let pair = |text: &str, canonical: &str| (text.to_owned(), canonical.to_owned());
    assert_eq!(texts(3, 2, &[0x80, 0]), pair("0.00", "0"));
    assert_eq!(texts(3, 2, &[0x7f, 0xff]), pair("0.00", "0")); // minus zero
    assert_eq!(texts(3, 2, &[0x81, 50]), pair("1.50", "1.5"));
    assert_eq!(texts(3, 0, &[0x80, 100]), pair("100", "100"));
    assert_eq!(texts(2, 2, &[0x85]), pair("0.05", "0.05"));
    // More than its digits; another length; another kind.
    assert!(kind(2, 2).decimal(&[0xe4]).is_none());
    assert!(kind(2, 2).decimal(&[0x80, 0]).is_none());
    assert!(ColumnKind::Year.decimal(&[0x80]).is_none());
}

proptest! {
    /// Real row events with any bytes changed, checksums off so that the bodies are really read.
    #[test]
    fn changed_rows_never_panic(
        log in 0_usize..LOGS.len(),
        number in 0_usize..100,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let all = events(LOGS[log]);
        let maps: Vec<_> = (0..all.len()).filter(|at| all[*at][4] == event_type::TABLE_MAP).collect();
        let at = maps[number % maps.len()];
        let mut decoder = behind_format(LOGS[log]);
        let mut changes = changes.into_iter();
        for event in &all[at..(at + 3).min(all.len())] {
            let mut event = event[..event.len() - 4].to_vec();
            if let Some((at, value)) = changes.next() {
                let body_bytes = event.len() - HEADER_BYTES;
                event[HEADER_BYTES + at % body_bytes] = value;
            }
            let length = u32::try_from(event.len()).unwrap();
            event[9..13].copy_from_slice(&length.to_le_bytes());
            // Artificial, so that its place doesn't matter.
            event[17] |= 0x20;
            if let Ok(Decoded { event: Event::Rows { rows: Some(rows), .. }, .. }) = decoder.decode(&event) {
                let columns = rows.map().columns.len();
                let _ = rows.for_each(|change| {
                    for image in [change.before, change.after].into_iter().flatten() {
                        for column in 0..=columns {
                            image.field(column);
                        }
                    }
                    ControlFlow::Continue(())
                });
            }
        }
    }
}
