//! What a stored result is looked up by.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Everything but the text that a result depends on: account, schema, protocol flavour, the
/// session's result-changing settings and its transaction flags, interned to a number.
///
/// Whoever interns gives each distinct fingerprint its own number and never uses a number again.
/// The number has 40 bits, so that an entry's header stays small: with a thousand new scopes every
/// second they last for 34 years.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Scope(u64);

impl Scope {
    /// Bits of a scope's number.
    pub const BITS: u32 = 40;

    /// The scope with this number. `None` if it is too large, which is to be treated as a scope
    /// that can't be told apart from others: nothing may be looked up or stored in it.
    pub const fn new(number: u64) -> Option<Scope> {
        if number >> Self::BITS != 0 {
            return None;
        }
        Some(Scope(number))
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The number in two parts: 32 bits and 8 bits.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) const fn parts(self) -> (u32, u8) {
        (self.0 as u32, (self.0 >> u32::BITS) as u8)
    }

    /// The reverse of [`Scope::parts`].
    #[inline]
    pub(crate) const fn from_parts(low: u32, high: u8) -> Scope {
        Scope((high as u64) << u32::BITS | low as u64)
    }
}

/// A key to look up: a scope and the whole text, byte for byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyRef<'a> {
    /// What besides the text the result depends on.
    pub scope: Scope,
    /// The statement as the client sent it, or what stands for all texts that surely have its
    /// result.
    pub text: &'a [u8],
}

impl KeyRef<'_> {
    /// The key's place in the store: xxh3-128 of the text, seeded with the scope. It only finds
    /// candidates. The hash is not collision-resistant, so the store compares the whole key.
    pub fn digest(&self) -> u128 {
        xxh3_128_with_seed(self.text, self.scope.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_comes_back_from_its_parts_and_has_40_bits() {
        for number in [0, 1, u64::from(u32::MAX), 1 << 32, (1 << Scope::BITS) - 1] {
            let scope = Scope::new(number).unwrap();
            let (low, high) = scope.parts();
            assert_eq!(Scope::from_parts(low, high), scope);
        }
        assert_eq!(Scope::new(1 << Scope::BITS), None);
        assert_eq!(Scope::new(u64::MAX), None);
    }
}
