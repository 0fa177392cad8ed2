//! Random samples for the tests of the statistics.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};

use remora_testkit::load::random::Random;

/// A generator for one test. What these tests say of samples holds with some probability only, so
/// each draws the same numbers every time: those of its own name, and others at each call.
/// `REMORA_LAB_SEED` gives other ones: a number, or `random` to search.
pub(crate) fn seeded() -> Random {
    thread_local! { static CALLS: Cell<u64> = const { Cell::new(0) } }
    let given = std::env::var("REMORA_LAB_SEED").ok();
    let seed = match given.as_deref() {
        None => {
            let mut hasher = DefaultHasher::new();
            std::thread::current().name().hash(&mut hasher);
            CALLS.replace(CALLS.get() + 1).hash(&mut hasher);
            hasher.finish()
        }
        Some("random") => Random::fresh_seed(),
        Some(number) => number
            .parse()
            .expect("REMORA_LAB_SEED is a number or `random`"),
    };
    println!("REMORA_LAB_SEED={seed}");
    Random::new(seed)
}

/// From the standard normal distribution, by the method of Box and Muller.
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// With this median; `spread` is the standard deviation of its logarithm.
pub(crate) fn log_normal(random: &mut Random, median: f64, spread: f64) -> f64 {
    median * (spread * normal(random)).exp()
}
