//! What each setting of a server makes of the findings.

use std::collections::{BTreeMap, BTreeSet};

use remora_engine::facts::Instance;

use super::*;
use crate::server_facts::{LogStatus, Replication};

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
            uuid: String::new(),
        },
        variables: variables.collect::<BTreeMap<_, _>>(),
        log_status: Some(LogStatus {
            is_open: true,
            ..LogStatus::default()
        }),
        replication: Replication::default(),
        replica_ids: BTreeSet::new(),
        seen_from: "localhost".to_owned(),
        account: "r@%".into(),
        grants: vec![
            "GRANT REPLICATION SLAVE, BINLOG MONITOR, TRIGGER, REFERENCES ON *.* TO `r`@`%`".into(),
        ],
        sees_processes: false,
        result_settings: Vec::new(),
        contact_settings: Vec::new(),
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
fn a_node_of_a_cluster_stays_one_when_wsrep_is_turned_off() {
    let mut facts = facts();
    let mut insert = |name: &str, value: &str| {
        facts.variables.insert(name.into(), value.into());
        off(&facts)
    };
    // Started with wsrep off: the library isn't in use, and never will be.
    assert_eq!(insert("wsrep_provider", "/usr/lib/libgalera_smm.so"), []);
    assert_eq!(insert("wsrep_provider_name", ""), []);
    let node = insert("wsrep_provider_name", "Galera");
    assert_eq!(node, [Subject::Cluster]);
}

