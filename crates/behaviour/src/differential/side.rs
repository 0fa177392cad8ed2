//! One side of a comparison: connections to a server, or to a Remora in front of it, and what they
//! were answered.

use std::collections::BTreeMap;

use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;

use super::case::{Action, Step};
use super::literal::Literal;
use super::mode::{Dialogue, Form, Mode};
use crate::outcome::observe;
use remora_testkit::client::{Client, ClientError, ConnectOptions, StatementId, Value};
use remora_testkit::proxies::InProcessRemora;

/// How often a read is sent in a warm mode, on both sides.
const TIMES: usize = 3;

/// The preparation of a statement.
pub const PREPARE: &str = "prepare";
/// The same once more, because memory doesn't answer what was prepared before Remora knew
/// everything. That happens by chance, and perhaps in the transaction that the first execution has
/// begun. So the server gave no answer to compare it with.
pub const PREPARE_AGAIN: &str = "prepare again";

/// A command and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What was sent.
    pub what: &'static str,
    /// All bytes of the answer.
    pub bytes: Vec<u8>,
    /// The error's number, 0 for none.
    pub code: u16,
    /// Why the connection is of no further use, if it isn't.
    pub failure: Option<String>,
    /// What Remora says became of it; empty on the direct side.
    pub outcome: &'static str,
    /// The flags of the connection.
    pub capabilities: Capabilities,
}

/// Connections of one kind to one place.
pub struct Side<'a> {
    form: Form,
    warm: bool,
    options: ConnectOptions,
    remora: Option<&'a InProcessRemora>,
    clients: BTreeMap<String, Client>,
}

/// What is sent again and again.
enum Sending {
    Text(Vec<u8>),
    Execution(StatementId, Vec<Value>),
    Command(u8, Vec<u8>, ResponseKind),
}

impl<'a> Side<'a> {
    /// The server itself.
    pub fn direct(dialogue: &Dialogue) -> Side<'a> {
        Side {
            form: dialogue.form,
            warm: dialogue.warm,
            options: dialogue.options.clone(),
            remora: None,
            clients: BTreeMap::new(),
        }
    }

    /// A Remora.
    pub fn through(mode: &Mode, options: &ConnectOptions, remora: &'a InProcessRemora) -> Side<'a> {
        let mut options = options.clone().at(remora.address());
        (mode.shape)(&mut options);
        Side {
            form: mode.form,
            warm: mode.warm,
            options,
            remora: Some(remora),
            clients: BTreeMap::new(),
        }
    }

    /// Runs a step; then once more each time that `again` says so of what has been so far.
    pub fn run(
        &mut self,
        step: &Step,
        mut again: impl FnMut(&[Exchange]) -> bool,
    ) -> Result<Vec<Exchange>, ClientError> {
        if !self.clients.contains_key(&step.connection) {
            let client = self.options.connect()?;
            self.clients.insert(step.connection.clone(), client);
        }
        let mut exchanges = Vec::new();
        let mut sending = self.prepare(step, PREPARE, &mut exchanges);
        let times = if self.warm && step.repeat { TIMES } else { 1 };
        for time in 0.. {
            if time >= times && !again(&exchanges) {
                break;
            }
            if exchanges.last().is_some_and(|last| last.failure.is_some()) {
                self.clients.remove(&step.connection);
                return Ok(exchanges);
            }
            if let Sending::Execution(statement, _) = sending
                && exchanges.last().is_some_and(wants_preparing_again)
            {
                self.close(&step.connection, statement);
                sending = self.prepare(step, PREPARE_AGAIN, &mut exchanges);
            }
            let exchange = self.send(&step.connection, &sending);
            exchanges.push(exchange);
        }
        if let Sending::Execution(statement, _) = sending {
            self.close(&step.connection, statement);
        }
        Ok(exchanges)
    }

    /// Prepares a statement that is to be and can be prepared. What can't is sent as text.
    fn prepare(
        &mut self,
        step: &Step,
        what: &'static str,
        exchanges: &mut Vec<Exchange>,
    ) -> Sending {
        let (text, values) = match &step.action {
            Action::Statement { text, values } => (text, values),
            other => return command_for(other),
        };
        if self.form == Form::Prepared && step.prepared {
            let mut prepared = None;
            let exchange = self.exchange(&step.connection, what, |client| {
                client.prepare(text).map(|id| prepared = Some(id))
            });
            exchanges.push(exchange);
            if let Some(id) = prepared {
                return Sending::Execution(id, values_of(values));
            }
        }
        Sending::Text(step.text())
    }

    fn send(&mut self, connection: &str, sending: &Sending) -> Exchange {
        match sending {
            Sending::Text(text) => self.exchange(connection, "query", |client| {
                client.query_raw(text).map(drop)
            }),
            Sending::Execution(id, values) => self.exchange(connection, "execute", |client| {
                client.execute(*id, values).map(drop)
            }),
            Sending::Command(byte, body, expect) => {
                self.exchange(connection, "command", |client| {
                    client.command(*byte, body, *expect).map(drop)
                })
            }
        }
    }

    fn close(&mut self, connection: &str, statement: StatementId) {
        let closing = self.exchange(connection, "close", |client| {
            client.close_statement(statement)
        });
        if closing.failure.is_some() {
            self.clients.remove(connection);
        }
    }

    fn exchange(
        &mut self,
        connection: &str,
        what: &'static str,
        run: impl FnOnce(&mut Client) -> Result<(), ClientError>,
    ) -> Exchange {
        let Some(client) = self.clients.get_mut(connection) else {
            return Exchange {
                what,
                bytes: Vec::new(),
                code: 0,
                failure: Some("there is no connection".to_owned()),
                outcome: "",
                capabilities: Capabilities(0),
            };
        };
        let (result, outcome) = match self.remora {
            None => (run(client), ""),
            Some(remora) => observe(remora, || run(client)),
        };
        let (code, failure) = match result {
            Ok(()) => (0, None),
            Err(ClientError::Server(error)) => (error.code, None),
            Err(error) => (0, Some(error.to_string())),
        };
        Exchange {
            what,
            bytes: client.answer_bytes().to_vec(),
            code,
            failure,
            outcome,
            capabilities: client.capabilities(),
        }
    }
}

/// Whether a statement is one for good that memory doesn't answer, for it was prepared too early.
fn wants_preparing_again(last: &Exchange) -> bool {
    matches!(
        last.outcome,
        "prepared_before_definition" | "prepared_elsewhere" | "settings_unknown"
    )
}

fn command_for(action: &Action) -> Sending {
    let (byte, body, expect) = match action {
        Action::Use(schema) => (0x02, schema.clone().into_bytes(), ResponseKind::Single),
        Action::Fields(table) => {
            let body = format!("{table}\0").into_bytes();
            (0x04, body, ResponseKind::Columns)
        }
        Action::Reset => (0x1f, Vec::new(), ResponseKind::Single),
        Action::MultiStatements(on) => (0x1b, vec![u8::from(!on), 0], ResponseKind::Single),
        Action::Ping | Action::Statement { .. } => (0x0e, Vec::new(), ResponseKind::Single),
    };
    Sending::Command(byte, body, expect)
}

fn values_of(literals: &[Literal]) -> Vec<Value> {
    let values = literals.iter().map(|literal| literal.value.clone());
    values.collect()
}
