//! The statements of the query cache's SQL interface: its counters, variables and commands, and
//! Remora's own.
//!
//! [`recognise`] takes what it is sure of, in the spellings that servers take; everything else is
//! `None` and goes to the server as any other statement. It looks at the first words before
//! anything else, so that an ordinary statement costs two tokens.
//!
//! | statement | becomes |
//! |---|---|
//! | `SHOW [GLOBAL\|SESSION\|LOCAL] STATUS\|VARIABLES [LIKE … \| WHERE Variable_name …]` | [`EmulatedStatement::Show`] |
//! | `SELECT @@version, @@query_cache_size` | [`EmulatedStatement::Select`] |
//! | `SET GLOBAL query_cache_size = …` | [`EmulatedStatement::Set`] |
//! | `SET @old = @@query_cache_size` | [`EmulatedStatement::Save`] |
//! | `FLUSH QUERY CACHE`, `RESET QUERY CACHE` | [`EmulatedStatement::Flush`], [`EmulatedStatement::Reset`] |
//! | `SHOW REMORA …` | [`EmulatedStatement::ShowRemora`] |
//! | `EXPLAIN REMORA [ANALYZE] SELECT …` | [`EmulatedStatement::ExplainRemora`] |

mod filter;
mod parser;
mod select;
mod set;
mod show;
#[cfg(test)]
mod tests;
mod variable;

use self::parser::Parser;
use crate::dialect::Dialect;

pub use self::filter::{NameFilter, NameTest, Pattern};
pub use self::select::{EmulatedSelect, VariableUse};
pub use self::set::{Assignment, EmulatedExpression, EmulatedSet, EmulatedValue};
pub use self::show::{NameListing, ShowNames, ShowRemora};
pub use self::variable::{EmulatedVariable, VariableScope};

/// A statement that Remora answers itself, or whose answer it completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatedStatement<'t> {
    /// `SHOW STATUS` or `SHOW VARIABLES`.
    Show(ShowNames),
    /// A `SELECT` of system variables, some of which are the query cache's.
    Select(EmulatedSelect),
    /// A `SET` of the query cache's variables.
    Set(EmulatedSet),
    /// A `SET` of user variables to values of the query cache's.
    Save(EmulatedSelect),
    /// `FLUSH QUERY CACHE`.
    Flush,
    /// `RESET QUERY CACHE`.
    Reset,
    /// `SHOW REMORA …`.
    ShowRemora(ShowRemora),
    /// `EXPLAIN REMORA [ANALYZE] …`.
    ExplainRemora {
        /// Whether `ANALYZE` stands there: the statement is to be run.
        analyze: bool,
        /// The statement, from its first word to the text's end.
        statement: &'t [u8],
    },
}

/// The emulated statement that `text` is, if it certainly is one.
///
/// The text must be in a character set in which bytes below 0x80 are ASCII.
pub fn recognise(text: &[u8], dialect: Dialect) -> Option<EmulatedStatement<'_>> {
    let parser = Parser::new(text, dialect);
    let word = parser.word()?;
    let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    if is("select") {
        return select::select(parser).map(EmulatedStatement::Select);
    }
    if is("show") {
        return show::show(parser);
    }
    if is("set") {
        return set::set(parser)
            .map(EmulatedStatement::Set)
            .or_else(|| set::saved(parser).map(EmulatedStatement::Save));
    }
    if is("flush") || is("reset") {
        return command(parser);
    }
    if is("explain") || is("describe") || is("desc") {
        return explain(parser, text);
    }
    None
}

/// `FLUSH [NO_WRITE_TO_BINLOG | LOCAL] QUERY CACHE`, `RESET QUERY CACHE`.
fn command(mut parser: Parser<'_>) -> Option<EmulatedStatement<'_>> {
    let statement = if parser.take("flush") {
        let _ = parser.take("no_write_to_binlog") || parser.take("local");
        EmulatedStatement::Flush
    } else {
        parser.expect("reset")?;
        EmulatedStatement::Reset
    };
    parser.expect("query")?;
    parser.expect("cache")?;
    parser.at_end().then_some(statement)
}

/// `EXPLAIN REMORA [ANALYZE] SELECT …`. To a server without Remora `EXPLAIN remora` describes a
/// table; with a reserved word behind it, it means nothing.
fn explain<'t>(mut parser: Parser<'t>, text: &'t [u8]) -> Option<EmulatedStatement<'t>> {
    parser.advance();
    parser.expect("remora")?;
    let analyze = parser.take("analyze");
    // Its end may be missing from the statement.
    let (before, statement) = text.split_at_checked(parser.start())?;
    let opens_comment = before.windows(3).any(|bytes| bytes == b"/*!");
    if !parser.begins_select() || opens_comment {
        return None;
    }
    parser
        .is_one_statement()
        .then_some(EmulatedStatement::ExplainRemora { analyze, statement })
}
