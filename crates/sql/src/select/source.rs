//! The `FROM` clause: tables, derived tables, joins, index hints.

use super::{Parsed, SelectParser};
use crate::keyword::Keyword as K;
use crate::refusal::Refusal;
use crate::token::TokenKind as T;

impl SelectParser<'_> {
    /// Table factors, joined in any way. Conditions are taken wherever they stand: for the set of
    /// tables it doesn't matter to which join they belong.
    pub(crate) fn table_references(&mut self) -> Parsed {
        self.table_factor()?;
        loop {
            match self.cursor.word() {
                K::On => {
                    self.cursor.advance();
                    self.expression()?;
                }
                K::Using if self.cursor.next_kind() == T::LeftParen => {
                    self.cursor.advance();
                    self.names_in_parentheses()?;
                }
                K::Join | K::StraightJoin => {
                    self.cursor.advance();
                    self.table_factor()?;
                }
                K::Inner | K::Cross => {
                    self.cursor.advance();
                    self.expect_word(K::Join)?;
                    self.table_factor()?;
                }
                K::Natural => {
                    self.cursor.advance();
                    self.cursor
                        .skip_words(&[K::Inner, K::Left, K::Right, K::Outer]);
                    self.expect_word(K::Join)?;
                    self.table_factor()?;
                }
                K::Left | K::Right => {
                    self.cursor.advance();
                    self.cursor.take_word(K::Outer);
                    self.expect_word(K::Join)?;
                    self.table_factor()?;
                }
                _ if self.cursor.take(T::Comma) => self.table_factor()?,
                _ => return Ok(()),
            }
        }
    }

    fn table_factor(&mut self) -> Parsed {
        if self.cursor.at_word(K::Lateral) && self.cursor.next_kind() == T::LeftParen {
            self.cursor.advance();
        }
        if self.cursor.at(T::LeftParen) {
            self.parenthesised(Self::inside_parentheses)?;
            return self.derived_alias();
        }
        self.table_reference()?;
        if self.cursor.take_word(K::Partition) {
            self.names_in_parentheses()?;
        }
        if self.cursor.at_word(K::For) && self.cursor.next_is_word(K::SystemTime) {
            return Err(Refusal::SystemTime);
        }
        self.alias()?;
        self.index_hints()
    }

    /// A query, joined tables, or queries in parentheses of their own.
    fn inside_parentheses(&mut self) -> Parsed {
        if matches!(self.cursor.word(), K::Select | K::With) {
            return self.query_expression();
        }
        self.table_references()?;
        self.query_tail()
    }

    fn alias(&mut self) -> Parsed {
        if self.cursor.take_word(K::As) {
            return self.expect_name().map(drop);
        }
        if self.at_implicit_alias() {
            self.cursor.advance();
        }
        Ok(())
    }

    /// An alias with optional names of columns.
    fn derived_alias(&mut self) -> Parsed {
        self.alias()?;
        if self.cursor.at(T::LeftParen) {
            self.names_in_parentheses()?;
        }
        Ok(())
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
