//! The Universal Scalability Law: how throughput grows with concurrency, and why it stops.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)). λ is the throughput of one thread, σ (contention) the
//! share of the work that only one can do at a time, κ (coherency) what each pair of threads costs.
//! With κ above 0 there is a peak, and more threads bring less: negative scalability as a number.
//! Source: Gunther, "Guerrilla Capacity Planning", 2007.
//!
//! The law is linear in 1/λ, σ/λ and κ/λ: N/X = 1/λ + σ/λ (N − 1) + κ/λ N(N − 1). Fitted are those
//! three, none of them below 0, so that the sum of the squared relative errors is the least; of so
//! few coefficients each choice of zeros can be tried, so that the best is found and not just a
//! near one.

use std::collections::BTreeSet;

use super::bootstrap::{Interval, RESAMPLES, generator, percentile_interval};

/// Coefficients are fitted to at least so many different numbers of threads.
pub const PLACES_MIN: usize = 3;

/// For intervals, one more than there are coefficients.
pub const PLACES_FOR_INTERVALS_MIN: usize = 4;

/// A resample may be one that the law can't describe, but not more than one in so many.
const FAILURES_ONE_IN: usize = 10;

/// The coefficients of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// λ, the throughput of one thread.
    pub lambda: f64,
    /// σ, contention.
    pub sigma: f64,
    /// κ, coherency.
    pub kappa: f64,
}

impl Coefficients {
    /// From 1/λ, σ/λ and κ/λ.
    fn from_inverse([inverse, contention, coherency]: [f64; 3]) -> Option<Coefficients> {
        (inverse > 0.0).then(|| Coefficients {
            lambda: 1.0 / inverse,
            sigma: contention / inverse,
            kappa: coherency / inverse,
        })
    }

    /// The throughput with so many threads.
    pub fn throughput(&self, threads: f64) -> f64 {
        let n = threads;
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// The number of threads with the highest throughput, at least 1; infinity if it never falls.
    pub fn peak_threads(&self) -> f64 {
        if self.kappa > 0.0 {
            ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0)
        } else {
            f64::INFINITY
        }
    }
}

/// A fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalability {
    /// The coefficients that fit best.
    pub best: Coefficients,
    /// Their intervals.
    pub intervals: Option<Intervals>,
    /// How far measured throughputs are from fitted ones: the root of the mean squared relative
    /// error.
    pub relative_error: f64,
}

/// Intervals of the coefficients and of the peak. They are from the bootstrap of residuals (Efron
/// and Tibshirani, 1993, section 9.4): relative ones, enlarged by what three fitted coefficients
/// took of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// Of λ.
    pub lambda: Interval,
    /// Of σ.
    pub sigma: Interval,
    /// Of κ.
    pub kappa: Interval,
    /// Of the peak, threads; its upper end can be infinite.
    pub peak_threads: Interval,
}

/// Fits the law to pairs of threads and throughput, one for each measurement. `None`: fewer than
/// [`PLACES_MIN`] different numbers of threads, or the law can't describe it. Intervals take
/// [`PLACES_FOR_INTERVALS_MIN`].
pub fn fit(measured: &[(f64, f64)]) -> Option<Scalability> {
    let measured: Vec<(f64, f64)> = measured
        .iter()
        .copied()
        .filter(|&(threads, throughput)| {
            threads >= 1.0 && throughput > 0.0 && (threads * throughput).is_finite()
        })
        .collect();
    let places: BTreeSet<u64> = measured
        .iter()
        .map(|&(threads, _)| threads.to_bits())
        .collect();
    if places.len() < PLACES_MIN {
        return None;
    }
    let best = coefficients(&measured)?;
    let errors: Vec<f64> = measured
        .iter()
        .map(|&(threads, throughput)| throughput / best.throughput(threads) - 1.0)
        .collect();
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let intervals = (places.len() >= PLACES_FOR_INTERVALS_MIN)
        .then(|| intervals(&measured, &best, &errors))
        .flatten();
    Some(Scalability {
        best,
        intervals,
        relative_error: (squares / count(measured.len())).sqrt(),
    })
}

fn intervals(measured: &[(f64, f64)], best: &Coefficients, errors: &[f64]) -> Option<Intervals> {
    let n = count(errors.len());
    let mean = errors.iter().sum::<f64>() / n;
    let enlarged = (n / (n - 3.0)).sqrt();
    let errors: Vec<f64> = errors
        .iter()
        .map(|error| (error - mean) * enlarged)
        .collect();
    let mut random = generator();
    let draws: Vec<Coefficients> = (0..RESAMPLES)
        .filter_map(|_| {
            let drawn: Vec<(f64, f64)> = measured
                .iter()
                .map(|&(threads, _)| {
                    let error = errors[random.below(errors.len())];
                    (threads, best.throughput(threads) * (1.0 + error).max(0.01))
                })
                .collect();
            coefficients(&drawn)
        })
        .collect();
    if draws.len() < RESAMPLES - RESAMPLES / FAILURES_ONE_IN {
        return None;
    }
    let interval = |of: fn(&Coefficients) -> f64| percentile_interval(draws.iter().map(of));
    Some(Intervals {
        lambda: interval(|draw| draw.lambda)?,
        sigma: interval(|draw| draw.sigma)?,
        kappa: interval(|draw| draw.kappa)?,
        peak_threads: interval(Coefficients::peak_threads)?,
    })
}

