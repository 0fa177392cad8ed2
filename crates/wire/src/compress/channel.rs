//! One compressed connection, seen from above as if it were plain.

use super::{Algorithm, Compressor, Decompressor};
use crate::WireError;
use crate::packet::{HEADER_BYTES, Header};

/// The first byte of a server's request for a local file.
const LOCAL_FILE_MARK: u8 = 0xfb;

/// Which part this side plays on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The peer is a client.
    Server,
    /// The peer is a server.
    Client,
}

/// The next numbers of a direction: of its compressed and of its plain packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Numbers {
    outer: u8,
    plain: u8,
}

/// Where one direction is.
#[derive(Debug, Clone, Default)]
struct Direction {
    /// What follows the last packet that went this way.
    next: Numbers,
    /// What the first packet this way has that answers what came the other way last.
    turn: Option<Numbers>,
    walk: Walk,
}

/// A walk over plain packets that looks at headers only, however they are cut.
#[derive(Debug, Clone, Default)]
struct Walk {
    head: [u8; HEADER_BYTES],
    head_length: usize,
    /// Bytes of the packet at hand still to come.
    skip: usize,
    /// Whether the next packet goes on with the payload of the last one.
    is_continued: bool,
    /// Whether the next byte of payload is a message's first.
    is_first_byte: bool,
    /// The first byte of the last message, if it had one.
    first_byte: Option<u8>,
}

impl Walk {
    fn is_between_messages(&self) -> bool {
        self.skip == 0 && self.head_length == 0 && !self.is_continued
    }

    /// Goes over payload bytes; gives how many there were.
    fn payload(&mut self, bytes: &[u8]) -> usize {
        let now = self.skip.min(bytes.len());
        if now > 0 && self.is_first_byte {
            self.is_first_byte = false;
            self.first_byte = Some(bytes[0]);
        }
        self.skip -= now;
        now
    }

    /// Takes one byte of a header; gives whether it was the last one, which is the packet's number.
    fn head_byte(&mut self, byte: u8) -> bool {
        self.head[self.head_length] = byte;
        self.head_length += 1;
        let Some(header) = Header::peek(&self.head[..self.head_length]) else {
            return false;
        };
        self.head_length = 0;
        if !self.is_continued {
            self.is_first_byte = true;
            self.first_byte = None;
        }
        self.skip = header.length;
        self.is_continued = header.is_continued();
        true
    }
}

/// Both directions of a compressed connection, from the first byte after the login on.
///
/// Above it there are plain packets with the numbers of the plain protocol, whatever the peer put
/// in. Bytes may come and go in any pieces. What is received should be taken as it is asked for: a
/// command that is taken before the one before it is answered is numbered rightly only if each is
/// one compressed packet (as all but long ones are).
#[derive(Debug, Clone)]
pub struct Channel {
    role: Role,
    compressor: Compressor,
    decompressor: Decompressor,
    inbound: Direction,
    outbound: Direction,
    /// The plain number of the next packet, if it isn't the one that follows the last.
    inbound_first: Option<u8>,
    /// A header that was sent in part: nothing of it has been passed on yet.
    held: Vec<u8>,
}

impl Channel {
    /// A channel before the first command.
    pub fn new(algorithm: Algorithm, role: Role) -> Channel {
        Channel {
            role,
            compressor: Compressor::new(algorithm),
            decompressor: Decompressor::new(algorithm),
            inbound: Direction::default(),
            outbound: Direction::default(),
            inbound_first: None,
            held: Vec::new(),
        }
    }

    /// Bytes held of a compressed packet that isn't complete.
    pub fn held_bytes(&self) -> usize {
        self.decompressor.held_bytes()
    }

