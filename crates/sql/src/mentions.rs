//! The names that a statement's text mentions, whatever they are names of.
//!
//! A statement whose grammar isn't followed to its end may read any table or view that it names.
//! Which of its words are names isn't asked: each counts. They are kept as hashes of their folded
//! letters, so that a set of names can be looked through without an allocation for each.

use std::collections::HashSet;
use std::hash::BuildHasher;

use crate::dialect::Dialect;
use crate::keyword::Keyword as K;
use crate::lexer::Lexer;
use crate::token::TokenKind as T;

/// Different names that are told apart; a text with more may mention any.
const NAMES_MAX: usize = 1_024;

/// A name as its hash without regard to letter case.
///
/// Equal names have equal hashes. Names beyond ASCII are written in different ways by clients of
/// different character sets, so all of them count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHash(u64);

impl NameHash {
    const BEYOND_ASCII: NameHash = NameHash(0);
    /// That of what may be another spelling of any name.
    const ANY: NameHash = NameHash(1);

    /// That of a name without quotes.
    pub fn of(name: &[u8]) -> NameHash {
        // FNV-1a.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name {
            if !byte.is_ascii() || *byte == b'#' {
                return NameHash::of_unusual(name);
            }
            hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3);
        }
        NameHash(hash.max(2))
    }

    /// `#mysql50#w` is `w`; and a server that folds names takes these letters for ASCII's.
    fn of_unusual(name: &[u8]) -> NameHash {
        let folded = ["\u{212a}", "\u{130}", "\u{17f}"];
        let has_folded = folded.iter().any(|letter| {
            let mut windows = name.windows(letter.len());
            windows.any(|window| window == letter.as_bytes())
        });
        if has_folded || name.contains(&b'#') {
            NameHash::ANY
        } else {
            NameHash::BEYOND_ASCII
        }
    }
}

/// What a text mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// A word stands in it without which no table's rows are read.
    reads_tables: bool,
    /// It may mention any name: it can't be read with certainty, or is too long.
    any: bool,
    /// Sorted, each once.
    names: Box<[NameHash]>,
}

