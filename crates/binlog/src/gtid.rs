//! MySQL's global transaction identifiers, and sets of them.
//!
//! A GTID is the server that a transaction began on (a UUID), since MySQL 8.3 perhaps a tag, and a
//! number. Sources: MySQL's manual ("GTID Format and Storage") and the texts and events that real
//! servers give. MariaDB's GTIDs are another thing; see [`crate::GroupBegin`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Bytes of the UUID that names a source.
pub const SOURCE_BYTES: usize = 16;
/// Longest tag, characters.
const TAG_CHARACTERS_MAX: usize = 32;
/// MySQL's numbers are signed and below the largest.
pub(crate) const NUMBER_MAX: u64 = i64::MAX as u64 - 1;
/// Where a UUID's text has hyphens.
const HYPHENS_AT: [usize; 4] = [8, 13, 18, 23];
/// Characters of a UUID's text.
const UUID_CHARACTERS: usize = 36;

/// The identity of one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gtid {
    /// The UUID of the server that the transaction began on.
    pub source: [u8; SOURCE_BYTES],
    /// The tag (lower case); empty for none.
    pub tag: String,
    /// The number, from 1.
    pub number: u64,
}

impl Gtid {
    /// A GTID, if the number and the tag are such as a server gives.
    pub fn new(source: [u8; SOURCE_BYTES], tag: &str, number: u64) -> Option<Self> {
        let tag = match tag {
            "" => String::new(),
            tag => normal_tag(tag)?,
        };
        (1..=NUMBER_MAX).contains(&number).then_some(Self {
            source,
            tag,
            number,
        })
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_source(formatter, &self.source)?;
        if !self.tag.is_empty() {
            write!(formatter, ":{}", self.tag)?;
        }
        write!(formatter, ":{}", self.number)
    }
}

impl FromStr for Gtid {
    type Err = GtidError;

    /// Reads the text of exactly one GTID, as session tracking gives it.
    fn from_str(text: &str) -> Result<Self, GtidError> {
        GtidSet::from_str(text)?
            .into_single()
            .ok_or_else(|| GtidError::NotOne(text.to_owned()))
    }
}

/// Why a text is no set of GTIDs. The fault is the server's or of whoever wrote the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GtidError {
    /// A part should begin with a UUID.
    #[error("'{0}' doesn't begin with a UUID")]
    Source(String),
    /// A part between colons is neither an interval nor a tag.
    #[error("'{0}' is neither an interval of transaction numbers nor a tag")]
    Interval(String),
    /// A UUID or a tag without any interval.
    #[error("'{0}' names no transaction numbers")]
    NoInterval(String),
    /// A set where one GTID was asked for.
    #[error("'{0}' isn't one GTID")]
    NotOne(String),
}

/// The numbers of one source and tag: sorted, apart from each other, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// The interval that begins last, but not behind `number`.
    fn at(&self, number: u64) -> Option<(u64, u64)> {
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).map(|at| self.0[at])
    }

    fn covers(&self, first: u64, last: u64) -> bool {
        self.at(first).is_some_and(|(_, end)| last <= end)
    }

    /// Adds the numbers from `first` to `last`; what touches becomes one interval.
    fn insert(&mut self, first: u64, last: u64) {
        let from = self
            .0
            .partition_point(|(_, end)| end.saturating_add(1) < first);
        let to = self
            .0
            .partition_point(|(begin, _)| *begin <= last.saturating_add(1));
        if from == to {
            self.0.insert(from, (first, last));
            return;
        }
        let whole = (self.0[from].0.min(first), self.0[to - 1].1.max(last));
        self.0[from] = whole;
        self.0.drain(from + 1..to);
    }
}

/// A set of GTIDs. It takes room per gap, not per transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidSet {
    sources: BTreeMap<[u8; SOURCE_BYTES], BTreeMap<String, Intervals>>,
}

