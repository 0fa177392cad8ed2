//! From which place on the x axis one line lies above another: from which hit ratio a cache pays.

use super::bootstrap::{
    Estimate, REPETITIONS_MIN, RESAMPLES, Resampler, generator, percentile_interval,
};
use crate::stats;

/// Both lines at one place on the x axis.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where.
    pub x: f64,
    /// The repetitions of the line that may pay.
    pub arm: Vec<f64>,
    /// Those of the one that it has to reach.
    pub baseline: Vec<f64>,
}

/// The x from which on the arm's median isn't below the baseline's, up to the highest x; between
/// two places the lines are straight. Negative infinity: it is below at no place; infinity: it is
/// below at the last one. The interval comes from samples drawn anew at every place, and can be
/// infinite at an end. `None`: fewer than two places.
pub fn break_even(places: &[Place]) -> Option<Estimate> {
    let mut places: Vec<&Place> = places
        .iter()
        .filter(|place| !place.arm.is_empty() && !place.baseline.is_empty())
        .collect();
    places.sort_by(|a, b| a.x.total_cmp(&b.x));
    if places.len() < 2 {
        return None;
    }
    let measured: Vec<(f64, f64)> = places
        .iter()
        .map(|place| {
            let difference = stats::median(&place.arm) - stats::median(&place.baseline);
            (place.x, difference)
        })
        .collect();
    let fewest = places
        .iter()
        .map(|place| place.arm.len().min(place.baseline.len()))
        .min();
    let interval = (fewest >= Some(REPETITIONS_MIN))
        .then(|| {
            let mut random = generator();
            let mut resamplers: Vec<(f64, Resampler, Resampler)> = places
                .iter()
                .map(|place| {
                    let of = Resampler::new;
                    (place.x, of(&place.arm), of(&place.baseline))
                })
                .collect();
            percentile_interval((0..RESAMPLES).map(|_| {
                let drawn: Vec<(f64, f64)> = resamplers
                    .iter_mut()
                    .map(|(x, arm, baseline)| {
                        (*x, arm.median(&mut random) - baseline.median(&mut random))
                    })
                    .collect();
                last_rise_above_zero(&drawn)
            }))
        })
        .flatten();
    Some(Estimate {
        value: last_rise_above_zero(&measured),
        interval,
    })
}

/// Where the line through these points last gets from below 0 to 0 or above.
fn last_rise_above_zero(points: &[(f64, f64)]) -> f64 {
    let Some(below) = points.iter().rposition(|&(_, y)| y < 0.0) else {
        return f64::NEG_INFINITY;
    };
    let (x0, y0) = points[below];
    match points.get(below + 1) {
        None => f64::INFINITY,
        Some(&(x1, y1)) => x0 + (x1 - x0) * y0 / (y0 - y1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::testing::{log_normal, seeded};
    use remora_testkit::load::random::Random;

    /// The arm is at 400 for 0 % and at 2,400 for 100 %, the baseline at 1,000: they cross at 30 %.
    fn places(spread: f64, random: &mut Random) -> Vec<Place> {
        (0..=10)
            .map(|tenths| {
                let x = f64::from(tenths) * 10.0;
                let mut draw = |centre: f64| -> Vec<f64> {
                    (0..5).map(|_| log_normal(random, centre, spread)).collect()
                };
                Place {
                    x,
                    arm: draw(400.0 + 20.0 * x),
                    baseline: draw(1_000.0),
                }
            })
            .collect()
    }

    #[test]
    fn a_planted_crossing_is_found_and_covered() {
        let mut random = seeded();
        let exact = break_even(&places(0.0, &mut random)).unwrap();
        assert!((exact.value - 30.0).abs() < 1e-6, "{exact:?}");
        let mut covered = 0;
        for _ in 0..60 {
            let found = break_even(&places(0.05, &mut random)).unwrap();
            assert!((15.0..50.0).contains(&found.value), "{found:?}");
            covered += u32::from(found.interval.unwrap().contains(30.0));
        }
        assert!(covered >= 49, "{covered} of 60");
    }

    #[test]
    fn lines_that_never_cross_say_so() {
        let place = |x: f64, arm: f64| Place {
            x,
            arm: vec![arm; 3],
            baseline: vec![10.0; 3],
        };
        let below = break_even(&[place(0.0, 1.0), place(100.0, 9.0)]).unwrap();
        assert!(below.value.is_infinite() && below.value > 0.0);
        let above = break_even(&[place(0.0, 10.0), place(100.0, 20.0)]).unwrap();
        assert!(above.value.is_infinite() && above.value < 0.0);
        assert_eq!(break_even(&[place(0.0, 1.0)]), None);
    }

    #[test]
    fn the_last_of_several_crossings_counts() {
        let place = |x: f64, arm: f64| Place {
            x,
            arm: vec![arm],
            baseline: vec![10.0],
        };
        let line = [
            place(0.0, 5.0),
            place(10.0, 15.0),
            place(20.0, 8.0),
            place(30.0, 12.0),
        ];
        let found = break_even(&line).unwrap();
        assert!((found.value - 25.0).abs() < 1e-9);
        assert_eq!(found.interval, None);
    }
}
