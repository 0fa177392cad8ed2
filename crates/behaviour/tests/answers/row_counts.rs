//! `FOUND_ROWS()`, `ROW_COUNT()` and the warnings, some statements and commands after a hit: what
//! a direct connection gives.

use remora_testkit::client::{Client, ClientError};
use remora_testkit::process::wait_for;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, PATIENCE, PING};
use remora_behaviour::outcome::HIT;

const SETUP: [&str; 3] = [
    "CREATE TABLE t (a INT PRIMARY KEY)",
    "INSERT INTO t VALUES (1), (2), (3), (4), (5)",
    "CREATE TABLE w (a INT)",
];

/// What memory is to answer.
const READ: &str = "SELECT a FROM t WHERE a < 4";
/// The same, prepared.
const PREPARED_READ: &str = "SELECT a FROM t WHERE a < 5";

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// What a client does between a hit and its question about it.
#[derive(Debug, Clone, Copy)]
enum Interlude {
    Sql(&'static str),
    Command(u8, &'static [u8], ResponseKind),
}

use Interlude::{Command, Sql};

const INTERLUDES: [Interlude; 30] = [
    Sql("SET @a = 1"),
    Sql("DO 1"),
    Sql("SET NAMES utf8mb4"),
    Sql("SET SESSION lock_wait_timeout = 100"),
    Sql("BEGIN"),
    Sql("COMMIT"),
    Sql("ROLLBACK"),
    Sql("USE row_counts"),
    Sql("INSERT INTO w VALUES (1), (2)"),
    Sql("UPDATE w SET a = 3 - a"),
    Sql("DELETE FROM w WHERE a = 2"),
    Sql("DELETE FROM w"),
    Sql("INSERT INTO w SELECT a FROM t"),
    Sql("TRUNCATE TABLE w"),
    Sql("CREATE TABLE IF NOT EXISTS w (a INT)"),
    Sql("SELECT a INTO @b FROM t WHERE a = 2"),
    Sql("SELECT a FROM no_such_table"),
    Sql("UPDATE no_such_table SET a = 1"),
    Sql("LOCK TABLES t READ, w READ"),
    Sql("UNLOCK TABLES"),
    Sql("SHOW TABLES"),
    Sql("SELECT CONNECTION_ID() > 0"),
    Sql("SELECT a FROM t WHERE a > 100 AND CONNECTION_ID() > 0"),
    Sql("FLUSH TABLES w"),
    Command(PING, b"", ResponseKind::Single),
    Command(0x09, b"", ResponseKind::Single),
    Command(0x02, b"row_counts", ResponseKind::Single),
    Command(PREPARE, b"SELECT 1", ResponseKind::Prepared),
    Command(PREPARE, b"nonsense", ResponseKind::Prepared),
    Command(0x04, b"t\0", ResponseKind::Columns),
];

const QUESTIONS: [&str; 6] = [
    "SELECT FOUND_ROWS()",
    "SELECT ROW_COUNT()",
    "SHOW WARNINGS",
    "SELECT @@warning_count",
    "SET @found = FOUND_ROWS()",
    "DO ROW_COUNT()",
];

impl Interlude {
    fn run(self, client: &mut Client) -> Vec<u8> {
        let (byte, body, expect) = match self {
            Sql(sql) => (3, sql.as_bytes(), ResponseKind::Results),
            Command(byte, body, expect) => (byte, body, expect),
        };
        command(client, byte, body, expect);
        client.answer_bytes().to_vec()
    }
}

fn command(client: &mut Client, byte: u8, body: &[u8], expect: ResponseKind) {
    match client.command(byte, body, expect) {
        Ok(_) | Err(ClientError::Server(_)) => {}
        Err(error) => panic!("command {byte}: {error}"),
    }
}

/// Prepares, executes and closes.
fn run_prepared(client: &mut Client, sql: &str) -> Vec<u8> {
    command(client, PREPARE, sql.as_bytes(), ResponseKind::Prepared);
    let id = client.answer_bytes()[5..9].to_vec();
    let answer = execute(client, &id);
    command(client, CLOSE, &id, ResponseKind::Nothing);
    answer
}

fn execute(client: &mut Client, id: &[u8]) -> Vec<u8> {
    command(
        client,
        EXECUTE,
        &[id, &[0, 1, 0, 0, 0]].concat(),
        ResponseKind::Results,
    );
    client.answer_bytes().to_vec()
}

/// A connection on which a sequence is run.
enum Side<'f> {
    Direct(Client),
    Through(Guest<'f>),
}

impl Side<'_> {
    fn client(&mut self) -> &mut Client {
        match self {
            Side::Direct(client) => client,
            Side::Through(guest) => guest.client(),
        }
    }

    /// Runs a statement; through Remora until memory has answered it.
    fn hit(&mut self, read: &mut Read) {
        let mut is_hit = || {
            let outcome = match self {
                Side::Direct(client) => {
                    read.run(client);
                    HIT
                }
                Side::Through(guest) => guest.observe(|client| read.run(client)).0,
            };
            // For good, if it was prepared then.
            if outcome == "settings_unknown" {
                read.prepare_again(self.client());
            }
            outcome == HIT
        };
        let hit = wait_for("a hit", PATIENCE, || Ok(is_hit().then_some(())));
        hit.unwrap();
    }
}

/// The read that memory is to answer: as text, or by the number of its preparation.
enum Read {
    Text,
    Prepared(Vec<u8>),
}

impl Read {
    fn prepared(client: &mut Client) -> Read {
        let text = PREPARED_READ.as_bytes();
        command(client, PREPARE, text, ResponseKind::Prepared);
        Read::Prepared(client.answer_bytes()[5..9].to_vec())
    }

