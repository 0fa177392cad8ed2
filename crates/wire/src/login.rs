//! The client's side of a login: what to answer to each packet of the server, up to yes or no.
//!
//! | plugin | first answer | then |
//! |---|---|---|
//! | `mysql_native_password` | the salted digest | |
//! | `caching_sha2_password` | the salted digest | if the server doesn't have the account in its cache: the password itself |
//! | `sha256_password` | the password itself | |
//!
//! "The password itself" goes in the clear only where servers take it so: inside TLS, and with
//! `caching_sha2_password` over a Unix socket ([`Privacy`]). Elsewhere the server is asked for its
//! public key, and gets the password encrypted with it. The server may switch from one plugin to
//! another at any time.
//!
//! Hearing a packet consumes the login, and gives back one that goes on if there is anything to go
//! on with. So no packet is answered twice, and none after the end:
//!
//! ```text
//! begin ──> the first answer, for the login request, and a ClientLogin
//!
//! ClientLogin ── hear(packet) ──┬─ Send, Encrypt, Wait: a ClientLogin again
//!                               └─ LoggedIn, Refused, UnknownPlugin, Surplus: the end
//! ```
//!
//! Greeting, TLS and login request come before that, and are their callers': [`crate::handshake`]
//! has their packets. So are the packets' numbers, and a limit for how many of them a server may
//! send.
//!
//! Source: MySQL internals, "Authentication Methods"; "Caching SHA-2 Pluggable Authentication".

use crate::WireError;
use crate::auth::{
    AuthPacket, CACHING_SHA2_PASSWORD, CACHING_SHA2_REQUEST_PUBLIC_KEY, CachingSha2,
    NATIVE_PASSWORD, SHA256_PASSWORD, SHA256_REQUEST_PUBLIC_KEY, caching_sha2_password,
    clear_password, native_password, salt_of,
};
use crate::response::ServerError;

/// A plugin that a login can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`.
    Native,
    /// `caching_sha2_password`.
    CachingSha2,
    /// `sha256_password`.
    Sha256,
}

impl Plugin {
    /// The plugin of this name; `None` if it isn't known here.
    pub fn named(name: &[u8]) -> Option<Plugin> {
        [Plugin::Native, Plugin::CachingSha2, Plugin::Sha256]
            .into_iter()
            .find(|plugin| plugin.name().as_bytes() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Plugin::Native => NATIVE_PASSWORD,
            Plugin::CachingSha2 => CACHING_SHA2_PASSWORD,
            Plugin::Sha256 => SHA256_PASSWORD,
        }
    }
}

/// What keeps others from reading a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Nothing.
    None,
    /// It doesn't leave the machine. For `sha256_password` that isn't enough.
    UnixSocket,
    /// It is encrypted.
    Tls,
}

/// What a packet of the server means for the client. As it may hold the password, it can't be
/// printed.
pub enum LoginStep<'a, 'p> {
    /// Send this payload, then hear the next packet.
    Send(Vec<u8>, ClientLogin<'a>),
    /// Encrypt the password and send it, then hear the next packet.
    Encrypt {
        /// What the server sent as its key, in PEM form if it keeps to the protocol.
        public_key: &'p [u8],
        /// The password with its NUL.
        password: Vec<u8>,
        /// What it is mixed with first ([`crate::auth::xor_with_salt`]).
        salt: Vec<u8>,
        /// The login after that.
        login: ClientLogin<'a>,
    },
    /// Hear the next packet. The server goes on by itself.
    Wait(ClientLogin<'a>),
    /// The packet was the OK that ends the login.
    LoggedIn,
    /// The server said no.
    Refused(ServerError),
    /// The server switched to a plugin that isn't known here.
    UnknownPlugin(String),
    /// The server went on where `mysql_native_password` has ended.
    Surplus,
}

/// A client whose last answer is sent, and who waits for the server's next packet. As it holds the
/// password, it can't be printed.
pub struct ClientLogin<'a> {
    plugin: Plugin,
    salt: Vec<u8>,
    password: &'a [u8],
    privacy: Privacy,
}

impl<'a> ClientLogin<'a> {
    /// Begins with a plugin, and the salt of the greeting. Gives the plugin's first answer, which
    /// goes into the login request, and the login after that.
    pub fn begin(
        plugin: Plugin,
        salt: &[u8],
        password: &'a [u8],
        privacy: Privacy,
    ) -> (Vec<u8>, ClientLogin<'a>) {
        let login = ClientLogin {
            plugin,
            salt: salt.to_vec(),
            password,
            privacy,
        };
        (login.first_answer(), login)
    }

    /// Takes the payload of the server's next packet.
    pub fn hear<'p>(self, payload: &'p [u8]) -> Result<LoginStep<'a, 'p>, WireError> {
        let data = match AuthPacket::parse(payload)? {
            AuthPacket::Ok => return Ok(LoginStep::LoggedIn),
            AuthPacket::Err => return ServerError::parse(payload).map(LoginStep::Refused),
            AuthPacket::Switch { plugin, data } => {
                let Some(plugin) = Plugin::named(plugin) else {
                    let name = String::from_utf8_lossy(plugin).into_owned();
                    return Ok(LoginStep::UnknownPlugin(name));
                };
                let salt = salt_of(data);
                let (answer, login) = Self::begin(plugin, salt, self.password, self.privacy);
                return Ok(LoginStep::Send(answer, login));
            }
            AuthPacket::More(data) => data,
        };
        Ok(match (self.plugin, CachingSha2::parse(data)) {
            (Plugin::Native, _) => LoginStep::Surplus,
            (Plugin::CachingSha2, CachingSha2::FastOk) => LoginStep::Wait(self),
            (Plugin::CachingSha2, CachingSha2::FullAuthentication) => {
                LoginStep::Send(self.secret(CACHING_SHA2_REQUEST_PUBLIC_KEY), self)
            }
            (Plugin::CachingSha2, CachingSha2::PublicKey(_)) | (Plugin::Sha256, _) => {
                LoginStep::Encrypt {
                    public_key: data,
                    password: clear_password(self.password),
                    salt: self.salt.clone(),
                    login: self,
                }
            }
        })
    }

    /// What the plugin says unasked.
    fn first_answer(&self) -> Vec<u8> {
        match self.plugin {
            Plugin::Native => native_password(self.password, &self.salt),
            Plugin::CachingSha2 => caching_sha2_password(self.password, &self.salt),
            // Without a password there is nothing to hide.
            Plugin::Sha256 if self.password.is_empty() => clear_password(self.password),
            Plugin::Sha256 => self.secret(SHA256_REQUEST_PUBLIC_KEY),
        }
    }

    /// The password, where nobody else can read it and the server takes it so; else the request for
    /// the public key.
    fn secret(&self, key_request: u8) -> Vec<u8> {
        let is_secure = match self.privacy {
            Privacy::None => false,
            Privacy::UnixSocket => self.plugin == Plugin::CachingSha2,
            Privacy::Tls => true,
        };
        if is_secure {
            clear_password(self.password)
        } else {
            vec![key_request]
        }
    }
}
