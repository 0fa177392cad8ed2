//! What outdated a result that was looked up: told after the look-up, when the server is about to
//! be asked anyway.
//!
//! A tag is a hash, so its table can't be read from it. But whoever found the result outdated has
//! the statement at hand, and plans to keep its next answer: the tables that it reads would give
//! that one the same tags.

use std::sync::Arc;

use remora_cache::{AsOf, Entry, InvalidationReason, Tag};
use remora_engine::key::{Label, Note};
use remora_engine::tags::{Origin, Purpose, ReadTables, ReadTags};

use super::Session;
use super::fill::Read;
use crate::digests::{Count, OutdatedBy};
use crate::upstream::catalogue::Lookup;

/// A result that a change of some of its tags has outdated, until the tables of its statement are
/// looked at.
pub(super) struct OutdatedResult {
    /// What it was counted under.
    label: Label,
    /// What it was looked up by.
    digest: u128,
    as_of: AsOf,
    changed: Vec<Tag>,
}

impl Session {
    /// A result was found that can never be served again.
    pub(super) fn drop_outdated(&mut self, entry: &Arc<Entry>, reason: InvalidationReason) {
        let digests = &self.worker.digests;
        let label = Note::of(entry).label;
        if reason != InvalidationReason::Expired {
            digests.count(label, Count::Outdated);
        }
        if let Some(untold) = self.outdated.take() {
            digests.count_outdated_by(untold.label, OutdatedBy::Unknown);
        }
        match reason {
            InvalidationReason::Changed => {
                let as_of = entry.as_of();
                let changed = self.shared.timeline.changed_tags(as_of, entry.tags());
                self.outdated = Some(OutdatedResult {
                    label,
                    digest: entry.key().digest(),
                    as_of,
                    changed: changed.collect(),
                });
            }
            InvalidationReason::Everything | InvalidationReason::Forgotten => {
                digests.count_outdated_by(label, OutdatedBy::Everything);
            }
            InvalidationReason::Cleared
            | InvalidationReason::Expired
            | InvalidationReason::Faulty => {}
        }
        self.shared.store.remove_if_same(entry, reason);
    }

    /// Tells what outdated the result that a statement would have had from memory, if there was
    /// one.
    pub(super) fn tell_outdated(&mut self, digest: u128, read: &Read<'_>) {
        let Some(outdated) = self.outdated.take() else {
            return;
        };
        let by = if outdated.digest == digest {
            self.outdated_by(&outdated, read)
        } else {
            OutdatedBy::Unknown
        };
        self.worker.digests.count_outdated_by(outdated.label, by);
    }

    fn outdated_by(&self, outdated: &OutdatedResult, read: &Read<'_>) -> OutdatedBy {
        let names = read.select.tables.iter();
        let names: Option<Vec<_>> = names.map(|name| self.qualify(name)).collect();
        let Some(names) = names else {
            return OutdatedBy::Unknown;
        };
        let shared = &self.shared;
        let mut origin = Origin::of(&outdated.changed);
        match (self.tables_of(read), shared.timeline.as_of()) {
            // Most statements: there is nothing else that could have outdated the result, so its
            // tags needn't be planned.
            (Ok(tables), _) if is_one_alone(&tables) => {
                let one = names
                    .first()
                    .map(|(schema, table)| (schema.to_string(), table.to_string()));
                origin.found.extend(one);
            }
            (Ok(tables), Some(as_of)) => {
                let under = ReadTags {
                    shapes: &shared.upstream.shapes,
                    as_of,
                    broken: shared.timeline.broken().tags,
                    bound: read.bound,
                    conversion: self.string_conversion(),
                    purpose: Purpose::Result,
                };
                for number in 0..names.len() {
                    origin.look(read.select, number, &names, &tables, &under, |parent| {
                        let catalogue = &shared.upstream.catalogue;
                        match catalogue.lookup(&parent.schema, &parent.table) {
                            Lookup::Known(facts) => Some(facts),
                            Lookup::Loading | Lookup::Unavailable => None,
                        }
                    });
                }
            }
            // A changed definition: it is being asked for.
            _ => {
                for name in names {
                    origin.look_by_name(name, None);
                }
            }
        }
        let mut found = origin.found;
        found.retain(|(schema, table)| {
            let changes = &shared.upstream.table_changes;
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
}

/// Whether they are one table, which nothing else reaches: no cascade from a parent, no view.
fn is_one_alone(tables: &[ReadTables]) -> bool {
    matches!(tables, [one] if one.facts.cascade_parents.is_empty() && one.facts.view_of.is_empty())
}
