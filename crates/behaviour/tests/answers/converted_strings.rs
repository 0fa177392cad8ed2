//! Strings that the server converts from one character set to another before it compares them, in
//! prepared statements: by the settings of then, not of now.

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

use super::prepared::{
    EXECUTE, PREPARE, Types, Value, command, execution, number_in, prepare, run, text,
};

/// In UTF-8 the first two are the same letter, read as UTF-8 and as latin1.
const TABLES: [&str; 2] = [
    "CREATE TABLE b (id INT PRIMARY KEY, x INT NOT NULL, vb VARBINARY(20), vc VARCHAR(20) CHARACTER SET utf8, KEY (vb), KEY (vc))",
    "INSERT INTO b VALUES (1, 0, x'C3BC', 'one'), (2, 0, x'C383C2BC', 'two'), (3, 0, x'61', 'a'), (4, 0, x'0061', 'b')",
];
const HERE: &str = "SET NAMES utf8";
const ELSEWHERE: &str = "SET character_set_connection = latin1";
const BY_PARAMETER: &str = "SELECT id, vb FROM b WHERE vb = ?";
const BY_LITERAL: &str = "SELECT id, vb FROM b WHERE vb = '\u{c3}\u{bc}'";

/// A session through Remora and one past it, which do the same.
struct Pair<'f> {
    guest: Guest<'f>,
    direct: Client,
    statements: [u32; 2],
}

impl<'f> Pair<'f> {
    fn prepared(front: &'f Front, sql: &str) -> Pair<'f> {
        let (mut guest, mut direct) = (front.guest(), front.direct());
        guest.setup(&[HERE, "SELECT id FROM b WHERE id = 1"]);
        direct.query(HERE).unwrap();
        let answer = command(&mut direct, PREPARE, sql.as_bytes(), ResponseKind::Prepared);
        let statements = [prepare(&mut guest, sql), number_in(&answer)];
        Pair {
            guest,
            direct,
            statements,
        }
    }

    fn says(&mut self, sql: &str) {
        self.guest.setup(&[sql]);
        self.direct.query(sql).unwrap();
    }

    fn executes(&mut self, what: &str, values: &[Value], types: Types) -> &'static str {
        let [id, direct_id] = self.statements;
        let body = execution(direct_id, values, types, 0);
        let expected = command(&mut self.direct, EXECUTE, &body, ResponseKind::Results);
        let (outcome, seen) = run(&mut self.guest, id, values, types);
        assert_same(what, &seen, &expected);
        outcome
    }

    /// Executes until memory answers.
    fn becomes_hit(&mut self, what: &str, values: &[Value]) {
        let hit = wait_for("a hit", PATIENCE, || {
            let outcome = self.executes(what, values, Types::Named);
            Ok((outcome == "hit").then_some(()))
        });
        hit.unwrap();
    }
}

#[test]
fn a_parameter_is_converted_as_when_its_type_was_named() {
    let front = Front::new("converted_parameters", &TABLES);
    let values = [text("\u{c3}\u{bc}")];
    let mut one = Pair::prepared(&front, BY_PARAMETER);
    one.says(ELSEWHERE);
    one.executes("types", &values, Types::Named);
    one.says(HERE);
    for _ in 0..3 {
        one.executes("remembered types", &values, Types::Remembered);
    }
    Pair::prepared(&front, BY_PARAMETER).becomes_hit("another session", &values);
}

#[test]
fn a_statement_that_was_prepared_again_elsewhere_is_not_looked_up() {
    let front = Front::new("prepared_again", &TABLES);
    let mut one = Pair::prepared(&front, BY_LITERAL);
    one.says(ELSEWHERE);
    front
        .direct()
        .query("ALTER TABLE b ADD COLUMN y INT")
        .unwrap();
    front.catch_up();
    one.executes("prepared again", &[], Types::Named);
    one.says(HERE);
    // Longer than it takes to keep a result.
    for _ in 0..20 {
        one.executes("prepared again", &[], Types::Named);
        front.settle();
    }
    Pair::prepared(&front, BY_LITERAL).becomes_hit("another session", &[]);
}

#[test]
fn a_write_that_was_prepared_elsewhere_is_seen_at_once() {
    let front = Front::new("converted_writes", &TABLES);
    let read = "SELECT x FROM b WHERE vb = '\u{fc}'";
    let mut guest = front.guest();
    guest.setup(&[HERE, ELSEWHERE]);
    let write = prepare(
        &mut guest,
        "UPDATE b SET x = x + 1 WHERE vb = '\u{c3}\u{bc}'",
    );
    guest.setup(&[HERE]);
    let hit = wait_for("a hit in a transaction", PATIENCE, || {
        guest.setup(&["ROLLBACK", "BEGIN", "SELECT id FROM b WHERE id = 3"]);
        Ok((guest.run(read).outcome == "hit").then_some(()))
    });
    hit.unwrap();
    run(&mut guest, write, &[], Types::Named);
    assert_eq!(guest.value(read).0.as_deref(), Some("1"));
    guest.setup(&["COMMIT"]);
    let mut other = front.guest();
    other.setup(&[HERE]);
    assert_eq!(other.value(read).0.as_deref(), Some("1"));
}
