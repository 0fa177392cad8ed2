//! Which results are worth storing.

use remora::digests::DigestReport;
use remora_testkit::load::Random;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, PATIENCE, lease};

const NOT_WORTH: &str = "not_worth_storing";
const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];
/// More misses than a new digest needs to reach the first check.
const MISSES: u32 = 6_000;

fn with_storing(schema: &str, storing: &str) -> Front {
    let options = RemoraOptions::following().with("cache.storing", storing);
    Front::with(schema, options, &TABLE)
}

fn ask(number: u32) -> String {
    format!("SELECT b FROM t WHERE a = 1 AND b < {number}")
}

fn report(front: &Front) -> DigestReport {
    report_if_any(front).unwrap()
}

fn report_if_any(front: &Front) -> Option<DigestReport> {
    let digests = front.remora().app().unwrap().shared().digests.report();
    let is_asked = |digest: &DigestReport| {
        digest.text.as_deref() == Some("SELECT b FROM t WHERE a = ? AND b < ?")
    };
    digests.into_iter().find(is_asked)
}

/// Asks so many times for results that nobody has asked for.
fn ask_for_new(front: &Front, times: u32) {
    let mut client = front.guest().into_client();
    let counted_before = front.counted();
    let before = report_if_any(front).map_or(0, |report| report.misses);
    let first = 1_000 + u32::try_from(before).unwrap();
    for number in first..first + times {
        client.query(&ask(number)).unwrap();
    }
    // Else a guest could take the last of them for its own.
    wait_for("all of them to be counted", PATIENCE, || {
        let counted = front.counted() - counted_before;
        Ok((counted >= u64::from(times)).then_some(()))
    })
    .unwrap();
}

/// Has one result in memory, and asks for new ones until some aren't stored.
fn ask_until_refused(front: &Front) {
    let mut guest = front.guest();
    let expected = front.direct().query_bytes(&ask(1)).unwrap().to_vec();
    guest.becomes_hit(&ask(1), &expected);
    wait_for("results not to be stored", PATIENCE, || {
        ask_for_new(front, 500);
        Ok((refused(&report(front)) > 100).then_some(()))
    })
    .unwrap();
}

fn refused(report: &DigestReport) -> u64 {
    let mut refusals = report.refusals.iter();
    let found = refusals.find(|refused| refused.reason == NOT_WORTH);
    found.map_or(0, |refused| refused.count)
}

#[test]
fn only_results_that_nobody_asks_for_again_stop_being_stored() {
    let front = Front::new("not_worth", &TABLE);
    ask_until_refused(&front);
    let seen = report(&front);
    assert!(seen.only_a_sample, "{seen:#?}");
    // It was tried before.
    assert!(seen.fills > 1_000, "{seen:#?}");
    // Operators are told.
    let asked = format!("EXPLAIN REMORA {}", ask(5));
    let explained = front.guest().run(&asked).bytes;
    let explained = String::from_utf8_lossy(&explained).into_owned();
    assert!(explained.contains("only_a_sample"), "{explained}");
    assert!(explained.contains(NOT_WORTH), "{explained}");
    // What is in memory is served, and other queries are stored as before.
    let mut guest = front.guest();
    let mut direct = front.direct();
    for sql in [ask(1), "SELECT a FROM t WHERE b = 20".to_owned()] {
        let expected = direct.query_bytes(&sql).unwrap().to_vec();
        guest.becomes_hit(&sql, &expected);
    }
    // Answers that aren't stored are the server's own, in and outside transactions.
    let new = (0..100_u32).map(|number| ask(100_000 + number));
    for (sql, begins) in new.zip([true, false].into_iter().cycle()) {
        if begins {
            guest.setup(&["BEGIN"]);
        }
        let expected = direct.query_bytes(&sql).unwrap().to_vec();
        let bytes = guest.run(&sql).bytes;
        if begins {
            // The status flags tell of the transaction.
            assert_eq!(bytes.len(), expected.len(), "{sql}");
            guest.setup(&["COMMIT"]);
        } else {
            assert_eq!(bytes, expected, "{sql}");
        }
    }
}

#[test]
fn a_digest_is_stored_again_when_its_results_are_asked_for_again() {
    let front = Front::new("worth_again", &TABLE);
    ask_until_refused(&front);
    assert!(report(&front).only_a_sample);
    let (mut client, mut random) = (front.guest().into_client(), Random::new(7));
    let mut new = 0;
    // A hundred texts, again and again, for as long as it takes until a sample is stored.
    wait_for("results to be stored again", PATIENCE, || {
        for _ in 0..500 {
            let number = u32::try_from(random.below(100)).unwrap();
            client.query(&ask(500_000 + number)).unwrap();
        }
        // It is a miss that makes Remora look.
        new += 1;
        client.query(&ask(700_000 + new)).unwrap();
        Ok((!report(&front).only_a_sample).then_some(()))
    })
    .unwrap();
    let before = report(&front);
    for number in 0..100 {
        client.query(&ask(600_000 + number)).unwrap();
    }
    let after = report(&front);
    assert_eq!(refused(&after), refused(&before), "{after:#?}");
}

#[test]
fn all_results_are_stored_when_configured() {
    let front = with_storing("always_stored", "always");
    ask_for_new(&front, MISSES);
    let seen = report(&front);
    assert!(!seen.only_a_sample && refused(&seen) == 0, "{seen:#?}");
}

#[test]
fn only_a_sample_is_stored_when_configured() {
    let front = with_storing("sampled", "sample");
    wait_for("some results to be stored and others not", PATIENCE, || {
        ask_for_new(&front, 100);
        let seen = report(&front);
        Ok((seen.fills > 0 && refused(&seen) > 0).then_some(()))
    })
    .unwrap();
}

#[test]
fn prepared_statements_are_judged_like_text() {
    use remora_testkit::client::Value;
    let front = Front::on(
        lease(),
        "not_worth_prepared",
        RemoraOptions::following(),
        &TABLE,
    );
    let mut client = front.guest().into_client();
    let statement = client
        .prepare(b"SELECT b FROM t WHERE a = ? AND b < ?")
        .unwrap();
    let mut numbers = 0_i64..;
    wait_for("executions not to be stored", PATIENCE, || {
        for number in numbers.by_ref().take(500) {
            let values = [Value::Int(1), Value::Int(number)];
            client.execute(statement, &values).unwrap();
        }
        Ok((refused(&report(&front)) > 100).then_some(()))
    })
    .unwrap();
    assert!(report(&front).only_a_sample);
}

#[test]
fn a_write_outdates_the_results_of_a_sampled_digest() {
    let front = Front::new("not_worth_written", &TABLE);
    ask_until_refused(&front);
    assert!(report(&front).only_a_sample);
    let (mut guest, mut writer) = (front.guest(), front.guest());
    for _ in 0..3 {
        writer.setup(&["UPDATE t SET b = b + 1 WHERE a = 1"]);
        let expected = front.direct().query_bytes(&ask(1)).unwrap().to_vec();
        assert_eq!(guest.run(&ask(1)).bytes, expected);
        guest.becomes_hit(&ask(1), &expected);
    }
}
