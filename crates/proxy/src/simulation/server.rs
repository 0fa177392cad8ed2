//! The simulated server's side of the protocol: sessions that log in, messages that wait to be run,
//! answers that wait to be delivered.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::Shutdown;
use std::rc::Rc;

use remora_engine::facts::Instance;
use remora_net::Stream;
use remora_sql::RESULT_SETTINGS;
use remora_wire::handshake::Greeting;
use remora_wire::packet::{Extent, HEADER_BYTES, extent, put_message};
use remora_wire::response::ServerError;
use remora_wire::result_set::{Column, ResultSet};
use remora_wire::{Capabilities, StatusFlags};

use super::engine::{DEADLOCK, Engine, Mode, Number, Outcome, Rows, WAITED_TOO_LONG};
use super::prepared::{CLOSE, EXECUTE, LONG_DATA, PREPARE, ServerStatements, as_binary};
use super::random::Random;
use super::statement::{Begin, Isolation, Statement};

/// What both sides can do.
pub(super) const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::MULTI_RESULTS)
    .with(Capabilities::CONNECT_WITH_DB);

/// Who holds the follower's mark.
pub(super) const MARK_HOLDER: &str = "9";

const QUIT: u8 = 1;
const QUERY: u8 = 3;
const PING: u8 = 14;

/// What the question for a session's settings begins with.
pub(super) const SELECT_SETTINGS: &str = "SELECT CAST(CURRENT_USER()";
/// `ER_UNKNOWN_COM_ERROR`.
const UNKNOWN_COMMAND: u16 = 1047;
/// How the question begins for what the server has counted in a session.
pub(super) const SHOW_COUNTS: &str = "SHOW SESSION STATUS WHERE Variable_name IN (";

/// How the statement begins that repeats a hit's number of rows.
const SELECT_ROWS: &str = "SELECT 1 FROM (SELECT 1 AS n";

/// The server that all sessions are on.
pub(super) fn instance() -> Instance {
    Instance {
        server_id: 1,
        hostname: "h".to_owned(),
        port: "3306".to_owned(),
        pid_file: "p".to_owned(),
        uuid: String::new(),
    }
}

/// A connection of Remora's for a client.
pub(super) struct Connection {
    stream: Rc<Stream>,
    pub(super) session: Number,
    waiting: VecDeque<Vec<u8>>,
    prepared: ServerStatements,
    /// What waits for the commit that was logged.
    until_visible: Option<Outcome>,
    answer: Vec<u8>,
    end: End,
    was_killed: bool,
}

/// How far the end of a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is open.
    NotYet,
    /// The other side has closed it. What was sent before is run.
    Closed,
    /// The server has seen that, and rolled back what was open.
    Noticed,
}

/// The server.
pub(super) struct Server {
    pub(super) engine: Engine,
    /// A session that isn't one of Remora's.
    pub(super) elsewhere: Number,
    pub(super) connections: Vec<Connection>,
    /// The statement for each text that may be sent.
    pub(super) statements: HashMap<String, Statement>,
    /// A message that the server doesn't expect.
    pub(super) unexpected: Option<String>,
    /// What comes may be damaged: what it doesn't expect gets an error.
    pub(super) is_lenient: bool,
}

impl Server {
    pub(super) fn new() -> Rc<RefCell<Server>> {
        // What Remora sends of its own.
        let opening = Begin::all().map(|begin| (begin.text(), Statement::Begin(begin)));
        let rollback = ("ROLLBACK AND NO CHAIN NO RELEASE", Statement::Rollback);
        // And what clients send as well.
        let warnings = ("SHOW WARNINGS", Statement::Warnings);
        let statements = opening.chain([rollback, warnings]);
        let mut engine = Engine::new();
        let elsewhere = engine.connect();
        Rc::new(RefCell::new(Server {
            engine,
            elsewhere,
            connections: Vec::new(),
            statements: statements.map(|(text, it)| (text.to_owned(), it)).collect(),
            unexpected: None,
            is_lenient: false,
        }))
    }

    /// The connections of which a message waits to be run.
    pub(super) fn runnable(&self) -> Vec<usize> {
        let is_runnable = |connection: &Connection| {
            connection.answer.is_empty()
                && match connection.until_visible {
                    Some(_) => !self.engine.is_committing(connection.session),
                    None => !connection.waiting.is_empty(),
                }
        };
        self.those(is_runnable)
    }

    /// Those of which an answer waits to be delivered.
    pub(super) fn deliverable(&self) -> Vec<usize> {
        self.those(|connection| !connection.answer.is_empty())
    }