/// The best coefficients. `None` if 1/λ would have to be 0 or less.
fn coefficients(measured: &[(f64, f64)]) -> Option<Coefficients> {
    let equations = Equations::of(measured);
    let choices: [&[usize]; 7] = [&[0, 1, 2], &[0, 1], &[0, 2], &[1, 2], &[0], &[1], &[2]];
    // With none of them bound the fit is the best of all, if it is allowed.
    if let Some(found) = equations.solve(choices[0]) {
        return Coefficients::from_inverse(found);
    }
    let solved = choices[1..].iter().filter_map(|free| {
        let found = equations.solve(free)?;
        // What such a choice leaves is the number of rows less this.
        let explained: f64 = (0..3)
            .map(|index| found[index] * equations.right[index])
            .sum();
        Some((explained, found))
    });
    let (_, found) = solved.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Coefficients::from_inverse(found)
}

/// The normal equations of the least squares, of 1/λ, σ/λ and κ/λ.
struct Equations {
    /// The products of each column of factors with each.
    normal: [[f64; 3]; 3],
    /// The products of each column with the equations' left sides, which are 1.
    right: [f64; 3],
}

impl Equations {
    fn of(measured: &[(f64, f64)]) -> Equations {
        let mut equations = Equations {
            normal: [[0.0; 3]; 3],
            right: [0.0; 3],
        };
        for &(n, throughput) in measured {
            // Divided by X, the equation's left side is N, and its error relative; divided by N, it
            // is 1.
            let factors = [1.0, n - 1.0, n * (n - 1.0)].map(|factor| factor * throughput / n);
            for (row, &factor) in factors.iter().enumerate() {
                equations.right[row] += factor;
                for (column, &other) in factors.iter().enumerate() {
                    equations.normal[row][column] += factor * other;
                }
            }
        }
        equations
    }

    /// The least squares with all coefficients 0 but those that are free. `None` if one of them is
    /// negative.
    fn solve(&self, free: &[usize]) -> Option<[f64; 3]> {
        // Columns are scaled to length 1, for N(N − 1) is a million times 1.
        let lengths: [f64; 3] = std::array::from_fn(|index| self.normal[index][index].sqrt());
        // A coefficient that isn't free has an equation of its own: it is 0.
        let mut matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let mut right = [0.0; 3];
        for &row in free {
            right[row] = self.right[row] / lengths[row];
            for &column in free {
                matrix[row][column] = self.normal[row][column] / (lengths[row] * lengths[column]);
            }
        }
        let scaled = solve_symmetric(&matrix, right)?;
        let found: [f64; 3] = std::array::from_fn(|index| scaled[index] / lengths[index]);
        found
            .iter()
            .all(|&value| value.is_finite() && value >= 0.0)
            .then_some(found)
    }
}

