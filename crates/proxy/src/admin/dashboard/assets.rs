//! The page's files, which are part of the program: it needs nothing from anywhere else.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::refuse_path;

/// Only what comes from here, and nothing that stands in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("../../../dashboard/page.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file beside the page: its name, type and text.
const FILES: [(&str, &str, &str); 17] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("../../../dashboard/style.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../../../dashboard/icon.svg"),
    ),
    (
        "main.js",
        SCRIPT,
        include_str!("../../../dashboard/main.js"),
    ),
    (
        "poll.js",
        SCRIPT,
        include_str!("../../../dashboard/poll.js"),
    ),
    (
        "advice.js",
        SCRIPT,
        include_str!("../../../dashboard/advice.js"),
    ),
    ("dom.js", SCRIPT, include_str!("../../../dashboard/dom.js")),
    (
        "format.js",
        SCRIPT,
        include_str!("../../../dashboard/format.js"),
    ),
    (
        "history.js",
        SCRIPT,
        include_str!("../../../dashboard/history.js"),
    ),
    (
        "chart.js",
        SCRIPT,
        include_str!("../../../dashboard/chart.js"),
    ),
    (
        "scales.js",
        SCRIPT,
        include_str!("../../../dashboard/scales.js"),
    ),
    (
        "charts.js",
        SCRIPT,
        include_str!("../../../dashboard/charts.js"),
    ),
    (
        "status.js",
        SCRIPT,
        include_str!("../../../dashboard/status.js"),
    ),
    (
        "digests.js",
        SCRIPT,
        include_str!("../../../dashboard/digests.js"),
    ),
    (
        "digest.js",
        SCRIPT,
        include_str!("../../../dashboard/digest.js"),
    ),
    (
        "totals.js",
        SCRIPT,
        include_str!("../../../dashboard/totals.js"),
    ),
    (
        "control.js",
        SCRIPT,
        include_str!("../../../dashboard/control.js"),
    ),
    (
        "configuration.js",
        SCRIPT,
        include_str!("../../../dashboard/configuration.js"),
    ),
];

/// The page itself.
pub(in super::super) async fn page() -> Response {
    answer("text/html; charset=utf-8", PAGE)
}

/// One of its files.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, content_type, text)) => answer(content_type, text),
        None => refuse_path().await,
    }
}

fn answer(content_type: &'static str, text: &'static str) -> Response {
    // Asked for again each time, so that a newer Remora's page is not mixed with an older one's.
    let headers: [(HeaderName, HeaderValue); 5] = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::OK, headers, text).into_response()
}
