//! Logging in: which plugin answers what, and the switch from one to another.
//!
//! | plugin | answer | then |
//! |---|---|---|
//! | `mysql_native_password` | the salted digest | |
//! | `caching_sha2_password` | the salted digest | if the server doesn't have the account in its cache: the password itself |
//! | `sha256_password` | the password itself | |
//!
//! "The password itself" goes in the clear only where servers take it so: inside TLS, and with
//! `caching_sha2_password` over a Unix socket. Elsewhere the server is asked for its public key,
//! and gets the password encrypted with it.

use remora_net::tls::encrypt_password;
use remora_wire::Capabilities;
use remora_wire::auth::{
    AuthPacket, CACHING_SHA2_PASSWORD, CACHING_SHA2_REQUEST_PUBLIC_KEY, CachingSha2,
    NATIVE_PASSWORD, SHA256_PASSWORD, SHA256_REQUEST_PUBLIC_KEY, caching_sha2_password,
    clear_password, native_password, salt_of,
};
use remora_wire::handshake::{Greeting, Login, TlsRequest};
use remora_wire::packet::put_message;

use super::{Account, CAPABILITIES, COLLATION, Client, ClientError};
use crate::link::{OnBehalf, ServerLink};

/// The largest packet that is taken, bytes.
const PACKET_BYTES_MAX: u32 = u32::MAX >> 2;
/// Packets that a server may send before it says yes or no. No plugin needs half of them.
const ROUNDS_MAX: u32 = 16;

/// A plugin that Remora can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plugin {
    Native,
    CachingSha2,
    Sha256,
}

impl Plugin {
    fn named(name: &[u8]) -> Option<Plugin> {
        [Plugin::Native, Plugin::CachingSha2, Plugin::Sha256]
            .into_iter()
            .find(|plugin| plugin.name().as_bytes() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Plugin::Native => NATIVE_PASSWORD,
            Plugin::CachingSha2 => CACHING_SHA2_PASSWORD,
            Plugin::Sha256 => SHA256_PASSWORD,
        }
    }
}

/// How far an exchange has come.
struct Exchange<'a> {
    plugin: Plugin,
    salt: Vec<u8>,
    password: &'a [u8],
    is_tls: bool,
    is_unix: bool,
}

impl Exchange<'_> {
    /// Whether the server takes a password in the clear on this connection. Nobody else can read it
    /// there.
    fn is_secure(&self) -> bool {
        self.is_tls || (self.is_unix && self.plugin == Plugin::CachingSha2)
    }

    fn first_answer(&self) -> Vec<u8> {
        match self.plugin {
            Plugin::Native => native_password(self.password, &self.salt),
            Plugin::CachingSha2 => caching_sha2_password(self.password, &self.salt),
            // Without a password there is nothing to hide.
            Plugin::Sha256 if self.is_secure() || self.password.is_empty() => {
                clear_password(self.password)
            }
            Plugin::Sha256 => vec![SHA256_REQUEST_PUBLIC_KEY],
        }
    }

    /// What to say to a plugin's data; nothing if the server goes on by itself.
    fn next_answer(&self, data: &[u8]) -> Result<Option<Vec<u8>>, ClientError> {
        match self.plugin {
            Plugin::Native => Err(ClientError::Answer("more than mysql_native_password needs")),
            Plugin::CachingSha2 => match CachingSha2::parse(data) {
                CachingSha2::FastOk => Ok(None),
                CachingSha2::FullAuthentication if self.is_secure() => {
                    Ok(Some(clear_password(self.password)))
                }
                CachingSha2::FullAuthentication => Ok(Some(vec![CACHING_SHA2_REQUEST_PUBLIC_KEY])),
                CachingSha2::PublicKey(key) => self.encrypted(key).map(Some),
            },
            Plugin::Sha256 => self.encrypted(data).map(Some),
        }
    }

    fn encrypted(&self, public_key: &[u8]) -> Result<Vec<u8>, ClientError> {
        encrypt_password(public_key, &clear_password(self.password), &self.salt)
            .map_err(ClientError::Password)
    }
}

impl Client {
    /// Begins TLS, if it is wanted. Gives the flags of the login.
    async fn start_tls(
        &mut self,
        link: &ServerLink,
        offered: Capabilities,
    ) -> Result<Capabilities, ClientError> {
        let capabilities = CAPABILITIES.and(offered.with(Capabilities::MYSQL));
        let is_offered = offered.has(Capabilities::SSL);
        let is_local = self.stream.is_local();
        if !link.wants_tls(OnBehalf::OfRemora, is_offered, is_local)? {
            return Ok(capabilities);
        }
        if self.input_start < self.input_end {
            // Whoever put them there wants them taken for what the server says inside TLS.
            return Err(ClientError::Answer("bytes between the greeting and TLS"));
        }
        let request = TlsRequest {
            capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: COLLATION,
        };
        let mut packet = Vec::new();
        self.sequence = put_message(&mut packet, self.sequence, &request.payload());
        self.stream.write_all(&packet).await?;
        link.start_tls(&self.stream).await?;
        Ok(capabilities.with(Capabilities::SSL))
    }

    /// Reads the greeting and answers until the server says yes or no.
    pub(super) async fn log_in(
        &mut self,
        link: &ServerLink,
        account: &Account,
    ) -> Result<(), ClientError> {
        self.next_answer().await?;
        let greeting = Greeting::parse(&self.payload)?;
        self.server_version.clone_from(&greeting.server_version);
        let capabilities = self.start_tls(link, greeting.capabilities).await?;
        let mut exchange = Exchange {
            // One that isn't known here may be the server's default and not the account's.
            plugin: Plugin::named(greeting.plugin.as_bytes()).unwrap_or(Plugin::Native),
            salt: salt_of(&greeting.salt).to_vec(),
            password: account.password.as_bytes(),
            is_tls: self.stream.is_tls(),
            is_unix: self.stream.is_unix(),
        };
        let login = Login {
            capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: COLLATION,
            user: account.user.clone().into_bytes(),
            authentication: exchange.first_answer(),
            schema: Vec::new(),
            plugin: exchange.plugin.name().into(),
        };
        self.stream.write_all(&login.packet(self.sequence)).await?;
        for _ in 0..ROUNDS_MAX {
            self.next_answer().await?;
            let answer = match AuthPacket::parse(&self.payload)? {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Switch { plugin, data } => {
                    exchange.plugin = Plugin::named(plugin).ok_or_else(|| {
                        let plugin = String::from_utf8_lossy(plugin).into_owned();
                        ClientError::Authentication(plugin)
                    })?;
                    exchange.salt = salt_of(data).to_vec();
                    Some(exchange.first_answer())
                }
                AuthPacket::More(data) => exchange.next_answer(data)?,
                AuthPacket::Err => return Err(ClientError::Answer("an error during login")),
            };
            if let Some(answer) = answer {
                let mut packet = Vec::new();
                put_message(&mut packet, self.sequence, &answer);
                self.stream.write_all(&packet).await?;
            }
        }
        Err(ClientError::Answer("a login without an end"))
    }
}
