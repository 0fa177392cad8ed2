//! The strict parser of `SELECT`: an allow-list of the grammar.
//!
//! It recognises statements and collects what they read. It builds no tree: an expression's value
//! says only whether it is a column, a constant, or conditions (see `value`). Two kinds of findings
//! end in a [`Refusal`]. *Soft* ones (a function of the time, a user variable, a locking clause…)
//! are noted and parsing goes on, so that the rest of the statement is still examined for calls
//! that write. *Hard* ones are texts outside the grammar: parsing stops, and [`crate::scan`] judges
//! the tokens.
//!
//! Where the grammar here is wider than a server's, the server answers with an error, which is
//! never cached. Where a table could be read, its name is recorded, whatever the context.

mod block;
mod call;
mod expression;
mod query;
mod source;
mod value;

use crate::cursor::{Cursor, NameRead};
use crate::everything::EverythingReason;
use crate::keyword::Keyword;
use crate::name::TableName;
use crate::reads::{Condition, NameUse, Noted, Reads};
use crate::refusal::Refusal;
use crate::scan::Findings;
use crate::token::{Token, TokenKind};
use block::{OpenBlock, Reader};
pub(crate) use value::{Value, integer, unescape};

/// How deeply expressions, subqueries, joins and parentheses may be nested. It bounds the stack.
pub const NESTING_DEPTH_MAX: usize = 96;

/// How long an alias may be to be kept as it is, on every server.
const ALIAS_BYTES_MAX: usize = 64;

/// How many different tables a cacheable statement may name.
pub const TABLES_MAX: usize = 64;

/// How many tables and queries it may join in one block. Servers join up to 61.
const SOURCES_MAX: usize = 256;

/// How many table expressions (`WITH`) may be in scope.
const TABLE_EXPRESSIONS_MAX: usize = 256;

/// What a cacheable statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own"
)]
pub struct Select {
    /// Every table or view that is named anywhere in it, also in subqueries; each once, in the
    /// order of their appearance. Names of common table expressions are resolved away.
    pub tables: Vec<TableName>,
    /// Which of their rows and columns it reads.
    pub reads: Reads,
    /// It says `SQL_CACHE`.
    pub says_cache: bool,
    /// Each row of its answer comes from rows of the tables in its one `FROM`: if the answer has a
    /// row, the server has read one of theirs. An aggregate gives a row of nothing.
    pub rows_come_from_tables: bool,
    /// The conditions of its `WHERE`s and `ON`s are all that they say, and no `LIMIT` can be 0: it
    /// has no other reason to give no rows.
    pub filters_by_conditions_only: bool,
    /// It says `SQL_CALC_FOUND_ROWS`, and is one `SELECT` without others inside.
    pub counts_found_rows: bool,
}

/// The result of parsing a part: `Err` is a hard refusal.
pub(crate) type Parsed = Result<(), Refusal>;

