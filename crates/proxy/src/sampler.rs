//! Choosing a share of what happens.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Draws a share of the times that it is asked, at random, on one thread: no lock, no system call.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// A draw up to this is one of the share; 0: none is.
    threshold: u64,
    state: Cell<u64>,
}

impl Sampler {
    /// For a share from 0, never, to 1, always. What it draws differs from that of any other.
    pub(crate) fn new(share: f64) -> Sampler {
        // The standard library's random keys: nothing here needs to be unpredictable, only not the
        // same everywhere.
        Sampler::seeded(share, RandomState::new().build_hasher().finish())
    }

    fn seeded(share: f64, seed: u64) -> Sampler {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the conversion saturates, and a share needs no more digits"
        )]
        let threshold = (share * u64::MAX as f64) as u64;
        Sampler {
            threshold,
            state: Cell::new(seed | 1),
        }
    }

    /// Whether this one is of the share.
    #[inline]
    pub(crate) fn draws(&self) -> bool {
        self.threshold != 0 && self.draw()
    }

    fn draw(&self) -> bool {
        self.next() <= self.threshold
    }

    /// Marsaglia's xorshift with 64 bits, scrambled by a multiplication. Never 0.
    fn next(&self) -> u64 {
        let mut x = self.state.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.state.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Draws a share like [`Sampler`], by counting down to the next one: whoever asks pays for a
/// subtraction.
#[derive(Debug)]
pub(crate) struct Countdown {
    /// How often it is asked until the next is drawn, that one included; 0: none ever is.
    left: Cell<u64>,
    share: f64,
    random: Sampler,
}

impl Countdown {
    /// For a share from 0, never, to 1, always.
    pub(crate) fn new(share: f64) -> Countdown {
        let countdown = Countdown {
            left: Cell::new(0),
            share,
            random: Sampler::new(share),
        };
        if share > 0.0 {
            countdown.left.set(countdown.gap());
        }
        countdown
    }

    /// Whether this one is of the share.
    #[inline]
    pub(crate) fn draws(&self) -> bool {
        let left = self.left.get();
        if left == 0 {
            return false;
        }
        self.left.set(left - 1);
        left == 1 && self.draw()
    }

    #[cold]
    fn draw(&self) -> bool {
        self.left.set(self.gap());
        true
    }

    /// How far the next one is away, so that each has the same chance whatever came before.
    fn gap(&self) -> u64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the conversion saturates, and a gap needs no more digits"
        )]
        let misses = {
            let uniform = (self.random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            ((-uniform).ln_1p() / (-self.share).ln_1p()) as u64
        };
        misses.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_what_was_asked_for() {
        for (share, expected) in [(0.0, 0..=0), (0.01, 900..=1_100), (1.0, 100_000..=100_000)] {
            let sampler = Sampler::seeded(share, 0x5eed);
            let drawn = (0..100_000).filter(|_| sampler.draws()).count();
            assert!(expected.contains(&drawn), "{drawn} for {share}");
        }
    }

    #[test]
    fn no_two_samplers_draw_the_same() {
        let (one, other) = (Sampler::new(0.5), Sampler::new(0.5));
        assert!((0..256).any(|_| one.draws() != other.draws()));
    }

    #[test]
    fn a_countdown_draws_the_share_too() {
        for (share, expected) in [
            (0.0, 0..=0),
            (0.01, 850..=1_150),
            (0.5, 49_000..=51_000),
            (1.0, 100_000..=100_000),
        ] {
            let countdown = Countdown::new(share);
            let drawn = (0..100_000).filter(|_| countdown.draws()).count();
            assert!(expected.contains(&drawn), "{drawn} for {share}");
        }
    }
}