    fn prepare_again(&mut self, client: &mut Client) {
        if let Read::Prepared(id) = self {
            command(client, CLOSE, id, ResponseKind::Nothing);
            *self = Read::prepared(client);
        }
    }

    fn run(&self, client: &mut Client) {
        match self {
            Read::Text => drop(client.query(READ).unwrap()),
            Read::Prepared(id) => drop(execute(client, id)),
        }
    }
}

/// What a question gives after a hit and interludes, and what it has left behind.
fn answers(
    mut side: Side<'_>,
    is_prepared_hit: bool,
    interludes: &[Interlude],
    (question, is_prepared): (&str, bool),
) -> [Vec<u8>; 2] {
    let mut read = if is_prepared_hit {
        Read::prepared(side.client())
    } else {
        Read::Text
    };
    side.hit(&mut read);
    // Another count than the hit's.
    match &mut side {
        Side::Direct(client) => drop(client.query("SELECT CONNECTION_ID() > 0").unwrap()),
        Side::Through(guest) => guest.setup(&["SELECT CONNECTION_ID() > 0"]),
    }
    side.hit(&mut read);
    let client = side.client();
    for interlude in interludes {
        interlude.run(client);
    }
    let answer = if is_prepared {
        run_prepared(client, question)
    } else {
        command(client, 3, question.as_bytes(), ResponseKind::Results);
        client.answer_bytes().to_vec()
    };
    let further = client.query_bytes("SELECT @found").unwrap().to_vec();
    client.query("UNLOCK TABLES").unwrap();
    client.query("COMMIT").unwrap();
    client.query("DELETE FROM w").unwrap();
    [answer, further]
}

/// Runs a hit, interludes and each question on a connection of either kind, and says where they
/// differ.
fn differences(front: &Front, is_prepared_hit: bool, interludes: &[Interlude]) -> Vec<String> {
    let fails = |one: &Interlude| matches!(one, Sql(sql) if sql.contains("no_such_table"));
    // `FOUND_ROWS()` is then that of an older statement, as the documentation says.
    let has_failed = interludes.iter().any(fails);
    let asked = QUESTIONS
        .into_iter()
        .filter(|question| !has_failed || !question.contains("FOUND_ROWS"));
    let both = asked.flat_map(|question| {
        let prepared = question.starts_with("SELECT").then_some((question, true));
        [(question, false)].into_iter().chain(prepared)
    });
    let end = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(30)..]).into_owned()
    };
    let compared = both.filter_map(|question| {
        let run = |side| answers(side, is_prepared_hit, interludes, question);
        let expected = run(Side::Direct(front.direct()));
        // `FLUSH` drops every result when the log tells of it. That shall not come between a hit
        // and the statement behind it: then the count is lost, as the documentation says.
        front.catch_up();
        let seen = run(Side::Through(front.guest()));
        (expected != seen).then(|| {
            let (seen, expected) = (seen.map(|one| end(&one)), expected.map(|one| end(&one)));
            format!(
                "hit prepared {is_prepared_hit}, {interludes:?}, {question:?}: {seen:?} instead of {expected:?}"
            )
        })
    });
    compared.collect()
}

