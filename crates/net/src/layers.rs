//! The layers between a socket and plain bytes, and the bookkeeping of what is under way in them.

use std::io;

use remora_wire::compress::{Algorithm, Role};

use super::compression::Compression;
use super::socket::Socket;
use super::tls_layer::{Handshake, Tls};

/// How many plain bytes are sealed at a time. The rest waits with the caller, so that a peer that
/// doesn't read can't make the layers grow.
const SEALED_AT_ONCE_BYTES: usize = 64 * 1024;

/// What lies between the socket and the plain bytes.
#[derive(Default)]
pub(super) struct Layers {
    tls: Option<Tls>,
    compression: Option<Compression>,
    /// Plain bytes that were sealed but not yet called written: the caller will offer them again.
    owed_bytes: usize,
}

impl Layers {
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    pub(super) fn put_tls(&mut self, tls: Tls) {
        self.tls = Some(tls);
    }

    pub(super) fn put_compression(&mut self, algorithm: Algorithm, role: Role) {
        self.compression = Some(Compression::new(algorithm, role));
    }

    pub(super) fn shake_hands(&mut self, socket: &Socket) -> io::Result<Handshake> {
        match &mut self.tls {
            Some(tls) => tls.shake_hands(socket),
            None => Ok(Handshake::Done),
        }
    }

    /// Whether there is something to read that the socket doesn't know of.
    pub(super) fn has_unread(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::has_unread)
            || self
                .compression
                .as_ref()
                .is_some_and(Compression::has_unread)
    }

    /// See [`super::Stream::try_read`].
    pub(super) fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let tls = &mut self.tls;
        let mut below = |buffer: &mut [u8]| match tls {
            Some(tls) => tls.read(socket, buffer),
            None => socket.try_read(buffer),
        };
        match &mut self.compression {
            Some(compression) => compression.read(buffer, below),
            None => below(buffer),
        }
    }

    /// See [`super::Stream::write_now`].
    pub(super) fn write(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        loop {
            if !self.flush(socket)? {
                return Ok(written);
            }
            written += std::mem::take(&mut self.owed_bytes);
            let rest = bytes.get(written..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(bytes.len());
            }
            let piece = &rest[..rest.len().min(SEALED_AT_ONCE_BYTES)];
            self.seal(piece)?;
            self.owed_bytes = piece.len();
        }
    }

    /// Sends what is sealed; gives whether all of it is gone.
    fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        match (&mut self.tls, &mut self.compression) {
            (Some(tls), _) => tls.flush(socket),
            (None, Some(compression)) => flush_packed(compression, socket),
            (None, None) => Ok(true),
        }
    }

    /// Takes plain bytes to be sent.
    fn seal(&mut self, piece: &[u8]) -> io::Result<()> {
        match (&mut self.tls, &mut self.compression) {
            (Some(tls), Some(compression)) => {
                compression.pack(piece);
                let packed = compression.packed();
                let bytes = packed.len();
                tls.seal(packed)?;
                compression.sent(bytes);
                Ok(())
            }
            (Some(tls), None) => tls.seal(piece),
            (None, Some(compression)) => {
                compression.pack(piece);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Tells the peer that nothing will follow, as far as that can be said at once.
    pub(super) fn say_farewell(&mut self, socket: &Socket) {
        if let Some(tls) = &mut self.tls {
            tls.say_farewell(socket);
        }
    }
}

fn flush_packed(compression: &mut Compression, socket: &Socket) -> io::Result<bool> {
    while !compression.packed().is_empty() {
        match socket.try_write(compression.packed()) {
            Ok(count) => compression.sent(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
