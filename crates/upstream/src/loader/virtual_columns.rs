//! From which columns virtual ones are calculated, by the text of their expressions.
//!
//! An expression is analysed as if it stood in a client's statement: what may not stand there may
//! not stand here. MariaDB lets virtual columns call `NOW()`, and both families let them compare a
//! `TIME` with a date.
//!
//! MySQL reads the text each time that it opens the table, under the settings of the session for
//! which it does. Other sessions then get what that one would get (measured on 5.7 and 8.0).
//! MariaDB sets most of them aside, but not `ORACLE` (read in its source, not measured). So an
//! expression is refused that could have another value under other settings:
//!
//! - by its text: a backslash (`sql_mode`), a character beyond ASCII (the character set);
//! - by what it calls. `/` goes by `div_precision_increment`, `-` by `NO_UNSIGNED_SUBTRACTION`,
//!   names of months by `lc_time_names`. Comparisons, letter case, bytes and hashes of texts that
//!   come from numbers go by `collation_connection`. MariaDB's `concat`, `trim` and `substr` are
//!   other functions under `ORACLE`. Only words of the lists below may stand in it;
//! - by its type: bytes and bits show a text's character set, and MySQL 5.7 completes a `TIME`
//!   within JSON with today's date where it is to be one (measured; 8.0 warns and gives NULL).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use remora_engine::facts::{ColumnKind, ValueOrigin};
use remora_sql::{Dialect, Lexer, TokenKind as T, analyse};

use super::columns::LoadedColumn;
use crate::server_facts::Family;

/// So much of an expression is asked for, characters. One that fills it counts as cut off.
pub(super) const EXPRESSION_CHARS_MAX: usize = 8_192;

/// Functions that give the same under all settings. They stand before a `(`.
const CALLED: &[&str] = &[
    "json_extract",
    "json_unquote",
    "json_value",
    "concat_ws",
    "coalesce",
    "ifnull",
    "nvl",
    "left",
    "right",
    "char_length",
    "cast",
];

/// The same on MySQL.
const CALLED_ON_MYSQL: &[&str] = &["concat", "substr", "substring", "trim", "ltrim", "rtrim"];

/// Types that may be cast to. Those with a length stand before a `(`.
const TYPES: &[&str] = &["char", "decimal", "signed", "unsigned", "integer", "double"];

/// Words between arguments, which never stand before a `(`.
const WORDS: &[&str] = &[
    "as", "charset", "ascii", "latin1", "utf8", "utf8mb3", "utf8mb4", "from", "both", "leading",
    "trailing", "null",
];

/// Notes of each virtual column from which stored columns it is calculated, where that is certain.
/// `columns` are all of a table's, in its order.
pub(super) fn settle(columns: &mut [LoadedColumn], family: Family, dialect: Dialect) {
    let named: Vec<_> = columns
        .iter()
        .map(|column| named(columns, column, family, dialect))
        .collect();
    for at in 0..columns.len() {
        if !columns[at].is_virtual() {
            continue;
        }
        let origins = origins(columns, &named, at);
        let facts = &mut columns[at].facts;
        // The log has what the writer's session calculated, and a reader's may calculate another
        // value: it narrows nothing.
        if facts.kind != ColumnKind::JsonWithTimes {
            facts.kind = ColumnKind::Other;
        }
        if let Some(origins) = origins {
            facts.values = ValueOrigin::Calculated(origins);
        }
    }
}

