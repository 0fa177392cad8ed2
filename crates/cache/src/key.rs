//! What a stored result is looked up by.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Everything but the text that a result depends on: account, schema, protocol flavour, the
/// session's result-changing settings and its transaction flags, interned to a number.
///
/// Whoever interns gives each distinct fingerprint its own number and never uses a number again.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Scope(u64);

impl Scope {
    /// The scope with this number.
    pub const fn new(number: u64) -> Scope {
        Scope(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A key to look up: a scope and the whole text, byte for byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyRef<'a> {
    /// What besides the text the result depends on.
    pub scope: Scope,
    /// The statement as the client sent it.
    pub text: &'a [u8],
}

impl KeyRef<'_> {
    /// The key's place in the store: xxh3-128 of the text, seeded with the scope. It only finds
    /// candidates. The hash is not collision-resistant, so the store compares the whole key.
    pub fn digest(&self) -> u128 {
        xxh3_128_with_seed(self.text, self.scope.0)
    }
}
