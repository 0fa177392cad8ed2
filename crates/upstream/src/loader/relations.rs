//! The graph of the foreign keys that change other tables' rows, of the whole server, and what of
//! it concerns a table.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use remora_cache::{AsOf, Tag};
use remora_engine::facts::CascadeParent;

use super::foreign_keys::ForeignKey;
use crate::catalogue::TableKey;

/// Tables that may change with one through foreign keys, or with which it may. More: its facts stay
/// unknown.
const CASCADES_MAX: usize = 1_000;

/// A foreign key's end: the other table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    table: TableKey,
    /// The referenced columns, in the parent.
    columns: Vec<String>,
}

/// From a table to others.
type Edges = HashMap<TableKey, Vec<End>>;

/// The foreign keys that change children with their parent.
#[derive(Debug)]
pub(super) struct Relations {
    /// Taken before the questions.
    pub(super) as_of: AsOf,
    children: Edges,
    parents: Edges,
}

/// What of it concerns a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cascading {
    /// See [`remora_engine::facts::TableFacts::cascades_to`].
    pub(super) to: Vec<(String, String)>,
    /// See [`remora_engine::facts::TableFacts::cascade_parents`].
    pub(super) parents: Vec<CascadeParent>,
}

impl Relations {
    /// The graph of these keys, which were asked for after `as_of`.
    pub(super) fn of(as_of: AsOf, keys: impl IntoIterator<Item = ForeignKey>) -> Relations {
        let (mut children, mut parents) = (Edges::new(), Edges::new());
        for key in keys {
            let ForeignKey {
                parent,
                child,
                columns,
            } = key;
            children.entry(parent.clone()).or_default().push(End {
                table: child.clone(),
                columns: columns.clone(),
            });
            parents.entry(child).or_default().push(End {
                table: parent,
                columns,
            });
        }
        Relations {
            as_of,
            children,
            parents,
        }
    }

    /// What concerns a table; `None` if too many tables do.
    pub(super) fn of_table(&self, key: &TableKey) -> Option<Cascading> {
        let to = closure(key, &self.children)?;
        let ancestors = closure(key, &self.parents)?;
        let mut columns: BTreeMap<&TableKey, Option<BTreeSet<&str>>> = BTreeMap::new();
        for table in ancestors.iter().copied().chain([key]) {
            for end in self.parents.get(table).into_iter().flatten() {
                let all = columns
                    .entry(&end.table)
                    .or_insert_with(|| Some(BTreeSet::new()));
                match all {
                    // One key whose columns aren't known makes all of them count.
                    _ if end.columns.is_empty() => *all = None,
                    Some(all) => all.extend(end.columns.iter().map(String::as_str)),
                    None => {}
                }
            }
        }
        let parent = |(key, columns): (&TableKey, Option<BTreeSet<&str>>)| CascadeParent {
            schema: key.schema.clone(),
            table: key.table.clone(),
            tag: Tag::table(&key.schema, &key.table),
            columns: columns
                .into_iter()
                .flatten()
                .map(ToOwned::to_owned)
                .collect(),
        };
        Some(Cascading {
            to: to
                .into_iter()
                .map(|key| (key.schema.clone(), key.table.clone()))
                .collect(),
            parents: columns.into_iter().map(parent).collect(),
        })
    }
}

/// The tables that the edges reach from `key`, itself left out, sorted; `None` if they are too
/// many.
fn closure<'a>(key: &'a TableKey, edges: &'a Edges) -> Option<BTreeSet<&'a TableKey>> {
    let mut seen = BTreeSet::new();
    let mut next = VecDeque::from([key]);
    while let Some(from) = next.pop_front() {
        for End { table, .. } in edges.get(from).into_iter().flatten() {
            if table != key && seen.insert(table) {
                next.push_back(table);
            }
        }
        if seen.len() > CASCADES_MAX {
            return None;
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use remora_cache::{BrokenRules, Position, Timeline, TimelineLimits};

    use super::*;

    fn key(name: &str) -> TableKey {
        TableKey {
            schema: "app".into(),
            table: name.into(),
        }
    }

    /// From `parent > child: columns`.
    fn relations(keys: &[(&str, &str, &[&str])]) -> Relations {
        let limits = TimelineLimits {
            tag_slots: 1,
            fence_slots: 1,
            lag_ms_max: 1,
        };
        let timeline = Timeline::new(limits, BrokenRules::default());
        timeline.restart(Position::new(1, 100).unwrap());
        timeline.prove(timeline.epoch(), 1);
        let keys = keys.iter().map(|(parent, child, columns)| ForeignKey {
            parent: key(parent),
            child: key(child),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
        });
        Relations::of(timeline.as_of().unwrap(), keys)
    }

    fn to(relations: &Relations, name: &str) -> Vec<String> {
        let found = relations.of_table(&key(name)).unwrap();
        found.to.into_iter().map(|(_, table)| table).collect()
    }

    fn parents(relations: &Relations, name: &str) -> Vec<(String, String)> {
        let found = relations.of_table(&key(name)).unwrap();
        let parents = found.parents.into_iter();
        parents
            .map(|parent| (parent.table, parent.columns.join(" ")))
            .collect()
    }

    #[test]
    fn cascades_reach_children_of_children_and_circles_end() {
        let relations = relations(&[
            ("a", "b", &["id"]),
            ("a", "c", &["code", "id"]),
            ("b", "d", &["x"]),
            ("b", "a", &["y"]),
            ("d", "d", &["z"]),
        ]);
        assert_eq!(to(&relations, "a"), ["b", "c", "d"]);
        assert_eq!(to(&relations, "c"), [""; 0]);
        let pair = |table: &str, columns: &str| (table.to_owned(), columns.to_owned());
        // A table that refers to itself, or is part of a circle, is a parent of its own.
        assert_eq!(
            parents(&relations, "d"),
            [pair("a", "id"), pair("b", "x y"), pair("d", "z")]
        );
        assert_eq!(
            parents(&relations, "c"),
            [pair("a", "code id"), pair("b", "y")]
        );
        assert_eq!(parents(&relations, "e"), []);
    }

    #[test]
    fn one_key_with_unknown_columns_makes_all_columns_count() {
        let relations = relations(&[("a", "b", &["id"]), ("a", "b", &[])]);
        assert_eq!(parents(&relations, "b"), [("a".to_owned(), String::new())]);
    }
}
