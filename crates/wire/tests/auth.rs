//! What passwords become, and the packets of an exchange.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::auth::{
    AuthPacket, CachingSha2, OLD_PASSWORD, caching_sha2_password, clear_password, more_payload,
    native_password, salt_of, switch_payload, xor_with_salt,
};
use remora_wire::login::{ClientLogin, LoginStep, Plugin, Privacy};
use remora_wire::response::ServerError;

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn a_password_is_scrambled_as_another_program_does_it() {
    let salt: Vec<u8> = (1..=20).collect();
    assert_eq!(
        hex(&caching_sha2_password(b"secret", &salt)),
        "746ebe205d56a0707acb3e796e834e0dd7b1d61743b26bd5202c7a623230c7c9"
    );
    assert_eq!(
        hex(&caching_sha2_password(
            "sécret, with ' and \\".as_bytes(),
            b"0123456789abcdefghij"
        )),
        "1d637db6302a5d5429aadfcf92b61aeaae270908199c316d2960d6d9f6f5e743"
    );
    assert!(caching_sha2_password(b"", &salt).is_empty());
}

#[test]
fn a_password_to_encrypt_is_masked_with_the_salt_over_and_over() {
    let password = "sécret, with ' and \\";
    let masked = xor_with_salt(
        &clear_password(password.as_bytes()),
        b"0123456789abcdefghij",
    );
    assert_eq!(hex(&masked), "43f29b504650421b184e08160b44424606060d4a6c31");
    assert_eq!(xor_with_salt(b"x", b""), b"x");
}

#[test]
fn a_servers_packets_are_told_apart() {
    let switch = switch_payload("caching_sha2_password", b"0123456789abcdefghij");
    let Ok(AuthPacket::Switch { plugin, data }) = AuthPacket::parse(&switch) else {
        panic!("no switch");
    };
    assert_eq!(plugin, b"caching_sha2_password");
    assert_eq!(data, b"0123456789abcdefghij\0");
    assert_eq!(salt_of(data), b"0123456789abcdefghij");
    assert_eq!(salt_of(b"abc"), b"abc");
    // From before plugins had names.
    assert_eq!(
        AuthPacket::parse(&[0xfe]),
        Ok(AuthPacket::Switch {
            plugin: OLD_PASSWORD.as_bytes(),
            data: b""
        })
    );
    for said in [
        CachingSha2::FastOk,
        CachingSha2::FullAuthentication,
        CachingSha2::PublicKey(b"-----BEGIN PUBLIC KEY-----\n"),
    ] {
        let payload = said.payload();
        let Ok(AuthPacket::More(data)) = AuthPacket::parse(&payload) else {
            panic!("{said:?}");
        };
        assert_eq!(CachingSha2::parse(data), said);
    }
    assert_eq!(
        AuthPacket::parse(&more_payload(b"x")),
        Ok(AuthPacket::More(b"x"))
    );
    // A second factor is asked for: not known here, and relayed.
    assert_eq!(
        AuthPacket::parse(b"\x02fido\0"),
        Ok(AuthPacket::More(b"\x02fido\0"))
    );
    assert!(AuthPacket::parse(b"").is_err());
}

const PLUGINS: [Plugin; 3] = [Plugin::Native, Plugin::CachingSha2, Plugin::Sha256];
const PRIVACIES: [Privacy; 3] = [Privacy::None, Privacy::UnixSocket, Privacy::Tls];
const SALT: &[u8] = b"0123456789abcdefghij";
const KEY: &[u8] = b"-----BEGIN PUBLIC KEY-----";
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

fn begin(plugin: Plugin, password: &[u8], privacy: Privacy) -> (Vec<u8>, ClientLogin<'_>) {
    ClientLogin::begin(plugin, SALT, password, privacy)
}

/// Hears a packet that has to be answered. What is to be encrypted shows with what it is to be.
fn answer<'a>(login: ClientLogin<'a>, payload: &[u8]) -> (Vec<u8>, ClientLogin<'a>) {
    match login.hear(payload) {
        Ok(LoginStep::Send(answer, login)) => (answer, login),
        Ok(LoginStep::Encrypt {
            public_key,
            password,
            salt,
            login,
        }) => {
            let shown = [b"sealed ", public_key, &password, &salt].concat();
            (shown, login)
        }
        _ => panic!("no answer to {payload:?}"),
    }
}

fn assert_ends(login: ClientLogin<'_>) {
    assert!(matches!(login.hear(OK), Ok(LoginStep::LoggedIn)));
}

fn sealed(password: &[u8]) -> Vec<u8> {
    [b"sealed ", KEY, password, b"\0", SALT].concat()
}

#[test]
fn plugins_have_the_names_that_servers_send() {
    for plugin in PLUGINS {
        assert_eq!(Plugin::named(plugin.name().as_bytes()), Some(plugin));
    }
    assert_eq!(Plugin::named(b"mysql_clear_password"), None);
    assert_eq!(Plugin::named(b""), None);
}

