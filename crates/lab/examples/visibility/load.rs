//! The writers: each commits to a table of its own, in one manner.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remora_testkit::client::Client;
use remora_testkit::servers::{SCHEMA, Server};

use super::WRITERS;

/// How a write is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// An insert by itself.
    Insert,
    /// An update by itself.
    Update,
    /// Two statements between `BEGIN` and `COMMIT`.
    Transaction,
    /// `XA COMMIT … ONE PHASE`.
    XaOnePhase,
    /// `XA PREPARE`, `XA COMMIT`.
    Xa,
    /// The same; another connection commits.
    XaDetached,
    /// An insert by itself that reads a table of an engine without two-phase commit (MariaDB's
    /// Aria).
    Mixed,
    /// An insert into a MEMORY table by itself.
    Memory,
    /// The same between an insert into an InnoDB table and `COMMIT`.
    MemoryInTransaction,
}

impl Mode {
    const ALL: [(&'static str, Mode); 9] = [
        ("insert", Mode::Insert),
        ("update", Mode::Update),
        ("transaction", Mode::Transaction),
        ("xa-one-phase", Mode::XaOnePhase),
        ("xa", Mode::Xa),
        ("xa-detached", Mode::XaDetached),
        ("mixed", Mode::Mixed),
        ("memory", Mode::Memory),
        ("memory-in-transaction", Mode::MemoryInTransaction),
    ];

    /// The mode of this name.
    pub(super) fn named(name: &str) -> Mode {
        let known = Mode::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, mode)| *mode).expect("no such WRITE")
    }

    /// Whether its rows are in the log before the commit is.
    pub(super) fn is_prepared(self) -> bool {
        matches!(self, Mode::Xa | Mode::XaDetached)
    }

    /// Whether each write inserts the row with its number.
    pub(super) fn has_row_for_each(self) -> bool {
        self != Mode::Update
    }

    fn engine(self) -> &'static str {
        match self {
            Mode::Memory | Mode::MemoryInTransaction => "MEMORY",
            _ => "InnoDB",
        }
    }
}

/// A connection to the schema.
pub(super) fn connect(server: &Server) -> Client {
    let mut client = server.root().unwrap();
    client.query(&format!("USE {SCHEMA}")).unwrap();
    client
}

/// Makes the tables; gives how many writes to them that took.
pub(super) fn make_tables(server: &Server, mode: Mode) -> usize {
    let mut client = connect(server);
    let engine = mode.engine();
    for writer in 0..WRITERS {
        let columns = "(n BIGINT, k INT, KEY USING BTREE (n), KEY (k))";
        for sql in [
            format!("CREATE TABLE w{writer} {columns} ENGINE={engine}"),
            format!("CREATE TABLE other{writer} {columns} ENGINE=InnoDB"),
        ] {
            client.query(&sql).unwrap();
        }
        if mode == Mode::Update {
            let sql = format!("INSERT INTO w{writer} VALUES (0, 1)");
            client.query(&sql).unwrap();
        }
    }
    if mode == Mode::Mixed {
        for sql in [
            "CREATE TABLE aria (n INT) ENGINE=Aria TRANSACTIONAL=1",
            "INSERT INTO aria VALUES (1)",
        ] {
            client.query(sql).unwrap();
        }
    }
    if mode == Mode::Update { WRITERS } else { 0 }
}

/// The numbers that each table has.
pub(super) fn rows(server: &Server) -> Vec<BTreeSet<u64>> {
    let mut client = connect(server);
    let mut numbers = |writer| {
        let answer = client.query(&format!("SELECT n FROM w{writer}")).unwrap();
        let number = |row: &Vec<Option<Vec<u8>>>| {
            let text = String::from_utf8(row[0].clone().unwrap()).unwrap();
            text.parse().unwrap()
        };
        answer.rows().unwrap().iter().map(number).collect()
    };
    (0..WRITERS).map(&mut numbers).collect()
}

/// Writes until told to stop.
pub(super) fn write(server: &Server, mode: Mode, writer: usize, stop: &AtomicBool) {
    let mut client = connect(server);
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let xid = format!("'{writer}-{number}'");
        for sql in statements(mode, writer, number, &xid) {
            client.query(&sql).unwrap();
        }
        if mode == Mode::XaDetached {
            client = connect(server);
        }
        if mode.is_prepared() {
            // The server may still be about to let go of it.
            let patience = Instant::now() + Duration::from_secs(10);
            while let Err(error) = client.query(&format!("XA COMMIT {xid}")) {
                assert!(Instant::now() < patience, "{error}");
            }
        }
    }
}

fn statements(mode: Mode, writer: usize, number: u64, xid: &str) -> Vec<String> {
    let insert = format!("INSERT INTO w{writer} VALUES ({number}, 1)");
    let other = format!("INSERT INTO other{writer} VALUES ({number}, 1)");
    let begin = "BEGIN".to_owned();
    let commit = "COMMIT".to_owned();
    let xa = |last: String| {
        let (start, end) = (format!("XA START {xid}"), format!("XA END {xid}"));
        vec![start, insert.clone(), end, last]
    };
    match mode {
        Mode::Insert | Mode::Memory => vec![insert],
        Mode::Update => vec![format!("UPDATE w{writer} SET n = n + 1 WHERE k = 1")],
        Mode::Transaction | Mode::MemoryInTransaction => vec![begin, other, insert, commit],
        Mode::XaOnePhase => xa(format!("XA COMMIT {xid} ONE PHASE")),
        Mode::Xa | Mode::XaDetached => xa(format!("XA PREPARE {xid}")),
        Mode::Mixed => vec![format!(
            "INSERT INTO w{writer} SELECT {number}, n FROM aria"
        )],
    }
}
