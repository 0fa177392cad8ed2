//! A private server with a Remora in front of it, and a way to know that Remora has seen all that
//! the server has.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use remora::reason::Outcome;
use remora_cache::BrokenRules;

use super::answer::Reply;
use super::script::{Question, Statement};
use remora_testkit::client::{Client, ClientError, ConnectOptions, StatementId};
use remora_testkit::interrupt;
use remora_testkit::log_gate::LogGate;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions};

/// Longest wait until Remora has seen a change.
const PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// Longest wait until a statement is counted.
const COUNTING: Duration = Duration::from_secs(5);
/// Lines of the server's log that are shown when a case can't be run.
const LOG_LINES: usize = 30;
/// A row that is written after each change: once Remora has it in memory, it has seen what was
/// before.
const SENTINEL: &str = "SELECT n FROM lab.sentinel WHERE id = 1";

/// A server and a Remora that searches use one after the other.
pub struct Bed {
    // Dropped in this order.
    probe: Client,
    aside: Client,
    remora: InProcessRemora,
    gate: LogGate,
    server: Server,
    sentinel: u64,
    schemas: u32,
    broken: BrokenRules,
}

impl Bed {
    /// Starts both.
    ///
    /// # Errors
    /// One of them doesn't start.
    pub fn start(kind: Kind, broken: BrokenRules) -> anyhow::Result<Bed> {
        let mut options = ServerOptions {
            kind: Some(kind),
            ..ServerOptions::default()
        };
        // A slow answer says so in its flags, and triggers are made by one who may not do all.
        options.further.push("--long-query-time=3600".to_owned());
        options
            .further
            .push("--log-bin-trust-function-creators=1".to_owned());
        let server = Server::start(options)?;
        server.execute([
            "CREATE TABLE sentinel (id INT PRIMARY KEY, n BIGINT) ENGINE=InnoDB",
            "INSERT INTO sentinel VALUES (1, 0)",
        ])?;
        let gate = LogGate::start(server.address())?;
        let options = RemoraOptions {
            threads: Some(1),
            ..RemoraOptions::following()
        };
        let options = options.with("upstream.address", &gate.address().to_string());
        let remora = InProcessRemora::start_broken(&server, &options, broken)?;
        let probe = server.app().at(remora.address()).connect()?;
        let aside = server.app().connect()?;
        Ok(Bed {
            probe,
            aside,
            remora,
            gate,
            server,
            sentinel: 0,
            schemas: 0,
            broken,
        })
    }

    /// Whether the server has ended, by a bug of its own: some of what is searched with kills some
    /// servers.
    pub(super) fn has_crashed(&self) -> bool {
        self.server.app().connect().is_err()
    }

    /// Puts a fresh server and a fresh Remora in their place.
    pub(super) fn renew(&mut self) -> anyhow::Result<()> {
        *self = Bed::start(self.kind(), self.broken)?;
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

    /// Statements counted so far: all of them, and those answered from memory.
    fn counts(&self) -> (u64, u64) {
        let Some(app) = self.remora.app() else {
            return (0, 0);
        };
        let metrics = &app.shared().metrics;
        let count = |outcome: Outcome| -> u64 {
            metrics
                .workers()
                .iter()
                .map(|one| one.outcome(outcome))
                .sum()
        };
        (
            Outcome::all().iter().map(|outcome| count(*outcome)).sum(),
            count(Outcome::Hit),
        )
    }

    /// Runs what is one statement to Remora, while nobody else speaks to it; tells whether memory
    /// answered it.
    pub(super) fn counted<T>(&self, run: impl FnOnce() -> T) -> (bool, T) {
        let before = self.counts();
        let value = run();
        let end = Instant::now() + COUNTING;
        // It is counted after its answer was sent.
        while self.counts().0 == before.0 && Instant::now() < end {
            std::thread::yield_now();
        }
        (self.counts().1 > before.1, value)
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
    /// kept.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        self.gate.hold(false);
        self.sentinel += 1;
        let wanted = self.sentinel.to_string();
        let write = format!("UPDATE lab.sentinel SET n = {wanted} WHERE id = 1");
        self.aside.query(&write)?;
        let end = Instant::now() + PATIENCE;
        loop {
            interrupt::check()?;
            let (is_hit, value) = counted_apart(&self.remora, &mut self.probe)?;
            if is_hit && value.as_ref() == Some(&wanted) && self.knows_views() {
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

    /// Whether Remora knows which views run code. Until then it takes each for one that does, and
    /// nothing could be found out about what it makes of them.
    fn knows_views(&self) -> bool {
        let app = self.remora.app();
        app.is_some_and(|app| app.shared().upstream.catalogue.hidden_code.is_known())
    }
}

/// Asks for the sentinel.
fn counted_apart(
    remora: &InProcessRemora,
    probe: &mut Client,
) -> anyhow::Result<(bool, Option<String>)> {
    let hits = |remora: &InProcessRemora| -> Option<u64> {
        let metrics = &remora.app()?.shared().metrics;
        Some(
            metrics
                .workers()
                .iter()
                .map(|one| one.outcome(Outcome::Hit))
                .sum(),
        )
    };
    let before = hits(remora);
    let value = probe.query_value(SENTINEL).context("the sentinel")?;
    let end = Instant::now() + Duration::from_micros(300);
    while hits(remora) == before && Instant::now() < end {
        std::thread::yield_now();
    }
    Ok((hits(remora) > before, value))
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
