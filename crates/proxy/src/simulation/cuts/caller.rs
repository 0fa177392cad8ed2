//! A client that leaves at a byte that it is given, and tells what it got.

use std::io::ErrorKind;

use remora_net::Stream;
use remora_wire::command::{Command, ResponseKind};
use remora_wire::packet::{Extent, HEADER_BYTES, extent, put_message};
use remora_wire::walker::{Progress, ResponseWalker};

use super::super::client::Client;
use super::super::server::CAPABILITIES;

/// Where the client leaves, bytes from the start of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    Never,
    AfterSending(usize),
    AfterReceiving(usize),
}

/// Why it went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Everything was answered.
    Complete,
    /// It left.
    Left,
    /// The other side closed.
    Closed,
}

/// What it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Played {
    pub(super) end: End,
    pub(super) sent: Vec<u8>,
    pub(super) received: Vec<u8>,
    /// Bytes sent and received up to the end of the login.
    pub(super) login: (usize, usize),
}

struct Caller {
    stream: Stream,
    leave: Leave,
    played: Played,
    /// How much of what was received has been read.
    read: usize,
}

/// Logs in and sends commands, each a payload, one after the other.
pub(super) async fn play(stream: Stream, leave: Leave, commands: Vec<Vec<u8>>) -> Played {
    let played = Played {
        end: End::Complete,
        sent: Vec::new(),
        received: Vec::new(),
        login: (0, 0),
    };
    let mut caller = Caller {
        stream,
        leave,
        played,
        read: 0,
    };
    if let Err(end) = caller.run(&commands).await {
        caller.played.end = end;
    }
    if caller.played.end == End::Closed {
        // What was said before the end.
        while caller.receive().await.is_ok() {}
    }
    caller.played
}

impl Caller {
    async fn run(&mut self, commands: &[Vec<u8>]) -> Result<(), End> {
        self.packet(0).await?;
        self.send(&Client::login()).await?;
        self.packet(2).await?;
        self.played.login = (self.played.sent.len(), self.played.received.len());
        for command in commands {
            let mut message = Vec::new();
            put_message(&mut message, 0, command);
            self.send(&message).await?;
            match Command::from_byte(command[0]).response_kind_with(&command[1..]) {
                ResponseKind::Nothing => {}
                ResponseKind::Authentication => {
                    self.packet(1).await?;
                }
                expect => self.read_answer(expect).await?,
            }
        }
        Ok(())
    }

    /// Takes a packet with this number.
    async fn packet(&mut self, number: u8) -> Result<(), End> {
        loop {
            let unread = &self.played.received[self.read..];
            match extent(unread, number) {
                Ok(Extent::Complete { bytes, .. }) => {
                    let is_error = unread.get(HEADER_BYTES) == Some(&0xff);
                    self.read += bytes;
                    return if is_error { Err(End::Closed) } else { Ok(()) };
                }
                // An error in place of a greeting or an answer, whatever its number.
                Err(_) => return Err(End::Closed),
                Ok(_) => self.receive().await?,
            }
        }
    }

    async fn read_answer(&mut self, expect: ResponseKind) -> Result<(), End> {
        let mut walker = ResponseWalker::new(expect, CAPABILITIES);
        loop {
            let unread = &self.played.received[self.read..];
            let (used, progress) = walker.feed(unread).expect("an answer");
            self.read += used;
            match progress {
                Progress::More => self.receive().await?,
                Progress::LocalFile => self.send_file().await?,
                Progress::Done(_) => return Ok(()),
            }
        }
    }

    /// The request was the first packet of its answer.
    async fn send_file(&mut self) -> Result<(), End> {
        let mut packets = Vec::new();
        let mut number = 2;
        for piece in [&b"1\n2\n"[..], b"3\n", b""] {
            number = put_message(&mut packets, number, piece);
        }
        self.send(&packets).await
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        let room = match self.leave {
            Leave::AfterSending(limit) => limit - self.played.sent.len(),
            _ => usize::MAX,
        };
        let now = &bytes[..bytes.len().min(room)];
        if self.stream.write_all(now).await.is_err() {
            return Err(End::Closed);
        }
        self.played.sent.extend_from_slice(now);
        if now.len() == room {
            return Err(End::Left);
        }
        Ok(())
    }

    async fn receive(&mut self) -> Result<(), End> {
        let room = match self.leave {
            Leave::AfterReceiving(limit) => limit - self.played.received.len(),
            _ => usize::MAX,
        };
        let mut chunk = [0; 256];
        let room = room.min(chunk.len());
        if room == 0 {
            return Err(End::Left);
        }
        loop {
            match self.stream.try_read(&mut chunk[..room]) {
                Ok(0) => return Err(End::Closed),
                Ok(count) => {
                    self.played.received.extend_from_slice(&chunk[..count]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream.readable().await.map_err(|_| End::Closed)?;
                }
                Err(_) => return Err(End::Closed),
            }
        }
    }
}
