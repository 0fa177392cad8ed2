//! The common form of what was captured: who did what, when, with which default schema.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Bytes that many events share.
pub type Bytes = Arc<[u8]>;

/// What a reader finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// Something that a connection did.
    Record(Record),
    /// Something that can't be repeated, with the reason, which is counted.
    LeftOut(Cow<'static, str>),
}

/// Something that a connection did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// When it was sent, microseconds since 1970. Some logs know nothing but local time; then it is
    /// that.
    pub sent_us: i64,
    /// Whether the log tells whole seconds only.
    pub is_whole_second: bool,
    /// Which connection: numbered from 0 in the order of appearance.
    pub connection: u32,
    /// The default schema: `None` if that isn't known, empty if there is none.
    pub schema: Option<Bytes>,
    /// What it did.
    pub action: Action,
}

/// What a connection did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It sent a statement as text.
    Query(Bytes),
    /// It executed a prepared statement.
    Execution(Arc<Execution>),
    /// It left.
    Quit,
}

/// An execution of a prepared statement, as the binary protocol has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The text that was prepared.
    pub text: Bytes,
    /// For each parameter its type and whether it is unsigned.
    pub types: Vec<u8>,
    /// A bit for each parameter that is NULL, in whole bytes, then the values that aren't.
    pub values: Vec<u8>,
}

impl Execution {
    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        self.types.len() / 2
    }
}

/// Where in a file something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a log: its line, from 1.
    Line(u64),
    /// In a capture: its packet, from 1.
    Packet(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(formatter, "line {number}"),
            Place::Packet(number) => write!(formatter, "packet {number}"),
        }
    }
}

/// Why a part of a file can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub why: String,
    /// Whether nothing after it can be read either.
    pub is_final: bool,
}

impl ReadError {
    /// The rest of the file can be read.
    pub(super) fn malformed(place: Place, why: impl Into<String>) -> ReadError {
        ReadError {
            place,
            why: why.into(),
            is_final: false,
        }
    }

    /// The rest can't be read.
    pub(super) fn last(place: Place, why: impl Into<String>) -> ReadError {
        ReadError {
            is_final: true,
            ..ReadError::malformed(place, why)
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.why)
    }
}

impl std::error::Error for ReadError {}

/// What a reader gives, one after another.
pub(super) type Read = Result<Item, ReadError>;

/// The schema that a statement `USE …` names, if it is one in its plain form.
pub(super) fn use_target(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let (word, rest) = text.split_at_checked(3)?;
    if !word.eq_ignore_ascii_case(b"use") {
        return None;
    }
    let name = rest.trim_ascii_start();
    let name = name.strip_suffix(b";").unwrap_or(name).trim_ascii_end();
    if let Some(quoted) = name.strip_prefix(b"`") {
        let inner = quoted.strip_suffix(b"`")?;
        return Some(undouble(inner));
    }
    let is_plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_$-.".contains(byte) || *byte >= 0x80;
    let is_name = !name.is_empty() && name.len() < rest.len() && name.iter().all(is_plain);
    is_name.then(|| name.to_vec())
}

/// A quoted name's doubled backticks made single.
fn undouble(inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        out.push(byte);
        if byte == b'`' {
            bytes.next_if_eq(&b'`');
        }
    }
    out
}

/// Whether a statement begins with this word, in any case.
pub(super) fn begins_with_word(text: &[u8], word: &str) -> bool {
    let text = text.trim_ascii_start();
    let Some((head, rest)) = text.split_at_checked(word.len()) else {
        return false;
    };
    head.eq_ignore_ascii_case(word.as_bytes())
        && rest
            .first()
            .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_use_statement_is_found() {
        let name =
            |text: &str| use_target(text.as_bytes()).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(name("USE shop").as_deref(), Some("shop"));
        assert_eq!(name(" use  `a``b c`; ").as_deref(), Some("a`b c"));
        assert_eq!(name("use`x`").as_deref(), Some("x"));
        assert_eq!(name("useful"), None);
        assert_eq!(name("use /* why */ x"), None);
        assert_eq!(name("use"), None);
    }

    #[test]
    fn a_first_word_is_a_whole_word() {
        assert!(begins_with_word(b" Execute s USING @a", "EXECUTE"));
        assert!(!begins_with_word(b"executed", "EXECUTE"));
        assert!(!begins_with_word(b"exec", "EXECUTE"));
    }
}
