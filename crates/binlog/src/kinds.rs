//! What an event's type says: of rows, of the ends of groups, and whether it is ignored.

use crate::header::{EventHeader, event_type as ty};

/// What happened to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsKind {
    /// Inserted.
    Write,
    /// Updated.
    Update,
    /// Deleted.
    Delete,
}

/// How a row event's rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsFormat {
    /// Without anything before them.
    V1,
    /// After extra data from the writer.
    V2,
    /// MariaDB's: as version 1, the rows deflated.
    CompressedV1,
}

/// What a row event's type says: what happened, and how the rows are written (`None`: in a
/// format that isn't read).
pub(crate) fn rows_kind(event_type: u8) -> Option<(RowsKind, Option<RowsFormat>)> {
    use RowsFormat::{CompressedV1, V1, V2};
    use RowsKind::{Delete, Update, Write};
    Some(match event_type {
        ty::WRITE_ROWS_V1 => (Write, Some(V1)),
        ty::UPDATE_ROWS_V1 => (Update, Some(V1)),
        ty::DELETE_ROWS_V1 => (Delete, Some(V1)),
        ty::WRITE_ROWS_V2 => (Write, Some(V2)),
        ty::UPDATE_ROWS_V2 => (Update, Some(V2)),
        ty::DELETE_ROWS_V2 => (Delete, Some(V2)),
        ty::WRITE_ROWS_COMPRESSED_V1 => (Write, Some(CompressedV1)),
        ty::UPDATE_ROWS_COMPRESSED_V1 => (Update, Some(CompressedV1)),
        ty::DELETE_ROWS_COMPRESSED_V1 => (Delete, Some(CompressedV1)),
        // No server writes compressed ones of version 2. `PARTIAL_UPDATE_ROWS` has parts of JSON
        // documents in its images.
        ty::WRITE_ROWS_COMPRESSED_V2 => (Write, None),
        ty::UPDATE_ROWS_COMPRESSED_V2 | ty::PARTIAL_UPDATE_ROWS => (Update, None),
        ty::DELETE_ROWS_COMPRESSED_V2 => (Delete, None),
        _ => return None,
    })
}

/// Events that begin or end a group; what becomes visible there must have its place.
pub(crate) fn ends_group(event_type: u8) -> bool {
    matches!(event_type, ty::XID | ty::XA_PREPARE | ty::GTID)
}

/// Events about the log itself, which no transaction holds.
pub(crate) fn is_about_the_log(event_type: u8) -> bool {
    matches!(
        event_type,
        ty::STOP
            | ty::ROTATE
            | ty::FORMAT_DESCRIPTION
            | ty::HEARTBEAT
            | ty::HEARTBEAT_V2
            | ty::MYSQL_GTID
            | ty::MYSQL_ANONYMOUS_GTID
            | ty::MYSQL_GTID_TAGGED
            | ty::PREVIOUS_GTIDS
            | ty::TRANSACTION_PAYLOAD
            | ty::BINLOG_CHECKPOINT
            | ty::GTID
            | ty::GTID_LIST
            | ty::START_ENCRYPTION
    )
}

/// Events that change no table by themselves: what they prepare (a variable for the next query, a
/// block of a file to load) is done by a later event, which counts.
pub(crate) fn is_ignored(header: &EventHeader) -> bool {
    header.ignorable()
        || matches!(
            header.event_type,
            ty::INTVAR
                | ty::RAND
                | ty::USER_VAR
                | ty::APPEND_BLOCK
                | ty::BEGIN_LOAD_QUERY
                | ty::IGNORABLE
                | ty::ROWS_QUERY
                | ty::PREVIOUS_GTIDS
                | ty::TRANSACTION_CONTEXT
                | ty::VIEW_CHANGE
                | ty::ANNOTATE_ROWS
                | ty::BINLOG_CHECKPOINT
                | ty::GTID_LIST
                | ty::START_ENCRYPTION
        )
}
