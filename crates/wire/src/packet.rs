//! Packets: a header of three bytes of length and one of sequence number, then the payload.
//!
//! A payload of 16 MiB − 1 or more is split: each full packet says "more follows", and the last one
//! is shorter, empty if need be. Source: MySQL internals, "MySQL Packets".

use crate::WireError;

/// Length of a packet header, bytes.
pub const HEADER_BYTES: usize = 4;
/// The largest payload of one packet, bytes. A packet of this length is continued by the next.
pub const PAYLOAD_BYTES_MAX: usize = 0xff_ffff;

/// The header of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload in this packet, bytes.
    pub length: usize,
    /// Sequence number: 0 for a command's first packet, then one more for each packet either way.
    pub sequence: u8,
}

impl Header {
    /// The header at the start of `bytes`, if it is complete.
    pub fn peek(bytes: &[u8]) -> Option<Header> {
        let &[a, b, c, sequence] = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        Some(Header { length, sequence })
    }

    /// The header as bytes.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, ..] = self.length.to_le_bytes();
        [a, b, c, self.sequence]
    }

    /// Whether the payload goes on in the next packet.
    pub fn is_continued(self) -> bool {
        self.length == PAYLOAD_BYTES_MAX
    }
}

/// How much of a message (one payload, in as many packets as it takes) a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The whole message.
    Complete {
        /// Bytes of the message with all its headers.
        bytes: usize,
        /// Sequence number of its last packet.
        last_sequence: u8,
        /// Whether it is a single packet, so that its payload lies in one piece after the header.
        single: bool,
    },
    /// Only a part. `known_bytes` is the least that the message will have.
    Partial {
        /// What is known of the message's length with headers, bytes.
        known_bytes: usize,
    },
}

/// Measures the message at the start of `bytes`, whose first packet must carry `first_sequence`.
pub fn extent(bytes: &[u8], first_sequence: u8) -> Result<Extent, WireError> {
    let mut at = 0;
    let mut expected = first_sequence;
    loop {
        let Some(header) = bytes.get(at..).and_then(Header::peek) else {
            return Ok(Extent::Partial {
                known_bytes: at + HEADER_BYTES,
            });
        };
        if header.sequence != expected {
            return Err(WireError::OutOfOrder {
                expected,
                got: header.sequence,
            });
        }
        let end = at + HEADER_BYTES + header.length;
        if end > bytes.len() {
            return Ok(Extent::Partial { known_bytes: end });
        }
        if !header.is_continued() {
            return Ok(Extent::Complete {
                bytes: end,
                last_sequence: expected,
                single: at == 0,
            });
        }
        at = end;
        expected = expected.wrapping_add(1);
    }
}

/// Appends `payload` as one message whose first packet has the number `sequence`; gives the number
/// that the next packet would have.
pub fn put_message(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) -> u8 {
    let mut sequence = sequence;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        let header = Header {
            length: now.len(),
            sequence,
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(now);
        sequence = sequence.wrapping_add(1);
        if !header.is_continued() {
            return sequence;
        }
        rest = later;
    }
}

/// The payload of a complete message that may span several packets.
///
/// `message` must be exactly the bytes that [`extent`] called complete.
pub fn join_payload(message: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some(header) = Header::peek(rest) {
        let body = &rest[HEADER_BYTES..];
        let (now, later) = body.split_at(header.length.min(body.len()));
        payload.extend_from_slice(now);
        rest = later;
    }
    payload
}
