//! Statements a worker has seen recently, recognised by their text without values.
//!
//! Normalising a statement takes ten times as long as finding its skeleton, and analysing it longer
//! still. So what was found for one statement is used for the next with the same skeleton: its
//! label and, for a read or a write of rows, its template. The hash only finds the place; the
//! skeletons themselves are compared.

use std::cell::Cell;
use std::rc::Rc;

use remora_cache::AsOf;
use remora_engine::key::Label;
use remora_sql::{Dialect, ReadTemplate, Statement, ValuePlace, WriteTemplate};

/// How many places are looked through for one skeleton.
const WAYS: usize = 4;
/// The longest skeleton that is remembered, bytes.
const SKELETON_BYTES_MAX: usize = 4_096;

/// A statement without its values.
#[derive(Clone, Copy)]
pub(super) struct Skeleton<'s> {
    pub hash: u64,
    pub bytes: &'s [u8],
    pub dialect: Dialect,
}

/// What is known of reads with one skeleton.
#[derive(Debug)]
pub(crate) struct KnownRead {
    /// The analysis that they share.
    pub template: ReadTemplate,
    /// In sessions with this fingerprint, since when their names are known to be those of tables.
    tables: Cell<Option<(u64, AsOf)>>,
}

impl KnownRead {
    pub(super) fn new(template: ReadTemplate) -> KnownRead {
        KnownRead {
            template,
            tables: Cell::new(None),
        }
    }

    /// Since when they were known to name tables only, in sessions with this fingerprint.
    pub(crate) fn names_tables_since(&self, fingerprint: u64) -> Option<AsOf> {
        let (of, as_of) = self.tables.get()?;
        (of == fingerprint).then_some(as_of)
    }

    /// They name tables only, in sessions with this fingerprint.
    pub(crate) fn note_tables(&self, fingerprint: u64, as_of: AsOf) {
        self.tables.set(Some((fingerprint, as_of)));
    }
}

/// The analysis that statements with one skeleton share.
#[derive(Debug, Clone)]
pub(crate) enum KnownAnalysis {
    /// They can be cached.
    Read(Rc<KnownRead>),
    /// They write rows.
    Write(Rc<WriteTemplate>),
}

