//! What simulations find, and that they find it.

use remora_cache::{BrokenLiveness, BrokenRules, BrokenSnapshots, BrokenTags};

use super::random::Random;
use super::{Seen, Setup, of_bytes, simulate, transaction_reads_of};

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_client_reads_what_its_session_must_not_show() {
    let Some((seeds, all)) = simulate_all(200, false) else {
        return;
    };
    // A simulation in which nothing happens proves nothing.
    assert!(all.hits > seeds * 10, "{all:?}");
    assert!(all.hits_inside > seeds, "{all:?}");
    assert!(all.hits_prepared > seeds, "{all:?}");
    assert!(all.commits > seeds * 5, "{all:?}");
    assert!(all.sets_deferred > seeds / 2, "{all:?}");
    assert!(all.closed > seeds / 10, "{all:?}");
    assert!(all.logs > seeds / 10, "{all:?}");
}

#[test]
fn no_session_fails_or_stays_when_what_is_sent_is_damaged() {
    let Some((seeds, all)) = simulate_all(200, true) else {
        return;
    };
    assert!(all.hits > seeds, "{all:?}");
    assert!(all.closed > seeds, "{all:?}");
}

/// Runs as many seeds as are wanted, and gives how many and what happened; `None` if one seed alone
/// was asked for.
fn simulate_all(seeds: u64, damages: bool) -> Option<(u64, Seen)> {
    let setup = |seed, is_told| Setup {
        transaction_reads: transaction_reads_of(seed),
        broken: BrokenRules::default(),
        damages,
        is_told,
    };
    if let Some(seed) = number_from("REMORA_SIMULATION_SEED") {
        let seen = simulate(Random::new(seed), setup(seed, true));
        eprintln!("{:?}", seen.expect("nothing is wrong"));
        return None;
    }
    let seeds = number_from("REMORA_SIMULATIONS").unwrap_or(seeds);
    let first = number_from("REMORA_SIMULATION_FIRST_SEED").unwrap_or(0);
    let mut all = Seen::default();
    for seed in first..first + seeds {
        match simulate(Random::new(seed), setup(seed, false)) {
            Err(what) => panic!("REMORA_SIMULATION_SEED={seed}: {what}"),
            Ok(seen) => all.add(&seen),
        }
    }
    eprintln!("{seeds} seeds: {all:?}");
    Some((seeds, all))
}

#[test]
fn a_fuzzers_bytes_choose_a_simulation() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let bytes: Vec<_> = (0..2_000).map(|_| random.byte()).collect();
        assert_eq!(of_bytes(&bytes), Ok(()), "{seed}");
    }
}

#[test]
fn broken_rules_of_freshness_are_found() {
    let right = BrokenRules::default();
    let fences = BrokenRules {
        fences: true,
        ..right
    };
    let watermark = BrokenRules {
        watermark: true,
        ..right
    };
    for broken in [fences, watermark] {
        assert_found(broken, "off", 10_000);
    }
}

#[test]
fn broken_rules_of_snapshots_are_found() {
    for (broken, transaction_reads) in [
        (BrokenSnapshots::Low, "after_snapshot"),
        (BrokenSnapshots::High, "after_snapshot"),
        (BrokenSnapshots::OwnWrites, "after_snapshot"),
        (BrokenSnapshots::EarlySnapshot, "early"),
        (BrokenSnapshots::PendingSetsDropped, "after_snapshot"),
        (BrokenSnapshots::PendingSetsDropped, "early"),
    ] {
        assert_found(snapshots(broken), transaction_reads, 10_000);
    }
}

#[test]
fn broken_rules_of_tags_are_found() {
    for tags in [
        BrokenTags::BeforeImage,
        BrokenTags::ConditionColumns,
        BrokenTags::IntervalBounds,
    ] {
        let broken = BrokenRules {
            tags,
            ..BrokenRules::default()
        };
        assert_found(broken, "off", 10_000);
    }
}

/// What `make check` leaves out.
mod long {
    use super::{BrokenLiveness, BrokenRules, BrokenSnapshots, assert_found, snapshots};

    #[test]
    fn broken_rules_of_a_late_or_a_lost_log_are_found() {
        for liveness in [BrokenLiveness::OldProofs, BrokenLiveness::Restarts] {
            let broken = BrokenRules {
                liveness,
                ..BrokenRules::default()
            };
            assert_found(broken, "off", 10_000);
        }
    }

    #[test]
    fn broken_rules_of_first_reads_are_found() {
        for (broken, transaction_reads) in [
            (BrokenSnapshots::FirstReads, "after_snapshot"),
            (BrokenSnapshots::BoundTooSoon, "early"),
        ] {
            assert_found(snapshots(broken), transaction_reads, 10_000);
        }
    }
}

/// These take several events in a certain order, or early in a simulation.
#[test]
#[ignore = "takes minutes"]
fn rules_that_are_seldom_needed_are_found_when_broken() {
    for (broken, transaction_reads) in [
        (BrokenSnapshots::Shapes, "after_snapshot"),
        (BrokenSnapshots::EarlyHits, "early"),
    ] {
        assert_found(snapshots(broken), transaction_reads, 40_000);
    }
}

fn snapshots(snapshots: BrokenSnapshots) -> BrokenRules {
    BrokenRules {
        snapshots,
        ..BrokenRules::default()
    }
}

/// Some seed shows that the rules are broken, and shows nothing if they are not.
fn assert_found(broken: BrokenRules, transaction_reads: &str, seeds_max: u64) {
    let run = |seed, broken| {
        let setup = Setup {
            transaction_reads,
            broken,
            damages: false,
            is_told: false,
        };
        simulate(Random::new(seed), setup).err()
    };
    let found = (0..seeds_max).find(|seed| run(*seed, broken).is_some());
    let seed = found.unwrap_or_else(|| panic!("{broken:?} isn't found"));
    eprintln!("{broken:?}: seed {seed}");
    assert_eq!(
        run(seed, BrokenRules::default()),
        None,
        "seed {seed}, {transaction_reads}"
    );
}
