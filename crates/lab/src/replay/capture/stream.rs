//! The bytes that a client sent, put in order.

use std::collections::BTreeMap;

use remora_wire::command::Command;
use remora_wire::packet::{HEADER_BYTES, Header};

use super::segment::Segment;

/// How much may wait for bytes that are missing before them.
const WAITING_MAX: usize = 1_024;
const WAITING_BYTES_MAX: usize = 32 << 20;
/// How many segments are looked at for the beginning of a command, where a connection began before
/// the capture.
const UNSYNCED_MAX: usize = 8;
/// How often that is tried.
const UNSYNCED_TRIES: u32 = 8;

/// Bytes in order, as far as one segment brought them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// When the segment was captured, microseconds since 1970.
    pub(super) captured_us: i64,
    /// What the client had of the server's bytes then.
    pub(super) acknowledged: u32,
}

/// What a segment has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Brought {
    /// The bytes that can be read now.
    pub(super) pieces: Vec<Piece>,
    /// The stream goes no further.
    pub(super) end: Option<End>,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The client has closed it, and every byte is there.
    Closed,
    /// What comes can't be read.
    Broken(&'static str),
}

impl Brought {
    fn broken(why: &'static str) -> Brought {
        Brought {
            pieces: Vec::new(),
            end: Some(End::Broken(why)),
        }
    }
}

pub(super) const GAP: &str =
    "a connection with bytes that are missing in the capture: the rest of it";
pub(super) const CUT: &str =
    "a connection with packets that the capture has cut (tcpdump needs `-s 0`): the rest of it";
pub(super) const TLS: &str = "a connection with TLS, which can't be read";
pub(super) const NO_COMMAND: &str =
    "a connection that began before the capture, without a command to begin at";

/// The client's side of a connection.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The number of the byte that comes next; `None` while that isn't known.
    next: Option<u32>,
    /// The number of the first byte, if the capture has the connection's beginning.
    first: Option<u32>,
    /// What came too early, by the number of its first byte.
    waiting: BTreeMap<u32, Piece>,
    waiting_bytes: usize,
    /// What came before the beginning was known.
    early: Vec<(Segment, i64)>,
    tries: u32,
    /// When the last piece was captured: a later one can't have been sent before it.
    last_us: i64,
    /// Where the client has closed it.
    end: Option<u32>,
    is_cut: bool,
}

impl Stream {
    /// Whether the capture has the connection's beginning.
    pub(super) fn is_whole(&self) -> bool {
        self.first.is_some()
    }

    /// Whether this opens another connection between the same ports.
    pub(super) fn is_other(&self, segment: &Segment) -> bool {
        let first = Some(segment.sequence.wrapping_add(1));
        segment.is_first && self.next.is_some() && self.first != first
    }

    /// Takes a segment that the client sent.
    pub(super) fn take(&mut self, segment: Segment, captured_us: i64) -> Brought {
        if self.next.is_some() {
            let mut pieces = Vec::new();
            if !segment.is_first {
                self.place(segment, captured_us, &mut pieces);
            }
            return self.brought(pieces);
        }
        if segment.is_first {
            self.first = Some(segment.sequence.wrapping_add(1));
            self.next = self.first;
            return self.take_early();
        }
        if !segment.payload.is_empty() {
            self.early.push((segment, captured_us));
        }
        if self.early.len() < UNSYNCED_MAX {
            Brought::default()
        } else {
            self.begin_within()
        }
    }

    /// The capture has ended.
    pub(super) fn finish(&mut self) -> Brought {
        let mut brought = if self.next.is_none() && !self.early.is_empty() {
            self.begin_within()
        } else {
            Brought::default()
        };
        if brought.end.is_none() && !self.waiting.is_empty() {
            brought.end = Some(End::Broken(self.why_broken()));
        }
        brought
    }

