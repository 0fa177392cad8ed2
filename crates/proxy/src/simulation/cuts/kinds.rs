//! The kinds of exchange that are cut: what a client sends in each.

/// A kind of exchange.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Payloads of commands, some with a [`MARK`].
    commands: Vec<Vec<u8>>,
    /// Its login, and what Remora asks after it, are cut with it.
    pub(super) begins_at_once: bool,
}

/// Stands in a statement for what makes it another each time.
const MARK: &[u8] = b"########";

/// A result set that memory may have.
pub(super) const ROWS: &str = "SELECT id, v FROM a ORDER BY id";
/// One that no socket holds at once.
pub(super) const LONG: &str = "SELECT id, v FROM b ORDER BY id";
/// What a transaction reads.
pub(super) const READ: &str = "SELECT id FROM a ORDER BY id";
/// What is prepared with a parameter, and its value.
pub(super) const BY_ID: &str = "SELECT v FROM a WHERE id = 10";
/// What is prepared for a value that comes in pieces.
pub(super) const LONG_VALUE: &str = "SELECT v FROM c WHERE id = 42";
/// Several statements in one text.
pub(super) const SEVERAL: &str = "SELECT 1; DO 1; SELECT id, v FROM a ORDER BY id; SELECT 2";
/// Asks the client for a file.
pub(super) const LOAD: &str = "LOAD DATA LOCAL INFILE 'rows' INTO TABLE c";
/// Is refused.
pub(super) const WRONG: &str = "SELECT * FROM nowhere";
/// Changes a row.
pub(super) const WRITE: &str = "UPDATE a SET v = v + 1 WHERE id = 10";

pub(super) const QUIT: u8 = 0x01;
pub(super) const SCHEMA: u8 = 0x02;
pub(super) const QUERY: u8 = 0x03;
pub(super) const FIELD_LIST: u8 = 0x04;
pub(super) const STATISTICS: u8 = 0x09;
pub(super) const PING: u8 = 0x0e;
pub(super) const CHANGE_USER: u8 = 0x11;
pub(super) const RESET_STATEMENT: u8 = 0x1a;
pub(super) const OPTION: u8 = 0x1b;
pub(super) const FETCH: u8 = 0x1c;
pub(super) const RESET_CONNECTION: u8 = 0x1f;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;

/// The statement that is prepared first on a connection.
const FIRST: [u8; 4] = [1, 0, 0, 0];
/// The one after it.
const SECOND: [u8; 4] = [2, 0, 0, 0];
/// Flags and the number of iterations of an execution.
const NO_CURSOR: [u8; 5] = [0, 1, 0, 0, 0];
/// The same for one whose rows are fetched.
pub(super) const CURSOR: [u8; 5] = [1, 1, 0, 0, 0];
/// One value: a BIGINT that is 10.
const TEN: [u8; 12] = [0, 1, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0];
/// One value: a text that came ahead.
const AHEAD: [u8; 4] = [0, 1, 0xfd, 0];

impl Kind {
    fn new(name: &'static str, commands: Vec<Vec<u8>>) -> Kind {
        Kind {
            name,
            commands,
            begins_at_once: false,
        }
    }

    fn at_once(name: &'static str, commands: Vec<Vec<u8>>) -> Kind {
        Kind {
            begins_at_once: true,
            ..Kind::new(name, commands)
        }
    }

    /// Whether it changes a row.
    pub(super) fn writes(&self) -> bool {
        let update = WRITE
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .as_bytes();
        let is_write = |command: &Vec<u8>| command[1..].starts_with(update);
        self.commands.iter().any(is_write)
    }

    /// The same with something before it.
    pub(super) fn after(self, before: &Kind) -> Kind {
        let commands = [before.commands.clone(), self.commands].concat();
        Kind::new(self.name, commands)
    }

    /// The commands, none of which Remora has seen with another tag.
    pub(super) fn commands(&self, tag: usize) -> Vec<Vec<u8>> {
        let tag = format!("{tag:08}");
        let mut commands = self.commands.clone();
        for command in &mut commands {
            let mark = command.windows(MARK.len()).rposition(|at| at == MARK);
            if let Some(at) = mark {
                command[at..at + MARK.len()].copy_from_slice(tag.as_bytes());
            }
        }
        commands
    }
}

/// What comes before the commands of a kind, and isn't cut with them: after it Remora knows the
/// session's settings.
pub(super) fn before() -> Kind {
    Kind::new("before", vec![query(ROWS)])
}

