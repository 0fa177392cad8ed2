//! Where the time of single statements goes: traced, a share of them or all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod front;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use remora::explain::client;
use remora::reason::Stage;
use remora::traces::{Trace, TraceReport, table};
use remora_lab::client::Value;
use remora_lab::process::wait_for;
use remora_lab::proxies::RemoraOptions;

use remora_wire::packet::put_message;

use front::raw::Raw;
use front::{Front, PATIENCE};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(2000)) ENGINE = InnoDB",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, REPEAT('x', 2000))",
];

/// Every statement is traced.
fn tracing() -> RemoraOptions {
    RemoraOptions::following().with("observe.trace_sample", "1.0")
}

fn traces(front: &Front) -> Vec<Arc<Trace>> {
    front.remora().app().unwrap().shared().traces.newest()
}

/// What a trace's statement became, as the tests call it.
fn outcome(trace: &Trace) -> &'static str {
    match trace.outcome.reason() {
        "" => trace.outcome.as_str(),
        reason => reason,
    }
}

/// The newest trace of a normalised text with this outcome.
fn trace_of(front: &Front, text: &str, of: &str) -> Arc<Trace> {
    let found = wait_for("the trace", PATIENCE, || {
        let is_it = |trace: &Arc<Trace>| {
            let statement = trace.statement.as_ref();
            statement.is_some_and(|(_, known)| known == text) && outcome(trace) == of
        };
        Ok(traces(front).into_iter().find(is_it))
    });
    found.unwrap_or_else(|error| panic!("{text} as {of}: {error}: {:#?}", traces(front)))
}

fn took(trace: &Trace, stage: Stage) -> Duration {
    trace.stages[stage as usize]
}

/// Each stage that must have taken time has, and none that can't have; together they are the whole.
fn assert_stages(trace: &Trace, passed: &[Stage], not: &[Stage]) {
    assert_eq!(trace.stages.iter().sum::<Duration>(), trace.took);
    for stage in passed {
        assert!(!took(trace, *stage).is_zero(), "{stage:?} of {trace:#?}");
    }
    for stage in not {
        assert!(took(trace, *stage).is_zero(), "{stage:?} of {trace:#?}");
    }
}

const OF_THE_SERVER: [Stage; 4] = [Stage::Analysis, Stage::Plan, Stage::Server, Stage::Store];

#[test]
fn each_outcome_has_its_stages() {
    let front = Front::with("traced", tracing(), &TABLE);
    let before = SystemTime::now();
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 2";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    let text = "SELECT b FROM t WHERE a = ?";
    let hit = trace_of(&front, text, "hit");
    let from_memory = [Stage::Key, Stage::LookUp, Stage::Check, Stage::Write];
    assert_stages(&hit, &from_memory, &OF_THE_SERVER);
    assert_eq!(hit.bytes, expected.len() as u64);
    let fill = trace_of(&front, text, "fill");
    assert_stages(&fill, &OF_THE_SERVER, &[Stage::Read, Stage::Check]);
    assert_stages(&fill, &[Stage::Key, Stage::LookUp, Stage::Write], &[]);
    assert_eq!(fill.bytes, expected.len() as u64);
    assert!(before <= fill.at && fill.at <= hit.at && hit.at <= SystemTime::now());
    assert!(hit.account.is_some() && hit.schema.as_deref() == Some("traced"));

    guest.run("UPDATE t SET b = b + 1 WHERE a = 1");
    let write = trace_of(&front, "UPDATE t SET b = b + ? WHERE a = ?", "write");
    let passed = [Stage::Analysis, Stage::Plan, Stage::Server, Stage::Write];
    assert_stages(&write, &passed, &[Stage::LookUp, Stage::Store]);
    guest.always_passes("SELECT NOW(), a FROM t", "statement_clock_function");
    let bypass = trace_of(&front, "SELECT NOW(), a FROM t", "statement_clock_function");
    assert_stages(&bypass, &passed, &[Stage::Store]);
    let (_, answer) = guest.observe(|client| client.query("SELECT nothing FROM t").map(drop));
    assert!(answer.is_err());
    let error = trace_of(&front, "SELECT nothing FROM t", "answer_is_error");
    assert_eq!(error.error, Some(1054));
    // One for each statement, and nothing else.
    let metrics = front.remora().metrics().unwrap();
    let counted = metrics.sum("remora_traces_total");
    #[allow(clippy::cast_precision_loss)]
    let kept = traces(&front).len() as f64;
    assert!((counted - kept).abs() < 0.5, "{counted} and {kept}");
}

#[test]
fn a_long_answer_and_a_long_statement_have_their_stages() {
    let front = Front::with("traced_long", tracing(), &TABLE);
    let mut guest = front.guest();
    // Some megabytes, which come and go in many pieces.
    let sql = "SELECT REPEAT(s, 1000) FROM t WHERE a = 3";
    guest.run(sql);
    let long = wait_for("the trace of the answer", PATIENCE, || {
        let mut all = traces(&front).into_iter();
        Ok(all.find(|trace| trace.bytes > 2_000_000))
    });
    let passed = [Stage::Server, Stage::Answer, Stage::Write];
    assert_stages(&long.unwrap(), &passed, &[Stage::Check]);
    // More than is read at once.
    let filler = "x".repeat(100_000);
    guest.run(&format!("SELECT a FROM t WHERE s = '{filler}' AND b = 1"));
    let text = "SELECT a FROM t WHERE s = ? AND b = ?";
    let in_pieces = wait_for("the trace of the statement", PATIENCE, || {
        let of = |trace: &Arc<Trace>| trace.statement.as_ref().is_some_and(|of| of.1 == text);
        Ok(traces(&front).into_iter().find(of))
    });
    assert_stages(&in_pieces.unwrap(), &[Stage::Read, Stage::Server], &[]);
    // More than is looked up.
    let filler = "x".repeat(300_000);
    guest.run(&format!("SELECT a FROM t WHERE s = '{filler}'"));
    let unread = wait_for("the trace of the longest", PATIENCE, || {
        let is_it = |trace: &Arc<Trace>| outcome(trace) == "text_too_long";
        Ok(traces(&front).into_iter().find(is_it))
    });
    assert_eq!(unread.unwrap().statement, None);
}

