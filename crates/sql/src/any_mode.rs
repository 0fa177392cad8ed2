//! Statements of a session whose `sql_mode` isn't known.
//!
//! Two modes decide where strings and names begin and end: under `ANSI_QUOTES` the text `"f"(1)` calls a function, and under
//! `NO_BACKSLASH_ESCAPES` the string `'\'` ends where it seems to go on. What does something else under another mode could
//! write unseen, so it counts as anything. Mostly all modes agree, and then it doesn't matter which one it is.

use crate::classify::{analyse, analyse_prepared};
use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::refusal::Refusal;
use crate::statement::{EverythingReason, Statement, UnknownEffect};
use crate::token::TokenKind as T;

/// Analyses one statement's text as [`analyse`] does, in a session whose modes aren't known; `dialect` says the rest.
///
/// With `takes_several` the server would take several statements in one text. Otherwise it refuses what ends within a string,
/// or has something behind a semicolon.
pub fn analyse_in_any_mode(text: &[u8], dialect: Dialect, takes_several: bool) -> Statement {
    in_any_mode(text, dialect, takes_several, analyse)
}

/// Analyses the text of a statement that is being prepared, as [`analyse_prepared`] does, in a session whose modes aren't
/// known. A server never prepares several statements at once.
pub fn analyse_prepared_in_any_mode(text: &[u8], dialect: Dialect) -> Statement {
    in_any_mode(text, dialect, false, analyse_prepared)
}

fn in_any_mode(
    text: &[u8],
    dialect: Dialect,
    takes_several: bool,
    analyse: impl Fn(&[u8], Dialect) -> Statement,
) -> Statement {
    let mut statement = analyse(text, dialect);
    for other in other_modes(text, dialect) {
        if !takes_several && !can_be_one_statement(text, other) {
            continue;
        }
        let otherwise = analyse(text, other);
        if !do_the_same(&statement, &otherwise) {
            return Statement {
                diagnostics: statement.diagnostics || otherwise.diagnostics,
                ..Statement::anything(
                    statement.kind,
                    Refusal::ModeUnknown,
                    EverythingReason::ModeUnknown,
                    UnknownEffect::ModeUnknown,
                )
            };
        }
        if statement.narrowed != otherwise.narrowed {
            statement.narrowed = None;
        }
    }
    statement
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

fn can_be_one_statement(text: &[u8], dialect: Dialect) -> bool {
    let mut cursor = Cursor::new(text, dialect);
    loop {
        match cursor.kind() {
            T::End => return true,
            T::Invalid => return false,
            T::Semicolon => return cursor.at_end(),
            _ => cursor.advance(),
        };
    }
}

/// Whether two readings of a text have the same effects, on whichever rows. What they read is another matter: that decides only
/// about results, which aren't kept before the modes are known.
fn do_the_same(one: &Statement, other: &Statement) -> bool {
    one.writes == other.writes
        && one.session == other.session
        && one.transaction == other.transaction
        && one.diagnostics == other.diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Writes;

    fn is_certain(text: &str, takes_several: bool) -> bool {
        let statement = analyse_in_any_mode(text.as_bytes(), Dialect::default(), takes_several);
        let is_unknown = statement.cacheable == Err(Refusal::ModeUnknown);
        assert_eq!(
            is_unknown,
            statement.writes == Writes::Everything(EverythingReason::ModeUnknown),
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
        let text = br"SELECT '\', ROW_COUNT(), ' -- '";
        let statement = analyse_in_any_mode(text, Dialect::default(), false);
        assert!(statement.diagnostics);
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
        let narrowed =
            |text: &str| analyse_in_any_mode(text.as_bytes(), Dialect::default(), false).narrowed;
        assert!(narrowed("UPDATE t SET v = 1 WHERE k = 'k'").is_some());
        assert!(narrowed(r#"UPDATE t SET v = 1 WHERE k = "k""#).is_none());
        assert!(narrowed(r"DELETE FROM t WHERE k = 'a\\b'").is_none());
    }

    #[test]
    fn preparing_takes_one_statement() {
        let prepared = |text: &str| {
            analyse_prepared_in_any_mode(text.as_bytes(), Dialect::default()).cacheable
        };
        assert_ne!(
            prepared(r"SELECT a FROM t WHERE b = 'it\'s' AND c = ?"),
            Err(Refusal::ModeUnknown)
        );
        assert_eq!(prepared(r#"DO "f"(?)"#), Err(Refusal::ModeUnknown));
    }
}
