//! Every counter against a recount: what was sent and what came of it, told one by one, and then
//! added up.

use std::collections::BTreeMap;

use remora::digests::DigestReport;
use remora_engine::reason::Outcome;
use remora_testkit::client::{StatementId, Value};
use remora_testkit::load::Random;
use remora_testkit::metrics::{self, Metrics};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, PATIENCE, PING, lease};

const SESSIONS: usize = 4;
const STATEMENTS: usize = 600;

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(20))",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three'), (4, 40, 'four')",
];

/// What must come of a statement, as far as it is known without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// Memory may have it, the server answers else.
    Cacheable,
    /// It may change something.
    Write,
    /// It is passed through for this reason, whatever the session is in.
    Refused(&'static str),
    /// It is one of these.
    OneOf(&'static [&'static str]),
}

/// A kind of statement. `{}` is a number.
struct Form {
    text: &'static str,
    /// The text without its values.
    normal: &'static str,
    known: Known,
    /// Whether it is a `SELECT` to the query cache's counters.
    is_select: bool,
}

const fn form(text: &'static str, normal: &'static str, known: Known) -> Form {
    Form {
        text,
        normal,
        known,
        is_select: true,
    }
}

const fn other(text: &'static str, normal: &'static str, known: Known) -> Form {
    Form {
        is_select: false,
        ..form(text, normal, known)
    }
}

/// Of a prepared statement; by its place in the list.
const EXECUTED: Form = form(
    "SELECT s, b FROM t WHERE a = ?",
    "SELECT s, b FROM t WHERE a = ?",
    Known::Cacheable,
);

const FORMS: [Form; 13] = [
    form(
        "SELECT b FROM t WHERE a = {}",
        "SELECT b FROM t WHERE a = ?",
        Known::Cacheable,
    ),
    form(
        "SELECT s FROM t WHERE a IN ({}, 2)",
        "SELECT s FROM t WHERE a IN (...)",
        Known::Cacheable,
    ),
    form(
        "SELECT COUNT(*) FROM t WHERE b > {}",
        "SELECT COUNT(*) FROM t WHERE b > ?",
        Known::Cacheable,
    ),
    form(
        "SELECT s, b FROM t WHERE a = {} /* and more */",
        "SELECT s, b FROM t WHERE a = ?",
        Known::Cacheable,
    ),
    // Too large to be kept.
    form(
        "SELECT REPEAT(s, 999) FROM t WHERE a < {}",
        "SELECT REPEAT(s, ?) FROM t WHERE a < ?",
        Known::Cacheable,
    ),
    form(
        "SELECT no_such_column + {} FROM t",
        "SELECT no_such_column + ? FROM t",
        Known::Cacheable,
    ),
    form(
        "SELECT NOW(), a FROM t WHERE a = {}",
        "SELECT NOW(), a FROM t WHERE a = ?",
        Known::Refused("statement_clock_function"),
    ),
    form(
        "SELECT RAND({}), a FROM t",
        "SELECT RAND(?), a FROM t",
        Known::Refused("statement_random_function"),
    ),
    form(
        "SELECT SQL_NO_CACHE a FROM t WHERE a = {}",
        "SELECT SQL_NO_CACHE a FROM t WHERE a = ?",
        Known::Refused("statement_no_cache"),
    ),
    form("SELECT {}", "SELECT ?", Known::Cacheable),
    other(
        "UPDATE t SET b = b + 1 WHERE a = {}",
        "UPDATE t SET b = b + ? WHERE a = ?",
        Known::Write,
    ),
    other(
        "REPLACE INTO t VALUES (4, {}, 'new')",
        "REPLACE INTO t VALUES (...)",
        Known::Write,
    ),
    other(
        "UPDATE no_such_table SET a = {}",
        "UPDATE no_such_table SET a = ?",
        Known::Write,
    ),
];

/// How many of them come first that memory may answer.
const READS: usize = 6;

const BEGIN: Form = other(
    "BEGIN",
    "BEGIN",
    Known::OneOf(&["statement_not_select", "transaction"]),
);
const COMMIT: Form = other(
    "COMMIT",
    "COMMIT",
    Known::OneOf(&["statement_not_select", "write", "transaction"]),
);

/// A statement that was sent, and what came of it.
struct Traced {
    /// None of a command that is no statement.
    normal: Option<&'static str>,
    outcome: &'static str,
    is_select: bool,
    sent_bytes: usize,
    answer_bytes: usize,
}

/// Header and command byte of a message.
const MESSAGE_START_BYTES: usize = 5;

