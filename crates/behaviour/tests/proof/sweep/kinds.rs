//! The kinds of exchange that are cut.

use remora_testkit::servers::{APP_USER, SCHEMA};

/// A kind of exchange.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Payloads of commands, some with a [`MARK`].
    commands: Vec<Vec<u8>>,
    /// Whether Remora shall have the answer in memory.
    pub(crate) is_hit: bool,
    /// Whether its answers are the same each time, the login's aside.
    pub(crate) is_repeatable: bool,
    /// Whether it takes so much memory that none can be measured.
    pub(crate) is_huge: bool,
}

/// A result set of several packets.
pub(crate) const ROWS: &str = "SELECT id, value FROM t ORDER BY id";
/// One that takes many reads.
pub(crate) const LONG: &str = "SELECT id, text FROM long_rows ORDER BY id";

/// Stands in a statement for something that makes it another each time.
pub(crate) const MARK: &str = "########";

/// A text that is another one with each `tag`, and has another key: what has a hint's form isn't
/// stripped.
pub(crate) fn tagged(text: &str, tag: usize) -> String {
    format!("{text} /*+ {tag:08} */")
}

impl Kind {
    /// The commands, none of which Remora has seen with another tag.
    pub(crate) fn commands(&self, tag: usize) -> Vec<Vec<u8>> {
        let tag = format!("{tag:08}");
        let mut commands = self.commands.clone();
        if self.is_huge {
            // None has a mark, and looking for one in 17 MB takes long.
            return commands;
        }
        for command in &mut commands {
            let found = command
                .windows(MARK.len())
                .rposition(|at| at == MARK.as_bytes());
            if let Some(at) = found {
                command[at..at + MARK.len()].copy_from_slice(tag.as_bytes());
            }
        }
        commands
    }
}

fn fresh(text: &str) -> Vec<u8> {
    query(&format!("{text} /*+ {MARK} */"))
}

fn query(text: &str) -> Vec<u8> {
    [b"\x03", text.as_bytes()].concat()
}

fn prepare(text: &str) -> Vec<u8> {
    [b"\x16", text.as_bytes()].concat()
}

/// A command about the statement prepared last, whose number the caller puts in.
fn statement(command: u8, rest: &[u8]) -> Vec<u8> {
    [&[command, 0, 0, 0, 0], rest].concat()
}

const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;
const RESET: u8 = 0x1a;
const FETCH: u8 = 0x1c;
const NO_CURSOR: [u8; 5] = [0, 1, 0, 0, 0];
const CURSOR: [u8; 5] = [1, 1, 0, 0, 0];
const PING: [u8; 1] = [0x0e];

/// One parameter: an INT that is 2.
const TWO: [u8; 8] = [0, 1, 3, 0, 2, 0, 0, 0];

/// A kind that isn't particular.
fn plain(name: &'static str, commands: Vec<Vec<u8>>) -> Kind {
    Kind {
        name,
        commands,
        is_hit: false,
        is_repeatable: true,
        is_huge: false,
    }
}

fn hit(name: &'static str, commands: Vec<Vec<u8>>) -> Kind {
    Kind {
        is_hit: true,
        ..plain(name, commands)
    }
}

fn unrepeatable(name: &'static str, commands: Vec<Vec<u8>>) -> Kind {
    Kind {
        is_repeatable: false,
        ..plain(name, commands)
    }
}

fn huge(name: &'static str, text: &str) -> Kind {
    Kind {
        is_huge: true,
        ..plain(name, vec![query(text)])
    }
}

fn write() -> Vec<u8> {
    query("UPDATE t SET value = value + 1 WHERE id = 2")
}

pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds = of_text();
    kinds.extend(of_prepared_statements());
    kinds.extend(of_other_commands());
    let filler = "x".repeat(17 << 20);
    let long = format!("SELECT id /* {filler} */ FROM t WHERE id = 1");
    kinds.push(huge("command of several packets", &long));
    let long = "SELECT REPEAT('x', 17000000), 1";
    kinds.push(huge("answer of several packets", long));
    kinds
}

fn of_text() -> Vec<Kind> {
    let several = format!("SELECT 1; DO 1; {ROWS}; SELECT 2");
    let setting = query("SET @@sort_buffer_size = 1048576");
    let file = query("LOAD DATA LOCAL INFILE 'rows' INTO TABLE loaded");
    let read = query("SELECT id FROM t ORDER BY id");
    let transaction = vec![query("BEGIN"), write(), read, query("COMMIT")];
    vec![
        plain("login", vec![]),
        plain("result set", vec![fresh(ROWS)]),
        plain("long result set", vec![fresh(LONG)]),
        hit("hit", vec![query(ROWS)]),
        hit("long hit", vec![query(LONG)]),
        hit("hits and a write", vec![query(ROWS), write(), query(LONG)]),
        plain("OK", vec![query("DO 1")]),
        plain("write", vec![write()]),
        plain("error", vec![query("SELECT * FROM nowhere")]),
        plain("several results", vec![query(&several)]),
        plain("setting", vec![setting, fresh(ROWS)]),
        plain("transaction", transaction),
        plain("local file", vec![file, PING.to_vec()]),
    ]
}

fn of_prepared_statements() -> Vec<Kind> {
    let by_id = prepare(&format!(
        "SELECT id, value FROM t WHERE id = ? /*+ {MARK} */"
    ));
    let all = prepare(&format!("{ROWS} /*+ {MARK} */"));
    let write = prepare("UPDATE t SET value = value + 1 WHERE id = ?");
    let execute = |head: [u8; 5], values: &[u8]| statement(EXECUTE, &[&head, values].concat());
    let (two, nothing) = (execute(NO_CURSOR, &TWO), execute(NO_CURSOR, &[]));
    let fetch = |rows: u8| statement(FETCH, &[rows, 0, 0, 0]);
    let piece = |text: &[u8]| statement(LONG_DATA, &[b"\0\0", text].concat());
    let text = execute(NO_CURSOR, &[0, 1, 0xfc, 0]);
    let long_data = vec![prepare("SELECT ?"), piece(b"some "), piece(b"text"), text];
    let fetched = vec![all.clone(), execute(CURSOR, &[]), fetch(2), fetch(9)];
    let close = vec![all.clone(), statement(CLOSE, &[]), PING.to_vec()];
    vec![
        plain("prepare", vec![by_id.clone()]),
        plain("execute", vec![by_id, two.clone(), two.clone()]),
        plain("execute a write", vec![write, two]),
        plain("fetch", fetched),
        plain("long data", long_data),
        plain("close", close),
        plain(
            "reset a statement",
            vec![all, statement(RESET, &[]), nothing],
        ),
    ]
}

fn of_other_commands() -> Vec<Kind> {
    let user = APP_USER.as_bytes();
    let plugin = b"\0\x2d\0mysql_native_password\0";
    let change_user = [b"\x11", user, b"\0\0", SCHEMA.as_bytes(), plugin].concat();
    let schema = [b"\x02", SCHEMA.as_bytes()].concat();
    vec![
        plain("reset a connection", vec![vec![0x1f], fresh(ROWS)]),
        unrepeatable("change of user", vec![change_user, fresh(ROWS)]),
        plain("ping", vec![PING.to_vec(), PING.to_vec()]),
        plain("schema", vec![schema, fresh(ROWS)]),
        plain("field list", vec![b"\x04t\0".to_vec()]),
        unrepeatable("statistics", vec![vec![0x09]]),
        plain("option", vec![vec![0x1b, 1, 0], PING.to_vec()]),
        plain("quit", vec![vec![0x01]]),
    ]
}
