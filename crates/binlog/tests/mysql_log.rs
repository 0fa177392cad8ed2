//! The bytes that MySQL 5.6, 5.7 and 8.0 wrote, read back and damaged. `fixtures/README.md` has
//! their origin; what each commit touches is compared with live servers in
//! `crates/behaviour/tests/once/mysql_log`.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use remora_binlog::*;

const LOGS: [&[u8]; 3] = [
    include_bytes!("fixtures/mysql-5.6.binlog"),
    include_bytes!("fixtures/mysql-5.7.binlog"),
    include_bytes!("fixtures/mysql-8.0.binlog"),
];
const MAGIC_BYTES: usize = 4;
const HEADER_BYTES: usize = 19;
const CHECKSUM_BYTES: usize = 4;

fn decoder() -> StreamDecoder {
    let limits = DecoderLimits::default();
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

/// The log's events without checksums: its format description says that there are none.
fn unprotected(log: &[u8]) -> Vec<Vec<u8>> {
    let mut events: Vec<_> = events(log).into_iter().map(<[u8]>::to_vec).collect();
    let algorithm_at = events[0].len() - CHECKSUM_BYTES - 1;
    events[0][algorithm_at] = 0;
    for event in &mut events[1..] {
        event.truncate(event.len() - CHECKSUM_BYTES);
        mend_length(event);
    }
    events
}

fn mend_length(event: &mut [u8]) {
    let length = u32::try_from(event.len()).unwrap();
    event[9..13].copy_from_slice(&length.to_le_bytes());
}

fn nothing(_: &Query) -> QueryMeaning {
    QueryMeaning::Nothing
}

#[test]
fn the_gtids_of_a_new_servers_first_file_are_its_own_from_1_on() {
    for log in LOGS {
        let (mut executed, mut groups) = (GtidSet::new(), 0);
        let mut decoder = decoder();
        for event in events(log) {
            match decoder.decode(event).unwrap().event {
                Event::PreviousGtids(set) => assert!(set.is_empty()),
                Event::Gtid { gtid, .. } => {
                    executed.insert(gtid.unwrap());
                    groups += 1;
                }
                _ => {}
            }
        }
        assert_eq!(executed.interval_count(), 1);
        let text = executed.to_string();
        assert!(
            text.ends_with(&format!(":1-{groups}")),
            "{text}, {groups} groups"
        );
    }
}

#[test]
fn every_event_of_a_real_log_is_known() {
    for log in LOGS {
        let mut decoder = decoder();
        for event in events(log) {
            let decoded = decoder.decode(event).unwrap();
            let is_named = !matches!(decoded.event, Event::Unnamed(_) | Event::Payload(None));
            assert!(is_named, "{decoded:?}");
        }
        assert_eq!(decoder.offset(), log.len() as u64);
    }
}

#[test]
fn a_payload_gives_each_table_once_and_the_end_of_its_transaction() {
    let mut decoder = decoder();
    let payloads: Vec<_> = events(LOGS[2])
        .into_iter()
        .filter_map(|event| match decoder.decode(event).unwrap().event {
            Event::Payload(events) => Some(events.unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(payloads.len(), 4);
    for events in &payloads {
        assert!(matches!(&events[0], Event::Query(_)));
        let last = events.last().unwrap();
        assert!(matches!(last, Event::Xid | Event::XaPrepare { .. }));
    }
    let table_maps = |events: &[Event]| {
        let is_map = |event: &&Event| matches!(event, Event::TableMap { .. });
        events.iter().filter(is_map).count()
    };
    let counts: Vec<_> = payloads.iter().map(|events| table_maps(events)).collect();
    assert_eq!(counts, [1, 2, 1, 1]);
}

#[test]
fn a_payload_of_which_only_the_beginning_was_kept_is_of_everything() {
    let mut decoder = decoder();
    let mut transactions = Transactions::new(8);
    let mut released = Vec::new();
    for event in events(LOGS[2]) {
        let before = decoder.offset();
        let header = EventHeader::parse(event).unwrap();
        let is_payload = header.event_type == event_type::TRANSACTION_PAYLOAD;
        let decoded = if is_payload {
            let bytes = event.len() as u64;
            decoder.decode_oversized(&event[..HEADER_BYTES + 10], bytes)
        } else {
            decoder.decode(event)
        };
        let made = transactions.apply(&decoded.unwrap(), before, nothing);
        if is_payload {
            released.extend(made.into_iter().flatten());
        }
    }
    assert_eq!(released.len(), 4);
    for commit in released {
        assert_eq!(commit.touched, Touched::Everything);
        assert!(commit.accounts && commit.definitions && commit.gtid.is_some());
    }
}

#[test]
fn a_flipped_bit_is_an_error() {
    for log in LOGS {
        for event in events(log).into_iter().skip(1) {
            for at in [HEADER_BYTES + 1, event.len() - 1] {
                let mut damaged = event.to_vec();
                damaged[at] ^= 4;
                let mut decoder = decoder();
                decoder.decode(events(log)[0]).unwrap();
                assert!(decoder.decode(&damaged).is_err(), "{damaged:?}");
            }
        }
    }
}

#[test]
fn heartbeats_name_their_file_and_are_nowhere_in_it() {
    let bodies: [(u8, &[u8]); 3] = [
        (event_type::HEARTBEAT, b"binlog.000007"),
        // MariaDB, behind 4 GiB of a file.
        (
            event_type::HEARTBEAT,
            b"\x00\x00\x00\x00\x01\x00\x00\x00binlog.000007",
        ),
        (
            event_type::HEARTBEAT_V2,
            b"\x02\x03\xfc\x2c\x01\x01\x0dbinlog.000007\x00",
        ),
    ];
    for (kind, body) in bodies {
        let mut heartbeat = vec![0; HEADER_BYTES];
        heartbeat[4] = kind;
        // Version 1 has the place up to which the log was sent: maybe of the file before.
        heartbeat[13..17].copy_from_slice(&1_090_882_323_u32.to_le_bytes());
        heartbeat.extend_from_slice(body);
        mend_length(&mut heartbeat);
        let mut reader = decoder();
        reader.decode(&unprotected(LOGS[2])[0]).unwrap();
        let before = reader.offset();
        let decoded = reader.decode(&heartbeat).unwrap();
        let file = "binlog.000007".to_owned();
        assert_eq!(decoded.event, Event::Heartbeat { file });
        assert_eq!((decoded.end_offset, reader.offset()), (None, before));
    }
}

proptest! {
    /// Checksums off, so that the bodies are really read.
    #[test]
    fn changed_events_never_panic(
        log in 0_usize..LOGS.len(),
        number in 1_usize..200,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let all = unprotected(LOGS[log]);
        let mut event = all[number % all.len()].clone();
        for (at, value) in changes {
            let length = event.len();
            event[at % length] = value;
        }
        mend_length(&mut event);
        let mut decoder = decoder();
        decoder.decode(&all[0]).unwrap();
        let mut transactions = Transactions::new(4);
        if let Ok(decoded) = decoder.decode(&event) {
            transactions.apply(&decoded, 4, nothing);
        }
    }

    /// The events around a payload are sound, so the log is read on whatever is in it.
    #[test]
    fn a_damaged_payload_never_ends_the_reading(
        payload in 0_usize..4,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut in 0_usize..40,
    ) {
        let all = unprotected(LOGS[2]);
        let is_payload = |event: &&Vec<u8>| event[4] == event_type::TRANSACTION_PAYLOAD;
        let mut event = all.iter().filter(is_payload).nth(payload).unwrap().clone();
        event.truncate(event.len() - cut);
        for (at, value) in changes {
            let body_bytes = event.len() - HEADER_BYTES;
            event[HEADER_BYTES + at % body_bytes] = value;
        }
        mend_length(&mut event);
        let mut decoder = decoder();
        decoder.decode(&all[0]).unwrap();
        let decoded = decoder.decode(&event).unwrap();
        prop_assert!(matches!(decoded.event, Event::Payload(_)));
    }
}
