//! `SELECT @@version, @@query_cache_size AS size`: a list of system variables and nothing else.

use super::parser::Parser;
use super::variable::{EmulatedVariable, VariableScope};
use crate::token::TokenKind as T;

/// Variables that one such list may have.
const ITEMS_MAX: usize = 256;

/// A `SELECT` of system variables, in which those of the query cache are to be replaced by their
/// values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedSelect {
    /// The query cache's variables in it, in their order.
    pub uses: Vec<VariableUse>,
}

/// A variable of the query cache in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableUse {
    /// Where `@@…` begins in the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which variable.
    pub variable: EmulatedVariable,
    /// Which value.
    pub scope: VariableScope,
    /// Whether its column has another name than its text.
    pub has_alias: bool,
}

pub(super) fn select(mut parser: Parser<'_>) -> Option<EmulatedSelect> {
    if parser.next_token().kind != T::DoubleAt {
        return None;
    }
    parser.expect("select")?;
    let mut uses = Vec::new();
    for _ in 0..ITEMS_MAX {
        let found = item(&mut parser)?;
        let has_alias = alias(&mut parser)?;
        if let Item::Own(found) = found {
            uses.push(VariableUse { has_alias, ..found });
        }
        if parser.take_kind(T::Comma) {
            continue;
        }
        if parser.take("into") {
            take_user_variables(&mut parser)?;
        }
        if parser.take("limit") {
            parser.take_number()?;
        }
        let is_certain = !parser.saw_executable_comment() && !uses.is_empty() && parser.at_end();
        return is_certain.then_some(EmulatedSelect { uses });
    }
    None
}

/// `@a, @b`, behind `INTO`.
fn take_user_variables(parser: &mut Parser<'_>) -> Option<()> {
    for _ in 0..ITEMS_MAX {
        if !parser.take_kind(T::UserVariable) {
            return None;
        }
        if !parser.take_kind(T::Comma) {
            return Some(());
        }
    }
    None
}

/// A variable in a list.
pub(super) enum Item {
    /// One of the query cache's.
    Own(VariableUse),
    /// Another.
    Other,
}

/// `@@[scope.]name`, without white space within.
pub(super) fn item(parser: &mut Parser<'_>) -> Option<Item> {
    let at = parser.current();
    if at.kind != T::DoubleAt {
        return None;
    }
    parser.advance();
    let first = parser.current();
    let mut name = parser.word()?;
    let mut end = first.end;
    if first.start != at.end {
        return None;
    }
    parser.advance();
    let mut scope = None;
    if parser.at_kind(T::Dot) {
        let dot = parser.advance();
        scope = Some(VariableScope::of(name));
        let second = parser.current();
        if dot.start != end || second.start != dot.end {
            return None;
        }
        name = parser.word()?;
        end = second.end;
        parser.advance();
    }
    let Some(variable) = EmulatedVariable::of(name) else {
        return Some(Item::Other);
    };
    let scope = match scope {
        None => VariableScope::Default,
        Some(scope) => scope?,
    };
    if scope == VariableScope::Session && !variable.has_session_value() {
        // The server has an error for it.
        return None;
    }
    Some(Item::Own(VariableUse {
        start: at.start,
        end,
        variable,
        scope,
        has_alias: false,
    }))
}

/// `[AS] name`. A word without `AS` is taken only where it can be nothing else.
fn alias(parser: &mut Parser<'_>) -> Option<bool> {
    let with_as = parser.take("as");
    let token = parser.current();
    match token.kind {
        T::Word(_) if !with_as && (parser.at("limit") || parser.at("into")) => {
            return Some(false);
        }
        T::Word(word) if word.is_reserved() => return None,
        T::QuotedName | T::String | T::Word(_) => {}
        _ => return (!with_as).then_some(false),
    }
    parser.advance();
    Some(true)
}
