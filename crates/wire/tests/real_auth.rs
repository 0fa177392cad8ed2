//! Authentication against a real MySQL 8, over TCP without TLS: with `REMORA_WIRE_PORT` set to its
//! port, users `sha2` (`caching_sha2_password`), `sha256` (`sha256_password`) and `native`, all
//! with the password in `support/server.rs`, and a schema `shop`. RSA is done by the `openssl`
//! program.
//!
//! Servers: mariadb-10.11
//! Load: waits

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::net::TcpStream;

use remora_wire::Capabilities;
use remora_wire::auth::{
    AuthPacket, CACHING_SHA2_PASSWORD, CachingSha2, NATIVE_PASSWORD, SHA256_PASSWORD,
};
use remora_wire::compress::{Channel, Role};
use remora_wire::handshake::{Greeting, Login, LoginChange};
use remora_wire::login::{ClientLogin, Plugin, Privacy};
use remora_wire::packet::put_message;
use remora_wire::response::ServerError;

use support::connection::{Connection, authenticate, read_message};
use support::server::PASSWORD;

const BASE: Capabilities = Capabilities::PROTOCOL_41
    .with(Capabilities::MYSQL)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .with(Capabilities::CONNECT_WITH_DB);

fn port() -> u16 {
    let port = std::env::var("REMORA_WIRE_PORT").expect("REMORA_WIRE_PORT is set");
    port.parse().unwrap()
}

/// What happened in an exchange, in the order it did.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Switch(String),
    Fast,
    Full,
    Key,
    Ok,
    Err(u16),
}

impl Step {
    fn of(payload: &[u8]) -> Step {
        match AuthPacket::parse(payload).unwrap() {
            AuthPacket::Ok => Step::Ok,
            AuthPacket::Err => Step::Err(ServerError::parse(payload).unwrap().code),
            AuthPacket::Switch { plugin, .. } => {
                Step::Switch(String::from_utf8(plugin.to_vec()).unwrap())
            }
            AuthPacket::More(data) => match CachingSha2::parse(data) {
                CachingSha2::FastOk => Step::Fast,
                CachingSha2::FullAuthentication => Step::Full,
                CachingSha2::PublicKey(_) => Step::Key,
            },
        }
    }
}

/// A client without TLS.
struct Client {
    stream: TcpStream,
    steps: Vec<Step>,
}

impl Client {
    /// Logs in with `plugin` and whatever `change` makes of the login; gives the client, and the
    /// server's offer.
    fn login(
        user: &str,
        password: &str,
        plugin: &str,
        change: &LoginChange,
    ) -> (Client, Greeting, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", port())).unwrap();
        let (payload, _) = read_message(&mut stream, 0);
        let greeting = Greeting::parse(&payload).unwrap();
        let mut client = Client {
            stream,
            steps: Vec::new(),
        };
        let known = Plugin::named(plugin.as_bytes()).unwrap();
        let (first_answer, login) =
            ClientLogin::begin(known, &greeting.salt, password.as_bytes(), Privacy::None);
        let request = Login {
            capabilities: BASE,
            packet_bytes_max: 1 << 24,
            collation: 45,
            user: user.into(),
            authentication: first_answer,
            schema: b"shop".to_vec(),
            plugin: plugin.into(),
        };
        let mut payload = request.packet(1).split_off(4);
        // Attributes, which come after everything that `Login` knows.
        payload[2] |= 1 << 4;
        payload.extend(b"\x0a\x03key\x05value");
        let sent = change.apply(&payload).unwrap();
        let mut packet = Vec::new();
        put_message(&mut packet, 1, &sent);
        client.stream.write_all(&packet).unwrap();
        let steps = &mut client.steps;
        // A refusal is among the steps.
        let _ = authenticate(&mut client.stream, login, |payload| {
            steps.push(Step::of(payload));
        });
        (client, greeting, sent)
    }

    fn steps(user: &str, password: &str, plugin: &str) -> Vec<Step> {
        Client::login(user, password, plugin, &LoginChange::default())
            .0
            .steps
    }
}

#[test]
#[ignore = "needs REMORA_WIRE_PORT"]
fn a_password_is_proved_to_the_plugins_with_sha256() {
    // Empties the server's cache of accounts.
    let mut native = Connection::login(port(), "native", PASSWORD, BASE).unwrap();
    native.must("FLUSH PRIVILEGES");
    let with = |user, plugin| Client::steps(user, PASSWORD, plugin);
    let caching = CACHING_SHA2_PASSWORD;
    assert_eq!(with("sha2", caching), [Step::Full, Step::Key, Step::Ok]);
    assert_eq!(with("sha2", caching), [Step::Fast, Step::Ok]);
    let switch = |to: &str| Step::Switch(to.to_owned());
    assert_eq!(
        with("sha2", NATIVE_PASSWORD),
        [switch(caching), Step::Fast, Step::Ok]
    );
    assert_eq!(
        with("sha256", caching),
        [switch(SHA256_PASSWORD), Step::Key, Step::Ok]
    );
    assert_eq!(
        with("sha256", SHA256_PASSWORD),
        [switch(SHA256_PASSWORD), Step::Key, Step::Ok]
    );
    let refused = Client::steps("sha2", "wrong", caching);
    assert_eq!(refused, [Step::Full, Step::Key, Step::Err(1045)]);
    let refused = Client::steps("sha256", "wrong", caching);
    assert_eq!(
        refused,
        [switch(SHA256_PASSWORD), Step::Key, Step::Err(1045)]
    );
}

#[test]
#[ignore = "needs REMORA_WIRE_PORT"]
fn a_changed_login_is_what_the_server_goes_by() {
    for flag in [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION] {
        let change = LoginChange {
            add: flag,
            zstd_level: Some(9),
            ..LoginChange::default()
        };
        let (mut client, greeting, sent) =
            Client::login("native", PASSWORD, NATIVE_PASSWORD, &change);
        assert_eq!(client.steps.last(), Some(&Step::Ok));
        let algorithm = Login::compression(&sent, greeting.capabilities)
            .unwrap()
            .unwrap();
        let mut channel = Channel::new(algorithm, Role::Client);
        let mut packed = Vec::new();
        channel.send(b"\x01\0\0\0\x0e", &mut packed);
        client.stream.write_all(&packed).unwrap();
        let mut header = [0; 7];
        std::io::Read::read_exact(&mut client.stream, &mut header).unwrap();
        assert_eq!(header, [11, 0, 0, 1, 0, 0, 0]);
    }
}
