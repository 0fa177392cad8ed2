//! The logs of real servers.

use std::path::{Path, PathBuf};

use remora_lab::replay::Captured;
use remora_testkit::client::{Client, Value};
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{Server, ServerOptions};
use remora_wire::command::ResponseKind;

use crate::{read, said};

const MARKER: &[u8] = b"the beginning of it";
const END: &str = "SELECT 'the end of it'";

/// MySQL doesn't have it in all of its logs, for it can't read it.
const WRONG: &[u8] = b"SELECT * FROM notes WHERE";

/// Statements of all kinds with odd characters. Servers take white space and `;` off both ends.
const STATEMENTS: &[&[u8]] = &[
    b"SELECT 'the beginning of it'",
    b"SELECT 1 -- ;\n, 1",
    b"SELECT ';\n# Time: 230101 12:00:00\n', 2",
    b"SELECT ';\n# User@Host: a[a] @ b [c]\nnot a head', 3",
    b"# a comment\nSELECT\n\n\t4",
    b"SELECT '# administrator command: Quit;'",
    b"-- another\nSELECT 5 /* and\n; one more */",
    b"SELECT 'a\\'b', \"c;\"\"d\", `a` FROM (SELECT 1 AS a) AS b",
    "SELECT 'grün 🐟', '\u{2028}'".as_bytes(),
    b"SELECT _binary'\xff\xfe\x00\x1a', 6",
    b"SELECT '\r\n', '\t\t     5 not an entry\tx'",
    b"SET @a = 1, @b = 'timestamp=7;'",
    b"CREATE TABLE notes (id INT PRIMARY KEY, text VARCHAR(100))",
    b"INSERT INTO notes VALUES\n(1, 'one;\n'),\n(2, '')",
    b"SELECT nothing FROM nowhere",
    WRONG,
    b"UPDATE notes SET text = 'use other;' WHERE id = 1",
    b"BEGIN",
    b"COMMIT",
    b"USE `a b`",
    b"SELECT 7",
    b"DELETE FROM lab.notes",
];

fn without_ends(text: &[u8]) -> Vec<u8> {
    let text = text.trim_ascii_start();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let end = text
        .iter()
        .rposition(|byte| !is_end(byte))
        .map_or(0, |last| last + 1);
    text[..end].to_vec()
}

struct Logs {
    _server: Server,
    _scratch: Scratch,
    slow: PathBuf,
    general: PathBuf,
}

/// A server that logs everything, and the session that it has logged.
fn logs() -> Logs {
    let scratch = Scratch::new().unwrap();
    let (slow, general) = (scratch.join("slow.log"), scratch.join("general.log"));
    let mut options = ServerOptions::default();
    options.further.extend([
        "--log-output=FILE".to_owned(),
        "--slow-query-log=1".to_owned(),
        "--long-query-time=0".to_owned(),
        format!("--slow-query-log-file={}", slow.display()),
        "--general-log=1".to_owned(),
        format!("--general-log-file={}", general.display()),
        "--log-slow-admin-statements=1".to_owned(),
    ]);
    let server = Server::start(options).unwrap();
    server.execute(["CREATE DATABASE `a b`"]).unwrap();
    let mut client = server.app().connect().unwrap();
    let mut other = server.app().connect().unwrap();
    session(&mut client, &mut other);
    client.query(END).unwrap();
    // Nothing answers that.
    client.command(0x01, &[], ResponseKind::Nothing).unwrap();
    // A server writes its log after it has answered, and each session at its own time.
    for (log, last) in [(&slow, END), (&general, "Quit")] {
        wait_for("the log", PATIENCE, || {
            let text = std::fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let ended = text.find(END).is_some_and(|at| text[at..].contains(last));
            let between = text.matches("SELECT 'in between'").count();
            let is_whole = ended && between >= STATEMENTS.len() && text.ends_with('\n');
            Ok(is_whole.then_some(()))
        })
        .unwrap();
    }
    Logs {
        _server: server,
        _scratch: scratch,
        slow,
        general,
    }
}

fn session(client: &mut Client, other: &mut Client) {
    for statement in STATEMENTS {
        // Some of them are wrong.
        let _ = client.query_raw(statement);
        other.query("SELECT 'in between'").unwrap();
    }
    client.command(0x02, b"lab", ResponseKind::Single).unwrap();
    let statement = client.prepare(b"SELECT ?, ?").unwrap();
    client
        .execute(statement, &[Value::Int(8), Value::Text(b"x;\ny'".to_vec())])
        .unwrap();
}

/// What is read must be what was sent, up to how a log shows bound values.
fn check(captured: &Captured, name: &str) {
    let all = said(captured, MARKER);
    let texts = all.iter().map(|(_, text)| text.as_slice());
    // Some servers have it in their slow log.
    let texts: Vec<&[u8]> = texts.filter(|text| *text != b"(quit)").collect();
    let is_logged = |text: &&&[u8]| **text != WRONG || texts.contains(&WRONG);
    let expected: Vec<Vec<u8>> = STATEMENTS
        .iter()
        .filter(is_logged)
        .map(|text| without_ends(text))
        .collect();
    for (got, expected) in texts.iter().zip(&expected) {
        assert_eq!(
            String::from_utf8_lossy(got),
            String::from_utf8_lossy(expected),
            "{name}"
        );
        assert_eq!(got, expected, "{name}");
    }
    let rest: Vec<String> = texts[expected.len().min(texts.len())..]
        .iter()
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    assert_eq!(rest.len(), 2, "{name}: {rest:?}");
    assert!(
        rest[0].starts_with("SELECT 8") && rest[0].contains("x;\\ny"),
        "{name}: {rest:?}"
    );
    assert_eq!(rest[1], END, "{name}");
    let schema_of = |wanted: &[u8]| {
        let found = all.iter().find(|(_, text)| text == wanted).unwrap();
        found.0.clone()
    };
    assert_eq!(schema_of(b"SELECT 7").as_deref(), Some("a b"), "{name}");
    assert_eq!(schema_of(END.as_bytes()).as_deref(), Some("lab"), "{name}");
    let other = said(captured, b"in between");
    let between = other
        .iter()
        .filter(|(_, text)| text == b"SELECT 'in between'")
        .count();
    assert_eq!(between, STATEMENTS.len(), "{name}");
    assert_eq!(captured.malformed, 0, "{name}");
}

#[test]
fn the_logs_of_a_server_hold_what_was_sent_to_it() {
    let logs = logs();
    check(&read(&logs.slow, 0), "slow log");
    check(&read(&logs.general, 0), "general log");
}

/// The same session as the logs of other servers have it.
#[test]
fn the_logs_of_each_mysql_hold_what_was_sent_to_it() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/samples");
    for kind in ["mysql-5.6", "mysql-5.7", "mysql-8.0"] {
        for log in ["slow", "general"] {
            let name = format!("{kind}.{log}");
            check(&read(&samples.join(&name), 0), &name);
        }
    }
}
