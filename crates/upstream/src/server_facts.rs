//! What the server is and how it is set up: asked whole when a session begins, and what can change
//! while the server runs again and again (`recheck`).

use std::collections::{BTreeMap, BTreeSet};

use remora_engine::facts::Instance;
use remora_engine::settings::{ServerFeatures, SettingsQuery};
use remora_sql::{CONTACT_SETTINGS, Natives, RESULT_SETTINGS};

use super::client::{Client, ClientError, text};

/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: the account may not ask this.
const ACCESS_DENIED: u16 = 1227;
/// A question that servers answer only on a connection with `PROCESS`. It has one row, so that they
/// can't leave it at looking at the question.
const NEEDS_PROCESS: &str = "SELECT COUNT(*) FROM information_schema.INNODB_CMP";

/// Which family the server belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MariaDB.
    MariaDb,
    /// MySQL or Percona Server.
    MySql,
}

impl Family {
    /// That of a version text.
    pub fn of(version: &str) -> Family {
        if version.to_ascii_lowercase().contains("mariadb") {
            Family::MariaDb
        } else {
            Family::MySql
        }
    }
}

/// A version's leading numbers: `(8, 0, 31)` of `8.0.31-debug`.
pub type Release = (u32, u32, u32);

/// MySQL 8.0.30 commits each XA transaction in the engines before it shows its GTID; older ones do
/// it afterwards in one phase, and if another connection prepared.
const XA_COMMITTED_IN_ORDER_SINCE: Release = (8, 0, 30);
/// MySQL 5.7 shows a transaction's GTID after its commit in the engines; 5.6 before.
const GTIDS_AFTER_COMMIT_SINCE: Release = (5, 7, 0);
/// MySQL 8.0 has its definitions in tables of its own.
const DEFINITIONS_IN_TABLES_SINCE: Release = (8, 0, 0);
/// MySQL 8.2 has `SHOW BINARY LOG STATUS`; 8.4 has it only.
const LOG_STATUS_SINCE: Release = (8, 2, 0);
/// MySQL 8.0.22 has `SHOW REPLICA STATUS` and `SHOW REPLICAS`; 8.4 has them only.
const REPLICA_WORDS_SINCE: Release = (8, 0, 22);
/// Since when MariaDB's `information_schema` has `GENERATION_EXPRESSION`. MySQL's has had it since
/// there are generated columns.
const GENERATION_EXPRESSIONS_SINCE: Release = (10, 2, 5);

/// What the server says of its log, from `SHOW MASTER STATUS`: whether it is open, and its filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// Whether there is one. A server that couldn't open its next file goes on without, and
    /// `log_bin` stays on.
    pub is_open: bool,
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
    /// What the server says of its log; `None` if the account may not ask.
    pub log_status: Option<LogStatus>,
    /// What it replicates itself.
    pub replication: Replication,
    /// Its replicas' numbers, if the account may ask (`REPLICATION MASTER ADMIN`, else empty).
    pub replica_ids: BTreeSet<u32>,
    /// The account that asks, as the server knows it: `user@host`.
    pub account: String,
    /// From which host it asks, as the server sees it.
    pub seen_from: String,
    /// The lines of `SHOW GRANTS`: what is granted now.
    pub grants: Vec<String>,
    /// Whether the connection that asked first sees what all others are doing.
    pub sees_processes: bool,
    /// Those of [`RESULT_SETTINGS`] that it has as session variables.
    pub result_settings: Vec<String>,
    /// Those of [`CONTACT_SETTINGS`].
    pub contact_settings: Vec<String>,
}

/// The global variables that matter.
const VARIABLES: &[&str] = &[
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_checksum",
    "binlog_optimize_thread_scheduling",
    "binlog_order_commits",
    "query_cache_type",
    "encrypt_binlog",
    "log_slave_updates",
    "log_replica_updates",
    "lower_case_table_names",
    "max_binlog_size",
    "sql_log_bin",
    "slave_run_triggers_for_rbr",
    "wsrep_on",
    WSREP_PROVIDER,
    "binlog_transaction_compression",
    "skip_log_bin",
    "gtid_mode",
    "gtid_slave_pos",
    "enforce_gtid_consistency",
    "group_replication_group_name",
    "init_connect",
    "daemon_memcached_r_batch_size",
    "rewriter_enabled",
    "mandatory_roles",
    "partial_revokes",
    "activate_all_roles_on_login",
];
/// The library that makes a server a node of a Galera cluster, or `none`. It need not be in use.
const WSREP_PROVIDER: &str = "wsrep_provider";
/// A status, kept among the variables: the name of that library if it is in use.
pub const WSREP_PROVIDER_NAME: &str = "wsrep_provider_name";
/// Those of them by which the server judges what accounts may do. No log tells of their change.
const PRIVILEGE_VARIABLES: [&str; 3] = [
    "mandatory_roles",
    "partial_revokes",
    "activate_all_roles_on_login",
];

