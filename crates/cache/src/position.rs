//! A place in the order of commits.

use std::fmt;

const OFFSET_BITS: u32 = 40;
const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;
const FILE_NUMBER_MAX: u64 = (1 << (u64::BITS - OFFSET_BITS)) - 1;

/// A commit's place in the binary log: the number in the log file's name and the offset at which
/// the commit's last event ends, packed so that comparing two positions compares the commits.
///
/// The file number has 24 bits (16,777,215 files), the offset 40 bits (1 TiB; a server's
/// `max_binlog_size` is at most 1 GiB, but one transaction may exceed it).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(u64);

impl Position {
    /// Before every commit.
    pub const ZERO: Position = Position(0);

    /// Packs a file number and an offset. `None` if either is too large to be placed; the caller
    /// then can't follow this log and must not cache.
    pub const fn new(file_number: u64, offset: u64) -> Option<Position> {
        if file_number > FILE_NUMBER_MAX || offset > OFFSET_MAX {
            return None;
        }
        Some(Position(file_number << OFFSET_BITS | offset))
    }

    /// The number in the log file's name: 17 for `binlog.000017`.
    pub const fn file_number(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    /// The offset in bytes in that file.
    pub const fn offset(self) -> u64 {
        self.0 & OFFSET_MAX
    }

    /// The position right before this one. No commit lies between the two.
    #[must_use]
    pub const fn before(self) -> Position {
        Position(self.0.saturating_sub(1))
    }

    /// The packed form, for an atomic or a file.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The reverse of [`Position::to_bits`].
    pub const fn from_bits(bits: u64) -> Position {
        Position(bits)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file_number(), self.offset())
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position({self})")
    }
}
