//! The bodies of the event types, without header and checksum.

use crate::column::{self, Family, TableMap};
use crate::cursor::{Cursor, utf8};
use crate::error::DecodeError;
use crate::event::{ChecksumAlgorithm, GroupBegin, GroupShape, Query, XaSide};
use crate::inflate::inflate;
use crate::table::LoggedTable;
use crate::xa::Xid;

/// Version of the log format that is spoken since MySQL 5.0.
const LOG_VERSION: u16 = 4;
/// Bytes of the server version in a format description event.
const SERVER_VERSION_BYTES: usize = 50;
/// Post-header bytes of a query event.
const QUERY_POST_HEADER_BYTES: usize = 13;
/// MariaDB's `Gtid_log_event` flags (`log_event.h`).
const FL_STANDALONE: u8 = 1;
const FL_GROUP_COMMIT_ID: u8 = 2;
const FL_DDL: u8 = 32;
const FL_PREPARED_XA: u8 = 64;
const FL_COMPLETED_XA: u8 = 128;
/// Two of its further flags.
const FL_START_ALTER: u8 = 2;
const FL_ROLLBACK_ALTER: u8 = 8;
/// Bytes of the number of a group commit.
const GROUP_COMMIT_ID_BYTES: usize = 8;

/// The format description's body: what the decoder keeps of it.
#[derive(Debug, Clone)]
pub(crate) struct FormatBody {
    pub(crate) server_version: String,
    pub(crate) created: u32,
    pub(crate) post_header_bytes: Vec<u8>,
}

/// The checksum algorithm that a format description event (whole, with header) announces.
pub(crate) fn checksum_algorithm(event: &[u8]) -> Result<ChecksumAlgorithm, DecodeError> {
    // The last five bytes are the algorithm and the event's own checksum, on every server since
    // MySQL 5.6 and MariaDB 5.3. Older ones end after the post-header lengths; they are refused.
    let at = event.len().checked_sub(5).ok_or(DecodeError::Truncated {
        field: "checksum algorithm",
        needed: 5,
        left: event.len(),
    })?;
    match event[at] {
        0 => Ok(ChecksumAlgorithm::None),
        1 => Ok(ChecksumAlgorithm::Crc32),
        other => Err(DecodeError::ChecksumAlgorithm(other)),
    }
}

/// `body` ends before the algorithm byte.
pub(crate) fn format_description(body: &[u8]) -> Result<FormatBody, DecodeError> {
    let mut cursor = Cursor::new(body);
    let version = cursor.u16("log version")?;
    if version != LOG_VERSION {
        return Err(DecodeError::LogVersion(version));
    }
    let text = cursor.bytes(SERVER_VERSION_BYTES, "server version")?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let server_version = String::from_utf8_lossy(text).into_owned();
    let created = cursor.u32("creation time")?;
    if usize::from(cursor.u8("header length")?) != crate::header::HEADER_BYTES {
        return Err(DecodeError::Invalid("header length"));
    }
    Ok(FormatBody {
        server_version,
        created,
        post_header_bytes: cursor.rest().to_vec(),
    })
}

pub(crate) fn rotate(body: &[u8]) -> Result<(String, u64), DecodeError> {
    let mut cursor = Cursor::new(body);
    let offset = cursor.uint(8, "rotate offset")?;
    let file = utf8(cursor.rest(), "the next file's name")?;
    if file.is_empty() {
        return Err(DecodeError::Invalid("the next file's name"));
    }
    Ok((file, offset))
}

pub(crate) fn gtid(body: &[u8]) -> Result<GroupBegin, DecodeError> {
    let mut cursor = Cursor::new(body);
    let sequence = cursor.uint(8, "GTID sequence")?;
    let domain = cursor.u32("GTID domain")?;
    let flags = cursor.u8("GTID flags")?;
    let standalone = flags & FL_STANDALONE != 0;
    let xa = match (flags & FL_PREPARED_XA != 0, flags & FL_COMPLETED_XA != 0) {
        (true, _) => Some(XaSide::Prepare),
        (false, true) => Some(XaSide::Complete),
        (false, false) => None,
    };
    Ok(GroupBegin {
        domain,
        sequence,
        shape: if standalone {
            GroupShape::OneStatement
        } else {
            GroupShape::CommitEvent
        },
        ddl: flags & FL_DDL != 0,
        begins_alter: xa.is_none() && begins_alter(flags, cursor.rest()),
        xa,
    })
}

/// `rest` stands behind the flags, and no XA transaction's name is in it. Older servers end the
/// event there, or have zeros.
fn begins_alter(flags: u8, rest: &[u8]) -> bool {
    let skipped = if flags & FL_GROUP_COMMIT_ID == 0 {
        0
    } else {
        GROUP_COMMIT_ID_BYTES
    };
    let further_flags = rest.get(skipped).copied().unwrap_or_default();
    further_flags & (FL_START_ALTER | FL_ROLLBACK_ALTER) != 0
}

/// A table map: its number and table. `table_id_bytes` is 6, in very old logs 4.
pub(crate) fn table_map(
    body: &[u8],
    table_id_bytes: usize,
    family: Family,
) -> Result<(u64, TableMap), DecodeError> {
    let mut cursor = Cursor::new(body);
    let table_id = cursor.uint(table_id_bytes, "table id")?;
    cursor.u16("table map flags")?;
    let schema = name(&mut cursor, "schema name")?;
    let table = name(&mut cursor, "table name")?;
    let columns = cursor.length_encoded("column count")?;
    let columns = usize::try_from(columns).map_err(|_| DecodeError::Invalid("column count"))?;
    let types = cursor.bytes(columns, "column types")?;
    let map = TableMap {
        table: LoggedTable { schema, table },
        columns: column::columns(types, cursor, family).unwrap_or_default(),
    };
    Ok((table_id, map))
}

