//! What the servers of MySQL's family write to their logs, commit by commit: which tables each touches,
//! by the decoder and the reading of statements that the follower uses.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use remora::upstream::logged::meaning;
use remora_binlog::{
    Commit, CommitKind, DecoderLimits, Event, EventHeader, GtidSet, StreamDecoder, Touched,
    Transactions, event_type,
};
use remora_lab::client::Client;
use remora_lab::servers::{Kind, SCHEMA, Server, ServerOptions};

const MAGIC_BYTES: usize = 4;
const TABLES_MAX: usize = 16;

/// Statements of one connection, and what they must leave in the log.
struct Step {
    statements: &'static [&'static str],
    commits: &'static [&'static str],
}

const fn step(statements: &'static [&'static str], commits: &'static [&'static str]) -> Step {
    Step {
        statements,
        commits,
    }
}

/// A server with a connection and where its log was when the test began.
struct Logged {
    server: Server,
    client: Client,
    start: u64,
    executed: GtidSet,
}

impl Logged {
    fn start(kind: Kind, further: &[&str]) -> Logged {
        let server = Server::start(ServerOptions {
            kind: Some(kind),
            further: further.iter().map(ToString::to_string).collect(),
            ..ServerOptions::default()
        })
        .unwrap();
        let mut client = server.root().unwrap();
        client.query(&format!("USE {SCHEMA}")).unwrap();
        let mut logged = Logged {
            server,
            client,
            start: 0,
            executed: GtidSet::new(),
        };
        logged.executed = logged.gtid_executed();
        logged.start = logged.offset();
        logged
    }

    fn gtid_executed(&mut self) -> GtidSet {
        let text = self.client.query_value("SELECT @@GLOBAL.gtid_executed");
        text.unwrap().unwrap().parse().unwrap()
    }

    fn offset(&self) -> u64 {
        let position = self.server.position().unwrap();
        position.split_once(':').unwrap().1.parse().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        let directory = self.server.log_path().parent().unwrap().join("data");
        directory.join(name)
    }

    /// Runs the steps; gives the log's end after each.
    fn run(&mut self, steps: &[&[Step]]) -> Vec<u64> {
        steps
            .iter()
            .copied()
            .flatten()
            .map(|step| {
                for statement in step.statements {
                    let answer = self.client.query(statement);
                    answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
                }
                self.offset()
            })
            .collect()
    }
}

fn events(log: &[u8]) -> Vec<&[u8]> {
    let mut rest = &log[MAGIC_BYTES..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = EventHeader::parse(rest).unwrap().event_bytes as usize;
        events.push(&rest[..length]);
        rest = &rest[length..];
    }
    events
}

/// The commits in the log, without those that only move the position on, and the types of its events.
/// After a commit that is `forgotten` the reading of transactions begins anew.
fn read(
    log: &[u8],
    limits: DecoderLimits,
    forgotten: impl Fn(&Commit) -> bool,
) -> (Vec<Commit>, Vec<u8>) {
    let mut decoder = StreamDecoder::new("binlog".into(), MAGIC_BYTES as u64, limits);
    let mut transactions = Transactions::new(TABLES_MAX);
    let (mut commits, mut types) = (Vec::new(), Vec::new());
    for event in events(log) {
        let before = decoder.offset();
        let decoded = decoder.decode(event).unwrap();
        types.push(decoded.header.event_type);
        let made = transactions.apply(&decoded, before, meaning);
        for commit in made.into_iter().flatten() {
            if forgotten(&commit) {
                transactions = Transactions::new(TABLES_MAX);
            }
            commits.push(commit);
        }
    }
    commits.retain(|commit| commit.kind != CommitKind::Progress);
    (commits, types)
}

fn written(commit: &Commit) -> String {
    let tables = match &commit.touched {
        Touched::Everything => "*".into(),
        Touched::Tables(tables) => tables
            .iter()
            .map(|table| match table.to_string().strip_prefix("lab.") {
                Some(name) => name.to_owned(),
                None => table.to_string(),
            })
            .collect::<Vec<_>>()
            .join(" "),
    };
    let accounts = if commit.accounts { " accounts" } else { "" };
    let definitions = if commit.definitions {
        " definitions"
    } else {
        ""
    };
    format!("{:?}: {tables}{definitions}{accounts}", commit.kind)
}

