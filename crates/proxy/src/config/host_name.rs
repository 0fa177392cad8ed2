//! Names of hosts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::NotAValue;

/// The longest that names of hosts may be, bytes (RFC 1035).
const BYTES_MAX: usize = 253;

/// The name of a host without a port, such as `remora.example.org`, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// Whether this is what a request calls its host, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name)
    }
}

impl FromStr for HostName {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = !text.is_empty() && text.len() <= BYTES_MAX && text.bytes().all(is_of_a_name);
        if is_name {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(NotAValue::new(
                "the name of a host, without port and scheme",
            ))
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for HostName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for HostName {
    fn schema_name() -> Cow<'static, str> {
        "HostName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "host-name"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_compared_in_any_case() {
        let name: HostName = "Remora.Example.org".parse().unwrap();
        assert!(name.is("remora.EXAMPLE.org"));
        assert!(!name.is("remora.example.com"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(BYTES_MAX + 1);
        for text in ["", "a:80", "http://a", "a b", "[::1]", "ä", long.as_str()] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