    fn why_broken(&self) -> &'static str {
        if self.is_cut { CUT } else { GAP }
    }

    /// Begins in the middle, at the first segment that looks like a command.
    fn begin_within(&mut self) -> Brought {
        let Some(base) = self.early.first().map(|(segment, _)| segment.sequence) else {
            return Brought::default();
        };
        self.early
            .sort_by_key(|(segment, _)| segment.sequence.wrapping_sub(base).cast_signed());
        let command = self
            .early
            .iter()
            .find(|(segment, _)| is_command(&segment.payload));
        if let Some((segment, _)) = command {
            self.next = Some(segment.sequence);
            return self.take_early();
        }
        if self
            .early
            .iter()
            .any(|(segment, _)| is_tls(&segment.payload))
        {
            return Brought::broken(TLS);
        }
        self.early.clear();
        self.tries += 1;
        if self.tries < UNSYNCED_TRIES {
            Brought::default()
        } else {
            Brought::broken(NO_COMMAND)
        }
    }

    fn take_early(&mut self) -> Brought {
        let mut pieces = Vec::new();
        for (segment, captured_us) in std::mem::take(&mut self.early) {
            self.place(segment, captured_us, &mut pieces);
        }
        self.brought(pieces)
    }

    fn brought(&self, pieces: Vec<Piece>) -> Brought {
        let end = if self.waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            Some(End::Broken(self.why_broken()))
        } else if self.end.is_some() && self.end == self.next {
            Some(End::Closed)
        } else {
            None
        };
        Brought { pieces, end }
    }

    fn place(&mut self, segment: Segment, captured_us: i64, pieces: &mut Vec<Piece>) {
        let Some(next) = self.next else { return };
        let length = u32::try_from(segment.payload.len()).unwrap_or_default();
        if segment.is_last && !segment.is_cut {
            self.end = Some(segment.sequence.wrapping_add(length));
        }
        self.is_cut |= segment.is_cut;
        if segment.payload.is_empty() {
            return;
        }
        let piece = Piece {
            bytes: segment.payload,
            captured_us,
            acknowledged: segment.acknowledged,
        };
        let distance = segment.sequence.wrapping_sub(next);
        if distance.cast_signed() > 0 {
            self.wait(segment.sequence, piece);
            return;
        }
        self.append(distance.wrapping_neg(), piece, pieces);
        self.append_waiting(pieces);
    }

    /// Keeps a piece that comes too early. Of two at one place the longer stays.
    fn wait(&mut self, sequence: u32, piece: Piece) {
        let known = self.waiting.get(&sequence).map_or(0, |old| old.bytes.len());
        if known < piece.bytes.len() {
            self.waiting_bytes += piece.bytes.len() - known;
            self.waiting.insert(sequence, piece);
        }
    }

    /// Appends what a piece has behind the `known` bytes at its start.
    fn append(&mut self, known: u32, mut piece: Piece, pieces: &mut Vec<Piece>) {
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        if known >= piece.bytes.len() {
            return;
        }
        piece.bytes.drain(..known);
        piece.captured_us = piece.captured_us.max(self.last_us);
        self.last_us = piece.captured_us;
        let length = u32::try_from(piece.bytes.len()).unwrap_or_default();
        self.next = self.next.map(|next| next.wrapping_add(length));
        pieces.push(piece);
    }

    fn append_waiting(&mut self, pieces: &mut Vec<Piece>) {
        while let Some(next) = self.next {
            let reached = |sequence: &u32| next.wrapping_sub(*sequence).cast_signed() >= 0;
            let Some(sequence) = self.waiting.keys().copied().find(reached) else {
                return;
            };
            if let Some(piece) = self.waiting.remove(&sequence) {
                self.waiting_bytes -= piece.bytes.len();
                self.append(next.wrapping_sub(sequence), piece, pieces);
            }
        }
    }
}

/// Whether these bytes are one whole command.
fn is_command(bytes: &[u8]) -> bool {
    let Some(header) = Header::peek(bytes) else {
        return false;
    };
    let command = bytes
        .get(HEADER_BYTES)
        .map(|byte| Command::from_byte(*byte));
    header.sequence == 0
        && header.length + HEADER_BYTES == bytes.len()
        && command.is_some_and(|command| !matches!(command, Command::Other(_)))
}

