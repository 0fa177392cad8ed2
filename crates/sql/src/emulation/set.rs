//! `SET GLOBAL query_cache_size = …`.

use super::parser::Parser;
use super::select::{EmulatedSelect, Item, VariableUse, item};
use super::variable::{EmulatedVariable, VariableScope};
use crate::token::TokenKind as T;

/// Assignments that one statement may have.
const ASSIGNMENTS_MAX: usize = 32;
/// Words and signs that an expression may have.
const EXPRESSION_TOKENS_MAX: usize = 64;

/// A `SET` that assigns variables of the query cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatedSet {
    /// It assigns these and nothing else.
    Assignments(Vec<Assignment>),
    /// It assigns the global value of this one, but beside other things or by an expression that
    /// isn't looked into.
    Mixed(EmulatedVariable),
}

/// One assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Which variable.
    pub variable: EmulatedVariable,
    /// Which value of it.
    pub scope: VariableScope,
    /// The new value.
    pub value: EmulatedValue,
}

/// A value that is assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatedValue {
    /// A whole number, also as a product of whole numbers.
    Number(i128),
    /// A word, such as `DEMAND`, with or without quotes.
    Word(String),
    /// A string in quotes.
    String(String),
    /// A number with a fraction or an exponent, as it is written.
    Fraction(String),
    /// `DEFAULT`
    Default,
    /// `NULL`
    Null,
    /// What the server must be asked for.
    Expression(EmulatedExpression),
}

/// Variables, numbers and strings, perhaps with signs of arithmetic between them: what changes
/// nothing and reads no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedExpression {
    /// Where it begins in the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The query cache's variables in it.
    pub uses: Vec<VariableUse>,
}

pub(super) fn set(mut parser: Parser<'_>) -> Option<EmulatedSet> {
    parser.expect("set")?;
    let all = parser;
    match assignments(parser) {
        Some(assignments) if !parser.saw_executable_comment() => {
            Some(EmulatedSet::Assignments(assignments))
        }
        _ => assigned_global(all).map(EmulatedSet::Mixed),
    }
}

fn assignments(mut parser: Parser<'_>) -> Option<Vec<Assignment>> {
    let mut all = Vec::new();
    let mut carried = VariableScope::Default;
    for _ in 0..ASSIGNMENTS_MAX {
        let (scope, variable) = target(&mut parser, &mut carried)?;
        if !parser.take_kind(T::Equal) && !parser.take_kind(T::Assign) {
            return None;
        }
        let value = value_or_expression(&mut parser)?;
        all.push(Assignment {
            variable,
            scope,
            value,
        });
        if !parser.take_kind(T::Comma) {
            return parser.at_end().then_some(all);
        }
    }
    None
}

/// `[GLOBAL | SESSION | LOCAL] name`, `@@[scope.]name`. The last word for the scope holds for the
/// assignments behind it, too, if they have none of their own; that of a `@@` doesn't.
fn target(
    parser: &mut Parser<'_>,
    carried: &mut VariableScope,
) -> Option<(VariableScope, EmulatedVariable)> {
    let is_at = parser.take_kind(T::DoubleAt);
    let written = VariableScope::of(parser.word()?);
    if written.is_some() {
        parser.advance();
        if is_at && !parser.take_kind(T::Dot) {
            return None;
        }
    }
    let scope = if is_at {
        written.unwrap_or(VariableScope::Default)
    } else {
        *carried = written.unwrap_or(*carried);
        *carried
    };
    let variable = EmulatedVariable::of(parser.word()?)?;
    parser.advance();
    Some((scope, variable))
}

/// A plain value if nothing more belongs to it, else an expression.
fn value_or_expression(parser: &mut Parser<'_>) -> Option<EmulatedValue> {
    let mut probe = *parser;
    if let Some(value) = value(&mut probe)
        && ends_value(&probe)
    {
        *parser = probe;
        return Some(value);
    }
    expression(parser).map(EmulatedValue::Expression)
}

fn ends_value(parser: &Parser<'_>) -> bool {
    matches!(parser.current().kind, T::Comma | T::Semicolon | T::End)
}

