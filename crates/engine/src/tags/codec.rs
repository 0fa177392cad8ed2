//! From literals and row images to values that are the same when the server takes them for equal.
//!
//! **Rule.** If a row satisfies `column = constant` on the server, then [`Codec::constant`] and
//! [`Codec::field`] give the same value, or one of them gives none. For ranges the same holds of
//! the order of their numbers. What isn't certain gives none: for a constant that means a coarser
//! tag, for a row that all results that the column narrows first are dropped.
//!
//! | column | constants | why |
//! |---|---|---|
//! | integers of each width and sign | integer literals and bound integers that the column can hold; text that is such an integer in its shortest form with at most 15 digits | exact; such text is compared as a double, which is exact up to 2^53 |
//! | `DECIMAL` | integer and decimal literals that the column can hold without rounding | compared as decimals; text would be compared as doubles |
//! | `CHAR`, `VARCHAR`, `TEXT` with a collation of [`super::collations`] | printable ASCII text | see there; a number would be compared as a double |
//! | `DATE` | text `YYYY-MM-DD`, a real day | compared as days |
//! | `DATETIME` | text `YYYY-MM-DD` or `YYYY-MM-DD hh:mm:ss` | compared as moments without a time zone |
//! | `YEAR` | integers from 1901 to 2155 | smaller ones may be taken for years of two digits |
//! | `BINARY`, `VARBINARY`, `BLOB` | text that is sent in the character set in which it is compared, and is UTF-8 | compared byte by byte; zero bytes and spaces at the end don't count here, for servers store and log `BINARY` with and without them |
//! | `ENUM` with labels that [`enumeration`] tells apart | text that is a label to the byte; integers that are a label's number | a row has the label's number in the log; where there is an index, MySQL takes other text for a number, or for 0 |
//! | all others (`FLOAT`, `TIMESTAMP`, `SET`, `BIT`, `JSON`…) | none | not proven |

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use remora_binlog::{ColumnKind as LoggedKind, Field, LoggedDate};
use remora_cache::{BrokenTags, Value, ValueHash};
use serde::{Deserialize, Serialize};

use super::collations;
use super::literal::{Literal, StringConversion};
use crate::facts::ColumnKind;

/// How the values of a column become comparable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Codec {
    /// Integers.
    Integer {
        /// Size of the column.
        bytes: u8,
        /// Whether the column is unsigned, which the log need not say.
        unsigned: bool,
    },
    /// `DECIMAL`.
    Decimal {
        /// Digits before the point.
        whole: u8,
        /// Digits behind it.
        scale: u8,
    },
    /// Text under a collation that is known.
    Text,
    /// `BINARY`, `VARBINARY`, `BLOB`: compared byte by byte.
    Binary,
    /// `DATE`.
    Date,
    /// `DATETIME`.
    Datetime,
    /// `YEAR`.
    Year,
    /// `ENUM`: by the number of the label. What the number of a text is, its column's kind says.
    Enum,
}

/// The kind of an ENUM column with these labels, the first of number 1. `None` if a text may be
/// equal to two of them, or to one and to the empty text that stands for what wasn't allowed.
pub fn enumeration(labels: Vec<Box<str>>, collation: Arc<str>) -> Option<ColumnKind> {
    if !collations::is_known(&collation) {
        return None;
    }
    let folded = labels
        .iter()
        .map(|label| collations::folded(label.as_bytes()));
    let different = folded.collect::<Option<HashSet<_>>>()?;
    let are_different = different.len() == labels.len() && !different.contains(&b""[..]);
    are_different.then(|| ColumnKind::Enum {
        labels: labels.into(),
        collation,
    })
}

/// A value that was read with certainty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownValue {
    /// What tags are made of.
    pub hash: ValueHash,
    /// Its place in the order of the column's values, if they have one.
    pub number: Option<i128>,
}

impl KnownValue {
    fn number(number: i128) -> KnownValue {
        KnownValue {
            hash: Value::Integer(number).hash(),
            number: Some(number),
        }
    }

    /// A moment. Its place in the order is the second's: a range of moments lies within the range
    /// of their seconds.
    fn moment(date: LoggedDate, second: i128, microsecond: u32) -> KnownValue {
        let number = day_number(date) * 86_400 + second;
        let exact = number * 1_000_000 + i128::from(microsecond);
        KnownValue {
            hash: Value::Integer(exact).hash(),
            number: Some(number),
        }
    }

