//! The client's login: what was read can be written, and reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::handshake::Login;
use remora_wire::packet::HEADER_BYTES;

fuzz_target!(|payload: &[u8]| {
    let parsed = Login::parse(payload);
    if Login::is_tls_request(payload) {
        assert!(parsed.is_err());
    }
    if let Ok(login) = parsed {
        let packet = login.packet(1);
        assert_eq!(Login::parse(&packet[HEADER_BYTES..]), Ok(login));
    }
});
