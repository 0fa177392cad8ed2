//! Remora, the product: sockets, sessions, the follower, the catalogue, metrics.
//!
//! ARCHITECTURE.md at the repository's root walks one query through these modules.

mod acceptor;
pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod digests;
pub mod explain;
pub mod link;
pub mod logging;
pub mod metrics;
pub mod net;
mod observe;
pub mod open_files;
mod sampler;
pub mod session;
pub mod shared;
#[cfg(any(test, fuzzing))]
pub mod simulation;
mod state_file;
mod sweep;
mod terminal;
pub mod tls;
pub mod top;
pub mod traces;
pub mod upstream;
pub mod verification;
mod worker;
