//! What is known of a session, as plain values. The proxy's `session` sends and receives, and notes
//! here what was sent and what came back.
//!
//! | module | what is known |
//! |---|---|
//! | [`state`] | its settings, its transaction, what it has written |
//! | [`snapshot`] | the snapshot that the open transaction has on the server |
//! | [`counts`] | how many tables it has created, and what else the server counts |
//! | [`prepared`] | its prepared statements |
//! | [`consequences`] | what follows when the server runs a statement of it |
//! | [`planned_writes`] | what a statement of it writes |
//! | [`found_rows`] | what a statement of it does with the count that `FOUND_ROWS()` gives |
//! | [`replay`] | what memory answered and the server has not seen |
//! | [`pending_sets`] | `SET`s that were answered and that the server hasn't been sent |

pub mod consequences;
pub mod counts;
pub mod found_rows;
pub mod pending_sets;
pub mod planned_writes;
pub mod prepared;
pub mod replay;
pub mod snapshot;
pub mod state;

/// A session's buffers keep this much when they are empty, bytes.
pub const BUFFER_BYTES_KEPT: usize = 4 * 1024;
