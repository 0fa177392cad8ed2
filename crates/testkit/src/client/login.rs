//! The connection phase.

use remora_wire::compress::Algorithm;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::login::{ClientLogin, LoginStep, Plugin, Privacy};
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
        let (first_answer, login) = self.begin_login(options, &greeting.salt);
        let request = Login {
            capabilities: self.capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: ConnectOptions::collation(),
            user: options.user.clone().into_bytes(),
            authentication: first_answer,
            schema: options.schema.clone().into_bytes(),
            plugin: Plugin::Native.name().into(),
        };
        let mut payload = request.packet(1).split_off(HEADER_BYTES);
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
        self.authenticate(login, sequence + 1)?;
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
        // Its first answer would be to a plugin that nobody has.
        let (_, login) = self.begin_login(options, &[]);
        self.authenticate(login, 1)
    }

    fn begin_login<'a>(
        &self,
        options: &'a ConnectOptions,
        salt: &[u8],
    ) -> (Vec<u8>, ClientLogin<'a>) {
        let privacy = if self.capabilities.has(Capabilities::SSL) {
            Privacy::Tls
        } else {
            Privacy::None
        };
        ClientLogin::begin(Plugin::Native, salt, options.password.as_bytes(), privacy)
    }

    fn authenticate(
        &mut self,
        mut login: ClientLogin<'_>,
        first_sequence: u8,
    ) -> Result<(), ClientError> {
        let mut sequence = first_sequence;
        loop {
            let payload = self.message(sequence)?;
            sequence = sequence.wrapping_add(1);
            login = match login.hear(&payload)? {
                LoginStep::LoggedIn => return Ok(()),
                LoginStep::Wait(login) => login,
                LoginStep::Send(answer, login) => {
                    self.send_message(sequence, &answer)?;
                    sequence = sequence.wrapping_add(1);
                    login
                }
                LoginStep::Refused(error) => return Err(ClientError::Server(error)),
                // There is no RSA here: a test whose account needs it uses TLS.
                LoginStep::Encrypt { .. } | LoginStep::UnknownPlugin(_) | LoginStep::Surplus => {
                    return Err(WireError::Unsupported("an authentication plugin").into());
                }
            };
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
