//! The walker finds the same end however a response is cut, and always goes on.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use remora_wire::command::ResponseKind;
use remora_wire::walker::{Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, WireError};

/// Six bytes, then the response.
#[derive(Debug, Arbitrary)]
struct Case<'a> {
    expect: u8,
    capabilities: u8,
    chunks: [u8; 4],
    stream: &'a [u8],
}

const EXPECTATIONS: [ResponseKind; 9] = [
    ResponseKind::Results,
    ResponseKind::ResultsOrCursor,
    ResponseKind::Single,
    ResponseKind::Prepared,
    ResponseKind::Rows,
    ResponseKind::Columns,
    ResponseKind::Authentication,
    ResponseKind::Stream,
    ResponseKind::Nothing,
];

const RELEVANT: [Capabilities; 4] = [
    Capabilities::DEPRECATE_EOF,
    Capabilities::OPTIONAL_RESULTSET_METADATA,
    Capabilities::MARIADB_CACHE_METADATA,
    Capabilities::MARIADB_PROGRESS,
];

#[derive(Debug, PartialEq)]
struct Walked {
    consumed: usize,
    local_files: Vec<usize>,
    end: Option<Summary>,
}

fn walk(
    mut walker: ResponseWalker,
    stream: &[u8],
    chunk_bytes: &[usize],
) -> Result<Walked, WireError> {
    let mut walked = Walked {
        consumed: 0,
        local_files: Vec::new(),
        end: None,
    };
    let mut sizes = chunk_bytes.iter().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |size| (*size).max(1));
        let (mut chunk, later) = rest.split_at(size.min(rest.len()));
        while !chunk.is_empty() {
            let (used, progress) = walker.feed(chunk)?;
            assert!(used <= chunk.len());
            assert!(!walker.is_untouched() || used == 0);
            walked.consumed += used;
            chunk = &chunk[used..];
            match progress {
                Progress::More => assert!(chunk.is_empty(), "wants more, but left some"),
                Progress::LocalFile => {
                    assert!(used > 0, "no progress");
                    walked.local_files.push(walked.consumed);
                }
                Progress::Done(summary) => {
                    let again = walker.feed(b"next");
                    assert_eq!(again, Ok((0, Progress::Done(summary))));
                    walked.end = Some(summary);
                    return Ok(walked);
                }
            }
        }
        rest = later;
    }
    Ok(walked)
}

fuzz_target!(|case: Case<'_>| {
    let expect = EXPECTATIONS[usize::from(case.expect) % EXPECTATIONS.len()];
    let mut capabilities = Capabilities::PROTOCOL_41;
    for (at, flag) in RELEVANT.into_iter().enumerate() {
        if case.capabilities >> at & 1 == 1 {
            capabilities = capabilities.with(flag);
        }
    }
    let walker = ResponseWalker::new(expect, capabilities);
    let whole = walk(walker.clone(), case.stream, &[usize::MAX]);
    let chunks = case.chunks.map(usize::from);
    assert_eq!(whole, walk(walker.clone(), case.stream, &chunks));
    assert_eq!(whole, walk(walker.clone(), case.stream, &[1]));
    if let Ok(Walked {
        consumed,
        end: Some(_),
        ..
    }) = whole
    {
        let shorter = walk(walker, &case.stream[..consumed.saturating_sub(1)], &[7]);
        if consumed > 0 {
            assert_eq!(shorter.expect("the same bytes").end, None);
        }
    }
});
