//! Counting where one thread writes and others read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Adds to a counter that no other thread writes: what was read is still there when it is written,
/// so no bus lock is needed, which an addition in one step takes (about 20 cycles each). Others may
/// read at any time.
#[inline]
pub fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(number), Relaxed);
}
