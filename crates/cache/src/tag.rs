//! What a result can depend on.

use std::collections::HashSet;

use xxhash_rust::xxh3::Xxh3Default;

/// Tags, each once. A tag is a hash already, but of values that clients choose. So a set hashes it
/// again, with a random seed.
pub type TagSet = HashSet<Tag, foldhash::fast::RandomState>;

/// Something that a result can depend on and a commit can touch, as the hash of what it names.
///
/// Two different things may share a hash; then a commit to one also drops results of the other.
/// The reverse, one thing with two hashes, would serve an old row. So a tag may be too coarse,
/// never too fine.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tag(u64);

impl Tag {
    /// A table. Names are as written, without quotes.
    ///
    /// Letter case is folded away, whatever the server's `lower_case_table_names`: where names
    /// differ only in case, two tables share a tag. Folding is per character and at least as coarse
    /// as the server's own (which maps one character to one, with the Unicode tables of its
    /// version): each character is taken to upper case, then to lower case, and where that gives
    /// several characters the first counts.
    pub fn table(schema: &str, table: &str) -> Tag {
        named(TABLE, schema, table)
    }

    /// The definition of a table: touched by whatever changes it and names it. What depends on a
    /// definition depends on [`Tag::definitions`] too. Names are as for [`Tag::table`].
    pub fn definition(schema: &str, table: &str) -> Tag {
        named(DEFINITION, schema, table)
    }

    /// The definitions of tables, views, routines and accounts as a whole: touched by a change of
    /// definitions that doesn't name the tables that it changes, and by no other.
    pub const fn definitions() -> Tag {
        Tag(DEFINITIONS)
    }

    /// Whichever definition: touched by every change of any, named or not.
    pub const fn any_definition() -> Tag {
        Tag(ANY_DEFINITION)
    }

    /// The foreign keys between tables, of the whole server: touched by a change of definitions
    /// that may add one, or change what one names.
    pub const fn relations() -> Tag {
        Tag(RELATIONS)
    }

    /// The number of its fence. A write concerns a result only if one of the fences that it raises
    /// has the number of one of the result's tags: see [`crate::TableTags::fences_of_value`].
    pub const fn fence(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The parts of a table's tag from which those of its parts are made.
    pub(crate) const fn from_halves(change: u64, fence: u64) -> Tag {
        Tag(fence & HIGH_HALF | change & !HIGH_HALF)
    }

    /// The hash, for choosing a slot: the low half chooses that of the last change, the high half
    /// that of the fence. The same in each process of one build.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The reverse of [`Tag::to_bits`].
    pub const fn from_bits(bits: u64) -> Tag {
        Tag(bits)
    }
}

/// The half that chooses the slot of the fence.
const HIGH_HALF: u64 = 0xffff_ffff << 32;

/// Before the names, so that later kinds of tags get other hashes from the same names.
const TABLE: &[u8] = b"table\0";
const DEFINITION: &[u8] = b"definition\0";

/// Arbitrary constants; a collision with another hash only costs.
const DEFINITIONS: u64 = 0x9e37_79b9_7f4a_7c15;
const ANY_DEFINITION: u64 = 0xbf58_476d_1ce4_e5b9;
const RELATIONS: u64 = 0x94d0_49bb_1331_11eb;

fn named(kind: &[u8], schema: &str, table: &str) -> Tag {
    let mut hash = Xxh3Default::new();
    hash.update(kind);
    update_folded(&mut hash, schema);
    // No identifier contains a zero byte, so the two names can't run into each other.
    hash.update(&[0]);
    update_folded(&mut hash, table);
    Tag(hash.digest())
}

fn update_folded(hash: &mut Xxh3Default, name: &str) {
    let mut buffer = [0; 4];
    for character in name.chars() {
        if character.is_ascii() {
            hash.update(&[character.to_ascii_lowercase() as u8]);
        } else {
            hash.update(fold(character).encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// `ς` and `Σ` become `σ`, the Kelvin sign becomes `k`, both Turkish i's become `i`.
fn fold(character: char) -> char {
    let mut upper = character.to_uppercase();
    let upper = match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        // `ß` has no upper case of one character, and the server doesn't change it either.
        _ => character,
    };
    upper.to_lowercase().next().unwrap_or(upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_share_a_tag() {
        let tag = Tag::table("Shop", "Orders");
        assert_eq!(tag, Tag::table("SHOP", "orders"));
        assert_eq!(Tag::table("s", "ΟΔΟΣ"), Tag::table("s", "οδοσ"));
        assert_eq!(Tag::table("s", "ΟΔΟΣ"), Tag::table("s", "οδος"));
        assert_eq!(Tag::table("s", "\u{212a}ey"), Tag::table("s", "key"));
        assert_eq!(Tag::table("s", "İzmir"), Tag::table("s", "izmir"));
        assert_eq!(Tag::table("s", "ÄÖÜ"), Tag::table("s", "äöü"));
    }

    #[test]
    fn folding_is_at_least_as_coarse_as_lower_case_of_single_characters() {
        for character in '\0'..=char::MAX {
            let lower: Vec<char> = character.to_lowercase().collect();
            assert_eq!(fold(lower[0]), fold(character), "{character:?}");
            assert_eq!(fold(fold(character)), fold(character), "{character:?}");
        }
    }

    #[test]
    fn schema_and_table_do_not_run_into_each_other() {
        assert_ne!(Tag::table("ab", "c"), Tag::table("a", "bc"));
        assert_ne!(Tag::table("a", "b"), Tag::table("b", "a"));
        assert_ne!(Tag::table("a", "b"), Tag::definitions());
    }

    #[test]
    fn a_definition_is_another_thing_than_the_rows_and_folds_names_alike() {
        assert_ne!(Tag::definition("s", "t"), Tag::table("s", "t"));
        assert_eq!(Tag::definition("S", "İT"), Tag::definition("s", "it"));
        assert_ne!(Tag::definition("s", "t"), Tag::definition("s", "u"));
    }
}
