//! The server itself: its version, its cluster, its query cache, its names and numbers.

use super::{Finding, Severity, Subject, bad, good, section};
use crate::server_facts::{Family, ServerFacts, Visibility, WSREP_PROVIDER_NAME};

/// The oldest MySQL whose log has GTIDs.
const MYSQL_SINCE: (u32, u32, u32) = (5, 6, 0);
/// The oldest MariaDB that is followed.
const MARIADB_SINCE: (u32, u32, u32) = (10, 0, 0);

pub(super) fn version(facts: &ServerFacts) -> Finding {
    let release = facts.release();
    let version = &facts.version;
    match facts.family {
        Family::MariaDb if release < MARIADB_SINCE => bad(
            Subject::Version,
            Severity::CachingOff,
            format!("the server is {version}, older than MariaDB 10."),
            "an upgrade to MariaDB 10.6 or later",
        ),
        Family::MySql if release < MYSQL_SINCE => bad(
            Subject::Version,
            Severity::CachingOff,
            format!("the server is MySQL {version}, which has no GTIDs."),
            "an upgrade to MySQL 5.7 or later",
        ),
        Family::MySql if facts.visibility() == Visibility::NeverTold => bad(
            Subject::Version,
            Severity::Warning,
            format!(
                "the server is MySQL {version}, which doesn't say when a commit can be seen: a table that \
                 has changed is cached again only after each connection that was busy then has been \
                 idle for a moment."
            ),
            "an upgrade to MySQL 5.7 or later",
        ),
        Family::MariaDb => good(Subject::Version, format!("the server is {version}.")),
        Family::MySql => good(Subject::Version, format!("the server is MySQL {version}.")),
    }
}

pub(super) fn cluster(facts: &ServerFacts) -> Finding {
    let group = facts
        .variable("group_replication_group_name")
        .unwrap_or_default();
    if !group.is_empty() {
        return bad(
            Subject::Cluster,
            Severity::CachingOff,
            "the server is set up as a member of a replication group; the order in which the \
             group's transactions become visible hasn't been proven against its log yet.",
            "a server without group replication, or a later version of Remora",
        );
    }
    // A node on which `wsrep_on` is turned off later stays in the cluster and applies what others
    // write.
    let provider = facts.variable(WSREP_PROVIDER_NAME).unwrap_or_default();
    if !facts.is_on("wsrep_on") && provider.is_empty() {
        return good(
            Subject::Cluster,
            "the server is no node of a Galera cluster.",
        );
    }
    let logs_updates = facts.is_on("log_slave_updates");
    bad(
        Subject::Cluster,
        Severity::CachingOff,
        format!(
            "the server is a node of a Galera cluster (log_slave_updates is {}); the order in \
             which its writesets become visible hasn't been proven against its log yet.",
            if logs_updates { "ON" } else { "OFF" }
        ),
        "a server without wsrep, or a later version of Remora",
    )
}

/// The server's own query cache is told of a commit at another moment than readers are. Whether a
/// read that it answers can be older than the position that the server reports isn't proven.
pub(super) fn query_cache(facts: &ServerFacts) -> Finding {
    match facts.variable("query_cache_type") {
        Some(value) if value != "0" && !value.eq_ignore_ascii_case("off") => bad(
            Subject::QueryCache,
            Severity::CachingOff,
            format!(
                "query_cache_type is {value}: the server's own query cache answers reads, and may be behind its log."
            ),
            format!(
                "SET GLOBAL query_cache_type = OFF; on the server itself, not through Remora; and query_cache_type=OFF under {}",
                section(facts)
            ),
        ),
        _ => good(Subject::QueryCache, "the server's own query cache is off."),
    }
}

/// MySQL's plugin puts other statements in the place of those that it has rules for. The server
/// reads the rules again when a function is called, of which the log says nothing.
pub(super) fn rewriter(facts: &ServerFacts) -> Finding {
    if facts.is_on("rewriter_enabled") {
        return bad(
            Subject::Rewriter,
            Severity::CachingOff,
            "the plugin rewriter is on: what the server makes of a statement can change without a word in the log.",
            "SET GLOBAL rewriter_enabled = OFF;",
        );
    }
    good(Subject::Rewriter, "the server runs statements as they are.")
}

pub(super) fn table_names(facts: &ServerFacts) -> Finding {
    match facts.lower_case_table_names() {
        Some(0) => good(Subject::TableNames, "table names are case-sensitive."),
        Some(1) => good(
            Subject::TableNames,
            "table names are folded to lower case; tables with names beyond ASCII aren't cached.",
        ),
        mode => bad(
            Subject::TableNames,
            Severity::CachingOff,
            format!(
                "lower_case_table_names is {}: which names mean the same table can't be told.",
                mode.map_or("unknown".to_owned(), |mode| mode.to_string())
            ),
            "a server with lower_case_table_names 0 or 1 (it can't be changed later)",
        ),
    }
}

pub(super) fn own_number(facts: &ServerFacts, server_id: u32) -> Finding {
    if facts.instance.server_id == server_id {
        return bad(
            Subject::ServerId,
            Severity::CachingOff,
            format!("follow.server_id {server_id} is the server's own number."),
            "another follow.server_id",
        );
    }
    if facts.replica_ids.contains(&server_id) {
        return bad(
            Subject::ServerId,
            Severity::Warning,
            format!(
                "a replica with the number {server_id} is registered already: if it isn't this \
                 Remora, the server will keep disconnecting one of the two."
            ),
            "another follow.server_id",
        );
    }
    good(
        Subject::ServerId,
        format!("the follower's number is {server_id}."),
    )
}
