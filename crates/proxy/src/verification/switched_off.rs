//! The digests that are no longer cached because a fault was found.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use remora_sql::Digest;

/// Digests that aren't cached until a restart. A hit never looks here: when a digest is switched
/// off, everything in memory is forgotten, and fills look here. As long as there is none that costs
/// them the load of a flag.
#[derive(Debug)]
pub struct SwitchedOff {
    any: AtomicBool,
    known: Mutex<SwitchedOffDigests>,
    digests_max: usize,
}

#[derive(Debug, Default)]
struct SwitchedOffDigests {
    digests: HashSet<Digest>,
    /// There were more than there is room for: all count as switched off.
    all: bool,
}

/// What switching a digest off came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// It is off now.
    Off,
    /// There is no room for another, so every digest is off now.
    AllOff,
    /// It was off before.
    Already,
}

impl SwitchedOff {
    /// None, with room for so many.
    pub fn new(digests_max: usize) -> SwitchedOff {
        SwitchedOff {
            any: AtomicBool::new(false),
            known: Mutex::default(),
            digests_max,
        }
    }

    /// Whether a digest is off. `digest` works it out, and isn't called while none is.
    ///
    /// A fill asks after it has taken its `as_of`. Whoever switches a digest off has everything
    /// forgotten afterwards: so a fill that didn't find it here has an `as_of` that is forgotten.
    pub fn has(&self, digest: impl FnOnce() -> Digest) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        let digest = digest();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.all || known.digests.contains(&digest)
    }

    /// Switches a digest off. Unless it was off before, everything in memory must be forgotten now.
    pub fn switch_off(&self, digest: Digest) -> Switched {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.all || known.digests.contains(&digest) {
            return Switched::Already;
        }
        let switched = if known.digests.len() < self.digests_max {
            known.digests.insert(digest);
            Switched::Off
        } else {
            // So many faults are no matter of single statements.
            known.all = true;
            Switched::AllOff
        };
        self.any.store(true, Ordering::SeqCst);
        switched
    }

    /// How many are off.
    pub fn len(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.digests.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_worked_out_only_when_one_is_off() {
        let off = SwitchedOff::new(1);
        assert!(!off.has(|| unreachable!("none is off")));
        let (one, other) = (Digest::from_number(1), Digest::from_number(2));
        assert_eq!(off.switch_off(one), Switched::Off);
        assert_eq!(off.switch_off(one), Switched::Already);
        assert!(off.has(|| one) && !off.has(|| other));
    }

    #[test]
    fn with_more_than_there_is_room_for_all_are_off() {
        let off = SwitchedOff::new(1);
        assert_eq!(off.switch_off(Digest::from_number(1)), Switched::Off);
        assert_eq!(off.switch_off(Digest::from_number(2)), Switched::AllOff);
        assert!(off.has(|| Digest::from_number(3)));
        assert_eq!(off.switch_off(Digest::from_number(4)), Switched::Already);
    }
}
