//! Whether a server can be cached in front of: facts in, findings out.
//!
//! | file | what is looked at |
//! |---|---|
//! | `log` | what the log holds, and whether the watermark can be known |
//! | `server` | the server itself: version, query cache, names, numbers |
//! | [`privileges`] | what the follower's account may do |

mod log;
pub mod privileges;
mod server;
#[cfg(test)]
mod tests;

use std::fmt;

use super::server_facts::{Family, ServerFacts};
pub use privileges::grant_statement;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Caching works, with a drawback.
    Warning,
    /// Nothing is cached until it is fixed: Remora is a plain proxy.
    CachingOff,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The server's family and version.
    Version,
    /// Whether it writes a binary log.
    BinaryLog,
    /// The log's format.
    LogFormat,
    /// Whether each of its transactions has an identity (MySQL).
    Gtids,
    /// What row events hold.
    RowImage,
    /// Filters that keep schemas out of the log.
    LogFilters,
    /// It replicates from another server.
    Replica,
    /// It is a node of a Galera cluster.
    Cluster,
    /// Commits may become visible in another order than in the log.
    CommitOrder,
    /// Its own query cache.
    QueryCache,
    /// It runs other statements than those that it is sent.
    Rewriter,
    /// The privileges of the follower's account.
    Privileges,
    /// How the server folds table names.
    TableNames,
    /// The follower's number.
    ServerId,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 14] = [
        Subject::Version,
        Subject::BinaryLog,
        Subject::LogFormat,
        Subject::Gtids,
        Subject::RowImage,
        Subject::LogFilters,
        Subject::Replica,
        Subject::Cluster,
        Subject::CommitOrder,
        Subject::QueryCache,
        Subject::Rewriter,
        Subject::Privileges,
        Subject::TableNames,
        Subject::ServerId,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Subject::Version => "version",
            Subject::BinaryLog => "binary_log",
            Subject::LogFormat => "log_format",
            Subject::Gtids => "gtids",
            Subject::RowImage => "row_image",
            Subject::LogFilters => "log_filters",
            Subject::Replica => "replica",
            Subject::Cluster => "cluster",
            Subject::CommitOrder => "commit_order",
            Subject::QueryCache => "query_cache",
            Subject::Rewriter => "rewriter",
            Subject::Privileges => "privileges",
            Subject::TableNames => "table_names",
            Subject::ServerId => "server_id",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// How much it matters.
    pub severity: Severity,
    /// What was found and what it means.
    pub meaning: String,
    /// The exact statement or setting that fixes it; empty if nothing needs to be done.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject.as_str(), self.meaning)?;
        if self.remedy.is_empty() {
            Ok(())
        } else {
            write!(f, " Fix it with: {}", self.remedy)
        }
    }
}

/// Looks at the facts. `server_id` is the number that the follower will use.
pub fn check(facts: &ServerFacts, server_id: u32) -> Vec<Finding> {
    vec![
        server::version(facts),
        log::binary_log(facts),
        log::format(facts),
        log::gtids(facts),
        log::row_image(facts),
        log::filters(facts),
        log::replica(facts),
        server::cluster(facts),
        log::commit_order(facts),
        server::query_cache(facts),
        server::rewriter(facts),
        privileges::privileges(facts),
        server::table_names(facts),
        server::own_number(facts, server_id),
    ]
}

/// Whether any of them keeps caching off.
pub fn is_caching_off(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity == Severity::CachingOff)
}

fn good(subject: Subject, meaning: impl Into<String>) -> Finding {
    Finding {
        subject,
        severity: Severity::Good,
        meaning: meaning.into(),
        remedy: String::new(),
    }
}

fn bad(
    subject: Subject,
    severity: Severity,
    meaning: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        subject,
        severity,
        meaning: meaning.into(),
        remedy: remedy.into(),
    }
}

/// The section of the server's configuration file.
fn section(facts: &ServerFacts) -> &'static str {
    match facts.family {
        Family::MariaDb => "[mariadbd]",
        Family::MySql => "[mysqld]",
    }
}
