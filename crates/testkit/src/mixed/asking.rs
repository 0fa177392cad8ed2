//! The ways in which a reader asks: as text, or by prepared statements.

use std::collections::HashMap;

use remora_wire::rows::Row;

use crate::client::{Client, ClientError, StatementId, Value};
use crate::load::random::Random;

/// Statements that a reader keeps prepared.
const KEPT_MAX: usize = 64;

/// How a reader asks.
#[derive(Debug)]
pub enum Asking {
    /// By `COM_QUERY`.
    Text,
    /// By statements that stay prepared.
    Prepared(HashMap<String, StatementId>),
    /// By a statement that is prepared, executed once and closed.
    PreparedOnce,
}

impl Asking {
    /// One of them.
    pub fn choose(random: &mut Random) -> Asking {
        match random.below(3) {
            0 => Asking::Text,
            1 => Asking::Prepared(HashMap::new()),
            _ => Asking::PreparedOnce,
        }
    }

    /// Asks, and gives the rows of the answer.
    pub fn ask(&mut self, client: &mut Client, text: &str) -> Result<Vec<Row>, ClientError> {
        self.ask_with(client, text, &[])
    }

    /// The same with a number for each `?`. Who asks by text writes them there.
    pub fn ask_with(
        &mut self,
        client: &mut Client,
        text: &str,
        numbers: &[i64],
    ) -> Result<Vec<Row>, ClientError> {
        let values: Vec<Value> = numbers.iter().copied().map(Value::Int).collect();
        match self {
            Asking::Text => client.query(&filled_in(text, numbers))?.rows(),
            Asking::Prepared(kept) => {
                let id = if let Some(id) = kept.get(text) {
                    *id
                } else {
                    if kept.len() >= KEPT_MAX {
                        for (_, old) in kept.drain() {
                            client.close_statement(old)?;
                        }
                    }
                    let id = client.prepare(text.as_bytes())?;
                    kept.insert(text.to_owned(), id);
                    id
                };
                client.execute(id, &values)?.binary_rows()
            }
            Asking::PreparedOnce => {
                let id = client.prepare(text.as_bytes())?;
                let rows = client.execute(id, &values)?.binary_rows();
                client.close_statement(id)?;
                rows
            }
        }
    }
}

/// A statement's text with numbers in place of its `?`.
pub fn filled_in(text: &str, numbers: &[i64]) -> String {
    let mut numbers = numbers.iter();
    let mut filled = String::with_capacity(text.len());
    for part in text.split_inclusive('?') {
        match (part.strip_suffix('?'), numbers.next()) {
            (Some(before), Some(number)) => {
                filled.push_str(before);
                filled.push_str(&number.to_string());
            }
            _ => filled.push_str(part),
        }
    }
    filled
}
