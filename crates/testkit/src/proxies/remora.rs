//! Remora as a user runs it: the built program, its options on the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::certificates::CertificateFiles;
use crate::client::ConnectOptions;
use crate::metrics::{Metrics, get};
use crate::process::{Process, Program, Signal, wait_for};
use crate::scratch::Scratch;
use crate::servers::{FOLLOW_USER, Server};
use crate::{ports, programs};

/// Longest wait for Remora to start or to end.
const PATIENCE: Duration = crate::process::PATIENCE;

/// How a Remora is set up, beyond its addresses.
#[derive(Debug, Clone, Default)]
pub struct RemoraOptions {
    /// The program; `None`: that of [`programs::remora`].
    pub program: Option<PathBuf>,
    /// A command that it is to run under, such as valgrind's: its path and its arguments. It must
    /// become the program without a process between. Empty: none.
    pub under: Vec<OsString>,
    /// What it gets as its standard input; `None`: nothing.
    pub standard_input: Option<Arc<OwnedFd>>,
    /// Whether it follows the server's log. If not, it caches nothing.
    pub follow: bool,
    /// Threads that serve clients; `None`: as many as Remora itself chooses.
    pub threads: Option<usize>,
    /// Memory for cached results, MiB; `None`: Remora's own default.
    pub memory_mib: Option<u32>,
    /// Its configuration file, which the other options take precedence over.
    pub config: Option<PathBuf>,
    /// Further options by their full names, such as `cache.result_bytes_max`, with their values.
    pub set: Vec<(String, String)>,
}

impl RemoraOptions {
    /// One that follows the log and has its own defaults otherwise.
    pub fn following() -> RemoraOptions {
        RemoraOptions {
            follow: true,
            ..RemoraOptions::default()
        }
    }

    /// One that follows the log and stores whatever it may: for tests whose reads would otherwise
    /// not be worth storing, and that look for what is wrong in memory.
    pub fn storing_all() -> RemoraOptions {
        RemoraOptions::following().with("cache.storing", "always")
    }

    /// One that follows the log, and for which no pause of the machine or the server is too long:
    /// for tests that count hits exactly, or have a server hold statements up.
    pub fn unhurried() -> RemoraOptions {
        RemoraOptions::following()
            .with("follow.lag_ms_max", "60000")
            .with("follow.check_age_ms_max", "3600000")
            .with("follow.heartbeat_ms", "30000")
            .with("workers.server_contact_ms", "3600000")
            .with("upstream.query_timeout_ms", "20000")
    }

    /// With one more option, by its full name.
    #[must_use]
    pub fn with(mut self, option: &str, value: &str) -> RemoraOptions {
        self.set.push((option.to_owned(), value.to_owned()));
        self
    }

    /// With a configuration file.
    #[must_use]
    pub fn with_config(self, file: &Path) -> RemoraOptions {
        RemoraOptions {
            config: Some(file.to_owned()),
            ..self
        }
    }

    /// With a certificate, so that it offers TLS to clients.
    #[must_use]
    pub fn with_certificate(self, files: &CertificateFiles) -> RemoraOptions {
        self.with(
            "listen.tls_certificate_file",
            &files.certificate.display().to_string(),
        )
        .with("listen.tls_key_file", &files.key.display().to_string())
    }

    /// All options by their full names.
    pub(super) fn assignments(&self, server: &Server) -> Vec<(String, String)> {
        let mut all = vec![("upstream.address".to_owned(), server.address().to_string())];
        if self.follow {
            let file = server.follow_password_file().display().to_string();
            all.push(("follow.user".to_owned(), FOLLOW_USER.to_owned()));
            all.push(("follow.password_file".to_owned(), file));
        }
        if let Some(threads) = self.threads {
            all.push(("workers.threads".to_owned(), threads.to_string()));
        }
        if let Some(memory) = self.memory_mib {
            all.push(("cache.memory_bytes_max".to_owned(), format!("{memory}MiB")));
        }
        // The command line takes an option once.
        all.retain(|(option, _)| self.set.iter().all(|(further, _)| further != option));
        all.extend(self.set.iter().cloned());
        all
    }

