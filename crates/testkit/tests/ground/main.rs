//! The ground under the tests: private servers start, survive what tests do to them, and leave
//! nothing behind.
//!
//! Servers: every
//! Load: waits
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod pool;
mod servers;