    fn those(&self, are_meant: impl Fn(&Connection) -> bool) -> Vec<usize> {
        let meant = self.connections.iter().enumerate();
        let meant = meant.filter(|(_, connection)| are_meant(connection));
        meant.map(|(at, _)| at).collect()
    }

    /// Runs the message that waits, unless a lock is in its way; or ends what waited for its
    /// commit.
    pub(super) fn run(&mut self, at: usize, random: &mut Random) {
        let connection = &mut self.connections[at];
        let session = connection.session;
        if let Some(outcome) = connection.until_visible.take() {
            self.answer(at, outcome);
            return;
        }
        let Some(message) = connection.waiting.front().cloned() else {
            return;
        };
        let Some((command, body)) = message[HEADER_BYTES..].split_first() else {
            return self.did_not_expect(at, "an empty message".to_owned());
        };
        let command = *command;
        let text = String::from_utf8_lossy(body).into_owned();
        let text = match command {
            QUIT => {
                connection.waiting.pop_front();
                return;
            }
            PING => return self.answer(at, Outcome::Done),
            QUERY => Some(text),
            PREPARE => {
                let end_mark = end_mark(self.status(session));
                let connection = &mut self.connections[at];
                connection.waiting.pop_front();
                connection.answer = connection.prepared.prepare(text, &end_mark);
                return;
            }
            EXECUTE => connection.prepared.text_of(body),
            CLOSE | LONG_DATA => {
                connection.waiting.pop_front();
                let done = match command {
                    CLOSE => connection.prepared.close(body),
                    _ => connection.prepared.take_ahead(body),
                };
                if done.is_none() && !self.is_lenient {
                    self.unexpected = Some("an unknown statement".to_owned());
                }
                return;
            }
            _ => None,
        };
        let Some(text) = text else {
            return self.did_not_expect(at, format!("{message:?}"));
        };
        let own = match text.as_str() {
            text if text.starts_with(SHOW_COUNTS) => Some(counts(self.status(session))),
            text if text.starts_with(SELECT_ROWS) => {
                Some(result_set(&Rows::default(), self.status(session)))
            }
            text if text.starts_with(SELECT_SETTINGS) => {
                let mode = self.engine.session(session).mode;
                Some(settings(mode, self.status(session), text))
            }
            _ => None,
        };
        if let Some(answer) = own {
            let connection = &mut self.connections[at];
            connection.waiting.pop_front();
            connection.answer = answer;
            return;
        }
        let Some(statement) = self.statements.get(&text).cloned() else {
            return self.did_not_expect(at, text);
        };
        let outcome = match self.engine.run(session, &statement) {
            Outcome::Blocked => match random.below(4) {
                0 => self.engine.fail(session, &statement, WAITED_TOO_LONG),
                1 => self.engine.fail(session, &statement, DEADLOCK),
                _ => return,
            },
            Outcome::Committing => {
                self.connections[at].until_visible = Some(Outcome::Done);
                return;
            }
            outcome => outcome,
        };
        self.answer(at, outcome);
    }

    /// A message that nobody should have sent.
    fn did_not_expect(&mut self, at: usize, what: String) {
        if self.is_lenient {
            self.answer(at, Outcome::Failed(UNKNOWN_COMMAND));
        } else {
            self.unexpected = Some(what);
        }
    }

    /// Damages an answer that waits to be delivered.
    pub(super) fn damage(&mut self, at: usize, random: &mut Random) {
        damage(&mut self.connections[at].answer, random);
    }

    fn answer(&mut self, at: usize, outcome: Outcome) {
        let session = self.connections[at].session;
        let status = self.status(session);
        let waiting = self.connections[at].waiting.front();
        let command = waiting.and_then(|message| message.get(HEADER_BYTES));
        let is_binary = command == Some(&EXECUTE);
        let answer = match outcome {
            Outcome::Rows(rows) if is_binary => as_binary(&result_set(&rows, status), &rows),
            Outcome::Rows(rows) => result_set(&rows, status),
            Outcome::Failed(code) => ServerError::new(code, "HY000", "failed").packet(1),
            _ => ok(status, 1),
        };
        let connection = &mut self.connections[at];
        if let Some(message) = connection.waiting.pop_front()
            && is_binary
        {
            let body = message.get(HEADER_BYTES + 1..).unwrap_or_default();
            connection.prepared.executed(body);
        }
        connection.answer = answer;
    }

