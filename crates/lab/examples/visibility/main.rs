//! Measures whether a read sees every commit that the server said to be visible just before it: in
//! MySQL's `@@gtid_executed`, or up to MariaDB's `binlog_snapshot_position`; or every commit up to
//! Remora's own visible watermark, as it was just before the read.
//!
//! ```text
//! cargo run -p remora-lab --example visibility -- \
//!     answer|watermark KIND WRITE[,WRITE…] SECONDS [OPTION…]
//! ```
//!
//! KIND: a server's name, such as `mariadb-10.11`. WRITE: see [`load::Mode`]. The rest are options
//! of the server, such as `--sync-binlog=1`, and these:
//!
//! - `replica`: the server replicates what is written to another one, and logs it.
//! - `semi-sync`: the server's commits wait for a replica, which takes a millisecond (MariaDB).
//!
//! Writers commit to one table each. Readers ask the server (or look at the watermark), and then
//! read how far each table is on another connection. Afterwards the log tells which transactions
//! are which writes. A read of which some table lacks a write of a transaction that was said to be
//! visible is a violation.
//!
//! Writes whose rows aren't there in the end are left out, and counted. MariaDB loses an `XA
//! COMMIT` that comes while it lets go of the connection that prepared: it is in the log, and its
//! rows stay prepared.

#![allow(clippy::unwrap_used, reason = "an experiment fails by panicking")]

mod follower;
mod load;
mod log;
mod replica;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use follower::Follower;
use load::{Mode, connect};
use log::Write;
use remora_cache::Position;
use remora_testkit::client::Client;
use remora_testkit::semisync::{Acknowledge, SemiSyncReplica};
use remora_testkit::servers::{Kind, Server, ServerOptions};

const WRITERS: usize = 4;
const READERS: usize = 3;
/// Of the replica that commits wait for.
const SEMI_SYNC_ID: u32 = 77;
const SEMI_SYNC_WAIT: Duration = Duration::from_millis(1);

/// What is said to be visible.
enum Said {
    /// The server's set of transactions.
    Set(String),
    /// Everything up to here.
    UpTo(Position),
}

/// What was said, and how far each table was after that.
struct Read {
    said: Said,
    counts: Vec<u64>,
}

/// Asks the server what is visible of what was written to the one with `uuid` (MySQL).
fn ask(uuid: Option<&str>, asker: &mut Client) -> Said {
    if let Some(uuid) = uuid {
        let set = asker.query_value("SELECT @@GLOBAL.gtid_executed").unwrap();
        let set = set.unwrap().replace('\n', "");
        let of_it = set.split(',').find(|part| part.starts_with(uuid));
        return Said::Set(of_it.unwrap_or_default().to_owned());
    }
    let rows = asker.query("SHOW STATUS LIKE 'binlog_snapshot_%'").unwrap();
    let rows = rows.rows().unwrap();
    let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap()).unwrap();
    let value = |name: &str| {
        let is_it = |row: &&Vec<_>| text(&row[0]).eq_ignore_ascii_case(name);
        text(&rows.iter().find(is_it).unwrap()[1])
    };
    let file = value("binlog_snapshot_file");
    let number = file.rsplit_once('.').unwrap().1.parse().unwrap();
    let offset = value("binlog_snapshot_position").parse().unwrap();
    Said::UpTo(Position::new(number, offset).unwrap())
}

