//! Which columns a block's conditions are about, and what they say of columns that must be equal.
//!
//! # What follows from a column that equals another one
//!
//! Let one condition say that `a.x` is 5, and another, `E`, that `a.x = b.y`. Then a row of `b` in
//! which `y` isn't 5 makes no difference to the block's result, if `E` restricts `b`:
//!
//! - Rows of `a` in which `x` isn't 5 make no difference, whatever `b` holds. So the result is the
//!   same with `a'`, which is `a` without them.
//! - In a row of a join with `a'`, `a.x` is 5 or NULL. Where `E` is TRUE, `b.y` is 5 there, if the
//!   columns compare with each other as they do with the constant: those of one type do, by the
//!   number, the bytes or the collation. So `E` could as well be written `E AND b.y = 5`.
//! - [`Condition`] proves for that second conjunct: a row of `b` that doesn't satisfy it makes no
//!   difference. This holds with `a'`, so it holds with `a`.
//!
//! Whether `E` restricts `a` doesn't matter: in `a LEFT JOIN b ON a.x = b.y WHERE a.x = 5` it
//! doesn't. If it doesn't restrict `b`, nothing follows: in
//! `b LEFT JOIN a ON a.x = b.y AND a.x = 5` every row of `b` counts. What follows for `b.y` holds
//! whatever the tables hold, so more may follow from it.
//!
//! Both names must mean columns of the rows that the join combines. In
//! `EXISTS (SELECT 1 FROM a, b JOIN c ON a.x = b.y WHERE a.x = 5)` the `ON` can't see this `a`: its
//! `a` is one of the query outside. So both sources must be in the condition's scope.

use remora_cache::BrokenTags;
use remora_sql::{Block, Condition, SourceSet, Test};

use super::resolve::{Place, place_of, restricted};
use crate::facts::{ColumnKind, TableFacts};

/// A list of more constants says nothing of other columns: each would be one more tag there.
const IMPLIED_VALUES_MAX: usize = 8;
/// With more sources only single constants pass on: the tags of all must stay few.
const IMPLIED_SOURCES_MAX: usize = 4;
/// How many columns may follow from one another.
const EQUAL_COLUMNS_MAX: usize = 16;

/// The conditions of a block, with the columns that they are about.
pub(super) struct Conditions<'s, F> {
    block: &'s Block,
    /// Gives the facts of a table by its number in the statement, if it is a table whose columns
    /// are known.
    facts_of: F,
    /// Of each condition the column, if it restricts that. Empty if no columns must be equal: most
    /// blocks have one table, and then each condition is looked at once.
    restricted: Vec<Option<Place>>,
    equal: Vec<EqualColumns>,
}

/// A condition on a column of a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnColumn {
    /// The column's ordinal.
    pub(super) ordinal: usize,
    /// The number of the condition in the block.
    pub(super) number: usize,
    /// It is about another column, which must be equal to this one.
    pub(super) is_implied: bool,
}

/// Two columns of two sources that must be equal.
struct EqualColumns {
    places: [Place; 2],
    restricts: SourceSet,
}

