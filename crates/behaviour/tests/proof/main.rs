//! What asks so much that it keeps the processors busy: long loads, suites and sweeps.
//!
//! Servers: every
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collations;
mod comparisons;
mod consistency;
mod differential;
mod recount;
mod snapshots;
mod sweep;
mod sysbench;
