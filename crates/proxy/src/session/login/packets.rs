//! Single packets of a login, read exactly: what follows one may be encrypted or compressed.

use std::io;

use remora_net::Stream;
use remora_wire::WireError;
use remora_wire::packet::{HEADER_BYTES, Header, put_message};
use remora_wire::response::ServerError;

use crate::session::{Ended, Side, either_readable};

/// The longest payload that is accepted before a client is logged in, bytes.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// One side of a login, with its own row of sequence numbers.
pub(super) struct Peer<'a> {
    /// The connection.
    pub stream: &'a Stream,
    side: Side,
    /// What has come of a packet.
    partial: Vec<u8>,
    /// The number of the next packet, whoever sends it.
    pub sequence: u8,
}

impl<'a> Peer<'a> {
    /// The client, whose next packet or the next to it has the number `sequence`.
    pub(super) fn client(stream: &'a Stream, sequence: u8) -> Peer<'a> {
        Peer::new(stream, Side::Client, sequence)
    }

    /// The same of the server.
    pub(super) fn server(stream: &'a Stream, sequence: u8) -> Peer<'a> {
        Peer::new(stream, Side::Server, sequence)
    }

    fn new(stream: &'a Stream, side: Side, sequence: u8) -> Peer<'a> {
        Peer {
            stream,
            side,
            partial: Vec::new(),
            sequence,
        }
    }

    /// Sends a payload as the next packet.
    pub(super) async fn send(&mut self, payload: &[u8]) -> Result<(), Ended> {
        let mut packet = Vec::with_capacity(payload.len() + HEADER_BYTES);
        self.sequence = put_message(&mut packet, self.sequence, payload);
        Ok(self.stream.write_all(&packet).await?)
    }

    /// The next packet's payload.
    pub(super) async fn receive(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            if let Some(payload) = self.try_receive()? {
                return Ok(payload);
            }
            self.stream.readable().await?;
        }
    }

    /// The next packet's payload, if all of it is there.
    fn try_receive(&mut self) -> Result<Option<Vec<u8>>, Ended> {
        loop {
            let filled = self.partial.len();
            let end = match Header::peek(&self.partial) {
                None => HEADER_BYTES,
                Some(header) if filled == HEADER_BYTES + header.length => {
                    let payload = self.partial.split_off(HEADER_BYTES);
                    self.partial.clear();
                    return Ok(Some(payload));
                }
                Some(header) => HEADER_BYTES + header.length,
            };
            self.partial.resize(end, 0);
            let read = self.stream.try_read(&mut self.partial[filled..]);
            self.partial.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(Ended::closed()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            if filled < HEADER_BYTES {
                self.look_at_header()?;
            }
        }
    }

    /// Checks a header that has just become complete, if it has.
    fn look_at_header(&mut self) -> Result<(), Ended> {
        let Some(header) = Header::peek(&self.partial) else {
            return Ok(());
        };
        let is_too_long = header.length > PAYLOAD_BYTES_MAX;
        match self.side {
            Side::Client if header.sequence != self.sequence => {
                return Err(self.refusal(1156, "08S01", "Got packets out of order"));
            }
            Side::Client if is_too_long => {
                return Err(self.refusal(1153, "08S01", "Got a packet too long for a login"));
            }
            Side::Server if is_too_long => {
                return Err(
                    WireError::Unsupported("a packet of more than 64 KiB in a login").into(),
                );
            }
            _ => {}
        }
        self.sequence = header.sequence.wrapping_add(1);
        Ok(())
    }

    /// The end of the session with an error for the client. Only of use on the client's side.
    pub(super) fn refusal(&self, code: u16, sql_state: &str, message: impl Into<String>) -> Ended {
        Ended::Misbehaved {
            error: ServerError::new(code, sql_state, message),
            sequence: self.sequence,
        }
    }
}

/// The next packet of either, the client's first.
pub(super) async fn receive_from_either(
    client: &mut Peer<'_>,
    server: &mut Peer<'_>,
) -> Result<(Side, Vec<u8>), Ended> {
    loop {
        if let Some(payload) = client.try_receive()? {
            return Ok((Side::Client, payload));
        }
        if let Some(payload) = server.try_receive()? {
            return Ok((Side::Server, payload));
        }
        either_readable(client.stream, server.stream).await?;
    }
}
