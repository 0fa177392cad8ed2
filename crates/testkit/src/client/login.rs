//! The connection phase.

use remora_wire::auth::{
    AuthPacket, CACHING_SHA2_PASSWORD, CachingSha2, NATIVE_PASSWORD, caching_sha2_password,
    clear_password, native_password, salt_of,
};
use remora_wire::compress::Algorithm;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{Extent, HEADER_BYTES, extent, join_payload, put_message};
use remora_wire::response::{ERR_MARK, ServerError};
use remora_wire::{Capabilities, WireError};

use super::{Client, ClientError, ConnectOptions};

const PACKET_BYTES_MAX: u32 = 64 << 20;
/// `COM_CHANGE_USER`.
const CHANGE_USER: u8 = 0x11;
/// What of a login a request for TLS consists of, bytes.
const TLS_REQUEST_BYTES: usize = 32;

impl Client {
    pub(super) fn log_in(&mut self, options: &ConnectOptions) -> Result<(), ClientError> {
        let payload = self.message(0)?;
        if payload.first() == Some(&ERR_MARK) {
            return Err(ClientError::Server(ServerError::parse(&payload)?));
        }
        let greeting = Greeting::parse(&payload)?;
        self.capabilities = options.capabilities(greeting.capabilities);
        self.connection_id = greeting.connection_id;
        let login = Login {
            capabilities: self.capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: ConnectOptions::collation(),
            user: options.user.clone().into_bytes(),
            authentication: native_password(options.password.as_bytes(), &greeting.salt),
            schema: options.schema.clone().into_bytes(),
            plugin: NATIVE_PASSWORD.as_bytes().to_vec(),
        };
        let mut payload = login.packet(1).split_off(HEADER_BYTES);
        if let Some(Algorithm::Zstd { level }) = options.compression
            && self.capabilities.has(Capabilities::ZSTD_COMPRESSION)
        {
            payload.push(u8::try_from(level).unwrap_or(3));
        }
        let mut sequence = 1;
        if self.capabilities.has(Capabilities::SSL) {
            self.send_message(sequence, &payload[..TLS_REQUEST_BYTES])?;
            self.transport.start_tls()?;
            sequence += 1;
        }
        self.send_message(sequence, &payload)?;
        self.authenticate(options, sequence + 1)?;
        if let Some(algorithm) = options.compression
            && (self.capabilities.has(Capabilities::COMPRESS)
                || self.capabilities.has(Capabilities::ZSTD_COMPRESSION))
        {
            self.transport.start_compression(algorithm);
        }
        Ok(())
    }

    /// Becomes another user on the same connection (`COM_CHANGE_USER`), with another default
    /// schema. Address and features stay those of the connection.
    ///
    /// # Errors
    /// A refusal is [`ClientError::Server`]. Some servers keep the connection then.
    pub fn change_user(&mut self, options: &ConnectOptions) -> Result<(), ClientError> {
        /// No server has it, so each asks for the one that it wants, with a salt of its own.
        const PLUGIN: &[u8] = b"none\0";
        let collation = u16::from(ConnectOptions::collation()).to_le_bytes();
        let no_answer = 0;
        let payload = [
            &[CHANGE_USER],
            options.user.as_bytes(),
            &[0, no_answer],
            options.schema.as_bytes(),
            &[0],
            &collation,
            PLUGIN,
        ]
        .concat();
        self.output.clear();
        put_message(&mut self.output, 0, &payload);
        self.filled = 0;
        self.transport.send_command(&self.output)?;
        self.authenticate(options, 1)
    }

    fn authenticate(
        &mut self,
        options: &ConnectOptions,
        first_sequence: u8,
    ) -> Result<(), ClientError> {
        let mut sequence = first_sequence;
        loop {
            let payload = self.message(sequence)?;
            match AuthPacket::parse(&payload)? {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Err => return Err(ClientError::Server(ServerError::parse(&payload)?)),
                AuthPacket::Switch { plugin, data } if plugin == NATIVE_PASSWORD.as_bytes() => {
                    let answer = native_password(options.password.as_bytes(), salt_of(data));
                    self.send_message(sequence.wrapping_add(1), &answer)?;
                    sequence = sequence.wrapping_add(2);
                }
                AuthPacket::Switch { plugin, data }
                    if plugin == CACHING_SHA2_PASSWORD.as_bytes() =>
                {
                    let answer = caching_sha2_password(options.password.as_bytes(), salt_of(data));
                    self.send_message(sequence.wrapping_add(1), &answer)?;
                    sequence = sequence.wrapping_add(2);
                }
                AuthPacket::More(data) if CachingSha2::parse(data) == CachingSha2::FastOk => {
                    sequence = sequence.wrapping_add(1);
                }
                // The server doesn't remember the account, and takes the password itself where
                // nobody else sees it.
                AuthPacket::More(data)
                    if CachingSha2::parse(data) == CachingSha2::FullAuthentication
                        && self.capabilities.has(Capabilities::SSL) =>
                {
                    let answer = clear_password(options.password.as_bytes());
                    self.send_message(sequence.wrapping_add(1), &answer)?;
                    sequence = sequence.wrapping_add(2);
                }
                AuthPacket::Switch { .. } | AuthPacket::More(_) => {
                    return Err(WireError::Unsupported("an authentication plugin").into());
                }
            }
        }
    }

    fn send_message(&mut self, sequence: u8, payload: &[u8]) -> Result<(), ClientError> {
        self.output.clear();
        put_message(&mut self.output, sequence, payload);
        Ok(self.transport.write_sealed(&self.output)?)
    }

    /// Receives one message during the login.
    fn message(&mut self, sequence: u8) -> Result<Vec<u8>, ClientError> {
        loop {
            let received = &self.input[..self.filled];
            if let Extent::Complete { bytes, .. } = extent(received, sequence)? {
                let payload = join_payload(&received[..bytes]);
                self.input.copy_within(bytes..self.filled, 0);
                self.filled -= bytes;
                return Ok(payload);
            }
            self.receive()?;
        }
    }
}
