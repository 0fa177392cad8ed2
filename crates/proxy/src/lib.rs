//! Remora, the product: sockets, sessions, the follower, the catalogue, metrics.
//!
//! ARCHITECTURE.md at the repository's root walks one query through these modules.

pub mod admin;
pub mod cli;
pub mod clock;
pub mod config;
pub mod logging;
pub mod metrics;
pub mod net;
pub mod open_files;
pub mod reason;
