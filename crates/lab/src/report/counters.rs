//! What arms counted besides: the query cache's inserts and prunes, a proxy's own figures.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::stats;

use super::figures::Workload;
use super::html::collapsed;
use super::number::plain;
use super::places;

/// A table with a column for each counter, if there is any.
pub(super) fn counters(workload: &Workload<'_>) -> Markup {
    let values = |arm: &str, x: f64, name: &str| -> Vec<f64> {
        let repetitions = workload.repetitions(arm, x);
        let counted = repetitions
            .iter()
            .map(|repetition| repetition.counters.get(name));
        counted.flatten().copied().collect()
    };
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for arm in &workload.arms {
        for &x in &workload.places {
            for repetition in workload.repetitions(arm, x) {
                names.extend(repetition.counters.keys().map(String::as_str));
            }
        }
    }
    if names.is_empty() {
        return html! {};
    }
    let heads: Vec<&str> = names.into_iter().collect();
    let table = places::table(workload, "Medians of the repetitions", &heads, |arm, x| {
        let of = |name: &&str| {
            let values = values(arm, x, name);
            if values.is_empty() {
                "–".to_owned()
            } else {
                plain(stats::median(&values))
            }
        };
        heads.iter().map(of).collect()
    });
    collapsed("What else was counted", &table.markup())
}
