//! What the server's log has, read when the load is over.

use remora_binlog::{
    Commit, CommitKind, DecoderLimits, Gtid, StreamDecoder, Touched, Transactions,
};
use remora_cache::Position;
use remora_testkit::servers::Server;
use remora_upstream::logged::meaning;

use super::WRITERS;
use super::load::Mode;

/// Of a log file, before its first event.
const MAGIC_BYTES: usize = 4;
/// Tables of all transactions that are prepared at once, and of one transaction.
const TABLES_MAX: usize = 64;

/// A write as the log has it.
pub(super) struct Write {
    /// None on MariaDB.
    pub(super) gtid: Option<Gtid>,
    /// Where it ends.
    pub(super) end: Position,
    /// Whose it is.
    pub(super) writer: usize,
    /// How many of its writer it makes.
    pub(super) count: u64,
}

/// The writes of the log, in its order. `skipped` were made before the load.
pub(super) fn writes(server: &Server, mode: Mode, mut skipped: usize) -> Vec<Write> {
    let directory = server.log_path().parent().unwrap().join("data");
    let mut counts = [0; WRITERS];
    let mut writes = Vec::new();
    let mut transactions = Transactions::new(TABLES_MAX);
    for file_number in 1.. {
        let file = format!("binlog.{file_number:06}");
        let Ok(bytes) = std::fs::read(directory.join(&file)) else {
            break;
        };
        let mut decoder = StreamDecoder::new(file, MAGIC_BYTES as u64, DecoderLimits::default());
        let mut rest = &bytes[MAGIC_BYTES..];
        while rest.len() >= 19 {
            let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
            let before = decoder.offset();
            let decoded = decoder.decode(&rest[..length]).unwrap();
            rest = &rest[length..];
            let commits = transactions.apply(&decoded, before, meaning);
            for commit in commits.into_iter().flatten() {
                let Some(writer) = writer_of(&commit, mode) else {
                    continue;
                };
                if skipped > 0 {
                    skipped -= 1;
                    continue;
                }
                counts[writer] += 1;
                writes.push(Write {
                    gtid: commit.gtid,
                    end: Position::new(file_number, commit.end_offset).unwrap(),
                    writer,
                    count: counts[writer],
                });
            }
        }
    }
    writes
}

/// Whose write becomes visible with this commit.
fn writer_of(commit: &Commit, mode: Mode) -> Option<usize> {
    let Touched::Tables(tables) = &commit.touched else {
        return None;
    };
    let is_write = match commit.kind {
        CommitKind::Transaction | CommitKind::EndedByStatement | CommitKind::XaOnePhase => {
            !mode.is_prepared()
        }
        CommitKind::XaEnd => true,
        _ => false,
    };
    let table = tables.iter().find(|table| table.table.starts_with('w'))?;
    is_write.then(|| table.table[1..].parse().unwrap())
}
