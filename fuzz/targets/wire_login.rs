//! The client's login: what was read can be written, and reads the same again; a change changes
//! nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::Capabilities;
use remora_wire::handshake::{Login, LoginChange, TlsRequest};
use remora_wire::packet::HEADER_BYTES;

const ZSTD: Capabilities = Capabilities::ZSTD_COMPRESSION;

/// What the fields say, but for the capabilities.
fn fields(login: Login) -> Login {
    Login {
        capabilities: Capabilities(0),
        ..login
    }
}

fn change(payload: &[u8], login: &Login) {
    let same = LoginChange::default().apply(payload);
    if !login.capabilities.has(ZSTD) {
        assert_eq!(same.as_deref(), Ok(payload));
    }
    let change = LoginChange {
        remove: Capabilities::SSL.with(Capabilities::COMPRESS),
        add: ZSTD,
        zstd_level: Some(9),
        authentication: None,
    };
    let Ok(changed) = change.apply(payload) else {
        return;
    };
    let after = Login::parse(&changed).expect("still a login");
    assert_eq!(fields(after.clone()), fields(login.clone()));
    let wanted = login.capabilities.without(change.remove).with(ZSTD);
    assert_eq!(after.capabilities, wanted);
    if !login.capabilities.has(ZSTD) {
        // Back again, but for what was left out at the end.
        let back = LoginChange {
            remove: ZSTD,
            add: login.capabilities.and(change.remove),
            ..LoginChange::default()
        };
        let back = back.apply(&changed).expect("it was written by us");
        assert!(back.starts_with(payload) || back.len() > payload.len());
        assert!(back[payload.len().min(back.len())..].len() <= 4);
    }
}

fuzz_target!(|payload: &[u8]| {
    let parsed = Login::parse(payload);
    if Login::is_tls_request(payload) {
        assert!(parsed.is_err());
        let request = TlsRequest::parse(payload).expect("a request");
        assert_eq!(TlsRequest::parse(&request.payload()), Ok(request));
    }
    let _ = Login::compression(payload, Capabilities(u64::MAX));
    if let Ok(login) = parsed {
        change(payload, &login);
        let packet = login.packet(1);
        assert_eq!(Login::parse(&packet[HEADER_BYTES..]), Ok(login));
    }
});
