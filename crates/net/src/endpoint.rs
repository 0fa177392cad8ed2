//! Where something listens.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Text that names no place to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address such as 127.0.0.1:3306 or unix:/run/mysqld/mysqld.sock")]
pub struct NotAnEndpoint;

/// Where a server or Remora itself listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A TCP address.
    Tcp {
        /// A name or an IP address, without the brackets of IPv6.
        host: String,
        /// The port. 0 lets the system choose when listening.
        port: u16,
    },
    /// A Unix socket, written `unix:/path`.
    Unix(PathBuf),
}

impl Endpoint {
    /// Whether it is certainly on this machine. A name other than `localhost` isn't looked up.
    pub fn is_on_this_machine(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => {
                let is_loopback = |address: IpAddr| address.is_loopback();
                host == "localhost" || host.parse().is_ok_and(is_loopback)
            }
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for Endpoint {
    type Err = NotAnEndpoint;

    fn from_str(text: &str) -> Result<Self, NotAnEndpoint> {
        let refused = NotAnEndpoint;
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return if path.is_absolute() {
                Ok(Self::Unix(path))
            } else {
                Err(refused)
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or(refused)?;
        let port = port.parse().map_err(|_| refused)?;
        let host = match host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
        {
            Some(bracketed) => bracketed,
            None if host.contains(':') => return Err(refused),
            None => host,
        };
        if host.is_empty() || host.chars().any(char::is_whitespace) {
            return Err(refused);
        }
        Ok(Self::Tcp {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Endpoint {
    fn schema_name() -> Cow<'static, str> {
        "Endpoint".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "endpoint"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_socket_path() {
        for text in [
            "127.0.0.1:3306",
            "db.example:3306",
            "[::1]:3306",
            "unix:/run/db.sock",
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
        }
        for text in [
            "",
            "127.0.0.1",
            ":3306",
            "::1:3306",
            "h:65536",
            "unix:relative",
            "a b:1",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_an_endpoint_panic(text in ".*") {
            let _ = text.parse::<Endpoint>();
        }
    }
}
