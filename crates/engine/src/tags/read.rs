//! The tags of a `SELECT`'s result.
//!
//! Each table that is read, each time that it is read, gives tags of its own: narrowed by the
//! conditions that restrict it, for the columns that the statement names. The result depends on all
//! of them.
//!
//! [`super::explain`] tells the same in words: it watches [`gather`] at work.

use std::sync::Arc;

use remora_cache::{AsOf, BrokenTags, ColumnSet, Shape, TableTags, Tag, TooCoarse};
use remora_sql::{Block, Constant, Select};
use remora_wire::execute::BoundValue;

use super::codec::Codec;
use super::conditions::Conditions;
use super::literal::{Literal, StringConversion};
use super::plan::{Narrowing, TagPlan};
use super::resolve::ordinal_of;
use super::{RESULT_TAGS_MAX, TableShapes};
use crate::facts::{CascadeParent, TableFacts};
use crate::reason::Coarse;

/// A table that a statement names, as the catalogue knows it.
#[derive(Debug, Clone)]
pub struct ReadTables {
    /// Its tags.
    pub tags: TableTags,
    /// Its facts.
    pub facts: Arc<TableFacts>,
}

/// What a result is read under.
pub struct ReadTags<'a> {
    /// The registered shapes.
    pub shapes: &'a TableShapes,
    /// The result's, taken before this was made.
    pub as_of: AsOf,
    /// The faults of a test.
    pub broken: BrokenTags,
    /// The values that the execution binds; empty for a statement as text.
    pub bound: &'a [BoundValue<'a>],
    /// What the server does with the statement's strings.
    pub conversion: StringConversion,
    /// What the tags are for.
    pub purpose: Purpose,
}

/// What tags are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A result: its shapes are registered.
    Result,
    /// An explanation: nothing is registered, and a parameter without a value stands for any value
    /// that narrows.
    Explanation,
    /// To tell what outdated a result: nothing is registered, and a parameter without a value
    /// doesn't narrow.
    Comparison,
}

impl<'a> ReadTags<'a> {
    /// What a column is compared with.
    pub(super) fn literal(&self, constant: &'a Constant) -> Literal<'a> {
        match constant {
            Constant::Parameter(at) if self.purpose == Purpose::Explanation => Literal::Any(*at),
            _ => Literal::of(constant, self.bound, self.conversion),
        }
    }

    /// The shape for a read.
    pub(super) fn find(
        &self,
        table: TableTags,
        wanted: &Shape<Codec>,
    ) -> Result<Arc<Shape<Codec>>, TooCoarse> {
        match self.purpose {
            Purpose::Result => self.shapes.find(table, wanted, self.as_of),
            Purpose::Explanation | Purpose::Comparison => {
                self.shapes.foresee(table, wanted, self.as_of)
            }
        }
    }
}

/// One step on the way to a result's tags.
pub(super) enum TagStep<'s> {
    /// A table is read in a block's `FROM`.
    Read {
        /// Its number among [`Select::tables`].
        number: usize,
        /// Where.
        block: &'s Block,
        /// How the read is narrowed.
        plan: &'s TagPlan,
        /// By which shape, or why the table as a whole counts.
        tagged: Result<&'s Shape<Codec>, Coarse>,
    },
    /// A table is read somewhere else: as a whole.
    Unplaced {
        /// Its number among [`Select::tables`].
        number: usize,
    },
    /// Cascades from another table can reach one that is read.
    Parent {
        /// The number of the one that is read.
        number: usize,
        /// The other.
        parent: &'s CascadeParent,
        /// By which shape, or why that table as a whole counts.
        tagged: Result<&'s Shape<Codec>, Coarse>,
    },
    /// All of that was too much: all tables count as wholes.
    TooManyTags,
}

/// The tags of a statement's result. `tables` are those of [`Select::tables`], in their order;
/// `parent_facts` gives the facts of a table from which a cascade can reach one of them, if they
/// are known.
pub fn tags_of_read(
    select: &Select,
    tables: &[ReadTables],
    under: &ReadTags<'_>,
    parent_facts: impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
) -> Vec<Tag> {
    gather(select, tables, under, parent_facts, |_| {})
}

