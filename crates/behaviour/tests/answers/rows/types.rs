//! The column types, with random values.

use std::fmt::Write as _;

use remora_testkit::load::Random;
use remora_testkit::servers::Kind;

/// A column type, how its values are asked for, and how random ones are written.
pub(crate) struct Type {
    pub(crate) definition: &'static str,
    pub(crate) shown: Shown,
    pub(crate) make: fn(&mut Random) -> String,
}

/// How a value is compared with the server's.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    /// The server's text against the reader's.
    Value,
    /// An unsigned number, which the log may not tell.
    Unsigned,
    /// The index of an ENUM.
    Index,
    /// `HEX()` against the bytes.
    Hex,
    /// The same of a BINARY, whose padding isn't logged.
    Padded,
    /// Only whether it is NULL, and that what follows is where it must be.
    Length,
}

const fn of(definition: &'static str, shown: Shown, make: fn(&mut Random) -> String) -> Type {
    Type {
        definition,
        shown,
        make,
    }
}

fn signed(random: &mut Random, bits: u32) -> String {
    let value = (random.next().cast_signed()) >> (64 - bits);
    // Small ones too.
    (if random.below(2) == 0 {
        value
    } else {
        value >> (bits / 2)
    })
    .to_string()
}

fn unsigned(random: &mut Random, bits: u32) -> String {
    (random.next() >> (64 - bits)).to_string()
}

fn text(random: &mut Random, letters_max: usize) -> String {
    let length = random.below(letters_max + 1);
    let letters = (0..length).map(|_| ["a", "Z", "0", "é", "-", "ß"][random.below(6)]);
    format!("'{}'", letters.collect::<String>())
}

fn bytes(random: &mut Random, bytes_max: usize) -> String {
    let length = random.below(bytes_max + 1);
    let mut text = "X'".to_owned();
    for _ in 0..length {
        // Without zeros, which a BINARY loses at its end.
        write!(text, "{:02x}", random.below(255) + 1).unwrap();
    }
    text + "'"
}

fn decimal(random: &mut Random, whole: usize, decimals: usize) -> String {
    let mut digits = |count: usize| -> String {
        let digits = (0..count).map(|_| char::from(b"0123456789"[random.below(10)]));
        digits.collect()
    };
    let (whole, fraction) = (digits(whole), digits(decimals));
    // Short numbers too, and signs.
    let whole = &whole[..random.below(whole.len() + 1)];
    let sign = ["", "-"][random.below(2)];
    let point = if decimals > 0 { "." } else { "" };
    format!("{sign}0{whole}{point}{fraction}")
}

