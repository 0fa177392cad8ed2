//! Certificates and keys: what clients are shown, what the server is held to, and the RSA key of
//! the password exchange without TLS.
//!
//! The files are read at the start and again on SIGHUP. Connections that exist keep what they began
//! with.

mod files;
mod rsa;
mod to_clients;
mod to_server;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Endpoint;

pub use self::rsa::{PasswordKey, RsaError, encrypt_password};

/// A file that can't be used. Names the option, the file and what it must hold.
#[derive(Debug, thiserror::Error)]
#[error("{option}: got {}, which can't be used ({why}); accepts {accepts}", path.display())]
pub struct TlsError {
    /// The option that names the file.
    pub option: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
    /// What the file should hold.
    pub accepts: &'static str,
}

/// The oldest TLS that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V1_3,
}

/// What TLS with clients is made of. The fields are options of the section `listen`.
#[derive(Clone, Debug)]
pub struct TlsWithClients {
    /// `tls_certificate_file`. Without it clients are offered no TLS.
    pub certificate_file: Option<PathBuf>,
    /// `tls_key_file`.
    pub key_file: Option<PathBuf>,
    /// `tls_version_min`.
    pub version_min: TlsVersion,
    /// `rsa_key_file`.
    pub rsa_key_file: Option<PathBuf>,
}

/// What TLS with the server is made of. The fields are options of the section `upstream`.
#[derive(Clone, Debug)]
pub struct TlsWithServer {
    /// `address`.
    pub server: Endpoint,
    /// `tls_ca_file`. Without it any certificate will do.
    pub ca_file: Option<PathBuf>,
    /// Whether the certificate must be for the server's host (`tls_mode = "verify_identity"`).
    pub verifies_identity: bool,
    /// `tls_certificate_file`.
    pub certificate_file: Option<PathBuf>,
    /// `tls_key_file`.
    pub key_file: Option<PathBuf>,
}

/// Everything that was made from the files.
#[derive(Debug)]
struct Loaded {
    to_clients: Option<Arc<ServerConfig>>,
    to_server: Arc<ClientConfig>,
}

impl Loaded {
    fn load(
        with_clients: &TlsWithClients,
        with_server: &TlsWithServer,
    ) -> Result<Loaded, TlsError> {
        Ok(Loaded {
            to_clients: to_clients::load(with_clients)?.map(Arc::new),
            to_server: Arc::new(to_server::load(with_server)?),
        })
    }
}

/// The certificates and keys of one Remora.
#[derive(Debug)]
pub struct Tls {
    with_clients: TlsWithClients,
    with_server: TlsWithServer,
    loaded: RwLock<Loaded>,
    has_certificate: bool,
    server_name: ServerName<'static>,
    /// The key with which clients without TLS encrypt their password.
    pub password_key: PasswordKey,
}

impl Tls {
    /// Reads the files that the options name.
    pub fn load(with_clients: TlsWithClients, with_server: TlsWithServer) -> Result<Tls, TlsError> {
        let loaded = Loaded::load(&with_clients, &with_server)?;
        Ok(Tls {
            has_certificate: loaded.to_clients.is_some(),
            loaded: RwLock::new(loaded),
            server_name: server_name(&with_server.server),
            password_key: PasswordKey::load(with_clients.rsa_key_file.as_deref())?,
            with_clients,
            with_server,
        })
    }

    /// Reads the files again, for connections to come. If one of them is wrong, nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        let loaded = Loaded::load(&self.with_clients, &self.with_server)?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// Whether clients may use TLS.
    pub fn offers_tls(&self) -> bool {
        self.has_certificate
    }

    /// For a connection with a client; none if there is no certificate.
    pub fn to_clients(&self) -> Option<Arc<ServerConfig>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.to_clients.clone()
    }

    /// For a connection to the server.
    pub fn to_server(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&loaded.to_server), self.server_name.clone())
    }
}

/// The name that the server's certificate is for. What is no name is only a label where none is
/// verified.
fn server_name(endpoint: &Endpoint) -> ServerName<'static> {
    let host = match endpoint {
        Endpoint::Tcp { host, .. } => host.clone(),
        Endpoint::Unix(_) => "localhost".to_owned(),
    };
    ServerName::try_from(host).unwrap_or_else(|_| {
        // `db_1` and the like are names to a resolver, but none in a certificate: nothing matches
        // this.
        ServerName::IpAddress(std::net::Ipv6Addr::UNSPECIFIED.into())
    })
}
