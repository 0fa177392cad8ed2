//! Whether a server can be cached in front of: facts in, findings out.

use std::fmt;

use super::server_facts::{Family, ServerFacts};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Caching works, with a drawback.
    Warning,
    /// Nothing is cached until it is mended: Remora is a plain proxy.
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
    /// The privileges of the follower's account.
    Privileges,
    /// How the server folds table names.
    TableNames,
    /// The follower's number.
    ServerId,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 12] = [
        Subject::Version,
        Subject::BinaryLog,
        Subject::LogFormat,
        Subject::RowImage,
        Subject::LogFilters,
        Subject::Replica,
        Subject::Cluster,
        Subject::CommitOrder,
        Subject::QueryCache,
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
            Subject::RowImage => "row_image",
            Subject::LogFilters => "log_filters",
            Subject::Replica => "replica",
            Subject::Cluster => "cluster",
            Subject::CommitOrder => "commit_order",
            Subject::QueryCache => "query_cache",
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
    /// The exact statement or setting that mends it; empty if nothing needs to be done.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject.as_str(), self.meaning)?;
        if self.remedy.is_empty() {
            Ok(())
        } else {
            write!(f, " Mend it with: {}", self.remedy)
        }
    }
}

/// The privileges that the follower needs, each with the names that count as it.
///
/// `REPLICATION SLAVE` reads the log, `BINLOG MONITOR` shows its filters. The catalogue sees in
/// `information_schema` only what its account has rights on: `TRIGGER` shows triggers and foreign
/// keys, `REFERENCES` shows columns. Both let it see definitions but read no row.
const NEEDED: &[(&str, &[&str])] = &[
    (
        "REPLICATION SLAVE",
        &["REPLICATION SLAVE", "REPLICATION REPLICA"],
    ),
    (
        "BINLOG MONITOR",
        &["BINLOG MONITOR", "REPLICATION CLIENT", "SUPER"],
    ),
    ("TRIGGER", &["TRIGGER"]),
    ("REFERENCES", &["REFERENCES", "SELECT"]),
];

/// The statement that gives the follower's account what it needs.
pub fn grant_statement(family: Family, account: &str) -> String {
    let monitor = match family {
        Family::MariaDb => "BINLOG MONITOR",
        Family::MySql => "REPLICATION CLIENT",
    };
    format!("GRANT REPLICATION SLAVE, {monitor}, TRIGGER, REFERENCES ON *.* TO {account};")
}

/// `user@host` as SQL text. The host can't contain an `@`; the name can.
fn quoted_account(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    let quote = |part: &str| format!("'{}'", part.replace('\\', "\\\\").replace('\'', "''"));
    format!("{}@{}", quote(user), quote(host))
}

