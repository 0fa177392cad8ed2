//! Logging in: greeting, TLS, and the exchange that [`ClientLogin`] knows.

use remora_net::tls::encrypt_password;
use remora_wire::Capabilities;
use remora_wire::handshake::{Greeting, Login, TlsRequest};
use remora_wire::login::{ClientLogin, LoginStep, Plugin, Privacy};
use remora_wire::packet::put_message;

use super::{Account, CAPABILITIES, COLLATION, Client, ClientError};
use crate::link::{OnBehalf, ServerLink};

/// The largest packet that is taken, bytes.
const PACKET_BYTES_MAX: u32 = u32::MAX >> 2;
/// Packets that a server may send before it says yes or no. No plugin needs half of them.
const ROUNDS_MAX: u32 = 16;

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
        // One that isn't known here may be the server's default and not the account's.
        let plugin = Plugin::named(greeting.plugin.as_bytes()).unwrap_or(Plugin::Native);
        let password = account.password.as_bytes();
        let (first_answer, mut login) =
            ClientLogin::begin(plugin, &greeting.salt, password, self.privacy());
        let request = Login {
            capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: COLLATION,
            user: account.user.clone().into_bytes(),
            authentication: first_answer,
            schema: Vec::new(),
            plugin: plugin.name().into(),
        };
        self.stream
            .write_all(&request.packet(self.sequence))
            .await?;
        for _ in 0..ROUNDS_MAX {
            self.next_answer().await?;
            let answer;
            (answer, login) = match login.hear(&self.payload)? {
                LoginStep::Send(answer, login) => (answer, login),
                LoginStep::Encrypt {
                    public_key,
                    password,
                    salt,
                    login,
                } => {
                    let sealed = encrypt_password(public_key, &password, &salt);
                    (sealed.map_err(ClientError::Password)?, login)
                }
                LoginStep::Wait(next) => {
                    login = next;
                    continue;
                }
                LoginStep::LoggedIn => return Ok(()),
                LoginStep::Refused(error) => return Err(ClientError::Server(error)),
                LoginStep::UnknownPlugin(plugin) => {
                    return Err(ClientError::Authentication(plugin));
                }
                LoginStep::Surplus => {
                    return Err(ClientError::Answer("more than mysql_native_password needs"));
                }
            };
            let mut packet = Vec::new();
            put_message(&mut packet, self.sequence, &answer);
            self.stream.write_all(&packet).await?;
        }
        Err(ClientError::Answer("a login without an end"))
    }

    fn privacy(&self) -> Privacy {
        if self.stream.is_tls() {
            Privacy::Tls
        } else if self.stream.is_unix() {
            Privacy::UnixSocket
        } else {
            Privacy::None
        }
    }
}
