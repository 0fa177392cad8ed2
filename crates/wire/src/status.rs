//! The status flags in OK and EOF packets. Source: MySQL internals, "Status Flags"; MariaDB
//! knowledge base, "`OK_Packet`".

/// A set of server status flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    /// A transaction is open.
    pub const IN_TRANSACTION: Self = Self(0x0001);
    /// Statements outside a transaction commit by themselves.
    pub const AUTOCOMMIT: Self = Self(0x0002);
    /// Another result set follows.
    pub const MORE_RESULTS: Self = Self(0x0008);
    /// No good index was found.
    pub const NO_GOOD_INDEX: Self = Self(0x0010);
    /// No index was used.
    pub const NO_INDEX: Self = Self(0x0020);
    /// A read-only cursor was opened.
    pub const CURSOR_EXISTS: Self = Self(0x0040);
    /// The last row of a cursor was sent.
    pub const LAST_ROW_SENT: Self = Self(0x0080);
    /// A schema was dropped.
    pub const SCHEMA_DROPPED: Self = Self(0x0100);
    /// `NO_BACKSLASH_ESCAPES` is in force.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(0x0200);
    /// The metadata of a prepared statement changed.
    pub const METADATA_CHANGED: Self = Self(0x0400);
    /// The statement took longer than `long_query_time`.
    pub const QUERY_WAS_SLOW: Self = Self(0x0800);
    /// The result set holds a procedure's output parameters.
    pub const OUT_PARAMETERS: Self = Self(0x1000);
    /// The open transaction is read-only.
    pub const IN_READ_ONLY_TRANSACTION: Self = Self(0x2000);
    /// The OK packet carries changes of session state.
    pub const SESSION_STATE_CHANGED: Self = Self(0x4000);
    /// MariaDB: `ANSI_QUOTES` is in force.
    pub const ANSI_QUOTES: Self = Self(0x8000);

    /// The flags that tell of the session, and not of one answer.
    pub const OF_SESSION: Self = Self::IN_TRANSACTION
        .with(Self::AUTOCOMMIT)
        .with(Self::NO_BACKSLASH_ESCAPES)
        .with(Self::IN_READ_ONLY_TRANSACTION)
        .with(Self::ANSI_QUOTES);

    /// Whether all flags of `other` are in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The flags that are in both sets.
    #[must_use]
    pub const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
