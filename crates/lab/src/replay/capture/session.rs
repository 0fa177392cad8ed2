//! What a client says in its session, as far as it can be repeated.

use std::collections::HashMap;
use std::sync::Arc;

use remora_wire::attributes::statement_text;
use remora_wire::command::Command;
use remora_wire::execute::{Execution as WireExecution, LAST_PREPARED};
use remora_wire::handshake::Login;
use remora_wire::packet::{Extent, HEADER_BYTES, Header, extent, join_payload};
use remora_wire::reader::Reader;
use remora_wire::{Capabilities, WireError};

use super::stream::{Piece, TLS};
use crate::replay::event::{Action, Bytes, Execution, use_target};

/// The longest command that is taken, bytes: no server takes a longer one.
const COMMAND_BYTES_MAX: usize = (1 << 30) + (1 << 20);
/// The answer to a preparation, with its header, as far as it is needed.
const PREPARED_BYTES: usize = HEADER_BYTES + 9;

const COMPRESSED: &str = "a connection with compression, which isn't read";
const NO_PROTOCOL: &str = "a connection that doesn't speak MySQL's protocol: the rest of it";
const REPLICA: &str = "a connection that reads the binary log";
const UNKNOWN_STATEMENT: &str =
    "an execution of a statement whose preparation isn't in the capture";
const UNKNOWN_TYPES: &str = "an execution whose values' types aren't in the capture";
const LONG_DATA: &str = "an execution with values sent in advance (COM_STMT_SEND_LONG_DATA)";

/// Something that a client did, or that is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// At that time, microseconds since 1970, with that default schema.
    Did(i64, Option<Bytes>, Action),
    LeftOut(String),
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client has said nothing yet.
    New,
    /// It logs in.
    Login,
    /// It sends commands.
    Commands,
    /// Nothing more can come of it.
    Ended,
}

/// The session of one connection.
#[derive(Debug)]
pub(super) struct Session {
    buffer: Vec<u8>,
    phase: Phase,
    /// `None` where the login isn't in the capture.
    capabilities: Option<Capabilities>,
    schema: Option<Bytes>,
    statements: HashMap<u32, Prepared>,
    last_prepared: Option<u32>,
    /// A text that is being prepared.
    preparing: Option<Bytes>,
    /// What the client sent after that: the capture may have the server's answer later.
    held: Vec<Piece>,
    /// An answer was waited for in vain: perhaps the capture has none.
    lacks_answers: bool,
    answer: Answer,
}

#[derive(Debug)]
struct Prepared {
    text: Bytes,
    parameters: u16,
    types: Vec<u8>,
    has_long_data: bool,
}

/// The server's answer to a preparation, found by the number of its first byte: a client that sends
/// a command has acknowledged all that came before.
#[derive(Debug, Default)]
struct Answer {
    expected_at: Option<u32>,
    bytes: Vec<u8>,
    /// The first bytes of what the server sent last: it may have been captured before the question.
    recent: std::collections::VecDeque<(u32, Vec<u8>)>,
}

/// How many of the client's segments wait for an answer of the server.
const HELD_MAX: usize = 32;
/// How many of the server's segments are remembered, and how much of each.
const RECENT_MAX: usize = 16;
const RECENT_BYTES: usize = 64;

impl Session {
    /// A session of which nothing is known yet.
    pub(super) fn new() -> Session {
        Session {
            buffer: Vec::new(),
            phase: Phase::New,
            capabilities: None,
            schema: None,
            statements: HashMap::new(),
            last_prepared: None,
            preparing: None,
            held: Vec::new(),
            lacks_answers: false,
            answer: Answer::default(),
        }
    }

