//! A client that logs in by any password plugin, in the clear or over TLS, one packet at a time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use remora_net::tls::encrypt_password;
use remora_wire::Capabilities;
use remora_wire::auth::{
    self, AuthPacket, CACHING_SHA2_PASSWORD, CachingSha2, NATIVE_PASSWORD, SHA256_PASSWORD, salt_of,
};
use remora_wire::handshake::{Greeting, Login, TlsRequest};
use remora_wire::packet::put_message;
use remora_wire::response::ServerError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;

/// Whose certificate a client accepts.
#[derive(Clone, Copy)]
pub(crate) struct Trust<'a> {
    /// The authority's certificate.
    pub authority: &'a Path,
    /// Versions of TLS.
    pub versions: &'static [&'static rustls::SupportedProtocolVersion],
}

impl<'a> Trust<'a> {
    pub(crate) fn of(authority: &'a Path) -> Trust<'a> {
        Trust {
            authority,
            versions: rustls::ALL_VERSIONS,
        }
    }
}

/// Who logs in, and how.
#[derive(Clone)]
pub(crate) struct Who<'a> {
    pub user: &'a str,
    pub password: &'a str,
    /// The plugin that the client begins with.
    pub plugin: &'a str,
    /// TLS, if any.
    pub tls: Option<Trust<'a>>,
    /// The server's public key, if the client knows it beforehand.
    pub known_key: Option<Vec<u8>>,
    /// Flags beside the usual ones.
    pub further: Capabilities,
}

