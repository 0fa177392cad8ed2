//! What a `SELECT`'s result depends on, in words.

use std::fmt::Write as _;
use std::sync::Arc;

use remora_cache::{ColumnSet, Shape, interval_of};
use remora_sql::{Block, Constant, Select, Test};
use serde::Serialize;

use super::codec::Codec;
use super::plan::{End, Narrowing, TagPlan, cover};
use super::read::{Purpose, ReadTables, ReadTags, TagStep, gather};
use super::resolve::restricted;
use crate::facts::{CascadeParent, TableFacts};
use crate::reason::{Coarse, Words};

/// The longest text constant that is shown whole, in characters.
const TEXT_SHOWN_MAX: usize = 60;

/// A table on which a result depends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The table; with its schema if that isn't the default one.
    pub table: String,
    /// Which rows of it matter: `id = 5`. `None`: all.
    pub rows: Option<String>,
    /// Those of its columns that matter, beside those in `rows`. `None`: all.
    pub columns: Option<Vec<String>>,
    /// Into how many intervals a range was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<usize>,
    /// Why each change of the table matters, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coarse: Option<Words>,
    /// All of that in one line.
    pub words: String,
    /// The changes of its rows that drop the result.
    pub dropped_by: String,
}

/// What the names of tables stand for.
pub struct Names<'a> {
    /// Of each of [`Select::tables`] its schema and name.
    pub tables: &'a [(String, String)],
    /// The schema that needs no mention.
    pub default_schema: Option<&'a str>,
}

impl Names<'_> {
    fn shown(&self, schema: &str, table: &str) -> String {
        if self.default_schema == Some(schema) {
            table.to_owned()
        } else {
            format!("{schema}.{table}")
        }
    }

    fn of(&self, number: usize) -> String {
        let table = self.tables.get(number);
        table.map_or(String::new(), |(schema, table)| self.shown(schema, table))
    }
}

/// What a statement's result depends on, by the same plan by which [`super::tags_of_read`] makes
/// tags; nothing is registered for it. The arguments are those of that function.
pub fn explain_read(
    select: &Select,
    tables: &[ReadTables],
    names: &Names<'_>,
    under: &ReadTags<'_>,
    mut parent_facts: impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
) -> Vec<Dependency> {
    let under = ReadTags {
        purpose: Purpose::Explanation,
        ..*under
    };
    let mut known = Vec::new();
    let mut is_too_much = false;
    gather(
        select,
        tables,
        &under,
        &mut parent_facts,
        |step| match step {
            TagStep::Read {
                number,
                block,
                plan,
                tagged,
            } => known.push(match tagged {
                Ok(shape) => narrowed(&names.of(number), number, tables, (block, plan, shape)),
                Err(why) => coarse(&names.of(number), why),
            }),
            TagStep::Unplaced { number } => {
                known.push(coarse(&names.of(number), Coarse::PlaceUncertain));
            }
            TagStep::Parent {
                number,
                parent,
                tagged,
            } => known.push(cascade(&names.of(number), parent, names, tagged)),
            TagStep::TooManyTags => is_too_much = true,
        },
    );
    for (number, table) in tables.iter().enumerate() {
        let base_tables = table.facts.view_of.iter();
        known.extend(
            base_tables.map(|(schema, base)| view(&names.of(number), &names.shown(schema, base))),
        );
    }
    if is_too_much {
        for dependency in &mut known {
            *dependency = coarse(&dependency.table, Coarse::TooManyTags);
        }
    }
    known.dedup();
    known
}

fn coarse(table: &str, why: Coarse) -> Dependency {
    Dependency {
        table: table.to_owned(),
        rows: None,
        columns: None,
        intervals: None,
        coarse: Some(Words::of(why)),
        words: format!(
            "{table}: any change of the table, because {}",
            clause(why.describe())
        ),
        dropped_by: format!("any change of {table}"),
    }
}

fn view(view: &str, base: &str) -> Dependency {
    Dependency {
        words: format!("{base}: any change of the table, because the view {view} reads it"),
        ..coarse(base, Coarse::View)
    }
}

