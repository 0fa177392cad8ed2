//! What the text of a query event in the binary log changed.

use crate::cursor::{Cursor, NameRead};
use crate::dialect::Dialect;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::name::TableName;
use crate::statement::{StatementKind as Kind, Transaction, Writes};
use crate::token::TokenKind as T;

/// What a query event of the binary log means to a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedStatement {
    /// A transaction begins.
    Begin,
    /// The transaction's changes take effect.
    Commit,
    /// The transaction's changes are undone.
    Rollback,
    /// A savepoint is set, released or returned to: the transaction goes on.
    Savepoint,
    /// These tables changed.
    Tables {
        /// The tables.
        data: Vec<TableName>,
        /// Their definitions changed, or may have.
        definitions: bool,
        /// The text may have added a foreign key, or renamed a table or a column that one names:
        /// tables that it doesn't name may be related to others from now on. In doubt it is true.
        relations: bool,
    },
    /// Definitions changed, of tables that it doesn't name: views, triggers, whole schemas.
    Definitions,
    /// Accounts, roles or privileges changed.
    Accounts,
    /// A prepared XA transaction ended; which tables it changed isn't said.
    XaCommitOrRollback,
    /// Nothing changed: temporary tables, comments, dummy events.
    Nothing,
    /// Anything may have changed.
    Everything,
}

/// What a query event (a statement's text, run with some default schema) changed.
///
/// The text is read without knowing the session's `sql_mode`, so only statements are recognised
/// whose meaning doesn't depend on it: names in double quotes or texts with a backslash before the
/// last name give [`LoggedStatement::Everything`].
pub fn analyse_logged(text: &[u8]) -> LoggedStatement {
    let cursor = Cursor::new(text, Dialect::default());
    match cursor.word() {
        _ if cursor.at(T::End) => LoggedStatement::Nothing,
        K::Begin | K::Start | K::Commit | K::Rollback | K::Savepoint | K::Release | K::Xa => {
            transaction(cursor)
        }
        K::Create => create(cursor, text),
        K::Drop | K::Alter | K::Rename | K::Truncate => definition(text),
        K::Grant | K::Revoke | K::Set | K::Analyze | K::Optimize | K::Repair | K::Flush => {
            judged(text)
        }
        _ => LoggedStatement::Everything,
    }
}

fn transaction(mut cursor: Cursor<'_>) -> LoggedStatement {
    if cursor.take_word(K::Xa) {
        let word = cursor.word();
        return match word {
            K::Start | K::Begin => LoggedStatement::Begin,
            K::End => LoggedStatement::Nothing,
            K::Commit | K::Rollback => LoggedStatement::XaCommitOrRollback,
            _ => LoggedStatement::Everything,
        };
    }
    let first = cursor.advance();
    let rolls_back_to = {
        let mut probe = cursor;
        probe.take_word(K::Work);
        probe.at_word(K::To)
    };
    match first.kind {
        T::Word(K::Begin) if cursor.at_end() => LoggedStatement::Begin,
        T::Word(K::Start) if cursor.at_word(K::Transaction) => LoggedStatement::Begin,
        T::Word(K::Commit) if cursor.at_end() => LoggedStatement::Commit,
        T::Word(K::Rollback) if rolls_back_to => LoggedStatement::Savepoint,
        T::Word(K::Rollback) if cursor.at_end() => LoggedStatement::Rollback,
        T::Word(K::Savepoint | K::Release) => LoggedStatement::Savepoint,
        _ => LoggedStatement::Everything,
    }
}

/// `CREATE [OR REPLACE] [TEMPORARY] TABLE name …`. The name stands before anything whose reading
/// depends on the session's mode.
fn create(mut cursor: Cursor<'_>, text: &[u8]) -> LoggedStatement {
    cursor.advance();
    cursor.skip_words(&[K::Or, K::Replace]);
    let temporary = cursor.take_word(K::Temporary);
    if !cursor.at_word(K::Table) {
        return if temporary {
            LoggedStatement::Everything
        } else {
            judged(text)
        };
    }
    // A query in the text may call functions that write; `VALUES` may be one too.
    if [&b"select"[..], b"values"]
        .iter()
        .any(|word| contains(text, word))
    {
        return LoggedStatement::Everything;
    }
    cursor.advance();
    cursor.skip_words(&[K::If, K::Not, K::Exists]);
    match cursor.table_name() {
        Some(_) if temporary => LoggedStatement::Nothing,
        Some(NameRead::Plain(name)) => LoggedStatement::Tables {
            data: vec![name],
            definitions: true,
            relations: may_relate(text),
        },
        _ => LoggedStatement::Everything,
    }
}

fn definition(text: &[u8]) -> LoggedStatement {
    // A backslash may or may not escape: the names behind it can't be trusted.
    if text.contains(&b'\\') {
        return LoggedStatement::Everything;
    }
    judged(text)
}

/// What the analysis of the text as a statement says.
fn judged(text: &[u8]) -> LoggedStatement {
    let statement = crate::analyse(text, Dialect::default());
    match (statement.kind, statement.writes) {
        (Kind::AccountManagement, _) => LoggedStatement::Accounts,
        (Kind::Ddl, Writes::Tables(data)) => LoggedStatement::Tables {
            data,
            definitions: true,
            relations: may_relate(text),
        },
        (Kind::Ddl, Writes::Everything(EverythingReason::Definitions)) => {
            LoggedStatement::Definitions
        }
        (Kind::Ddl, Writes::Nothing) if statement.transaction == Transaction::None => {
            LoggedStatement::Nothing
        }
        (Kind::Flush, Writes::Nothing) => LoggedStatement::Nothing,
        _ => LoggedStatement::Everything,
    }
}

/// Whether a foreign key or another name for a table or column can be in the text: neither can
/// without one of these words, which may stand in comments and names too. `CREATE TABLE … LIKE`
/// copies no foreign key, `EXCHANGE PARTITION` allows none, and statements about whole schemas
/// aren't read as statements about tables.
fn may_relate(text: &[u8]) -> bool {
    [&b"references"[..], b"foreign", b"rename", b"change"]
        .iter()
        .any(|word| contains(text, word))
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}
