//! Is no row that comes from memory older than it may be?
//!
//! Servers: every
//! Load: waits
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_order;
mod autocommit_transactions;
mod deferred_sets;
mod definitions;
mod early_event;
mod early_transactions;
mod fences;
mod first_reads;
mod hidden_code;
mod late_checkpoint;
mod late_definitions;
mod literal_settings;
mod long_events;
mod oracle;
mod refused_begin;
mod refused_streams;
mod relay;
mod replicas;
mod server_changes;
mod slow_commit;
mod slow_readers;
mod table_expressions;
mod tags;
mod transactions;
mod upstream;
mod verification;
