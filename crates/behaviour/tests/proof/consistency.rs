//! No read through Remora is older than it may be: many clients, many kinds of tables and of
//! writes, a real server.
//!
//! Two promises are checked for each read (docs/consistency.md): it has every write through Remora
//! that was answered before it was sent, whoever wrote; and every direct write that was answered
//! more than `lag_ms_max` before.
//!
//! The test must be able to fail: the same load against a Remora whose watermark rule, or whose
//! fences, are broken must find stale reads, and does.
//!
//! What is dangerous takes some tens of microseconds in life, which hardly any read meets. It is
//! made to take milliseconds ([`Surroundings`]).
//!
//! **The long mode**: `REMORA_CONSISTENCY_READS=2000000 cargo test --release -p
//! remora-behaviour --test proof consistency` checks so many reads in each of the runs that must
//! find nothing. `REMORA_CONSISTENCY_SEED` repeats a run's choices.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use remora_behaviour::front::catch_up;
use remora_cache::BrokenRules;
use remora_testkit::late_log::LateLog;
use remora_testkit::late_rows::LateRows;
use remora_testkit::load::{Oracle, Random};
use remora_testkit::log_gate::LogGate;
use remora_testkit::mixed::{self, MixedLoad, questions, tables};
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::semisync::Acknowledge;
use remora_testkit::servers::{Server, ServerOptions};

use crate::{is_without_late_rows, number_from};

/// For how long a result may lack a direct write.
const LAG_MS_MAX: u64 = 200;
/// Rounding of Remora's clock to milliseconds, on both sides.
const ROUNDING: Duration = Duration::from_millis(2);
/// Reads that are checked in each run unless the environment says otherwise. A broken rule shows
/// within 3,000 of them.
const READS: u64 = 30_000;
/// By when a broken rule must have been noticed.
const BROKEN_TIME: Duration = Duration::from_secs(90);
/// How late rows come.
const SLOW: Duration = Duration::from_millis(3);
/// The longest time for which the log is held back, or goes freely between two such times.
const HELD_MAX: Duration = Duration::from_millis(30);

/// Has the server rotate its log often.
const SMALL_FILES: &str = "--max-binlog-size=16384";

/// The runs would only take the processors from one another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What makes dangerous moments longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// Writes are answered before Remora reads of them: the log is held back at random.
    LateLog,
    /// Remora reads of commits before they are visible.
    LateRows,
    /// The log is rotated often; and rows come late, where that is possible.
    RotatedLog,
}

struct World {
    // Dropped in this order: who waits for the replica is let go first, then the log.
    _late_rows: Option<LateRows>,
    late_log: Option<LateLog>,
    remora: InProcessRemora,
    server: Server,
    oracle: Oracle,
    surroundings: Surroundings,
    seed: u64,
    _turn: MutexGuard<'static, ()>,
}

impl World {
    fn new(broken: BrokenRules, surroundings: Surroundings) -> World {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let rotations = (surroundings == Surroundings::RotatedLog).then_some(SMALL_FILES);
        let options = ServerOptions {
            further: rotations.into_iter().map(str::to_owned).collect(),
            ..ServerOptions::default()
        };
        let server = Server::start(options).unwrap();
        let mut setup = server.app().connect().unwrap();
        tables::create(&mut setup).unwrap();
        setup.query("CREATE TABLE aside (i INT)").unwrap();
        let mut options = RemoraOptions::storing_all()
            .with("follow.lag_ms_max", &LAG_MS_MAX.to_string())
            .with("follow.heartbeat_ms", &(LAG_MS_MAX / 4).to_string());
        let seed = number_from("REMORA_CONSISTENCY_SEED").unwrap_or_else(Random::fresh_seed);
        println!("REMORA_CONSISTENCY_SEED={seed} ({surroundings:?}, {broken:?})");
        let gate = (surroundings == Surroundings::LateLog)
            .then(|| LogGate::start(server.address()).unwrap());
        if let Some(gate) = &gate {
            options = options.with("upstream.address", &gate.address().to_string());
        }
        let remora = InProcessRemora::start_broken(&server, &options, broken).unwrap();
        let lag = Duration::from_millis(LAG_MS_MAX) + ROUNDING;
        let late_rows = (surroundings != Surroundings::LateLog
            && LateRows::are_possible(server.kind()))
        .then(|| LateRows::begin(&server, Acknowledge::After(SLOW)).unwrap());
        World {
            _late_rows: late_rows,
            late_log: gate.map(|gate| LateLog::begin(gate, HELD_MAX, Random::new(seed))),
            remora,
            server,
            oracle: Oracle::new(tables::COUNTERS, 0, lag),
            surroundings,
            seed,
            _turn: turn,
        }
    }

    fn load(&self, reads: u64, time: Duration, until_stale: bool) -> MixedLoad {
        MixedLoad {
            through: self.server.app().at(self.remora.address()),
            direct: self.server.app(),
            is_mysql: self.server.kind().is_mysql(),
            readers: 8,
            writers_through: 3,
            writers_direct: 2,
            write_pause: Duration::from_millis(50),
            hot: Duration::from_millis(120),
            reads,
            time,
            until_stale,
            seed: self.seed,
        }
    }

