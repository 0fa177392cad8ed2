//! What the behaviour tables share.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod describe;

use proptest::prelude::*;
use remora_sql::{
    Dialect, EverythingReason, Natives, SessionEffect, Statement, StatementKind, TableName,
    Transaction, Writes, analyse,
};

/// The analysis under the default dialect.
pub(crate) fn default(text: &str) -> Statement {
    analyse(text.as_bytes(), Dialect::default())
}

/// A statement that may change anything.
#[track_caller]
pub(crate) fn everything(text: &str, reason: EverythingReason) {
    assert_eq!(default(text).writes, Writes::Everything(reason), "{text}");
    assert!(default(text).cacheable.is_err(), "{text}");
}

/// A statement that changes no table, and is this.
#[track_caller]
pub(crate) fn nothing(
    text: &str,
    kind: StatementKind,
    session: SessionEffect,
    transaction: Transaction,
) {
    let statement = default(text);
    assert_eq!(statement.writes, Writes::Nothing, "{text}");
    assert_eq!(statement.kind, kind, "{text}");
    assert_eq!(statement.session, session, "{text}");
    assert_eq!(statement.transaction, transaction, "{text}");
    assert!(statement.cacheable.is_err(), "{text}");
}

/// Names as they are written in the tables of these tests: `schema.table` or `table`.
pub(crate) fn names(tables: &[TableName]) -> Vec<String> {
    tables
        .iter()
        .map(|name| match &name.schema {
            Some(schema) => format!("{schema}.{}", name.table),
            None => name.table.clone(),
        })
        .collect()
}

/// The tables that a cacheable statement reads; fails if it isn't cacheable.
pub(crate) fn tables_read(text: &str) -> Vec<String> {
    match default(text).cacheable {
        Ok(select) => names(&select.tables),
        Err(refusal) => panic!("{text}: {refusal:?}"),
    }
}

/// The tables that a statement writes; fails if it isn't a write to certain tables.
pub(crate) fn tables_written(text: &str) -> Vec<String> {
    match default(text).writes {
        Writes::Tables(tables) => names(&tables),
        other => panic!("{text}: {other:?}"),
    }
}

/// Every dialect.
pub(crate) fn dialects() -> impl Strategy<Value = Dialect> {
    any::<([bool; 5], u8)>().prop_map(|([a, b, c, d, e], natives)| Dialect {
        natives: Natives::from_index(natives % 5),
        ansi_quotes: a,
        no_backslash_escapes: b,
        pipes_as_concat: c,
        ignore_space: d,
        high_not_precedence: e,
    })
}
