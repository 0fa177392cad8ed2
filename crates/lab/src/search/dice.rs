//! Choosing by chance, so that a seed repeats each choice.

use remora_testkit::load::Random;

/// Random choices of a seed.
#[derive(Debug, Clone)]
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(Random::new(seed))
    }

    /// True in so many of a hundred cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.0.below(100) < percent
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn number(&mut self, low: usize, high: usize) -> usize {
        low + self.0.below(high.saturating_sub(low) + 1)
    }

    /// An index below a length, which must not be 0.
    pub(super) fn index(&mut self, length: usize) -> usize {
        self.0.below(length)
    }

    /// One of a slice, which must not be empty.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.0.below(from.len())]
    }

    /// The same of words.
    pub(super) fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.index(from.len())]
    }

    /// One of what comes with weights, of which one must be more than 0.
    pub(super) fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let total = from.iter().map(|(weight, _)| weight).sum();
        let mut at = self.0.below(total);
        for &(weight, value) in from {
            if at < weight {
                return value;
            }
            at -= weight;
        }
        from[0].1
    }

    /// A few different indices below a length, in their order; at least one.
    pub(super) fn some_of(&mut self, length: usize) -> Vec<usize> {
        let first = self.index(length);
        (0..length)
            .filter(|&at| at == first || self.chance(40))
            .collect()
    }

    /// A seed for a part of its own.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.next()
    }
}
