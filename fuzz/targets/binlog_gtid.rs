//! GTIDs: texts of sets, and the bodies of the events that hold them.
//!
//! Input: one byte that chooses, then a text or a body. What is read is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_binlog::{DecoderLimits, Event, Gtid, GtidSet, StreamDecoder, event_type};

const LOG: &[u8] = include_bytes!("../../crates/binlog/tests/fixtures/mysql-8.0.binlog");
const MAGIC_BYTES: usize = 4;
const HEADER_BYTES: usize = 19;
const LENGTH_AT: usize = 9;

fn check_set(set: &GtidSet) {
    let text = set.to_string();
    let again: GtidSet = text.parse().expect("what is written is read");
    assert_eq!(again, *set, "{text}");
    assert!(set.is_subset_of(&again));
    let mut merged = set.clone();
    merged.merge(&again);
    assert_eq!(merged, again);
    assert_eq!(set.is_empty(), set.interval_count() == 0);
}

fn check_gtid(gtid: &Gtid) {
    let again: Gtid = gtid.to_string().parse().expect("what is written is read");
    assert_eq!(again, *gtid);
    let mut set = GtidSet::new();
    assert!(!set.contains(gtid));
    set.insert(gtid.clone());
    assert!(set.contains(gtid));
    check_set(&set);
}

/// The event of a type and a body, read behind a real format description without checksums.
fn decode(event_type: u8, body: &[u8]) -> Option<Event> {
    let mut decoder = StreamDecoder::new("binlog.000001".to_owned(), 4, DecoderLimits::default());
    let length = &LOG[MAGIC_BYTES + LENGTH_AT..MAGIC_BYTES + LENGTH_AT + 4];
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let mut format = LOG[MAGIC_BYTES..MAGIC_BYTES + length].to_vec();
    format[length - 5] = 0;
    decoder.decode(&format).expect("a real event");
    let mut event = vec![0; HEADER_BYTES];
    event[4] = event_type;
    event[14] = 0x10;
    event.extend_from_slice(body);
    let length = u32::try_from(event.len()).ok()?;
    event[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
    Some(decoder.decode(&event).ok()?.event)
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let event_type = match choice % 4 {
        0 => event_type::MYSQL_GTID,
        1 => event_type::MYSQL_GTID_TAGGED,
        2 => event_type::PREVIOUS_GTIDS,
        _ => {
            if let Some(set) = std::str::from_utf8(rest)
                .ok()
                .and_then(|text| text.parse().ok())
            {
                check_set(&set);
            }
            return;
        }
    };
    match decode(event_type, rest) {
        Some(Event::Gtid {
            gtid: Some(gtid), ..
        }) => check_gtid(&gtid),
        Some(Event::PreviousGtids(set)) => check_set(&set),
        _ => {}
    }
});