/// Asked by whoever comes after a cut: what memory has, and, with the tag of the cut exchange, what
/// that may have left.
pub(super) fn next_client() -> Kind {
    let texts = [query(ROWS), query(LONG), fresh(ROWS), fresh(LONG)];
    let [by_id, all] = [fresh_by_id(), prepare(&with_mark(ROWS))];
    let of_second = |command: u8, rest: &[u8]| [&[command], &SECOND[..], rest].concat();
    let executed = [
        by_id,
        statement(EXECUTE, &[&NO_CURSOR[..], &TEN].concat()),
        all,
        of_second(EXECUTE, &NO_CURSOR),
    ];
    Kind::new("next client", [&texts[..], &executed].concat())
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = of_text();
    kinds.extend(of_prepared_statements());
    kinds.extend(of_other_commands());
    kinds
}

fn query(text: &str) -> Vec<u8> {
    [&[QUERY], text.as_bytes()].concat()
}

/// A text that memory can't have. A comment in a hint's form is part of the key.
fn fresh(text: &str) -> Vec<u8> {
    query(&with_mark(text))
}

fn with_mark(text: &str) -> String {
    format!("{text} /*+ {} */", String::from_utf8_lossy(MARK))
}

/// Prepares a statement that memory can't have an execution of.
fn fresh_by_id() -> Vec<u8> {
    prepare(&with_mark(&BY_ID.replace("10", "?")))
}

fn of_text() -> Vec<Kind> {
    let setting = vec![query("SET @@sort_buffer_size = 1048576"), fresh(ROWS)];
    let transaction = [query("BEGIN"), query(WRITE), query(READ), query("COMMIT")];
    vec![
        Kind::at_once("login", vec![]),
        Kind::at_once("settings", vec![fresh(ROWS)]),
        Kind::new("result set", vec![fresh(ROWS)]),
        Kind::new("long result set", vec![fresh(LONG)]),
        Kind::new("hit", vec![query(ROWS)]),
        Kind::new("long hit", vec![query(LONG)]),
        Kind::new(
            "hits and a write",
            vec![query(ROWS), query(WRITE), query(ROWS)],
        ),
        Kind::new("OK", vec![query("DO 1")]),
        Kind::new("write", vec![query(WRITE)]),
        Kind::new("error", vec![query(WRONG)]),
        Kind::new("several results", vec![query(SEVERAL)]),
        Kind::new("setting", setting),
        Kind::new("transaction", transaction.to_vec()),
        Kind::new("local file", vec![query(LOAD), vec![PING]]),
    ]
}

fn prepare(text: &str) -> Vec<u8> {
    [&[PREPARE], text.as_bytes()].concat()
}

/// A command about the statement that was prepared first.
fn statement(command: u8, rest: &[u8]) -> Vec<u8> {
    [&[command], &FIRST[..], rest].concat()
}

fn of_prepared_statements() -> Vec<Kind> {
    let by_id = fresh_by_id();
    let all = prepare(&with_mark(ROWS));
    let write = prepare(&WRITE.replace("10", "?"));
    let execute = |head: [u8; 5], values: &[u8]| statement(EXECUTE, &[&head, values].concat());
    let (ten, nothing) = (execute(NO_CURSOR, &TEN), execute(NO_CURSOR, &[]));
    let fetch = |rows: u8| statement(FETCH, &[rows, 0, 0, 0]);
    let piece = |text: &[u8]| statement(LONG_DATA, &[b"\0\0", text].concat());
    let long_value = prepare(&with_mark(&LONG_VALUE.replace("42", "?")));
    let ahead = execute(NO_CURSOR, &AHEAD);
    let fetched = vec![all.clone(), execute(CURSOR, &[]), fetch(2), fetch(9)];
    let close = vec![all.clone(), statement(CLOSE, &[]), vec![PING]];
    let reset = vec![all, statement(RESET_STATEMENT, &[]), nothing];
    vec![
        Kind::new("prepare", vec![by_id.clone()]),
        Kind::new("execute", vec![by_id, ten.clone(), ten.clone()]),
        Kind::new("execute a write", vec![write, ten]),
        Kind::new("fetch", fetched),
        Kind::new(
            "long data",
            vec![long_value, piece(b"4"), piece(b"2"), ahead],
        ),
        Kind::new("close", close),
        Kind::new("reset a statement", reset),
    ]
}

fn of_other_commands() -> Vec<Kind> {
    let change_user = b"\x11u\0\0s\0\x2d\0mysql_native_password\0".to_vec();
    vec![
        Kind::new(
            "reset a connection",
            vec![vec![RESET_CONNECTION], fresh(ROWS)],
        ),
        Kind::new("change of user", vec![change_user, fresh(ROWS)]),
        Kind::new("ping", vec![vec![PING], vec![PING]]),
        Kind::new("schema", vec![vec![SCHEMA, b's'], fresh(ROWS)]),
        Kind::new("field list", vec![vec![FIELD_LIST, b'a', 0]]),
        Kind::new("statistics", vec![vec![STATISTICS]]),
        Kind::new("option", vec![vec![OPTION, 1, 0], vec![PING]]),
        Kind::new("quit", vec![vec![QUIT]]),
    ]
}
