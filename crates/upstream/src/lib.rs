//! Remora's own side of the server: following its log, asking its position, knowing its tables.
//!
//! | module | what it does |
//! |---|---|
//! | [`link`], [`client`] | how the server is reached; connections of Remora's own |
//! | [`server_facts`], [`check`] | what the server is, and whether it can be cached in front of |
//! | [`catalogue`], `loader` | what tables are; asking the server for it |
//! | [`definition_change`] | a statement that changes definitions, while it is on its way |
//! | [`privileges`], [`table_changes`] | when privileges changed; how often tables did |
//! | [`state`] | what others may see of it |
//! | [`logged`] | what a statement in the log changed |
//! | [`place`] | log file names, and the proof that a log goes on |
//! | `commits` | commits that were read and that reads may not see yet |
//! | `progress`, `check_date`, `lost` | how far a session has come, and why it ends |
//! | `applier`, `follower` | what events mean; the connection that they come over |
//! | `watermark` | how far the server's commits can be seen: the watermark, proofs, fences lowered |
//! | `recheck`, `mark` | whether the server is still the one that was checked |
//! | [`saved`] | what one process leaves to the next |
//! | [`clock`] | Remora's clock |
//! | `simulated` | a follower without a server, for tests |
//! | `session` | one stretch of following: connections that begin and end together |
//!
//! Following runs on one thread, in [`run`]. The rest of the product talks to it through
//! [`UpstreamShared`] and the timeline. Sessions also connect to the server by [`link`], and
//! `remora check` uses [`client`] and [`check`] without following.

mod applier;
pub mod catalogue;
pub mod check;
mod check_date;
pub mod client;
pub mod clock;
mod commits;
pub mod definition_change;
mod follower;
pub mod link;
mod loader;
pub mod logged;
mod lost;
mod mark;
pub mod place;
pub mod privileges;
mod progress;
mod recheck;
pub mod saved;
pub mod server_facts;
mod session;
#[cfg(any(test, fuzzing, feature = "simulation"))]
pub mod simulated;
pub mod state;
pub mod table_changes;
mod want;
mod watermark;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use remora_cache::{ShapesLimits, Timeline};

use self::client::{Account, Client, ClientError};
use self::lost::Lost;
use self::saved::{Resumption, SavedLog, Stop};
use self::session::Memory;
pub use self::state::{UpstreamCounters, UpstreamShared, UpstreamState};
use crate::link::ServerLink;

/// `ER_ACCESS_DENIED_ERROR` and its kin: asking again soon won't help.
const REFUSALS: [u16; 6] = [1044, 1045, 1129, 1130, 1227, 1698];

/// How to follow a server.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Where the server is and how it is spoken to.
    pub link: Arc<ServerLink>,
    /// Remora's own account.
    pub account: Account,
    /// Remora's number among the server's replicas; its own, and not 0.
    pub server_id: u32,
    /// For how long a proof allows hits, milliseconds; probes come four times as often.
    pub lag_ms_max: u64,
    /// For how long a check of the server allows hits, milliseconds; checks come four times as
    /// often.
    pub check_age_ms_max: u64,
    /// Shortest time between two position questions under load, microseconds.
    pub ask_interval_us_min: u64,
    /// Longest time until a watermark that is wanted is asked for while nobody is turned away for
    /// want of it, microseconds; not below the shortest.
    pub ask_interval_us_max: u64,
    /// Time for an answer, milliseconds.
    pub query_timeout_ms: u64,
    /// First wait before connecting again, milliseconds; it doubles.
    pub reconnect_ms_min: u64,
    /// Longest wait before connecting again, milliseconds.
    pub reconnect_ms_max: u64,
    /// Tables whose facts are kept.
    pub catalogue_tables_max: usize,
    /// Tables that may wait to be loaded.
    pub catalogue_queue_max: usize,
    /// Time for the answer on all foreign keys of the server, milliseconds.
    pub catalogue_scan_timeout_ms: u64,
    /// Views that are looked at for code that they run.
    pub catalogue_views_max: usize,
    /// Tables whose changes are counted one by one.
    pub table_counts_max: usize,
    /// Tables that are loaded together.
    pub catalogue_batch_max: usize,
    /// Tables of one transaction that are told apart.
    pub transaction_tables_max: usize,
    /// Tags of one transaction that are told apart.
    pub transaction_tags_max: usize,
    /// How many shapes there may be.
    pub shapes: ShapesLimits,
    /// The longest event that is read whole, bytes. Of a longer one the tables still count; a
    /// longer statement text is a change of everything.
    pub event_bytes_max: usize,
    /// How often a quiet server is to send a sign of life, milliseconds. After five times that, at
    /// least a second, the connection counts as lost.
    pub heartbeat_ms: u64,
    /// How long it may take at the end until nothing is on its way any more, milliseconds. 0:
    /// nothing is to be left to the next process.
    pub settle_ms_max: u64,
}

