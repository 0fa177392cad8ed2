//! What a statement is counted under.

const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 10;

/// A place in the table of digests, and how often it had been given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(u32);

impl Label {
    /// All digests without a place of their own.
    pub const OTHERS: Label = Label(0);
    /// How many bits a label's number takes.
    pub const BITS: u32 = INDEX_BITS + GENERATION_BITS;
    /// The most places that labels can tell apart.
    pub const PLACES_MAX: u32 = 1 << INDEX_BITS;
    /// The bits of a generation that a label keeps.
    pub const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

    /// The label of this place in this generation.
    #[inline]
    pub const fn new(index: usize, generation: u32) -> Label {
        // The index is below 2^20. The generation's low bits are enough to tell neighbours apart.
        #[allow(clippy::cast_possible_truncation)]
        let index = index as u32;
        Label((generation & Label::GENERATION_MASK) << INDEX_BITS | index)
    }

    /// As a number that a stored result can carry.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The label with this number.
    #[inline]
    pub const fn from_number(number: u32) -> Label {
        Label(number)
    }

    /// The place.
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & (Label::PLACES_MAX - 1)) as usize
    }

    /// The low bits of how often the place had been given away.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.0 >> INDEX_BITS
    }
}