    fn status(&self, session: Number) -> StatusFlags {
        let mode = self.engine.session(session).mode;
        let mut status = StatusFlags::default();
        for (is_so, flag) in [
            (mode.autocommit, StatusFlags::AUTOCOMMIT),
            (mode.is_open, StatusFlags::IN_TRANSACTION),
            (
                mode.is_open && mode.is_read_only,
                StatusFlags::IN_READ_ONLY_TRANSACTION,
            ),
        ] {
            if is_so {
                status = status.with(flag);
            }
        }
        status
    }

    /// The server goes away, with all its connections.
    pub(super) fn stop(&mut self) {
        for at in 0..self.connections.len() {
            self.kill(at);
        }
    }

    /// Sees which connections were closed and have nothing left to run.
    pub(super) fn notice_closed(&mut self) {
        for connection in &mut self.connections {
            let is_idle = connection.waiting.is_empty() && connection.until_visible.is_none();
            if connection.end == End::Closed && is_idle {
                connection.end = End::Noticed;
                // An error says that nobody is there any more.
                let _ = connection.stream.shutdown(Shutdown::Both);
                self.engine.disconnect(connection.session);
            }
        }
    }

    /// The sessions that are open.
    pub(super) fn open(&self) -> Vec<usize> {
        self.those(|connection| connection.end == End::NotYet)
    }

    /// Whether a session was killed.
    pub(super) fn was_killed(&self, session: Number) -> bool {
        let of_session = |connection: &&Connection| connection.session == session;
        let connection = self.connections.iter().find(of_session);
        connection.is_some_and(|connection| connection.was_killed)
    }

    /// Ends a connection, as `KILL` does: what it runs is given up, unless it commits already.
    pub(super) fn kill(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        // An error says that the other side was faster.
        let _ = connection.stream.shutdown(Shutdown::Both);
        connection.waiting.clear();
        connection.until_visible = None;
        connection.end = End::Noticed;
        connection.was_killed = true;
        self.engine.disconnect(connection.session);
    }

    /// Delivers the next part of an answer, or all that is left of it.
    pub(super) fn deliver(&mut self, at: usize, random: &mut Random) {
        let connection = &mut self.connections[at];
        let length = match random.below(4) {
            0 => 1 + random.index(connection.answer.len()),
            _ => connection.answer.len(),
        };
        match connection.stream.write_now(&connection.answer[..length]) {
            Ok(written) => drop(connection.answer.drain(..written)),
            // The session is gone.
            Err(_) => connection.answer.clear(),
        }
    }
}

/// The answer to the question for a session's settings.
pub(super) fn settings(mode: Mode, status: StatusFlags, text: &str) -> Vec<u8> {
    let fields = text.split("CAST(").skip(1);
    let fields = fields.filter_map(|field| field.split(" AS BINARY)").next());
    let mut values: Vec<_> = fields.map(|field| setting(mode, field)).collect();
    // The probe of the collation.
    values.push(Some(String::new()));
    let columns: Vec<_> = values.iter().map(|_| Column::text("x", 64)).collect();
    let mut set = ResultSet::begin(CAPABILITIES, status, &columns);
    set.row(
        values
            .iter()
            .map(|value| value.as_deref().map(str::as_bytes)),
    );
    set.finish()
}

fn setting(mode: Mode, field: &str) -> Option<String> {
    let instance = instance();
    let value = match field {
        "CURRENT_USER()" => "u@localhost",
        "CURRENT_ROLE()" | "NULL" => return None,
        "DATABASE()" => "s",
        "@@sql_log_bin" => "1",
        "@@GLOBAL.server_id" => return Some(instance.server_id.to_string()),
        "@@hostname" => return Some(instance.hostname),
        "@@port" => return Some(instance.port),
        "@@pid_file" => return Some(instance.pid_file),
        "@@autocommit" => return Some(u8::from(mode.autocommit).to_string()),
        "@@tx_isolation" => match mode.isolation {
            Isolation::ReadCommitted => "READ-COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE-READ",
        },
        "@@completion_type" => "NO_CHAIN",
        "@@sql_select_limit" => "18446744073709551615",
        "@@wait_timeout" => "28800",
        mark if mark.starts_with("IS_USED_LOCK(") => MARK_HOLDER,
        name if name.starts_with("@@character_set") => "utf8mb4",
        name if name.starts_with("@@collation") => "utf8mb4_general_ci",
        "@@sql_mode" => "",
        name => {
            let name = name.strip_prefix("@@").unwrap_or_default();
            let named = RESULT_SETTINGS.iter().find(|setting| name == setting.name);
            let allowed = named.and_then(|setting| setting.only_when);
            allowed
                .and_then(|allowed| allowed.first().copied())
                .unwrap_or("0")
        }
    };
    Some(value.to_owned())
}

