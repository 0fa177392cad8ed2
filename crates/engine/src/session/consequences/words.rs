//! Words that tell of a statement what its analysis leaves open.
//!
//! They are searched for in the text as it is, in strings and comments, too: the server may run
//! what stands there, and finding one too many only costs hits.

use remora_sql::{has_word, may_move_rows_unlogged};

/// Settings of the server that change what accounts may do, without a word in the log.
const PRIVILEGE_SETTINGS: [&[u8]; 3] = [
    b"mandatory_roles",
    b"partial_revokes",
    b"activate_all_roles_on_login",
];

/// Whether a text has one of the words by which other text is run.
pub(super) fn may_run_text(text: &[u8]) -> bool {
    [&b"execute"[..], b"call"]
        .iter()
        .any(|word| contains(text, word))
}

/// Whether `sql_log_bin` stands in a text.
pub(super) fn names_the_log(text: &[u8]) -> bool {
    contains(text, b"sql_log_bin")
}

/// Whether a text that isn't understood may change what reads give without a trace in the log.
pub fn may_be_unlogged(text: &[u8]) -> bool {
    may_move_rows_unlogged(text) || names_privileges(text)
}

/// Whether a text mentions privileges, or a setting by which the server judges them.
pub(super) fn names_privileges(text: &[u8]) -> bool {
    contains(text, b"privileges") || has_word(text, b"revoke") || names_privilege_setting(text)
}

/// Whether a text mentions a setting by which the server judges privileges.
pub(super) fn names_privilege_setting(text: &[u8]) -> bool {
    PRIVILEGE_SETTINGS.iter().any(|name| contains(text, name))
}

/// Whether a `SHOW` may name a routine with its schema: `SHOW CREATE FUNCTION`, say. It may be one
/// of several statements.
pub(super) fn shows_routine_of_schema(text: &[u8]) -> bool {
    let kinds = [&b"function"[..], b"procedure", b"package"];
    text.contains(&b'.') && kinds.iter().any(|kind| has_word(text, kind))
}

/// Whether a definition may give a table another name.
pub(super) fn renames_table(text: &[u8]) -> bool {
    let is = |word: &[u8], other: &[u8]| word.eq_ignore_ascii_case(other);
    let mut words = words(text).peekable();
    while let Some(word) = words.next() {
        let renames_part = words.peek().is_some_and(|next| {
            [&b"column"[..], b"index", b"key"]
                .iter()
                .any(|part| is(next, part))
        });
        if is(word, b"rename") && !renames_part {
            return true;
        }
    }
    false
}

/// Whether a text begins with the words `CREATE TABLE`.
pub(super) fn creates_table(text: &[u8]) -> bool {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    [&b"create"[..], b"table"].iter().all(|expected| {
        words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(expected))
    })
}

/// Whether this stands anywhere in a text, in any case.
pub(super) fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|word| !word.is_empty())
}