fn name(cursor: &mut Cursor<'_>, field: &'static str) -> Result<String, DecodeError> {
    let length = cursor.u8(field)?;
    let text = utf8(cursor.bytes(usize::from(length), field)?, field)?;
    match cursor.u8(field)? {
        0 if !text.is_empty() => Ok(text),
        _ => Err(DecodeError::Invalid(field)),
    }
}

/// The table number and the flags of a rows event, and what follows.
pub(crate) fn rows(body: &[u8], table_id_bytes: usize) -> Result<(u64, u16, &[u8]), DecodeError> {
    let mut cursor = Cursor::new(body);
    let table_id = cursor.uint(table_id_bytes, "table id")?;
    let flags = cursor.u16("row event flags")?;
    Ok((table_id, flags, cursor.rest()))
}

/// Whether it is committed at once, and the XID.
pub(crate) fn xa_prepare(body: &[u8]) -> Result<(bool, Option<Xid>), DecodeError> {
    const FIELD: &str = "XID";
    let mut cursor = Cursor::new(body);
    let one_phase = cursor.u8("one phase flag")? != 0;
    let format_id = cursor.u32(FIELD)?;
    let mut length = || -> Result<usize, DecodeError> {
        usize::try_from(cursor.u32(FIELD)?).map_err(|_| DecodeError::Invalid(FIELD))
    };
    let (global, branch) = (length()?, length()?);
    let global = cursor.bytes(global, FIELD)?;
    let branch = cursor.bytes(branch, FIELD)?;
    Ok((one_phase, Xid::new(format_id, global, branch)))
}

/// The file's name in a heartbeat of version 2: fields, each a type, a length and a value.
pub(crate) fn heartbeat_v2(body: &[u8]) -> Result<String, DecodeError> {
    const FIELD: &str = "heartbeat's file name";
    const END: u64 = 0;
    const FILE: u64 = 1;
    let mut cursor = Cursor::new(body);
    let mut file = None;
    while !cursor.rest().is_empty() {
        let field = cursor.length_encoded(FIELD)?;
        if field == END {
            break;
        }
        let length = usize::try_from(cursor.length_encoded(FIELD)?).unwrap_or(usize::MAX);
        let value = cursor.bytes(length, FIELD)?;
        if field == FILE {
            file = Some(utf8(value, FIELD)?);
        }
    }
    file.ok_or(DecodeError::Invalid(FIELD))
}

/// A query event. Gives `None` if the text is compressed and can't be had within the bound.
pub(crate) fn query(
    body: &[u8],
    post_header_bytes: usize,
    compressed: bool,
    text_bytes_max: usize,
) -> Result<Option<Query>, DecodeError> {
    let mut cursor = Cursor::new(body);
    let mut post = Cursor::new(cursor.bytes(post_header_bytes, "query header")?);
    post.bytes(8, "thread and duration")?;
    let schema_bytes = usize::from(post.u8("schema length")?);
    let error_code = post.u16("error code")?;
    let status_bytes = if post_header_bytes >= QUERY_POST_HEADER_BYTES {
        usize::from(post.u16("status variables' length")?)
    } else {
        0
    };
    let status = cursor.bytes(status_bytes, "status variables")?;
    let (sql_mode, client_collation) = status_variables(status);
    let schema = utf8(
        cursor.bytes(schema_bytes, "default schema")?,
        "default schema",
    )?;
    if cursor.u8("default schema's end")? != 0 {
        return Err(DecodeError::Invalid("default schema's end"));
    }
    let text = if compressed {
        match inflate(cursor.rest(), text_bytes_max)? {
            Some(text) => text,
            None => return Ok(None),
        }
    } else {
        cursor.rest().to_vec()
    };
    Ok(Some(Query {
        schema,
        text,
        sql_mode,
        client_collation,
        error_code,
    }))
}

/// `sql_mode` and the client's collation. Stops at the first code that isn't known: their order is
/// fixed and these two come early; what isn't found is `None` and the caller must assume the worst.
fn status_variables(bytes: &[u8]) -> (Option<u64>, Option<u16>) {
    let mut cursor = Cursor::new(bytes);
    let (mut sql_mode, mut collation) = (None, None);
    while let Ok(code) = cursor.u8("code") {
        let read = match code {
            0 | 10 => cursor.bytes(4, "flags"),
            1 => match cursor.uint(8, "sql_mode") {
                Ok(value) => {
                    sql_mode = Some(value);
                    continue;
                }
                Err(error) => Err(error),
            },
            2 => counted(&mut cursor, 1),
            3 => cursor.bytes(4, "auto_increment"),
            4 => match cursor.u16("client collation") {
                Ok(value) => {
                    collation = Some(value);
                    cursor.bytes(4, "collations")
                }
                Err(error) => Err(error),
            },
            5 | 6 => counted(&mut cursor, 0),
            _ => break,
        };
        if read.is_err() {
            break;
        }
    }
    (sql_mode, collation)
}

fn counted<'a>(cursor: &mut Cursor<'a>, more: usize) -> Result<&'a [u8], DecodeError> {
    let length = cursor.u8("length")?;
    cursor.bytes(usize::from(length) + more, "text")
}

/// The file that a checkpoint event names: its length in four bytes, then the name.
pub(crate) fn checkpoint(body: &[u8]) -> Result<String, DecodeError> {
    let mut cursor = Cursor::new(body);
    let length = cursor.u32("checkpoint's length")?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    utf8(
        cursor.bytes(length, "checkpoint's file name")?,
        "checkpoint's file name",
    )
}
