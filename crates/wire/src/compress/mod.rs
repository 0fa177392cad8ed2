//! The compressed protocol: plain protocol bytes, cut into pieces, each in a packet of its own.
//!
//! A compressed packet has a header of three bytes of length, one of sequence number and three of
//! the length before compression; that last is 0 if the bytes are stored as they are, as peers do
//! below [`STORED_BELOW_BYTES`]. Where it is cut has nothing to do with the plain packets inside:
//! one may hold several of them, a part of one, or half a header. It begins with the first byte
//! after the OK that ends the login. Source: MySQL internals, "Compression"; zstd: "Connection
//! Compression Control".
//!
//! [`Channel`] is the whole of it for one connection. [`Compressor`] and [`Decompressor`] are its
//! parts.
//!
//! # What servers do with the numbers
//!
//! There are two rows of numbers, those of the compressed packets (*outer*) and those of the plain
//! packets inside them (*inner*). Measured on MariaDB 10.11 with zlib and on MySQL 8.0.31 with zlib
//! and zstd, which do the same:
//!
//! * The **outer** number counts on through both directions of an exchange and is 0 for the first
//!   packet of each command. It is checked: a command that began with 5 got error 1156, "Got
//!   packets out of order".
//! * The **inner** number of what a client sends isn't looked at: a ping numbered 7 was answered.
//! * The answer's first inner number is the **outer** number of its packet, not the one that
//!   follows the command's inner number: a short query sent in three compressed packets was
//!   answered from number 3, outer and inner. 17 MB in two plain packets and in five compressed
//!   ones: from number 5.
//! * At each flush the server sets its inner number to the outer one. In a multi-statement the
//!   inner numbers ran 1 to 7 through the first result and then began again at 2, as that OK was
//!   the second compressed packet.
//! * Two commands in one compressed packet aren't possible: the second was never answered.
//! * Too long a length in the header and bytes after the end of the stream are accepted with zlib,
//!   and not with zstd.
//!
//! So inner numbers as they come are of no use to a reader who checks them, and would be wrong on a
//! connection without compression: [`Channel`] numbers plain packets anew, as the plain protocol
//! would have.

mod channel;
mod compressor;
mod decompressor;
mod engine;

pub use channel::{Channel, Role};
pub use compressor::Compressor;
pub use decompressor::Decompressor;

/// Length of a compressed packet's header, bytes.
pub const COMPRESSED_HEADER_BYTES: usize = 7;
/// Shorter pieces are stored, as peers do (`MIN_COMPRESS_LENGTH`), bytes.
pub const STORED_BELOW_BYTES: usize = 50;
/// The most plain bytes that are put into one compressed packet. The protocol allows 2^24 - 1; less
/// bounds the memory that a high zstd level takes.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;
/// The lowest zstd level that a connection can ask for.
pub const ZSTD_LEVEL_MIN: i32 = 1;
/// The highest zstd level that a connection can ask for.
pub const ZSTD_LEVEL_MAX: i32 = 22;
/// The zstd level that a client asks for unless told otherwise.
pub const ZSTD_LEVEL_DEFAULT: i32 = 3;

/// How the pieces are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// zlib ([`crate::Capabilities::COMPRESS`]), at the level that servers use, 6.
    Zlib,
    /// zstd ([`crate::Capabilities::ZSTD_COMPRESSION`]).
    Zstd {
        /// 1 (fast) to 22 (small); anything else is taken for the nearest of them. It is the
        /// client's choice for both directions: the last byte of its login.
        level: i32,
    },
}

/// The header of a compressed packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompressedHeader {
    /// Length of what follows the header, bytes.
    packed_bytes: usize,
    sequence: u8,
    /// Length before compression, bytes; 0 means stored.
    plain_bytes: usize,
}

impl CompressedHeader {
    fn parse(bytes: [u8; COMPRESSED_HEADER_BYTES]) -> CompressedHeader {
        let length = |at: usize| {
            usize::from(bytes[at])
                | usize::from(bytes[at + 1]) << 8
                | usize::from(bytes[at + 2]) << 16
        };
        CompressedHeader {
            packed_bytes: length(0),
            sequence: bytes[3],
            plain_bytes: length(4),
        }
    }

    fn encode(self) -> [u8; COMPRESSED_HEADER_BYTES] {
        let mut bytes = [0; COMPRESSED_HEADER_BYTES];
        bytes[..3].copy_from_slice(&self.packed_bytes.to_le_bytes()[..3]);
        bytes[3] = self.sequence;
        bytes[4..].copy_from_slice(&self.plain_bytes.to_le_bytes()[..3]);
        bytes
    }
}
