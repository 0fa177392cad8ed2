//! A connection to a real server, made of the crate's own parts over a blocking socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{self, Stdio};
use std::time::Duration;

use remora_wire::auth::xor_with_salt;
use remora_wire::command::ResponseKind;
use remora_wire::compress::{Algorithm, Channel, Role};
use remora_wire::handshake::{Greeting, Login};
use remora_wire::login::{ClientLogin, LoginStep, Plugin, Privacy};
use remora_wire::packet::{Extent, HEADER_BYTES, extent, join_payload, put_message};
use remora_wire::response::ServerError;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, Command};

/// How long a server may be silent. It is only ever reached by a failure, such as a walker that
/// waits for more than the answer has.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// The zstd level that a connection asks for.
const ZSTD_LEVEL: u8 = 5;

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
    /// The compressed protocol, if it was wanted and offered.
    channel: Option<Channel>,
    /// How many packets a local file is sent in.
    pub file_packets: usize,
    /// Bytes that were received, compressed if they are.
    pub received_bytes: usize,
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
        let plugin = Plugin::Native;
        let (first_answer, login) =
            ClientLogin::begin(plugin, &greeting.salt, password.as_bytes(), Privacy::None);
        let request = Login {
            capabilities,
            packet_bytes_max: 64 << 20,
            collation: 45,
            user: user.into(),
            authentication: first_answer,
            schema: b"shop".to_vec(),
            plugin: plugin.name().into(),
        };
        let mut packet = request.packet(1);
        let mut algorithm = None;
        if capabilities.has(Capabilities::ZSTD_COMPRESSION) {
            packet.push(ZSTD_LEVEL);
            packet[0] += 1;
            let level = i32::from(ZSTD_LEVEL);
            algorithm = Some(Algorithm::Zstd { level });
        }
        if capabilities.has(Capabilities::COMPRESS) {
            algorithm = Some(Algorithm::Zlib);
        }
        stream.write_all(&packet).unwrap();
        authenticate(&mut stream, login, |_| {})?;
        Ok(Connection {
            stream,
            capabilities,
            greeting,
            greeting_payload,
            channel: algorithm.map(|algorithm| Channel::new(algorithm, Role::Client)),
            file_packets: 1,
            received_bytes: 0,
        })
    }

    /// Sends a command; gives the answer, which the walker must find the end of.
    pub fn command(&mut self, command: &[u8]) -> Reply {
        let expect = Command::from_byte(command[0]).response_kind_with(&command[1..]);
        self.command_expecting(command, expect)
    }

    pub fn command_expecting(&mut self, command: &[u8], expect: ResponseKind) -> Reply {
        let mut packet = Vec::new();
        put_message(&mut packet, 0, command);
        self.write(&packet);
        let mut walker = ResponseWalker::new(expect, self.capabilities);
        let mut bytes = Vec::new();
        // Small, so that many packets are cut.
        let mut chunk = vec![0; 1021];
        loop {
            let plain = self.read(&mut chunk);
            let mut chunk = &plain[..];
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
        // In a multi-result the request is the last of several messages.
        let mut last = answer;
        while let Ok(Extent::Complete { bytes, .. }) = extent(last, last[3])
            && bytes < last.len()
        {
            last = &last[bytes..];
        }
        let mut packets = Vec::new();
        let mut next = last[3].wrapping_add(1);
        for _ in 0..self.file_packets {
            next = put_message(&mut packets, next, b"1\n2\n3\n");
        }
        put_message(&mut packets, next, b"");
        for piece in packets.chunks(37) {
            self.write(piece);
        }
    }

    fn write(&mut self, plain: &[u8]) {
        let Some(channel) = &mut self.channel else {
            self.stream.write_all(plain).unwrap();
            return;
        };
        let mut packed = Vec::new();
        channel.send(plain, &mut packed);
        self.stream.write_all(&packed).unwrap();
    }

    fn read(&mut self, chunk: &mut [u8]) -> Vec<u8> {
        let length = self.stream.read(chunk).expect("the answer goes on");
        assert!(length > 0, "the server closed the connection");
        self.received_bytes += length;
        let Some(channel) = &mut self.channel else {
            return chunk[..length].to_vec();
        };
        let mut plain = Vec::new();
        let mut packed = &chunk[..length];
        while !packed.is_empty() {
            let taken = channel.receive(packed, &mut plain).unwrap();
            packed = &packed[taken..];
        }
        plain
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

/// Goes on with a login up to OK or ERR, and shows `saw` each packet of the server.
pub fn authenticate(
    stream: &mut TcpStream,
    mut login: ClientLogin<'_>,
    mut saw: impl FnMut(&[u8]),
) -> Result<(), ServerError> {
    let mut sequence = 2;
    loop {
        let (payload, last) = read_message(stream, sequence);
        sequence = last.wrapping_add(1);
        saw(&payload);
        let answer;
        (answer, login) = match login.hear(&payload).unwrap() {
            LoginStep::LoggedIn => return Ok(()),
            LoginStep::Refused(error) => return Err(error),
            LoginStep::Send(answer, login) => (answer, login),
            LoginStep::Encrypt {
                public_key,
                password,
                salt,
                login,
            } => (encrypt(&xor_with_salt(&password, &salt), public_key), login),
            LoginStep::Wait(next) => {
                login = next;
                continue;
            }
            LoginStep::UnknownPlugin(plugin) => panic!("{plugin}"),
            LoginStep::Surplus => panic!("{payload:?}"),
        };
        let mut packet = Vec::new();
        sequence = put_message(&mut packet, sequence, &answer);
        stream.write_all(&packet).unwrap();
    }
}

fn encrypt(password: &[u8], key: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key.pem");
    std::fs::write(&path, key).unwrap();
    let mut child = process::Command::new("openssl")
        .args([
            "pkeyutl",
            "-encrypt",
            "-pubin",
            "-pkeyopt",
            "rsa_padding_mode:oaep",
            "-inkey",
        ])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs openssl");
    child.stdin.take().unwrap().write_all(password).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
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
