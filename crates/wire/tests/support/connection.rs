//! A connection to a real server, made of the crate's own parts over a blocking socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use remora_wire::auth::{AuthPacket, NATIVE_PASSWORD, native_password};
use remora_wire::command::Expect;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{Extent, HEADER_BYTES, extent, join_payload, put_message};
use remora_wire::response::ServerError;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, Command};

/// How long a server may be silent. It is only ever reached by a failure, such as a walker that
/// waits for more than the answer has.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// An answer as it came.
#[derive(Debug)]
pub struct Reply {
    pub bytes: Vec<u8>,
    pub summary: Summary,
}

impl Reply {
    /// The payloads of its messages.
    pub fn payloads(&self) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            match extent(rest, rest[3]) {
                Ok(Extent::Complete { bytes, .. }) => {
                    payloads.push(join_payload(&rest[..bytes]));
                    rest = &rest[bytes..];
                }
                other => panic!("an answer that is no row of messages: {other:?}"),
            }
        }
        payloads
    }
}

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    pub capabilities: Capabilities,
    pub greeting: Greeting,
    /// The greeting's payload as it came.
    pub greeting_payload: Vec<u8>,
}

impl Connection {
    /// Logs in with `mysql_native_password` and those of the `wanted` capabilities that there are.
    pub fn login(
        port: u16,
        user: &str,
        password: &str,
        wanted: Capabilities,
    ) -> Result<Connection, ServerError> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let (greeting_payload, _) = read_message(&mut stream, 0);
        let greeting = Greeting::parse(&greeting_payload).unwrap();
        let mut capabilities = greeting.capabilities.and(wanted);
        if greeting.capabilities.has(Capabilities::MYSQL) {
            capabilities = capabilities.with(Capabilities::MYSQL);
        }
        let login = Login {
            capabilities,
            packet_bytes_max: 64 << 20,
            collation: 45,
            user: user.into(),
            authentication: native_password(password.as_bytes(), &greeting.salt),
            schema: b"shop".to_vec(),
            plugin: NATIVE_PASSWORD.into(),
        };
        stream.write_all(&login.packet(1)).unwrap();
        let mut connection = Connection {
            stream,
            capabilities,
            greeting,
            greeting_payload,
        };
        connection.authenticate(password).map(|()| connection)
    }

    fn authenticate(&mut self, password: &str) -> Result<(), ServerError> {
        let mut sequence = 2;
        loop {
            let (payload, last) = read_message(&mut self.stream, sequence);
            match AuthPacket::parse(&payload).unwrap() {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Err => return Err(ServerError::parse(&payload).unwrap()),
                AuthPacket::Switch { plugin, data } => {
                    assert_eq!(plugin, NATIVE_PASSWORD.as_bytes());
                    let salt = data.strip_suffix(&[0]).unwrap_or(data);
                    let mut packet = Vec::new();
                    let answer = native_password(password.as_bytes(), salt);
                    sequence = put_message(&mut packet, last.wrapping_add(1), &answer);
                    self.stream.write_all(&packet).unwrap();
                }
                AuthPacket::More(data) => panic!("unexpected data: {data:?}"),
            }
        }
    }

    /// Sends a command; gives the answer, which the walker must find the end of.
    pub fn command(&mut self, command: &[u8]) -> Reply {
        let expect = Command::from_byte(command[0]).expect();
        self.command_expecting(command, expect)
    }

    pub fn command_expecting(&mut self, command: &[u8], expect: Expect) -> Reply {
        let mut packet = Vec::new();
        put_message(&mut packet, 0, command);
        self.stream.write_all(&packet).unwrap();
        let mut walker = ResponseWalker::new(expect, self.capabilities);
        let mut bytes = Vec::new();
        // Small, so that many packets are cut.
        let mut chunk = vec![0; 1021];
        loop {
            let length = self.stream.read(&mut chunk).expect("the answer goes on");
            assert!(length > 0, "the server closed the connection");
            let mut chunk = &chunk[..length];
            while !chunk.is_empty() {
                let (used, progress) = walker.feed(chunk).unwrap();
                bytes.extend_from_slice(&chunk[..used]);
                chunk = &chunk[used..];
                match progress {
                    Progress::More => assert!(chunk.is_empty()),
                    Progress::LocalFile => {
                        assert!(chunk.is_empty(), "the server waits for the file");
                        self.send_file(&bytes);
                    }
                    Progress::Done(summary) => {
                        assert!(chunk.is_empty(), "bytes after the answer's end: {chunk:?}");
                        return Reply { bytes, summary };
                    }
                }
            }
        }
    }

    fn send_file(&mut self, answer: &[u8]) {
        let mut packets = Vec::new();
        let next = put_message(&mut packets, answer[3].wrapping_add(1), b"1\n2\n3\n");
        put_message(&mut packets, next, b"");
        self.stream.write_all(&packets).unwrap();
    }

    pub fn query(&mut self, text: &str) -> Reply {
        self.command(&[b"\x03", text.as_bytes()].concat())
    }

    pub fn must(&mut self, text: &str) {
        let reply = self.query(text);
        assert!(
            !matches!(reply.summary.ending, Ending::Err(_)),
            "{text}: {:?}",
            ServerError::parse(&reply.payloads()[0])
        );
    }

    /// Whether the server and this side agree that all answers have been read.
    pub fn assert_in_step(&mut self) {
        let reply = self.command(b"\x0e");
        assert_eq!(reply.summary.ending, Ending::Ok);
        assert!(reply.summary.numbered_from_one);
    }
}

/// A message whose first packet has the number `sequence`; its payload and last number.
pub fn read_message(stream: &mut TcpStream, sequence: u8) -> (Vec<u8>, u8) {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    loop {
        match extent(&bytes, sequence).unwrap() {
            Extent::Complete {
                bytes: length,
                last_sequence,
                ..
            } => {
                assert_eq!(length, bytes.len());
                return (join_payload(&bytes), last_sequence);
            }
            Extent::Partial { known_bytes } => {
                let at = bytes.len();
                bytes.resize(known_bytes, 0);
                stream.read_exact(&mut bytes[at..]).unwrap();
            }
        }
    }
}
