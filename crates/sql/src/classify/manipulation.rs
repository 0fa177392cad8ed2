//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `LOAD`.

use super::{Head, Targets};
use crate::cursor::Cursor;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::select::SelectParser;
use crate::statement::{StatementKind as Kind, Writes};
use crate::token::TokenKind as T;

/// `INSERT | REPLACE [priority] [IGNORE] [INTO] table …`
pub(super) fn insert(mut cursor: Cursor<'_>) -> Head {
    let kind = if cursor.at_word(K::Insert) {
        Kind::Insert
    } else {
        Kind::Replace
    };
    cursor.advance();
    let mut delayed = false;
    while matches!(
        cursor.word(),
        K::LowPriority | K::HighPriority | K::Delayed | K::Ignore | K::Into
    ) {
        delayed |= cursor.at_word(K::Delayed);
        cursor.advance();
    }
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(kind);
    }
    let writes = if delayed {
        Writes::Everything(EverythingReason::Delayed)
    } else {
        targets.into_writes()
    };
    // A `(` after the table's own name opens the list of columns.
    Head {
        writes,
        target: Some(cursor.last_start()),
        ..Head::new(kind)
    }
}

/// `UPDATE [LOW_PRIORITY] [IGNORE] tables SET …`
pub(super) fn update(parser: &mut SelectParser<'_>) -> Head {
    parser.cursor.advance();
    parser.cursor.skip_words(&[K::LowPriority, K::Ignore]);
    if parser.table_references().is_err() {
        return Head::unreadable(Kind::Update);
    }
    // MariaDB: `FOR PORTION OF period FROM … TO …` before `SET`.
    if !matches!(parser.cursor.word(), K::Set | K::For) {
        return Head::unreadable(Kind::Update);
    }
    with_tables_of(parser, Kind::Update)
}

/// `DELETE [options] FROM table …`, `DELETE tables FROM references`,
/// `DELETE FROM tables USING references`.
pub(super) fn delete(parser: &mut SelectParser<'_>) -> Head {
    parser.cursor.advance();
    parser
        .cursor
        .skip_words(&[K::LowPriority, K::Quick, K::Ignore]);
    if parser.cursor.take_word(K::From) {
        return delete_from(parser);
    }
    // Also `DELETE HISTORY FROM t`, where `HISTORY` is read as a name.
    if !name_list(&mut parser.cursor) || !parser.cursor.take_word(K::From) {
        return Head::unreadable(Kind::Delete);
    }
    delete_references(parser)
}

fn delete_from(parser: &mut SelectParser<'_>) -> Head {
    let single = parser.cursor;
    if name_list(&mut parser.cursor) && parser.cursor.take_word(K::Using) {
        return delete_references(parser);
    }
    parser.cursor = single;
    let mut targets = Targets::default();
    if !targets.read(&mut parser.cursor) || parser.cursor.at(T::Comma) {
        return Head::unreadable(Kind::Delete);
    }
    Head {
        writes: targets.into_writes(),
        ..Head::new(Kind::Delete)
    }
}

/// The tables among which a multi-table `DELETE` finds its targets, which may be named by aliases.
fn delete_references(parser: &mut SelectParser<'_>) -> Head {
    if parser.table_references().is_err() {
        return Head::unreadable(Kind::Delete);
    }
    with_tables_of(parser, Kind::Delete)
}

fn with_tables_of(parser: &mut SelectParser<'_>, kind: Kind) -> Head {
    let tables = std::mem::take(&mut parser.tables);
    let writes = if parser.findings.uncertain_table {
        Writes::Everything(EverythingReason::TableName)
    } else if tables.is_empty() {
        Writes::Everything(EverythingReason::Unreadable)
    } else {
        Writes::Tables(tables)
    };
    Head {
        writes,
        ..Head::new(kind)
    }
}

/// `t, s.t, t.*`; the names themselves don't matter.
fn name_list(cursor: &mut Cursor<'_>) -> bool {
    loop {
        if cursor.table_name().is_none() {
            return false;
        }
        if cursor.take(T::Dot) && !cursor.take(T::Star) {
            return false;
        }
        if !cursor.take(T::Comma) {
            return true;
        }
    }
}

/// `LOAD DATA | XML … INTO TABLE table …`, `LOAD INDEX INTO CACHE …`.
pub(super) fn load(mut cursor: Cursor<'_>) -> Head {
    cursor.advance();
    if cursor.at_word(K::Index) {
        return super::definition::maintenance(Writes::Nothing);
    }
    if !matches!(cursor.word(), K::Data | K::Xml) {
        return Head::unreadable(Kind::Load);
    }
    while !cursor.at_word(K::Into) {
        if matches!(cursor.kind(), T::End | T::Invalid | T::Semicolon) {
            return Head::unreadable(Kind::Load);
        }
        cursor.advance();
    }
    cursor.advance();
    if !cursor.take_word(K::Table) {
        return Head::unreadable(Kind::Load);
    }
    let mut targets = Targets::default();
    if !targets.read(&mut cursor) {
        return Head::unreadable(Kind::Load);
    }
    let target = Some(cursor.last_start());
    Head {
        writes: targets.into_writes(),
        target,
        ..Head::new(Kind::Load)
    }
}
