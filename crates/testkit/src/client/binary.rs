//! Rows of the binary protocol, as far as tests need them. Source: MySQL internals, "Binary
//! Protocol Resultset Row".

use remora_wire::WireError;
use remora_wire::reader::Reader;
use remora_wire::rows::Row;

/// How a column's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// An integer of so many bytes.
    Integer { bytes: usize, is_unsigned: bool },
    /// With its length before it.
    LengthEncoded,
}

const UNSIGNED_FLAG: u16 = 0x20;
/// NULL bits of a row begin with the third.
const FIRST_NULL_BIT: usize = 2;

impl Column {
    /// From a column's definition.
    pub(super) fn parse(definition: &[u8]) -> Result<Column, WireError> {
        const WHAT: &str = "column definition";
        let mut reader = Reader::new(definition);
        // Catalog, schema, table and its alias, column and its alias.
        for _ in 0..6 {
            reader.length_encoded_bytes(WHAT)?;
        }
        // Length of what follows, character set, width.
        reader.bytes(1 + 2 + 4, WHAT)?;
        let kind = reader.u8(WHAT)?;
        let is_unsigned = reader.u16(WHAT)? & UNSIGNED_FLAG != 0;
        let integer = |bytes| Column::Integer { bytes, is_unsigned };
        match kind {
            0x01 => Ok(integer(1)),
            0x02 | 0x0d => Ok(integer(2)),
            0x03 | 0x09 => Ok(integer(4)),
            0x08 => Ok(integer(8)),
            // FLOAT, DOUBLE, the dates and times: nobody has needed them.
            0x04 | 0x05 | 0x07 | 0x0a..=0x0c => Err(WireError::Unsupported("a binary value")),
            _ => Ok(Column::LengthEncoded),
        }
    }

    /// A value as text has it.
    fn value(self, reader: &mut Reader<'_>) -> Result<Vec<u8>, WireError> {
        const WHAT: &str = "binary value";
        match self {
            Column::Integer { bytes, is_unsigned } => {
                let given = reader.bytes(bytes, WHAT)?;
                let is_negative = !is_unsigned && given.last().is_some_and(|byte| byte & 0x80 != 0);
                let mut wide = [if is_negative { 0xff } else { 0 }; 8];
                wide[..bytes].copy_from_slice(given);
                let text = if is_unsigned {
                    u64::from_le_bytes(wide).to_string()
                } else {
                    i64::from_le_bytes(wide).to_string()
                };
                Ok(text.into_bytes())
            }
            Column::LengthEncoded => reader
                .length_encoded_bytes(WHAT)?
                .map(<[u8]>::to_vec)
                .ok_or(WireError::Malformed(WHAT)),
        }
    }
}

/// A row with its values as text.
pub(super) fn parse_row(payload: &[u8], columns: &[Column]) -> Result<Row, WireError> {
    const WHAT: &str = "binary row";
    let mut reader = Reader::new(payload);
    if reader.u8(WHAT)? != 0 {
        return Err(WireError::Malformed(WHAT));
    }
    let nulls = reader.bytes((columns.len() + FIRST_NULL_BIT).div_ceil(8), WHAT)?;
    let is_null =
        |at: usize| nulls[(at + FIRST_NULL_BIT) / 8] >> ((at + FIRST_NULL_BIT) % 8) & 1 == 1;
    let field = |(at, column): (usize, &Column)| {
        if is_null(at) {
            return Ok(None);
        }
        column.value(&mut reader).map(Some)
    };
    columns.iter().enumerate().map(field).collect()
}
