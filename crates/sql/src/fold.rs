//! Hashing of words without regard to ASCII case, also at compile time.

const SEED: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

const fn step(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(PRIME)
}

/// FNV-1a of a text that is in upper case already.
pub(crate) const fn hash_upper(text: &[u8]) -> u32 {
    let mut hash = SEED;
    let mut index = 0;
    while index < text.len() {
        hash = step(hash, text[index]);
        index += 1;
    }
    hash ^ (hash >> 15)
}

/// The same of a text in any case.
pub(crate) fn hash_folded(text: &[u8]) -> u32 {
    let mut hash = SEED;
    for byte in text {
        hash = step(hash, byte.to_ascii_uppercase());
    }
    hash ^ (hash >> 15)
}