    /// Takes bytes from the peer, up to the end of one compressed packet, and appends the plain
    /// packets' bytes. Gives how many were taken: if there are more, call again. After an error the
    /// connection is of no further use.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, WireError> {
        let start = out.len();
        let mut taken = 0;
        if !self.decompressor.is_in_body() {
            taken = self.decompressor.feed_header(bytes);
            if !self.decompressor.is_in_body() {
                return Ok(taken);
            }
            self.begin_inbound_packet(self.decompressor.last_sequence())?;
        }
        taken += self.decompressor.feed_body(&bytes[taken..], out)?;
        self.renumber(&mut out[start..]);
        Ok(taken)
    }

    /// Checks a compressed packet's number, and finds the plain number for what begins in it.
    fn begin_inbound_packet(&mut self, sequence: u8) -> Result<(), WireError> {
        let next = self.inbound.next;
        let turn = self.inbound.turn.take();
        let turn = turn.filter(|turn| turn.outer == sequence);
        let in_order = if sequence == next.outer {
            Ok(())
        } else {
            Err(WireError::OutOfOrder {
                expected: next.outer,
                got: sequence,
            })
        };
        if self.inbound_first.is_some() || !self.inbound.walk.is_between_messages() {
            // In the middle of a message only one number is right.
            in_order?;
        } else if self.role == Role::Server && sequence == 0 && !self.is_file_due(turn) {
            self.inbound_first = Some(0);
        } else if let Some(turn) = turn {
            self.inbound_first = Some(turn.plain);
        } else if self.role == Role::Server {
            in_order?;
        } else if in_order.is_err() {
            // The answer to a command that was sent before the last one, or a server's last words.
            self.inbound_first = Some(sequence);
        }
        self.inbound.next.outer = sequence.wrapping_add(1);
        self.outbound.turn = Some(self.inbound.next);
        Ok(())
    }

    /// Whether a compressed packet with the number 0 is a part of a file whose numbers came round
    /// to 0, and no command.
    fn is_file_due(&self, turn: Option<Numbers>) -> bool {
        self.in_local_file() && (turn.is_some() || self.inbound.next.outer == 0)
    }

    /// Whether the side in the server's part has asked for a file, and the client may be sending
    /// it.
    fn in_local_file(&self) -> bool {
        let from_server = match self.role {
            Role::Server => &self.outbound,
            Role::Client => &self.inbound,
        };
        from_server.walk.first_byte == Some(LOCAL_FILE_MARK)
    }

    /// Gives the packets in what has been received their plain numbers.
    fn renumber(&mut self, received: &mut [u8]) {
        let mut at = 0;
        while at < received.len() {
            let walk = &mut self.inbound.walk;
            if walk.skip > 0 {
                at += walk.payload(&received[at..]);
                continue;
            }
            if walk.head_byte(received[at]) {
                let first = self.inbound_first.take();
                let number = first.unwrap_or(self.inbound.next.plain);
                received[at] = number;
                self.inbound.next.plain = number.wrapping_add(1);
                self.outbound.turn = Some(self.inbound.next);
            }
            at += 1;
        }
    }

    /// Appends compressed packets that hold `plain`, which has the numbers of the plain protocol.
    /// All of it is in them, but for a header that isn't complete.
    pub fn send(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let passed = self.send_pieces(plain, out);
            self.held.extend_from_slice(&plain[passed..]);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(plain);
            let passed = self.send_pieces(&joined, out);
            joined.drain(..passed);
            self.held = joined;
        }
    }

    /// Sends all but a last incomplete header; gives how many bytes that were. A new command and a
    /// new answer begin a compressed packet.
    fn send_pieces(&mut self, plain: &[u8], out: &mut Vec<u8>) -> usize {
        let mut piece = 0;
        let mut at = 0;
        loop {
            at += self.outbound.walk.payload(&plain[at..]);
            let Some(header) = plain.get(at..).and_then(Header::peek) else {
                break;
            };
            if !self.outbound.walk.is_continued
                && let Some(outer) = self.outbound_restart(header.sequence)
            {
                self.push(&plain[piece..at], out);
                piece = at;
                self.compressor.continue_after(outer.wrapping_sub(1));
            }
            for byte in &plain[at..at + HEADER_BYTES] {
                self.outbound.walk.head_byte(*byte);
            }
            self.outbound.next.plain = header.sequence.wrapping_add(1);
            at += HEADER_BYTES;
        }
        self.push(&plain[piece..at], out);
        at
    }

    /// The number of the compressed packet that a message with the plain number `sequence` must
    /// begin, if it must begin one.
    fn outbound_restart(&mut self, sequence: u8) -> Option<u8> {
        let turn = self.outbound.turn;
        let due = turn.unwrap_or(self.outbound.next).plain;
        if self.role == Role::Client && sequence == 0 && !(self.in_local_file() && due == 0) {
            self.outbound.turn = None;
            return Some(0);
        }
        if let Some(turn) = turn.filter(|turn| turn.plain == sequence) {
            self.outbound.turn = None;
            return Some(turn.outer);
        }
        let is_next = sequence == self.outbound.next.plain;
        (self.role == Role::Server && !is_next).then_some(sequence)
    }

    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if piece.is_empty() {
            return;
        }
        self.compressor.push(piece, out);
        self.outbound.next.outer = self.compressor.next_sequence();
        self.inbound.turn = Some(self.outbound.next);
    }
}
