//! Shapes: what a kind of read asks of a table, and the tags that follow from it.
//!
//! A read of a table is *narrowed* when only rows with certain values in certain columns can matter
//! for its result: `WHERE id = 5`, `WHERE k BETWEEN 10 AND 99`. Reads that are narrowed by the same
//! columns and read the same columns have one [`Shape`]. A change of a row matters to a result of
//! that shape only if
//!
//! - the row, before or after the change, has the result's values in the shape's columns, and
//! - the row was inserted or deleted, or one of the shape's columns or of those that it reads has
//!   changed.
//!
//! To one kind of shape insertions don't matter ([`Shape::of_existing`]): the parents of cascading
//! foreign keys. A cascade follows the deletion of a parent's row, or an update of the columns that
//! the key refers to, and never an insertion; the log tells when a row made room for a new one
//! (`REPLACE`).
//!
//! # The tags of a narrowed result
//!
//! For each table:
//!
//! | tag | touched by |
//! |---|---|
//! | [`TableTags::whole`] | what can't be narrowed: definitions, `TRUNCATE`, statements logged as text, cascades |
//! | [`TableTags::column`] of the first column | a changed row whose value in a column of the shape the log doesn't tell |
//! | [`Shape::tag`] for each combination of values | a changed row with these values |
//!
//! A result that isn't narrowed and doesn't know which columns it reads has [`TableTags::any`]
//! alone, which every change of the table touches.
//!
//! # Fences
//!
//! A tag's fence slot is chosen by its other half. For [`Shape::tag`] that half is the hash of the
//! table, the shape's *first* column and its value, without the rest of the shape. So a writer that
//! changes only rows with one value of one column, and not that column, can raise fences that cover
//! every result it can concern, also those of shapes that it has never heard of, see
//! [`TableTags::fences_of_value`].

use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::tag::Tag;

/// How many columns can narrow a read together.
pub const EQUALITY_COLUMNS_MAX: usize = 4;

/// The levels of intervals: one of level `n` holds `2^n` values in a row. A range is covered by
/// intervals of one level, the least of these that needs few.
pub const INTERVAL_LEVELS: [u8; 8] = [4, 8, 12, 16, 20, 24, 28, 32];

/// A set of a table's columns, by their place in it. Columns from the 256th on are all in it as
/// soon as one is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ColumnSet {
    words: [u64; 4],
    /// One or more of those that have no bit.
    beyond: bool,
}

impl ColumnSet {
    /// None.
    pub const EMPTY: ColumnSet = ColumnSet {
        words: [0; 4],
        beyond: false,
    };

    /// All that a table can have.
    pub const ALL: ColumnSet = ColumnSet {
        words: [u64::MAX; 4],
        beyond: true,
    };

    /// Adds a column.
    pub fn insert(&mut self, column: usize) {
        match self.words.get_mut(column / 64) {
            Some(word) => *word |= 1 << (column % 64),
            None => self.beyond = true,
        }
    }

    /// Whether it has the column.
    pub fn contains(&self, column: usize) -> bool {
        self.words
            .get(column / 64)
            .map_or(self.beyond, |word| word & (1 << (column % 64)) != 0)
    }

    /// Whether the two have a column in common, or may have.
    pub fn intersects(&self, other: &ColumnSet) -> bool {
        let shared = self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0);
        shared || self.beyond && other.beyond
    }

    /// Whether it has no column.
    pub fn is_empty(&self) -> bool {
        *self == ColumnSet::EMPTY
    }

    /// The columns that have a bit, and whether there are others.
    pub fn to_words(self) -> ([u64; 4], bool) {
        (self.words, self.beyond)
    }

    /// The reverse of [`ColumnSet::to_words`].
    pub fn from_words(words: [u64; 4], beyond: bool) -> ColumnSet {
        ColumnSet { words, beyond }
    }
}

/// A value in the form in which equal values are the same, whatever way a literal or a row image
/// spells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// `NULL`.
    Null,
    /// A whole number, or what is counted by one (a day, an index).
    Integer(i128),
    /// Text folded as its collation compares it, or the canonical digits of a number.
    Bytes(&'a [u8]),
}

/// The hash of a [`Value`]. Equal values have equal hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ValueHash(u64);