/// Runs the steps on a server and compares what each left in the log, and each commit's GTID.
fn check(kind: Kind, further: &[&str], steps: &[&[Step]]) -> Vec<u8> {
    let mut logged = Logged::start(kind, further);
    let ends = logged.run(steps);
    let log = std::fs::read(logged.file("binlog.000001")).unwrap();
    let (commits, types) = read(&log, DecoderLimits::default(), |_| false);
    let mut before = logged.start;
    let mut differences = Vec::new();
    for (step, end) in steps.iter().copied().flatten().zip(ends) {
        let seen: Vec<_> = commits
            .iter()
            .filter(|commit| commit.end_offset > before && commit.end_offset <= end)
            .map(written)
            .collect();
        before = end;
        if seen != step.commits {
            let (statements, expected) = (step.statements, step.commits);
            differences.push(format!(
                "{statements:#?}\nleft {seen:#?}\nnot {expected:#?}"
            ));
        }
    }
    let name = kind.as_str();
    assert!(differences.is_empty(), "{name}: {}", differences.join("\n"));
    let mut executed = logged.executed.clone();
    for commit in commits
        .iter()
        .filter(|commit| commit.end_offset > logged.start)
    {
        let gtid = commit.gtid.clone().unwrap();
        assert!(!executed.contains(&gtid), "{gtid} twice");
        executed.insert(gtid);
    }
    assert_eq!(executed, logged.gtid_executed());
    check_previous_gtids(&mut logged, &executed);
    types
}

/// The next file begins with all that was executed before.
fn check_previous_gtids(logged: &mut Logged, executed: &GtidSet) {
    logged.client.query("FLUSH BINARY LOGS").unwrap();
    let log = std::fs::read(logged.file("binlog.000002")).unwrap();
    let limits = DecoderLimits::default();
    let mut decoder = StreamDecoder::new("binlog".into(), MAGIC_BYTES as u64, limits);
    let previous =
        events(&log)
            .into_iter()
            .find_map(|event| match decoder.decode(event).unwrap().event {
                Event::PreviousGtids(set) => Some(set),
                _ => None,
            });
    assert_eq!(previous.as_ref(), Some(executed));
}

