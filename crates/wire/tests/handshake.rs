//! Greeting and login: what real peers send, and whatever is made up.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

mod support;

use std::net::TcpListener;
use std::process::{Command, Stdio};

use std::io::{Read, Write};

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::auth::{NATIVE_PASSWORD, native_password};
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{Header, put_message};
use remora_wire::response::ServerError;
use remora_wire::{Capabilities, StatusFlags, WireError};

use support::connection::read_message;

/// A greeting of MySQL 8.0.31 as it came.
const MYSQL_8: &str = "0a382e302e33310024000000184f657a510d413700ffffff0200ffdf1500000000000000\
    0000003d426933542b3f3d1a741e650063616368696e675f736861325f70617373776f726400";
/// A greeting of MariaDB 10.11 as it came.
const MARIADB_10_11: &str = "0a352e352e352d31302e31312e31392d4d6172696144422d302b6465623132753100030000006129445c212f673d00fef72d\
    0200ff81150000000000001d000000373c656b6746664e34563853006d7973716c5f6e61746976655f70617373776f726400";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).filter_map(byte).collect()
}

#[test]
fn a_greeting_of_mysql_8_is_understood() {
    let payload = bytes(MYSQL_8);
    let greeting = Greeting::parse(&payload).unwrap();
    assert_eq!(greeting.server_version, "8.0.31");
    assert_eq!(greeting.connection_id, 0x24);
    assert_eq!(greeting.salt.len(), 20);
    assert_eq!(greeting.plugin, "caching_sha2_password");
    assert_eq!(greeting.collation, 255);
    assert_eq!(StatusFlags(greeting.status), StatusFlags::AUTOCOMMIT);
    let offered = Capabilities::MYSQL
        .with(Capabilities::SSL)
        .with(Capabilities::DEPRECATE_EOF)
        .with(Capabilities::OPTIONAL_RESULTSET_METADATA)
        .with(Capabilities::QUERY_ATTRIBUTES);
    assert!(greeting.capabilities.has(offered));
    assert_eq!(greeting.capabilities.0 >> 32, 0);
    assert_eq!(greeting.payload(), payload);
}

#[test]
fn a_greeting_of_mariadb_is_understood() {
    let payload = bytes(MARIADB_10_11);
    let greeting = Greeting::parse(&payload).unwrap();
    assert!(greeting.server_version.starts_with("5.5.5-10.11."));
    assert_eq!(greeting.plugin, "mysql_native_password");
    assert!(!greeting.capabilities.has(Capabilities::MYSQL));
    let offered = Capabilities::MARIADB_PROGRESS
        .with(Capabilities::MARIADB_CACHE_METADATA)
        .with(Capabilities::DEPRECATE_EOF);
    assert!(greeting.capabilities.has(offered));
    assert_eq!(greeting.payload(), payload);
}

#[test]
fn another_decoder_reads_the_same_greetings() {
    for payload in [MYSQL_8, MARIADB_10_11].map(bytes) {
        let greeting = Greeting::parse(&payload).unwrap();
        let other: HandshakePacket<'_> = ParseBuf(&payload).parse(()).unwrap();
        assert_eq!(other.server_version_str(), greeting.server_version);
        assert_eq!(other.connection_id(), greeting.connection_id);
        // Some keep the NUL at the salt's end.
        assert_eq!(other.nonce()[..20], greeting.salt);
        assert_eq!(other.default_collation(), greeting.collation);
        let low = u64::from(other.capabilities().bits());
        let high = u64::from(other.mariadb_ext_capabilities().bits());
        let known = u64::from(CapabilityFlags::all().bits())
            | u64::from(MariadbCapabilities::all().bits()) << 32;
        assert_eq!(low | high << 32, greeting.capabilities.0 & known);
        assert_eq!(other.auth_plugin_name_str().unwrap(), greeting.plugin);
    }
}

