//! `/dashboard/configuration`: the options in force.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::super::Sources;
use super::answer_json;

/// Answers `GET /dashboard/configuration`.
pub(super) async fn show(State(sources): State<Arc<Sources>>) -> Response {
    answer_json(&sources.observed.configuration())
}
