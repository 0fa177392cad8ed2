//! The ways in which a reader asks: as text, or by prepared statements.

use std::collections::HashMap;

use remora_wire::rows::Row;

use crate::client::{Client, ClientError, StatementId};
use crate::load::random::Random;

/// Statements that a reader keeps prepared.
const KEPT_MAX: usize = 64;

/// How a reader asks.
#[derive(Debug)]
pub(super) enum Asking {
    /// By `COM_QUERY`.
    Text,
    /// By statements that stay prepared.
    Prepared(HashMap<String, StatementId>),
    /// By a statement that is prepared, executed once and closed.
    PreparedOnce,
}

impl Asking {
    /// One of them.
    pub(super) fn choose(random: &mut Random) -> Asking {
        match random.below(3) {
            0 => Asking::Text,
            1 => Asking::Prepared(HashMap::new()),
            _ => Asking::PreparedOnce,
        }
    }

    /// Asks, and gives the rows of the answer.
    pub(super) fn ask(&mut self, client: &mut Client, text: &str) -> Result<Vec<Row>, ClientError> {
        match self {
            Asking::Text => client.query(text)?.rows(),
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
                client.execute(id, &[])?.binary_rows()
            }
            Asking::PreparedOnce => {
                let id = client.prepare(text.as_bytes())?;
                let rows = client.execute(id, &[])?.binary_rows();
                client.close_statement(id)?;
                rows
            }
        }
    }
}
