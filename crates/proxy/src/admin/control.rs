//! Requests that change something. They need the token of `admin.token_file`; without it they get
//! 401 and nothing else.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::token::AdminToken;
use super::{Sources, answer, answer_text};
use crate::shared::Shared;

/// What such requests act on.
pub struct Control {
    /// The running Remora.
    pub shared: Arc<Shared>,
    /// Who may ask.
    pub token: Arc<AdminToken>,
}

/// Lets only requests with the token through.
pub(super) async fn require_token(
    State(sources): State<Arc<Sources>>,
    request: Request,
    next: Next,
) -> Response {
    let is_allowed = sources
        .tools
        .control
        .as_ref()
        .is_some_and(|control| control.token.allows(request.headers()));
    if is_allowed {
        return next.run(request).await;
    }
    let mut refusal = Response::new(Body::empty());
    *refusal.status_mut() = StatusCode::UNAUTHORIZED;
    let challenge = HeaderValue::from_static("Bearer");
    refusal.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    refusal
}

/// Answers `POST /flush`: drops every result.
pub(super) async fn flush(State(sources): State<Arc<Sources>>) -> Response {
    let Some(control) = &sources.tools.control else {
        return nothing_to_control();
    };
    let shared = Arc::clone(&control.shared);
    // A large store takes its time, and other pages shouldn't wait for it.
    let flushed = tokio::task::spawn_blocking(move || shared.flush()).await;
    match flushed {
        Ok(()) => {
            tracing::info!("all results were dropped, as POST /flush asked");
            answer_text(StatusCode::OK, "all results were dropped\n".to_owned())
        }
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// Answers `GET /rules`.
pub(super) async fn show_rules(State(sources): State<Arc<Sources>>) -> Response {
    let Some(control) = &sources.tools.control else {
        return nothing_to_control();
    };
    match serde_json::to_string_pretty(&control.shared.rules.report()) {
        Ok(json) => answer(StatusCode::OK, "application/json", json + "\n"),
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// Answers `POST /rules/reload`.
pub(super) async fn reload_rules(State(sources): State<Arc<Sources>>) -> Response {
    let Some(control) = &sources.tools.control else {
        return nothing_to_control();
    };
    let shared = Arc::clone(&control.shared);
    // As with a flush: all results may be dropped.
    match tokio::task::spawn_blocking(move || shared.reload_rules()).await {
        Ok(Ok(reloaded)) => answer_text(StatusCode::OK, reloaded.to_string()),
        Ok(Err(error)) => answer_text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn nothing_to_control() -> Response {
    let body = "there is nothing to change here\n".to_owned();
    answer_text(StatusCode::NOT_FOUND, body)
}
