//! Prepared statements: how clients send them, and what the server makes of them.

use std::collections::HashMap;

use remora_wire::packet::put_message;
use remora_wire::result_set::{self, Parts};

use super::engine::Rows;
use super::random::Random;
use super::server::CAPABILITIES;

pub(super) const PREPARE: u8 = 0x16;
pub(super) const EXECUTE: u8 = 0x17;
pub(super) const LONG_DATA: u8 = 0x18;
pub(super) const CLOSE: u8 = 0x19;

/// The first column's bit in a binary row's NULL bitmap: two reserved bits come before it.
const FIRST_COLUMN_BIT: usize = 2;

/// What a value is sent as, and how its type is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
}

impl Kind {
    /// `MYSQL_TYPE_LONGLONG`, `MYSQL_TYPE_VAR_STRING`; neither is flagged as unsigned.
    fn type_bytes(self) -> [u8; 2] {
        match self {
            Kind::Number => [0x08, 0],
            Kind::Text => [0xfd, 0],
        }
    }

    fn of(type_bytes: [u8; 2]) -> Option<Kind> {
        [Kind::Number, Kind::Text]
            .into_iter()
            .find(|kind| kind.type_bytes() == type_bytes)
    }
}

/// A statement with `?` in place of its numbers, and the numbers.
fn template_of(text: &str) -> (String, Vec<u64>) {
    let (mut template, mut values) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find(|it: char| it.is_ascii_digit()) {
        let length = rest[start..]
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(rest.len() - start);
        template.push_str(&rest[..start]);
        template.push('?');
        values.extend(rest[start..start + length].parse::<u64>());
        rest = &rest[start + length..];
    }
    (template + rest, values)
}

/// A statement that a client has prepared.
#[derive(Debug)]
struct Known {
    id: u32,
    /// What it has named last.
    named: Option<Kind>,
}

/// The statements that a client has prepared.
#[derive(Debug, Default)]
pub(super) struct ClientStatements(HashMap<String, Known>);

/// What a client sends for a statement.
#[derive(Debug)]
pub(super) enum Sending {
    /// Its preparation, of this template.
    Preparation { payload: Vec<u8>, template: String },
    /// An execution, and whether it names its types.
    Execution { payload: Vec<u8>, names_types: bool },
}

impl ClientStatements {
    /// A statement, as a prepared one.
    pub(super) fn send(&mut self, text: &str, random: &mut Random) -> Sending {
        let (template, values) = template_of(text);
        let Some(known) = self.0.get_mut(&template) else {
            let payload = [&[PREPARE], template.as_bytes()].concat();
            return Sending::Preparation { payload, template };
        };
        let kind = match (random.below(8), known.named) {
            (1.., Some(kind)) => kind,
            (0, _) => Kind::Text,
            _ => Kind::Number,
        };
        // Drivers name the types again when they change, and some always.
        let names_types = known.named != Some(kind) || random.below(4) == 0;
        known.named = Some(kind);
        let payload = execution(known.id, &values, kind, names_types, 0);
        Sending::Execution {
            payload,
            names_types: names_types && !values.is_empty(),
        }
    }

    /// The first value of a statement's next execution, ahead of that; `None` if it isn't prepared
    /// or has none.
    pub(super) fn send_ahead(&self, text: &str) -> Option<Vec<u8>> {
        let (template, values) = template_of(text);
        let (known, value) = (self.0.get(&template)?, values.first()?);
        let mut payload = vec![LONG_DATA];
        payload.extend(known.id.to_le_bytes());
        // The first parameter.
        payload.extend([0, 0]);
        payload.extend(value.to_string().as_bytes());
        Some(payload)
    }

    /// The execution whose first value was sent ahead.
    pub(super) fn send_rest(&mut self, text: &str, random: &mut Random) -> Option<Vec<u8>> {
        let (template, values) = template_of(text);
        let known = self.0.get_mut(&template)?;
        let names_types = known.named != Some(Kind::Text) || random.below(4) == 0;
        known.named = Some(Kind::Text);
        Some(execution(known.id, &values, Kind::Text, names_types, 1))
    }

