//! A connected TCP or Unix socket, without layers.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

#[cfg(any(test, fuzzing, feature = "simulation"))]
use super::memory::MemorySocket;
use super::{Endpoint, Keepalive};

/// A connected socket that never blocks.
#[derive(Debug)]
pub(super) enum Socket {
    /// Over TCP, with Nagle's algorithm off.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// In memory, for tests and fuzzing.
    #[cfg(any(test, fuzzing, feature = "simulation"))]
    Memory(MemorySocket),
}

impl Socket {
    pub(super) async fn connect(endpoint: &Endpoint, keepalive: Keepalive) -> io::Result<Socket> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                keepalive.set(&socket2::SockRef::from(&stream))?;
                Ok(Socket::Tcp(stream))
            }
            Endpoint::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path).await?)),
        }
    }

    /// Reads what is there; `WouldBlock` if nothing is, zero at the end.
    #[inline]
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Socket::Tcp(stream) => stream.try_read(buffer),
            Socket::Unix(stream) => stream.try_read(buffer),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => return socket.try_read(buffer),
        };
        if read
            .as_ref()
            .is_ok_and(|count| *count > 0 && *count < buffer.len())
        {
            self.forget_readiness();
        }
        read
    }

    /// After a read that emptied the socket: the next one waits for news instead of asking the
    /// kernel in vain. Whatever arrives later is announced anew, as readiness is edge-triggered.
    fn forget_readiness(&self) {
        let nothing = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
        // The error is the message; there is no other.
        let _ = match self {
            Socket::Tcp(stream) => stream.try_io(Interest::READABLE, nothing),
            Socket::Unix(stream) => stream.try_io(Interest::READABLE, nothing),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(_) => nothing(),
        };
    }

    /// Writes what the socket takes; `WouldBlock` if that is nothing.
    #[inline]
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write(bytes),
            Socket::Unix(stream) => stream.try_write(bytes),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => socket.try_write(bytes),
        }
    }

    /// The same with pieces that lie apart.
    pub(super) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(pieces),
            Socket::Unix(stream) => stream.try_write_vectored(pieces),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => {
                socket.try_write(pieces.iter().find(|it| !it.is_empty()).map_or(&[], |it| it))
            }
        }
    }

    /// Whether reading may give something; registers the task to be woken when it may.
    #[inline]
    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_read_ready(cx),
            Socket::Unix(stream) => stream.poll_read_ready(cx),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => socket.poll_read_ready(cx),
        }
    }

    /// Waits until reading may give something.
    pub(super) async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Waits until writing may take something.
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.writable().await,
            Socket::Unix(stream) => stream.writable().await,
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => std::future::poll_fn(|cx| socket.poll_write_ready(cx)).await,
        }
    }

    /// Ends one or both directions at once, also for whoever waits on them.
    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => socket2::SockRef::from(stream).shutdown(how),
            Socket::Unix(stream) => socket2::SockRef::from(stream).shutdown(how),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(socket) => {
                socket.shutdown(how);
                Ok(())
            }
        }
    }

    /// The other side's address and this side's; `None` over a Unix socket.
    pub(super) fn addresses(&self) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
        match self {
            Socket::Tcp(stream) => Ok(Some((stream.peer_addr()?, stream.local_addr()?))),
            Socket::Unix(_) => Ok(None),
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(_) => Ok(None),
        }
    }

    /// Whether the bytes never leave this host.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Socket::Tcp(stream) => stream
                .peer_addr()
                .is_ok_and(|address| canonical(address.ip()).is_loopback()),
            Socket::Unix(_) => true,
            #[cfg(any(test, fuzzing, feature = "simulation"))]
            Socket::Memory(_) => true,
        }
    }
}

/// An IPv4 address that came in IPv6's form, as itself.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Reads and writes for those who want the standard traits.
impl io::Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_read(buffer)
    }
}

impl io::Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
