//! What asks so much that it keeps the processors busy: long loads and sweeps.
//!
//! Servers: every
//! Tier: test on mariadb-10.11, mysql-8.0
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collations;
mod comparisons;
mod consistency;
mod recount;
mod restarts;
mod snapshots;
mod sweep;
mod sysbench;

use remora_testkit::late_rows::LateRows;
use remora_testkit::servers::Kind;

/// What the environment says of a run: its seed, or how long it is.
fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("it is a number"))
}

fn is_without_late_rows() -> bool {
    let kind = Kind::from_environment().unwrap();
    kind.skips(
        !LateRows::are_possible(kind),
        "it can't hold commits back between their event and their rows",
    )
}
