//! `SHOW STATUS`, `SHOW VARIABLES`, `SHOW REMORA`.

use super::EmulatedStatement;
use super::filter::{NameFilter, Pattern, filter};
use super::parser::Parser;
use super::variable::VariableScope;
use crate::token::TokenKind as T;

/// Which names a `SHOW` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameListing {
    /// `STATUS`
    Status,
    /// `VARIABLES`
    Variables,
}

/// `SHOW STATUS` or `SHOW VARIABLES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowNames {
    /// What is listed.
    pub listing: NameListing,
    /// Whether the global values are meant.
    pub is_global: bool,
    /// Which names.
    pub filter: NameFilter,
}

/// `SHOW REMORA what [LIKE '…'] [LIMIT n]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowRemora {
    /// The word after `REMORA`, in capitals; empty if there is none.
    pub what: String,
    /// Which rows, by the column that the list is about.
    pub pattern: Option<Pattern>,
    /// How many rows at most.
    pub limit: Option<u64>,
    /// Whether that is all: nothing stands behind it.
    pub is_complete: bool,
}

pub(super) fn show(mut parser: Parser<'_>) -> Option<EmulatedStatement<'_>> {
    parser.expect("show")?;
    if parser.at("remora") {
        return remora(parser).map(EmulatedStatement::ShowRemora);
    }
    let scope = parser.word().and_then(VariableScope::of);
    if scope.is_some() {
        parser.advance();
    }
    let listing = if parser.take("status") {
        NameListing::Status
    } else {
        parser.expect("variables")?;
        NameListing::Variables
    };
    Some(EmulatedStatement::Show(ShowNames {
        listing,
        is_global: scope == Some(VariableScope::Global),
        filter: filter(parser)?,
    }))
}

fn remora(mut parser: Parser<'_>) -> Option<ShowRemora> {
    parser.expect("remora")?;
    let mut shown = ShowRemora {
        what: String::new(),
        pattern: None,
        limit: None,
        is_complete: false,
    };
    if let Some(word) = parser.word() {
        shown.what = String::from_utf8_lossy(word).to_ascii_uppercase();
        parser.advance();
    }
    if parser.take("like") {
        shown.pattern = Some(Pattern::new(parser.take_string()?));
    }
    if parser.take("limit") {
        shown.limit = Some(parser.take_number()?);
    }
    // What nobody knows is answered with what is known, if it is one statement.
    shown.is_complete = parser.at_end();
    let ends = shown.is_complete || (!parser.at_kind(T::Invalid) && parser.is_one_statement());
    ends.then_some(shown)
}
