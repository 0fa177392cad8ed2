//! A transaction at `REPEATABLE READ` that memory answers before the server knows of it.
//!
//! The server's snapshot isn't made yet. What memory answers must show one moment all the same, and
//! what the server answers later must show that moment, too.
//!
//! # The rule
//!
//! All results are of the kind that [`crate::snapshot`] calls exact. So each is what a read shows
//! at *every* place in the log from its `as_of` to the first commit above that touches it.
//!
//! - **A further hit**: the result may be served now by the ordinary rule, *and after that was
//!   found* no earlier one had been touched above its `as_of`.
//! - **When the server must answer**: it is told to make the snapshot. Then, when the follower has
//!   applied everything that the snapshot may show, no earlier result is fenced or has been touched
//!   above its `as_of`. If one is or has, or if the follower is late, the server runs that result's
//!   statement once more, inside the snapshot. It must answer to the byte as memory did. Otherwise
//!   the transaction can't go on.
//! - **The first hit** must prove that its read needs a snapshot. Otherwise the snapshot may be
//!   made too early, before a locking read, say. Later reads would then miss commits.
//!
//! # Why it is right
//!
//! **Several hits show one moment.** Let `P` be the place up to which the follower had applied the
//! log when the last result was looked at. That result is what a read shows at `P`. The earlier
//! ones were looked at afterwards, so whatever touched them up to `P` had been marked: nothing had.
//! Each `as_of` is at most `P`, since an exact result is stored when the follower has gone beyond
//! it. So all show `P`. In the other order a commit could come between the two looks, and a result
//! from behind it be served beside one from before.
//!
//! Fences don't matter for the earlier ones: a write that is under way has a place above `P`, or is
//! in no log and no result shows it. For the last one they do, as for any hit, so each is as fresh
//! as outside a transaction.
//!
//! **The server's snapshot shows the same.** Its *low* is taken after the results were found, so it
//! is at or above each `as_of`: watermarks don't go back. The rest is the argument of
//! [`crate::snapshot`], with an unmarked result in place of one that is served. Here fences matter:
//! a write that is in no log may be in the snapshot. Its fence is up from before it is sent until
//! everything has been forgotten.

use crate::reason::Unservable;
use crate::snapshot::Snapshot;
use crate::tag::Tag;
use crate::timeline::{AsOf, BrokenSnapshots, Timeline};

/// One answer that memory gave in such a transaction: what its result depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyRead {
    /// That of the result.
    pub as_of: AsOf,
    /// Those of the result.
    pub tags: Box<[Tag]>,
}

impl Timeline {
    /// Whether all these still show one moment with a result that was found to be servable just
    /// before this call.
    #[inline]
    pub fn check_early<'r>(
        &self,
        mut earlier: impl Iterator<Item = &'r EarlyRead>,
    ) -> Result<(), Unservable> {
        if self.broken().snapshots == BrokenSnapshots::EarlyHits
            || earlier.all(|read| self.is_untouched(read))
        {
            Ok(())
        } else {
            Err(Unservable::EarlierRead)
        }
    }

    /// Whether the server's snapshot shows what this read has shown. The snapshot was made after
    /// the read, and its *low* taken. `false` if that isn't known.
    pub fn holds_in(&self, read: &EarlyRead, snapshot: Snapshot) -> bool {
        if self.broken().snapshots == BrokenSnapshots::EarlySnapshot {
            return true;
        }
        // In this order, as in `check_in_snapshot`: what is proven was marked before the look at
        // the marks, and a fence that is down was lowered after what it stood for was forgotten.
        self.covers(snapshot)
            && (self.broken().snapshots == BrokenSnapshots::EarlyFences
                || !self.is_fenced(read.tags.iter().copied()))
            && self.is_untouched(read)
    }

    fn is_untouched(&self, read: &EarlyRead) -> bool {
        self.outdated(read.as_of, read.tags.iter().copied())
            .is_none()
    }
}
