//! Transactions, locks, `EXPLAIN`, `SHOW`, and what administers a server.

use super::{Head, Targets, definition, inner, partitions};
use crate::cursor::Cursor;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::refusal::Refusal;
use crate::statement::{
    SessionEffect, Statement, StatementKind as Kind, Transaction, TransactionControl,
    UnknownEffect, Writes,
};
use crate::token::TokenKind as T;

pub(super) fn head_of(cursor: Cursor<'_>) -> Head {
    match cursor.word() {
        K::Begin | K::Start | K::Commit | K::Rollback | K::Savepoint | K::Release => {
            transaction(cursor)
        }
        K::Xa => xa(cursor),
        K::Prepare | K::Deallocate => Head::new(Kind::Prepare),
        K::Execute => Head::anything(
            Kind::Execute,
            EverythingReason::DynamicSql,
            UnknownEffect::DynamicSql,
        ),
        K::Lock | K::Unlock => lock(cursor),
        K::Flush => flush(cursor),
        K::Reset => reset(cursor),
        K::Handler => Head::new(Kind::Handler),
        K::Get | K::Signal | K::Resignal => Head {
            diagnostics: true,
            ..Head::new(Kind::Diagnostics)
        },
        K::Show => show(cursor),
        K::Help => Head::new(Kind::Explain),
        K::Use => Head::new(Kind::Use).session(SessionEffect::DefaultSchema),
        K::Kill | K::Checksum => Head::new(Kind::Other),
        K::Check | K::Optimize | K::Repair => maintained_tables(cursor),
        K::Cache => definition::maintenance(Writes::Nothing),
        _ => Head::anything(
            Kind::Other,
            EverythingReason::UnknownStatement,
            UnknownEffect::UnknownStatement,
        ),
    }
}

fn transaction(mut cursor: Cursor<'_>) -> Head {
    let head = Head::new(Kind::Transaction).control(transaction_control(cursor));
    let transaction = match cursor.advance().kind {
        T::Word(K::Begin) => {
            cursor.take_word(K::Work);
            if !cursor.at_end() {
                // `BEGIN NOT ATOMIC …`: a compound statement.
                return Head::anything(
                    Kind::Multi,
                    EverythingReason::MultipleStatements,
                    UnknownEffect::MultipleStatements,
                );
            }
            Transaction::Begin
        }
        T::Word(K::Start) if cursor.at_word(K::Transaction) => Transaction::Begin,
        T::Word(K::Start) => {
            // `START SLAVE` and the like.
            return Head::anything(
                Kind::Other,
                EverythingReason::Replication,
                UnknownEffect::UnknownStatement,
            );
        }
        T::Word(K::Commit) => Transaction::Commit,
        T::Word(K::Rollback) => {
            cursor.take_word(K::Work);
            if cursor.at_word(K::To) {
                Transaction::RollbackToSavepoint
            } else {
                Transaction::Rollback
            }
        }
        _ => Transaction::Savepoint,
    };
    head.transaction(transaction)
}

/// What a statement about transactions says, if it says nothing but that.
fn transaction_control(mut cursor: Cursor<'_>) -> Option<TransactionControl> {
    let control = match cursor.advance().kind {
        T::Word(K::Begin) => TransactionControl::Begin,
        T::Word(K::Start) => return started(cursor),
        T::Word(K::Commit) => TransactionControl::Commit,
        T::Word(K::Rollback) => TransactionControl::Rollback,
        _ => return None,
    };
    cursor.take_word(K::Work);
    ends_here(cursor).then_some(control)
}

/// The same after `START`.
fn started(mut cursor: Cursor<'_>) -> Option<TransactionControl> {
    if !cursor.take_word(K::Transaction) {
        return None;
    }
    let control = if !cursor.take_word(K::Read) {
        TransactionControl::Begin
    } else if cursor.take_word(K::Only) {
        TransactionControl::BeginReadOnly
    } else {
        return None;
    };
    ends_here(cursor).then_some(control)
}

/// Whether a server finds nothing more in the text, whatever its version.
fn ends_here(cursor: Cursor<'_>) -> bool {
    cursor.at_end() && cursor.ends_plainly() && !cursor.lexer().saw_executable_comment()
}

/// The server forbids almost everything inside an XA transaction; such a session passes through.
fn xa(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    let transaction = match cursor.word() {
        K::Start | K::Begin => Transaction::Begin,
        K::Commit => Transaction::Commit,
        K::Rollback => Transaction::Rollback,
        K::End | K::Prepare => Transaction::None,
        _ => Transaction::ImplicitCommit,
    };
    Head::anything(
        Kind::Xa,
        EverythingReason::UnknownStatement,
        UnknownEffect::DistributedTransaction,
    )
    .transaction(transaction)
}

fn lock(mut cursor: Cursor<'_>) -> Head {
    let locks = cursor.advance().kind == T::Word(K::Lock);
    if !matches!(cursor.word(), K::Table | K::Tables) {
        // `LOCK INSTANCE FOR BACKUP`
        return Head::new(Kind::Lock).transaction(Transaction::ImplicitCommit);
    }
    let effect = if locks {
        SessionEffect::LockedTables
    } else {
        SessionEffect::UnlockedTables
    };
    Head::new(Kind::Lock)
        .session(effect)
        .transaction(Transaction::ImplicitCommit)
}