fn cascade(
    child: &str,
    parent: &CascadeParent,
    names: &Names<'_>,
    tagged: Result<&Shape<Codec>, Coarse>,
) -> Dependency {
    let table = names.shown(&parent.schema, &parent.table);
    let reason = format!("changes of it can cascade to {child}");
    match tagged {
        Err(why) => Dependency {
            words: format!("{table}: any change of the table, because {reason}"),
            ..coarse(&table, why)
        },
        Ok(shape) if !shape.is_of_existing() => Dependency {
            words: format!("{table}: all rows, because {reason}"),
            dropped_by: format!("rows of {table}: {}", changes_of(&[], None)),
            rows: None,
            columns: None,
            intervals: None,
            coarse: None,
            table,
        },
        Ok(_) => Dependency {
            words: format!(
                "{table}: all rows ({}), because {reason}",
                columns_words(Some(&parent.columns))
            ),
            dropped_by: format!(
                "rows of {table}: deleted, or updated in {}",
                parent.columns.join(", ")
            ),
            rows: None,
            columns: Some(parent.columns.clone()),
            intervals: None,
            coarse: None,
            table,
        },
    }
}

fn narrowed(
    table: &str,
    number: usize,
    tables: &[ReadTables],
    (block, plan, shape): (&Block, &TagPlan, &Shape<Codec>),
) -> Dependency {
    let facts = &tables[number].facts;
    let name = |ordinal: u16| {
        let column = facts.columns.get(usize::from(ordinal));
        column.map_or(String::new(), |column| column.name.to_string())
    };
    let narrowing: Vec<String> = shape
        .columns()
        .iter()
        .map(|one| name(one.ordinal))
        .collect();
    let columns = (*shape.reads() != ColumnSet::ALL).then(|| {
        let names = facts.columns.iter().enumerate();
        let names = names.filter(|(at, _)| shape.reads().contains(*at));
        let names = names.map(|(_, column)| column.name.to_string());
        names
            .filter(|name| !narrowing.contains(name))
            .collect::<Vec<_>>()
    });
    let rows = rows_in_words(block, plan, name);
    let mut words = format!("{table}: ");
    words.push_str(rows.shown.as_deref().unwrap_or("all rows"));
    if let Some(intervals) = rows.intervals {
        let _ = write!(words, ", in {intervals}");
    }
    let what = match columns.as_deref() {
        Some([]) if !narrowing.is_empty() => "reads no other column".to_owned(),
        columns => columns_words(columns),
    };
    let _ = write!(words, " ({what})");
    if columns.is_none() && plan.reads != ColumnSet::ALL {
        words.push_str(", all of them for want of room for more kinds of reads");
    }
    if narrowing.is_empty() && has_bound_range(block, tables) {
        words.push_str("; the values of a range that are bound narrow each execution");
    }
    let with = rows.covered.as_ref().or(rows.shown.as_ref());
    let with = with.map_or(String::new(), |rows| format!(" with {rows}"));
    Dependency {
        table: table.to_owned(),
        words,
        dropped_by: format!(
            "rows of {table}{with}: {}",
            changes_of(&narrowing, columns.as_deref())
        ),
        rows: rows.shown,
        columns,
        intervals: rows.count,
        coarse: None,
    }
}

/// How the rows of a narrowed read are described.
#[derive(Default)]
struct Rows {
    shown: Option<String>,
    /// The intervals around a range.
    intervals: Option<String>,
    count: Option<usize>,
    /// What the intervals cover, where it can be said.
    covered: Option<String>,
}

