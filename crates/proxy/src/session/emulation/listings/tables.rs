//! The tables whose definitions are known.

use remora_upstream::catalogue::KnownTable;
use remora_upstream::table_changes::TableChanges;
use remora_wire::result_set::Column;

use super::rows::{Listed, Row, Sorted};
use super::{Wanted, yes_or_no};
use crate::shared::Shared;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("table_schema", 64),
        Column::text("table_name", 64),
        Column::text("kind", 16),
        Column::text("transactional", 3),
        Column::text("cacheable", 3),
        Column::text("reason", 64),
        Column::text("meaning", 512),
        Column::unsigned("changes"),
        Column::text("fenced", 3),
        Column::text("current", 3),
    ]
}

/// In the order of their names.
pub(super) async fn list(shared: &Shared, wanted: &Wanted<'_>) -> Listed {
    let upstream = &shared.upstream;
    let mut rows = Sorted::new(shared, wanted);
    for part in 0..upstream.catalogue.parts() {
        for table in upstream.catalogue.known_in(part) {
            let full = format!("{}.{}", table.schema, table.table);
            if wanted.takes(&table.table) || wanted.takes(&full) {
                let row = row(shared, &table, &upstream.table_changes);
                rows.push((table.schema, table.table), row);
            }
        }
        tokio::task::yield_now().await;
    }
    rows.finish()
}

fn row(shared: &Shared, table: &KnownTable, changes: &TableChanges) -> Row {
    let facts = &table.facts;
    let kind = if facts.view_of.is_empty() {
        "table"
    } else {
        "view"
    };
    let refusal = facts.cacheable.err();
    let text = |text: &str| Some(text.to_owned());
    vec![
        text(&table.schema),
        text(&table.table),
        text(kind),
        Some(yes_or_no(facts.is_transactional)),
        Some(yes_or_no(refusal.is_none())),
        refusal.map(|why| why.as_str().to_owned()),
        refusal.map(|why| why.describe().to_owned()),
        changes
            .of(&table.schema, &table.table)
            .map(|count| count.to_string()),
        Some(yes_or_no(shared.timeline.has_fence(facts.tag))),
        Some(yes_or_no(table.is_current)),
    ]
}
