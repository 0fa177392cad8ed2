//! The differential suite: what a server answers directly, it answers through Remora, to the byte.
//!
//! A **case** is a file of statements about one theme (`crates/behaviour/differential/*.sql`; the
//! README there says how to write one). A **mode** is a way of speaking the protocol: text or
//! prepared statements, cold or warm, compressed, encrypted, with and without single features. Each
//! case is run in each mode through Remora, and directly, on the same server in a fresh schema of
//! the same name. Modes with the same [dialogue](mode::Dialogue) share the direct run. Every packet
//! must be equal, its number included.
//!
//! | file | what it knows |
//! |---|---|
//! | [`case`](mod@case) | the language of the case files |
//! | [`mode`] | the modes |
//! | [`mask`] | what must differ, and why |
//! | [`side`] | running one statement one way |
//! | [`crate::outcome`] | what Remora says became of a statement |
//! | [`report`] | what was compared, and the differences |
//! | [`suite`] | a server, a Remora, all cases, all modes |

pub mod case;
pub mod mask;
pub mod mode;
pub mod report;
pub mod side;
pub mod suite;

mod directives;
mod literal;
