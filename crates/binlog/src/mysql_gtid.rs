//! The bodies of MySQL's events about GTIDs.
//!
//! Sources: MySQL's documentation of the binary log events, and of its serialization library for
//! the events with tags (8.3 and later).

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::gtid::{Gtid, GtidSet, NUMBER_MAX, SOURCE_BYTES};

/// The only version of the serialization that there is.
const SERIALIZATION_VERSION: u64 = 1;
/// The highest field number of a tagged GTID event that is known (`commit_group_ticket`).
const TAGGED_FIELD_MAX: u64 = 11;
/// Format of a `PREVIOUS_GTIDS` event, in the highest byte of its count.
const PREVIOUS_UNTAGGED: u64 = 0;
const PREVIOUS_TAGGED: u64 = 1;

/// `GTID_LOG_EVENT` and `ANONYMOUS_GTID_LOG_EVENT`: a flag byte, the source, the number (0 in an
/// anonymous one). What follows is about parallel appliers.
pub(crate) fn gtid(body: &[u8]) -> Result<Option<Gtid>, DecodeError> {
    let mut cursor = Cursor::new(body);
    cursor.u8("GTID flags")?;
    let source = source(&mut cursor)?;
    let number = cursor.uint(8, "GTID number")?;
    Ok(Gtid::new(source, "", number))
}

/// `GTID_TAGGED_LOG_EVENT`. `None` if it isn't as it was documented.
pub(crate) fn tagged(body: &[u8]) -> Option<Gtid> {
    let mut cursor = Cursor::new(body);
    let version = varlen(&mut cursor)?;
    let bytes = varlen(&mut cursor)?;
    let last_needed = varlen(&mut cursor)?;
    let is_known = version == SERIALIZATION_VERSION
        && bytes == body.len() as u64
        && last_needed <= TAGGED_FIELD_MAX;
    if !is_known {
        return None;
    }
    // Fields come in the order of their numbers; these four are always there.
    field(&mut cursor, 0)?;
    varlen(&mut cursor)?; // flags
    field(&mut cursor, 1)?;
    let mut source = [0; SOURCE_BYTES];
    for byte in &mut source {
        *byte = u8::try_from(varlen(&mut cursor)?).ok()?;
    }
    field(&mut cursor, 2)?;
    let number = varlen_signed(&mut cursor)?;
    field(&mut cursor, 3)?;
    let tag_bytes = usize::try_from(varlen(&mut cursor)?).ok()?;
    let tag = std::str::from_utf8(cursor.bytes(tag_bytes, "tag").ok()?).ok()?;
    Gtid::new(source, tag, u64::try_from(number).ok()?)
}

/// `PREVIOUS_GTIDS_LOG_EVENT`: the transactions in all files before. `None` if its format isn't
/// known.
pub(crate) fn previous(body: &[u8]) -> Result<Option<GtidSet>, DecodeError> {
    const FIELD: &str = "previous GTIDs";
    let mut cursor = Cursor::new(body);
    let head = cursor.uint(8, FIELD)?;
    let (is_tagged, count) = match head >> 56 {
        PREVIOUS_UNTAGGED => (false, head),
        // The format is repeated in the lowest byte.
        PREVIOUS_TAGGED => (true, (head >> 8) & 0xffff_ffff_ffff),
        _ => return Ok(None),
    };
    let mut set = GtidSet::new();
    for _ in 0..count {
        let source = source(&mut cursor)?;
        let tag = if is_tagged {
            tag(&mut cursor).ok_or(DecodeError::Invalid(FIELD))?
        } else {
            String::new()
        };
        for _ in 0..cursor.uint(8, FIELD)? {
            let first = cursor.uint(8, FIELD)?;
            let end = cursor.uint(8, FIELD)?;
            if first == 0 || end <= first || end - 1 > NUMBER_MAX {
                return Err(DecodeError::Invalid(FIELD));
            }
            set.insert_interval(source, tag.clone(), first, end - 1);
        }
    }
    if cursor.rest().is_empty() {
        Ok(Some(set))
    } else {
        Err(DecodeError::Invalid(FIELD))
    }
}

fn source(cursor: &mut Cursor<'_>) -> Result<[u8; SOURCE_BYTES], DecodeError> {
    let mut source = [0; SOURCE_BYTES];
    source.copy_from_slice(cursor.bytes(SOURCE_BYTES, "GTID source")?);
    Ok(source)
}

fn tag(cursor: &mut Cursor<'_>) -> Option<String> {
    let bytes = usize::try_from(varlen(cursor)?).ok()?;
    let text = std::str::from_utf8(cursor.bytes(bytes, "tag").ok()?).ok()?;
    // Any source and number do: only the tag is looked at.
    Gtid::new([0; SOURCE_BYTES], text, 1).map(|gtid| gtid.tag)
}

fn field(cursor: &mut Cursor<'_>, number: u64) -> Option<()> {
    (varlen(cursor)? == number).then_some(())
}

/// The serialization's unsigned integer: as many more bytes as the first has trailing ones, all
/// little-endian; the ones and the zero behind them aren't part of the value.
fn varlen(cursor: &mut Cursor<'_>) -> Option<u64> {
    const FIELD: &str = "variable-length integer";
    let first = cursor.u8(FIELD).ok()?;
    let more = first.trailing_ones();
    let rest = cursor.uint(more as usize, FIELD).ok()?;
    let low_bits = 7_u32.saturating_sub(more);
    Some(match more {
        0..=6 => (u64::from(first) >> (more + 1)) | (rest << low_bits),
        _ => rest,
    })
}

