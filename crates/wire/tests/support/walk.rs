//! Drives a walker over an answer in chunks.

use remora_wire::WireError;
use remora_wire::command::ResponseKind;
use remora_wire::walker::{Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, command};

use super::packets::Answer;

/// What a walk came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    pub consumed: usize,
    pub local_files: Vec<usize>,
    pub end: Result<Option<Summary>, WireError>,
}

/// Feeds `bytes` in chunks that end at the `cuts` (in rising order). Stops at the response's end,
/// at an error, or when the bytes run out (`Ok(None)`).
pub fn walk(
    expect: ResponseKind,
    capabilities: Capabilities,
    bytes: &[u8],
    cuts: &[usize],
) -> Walked {
    let mut walker = ResponseWalker::new(expect, capabilities);
    let mut walked = Walked {
        consumed: 0,
        local_files: Vec::new(),
        end: Ok(None),
    };
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        let cut = cut.min(bytes.len());
        while walked.consumed < cut {
            let chunk = &bytes[walked.consumed..cut];
            match walker.feed(chunk) {
                Err(error) => {
                    walked.end = Err(error);
                    return walked;
                }
                Ok((used, progress)) => {
                    assert!(used <= chunk.len(), "consumed more than it was given");
                    walked.consumed += used;
                    match progress {
                        Progress::More => {
                            assert_eq!(used, chunk.len(), "wants more, but left some");
                        }
                        Progress::LocalFile => {
                            assert!(used > 0, "asked for a file without a byte");
                            walked.local_files.push(walked.consumed);
                        }
                        Progress::Done(summary) => {
                            let again = walker.feed(&bytes[walked.consumed..]);
                            assert_eq!(again, Ok((0, Progress::Done(summary))));
                            walked.end = Ok(Some(summary));
                            return walked;
                        }
                    }
                }
            }
        }
    }
    walked
}

/// Asserts that the walker finds this answer's end, and no byte of the `next` one's, however cut.
pub fn assert_walked(answer: &Answer, next: &[u8], cuts: &[usize]) {
    let bytes = [&answer.bytes, next].concat();
    let walked = walk(answer.expect, answer.capabilities, &bytes, cuts);
    let wanted = Walked {
        consumed: answer.bytes.len(),
        local_files: answer.local_files.clone(),
        end: Ok(Some(answer.summary)),
    };
    assert_eq!(walked, wanted);
}

/// Whole, byte by byte, and in chunks of a few sizes.
pub fn assert_walked_however_cut(answer: &Answer) {
    let next = [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    for size in [1, 2, 3, 5, 7, 29, 4096, usize::MAX] {
        let cuts: Vec<usize> = (1..=answer.bytes.len() + next.len())
            .filter(|at| at.is_multiple_of(size))
            .collect();
        assert_walked(answer, &next, &cuts);
        assert_walked(answer, &[], &cuts);
    }
}

/// Every kind of answer.
pub const EXPECTATIONS: [ResponseKind; 9] = [
    ResponseKind::Nothing,
    ResponseKind::Single,
    ResponseKind::Results,
    ResponseKind::ResultsOrCursor,
    ResponseKind::Prepared,
    ResponseKind::Rows,
    ResponseKind::Columns,
    ResponseKind::Authentication,
    ResponseKind::Stream,
];

/// The kind of answer of a command byte.
pub fn expect_of(byte: u8) -> ResponseKind {
    command::Command::from_byte(byte).response_kind()
}
