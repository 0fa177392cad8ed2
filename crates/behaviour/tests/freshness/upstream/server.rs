//! A private server with an account whose rights are exactly those that a follower needs.

use std::time::Duration;

use remora::config::options::{ListenOptions, UpstreamOptions};
use remora::config::server_link;
use remora_net::Endpoint;
use remora_testkit::client::ClientError as SqlError;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::servers::{self, ServerOptions};
use remora_upstream::check;
use remora_upstream::client::{Account, Client, ClientError, text};
use remora_upstream::link::ServerLink;
use remora_upstream::server_facts::{Family, Visibility};
use remora_wire::rows::Row;

pub(crate) use remora_testkit::servers::Kind;

/// `ER_NO_SUCH_THREAD`.
const NO_SUCH_THREAD: u16 = 1094;
/// The follower's account here. A server prefers it to the other `remora`, which may come from
/// anywhere.
pub(crate) const ACCOUNT: &str = "remora@'127.0.0.1'";
/// Its password.
pub(crate) const PASSWORD: &str = "secret";

/// Waits for a condition; a failure says which.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, PATIENCE, || Ok(condition().then_some(()))).unwrap();
}

fn visibility(kind: Kind) -> Visibility {
    match kind {
        Kind::MariaDb1011 | Kind::MariaDb114 => Visibility::Position,
        Kind::MySql80 => Visibility::Gtids { xa_in_order: true },
        Kind::MySql57 => Visibility::Gtids { xa_in_order: false },
        Kind::MySql56 => Visibility::NeverTold,
    }
}

/// Makes the account if it isn't there.
fn create_account(kind: Kind) -> String {
    if kind == Kind::MySql56 {
        return format!("GRANT USAGE ON *.* TO {ACCOUNT} IDENTIFIED BY '{PASSWORD}'");
    }
    let identified = kind.identified_by(PASSWORD);
    format!("CREATE USER IF NOT EXISTS {ACCOUNT} {identified}")
}

/// Gives an account another password.
pub(crate) fn set_password(kind: Kind, account: &str, password: &str) -> String {
    if kind == Kind::MySql56 {
        return format!("SET PASSWORD FOR {account} = PASSWORD('{password}')");
    }
    format!("ALTER USER {account} IDENTIFIED BY '{password}'")
}

/// The statement that gives an account what a follower needs.
pub(crate) fn grant(kind: Kind, account: &str) -> String {
    let family = if kind.is_mysql() {
        Family::MySql
    } else {
        Family::MariaDb
    };
    check::grant_statement(family, visibility(kind), account)
}

pub(crate) struct Server {
    pub(crate) kind: Kind,
    server: servers::Server,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Server {
        let options = ServerOptions {
            further: options.iter().map(|option| (*option).to_owned()).collect(),
            ..ServerOptions::default()
        };
        let server = servers::Server::start(options).unwrap();
        let server = Server {
            kind: server.kind(),
            server,
        };
        server.make_account();
        server
    }

    fn make_account(&self) {
        self.sql(&create_account(self.kind));
        self.sql(&grant(self.kind, ACCOUNT));
    }

    pub(crate) fn restart(&mut self) {
        self.server.restart().unwrap();
    }

    pub(crate) fn crash_and_start(&mut self) {
        self.server.crash().unwrap();
        self.server.start_again().unwrap();
    }

    /// Puts a fresh server in its place.
    pub(crate) fn replace(&mut self) {
        self.server.restart_with_other_contents().unwrap();
        self.make_account();
    }

    /// Its process id.
    pub(crate) fn id(&self) -> String {
        self.server.id().unwrap().to_string()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let address = self.server.address();
        Endpoint::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }

    pub(crate) fn socket(&self) -> Endpoint {
        Endpoint::Unix(self.server.socket())
    }

    /// Statements, separated by two semicolons, on one connection of root's. Gives the last one's
    /// rows.
    pub(crate) fn sql(&self, sql: &str) -> Vec<Row> {
        self.try_sql(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The same of statements that may fail.
    pub(crate) fn try_sql(&self, sql: &str) -> Result<Vec<Row>, SqlError> {
        let mut root = self.server.root().unwrap();
        let mut rows = Vec::new();
        for statement in sql.split(";;") {
            rows = root.query(statement)?.rows()?;
        }
        Ok(rows)
    }

    /// The newest connection's ID.
    pub(crate) fn newest_connection_id(&self) -> u64 {
        let ids = self.sql("SELECT MAX(ID) FROM information_schema.PROCESSLIST");
        text(&ids[0], 0).unwrap().parse().unwrap()
    }

    /// Ends the follower's connections, or those of them that do this. Gives how many.
    pub(crate) fn kill(&self, condition: &str) -> usize {
        let ids = self.sql(&format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'remora' AND {condition}"
        ));
        let mut root = self.server.root().unwrap();
        let mut killed = 0;
        for id in ids {
            let id = String::from_utf8(id[0].clone().unwrap()).unwrap();
            match root.query(&format!("KILL {id}")) {
                Ok(_) => killed += 1,
                // It may be gone by itself.
                Err(error) => assert_eq!(error.code(), Some(NO_SUCH_THREAD), "{error}"),
            }
        }
        killed
    }
}

/// Logs in and out again.
pub(crate) fn log_in(endpoint: &Endpoint, user: &str, password: &str) -> Result<(), ClientError> {
    let account = Account {
        user: user.into(),
        password: password.into(),
    };
    with_client(endpoint, &account, async |_| Ok(()))
}

/// What the server answers to a question on a connection of Remora's own.
pub(crate) fn ask(endpoint: &Endpoint, sql: &str) -> String {
    let account = Account {
        user: "remora".into(),
        password: PASSWORD.into(),
    };
    let rows = with_client(endpoint, &account, async |client| {
        client.query(sql, 1).await
    });
    text(&rows.unwrap()[0], 0).unwrap().to_owned()
}

fn with_client<T>(
    endpoint: &Endpoint,
    account: &Account,
    then: impl AsyncFnOnce(&mut Client) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let limit = Duration::from_secs(20);
    let link = link_to(endpoint, 20_000);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(&link, account, limit).await?;
        then(&mut client).await
    })
}

/// How a server is connected to without more ado.
pub(crate) fn link_to(endpoint: &Endpoint, connect_timeout_ms: u64) -> ServerLink {
    let upstream = UpstreamOptions {
        address: endpoint.clone(),
        connect_timeout_ms,
        ..UpstreamOptions::default()
    };
    server_link(&ListenOptions::default(), &upstream).unwrap()
}