impl<'s, 'f, F: Fn(usize) -> Option<&'f TableFacts>> Conditions<'s, F> {
    pub(super) fn of(block: &'s Block, facts_of: F, broken: BrokenTags) -> Conditions<'s, F> {
        let mut all = Conditions {
            block,
            facts_of,
            restricted: Vec::new(),
            equal: Vec::new(),
        };
        let equalities = block
            .conditions
            .iter()
            .filter_map(|condition| match &condition.test {
                Test::Column(other) => Some((condition, other)),
                _ => None,
            });
        for (condition, other) in equalities {
            let places = [&condition.column, other];
            let places = places.map(|name| place_of(block, name, &all.facts_of));
            if let [Some(one), Some(other)] = places {
                let equal = equal_columns(block, condition, [one, other], &all.facts_of, broken);
                all.equal.extend(equal);
            }
        }
        if !all.equal.is_empty() {
            let places = (0..block.conditions.len()).map(|number| all.restricted_by(number));
            all.restricted = places.collect();
        }
        all
    }

    fn restricted_by(&self, number: usize) -> Option<Place> {
        match self.restricted.get(number) {
            Some(known) => *known,
            None => restricted(self.block, &self.block.conditions[number], &self.facts_of),
        }
    }

    /// The conditions on columns of a source, and behind them those on other columns that must be
    /// equal to one of its columns.
    pub(super) fn on(&self, source: usize) -> impl Iterator<Item = OnColumn> {
        let own = (0..self.block.conditions.len()).filter_map(move |number| {
            let (of, ordinal) = self.restricted_by(number)?;
            (of == source).then_some(OnColumn {
                ordinal,
                number,
                is_implied: false,
            })
        });
        own.chain(self.implied_on(source))
    }

    /// Those on other columns.
    fn implied_on(&self, source: usize) -> Vec<OnColumn> {
        let (mut begun, mut found) = (Vec::new(), Vec::new());
        let sides = self.equal.iter().flat_map(|equal| equal.places);
        for (of, ordinal) in sides {
            if of == source && !begun.contains(&ordinal) {
                begun.push(ordinal);
                let implied = self.implied((of, ordinal));
                found.extend(implied.map(|number| OnColumn {
                    ordinal,
                    number,
                    is_implied: true,
                }));
            }
        }
        found
    }

    /// The numbers of the conditions on other columns that hold for this one too.
    fn implied(&self, place: Place) -> impl Iterator<Item = usize> {
        let mut equal = vec![place];
        let mut at = 0;
        while let Some(here) = equal.get(at).copied() {
            at += 1;
            let others = self.equal.iter().filter_map(|one| one.other(here));
            for other in others {
                if !equal.contains(&other) && equal.len() < EQUAL_COLUMNS_MAX {
                    equal.push(other);
                }
            }
        }
        let numbers = self.restricted.iter().enumerate();
        numbers.filter_map(move |(number, restricted)| {
            let is_of_other = equal[1..].contains(&(*restricted)?);
            let is_short = self.block.sources.len() <= IMPLIED_SOURCES_MAX;
            let passes_on = match &self.block.conditions[number].test {
                Test::In(constants) if is_short => constants.len() <= IMPLIED_VALUES_MAX,
                Test::In(constants) => constants.len() == 1,
                Test::Range { .. } => is_short,
                Test::Column(_) | Test::IsNull => false,
            };
            (is_of_other && passes_on).then_some(number)
        })
    }
}

impl EqualColumns {
    /// The column from which something follows for the one at `place`.
    fn other(&self, place: Place) -> Option<Place> {
        let [one, other] = self.places;
        let found = match place {
            _ if place == one => other,
            _ if place == other => one,
            _ => return None,
        };
        self.restricts.contains(place.0).then_some(found)
    }
}

fn equal_columns<'f>(
    block: &Block,
    condition: &Condition,
    places: [Place; 2],
    facts_of: &impl Fn(usize) -> Option<&'f TableFacts>,
    broken: BrokenTags,
) -> Option<EqualColumns> {
    let kind = |(source, ordinal): Place| {
        let facts = facts_of(block.sources[source].table?)?;
        Some(&facts.columns[ordinal].kind)
    };
    let [one, other] = [kind(places[0])?, kind(places[1])?];
    let is_alike = one == other && !matches!(one, ColumnKind::Other);
    let is_in_scope = |(source, _): Place| condition.scope.contains(source);
    if !places.into_iter().all(is_in_scope) && broken != BrokenTags::ScopeOfJoins {
        return None;
    }
    let restricts = match broken {
        BrokenTags::PreservedSide => SourceSet::range(0, block.sources.len()),
        _ => condition.restricts,
    };
    (is_alike && places[0].0 != places[1].0).then_some(EqualColumns { places, restricts })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora_sql::{Dialect, Select, analyse};

    use super::*;
    use crate::facts::ColumnFacts;
    use crate::reason::TableRefusal;

    fn integer(bytes: u8) -> ColumnKind {
        ColumnKind::Integer {
            bytes,
            unsigned: false,
        }
    }

    /// A table with the columns x, y and z; z is wider.
    fn facts() -> TableFacts {
        let columns = [("x", 4), ("y", 4), ("z", 8)];
        let columns = columns.map(|(name, bytes)| ColumnFacts::new(name, integer(bytes)));
        TableFacts {
            columns: Arc::from(columns.to_vec()),
            ..TableFacts::refused("s", "t", TableRefusal::View)
        }
    }

    fn select(from: &str) -> Select {
        let text = format!("SELECT 1 FROM {from}");
        analyse(text.as_bytes(), Dialect::default())
            .cacheable
            .unwrap()
    }

    /// What is known of the sources: `source.column=condition`.
    fn known(from: &str) -> String {
        let (select, facts) = (select(from), facts());
        let block = select.reads.blocks.last().unwrap();
        let conditions = Conditions::of(block, |_| Some(&facts), BrokenTags::Right);
        let all = (0..block.sources.len()).flat_map(|source| {
            let mut on: Vec<String> = conditions
                .on(source)
                .filter(|on| !matches!(block.conditions[on.number].test, Test::Column(_)))
                .map(|on| {
                    let column = &facts.columns[on.ordinal].name;
                    format!("{}.{column}={}", block.sources[source].name, on.number)
                })
                .collect();
            on.sort();
            on
        });
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_column_equals_another_must_equal_too() {
        for (from, expected) in [
            ("a JOIN b ON a.x = b.y WHERE a.x = 5", "a.x=0 b.y=0"),
            ("a JOIN b ON a.x = b.y WHERE b.y = 5", "a.x=0 b.y=0"),
            ("a, b WHERE a.x = b.y AND b.y IN (5, 6)", "a.x=1 b.y=1"),
            (
                "a, b WHERE a.x = b.y AND a.x BETWEEN 5 AND 6",
                "a.x=1 b.y=1",
            ),
            ("a, b WHERE a.x = b.y AND a.y = 5", "a.y=1"),
            // Further on, and round in a ring.
            (
                "a JOIN b ON a.x = b.x JOIN c ON b.x = c.y WHERE c.y = 5",
                "a.x=0 b.x=0 c.y=0",
            ),
            (
                "a, b, c WHERE a.x = b.x AND b.x = c.x AND c.x = a.x AND a.x = 5",
                "a.x=3 b.x=3 c.x=3",
            ),
            // Columns of other types, NULL, long lists.
            ("a JOIN b ON a.x = b.z WHERE a.x = 5", "a.x=0"),
            ("a JOIN b ON a.x = b.y WHERE a.x IS NULL", "a.x=0"),
            (
                "a JOIN b ON a.x = b.y WHERE a.x IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
                "a.x=0",
            ),
            // One column of one source says nothing of another.
            ("a WHERE a.x = a.y AND a.x = 5", "a.x=1"),
            // Another case may be another table.
            ("a JOIN b ON A.x = b.y WHERE a.x = 5", "a.x=0"),
            ("a JOIN b ON a.x = b.y WHERE A.x = 5", ""),
            // The same table twice.
            ("a JOIN a b ON a.x = b.x WHERE a.x = 5", "a.x=0 b.x=0"),
        ] {
            assert_eq!(known(from), expected, "{from}");
        }
    }

    #[test]
    fn the_preserved_side_of_an_outer_join_counts_whole() {
        for (from, expected) in [
            ("a LEFT JOIN b ON a.x = b.y WHERE a.x = 5", "a.x=0 b.y=0"),
            ("a LEFT JOIN b ON a.x = b.y AND b.y = 5", "b.y=1"),
            ("a LEFT JOIN b ON a.x = b.y AND a.x = 5", ""),
            ("a LEFT JOIN b ON a.x = b.y WHERE b.y = 5", "b.y=0"),
            (
                "a LEFT JOIN b ON 1 WHERE a.x = b.y AND b.y = 5",
                "a.x=1 b.y=1",
            ),
            ("a RIGHT JOIN b ON a.x = b.y WHERE b.y = 5", "a.x=0 b.y=0"),
            ("a RIGHT JOIN b ON a.x = b.y AND a.x = 5", "a.x=1"),
            (
                "a LEFT JOIN (b JOIN c ON b.x = c.x) ON a.x = b.x WHERE a.x = 5",
                "a.x=0 b.x=0 c.x=0",
            ),
            (
                "a LEFT JOIN (b JOIN c ON b.x = c.x AND c.x = 5) ON a.x = b.x",
                "b.x=1 c.x=1",
            ),
            (
                "a LEFT JOIN b ON a.x = b.x LEFT JOIN c ON b.x = c.x WHERE a.x = 5",
                "a.x=0 b.x=0 c.x=0",
            ),
        ] {
            assert_eq!(known(from), expected, "{from}");
        }
    }

    #[test]
    fn names_in_the_condition_of_a_join_mean_what_it_combines() {
        for (from, expected) in [
            ("a, b JOIN c ON a.x = b.y WHERE a.x = 5", "a.x=0"),
            ("b JOIN c ON a.x = b.y JOIN a ON 1 WHERE a.x = 5", "a.x=0"),
            ("a JOIN (b JOIN c ON a.x = b.y) ON 1 WHERE a.x = 5", "a.x=0"),
            (
                "a JOIN b ON 1 JOIN c ON a.x = b.y WHERE a.x = 5",
                "a.x=0 b.y=0",
            ),
        ] {
            let inside = format!("o a WHERE EXISTS (SELECT 1 FROM {from})");
            assert_eq!(known(&inside), expected, "{from}");
        }
    }

    #[test]
    fn in_a_wide_join_only_single_constants_pass_on() {
        let joins =
            "a JOIN b ON a.x = b.x JOIN c ON b.x = c.x JOIN d ON c.x = d.x JOIN e ON d.x = e.x";
        let with = |condition: &str| known(&format!("{joins} WHERE a.x {condition}"));
        assert_eq!(with("= 5"), "a.x=0 b.x=0 c.x=0 d.x=0 e.x=0");
        assert_eq!(with("IN (5, 6)"), "a.x=0");
        assert_eq!(with("BETWEEN 5 AND 6"), "a.x=0");
    }
}
