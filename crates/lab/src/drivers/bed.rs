//! What the programs run against: a server, a Remora, a schema.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::matrix::Driver;
use super::report::Report;
use super::runs::Run;
use super::security::Security;
use super::{DriversOptions, accounts};
use remora_testkit::client::Client;
use remora_testkit::process::{Program, wait_for};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server, ServerOptions};
use remora_testkit::{interrupt, programs};

/// The schema that the programs use.
const SCHEMA: &str = "drivers";
/// Longest run of one program: three of its checks may wait for memory for two minutes each.
const PATIENCE: Duration = Duration::from_mins(10);

/// What the programs run against.
pub(super) struct Bed {
    // Dropped in this order.
    remora: Remora,
    server: Server,
    security: Option<Security>,
    scratch: Scratch,
    sources: PathBuf,
    installed: PathBuf,
    run: Run,
    /// As the server tells it.
    version: String,
}

impl Bed {
    /// Starts a server and Remora.
    pub(super) fn start(run: Run) -> anyhow::Result<Bed> {
        let installed = programs::cache_directory().join("drivers");
        let mut options = ServerOptions {
            kind: Some(run.kind),
            ..ServerOptions::default()
        };
        options.further.extend(run.server_arguments(&installed));
        let security = if run.tls {
            Some(Security::new()?)
        } else {
            None
        };
        let mut remora_options = RemoraOptions::following();
        if let Some(security) = &security {
            options.further.extend(security.server_arguments());
            remora_options = security.secure(remora_options);
        }
        let server = Server::start(options)?;
        let version = server.root()?.query_value("SELECT VERSION()")?;
        Ok(Bed {
            remora: Remora::start(&server, &remora_options)?,
            version: version.context("the server tells no version")?,
            server,
            security,
            scratch: Scratch::new()?,
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drivers"),
            installed,
            run,
        })
    }

    /// The server's version, as it tells it.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// What Remora says of itself, for whoever looks into a fault: the reasons for which it forgot
    /// what it held, and the end of its log.
    pub(super) fn state(&self) -> String {
        let metrics = self.remora.metrics();
        let forgotten = metrics.as_ref().map(|metrics| {
            let reasons = metrics.labelled("remora_forgotten_total").into_iter();
            let counted: Vec<String> = reasons
                .filter(|(_, times)| *times > 0.0)
                .map(|(reason, times)| format!("{reason} {times}"))
                .collect();
            counted.join(", ")
        });
        let forgotten = forgotten.unwrap_or_else(|error| format!("unknown ({error:#})"));
        format!("Remora forgot: {forgotten}\n{}", self.remora.log_tail())
    }

