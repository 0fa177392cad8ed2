//! A trace for programs.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::Trace;

/// What a stage took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its label, as in `docs/reasons.md`.
    pub stage: String,
    /// How long, microseconds.
    pub us: f64,
}

/// A traced statement, without any value of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// When its first bytes came, milliseconds since 1970 (UTC).
    pub at_ms: u64,
    /// How it came: `query` or `execute`.
    pub command: String,
    /// Its digest, 16 hexadecimal digits; none if it couldn't be read.
    pub digest: Option<String>,
    /// Its text without values.
    pub text: Option<String>,
    /// The session's account, if it is known.
    pub account: Option<String>,
    /// The session's default schema, if it is known.
    pub schema: Option<String>,
    /// What became of it, as in `docs/reasons.md`.
    pub outcome: String,
    /// Why, of a bypass.
    pub reason: Option<String>,
    /// The number of the error that the server answered with.
    pub error: Option<u16>,
    /// Bytes of the answer.
    pub bytes: u64,
    /// What the application traces it as, as in its comment.
    pub traceparent: Option<String>,
    /// How long it took, microseconds.
    pub us: f64,
    /// What of that each stage took; those that took nothing are left out.
    pub stages: Vec<StageReport>,
}

impl From<&Trace> for TraceReport {
    fn from(trace: &Trace) -> TraceReport {
        let at = trace.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (digest, text) = match &trace.statement {
            Some((digest, text)) => (Some(digest.to_string()), Some(text.clone())),
            None => (None, None),
        };
        let reason = trace.outcome.reason();
        let stages = trace.stages_passed().map(|(stage, took)| StageReport {
            stage: stage.as_str().to_owned(),
            us: microseconds(took),
        });
        TraceReport {
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            command: trace.command.as_str().to_owned(),
            digest,
            text,
            account: trace.account.clone(),
            schema: trace.schema.clone(),
            outcome: trace.outcome.as_str().to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            error: trace.error,
            bytes: trace.bytes,
            traceparent: trace.parent.map(|parent| parent.to_string()),
            us: microseconds(trace.took),
            stages: stages.collect(),
        }
    }
}

/// With the nanoseconds behind the point.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    #[allow(
        clippy::cast_precision_loss,
        reason = "exact for times below a hundred days"
    )]
    let nanoseconds = duration.as_nanos() as f64;
    nanoseconds / 1e3
}
