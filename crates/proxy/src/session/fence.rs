//! Resolves what a statement writes against the catalogue, and raises its fence before it is sent.
//!
//! **Why fences.** A client that got its `OK` must not be followed by anyone who reads the old
//! value through Remora. The follower will hear of the change, but perhaps only after the `OK`. So
//! from before the change can become visible until the follower has passed it, look-ups of the
//! tables go to the server. A change becomes visible when an autocommit write runs, or when the
//! transaction that made it commits; a table without transactions shows it at once, in both cases.
//!
//! **Rule.** What can't be resolved to known tables fences everything. A fence too wide costs a few
//! hits; one too narrow serves an old row.

use std::sync::Arc;

use remora_cache::{Fence, FenceScope, TableTags};
use remora_engine::facts::TableFacts;
use remora_engine::reason::Limit;
use remora_engine::session::consequences::Consequences;
use remora_engine::session::planned_writes::PlannedWrites;
use remora_engine::session::state::{Effects, UnseenCode, WriteScope};
use remora_engine::tags::fences_of_write;
use remora_sql::{NarrowedWrite, Statement, StatementKind, TableName, Writes};
use remora_upstream::catalogue::Lookup;
use remora_upstream::definition_change::DefinitionChange;

use super::Session;

/// What a statement writes, resolved against the catalogue at the moment of sending.
#[derive(Debug, Clone)]
pub(super) struct Wrote {
    /// The tables, with those that cascades reach.
    pub scope: WriteScope,
    /// Whether the change stays invisible until the commit.
    pub is_transactional: bool,
    /// The triggers that run with it, which may do anything.
    pub unseen_code: UnseenCode,
    /// The server uses a table with transactions for it.
    pub uses_transaction: bool,
    /// What was known of the tables when this was resolved.
    basis: Vec<Basis>,
}

/// A table that a statement names, as it was known when the statement was sent.
#[derive(Debug, Clone)]
struct Basis {
    schema: String,
    table: String,
    facts: Arc<TableFacts>,
}

impl Wrote {
    /// Anything; with code that isn't seen, or not.
    pub(super) fn everything(runs_code: bool) -> Wrote {
        Wrote {
            scope: WriteScope::Everything,
            is_transactional: false,
            unseen_code: if runs_code {
                UnseenCode::Possible
            } else {
                UnseenCode::None
            },
            uses_transaction: false,
            basis: Vec::new(),
        }
    }
}

impl Session {
    /// What follows when the server runs a statement of this session, as far as its text tells.
    pub(super) fn consequences(&self, statement: &Statement, text: &[u8]) -> Consequences {
        Consequences::of(statement, text, |name| self.qualify(name))
    }