    /// Prints the environment of a program, to be read by a shell, and waits until the user asks to
    /// stop.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        let mut root = self.server.root()?;
        self.fill(&mut root)?;
        let plugins = accounts::make(&mut root, self.run.kind)?;
        for assignment in self.environment(&plugins)? {
            let (name, value) = assignment.split_once('=').unwrap_or_default();
            println!("export {name}='{}'", value.replace('\'', "'\\''"));
        }
        loop {
            interrupt::sleep(Duration::from_secs(1))?;
        }
    }

    /// Runs one program on a fresh schema; gives its report and the plugins that it had accounts
    /// for.
    pub(super) fn run(
        &self,
        driver: &Driver,
        options: &DriversOptions,
    ) -> anyhow::Result<(Report, Vec<&'static str>)> {
        let mut root = self.server.root()?;
        self.fill(&mut root)?;
        let plugins = accounts::make(&mut root, self.run.kind)?;
        let log = self.scratch.join(driver.name);
        let program = Program::new(driver.name, programs::find("env")?, log.clone())
            .args(self.environment(&plugins)?)
            .args(driver.command(self.run.tls, &self.sources, &self.installed))
            .args(&options.checks);
        let mut process = program.spawn()?;
        let what = format!("the end of {}'s program", driver.name);
        let mut ended = None;
        let waited = wait_for(&what, PATIENCE, || {
            ended = process.ended()?;
            Ok(ended)
        });
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if options.verbose {
            println!("\n{text}");
        }
        let crash = match (waited, ended) {
            (Err(error), _) if error.is::<interrupt::Interrupted>() => return Err(error),
            (Ok(_), Some(status)) if status.success() => None,
            (Ok(_), _) => Some(process.log_tail()),
            (Err(error), _) => Some(format!("{error:#}; {}", process.log_tail())),
        };
        Ok((Report::parse(*driver, &text, crash), plugins))
    }

    /// Makes the schema anew.
    fn fill(&self, root: &mut Client) -> anyhow::Result<()> {
        for statement in [
            format!("DROP DATABASE IF EXISTS {SCHEMA}"),
            format!("CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4"),
            format!("USE {SCHEMA}"),
        ] {
            root.query(&statement).with_context(|| statement.clone())?;
        }
        let files = ["common.sql", "json.sql", "mariadb.sql"];
        let wanted = |file: &&str| match *file {
            "json.sql" => self.run.kind != Kind::MySql56,
            "mariadb.sql" => !self.run.kind.is_mysql(),
            _ => true,
        };
        for file in files.iter().filter(|file| wanted(file)) {
            let path = self.sources.join("schema").join(file);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("can't read {}", path.display()))?;
            for statement in statements(&text) {
                root.query(&statement).with_context(|| statement.clone())?;
            }
        }
        Ok(())
    }

    /// The tables whose names begin so.
    fn tables(&self, prefix: &str) -> anyhow::Result<String> {
        let mut root = self.server.root()?;
        root.query(&format!("USE {SCHEMA}"))?;
        let rows = root
            .query(&format!("SHOW TABLES LIKE '{prefix}\\_%'"))?
            .rows()?;
        let names = rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten());
        let names: Vec<String> = names
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        Ok(names.join(" "))
    }

    fn environment(&self, plugins: &[&str]) -> anyhow::Result<Vec<String>> {
        let reads = self.sources.join("schema/reads.sql");
        let port = |address: SocketAddr| address.port().to_string();
        let all = [
            ("DRIVER_HOST", self.server.address().ip().to_string()),
            ("DRIVER_SERVER_PORT", port(self.server.address())),
            ("DRIVER_REMORA_PORT", port(self.remora.address())),
            ("DRIVER_USER", APP_USER.to_owned()),
            ("DRIVER_PASSWORD", APP_PASSWORD.to_owned()),
            ("DRIVER_SCHEMA", SCHEMA.to_owned()),
            ("DRIVER_ACCOUNTS", plugins.join(" ")),
            ("DRIVER_ACCOUNTS_PASSWORD", accounts::PASSWORD.to_owned()),
            ("DRIVER_TABLES", self.tables("t")?),
            ("DRIVER_PASSED_TABLES", self.tables("p")?),
            ("DRIVER_READS", reads.display().to_string()),
            ("DRIVER_ADMIN", self.remora.admin().to_string()),
            ("DRIVER_LARGE_LENGTHS", large_lengths(self.run.tls)),
            (
                "DRIVER_TLS",
                if self.run.tls { "on" } else { "off" }.to_owned(),
            ),
            ("DRIVER_INSTALLED", self.installed.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        let assignments = all
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        let security = self.security.iter().flat_map(Security::environment);
        Ok(assignments.chain(security).collect())
    }
}

/// The lengths of the large values that are read, each alone in its row, in bytes, separated by
/// spaces. Those around the limit of a packet are read without TLS only: they take long, and
/// encryption changes nothing of how packets are split.
fn large_lengths(tls: bool) -> String {
    const PACKET_BYTES_MAX: u32 = 0xff_ffff;
    /// As one packet, as a full one and an empty one, as two; then the greatest length that is told
    /// in four bytes, and one more.
    const LIMITS: [u32; 5] = [
        PACKET_BYTES_MAX - 5,
        PACKET_BYTES_MAX - 4,
        PACKET_BYTES_MAX - 3,
        PACKET_BYTES_MAX,
        PACKET_BYTES_MAX + 1,
    ];
    /// Twice: what is too long to be kept must come whole the second time, too.
    const LONG: [u32; 2] = [20_000_000; 2];
    let limits = LIMITS.iter().filter(|_| !tls);
    let words: Vec<String> = limits.chain(&LONG).map(u32::to_string).collect();
    words.join(" ")
}

/// A file's statements: comments begin a line, a semicolon ends one.
fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("--"))
        .collect();
    let code = code.join("\n");
    let all = code
        .split(";\n")
        .map(|statement| statement.trim().trim_end_matches(';').to_owned());
    all.filter(|statement| !statement.is_empty()).collect()
}