#[test]
fn a_truncated_greeting_is_an_error() {
    for payload in [MYSQL_8, MARIADB_10_11].map(bytes) {
        let version_bytes = payload.iter().position(|&byte| byte == 0).unwrap();
        // Up to the end of MariaDB's capabilities nothing may be missing.
        for length in 0..=version_bytes + 31 {
            let parsed = Greeting::parse(&payload[..length]);
            assert!(matches!(parsed, Err(WireError::Truncated(_))), "{length}");
            let mut cut = payload[..length].to_vec();
            assert!(Greeting::withdraw(&mut cut, Capabilities::SSL).is_err());
            assert_eq!(cut, payload[..length]);
        }
    }
}

#[test]
fn foreign_greetings_are_refused() {
    let mut payload = bytes(MYSQL_8);
    payload[0] = 9;
    let parsed = Greeting::parse(&payload);
    assert!(matches!(parsed, Err(WireError::Unsupported(_))));
    let mut payload = bytes(MYSQL_8);
    Greeting::withdraw(&mut payload, Capabilities::PROTOCOL_41).unwrap();
    let parsed = Greeting::parse(&payload);
    assert!(matches!(parsed, Err(WireError::Unsupported(_))));
}

#[test]
fn withdrawn_capabilities_are_gone_and_nothing_else_is() {
    let unwanted = Capabilities::SSL
        .with(Capabilities::COMPRESS)
        .with(Capabilities::ZSTD_COMPRESSION)
        .with(Capabilities::MARIADB_COM_MULTI)
        .with(Capabilities::MARIADB_PROGRESS);
    for payload in [MYSQL_8, MARIADB_10_11].map(bytes) {
        let before = Greeting::parse(&payload).unwrap();
        let mut changed = payload.clone();
        Greeting::withdraw(&mut changed, unwanted).unwrap();
        let after = Greeting::parse(&changed).unwrap();
        let capabilities = before.capabilities.without(unwanted);
        let wanted = Greeting {
            capabilities,
            ..before
        };
        assert_eq!(after, wanted);
        assert_eq!(changed, wanted.payload());
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8.., 0..40)
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    any::<u64>().prop_map(|bits| {
        let set = Capabilities(bits).with(Capabilities::PROTOCOL_41);
        if set.has(Capabilities::MYSQL) {
            Capabilities(set.0 & 0xffff_ffff)
        } else {
            set
        }
    })
}

prop_compose! {
    fn greeting()(
        server_version in "[0-9A-Za-z.é-]{0,30}",
        connection_id in any::<u32>(),
        salt in vec(1u8.., 20..=60),
        capabilities in capabilities(),
        collation in any::<u8>(),
        status in any::<u16>(),
        plugin in "[a-z0-9_]{0,30}",
    ) -> Greeting {
        Greeting { server_version, connection_id, salt, capabilities, collation, status, plugin }
    }
}

prop_compose! {
    fn login()(
        capabilities in capabilities(),
        packet_bytes_max in any::<u32>(),
        collation in any::<u8>(),
        user in text(),
        authentication in vec(1u8.., 0..=250),
        schema in text(),
        plugin in text(),
    ) -> Login {
        let named = |flag, text| if capabilities.has(flag) { text } else { Vec::new() };
        Login {
            capabilities,
            packet_bytes_max,
            collation,
            user,
            authentication,
            schema: named(Capabilities::CONNECT_WITH_DB, schema),
            plugin: named(Capabilities::PLUGIN_AUTH, plugin),
        }
    }
}

