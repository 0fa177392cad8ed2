//! The last packet of an answer, by which the rest of it can be let go.

use remora_wire::packet::{HEADER_BYTES, Header};

/// Takes an answer in and keeps the payload of its last packet.
#[derive(Debug)]
pub(super) struct LastPacket {
    header: Vec<u8>,
    payload: Vec<u8>,
    /// Bytes of the payload that are still to come.
    left: usize,
    /// The longest payload that is kept.
    bytes_max: usize,
    is_cut: bool,
}

impl LastPacket {
    pub(super) fn new(bytes_max: usize) -> LastPacket {
        LastPacket {
            header: Vec::with_capacity(HEADER_BYTES),
            payload: Vec::new(),
            left: 0,
            bytes_max,
            is_cut: false,
        }
    }

    /// Takes in what comes next.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                bytes = self.begin(bytes);
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(self.left));
            let room = self.bytes_max - self.payload.len();
            self.is_cut |= taken.len() > room;
            self.payload
                .extend_from_slice(&taken[..taken.len().min(room)]);
            self.left -= taken.len();
            bytes = rest;
        }
    }

    /// Takes as much of a header as there is. Gives what is behind it.
    fn begin<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if self.header.len() == HEADER_BYTES {
            self.header.clear();
        }
        let wanted = HEADER_BYTES - self.header.len();
        let (header, rest) = bytes.split_at(bytes.len().min(wanted));
        self.header.extend_from_slice(header);
        if let Some(header) = Header::peek(&self.header) {
            self.left = header.length;
            self.payload.clear();
            self.is_cut = false;
        }
        rest
    }

    /// The payload, unless it is longer than is kept.
    pub(super) fn payload(&self) -> Option<&[u8]> {
        (!self.is_cut).then_some(&self.payload[..])
    }

    /// Whether it is longer than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remora_wire::packet::put_message;

    #[test]
    fn the_last_packet_is_kept_however_the_answer_is_cut() {
        let mut answer = Vec::new();
        for (sequence, payload) in [(1, &b"one"[..]), (2, b""), (3, &[7; 300]), (4, b"last")] {
            put_message(&mut answer, sequence, payload);
        }
        for step in 1..answer.len() {
            let mut last = LastPacket::new(100);
            for chunk in answer.chunks(step) {
                last.feed(chunk);
            }
            assert_eq!(last.payload(), Some(&b"last"[..]), "{step}");
        }
    }

    #[test]
    fn one_that_is_too_long_is_not_kept() {
        let mut answer = Vec::new();
        put_message(&mut answer, 1, &[7; 101]);
        let mut last = LastPacket::new(100);
        last.feed(&answer);
        assert!(last.is_cut() && last.payload().is_none());
        last.feed(b"\x02\0\0\x02ok");
        assert_eq!(last.payload(), Some(&b"ok"[..]));
    }
}