fn read(
    server: &Server,
    uuid: Option<&str>,
    follower: Option<&Follower>,
    stop: &AtomicBool,
) -> Vec<Read> {
    let (mut asker, mut reader) = (connect(server), connect(server));
    let parts: Vec<_> = (0..WRITERS)
        .map(|writer| format!("(SELECT COALESCE(MAX(n), 0) FROM w{writer})"))
        .collect();
    let sql = format!("SELECT {}", parts.join(", "));
    let mut reads = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let said = match follower {
            None => ask(uuid, &mut asker),
            Some(follower) => match follower.watermark() {
                Some(watermark) => Said::UpTo(watermark),
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
    let ends = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        (first.parse().unwrap(), last.parse().unwrap())
    };
    set.split(':').skip(1).map(ends).collect()
}

/// The number of MySQL's transaction.
fn number_of(write: &Write) -> u64 {
    write.gtid.as_ref().unwrap().number
}

/// Puts MySQL's writes into the order of their numbers: a replica can log them in another one.
fn sort_by_number(writes: &mut [Write]) {
    writes.sort_by_key(number_of);
    let mut counts = [0; WRITERS];
    for write in writes {
        counts[write.writer] += 1;
        write.count = counts[write.writer];
    }
}

/// Whether a table lacks what was said to be visible, of writes in the order in which that is said.
fn lacks_something(read: &Read, needed: &[[u64; WRITERS]], writes: &[Write]) -> bool {
    let wanted = match &read.said {
        Said::UpTo(position) => needed[writes.partition_point(|write| write.end <= *position)],
        Said::Set(set) => {
            let mut intervals = intervals(set).into_iter();
            let prefix = intervals.next().map_or(0, |(_, last)| last);
            let mut wanted = needed[writes.partition_point(|write| number_of(write) <= prefix)];
            for (first, last) in intervals {
                for write in writes {
                    if (first..=last).contains(&number_of(write)) {
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

/// What is measured.
#[derive(Debug, Clone)]
struct Measurement {
    options: ServerOptions,
    by_watermark: bool,
    on_replica: bool,
    semi_sync: bool,
}

/// One load on a server of its own.
fn measure(what: &Measurement, mode: Mode, seconds: u64) -> String {
    let source = what.on_replica.then(|| replica::source(&what.options));
    let server = Server::start(match source {
        Some(_) => replica::options(&what.options),
        None => what.options.clone(),
    });
    let server = server.unwrap();
    let written = source.as_ref().unwrap_or(&server);
    if let Some(source) = &source {
        replica::follow(source, &server);
    }
    let uuid = server.kind().is_mysql().then(|| replica::uuid(written));
    let skipped = load::make_tables(written, mode);
    replica::wait_for_tables(&server);
    let _late = what.semi_sync.then(|| {
        SemiSyncReplica::join(&server, SEMI_SYNC_ID, Acknowledge::After(SEMI_SYNC_WAIT)).unwrap()
    });
    let follower = what.by_watermark.then(|| Follower::start(&server));
    let stop = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let stop = &stop;
            scope.spawn(move || load::write(written, mode, writer, stop));
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read(&server, uuid.as_deref(), follower.as_ref(), &stop)))
            .collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let all = readers.into_iter().map(|reader| reader.join().unwrap());
        all.flatten().collect::<Vec<_>>()
    });
    if source.is_some() {
        replica::stop(&server);
    }
    let mut writes = log::writes(&server, mode, skipped);
    let logged = writes.len();
    if uuid.is_some() && !what.by_watermark {
        sort_by_number(&mut writes);
    }
    if mode.has_row_for_each() {
        let rows = load::rows(&server);
        writes.retain(|write| rows[write.writer].contains(&write.count));
    }
    report(logged, &writes, &reads)
}

fn report(logged: usize, writes: &[Write], reads: &[Read]) -> String {
    let needed = needed_by_prefix(writes);
    let violations = reads
        .iter()
        .filter(|read| lacks_something(read, &needed, writes))
        .count();
    let has_gaps = |read: &&Read| matches!(&read.said, Said::Set(set) if intervals(set).len() > 1);
    let gaps = reads.iter().filter(has_gaps).count();
    let positions: BTreeSet<_> = reads
        .iter()
        .filter_map(|read| match &read.said {
            Said::UpTo(position) => Some(*position),
            Said::Set(_) => None,
        })
        .collect();
    format!(
        "{logged} writes, {} of them lost, {} reads ({gaps} of sets with gaps, {} positions), {violations} violations",
        logged - writes.len(),
        reads.len(),
        positions.len()
    )
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap();
    assert!(matches!(what.as_str(), "answer" | "watermark"));
    let kind = Kind::named(&arguments.next().unwrap()).unwrap();
    let modes = arguments.next().unwrap();
    let seconds = arguments.next().unwrap().parse().unwrap();
    let (further, own): (Vec<_>, Vec<_>) = arguments.partition(|option| option.starts_with("--"));
    for option in &own {
        assert!(
            matches!(option.as_str(), "replica" | "semi-sync"),
            "{option}"
        );
    }
    let shown = [&own[..], &further[..]].concat().join(" ");
    let has = |option: &str| own.iter().any(|own| own == option);
    let measurement = Measurement {
        options: ServerOptions {
            kind: Some(kind),
            further,
            ..ServerOptions::default()
        },
        by_watermark: what == "watermark",
        on_replica: has("replica"),
        semi_sync: has("semi-sync"),
    };
    for name in modes.split(',') {
        let found = measure(&measurement, Mode::named(name), seconds);
        println!("{} {what} {name} {shown}: {found}", kind.as_str());
    }
}
