//! The columns, the constants and the conditions.

use std::fmt::Write as _;

use remora_engine::facts::ColumnKind;
use remora_engine::tags::enumeration;
use remora_testkit::client::Value;
use remora_testkit::load::Random;
use remora_wire::execute::BoundValue;

/// Of each kind of condition with several constants, for each column.
const CONDITIONS: usize = 40;

/// Numbers as they are written.
const NUMBERS: &str = "0 1 -1 5 -5 9 10 11 99 100 005 -0 69 70 2069 2070 1970 1900 1901 2000 2024 2155 2156 127 128 -128 -129 255 \
    256 32767 32768 -32768 65535 8388607 16777215 2147483647 2147483648 -2147483648 4294967295 4294967296 \
    999999999999999 1000000000000000 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 \
    9223372036854775806 9223372036854775807 9223372036854775808 -9223372036854775807 -9223372036854775808 \
    18446744073709551611 18446744073709551614 18446744073709551615 18446744073709551616 20240229 240229 \
    20240229123456 99991231 1.5 1.50 01.500 0.1 0.10 -0.0 0.00 0.5 4.5 5.5 12.005 12.004999 12.01 5.0 -5.00 \
    999999.99 999999.994 999999.995 0.000000000000000000000000000001 0.0000000000000000000000000000005 \
    0.0000000000000000000000000000004 1.0000000000000000000000000000000000000001 \
    1.000000000000000000000000000000 99999999999999999999999999999999999.999999999999999999999999999999 \
    99999999999999999999999999999999999.9999999999999999999999999999999 \
    99999999999999999999999999999999999999999999999999999999999999999 \
    -99999999999999999999999999999999999999999999999999999999999999999 \
    999999999999999999999999999999999999999999999999999999999999999999 \
    9999999999999999999999999999999999999999999999999999999999999999999999999999999999 \
    999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999 \
    99999999999999999999999999999999999999999999999999999999999999999.5 \
    12345678901234567890123456789012345678901234567890123456789012345 \
    12345678901234567890123456789012345.123456789012345678901234567890 \
    12345678901234567890123456789012345.1234567890123456789012345678904";

/// Texts, between bars.
const TEXTS: &str = "\
    | |0|1|-1|5| 5|5 |+5|05|-0|5abc|5.0|5e0|1e1|0x5|10|99|127|128|255|70|69|2024|24|999999999999999|\
    9007199254740991|9007199254740992|9007199254740993|9223372036854775807|9223372036854775808|\
    18446744073709551615|-9223372036854775808|1.5|1.50|.5|abc|ABC|abc |Abc  | abc|abcd|\u{e4}bc|\
    a\u{301}bc|null|a\tb|ab|\u{4bc}|\u{e4}bC|abc\0|abc\0\0\0|abc \0|\0a\0b\0c|a?bc|?bc|2024-02-28|2024-02-29|2024-03-01|2023-02-28|2023-02-29|2023-02-30|\
    2024-02-30|2024-04-31|0000-00-00|0000-00-00 00:00:00|2024-00-00|2024-02-00|2024-2-9|2024-02-09|\
    24-02-29|0024-02-29|20240229|2024/02/29|2024.02.29|1000-01-01|0999-12-31|9999-12-31|10000-01-01|\
    1970-01-01|2024-02-29 | 2024-02-29|2024-02-29 00:00:00|2024-02-29 00:00:00.000000|\
    2024-02-29 00:00:01|2024-02-29 12:34:56|2024-02-29 12:34:56.4|2024-02-29 12:34:56.5|\
    2024-02-29 12:34:56.000001|2024-02-29 12:34:56.999999|2024-02-29 12:34:56.9999999|\
    2024-02-29 12:34:57|2024-02-29T12:34:56|2024-02-29  12:34:56|2024-02-29 12:34|2024-02-29 24:00:00|\
    2024-02-29 23:59:59|2024-02-29 23:59:60|2024-02-29 23:59:59.9999999|2024-12-31 23:59:59.999999|\
    2025-01-01|2025-01-01 00:00:00|9999-12-31 23:59:59|9999-12-31 23:59:59.999999|\
    2024-02-29 12:34:56+02:00|2023-02-30 00:00:00|12:34:56";

/// A constant of the lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Given {
    Number(&'static str),
    Text(&'static str),
}

impl Given {
    pub(crate) fn all() -> Vec<Given> {
        let numbers = NUMBERS.split_whitespace().map(Given::Number);
        numbers.chain(TEXTS.split('|').map(Given::Text)).collect()
    }

    pub(crate) fn written(self) -> String {
        match self {
            Given::Number(number) => number.to_owned(),
            Given::Text(text) => format!("'{text}'"),
        }
    }

    /// What a driver sends: whole numbers as such, others as doubles.
    pub(crate) fn sent(self) -> Value {
        match self {
            Given::Text(text) => Value::Text(text.into()),
            Given::Number(number) => match (number.parse(), number.parse()) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::Unsigned(number),
                _ => Value::Double(number.parse().unwrap()),
            },
        }
    }

    pub(crate) fn bound(self) -> BoundValue<'static> {
        match (self, self.sent()) {
            (Given::Text(text), _) => BoundValue::Text(text.as_bytes()),
            (_, Value::Int(number)) => BoundValue::Integer(number.into()),
            (_, Value::Unsigned(number)) => BoundValue::Integer(number.into()),
            _ => BoundValue::Other,
        }
    }
}