    /// Closes some statement now and then.
    pub(super) fn close_some(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        if self.0.is_empty() || random.below(20) > 0 {
            return None;
        }
        let mut templates: Vec<_> = self.0.keys().cloned().collect();
        templates.sort();
        let known = self.0.remove(&templates[random.index(templates.len())])?;
        Some([&[CLOSE], &known.id.to_le_bytes()[..]].concat())
    }

    /// The server has prepared a statement: `answer` says under which number.
    pub(super) fn prepared(&mut self, template: &str, answer: &[u8]) -> Result<(), String> {
        // After the packet header and the status byte.
        let id = answer.get(5..9).and_then(|id| id.try_into().ok());
        let id = u32::from_le_bytes(id.ok_or("a short answer to a preparation")?);
        self.0
            .insert(template.to_owned(), Known { id, named: None });
        Ok(())
    }
}

/// The first `ahead` values have been sent already.
fn execution(id: u32, values: &[u64], kind: Kind, names_types: bool, ahead: usize) -> Vec<u8> {
    let mut payload = vec![EXECUTE];
    payload.extend(id.to_le_bytes());
    // No cursor, one iteration.
    payload.extend([0, 1, 0, 0, 0]);
    if values.is_empty() {
        return payload;
    }
    payload.extend(vec![0; values.len().div_ceil(8)]);
    payload.push(u8::from(names_types));
    if names_types {
        payload.extend(values.iter().flat_map(|_| kind.type_bytes()));
    }
    for value in &values[ahead..] {
        match kind {
            Kind::Number => payload.extend(value.to_le_bytes()),
            Kind::Text => {
                let text = value.to_string();
                payload.push(u8::try_from(text.len()).unwrap_or_default());
                payload.extend(text.as_bytes());
            }
        }
    }
    payload
}

/// The statements that a session has prepared at the server.
#[derive(Debug, Default)]
pub(super) struct ServerStatements {
    statements: HashMap<u32, Prepared>,
    last: u32,
}

#[derive(Debug)]
struct Prepared {
    template: String,
    parameters: usize,
    /// As they were named last.
    kinds: Option<Vec<Kind>>,
    /// The first value of the next execution, as text, if it was sent ahead.
    ahead: Vec<u8>,
}

impl ServerStatements {
    /// Prepares a statement; gives the answer.
    pub(super) fn prepare(&mut self, template: String, end_mark: &[u8]) -> Vec<u8> {
        self.last += 1;
        let parameters = template.matches('?').count();
        let columns = usize::from(template.starts_with("SELECT"));
        let mut ok = vec![0];
        ok.extend(self.last.to_le_bytes());
        for count in [columns, parameters] {
            ok.extend(u16::try_from(count).unwrap_or_default().to_le_bytes());
        }
        ok.extend([0; 3]);
        let definition = {
            let none = result_set::ResultSet::begin(
                CAPABILITIES,
                remora_wire::StatusFlags::default(),
                &[result_set::Column::unsigned("?")],
            );
            let whole = none.finish();
            let parts = Parts::of(&whole, CAPABILITIES).expect("a result set");
            parts.head[1].to_vec()
        };
        let mut payloads = vec![ok];
        for count in [parameters, columns] {
            payloads.extend(std::iter::repeat_n(definition.clone(), count));
            if count > 0 {
                payloads.push(end_mark.to_vec());
            }
        }
        let prepared = Prepared {
            template,
            parameters,
            kinds: None,
            ahead: Vec::new(),
        };
        self.statements.insert(self.last, prepared);
        result_set::packets(payloads.iter().map(Vec::as_slice))
    }

