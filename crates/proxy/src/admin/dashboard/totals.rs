//! `/dashboard/totals`: why statements went to the server, and what changed.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use remora_engine::reason::{Limit, Outcome};
use remora_upstream::table_changes::TableCounts;
use serde::Serialize;

use super::super::Sources;
use super::answer_json;

#[derive(Debug, Serialize)]
struct Totals<'a> {
    /// Since the start; the most frequent first.
    reasons: Vec<Counted>,
    /// Limits of the configuration that kept something from happening.
    limits: Vec<Counted>,
    /// Commits by the table that they changed; the most frequent first, and no more than
    /// [`TABLES_MAX`].
    tables: Vec<TableCount<'a>>,
    /// How many tables there are in all.
    tables_counted: usize,
    /// Those of tables that have no count of their own.
    tables_others: u64,
    /// Commits that may have changed anything.
    commits_of_everything: u64,
}

/// The most tables that are sent.
const TABLES_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct TableCount<'a> {
    schema: &'a str,
    table: &'a str,
    count: u64,
}

/// A reason with its sentence, and how often.
#[derive(Debug, Serialize)]
struct Counted {
    reason: &'static str,
    meaning: &'static str,
    count: u64,
}

/// Answers `GET /dashboard/totals`.
pub(super) async fn show(State(sources): State<Arc<Sources>>) -> Response {
    let workers = sources.metrics.workers();
    let mut reasons: Vec<Counted> = Outcome::all()
        .iter()
        .filter(|outcome| !outcome.reason().is_empty())
        .map(|outcome| Counted {
            reason: outcome.reason(),
            meaning: outcome.describe(),
            count: workers.iter().map(|worker| worker.outcome(*outcome)).sum(),
        })
        .collect();
    sort(&mut reasons);
    let state = sources.observed.observe();
    let mut limits: Vec<Counted> = Limit::ALL
        .iter()
        .map(|limit| {
            let elsewhere = state.limits.iter().filter(|(other, _)| other == limit);
            let elsewhere: u64 = elsewhere.map(|(_, count)| count).sum();
            Counted {
                reason: limit.as_str(),
                meaning: limit.describe(),
                count: sources.metrics.rare.limit(*limit) + elsewhere,
            }
        })
        .collect();
    sort(&mut limits);
    let changes = &state.follower.table_changes;
    answer_json(&Totals {
        reasons,
        limits,
        tables: most_changed(changes),
        tables_counted: changes.of.len(),
        tables_others: changes.others,
        commits_of_everything: state.follower.commits_of_everything,
    })
}

fn most_changed(changes: &TableCounts) -> Vec<TableCount<'_>> {
    let mut tables: Vec<TableCount<'_>> = changes
        .of
        .iter()
        .map(|(table, count)| TableCount {
            schema: &table.schema,
            table: &table.table,
            count: *count,
        })
        .collect();
    tables.sort_by_key(|table| (std::cmp::Reverse(table.count), table.schema, table.table));
    tables.truncate(TABLES_MAX);
    tables
}

/// Leaves out what never happened.
fn sort(counted: &mut Vec<Counted>) {
    counted.retain(|counted| counted.count > 0);
    counted.sort_by_key(|counted| std::cmp::Reverse(counted.count));
}
