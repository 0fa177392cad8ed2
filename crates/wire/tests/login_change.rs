//! Changing a login for the way to the server: only what is meant to changes.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::Capabilities;
use remora_wire::compress::Algorithm;
use remora_wire::handshake::{Login, LoginChange, TlsRequest};

use support::packets::{lenenc, lenenc_text};

const ZSTD: Capabilities = Capabilities::ZSTD_COMPRESSION;

/// A login in its parts, written from the protocol's description alone.
#[derive(Debug, Clone)]
struct Parts {
    capabilities: Capabilities,
    filler: Vec<u8>,
    user: Vec<u8>,
    authentication: Vec<u8>,
    schema: Vec<u8>,
    plugin: Vec<u8>,
    attributes: Vec<u8>,
    level: u8,
    /// What nobody knows yet.
    trail: Vec<u8>,
}

impl Parts {
    fn payload(&self) -> Vec<u8> {
        let has = |flag| self.capabilities.has(flag);
        let bits = self.capabilities.0.to_le_bytes();
        let mut out = bits[..4].to_vec();
        out.extend([0, 0, 0, 1, 45]);
        out.extend_from_slice(&self.filler);
        if has(Capabilities::MYSQL) {
            out.extend([9, 8, 7, 6]);
        } else {
            out.extend_from_slice(&bits[4..]);
        }
        out.extend([&self.user[..], b"\0"].concat());
        if has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            out.extend(lenenc_text(&self.authentication));
        } else if has(Capabilities::SECURE_CONNECTION) {
            out.push(u8::try_from(self.authentication.len()).unwrap());
            out.extend_from_slice(&self.authentication);
        } else {
            out.extend([&self.authentication[..], b"\0"].concat());
        }
        if has(Capabilities::CONNECT_WITH_DB) {
            out.extend([&self.schema[..], b"\0"].concat());
        }
        if has(Capabilities::PLUGIN_AUTH) {
            out.extend([&self.plugin[..], b"\0"].concat());
        }
        if has(Capabilities::CONNECT_ATTRS) {
            out.extend(lenenc(self.attributes.len()));
            out.extend_from_slice(&self.attributes);
        }
        if has(ZSTD) {
            out.push(self.level);
        }
        out.extend_from_slice(&self.trail);
        out
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    let text = || vec(1u8.., 0..30);
    let capabilities = any::<u64>().prop_map(|bits| {
        let set = Capabilities(bits).with(Capabilities::PROTOCOL_41);
        if set.has(Capabilities::MYSQL) {
            Capabilities(set.0 & 0xffff_ffff)
        } else {
            set
        }
    });
    (
        capabilities,
        vec(any::<u8>(), 19),
        (text(), vec(1u8.., 0..200), text(), text()),
        vec(any::<u8>(), 0..300),
        1u8..23,
        vec(any::<u8>(), 0..5),
    )
        .prop_map(
            |(capabilities, filler, texts, attributes, level, trail)| Parts {
                capabilities,
                filler,
                user: texts.0,
                authentication: texts.1,
                schema: texts.2,
                plugin: texts.3,
                attributes,
                level,
                trail,
            },
        )
}

/// Flags whose change doesn't move a byte of the login, zstd's level aside.
const FREE: [Capabilities; 6] = [
    Capabilities::SSL,
    Capabilities::COMPRESS,
    ZSTD,
    Capabilities::QUERY_ATTRIBUTES,
    Capabilities::DEPRECATE_EOF,
    Capabilities::LOCAL_FILES,
];

fn free() -> impl Strategy<Value = Capabilities> {
    proptest::sample::subsequence(&FREE, 0..=FREE.len())
        .prop_map(|flags| flags.into_iter().fold(Capabilities(0), Capabilities::with))
}

