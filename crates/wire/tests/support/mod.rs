//! What the tests of this crate share: an independent writer of server answers, a walker's driver,
//! a private MariaDB, and a connection to it.

// Every test file compiles its own copy and uses a part of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod attributes;
pub mod connection;
pub mod packets;
pub mod server;
pub mod walk;