/// The parser's state.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own"
)]
pub(crate) struct SelectParser<'a> {
    pub(crate) cursor: Cursor<'a>,
    pub(crate) tables: Vec<TableName>,
    /// Names of the common table expressions that are visible here, innermost last.
    expressions_in_scope: Vec<Vec<u8>>,
    /// Where those begin that every server sees here. The ones before it are those of `WITH`s
    /// around: `MySQL` sees them, and `MariaDB` may take them for tables.
    certainly_visible_from: usize,
    depth: usize,
    pub(crate) findings: Findings,
    /// The first soft refusal.
    refusal: Option<Refusal>,
    placeholders: Placeholders,
    /// How many `?` have been passed.
    parameter_count: usize,
    reads: Reads,
    says_cache: bool,
    block: OpenBlock,
    open_blocks: usize,
    /// Who gets the rows of the next block.
    next_reader: Reader,
    /// It has `WITH` or set operations: what a block shows, another may use.
    is_compound: bool,
    /// The column that was noted last.
    last_noted: Option<(Token, Noted)>,
    /// Aliases of columns that are shown, and the columns.
    aliases: Vec<[Token; 2]>,
    /// Whether what is parsed is a `WHERE` or `ON`, so that conditions are worth recognising.
    wants_conditions: bool,
    /// Something was found whose value for a row depends on the table's other rows.
    depends_on_other_rows: bool,
    /// Whether of what is parsed only the truth counts.
    wants_truth: bool,
    /// The same of an operand at the cursor.
    may_take_score: bool,
    /// The full-text searches in the condition so far.
    scores: usize,
    /// Something may give a row without one of a table having been read by the transaction: an
    /// aggregate function, `GROUP BY`, `HAVING`, a search in a full-text index.
    gives_rows_of_nothing: bool,
    /// A `WHERE` or an `ON` says more than its conditions, or a `LIMIT` can be 0.
    filters_by_more: bool,
    /// `SQL_CALC_FOUND_ROWS` stands somewhere.
    counts_found_rows: bool,
    /// `GROUP BY` stands somewhere.
    groups: bool,
    /// A name was read as that of a common table expression.
    reads_expression: bool,
    /// Values of the text were calculated or joined with one another, or one is a decimal number,
    /// of which the text's skeleton leaves out a part only.
    pub(crate) combines_values: bool,
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
            certainly_visible_from: 0,
            depth: 0,
            findings: Findings::default(),
            refusal: None,
            placeholders: Placeholders::AreUnknown,
            parameter_count: 0,
            reads: Reads::default(),
            says_cache: false,
            block: OpenBlock::default(),
            open_blocks: 0,
            next_reader: Reader::default(),
            is_compound: false,
            last_noted: None,
            aliases: Vec::new(),
            wants_conditions: false,
            depends_on_other_rows: false,
            wants_truth: false,
            may_take_score: false,
            scores: 0,
            gives_rows_of_nothing: false,
            filters_by_more: false,
            counts_found_rows: false,
            groups: false,
            reads_expression: false,
            combines_values: false,
        }
    }

    /// Says what a `?` means in the statement.
    pub(crate) fn set_placeholders(&mut self, placeholders: Placeholders) {
        self.placeholders = placeholders;
    }

    /// Parses what stands after `WHERE` or `ON`: conditions that hold where it is TRUE.
    pub(crate) fn condition(&mut self) -> Result<Vec<Condition>, Refusal> {
        let value = self.truth(true)?;
        let Value::Conjuncts(conditions) = value else {
            self.filters_by_more = true;
            return Ok(Vec::new());
        };
        self.filters_by_more |= !conditions.is_all;
        Ok(conditions.list)
    }

    /// Whether something was parsed that keeps the rest of the text from being trusted.
    pub(crate) fn is_doubtful(&self) -> bool {
        let lexer = self.cursor.lexer();
        self.findings.everything.is_some()
            || self.findings.uncertain_table
            || lexer.saw_executable_comment()
            || lexer.saw_variable_hint()
            || lexer.saw_non_ascii_word()
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
        if self.cursor.lexer().saw_variable_hint() {
            self.refuse(Refusal::OptimizerHint);
        }
        if self.cursor.lexer().saw_non_ascii_word() {
            self.refuse(Refusal::NonAsciiWord);
        }
        Ok(())
    }

    /// What the parsed statement reads, or why it can't be cached.
    pub(crate) fn into_result(mut self) -> Result<Select, Refusal> {
        self.settle_uses();
        match self.refusal {
            Some(refusal) => Err(refusal),
            // If one of its names meant a table after all, nothing would ever drop the result.
            None if self.tables.is_empty() && self.reads_expression => Err(Refusal::TableName),
            None if self.counts_found_rows && !self.has_certain_count() => {
                Err(Refusal::CalcFoundRows)
            }
            None => Ok(Select {
                counts_found_rows: self.counts_found_rows,
                rows_come_from_tables: self.rows_come_from_tables(),
                filters_by_conditions_only: !self.filters_by_more,
                reads: narrowed(self.reads, self.depends_on_other_rows),
                tables: self.tables,
                says_cache: self.says_cache,
            }),
        }
    }

    /// What was only shown where it stood may be used elsewhere, under another name or none.
    fn settle_uses(&mut self) {
        for [alias, column] in std::mem::take(&mut self.aliases) {
            let alias = self.cursor.name_bytes(alias);
            let alias = alias_as_kept(&alias);
            if alias.is_none_or(|alias| self.reads.names.use_of(alias) == Some(NameUse::Any)) {
                self.note_column(column);
            }
        }
        if self.is_compound {
            self.reads.names.use_all();
            let sources = self.reads.blocks.iter_mut();
            for source in sources.flat_map(|block| &mut block.sources) {
                source.reads_all = source.reads_all.map(|_| NameUse::Any);
            }
        }
    }

    /// Whether the count of `SQL_CALC_FOUND_ROWS` is the statement's own. A server that sees that
    /// no row will do may give the row of an aggregate and leave the count of before. Without a
    /// table, servers count in their own ways.
    fn has_certain_count(&self) -> bool {
        let has_one_block = !self.tables.is_empty() && self.reads.blocks.len() == 1;
        has_one_block && (self.groups || !self.gives_rows_of_nothing)
    }

    fn rows_come_from_tables(&self) -> bool {
        let is_plain = |block: &crate::reads::Block| {
            let mut sources = block.sources.iter();
            !block.sources.is_empty() && sources.all(|source| source.table.is_some())
        };
        !self.gives_rows_of_nothing
            && self.reads.blocks.len() == 1
            && self.reads.blocks.iter().all(is_plain)
    }

    /// Notes a soft refusal.
    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }

    /// Notes a call that can write.
    fn refuse_write(&mut self, refusal: Refusal, reason: EverythingReason) {
        self.refuse(refusal);
        self.findings.everything.get_or_insert(reason);
    }

    /// Parses one level deeper.
    fn nested<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= NESTING_DEPTH_MAX {
            return Err(Refusal::NestingTooDeep);
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn expect(&mut self, kind: TokenKind) -> Parsed {
        if self.cursor.take(kind) {
            Ok(())
        } else {
            Err(Refusal::Syntax)
        }
    }

    pub(crate) fn expect_word(&mut self, word: Keyword) -> Parsed {
        self.expect(TokenKind::Word(word))
    }

    pub(crate) fn expect_name(&mut self) -> Result<Token, Refusal> {
        if self.cursor.at_name() {
            Ok(self.cursor.advance())
        } else {
            Err(Refusal::Syntax)
        }
    }

    /// One or more parts, separated by commas.
    pub(crate) fn list(&mut self, mut part: impl FnMut(&mut Self) -> Parsed) -> Parsed {
        part(self)?;
        while self.cursor.take(TokenKind::Comma) {
            part(self)?;
        }
        Ok(())
    }

    /// A part in parentheses.
    pub(crate) fn parenthesised<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.expect(TokenKind::LeftParen)?;
        let result = self.nested(part)?;
        self.expect(TokenKind::RightParen)?;
        Ok(result)
    }

    /// `(name, …)`
    fn names_in_parentheses(&mut self) -> Parsed {
        self.parenthesised(|parser| parser.list(|parser| parser.expect_name().map(drop)))
    }

    /// A table's name where a table is read: the name, and its index unless it means a common table
    /// expression. `None` if the name can't be told.
    fn table_reference(&mut self) -> Result<Option<(TableName, Option<usize>)>, Refusal> {
        match self.cursor.table_name() {
            Some(NameRead::Plain(name)) => {
                let index = self.add_table(&name)?;
                Ok(Some((name, index)))
            }
            Some(NameRead::Uncertain) => {
                self.refuse(Refusal::TableName);
                self.findings.uncertain_table = true;
                Ok(None)
            }
            None => Err(Refusal::Syntax),
        }
    }

    fn add_table(&mut self, name: &TableName) -> Result<Option<usize>, Refusal> {
        if name.schema.is_none() {
            match self.expression_named(name.table.as_bytes()) {
                Named::Expression => {
                    self.reads_expression = true;
                    return Ok(None);
                }
                Named::Unknown => self.refuse(Refusal::TableName),
                Named::Table => {}
            }
        }
        if name.schema.as_deref().is_some_and(is_system_schema) {
            self.refuse(Refusal::SystemSchema);
        }
        let known = self.tables.iter().position(|known| known == name);
        if known.is_some() {
            return Ok(known);
        }
        if self.tables.len() >= TABLES_MAX {
            return Err(Refusal::TooManyTables);
        }
        self.tables.push(name.clone());
        Ok(Some(self.tables.len() - 1))
    }

    /// What a name without a schema means. In another letter case it may be another name, or the
    /// same.
    fn expression_named(&self, name: &[u8]) -> Named {
        let is_it = |known: &Vec<u8>| known == name;
        let certain = &self.expressions_in_scope[self.certainly_visible_from..];
        if certain.iter().any(is_it) {
            return Named::Expression;
        }
        let all = &self.expressions_in_scope;
        if all.iter().any(|known| may_be_the_same(known, name)) {
            Named::Unknown
        } else {
            Named::Table
        }
    }
}

/// What stands behind a name without a schema.
enum Named {
    /// A common table expression.
    Expression,
    /// A table or view.
    Table,
    /// One or the other: servers don't agree, or it depends on how they compare names.
    Unknown,
}

/// Whether some server takes the two for the same name.
fn may_be_the_same(one: &[u8], other: &[u8]) -> bool {
    one.eq_ignore_ascii_case(other) || !(one.is_ascii() && other.is_ascii())
}

/// An alias as servers keep it. `None` of one that they may change: they leave out what can't be
/// seen at its beginning, and cut it.
fn alias_as_kept(alias: &[u8]) -> Option<&str> {
    let is_kept = alias.len() <= ALIAS_BYTES_MAX
        && alias.is_ascii()
        && alias.first().is_some_and(u8::is_ascii_graphic);
    std::str::from_utf8(alias).ok().filter(|_| is_kept)
}

/// What is read, without the conditions if they can't narrow it.
fn narrowed(mut reads: Reads, depends_on_other_rows: bool) -> Reads {
    if depends_on_other_rows {
        for block in &mut reads.blocks {
            block.conditions.clear();
        }
    }
    reads
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
