//! The hint `SQL_CACHE`, and servers that no longer know it.
//!
//! MySQL 8.0 and later take the word for a name: `SELECT SQL_CACHE a FROM t` reads a column
//! `SQL_CACHE` and calls it `a`. But where what follows can't follow a column there, the statement
//! would be an error, so the hint was meant. Only such tokens stand here; that each is a syntax
//! error to MySQL 8.0 is tested with the server.

use std::ops::Range;

use crate::cursor::{Cursor, is_name};
use crate::dialect::Dialect;
use crate::keyword::Keyword as K;
use crate::token::TokenKind as T;

/// Where the hint `SQL_CACHE` stands in a `SELECT`, if a server that doesn't know it can't read the
/// statement. Without it the statement means what it was meant to.
pub fn unread_cache_hint(text: &[u8], dialect: Dialect) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(text, dialect);
    if !cursor.take_word(K::Select) {
        return None;
    }
    while is_option(cursor.word()) {
        cursor.advance();
    }
    let is_hint = cursor.at_word(K::SqlCache) && is_certainly_hint(cursor);
    let hint = cursor.current();
    (is_hint && !cursor.lexer().saw_executable_comment()).then_some(hint.start..hint.end)
}

/// Whether `SQL_CACHE` at the cursor can't be a column's name.
pub(crate) fn is_certainly_hint(mut cursor: Cursor<'_>) -> bool {
    cursor.advance();
    let follows = cursor.next_kind();
    match cursor.kind() {
        // `*` and something else would multiply.
        T::Star => matches!(follows, T::Comma | T::Word(K::From)),
        T::Number | T::Word(K::Case | K::Null) => true,
        // Also a name, to MySQL 8.0.
        T::Word(K::SqlBufferResult) => false,
        T::Word(word) if is_option(word) => true,
        // A name would be the column's alias, behind which none of these can stand. `MEMBER (…)` is
        // an operator.
        T::Word(K::Member) => false,
        T::Word(_) if is_name(cursor.current()) => {
            matches!(follows, T::Dot | T::LeftParen | T::Word(K::As))
        }
        T::QuotedName => matches!(follows, T::Dot | T::Word(K::As)),
        _ => false,
    }
}

/// Options that may stand between `SELECT` and the first expression, on every server.
fn is_option(word: K) -> bool {
    matches!(
        word,
        K::All
            | K::Distinct
            | K::Distinctrow
            | K::HighPriority
            | K::StraightJoin
            | K::SqlSmallResult
            | K::SqlBigResult
            | K::SqlBufferResult
            | K::SqlCalcFoundRows
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Option<String> {
        let hint = unread_cache_hint(text.as_bytes(), Dialect::default())?;
        let mut text = text.to_owned();
        text.replace_range(hint, "");
        Some(text)
    }

    /// Whether the analysis of a text that can be cached has found the hint, too.
    fn is_told(text: &str) -> bool {
        let statement = crate::analyse(text.as_bytes(), Dialect::default());
        statement
            .cacheable
            .ok()
            .is_none_or(|select| select.says_cache)
    }

    #[test]
    fn the_hint_is_found_where_nothing_else_can_be_meant() {
        for (text, expected) in [
            ("SELECT SQL_CACHE * FROM t", "SELECT  * FROM t"),
            ("SELECT SQL_CACHE *, a FROM t", "SELECT  *, a FROM t"),
            ("select sql_cache t.a FROM t", "select  t.a FROM t"),
            ("SELECT SQL_CACHE `t`.* FROM t", "SELECT  `t`.* FROM t"),
            ("SELECT SQL_CACHE 1 FROM t", "SELECT  1 FROM t"),
            (
                "SELECT SQL_CACHE COUNT(*) FROM t",
                "SELECT  COUNT(*) FROM t",
            ),
            (
                "/* a */ SELECT SQL_CACHE/* b */ f (a) FROM t",
                "/* a */ SELECT /* b */ f (a) FROM t",
            ),
            (
                "SELECT SQL_CACHE DISTINCT a FROM t",
                "SELECT  DISTINCT a FROM t",
            ),
            (
                "SELECT HIGH_PRIORITY SQL_CACHE NULL",
                "SELECT HIGH_PRIORITY  NULL",
            ),
            ("SELECT SQL_CACHE a AS b FROM t", "SELECT  a AS b FROM t"),
            (
                "SELECT SQL_CACHE CASE a WHEN 1 THEN 2 END FROM t",
                "SELECT  CASE a WHEN 1 THEN 2 END FROM t",
            ),
        ] {
            assert_eq!(without(text).as_deref(), Some(expected), "{text}");
            assert!(is_told(text), "{text}");
        }
    }

    #[test]
    fn what_may_be_a_columns_name_is_left_alone() {
        for text in [
            "SELECT a FROM t",
            "SELECT SQL_CACHE a FROM t",
            "SELECT SQL_CACHE `a` FROM t",
            "SELECT SQL_CACHE a, b FROM t",
            "SELECT SQL_CACHE 'a' FROM t",
            "SELECT SQL_CACHE \"a\" FROM t",
            "SELECT SQL_CACHE FROM t",
            "SELECT SQL_CACHE, a FROM t",
            "SELECT SQL_CACHE AS a FROM t",
            "SELECT SQL_CACHE * 2 FROM t",
            "SELECT SQL_CACHE * a FROM t",
            "SELECT SQL_CACHE - 1 FROM t",
            "SELECT SQL_CACHE (a) FROM t",
            "SELECT SQL_CACHE MOD (5) FROM t",
            "SELECT SQL_CACHE DIV (5) FROM t",
            "SELECT SQL_CACHE XOR (5) FROM t",
            "SELECT SQL_CACHE IN (5) FROM t",
            "SELECT SQL_CACHE LIKE (5) FROM t",
            "SELECT SQL_CACHE RLIKE (5) FROM t",
            "SELECT SQL_CACHE REGEXP (5) FROM t",
            "SELECT SQL_CACHE AND (5) FROM t",
            "SELECT SQL_CACHE OR (5) FROM t",
            "SELECT SQL_CACHE NOT IN (5) FROM t",
            "SELECT SQL_CACHE IS NULL FROM t",
            "SELECT SQL_CACHE MEMBER (a) FROM t",
            "SELECT SQL_CACHE SQL_BUFFER_RESULT, b FROM t",
            "SELECT SQL_CACHE MEMBER OF (a) FROM t",
            "SELECT SQL_CACHE EXCEPT (SELECT 1)",
            "SELECT SQL_CACHE INTERSECT (SELECT 1)",
            "SELECT SQL_CACHE UNION (SELECT 1)",
            "SELECT SQL_CACHE LIMIT (1)",
            "SELECT SQL_CACHE.a FROM t",
            "SELECT `SQL_CACHE` * FROM t",
            "SELECT a, SQL_CACHE * FROM t",
            "SELECT /*!40001 SQL_CACHE */ * FROM t",
            "(SELECT SQL_CACHE * FROM t)",
            "UPDATE t SET a = 1",
        ] {
            assert_eq!(without(text), None, "{text}");
        }
    }
}
