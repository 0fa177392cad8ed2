//! The states that a scrape or a health check asks for.

use std::time::Duration;

use remora_engine::reason::{CachingOff, Limit, StateOutcome};
use remora_upstream::table_changes::TableCounts;

use crate::config::OptionInForce;

/// Gives the state of a running Remora. Asked from the admin thread, at each scrape: it must not
/// wait for anything that a busy worker holds.
pub trait Observed: Send + Sync + 'static {
    /// The state now.
    fn observe(&self) -> Observation;

    /// The configuration in force; nothing where there is none.
    fn configuration(&self) -> &[OptionInForce] {
        &[]
    }
}

/// The state of a running Remora.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Whether results are served from memory, and why not.
    pub caching: Caching,
    /// Whether the server can be reached, as far as the last attempt told.
    pub upstream: Reachability,
    /// Client connections that are open.
    pub connections: u64,
    /// The statements at the server, where their number is limited.
    pub statements: Option<StatementsObservation>,
    /// Combinations of account, schema and settings that have been told apart.
    pub fingerprints: u64,
    /// Digests that are counted one by one.
    pub digests: u64,
    /// Digests whose results are no longer kept because of a fault.
    pub digests_off: u64,
    /// Tables whose definitions are remembered.
    pub catalogue_tables: u64,
    /// Tables that have shapes.
    pub shape_tables: u64,
    /// Shapes of all tables.
    pub shapes: u64,
    /// Definitions of tables that were asked for since the start.
    pub catalogue_loads: u64,
    /// Rounds of questions in which they were.
    pub catalogue_batches: u64,
    /// How often limits were reached that others than sessions keep.
    pub limits: Vec<(Limit, u64)>,
    /// The rules.
    pub rules: RulesObservation,
    /// The store.
    pub store: StoreObservation,
    /// The follower.
    pub follower: FollowerObservation,
}

/// Whether results are served from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// They are.
    On,
    /// They aren't, for this reason.
    Off(CachingOff),
}

/// Whether the server can be reached, as far as the last attempt told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// No connection has been attempted yet.
    Untried,
    /// The last connection, of a client or of Remora's own, was established.
    Reachable,
    /// The last connection could not be established; why, in a line.
    Unreachable(String),
}

/// Counts by reason: the reason's label and how often.
pub type ReasonCounts = Vec<(&'static str, u64)>;

/// The state of the rules.
#[derive(Clone, Debug, Default)]
pub struct RulesObservation {
    /// Those in force.
    pub count: u64,
    /// What they said since the start, by outcome.
    pub decisions: ReasonCounts,
    /// Reloads since the start, by result.
    pub reloads: ReasonCounts,
}

/// The statements at the server, where their number is limited.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementsObservation {
    /// Those that run.
    pub running: u64,
    /// Those that wait for their turn.
    pub waiting: u64,
}

/// The state of the store.
#[derive(Clone, Debug, Default)]
pub struct StoreObservation {
    /// Results in memory.
    pub entries: u64,
    /// Memory that they take, keys, tags and overhead included.
    pub bytes: u64,
    /// The limit on that memory.
    pub bytes_max: u64,
    /// Results that left to make room, by the label of the reason, since the start.
    pub evictions: ReasonCounts,
    /// Results that were dropped because they were outdated, by the label of the reason, since the
    /// start.
    pub invalidations: ReasonCounts,
    /// Results on their way into memory.
    pub fills_in_flight: u64,
    /// Statements that wait for one of these.
    pub fill_waiters: u64,
    /// What became of the previous process's saved results, as soon as it is known.
    pub restored_outcome: Option<StateOutcome>,
    /// How many of them were taken over.
    pub restored: u64,
}

/// The state of the follower.
#[derive(Clone, Debug, Default)]
pub struct FollowerObservation {
    /// How far behind the server it may be: the time since the last moment at which it is known to
    /// have had everything. None before the first.
    pub lag: Option<Duration>,
    /// The number of the log file that it has applied last.
    pub applied_file: u64,
    /// The offset in that file.
    pub applied_offset: u64,
    /// Events read from the log since the start.
    pub events: u64,
    /// Bytes read from the log since the start.
    pub bytes: u64,
    /// Commits applied since the start.
    pub commits: u64,
    /// Those of them that counted as a change of everything.
    pub commits_of_everything: u64,
    /// From the server's last answer to a question for its position until that position was
    /// applied.
    pub catch_up: Duration,
    /// The longest of those since the start.
    pub catch_up_max: Duration,
    /// Batches of fences that stand until the log has shown what was written.
    pub fence_batches: u64,
    /// Connections that were established to follow the log since the start.
    pub connections: u64,
    /// Times that everything cached was forgotten, by the label of the reason, since the start.
    pub forgotten: ReasonCounts,
    /// Questions to the server for its position since the start.
    pub watermark_queries: u64,
    /// Questions where its log ends.
    pub log_end_queries: u64,
    /// The time since the questions of the last check of the server that found nothing against
    /// caching. None before the follower was first proven to have everything.
    pub check_age: Option<Duration>,
    /// Checks of the server since the start, but for the first of each time that it was followed.
    pub checks: u64,
    /// Those of them that could not be made.
    pub checks_failed: u64,
    /// What a check found that keeps caching off: its subject's label, and its meaning.
    pub findings: Vec<(&'static str, String)>,
    /// Commits by the table that they changed since the start.
    pub table_changes: TableCounts,
}
