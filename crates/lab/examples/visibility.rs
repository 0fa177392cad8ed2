//! Measures whether a read sees every transaction of the set that MySQL's `@@gtid_executed` was
//! just before it; or every commit up to Remora's own visible watermark, as it was just before it.
//!
//! ```text
//! cargo run --release -p remora-lab --example visibility -- \
//!     set|watermark KIND WRITE SECONDS [OPTION…]
//! ```
//!
//! KIND: `mysql-8.0`, `mysql-5.7` or `mysql-5.6`. WRITE: `insert`, `update`, `memory` (inserts into
//! tables of that engine), `xa` or `xa-detached` (committed by another connection than the one that
//! prepared). The rest are options of the server, such as `--sync-binlog=1`.
//!
//! Writers commit to one table each. Readers ask for the set (or look at the watermark), and then
//! read how far each table is on another connection. Afterwards the log tells which transactions
//! are which writes. A read of which some table lacks a write of a transaction in its set, or up to
//! its watermark, is a violation.

#![allow(clippy::unwrap_used, reason = "an experiment fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remora::clock::Clock;
use remora::config::Options;
use remora::config::options::UpstreamOptions;
use remora::link::ServerLink;
use remora::net::Endpoint;
use remora::upstream::client::Account;
use remora::upstream::logged::meaning;
use remora::upstream::{self, UpstreamConfig, UpstreamShared};
use remora_binlog::{CommitKind, DecoderLimits, Gtid, StreamDecoder, Touched, Transactions};
use remora_cache::{BrokenRules, Position, ShapesLimits, Timeline, TimelineLimits};
use remora_testkit::client::Client;
use remora_testkit::servers::{FOLLOW_PASSWORD, FOLLOW_USER, Kind, SCHEMA, Server, ServerOptions};

const WRITERS: usize = 4;
const READERS: usize = 3;
/// Of a log file, before its first event.
const MAGIC_BYTES: usize = 4;

/// What is said to be visible.
enum Said {
    /// The server's set of transactions.
    Set(String),
    /// Remora's watermark.
    Watermark(Position),
}

/// What was said, and how far each table was after that.
struct Read {
    said: Said,
    counts: Vec<u64>,
}

/// A write as the log has it.
struct Write {
    gtid: Gtid,
    end: Position,
    writer: usize,
    /// How many of its writer it makes.
    count: u64,
}

/// Remora's follower, on a thread of its own for as long as the process lives.
struct Follower {
    shared: Arc<UpstreamShared>,
    timeline: Arc<Timeline>,
}

impl Follower {
    fn start(server: &Server) -> Follower {
        let options = Options::default();
        let upstream = UpstreamOptions {
            address: Endpoint::Tcp {
                host: server.address().ip().to_string(),
                port: server.address().port(),
            },
            connect_timeout_ms: 10_000,
            ..options.upstream
        };
        let config = UpstreamConfig {
            link: Arc::new(ServerLink::new(&options.listen, &upstream).unwrap()),
            account: Account {
                user: FOLLOW_USER.into(),
                password: FOLLOW_PASSWORD.into(),
            },
            server_id: 3_000_000_001,
            lag_ms_max: 1_000,
            ask_interval_us_min: 500,
            query_timeout_ms: 10_000,
            reconnect_ms_min: 5,
            reconnect_ms_max: 100,
            catalogue_tables_max: 100,
            catalogue_queue_max: 100,
            catalogue_batch_max: 16,
            catalogue_scan_timeout_ms: 10_000,
            catalogue_views_max: 1_000,
            table_counts_max: 16,
            transaction_tables_max: 16,
            transaction_tags_max: 1_000,
            shapes: ShapesLimits {
                table_shapes_max: 0,
                tables_max: 0,
            },
            event_bytes_max: 1 << 20,
            heartbeat_ms: 100,
        };
        let limits = TimelineLimits {
            tag_slots: 64,
            fence_slots: 64,
            lag_ms_max: config.lag_ms_max,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        let clock = Clock::start();
        let shared = Arc::new(UpstreamShared::new(&config, Arc::clone(&timeline), clock));
        let follower = Follower {
            shared: Arc::clone(&shared),
            timeline: Arc::clone(&timeline),
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(upstream::run(
                config,
                timeline,
                shared,
                std::future::pending(),
            ));
        });
        follower
    }