fn check(known: Known, outcome: &str, sql: &str) {
    let fits = match known {
        Known::Cacheable => outcome != "write" && outcome != "statement_not_select",
        Known::Write => outcome == "write",
        Known::Refused(reason) => outcome == reason,
        Known::OneOf(outcomes) => outcomes.contains(&outcome),
    };
    assert!(fits, "{sql}: {outcome} instead of {known:?}");
}

fn run_text(guest: &mut Guest<'_>, form: &Form, number: usize) -> Traced {
    let sql = form.text.replace("{}", &number.to_string());
    let (outcome, answer_bytes) = guest.observe(|client| {
        // An error is an answer, too.
        drop(client.query(&sql).map(drop));
        client.answer_bytes().len()
    });
    check(form.known, outcome, &sql);
    Traced {
        // What Remora answers by itself has no digest.
        normal: (outcome != "transaction").then_some(form.normal),
        outcome,
        is_select: form.is_select,
        sent_bytes: MESSAGE_START_BYTES + sql.len(),
        answer_bytes,
    }
}

fn execute(guest: &mut Guest<'_>, id: StatementId, number: i64) -> Traced {
    // Number, flags, iterations, which are NULL, that types follow, a type, a value.
    const BODY_BYTES: usize = 4 + 1 + 4 + 1 + 1 + 2 + 8;
    let (outcome, answer_bytes) = guest.observe(|client| {
        let answer = client.execute(id, &[Value::Int(number)]);
        answer.unwrap().bytes().len()
    });
    check(EXECUTED.known, outcome, EXECUTED.text);
    Traced {
        normal: Some(EXECUTED.normal),
        outcome,
        is_select: true,
        sent_bytes: MESSAGE_START_BYTES + BODY_BYTES,
        answer_bytes,
    }
}

fn ping(guest: &mut Guest<'_>) -> Traced {
    let seen = guest.command(PING, &[], ResponseKind::Single);
    assert_eq!(seen.outcome, "not_a_query");
    Traced {
        normal: None,
        outcome: seen.outcome,
        is_select: false,
        sent_bytes: MESSAGE_START_BYTES,
        answer_bytes: seen.bytes.len(),
    }
}

/// Runs statements at random from several sessions, one after the other.
fn trace(front: &Front, random: &mut Random) -> Vec<Traced> {
    let mut traced = Vec::new();
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let mut guest = front.guest();
        let (outcome, (id, answer_bytes)) = guest.observe(|client| {
            let id = client.prepare(EXECUTED.text.as_bytes()).unwrap();
            (id, client.answer_bytes().len())
        });
        assert_eq!(outcome, "not_a_query");
        traced.push(Traced {
            normal: None,
            outcome,
            is_select: false,
            sent_bytes: MESSAGE_START_BYTES + EXECUTED.text.len(),
            answer_bytes,
        });
        sessions.push((guest, id));
    }
    let (mut session, mut in_transaction) = (0, false);
    while traced.len() < STATEMENTS {
        // A transaction ends before another session has its turn: nothing waits for its locks.
        if !in_transaction {
            session = random.below(SESSIONS);
        }
        let (guest, id) = &mut sessions[session];
        let number = 1 + random.below(3);
        if in_transaction && random.below(4) == 0 {
            traced.push(run_text(guest, &COMMIT, number));
            in_transaction = false;
            continue;
        }
        // Reads are more frequent than each of the others, so that some are hits.
        traced.push(match random.below(20) {
            0..9 => run_text(guest, &FORMS[random.below(READS)], number),
            9..13 => execute(guest, *id, i64::try_from(number).unwrap()),
            13 => ping(guest),
            14 if !in_transaction => {
                in_transaction = true;
                run_text(guest, &BEGIN, number)
            }
            _ => run_text(guest, &FORMS[random.below(FORMS.len())], number),
        });
    }
    if in_transaction {
        traced.push(run_text(&mut sessions[session].0, &COMMIT, 0));
    }
    // A session that answers has counted all of what it answered before.
    traced.extend(sessions.iter_mut().map(|(guest, _)| ping(guest)));
    traced
}

/// What is counted of statements, and of one digest.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    /// By outcome or reason.
    outcomes: BTreeMap<String, u64>,
    hit_bytes: u64,
}

impl Counted {
    fn add(&mut self, one: &Traced) {
        *self.outcomes.entry(one.outcome.to_owned()).or_default() += 1;
        if one.outcome == "hit" {
            self.hit_bytes += one.answer_bytes as u64;
        }
    }

