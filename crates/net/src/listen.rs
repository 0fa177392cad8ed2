//! Accepting connections over TCP or Unix sockets, as one type each.

use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

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

/// The file of a Unix socket. It is removed when this is dropped, unless somebody else may still
/// listen there.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    stays: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.stays {
            // Nothing to be done if it is gone already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A socket that listens. Nobody accepts from it yet: what connects waits in the system's queue.
#[derive(Debug)]
pub struct Bound(BoundSocket);

#[derive(Debug)]
enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

impl Bound {
    /// Binds. A Unix socket's file left by a process that is gone is replaced; one that somebody
    /// still answers is an error.
    pub fn bind(endpoint: &Endpoint, backlog: u32, keepalive: Keepalive) -> io::Result<Bound> {
        let bound = match endpoint {
            Endpoint::Tcp { host, port } => {
                let address = first_address(host, *port)?;
                let domain = socket2::Domain::for_address(address);
                let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
                socket.set_reuse_address(true)?;
                socket.bind(&address.into())?;
                Bound(BoundSocket::Tcp(socket.into()))
            }
            Endpoint::Unix(path) => {
                if path.exists() {
                    if std::os::unix::net::UnixStream::connect(path).is_ok() {
                        return Err(io::Error::from(io::ErrorKind::AddrInUse));
                    }
                    std::fs::remove_file(path)?;
                }
                let listener = std::os::unix::net::UnixListener::bind(path)?;
                let path = path.clone();
                Bound(BoundSocket::Unix(
                    listener,
                    SocketFile { path, stays: false },
                ))
            }
        };
        bound.listen(backlog, keepalive)?;
        Ok(bound)
    }

    /// Of a TCP socket that somebody else has bound.
    pub fn from_tcp(listener: std::net::TcpListener) -> Bound {
        Bound(BoundSocket::Tcp(listener))
    }

    /// Of a Unix socket that somebody else has bound, and whose file is theirs. `None` if it has no
    /// path.
    pub fn from_unix(listener: std::os::unix::net::UnixListener) -> Option<Bound> {
        let path = listener.local_addr().ok()?.as_pathname()?.to_owned();
        let file = SocketFile { path, stays: true };
        Some(Bound(BoundSocket::Unix(listener, file)))
    }

    /// Starts listening with this backlog. Accepted connections get this keepalive.
    pub fn listen(&self, backlog: u32, keepalive: Keepalive) -> io::Result<()> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        match &self.0 {
            BoundSocket::Tcp(listener) => {
                let socket = socket2::SockRef::from(listener);
                // Accepted connections have it from here.
                keepalive.set(&socket)?;
                socket.listen(backlog)
            }
            BoundSocket::Unix(listener, _) => socket2::SockRef::from(listener).listen(backlog),
        }
    }

    /// Whether clients that connect to this endpoint reach this socket.
    pub fn is_at(&self, endpoint: &Endpoint) -> bool {
        match (&self.0, endpoint) {
            (BoundSocket::Tcp(listener), Endpoint::Tcp { host, port }) => {
                let address = first_address(host, *port).ok();
                address.is_some() && listener.local_addr().ok() == address
            }
            (BoundSocket::Unix(_, file), Endpoint::Unix(path)) => {
                file.path == *path && is_socket(path)
            }
            _ => false,
        }
    }

    /// Where it listens, with the port that the system chose if zero was asked for.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match &self.0 {
            BoundSocket::Tcp(listener) => {
                let address = listener.local_addr()?;
                Ok(Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                })
            }
            BoundSocket::Unix(_, file) => Ok(Endpoint::Unix(file.path.clone())),
        }
    }

    /// Another process also holds this socket. So a Unix socket's file isn't removed when this is
    /// dropped.
    pub fn keep_file(&mut self) {
        match &mut self.0 {
            BoundSocket::Tcp(_) => {}
            BoundSocket::Unix(_, file) => file.stays = true,
        }
    }

    /// Hands it to the calling thread's runtime.
    pub fn into_listener(self) -> io::Result<Listener> {
        match self.0 {
            BoundSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Ok(Listener(Accepting::Tcp(TcpListener::from_std(listener)?)))
            }
            BoundSocket::Unix(listener, file) => {
                listener.set_nonblocking(true)?;
                let listener = UnixListener::from_std(listener)?;
                Ok(Listener(Accepting::Unix(listener, file)))
            }
        }
    }
}

impl AsFd for Bound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            BoundSocket::Tcp(listener) => listener.as_fd(),
            BoundSocket::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// The address that is bound for a name.
fn first_address(host: &str, port: u16) -> io::Result<SocketAddr> {
    (host, port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// A listening socket in a runtime. A Unix socket's file is removed when it is dropped, unless
/// somebody else holds the socket as well.
#[derive(Debug)]
pub struct Listener(Accepting);

#[derive(Debug)]
enum Accepting {
    Tcp(TcpListener),
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "removed with it")] SocketFile,
    ),
}

impl Listener {
    /// Takes the next connection.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match &self.0 {
            Accepting::Tcp(listener) => Ok(Accepted::Tcp(listener.accept().await?.0.into_std()?)),
            Accepting::Unix(listener, _) => {
                Ok(Accepted::Unix(listener.accept().await?.0.into_std()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(directory: &tempfile::TempDir) -> Endpoint {
        Endpoint::Unix(directory.path().join("socket"))
    }

    fn bind(endpoint: &Endpoint) -> io::Result<Bound> {
        Bound::bind(endpoint, 16, Keepalive::after_ms(1_000))
    }

    #[test]
    fn a_unix_sockets_file_goes_with_it_unless_somebody_else_holds_the_socket() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = at(&directory);
        let path = directory.path().join("socket");
        let mut first = bind(&endpoint).unwrap();
        assert!(bind(&endpoint).is_err(), "somebody listens there");
        first.keep_file();
        drop(first);
        assert!(path.exists());
        drop(bind(&endpoint).expect("nobody answers there any more"));
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_else_has_bound_is_where_it_is() {
        let any: Endpoint = "127.0.0.1:0".parse().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bound = Bound::from_tcp(listener);
        let endpoint = bound.endpoint().unwrap();
        assert!(bound.is_at(&endpoint));
        assert!(!bound.is_at(&any), "the system would choose another port");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let bound = Bound::from_unix(listener).unwrap();
        assert!(bound.is_at(&at(&directory)));
        assert!(!bound.is_at(&endpoint));
        std::fs::remove_file(&path).unwrap();
        assert!(!bound.is_at(&at(&directory)), "nobody finds it any more");
    }
}