#[test]
fn executions_are_traced_by_their_statements() {
    let front = Front::with("traced_prepared", tracing(), &TABLE);
    let options = front.options().at(front.remora().address());
    let mut client = options.connect().unwrap();
    let id = client.prepare(b"SELECT s FROM t WHERE a = ?").unwrap();
    let text = "SELECT s FROM t WHERE a = ?";
    let hit = wait_for("a hit of the execution", PATIENCE, || {
        client.execute(id, &[Value::Int(1)])?;
        let mut all = traces(&front).into_iter();
        Ok(all.find(|trace| outcome(trace) == "hit"))
    });
    let hit = hit.unwrap();
    assert_stages(
        &hit,
        &[Stage::Key, Stage::LookUp, Stage::Check],
        &OF_THE_SERVER,
    );
    assert_eq!(hit.command.as_str(), "execute");
    assert_eq!(hit.statement.as_ref().map(|of| of.1.as_str()), Some(text));
    let fill = trace_of(&front, text, "fill");
    assert_stages(
        &fill,
        &[Stage::Key, Stage::LookUp, Stage::Plan, Stage::Server],
        &[],
    );
}

#[test]
fn traces_are_shown_without_values_and_are_bounded() {
    let options = tracing().with("observe.traces_max", "5");
    let front = Front::with("traced_shown", options, &TABLE);
    let mut guest = front.guest();
    for a in 0..20 {
        guest.run(&format!("SELECT 'secret{a}', b FROM t WHERE a = {a}"));
    }
    guest.run("SELECT 1 + 1");
    trace_of(&front, "SELECT ? + ?", "statement_no_tables");
    let admin = front.remora().admin();
    let page = client::traces(admin, None, usize::MAX).unwrap();
    assert!(!page.contains("secret"), "{page}");
    let shown: Vec<TraceReport> = serde_json::from_str(&page).unwrap();
    assert_eq!(shown.len(), 5);
    assert_eq!(shown[0].text.as_deref(), Some("SELECT ? + ?"));
    for trace in &shown {
        let sum: f64 = trace.stages.iter().map(|stage| stage.us).sum();
        assert!((sum - trace.us).abs() < 0.01, "{trace:#?}");
    }
    let digest = shown[1].digest.clone().unwrap();
    let page = client::traces(admin, Some(&digest), 3).unwrap();
    let of_digest: Vec<TraceReport> = serde_json::from_str(&page).unwrap();
    assert_eq!(of_digest, shown[1..4]);
    assert!(table(&of_digest).contains("WHERE a = ?"));
    assert!(client::traces(admin, Some("none"), 3).is_err());
    let metrics = front.remora().metrics().unwrap();
    let limit = metrics.sum_where("remora_limit_reached_total", "limit", "observe.traces_max");
    assert!(limit >= 16.0, "{limit}");
}

#[test]
fn a_share_is_traced_and_by_default_none() {
    let front = Front::new("not_traced", &TABLE);
    let mut guest = front.guest();
    for _ in 0..20 {
        guest.run("SELECT b FROM t WHERE a = 1");
    }
    assert!(traces(&front).is_empty());
    let options = RemoraOptions::following().with("observe.trace_sample", "0.3");
    let front = Front::with("traced_share", options, &TABLE);
    let mut guest = front.guest();
    let mut statements = 0;
    // The chance of all or none in a hundred is below one in 10^15.
    for _ in 0..100 {
        guest.run("SELECT b FROM t WHERE a = 1");
        statements += 1;
    }
    let traced = traces(&front).len();
    assert!(
        traced > 0 && traced < statements,
        "{traced} of {statements}"
    );
}

#[test]
fn what_is_sent_ahead_is_traced_too() {
    let front = Front::with("traced_ahead", tracing(), &TABLE);
    let mut raw = Raw::log_in(front.remora().address(), front.schema());
    let statement = |text: &str| {
        let mut message = Vec::new();
        put_message(&mut message, 0, &[b"\x03", text.as_bytes()].concat());
        message
    };
    let texts = [
        "SELECT b FROM t WHERE a = 1",
        "SELECT 2",
        "DO 3",
        "SELECT s FROM t",
    ];
    raw.send_bytes(&texts.map(statement).concat());
    let traced = wait_for("all four", PATIENCE, || {
        let all = traces(&front);
        Ok((all.len() == texts.len()).then_some(all))
    });
    let traced = traced.unwrap_or_else(|error| panic!("{error}: {:#?}", traces(&front)));
    for (trace, text) in traced
        .iter()
        .rev()
        .zip(["b FROM t WHERE a = ?", "?", "DO ?", "s FROM t"])
    {
        let known = &trace.statement.as_ref().unwrap().1;
        assert!(known.ends_with(text), "{known}");
        assert_stages(trace, &[], &[]);
    }
}
