//! The accounts that every server begins with.

use super::{APP_PASSWORD, APP_USER, FOLLOW_PASSWORD, FOLLOW_USER, Kind, SCHEMA};

/// The statements that make them and the schema. They are not logged, and can be run again.
pub(super) fn statements(kind: Kind) -> Vec<String> {
    let mut statements = vec!["SET sql_log_bin=0".to_owned()];
    if kind == Kind::MySql56 {
        // Its data directory comes with accounts without a name, who are taken before others.
        statements.push("DELETE FROM mysql.user WHERE User = ''".to_owned());
        statements.push("FLUSH PRIVILEGES".to_owned());
    }
    statements.push(account(kind, APP_USER, APP_PASSWORD));
    statements.push(format!(
        "GRANT ALL ON *.* TO {APP_USER}@'%' WITH GRANT OPTION"
    ));
    statements.push(account(kind, FOLLOW_USER, FOLLOW_PASSWORD));
    statements.push(format!(
        "GRANT {} ON *.* TO {FOLLOW_USER}@'%'",
        follow_privileges(kind)
    ));
    statements.push(format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"));
    statements
}

/// Makes an account unless it is there.
fn account(kind: Kind, user: &str, password: &str) -> String {
    if kind == Kind::MySql56 {
        // It has no IF NOT EXISTS here, and makes accounts when granting.
        return format!("GRANT USAGE ON *.* TO {user}@'%' IDENTIFIED BY '{password}'");
    }
    let identified = kind.identified_by(password);
    format!("CREATE USER IF NOT EXISTS {user}@'%' {identified}")
}

/// What Remora's own account needs, and what shows it the texts of views. On one MariaDB also what
/// shows it InnoDB's list of foreign keys; the other is asked for them in the way that opens every
/// table.
const fn follow_privileges(kind: Kind) -> &'static str {
    match kind {
        Kind::MariaDb1011 => {
            "REPLICATION SLAVE, BINLOG MONITOR, TRIGGER, REFERENCES, PROCESS, SHOW VIEW, SELECT"
        }
        Kind::MariaDb114 => {
            "REPLICATION SLAVE, BINLOG MONITOR, TRIGGER, REFERENCES, SHOW VIEW, SELECT"
        }
        Kind::MySql80 => {
            "REPLICATION SLAVE, REPLICATION CLIENT, TRIGGER, REFERENCES, SHOW VIEW, SELECT"
        }
        Kind::MySql57 | Kind::MySql56 => {
            "REPLICATION SLAVE, REPLICATION CLIENT, TRIGGER, REFERENCES, PROCESS, SHOW VIEW, SELECT"
        }
    }
}
