//! A client that leaves at a byte of its choice, and tells what it got.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use remora_testkit::servers::{APP_PASSWORD, APP_USER, SCHEMA};
use remora_wire::Capabilities;
use remora_wire::auth::{AuthPacket, NATIVE_PASSWORD, native_password, salt_of};
use remora_wire::command::{Command, ResponseKind};
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{HEADER_BYTES, Header, put_message};
use remora_wire::walker::{Ending, Progress, ResponseWalker};

/// Longer without a byte is a hang.
const SILENCE_MAX: Duration = Duration::from_mins(2);

const CAPABILITIES: Capabilities = Capabilities::MYSQL
    .with(Capabilities::PROTOCOL_41)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::MULTI_RESULTS)
    .with(Capabilities::PS_MULTI_RESULTS)
    .with(Capabilities::CONNECT_WITH_DB);

/// Where the client leaves, bytes from the start of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Never,
    AfterSending(usize),
    AfterReceiving(usize),
}

/// Why it went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was answered.
    Complete,
    /// It left.
    Left,
    /// The other side closed.
    Closed,
}

/// What it saw.
#[derive(Debug, Clone)]
pub(crate) struct Played {
    pub(crate) end: End,
    pub(crate) sent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    /// Bytes sent and received up to the end of the login.
    pub(crate) login: (usize, usize),
    /// Where statement numbers are in what was received: they go on from session to session on
    /// MariaDB.
    pub(crate) statements_at: Vec<usize>,
}

pub(crate) struct Caller {
    stream: TcpStream,
    leave: Leave,
    played: Played,
    /// How much of what was received has been read.
    read: usize,
    /// The statement prepared last.
    statement_id: u32,
}

impl Caller {
    /// Logs in and runs `commands`, each a payload, one after the other.
    pub(crate) fn play(address: SocketAddr, leave: Leave, commands: &[Vec<u8>]) -> Played {
        let stream = TcpStream::connect_timeout(&address, SILENCE_MAX).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        stream.set_write_timeout(Some(SILENCE_MAX)).unwrap();
        let mut caller = Caller {
            stream,
            leave,
            played: Played {
                end: End::Complete,
                sent: Vec::new(),
                received: Vec::new(),
                login: (0, 0),
                statements_at: Vec::new(),
            },
            statement_id: 0,
            read: 0,
        };
        if let Err(end) = caller.run(commands) {
            caller.played.end = end;
        }
        if caller.played.end == End::Closed {
            // What was said before the end.
            while caller.receive().is_ok() {}
        }
        caller.played
    }

    fn run(&mut self, commands: &[Vec<u8>]) -> Result<(), End> {
        self.log_in()?;
        self.played.login = (self.played.sent.len(), self.played.received.len());
        for command in commands {
            let mut command = command.clone();
            if (0x17..=0x1a).contains(&command[0]) || command[0] == 0x1c {
                command[1..5].copy_from_slice(&self.statement_id.to_le_bytes());
            }
            let mut message = Vec::new();
            put_message(&mut message, 0, &command);
            self.send(&message)?;
            match Command::from_byte(command[0]).response_kind_with(&command[1..]) {
                ResponseKind::Nothing => {}
                ResponseKind::Authentication => self.authenticate(1)?,
                expect => self.read_answer(expect)?,
            }
        }
        Ok(())
    }

    fn log_in(&mut self) -> Result<(), End> {
        let (_, greeting) = self.packet()?;
        let Ok(greeting) = Greeting::parse(&greeting) else {
            // An error in its place.
            return Err(End::Closed);
        };
        let login = Login {
            capabilities: CAPABILITIES,
            packet_bytes_max: 64 << 20,
            collation: 45,
            user: APP_USER.into(),
            authentication: native_password(APP_PASSWORD.as_bytes(), &greeting.salt),
            schema: SCHEMA.into(),
            plugin: NATIVE_PASSWORD.into(),
        };
        self.send(&login.packet(1))?;
        self.authenticate(2)
    }

    /// Up to OK or ERR.
    fn authenticate(&mut self, first: u8) -> Result<(), End> {
        let mut expected = first;
        loop {
            let (sequence, payload) = self.packet()?;
            if payload.first() != Some(&0xff) {
                assert_eq!(sequence, expected, "{payload:?}");
            }
            match AuthPacket::parse(&payload).unwrap() {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Err => return Err(End::Closed),
                AuthPacket::Switch { data, .. } => {
                    let answer = native_password(APP_PASSWORD.as_bytes(), salt_of(data));
                    let mut packet = Vec::new();
                    expected = put_message(&mut packet, sequence.wrapping_add(1), &answer);
                    self.send(&packet)?;
                }
                AuthPacket::More(data) => panic!("{data:?}"),
            }
        }
    }

    fn read_answer(&mut self, expect: ResponseKind) -> Result<(), End> {
        let start = self.read;
        let mut walker = ResponseWalker::new(expect, CAPABILITIES);
        loop {
            let unread = &self.played.received[self.read..];
            let (used, progress) = walker.feed(unread).expect("an answer");
            self.read += used;
            match progress {
                Progress::More => self.receive()?,
                Progress::LocalFile => self.send_file()?,
                Progress::Done(summary) => {
                    if let Ending::Prepared { statement_id, .. } = summary.ending {
                        self.statement_id = statement_id;
                        self.played.statements_at.push(start + HEADER_BYTES + 1);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn send_file(&mut self) -> Result<(), End> {
        // The request is the last packet received, alone in its answer.
        let request = self.played.received[self.read - "\u{1}rows".len() - HEADER_BYTES + 3];
        let mut packets = Vec::new();
        let next = put_message(&mut packets, request.wrapping_add(1), b"1\n2\n");
        let next = put_message(&mut packets, next, b"3\n");
        put_message(&mut packets, next, b"");
        self.send(&packets)
    }

    fn packet(&mut self) -> Result<(u8, Vec<u8>), End> {
        loop {
            let unread = &self.played.received[self.read..];
            if let Some(header) = Header::peek(unread)
                && let Some(payload) = unread.get(HEADER_BYTES..HEADER_BYTES + header.length)
            {
                let payload = payload.to_vec();
                self.read += HEADER_BYTES + header.length;
                return Ok((header.sequence, payload));
            }
            self.receive()?;
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        let room = match self.leave {
            Leave::AfterSending(limit) => limit - self.played.sent.len(),
            _ => usize::MAX,
        };
        let now = &bytes[..bytes.len().min(room)];
        if self.stream.write_all(now).is_err() {
            return Err(End::Closed);
        }
        self.played.sent.extend_from_slice(now);
        if now.len() == room {
            return Err(End::Left);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), End> {
        let mut chunk = [0; 16 << 10];
        let room = match self.leave {
            Leave::AfterReceiving(limit) => limit - self.played.received.len(),
            _ => usize::MAX,
        };
        let room = room.min(chunk.len());
        if room == 0 {
            return Err(End::Left);
        }
        match self.stream.read(&mut chunk[..room]) {
            Ok(0) => Err(End::Closed),
            Ok(count) => {
                self.played.received.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Closed),
            Err(error) => panic!("a hang: {error}"),
        }
    }
}
