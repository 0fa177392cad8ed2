//! MariaDB's compressed texts and rows.

use std::io::Read;

use crate::cursor::Cursor;
use crate::error::DecodeError;

/// MariaDB's compressed text or rows: one byte (0x80 | algorithm << 4 | size of the length), the
/// length big-endian, then a zlib stream. `None` if it is longer than `bytes_max`.
pub(crate) fn inflate(bytes: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, DecodeError> {
    const FIELD: &str = "compressed text";
    let mut cursor = Cursor::new(bytes);
    let first = cursor.u8(FIELD)?;
    let length_bytes = usize::from(first & 0x07);
    if first & 0xf0 != 0x80 || !(1..=4).contains(&length_bytes) {
        return Err(DecodeError::Invalid(FIELD));
    }
    let length = cursor.bytes(length_bytes, FIELD)?;
    let length = length
        .iter()
        .fold(0_usize, |value, byte| (value << 8) | usize::from(*byte));
    if length > bytes_max {
        return Ok(None);
    }
    // One byte more than announced, to see a stream that goes on.
    let mut text = Vec::new();
    flate2::read::ZlibDecoder::new(cursor.rest())
        .take(length as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|_| DecodeError::Invalid(FIELD))?;
    if text.len() == length {
        Ok(Some(text))
    } else {
        Err(DecodeError::Invalid(FIELD))
    }
}