/// What some server takes for something else: numbers of `BETWEEN` for signed ones, all of a mixed
/// `IN` for doubles.
const TRAPS: &[(&str, &[Given])] = &[
    (
        "BETWEEN ? AND ?",
        &[Given::Number("18446744073709551614"), Given::Number("2024")],
    ),
    (
        "BETWEEN ? AND ?",
        &[Given::Number("9223372036854775808"), Given::Number("5")],
    ),
    (
        "BETWEEN ? AND ?",
        &[Given::Number("9"), Given::Number("-129")],
    ),
    (
        "IN (?, ?)",
        &[Given::Text("5"), Given::Number("9007199254740993")],
    ),
    ("IN (?, ?)", &[Given::Text("5abc"), Given::Number("5")]),
    (
        "= ?",
        &[Given::Number(
            "999999999999999999999999999999999999999999999999999999999999999999",
        )],
    ),
];

pub(crate) fn columns() -> Vec<(&'static str, ColumnKind)> {
    let integer = |bytes, unsigned| ColumnKind::Integer { bytes, unsigned };
    let decimal = |precision, scale| ColumnKind::Decimal { precision, scale };
    let text = |collation: &str| ColumnKind::Text {
        collation: collation.into(),
        character_set: collation.split('_').next().unwrap().into(),
    };
    let labels = |collation: &str| {
        let labels = ["abc", "10", "5", "Abcd", "1", "ab"].map(Box::from);
        enumeration(labels.into(), collation.into()).unwrap()
    };
    vec![
        ("TINYINT", integer(1, false)),
        ("TINYINT UNSIGNED", integer(1, true)),
        ("SMALLINT", integer(2, false)),
        ("MEDIUMINT UNSIGNED", integer(3, true)),
        ("INT", integer(4, false)),
        ("INT UNSIGNED", integer(4, true)),
        ("BIGINT", integer(8, false)),
        ("BIGINT UNSIGNED", integer(8, true)),
        ("DECIMAL(8,2)", decimal(8, 2)),
        ("DECIMAL(65,30)", decimal(65, 30)),
        ("DECIMAL(65,0)", decimal(65, 0)),
        ("DECIMAL(20,0) UNSIGNED", decimal(20, 0)),
        ("DATE", ColumnKind::Date),
        ("DATETIME", ColumnKind::Datetime { fraction: 0 }),
        ("DATETIME(6)", ColumnKind::Datetime { fraction: 6 }),
        ("YEAR", ColumnKind::Year),
        (
            "VARCHAR(120) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            text("utf8mb4_general_ci"),
        ),
        (
            "CHAR(120) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
            text("utf8mb4_unicode_ci"),
        ),
        (
            "TEXT CHARACTER SET latin1 COLLATE latin1_bin",
            text("latin1_bin"),
        ),
        ("VARBINARY(120)", ColumnKind::Binary),
        ("BINARY(60)", ColumnKind::Binary),
        ("BINARY(6)", ColumnKind::Binary),
        ("BLOB", ColumnKind::Binary),
        (
            "ENUM('abc', '10', '5', 'Abcd', '1', 'ab') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            labels("utf8mb4_general_ci"),
        ),
        (
            "ENUM('abc', '10', '5', 'Abcd', '1', 'ab') CHARACTER SET latin1 COLLATE latin1_bin",
            labels("latin1_bin"),
        ),
    ]
}

/// A condition on one column.
pub(crate) struct Condition {
    pub(crate) column: usize,
    /// With `?` in the place of constants.
    pub(crate) form: String,
    pub(crate) constants: Vec<Given>,
    pub(crate) is_bound: bool,
}

impl Condition {
    /// The condition as it is sent.
    pub(crate) fn text(&self) -> String {
        if self.is_bound {
            return self.form.clone();
        }
        let mut pieces = self.form.split('?');
        let mut text = pieces.next().unwrap().to_owned();
        for (constant, piece) in self.constants.iter().zip(pieces) {
            write!(text, "{}{piece}", constant.written()).unwrap();
        }
        text
    }

    pub(crate) fn bound(&self) -> Vec<BoundValue<'static>> {
        let constants = self.constants.iter().filter(|_| self.is_bound);
        constants.map(|constant| constant.bound()).collect()
    }
}

pub(crate) fn conditions(column: usize, random: &mut Random) -> Vec<Condition> {
    let all = Given::all();
    let mut forms: Vec<(String, Vec<Given>)> = Vec::new();
    for constant in &all {
        forms.push((format!("c{column} = ?"), vec![*constant]));
    }
    for (form, constants) in TRAPS {
        forms.push((format!("c{column} {form}"), constants.to_vec()));
    }
    for _ in 0..CONDITIONS {
        // Neighbours in the list are close to each other: so there are ranges with something in
        // them.
        let first = random.below(all.len());
        let mut other = || match random.below(2) {
            0 => all[random.below(all.len())],
            _ => all[(first + random.below(12)) % all.len()],
        };
        let [one, two, three] = [all[first], other(), other()];
        forms.push((format!("c{column} IN (?, ?, ?)"), vec![one, two, three]));
        forms.push((format!("c{column} BETWEEN ? AND ?"), vec![one, two]));
        forms.push((format!("c{column} >= ? AND c{column} < ?"), vec![one, two]));
        forms.push((format!("? < c{column} AND c{column} <= ?"), vec![two, one]));
    }
    let both = forms.into_iter().flat_map(|(form, constants)| {
        [false, true].map(|is_bound| Condition {
            column,
            form: form.clone(),
            constants: constants.clone(),
            is_bound,
        })
    });
    both.collect()
}
