//! What a client has sent and hasn't been handled yet.

use std::ops::Deref;

use remora_engine::session::BUFFER_BYTES_KEPT;

/// Bytes in the order in which they came. A client may send many statements ahead: if each were
/// removed from the front when it is handled, all the rest would be moved each time.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Where the bytes begin that haven't been handled. Less than `bytes.len()`, or both are 0.
    start: usize,
}

impl Inbox {
    /// Takes in what came next.
    pub(super) fn extend(&mut self, more: &[u8]) {
        // Moves no byte unless as many have been taken.
        if self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// Drops the first `count` bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.bytes.len());
        if self.start < self.bytes.len() {
            return;
        }
        self.start = 0;
        if self.bytes.capacity() > BUFFER_BYTES_KEPT {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }
}

impl Deref for Inbox {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_comes_in_order_and_takes_no_more_than_twice_its_length() {
        let mut inbox = Inbox::default();
        let (mut sent, mut taken) = (0_u8, 0_u8);
        for round in 0..10_000 {
            let more: Vec<u8> = (0..round % 50)
                .map(|_| {
                    sent = sent.wrapping_add(1);
                    sent
                })
                .collect();
            inbox.extend(&more);
            let count = inbox.len().min(round % 47);
            for byte in &inbox[..count] {
                taken = taken.wrapping_add(1);
                assert_eq!(*byte, taken);
            }
            inbox.consume(count);
            assert!(inbox.start <= inbox.bytes.len() / 2 + 50, "round {round}");
        }
        inbox.consume(inbox.len());
        assert!(inbox.is_empty() && inbox.bytes.capacity() <= BUFFER_BYTES_KEPT);
    }
}
