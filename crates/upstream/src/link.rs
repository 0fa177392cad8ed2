//! How connections to the server are made: where to, with TLS or without, on whose behalf.

use std::io;
use std::time::Duration;

use remora_net::tls::Tls;
use remora_net::{Addresses, Endpoint, Keepalive, ProxyProtocol, Stream, proxy_header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the connection to the server is encrypted, and what its certificate must be. MySQL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum UpstreamTlsMode {
    /// When the client's connection is.
    AsClient,
    /// Never.
    Disabled,
    /// If the server offers it.
    Preferred,
    /// Always.
    Required,
    /// Always, and the server's certificate must come from the authority in `tls_ca_file`.
    VerifyCa,
    /// Like `verify_ca`, and the certificate must also be for the host in `address`.
    VerifyIdentity,
}

/// The compressed protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum UpstreamCompression {
    /// None.
    Off,
    /// zlib.
    Zlib,
    /// zstd, which MySQL 8.0.18 and later have.
    Zstd,
}

/// On whose behalf a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBehalf {
    /// A client's, whose own connection is encrypted or not.
    OfClient {
        /// Whether the client uses TLS.
        over_tls: bool,
    },
    /// Remora's own.
    OfRemora,
}

/// Why a connection to the server may not go on. Each says which option decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsRefused {
    /// The configuration wants TLS.
    #[error("the server does not offer TLS, which upstream.tls_mode requires")]
    NotOffered,
    /// The client wants TLS.
    #[error(
        "the server is on another host and does not offer TLS, which this client uses; \
         upstream.allow_cleartext would allow it"
    )]
    ClearText,
}

/// What a [`ServerLink`] is made of.
#[derive(Debug, Clone)]
pub struct LinkConfig {
    /// Where the server is.
    pub endpoint: Endpoint,
    /// Time to connect, and time for a TLS handshake.
    pub connect_timeout: Duration,
    /// When the system asks whether the server is still there.
    pub keepalive: Keepalive,
    /// When connections are encrypted.
    pub tls_mode: UpstreamTlsMode,
    /// Whether what a client encrypts may leave the host in the clear.
    pub allow_cleartext: bool,
    /// How connections are to be compressed, if the server offers that.
    pub compression: UpstreamCompression,
    /// Whether the server is told for whom connections are made.
    pub proxy_protocol: ProxyProtocol,
}

/// Where the server is and how it is spoken to, with the certificates and keys for both sides.
#[derive(Debug)]
pub struct ServerLink {
    config: LinkConfig,
    tls: Tls,
}

impl ServerLink {
    /// A link with the certificates and keys that were read.
    pub fn new(config: LinkConfig, tls: Tls) -> ServerLink {
        ServerLink { config, tls }
    }

    /// Time to connect, and time for a TLS handshake.
    pub fn connect_timeout(&self) -> Duration {
        self.config.connect_timeout
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.config.endpoint
    }

    /// The certificates and keys.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// How connections to the server are to be compressed, if it offers that.
    pub fn compression(&self) -> UpstreamCompression {
        self.config.compression
    }

    /// Whether the server is told for whom connections are made.
    pub fn tells_addresses(&self) -> bool {
        self.config.proxy_protocol != ProxyProtocol::Off
    }

    /// Connects within the configured time and says whom for, if that is configured. Without
    /// addresses it is for Remora itself, or for a client that came by no address.
    pub async fn connect(&self, addresses: Option<Addresses>) -> io::Result<Stream> {
        let stream = Stream::connect(
            &self.config.endpoint,
            self.config.connect_timeout,
            self.config.keepalive,
        )
        .await?;
        let header = proxy_header(self.config.proxy_protocol, addresses);
        stream.write_all(&header).await?;
        Ok(stream)
    }

    /// Whether TLS is to begin on a connection, now that the server's greeting has said whether it
    /// offers TLS.
    pub fn wants_tls(
        &self,
        on_behalf: OnBehalf,
        server_offers: bool,
        server_is_local: bool,
    ) -> Result<bool, TlsRefused> {
        let client_is_encrypted = on_behalf == OnBehalf::OfClient { over_tls: true };
        let wanted = match self.config.tls_mode {
            UpstreamTlsMode::Disabled => return Ok(false),
            UpstreamTlsMode::AsClient => match on_behalf {
                OnBehalf::OfClient { over_tls } => over_tls,
                // The log and the catalogue are as precious as what clients ask for.
                OnBehalf::OfRemora => !server_is_local,
            },
            UpstreamTlsMode::Preferred => true,
            UpstreamTlsMode::Required
            | UpstreamTlsMode::VerifyCa
            | UpstreamTlsMode::VerifyIdentity => {
                return if server_offers {
                    Ok(true)
                } else {
                    Err(TlsRefused::NotOffered)
                };
            }
        };
        if wanted && server_offers {
            return Ok(true);
        }
        if client_is_encrypted && !server_is_local && !self.config.allow_cleartext {
            return Err(TlsRefused::ClearText);
        }
        Ok(false)
    }

