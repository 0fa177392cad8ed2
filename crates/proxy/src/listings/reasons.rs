//! What becomes of statements, and why.

use remora_wire::result_set::Column;

use super::{Table, Wanted};
use crate::reason::Outcome;
use crate::shared::Shared;

/// The label of an outcome: its reason's, if it has one.
fn label(outcome: Outcome) -> &'static str {
    match outcome.reason() {
        "" => outcome.as_str(),
        reason => reason,
    }
}

pub(super) fn list(shared: &Shared, wanted: &Wanted<'_>) -> Table {
    let workers = shared.metrics.workers();
    let outcomes = Outcome::all().iter();
    let rows = outcomes.filter(|outcome| wanted.takes(label(**outcome)));
    let rows = rows.map(|outcome| {
        let count: u64 = workers.iter().map(|worker| worker.outcome(*outcome)).sum();
        vec![
            Some(label(*outcome).to_owned()),
            Some(count.to_string()),
            Some(outcome.describe().to_owned()),
        ]
    });
    Table {
        columns: vec![
            Column::text("reason", 64),
            Column::unsigned("count"),
            Column::text("meaning", 512),
        ],
        rows: rows.collect(),
    }
}
