//! Tables as table map events describe them: the types of their columns.
//!
//! Sources: MySQL's `libbinlogevents/include/rows_event.h` and `Field::save_field_metadata` (the
//! formats), MariaDB's `log_event.h`; `crates/behaviour/tests/answers/rows` compares them with what
//! servers write.

use crate::cursor::Cursor;
use crate::table::LoggedTable;

/// A table as a table map event describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMap {
    /// Its name.
    pub table: LoggedTable,
    /// Its columns, in the order of their images. Empty if one has a type that can't be read: then
    /// no row of the table can be.
    pub columns: Box<[LoggedColumn]>,
}

/// A column of a table as it was when rows of it were logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedColumn {
    /// How its values are stored.
    pub kind: ColumnKind,
    /// Whether a number has no sign. `None`: it isn't a number, or the server doesn't say
    /// (`binlog_row_metadata`; MySQL before 8.0 and MariaDB by default don't).
    pub unsigned: Option<bool>,
}

/// How the values of a column are stored in row images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// `TINYINT` to `BIGINT`.
    Integer {
        /// Size: 1, 2, 3, 4 or 8.
        bytes: u8,
    },
    /// `DECIMAL`.
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits behind the point.
        decimals: u8,
    },
    /// `FLOAT`.
    Float,
    /// `DOUBLE`.
    Double,
    /// `BIT`.
    Bit {
        /// 1 to 64.
        bits: u8,
    },
    /// `YEAR`.
    Year,
    /// `DATE`.
    Date,
    /// `TIME` as servers before MySQL 5.6 stored it, without fraction.
    OldTime,
    /// `TIMESTAMP` as servers before MySQL 5.6 stored it, without fraction.
    OldTimestamp,
    /// `DATETIME` as servers before MySQL 5.6 stored it, without fraction.
    OldDateTime,
    /// `TIME`.
    Time {
        /// Digits of the fraction of a second, 0 to 6.
        decimals: u8,
    },
    /// `TIMESTAMP`.
    Timestamp {
        /// Digits of the fraction of a second, 0 to 6.
        decimals: u8,
    },
    /// `DATETIME`.
    DateTime {
        /// Digits of the fraction of a second, 0 to 6.
        decimals: u8,
    },
    /// `CHAR`, `BINARY`, and MariaDB's `INET6` and `UUID`. Values are without the padding at their
    /// end: spaces, of `BINARY` zero bytes.
    Char {
        /// Longest value, bytes.
        bytes_max: u16,
    },
    /// `VARCHAR` and `VARBINARY`.
    Varchar {
        /// Longest value, bytes.
        bytes_max: u16,
    },
    /// `ENUM`.
    Enum {
        /// Size of the index: 1 or 2.
        bytes: u8,
    },
    /// `SET`.
    Set {
        /// Size of the bit set: 1 to 8.
        bytes: u8,
    },
    /// All sizes of `TEXT` and `BLOB`.
    Blob {
        /// Size of a value's length: 1 to 4.
        length_bytes: u8,
    },
    /// MySQL's binary `JSON` (MariaDB's is text).
    Json {
        /// Size of a value's length: 1 to 4.
        length_bytes: u8,
    },
    /// Spatial types.
    Geometry {
        /// Size of a value's length: 1 to 4.
        length_bytes: u8,
    },
    /// MySQL 9's `VECTOR`.
    Vector {
        /// Size of a value's length: 1 to 4.
        length_bytes: u8,
    },
    /// MariaDB's `VARCHAR … COMPRESSED`: the value isn't inflated.
    CompressedVarchar {
        /// Longest value, bytes.
        bytes_max: u16,
    },
    /// MariaDB's `TEXT … COMPRESSED` and `BLOB … COMPRESSED`: the value isn't inflated.
    CompressedBlob {
        /// Size of a value's length: 1 to 4.
        length_bytes: u8,
    },
}

/// How long a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Always so many bytes.
    Fixed(usize),
    /// So many bytes tell its length.
    Prefixed(usize),
}

/// Column types in the log (`enum_field_types`).
mod code {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const NEWDATE: u8 = 14;
    pub(super) const VARCHAR: u8 = 15;
    pub(super) const BIT: u8 = 16;
    pub(super) const TIMESTAMP2: u8 = 17;
    pub(super) const DATETIME2: u8 = 18;
    pub(super) const TIME2: u8 = 19;
    pub(super) const BLOB_COMPRESSED: u8 = 140;
    pub(super) const VARCHAR_COMPRESSED: u8 = 141;
    pub(super) const VECTOR: u8 = 242;
    pub(super) const JSON: u8 = 245;
    pub(super) const NEWDECIMAL: u8 = 246;
    pub(super) const ENUM: u8 = 247;
    pub(super) const SET: u8 = 248;
    pub(super) const BLOB: u8 = 252;
    pub(super) const VAR_STRING: u8 = 253;
    pub(super) const STRING: u8 = 254;
    pub(super) const GEOMETRY: u8 = 255;
}

