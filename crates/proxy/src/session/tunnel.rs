//! Relaying what the client sends while the server answers: a file that the server asked for, or
//! whatever comes once the server streams its log.

use std::io;

use remora_net::Stream;
use remora_wire::command::ResponseKind;
use remora_wire::message::MessageWalker;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::response::OK_MARK;
use remora_wire::walker::{Progress, ResponseWalker, Summary};

use super::inbox::Inbox;
use super::{Ended, Session, Side, either_readable};

/// How much of a stream is relayed at a time, bytes.
const STREAM_CHUNK_BYTES: usize = 16 * 1024;

impl Session {
    /// The server asked for a file: the client's messages go up until an empty one.
    pub(super) async fn relay_local_file(&mut self) -> Result<(), Ended> {
        let mut walker = MessageWalker::new();
        while self.relay_message_piece(&mut walker, |_| {}).await? != Some(0) {}
        Ok(())
    }

    /// Relays the answer to a command that makes the server stream.
    ///
    /// A server that refuses says so in one packet and goes on listening to commands, whose writes
    /// must be fenced. So nothing of what the client sends passes before the server's first packet
    /// has said which it is. Once a server has streamed, it closes the connection at the end.
    pub(super) async fn relay_stream(&mut self) -> Result<Summary, Ended> {
        let mut walker = ResponseWalker::new(ResponseKind::Single, self.capabilities());
        let mut chunk = vec![0; STREAM_CHUNK_BYTES];
        let mut head = Vec::new();
        loop {
            let count = self.read_server(&mut chunk).await?;
            if count == 0 {
                return Err(Ended::closed());
            }
            let missing = (HEADER_BYTES + 1).saturating_sub(head.len());
            head.extend_from_slice(&chunk[..count.min(missing)]);
            let (used, progress) = walker.feed(&chunk[..count])?;
            self.client.write_all(&chunk[..count]).await?;
            if head.get(HEADER_BYTES) == Some(&OK_MARK) {
                return Err(self.tunnel(chunk).await);
            }
            match progress {
                Progress::Done(summary) if used == count => return Ok(summary),
                Progress::More => {}
                Progress::Done(_) | Progress::LocalFile => return Err(Ended::closed()),
            }
        }
    }

    /// Relays both ways until one side ends. Nothing is looked at.
    async fn tunnel(&mut self, mut chunk: Vec<u8>) -> Ended {
        // It has no end that a shutdown could wait for.
        if !self.client.awaits_next(false, self.worker.is_stopping()) {
            return Ended::closed();
        }
        let inbox = std::mem::take::<Inbox>(&mut self.inbox);
        if let Err(error) = self.server.write_all(&inbox).await {
            return error.into();
        }
        loop {
            let relayed = match either_readable(&self.client, &self.server).await {
                Ok(Side::Client) => relay_some(&self.client, &self.server, &mut chunk).await,
                Ok(Side::Server) => relay_some(&self.server, &self.client, &mut chunk).await,
                Err(error) => Err(error),
            };
            if let Err(error) = relayed {
                return error.into();
            }
        }
    }
}

async fn relay_some(from: &Stream, to: &Stream, chunk: &mut [u8]) -> io::Result<()> {
    match from.try_read(chunk) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(count) => to.write_all(&chunk[..count]).await,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}
