//! The limits that sessions keep.

use std::time::Duration;

use remora_engine::rules::TransactionReads;

use crate::config::Storing;

/// The limits of a session, from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// The longest statement that is analysed, bytes. A longer one passes and fences everything.
    pub statement_bytes_max: usize,
    /// How much is read from a socket at a time, bytes.
    pub read_bytes_max: usize,
    /// Prepared statements that a session may have before further ones count as unknown.
    pub prepared_statements_max: usize,
    /// Their texts that a session keeps, bytes.
    pub prepared_text_bytes_max: usize,
    /// How long the PROXY protocol's header may take to come.
    pub proxy_protocol_timeout: Duration,
    /// How long a session may be served from memory alone before a statement goes to the server so
    /// that it keeps the connection, milliseconds.
    pub server_contact_ms_max: u64,
    /// Which results are stored.
    pub storing: Storing,
    /// Statements that a worker recognises by their text without values.
    pub known_statements_max: usize,
    /// Which reads inside transactions memory may answer.
    pub transaction_reads: TransactionReads,
    /// How long such a read waits for a proof.
    pub snapshot_wait: Duration,
    /// How many answers from memory are remembered of a transaction that the server doesn't know.
    pub early_reads_max: usize,
    /// How many results of transactions a worker keeps aside for a proof.
    pub waiting_fills_max: usize,
    /// How long a statement waits for another client's answer to it.
    pub fill_wait: Duration,
    /// How long a statement waits for its turn at the server.
    pub statement_wait: Duration,
    /// How long a statement that changes a definition waits for Remora's own questions about
    /// definitions to be answered.
    pub definition_wait: Duration,
    /// How long a session may be silent after text ran in it that isn't seen, before the server is
    /// asked whether that has turned the log off.
    pub unseen_text_wait: Duration,
    /// How long a fence may wait for a client that doesn't take its answer.
    pub fenced_answer_wait: Duration,
    /// How long running statements may take to finish at a shutdown.
    pub shutdown_grace: Duration,
}

impl SessionLimits {
    /// Whether only a sample of a digest's results is stored. `of_digest`: whether storing them
    /// doesn't pay.
    pub fn stores_only_a_sample(&self, of_digest: impl FnOnce() -> bool) -> bool {
        match self.storing {
            Storing::Always => false,
            Storing::Sample => true,
            Storing::Adaptive => of_digest(),
        }
    }
}
