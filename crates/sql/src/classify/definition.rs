//! Statements that define: tables and everything else, accounts too.

use super::{Head, Targets, partitions};
use crate::cursor::Cursor;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::scan::{Scanned, scan};
use crate::statement::{SessionEffect, StatementKind as Kind, Transaction, UnknownEffect, Writes};
use crate::token::TokenKind as T;

/// Accounts, roles, privileges.
pub(super) fn account() -> Head {
    Head::new(Kind::AccountManagement)
        .without_calls()
        .everything(EverythingReason::AccountManagement)
        .transaction(Transaction::ImplicitCommit)
}

/// Objects that are not tables.
fn definitions() -> Head {
    Head::new(Kind::Ddl)
        .without_calls()
        .everything(EverythingReason::Definitions)
        .transaction(Transaction::ImplicitCommit)
}

/// Statements that maintain tables.
pub(super) fn maintenance(writes: Writes) -> Head {
    Head {
        writes,
        ..Head::new(Kind::Ddl)
    }
    .without_calls()
    .transaction(Transaction::ImplicitCommit)
}

/// The definition of these tables changes.
fn tables(targets: Targets) -> Head {
    maintenance(targets.into_writes())
}

fn temporary_table() -> Head {
    Head::new(Kind::Ddl)
        .without_calls()
        .session(SessionEffect::TemporaryTable)
}

/// Skips `IF [NOT] EXISTS`.
fn skip_existence(cursor: &mut Cursor<'_>) {
    cursor.skip_words(&[K::If, K::Not, K::Exists]);
}

/// `CREATE [OR REPLACE] …`
pub(super) fn create(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    cursor.skip_words(&[K::Or, K::Replace]);
    let temporary = cursor.take_word(K::Temporary);
    match cursor.word() {
        K::Table => create_table(cursor, temporary),
        _ if temporary => Head::unreadable(Kind::Ddl),
        K::User | K::Role => account(),
        K::Database | K::Schema => definitions().session(SessionEffect::SettingsChanged),
        K::Unique | K::Fulltext | K::Spatial | K::Index => on_table(cursor),
        _ => definitions(),
    }
}

/// `TABLE [IF NOT EXISTS] name …`. Its definition can't call stored functions; a query in it can.
fn create_table(mut cursor: Cursor<'_>, temporary: bool) -> Head {
    cursor.advance();
    skip_existence(&mut cursor);
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(Kind::Ddl);
    }
    let head = if temporary {
        temporary_table()
    } else {
        tables(targets)
    };
    while !matches!(cursor.kind(), T::End | T::Invalid) {
        // Not a partition's `VALUES LESS THAN (…)` or `VALUES IN (…)`.
        let values = cursor.at_word(K::Values)
            && matches!(cursor.next_kind(), T::LeftParen | T::Word(K::Row));
        if cursor.at_word(K::Select) || values {
            return with_query(head, cursor);
        }
        cursor.advance();
    }
    head
}

fn with_query(head: Head, query: Cursor<'_>) -> Head {
    match scan(query, None) {
        Scanned::One(findings) => match findings.everything {
            Some(EverythingReason::UnknownFunction) => Head {
                session: SessionEffect::Unknown(UnknownEffect::StoredFunction),
                ..head.everything(EverythingReason::UnknownFunction)
            },
            Some(reason) => head.everything(reason),
            None => head,
        },
        // The scan of the whole text will say so.
        Scanned::Several | Scanned::Unreadable => head,
    }
}

/// `… INDEX name … ON table`: an index of a table is part of its definition.
fn on_table(mut cursor: Cursor<'_>) -> Head {
    while !cursor.at_word(K::On) {
        if matches!(cursor.kind(), T::End | T::Invalid | T::LeftParen) {
            return Head::unreadable(Kind::Ddl);
        }
        cursor.advance();
    }
    cursor.advance();
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(Kind::Ddl);
    }
    tables(targets)
}

/// `ALTER …`
pub(super) fn alter(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    match cursor.word() {
        K::User | K::Role => return account(),
        K::Database | K::Schema => {
            return definitions().session(SessionEffect::SettingsChanged);
        }
        _ => {}
    }
    // MariaDB: `ALTER [ONLINE] [IGNORE] TABLE`.
    while !cursor.at_word(K::Table) {
        let option = cursor.at_word(K::Ignore)
            || cursor
                .bytes(cursor.current())
                .eq_ignore_ascii_case(b"online");
        if !option {
            return definitions();
        }
        cursor.advance();
    }
    cursor.advance();
    skip_existence(&mut cursor);
    alter_table(cursor)
}

/// The table, and every other one that its alteration can rename, exchange or refer to.
fn alter_table(mut cursor: Cursor<'_>) -> Head {
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(Kind::Ddl);
    }
    let (mut of_partitions, mut is_local) = (false, false);
    loop {
        of_partitions |= cursor.at_word(K::Partition);
        is_local |= partitions::is_at_local(&cursor);
        match cursor.kind() {
            T::End | T::Invalid => return tables(targets).unlogged(of_partitions && is_local),
            T::Word(K::Rename) => {
                cursor.advance();
                let renames_part = matches!(cursor.word(), K::Column | K::Index | K::Key);
                cursor.skip_words(&[K::To, K::As]);
                cursor.take(T::Equal);
                if !renames_part && !targets.read(&mut cursor) {
                    return Head::unreadable(Kind::Ddl);
                }
            }
            T::Word(K::Table | K::References) => {
                cursor.advance();
                if !targets.read(&mut cursor) {
                    return Head::unreadable(Kind::Ddl);
                }
            }
            _ => {
                cursor.advance();
            }
        }
    }
}

/// `DROP …`
pub(super) fn drop_object(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    let temporary = cursor.take_word(K::Temporary);
    match cursor.word() {
        K::Table | K::Tables => {
            cursor.advance();
            if temporary {
                return temporary_table();
            }
            skip_existence(&mut cursor);
            let mut targets = Targets::default();
            if !targets.read_list(&mut cursor) {
                return Head::unreadable(Kind::Ddl);
            }
            // A temporary table of the same name is dropped before a table is; a session that has
            // one is known for it since it was created.
            tables(targets)
        }
        K::Prepare => Head::new(Kind::Prepare),
        K::User | K::Role => account(),
        K::Index => on_table(cursor),
        K::Database | K::Schema => {
            definitions().session(SessionEffect::Unknown(UnknownEffect::DroppedSchema))
        }
        _ => definitions(),
    }
}

/// `RENAME TABLE a TO b, …`, `RENAME USER …`
pub(super) fn rename(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    match cursor.word() {
        K::User => return account(),
        K::Table | K::Tables => {}
        _ => return definitions(),
    }
    cursor.advance();
    skip_existence(&mut cursor);
    let mut targets = Targets::default();
    loop {
        if !targets.read(&mut cursor) {
            return Head::unreadable(Kind::Ddl);
        }
        // MariaDB: `WAIT n`, `NOWAIT` before `TO`.
        cursor.skip_words(&[K::Wait, K::Nowait]);
        cursor.take(T::Number);
        if !cursor.take_word(K::To) || !targets.read(&mut cursor) {
            return Head::unreadable(Kind::Ddl);
        }
        if !cursor.take(T::Comma) {
            return tables(targets);
        }
    }
}

/// `TRUNCATE [TABLE] name`
pub(super) fn truncate(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    cursor.take_word(K::Table);
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(Kind::Ddl);
    }
    tables(targets)
}
