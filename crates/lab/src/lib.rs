//! Experiments with Remora: workloads, measurements, the demo. What they stand on, servers and
//! clients, is in [`remora_testkit`].
//!
//! Everything here starts processes of its own, on free ports of 127.0.0.1 and in directories of
//! its own, and ends them when the value that stands for them is dropped.
//!
//! | module | what it is for |
//! |---|---|
//! | [`search`] | random schemas, queries and changes, each result compared with the server's |
//! | [`responder`] | the limit for a hit: answers each query with the same bytes |
//! | [`stats`], [`usage`], [`machine`], [`table`], [`progress`] | numbers and how they are shown |
//! | [`demo`], [`bench`](mod@bench) | `make demo` and `make bench` |
//! | [`instructions`] | `make instructions`: what a hit, a miss and the like cost, against committed figures |
//! | [`training`] | `make release`: what the guided build is optimised for |
//! | [`apps`] | `make apps`: real applications, directly and through Remora |
//! | [`drivers`] | `make drivers`: the matrix of real drivers |
//! | [`replay`] | `remora-lab replay`: a user's own captured statements, side by side |
//! | [`experiments`] | `remora-lab run`: the published experiments |
//! | [`results`] | what a run measured, as it is kept |
//! | [`report`], [`statistics`] | what a run found, for people, and what may be concluded from it |

pub mod apps;
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
pub mod results;
pub mod search;
pub mod statistics;
pub mod stats;
pub mod table;
pub mod training;
pub mod usage;
