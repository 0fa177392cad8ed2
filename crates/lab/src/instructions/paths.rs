//! What is counted: the ways that something takes through Remora.

use anyhow::Context as _;

use remora_testkit::client::{Client, StatementId, Value};
use remora_testkit::metrics::Metrics;

use super::bed::{ROW_FIRST, ROWS};

/// What the hit's client asks again and again, as sysbench's point select does.
const HIT: &str = "SELECT c FROM items WHERE id=10001";
const UNCACHED: &str = "SELECT SQL_NO_CACHE c FROM items WHERE id=10001";
const PREPARED: &str = "SELECT c FROM items WHERE id=?";
/// Not to a literal: after one, Remora needn't ask. The settings stay the same.
const SET: &str = "SET sql_mode = @@sql_mode";

/// A way through Remora.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// A statement as text that memory answers.
    Hit,
    /// An execution of a prepared statement that memory answers.
    PreparedHit,
    /// A statement of a known digest with a literal that never came before: the server answers, and
    /// the result is kept.
    Miss,
    /// The same of a digest of which results are hardly ever asked for again: only a sample is
    /// kept.
    MissNotStored,
    /// An `UPDATE` of a row by its key, outside transactions, with its fence.
    Write,
    /// A commit of one changed row, made at the server itself, in the binary log.
    RowEvent,
    /// `BEGIN`, a read that is never cached, `COMMIT`: how others go depends on the time that the
    /// server took.
    Transaction,
    /// A `SET`, the question for the settings that Remora has for the server then, and the hit
    /// after it.
    Settings,
}

/// The connections over which the paths are taken.
pub(super) struct Connections {
    /// To Remora.
    pub(super) through: Client,
    /// To the server itself.
    pub(super) direct: Client,
    prepared: StatementId,
    /// The row that the next miss reads.
    next_read: u32,
    /// The row that the next write changes.
    next_written: u32,
}

impl Connections {
    pub(super) fn new(mut through: Client, direct: Client) -> anyhow::Result<Connections> {
        let prepared = through.prepare(PREPARED.as_bytes())?;
        Ok(Connections {
            through,
            direct,
            prepared,
            next_read: ROW_FIRST + 1,
            next_written: ROW_FIRST,
        })
    }

    fn next_written(&mut self) -> u32 {
        let row = self.next_written;
        self.next_written = ROW_FIRST + (row + 1 - ROW_FIRST) % ROWS;
        row
    }
}

impl Path {
    /// All of them, in the order in which they are measured.
    pub(super) const ALL: [Path; 8] = [
        Path::Hit,
        Path::PreparedHit,
        Path::Miss,
        Path::MissNotStored,
        Path::Settings,
        Path::Transaction,
        Path::Write,
        Path::RowEvent,
    ];

    /// Its name in the file of the figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Path::Hit => "hit",
            Path::PreparedHit => "prepared_hit",
            Path::Miss => "miss",
            Path::MissNotStored => "miss_not_stored",
            Path::Write => "write",
            Path::RowEvent => "row_event",
            Path::Settings => "settings",
            Path::Transaction => "transaction",
        }
    }

    /// The name of the thread that does its work.
    pub(super) fn thread(self) -> &'static str {
        match self {
            Path::RowEvent => "remora-follower",
            _ => "remora-worker-0",
        }
    }

    /// Whether it begins with a statement through Remora; else it does at the server.
    pub(super) fn is_asked_of_remora(self) -> bool {
        self != Path::RowEvent
    }

    /// How often it is taken in one batch.
    pub(super) fn times(self) -> u32 {
        match self {
            Path::Hit | Path::PreparedHit => 1_000,
            // So that the share of those that are kept is about the same in each batch.
            Path::MissNotStored => 1_600,
            Path::Miss | Path::Write | Path::RowEvent | Path::Settings | Path::Transaction => 400,
        }
    }

    /// How often it is taken first, to get one-time work out of the way.
    pub(super) fn warm_up_times(self) -> u32 {
        match self {
            // More than are stored before the first check whether that pays.
            Path::MissNotStored => 2_200,
            _ => self.times() / 4,
        }
    }

    /// Takes it once.
    pub(super) fn take(self, connections: &mut Connections) -> anyhow::Result<()> {
        let answer = match self {
            Path::Hit => connections.through.query(HIT),
            Path::PreparedHit => {
                let (statement, values) = (connections.prepared, [Value::Int(10_001)]);
                connections.through.execute(statement, &values)
            }
            Path::Miss => {
                let text = format!("SELECT c FROM items WHERE id={}", connections.next_read);
                connections.next_read += 1;
                connections.through.query(&text)
            }
            Path::MissNotStored => {
                let text = format!("SELECT k FROM items WHERE id={}", connections.next_read);
                connections.next_read += 1;
                connections.through.query(&text)
            }
            Path::Write => {
                let text = update(connections.next_written());
                connections.through.query(&text)
            }
            Path::RowEvent => {
                let text = update(connections.next_written());
                connections.direct.query(&text)
            }
            Path::Settings => {
                connections.through.query(SET)?;
                connections.through.query(HIT)
            }
            Path::Transaction => {
                connections.through.query("BEGIN")?;
                connections.through.query(UNCACHED)?;
                connections.through.query("COMMIT")
            }
        };
        let what = || format!("the path {} could not be taken", self.name());
        answer.map(drop).with_context(what)
    }

    /// How often Remora has gone this way in all, as it says itself.
    pub(super) fn taken(self, metrics: &Metrics) -> f64 {
        let outcome = |name: &str| metrics.sum_where("remora_statements_total", "outcome", name);
        let reason = |name: &str| metrics.sum_where("remora_statements_total", "reason", name);
        match self {
            Path::Hit | Path::PreparedHit | Path::Settings => outcome("hit"),
            Path::Miss => outcome("fill"),
            Path::MissNotStored => outcome("fill") + reason("not_worth_storing"),
            Path::Write => outcome("write"),
            Path::Transaction => reason("statement_no_cache"),
            Path::RowEvent => {
                let everything = metrics.sum("remora_follower_commits_of_everything_total");
                metrics.sum("remora_follower_commits_total") - everything
            }
        }
    }
}

/// A change of one row by its key.
fn update(row: u32) -> String {
    format!("UPDATE written SET k=k+1 WHERE id={row}")
}