fn date(random: &mut Random) -> String {
    let (year, month, day) = (
        random.below(9999) + 1,
        random.below(12) + 1,
        random.below(28) + 1,
    );
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(random: &mut Random) -> String {
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    let fraction = random.below(1_000_000);
    format!("{hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

fn datetime(random: &mut Random) -> String {
    format!("'{} {}'", date(random), time(random))
}

fn timestamp(random: &mut Random) -> String {
    let year = 1971 + random.below(60);
    format!("'{year}-05-17 {}'", time(random))
}

/// The types of all servers.
const COMMON: &[Type] = &[
    of("TINYINT", Shown::Value, |random| signed(random, 8)),
    of("SMALLINT", Shown::Value, |random| signed(random, 16)),
    of("MEDIUMINT", Shown::Value, |random| signed(random, 24)),
    of("INT", Shown::Value, |random| signed(random, 32)),
    of("BIGINT", Shown::Value, |random| signed(random, 64)),
    of("TINYINT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 8)
    }),
    of("SMALLINT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 16)
    }),
    of("MEDIUMINT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 24)
    }),
    of("INT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 32)
    }),
    of("BIGINT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 64)
    }),
    of("FLOAT", Shown::Length, |random| signed(random, 20)),
    of("DOUBLE UNSIGNED", Shown::Length, |random| {
        unsigned(random, 20)
    }),
    of("DECIMAL(10, 2)", Shown::Value, |random| {
        decimal(random, 8, 2)
    }),
    of("DECIMAL(65, 30)", Shown::Value, |random| {
        decimal(random, 35, 30)
    }),
    of("DECIMAL(9, 9)", Shown::Value, |random| {
        decimal(random, 0, 9)
    }),
    of("DECIMAL(20, 0)", Shown::Value, |random| {
        decimal(random, 20, 0)
    }),
    of("DECIMAL(13, 11)", Shown::Value, |random| {
        decimal(random, 2, 11)
    }),
    of("BIT(1)", Shown::Value, |random| unsigned(random, 1)),
    of("BIT(13)", Shown::Value, |random| unsigned(random, 13)),
    of("BIT(64)", Shown::Value, |random| unsigned(random, 64)),
    of("YEAR", Shown::Value, |random| {
        [0, 1901 + random.below(255)][random.below(2)].to_string()
    }),
    of("DATE", Shown::Value, |random| format!("'{}'", date(random))),
    of("TIME", Shown::Length, |random| {
        format!("'{}'", time(random))
    }),
    of("TIME(3)", Shown::Length, |random| {
        format!("'{}'", time(random))
    }),
    of("DATETIME", Shown::Value, datetime),
    of("DATETIME(1)", Shown::Value, datetime),
    of("DATETIME(3)", Shown::Value, datetime),
    of("DATETIME(6)", Shown::Value, datetime),
    of("TIMESTAMP NULL", Shown::Length, timestamp),
    of("TIMESTAMP(4) NULL", Shown::Length, timestamp),
    of("CHAR(10)", Shown::Hex, |random| text(random, 10)),
    of("CHAR(200) CHARACTER SET utf8mb4", Shown::Hex, |random| {
        text(random, 200)
    }),
    of("BINARY(255)", Shown::Padded, |random| bytes(random, 255)),
    of("CHAR(63) CHARACTER SET utf8mb4", Shown::Hex, |random| {
        text(random, 63)
    }),
    of("VARCHAR(20)", Shown::Hex, |random| text(random, 20)),
    of("VARCHAR(300) CHARACTER SET utf8mb4", Shown::Hex, |random| {
        text(random, 300)
    }),
    of("VARBINARY(255)", Shown::Hex, |random| bytes(random, 255)),
    of("VARBINARY(256)", Shown::Hex, |random| bytes(random, 256)),
    of("TINYBLOB", Shown::Hex, |random| bytes(random, 255)),
    of("BLOB", Shown::Hex, |random| bytes(random, 700)),
    of("MEDIUMTEXT CHARACTER SET utf8mb4", Shown::Hex, |random| {
        text(random, 500)
    }),
    of("LONGTEXT CHARACTER SET utf8mb4", Shown::Hex, |random| {
        text(random, 500)
    }),
    of("ENUM('a', 'b', 'c')", Shown::Index, |random| {
        (random.below(3) + 1).to_string()
    }),
    of(
        "SET('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')",
        Shown::Length,
        |random| unsigned(random, 9),
    ),
    of("POINT", Shown::Length, |random| {
        format!("ST_GeomFromText('POINT({} 7)')", random.below(1000))
    }),
    of("SMALLINT UNSIGNED", Shown::Unsigned, |random| {
        unsigned(random, 16)
    }),
];

const OF_MYSQL: &[Type] = &[of("JSON", Shown::Length, |random| {
    format!("'{{\"a\": {}}}'", random.below(1000))
})];

const OF_MARIADB: &[Type] = &[
    of("JSON", Shown::Hex, |random| {
        format!("'{{\"a\": {}}}'", random.below(1000))
    }),
    of("INET6", Shown::Length, |random| {
        format!("'::{:x}'", random.below(65_535) + 1)
    }),
    of("UUID", Shown::Length, |_| "UUID()".to_owned()),
    of("VARCHAR(255) COMPRESSED", Shown::Length, |random| {
        text(random, 255)
    }),
    of("VARCHAR(100) COMPRESSED", Shown::Length, |random| {
        text(random, 100)
    }),
    of("TEXT COMPRESSED", Shown::Length, |random| {
        text(random, 1000)
    }),
];

pub(crate) fn types(kind: Kind) -> Vec<&'static Type> {
    let further = match kind {
        Kind::MySql56 => &[],
        Kind::MySql57 | Kind::MySql80 => OF_MYSQL,
        Kind::MariaDb1011 | Kind::MariaDb114 => OF_MARIADB,
    };
    COMMON.iter().chain(further).collect()
}
