//! TLS towards the server, and how its certificate is looked at.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::files::NamedFile;
use super::{TlsError, TlsWithServer};

/// How connections to the server are encrypted.
pub(super) fn load(server: &TlsWithServer) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(server, &provider)?;
    let own = own_certificate(server)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| no_file(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match own {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key, file)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| file.refuse(error)),
    }
}

/// Not reached: the library's own defaults fit one another.
fn no_file(error: &Error) -> TlsError {
    TlsError {
        option: "upstream.tls_mode",
        path: std::path::PathBuf::new(),
        why: error.to_string(),
        accepts: "what this build of Remora can do",
    }
}

type OwnCertificate<'a> = (
    Vec<CertificateDer<'static>>,
    rustls::pki_types::PrivateKeyDer<'static>,
    NamedFile<'a>,
);

fn own_certificate(server: &TlsWithServer) -> Result<Option<OwnCertificate<'_>>, TlsError> {
    let (Some(certificate), Some(key)) = (&server.certificate_file, &server.key_file) else {
        return Ok(None);
    };
    let certificate = NamedFile {
        option: "upstream.tls_certificate_file",
        path: certificate,
        accepts: "a PEM file with Remora's own certificate",
    };
    let key = NamedFile {
        option: "upstream.tls_key_file",
        path: key,
        accepts: "a PEM file with the private key of the certificate in upstream.tls_certificate_file",
    };
    Ok(Some((certificate.certificates()?, key.private_key()?, key)))
}

fn verifier(
    server: &TlsWithServer,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let schemes = provider
        .signature_verification_algorithms
        .supported_schemes();
    let Some(path) = &server.ca_file else {
        return Ok(Arc::new(AnyCertificate { schemes }));
    };
    let file = NamedFile {
        option: "upstream.tls_ca_file",
        path,
        accepts: "a PEM file with the certificates of the authorities to trust",
    };
    let mut roots = RootCertStore::empty();
    for certificate in file.certificates()? {
        roots.add(certificate).map_err(|error| file.refuse(error))?;
    }
    let roots = Arc::new(roots);
    let whole =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider))
            .build()
            .map_err(|error| file.refuse(error))?;
    if server.verifies_identity {
        return Ok(whole);
    }
    Ok(Arc::new(AnyName {
        roots,
        whole,
        provider: Arc::clone(provider),
    }))
}

/// Accepts every certificate, as MySQL's modes without verification do: against those who only
/// listen. Who can change the bytes can put in a certificate of their own, so neither is its
/// signature looked at; thus certificates of version 1, which many servers have, work too.
#[derive(Debug)]
struct AnyCertificate {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Accepts a certificate from the right authority, whatever name it is for.
#[derive(Debug)]
struct AnyName {
    roots: Arc<RootCertStore>,
    whole: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.whole
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.whole
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.whole.supported_verify_schemes()
    }
}