    /// Whether nothing more can come of it.
    pub(super) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether it ends within a command.
    pub(super) fn is_within_command(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Takes what the server sent.
    pub(super) fn take_answer(&mut self, sequence: u32, payload: &[u8], said: &mut Vec<Said>) {
        if self.has_ended() || payload.is_empty() {
            return;
        }
        self.answer.take(sequence, payload);
        self.prepared();
        if self.preparing.is_none() {
            self.release(said);
        }
    }

    /// Takes what the client sent. `is_whole`: the capture has the connection's beginning.
    pub(super) fn take(&mut self, piece: &Piece, is_whole: bool, said: &mut Vec<Said>) {
        if self.has_ended() {
            return;
        }
        if self.phase == Phase::New {
            self.phase = if is_whole {
                Phase::Login
            } else {
                Phase::Commands
            };
        }
        if self.preparing.is_some() && !self.lacks_answers {
            self.held.push(piece.clone());
            if self.held.len() >= HELD_MAX {
                self.lacks_answers = true;
                self.release(said);
            }
            return;
        }
        self.read(piece, said);
    }

    /// The capture has ended.
    pub(super) fn finish(&mut self, said: &mut Vec<Said>) {
        self.lacks_answers = true;
        self.release(said);
    }

    /// Takes what was held.
    fn release(&mut self, said: &mut Vec<Said>) {
        for piece in std::mem::take(&mut self.held) {
            self.take(&piece, true, said);
        }
    }

    fn read(&mut self, piece: &Piece, said: &mut Vec<Said>) {
        self.buffer.extend_from_slice(&piece.bytes);
        let mut used = 0;
        while let Some(header) = Header::peek(&self.buffer[used..]).filter(|_| !self.has_ended()) {
            match extent(&self.buffer[used..], header.sequence) {
                Ok(Extent::Complete { bytes, .. }) => {
                    let payload = join_payload(&self.buffer[used..used + bytes]);
                    used += bytes;
                    if let Err(why) = self.message(header.sequence, &payload, piece, said) {
                        self.leave(why, said);
                    }
                }
                Ok(Extent::Partial { known_bytes }) if known_bytes <= COMMAND_BYTES_MAX => break,
                _ => self.leave(NO_PROTOCOL, said),
            }
        }
        if self.has_ended() {
            self.buffer = Vec::new();
        } else {
            self.buffer.drain(..used);
        }
    }

    fn leave(&mut self, why: &str, said: &mut Vec<Said>) {
        said.push(Said::LeftOut(why.to_owned()));
        self.phase = Phase::Ended;
    }

    fn message(
        &mut self,
        sequence: u8,
        payload: &[u8],
        piece: &Piece,
        said: &mut Vec<Said>,
    ) -> Result<(), &'static str> {
        if self.phase == Phase::Login {
            return self.log_in(sequence, payload);
        }
        let Some((&byte, body)) = payload.split_first().filter(|_| sequence == 0) else {
            // Authentication, or the contents of a local file.
            return Ok(());
        };
        let schema = self.schema.clone();
        match self.command(byte, body, piece.acknowledged) {
            Ok(Some(action)) => {
                if action == Action::Quit {
                    self.phase = Phase::Ended;
                }
                said.push(Said::Did(piece.captured_us, schema, action));
            }
            Ok(None) => {}
            Err(Refused::Session(why)) => return Err(why),
            Err(Refused::Command(why)) => said.push(Said::LeftOut(why)),
        }
        Ok(())
    }

