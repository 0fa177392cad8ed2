//! `SHOW REMORA` and `EXPLAIN REMORA`: Remora's own statements, on any connection that may ask.

use std::collections::HashMap;
use std::sync::Arc;

use remora_engine::reason::{Limit, Outcome};
use remora_testkit::client::{Client, ConnectOptions, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Leased;
use remora_wire::StatusFlags;

use remora_behaviour::front::{Front, PATIENCE, lease};

const LISTINGS: [&str; 5] = ["ENTRIES", "DIGESTS", "TABLES", "SESSIONS", "REASONS"];

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE = InnoDB",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];

/// An answer's column names and rows; NULL is empty.
fn table(client: &mut Client, sql: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let answer = client
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = answer.rows().unwrap().into_iter();
    let text = |field: Option<Vec<u8>>| String::from_utf8(field.unwrap_or_default()).unwrap();
    let rows = rows.map(|row| row.into_iter().map(text).collect());
    (answer.column_names().unwrap(), rows.collect())
}

/// An account that may read these tests' schemas, and nothing else.
const PLAIN: &str = "plain";

/// A server with that account. It is made before anything is cached: an account's making drops
/// everything.
fn server() -> Arc<Leased> {
    let server = lease();
    let identified = server.kind().identified_by(PLAIN);
    let statements = [
        format!("CREATE USER {PLAIN}@'%' {identified}"),
        format!("GRANT SELECT ON `show%`.* TO {PLAIN}@'%'"),
    ];
    server.execute(statements).unwrap();
    server
}

fn front(schema: &str) -> Front {
    front_with(schema, &[])
}

/// With options of the test's own: names and values.
fn front_with(schema: &str, options: &[(&'static str, &'static str)]) -> Front {
    let all = RemoraOptions::following();
    let options = options.iter();
    let options = options.fold(all, |all, (name, value)| all.with(name, value));
    Front::on(server(), schema, options, &TABLE)
}

/// As that account.
fn plain(options: ConnectOptions) -> ConnectOptions {
    ConnectOptions {
        user: PLAIN.to_owned(),
        password: PLAIN.to_owned(),
        ..options
    }
}

#[test]
fn reasons_are_listed_in_every_flavour() {
    let front = front("show_reasons");
    for options in front.flavours() {
        let mut guest = front.guest_as(&options);
        let (names, rows) = table(guest.client(), "SHOW REMORA REASONS");
        assert_eq!(names, ["reason", "count", "meaning"]);
        assert_eq!(rows.len(), Outcome::COUNT);
        let (_, hit) = table(
            guest.client(),
            "show /* a */ remora reasons like 'HI_' limit 3;",
        );
        assert_eq!(hit[0][0], "hit");
        assert_eq!(hit[0][2], "Answered from memory.");
        // The session goes on as before.
        guest.becomes("hit", "SELECT b FROM t WHERE a = 1", None);
        assert_eq!(
            guest.client().query_value("SELECT 7").unwrap().unwrap(),
            "7"
        );
    }
}

#[test]
fn an_unknown_word_is_answered_with_those_that_are_known() {
    let front = front("show_unknown");
    let mut guest = front.guest();
    for sql in ["SHOW REMORA", "SHOW REMORA FOO", "SHOW REMORA foo bar"] {
        let error = guest.client().query(sql).map(drop).unwrap_err().to_string();
        let are_named = LISTINGS.iter().all(|name| error.contains(name));
        assert!(error.contains("1064") && are_named, "{sql}: {error}");
    }
    for sql in [
        "SHOW REMORA ENTRIES WHERE digest = 'a'",
        "SHOW REMORA TABLES LIMIT 1 LIKE 'a'",
    ] {
        let error = guest.client().query(sql).map(drop).unwrap_err().to_string();
        let is_told = error.contains("1064") && error.contains("LIKE");
        assert!(is_told, "{sql}: {error}");
    }
    assert_eq!(
        guest.client().query_value("SELECT 7").unwrap().unwrap(),
        "7"
    );
}

#[test]
fn who_may_not_see_others_is_refused_by_the_server() {
    let front = front("show_refused");
    for options in front.flavours() {
        let options = plain(options);
        let mut guest = front.guest_as(&options);
        let listings = LISTINGS.map(|name| format!("SHOW REMORA {name}"));
        for sql in listings.iter().map(String::as_str).chain(["SHOW REMORA"]) {
            let error = guest.client().query(sql).map(drop).unwrap_err().to_string();
            assert!(
                error.contains("1227") && error.contains("PROCESS"),
                "{sql}: {error}"
            );
        }
        assert_eq!(
            guest.client().query_value("SELECT 7").unwrap().unwrap(),
            "7"
        );
    }
}

#[test]
fn it_stays_in_the_transaction() {
    let front = front("show_transaction");
    for options in front.flavours() {
        let mut guest = front.guest_as(&options);
        guest.setup(&["BEGIN", "INSERT INTO t VALUES (9, 90)"]);
        let listings = LISTINGS.map(|name| format!("SHOW REMORA {name}"));
        let explain = ["EXPLAIN REMORA SELECT b FROM t WHERE a = 1".to_owned()];
        for sql in listings.iter().chain(&explain) {
            let status = guest.client().query(sql).unwrap().status();
            assert!(status.has(StatusFlags::IN_TRANSACTION), "{sql}");
        }
        guest.setup(&["ROLLBACK"]);
        let count = guest
            .client()
            .query_value("SELECT COUNT(*) FROM t")
            .unwrap();
        assert_eq!(count.unwrap(), "3");
    }
}

/// A row by the names of its columns.
type Fields = HashMap<String, String>;

/// The rows of a listing, each by the names of its columns.
fn list(client: &mut Client, sql: &str) -> Vec<Fields> {
    let (names, rows) = table(client, sql);
    let named = |row: Vec<String>| names.iter().cloned().zip(row).collect();
    rows.into_iter().map(named).collect()
}

/// Makes a statement's result a hit.
fn keep(front: &Front, sql: &str) {
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    front.guest().becomes_hit(sql, &expected);
}

fn times_limited(front: &Front) -> u64 {
    let app = front.remora().app().unwrap();
    app.shared().metrics.rare.limit(Limit::ShownRows)
}

#[test]
fn entries_are_the_results_in_memory() {
    let front = front("show_entries");
    let mut guest = front.guest();
    assert_eq!(list(guest.client(), "SHOW REMORA ENTRIES").len(), 0);
    // What other tests change in the server may drop results, here and below.
    let row = wait_for("both results", PATIENCE, || {
        keep(&front, "SELECT b FROM t WHERE a = 1");
        keep(&front, "SELECT a FROM t WHERE b = 20");
        let count = list(guest.client(), "SHOW REMORA ENTRIES").len();
        let rows = list(
            guest.client(),
            "SHOW REMORA ENTRIES LIKE 'select%b%from%a = ?'",
        );
        let is_servable = |row: &Fields| row["state"] == "servable" && row["asked_for"] == "YES";
        let row = rows.into_iter().find(|row| is_servable(row));
        Ok(row.filter(|_| count == 2))
    });
    let row = row.unwrap();
    let expected = [
        ("statement_schema", "show_entries"),
        ("protocol", "text"),
        ("tables", "show_entries.t"),
        ("state", "servable"),
        ("expires_in_ms", ""),
        ("asked_for", "YES"),
    ];
    for (name, value) in expected {
        assert_eq!(row[name], value, "{name}: {row:?}");
    }
    assert!(
        row["statement_text"].contains('?') && !row["statement_text"].contains('1'),
        "{row:?}"
    );
    let account = guest
        .client()
        .query_value("SELECT CURRENT_USER()")
        .unwrap()
        .unwrap();
    assert_eq!(row["account"], account);
    assert_eq!(row["digest"].len(), 16);
    let bytes = front
        .direct()
        .query_bytes("SELECT b FROM t WHERE a = 1")
        .unwrap()
        .len();
    assert_eq!(row["result_bytes"], bytes.to_string());
    assert!(row["memory_bytes"].parse::<usize>().unwrap() > bytes);
    let digests = list(guest.client(), "SHOW REMORA DIGESTS");
    assert!(digests.iter().any(|one| one["digest"] == row["digest"]));

    // An execution of the statement has the same digest.
    let id = guest.client().prepare(b"SELECT b FROM t WHERE a = ?");
    let id = id.unwrap();
    wait_for("the execution's result", PATIENCE, || {
        let executed = guest.client().execute(id, &[Value::Int(1)]);
        executed.map(drop).unwrap();
        let rows = list(guest.client(), "SHOW REMORA ENTRIES");
        let is_it = |one: &Fields| {
            one["protocol"] == "binary"
                && one["tables"] == row["tables"]
                && one["digest"] == row["digest"]
        };
        Ok(rows.iter().any(is_it).then_some(()))
    })
    .unwrap();

    // A result that a change has outdated says so, or has left.
    guest.setup(&["UPDATE t SET b = 11 WHERE a = 1"]);
    wait_for("the result to be outdated", PATIENCE, || {
        let rows = list(guest.client(), "SHOW REMORA ENTRIES");
        let is_gone = rows.iter().all(|one| one["digest"] != row["digest"]);
        let is_told = |one: &Fields| one["digest"] == row["digest"] && one["state"] == "changed";
        Ok((is_gone || rows.iter().any(is_told)).then_some(()))
    })
    .unwrap();
}

#[test]
fn literals_are_shown_only_where_that_is_allowed() {
    let front = front_with("show_literals", &[("query_cache.show_literals", "true")]);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    wait_for("the text", PATIENCE, || {
        keep(&front, sql);
        let rows = list(guest.client(), "SHOW REMORA ENTRIES LIKE '%a = 1'");
        Ok(rows
            .iter()
            .any(|row| row["statement_text"] == sql)
            .then_some(()))
    })
    .unwrap();
    let digests = table(guest.client(), "SHOW REMORA DIGESTS").1;
    assert!(
        digests.iter().all(|row| !row[1].contains("= 1")),
        "{digests:?}"
    );
}

#[test]
fn no_more_rows_are_shown_than_may_be() {
    let front = front_with("show_rows_max", &[("query_cache.rows_max", "2")]);
    let mut guest = front.guest();
    for name in ["ENTRIES", "DIGESTS", "REASONS"] {
        let all = format!("SHOW REMORA {name}");
        let before = wait_for("too many rows", PATIENCE, || {
            for a in 1..=3 {
                keep(&front, &format!("SELECT b FROM t WHERE a = {a}"));
                keep(&front, &format!("SELECT a AS x{a} FROM t WHERE a = 1"));
            }
            let before = times_limited(&front);
            let rows = list(guest.client(), &all).len();
            let after = times_limited(&front);
            Ok((rows == 2 && after == before + 1).then_some(after))
        })
        .unwrap();
        for limit in [0, 1] {
            let rows = list(guest.client(), &format!("{all} LIMIT {limit}")).len();
            // Of the results some may have left meanwhile.
            assert!(
                rows == limit || (name == "ENTRIES" && rows < limit),
                "{name}: {rows}"
            );
        }
        assert_eq!(times_limited(&front), before, "{name}");
    }
}

#[test]
fn digests_say_what_became_of_statements() {
    let front = front("show_digests");
    let mut guest = front.guest();
    keep(&front, "SELECT b FROM t WHERE a = 1");
    for _ in 0..5 {
        guest.becomes("hit", "SELECT b FROM t WHERE a = 1", None);
    }
    guest.always_passes("SELECT NOW(), a FROM t", "statement_clock_function");
    let rows = list(guest.client(), "SHOW REMORA DIGESTS LIKE '%where%'");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let number = |name: &str| rows[0][name].parse::<u64>().unwrap();
    assert!(
        number("hits") >= 5 && number("fills") >= 1 && number("calls") >= 6,
        "{rows:?}"
    );
    assert!(
        number("hit_bytes") > 0 && number("server_time_us") > 0,
        "{rows:?}"
    );
    let rows = list(guest.client(), "SHOW REMORA DIGESTS LIKE '%now%'");
    assert_eq!(
        rows[0]["refused_mainly"], "statement_clock_function",
        "{rows:?}"
    );
    assert!(rows[0]["refused"].parse::<u64>().unwrap() >= 3, "{rows:?}");
}

#[test]
fn tables_say_whether_their_results_can_be_kept() {
    let front = front("show_tables");
    let mut direct = front.direct();
    for sql in [
        "CREATE TABLE isam (a INT) ENGINE = MyISAM",
        "CREATE VIEW v AS SELECT a FROM t",
    ] {
        direct.query(sql).map(drop).unwrap();
    }
    let mut guest = front.guest();
    keep(&front, "SELECT b FROM t WHERE a = 1");
    keep(&front, "SELECT a FROM v");
    guest.always_passes("SELECT a FROM isam", "table_visible_late");
    guest.setup(&[
        "INSERT INTO t VALUES (7, 70)",
        "INSERT INTO t VALUES (8, 80)",
    ]);
    let rows = wait_for("the changes to be counted", PATIENCE, || {
        let rows = list(guest.client(), "SHOW REMORA TABLES LIKE 'show\\_tables.%'");
        Ok(
            (rows.len() == 3 && rows[1]["changes"] != "0" && rows[1]["fenced"] == "NO")
                .then_some(rows),
        )
    })
    .unwrap();
    for (row, expected) in rows.iter().zip([
        ["isam", "table", "NO", "visible_late"],
        ["t", "table", "YES", ""],
        ["v", "view", "YES", ""],
    ]) {
        let seen = ["table_name", "kind", "cacheable", "reason"].map(|name| &row[name][..]);
        assert_eq!(seen, expected, "{row:?}");
        assert_eq!(row["table_schema"], "show_tables", "{row:?}");
    }
    assert_eq!(
        (&rows[0]["transactional"][..], &rows[1]["transactional"][..]),
        ("NO", "YES")
    );
    assert_eq!(list(guest.client(), "SHOW REMORA TABLES LIKE 't'").len(), 1);
}

#[test]
fn sessions_say_what_keeps_them_from_being_cached() {
    let front = front("show_sessions");
    let mut watcher = front.guest();
    let mut guest = front.guest();
    keep(&front, "SELECT b FROM t WHERE a = 1");
    let id = guest
        .client()
        .query_value("SELECT CONNECTION_ID()")
        .unwrap()
        .unwrap();
    let mut of = |id: &str| {
        let rows = list(watcher.client(), "SHOW REMORA SESSIONS").into_iter();
        rows.filter(|row| row["id"] == id).collect::<Vec<_>>().pop()
    };
    assert_eq!(of(&id).unwrap()["state"], "settings_unknown");
    guest.becomes("hit", "SELECT b FROM t WHERE a = 1", None);
    let row = of(&id).unwrap();
    assert_eq!(
        (&row["state"][..], &row["default_schema"][..]),
        ("caching", "show_sessions")
    );
    let account = guest
        .client()
        .query_value("SELECT CURRENT_USER()")
        .unwrap()
        .unwrap();
    assert_eq!(row["account"], account);
    assert!(row["client"].starts_with("127.0.0.1:"), "{row:?}");
    guest.setup(&["CREATE TEMPORARY TABLE own (a INT)"]);
    let row = of(&id).unwrap();
    assert_eq!(row["state"], "temporary_tables");
    assert!(
        row["server_statements"].parse::<u64>().unwrap() >= 3,
        "{row:?}"
    );
    drop(guest);
    wait_for("the session to end", PATIENCE, || {
        Ok(of(&id).is_none().then_some(()))
    })
    .unwrap();
}

/// What an explanation says of an item.
fn explained(client: &mut Client, sql: &str, item: &str) -> Vec<String> {
    let rows = table(client, &format!("EXPLAIN REMORA {sql}"))
        .1
        .into_iter();
    rows.filter(|row| row[0] == item)
        .map(|row| row[1].clone())
        .collect()
}

#[test]
fn a_statement_is_explained_in_its_session() {
    let front = front("show_explain");
    for options in front.flavours() {
        let mut guest = front.guest_as(&options);
        let sql = "SELECT b FROM t WHERE a = 1";
        guest.becomes("hit", sql, None);
        assert_eq!(explained(guest.client(), sql, "cacheable"), ["yes"]);
        // A kind of read is too young for a moment after other tests' commits.
        wait_for("the dependency", PATIENCE, || {
            let seen = explained(guest.client(), sql, "depends_on");
            Ok((seen == ["t: a = 1 (reads b)"]).then_some(()))
        })
        .unwrap();
        // What other tests change in the server may drop results.
        wait_for("the result to be held", PATIENCE, || {
            guest.becomes("hit", sql, None);
            let held = explained(guest.client(), sql, "held_results");
            Ok((held == ["1"]).then_some(()))
        })
        .unwrap();
        assert_eq!(
            explained(guest.client(), "SELECT NOW(), b FROM t", "reason"),
            ["statement_clock_function"]
        );
        assert_eq!(explained(guest.client(), sql, "session"), [""; 0]);
        guest.setup(&["CREATE TEMPORARY TABLE own (a INT)"]);
        let session = explained(guest.client(), sql, "session");
        assert!(session[0].starts_with("temporary_tables: "), "{session:?}");
    }
    // What others hold isn't told.
    let mut other = front.guest_as(&front.options().schema("mysql"));
    let sql = "SELECT b FROM show_explain.t WHERE a = 1";
    assert_eq!(explained(other.client(), sql, "held_results"), ["0"]);
}

#[test]
fn explaining_needs_what_the_statement_needs() {
    let front = front("show_explain_refused");
    let refused = |client: &mut Client, sql: &str| {
        let error = client.query(sql).map(drop).unwrap_err();
        (error.code().unwrap(), error.to_string())
    };
    let mut plain = front.guest_as(&plain(front.options()));
    assert_eq!(
        explained(plain.client(), "SELECT b FROM t", "cacheable"),
        ["yes"]
    );
    for sql in [
        "EXPLAIN REMORA SELECT Host FROM mysql.user",
        "EXPLAIN REMORA ANALYZE SELECT Host FROM mysql.user",
    ] {
        assert_eq!(refused(plain.client(), sql).0, 1142, "{sql}");
    }
    assert_eq!(
        refused(plain.client(), "EXPLAIN REMORA SELECT b FROM no_such").0,
        1146
    );
    let mut guest = front.guest();
    for sql in [
        "EXPLAIN REMORA ANALYZE SELECT no_such FROM t",
        "EXPLAIN REMORA SELECT no_such FROM t",
    ] {
        assert_eq!(refused(guest.client(), sql).0, 1054, "{sql}");
    }
    assert_eq!(
        guest.client().query_value("SELECT 7").unwrap().unwrap(),
        "7"
    );
}

#[test]
fn prepared_and_switched_off_they_are_the_servers() {
    let fronts = [
        front("show_prepared"),
        front_with("show_off", &[("query_cache.statements", "false")]),
    ];
    for (front, is_off) in fronts.iter().zip([false, true]) {
        let (mut guest, mut direct) = (front.guest(), front.direct());
        for sql in ["SHOW REMORA ENTRIES", "EXPLAIN REMORA SELECT 1"] {
            let server = direct.prepare(sql.as_bytes()).unwrap_err().to_string();
            let through = guest
                .client()
                .prepare(sql.as_bytes())
                .unwrap_err()
                .to_string();
            assert_eq!(through, server, "{sql}");
            if is_off {
                let server = direct.query_bytes(sql).unwrap().to_vec();
                assert_eq!(guest.client().query_bytes(sql).unwrap(), server, "{sql}");
            }
        }
    }
}
