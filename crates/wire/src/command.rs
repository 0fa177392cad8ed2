//! Commands: the first byte of a client's message, and what kind of answer it gets.
//!
//! Source: MySQL internals, "Command Phase"; MariaDB knowledge base, "`COM_STMT_BULK_EXECUTE`".

/// The command byte of a message, as far as Remora treats commands apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The client leaves. No answer.
    Quit,
    /// Changes the default schema.
    InitDb,
    /// A statement as text.
    Query,
    /// The columns of a table (deprecated).
    FieldList,
    /// A line of server statistics.
    Statistics,
    /// Answered by one OK.
    Ping,
    /// Kills a connection (deprecated).
    ProcessKill,
    /// Lists connections (deprecated).
    ProcessInfo,
    /// Logs in again as somebody else.
    ChangeUser,
    /// Streams the binary log until the connection ends.
    BinlogDump,
    /// Announces a replica.
    RegisterReplica,
    /// Prepares a statement.
    StmtPrepare,
    /// Executes a prepared statement.
    StmtExecute,
    /// Sends a part of a parameter. No answer.
    StmtSendLongData,
    /// Drops a prepared statement. No answer.
    StmtClose,
    /// Forgets a prepared statement's long data and cursor.
    StmtReset,
    /// Reads rows from a cursor.
    StmtFetch,
    /// MariaDB: executes a prepared statement for many rows of parameters.
    StmtBulkExecute,
    /// Turns multi-statements on or off.
    SetOption,
    /// Puts the session back to its start, still logged in.
    ResetConnection,
    /// Any other: create or drop a schema, shut down, refresh, debug, or unknown.
    Other(u8),
}

/// The flags of an execution that ask for a cursor of any kind.
pub(crate) const CURSOR_FLAGS: u8 = 0x07;

/// The shape of the answer that a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// None.
    Nothing,
    /// OK, ERR, EOF or any other single packet.
    Single,
    /// OK, ERR, a request for a local file, or result sets.
    Results,
    /// The same, or columns without rows: these stay behind a cursor that was asked for.
    ResultsOrCursor,
    /// The answer to a preparation: its numbers, then parameter and column definitions.
    Prepared,
    /// Rows up to an end mark.
    Rows,
    /// Column definitions up to an end mark.
    Columns,
    /// An authentication exchange, which the client takes part in.
    Authentication,
    /// Packets until the connection ends.
    Stream,
}

impl Command {
    /// The command that the first byte of a message names.
    pub fn from_byte(byte: u8) -> Command {
        match byte {
            0x01 => Command::Quit,
            0x02 => Command::InitDb,
            0x03 => Command::Query,
            0x04 => Command::FieldList,
            0x09 => Command::Statistics,
            0x0a => Command::ProcessInfo,
            0x0c => Command::ProcessKill,
            0x0e => Command::Ping,
            0x11 => Command::ChangeUser,
            0x12 | 0x1e => Command::BinlogDump,
            0x15 => Command::RegisterReplica,
            0x16 => Command::StmtPrepare,
            0x17 => Command::StmtExecute,
            0x18 => Command::StmtSendLongData,
            0x19 => Command::StmtClose,
            0x1a => Command::StmtReset,
            0x1b => Command::SetOption,
            0x1c => Command::StmtFetch,
            0x1f => Command::ResetConnection,
            0xfa => Command::StmtBulkExecute,
            other => Command::Other(other),
        }
    }

    /// What answers it, given what follows its byte. Servers set the flag of a cursor also where a
    /// procedure has one of its own open, so that it counts only if the client has asked for one.
    pub fn response_kind_with(self, body: &[u8]) -> ResponseKind {
        /// Behind the statement's number.
        const FLAGS_AT: usize = 4;
        let flags = body.get(FLAGS_AT).copied().unwrap_or_default();
        match self {
            Command::StmtExecute if flags & CURSOR_FLAGS != 0 => ResponseKind::ResultsOrCursor,
            other => other.response_kind(),
        }
    }

    /// What answers it. An execution that asks for a cursor needs [`Command::response_kind_with`].
    pub fn response_kind(self) -> ResponseKind {
        match self {
            Command::Quit | Command::StmtSendLongData | Command::StmtClose => ResponseKind::Nothing,
            Command::Query
            | Command::ProcessInfo
            | Command::StmtExecute
            | Command::StmtBulkExecute => ResponseKind::Results,
            Command::FieldList => ResponseKind::Columns,
            Command::StmtPrepare => ResponseKind::Prepared,
            Command::StmtFetch => ResponseKind::Rows,
            Command::ChangeUser => ResponseKind::Authentication,
            Command::BinlogDump => ResponseKind::Stream,
            Command::InitDb
            | Command::Statistics
            | Command::Ping
            | Command::ProcessKill
            | Command::RegisterReplica
            | Command::StmtReset
            | Command::SetOption
            | Command::ResetConnection
            | Command::Other(_) => ResponseKind::Single,
        }
    }
}
