//! The drivers of the matrix: how each is run, and what is expected of it.

use std::path::Path;

/// The checks, in the order in which programs run and tables show them. `drivers/README.md` says
/// what each does.
pub(super) const CHECKS: [&str; 15] = [
    "connect",
    "auth",
    "tls",
    "text",
    "prepared",
    "transactions",
    "transaction_reads",
    "errors",
    "large",
    "multi",
    "local_infile",
    "streaming",
    "bulk",
    "results",
    "own_writes",
];

/// What a program is written in, which tells how it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// `drivers/python/main.py NAME` in the virtual environment.
    Python,
    /// `drivers/node/main.mjs NAME`.
    Node,
    /// The class `Main NAME` with both connectors, and Hibernate.
    Java,
    /// `drivers/php/main.php NAME`.
    Php,
    /// `drivers/command-line/main.py`, by the system's Python.
    CommandLine,
    /// A program of this name that `drivers/install` has built.
    Built,
}

/// One driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driver {
    /// Its name in the matrix.
    pub(super) name: &'static str,
    runs: Runs,
    /// Checks that it has nothing for: it must report `none` for these and for no others.
    pub(super) without: &'static [&'static str],
    /// The authentication plugins (by the names of [`super::accounts`]) that it must log in with,
    /// where the server has them, also without TLS.
    pub(super) plugins: &'static [&'static str],
    /// Those that it logs in with over TLS only.
    pub(super) plugins_over_tls: &'static [&'static str],
}

/// All plugins that a run may have accounts for, for drivers that know them all.
const EVERY_PLUGIN: &[&str] = &["native", "caching", "sha256", "ed25519"];
/// Those of MySQL.
const MYSQL_PLUGINS: &[&str] = &["native", "caching", "sha256"];

/// All drivers.
pub(super) const DRIVERS: &[Driver] = &[
    Driver {
        name: "pymysql",
        runs: Runs::Python,
        without: &["prepared"],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mysqlclient",
        runs: Runs::Python,
        without: &["prepared"],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "connector-python",
        runs: Runs::Python,
        without: &[],
        plugins: &["native"],
        plugins_over_tls: &["caching", "sha256"],
    },
    Driver {
        name: "connector-python-c",
        runs: Runs::Python,
        without: &[],
        plugins: &["native", "sha256"],
        plugins_over_tls: &["caching"],
    },
    Driver {
        name: "aiomysql",
        runs: Runs::Python,
        without: &["prepared"],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
    Driver {
        name: "sqlalchemy",
        runs: Runs::Python,
        without: &["prepared", "multi"],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mysql2",
        runs: Runs::Node,
        without: &[],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mariadb-node",
        runs: Runs::Node,
        without: &[],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "connector-j",
        runs: Runs::Java,
        without: &[],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mariadb-java",
        runs: Runs::Java,
        without: &[],
        plugins: &["native", "caching", "ed25519"],
        plugins_over_tls: &[],
    },
    Driver {
        name: "hibernate",
        runs: Runs::Java,
        // What it sends beside its transactions is Connector/J's affair.
        without: &[
            "connect",
            "auth",
            "tls",
            "text",
            "prepared",
            "transactions",
            "errors",
            "large",
            "multi",
            "local_infile",
            "streaming",
            "bulk",
            "results",
            "own_writes",
        ],
        plugins: &[],
        plugins_over_tls: &[],
    },
    Driver {
        name: "go-sql-driver",
        runs: Runs::Built,
        without: &[],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mysqli",
        runs: Runs::Php,
        without: &[],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
    Driver {
        name: "pdo",
        runs: Runs::Php,
        without: &[],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mariadb-client",
        runs: Runs::CommandLine,
        without: &["prepared", "transaction_reads"],
        plugins: EVERY_PLUGIN,
        plugins_over_tls: &[],
    },
    Driver {
        name: "mysql_async",
        runs: Runs::Built,
        without: &[],
        plugins: &["native", "caching", "ed25519"],
        plugins_over_tls: &[],
    },
    Driver {
        name: "sqlx",
        runs: Runs::Built,
        without: &["local_infile"],
        plugins: MYSQL_PLUGINS,
        plugins_over_tls: &[],
    },
];

impl Driver {
    /// The program and its arguments, for connections with TLS or without. `sources` is the
    /// repository's `drivers`, `installed` is where `drivers/install` has put things.
    pub(super) fn command(&self, tls: bool, sources: &Path, installed: &Path) -> Vec<String> {
        let source = |file: &str| sources.join(file).display().to_string();
        let built = |file: &str| installed.join(file).display().to_string();
        let name = self.name.to_owned();
        match self.runs {
            Runs::Python => vec![built("python/bin/python"), source("python/main.py"), name],
            Runs::Node => vec!["node".to_owned(), source("node/main.mjs"), name],
            Runs::Java => vec![
                "java".to_owned(),
                // Level 1 compiles quickly: a program runs for seconds. Only level 4, the usual
                // one, uses the processor's instructions for AES, and that pays over TLS.
                format!("-XX:TieredStopAtLevel={}", if tls { 4 } else { 1 }),
                "-cp".to_owned(),
                format!("{}:{}", built("java/*"), built("java")),
                "Main".to_owned(),
                name,
            ],
            Runs::Php => vec![
                "php".to_owned(),
                "-dmemory_limit=1G".to_owned(),
                "-dmysqli.allow_local_infile=1".to_owned(),
                source("php/main.php"),
                name,
            ],
            Runs::CommandLine => vec!["python3".to_owned(), source("command-line/main.py")],
            Runs::Built => vec![built(&format!("bin/{name}"))],
        }
    }
}
