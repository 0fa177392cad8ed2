//! What all sessions of one Remora share, and the limits that they keep.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_cache::{Entry, FillsInFlight, InvalidationReason, Store, Timeline};

use crate::clock::Clock;
use crate::config::{Network, Storing, TransactionReads};
use crate::digests::Digests;
use crate::emulation::{EmulationLimits, QueryCacheSettings};
use crate::link::ServerLink;
use crate::metrics::{Metrics, Reachability};
use crate::observe::LastAttempt;
use crate::reason::{Limit, Words};
use crate::rules::{ReloadError, Reloaded, RulesInForce};
use crate::session::backlog::BacklogRoom;
use crate::session::listed::Sessions;
use crate::session::settings::Fingerprints;
use crate::traces::Traces;
use crate::upstream::UpstreamShared;
use crate::upstream::privileges::Privileges;
use crate::verification::Verification;

/// Everything that sessions on all workers use. Nothing in it takes a lock on a hit.
pub struct Shared {
    /// The time.
    pub clock: Clock,
    /// What is known of the order of commits.
    pub timeline: Arc<Timeline>,
    /// The entries.
    pub store: Arc<Store>,
    /// Fills under way.
    pub fills: Arc<FillsInFlight>,
    /// The settings in use.
    pub fingerprints: Fingerprints,
    /// The follower's side: catalogue, watermark, state.
    pub upstream: Arc<UpstreamShared>,
    /// How connections to the server are made.
    pub link: Arc<ServerLink>,
    /// Networks of load balancers, whose connections begin with the PROXY protocol.
    pub proxy_protocol_from: Box<[Network]>,
    /// How the last connection to the server went.
    pub last_attempt: LastAttempt,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// What the operator decides about caching.
    pub rules: RulesInForce,
    /// Statements by their digests.
    pub digests: Digests,
    /// How hits are verified.
    pub verification: Verification,
    /// The sessions that are logged in.
    pub sessions: Sessions,
    /// Where traced statements go.
    pub traces: Traces,
    /// What the statements of the query cache's SQL interface may do.
    pub emulation: EmulationLimits,
    /// What `SET` changes of the query cache's variables.
    pub query_cache: QueryCacheSettings,
    /// Memory for answers that are ahead of their clients.
    pub backlogs: Arc<BacklogRoom>,
    /// Limits of a session.
    pub limits: SessionLimits,
}

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

impl Shared {
    /// When privileges changed.
    pub fn privileges(&self) -> &Arc<Privileges> {
        &self.upstream.privileges
    }

    /// Whether the server can be reached, as far as is known.
    pub(crate) fn reachability(&self) -> Reachability {
        self.last_attempt.get(self.upstream.reached())
    }

    /// A connection to the server was established for a client.
    pub(crate) fn server_reached(&self) {
        self.last_attempt
            .record(Reachability::Reachable, self.upstream.reached());
    }

    /// A connection to the server could not be established for a client. When that was begun, the
    /// follower had reached the server `reached` times.
    pub(crate) fn server_unreachable(&self, why: String, reached: u64) {
        let failures = &self.metrics.rare.upstream_connect_failures;
        failures.fetch_add(1, Ordering::Relaxed);
        self.last_attempt
            .record(Reachability::Unreachable(why), reached);
    }

    /// Drops every result, stored or on its way into memory. When this returns, nothing from before
    /// the call is served.
    pub fn flush(&self) {
        self.store.clear();
    }

    /// Reads the rules again, and says in the log what came of it. If anything in the file is
    /// wrong, the old ones stay in force.
    pub fn reload_rules(&self) -> Result<Reloaded, ReloadError> {
        let reloaded = self.rules.reload(&self.store);
        match &reloaded {
            Ok(reloaded) => reloaded.log(),
            Err(error) => {
                if error.is_about_their_number() {
                    self.metrics.rare.count_limit(Limit::Rules);
                }
                tracing::error!("the rules stay as they are: {error}");
            }
        }
        reloaded
    }

    /// Why a stored result can't be served at this moment, if it can't.
    pub(crate) fn why_unservable(&self, entry: &Entry, now_ms: u64) -> Option<Words> {
        let check = self
            .timeline
            .check_tags(entry.as_of(), entry.tags(), now_ms);
        let expired = entry.has_expired(now_ms);
        check
            .err()
            .map(Words::of)
            .or_else(|| expired.then(|| Words::of(InvalidationReason::Expired)))
    }

    /// Whether anything is being cached now.
    pub fn is_caching(&self) -> bool {
        self.timeline.is_live()
    }
}
