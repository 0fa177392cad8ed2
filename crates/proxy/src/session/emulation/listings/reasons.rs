//! What becomes of statements, and why.

use remora_engine::reason::Outcome;
use remora_wire::result_set::Column;

use super::Wanted;
use super::rows::{FirstCome, Listed};
use crate::shared::Shared;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("reason", 64),
        Column::unsigned("count"),
        Column::text("meaning", 512),
    ]
}

pub(super) fn list(shared: &Shared, wanted: &Wanted<'_>) -> Listed {
    let workers = shared.metrics.workers();
    let mut rows = FirstCome::new(shared, wanted);
    for outcome in Outcome::all() {
        let label = label(*outcome);
        if !wanted.takes(label) {
            continue;
        }
        let count: u64 = workers.iter().map(|worker| worker.outcome(*outcome)).sum();
        rows.push(vec![
            Some(label.to_owned()),
            Some(count.to_string()),
            Some(outcome.describe().to_owned()),
        ]);
    }
    rows.finish()
}

/// The label of an outcome: its reason's, if it has one.
fn label(outcome: Outcome) -> &'static str {
    match outcome.reason() {
        "" => outcome.as_str(),
        reason => reason,
    }
}
