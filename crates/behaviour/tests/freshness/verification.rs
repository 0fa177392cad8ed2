//! A share of the hits is also answered by the server, and compared: nobody notices, and what is
//! wrong is found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use remora_cache::{BrokenRules, BrokenTags};
use remora_engine::reason::{NotVerified, Verdict};
use remora_testkit::client::{Client, Value};
use remora_testkit::load::{Oracle, Random};
use remora_testkit::mixed::{self, MixedLoad, tables};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Leased, Server, ServerOptions};

use remora_behaviour::front::{Front, PATIENCE, lease};

/// For how long a result may lack a direct write.
const LAG_MS_MAX: u64 = 200;

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(20), KEY (b))",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three'), (4, 10, 'four')",
];

/// Every hit is verified.
fn verifying() -> RemoraOptions {
    verifying_with(LAG_MS_MAX, 50)
}

fn verifying_with(lag_ms_max: u64, heartbeat_ms: u64) -> RemoraOptions {
    RemoraOptions::following()
        .with("follow.lag_ms_max", &lag_ms_max.to_string())
        .with("follow.heartbeat_ms", &heartbeat_ms.to_string())
        .with("observe.verify_sample", "1.0")
        .with("observe.verify_timeout_ms", "20000")
}

fn verdict(remora: &InProcessRemora, verdict: Verdict) -> u64 {
    remora.app().unwrap().shared().metrics.rare.verdict(verdict)
}

fn not_verified(remora: &InProcessRemora, why: NotVerified) -> u64 {
    let metrics = &remora.app().unwrap().shared().metrics;
    metrics.rare.not_verified(why)
}

/// How many hits were chosen, and what came of them is known.
fn chosen(remora: &InProcessRemora) -> u64 {
    Verdict::ALL.iter().map(|it| verdict(remora, *it)).sum()
}

fn in_words(remora: &InProcessRemora) -> String {
    let verdicts = Verdict::ALL
        .iter()
        .map(|it| (it.as_str(), verdict(remora, *it)));
    let reasons = NotVerified::ALL
        .iter()
        .map(|it| (it.as_str(), not_verified(remora, *it)));
    format!("{:?}", verdicts.chain(reasons).collect::<Vec<_>>())
}

#[test]
fn a_mixed_load_is_verified_without_a_fault_and_without_being_noticed() {
    let server = Server::start(ServerOptions::default()).unwrap();
    tables::create(&mut server.app().connect().unwrap()).unwrap();
    let remora = InProcessRemora::start(&server, &verifying()).unwrap();
    let lag = Duration::from_millis(LAG_MS_MAX + 2);
    let oracle = Oracle::new(tables::COUNTERS, 0, lag);
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    let load = |reads| MixedLoad {
        through: server.app().at(remora.address()),
        direct: server.app(),
        is_mysql: server.kind().is_mysql(),
        readers: 6,
        writers_through: 2,
        writers_direct: 1,
        write_pause: Duration::from_millis(50),
        hot: Duration::from_millis(120),
        reads,
        time: Duration::from_mins(5),
        until_stale: false,
        seed,
    };
    // More than one round is needed only where little could be served.
    for _ in 0..20 {
        let report = mixed::run(&load(4_000), &oracle).unwrap();
        println!("{report}; {}", in_words(&remora));
        assert_eq!(report.stale, Vec::<String>::new());
        assert_eq!(report.impossible, Vec::<String>::new());
        if verdict(&remora, Verdict::Equal) > 500 {
            break;
        }
    }
    assert!(
        verdict(&remora, Verdict::Equal) > 500,
        "{}",
        in_words(&remora)
    );
    assert_eq!(verdict(&remora, Verdict::Fault), 0, "{}", in_words(&remora));
    let metrics = remora.metrics().unwrap();
    let shown = metrics.sum_where("remora_verifications_total", "verdict", "fault");
    assert!(shown.abs() < f64::EPSILON);
    // Each hit was chosen, and each that was chosen has a verdict.
    wait_for("the last verdicts", PATIENCE, || {
        #[allow(clippy::cast_precision_loss)]
        let chosen = chosen(&remora) as f64;
        let hits = remora.metrics()?.sum("remora_hits_total");
        Ok(((chosen - hits).abs() < 0.5).then_some(()))
    })
    .unwrap();
}

