//! What the behaviour tests share: a server, a Remora in front of it, and clients that tell
//! what became of each statement.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

pub mod raw;

use std::sync::Arc;

use remora_cache::{BrokenRules, FenceScope, Tag};
use remora_engine::reason::Outcome;
use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::log_gate::LogGate;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, Leased, Pool, Server, ServerOptions};
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;

use crate::outcome::{counts, is_unproven, label};

pub use remora_testkit::process::PATIENCE;

/// A second account on the servers here.
pub const OTHER_USER: &str = "other";
/// Its password.
pub const OTHER_PASSWORD: &str = "other-password";

/// `COM_PING`.
pub const PING: u8 = 0x0e;

const HEARTBEAT: &str = "follow.heartbeat_ms";

/// Options of every test that doesn't set others. A machine, or the server, may stand still: for a
/// second the last proof shall not be too old for a hit, for five the server's silence shall not
/// end the following, for fifteen the last check of the server not be too old, and for twenty no
/// question be given up. However slow the test is, no statement goes to the server only so that it
/// keeps the connection. What happens otherwise has tests of its own.
const PATIENT: [(&str, &str); 5] = [
    // Remora asks for a proof four times as often: a longer time would make many tests wait.
    ("follow.lag_ms_max", "2000"),
    // Five times as long a silence ends the following.
    (HEARTBEAT, "1000"),
    ("follow.check_age_ms_max", "20000"),
    ("upstream.query_timeout_ms", "20000"),
    ("workers.server_contact_ms", "3600000"),
];

static SERVERS: Pool = Pool::new(start);

/// A server that this test has to itself until it lets go of it.
pub fn lease() -> Arc<Leased> {
    Arc::new(SERVERS.lease().unwrap())
}

fn start() -> anyhow::Result<Server> {
    let mut options = ServerOptions::default();
    options.further.push("--max-allowed-packet=64M".to_owned());
    if Kind::from_environment()? == Kind::MySql56 {
        // It takes no value that is longer than a tenth of these.
        options
            .further
            .push("--innodb-log-file-size=128M".to_owned());
    }
    let server = Server::start(options)?;
    let identified = server.kind().identified_by(OTHER_PASSWORD);
    server.execute([
        format!("CREATE USER {OTHER_USER}@'%' {identified}"),
        format!("GRANT ALL ON *.* TO {OTHER_USER}@'%'"),
    ])?;
    Ok(server)
}

/// With options for which hardly a pause is too long, where a test sets none.
pub fn patient(mut options: RemoraOptions) -> RemoraOptions {
    for (option, value) in PATIENT {
        if !options.set.iter().any(|(set, _)| set == option) {
            options = options.with(option, value);
        }
    }
    options
}

/// Waits until a Remora has seen all that its server has committed so far.
pub fn catch_up(remora: &InProcessRemora) {
    let shared = remora.app().unwrap().shared();
    let (timeline, clock) = (&shared.timeline, &shared.clock);
    // A fence that nobody's tables have is lowered when the log has passed it.
    let tag = Tag::table("no schema has this name", "nor any table");
    timeline.raise(FenceScope::Tables(vec![tag])).answered();
    shared.upstream.wake();
    wait_for("the follower to have seen everything", PATIENCE, || {
        let as_of = timeline.as_of();
        let is_lowered = |as_of| timeline.check(as_of, &[tag], clock.now_ms()).is_ok();
        // The list of views last: what is applied before may outdate it.
        let is_done =
            as_of.is_some_and(is_lowered) && shared.upstream.catalogue.hidden_code.is_known();
        Ok(is_done.then_some(()))
    })
    .unwrap();
}

/// A server that a test has to itself, a schema on it, and a Remora in front.
pub struct Front {
    // Dropped in this order.
    remora: InProcessRemora,
    server: Arc<Leased>,
    schema: String,
}

impl Front {
    /// Makes the schema, runs statements in it, and starts a Remora that caches.
    pub fn new(schema: &str, statements: &[&str]) -> Front {
        Front::with(schema, RemoraOptions::following(), statements)
    }

    /// The same with options of the test's own.
    pub fn with(schema: &str, options: RemoraOptions, statements: &[&str]) -> Front {
        Front::on(lease(), schema, options, statements)
    }

    /// In front of this server, with options of the test's own.
    pub fn on(
        server: Arc<Leased>,
        schema: &str,
        options: RemoraOptions,
        statements: &[&str],
    ) -> Front {
        Front::breaking(BrokenRules::default(), server, schema, options, statements)
    }

    /// The same with rules of consistency broken, for tests that must notice it.
    pub fn breaking(
        broken: BrokenRules,
        server: Arc<Leased>,
        schema: &str,
        options: RemoraOptions,
        statements: &[&str],
    ) -> Front {
        let prepare = [format!("CREATE DATABASE {schema}"), format!("USE {schema}")];
        let given = statements.iter().map(|text| (*text).to_owned());
        server.execute(prepare.into_iter().chain(given)).unwrap();
        let options = patient(RemoraOptions {
            threads: Some(1),
            ..options
        });
        Front {
            remora: InProcessRemora::start_broken(&server, &options, broken).unwrap(),
            server,
            schema: schema.to_owned(),
        }
    }

