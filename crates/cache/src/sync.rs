//! The synchronisation primitives that the timeline and the fences are built from.
//!
//! They are named in one place so that the model test (`tests/model/main.rs`) can compile the same
//! sources against a scheduler that tries the interleavings.

use std::sync::{MutexGuard, PoisonError};

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Locks, and goes on after a panic elsewhere: every critical section here leaves its data
/// consistent at each step that could panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
