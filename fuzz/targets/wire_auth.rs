//! A server's packet during authentication.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::auth::{AuthPacket, native_password};

fuzz_target!(|payload: &[u8]| {
    match AuthPacket::parse(payload) {
        Ok(AuthPacket::Switch { plugin, data }) => {
            assert!(plugin.len() + data.len() < payload.len());
            assert!(!plugin.contains(&0));
            assert_eq!(native_password(b"secret", data).len(), 20);
        }
        Ok(AuthPacket::More(data)) => assert!(payload.ends_with(data)),
        Ok(AuthPacket::Ok | AuthPacket::Err) => {}
        Err(_) => assert!(payload.is_empty()),
    }
});
