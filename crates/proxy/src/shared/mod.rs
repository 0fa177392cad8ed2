//! What all sessions of one Remora share, and the limits that they keep.
//!
//! | file | what it holds |
//! |---|---|
//! | `limits` | the limits of a session |
//! | `sessions` | who is logged in |
//! | `backlog_room` | memory for answers that are ahead of their clients |
//! | `restored` | what became of the saved results |
//! | `last_attempt` | whether the server could be reached |
//! | `turns` | how many statements run at the server |
//! | `rules_in_force` | the operator's rules, their reload, what they decided |

mod backlog_room;
mod last_attempt;
mod limits;
pub(crate) mod outdated;
mod restored;
mod rules_in_force;
mod sessions;
mod turns;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use remora_cache::{Entry, FillsInFlight, InvalidationReason, Store, Timeline};
use remora_engine::emulation::{EmulationLimits, QueryCacheSettings};
use remora_engine::reason::{Limit, Words};
use remora_engine::settings::Fingerprints;

pub use self::backlog_room::BacklogRoom;
pub use self::last_attempt::LastAttempt;
pub use self::limits::SessionLimits;
pub use self::restored::Restored;
pub use self::rules_in_force::{ReloadError, Reloaded, RuleReport, RulesInForce, RulesReport};
pub(crate) use self::sessions::ListedSession;
use remora_upstream::UpstreamShared;
use remora_upstream::clock::Clock;
use remora_upstream::link::ServerLink;
use remora_upstream::privileges::Privileges;

pub use self::sessions::Sessions;
pub use self::turns::{NotYet, Turn, Turns, Waiting};
use crate::config::Network;
use crate::digests::Digests;
use crate::metrics::{Metrics, Reachability};
use crate::traces::Traces;
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
    /// The statements at the server, if their number is limited.
    pub turns: Option<Arc<Turns>>,
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
    /// What became of the results that the previous process had saved.
    pub restored: Restored,
    /// Limits of a session.
    pub limits: SessionLimits,
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