    /// The watermark as a fill would take it; asks for a newer one.
    fn watermark(&self) -> Option<Position> {
        self.shared.wake();
        self.timeline.as_of().map(remora_cache::AsOf::position)
    }
}

fn connect(server: &Server) -> Client {
    let mut client = server.root().unwrap();
    client.query(&format!("USE {SCHEMA}")).unwrap();
    client
}

fn make_tables(server: &Server, write: &str) {
    let mut client = connect(server);
    for writer in 0..WRITERS {
        let engine = if write == "memory" {
            "MEMORY"
        } else {
            "InnoDB"
        };
        let sql = format!(
            "CREATE TABLE w{writer} (n BIGINT, k INT, KEY USING BTREE (n), KEY (k)) ENGINE={engine}"
        );
        client.query(&sql).unwrap();
        if write == "update" {
            client
                .query(&format!("INSERT INTO w{writer} VALUES (0, 1)"))
                .unwrap();
        }
    }
}

/// Writes until told to stop.
fn write(server: &Server, mode: &str, writer: usize, stop: &AtomicBool) {
    let mut client = connect(server);
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let insert = format!("INSERT INTO w{writer} VALUES ({number}, 1)");
        let xid = format!("'{writer}-{number}'");
        match mode {
            "update" => {
                let sql = format!("UPDATE w{writer} SET n = n + 1 WHERE k = 1");
                client.query(&sql).unwrap();
            }
            "xa" | "xa-detached" => {
                client.query(&format!("XA START {xid}")).unwrap();
                client.query(&insert).unwrap();
                client.query(&format!("XA END {xid}")).unwrap();
                client.query(&format!("XA PREPARE {xid}")).unwrap();
                if mode == "xa-detached" {
                    client = connect(server);
                }
                // The server may still be about to let go of it.
                let patience = Instant::now() + Duration::from_secs(10);
                while let Err(error) = client.query(&format!("XA COMMIT {xid}")) {
                    assert!(Instant::now() < patience, "{error}");
                }
            }
            _ => {
                client.query(&insert).unwrap();
            }
        }
    }
}

fn read(server: &Server, follower: Option<&Follower>, stop: &AtomicBool) -> Vec<Read> {
    let (mut asker, mut reader) = (connect(server), connect(server));
    let parts: Vec<_> = (0..WRITERS)
        .map(|writer| format!("(SELECT COALESCE(MAX(n), 0) FROM w{writer})"))
        .collect();
    let sql = format!("SELECT {}", parts.join(", "));
    let mut reads = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let said = match follower {
            None => {
                let set = asker.query_value("SELECT @@GLOBAL.gtid_executed").unwrap();
                Said::Set(set.unwrap())
            }
            Some(follower) => match follower.watermark() {
                Some(watermark) => Said::Watermark(watermark),
                None => continue,
            },
        };
        let rows = reader.query(&sql).unwrap().rows().unwrap();
        let number = |field: &Option<Vec<u8>>| {
            let text = String::from_utf8(field.clone().unwrap()).unwrap();
            text.parse().unwrap()
        };
        reads.push(Read {
            said,
            counts: rows[0].iter().map(number).collect(),
        });
    }
    reads
}

/// The writes of the log, in its order.
fn writes_of_log(server: &Server, mode: &str) -> Vec<Write> {
    let directory = server.log_path().parent().unwrap().join("data");
    let mut counts = [0; WRITERS];
    let mut writes = Vec::new();
    let mut skip_rows_of_setup = if mode == "update" { WRITERS } else { 0 };
    for file_number in 1.. {
        let file = format!("binlog.{file_number:06}");
        let Ok(bytes) = std::fs::read(directory.join(&file)) else {
            break;
        };
        let mut decoder = StreamDecoder::new(file, MAGIC_BYTES as u64, DecoderLimits::default());
        let mut transactions = Transactions::new(WRITERS);
        let mut rest = &bytes[MAGIC_BYTES..];
        while rest.len() >= 19 {
            let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
            let before = decoder.offset();
            let decoded = decoder.decode(&rest[..length]).unwrap();
            rest = &rest[length..];
            for commit in transactions
                .apply(&decoded, before, meaning)
                .into_iter()
                .flatten()
            {
                let Touched::Tables(tables) = &commit.touched else {
                    continue;
                };
                let is_write = match commit.kind {
                    CommitKind::Transaction => !mode.starts_with("xa"),
                    CommitKind::XaEnd => true,
                    _ => false,
                };
                let table = tables.iter().find(|table| table.table.starts_with('w'));
                let (Some(table), true) = (table, is_write) else {
                    continue;
                };
                if skip_rows_of_setup > 0 {
                    skip_rows_of_setup -= 1;
                    continue;
                }
                let writer: usize = table.table[1..].parse().unwrap();
                counts[writer] += 1;
                writes.push(Write {
                    gtid: commit.gtid.unwrap(),
                    end: Position::new(file_number, commit.end_offset).unwrap(),
                    writer,
                    count: counts[writer],
                });
            }
        }
    }
    writes
}

