//! Every metric's name, kind and meaning.

use std::fmt::Write as _;

/// What a metric's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start.
    Counter,
    /// A state, up and down.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl Kind {
    /// As Prometheus calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As Prometheus shows it: stable, the unit last, a counter's with `_total`.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// The labels that split it.
    pub labels: &'static [&'static str],
    /// What it means. No full stop: the exposition adds it.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(super) const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)+
        const ALL: &[Metric] = &[$($constant,)+];
    };
}

metrics! {
    BUILD = Gauge "remora_build_info" ["version"]
        "Always 1; the label says which version of Remora runs";
    UPTIME = Gauge "remora_uptime_seconds" []
        "Time since Remora started";
    RESIDENT = Gauge "remora_resident_memory_bytes" []
        "Memory of the process that is in RAM";

    STATEMENTS = Counter "remora_statements_total" ["outcome", "reason"]
        "Statements by what became of them; docs/reasons.md explains the labels";
    HITS = Counter "remora_hits_total" []
        "Statements answered from memory";
    MISSES = Counter "remora_misses_total" []
        "Statements that memory might have answered and the server had to";
    HIT_BYTES = Counter "remora_hit_bytes_total" []
        "Bytes sent to clients from memory";
    HIT_SECONDS = Histogram "remora_hit_duration_seconds" []
        "Time from reading a statement to handing over its answer from memory; a wait for another client's answer isn't in it";
    MISS_SECONDS = Histogram "remora_miss_duration_seconds" []
        "Time from reading a statement that counts as a miss to the end of the server's answer; waits for another client's answer and for a turn at the server aren't in it";

    CACHING = Gauge "remora_caching" ["reason"]
        "1 while results are served from memory; 0 while not, with the reason";
    UPSTREAM_UP = Gauge "remora_upstream_up" []
        "1 if the server could be reached when a client or the follower last needed it, 0 if not or nobody has tried";
    UPSTREAM_FAILURES = Counter "remora_upstream_connect_failures_total" []
        "Connections to the server that could not be established for a client";
    STATEMENTS_RUNNING = Gauge "remora_statements_running" []
        "Statements at the server that count towards upstream.statements_max; 0 without that limit";
    STATEMENTS_WAITING = Gauge "remora_statements_waiting" []
        "Statements that wait for their turn at the server (upstream.statements_max)";
    STATEMENT_WAITS = Counter "remora_statement_waits_total" []
        "Statements that waited until their turn came or they were refused";
    STATEMENT_WAIT_TIME = Counter "remora_statement_wait_seconds_total" []
        "How long they waited, all together";

    CONNECTIONS = Gauge "remora_connections" []
        "Client connections that are open";
    CONNECTIONS_ACCEPTED = Counter "remora_connections_accepted_total" []
        "Client connections accepted";
    PROTOCOL_ERRORS = Counter "remora_protocol_errors_total" []
        "Connections closed because the client or the server broke the protocol";
    CLIENT_BYTES_IN = Counter "remora_client_received_bytes_total" []
        "Bytes received from clients";
    CLIENT_BYTES_OUT = Counter "remora_client_sent_bytes_total" []
        "Bytes sent to clients, from memory or from the server";
    FINGERPRINTS = Gauge "remora_fingerprints" []
        "Combinations of account, schema and settings that have been told apart";
    DIGESTS = Gauge "remora_digests" []
        "Digests (statements without their values) that are counted one by one";
    VERIFICATIONS = Counter "remora_verifications_total" ["verdict", "reason"]
        "Hits that were chosen to be verified, by what came of it; a fault is an answer that should not have been given";
    DIGESTS_OFF = Gauge "remora_digests_switched_off" []
        "Digests whose results are no longer kept because a verification found a fault";
    TRACES = Counter "remora_traces_total" []
        "Statements that were traced (observe.trace_sample)";
    TRACES_DROPPED = Counter "remora_traces_dropped_total" ["reason"]
        "Traces that were not sent to the OpenTelemetry collector (opentelemetry.endpoint)";
    LIMITS = Counter "remora_limit_reached_total" ["limit"]
        "Times that a limit of the configuration kept something from happening; the label is the option";

    RULES = Gauge "remora_rules" []
        "Rules of the configuration that are in force";
    RULE_DECISIONS = Counter "remora_rule_decisions_total" ["outcome"]
        "Reads about whose results a rule decided, by what it said; GET /rules counts them by rule";
    RULES_RELOADS = Counter "remora_rules_reloads_total" ["result"]
        "Times that the rules were read again, by what came of it";

    STATE_FILE = Gauge "remora_state_file" ["outcome"]
        "1 for what became of cache.state_file at the start; absent without that option, and while Remora waits for the server";
    STATE_RESULTS = Gauge "remora_state_results" []
        "Results that were taken over from cache.state_file at the start, even if forgotten since";

    STORE_ENTRIES = Gauge "remora_store_entries" []
        "Results in memory";
    STORE_BYTES = Gauge "remora_store_bytes" []
        "Memory that results take, with keys, tags and overhead";
    STORE_BYTES_MAX = Gauge "remora_store_max_bytes" []
        "The limit on the memory that results take (cache.memory_bytes_max)";
    EVICTIONS = Counter "remora_evictions_total" ["reason"]
        "Results that left memory to make room, or that a newer one replaced";
    INVALIDATIONS = Counter "remora_invalidations_total" ["reason"]
        "Results that were dropped because they were outdated";
    FILLS_IN_FLIGHT = Gauge "remora_fills_in_flight" []
        "Results on their way into memory";
    FILL_WAITERS = Gauge "remora_fill_waiters" []
        "Statements that wait for another client's answer to the same statement";
    FILL_WAITS = Counter "remora_fill_waits_total" []
        "Statements that waited until another client's answer was complete or had failed; if its result was not kept, they then asked the server";

    LAG = Gauge "remora_follower_lag_seconds" []
        "How far behind the server the follower may be at most: time since it is known to have applied all that the server had (limit: follow.lag_ms_max); absent before the first time";
    CATCH_UP = Gauge "remora_follower_catch_up_seconds" []
        "Time that the follower last took to apply a position after the server had told it";
    CATCH_UP_MAX = Gauge "remora_follower_catch_up_max_seconds" []
        "The longest of those times since Remora started";
    APPLIED_FILE = Gauge "remora_follower_log_file" []
        "Number of the binary log file that the follower has applied last";
    APPLIED_OFFSET = Gauge "remora_follower_log_offset_bytes" []
        "Offset in that file";
    FOLLOWER_EVENTS = Counter "remora_follower_events_total" []
        "Events read from the binary log";
    FOLLOWER_BYTES = Counter "remora_follower_received_bytes_total" []
        "Bytes read from the binary log";
    FOLLOWER_COMMITS = Counter "remora_follower_commits_total" []
        "Commits applied from the binary log";
    COMMITS_OF_EVERYTHING = Counter "remora_follower_commits_of_everything_total" []
        "Those of them that counted as a change of everything, because what they changed was not certain";
    TABLE_CHANGES = Counter "remora_table_changes_total" ["schema", "table"]
        "Commits by the table that they changed; those of tables beyond follow.table_counts_max together, with empty labels";
    FOLLOWER_CONNECTIONS = Counter "remora_follower_connections_total" []
        "Connections established to follow the binary log";
    FORGOTTEN = Counter "remora_forgotten_total" ["reason"]
        "Times that everything in memory was forgotten";
    WATERMARK_QUERIES = Counter "remora_watermark_queries_total" []
        "Questions to the server for its position";
    LOG_END_QUERIES = Counter "remora_log_end_queries_total" []
        "Questions to the server where its log ends, so that memory may answer reads inside transactions";
    CHECK_AGE = Gauge "remora_server_check_age_seconds" []
        "Time since the server was last found to be set up for caching (limit: follow.check_age_ms_max); absent before the first time";
    CHECKS = Counter "remora_server_checks_total" []
        "Times that the server was checked again while it was followed";
    CHECKS_FAILED = Counter "remora_server_check_failures_total" []
        "Those of them that could not be made, because the server did not answer as it should";
    FINDINGS = Gauge "remora_server_findings" ["subject"]
        "1 for each thing about the server that keeps caching off; /readyz says what was found";
    FENCE_BATCHES = Gauge "remora_fence_batches" []
        "Batches of fences that stand until the log has shown what was written through Remora";
    CATALOGUE_LOADS = Counter "remora_catalogue_loads_total" []
        "Definitions of tables that were asked for";
    CATALOGUE_BATCHES = Counter "remora_catalogue_batches_total" []
        "Rounds of questions in which they were, up to follow.catalogue_batch_max each";
    CATALOGUE_TABLES = Gauge "remora_catalogue_tables" []
        "Tables whose definitions are remembered";
    SHAPE_TABLES = Gauge "remora_shape_tables" []
        "Tables that have kinds of reads whose results are dropped by key";
    SHAPES = Gauge "remora_shapes" []
        "Kinds of reads whose results are dropped by key, of all tables";
}

