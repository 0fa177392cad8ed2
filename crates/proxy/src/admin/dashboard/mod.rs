//! `/dashboard`: a page that shows what Remora does, live.
//!
//! The page is a few files that are part of the program ([`assets`]). It asks for what it shows,
//! each answer small:
//!
//! | path | answers | asked |
//! |---|---|---|
//! | `/dashboard/live` | the state, and the samples since the last one that the page has | every second |
//! | `/dashboard/digests` | those digests that the page shows: found, sorted and cut off here | every three seconds |
//! | `/dashboard/digest` | one digest | every two seconds, while it is shown |
//! | `/dashboard/totals` | counts by reason and by table | every three seconds |
//! | `/dashboard/configuration` | the options in force | once |
//! | `/dashboard/advice` | what limits the server; `POST` has it read | every ten seconds, every second meanwhile |
//!
//! The samples are taken on the admin thread, whether or not a page is open ([`history`]).

mod advice;
mod assets;
mod configuration;
mod digest_history;
mod digests;
mod history;
mod live;
mod totals;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

pub(super) use self::assets::page;
use self::digest_history::DigestHistory;
use self::history::{History, SAMPLE_INTERVAL, unix_ms};
use super::{Sources, answer_text};
use crate::metrics::{Metrics, Observation};

/// What the page needs beside the counters.
#[derive(Debug)]
pub(super) struct Dashboard {
    /// Tells this run of Remora from others.
    run: String,
    // Only the admin thread takes it, so nobody waits.
    history: Mutex<History>,
    digests: Mutex<DigestHistory>,
}

impl Dashboard {
    pub(super) fn new(metrics: &Metrics, state: &Observation) -> Dashboard {
        Dashboard {
            run: format!("{:x}-{:x}", unix_ms(), std::process::id()),
            history: Mutex::new(History::new(metrics, state)),
            digests: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The paths below `/dashboard`.
pub(super) fn routes() -> Router<Arc<Sources>> {
    Router::new()
        .route("/dashboard", get(page))
        .route("/dashboard/live", get(live::show))
        .route("/dashboard/digests", get(digests::show_some))
        .route("/dashboard/digest", get(digests::show_one))
        .route("/dashboard/totals", get(totals::show))
        .route("/dashboard/configuration", get(configuration::show))
        .route("/dashboard/advice", get(advice::show).post(advice::begin))
        .route("/dashboard/{file}", get(assets::file))
}

/// Takes samples for ever.
pub(super) async fn sample(sources: &Sources) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first comes at once, and there is nothing to tell yet.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let state = sources.observed.observe();
        lock(&sources.dashboard.history).take(&sources.metrics, &state);
        if let Some(explainer) = &sources.tools.explainer {
            let mut history = lock(&sources.dashboard.digests);
            if history.is_due() {
                history.take(explainer.digest_table().tallies());
            }
        }
    }
}

fn answer_json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(json) => {
            let headers = [
                (CONTENT_TYPE, "application/json"),
                (CACHE_CONTROL, "no-store"),
            ];
            (StatusCode::OK, headers, json).into_response()
        }
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}
