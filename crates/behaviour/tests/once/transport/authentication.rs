//! Every plugin of MySQL 8 by every combination of TLS and clear text on the two sides.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use remora_testkit::certificates::Authority;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, Server};
use remora_wire::Capabilities;
use remora_wire::auth::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, SHA256_PASSWORD};

use super::guest::{Guest, Trust, Who};
use super::{mysql_80, server_of, with_certificate};

const PLUGINS: [&str; 3] = [NATIVE_PASSWORD, CACHING_SHA2_PASSWORD, SHA256_PASSWORD];
const PASSWORD: &str = "a password, longer than a salt is";

/// The account of a plugin.
fn account(plugin: &str) -> String {
    format!("by_{}", plugin.trim_end_matches("_password"))
}

fn make_accounts(server: &Server) {
    for plugin in PLUGINS {
        let user = account(plugin);
        server
            .execute([
                format!("CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{PASSWORD}'"),
                format!("CREATE USER {user}_empty@'%' IDENTIFIED WITH {plugin} BY ''"),
                format!("GRANT ALL ON *.* TO {user}@'%'"),
            ])
            .unwrap();
    }
}

/// Modes by which the server's side differs from the client's, and the other way round.
const MODES: [&str; 3] = ["as_client", "disabled", "required"];

fn remora(server: &Server, authority: &Authority, mode: &str) -> InProcessRemora {
    let options = with_certificate(authority).with("upstream.tls_mode", mode);
    InProcessRemora::start(server, &options).unwrap()
}

/// Whether the server's side is encrypted.
fn is_encrypted(guest: &mut Guest) -> bool {
    let version = guest.query("SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_version'");
    match version {
        Ok(version) => version.is_some_and(|version| !version.is_empty()),
        Err(error) => panic!("{error}"),
    }
}

/// All plugins, each begun by each, twice, in one mode and on one way of the client's. Collects by
/// what steps.
fn log_in_by_all(
    server: &Server,
    mode: &str,
    address: SocketAddr,
    tls: Option<Trust<'_>>,
    seen: &mut BTreeSet<String>,
) {
    for (plugin, first) in pairs() {
        let user = account(plugin);
        let who = Who::new(&user, PASSWORD, first).over(tls);
        let what = format!(
            "{mode}, client over TLS: {}, {plugin} after {first}",
            tls.is_some()
        );
        // Empties the server's cache of passwords, so that the first login is a full one.
        server.execute(["FLUSH PRIVILEGES"]).unwrap();
        for _ in 0..2 {
            let mut guest =
                Guest::log_in(address, &who).unwrap_or_else(|error| panic!("{what}: {error}"));
            let current = guest.query("SELECT CURRENT_USER()").unwrap();
            assert_eq!(current, Some(format!("{user}@%")), "{what}");
            let encrypted = match mode {
                "disabled" => false,
                "required" => true,
                _ => tls.is_some(),
            };
            assert_eq!(is_encrypted(&mut guest), encrypted, "{what}");
            seen.insert(format!("{plugin}: {}", guest.steps.join(" ")));
        }
        let wrong = Who {
            password: "wrong",
            ..who
        };
        let error = Guest::log_in(address, &wrong).err().expect(&what);
        assert_eq!(error.code, 1045, "{what}: {error}");
    }
    for plugin in PLUGINS {
        let user = format!("{}_empty", account(plugin));
        let who = Who::new(&user, "", plugin).over(tls);
        Guest::log_in(address, &who)
            .unwrap_or_else(|error| panic!("{mode}, {plugin}, no password: {error}"));
    }
}

/// Each plugin with each that a client can begin with.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLUGINS
        .into_iter()
        .flat_map(|plugin| PLUGINS.map(|first| (plugin, first)))
}

