//! What stands in front of a server.
//!
//! [`Remora`] runs the built program as a child, as a user would; the demo and the benchmark use
//! it. Tests take [`InProcessRemora`], which is always of the same build as the test and whose
//! rules can be broken.

pub mod haproxy;
pub mod in_process;
pub mod proxysql;
pub mod remora;

pub use haproxy::HaProxy;
pub use in_process::InProcessRemora;
pub use proxysql::ProxySql;
pub use remora::{Remora, RemoraOptions};
