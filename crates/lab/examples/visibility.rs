//! Measures whether a read sees every transaction of the set that MySQL's `@@gtid_executed` was just before it.
//!
//! ```text
//! cargo run --release -p remora-lab --example visibility -- KIND WRITE SECONDS [OPTION…]
//! ```
//!
//! KIND: `mysql-8.0`, `mysql-5.7` or `mysql-5.6`. WRITE: `insert`, `update`, `memory` (inserts into tables of
//! that engine), `xa` or `xa-detached` (committed by another connection than the one that prepared).
//! The rest are options of the server, such as `--sync-binlog=1`.
//!
//! Writers commit to one table each. Readers ask for the set on one connection and then read how far each
//! table is on another. Afterwards the log tells which transactions are which writes. A read of which some
//! table lacks a write of a transaction in its set is a violation.

#![allow(clippy::unwrap_used, reason = "an experiment fails by panicking")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remora::upstream::logged::meaning;
use remora_binlog::{CommitKind, DecoderLimits, Gtid, StreamDecoder, Touched, Transactions};
use remora_lab::client::Client;
use remora_lab::servers::{Kind, SCHEMA, Server, ServerOptions};

const WRITERS: usize = 4;
const READERS: usize = 3;
/// Of a log file, before its first event.
const MAGIC_BYTES: usize = 4;

/// A set as the server answered, and how far each table was after that.
struct Read {
    executed: String,
    counts: Vec<u64>,
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

fn read(server: &Server, stop: &AtomicBool) -> Vec<Read> {
    let (mut asker, mut reader) = (connect(server), connect(server));
    let parts: Vec<_> = (0..WRITERS)
        .map(|writer| format!("(SELECT COALESCE(MAX(n), 0) FROM w{writer})"))
        .collect();
    let sql = format!("SELECT {}", parts.join(", "));
    let mut reads = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let executed = asker.query_value("SELECT @@GLOBAL.gtid_executed").unwrap();
        let rows = reader.query(&sql).unwrap().rows().unwrap();
        let number = |field: &Option<Vec<u8>>| {
            let text = String::from_utf8(field.clone().unwrap()).unwrap();
            text.parse().unwrap()
        };
        reads.push(Read {
            executed: executed.unwrap(),
            counts: rows[0].iter().map(number).collect(),
        });
    }
    reads
}

/// The writes of the log: transaction number, writer, and how many of that writer it makes.
fn writes_of_log(server: &Server, mode: &str) -> Vec<(Gtid, usize, u64)> {
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
                writes.push((commit.gtid.unwrap(), writer, counts[writer]));
            }
        }
    }
    writes
}

/// For each transaction number, how far each table is when all up to it have been made.
fn needed_by_number(writes: &[(Gtid, usize, u64)]) -> Vec<[u64; WRITERS]> {
    let last = writes.iter().map(|(gtid, ..)| gtid.number).max();
    let mut needed = vec![[0; WRITERS]; usize::try_from(last.unwrap_or(0)).unwrap() + 1];
    for (gtid, writer, count) in writes {
        let slot = &mut needed[usize::try_from(gtid.number).unwrap()][*writer];
        *slot = (*slot).max(*count);
    }
    let mut so_far = [0; WRITERS];
    for slot in &mut needed {
        for (count, so_far) in slot.iter_mut().zip(&mut so_far) {
            *so_far = (*so_far).max(*count);
            *count = *so_far;
        }
    }
    needed
}

fn lacks_something(read: &Read, needed: &[[u64; WRITERS]], writes: &[(Gtid, usize, u64)]) -> bool {
    let text = read.executed.replace('\n', "");
    let mut parts = text.split(':').skip(1);
    let Some(first) = parts.next() else {
        return false;
    };
    let ends = |part: &str| -> (u64, u64) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        (first.parse().unwrap(), last.parse().unwrap())
    };
    let prefix = usize::try_from(ends(first).1)
        .unwrap()
        .min(needed.len() - 1);
    let mut wanted = needed[prefix];
    for part in parts {
        let (first, last) = ends(part);
        for (gtid, writer, count) in writes {
            if (first..=last).contains(&gtid.number) {
                wanted[*writer] = wanted[*writer].max(*count);
            }
        }
    }
    read.counts
        .iter()
        .zip(wanted)
        .any(|(have, want)| *have < want)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
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
    let stop = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (server, mode, stop) = (&server, &mode, &stop);
            scope.spawn(move || write(server, mode, writer, stop));
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read(&server, &stop)))
            .collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let all = readers.into_iter().map(|reader| reader.join().unwrap());
        all.flatten().collect::<Vec<_>>()
    });
    let writes = writes_of_log(&server, &mode);
    let needed = needed_by_number(&writes);
    let violations = reads
        .iter()
        .filter(|read| lacks_something(read, &needed, &writes))
        .count();
    let gaps = reads
        .iter()
        .filter(|read| read.executed.matches(':').count() > 1)
        .count();
    println!(
        "{} {mode}: {} writes, {} reads ({gaps} of sets with gaps), {violations} violations",
        kind.as_str(),
        writes.len(),
        reads.len()
    );
}