#[test]
fn every_plugin_logs_in_whatever_either_side_is_encrypted_with() {
    let mut seen = BTreeSet::new();
    // A server switches from whatever a client begins with unless that is its own default.
    for default in [CACHING_SHA2_PASSWORD, SHA256_PASSWORD] {
        let server = mysql_80(&[format!("--default-authentication-plugin={default}")]);
        make_accounts(&server);
        let authority = Authority::new().unwrap();
        for mode in MODES {
            let remora = remora(&server, &authority, mode);
            for tls in [None, Some(Trust::of(authority.certificate()))] {
                log_in_by_all(&server, mode, remora.address(), tls, &mut seen);
            }
        }
    }
    // None of the ways was left out.
    for way in [
        "caching_sha2_password: full",
        "caching_sha2_password: full key",
        "caching_sha2_password: fast",
        "caching_sha2_password: switch fast",
        "caching_sha2_password: switch full key",
        "sha256_password: ",
        "sha256_password: key",
        "sha256_password: switch",
        "sha256_password: switch key",
        "mysql_native_password: switch",
    ] {
        assert!(seen.contains(way), "{way} is not among {seen:?}");
    }
}

#[test]
fn a_change_of_user_works_by_every_plugin_whatever_either_side_is_encrypted_with() {
    let server = mysql_80(&[]);
    make_accounts(&server);
    let authority = Authority::new().unwrap();
    for mode in MODES {
        let remora = remora(&server, &authority, mode);
        for tls in [None, Some(Trust::of(authority.certificate()))] {
            let native = account(NATIVE_PASSWORD);
            let first = Who::new(&native, PASSWORD, NATIVE_PASSWORD).over(tls);
            let mut guest = Guest::log_in(remora.address(), &first).unwrap();
            for (plugin, begun_by) in pairs() {
                server.execute(["FLUSH PRIVILEGES"]).unwrap();
                for _ in 0..2 {
                    let user = account(plugin);
                    let who = Who::new(&user, PASSWORD, begun_by).over(tls);
                    guest.change_user(&who).unwrap_or_else(|error| {
                        panic!(
                            "{mode}, over TLS: {}, {plugin} after {begun_by}: {error}",
                            tls.is_some()
                        )
                    });
                    let expected = format!("{user}@%");
                    assert_eq!(
                        guest.query("SELECT CURRENT_USER()").unwrap(),
                        Some(expected)
                    );
                }
            }
            let user = account(CACHING_SHA2_PASSWORD);
            let wrong = Who::new(&user, "wrong", CACHING_SHA2_PASSWORD).over(tls);
            assert_eq!(guest.change_user(&wrong).unwrap_err().code, 1045);
        }
    }
}

#[test]
fn a_client_that_knows_the_servers_key_needs_the_same_key_in_remora() {
    let server = mysql_80(&[]);
    make_accounts(&server);
    let authority = Authority::new().unwrap();
    let data = server.socket().with_file_name("data");
    let key = std::fs::read(data.join("public_key.pem")).unwrap();
    let private = data.join("private_key.pem").display().to_string();
    let user = account(SHA256_PASSWORD);
    let who = Who {
        known_key: Some(key),
        ..Who::new(&user, PASSWORD, SHA256_PASSWORD)
    };
    let options = with_certificate(&authority).with("upstream.tls_mode", "required");
    let without = InProcessRemora::start(&server, &options).unwrap();
    let error = Guest::log_in(without.address(), &who).err().unwrap();
    assert_eq!(error.code, 2061, "{error}");
    assert!(error.message.contains("listen.rsa_key_file"), "{error}");
    let options = options.with("listen.rsa_key_file", &private);
    let with = InProcessRemora::start(&server, &options).unwrap();
    Guest::log_in(with.address(), &who).unwrap();
    // Where both sides are in the clear, what the client encrypted passes as it is.
    let plain = remora(&server, &authority, "disabled");
    Guest::log_in(plain.address(), &who).unwrap();
}