/// Solves three equations whose matrix is symmetric, by Cholesky's decomposition: the matrix is the
/// product of a lower triangle and its transpose. `None` if the matrix isn't positive definite.
fn solve_symmetric(matrix: &[[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let mut lower = [[0.0; 3]; 3];
    for row in 0..3 {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = matrix[row][column] - known;
            lower[row][column] = if column < row {
                rest / lower[column][column]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    let mut solution = right;
    for row in 0..3 {
        let known: f64 = (0..row).map(|k| lower[row][k] * solution[k]).sum();
        solution[row] = (solution[row] - known) / lower[row][row];
    }
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|k| lower[k][row] * solution[k]).sum();
        solution[row] = (solution[row] - known) / lower[row][row];
    }
    Some(solution)
}

#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::testing::{log_normal, seeded};
    use remora_testkit::load::random::Random;

    const THREADS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

    const TRIALS: u32 = 24;

    fn planted(truth: Coefficients, noise: f64, random: &mut Random) -> Vec<(f64, f64)> {
        let measure = |&threads: &f64| (threads, truth.throughput(threads));
        let places = THREADS.iter().map(measure);
        let repeated = places.flat_map(|place| std::iter::repeat_n(place, 5));
        repeated
            .map(|(threads, throughput)| (threads, log_normal(random, throughput, noise)))
            .collect()
    }

    fn is_near(found: f64, truth: f64, share: f64) -> bool {
        (found - truth).abs() <= share * truth
    }

    #[test]
    fn a_usl_fit_recovers_planted_coefficients() {
        let mut random = seeded();
        let truth = Coefficients {
            lambda: 9_000.0,
            sigma: 0.04,
            kappa: 0.000_3,
        };
        let exact = fit(&planted(truth, 0.0, &mut random)).unwrap();
        assert!(is_near(exact.best.lambda, truth.lambda, 1e-6), "{exact:?}");
        assert!(is_near(exact.best.sigma, truth.sigma, 1e-6), "{exact:?}");
        assert!(is_near(exact.best.kappa, truth.kappa, 1e-6), "{exact:?}");
        assert!(is_near(
            exact.best.peak_threads(),
            (0.96_f64 / 0.000_3).sqrt(),
            1e-6
        ));
        let noisy = fit(&planted(truth, 0.05, &mut random)).unwrap();
        assert!(is_near(noisy.best.lambda, truth.lambda, 0.15), "{noisy:?}");
        assert!(is_near(noisy.best.sigma, truth.sigma, 0.4), "{noisy:?}");
        assert!(is_near(noisy.best.kappa, truth.kappa, 0.25), "{noisy:?}");
        assert!((0.02..0.09).contains(&noisy.relative_error), "{noisy:?}");
    }

    #[test]
    fn a_fit_is_accurate_up_to_thousands_of_threads() {
        let truth = Coefficients {
            lambda: 250_000.0,
            sigma: 0.002,
            kappa: 0.000_000_5,
        };
        let threads = (0..13).map(|power| f64::from(1 << power));
        let measured: Vec<(f64, f64)> = threads.map(|n| (n, truth.throughput(n))).collect();
        let found = fit(&measured).unwrap().best;
        assert!(is_near(found.lambda, truth.lambda, 1e-9), "{found:?}");
        assert!(is_near(found.sigma, truth.sigma, 1e-9), "{found:?}");
        assert!(is_near(found.kappa, truth.kappa, 1e-9), "{found:?}");
    }

    /// With σ or κ below 0 planted, the best allowed fit has 0 there. What is best is known by the
    /// slopes of the sum of squares: none leads down to what is allowed.
    #[test]
    fn from_the_best_fit_no_slope_leads_down() {
        let mut random = seeded();
        for (sigma, kappa) in [(0.04, 0.000_3), (0.04, -0.000_1), (-0.01, 0.000_3)] {
            let truth = Coefficients {
                lambda: 9_000.0,
                sigma,
                kappa,
            };
            let measured = planted(truth, 0.02, &mut random);
            let found = fit(&measured).unwrap().best;
            assert_eq!(found.sigma > 0.0, sigma > 0.0, "{found:?}");
            assert_eq!(found.kappa > 0.0, kappa > 0.0, "{found:?}");
            for (index, value) in [1.0, found.sigma, found.kappa].into_iter().enumerate() {
                let (mut slope, mut size) = (0.0, 0.0);
                for &(n, throughput) in &measured {
                    let factor = [1.0, n - 1.0, n * (n - 1.0)][index] * throughput / n;
                    slope += factor * (throughput / found.throughput(n) - 1.0);
                    size += factor;
                }
                let is_level = slope.abs() < 1e-9 * size;
                assert!(is_level || value == 0.0 && slope > 0.0, "{found:?} {index}");
            }
        }
    }

    #[test]
    fn intervals_of_the_coefficients_cover_the_planted_ones() {
        let mut random = seeded();
        let truth = Coefficients {
            lambda: 5_000.0,
            sigma: 0.08,
            kappa: 0.000_8,
        };
        let (mut sigma, mut kappa, mut peak) = (0, 0, 0);
        for _ in 0..TRIALS {
            let found = fit(&planted(truth, 0.05, &mut random))
                .unwrap()
                .intervals
                .unwrap();
            sigma += u32::from(found.sigma.contains(truth.sigma));
            kappa += u32::from(found.kappa.contains(truth.kappa));
            peak += u32::from(found.peak_threads.contains(truth.peak_threads()));
        }
        // Of 24 at 95 %, fewer than 19 happen once in two thousand times.
        assert!(
            sigma.min(kappa).min(peak) >= 18,
            "{sigma} {kappa} {peak} of {TRIALS}"
        );
    }

    #[test]
    fn a_flat_line_has_no_coherency_and_no_peak() {
        let mut random = seeded();
        let flat: Vec<(f64, f64)> = THREADS[4..]
            .iter()
            .flat_map(|&threads| (0..5).map(move |_| threads))
            .map(|threads| (threads, log_normal(&mut random, 200_000.0, 0.01)))
            .collect();
        let found = fit(&flat).unwrap();
        assert!(
            found.intervals.unwrap().peak_threads.high.is_infinite(),
            "{found:?}"
        );
        assert!(found.intervals.unwrap().kappa.low < 1e-9, "{found:?}");
    }

    #[test]
    fn linear_growth_has_neither() {
        let linear: Vec<(f64, f64)> = THREADS.iter().map(|&n| (n, 100.0 * n)).collect();
        let found = fit(&linear).unwrap();
        assert!(
            found.best.sigma < 1e-9 && found.best.kappa < 1e-9,
            "{found:?}"
        );
        assert!(found.best.lambda > 99.999 && found.best.lambda < 100.001);
    }

    #[test]
    fn two_places_are_too_few() {
        assert_eq!(fit(&[(1.0, 10.0), (2.0, 18.0), (2.0, 19.0)]), None);
        let three = [(1.0, 10.0), (2.0, 18.0), (4.0, 30.0)];
        assert_eq!(fit(&three).unwrap().intervals, None);
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(0.0, 1.0), (f64::NAN, 1.0), (3.0, 0.0)]), None);
    }
}
