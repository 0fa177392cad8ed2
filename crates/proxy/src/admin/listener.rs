//! A listener that holds no more connections than it may, and none for longer than it may.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use crate::config::options::AdminOptions;

/// How long accepting pauses when the system refuses, for want of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts while there are places. A client that says nothing loses its place in time, so that
/// those who wait behind it are served.
#[derive(Debug)]
pub(super) struct BoundedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    connection_lives: Duration,
}

impl BoundedListener {
    /// Needs to be called within a runtime.
    pub(super) fn new(socket: std::net::TcpListener, options: &AdminOptions) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::from_std(socket)?,
            places: Arc::new(Semaphore::new(options.connections_max)),
            connection_lives: Duration::from_millis(options.request_timeout_ms),
        })
    }
}

impl axum::serve::Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BoundedStream, SocketAddr) {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                // Nothing closes the semaphore; were it closed, nothing would be accepted any more.
                std::future::pending::<()>().await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let ends = Box::pin(tokio::time::sleep(self.connection_lives));
                    return (
                        BoundedStream {
                            stream,
                            ends,
                            _place: place,
                        },
                        address,
                    );
                }
                Err(error) => {
                    tracing::debug!(%error, "the admin listener can't accept");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends in time, whatever its client does.
#[derive(Debug)]
pub(super) struct BoundedStream {
    stream: TcpStream,
    ends: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl BoundedStream {
    /// What waiting for the socket came to, unless the time is up.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        waited: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if waited.is_pending() {
            ready!(self.ends.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        waited
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.in_time(cx, read)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.in_time(cx, shut)
    }
}