/// Every metric, in the order of the exposition.
pub fn declared() -> &'static [Metric] {
    ALL
}

/// `docs/metrics.md`.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         <!-- Generated by `remora metrics --markdown > docs/metrics.md`; don't edit. -->\n\n\
         `GET /metrics` on the admin listener (`[admin] listen`) answers in the OpenMetrics text format, which Prometheus\n\
         reads. Names and labels are stable. Counters begin at 0 when Remora starts.\n\n\
         | metric | kind | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in declared() {
        let labels = metric.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let (name, kind, help) = (metric.name, metric.kind.as_str(), metric.help);
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help}. |");
    }
    page.push_str(
        "\nThe hit ratio of what was looked up is\n\
         `rate(remora_hits_total[1m]) / (rate(remora_hits_total[1m]) + rate(remora_misses_total[1m]))`.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_metrics_share_a_name() {
        let mut seen = HashSet::new();
        for metric in declared() {
            assert!(seen.insert(metric.name), "{} twice", metric.name);
        }
    }

    #[test]
    fn a_name_tells_the_kind() {
        for metric in declared() {
            let name = metric.name;
            assert!(name.starts_with("remora_"), "{name}");
            assert_eq!(
                name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{name}"
            );
            assert_eq!(
                name.ends_with("_duration_seconds"),
                metric.kind == Kind::Histogram,
                "{name}"
            );
            assert!(
                !metric.help.ends_with('.'),
                "{name}: the exposition adds the full stop"
            );
        }
    }
}
