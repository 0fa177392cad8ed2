//! What must hold of the analysis of any text in any dialect.
//!
//! Input: a byte of dialect flags, then the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_sql::{
    Block, CONDITIONS_MAX, CONSTANTS_MAX, Condition, DIGEST_TEXT_BYTES_MAX, Dialect, NarrowedWrite,
    Natives, ReadTemplate, Select, SessionEffect, SourceSet, Statement, StatementKind, TABLES_MAX,
    Test, Transaction, WRITTEN_ROWS_MAX, Writes, WrittenRows, analyse, analyse_prefix,
    analyse_prepared, key_text, normalise, recognise, skeleton, unread_cache_hint,
};

fn dialect(flags: u8) -> Dialect {
    Dialect {
        ansi_quotes: flags & 1 != 0,
        no_backslash_escapes: flags & 2 != 0,
        pipes_as_concat: flags & 4 != 0,
        ignore_space: flags & 8 != 0,
        high_not_precedence: flags & 16 != 0,
        natives: Natives::from_index(flags >> 5),
    }
}

fn assert_condition(condition: &Condition, sources: usize) {
    assert!(!condition.restricts.is_empty());
    let outside =
        (sources..SourceSet::SOURCES_MAX).any(|index| condition.restricts.contains(index));
    assert!(!outside, "{condition:?} of {sources} sources");
    assert!(condition.column.column.is_ascii() && !condition.column.column.is_empty());
    match &condition.test {
        Test::In(constants) => assert!((1..=CONSTANTS_MAX).contains(&constants.len())),
        Test::Range { from, to } => assert!(from.is_some() || to.is_some()),
        Test::Column(_) | Test::IsNull => {}
    }
}

fn assert_block(block: &Block, select: &Select) {
    for source in &block.sources {
        assert!(source.table.is_none_or(|table| table < select.tables.len()));
    }
    for condition in &block.conditions {
        assert_condition(condition, block.sources.len());
        let known = select.reads.names.contains(&condition.column.column);
        assert!(known, "{condition:?} of a column that isn't read");
    }
}

/// A narrowed write is a write to the one table that it names.
fn assert_narrowed(write: &NarrowedWrite, statement: &Statement) {
    assert_eq!(statement.writes, Writes::Tables(vec![write.table.clone()]));
    match &write.rows {
        WrittenRows::Where(conditions) => {
            assert!(conditions.len() <= CONDITIONS_MAX);
            for condition in conditions {
                assert_condition(condition, 1);
            }
        }
        WrittenRows::Values { columns, rows } => {
            assert!((1..=WRITTEN_ROWS_MAX).contains(&rows.len()));
            let count = columns.as_ref().map(Vec::len);
            for row in rows {
                assert!(row.is_empty() || count.is_none_or(|count| count == row.len()));
            }
        }
    }
}

