//! The types of columns, and values for them from small pools, so that conditions and rows often
//! meet.

use super::dice::Dice;
use super::script::literal;
use remora_testkit::servers::Kind;

/// What a column's values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Integer {
        name: &'static str,
        is_unsigned: bool,
    },
    Decimal(&'static str),
    Float(&'static str),
    /// Characters: `CHAR(4)` and the like, and their collation.
    Text {
        name: &'static str,
        collation: &'static str,
    },
    /// Bytes: `VARBINARY(8)` and the like.
    Bytes(&'static str),
    Date,
    DateTime(&'static str),
    Timestamp(&'static str),
    Time(&'static str),
    Year,
    Enum,
    Set,
    Bit(u8),
    Json,
}

const INTEGERS: &[&str] = &["TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"];
const DECIMALS: &[&str] = &[
    "DECIMAL(10,2)",
    "DECIMAL(5,0)",
    "DECIMAL(20,6)",
    "DECIMAL(3,1) UNSIGNED",
];
const TEXTS: &[&str] = &["CHAR(4)", "VARCHAR(8)", "VARCHAR(20)", "TEXT"];
const BYTES: &[&str] = &["VARBINARY(8)", "BINARY(3)", "BLOB"];

const SMALL: &[&str] = &[
    "-2", "-1", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
];
const WIDE: &[&str] = &[
    "127",
    "128",
    "-128",
    "255",
    "256",
    "32767",
    "-32768",
    "65535",
    "8388607",
    "16777215",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "9007199254740993",
];
const FRACTIONS: &[&str] = &[
    "0", "0.1", "0.5", "1", "1.5", "2.25", "-1.5", "5", "5.00", "99.9", "1e1",
];
const STRINGS: &[&str] = &[
    "''", "'a'", "'A'", "'ä'", "'Ä'", "'a '", "'b'", "'B'", "'ß'", "'ss'", "'ab'", "'aB'", "'5'",
    "'05'", "'5abc'", "'5 '", "'😀'", "'x'", "'é'", "'e'", "' '", "'a%'", "'ch'", "'c'", "'ae'",
    "'æ'",
];
const DATES: &[&str] = &[
    "'2020-01-01'",
    "'2020-01-02'",
    "'2020-02-29'",
    "'1999-12-31'",
    "'0000-00-00'",
    "'2020-00-00'",
    "'2038-01-18'",
];
const TIMES_OF_DAY: &[&str] = &["'10:00'", "'10:00:00'", "'-01:30:00'", "'23:59:59.75'", "0"];
const TIMES: &[&str] = &[
    "'2020-01-01'",
    "'2020-01-01 00:00:00'",
    "'2020-01-01 12:30:00'",
    "'2020-01-01 12:30:00.5'",
    "'2020-01-01 12:30:00.123456'",
    "'2020-03-29 02:30:00'",
    "'1999-12-31 23:59:59'",
    "'2020-01-02 00:00:00'",
];
const YEARS: &[&str] = &["2020", "1999", "0", "20", "'2020'", "1901"];
const MEMBERS: &[&str] = &["'red'", "'green'", "'blue'", "1", "2", "''"];
const SETS: &[&str] = &["'x'", "'y'", "'x,y'", "'y,z'", "''", "3"];
const BITS: &[&str] = &["0", "1", "2", "3", "b'1'", "b'10'", "b'11'"];
const DOCUMENTS: &[&str] = &["'{}'", "'[1, 2]'", "'{\"a\": 1}'", "'1'", "'\"a\"'"];
/// What conditions compare any column with now and then.
const ODD: &[&str] = &[
    "'5abc'",
    "'5'",
    "5",
    "5.0",
    "5e0",
    "0x35",
    "x'61'",
    "'5 '",
    "-0",
    "+5",
    "5+0",
    "NULL",
    "TRUE",
    "FALSE",
    "''",
    "'a'",
    "'A '",
    "0",
    "1",
    "-1",
    "'2020-01-01'",
    "DATE '2020-01-01'",
    "20200101",
    "b'101'",
    "2020",
    "'red'",
    "4.9999",
    "'1e0'",
    "' 5'",
    "_latin1'a'",
    "_binary'a'",
    "'A' COLLATE utf8mb4_bin",
    "'a' COLLATE utf8mb4_unicode_ci",
    "TIMESTAMP '2020-01-01 12:30:00'",
    "9223372036854775808",
    "1.5",
    "(2+3)",
    "-(-5)",
    "!0",
];

/// The collations that this kind of server has.
fn collations(kind: Kind) -> Vec<&'static str> {
    let mut all = vec![
        "latin1_swedish_ci",
        "latin1_general_ci",
        "latin1_german1_ci",
        "latin1_bin",
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_unicode_520_ci",
        "utf8mb4_bin",
        "utf8mb4_german2_ci",
        "ascii_general_ci",
    ];
    match kind {
        Kind::MariaDb1011 => {
            all.extend([
                "utf8mb4_nopad_bin",
                "utf8mb4_unicode_nopad_ci",
                "uca1400_ai_ci",
            ]);
        }
        Kind::MariaDb114 => all.extend([
            "utf8mb4_nopad_bin",
            "utf8mb4_general_nopad_ci",
            "utf8mb4_uca1400_ai_ci",
            "utf8mb4_uca1400_as_cs",
        ]),
        Kind::MySql80 => all.extend([
            "utf8mb4_0900_ai_ci",
            "utf8mb4_0900_as_cs",
            "utf8mb4_0900_bin",
            "utf8mb4_de_pb_0900_ai_ci",
        ]),
        Kind::MySql57 | Kind::MySql56 => {}
    }
    all
}

impl Type {
    /// Any type that the server and the engine have.
    pub(super) fn random(dice: &mut Dice, kind: Kind, is_memory: bool) -> Type {
        let json = usize::from(!is_memory && kind != Kind::MySql56);
        match dice.weighted(&[
            (34, 0),
            (6, 1),
            (4, 2),
            (26, 3),
            (5, 4),
            (5, 5),
            (5, 6),
            (4, 7),
            (2, 8),
            (3, 9),
            (2, 10),
            (3, 11),
            (json, 12),
        ]) {
            0 => Type::integer(dice),
            1 => Type::Decimal(dice.word(DECIMALS)),
            2 => Type::Float(dice.word(&["FLOAT", "DOUBLE"])),
            3 => Type::text(dice, kind, is_memory),
            4 => Type::Bytes(dice.word(if is_memory { &BYTES[..2] } else { BYTES })),
            5 => Type::Date,
            6 => match dice.word(&["DATETIME", "DATETIME(1)", "DATETIME(6)", "TIME(2)"]) {
                // Seldom: most conditions on it keep a result from being held.
                time @ "TIME(2)" => Type::Time(time),
                moment => Type::DateTime(moment),
            },
            7 => Type::Timestamp(dice.word(&["TIMESTAMP", "TIMESTAMP(3)"])),
            8 => Type::Year,
            9 => Type::Enum,
            10 => Type::Set,
            11 => Type::Bit(*dice.pick(&[1, 2, 9])),
            _ => Type::Json,
        }
    }

    /// Any integer type.
    pub(super) fn integer(dice: &mut Dice) -> Type {
        Type::Integer {
            name: dice.word(INTEGERS),
            is_unsigned: dice.chance(30),
        }
    }

    /// Any type of characters.
    pub(super) fn text(dice: &mut Dice, kind: Kind, without_blobs: bool) -> Type {
        Type::Text {
            name: dice.word(if without_blobs { &TEXTS[..3] } else { TEXTS }),
            collation: dice.word(&collations(kind)),
        }
    }

    /// As it is declared.
    pub(super) fn declaration(&self) -> String {
        match self {
            Type::Integer { name, is_unsigned } => {
                format!("{name}{}", if *is_unsigned { " UNSIGNED" } else { "" })
            }
            Type::Decimal(name)
            | Type::Float(name)
            | Type::Bytes(name)
            | Type::DateTime(name)
            | Type::Timestamp(name)
            | Type::Time(name) => (*name).to_owned(),
            Type::Text { name, collation } => {
                let charset = match collation.split_once('_') {
                    Some((charset, _)) if !charset.starts_with("uca") => charset,
                    _ => "utf8mb4",
                };
                format!("{name} CHARACTER SET {charset} COLLATE {collation}")
            }
            Type::Date => "DATE".to_owned(),
            Type::Year => "YEAR".to_owned(),
            Type::Enum => "ENUM('red','green','blue')".to_owned(),
            Type::Set => "SET('x','y','z')".to_owned(),
            Type::Bit(bits) => format!("BIT({bits})"),
            Type::Json => "JSON".to_owned(),
        }
    }

    /// Whether a key takes the whole of it.
    pub(super) fn takes_keys(&self) -> bool {
        !matches!(
            self,
            Type::Json | Type::Bytes("BLOB") | Type::Text { name: "TEXT", .. }
        )
    }

    /// Whether it can be summed without a result that depends on the order.
    pub(super) fn takes_sum(&self) -> bool {
        matches!(self, Type::Integer { .. } | Type::Decimal(_))
    }

    /// Whether it is an integer.
    pub(super) fn is_integer(&self) -> bool {
        matches!(self, Type::Integer { .. })
    }

    /// A form of a column of it of which two values are equal only if nobody can tell them apart,
    /// so that groups, minima and orders don't depend on the order of rows.
    pub(super) fn identity(&self, column: &str) -> String {
        match self {
            Type::Text { .. } | Type::Json => format!("HEX({column})"),
            Type::Bit(_) => format!("{column}+0"),
            _ => column.to_owned(),
        }
    }

    /// A value to write, as text of SQL, marked as a literal.
    pub(super) fn value(&self, dice: &mut Dice) -> String {
        let pool = match self {
            Type::Integer { .. } if dice.chance(8) => WIDE,
            Type::Integer { .. } => SMALL,
            Type::Decimal(_) | Type::Float(_) => FRACTIONS,
            Type::Text { .. } | Type::Bytes(_) => STRINGS,
            Type::Date => DATES,
            Type::DateTime(_) | Type::Timestamp(_) => TIMES,
            Type::Time(_) => TIMES_OF_DAY,
            Type::Year => YEARS,
            Type::Enum => MEMBERS,
            Type::Set => SETS,
            Type::Bit(_) => BITS,
            Type::Json => DOCUMENTS,
        };
        literal(dice.word(pool))
    }

    /// A value to compare with: mostly one that may be there, sometimes one of another type.
    pub(super) fn compared(&self, dice: &mut Dice) -> String {
        if dice.chance(18) {
            return literal(dice.word(ODD));
        }
        self.value(dice)
    }
}