    /// A label of an ENUM. Its number isn't its place in an order: texts are compared.
    fn label(number: i128) -> KnownValue {
        KnownValue {
            hash: Value::Integer(number).hash(),
            number: None,
        }
    }

    fn bytes(bytes: &[u8]) -> KnownValue {
        KnownValue {
            hash: Value::Bytes(bytes).hash(),
            number: None,
        }
    }

    /// Stands for what a parameter is bound to.
    pub fn any(parameter: usize) -> KnownValue {
        KnownValue::bytes(&parameter.to_le_bytes())
    }

    /// `NULL`.
    pub fn null() -> KnownValue {
        KnownValue {
            hash: Value::Null.hash(),
            number: None,
        }
    }
}

impl Codec {
    /// The codec of a column; `None` if its values aren't compared here.
    pub fn of(kind: &ColumnKind) -> Option<Codec> {
        match kind {
            ColumnKind::Integer { bytes, unsigned } => Some(Codec::Integer {
                bytes: *bytes,
                unsigned: *unsigned,
            }),
            ColumnKind::Decimal { precision, scale } => Some(Codec::Decimal {
                whole: precision.checked_sub(*scale)?,
                scale: *scale,
            }),
            ColumnKind::Text { collation, .. } if collations::is_known(collation) => {
                Some(Codec::Text)
            }
            ColumnKind::Binary => Some(Codec::Binary),
            ColumnKind::Date => Some(Codec::Date),
            ColumnKind::Datetime { .. } => Some(Codec::Datetime),
            ColumnKind::Year => Some(Codec::Year),
            ColumnKind::Enum { .. } => Some(Codec::Enum),
            _ => None,
        }
    }

    /// The value of a constant that the column is compared with.
    pub fn constant(self, literal: &Literal<'_>, broken: BrokenTags) -> Option<KnownValue> {
        match (self, literal) {
            (Codec::Integer { bytes, unsigned }, _) => {
                let number = integer(literal)?;
                let is_in_range = range_of(bytes, unsigned).contains(&number);
                is_in_range.then(|| KnownValue::number(number))
            }
            (Codec::Year, _) => {
                let number = integer(literal)?;
                let is_plain = (1901..=2155).contains(&number);
                is_plain.then(|| KnownValue::number(number))
            }
            (Codec::Decimal { whole, scale }, Literal::Integer(number)) => {
                known_decimal(&number.to_string(), whole, scale)
            }
            (Codec::Decimal { whole, scale }, Literal::Decimal(text)) => {
                known_decimal(text, whole, scale)
            }
            (Codec::Enum, Literal::Integer(number)) => Some(KnownValue::label(*number)),
            (Codec::Text, Literal::Text { bytes, .. }) => known_text(bytes, broken),
            (Codec::Binary, Literal::Text { bytes, conversion }) => {
                let is_as_sent =
                    *conversion == StringConversion::None || broken == BrokenTags::TextFolding;
                // A server may refuse or replace text that isn't UTF-8.
                let is_kept = is_as_sent && std::str::from_utf8(bytes).is_ok();
                is_kept.then(|| known_binary(bytes, broken))
            }
            (Codec::Date, Literal::Text { bytes, .. }) => {
                let (date, rest) = date(bytes)?;
                rest.is_empty()
                    .then(|| KnownValue::number(day_number(date)))
            }
            (Codec::Datetime, Literal::Text { bytes, .. }) => {
                let (date, rest) = date(bytes)?;
                let second = if rest.is_empty() {
                    0
                } else {
                    second_of_day(rest)?
                };
                Some(KnownValue::moment(date, second, 0))
            }
            _ => None,
        }
    }

    /// The value of a row's field. `None`: it can't be told.
    pub fn field(
        self,
        logged: LoggedKind,
        field: Field<'_>,
        broken: BrokenTags,
    ) -> Option<KnownValue> {
        let bytes = match field {
            Field::Absent => return None,
            Field::Null => return Some(KnownValue::null()),
            Field::Bytes(bytes) => bytes,
        };
        match self {
            Codec::Integer { unsigned, .. } => {
                logged.integer(bytes, unsigned).map(KnownValue::number)
            }
            Codec::Decimal { .. } => {
                let decimal = logged.decimal(bytes)?;
                Some(KnownValue::bytes(decimal.canonical().as_bytes()))
            }
            Codec::Text => known_text(logged.text(bytes)?, broken),
            Codec::Binary => Some(known_binary(logged.text(bytes)?, broken)),
            Codec::Date => logged
                .date(bytes)
                .map(|date| KnownValue::number(day_number(date))),
            Codec::Datetime => logged.datetime(bytes).map(|moment| {
                let second = (i128::from(moment.hour) * 60 + i128::from(moment.minute)) * 60
                    + i128::from(moment.second);
                KnownValue::moment(moment.date, second, moment.microsecond)
            }),
            Codec::Year => logged
                .year(bytes)
                .map(|year| KnownValue::number(year.into())),
            Codec::Enum => logged
                .enum_index(bytes)
                .map(|number| KnownValue::label(number.into())),
        }
    }
}

