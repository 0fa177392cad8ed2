//! The bytes that answered a command, as packets and as rows.

use remora_wire::packet::{HEADER_BYTES, Header};
use remora_wire::response::OK_MARK;
use remora_wire::rows::{Row, column_name, parse_text_row};
use remora_wire::walker::Summary;
use remora_wire::{Capabilities, StatusFlags};

use super::ClientError;
use super::binary::{Column, parse_row};

/// A packet of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number.
    pub sequence: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

/// The packets in the bytes of an answer. What is cut short at the end is left out.
#[derive(Debug, Clone)]
pub struct Packets<'a>(pub &'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let header = Header::peek(self.0)?;
        let (packet, rest) = self.0.split_at_checked(HEADER_BYTES + header.length)?;
        self.0 = rest;
        Some(Packet {
            sequence: header.sequence,
            payload: &packet[HEADER_BYTES..],
        })
    }
}

/// The answer to a statement that did not fail.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) summary: Summary,
    pub(super) capabilities: Capabilities,
}

impl<'a> Answer<'a> {
    /// All its bytes, headers included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How it ended.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The session's status flags after it.
    pub fn status(&self) -> StatusFlags {
        self.summary
            .mark
            .map(|mark| mark.status)
            .unwrap_or_default()
    }

    /// Its rows; none if it is no result set. Of several result sets, the first.
    pub fn rows(&self) -> Result<Vec<Row>, ClientError> {
        let (definitions, rows) = self.result_set();
        rows.map(|payload| parse_text_row(payload, definitions.len()).map_err(ClientError::from))
            .collect()
    }

    /// The same of an executed statement, with the values as text.
    pub fn binary_rows(&self) -> Result<Vec<Row>, ClientError> {
        let (definitions, rows) = self.result_set();
        let columns = definitions.into_iter().map(Column::parse);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        rows.map(|payload| parse_row(payload, &columns).map_err(ClientError::from))
            .collect()
    }

    /// The rows as they came, each without its header; none if it is no result set. Of several
    /// result sets, the first.
    pub fn row_payloads(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.result_set().1
    }

    /// The payloads of the definitions and of the rows.
    fn result_set(&self) -> (Vec<&'a [u8]>, impl Iterator<Item = &'a [u8]> + use<'a>) {
        let mut packets = self.payloads();
        let columns = Self::column_count(packets.next());
        let definitions: Vec<_> = packets.by_ref().take(columns).collect();
        if columns > 0 && !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            packets.next();
        }
        let rows = packets.take_while(move |payload| columns > 0 && !is_end_mark(payload));
        (definitions, rows)
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Result<Vec<String>, ClientError> {
        let mut packets = self.payloads();
        let columns = Self::column_count(packets.next());
        let names = packets
            .take(columns)
            .map(|payload| Ok(column_name(payload)?));
        names.collect()
    }

    fn payloads(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Packets(self.bytes).map(|packet| packet.payload)
    }

    fn column_count(first: Option<&[u8]>) -> usize {
        match first.and_then(|payload| payload.first()) {
            Some(&count) if count != OK_MARK && count < 0xfb => usize::from(count),
            _ => 0,
        }
    }
}

/// Rows here are below 16 MiB, so one that begins with 0xfe ends the result set.
fn is_end_mark(payload: &[u8]) -> bool {
    payload.first().is_some_and(|&first| first == 0xfe)
}
