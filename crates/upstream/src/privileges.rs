//! When privileges changed, and whether the server looked at them for a session before or after.
//!
//! The server looks at an account's global privileges when it logs in, at those on the default
//! schema when that is chosen, at those of a role when it is taken up; at all others with each
//! statement. What it found at such a moment holds until the next. So sessions share results only
//! if it looked for both of them between the same two changes: each moment has an *epoch*, the
//! number of changes before it, and the epochs are part of a session's fingerprint.
//!
//! A change that goes through Remora counts when the server has answered it, before its client gets
//! that. While one is under way nobody knows on which side of it the server looks. Whoever logs in
//! then, or while the number changes, gets an epoch that no other session has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Epochs from here on belong to one session each.
const LONE: u64 = 1 << 63;

/// How often privileges changed, as far as is known.
#[derive(Debug, Default)]
pub struct Privileges {
    epoch: AtomicU64,
    /// Changes through Remora that the server hasn't answered.
    under_way: AtomicU64,
    lone: AtomicU64,
}

/// The server is about to look at privileges for a session.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Look {
    epoch: u64,
    is_certain: bool,
}

impl Privileges {
    /// How often they changed.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// They have changed.
    pub fn changed(&self) {
        self.epoch.fetch_add(1, SeqCst);
    }

    /// To be called before a message is sent upon which the server looks at privileges.
    pub fn begin_look(&self) -> Look {
        let epoch = self.epoch();
        let is_certain = self.under_way.load(SeqCst) == 0;
        Look { epoch, is_certain }
    }

    /// To be called when it has been answered. Gives the epoch in which the server has looked.
    pub fn end_look(&self, look: Look) -> u64 {
        // In this order: a change counts first, and is over then.
        let is_certain = look.is_certain && self.under_way.load(SeqCst) == 0;
        if is_certain && self.epoch() == look.epoch {
            return look.epoch;
        }
        LONE | self.lone.fetch_add(1, SeqCst)
    }

    /// A statement that may change them is about to be sent.
    pub fn begin_change(self: &Arc<Self>) -> PrivilegeChange {
        self.under_way.fetch_add(1, SeqCst);
        PrivilegeChange {
            of: Arc::clone(self),
            is_refused: false,
        }
    }
}

/// A change under way. It is over when this is dropped.
#[derive(Debug)]
pub struct PrivilegeChange {
    of: Arc<Privileges>,
    is_refused: bool,
}

impl PrivilegeChange {
    /// The server didn't allow it: nothing has changed.
    pub fn refused(mut self) {
        self.is_refused = true;
    }
}

impl Drop for PrivilegeChange {
    fn drop(&mut self) {
        if !self.is_refused {
            self.of.changed();
        }
        self.of.under_way.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(privileges: &Privileges) -> u64 {
        privileges.end_look(privileges.begin_look())
    }

    #[test]
    fn sessions_share_an_epoch_between_two_changes() {
        let privileges = Arc::new(Privileges::default());
        let before = looked(&privileges);
        assert_eq!(looked(&privileges), before);
        drop(privileges.begin_change());
        let after = looked(&privileges);
        assert_ne!(after, before);
        privileges.changed();
        assert_ne!(looked(&privileges), after);
    }

    #[test]
    fn whoever_logs_in_beside_a_change_is_alone() {
        let privileges = Arc::new(Privileges::default());
        let before = looked(&privileges);
        let ends_within = privileges.begin_look();
        let spans = privileges.begin_look();
        let change = privileges.begin_change();
        let begins_within = privileges.begin_look();
        let mut seen = vec![
            before,
            privileges.end_look(ends_within),
            looked(&privileges),
            looked(&privileges),
        ];
        drop(change);
        seen.push(privileges.end_look(begins_within));
        seen.push(privileges.end_look(spans));
        let after = looked(&privileges);
        seen.push(after);
        let length = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), length);
        assert_eq!(looked(&privileges), after);
    }

    #[test]
    fn a_change_that_was_not_allowed_is_none() {
        let privileges = Arc::new(Privileges::default());
        let before = looked(&privileges);
        privileges.begin_change().refused();
        assert_eq!(looked(&privileges), before);
    }
}