proptest! {
    #[test]
    fn a_greeting_says_what_it_was_made_of(greeting in greeting()) {
        prop_assert_eq!(Greeting::parse(&greeting.payload()), Ok(greeting));
    }

    #[test]
    fn withdrawing_changes_only_the_capability_bytes(greeting in greeting(), unwanted in any::<u64>()) {
        let unwanted = Capabilities(unwanted);
        let mut payload = greeting.payload();
        Greeting::withdraw(&mut payload, unwanted).unwrap();
        let capabilities = greeting.capabilities.without(unwanted);
        // Without the MYSQL flag the high bits would begin to count.
        prop_assume!(capabilities.has(Capabilities::MYSQL) == greeting.capabilities.has(Capabilities::MYSQL));
        prop_assert_eq!(payload, Greeting { capabilities, ..greeting }.payload());
    }

    #[test]
    fn a_login_says_what_it_was_made_of(login in login(), sequence in any::<u8>()) {
        let packet = login.packet(sequence);
        let header = Header::peek(&packet).unwrap();
        prop_assert_eq!((header.sequence, header.length), (sequence, packet.len() - 4));
        prop_assert!(!Login::is_tls_request(&packet[4..]));
        prop_assert_eq!(Login::parse(&packet[4..]), Ok(login));
    }

    #[test]
    fn a_text_in_a_login_cannot_write_the_next_field(login in login(), nuls in vec(any::<u8>(), 0..30)) {
        let user = [&login.user[..], b"\0", &nuls].concat();
        let packet = Login { user, ..login.clone() }.packet(1);
        prop_assert_eq!(Login::parse(&packet[4..]), Ok(login));
    }

    #[test]
    fn an_answer_too_long_for_its_form_cannot_either(login in login(), length in 256usize..600) {
        let capabilities = login
            .capabilities
            .without(Capabilities::PLUGIN_AUTH_LENENC_DATA)
            .with(Capabilities::SECURE_CONNECTION);
        let login = Login { capabilities, authentication: vec![7; length], ..login };
        let parsed = Login::parse(&login.packet(1)[4..]).unwrap();
        prop_assert_eq!(&parsed.schema, &login.schema);
        prop_assert_eq!(&parsed.plugin, &login.plugin);
    }

    #[test]
    fn noise_is_no_greeting_and_no_login(noise in vec(any::<u8>(), 0..200)) {
        let _ = Greeting::parse(&noise);
        let _ = Login::parse(&noise);
        let _ = Login::is_tls_request(&noise);
        let mut payload = noise.clone();
        if Greeting::withdraw(&mut payload, Capabilities(u64::MAX)).is_err() {
            prop_assert_eq!(payload, noise);
        }
    }

    #[test]
    fn another_writers_logins_are_read(
        user in "[a-z]{0,16}",
        schema in proptest::option::of("[a-z]{1,16}"),
        answer in vec(any::<u8>(), 0..=40),
        lenenc in any::<bool>(),
        attributes in proptest::option::of(proptest::collection::hash_map("[a-z]{1,9}", "[a-z]{0,300}", 0..4)),
    ) {
        let mut flags = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        flags.set(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, lenenc);
        let response = HandshakeResponse::new(
            Some(answer.clone()),
            (8, 0, 31),
            Some(user.clone().into_bytes()),
            schema.clone().map(String::into_bytes),
            Some(AuthPlugin::MysqlNativePassword),
            flags,
            attributes,
            1 << 24,
        );
        let mut payload = Vec::new();
        response.serialize(&mut payload);
        let login = Login::parse(&payload).unwrap();
        prop_assert_eq!(login.user, user.into_bytes());
        prop_assert_eq!(login.schema, schema.unwrap_or_default().into_bytes());
        prop_assert_eq!(login.authentication, answer);
        prop_assert_eq!(login.plugin, NATIVE_PASSWORD.as_bytes());
        prop_assert_eq!(login.packet_bytes_max, 1 << 24);
    }
}

#[test]
fn a_truncated_login_is_an_error_unless_only_the_last_text_is_short() {
    let login = Login {
        capabilities: Capabilities(
            Capabilities::PROTOCOL_41
                .with(Capabilities::MYSQL)
                .with(Capabilities::SECURE_CONNECTION)
                .with(Capabilities::PLUGIN_AUTH)
                .with(Capabilities::CONNECT_WITH_DB)
                .0,
        ),
        packet_bytes_max: 1 << 24,
        collation: 45,
        user: b"app".to_vec(),
        authentication: vec![1; 20],
        schema: b"shop".to_vec(),
        plugin: NATIVE_PASSWORD.into(),
    };
    let packet = login.packet(1);
    for length in 0..32 + 4 + 21 {
        let parsed = Login::parse(&packet[4..4 + length]);
        assert!(matches!(parsed, Err(WireError::Truncated(_))), "{length}");
    }
}