impl<'a> Who<'a> {
    pub(crate) fn new(user: &'a str, password: &'a str, plugin: &'a str) -> Who<'a> {
        Who {
            user,
            password,
            plugin,
            tls: None,
            known_key: None,
            further: Capabilities(0),
        }
    }

    pub(crate) fn over(mut self, tls: Option<Trust<'a>>) -> Who<'a> {
        self.tls = tls;
        self
    }
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection that is logged in.
pub(crate) struct Guest {
    transport: Transport,
    sequence: u8,
    salt: Vec<u8>,
    capabilities: Capabilities,
    /// What the server's plugin demanded, in order.
    pub steps: Vec<&'static str>,
}

/// What the server answered in place of an OK.
pub(crate) type Refused = ServerError;

impl Guest {
    pub(crate) fn log_in(address: SocketAddr, who: &Who<'_>) -> Result<Guest, Refused> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        Guest::log_in_on(socket, who)
    }

    /// The same on a connection that exists.
    pub(crate) fn log_in_on(socket: TcpStream, who: &Who<'_>) -> Result<Guest, Refused> {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut guest = Guest {
            transport: Transport::Plain(socket),
            sequence: 0,
            salt: Vec::new(),
            capabilities: Capabilities(0),
            steps: Vec::new(),
        };
        let greeting = guest.receive()?;
        let greeting = Greeting::parse(&greeting).unwrap();
        guest.salt = greeting.salt;
        let mut capabilities = Capabilities::MYSQL
            .with(Capabilities::PROTOCOL_41)
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
            .with(Capabilities::TRANSACTIONS)
            .with(who.further);
        if who.tls.is_some() {
            capabilities = capabilities.with(Capabilities::SSL);
            if !greeting.capabilities.has(Capabilities::SSL) {
                return Err(ServerError::new(2026, "HY000", "TLS is not offered"));
            }
        }
        guest.capabilities = capabilities;
        let mut login = Login {
            capabilities,
            packet_bytes_max: 16 << 20,
            collation: 45,
            user: who.user.as_bytes().to_vec(),
            authentication: Vec::new(),
            schema: Vec::new(),
            plugin: who.plugin.as_bytes().to_vec(),
        };
        if let Some(trust) = &who.tls {
            guest.send(&TlsRequest::of(&login).payload());
            guest.start_tls(trust)?;
        }
        login.authentication = guest.first_answer(who.plugin, who);
        let packet = login.packet(guest.sequence);
        guest.send(&packet[4..]);
        guest.authenticate(who.plugin, who)?;
        Ok(guest)
    }

    fn is_secure(&self) -> bool {
        matches!(self.transport, Transport::Tls(_))
    }

    fn start_tls(&mut self, trust: &Trust<'_>) -> Result<(), Refused> {
        let failed =
            |error: &dyn std::fmt::Display| ServerError::new(2026, "HY000", error.to_string());
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(trust.authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(trust.versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let Transport::Plain(socket) = &self.transport else {
            panic!("TLS in TLS");
        };
        let mut socket = socket.try_clone().unwrap();
        while connection.is_handshaking() {
            connection
                .complete_io(&mut socket)
                .map_err(|error| failed(&error))?;
        }
        let stream = StreamOwned::new(connection, socket);
        self.transport = Transport::Tls(Box::new(stream));
        Ok(())
    }

    /// What the plugin sends unasked.
    fn first_answer(&self, plugin: &str, who: &Who<'_>) -> Vec<u8> {
        let password = who.password.as_bytes();
        match plugin {
            NATIVE_PASSWORD => auth::native_password(password, &self.salt),
            CACHING_SHA2_PASSWORD => auth::caching_sha2_password(password, &self.salt),
            SHA256_PASSWORD if password.is_empty() => vec![0],
            SHA256_PASSWORD => self.secret(who, auth::SHA256_REQUEST_PUBLIC_KEY),
            other => panic!("the server wants {other}"),
        }
    }

    /// The password, or its encrypted form, or the request for the key that it takes.
    fn secret(&self, who: &Who<'_>, request: u8) -> Vec<u8> {
        match &who.known_key {
            _ if self.is_secure() => auth::clear_password(who.password.as_bytes()),
            Some(key) => self.encrypted(key, who),
            None => vec![request],
        }
    }

    fn encrypted(&self, key: &[u8], who: &Who<'_>) -> Vec<u8> {
        let password = auth::clear_password(who.password.as_bytes());
        encrypt_password(key, &password, &self.salt).unwrap()
    }

    fn authenticate(&mut self, plugin: &str, who: &Who<'_>) -> Result<(), Refused> {
        let mut plugin = plugin.to_owned();
        loop {
            let payload = self.receive()?;
            match AuthPacket::parse(&payload).unwrap() {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Err => unreachable!("receive() gives errors"),
                AuthPacket::Switch {
                    plugin: other,
                    data,
                } => {
                    self.steps.push("switch");
                    plugin = String::from_utf8(other.to_vec()).unwrap();
                    self.salt = salt_of(data).to_vec();
                    let answer = self.first_answer(&plugin, who);
                    self.send(&answer);
                }
                AuthPacket::More(data) if plugin == CACHING_SHA2_PASSWORD => {
                    match CachingSha2::parse(data) {
                        CachingSha2::FastOk => self.steps.push("fast"),
                        CachingSha2::FullAuthentication => {
                            self.steps.push("full");
                            let answer = self.secret(who, auth::CACHING_SHA2_REQUEST_PUBLIC_KEY);
                            self.send(&answer);
                        }
                        CachingSha2::PublicKey(key) => {
                            self.steps.push("key");
                            let answer = self.encrypted(key, who);
                            self.send(&answer);
                        }
                    }
                }
                AuthPacket::More(key) => {
                    self.steps.push("key");
                    let answer = self.encrypted(key, who);
                    self.send(&answer);
                }
            }
        }
    }

    /// Becomes another user on the same connection.
    pub(crate) fn change_user(&mut self, who: &Who<'_>) -> Result<(), Refused> {
        self.steps.clear();
        let answer = self.first_answer(who.plugin, who);
        let mut payload = vec![0x11];
        payload.extend_from_slice(who.user.as_bytes());
        payload.push(0);
        payload.push(u8::try_from(answer.len()).unwrap());
        payload.extend_from_slice(&answer);
        payload.push(0);
        payload.extend_from_slice(&45_u16.to_le_bytes());
        payload.extend_from_slice(who.plugin.as_bytes());
        payload.push(0);
        self.sequence = 0;
        self.send(&payload);
        self.authenticate(who.plugin, who)
    }

    /// The first field of the answer's second packet after the columns; `None` for an OK.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Option<String>, Refused> {
        self.sequence = 0;
        self.send(&[b"\x03", sql.as_bytes()].concat());
        let head = self.receive()?;
        if head[0] == 0 {
            return Ok(None);
        }
        let mut value = None;
        let mut end_marks = 0;
        for _ in 0..head[0] {
            self.receive()?;
        }
        while end_marks < 2 {
            let packet = self.receive()?;
            if packet[0] == 0xfe && packet.len() < 9 {
                end_marks += 1;
            } else if value.is_none() && packet[0] != 0xfb {
                let length = usize::from(packet[0]);
                value = Some(String::from_utf8_lossy(&packet[1..=length]).into_owned());
            }
        }
        Ok(value)
    }

    fn send(&mut self, payload: &[u8]) {
        let mut packet = Vec::new();
        self.sequence = put_message(&mut packet, self.sequence, payload);
        match &mut self.transport {
            Transport::Plain(stream) => stream.write_all(&packet).unwrap(),
            Transport::Tls(stream) => stream.write_all(&packet).unwrap(),
        }
    }

    /// The next packet, which must carry the next number.
    fn receive(&mut self) -> Result<Vec<u8>, Refused> {
        let mut header = [0; 4];
        self.read_exactly(&mut header)?;
        if header[3] != self.sequence {
            let what = format!("packet {} in place of {}", header[3], self.sequence);
            return Err(ServerError::new(2027, "HY000", what));
        }
        self.sequence = header[3].wrapping_add(1);
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.read_exactly(&mut payload)?;
        match payload.first() {
            Some(0xff) => Err(ServerError::parse(&payload).unwrap()),
            _ => Ok(payload),
        }
    }

    fn read_exactly(&mut self, buffer: &mut [u8]) -> Result<(), Refused> {
        let read = match &mut self.transport {
            Transport::Plain(stream) => stream.read_exact(buffer),
            Transport::Tls(stream) => stream.read_exact(buffer),
        };
        read.map_err(|error| ServerError::new(2013, "HY000", error.to_string()))
    }
}
