//! The server's answer compared with what memory served, as it arrives.
//!
//! Nothing is kept of an answer while it is the same. From the first difference on it is kept, as
//! long as it isn't longer than what memory served: then it is of one that may be no real
//! difference.

use remora_wire::packet::{HEADER_BYTES, Header};
use remora_wire::response::{EOF_BYTES_BELOW, EOF_MARK};
use remora_wire::{Capabilities, StatusFlags};
use xxhash_rust::xxh3::xxh3_128;

/// Status flags that say how the statement was run just then and nothing of its result.
const OF_THE_MOMENT: StatusFlags = StatusFlags::QUERY_WAS_SLOW
    .with(StatusFlags::NO_GOOD_INDEX)
    .with(StatusFlags::NO_INDEX);

/// How an answer differs from what memory served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// In nothing but status flags that tell how the server ran it.
    None,
    /// In the order of its rows, which are the same.
    Order,
    /// In more.
    Content(Facts),
}

/// What is known of a difference, without any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The first byte that differs.
    pub at: usize,
    /// The length of what memory served, bytes.
    pub kept_bytes: usize,
    /// The length of the server's answer, bytes.
    pub seen_bytes: usize,
    /// A hash of what memory served.
    pub kept_hash: u128,
    /// A hash of the server's answer, unless that is the longer one.
    pub seen_hash: Option<u128>,
}

/// A comparison under way.
#[derive(Debug)]
pub struct Comparison<'e> {
    kept: &'e [u8],
    /// How much of the answer is the same: all of it, if it has come so far and not further.
    same: usize,
    /// The answer from the first difference on, unless it is too long.
    rest: Vec<u8>,
    seen_bytes: usize,
}

impl<'e> Comparison<'e> {
    /// With the response that memory served.
    pub fn with(kept: &'e [u8]) -> Comparison<'e> {
        Comparison {
            kept,
            same: 0,
            rest: Vec::new(),
            seen_bytes: 0,
        }
    }

    /// The next piece of the server's answer.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut piece = piece;
        if self.same == self.seen_bytes {
            let kept = &self.kept[self.same..];
            let equal = if kept.starts_with(piece) {
                piece.len()
            } else {
                let pairs = kept.iter().zip(piece);
                pairs.take_while(|(kept, seen)| kept == seen).count()
            };
            self.same += equal;
            self.seen_bytes += equal;
            piece = &piece[equal..];
        }
        self.seen_bytes += piece.len();
        if self.seen_bytes > self.kept.len() {
            self.rest = Vec::new();
        } else {
            self.rest.extend_from_slice(piece);
        }
    }

    /// The answer is complete; it was given to a client with these capabilities.
    pub fn end(self, capabilities: Capabilities) -> Difference {
        if self.seen_bytes == self.kept.len() {
            if self.same == self.seen_bytes {
                return Difference::None;
            }
            let seen = [&self.kept[..self.same], &self.rest].concat();
            match (
                packets(self.kept, capabilities),
                packets(&seen, capabilities),
            ) {
                (Some(kept), Some(seen)) if kept == seen => return Difference::None,
                (Some(mut kept), Some(mut seen)) => {
                    kept.sort_unstable();
                    seen.sort_unstable();
                    if kept == seen {
                        return Difference::Order;
                    }
                }
                _ => {}
            }
        }
        let is_whole = self.same + self.rest.len() == self.seen_bytes;
        let seen = is_whole.then(|| [&self.kept[..self.same], &self.rest].concat());
        Difference::Content(Facts {
            at: self.same,
            kept_bytes: self.kept.len(),
            seen_bytes: self.seen_bytes,
            kept_hash: xxh3_128(self.kept),
            seen_hash: seen.map(|seen| xxh3_128(&seen)),
        })
    }
}

/// The payloads of a response's packets; end marks without the flags of the moment. `None` if it
/// isn't made of whole packets.
fn packets(response: &[u8], capabilities: Capabilities) -> Option<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    let mut rest = response;
    while !rest.is_empty() {
        let header = Header::peek(rest)?;
        let end = HEADER_BYTES + header.length;
        let mut payload = rest.get(HEADER_BYTES..end)?.to_vec();
        rest = &rest[end..];
        if let Some(status) = status_at(&payload, rest.is_empty(), capabilities) {
            let flags = payload.get_mut(status..status + 2)?;
            let known = StatusFlags(u16::from_le_bytes([flags[0], flags[1]]));
            flags.copy_from_slice(&known.without(OF_THE_MOMENT).0.to_le_bytes());
        }
        packets.push(payload);
    }
    Some(packets)
}

