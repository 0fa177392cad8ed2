//! The connection phase: the server's greeting and the client's login.
//!
//! Source: MySQL internals, "Connection Phase Packets"; MariaDB knowledge base, "Connection".

use crate::packet::put_message;
use crate::reader::{Reader, put_length};
use crate::{Capabilities, WireError};

mod change;

pub use change::{LoginChange, TlsRequest};

/// The only version of the greeting that is spoken today.
const PROTOCOL_VERSION: u8 = 10;
/// Length of the salt's first part, bytes.
const SALT_HEAD_BYTES: usize = 8;
/// Length of the whole salt without its end mark, bytes.
const SALT_BYTES: usize = 20;

/// The server's first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The version string, e.g. `10.11.6-MariaDB-log`.
    pub server_version: String,
    /// The connection's number on the server.
    pub connection_id: u32,
    /// Random bytes for the authentication plugin.
    pub salt: Vec<u8>,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// The server's default collation.
    pub collation: u8,
    /// The status flags at the start.
    pub status: u16,
    /// The authentication plugin that the server suggests.
    pub plugin: String,
}

/// The offsets of the capability bytes in a greeting's payload, so that flags can be taken out
/// while every other byte passes as the server sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CapabilityOffsets {
    low: usize,
    high: usize,
    mariadb: usize,
}

impl Greeting {
    /// Reads a greeting's payload. An ERR packet is not a greeting: look for it first.
    pub fn parse(payload: &[u8]) -> Result<Greeting, WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8("greeting")? != PROTOCOL_VERSION {
            return Err(WireError::Unsupported(
                "greeting of a protocol version other than 10",
            ));
        }
        let server_version = reader.until_nul("server version")?;
        let connection_id = reader.u32("connection id")?;
        let mut salt = reader.bytes(SALT_HEAD_BYTES, "salt")?.to_vec();
        reader.u8("greeting's filler")?;
        let low = reader.u16("capabilities")?;
        let collation = reader.u8("collation")?;
        let status = reader.u16("status flags")?;
        let high = reader.u16("capabilities")?;
        let salt_length = usize::from(reader.u8("salt length")?);
        reader.bytes(6, "greeting's filler")?;
        let mariadb = reader.u32("MariaDB capabilities")?;
        let mut capabilities = Capabilities(u64::from(low) | u64::from(high) << 16);
        if !capabilities.has(Capabilities::MYSQL) {
            capabilities = Capabilities(capabilities.0 | u64::from(mariadb) << 32);
        }
        if !capabilities.has(Capabilities::PROTOCOL_41) {
            return Err(WireError::Unsupported("a server from before MySQL 4.1"));
        }
        let tail = salt_length.max(SALT_BYTES + 1) - SALT_HEAD_BYTES;
        let tail = reader.bytes(tail.min(reader.rest().len()), "salt")?;
        salt.extend_from_slice(tail.strip_suffix(&[0]).unwrap_or(tail));
        let plugin = reader.until_nul_or_end();
        Ok(Greeting {
            server_version: String::from_utf8_lossy(server_version).into_owned(),
            connection_id,
            salt,
            capabilities,
            collation,
            status,
            plugin: String::from_utf8_lossy(plugin).into_owned(),
        })
    }

    /// The payload that says this, as a server would send it.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = vec![PROTOCOL_VERSION];
        out.extend_from_slice(self.server_version.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        let head = self.salt.len().min(SALT_HEAD_BYTES);
        out.extend_from_slice(&self.salt[..head]);
        out.resize(out.len() + SALT_HEAD_BYTES - head, 0);
        out.push(0);
        let bits = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&bits[..2]);
        out.push(self.collation);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&bits[2..4]);
        let salt_length = u8::try_from(self.salt.len() + 1).unwrap_or(u8::MAX);
        out.push(salt_length.max(u8::try_from(SALT_BYTES + 1).unwrap_or(u8::MAX)));
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&bits[4..]);
        let tail = self.salt.get(SALT_HEAD_BYTES..).unwrap_or_default();
        out.extend_from_slice(tail);
        out.resize(
            out.len() + (SALT_BYTES + 1 - SALT_HEAD_BYTES).saturating_sub(tail.len()),
            0,
        );
        if tail.len() > SALT_BYTES - SALT_HEAD_BYTES {
            out.push(0);
        }
        out.extend_from_slice(self.plugin.as_bytes());
        out.push(0);
        out
    }

    /// Takes `unwanted` flags out of a greeting's payload and leaves every other byte alone.
    pub fn withdraw(payload: &mut [u8], unwanted: Capabilities) -> Result<(), WireError> {
        let offsets = Self::capability_offsets(payload)?;
        let keep = (!unwanted.0).to_le_bytes();
        let is_mariadb = payload[offsets.low] & 1 == 0;
        let mut mask = |at: usize, keep: &[u8]| {
            for (byte, keep) in payload[at..].iter_mut().zip(keep) {
                *byte &= keep;
            }
        };
        mask(offsets.low, &keep[..2]);
        mask(offsets.high, &keep[2..4]);
        if is_mariadb {
            mask(offsets.mariadb, &keep[4..]);
        }
        Ok(())
    }

    fn capability_offsets(payload: &[u8]) -> Result<CapabilityOffsets, WireError> {
        let version_end = payload
            .iter()
            .position(|&b| b == 0)
            .ok_or(WireError::Truncated("server version"))?;
        let low = version_end + 1 + 4 + SALT_HEAD_BYTES + 1;
        let offsets = CapabilityOffsets {
            low,
            high: low + 5,
            mariadb: low + 14,
        };
        if payload.len() < offsets.mariadb + 4 {
            return Err(WireError::Truncated("capabilities"));
        }
        Ok(offsets)
    }
}