impl ServerFacts {
    /// Asks the server.
    pub async fn gather(client: &mut Client) -> Result<ServerFacts, ClientError> {
        let instance = ask_instance(client).await?;
        let version = one(client, "SELECT @@version").await?;
        let family = Family::of(&version);
        let release = release(&version);
        let grants = column(client, "SHOW GRANTS", 0).await?;
        let has = session_variables(client).await?;
        Ok(ServerFacts {
            version,
            family,
            instance,
            variables: variables(client).await?,
            log_status: log_status(client, log_status_question(family, release)).await?,
            replication: Replication::ask(client, family, release).await?,
            replica_ids: replica_ids(client, family, release).await?,
            account: one(client, "SELECT CURRENT_USER()").await?,
            seen_from: host_of(&one(client, "SELECT USER()").await?),
            grants,
            sees_processes: sees_processes(client).await?,
            result_settings: known(&has, RESULT_SETTINGS.iter().map(|setting| setting.name)),
            contact_settings: known(&has, CONTACT_SETTINGS.iter().copied()),
        })
    }

    /// Asks again for what can change while the server runs. Its version, and how it folds names,
    /// can't. What no finding depends on isn't asked, either.
    pub async fn ask_again(&self, client: &mut Client) -> Result<ServerFacts, ClientError> {
        let replication = if self.logs_replicated() && self.visibility() != Visibility::NeverTold {
            self.replication
        } else {
            Replication::ask(client, self.family, self.release()).await?
        };
        Ok(ServerFacts {
            variables: variables(client).await?,
            log_status: log_status(client, self.log_status_question()).await?,
            grants: column(client, "SHOW GRANTS", 0).await?,
            replication,
            ..self.clone()
        })
    }

    /// Whether what it replicates from another server is in its log. It can't change while the
    /// server runs.
    pub fn logs_replicated(&self) -> bool {
        self.is_on("log_slave_updates") || self.is_on("log_replica_updates")
    }

    /// What tells on MariaDB that it has replicated past its log: its position, and how often it
    /// was told to begin or stop, for transactions from MySQL leave the position as it is. If this
    /// changes, rows may have changed. On MySQL the set of transactions tells.
    pub fn replication_trace(&self) -> String {
        if self.logs_replicated() {
            return String::new();
        }
        let position = self.variable("gtid_slave_pos").unwrap_or_default();
        format!("{position} {}", self.replication.commands)
    }

    /// The settings by which the server judges what accounts may do: equal if they are.
    pub fn privilege_settings(&self) -> String {
        let values = PRIVILEGE_VARIABLES.map(|name| self.variable(name).unwrap_or_default());
        values.join("\n")
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

    /// Whether `information_schema` tells the expressions of generated columns, if there are any.
    pub fn tells_generation_expressions(&self) -> bool {
        self.family == Family::MySql || self.release() >= GENERATION_EXPRESSIONS_SINCE
    }

    /// The version's leading numbers.
    pub fn release(&self) -> Release {
        release(&self.version)
    }

    /// Whether one of those may say what the session's first transaction is like.
    pub fn logins_set_next_transaction(&self) -> bool {
        use remora_sql::SessionEffect as Effect;
        let text = self.variable("init_connect").unwrap_or_default();
        let ambiguity = remora_sql::Ambiguity {
            modes: true,
            ..remora_sql::Ambiguity::default()
        };
        let statement = ambiguity.analyse(text.as_bytes(), remora_sql::Dialect::default());
        let is_understood = matches!(
            statement.session,
            Effect::None
                | Effect::SettingsChanged
                | Effect::TransactionDefaults(_)
                | Effect::Role
                | Effect::DefaultSchema
        );
        // Functions that it calls may do so on the other servers.
        let must_say_so = self.family == Family::MySql && self.release() >= (5, 7, 0);
        let text = text.to_ascii_lowercase();
        let words = ["transaction", "tx_", "execute", "call"];
        !is_understood && (!must_say_so || words.iter().any(|word| text.contains(word)))
    }

    /// Whether each login runs statements of the server's (`init_connect`).
    pub fn logins_run_code(&self) -> bool {
        !self.variable("init_connect").unwrap_or_default().is_empty()
    }

    /// Whether accounts can have roles.
    pub fn has_roles(&self) -> bool {
        self.family == Family::MariaDb || self.release() >= (8, 0, 0)
    }

    /// Which functions are its own.
    pub fn natives(&self) -> Natives {
        natives(self.family, self.release())
    }

    /// Whether it opens every table to list all foreign keys in `information_schema`.
    pub fn lists_foreign_keys_slowly(&self) -> bool {
        self.family == Family::MariaDb || self.release() < DEFINITIONS_IN_TABLES_SINCE
    }

    /// When the server says that a commit is visible.
    pub fn visibility(&self) -> Visibility {
        match self.family {
            Family::MariaDb => Visibility::Position,
            Family::MySql if self.release() < GTIDS_AFTER_COMMIT_SINCE => Visibility::NeverTold,
            Family::MySql => Visibility::Gtids {
                xa_in_order: self.release() >= XA_COMMITTED_IN_ORDER_SINCE,
            },
        }
    }

    /// The statement that says where the log ends.
    pub fn log_status_question(&self) -> &'static str {
        log_status_question(self.family, self.release())
    }

