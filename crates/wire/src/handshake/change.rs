//! Changing a client's login where the way to the server differs from the way to the client.

use super::{Login, TLS_REQUEST_BYTES};
use crate::compress::{Algorithm, ZSTD_LEVEL_DEFAULT};
use crate::reader::{Reader, put_length};
use crate::{Capabilities, WireError};

/// Where MariaDB's capabilities are, bytes from the start.
const MARIADB_AT: usize = 28;

/// Flags that say how the login itself is laid out, or which others there are. They can't be
/// changed alone.
const LAYOUT: Capabilities = Capabilities::MYSQL
    .with(Capabilities::PROTOCOL_41)
    .with(Capabilities::CONNECT_WITH_DB)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .with(Capabilities::CONNECT_ATTRS);

/// A change to a login that leaves every byte alone which it isn't about: attributes, filler,
/// unknown flags, and whether texts end with a NUL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginChange {
    /// Flags to take out, such as SSL and COMPRESS. Flags that say how a login is laid out stay as
    /// they are, here and in `add`.
    pub remove: Capabilities,
    /// Flags to put in, after others were taken out. MariaDB's are not put into the login of a
    /// MySQL client.
    pub add: Capabilities,
    /// The zstd level to ask for. `None`: as the client does, or 3. It is of account only if the
    /// flag is there.
    pub zstd_level: Option<u8>,
    /// The plugin's answer, in place of the client's.
    pub authentication: Option<Vec<u8>>,
}

/// Where the parts are that a change can be about, bytes from the start of the payload.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// The plugin's answer with its length.
    authentication: (usize, usize),
    /// The end of the attributes, where the zstd level is if there is one.
    attributes_end: usize,
    /// How many zeros would have to go before a level that is put in: for the end marks of texts,
    /// and the length of attributes, that the client has left out at the login's end.
    left_out: usize,
}

impl LoginChange {
    /// The payload with the change made. Fails if a part can't be found that has to be changed.
    pub fn apply(&self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        let before = Login::parse(payload)?.capabilities;
        let wanted = before.without(self.remove.without(LAYOUT));
        let mut after = wanted.with(self.add.without(LAYOUT));
        if before.has(Capabilities::MYSQL) {
            after = Capabilities(after.0 & u64::from(u32::MAX));
        }
        let mut out = payload.to_vec();
        let needs_parts =
            self.authentication.is_some() || before.with(after).has(Capabilities::ZSTD_COMPRESSION);
        if needs_parts {
            let parts = Parts::find(payload, before)?;
            // From the end to the start, so that places stay where they are.
            self.change_level(&mut out, parts, before, after);
            if let Some(answer) = &self.authentication {
                let (start, end) = parts.authentication;
                out.splice(start..end, authentication_field(before, answer)?);
            }
        }
        let bits = after.0.to_le_bytes();
        out[..4].copy_from_slice(&bits[..4]);
        if !before.has(Capabilities::MYSQL) {
            out[MARIADB_AT..MARIADB_AT + 4].copy_from_slice(&bits[4..]);
        }
        Ok(out)
    }

    fn change_level(
        &self,
        out: &mut Vec<u8>,
        parts: Parts,
        before: Capabilities,
        after: Capabilities,
    ) {
        let at = parts.attributes_end;
        let had = before.has(Capabilities::ZSTD_COMPRESSION) && at < out.len();
        let sent = had.then(|| out.remove(at));
        if after.has(Capabilities::ZSTD_COMPRESSION) {
            let default = u8::try_from(ZSTD_LEVEL_DEFAULT).unwrap_or_default();
            let level = self.zstd_level.or(sent).unwrap_or(default);
            let zeros = std::iter::repeat_n(0, parts.left_out);
            out.splice(at..at, zeros.chain([level]));
        }
    }
}

/// An answer in the form that the flags name.
fn authentication_field(capabilities: Capabilities, answer: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(answer.len() + 9);
    if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
        put_length(&mut out, answer.len() as u64);
        out.extend_from_slice(answer);
    } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
        let length = u8::try_from(answer.len());
        out.push(length.map_err(|_| WireError::Unsupported("an answer of more than 255 bytes"))?);
        out.extend_from_slice(answer);
    } else {
        out.extend(answer.iter().copied().take_while(|&byte| byte != 0));
        out.push(0);
    }
    Ok(out)
}

