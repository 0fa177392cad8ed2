//! The bytes that a MariaDB 10.11.19 and an 11.4.5 wrote, read back. `fixtures/README.md` has the
//! statements.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use remora_binlog::*;

const FIRST: &[u8] = include_bytes!("fixtures/mariadb-10.11-a.binlog");
const SECOND: &[u8] = include_bytes!("fixtures/mariadb-10.11-b.binlog");
const FROM_11_4: &[u8] = include_bytes!("fixtures/mariadb-11.4.binlog");
const MAGIC_BYTES: u64 = 4;

fn decoder(file: &str) -> StreamDecoder {
    let limits = DecoderLimits::default();
    StreamDecoder::new(file.into(), MAGIC_BYTES, limits)
}

fn events(log: &[u8]) -> Vec<&[u8]> {
    let mut rest = &log[4..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = EventHeader::parse(rest).unwrap().event_bytes as usize;
        events.push(&rest[..length]);
        rest = &rest[length..];
    }
    events
}

fn meaning(query: &Query) -> QueryMeaning {
    let text = String::from_utf8_lossy(&query.text).to_lowercase();
    let table = |name: &str| QueryMeaning::Tables {
        tables: vec![LoggedTable::new(query.schema.clone(), name)],
        definitions: true,
        relations: false,
    };
    match text.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["commit" | "rollback"] => QueryMeaning::End,
        ["savepoint", _] | ["xa", "end"] => QueryMeaning::Nothing,
        ["xa", "commit"] => QueryMeaning::XaEnd,
        ["create" | "grant", "user" | "select"] => QueryMeaning::Accounts,
        ["create" | "drop", "table"] => {
            let name = text
                .split(['(', ' ', '`'])
                .filter(|word| !word.is_empty())
                .nth(2);
            table(name.unwrap())
        }
        _ => QueryMeaning::Everything,
    }
}

fn commits(log: &[u8]) -> Vec<Commit> {
    commits_of(&events(log))
}

fn commits_of(events: &[&[u8]]) -> Vec<Commit> {
    let mut decoder = decoder("binlog.000001");
    let mut transactions = Transactions::new(8);
    let mut commits = Vec::new();
    for event in events {
        let before = decoder.offset();
        let decoded = decoder.decode(event).unwrap();
        commits.extend(
            transactions
                .apply(&decoded, before, meaning)
                .into_iter()
                .flatten(),
        );
    }
    commits
}

