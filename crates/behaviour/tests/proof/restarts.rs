//! No read through Remora is older than it may be, whichever process has kept it: Remora is stopped
//! and started again and again (`cache.state_file`), and others write meanwhile.
//!
//! The clients, the tables and the oracle are those of `consistency`, and they outlive each Remora.
//! The test must be able to fail: where no commit outdates what an earlier process has saved, it
//! must find stale reads.
//!
//! `REMORA_CONSISTENCY_READS` and `REMORA_CONSISTENCY_SEED` are those of `consistency`, too.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use remora_cache::{BrokenLiveness, BrokenRules};
use remora_engine::reason::StateOutcome;
use remora_testkit::load::{Oracle, Random};
use remora_testkit::mixed::{self, MixedLoad, MixedReport, tables};
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{FOLLOW_USER, Server, ServerOptions};

use crate::number_from;

/// For how long a result may lack a direct write.
const LAG_MS_MAX: u64 = 500;
const ROUNDING: Duration = Duration::from_millis(2);
/// Reads between two restarts.
const READS: u64 = 2_000;
/// All reads that are checked, unless the environment says otherwise.
const READS_IN_ALL: u64 = 20_000;
/// The longest time without a Remora, milliseconds.
const AWAY_MS_MAX: usize = 80;
/// Restarts by when a broken rule must have been noticed.
const BROKEN_RESTARTS: u64 = 40;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What else happens while no Remora runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// The log goes on, often in a further file.
    Rotations,
    /// The log is reset.
    Reset,
}

struct World {
    server: Server,
    options: RemoraOptions,
    oracle: Oracle,
    random: Random,
    seed: u64,
    taken_over: u64,
    hits: u64,
    reads: u64,
    _scratch: Scratch,
}

impl World {
    fn new() -> World {
        let server = Server::start(ServerOptions::default()).unwrap();
        // Without it, a transaction with a MyISAM table on MariaDB keeps Remora from saving
        // anything, and some seeds have one in every load.
        let grant = format!("GRANT PROCESS ON *.* TO {FOLLOW_USER}@'%'");
        server.execute([&grant]).unwrap();
        let mut setup = server.app().connect().unwrap();
        tables::create(&mut setup).unwrap();
        let scratch = Scratch::new().unwrap();
        let options = RemoraOptions::storing_all()
            .with("follow.lag_ms_max", &LAG_MS_MAX.to_string())
            .with("follow.heartbeat_ms", &(LAG_MS_MAX / 4).to_string())
            .with(
                "cache.state_file",
                &scratch.join("results").display().to_string(),
            );
        let seed = number_from("REMORA_CONSISTENCY_SEED").unwrap_or_else(Random::fresh_seed);
        println!("REMORA_CONSISTENCY_SEED={seed}");
        let lag = Duration::from_millis(LAG_MS_MAX) + ROUNDING;
        World {
            server,
            options,
            oracle: Oracle::new(tables::COUNTERS, 0, lag),
            random: Random::new(seed),
            seed,
            taken_over: 0,
            hits: 0,
            reads: 0,
            _scratch: scratch,
        }
    }

    /// A Remora begins, clients read and write through it and past it, and it ends.
    fn one_process(&mut self, broken: BrokenRules) -> MixedReport {
        let remora = InProcessRemora::start_broken(&self.server, &self.options, broken).unwrap();
        let load = MixedLoad {
            through: self.server.app().at(remora.address()),
            direct: self.server.app(),
            is_mysql: self.server.kind().is_mysql(),
            readers: 8,
            writers_through: 3,
            writers_direct: 2,
            write_pause: Duration::from_millis(50),
            hot: Duration::from_millis(120),
            reads: READS,
            time: Duration::from_mins(5),
            until_stale: false,
            seed: self.seed,
        };
        let report = mixed::run(&load, &self.oracle).unwrap();
        let restored = &remora.app().unwrap().shared().restored;
        if restored.outcome() == Some(StateOutcome::Restored) {
            self.taken_over += restored.results();
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let hits = remora.metrics().unwrap().sum("remora_hits_total") as u64;
        self.hits += hits;
        self.reads += report.reads;
        report
    }

    /// Others write while no Remora runs.
    fn without_remora(&mut self, meanwhile: Meanwhile) {
        let away_ms = self.random.below(AWAY_MS_MAX) as u64;
        let load = MixedLoad {
            through: self.server.app(),
            direct: self.server.app(),
            is_mysql: self.server.kind().is_mysql(),
            readers: 0,
            writers_through: 0,
            writers_direct: 3,
            write_pause: Duration::from_millis(5),
            hot: Duration::from_millis(20),
            reads: u64::MAX,
            time: Duration::from_millis(away_ms),
            until_stale: false,
            seed: self.random.next(),
        };
        mixed::run(&load, &self.oracle).unwrap();
        match meanwhile {
            Meanwhile::Rotations if self.random.below(2) == 0 => {
                self.server.execute(["FLUSH BINARY LOGS"]).unwrap();
            }
            Meanwhile::Rotations => {}
            Meanwhile::Reset => self.server.execute(["RESET MASTER"]).unwrap(),
        }
    }
}

fn no_read_is_stale(meanwhile: Meanwhile) -> World {
    let reads = number_from("REMORA_CONSISTENCY_READS").unwrap_or(READS_IN_ALL);
    let mut world = World::new();
    while world.reads < reads {
        let report = world.one_process(BrokenRules::default());
        println!("{report}; {} hits so far", world.hits);
        assert_eq!(report.stale, Vec::<String>::new());
        assert_eq!(report.impossible, Vec::<String>::new());
        world.without_remora(meanwhile);
    }
    println!("{} results were taken over", world.taken_over);
    assert!(
        world.hits * 20 > world.reads,
        "{} hits of {} reads are too few to prove anything",
        world.hits,
        world.reads
    );
    world
}

#[test]
fn no_read_is_older_than_allowed_across_restarts() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let world = no_read_is_stale(Meanwhile::Rotations);
    assert!(world.taken_over > 100, "too few to prove anything");
}

#[test]
fn no_read_is_older_than_allowed_across_restarts_with_a_log_that_is_reset() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    no_read_is_stale(Meanwhile::Reset);
}

#[test]
fn if_what_was_saved_is_never_outdated_stale_reads_are_found() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let broken = BrokenRules {
        liveness: BrokenLiveness::Saved,
        ..BrokenRules::default()
    };
    let mut world = World::new();
    let is_found = (0..BROKEN_RESTARTS).any(|_| {
        let report = world.one_process(broken);
        println!("{report}");
        world.without_remora(Meanwhile::Rotations);
        report.stale_count > 0
    });
    assert!(is_found);
}
