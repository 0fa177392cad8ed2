//! The bytes between a client and its server: plain, encrypted, compressed.
//!
//! Compression is put together here from the codec's halves, not taken from Remora's own layers, so
//! that the two check each other.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use remora_wire::WireError;
use remora_wire::compress::{Algorithm, Compressor, Decompressor};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use super::ClientError;

const SEALED_READ_BYTES: usize = 64 << 10;

/// A socket with what lies over it.
#[derive(Debug)]
pub(super) struct Transport {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    compression: Option<Box<Compression>>,
}

#[derive(Debug)]
struct Compression {
    compressor: Compressor,
    decompressor: Decompressor,
    sealed: Vec<u8>,
    plain: Vec<u8>,
}

impl Transport {
    pub(super) fn new(socket: TcpStream) -> Transport {
        Transport {
            socket,
            tls: None,
            compression: None,
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Shakes hands; everything after this is encrypted.
    pub(super) fn start_tls(&mut self) -> Result<(), ClientError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth();
        let name = ServerName::from(self.socket.peer_addr()?.ip());
        let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut self.socket)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Everything after this is compressed.
    pub(super) fn start_compression(&mut self, algorithm: Algorithm) {
        self.compression = Some(Box::new(Compression {
            compressor: Compressor::new(algorithm),
            decompressor: Decompressor::new(algorithm),
            sealed: vec![0; SEALED_READ_BYTES],
            plain: Vec::new(),
        }));
    }

    /// Sends what is the beginning of a command.
    pub(super) fn send_command(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(compression) = &mut self.compression else {
            return self.write_sealed(bytes);
        };
        compression.compressor.begin_command();
        let mut packed = Vec::with_capacity(bytes.len() / 2);
        compression.compressor.push(bytes, &mut packed);
        self.write_sealed(&packed)
    }

    /// Sends bytes during the login, which isn't compressed.
    pub(super) fn write_sealed(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.socket.write_all(bytes),
            Some(tls) => {
                let mut stream = rustls::Stream::new(&mut **tls, &mut self.socket);
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Receives a piece into `input` from `filled` on; gives how long it is. Makes room if there is
    /// little.
    pub(super) fn receive(
        &mut self,
        input: &mut Vec<u8>,
        filled: usize,
    ) -> Result<usize, ClientError> {
        let Some(mut compression) = self.compression.take() else {
            return Ok(self.read_sealed(&mut input[filled..])?);
        };
        let received = self.receive_packed(&mut compression);
        self.compression = Some(compression);
        let plain = received?;
        if input.len() < filled + plain.len() {
            input.resize((filled + plain.len()) * 2, 0);
        }
        input[filled..filled + plain.len()].copy_from_slice(&plain);
        Ok(plain.len())
    }

    fn receive_packed(&mut self, compression: &mut Compression) -> Result<Vec<u8>, ClientError> {
        loop {
            let count = self.read_sealed(&mut compression.sealed)?;
            let mut rest = &compression.sealed[..count];
            while !rest.is_empty() {
                let used = compression
                    .decompressor
                    .feed(rest, &mut compression.plain)?;
                if used == 0 {
                    return Err(WireError::Malformed("compressed packet").into());
                }
                rest = &rest[used..];
            }
            if !compression.plain.is_empty() {
                return Ok(std::mem::take(&mut compression.plain));
            }
        }
    }

    fn read_sealed(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.tls {
            None => self.socket.read(into)?,
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.socket).read(into)?,
        };
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(count)
    }
}

/// Takes any server for the right one: the tests' servers make their own certificates, some of them
/// in ways that a verifier would refuse.
#[derive(Debug)]
struct Anybody(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