    fn of(&self, outcome: &str) -> u64 {
        self.outcomes.get(outcome).copied().unwrap_or(0)
    }

    fn total(&self) -> u64 {
        self.outcomes.values().sum()
    }
}

/// A statement's outcome as `front` calls it.
fn outcome_of(label: &str) -> Outcome {
    let all = Outcome::all().iter();
    let mut named = all.filter(|outcome| outcome.reason() == label || outcome.as_str() == label);
    *named.next().unwrap_or_else(|| panic!("no outcome {label}"))
}

/// What the metrics say now.
fn told_by_metrics(metrics: &Metrics) -> Counted {
    let mut counted = Counted::default();
    for (labels, count) in metrics.labelled("remora_statements_total") {
        let label = |name: &str| {
            let rest = labels.split_once(&format!("{name}=\"")).unwrap().1;
            rest.split_once('"').unwrap().0.to_owned()
        };
        let (outcome, reason) = (label("outcome"), label("reason"));
        let name = if reason.is_empty() { outcome } else { reason };
        if count > 0.0 {
            *counted.outcomes.entry(name).or_default() += whole(count);
        }
    }
    counted.hit_bytes = whole(metrics.sum("remora_hit_bytes_total"));
    counted
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp
)]
fn whole(number: f64) -> u64 {
    assert_eq!(number, number.trunc());
    number as u64
}

/// The numbers of the metrics that a trace tells, by name.
fn told_by_trace(traced: &[Traced], all: &Counted) -> Vec<(&'static str, u64)> {
    let misses = all.outcomes.iter();
    let misses = misses.filter(|(label, _)| outcome_of(label).is_miss());
    let misses = misses.map(|(_, count)| count).sum();
    let bytes = |of: fn(&Traced) -> usize| traced.iter().map(|one| of(one) as u64).sum();
    vec![
        ("remora_hits_total", all.of("hit")),
        ("remora_hit_duration_seconds_count", all.of("hit")),
        ("remora_misses_total", misses),
        ("remora_miss_duration_seconds_count", misses),
        (
            "remora_client_received_bytes_total",
            bytes(|one| one.sent_bytes),
        ),
        (
            "remora_client_sent_bytes_total",
            bytes(|one| one.answer_bytes),
        ),
    ]
}

fn digests(front: &Front) -> Vec<DigestReport> {
    let page = metrics::get(front.remora().admin(), "/digests").unwrap();
    serde_json::from_str(&page.body).unwrap()
}

/// What a digest should say, of these statements.
fn assert_digest(normal: &str, digest: &DigestReport, counted: &Counted) {
    let expected = (
        counted.total(),
        counted.of("hit"),
        counted.total() - counted.of("hit"),
        counted.of("fill"),
        counted.of("write"),
        counted.hit_bytes,
    );
    let told = (
        digest.calls,
        digest.hits,
        digest.misses,
        digest.fills,
        digest.writes,
        digest.hit_bytes,
    );
    assert_eq!(told, expected, "{normal}: {digest:#?}, {counted:#?}");
    let mut refused = 0;
    for reason in &digest.refusals {
        assert_eq!(
            reason.count,
            counted.of(&reason.reason),
            "{normal}: {reason:?}"
        );
        refused += reason.count;
    }
    let others = counted.total() - expected.1 - expected.3 - expected.4;
    assert_eq!(
        refused + digest.refusals_of_other_reasons,
        others,
        "{normal}"
    );
    let (hits, misses) = (digest.hit_us > 0, digest.miss_us > 0);
    assert!(hits || digest.hits == 0, "{normal}: {digest:#?}");
    assert!(misses || digest.misses == 0, "{normal}: {digest:#?}");
    assert_eq!(digest.hit_p99_us.is_some(), digest.hits > 0, "{normal}");
    assert_eq!(digest.miss_p99_us.is_some(), digest.misses > 0, "{normal}");
}

/// The counters of the query cache, as a client sees them.
fn query_cache(front: &Front) -> BTreeMap<String, u64> {
    let mut client = front
        .options()
        .at(front.remora().address())
        .connect()
        .unwrap();
    let answer = client.query("SHOW GLOBAL STATUS LIKE 'Qcache%'").unwrap();
    let rows = answer.rows().unwrap().into_iter();
    let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap()).unwrap();
    rows.map(|row| (text(&row[0]), text(&row[1]).parse().unwrap()))
        .collect()
}