fn assert_none(found: &[String]) {
    let all = found.join("\n");
    assert!(found.is_empty(), "{} differences:\n{all}", found.len());
}

#[test]
fn what_is_told_of_a_hit_is_right_whatever_comes_between() {
    let front = Front::new("row_counts", &SETUP);
    let mut found = Vec::new();
    for is_prepared in [false, true] {
        found.extend(differences(&front, is_prepared, &[]));
        for interlude in INTERLUDES {
            found.extend(differences(&front, is_prepared, &[interlude]));
        }
    }
    assert_none(&found);
}

#[test]
fn what_is_told_of_a_hit_is_right_after_two_statements_between() {
    let front = Front::new("row_counts", &SETUP);
    let mut found = Vec::new();
    // A preparation that fails comes second only: whether one that succeeds afterwards takes its
    // error away differs between servers, and is not Remora's to know.
    for first in [0, 1, 8, 24, 27].map(|index| INTERLUDES[index]) {
        for second in INTERLUDES {
            found.extend(differences(&front, false, &[first, second]));
        }
    }
    assert_none(&found);
}

/// What one text does with the counts, if Remora doesn't tell its statements apart.
#[test]
fn several_statements_in_one_text_are_told_of_the_hit() {
    const COUNTS: &str = "CREATE TABLE counts (found INT, changed INT)";
    const TEXT: &str = "INSERT INTO counts VALUES (FOUND_ROWS(), ROW_COUNT()); COMMIT";
    let setup: Vec<_> = SETUP.into_iter().chain([COUNTS]).collect();
    let front = Front::new("row_counts_of_several", &setup);
    let stored = |mut side: Side<'_>| {
        side.hit(&mut Read::Text);
        for other in [
            "SELECT CONNECTION_ID() > 0",
            "INSERT INTO w VALUES (1), (2)",
        ] {
            side.client().query(other).unwrap();
        }
        side.hit(&mut Read::Text);
        let client = side.client();
        command(client, 3, TEXT.as_bytes(), ResponseKind::Results);
        let counts = client.query_bytes("SELECT found, changed FROM counts");
        let counts = counts.unwrap().to_vec();
        client.query("DELETE FROM counts").unwrap();
        counts
    };
    let expected = stored(Side::Direct(front.direct()));
    front.catch_up();
    assert_eq!(stored(Side::Through(front.guest())), expected);
}

/// Remora's own question for a session's settings comes before its first write, and before one that
/// follows a `SET`. The server then has the count of that question.
#[test]
fn remoras_own_question_does_not_change_found_rows() {
    let front = Front::new("row_counts", &SETUP);
    let read = "SELECT a, CONNECTION_ID() > 0 FROM t";
    let set = "SET SESSION lock_wait_timeout = 50 + 50";
    // Whether a statement that fails has set the count isn't known.
    let fails = |one: &Interlude| matches!(one, Sql(sql) if sql.contains("no_such_table"));
    for interlude in INTERLUDES.into_iter().filter(|one| !fails(one)) {
        for before in [vec![read], vec![set, read], vec![read, set]] {
            let told = |mut client: Client| {
                for sql in &before {
                    command(&mut client, 3, sql.as_bytes(), ResponseKind::Results);
                }
                interlude.run(&mut client);
                client.query_value("SELECT FOUND_ROWS()").unwrap()
            };
            let seen = told(front.guest().into_client());
            let expected = told(front.direct());
            assert_eq!(seen, expected, "{before:?}, {interlude:?}");
        }
    }
}