/// The signed integer: its lowest bit says that the others are those of its complement.
fn varlen_signed(cursor: &mut Cursor<'_>) -> Option<i64> {
    let encoded = varlen(cursor)?;
    let magnitude = i64::try_from(encoded >> 1).ok()?;
    Some(if encoded & 1 == 0 {
        magnitude
    } else {
        !magnitude
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The examples in the documentation of MySQL's serialization library.
    #[test]
    fn integers_are_read_as_documented() {
        let unsigned = |bytes: &[u8]| varlen(&mut Cursor::new(bytes));
        assert_eq!(unsigned(&[0xfb, 0xff, 0x07]), Some(65_535));
        assert_eq!(unsigned(&[0xfe]), Some(127));
        assert_eq!(unsigned(&[0x7f, 0, 0, 0, 0, 0, 0, 0x80]), Some(1 << 55));
        assert_eq!(unsigned(&[0xff; 9]), Some(u64::MAX));
        assert_eq!(unsigned(&[0xff; 8]), None);
        let signed = |bytes: &[u8]| varlen_signed(&mut Cursor::new(bytes));
        assert_eq!(signed(&[0xf3, 0xff, 0x0f]), Some(65_535));
        assert_eq!(signed(&[0xeb, 0xff, 0x0f]), Some(-65_535));
        assert_eq!(signed(&[0xfb, 0xff, 0x0f]), Some(-65_536));
    }

    /// Flags 1, source `77a0b0..`, number 3, tag `ab`, then `last_committed` and the like.
    const TAGGED: &[u8] = &[
        0x02, 0x4e, 0x00, // version 1, 39 bytes, all fields may be ignored
        0x00, 0x02, // flags
        0x02, 0xee, 0x81, 0x02, 0xc1, 0x02, 0x01, 0x03, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
        0x22, 0x22, 0x22, 0x22, 0x22, // source
        0x04, 0x0c, // number
        0x06, 0x04, b'a', b'b', // tag
        0x08, 0x00, 0x0a, 0x04, 0x0c, 0x02, 0x10, 0x02, // times and lengths
    ];

    #[test]
    fn a_tagged_gtid_is_read() {
        assert_eq!(TAGGED.len(), 39);
        assert_eq!(
            tagged(TAGGED).unwrap().to_string(),
            "77a0b0c0-1111-1111-1111-111111111111:ab:3"
        );
    }

    #[test]
    fn a_tagged_gtid_that_is_odd_is_none() {
        for length in 0..TAGGED.len() {
            assert_eq!(tagged(&TAGGED[..length]), None);
        }
        // Version 2; a needed field that isn't known; another order; a source of nine bits; a
        // negative number; a tag with a space.
        for (at, value) in [
            (0, 0x04),
            (2, 0x18),
            (3, 0x02),
            (12, 0x07),
            (26, 0x0e),
            (29, b' '),
        ] {
            let mut odd = TAGGED.to_vec();
            odd[at] = value;
            assert_eq!(tagged(&odd), None, "byte {at}");
        }
    }

    fn previous_of(head: [u8; 8], entries: &[&[u8]]) -> Result<Option<GtidSet>, DecodeError> {
        let mut body = head.to_vec();
        for entry in entries {
            body.extend_from_slice(entry);
        }
        previous(&body)
    }

    #[test]
    fn previous_gtids_are_read_with_and_without_tags() {
        let intervals = [
            &2_u64.to_le_bytes()[..],
            &1_u64.to_le_bytes(),
            &4_u64.to_le_bytes(),
            &7_u64.to_le_bytes(),
            &8_u64.to_le_bytes(),
        ]
        .concat();
        let source = [0x11; 16];
        let plain = previous_of([1, 0, 0, 0, 0, 0, 0, 0], &[&source, &intervals]);
        let text = "11111111-1111-1111-1111-111111111111:1-3:7";
        assert_eq!(plain.unwrap().unwrap().to_string(), text);
        let entries: [&[u8]; 6] = [&source, &[0], &intervals, &source, b"\x02t", &intervals];
        let with_tags = previous_of([1, 2, 0, 0, 0, 0, 0, 1], &entries);
        assert_eq!(
            with_tags.unwrap().unwrap().to_string(),
            format!("{text}:t:1-3:7")
        );
    }

    #[test]
    fn previous_gtids_that_are_odd_are_an_error_or_none() {
        assert_eq!(previous_of([0, 0, 0, 0, 0, 0, 0, 9], &[]), Ok(None));
        assert_eq!(previous_of([0; 8], &[]), Ok(Some(GtidSet::new())));
        assert!(previous_of([0; 8], &[&[0]]).is_err());
        assert!(previous_of([0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0], &[]).is_err());
        let huge_count = [&[0x11; 16][..], &u64::MAX.to_le_bytes()].concat();
        assert!(previous_of([1, 0, 0, 0, 0, 0, 0, 0], &[&huge_count]).is_err());
        for (first, end) in [(3, 3), (0, 3), (1, u64::MAX), (1, NUMBER_MAX + 2)] {
            let interval = [
                &[0x11; 16][..],
                &1_u64.to_le_bytes(),
                &u64::to_le_bytes(first),
                &u64::to_le_bytes(end),
            ]
            .concat();
            let read = previous_of([1, 0, 0, 0, 0, 0, 0, 0], &[&interval]);
            assert!(read.is_err(), "{first} to {end}");
        }
    }
}
