//! Packets: measured, joined and followed, whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::message::MessageWalker;
use remora_wire::packet::{Extent, extent, join_payload, put_message};

/// The ends of messages, counted from the start, in a stream that comes in chunks of `chunk` bytes.
fn ends(stream: &[u8], chunk: usize) -> Vec<(usize, u64)> {
    let mut walker = MessageWalker::new();
    let mut ends = Vec::new();
    let mut at = 0;
    for chunk in stream.chunks(chunk) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let (used, end) = walker.feed(rest);
            assert!(used <= rest.len());
            assert!(used > 0, "no progress");
            at += used;
            rest = &rest[used..];
            match end {
                Some(end) => ends.push((at, end.payload_bytes)),
                None => assert!(rest.is_empty(), "wants more, but left some"),
            }
        }
    }
    ends
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk, stream)) = data.split_first() else {
        return;
    };
    let sequence = stream.get(3).copied().unwrap_or(0);
    match extent(stream, sequence) {
        Ok(Extent::Complete { bytes, single, .. }) => {
            assert!(bytes <= stream.len());
            let payload = join_payload(&stream[..bytes]);
            let mut again = Vec::new();
            put_message(&mut again, sequence, &payload);
            assert_eq!(again, &stream[..bytes]);
            assert_eq!(single, bytes == payload.len() + 4);
            assert_eq!(ends(stream, stream.len())[0], (bytes, payload.len() as u64));
        }
        Ok(Extent::Partial { known_bytes }) => assert!(known_bytes > stream.len()),
        Err(_) => {}
    }
    assert!(join_payload(stream).len() <= stream.len());
    let whole = ends(stream, stream.len().max(1));
    assert_eq!(whole, ends(stream, usize::from(chunk).max(1)));
});
