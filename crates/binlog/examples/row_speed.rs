//! How long it takes to decode a row event and to walk its rows.
//!
//! `cargo run --release -p remora-binlog --example row_speed`
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use remora_binlog::{
    DecoderLimits, Event, Field, HEADER_BYTES, StreamDecoder, TableMap, event_type,
};

const LOG: &[u8] = include_bytes!("../tests/fixtures/mysql-8.0.binlog");
const ROWS: u32 = 200;
const ROUNDS: u32 = 20_000;

fn event(event_type: u8, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0; HEADER_BYTES];
    event[4] = event_type;
    event[17] = 0x20;
    event.extend_from_slice(body);
    let length = u32::try_from(event.len()).unwrap();
    event[9..13].copy_from_slice(&length.to_le_bytes());
    event
}

/// One row of BIGINT, VARCHAR(40), DECIMAL(10, 2), DATETIME.
fn image(number: u32) -> Vec<u8> {
    let mut image = vec![0xf0];
    image.extend_from_slice(&u64::from(number).to_le_bytes());
    image.extend_from_slice(b"\x10sixteen letters ");
    image.extend_from_slice(b"\x80\0\0\x07\x32\x99\xb0\x12\x34\x56");
    image
}

fn integer(map: &TableMap, field: Field<'_>) -> i128 {
    match field {
        Field::Bytes(bytes) => map.columns[0].kind.integer(bytes, false).unwrap_or(0),
        Field::Absent | Field::Null => 0,
    }
}

fn main() {
    let limits = DecoderLimits::default();
    let mut decoder = StreamDecoder::new("binlog.000001".to_owned(), 4, limits);
    let length = u32::from_le_bytes(LOG[13..17].try_into().unwrap()) as usize;
    let mut format = LOG[4..4 + length].to_vec();
    format[length - 5] = 0;
    decoder.decode(&format).unwrap();
    let map = b"\x07\0\0\0\0\0\x01\0\x01s\0\x01t\0\x04\x08\x0f\xf6\x12\x05\x28\x00\x0a\x02\x00\x0e";
    let map = event(event_type::TABLE_MAP, map);
    let mut body = b"\x07\0\0\0\0\0\0\0\x02\0\x04\xff\xff".to_vec();
    for number in 0..ROWS {
        body.extend(image(number));
        body.extend(image(number + 1));
    }
    let rows_event = event(event_type::UPDATE_ROWS_V2, &body);
    let (mut decoding, mut walking, mut sum) = (0.0, 0.0, 0_i128);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        decoder.decode(&map).unwrap();
        let decoded = decoder.decode(&rows_event).unwrap();
        decoding += started.elapsed().as_secs_f64();
        let Event::Rows {
            rows: Some(rows), ..
        } = decoded.event
        else {
            panic!("{decoded:?}");
        };
        let started = Instant::now();
        rows.for_each(|change| {
            let map = rows.map();
            for image in [change.before, change.after].into_iter().flatten() {
                sum = sum.wrapping_add(integer(map, black_box(image.field(0))));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        walking += started.elapsed().as_secs_f64();
    }
    let rows = f64::from(ROWS) * f64::from(ROUNDS);
    println!(
        "{} bytes an event, {ROWS} updated rows of 4 columns (sum {sum})",
        rows_event.len()
    );
    println!(
        "decode, with its table map: {:.1} ns a row",
        decoding / rows * 1e9
    );
    println!(
        "walk, one column read:      {:.1} ns a row",
        walking / rows * 1e9
    );
}
