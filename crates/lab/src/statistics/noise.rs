//! How much repetitions of the same differ, over many points together.

/// The standard deviation of the logarithm of a value around its own sample's mean: about the
/// relative standard deviation. It is pooled over the samples, since a few repetitions alone say
/// little about their spread. Values that aren't above 0 don't count. `None` if no sample has two.
pub fn pooled_relative_deviation<'a>(samples: impl IntoIterator<Item = &'a [f64]>) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for sample in samples {
        let logarithms: Vec<f64> = sample
            .iter()
            .filter(|value| value.is_finite() && **value > 0.0)
            .map(|value| value.ln())
            .collect();
        if logarithms.len() < 2 {
            continue;
        }
        let count = count(logarithms.len());
        let mean = logarithms.iter().sum::<f64>() / count;
        squares += logarithms
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        freedom += count - 1.0;
    }
    (freedom > 0.0).then(|| (squares / freedom).sqrt())
}

/// The standard error of the logarithm of a ratio of medians of two samples of these sizes, given
/// the deviation of one value. That of a median of n normal values is √(π / 2n) of it for large n,
/// and a little less for small ones.
pub fn standard_error_of_ratio(deviation: f64, numerator: usize, denominator: usize) -> f64 {
    let part = |size: usize| std::f64::consts::FRAC_PI_2 / count(size.max(1));
    deviation * (part(numerator) + part(denominator)).sqrt()
}

#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::testing::{log_normal, seeded};
    use crate::stats;

    #[test]
    fn a_planted_deviation_is_found_from_many_small_samples() {
        let mut random = seeded();
        let samples: Vec<Vec<f64>> = (1..=100)
            .map(|place| {
                let centre = f64::from(place) * 1_000.0;
                (0..3)
                    .map(|_| log_normal(&mut random, centre, 0.07))
                    .collect()
            })
            .collect();
        let found = pooled_relative_deviation(samples.iter().map(Vec::as_slice)).unwrap();
        assert!((0.055..0.085).contains(&found), "{found}");
        let none: [&[f64]; 2] = [&[1.0], &[0.0, 0.0]];
        assert_eq!(pooled_relative_deviation(none), None);
    }

    #[test]
    fn ratios_of_medians_spread_as_their_standard_error_says() {
        let mut random = seeded();
        let mut draw =
            || -> Vec<f64> { (0..5).map(|_| log_normal(&mut random, 10.0, 0.1)).collect() };
        let squares: f64 = (0..2_000)
            .map(|_| {
                (stats::median(&draw()) / stats::median(&draw()))
                    .ln()
                    .powi(2)
            })
            .sum();
        let (found, expected) = (
            (squares / 2_000.0).sqrt(),
            standard_error_of_ratio(0.1, 5, 5),
        );
        assert!(
            found < expected * 1.05 && found > expected * 0.85,
            "{found} and {expected}"
        );
    }
}