impl Value<'_> {
    /// Its hash.
    pub fn hash(&self) -> ValueHash {
        ValueHash(match self {
            Value::Null => 0x6e75_6c6c,
            Value::Integer(number) => {
                let bits = number.to_le_bytes();
                let (low, high) = bits.split_at(8);
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b));
                mix(word(low) ^ 0x0069_6e74, word(high))
            }
            Value::Bytes(bytes) => xxh3_64(bytes),
        })
    }
}

/// The number of the interval of this level in which a value lies. Numbers of different levels may
/// be equal.
pub const fn interval_of(value: i128, level: u8) -> i128 {
    value >> level
}

/// A column that narrows a shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShapeColumn<C> {
    /// Its place in the table, from 0.
    pub ordinal: u16,
    /// How its values become [`Value`]s. Part of the shape: another definition of the column is
    /// another shape.
    pub codec: C,
}

/// A kind of read of one table; see the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape<C> {
    /// Of the table and all of the below. It stands first, so that comparisons mostly end with it.
    seed: u64,
    columns: Box<[ShapeColumn<C>]>,
    interval_level: Option<u8>,
    reads: ColumnSet,
    /// Insertions don't matter.
    is_of_existing: bool,
}

/// What a shape says of its table: all but the table. A shape that is made of the same parts gives
/// the same tags, in each process of one build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeParts<C> {
    /// See [`Shape::columns`].
    pub columns: Vec<ShapeColumn<C>>,
    /// See [`Shape::interval_level`].
    pub interval_level: Option<u8>,
    /// See [`Shape::reads`].
    pub reads: ColumnSet,
    /// See [`Shape::is_of_existing`].
    pub is_of_existing: bool,
}

impl<C: Clone + Eq + Hash> Shape<C> {
    /// The shape of these parts.
    pub fn of_parts(table: TableTags, parts: &ShapeParts<C>) -> Shape<C> {
        if parts.is_of_existing {
            return Shape::of_existing(table, parts.reads);
        }
        Shape::new(table, &parts.columns, parts.interval_level, parts.reads)
    }

    /// What it is made of.
    pub fn parts(&self) -> ShapeParts<C> {
        ShapeParts {
            columns: self.columns.to_vec(),
            interval_level: self.interval_level,
            reads: self.reads,
            is_of_existing: self.is_of_existing,
        }
    }

    /// A read of all rows, or of those with certain values in all of `columns`; of these the first
    /// is the one by which writers raise fences. More than [`EQUALITY_COLUMNS_MAX`] are cut off,
    /// which is coarser.
    pub fn equal(table: TableTags, columns: &[ShapeColumn<C>], reads: ColumnSet) -> Shape<C> {
        let columns = &columns[..columns.len().min(EQUALITY_COLUMNS_MAX)];
        Shape::new(table, columns, None, reads)
    }

    /// What depends on a table's rows only as far as they are deleted, or updated in one of these
    /// columns.
    pub fn of_existing(table: TableTags, columns: ColumnSet) -> Shape<C> {
        let all = Shape::new(table, &[], None, columns);
        Shape {
            is_of_existing: true,
            seed: mix(all.seed, 0x0065_7869_7374),
            ..all
        }
    }

    /// A read of the rows whose value in `column` lies in certain intervals of a level.
    pub fn interval(
        table: TableTags,
        column: ShapeColumn<C>,
        level: u8,
        reads: ColumnSet,
    ) -> Shape<C> {
        Shape::new(table, &[column], Some(level), reads)
    }

    fn new(
        table: TableTags,
        columns: &[ShapeColumn<C>],
        interval_level: Option<u8>,
        mut reads: ColumnSet,
    ) -> Shape<C> {
        for column in columns {
            reads.insert(column.ordinal.into());
        }
        let mut hasher = Xxh3Default::new();
        (table.base, columns, interval_level, reads).hash(&mut hasher);
        Shape {
            columns: columns.into(),
            interval_level,
            reads,
            is_of_existing: false,
            seed: hasher.finish(),
        }
    }

    /// The columns that narrow it; none if it reads all rows.
    pub fn columns(&self) -> &[ShapeColumn<C>] {
        &self.columns
    }

    /// The level of its intervals; `None` if single values narrow it.
    pub fn interval_level(&self) -> Option<u8> {
        self.interval_level
    }

    /// The columns whose change matters: those that are read and those that narrow it.
    pub fn reads(&self) -> &ColumnSet {
        &self.reads
    }

    /// Whether a change that inserts a row doesn't matter.
    pub fn is_of_existing(&self) -> bool {
        self.is_of_existing
    }

