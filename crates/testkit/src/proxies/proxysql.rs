//! `ProxySQL`, whose cache keeps results for a set time whatever happens to the tables.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;

use crate::client::ConnectOptions;
use crate::process::{Process, Program};
use crate::scratch::Scratch;
use crate::servers::{APP_PASSWORD, APP_USER, Server};
use crate::{ports, programs};

const PATIENCE: Duration = crate::process::PATIENCE;
/// The account of its administrator, who can only connect from this machine.
const ADMIN: &str = "admin";
/// Memory for results, MiB.
const CACHE_MIB: u32 = 256;

/// A running `ProxySQL`.
#[derive(Debug)]
pub struct ProxySql {
    process: Process,
    address: SocketAddr,
    admin: SocketAddr,
    configuration: String,
    _scratch: Scratch,
}

impl ProxySql {
    /// Starts one in front of `server` that keeps the result of every `SELECT` for so long.
    pub fn start(
        server: &Server,
        threads: usize,
        connections_max: u32,
        time_to_live_ms: u32,
    ) -> anyhow::Result<ProxySql> {
        let scratch = Scratch::new()?;
        let (address, admin) = (ports::free()?, ports::free()?);
        let directory = scratch.join("data");
        std::fs::create_dir(&directory).context("can't make a directory for ProxySQL")?;
        let configuration = Settings {
            directory: directory.display().to_string(),
            address,
            admin,
            server: server.address(),
            threads,
            connections_max,
            time_to_live_ms,
        }
        .text();
        let file = scratch.join("proxysql.cnf");
        std::fs::write(&file, &configuration).context("can't write ProxySQL's configuration")?;
        let program = Program::new("proxysql", programs::find("proxysql")?, scratch.join("log"));
        let mut process = program
            .args([
                "--foreground",
                "--initial",
                "--no-version-check",
                "--config",
            ])
            .arg(file)
            .arg("--datadir")
            .arg(directory)
            .spawn()?;
        let through = server.app().at(address);
        process
            .wait_until("a connection through ProxySQL", PATIENCE, || {
                let mut client = through.connect().ok()?;
                client.query_value("SELECT 1").ok()
            })
            .context("ProxySQL did not start")?;
        Ok(ProxySql {
            process,
            address,
            admin,
            configuration,
            _scratch: scratch,
        })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The file that it was started with.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// What it counts, by name: `Query_Cache_count_GET_OK`.
    pub fn counters(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let mut client = ConnectOptions::new(self.admin, ADMIN, ADMIN)
            .connect()
            .context("can't connect to ProxySQL as its administrator")?;
        let rows = client
            .query("SELECT Variable_Name, Variable_Value FROM stats.stats_mysql_global")?
            .rows()?;
        let pair = |row: Vec<Option<Vec<u8>>>| {
            let text = |index: usize| {
                let bytes = row.get(index)?.as_deref()?;
                Some(String::from_utf8_lossy(bytes).into_owned())
            };
            Some((text(0)?, text(1)?.parse().ok()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }
}

/// What goes into the file.
struct Settings {
    directory: String,
    address: SocketAddr,
    admin: SocketAddr,
    server: SocketAddr,
    threads: usize,
    connections_max: u32,
    time_to_live_ms: u32,
}

impl Settings {
    fn text(&self) -> String {
        let Settings {
            directory,
            address,
            admin,
            server,
            threads,
            connections_max,
            time_to_live_ms,
        } = self;
        format!(
            r#"datadir="{directory}"
admin_variables=
{{
    admin_credentials="{ADMIN}:{ADMIN}"
    mysql_ifaces="{admin}"
}}
mysql_variables=
{{
    threads={threads}
    max_connections={connections_max}
    interfaces="{address}"
    monitor_enabled=false
    query_cache_size_MB={CACHE_MIB}
}}
mysql_servers=
(
    {{ address="{}", port={}, hostgroup=0, max_connections={connections_max} }}
)
mysql_users=
(
    {{ username="{APP_USER}", password="{APP_PASSWORD}", default_hostgroup=0, max_connections={connections_max} }}
)
mysql_query_rules=
(
    {{ rule_id=1, active=1, match_digest="^SELECT", destination_hostgroup=0, cache_ttl={time_to_live_ms}, apply=1 }}
)
"#,
            server.ip(),
            server.port()
        )
    }
}
