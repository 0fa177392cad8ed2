//! A private server with a Remora in front of it, and a way to know that Remora has seen all that
//! the server has.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::answer::Reply;
use super::front::{Build, Counts, Front};
use super::script::{Change, Question, READER, READER_PASSWORD, Script, Statement};
use remora_testkit::client::{Client, ClientError, ConnectOptions, StatementId};
use remora_testkit::interrupt;
use remora_testkit::log_gate::LogGate;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{FOLLOW_USER, Kind, SCHEMA, Server, ServerOptions};

/// Longest wait until Remora has seen a change.
const PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// Longest wait until a statement is counted.
const COUNTING: Duration = Duration::from_secs(5);
/// Lines of the server's log that are shown when a case can't be run.
const LOG_LINES: usize = 30;
/// A row that is written after each change: once Remora has it in memory, it has seen what was
/// before.
const SENTINEL: &str = "SELECT n FROM lab.sentinel WHERE id = 1";

/// How often it is looked whether a prepared transaction has been let go of, and how long lies
/// between. InnoDB renews what it tells of its transactions only when nobody has asked for 0.1 s.
const LET_GO_TRIES: u32 = 20;
const LET_GO_RENEWED: Duration = Duration::from_millis(150);
/// What a server needs on which every search can be run.
const TABLES: [&str; 2] = [
    "CREATE TABLE sentinel (id INT PRIMARY KEY, n BIGINT) ENGINE=InnoDB",
    "INSERT INTO sentinel VALUES (1, 0)",
];

/// A server and a Remora that searches use one after the other.
pub struct Bed {
    // Dropped in this order.
    probe: Client,
    aside: Client,
    remora: Front,
    gate: LogGate,
    server: Server,
    /// A second one, once a case has needed it.
    other: Option<Other>,
    sentinel: u64,
    schemas: u32,
    build: Build,
}

/// The server to which the address leads at times.
struct Other {
    aside: Client,
    server: Server,
}

impl Other {
    fn start(kind: Kind) -> anyhow::Result<Other> {
        let server = start_server(kind, &["--server-id=2"])?;
        let aside = server.app().connect()?;
        Ok(Other { aside, server })
    }
}

fn start_server(kind: Kind, further: &[&str]) -> anyhow::Result<Server> {
    // A slow answer says so in its flags, and triggers are made by one who may not do all.
    let usual = [
        "--long-query-time=3600",
        "--log-bin-trust-function-creators=1",
    ];
    let further = usual.iter().chain(further).map(ToString::to_string);
    let server = Server::start(ServerOptions {
        kind: Some(kind),
        further: further.collect(),
        ..ServerOptions::default()
    })?;
    server.execute(TABLES)?;
    Ok(server)
}

impl Bed {
    /// Starts both.
    ///
    /// # Errors
    /// One of them doesn't start.
    pub fn start(kind: Kind, build: Build) -> anyhow::Result<Bed> {
        let server = start_server(kind, &[])?;
        let gate = LogGate::start(server.address())?;
        let options = RemoraOptions {
            threads: Some(1),
            ..RemoraOptions::following()
        };
        // A server that was unfit, or another one, is soon followed again.
        let options = options
            .with("upstream.address", &gate.address().to_string())
            .with("follow.reconnect_ms_min", "5")
            .with("follow.reconnect_ms_max", "100");
        let remora = Front::start(&server, options, &build)?;
        let probe = server.app().at(remora.address()).connect()?;
        let aside = server.app().connect()?;
        Ok(Bed {
            probe,
            aside,
            remora,
            gate,
            server,
            other: None,
            sentinel: 0,
            schemas: 0,
            build,
        })
    }

    /// Whether the server has ended, by a bug of its own: some of what is searched with kills some
    /// servers.
    pub(super) fn has_crashed(&self) -> bool {
        self.server.app().connect().is_err()
    }