fn expression(parser: &mut Parser<'_>) -> Option<EmulatedExpression> {
    let start = parser.start();
    let mut end = start;
    let mut uses = Vec::new();
    let mut depth = 0_u32;
    for _ in 0..EXPRESSION_TOKENS_MAX {
        let token = parser.current();
        match token.kind {
            _ if depth == 0 && ends_value(parser) => {
                return (end > start).then_some(EmulatedExpression { start, end, uses });
            }
            T::DoubleAt => {
                if let Item::Own(found) = item(parser)? {
                    end = found.end;
                    uses.push(VariableUse {
                        has_alias: true,
                        ..found
                    });
                } else {
                    end = parser.end_before();
                }
                continue;
            }
            T::LeftParen => depth += 1,
            T::RightParen => depth = depth.checked_sub(1)?,
            T::Number | T::String | T::UserVariable | T::Plus | T::Minus | T::Star | T::Slash => {}
            T::Word(_) if parser.at("div") || parser.at("null") => {}
            _ => return None,
        }
        parser.advance();
        end = token.end;
    }
    None
}

/// `SET @a = @@query_cache_size, @b = …`: the query cache's variables in what user variables are
/// set to; for instance to put them back afterwards.
pub(super) fn saved(mut parser: Parser<'_>) -> Option<EmulatedSelect> {
    parser.expect("set")?;
    let mut uses = Vec::new();
    for _ in 0..ASSIGNMENTS_MAX {
        if !parser.take_kind(T::UserVariable)
            || !(parser.take_kind(T::Equal) || parser.take_kind(T::Assign))
        {
            return None;
        }
        uses.extend(expression(&mut parser)?.uses);
        if !parser.take_kind(T::Comma) {
            let is_certain =
                !parser.saw_executable_comment() && !uses.is_empty() && parser.at_end();
            return is_certain.then_some(EmulatedSelect { uses });
        }
    }
    None
}

fn value(parser: &mut Parser<'_>) -> Option<EmulatedValue> {
    let token = parser.current();
    match token.kind {
        T::Number | T::Minus => number(parser),
        T::String => parser
            .take_string()
            .map(|text| EmulatedValue::String(text.to_owned())),
        T::Word(_) => {
            let word = String::from_utf8_lossy(parser.word()?).into_owned();
            parser.advance();
            Some(match word.to_ascii_uppercase().as_str() {
                "DEFAULT" => EmulatedValue::Default,
                "NULL" => EmulatedValue::Null,
                "TRUE" => EmulatedValue::Number(1),
                "FALSE" => EmulatedValue::Number(0),
                _ => EmulatedValue::Word(word),
            })
        }
        _ => None,
    }
}

/// `67108864`, `64 * 1024 * 1024`, `-1`, `1.5`.
fn number(parser: &mut Parser<'_>) -> Option<EmulatedValue> {
    let negative = parser.take_kind(T::Minus);
    let token = parser.current();
    if token.kind == T::Number && parser.take_number().is_none() {
        let digits = String::from_utf8_lossy(parser.bytes(token)).into_owned();
        parser.advance();
        let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if all_digits {
            // More than 64 bits; how many more makes no difference.
            return Some(EmulatedValue::Number(if negative {
                i128::MIN
            } else {
                i128::MAX
            }));
        }
        let sign = if negative { "-" } else { "" };
        return Some(EmulatedValue::Fraction(format!("{sign}{digits}")));
    }
    let digits = std::str::from_utf8(parser.bytes(token)).ok()?;
    let mut product: i128 = digits.parse().ok()?;
    while parser.take_kind(T::Star) {
        product = product.checked_mul(i128::from(parser.take_number()?))?;
    }
    Some(EmulatedValue::Number(if negative {
        -product
    } else {
        product
    }))
}

/// The variable of the query cache whose global value is assigned anywhere in the text.
fn assigned_global(mut parser: Parser<'_>) -> Option<EmulatedVariable> {
    let mut carried = None;
    // Of a `@@`, up to the next assignment.
    let mut own = None;
    let mut found = None;
    loop {
        match parser.current().kind {
            T::End => return found,
            T::Invalid => return None,
            // Several statements: the server's to answer, as those are not read here.
            T::Semicolon => return if parser.at_end() { found } else { None },
            T::Comma => own = None,
            T::DoubleAt => own = Some(VariableScope::Default),
            T::Word(_) => {
                let word = parser.word()?;
                let variable = EmulatedVariable::of(word);
                let is_assigned = matches!(parser.next_token().kind, T::Equal | T::Assign);
                let is_global = own.or(carried) == Some(VariableScope::Global);
                if let Some(variable) = variable.filter(|_| is_assigned && is_global) {
                    found = found.or(Some(variable));
                }
                let written = VariableScope::of(word);
                if own.is_some() {
                    own = written.or(own);
                } else {
                    carried = written.or(carried);
                }
            }
            _ => {}
        }
        parser.advance();
    }
}
