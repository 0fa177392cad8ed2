//! What the analysis says of all statements that differ only in their values: of reads, and of
//! writes of rows.
//!
//! **Why one analysis does for all of them.** Texts with one [`crate::skeleton`] have the same
//! tokens, but for what numbers and strings say. The parser looks at what they say in three places:
//!
//! - The constants that columns are compared with, and those that are inserted. Each is one value
//!   of the text, as it stands or negated: the parser tells where one is made of several, and then
//!   the template has no gaps. Which value it is, is found by analysing the same text with other
//!   values.
//! - Whether a number fits into a signed integer of 64 bits, and whether a string is short enough
//!   to be a constant. Longer ones are refused.
//! - Whether a `LIMIT` is 0. A 0 is refused unless it fills a gap, or the first text had one in its
//!   place and was found to say the same with another number.
//!
//! `tests/template.rs` compares random statements with their own analysis, and so does the proxy in
//! debug builds, each time.

use crate::classify::analyse_single_values;
use crate::dialect::Dialect;
use crate::reads::{CONSTANT_BYTES_MAX, Condition, Constant, Reads, Test, WrittenRows};
use crate::select::{Select, integer, unescape};
use crate::skeleton::{VALUES_MAX, ValuePlace};
use crate::statement::{Statement, StatementKind};

/// The analysis of a cacheable read, for every statement with the same skeleton and dialect, if
/// quotes and backslashes are certain.
#[derive(Clone, Debug)]
pub struct ReadTemplate {
    every_row: Statement,
    with_gaps: Option<WithGaps>,
}

/// The same of an `INSERT`, `REPLACE`, `UPDATE` or `DELETE`. It is empty if other statements may
/// run with the write, or if values can't be told apart: then each text is analysed.
#[derive(Clone, Debug)]
pub struct WriteTemplate(Option<WithGaps>);

/// The analysis, with gaps where values of the text are.
#[derive(Clone, Debug)]
struct WithGaps {
    /// Each gap holds 0.
    statement: Statement,
    gaps: Vec<Gap>,
    /// Of each value of the text, what it may be.
    forms: Vec<Form>,
}

/// A constant that is a value of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    place: ConstantPlace,
    /// Which value.
    value: usize,
    is_negated: bool,
}

/// A constant of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConstantPlace {
    /// A column that is read is compared with it; the number is that of [`Reads::blocks`].
    OfBlock(usize, OfCondition),
    /// A column of the written table is compared with it.
    OfWrite(OfCondition),
    /// It is inserted.
    Inserted { row: usize, column: usize },
}

/// A constant among conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OfCondition {
    condition: usize,
    /// Among those that the condition compares with; of a range, 1 is the upper bound.
    constant: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number { may_be_zero: bool },
    Text,
}

/// The values that stand for those of a text: the n-th is this plus n, or this and n.
const NUMBER: i128 = 700_000_000_000;
const TEXT: &str = "remora";