impl KnownAnalysis {
    /// That of a statement with this text, whose values stand at these places; `None` if it is
    /// neither.
    pub(super) fn of(
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<KnownAnalysis> {
        let read = ReadTemplate::of(statement, text, dialect, values);
        let read = read.map(|template| KnownAnalysis::Read(Rc::new(KnownRead::new(template))));
        read.or_else(|| {
            let write = WriteTemplate::of(statement, text, dialect, values)?;
            Some(KnownAnalysis::Write(Rc::new(write)))
        })
    }

    /// The analysis of such a statement. `None` if it doesn't follow from the others'.
    pub(super) fn with_values(
        &self,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<Statement> {
        match self {
            KnownAnalysis::Read(read) => read.template.with_values(text, dialect, values),
            KnownAnalysis::Write(template) => template.with_values(text, dialect, values),
        }
    }
}

/// A statement without its values, and what is known of it.
#[derive(Debug)]
struct KnownStatement {
    hash: u64,
    dialect: Dialect,
    skeleton: Box<[u8]>,
    label: Label,
    analysis: Option<KnownAnalysis>,
}

impl KnownStatement {
    fn is(&self, skeleton: Skeleton<'_>) -> bool {
        self.hash == skeleton.hash
            && self.dialect == skeleton.dialect
            && *self.skeleton == *skeleton.bytes
    }
}

/// The table: in each row, what was used last comes first.
#[derive(Debug)]
pub(super) struct KnownStatements {
    rows: Box<[[Option<KnownStatement>; WAYS]]>,
}

impl KnownStatements {
    /// With places for so many, rounded up to whole rows.
    pub(super) fn new(count_max: usize) -> KnownStatements {
        let rows = count_max.div_ceil(WAYS);
        KnownStatements {
            rows: (0..rows).map(|_| Default::default()).collect(),
        }
    }

    fn row(&mut self, hash: u64) -> Option<&mut [Option<KnownStatement>; WAYS]> {
        let count = self.rows.len() as u64;
        let index = usize::try_from(hash.checked_rem(count)?).ok()?;
        self.rows.get_mut(index)
    }

    /// What is remembered of a statement with this skeleton.
    #[inline]
    pub(super) fn find(
        &mut self,
        skeleton: Skeleton<'_>,
    ) -> Option<(Label, &mut Option<KnownAnalysis>)> {
        let row = self.row(skeleton.hash)?;
        let is =
            |known: &Option<KnownStatement>| known.as_ref().is_some_and(|known| known.is(skeleton));
        let at = row.iter().position(is)?;
        row[..=at].rotate_right(1);
        let known = row[0].as_mut()?;
        Some((known.label, &mut known.analysis))
    }

    /// Remembers the label of one. Gives whether another one lost its place.
    pub(super) fn put(&mut self, skeleton: Skeleton<'_>, label: Label) -> bool {
        if skeleton.bytes.len() > SKELETON_BYTES_MAX {
            return false;
        }
        let Some(row) = self.row(skeleton.hash) else {
            return false;
        };
        let is =
            |known: &Option<KnownStatement>| known.as_ref().is_some_and(|known| known.is(skeleton));
        let at = row.iter().position(is).unwrap_or(WAYS - 1);
        row[..=at].rotate_right(1);
        let known = KnownStatement {
            hash: skeleton.hash,
            dialect: skeleton.dialect,
            skeleton: skeleton.bytes.into(),
            label,
            analysis: None,
        };
        let before = row[0].replace(known);
        before.is_some_and(|before| !before.is(skeleton))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(hash: u64, bytes: &[u8]) -> Skeleton<'_> {
        Skeleton {
            hash,
            bytes,
            dialect: Dialect::default(),
        }
    }

    fn label(known: &mut KnownStatements, of: Skeleton<'_>) -> Option<Label> {
        known.find(of).map(|(label, _)| label)
    }

    #[test]
    fn statements_whose_hashes_are_the_same_are_told_apart() {
        let mut known = KnownStatements::new(8);
        let (first, second) = (Label::from_number(1), Label::from_number(2));
        known.put(skeleton(5, b"SELECT a"), first);
        assert_eq!(label(&mut known, skeleton(5, b"SELECT f()")), None);
        known.put(skeleton(5, b"SELECT f()"), second);
        assert_eq!(label(&mut known, skeleton(5, b"SELECT a")), Some(first));
        assert_eq!(label(&mut known, skeleton(5, b"SELECT f()")), Some(second));
    }

    #[test]
    fn a_statement_is_not_recognised_in_another_dialect() {
        let mut known = KnownStatements::new(8);
        known.put(skeleton(5, b"SELECT \"a\""), Label::from_number(1));
        let other = Skeleton {
            dialect: Dialect {
                ansi_quotes: true,
                ..Dialect::default()
            },
            ..skeleton(5, b"SELECT \"a\"")
        };
        assert_eq!(label(&mut known, other), None);
    }

    #[test]
    fn the_one_that_was_used_longest_ago_loses_its_place() {
        let mut known = KnownStatements::new(WAYS);
        let all: Vec<Vec<u8>> = (0..=WAYS).map(|n| format!("SELECT a{n}").into()).collect();
        for text in &all[..WAYS] {
            assert!(!known.put(skeleton(1, text), Label::OTHERS));
        }
        // The first is used again, so the second goes.
        assert!(label(&mut known, skeleton(1, &all[0])).is_some());
        assert!(known.put(skeleton(1, &all[WAYS]), Label::OTHERS));
        assert!(label(&mut known, skeleton(1, &all[0])).is_some());
        assert!(label(&mut known, skeleton(1, &all[1])).is_none());
    }

    #[test]
    fn nothing_is_remembered_without_places_nor_of_what_is_too_long() {
        let mut none = KnownStatements::new(0);
        assert!(!none.put(skeleton(1, b"SELECT a"), Label::OTHERS));
        assert!(label(&mut none, skeleton(1, b"SELECT a")).is_none());
        let mut known = KnownStatements::new(8);
        let long = vec![b'a'; SKELETON_BYTES_MAX + 1];
        known.put(skeleton(1, &long), Label::OTHERS);
        assert!(label(&mut known, skeleton(1, &long)).is_none());
    }
}
