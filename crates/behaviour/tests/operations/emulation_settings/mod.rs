//! `SET` of the query cache's variables through Remora, and its hints, compared with what servers
//! say that have them.

mod errors;
mod hints;
mod values;

use std::sync::atomic::{AtomicBool, Ordering};

use mysql_async::prelude::Queryable;
use remora_testkit::client::{Client, ClientError};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_wire::command::ResponseKind;
use remora_wire::response::ServerError;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];
const READ: &str = "SELECT b FROM t WHERE a = 1";
const RESET_CONNECTION: u8 = 0x1f;

/// A server of this kind with a query cache of its own, if it has one: started without, it can't
/// tell of all that is asked here.
pub(super) fn with_cache_of_its_own(kind: Kind) -> Option<Server> {
    kind.has_query_cache().then(|| {
        let options = ServerOptions {
            query_cache_mib: 16,
            ..ServerOptions::default()
        };
        Server::start(options).unwrap()
    })
}

/// What a server gives as error.
type Told = (u16, String, String);

fn told(client: &mut Client, sql: &str) -> Told {
    match client.query(sql).map(drop) {
        Err(ClientError::Server(ServerError {
            code,
            sql_state,
            message,
        })) => (code, sql_state, message),
        other => panic!("{sql}: {other:?} instead of an error"),
    }
}

fn error_of(guest: &mut Guest<'_>, sql: &str) -> Told {
    guest.observe(|client| told(client, sql)).1
}

/// `SHOW [GLOBAL] VARIABLES` of the query cache's, without their common beginning.
fn variables(guest: &mut Guest<'_>, scope: &str) -> Vec<(String, String)> {
    let sql = format!("SHOW {scope} VARIABLES LIKE '%query_cache%'");
    let rows = guest.client().query(&sql).unwrap().rows().unwrap();
    let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap()).unwrap();
    let rows = rows.iter().map(|row| (text(&row[0]), text(&row[1])));
    rows.collect()
}

fn variable(guest: &mut Guest<'_>, scope: &str, name: &str) -> String {
    let all = variables(guest, scope);
    let found = all.into_iter().find(|(one, _)| one == name);
    found.unwrap().1
}