#[test]
fn each_fault_turns_caching_off_and_says_how_to_fix_it() {
    let mut bad = facts();
    bad.variables.insert("log_bin".into(), "OFF".into());
    bad.variables.insert("binlog_format".into(), "MIXED".into());
    bad.variables.insert("wsrep_on".into(), "ON".into());
    bad.variables
        .insert("binlog_order_commits".into(), "OFF".into());
    bad.variables
        .insert("query_cache_type".into(), "DEMAND".into());
    bad.log_status = Some(LogStatus {
        is_open: true,
        do_db: "app".into(),
        ignore_db: String::new(),
    });
    bad.variables
        .insert("lower_case_table_names".into(), "2".into());
    bad.replication.threads = 1;
    bad.instance.server_id = 2;
    bad.grants = vec!["GRANT TRIGGER ON `app`.* TO `r`@`%`".into()];
    bad.version = "5.5.5-5.3.1-MariaDB".into();
    let found = off(&bad);
    // Any row image will do, and the others are of MySQL.
    let fine = [Subject::RowImage, Subject::Gtids, Subject::Rewriter];
    let expected: Vec<_> = Subject::ALL
        .into_iter()
        .filter(|subject| !fine.contains(subject))
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
fn a_server_that_has_stopped_writing_its_log_is_not_cached() {
    let mut facts = facts();
    facts.log_status = Some(LogStatus::default());
    assert_eq!(off(&facts), [Subject::BinaryLog]);
}

#[test]
fn a_server_whose_triggers_write_past_the_log_is_not_cached() {
    let mut facts = facts();
    let mut insert = |value: &str| {
        let name = "slave_run_triggers_for_rbr";
        facts.variables.insert(name.into(), value.into());
        off(&facts)
    };
    assert_eq!(insert("YES"), [Subject::Replica]);
    for logged in ["NO", "LOGGING", "ENFORCE"] {
        assert_eq!(insert(logged), [], "{logged}");
    }
}

#[test]
fn a_mariadb_whose_group_commits_are_not_in_the_order_of_the_log_is_not_cached() {
    for (name, remedy) in [
        (
            "binlog_order_commits",
            "SET GLOBAL binlog_order_commits = ON;",
        ),
        (
            "binlog_optimize_thread_scheduling",
            "removing binlog_optimize_thread_scheduling=OFF under [mariadbd], then a restart",
        ),
    ] {
        let mut facts = facts();
        facts.variables.insert(name.into(), "ON".into());
        assert_eq!(off(&facts), [], "{name}");
        facts.variables.insert(name.into(), "OFF".into());
        assert_eq!(off(&facts), [Subject::CommitOrder], "{name}");
        assert_eq!(finding(&facts, Subject::CommitOrder).remedy, remedy);
    }
}

#[test]
fn what_a_server_replicates_is_compared_only_where_it_is_not_logged() {
    let mut facts = facts();
    let position = "0-1-17".to_owned();
    facts.variables.insert("gtid_slave_pos".into(), position);
    assert_eq!(facts.replication_trace(), "0-1-17 0");
    facts.replication.commands = 2;
    assert_eq!(facts.replication_trace(), "0-1-17 2");
    facts
        .variables
        .insert("log_slave_updates".into(), "ON".into());
    assert_eq!(facts.replication_trace(), "");
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

fn mysql(version: &str) -> ServerFacts {
    let mut facts = facts();
    facts.version = version.into();
    facts.family = Family::MySql;
    facts.instance.uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562".into();
    facts.variables.remove("wsrep_on");
    for (name, value) in [
        ("gtid_mode", "ON"),
        ("enforce_gtid_consistency", "ON"),
        ("binlog_order_commits", "ON"),
        ("query_cache_type", "OFF"),
    ] {
        facts.variables.insert(name.into(), value.into());
    }
    facts.grants = vec![
        "GRANT PROCESS, REFERENCES, REPLICATION SLAVE, REPLICATION CLIENT, TRIGGER ON *.* TO `r`@`%`"
            .into(),
    ];
    facts.sees_processes = true;
    facts
}

fn finding(facts: &ServerFacts, subject: Subject) -> Finding {
    let mut findings = check(facts, 2).into_iter();
    findings
        .find(|finding| finding.subject == subject)
        .expect("each subject is looked at")
}

#[test]
fn a_mysql_set_up_well_is_cached() {
    for version in ["5.6.24-log", "5.7.22", "8.0.31", "8.4.3", "9.7.0"] {
        assert_eq!(off(&mysql(version)), [], "{version}");
    }
    assert_eq!(off(&mysql("5.5.62")), [Subject::Version]);
    // It works, but the administrator should know.
    let version = finding(&mysql("5.6.24"), Subject::Version);
    assert_eq!(version.severity, Severity::Warning);
}

#[test]
fn without_gtids_a_mysql_is_not_cached_and_is_told_how_to_get_them() {
    for (version, how) in [
        (
            "5.6.24",
            "log_slave_updates=ON under [mysqld], then a restart",
        ),
        ("8.0.31", "SET GLOBAL gtid_mode = ON;"),
    ] {
        for mode in ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE"] {
            let mut facts = mysql(version);
            facts.variables.insert("gtid_mode".into(), mode.into());
            assert_eq!(off(&facts), [Subject::Gtids], "{version} {mode}");
            let remedy = finding(&facts, Subject::Gtids).remedy;
            assert!(remedy.contains(how), "{remedy}");
        }
        let mut facts = mysql(version);
        facts.variables.remove("gtid_mode");
        assert_eq!(off(&facts), [Subject::Gtids]);
    }
}

#[test]
fn a_server_that_rewrites_statements_is_not_cached() {
    let mut facts = mysql("8.0.31");
    for (value, expected) in [("OFF", &[][..]), ("ON", &[Subject::Rewriter])] {
        facts
            .variables
            .insert("rewriter_enabled".into(), value.into());
        assert_eq!(off(&facts), expected);
    }
}

#[test]
fn each_fault_of_a_mysql_turns_caching_off_and_says_how_to_fix_it() {
    let mut bad = mysql("5.7.22");
    for (name, value) in [
        ("log_bin", "OFF"),
        ("binlog_format", "STATEMENT"),
        ("gtid_mode", "OFF"),
        ("query_cache_type", "ON"),
        ("rewriter_enabled", "ON"),
        ("lower_case_table_names", "2"),
        (
            "group_replication_group_name",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562",
        ),
    ] {
        bad.variables.insert(name.into(), value.into());
    }
    bad.log_status = Some(LogStatus {
        is_open: true,
        do_db: String::new(),
        ignore_db: "app".into(),
    });
    bad.replication.threads = 1;
    bad.instance.server_id = 2;
    bad.grants.clear();
    let expected: Vec<_> = Subject::ALL
        .into_iter()
        .filter(|subject| {
            // Any order of commits will do, and so will any row image.
            let fine = [Subject::Version, Subject::RowImage, Subject::CommitOrder];
            !fine.contains(subject)
        })
        .collect();
    assert_eq!(off(&bad), expected);
    for finding in check(&bad, 2) {
        assert_eq!(
            finding.severity == Severity::Good,
            finding.remedy.is_empty()
        );
        assert!(!finding.remedy.contains("[mariadbd]"), "{finding}");
    }
}

#[test]
fn a_mysql_account_needs_to_see_processes_only_where_the_set_does_not_tell_everything() {
    for (version, is_needed) in [
        ("5.6.24", true),
        ("5.7.22", true),
        ("8.0.29", true),
        ("8.0.30", false),
    ] {
        let mut facts = mysql(version);
        facts.grants = vec![
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT, TRIGGER, REFERENCES ON *.* TO 'r'@'%'"
                .into(),
        ];
        let expected = if is_needed {
            vec![Subject::Privileges]
        } else {
            Vec::new()
        };
        assert_eq!(off(&facts), expected, "{version}");
        let remedy = finding(&facts, Subject::Privileges).remedy;
        assert_eq!(remedy.contains("PROCESS"), is_needed, "{version}: {remedy}");
    }
}

/// The connection was made before the grant.
#[test]
fn a_privilege_that_the_connection_does_not_have_yet_is_lacking() {
    for (version, is_needed) in [("5.6.24", true), ("5.7.22", true), ("8.0.31", false)] {
        let mut facts = mysql(version);
        facts.sees_processes = false;
        let expected = if is_needed {
            vec![Subject::Privileges]
        } else {
            Vec::new()
        };
        assert_eq!(off(&facts), expected, "{version}");
    }
    let mut facts = facts();
    facts.grants[0] = facts.grants[0].replace("TRIGGER,", "TRIGGER, PROCESS,");
    let said = |facts: &ServerFacts| finding(facts, Subject::Privileges).meaning;
    assert!(said(&facts).contains("Without PROCESS"));
    facts.sees_processes = true;
    assert!(!said(&facts).contains("Without PROCESS"));
}

#[test]
fn a_partial_revoke_hides_tables() {
    let mut facts = mysql("8.0.31");
    let revoke = "REVOKE TRIGGER ON `app`.* FROM `r`@`%`";
    facts.grants.push(revoke.into());
    assert_eq!(off(&facts), [Subject::Privileges]);
    let remedy = finding(&facts, Subject::Privileges).remedy;
    assert_eq!(remedy, "GRANT TRIGGER ON `app`.* TO `r`@`%`;");
}

#[test]
fn a_mysql_5_6_that_is_a_replica_is_not_cached() {
    let mut facts = mysql("5.6.24");
    facts
        .variables
        .insert("log_slave_updates".into(), "ON".into());
    facts.replication.threads = 1;
    assert_eq!(off(&facts), [Subject::Replica]);
    facts.version = "5.7.22".into();
    assert_eq!(off(&facts), []);
}
