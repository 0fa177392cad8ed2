//! What can be wrong with event bytes.

/// Why event bytes could not be read. Each means the log can no longer be trusted from here on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before a field does.
    #[error("the event ends early: {field} needs {needed} bytes, {left} are left")]
    Truncated {
        /// The field that was being read.
        field: &'static str,
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// The header's length isn't the number of bytes received.
    #[error("the event says that it is {said} bytes long but {received} arrived")]
    Length {
        /// The length in the header.
        said: u64,
        /// The bytes received.
        received: u64,
    },
    /// The checksum of the event is wrong.
    #[error(
        "the checksum of an event of type {event_type} is wrong: the log or the connection is damaged"
    )]
    Checksum {
        /// The event's type.
        event_type: u8,
    },
    /// A checksum algorithm that isn't NONE or CRC32.
    #[error("the server announces the unknown checksum algorithm {0}")]
    ChecksumAlgorithm(u8),
    /// A binary log of another version than 4.
    #[error("the binary log has version {0}; version 4 (MySQL 5.0 and later, MariaDB) is needed")]
    LogVersion(u16),
    /// An event that needs a format description came before one.
    #[error("an event of type {0} came before any format description event")]
    NoFormatDescription(u8),
    /// A name isn't UTF-8.
    #[error("{0} isn't UTF-8")]
    Utf8(&'static str),
    /// A field has a value that it can't have.
    #[error("{0} has a value that it can't have")]
    Invalid(&'static str),
    /// A logged event has no position.
    #[error("an event of type {0} carries no position")]
    NoPosition(u8),
    /// Positions in a file went back.
    #[error("the log's position went from {from} back to {to}")]
    PositionWentBack {
        /// Where the log was.
        from: u64,
        /// What the event said (the lower 32 bits are in the log).
        to: u64,
    },
}