/// The same, telling each step.
pub(super) fn gather(
    select: &Select,
    tables: &[ReadTables],
    under: &ReadTags<'_>,
    mut parent_facts: impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
    mut tell: impl FnMut(TagStep<'_>),
) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut is_read = vec![false; tables.len()];
    for block in &select.reads.blocks {
        let conditions = conditions_of(block, tables, under);
        for (at, source) in block.sources.iter().enumerate() {
            let Some((table, number)) = source
                .table
                .and_then(|number| Some((tables.get(number)?, number)))
            else {
                continue;
            };
            is_read[number] = true;
            let plan = TagPlan::of(select, (block, &conditions), at, tables, under);
            let tagged = plan.put_tags(table, under, &mut tags);
            tell(TagStep::Read {
                number,
                block,
                plan: &plan,
                tagged: tagged.as_deref().map_err(|why| *why),
            });
        }
    }
    for (number, (table, is_read)) in tables.iter().zip(is_read).enumerate() {
        if !is_read {
            add(&mut tags, table.tags.any());
            tell(TagStep::Unplaced { number });
        }
        let tell_parent = |parent: &CascadeParent, tagged: Result<&Shape<Codec>, Coarse>| {
            tell(TagStep::Parent {
                number,
                parent,
                tagged,
            });
        };
        put_cascades(
            &table.facts.cascade_parents,
            under,
            &mut parent_facts,
            &mut tags,
            tell_parent,
        );
        put_view(&table.facts, &mut tags);
    }
    if tags.len() > RESULT_TAGS_MAX {
        tell(TagStep::TooManyTags);
        tags.clear();
        for table in tables {
            add(&mut tags, table.tags.any());
            for parent in &table.facts.cascade_parents {
                add(&mut tags, parent.tag);
            }
            put_view(&table.facts, &mut tags);
        }
    }
    tags
}

/// The facts of a table by its number in the statement, if it is a table whose columns are known.
pub(super) fn facts_of(tables: &[ReadTables], number: usize) -> Option<&TableFacts> {
    let facts = &tables.get(number)?.facts;
    (!facts.columns.is_empty()).then_some(&**facts)
}

/// The conditions of a block.
pub(super) fn conditions_of<'s, 'f>(
    block: &'s Block,
    tables: &'f [ReadTables],
    under: &ReadTags<'_>,
) -> Conditions<'s, impl Fn(usize) -> Option<&'f TableFacts>> {
    Conditions::of(block, |number| facts_of(tables, number), under.broken)
}

/// A view's result depends on the tables that it reads, as wholes, and on what reaches them.
fn put_view(facts: &TableFacts, tags: &mut Vec<Tag>) {
    if !facts.view_of.is_empty() {
        for tag in &facts.cascaded_from {
            add(tags, *tag);
        }
    }
}

/// Adds a tag, if it isn't there.
pub(super) fn add(tags: &mut Vec<Tag>, tag: Tag) {
    if !tags.contains(&tag) {
        tags.push(tag);
    }
}

/// A table that cascades can change depends on the parents' rows and on the columns that the keys
/// refer to. New rows of a parent cascade nowhere.
pub(super) fn put_cascades(
    parents: &[CascadeParent],
    under: &ReadTags<'_>,
    parent_facts: &mut impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
    tags: &mut Vec<Tag>,
    mut tell: impl FnMut(&CascadeParent, Result<&Shape<Codec>, Coarse>),
) {
    for parent in parents {
        if tags.contains(&parent.tag) {
            tell(parent, Err(Coarse::ReadAsWhole));
            continue;
        }
        let plan = parent_facts(parent).and_then(|facts| {
            let mut reads = ColumnSet::EMPTY;
            for column in &parent.columns {
                reads.insert(ordinal_of(&facts, column)?);
            }
            let is_known = !parent.columns.is_empty() && facts.columns_match_log;
            let narrowing = Narrowing::Existing;
            is_known.then_some((TagPlan { narrowing, reads }, facts))
        });
        if let Some((plan, facts)) = plan {
            let tags_of_parent = TableTags::new(&parent.schema, &parent.table);
            let table = ReadTables {
                tags: tags_of_parent,
                facts,
            };
            let tagged = plan.put_tags(&table, under, tags);
            tell(parent, tagged.as_deref().map_err(|why| *why));
        } else {
            add(tags, parent.tag);
            tell(parent, Err(Coarse::ColumnsUnknown));
        }
    }
}
