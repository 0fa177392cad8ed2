//! Plain bytes to compressed packets.

use super::{
    Algorithm, COMPRESSED_HEADER_BYTES, CompressedHeader, PIECE_BYTES_MAX, STORED_BELOW_BYTES,
    engine,
};

/// Makes compressed packets. It holds no bytes back.
#[derive(Debug, Clone)]
pub struct Compressor {
    algorithm: Algorithm,
    sequence: u8,
}

impl Compressor {
    /// A compressor whose first packet has the number 0.
    pub fn new(algorithm: Algorithm) -> Compressor {
        Compressor {
            algorithm,
            sequence: 0,
        }
    }

    /// The next packet is the first of a command: numbers begin at 0 again.
    pub fn begin_command(&mut self) {
        self.sequence = 0;
    }

    /// The next packet follows one of the peer's, which had the number `sequence`.
    pub fn continue_after(&mut self, sequence: u8) {
        self.sequence = sequence.wrapping_add(1);
    }

    /// The number of the next packet.
    pub fn next_sequence(&self) -> u8 {
        self.sequence
    }

    /// Appends the packets that hold `plain`, complete ones. Nothing for nothing.
    ///
    /// A client must not push bytes of two commands at once: servers don't read the second one.
    pub fn push(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        for piece in plain.chunks(PIECE_BYTES_MAX) {
            self.push_piece(piece, out);
        }
    }

    fn push_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let head = out.len();
        let body = head + COMPRESSED_HEADER_BYTES;
        let mut packed_bytes = None;
        if piece.len() >= STORED_BELOW_BYTES {
            // Room for less than the piece: else there is nothing gained, and it is stored.
            out.resize(body + piece.len() - 1, 0);
            packed_bytes = engine::compress(self.algorithm, piece, &mut out[body..]);
        }
        let header = if let Some(packed_bytes) = packed_bytes {
            out.truncate(body + packed_bytes);
            CompressedHeader {
                packed_bytes,
                sequence: self.sequence,
                plain_bytes: piece.len(),
            }
        } else {
            out.resize(body, 0);
            out.extend_from_slice(piece);
            CompressedHeader {
                packed_bytes: piece.len(),
                sequence: self.sequence,
                plain_bytes: 0,
            }
        };
        out[head..body].copy_from_slice(&header.encode());
        self.sequence = self.sequence.wrapping_add(1);
    }
}