    /// The same, but for a read of all columns, to which insertions matter, too.
    #[must_use]
    pub fn reading_all(&self, table: TableTags) -> Shape<C> {
        Shape::new(table, &self.columns, self.interval_level, ColumnSet::ALL)
    }

    /// The tag of the rows with these values, one for each column; for intervals the value is the
    /// interval's number.
    pub fn tag(&self, table: TableTags, values: &[ValueHash]) -> Tag {
        let change = values
            .iter()
            .fold(self.seed, |seed, value| mix(seed, value.0));
        let fence = match (self.columns.first(), values.first()) {
            (Some(column), Some(value)) => match self.interval_level {
                None => table.value_fence(column.ordinal, *value),
                Some(level) => table.interval_fence(column.ordinal, level, *value),
            },
            _ if self.is_of_existing => table.existing_rows_fence(),
            _ => table.all_rows_fence(),
        };
        Tag::from_halves(change, fence)
    }
}

/// The tags of one table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableTags {
    base: u64,
}

impl TableTags {
    /// Of a table by its names; see [`Tag::table`] for how they are folded.
    pub fn new(schema: &str, table: &str) -> TableTags {
        TableTags {
            base: Tag::table(schema, table).to_bits(),
        }
    }

    /// Of the table with this tag, which [`Tag::table`] has made.
    pub const fn of(table: Tag) -> TableTags {
        TableTags {
            base: table.to_bits(),
        }
    }

    /// What its shapes are kept by.
    pub(crate) fn base(self) -> u64 {
        self.base
    }

    /// Touched by every change.
    pub const fn any(self) -> Tag {
        Tag::from_bits(self.base)
    }

    /// Touched by changes that can't be narrowed.
    pub const fn whole(self) -> Tag {
        Tag::from_bits(mix(self.base, 0x0077_686f_6c65))
    }

    /// Touched by a change of a row whose value in this column, or in another of a shape that this
    /// column is the first of, isn't known.
    pub const fn column(self, ordinal: u16) -> Tag {
        Tag::from_bits(mix(self.base, 0x636f_6c75_6d6e_0000 | ordinal as u64))
    }

    /// The same for what depends on existing rows only ([`Shape::of_existing`]): touched with
    /// [`TableTags::whole`], and fenced only by writes that a cascade can follow.
    pub const fn existing(self) -> Tag {
        Tag::from_halves(self.whole().to_bits(), self.existing_rows_fence())
    }

    /// How many [`TableTags::fences`] gives.
    pub const FENCES: usize = 3;

    /// What a write to anywhere in the table fences.
    pub const fn fences(self) -> [Tag; TableTags::FENCES] {
        [self.any(), self.whole(), self.existing()]
    }

    /// The same for a write that no cascade follows.
    pub const fn fences_without_cascades(self) -> [Tag; 2] {
        [self.any(), self.whole()]
    }

    /// Adds what a write fences that changes only rows with this value in this column, and not the
    /// column. `value` has been hashed as a shape's codec does; `number` is the value if it has
    /// intervals. `columns` is how many the table has.
    ///
    /// A result of the table is one of: not narrowed at all ([`TableTags::any`]); narrowed by
    /// columns that it reads only (the fence of all rows); narrowed by this column first, then its
    /// value's or interval's fence is raised if the row can concern it; narrowed by another column
    /// first, whose fence is raised. What depends on existing rows ([`TableTags::existing`]) is not
    /// fenced: the caller sees to it that no cascade follows the write.
    pub fn fences_of_value(
        self,
        ordinal: u16,
        value: ValueHash,
        number: Option<i128>,
        columns: u16,
        fences: &mut Vec<Tag>,
    ) {
        fences.push(self.any());
        fences.push(Tag::from_halves(0, self.all_rows_fence()));
        let others = (0..columns).filter(|other| *other != ordinal);
        fences.extend(others.map(|other| self.column(other)));
        fences.push(Tag::from_halves(0, self.value_fence(ordinal, value)));
        if let Some(number) = number {
            fences.extend(INTERVAL_LEVELS.map(|level| {
                let interval = Value::Integer(interval_of(number, level)).hash();
                Tag::from_halves(0, self.interval_fence(ordinal, level, interval))
            }));
        }
    }

    const fn value_fence(self, ordinal: u16, value: ValueHash) -> u64 {
        mix(
            mix(self.base, 0x7661_6c75_6500_0000 | ordinal as u64),
            value.0,
        )
    }

