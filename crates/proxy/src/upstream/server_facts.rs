//! What the server is and how it is set up, asked once per connection of the follower.

use std::collections::{BTreeMap, BTreeSet};

use remora_sql::RESULT_SETTINGS;

use super::client::{Client, ClientError, text};
use crate::session::settings::SettingsQuery;

/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: the account may not ask this.
const ACCESS_DENIED: u16 = 1227;

/// Which family the server belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MariaDB.
    MariaDb,
    /// MySQL or Percona Server.
    MySql,
}

/// Whose process answers: equal for two connections to the same running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `@@server_id`.
    pub server_id: u32,
    /// `@@hostname`.
    pub hostname: String,
    /// `@@port`.
    pub port: String,
    /// `@@pid_file`.
    pub pid_file: String,
}

/// The log's filters, from `SHOW MASTER STATUS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilters {
    /// `Binlog_Do_DB`.
    pub do_db: String,
    /// `Binlog_Ignore_DB`.
    pub ignore_db: String,
}

/// The facts.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The version text.
    pub version: String,
    /// The family.
    pub family: Family,
    /// Which process answers.
    pub instance: Instance,
    /// Global variables by name (lower case): those that [`super::check`] looks at and that exist.
    pub variables: BTreeMap<String, String>,
    /// The log's filters; `None` if the account may not ask.
    pub filters: Option<LogFilters>,
    /// Replication threads that run on it: it is a replica itself if there are any.
    pub replica_threads: u32,
    /// Its replicas' numbers, if the account may ask (`REPLICATION MASTER ADMIN`, else empty).
    pub replica_ids: BTreeSet<u32>,
    /// The account that asks, as the server knows it: `user@host`.
    pub account: String,
    /// The lines of `SHOW GRANTS`.
    pub grants: Vec<String>,
    /// Those of [`RESULT_SETTINGS`] that it has as session variables.
    pub result_settings: Vec<String>,
}

/// The global variables that matter.
const VARIABLES: &[&str] = &[
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_checksum",
    "binlog_order_commits",
    "query_cache_type",
    "encrypt_binlog",
    "log_slave_updates",
    "log_replica_updates",
    "lower_case_table_names",
    "max_binlog_size",
    "sql_log_bin",
    "wsrep_on",
    "binlog_transaction_compression",
    "skip_log_bin",
];

impl ServerFacts {
    /// Asks the server.
    pub async fn gather(client: &mut Client) -> Result<ServerFacts, ClientError> {
        let instance = Instance::ask(client).await?;
        let version = one(client, "SELECT @@version").await?;
        let family = if version.to_ascii_lowercase().contains("mariadb") {
            Family::MariaDb
        } else {
            Family::MySql
        };
        let grants = column(client, "SHOW GRANTS", 0).await?;
        let threads = column(client, "SHOW GLOBAL STATUS LIKE 'Slaves_running'", 1).await?;
        Ok(ServerFacts {
            version,
            family,
            instance,
            variables: variables(client).await?,
            filters: filters(client).await?,
            replica_threads: threads.first().and_then(|n| n.parse().ok()).unwrap_or(0),
            replica_ids: replica_ids(client).await?,
            account: one(client, "SELECT CURRENT_USER()").await?,
            grants,
            result_settings: result_settings(client).await?,
        })
    }

    /// A variable's value, if the server has it.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether a variable exists and is `ON`, `1` or `YES`.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.variable(name).unwrap_or_default();
        ["ON", "1", "YES"]
            .iter()
            .any(|on| value.eq_ignore_ascii_case(on))
    }

    /// `lower_case_table_names`, if it is known.
    pub fn lower_case_table_names(&self) -> Option<u8> {
        self.variable("lower_case_table_names")?.parse().ok()
    }

    /// The question for a session's settings on this server.
    pub fn settings_query(&self) -> SettingsQuery {
        SettingsQuery::new(self.result_settings.iter().cloned())
    }
}

impl Instance {
    /// Asks who answers on this connection.
    pub async fn ask(client: &mut Client) -> Result<Instance, ClientError> {
        let sql = "SELECT @@server_id, @@hostname, @@port, @@pid_file";
        let rows = client.query(sql, 1).await?;
        let row = rows.first().ok_or(ClientError::Answer("no row"))?;
        let field = |at| text(row, at).unwrap_or_default().to_owned();
        let server_id = field(0)
            .parse()
            .map_err(|_| ClientError::Answer("@@server_id"))?;
        Ok(Instance {
            server_id,
            hostname: field(1),
            port: field(2),
            pid_file: field(3),
        })
    }
}

async fn one(client: &mut Client, sql: &str) -> Result<String, ClientError> {
    let mut column = column(client, sql, 0).await?;
    column.pop().ok_or(ClientError::Answer("no row"))
}

async fn column(client: &mut Client, sql: &str, at: usize) -> Result<Vec<String>, ClientError> {
    let rows = client.query(sql, 10_000).await?;
    Ok(rows
        .iter()
        .map(|row| text(row, at).unwrap_or_default().to_owned())
        .collect())
}

async fn variables(client: &mut Client) -> Result<BTreeMap<String, String>, ClientError> {
    let names = VARIABLES
        .iter()
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ");
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
    let rows = client.query(&sql, 1_000).await?;
    let pair = |row| Some((text(row, 0)?.to_ascii_lowercase(), text(row, 1)?.to_owned()));
    Ok(rows.iter().filter_map(pair).collect())
}

async fn result_settings(client: &mut Client) -> Result<Vec<String>, ClientError> {
    let rows = client.query("SHOW SESSION VARIABLES", 10_000).await?;
    let have: BTreeSet<String> = rows
        .iter()
        .filter_map(|row| text(row, 0))
        .map(str::to_ascii_lowercase)
        .collect();
    let settings = RESULT_SETTINGS.iter().map(|setting| setting.name);
    Ok(settings
        .filter(|name| have.contains(*name))
        .map(str::to_owned)
        .collect())
}

/// An answer, or `None` if the account may not ask.
fn allowed<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.server_code() == Some(ACCESS_DENIED) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn filters(client: &mut Client) -> Result<Option<LogFilters>, ClientError> {
    // MySQL 8.4 renamed it.
    let rows = match client.query("SHOW MASTER STATUS", 10).await {
        Err(ClientError::Server(error)) if error.code != ACCESS_DENIED => {
            client.query("SHOW BINARY LOG STATUS", 10).await
        }
        other => other,
    };
    let Some(rows) = allowed(rows)? else {
        return Ok(None);
    };
    let filters = rows.first().map(|row| LogFilters {
        do_db: text(row, 2).unwrap_or_default().to_owned(),
        ignore_db: text(row, 3).unwrap_or_default().to_owned(),
    });
    Ok(Some(filters.unwrap_or_default()))
}

async fn replica_ids(client: &mut Client) -> Result<BTreeSet<u32>, ClientError> {
    let rows = match client.query("SHOW SLAVE HOSTS", 10_000).await {
        // Not allowed, or (MySQL 8.4) no longer known: nothing depends on it.
        Err(ClientError::Server(_)) => return Ok(BTreeSet::new()),
        other => other?,
    };
    Ok(rows
        .iter()
        .filter_map(|row| text(row, 0)?.parse().ok())
        .collect())
}
