//! Which rows a write to one table changes, if its text says so.
//!
//! The whole statement is parsed strictly, by the grammar of `SELECT`'s expressions: what can't be
//! followed to the end isn't narrowed. Statements with `WITH`, several tables, `PARTITION`,
//! `FOR PORTION OF`, `UPDATE IGNORE`, `REPLACE` and `ON DUPLICATE KEY UPDATE` (the last two change
//! other rows) are not among them.

use crate::cursor::{Cursor, NameRead, is_name_after_dot};
use crate::keyword::Keyword as K;
use crate::name::TableName;
use crate::reads::{Condition, Constant, NarrowedWrite, SourceSet, WRITTEN_ROWS_MAX, WrittenRows};
use crate::refusal::Refusal;
use crate::select::{Placeholders, SelectParser, Value};
use crate::token::{Token, TokenKind as T};

type Narrowed = Result<NarrowedWrite, Refusal>;

/// The statement at the cursor; `None` if it isn't a write whose rows can be told.
pub(super) fn write(cursor: Cursor<'_>, placeholders: Placeholders) -> Option<NarrowedWrite> {
    let mut parser = SelectParser::at(cursor);
    parser.set_placeholders(placeholders);
    let narrowed = parse(&mut parser)?;
    let trusted = parser.cursor.at_end() && !parser.is_doubtful();
    narrowed.ok().filter(|_| trusted)
}

/// Whether no values of such a write are calculated with one another or joined, and none is a
/// decimal number.
pub(super) fn has_single_values(cursor: Cursor<'_>) -> bool {
    let mut parser = SelectParser::at(cursor);
    matches!(parse(&mut parser), Some(Ok(_))) && !parser.combines_values
}

fn parse(parser: &mut SelectParser<'_>) -> Option<Narrowed> {
    Some(match parser.cursor.advance().kind {
        T::Word(K::Insert) => insert(parser),
        T::Word(K::Update) => update(parser),
        T::Word(K::Delete) => delete(parser),
        _ => return None,
    })
}

/// `[LOW_PRIORITY] table [[AS] alias] SET … [WHERE …] [ORDER BY …] [LIMIT …]`
fn update(parser: &mut SelectParser<'_>) -> Narrowed {
    parser.cursor.take_word(K::LowPriority);
    let table = aliased_table(parser)?;
    parser.expect_word(K::Set)?;
    let mut assigned = Vec::new();
    parser.list(|parser| {
        assigned.push(assigned_column(parser)?);
        parser.expect(T::Equal)?;
        assigned_value(parser).map(drop)
    })?;
    Ok(NarrowedWrite {
        table,
        rows: WrittenRows::Where(filter(parser)?),
        assigned,
    })
}

/// `[options] FROM table [[AS] alias] [WHERE …] [ORDER BY …] [LIMIT …] [RETURNING …]`
fn delete(parser: &mut SelectParser<'_>) -> Narrowed {
    parser
        .cursor
        .skip_words(&[K::LowPriority, K::Quick, K::Ignore]);
    parser.expect_word(K::From)?;
    let table = aliased_table(parser)?;
    let rows = WrittenRows::Where(filter(parser)?);
    returning(parser)?;
    Ok(NarrowedWrite {
        table,
        rows,
        assigned: Vec::new(),
    })
}

/// `[options] [INTO] table [(columns)] VALUES (…), … [RETURNING …]`, or with
/// `SET column = value, …`
fn insert(parser: &mut SelectParser<'_>) -> Narrowed {
    parser
        .cursor
        .skip_words(&[K::LowPriority, K::HighPriority, K::Ignore]);
    parser.cursor.take_word(K::Into);
    let table = table(parser)?;
    let (columns, rows) = if parser.cursor.take_word(K::Set) {
        assignments(parser)?
    } else {
        values(parser)?
    };
    returning(parser)?;
    Ok(NarrowedWrite {
        table,
        rows: WrittenRows::Values { columns, rows },
        assigned: Vec::new(),
    })
}

type Rows = (Option<Vec<String>>, Vec<Vec<Option<Constant>>>);

/// `column = value, …`
fn assignments(parser: &mut SelectParser<'_>) -> Result<Rows, Refusal> {
    let (mut columns, mut row) = (Vec::new(), Vec::new());
    parser.list(|parser| {
        columns.push(assigned_column(parser)?);
        parser.expect(T::Equal)?;
        row.push(assigned_value(parser)?);
        Ok(())
    })?;
    Ok((Some(columns), vec![row]))
}

