//! Private servers: their own data directory, their own port on 127.0.0.1, gone when dropped.

mod accounts;
mod kind;
mod pool;
mod sequence;
mod template;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::client::{Client, ConnectOptions};
use crate::ports;
use crate::process::{Process, Program, Signal, wait_for};
use crate::scratch::Scratch;
pub use kind::{KIND_VARIABLE, Kind};
pub use pool::{Leased, Pool};
pub use sequence::numbers;
/// Copies a data directory; at once where the file system lets copies share their blocks.
pub use template::copy as copy_data_directory;

/// The account that applications use: all rights, with a password.
pub const APP_USER: &str = "app";
/// Its password.
pub const APP_PASSWORD: &str = "app-password";
/// Remora's own account, with the rights that it needs and no more.
pub const FOLLOW_USER: &str = "remora";
/// Its password.
pub const FOLLOW_PASSWORD: &str = "remora-password";
/// The schema that every server begins with.
pub const SCHEMA: &str = "lab";

/// Longest wait for a server to start or to end.
const PATIENCE: Duration = crate::process::PATIENCE;
/// How many ports are tried.
const PORT_TRIES: u32 = 5;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// What it is; `None`: what the environment says, see [`Kind::from_environment`].
    pub kind: Option<Kind>,
    /// Size of InnoDB's buffer pool, MiB.
    pub buffer_pool_mib: u32,
    /// Size of the server's own query cache, MiB. 0: there is none (`query_cache_type=OFF`).
    pub query_cache_mib: u32,
    /// `max_connections`.
    pub connections_max: u32,
    /// Further options, each in the form `--name=value`. They win over those above.
    pub further: Vec<String>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            kind: None,
            buffer_pool_mib: 64,
            query_cache_mib: 0,
            connections_max: 1_000,
            further: Vec::new(),
        }
    }
}

/// A private server with the binary log on, in row format, on MySQL with GTIDs. Its accounts:
/// `root` without a password (by TCP from this machine), [`APP_USER`] and [`FOLLOW_USER`].
///
/// Writes are not synced to disk one by one: they survive a crash of the server, which tests cause,
/// and not one of the machine.
#[derive(Debug)]
pub struct Server {
    // Dropped in this order: first the process, then its directory.
    process: Option<Process>,
    kind: Kind,
    address: SocketAddr,
    options: ServerOptions,
    scratch: Scratch,
}

impl Server {
    /// Starts one and waits until it answers.
    pub fn start(options: ServerOptions) -> anyhow::Result<Server> {
        Server::start_on(options, template::copy_to)
    }

    /// Starts one on a copy of a data directory that a server of the same kind left when it was
    /// shut down.
    pub fn start_with_data(options: ServerOptions, data: &Path) -> anyhow::Result<Server> {
        Server::start_on(options, |_, to| template::copy(data, to))
    }