fn direct_bytes(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// Has a statement answered from memory; every answer on the way must be the server's.
fn warm(front: &Front, guest: &mut Guest<'_>, sql: &str) {
    let expected = direct_bytes(front, sql);
    guest.becomes_hit(sql, &expected);
}

fn entries(front: &Front) -> usize {
    front.remora().app().unwrap().shared().store.stats().entries
}

#[test]
fn a_session_has_its_own_type_and_new_ones_take_the_global() {
    let front = Front::new("face_type", &TABLE);
    let (mut one, mut two) = (front.guest(), front.guest());
    warm(&front, &mut two, READ);
    one.setup(&["SET query_cache_type = OFF"]);
    one.always_passes(READ, "query_cache_off");
    assert_eq!(variable(&mut one, "SESSION", "query_cache_type"), "OFF");
    assert_eq!(variable(&mut one, "GLOBAL", "query_cache_type"), "ON");
    let both = "SELECT @@global.query_cache_type, @@query_cache_type";
    let row = one.client().query(both).unwrap().rows().unwrap().remove(0);
    assert_eq!(row, [Some(b"ON".to_vec()), Some(b"OFF".to_vec())]);
    // What others keep isn't disturbed.
    warm(&front, &mut two, READ);

    one.setup(&["SET GLOBAL query_cache_type = 2"]);
    assert_eq!(variable(&mut two, "", "query_cache_type"), "ON");
    let mut three = front.guest();
    for scope in ["", "GLOBAL"] {
        assert_eq!(variable(&mut three, scope, "query_cache_type"), "DEMAND");
    }
    if front.server().kind().tracks_sessions() {
        let seen = one.command(RESET_CONNECTION, b"", ResponseKind::Single);
        assert_eq!(seen.outcome, "not_a_query");
        assert_eq!(variable(&mut one, "", "query_cache_type"), "DEMAND");
    }
    one.setup(&[
        "SET GLOBAL query_cache_type = DEFAULT",
        "SET query_cache_type = DEFAULT",
    ]);
    assert_eq!(variable(&mut one, "", "query_cache_type"), "ON");
    warm(&front, &mut one, READ);
}

#[test]
fn the_last_word_for_the_scope_holds_for_what_is_behind_it_as_with_servers() {
    let front = Front::new("face_scope", &TABLE);
    let mut direct = front.server().root().unwrap();
    direct
        .query("SET GLOBAL div_precision_increment = 7, default_week_format = 3")
        .unwrap();
    let of_server = direct.query_value("SELECT @@global.default_week_format");
    assert_eq!(of_server.unwrap().unwrap(), "3");

    let mut operator = front.guest();
    operator.setup(&["SET GLOBAL query_cache_limit = 1048576, query_cache_type = DEMAND"]);
    assert_eq!(
        variable(&mut operator, "GLOBAL", "query_cache_type"),
        "DEMAND"
    );
    assert_eq!(variable(&mut operator, "SESSION", "query_cache_type"), "ON");
    let beside =
        "SET GLOBAL max_connections = @@global.max_connections, query_cache_type = DEFAULT";
    let (code, _, message) = error_of(&mut operator, beside);
    assert_eq!(code, 1231);
    assert!(message.starts_with("Remora: "), "{message}");
}

#[test]
fn on_demand_only_what_asks_for_it_is_kept() {
    let front = Front::new("face_demand", &TABLE);
    let (mut demand, mut on) = (front.guest(), front.guest());
    demand.setup(&["SET query_cache_type = DEMAND"]);
    let plain = "SELECT b FROM t WHERE a = 2";
    demand.always_passes(plain, "query_cache_on_demand");
    // What another session keeps is served.
    warm(&front, &mut on, plain);
    let expected = direct_bytes(&front, plain);
    demand.becomes_hit(plain, &expected);
    demand.always_passes("SELECT SQL_NO_CACHE t.b FROM t", "statement_no_cache");
    // Each server can read this one, or is helped to.
    let hinted = "SELECT SQL_CACHE t.b FROM t WHERE a = 3";
    demand.becomes("hit", hinted, None);
    let mut why_not = |sql: &str| {
        let rows = demand.client().query(&format!("EXPLAIN REMORA {sql}"));
        let rows = rows.unwrap().rows().unwrap();
        let about_session = |row: &&Vec<Option<Vec<u8>>>| row[0].as_deref() == Some(b"session");
        rows.iter().find(about_session).map(|row| row[1].clone())
    };
    assert!(
        why_not(plain)
            .unwrap()
            .unwrap()
            .starts_with(b"query_cache_on_demand: ")
    );
    assert_eq!(why_not(hinted), None);
    let old = demand.value(hinted).0;
    front.guest().setup(&["UPDATE t SET b = 31 WHERE a = 3"]);
    assert_eq!(
        (old.as_deref(), demand.value(hinted).0.as_deref()),
        (Some("30"), Some("31"))
    );
    demand.setup(&["SET query_cache_type = ON"]);
    warm(&front, &mut demand, "SELECT b FROM t WHERE a = 3");
}

#[test]
fn nothing_is_kept_while_it_is_off_for_all() {
    let front = Front::new("face_off_for_all", &TABLE);
    let (mut operator, mut guest) = (front.guest(), front.guest());
    let size = variable(&mut operator, "", "query_cache_size");
    let or_more = format!("SET GLOBAL query_cache_size = {size}0");
    let back = format!("SET GLOBAL query_cache_size = {size}");
    for (off, on) in [
        ("SET GLOBAL query_cache_size = 0", &back[..]),
        ("SET GLOBAL query_cache_size = 0", &or_more),
        (
            "SET @@global.query_cache_size = 0",
            "SET GLOBAL query_cache_size = DEFAULT",
        ),
        (
            "SET GLOBAL query_cache_type = OFF",
            "SET GLOBAL query_cache_type = ON",
        ),
    ] {
        warm(&front, &mut guest, READ);
        assert!(entries(&front) > 0);
        operator.setup(&[off]);
        assert_eq!(entries(&front), 0, "{off}");
        let metrics = front.remora().metrics().unwrap();
        let told = ("reason=\"query_cache_off\"", 0.0);
        assert_eq!(metrics.labelled("remora_caching"), [told], "{off}");
        guest.always_passes(READ, "query_cache_off");
        assert_eq!(entries(&front), 0, "{off}");
        let shown = variable(&mut guest, "", "query_cache_size");
        if off.ends_with("OFF") {
            assert_eq!(shown, size);
            let (code, _, message) = error_of(&mut guest, "SET query_cache_type = ON");
            assert_eq!(code, 1925, "{message}");
            assert!(message.contains("globally disabled"), "{message}");
        } else {
            assert_eq!(shown, "0");
        }
        operator.setup(&[on]);
        assert_eq!(variable(&mut guest, "", "query_cache_size"), size, "{on}");
    }
    warm(&front, &mut guest, READ);
}

#[test]
fn a_lower_limit_keeps_larger_results_out() {
    let front = Front::new("face_limit", &TABLE);
    let (mut operator, mut guest) = (front.guest(), front.guest());
    let long = "SELECT REPEAT(b, 3000) FROM t WHERE a = 1";
    operator.setup(&["SET GLOBAL query_cache_limit = 4 * 1024"]);
    guest.always_passes(long, "answer_too_large");
    warm(&front, &mut guest, READ);
    operator.setup(&["SET GLOBAL query_cache_limit = DEFAULT"]);
    warm(&front, &mut guest, long);
}

#[test]
fn results_of_either_rule_for_comments_are_right_under_the_other() {
    let front = Front::new("face_comments", &TABLE);
    let (mut writer, mut guest, mut other) = (front.guest(), front.guest(), front.guest());
    let commented = "/* trace 1 */ SELECT b FROM t WHERE a = 1";
    let (mut value, mut is_stripping) = (10, true);
    for round in 0..6 {
        warm(&front, &mut guest, READ);
        warm(&front, &mut guest, commented);
        let rule = if is_stripping { "OFF" } else { "ON" };
        guest.setup(&[&format!("SET query_cache_strip_comments = {rule}")]);
        let unchanged = variable(&mut other, "", "query_cache_strip_comments");
        assert_eq!(unchanged, "ON");
        assert_eq!(variable(&mut guest, "", "query_cache_strip_comments"), rule);
        is_stripping = !is_stripping;
        if round % 2 == 0 {
            value += 1;
            writer.setup(&[&format!("UPDATE t SET b = {value} WHERE a = 1")]);
        }
        for sql in [READ, commented] {
            for session in [&mut guest, &mut other] {
                assert_eq!(session.value(sql).0, Some(value.to_string()), "{sql}");
            }
        }
    }
    other.setup(&["SET GLOBAL query_cache_strip_comments = OFF"]);
    let mut new = front.guest();
    for (session, expected) in [(&mut other, "ON"), (&mut new, "OFF")] {
        let own = variable(session, "", "query_cache_strip_comments");
        assert_eq!(own, expected);
        let global = variable(session, "GLOBAL", "query_cache_strip_comments");
        assert_eq!(global, "OFF");
    }
}

#[test]
fn a_set_leaves_transaction_and_found_rows_alone() {
    let front = Front::new("face_set_traces", &TABLE);
    let mut guest = front.guest();
    guest.setup(&["BEGIN", "INSERT INTO t VALUES (9, 90)"]);
    guest.setup(&[
        "SET query_cache_type = DEMAND",
        "SET GLOBAL query_cache_limit = 4096",
    ]);
    error_of(&mut guest, "SET query_cache_type = 9");
    guest.setup(&["ROLLBACK"]);
    assert_eq!(
        guest
            .value("SELECT COUNT(*) FROM t WHERE a = 9")
            .0
            .as_deref(),
        Some("0")
    );
    for set in [
        "SET query_cache_type = ON",
        "SET GLOBAL query_cache_limit = DEFAULT",
    ] {
        guest
            .client()
            .query("SELECT 1 UNION SELECT 2 UNION SELECT 3")
            .unwrap();
        let answer = guest.client().query_bytes(set).unwrap().to_vec();
        let mut direct = front.direct();
        assert_same(
            set,
            &answer,
            direct.query_bytes("SET sql_warnings = 0").unwrap(),
        );
        let rows = guest.client().query_value("SELECT FOUND_ROWS()").unwrap();
        assert_eq!(rows.as_deref(), Some("3"), "{set}");
    }
}

#[test]
fn with_the_statements_switched_off_a_set_is_the_servers() {
    let options = RemoraOptions::following().with("query_cache.statements", "false");
    let front = Front::with("face_set_off", options, &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for sql in [
        "SET query_cache_type = 7",
        "SET SESSION query_cache_size = 5",
    ] {
        assert_eq!(error_of(&mut guest, sql), told(&mut direct, sql), "{sql}");
    }
    let hinted = "SELECT SQL_CACHE * FROM t";
    let expected = direct.query_bytes(hinted).unwrap().to_vec();
    assert_same(
        hinted,
        guest.client().query_bytes(hinted).unwrap(),
        &expected,
    );
}

#[test]
fn the_configuration_says_what_the_type_is_at_the_start() {
    let options = RemoraOptions::following().with("query_cache.type", "demand");
    let front = Front::with("face_configured", options, &TABLE);
    let mut guest = front.guest();
    assert_eq!(variable(&mut guest, "", "query_cache_type"), "DEMAND");
    guest.always_passes(READ, "query_cache_on_demand");
    guest.setup(&["SET query_cache_type = ON"]);
    warm(&front, &mut guest, READ);
    guest.setup(&[
        "SET GLOBAL query_cache_type = ON",
        "SET GLOBAL query_cache_type = DEFAULT",
    ]);
    assert_eq!(variable(&mut guest, "GLOBAL", "query_cache_type"), "DEMAND");
}

#[test]
fn a_changed_user_takes_the_global_type() {
    let front = Front::new("face_change_user", &TABLE);
    let options = mysql_async::OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(front.remora().address().port())
        .user(Some("app"))
        .pass(Some("app-password"))
        .prefer_socket(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut through = mysql_async::Conn::new(options).await.unwrap();
        through
            .query_drop("SET query_cache_type = OFF")
            .await
            .unwrap();
        let ask = "SELECT @@query_cache_type";
        let own: Option<String> = through.query_first(ask).await.unwrap();
        assert_eq!(own.as_deref(), Some("OFF"));
        let other = mysql_async::ChangeUserOpts::default()
            .with_user(Some(remora_behaviour::front::OTHER_USER.to_owned()))
            .with_pass(Some(remora_behaviour::front::OTHER_PASSWORD.to_owned()));
        through.change_user(other).await.unwrap();
        let global: Option<String> = through.query_first(ask).await.unwrap();
        assert_eq!(global.as_deref(), Some("ON"));
        through.disconnect().await.unwrap();
    });
}

#[test]
fn what_is_on_its_way_into_memory_is_not_kept_after_it_was_switched_off() {
    let front = Front::new("face_off_and_on", &TABLE);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (front, is_over) = (&front, &is_over);
            scope.spawn(move || {
                let mut client = front.guest();
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) {
                    round += 1;
                    let sql = format!("SELECT b + {round} FROM t WHERE a = {number}");
                    client.client().query(&sql).unwrap();
                }
            });
        }
        let mut operator = front.guest();
        let run = |operator: &mut Guest<'_>, sql: &str| {
            operator.client().query(sql).map(drop).unwrap();
        };
        for round in 0..8 {
            let (off, on) = match round % 2 {
                0 => (
                    "SET GLOBAL query_cache_size = 0",
                    "SET GLOBAL query_cache_size = DEFAULT",
                ),
                _ => (
                    "SET GLOBAL query_cache_type = OFF",
                    "SET GLOBAL query_cache_type = ON",
                ),
            };
            wait_for("results to be kept", PATIENCE, || {
                Ok((entries(&front) > 0).then_some(()))
            })
            .unwrap();
            run(&mut operator, off);
            for _ in 0..5 {
                assert_eq!(entries(&front), 0, "{off}");
                run(&mut operator, "DO 0");
            }
            run(&mut operator, on);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
