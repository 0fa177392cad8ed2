//! A closed loop of reads over TLS. sysbench speaks TLS only as the protocol has it, behind the
//! greeting; HAProxy, which knows nothing of the protocol, only from the first byte on. The same
//! client does both.

use std::time::Duration;

use super::closed_loop::{self, Report};
use remora_testkit::client::ConnectOptions;
use remora_testkit::load::random::Random;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reads {
    /// One row, about 200 bytes.
    Rows,
    /// A thousand rows, about 130,000 bytes.
    Ranges,
}

/// Reads with so many connections for so long.
///
/// # Errors
/// A client met an error.
pub(super) fn run(
    options: &ConnectOptions,
    reads: Reads,
    rows: u32,
    threads: u32,
    length: Duration,
) -> anyhow::Result<Report> {
    closed_loop::run(options, threads, length, |client, random| {
        client.query(&reads.text(random, rows))?;
        Ok(())
    })
}

impl Reads {
    fn text(self, random: &mut Random, rows: u32) -> String {
        let first = 1 + random.below(rows as usize);
        match self {
            Reads::Rows => format!("SELECT c FROM sbtest1 WHERE id={first}"),
            Reads::Ranges => {
                let last = first + 999;
                format!("SELECT c FROM sbtest1 WHERE id BETWEEN {first} AND {last}")
            }
        }
    }
}