/// Where a packet has status flags, if it is an end mark.
fn status_at(payload: &[u8], is_last: bool, capabilities: Capabilities) -> Option<usize> {
    if payload.first() != Some(&EOF_MARK) {
        return None;
    }
    if !capabilities.has(Capabilities::DEPRECATE_EOF) {
        // The mark, two bytes of warnings. A row that begins alike is longer.
        return (payload.len() < EOF_BYTES_BELOW).then_some(3);
    }
    // The mark, and two numbers that are 0 for a result set.
    (is_last && payload.get(1..3) == Some(&[0, 0])).then_some(3)
}

#[cfg(test)]
mod tests {
    use remora_wire::packet::put_message;

    use super::*;

    /// A result set of these rows, for a client that wants the EOF packets or not.
    fn response(rows: &[&str], status: u16, deprecate_eof: bool) -> Vec<u8> {
        let [low, high] = status.to_le_bytes();
        let eof = [EOF_MARK, 0, 0, low, high];
        let ok = [EOF_MARK, 0, 0, low, high, 0, 0];
        let mut payloads: Vec<&[u8]> = vec![&[1], b"definition"];
        if !deprecate_eof {
            payloads.push(&eof);
        }
        payloads.extend(rows.iter().map(|row| row.as_bytes()));
        payloads.push(if deprecate_eof { &ok } else { &eof });
        let mut bytes = Vec::new();
        let mut sequence = 1;
        for payload in payloads {
            sequence = put_message(&mut bytes, sequence, payload);
        }
        bytes
    }

    fn compare(kept: &[u8], seen: &[u8], deprecate_eof: bool, piece: usize) -> Difference {
        let capabilities = if deprecate_eof {
            Capabilities::DEPRECATE_EOF
        } else {
            Capabilities::PROTOCOL_41
        };
        let mut comparison = Comparison::with(kept);
        for piece in seen.chunks(piece) {
            comparison.feed(piece);
        }
        comparison.end(capabilities)
    }

    /// Whatever the pieces in which the answer comes.
    fn check(kept: &[&str], seen: &[&str], status: u16, is_it: fn(&Difference) -> bool) {
        for deprecate_eof in [false, true] {
            let kept = response(kept, 2, deprecate_eof);
            let seen = response(seen, status, deprecate_eof);
            for piece in 1..=seen.len() {
                let difference = compare(&kept, &seen, deprecate_eof, piece);
                assert!(is_it(&difference), "{difference:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn equal_answers_are_equal_however_the_server_ran_them() {
        let slow_without_index = 2 | 0x0800 | 0x0020;
        for status in [2, slow_without_index] {
            check(&["one", "two"], &["one", "two"], status, |difference| {
                *difference == Difference::None
            });
        }
        // Another status is a difference.
        check(&["one"], &["one"], 3, |difference| {
            matches!(difference, Difference::Content(_))
        });
    }

    #[test]
    fn the_same_rows_in_another_order_are_told_apart() {
        check(&["one", "two"], &["two", "one"], 2, |difference| {
            *difference == Difference::Order
        });
        check(&["one", "two"], &["two", "two"], 2, |difference| {
            matches!(difference, Difference::Content(_))
        });
    }

    #[test]
    fn the_first_difference_and_the_lengths_are_known() {
        let kept = response(&["one", "two", "three"], 2, true);
        for (rows, has_hash) in [
            (&["one", "owt", "three"][..], true),
            (&["one", "two and", "three"], false),
            (&["one", "tw"], true),
        ] {
            let seen = response(rows, 2, true);
            let expected = kept.iter().zip(&seen).position(|(a, b)| a != b).unwrap();
            for piece in 1..=seen.len() {
                let Difference::Content(facts) = compare(&kept, &seen, true, piece) else {
                    panic!("no difference");
                };
                assert_eq!((facts.at, facts.kept_bytes), (expected, kept.len()));
                assert_eq!(facts.seen_bytes, seen.len());
                let hashed = has_hash.then(|| xxh3_128(&seen));
                assert_eq!(
                    (facts.kept_hash, facts.seen_hash),
                    (xxh3_128(&kept), hashed)
                );
            }
        }
    }

    #[test]
    fn what_ends_early_or_goes_on_differs() {
        let kept = response(&["one", "two"], 2, false);
        for seen in [&kept[..kept.len() - 1], &[&kept[..], b"x"].concat()] {
            let difference = compare(&kept, seen, false, 7);
            let Difference::Content(facts) = difference else {
                panic!("no difference");
            };
            assert_eq!(facts.at, kept.len().min(seen.len()));
            assert_eq!(facts.seen_bytes, seen.len());
        }
    }
}
