//! Names of log files, and what proves that a log goes on where it was left.

use remora_binlog::{Decoded, EventHeader, FormatDescription};
use serde::{Deserialize, Serialize};

/// The offset of a log file's first event, behind the file's magic number.
pub(crate) const FILE_BEGINS_AT: u64 = 4;

/// A log file's name: `binlog.000017` is base `binlog`, number 17.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogName {
    /// What stands before the last dot.
    pub base: String,
    /// The number after it.
    pub number: u64,
    digits: usize,
}

impl LogName {
    /// Reads a file's name; `None` if it doesn't end with a dot and a number.
    pub fn parse(file: &str) -> Option<LogName> {
        let (base, digits) = file.rsplit_once('.')?;
        if base.is_empty() || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        Some(LogName {
            base: base.to_owned(),
            number,
            digits: digits.len(),
        })
    }

    /// The name as the server writes it.
    pub fn file(&self) -> String {
        format!("{}.{:0width$}", self.base, self.number, width = self.digits)
    }

    /// Whether `next` is the file after this one.
    pub fn is_followed_by(&self, next: &LogName) -> bool {
        self.base == next.base && next.number == self.number + 1
    }
}

/// Which file it is, beyond its name: `RESET MASTER` or another server make one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    file_begun: u32,
    server_id: u32,
    server_version: String,
}

impl FileIdentity {
    /// From the file's first event. Its `created` is no part of it: servers send it only to those
    /// who read the file from its beginning.
    pub fn of(description: &FormatDescription) -> FileIdentity {
        FileIdentity {
            file_begun: description.file_begun,
            server_id: description.server_id,
            server_version: description.server_version.clone(),
        }
    }
}

/// Bytes of an event that are kept from each of its ends.
const KEPT_BYTES: usize = 128;

/// The last event that was applied, to be met again when the connection is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEvent {
    /// The file that it is in.
    pub name: LogName,
    /// That file's identity.
    pub identity: FileIdentity,
    /// The offset at which it begins.
    pub start_offset: u64,
    #[serde(with = "SavedHeader")]
    header: EventHeader,
    ends: Vec<u8>,
}

/// How an event's header is written down.
#[derive(Serialize, Deserialize)]
#[serde(remote = "EventHeader")]
struct SavedHeader {
    timestamp: u32,
    event_type: u8,
    server_id: u32,
    event_bytes: u32,
    end_offset_low: u32,
    flags: u16,
}

impl LastEvent {
    /// Remembers an event that lies in the log; `bytes` is it, or the beginning of it.
    pub fn new(
        name: &LogName,
        identity: &FileIdentity,
        decoded: &Decoded,
        bytes: &[u8],
    ) -> Option<LastEvent> {
        let start_offset = decoded
            .end_offset?
            .checked_sub(decoded.header.event_bytes.into())?;
        Some(LastEvent {
            name: name.clone(),
            identity: identity.clone(),
            start_offset,
            header: decoded.header,
            ends: ends_of(bytes),
        })
    }

    /// The same as a new one, without allocating anew.
    pub fn replace(&mut self, decoded: &Decoded, bytes: &[u8]) {
        let Some(end) = decoded.end_offset else {
            return;
        };
        let Some(start) = end.checked_sub(decoded.header.event_bytes.into()) else {
            return;
        };
        self.start_offset = start;
        self.header = decoded.header;
        self.ends.clear();
        put_ends(&mut self.ends, bytes);
    }

    /// Whether an event met in the log is this one.
    pub fn is(&self, decoded: &Decoded, bytes: &[u8]) -> bool {
        let end = decoded
            .end_offset
            .and_then(|end| end.checked_sub(self.start_offset));
        end == Some(self.header.event_bytes.into())
            && decoded.header == self.header
            && ends_of(bytes) == self.ends
    }
}

fn ends_of(bytes: &[u8]) -> Vec<u8> {
    let mut ends = Vec::with_capacity(2 * KEPT_BYTES);
    put_ends(&mut ends, bytes);
    ends
}

fn put_ends(ends: &mut Vec<u8>, bytes: &[u8]) {
    ends.extend_from_slice(&bytes[..bytes.len().min(KEPT_BYTES)]);
    ends.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_files_name_is_a_base_and_a_number() {
        let name = LogName::parse("db.example-bin.000017").unwrap();
        assert_eq!((name.base.as_str(), name.number), ("db.example-bin", 17));
        assert_eq!(name.file(), "db.example-bin.000017");
        for odd in [
            "binlog",
            "binlog.",
            ".000001",
            "binlog.00x",
            "binlog.+1",
            "",
        ] {
            assert_eq!(LogName::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_the_next_number_follows() {
        let name = |file| LogName::parse(file).unwrap();
        assert!(name("b.000009").is_followed_by(&name("b.000010")));
        assert!(name("b.999999").is_followed_by(&name("b.1000000")));
        for other in ["b.000009", "b.000008", "b.000011", "c.000010"] {
            assert!(!name("b.000009").is_followed_by(&name(other)), "{other}");
        }
    }
}
