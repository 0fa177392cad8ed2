//! Random numbers: from a seed, or as a fuzzer chooses them.

use std::collections::VecDeque;

/// Numbers by `SplitMix64`, behind those that were chosen.
#[derive(Debug)]
pub(super) struct Random {
    chosen: VecDeque<u8>,
    state: u64,
}

impl Random {
    /// Numbers that follow from a seed.
    #[cfg(test)]
    pub(super) fn new(seed: u64) -> Random {
        Random {
            chosen: VecDeque::new(),
            state: seed,
        }
    }

    /// Numbers that these bytes choose. When they are used up, the numbers of seed 0
    /// follow.
    pub(super) fn chosen(bytes: &[u8]) -> Random {
        Random {
            chosen: bytes.iter().copied().collect(),
            state: 0,
        }
    }

    /// Whether nothing is left of what was chosen.
    pub(super) fn is_used_up(&self) -> bool {
        self.chosen.is_empty()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which isn't 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if self.is_used_up() {
            return self.next() % bound;
        }
        // As many bytes as the bound needs.
        let bytes = (u64::BITS - (bound - 1).leading_zeros()).div_ceil(8);
        let chosen = self.chosen.len().min(bytes as usize);
        let chosen = self.chosen.drain(..chosen);
        chosen.fold(0, |number, byte| number << 8 | u64::from(byte)) % bound
    }

    /// Any byte.
    pub(super) fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or_default()
    }

    /// A place in a list of this length, which isn't 0.
    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }
}