    fn hits(&self) -> u64 {
        let hits = self.remora.metrics().unwrap().sum("remora_hits_total");
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let hits = hits as u64;
        hits
    }

    /// Everybody rests: whatever is in memory must be what the server says, byte for byte, and come
    /// from memory.
    fn check_rest(mut self) {
        // Until the last direct write has been read from the log, it may be lacking.
        let _gate = self.late_log.take().map(LateLog::end);
        catch_up(&self.remora);
        let mut direct = self.server.app().connect().unwrap();
        let mut through = self
            .server
            .app()
            .at(self.remora.address())
            .connect()
            .unwrap();
        for question in questions::all() {
            let expected = direct.query_bytes(&question.text).unwrap().to_vec();
            assert_eq!(
                through.query_bytes(&question.text).unwrap(),
                expected,
                "{}",
                question.text
            );
            let is_cached = match question.kind {
                tables::Kind::Isam => false,
                tables::Kind::Memory => self.server.kind().is_mysql(),
                _ => true,
            };
            if !is_cached {
                continue;
            }
            let what = format!("a hit of {}", question.text);
            wait_for(&what, PATIENCE, || {
                let before = self.hits();
                assert_eq!(through.query_bytes(&question.text).unwrap(), expected);
                let is_hit = self.hits() > before;
                if !is_hit && self.surroundings == Surroundings::RotatedLog {
                    // A checkpoint event behind the last commit hides whether that is visible,
                    // until another commit shows it: see the watermark's documentation.
                    direct.query("INSERT INTO aside VALUES (1)")?;
                }
                Ok(is_hit.then_some(()))
            })
            .unwrap();
        }
    }
}

fn reads_wanted() -> u64 {
    number_from("REMORA_CONSISTENCY_READS").unwrap_or(READS)
}

/// Rounds of load until there was enough of everything to prove something. More than one are needed
/// only where the disk makes writers slow.
const ROUNDS_MAX: usize = 10;

fn nothing_is_stale(surroundings: Surroundings, hits_share: u64) {
    let reads = reads_wanted();
    let world = World::new(BrokenRules::default(), surroundings);
    let (mut reads_done, mut through, mut direct) = (0, 0, 0);
    for _ in 0..ROUNDS_MAX {
        let load = world.load(reads, Duration::from_secs(600 + reads / 500), false);
        let report = mixed::run(&load, &world.oracle).unwrap();
        println!(
            "{surroundings:?}: {report}; {} hits so far; log at {}",
            world.hits(),
            world.server.position().unwrap()
        );
        assert_eq!(report.stale, Vec::<String>::new());
        assert_eq!(report.impossible, Vec::<String>::new());
        assert!(report.reads >= reads, "{report}");
        reads_done += report.reads;
        through += report.writes_through;
        direct += report.writes_direct;
        if through > 100 && direct > 50 && world.hits() * hits_share > reads_done {
            break;
        }
    }
    let hits = world.hits();
    assert!(
        hits * hits_share > reads_done,
        "{hits} hits of {reads_done} reads are too few to prove anything"
    );
    assert!(
        through > 100 && direct > 50,
        "{through} writes through Remora and {direct} direct ones are too few to prove anything"
    );
    world.check_rest();
}

/// Must find a stale read, and ends at the first.
fn is_found(rules: BrokenRules, surroundings: Surroundings) {
    let world = World::new(rules, surroundings);
    let load = world.load(u64::MAX, BROKEN_TIME, true);
    let report = mixed::run(&load, &world.oracle).unwrap();
    println!("{rules:?}: {report}; {} hits", world.hits());
    println!("{:#?}", report.stale);
    assert!(report.stale_count > 0);
}

#[test]
fn no_read_is_older_than_allowed_when_the_log_comes_late() {
    nothing_is_stale(Surroundings::LateLog, 20);
}

#[test]
fn no_read_is_older_than_allowed_when_events_come_long_before_their_rows() {
    if !is_without_late_rows() {
        nothing_is_stale(Surroundings::LateRows, 6);
    }
}

/// After each rotation the position can't be believed for a while, so there is less to hit. So it
/// is while the log is held back.
#[test]
fn no_read_is_older_than_allowed_when_the_log_is_rotated_often() {
    nothing_is_stale(Surroundings::RotatedLog, 20);
}

#[test]
fn without_fences_stale_reads_are_found() {
    let rules = BrokenRules {
        fences: true,
        ..BrokenRules::default()
    };
    is_found(rules, Surroundings::LateLog);
}

#[test]
fn without_the_watermark_stale_reads_are_found() {
    if is_without_late_rows() {
        return;
    }
    let rules = BrokenRules {
        watermark: true,
        ..BrokenRules::default()
    };
    is_found(rules, Surroundings::LateRows);
}
