//! Accepting connections over TCP or Unix sockets, as one type each.

use std::io::{self, Write as _};
use std::path::PathBuf;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::socket::Socket;
use super::{Endpoint, Keepalive, Stream};

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
                Ok(Stream::over(Socket::Tcp(TcpStream::from_std(stream)?)))
            }
            Accepted::Unix(stream) => {
                let stream = UnixStream::from_std(stream)?;
                Ok(Stream::over(Socket::Unix(stream)))
            }
        }
    }

    /// Writes what the socket takes. Past any runtime, which would first have to learn that a fresh
    /// socket can be written to.
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
    pub async fn bind(
        endpoint: &Endpoint,
        backlog: u32,
        keepalive: Keepalive,
    ) -> io::Result<Listener> {
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
                // Accepted connections have it from here.
                keepalive.set(&socket2::SockRef::from(&socket))?;
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