impl Parts {
    fn find(payload: &[u8], capabilities: Capabilities) -> Result<Parts, WireError> {
        const ATTRIBUTES: &str = "login's attributes";
        let mut reader = Reader::new(payload);
        let place = |reader: &Reader<'_>| payload.len() - reader.rest().len();
        reader.bytes(TLS_REQUEST_BYTES, "login's start")?;
        reader.until_nul("user name")?;
        let start = place(&reader);
        Login::authentication(&mut reader, capabilities)?;
        let authentication = (start, place(&reader));
        let is_text = !capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_DATA)
            && !capabilities.has(Capabilities::SECURE_CONNECTION);
        let is_ended = payload[start..place(&reader)].ends_with(&[0]);
        let mut left_out = usize::from(is_text && !is_ended);
        for flag in [Capabilities::CONNECT_WITH_DB, Capabilities::PLUGIN_AUTH] {
            if capabilities.has(flag) {
                let start = place(&reader);
                let text = reader.until_nul_or_end();
                left_out += usize::from(place(&reader) == start + text.len());
            }
        }
        if capabilities.has(Capabilities::CONNECT_ATTRS) {
            if reader.is_empty() {
                left_out += 1;
            } else {
                reader
                    .length_encoded_bytes(ATTRIBUTES)?
                    .ok_or(WireError::Malformed(ATTRIBUTES))?;
            }
        }
        Ok(Parts {
            authentication,
            attributes_end: place(&reader),
            left_out,
        })
    }
}

impl Login {
    /// How client and server compress after the login: by what both can do, given what the server
    /// offered. zlib goes first, as measured on MySQL 8.0.31 with a client that asked for both.
    /// `None`: not at all.
    pub fn compression(
        payload: &[u8],
        offered: Capabilities,
    ) -> Result<Option<Algorithm>, WireError> {
        let asked = Login::parse(payload)?.capabilities;
        let both = asked.and(offered);
        if both.has(Capabilities::COMPRESS) {
            return Ok(Some(Algorithm::Zlib));
        }
        if !both.has(Capabilities::ZSTD_COMPRESSION) {
            return Ok(None);
        }
        let parts = Parts::find(payload, asked)?;
        let level = payload
            .get(parts.attributes_end)
            .map_or(ZSTD_LEVEL_DEFAULT, |level| i32::from(*level));
        Ok(Some(Algorithm::Zstd { level }))
    }
}

/// A request for TLS: the start of a login, with the flag SSL. The login itself follows inside TLS,
/// numbered one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsRequest {
    /// What the client asks for, SSL among it.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes, bytes.
    pub packet_bytes_max: u32,
    /// The client's collation.
    pub collation: u8,
}

impl TlsRequest {
    /// The request that goes before this login.
    pub fn of(login: &Login) -> TlsRequest {
        TlsRequest {
            capabilities: login.capabilities.with(Capabilities::SSL),
            packet_bytes_max: login.packet_bytes_max,
            collation: login.collation,
        }
    }

    /// Reads a request's payload.
    pub fn parse(payload: &[u8]) -> Result<TlsRequest, WireError> {
        if !Login::is_tls_request(payload) {
            return Err(WireError::Malformed("request for TLS"));
        }
        let mut reader = Reader::new(payload);
        let low = reader.u32("request's capabilities")?;
        let packet_bytes_max = reader.u32("request's packet size")?;
        let collation = reader.u8("request's collation")?;
        reader.bytes(19, "request's filler")?;
        let mariadb = reader.u32("request's MariaDB capabilities")?;
        let mut capabilities = Capabilities(u64::from(low));
        if !capabilities.has(Capabilities::MYSQL) {
            capabilities = Capabilities(capabilities.0 | u64::from(mariadb) << 32);
        }
        Ok(TlsRequest {
            capabilities,
            packet_bytes_max,
            collation,
        })
    }

    /// The payload.
    pub fn payload(&self) -> [u8; TLS_REQUEST_BYTES] {
        let mut out = [0; TLS_REQUEST_BYTES];
        let bits = self.capabilities.with(Capabilities::SSL).0.to_le_bytes();
        out[..4].copy_from_slice(&bits[..4]);
        out[4..8].copy_from_slice(&self.packet_bytes_max.to_le_bytes());
        out[8] = self.collation;
        if !self.capabilities.has(Capabilities::MYSQL) {
            out[MARIADB_AT..].copy_from_slice(&bits[4..]);
        }
        out
    }
}
