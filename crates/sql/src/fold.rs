//! Hashing of words without regard to ASCII case, also at compile time.

/// Sets the bit that tells lower from upper case in each byte. Bytes that are no letters become
/// others too, but equal ones stay equal, and a hash needs no more.
const CASE_BITS: u64 = 0x2020_2020_2020_2020;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of a word: of its length, its first eight bytes and its last four.
pub(crate) const fn hash_folded(word: &[u8]) -> usize {
    let mut head = 0_u64;
    let mut index = 0;
    while index < word.len() && index < 8 {
        head = (head << 8) | word[index] as u64;
        index += 1;
    }
    let mut tail = word.len() as u64;
    let mut index = if word.len() > 8 {
        word.len() - 4
    } else {
        word.len()
    };
    while index < word.len() {
        tail = (tail << 8) | word[index] as u64;
        index += 1;
    }
    let hash = ((head | CASE_BITS) ^ (tail | CASE_BITS).rotate_left(32)).wrapping_mul(MULTIPLIER);
    (hash >> 40) as usize
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
