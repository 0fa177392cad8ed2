//! Relaying what the client sends while the server answers: a file that the server asked for, or
//! whatever comes.

use std::io;

use remora_wire::message::MessageWalker;

use super::{Ended, Session, Side, either_readable};
use crate::net::Stream;

impl Session {
    /// The server asked for a file: the client's messages go up until an empty one.
    pub(super) async fn relay_local_file(&mut self) -> Result<(), Ended> {
        let mut walker = MessageWalker::new();
        while self.relay_message_piece(&mut walker).await? != Some(0) {}
        Ok(())
    }

    /// Relays both ways until one side ends. Nothing is looked at.
    pub(super) async fn tunnel(&mut self) -> Ended {
        let mut chunk = vec![0; 16 * 1024];
        let inbox = std::mem::take(&mut self.inbox);
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
