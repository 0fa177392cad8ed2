//! Where the time of single statements goes: traced, a share of them or all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use remora::admin::client;
use remora::traces::{Trace, TraceReport, table};
use remora_engine::reason::Stage;
use remora_testkit::client::{Client, ConnectOptions, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_wire::StatusFlags;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;

use remora_behaviour::front::raw::Raw;
use remora_behaviour::front::{Front, PATIENCE};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(2000)) ENGINE = InnoDB",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, REPEAT('x', 2000))",
];

/// Every statement is traced.
fn tracing() -> RemoraOptions {
    let all = RemoraOptions::following().with("observe.trace_sample", "1.0");
    // On a busy machine a result becomes a hit after some attempts, which are traced, too.
    all.with("observe.traces_max", "65536")
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
    assert_stages(&fill, &OF_THE_SERVER, &[Stage::Read]);
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
    let mut last = "";
    let kept_not = wait_for("the error not to be kept", PATIENCE, || {
        // An error says nothing of the session's flags, and without them nothing is looked up.
        guest.run("SELECT 1");
        let (outcome, answer) =
            guest.observe(|client| client.query("SELECT nothing FROM t").map(drop));
        assert!(answer.is_err());
        last = outcome;
        Ok((outcome == "answer_is_error").then_some(()))
    });
    kept_not.unwrap_or_else(|error| panic!("{error}: {last}"));
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
fn no_value_shows_where_it_is_not_certain_where_values_end() {
    let front = Front::with("traced_sjis", tracing(), &TABLE);
    let mut guest = front.guest();
    guest.setup(&["SET NAMES sjis"]);
    // Has the settings asked for.
    guest.always_passes("SELECT a FROM t WHERE a = 1", "charset_unsafe");
    // The second byte of the one character is that of a backslash.
    let statement = b"SELECT a FROM t WHERE s = '\x95\x5c' OR s = 'secret'";
    guest.command(0x03, statement, ResponseKind::Results);
    // Settings that aren't asked for, because it looks back: a backslash may mean something or
    // nothing.
    let mut other = front.guest();
    let statement = b"SELECT ROW_COUNT(), 'C:\\', 'secret' FROM t";
    other.command(0x03, statement, ResponseKind::Results);
    // A trace is there when its statement has been answered for good.
    for guest in [&mut guest, &mut other] {
        guest.run("SELECT 7 FROM t");
    }
    let traced = traces(&front);
    assert!(traced.iter().any(|trace| trace.statement.is_none()));
    let digests = front.remora().app().unwrap().shared().digests.report();
    let texts = traced
        .iter()
        .filter_map(|trace| Some(trace.statement.as_ref()?.1.clone()))
        .chain(digests.into_iter().filter_map(|digest| digest.text));
    for text in texts {
        assert!(!text.contains("secret"), "{text}");
    }
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
    guest.run("SELECT 1 + @a");
    trace_of(&front, "SELECT ? + @a", "statement_user_variable");
    let admin = front.remora().admin();
    let page = client::traces(admin, None, usize::MAX).unwrap();
    assert!(!page.contains("secret"), "{page}");
    let shown: Vec<TraceReport> = serde_json::from_str(&page).unwrap();
    assert_eq!(shown.len(), 5);
    assert_eq!(shown[0].text.as_deref(), Some("SELECT ? + @a"));
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

/// A collector of a test's own: answers with a status, and gives each body.
struct Collector {
    address: SocketAddr,
    bodies: Receiver<serde_json::Value>,
}

impl Collector {
    fn start(status: u16) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, bodies) = channel();
        // It ends with the test's process, or when nobody listens to it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let body = answer_one(stream.unwrap(), status);
                if sender.send(body).is_err() {
                    break;
                }
            }
        });
        Collector { address, bodies }
    }

    /// The next spans, of however many statements.
    fn spans(&self) -> Vec<serde_json::Value> {
        let body = self.bodies.recv_timeout(PATIENCE).unwrap();
        let resource = &body["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(service["key"], "service.name");
        assert_eq!(service["value"]["stringValue"], "cache");
        let spans = &resource["scopeSpans"][0]["spans"];
        spans.as_array().unwrap().clone()
    }
}

