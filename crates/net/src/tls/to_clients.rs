//! TLS towards clients.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use super::files::NamedFile;
use super::{TlsError, TlsVersion, TlsWithClients};

/// Oldest first.
static FROM_1_2: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];
static FROM_1_3: [&SupportedProtocolVersion; 1] = [&version::TLS13];

/// Tickets that a client gets to come back with. Few clients of databases do, and each costs a
/// record.
const TICKETS: usize = 1;

/// What clients are shown; none without a certificate.
pub(super) fn load(clients: &TlsWithClients) -> Result<Option<ServerConfig>, TlsError> {
    let (Some(certificate), Some(key)) = (&clients.certificate_file, &clients.key_file) else {
        return Ok(None);
    };
    let certificate = NamedFile {
        option: "listen.tls_certificate_file",
        path: certificate,
        accepts: "a PEM file with a certificate, and those that lead to its authority",
    };
    let key = NamedFile {
        option: "listen.tls_key_file",
        path: key,
        accepts: "a PEM file with the private key of the certificate in listen.tls_certificate_file",
    };
    let chain = certificate.certificates()?;
    let private_key = key.private_key()?;
    let versions: &[&SupportedProtocolVersion] = match clients.version_min {
        TlsVersion::V1_2 => &FROM_1_2,
        TlsVersion::V1_3 => &FROM_1_3,
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| certificate.refuse(error))?
        .with_no_client_auth()
        .with_single_cert(chain, private_key)
        .map_err(|error| key.refuse(error))?;
    config.send_tls13_tickets = TICKETS;
    if let Ok(ticketer) = aws_lc_rs::Ticketer::new() {
        // Sessions are kept by the clients: nothing is shared between workers.
        config.ticketer = ticketer;
    }
    Ok(Some(config))
}