/// What the reader of a table map knows of the server that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// MySQL: old temporal types have no fraction.
    MySql,
    /// MariaDB: old temporal types may have a fraction, of which the log says nothing.
    MariaDb,
}

/// The columns of a table map: `rest` begins with the types' metadata. `None` if a type isn't known
/// or its metadata are odd.
pub(crate) fn columns(
    types: &[u8],
    mut rest: Cursor<'_>,
    family: Family,
) -> Option<Box<[LoggedColumn]>> {
    let metadata_bytes = length(&mut rest)?;
    let mut metadata = Cursor::new(rest.bytes(metadata_bytes, "types' metadata").ok()?);
    let mut columns = Vec::with_capacity(types.len());
    for code in types {
        columns.push(LoggedColumn {
            kind: kind(*code, &mut metadata, family)?,
            unsigned: None,
        });
    }
    if !metadata.rest().is_empty() {
        return None;
    }
    rest.bytes(types.len().div_ceil(8), "nullable columns")
        .ok()?;
    mark_signs(&mut columns, rest);
    Some(columns.into_boxed_slice())
}

fn length(cursor: &mut Cursor<'_>) -> Option<usize> {
    usize::try_from(cursor.length_encoded("length").ok()?).ok()
}

fn kind(code: u8, metadata: &mut Cursor<'_>, family: Family) -> Option<ColumnKind> {
    let mut byte = || metadata.u8("metadata").ok();
    let kind = match code {
        code::TINY => ColumnKind::Integer { bytes: 1 },
        code::SHORT => ColumnKind::Integer { bytes: 2 },
        code::INT24 => ColumnKind::Integer { bytes: 3 },
        code::LONG => ColumnKind::Integer { bytes: 4 },
        code::LONGLONG => ColumnKind::Integer { bytes: 8 },
        code::FLOAT => (byte()? == 4).then_some(ColumnKind::Float)?,
        code::DOUBLE => (byte()? == 8).then_some(ColumnKind::Double)?,
        code::YEAR => ColumnKind::Year,
        code::DATE | code::NEWDATE => ColumnKind::Date,
        code::TIME => (family == Family::MySql).then_some(ColumnKind::OldTime)?,
        code::TIMESTAMP => (family == Family::MySql).then_some(ColumnKind::OldTimestamp)?,
        code::DATETIME => (family == Family::MySql).then_some(ColumnKind::OldDateTime)?,
        code::TIME2 => ColumnKind::Time {
            decimals: second_decimals(byte()?)?,
        },
        code::TIMESTAMP2 => ColumnKind::Timestamp {
            decimals: second_decimals(byte()?)?,
        },
        code::DATETIME2 => ColumnKind::DateTime {
            decimals: second_decimals(byte()?)?,
        },
        code::BLOB => ColumnKind::Blob {
            length_bytes: length_size(byte()?)?,
        },
        code::JSON => ColumnKind::Json {
            length_bytes: length_size(byte()?)?,
        },
        code::GEOMETRY => ColumnKind::Geometry {
            length_bytes: length_size(byte()?)?,
        },
        code::VECTOR => ColumnKind::Vector {
            length_bytes: length_size(byte()?)?,
        },
        code::BLOB_COMPRESSED => ColumnKind::CompressedBlob {
            length_bytes: length_size(byte()?)?,
        },
        code::VARCHAR | code::VAR_STRING => ColumnKind::Varchar {
            bytes_max: u16::from_le_bytes([byte()?, byte()?]),
        },
        code::VARCHAR_COMPRESSED => ColumnKind::CompressedVarchar {
            bytes_max: u16::from_le_bytes([byte()?, byte()?]),
        },
        code::NEWDECIMAL => decimal(byte()?, byte()?)?,
        code::BIT => bit(byte()?, byte()?)?,
        code::STRING => string(byte()?, byte()?)?,
        _ => return None,
    };
    Some(kind)
}

fn second_decimals(decimals: u8) -> Option<u8> {
    (decimals <= 6).then_some(decimals)
}

fn length_size(bytes: u8) -> Option<u8> {
    (1..=4).contains(&bytes).then_some(bytes)
}

