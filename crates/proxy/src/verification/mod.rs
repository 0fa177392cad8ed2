//! Verification in production: a share of the hits is also answered by the server, and the two are
//! compared.
//!
//! The session does it, on its own connection, after its client has the answer
//! (`session/verify.rs`). Here is what it goes by and what comes of it:
//!
//! | file | what it holds |
//! |---|---|
//! | [`comparison`] | the server's answer compared with what memory served, as it arrives |
//! | [`switched_off`] | the digests that are no longer cached because a fault was found |

pub mod comparison;
pub mod switched_off;

use std::time::Duration;

pub use self::switched_off::SwitchedOff;

/// How hits are verified.
#[derive(Debug)]
pub struct Verification {
    /// Of the hits, the share that is verified.
    pub share: f64,
    /// How long the log is waited for, and the longest that misses of a digest may take on average
    /// for its hits to be verified.
    pub timeout: Duration,
    /// How long a result may lack a change that was made elsewhere, milliseconds
    /// (`follow.lag_ms_max`).
    pub lag_ms_max: u64,
    /// Whether a digest is no longer cached after a fault.
    pub disables_digest: bool,
    /// The digests for which that has happened.
    pub off: SwitchedOff,
}
