//! Streams and listeners over TCP or Unix sockets, as one type each.

use std::io::{self, Write as _};
use std::net::Shutdown;
use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

pub use crate::config::Endpoint;

/// A connected socket. Reads and writes never block; waiting is apart from them, so that a caller
/// may lend a buffer that it shares with others.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, with Nagle's algorithm off.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects, giving up after `limit`.
    pub async fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<Stream> {
        let connecting = async {
            match endpoint {
                Endpoint::Tcp { host, port } => {
                    let stream = TcpStream::connect((host.as_str(), *port)).await?;
                    stream.set_nodelay(true)?;
                    Ok(Stream::Tcp(stream))
                }
                Endpoint::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
            }
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        }
    }

    /// Reads what is there; `WouldBlock` if nothing is, zero at the end.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Stream::Tcp(stream) => stream.try_read(buffer),
            Stream::Unix(stream) => stream.try_read(buffer),
        };
        if read
            .as_ref()
            .is_ok_and(|count| *count > 0 && *count < buffer.len())
        {
            self.forget_readiness();
        }
        read
    }

    /// After a read that emptied the socket: the next one waits for news instead of asking the kernel
    /// in vain. Whatever arrives later is announced anew, as readiness is edge-triggered.
    fn forget_readiness(&self) {
        let nothing = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
        // The error is the message; there is no other.
        let _ = match self {
            Stream::Tcp(stream) => stream.try_io(Interest::READABLE, nothing),
            Stream::Unix(stream) => stream.try_io(Interest::READABLE, nothing),
        };
    }

    /// Writes what the socket takes; `WouldBlock` if that is nothing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Like [`Self::try_write`], but a full socket is zero bytes written, not an error.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Writes everything, waiting as long as it takes.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.write_now(rest)? {
                0 => self.writable().await?,
                written => rest = &rest[written..],
            }
        }
        Ok(())
    }

    /// Whether reading may give something; registers the task to be woken when it may.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
            Stream::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Waits until reading may give something.
    pub async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Waits until writing may take something.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.writable().await,
            Stream::Unix(stream) => stream.writable().await,
        }
    }

    /// Ends one or both directions at once, also for whoever waits on them.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => socket2::SockRef::from(stream).shutdown(how),
            Stream::Unix(stream) => socket2::SockRef::from(stream).shutdown(how),
        }
    }
}

/// An accepted socket on its way to the worker that will serve it.
#[derive(Debug)]
pub enum Accepted {
    /// Over TCP.
    Tcp(std::net::TcpStream),
    /// Over a Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Accepted {
    /// Hands the socket to the calling thread's runtime.
    pub fn into_stream(self) -> io::Result<Stream> {
        match self {
            Accepted::Tcp(stream) => {
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(TcpStream::from_std(stream)?))
            }
            Accepted::Unix(stream) => Ok(Stream::Unix(UnixStream::from_std(stream)?)),
        }
    }

    /// Writes what the socket takes. Past any runtime, which would first have to learn that a fresh socket
    /// can be written to.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Accepted::Tcp(stream) => (&mut &*stream).write(bytes),
            Accepted::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }
}

/// A listening socket. A Unix socket's file is removed when it is dropped.
#[derive(Debug)]
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over a Unix socket at this path.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Binds. A Unix socket's file left by a process that is gone is replaced; one that somebody
    /// still answers is an error.
    pub async fn bind(endpoint: &Endpoint, backlog: u32) -> io::Result<Listener> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let address = tokio::net::lookup_host((host.as_str(), *port))
                    .await?
                    .next()
                    .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
                let domain = socket2::Domain::for_address(address);
                let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
                socket.set_reuse_address(true)?;
                socket.set_nonblocking(true)?;
                socket.bind(&address.into())?;
                socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
                Ok(Listener::Tcp(TcpListener::from_std(socket.into())?))
            }
            Endpoint::Unix(path) => {
                if path.exists() {
                    if std::os::unix::net::UnixStream::connect(path).is_ok() {
                        return Err(io::Error::from(io::ErrorKind::AddrInUse));
                    }
                    std::fs::remove_file(path)?;
                }
                Ok(Listener::Unix(UnixListener::bind(path)?, path.clone()))
            }
        }
    }

    /// Where it listens, with the port that the system chose if zero was asked for.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match self {
            Listener::Tcp(listener) => {
                let address = listener.local_addr()?;
                Ok(Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                })
            }
            Listener::Unix(_, path) => Ok(Endpoint::Unix(path.clone())),
        }
    }

    /// Takes the next connection.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => Ok(Accepted::Tcp(listener.accept().await?.0.into_std()?)),
            Listener::Unix(listener, _) => {
                Ok(Accepted::Unix(listener.accept().await?.0.into_std()?))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Nothing to be done if it is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}