    /// The text of the statement that is executed, with its values. `body` follows the command
    /// byte.
    pub(super) fn text_of(&mut self, body: &[u8]) -> Option<String> {
        let (id, body) = body.split_first_chunk()?;
        let prepared = self.statements.get_mut(&u32::from_le_bytes(*id))?;
        let mut rest = body.get(5..)?;
        let mut values = Vec::new();
        if prepared.parameters > 0 {
            rest = rest.get(prepared.parameters.div_ceil(8)..)?;
            let (names_types, after) = rest.split_first()?;
            rest = after;
            if *names_types == 1 {
                let mut kinds = Vec::new();
                for _ in 0..prepared.parameters {
                    let (type_bytes, after) = rest.split_first_chunk()?;
                    kinds.push(Kind::of(*type_bytes)?);
                    rest = after;
                }
                prepared.kinds = Some(kinds);
            }
            // `None`: the server was never told how to read them.
            let mut kinds = prepared.kinds.as_ref()?.iter();
            if !prepared.ahead.is_empty() {
                kinds.next();
                values.push(std::str::from_utf8(&prepared.ahead).ok()?.parse().ok()?);
            }
            for kind in kinds {
                let (value, after) = read_value(*kind, rest)?;
                values.push(value);
                rest = after;
            }
        }
        let parts: Vec<_> = prepared.template.split('?').collect();
        let mut text = parts[0].to_owned();
        for (value, part) in values.iter().zip(&parts[1..]) {
            text += &value.to_string();
            text += part;
        }
        rest.is_empty().then_some(text)
    }

    /// A value comes ahead of its execution.
    pub(super) fn take_ahead(&mut self, body: &[u8]) -> Option<()> {
        let (id, body) = body.split_first_chunk()?;
        let prepared = self.statements.get_mut(&u32::from_le_bytes(*id))?;
        prepared.ahead.extend(body.get(2..)?);
        Some(())
    }

    /// An execution is over: what was sent ahead was for it.
    pub(super) fn executed(&mut self, body: &[u8]) {
        let id = body.first_chunk().map(|id| u32::from_le_bytes(*id));
        if let Some(prepared) = id.and_then(|id| self.statements.get_mut(&id)) {
            prepared.ahead.clear();
        }
    }

    /// Closes the statement of this number.
    pub(super) fn close(&mut self, body: &[u8]) -> Option<()> {
        let id = u32::from_le_bytes(*body.first_chunk()?);
        self.statements.remove(&id).map(drop)
    }
}

fn read_value(kind: Kind, bytes: &[u8]) -> Option<(u64, &[u8])> {
    match kind {
        Kind::Number => {
            let (value, rest) = bytes.split_first_chunk()?;
            Some((u64::from_le_bytes(*value), rest))
        }
        Kind::Text => {
            let (length, rest) = bytes.split_first()?;
            let (text, rest) = rest.split_at_checked((*length).into())?;
            Some((std::str::from_utf8(text).ok()?.parse().ok()?, rest))
        }
    }
}

/// The same result set, with its rows in the binary protocol.
pub(super) fn as_binary(result_set: &[u8], rows: &Rows) -> Vec<u8> {
    let parts = Parts::of(result_set, CAPABILITIES).expect("a result set");
    let rows: Vec<_> = rows.iter().map(|row| binary_row(row)).collect();
    let head = parts.head.into_iter();
    let all = head.chain(rows.iter().map(Vec::as_slice));
    result_set::packets(all.chain([parts.end]))
}

fn binary_row(row: &[Option<u64>]) -> Vec<u8> {
    let mut payload = vec![0];
    let mut nulls = vec![0_u8; (row.len() + FIRST_COLUMN_BIT).div_ceil(8)];
    for (at, value) in row.iter().enumerate() {
        let bit = at + FIRST_COLUMN_BIT;
        nulls[bit / 8] |= u8::from(value.is_none()) << (bit % 8);
    }
    payload.extend(nulls);
    let values = row.iter().flatten();
    payload.extend(values.flat_map(|value| value.to_le_bytes()));
    payload
}

/// Reads such a row.
pub(super) fn parse_row(payload: &[u8], columns: usize) -> Option<Vec<Option<u64>>> {
    let null_bytes = (columns + FIRST_COLUMN_BIT).div_ceil(8);
    let (nulls, mut rest) = payload.get(1..)?.split_at_checked(null_bytes)?;
    let mut row = Vec::new();
    for at in 0..columns {
        let bit = at + FIRST_COLUMN_BIT;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            row.push(None);
            continue;
        }
        let (value, after) = rest.split_first_chunk()?;
        row.push(Some(u64::from_le_bytes(*value)));
        rest = after;
    }
    rest.is_empty().then_some(row)
}

/// A message of one packet.
pub(super) fn message(payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put_message(&mut message, 0, payload);
    message
}
