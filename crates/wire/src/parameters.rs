//! Values in the binary protocol, as `COM_STMT_EXECUTE` and query attributes carry them: where each
//! one ends.
//!
//! Source: MySQL internals, "Binary Protocol Value"; `COM_STMT_EXECUTE`. Checked against MySQL
//! 8.0.31 for each type that is read here. Types that the table there has and clients don't send
//! (INT24, YEAR, the server's own) are unsupported: that server takes them all for
//! `string<lenenc>`, others need not.

use crate::WireError;
use crate::reader::Reader;

/// The flag in a type's second byte that says "unsigned".
const UNSIGNED: u8 = 0x80;

/// The type of a parameter: `MYSQL_TYPE_*` and its sign, two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParameterType {
    /// `MYSQL_TYPE_*`.
    pub kind: u8,
    /// The second byte: 0x80 for unsigned.
    pub flags: u8,
}

/// How the bytes of a value are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// This many bytes.
    Fixed(usize),
    /// An `int<lenenc>` and as many bytes: text, numbers as text, and dates and times, whose length
    /// depends on how much of them isn't zero.
    LengthEncoded,
}

impl ParameterType {
    /// Reads a type.
    pub fn read(reader: &mut Reader<'_>) -> Result<ParameterType, WireError> {
        Ok(ParameterType {
            kind: reader.u8("parameter type")?,
            flags: reader.u8("parameter type")?,
        })
    }

    /// Whether a number is unsigned.
    pub fn is_unsigned(self) -> bool {
        self.flags & UNSIGNED != 0
    }

    /// `None`: a type that no client sends with a value. NULL is one: those are marked in the
    /// bitmap.
    fn layout(self) -> Option<Layout> {
        match self.kind {
            // TINY
            0x01 => Some(Layout::Fixed(1)),
            // SHORT
            0x02 => Some(Layout::Fixed(2)),
            // LONG, FLOAT
            0x03 | 0x04 => Some(Layout::Fixed(4)),
            // DOUBLE, LONGLONG
            0x05 | 0x08 => Some(Layout::Fixed(8)),
            // DECIMAL; TIMESTAMP, DATE, TIME, DATETIME; VARCHAR, BIT; JSON, NEWDECIMAL, ENUM, SET,
            // the BLOBs, VAR_STRING, STRING, GEOMETRY
            0x00 | 0x07 | 0x0a..=0x0c | 0x0f | 0x10 | 0xf5..=0xff => Some(Layout::LengthEncoded),
            _ => None,
        }
    }
}

/// Reads the value of a parameter that isn't NULL: all of its bytes, a length at its start among
/// them.
pub fn read_value<'a>(
    reader: &mut Reader<'a>,
    of_type: ParameterType,
) -> Result<&'a [u8], WireError> {
    const WHAT: &str = "parameter value";
    let start = reader.rest();
    match of_type.layout() {
        Some(Layout::Fixed(bytes)) => {
            reader.bytes(bytes, WHAT)?;
        }
        Some(Layout::LengthEncoded) => {
            reader
                .length_encoded_bytes(WHAT)?
                .ok_or(WireError::Malformed(WHAT))?;
        }
        None => return Err(WireError::Unsupported("parameter of an unknown type")),
    }
    Ok(&start[..start.len() - reader.rest().len()])
}

/// Which of the parameters are NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NullBitmap<'a>(&'a [u8]);

impl<'a> NullBitmap<'a> {
    /// Reads the bitmap of `count` parameters.
    pub fn read(reader: &mut Reader<'a>, count: usize) -> Result<NullBitmap<'a>, WireError> {
        let bytes = reader.bytes(count.div_ceil(8), "NULL bitmap")?;
        Ok(NullBitmap(bytes))
    }

    /// Whether the parameter with this index is NULL.
    pub fn is_null(self, index: usize) -> bool {
        self.0
            .get(index / 8)
            .is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// The bytes as sent.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}
