//! A client that sends and receives single packets, right or wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use remora_testkit::servers::{APP_PASSWORD, APP_USER};
use remora_wire::Capabilities;
use remora_wire::auth::{AuthPacket, NATIVE_PASSWORD, native_password};
use remora_wire::handshake::{Greeting, Login};
use remora_wire::response::ServerError;

use super::PATIENCE;

/// A packet as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its number.
    pub sequence: u8,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// A connection whose bytes the test chooses.
pub struct Raw {
    stream: TcpStream,
}

impl Raw {
    /// Connects and does nothing more.
    pub fn connect(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Raw { stream }
    }

    /// Connects, logs in as the application and chooses a schema.
    pub fn log_in(address: SocketAddr, schema: &str) -> Raw {
        let mut raw = Raw::connect(address);
        let login = raw.login(APP_PASSWORD, schema);
        raw.send_bytes(&login.packet(1));
        let answer = raw.login_answer(APP_PASSWORD);
        let answer = answer.expect("an answer to the login");
        assert_eq!(answer.payload[0], 0, "the login succeeds: {answer:?}");
        raw
    }

    /// The answer to a login. If it asks for another plugin, or for the same one once more, that is
    /// done.
    pub fn login_answer(&mut self, password: &str) -> Option<Packet> {
        let answer = self.receive()?;
        let Ok(AuthPacket::Switch { plugin, data }) = AuthPacket::parse(&answer.payload) else {
            return Some(answer);
        };
        let salt = data.strip_suffix(&[0]).unwrap_or(data);
        let proof = if plugin == NATIVE_PASSWORD.as_bytes() {
            native_password(password.as_bytes(), salt)
        } else {
            // For an account that isn't there the server may ask for anything.
            vec![0; 32]
        };
        self.send(answer.sequence + 1, &proof);
        let answer = self.receive()?;
        let Ok(AuthPacket::More(_)) = AuthPacket::parse(&answer.payload) else {
            return Some(answer);
        };
        // It wants the password encrypted, for an account that it hasn't: this decrypts to nothing.
        self.send(answer.sequence + 1, &[0; 256]);
        self.receive()
    }

    /// Reads the greeting; gives a login that answers it.
    pub fn login(&mut self, password: &str, schema: &str) -> Login {
        let greeting = self.receive().expect("a greeting");
        let greeting = Greeting::parse(&greeting.payload).unwrap();
        let mut capabilities = Capabilities::MYSQL
            .with(Capabilities::PROTOCOL_41)
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::TRANSACTIONS)
            .with(Capabilities::LOCAL_FILES)
            .with(Capabilities::MULTI_RESULTS);
        if !schema.is_empty() {
            capabilities = capabilities.with(Capabilities::CONNECT_WITH_DB);
        }
        Login {
            capabilities,
            packet_bytes_max: 64 << 20,
            collation: 45,
            user: APP_USER.as_bytes().to_vec(),
            authentication: native_password(password.as_bytes(), &greeting.salt),
            schema: schema.as_bytes().to_vec(),
            plugin: NATIVE_PASSWORD.as_bytes().to_vec(),
        }
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends one packet.
    pub fn send(&mut self, sequence: u8, payload: &[u8]) {
        self.send_bytes(&packet(sequence, payload));
    }

    /// Sends a statement.
    pub fn query(&mut self, sql: &str) {
        self.send(0, &[b"\x03", sql.as_bytes()].concat());
    }

    /// Says that nothing more will be sent.
    pub fn finish_sending(&self) {
        // The other side may have closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next packet; `None` if the connection is closed.
    pub fn receive(&mut self) -> Option<Packet> {
        let mut header = [0; 4];
        if !read_exactly(&mut self.stream, &mut header) {
            return None;
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        read_exactly(&mut self.stream, &mut payload).then_some(Packet {
            sequence: header[3],
            payload,
        })
    }

    /// Every packet up to the end of the connection.
    pub fn receive_all(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    /// The next packet is an error, and the last: the connection is closed after it.
    pub fn receive_error_and_end(&mut self) -> (u8, ServerError) {
        let packet = self.receive().expect("an ERR packet before the end");
        assert_eq!(
            packet.payload.first(),
            Some(&0xff),
            "{packet:?} is an error"
        );
        assert_eq!(self.receive(), None, "the connection is closed");
        (
            packet.sequence,
            ServerError::parse(&packet.payload).unwrap(),
        )
    }

    /// Reads a whole answer without `DEPRECATE_EOF`: one OK or ERR, or a result set up to its
    /// second EOF.
    pub fn receive_answer(&mut self) -> Vec<Packet> {
        let mut packets = vec![self.receive().expect("an answer")];
        if matches!(packets[0].payload.first(), Some(0x00 | 0xff | 0xfb | 0xfe)) {
            return packets;
        }
        let mut end_marks = 0;
        while end_marks < 2 {
            let packet = self.receive().expect("the rest of an answer");
            let is_eof = packet.payload.first() == Some(&0xfe) && packet.payload.len() < 9;
            let is_error = packet.payload.first() == Some(&0xff);
            end_marks += usize::from(is_eof) + 2 * usize::from(is_error);
            packets.push(packet);
        }
        packets
    }
}

/// The bytes of one packet.
pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let mut bytes = vec![length[0], length[1], length[2], sequence];
    bytes.extend_from_slice(payload);
    bytes
}

/// Fills the buffer; false if the connection ends before.
fn read_exactly(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    match stream.read_exact(buffer) {
        Ok(()) => true,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            false
        }
        Err(error) => panic!("nothing came: {error}"),
    }
}