    const fn interval_fence(self, ordinal: u16, level: u8, interval: ValueHash) -> u64 {
        let place = 0x7261_6e67_6500_0000 | (level as u64) << 16 | ordinal as u64;
        mix(mix(self.base, place), interval.0)
    }

    const fn all_rows_fence(self) -> u64 {
        mix(self.base, 0x726f_7773)
    }

    const fn existing_rows_fence(self) -> u64 {
        mix(self.base, 0x6578_6973)
    }
}

/// Mixes two words into one that depends on each bit of both.
#[allow(clippy::cast_possible_truncation)]
const fn mix(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03) as u128;
    let folded = (product as u64) ^ (product >> 64) as u64;
    let product = folded as u128 * 0xa076_1d64_78bd_642f_u128;
    (product as u64) ^ (product >> 64) as u64 ^ b.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const TABLE: fn() -> TableTags = || TableTags::new("shop", "orders");

    fn column(ordinal: u16) -> ShapeColumn<u8> {
        ShapeColumn { ordinal, codec: 0 }
    }

    fn reads(columns: &[usize]) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        for column in columns {
            set.insert(*column);
        }
        set
    }

    fn number(number: i128) -> ValueHash {
        Value::Integer(number).hash()
    }

    #[test]
    fn columns_without_a_bit_count_together() {
        let few = reads(&[0, 70, 255]);
        assert!(few.contains(70) && !few.contains(71) && !few.contains(256));
        let far = reads(&[1_000]);
        assert!(far.contains(300) && !far.contains(255));
        assert!(far.intersects(&ColumnSet::ALL) && !far.intersects(&few));
        assert!(ColumnSet::ALL.intersects(&few) && !ColumnSet::ALL.intersects(&ColumnSet::EMPTY));
    }

    #[test]
    fn a_shape_comes_back_from_its_parts_with_the_same_tags() {
        let shapes = [
            Shape::equal(TABLE(), &[column(0), column(3)], reads(&[1, 400])),
            Shape::equal(TABLE(), &[], reads(&[1])),
            Shape::equal(TABLE(), &[column(0)], reads(&[1])).reading_all(TABLE()),
            Shape::interval(TABLE(), column(2), 8, reads(&[0])),
            Shape::of_existing(TABLE(), reads(&[0])),
        ];
        for shape in shapes {
            let parts = shape.parts();
            let (words, beyond) = parts.reads.to_words();
            assert_eq!(ColumnSet::from_words(words, beyond), parts.reads);
            assert_eq!(Shape::of_parts(TABLE(), &parts), shape, "the seed, too");
        }
    }

    #[test]
    fn what_narrows_a_shape_is_read_too() {
        let shape = Shape::equal(TABLE(), &[column(3)], reads(&[1]));
        assert_eq!(*shape.reads(), reads(&[1, 3]));
    }

    #[test]
    fn everything_about_a_shape_is_in_its_tags() {
        let [one, two] = [number(1), number(2)];
        let wide = reads(&[1, 2]);
        let first = Shape::equal(TABLE(), &[column(0)], reads(&[1]));
        let tags = [
            first.tag(TABLE(), &[one]),
            first.tag(TABLE(), &[two]),
            Shape::equal(TABLE(), &[column(0)], wide).tag(TABLE(), &[one]),
            Shape::equal(TABLE(), &[column(1)], wide).tag(TABLE(), &[one]),
            Shape::equal(TABLE(), &[column(0), column(1)], wide).tag(TABLE(), &[one, two]),
            Shape::equal(TABLE(), &[column(0), column(1)], wide).tag(TABLE(), &[two, one]),
            Shape::equal(TABLE(), &[column(1), column(0)], wide).tag(TABLE(), &[one, two]),
            Shape::interval(TABLE(), column(0), 4, wide).tag(TABLE(), &[one]),
            Shape::interval(TABLE(), column(0), 8, wide).tag(TABLE(), &[one]),
            Shape::<u8>::equal(TABLE(), &[], wide).tag(TABLE(), &[]),
            Shape::<u8>::of_existing(TABLE(), wide).tag(TABLE(), &[]),
            Shape::equal(
                TABLE(),
                &[ShapeColumn {
                    ordinal: 0,
                    codec: 1,
                }],
                wide,
            )
            .tag(TABLE(), &[one]),
            Shape::equal(TableTags::new("shop", "lines"), &[column(0)], wide)
                .tag(TableTags::new("shop", "lines"), &[one]),
            TABLE().any(),
            TABLE().whole(),
            TABLE().column(0),
            TABLE().column(1),
        ];
        let low: HashSet<u64> = tags.iter().map(|tag| tag.to_bits() & 0xffff_ffff).collect();
        assert_eq!(low.len(), tags.len());
    }

    #[test]
    fn the_fence_of_a_value_does_not_depend_on_what_is_read() {
        let high = |tag: Tag| tag.to_bits() >> 32;
        let narrow = Shape::equal(TABLE(), &[column(0)], reads(&[1]));
        let wide = Shape::equal(TABLE(), &[column(0), column(5)], ColumnSet::ALL);
        let [one, two] = [number(1), number(2)];
        assert_eq!(
            high(narrow.tag(TABLE(), &[one])),
            high(wide.tag(TABLE(), &[one, two]))
        );
        assert_ne!(
            high(narrow.tag(TABLE(), &[one])),
            high(narrow.tag(TABLE(), &[two]))
        );
    }

    /// Each kind of result that row 7 of column 0 can concern has one of the fences that a write to
    /// it raises.
    #[test]
    fn a_write_to_a_row_fences_every_result_that_it_can_concern() {
        let high = |tag: Tag| tag.to_bits() >> 32;
        let mut fences = Vec::new();
        TABLE().fences_of_value(0, number(7), Some(7), 3, &mut fences);
        let raised: HashSet<u64> = fences.into_iter().map(high).collect();
        let is_fenced = |tags: &[Tag]| tags.iter().any(|tag| raised.contains(&high(*tag)));
        let results = |shape: &Shape<u8>, values: &[ValueHash]| {
            let first = shape.columns().first();
            let mut tags = vec![TABLE().whole(), shape.tag(TABLE(), values)];
            tags.extend(first.map(|column| TABLE().column(column.ordinal)));
            tags
        };
        let all = ColumnSet::ALL;
        assert!(is_fenced(&[TABLE().any()]));
        assert!(is_fenced(&results(&Shape::equal(TABLE(), &[], all), &[])));
        let by_key = Shape::equal(TABLE(), &[column(0)], all);
        assert!(is_fenced(&results(&by_key, &[number(7)])));
        assert!(!is_fenced(&results(&by_key, &[number(8)])));
        let by_another = Shape::equal(TABLE(), &[column(2)], all);
        assert!(is_fenced(&results(&by_another, &[number(8)])));
        let by_both = Shape::equal(TABLE(), &[column(2), column(0)], all);
        assert!(is_fenced(&results(&by_both, &[number(8), number(9)])));
        for level in INTERVAL_LEVELS {
            let by_range = Shape::interval(TABLE(), column(0), level, all);
            let interval = |value| number(interval_of(value, level));
            assert!(is_fenced(&results(&by_range, &[interval(7)])));
            assert!(!is_fenced(&results(
                &by_range,
                &[interval(7 + (1 << level))]
            )));
            let of_another = Shape::interval(TABLE(), column(1), level, all);
            assert!(is_fenced(&results(&of_another, &[interval(1 << 40)])));
        }
    }

    #[test]
    fn what_depends_on_existing_rows_is_fenced_by_what_a_cascade_can_follow() {
        let high = |tag: Tag| tag.to_bits() >> 32;
        let low = |tag: Tag| tag.to_bits() & 0xffff_ffff;
        let existing = Shape::<u8>::of_existing(TABLE(), reads(&[0]));
        let tags = [existing.tag(TABLE(), &[]), TABLE().existing()].map(high);
        let is_fenced = |fences: &[Tag]| fences.iter().any(|fence| tags.contains(&high(*fence)));
        assert!(is_fenced(&TABLE().fences()));
        assert!(!is_fenced(&TABLE().fences_without_cascades()));
        let mut of_value = Vec::new();
        TABLE().fences_of_value(0, number(7), Some(7), 4, &mut of_value);
        assert!(!is_fenced(&of_value));
        assert_eq!(
            low(TABLE().existing()),
            low(TABLE().whole()),
            "touched alike"
        );
    }

    #[test]
    fn intervals_of_negative_numbers_do_not_meet_those_of_positive_ones() {
        assert_eq!(interval_of(-1, 4), -1);
        assert_eq!(interval_of(0, 4), 0);
        assert_eq!(interval_of(-16, 4), -1);
        assert_eq!(interval_of(-17, 4), -2);
    }
}