fn rows_in_words(block: &Block, plan: &TagPlan, name: impl Fn(u16) -> String) -> Rows {
    match &plan.narrowing {
        Narrowing::Impossible(_) | Narrowing::Existing => Rows::default(),
        Narrowing::Equal(columns) => {
            let each = columns.iter().map(|equal| {
                let test = block.conditions.get(equal.condition).map(|one| &one.test);
                format!("{} {}", name(equal.column.ordinal), test_words(test))
            });
            let all: Vec<_> = each.collect();
            Rows {
                shown: (!all.is_empty()).then(|| all.join(" and ")),
                ..Rows::default()
            }
        }
        Narrowing::Range(column, from, to) => {
            let column_name = name(column.ordinal);
            let [first, last] =
                [(from, true), (to, false)].map(|(end, is_from)| bound_words(block, *end, is_from));
            let shown = Some(format!("{column_name} from {first} to {last}"));
            let Some((level, intervals)) = cover(from.number, to.number) else {
                return Rows {
                    shown,
                    ..Rows::default()
                };
            };
            let covered = matches!(column.codec, Codec::Integer { .. } | Codec::Year).then(|| {
                let first = interval_of(from.number, level) << level;
                let last = ((interval_of(to.number, level) + 1) << level) - 1;
                format!("{column_name} from {first} to {last}")
            });
            let count = intervals.len();
            let intervals = match count {
                0 => "no interval, for there is nothing between them".to_owned(),
                1 => format!("one interval of {}", 1_i128 << level),
                _ => format!("{count} intervals of {}", 1_i128 << level),
            };
            Rows {
                shown,
                intervals: Some(intervals),
                count: Some(count),
                covered: covered.filter(|_| count > 0),
            }
        }
    }
}

/// Whether a range of the block's is bound when the statement is executed.
fn has_bound_range(block: &Block, tables: &[ReadTables]) -> bool {
    let facts = |number: usize| tables.get(number).map(|table| &*table.facts);
    let is_parameter = |end: &Option<remora_sql::Bound>| {
        end.as_ref()
            .is_some_and(|end| matches!(end.value, Constant::Parameter(_)))
    };
    block.conditions.iter().any(|condition| {
        matches!(&condition.test, Test::Range { from, to } if is_parameter(from) || is_parameter(to))
            && restricted(block, condition, facts).is_some()
    })
}

fn test_words(test: Option<&Test>) -> String {
    match test {
        Some(Test::In(constants)) => match &constants[..] {
            [one] => format!("= {}", constant_words(one)),
            several => {
                let several: Vec<_> = several.iter().map(constant_words).collect();
                format!("in ({})", several.join(", "))
            }
        },
        Some(Test::IsNull) => "is NULL".to_owned(),
        Some(Test::Column(_) | Test::Range { .. }) | None => String::new(),
    }
}

/// An end of a range as it is written.
fn bound_words(block: &Block, end: End, is_from: bool) -> String {
    let test = block.conditions.get(end.condition).map(|one| &one.test);
    let bound = match test {
        Some(Test::Range { from, to }) => (if is_from { from } else { to }).as_ref(),
        _ => None,
    };
    bound.map_or_else(
        || end.number.to_string(),
        |bound| constant_words(&bound.value),
    )
}

fn constant_words(constant: &Constant) -> String {
    match constant {
        Constant::Integer(number) => number.to_string(),
        Constant::Decimal(text) => text.clone(),
        Constant::Parameter(_) => "?".to_owned(),
        Constant::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let shown: String = text
                .chars()
                .take(TEXT_SHOWN_MAX)
                .flat_map(char::escape_debug)
                .collect();
            let rest = if text.chars().nth(TEXT_SHOWN_MAX).is_some() {
                "…"
            } else {
                ""
            };
            format!("'{shown}{rest}'")
        }
    }
}

fn columns_words(columns: Option<&[String]>) -> String {
    match columns {
        None => "reads all columns".to_owned(),
        Some([]) => "reads no column".to_owned(),
        Some(columns) => format!("reads {}", columns.join(", ")),
    }
}

/// Which changes of a row matter, by the columns that narrow the read and those that it reads.
fn changes_of(narrowing: &[String], columns: Option<&[String]>) -> String {
    let Some(columns) = columns else {
        return "inserted, deleted or updated".to_owned();
    };
    let all: Vec<&str> = narrowing
        .iter()
        .chain(columns)
        .map(String::as_str)
        .collect();
    match &all[..] {
        [] => "inserted or deleted".to_owned(),
        [one] => format!("inserted, deleted, or updated in {one}"),
        [others @ .., last] => {
            format!(
                "inserted, deleted, or updated in {} or {last}",
                others.join(", ")
            )
        }
    }
}

/// A sentence as a part of another one.
fn clause(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(letters).collect()
    })
}
