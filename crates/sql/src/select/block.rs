//! The block that is being parsed: its sources, its joins and their conditions.

use super::{Parsed, SelectParser};
use crate::keyword::Keyword as K;
use crate::reads::{
    Block, ColumnName, Condition, EQUALITIES_MAX, NameUse, Source, SourceSet, Test,
};
use crate::token::Token;

/// Who gets the rows of a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The client: it is the outermost block, unless the statement is compound.
    Client,
    /// An `EXISTS`, which only asks whether there are any.
    Exists,
    /// The rest of the statement.
    #[default]
    Statement,
}

/// A `SELECT` that has begun.
#[derive(Default)]
pub(crate) struct OpenBlock {
    /// Who gets its rows.
    pub(super) reader: Reader,
    pub(super) sources: Vec<Source>,
    /// Those of `ON`, with what they restrict.
    pub(super) conditions: Vec<Condition>,
    /// `*` is in its select list.
    pub(super) star: bool,
    /// The names before `.*` in its select list.
    pub(super) qualified_stars: Vec<Token>,
    /// There is a `LEFT` or `RIGHT JOIN` in it.
    pub(super) has_outer_join: bool,
    /// A `NATURAL JOIN` is in it: a name without table may mean several tables' columns.
    pub(super) has_natural_join: bool,
    /// Columns of `USING`, which mean several tables' columns too.
    pub(super) merged_columns: Vec<Token>,
}

/// Tables joined without comma, in one pair of parentheses: they are joined from left to right, as
/// long as every join has its condition before the next begins.
pub(super) struct Chain {
    /// Index of the first source.
    start: usize,
    /// Index of the first source of the last factor.
    right: usize,
    open: OpenJoin,
}

/// The join whose `ON` or `USING` may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenJoin {
    None,
    Inner,
    Left,
    Right,
    /// From here on the conditions can't be assigned to joins without knowing how a server reads
    /// them.
    Unsure,
}

impl Chain {
    pub(super) fn starting_at(start: usize) -> Chain {
        Chain {
            start,
            right: start,
            open: OpenJoin::None,
        }
    }

    /// A join begins, whose right operand's first source has the index `right`.
    pub(super) fn join(&mut self, kind: OpenJoin, right: usize) {
        self.right = right;
        self.open = match self.open {
            OpenJoin::None => kind,
            _ => OpenJoin::Unsure,
        };
    }

    /// The sources that the `ON` of the open join restricts, of `count` sources so far.
    pub(super) fn restricted(&self, count: usize) -> SourceSet {
        match self.open {
            OpenJoin::Inner => SourceSet::range(self.start, count),
            OpenJoin::Left => SourceSet::range(self.right, count),
            OpenJoin::Right => SourceSet::range(self.start, self.right),
            OpenJoin::None | OpenJoin::Unsure => SourceSet::default(),
        }
    }

    /// The sources that names in the `ON` of the open join can mean, of `count` sources so far.
    fn scope(&self, count: usize) -> SourceSet {
        SourceSet::range(self.start, count)
    }

    /// The condition of the open join has come.
    pub(super) fn close(&mut self) {
        if self.open != OpenJoin::Unsure {
            self.open = OpenJoin::None;
        }
    }
}