/// Looks at the facts. `server_id` is the number that the follower will use.
pub fn check(facts: &ServerFacts, server_id: u32) -> Vec<Finding> {
    vec![
        version(facts),
        binary_log(facts),
        log_format(facts),
        row_image(facts),
        log_filters(facts),
        replica(facts),
        cluster(facts),
        commit_order(facts),
        query_cache(facts),
        privileges(facts),
        table_names(facts),
        own_number(facts, server_id),
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

fn version(facts: &ServerFacts) -> Finding {
    match facts.family {
        Family::MariaDb if major(&facts.version) >= 10 => good(
            Subject::Version,
            format!("the server is {}.", facts.version),
        ),
        Family::MariaDb => bad(
            Subject::Version,
            Severity::CachingOff,
            format!("the server is {}, older than MariaDB 10.", facts.version),
            "an upgrade to MariaDB 10.6 or later",
        ),
        Family::MySql => bad(
            Subject::Version,
            Severity::CachingOff,
            format!(
                "the server is MySQL {}, whose log this version can't follow yet.",
                facts.version
            ),
            "MariaDB, or a later version of Remora",
        ),
    }
}

fn major(version: &str) -> u32 {
    // Some MariaDB servers put "5.5.5-" in front for old clients.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    version
        .split('.')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn binary_log(facts: &ServerFacts) -> Finding {
    if facts.is_on("log_bin") {
        return good(Subject::BinaryLog, "the server writes a binary log.");
    }
    bad(
        Subject::BinaryLog,
        Severity::CachingOff,
        "the server writes no binary log, so changes can't be seen.",
        "log_bin=binlog, server_id=1 and binlog_format=ROW under [mariadbd], then a restart",
    )
}

fn log_format(facts: &ServerFacts) -> Finding {
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
        "SET GLOBAL binlog_format = 'ROW'; and binlog_format=ROW under [mariadbd]. Sessions that \
         are connected keep the old format until they connect again",
    )
}

fn row_image(facts: &ServerFacts) -> Finding {
    let image = facts.variable("binlog_row_image").unwrap_or("FULL");
    good(
        Subject::RowImage,
        format!("binlog_row_image is {image}; any will do for whole tables."),
    )
}

fn log_filters(facts: &ServerFacts) -> Finding {
    let Some(filters) = &facts.filters else {
        return bad(
            Subject::LogFilters,
            Severity::CachingOff,
            "the account may not see whether the log leaves schemas out.",
            grant_statement(facts.family, &quoted_account(&facts.account)),
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
        "removing binlog_do_db and binlog_ignore_db under [mariadbd], then a restart",
    )
}

fn replica(facts: &ServerFacts) -> Finding {
    let logs_updates = facts.is_on("log_slave_updates") || facts.is_on("log_replica_updates");
    match (facts.replica_threads, logs_updates) {
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
            "log_slave_updates=ON under [mariadbd], then a restart",
        ),
    }
}

fn cluster(facts: &ServerFacts) -> Finding {
    if !facts.is_on("wsrep_on") {
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

fn commit_order(facts: &ServerFacts) -> Finding {
    match facts.variable("binlog_order_commits") {
        Some(value) if !facts.is_on("binlog_order_commits") => bad(
            Subject::CommitOrder,
            Severity::CachingOff,
            format!("binlog_order_commits is {value}: commits become visible in any order."),
            "SET GLOBAL binlog_order_commits = ON;",
        ),
        _ => good(
            Subject::CommitOrder,
            "commits become visible in the order of the log.",
        ),
    }
}

/// The server's own query cache is told of a commit at another moment than readers are. Whether a
/// read that it answers can be older than the position that the server reports isn't proven.
fn query_cache(facts: &ServerFacts) -> Finding {
    match facts.variable("query_cache_type") {
        Some(value) if value != "0" && !value.eq_ignore_ascii_case("off") => bad(
            Subject::QueryCache,
            Severity::CachingOff,
            format!(
                "query_cache_type is {value}: the server's own query cache answers reads, and may be behind its log."
            ),
            "SET GLOBAL query_cache_type = OFF; (and in its configuration file)",
        ),
        _ => good(Subject::QueryCache, "the server's own query cache is off."),
    }
}

fn privileges(facts: &ServerFacts) -> Finding {
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(_, names)| !names.iter().any(|name| has_global(&facts.grants, name)))
        .map(|(needed, _)| *needed)
        .collect();
    if missing.is_empty() {
        return good(
            Subject::Privileges,
            "the follower's account has what it needs.",
        );
    }
    bad(
        Subject::Privileges,
        Severity::CachingOff,
        format!(
            "the follower's account lacks {} on *.*.",
            missing.join(", ")
        ),
        grant_statement(facts.family, &quoted_account(&facts.account)),
    )
}

/// Whether one of the lines of `SHOW GRANTS` gives a privilege on everything.
fn has_global(grants: &[String], privilege: &str) -> bool {
    grants.iter().any(|line| {
        let Some((privileges, _)) = line
            .strip_prefix("GRANT ")
            .and_then(|rest| rest.split_once(" ON *.* TO "))
        else {
            return false;
        };
        privileges
            .split(", ")
            .any(|given| given == privilege || given == "ALL PRIVILEGES" || given == "ALL")
    })
}

fn table_names(facts: &ServerFacts) -> Finding {
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

fn own_number(facts: &ServerFacts, server_id: u32) -> Finding {
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::server_facts::{Instance, LogFilters};
    use super::*;

    fn facts() -> ServerFacts {
        let variables = [
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("wsrep_on", "OFF"),
            ("lower_case_table_names", "0"),
        ];
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        ServerFacts {
            version: "10.11.19-MariaDB-log".into(),
            family: Family::MariaDb,
            instance: Instance {
                server_id: 1,
                hostname: "db".into(),
                port: "3306".into(),
                pid_file: "db.pid".into(),
            },
            variables: variables.collect::<BTreeMap<_, _>>(),
            filters: Some(LogFilters::default()),
            replica_threads: 0,
            replica_ids: BTreeSet::new(),
            account: "r@%".into(),
            grants: vec![
                "GRANT REPLICATION SLAVE, BINLOG MONITOR, TRIGGER, REFERENCES ON *.* TO `r`@`%`"
                    .into(),
            ],
            result_settings: Vec::new(),
        }
    }

    fn off(facts: &ServerFacts) -> Vec<Subject> {
        check(facts, 2)
            .into_iter()
            .filter(|finding| finding.severity == Severity::CachingOff)
            .map(|finding| finding.subject)
            .collect()
    }

    #[test]
    fn a_server_set_up_well_is_cached() {
        assert_eq!(off(&facts()), []);
    }

    #[test]
    fn each_fault_turns_caching_off_and_says_what_mends_it() {
        let mut bad = facts();
        bad.variables.insert("log_bin".into(), "OFF".into());
        bad.variables.insert("binlog_format".into(), "MIXED".into());
        bad.variables.insert("wsrep_on".into(), "ON".into());
        bad.variables
            .insert("binlog_order_commits".into(), "OFF".into());
        bad.variables
            .insert("query_cache_type".into(), "DEMAND".into());
        bad.filters = Some(LogFilters {
            do_db: "app".into(),
            ignore_db: String::new(),
        });
        bad.variables
            .insert("lower_case_table_names".into(), "2".into());
        bad.replica_threads = 1;
        bad.instance.server_id = 2;
        bad.grants = vec!["GRANT TRIGGER ON `app`.* TO `r`@`%`".into()];
        bad.version = "5.5.5-5.3.1-MariaDB".into();
        let found = off(&bad);
        let expected: Vec<_> = Subject::ALL
            .into_iter()
            .filter(|subject| *subject != Subject::RowImage)
            .collect();
        assert_eq!(found, expected);
        for finding in check(&bad, 2) {
            assert_eq!(
                finding.severity == Severity::Good,
                finding.remedy.is_empty()
            );
        }
    }

    #[test]
    fn the_grant_names_the_account_and_can_be_run_as_it_is() {
        let mut facts = facts();
        facts.grants.clear();
        facts.account = "o'brien@home@10.0.0.%".into();
        let findings = check(&facts, 2);
        let finding = findings
            .iter()
            .find(|finding| finding.subject == Subject::Privileges);
        let remedy = &finding.expect("privileges are looked at").remedy;
        assert!(
            remedy.ends_with(" ON *.* TO 'o''brien@home'@'10.0.0.%';"),
            "{remedy}"
        );
    }

    #[test]
    fn all_privileges_are_enough_and_those_on_one_schema_are_not() {
        let mut facts = facts();
        facts.grants = vec!["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`".into()];
        assert_eq!(off(&facts), []);
        facts.grants = vec!["GRANT ALL PRIVILEGES ON `app`.* TO `root`@`localhost`".into()];
        assert_eq!(off(&facts), [Subject::Privileges]);
    }
}