/// A cacheable statement does nothing but read.
fn assert_consistent(statement: &Statement) {
    if let Some(write) = &statement.narrowed {
        assert_narrowed(write, statement);
    }
    let Ok(select) = &statement.cacheable else {
        return;
    };
    assert_eq!(statement.kind, StatementKind::Select);
    assert_eq!(statement.writes, Writes::Nothing);
    assert_eq!(statement.session, SessionEffect::None);
    assert_eq!(statement.transaction, Transaction::None);
    assert!(!statement.diagnostics);
    assert!(select.tables.len() <= TABLES_MAX);
    assert!(statement.narrowed.is_none());
    for block in &select.reads.blocks {
        assert_block(block, select);
    }
    for table in 0..select.tables.len() {
        let mut sources = select.reads.blocks.iter().flat_map(|block| &block.sources);
        assert!(
            sources.any(|source| source.table == Some(table)),
            "no source"
        );
    }
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

/// The text of a digest is bounded. Statements with one skeleton have one digest and the same
/// effects, and the same template if they can be cached.
fn assert_digest(text: &[u8], dialect: Dialect, statement: &Statement) {
    let other: Vec<u8> = text
        .iter()
        .map(|byte| if *byte == b'1' { b'7' } else { *byte })
        .collect();
    let mut normal = Vec::new();
    let [digest, of_other] = [text, &other].map(|text| normalise(text, dialect, &mut normal));
    assert!(normal.len() <= DIGEST_TEXT_BYTES_MAX + 3);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let (mut values, mut other_values) = (Vec::new(), Vec::new());
    let hash = skeleton(text, dialect, &mut first, &mut values);
    let of_hash = skeleton(&other, dialect, &mut second, &mut other_values);
    if hash.is_none() || hash != of_hash || first != second {
        return;
    }
    let shown = text.escape_ascii();
    assert_eq!(digest, of_other, "{shown}");
    let other_text = other;
    let other = analyse(&other_text, dialect);
    // A `SET` can be judged by its value, also among others.
    if !matches!(statement.kind, StatementKind::Set | StatementKind::Multi) {
        assert_eq!(statement.writes, other.writes, "{shown}");
        assert_eq!(statement.session, other.session, "{shown}");
        assert_eq!(statement.transaction, other.transaction, "{shown}");
        assert_eq!(statement.diagnostics, other.diagnostics, "{shown}");
    }
    let Some(template) = ReadTemplate::of(statement, text, dialect, &values) else {
        return;
    };
    if let Some(filled_in) = template.with_values(&other_text, dialect, &other_values) {
        assert_eq!(filled_in, other, "{shown}");
    }
    if let Some(two) = ReadTemplate::of(&other, &other_text, dialect, &other_values) {
        assert_eq!(template.of_every_row(), two.of_every_row(), "{shown}");
    }
}

/// A statement means what the text means by which it is looked up.
fn assert_key_text(text: &[u8], dialect: Dialect, statement: &Statement) {
    let mut key = Vec::new();
    if key_text(text, dialect, &mut key) {
        let shown = text.escape_ascii();
        assert!(key.len() < text.len() || key != text, "{shown}");
        let of_key = analyse(&key, dialect);
        // Of several statements, a comment can make more doubtful.
        if statement.kind == StatementKind::Multi {
            assert_eq!(of_key.kind, statement.kind, "{shown}");
        } else {
            assert_eq!(&of_key, statement, "{shown}");
        }
        let mut again = Vec::new();
        assert!(!key_text(&key, dialect, &mut again), "{shown}");
    }
}

/// For a statement that can be cached the analysis tells whether it has the hint `SQL_CACHE`, and
/// that it is none of the query cache's interface. So its text isn't read again for that.
fn assert_told(text: &[u8], dialect: Dialect, statement: &Statement) {
    if let Ok(select) = &statement.cacheable {
        let shown = text.escape_ascii();
        let has_hint = unread_cache_hint(text, dialect).is_some();
        assert!(select.says_cache || !has_hint, "{shown}");
        assert_eq!(recognise(text, dialect), None, "{shown}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, text)) = data.split_first() else {
        return;
    };
    let dialect = dialect(flags);
    let statement = analyse(text, dialect);
    assert_consistent(&statement);
    assert_consistent(&analyse_prepared(text, dialect));
    assert_anything(&analyse_prefix(text, dialect), text);
    assert_digest(text, dialect, &statement);
    assert_key_text(text, dialect, &statement);
    assert_told(text, dialect, &statement);
    // White space before a statement means nothing.
    let spaced = [b" \n", text].concat();
    assert_eq!(analyse(&spaced, dialect), statement);
    // Whatever follows, a call of somebody's function stays one.
    for start in [
        &b"SELECT somebodys_function(1), "[..],
        b"SELECT 1 FROM t WHERE shop.somebodys_function(a) = ",
        b"INSERT INTO t VALUES (somebodys_function(2), ",
    ] {
        let text = [start, text].concat();
        assert_anything(&analyse(&text, dialect), &text);
    }
    // Whatever follows, a write among several statements fences everything.
    let several = [&b"SELECT 1; DELETE FROM t "[..], text].concat();
    let several = analyse(&several, dialect);
    assert!(several.cacheable.is_err());
    assert!(matches!(several.writes, Writes::Everything(_)));
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
