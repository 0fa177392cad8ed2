//! The header that every event begins with, and the event types by number.

use crate::cursor::Cursor;
use crate::error::DecodeError;

/// Bytes of the header of every event of a version 4 log.
pub const HEADER_BYTES: usize = 19;

/// Event types by their number in the log (MySQL's and MariaDB's `log_event.h`).
pub mod event_type {
    #![allow(missing_docs)]
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const INTVAR: u8 = 5;
    pub const APPEND_BLOCK: u8 = 9;
    pub const RAND: u8 = 13;
    pub const USER_VAR: u8 = 14;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const BEGIN_LOAD_QUERY: u8 = 17;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const IGNORABLE: u8 = 28;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS_V2: u8 = 30;
    pub const UPDATE_ROWS_V2: u8 = 31;
    pub const DELETE_ROWS_V2: u8 = 32;
    pub const MYSQL_GTID: u8 = 33;
    pub const MYSQL_ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const TRANSACTION_CONTEXT: u8 = 36;
    pub const VIEW_CHANGE: u8 = 37;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const MYSQL_GTID_TAGGED: u8 = 42;
    pub const ANNOTATE_ROWS: u8 = 160;
    pub const BINLOG_CHECKPOINT: u8 = 161;
    pub const GTID: u8 = 162;
    pub const GTID_LIST: u8 = 163;
    pub const START_ENCRYPTION: u8 = 164;
    pub const QUERY_COMPRESSED: u8 = 165;
    pub const WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const WRITE_ROWS_COMPRESSED_V2: u8 = 169;
    pub const UPDATE_ROWS_COMPRESSED_V2: u8 = 170;
    pub const DELETE_ROWS_COMPRESSED_V2: u8 = 171;
}

/// Header flag: the server made the event up for this reader; it isn't in the log.
const ARTIFICIAL: u16 = 0x20;
/// Header flag: a reader that doesn't know the type may ignore the event.
const IGNORABLE: u16 = 0x80;
/// Header flag (`LOG_EVENT_THREAD_SPECIFIC_F`).
const THREAD_SPECIFIC: u16 = 0x04;
/// Header flag of a format description event: the log is being written. Not covered by its
/// checksum.
pub(crate) const LOG_IN_USE: u16 = 0x01;

/// The header of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// When the event was made, in seconds since 1970.
    pub timestamp: u32,
    /// Which kind of event; see [`event_type`].
    pub event_type: u8,
    /// The server that first logged it.
    pub server_id: u32,
    /// Its length in bytes, header and checksum included.
    pub event_bytes: u32,
    /// The lower 32 bits of the offset at which it ends; 0 for events that aren't in the log.
    pub end_offset_low: u32,
    /// Flags.
    pub flags: u16,
}

impl EventHeader {
    /// Reads the header at the beginning of `event`.
    pub fn parse(event: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(event);
        Ok(Self {
            timestamp: cursor.u32("timestamp")?,
            event_type: cursor.u8("event type")?,
            server_id: cursor.u32("server id")?,
            event_bytes: cursor.u32("event length")?,
            end_offset_low: cursor.u32("end position")?,
            flags: cursor.u16("flags")?,
        })
    }

    /// Whether the server made it up for this reader.
    pub fn artificial(&self) -> bool {
        self.flags & ARTIFICIAL != 0
    }

    /// Whether a reader that doesn't know the type may ignore the event.
    pub fn ignorable(&self) -> bool {
        self.flags & IGNORABLE != 0
    }

    /// Whether a statement depended on its session: it used a temporary table.
    pub fn is_thread_specific(&self) -> bool {
        self.flags & THREAD_SPECIFIC != 0
    }
}
