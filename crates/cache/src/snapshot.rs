//! Reads inside a transaction at `REPEATABLE READ`: all of them show the state at one moment.
//!
//! The server takes the snapshot with the transaction's first read. It doesn't say which commits
//! the snapshot has. Two bounds are known:
//!
//! - **low**: an [`AsOf`] taken before anything was sent that could have made the snapshot. Every
//!   commit at or before it is in the snapshot, because it could be seen already.
//! - **high**: where the log ended at some moment after the snapshot had certainly been made. A
//!   commit is written to the log before it can be seen, so no commit behind that end is in the
//!   snapshot.
//!
//! # The rule
//!
//! A result may be served inside the transaction only if
//!
//! - it may be served outside ([`crate::timeline`]),
//! - the follower has applied everything up to *high*,
//! - its `as_of` isn't above *low*, and nothing has been forgotten since *low* was taken,
//! - it was read by a transaction of this kind, and stored only when the follower had applied
//!   everything up to *that* transaction's *high*, with that transaction's *low* as its `as_of`.
//!
//! # Why it is right
//!
//! Let `C` be the commits that the snapshot shows, `D` those that the result shows. Each contains
//! all commits up to its *low* and none behind its *high*. The result's *low* is its `as_of`, and
//! the smaller of the two: so a commit that is in one set and not in the other lies above it.
//! Everything up to both *highs* had been applied when the result was checked, so each such commit
//! that touches what the result depends on had been marked with one of its tags. But the check
//! found no mark above `as_of`. So the result is what the server would read in the snapshot. It
//! doesn't matter in which order commits became visible, nor where between the bounds the snapshot
//! lies.
//!
//! **Why a newer result isn't served.** A result that was read later than *low* may be right as
//! well, but no mark tells. Its tags may be of a shape that nobody knew before ([`crate::Shapes`]):
//! commits up to its `as_of` were marked without that shape. One of them may lie above *low*, show
//! in the result and not in the snapshot.
//!
//! **What is stored is exact.** A result of a read outside a transaction may show a commit that the
//! follower hasn't read yet. That makes it newer than promised, which is right there and torn here:
//! hence the last condition. The scopes in the keys keep the two kinds of results apart.
//!
//! # How *high* is known
//!
//! Questions about the end of the log are numbered when they are sent
//! ([`Timeline::begin_end_question`]). Whoever knows that the snapshot has been made notes the last
//! number ([`Timeline::end_questions`]). Any question with a larger number is sent later, so the
//! end that it tells is a *high*. When the follower has applied that end,
//! [`Timeline::prove_end`] says so. One question serves all transactions that noted a smaller
//! number. That needs no clock.

use crate::reason::Unservable;
use crate::sync::Ordering;
use crate::tag::Tag;
use crate::timeline::{AsOf, BrokenSnapshots, Epoch, Timeline};

/// The number of a question about where the log ends. Later questions have larger ones.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndQuestion(u64);

/// What is known of the snapshot that an open transaction has. See the module documentation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Taken before anything was sent that could have made it.
    pub low: AsOf,
    /// The last question about the log's end when it had certainly been made.
    pub made_after: EndQuestion,
}

impl Timeline {
    /// The server is about to be asked where its log ends.
    pub fn begin_end_question(&self) -> EndQuestion {
        EndQuestion(self.end_questions.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The last question of that kind. One that is sent from now on has a larger number.
    pub fn end_questions(&self) -> EndQuestion {
        EndQuestion(self.end_questions.load(Ordering::SeqCst))
    }

    /// The follower has applied everything up to the end of the log that the server gave to this
    /// question, which was asked in `epoch`. In a later epoch it says nothing.
    pub fn prove_end(&self, epoch: Epoch, question: EndQuestion) {
        self.in_epoch(epoch, || {
            self.end_proven.fetch_max(question.0, Ordering::SeqCst);
        });
    }

    /// Whether the follower has applied everything that the snapshot can show.
    pub fn covers(&self, snapshot: Snapshot) -> bool {
        self.broken().snapshots == BrokenSnapshots::High
            || self.end_proven.load(Ordering::SeqCst) > snapshot.made_after.0
    }

    /// Whether a result with this `as_of` and these tags may be served inside a transaction that
    /// has this snapshot. The caller has read `now_ms` before the call, and knows that the result
    /// was read inside such a transaction.
    pub fn check_in_snapshot(
        &self,
        as_of: AsOf,
        tags: impl Iterator<Item = Tag> + Clone,
        now_ms: u64,
        snapshot: Snapshot,
    ) -> Result<(), Unservable> {
        // First: a proof that is seen here was given after the touches that are looked at below.
        let is_covered = self.covers(snapshot);
        let is_newer = self.is_newer(as_of, tags.clone(), snapshot.low);
        // Last, as it ends with the state: none of the cells was reset meanwhile.
        self.check_tags(as_of, tags, now_ms)?;
        if is_newer {
            return Err(Unservable::NewerThanSnapshot);
        }
        if is_covered {
            Ok(())
        } else {
            Err(Unservable::SnapshotUnproven)
        }
    }

    /// Whether a result may be newer than the snapshot. One of a later generation is; one of an
    /// earlier generation is never served.
    fn is_newer(&self, as_of: AsOf, tags: impl Iterator<Item = Tag>, low: AsOf) -> bool {
        match self.broken().snapshots {
            BrokenSnapshots::Low => false,
            BrokenSnapshots::Shapes => as_of > low && self.has_changed_since(low, tags),
            _ => as_of > low,
        }
    }

    /// Whether one of these tags was touched after *low*. Then what this transaction reads could
    /// never be served.
    pub fn has_changed_since(&self, low: AsOf, tags: impl Iterator<Item = Tag>) -> bool {
        self.changed_since(low.position(), tags).is_some()
    }
}
