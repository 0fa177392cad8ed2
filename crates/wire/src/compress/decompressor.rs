//! Compressed packets to plain bytes.

use super::{Algorithm, COMPRESSED_HEADER_BYTES, CompressedHeader, engine};
use crate::WireError;

/// What is kept of the buffer between packets, bytes. It is larger only while a larger packet is
/// being read.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Reads compressed packets, however they are cut.
///
/// It holds at most one packet (16 MiB), and only one that is compressed and came in pieces: stored
/// bytes pass as they come.
#[derive(Debug, Clone)]
pub struct Decompressor {
    algorithm: Algorithm,
    head: [u8; COMPRESSED_HEADER_BYTES],
    head_length: usize,
    /// What has come of the compressed packet at hand.
    packed: Vec<u8>,
    /// What has been passed of the stored packet at hand, bytes.
    passed_bytes: usize,
    last_sequence: u8,
}

impl Decompressor {
    /// A decompressor before the first packet.
    pub fn new(algorithm: Algorithm) -> Decompressor {
        Decompressor {
            algorithm,
            head: [0; COMPRESSED_HEADER_BYTES],
            head_length: 0,
            packed: Vec::new(),
            passed_bytes: 0,
            last_sequence: 0,
        }
    }

    /// The number of the last packet whose header has come.
    pub fn last_sequence(&self) -> u8 {
        self.last_sequence
    }

    /// Whether no packet has been begun.
    pub fn is_between_packets(&self) -> bool {
        self.head_length == 0
    }

    /// Bytes held of a packet that isn't complete.
    pub fn held_bytes(&self) -> usize {
        self.packed.len()
    }

    /// Takes bytes up to the end of the packet at hand and appends what is plain of it. Gives how
    /// many were taken: if there are more, call again. So `out` grows by one packet's bytes at
    /// most. After an error the stream is of no further use.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, WireError> {
        let taken = self.feed_header(bytes);
        if !self.is_in_body() {
            return Ok(taken);
        }
        Ok(taken + self.feed_body(&bytes[taken..], out)?)
    }

    /// Takes what is missing of a header; gives how many bytes that were.
    pub(super) fn feed_header(&mut self, bytes: &[u8]) -> usize {
        let taken = (COMPRESSED_HEADER_BYTES - self.head_length).min(bytes.len());
        let end = self.head_length + taken;
        self.head[self.head_length..end].copy_from_slice(&bytes[..taken]);
        self.head_length = end;
        if end == COMPRESSED_HEADER_BYTES {
            self.last_sequence = CompressedHeader::parse(self.head).sequence;
        }
        taken
    }

    /// Whether a packet's header is complete and its end has not come.
    pub(super) fn is_in_body(&self) -> bool {
        self.head_length == COMPRESSED_HEADER_BYTES
    }

    /// Takes bytes of the body, when the header is complete; gives how many.
    pub(super) fn feed_body(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Result<usize, WireError> {
        let header = CompressedHeader::parse(self.head);
        let missing = header.packed_bytes - self.packed.len() - self.passed_bytes;
        let (now, is_end) = match rest.get(..missing) {
            Some(now) => (now, true),
            None => (rest, false),
        };
        if header.plain_bytes == 0 {
            out.extend_from_slice(now);
            self.passed_bytes += now.len();
        } else if is_end && self.packed.is_empty() {
            engine::decompress(self.algorithm, now, header.plain_bytes, out)?;
        } else {
            self.packed.extend_from_slice(now);
            if is_end {
                engine::decompress(self.algorithm, &self.packed, header.plain_bytes, out)?;
            }
        }
        if is_end {
            self.packed.clear();
            self.packed.shrink_to(KEPT_BYTES_MAX);
            self.passed_bytes = 0;
            self.head_length = 0;
        }
        Ok(now.len())
    }
}
