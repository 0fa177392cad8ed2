//! Statements of a session of which not everything is known that decides how its text is read.
//!
//! Two modes decide where strings and names begin and end: under `ANSI_QUOTES` the text `"f"(1)`
//! calls a function, and under `NO_BACKSLASH_ESCAPES` the string `'\'` ends where it seems to go
//! on. The character set decides, too: in Shift-JIS, GBK and Big5 what looks like a backslash or a
//! backquote can be the second half of a character.
//!
//! What does something else under another reading could write unseen, so it counts as anything.
//! Mostly all readings agree, and then it doesn't matter which one is right.

use crate::classify::{analyse, analyse_prepared, may_move_rows_unlogged};
use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::everything::EverythingReason;
use crate::refusal::Refusal;
use crate::statement::{SessionEffect, Statement, Transaction, UnknownEffect};
use crate::token::TokenKind as T;

/// What isn't known of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ambiguity {
    /// Its `sql_mode`: `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES` may be other than the dialect says.
    pub modes: bool,
    /// Its character set: a byte below 0x80 may be the second half of a character.
    pub characters: bool,
    /// The server may take several statements in one text. Otherwise it refuses what ends within a
    /// string, or has something behind a semicolon.
    pub takes_several: bool,
}

impl Ambiguity {
    /// Analyses one statement's text as [`analyse`] does.
    pub fn analyse(self, text: &[u8], dialect: Dialect) -> Statement {
        self.read(text, dialect, analyse)
    }

    /// Analyses the text of a statement that is being prepared, as [`analyse_prepared`] does. A
    /// server never prepares several statements at once.
    pub fn analyse_prepared(self, text: &[u8], dialect: Dialect) -> Statement {
        let ambiguity = Ambiguity {
            takes_several: false,
            ..self
        };
        ambiguity.read(text, dialect, analyse_prepared)
    }

    fn read(
        self,
        text: &[u8],
        dialect: Dialect,
        analyse: impl Fn(&[u8], Dialect) -> Statement,
    ) -> Statement {
        let mut statement = analyse(text, dialect);
        let mut agree = !self.characters || !may_have_other_characters(text);
        // Most often the modes are known, and the text needn't be searched for what they change.
        let other_modes = self.modes.then(|| other_modes(text, dialect));
        for other in other_modes.into_iter().flatten() {
            if !self.takes_several && !can_be_one_statement(text, other) {
                continue;
            }
            let otherwise = analyse(text, other);
            statement.diagnostics |= otherwise.diagnostics;
            statement.unlogged |= otherwise.unlogged;
            if statement.narrowed != otherwise.narrowed {
                statement.narrowed = None;
            }
            if statement.session != otherwise.session
                || statement.transaction != otherwise.transaction
            {
                agree = false;
                statement.session = SessionEffect::Unknown(UnknownEffect::Ambiguous);
                statement.transaction = Transaction::ImplicitCommit;
            }
            agree &= statement.writes == otherwise.writes;
        }
        if agree {
            statement
        } else {
            self.ambiguous(&statement, text)
        }
    }

    /// A statement that may write anything, because readings of it differ. What it does to the
    /// session is believed where there can be nothing behind it.
    fn ambiguous(self, statement: &Statement, text: &[u8]) -> Statement {
        let anything = Statement::anything(
            statement.kind,
            Refusal::Ambiguous,
            EverythingReason::Ambiguous,
            UnknownEffect::Ambiguous,
        );
        let (session, transaction) = if self.takes_several {
            (anything.session, anything.transaction)
        } else {
            (statement.session, statement.transaction)
        };
        Statement {
            session,
            transaction,
            diagnostics: statement.diagnostics,
            unlogged: statement.unlogged || may_move_rows_unlogged(text),
            ..anything
        }
    }
}

/// Whether what looks like a backslash or a backquote may be the second half of a character.
fn may_have_other_characters(text: &[u8]) -> bool {
    text.windows(2)
        .any(|pair| pair[0] >= 0x80 && matches!(pair[1], b'\\' | b'`'))
}

/// The dialects in which the text may have other strings and names than in `dialect`.
fn other_modes(text: &[u8], dialect: Dialect) -> impl Iterator<Item = Dialect> {
    let quotes = text.contains(&b'"');
    let escapes = text.contains(&b'\\');
    [(true, false), (false, true), (true, true)]
        .into_iter()
        .filter(move |(other_quotes, other_escapes)| {
            (quotes || !other_quotes) && (escapes || !other_escapes)
        })
        .map(move |(other_quotes, other_escapes)| Dialect {
            ansi_quotes: dialect.ansi_quotes != other_quotes,
            no_backslash_escapes: dialect.no_backslash_escapes != other_escapes,
            ..dialect
        })
}

/// Whether a server that takes one statement may run it: not if it ends within quotes, or has
/// something behind a semicolon.
fn can_be_one_statement(text: &[u8], dialect: Dialect) -> bool {
    let mut cursor = Cursor::new(text, dialect);
    loop {
        match cursor.kind() {
            T::End => return true,
            // Anything else that can't be read here may well be read by the server.
            T::Invalid => return !ends_within_quotes(&text[cursor.current().start..], dialect),
            T::Semicolon => return cursor.at_end(),
            _ => cursor.advance(),
        };
    }
}

