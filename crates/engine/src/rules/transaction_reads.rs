//! Which reads inside transactions memory may answer: an option, and what a rule says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which reads inside transactions at `REPEATABLE READ` memory may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TransactionReads {
    /// None.
    Off,
    /// When the server has made the transaction's snapshot: with the first read, or in its place if
    /// memory can answer that.
    AfterSnapshot,
    /// Also those before: the server hears of the transaction when memory can't answer.
    Early,
}

impl TransactionReads {
    /// As in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            TransactionReads::Off => "off",
            TransactionReads::AfterSnapshot => "after_snapshot",
            TransactionReads::Early => "early",
        }
    }
}
