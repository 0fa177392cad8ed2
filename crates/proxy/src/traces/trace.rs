//! What is left of a traced statement.

use std::time::{Duration, SystemTime};

use remora_engine::reason::{Outcome, Stage};
use remora_sql::Digest;

use super::Parent;

/// How a statement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TracedCommand {
    /// As text, `COM_QUERY`.
    #[default]
    Query,
    /// As the execution of a prepared one.
    Execute,
}

impl TracedCommand {
    /// Its label: `query` or `execute`.
    pub const fn as_str(self) -> &'static str {
        match self {
            TracedCommand::Query => "query",
            TracedCommand::Execute => "execute",
        }
    }
}

/// A statement that was traced.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// When its first bytes came.
    pub at: SystemTime,
    /// How it came.
    pub command: TracedCommand,
    /// Its digest, and its text without values, if it could be read.
    pub statement: Option<(Digest, String)>,
    /// The session's account, if it is known.
    pub account: Option<String>,
    /// The session's default schema, if there is one and it is known.
    pub schema: Option<String>,
    /// Whether the server is a MariaDB.
    pub is_mariadb: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// The number of the error that the server answered with.
    pub error: Option<u16>,
    /// Bytes of the answer.
    pub bytes: u64,
    /// What the application traces it as.
    pub parent: Option<Parent>,
    /// From its first bytes until its answer was handed to the client's socket and all about it was
    /// noted.
    pub took: Duration,
    /// What of that each stage took, in the order of [`Stage::ALL`]. They sum up to it.
    pub stages: [Duration; Stage::ALL.len()],
}

impl Trace {
    /// The stages that took any time, in their order.
    pub fn stages_passed(&self) -> impl Iterator<Item = (Stage, Duration)> {
        let stages = Stage::ALL.iter().copied().zip(self.stages);
        stages.filter(|(_, took)| !took.is_zero())
    }
}