/// The stored columns from which one is calculated, also through other virtual ones.
fn origins(
    columns: &[LoadedColumn],
    named: &[Option<Vec<usize>>],
    at: usize,
) -> Option<Arc<[u16]>> {
    let mut seen = BTreeSet::from([at]);
    let mut open = vec![at];
    let mut origins = BTreeSet::new();
    while let Some(at) = open.pop() {
        for next in named[at].as_ref()? {
            // An expression does more with a TIME than to show it; and an index would hold what a
            // moment was in the time zone of the writer's session.
            if columns[*next].is_time_or_timestamp() {
                return None;
            }
            if !columns[*next].is_virtual() {
                origins.insert(u16::try_from(*next).ok()?);
            } else if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    Some(origins.into_iter().collect())
}

/// The columns that a virtual column's expression names. `None` if it isn't certain that its value
/// depends on nothing else; and of a stored column, which isn't asked.
fn named(
    columns: &[LoadedColumn],
    column: &LoadedColumn,
    family: Family,
    dialect: Dialect,
) -> Option<Vec<usize>> {
    let text = plain(column.expression.as_deref()?)?;
    if !column.holds_text_or_numbers() || !is_alike(&text, family, dialect) {
        return None;
    }
    let statement = format!("SELECT ({text}) FROM `t`");
    let select = analyse(statement.as_bytes(), dialect).cacheable.ok()?;
    if select.reads.all_columns || select.reads.blocks.len() != 1 || select.tables.len() != 1 {
        return None;
    }
    let place = |name: &str| {
        let is_it = |column: &LoadedColumn| column.facts.name.eq_ignore_ascii_case(name);
        columns.iter().position(is_it)
    };
    select.reads.names.iter().map(place).collect()
}

/// Whether an expression has the same value under all settings.
fn is_alike(text: &str, family: Family, dialect: Dialect) -> bool {
    let mut lexer = Lexer::new(text.as_bytes(), dialect);
    let mut token = lexer.next_token();
    while token.kind != T::End {
        let next = lexer.next_token();
        let word = lexer.bytes(token);
        let is_one_of = |words: &[&str]| {
            let mut words = words.iter();
            words.any(|one| one.as_bytes().eq_ignore_ascii_case(word))
        };
        let is_alike = match token.kind {
            T::Word(_) if is_one_of(TYPES) => true,
            T::Word(_) if next.kind == T::LeftParen => {
                is_one_of(CALLED) || family == Family::MySql && is_one_of(CALLED_ON_MYSQL)
            }
            T::Word(_) => is_one_of(WORDS),
            kind => is_value_or_sign(kind),
        };
        if !is_alike {
            return false;
        }
        token = next;
    }
    true
}

fn is_value_or_sign(kind: T) -> bool {
    let is_value = matches!(kind, T::QuotedName | T::String | T::Introducer | T::Number);
    let is_bracket = matches!(kind, T::LeftParen | T::RightParen | T::Comma | T::Dot);
    is_value || is_bracket || matches!(kind, T::Plus | T::Star | T::Percent)
}

/// An expression's text as a statement would have it. `None` if what its quotes and backslashes
/// mean isn't certain.
///
/// MySQL 8.0 escapes the whole text once more (`_utf8mb4\'$.a\'`), so there each quote has a
/// backslash before it. In the other servers' texts the first quote of a string has none.
fn plain(text: &str) -> Option<Cow<'_, str>> {
    let is_cut = text.len() >= EXPRESSION_CHARS_MAX;
    if text.is_empty() || is_cut || !text.is_ascii() {
        return None;
    }
    if !text.contains('\\') {
        return Some(text.into());
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => return None,
            '\\' => unescaped.push(characters.next()?),
            _ => unescaped.push(character),
        }
    }
    (!unescaped.contains('\\')).then_some(unescaped.into())
}

#[cfg(test)]
mod tests {
    use remora_engine::facts::ColumnFacts;
    use remora_sql::Natives;

    use super::*;

    fn column(name: &str, values: ValueOrigin, expression: Option<&str>) -> LoadedColumn {
        let is_time = name == "t";
        let kind = if is_time {
            ColumnKind::Time
        } else {
            ColumnKind::Date
        };
        let data_type = if is_time { "time" } else { "int" };
        LoadedColumn {
            facts: ColumnFacts {
                values,
                ..ColumnFacts::new(name, kind)
            },
            ordinal: 0,
            data_type: data_type.into(),
            expression: expression.map(Into::into),
        }
    }

    /// Of the columns x, y, é and t, a TIME, those from which the last of these is calculated.
    fn calculated_from(expressions: &[&str]) -> Option<String> {
        calculated_on(Family::MySql, expressions)
    }

