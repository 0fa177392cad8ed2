//! What the log holds, and whether it can be known which of its commits reads can see.

use super::privileges::grant_for;
use super::{Finding, Severity, Subject, bad, good, section};
use crate::server_facts::{Family, ServerFacts, Visibility};

pub(super) fn binary_log(facts: &ServerFacts) -> Finding {
    if !facts.is_on("log_bin") {
        let gtids = match facts.visibility() {
            Visibility::Position => "",
            Visibility::Gtids { .. } => "gtid_mode=ON, enforce_gtid_consistency=ON, ",
            Visibility::NeverTold => {
                "gtid_mode=ON, enforce_gtid_consistency=ON, log_slave_updates=ON, "
            }
        };
        return bad(
            Subject::BinaryLog,
            Severity::CachingOff,
            "the server writes no binary log, so changes can't be seen.",
            format!(
                "log_bin=binlog, server_id=1, {gtids}binlog_format=ROW under {}, then a restart",
                section(facts)
            ),
        );
    }
    if facts.log_status.as_ref().is_some_and(|log| !log.is_open) {
        return bad(
            Subject::BinaryLog,
            Severity::CachingOff,
            "the server has stopped writing its binary log, though log_bin is ON: it couldn't write \
             to it, or couldn't begin its next file.",
            "removing the cause (see the server's error log), then restarting the server",
        );
    }
    if facts.variable("daemon_memcached_r_batch_size").is_some() {
        return bad(
            Subject::BinaryLog,
            Severity::CachingOff,
            "the memcached plugin is loaded, whose writes need not be in the log.",
            "UNINSTALL PLUGIN daemon_memcached;",
        );
    }
    good(Subject::BinaryLog, "the server writes a binary log.")
}

pub(super) fn format(facts: &ServerFacts) -> Finding {
    let format = facts.variable("binlog_format").unwrap_or("unknown");
    if format.eq_ignore_ascii_case("ROW") {
        return good(Subject::LogFormat, "the log names the rows that change.");
    }
    bad(
        Subject::LogFormat,
        Severity::CachingOff,
        format!(
            "binlog_format is {format}: each change logged as text may have changed anything and \
             would drop all results."
        ),
        format!(
            "SET GLOBAL binlog_format = 'ROW'; and binlog_format=ROW under {}. Sessions that are \
             connected keep the old format until they connect again",
            section(facts)
        ),
    )
}

/// The watermark on MySQL is a set of GTIDs.
pub(super) fn gtids(facts: &ServerFacts) -> Finding {
    let visibility = facts.visibility();
    if visibility == Visibility::Position {
        return good(
            Subject::Gtids,
            "MariaDB tells positions; GTIDs aren't needed.",
        );
    }
    let mode = facts.variable("gtid_mode").unwrap_or("unknown");
    if mode.eq_ignore_ascii_case("ON") {
        return good(Subject::Gtids, "each transaction has a GTID.");
    }
    let remedy = match visibility {
        Visibility::NeverTold => {
            "gtid_mode=ON, enforce_gtid_consistency=ON and log_slave_updates=ON under [mysqld], then a restart"
        }
        _ => {
            "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; \
             SET GLOBAL gtid_mode = ON_PERMISSIVE; then, when SHOW STATUS LIKE \
             'Ongoing_anonymous_transaction_count' says 0, SET GLOBAL gtid_mode = ON; and both \
             settings under [mysqld]. Each step on the replicas first"
        }
    };
    bad(
        Subject::Gtids,
        Severity::CachingOff,
        format!(
            "gtid_mode is {mode}: without GTIDs the server doesn't say which commits can be seen."
        ),
        remedy,
    )
}

pub(super) fn row_image(facts: &ServerFacts) -> Finding {
    let image = facts.variable("binlog_row_image").unwrap_or("FULL");
    good(
        Subject::RowImage,
        format!("binlog_row_image is {image}; any will do for whole tables."),
    )
}

pub(super) fn filters(facts: &ServerFacts) -> Finding {
    let Some(filters) = &facts.log_status else {
        return bad(
            Subject::LogFilters,
            Severity::CachingOff,
            "the account may not see whether the log leaves schemas out.",
            grant_for(facts),
        );
    };
    if filters.do_db.is_empty() && filters.ignore_db.is_empty() {
        return good(Subject::LogFilters, "the log leaves no schema out.");
    }
    bad(
        Subject::LogFilters,
        Severity::CachingOff,
        format!(
            "the log is filtered (binlog_do_db='{}', binlog_ignore_db='{}'): statements are left \
             out by the session's default schema, so even DDL on other schemas may be missing.",
            filters.do_db, filters.ignore_db
        ),
        format!(
            "removing binlog_do_db and binlog_ignore_db under {}, then a restart",
            section(facts)
        ),
    )
}

pub(super) fn replica(facts: &ServerFacts) -> Finding {
    if facts.replication.threads > 0 && facts.visibility() == Visibility::NeverTold {
        return bad(
            Subject::Replica,
            Severity::CachingOff,
            "the server is a replica, and MySQL 5.6 doesn't say when what it replicates can be seen.",
            "an upgrade to MySQL 5.7 or later",
        );
    }
    if facts.is_on("slave_run_triggers_for_rbr") {
        // Also while nothing is replicated: that may begin and end between two checks.
        return bad(
            Subject::Replica,
            Severity::CachingOff,
            "slave_run_triggers_for_rbr is YES: what triggers write for replicated rows isn't in \
             the log.",
            "STOP SLAVE; SET GLOBAL slave_run_triggers_for_rbr = LOGGING; START SLAVE;",
        );
    }
    match (facts.replication.threads, facts.logs_replicated()) {
        (0, _) => good(Subject::Replica, "no replication runs on the server."),
        (_, true) => good(
            Subject::Replica,
            "the server is a replica and logs what it replicates.",
        ),
        (_, false) => bad(
            Subject::Replica,
            Severity::CachingOff,
            "the server is a replica and doesn't log what it replicates, so those changes can't \
             be seen.",
            format!(
                "log_slave_updates=ON under {}, then a restart",
                section(facts)
            ),
        ),
    }
}

/// MariaDB: whether the leader of a group commits its transactions in the order of the log.
const ORDER_COMMITS: &str = "binlog_order_commits";
/// MariaDB: whether it does so for all of them by itself. With `OFF`, 85 of 2,824 reads missed a
/// row of a plain commit below the reported position.
const OPTIMIZE_SCHEDULING: &str = "binlog_optimize_thread_scheduling";

pub(super) fn commit_order(facts: &ServerFacts) -> Finding {
    if facts.family == Family::MySql {
        return good(
            Subject::CommitOrder,
            "commits may become visible in any order; each is waited for by itself.",
        );
    }
    for (name, remedy) in [
        (ORDER_COMMITS, format!("SET GLOBAL {ORDER_COMMITS} = ON;")),
        (
            OPTIMIZE_SCHEDULING,
            format!(
                "removing {OPTIMIZE_SCHEDULING}=OFF under {}, then a restart",
                section(facts)
            ),
        ),
    ] {
        if let Some(value) = facts.variable(name).filter(|_| !facts.is_on(name)) {
            return bad(
                Subject::CommitOrder,
                Severity::CachingOff,
                format!("{name} is {value}: commits become visible in any order."),
                remedy,
            );
        }
    }
    good(
        Subject::CommitOrder,
        "commits become visible in the order of the log.",
    )
}
