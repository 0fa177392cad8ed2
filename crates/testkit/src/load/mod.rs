//! Loads that check what they read.
//!
//! [`counters`] reads and writes counters in many forms, through Remora and past it; [`oracle`]
//! judges each value that was read. The demo's shop uses the same oracle for its stock.

pub mod counters;
pub mod oracle;
pub mod random;

pub use counters::{CounterLoad, CounterReport, CounterTable, Until};
pub use oracle::{Oracle, Route, StaleRead};
pub use random::{Random, Zipf};
