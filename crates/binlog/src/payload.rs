//! MySQL's transaction payload event (8.0.20 and later): a whole transaction's events, compressed.
//!
//! Its body: fields, each a type, a length and a value (all length-encoded integers), up to the
//! type 0; then the events without checksums. Their positions mean nothing. Whatever is odd about
//! it gives `None`: the events around it are sound, so its changes count as changes of everything
//! and the log is read on.

use std::io::{self, Read};

use crate::cursor::Cursor;
use crate::header::{EventHeader, HEADER_BYTES};

const FIELD_END: u64 = 0;
const FIELD_PAYLOAD_BYTES: u64 = 1;
const FIELD_COMPRESSION: u64 = 2;
const FIELD_UNCOMPRESSED_BYTES: u64 = 3;
const COMPRESSION_ZSTD: u64 = 0;
const COMPRESSION_NONE: u64 = 255;

/// The events of a payload, one after the other.
pub(crate) struct Payload<'a> {
    reader: Box<dyn Read + 'a>,
    /// Uncompressed bytes that must still come.
    left_bytes: u64,
}

/// An event of a payload.
pub(crate) struct Inner {
    pub(crate) header: EventHeader,
    /// Its body, or the beginning of it.
    pub(crate) body: Vec<u8>,
    pub(crate) is_whole: bool,
}

/// Opens a payload of at most `bytes_max` uncompressed bytes.
pub(crate) fn open(body: &[u8], bytes_max: usize) -> Option<Payload<'_>> {
    let mut cursor = Cursor::new(body);
    let (mut payload, mut compression, mut uncompressed) = (None, None, None);
    loop {
        let field = cursor.length_encoded("field").ok()?;
        if field == FIELD_END {
            break;
        }
        let length = usize::try_from(cursor.length_encoded("length").ok()?).ok()?;
        let mut value = Cursor::new(cursor.bytes(length, "value").ok()?);
        let slot = match field {
            FIELD_PAYLOAD_BYTES => &mut payload,
            FIELD_COMPRESSION => &mut compression,
            FIELD_UNCOMPRESSED_BYTES => &mut uncompressed,
            // Later servers' fields say nothing about how the known ones are read.
            _ => continue,
        };
        *slot = Some(value.length_encoded("value").ok()?);
    }
    let bytes = cursor.rest();
    if payload? != bytes.len() as u64 {
        return None;
    }
    let left_bytes = match compression? {
        COMPRESSION_NONE => uncompressed.unwrap_or(bytes.len() as u64),
        _ => uncompressed?,
    };
    if left_bytes > bytes_max as u64 {
        return None;
    }
    let reader: Box<dyn Read> = match compression? {
        COMPRESSION_ZSTD => Box::new(decompress(bytes, bytes_max)?),
        COMPRESSION_NONE => Box::new(bytes),
        _ => return None,
    };
    Some(Payload { reader, left_bytes })
}

/// The decompressed bytes. A frame that asks for a larger window than the bound fails at reading.
fn decompress(bytes: &[u8], bytes_max: usize) -> Option<impl Read> {
    const WINDOW_LOG_MIN: u32 = 10;
    const WINDOW_LOG_MAX: u32 = 27;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).ok()?;
    let window_log = bytes_max.max(1).ilog2().saturating_add(1);
    decoder
        .window_log_max(window_log.clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX))
        .ok()?;
    Some(decoder)
}

impl Payload<'_> {
    /// Whether all events have been read and nothing follows.
    pub(crate) fn is_at_end(&mut self) -> Option<bool> {
        if self.left_bytes > 0 {
            return Some(false);
        }
        let more = self.reader.read(&mut [0]).ok()?;
        (more == 0).then_some(true)
    }

    /// The next event; of its body at most the first bytes, as many as `keep_bytes` says for its
    /// type and its body's length.
    pub(crate) fn next(&mut self, keep_bytes: impl Fn(u8, u64) -> usize) -> Option<Inner> {
        let mut head = [0; HEADER_BYTES];
        self.reader.read_exact(&mut head).ok()?;
        let header = EventHeader::parse(&head).ok()?;
        let event_bytes = u64::from(header.event_bytes);
        self.left_bytes = self.left_bytes.checked_sub(event_bytes)?;
        let body_bytes = event_bytes.checked_sub(HEADER_BYTES as u64)?;
        let kept_bytes = body_bytes.min(keep_bytes(header.event_type, body_bytes) as u64);
        let skipped_bytes = body_bytes - kept_bytes;
        let mut body = Vec::new();
        self.reader
            .by_ref()
            .take(kept_bytes)
            .read_to_end(&mut body)
            .ok()?;
        let skipped = io::copy(
            &mut self.reader.by_ref().take(skipped_bytes),
            &mut io::sink(),
        );
        let is_complete = body.len() as u64 == kept_bytes && skipped.ok()? == skipped_bytes;
        is_complete.then_some(Inner {
            header,
            body,
            is_whole: skipped_bytes == 0,
        })
    }
}
