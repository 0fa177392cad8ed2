//! Which tables' changes outdated a result.
//!
//! A tag is a hash, so its table can't be read from it. But with the statement at hand the tables
//! that it reads give the same tags once more.

use std::sync::Arc;

use remora_cache::{AsOf, Entry, TableTags, Tag, Timeline};
use remora_engine::facts::{CascadeParent, TableFacts};
use remora_engine::key::{Label, Note};
use remora_engine::tags::{Origin, Purpose, ReadTables, ReadTags, StringConversion};
use remora_sql::Select;
use remora_wire::execute::BoundValue;

use super::Shared;
use crate::digests::OutdatedBy;

/// A result that a change of some of its tags has outdated.
pub(crate) struct OutdatedResult {
    /// What it was counted under.
    pub(crate) label: Label,
    /// What it was looked up by.
    pub(crate) digest: u128,
    as_of: AsOf,
    changed: Vec<Tag>,
}

impl OutdatedResult {
    pub(crate) fn of(entry: &Entry, timeline: &Timeline) -> OutdatedResult {
        let as_of = entry.as_of();
        OutdatedResult {
            label: Note::of(entry).label,
            digest: entry.key().digest(),
            as_of,
            changed: timeline.changed_tags(as_of, entry.tags()).collect(),
        }
    }
}

/// What the statement of such a result reads.
pub(crate) struct Reads<'a> {
    pub(crate) select: &'a Select,
    /// Schema and name of each of its tables.
    pub(crate) names: Vec<(&'a str, &'a str)>,
    /// What is known of each of them; `None` if that isn't known of all.
    pub(crate) tables: Option<Vec<ReadTables>>,
    /// The values of its parameters; none if they aren't known.
    pub(crate) bound: &'a [BoundValue<'a>],
    pub(crate) conversion: StringConversion,
}

impl Shared {
    /// The tables whose changes outdated a result.
    pub(crate) fn outdated_by(&self, outdated: &OutdatedResult, reads: &Reads<'_>) -> OutdatedBy {
        let mut origin = Origin::of(&outdated.changed);
        match (&reads.tables, self.timeline.as_of()) {
            // Most statements: there is nothing else that could have outdated the result, so its
            // tags needn't be planned.
            (Some(tables), _) if is_one_alone(tables) => {
                let owned =
                    |(schema, table): &(&str, &str)| (schema.to_string(), table.to_string());
                origin.found.extend(reads.names.first().map(owned));
            }
            (Some(tables), Some(as_of)) => {
                let under = ReadTags {
                    shapes: &self.upstream.shapes,
                    as_of,
                    broken: self.timeline.broken().tags,
                    bound: reads.bound,
                    conversion: reads.conversion,
                    purpose: Purpose::Comparison,
                };
                for number in 0..reads.names.len() {
                    let parent = |parent: &_| self.known_parent(parent);
                    origin.look(reads.select, number, &reads.names, tables, &under, parent);
                }
            }
            // A changed definition: it is being asked for.
            _ => {
                for name in &reads.names {
                    origin.look_by_name(*name, None);
                }
            }
        }
        let mut found = origin.found;
        found.retain(|(schema, table)| {
            let changes = &self.upstream.table_changes;
            let tag = Tag::table(schema, table);
            // Nothing else than another tag in the same slot can have outdated it, if the table
            // hasn't changed.
            changes.has_changed_since(tag, outdated.as_of.position()) != Some(false)
        });
        if found.is_empty() {
            OutdatedBy::Unknown
        } else {
            OutdatedBy::Tables(found)
        }
    }

    /// What is known of a table that can be cached. Never asks the server.
    pub(crate) fn known_table(&self, (schema, table): (&str, &str)) -> Option<ReadTables> {
        let facts = self.upstream.catalogue.known(schema, table)?;
        facts.cacheable.is_ok().then(|| ReadTables {
            tags: TableTags::of(facts.tag),
            facts,
        })
    }

    fn known_parent(&self, parent: &CascadeParent) -> Option<Arc<TableFacts>> {
        self.upstream.catalogue.known(&parent.schema, &parent.table)
    }
}

/// Whether they are one table, which nothing else reaches: no cascade from a parent, no view.
fn is_one_alone(tables: &[ReadTables]) -> bool {
    matches!(tables, [one] if one.facts.cascade_parents.is_empty() && one.facts.view_of.is_empty())
}
