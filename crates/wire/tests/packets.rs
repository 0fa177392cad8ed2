//! Packets: how messages are measured, split and joined.
//!
//! Servers: none
//! Load: waits

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::WireError;
use remora_wire::packet::{
    Extent, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, extent, join_payload, put_message,
};

use support::packets::Packets;

/// Sizes around the boundaries, and how many packets they take.
const SIZES: [(usize, u8); 8] = [
    (0, 1),
    (1, 1),
    (PAYLOAD_BYTES_MAX - 1, 1),
    (PAYLOAD_BYTES_MAX, 2),
    (PAYLOAD_BYTES_MAX + 1, 2),
    (2 * PAYLOAD_BYTES_MAX - 1, 2),
    (2 * PAYLOAD_BYTES_MAX, 3),
    (2 * PAYLOAD_BYTES_MAX + 1, 3),
];

#[test]
fn messages_are_split_measured_and_joined_around_sixteen_mebibytes() {
    for (size, packets) in SIZES {
        let mut payload = vec![0xab; size];
        if let Some(last) = payload.last_mut() {
            *last = 0xcd;
        }
        let mut message = Vec::new();
        let next = put_message(&mut message, 254, &payload);
        assert_eq!(next, 254u8.wrapping_add(packets), "{size}");
        let mut wanted = Packets {
            bytes: Vec::new(),
            sequence: 254,
        };
        assert!(wanted.put(&payload).bytes == message, "{size}");
        let complete = Extent::Complete {
            bytes: size + HEADER_BYTES * usize::from(packets),
            last_sequence: next.wrapping_sub(1),
            single: packets == 1,
        };
        assert_eq!(extent(&message, 254), Ok(complete));
        assert!(join_payload(&message) == payload, "{size}");
        message.extend([9, 9, 9]);
        assert_eq!(extent(&message, 254), Ok(complete));
    }
}

#[test]
fn what_is_missing_of_a_message_is_told_as_far_as_it_is_known() {
    let mut message = Vec::new();
    put_message(&mut message, 0, &vec![7; PAYLOAD_BYTES_MAX + 5]);
    let first = HEADER_BYTES + PAYLOAD_BYTES_MAX;
    for (length, known_bytes) in [
        (0, HEADER_BYTES),
        (3, HEADER_BYTES),
        (4, first),
        (first - 1, first),
        (first, first + HEADER_BYTES),
        (first + 3, first + HEADER_BYTES),
        (first + 4, message.len()),
        (message.len() - 1, message.len()),
    ] {
        let partial = Extent::Partial { known_bytes };
        assert_eq!(extent(&message[..length], 0), Ok(partial), "{length}");
    }
}

#[test]
fn a_packet_out_of_order_is_an_error() {
    let wrong = |expected, got| Err(WireError::OutOfOrder { expected, got });
    assert_eq!(extent(&[1, 0, 0, 5, 0], 0), wrong(0, 5));
    // Told by the header alone.
    assert_eq!(extent(&[1, 0, 0, 5], 4), wrong(4, 5));
    let mut message = Vec::new();
    put_message(&mut message, 0, &vec![7; PAYLOAD_BYTES_MAX]);
    message[HEADER_BYTES + PAYLOAD_BYTES_MAX + 3] = 0;
    assert_eq!(extent(&message, 0), wrong(1, 0));
}

proptest! {
    #[test]
    fn a_header_is_read_as_it_was_written(length in 0..=PAYLOAD_BYTES_MAX, sequence in any::<u8>()) {
        let header = Header { length, sequence };
        prop_assert_eq!(Header::peek(&header.encode()), Some(header));
        prop_assert_eq!(header.is_continued(), length == PAYLOAD_BYTES_MAX);
    }

    #[test]
    fn small_messages_survive(payload in vec(any::<u8>(), 0..300), sequence in any::<u8>()) {
        let mut message = vec![];
        prop_assert_eq!(put_message(&mut message, sequence, &payload), sequence.wrapping_add(1));
        let bytes = message.len();
        let complete = Extent::Complete { bytes, last_sequence: sequence, single: true };
        prop_assert_eq!(extent(&message, sequence), Ok(complete));
        prop_assert_eq!(join_payload(&message), payload);
    }

    #[test]
    fn noise_is_measured_within_its_bounds(noise in vec(any::<u8>(), 0..40), sequence in any::<u8>()) {
        match extent(&noise, sequence) {
            Ok(Extent::Complete { bytes, .. }) => prop_assert!(bytes <= noise.len()),
            Ok(Extent::Partial { known_bytes }) => prop_assert!(known_bytes > noise.len()),
            Err(error) => {
                let matches = matches!(error, WireError::OutOfOrder { .. });
                prop_assert!(matches, "{}", error);
            }
        }
        prop_assert!(join_payload(&noise).len() <= noise.len());
    }
}
