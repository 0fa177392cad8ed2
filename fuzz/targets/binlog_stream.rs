//! A stream of binary log events, decoded and put together to commits.
//!
//! Input: events one after the other, as in a log file after its magic number. Lengths and
//! checksums are mended, so that mutations reach what lies behind them.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use remora_binlog::{
    Decoded, DecoderLimits, Event, Field, HEADER_BYTES, LoggedTable, Query, QueryMeaning, RowImage,
    Rows, StreamDecoder, Touched, Transactions,
};

const LENGTH_AT: usize = 9;
const FLAGS_AT: usize = 17;
const FORMAT_DESCRIPTION: u8 = 15;
const TABLES_MAX: usize = 8;

/// The next event of `stream`, mended, and what follows it.
fn next_event(stream: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let length = stream.get(LENGTH_AT..LENGTH_AT + 4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let length = length.min(stream.len()).max(HEADER_BYTES);
    let (event, rest) = stream.split_at_checked(length)?;
    let mut event = event.to_vec();
    let said = u32::try_from(event.len()).ok()?.to_le_bytes();
    event[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&said);
    if let Some(end) = event
        .len()
        .checked_sub(4)
        .filter(|end| *end >= HEADER_BYTES)
    {
        let mut covered = event[..end].to_vec();
        if covered[4] == FORMAT_DESCRIPTION {
            covered[FLAGS_AT] &= !1;
        }
        let checksum = crc32fast::hash(&covered).to_le_bytes();
        event[end..].copy_from_slice(&checksum);
    }
    Some((event, rest))
}

fn meaning(query: &Query) -> QueryMeaning {
    match query.text.first().map_or(0, |byte| byte % 7) {
        0 => QueryMeaning::Begin,
        1 => QueryMeaning::End,
        2 => QueryMeaning::Nothing,
        3 => QueryMeaning::XaEnd,
        4 => QueryMeaning::Accounts,
        5 => QueryMeaning::Everything,
        _ => QueryMeaning::Tables {
            tables: vec![LoggedTable::new("shop", "orders")],
            definitions: query.text.len() % 2 == 0,
            relations: false,
        },
    }
}

fn apply(transactions: &mut Transactions, decoded: &Decoded, before: u64) {
    let commits = transactions.apply(decoded, before, meaning);
    let mut last = 0;
    for commit in commits.iter().flatten() {
        assert!(commit.end_offset >= last, "commits go back");
        last = commit.end_offset;
        assert!(last <= before.max(decoded.end_offset.unwrap_or(0)));
        if let Touched::Tables(tables) = &commit.touched {
            assert!(tables.len() <= TABLES_MAX);
            assert!(commit.unlogged.is_subset(tables));
        }
    }
}

/// Reads every value in every way.
fn read_image(rows: &Rows, image: RowImage<'_>) {
    for (at, column) in rows.map().columns.iter().enumerate() {
        let Field::Bytes(bytes) = image.field(at) else {
            continue;
        };
        let kind = column.kind;
        if let Some(decimal) = kind.decimal(bytes) {
            assert!(!decimal.canonical().is_empty());
            assert!(decimal.text().starts_with(decimal.canonical()));
        }
        kind.integer(bytes, column.unsigned.unwrap_or(false));
        kind.date(bytes);
        kind.datetime(bytes);
        kind.year(bytes);
        kind.enum_index(bytes);
        kind.bit(bytes);
        kind.text(bytes);
    }
    assert_eq!(image.field(rows.map().columns.len()), Field::Absent);
}

fn walk(event: &Event) {
    match event {
        Event::Rows {
            rows: Some(rows), ..
        } => {
            let read = rows.for_each(|change| {
                for image in [change.before, change.after].into_iter().flatten() {
                    read_image(rows, image);
                }
                ControlFlow::Continue(())
            });
            if let Err(error) = read {
                assert!(!error.to_string().is_empty());
            }
        }
        Event::Payload(Some(events)) => events.iter().for_each(walk),
        _ => {}
    }
}

fuzz_target!(|stream: &[u8]| {
    let limits = DecoderLimits {
        text_bytes_max: 1 << 16,
        table_ids_max: 16,
        payload_bytes_max: 1 << 16,
        payload_events_max: 64,
        payload_rows_bytes_max: 1 << 12,
        rows_bytes_max: 1 << 14,
    };
    let file = "binlog.000001".to_owned();
    let mut decoder = StreamDecoder::new(file, 4, limits);
    let mut transactions = Transactions::new(TABLES_MAX);
    let mut rest = stream;
    while let Some((event, later)) = next_event(rest) {
        rest = later;
        let before = decoder.offset();
        // One in eight is called too long to hold.
        let decoded = if event[0] & 7 == 7 {
            let kept = HEADER_BYTES + (event.len() - HEADER_BYTES) / 2;
            decoder.decode_oversized(&event[..kept], event.len() as u64)
        } else {
            decoder.decode(&event)
        };
        match decoded {
            Ok(decoded) => {
                walk(&decoded.event);
                apply(&mut transactions, &decoded, before);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    }
});
