//! The server's greeting: read, written again, and with capabilities taken out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::Capabilities;
use remora_wire::handshake::Greeting;

fuzz_target!(|payload: &[u8]| {
    let unwanted = Capabilities::SSL
        .with(Capabilities::COMPRESS)
        .with(Capabilities::MARIADB_COM_MULTI);
    let mut changed = payload.to_vec();
    let withdrawn = Greeting::withdraw(&mut changed, unwanted);
    let differing = changed.iter().zip(payload).filter(|(a, b)| a != b).count();
    assert!(differing <= if withdrawn.is_ok() { 3 } else { 0 });
    assert_eq!(changed.len(), payload.len());
    let Ok(greeting) = Greeting::parse(payload) else {
        return;
    };
    withdrawn.expect("what can be read can be changed");
    let after = Greeting::parse(&changed).expect("still a greeting");
    assert_eq!(after.capabilities, greeting.capabilities.without(unwanted));
    let before = Greeting {
        capabilities: after.capabilities,
        ..greeting.clone()
    };
    assert_eq!(after, before);
    // Salts that are shorter or longer than any server's are filled up or cut.
    if (20..=200).contains(&greeting.salt.len()) {
        assert_eq!(Greeting::parse(&greeting.payload()), Ok(greeting));
    }
});
