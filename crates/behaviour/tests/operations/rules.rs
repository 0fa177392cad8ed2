//! What an operator decides while Remora runs: rules about what is cached, what is held, and who
//! may ask for that.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use remora::admin::client::Request;
use remora_testkit::client::Value;
use remora_testkit::metrics::{Page, get, post};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};

use remora_behaviour::front::{Front, OTHER_PASSWORD, OTHER_USER, PATIENCE, lease};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];

const TOKEN: &str = "open-sesame";

/// A file that only its owner can read.
fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn token_file(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("token");
    put(&path, TOKEN);
    path
}

fn with_token(path: &Path) -> RemoraOptions {
    RemoraOptions::following().with("admin.token_file", &path.display().to_string())
}

fn ask(front: &Front, path: &str, token: &str) -> Page {
    let header = format!("Authorization: Bearer {token}\r\n");
    post(front.remora().admin(), path, &header).unwrap()
}

fn truth(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// The SQL that keeps readers of a table waiting until it is let go.
const HOLD: &str = "LOCK TABLES t WRITE";

#[test]
fn what_changes_something_needs_the_token_and_what_shows_something_does_not() {
    let scratch = Scratch::new().unwrap();
    let path = token_file(&scratch);
    let front = Front::with("token", with_token(&path), &TABLE);
    let admin = front.remora().admin();
    for headers in [
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic open-sesame\r\n",
        "Authorization: Bearer open-sesame2\r\n",
    ] {
        let refused = post(admin, "/flush", headers).unwrap();
        assert_eq!(
            (refused.status, refused.body.as_str()),
            (401, ""),
            "{headers}"
        );
    }
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    // A page that shows something is open, and a request that nobody makes stays none.
    assert_eq!(get(admin, "/digests").unwrap().status, 200);
    assert_eq!(get(admin, "/flush").unwrap().status, 405);
    // Read again.
    put(&path, "another");
    front.remora().app().unwrap().reload_token().unwrap();
    assert_eq!(ask(&front, "/flush", TOKEN).status, 401);
    assert_eq!(ask(&front, "/flush", "another").status, 200);
    // A file without one changes nothing.
    put(&path, "\n");
    let error = front.remora().app().unwrap().reload_token().unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    assert_eq!(ask(&front, "/flush", "another").status, 200);
}

#[test]
fn without_a_token_the_admin_listener_is_read_only() {
    let front = Front::new("no_token", &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    guest.becomes_hit(sql, &truth(&front, sql));
    for token in ["", "x"] {
        let refused = ask(&front, "/flush", token);
        assert_eq!((refused.status, refused.body.as_str()), (401, ""));
    }
    assert!(front.remora().app().unwrap().shared().store.stats().entries > 0);
}

#[test]
fn a_flush_drops_what_is_held() {
    let scratch = Scratch::new().unwrap();
    let server = lease();
    let front = Front::on(server, "flushed", with_token(&token_file(&scratch)), &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    let expected = truth(&front, sql);
    guest.becomes_hit(sql, &expected);
    guest.still_hits(sql, &expected);
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    let shared = front.remora().app().unwrap().shared();
    assert_eq!(shared.store.stats().entries, 0);
    assert_eq!(guest.run(sql).outcome, "fill");
    guest.becomes_hit(sql, &expected);
}

#[test]
fn a_flush_drops_what_is_on_its_way_into_memory() {
    let scratch = Scratch::new().unwrap();
    let server = lease();
    let front = Front::on(
        server,
        "in_flight",
        with_token(&token_file(&scratch)),
        &TABLE,
    );
    let sql = "SELECT b FROM t WHERE a = 2";
    let expected = truth(&front, sql);
    // Its settings and the table are known then.
    let mut guest = front.guest();
    guest.becomes_hit(sql, &expected);
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    let mut holder = front.direct();
    holder.query(HOLD).unwrap();
    let shared = front.remora().app().unwrap().shared();
    let seen = std::thread::scope(|scope| {
        let asked = scope.spawn(|| guest.run(sql));
        wait_for("a fill in flight", PATIENCE, || {
            Ok((shared.fills.len() == 1).then_some(()))
        })
        .unwrap();
        assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
        holder.query("UNLOCK TABLES").unwrap();
        asked.join().unwrap()
    });
    assert_eq!(seen.outcome, "not_stored_cleared");
    assert_eq!(seen.bytes, expected);
    assert_eq!(shared.store.stats().entries, 0);
    front.guest().becomes_hit(sql, &expected);
}

/// A Remora whose configuration file can be changed.
struct Ruled {
    front: Front,
    file: PathBuf,
    _scratch: Scratch,
}

impl Ruled {
    fn with(schema: &str, rules: &str, tables: &[&str]) -> Ruled {
        let scratch = Scratch::new().unwrap();
        let file = scratch.join("remora.toml");
        put(&file, rules);
        let options = with_token(&token_file(&scratch)).with_config(&file);
        // Nobody else's definitions or accounts outdate what is kept.
        let server = lease();
        Ruled {
            front: Front::on(server, schema, options, tables),
            file,
            _scratch: scratch,
        }
    }

    fn reload(&self, rules: &str) -> Page {
        put(&self.file, rules);
        ask(&self.front, "/rules/reload", TOKEN)
    }

    /// Puts other rules in force.
    fn change(&self, rules: &str) {
        let page = self.reload(rules);
        assert_eq!(page.status, 200, "{}", page.body);
    }

    fn rules(&self) -> serde_json::Value {
        let page = get(self.front.remora().admin(), "/rules").unwrap();
        serde_json::from_str(&page.body).unwrap()
    }

    fn count(&self, metric: &str, label: &str, value: &str) -> f64 {
        let metrics = self.front.remora().metrics().unwrap();
        metrics.sum_where(metric, label, value)
    }

    fn explain(&self, sql: &str, account: Option<&str>) -> String {
        let request = Request {
            statement: sql.to_owned(),
            schema: Some(self.front.schema().to_owned()),
            account: account.map(str::to_owned),
            ..Request::default()
        };
        remora::admin::client::ask(self.front.remora().admin(), &request).unwrap()
    }
}

const SHOP: [&str; 6] = [
    "CREATE TABLE price (a INT PRIMARY KEY, b INT)",
    "CREATE TABLE log_1 (a INT PRIMARY KEY, b VARCHAR(4000))",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "CREATE VIEW seen AS SELECT a FROM log_1",
    "INSERT INTO price VALUES (1, 10)",
    "INSERT INTO log_1 VALUES (1, 'x'), (2, REPEAT('y', 3000))",
];

#[test]
fn tables_are_kept_out_with_the_views_behind_which_they_are() {
    let rules = "[[rules]]\ntable = \"rule_tables.log_*\"\ncache = false\n";
    let ruled = Ruled::with("rule_tables", rules, &SHOP);
    let front = &ruled.front;
    let mut guest = front.guest();
    let free = "SELECT b FROM price";
    guest.becomes_hit(free, &truth(front, free));
    for sql in [
        "SELECT a FROM log_1",
        "SELECT a FROM rule_tables.log_1 WHERE a = 1",
        "SELECT COUNT(*) FROM price, log_1",
        "SELECT a FROM price WHERE a IN (SELECT a FROM log_1)",
        "SELECT a FROM seen",
    ] {
        guest.always_passes(sql, "rule");
        let page = ruled.explain(sql, None);
        assert!(page.contains("not cacheable (rule)"), "{page}");
        assert!(page.contains("rule 1 (line 1): never cached"), "{page}");
    }
    guest.still_hits(free, &truth(front, free));
    assert!(ruled.explain(free, None).starts_with("cacheable"));
    // A prepared statement is one too.
    for (sql, wanted) in [
        ("SELECT a FROM log_1 WHERE a = ?", "rule"),
        ("SELECT b FROM price WHERE a = ?", "hit"),
    ] {
        let id = guest.client().prepare(sql.as_bytes()).unwrap();
        let become_it = || {
            let (outcome, answer) =
                guest.observe(|client| client.execute(id, &[Value::Int(1)]).map(drop));
            answer.unwrap();
            Ok((outcome == wanted).then_some(()))
        };
        wait_for(wanted, PATIENCE, become_it).unwrap();
    }
    let decided = ruled.rules()["rules"][0]["decided"].as_u64().unwrap();
    assert!(decided >= 16, "{decided}");
    let counted = ruled.count("remora_rule_decisions_total", "outcome", "refused");
    assert!(counted >= 16.0 && ruled.front.remora().metrics().unwrap().sum("remora_rules") > 0.5);
}

#[test]
fn accounts_default_schemas_and_digests_are_told_apart() {
    let ruled = Ruled::with("rule_who", "", &SHOP);
    let front = &ruled.front;
    let sql = "SELECT b FROM rule_who.price WHERE a = 1";
    let expected = truth(front, sql);
    let mut other = front.options();
    other.user = OTHER_USER.to_owned();
    other.password = OTHER_PASSWORD.to_owned();
    let (mut guest, mut guest_of_other) = (front.guest(), front.guest_as(&other));
    ruled.change(&format!(
        "[[rules]]\naccount = \"{OTHER_USER}\"\ncache = false\n"
    ));
    guest.becomes_hit(sql, &expected);
    guest_of_other.always_passes(sql, "rule");
    let page = ruled.explain(sql, None);
    assert!(
        page.starts_with("cacheable") && page.contains("for that account alone by rule 1"),
        "{page}"
    );
    let page = ruled.explain(sql, Some("other@%"));
    assert!(page.starts_with("not cacheable (rule)"), "{page}");
    ruled.change("[[rules]]\naccount = \"other@10.1.2.3\"\ncache = false\n");
    guest_of_other.becomes_hit(sql, &expected);
    // The schema is the session's, whatever the statement names.
    front
        .server()
        .execute(["CREATE DATABASE rule_elsewhere"])
        .unwrap();
    ruled.change("[[rules]]\nschema = \"rule_elsewhere\"\ncache = false\n");
    guest.becomes_hit(sql, &expected);
    guest.setup(&["USE rule_elsewhere"]);
    guest.always_passes(sql, "rule");
    guest.setup(&["USE rule_who"]);
    guest.becomes_hit(sql, &expected);
    // As the digests' list shows it.
    let shared = front.remora().app().unwrap().shared();
    let is_it = |text: &str| text.ends_with("rule_who.price WHERE a = ?");
    let known = shared.digests.report();
    let known = known
        .iter()
        .find(|one| one.text.as_deref().is_some_and(is_it));
    let digest = known.unwrap().digest.clone().unwrap();
    ruled.change(&format!(
        "[[rules]]\ndigest = \"{digest}\"\ncache = false\n"
    ));
    guest.always_passes(sql, "rule");
    guest.always_passes(
        "select b from rule_who.price where a=2 -- another value",
        "rule",
    );
    let id = guest
        .client()
        .prepare(b"SELECT b FROM rule_who.price WHERE a = ?")
        .unwrap();
    let (outcome, answer) = guest.observe(|client| client.execute(id, &[Value::Int(1)]).map(drop));
    answer.unwrap();
    assert_eq!(outcome, "rule");
    let free = "SELECT a, b FROM rule_who.price WHERE a = 1";
    guest.becomes_hit(free, &truth(front, free));
}

#[test]
fn the_first_rule_decides_and_none_makes_cacheable_what_is_not() {
    let rules = "[[rules]]\ntable = \"*.price\"\ncache = true\n\n[[rules]]\ncache = false\n";
    let ruled = Ruled::with("rule_first", rules, &SHOP);
    let front = &ruled.front;
    let mut guest = front.guest();
    let kept = "SELECT b FROM price WHERE a = 1";
    guest.becomes_hit(kept, &truth(front, kept));
    guest.always_passes("SELECT b FROM t", "rule");
    let page = ruled.explain(kept, None);
    assert!(
        page.contains("decided by rule 1 (line 1): cached"),
        "{page}"
    );
    guest.always_passes("SELECT NOW(), b FROM price", "statement_clock_function");
    assert!(ruled.count("remora_rule_decisions_total", "outcome", "kept") > 0.5);
    // What a write outdates is outdated as ever.
    front
        .guest()
        .setup(&["UPDATE price SET b = 11 WHERE a = 1"]);
    let expected = truth(front, kept);
    assert_eq!(guest.run(kept).bytes, expected);
    guest.becomes_hit(kept, &expected);
}

#[test]
fn results_are_kept_up_to_the_size_of_a_rule() {
    let rules = "[[rules]]\ntable = \"*.log_1\"\nresult_bytes_max = \"1KiB\"\n";
    let ruled = Ruled::with("rule_size", rules, &SHOP);
    let mut guest = ruled.front.guest();
    let small = "SELECT b FROM log_1 WHERE a = 1";
    guest.becomes_hit(small, &truth(&ruled.front, small));
    guest.always_passes(
        "SELECT b FROM log_1 WHERE a = 2",
        "answer_too_large_for_rule",
    );
    // In several pieces.
    let long = "SELECT x.b, y.b, z.b FROM log_1 x, log_1 y, log_1 z";
    guest.always_passes(long, "answer_too_large_for_rule");
}

#[test]
fn a_result_is_not_served_when_it_is_older_than_a_rule_allows() {
    const TIME_TO_LIVE: Duration = Duration::from_millis(200);
    let rules = "[[rules]]\ntable = \"*.price\"\ntime_to_live_ms = 200\n";
    let ruled = Ruled::with("rule_time", rules, &SHOP);
    let front = &ruled.front;
    let mut guest = front.guest();
    let sql = "SELECT b FROM price WHERE a = 1";
    let expected = truth(front, sql);
    guest.becomes_hit(sql, &expected);
    let (mut filled_at, mut fills, mut hits) = (None::<Instant>, 0, 0);
    wait_for("results to grow too old", PATIENCE, || {
        let sent_at = Instant::now();
        let seen = guest.run(sql);
        assert_eq!(seen.bytes, expected);
        match (seen.outcome, filled_at) {
            ("hit", Some(filled_at)) => {
                hits += 1;
                // Its age counts from before its answer came; the clock counts whole milliseconds.
                let age = sent_at.saturating_duration_since(filled_at);
                assert!(age <= TIME_TO_LIVE + Duration::from_millis(2), "{age:?}");
            }
            ("fill", _) => {
                fills += 1;
                filled_at = Some(Instant::now());
            }
            _ => {}
        }
        Ok((fills >= 3 && hits >= 3).then_some(()))
    })
    .unwrap();
    assert!(ruled.count("remora_invalidations_total", "reason", "expired") > 0.5);
    assert!(ruled.count("remora_rule_decisions_total", "outcome", "bounded") > 2.5);
}

#[test]
fn rules_that_are_read_again_hold_for_what_is_held_and_a_wrong_file_changes_nothing() {
    let ruled = Ruled::with("rule_again", "# none yet\n", &SHOP);
    let front = &ruled.front;
    let mut guest = front.guest();
    let sql = "SELECT b FROM price WHERE a = 1";
    let expected = truth(front, sql);
    guest.becomes_hit(sql, &expected);
    // The same rules drop nothing.
    ruled.change("# none still\n");
    guest.still_hits(sql, &expected);
    let forbid = "[[rules]]\ntable = \"rule_again.price\"\ncache = false\n";
    let page = ruled.reload(forbid);
    assert!(page.body.contains("1 rule is in force"), "{}", page.body);
    assert!(
        page.body
            .contains("new: never cached, where table = \"rule_again.price\" (line 1)"),
        "{}",
        page.body
    );
    assert_eq!(guest.run(sql).outcome, "rule");
    let wrong = format!("{forbid}\n[[rules]]\ntable = \"t\"\ncache = false\n");
    let page = ruled.reload(&wrong);
    assert_eq!(page.status, 400);
    let place = format!(
        "{}, line 6: rules.table: got \"t\", accepts schema.table",
        ruled.file.display()
    );
    assert!(page.body.contains(&place), "{}", page.body);
    assert_eq!(guest.run(sql).outcome, "rule");
    // So does one that is wrong elsewhere.
    assert_eq!(ruled.reload("[cache]\nenabled = 5\n").status, 400);
    assert_eq!(guest.run(sql).outcome, "rule");
    // What can't be taken is told.
    let page = ruled.reload("[cache]\nresult_bytes_max = \"2KiB\"\n");
    assert!(
        page.body
            .contains("they need a restart: cache.result_bytes_max"),
        "{}",
        page.body
    );
    guest.becomes_hit(sql, &expected);
    for (result, times) in [("changed", 2.0), ("unchanged", 1.0), ("refused", 2.0)] {
        let counted = ruled.count("remora_rules_reloads_total", "result", result);
        assert!((counted - times).abs() < 0.5, "{result}: {counted}");
    }
    // Only with the token.
    let refused = ask(front, "/rules/reload", "x");
    assert_eq!((refused.status, refused.body.as_str()), (401, ""));
}

#[test]
fn a_fill_in_flight_across_a_reload_is_not_kept() {
    let ruled = Ruled::with("rule_flight", "", &TABLE);
    let front = &ruled.front;
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 2";
    let expected = truth(front, sql);
    guest.becomes_hit(sql, &expected);
    assert_eq!(ask(front, "/flush", TOKEN).status, 200);
    let mut holder = front.direct();
    holder.query(HOLD).unwrap();
    let shared = front.remora().app().unwrap().shared();
    let seen = std::thread::scope(|scope| {
        let asked = scope.spawn(|| guest.run(sql));
        wait_for("a fill in flight", PATIENCE, || {
            Ok((shared.fills.len() == 1).then_some(()))
        })
        .unwrap();
        ruled.change("[[rules]]\ntable = \"*.t\"\ncache = false\n");
        holder.query("UNLOCK TABLES").unwrap();
        asked.join().unwrap()
    });
    assert_eq!((seen.outcome, seen.bytes), ("not_stored_cleared", expected));
    assert_eq!(shared.store.stats().entries, 0);
    front.guest().always_passes(sql, "rule");
}

#[test]
fn a_hang_up_signal_brings_the_new_rules() {
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("remora.toml");
    put(&file, "");
    let server = lease();
    server
        .execute([
            "CREATE DATABASE rule_signal",
            "CREATE TABLE rule_signal.t (a INT PRIMARY KEY)",
        ])
        .unwrap();
    let options = RemoraOptions::following().with_config(&file);
    let remora = Remora::start(&server, &options).unwrap();
    let mut client = server.app().at(remora.address()).connect().unwrap();
    let sql = "SELECT a FROM rule_signal.t";
    let count = |metric| remora.metrics().unwrap().sum(metric);
    let refused = || {
        let metrics = remora.metrics().unwrap();
        metrics.sum_where("remora_statements_total", "reason", "rule")
    };
    wait_for("a hit", PATIENCE, || {
        let before = count("remora_hits_total");
        client.query(sql)?;
        Ok((count("remora_hits_total") > before).then_some(()))
    })
    .unwrap();
    let hang_up = || {
        let id = Pid::from_raw(i32::try_from(remora.id()).unwrap()).unwrap();
        kill_process(id, Signal::HUP).unwrap();
    };
    put(
        &file,
        "[[rules]]\ntable = \"rule_signal.*\"\ncache = false\n",
    );
    hang_up();
    wait_for("the rule", PATIENCE, || {
        client.query(sql)?;
        Ok((refused() > 0.5).then_some(()))
    })
    .unwrap();
    put(
        &file,
        "[[rules]]\ntable = \"rule_signal.*\"\ncashe = false\n",
    );
    hang_up();
    let log = wait_for("the complaint", PATIENCE, || {
        let log = remora.log_tail();
        Ok(log.contains("rules.cashe does not exist").then_some(log))
    });
    let place = format!("{}, line 3", file.display());
    assert!(log.unwrap().contains(&place));
    let before = refused();
    client.query(sql).unwrap();
    wait_for("the old rule", PATIENCE, || {
        Ok((refused() > before).then_some(()))
    })
    .unwrap();
}

#[test]
fn a_rule_lets_one_account_read_from_memory_before_the_server_knows_of_its_transaction() {
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("remora.toml");
    let rule = format!("[[rules]]\naccount = \"{OTHER_USER}\"\ntransaction_reads = \"early\"\n");
    put(&file, &rule);
    let options = RemoraOptions::following().with_config(&file);
    let front = Front::with("early_account", options, &TABLE);
    let read = "SELECT b FROM t WHERE a = 1";
    let mut other = front.options();
    other.user = OTHER_USER.to_owned();
    other.password = OTHER_PASSWORD.to_owned();
    let mut early = front.guest_as(&other);
    let begun = wait_for("a transaction from memory", PATIENCE, || {
        early.setup(&["BEGIN"]);
        let outcome = early.run(read).outcome;
        early.setup(&["COMMIT"]);
        Ok((outcome == "hit").then_some(()))
    });
    begun.unwrap();
    let mut guest = front.guest();
    for _ in 0..5 {
        guest.setup(&["BEGIN", read]);
        // The server knows of the transaction, whoever has answered.
        assert_ne!(guest.run("COMMIT").outcome, "transaction");
    }
}