    /// Schema and name of a table as the session means it; `None` if that isn't certain.
    pub(super) fn qualify<'a>(&'a self, name: &'a TableName) -> Option<(&'a str, &'a str)> {
        self.state.fingerprint()?.qualify(name)
    }

    /// Asks the catalogue what else changes with the tables that a statement names.
    pub(super) fn resolve_writes(&self, writes: &PlannedWrites) -> Option<Wrote> {
        let (names, fires_triggers, narrowed) = match writes {
            PlannedWrites::Nothing => return None,
            PlannedWrites::Everything | PlannedWrites::Privileges(_) => {
                return Some(Wrote::everything(false));
            }
            PlannedWrites::Unnamed => return Some(Wrote::everything(true)),
            PlannedWrites::Tables {
                names,
                fires_triggers,
                narrowed,
            } => (names, *fires_triggers, narrowed.as_deref()),
        };
        let (mut fine, mut whole) = (Vec::new(), Vec::new());
        let mut is_transactional = true;
        let mut basis = Vec::with_capacity(names.len());
        for (schema, table) in names {
            let facts = match self.shared.upstream.catalogue.lookup(schema, table) {
                Lookup::Known(facts) if facts.writes_are_foreseeable => facts,
                Lookup::Known(facts) => {
                    return Some(Wrote {
                        uses_transaction: fires_triggers && facts.is_transactional,
                        unseen_code: if fires_triggers {
                            UnseenCode::Known
                        } else {
                            UnseenCode::None
                        },
                        ..Wrote::everything(fires_triggers)
                    });
                }
                Lookup::Loading | Lookup::Unavailable => {
                    return Some(Wrote::everything(fires_triggers));
                }
            };
            let tags = TableTags::of(facts.tag);
            // No cascade follows an insertion.
            let only_inserts = narrowed.is_some_and(NarrowedWrite::only_inserts);
            if !only_inserts && carries_changes_on(&facts) {
                let reached = facts.cascades_to.iter();
                let reached = reached.map(|(schema, table)| TableTags::new(schema, table));
                for fences in reached.chain([tags]).map(TableTags::fences) {
                    fine.extend(fences);
                    whole.extend(fences);
                }
            } else {
                fine.extend(fences_of_write(tags, &facts, narrowed));
                whole.extend(tags.fences_without_cascades());
            }
            is_transactional &= facts.is_transactional;
            basis.push(Basis {
                schema: schema.clone(),
                table: table.clone(),
                facts,
            });
        }
        Some(Wrote {
            scope: WriteScope::Tables { fine, whole },
            is_transactional,
            unseen_code: UnseenCode::None,
            uses_transaction: fires_triggers && is_transactional,
            basis,
        })
    }

    /// The server has answered a statement, and the answer hasn't been passed on: whether what was
    /// known of its tables held all the while.
    ///
    /// The statement may have waited on the server while a definition was changed there: a column
    /// of another type or in another place, a new trigger, a new foreign key. Then it did not write
    /// what was resolved; and a result that was read meanwhile, with what was known by then, has
    /// tags that its fence doesn't cover. For such a result to be there the change must have been
    /// known before this answer, so it shows here.
    pub(super) fn is_as_resolved(&self, wrote: &Wrote) -> bool {
        let catalogue = &self.shared.upstream.catalogue;
        wrote.basis.iter().all(
            |basis| match catalogue.lookup(&basis.schema, &basis.table) {
                Lookup::Known(facts) => Arc::ptr_eq(&facts, &basis.facts),
                Lookup::Loading | Lookup::Unavailable => false,
            },
        )
    }

    /// Keeps Remora's own questions away from the tables of a statement that changes definitions.
    /// True the first time, if some are on their way.
    pub(super) fn must_await_catalogue(&mut self, statement: &Statement) -> bool {
        if statement.kind != StatementKind::Ddl || self.definition_change.is_some() {
            return false;
        }
        let names = match &statement.writes {
            Writes::Tables(names) => &names[..],
            Writes::Nothing | Writes::Everything(_) => &[],
        };
        let names = names.iter().filter_map(|name| self.qualify(name));
        let upstream = &self.shared.upstream;
        let change = DefinitionChange::begin(upstream, names);
        let must_wait = upstream.catalogue.is_asking();
        self.definition_change = Some(change);
        must_wait
    }

    /// Awaits the answers to the questions that are on their way.
    pub(super) async fn await_catalogue(&self) {
        let limit = self.shared.limits.definition_wait;
        let catalogue = &self.shared.upstream.catalogue;
        if !catalogue.until_quiet(limit).await {
            self.shared.metrics.rare.count_limit(Limit::DefinitionWait);
        }
    }

    /// Raises the fence that a statement needs before it is sent, if it needs one.
    pub(super) fn raise_fence(&self, effects: &Effects, wrote: Option<&Wrote>) -> Option<Fence> {
        let commits = effects.may_commit() && !self.state.written().is_nothing();
        let writes_now = wrote.filter(|wrote| {
            // Inside a transaction the change is nobody else's to see until the commit.
            !(wrote.is_transactional
                && self.state.is_certainly_in_transaction()
                && !effects.may_commit())
        });
        if writes_now.is_none() && !commits {
            return None;
        }
        let mut scope = FenceScope::Tables(Vec::new());
        if commits {
            widen(&mut scope, self.state.written().scope());
        }
        match writes_now.map(|wrote| &wrote.scope) {
            Some(WriteScope::Tables { fine, .. }) => {
                widen(&mut scope, FenceScope::Tables(fine.clone()));
            }
            Some(WriteScope::Everything) => scope = FenceScope::Everything,
            None => {}
        }
        if self.state.writes_are_unlogged() {
            scope = FenceScope::Everything;
        }
        Some(self.shared.timeline.raise_with(scope, effects.definitions))
    }
}

/// Whether a change of its rows may change others, by foreign keys.
fn carries_changes_on(facts: &TableFacts) -> bool {
    // A table can refer to itself.
    let is_itself = |tag| tag == facts.tag;
    !facts.cascades_to.is_empty()
        || facts
            .cascade_parents
            .iter()
            .any(|parent| is_itself(parent.tag))
}

fn widen(scope: &mut FenceScope, more: FenceScope) {
    match (&mut *scope, more) {
        (FenceScope::Tables(tags), FenceScope::Tables(more)) => tags.extend(more),
        _ => *scope = FenceScope::Everything,
    }
}

#[cfg(test)]
mod tests {
    use remora_cache::Tag;

    use super::*;

    #[test]
    fn a_scope_widened_by_everything_is_everything() {
        let mut scope = FenceScope::Tables(vec![Tag::table("shop", "orders")]);
        widen(
            &mut scope,
            FenceScope::Tables(vec![Tag::table("shop", "lines")]),
        );
        assert!(matches!(&scope, FenceScope::Tables(tags) if tags.len() == 2));
        widen(&mut scope, FenceScope::Everything);
        assert!(matches!(scope, FenceScope::Everything));
    }
}
