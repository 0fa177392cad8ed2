//! Text result sets of Remora's own, and the parts of a small one from the server.
//!
//! Source: MySQL internals, "Text Resultset", "Column Definition"; MariaDB knowledge base, "Result
//! Set Packets".

use crate::packet::{HEADER_BYTES, Header, put_message};
use crate::reader::{Reader, put_length};
use crate::response::{EOF_MARK, ERR_MARK, EndMark};
use crate::{Capabilities, StatusFlags, WireError};

/// The collation of Remora's own texts: `utf8mb3_general_ci`, which every server and client knows.
const UTF8_GENERAL_CI: u16 = 33;
/// The pseudo collation of numbers.
const BINARY: u16 = 63;
/// Longest characters of that collation, bytes.
const UTF8_BYTES_MAX: u32 = 3;

/// What a column of a result set holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text of at most so many characters.
    Text {
        /// The most characters.
        length: u32,
    },
    /// Whole numbers without sign, as `BIGINT UNSIGNED`.
    Unsigned,
    /// Numbers with a fraction, as `DOUBLE`.
    Double,
}

/// A column of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

impl Column {
    /// A column of text.
    pub fn text(name: &str, length: u32) -> Column {
        Column {
            name: name.to_owned(),
            kind: ColumnKind::Text { length },
        }
    }

    /// A column of whole numbers.
    pub fn unsigned(name: &str) -> Column {
        Column {
            name: name.to_owned(),
            kind: ColumnKind::Unsigned,
        }
    }

    /// Appends the definition's payload, for a client with these capabilities.
    fn put(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        put_text(out, b"def");
        // Schema, table and the table's own name: it is of no table.
        out.extend_from_slice(&[0, 0, 0]);
        put_text(out, self.name.as_bytes());
        out.push(0);
        if capabilities.has(Capabilities::MARIADB_EXTENDED_METADATA) {
            out.push(0);
        }
        let (collation, length, kind, flags, decimals): (u16, u32, u8, u16, u8) = match self.kind {
            ColumnKind::Text { length } => {
                let bytes = length.saturating_mul(UTF8_BYTES_MAX);
                (UTF8_GENERAL_CI, bytes, 0xfd, 0, 0)
            }
            // `NOT_NULL`, `UNSIGNED`, `BINARY`.
            ColumnKind::Unsigned => (BINARY, 21, 0x08, 0x0001 | 0x0020 | 0x0080, 0),
            ColumnKind::Double => (BINARY, 23, 0x05, 0x0080, 31),
        };
        // The length of what follows.
        out.push(0x0c);
        out.extend_from_slice(&collation.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&[decimals, 0, 0]);
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_length(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends a text row's payload; `None` is NULL.
pub fn put_text_row<'f>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = Option<&'f [u8]>>) {
    for field in fields {
        match field {
            None => out.push(0xfb),
            Some(text) => put_text(out, text),
        }
    }
}

/// A result set being written: column definitions, rows, the end mark, each for a client with these
/// capabilities. Its packets are numbered from 1.
#[derive(Debug)]
pub struct ResultSet {
    capabilities: Capabilities,
    status: StatusFlags,
    next_sequence: u8,
    payload: Vec<u8>,
    packets: Vec<u8>,
}

impl ResultSet {
    /// Begins one. `status` is the session's, and ends it.
    pub fn begin(capabilities: Capabilities, status: StatusFlags, columns: &[Column]) -> ResultSet {
        let mut set = ResultSet {
            capabilities,
            status,
            next_sequence: 1,
            payload: Vec::new(),
            packets: Vec::new(),
        };
        put_length(&mut set.payload, columns.len() as u64);
        if names_metadata(capabilities) {
            // The definitions follow.
            set.payload.push(1);
        }
        set.put_payload();
        for column in columns {
            column.put(&mut set.payload, capabilities);
            set.put_payload();
        }
        if !capabilities.has(Capabilities::DEPRECATE_EOF) {
            set.put_eof();
        }
        set
    }

    /// Appends a row, with a field for each column.
    pub fn row<'f>(&mut self, fields: impl IntoIterator<Item = Option<&'f [u8]>>) {
        put_text_row(&mut self.payload, fields);
        self.put_payload();
    }

    /// The same of texts, none of them NULL.
    pub fn text_row(&mut self, fields: &[&str]) {
        self.row(fields.iter().map(|field| Some(field.as_bytes())));
    }

    /// How many bytes it has so far.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether it has none; never, since it begins with its columns.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Ends it as another ended: `end` is the payload of the mark that a server sent to the same
    /// client. Gives all its packets.
    pub fn finish_as(mut self, end: &[u8]) -> Vec<u8> {
        self.payload.extend_from_slice(end);
        self.put_payload();
        self.packets
    }

    /// Ends it; gives all its packets.
    pub fn finish(mut self) -> Vec<u8> {
        if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            // No rows affected, no last insert id; no warnings.
            self.payload.extend_from_slice(&[EOF_MARK, 0, 0]);
            self.payload.extend_from_slice(&self.status.0.to_le_bytes());
            self.payload.extend_from_slice(&[0, 0]);
            self.put_payload();
        } else {
            self.put_eof();
        }
        self.packets
    }

