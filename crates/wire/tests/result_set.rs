//! Result sets of Remora's own, as every kind of client reads them.
//!
//! Servers: none
//! Load: waits
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_wire::command::ResponseKind;
use remora_wire::result_set::{Column, ColumnKind, Parts, ResultSet, end_mark, packets};
use remora_wire::rows::{column_name, parse_text_row};
use remora_wire::walker::{Ending, Progress, ResponseWalker};
use remora_wire::{Capabilities, StatusFlags};

/// Every combination of the features that change how a result set is written.
fn flavours() -> Vec<Capabilities> {
    let features = [
        Capabilities::DEPRECATE_EOF,
        Capabilities::OPTIONAL_RESULTSET_METADATA,
        Capabilities::MARIADB_CACHE_METADATA,
        Capabilities::MARIADB_EXTENDED_METADATA,
    ];
    (0..1_u32 << features.len())
        .map(|bits| {
            let chosen = features.iter().enumerate();
            let chosen = chosen.filter(|(at, _)| bits >> at & 1 == 1);
            chosen.fold(Capabilities::PROTOCOL_41, |all, (_, one)| all.with(*one))
        })
        .collect()
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("name", 64),
        Column::unsigned("count"),
        Column {
            name: "share".to_owned(),
            kind: ColumnKind::Double,
        },
    ]
}

#[test]
fn a_result_set_is_read_back_in_every_flavour() {
    let status = StatusFlags::AUTOCOMMIT.with(StatusFlags::IN_TRANSACTION);
    for capabilities in flavours() {
        // More rows than sequence numbers, and one longer than a packet.
        for (rows, length) in [(0, 1), (600, 300), (1, 17 << 20)] {
            let mut set = ResultSet::begin(capabilities, status, &columns());
            let text = "x".repeat(length);
            for _ in 0..rows {
                set.row([Some(text.as_bytes()), Some(&b"7"[..]), None]);
            }
            let bytes = set.finish();
            let mut walker = ResponseWalker::new(ResponseKind::Results, capabilities);
            let (used, progress) = walker.feed(&bytes).unwrap();
            let Progress::Done(summary) = progress else {
                panic!("{capabilities:?}: {progress:?}");
            };
            assert_eq!(
                (used, summary.results),
                (bytes.len(), 1),
                "{capabilities:?}"
            );
            assert!(summary.numbered_from_one && summary.ending == Ending::ResultSet);
            let mark = summary.mark.unwrap();
            assert_eq!((mark.status, mark.warnings), (status, 0));
        }
    }
}

#[test]
fn it_ends_as_another_that_a_server_sent() {
    let status = StatusFlags::AUTOCOMMIT.with(StatusFlags::IN_TRANSACTION);
    for capabilities in flavours() {
        let other = ResultSet::begin(capabilities, status, &columns()).finish();
        let end = Parts::of(&other, capabilities).unwrap().end;
        let set = ResultSet::begin(capabilities, status, &columns());
        assert_eq!(set.finish_as(end), other, "{capabilities:?}");
    }
    let further = status.with(StatusFlags::MORE_RESULTS);
    assert_eq!(further.within(StatusFlags::OF_SESSION), status);
}

#[test]
fn its_parts_are_what_was_put_in() {
    for capabilities in flavours() {
        let mut set = ResultSet::begin(capabilities, StatusFlags::AUTOCOMMIT, &columns());
        set.text_row(&["one", "1", "0.5"]);
        set.row([Some(&b"two"[..]), Some(b"2"), None]);
        assert!(!set.is_empty());
        let bytes = set.finish();
        let parts = Parts::of(&bytes, capabilities).unwrap();
        assert_eq!(
            (parts.columns, parts.definitions, parts.rows.len()),
            (3, 3, 2)
        );
        assert_eq!(column_name(parts.head[1]).unwrap(), "name");
        let row = parse_text_row(parts.rows[1], 3).unwrap();
        assert_eq!(row[0].as_deref(), Some(&b"two"[..]));
        assert_eq!(row[2], None);
        let mark = parts.mark(capabilities).unwrap();
        assert_eq!(mark.status, StatusFlags::AUTOCOMMIT);
        let all = parts.head.iter().chain(&parts.rows).chain([&parts.end]);
        assert_eq!(packets(all.copied()), bytes);
    }
}

#[test]
fn its_end_is_found_behind_a_row_of_several_packets() {
    let long = vec![b'x'; 17 * 1024 * 1024];
    for capabilities in flavours() {
        let mut set = ResultSet::begin(capabilities, StatusFlags::AUTOCOMMIT, &columns());
        set.row([Some(&long[..]), None, None]);
        let bytes = set.finish();
        let (end, mark) = end_mark(&bytes, capabilities).unwrap();
        assert_eq!(mark.status, StatusFlags::AUTOCOMMIT);
        assert!(bytes.ends_with(end) && end.len() < 32);
        assert!(end_mark(&bytes[..bytes.len() - 1], capabilities).is_err());
    }
}

#[test]
fn what_is_no_result_set_has_no_parts() {
    let ok = packets([&[0, 0, 0, 2, 0, 0, 0][..]]);
    let error = packets([&b"\xff\x48\x04#HY000No"[..]]);
    for answer in [&ok[..], &error, b"", b"\x01", b"\x05\0\0\x01\x02"] {
        assert!(Parts::of(answer, Capabilities::PROTOCOL_41).is_err());
    }
    let mut set = ResultSet::begin(
        Capabilities::PROTOCOL_41,
        StatusFlags::default(),
        &columns(),
    );
    set.text_row(&["a", "1", "1"]);
    let whole = set.finish();
    for cut in 0..whole.len() {
        let _ = Parts::of(&whole[..cut], Capabilities::PROTOCOL_41);
    }
}