pub(super) fn ok(status: StatusFlags, sequence: u8) -> Vec<u8> {
    let [low, high] = status.0.to_le_bytes();
    let mut packet = Vec::new();
    put_message(&mut packet, sequence, &[0, 0, 0, low, high, 0, 0]);
    packet
}

/// The payload of the EOF packet after column definitions.
pub(super) fn end_mark(status: StatusFlags) -> Vec<u8> {
    let [low, high] = status.0.to_le_bytes();
    vec![0xfe, 0, 0, low, high]
}

/// That the server has counted nothing in a session but bytes, and more of these than it was sent.
pub(super) fn counts(status: StatusFlags) -> Vec<u8> {
    let columns = ["Variable_name", "Value"].map(|name| Column::text(name, 64));
    let mut set = ResultSet::begin(CAPABILITIES, status, &columns);
    for (name, value) in [
        ("Bytes_received", "1000000000"),
        ("Com_create_table", "0"),
        ("Com_create_temporary_table", "0"),
        ("Uptime", "1000"),
    ] {
        set.text_row(&[name, value]);
    }
    set.finish()
}

pub(super) fn result_set(rows: &Rows, status: StatusFlags) -> Vec<u8> {
    // All columns are alike, so that their number needn't be right where there are no rows.
    let width = rows.first().map_or(1, Vec::len);
    let columns: Vec<_> = (0..width).map(|_| Column::unsigned("x")).collect();
    let mut set = ResultSet::begin(CAPABILITIES, status, &columns);
    for row in rows {
        let fields: Vec<_> = row
            .iter()
            .map(|field| field.map(|it| it.to_string()))
            .collect();
        set.row(
            fields
                .iter()
                .map(|field| field.as_deref().map(str::as_bytes)),
        );
    }
    set.finish()
}

/// What a connection begins with.
pub(super) fn greeting() -> Vec<u8> {
    let greeting = Greeting {
        server_version: "10.11.6-MariaDB".to_owned(),
        connection_id: 1,
        salt: b"aaaaaaaabbbbbbbbbbbb".to_vec(),
        capabilities: CAPABILITIES,
        collation: 45,
        status: 2,
        plugin: remora_wire::auth::NATIVE_PASSWORD.to_owned(),
    };
    let mut packet = Vec::new();
    put_message(&mut packet, 0, &greeting.payload());
    packet
}

/// Logs a session in, then queues what it sends.
pub(super) async fn converse(server: Rc<RefCell<Server>>, stream: Rc<Stream>) {
    if stream.write_all(&greeting()).await.is_err() {
        return;
    }
    let mut received = Vec::new();
    let Some(_login) = next_message(&stream, &mut received, 1).await else {
        return;
    };
    let accepted = ok(StatusFlags::AUTOCOMMIT, 2);
    if stream.write_all(&accepted).await.is_err() {
        return;
    }
    let at = {
        let mut server = server.borrow_mut();
        let session = server.engine.connect();
        server.connections.push(Connection {
            stream: Rc::clone(&stream),
            session,
            waiting: VecDeque::new(),
            prepared: ServerStatements::default(),
            until_visible: None,
            answer: Vec::new(),
            end: End::NotYet,
            was_killed: false,
        });
        server.connections.len() - 1
    };
    while let Some(message) = next_message(&stream, &mut received, 0).await {
        server.borrow_mut().connections[at]
            .waiting
            .push_back(message);
    }
    let connection = &mut server.borrow_mut().connections[at];
    if connection.end == End::NotYet {
        connection.end = End::Closed;
    }
}

/// The next message that comes, whose first packet has this number. `None` when the other side has
/// ended.
pub(super) async fn next_message(
    stream: &Stream,
    received: &mut Vec<u8>,
    first: u8,
) -> Option<Vec<u8>> {
    loop {
        if let Ok(Extent::Complete { bytes, .. }) = extent(received, first) {
            return Some(received.drain(..bytes).collect());
        }
        stream.readable().await.ok()?;
        let mut chunk = [0; 4096];
        match stream.try_read(&mut chunk) {
            Ok(0) => return None,
            Ok(count) => received.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// Changes, adds or takes away a byte, or cuts the end off.
pub(super) fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.index(bytes.len() + 1);
    let byte = random.byte();
    match random.below(4) {
        0 => bytes.insert(at, byte),
        1 => bytes.truncate(at),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|it| *it = byte),
    }
}
