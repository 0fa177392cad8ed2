//! From the accepted socket to a session that is logged in. Greeting, login and authentication are
//! relayed; TLS and compression are agreed with each side on its own. Remora stores no password and
//! answers for nobody.
//!
//! | file | part |
//! |---|---|
//! | `packets.rs` | single packets, with a row of sequence numbers for each side |
//! | `rewrite.rs` | greeting and login with the flags of the other side |
//! | `authentication.rs` | the plugin's packets, translated where one side is secure and the other isn't |

mod authentication;
mod packets;
mod rewrite;

use std::io;
use std::sync::atomic::Ordering;

use remora_engine::reason::Limit;
use remora_wire::Capabilities;
use remora_wire::compress::Role;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::HEADER_BYTES;
use remora_wire::response::EndMark;

use self::authentication::{Conversation, needs_translation};
pub(super) use self::authentication::{Method, Verdict};
use remora_net::{Addresses, Stream, receive_proxy_header};
use remora_upstream::link::OnBehalf;
use remora_upstream::privileges::Look;

use self::packets::Peer;
use super::{Ended, LAST_WORDS_BYTES, Session, Step};
use crate::shared::Shared;

/// `CLIENT_MULTI_FACTOR_AUTHENTICATION` of MySQL 8.0.27 and later.
const MULTI_FACTOR: Capabilities = Capabilities(1 << 28);

/// A login that the server accepted.
#[derive(Debug)]
pub(super) struct LoggedIn {
    /// The features that both sides use.
    pub capabilities: Capabilities,
    /// The server's first OK.
    pub mark: Option<EndMark>,
    /// The connection's number on the server.
    pub connection_id: u32,
    /// How the client was authenticated.
    pub method: Method,
}

/// Whom a client's connection is made for: what a load balancer says in the configured networks,
/// else the client's own address.
pub(super) async fn addresses(
    client: &Stream,
    shared: &Shared,
) -> Result<Option<Addresses>, Ended> {
    let Some((source, destination)) = client.addresses()? else {
        return Ok(None);
    };
    let networks = &shared.proxy_protocol_from;
    if !networks.iter().any(|network| network.contains(source.ip())) {
        return Ok(Some(Addresses {
            source,
            destination,
        }));
    }
    let limit = shared.limits.proxy_protocol_timeout;
    match tokio::time::timeout(limit, receive_proxy_header(client)).await {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => {
            if error.kind() == io::ErrorKind::InvalidData {
                count_protocol_error(shared);
                tracing::debug!(%error, %source, "closing a connection from listen.proxy_protocol_from");
            }
            Err(error.into())
        }
        Err(_) => {
            shared.metrics.rare.count_limit(Limit::ProxyProtocolTime);
            Err(Ended::closed())
        }
    }
}

/// Relays greeting, login and authentication, and puts on both connections what was agreed.
pub(super) async fn relay_login(
    client: &Stream,
    server: &Stream,
    shared: &Shared,
) -> Result<LoggedIn, Ended> {
    let mut handshake = Handshake {
        client: Peer::client(client, 0),
        server: Peer::server(server, 0),
        shared,
    };
    let (from_server, offered) = handshake.greet().await?;
    let payload = tokio::select! {
        biased;
        login = handshake.client_login() => login?,
        ended = relay_last_words(client, server) => return Err(ended),
    };
    let bad_handshake = |_| handshake.client.refusal(1043, "08S01", "Bad handshake");
    let login = Login::parse(&payload).map_err(bad_handshake)?;
    let of_client = Login::compression(&payload, offered).map_err(bad_handshake)?;
    let wanted = shared.link.compression();
    let of_server = rewrite::server_compression(wanted, from_server.capabilities);
    let over_tls = handshake.agree_on_tls(from_server.capabilities)?;
    let rewritten = rewrite::login(&payload, over_tls, of_server).map_err(bad_handshake)?;
    if over_tls {
        handshake.start_tls(&rewritten).await?;
    }
    let mut method = Method {
        plugin: login.plugin.clone(),
        salt: from_server.salt,
    };
    handshake.send_login(rewritten, &login, &mut method).await?;
    let conversation = Conversation {
        client: handshake.client,
        server: handshake.server,
        method: &mut method,
        has_factors: login.capabilities.and(offered).has(MULTI_FACTOR),
        key: &shared.link.tls().password_key,
    };
    let mark = match conversation.relay().await? {
        Verdict::Refused => return Err(Ended::Refused),
        Verdict::Accepted(mark) => mark,
    };
    // From the byte after the OK on.
    if let Some(algorithm) = of_client {
        client.compress(algorithm, Role::Server);
    }
    if let Some(algorithm) = of_server {
        server.compress(algorithm, Role::Client);
    }
    let capabilities = login.capabilities.and(offered);
    Ok(LoggedIn {
        capabilities: capabilities.without(rewrite::OF_TRANSPORT),
        mark,
        connection_id: from_server.connection_id,
        method,
    })
}

/// A login before the authentication.
struct Handshake<'a> {
    client: Peer<'a>,
    server: Peer<'a>,
    shared: &'a Shared,
}