fn known_text(text: &[u8], broken: BrokenTags) -> Option<KnownValue> {
    if broken == BrokenTags::TextFolding {
        return Some(KnownValue::bytes(text));
    }
    collations::folded(text).map(|text| KnownValue::bytes(&text))
}

fn known_binary(bytes: &[u8], broken: BrokenTags) -> KnownValue {
    let is_padding = |byte: &u8| matches!(byte, b' ' | 0);
    let end = bytes.iter().rposition(|byte| !is_padding(byte));
    match broken {
        BrokenTags::TextFolding => KnownValue::bytes(bytes),
        _ => KnownValue::bytes(&bytes[..end.map_or(0, |at| at + 1)]),
    }
}

/// The integers that a column can hold.
pub(super) fn range_of(bytes: u8, unsigned: bool) -> RangeInclusive<i128> {
    let bits = u32::from(bytes.clamp(1, 8)) * 8;
    if unsigned {
        0..=(1 << bits) - 1
    } else {
        -(1 << (bits - 1))..=(1 << (bits - 1)) - 1
    }
}

/// A decimal constant that the column can hold as it is. Others the server may round to the
/// column's scale before it looks them up in an index: MariaDB finds -2 in a `DECIMAL(5,0)` by
/// `= -1.5`.
fn known_decimal(text: &str, whole: u8, scale: u8) -> Option<KnownValue> {
    let canonical = canonical_decimal(text)?;
    let digits = canonical.strip_prefix('-').unwrap_or(&canonical);
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let before = if before == "0" { "" } else { before };
    let fits = before.len() <= usize::from(whole) && behind.len() <= usize::from(scale);
    fits.then(|| KnownValue::bytes(canonical.as_bytes()))
}

/// The integer that a constant is when it is compared with an integer column.
fn integer(literal: &Literal<'_>) -> Option<i128> {
    /// Every integer with so many digits is a double of its own, and no other integer is near it.
    const DIGITS_MAX: usize = 15;
    match literal {
        Literal::Integer(number) => Some(*number),
        Literal::Text { bytes, .. } => {
            let text = *bytes;
            let digits = text.strip_prefix(b"-").unwrap_or(text);
            let is_plain = (1..=DIGITS_MAX).contains(&digits.len())
                && digits.iter().all(u8::is_ascii_digit)
                && (digits[0] != b'0' || text == b"0");
            let text = std::str::from_utf8(text).ok().filter(|_| is_plain)?;
            text.parse().ok()
        }
        _ => None,
    }
}

