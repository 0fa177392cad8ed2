//! The strict parser of `SELECT`: an allow-list of the grammar.
//!
//! It recognises statements and collects what they read; it builds no tree. Two kinds of findings end in
//! a [`Refusal`]. *Soft* ones (a function of the time, a user variable, a locking clause…) are noted
//! and parsing goes on, so that the rest of the statement is still examined for calls that write. *Hard* ones
//! are texts outside the grammar: parsing stops, and [`crate::scan`] judges the tokens.
//!
//! Where the grammar here is wider than a server's, the server answers with an error, which is
//! never cached. Where a table could be read, its name is recorded, whatever the context.

mod call;
mod expression;
mod query;
mod source;

use crate::cursor::{Cursor, NameRead};
use crate::keyword::Keyword;
use crate::refusal::Refusal;
use crate::scan::Findings;
use crate::statement::{EverythingReason, TableName};
use crate::token::{Token, TokenKind};

/// How deeply expressions, subqueries, joins and parentheses may be nested. It bounds the stack.
pub const NESTING_DEPTH_MAX: usize = 96;

/// How many different tables a cacheable statement may name.
pub const TABLES_MAX: usize = 64;

/// What a cacheable statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Every table or view that is named anywhere in it, also in subqueries; each once, in the
    /// order of their appearance. Names of common table expressions are resolved away.
    pub tables: Vec<TableName>,
}

/// The result of parsing a part: `Err` is a hard refusal.
pub(crate) type Parsed = Result<(), Refusal>;

/// The parser's state.
pub(crate) struct SelectParser<'a> {
    pub(crate) cursor: Cursor<'a>,
    pub(crate) tables: Vec<TableName>,
    /// Names of the common table expressions that are visible here, innermost last.
    expressions_in_scope: Vec<Vec<u8>>,
    depth: usize,
    pub(crate) findings: Findings,
    /// The first soft refusal.
    refusal: Option<Refusal>,
    placeholders: Placeholders,
}

/// What a `?` in the text means for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholders {
    /// The result depends on values that nobody here knows.
    AreUnknown,
    /// The values are known when the statement is executed, and are then part of what its result is
    /// looked up by.
    AreBound,
}

impl<'a> SelectParser<'a> {
    /// A parser that goes on from a cursor.
    pub(crate) fn at(cursor: Cursor<'a>) -> SelectParser<'a> {
        SelectParser {
            cursor,
            tables: Vec::new(),
            expressions_in_scope: Vec::new(),
            depth: 0,
            findings: Findings::default(),
            refusal: None,
            placeholders: Placeholders::AreUnknown,
        }
    }

    /// The same for a statement whose values are bound when it is executed.
    pub(crate) fn with(mut self, placeholders: Placeholders) -> SelectParser<'a> {
        self.placeholders = placeholders;
        self
    }

    /// Parses a whole statement, up to the end of the text. `Err` if it is outside the grammar.
    pub(crate) fn statement(&mut self) -> Parsed {
        self.query_expression()?;
        if !self.cursor.at_end() {
            return Err(Refusal::Syntax);
        }
        if !self.cursor.ends_plainly() {
            self.refuse(Refusal::MultipleStatements);
        }
        if self.cursor.lexer().saw_executable_comment() {
            self.refuse(Refusal::ExecutableComment);
        }
        if self.cursor.lexer().saw_variable_hint() {
            self.refuse(Refusal::OptimizerHint);
        }
        if self.cursor.lexer().saw_non_ascii_word() {
            self.refuse(Refusal::NonAsciiWord);
        }
        Ok(())
    }

    /// What the parsed statement reads, or why it can't be cached.
    pub(crate) fn into_result(self) -> Result<Select, Refusal> {
        match self.refusal {
            Some(refusal) => Err(refusal),
            None if self.tables.is_empty() => Err(Refusal::NoTables),
            None => Ok(Select {
                tables: self.tables,
            }),
        }
    }

    /// Notes a soft refusal.
    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }

    /// A `?` where a value stands.
    fn placeholder(&mut self) {
        self.cursor.advance();
        if self.placeholders == Placeholders::AreUnknown {
            self.refuse(Refusal::Placeholder);
        }
    }

    /// Notes a call that can write.
    fn refuse_write(&mut self, refusal: Refusal, reason: EverythingReason) {
        self.refuse(refusal);
        self.findings.everything.get_or_insert(reason);
    }

    /// Parses one level deeper.
    fn nested(&mut self, part: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth >= NESTING_DEPTH_MAX {
            return Err(Refusal::NestingTooDeep);
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed {
        if self.cursor.take(kind) {
            Ok(())
        } else {
            Err(Refusal::Syntax)
        }
    }

    fn expect_word(&mut self, word: Keyword) -> Parsed {
        self.expect(TokenKind::Word(word))
    }

    fn expect_name(&mut self) -> Result<Token, Refusal> {
        if self.cursor.at_name() {
            Ok(self.cursor.advance())
        } else {
            Err(Refusal::Syntax)
        }
    }

    /// One or more parts, separated by commas.
    fn list(&mut self, mut part: impl FnMut(&mut Self) -> Parsed) -> Parsed {
        part(self)?;
        while self.cursor.take(TokenKind::Comma) {
            part(self)?;
        }
        Ok(())
    }

    /// A part in parentheses.
    fn parenthesised(&mut self, part: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        self.expect(TokenKind::LeftParen)?;
        self.nested(part)?;
        self.expect(TokenKind::RightParen)
    }

    /// `(name, …)`
    fn names_in_parentheses(&mut self) -> Parsed {
        self.parenthesised(|parser| parser.list(|parser| parser.expect_name().map(drop)))
    }

    /// A table's name where a table is read.
    fn table_reference(&mut self) -> Parsed {
        match self.cursor.table_name() {
            Some(NameRead::Plain(name)) => self.add_table(name),
            Some(NameRead::Uncertain) => {
                self.refuse(Refusal::TableName);
                self.findings.uncertain_table = true;
                Ok(())
            }
            None => Err(Refusal::Syntax),
        }
    }

    fn add_table(&mut self, name: TableName) -> Parsed {
        if name.schema.is_none() && self.is_expression_in_scope(name.table.as_bytes()) {
            return Ok(());
        }
        if name.schema.as_deref().is_some_and(is_system_schema) {
            self.refuse(Refusal::SystemSchema);
        }
        if self.tables.contains(&name) {
            return Ok(());
        }
        if self.tables.len() >= TABLES_MAX {
            return Err(Refusal::TooManyTables);
        }
        self.tables.push(name);
        Ok(())
    }

    /// Only the exact spelling counts: another case may be another name, and then it is a table.
    fn is_expression_in_scope(&self, name: &[u8]) -> bool {
        self.expressions_in_scope.iter().any(|known| known == name)
    }
}

/// Schemas whose tables are made on the fly or change without a trace in the log.
pub(crate) const SYSTEM_SCHEMAS: &[&str] =
    &["information_schema", "mysql", "performance_schema", "sys"];

/// Whether a schema is one of the server's own, in any case.
pub fn is_system_schema(schema: &str) -> bool {
    SYSTEM_SCHEMAS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(schema))
}
