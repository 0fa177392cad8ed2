//! The account of a shard's memory.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are taken, and how many may be.
///
/// An entry's bytes are taken before it is allocated and given back when it is freed, which is
/// later than its eviction: a reader may still be at it, or it may wait in a batch of the map's
/// deferred reclamation. So what is taken bounds what is allocated at every moment.
#[derive(Debug)]
pub(crate) struct Ledger {
    taken: AtomicUsize,
    bytes_max: usize,
}

impl Ledger {
    pub(crate) fn new(bytes_max: usize) -> Ledger {
        Ledger {
            taken: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Takes `bytes`, unless that would exceed the limit.
    // Relaxed: the number is all that is shared through it.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let more = |taken: usize| {
            taken
                .checked_add(bytes)
                .filter(|sum| *sum <= self.bytes_max)
        };
        self.taken
            .try_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}
