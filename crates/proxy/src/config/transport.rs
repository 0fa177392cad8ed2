//! Networks, the rules between the options of connections, and what becomes of those options.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use remora_net::tls::{Tls, TlsError, TlsWithClients, TlsWithServer};
use remora_net::{Endpoint, Keepalive, ProxyProtocol};
use remora_upstream::link::{LinkConfig, ServerLink, UpstreamTlsMode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::options::{ListenOptions, Options, UpstreamOptions};
use super::settings::Broken;
use super::value::NotAValue;

/// Addresses that begin with the same bits: `10.0.0.0/8`, `::1/128`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// Whether the address is one of these. An IPv4 address in IPv6's form counts as itself.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix_bits);
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix_bits);
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let refused = NotAValue::new("a network such as 10.0.0.0/8");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refused)?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| refused)?,
            None => bits_max,
        };
        if prefix_bits > bits_max {
            return Err(refused);
        }
        Ok(Self {
            address,
            prefix_bits,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Network {
    fn schema_name() -> Cow<'static, str> {
        "Network".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "network"})
    }
}

/// How the server is spoken to, with the certificates and keys for both sides. Reads their files.
pub fn server_link(
    listen: &ListenOptions,
    upstream: &UpstreamOptions,
) -> Result<ServerLink, TlsError> {
    let with_clients = TlsWithClients {
        certificate_file: listen.tls_certificate_file.clone(),
        key_file: listen.tls_key_file.clone(),
        version_min: listen.tls_version_min,
        rsa_key_file: listen.rsa_key_file.clone(),
    };
    let with_server = TlsWithServer {
        server: upstream.address.clone(),
        ca_file: upstream.tls_ca_file.clone(),
        verifies_identity: upstream.tls_mode == UpstreamTlsMode::VerifyIdentity,
        certificate_file: upstream.tls_certificate_file.clone(),
        key_file: upstream.tls_key_file.clone(),
    };
    let config = LinkConfig {
        endpoint: upstream.address.clone(),
        connect_timeout: Duration::from_millis(upstream.connect_timeout_ms),
        keepalive: Keepalive::after_ms(upstream.keepalive_ms),
        tls_mode: upstream.tls_mode,
        allow_cleartext: upstream.allow_cleartext,
        compression: upstream.compression,
        proxy_protocol: upstream.proxy_protocol,
    };
    let tls = Tls::load(with_clients, with_server)?;
    Ok(ServerLink::new(config, tls))
}

/// The rules between the options of connections: the first that is broken.
pub(super) fn broken_rule(options: &Options) -> Option<Broken> {
    broken_of_clients(&options.listen).or_else(|| broken_of_server(&options.upstream))
}

fn broken_of_clients(listen: &ListenOptions) -> Option<Broken> {
    let pair = [
        (
            "listen.tls_certificate_file",
            listen.tls_certificate_file.is_some(),
        ),
        ("listen.tls_key_file", listen.tls_key_file.is_some()),
    ];
    half_of(pair)
}

fn broken_of_server(upstream: &UpstreamOptions) -> Option<Broken> {
    let pair = [
        (
            "upstream.tls_certificate_file",
            upstream.tls_certificate_file.is_some(),
        ),
        ("upstream.tls_key_file", upstream.tls_key_file.is_some()),
    ];
    let verifies = matches!(
        upstream.tls_mode,
        UpstreamTlsMode::VerifyCa | UpstreamTlsMode::VerifyIdentity
    );
    let is_unix = matches!(upstream.address, Endpoint::Unix(_));
    half_of(pair)
        .or_else(|| {
            (verifies && upstream.tls_ca_file.is_none()).then(|| {
                broken(
                    "upstream.tls_ca_file",
                    "nothing, though upstream.tls_mode is to verify the server",
                    "a file with the certificates of the authorities to trust",
                )
            })
        })
        .or_else(|| {
            (is_unix && upstream.tls_mode == UpstreamTlsMode::VerifyIdentity).then(|| {
                broken(
                    "upstream.tls_mode",
                    "verify_identity for a Unix socket, which has no host name",
                    "another mode, or a host:port in upstream.address",
                )
            })
        })
        .or_else(|| {
            (is_unix && upstream.proxy_protocol != ProxyProtocol::Off).then(|| {
                broken(
                    "upstream.proxy_protocol",
                    "a version for a Unix socket, where no server takes it",
                    "off, or a host:port in upstream.address",
                )
            })
        })
}

/// Of a certificate and its key, one is of no use without the other.
fn half_of(pair: [(&'static str, bool); 2]) -> Option<Broken> {
    let ([(given, true), (missing, false)] | [(missing, false), (given, true)]) = pair else {
        return None;
    };
    Some(broken(
        missing,
        &format!("nothing, though {given} is given"),
        "the file that belongs to it",
    ))
}

fn broken(option: &'static str, got: &str, accepts: &str) -> Broken {
    Broken(option, got.to_owned(), accepts.to_owned())
}

/// What is hardly meant: private keys that others can read.
pub(super) fn warnings(listen: &ListenOptions, upstream: &UpstreamOptions) -> Vec<String> {
    let keys = [
        ("listen.tls_key_file", &listen.tls_key_file),
        ("listen.rsa_key_file", &listen.rsa_key_file),
        ("upstream.tls_key_file", &upstream.tls_key_file),
    ];
    let is_open = |path: &PathBuf| {
        std::fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0)
    };
    let open = keys
        .into_iter()
        .filter_map(|(option, path)| Some((option, path.as_ref().filter(|path| is_open(path))?)));
    open.map(|(option, path)| {
        format!(
            "{option}: others than its owner can use {}; fix it with `chmod 600 {0}`",
            path.display()
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "::2"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed));
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.9".parse().unwrap()));
        let all: Network = "::/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()));
        for text in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/", "host/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
