//! `/explain`: what Remora makes of a statement.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::Response;

use super::{Sources, answer, answer_text, query};
use crate::explain::{NoExplanation, Question};

/// Answers `GET /explain?schema=…&sql=…`, and `POST /explain?schema=…` with the statement as the
/// body.
pub(super) async fn show(State(sources): State<Arc<Sources>>, request: Request<Body>) -> Response {
    let Some(explainer) = &sources.tools.explainer else {
        return answer_text(
            StatusCode::NOT_FOUND,
            "nothing to explain here\n".to_owned(),
        );
    };
    let bytes_max = explainer.statement_bytes_max();
    let (parts, body) = request.into_parts();
    let mut question = match read_query(&parts.uri) {
        Ok(question) => question,
        Err(why) => return refuse(&why),
    };
    if parts.method == Method::POST {
        match to_bytes(body, bytes_max).await {
            Ok(text) => question.statement = text.to_vec(),
            Err(_) => return refuse(&NoExplanation::TooLong { bytes_max }.to_string()),
        }
    }
    match explainer.explain(&question).await {
        Err(why) => refuse(&why.to_string()),
        Ok(explanation) if wants_text(&parts.headers) => {
            answer_text(StatusCode::OK, explanation.to_string())
        }
        Ok(explanation) => match serde_json::to_string_pretty(&explanation) {
            Ok(json) => answer(StatusCode::OK, "application/json", json + "\n"),
            Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
    }
}

fn refuse(why: &str) -> Response {
    answer_text(StatusCode::BAD_REQUEST, format!("{why}\n"))
}

fn wants_text(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.trim_start().starts_with("text/plain"))
}

fn read_query(uri: &Uri) -> Result<Question, String> {
    let mut question = Question::default();
    for (name, value) in query::pairs(uri.query().unwrap_or_default()) {
        match &name[..] {
            b"sql" => question.statement = value,
            b"schema" => {
                let schema = String::from_utf8(value);
                question.schema = Some(schema.map_err(
                    |_| "schema: got bytes that are not UTF-8, accepts a schema's name",
                )?);
            }
            b"account" => {
                let account = String::from_utf8(value);
                question.account = Some(account.map_err(
                    |_| "account: got bytes that are not UTF-8, accepts user@host as CURRENT_USER() gives it",
                )?);
            }
            b"ansi_quotes" => question.dialect.ansi_quotes = flag("ansi_quotes", &value)?,
            b"no_backslash_escapes" => {
                question.dialect.no_backslash_escapes = flag("no_backslash_escapes", &value)?;
            }
            other => {
                return Err(format!(
                    "{}: does not exist; sql, schema, account, ansi_quotes and no_backslash_escapes do",
                    String::from_utf8_lossy(other)
                ));
            }
        }
    }
    question.schema = question.schema.filter(|schema| !schema.is_empty());
    question.account = question.account.filter(|account| !account.is_empty());
    Ok(question)
}

fn flag(name: &str, value: &[u8]) -> Result<bool, String> {
    match value {
        b"1" => Ok(true),
        b"0" => Ok(false),
        other => Err(format!(
            "{name}: got \"{}\", accepts 0 or 1",
            String::from_utf8_lossy(other)
        )),
    }
}
