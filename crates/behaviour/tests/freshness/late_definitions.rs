//! Definitions that have just been changed through Remora. The server goes by them at once, and the
//! log tells of them later: what is sent in between may run code that nobody has heard of.

use remora_testkit::log_gate::LogGate;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};

const READ: &str = "SELECT v FROM t WHERE id = 1";

/// How often is read while the log has told of the definitions, and not of what ran by them.
const READS_BETWEEN: usize = 50;

/// A Remora behind a log that can be held back.
fn behind_a_gate(schema: &str, setup: &[&str]) -> (Front, LogGate) {
    let common = [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, name VARCHAR(9))",
        "INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two')",
        "CREATE TABLE fires (id INT)",
        "INSERT INTO fires VALUES (0)",
    ];
    let setup: Vec<&str> = common.iter().chain(setup).copied().collect();
    Front::behind_gate(lease(), schema, RemoraOptions::following(), &setup)
}

/// Has a statement answered from memory as the server answers it.
fn keep(front: &Front, guest: &mut Guest<'_>, sql: &str) -> Vec<u8> {
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    expected
}

/// Who runs what runs code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Another session than the one that has changed the definitions.
    Another,
    /// The same.
    Itself,
    /// Another, which has prepared it before.
    Prepared,
}

/// `define` changes definitions through Remora, `run` runs code by them, and only then the log
/// tells of the definitions, up to the event with `last` in its text. Nobody reads what was before.
fn is_fenced_late(
    (front, gate): (&Front, &LogGate),
    define: &[&str],
    last: &str,
    run: &[&str],
    by: By,
) {
    let shared = front.remora().app().unwrap().shared();
    let (mut reader, mut definer, mut writer) = (front.guest(), front.guest(), front.guest());
    // So that it is known what they are.
    keep(front, &mut writer, "SELECT id FROM fires");
    let prepared: Vec<_> = run
        .iter()
        .filter(|_| by == By::Prepared)
        .map(|sql| writer.client().prepare(sql.as_bytes()).unwrap())
        .collect();
    front.catch_up();
    let before = keep(front, &mut reader, READ);
    let applied = shared.timeline.applied();
    gate.hold(true);
    definer.setup(define);
    wait_for("the server to have been asked", PATIENCE, || {
        let waiting = &shared.upstream.counters.batches_waiting;
        let has_been_asked = waiting.load(std::sync::atomic::Ordering::Relaxed) > 0;
        Ok(has_been_asked.then_some(()))
    })
    .unwrap();
    match by {
        By::Another => writer.setup(run),
        By::Itself => definer.setup(run),
        By::Prepared => {
            for statement in prepared {
                writer.client().execute(statement, &[]).unwrap();
            }
        }
    }
    let after = front.direct().query_bytes(READ).unwrap().to_vec();
    assert_ne!(after, before, "{define:?}: something was written");
    let mut reads_it = |when: &str| {
        let seen = reader.run(READ);
        let what = format!("{define:?}, {run:?} by {by:?}, {when}: {}", seen.outcome);
        assert_same(&what, &seen.bytes, &after);
    };
    reads_it("before the log tells");
    gate.let_through(last.as_bytes());
    wait_for("the definitions to be known", PATIENCE, || {
        Ok((shared.timeline.applied() > applied).then_some(()))
    })
    .unwrap();
    for _ in 0..READS_BETWEEN {
        reads_it("between");
    }
    gate.hold(false);
    front.catch_up();
    for _ in 0..3 {
        reads_it("afterwards");
    }
    reader.becomes_hit(READ, &after);
}

#[test]
fn what_a_trigger_writes_that_was_just_created_is_fenced() {
    let (front, gate) = behind_a_gate("late_trigger", &[]);
    let create = "CREATE TRIGGER late_g AFTER INSERT ON fires FOR EACH ROW UPDATE t SET v = v + 1";
    let insert = "INSERT INTO fires VALUES (1)";
    let transaction = ["BEGIN", insert, "COMMIT"];
    for (run, by) in [
        (&[insert][..], By::Another),
        (&[insert][..], By::Itself),
        (&[insert][..], By::Prepared),
        (&["REPLACE INTO fires SELECT 1"][..], By::Another),
        (&transaction[..], By::Another),
    ] {
        is_fenced_late((&front, &gate), &[create], "late_g", run, by);
        front.guest().setup(&["DROP TRIGGER late_g"]);
    }
}

#[test]
fn what_a_view_runs_that_was_just_replaced_is_fenced() {
    let (front, gate) = behind_a_gate(
        "late_view",
        &[
            "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE t SET v = v + 1; RETURN 1; END",
            "CREATE VIEW late_w AS SELECT id AS x FROM fires",
            "CREATE VIEW over_w AS SELECT x FROM late_w",
        ],
    );
    let replace = "CREATE OR REPLACE VIEW late_w AS SELECT f() AS x";
    for (read, by) in [
        ("SELECT x, NOW() FROM late_w", By::Another),
        ("SELECT x FROM over_w", By::Another),
        ("SELECT x, NOW() FROM over_w", By::Itself),
        ("SELECT x FROM late_w", By::Prepared),
        ("SET @a = (SELECT MAX(x) FROM late_w)", By::Another),
    ] {
        is_fenced_late((&front, &gate), &[replace], "late_w", &[read], by);
        front
            .guest()
            .setup(&["CREATE OR REPLACE VIEW late_w AS SELECT id AS x FROM fires"]);
    }
}

