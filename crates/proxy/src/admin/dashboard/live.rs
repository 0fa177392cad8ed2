//! `/dashboard/live`: the state now, and what happened since the page last asked.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use remora_engine::reason::Words;
use serde::Serialize;

use super::super::{Sources, query};
use super::history::{Sample, unix_ms, whole_ms};
use super::{answer_json, lock};
use crate::metrics::{Caching, Reachability};

#[derive(Debug, Serialize)]
struct Live<'a> {
    /// Another one than before: Remora was started again, and what the page has is of its past.
    run: &'a str,
    version: &'static str,
    now_ms: u64,
    uptime_ms: u64,
    /// Why nothing is served from memory, if that is so.
    caching_off: Option<Words>,
    upstream: &'static str,
    /// Why it can't be reached.
    upstream_error: Option<String>,
    connections: u64,
    store_bytes_max: u64,
    digests: u64,
    /// Whether there is a token with which all results can be dropped.
    can_flush: bool,
    samples: Vec<Sample>,
}

/// Answers `GET /dashboard/live?run=…&after=…`; without the right `run`, with all samples.
pub(super) async fn show(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    let (mut run, mut after) = (Vec::new(), 0);
    for (name, value) in query::pairs(uri.query().unwrap_or_default()) {
        match &name[..] {
            b"run" => run = value,
            b"after" => after = number(&value),
            _ => {}
        }
    }
    let dashboard = &sources.dashboard;
    if run != dashboard.run.as_bytes() {
        after = 0;
    }
    let state = sources.observed.observe();
    let (upstream, upstream_error) = match state.upstream {
        Reachability::Untried => ("untried", None),
        Reachability::Reachable => ("reachable", None),
        Reachability::Unreachable(why) => ("unreachable", Some(why)),
    };
    let samples = lock(&dashboard.history).after(after);
    let control = sources.tools.control.as_ref();
    answer_json(&Live {
        run: &dashboard.run,
        version: env!("CARGO_PKG_VERSION"),
        now_ms: unix_ms(),
        uptime_ms: whole_ms(sources.started.elapsed()),
        caching_off: match state.caching {
            Caching::On => None,
            Caching::Off(reason) => Some(Words::of(reason)),
        },
        upstream,
        upstream_error,
        connections: state.connections,
        store_bytes_max: state.store.bytes_max,
        digests: state.digests,
        can_flush: control.is_some_and(|control| control.token.is_given()),
        samples,
    })
}

/// A number of a query string; 0 if it is none.
pub(super) fn number(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).unwrap_or_default();
    text.parse().unwrap_or_default()
}