fn tables(commit: &Commit) -> String {
    match &commit.touched {
        Touched::Everything => "*".into(),
        Touched::Tables(tables) => tables
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[test]
fn a_real_log_gives_each_commit_with_its_tables_and_its_end() {
    let seen: Vec<_> = commits(FIRST)
        .iter()
        .filter(|commit| commit.kind != CommitKind::Progress)
        .map(|commit| (commit.end_offset, commit.kind, tables(commit)))
        .collect();
    let expected = [
        (452, CommitKind::Standalone, "*"), // CREATE DATABASE
        (583, CommitKind::Standalone, "*"),
        (769, CommitKind::Standalone, "app.parent"),
        (1001, CommitKind::Standalone, "app.child"),
        (1174, CommitKind::Standalone, "app.m"),
        (1408, CommitKind::Transaction, "app.parent"),
        (1638, CommitKind::Transaction, "app.child"),
        (1867, CommitKind::Transaction, "app.parent"),
        (2131, CommitKind::Transaction, "app.child app.parent"), // a cascade
        (2381, CommitKind::EndedByStatement, "app.m"),
        (2680, CommitKind::Transaction, "app.parent"), // with a savepoint
        (2930, CommitKind::EndedByStatement, "app.m"), // in a rolled-back transaction
        (3180, CommitKind::EndedByStatement, "app.m"),
        (3355, CommitKind::Transaction, "*"), // binlog_format=STATEMENT
        (3670, CommitKind::XaPrepare, "app.parent"),
        (3800, CommitKind::XaEnd, "app.parent"),
        (4105, CommitKind::Transaction, "app.parent"), // compressed rows
        (4390, CommitKind::Transaction, "app.parent"),
        (4667, CommitKind::Transaction, "app.child app.parent"),
        (4867, CommitKind::Transaction, "*"), // compressed statement
        (5067, CommitKind::Standalone, "app.other.big"),
        (5216, CommitKind::Standalone, "*"), // CREATE USER
        (5376, CommitKind::Standalone, "*"), // GRANT
        (6175, CommitKind::Transaction, "app.ctas"),
        (6336, CommitKind::Standalone, "app.child"),
        (6471, CommitKind::Standalone, "*"), // CREATE SEQUENCE
        (6774, CommitKind::EndedByStatement, "app.sq"),
        (7036, CommitKind::EndedByStatement, "app.m"),
    ];
    let expected: Vec<_> = expected
        .map(|(end, kind, tables)| (end, kind, tables.to_string()))
        .into();
    assert_eq!(seen, expected);
}

fn event_type_of(event: &[u8]) -> u8 {
    EventHeader::parse(event).unwrap().event_type
}

/// MariaDB leaves out the positions of events within a group since 11.4, and doesn't send every
/// event that is in the log.
#[test]
fn a_commit_has_its_place_where_the_events_before_it_have_none() {
    let all = events(FROM_11_4);
    let sent: Vec<&[u8]> = all
        .iter()
        .copied()
        .filter(|event| event_type_of(event) != event_type::ANNOTATE_ROWS)
        .collect();
    assert!(sent.len() < all.len());
    for events in [all, sent] {
        let seen: Vec<_> = commits_of(&events)
            .iter()
            .filter(|commit| commit.kind != CommitKind::Progress)
            .map(|commit| (commit.end_offset, commit.kind, tables(commit)))
            .collect();
        let expected = [
            (452, CommitKind::Standalone, "*"), // CREATE DATABASE
            (626, CommitKind::Standalone, "app.t"),
            (806, CommitKind::Standalone, "app.m"),
            (1018, CommitKind::Standalone, "app.child"),
            (1228, CommitKind::Transaction, "app.t"),
            (1470, CommitKind::EndedByStatement, "app.m"),
            (1758, CommitKind::Transaction, "app.t"), // with a savepoint
            (2013, CommitKind::Transaction, "app.child app.t"), // a cascade
            (2317, CommitKind::XaPrepare, "app.t"),
            (2447, CommitKind::XaEnd, "app.t"),
            (2695, CommitKind::Transaction, "*"), // binlog_format=STATEMENT
            (2929, CommitKind::EndedByStatement, "*"),
            (3139, CommitKind::Transaction, "*"), // rolled back
            (3514, CommitKind::Transaction, "app.d"), // CREATE TABLE … SELECT
        ];
        let expected: Vec<_> = expected
            .map(|(end, kind, tables)| (end, kind, tables.to_string()))
            .into();
        assert_eq!(seen, expected);
    }
}

#[test]
fn an_event_without_a_place_is_refused_outside_a_group_and_at_its_end() {
    let all = events(FROM_11_4);
    let table_map = |event: &&[u8]| event_type_of(event) == event_type::TABLE_MAP;
    let loose = *all.iter().copied().find(table_map).as_ref().unwrap();
    let mut outside = decoder("binlog.000001");
    outside.decode(all[0]).unwrap();
    assert!(matches!(
        outside.decode(loose),
        Err(DecodeError::NoPosition(event_type::TABLE_MAP))
    ));
    // As are an end that has lost its place, and a text that looks like one.
    let at = all
        .iter()
        .position(|event| event_type_of(event) == event_type::XID)
        .unwrap();
    let mut inside = decoder("binlog.000001");
    for event in &all[..at] {
        inside.decode(event).unwrap();
    }
    assert!(matches!(
        inside.decode(&without_place(all[at])),
        Err(DecodeError::NoPosition(event_type::XID))
    ));
    let changed: Vec<Vec<u8>> = all
        .iter()
        .map(|event| {
            let is_commit = EventHeader::parse(event).unwrap().end_offset_low == 1470;
            if is_commit {
                without_place(event)
            } else {
                event.to_vec()
            }
        })
        .collect();
    let changed: Vec<&[u8]> = changed.iter().map(Vec::as_slice).collect();
    let commits = commits_of(&changed);
    let released = commits
        .iter()
        .find(|commit| commit.end_offset == 1470)
        .unwrap();
    assert_eq!(released.kind, CommitKind::Leftover);
    assert_eq!(tables(released), "*");
}

/// The event without its position, its checksum made anew.
fn without_place(event: &[u8]) -> Vec<u8> {
    let mut changed = event.to_vec();
    changed[13..17].fill(0);
    let end = changed.len() - 4;
    let mut crc = flate2::Crc::new();
    crc.update(&changed[..end]);
    changed[end..].copy_from_slice(&crc.sum().to_le_bytes());
    changed
}

#[test]
fn an_event_between_transactions_moves_the_position_on() {
    let ends: Vec<_> = commits(SECOND)
        .iter()
        .map(|commit| commit.end_offset)
        .collect();
    assert_eq!(ends, [256, 299, 339, 379]);
}

#[test]
fn the_format_description_says_whether_the_server_was_started() {
    let of = |log| match decoder("x.000001").decode(events(log)[0]).unwrap().event {
        Event::FormatDescription(description) => description,
        other => panic!("{other:?}"),
    };
    assert_ne!(of(FIRST).created, 0);
    assert_eq!(of(FIRST).checksum, ChecksumAlgorithm::Crc32);
    assert!(of(FIRST).server_version.starts_with("10.11.19-MariaDB"));
    assert_eq!(of(SECOND).created, 0);
    assert_eq!(of(SECOND).server_id, 41);
}

#[test]
fn the_rotate_event_moves_the_decoder_to_the_next_file() {
    let mut decoder = decoder("binlog.000001");
    for event in events(FIRST) {
        decoder.decode(event).unwrap();
    }
    assert_eq!((decoder.file(), decoder.offset()), ("binlog.000002", 4));
}

#[test]
fn a_compressed_statement_longer_than_the_bound_touches_everything() {
    let limits = DecoderLimits {
        text_bytes_max: 40,
        ..DecoderLimits::default()
    };
    let mut decoder = StreamDecoder::new("b.000001".into(), MAGIC_BYTES, limits);
    let unnamed = events(FIRST)
        .into_iter()
        .filter(|event| matches!(decoder.decode(event).unwrap().event, Event::Unnamed(165)))
        .count();
    assert_eq!(unnamed, 2);
}

#[test]
fn the_text_and_the_session_settings_of_a_compressed_statement_come_back() {
    let mut decoder = decoder("b.000001");
    let query = events(FIRST)
        .into_iter()
        .find_map(|event| match decoder.decode(event).unwrap() {
            Decoded {
                header,
                event: Event::Query(query),
                ..
            } if header.event_type == 165 => Some(query),
            _ => None,
        })
        .unwrap();
    assert_eq!(query.schema, "app");
    assert_eq!(
        query.text,
        b"insert into parent values(14,repeat('statement ',20))"
    );
    assert_eq!(query.client_collation, Some(33));
    assert!(query.sql_mode.is_some());
}

#[test]
fn every_shortened_event_is_an_error() {
    for (number, event) in events(FIRST).into_iter().enumerate() {
        for length in 0..event.len() {
            let mut decoder = decoder("binlog.000001");
            for earlier in &events(FIRST)[..number] {
                decoder.decode(earlier).unwrap();
            }
            assert!(
                decoder.decode(&event[..length]).is_err(),
                "event {number} at {length}"
            );
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error() {
    for (number, event) in events(FIRST).into_iter().enumerate().skip(1) {
        let mut damaged = event.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 4;
        let mut decoder = decoder("binlog.000001");
        decoder.decode(events(FIRST)[0]).unwrap();
        assert!(decoder.decode(&damaged).is_err(), "event {number}");
    }
}

#[test]
fn a_group_without_an_end_is_released_by_the_next() {
    let mut decoder = decoder("binlog.000001");
    let mut transactions = Transactions::new(8);
    let mut released = Vec::new();
    for event in events(FIRST) {
        // The commit of the first insert, at 1377, is lost.
        let lost = EventHeader::parse(event).unwrap().end_offset_low == 1408;
        if lost {
            continue;
        }
        let before = decoder.offset();
        let decoded = decoder.decode(event).unwrap();
        released.extend(
            transactions
                .apply(&decoded, before, meaning)
                .into_iter()
                .flatten(),
        );
    }
    let leftover: Vec<_> = released
        .iter()
        .filter(|commit| commit.kind == CommitKind::Leftover)
        .collect();
    assert_eq!(leftover.len(), 1);
    assert_eq!(
        (leftover[0].end_offset, tables(leftover[0])),
        (1377, "app.parent".into())
    );
}

#[test]
fn more_tables_than_the_bound_are_everything() {
    let mut decoder = decoder("binlog.000001");
    let mut transactions = Transactions::new(1);
    let mut at_cascade = None;
    for event in events(FIRST) {
        let before = decoder.offset();
        let decoded = decoder.decode(event).unwrap();
        for commit in transactions
            .apply(&decoded, before, meaning)
            .into_iter()
            .flatten()
        {
            if commit.end_offset == 2131 {
                at_cascade = Some(commit.touched);
            }
        }
    }
    assert_eq!(at_cascade, Some(Touched::Everything));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = decoder("binlog.000001");
        let _ = decoder.decode(&bytes);
        let _ = decoder.decode(events(FIRST)[0]);
        let _ = decoder.decode(&bytes);
        let _ = decoder.decode_oversized(&bytes, bytes.len() as u64);
    }

    /// Real events with any bytes changed, checksums off so that the bodies are really read.
    #[test]
    fn changed_events_never_panic(
        number in 1_usize..100,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let mut format = events(FIRST)[0].to_vec();
        let algorithm_at = format.len() - 5;
        format[algorithm_at] = 0;
        let all = events(FIRST);
        let event = all[number % all.len()];
        let mut event = event[..event.len() - 4].to_vec();
        for (at, value) in changes {
            let length = event.len();
            event[at % length] = value;
        }
        let length = u32::try_from(event.len()).unwrap();
        event[9..13].copy_from_slice(&length.to_le_bytes());
        let mut decoder = decoder("binlog.000001");
        decoder.decode(&format).unwrap();
        let mut transactions = Transactions::new(4);
        if let Ok(decoded) = decoder.decode(&event) {
            transactions.apply(&decoded, 4, |_| QueryMeaning::Nothing);
        }
    }
}
