//! Prepared statements. Source: MySQL internals, "`COM_STMT_PREPARE`", "`COM_STMT_EXECUTE`",
//! "`COM_QUERY`" (attributes).

use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;
use remora_wire::reader::put_length;
use remora_wire::walker::Ending;

use super::{Answer, Client, ClientError};

const STMT_PREPARE: u8 = 0x16;
const STMT_EXECUTE: u8 = 0x17;
const STMT_CLOSE: u8 = 0x19;

const TYPE_DOUBLE: u16 = 0x05;
const TYPE_NULL: u16 = 0x06;
const TYPE_LONGLONG: u16 = 0x08;
const TYPE_VAR_STRING: u16 = 0xfd;
const UNSIGNED: u16 = 0x8000;
/// The parameter count is sent, for there may be attributes among the parameters.
const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;

/// The number of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub u32);

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A `BIGINT`.
    Int(i64),
    /// A `BIGINT UNSIGNED`.
    Unsigned(u64),
    /// A `DOUBLE`.
    Double(f64),
    /// Text in the client's character set.
    Text(Vec<u8>),
}

impl Value {
    /// The type's number with its flags, as the protocol has it.
    fn type_bits(&self) -> u16 {
        match self {
            Value::Null => TYPE_NULL,
            Value::Int(_) => TYPE_LONGLONG,
            Value::Unsigned(_) => TYPE_LONGLONG | UNSIGNED,
            Value::Double(_) => TYPE_DOUBLE,
            Value::Text(_) => TYPE_VAR_STRING,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => {}
            Value::Int(number) => out.extend(number.to_le_bytes()),
            Value::Unsigned(number) => out.extend(number.to_le_bytes()),
            Value::Double(number) => out.extend(number.to_le_bytes()),
            Value::Text(text) => {
                put_length(out, text.len() as u64);
                out.extend_from_slice(text);
            }
        }
    }
}

/// A value with the name of an attribute; parameters have an empty one.
type Named<'a> = (&'a str, Value);

impl Client {
    /// Prepares a statement. [`Client::answer_bytes`] has the whole answer.
    pub fn prepare(&mut self, text: &[u8]) -> Result<StatementId, ClientError> {
        let answer = self.command(STMT_PREPARE, text, ResponseKind::Prepared)?;
        match answer.summary().ending {
            Ending::Prepared { statement_id, .. } => Ok(StatementId(statement_id)),
            _ => Err(remora_wire::WireError::Malformed("preparation").into()),
        }
    }

    /// Executes a prepared statement with all its parameters.
    pub fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value],
    ) -> Result<Answer<'_>, ClientError> {
        let body = self.execution(statement, values, true);
        self.command(STMT_EXECUTE, &body, ResponseKind::Results)
    }

    /// The same without the types of the parameters, which the server remembers.
    pub fn execute_again(
        &mut self,
        statement: StatementId,
        values: &[Value],
    ) -> Result<Answer<'_>, ClientError> {
        let body = self.execution(statement, values, false);
        self.command(STMT_EXECUTE, &body, ResponseKind::Results)
    }

    /// Gives a prepared statement up. Nothing answers that.
    pub fn close_statement(&mut self, statement: StatementId) -> Result<(), ClientError> {
        self.command(
            STMT_CLOSE,
            &statement.0.to_le_bytes(),
            ResponseKind::Nothing,
        )
        .map(drop)
    }

    fn execution(&self, statement: StatementId, values: &[Value], names_types: bool) -> Vec<u8> {
        let with_attributes = self.capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        let mut parameters: Vec<Named<'_>> =
            values.iter().map(|value| ("", value.clone())).collect();
        let mut flags = 0;
        if with_attributes {
            parameters.extend(self.attribute_values());
            flags |= PARAMETER_COUNT_AVAILABLE;
        }
        let mut body = statement.0.to_le_bytes().to_vec();
        body.push(flags);
        body.extend(1_u32.to_le_bytes());
        if with_attributes {
            put_length(&mut body, parameters.len() as u64);
        }
        if !parameters.is_empty() {
            put_parameters(&mut body, &parameters, (names_types, with_attributes));
        }
        body
    }

    fn attribute_values(&self) -> impl Iterator<Item = Named<'_>> {
        let attributes = self.query_attributes.iter();
        attributes.map(|(name, value)| (name.as_str(), Value::Text(value.clone().into_bytes())))
    }

    /// What stands before a statement's text.
    pub(super) fn query_prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        if self.capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            let attributes: Vec<Named<'_>> = self.attribute_values().collect();
            put_length(&mut prefix, attributes.len() as u64);
            put_length(&mut prefix, 1);
            if !attributes.is_empty() {
                put_parameters(&mut prefix, &attributes, (true, true));
            }
        }
        prefix
    }
}

/// NULL bits, types if they are named, with names if those belong there, values.
fn put_parameters(out: &mut Vec<u8>, parameters: &[Named<'_>], (names_types, named): (bool, bool)) {
    let mut nulls = vec![0_u8; parameters.len().div_ceil(8)];
    for (index, (_, value)) in parameters.iter().enumerate() {
        if *value == Value::Null {
            nulls[index / 8] |= 1 << (index % 8);
        }
    }
    out.extend(nulls);
    out.push(u8::from(names_types));
    for (name, value) in parameters.iter().filter(|_| names_types) {
        out.extend(value.type_bits().to_le_bytes());
        if named {
            put_length(out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
    }
    for (_, value) in parameters {
        value.put(out);
    }
}
