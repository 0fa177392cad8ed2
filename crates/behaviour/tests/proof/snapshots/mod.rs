//! All that a transaction at `REPEATABLE READ` reads through Remora shows one moment.
//!
//! Two loads look for a transaction that saw two:
//!
//! | module | what must hold |
//! |---|---|
//! | [`bank`] | money is only moved, so all accounts together always hold the same |
//! | [`histories`] | what was seen and not seen of lists fits one order of all snapshots and commits |
//!
//! Both run in several surroundings ([`Surroundings`]): what is dangerous takes microseconds
//! otherwise. And both must be able to fail: with a rule broken they must find something.
//!
//! **How much is asked of memory** doesn't depend on the machine: who writes waits for so many
//! reads ([`course::Course`]). A run that too few hits have been part of proves nothing, and fails.
//!
//! **The long mode**: `REMORA_SNAPSHOT_SUMS=100000` has so many transactions in each run, and five
//! times as many accounts. With `REMORA_SNAPSHOT_CHUNK=200` each statement of the bank reads up to
//! 200 accounts instead of 8, and there are far more sums in the same time. `REMORA_SNAPSHOT_SEED`
//! repeats a run's choices.

mod bank;
mod course;
mod histories;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use remora_behaviour::front::lease;
use remora_cache::{BrokenRules, BrokenSnapshots};
use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::late_log::LateLog;
use remora_testkit::late_rows::LateRows;
use remora_testkit::load::Random;
use remora_testkit::log_gate::LogGate;
use remora_testkit::mixed::asking::Asking;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::semisync::Acknowledge;
use remora_testkit::servers::Leased;

use crate::number_from;

/// Transactions in each run that are judged, unless the environment says otherwise.
const TRANSACTIONS: u64 = 200;
/// By when a broken rule must have been noticed.
const BROKEN_TIME: Duration = Duration::from_mins(4);
/// By when a run that must find nothing gives up, for each transaction that it wants.
const TIME_EACH: Duration = Duration::from_millis(500);
/// How late rows come.
const SLOW: Duration = Duration::from_millis(3);
/// The longest time for which the log is held back, or goes freely between two such times.
const HELD_MAX: Duration = Duration::from_millis(30);
/// Runs until there were enough hits.
const ROUNDS_MAX: usize = 10;
/// The transaction was rolled back: a deadlock, a lock that was waited for too long, a row that has
/// changed (MariaDB with `innodb_snapshot_isolation`), a table whose new definition the snapshot
/// can't have.
const ROLLED_BACK: [u16; 4] = [1213, 1205, 1020, 1412];

/// For how many seconds a row's lock is waited for. Row locks and an `ALTER` can wait for each
/// other. No server detects that, so the wait lasts `innodb_lock_wait_timeout`.
const ROW_LOCK_S: u32 = 2;

/// The runs would only take the processors from one another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What makes dangerous moments longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// Nothing.
    Plain,
    /// Commits are visible before Remora reads of them: the log is held back at random.
    LateLog,
    /// Remora reads of commits before they are visible.
    LateRows,
    /// Tables are altered meanwhile.
    Definitions,
    /// Results that depend on other columns are asked for again and again.
    NewShapes,
    /// Remora loses the log, the log is rotated, and changes are made that it doesn't have.
    Lost,
}

/// Which reads inside transactions memory may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Those after the first.
    AfterSnapshot,
    /// The first as well. Then a transaction may be refused, as after a deadlock.
    Early,
}

impl Reads {
    /// In the configuration.
    fn option(self) -> &'static str {
        match self {
            Reads::AfterSnapshot => "after_snapshot",
            Reads::Early => "early",
        }
    }
}