/// Whether a text that begins with a quote has no other that ends it.
fn ends_within_quotes(text: &[u8], dialect: Dialect) -> bool {
    let Some((quote @ (b'\'' | b'"' | b'`'), mut rest)) = text.split_first() else {
        return false;
    };
    let is_name = *quote == b'`' || (*quote == b'"' && dialect.ansi_quotes);
    let escapes = !is_name && !dialect.no_backslash_escapes;
    loop {
        rest = match rest {
            [] => return true,
            [b'\\', behind @ ..] if escapes => behind.get(1..).unwrap_or_default(),
            [one, two, behind @ ..] if one == quote && two == quote => behind,
            [one, ..] if one == quote => return false,
            [_, behind @ ..] => behind,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Writes;

    const MODES: Ambiguity = Ambiguity {
        modes: true,
        characters: false,
        takes_several: false,
    };

    fn is_certain(text: &str, takes_several: bool) -> bool {
        let ambiguity = Ambiguity {
            takes_several,
            ..MODES
        };
        let statement = ambiguity.analyse(text.as_bytes(), Dialect::default());
        let is_unknown = statement.cacheable == Err(Refusal::Ambiguous);
        assert_eq!(
            is_unknown,
            statement.writes == Writes::Everything(EverythingReason::Ambiguous),
            "{text}"
        );
        !is_unknown
    }

    #[test]
    fn what_another_mode_lets_write_counts_as_anything() {
        for text in [
            r#"DO "f"(1)"#,
            r#"SELECT "f"(1)"#,
            r#"SET @a = "f"(1)"#,
            r"DO '\', f(1), ' -- '",
            r"SELECT NOW(), '\', f(1), ' -- '",
            r#"DO "\", f(1), " -- ""#,
            // What this crate doesn't read, the server may.
            r"DO '\', /*!99999 */ f(1), ' -- '",
        ] {
            for takes_several in [false, true] {
                assert!(!is_certain(text, takes_several), "{text}");
            }
        }
        for text in [
            r"SELECT '\'; UPDATE t SET v = 2 -- '",
            r"EXPLAIN REMORA SELECT '\'; UPDATE t SET v = 2 -- '",
            r"SELECT 'it\'s' FROM t",
        ] {
            assert!(!is_certain(text, true), "{text}");
            assert!(is_certain(text, false), "{text}");
        }
    }

    #[test]
    fn what_another_mode_lets_look_back_does_so() {
        for text in [
            &br"SELECT '\', ROW_COUNT(), ' -- '"[..],
            br#"SELECT "f"(1), '\', ROW_COUNT(), ' -- '"#,
            b"SELECT \"f\"(1) AS \"pay\xe9\", '\\', ROW_COUNT(), ' -- '",
        ] {
            let statement = MODES.analyse(text, Dialect::default());
            assert!(statement.diagnostics);
        }
    }

    #[test]
    fn what_all_modes_agree_on_is_certain() {
        for text in [
            "SELECT 1",
            r#"SELECT "x""#,
            r#"SELECT a FROM t WHERE b = "x""#,
            r#"INSERT INTO t VALUES ("x")"#,
            r#"SHOW STATUS LIKE "Qcache%""#,
            r#"SET NAMES "utf8mb4""#,
            r"INSERT INTO t VALUES ('a\\b', 'c:\\d')",
        ] {
            for takes_several in [false, true] {
                assert!(is_certain(text, takes_several), "{text}");
            }
        }
    }

    #[test]
    fn rows_are_told_apart_only_by_what_all_modes_agree_on() {
        let narrowed = |text: &str| MODES.analyse(text.as_bytes(), Dialect::default()).narrowed;
        assert!(narrowed("UPDATE t SET v = 1 WHERE k = 'k'").is_some());
        assert!(narrowed(r#"UPDATE t SET v = 1 WHERE k = "k""#).is_none());
        assert!(narrowed(r"DELETE FROM t WHERE k = 'a\\b'").is_none());
    }

    #[test]
    fn preparing_takes_one_statement() {
        let prepared = |text: &str| {
            MODES
                .analyse_prepared(text.as_bytes(), Dialect::default())
                .cacheable
        };
        assert_ne!(
            prepared(r"SELECT a FROM t WHERE b = 'it\'s' AND c = ?"),
            Err(Refusal::Ambiguous)
        );
        assert_eq!(prepared(r#"DO "f"(?)"#), Err(Refusal::Ambiguous));
    }

    #[test]
    fn what_it_does_to_the_session_is_known_where_nothing_can_be_behind_it() {
        let ambiguity = Ambiguity {
            modes: true,
            characters: true,
            takes_several: false,
        };
        let text = "INSERT INTO t VALUES ('caf\u{e9}\\n')".as_bytes();
        let statement = ambiguity.analyse(text, Dialect::default());
        assert_eq!(statement.cacheable, Err(Refusal::Ambiguous));
        assert_eq!(statement.session, SessionEffect::None);
        let several = Ambiguity {
            takes_several: true,
            ..ambiguity
        };
        let statement = several.analyse(text, Dialect::default());
        assert!(matches!(statement.session, SessionEffect::Unknown(_)));
    }

    #[test]
    fn what_may_be_half_a_character_hides_nothing() {
        let ambiguity = Ambiguity {
            characters: true,
            ..Ambiguity::default()
        };
        // In Shift-JIS the two first bytes of each are one character, and `f` is called.
        for text in [
            &b"DO '\x95\x5c\'', f(1), ' -- '"[..],
            b"DO '\x95\x5c', f(1), ' -- \''",
            b"SELECT `\x95\x60`, `, f(1), `",
        ] {
            let sure = Ambiguity::default().analyse(text, Dialect::default());
            assert_ne!(sure.cacheable, Err(Refusal::Ambiguous));
            let unsure = ambiguity.analyse(text, Dialect::default());
            assert_eq!(unsure.cacheable, Err(Refusal::Ambiguous));
        }
        let text = "SELECT a FROM t WHERE b = 'it\\'s \u{e9}'".as_bytes();
        let statement = ambiguity.analyse(text, Dialect::default());
        assert!(statement.cacheable.is_ok());
    }
}
