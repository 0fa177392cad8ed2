//! Sessions with everything around them simulated, as the input chooses: no client reads what its
//! session must not show; and when what is sent is damaged, no session fails or stays behind.
//!
//! `REMORA_SIMULATION_TOLD=1` prints the steps of an input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(what) = remora::simulation::of_bytes(bytes) {
        panic!("{what}");
    }
});
