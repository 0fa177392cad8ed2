//! What must hold of the analysis of any text in any dialect.
//!
//! Input: a byte of dialect flags, then the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_sql::{
    Dialect, SessionEffect, Statement, StatementKind, TABLES_MAX, Transaction, Writes, analyse,
    analyse_prefix,
};

fn dialect(flags: u8) -> Dialect {
    Dialect {
        ansi_quotes: flags & 1 != 0,
        no_backslash_escapes: flags & 2 != 0,
        pipes_as_concat: flags & 4 != 0,
        ignore_space: flags & 8 != 0,
        high_not_precedence: flags & 16 != 0,
    }
}

/// A cacheable statement does nothing but read.
fn assert_consistent(statement: &Statement) {
    let Ok(select) = &statement.cacheable else {
        return;
    };
    assert_eq!(statement.kind, StatementKind::Select);
    assert_eq!(statement.writes, Writes::Nothing);
    assert_eq!(statement.session, SessionEffect::None);
    assert_eq!(statement.transaction, Transaction::None);
    assert!(!statement.diagnostics);
    assert!(select.tables.len() <= TABLES_MAX);
    for (at, table) in select.tables.iter().enumerate() {
        assert!(!table.table.is_empty());
        assert!(!select.tables[..at].contains(table), "named twice");
    }
}

fn assert_anything(statement: &Statement, text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    assert!(statement.cacheable.is_err(), "{shown}");
    assert!(matches!(statement.writes, Writes::Everything(_)), "{shown}");
    let unknown = matches!(statement.session, SessionEffect::Unknown(_));
    assert!(unknown, "{shown}");
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, text)) = data.split_first() else {
        return;
    };
    let dialect = dialect(flags);
    let statement = analyse(text, dialect);
    assert_consistent(&statement);
    assert_anything(&analyse_prefix(text, dialect), text);
    // White space before a statement means nothing.
    let spaced = [b" \n", text].concat();
    assert_eq!(analyse(&spaced, dialect), statement);
    // Whatever follows, a call of somebody's function stays one, and a second statement too.
    for start in [
        &b"SELECT somebodys_function(1), "[..],
        b"SELECT 1 FROM t WHERE shop.somebodys_function(a) = ",
        b"INSERT INTO t VALUES (somebodys_function(2), ",
        b"SELECT 1; DELETE FROM t ",
    ] {
        let text = [start, text].concat();
        assert_anything(&analyse(&text, dialect), &text);
    }
    // Whatever follows, these read or set what no cache may answer.
    for start in [
        &b"SELECT NOW(), "[..],
        b"SELECT @a, ",
        b"SELECT LAST_INSERT_ID(), ",
        b"SELECT SQL_NO_CACHE 1 FROM mysql.user, ",
    ] {
        let text = [start, text].concat();
        let statement = analyse(&text, dialect);
        assert!(
            statement.cacheable.is_err(),
            "{}",
            String::from_utf8_lossy(&text)
        );
    }
    // Whatever follows, a write names its table.
    for start in [&b"INSERT INTO t1 VALUES (1, "[..], b"DELETE FROM t1 WHERE "] {
        let text = [start, text].concat();
        let writes = analyse(&text, dialect).writes;
        let named = match &writes {
            Writes::Nothing => false,
            Writes::Tables(tables) => tables.iter().any(|name| name.table == "t1"),
            Writes::Everything(_) => true,
        };
        assert!(
            named,
            "{} writes {writes:?}",
            String::from_utf8_lossy(&text)
        );
    }
});
