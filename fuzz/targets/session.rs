//! Real sessions in a simulation whose steps the input chooses. No client may read what its session
//! must not show. No session may panic or outlive its client and server, even when what is sent is
//! damaged.
//!
//! `REMORA_SIMULATION_TOLD=1` prints the steps of an input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(what) = remora::simulation::of_bytes(bytes) {
        panic!("{what}");
    }
});