impl ReadTemplate {
    /// That of a statement with this text, whose values stand at these places; `None` if it can't
    /// be cached.
    pub fn of(
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<ReadTemplate> {
        let select = statement.cacheable.as_ref().ok()?;
        Some(ReadTemplate {
            every_row: without_conditions(statement, select),
            with_gaps: WithGaps::of(statement, text, dialect, values),
        })
    }

    /// The analysis without what depends on values: which rows it reads. No value has an effect:
    /// what a statement calls, names and locks is in the skeleton. A value may still make one of
    /// them uncacheable, so use it only where the result isn't stored. If one were stored anyway,
    /// any change of its tables would drop it.
    pub fn of_every_row(&self) -> &Statement {
        &self.every_row
    }

    /// The analysis of a statement with this text, whose values stand at these places. `None` if a
    /// value could make it another one: then the text must be analysed.
    pub fn with_values(
        &self,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<Statement> {
        self.with_gaps.as_ref()?.filled(text, dialect, values)
    }
}

impl WriteTemplate {
    /// That of a statement with this text, whose values stand at these places; `None` if it is of
    /// another kind. An empty one is worth keeping: nobody tries to make it again.
    pub fn of(
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<WriteTemplate> {
        use StatementKind::{Delete, Insert, Replace, Update};
        if !matches!(statement.kind, Insert | Replace | Update | Delete) {
            return None;
        }
        // If a text may run more, all of it is searched for words, strings included. So a value can
        // change the analysis.
        let is_settled = !statement.session.may_run_more();
        let with_gaps = || WithGaps::of(statement, text, dialect, values);
        Some(WriteTemplate(is_settled.then(with_gaps).flatten()))
    }

    /// The same as [`ReadTemplate::with_values`].
    pub fn with_values(
        &self,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<Statement> {
        self.0.as_ref()?.filled(text, dialect, values)
    }
}

fn without_conditions(statement: &Statement, select: &Select) -> Statement {
    let every_row = Reads {
        all_columns: true,
        makes_dates: select.reads.makes_dates,
        ..Reads::default()
    };
    Statement {
        cacheable: Ok(Select {
            tables: select.tables.clone(),
            reads: every_row,
            says_cache: select.says_cache,
            rows_come_from_tables: select.rows_come_from_tables,
            // A value decides that.
            filters_by_conditions_only: false,
            counts_found_rows: select.counts_found_rows,
        }),
        narrowed: None,
        writes: statement.writes.clone(),
        ..*statement
    }
}

impl WithGaps {
    /// Compares the analysis with that of the same text with values that are known again.
    fn of(
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
        values: &[ValuePlace],
    ) -> Option<WithGaps> {
        if values.len() > VALUES_MAX {
            return None;
        }
        let mut other = analyse_single_values(&with_known_values(text, values)?, dialect)?;
        let mut statement = statement.clone();
        let own = take_constants(&mut statement);
        let known = take_constants(&mut other);
        if statement != other {
            return None;
        }
        let mut gaps = Vec::with_capacity(own.len());
        for ((place, own), (_, known)) in own.into_iter().zip(known) {
            // It stays as it is in all texts, whatever it looks like.
            if own == known {
                return None;
            }
            let (value, is_negated) = which(&known)?;
            let bytes = values.get(value)?.of(text)?;
            if constant(bytes, dialect, is_negated)? != own {
                return None;
            }
            gaps.push(Gap {
                place,
                value,
                is_negated,
            });
        }
        let form = |(at, value): (usize, &ValuePlace)| {
            let value = value.of(text)?;
            let may_be_zero = is_zero(value) || gaps.iter().any(|gap| gap.value == at);
            let form = match value.first()? {
                b'0'..=b'9' => Form::Number { may_be_zero },
                _ => Form::Text,
            };
            form.fits(value).then_some(form)
        };
        let forms: Option<Vec<Form>> = values.iter().enumerate().map(form).collect();
        Some(WithGaps {
            statement,
            gaps,
            forms: forms?,
        })
    }

    fn filled(&self, text: &[u8], dialect: Dialect, values: &[ValuePlace]) -> Option<Statement> {
        let WithGaps {
            statement,
            gaps,
            forms,
        } = self;
        let fits = |(value, form): (&ValuePlace, &Form)| {
            value.of(text).is_some_and(|value| form.fits(value))
        };
        if values.len() != forms.len() || !values.iter().zip(forms).all(fits) {
            return None;
        }
        let mut statement = statement.clone();
        for gap in gaps {
            let value = values.get(gap.value)?.of(text)?;
            *constant_at(&mut statement, gap.place)? = constant(value, dialect, gap.is_negated)?;
        }
        Some(statement)
    }
}

impl Form {
    fn fits(self, value: &[u8]) -> bool {
        match self {
            Form::Number { may_be_zero } => {
                let is_short = integer(value).is_some_and(|number| i64::try_from(number).is_ok());
                is_short && (may_be_zero || !is_zero(value))
            }
            Form::Text => value.len() <= CONSTANT_BYTES_MAX,
        }
    }
}

fn is_zero(value: &[u8]) -> bool {
    value.iter().all(|digit| *digit == b'0')
}

/// The text with other values, which [`which`] knows again.
fn with_known_values(text: &[u8], values: &[ValuePlace]) -> Option<Vec<u8>> {
    let mut other = Vec::with_capacity(text.len());
    let mut done = 0;
    for (number, value) in values.iter().enumerate() {
        other.extend_from_slice(text.get(done..value.start as usize)?);
        let quote = *value.of(text)?.first()?;
        if quote.is_ascii_digit() {
            let known = NUMBER + i128::try_from(number).ok()?;
            other.extend_from_slice(known.to_string().as_bytes());
        } else {
            other.push(quote);
            other.extend_from_slice(format!("{TEXT}{number}").as_bytes());
            other.push(quote);
        }
        done = value.end as usize;
    }
    other.extend_from_slice(text.get(done..)?);
    Some(other)
}

/// Which of those values a constant is, and whether it is negated.
fn which(known: &Constant) -> Option<(usize, bool)> {
    match known {
        Constant::Integer(number) => {
            let value = usize::try_from(number.abs() - NUMBER).ok()?;
            Some((value, *number < 0))
        }
        Constant::Text(text) => {
            let number = text.strip_prefix(TEXT.as_bytes())?;
            let number = std::str::from_utf8(number).ok()?.parse().ok()?;
            Some((number, false))
        }
        Constant::Decimal(_) | Constant::Parameter(_) => None,
    }
}

/// The constant that a value is; `None` if it is none.
fn constant(value: &[u8], dialect: Dialect, is_negated: bool) -> Option<Constant> {
    if value.first()?.is_ascii_digit() {
        let number = i128::from(integer(value)?);
        return Some(Constant::Integer(if is_negated { -number } else { number }));
    }
    let mut text = Vec::new();
    unescape(value, !dialect.no_backslash_escapes, &mut text)?;
    (!is_negated).then_some(Constant::Text(text))
}

/// Puts 0 in the place of each constant, and gives those that were there.
fn take_constants(statement: &mut Statement) -> Vec<(ConstantPlace, Constant)> {
    let mut taken = Vec::new();
    let mut take = |place, constant: &mut Constant| {
        taken.push((place, std::mem::replace(constant, Constant::Integer(0))));
    };
    if let Ok(select) = &mut statement.cacheable {
        for (number, block) in select.reads.blocks.iter_mut().enumerate() {
            for_each_constant(&mut block.conditions, |place, constant| {
                take(ConstantPlace::OfBlock(number, place), constant);
            });
        }
    }
    match statement.narrowed.as_mut().map(|write| &mut write.rows) {
        Some(WrittenRows::Where(conditions)) => {
            for_each_constant(conditions, |place, constant| {
                take(ConstantPlace::OfWrite(place), constant);
            });
        }
        Some(WrittenRows::Values { rows, .. }) => {
            for (row, values) in rows.iter_mut().enumerate() {
                for (column, value) in values.iter_mut().enumerate() {
                    if let Some(constant) = value {
                        take(ConstantPlace::Inserted { row, column }, constant);
                    }
                }
            }
        }
        None => {}
    }
    taken
}

fn for_each_constant(
    conditions: &mut [Condition],
    mut give: impl FnMut(OfCondition, &mut Constant),
) {
    for (condition, test) in conditions.iter_mut().map(|one| &mut one.test).enumerate() {
        let all = match test {
            Test::In(constants) => 0..constants.len(),
            Test::Range { from, to } => usize::from(from.is_none())..1 + usize::from(to.is_some()),
            Test::Column(_) | Test::IsNull => 0..0,
        };
        for number in all {
            let place = OfCondition {
                condition,
                constant: number,
            };
            if let Some(constant) = constant_of(test, number) {
                give(place, constant);
            }
        }
    }
}

fn constant_at(statement: &mut Statement, place: ConstantPlace) -> Option<&mut Constant> {
    let rows = statement.narrowed.as_mut().map(|write| &mut write.rows);
    let (conditions, place) = match (place, rows) {
        (ConstantPlace::OfBlock(block, place), _) => {
            let select = statement.cacheable.as_mut().ok()?;
            (&mut select.reads.blocks.get_mut(block)?.conditions, place)
        }
        (ConstantPlace::OfWrite(place), Some(WrittenRows::Where(conditions))) => {
            (conditions, place)
        }
        (ConstantPlace::Inserted { row, column }, Some(WrittenRows::Values { rows, .. })) => {
            return rows.get_mut(row)?.get_mut(column)?.as_mut();
        }
        _ => return None,
    };
    constant_of(
        &mut conditions.get_mut(place.condition)?.test,
        place.constant,
    )
}

fn constant_of(test: &mut Test, number: usize) -> Option<&mut Constant> {
    match test {
        Test::In(constants) => constants.get_mut(number),
        Test::Range { from, to } => {
            let bound = if number == 0 { from } else { to };
            bound.as_mut().map(|bound| &mut bound.value)
        }
        Test::Column(_) | Test::IsNull => None,
    }
}
