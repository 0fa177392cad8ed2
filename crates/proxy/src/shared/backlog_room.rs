//! The memory for answers that are ahead of their clients.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The memory for all answers that are ahead of their clients.
#[derive(Debug)]
pub struct BacklogRoom {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl BacklogRoom {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> BacklogRoom {
        BacklogRoom {
            bytes_max,
            bytes: AtomicUsize::new(0),
        }
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Whether so much more may be held. Others may ask at the same moment: each may be over the
    /// limit by one such piece.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes().saturating_add(bytes) <= self.bytes_max
    }

    /// So much more is held.
    pub(crate) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// So much less.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}
