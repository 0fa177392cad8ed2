//! The MySQL client/server protocol: packets, handshake, commands, responses.
//!
//! This crate touches no socket. Bytes go in, values and positions come out, so every decoder can
//! be fuzzed from recorded bytes, tested without time and measured by instruction count. Nothing in
//! it panics on what a peer sends: what can't be read is a [`WireError`] that says what was wrong.
//!
//! | file | what it knows |
//! |---|---|
//! | [`packet`] | headers, sequence numbers, payloads over 16 MiB |
//! | [`capabilities`], [`status`] | the flag words of the handshake and of each answer |
//! | [`handshake`], [`auth`] | greeting, login and changes to it, authentication; both roles |
//! | [`login`] | the client's side of an authentication, from packet to packet |
//! | [`compress`] | the compressed protocol, zlib and zstd |
//! | [`message`] | following messages that are relayed in pieces |
//! | [`command`] | the first byte of a command and what answers it |
//! | [`execute`] | the values that a prepared statement is executed with |
//! | [`parameters`], [`attributes`] | values of prepared statements and query attributes: where they end |
//! | [`response`] | OK, ERR, EOF |
//! | [`walker`] | where a response ends, found without decoding its rows |
//! | [`rows`] | small text result sets decoded whole, for Remora's own questions |
//! | [`result_set`] | text result sets of Remora's own |

pub mod attributes;
pub mod auth;
pub mod capabilities;
pub mod command;
pub mod compress;
mod error;
pub mod execute;
pub mod handshake;
pub mod login;
pub mod message;
pub mod packet;
pub mod parameters;
pub mod reader;
pub mod response;
pub mod result_set;
pub mod rows;
pub mod status;
pub mod walker;

pub use capabilities::Capabilities;
pub use command::Command;
pub use error::WireError;
pub use status::StatusFlags;