/// Whether these bytes begin like a record of TLS.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 0x03, 0x01..=0x04, ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use remora_testkit::load::random::Random;

    fn segment(sequence: u32, payload: &[u8]) -> Segment {
        let address = "127.0.0.1:1".parse().unwrap();
        Segment {
            from: address,
            to: address,
            sequence,
            acknowledged: 0,
            is_first: false,
            is_last: false,
            payload: payload.to_vec(),
            is_cut: false,
        }
    }

    fn opening(sequence: u32) -> Segment {
        Segment {
            is_first: true,
            ..segment(sequence, b"")
        }
    }

    fn command(text: &[u8]) -> Vec<u8> {
        let mut message = vec![u8::try_from(text.len() + 1).unwrap(), 0, 0, 0, 3];
        message.extend_from_slice(text);
        message
    }

    /// Plays the segments in the order of capture.
    fn bytes(stream: &mut Stream, segments: Vec<Segment>) -> (Vec<u8>, Option<End>) {
        let mut bytes = Vec::new();
        let mut end = None;
        let mut keep = |brought: Brought| {
            bytes.extend(brought.pieces.into_iter().flat_map(|piece| piece.bytes));
            end = end.or(brought.end);
        };
        for segment in segments {
            keep(stream.take(segment, 0));
        }
        keep(stream.finish());
        (bytes, end)
    }

    #[test]
    fn segments_in_any_order_and_more_than_once_give_the_same_bytes() {
        let seed = Random::fresh_seed();
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let whole: Vec<u8> = (0..2_000_u32)
            .map(|number| u8::try_from(number % 251).unwrap())
            .collect();
        for _ in 0..200 {
            // The numbers wrap around within the stream.
            let first = u32::MAX - 700;
            let mut segments = vec![opening(first.wrapping_sub(1))];
            let mut at = 0;
            while at < whole.len() {
                let end = (at + 1 + random.below(100)).min(whole.len());
                let sequence = first.wrapping_add(u32::try_from(at).unwrap());
                segments.push(segment(sequence, &whole[at..end]));
                if random.below(4) == 0 {
                    let longer = (end + random.below(30)).min(whole.len());
                    segments.push(segment(sequence, &whole[at..longer]));
                }
                at = end;
            }
            segments.push(Segment {
                is_last: true,
                ..segment(first.wrapping_add(2_000), b"")
            });
            for _ in 0..segments.len() {
                let from = 1 + random.below(segments.len() - 1);
                let to = (from + random.below(5)).min(segments.len() - 1);
                segments.swap(from, to);
            }
            // The opening may come late too, as long as it isn't given up.
            segments.swap(0, random.below(UNSYNCED_MAX));
            let (got, end) = bytes(&mut Stream::default(), segments);
            assert!(got == whole, "seed {seed}: {} bytes", got.len());
            assert_eq!(end, Some(End::Closed), "seed {seed}");
        }
    }

    #[test]
    fn a_missing_segment_ends_the_stream() {
        let segments = vec![opening(9), segment(10, b"ab"), segment(14, b"ef")];
        let (got, end) = bytes(&mut Stream::default(), segments);
        assert_eq!(got, b"ab");
        assert_eq!(end, Some(End::Broken(GAP)));
    }

    #[test]
    fn a_connection_from_before_the_capture_begins_at_a_command() {
        let (one, two) = (command(b"SELECT 1"), command(b"SELECT 2"));
        let length = u32::try_from(one.len()).unwrap();
        let segments = vec![
            segment(50, b"half of something"),
            segment(100, &one),
            segment(100 + length, &two),
        ];
        let mut stream = Stream::default();
        let (got, end) = bytes(&mut stream, segments);
        assert_eq!(got, [one, two].concat());
        assert!(end.is_none() && !stream.is_whole());
        let sealed = vec![segment(50, &[0x17, 3, 3, 0, 9, 1, 2])];
        assert_eq!(
            bytes(&mut Stream::default(), sealed).1,
            Some(End::Broken(TLS))
        );
    }
}
