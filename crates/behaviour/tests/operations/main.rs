//! What operators see, set and survive.
//!
//! Servers: every
//! Load: waits
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod digests;
mod emulation;
mod emulation_settings;
mod explain;
mod gone_clients;
mod handover;
mod lifecycle;
mod limited_statements;
mod restarting;
mod rules;
mod show_remora;
mod storing;
mod tools;
mod traces;
