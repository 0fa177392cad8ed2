//! Fields, errors, authentication and small rows.
//!
//! Servers: none
//! Load: waits

mod support;

use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{CommonOkPacket, OkPacketDeserializer};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use remora_wire::auth::{AuthPacket, native_password};
use remora_wire::reader::{Reader, put_length};
use remora_wire::response::{EndMark, ServerError};
use remora_wire::rows::{column_name, parse_text_row};
use remora_wire::{StatusFlags, WireError};

use support::packets::{definition, end, error, lenenc, lenenc_text, mark, ok, text_row, wide_ok};

#[test]
fn lengths_are_written_in_the_shortest_form() {
    for (value, bytes) in [
        (0, &[0x00][..]),
        (250, &[0xfa]),
        (251, &[0xfc, 0xfb, 0x00]),
        (0xffff, &[0xfc, 0xff, 0xff]),
        (0x1_0000, &[0xfd, 0x00, 0x00, 0x01]),
        (0xff_ffff, &[0xfd, 0xff, 0xff, 0xff]),
        (0x100_0000, &[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
        (u64::MAX, &[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]),
    ] {
        let mut out = Vec::new();
        put_length(&mut out, value);
        assert_eq!(out, bytes);
        assert_eq!(Reader::new(bytes).length("length"), Ok(value));
        for cut in 0..bytes.len() {
            let read = Reader::new(&bytes[..cut]).length("length");
            assert_eq!(read, Err(WireError::Truncated("length")));
        }
    }
}

#[test]
fn null_and_the_reserved_mark_are_no_lengths() {
    assert_eq!(Reader::new(&[0xfb]).length_encoded("field"), Ok(None));
    let malformed = Err(WireError::Malformed("field"));
    assert_eq!(Reader::new(&[0xfb]).length("field"), malformed);
    assert_eq!(Reader::new(&[0xff]).length("field"), malformed);
    assert_eq!(
        Reader::new(&[0xff]).length_encoded_bytes("field"),
        Err(WireError::Malformed("field"))
    );
    let endless = [0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    let read = Reader::new(&endless).length_encoded_bytes("field");
    assert_eq!(read, Err(WireError::Truncated("field")));
}

#[test]
fn texts_end_at_their_nul_or_with_the_payload() {
    let mut reader = Reader::new(b"one\0two\0three");
    assert_eq!(reader.until_nul("text"), Ok(&b"one"[..]));
    assert_eq!(reader.until_nul_or_end(), b"two");
    assert_eq!(reader.until_nul("text"), Err(WireError::Truncated("text")));
    assert_eq!(reader.until_nul_or_end(), b"three");
    assert!(reader.is_empty());
    assert_eq!(reader.until_nul_or_end(), b"");
}

#[test]
fn a_failed_read_takes_nothing() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert!(reader.u32("number").is_err());
    assert!(reader.bytes(4, "bytes").is_err());
    assert_eq!(reader.rest(), [1, 2, 3]);
    assert_eq!(reader.u16("number"), Ok(0x0201));
}

#[test]
fn the_native_password_is_the_known_answer() {
    // Computed with Python's hashlib.
    let salt: Vec<u8> = (1..=20).collect();
    let answer: [u8; 20] = [
        0xb3, 0x2b, 0xb3, 0xa5, 0x83, 0xe1, 0x34, 0x0c, 0x0a, 0x11, 0x08, 0xd5, 0x8b, 0x1b, 0xe4,
        0x97, 0x81, 0xad, 0x8c, 0x2f,
    ];
    assert_eq!(native_password(b"secret", &salt), answer);
    assert!(native_password(b"", &salt).is_empty());
}

#[test]
fn authentication_packets_are_told_apart() {
    let parse = |payload| AuthPacket::parse(payload);
    let (accepted, refused) = (ok(EndMark::default()), error(1045, "no"));
    assert_eq!(parse(&accepted), Ok(AuthPacket::Ok));
    assert_eq!(parse(&refused), Ok(AuthPacket::Err));
    let switch = AuthPacket::Switch {
        plugin: b"mysql_native_password",
        data: b"salt\0",
    };
    assert_eq!(parse(b"\xfemysql_native_password\0salt\0"), Ok(switch));
    // A lone mark is from before there were plugins, and means the one of that time.
    let before_plugins = AuthPacket::Switch {
        plugin: b"mysql_old_password",
        data: b"",
    };
    assert_eq!(parse(b"\xfe"), Ok(before_plugins));
    assert_eq!(parse(b"\x01\x04"), Ok(AuthPacket::More(b"\x04")));
    assert_eq!(parse(b"\x02key"), Ok(AuthPacket::More(b"\x02key")));
    assert!(parse(b"").is_err());
}

#[test]
fn an_error_without_a_state_is_a_general_one() {
    let parsed = ServerError::parse(b"\xff\x10\x04Too many connections").unwrap();
    let wanted = ServerError::new(1040, "HY000", "Too many connections");
    assert_eq!(parsed, wanted);
}

#[test]
fn what_is_no_error_is_not_read_as_one() {
    assert!(ServerError::parse(b"").is_err());
    assert!(ServerError::parse(b"\x00\x10\x04").is_err());
    assert!(ServerError::parse(b"\xff\x10").is_err());
    assert!(ServerError::parse(b"\xff\x10\x04#420").is_err());
}

#[test]
fn a_state_of_the_wrong_length_does_not_move_the_text() {
    for state in ["", "42", "4200000"] {
        let packet = ServerError::new(1064, state, "text").packet(1);
        assert_eq!(ServerError::parse(&packet[4..]).unwrap().message, "text");
    }
}

#[test]
fn a_column_has_the_name_that_the_client_sees() {
    assert_eq!(column_name(&definition("price")), Ok("price".into()));
    for length in 0..20 {
        assert!(column_name(&definition("price")[..length]).is_err());
    }
}

#[test]
fn a_row_with_another_number_of_fields_is_refused() {
    let row = text_row(&[Some(b"1"), None]);
    assert!(parse_text_row(&row, 2).is_ok());
    assert!(parse_text_row(&row, 1).is_err());
    assert!(parse_text_row(&row, 3).is_err());
    assert!(parse_text_row(&row, usize::MAX).is_err());
}

#[test]
fn another_decoder_reads_the_same_end_marks() {
    let status = StatusFlags::IN_TRANSACTION.with(StatusFlags::NO_INDEX);
    for payload in [ok(mark(status)), wide_ok(mark(status), b"")] {
        let other = ParseBuf(&payload)
            .parse::<OkPacketDeserializer<'_, CommonOkPacket>>(CapabilityFlags::CLIENT_PROTOCOL_41)
            .unwrap()
            .into_inner();
        let ours = EndMark::from_ok(&payload).unwrap();
        assert_eq!(other.status_flags().bits(), ours.status.0);
        assert_eq!(other.warnings(), ours.warnings);
    }
}

#[test]
fn end_marks_are_read_in_both_forms() {
    use remora_wire::Capabilities;
    let wanted = mark(StatusFlags::IN_TRANSACTION);
    let old = end(Capabilities::PROTOCOL_41, wanted);
    assert_eq!(EndMark::from_eof(&old), Ok(wanted));
    let new = end(Capabilities::DEPRECATE_EOF, wanted);
    assert_eq!(EndMark::from_ok(&new), Ok(wanted));
    for length in 0..old.len() {
        assert!(EndMark::from_eof(&old[..length]).is_err());
    }
    for length in 0..new.len() {
        assert!(EndMark::from_ok(&new[..length]).is_err());
    }
}

proptest! {
    #[test]
    fn lengths_survive(value in prop_oneof![any::<u64>(), 0..0x200u64, 0xff00..0x2_0000u64]) {
        let mut out = Vec::new();
        put_length(&mut out, value);
        prop_assert_eq!(&out, &lenenc(usize::try_from(value).unwrap()));
        let mut reader = Reader::new(&out);
        prop_assert_eq!(reader.length_encoded("length"), Ok(Some(value)));
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn texts_survive(text in vec(any::<u8>(), 0..700), rest in vec(any::<u8>(), 0..9)) {
        let payload = [lenenc_text(&text), rest.clone()].concat();
        let mut reader = Reader::new(&payload);
        prop_assert_eq!(reader.length_encoded_bytes("text"), Ok(Some(&text[..])));
        prop_assert_eq!(reader.rest(), &rest);
    }

    #[test]
    fn errors_survive(code in any::<u16>(), state in "[0-9A-Z]{5}", message in "\\PC{0,80}", sequence in any::<u8>()) {
        let error = ServerError::new(code, &state, message);
        let packet = error.packet(sequence);
        prop_assert_eq!(packet[3], sequence);
        prop_assert_eq!(ServerError::parse(&packet[4..]), Ok(error));
    }

    #[test]
    fn rows_survive(fields in vec(option::of(vec(any::<u8>(), 0..300)), 0..8)) {
        let borrowed: Vec<Option<&[u8]>> = fields.iter().map(Option::as_deref).collect();
        prop_assert_eq!(parse_text_row(&text_row(&borrowed), fields.len()), Ok(fields));
    }

    #[test]
    fn the_native_password_is_what_another_writer_makes(password in vec(any::<u8>(), 1..40), salt in vec(any::<u8>(), 20)) {
        let other = mysql_common::scramble::scramble_native(&salt, &password).unwrap();
        prop_assert_eq!(native_password(&password, &salt), other);
    }

    #[test]
    fn noise_is_refused_or_read_but_nothing_worse(noise in vec(any::<u8>(), 0..60), columns in 0usize..9) {
        let _ = AuthPacket::parse(&noise);
        let _ = ServerError::parse(&noise);
        let _ = EndMark::from_ok(&noise);
        let _ = EndMark::from_eof(&noise);
        let _ = column_name(&noise);
        let _ = parse_text_row(&noise, columns);
    }
}
