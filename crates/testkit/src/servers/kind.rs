//! The servers that there are, and what is particular to each.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::programs;

/// The environment variable that chooses the kind of servers whose options don't.
pub const KIND_VARIABLE: &str = "REMORA_TEST_SERVER";

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Debian's own MariaDB: 10.11 on Debian 12.
    MariaDb1011,
    /// MariaDB 11.4.
    MariaDb114,
    /// MySQL 8.0.
    MySql80,
    /// MySQL 5.7.
    MySql57,
    /// MySQL 5.6.
    MySql56,
}

impl Kind {
    /// All of them; the first is the one that is taken where nobody chooses.
    pub const ALL: [Kind; 5] = [
        Kind::MariaDb1011,
        Kind::MariaDb114,
        Kind::MySql80,
        Kind::MySql57,
        Kind::MySql56,
    ];

    /// Its name, as [`KIND_VARIABLE`] and `scripts/servers` know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::MariaDb1011 => "mariadb-10.11",
            Kind::MariaDb114 => "mariadb-11.4",
            Kind::MySql80 => "mysql-8.0",
            Kind::MySql57 => "mysql-5.7",
            Kind::MySql56 => "mysql-5.6",
        }
    }

    /// The kind that the environment chooses by [`KIND_VARIABLE`].
    ///
    /// # Errors
    /// There is no such kind.
    pub fn from_environment() -> anyhow::Result<Kind> {
        let Some(name) = std::env::var_os(KIND_VARIABLE).filter(|name| !name.is_empty()) else {
            return Ok(Kind::ALL[0]);
        };
        let known = Kind::ALL.iter().find(|kind| name == kind.as_str());
        if let Some(kind) = known {
            return Ok(*kind);
        }
        let names = Kind::ALL.map(Kind::as_str).join(", ");
        bail!("{KIND_VARIABLE} is {}; there are {names}", name.display())
    }

    /// Whether it is a MySQL, not a MariaDB.
    pub const fn is_mysql(self) -> bool {
        matches!(self, Kind::MySql80 | Kind::MySql57 | Kind::MySql56)
    }

    /// Whether it has a query cache of its own.
    pub const fn has_query_cache(self) -> bool {
        !matches!(self, Kind::MySql80)
    }

    /// Whether it tracks changes of a session's state, and lets clients do without EOF packets
    /// (`DEPRECATE_EOF`).
    pub const fn tracks_sessions(self) -> bool {
        !matches!(self, Kind::MySql56)
    }

    /// Whether it has common table expressions and window functions.
    pub const fn has_common_table_expressions(self) -> bool {
        !matches!(self, Kind::MySql57 | Kind::MySql56)
    }

    /// Says on standard error, past the capture of a test's output, that a test is left out because
    /// of what this kind is or lacks; gives whether that is so.
    pub fn skips(self, is_so: bool, because: &str) -> bool {
        if is_so {
            let test = std::thread::current();
            let name = test.name().unwrap_or("a test");
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(
                std::io::stderr(),
                "skipped on {}: {name}: {because}",
                self.as_str()
            );
        }
        is_so
    }

    /// How an account gets a password, with a plugin that every client speaks: what comes after the
    /// account's name in `CREATE USER`.
    pub fn identified_by(self, password: &str) -> String {
        match self {
            Kind::MySql80 => format!("IDENTIFIED WITH mysql_native_password BY '{password}'"),
            _ => format!("IDENTIFIED BY '{password}'"),
        }
    }

    /// The directory that holds it, with `bin` and `share`; `None`: the system's own, installed by
    /// Debian.
    pub fn base(self) -> Option<PathBuf> {
        match self {
            Kind::MariaDb1011 => None,
            _ => Some(
                programs::cache_directory()
                    .join("servers")
                    .join(self.as_str()),
            ),
        }
    }

    /// The kind with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> anyhow::Result<Kind> {
        let known = Kind::ALL.into_iter().find(|kind| name == kind.as_str());
        known.with_context(|| {
            let names = Kind::ALL.map(Kind::as_str).join(", ");
            format!("no server is called {name}; there are {names}")
        })
    }

    /// Its program.
    ///
    /// # Errors
    /// It isn't there; the message says how to get it.
    pub fn program(self) -> anyhow::Result<PathBuf> {
        let name = if self.is_mysql() {
            "mysqld"
        } else {
            "mariadbd"
        };
        let Some(base) = self.base() else {
            return programs::find(name);
        };
        let path = base.join("bin").join(name);
        if !path.is_file() {
            bail!(
                "{} is missing; `scripts/servers {}` fetches it",
                path.display(),
                self.as_str()
            );
        }
        Ok(path)
    }

    /// The arguments by which its program finds its own parts.
    pub(super) fn base_arguments(self) -> Vec<String> {
        match self.base() {
            None => Vec::new(),
            Some(base) => vec![
                format!("--basedir={}", base.display()),
                format!("--lc-messages-dir={}", base.join("share").display()),
            ],
        }
    }

    /// The size of InnoDB's redo log. Small, for it is copied with each data directory.
    pub(super) fn redo_log_argument(self) -> &'static str {
        match self {
            Kind::MariaDb1011 | Kind::MariaDb114 => "--innodb-log-file-size=24M",
            Kind::MySql80 => "--innodb-redo-log-capacity=24M",
            // Two files.
            Kind::MySql57 => "--innodb-log-file-size=12M",
            // It takes no BLOB larger than a tenth of them, and tests have some of 5 MB.
            Kind::MySql56 => "--innodb-log-file-size=32M",
        }
    }

    /// What else its program is started with.
    /// Relative paths are below the data directory.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        // TLS is on by itself, but with a key that takes seconds to make at each start.
        const MARIADB_114: &[&str] = &["--ssl-cert=server-cert.pem", "--ssl-key=server-key.pem"];
        // The performance schema would double the time of a start and take hundreds of megabytes.
        const MYSQL: &[&str] = &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--log-slave-updates",
            "--performance-schema=OFF",
        ];
        const MYSQL_80: &[&str] = &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--performance-schema=OFF",
            "--mysqlx=OFF",
            // Threads that share a count spin until the last one has started.
            "--innodb-parallel-read-threads=1",
            // With few processors the threads that write the redo log take time from all others.
            "--innodb-log-writer-threads=OFF",
            // As in all the others.
            "--local-infile=ON",
        ];
        match self {
            Kind::MariaDb1011 => &[],
            Kind::MariaDb114 => MARIADB_114,
            Kind::MySql57 | Kind::MySql56 => MYSQL,
            Kind::MySql80 => MYSQL_80,
        }
    }

    /// The server's own query cache: its size, MiB, 0 for none.
    pub(super) fn query_cache_arguments(self, mib: u32) -> anyhow::Result<Vec<String>> {
        if !self.has_query_cache() {
            if mib > 0 {
                bail!("{} has no query cache", self.as_str());
            }
            return Ok(Vec::new());
        }
        let mode = if mib > 0 { "ON" } else { "OFF" };
        Ok(vec![
            format!("--query-cache-type={mode}"),
            format!("--query-cache-size={mib}M"),
        ])
    }

    /// A name that changes when another version of it is there.
    ///
    /// # Errors
    /// It isn't there; the message says how to get it.
    pub fn version(self) -> anyhow::Result<String> {
        let text = match self.base() {
            None => self.told_version()?,
            // What was fetched.
            Some(base) => {
                let file = base.join("artifact");
                let digest = std::fs::read_to_string(&file).with_context(|| {
                    format!(
                        "can't read {}; `scripts/servers {}` fetches it",
                        file.display(),
                        self.as_str()
                    )
                })?;
                let digest: String = digest.chars().take(12).collect();
                format!("{}-{digest}", self.as_str())
            }
        };
        Ok(text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-"))
    }

    /// What its program says of its version.
    fn told_version(self) -> anyhow::Result<String> {
        let output = std::process::Command::new(self.program()?)
            .args(["--no-defaults", "--version"])
            .output()
            .context("can't run the server")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
            .with_context(|| format!("the server does not tell its version: {text:?}"))?;
        Ok(version.to_owned())
    }
}
