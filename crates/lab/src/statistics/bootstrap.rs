//! Medians with bootstrap intervals.
//!
//! The intervals are percentile intervals of the bootstrap (Efron, "Bootstrap Methods: Another Look
//! at the Jackknife", The Annals of Statistics 7, 1979; Efron and Tibshirani, "An Introduction to
//! the Bootstrap", 1993, chapter 13). `BCa` intervals would take their acceleration from the
//! jackknife, which is known to fail for the median.
//!
//! Of few repetitions no interval can promise much: that from the smallest to the largest of n
//! values covers the true median with a probability of 1 − 2^(1 − n), which is 75 % for 3, 87.5 %
//! for 4 and 93.75 % for 5. The percentile interval of 95 % is just that for up to 5 values. Of
//! more it leaves the outermost ones out, step by step, and so covers a little less than it says:
//! 87.5 % for 7 values, about 90 % for 9, and near 95 % from 20 on.

use crate::stats;
use remora_testkit::load::random::Random;

/// The share of intervals that are meant to cover the truth.
pub const CONFIDENCE: f64 = 0.95;

/// Of fewer repetitions there is no interval, and no conclusion.
pub const REPETITIONS_MIN: usize = 3;

/// Samples that are drawn for an interval.
pub const RESAMPLES: usize = 2_000;

/// The same data always have the same interval.
const SEED: u64 = 0x7265_6d6f_7261;

/// From `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether a value lies in both. Intervals that touch overlap.
    pub fn overlaps(self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// A figure, with its interval where there is enough to make one of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// It covers the true figure with a probability of [`CONFIDENCE`]. `None`: too few repetitions.
    pub interval: Option<Interval>,
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// It can be either, or the same.
    NoDifferenceShown,
}

/// Which figures are good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Good {
    /// The high ones, as with throughput.
    High,
    /// The low ones, as with latency.
    Low,
}

impl Good {
    /// What to call a change by this factor.
    pub fn verdict(self, ratio: f64) -> Verdict {
        match (self, ratio.partial_cmp(&1.0)) {
            (Good::High, Some(std::cmp::Ordering::Greater))
            | (Good::Low, Some(std::cmp::Ordering::Less)) => Verdict::Better,
            (Good::High, Some(std::cmp::Ordering::Less))
            | (Good::Low, Some(std::cmp::Ordering::Greater)) => Verdict::Worse,
            _ => Verdict::NoDifferenceShown,
        }
    }
}

/// The median of a sample. `None` if it is empty; values that aren't finite don't count.
pub fn median(sample: &[f64]) -> Option<Estimate> {
    let sample = finite(sample);
    if sample.is_empty() {
        return None;
    }
    let (mut random, mut resampler) = (generator(), Resampler::new(&sample));
    let interval = (sample.len() >= REPETITIONS_MIN)
        .then(|| percentile_interval((0..RESAMPLES).map(|_| resampler.median(&mut random))))
        .flatten();
    Some(Estimate {
        value: stats::median(&sample),
        interval,
    })
}

/// The median of one sample, divided by that of another. `None` if one is empty or the divisor
/// is 0.
pub fn ratio_of_medians(numerator: &[f64], denominator: &[f64]) -> Option<Estimate> {
    let (above, below) = (finite(numerator), finite(denominator));
    let divisor = stats::median(&below);
    if above.is_empty() || divisor == 0.0 {
        return None;
    }
    let mut random = generator();
    let (mut top, mut bottom) = (Resampler::new(&above), Resampler::new(&below));
    let draw = |_| top.median(&mut random) / bottom.median(&mut random);
    let interval = (above.len().min(below.len()) >= REPETITIONS_MIN)
        .then(|| percentile_interval((0..RESAMPLES).map(draw)))
        .flatten();
    Some(Estimate {
        value: stats::median(&above) / divisor,
        interval,
    })
}

/// Whether `sample` is better than `baseline`. Nothing is concluded where the intervals of their
/// medians overlap, nor from fewer than [`REPETITIONS_MIN`] repetitions of either.
pub fn compare(baseline: &[f64], sample: &[f64], good: Good) -> Verdict {
    let (Some(old), Some(new)) = (median(baseline), median(sample)) else {
        return Verdict::NoDifferenceShown;
    };
    match (old.interval, new.interval) {
        (Some(a), Some(b)) if a.overlaps(b) => Verdict::NoDifferenceShown,
        (Some(_), Some(_)) if new.value > old.value => good.verdict(2.0),
        (Some(_), Some(_)) => good.verdict(0.5),
        _ => Verdict::NoDifferenceShown,
    }
}