#[test]
fn what_a_function_writes_that_was_just_created_anew_is_fenced() {
    let (front, gate) = behind_a_gate(
        "late_function",
        &[
            "CREATE FUNCTION late_f() RETURNS INT RETURN 1",
            "CREATE VIEW w AS SELECT late_f() AS x",
        ],
    );
    let define = [
        "DROP FUNCTION late_f",
        "CREATE FUNCTION late_f() RETURNS INT \
         BEGIN UPDATE t SET v = v + 1; SET @late_body = 1; RETURN 1; END",
    ];
    for read in ["SELECT x, NOW() FROM w", "SELECT late_f()"] {
        is_fenced_late((&front, &gate), &define, "late_body", &[read], By::Another);
        front.guest().setup(&[
            "DROP FUNCTION late_f",
            "CREATE FUNCTION late_f() RETURNS INT RETURN 1",
        ]);
    }
}

/// A trigger goes with its table. A text that isn't seen may rename one, too.
#[test]
fn what_a_trigger_writes_whose_table_was_just_renamed_is_fenced() {
    let (front, gate) = behind_a_gate(
        "late_rename",
        &[
            "CREATE TABLE other LIKE fires",
            "CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW UPDATE t SET v = v + 1",
            "CREATE PROCEDURE swap() RENAME TABLE fires TO late_t, other TO fires",
        ],
    );
    let insert = "INSERT INTO fires VALUES (1)";
    for (rename, by) in [
        ("RENAME TABLE fires TO late_t, other TO fires", By::Another),
        ("RENAME TABLE fires TO late_t, other TO fires", By::Prepared),
        ("CALL swap()", By::Another),
    ] {
        is_fenced_late((&front, &gate), &[rename], "late_t", &[insert], by);
        front
            .guest()
            .setup(&["RENAME TABLE fires TO other, late_t TO fires"]);
    }
}

#[test]
fn settings_that_a_trigger_changes_that_was_just_created_are_the_sessions() {
    let (front, gate) = behind_a_gate("late_settings", &[]);
    let read = "SELECT GROUP_CONCAT(name) FROM t";
    let (mut plain, mut changed) = (front.guest(), front.guest());
    let expected = keep(&front, &mut plain, read);
    keep(&front, &mut changed, read);
    keep(&front, &mut changed, "SELECT id FROM fires");
    gate.hold(true);
    front
        .guest()
        .setup(&["CREATE TRIGGER g BEFORE INSERT ON fires FOR EACH ROW \
         BEGIN SET SESSION group_concat_max_len = 4; END"]);
    changed.setup(&["INSERT INTO fires VALUES (1)"]);
    gate.hold(false);
    let mut direct = front.direct();
    direct.query("INSERT INTO fires VALUES (1)").unwrap();
    let under_others = direct.query_bytes(read).unwrap().to_vec();
    assert_ne!(under_others, expected);
    front.catch_up();
    keep(&front, &mut plain, read);
    for _ in 0..3 {
        assert_same("of its own", &changed.run(read).bytes, &under_others);
        assert_same("beside it", &plain.run(read).bytes, &expected);
    }
}

/// Whoever only reads a table isn't held up by a procedure that may change definitions.
#[test]
fn a_table_that_is_read_while_a_procedure_runs_fences_nothing() {
    let (front, gate) = behind_a_gate("late_nothing", &["CREATE PROCEDURE p() SELECT 1"]);
    let shared = front.remora().app().unwrap().shared();
    let (mut reader, mut caller) = (front.guest(), front.guest());
    keep(&front, &mut reader, READ);
    front.catch_up();
    gate.hold(true);
    // Something that the log has yet to tell of holds the fence of the procedure up.
    caller.setup(&["INSERT INTO fires VALUES (1)", "CALL p()"]);
    let in_doubt = || shared.timeline.definitions();
    assert_eq!(in_doubt(), remora_cache::Definitions::Perhaps);
    let questions = |guest: &mut Guest<'_>| {
        let status = guest.client().query("SHOW SESSION STATUS LIKE 'Questions'");
        let value = status.unwrap().rows().unwrap()[0][1].clone().unwrap();
        String::from_utf8(value).unwrap().parse::<u64>().unwrap()
    };
    let before = questions(&mut reader);
    for _ in 0..3 {
        reader.run(READ);
    }
    let after = questions(&mut reader);
    gate.hold(false);
    // Each was a question, as is the last.
    assert_eq!(after - before, 4);
}