/// The client's answer to the greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// What the client asks for; only what the server offered may be used.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes, bytes.
    pub packet_bytes_max: u32,
    /// The client's collation.
    pub collation: u8,
    /// The user's name.
    pub user: Vec<u8>,
    /// The plugin's answer.
    pub authentication: Vec<u8>,
    /// The default schema; empty for none.
    pub schema: Vec<u8>,
    /// The plugin that made the answer.
    pub plugin: Vec<u8>,
}

/// Length of the part of a login that a TLS request consists of, bytes.
const TLS_REQUEST_BYTES: usize = 32;

impl Login {
    /// Whether the payload is a request for TLS, which the rest of the login would follow.
    /// [`TlsRequest`] reads it.
    pub fn is_tls_request(payload: &[u8]) -> bool {
        payload.len() == TLS_REQUEST_BYTES
            && Capabilities(u64::from(payload[1]) << 8).has(Capabilities::SSL)
    }

    /// Reads a login's payload.
    pub fn parse(payload: &[u8]) -> Result<Login, WireError> {
        let mut reader = Reader::new(payload);
        let low = reader.u32("login's capabilities")?;
        let mut capabilities = Capabilities(u64::from(low));
        if !capabilities.has(Capabilities::PROTOCOL_41) {
            return Err(WireError::Unsupported("a client from before MySQL 4.1"));
        }
        let packet_bytes_max = reader.u32("login's packet size")?;
        let collation = reader.u8("login's collation")?;
        reader.bytes(19, "login's filler")?;
        let mariadb = reader.u32("login's MariaDB capabilities")?;
        if !capabilities.has(Capabilities::MYSQL) {
            capabilities = Capabilities(capabilities.0 | u64::from(mariadb) << 32);
        }
        let user = reader.until_nul("user name")?.to_vec();
        let authentication = Self::authentication(&mut reader, capabilities)?;
        let mut schema = Vec::new();
        if capabilities.has(Capabilities::CONNECT_WITH_DB) {
            schema = reader.until_nul_or_end().to_vec();
        }
        let mut plugin = Vec::new();
        if capabilities.has(Capabilities::PLUGIN_AUTH) {
            plugin = reader.until_nul_or_end().to_vec();
        }
        Ok(Login {
            capabilities,
            packet_bytes_max,
            collation,
            user,
            authentication,
            schema,
            plugin,
        })
    }

    fn authentication(
        reader: &mut Reader<'_>,
        capabilities: Capabilities,
    ) -> Result<Vec<u8>, WireError> {
        const WHAT: &str = "login's authentication data";
        let answer = if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            reader
                .length_encoded_bytes(WHAT)?
                .ok_or(WireError::Malformed(WHAT))?
        } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
            let length = usize::from(reader.u8(WHAT)?);
            reader.bytes(length, WHAT)?
        } else {
            reader.until_nul_or_end()
        };
        Ok(answer.to_vec())
    }

    /// The counterpart of [`Self::authentication`]. An answer that is too long for the form that
    /// the capabilities name is cut: the server refuses it, and no byte of it is taken for a field.
    fn put_authentication(&self, out: &mut Vec<u8>) {
        if self.capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            put_length(out, self.authentication.len() as u64);
            out.extend_from_slice(&self.authentication);
        } else if self.capabilities.has(Capabilities::SECURE_CONNECTION) {
            let length = u8::try_from(self.authentication.len()).unwrap_or(u8::MAX);
            out.push(length);
            out.extend_from_slice(&self.authentication[..usize::from(length)]);
        } else {
            put_until_nul(out, &self.authentication);
        }
    }

    /// The complete packet, numbered `sequence`.
    pub fn packet(&self, sequence: u8) -> Vec<u8> {
        let bits = self.capabilities.0.to_le_bytes();
        let mut payload = bits[..4].to_vec();
        payload.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        payload.push(self.collation);
        payload.extend_from_slice(&[0; 19]);
        let mariadb = if self.capabilities.has(Capabilities::MYSQL) {
            &[0; 4]
        } else {
            &bits[4..]
        };
        payload.extend_from_slice(mariadb);
        put_until_nul(&mut payload, &self.user);
        self.put_authentication(&mut payload);
        if self.capabilities.has(Capabilities::CONNECT_WITH_DB) {
            put_until_nul(&mut payload, &self.schema);
        }
        if self.capabilities.has(Capabilities::PLUGIN_AUTH) {
            put_until_nul(&mut payload, &self.plugin);
        }
        let mut packet = Vec::with_capacity(payload.len() + 4);
        put_message(&mut packet, sequence, &payload);
        packet
    }
}

/// Appends a `string<NUL>`. The text ends at a NUL of its own, so that it can't write other fields.
fn put_until_nul(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().copied().take_while(|&byte| byte != 0));
    out.push(0);
}
