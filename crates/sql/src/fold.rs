//! Hashing of words without regard to ASCII case, also at compile time.

/// Sets the bit that tells lower from upper case in each byte. Bytes that are no letters become
/// others too, but equal ones stay equal, and a hash needs no more.
const CASE_BITS: u64 = 0x2020_2020_2020_2020;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of a word: of its length, its first and its last four bytes.
pub(crate) const fn hash_folded(word: &[u8]) -> usize {
    let length = word.len();
    let (head, tail) = if length >= 4 {
        (four_bytes(word, 0), four_bytes(word, length - 4))
    } else if length > 0 {
        // Every one of at most three bytes is the first, the middle or the last.
        let middle = (word[length / 2] as u64) << 8;
        (word[0] as u64, middle | word[length - 1] as u64)
    } else {
        (0, 0)
    };
    let head = (head | CASE_BITS) ^ (length as u64) << 32;
    let tail = (tail | CASE_BITS).rotate_left(8);
    let hash = head.wrapping_mul(MULTIPLIER) ^ tail.wrapping_mul(MULTIPLIER).rotate_left(32);
    (hash >> 40) as usize
}

const fn four_bytes(word: &[u8], from: usize) -> u64 {
    let (_, rest) = word.split_at(from);
    match rest.first_chunk::<4>() {
        Some(bytes) => u32::from_le_bytes(*bytes) as u64,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_makes_no_difference() {
        assert_eq!(
            hash_folded(b"sQl_Calc_found_ROWS"),
            hash_folded(b"SQL_CALC_FOUND_ROWS")
        );
        assert_ne!(hash_folded(b"select"), hash_folded(b"selected"));
    }
}