/// For each number of writes, how far each table is when the first so many have been made.
fn needed_by_prefix(writes: &[Write]) -> Vec<[u64; WRITERS]> {
    let mut so_far = [0; WRITERS];
    let mut needed = vec![so_far];
    for write in writes {
        so_far[write.writer] = so_far[write.writer].max(write.count);
        needed.push(so_far);
    }
    needed
}

/// The first transaction number and the last of each interval of a set of one source.
fn intervals(set: &str) -> Vec<(u64, u64)> {
    let set = set.replace('\n', "");
    let ends = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        (first.parse().unwrap(), last.parse().unwrap())
    };
    set.split(':').skip(1).map(ends).collect()
}

/// Whether a table lacks what was said to be visible. The server numbers transactions in the order
/// of its log.
fn lacks_something(read: &Read, needed: &[[u64; WRITERS]], writes: &[Write]) -> bool {
    let wanted = match &read.said {
        Said::Watermark(watermark) => {
            needed[writes.partition_point(|write| write.end <= *watermark)]
        }
        Said::Set(set) => {
            let mut intervals = intervals(set).into_iter();
            let prefix = intervals.next().map_or(0, |(_, last)| last);
            let mut wanted = needed[writes.partition_point(|write| write.gtid.number <= prefix)];
            for (first, last) in intervals {
                for write in writes {
                    if (first..=last).contains(&write.gtid.number) {
                        wanted[write.writer] = wanted[write.writer].max(write.count);
                    }
                }
            }
            wanted
        }
    };
    read.counts
        .iter()
        .zip(wanted)
        .any(|(have, want)| *have < want)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let by_watermark = arguments.next().unwrap() == "watermark";
    let kind = arguments.next().unwrap();
    let kind = *Kind::ALL.iter().find(|k| k.as_str() == kind).unwrap();
    let mode = arguments.next().unwrap();
    let seconds = arguments.next().unwrap().parse().unwrap();
    let server = Server::start(ServerOptions {
        kind: Some(kind),
        further: arguments.collect(),
        ..ServerOptions::default()
    })
    .unwrap();
    make_tables(&server, &mode);
    let follower = by_watermark.then(|| Follower::start(&server));
    let stop = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (server, mode, stop) = (&server, &mode, &stop);
            scope.spawn(move || write(server, mode, writer, stop));
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read(&server, follower.as_ref(), &stop)))
            .collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let all = readers.into_iter().map(|reader| reader.join().unwrap());
        all.flatten().collect::<Vec<_>>()
    });
    let writes = writes_of_log(&server, &mode);
    let needed = needed_by_prefix(&writes);
    let violations = reads
        .iter()
        .filter(|read| lacks_something(read, &needed, &writes))
        .count();
    let has_gaps = |read: &&Read| matches!(&read.said, Said::Set(set) if intervals(set).len() > 1);
    let gaps = reads.iter().filter(has_gaps).count();
    let watermarks: BTreeSet<_> = reads
        .iter()
        .filter_map(|read| match &read.said {
            Said::Watermark(watermark) => Some(*watermark),
            Said::Set(_) => None,
        })
        .collect();
    println!(
        "{} {mode}: {} writes, {} reads ({gaps} of sets with gaps, {} watermarks), {violations} violations",
        kind.as_str(),
        writes.len(),
        reads.len(),
        watermarks.len()
    );
}
