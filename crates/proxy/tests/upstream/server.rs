//! Private servers of the kind that the environment chooses.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use remora::config::Endpoint;
use remora::config::options::{ListenOptions, UpstreamOptions};
use remora::link::ServerLink;
use remora::upstream::check;
use remora::upstream::client::{Account, Client, ClientError};
use remora::upstream::server_facts::{Family, Visibility};
use remora_wire::rows::Row;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_mins(1);
/// `ER_NO_SUCH_THREAD`.
const NO_SUCH_THREAD: u16 = 1094;

/// Waits for a condition; a failure says which.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MariaDb1011,
    MariaDb114,
    MySql80,
    MySql57,
    MySql56,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::MariaDb1011 => "mariadb-10.11",
            Kind::MariaDb114 => "mariadb-11.4",
            Kind::MySql80 => "mysql-8.0",
            Kind::MySql57 => "mysql-5.7",
            Kind::MySql56 => "mysql-5.6",
        }
    }

    /// The one that the environment chooses.
    pub(crate) fn chosen() -> Kind {
        use Kind::{MariaDb114, MariaDb1011, MySql56, MySql57, MySql80};
        let name = std::env::var("REMORA_LAB_SERVER").unwrap_or_default();
        if name.is_empty() {
            return MariaDb1011;
        }
        [MariaDb1011, MariaDb114, MySql80, MySql57, MySql56]
            .into_iter()
            .find(|kind| kind.name() == name)
            .unwrap_or_else(|| panic!("REMORA_LAB_SERVER is {name}"))
    }

    pub(crate) fn is_mysql(self) -> bool {
        self.visibility() != Visibility::Position
    }

    pub(crate) fn visibility(self) -> Visibility {
        match self {
            Kind::MariaDb1011 | Kind::MariaDb114 => Visibility::Position,
            Kind::MySql80 => Visibility::Gtids { xa_in_order: true },
            Kind::MySql57 => Visibility::Gtids { xa_in_order: false },
            Kind::MySql56 => Visibility::NeverTold,
        }
    }

    /// Its directory; none for Debian's own.
    fn base(self) -> Option<PathBuf> {
        if self == Kind::MariaDb1011 {
            return None;
        }
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
        let base = cache.join("remora-lab/servers").join(self.name());
        assert!(
            base.is_dir(),
            "`scripts/servers {}` fetches it",
            self.name()
        );
        Some(base)
    }

    fn program(self, directory: &str, name: &str) -> Command {
        match self.base() {
            None => Command::new(name),
            Some(base) => Command::new(base.join(directory).join(name)),
        }
    }

    fn server(self) -> Command {
        let name = if self.is_mysql() {
            "mysqld"
        } else {
            "mariadbd"
        };
        let mut command = self.program("bin", name);
        command.args(["--no-defaults", "--user=root"]);
        if let Some(base) = self.base() {
            command.arg(format!("--basedir={}", base.display()));
            command.arg(format!("--lc-messages-dir={}/share", base.display()));
        }
        command
    }

    /// What makes a fresh data directory.
    fn installer(self, data: &Path) -> Command {
        let mut command = match self {
            Kind::MariaDb1011 | Kind::MariaDb114 => {
                let mut command = self.program("scripts", "mariadb-install-db");
                command.args(["--no-defaults", "--user=root", "--skip-test-db"]);
                command.arg("--auth-root-authentication-method=normal");
                if let Some(base) = self.base() {
                    command.arg(format!("--basedir={}", base.display()));
                    command.arg(format!("--lc-messages-dir={}/share", base.display()));
                }
                command
            }
            Kind::MySql80 | Kind::MySql57 => {
                let mut command = self.server();
                command.arg("--initialize-insecure");
                command
            }
            Kind::MySql56 => {
                copy_tree(&self.base().unwrap().join("data"), data);
                let mut command = self.server();
                command.arg("--bootstrap");
                command
            }
        };
        command.arg(format!("--datadir={}", data.display()));
        command
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Kind::MariaDb1011 => &[],
            // With TLS it makes a key at each start, which takes ten seconds.
            Kind::MariaDb114 => &["--skip-ssl"],
            Kind::MySql80 => &[
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--mysqlx=OFF",
            ],
            Kind::MySql57 | Kind::MySql56 => &[
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--log-slave-updates",
            ],
        }
    }

    /// Makes an account that isn't there.
    pub(crate) fn create_account(self, account: &str, password: &str) -> String {
        match self {
            Kind::MariaDb1011 | Kind::MariaDb114 => {
                format!("CREATE OR REPLACE USER {account} IDENTIFIED BY '{password}'")
            }
            Kind::MySql80 | Kind::MySql57 => {
                format!("CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{password}'")
            }
            Kind::MySql56 => {
                format!("GRANT USAGE ON *.* TO {account} IDENTIFIED BY '{password}'")
            }
        }
    }

    /// Gives an account another password.
    pub(crate) fn set_password(self, account: &str, password: &str) -> String {
        match self {
            Kind::MySql56 => format!("SET PASSWORD FOR {account} = PASSWORD('{password}')"),
            _ => format!("ALTER USER {account} IDENTIFIED BY '{password}'"),
        }
    }

    /// The statement that gives an account what a follower needs.
    pub(crate) fn grant(self, account: &str) -> String {
        let family = if self.is_mysql() {
            Family::MySql
        } else {
            Family::MariaDb
        };
        check::grant_statement(family, self.visibility(), account)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A data directory as the server's installer leaves it; made once.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let status = Kind::chosen()
            .installer(&data)
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(
            status.success(),
            "{} has no data directory",
            Kind::chosen().name()
        );
        // Servers must not share their UUID.
        let _ = std::fs::remove_file(data.join("auto.cnf"));
        dir
    });
    made.path()
}

