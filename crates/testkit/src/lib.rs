//! What tests and experiments stand on: private servers, proxies in front of them, a client, and
//! loads that check what they read.
//!
//! Everything here starts processes of its own, on free ports of 127.0.0.1 and in directories of
//! its own, and ends them when the value that stands for them is dropped.
//!
//! | module | what it is for |
//! |---|---|
//! | [`servers`] | a private server: start, stop, crash, freeze, other contents |
//! | [`proxies`] | what stands in front of a server: Remora, HAProxy, ProxySQL |
//! | [`certificates`] | certificates for TLS, with an authority of their own |
//! | [`client`] | a small client that keeps the bytes it was sent |
//! | [`load`] | counters that are read and written, with an oracle that finds stale reads |
//! | [`mixed`] | the same in tables of many kinds and in many forms of writes and reads |
//! | [`histories`] | judges what transactions have seen and done, by the lists that they append to |
//! | [`late_rows`], [`semisync`] | commits held back between their event and their rows |
//! | [`log_gate`] | the binary log held back on its way to Remora; an address that moves |
//! | [`late_log`] | the same, at random |
//! | [`sysbench`] | runs sysbench, unmodified |
//! | [`metrics`] | reads what Remora says of itself |
//! | [`process`], [`scratch`], [`programs`], [`ports`], [`interrupt`] | the ground below |

pub mod certificates;
pub mod client;
pub mod histories;
pub mod interrupt;
pub mod late_log;
pub mod late_rows;
pub mod load;
pub mod log_gate;
pub mod metrics;
pub mod mixed;
pub mod ports;
pub mod process;
pub mod programs;
pub mod proxies;
pub mod scratch;
pub mod semisync;
pub mod servers;
pub mod sysbench;
