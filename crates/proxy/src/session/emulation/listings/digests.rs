//! What was counted of each digest.

use std::cmp::Reverse;

use remora_wire::result_set::Column;

use super::rows::{Listed, Row, Sorted};
use super::{Wanted, shortened};
use crate::digests::DigestReport;
use crate::shared::Shared;

/// How many digests are looked at before other sessions of the worker have a turn.
const STEP: usize = 64;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("digest", 16),
        Column::text("text", 1_025),
        Column::unsigned("calls"),
        Column::unsigned("hits"),
        Column::unsigned("fills"),
        Column::unsigned("writes"),
        Column::unsigned("refused"),
        Column::text("refused_mainly", 64),
        Column::unsigned("outdated"),
        Column::unsigned("server_time_us"),
        Column::unsigned("hit_time_us"),
        Column::unsigned("saved_time_us"),
        Column::unsigned("hit_bytes"),
    ]
}

/// Those on which most time was spent first; those without a place of their own have no digest.
pub(super) async fn list(shared: &Shared, wanted: &Wanted<'_>) -> Listed {
    let mut rows = Sorted::new(shared, wanted);
    for (at, report) in shared.digests.reports().enumerate() {
        if report.calls > 0 && wanted.takes(report.text.as_deref().unwrap_or_default()) {
            rows.push(Reverse(report.hit_us + report.miss_us), row(&report));
        }
        if at % STEP == STEP - 1 {
            tokio::task::yield_now().await;
        }
    }
    rows.finish()
}

fn row(report: &DigestReport) -> Row {
    let of_reasons: u64 = report.refusals.iter().map(|refused| refused.count).sum();
    let number = |number: u64| Some(number.to_string());
    vec![
        report.digest.clone(),
        report.text.as_deref().map(shortened),
        number(report.calls),
        number(report.hits),
        number(report.fills),
        number(report.writes),
        number(of_reasons + report.refusals_of_other_reasons),
        report
            .refusals
            .first()
            .map(|refused| refused.reason.clone()),
        number(report.outdated),
        number(report.miss_us),
        number(report.hit_us),
        number(report.saved_us),
        number(report.hit_bytes),
    ]
}