pub(crate) struct Server {
    pub(crate) kind: Kind,
    dir: TempDir,
    port: u16,
    options: Vec<String>,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Server {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Server {
            kind: Kind::chosen(),
            dir: tempfile::tempdir().unwrap(),
            port,
            options,
            child: None,
        };
        server.fresh_data();
        server.launch();
        server
    }

    pub(crate) fn fresh_data(&self) {
        let data = self.dir.path().join("data");
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(&template().join("data"), &data);
    }

    pub(crate) fn launch(&mut self) {
        let dir = self.dir.path().display();
        let child = self
            .kind
            .server()
            .args([
                "--bind-address=127.0.0.1",
                "--server-id=41",
                "--innodb-buffer-pool-size=16M",
                "--log-bin=binlog",
                "--binlog-format=ROW",
                "--performance-schema=OFF",
                "--skip-name-resolve",
            ])
            .args([
                format!("--datadir={dir}/data"),
                format!("--socket={dir}/socket"),
                format!("--pid-file={dir}/pid"),
                // A starting server removes what others have in a directory that they share; they crash.
                format!("--tmpdir={dir}"),
                format!("--port={}", self.port),
            ])
            .args(self.kind.arguments())
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        wait_until("the server accepts connections", || {
            self.try_sql("SELECT 1").is_some()
        });
        let account = "remora@'127.0.0.1'";
        self.sql(&self.kind.create_account(account, "secret"));
        self.sql(&self.kind.grant(account));
    }

    /// Ends it by its own process id.
    pub(crate) fn stop(&mut self, signal: &str) {
        if let Some(mut child) = self.child.take() {
            let _ = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status();
            let _ = child.wait();
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> String {
        self.child.as_ref().unwrap().id().to_string()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: self.port,
        }
    }

    pub(crate) fn socket(&self) -> Endpoint {
        Endpoint::Unix(self.dir.path().join("socket"))
    }

    /// Runs statements on a connection of root's. `None` if there is no connection.
    pub(crate) fn run(&self, statements: &[&str]) -> Option<Result<Vec<Row>, ClientError>> {
        let account = Account {
            user: "root".into(),
            password: String::new(),
        };
        let limit = Duration::from_secs(20);
        runtime().block_on(async {
            // root is root@localhost: over the socket.
            let mut client = Client::connect(&link_to(&self.socket(), 20_000), &account, limit)
                .await
                .ok()?;
            client
                .execute("SET SESSION sql_mode = DEFAULT")
                .await
                .ok()?;
            let mut rows = Vec::new();
            for statement in statements {
                match client.query(statement, 10_000).await {
                    Ok(result) => rows = result,
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(Ok(rows))
        })
    }

    fn try_sql(&self, sql: &str) -> Option<Vec<Row>> {
        let statements: Vec<_> = sql.split(";;").collect();
        let result = self.run(&statements)?;
        Some(result.unwrap_or_else(|error| panic!("{sql}: {error}")))
    }

    /// Statements, separated by two semicolons, on one connection of root's.
    pub(crate) fn sql(&self, sql: &str) -> Vec<Row> {
        self.try_sql(sql).unwrap()
    }

    /// Ends the follower's connections, or those of them that do this.
    pub(crate) fn kill(&self, condition: &str) {
        let ids = self.sql(&format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'remora' AND {condition}"
        ));
        for id in ids {
            let id = String::from_utf8(id[0].clone().unwrap()).unwrap();
            if let Err(error) = self.run(&[&format!("KILL {id}")]).unwrap() {
                // It may be gone by itself.
                assert_eq!(error.server_code(), Some(NO_SUCH_THREAD), "{error}");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("-KILL");
    }
}

/// Logs in and out again.
pub(crate) fn log_in(endpoint: &Endpoint, user: &str, password: &str) -> Result<(), ClientError> {
    let account = Account {
        user: user.into(),
        password: password.into(),
    };
    let limit = Duration::from_secs(20);
    let link = link_to(endpoint, 20_000);
    let connect = Client::connect(&link, &account, limit);
    runtime().block_on(connect).map(drop)
}

/// How a server is connected to without more ado.
pub(crate) fn link_to(endpoint: &Endpoint, connect_timeout_ms: u64) -> ServerLink {
    let upstream = UpstreamOptions {
        address: endpoint.clone(),
        connect_timeout_ms,
        ..UpstreamOptions::default()
    };
    ServerLink::new(&ListenOptions::default(), &upstream).unwrap()
}
