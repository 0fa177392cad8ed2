//! `/dashboard/advice`: what limits the server. `POST` has it read.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use remora_adviser::{Finding, Judgement, Report, Rule, TakeoverSeen, Unjudged, Verdict};
use serde::Serialize;

use super::super::{Sources, answer_text};
use super::answer_json;
use crate::advise::on_demand::{Progress, ReadingOnDemand};

/// What the page shows.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Shown {
    /// Remora has no account to read with.
    NoAccount,
    NotAsked,
    Reading {
        read_s: u64,
        length_s: u64,
    },
    Failed {
        error: String,
    },
    Done(ShownReport),
}

#[derive(Debug, Serialize)]
struct ShownReport {
    title: String,
    findings: Vec<ShownFinding>,
    fine: Vec<&'static str>,
    unjudged: Vec<ShownUnjudged>,
    takeover: String,
}

#[derive(Debug, Serialize)]
struct ShownFinding {
    rule: &'static str,
    about: &'static str,
    meaning: String,
    evidence: Vec<String>,
    remedy: String,
    settings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShownUnjudged {
    rules: Vec<&'static str>,
    why: &'static str,
}

/// Answers `GET /dashboard/advice`.
pub(super) async fn show(State(sources): State<Arc<Sources>>) -> Response {
    let progress = sources
        .tools
        .reading
        .as_ref()
        .map(ReadingOnDemand::progress);
    answer_json(&match progress {
        None => Shown::NoAccount,
        Some(Progress::NotAsked) => Shown::NotAsked,
        Some(Progress::Reading { since, length }) => Shown::Reading {
            read_s: since.as_secs(),
            length_s: length.as_secs(),
        },
        Some(Progress::Failed(error)) => Shown::Failed { error },
        Some(Progress::Done(report)) => Shown::Done(shown(&report)),
    })
}

/// A header that the page sends, and that no other page can have a browser send.
const FROM_PAGE: &str = "x-remora-page";

/// Answers `POST /dashboard/advice`: the server is read. It changes nothing, and there is only one
/// reading at a time, so it needs no token.
pub(super) async fn begin(State(sources): State<Arc<Sources>>, headers: HeaderMap) -> Response {
    if !headers.contains_key(FROM_PAGE) {
        let body = format!("this takes the header {FROM_PAGE}\n");
        return answer_text(StatusCode::FORBIDDEN, body);
    }
    match &sources.tools.reading {
        Some(reading) => {
            reading.ask();
            answer_text(
                StatusCode::ACCEPTED,
                "the server is being read\n".to_owned(),
            )
        }
        None => answer_text(
            StatusCode::NOT_FOUND,
            "follow.user is not set: there is no account to read the server with\n".to_owned(),
        ),
    }
}

fn shown(report: &Report) -> ShownReport {
    let rules = |wanted: &dyn Fn(&Verdict) -> bool| -> Vec<&'static str> {
        let judgements = report.judgements.iter();
        let wanted = judgements.filter(|judgement| wanted(&judgement.verdict));
        wanted
            .map(|judgement| Rule::as_str(judgement.rule))
            .collect()
    };
    let unjudged = Unjudged::ALL.iter().map(|why| ShownUnjudged {
        rules: rules(&|verdict| *verdict == Verdict::Unjudged(*why)),
        why: why.describe(),
    });
    ShownReport {
        title: report.title(),
        findings: report.found().map(shown_finding).collect(),
        fine: rules(&|verdict| *verdict == Verdict::Fine),
        unjudged: unjudged.filter(|one| !one.rules.is_empty()).collect(),
        takeover: match &report.takeover {
            // Without texts: many may see the page, and these are everybody's on the server.
            TakeoverSeen::Known(takeover) => takeover.summary(),
            TakeoverSeen::Unknown(why) => {
                let why = why.describe();
                format!("What Remora could take over isn't known. {why}")
            }
        },
    }
}

fn shown_finding((judgement, finding): (&Judgement, &Finding)) -> ShownFinding {
    ShownFinding {
        rule: judgement.rule.as_str(),
        about: judgement.rule.describe(),
        meaning: finding.meaning.clone(),
        evidence: judgement.evidence.iter().map(ToString::to_string).collect(),
        remedy: finding.remedy.clone(),
        settings: finding.settings.iter().map(ToString::to_string).collect(),
    }
}