/// The form of a plain decimal literal that is the same for all equal numbers: `-12.5`, `3`, `0`.
fn canonical_decimal(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = whole
        .bytes()
        .chain(fraction.bytes())
        .all(|b| b.is_ascii_digit());
    if !is_plain || whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(match (whole, fraction) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

/// A number that grows with the day, also of days that don't exist.
fn day_number(date: LoggedDate) -> i128 {
    (i128::from(date.year) * 13 + i128::from(date.month)) * 32 + i128::from(date.day)
}

/// The real day, of a year with four digits, that a text begins with; and the rest.
fn date(text: &[u8]) -> Option<(LoggedDate, &[u8])> {
    let (day, rest) = text.split_at_checked(10)?;
    let &[ref year @ .., b'-', m1, m2, b'-', d1, d2] = day else {
        return None;
    };
    let (year, month, day) = (digits(year)?, digits(&[m1, m2])?, digits(&[d1, d2])?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    // Early years are left to the server: it takes some of them for years of two digits.
    if !(1000..=9999).contains(&year) || !(1..=days).contains(&day) {
        return None;
    }
    let date = LoggedDate {
        year,
        month: u8::try_from(month).ok()?,
        day: u8::try_from(day).ok()?,
    };
    Some((date, rest))
}

/// The second of the day in ` hh:mm:ss`.
fn second_of_day(text: &[u8]) -> Option<i128> {
    let &[b' ', h1, h2, b':', m1, m2, b':', s1, s2] = text else {
        return None;
    };
    let (hour, minute, second) = (digits(&[h1, h2])?, digits(&[m1, m2])?, digits(&[s1, s2])?);
    let is_real = hour < 24 && minute < 60 && second < 60;
    is_real.then(|| (i128::from(hour) * 60 + i128::from(minute)) * 60 + i128::from(second))
}

fn digits(text: &[u8]) -> Option<u16> {
    text.iter().try_fold(0, |number: u16, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        Some(number * 10 + u16::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: BrokenTags = BrokenTags::Right;
    const INTEGER: Codec = Codec::Integer {
        bytes: 4,
        unsigned: false,
    };
    const DECIMAL: Codec = Codec::Decimal { whole: 5, scale: 2 };

    fn text(text: &str) -> Literal<'_> {
        Literal::Text {
            bytes: text.as_bytes(),
            conversion: StringConversion::None,
        }
    }

    fn constant(codec: Codec, literal: Literal<'_>) -> Option<KnownValue> {
        codec.constant(&literal, RIGHT)
    }

    #[test]
    fn integers_are_compared_with_integers_and_their_plain_text() {
        assert_eq!(
            constant(INTEGER, text("-5")),
            constant(INTEGER, Literal::Integer(-5))
        );
        assert_eq!(
            constant(INTEGER, text("0")),
            constant(INTEGER, Literal::Integer(0))
        );
        for odd in [
            "5abc",
            " 5",
            "5 ",
            "+5",
            "05",
            "-0",
            "",
            "-",
            "5.0",
            "1e3",
            "9007199254740993",
        ] {
            assert_eq!(constant(INTEGER, text(odd)), None, "{odd}");
        }
        assert_eq!(constant(INTEGER, Literal::Decimal("5.0")), None);
    }

    #[test]
    fn a_field_and_a_literal_of_the_same_number_are_the_same() {
        let long = LoggedKind::Integer { bytes: 4 };
        let field = |codec: Codec, bytes: &[u8]| codec.field(long, Field::Bytes(bytes), RIGHT);
        let all_ones = [0xff; 4];
        assert_eq!(
            field(INTEGER, &all_ones),
            constant(INTEGER, Literal::Integer(-1))
        );
        let unsigned = Codec::Integer {
            bytes: 4,
            unsigned: true,
        };
        assert_eq!(
            field(unsigned, &all_ones),
            constant(unsigned, Literal::Integer(4_294_967_295))
        );
        assert_eq!(INTEGER.field(long, Field::Absent, RIGHT), None);
        assert_eq!(
            INTEGER.field(long, Field::Null, RIGHT),
            Some(KnownValue::null())
        );
        // A column that the log describes otherwise than the catalogue.
        assert_eq!(
            Codec::Date.field(long, Field::Bytes(&all_ones), RIGHT),
            None
        );
    }

    #[test]
    fn decimals_are_the_same_however_they_are_written() {
        let same = [
            ["12.50", "12.5", "012.500"],
            ["-0.0", "0", "0.00"],
            ["-3", "-3.0", "-03"],
            [".5", "0.5", "0.50"],
        ];
        for [one, two, three] in same {
            assert_eq!(canonical_decimal(one), canonical_decimal(two));
            assert_eq!(canonical_decimal(one), canonical_decimal(three));
        }
        assert_eq!(canonical_decimal("1e3"), None);
        assert_eq!(canonical_decimal("."), None);
        assert_eq!(
            constant(DECIMAL, Literal::Integer(3)),
            constant(DECIMAL, Literal::Decimal("3.0"))
        );
        assert_eq!(constant(DECIMAL, text("3")), None);
    }

    #[test]
    fn days_and_moments_are_read_in_their_usual_form_only() {
        let numbers = |codec: Codec, all: &[&str]| -> Vec<Option<i128>> {
            let number = |one: &&str| constant(codec, text(one)).and_then(|known| known.number);
            all.iter().map(number).collect()
        };
        let days = numbers(Codec::Date, &["2024-02-28", "2024-02-29", "2024-03-01"]);
        assert!(days.is_sorted() && days.iter().all(Option::is_some));
        let odd = [
            "2023-02-29",
            "24-02-28",
            "2024-2-28",
            "20240228",
            "2024-02-28 00:00:00",
            "0000-00-00",
        ];
        assert!(numbers(Codec::Date, &odd).iter().all(Option::is_none));
        let moments = [
            "2024-02-28",
            "2024-02-28 00:00:01",
            "2024-02-28 23:59:59",
            "2024-02-29",
        ];
        let moments = numbers(Codec::Datetime, &moments);
        assert!(moments.is_sorted() && moments.iter().all(Option::is_some));
        let odd = [
            "2024-02-28 24:00:00",
            "2024-02-28T00:00:00",
            "2024-02-28 00:00:00.5",
        ];
        assert!(numbers(Codec::Datetime, &odd).iter().all(Option::is_none));
    }

    #[test]
    fn bytes_are_compared_as_sent_but_for_padding() {
        let varbinary = LoggedKind::Varchar { bytes_max: 20 };
        let field = |bytes: &[u8]| Codec::Binary.field(varbinary, Field::Bytes(bytes), RIGHT);
        let constant = |bytes, conversion| {
            let literal = Literal::Text { bytes, conversion };
            Codec::Binary.constant(&literal, RIGHT)
        };
        let title = "M\u{fc}nchen".as_bytes();
        assert_eq!(field(title), constant(title, StringConversion::None));
        assert_eq!(field(b"a\0 \0"), constant(b"a", StringConversion::None));
        assert_eq!(field(b" \0"), constant(b"", StringConversion::None));
        assert_ne!(field(b"a"), constant(b"A", StringConversion::None));
        assert_eq!(constant(b"a", StringConversion::ToConnection), None);
        assert_eq!(constant(b"\xfc", StringConversion::None), None);
    }

    #[test]
    fn a_label_and_its_number_are_the_same() {
        let kind = |labels: &[&str]| {
            let labels: Vec<Box<str>> = labels.iter().map(|label| (*label).into()).collect();
            enumeration(labels, "utf8mb4_general_ci".into())
        };
        let colours = kind(&["Red", "10", "blue"]).unwrap();
        let known = |literal: Literal<'_>| constant(Codec::Enum, literal.of_column(&colours));
        let field = |number: u8| {
            let logged = LoggedKind::Enum { bytes: 1 };
            Codec::Enum.field(logged, Field::Bytes(&[number]), RIGHT)
        };
        assert_eq!(known(text("Red")), field(1));
        assert_eq!(known(text("10")), field(2));
        assert_eq!(known(Literal::Integer(3)), field(3));
        assert_ne!(known(text("blue")), field(2));
        assert_eq!(field(3).unwrap().number, None, "texts have another order");
        for odd in [
            text(""),
            text(" "),
            text("2"),
            // Not a label everywhere.
            text("RED"),
            text("Red "),
            text("green"),
            Literal::Decimal("1.0"),
        ] {
            assert_eq!(known(odd), None, "{odd:?}");
        }
        for number in [0, 4, -1] {
            assert_eq!(known(Literal::Integer(number)), None, "{number}");
        }
        for labels in [&["a", "A"][..], &["", "a"], &["\u{e4}"], &["a", "a "]] {
            assert_eq!(kind(labels), None, "{labels:?}");
        }
        let labels = vec!["a".into()];
        assert_eq!(enumeration(labels, "latin1_german2_ci".into()), None);
    }

    #[test]
    fn years_of_two_digits_are_left_to_the_server() {
        assert!(constant(Codec::Year, Literal::Integer(2024)).is_some());
        assert_eq!(constant(Codec::Year, Literal::Integer(24)), None);
        assert_eq!(constant(Codec::Year, Literal::Integer(0)), None);
    }

    #[test]
    fn constants_that_the_column_can_not_hold_are_left_to_the_server() {
        for number in [i128::from(i32::MAX) + 1, i128::from(i32::MIN) - 1] {
            assert_eq!(constant(INTEGER, Literal::Integer(number)), None);
        }
        for text in ["123456", "1.234", "-0.001"] {
            assert_eq!(constant(DECIMAL, Literal::Decimal(text)), None, "{text}");
        }
        for text in ["-12345.670", "0.5", "00.50"] {
            assert!(
                constant(DECIMAL, Literal::Decimal(text)).is_some(),
                "{text}"
            );
        }
        assert_eq!(constant(DECIMAL, Literal::Integer(123_456)), None);
    }
}