#[test]
fn a_login_by_the_native_plugin_is_one_answer() {
    for privacy in PRIVACIES {
        let (first, login) = begin(Plugin::Native, b"secret", privacy);
        assert_eq!(first, native_password(b"secret", SALT));
        assert_ends(login);
        let (first, login) = begin(Plugin::Native, b"", privacy);
        assert!(first.is_empty());
        assert!(matches!(
            login.hear(&more_payload(KEY)),
            Ok(LoginStep::Surplus)
        ));
    }
}

#[test]
fn a_login_by_caching_sha2_sends_the_password_only_if_the_server_needs_it() {
    let digest = caching_sha2_password(b"secret", SALT);
    for privacy in PRIVACIES {
        let (first, login) = begin(Plugin::CachingSha2, b"secret", privacy);
        assert_eq!(first, digest);
        let Ok(LoginStep::Wait(login)) = login.hear(&CachingSha2::FastOk.payload()) else {
            panic!("the server goes on by itself");
        };
        assert_ends(login);

        let (first, login) = begin(Plugin::CachingSha2, b"secret", privacy);
        assert_eq!(first, digest);
        let (said, login) = answer(login, &CachingSha2::FullAuthentication.payload());
        if privacy != Privacy::None {
            assert_eq!(said, b"secret\0");
            assert_ends(login);
            continue;
        }
        assert_eq!(said, [0x02]);
        let (said, login) = answer(login, &CachingSha2::PublicKey(KEY).payload());
        assert_eq!(said, sealed(b"secret"));
        assert_ends(login);
    }
}

#[test]
fn a_login_by_sha256_sends_the_password_in_the_clear_only_over_tls() {
    let (first, login) = begin(Plugin::Sha256, b"secret", Privacy::Tls);
    assert_eq!(first, b"secret\0");
    assert_ends(login);
    for privacy in [Privacy::None, Privacy::UnixSocket] {
        let (first, login) = begin(Plugin::Sha256, b"secret", privacy);
        assert_eq!(first, [0x01]);
        let (said, login) = answer(login, &more_payload(KEY));
        assert_eq!(said, sealed(b"secret"));
        assert_ends(login);
        // There is nothing to hide.
        let (first, login) = begin(Plugin::Sha256, b"", privacy);
        assert_eq!(first, [0]);
        assert_ends(login);
    }
}

#[test]
fn a_switch_brings_its_own_salt_and_begins_anew() {
    let other = b"ABCDEFGHIJabcdefghij";
    let begins: [(Plugin, Vec<u8>); 3] = [
        (Plugin::Native, native_password(b"secret", other)),
        (Plugin::CachingSha2, caching_sha2_password(b"secret", other)),
        (Plugin::Sha256, vec![0x01]),
    ];
    for from in PLUGINS {
        for (to, first) in &begins {
            let (_, login) = begin(from, b"secret", Privacy::None);
            let (said, login) = answer(login, &switch_payload(to.name(), other));
            assert_eq!(&said, first);
            if *to != Plugin::Native {
                let (said, _) = answer(login, &more_payload(KEY));
                assert!(said.ends_with(other), "{from:?} to {to:?}: {said:?}");
            }
        }
    }
}

#[test]
fn a_login_that_fails_says_why() {
    let refusal = ServerError::new(1045, "28000", "Access denied");
    for plugin in PLUGINS {
        let hear = |payload: &[u8]| match begin(plugin, b"secret", Privacy::Tls).1.hear(payload) {
            Ok(LoginStep::Refused(error)) => error.message,
            Ok(LoginStep::UnknownPlugin(name)) => name,
            Ok(_) => panic!("no failure: {payload:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(hear(&refusal.packet(2)[4..]), "Access denied");
        assert_eq!(
            hear(&switch_payload("client_ed25519", SALT)),
            "client_ed25519"
        );
        assert_eq!(hear(&[0xfe]), OLD_PASSWORD);
        assert_eq!(hear(&[]), "packet ends inside authentication packet");
        assert_eq!(hear(&[0xff]), "packet ends inside ERR packet's code");
    }
}

proptest! {
    #[test]
    fn noise_gets_no_password_that_is_not_encrypted(noise in vec(any::<u8>(), 0..60), marked in 0usize..4) {
        let payload = match marked {
            0 => more_payload(&noise),
            1 => switch_payload("sha256_password", &noise),
            2 => [b"\xfe", &noise[..]].concat(),
            _ => noise,
        };
        let password = b"a password that is not in the noise";
        for plugin in PLUGINS {
            let (_, login) = begin(plugin, password, Privacy::None);
            if let Ok(LoginStep::Send(answer, _)) = login.hear(&payload) {
                prop_assert!(!answer.windows(password.len()).any(|at| at == password));
            }
        }
    }

    #[test]
    fn masking_twice_gives_the_password_back(password in vec(any::<u8>(), 0..100), salt in vec(any::<u8>(), 0..30)) {
        prop_assert_eq!(xor_with_salt(&xor_with_salt(&password, &salt), &salt), password);
    }
}
