//! TLS over a socket, driven by hand: no byte is read or written but when the caller asks.

use std::io::{self, Read as _, Write as _};

use rustls::Connection;

use super::socket::Socket;

/// What is read from the socket at once while much is coming, bytes. The library alone takes 4 KiB.
const SEALED_READ_BYTES: usize = 32 * 1024;
/// What the library takes at once, bytes: a read that fills it may leave more in the socket.
const LIBRARY_READ_BYTES: usize = 4 * 1024;

/// How far a handshake has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    Done,
    WantsRead,
    WantsWrite,
}

/// One side of a TLS connection.
pub(super) struct Tls {
    connection: Connection,
    /// Plain bytes that the library holds.
    unread_bytes: usize,
    /// Read from the socket, not given to the library yet from `sealed_at` on. Empty unless much is
    /// coming.
    sealed: Vec<u8>,
    sealed_at: usize,
    /// The peer said that nothing will follow.
    ended: bool,
}

impl Tls {
    pub(super) fn new(mut connection: Connection) -> Tls {
        // Bounded by the layers, which seal only when nothing waits.
        connection.set_buffer_limit(None);
        Tls {
            connection,
            unread_bytes: 0,
            sealed: Vec::new(),
            sealed_at: 0,
            ended: false,
        }
    }

    /// Goes as far as it can without waiting.
    pub(super) fn shake_hands(&mut self, socket: &Socket) -> io::Result<Handshake> {
        loop {
            if !self.flush(socket)? {
                return Ok(Handshake::WantsWrite);
            }
            if !self.connection.is_handshaking() {
                return Ok(Handshake::Done);
            }
            match self.connection.read_tls(&mut &*socket) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Ok(_) => self.process(socket)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Handshake::WantsRead);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether there is something to read that the socket doesn't know of.
    pub(super) fn has_unread(&self) -> bool {
        self.unread_bytes > 0 || self.sealed_at < self.sealed.len() || self.ended
    }

    /// Reads plain bytes; `WouldBlock` if there are none, zero at the end.
    pub(super) fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        let mut much_is_coming = false;
        loop {
            count += self.take(&mut buffer[count..])?;
            if count == buffer.len() || self.ended {
                return Ok(count);
            }
            let read = if self.sealed_at < self.sealed.len() {
                self.open_sealed(socket)
            } else if count > 0 && !much_is_coming {
                return Ok(count);
            } else {
                self.read_socket(socket, much_is_coming)
            };
            match read {
                Ok(more) => much_is_coming = more,
                Err(error) if count == 0 => return Err(error),
                // What is there is given first, and after a failure nothing more.
                Err(error) => {
                    self.ended |= error.kind() != io::ErrorKind::WouldBlock;
                    return Ok(count);
                }
            }
        }
    }

    /// Plain bytes that the library holds.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unread_bytes == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.connection.reader().read(buffer)?;
        self.unread_bytes -= count.min(self.unread_bytes);
        Ok(count)
    }

    /// Reads from the socket. Gives whether more can be expected there.
    fn read_socket(&mut self, socket: &Socket, much_is_coming: bool) -> io::Result<bool> {
        if !much_is_coming {
            self.sealed = Vec::new();
            self.sealed_at = 0;
            let count = self.connection.read_tls(&mut &*socket)?;
            self.ended |= count == 0;
            self.process(socket)?;
            return Ok(count == LIBRARY_READ_BYTES);
        }
        self.sealed.resize(SEALED_READ_BYTES, 0);
        self.sealed_at = 0;
        let read = socket.try_read(&mut self.sealed);
        let count = *read.as_ref().unwrap_or(&0);
        self.sealed.truncate(count);
        self.ended |= read? == 0;
        if count > 0 {
            self.open_sealed(socket)?;
        }
        Ok(count == SEALED_READ_BYTES)
    }

    /// Gives the library some of what was read. Gives whether more can be expected in the socket.
    fn open_sealed(&mut self, socket: &Socket) -> io::Result<bool> {
        let mut rest = &self.sealed[self.sealed_at..];
        let count = self.connection.read_tls(&mut rest)?;
        self.sealed_at += count;
        if count == 0 {
            // Nothing follows the peer's farewell.
            self.sealed_at = self.sealed.len();
        }
        self.process(socket)?;
        Ok(self.sealed.len() == SEALED_READ_BYTES)
    }

    fn process(&mut self, socket: &Socket) -> io::Result<()> {
        match self.connection.process_new_packets() {
            Ok(state) => {
                self.unread_bytes = state.plaintext_bytes_to_read();
                self.ended |= state.peer_has_closed();
                if self.connection.wants_write() {
                    // An answer of the library's own. What the socket doesn't take goes with the
                    // next write.
                    self.flush(socket)?;
                }
                Ok(())
            }
            Err(error) => {
                // The peer is told why, if the socket takes it at once.
                let _ = self.flush(socket);
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Encrypts. The records wait until [`Self::flush`].
    pub(super) fn seal(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(bytes)
    }

    /// Sends what waits; gives whether all of it is gone.
    pub(super) fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut &*socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Tells the peer that nothing will follow, if the socket takes it at once.
    pub(super) fn say_farewell(&mut self, socket: &Socket) {
        self.connection.send_close_notify();
        // A peer that is gone needs no farewell.
        let _ = self.flush(socket);
    }
}
