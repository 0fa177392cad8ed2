//! The kinds of value that an option can hold beyond numbers, booleans and text.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A number of bytes, written as a whole number or with a binary unit: `4096`, `"64KiB"`,
/// `"256MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(usize);

/// The units that a size can be written with, the largest first, and what they multiply by.
const UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl ByteSize {
    /// A size of so many bytes.
    pub const fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// How many bytes it is.
    pub const fn bytes(self) -> usize {
        self.0
    }
}

/// The largest unit that divides the size: `256MiB`, not `268435456`.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as u64;
        let (unit, factor) = UNITS
            .into_iter()
            .find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor))
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", bytes / factor)
    }
}

/// Text that isn't a value of the kind asked for. The option's description says what it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct NotAValue(&'static str);

impl NotAValue {
    /// Text that isn't `what`.
    pub(super) const fn new(what: &'static str) -> Self {
        Self(what)
    }
}

impl FromStr for ByteSize {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let refused = NotAValue("a size such as 256MiB");
        let digits_end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let number: u64 = digits.parse().map_err(|_| refused)?;
        let factor = match unit.trim() {
            "" => 1,
            unit => UNITS
                .into_iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                .map(|(_, factor)| factor)
                .ok_or(refused)?,
        };
        let bytes = number.checked_mul(factor).ok_or(refused)?;
        usize::try_from(bytes).map(Self).map_err(|_| refused)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => usize::try_from(bytes).map(Self).map_err(de::Error::custom),
            Written::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "string"], "format": "size"})
    }
}

/// Where the admin listener listens, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminListen {
    /// No admin listener: neither metrics nor health are served.
    Off,
    /// An IP address and a port; port 0 lets the system choose.
    At(SocketAddr),
}

impl FromStr for AdminListen {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| NotAValue("an IP address and port, or off"))
    }
}

impl fmt::Display for AdminListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Serialize for AdminListen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AdminListen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for AdminListen {
    fn schema_name() -> Cow<'static, str> {
        "AdminListen".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "admin-listen"})
    }
}

/// Which results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Storing {
    /// Those of digests of which enough are asked for again; of the others a sample.
    Adaptive,
    /// All.
    Always,
    /// A sample of all.
    Sample,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum LogLevel {
    /// What stops Remora or a part of it.
    Error,
    /// Also what an operator should look at.
    Warn,
    /// Also starts, stops and changes of state.
    Info,
    /// Also what happens to each connection.
    Debug,
    /// Also what happens to each statement. Statement texts appear in the log.
    Trace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_reads_with_and_without_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4KiB", 4096),
            ("256MiB", 256 << 20),
            ("256 mib", 256 << 20),
            ("2GiB", 2 << 30),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize::new(bytes)), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5GiB",
            "5MB",
            "99999999999TiB",
            "18446744073709551616",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_written_with_the_largest_unit_that_divides_it() {
        for (bytes, text) in [
            (0, "0B"),
            (1000, "1000B"),
            (1 << 10, "1KiB"),
            (3 << 30, "3GiB"),
        ] {
            assert_eq!(ByteSize::new(bytes).to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_written_size_reads_back(bytes in 0..=(1_usize << 50)) {
            let size = ByteSize::new(bytes);
            proptest::prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn no_text_makes_a_value_panic(text in ".*") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<AdminListen>();
        }
    }
}
