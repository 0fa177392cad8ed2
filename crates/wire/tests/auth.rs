//! What passwords become, and the packets of an exchange.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::auth::{
    AuthPacket, CachingSha2, OLD_PASSWORD, caching_sha2_password, clear_password, more_payload,
    salt_of, switch_payload, xor_with_salt,
};

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

proptest! {
    #[test]
    fn masking_twice_gives_the_password_back(password in vec(any::<u8>(), 0..100), salt in vec(any::<u8>(), 0..30)) {
        prop_assert_eq!(xor_with_salt(&xor_with_salt(&password, &salt), &salt), password);
    }
}
