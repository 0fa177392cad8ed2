//! What can be wrong with bytes that a peer sent.

/// Bytes that break the protocol. The peer that sent them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The packet ended inside a field.
    #[error("packet ends inside {0}")]
    Truncated(&'static str),
    /// A field holds a value that the protocol doesn't allow there.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A packet carried another sequence number than the one that was due.
    #[error("packet out of order: sequence number {got}, expected {expected}")]
    OutOfOrder {
        /// The number that was due.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// The peer speaks a protocol that Remora doesn't: before MySQL 4.1, or a version other
    /// than 10.
    #[error("unsupported protocol: {0}")]
    Unsupported(&'static str),
}