    /// Begins TLS, when the request for it has been sent.
    pub async fn start_tls(&self, server: &Stream) -> io::Result<()> {
        let (config, name) = self.tls.to_server();
        match tokio::time::timeout(
            self.config.connect_timeout,
            server.connect_tls(config, name),
        )
        .await
        {
            Ok(result) => result,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        }
    }
}

#[cfg(test)]
mod tests {
    use remora_net::tls::{TlsVersion, TlsWithClients, TlsWithServer};

    use super::*;

    fn link(mode: UpstreamTlsMode, allow_cleartext: bool) -> ServerLink {
        let endpoint: Endpoint = "127.0.0.1:3306".parse().unwrap();
        let with_server = TlsWithServer {
            server: endpoint.clone(),
            ca_file: None,
            verifies_identity: false,
            certificate_file: None,
            key_file: None,
        };
        let with_clients = TlsWithClients {
            certificate_file: None,
            key_file: None,
            version_min: TlsVersion::V1_2,
            rsa_key_file: None,
        };
        let config = LinkConfig {
            endpoint,
            connect_timeout: Duration::from_secs(10),
            keepalive: Keepalive::after_ms(60_000),
            tls_mode: mode,
            allow_cleartext,
            compression: UpstreamCompression::Off,
            proxy_protocol: ProxyProtocol::Off,
        };
        ServerLink::new(config, Tls::load(with_clients, with_server).unwrap())
    }

    const ENCRYPTED: OnBehalf = OnBehalf::OfClient { over_tls: true };
    const PLAIN: OnBehalf = OnBehalf::OfClient { over_tls: false };

    #[test]
    fn what_a_client_encrypts_leaves_the_host_in_the_clear_only_if_that_was_allowed() {
        use UpstreamTlsMode::{AsClient, Disabled, Preferred};
        for mode in [AsClient, Preferred] {
            let strict = link(mode, false);
            assert_eq!(strict.wants_tls(ENCRYPTED, true, false), Ok(true));
            assert_eq!(
                strict.wants_tls(ENCRYPTED, false, false),
                Err(TlsRefused::ClearText)
            );
            assert_eq!(strict.wants_tls(ENCRYPTED, false, true), Ok(false));
            let lenient = link(mode, true);
            assert_eq!(lenient.wants_tls(ENCRYPTED, false, false), Ok(false));
        }
        let disabled = link(Disabled, false);
        assert_eq!(disabled.wants_tls(ENCRYPTED, true, false), Ok(false));
    }

    #[test]
    fn a_mode_that_requires_tls_gets_it_or_nothing() {
        for mode in [
            UpstreamTlsMode::Required,
            UpstreamTlsMode::VerifyCa,
            UpstreamTlsMode::VerifyIdentity,
        ] {
            let link = link(mode, true);
            for on_behalf in [ENCRYPTED, PLAIN, OnBehalf::OfRemora] {
                for is_local in [true, false] {
                    assert_eq!(link.wants_tls(on_behalf, true, is_local), Ok(true));
                    let refused = link.wants_tls(on_behalf, false, is_local);
                    assert_eq!(refused, Err(TlsRefused::NotOffered));
                }
            }
        }
    }

    #[test]
    fn by_default_the_server_sees_tls_exactly_when_the_client_uses_it() {
        let link = link(UpstreamTlsMode::AsClient, false);
        for is_local in [true, false] {
            assert_eq!(link.wants_tls(PLAIN, true, is_local), Ok(false));
            assert_eq!(link.wants_tls(ENCRYPTED, true, is_local), Ok(true));
        }
        assert_eq!(link.wants_tls(OnBehalf::OfRemora, true, true), Ok(false));
        assert_eq!(link.wants_tls(OnBehalf::OfRemora, true, false), Ok(true));
        assert_eq!(link.wants_tls(OnBehalf::OfRemora, false, false), Ok(false));
    }
}