    /// The same behind a log that can be held back. The age of the last proof or check shall not be
    /// what stops hits then, nor that the server has been silent for long.
    pub fn behind_gate(
        server: Arc<Leased>,
        schema: &str,
        options: RemoraOptions,
        statements: &[&str],
    ) -> (Front, LogGate) {
        let gate = LogGate::start(server.address()).unwrap();
        let mut options = options
            .with("upstream.address", &gate.address().to_string())
            .with("follow.lag_ms_max", "60000")
            .with("follow.check_age_ms_max", "3600000");
        if !options.set.iter().any(|(option, _)| option == HEARTBEAT) {
            options = options.with(HEARTBEAT, "30000");
        }
        (Front::on(server, schema, options, statements), gate)
    }

    /// Stops Remora in good order, does something, and starts another with these options.
    #[must_use]
    pub fn restarted(self, options: RemoraOptions, meanwhile: impl FnOnce(&Server)) -> Front {
        let Front {
            remora,
            server,
            schema,
        } = self;
        drop(remora);
        meanwhile(&server);
        let options = patient(RemoraOptions {
            threads: Some(1),
            ..options
        });
        Front {
            remora: InProcessRemora::start(&server, &options).unwrap(),
            server,
            schema,
        }
    }

    /// The Remora.
    pub fn remora(&self) -> &InProcessRemora {
        &self.remora
    }

    /// The server behind it.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The test's schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// How an application connects directly.
    pub fn options(&self) -> ConnectOptions {
        self.server.app().schema(&self.schema)
    }

    /// Every way in which a client can ask for the end of a result set.
    pub fn flavours(&self) -> Vec<ConnectOptions> {
        let further = [
            Capabilities(0),
            Capabilities::OPTIONAL_RESULTSET_METADATA,
            Capabilities::SESSION_TRACK,
            Capabilities::QUERY_ATTRIBUTES,
            Capabilities::MARIADB_EXTENDED_METADATA,
        ];
        let both = [true, false].into_iter();
        both.flat_map(|deprecate_eof| {
            let options = self.options();
            further.map(move |further| ConnectOptions {
                deprecate_eof,
                further,
                ..options.clone()
            })
        })
        .collect()
    }

    /// A connection past Remora.
    pub fn direct(&self) -> Client {
        self.options().connect().unwrap()
    }

    /// A connection through Remora, by the options of a direct one.
    pub fn guest_as(&self, options: &ConnectOptions) -> Guest<'_> {
        let client = options.clone().at(self.remora.address()).connect();
        Guest {
            client: client.unwrap(),
            front: self,
        }
    }

    /// A connection through Remora.
    pub fn guest(&self) -> Guest<'_> {
        self.guest_as(&self.options())
    }

    /// Waits until Remora has seen all that the server has committed so far.
    pub fn catch_up(&self) {
        catch_up(&self.remora);
    }

    /// Waits until all that was committed is known, and known to be visible: transactions that
    /// begin from now on have it.
    pub fn settle(&self) {
        self.catch_up();
        let shared = self.remora.app().unwrap().shared();
        wait_for("the watermark", PATIENCE, || {
            shared.upstream.wake();
            let timeline = &shared.timeline;
            Ok((timeline.visible() >= timeline.applied()).then_some(()))
        })
        .unwrap();
    }

    /// Statements whose outcome has been counted so far. One is counted after its answer was sent.
    pub fn counted(&self) -> u64 {
        counts(&self.remora).iter().sum()
    }

    /// Statements answered from memory so far.
    pub fn hits(&self) -> u64 {
        counts(&self.remora)[Outcome::Hit.index()]
    }
}

/// What came of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `hit`, `fill`, `write`, or the reason of a bypass.
    pub outcome: &'static str,
    /// All bytes of the answer.
    pub bytes: Vec<u8>,
}

/// A client that is connected through a [`Front`]. One at a time speaks; each statement's outcome
/// is awaited.
pub struct Guest<'f> {
    client: Client,
    front: &'f Front,
}