    /// The question for a session's settings on this server.
    pub fn settings_query(&self) -> SettingsQuery {
        let features = ServerFeatures {
            has_roles: self.has_roles(),
            has_uuid: !self.instance.uuid.is_empty(),
        };
        let settings = self.result_settings.iter().cloned();
        SettingsQuery::new(features, settings, &self.contact_settings)
    }
}

/// The host of `user@host`.
fn host_of(user: &str) -> String {
    user.rsplit_once('@')
        .map_or(user, |(_, host)| host)
        .to_owned()
}

/// When a server says that a commit can be seen by reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// MariaDB: by the position of the last commit that can be seen.
    Position,
    /// MySQL: by a set of GTIDs that a commit enters when it can be seen.
    Gtids {
        /// So do those that `XA COMMIT` makes in one phase, or on another connection than the one
        /// that prepared.
        xa_in_order: bool,
    },
    /// MySQL 5.6: its set of GTIDs has commits that can't be seen yet.
    NeverTold,
}

impl Visibility {
    /// Whether it takes a look at what other connections are doing to know of some commits.
    pub fn needs_process_list(self) -> bool {
        match self {
            Visibility::Position => false,
            Visibility::Gtids { xa_in_order } => !xa_in_order,
            Visibility::NeverTold => true,
        }
    }
}

/// Which functions are the own ones of a server of this release.
pub fn natives(family: Family, release: Release) -> Natives {
    match family {
        Family::MariaDb if release >= (10, 11, 0) => Natives::MariaDb1011,
        Family::MariaDb if release >= (10, 5, 0) => Natives::MariaDb105,
        Family::MySql if release >= (8, 0, 31) => Natives::MySql80,
        Family::MySql if release >= (5, 7, 22) => Natives::MySql57,
        _ => Natives::Oldest,
    }
}

/// The leading numbers of a version text.
pub fn release(version: &str) -> Release {
    // Some MariaDB servers put "5.5.5-" in front for old clients.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers = version
        .split(|character: char| !character.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

fn log_status_question(family: Family, release: Release) -> &'static str {
    if family == Family::MySql && release >= LOG_STATUS_SINCE {
        "SHOW BINARY LOG STATUS"
    } else {
        "SHOW MASTER STATUS"
    }
}

/// Asks who answers on this connection.
pub async fn ask_instance(client: &mut Client) -> Result<Instance, ClientError> {
    let sql = "SELECT @@server_id, @@hostname, @@port, @@pid_file";
    let rows = client.query(sql, 1).await?;
    let row = rows.first().ok_or(ClientError::Answer("no row"))?;
    let field = |at| text(row, at).unwrap_or_default().to_owned();
    let server_id = field(0)
        .parse()
        .map_err(|_| ClientError::Answer("@@server_id"))?;
    let sql = "SHOW GLOBAL VARIABLES LIKE 'server_uuid'";
    let uuid = column(client, sql, 1).await?.pop().unwrap_or_default();
    Ok(Instance {
        server_id,
        hostname: field(1),
        port: field(2),
        pid_file: field(3),
        uuid,
    })
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
    let mut all: BTreeMap<String, String> = rows.iter().filter_map(pair).collect();
    let has_provider = all
        .get(WSREP_PROVIDER)
        .is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("none"));
    if has_provider {
        let sql = format!("SHOW GLOBAL STATUS LIKE '{WSREP_PROVIDER_NAME}'");
        let name = column(client, &sql, 1).await?.pop().unwrap_or_default();
        all.insert(WSREP_PROVIDER_NAME.to_owned(), name);
    }
    Ok(all)
}

async fn session_variables(client: &mut Client) -> Result<BTreeSet<String>, ClientError> {
    let rows = client.query("SHOW SESSION VARIABLES", 10_000).await?;
    let names = rows.iter().filter_map(|row| text(row, 0));
    Ok(names.map(str::to_ascii_lowercase).collect())
}

