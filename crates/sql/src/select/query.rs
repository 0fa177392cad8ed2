//! Query expressions: `WITH`, set operations, blocks and their clauses.

use super::block::Reader;
use super::{Parsed, SelectParser, TABLE_EXPRESSIONS_MAX, may_be_the_same};
use crate::cursor::is_name;
use crate::everything::EverythingReason;
use crate::hint::is_certainly_hint;
use crate::keyword::Keyword as K;
use crate::name::TableName;
use crate::reads::Condition;
use crate::refusal::Refusal;
use crate::token::{Token, TokenKind as T};

impl SelectParser<'_> {
    /// `[WITH …] body [ORDER BY …] [LIMIT …] [locking]`
    pub(crate) fn query_expression(&mut self) -> Parsed {
        self.nested(|parser| {
            let scope = parser.expressions_in_scope.len();
            if parser.cursor.at_word(K::With) {
                parser.with_clause()?;
            }
            parser.query_operand()?;
            parser.query_tail()?;
            parser.expressions_in_scope.truncate(scope);
            Ok(())
        })
    }

    /// What may follow the first operand: set operations, then order, limit and locks.
    pub(super) fn query_tail(&mut self) -> Parsed {
        let mut is_sorted = false;
        loop {
            match self.cursor.word() {
                K::Union | K::Except | K::Intersect => {
                    self.is_compound = true;
                    self.cursor.advance();
                    self.cursor.skip_words(&[K::All, K::Distinct]);
                    self.query_operand()?;
                }
                K::Order => {
                    self.cursor.advance();
                    self.expect_word(K::By)?;
                    is_sorted = !matches!(self.cursor.kind(), T::Word(K::Null) | T::String);
                    self.list(Self::sorting_element)?;
                }
                K::Limit => {
                    if self.depends_on_other_rows && !is_sorted {
                        self.refuse(Refusal::FullTextScore);
                    }
                    self.limit()?;
                }
                K::For | K::Lock => self.locking_clause()?,
                K::Into => return Err(Refusal::Into),
                K::Procedure => return Err(Refusal::Procedure),
                _ => return Ok(()),
            }
        }
    }

    fn query_operand(&mut self) -> Parsed {
        if self.cursor.at(T::LeftParen) {
            return self.parenthesised(Self::query_expression);
        }
        self.select_block()
    }

    /// `WITH [RECURSIVE] name [(columns)] AS (query), …`. The names stay in scope for the caller.
    pub(crate) fn with_clause(&mut self) -> Parsed {
        self.expect_word(K::With)?;
        self.is_compound = true;
        let recursive = self.cursor.take_word(K::Recursive);
        let outside = self.expressions_in_scope.len();
        let visible_outside = std::mem::replace(&mut self.certainly_visible_from, outside);
        let parsed = self.list(|parser| {
            let token = parser.expect_name()?;
            let name = parser.cursor.name_bytes(token).into_owned();
            if parser.expressions_in_scope.len() == TABLE_EXPRESSIONS_MAX {
                return Err(Refusal::TooManyTables);
            }
            if parser.cursor.at(T::LeftParen) {
                parser.names_in_parentheses()?;
            }
            parser.expect_word(K::As)?;
            let read_before = parser.tables.len();
            if recursive {
                // Only a recursive one sees itself; otherwise the name means a table in there.
                parser.name_expression(name, read_before);
                return parser.parenthesised(Self::query_expression);
            }
            parser.parenthesised(Self::query_expression)?;
            parser.name_expression(name, read_before);
            Ok(())
        });
        self.certainly_visible_from = visible_outside;
        parsed
    }

    /// Puts a common table expression in scope. Its own text came after the first `read_before`
    /// tables.
    ///
    /// What was read as a table before that may mean the expression already. After `RECURSIVE`,
    /// `MariaDB` sees later names, and an expression that is used twice is read again where it is
    /// used the second time. `MySQL` reads one where it is used, so an inner `WITH` may change what
    /// its names mean.
    fn name_expression(&mut self, name: Vec<u8>, read_before: usize) {
        let is_read = |table: &TableName| {
            table.schema.is_none() && may_be_the_same(table.table.as_bytes(), &name)
        };
        if self.tables[..read_before].iter().any(is_read) {
            self.refuse(Refusal::TableName);
        }
        self.expressions_in_scope.push(name);
    }

    fn select_block(&mut self) -> Parsed {
        self.expect_word(K::Select)?;
        self.block(Self::block_clauses)
    }

    /// Everything after `SELECT`: what `WHERE` says.
    fn block_clauses(&mut self) -> Result<Vec<Condition>, Refusal> {
        let mut filter = Vec::new();
        self.select_options();
        self.list(Self::select_item)?;
        if self.cursor.at_word(K::Into) {
            return Err(Refusal::Into);
        }
        if self.cursor.take_word(K::From) {
            self.sources()?;
        }
        if self.cursor.take_word(K::Where) {
            filter = self.condition()?;
        }
        if self.cursor.take_word(K::Group) {
            self.gives_rows_of_nothing = true;
            self.groups = true;
            self.expect_word(K::By)?;
            self.list(Self::sorting_element)?;
            if self.cursor.take_word(K::With) {
                self.expect_word(K::Rollup)?;
            }
        }
        if self.cursor.take_word(K::Having) {
            self.gives_rows_of_nothing = true;
            self.expression()?;
        }
        if self.cursor.take_word(K::Window) {
            self.list(|parser| {
                parser.expect_name()?;
                parser.expect_word(K::As)?;
                parser.window_specification()
            })?;
        }
        Ok(filter)
    }

    fn sources(&mut self) -> Parsed {
        if self.cursor.take_word(K::Dual) {
            return Ok(());
        }
        self.table_references()
    }

    fn select_options(&mut self) {
        loop {
            match self.cursor.word() {
                K::All
                | K::Distinct
                | K::Distinctrow
                | K::HighPriority
                | K::StraightJoin
                | K::SqlSmallResult
                | K::SqlBigResult
                | K::SqlBufferResult => {}
                // To MySQL 8.0, which doesn't know the hint, a stored function's name.
                K::SqlCache if self.cursor.next_kind() == T::LeftParen => {
                    self.refuse_write(Refusal::UnknownFunction, EverythingReason::UnknownFunction);
                }
                K::SqlCache => {
                    self.says_cache = true;
                    // Else to MySQL 8.0, which doesn't know the hint, it may be a column of that
                    // name.
                    self.reads.all_columns |= !is_certainly_hint(self.cursor);
                }
                K::SqlNoCache => self.refuse(Refusal::NoCache),
                K::SqlCalcFoundRows => self.counts_found_rows = true,
                _ => return,
            }
            self.cursor.advance();
        }
    }

    /// `*`, `t.*`, or an expression with an alias.
    pub(crate) fn select_item(&mut self) -> Parsed {
        if self.cursor.take(T::Star) {
            self.block.star = true;
            return Ok(());
        }
        if let Some(table) = self.qualified_star()? {
            self.block.qualified_stars.push(table);
            return Ok(());
        }
        let column = self.column_alone()?;
        let has_as = self.cursor.take_word(K::As);
        if self.cursor.take(T::String) {
            return Ok(());
        }
        let alias = if has_as {
            Some(self.expect_name()?)
        } else {
            self.at_implicit_alias().then(|| self.cursor.advance())
        };
        if let Some((column, noted)) = column
            && self.block.reader == Reader::Client
        {
            self.reads.names.only_shown(noted);
            self.aliases.extend(alias.map(|alias| [alias, column]));
        }
        Ok(())
    }

    /// `t.*` or `schema.t.*`: the table's name.
    fn qualified_star(&mut self) -> Result<Option<Token>, Refusal> {
        if !self.cursor.at_name() || self.cursor.next_kind() != T::Dot {
            return Ok(None);
        }
        let mut probe = self.cursor;
        loop {
            let name = probe.advance();
            if !probe.take(T::Dot) {
                return Ok(None);
            }
            if probe.take(T::Star) {
                self.cursor = probe;
                return Ok(Some(name));
            }
            if !crate::cursor::is_name_after_dot(probe.current()) {
                return Err(Refusal::Syntax);
            }
        }
    }

    /// Whether an alias without `AS` stands here.
    pub(super) fn at_implicit_alias(&self) -> bool {
        let token: Token = self.cursor.current();
        is_name(token) && !matches!(token.kind, T::Word(K::Offset))
    }

    /// An expression with `ASC` or `DESC`.
    pub(crate) fn order_element(&mut self) -> Parsed {
        self.expression()?;
        self.cursor.skip_words(&[K::Asc, K::Desc]);
        Ok(())
    }

    /// The same in an `ORDER BY` or `GROUP BY` of rows.
    fn sorting_element(&mut self) -> Parsed {
        if let Some((_, noted)) = self.column_alone()? {
            self.reads.names.only_shown(noted);
        }
        self.cursor.skip_words(&[K::Asc, K::Desc]);
        Ok(())
    }

    /// `LIMIT count`, `LIMIT offset, count` or `LIMIT count OFFSET offset`
    pub(crate) fn limit(&mut self) -> Parsed {
        self.expect_word(K::Limit)?;
        let mut may_be_zero = self.limit_value()?;
        if self.cursor.take(T::Comma) {
            may_be_zero = self.limit_value()?;
        } else if self.cursor.take_word(K::Offset) {
            self.limit_value()?;
        }
        self.filters_by_more |= may_be_zero;
        Ok(())
    }

    /// Whether the value may be 0.
    fn limit_value(&mut self) -> Result<bool, Refusal> {
        if self.cursor.kind() == T::Placeholder {
            self.placeholder();
            return Ok(true);
        }
        let digits = self.cursor.bytes(self.cursor.current());
        let is_more = digits.iter().all(u8::is_ascii_digit) && digits.iter().any(|&d| d != b'0');
        self.expect(T::Number)?;
        Ok(!is_more)
    }

    /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE` with their options.
    fn locking_clause(&mut self) -> Parsed {
        self.refuse(Refusal::LockingRead);
        if self.cursor.take_word(K::Lock) {
            self.expect_word(K::In)?;
            self.expect_word(K::Share)?;
            self.expect_word(K::Mode)?;
        } else {
            self.expect_word(K::For)?;
            if !self.cursor.take_word(K::Update) {
                self.expect_word(K::Share)?;
            }
            if self.cursor.take_word(K::Of) {
                self.list(|parser| parser.expect_name().map(drop))?;
            }
        }
        match self.cursor.word() {
            K::Nowait => {
                self.cursor.advance();
                Ok(())
            }
            K::Skip => {
                self.cursor.advance();
                self.expect_word(K::Locked)
            }
            K::Wait => {
                self.cursor.advance();
                self.expect(T::Number)
            }
            _ => Ok(()),
        }
    }
}
