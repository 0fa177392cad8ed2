//! OK, EOF and ERR packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::packet::HEADER_BYTES;
use remora_wire::response::{EndMark, ServerError};

fuzz_target!(|payload: &[u8]| {
    if let Ok(mark) = EndMark::from_ok(payload) {
        // Its first 24 bytes are enough, as the walker relies on.
        let start = &payload[..payload.len().min(24)];
        assert_eq!(EndMark::from_ok(start), Ok(mark));
    }
    if let Ok(mark) = EndMark::from_eof(payload) {
        assert_eq!(EndMark::from_eof(&payload[..5]), Ok(mark));
    }
    if let Ok(error) = ServerError::parse(payload)
        && error.sql_state.len() == 5
    {
        let packet = error.packet(1);
        assert_eq!(ServerError::parse(&packet[HEADER_BYTES..]), Ok(error));
    }
});
