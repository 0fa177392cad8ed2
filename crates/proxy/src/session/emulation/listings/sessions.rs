//! The sessions.

use remora_wire::result_set::Column;

use super::Wanted;
use super::rows::{Listed, Sorted};
use crate::shared::Shared;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::unsigned("id"),
        Column::text("client", 64),
        Column::text("account", 320),
        Column::text("default_schema", 64),
        Column::text("state", 64),
        Column::text("meaning", 512),
        Column::unsigned("seconds"),
        Column::unsigned("server_statements"),
    ]
}

/// In the order of their logins.
pub(super) fn list(shared: &Shared, wanted: &Wanted<'_>) -> Listed {
    let now_ms = shared.clock.now_ms();
    let mut rows = Sorted::new(shared, wanted);
    for (number, session) in shared.sessions.all() {
        let about = session.about();
        if !wanted.takes(about.account.as_deref().unwrap_or_default()) {
            continue;
        }
        let seconds = now_ms.saturating_sub(session.since_ms) / 1_000;
        let row = vec![
            Some(session.connection_id.to_string()),
            session.client.map(|client| client.to_string()),
            about.account,
            about.schema,
            Some(
                about
                    .bypass
                    .map_or("caching", |why| why.as_str())
                    .to_owned(),
            ),
            Some(
                about
                    .bypass
                    .map_or("Its results can be served and kept.", |why| why.describe())
                    .to_owned(),
            ),
            Some(seconds.to_string()),
            Some(session.server_statements().to_string()),
        ];
        rows.push(number, row);
    }
    rows.finish()
}
