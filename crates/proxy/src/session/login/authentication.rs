//! Authentication: relayed packet by packet, whatever the plugin, until the server says OK or ERR.
//!
//! Two plugins, `caching_sha2_password` and `sha256_password`, send the password itself at times:
//! as it is where the connection is secure, encrypted with the server's RSA key where it isn't.
//! When one side is secure and the other isn't, Remora translates: it plays the server's part of
//! the RSA exchange towards the client, or the client's towards the server. The password is held
//! for that moment only. Every other packet passes as it is.

use remora_net::Stream;
use remora_net::tls::{PasswordKey, encrypt_password};
use remora_wire::auth::{self, AuthPacket, CachingSha2, more_payload, salt_of};
use remora_wire::response::EndMark;

use super::packets::{Peer, receive_from_either};
use crate::session::{Ended, Side};

/// How an authentication exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Verdict {
    /// The server accepted, with this OK packet.
    Accepted(Option<EndMark>),
    /// The server refused and said so to the client.
    Refused,
}

/// The plugin in use, and its salt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::session) struct Method {
    /// The plugin's name.
    pub plugin: Vec<u8>,
    /// What the server mixes in, 20 bytes.
    pub salt: Vec<u8>,
}

const CACHING_SHA2_PASSWORD: &[u8] = auth::CACHING_SHA2_PASSWORD.as_bytes();
const SHA256_PASSWORD: &[u8] = auth::SHA256_PASSWORD.as_bytes();
/// An empty password, which both plugins send as it is.
const EMPTY_PASSWORD: &[u8] = &[0];
/// The first byte of a MySQL server's request for a further factor: a plugin's name and data
/// follow.
const NEXT_FACTOR: u8 = 0x02;

/// Whether a plugin sends the password itself over this connection, so without RSA. A Unix socket
/// is secure to one of them and not to the other.
fn sends_in_the_clear(stream: &Stream, plugin: &[u8]) -> bool {
    stream.is_tls() || (stream.is_unix() && plugin == CACHING_SHA2_PASSWORD)
}

/// The request for a public key, in a plugin that has one.
fn key_request(plugin: &[u8]) -> Option<u8> {
    match plugin {
        CACHING_SHA2_PASSWORD => Some(auth::CACHING_SHA2_REQUEST_PUBLIC_KEY),
        SHA256_PASSWORD => Some(auth::SHA256_REQUEST_PUBLIC_KEY),
        _ => None,
    }
}

/// Whether a login by this plugin has data that only its own side can read.
pub(super) fn needs_translation(plugin: &[u8], client: &Stream, server: &Stream) -> bool {
    plugin == SHA256_PASSWORD
        && sends_in_the_clear(client, plugin) != sends_in_the_clear(server, plugin)
}

/// Where a translated exchange is.
enum Stage {
    /// Nothing is translated.
    Relaying,
    /// The client will send its password.
    PasswordDue,
    /// The server will send its public key, for this password.
    KeyDue(Vec<u8>),
}

/// An authentication under way.
pub(super) struct Conversation<'a> {
    /// The client.
    pub client: Peer<'a>,
    /// The server.
    pub server: Peer<'a>,
    /// The plugin in use. What it is at the end is the session's.
    pub method: &'a mut Method,
    /// Whether several factors may be asked for (`CLIENT_MULTI_FACTOR_AUTHENTICATION`).
    pub has_factors: bool,
    /// Remora's own RSA key.
    pub key: &'a PasswordKey,
}

