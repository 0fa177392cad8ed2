//! The results in memory.

use std::collections::HashMap;

use remora_cache::{Entry, Scope, StoreCursor};
use remora_engine::key::{Label, Note, fingerprint_of, is_binary, text_of_key};
use remora_engine::reason::Words;
use remora_engine::settings::FingerprintNames;
use remora_sql::{Dialect, Select};
use remora_wire::result_set::Column;

use super::rows::{FirstCome, Listed, Row};
use super::{Wanted, shortened, yes_or_no};
use crate::shared::Shared;

/// How many places of the store are looked at before other sessions of the worker have a turn.
const STEP_PLACES: usize = 128;
/// The longest statement that is read for its digest and its tables, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("statement_schema", 64),
        Column::text("statement_text", 1_025),
        Column::text("digest", 16),
        Column::text("account", 320),
        Column::text("protocol", 8),
        Column::text("tables", 1_025),
        Column::unsigned("result_bytes"),
        Column::unsigned("memory_bytes"),
        Column::text("state", 64),
        Column::unsigned("expires_in_ms"),
        Column::text("asked_for", 3),
    ]
}

/// In the order of the store, which means nothing.
pub(super) async fn list(shared: &Shared, wanted: &Wanted<'_>) -> Listed {
    let lister = Lister {
        shared,
        fingerprints: shared.fingerprints.names(),
    };
    let mut rows = FirstCome::new(shared, wanted);
    let mut next = Some(StoreCursor::default());
    while let Some(from) = next.filter(|_| !rows.is_full()) {
        let now_ms = shared.clock.now_ms();
        let mut seen = Vec::new();
        next = shared.store.walk_step(from, STEP_PLACES, |entry| {
            seen.push(Seen::of(shared, entry, now_ms));
        });
        for entry in seen {
            if rows.is_full() {
                break;
            }
            let (about, row) = lister.row(&entry, now_ms);
            if wanted.takes(&about) {
                rows.push(row);
            }
        }
        tokio::task::yield_now().await;
    }
    rows.finish()
}

/// What is taken of an entry while it is certainly there.
struct Seen {
    scope: Scope,
    label: Label,
    /// Of the statement, as much as is read.
    text: Vec<u8>,
    is_whole: bool,
    result_bytes: usize,
    memory_bytes: usize,
    unservable: Option<Words>,
    expires_at_ms: Option<u64>,
    was_asked_for: bool,
}

impl Seen {
    fn of(shared: &Shared, entry: &Entry, now_ms: u64) -> Seen {
        let text = if is_binary(entry.scope()) {
            text_of_key(entry.text())
        } else {
            entry.text()
        };
        Seen {
            scope: entry.scope(),
            label: Note::of(entry).label,
            text: text[..text.len().min(TEXT_BYTES_MAX)].to_vec(),
            is_whole: text.len() <= TEXT_BYTES_MAX,
            result_bytes: entry.response().len(),
            memory_bytes: entry.cost(),
            unservable: shared.why_unservable(entry, now_ms),
            expires_at_ms: entry.expires_at_ms(),
            was_asked_for: entry.was_asked_for(),
        }
    }
}

struct Lister<'s> {
    shared: &'s Shared,
    fingerprints: HashMap<u64, FingerprintNames>,
}

impl Lister<'_> {
    /// The text that a pattern is compared with, and the row.
    fn row(&self, seen: &Seen, now_ms: u64) -> (String, Row) {
        let names = self.fingerprints.get(&fingerprint_of(seen.scope));
        let dialect = names.and_then(|names| names.dialect);
        let dialect = dialect.map(|dialect| self.shared.upstream.aged(dialect));
        let (digest, normal) = self.digest(seen, dialect);
        let text = if self.shared.emulation.show_literals {
            Some(String::from_utf8_lossy(&seen.text).into_owned())
        } else {
            normal
        };
        let schema = names.and_then(|names| names.schema.clone());
        let tables = dialect.and_then(|dialect| tables(seen, dialect, schema.as_deref()));
        let is_binary = is_binary(seen.scope);
        let left_ms = seen.expires_at_ms.map(|end| end.saturating_sub(now_ms));
        // Also what a pattern is compared with: no longer than what is shown.
        let text = text.as_deref().map(shortened);
        let row = vec![
            schema,
            text.clone(),
            digest,
            names.and_then(|names| names.account.clone()),
            Some(if is_binary { "binary" } else { "text" }.to_owned()),
            tables.as_deref().map(shortened),
            Some(seen.result_bytes.to_string()),
            Some(seen.memory_bytes.to_string()),
            Some(
                seen.unservable
                    .map_or("servable", |why| why.reason)
                    .to_owned(),
            ),
            left_ms.map(|left| left.to_string()),
            Some(yes_or_no(seen.was_asked_for)),
        ];
        (text.unwrap_or_default(), row)
    }

    /// The digest and its text: those that it was filled under, or else by its own text.
    fn digest(&self, seen: &Seen, dialect: Option<Dialect>) -> (Option<String>, Option<String>) {
        if let Some(about) = self.shared.digests.about(seen.label) {
            return (Some(about.digest.to_string()), Some(about.text.clone()));
        }
        let Some(dialect) = dialect.filter(|_| seen.is_whole) else {
            return (None, None);
        };
        let mut normal = Vec::new();
        let digest = remora_sql::normalise(&seen.text, dialect, &mut normal);
        let normal = String::from_utf8_lossy(&normal).into_owned();
        (Some(digest.to_string()), Some(normal))
    }
}

/// The tables that a statement reads, by their names in it.
fn tables(seen: &Seen, dialect: Dialect, default_schema: Option<&str>) -> Option<String> {
    if !seen.is_whole {
        return None;
    }
    let statement = if is_binary(seen.scope) {
        remora_sql::analyse_prepared(&seen.text, dialect)
    } else {
        remora_sql::analyse(&seen.text, dialect)
    };
    let Select { tables, .. } = statement.cacheable.ok()?;
    let names = tables.iter().map(|name| {
        let schema = name.schema_or(default_schema).unwrap_or_default();
        format!("{schema}.{}", name.table)
    });
    let names: Vec<String> = names.collect();
    Some(names.join(", "))
}
