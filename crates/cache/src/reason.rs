//! Every reason of this crate: one enum each, shared by logs, metrics and documentation.

use std::fmt;
use std::mem::discriminant;

use remora_reason::{Reason, reasons};

reasons! {
    /// Why a stored result left the store to make room.
    EvictionReason {
        SmallQueue: "small_queue",
            "It was not asked for again while it was new, and the room was needed.";
        MainQueue: "main_queue",
            "It had been asked for repeatedly, but not lately, and the room was needed.";
        Outdated: "outdated",
            "The room was needed, and a change had outdated it already.";
        Replaced: "replaced",
            "A newer result took its place.";
    }
}

reasons! {
    /// Why a stored result can never be served again.
    InvalidationReason {
        Changed: "changed", "A commit touched something that it depends on.";
        Everything: "everything", "A commit may have touched anything.";
        Forgotten: "forgotten",
            "The binary log was lost, or a change was made that it does not show, so everything stored before was forgotten.";
        Cleared: "cleared", "An operator emptied the cache, or changed its rules.";
        Expired: "expired", "It had become older than a rule allows (`time_to_live_ms`).";
        Faulty: "faulty", "A verification found that the server answers otherwise.";
    }
}

reasons! {
    /// Why a result was not stored.
    NotStored {
        TooLarge: "too_large", "The response is larger than `result_bytes_max`.";
        TextTooLong: "text_too_long", "The statement's text is larger than a stored result may be, or than 8 MiB.";
        TooManyTags: "too_many_tags", "It depends on more than 255 things.";
        NoRoom: "no_room", "It does not fit into a shard of the store, even when that is empty.";
        MemoryHeld: "memory_held",
            "The memory of evicted results is still being read and could not be freed in time.";
        Unwanted: "unwanted",
            "The store is full and it has not been asked for lately; it is stored when it comes again.";
        NewerStored: "newer_stored", "A newer result of the same statement is stored already.";
        Cleared: "cleared", "An operator emptied the cache, or changed its rules, while it was on its way.";
    }
}

reasons! {
    /// Why a fill may not begin.
    FillRefused {
        InFlight: "in_flight", "A fill for the same key is in flight.";
        Full: "full", "The limit of fills in flight is reached.";
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

impl fmt::Display for FillRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

impl std::error::Error for NotStored {}
impl std::error::Error for FillRefused {}

/// Why a stored result may not be served now.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Unservable {
    /// The follower is not following.
    NotLive,
    /// The last proof that the follower has caught up is too old.
    Behind,
    /// The result is of an earlier generation.
    Forgotten,
    /// A write through this Remora to one of its tables isn't known to be visible yet.
    Fenced,
    /// A commit after the result's `as_of` touched the tag with this index in its list.
    Changed(usize),
    /// A commit after the result's `as_of` may have touched anything.
    Everything,
    /// It may be newer than the open transaction's snapshot.
    NewerThanSnapshot,
    /// The follower has not been proven to have applied all that the open transaction may see.
    SnapshotUnproven,
    /// The open transaction has written something that the result depends on.
    OwnWrites,
    /// Something that memory answered in the open transaction has changed since.
    EarlierRead,
}

impl Unservable {
    /// Every reason; the index of `Changed` stands for any.
    pub const ALL: [Unservable; 10] = [
        Unservable::NotLive,
        Unservable::Behind,
        Unservable::Forgotten,
        Unservable::Fenced,
        Unservable::Changed(0),
        Unservable::Everything,
        Unservable::NewerThanSnapshot,
        Unservable::SnapshotUnproven,
        Unservable::OwnWrites,
        Unservable::EarlierRead,
    ];

    /// The label in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unservable::NotLive => "not_live",
            Unservable::Behind => "behind",
            Unservable::Forgotten => "forgotten",
            Unservable::Fenced => "fenced",
            Unservable::Changed(_) => "changed",
            Unservable::Everything => "everything",
            Unservable::NewerThanSnapshot => "newer_than_snapshot",
            Unservable::SnapshotUnproven => "snapshot_unproven",
            Unservable::OwnWrites => "own_writes",
            Unservable::EarlierRead => "earlier_read",
        }
    }

    /// One sentence for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Unservable::NotLive => "The follower is not following the server's binary log.",
            Unservable::Behind => {
                "The follower has not been proven lately to have applied all that the server had."
            }
            Unservable::Forgotten => InvalidationReason::Forgotten.describe(),
            Unservable::Fenced => {
                "A write through Remora to one of its tables isn't known to be visible yet, or nothing tells when a commit without two phases can be seen."
            }
            Unservable::Changed(_) => InvalidationReason::Changed.describe(),
            Unservable::Everything => InvalidationReason::Everything.describe(),
            Unservable::NewerThanSnapshot => {
                "It may be newer than the open transaction's snapshot."
            }
            Unservable::SnapshotUnproven => {
                "The follower has not been proven to have applied everything that the open transaction's snapshot may show."
            }
            Unservable::OwnWrites => {
                "The open transaction has written something that it depends on."
            }
            Unservable::EarlierRead => {
                "Something that memory has answered in the open transaction has changed since, and all its answers must show one moment."
            }
        }
    }

    /// The reason to drop the result for good, if there is one: the others pass.
    pub const fn invalidation(self) -> Option<InvalidationReason> {
        match self {
            Unservable::NotLive
            | Unservable::Behind
            | Unservable::Fenced
            | Unservable::NewerThanSnapshot
            | Unservable::SnapshotUnproven
            | Unservable::OwnWrites
            | Unservable::EarlierRead => None,
            Unservable::Forgotten => Some(InvalidationReason::Forgotten),
            Unservable::Changed(_) => Some(InvalidationReason::Changed),
            Unservable::Everything => Some(InvalidationReason::Everything),
        }
    }
}

impl fmt::Display for Unservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// `Changed` says which tag: all of them count as one.
impl Reason for Unservable {
    const ALL: &'static [Unservable] = &Unservable::ALL;

    fn as_str(self) -> &'static str {
        Unservable::as_str(self)
    }

    fn describe(self) -> &'static str {
        Unservable::describe(self)
    }

    fn ordinal(self) -> usize {
        let is_same = |other: &Unservable| discriminant(other) == discriminant(&self);
        Unservable::ALL.iter().position(is_same).unwrap_or_default()
    }
}