/// Runs the `mariadb` client against a made-up server that offers `capabilities`; gives the first
/// payload that it answers the greeting with, and the greeting.
fn answer_of_client(capabilities: Capabilities, arguments: &[&str]) -> (Vec<u8>, Greeting) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let greeting = Greeting {
        server_version: "5.5.5-10.11.6-MariaDB".into(),
        connection_id: 7,
        salt: b"01234567890123456789".to_vec(),
        capabilities,
        collation: 45,
        status: StatusFlags::AUTOCOMMIT.0,
        plugin: NATIVE_PASSWORD.into(),
    };
    let mut client = Command::new("mariadb")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1"])
        .arg(format!("--port={port}"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test needs mariadb (Debian: mariadb-client)");
    let (mut stream, _) = listener.accept().unwrap();
    let mut packet = Vec::new();
    put_message(&mut packet, 0, &greeting.payload());
    stream.write_all(&packet).unwrap();
    let (payload, last) = read_message(&mut stream, 1);
    let refusal = ServerError::new(1045, "28000", "no");
    // A client that was about to speak TLS doesn't understand it, and ends all the same.
    let _ = stream.write_all(&refusal.packet(last.wrapping_add(1)));
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
    client.wait().unwrap();
    (payload, greeting)
}

/// What MariaDB 10.11 offers, without TLS and compression.
fn offered() -> Capabilities {
    let greeting = Greeting::parse(&bytes(MARIADB_10_11)).unwrap();
    let unwanted = Capabilities::SSL.with(Capabilities::COMPRESS);
    greeting.capabilities.without(unwanted)
}

#[test]
fn the_mariadb_client_logs_in() {
    for schema in ["", "shop"] {
        let arguments = ["--user=someone", "--password=secret", schema];
        let arguments = &arguments[..if schema.is_empty() { 2 } else { 3 }];
        let (payload, greeting) = answer_of_client(offered(), arguments);
        assert!(!Login::is_tls_request(&payload));
        let login = Login::parse(&payload).unwrap();
        assert_eq!(login.user, b"someone");
        assert_eq!(login.schema, schema.as_bytes());
        assert_eq!(login.plugin, NATIVE_PASSWORD.as_bytes());
        assert_eq!(
            login.authentication,
            native_password(b"secret", &greeting.salt)
        );
        assert_eq!(
            login.capabilities.has(Capabilities::CONNECT_WITH_DB),
            !schema.is_empty()
        );
        assert!(!login.capabilities.has(Capabilities::MYSQL));
        assert!(login.capabilities.has(Capabilities::MARIADB_PROGRESS));
        // Its attributes come last; they are left unread.
        assert!(login.capabilities.has(Capabilities::CONNECT_ATTRS));
        let needle = b"_client_name";
        assert!(payload.windows(needle.len()).any(|at| at == needle));
        assert!(payload.len() > login.packet(1).len());
    }
}

#[test]
fn the_mariadb_client_logs_in_without_a_password() {
    let (payload, _) = answer_of_client(offered(), &["--user=someone"]);
    let login = Login::parse(&payload).unwrap();
    assert_eq!(login.user, b"someone");
    assert!(login.authentication.is_empty());
    assert_eq!(login.plugin, NATIVE_PASSWORD.as_bytes());
}

#[test]
fn the_mariadb_client_logs_in_to_a_server_that_calls_itself_mysql() {
    let mysql = Capabilities::MYSQL.with(Capabilities(offered().0 & 0xffff_ffff));
    let (payload, greeting) = answer_of_client(mysql, &["--user=someone", "--password=x", "shop"]);
    let login = Login::parse(&payload).unwrap();
    assert!(login.capabilities.has(Capabilities::MYSQL));
    assert_eq!(login.capabilities.0 >> 32, 0);
    assert_eq!(login.schema, b"shop");
    assert_eq!(login.authentication, native_password(b"x", &greeting.salt));
}

#[test]
fn the_mariadb_client_asks_for_tls_before_it_logs_in() {
    let with_tls = offered().with(Capabilities::SSL);
    let (payload, _) = answer_of_client(with_tls, &["--user=someone", "--ssl"]);
    assert!(Login::is_tls_request(&payload));
    assert!(matches!(
        Login::parse(&payload),
        Err(WireError::Truncated(_))
    ));
    let mut plain = payload.clone();
    plain[1] &= !0x08;
    assert!(!Login::is_tls_request(&plain));
    assert!(!Login::is_tls_request(&payload[..31]));
    assert!(!Login::is_tls_request(&[]));
}