    fn log_in(&mut self, sequence: u8, payload: &[u8]) -> Result<(), &'static str> {
        if Login::is_tls_request(payload) {
            return Err(TLS);
        }
        let login = Login::parse(payload).map_err(|_| NO_PROTOCOL)?;
        if sequence != 1 {
            return Err(NO_PROTOCOL);
        }
        let compressed = Capabilities::COMPRESS;
        if login.capabilities.has(compressed)
            || login.capabilities.has(Capabilities::ZSTD_COMPRESSION)
        {
            return Err(COMPRESSED);
        }
        self.capabilities = Some(login.capabilities);
        self.schema = Some(Arc::from(login.schema));
        self.phase = Phase::Commands;
        Ok(())
    }

    fn command(
        &mut self,
        byte: u8,
        body: &[u8],
        acknowledged: u32,
    ) -> Result<Option<Action>, Refused> {
        match Command::from_byte(byte) {
            Command::Quit => return Ok(Some(Action::Quit)),
            Command::Query => return self.query(body).map(Some),
            Command::StmtExecute => return self.execution(body).map(Some),
            Command::InitDb => self.schema = Some(Arc::from(body)),
            Command::StmtPrepare => {
                self.preparing = Some(Arc::from(body));
                self.answer.expect(acknowledged);
                self.prepared();
            }
            Command::StmtSendLongData => {
                if let Some(statement) = self.statement(body) {
                    statement.has_long_data = true;
                }
            }
            Command::StmtReset => {
                if let Some(statement) = self.statement(body) {
                    statement.has_long_data = false;
                }
            }
            Command::StmtClose => {
                if let Ok(number) = Reader::new(body).u32("statement") {
                    self.statements.remove(&number);
                }
            }
            Command::ChangeUser => self.change_user(body),
            Command::ResetConnection => self.statements.clear(),
            Command::Ping | Command::SetOption => {}
            Command::BinlogDump | Command::RegisterReplica => {
                return Err(Refused::Session(REPLICA));
            }
            other => return Err(Refused::Command(format!("command {other:?}"))),
        }
        Ok(None)
    }

    fn query(&mut self, body: &[u8]) -> Result<Action, Refused> {
        let capabilities = *self.capabilities.get_or_insert_with(|| {
            // No text begins like this.
            let has_attributes = body.starts_with(&[0, 1]);
            Capabilities(if has_attributes {
                Capabilities::QUERY_ATTRIBUTES.0
            } else {
                0
            })
        });
        let has_attributes = capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        let text = if has_attributes {
            statement_text(body)?.1
        } else {
            body
        };
        if let Some(schema) = use_target(text) {
            self.schema = Some(Arc::from(schema));
        }
        Ok(Action::Query(Arc::from(text)))
    }

    fn statement(&mut self, body: &[u8]) -> Option<&mut Prepared> {
        let number = Reader::new(body).u32("statement").ok()?;
        let number = if number == LAST_PREPARED {
            self.last_prepared?
        } else {
            number
        };
        self.statements.get_mut(&number)
    }

    fn execution(&mut self, body: &[u8]) -> Result<Action, Refused> {
        let capabilities = self.capabilities.unwrap_or_default();
        let statement = self.statement(body).ok_or(UNKNOWN_STATEMENT)?;
        if statement.has_long_data {
            return Err(LONG_DATA.into());
        }
        let body = body.get(4..).unwrap_or_default();
        let execution = WireExecution::parse(body, statement.parameters, capabilities)?;
        if let Some(types) = execution.types() {
            types.store(&mut statement.types);
        }
        if statement.types.len() != 2 * usize::from(statement.parameters) {
            return Err(UNKNOWN_TYPES.into());
        }
        let mut values = Vec::new();
        execution.put_values(&mut values);
        Ok(Action::Execution(Arc::new(Execution {
            text: Arc::clone(&statement.text),
            types: statement.types.clone(),
            values,
        })))
    }

    /// Takes the answer to a preparation when it is there.
    fn prepared(&mut self) {
        let Some(answer) = self.answer.complete() else {
            return;
        };
        let Some(text) = self.preparing.take() else {
            return;
        };
        // Its header: 12 bytes, and the first packet of an answer. Else the preparation has failed.
        let Some(numbers) = answer.strip_prefix(&[12, 0, 0, 1, 0]) else {
            return;
        };
        let mut reader = Reader::new(numbers);
        let read = |reader: &mut Reader<'_>| -> Result<(u32, u16), WireError> {
            let number = reader.u32("statement")?;
            reader.u16("columns")?;
            Ok((number, reader.u16("parameters")?))
        };
        if let Ok((number, parameters)) = read(&mut reader) {
            self.last_prepared = Some(number);
            self.lacks_answers = false;
            let prepared = Prepared {
                text,
                parameters,
                types: Vec::new(),
                has_long_data: false,
            };
            self.statements.insert(number, prepared);
        }
    }

    /// User, authentication, schema. What can't be read leaves the schema unknown.
    fn change_user(&mut self, body: &[u8]) {
        self.statements.clear();
        let mut reader = Reader::new(body);
        let mut read = || -> Result<Bytes, WireError> {
            reader.until_nul("user")?;
            let length = usize::from(reader.u8("authentication")?);
            reader.bytes(length, "authentication")?;
            Ok(Arc::from(reader.until_nul_or_end()))
        };
        self.schema = read().ok();
    }
}

/// What can't be repeated.
enum Refused {
    Command(String),
    Session(&'static str),
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused::Command(why.to_owned())
    }
}

impl From<WireError> for Refused {
    fn from(error: WireError) -> Refused {
        Refused::Command(format!("a command that can't be read: {error}"))
    }
}

impl Answer {
    fn expect(&mut self, at: u32) {
        self.expected_at = Some(at);
        self.bytes.clear();
        self.fill();
    }

    fn take(&mut self, sequence: u32, payload: &[u8]) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        let head = &payload[..payload.len().min(RECENT_BYTES)];
        self.recent.push_back((sequence, head.to_vec()));
        self.fill();
    }

    /// Takes what is known of the answer from the segments, which may be in any order.
    fn fill(&mut self) {
        let Some(at) = self.expected_at else { return };
        loop {
            let known = u32::try_from(self.bytes.len()).unwrap_or_default();
            let wanted = PREPARED_BYTES - self.bytes.len().min(PREPARED_BYTES);
            let next = at.wrapping_add(known);
            let rest = self.recent.iter().find_map(|(sequence, payload)| {
                let distance = usize::try_from(next.wrapping_sub(*sequence)).ok()?;
                payload.get(distance..).filter(|rest| !rest.is_empty())
            });
            match rest {
                Some(rest) if wanted > 0 => {
                    let rest = rest[..rest.len().min(wanted)].to_vec();
                    self.bytes.extend(rest);
                }
                _ => return,
            }
        }
    }

    /// The answer's bytes, once there are enough, or it is shorter.
    fn complete(&mut self) -> Option<Vec<u8>> {
        let is_error = self.bytes.get(HEADER_BYTES) == Some(&0xff);
        if self.expected_at.is_none() || (self.bytes.len() < PREPARED_BYTES && !is_error) {
            return None;
        }
        self.expected_at = None;
        Some(std::mem::take(&mut self.bytes))
    }
}
