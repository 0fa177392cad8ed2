//! The session's settings as the server itself reports them, and their place in the cache key.
//!
//! Remora computes no setting from a `SET`: the server tells them. A statement may change a setting
//! that can change a result. Before the next look-up the session then asks the server for all of
//! them, in one `SELECT` on the client's own connection. The **fingerprint** is the answer's bytes,
//! with the account, the protocol's flavour and the collation of texts. Two sessions share entries
//! only if their fingerprints are equal byte for byte.
//!
//! | file | what it holds |
//! |---|---|
//! | `question` | what a session asks, and how to read the answer |
//! | `fingerprint` | what the settings are |
//! | `after` | what they are after a `SET` to literals, which is asked once |
//! | `flavour` | what of a connection belongs to it beside the settings |
//! | `charset` | how the bytes of statements relate to characters |
//! | `transaction_flags` | the flags of answers where transactions begin and end |
//! | `set_answers` | the answers to `SET`s of transaction defaults |

mod after;
mod charset;
mod fingerprint;
mod flavour;
mod question;
mod set_answers;
#[cfg(test)]
mod tests;
mod transaction_flags;

pub use self::after::{STATEMENTS_BYTES_MAX, SettingsAfter, SettingsChange};
pub use self::charset::{TextCharset, string_conversion};
pub use self::fingerprint::{
    Fingerprint, FingerprintLimits, FingerprintNames, Fingerprints, Isolation, SavedFingerprint,
    TooManyFingerprints,
};
pub use self::flavour::Flavour;
pub use self::question::{FollowedMark, ServerFeatures, SettingsQuery};
pub use self::set_answers::{SetAnswer, SetAnswers};
pub use self::transaction_flags::{Border, TransactionFlags};