proptest! {
    #[test]
    fn every_other_byte_stays(parts in parts(), remove in free(), add in free(), level in proptest::option::of(1u8..23)) {
        let change = LoginChange { remove, add, zstd_level: level, authentication: None };
        let had_level = parts.capabilities.has(ZSTD);
        let wanted = Parts {
            capabilities: parts.capabilities.without(remove).with(add),
            level: level.unwrap_or(if had_level { parts.level } else { 3 }),
            ..parts.clone()
        };
        prop_assert_eq!(change.apply(&parts.payload()), Ok(wanted.payload()));
    }

    #[test]
    fn no_change_changes_nothing(parts in parts()) {
        let payload = parts.payload();
        prop_assert_eq!(LoginChange::default().apply(&payload), Ok(payload));
    }

    #[test]
    fn an_answer_is_replaced(parts in parts(), answer in vec(1u8.., 0..255)) {
        let change = LoginChange { authentication: Some(answer.clone()), ..LoginChange::default() };
        let wanted = Parts { authentication: answer, ..parts.clone() };
        prop_assert_eq!(change.apply(&parts.payload()), Ok(wanted.payload()));
    }

    #[test]
    fn flags_that_lay_out_the_login_stay(parts in parts()) {
        let layout = Capabilities::MYSQL
            .with(Capabilities::PROTOCOL_41)
            .with(Capabilities::CONNECT_WITH_DB)
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
            .with(Capabilities::CONNECT_ATTRS);
        let payload = parts.payload();
        for (remove, add) in [(layout, Capabilities(0)), (Capabilities(0), layout)] {
            let change = LoginChange { remove, add, ..LoginChange::default() };
            prop_assert_eq!(change.apply(&payload), Ok(payload.clone()));
        }
    }

    #[test]
    fn compression_is_what_both_can(parts in parts(), offered in free()) {
        let both = parts.capabilities.and(offered);
        let wanted = if both.has(Capabilities::COMPRESS) {
            Some(Algorithm::Zlib)
        } else if both.has(ZSTD) {
            Some(Algorithm::Zstd { level: i32::from(parts.level) })
        } else {
            None
        };
        prop_assert_eq!(Login::compression(&parts.payload(), offered), Ok(wanted));
    }

    #[test]
    fn noise_is_changed_or_refused(noise in vec(any::<u8>(), 0..200), add in free(), remove in free()) {
        let change = LoginChange { remove, add, zstd_level: Some(9), authentication: Some(vec![1; 300]) };
        if let Ok(changed) = change.apply(&noise) {
            let before = Login::parse(&noise).unwrap();
            let after = Login::parse(&changed).unwrap();
            prop_assert_eq!(after.user, before.user);
            prop_assert_eq!(after.schema, before.schema);
            prop_assert_eq!(after.plugin, before.plugin);
        }
        let _ = Login::compression(&noise, Capabilities(u64::MAX));
        let _ = TlsRequest::parse(&noise);
    }

    #[test]
    fn a_request_for_tls_says_what_the_login_will(parts in parts()) {
        let login = Login::parse(&parts.payload()).unwrap();
        let request = TlsRequest::of(&login);
        let payload = request.payload();
        prop_assert!(Login::is_tls_request(&payload));
        prop_assert_eq!(TlsRequest::parse(&payload), Ok(request));
        prop_assert_eq!(request.capabilities, login.capabilities.with(Capabilities::SSL));
        prop_assert!(TlsRequest::parse(&payload[..31]).is_err());
        prop_assert!(TlsRequest::parse(&parts.payload()).is_err());
    }
}

#[test]
fn an_answer_that_does_not_fit_is_not_cut() {
    let parts = Parts {
        capabilities: Capabilities::PROTOCOL_41.with(Capabilities::SECURE_CONNECTION),
        filler: vec![0; 19],
        user: b"app".to_vec(),
        authentication: vec![1; 20],
        schema: Vec::new(),
        plugin: Vec::new(),
        attributes: Vec::new(),
        level: 3,
        trail: Vec::new(),
    };
    let change = |bytes| LoginChange {
        authentication: Some(vec![1; bytes]),
        ..LoginChange::default()
    };
    assert!(change(255).apply(&parts.payload()).is_ok());
    assert!(change(256).apply(&parts.payload()).is_err());
}

#[test]
fn a_login_without_the_level_it_promises_gets_one() {
    let parts = Parts {
        capabilities: Capabilities::PROTOCOL_41.with(ZSTD),
        filler: vec![0; 19],
        user: b"app".to_vec(),
        authentication: Vec::new(),
        schema: Vec::new(),
        plugin: Vec::new(),
        attributes: Vec::new(),
        level: 3,
        trail: Vec::new(),
    };
    let mut payload = parts.payload();
    payload.pop();
    assert_eq!(LoginChange::default().apply(&payload), Ok(parts.payload()));
}

#[test]
fn a_level_is_not_taken_for_what_the_login_left_out() {
    let parts = Parts {
        capabilities: Capabilities::PROTOCOL_41
            .with(Capabilities::CONNECT_WITH_DB)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::CONNECT_ATTRS),
        filler: vec![0; 19],
        user: b"app".to_vec(),
        authentication: b"answer".to_vec(),
        schema: Vec::new(),
        plugin: Vec::new(),
        attributes: Vec::new(),
        level: 7,
        trail: Vec::new(),
    };
    let change = LoginChange {
        add: ZSTD,
        zstd_level: Some(7),
        ..LoginChange::default()
    };
    let whole = Parts {
        capabilities: parts.capabilities.with(ZSTD),
        ..parts.clone()
    };
    // Without attributes, plugin, schema, and the mark at the answer's end.
    for left_out in 0..=4 {
        let mut payload = parts.payload();
        payload.truncate(payload.len() - left_out);
        assert_eq!(change.apply(&payload), Ok(whole.payload()), "{left_out}");
    }
}
