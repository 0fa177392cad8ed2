//! Reading the values of row images.

use std::fmt;

use crate::column::{ColumnKind, decimal_bytes};

/// A day. Any part may be zero, as the server allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoggedDate {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A day and a time of it, in no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoggedDateTime {
    /// The day.
    pub date: LoggedDate,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999999.
    pub microsecond: u32,
}

/// Longest text: 65 digits, a sign, a zero before the point, the point.
const DECIMAL_TEXT_BYTES_MAX: usize = 68;

/// A decimal number.
#[derive(Clone, Copy)]
pub struct LoggedDecimal {
    text: [u8; DECIMAL_TEXT_BYTES_MAX],
    length: usize,
    decimals: usize,
}

impl LoggedDecimal {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.text.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    /// As the server writes it: `-12.50`, with as many decimals as the column has.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }

    /// The same for all equal numbers, whatever their columns' decimals: `-12.5`, `3`, `0`.
    pub fn canonical(&self) -> &str {
        let text = self.text();
        if self.decimals == 0 {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.')
    }
}

impl fmt::Debug for LoggedDecimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl fmt::Display for LoggedDecimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

/// An integer in the order of bytes of `ENUM`, `DATE` and all of that age.
fn little(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// An integer in the order of bytes of the newer types.
fn big(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter();
    bytes.fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// The readers give `None` if the column is of another kind, or the bytes can't be a value of it.
impl ColumnKind {
    /// Of an [`Integer`](Self::Integer). `unsigned` is the column's, from the log or the catalogue.
    pub fn integer(self, bytes: &[u8], unsigned: bool) -> Option<i128> {
        let Self::Integer { bytes: size } = self else {
            return None;
        };
        if bytes.len() != usize::from(size) {
            return None;
        }
        let value = i128::from(little(bytes));
        let bits = u32::from(size) * 8;
        let is_negative = !unsigned && value >> (bits - 1) & 1 != 0;
        Some(if is_negative {
            value - (1 << bits)
        } else {
            value
        })
    }

    /// Of a [`Decimal`](Self::Decimal).
    pub fn decimal(self, bytes: &[u8]) -> Option<LoggedDecimal> {
        let Self::Decimal {
            precision,
            decimals,
        } = self
        else {
            return None;
        };
        let whole = precision.checked_sub(decimals)?;
        let (whole_bytes, fraction_bytes) = (decimal_bytes(whole), decimal_bytes(decimals));
        if bytes.len() != whole_bytes + fraction_bytes {
            return None;
        }
        // The highest bit is inverted, and so are all of a negative number.
        let is_negative = bytes.first()? & 0x80 == 0;
        let mut plain = [0; 64];
        let plain = plain.get_mut(..bytes.len())?;
        for (slot, byte) in plain.iter_mut().zip(bytes) {
            *slot = if is_negative { !byte } else { *byte };
        }
        plain[0] ^= 0x80;
        let mut digits = Digits::default();
        let (whole_part, fraction_part) = plain.split_at(whole_bytes);
        digits.read_whole(whole_part, whole)?;
        digits.read_fraction(fraction_part, decimals)?;
        Some(digits.written(is_negative, usize::from(whole)))
    }

    /// Of a [`Date`](Self::Date).
    pub fn date(self, bytes: &[u8]) -> Option<LoggedDate> {
        if self != Self::Date || bytes.len() != 3 {
            return None;
        }
        let value = little(bytes);
        Some(LoggedDate {
            year: u16::try_from(value >> 9).ok()?,
            month: part(value >> 5 & 15),
            day: part(value & 31),
        })
    }

    /// Of a [`DateTime`](Self::DateTime) or [`OldDateTime`](Self::OldDateTime).
    pub fn datetime(self, bytes: &[u8]) -> Option<LoggedDateTime> {
        match self {
            Self::DateTime { decimals } => {
                let fraction_bytes = usize::from(decimals.div_ceil(2));
                let (whole, fraction) = bytes.split_at_checked(5)?;
                if fraction.len() != fraction_bytes {
                    return None;
                }
                new_datetime(big(whole), big(fraction), fraction_bytes)
            }
            Self::OldDateTime if bytes.len() == 8 => old_datetime(little(bytes)),
            _ => None,
        }
    }

    /// Of a [`Year`](Self::Year): 0, or 1901 to 2155.
    pub fn year(self, bytes: &[u8]) -> Option<u16> {
        match (self, bytes) {
            (Self::Year, [0]) => Some(0),
            (Self::Year, [value]) => Some(1900 + u16::from(*value)),
            _ => None,
        }
    }

    /// Of an [`Enum`](Self::Enum): from 1; 0 is the empty text of a value that wasn't allowed.
    pub fn enum_index(self, bytes: &[u8]) -> Option<u16> {
        match self {
            Self::Enum { bytes: size } if bytes.len() == usize::from(size) => {
                u16::try_from(little(bytes)).ok()
            }
            _ => None,
        }
    }

    /// Of a [`Bit`](Self::Bit).
    pub fn bit(self, bytes: &[u8]) -> Option<u64> {
        match self {
            Self::Bit { bits } if bytes.len() == usize::from(bits.div_ceil(8)) => Some(big(bytes)),
            _ => None,
        }
    }

    /// Of a [`Char`](Self::Char), [`Varchar`](Self::Varchar) or [`Blob`](Self::Blob): the bytes, in
    /// the character set of the column.
    pub fn text(self, bytes: &[u8]) -> Option<&[u8]> {
        matches!(
            self,
            Self::Char { .. } | Self::Varchar { .. } | Self::Blob { .. }
        )
        .then_some(bytes)
    }
}

/// A number that its bits or its divisor bound to less than 256.
fn part(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// 40 bits: a one, then year and month as `year * 13 + month` (17 bits), day (5), hour (5), minute
/// (6), second (6).
fn new_datetime(whole: u64, fraction: u64, fraction_bytes: usize) -> Option<LoggedDateTime> {
    const OFFSET: u64 = 0x80_0000_0000;
    const MICROSECONDS: [u32; 4] = [1_000_000, 10_000, 100, 1];
    let value = whole.checked_sub(OFFSET)?;
    let months = value >> 22;
    let microsecond = u32::try_from(fraction)
        .ok()?
        .checked_mul(*MICROSECONDS.get(fraction_bytes)?)?;
    Some(LoggedDateTime {
        date: LoggedDate {
            year: u16::try_from(months / 13).ok()?,
            month: part(months % 13),
            day: part(value >> 17 & 31),
        },
        hour: part(value >> 12 & 31),
        minute: part(value >> 6 & 63),
        second: part(value & 63),
        microsecond,
    })
}

/// Digits: `YYYYMMDDhhmmss`.
fn old_datetime(value: u64) -> Option<LoggedDateTime> {
    let (day, time) = (value / 1_000_000, value % 1_000_000);
    Some(LoggedDateTime {
        date: LoggedDate {
            year: u16::try_from(day / 10_000).ok()?,
            month: part(day / 100 % 100),
            day: part(day % 100),
        },
        hour: part(time / 10_000),
        minute: part(time / 100 % 100),
        second: part(time % 100),
        microsecond: 0,
    })
}

/// The digits of a decimal as they are unpacked.
struct Digits {
    digits: [u8; 65],
    count: usize,
}

impl Default for Digits {
    fn default() -> Self {
        Self {
            digits: [0; 65],
            count: 0,
        }
    }
}

impl Digits {
    /// Adds the lowest `count` digits of `value`. `None` if it has more.
    fn push(&mut self, value: u64, count: usize) -> Option<()> {
        let slots = self.digits.get_mut(self.count..self.count + count)?;
        let mut left = value;
        for slot in slots.iter_mut().rev() {
            *slot = part(left % 10);
            left /= 10;
        }
        self.count += count;
        (left == 0).then_some(())
    }

    /// The part before the point begins with what isn't nine digits.
    fn read_whole(&mut self, bytes: &[u8], digits: u8) -> Option<()> {
        let odd_digits = digits % 9;
        let (odd, groups) = bytes.split_at_checked(decimal_bytes(odd_digits))?;
        self.push(big(odd), odd_digits.into())?;
        groups
            .chunks(4)
            .try_for_each(|group| self.push(big(group), 9))
    }

    /// The part behind it ends with that.
    fn read_fraction(&mut self, bytes: &[u8], digits: u8) -> Option<()> {
        let (groups, odd) = bytes.split_at_checked(usize::from(digits / 9) * 4)?;
        for group in groups.chunks(4) {
            self.push(big(group), 9)?;
        }
        self.push(big(odd), usize::from(digits % 9))
    }

    fn written(&self, is_negative: bool, whole: usize) -> LoggedDecimal {
        let digits = &self.digits[..self.count];
        let (whole, fraction) = digits.split_at(whole.min(digits.len()));
        let mut text = LoggedDecimal {
            text: [0; DECIMAL_TEXT_BYTES_MAX],
            length: 0,
            decimals: fraction.len(),
        };
        if is_negative && digits.iter().any(|digit| *digit != 0) {
            text.push(b'-');
        }
        let leading = whole.iter().take_while(|digit| **digit == 0).count();
        if leading == whole.len() {
            text.push(b'0');
        }
        for digit in &whole[leading..] {
            text.push(b'0' + digit);
        }
        if !fraction.is_empty() {
            text.push(b'.');
        }
        for digit in fraction {
            text.push(b'0' + digit);
        }
        text
    }
}
