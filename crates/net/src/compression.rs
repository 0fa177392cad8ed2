//! The compressed protocol over a socket or TLS.

use std::io;

use remora_wire::compress::{Algorithm, Channel, Role};

/// How much is read at once, bytes.
const READ_BYTES: usize = 16 * 1024;
/// What each buffer keeps while nothing is in it, bytes.
const KEPT_BYTES: usize = 4 * 1024;

/// One side of a compressed connection.
pub(super) struct Compression {
    channel: Channel,
    /// Plain bytes, not read yet from `unread_at` on.
    unread: Vec<u8>,
    unread_at: usize,
    /// Compressed packets that came together with those before, from `packed_in_at` on.
    packed_in: Vec<u8>,
    packed_in_at: usize,
    /// Compressed packets to be sent, from `packed_out_at` on.
    packed_out: Vec<u8>,
    packed_out_at: usize,
}

impl Compression {
    pub(super) fn new(algorithm: Algorithm, role: Role) -> Compression {
        Compression {
            channel: Channel::new(algorithm, role),
            unread: Vec::new(),
            unread_at: 0,
            packed_in: Vec::new(),
            packed_in_at: 0,
            packed_out: Vec::new(),
            packed_out_at: 0,
        }
    }

    /// Whether there is something to read without the layer below. Bytes of an incomplete packet
    /// don't count: the channel has taken them.
    pub(super) fn has_unread(&self) -> bool {
        self.unread_at < self.unread.len() || self.packed_in_at < self.packed_in.len()
    }

    /// Reads plain bytes; `below` reads compressed ones. One compressed packet is opened at a time,
    /// when it is asked for.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        mut below: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let unread = &self.unread[self.unread_at..];
            if !unread.is_empty() || buffer.is_empty() {
                let count = unread.len().min(buffer.len());
                buffer[..count].copy_from_slice(&unread[..count]);
                self.unread_at += count;
                return Ok(count);
            }
            empty(&mut self.unread, &mut self.unread_at);
            let packed = &self.packed_in[self.packed_in_at..];
            if packed.is_empty() {
                empty(&mut self.packed_in, &mut self.packed_in_at);
                self.packed_in.resize(READ_BYTES, 0);
                let read = below(&mut self.packed_in);
                self.packed_in.truncate(*read.as_ref().unwrap_or(&0));
                if read? == 0 {
                    return Ok(0);
                }
                continue;
            }
            let taken = self
                .channel
                .receive(packed, &mut self.unread)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.packed_in_at += taken;
        }
    }

    /// Compresses; the packets are in [`Self::packed`] then.
    pub(super) fn pack(&mut self, plain: &[u8]) {
        self.channel.send(plain, &mut self.packed_out);
    }

    /// What is to be sent.
    pub(super) fn packed(&self) -> &[u8] {
        &self.packed_out[self.packed_out_at..]
    }

    /// So much of it was sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.packed_out_at += bytes;
        if self.packed().is_empty() {
            empty(&mut self.packed_out, &mut self.packed_out_at);
        }
    }
}

fn empty(buffer: &mut Vec<u8>, at: &mut usize) {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
    *at = 0;
}