fn flush(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    cursor.skip_words(&[K::NoWriteToBinlog, K::Local]);
    let harmless = match cursor.word() {
        K::Status | K::Hosts | K::UserResources | K::Logs => true,
        K::Query => cursor.next_is_word(K::Cache),
        K::Binary => cursor.next_is_word(K::Logs),
        _ => {
            let word = cursor.bytes(cursor.current());
            let logs = [&b"error"[..], b"engine", b"general", b"slow", b"relay"];
            logs.iter().any(|log| log.eq_ignore_ascii_case(word)) && cursor.next_is_word(K::Logs)
        }
    };
    let is_of_tables = matches!(cursor.word(), K::Table | K::Tables);
    let (mut is_list, mut locks, mut privileges) = (false, false, false);
    while !matches!(cursor.kind(), T::End | T::Invalid) {
        is_list |= cursor.at(T::Comma);
        locks |= matches!(cursor.word(), K::Lock | K::Export);
        // `FLUSH STATUS, PRIVILEGES`; a table may have that name.
        privileges |= cursor.at_word(K::Privileges) && !is_of_tables;
        cursor.advance();
    }
    let head = Head::new(Kind::Flush).transaction(Transaction::ImplicitCommit);
    // What else a list may hold, as in `FLUSH STATUS, TABLES`, is not looked at.
    if harmless && !is_list {
        return head;
    }
    let head = head.everything(if privileges {
        EverythingReason::AccountManagement
    } else {
        EverythingReason::Flush
    });
    if locks {
        head.session(SessionEffect::LockedTables)
    } else {
        head
    }
}

fn reset(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    let mut rest = cursor;
    // Not a list, as in `RESET QUERY CACHE, MASTER`.
    if rest.take_word(K::Query) && rest.take_word(K::Cache) && rest.at_end() {
        return Head::new(Kind::Flush).transaction(Transaction::ImplicitCommit);
    }
    Head::anything(
        Kind::Flush,
        EverythingReason::Replication,
        UnknownEffect::UnknownStatement,
    )
}

fn show(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    // Also `SHOW COUNT(*) WARNINGS`.
    let diagnostics = matches!(cursor.word(), K::Warnings | K::Errors | K::Count);
    Head {
        diagnostics,
        ..Head::new(Kind::Show)
    }
}

/// `CHECK | OPTIMIZE | REPAIR [options] TABLE names`; `ANALYZE` likewise.
fn maintained_tables(mut cursor: Cursor<'_>) -> Head {
    let moves_rows = matches!(cursor.word(), K::Repair | K::Optimize);
    cursor.advance();
    let unlogged = moves_rows && partitions::is_at_local(&cursor);
    cursor.skip_words(&[K::NoWriteToBinlog, K::Local]);
    if !matches!(cursor.word(), K::Table | K::Tables | K::View) {
        return Head::unreadable(Kind::Ddl);
    }
    cursor.advance();
    let mut targets = Targets::default();
    if !targets.read_list(&mut cursor) {
        return Head::unreadable(Kind::Ddl);
    }
    definition::maintenance(targets.into_writes()).unlogged(unlogged)
}

/// `EXPLAIN`, `DESCRIBE`, and MariaDB's `ANALYZE`, which executes its statement.
pub(super) fn explain_or_analyse(mut cursor: Cursor<'_>) -> Result<Box<Statement>, Head> {
    let first = cursor;
    let mut executes = cursor.at_word(K::Analyze);
    cursor.advance();
    if executes
        && matches!(
            cursor.word(),
            K::Table | K::Tables | K::Local | K::NoWriteToBinlog
        )
    {
        return Err(maintained_tables(first));
    }
    loop {
        match cursor.word() {
            K::Analyze => executes = true,
            K::Extended | K::Partitions => {}
            K::Format if cursor.next_kind() == T::Equal => {
                cursor.advance();
                cursor.advance();
            }
            _ => break,
        }
        cursor.advance();
    }
    let Some(mut statement) = inner(cursor) else {
        // `DESCRIBE table`, `EXPLAIN FOR CONNECTION n`; or a statement that is not looked into.
        return Err(if executes {
            Head::unreadable(Kind::Explain)
        } else {
            Head::new(Kind::Explain)
        });
    };
    statement.cacheable = Err(Refusal::NotSelect);
    if !executes {
        without_execution(&mut statement);
    }
    Ok(Box::new(statement))
}

/// A statement that is planned only. Planning can still execute derived tables and constant parts,
/// so calls of unknown functions count; the tables that it would write don't.
fn without_execution(statement: &mut Statement) {
    if statement.kind != Kind::Multi {
        statement.kind = Kind::Explain;
    }
    if matches!(statement.writes, Writes::Tables(_)) {
        statement.writes = Writes::Nothing;
    }
}
