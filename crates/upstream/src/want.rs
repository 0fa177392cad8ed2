//! Who wants a newer watermark, as all threads tell and the asker takes.
//!
//! Whoever makes the want greater rings, and the asker looks at it again after each ring. So no
//! want is lost: it was there when the asker looked last, or it rings.

use std::sync::atomic::{AtomicBool, Ordering};

/// Who wants a watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    /// Nobody.
    Nothing,
    /// A fence that was answered; there is time.
    InTime,
    /// Somebody who waits for it, or was turned away for want of it.
    Soon,
}

/// What is wanted now.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    is_wanted: AtomicBool,
    is_missed: AtomicBool,
}

impl Wanted {
    /// It is wanted soon. Gives whether to ring.
    pub(crate) fn soon(&self) -> bool {
        let was_missed = self.is_missed.swap(true, Ordering::SeqCst);
        let was_wanted = self.is_wanted.swap(true, Ordering::SeqCst);
        !(was_missed && was_wanted)
    }

    /// It is wanted in time. Gives whether to ring.
    pub(crate) fn in_time(&self) -> bool {
        !self.is_wanted.swap(true, Ordering::SeqCst)
    }

    /// If it is wanted, it is wanted soon. Gives whether to ring.
    pub(crate) fn turned_away(&self) -> bool {
        // Of many that are turned away at once, few write to what all share.
        let is_news =
            !self.is_missed.load(Ordering::Relaxed) && !self.is_missed.swap(true, Ordering::SeqCst);
        is_news && self.is_wanted.load(Ordering::SeqCst)
    }

    /// Who wants it.
    pub(crate) fn now(&self) -> Want {
        match self.is_wanted.load(Ordering::SeqCst) {
            true if self.is_missed.load(Ordering::SeqCst) => Want::Soon,
            true => Want::InTime,
            false => Want::Nothing,
        }
    }

    /// The server is about to be asked: whoever wants one from now on rings again. Gives who wanted
    /// it.
    pub(crate) fn take(&self) -> Want {
        let was_wanted = self.is_wanted.swap(false, Ordering::SeqCst);
        if self.is_missed.swap(false, Ordering::SeqCst) {
            Want::Soon
        } else if was_wanted {
            Want::InTime
        } else {
            Want::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_it_first_or_more_urgently_rings() {
        let wanted = Wanted::default();
        assert!(wanted.in_time());
        assert_eq!(wanted.now(), Want::InTime);
        assert!(!wanted.in_time(), "it is known");
        assert!(wanted.turned_away());
        assert_eq!(wanted.now(), Want::Soon);
        assert!(!wanted.turned_away(), "it is known");
        assert!(!wanted.soon(), "it is known");
    }

    #[test]
    fn what_is_wanted_soon_rings_although_it_was_wanted_in_time() {
        let wanted = Wanted::default();
        assert!(wanted.in_time());
        assert!(wanted.soon());
        assert_eq!(wanted.now(), Want::Soon);
    }

    #[test]
    fn who_is_turned_away_while_no_fence_is_answered_makes_the_next_one_urgent() {
        let wanted = Wanted::default();
        assert!(!wanted.turned_away(), "an answer would change nothing");
        assert_eq!(wanted.now(), Want::Nothing);
        assert!(wanted.in_time());
        assert_eq!(wanted.now(), Want::Soon);
    }

    #[test]
    fn what_was_taken_is_wanted_anew() {
        let wanted = Wanted::default();
        assert_eq!(wanted.take(), Want::Nothing);
        assert!(wanted.in_time());
        assert_eq!(wanted.take(), Want::InTime);
        assert_eq!(wanted.now(), Want::Nothing);
        assert!(wanted.soon());
        assert_eq!(wanted.take(), Want::Soon);
        assert!(wanted.in_time());
    }
}
