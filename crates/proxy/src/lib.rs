//! Remora, the product: sessions, workers, configuration, commands, metrics, the admin listener.
//!
//! ARCHITECTURE.md at the repository's root walks one query through these modules.

mod acceptor;
pub mod admin;
pub mod advise;
pub mod app;
pub mod cli;
pub mod commands;
pub mod config;
pub mod digests;
pub mod explain;
mod listeners;
pub mod logging;
pub mod metrics;
mod observe;
pub mod open_files;
mod sampler;
mod service_manager;
pub mod session;
pub mod shared;
#[cfg(any(test, fuzzing))]
pub mod simulation;
mod state_file;
mod sweep;
mod terminal;
pub mod top;
pub mod traces;
pub mod verification;
mod worker;