/// What the counters of the query cache should say.
fn assert_query_cache(front: &Front, traced: &[Traced], all: &Counted) {
    let told = query_cache(front);
    assert_eq!(told["Qcache_hits"], all.of("hit"), "{told:?}");
    assert_eq!(told["Qcache_inserts"], all.of("fill"), "{told:?}");
    assert_eq!(told["Qcache_lowmem_prunes"], 0, "{told:?}");
    let is_kept = |one: &&Traced| matches!(one.outcome, "hit" | "fill");
    let is_command = |one: &&Traced| one.outcome.starts_with("prepared_");
    let passed = traced.iter().filter(|one| one.is_select);
    let passed = passed
        .filter(|one| !is_kept(one) && !is_command(one))
        .count();
    assert_eq!(told["Qcache_not_cached"], passed as u64, "{told:?}");
    // Outdated results leave by themselves, too.
    let adds_up = wait_for("entries to add up", PATIENCE, || {
        let (told, metrics) = (query_cache(front), front.remora().metrics()?);
        let left =
            metrics.sum("remora_invalidations_total") + metrics.sum("remora_evictions_total");
        let (entries, left) = (told["Qcache_queries_in_cache"], whole(left));
        let same = entries == whole(metrics.sum("remora_store_entries"));
        Ok((same && entries + left == all.of("fill")).then_some(()))
    });
    adds_up.unwrap_or_else(|error| panic!("{error}: {:?}", query_cache(front)));
}

/// What the statements must have come to.
const OUTCOMES: [&str; 5] = [
    "hit",
    "fill",
    "write",
    "answer_too_large",
    "answer_is_error",
];

#[test]
fn every_counter_agrees_with_a_recount() {
    let seed = std::env::var("SEED").ok();
    let seed = seed.map_or_else(Random::fresh_seed, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    // So small that one of the forms is too large to be kept.
    let options = RemoraOptions::storing_all()
        .with("cache.result_bytes_max", "1KiB")
        // One that waits for a proof counts as a fill, and may never be kept.
        .with("cache.waiting_fills_max", "0");
    let front = Front::on(lease(), "recount", options, &TABLE);
    // What a login takes isn't counted.
    let before = front.remora().metrics().unwrap();
    assert_eq!(told_by_metrics(&before), Counted::default());
    let mut random = Random::new(seed);
    let (mut traced, mut all) = (Vec::new(), Counted::default());
    wait_for("each outcome", PATIENCE, || {
        let further = trace(&front, &mut random);
        for one in &further {
            all.add(one);
        }
        traced.extend(further);
        let are_all = OUTCOMES.iter().all(|outcome| all.of(outcome) > 0);
        Ok(are_all.then_some(()))
    })
    .unwrap_or_else(|error| panic!("{error}: {all:#?}"));
    let mut by_digest = BTreeMap::<&str, Counted>::new();
    for one in &traced {
        if let Some(normal) = one.normal {
            by_digest.entry(normal).or_default().add(one);
        }
    }
    let by_trace = told_by_trace(&traced, &all);
    // The bytes of the last answers are counted when they have been sent.
    let at_rest = wait_for("counters to agree", PATIENCE, || {
        let told = front.remora().metrics()?;
        let mut expected = by_trace.iter();
        Ok(expected
            .all(|(name, expected)| whole(told.sum(name)) == *expected)
            .then_some(told))
    });
    let told = at_rest.unwrap_or_else(|_| front.remora().metrics().unwrap());
    for (name, expected) in by_trace {
        assert_eq!(whole(told.sum(name)), expected, "{name}");
    }
    assert_eq!(told_by_metrics(&told), all);
    let digests = digests(&front);
    let told: BTreeMap<&str, &DigestReport> = digests
        .iter()
        .filter(|digest| digest.calls > 0)
        .map(|digest| (digest.text.as_deref().unwrap_or("all others"), digest))
        .collect();
    let normals =
        |all: Vec<&&str>| -> Vec<String> { all.into_iter().map(|one| (*one).to_owned()).collect() };
    assert_eq!(
        normals(told.keys().collect()),
        normals(by_digest.keys().collect())
    );
    for (normal, counted) in &by_digest {
        assert_digest(normal, told[normal], counted);
    }
    let sum = |of: fn(&DigestReport) -> u64| -> u64 { digests.iter().map(of).sum() };
    let commands = traced.iter().filter(|one| one.normal.is_none()).count() as u64;
    assert_eq!(sum(|digest| digest.calls), all.total() - commands);
    assert_eq!(sum(|digest| digest.hits), all.of("hit"));
    assert_eq!(sum(|digest| digest.hit_bytes), all.hit_bytes);
    assert_query_cache(&front, &traced, &all);
}
