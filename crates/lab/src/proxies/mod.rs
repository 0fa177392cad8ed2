//! What stands in front of a server.
//!
//! [`remora`] runs the built program as a child, as a user would. A Remora inside the test's own
//! process, with switches that only tests have, belongs beside it in a file of its own.

pub mod haproxy;
pub mod remora;

pub use haproxy::HaProxy;
pub use remora::{Remora, RemoraOptions};