fn decimal(precision: u8, decimals: u8) -> Option<ColumnKind> {
    let fits = (1..=65).contains(&precision) && decimals <= precision;
    fits.then_some(ColumnKind::Decimal {
        precision,
        decimals,
    })
}

/// Bits beyond whole bytes, whole bytes.
fn bit(more_bits: u8, whole_bytes: u8) -> Option<ColumnKind> {
    let bits = whole_bytes.checked_mul(8)?.checked_add(more_bits)?;
    let fits = more_bits < 8 && (1..=64).contains(&bits);
    fits.then_some(ColumnKind::Bit { bits })
}

/// `CHAR`, `ENUM` and `SET` are one type in the log. The first byte is the real one, and for a
/// `CHAR` of more than 255 bytes the length's upper two bits are in it, inverted, where the real
/// type has ones.
fn string(first: u8, second: u8) -> Option<ColumnKind> {
    const LENGTH_BITS: u8 = 0x30;
    match first {
        code::ENUM => matches!(second, 1 | 2).then_some(ColumnKind::Enum { bytes: second }),
        code::SET => matches!(second, 1..=8).then_some(ColumnKind::Set { bytes: second }),
        _ if first | LENGTH_BITS == code::STRING => {
            let upper = u16::from((first & LENGTH_BITS) ^ LENGTH_BITS) << 4;
            Some(ColumnKind::Char {
                bytes_max: upper | u16::from(second),
            })
        }
        _ => None,
    }
}

/// Reads which numbers have no sign from the optional metadata at the end of a table map: fields,
/// each a type, a length and a value. Whatever is odd is as if it weren't there.
fn mark_signs(columns: &mut [LoggedColumn], mut rest: Cursor<'_>) {
    const SIGNEDNESS: u8 = 1;
    while let Ok(field) = rest.u8("field") {
        let Some(value) =
            length(&mut rest).and_then(|length| rest.bytes(length, "optional metadata").ok())
        else {
            return;
        };
        if field != SIGNEDNESS {
            continue;
        }
        let numbers = columns.iter_mut().filter(|column| column.kind.is_number());
        let numbers: Vec<_> = numbers.collect();
        if value.len() != numbers.len().div_ceil(8) {
            return;
        }
        for (number, column) in numbers.into_iter().enumerate() {
            // The first column is the highest bit of the first byte.
            column.unsigned = Some(value[number / 8] << (number % 8) & 0x80 != 0);
        }
        return;
    }
}

impl ColumnKind {
    /// Whether the log can say that it has no sign.
    fn is_number(self) -> bool {
        matches!(
            self,
            Self::Integer { .. } | Self::Decimal { .. } | Self::Float | Self::Double
        )
    }

    /// How long a value of it is.
    pub(crate) fn width(self) -> Width {
        let fraction_bytes = |decimals: u8| usize::from(decimals.div_ceil(2));
        match self {
            Self::Integer { bytes } | Self::Enum { bytes } | Self::Set { bytes } => {
                Width::Fixed(bytes.into())
            }
            Self::Decimal {
                precision,
                decimals,
            } => Width::Fixed(decimal_bytes(precision - decimals) + decimal_bytes(decimals)),
            Self::Float | Self::OldTimestamp => Width::Fixed(4),
            Self::Double | Self::OldDateTime => Width::Fixed(8),
            Self::Bit { bits } => Width::Fixed(bits.div_ceil(8).into()),
            Self::Year => Width::Fixed(1),
            Self::Date | Self::OldTime => Width::Fixed(3),
            Self::Time { decimals } => Width::Fixed(3 + fraction_bytes(decimals)),
            Self::Timestamp { decimals } => Width::Fixed(4 + fraction_bytes(decimals)),
            Self::DateTime { decimals } => Width::Fixed(5 + fraction_bytes(decimals)),
            Self::Char { bytes_max }
            | Self::Varchar { bytes_max }
            | Self::CompressedVarchar { bytes_max } => {
                Width::Prefixed(if bytes_max > 255 { 2 } else { 1 })
            }
            Self::Blob { length_bytes }
            | Self::Json { length_bytes }
            | Self::Geometry { length_bytes }
            | Self::Vector { length_bytes }
            | Self::CompressedBlob { length_bytes } => Width::Prefixed(length_bytes.into()),
        }
    }
}

/// Bytes of so many digits on one side of a decimal's point: nine in four, fewer in as many as they
/// need.
pub(crate) fn decimal_bytes(digits: u8) -> usize {
    let digits = usize::from(digits);
    digits / 9 * 4 + (digits % 9).div_ceil(2)
}
