//! Listening to the client while the server works.
//!
//! A server looks now and then whether its client is still there: in `GET_LOCK()` and `SLEEP()`,
//! while it waits for metadata locks. What it sees is whether the client has said that it will send
//! nothing more, be it because it is gone or because it only has no more to say. So that is passed
//! on, and the server does what it does directly: it ends its waiting, or goes on and answers a
//! client that still listens. One that doesn't shows when the answer can't be written.
//!
//! What a client sends ahead hides its end, from a server as from Remora.

use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::Poll;

use super::{BUFFER_BYTES_KEPT, Session, Side};

/// What was heard while an answer was awaited.
pub(super) enum Heard {
    /// The server has sent something, or has closed.
    Server,
    /// The client's connection is broken.
    ClientLeft(io::Error),
}

impl Session {
    /// Waits until the server has sent something.
    pub(super) async fn await_server(&mut self) -> io::Result<Heard> {
        while self.inbox.is_empty() && !self.client_has_finished {
            match self.server_or_client_readable().await? {
                Side::Server => return Ok(Heard::Server),
                Side::Client => {
                    if let Err(error) = self.listen() {
                        self.client_has_finished = true;
                        return Ok(Heard::ClientLeft(error));
                    }
                }
            }
        }
        self.server.readable().await?;
        Ok(Heard::Server)
    }

    /// The server first: most often there is nothing to be heard from the client.
    async fn server_or_client_readable(&self) -> io::Result<Side> {
        poll_fn(|cx| {
            if let Poll::Ready(result) = self.server.poll_read_ready(cx) {
                return Poll::Ready(result.map(|()| Side::Server));
            }
            let client = self.client.poll_read_ready(cx);
            // What is wrong with it shows when it is read.
            client.map(|_| Ok(Side::Client))
        })
        .await
    }

    /// Takes a little of what the client sends ahead, or passes its end on.
    fn listen(&mut self) -> io::Result<()> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let room = scratch.len().min(BUFFER_BYTES_KEPT);
        match self.client.try_read(&mut scratch[..room]) {
            Ok(0) => {
                self.client_has_finished = true;
                // A server that is gone shows when it is read.
                let _ = self.server.shutdown(Shutdown::Write);
                Ok(())
            }
            Ok(count) => {
                worker.metrics.count_client_bytes_in(count);
                self.inbox.extend(&scratch[..count]);
                self.needs_sampling = true;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}
