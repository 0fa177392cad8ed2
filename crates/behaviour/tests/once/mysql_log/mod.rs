//! What the servers of MySQL's family write to their logs, commit by commit: which tables each
//! touches, by the decoder and the reading of statements that the follower uses.

mod steps;

use std::path::PathBuf;

use remora_upstream::logged::meaning;

use self::steps::{BEFORE_8_0, COMMON, OF_8_0, Step, XA, step};
use remora_binlog::{
    Commit, CommitKind, DecoderLimits, Event, EventHeader, GtidSet, StreamDecoder, Touched,
    Transactions, event_type,
};
use remora_testkit::client::Client;
use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions};

const MAGIC_BYTES: usize = 4;
const TABLES_MAX: usize = 16;

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

/// The commits in the log, without those that only move the position on, and the types of its
/// events. After a commit that is `forgotten` the reading of transactions begins anew.
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
