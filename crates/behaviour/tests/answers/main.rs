//! Does a client get, through Remora, what the server would have said?
//!
//! Servers: every
//! Load: waits
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caching;
mod change_user;
mod commands;
mod converted_strings;
mod counted_rows;
mod crowds;
mod json_times;
mod next_transaction;
mod no_tables;
mod nowait;
mod prepared;
mod privileges;
mod procedures;
mod protocol;
mod row_counts;
mod rows;
mod session;
mod session_settings;
mod several;
