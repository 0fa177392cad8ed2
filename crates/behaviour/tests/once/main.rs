//! What need not be asked of every server, or chooses its servers itself.
//!
//! Servers: mariadb-10.11
//! Load: waits
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advice;
mod dashboard;
mod mysql_log;
mod server_suite;
mod stream;
mod transport;