impl SelectParser<'_> {
    /// Parses a block's clauses, and keeps what it reads.
    pub(super) fn block(
        &mut self,
        clauses: impl FnOnce(&mut Self) -> Result<Vec<Condition>, crate::Refusal>,
    ) -> Parsed {
        let slot = self.reads.blocks.len();
        self.reads.blocks.push(Block::default());
        let next = std::mem::take(&mut self.next_reader);
        let block = OpenBlock {
            reader: if slot == 0 { Reader::Client } else { next },
            ..OpenBlock::default()
        };
        let outer = std::mem::replace(&mut self.block, block);
        self.open_blocks += 1;
        let filter = clauses(self)?;
        self.open_blocks -= 1;
        let block = std::mem::replace(&mut self.block, outer);
        let finished = self.finished(block, filter);
        if let Some(block) = self.reads.blocks.get_mut(slot) {
            *block = finished;
        }
        Ok(())
    }

    fn finished(&mut self, mut block: OpenBlock, filter: Vec<Condition>) -> Block {
        self.note_stars(&mut block);
        let count = block.sources.len();
        let everywhere = SourceSet::range(0, count);
        let mut conditions = filter;
        for condition in &mut conditions {
            condition.restricts = everywhere;
            condition.scope = everywhere;
        }
        if conditions.is_empty() {
            conditions = std::mem::take(&mut block.conditions);
        } else {
            conditions.append(&mut block.conditions);
        }
        let all = conditions.len();
        if count > SourceSet::SOURCES_MAX {
            conditions.clear();
        }
        let mut equalities = 0;
        conditions.retain(|condition| {
            let is_equality = matches!(condition.test, Test::Column(_));
            equalities += usize::from(is_equality);
            (!is_equality || equalities <= EQUALITIES_MAX) && self.says_something(&block, condition)
        });
        self.filters_by_more |= conditions.len() < all;
        Block {
            sources: block.sources,
            conditions,
        }
    }

    fn says_something(&self, block: &OpenBlock, condition: &Condition) -> bool {
        let is_merged = |column: &ColumnName| self.is_merged(block, column);
        let is_about_merged = is_merged(&condition.column)
            || matches!(&condition.test, Test::Column(other) if is_merged(other));
        let nullable = condition.test == Test::IsNull && block.has_outer_join;
        !is_about_merged && !nullable && !condition.restricts.is_empty()
    }

    /// Whether a name is that of a joined column, which is one of several tables at once.
    fn is_merged(&self, block: &OpenBlock, column: &ColumnName) -> bool {
        let is_it = |token: &Token| {
            let name = self.cursor.name_bytes(*token);
            !name.is_ascii() || name.eq_ignore_ascii_case(column.column.as_bytes())
        };
        let is_named = || block.merged_columns.iter().any(is_it);
        column.table.is_none() && (block.has_natural_join || is_named())
    }

    /// Sets which sources the stars of the select list mean.
    fn note_stars(&mut self, block: &mut OpenBlock) {
        let mut all = block.star || block.has_natural_join;
        let is_used = block.reader == Reader::Statement || block.has_natural_join;
        let reads_all = Some(if is_used {
            NameUse::Any
        } else {
            NameUse::Shown
        });
        for token in &block.qualified_stars {
            let name = self.cursor.name_bytes(*token);
            let mut found = false;
            for source in &mut block.sources {
                if source.name.as_bytes() == &*name {
                    source.reads_all = reads_all;
                    found = true;
                }
            }
            if !found {
                // Perhaps in another case, or a source of an outer block.
                all = true;
                self.reads.all_columns |= self.open_blocks > 0;
            }
        }
        if all {
            for source in &mut block.sources {
                source.reads_all = reads_all;
            }
        }
    }

    /// `ON condition`
    pub(super) fn on(&mut self, chain: &mut Chain) -> Parsed {
        self.cursor.advance();
        let mut conditions = self.condition()?;
        let count = self.block.sources.len();
        let (restricts, scope) = (chain.restricted(count), chain.scope(count));
        chain.close();
        if restricts.is_empty() {
            return Ok(());
        }
        for condition in &mut conditions {
            condition.restricts = restricts;
            condition.scope = scope;
        }
        if self.block.conditions.is_empty() {
            self.block.conditions = conditions;
        } else {
            self.block.conditions.append(&mut conditions);
        }
        Ok(())
    }

    /// `USING (columns)`
    pub(super) fn using(&mut self, chain: &mut Chain) -> Parsed {
        self.cursor.advance();
        self.parenthesised(|parser| {
            parser.list(|parser| {
                let token = parser.expect_name()?;
                parser.note_column(token);
                parser.block.merged_columns.push(token);
                Ok(())
            })
        })?;
        chain.close();
        Ok(())
    }

    /// The words of a join at the cursor, up to its right operand; `None` if there is none.
    pub(super) fn join_words(&mut self) -> Result<Option<OpenJoin>, crate::Refusal> {
        let join = match self.cursor.word() {
            K::Join | K::StraightJoin => {
                self.cursor.advance();
                return Ok(Some(OpenJoin::Inner));
            }
            K::Inner | K::Cross => {
                self.cursor.advance();
                OpenJoin::Inner
            }
            K::Natural => {
                self.cursor.advance();
                self.block.has_natural_join = true;
                self.block.has_outer_join |= matches!(self.cursor.word(), K::Left | K::Right);
                self.cursor
                    .skip_words(&[K::Inner, K::Left, K::Right, K::Outer]);
                // It takes no condition, so that one after it belongs to another join.
                OpenJoin::Unsure
            }
            word @ (K::Left | K::Right) => {
                self.cursor.advance();
                self.cursor.take_word(K::Outer);
                self.block.has_outer_join = true;
                if word == K::Left {
                    OpenJoin::Left
                } else {
                    OpenJoin::Right
                }
            }
            _ => return Ok(None),
        };
        self.expect_word(K::Join)?;
        Ok(Some(join))
    }
}
