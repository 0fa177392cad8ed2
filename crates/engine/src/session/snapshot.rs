//! What is known of the snapshot that the open transaction has on the server.
//!
//! At `REPEATABLE READ` all reads of a transaction show the state at one moment, which its first
//! read sets. Memory may answer reads of the transaction once the server has certainly taken the
//! snapshot; [`remora_cache::Snapshot`] has the rule. Here is what a session knows of it, from
//! what it has sent and what came back.
//!
//! The rule for every doubt: *low* may be too early, and the moment at which the snapshot had
//! certainly been made may be too late. So:
//!
//! - *Low* is taken before the transaction's first message is sent, whatever that is, and stays
//!   until it is certain that a transaction has ended.
//! - A row tells that the server has taken a snapshot: one that it must have read from an `InnoDB`
//!   table without locking. A statement that gives no row may have been answered without a look at
//!   any table (`WHERE 1 = 0`). So it tells only if the server must have looked:
//!   [`crate::tags::certainly_looks`].
//! - After an error, or anything but a plain statement, the transaction may be another one. Then
//!   the next such answer tells anew.

use remora_cache::{AsOf, EndQuestion, Snapshot};

/// What a statement tells of the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing.
    None,
    /// If its answer has a row, that the transaction has one.
    InRows,
    /// Whatever its answer is, that the transaction has one.
    InAnswer,
    /// That the transaction has one: the answer has come. With the last question about the log's
    /// end, noted after that.
    Seen(EndQuestion),
}

impl Evidence {
    /// Whether an answer proves that the server has made the snapshot, or would have.
    #[inline]
    pub fn is_given(self) -> bool {
        matches!(self, Evidence::Seen(_))
    }
}

/// What a message means for the transaction, and so for its snapshot, now that it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// No transaction is open any more.
    Outside,
    /// A transaction has ended, and one has begun.
    NewTransaction,
    /// The transaction is the one of before, if there was one.
    SameTransaction(Evidence),
    /// Which transaction is open isn't certain.
    Unsure,
}

/// Of the open transaction, or of the one that the next statement opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenSnapshot {
    /// It has none: the server was sent nothing of the transaction yet.
    #[default]
    NotMade,
    /// It may have one. If so it was made after this; `None`: nothing was known at that moment.
    Perhaps(Option<AsOf>),
    /// It has one.
    Made(Snapshot),
    /// The server doesn't know of the transaction: memory has answered all of it, see the proxy's
    /// `session/early.rs`.
    Early,
}

impl OpenSnapshot {
    /// What is known when a message has been answered, before which `sent_at` was taken.
    #[must_use]
    #[inline]
    pub fn after(self, sent_at: Option<AsOf>, passed: Passed) -> OpenSnapshot {
        let low = match self {
            OpenSnapshot::NotMade | OpenSnapshot::Early => sent_at,
            OpenSnapshot::Perhaps(low) => low,
            OpenSnapshot::Made(snapshot) => Some(snapshot.low),
        };
        match passed {
            Passed::Outside => OpenSnapshot::NotMade,
            Passed::NewTransaction => OpenSnapshot::Perhaps(sent_at),
            Passed::SameTransaction(_) if self.made().is_some() => self,
            Passed::SameTransaction(Evidence::Seen(made_after)) => match low {
                Some(low) => OpenSnapshot::Made(Snapshot { low, made_after }),
                None => OpenSnapshot::Perhaps(None),
            },
            Passed::SameTransaction(_) | Passed::Unsure => OpenSnapshot::Perhaps(low),
        }
    }

    /// The snapshot, if the transaction certainly has it.
    #[inline]
    pub fn made(self) -> Option<Snapshot> {
        match self {
            OpenSnapshot::Made(snapshot) => Some(snapshot),
            OpenSnapshot::NotMade | OpenSnapshot::Perhaps(_) | OpenSnapshot::Early => None,
        }
    }
}
