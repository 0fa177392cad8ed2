//! From the accepted socket to a session that is logged in: greeting, login and authentication are
//! relayed. Remora reads them, but stores no password and answers for nobody.

use std::io;

use remora_wire::auth::AuthPacket;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{Extent, HEADER_BYTES, Header, extent};
use remora_wire::response::{EndMark, ServerError};
use remora_wire::{Capabilities, WireError};

use super::{Ended, Session};
use crate::net::Stream;

/// What the server may offer but Remora doesn't let through yet: each would make the bytes that
/// follow unreadable or differently framed.
const WITHDRAWN: Capabilities = Capabilities::SSL
    .with(Capabilities::COMPRESS)
    .with(Capabilities::ZSTD_COMPRESSION)
    .with(Capabilities::QUERY_ATTRIBUTES)
    .with(Capabilities::MARIADB_COM_MULTI)
    .with(Capabilities::MARIADB_CACHE_METADATA);

/// The longest packet that is accepted before a client is logged in, bytes.
const LOGIN_PACKET_BYTES_MAX: usize = 64 * 1024;

/// A login that the server accepted.
#[derive(Debug)]
pub(super) struct LoggedIn {
    /// The features that both sides use.
    pub capabilities: Capabilities,
    /// The server's first OK.
    pub mark: Option<EndMark>,
}

/// How an authentication exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server accepted, with this OK packet.
    Accepted(Option<EndMark>),
    /// The server refused and said so to the client.
    Refused,
}

/// Relays greeting, login and authentication.
pub(super) async fn relay_login(client: &Stream, server: &Stream) -> Result<LoggedIn, Ended> {
    let mut greeting = read_packet(server, None).await?;
    if greeting.get(HEADER_BYTES) == Some(&0xff) {
        client.write_all(&greeting).await?;
        return Err(Ended::Refused);
    }
    let offered = withdraw(&mut greeting).map_err(|_| {
        refusal(
            2027,
            "HY000",
            "Remora: the server's greeting is not one that Remora can read",
        )
    })?;
    client.write_all(&greeting).await?;

    // A login that takes too long is ended by the server, after its `connect_timeout`.
    let login_packet = tokio::select! {
        biased;
        packet = read_packet(client, Some(1)) => packet?,
        ended = relay_last_words(client, server) => return Err(ended),
    };
    let payload = &login_packet[HEADER_BYTES..];
    if Login::is_tls_request(payload) {
        let text = "Bad handshake: Remora does not offer TLS, and the client asked for it";
        return Err(refusal(1043, "08S01", text));
    }
    let login = Login::parse(payload).map_err(|_| refusal(1043, "08S01", "Bad handshake"))?;
    server.write_all(&login_packet).await?;
    match relay_authentication(client, server).await? {
        Verdict::Refused => Err(Ended::Refused),
        Verdict::Accepted(mark) => Ok(LoggedIn {
            capabilities: login.capabilities.and(offered),
            mark,
        }),
    }
}

/// Waits until the server speaks although it is the client's turn: it closes, or says why it will.
async fn relay_last_words(client: &Stream, server: &Stream) -> Ended {
    let mut chunk = [0; 1024];
    loop {
        if let Err(error) = server.readable().await {
            return error.into();
        }
        match try_read(server, &mut chunk) {
            Ok(None) => {}
            Ok(Some(count)) => {
                if let Err(error) = client.write_all(&chunk[..count]).await {
                    return error.into();
                }
            }
            Err(ended) => return ended,
        }
    }
}

/// Takes what Remora can't relay out of the greeting; gives what remains.
fn withdraw(greeting: &mut [u8]) -> Result<Capabilities, WireError> {
    let payload = &mut greeting[HEADER_BYTES..];
    Greeting::withdraw(payload, WITHDRAWN)?;
    Ok(Greeting::parse(payload)?.capabilities)
}

fn refusal(code: u16, sql_state: &str, message: &str) -> Ended {
    Ended::Misbehaved {
        error: ServerError::new(code, sql_state, message),
        sequence: 2,
    }
}

/// Reads exactly one packet; more than that before its answer is out of order. A client's packet
/// must carry `sequence`.
async fn read_packet(from: &Stream, sequence: Option<u8>) -> Result<Vec<u8>, Ended> {
    let mut packet = Vec::with_capacity(256);
    let mut chunk = [0; 1024];
    loop {
        let expected = sequence.or(Header::peek(&packet).map(|header| header.sequence));
        match extent(&packet, expected.unwrap_or(0)) {
            Ok(Extent::Complete { bytes, .. }) if bytes == packet.len() => return Ok(packet),
            Ok(Extent::Partial { known_bytes }) if known_bytes <= LOGIN_PACKET_BYTES_MAX => {}
            Ok(_) | Err(_) => {
                return Err(refusal(1156, "08S01", "Got packets out of order"));
            }
        }
        from.readable().await?;
        match from.try_read(&mut chunk) {
            Ok(0) => return Err(Ended::closed()),
            Ok(count) => packet.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Relays both ways, packets of any plugin, until the server says OK or ERR.
pub(super) async fn relay_authentication(
    client: &Stream,
    server: &Stream,
) -> Result<Verdict, Ended> {
    let mut from_server = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        match super::either_readable(client, server).await? {
            super::Side::Client => {
                if let Some(count) = try_read(client, &mut chunk)? {
                    server.write_all(&chunk[..count]).await?;
                }
            }
            super::Side::Server => {
                let Some(count) = try_read(server, &mut chunk)? else {
                    continue;
                };
                from_server.extend_from_slice(&chunk[..count]);
                client.write_all(&chunk[..count]).await?;
                if let Some(verdict) = find_verdict(&mut from_server)? {
                    return Ok(verdict);
                }
            }
        }
    }
}

/// Consumes complete packets; stops at the one that decides.
fn find_verdict(from_server: &mut Vec<u8>) -> Result<Option<Verdict>, Ended> {
    while let Some(header) = Header::peek(from_server) {
        let end = HEADER_BYTES + header.length;
        let Some(packet) = from_server.get(HEADER_BYTES..end) else {
            break;
        };
        match AuthPacket::parse(packet) {
            Ok(AuthPacket::Ok) => {
                return Ok(Some(Verdict::Accepted(EndMark::from_ok(packet).ok())));
            }
            Ok(AuthPacket::Err) => return Ok(Some(Verdict::Refused)),
            Ok(AuthPacket::Switch { .. } | AuthPacket::More(_)) | Err(_) => {}
        }
        from_server.drain(..end);
    }
    if from_server.len() > LOGIN_PACKET_BYTES_MAX {
        return Err(Ended::closed());
    }
    Ok(None)
}

fn try_read(from: &Stream, chunk: &mut [u8]) -> Result<Option<usize>, Ended> {
    match from.try_read(chunk) {
        Ok(0) => Err(Ended::closed()),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Session {
    /// `COM_CHANGE_USER` has been sent: relays its authentication.
    pub(super) async fn relay_change_user(&mut self) -> Result<(), Ended> {
        let epoch = self.shared.privilege_epoch();
        match relay_authentication(&self.client, &self.server).await? {
            Verdict::Accepted(mark) => {
                self.state.changed_user(epoch, mark);
                self.prepared.clear();
                Ok(())
            }
            // The server closes the connection after a refused change of user.
            Verdict::Refused => Err(Ended::Refused),
        }
    }
}
