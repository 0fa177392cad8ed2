//! Streams and listeners over TCP or Unix sockets, and what may lie on them.
//!
//! ```text
//! socket (TCP or Unix) ─► TLS, if any ─► compressed protocol, if any ─► plain protocol bytes
//! ```
//!
//! Whoever holds a [`Stream`] sees the plain bytes only. The layers are put on while a session logs
//! in.

mod compression;
mod endpoint;
mod keepalive;
mod layers;
mod listen;
#[cfg(any(test, fuzzing, feature = "simulation"))]
mod memory;
mod proxy_protocol;
mod socket;
pub mod tls;
mod tls_layer;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use remora_wire::compress::{Algorithm, Role};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

pub use self::endpoint::{Endpoint, NotAnEndpoint};
pub use self::keepalive::Keepalive;
pub use self::listen::{Accepted, Bound, Listener};
pub use self::proxy_protocol::{
    Addresses, ProxyProtocol, header as proxy_header, receive as receive_proxy_header,
};

use self::layers::Layers;
use self::socket::Socket;
use self::tls_layer::{Handshake, Tls};

/// A connection. Reads and writes never block; waiting is apart from them, so that a caller
/// may lend a buffer that it shares with others.
pub struct Stream {
    socket: Socket,
    /// Empty, and so as fast as the socket alone, until a layer is put on.
    layers: OnceCell<Box<RefCell<Layers>>>,
    /// Bytes written so far, before any layer.
    written: Cell<u64>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("socket", &self.socket)
            .field("layered", &self.layers.get().is_some())
            .field("written", &self.written.get())
            .finish()
    }
}

impl Stream {
    fn over(socket: Socket) -> Stream {
        Stream {
            socket,
            layers: OnceCell::new(),
            written: Cell::new(0),
        }
    }

    /// Both ends of a connection within this thread that holds so many bytes in each direction.
    #[cfg(any(test, fuzzing, feature = "simulation"))]
    pub fn pair(bytes_max: usize) -> (Stream, Stream) {
        let (near, far) = memory::MemorySocket::pair(bytes_max);
        let over = |end| Stream::over(Socket::Memory(end));
        (over(near), over(far))
    }

    /// Connects, giving up after `limit`.
    pub async fn connect(
        endpoint: &Endpoint,
        limit: Duration,
        keepalive: Keepalive,
    ) -> io::Result<Stream> {
        match tokio::time::timeout(limit, Socket::connect(endpoint, keepalive)).await {
            Ok(result) => result.map(Stream::over),
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        }
    }

    /// Reads what is there; `WouldBlock` if nothing is, zero at the end.
    #[inline]
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.layers.get() {
            None => self.socket.try_read(buffer),
            Some(layers) => layers.borrow_mut().read(&self.socket, buffer),
        }
    }

    /// Writes what is taken at once; zero bytes if that is nothing.
    ///
    /// Whoever gets fewer bytes written than it offered must offer the rest again, as it is and
    /// before anything else, when [`Self::writable`] says so: a layer may hold the rest in sealed
    /// form already, and it is this next call that sends it.
    #[inline]
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.layers.get() {
            None => match self.socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                other => other?,
            },
            Some(layers) => layers.borrow_mut().write(&self.socket, bytes)?,
        };
        self.written.set(self.written.get() + written as u64);
        Ok(written)
    }

    /// How many bytes were written so far, as they were before any layer.
    #[inline]
    pub fn bytes_written(&self) -> u64 {
        self.written.get()
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
    #[inline]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.layers.get() {
            Some(layers) if layers.borrow().has_unread() => Poll::Ready(Ok(())),
            _ => self.socket.poll_read_ready(cx),
        }
    }

    /// Waits until reading may give something.
    pub async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Waits until writing may take something.
    pub async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Ends one or both directions at once, also for whoever waits on them.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    /// The other side's address and this side's; `None` over a Unix socket.
    pub fn addresses(&self) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
        self.socket.addresses()
    }

    /// Whether the other side is on this host: a Unix socket, or an address such as 127.0.0.1.
    pub fn is_local(&self) -> bool {
        self.socket.is_local()
    }

    /// Whether it is a Unix socket, which clients and servers hold to be as good as TLS.
    pub fn is_unix(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    /// Whether the bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        self.layers
            .get()
            .is_some_and(|layers| layers.borrow().is_tls())
    }

    /// Puts the compressed protocol on, as the side that plays `role`. What was read or written so
    /// far was not compressed.
    pub fn compress(&self, algorithm: Algorithm, role: Role) {
        self.layers().borrow_mut().put_compression(algorithm, role);
    }

    /// Whether the compressed protocol is spoken on it.
    pub fn is_compressed(&self) -> bool {
        self.layers
            .get()
            .is_some_and(|layers| layers.borrow().is_compressed())
    }

    fn layers(&self) -> &RefCell<Layers> {
        self.layers.get_or_init(Box::default)
    }

    /// Puts TLS on, as the side that has the certificate. An error leaves the stream good for
    /// nothing.
    pub async fn accept_tls(&self, config: Arc<ServerConfig>) -> io::Result<()> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        self.shake_hands(Tls::new(connection.into())).await
    }

    /// Puts TLS on, as the side that looks at the certificate of `name`. An error leaves the stream
    /// good for nothing.
    pub async fn connect_tls(
        &self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<()> {
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        self.shake_hands(Tls::new(connection.into())).await
    }

    async fn shake_hands(&self, tls: Tls) -> io::Result<()> {
        self.layers().borrow_mut().put_tls(tls);
        loop {
            let step = self.layers().borrow_mut().shake_hands(&self.socket)?;
            match step {
                Handshake::Done => return Ok(()),
                Handshake::WantsRead => self.socket.readable().await?,
                Handshake::WantsWrite => self.socket.writable().await?,
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(layers) = self.layers.get_mut() {
            layers.get_mut().say_farewell(&self.socket);
        }
    }
}