impl Conversation<'_> {
    /// Relays until the server has decided. Its decision is not sent yet: it comes back as bytes.
    pub(super) async fn relay(mut self) -> Result<Verdict, Ended> {
        // `sha256_password` sends its password as soon as it has been chosen.
        let mut stage = self.stage_of_plugin();
        loop {
            let (from, payload) = receive_from_either(&mut self.client, &mut self.server).await?;
            stage = match from {
                Side::Client => self.take_from_client(stage, &payload).await?,
                Side::Server => {
                    if let Stage::KeyDue(password) = &stage
                        && let Ok(AuthPacket::More(public_key)) = AuthPacket::parse(&payload)
                    {
                        self.send_encrypted(public_key, password).await?;
                        stage = Stage::Relaying;
                        continue;
                    }
                    self.client.send(&payload).await?;
                    match AuthPacket::parse(&payload) {
                        Ok(AuthPacket::Ok) => {
                            let mark = EndMark::from_ok(&payload).ok();
                            return Ok(Verdict::Accepted(mark));
                        }
                        Ok(AuthPacket::Err) => return Ok(Verdict::Refused),
                        _ => self.after_server(stage, &payload),
                    }
                }
            };
        }
    }

    fn stage_of_plugin(&self) -> Stage {
        if self.method.plugin == SHA256_PASSWORD {
            Stage::PasswordDue
        } else {
            Stage::Relaying
        }
    }

    /// What a server's packet, which has been relayed, means for what follows.
    fn after_server(&mut self, stage: Stage, payload: &[u8]) -> Stage {
        let is_factor = self.has_factors && payload.first() == Some(&NEXT_FACTOR);
        let switched = match AuthPacket::parse(payload) {
            Ok(AuthPacket::Switch { plugin, data }) => Some((plugin, data)),
            _ if is_factor => {
                let mut parts = payload[1..].splitn(2, |byte| *byte == 0);
                let plugin = parts.next().unwrap_or_default();
                Some((plugin, parts.next().unwrap_or_default()))
            }
            _ => None,
        };
        if let Some((plugin, data)) = switched {
            self.method.plugin = plugin.to_vec();
            self.method.salt = salt_of(data).to_vec();
            return self.stage_of_plugin();
        }
        match AuthPacket::parse(payload) {
            Ok(AuthPacket::More(data))
                if self.method.plugin == CACHING_SHA2_PASSWORD
                    && CachingSha2::parse(data) == CachingSha2::FullAuthentication =>
            {
                Stage::PasswordDue
            }
            _ => stage,
        }
    }

    async fn take_from_client(&mut self, stage: Stage, payload: &[u8]) -> Result<Stage, Ended> {
        let plugin = &self.method.plugin;
        let client_is_clear = sends_in_the_clear(self.client.stream, plugin);
        let server_is_clear = sends_in_the_clear(self.server.stream, plugin);
        let request = match (&stage, key_request(plugin)) {
            (Stage::PasswordDue, Some(request))
                if client_is_clear != server_is_clear && payload != EMPTY_PASSWORD =>
            {
                request
            }
            _ => {
                self.server.send(payload).await?;
                return Ok(stage);
            }
        };
        if client_is_clear && payload.ends_with(&[0]) {
            self.server.send(&[request]).await?;
            return Ok(Stage::KeyDue(payload.to_vec()));
        }
        if client_is_clear {
            // No password: what it is, the server knows better.
            self.server.send(payload).await?;
            return Ok(stage);
        }
        if payload == [request] {
            self.offer_own_key().await?;
            return Ok(stage);
        }
        self.send_decrypted(payload).await?;
        Ok(Stage::Relaying)
    }

    /// Plays the client's part: encrypts the password for the server.
    async fn send_encrypted(&mut self, public_key: &[u8], password: &[u8]) -> Result<(), Ended> {
        match encrypt_password(public_key, password, &self.method.salt) {
            Ok(sealed) => self.server.send(&sealed).await,
            Err(error) => {
                let message = format!("Remora can't encrypt the password for the server: {error}");
                Err(self.client.refusal(2061, "HY000", message))
            }
        }
    }

    /// Plays the server's part: sends a public key, of which Remora has the private one.
    async fn offer_own_key(&mut self) -> Result<(), Ended> {
        match self.key.public_pem().await {
            Ok(pem) => self.client.send(&more_payload(pem)).await,
            Err(error) => {
                let message = format!("Remora has no key for the password: {error}");
                Err(self.client.refusal(2061, "HY000", message))
            }
        }
    }

    /// Plays the server's part to its end, and the client's: sends the password on.
    async fn send_decrypted(&mut self, sealed: &[u8]) -> Result<(), Ended> {
        let salt = &self.method.salt;
        let Ok(password) = self.key.decrypt_password(sealed, salt).await else {
            let message = "Remora can't read the password: it was not encrypted with Remora's \
                           public key; listen.rsa_key_file lets Remora use the server's, or connect with TLS";
            return Err(self.client.refusal(2061, "HY000", message));
        };
        self.server.send(&password).await
    }
}
