//! Random samples for the tests of the statistics.

use crate::load::random::Random;

/// A generator whose seed is shown where a test fails. `REMORA_LAB_SEED` sets it.
pub(crate) fn seeded() -> Random {
    let given = std::env::var("REMORA_LAB_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(Random::fresh_seed);
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