/// What a client can ask about the statement before, as fields of text.
fn asked_after(client: &mut Client, sql: &str, question: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    client.query(sql).unwrap();
    client.query(question).unwrap().rows().unwrap()
}

#[test]
fn what_is_asked_after_a_hit_is_as_without_verification() {
    let front = Front::on(lease(), "asked_after", verifying(), &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT a, s FROM t WHERE b = 10 ORDER BY a LIMIT 1";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    let questions = [
        "SELECT FOUND_ROWS()",
        "SELECT ROW_COUNT()",
        "SHOW WARNINGS",
        "SELECT @@warning_count, @@error_count",
    ];
    // The next statement waits until the last hit has been verified, and counted.
    guest.client().query("SELECT FOUND_ROWS()").unwrap();
    for question in questions {
        let expected = asked_after(&mut front.direct(), sql, question);
        // On a busy machine the follower may be behind now and then, and the statement a miss.
        wait_for("a hit before the question", PATIENCE, || {
            let (hits, before) = (front.hits(), verdict(front.remora(), Verdict::Equal));
            assert_eq!(asked_after(guest.client(), sql, question), expected);
            // The question was answered after the comparison.
            let verified = verdict(front.remora(), Verdict::Equal) - before;
            assert_eq!(verified, front.hits() - hits, "{question}");
            Ok((verified > 0).then_some(()))
        })
        .unwrap();
    }
    // After a statement with a warning, a hit takes it away.
    guest.run("SELECT CAST('x' AS SIGNED)");
    assert_eq!(
        asked_after(guest.client(), sql, "SHOW WARNINGS"),
        Vec::<Vec<_>>::new()
    );
}

/// How many `SELECT`s the server has run for a client, by its own count.
fn selects_seen(client: &mut Client) -> u64 {
    let rows = client.query("SHOW SESSION STATUS LIKE 'Com_select'");
    let rows = rows.unwrap().rows().unwrap();
    let count = rows[0][1].clone().unwrap();
    String::from_utf8(count).unwrap().parse().unwrap()
}

#[test]
fn the_server_runs_a_verified_hit_once_and_one_in_a_transaction_never() {
    // If a silent server ended the following, the session would ask for its settings again.
    let options = verifying_with(8_000, 4_000);
    let front = Front::on(lease(), "run_once", options, &TABLE);
    let mut guest = front.guest();
    guest.setup(&["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"]);
    let sql = "SELECT a, s FROM t WHERE b = 10";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    let before = selects_seen(guest.client());
    for _ in 0..5 {
        guest.becomes_hit(sql, &expected);
    }
    assert!(selects_seen(guest.client()) >= before + 5);
    // In a transaction its status differs, so it is another result.
    guest.setup(&["BEGIN"]);
    guest.becomes("hit", sql, None);
    guest.setup(&["COMMIT", "BEGIN"]);
    let (seen, hits) = (selects_seen(guest.client()), front.hits());
    let passed = not_verified(front.remora(), NotVerified::InTransaction);
    let others = (0..5).filter(|_| guest.run(sql).outcome != "hit").count();
    // Now and then a statement goes to the server so that it keeps the connection.
    assert_eq!(selects_seen(guest.client()) - seen, others as u64);
    let now = not_verified(front.remora(), NotVerified::InTransaction);
    assert_eq!(now, passed + (front.hits() - hits));
    if others == 0 {
        // Nothing is locked: a change of the definition isn't kept waiting.
        let mut direct = front.direct();
        direct.query("SET lock_wait_timeout = 20").unwrap();
        direct.query("ALTER TABLE t ADD COLUMN c INT").unwrap();
    }
    guest.setup(&["COMMIT"]);
    assert_eq!(verdict(front.remora(), Verdict::Fault), 0);
}