    fn put_eof(&mut self) {
        self.payload.extend_from_slice(&[EOF_MARK, 0, 0]);
        self.payload.extend_from_slice(&self.status.0.to_le_bytes());
        self.put_payload();
    }

    fn put_payload(&mut self) {
        self.next_sequence = put_message(&mut self.packets, self.next_sequence, &self.payload);
        self.payload.clear();
    }
}

fn names_metadata(capabilities: Capabilities) -> bool {
    capabilities.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
        || capabilities.has(Capabilities::MARIADB_CACHE_METADATA)
}

/// The payloads of a complete answer that is one text result set, none of them longer than one
/// packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Of the column count, the definitions, and their end mark if there is one.
    pub head: Vec<&'a [u8]>,
    /// How many of `head` are definitions; the first stands behind the count.
    pub definitions: usize,
    /// How many columns there are.
    pub columns: usize,
    /// Of the rows.
    pub rows: Vec<&'a [u8]>,
    /// Of the end mark.
    pub end: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Takes the answer to a client with these capabilities apart.
    ///
    /// # Errors
    /// It isn't one result set.
    pub fn of(answer: &'a [u8], capabilities: Capabilities) -> Result<Parts<'a>, WireError> {
        const WHAT: &str = "result set";
        let mut payloads = Vec::new();
        let mut rest = answer;
        while !rest.is_empty() {
            let header = Header::peek(rest).ok_or(WireError::Truncated(WHAT))?;
            let end = HEADER_BYTES + header.length;
            if header.is_continued() {
                return Err(WireError::Unsupported(WHAT));
            }
            payloads.push(
                rest.get(HEADER_BYTES..end)
                    .ok_or(WireError::Truncated(WHAT))?,
            );
            rest = &rest[end..];
        }
        let first = payloads.first().ok_or(WireError::Truncated(WHAT))?;
        if matches!(first.first(), None | Some(&(0 | ERR_MARK | 0xfb))) {
            return Err(WireError::Malformed(WHAT));
        }
        let mut reader = Reader::new(first);
        let columns = usize::try_from(reader.length(WHAT)?).unwrap_or(usize::MAX);
        let are_defined =
            !names_metadata(capabilities) || reader.is_empty() || reader.u8(WHAT)? != 0;
        let definitions = if are_defined { columns } else { 0 };
        let has_mark = !capabilities.has(Capabilities::DEPRECATE_EOF);
        let head = definitions
            .checked_add(1 + usize::from(has_mark))
            .filter(|head| *head < payloads.len())
            .ok_or(WireError::Truncated(WHAT))?;
        let rows = payloads.split_off(head);
        let Some((end, rows)) = rows.split_last() else {
            return Err(WireError::Truncated(WHAT));
        };
        if end.first() != Some(&EOF_MARK) {
            return Err(WireError::Malformed(WHAT));
        }
        Ok(Parts {
            head: payloads,
            definitions,
            columns,
            rows: rows.to_vec(),
            end,
        })
    }

    /// The status flags and warnings at its end.
    pub fn mark(&self, capabilities: Capabilities) -> Result<EndMark, WireError> {
        mark_in(self.end, capabilities)
    }
}

/// The status flags and warnings in an end mark's payload.
fn mark_in(end: &[u8], capabilities: Capabilities) -> Result<EndMark, WireError> {
    if capabilities.has(Capabilities::DEPRECATE_EOF) {
        EndMark::from_ok(end)
    } else {
        EndMark::from_eof(end)
    }
}

/// The end mark of an answer that is one whole result set to a client with these capabilities,
/// however long its rows are: its payload, and what it says.
///
/// # Errors
/// The last packet is cut, or is no end mark.
pub fn end_mark(answer: &[u8], capabilities: Capabilities) -> Result<(&[u8], EndMark), WireError> {
    const WHAT: &str = "result set's end";
    let mut rest = answer;
    loop {
        let header = Header::peek(rest).ok_or(WireError::Truncated(WHAT))?;
        let end = HEADER_BYTES + header.length;
        let payload = rest
            .get(HEADER_BYTES..end)
            .ok_or(WireError::Truncated(WHAT))?;
        rest = &rest[end..];
        if rest.is_empty() {
            return Ok((payload, mark_in(payload, capabilities)?));
        }
    }
}

/// The packets of these payloads, numbered from 1.
pub fn packets<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut packets = Vec::new();
    let mut sequence = 1;
    for payload in payloads {
        sequence = put_message(&mut packets, sequence, payload);
    }
    packets
}
