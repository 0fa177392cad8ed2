//! Following messages through a stream that is relayed in pieces, without holding them.

use crate::packet::{HEADER_BYTES, Header};

/// The end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEnd {
    /// Length of its whole payload, bytes.
    pub payload_bytes: u64,
}

/// Walks over messages, one payload in one or several packets each, however they are cut.
#[derive(Debug, Clone, Default)]
pub struct MessageWalker {
    head: [u8; HEADER_BYTES],
    head_length: usize,
    /// Bytes of the packet at hand still to come.
    skip: usize,
    /// Whether the packet at hand is the last of its message.
    is_last: bool,
    payload_bytes: u64,
}

impl MessageWalker {
    /// A walker before the first byte of a message.
    pub fn new() -> MessageWalker {
        MessageWalker::default()
    }

    /// Walks over `bytes` up to the end of the message at hand. Gives how many bytes belong to it,
    /// and its end if that was reached; the next call then begins the next message.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Option<MessageEnd>) {
        let mut at = 0;
        loop {
            while self.head_length < HEADER_BYTES {
                let Some(&byte) = bytes.get(at) else {
                    return (at, None);
                };
                self.head[self.head_length] = byte;
                self.head_length += 1;
                at += 1;
                if self.head_length == HEADER_BYTES
                    && let Some(header) = Header::peek(&self.head)
                {
                    self.skip = header.length;
                    self.is_last = !header.is_continued();
                    self.payload_bytes += header.length as u64;
                }
            }
            let skipped = self.skip.min(bytes.len() - at);
            self.skip -= skipped;
            at += skipped;
            if self.skip > 0 {
                return (at, None);
            }
            self.head_length = 0;
            if self.is_last {
                let payload_bytes = std::mem::take(&mut self.payload_bytes);
                return (at, Some(MessageEnd { payload_bytes }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{PAYLOAD_BYTES_MAX, put_message};

    #[test]
    fn ends_are_found_however_the_stream_is_cut() {
        for length in [
            0,
            1,
            5,
            PAYLOAD_BYTES_MAX - 1,
            PAYLOAD_BYTES_MAX,
            PAYLOAD_BYTES_MAX + 3,
        ] {
            let mut stream = Vec::new();
            put_message(&mut stream, 0, &vec![7; length]);
            let first_end = stream.len();
            put_message(&mut stream, 0, b"next");
            for cut in [1, 3, 4, 5, 1000, first_end - 1, first_end, first_end + 2] {
                let mut walker = MessageWalker::new();
                let cut = cut.min(stream.len());
                let (used, end) = walker.feed(&stream[..cut]);
                let (total, end) = if let Some(end) = end {
                    (used, end)
                } else {
                    let (more, end) = walker.feed(&stream[used..]);
                    (used + more, end.expect("the message is complete"))
                };
                assert_eq!(total, first_end, "length {length}, cut {cut}");
                assert_eq!(end.payload_bytes, length as u64);
            }
        }
    }
}