#[test]
fn executions_of_prepared_statements_are_verified() {
    let front = Front::on(lease(), "executions", verifying(), &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT a, s FROM t WHERE b = ? ORDER BY a";
    let mut direct = front.direct();
    let told = direct.prepare(sql.as_bytes()).unwrap();
    direct.execute(told, &[Value::Int(10)]).unwrap();
    let expected = direct.answer_bytes().to_vec();
    let (_, statement) = guest.observe(|client| client.prepare(sql.as_bytes()).unwrap());
    let before = verdict(front.remora(), Verdict::Equal);
    wait_for("executions to be verified", PATIENCE, || {
        let (outcome, ()) = guest.observe(|client| {
            client.execute(statement, &[Value::Int(10)]).unwrap();
            assert_eq!(client.answer_bytes(), expected);
        });
        let found = client_is_served(guest.client(), "SELECT FOUND_ROWS()");
        assert_eq!(found.as_deref(), Some("2"), "{outcome}");
        Ok((verdict(front.remora(), Verdict::Equal) >= before + 5).then_some(()))
    })
    .unwrap();
    assert_eq!(verdict(front.remora(), Verdict::Fault), 0);
}

fn client_is_served(client: &mut Client, sql: &str) -> Option<String> {
    client.query_value(sql).unwrap()
}

#[test]
fn a_change_on_its_way_is_no_fault() {
    let front = Front::on(lease(), "on_its_way", verifying(), &TABLE);
    let sql = "SELECT s FROM t WHERE a = 1";
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let over = &is_over;
    std::thread::scope(|scope| {
        let reader = |_| {
            let mut client = front
                .options()
                .at(front.remora().address())
                .connect()
                .unwrap();
            scope.spawn(move || {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    client.query(sql).unwrap();
                }
            })
        };
        let readers: Vec<_> = (0..4).map(reader).collect();
        let mut writer = front.direct();
        let started = Instant::now();
        let mut round = 0;
        let enough = || verdict(front.remora(), Verdict::Equal) > 200;
        while round < 100 || (!enough() && started.elapsed() < PATIENCE) {
            round += 1;
            writer
                .query(&format!("UPDATE t SET s = 'value {round}' WHERE a = 1"))
                .unwrap();
            if round <= 100 {
                std::thread::sleep(Duration::from_millis(3));
                continue;
            }
            // On a slow machine memory may not have answered in between.
            let before = verdict(front.remora(), Verdict::Equal);
            wait_for("a verified hit", PATIENCE, || {
                Ok((verdict(front.remora(), Verdict::Equal) > before).then_some(()))
            })
            .unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    println!("{}", in_words(front.remora()));
    assert!(verdict(front.remora(), Verdict::Equal) > 200);
    assert_eq!(verdict(front.remora(), Verdict::Fault), 0);
}

/// A Remora that doesn't see when a row leaves a condition, in front of a server with a table.
struct Broken {
    // Dropped in this order.
    remora: InProcessRemora,
    server: Arc<Leased>,
}

impl Broken {
    fn new(options: &RemoraOptions) -> Broken {
        let server = lease();
        let prepare = ["CREATE DATABASE broken", "USE broken"];
        let all = prepare.iter().chain(&TABLE).map(|text| (*text).to_owned());
        server.execute(all).unwrap();
        let rules = BrokenRules {
            tags: BrokenTags::BeforeImage,
            ..BrokenRules::default()
        };
        let remora = InProcessRemora::start_broken(&server, options, rules).unwrap();
        Broken { remora, server }
    }

    fn client(&self) -> Client {
        let options = self.server.app().schema("broken");
        options.at(self.remora.address()).connect().unwrap()
    }

    fn hits(&self) -> f64 {
        self.remora.metrics().unwrap().sum("remora_hits_total")
    }

    /// Asks until it comes from memory.
    fn warm(&self, client: &mut Client, sql: &str) {
        wait_for("a hit", PATIENCE, || {
            let before = self.hits();
            client.query(sql)?;
            Ok((self.hits() > before).then_some(()))
        })
        .unwrap();
    }

    /// Makes the row of `a` leave what is asked for, so that the broken rule keeps the old result.
    fn change(&self, a: u32) {
        let mut direct = self.server.app().schema("broken").connect().unwrap();
        let change = format!("UPDATE t SET b = b + 1 WHERE a = {a}");
        direct.query(&change).unwrap();
    }

    fn faults(&self) -> u64 {
        verdict(&self.remora, Verdict::Fault)
    }

    /// Asks until there are so many faults.
    fn wait_for_faults(&self, client: &mut Client, sql: &str, faults: u64) {
        let found = wait_for("a fault to be found", PATIENCE, || {
            client.query(sql)?;
            Ok((self.faults() >= faults).then_some(()))
        });
        found.unwrap_or_else(|error| panic!("{error}: {}", in_words(&self.remora)));
    }

    /// Runs a statement that is one to Remora. Says whether it passed to the server for this
    /// reason.
    fn passes_for(&self, client: &mut Client, sql: &str, reason: &str) -> bool {
        let count = || {
            let metrics = self.remora.metrics().unwrap();
            let all = metrics.sum("remora_statements_total");
            let these = metrics.sum_where("remora_statements_total", "reason", reason);
            (all, these)
        };
        let (all, these) = count();
        client.query(sql).unwrap();
        // A hit is counted after its answer was sent.
        let now = wait_for("a statement to be counted", PATIENCE, || {
            let now = count();
            Ok((now.0 > all).then_some(now.1))
        });
        now.unwrap() > these
    }
}

const OF_TEN: &str = "SELECT a, s FROM t WHERE b = 10";
const OF_THIRTY: &str = "SELECT a, s FROM t WHERE b = 30";
const ALL: &str = "SELECT COUNT(*) FROM t";

#[test]
fn a_broken_rule_is_found_and_its_digest_is_switched_off() {
    let broken = Broken::new(&verifying());
    let mut client = broken.client();
    broken.warm(&mut client, OF_TEN);
    broken.warm(&mut client, ALL);
    assert_eq!(broken.faults(), 0, "{}", in_words(&broken.remora));
    broken.change(1);
    broken.wait_for_faults(&mut client, OF_TEN, 1);
    // What was wrong isn't served again, and the answer is right now.
    let rows = client.query(OF_TEN).unwrap().rows().unwrap();
    assert_eq!(rows.len(), 1);
    let off = "digest_switched_off";
    wait_for("it to be kept no longer", PATIENCE, || {
        let is_off = broken.passes_for(&mut client, OF_THIRTY, off);
        Ok(is_off.then_some(()))
    })
    .unwrap();
    // The same statement with another value, and with other spelling.
    let respelt = "select a,s from t where b=20";
    assert!(broken.passes_for(&mut client, respelt, off));
    // Others are cached as ever.
    broken.warm(&mut client, ALL);
    let metrics = broken.remora.metrics().unwrap();
    assert!((metrics.sum("remora_digests_switched_off") - 1.0).abs() < 0.5);
    let shown = metrics.sum_where("remora_verifications_total", "verdict", "fault");
    assert!((shown - 1.0).abs() < 0.5);
    let mut prepared = broken.client();
    let statement = prepared.prepare(b"SELECT a, s FROM t WHERE b = ?").unwrap();
    let is_off = || {
        broken
            .remora
            .metrics()
            .unwrap()
            .sum_where("remora_statements_total", "reason", off)
    };
    let before = is_off();
    prepared.execute(statement, &[Value::Int(30)]).unwrap();
    assert!(is_off() > before);
}

#[test]
fn only_the_result_is_dropped_where_digests_stay_on() {
    let broken = Broken::new(&verifying().with("observe.verify_disables_digest", "false"));
    let mut client = broken.client();
    for faults in 1..=2 {
        broken.warm(&mut client, OF_TEN);
        broken.warm(&mut client, ALL);
        broken.change(if faults == 1 { 1 } else { 4 });
        broken.wait_for_faults(&mut client, OF_TEN, faults);
        broken.warm(&mut client, ALL);
    }
    let metrics = broken.remora.metrics().unwrap();
    let dropped = |reason| metrics.sum_where("remora_invalidations_total", "reason", reason);
    assert!((dropped("faulty") - 2.0).abs() < 0.5);
    // Nobody else's result was.
    assert!(dropped("forgotten") < 0.5);
}

#[test]
fn with_faults_in_too_many_digests_nothing_is_kept() {
    let broken = Broken::new(&verifying().with("observe.verify_digests_off_max", "0"));
    let mut client = broken.client();
    broken.warm(&mut client, OF_TEN);
    broken.change(1);
    broken.wait_for_faults(&mut client, OF_TEN, 1);
    wait_for("nothing to be kept any longer", PATIENCE, || {
        let is_off = broken.passes_for(&mut client, ALL, "digest_switched_off");
        Ok(is_off.then_some(()))
    })
    .unwrap();
    let metrics = broken.remora.metrics().unwrap();
    let reached = metrics.sum_where(
        "remora_limit_reached_total",
        "limit",
        "observe.verify_digests_off_max",
    );
    assert!((reached - 1.0).abs() < 0.5);
}