/// The interval that holds the middle [`CONFIDENCE`] of what was drawn. Infinite draws count, those
/// that aren't numbers don't. `None` if none is left.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
pub fn percentile_interval(draws: impl IntoIterator<Item = f64>) -> Option<Interval> {
    let mut sorted: Vec<f64> = draws.into_iter().filter(|draw| !draw.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    // From each end so many are left out.
    let outside = (sorted.len() as f64 * (1.0 - CONFIDENCE) / 2.0).floor() as usize;
    let last = sorted.len().checked_sub(1)?;
    Some(Interval {
        low: sorted[outside],
        high: sorted[last - outside],
    })
}

/// Draws samples anew from one sample, with replacement and of its size, and tells their medians.
#[derive(Debug)]
pub struct Resampler {
    sorted: Vec<f64>,
    /// How often each value was drawn.
    drawn: Vec<usize>,
}

impl Resampler {
    /// For a sample; values that aren't finite don't count.
    pub fn new(sample: &[f64]) -> Resampler {
        let mut sorted = finite(sample);
        sorted.sort_by(f64::total_cmp);
        let drawn = vec![0; sorted.len()];
        Resampler { sorted, drawn }
    }

    /// The median of the next sample; 0 if there is nothing to draw from. As the values are sorted,
    /// counting finds it.
    pub fn median(&mut self, random: &mut Random) -> f64 {
        let size = self.sorted.len();
        if size == 0 {
            return 0.0;
        }
        self.drawn.fill(0);
        for _ in 0..size {
            self.drawn[random.below(size)] += 1;
        }
        let (mut seen, mut lower) = (0, 0.0);
        for (&value, &times) in self.sorted.iter().zip(&self.drawn) {
            let before = seen;
            seen += times;
            // The lower one of the middle two; of an odd number there is but one.
            let middle = (size - 1) / 2;
            if before <= middle && middle < seen {
                lower = value;
            }
            if before <= size / 2 && size / 2 < seen {
                return f64::midpoint(lower, value);
            }
        }
        lower
    }
}

/// A generator for the draws of an interval: the same one each time.
pub fn generator() -> Random {
    Random::new(SEED)
}

fn finite(sample: &[f64]) -> Vec<f64> {
    sample
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::testing::{log_normal, seeded};

    /// The share of intervals that cover the true median, 100.
    fn coverage(size: usize, random: &mut Random) -> f64 {
        const TRIALS: u32 = 400;
        let covering = (0..TRIALS)
            .filter(|_| {
                let sample: Vec<f64> = (0..size).map(|_| log_normal(random, 100.0, 0.3)).collect();
                median(&sample).unwrap().interval.unwrap().contains(100.0)
            })
            .count();
        f64::from(u32::try_from(covering).unwrap()) / f64::from(TRIALS)
    }

    #[test]
    fn intervals_cover_the_true_median_about_as_often_as_they_say() {
        let mut random = seeded();
        for (size, least) in [(5, 0.88), (7, 0.81), (9, 0.81), (20, 0.87)] {
            let share = coverage(size, &mut random);
            assert!(
                (least..=0.995).contains(&share),
                "{size} repetitions: {share}"
            );
        }
    }

    #[test]
    fn an_interval_of_three_covers_three_times_in_four() {
        let share = coverage(3, &mut seeded());
        assert!((0.66..=0.84).contains(&share), "{share}");
    }

    #[test]
    fn a_true_ratio_is_covered_and_two_equal_samples_seldom_differ() {
        let mut random = seeded();
        let (mut covered, mut told_apart) = (0, 0);
        for _ in 0..300 {
            let draw = |centre: f64, random: &mut Random| -> Vec<f64> {
                (0..5).map(|_| log_normal(random, centre, 0.1)).collect()
            };
            let (a, b) = (draw(100.0, &mut random), draw(100.0, &mut random));
            let twice = draw(200.0, &mut random);
            let ratio = ratio_of_medians(&twice, &a).unwrap();
            covered += u32::from(ratio.interval.unwrap().contains(2.0));
            told_apart += u32::from(compare(&a, &b, Good::High) != Verdict::NoDifferenceShown);
            assert_eq!(compare(&a, &twice, Good::High), Verdict::Better);
            assert_eq!(compare(&a, &twice, Good::Low), Verdict::Worse);
        }
        assert!((265..=300).contains(&covered), "{covered} of 300");
        // All of five above all of other five: 2 in 252.
        assert!(told_apart <= 12, "{told_apart} of 300");
    }

    #[test]
    fn the_same_data_have_the_same_interval() {
        let sample = [10.0, 12.0, 11.0, 15.0, 9.0, 10.5];
        assert_eq!(median(&sample), median(&sample));
        assert_eq!(
            median(&sample[..5]).unwrap().interval,
            Some(Interval {
                low: 9.0,
                high: 15.0
            })
        );
    }

    #[test]
    fn too_few_repetitions_show_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(median(&[1.0, 1.1]).unwrap().interval, None);
        let verdict = compare(&[1.0, 1.1], &[9.0, 9.1, 9.2], Good::High);
        assert_eq!(verdict, Verdict::NoDifferenceShown);
        assert_eq!(ratio_of_medians(&[1.0], &[0.0, 0.0, 0.0]), None);
    }

    #[test]
    fn resampled_medians_are_medians_of_drawn_samples() {
        let mut random = seeded();
        for size in 1..=6 {
            let sample: Vec<f64> = (0..size).map(|_| random.unit()).collect();
            let (mut sorted, seed) = (sample.clone(), random.next());
            sorted.sort_by(f64::total_cmp);
            let (mut one, mut other) = (Random::new(seed), Random::new(seed));
            let mut resampler = Resampler::new(&sample);
            for _ in 0..200 {
                let drawn: Vec<f64> = (0..size).map(|_| sorted[one.below(size)]).collect();
                let found = resampler.median(&mut other);
                assert!((found - stats::median(&drawn)).abs() < 1e-12, "{drawn:?}");
            }
        }
    }

    #[test]
    fn equal_values_show_no_difference() {
        let verdict = compare(&[5.0; 5], &[5.0; 5], Good::Low);
        assert_eq!(verdict, Verdict::NoDifferenceShown);
    }
}