impl GtidSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no transaction is in it.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether the transaction is in it.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.intervals(&gtid.source, &gtid.tag)
            .is_some_and(|intervals| intervals.covers(gtid.number, gtid.number))
    }

    /// Adds a transaction.
    pub fn insert(&mut self, gtid: Gtid) {
        self.insert_interval(gtid.source, gtid.tag, gtid.number, gtid.number);
    }

    /// Adds all transactions of another set.
    pub fn merge(&mut self, other: &GtidSet) {
        for (source, tag, intervals) in other.iter() {
            for (first, last) in &intervals.0 {
                self.insert_interval(*source, tag.to_owned(), *first, *last);
            }
        }
    }

    /// Whether each of its transactions is in `other`.
    pub fn is_subset_of(&self, other: &GtidSet) -> bool {
        self.iter().all(|(source, tag, intervals)| {
            let theirs = other.intervals(source, tag);
            let covered = |(first, last): &(u64, u64)| {
                theirs.is_some_and(|theirs| theirs.covers(*first, *last))
            };
            intervals.0.iter().all(covered)
        })
    }

    /// How many intervals it is kept as: what it takes in memory.
    pub fn interval_count(&self) -> usize {
        self.iter().map(|(_, _, intervals)| intervals.0.len()).sum()
    }

    /// Adds the numbers from `first` to `last`, both included.
    pub(crate) fn insert_interval(
        &mut self,
        source: [u8; SOURCE_BYTES],
        tag: String,
        first: u64,
        last: u64,
    ) {
        let tags = self.sources.entry(source).or_default();
        tags.entry(tag).or_default().insert(first, last);
    }

    fn intervals(&self, source: &[u8; SOURCE_BYTES], tag: &str) -> Option<&Intervals> {
        self.sources.get(source)?.get(tag)
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8; SOURCE_BYTES], &str, &Intervals)> {
        self.sources.iter().flat_map(|(source, tags)| {
            tags.iter()
                .map(move |(tag, intervals)| (source, tag.as_str(), intervals))
        })
    }

    fn into_single(self) -> Option<Gtid> {
        let mut all = self.iter();
        let (source, tag, intervals) = all.next()?;
        match intervals.0[..] {
            [(first, last)] if first == last && all.next().is_none() => {
                Gtid::new(*source, tag, first)
            }
            _ => None,
        }
    }

    /// Adds what one part of a text says: a UUID, then tags and intervals between colons.
    fn read_source(&mut self, text: &str) -> Result<(), GtidError> {
        let mut parts = text.split(':').map(str::trim);
        let source = parts.next().and_then(read_source);
        let source = source.ok_or_else(|| GtidError::Source(text.to_owned()))?;
        let mut tag = String::new();
        let mut is_named = false;
        for part in parts {
            if let Some((first, last)) = read_interval(part) {
                self.insert_interval(source, tag.clone(), first, last);
                is_named = true;
            } else {
                let next = normal_tag(part).ok_or_else(|| GtidError::Interval(part.to_owned()))?;
                // The source may go without an interval of its own, a tag may not.
                if !is_named && !tag.is_empty() {
                    return Err(GtidError::NoInterval(text.to_owned()));
                }
                tag = next;
                is_named = false;
            }
        }
        if is_named {
            Ok(())
        } else {
            Err(GtidError::NoInterval(text.to_owned()))
        }
    }
}

impl FromStr for GtidSet {
    type Err = GtidError;

    /// Reads the text of `@@gtid_executed` and the like: sources apart by commas, with or without
    /// line breaks; the empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, GtidError> {
        let mut set = Self::new();
        for part in text.split(',').map(str::trim) {
            if !part.is_empty() {
                set.read_source(part)?;
            }
        }
        Ok(set)
    }
}

impl fmt::Display for GtidSet {
    /// The text as a server writes it, in one line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (source, tags)) in self.sources.iter().enumerate() {
            if number > 0 {
                formatter.write_str(",")?;
            }
            write_source(formatter, source)?;
            for (tag, intervals) in tags {
                if !tag.is_empty() {
                    write!(formatter, ":{tag}")?;
                }
                for (first, last) in &intervals.0 {
                    write!(formatter, ":{first}")?;
                    if last > first {
                        write!(formatter, "-{last}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_source(formatter: &mut fmt::Formatter<'_>, source: &[u8; SOURCE_BYTES]) -> fmt::Result {
    for (at, byte) in source.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            formatter.write_str("-")?;
        }
        write!(formatter, "{byte:02x}")?;
    }
    Ok(())
}

fn read_source(text: &str) -> Option<[u8; SOURCE_BYTES]> {
    if text.len() != UUID_CHARACTERS || HYPHENS_AT.iter().any(|at| text.as_bytes()[*at] != b'-') {
        return None;
    }
    let mut digits = text
        .bytes()
        .enumerate()
        .filter(|(at, _)| !HYPHENS_AT.contains(at))
        .map(|(_, byte)| char::from(byte).to_digit(16));
    let mut source = [0; SOURCE_BYTES];
    for byte in &mut source {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from((high << 4) | low).ok()?;
    }
    Some(source)
}

/// `7` or `3-9`.
fn read_interval(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (read_number(first)?, read_number(last)?);
    (first <= last).then_some((first, last))
}

fn read_number(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = text.parse().ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && (1..=NUMBER_MAX).contains(&number)).then_some(number)
}

/// A tag in lower case, if the text is one: up to 32 letters, digits and underscores, the first no
/// digit.
fn normal_tag(text: &str) -> Option<String> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = text.bytes();
    let is_tag = bytes.next().is_some_and(is_letter)
        && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && text.len() <= TAG_CHARACTERS_MAX;
    is_tag.then(|| text.to_ascii_lowercase())
}
