//! Several statements in one text: each is answered, and memory goes on answering the session where
//! it is known what they do to it.

use remora_testkit::process::wait_for;
use remora_testkit::servers::Kind;

use remora_behaviour::front::{Front, PATIENCE};
use remora_behaviour::outcome::is_unproven;

use crate::session::{READ, T, direct_bytes, warm};

#[test]
fn several_statements_in_one_text_are_answered_in_order_and_drop_what_they_write() {
    let front = Front::new("multi", &T);
    let mut reader = front.guest();
    let mut guest = front.guest();
    let multi = |n: i32| {
        format!(
            "SELECT a FROM t WHERE a = 1; REPLACE INTO t VALUES ({n}, 'multi'); SELECT s FROM t WHERE a = {n}"
        )
    };
    warm(&front, &mut reader, READ);
    let seen = guest.run(&multi(30)).bytes;
    assert_eq!(reader.run(READ).bytes, direct_bytes(&front, READ));
    assert_eq!(seen.len(), direct_bytes(&front, &multi(31)).len());
    // The middle one fails: the rest is not run.
    let broken = "INSERT INTO t VALUES (40, 'before'); INSERT INTO t VALUES (40, 'double'); INSERT INTO t VALUES (41, 'never')";
    warm(&front, &mut reader, "SELECT COUNT(*) FROM t");
    guest.run(broken);
    let count = reader.value("SELECT COUNT(*) FROM t").0;
    assert_eq!(count.as_deref(), Some("6"));
}

#[test]
fn memory_answers_a_session_after_several_statements_in_one_text() {
    let front = Front::new("after_multi", &T);
    let mut guest = front.guest();
    let all = direct_bytes(&front, READ);
    guest.becomes_hit(READ, &all);
    let texts = [
        "SELECT 1; SELECT a FROM t; SHOW TABLES",
        "SET @a = 5; SELECT @a + 1; DO 1",
    ];
    for text in texts {
        let seen = guest.run(text);
        assert_eq!(seen.bytes, direct_bytes(&front, text), "{text}");
        assert_eq!(seen.outcome, "statement_multiple_statements", "{text}");
        guest.becomes_hit(READ, &all);
    }
    let written = "REPLACE INTO t VALUES (50, 'multi'); SELECT COUNT(*) FROM t";
    assert_eq!(guest.run(written).outcome, "write");
    let seen = guest.run(READ);
    assert_ne!(seen.outcome, "hit");
    assert_eq!(seen.bytes, direct_bytes(&front, READ));
    guest.becomes_hit(READ, &seen.bytes);
    // What it does to the session isn't followed.
    guest.run("SELECT 1; CREATE TEMPORARY TABLE x (a INT)");
    guest.always_passes(READ, "session_unknown");
}

/// A part that asks about the part before it asks about nothing that memory has answered.
#[test]
fn an_insert_and_the_question_for_its_number_forget_nothing() {
    let front = Front::new(
        "multi_questions",
        &[
            &T[..],
            &["CREATE TABLE u (a INT AUTO_INCREMENT PRIMARY KEY, b INT)"],
        ]
        .concat(),
    );
    let mut reader = front.guest();
    warm(&front, &mut reader, READ);
    let expected = direct_bytes(&front, READ);
    for text in [
        "INSERT INTO u (b) VALUES (1); SELECT ROW_COUNT()",
        "INSERT INTO u (b) VALUES (2); SELECT a FROM u WHERE ROW_COUNT() = 1 AND a = LAST_INSERT_ID()",
    ] {
        // A session of which nothing is known yet.
        assert_eq!(front.guest().run(text).outcome, "write", "{text}");
        front.catch_up();
        let outcome = wait_for("the fence to be lowered", PATIENCE, || {
            let seen = reader.run(READ);
            assert_eq!(seen.bytes, expected);
            let is_fenced = seen.outcome.starts_with("unservable") || is_unproven(seen.outcome);
            Ok((!is_fenced).then_some(seen.outcome))
        });
        assert_eq!(outcome.unwrap(), "hit", "{text}");
    }
}

/// As clients send them when they connect.
#[test]
fn settings_that_are_set_in_one_text_count_for_what_follows() {
    let front = Front::new("multi_settings", &T);
    let reads = "SELECT s, HEX(s), 5 / 3 FROM t ORDER BY a";
    let texts = [
        ("SET NAMES latin1; SET div_precision_increment = 6;", false),
        // The first is in force, though the text fails.
        (
            "SET div_precision_increment = 9; SET time_zone = 'nowhere'",
            true,
        ),
    ];
    for (text, fails) in texts {
        let (mut direct, mut guest) = (front.direct(), front.guest());
        assert_eq!(direct.query(text).is_err(), fails, "{text}");
        guest.becomes_hit(reads, &direct_bytes(&front, reads));
        guest.run(text);
        let expected = direct.query_bytes(reads).unwrap().to_vec();
        assert_ne!(expected, direct_bytes(&front, reads), "{text}");
        guest.setup(&["DO 1"]);
        guest.becomes_hit(reads, &expected);
    }
}

/// A trigger isn't in the text.
#[test]
fn what_a_trigger_sets_behind_one_of_several_statements_is_the_sessions() {
    let kind = Kind::from_environment().unwrap();
    let front = Front::new(
        "multi_triggers",
        &[
            &T[..],
            &[
                "CREATE TABLE u (a INT)",
                "CREATE TRIGGER sets BEFORE INSERT ON u FOR EACH ROW SET SESSION div_precision_increment = 9",
            ],
        ]
        .concat(),
    );
    let reads = "SELECT 5 / 3, s FROM t";
    let (mut direct, mut guest) = (front.direct(), front.guest());
    let before = direct_bytes(&front, reads);
    guest.becomes_hit(reads, &before);
    let text = "SELECT 1; INSERT INTO u VALUES (1)";
    direct.query(text).unwrap();
    guest.run(text);
    let after = direct.query_bytes(reads).unwrap().to_vec();
    assert_ne!(after, before, "{kind:?}");
    guest.becomes_hit(reads, &after);
}
