//! Small text result sets decoded whole: the answers to Remora's own questions.
//!
//! What clients ask for is never decoded; it passes as bytes.

use crate::WireError;
use crate::reader::Reader;

/// A row of a text result set: each field's bytes, `None` for NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// The name in a column definition's payload.
///
/// Source: MySQL internals, "Column Definition".
pub fn column_name(payload: &[u8]) -> Result<String, WireError> {
    let mut reader = Reader::new(payload);
    for what in [
        "column's catalogue",
        "column's schema",
        "column's table",
        "column's table name",
    ] {
        reader.length_encoded_bytes(what)?;
    }
    let name = reader
        .length_encoded_bytes("column's name")?
        .unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The type in a column definition's payload (`MYSQL_TYPE_…`).
///
/// Source: MySQL internals, "Column Definition": behind it stand flags, decimals and two bytes
/// more.
pub fn column_type(payload: &[u8]) -> Result<u8, WireError> {
    const FROM_END: usize = 6;
    let at = payload.len().checked_sub(FROM_END);
    at.map(|at| payload[at])
        .ok_or(WireError::Truncated("column's type"))
}

/// A row's payload as fields. It must hold exactly `columns` of them.
pub fn parse_text_row(payload: &[u8], columns: usize) -> Result<Row, WireError> {
    let mut reader = Reader::new(payload);
    let mut row = Vec::with_capacity(columns.min(payload.len() + 1));
    for _ in 0..columns {
        row.push(reader.length_encoded_bytes("text row")?.map(<[u8]>::to_vec));
    }
    if reader.is_empty() {
        Ok(row)
    } else {
        Err(WireError::Malformed("text row"))
    }
}
/// The number of the collation in which a column's values are sent, by the payload of its
/// definition; `None` if the payload is none.
pub fn collation_of_definition(payload: &[u8]) -> Option<u16> {
    /// The first field: the catalogue, which is `def`.
    const CATALOGUE: &[u8] = b"\x03def";
    /// What stands behind the names: its length, collation (2), length (4), type, flags (2),
    /// decimals, two filler bytes.
    const FIXED: usize = 13;
    let fixed = payload.len().checked_sub(FIXED)?;
    match payload.get(fixed..)? {
        [0x0c, low, high, ..] if payload.starts_with(CATALOGUE) => {
            Some(u16::from_le_bytes([*low, *high]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collation_stands_before_the_last_ten_bytes_of_a_definition() {
        let mut definition = b"\x03def\0\0\0\x01x\0".to_vec();
        let fixed = [0x0c, 47, 1, 0, 0, 0, 0, 0xfd, 1, 0, 31, 0, 0];
        definition.extend(fixed);
        assert_eq!(collation_of_definition(&definition), Some(47 + 256));
        // Neither a row nor a truncated definition has one.
        assert_eq!(collation_of_definition(&definition[1..]), None);
        assert_eq!(
            collation_of_definition(&definition[..definition.len() - 1]),
            None
        );
        assert_eq!(collation_of_definition(b"\x03def"), None);
    }
}
