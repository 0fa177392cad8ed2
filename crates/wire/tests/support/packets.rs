//! Writes what a server answers, from the protocol's description alone: nothing of the crate under
//! test is used to build bytes.

use remora_wire::command::ResponseKind;
use remora_wire::response::EndMark;
use remora_wire::walker::{Ending, Summary};
use remora_wire::{Capabilities, StatusFlags};

/// A full packet's payload, bytes.
pub const FULL: usize = 0xff_ffff;

/// Writes packets one after the other and numbers them.
#[derive(Debug, Clone)]
pub struct Packets {
    pub bytes: Vec<u8>,
    pub sequence: u8,
}

impl Packets {
    /// The first packet of an answer has the number 1.
    pub fn answer() -> Packets {
        Packets {
            bytes: Vec::new(),
            sequence: 1,
        }
    }

    /// One message, split as the protocol asks for.
    pub fn put(&mut self, payload: &[u8]) -> &mut Self {
        let mut chunks: Vec<&[u8]> = payload.chunks(FULL).collect();
        if payload.len().is_multiple_of(FULL) {
            chunks.push(&[]);
        }
        for chunk in chunks {
            let length = u32::try_from(chunk.len()).unwrap().to_le_bytes();
            self.bytes.extend_from_slice(&length[..3]);
            self.bytes.push(self.sequence);
            self.bytes.extend_from_slice(chunk);
            self.sequence = self.sequence.wrapping_add(1);
        }
        self
    }
}

/// `int<lenenc>`.
pub fn lenenc(value: usize) -> Vec<u8> {
    let bytes = (value as u64).to_le_bytes();
    match value {
        0..=0xfa => vec![bytes[0]],
        0xfb..=0xffff => [&[0xfc], &bytes[..2]].concat(),
        0x1_0000..=0xff_ffff => [&[0xfd], &bytes[..3]].concat(),
        _ => [&[0xfe], &bytes[..]].concat(),
    }
}

/// `string<lenenc>`.
pub fn lenenc_text(text: &[u8]) -> Vec<u8> {
    [&lenenc(text.len()), text].concat()
}

fn ok_packet(mark: u8, end: EndMark, numbers: (usize, usize), info: &[u8]) -> Vec<u8> {
    let (affected_rows, last_insert_id) = numbers;
    let mut out = vec![mark];
    out.extend(lenenc(affected_rows));
    out.extend(lenenc(last_insert_id));
    out.extend(end.status.0.to_le_bytes());
    out.extend(end.warnings.to_le_bytes());
    out.extend_from_slice(info);
    out
}

pub fn ok(end: EndMark) -> Vec<u8> {
    ok_packet(0x00, end, (1, 0), b"")
}

/// An OK with both numbers as wide as they get, and text after them.
pub fn wide_ok(end: EndMark, info: &[u8]) -> Vec<u8> {
    ok_packet(0x00, end, (usize::MAX, usize::MAX - 1), info)
}

/// The end of a result set, in the form that the capabilities ask for.
pub fn end(capabilities: Capabilities, end: EndMark) -> Vec<u8> {
    if capabilities.has(Capabilities::DEPRECATE_EOF) {
        ok_packet(0xfe, end, (0, 0), b"")
    } else {
        let mut out = vec![0xfe];
        out.extend(end.warnings.to_le_bytes());
        out.extend(end.status.0.to_le_bytes());
        out
    }
}

pub fn error(code: u16, text: &str) -> Vec<u8> {
    let mut out = vec![0xff];
    out.extend(code.to_le_bytes());
    out.extend_from_slice(b"#42000");
    out.extend_from_slice(text.as_bytes());
    out
}

/// MariaDB's progress report: stage 1 of 3, 0.1 %.
pub fn progress() -> Vec<u8> {
    let mut out = vec![0xff, 0xff, 0xff, 1, 1, 3, 100, 0, 0];
    out.extend(lenenc_text(b"copy to tmp table"));
    out
}

pub fn local_file(name: &str) -> Vec<u8> {
    [&[0xfb], name.as_bytes()].concat()
}

/// A column definition, as MySQL 4.1 and later write it.
pub fn definition(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for text in ["def", "shop", "t", "table1", name, name] {
        out.extend(lenenc_text(text.as_bytes()));
    }
    out.extend([0x0c, 0x21, 0, 0xff, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0]);
    out
}

/// A text row; `None` is NULL.
pub fn text_row(fields: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match field {
            None => out.push(0xfb),
            Some(text) => out.extend(lenenc_text(text)),
        }
    }
    out
}

/// A binary row of strings; `None` is NULL.
pub fn binary_row(fields: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = vec![0; 1 + (fields.len() + 9) / 8];
    for (at, field) in fields.iter().enumerate() {
        match field {
            None => out[1 + (at + 2) / 8] |= 1 << ((at + 2) % 8),
            Some(text) => out.extend(lenenc_text(text)),
        }
    }
    out
}

pub fn prepared(statement_id: u32, columns: u16, parameters: u16) -> Vec<u8> {
    let mut out = vec![0x00];
    out.extend(statement_id.to_le_bytes());
    out.extend(columns.to_le_bytes());
    out.extend(parameters.to_le_bytes());
    out.extend([0, 0, 0]);
    out
}

/// The end mark with these flags and two warnings.
pub fn mark(status: StatusFlags) -> EndMark {
    EndMark {
        status: StatusFlags::AUTOCOMMIT.with(status),
        warnings: 2,
    }
}

/// An answer and what a walker must say of it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub expect: ResponseKind,
    pub capabilities: Capabilities,
    pub bytes: Vec<u8>,
    /// Where the server waits for a file, bytes from the start.
    pub local_files: Vec<usize>,
    pub summary: Summary,
}

impl Answer {
    pub fn new(
        expect: ResponseKind,
        capabilities: Capabilities,
        packets: Packets,
        ending: Ending,
        mark: Option<EndMark>,
    ) -> Answer {
        Answer {
            expect,
            capabilities,
            bytes: packets.bytes,
            local_files: Vec::new(),
            summary: Summary {
                ending,
                mark,
                results: 1,
                numbered_from_one: true,
            },
        }
    }

    #[must_use]
    pub fn with_results(mut self, results: u32) -> Answer {
        self.summary.results = results;
        self
    }
}