impl Guest<'_> {
    /// The client below, for what isn't counted here. [`Guest::settle`] says when it is counted.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Waits until everything sent on the client below is counted. A hit is counted only after its
    /// answer was sent. But the server answers this ping, and Remora takes a session's messages one
    /// by one.
    pub fn settle(&mut self) {
        self.client
            .command(PING, b"", ResponseKind::Single)
            .unwrap();
    }

    /// The client below, for what goes on without being counted.
    pub fn into_client(self) -> Client {
        self.client
    }

    /// Runs something that is one statement to Remora.
    pub fn observe<T>(&mut self, run: impl FnOnce(&mut Client) -> T) -> (&'static str, T) {
        let before = counts(&self.front.remora);
        let value = run(&mut self.client);
        // A hit is counted after its answer was sent.
        let changed = wait_for("a statement to be counted", PATIENCE, || {
            let counts = counts(&self.front.remora);
            let changes = counts.iter().zip(&before).map(|(now, then)| now - then);
            let changed: Vec<usize> = changes
                .enumerate()
                .flat_map(|(index, times)| vec![index; usize::try_from(times).unwrap()])
                .collect();
            Ok((!changed.is_empty()).then_some(changed))
        });
        let changed = changed.unwrap();
        assert_eq!(changed.len(), 1, "a statement has one outcome");
        (label(Outcome::all()[changed[0]]), value)
    }

    /// Runs a statement.
    pub fn run(&mut self, sql: &str) -> Seen {
        let (outcome, bytes) = self.observe(|client| client.query_bytes(sql).unwrap().to_vec());
        Seen { outcome, bytes }
    }

    /// Runs statements whose answers must not be errors.
    pub fn setup(&mut self, statements: &[&str]) {
        for sql in statements {
            let (_, answer) = self.observe(|client| client.query(sql).map(drop));
            answer.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// The first field of the answer's first row, and the outcome.
    pub fn value(&mut self, sql: &str) -> (Option<String>, &'static str) {
        let (outcome, value) = self.observe(|client| client.query_value(sql));
        let value = value.unwrap_or_else(|error| panic!("{sql}: {error}"));
        (value, outcome)
    }

    /// Sends a command other than a query; gives its outcome and the bytes that answered.
    pub fn command(&mut self, byte: u8, body: &[u8], expect: ResponseKind) -> Seen {
        let (outcome, bytes) = self.observe(|client| {
            match client.command(byte, body, expect) {
                Ok(_) | Err(ClientError::Server(_)) => {}
                Err(error) => panic!("command {byte}: {error}"),
            }
            client.answer_bytes().to_vec()
        });
        Seen { outcome, bytes }
    }

    /// Runs a statement until it is a hit; every answer on the way must be `expected`.
    pub fn becomes_hit(&mut self, sql: &str, expected: &[u8]) {
        self.becomes("hit", sql, Some(expected));
    }

    /// Runs a statement until memory has what a change made elsewhere left. Until then the old
    /// answer is right too, and even one from memory behind a newer one from the server.
    pub fn comes_to_hit(&mut self, sql: &str, before: &[u8], after: &[u8]) {
        let seen = wait_for("the change to be seen", PATIENCE, || {
            let seen = self.run(sql);
            if seen.bytes == before {
                return Ok(None);
            }
            assert_same(sql, &seen.bytes, after);
            Ok((seen.outcome == "hit").then_some(()))
        });
        seen.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// A statement is answered from memory, see [`Guest::still`].
    pub fn still_hits(&mut self, sql: &str, expected: &[u8]) {
        self.still("hit", sql, expected);
    }

    /// A statement has this outcome. On a busy machine the last proof can be too old for a moment;
    /// nothing else may come between.
    pub fn still(&mut self, outcome: &str, sql: &str, expected: &[u8]) {
        let seen = wait_for("the follower to be proven", PATIENCE, || {
            let seen = self.run(sql);
            assert_same(sql, &seen.bytes, expected);
            if seen.outcome != outcome && is_unproven(seen.outcome) {
                return Ok(None);
            }
            assert_eq!(seen.outcome, outcome, "{sql}");
            Ok(Some(()))
        });
        seen.unwrap();
    }

    /// Runs a statement until it has this outcome. Gives the answer.
    pub fn becomes(&mut self, outcome: &str, sql: &str, expected: Option<&[u8]>) -> Vec<u8> {
        assert!(
            Outcome::all().iter().any(|known| label(*known) == outcome),
            "there is no outcome {outcome}"
        );
        let mut seen_last = "";
        let seen = wait_for("the outcome", PATIENCE, || {
            let seen = self.run(sql);
            if let Some(expected) = expected {
                assert_same(sql, &seen.bytes, expected);
            }
            seen_last = seen.outcome;
            Ok((seen.outcome == outcome).then_some(seen.bytes))
        });
        seen.unwrap_or_else(|error| panic!("{sql} never was {outcome} but {seen_last}: {error}"))
    }

    /// A statement passes through with this reason, each time once it is known what it reads.
    pub fn always_passes(&mut self, sql: &str, reason: &str) {
        for _ in 0..3 {
            let hits = self.front.hits();
            self.becomes(reason, sql, None);
            assert_eq!(self.front.hits(), hits, "{sql}");
        }
    }
}

/// Compares answers without printing megabytes.
pub fn assert_same(what: &str, seen: &[u8], expected: &[u8]) {
    if seen == expected {
        return;
    }
    let at = seen
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    let show = |bytes: &[u8]| {
        let window = &bytes[at.saturating_sub(20)..bytes.len().min(at + 60)];
        String::from_utf8_lossy(window).into_owned()
    };
    panic!(
        "{what}: {} bytes instead of {}, first difference at {at}: {:?} instead of {:?}",
        seen.len(),
        expected.len(),
        show(seen),
        show(expected)
    );
}