/// Connects with the follower's account.
pub async fn connect(config: &UpstreamConfig) -> Result<Client, ClientError> {
    Client::connect(
        &config.link,
        &config.account,
        Duration::from_millis(config.query_timeout_ms),
    )
    .await
}

/// Follows the server until `shutdown` is ready, whatever happens to the server. Run it on a
/// current-thread runtime of its own thread; `timeline` is the one that `shared` was made with.
/// `left` is what an earlier process has left; gives what this one leaves.
pub async fn run(
    config: UpstreamConfig,
    timeline: Arc<Timeline>,
    shared: Arc<UpstreamShared>,
    left: Option<Resumption>,
    shutdown: impl Future<Output = ()>,
) -> Option<SavedLog> {
    let mut memory = Memory::new(left);
    let stop = Stop::new();
    let stopped = async {
        shutdown.await;
        stop.ask();
        tokio::time::sleep(Duration::from_millis(config.settle_ms_max)).await;
    };
    tokio::select! {
        () = stopped => {}
        () = follow_until_settled(&config, &shared, &mut memory, &stop) => {}
    }
    timeline.suspend();
    memory.saved
}

async fn follow_until_settled(
    config: &UpstreamConfig,
    shared: &UpstreamShared,
    memory: &mut Memory,
    stop: &Stop,
) {
    let mut wait_ms = config.reconnect_ms_min;
    loop {
        let lost = session::run(config, shared, memory, stop).await;
        if matches!(lost, Lost::Stopped) {
            return;
        }
        if memory.had_followed {
            wait_ms = config.reconnect_ms_min;
        }
        let is_hopeless = report(shared, &lost);
        if is_hopeless {
            wait_ms = config.reconnect_ms_max;
        }
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms.max(1) * 2).min(config.reconnect_ms_max);
    }
}

/// Logs the loss and shows it in the state. True if trying again soon is of no use.
fn report(shared: &UpstreamShared, lost: &Lost) -> bool {
    let why = lost.describe();
    if matches!(lost, Lost::Connection(ClientError::Timeout(_))) {
        state::count(&shared.counters.timeouts, 1);
    }
    match lost {
        Lost::Unsuitable(findings) => {
            let state = UpstreamState::CachingOff(Arc::clone(findings));
            // Each try finds the same; only news is logged.
            if shared.state() != state {
                for finding in findings.iter().filter(|finding| !finding.remedy.is_empty()) {
                    tracing::error!(
                        subject = finding.subject.as_str(),
                        "nothing is cached: {finding}"
                    );
                }
            }
            shared.set_state(state);
            true
        }
        Lost::Connection(error)
            if error
                .server_code()
                .is_some_and(|code| REFUSALS.contains(&code))
                || matches!(error, ClientError::Authentication(_)) =>
        {
            let state = UpstreamState::Refused(why.as_str().into());
            if shared.state() != state {
                tracing::error!("nothing is cached: {why}");
            }
            shared.set_state(state);
            true
        }
        Lost::PrivilegeGiven => {
            tracing::info!("connecting again: {why}");
            shared.set_state(UpstreamState::Lost(why.as_str().into()));
            false
        }
        Lost::Connection(_) | Lost::Stuck | Lost::Restart(..) | Lost::Stopped => {
            tracing::warn!("the binary log is lost, nothing is served from memory: {why}");
            shared.set_state(UpstreamState::Lost(why.as_str().into()));
            false
        }
    }
}
