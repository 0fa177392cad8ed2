//! The `FROM` clause: tables, derived tables, joins, index hints.

use super::block::Chain;
use super::{Parsed, SOURCES_MAX, SelectParser};
use crate::keyword::Keyword as K;
use crate::name::TableName;
use crate::reads::{NameUse, Source};
use crate::refusal::Refusal;
use crate::token::{Token, TokenKind as T};

impl SelectParser<'_> {
    /// Table factors, joined in any way. Conditions are taken wherever they stand: for the set of
    /// tables it doesn't matter to which join they belong.
    pub(crate) fn table_references(&mut self) -> Parsed {
        let mut chain = Chain::starting_at(self.block.sources.len());
        self.table_factor()?;
        loop {
            let count = self.block.sources.len();
            if let Some(kind) = self.join_words()? {
                chain.join(kind, count);
                self.table_factor()?;
                continue;
            }
            match self.cursor.word() {
                K::On => self.on(&mut chain)?,
                K::Using if self.cursor.next_kind() == T::LeftParen => self.using(&mut chain)?,
                _ if self.cursor.take(T::Comma) => {
                    chain = Chain::starting_at(count);
                    self.table_factor()?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn table_factor(&mut self) -> Parsed {
        if self.cursor.at_word(K::Lateral) && self.cursor.next_kind() == T::LeftParen {
            self.cursor.advance();
        }
        if self.cursor.at(T::LeftParen) {
            let is_query = self.parenthesised(Self::inside_parentheses)?;
            let alias = self.derived_alias()?;
            if is_query {
                self.add_source(alias, None, false)?;
            }
            return Ok(());
        }
        let read = self.table_reference()?;
        let in_partitions = self.cursor.take_word(K::Partition);
        if in_partitions {
            self.names_in_parentheses()?;
        }
        if self.cursor.at_word(K::For) && self.cursor.next_is_word(K::SystemTime) {
            return Err(Refusal::SystemTime);
        }
        let alias = self.alias()?;
        self.add_source(alias, read, in_partitions)?;
        self.index_hints()
    }

    fn add_source(
        &mut self,
        alias: Option<Token>,
        read: Option<(TableName, Option<usize>)>,
        reads_all: bool,
    ) -> Parsed {
        if self.block.sources.len() == SOURCES_MAX {
            return Err(Refusal::TooManyTables);
        }
        let (name, table) = match read {
            Some((name, table)) => (Some(name), table),
            None => (None, None),
        };
        let alias = alias.map(|token| {
            let bytes = self.cursor.name_bytes(token);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let (schema, name) = match (alias, name) {
            (Some(alias), _) => (None, alias),
            (None, Some(name)) => (name.schema, name.table),
            (None, None) => (None, String::new()),
        };
        self.block.sources.push(Source {
            table,
            name,
            schema,
            reads_all: reads_all.then_some(NameUse::Shown),
        });
        Ok(())
    }

    /// A query, joined tables, or queries in parentheses of their own. True for queries.
    fn inside_parentheses(&mut self) -> Result<bool, Refusal> {
        if matches!(self.cursor.word(), K::Select | K::With) {
            self.query_expression()?;
            return Ok(true);
        }
        self.table_references()?;
        let is_query = !self.cursor.at(T::RightParen);
        self.query_tail()?;
        Ok(is_query)
    }

    fn alias(&mut self) -> Result<Option<Token>, Refusal> {
        if self.cursor.take_word(K::As) {
            return self.expect_name().map(Some);
        }
        let word = self.cursor.bytes(self.cursor.current());
        if word.eq_ignore_ascii_case(b"full") && self.cursor.next_is_word(K::Join) {
            // To some servers this may be a join that keeps all rows of both sides.
            return Err(Refusal::Syntax);
        }
        Ok(self.at_implicit_alias().then(|| self.cursor.advance()))
    }

    /// An alias with optional names of columns.
    fn derived_alias(&mut self) -> Result<Option<Token>, Refusal> {
        let alias = self.alias()?;
        if self.cursor.at(T::LeftParen) {
            self.names_in_parentheses()?;
        }
        Ok(alias)
    }

    /// `USE | IGNORE | FORCE INDEX [FOR …] (…)`
    fn index_hints(&mut self) -> Parsed {
        while matches!(self.cursor.word(), K::Use | K::Ignore | K::Force) {
            self.cursor.advance();
            if !self.cursor.take_word(K::Index) {
                self.expect_word(K::Key)?;
            }
            if self.cursor.take_word(K::For) {
                match self.cursor.advance().kind {
                    T::Word(K::Join) => {}
                    T::Word(K::Order | K::Group) => self.expect_word(K::By)?,
                    _ => return Err(Refusal::Syntax),
                }
            }
            self.parenthesised(|parser| {
                if parser.cursor.at(T::RightParen) {
                    return Ok(());
                }
                parser.list(|parser| {
                    if parser.cursor.take_word(K::Primary) {
                        return Ok(());
                    }
                    parser.expect_name().map(drop)
                })
            })?;
            // Hints may be separated by commas; a table after a comma is never one of these words.
            if self.cursor.at(T::Comma)
                && matches!(
                    self.cursor.next_kind(),
                    T::Word(K::Use | K::Ignore | K::Force)
                )
            {
                self.cursor.advance();
            }
        }
        Ok(())
    }
}
