//! Which of the tables that a statement reads gave its result certain tags: to tell what outdated
//! it.

use std::sync::Arc;

use remora_cache::{TableTags, Tag};
use remora_sql::Select;

use super::plan::TagPlan;
use super::read::{ReadTables, ReadTags, conditions_of, put_cascades};
use crate::facts::{CascadeParent, TableFacts};

/// Columns whose tags are looked for in a table of which nothing is known.
const COLUMNS_TRIED: u16 = 64;

/// A table by its schema and name.
type Name = (String, String);

/// Tags, and the tables that are found to be theirs.
pub struct Origin<'t> {
    tags: &'t [Tag],
    /// The tables that were found, each once.
    pub found: Vec<Name>,
}

impl<'t> Origin<'t> {
    /// Of these tags.
    pub fn of(tags: &'t [Tag]) -> Origin<'t> {
        Origin {
            tags,
            found: Vec::new(),
        }
    }

    /// Looks for a table's tags that have nothing to do with its rows' values.
    pub fn look_by_name(&mut self, (schema, table): (&str, &str), columns: Option<usize>) {
        let of = TableTags::new(schema, table);
        let columns = columns
            .and_then(|columns| u16::try_from(columns).ok())
            .unwrap_or(COLUMNS_TRIED);
        let mut own = [of.any(), of.whole(), of.existing()]
            .into_iter()
            .chain((0..columns).map(|ordinal| of.column(ordinal)));
        if own.any(|tag| self.tags.contains(&tag)) {
            self.put(schema, table);
        }
    }

    /// Looks for the tags of one of the tables that a statement reads (`names` and `tables` are in
    /// their order), and of what reaches it: the parents of cascades, the tables behind a view.
    pub fn look(
        &mut self,
        select: &Select,
        number: usize,
        names: &[(&str, &str)],
        tables: &[ReadTables],
        under: &ReadTags<'_>,
        mut parent_facts: impl FnMut(&CascadeParent) -> Option<Arc<TableFacts>>,
    ) {
        let (Some(table), Some(name)) = (tables.get(number), names.get(number)) else {
            return;
        };
        self.look_by_name(*name, Some(table.facts.columns.len()));
        let mut own = Vec::new();
        for block in &select.reads.blocks {
            let conditions = conditions_of(block, tables, under);
            for (at, source) in block.sources.iter().enumerate() {
                if source.table == Some(number) {
                    let plan = TagPlan::of(select, (block, &conditions), at, tables, under);
                    // A coarse tag has been looked for by name.
                    let _ = plan.put_tags(table, under, &mut own);
                }
            }
        }
        if self.has_one_of(&own) {
            self.put(name.0, name.1);
        }
        for parent in &table.facts.cascade_parents {
            let mut of_parent = Vec::new();
            let parents = std::slice::from_ref(parent);
            put_cascades(parents, under, &mut parent_facts, &mut of_parent, |_, _| {});
            of_parent.push(parent.tag);
            if self.has_one_of(&of_parent) {
                self.put(&parent.schema, &parent.table);
            }
        }
        for (schema, table) in &table.facts.view_of {
            if self.tags.contains(&Tag::table(schema, table)) {
                self.put(schema, table);
            }
        }
    }

    fn has_one_of(&self, own: &[Tag]) -> bool {
        own.iter().any(|tag| self.tags.contains(tag))
    }

    fn put(&mut self, schema: &str, table: &str) {
        let is_known = |known: &Name| known.0 == schema && known.1 == table;
        if !self.found.iter().any(is_known) {
            self.found.push((schema.to_owned(), table.to_owned()));
        }
    }
}
