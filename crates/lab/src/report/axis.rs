//! Axes: how values lie on them, and which ones are written.

use super::number;

/// An axis.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// With its unit: `queries/s`.
    title: String,
    is_logarithmic: bool,
    low: f64,
    high: f64,
    /// The values that are written, ascending, and how.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to above the highest value.
    pub(super) fn from_zero(title: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let highest = values
            .into_iter()
            .filter(|value| value.is_finite())
            .fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = round_step(highest / 5.0);
        let steps = (highest * 1.02 / step).ceil();
        let mut ticks = Vec::new();
        let mut at = 0.0;
        while at <= steps {
            ticks.push((at * step, number::place(rounded(at * step))));
            at += 1.0;
        }
        Axis {
            title: title.to_owned(),
            is_logarithmic: false,
            low: 0.0,
            high: steps * step,
            ticks,
        }
    }

    /// From 0 to the highest value itself.
    pub(super) fn of_time(title: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.into_iter().collect();
        let highest = values.iter().copied().fold(0.0, f64::max);
        let mut axis = Axis::from_zero(title, values);
        if highest > 0.0 {
            axis.high = highest;
            axis.ticks.retain(|(value, _)| *value <= highest);
        }
        axis
    }

    /// From 0, or with powers of ten where the highest value is more than 30 times the lowest.
    pub(super) fn for_latencies(title: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(0.0, f64::max);
        if highest <= 30.0 * lowest || values.is_empty() {
            return Axis::from_zero(title, values);
        }
        let (first, last) = (lowest.log10().floor(), highest.log10().ceil());
        let mut ticks = Vec::new();
        let mut exponent = first;
        while exponent <= last {
            let value = 10_f64.powf(exponent);
            ticks.push((value, number::place(rounded(value))));
            exponent += 1.0;
        }
        Axis {
            title: format!("{title} (logarithmic)"),
            is_logarithmic: true,
            low: 10_f64.powf(first),
            high: 10_f64.powf(last),
            ticks,
        }
    }

    /// With these places; logarithmic where each is at least half as large again as the one before.
    pub(super) fn of_places(title: &str, unit: &str, places: &[f64]) -> Axis {
        let doubling = places
            .windows(2)
            .all(|pair| pair[0] > 0.0 && pair[1] >= 1.5 * pair[0]);
        let is_logarithmic = doubling && places.len() >= 3;
        let (first, last) = (
            places.first().copied().unwrap_or(0.0),
            places.last().copied().unwrap_or(1.0),
        );
        let (low, high) = if is_logarithmic {
            (first / 1.15, last * 1.15)
        } else {
            let room = ((last - first) * 0.04).max(if last > first { 0.0 } else { 1.0 });
            (first - room, last + room)
        };
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!(", {unit}")
        };
        Axis {
            title: format!(
                "{title}{unit}{}",
                if is_logarithmic { " (logarithmic)" } else { "" }
            ),
            is_logarithmic,
            low,
            high,
            ticks: places
                .iter()
                .map(|&place| (place, number::place(place)))
                .collect(),
        }
    }

    /// With names at 0, 1, 2 …
    pub(super) fn of_names<T: AsRef<str>>(title: &str, names: &[T]) -> Axis {
        let mut ticks = Vec::new();
        let mut at: f64 = 0.0;
        for name in names {
            ticks.push((at, name.as_ref().to_owned()));
            at += 1.0;
        }
        Axis {
            title: title.to_owned(),
            is_logarithmic: false,
            low: -0.5,
            high: (at - 0.5).max(0.5),
            ticks,
        }
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// Where a value lies, in a unit of the axis's own. Values beyond an end lie there.
    pub(super) fn position(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        if self.is_logarithmic {
            value.log10()
        } else {
            value
        }
    }

    /// The ends, as positions.
    pub(super) fn ends(&self) -> std::ops::Range<f64> {
        self.position(self.low)..self.position(self.high)
    }

    /// The positions that are written on so many pixels: those too near to the one after them,
    /// counted from the end, are left out.
    pub(super) fn positions(&self, pixels: u32, pixels_of: impl Fn(&str) -> u32) -> Vec<f64> {
        let ends = self.ends();
        let per_unit = f64::from(pixels) / (ends.end - ends.start);
        let mut kept: Vec<f64> = Vec::new();
        for (value, label) in self.ticks.iter().rev() {
            let position = self.position(*value);
            let room = kept
                .last()
                .map_or(f64::INFINITY, |next| (next - position) * per_unit);
            if room >= f64::from(pixels_of(label)) {
                kept.push(position);
            }
        }
        kept
    }

    /// What is written at a position.
    pub(super) fn label(&self, position: f64) -> String {
        let distance = |tick: &&(f64, String)| (self.position(tick.0) - position).abs();
        let nearest = self
            .ticks
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// The next of 1, 2, 5, 10, 20, 50 … that isn't smaller.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// Without the error of a sum of steps.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_begins_at_zero_with_round_steps() {
        let axis = Axis::from_zero("queries/s", [68_400.0, 12_000.0]);
        assert!(axis.ends().start.abs() < 1e-9 && (axis.ends().end - 80_000.0).abs() < 1e-6);
        assert_eq!(axis.label(40_000.0), "40,000");
        let tiny = Axis::from_zero("ms", [0.3]);
        assert_eq!(tiny.label(0.1), "0.1");
        assert!(Axis::from_zero("ms", []).ends().end > 0.0);
    }

    #[test]
    fn places_that_double_are_logarithmic() {
        let threads = Axis::of_places("threads", "", &[1.0, 2.0, 4.0, 8.0, 1_024.0]);
        assert!(threads.title().contains("logarithmic"));
        assert!((threads.position(1_000.0) - 3.0).abs() < 1e-9);
        let hits = Axis::of_places("hit ratio", "%", &[0.0, 25.0, 50.0, 100.0]);
        assert_eq!(hits.title(), "hit ratio, %");
        let one = Axis::of_places("threads", "", &[8.0]);
        assert!(one.ends().start < one.ends().end);
    }

    #[test]
    fn latencies_far_apart_are_logarithmic() {
        let wide = Axis::for_latencies("ms", [0.2, 700.0]);
        assert!((wide.ends().start - -1.0).abs() < 1e-9 && (wide.ends().end - 3.0).abs() < 1e-9);
        let near = Axis::for_latencies("ms", [20.0, 70.0]);
        assert!(near.ends().start.abs() < 1e-9);
    }

    #[test]
    fn labels_without_room_are_left_out() {
        let places: Vec<f64> = (0..=10).map(|power| 2_f64.powi(power)).collect();
        let axis = Axis::of_places("threads", "", &places);
        assert_eq!(axis.positions(1_000, |_| 40).len(), 11);
        let few = axis.positions(200, |_| 40);
        assert!((2..=5).contains(&few.len()) && few[0] > 3.0);
    }
}
