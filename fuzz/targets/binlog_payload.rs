//! The events of a transaction payload.
//!
//! Input: one byte, then events one after the other. They are put into a payload event that isn't
//! compressed, between a real format description and a GTID, so that mutations reach the events.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use remora_binlog::{
    Decoded, DecoderLimits, Event, LoggedTable, Query, QueryMeaning, StreamDecoder, Touched,
    Transactions, event_type,
};

const LOG: &[u8] = include_bytes!("../../crates/binlog/tests/fixtures/mysql-8.0.binlog");
const MAGIC_BYTES: usize = 4;
const HEADER_BYTES: usize = 19;
const LENGTH_AT: usize = 9;
const EVENTS_MAX: usize = 64;
const TABLES_MAX: usize = 8;

fn event(event_type: u8, end: u32, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0; HEADER_BYTES];
    event[4] = event_type;
    event[13..17].copy_from_slice(&end.to_le_bytes());
    event.extend_from_slice(body);
    mend_length(&mut event);
    event
}

fn mend_length(event: &mut [u8]) {
    let length = u32::try_from(event.len()).expect("inputs are short");
    event[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
}

/// The format description of a real log, with checksums off.
fn format_description() -> Vec<u8> {
    let length = &LOG[MAGIC_BYTES + LENGTH_AT..MAGIC_BYTES + LENGTH_AT + 4];
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let mut event = LOG[MAGIC_BYTES..MAGIC_BYTES + length].to_vec();
    event[length - 5] = 0;
    event
}

/// The events, each with a length that fits, as long as there are any.
fn mended(mut stream: &[u8]) -> Vec<u8> {
    let mut events = Vec::new();
    while stream.len() >= HEADER_BYTES {
        let said = &stream[LENGTH_AT..LENGTH_AT + 4];
        let said = u32::from_le_bytes(said.try_into().expect("four bytes")) as usize;
        let (event, rest) = stream.split_at(said.clamp(HEADER_BYTES, stream.len()));
        let mut event = event.to_vec();
        mend_length(&mut event);
        events.extend_from_slice(&event);
        stream = rest;
    }
    events
}

/// A payload's body: its size, no compression, its size once more, the events.
fn payload(events: &[u8]) -> Vec<u8> {
    let size = (events.len() as u64).to_le_bytes();
    let mut body = b"\x02\x03\xfc\xff\x00\x03\x09\xfe".to_vec();
    body.extend_from_slice(&size);
    body.extend_from_slice(b"\x01\x09\xfe");
    body.extend_from_slice(&size);
    body.push(0);
    body.extend_from_slice(events);
    body
}

fn meaning(query: &Query) -> QueryMeaning {
    match query.text.first().map_or(0, |byte| byte % 6) {
        0 => QueryMeaning::Begin,
        1 => QueryMeaning::End,
        2 => QueryMeaning::XaEnd,
        3 => QueryMeaning::Everything,
        4 => QueryMeaning::Definitions,
        _ => QueryMeaning::Tables {
            tables: vec![LoggedTable::new("shop", "orders")],
            definitions: false,
            relations: false,
        },
    }
}

fn take(decoder: &mut StreamDecoder, transactions: &mut Transactions, event: &[u8]) -> Decoded {
    let before = decoder.offset();
    let decoded = decoder.decode(event).expect("the events outside are sound");
    let end = decoded.end_offset;
    for commit in transactions
        .apply(&decoded, before, meaning)
        .iter()
        .flatten()
    {
        assert!(commit.end_offset <= end.unwrap_or(before).max(before));
        if let Touched::Tables(tables) = &commit.touched {
            assert!(tables.len() <= TABLES_MAX);
            assert!(commit.unlogged.is_subset(tables));
        }
    }
    decoded
}

fn walk(event: &Event) {
    if let Event::Rows {
        rows: Some(rows), ..
    } = event
    {
        assert!(rows.size_bytes() <= 1 << 10);
        // An error is as good as an end.
        let _ = rows.for_each(|change| {
            assert!(change.before.is_some() || change.after.is_some());
            ControlFlow::Continue(())
        });
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, stream)) = input.split_first() else {
        return;
    };
    let limits = DecoderLimits {
        text_bytes_max: 1 << 10,
        table_ids_max: 16,
        payload_bytes_max: 1 << 13,
        payload_events_max: EVENTS_MAX,
        payload_rows_bytes_max: 1 << 10,
        rows_bytes_max: 1 << 10,
    };
    let mut decoder = StreamDecoder::new("binlog.000001".to_owned(), 4, limits);
    let mut transactions = Transactions::new(TABLES_MAX);
    take(&mut decoder, &mut transactions, &format_description());
    let begin = event(event_type::MYSQL_GTID, 1_000, &[1; 42]);
    take(&mut decoder, &mut transactions, &begin);
    let events = if choice & 1 == 0 {
        mended(stream)
    } else {
        stream.to_vec()
    };
    let payload = event(event_type::TRANSACTION_PAYLOAD, 2_000, &payload(&events));
    match take(&mut decoder, &mut transactions, &payload).event {
        Event::Payload(Some(events)) => {
            assert!(events.len() <= EVENTS_MAX);
            events.iter().for_each(walk);
        }
        Event::Payload(None) => assert!(!transactions.is_open()),
        other => panic!("{other:?}"),
    }
    // Whatever is still open ends here.
    let next = event(event_type::MYSQL_GTID, 3_000, &[1; 42]);
    take(&mut decoder, &mut transactions, &next);
    assert!(transactions.is_open());
});
