//! Events at the level of tables.

use std::sync::Arc;

use crate::column::TableMap;
use crate::gtid::{Gtid, GtidSet};
use crate::kinds::RowsKind;
use crate::rows::Rows;
use crate::xa::Xid;

/// How events are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    /// Not at all.
    None,
    /// By four bytes of CRC32 at their end.
    Crc32,
}

/// The first event of every log file: how the rest is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// The server's version text.
    pub server_version: String,
    /// When the *server* was started, if this file is the first since then, else 0. Servers send 0
    /// to a reader that begins in the middle of the file.
    pub created: u32,
    /// When the file was begun, in seconds since 1970 (the header's timestamp).
    pub file_begun: u32,
    /// The server that wrote the file.
    pub server_id: u32,
    /// How events are protected.
    pub checksum: ChecksumAlgorithm,
}

/// The beginning of an event group (a transaction or a single statement).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupBegin {
    /// MariaDB's domain; 0 for MySQL.
    pub domain: u32,
    /// The number of the group; 0 for MySQL.
    pub sequence: u64,
    /// How the group ends.
    pub shape: GroupShape,
    /// The group changes definitions (MariaDB's `FL_DDL`).
    pub ddl: bool,
    /// The group says that an `ALTER` has begun, and not what becomes of it, or that one was given
    /// up (MariaDB's `FL_START_ALTER_E1` and `FL_ROLLBACK_ALTER_E1`, with
    /// `binlog_alter_two_phase`).
    pub begins_alter: bool,
    /// The group is one side of a two-phase XA transaction, if it is.
    pub xa: Option<XaSide>,
}

/// How an event group ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupShape {
    /// With its only statement: no commit event follows (MariaDB's `FL_STANDALONE`).
    OneStatement,
    /// With a commit event.
    CommitEvent,
    /// MySQL doesn't say: with a commit event if its first statement is `BEGIN`, else with that
    /// statement.
    ToldByFirstStatement,
}

/// Which side of a two-phase XA transaction a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XaSide {
    /// It prepares.
    Prepare,
    /// It commits or rolls back what was prepared.
    Complete,
}

/// A statement's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The default schema that the statement ran in; empty if there was none.
    pub schema: String,
    /// The text, in the character set of the session.
    pub text: Vec<u8>,
    /// The session's `sql_mode` as a bit set, if the event says.
    pub sql_mode: Option<u64>,
    /// The collation id of the session's `character_set_client`, if the event says.
    pub client_collation: Option<u16>,
    /// The error that the statement ended with on the server; 0 for none.
    pub error_code: u16,
}

/// An event at the level of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// How the file is to be read.
    FormatDescription(FormatDescription),
    /// The log goes on in another file (or, artificial: is read from this file).
    Rotate {
        /// The file's name.
        file: String,
        /// The offset that reading goes on at.
        offset: u64,
    },
    /// A group of events begins.
    Gtid {
        /// MySQL's identity of the transaction. `None` on MariaDB, for an anonymous one, and for
        /// one that can't be read.
        gtid: Option<Gtid>,
        /// What else is said about the group.
        group: GroupBegin,
    },
    /// MySQL: the transactions in all files before this one.
    PreviousGtids(GtidSet),
    /// A statement's text.
    Query(Query),
    /// The next row events of `table_id` are about this table; or it may be changed by a foreign
    /// key.
    TableMap {
        /// The number that row events use.
        table_id: u64,
        /// The table.
        table: Arc<TableMap>,
    },
    /// Rows of a table changed.
    Rows {
        /// What happened.
        kind: RowsKind,
        /// The table, if a table map event named it (the server's dummy number names none).
        table: Option<Arc<TableMap>>,
        /// It's the last row event of its statement.
        statement_ends: bool,
        /// The rows. `None` if they can't be read: too many bytes, a type that isn't known, partial
        /// JSON.
        rows: Option<Rows>,
    },
    /// A transaction was committed.
    Xid,
    /// An XA transaction was prepared (or committed in one phase).
    XaPrepare {
        /// Prepared and committed at once.
        one_phase: bool,
        /// The transaction's name. `None` if it can't be one.
        xid: Option<Xid>,
    },
    /// MySQL: a whole transaction's events, which were compressed; where it has more rows than are
    /// kept, of the events without rows that touch the same table only the first. `None` if it
    /// can't be read or is beyond the bound: everything may have changed.
    Payload(Option<Vec<Event>>),
    /// Every transaction in the files before this one has been committed in its engines (MariaDB's
    /// binlog checkpoint; the engines' order is that of the log, so its readers see them all).
    Checkpoint {
        /// The file.
        file: String,
    },
    /// Nothing new; sent so that the reader knows that the connection is alive.
    Heartbeat {
        /// The file that the server reads.
        file: String,
    },
    /// The server was shut down.
    Stop,
    /// The server says that changes may be missing from the log.
    Incident,
    /// An event that changes nothing by itself.
    Ignored(u8),
    /// An event whose changes can't be named: everything may have changed.
    Unnamed(u8),
}
