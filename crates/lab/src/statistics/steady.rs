//! Whether a throughput has become steady, so that measuring can begin.

use crate::stats;

/// Fewer values are never steady.
pub const VALUES_MIN: usize = 6;

/// Older values don't count.
const VALUES_MAX: usize = 30;

/// The window is judged in so many parts.
const PARTS: usize = 3;

/// A part's mean may differ from the window's by this share whatever the noise is.
const DIFFERENCE_MAX: f64 = 0.05;

/// With much noise it may differ by so many standard errors of a part's mean.
const STANDARD_ERRORS_MAX: f64 = 2.5;

/// A trend matters if it moves the throughput by more than this share in the length of the window …
const DRIFT_MAX: f64 = 0.02;

/// … and is so many standard deviations away from what an order by chance would have.
const TREND_DEVIATIONS_MAX: f64 = 1.96;

/// Whether a series of throughputs, one for each second (or any other length of time), is steady at
/// its end.
///
/// Judged is its later half, but at least 6 and at most 30 values, in three parts of equal length.
/// It is steady if
///
/// 1. the mean of each part differs from the mean of all by less than 5 %, or by less than 2.5
///    standard errors where noise makes those larger (the noise is taken from the differences of
///    neighbours, which ramps and steps leave alone: von Neumann and others, "The Mean Square
///    Successive Difference", 1941), and
/// 2. it has no trend: either the test of Mann and Kendall (Mann, "Nonparametric Tests Against
///    Trend", 1945) shows none at 5 %, or the slope of Theil and Sen moves it by less than 2 % in
///    the whole window.
///
/// A series that is shorter than 6, holds anything but finite numbers or is at 0 isn't steady.
pub fn is_steady(series: &[f64]) -> bool {
    let length = (series.len() / 2).clamp(VALUES_MIN, VALUES_MAX) / PARTS * PARTS;
    let Some(start) = series.len().checked_sub(length) else {
        return false;
    };
    let window = &series[start..];
    let mean = mean(window);
    mean.is_finite() && mean > 0.0 && parts_agree(window, mean) && !has_trend(window, mean)
}

fn parts_agree(window: &[f64], mean_of_all: f64) -> bool {
    let length = window.len() / PARTS;
    let standard_error = noise(window) / count(length).sqrt();
    let allowed = (DIFFERENCE_MAX * mean_of_all).max(STANDARD_ERRORS_MAX * standard_error);
    window
        .chunks(length)
        .all(|part| (mean(part) - mean_of_all).abs() < allowed)
}

/// The standard deviation of a value, from the median difference of neighbours: that of a normal
/// difference is 0.6745 of its own standard deviation, which is √2 times that of a value.
fn noise(window: &[f64]) -> f64 {
    let differences: Vec<f64> = window
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .collect();
    stats::median(&differences) / (0.6745 * std::f64::consts::SQRT_2)
}

fn has_trend(window: &[f64], mean_of_all: f64) -> bool {
    let mut slopes = Vec::new();
    let mut rises_less_falls = 0.0;
    for (index, &earlier) in window.iter().enumerate() {
        for (distance, &later) in window[index + 1..].iter().enumerate() {
            slopes.push((later - earlier) / count(distance + 1));
            if later > earlier {
                rises_less_falls += 1.0;
            } else if later < earlier {
                rises_less_falls -= 1.0;
            }
        }
    }
    let n = count(window.len());
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    // One less: the correction for continuity.
    let distance_from_chance = (f64::abs(rises_less_falls) - 1.0).max(0.0) / deviation;
    let drift = stats::median(&slopes).abs() * (n - 1.0) / mean_of_all;
    distance_from_chance > TREND_DEVIATIONS_MAX && drift > DRIFT_MAX
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::testing::{normal, seeded};

    const TRIALS: usize = 300;

    /// How many of many series, of 12 to 40 values, are called steady.
    fn steady_of(shape: impl Fn(f64, f64) -> f64, noise: f64) -> usize {
        let mut random = seeded();
        (0..TRIALS)
            .filter(|_| {
                let length = 12 + random.below(29);
                let series: Vec<f64> = (0..length)
                    .map(|second| shape(count(second), count(length)))
                    .map(|level| level * (1.0 + noise * normal(&mut random)))
                    .collect();
                is_steady(&series)
            })
            .count()
    }

    #[test]
    fn a_level_with_noise_is_steady() {
        for noise in [0.0, 0.01, 0.03, 0.1] {
            let steady = steady_of(|_, _| 50_000.0, noise);
            assert!(
                steady > TRIALS * 7 / 10,
                "noise of {noise}: {steady} of {TRIALS}"
            );
        }
    }

    #[test]
    fn a_ramp_is_not_steady() {
        // From nothing to full in the length of the series.
        let steady = steady_of(|second, length| 50_000.0 * (1.0 + second) / length, 0.02);
        assert!(steady <= TRIALS / 50, "{steady} of {TRIALS}");
        let falling = steady_of(|second, length| 50_000.0 * (2.0 - second / length), 0.01);
        assert!(falling <= TRIALS / 50, "{falling} of {TRIALS}");
    }

    #[test]
    fn a_step_within_the_window_is_not_steady() {
        let step = |second: f64, length: f64| {
            if second < length * 0.75 {
                30_000.0
            } else {
                45_000.0
            }
        };
        let steady = steady_of(step, 0.03);
        assert!(steady <= TRIALS / 20, "{steady} of {TRIALS}");
    }

    #[test]
    fn a_step_long_ago_is_forgotten() {
        let step = |second: f64, length: f64| {
            if second < length * 0.3 {
                5_000.0
            } else {
                45_000.0
            }
        };
        let steady = steady_of(step, 0.02);
        assert!(steady > TRIALS * 7 / 10, "{steady} of {TRIALS}");
    }

    #[test]
    fn too_little_is_not_steady() {
        assert!(!is_steady(&[]));
        assert!(!is_steady(&[100.0; VALUES_MIN - 1]));
        assert!(is_steady(&[100.0; VALUES_MIN]));
        assert!(!is_steady(&[0.0; 20]));
        assert!(!is_steady(&[f64::NAN; 20]));
    }

    #[test]
    fn a_pause_of_the_server_is_not_steady() {
        let mut series = vec![40_000.0, 40_500.0, 39_800.0, 40_100.0, 40_300.0, 39_900.0];
        series.extend([40_200.0, 39_700.0, 40_050.0, 0.0, 0.0, 0.0]);
        assert!(!is_steady(&series));
    }
}