/// A server that everybody uses, and a Remora in front of it.
struct World {
    // Dropped in this order: who waits for the replica is let go first, then the log.
    _late_rows: Option<LateRows>,
    _late_log: Option<LateLog>,
    remora: InProcessRemora,
    server: Arc<Leased>,
    surroundings: Surroundings,
    reads: Reads,
    seed: u64,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    fn new(surroundings: Surroundings, reads: Reads, snapshots: BrokenSnapshots) -> World {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let server = lease();
        let seed = seed();
        println!("REMORA_SNAPSHOT_SEED={seed} ({surroundings:?}, {reads:?}, {snapshots:?})");
        let mut options = RemoraOptions::storing_all()
            .with("cache.transaction_reads", reads.option())
            .with("upstream.query_timeout_ms", "20000")
            .with("follow.reconnect_ms_min", "5")
            .with("follow.reconnect_ms_max", "200");
        let gate = (surroundings == Surroundings::LateLog)
            .then(|| LogGate::start(server.address()).unwrap());
        if let Some(gate) = &gate {
            options = options.with("upstream.address", &gate.address().to_string());
        }
        let broken = BrokenRules {
            snapshots,
            ..BrokenRules::default()
        };
        let remora = InProcessRemora::start_broken(&server, &options, broken).unwrap();
        let late_rows = (surroundings == Surroundings::LateRows)
            .then(|| LateRows::begin(&server, Acknowledge::After(SLOW)).unwrap());
        World {
            _late_rows: late_rows,
            _late_log: gate.map(|gate| LateLog::begin(gate, HELD_MAX, Random::new(seed))),
            remora,
            server,
            surroundings,
            reads,
            seed,
            _turn: turn,
        }
    }

    fn direct(&self) -> ConnectOptions {
        self.server.app()
    }

    fn through(&self) -> ConnectOptions {
        self.server.app().at(self.remora.address())
    }

    fn hits(&self) -> u64 {
        let hits = self.remora.metrics().unwrap().sum("remora_hits_total");
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let hits = hits as u64;
        hits
    }
}

/// How a client opens its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Begin,
    ReadOnly,
    ConsistentSnapshot,
    /// Each statement after a commit opens the next.
    NoAutocommit,
    /// The end of one opens the next.
    Chain,
}

impl Opening {
    /// Those of the readers.
    const ALL: [Opening; 5] = [
        Opening::Begin,
        Opening::ReadOnly,
        Opening::NoAutocommit,
        Opening::ConsistentSnapshot,
        Opening::Chain,
    ];
}

/// A connection whose transactions are opened in one way.
struct Session {
    client: Client,
    asking: Asking,
    opening: Opening,
    /// Whether the last transaction's end has opened another.
    is_chained: bool,
}

impl Session {
    fn connect(
        options: &ConnectOptions,
        opening: Opening,
        asking: Asking,
    ) -> Result<Session, ClientError> {
        let mut client = options.connect()?;
        client.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        client.query(&format!("SET innodb_lock_wait_timeout = {ROW_LOCK_S}"))?;
        if opening == Opening::NoAutocommit {
            client.query("SET autocommit = 0")?;
        }
        Ok(Session {
            client,
            asking,
            opening,
            is_chained: false,
        })
    }

    fn open(&mut self) -> Result<(), ClientError> {
        let statement = match self.opening {
            Opening::Chain if self.is_chained => return Ok(()),
            Opening::Begin | Opening::Chain => "BEGIN",
            Opening::ReadOnly => "START TRANSACTION READ ONLY",
            Opening::ConsistentSnapshot => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            Opening::NoAutocommit => return Ok(()),
        };
        self.client.query(statement).map(drop)
    }

    fn commit(&mut self) -> Result<(), ClientError> {
        self.end("COMMIT")
    }

    fn roll_back(&mut self) -> Result<(), ClientError> {
        self.end("ROLLBACK")
    }

    fn end(&mut self, how: &str) -> Result<(), ClientError> {
        self.is_chained = false;
        let is_chain = self.opening == Opening::Chain;
        let chain = if is_chain { " AND CHAIN" } else { "" };
        self.client.query(&format!("{how}{chain}"))?;
        self.is_chained = is_chain;
        Ok(())
    }

    /// A statement has failed. If that has ended the transaction, or has to, no transaction is open
    /// now.
    fn give_up(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_rolled_back = |code| ROLLED_BACK.contains(&code);
        if !error.code().is_some_and(is_rolled_back) {
            return Err(error);
        }
        self.is_chained = false;
        self.client.query("ROLLBACK").map(drop)
    }
}

/// How the nth of so many readers asks: two of each opening share their results.
fn asking(nth: usize, readers: usize) -> Asking {
    if nth < readers / 2 {
        Asking::Text
    } else {
        Asking::Prepared(HashMap::new())
    }
}

fn seed() -> u64 {
    number_from("REMORA_SNAPSHOT_SEED").unwrap_or_else(Random::fresh_seed)
}

/// Transactions that the long mode wants in each run.
fn long_mode() -> Option<u64> {
    number_from("REMORA_SNAPSHOT_SUMS")
}

/// Accounts of the bank that are read together.
fn chunk() -> Option<usize> {
    number_from("REMORA_SNAPSHOT_CHUNK").and_then(|count| usize::try_from(count).ok())
}
