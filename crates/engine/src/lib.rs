//! What is decided of statements, and what is known of servers, tables and sessions. No I/O, no
//! clock.
//!
//! The cores know one thing each: the protocol, SQL, the log, the store and its timeline. Here
//! stands what needs several of them, and still only takes and gives values. The proxy asks servers
//! and clients, passes on what they said, and acts on the outcome.
//!
//! | module | what it is |
//! |---|---|
//! | [`reason`] | every outcome and reason that is counted |
//! | [`facts`] | what is known of the server and its tables |
//! | [`tags`] | what a result depends on, what a change touches, what a write fences |
//! | [`rules`] | what the operator decides about caching |
//! | [`settings`] | a session's settings, as the server reports them |
//! | [`emulation`] | the query cache's variables |
//! | [`key`] | what identifies a result, and what stands beside it |
//! | [`session`] | what is known of a session |

pub mod emulation;
pub mod facts;
pub mod key;
pub mod reason;
pub mod rules;
pub mod session;
pub mod settings;
pub mod tags;