/// What all of them write alike.
const COMMON: &[Step] = &[
    step(
        &["CREATE TABLE parent (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB"],
        &["Standalone: parent definitions"],
    ),
    step(
        &[
            "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) \
           ON DELETE CASCADE) ENGINE=InnoDB",
        ],
        &["Standalone: child definitions"],
    ),
    step(
        &["CREATE TABLE m (id INT PRIMARY KEY, v TEXT) ENGINE=MyISAM"],
        &["Standalone: m definitions"],
    ),
    step(
        &[
            "INSERT INTO parent VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO child VALUES (1, 1)",
        ],
        &["Transaction: parent", "Transaction: child"],
    ),
    step(
        &["UPDATE parent SET v = 'x' WHERE id = 2"],
        &["Transaction: parent"],
    ),
    // The child rows that the foreign key deletes aren't in the log.
    step(
        &["DELETE FROM parent WHERE id = 1"],
        &["Transaction: parent"],
    ),
    step(
        &[
            "BEGIN",
            "INSERT INTO parent VALUES (3, 'c')",
            "SAVEPOINT s1",
            "INSERT INTO child VALUES (4, 3)",
            "ROLLBACK TO s1",
            "UPDATE parent SET v = 'y' WHERE id = 3",
            "COMMIT",
        ],
        &["Transaction: parent"],
    ),
    step(&["INSERT INTO m VALUES (1, 'w')"], &["Transaction: m"]),
    step(
        &["BEGIN", "INSERT INTO m VALUES (2, 'q')", "ROLLBACK"],
        &["Transaction: m"],
    ),
    step(
        &["BEGIN", "INSERT INTO parent VALUES (8, 'z')", "ROLLBACK"],
        &[],
    ),
    step(&["UPDATE parent SET v = v WHERE id = 3"], &[]),
    step(
        &[
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO parent VALUES (10, 'statement')",
            "BEGIN",
            "SET @a = 11",
            "INSERT INTO child VALUES (@a, 10)",
            "COMMIT",
            "SET SESSION binlog_format = ROW",
        ],
        &["Transaction: * definitions", "Transaction: * definitions"],
    ),
    step(
        &[
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE parent SET v = 'minimal' WHERE id = 3",
            "DELETE FROM child WHERE id = 11",
            "SET SESSION binlog_row_image = FULL",
        ],
        &["Transaction: parent", "Transaction: child"],
    ),
    step(
        &[
            "SET SESSION binlog_rows_query_log_events = 1",
            "INSERT INTO parent VALUES (20, 'with its text')",
            "SET SESSION binlog_rows_query_log_events = 0",
        ],
        &["Transaction: parent"],
    ),
    step(
        &["CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT) ENGINE=InnoDB"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["CREATE TRIGGER noted AFTER INSERT ON parent FOR EACH ROW \
           INSERT INTO audit (what) VALUES (NEW.v)"],
        &["Standalone: * definitions"],
    ),
    step(
        &["INSERT INTO parent VALUES (21, 'triggers')"],
        &["Transaction: audit parent"],
    ),
    step(&["DROP TRIGGER noted"], &["Standalone: * definitions"]),
    step(
        &["ALTER TABLE audit ADD COLUMN at_ INT"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["TRUNCATE TABLE audit"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["RENAME TABLE audit TO noted"],
        &["Standalone: audit noted definitions"],
    ),
    step(
        &["CREATE VIEW seen AS SELECT id FROM parent"],
        &["Standalone: * definitions"],
    ),
    step(&["DROP VIEW seen"], &["Standalone: * definitions"]),
    step(
        &["CREATE USER someone@localhost"],
        &["Standalone: * accounts"],
    ),
    step(
        &["GRANT SELECT ON lab.* TO someone@localhost"],
        &["Standalone: * accounts"],
    ),
];

/// What 5.6 and 5.7 write of temporary tables (a `DROP` of nothing that others see) and of two tables
/// that are dropped at once.
const BEFORE_8_0: &[Step] = &[
    step(
        &[
            "CREATE TEMPORARY TABLE scratch (id INT)",
            "INSERT INTO scratch VALUES (1)",
            "DROP TEMPORARY TABLE scratch",
        ],
        &["Standalone: "],
    ),
    step(
        &["DROP TABLE noted, m"],
        &["Standalone: m noted definitions"],
    ),
];

/// XA transactions as 5.7 and later log them.
const XA: &[Step] = &[
    step(
        &[
            "XA START 'x', 'branch', 7",
            "INSERT INTO parent VALUES (40, 'x')",
            "XA END 'x', 'branch', 7",
        ],
        &[],
    ),
    step(&["XA PREPARE 'x', 'branch', 7"], &["XaPrepare: parent"]),
    step(&["XA COMMIT 'x', 'branch', 7"], &["XaEnd: parent"]),
    step(
        &[
            "XA START 'x', 'branch', 7",
            "INSERT INTO child VALUES (40, 40)",
            "XA END 'x', 'branch', 7",
            "XA PREPARE 'x', 'branch', 7",
            "XA ROLLBACK 'x', 'branch', 7",
        ],
        &["XaPrepare: child", "XaEnd: child"],
    ),
    step(
        &[
            "XA START 'y'",
            "INSERT INTO parent VALUES (42, 'y')",
            "XA END 'y'",
            "XA COMMIT 'y' ONE PHASE",
        ],
        &["Transaction: parent"],
    ),
];

/// What 8.0 writes in its own ways.
const OF_8_0: &[Step] = &[
    step(
        &[
            "CREATE TEMPORARY TABLE scratch (id INT)",
            "INSERT INTO scratch VALUES (1)",
            "DROP TEMPORARY TABLE scratch",
        ],
        &[],
    ),
    step(
        &["DROP TABLE noted, m"],
        &["Standalone: m definitions", "Standalone: noted definitions"],
    ),
    step(
        &[
            "XA START 'w'",
            "INSERT INTO child VALUES (41, 40)",
            "XA END 'w'",
            "XA PREPARE 'w'",
            "INSERT INTO parent VALUES (41, 'between')",
            "XA COMMIT 'w'",
        ],
        &["XaPrepare: child", "Transaction: parent", "XaEnd: child"],
    ),
    step(
        &["CREATE TABLE copied AS SELECT * FROM parent"],
        &["Transaction: copied definitions"],
    ),
    step(
        &["CREATE TABLE doc (id INT PRIMARY KEY, j JSON)"],
        &["Standalone: doc definitions"],
    ),
    step(
        &["INSERT INTO doc VALUES (1, JSON_OBJECT('a', REPEAT('x', 200), 'b', 1))"],
        &["Transaction: doc"],
    ),
    step(
        &[
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "UPDATE doc SET j = JSON_SET(j, '$.b', 2)",
            "SET SESSION binlog_row_value_options = ''",
        ],
        &["Transaction: doc"],
    ),
    step(
        &[
            "SET SESSION binlog_transaction_compression = ON",
            "INSERT INTO parent VALUES (50, 'compressed')",
        ],
        &["Transaction: parent"],
    ),
    step(
        &[
            "BEGIN",
            "INSERT INTO parent VALUES (51, REPEAT('c', 200))",
            "SAVEPOINT s1",
            "UPDATE doc SET id = 2",
            "INSERT INTO child VALUES (51, 51)",
            "ROLLBACK TO s1",
            "DELETE FROM doc",
            "COMMIT",
        ],
        &["Transaction: doc parent"],
    ),
    step(
        &[
            "XA START 'z'",
            "INSERT INTO parent VALUES (52, 'z')",
            "XA END 'z'",
            "XA PREPARE 'z'",
            "XA COMMIT 'z'",
        ],
        &["XaPrepare: parent", "XaEnd: parent"],
    ),
    step(
        &[
            "XA START 'z'",
            "INSERT INTO child VALUES (53, 52)",
            "XA END 'z'",
            "XA COMMIT 'z' ONE PHASE",
        ],
        &["Transaction: child"],
    ),
    step(
        &[
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO parent VALUES (60, 'statement')",
            "SET SESSION binlog_format = ROW",
        ],
        &["Transaction: * definitions"],
    ),
    step(
        &["ALTER TABLE doc ADD COLUMN c INT"],
        &["Standalone: doc definitions"],
    ),
    step(&["SET SESSION binlog_transaction_compression = OFF"], &[]),
];

#[test]
fn mysql_5_6_with_row_events_of_version_1() {
    let types = check(
        Kind::MySql56,
        &["--log-bin-use-v1-row-events=1"],
        &[COMMON, BEFORE_8_0],
    );
    assert!(types.contains(&event_type::UPDATE_ROWS_V1));
}

#[test]
fn mysql_5_7() {
    let types = check(Kind::MySql57, &[], &[COMMON, BEFORE_8_0, XA]);
    assert!(types.contains(&event_type::DELETE_ROWS_V2));
    assert!(types.contains(&event_type::XA_PREPARE));
}

#[test]
fn mysql_8_0() {
    let types = check(
        Kind::MySql80,
        &["--binlog-row-metadata=FULL"],
        &[COMMON, XA, OF_8_0],
    );
    for expected in [
        event_type::PARTIAL_UPDATE_ROWS,
        event_type::TRANSACTION_PAYLOAD,
    ] {
        assert!(types.contains(&expected), "no event of type {expected}");
    }
}

/// Compressed XA transactions whose prepare was read or not, and payloads within the bound or not.
#[test]
fn what_was_not_read_or_does_not_fit_is_of_everything() {
    let mut logged = Logged::start(Kind::MySql80, &["--binlog-transaction-compression=ON"]);
    logged.run(&[&[
        step(&["CREATE TABLE parent (id INT PRIMARY KEY, v TEXT)"], &[]),
        step(
            &[
                "XA START 'x'",
                "INSERT INTO parent VALUES (1, 'x')",
                "XA END 'x'",
                "XA PREPARE 'x'",
                "XA COMMIT 'x'",
            ],
            &[],
        ),
    ]]);
    let log = std::fs::read(logged.file("binlog.000001")).unwrap();
    let last_two = |limits, skip: fn(&Commit) -> bool| {
        let (commits, _) = read(&log, limits, skip);
        let from = commits.len() - 2;
        commits[from..].iter().map(written).collect::<Vec<_>>()
    };
    let limits = DecoderLimits::default();
    assert_eq!(
        last_two(limits, |_| false),
        ["XaPrepare: parent", "XaEnd: parent"]
    );
    let late = last_two(limits, |commit| commit.kind == CommitKind::XaPrepare);
    assert_eq!(late, ["XaPrepare: parent", "XaEnd: * accounts"]);
    for small in [
        DecoderLimits {
            payload_bytes_max: 200,
            ..limits
        },
        DecoderLimits {
            payload_events_max: 3,
            ..limits
        },
    ] {
        let unnamed = last_two(small, |_| false);
        assert_eq!(
            unnamed,
            ["Unnamed: * definitions accounts", "XaEnd: * accounts"]
        );
    }
}
