//! Servers that tests use one after the other.
//!
//! Starting a server takes a second or two, cleaning one some tens of milliseconds. A test has its
//! server to itself for as long as it holds it: nobody else changes definitions, accounts or
//! settings there. When it gives the server back, connections, schemas and accounts that were not
//! there at the start go, and global variables get their values back; if anything differs from the
//! start then, the server goes, too, and the next test gets a new one.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::{SCHEMA, Server};
use crate::client::Client;
use crate::process::wait_for;

/// Longest wait for connections to end, or for a lock that somebody left behind.
const PATIENCE: Duration = Duration::from_secs(10);
/// A log that has grown longer is closed: a new follower reads the current file from its beginning.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// Servers that wait for their next test.
const IDLE_MAX: usize = 16;

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'";
/// What must be as it was at the start. Where logs and positions are is left out, they only grow.
const STATE: [&str; 7] = [
    VARIABLES,
    "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS ORDER BY 1",
    "SELECT * FROM mysql.user ORDER BY User, Host",
    "SELECT * FROM mysql.db ORDER BY Db, User, Host",
    "SELECT User, Host, Db, Table_name, Table_priv, Column_priv FROM mysql.tables_priv ORDER BY 1, 2, 3, 4",
    "SELECT User, Host, Db, Routine_name, Proc_priv FROM mysql.procs_priv ORDER BY 1, 2, 3, 4",
    "SELECT * FROM mysql.func ORDER BY 1",
];
const CONNECTIONS: &str = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() \
    AND USER NOT IN ('system user', 'event_scheduler')";
const SCHEMAS: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE LOWER(SCHEMA_NAME) \
    NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')";
const ACCOUNTS: &str = "SELECT CONCAT(QUOTE(User), '@', QUOTE(Host)) FROM mysql.user ORDER BY 1";

/// Servers of one kind that are given out one by one.
#[derive(Debug)]
pub struct Pool {
    start: fn() -> anyhow::Result<Server>,
    idle: Mutex<VecDeque<Clean>>,
}

/// A server as it was at its start, and what that was.
#[derive(Debug)]
struct Clean {
    server: Server,
    accounts: Vec<String>,
    variables: Vec<(String, String)>,
    state: Vec<Vec<u8>>,
}

impl Pool {
    /// One whose servers this starts, when all others are in use.
    pub const fn new(start: fn() -> anyhow::Result<Server>) -> Pool {
        Pool {
            start,
            idle: Mutex::new(VecDeque::new()),
        }
    }