    /// Starts one on a data directory that `make_data` makes at the path that it is given.
    fn start_on(
        options: ServerOptions,
        make_data: impl FnOnce(Kind, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Server> {
        let kind = match options.kind {
            Some(kind) => kind,
            None => Kind::from_environment()?,
        };
        let scratch = Scratch::new()?;
        make_data(kind, &scratch.join("data"))?;
        let mut server = Server {
            process: None,
            kind,
            address: ports::free()?,
            options,
            scratch,
        };
        for _ in 1..PORT_TRIES {
            match server.launch() {
                Ok(()) => break,
                // Somebody else took the port between our look and the server's.
                Err(_) if server.log_says("Address already in use") => {
                    server.process = None;
                    server.forget_log()?;
                    server.address = ports::free()?;
                }
                Err(error) => return Err(error),
            }
        }
        if server.process.is_none() {
            server.launch()?;
        }
        server.make_accounts()?;
        Ok(server)
    }

    fn launch(&mut self) -> anyhow::Result<()> {
        let program = Program::new(self.kind.as_str(), self.kind.program()?, self.log_path())
            .args(self.arguments()?);
        let process = self.process.insert(program.spawn()?);
        let options = ConnectOptions::new(self.address, "root", "");
        let socket = self.scratch.join("socket").display().to_string();
        process
            .wait_until("the server's first answer", PATIENCE, || {
                // A node of a cluster lets connections in before it answers statements. And another
                // server may have taken the port: then this one says so and ends.
                let answer = options.connect().ok()?.query_value("SELECT @@socket");
                (answer.ok()?.as_deref() == Some(socket.as_str())).then_some(())
            })
            .with_context(|| format!("{} did not start", self.kind.as_str()))?;
        Ok(())
    }

    fn arguments(&self) -> anyhow::Result<Vec<String>> {
        let (kind, options) = (self.kind, &self.options);
        let path = |name: &str| self.scratch.join(name).display().to_string();
        let mut arguments = vec!["--no-defaults".to_owned()];
        if template::is_root() {
            arguments.push("--user=root".to_owned());
        }
        arguments.extend(kind.base_arguments());
        arguments.extend([
            format!("--datadir={}", path("data")),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
            format!("--tmpdir={}", self.scratch.path().display()),
            format!("--port={}", self.address.port()),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--server-id=1".to_owned(),
            "--log-bin=binlog".to_owned(),
            "--binlog-format=ROW".to_owned(),
            "--sync-binlog=0".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            // The system has room for some twenty servers' requests, and then refuses.
            "--innodb-use-native-aio=OFF".to_owned(),
            kind.redo_log_argument().to_owned(),
            format!("--innodb-buffer-pool-size={}M", options.buffer_pool_mib),
            format!("--max-connections={}", options.connections_max),
        ]);
        arguments.extend(kind.arguments().iter().map(ToString::to_string));
        arguments.extend(kind.query_cache_arguments(options.query_cache_mib)?);
        arguments.extend(options.further.iter().cloned());
        Ok(arguments)
    }

    /// Makes the accounts, or gives them back what they have at the beginning, unlogged.
    pub fn make_accounts(&self) -> anyhow::Result<()> {
        let mut root = self.root()?;
        for statement in accounts::statements(self.kind) {
            root.query(&statement).with_context(|| statement.clone())?;
        }
        let file = self.follow_password_file();
        std::fs::write(&file, FOLLOW_PASSWORD).context("can't write the follower's password")?;
        restrict_to_owner(&file)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.scratch.join("socket")
    }

    /// A file that holds [`FOLLOW_PASSWORD`].
    pub fn follow_password_file(&self) -> PathBuf {
        self.scratch.join("follow-password")
    }

    /// The server's log of errors.
    pub fn log_path(&self) -> PathBuf {
        self.scratch.join("error.log")
    }

    /// Its process id; `None` while it isn't running.
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// A connection of the administrator, without a default schema.
    pub fn root(&self) -> anyhow::Result<Client> {
        ConnectOptions::new(self.address, "root", "")
            .connect()
            .context("can't connect to the private server as root")
    }

    /// How an application connects directly: [`APP_USER`], with [`SCHEMA`] as the default schema.
    /// For a proxy in front, change the address by [`ConnectOptions::at`].
    pub fn app(&self) -> ConnectOptions {
        ConnectOptions::new(self.address, APP_USER, APP_PASSWORD).schema(SCHEMA)
    }

    /// Runs statements as root, one after the other, each in a string of its own.
    pub fn execute<T: AsRef<str>>(
        &self,
        statements: impl IntoIterator<Item = T>,
    ) -> anyhow::Result<()> {
        let mut root = self.root()?;
        root.query(&format!("USE {SCHEMA}"))?;
        for statement in statements {
            let statement = statement.as_ref();
            root.query(statement)
                .with_context(|| statement.to_owned())?;
        }
        Ok(())
    }

    /// The end of the last event in its binary log, as `file:offset`.
    pub fn position(&self) -> anyhow::Result<String> {
        let rows = self.root()?.query("SHOW MASTER STATUS")?.rows()?;
        let row = rows.first().context("the binary log is off")?;
        let field = |index: usize| {
            let bytes = row.get(index).cloned().flatten().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(format!("{}:{}", field(0), field(1)))
    }

    /// Shuts it down in order.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.stop(PATIENCE)?;
        }
        Ok(())
    }

    /// Shuts it down in order, for as long as that takes up to `limit`, and gives its data
    /// directory, which is removed with the server.
    ///
    /// # Errors
    /// It was not running, or did not end by itself and with success.
    pub fn stop_for_data(&mut self, limit: Duration) -> anyhow::Result<PathBuf> {
        let mut process = self.process.take().context("the server isn't running")?;
        let status = process.stop(limit)?;
        if !status.success() {
            bail!(
                "the server did not shut down in order ({status}); {}",
                process.log_tail()
            );
        }
        Ok(self.scratch.join("data"))
    }

    /// If it has ended without being asked to: how, with the end of its log.
    pub fn ended_by_itself(&mut self) -> anyhow::Result<Option<String>> {
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let ended = process.ended()?;
        Ok(ended.map(|status| {
            format!(
                "the server ended by itself ({status}); {}",
                process.log_tail()
            )
        }))
    }

    /// Kills it, as a crash would.
    pub fn crash(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
        }
        Ok(())
    }

    /// Starts it again on the same port with the data it has.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        if self.process.is_some() {
            bail!("the server is running");
        }
        self.launch()
    }

    /// Shuts it down and starts it again.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Puts a fresh server with an empty [`SCHEMA`] in its place, on the same port, with a binary
    /// log that begins anew.
    pub fn restart_with_other_contents(&mut self) -> anyhow::Result<()> {
        self.crash()?;
        let data = self.scratch.join("data");
        std::fs::remove_dir_all(&data).context("can't remove the old data")?;
        template::copy_to(self.kind, &data)?;
        self.launch()?;
        self.make_accounts()
    }

    /// Stops it in its tracks (SIGSTOP): its connections stay open and nothing answers.
    pub fn freeze(&self) -> anyhow::Result<()> {
        let process = self.running()?;
        process.signal(Signal::STOP)?;
        // Each thread stops when it notices.
        wait_for("the server's threads to stop", PATIENCE, || {
            process.is_stopped().map(|stopped| stopped.then_some(()))
        })
    }

    /// Lets it go on after [`Server::freeze`].
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.running()?.signal(Signal::CONT)
    }

    /// Shuts it down, changes its options and starts it again.
    pub fn restart_with(&mut self, change: impl FnOnce(&mut ServerOptions)) -> anyhow::Result<()> {
        self.stop()?;
        change(&mut self.options);
        self.start_again()
    }

    fn running(&self) -> anyhow::Result<&Process> {
        self.process.as_ref().context("the server isn't running")
    }

    fn log_says(&self, words: &str) -> bool {
        std::fs::read_to_string(self.log_path()).is_ok_and(|text| text.contains(words))
    }

    fn forget_log(&self) -> anyhow::Result<()> {
        std::fs::write(self.log_path(), "").context("can't empty the server's log")
    }
}

fn restrict_to_owner(file: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))
        .context("can't protect the password file")
}
