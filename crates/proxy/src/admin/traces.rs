//! `GET /traces`: where the time of single statements went.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use remora_sql::Digest;

use super::{Sources, answer, answer_text, query};

/// Answers `GET /traces?digest=…&limit=…`.
pub(super) async fn show(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    let Some(explainer) = &sources.tools.explainer else {
        let why = "nothing is traced here\n".to_owned();
        return answer_text(StatusCode::NOT_FOUND, why);
    };
    let (digest, count_max) = match read(&uri) {
        Ok(asked) => asked,
        Err(why) => return answer_text(StatusCode::BAD_REQUEST, why + "\n"),
    };
    match serde_json::to_string_pretty(&explainer.traces().report(digest, count_max)) {
        Ok(json) => answer(StatusCode::OK, "application/json", json + "\n"),
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// The digest that is asked for, if one is, and how many at most.
fn read(uri: &Uri) -> Result<(Option<Digest>, usize), String> {
    let (mut digest, mut count_max) = (None, usize::MAX);
    for (name, value) in query::pairs(uri.query().unwrap_or_default()) {
        let value = String::from_utf8_lossy(&value);
        match &name[..] {
            b"digest" => {
                let number = u64::from_str_radix(&value, 16);
                let wrong = |_| format!("digest: got \"{value}\", accepts a digest's 16 digits");
                digest = Some(Digest::from_number(number.map_err(wrong)?));
            }
            b"limit" => {
                let wrong = |_| format!("limit: got \"{value}\", accepts a whole number");
                count_max = value.parse().map_err(wrong)?;
            }
            _ => {}
        }
    }
    Ok((digest, count_max))
}