/// Those of the names that are there.
fn known<'n>(have: &BTreeSet<String>, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    names
        .filter(|name| have.contains(*name))
        .map(str::to_owned)
        .collect()
}

/// An answer, or `None` if the account may not ask.
fn allowed<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.server_code() == Some(ACCESS_DENIED) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this connection sees what all others are doing.
///
/// A connection has the global privileges that its account had when it was made. `SHOW GRANTS`
/// tells what the account has now. After a `GRANT PROCESS` it lists the privilege on older
/// connections too, which still see only their own account's. So the server is asked for what it
/// shows to nobody without the privilege. In doubt the answer is no.
pub(super) async fn sees_processes(client: &mut Client) -> Result<bool, ClientError> {
    match client.query(NEEDS_PROCESS, 1).await {
        Ok(rows) => Ok(rows.len() == 1),
        // Not allowed, or there is no InnoDB.
        Err(ClientError::Server(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn log_status(client: &mut Client, question: &str) -> Result<Option<LogStatus>, ClientError> {
    let Some(rows) = allowed(client.query(question, 10).await)? else {
        return Ok(None);
    };
    let status = rows.first().map(|row| LogStatus {
        is_open: true,
        do_db: text(row, 2).unwrap_or_default().to_owned(),
        ignore_db: text(row, 3).unwrap_or_default().to_owned(),
    });
    Ok(Some(status.unwrap_or_default()))
}

/// What a server says of what it replicates itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replication {
    /// Threads that run (MariaDB) or channels that are set up (MySQL): it is a replica itself if
    /// there are any.
    pub threads: u32,
    /// How often it has been told to begin or to stop, since the server started (MariaDB).
    pub commands: u64,
}

impl Replication {
    async fn ask(
        client: &mut Client,
        family: Family,
        release: Release,
    ) -> Result<Replication, ClientError> {
        if family == Family::MariaDb {
            return Replication::ask_mariadb(client).await;
        }
        let question = if release >= REPLICA_WORDS_SINCE {
            "SHOW REPLICA STATUS"
        } else {
            "SHOW SLAVE STATUS"
        };
        // It takes the same privilege as the log's filters, whose lack is a finding.
        let channels = allowed(client.query(question, 10_000).await)?.unwrap_or_default();
        Ok(Replication {
            threads: u32::try_from(channels.len()).unwrap_or(u32::MAX),
            commands: 0,
        })
    }

    async fn ask_mariadb(client: &mut Client) -> Result<Replication, ClientError> {
        const QUESTION: &str = "SHOW GLOBAL STATUS LIKE '%slave%'";
        /// Both ends: it may be told to stop before its threads have shown.
        const COMMANDS: [&str; 4] = [
            "Com_start_slave",
            "Com_start_all_slaves",
            "Com_stop_slave",
            "Com_stop_all_slaves",
        ];
        let rows = client.query(QUESTION, 100).await?;
        let value_of = |name: &str| {
            let named = rows.iter().find(|row| text(row, 0) == Some(name))?;
            text(named, 1)?.parse::<u64>().ok()
        };
        let threads = value_of("Slaves_running").and_then(|count| u32::try_from(count).ok());
        Ok(Replication {
            // One that doesn't say may be replicating.
            threads: threads.unwrap_or(u32::MAX),
            commands: COMMANDS.into_iter().filter_map(value_of).sum(),
        })
    }
}

async fn replica_ids(
    client: &mut Client,
    family: Family,
    release: Release,
) -> Result<BTreeSet<u32>, ClientError> {
    let question = if family == Family::MySql && release >= REPLICA_WORDS_SINCE {
        "SHOW REPLICAS"
    } else {
        "SHOW SLAVE HOSTS"
    };
    let rows = match client.query_lacking(question, 10_000, 1).await {
        // Not allowed: nothing depends on it.
        Err(ClientError::Server(_)) => return Ok(BTreeSet::new()),
        other => other?,
    };
    Ok(rows
        .iter()
        .filter_map(|row| text(row, 0)?.parse().ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_versions_numbers_are_read_whatever_follows_them() {
        for (text, numbers) in [
            ("8.0.31", (8, 0, 31)),
            ("5.7.22-log", (5, 7, 22)),
            ("5.6.24-log", (5, 6, 24)),
            ("8.4.3-3.1-percona", (8, 4, 3)),
            ("5.5.5-10.11.19-MariaDB-log", (10, 11, 19)),
            ("9", (9, 0, 0)),
            ("", (0, 0, 0)),
        ] {
            assert_eq!(release(text), numbers, "{text}");
        }
    }
}