/// Reads one request and answers it. Gives its body.
fn answer_one(stream: TcpStream, status: u16) -> serde_json::Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
    while line.trim_end() != "" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\n{{}}");
    reader.into_inner().write_all(answer.as_bytes()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Every statement is traced and sent there.
fn sending(address: SocketAddr) -> RemoraOptions {
    tracing()
        .with("opentelemetry.endpoint", &format!("http://{address}"))
        .with("opentelemetry.service_name", "cache")
}

/// The value of a span's attribute, a text.
fn attribute(span: &serde_json::Value, key: &str) -> Option<String> {
    let all = span["attributes"].as_array()?;
    let found = all.iter().find(|it| it["key"] == key)?;
    Some(found["value"]["stringValue"].as_str()?.to_owned())
}

fn nanoseconds(span: &serde_json::Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

#[test]
fn traces_are_sent_to_a_collector_with_their_parents() {
    let collector = Collector::start(200);
    let patient = sending(collector.address).with("opentelemetry.timeout_ms", "20000");
    let front = Front::with("traced_sent", patient, &TABLE);
    let mut guest = front.guest();
    let parent = "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01";
    let sql = format!("SELECT b FROM t WHERE a = 2 /*traceparent='{parent}'*/");
    let expected = front.direct().query_bytes(&sql).unwrap().to_vec();
    guest.becomes_hit(&sql, &expected);
    let mut spans = Vec::new();
    let is_hit =
        |span: &serde_json::Value| attribute(span, "remora.outcome").as_deref() == Some("hit");
    while !spans.iter().any(is_hit) {
        spans = collector.spans();
    }
    let hit = spans.iter().find(|span| is_hit(span)).unwrap();
    assert_eq!(hit["traceId"], "5bd66ef5095369c7b0d1f8f4bd33716a");
    assert_eq!(hit["parentSpanId"], "c532cb4098ac3dd2");
    assert_eq!(hit["kind"], 2);
    assert_eq!(hit["name"], "SELECT");
    let text = attribute(hit, "db.query.text").unwrap();
    assert_eq!(text, "SELECT b FROM t WHERE a = ?");
    let system = if front.server().kind().is_mysql() {
        "mysql"
    } else {
        "mariadb"
    };
    assert_eq!(attribute(hit, "db.system.name").as_deref(), Some(system));
    // The stages are its children, one behind the other.
    let of_hit = |span: &&serde_json::Value| span["parentSpanId"] == hit["spanId"];
    let mut at = nanoseconds(hit, "startTimeUnixNano");
    for child in spans.iter().filter(of_hit) {
        assert_eq!(child["traceId"], hit["traceId"]);
        assert_eq!(nanoseconds(child, "startTimeUnixNano"), at, "{child:#?}");
        at = nanoseconds(child, "endTimeUnixNano");
    }
    assert_eq!(at, nanoseconds(hit, "endTimeUnixNano"));
    let dropped = front.remora().metrics().unwrap();
    assert!(dropped.sum("remora_traces_dropped_total") < 0.5);
}

/// Runs statements until so many traces have been dropped for a reason.
fn until_dropped(front: &Front, reason: &str) {
    let mut guest = front.guest();
    let dropped = wait_for("dropped traces", PATIENCE, || {
        for _ in 0..10 {
            guest.run("SELECT 1");
        }
        let metrics = front.remora().metrics()?;
        let count = metrics.sum_where("remora_traces_dropped_total", "reason", reason);
        Ok((count > 0.5).then_some(()))
    });
    dropped.unwrap_or_else(|error| panic!("{reason}: {error}"));
}

#[test]
fn a_collector_that_takes_nothing_costs_a_counter() {
    // Nobody listens any more.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    until_dropped(
        &Front::with("traced_gone", sending(gone), &TABLE),
        "unreachable",
    );
    let refusing = Collector::start(503);
    let front = Front::with("traced_refused", sending(refusing.address), &TABLE);
    until_dropped(&front, "refused");
    // This one accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = sending(silent.local_addr().unwrap())
        .with("opentelemetry.queue_max", "2")
        .with("opentelemetry.timeout_ms", "1000");
    let front = Front::with("traced_silent", options, &TABLE);
    until_dropped(&front, "queue_full");
    until_dropped(&front, "unreachable");
    let metrics = front.remora().metrics().unwrap();
    for limit in ["opentelemetry.queue_max", "opentelemetry.timeout_ms"] {
        let reached = metrics.sum_where("remora_limit_reached_total", "limit", limit);
        assert!(reached > 0.5, "{limit}");
    }
}

/// The rows of an `EXPLAIN REMORA ANALYZE`: each stage with its microseconds, and the note of the
/// whole.
fn analyze(client: &mut Client, sql: &str) -> (Vec<String>, String) {
    let answer = client.query(&format!("EXPLAIN REMORA ANALYZE {sql}"));
    let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let names = answer.column_names().unwrap();
    assert_eq!(names, ["stage", "microseconds", "note"], "{sql}");
    let text = |field: Option<Vec<u8>>| String::from_utf8(field.unwrap()).unwrap();
    let rows = answer.rows().unwrap().into_iter();
    let rows: Vec<Vec<String>> = rows
        .map(|row| row.into_iter().map(text).collect())
        .collect();
    let (whole, stages) = rows.split_last().unwrap();
    let sum: f64 = stages
        .iter()
        .map(|row| row[1].parse::<f64>().unwrap())
        .sum();
    assert_eq!(whole[0], "total");
    assert!(
        (sum - whole[1].parse::<f64>().unwrap()).abs() < 0.01,
        "{rows:?}"
    );
    let stages = stages.iter().map(|row| row[0].clone()).collect();
    (stages, whole[2].clone())
}

/// Analyses until the note of the whole begins so. Gives the stages.
fn analyzed_as(client: &mut Client, sql: &str, note: &str) -> Vec<String> {
    let mut last = String::new();
    let stages = wait_for("the analysis", PATIENCE, || {
        let (stages, seen) = analyze(client, sql);
        let is_it = seen.starts_with(note);
        last = seen;
        Ok(is_it.then_some(stages))
    });
    stages.unwrap_or_else(|error| panic!("{sql} never was {note} but {last}: {error}"))
}

fn has(stages: &[String], stage: Stage) -> bool {
    stages.iter().any(|known| known == stage.as_str())
}

#[test]
fn analyze_runs_a_statement_and_keeps_its_result() {
    let front = Front::new("analyzed", &TABLE);
    for (number, deprecate_eof) in [true, false].into_iter().enumerate() {
        let options = ConnectOptions {
            deprecate_eof,
            ..front.options()
        };
        let mut guest = front.guest_as(&options);
        let sql = format!("SELECT b, a FROM t WHERE a >= 2 AND a <> 7{number}");
        let expected = options
            .connect()
            .unwrap()
            .query_bytes(&sql)
            .unwrap()
            .to_vec();
        let miss = analyzed_as(guest.client(), &sql, "fill; ");
        for stage in OF_THE_SERVER {
            assert!(has(&miss, stage), "{stage:?}: {miss:?}");
        }
        let note = format!("hit; {} bytes", expected.len());
        let hit = analyzed_as(guest.client(), &sql, &note);
        for stage in [Stage::Key, Stage::LookUp, Stage::Check] {
            assert!(has(&hit, stage), "{stage:?}: {hit:?}");
        }
        assert!(!has(&hit, Stage::Server), "{hit:?}");
        // The client asks about the statement that was analysed.
        let found = guest.client().query_value("SELECT FOUND_ROWS()").unwrap();
        assert_eq!(found.as_deref(), Some("2"));
        guest.settle();
        guest.becomes_hit(&sql, &expected);
        // A write through Remora outdates what was analysed, too.
        guest.setup(&["UPDATE t SET b = b + 1 WHERE a = 2"]);
        let (_, note) = analyze(guest.client(), &sql);
        assert!(!note.starts_with("hit"), "{note}");
    }
}

#[test]
fn analyze_gives_the_servers_errors_and_stays_in_the_transaction() {
    let front = Front::new("analyzed_errors", &TABLE);
    let mut direct = front.direct();
    let mut guest = front.guest();
    for sql in [
        "SELECT nothing FROM t",
        "SELECT a FROM nowhere",
        "SELECT a FROM",
    ] {
        let expected = direct.query(sql).map(drop).unwrap_err().code();
        let analyze = format!("EXPLAIN REMORA ANALYZE {sql}");
        let seen = guest.client().query(&analyze).map(drop).unwrap_err().code();
        assert_eq!(seen, expected, "{sql}");
    }
    // What isn't a SELECT is the server's, which doesn't know it.
    for sql in [
        "UPDATE t SET b = 0",
        "DELETE FROM t",
        "SELECT 1; DELETE FROM t",
    ] {
        let analyze = format!("EXPLAIN REMORA ANALYZE {sql}");
        assert!(guest.client().query(&analyze).is_err(), "{sql}");
    }
    guest.setup(&["BEGIN", "INSERT INTO t VALUES (9, 90, '')"]);
    let sql = "SELECT COUNT(*) FROM t";
    let answer = guest
        .client()
        .query(&format!("EXPLAIN REMORA ANALYZE {sql}"));
    assert!(answer.unwrap().status().has(StatusFlags::IN_TRANSACTION));
    let (_, note) = analyze(guest.client(), sql);
    assert!(note.starts_with("bypass, "), "{note}");
    guest.setup(&["ROLLBACK"]);
    let count = guest.client().query_value(sql).unwrap();
    assert_eq!(count.as_deref(), Some("3"));
}
