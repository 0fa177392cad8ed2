//! Experiments with Remora: private servers, workloads, measurements, the demo.
//!
//! Everything here starts processes of its own, on free ports of 127.0.0.1 and in directories of
//! its own, and ends them when the value that stands for them is dropped.
//!
//! | module | what it is for |
//! |---|---|
//! | [`servers`] | a private MariaDB: start, stop, crash, freeze, other contents |
//! | [`proxies`] | what stands in front of a server: Remora, HAProxy |
//! | [`certificates`] | certificates for TLS, with an authority of their own |
//! | [`client`] | a small client that keeps the bytes it was sent |
//! | [`load`] | counters that are read and written, with an oracle that finds stale reads |
//! | [`mixed`] | the same in tables of many kinds and in many forms of writes and reads |
//! | [`search`] | random schemas, queries and changes, each result compared with the server's |
//! | [`late_rows`], [`semisync`] | commits held back between their event and their rows |
//! | [`responder`] | the limit for a hit: answers each query with the same bytes |
//! | [`sysbench`] | runs sysbench, unmodified |
//! | [`stats`], [`usage`], [`machine`], [`metrics`], [`table`], [`progress`] | numbers and how they are shown |
//! | [`demo`], [`bench`](mod@bench) | `make demo` and `make bench` |
//! | [`instructions`] | `make instructions`: what a hit, a miss and the like cost, against committed figures |
//! | [`drivers`] | `make drivers`: the matrix of real drivers |
//! | [`replay`] | `remora-lab replay`: a user's own captured statements, side by side |
//! | [`experiments`] | `remora-lab run`: the published experiments |
//! | [`report`], [`statistics`] | what a run found, for people, and what may be concluded from it |
//! | [`process`], [`scratch`], [`programs`], [`ports`], [`interrupt`] | the ground below |

pub mod bench;
pub mod demo;
pub mod drivers;
pub mod experiments;
pub mod instructions;
pub mod machine;
pub mod progress;
pub mod replay;
pub mod report;
pub mod responder;
pub mod search;
pub mod statistics;
pub mod stats;
pub mod table;
pub mod usage;