#[test]
fn an_expired_password_can_be_changed_and_nothing_else_can_be_done_before() {
    for kind in [Kind::MySql80, Kind::MariaDb1011] {
        let server = server_of(kind, &[]);
        let authority = Authority::new().unwrap();
        let identified = kind.identified_by(PASSWORD);
        server
            .execute([
                format!("CREATE USER late@'%' {identified} PASSWORD EXPIRE"),
                "GRANT ALL ON *.* TO late@'%'".to_owned(),
            ])
            .unwrap();
        // It follows, so it asks for the session's settings, in vain.
        let options = RemoraOptions {
            follow: true,
            ..with_certificate(&authority)
        };
        let remora = InProcessRemora::start(&server, &options).unwrap();
        let tls = Some(Trust::of(authority.certificate()));
        let who = Who::new("late", PASSWORD, NATIVE_PASSWORD).over(tls);
        if kind == Kind::MySql80 {
            let unable = Guest::log_in(remora.address(), &who).err().unwrap();
            assert_eq!(unable.code, 1862, "{unable}");
        }
        let able = Who {
            further: Capabilities::EXPIRED_PASSWORDS,
            ..who.clone()
        };
        let mut guest = Guest::log_in(remora.address(), &able).unwrap();
        for _ in 0..3 {
            let refused = guest.query("SELECT 1 FROM mysql.user").unwrap_err();
            assert_eq!(refused.code, 1820, "{refused}");
        }
        guest
            .query("SET PASSWORD = PASSWORD('another')")
            .or_else(|_| guest.query("ALTER USER USER() IDENTIFIED BY 'another'"))
            .unwrap();
        assert_eq!(guest.query("SELECT 7").unwrap().as_deref(), Some("7"));
        let renewed = Who {
            password: "another",
            ..who
        };
        Guest::log_in(remora.address(), &renewed).unwrap();
    }
}

#[test]
fn a_server_behind_a_unix_socket_takes_every_plugin() {
    let server = mysql_80(&[]);
    make_accounts(&server);
    let authority = Authority::new().unwrap();
    let path = format!("unix:{}", server.socket().display());
    for mode in ["as_client", "disabled"] {
        let options = with_certificate(&authority)
            .with("upstream.address", &path)
            .with("upstream.tls_mode", mode);
        let remora = InProcessRemora::start(&server, &options).unwrap();
        for tls in [None, Some(Trust::of(authority.certificate()))] {
            for plugin in PLUGINS {
                server
                    .execute([
                        format!("CREATE USER IF NOT EXISTS {0}@localhost IDENTIFIED WITH {plugin} BY '{PASSWORD}'", account(plugin)),
                        "FLUSH PRIVILEGES".to_owned(),
                    ])
                    .unwrap();
                for _ in 0..2 {
                    let user = account(plugin);
                    let who = Who::new(&user, PASSWORD, CACHING_SHA2_PASSWORD).over(tls);
                    let what = format!("{mode}, over TLS: {}, {plugin}", tls.is_some());
                    let mut guest = Guest::log_in(remora.address(), &who)
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    let current = guest.query("SELECT CURRENT_USER()").unwrap();
                    assert_eq!(current, Some(format!("{user}@localhost")), "{what}");
                }
            }
        }
    }
}

#[test]
fn an_older_server_knows_its_plugins_too() {
    for kind in [Kind::MariaDb1011, Kind::MariaDb114] {
        let server = server_of(kind, &[]);
        let authority = Authority::new().unwrap();
        server
            .execute([format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'")])
            .unwrap();
        let remora = remora(&server, &authority, "as_client");
        for tls in [None, Some(Trust::of(authority.certificate()))] {
            for first in [NATIVE_PASSWORD, CACHING_SHA2_PASSWORD] {
                let who = Who::new("native", PASSWORD, first).over(tls);
                let mut guest = Guest::log_in(remora.address(), &who).unwrap();
                let user = guest.query("SELECT CURRENT_USER()").unwrap();
                assert_eq!(user.as_deref(), Some("native@%"), "{}", kind.as_str());
            }
        }
    }
}
