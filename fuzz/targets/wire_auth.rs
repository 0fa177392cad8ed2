//! A server's packet during authentication.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::auth::{
    AuthPacket, CachingSha2, caching_sha2_password, native_password, salt_of, xor_with_salt,
};

fuzz_target!(|payload: &[u8]| {
    match AuthPacket::parse(payload) {
        Ok(AuthPacket::Switch { plugin, data }) => {
            assert!(payload.len() == 1 || plugin.len() + data.len() < payload.len());
            assert!(!plugin.contains(&0));
            let salt = salt_of(data);
            assert!(data.len() - salt.len() <= 1);
            assert_eq!(native_password(b"secret", salt).len(), 20);
            assert_eq!(caching_sha2_password(b"secret", salt).len(), 32);
            let masked = xor_with_salt(b"secret\0", salt);
            assert_eq!(xor_with_salt(&masked, salt), b"secret\0");
        }
        Ok(AuthPacket::More(data)) => {
            assert!(payload.ends_with(data));
            let said = CachingSha2::parse(data).payload();
            assert_eq!(AuthPacket::parse(&said), Ok(AuthPacket::More(data)));
        }
        Ok(AuthPacket::Ok | AuthPacket::Err) => {}
        Err(_) => assert!(payload.is_empty()),
    }
});
