//! The collations under which text can narrow a read.
//!
//! **Rule.** Two strings of printable ASCII that are equal under the collation have the same
//! [`folded`] form. So a literal and a row's value of that kind that are equal get the same tag.
//! Folding is coarser than most of these collations: it ignores letter case and trailing spaces
//! even where they count.
//!
//! A row's value that isn't printable ASCII can still be equal to one that is (`ä` and `a`, `ß` and
//! `ss`, characters that are ignored): its tag is *unknown*, and with it each result that this
//! column narrows first is dropped.
//!
//! Only collations stand here in which different printable ASCII strings are never equal beyond
//! case and trailing spaces: none with contractions or equal letters of their own (Czech `ch`,
//! Hungarian double consonants, Lithuanian `i` and `y`, Spanish `ll`…).
//! `crates/behaviour/tests/proof/collations.rs` asks real servers about each.

/// Endings of the names of collations of `utf8mb4` and `utf8mb3`.
const UNICODE: &[&str] = &[
    "bin",
    "nopad_bin",
    "general_ci",
    "general_nopad_ci",
    "general_mysql500_ci",
    "unicode_ci",
    "unicode_nopad_ci",
    "unicode_520_ci",
    "unicode_520_nopad_ci",
    "0900_ai_ci",
    "0900_as_ci",
    "0900_as_cs",
    "0900_bin",
    "uca1400_ai_ci",
    "uca1400_ai_cs",
    "uca1400_as_ci",
    "uca1400_as_cs",
    "uca1400_nopad_ai_ci",
    "uca1400_nopad_ai_cs",
    "uca1400_nopad_as_ci",
    "uca1400_nopad_as_cs",
];

/// The others, whole.
const OTHERS: &[&str] = &[
    "latin1_bin",
    "latin1_nopad_bin",
    "latin1_swedish_ci",
    "latin1_swedish_nopad_ci",
    "latin1_general_ci",
    "latin1_general_cs",
    "ascii_bin",
    "ascii_nopad_bin",
    "ascii_general_ci",
    "ascii_general_nopad_ci",
];

/// Whether text of this collation can narrow a read.
pub fn is_known(collation: &str) -> bool {
    let unicode = ["utf8mb4_", "utf8mb3_", "utf8_"]
        .iter()
        .find_map(|prefix| collation.strip_prefix(prefix));
    match unicode {
        Some(ending) => UNICODE.contains(&ending),
        None => OTHERS.contains(&collation),
    }
}

/// The names of all of them, for tests with real servers.
pub fn known() -> impl Iterator<Item = String> {
    let unicode = ["utf8mb4", "utf8mb3"]
        .into_iter()
        .flat_map(|set| UNICODE.iter().map(move |ending| format!("{set}_{ending}")));
    unicode.chain(OTHERS.iter().map(|name| (*name).to_owned()))
}

/// The form in which equal strings are the same, of a string that is printable ASCII; `None` of
/// others.
pub fn folded(text: &[u8]) -> Option<Vec<u8>> {
    if !text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let end = text
        .iter()
        .rposition(|byte| *byte != b' ')
        .map_or(0, |at| at + 1);
    Some(text[..end].to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_trailing_spaces_do_not_count() {
        assert_eq!(folded(b"aB c  "), Some(b"ab c".to_vec()));
        assert_eq!(folded(b"   "), Some(Vec::new()));
        assert_eq!(folded("ä".as_bytes()), None);
        assert_eq!(folded(b"a\tb"), None);
        assert_eq!(folded(b"a\0"), None);
    }

    #[test]
    fn collations_with_rules_of_their_own_are_not_known() {
        for name in [
            "utf8mb4_czech_ci",
            "utf8mb4_lithuanian_ci",
            "utf8mb4_uca1400_spanish2_ai_ci",
            "utf8mb4_hu_0900_ai_ci",
            "latin1_german2_ci",
            "latin1_danish_ci",
            "latin2_general_ci",
            "ucs2_general_ci",
            "binary",
        ] {
            assert!(!is_known(name), "{name}");
        }
        assert!(is_known("utf8mb3_general_ci") && is_known("utf8_general_ci"));
        assert!(known().all(|name| is_known(&name)));
    }
}
