//! The compressed protocol: whatever comes is read or refused alike however it is cut, plain
//! packets get the numbers that follow each other, and what is sent comes out at the other side.
//!
//! Input: a byte that picks algorithm and role, a byte of chunk length, then the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::compress::{Algorithm, Channel, Decompressor, Role};

/// Streams that say they hold more than this aren't followed further: they are right, and take
/// long.
const PLAIN_BYTES_MAX: usize = 1 << 20;

fn decompress(algorithm: Algorithm, stream: &[u8], chunk: usize) -> (Vec<u8>, bool) {
    let mut decompressor = Decompressor::new(algorithm);
    let mut out = Vec::new();
    for mut chunk in stream.chunks(chunk) {
        while !chunk.is_empty() {
            let before = out.len();
            let Ok(taken) = decompressor.feed(chunk, &mut out) else {
                assert_eq!(out.len(), before, "an error, and bytes");
                return (out, false);
            };
            assert!(taken > 0 && taken <= chunk.len());
            assert!(decompressor.held_bytes() <= stream.len());
            chunk = &chunk[taken..];
            if out.len() > PLAIN_BYTES_MAX {
                return (Vec::new(), false);
            }
        }
    }
    (out, true)
}

fn receive(channel: &mut Channel, stream: &[u8], chunk: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for mut chunk in stream.chunks(chunk) {
        while !chunk.is_empty() {
            let taken = channel.receive(chunk, &mut out).ok()?;
            assert!(taken > 0 && taken <= chunk.len());
            chunk = &chunk[taken..];
            if out.len() > PLAIN_BYTES_MAX {
                return None;
            }
        }
    }
    Some(out)
}

fuzz_target!(|data: &[u8]| {
    let &[pick, chunk, ref stream @ ..] = data else {
        return;
    };
    let algorithm = match pick & 1 {
        0 => Algorithm::Zlib,
        _ => Algorithm::Zstd {
            level: i32::from(pick >> 2),
        },
    };
    let (role, peer) = match pick & 2 {
        0 => (Role::Server, Role::Client),
        _ => (Role::Client, Role::Server),
    };
    let chunk = usize::from(chunk).max(1);
    let whole = decompress(algorithm, stream, stream.len().max(1));
    if whole.1 {
        assert_eq!(whole, decompress(algorithm, stream, chunk));
    } else {
        assert!(!decompress(algorithm, stream, chunk).1);
    }
    let mut channel = Channel::new(algorithm, role);
    let received = receive(&mut channel, stream, stream.len().max(1));
    assert_eq!(
        received,
        receive(&mut Channel::new(algorithm, role), stream, chunk)
    );
    if let Some(received) = received {
        // Nothing but numbers is different.
        assert!(whole.1);
        assert_eq!(received.len(), whole.0.len());
    }
    // The stream as plain bytes: every byte of it that isn't a number arrives, in pieces or not.
    let mut packed = Vec::new();
    let mut sender = Channel::new(algorithm, role);
    for piece in stream.chunks(chunk) {
        sender.send(piece, &mut packed);
    }
    let mut at_once = Vec::new();
    Channel::new(algorithm, role).send(stream, &mut at_once);
    let (plain, is_right) = decompress(algorithm, &packed, chunk);
    assert!(is_right && stream.starts_with(&plain));
    assert!(
        stream.len() - plain.len() < 4,
        "more than a header was held back"
    );
    assert_eq!(decompress(algorithm, &at_once, chunk).0, plain);
    let _ = receive(&mut Channel::new(algorithm, peer), &packed, chunk);
});