    /// A clean server that nobody else has.
    ///
    /// # Errors
    /// None was free, and another one did not start.
    pub fn lease(&'static self) -> anyhow::Result<Leased> {
        let idle = self.idle().pop_front();
        let server = match idle {
            Some(server) => server,
            None => Clean::new((self.start)()?)?,
        };
        Ok(Leased {
            server: Some(server),
            pool: self,
        })
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Clean>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server of a [`Pool`]. When dropped, it goes back.
#[derive(Debug)]
pub struct Leased {
    // Always there until the drop.
    server: Option<Clean>,
    pool: &'static Pool,
}

impl Deref for Leased {
    type Target = Server;

    fn deref(&self) -> &Server {
        match &self.server {
            Some(clean) => &clean.server,
            None => unreachable!("it is given back when it is dropped"),
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let Some(mut used) = self.server.take() else {
            return;
        };
        // Who failed may have left anything behind, and the reason may be of interest.
        if std::thread::panicking() {
            return;
        }
        match used.clean() {
            Ok(()) => {
                let mut idle = self.pool.idle();
                if idle.len() < IDLE_MAX {
                    idle.push_back(used);
                }
            }
            Err(reason) => println!("a server is not used again: {reason:#}"),
        }
    }
}

impl Clean {
    fn new(server: Server) -> anyhow::Result<Clean> {
        let mut root = server.root()?;
        let accounts = column(&mut root, ACCOUNTS)?;
        let variables = variables(&mut root)?;
        let state = state(&mut root)?;
        Ok(Clean {
            server,
            accounts,
            variables,
            state,
        })
    }

    /// Makes it as it was.
    ///
    /// # Errors
    /// That can't be done, with the reason.
    fn clean(&mut self) -> anyhow::Result<()> {
        if let Some(how) = self.server.ended_by_itself()? {
            anyhow::bail!("{how}");
        }
        let mut root = self.server.root()?;
        end_connections(&mut root)?;
        let patience = PATIENCE.as_secs();
        root.query(&format!("SET lock_wait_timeout = {patience}"))?;
        for schema in column(&mut root, SCHEMAS)? {
            let schema = schema.replace('`', "``");
            root.query(&format!("DROP DATABASE `{schema}`"))?;
        }
        root.query(&format!("CREATE DATABASE {SCHEMA}"))?;
        for account in column(&mut root, ACCOUNTS)? {
            if !self.accounts.contains(&account) {
                root.query(&format!("DROP USER {account}"))?;
            }
        }
        self.restore_variables(&mut root)?;
        for ((question, now), then) in STATE.iter().zip(state(&mut root)?).zip(&self.state) {
            ensure!(
                now == *then,
                "it answers `{question}` otherwise than before"
            );
        }
        if log_bytes(&mut root)? > LOG_BYTES_MAX {
            root.query("FLUSH BINARY LOGS")?;
            if !self.server.kind().is_mysql() {
                wait_for_checkpoint(&mut root)?;
            }
        }
        Ok(())
    }

    /// Gives global variables the values back that they had. Whether that worked, the state shows.
    fn restore_variables(&self, root: &mut Client) -> anyhow::Result<()> {
        let now = variables(root)?;
        for (name, then) in self.variables.iter().filter(|then| !now.contains(then)) {
            // The server takes numbers as numbers only, and everything else as text.
            let value = match then.parse::<f64>() {
                Ok(_) => then.clone(),
                Err(_) => format!("'{}'", then.replace('\\', "\\\\").replace('\'', "''")),
            };
            let _ = root.query(&format!("SET GLOBAL {name} = {value}"));
        }
        Ok(())
    }
}

/// Ends everybody else's connections, and waits until they are gone.
fn end_connections(root: &mut Client) -> anyhow::Result<()> {
    wait_for("connections to end", PATIENCE, || {
        let connections = column(root, CONNECTIONS)?;
        for id in &connections {
            // It may have ended by itself.
            let _ = root.query(&format!("KILL {id}"));
        }
        Ok(connections.is_empty().then_some(()))
    })
}

/// Waits until MariaDB has logged that everything in older log files can be seen. That can take a
/// second. Until more commits follow, a follower can't tell whether those before the checkpoint can
/// be seen.
fn wait_for_checkpoint(root: &mut Client) -> anyhow::Result<()> {
    let status = root.query("SHOW MASTER STATUS")?.rows()?;
    let file = status
        .first()
        .and_then(|row| row.first().cloned().flatten());
    let file = file.context("the binary log is off")?;
    let name = String::from_utf8(file.clone())?;
    wait_for("the log's checkpoint", PATIENCE, || {
        let events = root
            .query(&format!("SHOW BINLOG EVENTS IN '{name}'"))?
            .rows()?;
        let is_checkpoint = |row: &Vec<Option<Vec<u8>>>| {
            let field = |at: usize| row.get(at).and_then(|field| field.as_deref());
            field(2) == Some(&b"Binlog_checkpoint"[..]) && field(5) == Some(&file[..])
        };
        Ok(events.iter().any(is_checkpoint).then_some(()))
    })
}

fn state(root: &mut Client) -> anyhow::Result<Vec<Vec<u8>>> {
    let answers = STATE.iter().map(|question| {
        let answer = root.query_bytes(question);
        Ok(answer.context(*question)?.to_vec())
    });
    answers.collect()
}

/// Global variables and their values.
fn variables(root: &mut Client) -> anyhow::Result<Vec<(String, String)>> {
    let rows = root.query(VARIABLES)?.rows()?;
    let pair = |row: Vec<Option<Vec<u8>>>| {
        let mut texts = row
            .into_iter()
            .map(|text| String::from_utf8_lossy(&text.unwrap_or_default()).into_owned());
        Some((texts.next()?, texts.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// The first column of a question's answer.
fn column(root: &mut Client, question: &str) -> anyhow::Result<Vec<String>> {
    let rows = root
        .query(question)
        .context("the server can't be cleaned")?
        .rows()?;
    let first = |row: Vec<Option<Vec<u8>>>| {
        let value = row.into_iter().next().flatten();
        String::from_utf8(value.unwrap_or_default()).context("a name that is no UTF-8")
    };
    rows.into_iter().map(first).collect()
}

/// The length of the current file of the binary log.
fn log_bytes(root: &mut Client) -> anyhow::Result<u64> {
    let rows = root.query("SHOW MASTER STATUS")?.rows()?;
    let position = rows.first().and_then(|row| row.get(1).cloned().flatten());
    let position = String::from_utf8(position.context("the binary log is off")?)?;
    Ok(position.parse()?)
}
