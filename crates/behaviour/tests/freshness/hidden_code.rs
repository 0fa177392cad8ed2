//! What a statement does that its text doesn't show: functions behind views, triggers, text that is
//! executed. It may write any table, and it may change the session.

use std::io::Write as _;
use std::net::Shutdown;

use remora_testkit::client::ConnectOptions;
use remora_testkit::log_gate::LogGate;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;

use remora_behaviour::front::{Front, Guest, PATIENCE, PING, assert_same, lease};

/// A Remora behind a log that can be held back.
fn behind_a_gate(schema: &str, setup: &[&str]) -> (Front, LogGate) {
    let trust = ["SET GLOBAL log_bin_trust_function_creators = 1"];
    let setup: Vec<&str> = trust.iter().chain(setup).copied().collect();
    Front::behind_gate(lease(), schema, RemoraOptions::following(), &setup)
}

/// After the statements nobody reads what was before, though the log hasn't told of them.
fn is_fenced(front: &Front, gate: &LogGate, read: &str, run: impl FnOnce(&mut Guest<'_>)) {
    let (mut reader, mut writer) = (front.guest(), front.guest());
    let before = front.direct().query_bytes(read).unwrap().to_vec();
    reader.becomes_hit(read, &before);
    gate.hold(true);
    run(&mut writer);
    let after = front.direct().query_bytes(read).unwrap().to_vec();
    let seen = reader.run(read);
    gate.hold(false);
    assert_ne!(after, before, "something was written");
    assert_same(seen.outcome, &seen.bytes, &after);
}

#[test]
fn a_view_that_calls_a_function_is_fenced_like_the_function() {
    let (front, gate) = behind_a_gate(
        "hidden_views",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE TABLE copies (x INT)",
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
            "CREATE VIEW w AS SELECT f() AS x",
            "CREATE VIEW over_w AS SELECT x FROM w",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    // MySQL refuses a table made of what writes, where transactions have GTIDs.
    let makes_tables = !front.server().kind().is_mysql();
    for sql in [
        "SELECT x FROM w",
        "SELECT x FROM over_w",
        "SELECT x, NOW() FROM w",
        "SELECT x FROM `hidden_views`.`W`",
        "SET @a = (SELECT x FROM w)",
        "DO (SELECT x FROM over_w)",
        "INSERT INTO copies SELECT x FROM w",
        "UPDATE copies SET x = (SELECT MAX(x) FROM w)",
        "CREATE TABLE IF NOT EXISTS made AS SELECT x FROM w",
        "DELETE FROM copies WHERE x = 1000 + (SELECT MAX(x) FROM w)",
    ] {
        // Whether letter case counts in names isn't the question here.
        let sql = sql.replace("`W`", "`w`");
        if sql.starts_with("CREATE") && !makes_tables {
            continue;
        }
        is_fenced(&front, &gate, read, |writer| writer.setup(&[&sql]));
        // The same, prepared.
        if sql.starts_with("CREATE") {
            continue;
        }
        is_fenced(&front, &gate, read, |writer| {
            let client = writer.client();
            let statement = client.prepare(sql.as_bytes()).unwrap();
            for _ in 0..2 {
                let answer = client.execute(statement, &[]).unwrap();
                assert_ne!(answer.bytes().get(4), Some(&0xff), "{sql} fails");
            }
        });
    }
}

#[test]
fn a_setting_that_hides_what_code_created_keeps_hits_away_only_while_it_lasts() {
    let (front, _gate) = behind_a_gate(
        "hidden_count",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE TABLE log (x INT)",
            "CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO log VALUES (1); RETURN 1; END",
            "CREATE VIEW w AS SELECT f() AS x",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let row = front.direct().query_bytes(read).unwrap().to_vec();
    for (hides, shows) in [
        (
            "SET sql_big_selects = 0, max_join_size = 1",
            "SET sql_big_selects = 1, max_join_size = DEFAULT",
        ),
        ("SET sql_select_limit = 0", "SET sql_select_limit = DEFAULT"),
    ] {
        let mut session = front.guest();
        session.becomes_hit(read, &row);
        session.setup(&[hides, "DO (SELECT x FROM w)"]);
        // The server is asked what the function created, and says nothing of it.
        session.run(read);
        session.setup(&[shows]);
        session.becomes_hit(read, &row);
    }
}

#[test]
fn a_view_that_is_replaced_by_one_that_calls_a_function_is_fenced() {
    let (front, gate) = behind_a_gate(
        "hidden_replaced",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE TABLE one (x INT)",
            "INSERT INTO one VALUES (1)",
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
            "CREATE VIEW w AS SELECT x FROM one",
            "CREATE VIEW over_w AS SELECT x FROM w",
        ],
    );
    let mut reader = front.guest();
    let other = front
        .direct()
        .query_bytes("SELECT x FROM w")
        .unwrap()
        .to_vec();
    reader.becomes_hit("SELECT x FROM w", &other);
    front
        .direct()
        .query("CREATE OR REPLACE VIEW w AS SELECT f() AS x")
        .unwrap();
    front.catch_up();
    let read = "SELECT v FROM t WHERE id = 1";
    is_fenced(&front, &gate, read, |writer| {
        writer.setup(&["SELECT x FROM over_w"]);
    });
    // A view of another name is the same view.
    front.direct().query("RENAME TABLE w TO ww").unwrap();
    front.catch_up();
    is_fenced(&front, &gate, read, |writer| {
        writer.setup(&["SELECT x FROM ww"]);
    });
}

/// Memory answered for a view that ran nothing. To tell of warnings the server must run the
/// statement, which runs a function by then.
#[test]
fn what_memory_answered_is_fenced_when_the_server_must_run_it_after_all() {
    let (front, gate) = behind_a_gate(
        "hidden_repeated",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
            "CREATE TABLE harmless (x INT)",
            "INSERT INTO harmless VALUES (7)",
        ],
    );
    let (read, view) = ("SELECT v FROM t WHERE id = 1", "SELECT x FROM w");
    let mut direct = front.direct();
    for is_prepared in [false, true] {
        direct
            .query("CREATE OR REPLACE VIEW w AS SELECT x FROM harmless")
            .unwrap();
        front.catch_up();
        let harmless = direct.query_bytes(view).unwrap().to_vec();
        let (mut reader, mut session) = (front.guest(), front.guest());
        session.becomes_hit(view, &harmless);
        if is_prepared {
            let client = session.client();
            let statement = client.prepare(view.as_bytes()).unwrap();
            wait_for("a hit", PATIENCE, || {
                let hits = front.hits();
                client.execute(statement, &[])?;
                Ok((front.hits() > hits).then_some(()))
            })
            .unwrap();
        }
        direct
            .query("CREATE OR REPLACE VIEW w AS SELECT f() AS x")
            .unwrap();
        front.catch_up();
        let before = direct.query_bytes(read).unwrap().to_vec();
        reader.becomes_hit(read, &before);
        gate.hold(true);
        session.client().query("SHOW WARNINGS").unwrap();
        let after = direct.query_bytes(read).unwrap().to_vec();
        assert_ne!(after, before, "the server ran it");
        let seen = reader.run(read);
        gate.hold(false);
        assert_same(seen.outcome, &seen.bytes, &after);
    }
}

#[test]
fn a_view_without_functions_fences_nothing() {
    let (front, gate) = behind_a_gate(
        "hidden_harmless",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE VIEW w AS SELECT id, UPPER(CONCAT(v, 'ab')) AS x FROM t",
            "CREATE VIEW backslash AS SELECT CONCAT(id, 'a\\\\b') AS x FROM t",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let (mut reader, mut other) = (front.guest(), front.guest());
    let expected = front.direct().query_bytes(read).unwrap().to_vec();
    reader.becomes_hit(read, &expected);
    // The list of views has been asked for by now, or is before long.
    front.catch_up();
    other.becomes_hit(
        "SELECT x FROM w",
        front.direct().query_bytes("SELECT x FROM w").unwrap(),
    );
    gate.hold(true);
    other.run("SELECT x, NOW() FROM w");
    other.run("SELECT x, NOW() FROM backslash");
    reader.still_hits(read, &expected);
    gate.hold(false);
}

/// Nobody has been told yet whether a fresh session's changes are logged, and a view that calls a
/// function may change anything.
#[test]
fn what_a_fresh_session_reads_by_a_view_outdates_nothing() {
    let (front, _gate) = behind_a_gate(
        "hidden_fresh",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE FUNCTION f() RETURNS INT RETURN 1",
            "CREATE VIEW w AS SELECT f() AS x",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let mut reader = front.guest();
    let expected = front.direct().query_bytes(read).unwrap().to_vec();
    reader.becomes_hit(read, &expected);
    front.guest().setup(&["SELECT x, NOW() FROM w"]);
    front.catch_up();
    reader.still_hits(read, &expected);
    let mut session = front.guest();
    let client = session.client();
    let statement = client.prepare(b"SELECT x, NOW() FROM w").unwrap();
    client.execute(statement, &[]).unwrap();
    front.catch_up();
    reader.still_hits(read, &expected);
}

/// Statements after which a session has other settings, with what was made for them.
fn settings_changed_unseen() -> Vec<(&'static str, &'static str)> {
    vec![
        ("SET SESSION time_zone = '+09:00'", "SELECT ts FROM t"),
        (
            "SET SESSION group_concat_max_len = 4",
            "SELECT GROUP_CONCAT(name) FROM t",
        ),
        (
            "SET SESSION sql_mode = 'ANSI_QUOTES'",
            "SELECT \"name\" FROM t",
        ),
        (
            "SET SESSION div_precision_increment = 9",
            "SELECT id / 3 FROM t",
        ),
    ]
}

#[test]
fn settings_that_a_trigger_changes_are_the_sessions() {
    for (at, (set, read)) in settings_changed_unseen().into_iter().enumerate() {
        for by_function in [false, true] {
            let schema = format!("hidden_set_{at}_{by_function}");
            let code = format!("BEGIN {set}; RETURN 1; END");
            let front = Front::new(
                &schema,
                &[
                    "SET GLOBAL log_bin_trust_function_creators = 1",
                    "SET time_zone = '+00:00'",
                    "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, name VARCHAR(9))",
                    "INSERT INTO t VALUES (1, '2001-02-03 04:05:06', 'name'), \
                     (2, '2001-02-03 04:05:06', 'other')",
                    "CREATE TABLE fires (id INT)",
                    &format!(
                        "CREATE TRIGGER g BEFORE INSERT ON fires FOR EACH ROW BEGIN {set}; END"
                    ),
                    &format!("CREATE FUNCTION f() RETURNS INT {code}"),
                    "CREATE VIEW w AS SELECT f() AS x",
                ],
            );
            let (mut plain, mut changed) = (front.guest(), front.guest());
            let expected = front.direct().query_bytes(read).unwrap().to_vec();
            plain.becomes_hit(read, &expected);
            changed.becomes_hit(read, &expected);
            let run = if by_function {
                "SELECT x FROM w"
            } else {
                "INSERT INTO fires VALUES (1)"
            };
            changed.setup(&[run]);
            let mut direct = front.direct();
            direct.query(run).unwrap();
            let under_others = direct.query_bytes(read).unwrap().to_vec();
            // A server may give a session its own `sql_mode` back when the routine ends.
            for _ in 0..3 {
                let seen = changed.run(read);
                assert_same(&format!("{read} after {set}"), &seen.bytes, &under_others);
                let seen = plain.run(read);
                assert_same(&format!("{read} beside {set}"), &seen.bytes, &expected);
            }
        }
    }
}

/// A schema in which reading the view `w` creates a temporary table that hides `t`; `None` if the
/// server lets no code do that.
fn where_code_creates_a_temporary_table(schema: &str, further: &[&str]) -> Option<Front> {
    let server = lease();
    let is_refused = server.kind() == Kind::MySql57;
    let because = "with GTIDs it lets no code create one";
    if server.kind().skips(is_refused, because) {
        return None;
    }
    let setup = [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE FUNCTION f() RETURNS INT BEGIN CREATE TEMPORARY TABLE t (id INT); RETURN 1; END",
        "CREATE VIEW w AS SELECT f() AS x",
    ];
    let setup = [&setup, further].concat();
    Some(Front::on(
        server,
        schema,
        RemoraOptions::following(),
        &setup,
    ))
}

#[test]
fn a_temporary_table_that_code_creates_stays_the_sessions_own() {
    let further = [
        "CREATE TABLE fires (id INT)",
        "CREATE TRIGGER g BEFORE INSERT ON fires FOR EACH ROW \
         BEGIN IF NEW.id = 2 THEN CREATE TEMPORARY TABLE t (id INT); END IF; END",
    ];
    let Some(front) = where_code_creates_a_temporary_table("hidden_temporary", &further) else {
        return;
    };
    let read = "SELECT id FROM t";
    let expected = front.direct().query_bytes(read).unwrap().to_vec();
    let (mut other, mut session) = (front.guest(), front.guest());
    other.becomes_hit(read, &expected);
    // What a trigger may do, and hasn't done, keeps nobody from memory for long; nor does a table
    // that the session has made before everybody's eyes.
    session.setup(&["CREATE TABLE seen (id INT)", "INSERT INTO fires VALUES (1)"]);
    session.becomes_hit(read, &expected);
    for code in ["INSERT INTO fires VALUES (2)", "SELECT x FROM w"] {
        let (mut direct, mut session) = (front.direct(), front.guest());
        session.becomes_hit(read, &expected);
        session.setup(&[code]);
        direct.query(code).unwrap();
        let hidden = direct.query_bytes(read).unwrap().to_vec();
        assert_ne!(hidden, expected);
        for _ in 0..3 {
            assert_same(code, &session.run(read).bytes, &hidden);
            assert_same("of all", &other.run(read).bytes, &expected);
        }
    }
}

const FLUSH: &str = "FLUSH STATUS";

/// On MySQL anybody's `FLUSH STATUS` resets the counts by which such a table is noticed.
#[test]
fn a_temporary_table_that_code_creates_is_noticed_whoever_resets_the_counts() {
    let further = [
        "CREATE FUNCTION g() RETURNS INT RETURN 1",
        "CREATE VIEW harmless AS SELECT g() AS x",
    ];
    let Some(front) = where_code_creates_a_temporary_table("counts_reset", &further) else {
        return;
    };
    let read = "SELECT id FROM t";
    let expected = front.direct().query_bytes(read).unwrap().to_vec();
    let (mut other, mut anybody) = (front.guest(), front.direct());
    for texts in [
        &["SELECT x FROM w", FLUSH][..],
        &["CREATE TABLE one (id INT)", FLUSH, "SELECT x FROM w"],
        &["CREATE TABLE two (id INT)", "SELECT x FROM w", FLUSH],
        // The read makes Remora ask once before.
        &[
            "CREATE TABLE three (id INT)",
            "SELECT x FROM harmless",
            read,
            FLUSH,
            "SELECT x FROM w",
        ],
    ] {
        let mut session = front.guest();
        session.becomes_hit(read, &expected);
        for text in texts {
            if *text == FLUSH {
                anybody.query(text).unwrap();
            } else {
                session.setup(&[text]);
            }
        }
        session.always_passes(read, "temporary_tables");
        assert_same("of all", &other.run(read).bytes, &expected);
    }
    // Else it keeps nobody from memory.
    let mut session = front.guest();
    session.becomes_hit(read, &expected);
    // MySQL 5.6 has no `COM_RESET_CONNECTION`.
    let can_be_reset = front.server().kind().tracks_sessions();
    for is_reset in [false, true] {
        if is_reset && can_be_reset {
            // COM_RESET_CONNECTION
            session.command(0x1f, b"", ResponseKind::Single);
        }
        anybody.query(FLUSH).unwrap();
        session.setup(&["SELECT x FROM harmless"]);
        session.becomes("hit", read, None);
    }
}

/// Ways to turn the log off that a text doesn't show.
fn log_turned_off(kind: Kind) -> Vec<Vec<&'static str>> {
    let mut ways = vec![
        vec!["PREPARE s FROM 'SET sql_log_bin = 0'", "EXECUTE s"],
        vec![
            "SET @s = CONCAT('SET sql_log_', 'bin = 0')",
            "PREPARE s FROM @s",
            "EXECUTE s",
        ],
        vec!["CALL turn_off()"],
        vec!["CALL turn_off()", "CALL nothing()", "SELECT 1"],
    ];
    if !kind.is_mysql() {
        ways.push(vec![
            "SET @s = CONCAT('SET sql_log_', 'bin = 0')",
            "EXECUTE IMMEDIATE @s",
        ]);
        ways.push(vec![
            "SET sql_mode = 'ORACLE'",
            "EXECUTE IMMEDIATE CONCAT('SET sql_log_', 'bin = 0')",
        ]);
        ways.push(vec!["SET sql_mode = 'ORACLE'", "SET sql_log_bin = 0"]);
    }
    ways
}

#[test]
fn a_change_that_is_kept_out_of_the_log_unseen_outdates_what_it_may_concern() {
    let front = Front::new(
        "hidden_log",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE PROCEDURE turn_off() SET SESSION sql_log_bin = 0",
            "CREATE PROCEDURE nothing() SELECT 1",
            "CREATE PROCEDURE write_t() UPDATE t SET v = v + 1",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let root = ConnectOptions::new(front.server().address(), "root", "").schema(front.schema());
    for way in log_turned_off(front.server().kind()) {
        for write in [
            "UPDATE t SET v = v + 1 WHERE id = 1",
            "CALL write_t()",
            "START TRANSACTION; UPDATE t SET v = v + 1 WHERE id = 1; COMMIT",
        ] {
            let (mut reader, mut writer) = (front.guest(), front.guest_as(&root));
            writer.run(read);
            let before = front.direct().query_bytes(read).unwrap().to_vec();
            reader.becomes_hit(read, &before);
            writer.setup(&way);
            let statements: Vec<&str> = write.split("; ").collect();
            writer.setup(&statements);
            let after = front.direct().query_bytes(read).unwrap().to_vec();
            assert_ne!(before, after, "{write}");
            front.catch_up();
            for _ in 0..3 {
                let seen = reader.run(read);
                let what = format!("after {way:?} and {write}: {}", seen.outcome);
                assert_same(&what, &seen.bytes, &after);
            }
        }
    }
}

/// What a session does next.
type Next = fn(&mut Guest<'_>);

/// The log is off for the very code that turned it off: its fence is down when anybody can know.
#[test]
fn what_a_procedure_wrote_that_left_the_log_off_is_outdated_with_the_next_statement() {
    let front = Front::new(
        "hidden_procedure",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE PROCEDURE p() BEGIN SET sql_log_bin = 0; UPDATE t SET v = v + 1; END",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let mut reader = front.guest();
    let next: [(&str, Next); 4] = [
        ("a read", |writer| {
            writer.run("SELECT 1 FROM t");
        }),
        ("a ping and a write", |writer| {
            writer.command(PING, &[], ResponseKind::Single);
            writer.run("DO 1");
        }),
        ("an execution", |writer| {
            let client = writer.client();
            let statement = client.prepare(b"SELECT 1 FROM t").unwrap();
            client.execute(statement, &[]).unwrap();
        }),
        ("the end", |writer| {
            let client = writer.client();
            client.command(0x01, &[], ResponseKind::Nothing).unwrap();
            let mut stream = client.stream();
            assert_eq!(std::io::Read::read(&mut stream, &mut [0]).unwrap(), 0);
        }),
    ];
    for (what, next) in next {
        let before = front.direct().query_bytes(read).unwrap().to_vec();
        reader.becomes_hit(read, &before);
        let mut writer = front.guest();
        writer.setup(&["CALL p()"]);
        next(&mut writer);
        front.catch_up();
        let after = front.direct().query_bytes(read).unwrap().to_vec();
        assert_ne!(before, after);
        for _ in 0..3 {
            let seen = reader.run(read);
            let what = format!("{what}: {}", seen.outcome);
            assert_same(&what, &seen.bytes, &after);
        }
    }
}

/// Whoever goes on reading doesn't ask the server now and then, which would give a new row to all.
fn never_refreshed() -> RemoraOptions {
    RemoraOptions::following().with("workers.server_contact_ms", "3600000")
}

/// Nothing comes from its session before which the server could be asked.
#[test]
fn what_a_procedure_wrote_that_left_the_log_off_is_outdated_though_its_session_is_silent() {
    let front = Front::with(
        "hidden_silent",
        never_refreshed(),
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE PROCEDURE p() BEGIN SET sql_log_bin = 0; UPDATE t SET v = v + 1; END",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let mut reader = front.guest();
    let meanwhile: [(&str, Next); 3] = [
        ("silence", |_| {}),
        ("pings", |writer| {
            writer.command(PING, &[], ResponseKind::Single);
        }),
        ("a lost connection", |writer| {
            // It is lost from the first time on.
            let _ = writer.client().stream().shutdown(Shutdown::Both);
        }),
    ];
    for (what, meanwhile) in meanwhile {
        let before = front.direct().query_bytes(read).unwrap().to_vec();
        reader.becomes_hit(read, &before);
        let mut writer = front.guest();
        writer.setup(&["CALL p()"]);
        front.catch_up();
        let after = front.direct().query_bytes(read).unwrap().to_vec();
        assert_ne!(before, after);
        let known = wait_for("the change to be known", PATIENCE, || {
            meanwhile(&mut writer);
            let seen = reader.run(read);
            Ok((seen.outcome == "hit" && seen.bytes == after).then_some(()))
        });
        known.unwrap_or_else(|error| panic!("{what}: {error}"));
        for _ in 0..3 {
            let seen = reader.run(read);
            assert_same(&format!("{what}: {}", seen.outcome), &seen.bytes, &after);
        }
    }
}

#[test]
fn what_a_procedure_wrote_without_the_log_is_outdated_when_its_client_left_before_its_end() {
    let front = Front::with(
        "hidden_left",
        never_refreshed(),
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE PROCEDURE p() BEGIN SET sql_log_bin = 0; UPDATE t SET v = v + 1; \
             DO GET_LOCK('hidden_left', 3600); END",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let (mut reader, mut direct) = (front.guest(), front.direct());
    direct.query("DO GET_LOCK('hidden_left', 0)").unwrap();
    let before = direct.query_bytes(read).unwrap().to_vec();
    reader.becomes_hit(read, &before);
    let writer = front.guest().into_client();
    // Else the message would be another one.
    assert!(!writer.capabilities().has(Capabilities::QUERY_ATTRIBUTES));
    let mut message = Vec::new();
    put_message(&mut message, 0, b"\x03CALL p()");
    writer.stream().write_all(&message).unwrap();
    let after = wait_for("the procedure to have written", PATIENCE, || {
        let now = direct.query_bytes(read)?.to_vec();
        Ok((now != before).then_some(now))
    });
    let after = after.unwrap();
    writer.stream().shutdown(Shutdown::Both).unwrap();
    direct.query("DO RELEASE_LOCK('hidden_left')").unwrap();
    let known = wait_for("the change to be known", PATIENCE, || {
        let seen = reader.run(read);
        Ok((seen.outcome == "hit" && seen.bytes == after).then_some(()))
    });
    known.unwrap();
    front.catch_up();
    for _ in 0..3 {
        let seen = reader.run(read);
        assert_same(seen.outcome, &seen.bytes, &after);
    }
}

/// A view is known by its other spellings, and wherever it is.
#[test]
fn a_view_by_another_name_or_in_a_schema_of_the_servers_is_fenced() {
    let (front, gate) = behind_a_gate(
        "hidden_elsewhere",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
            "CREATE VIEW w AS SELECT f() AS x",
            "CREATE DATABASE IF NOT EXISTS sys",
            "CREATE OR REPLACE VIEW sys.touching AS SELECT hidden_elsewhere.f() AS x",
            // Equal to a schema of the server's where accents and letter case don't count.
            "CREATE DATABASE `Pérformance_schema`",
            "CREATE VIEW `Pérformance_schema`.w2 AS SELECT hidden_elsewhere.f() AS x",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    let mut sources = vec!["sys.touching", "`Pérformance_schema`.w2"];
    if matches!(front.server().kind(), Kind::MySql57 | Kind::MySql56) {
        sources.push("`#mysql50#w`");
    }
    for source in sources {
        let sql = format!("SELECT x FROM {source}");
        is_fenced(&front, &gate, read, |writer| writer.setup(&[&sql]));
    }
    front.direct().query("DROP VIEW sys.touching").unwrap();
    let drop = "DROP DATABASE `Pérformance_schema`";
    front.direct().query(drop).unwrap();
}

#[test]
fn no_setting_distorts_what_a_session_is_asked_about_itself() {
    let (front, gate) = behind_a_gate(
        "hidden_distorted",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    for set in [
        "SET character_set_results = utf16",
        "SET character_set_results = ucs2",
        "SET character_set_results = utf32",
        "SET character_set_results = NULL",
        "SET collation_connection = utf16_general_ci",
        "SET sql_select_limit = 1",
    ] {
        is_fenced(&front, &gate, read, |writer| {
            writer.setup(&["SET sql_mode = 'ANSI_QUOTES'", set, "DO \"f\"()"]);
        });
        // The session goes on, and gets what it gets directly.
        let set = set.replace("limit = 1", "limit = 0");
        let set = set.as_str();
        let (mut session, mut direct) = (front.guest(), front.direct());
        session.setup(&[set]);
        direct.query(set).unwrap();
        let expected = direct.query_bytes(read).unwrap().to_vec();
        for _ in 0..3 {
            assert_same(set, &session.run(read).bytes, &expected);
        }
    }
}

#[test]
fn a_schema_is_named_right_in_any_character_set() {
    // In latin1 the name of the one has the bytes that the other's has in UTF-8.
    let (front, gate) = behind_a_gate(
        "hidden_names",
        &[
            "CREATE DATABASE `\u{e9}`",
            "CREATE DATABASE `\u{c3}\u{a9}`",
            "CREATE TABLE `\u{e9}`.t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE `\u{c3}\u{a9}`.t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO `\u{e9}`.t VALUES (1, 1)",
            "INSERT INTO `\u{c3}\u{a9}`.t VALUES (1, 1)",
        ],
    );
    let read = "SELECT v FROM t WHERE id = 1";
    for schema in ["\u{e9}", "\u{c3}\u{a9}"] {
        let options = front.server().app().schema(schema);
        let (mut reader, mut writer) = (front.guest_as(&options), front.guest_as(&options));
        let mut direct = options.connect().unwrap();
        let before = direct.query_bytes(read).unwrap().to_vec();
        reader.becomes_hit(read, &before);
        writer.setup(&["SET NAMES latin1"]);
        gate.hold(true);
        writer.setup(&["UPDATE t SET v = v + 1"]);
        let after = direct.query_bytes(read).unwrap().to_vec();
        let seen = reader.run(read);
        gate.hold(false);
        assert_same(schema, &seen.bytes, &after);
    }
}