impl Mentions {
    /// Of a statement's text.
    pub fn of(text: &[u8], dialect: Dialect) -> Mentions {
        let mut lexer = Lexer::new(text, dialect);
        let mut mentions = Mentions::default();
        let mut names = Vec::new();
        let mut before = T::End;
        loop {
            let token = lexer.next_token();
            let bytes = lexer.bytes(token);
            let before = std::mem::replace(&mut before, token.kind);
            let is_name = before == T::Dot;
            match token.kind {
                T::End => break,
                T::Invalid => return Mentions::anything(),
                // Behind a dot each word is a name.
                T::Word(word) if is_name || !word.is_reserved() => {
                    names.push(NameHash::of(bytes));
                }
                T::Word(word) if leads_to_rows(word, before) => mentions.reads_tables = true,
                T::Introducer => names.push(NameHash::of(bytes)),
                T::QuotedName => names.push(NameHash::of(&without_quotes(bytes))),
                // Under ANSI_QUOTES it is a name.
                T::String if bytes.starts_with(b"\"") && bytes.contains(&b'\\') => {
                    mentions.any = true;
                }
                T::String if bytes.starts_with(b"\"") => {
                    names.push(NameHash::of(&without_quotes(bytes)));
                }
                _ => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        mentions.any |= names.len() > NAMES_MAX;
        if !mentions.any {
            mentions.names = names.into();
        }
        mentions
    }

    /// Of tables that are read, and nothing else is named.
    pub fn of_tables<'n>(names: impl IntoIterator<Item = &'n str>) -> Mentions {
        let names = names.into_iter().map(|name| NameHash::of(name.as_bytes()));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        Mentions {
            reads_tables: !names.is_empty(),
            any: false,
            names: names.into(),
        }
    }

    /// Of a text that can't be read with certainty.
    pub fn anything() -> Mentions {
        Mentions {
            reads_tables: true,
            any: true,
            names: Box::default(),
        }
    }

    /// The same with at most so many names; with more it may mention any.
    #[must_use]
    pub fn bounded(self, names_max: usize) -> Mentions {
        if self.names.len() <= names_max {
            return self;
        }
        Mentions {
            any: true,
            names: Box::default(),
            ..self
        }
    }

    /// Whether it can read rows of a table or view at all.
    pub fn reads_tables(&self) -> bool {
        self.reads_tables
    }

    /// Whether it may read one of these.
    pub fn may_read<S: BuildHasher>(&self, names: &HashSet<NameHash, S>) -> bool {
        self.reads_tables && self.may_name(names)
    }

    /// Whether one of these may stand in it.
    pub fn may_name<S: BuildHasher>(&self, names: &HashSet<NameHash, S>) -> bool {
        let is_mentioned = |name: &NameHash| *name == NameHash::ANY || names.contains(name);
        let may_be_mentioned = || names.contains(&NameHash::ANY) && !self.names.is_empty();
        !names.is_empty() && (self.any || may_be_mentioned() || self.names.iter().any(is_mentioned))
    }
}

/// Whether what follows a word may be a table of which rows are read or written.
fn leads_to_rows(word: K, before: T) -> bool {
    match word {
        K::From | K::Join | K::StraightJoin | K::Insert | K::Replace | K::Into => true,
        K::Table => {
            let defines = [K::Create, K::Alter, K::Drop, K::Truncate, K::Rename];
            !defines.iter().any(|word| before == T::Word(*word))
        }
        // `ON UPDATE CASCADE`
        K::Update => before != T::Word(K::On),
        _ => false,
    }
}

fn without_quotes(bytes: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let quote = bytes.first().copied().unwrap_or(b'`');
    let inner = bytes.get(1..bytes.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    if !inner.contains(&quote) {
        return inner.into();
    }
    let mut name = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((byte, behind)) = rest.split_first() {
        name.push(*byte);
        rest = behind;
        if *byte == quote {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_read(text: &str, name: &str) -> bool {
        let names = HashSet::from([NameHash::of(name.as_bytes())]);
        Mentions::of(text.as_bytes(), Dialect::default()).may_read(&names)
    }

    #[test]
    fn a_table_that_is_read_is_mentioned_wherever_it_stands() {
        for text in [
            "SELECT x FROM w",
            "SELECT NOW() FROM a JOIN s.W ON 1",
            "SET @a = (SELECT x FROM `w`)",
            "DO (SELECT x FROM w)",
            "INSERT INTO t SELECT * FROM w",
            "INSERT INTO w VALUES (1)",
            "INSERT w VALUES (1)",
            "REPLACE w VALUES (1)",
            "CREATE TABLE t REPLACE TABLE w",
            "CREATE TABLE t TABLE w",
            "UPDATE t, w SET t.a = w.a",
            "DELETE FROM t WHERE a IN (TABLE w)",
            "CREATE TABLE t AS SELECT * FROM/**/w",
            "SELECT x FROM \"w\"",
            "SELECT x FROM 'w', w",
            "SELECT 'it''s' FROM w",
            "SELECT x FROM s.w",
        ] {
            assert!(may_read(text, "w"), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT x FROM ww",
            "SELECT 'w' FROM t",
            "SET w = 1",
            "SET SESSION sql_mode = ''",
            "CREATE TABLE w (a INT, b INT REFERENCES w (a) ON UPDATE CASCADE)",
            "ALTER TABLE w ADD c INT",
            "DROP TABLE w",
            "TRUNCATE TABLE w",
        ] {
            assert!(!may_read(text, "w"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_may_be_any() {
        assert!(may_read("SELECT x FROM w\u{e9}", "v\u{e4}"));
        assert!(may_read("SELECT x FROM `#mysql50#w`", "#w"));
        assert!(may_read("SELECT 'unfinished FROM t", "w"));
        assert!(may_read(r#"SELECT "\"" FROM t"#, "w"));
        let many: Vec<_> = (0..=NAMES_MAX).map(|n| format!("t{n}")).collect();
        let many = format!("SELECT 1 FROM {}", many.join(", "));
        assert!(may_read(&many, "w"));
    }

    #[test]
    fn nothing_is_read_of_an_empty_set() {
        let nothing = HashSet::<NameHash>::new();
        assert!(!Mentions::anything().may_read(&nothing));
        let tables = Mentions::of_tables(["a", "B"]);
        assert!(tables.may_read(&HashSet::from([NameHash::of(b"b")])));
        assert!(!tables.may_read(&HashSet::from([NameHash::of(b"c")])));
        assert!(!Mentions::of_tables([]).reads_tables());
    }

    #[test]
    fn a_name_that_may_be_another_spelling_is_any() {
        for text in [
            "SELECT x FROM `#mysql50#w`",
            "SELECT x FROM `W\u{212a}`",
            "SELECT x FROM w\u{17f}",
        ] {
            assert!(may_read(text, "w"), "{text}");
        }
        assert!(may_read("SELECT x FROM w", "#"));
        assert!(may_read("SELECT x FROM `\u{e4}`", "\u{e9}"));
        assert!(!may_read("SELECT x FROM `\u{e4}`", "w"));
    }
}