    fn calculated_on(family: Family, expressions: &[&str]) -> Option<String> {
        let stored = ["x", "Y", "é", "t"].map(|name| column(name, ValueOrigin::Stored, None));
        let mut columns = Vec::from(stored);
        for (number, expression) in expressions.iter().enumerate() {
            let name = format!("v{number}");
            columns.push(column(&name, ValueOrigin::Uncertain, Some(expression)));
        }
        let dialect = Dialect {
            natives: Natives::MySql57,
            ..Dialect::default()
        };
        settle(&mut columns, family, dialect);
        let last = &columns.last().unwrap().facts;
        assert_eq!(last.kind, ColumnKind::Other);
        let ValueOrigin::Calculated(origins) = &last.values else {
            assert_eq!(last.values, ValueOrigin::Uncertain);
            return None;
        };
        let names: Vec<_> = origins
            .iter()
            .map(|at| &*columns[usize::from(*at)].facts.name)
            .collect();
        Some(names.join(" "))
    }

    #[test]
    fn the_texts_that_servers_write_are_read() {
        for (text, expected) in [
            ("`x` + 1", "x"),
            ("(`y` + `X`)", "x Y"),
            ("json_unquote(json_extract(`x`,'$.name'))", "x"),
            (r"json_unquote(json_extract(`x`,_utf8mb3\'$.name\'))", "x"),
            ("concat(`x`,' ',`Y`)", "x Y"),
            ("cast(`x` as char(3) charset utf8mb4)", "x"),
            ("trim(leading '0' from `x`)", "x"),
            ("cast(json_extract(`x`,'$.a') as decimal(10,2))", "x"),
            ("coalesce(`x`,0) * 100 + `y` % 4", "x Y"),
            ("5", ""),
        ] {
            assert_eq!(
                calculated_from(&[text]).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn a_column_is_calculated_from_what_those_that_it_names_are_calculated_from() {
        let through = |expressions: &[&str]| calculated_from(expressions);
        assert_eq!(through(&["`x` + 1", "`v0` * `v0`"]).as_deref(), Some("x"));
        assert_eq!(
            through(&["`x`", "`y`", "`v0` + `v1`", "`v2`"]).as_deref(),
            Some("x Y")
        );
        assert_eq!(through(&["now()", "`v0` + `x`"]), None);
        // No server lets them, and it ends anyway.
        assert_eq!(through(&["`v1`", "`v0` + `x`"]).as_deref(), Some("x"));
    }

    #[test]
    fn some_functions_are_alike_on_one_family_only() {
        for text in ["concat(`x`,'a')", "trim(`x`)", "substr(`x`,1,2)"] {
            let on = |family| calculated_on(family, &[text]);
            assert_eq!(on(Family::MySql).as_deref(), Some("x"), "{text}");
            assert_eq!(on(Family::MariaDb), None, "{text}");
        }
    }

    #[test]
    fn what_depends_on_more_or_cannot_be_read_with_certainty_is_not_settled() {
        for text in [
            "",
            "now()",
            "current_timestamp()",
            "rand()",
            "connection_id()",
            "`s`.`f`(`x`)",
            "f(`x`)",
            "@@global.server_id",
            "@a",
            "`x` > cast('10:00' as time)",
            "`x` > `t`",
            "hour(`t`)",
            "`missing`",
            "`é`",
            "(select 1)",
            "`x` || `y`",
            "`x` / 3",
            "`x` - `y`",
            "monthname(`x`)",
            "md5(`x`)",
            "case when `x` > 5 then 'a' else 'b' end",
            "`x` = 'a'",
            "lcase(`x`)",
            "charset(concat(`x`))",
            "ascii(concat(`x`))",
            "cast(concat(`x`) as char charset binary)",
            "date(json_extract(`x`,'$.a'))",
            "cast(json_extract(`x`,'$.a') as date)",
            "concat(`x`,'ü')",
            "`x`) FROM `t`, (SELECT `x`",
            "`x` +",
            r"concat(`x`,'it\'s')",
            r"concat(`x`,_utf8mb4\'it\\\'s\')",
            r"'x\'',now(),'\'y'",
            r"\",
        ] {
            assert_eq!(calculated_from(&[text]), None, "{text}");
        }
        let long = format!("`x` + {}", "1".repeat(EXPRESSION_CHARS_MAX));
        assert_eq!(calculated_from(&[&long]), None);
    }
}
