//! `SET` statements that determine a session's settings.

use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::keyword::Keyword as K;
use crate::settings::SettingKind;
use crate::settings::session_setting;
use crate::token::TokenKind as T;

/// Variables whose value after `SET name = literal` depends on the literal and on the session's
/// settings before, and on nothing else. `optimizer_switch` isn't one: in `'mrr=default'` the
/// global value counts.
const PREDICTABLE: &[&str] = &[
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "div_precision_increment",
    "group_concat_max_len",
    "lc_time_names",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_mode",
    "sql_notes",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
];

/// Whether a text is a `SET` of session variables to literals, and nothing else: `SET NAMES
/// utf8mb4`, `SET SESSION sql_mode = ''`. If it succeeds, the session's settings afterwards follow
/// from the text and from what they were before. `DEFAULT` is no literal: it stands for the global
/// value.
pub fn sets_to_literals(text: &[u8], dialect: Dialect) -> bool {
    // What these mean depends on settings that may be the ones which are set.
    if text.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        return false;
    }
    let mut cursor = Cursor::new(text, dialect);
    if !cursor.take_word(K::Set) {
        return false;
    }
    loop {
        let is_understood = if cursor.at_word(K::Names) {
            cursor.advance();
            names(&mut cursor)
        } else {
            assignment(&mut cursor)
        };
        if !is_understood {
            return false;
        }
        if !cursor.take(T::Comma) {
            let lexer = cursor.lexer();
            return cursor.at_end()
                && cursor.ends_plainly()
                && !lexer.saw_executable_comment()
                && !lexer.saw_non_ascii_word();
        }
    }
}

/// What stands after `NAMES`.
fn names(cursor: &mut Cursor<'_>) -> bool {
    literal(cursor) && (!cursor.take_word(K::Collate) || literal(cursor))
}

/// `[SESSION] name = literal`, `@@session.name = literal`.
fn assignment(cursor: &mut Cursor<'_>) -> bool {
    let has_at = cursor.take(T::DoubleAt);
    let names_session = matches!(cursor.word(), K::Session | K::Local);
    if names_session {
        cursor.advance();
        if has_at && !cursor.take(T::Dot) {
            return false;
        }
    }
    if !matches!(cursor.kind(), T::Word(_) | T::QuotedName) {
        return false;
    }
    let token = cursor.advance();
    let name = cursor.name_bytes(token);
    let is = |known: &&str| known.as_bytes().eq_ignore_ascii_case(&name);
    let follows = PREDICTABLE.iter().any(is) || session_setting(&name) == SettingKind::Harmless;
    follows && (cursor.take(T::Equal) || cursor.take(T::Assign)) && literal(cursor)
}

/// One number, string or word, with nothing behind it that belongs to it.
fn literal(cursor: &mut Cursor<'_>) -> bool {
    let is_number =
        cursor.at(T::Number) || (cursor.at(T::Minus) && cursor.next_kind() == T::Number);
    let is_word = matches!(cursor.kind(), T::Word(word) if word != K::Default);
    if !is_number && !is_word && !cursor.at(T::String) {
        return false;
    }
    if cursor.advance().kind == T::Minus {
        cursor.advance();
    }
    matches!(cursor.kind(), T::Comma | T::Semicolon | T::End) || cursor.at_word(K::Collate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follows(text: &str) -> bool {
        sets_to_literals(text.as_bytes(), Dialect::default())
    }

    #[test]
    fn literals_are_taken() {
        for text in [
            "SET NAMES utf8mb4",
            "set names 'utf8mb4' collate utf8mb4_unicode_520_ci;",
            "SET SESSION sql_mode='NO_ZERO_IN_DATE,STRICT_TRANS_TABLES'",
            "/* app */ SET @@session.time_zone = '+00:00', sql_select_limit := 5",
            "SET @@sql_mode = ANSI, foreign_key_checks = 0",
            "SET LOCAL group_concat_max_len = 1000000",
            "SET `sql_auto_is_null` = OFF, character_set_results = NULL",
        ] {
            assert!(follows(text), "{text}");
        }
    }

    #[test]
    fn what_depends_on_more_is_not() {
        for text in [
            "SET NAMES DEFAULT",
            "SET NAMES utf8mb4 COLLATE DEFAULT",
            "SET CHARACTER SET utf8mb4",
            "SET sql_mode = DEFAULT",
            "SET sql_mode = @@global.sql_mode",
            "SET sql_mode = @mode",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
            "SET sql_mode = (SELECT 'ANSI')",
            "SET sql_mode = 'AN' 'SI'",
            "SET sql_mode = 'ANSI' COLLATE utf8mb4_bin + 1",
            "SET sql_select_limit = 1 + 1",
            "SET sql_mode = \"ANSI\"",
            "SET sql_mode = 'a\\'",
            "SET GLOBAL sql_mode = ''",
            "SET sql_mode = '', GLOBAL time_zone = '+00:00'",
            "SET @@global.sql_mode = ''",
            "SET @@session = ''",
            "SET @a = 1",
            "SET autocommit = 1",
            "SET wait_timeout = 1",
            "SET optimizer_switch = 'mrr=default'",
            "SET sql_log_bin = 0",
            "SET transaction_isolation = 'READ-COMMITTED'",
            "SET SESSION TRANSACTION READ ONLY",
            "SET STATEMENT sql_mode = '' FOR SELECT 1",
            "SET /*!50000 GLOBAL */ sql_mode = ''",
            "SET sql_mode = ''; SELECT 1",
            "SET no_such = 1",
            "SET PASSWORD = 'x'",
            "SET",
            "SET NAMES",
            "SELECT 1",
        ] {
            assert!(!follows(text), "{text}");
        }
    }
}
