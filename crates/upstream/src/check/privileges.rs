//! What the follower's account must be allowed, and the statement that gives it that.

use std::fmt::Write as _;

use super::{Finding, Severity, Subject, bad, good};
use crate::client::literal;
use crate::server_facts::{Family, ServerFacts, Visibility};

/// What shows the other connections. It counts only if the connection that looks at them has it.
const PROCESS: &str = "PROCESS";
/// What shows the text of a view, on the servers of both families: either alone shows nothing.
const VIEWS: [&str; 2] = ["SHOW VIEW", "SELECT"];

/// A privilege, and the names that count as it.
struct Needed {
    name: &'static str,
    counts: &'static [&'static str],
}

/// What the follower needs.
///
/// `REPLICATION SLAVE` reads the log, `BINLOG MONITOR` (MySQL: `REPLICATION CLIENT`) shows its
/// filters and its end. The catalogue sees in `information_schema` only what its account has rights
/// on: `TRIGGER` shows triggers and foreign keys, `REFERENCES` shows columns. Both let it see
/// definitions but read no row. `PROCESS` shows what other connections are doing, where nothing
/// else tells that their commits are over.
fn needed(family: Family, visibility: Visibility) -> Vec<Needed> {
    const MARIADB_MONITOR: &[&str] = &["BINLOG MONITOR", "REPLICATION CLIENT", "SUPER"];
    const MYSQL_MONITOR: &[&str] = &["REPLICATION CLIENT", "SUPER"];
    const REPLICATION: &[&str] = &["REPLICATION SLAVE", "REPLICATION REPLICA"];
    const REFERENCES: &[&str] = &["REFERENCES", "SELECT"];
    let (monitor, monitors) = match family {
        Family::MariaDb => ("BINLOG MONITOR", MARIADB_MONITOR),
        Family::MySql => ("REPLICATION CLIENT", MYSQL_MONITOR),
    };
    let need = |name, counts| Needed { name, counts };
    let mut needed = vec![
        need("REPLICATION SLAVE", REPLICATION),
        need(monitor, monitors),
        need("TRIGGER", &["TRIGGER"]),
        need("REFERENCES", REFERENCES),
    ];
    if visibility.needs_process_list() {
        needed.push(need(PROCESS, &[PROCESS]));
    }
    needed
}

/// The statement that gives the follower's account what it needs.
pub fn grant_statement(family: Family, visibility: Visibility, account: &str) -> String {
    let names: Vec<_> = needed(family, visibility)
        .iter()
        .map(|needed| needed.name)
        .collect();
    format!("GRANT {} ON *.* TO {account};", names.join(", "))
}

/// The same for the account that asked for the facts.
pub(super) fn grant_for(facts: &ServerFacts) -> String {
    let account = quoted_account(&facts.account);
    grant_statement(facts.family, facts.visibility(), &account)
}

/// `user@host` as SQL text. The host can't contain an `@`; the name can.
fn quoted_account(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("{}@{}", literal(user), literal(host))
}

pub(super) fn privileges(facts: &ServerFacts) -> Finding {
    let is_given = |needed: &Needed| {
        let mut names = needed.counts.iter();
        names.any(|name| has_global(&facts.grants, name))
            && (needed.name != PROCESS || facts.sees_processes)
    };
    let missing: Vec<&str> = needed(facts.family, facts.visibility())
        .iter()
        .filter(|needed| !is_given(needed))
        .map(|needed| needed.name)
        .collect();
    if !missing.is_empty() {
        return bad(
            Subject::Privileges,
            Severity::CachingOff,
            format!(
                "the follower's account lacks {} on *.*.",
                missing.join(", ")
            ),
            grant_for(facts),
        );
    }
    if let Some(revoked) = facts
        .grants
        .iter()
        .find_map(|line| line.strip_prefix("REVOKE "))
    {
        return bad(
            Subject::Privileges,
            Severity::CachingOff,
            format!("a partial revoke hides tables from the follower's account: REVOKE {revoked}."),
            format!("GRANT {};", revoked.replacen(" FROM ", " TO ", 1)),
        );
    }
    good(Subject::Privileges, all_given(facts))
}

/// What to say of an account that has what it needs. Views are read through their texts, and
/// servers show those only to who may also read the views. Who may not see InnoDB's list of foreign
/// keys gets them by having every table opened.
fn all_given(facts: &ServerFacts) -> String {
    let mut meaning = "the follower's account has what it needs.".to_owned();
    let sees_views = VIEWS
        .iter()
        .all(|privilege| has_global(&facts.grants, privilege));
    if !sees_views {
        let account = quoted_account(&facts.account);
        let _ = write!(
            meaning,
            " Results from views are not cached, except where it may see a view's text. And a \
             statement on another view holds back all hits until the log shows what it wrote, for \
             the view may call a function. To have neither, give it (on *.*, or on the views): \
             GRANT {} ON *.* TO {account};",
            VIEWS.join(", ")
        );
    }
    if facts.lists_foreign_keys_slowly() && !has_global(&facts.grants, PROCESS) {
        let account = quoted_account(&facts.account);
        let _ = write!(
            meaning,
            " With tens of thousands of tables, this server takes its time to list foreign keys. \
             To have them listed at once, give it: GRANT PROCESS ON *.* TO {account};"
        );
    }
    if facts.visibility() == Visibility::Position && !facts.sees_processes {
        meaning.push_str(
            " Without PROCESS, what a transaction changes that also uses an engine without \
             two-phase commit (Aria) isn't cached any more.",
        );
    }
    meaning
}

/// Whether connections that are made now see what all others are doing, as far as is granted.
pub(crate) fn grants_processes(facts: &ServerFacts) -> bool {
    has_global(&facts.grants, PROCESS)
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
