//! Traces as OTLP over HTTP takes them, in JSON: the mapping of `ExportTraceServiceRequest`.
//!
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>,
//! <https://opentelemetry.io/docs/specs/semconv/database/mysql/>
//!
//! A statement is a span, each of its stages a child. A stage may come in pieces; its span has
//! their sum, and the spans stand one behind the other in the order of the stages.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Trace;

const KIND_INTERNAL: u32 = 1;
const KIND_SERVER: u32 = 2;
const STATUS_ERROR: u32 = 2;

/// Gives the numbers of traces and spans.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    random: RandomState,
    given: u64,
}

impl Numbers {
    /// A number that isn't 0 and, but for chance, nobody else's.
    fn next(&mut self) -> u64 {
        self.given += 1;
        self.random.hash_one(self.given).max(1)
    }
}

/// The body of a request with these traces.
pub(super) fn body(service_name: &str, traces: &[&Trace], numbers: &mut Numbers) -> Value {
    let mut spans = Vec::new();
    for trace in traces {
        push_spans(&mut spans, trace, numbers);
    }
    let scope = json!({"name": "remora", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", service_name)]},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

fn push_spans(spans: &mut Vec<Value>, trace: &Trace, numbers: &mut Numbers) {
    let trace_id = trace.parent.map_or_else(
        || u128::from(numbers.next()) << 64 | u128::from(numbers.next()),
        |parent| parent.trace_id,
    );
    let trace_id = format!("{trace_id:032x}");
    let span_id = format!("{:016x}", numbers.next());
    let operation = operation(trace);
    let mut span = json!({
        "traceId": trace_id,
        "spanId": span_id,
        "name": operation.unwrap_or("statement"),
        "kind": KIND_SERVER,
        "startTimeUnixNano": nanoseconds(trace.at, Duration::ZERO),
        "endTimeUnixNano": nanoseconds(trace.at, trace.took),
        "attributes": attributes(trace, operation),
    });
    if let Some(parent) = trace.parent {
        span["parentSpanId"] = json!(format!("{:016x}", parent.span_id));
        span["flags"] = json!(parent.flags);
    }
    if trace.error.is_some() {
        span["status"] = json!({"code": STATUS_ERROR});
    }
    spans.push(span);
    let mut passed = Duration::ZERO;
    for (stage, took) in trace.stages_passed() {
        spans.push(json!({
            "traceId": trace_id,
            "spanId": format!("{:016x}", numbers.next()),
            "parentSpanId": span_id,
            "name": format!("remora.{}", stage.as_str()),
            "kind": KIND_INTERNAL,
            "startTimeUnixNano": nanoseconds(trace.at, passed),
            "endTimeUnixNano": nanoseconds(trace.at, passed + took),
        }));
        passed += took;
    }
}

/// The statement's first word.
fn operation(trace: &Trace) -> Option<&str> {
    let (_, text) = trace.statement.as_ref()?;
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    (!word.is_empty()).then_some(word)
}

fn attributes(trace: &Trace, operation: Option<&str>) -> Vec<Value> {
    let system = if trace.is_mariadb { "mariadb" } else { "mysql" };
    let bytes = json!({"intValue": trace.bytes.to_string()});
    let mut attributes = vec![
        text("db.system.name", system),
        text("remora.outcome", trace.outcome.as_str()),
        text("remora.command", trace.command.as_str()),
        json!({"key": "remora.response.bytes", "value": bytes}),
    ];
    let reason = trace.outcome.reason();
    let error = trace.error.map(|code| code.to_string());
    let statement = trace.statement.as_ref();
    let digest = statement.map(|(digest, _)| digest.to_string());
    let known = [
        ("db.operation.name", operation),
        ("db.query.text", statement.map(|(_, text)| text.as_str())),
        ("db.namespace", trace.schema.as_deref()),
        ("db.response.status_code", error.as_deref()),
        ("error.type", error.as_deref()),
        ("remora.reason", Some(reason).filter(|it| !it.is_empty())),
        ("remora.digest", digest.as_deref()),
        ("remora.account", trace.account.as_deref()),
    ];
    let known = known.into_iter();
    attributes.extend(known.filter_map(|(key, value)| Some(text(key, value?))));
    attributes
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// So much after a moment, nanoseconds since 1970: as text, as the mapping wants it.
fn nanoseconds(at: SystemTime, after: Duration) -> String {
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    (at + after).as_nanos().to_string()
}