    fn arguments(&self, server: &Server) -> Vec<String> {
        let argument = |(option, value): (String, String)| match option.as_str() {
            "upstream.address" => format!("--upstream={value}"),
            "follow.user" => format!("--follow-user={value}"),
            "follow.password_file" => format!("--follow-password-file={value}"),
            "workers.threads" => format!("--workers={value}"),
            "cache.memory_bytes_max" => format!("--memory={value}"),
            _ => format!("--set={option}={value}"),
        };
        let config = self.config.iter();
        let config = config.map(|file| format!("--config={}", file.display()));
        config
            .chain(self.assignments(server).into_iter().map(argument))
            .collect()
    }
}

/// A running Remora.
#[derive(Debug)]
pub struct Remora {
    process: Process,
    address: SocketAddr,
    admin: SocketAddr,
    _scratch: Scratch,
}

impl Remora {
    /// Starts one in front of `server` and waits until it relays and, if it follows, is ready to
    /// cache.
    pub fn start(server: &Server, options: &RemoraOptions) -> anyhow::Result<Remora> {
        Remora::start_at(server, options, ports::free()?, ports::free()?)
    }

    /// The same at these addresses, which must be free: clients connect to the first, the second is
    /// for its metrics.
    pub fn start_at(
        server: &Server,
        options: &RemoraOptions,
        address: SocketAddr,
        admin: SocketAddr,
    ) -> anyhow::Result<Remora> {
        let scratch = Scratch::new()?;
        let path = options.program.clone().map_or_else(programs::remora, Ok)?;
        let command = options.under.iter().cloned().chain([path.into()]);
        let mut program = Program::of_command("remora", command, scratch.join("log"))?
            .arg("serve")
            .arg(format!("--listen={address}"))
            .arg(format!("--admin={admin}"))
            .args(options.arguments(server));
        if let Some(file) = &options.standard_input {
            program = program.standard_input(Arc::clone(file));
        }
        let process = program.spawn()?;
        let mut remora = Remora {
            process,
            address,
            admin,
            _scratch: scratch,
        };
        remora.wait_until_ready(&server.app(), options.follow)?;
        Ok(remora)
    }

    fn wait_until_ready(&mut self, app: &ConnectOptions, follow: bool) -> anyhow::Result<()> {
        let through = app.clone().at(self.address);
        self.process
            .wait_until("a connection through Remora", PATIENCE, || {
                through.connect().ok()
            })
            .context("Remora did not start")?;
        let admin = self.admin;
        if follow {
            self.process
                .wait_until("Remora to serve from memory", PATIENCE, || {
                    is_caching(admin)
                })
                .with_context(|| {
                    format!(
                        "Remora relays, but does not cache: {}",
                        why_not_caching(admin)
                    )
                })?;
        }
        Ok(())
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its metrics and its health are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its metrics now.
    pub fn metrics(&self) -> anyhow::Result<Metrics> {
        Metrics::fetch(self.admin).map_err(|error| self.process.with_log_tail(&error))
    }

    /// The end of what it wrote to its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Stops it in its tracks (SIGSTOP): its connections stay open and nothing answers.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::STOP)?;
        // Each thread stops when it notices.
        wait_for("Remora's threads to stop", PATIENCE, || {
            let is_stopped = self.process.is_stopped()?;
            Ok(is_stopped.then_some(()))
        })
    }

    /// Lets it go on after [`Remora::freeze`].
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Asks it to end and waits; gives whether it ended with success.
    pub fn stop(&mut self) -> anyhow::Result<bool> {
        Ok(self.process.stop(PATIENCE)?.success())
    }
}

/// Something if the Remora whose metrics are there serves from memory.
pub(super) fn is_caching(admin: SocketAddr) -> Option<()> {
    // All metrics would take far longer, and this is asked again and again.
    let page = get(admin, "/readyz").ok()?;
    page.body
        .lines()
        .any(|line| line == "caching: on")
        .then_some(())
}

/// What the Remora whose metrics are there says of its caching.
pub(super) fn why_not_caching(admin: SocketAddr) -> String {
    match Metrics::fetch(admin) {
        Ok(metrics) => format!("remora_caching is {:?}", metrics.labelled("remora_caching")),
        Err(error) => format!("{error:#}"),
    }
}