impl Handshake<'_> {
    /// Relays the greeting. Gives it as the server sent it, and what the client is offered.
    async fn greet(&mut self) -> Result<(Greeting, Capabilities), Ended> {
        let mut greeting = self.server.receive().await?;
        if greeting.first() == Some(&0xff) {
            self.client.send(&greeting).await?;
            return Err(Ended::Refused);
        }
        let offers_tls = self.shared.link.tls().offers_tls();
        let (from_server, offered) =
            rewrite::greeting(&mut greeting, offers_tls).map_err(|_| {
                let text = "Remora: the server's greeting is not one that Remora can read";
                self.client.refusal(2027, "HY000", text)
            })?;
        self.client.send(&greeting).await?;
        Ok((from_server, offered))
    }

    /// The client's login, after TLS if it asks for that. One that takes too long is ended by the
    /// server, after its `connect_timeout`.
    async fn client_login(&mut self) -> Result<Vec<u8>, Ended> {
        let payload = self.client.receive().await?;
        if !Login::is_tls_request(&payload) {
            return Ok(payload);
        }
        let Some(config) = self.shared.link.tls().to_clients() else {
            let text = "Bad handshake: Remora does not offer TLS, and the client asked for it";
            return Err(self.client.refusal(1043, "08S01", text));
        };
        if let Err(error) = self.client.stream.accept_tls(config).await {
            count_protocol_error(self.shared);
            tracing::debug!(%error, "a client's TLS handshake failed");
            return Err(error.into());
        }
        self.client.receive().await
    }

    /// Whether the connection to the server is to use TLS.
    fn agree_on_tls(&self, from_server: Capabilities) -> Result<bool, Ended> {
        let on_behalf = OnBehalf::OfClient {
            over_tls: self.client.stream.is_tls(),
        };
        let is_offered = from_server.has(Capabilities::SSL);
        let is_local = self.server.stream.is_local();
        self.shared
            .link
            .wants_tls(on_behalf, is_offered, is_local)
            .map_err(|error| self.refuse_tls(error))
    }

    fn refuse_tls(&self, error: impl std::fmt::Display) -> Ended {
        let text = format!("Remora: TLS to the server: {error}");
        self.client.refusal(2026, "HY000", text)
    }

    async fn start_tls(&mut self, login: &[u8]) -> Result<(), Ended> {
        self.server.send(rewrite::tls_request(login)).await?;
        let reached = self.shared.upstream.reached();
        if let Err(error) = self.shared.link.start_tls(self.server.stream).await {
            tracing::debug!(%error, "can't begin TLS with the server");
            self.shared
                .server_unreachable(format!("TLS: {error}"), reached);
            return Err(self.refuse_tls(error));
        }
        Ok(())
    }

    /// Sends the login. Where its data are of no use to the server, the server is made to ask for
    /// them.
    async fn send_login(
        &mut self,
        rewritten: Vec<u8>,
        login: &Login,
        method: &mut Method,
    ) -> Result<(), Ended> {
        let mut rewritten = rewritten;
        if needs_translation(&login.plugin, self.client.stream, self.server.stream)
            && let Some(bare) =
                rewrite::without_authentication(&rewritten, login.capabilities, false)
        {
            method.plugin.clear();
            rewritten = bare;
        }
        self.server.send(&rewritten).await
    }
}

fn count_protocol_error(shared: &Shared) {
    shared
        .metrics
        .rare
        .protocol_errors
        .fetch_add(1, Ordering::Relaxed);
}

/// Waits until the server speaks although it is the client's turn: it closes, or says why it will.
async fn relay_last_words(client: &Stream, server: &Stream) -> Ended {
    let mut chunk = vec![0; LAST_WORDS_BYTES];
    loop {
        if let Err(error) = server.readable().await {
            return error.into();
        }
        match server.try_read(&mut chunk) {
            Ok(0) => return Ended::closed(),
            Ok(count) => {
                if let Err(error) = client.write_all(&chunk[..count]).await {
                    return error.into();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error.into(),
        }
    }
}

impl Session {
    /// A `COM_CHANGE_USER`, as the server is to get it.
    pub(super) fn handle_change_user(&mut self, message: &[u8]) -> Result<Step, Ended> {
        let payload = message.get(HEADER_BYTES..).unwrap_or_default();
        self.method.plugin = rewrite::plugin_of_change(payload);
        if needs_translation(&self.method.plugin, &self.client, &self.server)
            && let Some(bare) = rewrite::without_authentication(payload, self.capabilities(), true)
        {
            self.method.plugin.clear();
            let mut message = Vec::with_capacity(bare.len() + HEADER_BYTES);
            remora_wire::packet::put_message(&mut message, 0, &bare);
            return self.handle_other(&message, &[], remora_wire::Command::ChangeUser);
        }
        self.handle_other(message, &[], remora_wire::Command::ChangeUser)
    }

    /// `COM_CHANGE_USER` has been sent: relays its authentication. `look` was begun before that.
    pub(super) async fn relay_change_user(&mut self, look: Look) -> Result<(), Ended> {
        let has_factors = self.capabilities().has(MULTI_FACTOR);
        let conversation = Conversation {
            client: Peer::client(&self.client, 1),
            server: Peer::server(&self.server, 1),
            method: &mut self.method,
            has_factors,
            key: &self.shared.link.tls().password_key,
        };
        match conversation.relay().await? {
            Verdict::Accepted(mark) => {
                let global = self.shared.query_cache.own_values();
                let epoch = self.shared.privileges().end_look(look);
                self.state.changed_user(epoch, mark, global);
                self.forget_early();
                self.prepared.clear();
                Ok(())
            }
            // MySQL closes the connection then, and the session ends with that.
            Verdict::Refused => {
                self.state.refused_user();
                self.prepared.clear();
                Ok(())
            }
        }
    }
}
