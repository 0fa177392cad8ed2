//! Numbers by reason.

use std::marker::PhantomData;

use crate::reason::{EvictionReason, InvalidationReason};

/// A reason that is counted.
pub trait Countable: Copy {
    /// Its place in the order of declaration.
    fn index(self) -> usize;
}

impl Countable for EvictionReason {
    fn index(self) -> usize {
        self as usize
    }
}

impl Countable for InvalidationReason {
    fn index(self) -> usize {
        self as usize
    }
}

const REASONS_MAX: usize = 6;
const _: () = assert!(EvictionReason::ALL.len() <= REASONS_MAX);
const _: () = assert!(InvalidationReason::ALL.len() <= REASONS_MAX);

/// A number for each reason `R`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Counts<R> {
    numbers: [u64; REASONS_MAX],
    reason: PhantomData<R>,
}

impl<R> Default for Counts<R> {
    fn default() -> Self {
        Counts {
            numbers: [0; REASONS_MAX],
            reason: PhantomData,
        }
    }
}

impl<R: Countable> Counts<R> {
    /// How many for this reason.
    pub fn of(&self, reason: R) -> u64 {
        self.numbers[reason.index()]
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.numbers.iter().sum()
    }

    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: &Counts<R>) {
        for (sum, number) in self.numbers.iter_mut().zip(other.numbers) {
            *sum += number;
        }
    }

    pub(crate) fn count(&mut self, reason: R) {
        self.numbers[reason.index()] += 1;
    }
}