/// `[(columns)] VALUES (…), …`
fn values(parser: &mut SelectParser<'_>) -> Result<Rows, Refusal> {
    let columns = if parser.cursor.at(T::LeftParen) {
        let mut columns = Vec::new();
        parser.parenthesised(|parser| {
            optional_list(parser, |parser| {
                columns.push(assigned_column(parser)?);
                Ok(())
            })
        })?;
        Some(columns)
    } else {
        None
    };
    if !parser.cursor.take_word(K::Value) {
        parser.expect_word(K::Values)?;
    }
    let mut rows = Vec::new();
    parser.list(|parser| {
        if rows.len() >= WRITTEN_ROWS_MAX {
            return Err(Refusal::Syntax);
        }
        let mut row = Vec::with_capacity(columns.as_ref().map_or(0, Vec::len));
        parser.parenthesised(|parser| {
            optional_list(parser, |parser| {
                row.push(assigned_value(parser)?);
                Ok(())
            })
        })?;
        let fits = columns
            .as_ref()
            .is_none_or(|columns| row.is_empty() || row.len() == columns.len());
        if !fits {
            return Err(Refusal::Syntax);
        }
        rows.push(row);
        Ok(())
    })?;
    Ok((columns, rows))
}

fn optional_list(
    parser: &mut SelectParser<'_>,
    part: impl FnMut(&mut SelectParser<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    if parser.cursor.at(T::RightParen) {
        return Ok(());
    }
    parser.list(part)
}

fn table(parser: &mut SelectParser<'_>) -> Result<TableName, Refusal> {
    match parser.cursor.table_name() {
        Some(NameRead::Plain(name)) => Ok(name),
        Some(NameRead::Uncertain) => Err(Refusal::TableName),
        None => Err(Refusal::Syntax),
    }
}

fn aliased_table(parser: &mut SelectParser<'_>) -> Result<TableName, Refusal> {
    let name = table(parser)?;
    if parser.cursor.take_word(K::As) {
        parser.expect_name()?;
    } else if parser.cursor.at_name() {
        parser.cursor.advance();
    }
    Ok(name)
}

/// `column`, `table.column` or `schema.table.column`, where it is assigned a value.
fn assigned_column(parser: &mut SelectParser<'_>) -> Result<String, Refusal> {
    let mut column: Token = parser.expect_name()?;
    while parser.cursor.take(T::Dot) {
        if !is_name_after_dot(parser.cursor.current()) {
            return Err(Refusal::Syntax);
        }
        column = parser.cursor.advance();
    }
    let bytes = parser.cursor.name_bytes(column);
    match std::str::from_utf8(&bytes) {
        Ok(name) if name.is_ascii() => Ok(name.to_ascii_lowercase()),
        _ => Err(Refusal::NonAsciiWord),
    }
}

/// An expression or `DEFAULT`: the constant, if it is one.
fn assigned_value(parser: &mut SelectParser<'_>) -> Result<Option<Constant>, Refusal> {
    let default = parser.cursor.at_word(K::Default) && parser.cursor.next_kind() != T::LeftParen;
    if default {
        parser.cursor.advance();
        return Ok(None);
    }
    Ok(match parser.value()? {
        Value::Literal(literal) => parser.constant(&literal),
        _ => None,
    })
}

/// `[WHERE …] [ORDER BY …] [LIMIT …]`. The last two only choose among the rows.
fn filter(parser: &mut SelectParser<'_>) -> Result<Vec<Condition>, Refusal> {
    let mut conditions = if parser.cursor.take_word(K::Where) {
        parser.condition()?
    } else {
        Vec::new()
    };
    for condition in &mut conditions {
        condition.restricts = SourceSet::range(0, 1);
        condition.scope = condition.restricts;
    }
    if parser.cursor.take_word(K::Order) {
        parser.expect_word(K::By)?;
        parser.list(SelectParser::order_element)?;
    }
    if parser.cursor.at_word(K::Limit) {
        parser.limit()?;
    }
    Ok(conditions)
}

/// `[RETURNING …]`
fn returning(parser: &mut SelectParser<'_>) -> Result<(), Refusal> {
    if parser.cursor.take_word(K::Returning) {
        parser.list(SelectParser::select_item)?;
    }
    Ok(())
}