    /// Puts a fresh server and a fresh Remora in their place.
    pub(super) fn renew(&mut self) -> anyhow::Result<()> {
        *self = Bed::start(self.kind(), self.build.clone())?;
        Ok(())
    }

    /// What the server is.
    pub fn kind(&self) -> Kind {
        self.server.kind()
    }

    /// The last lines that the server wrote to its log: it may have ended by a bug of its own.
    pub(super) fn server_log(&self) -> String {
        let text = std::fs::read_to_string(self.server.log_path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// A connection that nobody compares with, past Remora.
    pub(super) fn aside(&mut self) -> &mut Client {
        &mut self.aside
    }

    /// Holds the log back from Remora, or lets it go; [`Bed::settle`] lets it go too.
    pub(super) fn hold_log(&self, is_held: bool) {
        self.gate.hold(is_held);
    }

    /// Makes an empty schema; gives its name.
    pub(super) fn new_schema(&mut self) -> anyhow::Result<String> {
        self.schemas += 1;
        let name = format!("search{}", self.schemas);
        self.aside.query(&format!("CREATE DATABASE {name}"))?;
        self.aside.query(&format!("USE {name}"))?;
        Ok(name)
    }

    /// How to connect to a schema, through Remora or past it.
    pub(super) fn options(&self, schema: &str, through: bool) -> ConnectOptions {
        let options = self.server.app().schema(schema);
        if through {
            options.at(self.remora.address())
        } else {
            options
        }
    }

    /// How those who ask connect in a case.
    pub(super) fn asking(&self, script: &Script, schema: &str, through: bool) -> ConnectOptions {
        if !script.reads_as_reader {
            return self.options(schema, through);
        }
        let address = if through {
            self.remora.address()
        } else {
            self.server.address()
        };
        ConnectOptions::new(address, READER, READER_PASSWORD).schema(schema)
    }

    /// Waits until a prepared transaction that was left by its connection belongs to nobody, if
    /// there is one. A MariaDB that is told to commit it a moment earlier loses its rows.
    pub(super) fn wait_until_let_go(&mut self) -> anyhow::Result<()> {
        let orphans =
            "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
        for _ in 0..LET_GO_TRIES {
            interrupt::check()?;
            if self.aside.query("XA RECOVER")?.rows()?.is_empty() {
                return Ok(());
            }
            std::thread::sleep(LET_GO_RENEWED);
            let found = self.aside.query_value(orphans)?;
            if found.is_some_and(|count| count != "0") {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sets back what a change has set for the whole server.
    pub(super) fn set_back(&mut self, change: &Change) -> anyhow::Result<()> {
        for statement in &change.statements {
            let rest = statement.text.strip_prefix("SET GLOBAL ");
            if let Some(name) = rest.and_then(|rest| rest.split(' ').next()) {
                let text = format!("SET GLOBAL {name} = DEFAULT");
                tolerate(self.aside.query(&text).map(drop))?;
            }
        }
        Ok(())
    }

    /// Makes the server what it is at the beginning: its settings, and what the follower may do.
    pub(super) fn restore_facts(&mut self) -> anyhow::Result<()> {
        for text in [
            "SET SESSION sql_log_bin = 1",
            "SET GLOBAL binlog_format = ROW",
            "SET GLOBAL binlog_row_image = FULL",
            // MySQL's alone.
            "SET GLOBAL gtid_mode = ON",
        ] {
            tolerate(self.aside.query(text).map(drop))?;
        }
        self.server.make_accounts()?;
        // The log tells of it, so that Remora looks at its privileges again.
        let text = format!("GRANT SELECT ON *.* TO {FOLLOW_USER}@'%'");
        self.aside.query(&text)?;
        Ok(())
    }

    /// Makes the schema of a case on the other server, too, which is started if there is none.
    pub(super) fn set_up_other(&mut self, schema: &str, script: &Script) -> anyhow::Result<()> {
        if self.other.is_none() {
            self.other = Some(Other::start(self.kind())?);
        }
        let aside = &mut self.other()?.aside;
        aside.query(&format!("CREATE DATABASE {schema}"))?;
        aside.query(&format!("USE {schema}"))?;
        for text in script.setup.iter().chain(&script.other_setup) {
            tolerate(aside.query(text).map(drop)).with_context(|| text.clone())?;
        }
        Ok(())
    }

    fn other(&mut self) -> anyhow::Result<&mut Other> {
        self.other.as_mut().context("there is no other server")
    }

    /// Drops the schema of a case wherever it is.
    pub(super) fn drop_schema(&mut self, schema: &str) -> anyhow::Result<()> {
        let text = format!("DROP DATABASE IF EXISTS {schema}");
        tolerate(self.aside.query(&text).map(drop))?;
        if let Some(other) = &mut self.other {
            tolerate(other.aside.query(&text).map(drop))?;
        }
        Ok(())
    }

    /// How to connect to a schema on the other server, past Remora.
    pub(super) fn options_of_other(&mut self, schema: &str) -> anyhow::Result<ConnectOptions> {
        Ok(self.other()?.server.app().schema(schema))
    }

    /// New connections of Remora go to the other server.
    pub(super) fn move_to_other(&mut self) -> anyhow::Result<()> {
        let address = self.other()?.server.address();
        self.gate.move_to(address);
        Ok(())
    }

    /// And to the first again.
    pub(super) fn move_back(&self) {
        self.gate.move_to(self.server.address());
    }

    /// While the address leads there: waits until Remora follows the other server.
    pub(super) fn settle_at_other(&mut self) -> anyhow::Result<()> {
        let mut probe = self.options(SCHEMA, true).connect()?;
        self.swap_with_other(&mut probe)?;
        let settled = self.settle(false);
        self.swap_with_other(&mut probe)?;
        settled
    }

    fn swap_with_other(&mut self, probe: &mut Client) -> anyhow::Result<()> {
        let other = self.other.as_mut().context("there is no other server")?;
        std::mem::swap(&mut self.aside, &mut other.aside);
        std::mem::swap(&mut self.probe, probe);
        Ok(())
    }

    /// Runs what is one statement to Remora, while nobody else speaks to it; tells whether memory
    /// answered it.
    pub(super) fn counted<T>(&self, run: impl FnOnce() -> T) -> (bool, T) {
        // If it has ended, no connection to it goes on, and they say so.
        let before = self.remora.counts().ok();
        let value = run();
        let end = Instant::now() + COUNTING;
        let all = |counts: Option<Counts>| counts.map(|counts| counts.all);
        let mut after = self.remora.counts().ok();
        // It is counted after its answer was sent.
        while after.is_some() && all(after) == all(before) && Instant::now() < end {
            std::thread::yield_now();
            after = self.remora.counts().ok();
        }
        let is_hit = match (before, after) {
            (Some(before), Some(after)) => after.hits > before.hits,
            _ => false,
        };
        (is_hit, value)
    }

    /// The same if it goes to Remora at all.
    pub(super) fn counted_if<T>(&self, through: bool, run: impl FnOnce() -> T) -> (bool, T) {
        if through {
            self.counted(run)
        } else {
            (false, run())
        }
    }

    /// Waits until Remora has seen everything that was changed before, and until new results can be
    /// kept; or, if it `may_be_off`, until it serves nothing from memory because of what the server
    /// is.
    pub(super) fn settle(&mut self, may_be_off: bool) -> anyhow::Result<()> {
        self.gate.hold(false);
        self.sentinel += 1;
        let wanted = self.sentinel.to_string();
        let write = format!("UPDATE lab.sentinel SET n = {wanted} WHERE id = 1");
        self.aside.query(&write)?;
        let end = Instant::now() + PATIENCE;
        loop {
            interrupt::check()?;
            let (is_hit, value) = counted_apart(&self.remora, &mut self.probe)?;
            if is_hit && value.as_ref() == Some(&wanted) && self.remora.knows_views() {
                return Ok(());
            }
            if may_be_off && self.remora.is_off()? {
                return Ok(());
            }
            if Instant::now() >= end {
                anyhow::bail!(
                    "waited in vain for Remora to see {wanted}; it has {value:?}, from memory: {is_hit}"
                );
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Asks for the sentinel.
fn counted_apart(remora: &Front, probe: &mut Client) -> anyhow::Result<(bool, Option<String>)> {
    let before = remora.counts()?.hits;
    let value = probe.query_value(SENTINEL).context("the sentinel")?;
    let end = Instant::now() + Duration::from_micros(300);
    while remora.counts()?.hits == before && Instant::now() < end {
        std::thread::yield_now();
    }
    Ok((remora.counts()?.hits > before, value))
}

/// Who asks the questions, on one connection.
pub(super) struct Asker {
    client: Client,
    deprecate_eof: bool,
    prepared: Vec<Option<StatementId>>,
}

impl Asker {
    /// Connects and applies the settings of readers; one that the server doesn't take is left out.
    pub(super) fn connect(
        options: &ConnectOptions,
        settings: &[String],
        questions: usize,
    ) -> anyhow::Result<Asker> {
        let mut client = options.connect()?;
        for text in settings {
            tolerate(client.query(text).map(drop))?;
        }
        let deprecate_eof = client
            .capabilities()
            .has(remora_wire::Capabilities::DEPRECATE_EOF);
        Ok(Asker {
            client,
            deprecate_eof,
            prepared: vec![None; questions],
        })
    }

    /// Whether a question has to be prepared yet.
    pub(super) fn prepares(&self, at: usize, question: &Question) -> bool {
        question.statement.values.is_some() && self.prepared[at].is_none()
    }

    /// Has a question prepared anew when it is asked next.
    pub(super) fn forget(&mut self, at: usize) {
        self.prepared[at] = None;
    }

    /// Prepares a question if that is needed and not done; gives the error's answer if it can't be.
    pub(super) fn prepare(
        &mut self,
        at: usize,
        question: &Question,
    ) -> anyhow::Result<Option<Reply>> {
        if !self.prepares(at, question) {
            return Ok(None);
        }
        match self.client.prepare(question.statement.text.as_bytes()) {
            Ok(id) => self.prepared[at] = Some(id),
            Err(ClientError::Server(_)) => return Ok(Some(self.reply())),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    /// Asks a question that is prepared where that is needed.
    pub(super) fn ask(&mut self, at: usize, question: &Question) -> anyhow::Result<Reply> {
        let statement = &question.statement;
        let outcome = match (&statement.values, self.prepared[at]) {
            (Some(values), Some(id)) => self.client.execute(id, values).map(drop),
            _ => self.client.query(&statement.text).map(drop),
        };
        tolerate(outcome).with_context(|| statement.text.clone())?;
        Ok(self.reply())
    }

    fn reply(&self) -> Reply {
        Reply::parse(self.client.answer_bytes(), self.deprecate_eof)
    }
}

/// An error that the server answered with is an answer too.
pub(super) fn tolerate(outcome: Result<(), ClientError>) -> Result<(), ClientError> {
    match outcome {
        Err(ClientError::Server(_)) => Ok(()),
        other => other,
    }
}

/// Runs a statement that may fail on the server. A prepared one stays open until its connection
/// ends: closing isn't answered, so Remora could count it while the next statement is waited for
/// ([`Bed::counted`]), which would then be taken for relayed though memory answered it.
pub(super) fn perform(client: &mut Client, statement: &Statement) -> Result<(), ClientError> {
    let Some(values) = &statement.values else {
        return tolerate(client.query(&statement.text).map(drop));
    };
    match client.prepare(statement.text.as_bytes()) {
        Ok(id) => tolerate(client.execute(id, values).map(drop)),
        Err(error) => tolerate(Err(error)),
    }
}
