//! Query attributes and the values in them: where each one ends.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::WireError;
use remora_wire::attributes::statement_text;
use remora_wire::parameters::{NullBitmap, ParameterType, read_value};
use remora_wire::reader::Reader;

use support::attributes::{bodies, body, values};

#[test]
fn the_statement_is_found_behind_attributes_of_every_type() {
    for (name, body) in bodies("SELECT 1") {
        let found = statement_text(&body);
        if name.starts_with("malformed") {
            assert_eq!(
                found,
                Err(WireError::Malformed("query attributes")),
                "{name}"
            );
        } else {
            assert_eq!(found, Ok((body.len() - 8, &b"SELECT 1"[..])), "{name}");
        }
    }
}

#[test]
fn types_that_no_client_sends_are_not_guessed_at() {
    for kind in 0..=255 {
        let known = values().iter().any(|(_, value)| value.0 == kind);
        // Long enough, whichever way it is read.
        let body = body(&[(kind, 0, Some(vec![1; 20]))], "SELECT 1");
        let unknown = Err(WireError::Unsupported("parameter of an unknown type"));
        assert_eq!(statement_text(&body) != unknown, known, "{kind}");
    }
}

#[test]
fn a_value_is_read_with_its_length() {
    for (name, (kind, flags, value)) in values() {
        let value = value.unwrap();
        let bytes = [&value[..], b"next"].concat();
        let mut reader = Reader::new(&bytes);
        let of_type = ParameterType { kind, flags };
        assert_eq!(read_value(&mut reader, of_type), Ok(&value[..]), "{name}");
        assert_eq!(reader.rest(), b"next", "{name}");
        for length in 0..value.len().min(40) {
            let mut short = Reader::new(&value[..length]);
            assert!(read_value(&mut short, of_type).is_err(), "{name}, {length}");
        }
        assert_eq!(of_type.is_unsigned(), name.starts_with("unsigned"));
    }
}

#[test]
fn a_text_cannot_be_null_without_the_bitmap() {
    let body = body(&[(254, 0, Some(vec![0xfb]))], "SELECT 1");
    assert_eq!(
        statement_text(&body),
        Err(WireError::Malformed("parameter value"))
    );
}

proptest! {
    #[test]
    fn the_statement_is_found_whatever_comes_before_it(
        picks in vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
        text in "[ -~]{0,40}",
    ) {
        let values = values();
        let attributes: Vec<_> = picks
            .iter()
            .map(|(pick, is_null)| {
                let (kind, flags, value) = values[pick.index(values.len())].1.clone();
                (kind, flags, value.filter(|_| !is_null))
            })
            .collect();
        let body = body(&attributes, &text);
        prop_assert_eq!(statement_text(&body), Ok((body.len() - text.len(), text.as_bytes())));
        // Nothing shorter has a statement in another place.
        for length in (0..body.len() - text.len()).take(300) {
            prop_assert!(statement_text(&body[..length]).is_err(), "{}", length);
        }
    }

    #[test]
    fn noise_is_read_or_refused(noise in vec(any::<u8>(), 0..100)) {
        if let Ok((length, text)) = statement_text(&noise) {
            prop_assert_eq!(&noise[length..], text);
        }
    }

    #[test]
    fn a_bitmap_tells_each_parameter(nulls in vec(any::<bool>(), 0..70)) {
        let mut bytes = vec![0; nulls.len().div_ceil(8)];
        for (index, _) in nulls.iter().enumerate().filter(|(_, null)| **null) {
            bytes[index / 8] |= 1 << (index % 8);
        }
        let bitmap = NullBitmap::read(&mut Reader::new(&bytes), nulls.len()).unwrap();
        for (index, null) in nulls.iter().enumerate() {
            prop_assert_eq!(bitmap.is_null(index), *null);
        }
        prop_assert!(!bitmap.is_null(bytes.len() * 8));
        prop_assert_eq!(bitmap.bytes(), &bytes[..]);
        prop_assert!(NullBitmap::read(&mut Reader::new(&bytes), bytes.len() * 8 + 1).is_err());
    }
}
