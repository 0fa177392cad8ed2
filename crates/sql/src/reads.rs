//! Which rows and columns a statement reads or changes, as far as its text says it with certainty.
//!
//! Nothing here knows a table's definition. Whether a column is one of a source's, whether its type
//! compares with a constant exactly and what a bound value is, is the caller's to say; what isn't
//! said here counts as every row and every column.

use std::collections::HashMap;

use crate::name::TableName;

/// How many conditions with constants are kept of one `WHERE` or `ON`. More say nothing.
pub const CONDITIONS_MAX: usize = 64;

/// How many equalities between columns are kept of one block, and of one `WHERE` or `ON`.
pub const EQUALITIES_MAX: usize = 32;

/// How many constants one condition may list. With more it is none.
pub const CONSTANTS_MAX: usize = 256;

/// How many bytes a string may have to count as a constant.
pub const CONSTANT_BYTES_MAX: usize = 1024;

/// How many rows an `INSERT` may have for [`WrittenRows::Values`].
pub const WRITTEN_ROWS_MAX: usize = 64;

/// What is read of the tables, block by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// One for each `SELECT` in the statement: operands of set operations, derived tables, common
    /// table expressions and subqueries have their own. An outer one stands before those inside it.
    pub blocks: Vec<Block>,
    /// Every name that can mean a column anywhere in the statement.
    pub names: ColumnNames,
    /// Names can't be trusted: every column of every table counts as read.
    pub all_columns: bool,
    /// Something in the statement may be converted to a date: a function of dates, `CAST … AS DATE`
    /// or `INTERVAL` stands in it. MySQL before 8.0.31 completes a `TIME` within JSON with today's
    /// date there.
    pub makes_dates: bool,
}

impl Reads {
    /// How much memory the constants take that columns are compared with, bytes.
    pub fn constants_bytes(&self) -> usize {
        let conditions = self.blocks.iter().flat_map(|block| &block.conditions);
        conditions.map(Condition::constants_bytes).sum()
    }
}

/// One `SELECT … FROM …`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The tables in its `FROM`, in the order of their appearance.
    pub sources: Vec<Source>,
    /// What every row of a source must satisfy to matter for the block's result.
    pub conditions: Vec<Condition>,
}

/// A table, a derived table or a common table expression in a block's `FROM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Index into [`crate::Select::tables`]; `None` for a derived table or a common table
    /// expression.
    pub table: Option<usize>,
    /// Its alias, else the table's name, as written but without quotes. Empty for a derived table
    /// without alias.
    pub name: String,
    /// The schema as written, only if there is no alias.
    pub schema: Option<String>,
    /// What is done with every column of it, if each counts as read: by `*`, `alias.*`,
    /// `NATURAL JOIN` or `PARTITION (…)`.
    pub reads_all: Option<NameUse>,
}

/// What a statement does with a column's value.
///
/// The server completes a `TIME` with today's date where it compares or converts it. Only a `TIME`
/// that is just shown leaves the result to the rows alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameUse {
    /// The client gets it as it is, or rows are sorted or grouped by it. Also the columns that `*`
    /// means in an `EXISTS`. Never in a statement with `WITH` or set operations.
    Shown,
    /// Anything.
    Any,
}

/// A conjunct of a `WHERE` or `ON`: a row of the named column's table that doesn't satisfy it makes
/// no difference to the block's result, whether the row is there or not.
///
/// This holds under outer joins too. Adding a row of the source X to a join adds or removes only
/// tuples in which X is that row or is NULL-extended. (By induction: a product keeps the tuple's X;
/// an outer join with X on its inner side matches or NULL-extends.) A conjunct
/// `X.column = constant` is TRUE for neither, because the row fails it and NULL satisfies no such
/// test; so behind the filter nothing has changed. An `ON` filters what its join combines, but
/// keeps the rows of an outer join's preserved side: there it says nothing. And a test that NULL
/// satisfies ([`Test::IsNull`]) is given only in blocks without any outer join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column as written.
    pub column: ColumnName,
    /// The sources that the condition restricts if the column is theirs. If it is another's (an
    /// outer block's, the preserved side's of an outer join), the condition says nothing.
    pub restricts: SourceSet,
    /// The sources that names can mean where it stands: all of the block's in a `WHERE`, in an `ON`
    /// those that the join combines. A name of another source means an outer block's column there,
    /// on servers that look for one.
    pub scope: SourceSet,
    /// What the column's value must satisfy.
    pub test: Test,
}

impl Condition {
    fn constants_bytes(&self) -> usize {
        match &self.test {
            Test::In(constants) => constants.iter().map(Constant::bytes).sum(),
            Test::Range { from, to } => {
                let bounds = from.iter().chain(to);
                bounds.map(|bound| bound.value.bytes()).sum()
            }
            Test::Column(other) => other.bytes(),
            Test::IsNull => 0,
        }
    }
}

/// A column as written: without quotes, case kept, ASCII only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    /// The schema, if one is written.
    pub schema: Option<String>,
    /// The table or its alias, if one is written.
    pub table: Option<String>,
    /// The column.
    pub column: String,
}

impl ColumnName {
    fn bytes(&self) -> usize {
        let optional = [&self.schema, &self.table].into_iter().flatten();
        let parts = optional.chain([&self.column]);
        parts.map(String::len).sum()
    }
}

/// A set of sources of one block, by their indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceSet(pub u64);

impl SourceSet {
    /// How many sources a block may have for its conditions to be given.
    pub const SOURCES_MAX: usize = 64;

    /// The sources with indices in `from..to`. Indices from [`Self::SOURCES_MAX`] on are left out.
    pub fn range(from: usize, to: usize) -> SourceSet {
        let below = |index: usize| match 1_u64.checked_shl(u32::try_from(index).unwrap_or(64)) {
            Some(bit) => bit - 1,
            None => u64::MAX,
        };
        SourceSet(below(to) & !below(from))
    }

    /// Whether the source with this index is in it.
    pub fn contains(self, index: usize) -> bool {
        index < Self::SOURCES_MAX && self.0 >> index & 1 == 1
    }

    /// Whether no source is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a column's value is tested for. NULL satisfies only [`Test::IsNull`].
///
/// The constants, and the other column, are compared as the server compares them: by the column's
/// type, its collation, and the types of all the constants together. It is the caller's to know for
/// which types that is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// It equals one of these, in no particular order: `=`, `<=>` with a literal, `IN (…)`, or an
    /// `OR` of those on one and the same column. A bound NULL equals nothing. Never empty.
    In(Vec<Constant>),
    /// It lies between the bounds, of which at least one is there. They can be reversed: then
    /// nothing does.
    Range {
        /// The lower bound.
        from: Option<Bound>,
        /// The upper bound.
        to: Option<Bound>,
    },
    /// It equals this column: `=`. The two are of the same row of a join if both are in the
    /// condition's scope; the condition restricts the sources of both alike.
    Column(ColumnName),
    /// `IS NULL`.
    ///
    /// Of a column that is declared NOT NULL it says nothing: `'0000-00-00'` satisfies it there,
    /// and under `sql_auto_is_null` it can mean the last inserted row.
    IsNull,
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The value at the end.
    pub value: Constant,
    /// Whether the value itself is inside.
    pub inclusive: bool,
}

/// A constant in a statement's text, exactly as the server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// An integer from -2^63 to 2^64 - 1, also with a sign, in parentheses, or as a sum, difference
    /// or product in which every step fits into a signed integer of 64 bits.
    Integer(i128),
    /// A decimal literal without exponent: digits, at most one point with digits on both sides, and
    /// before them a `-` if it is negated an odd number of times (also `-0.0`).
    Decimal(String),
    /// A string literal without introducer, in the connection's character set: escapes and doubled
    /// quotes undone, adjacent ones joined.
    Text(Vec<u8>),
    /// The n-th `?` of the whole statement, counted from 0.
    Parameter(usize),
}

impl Constant {
    fn bytes(&self) -> usize {
        let apart = match self {
            Constant::Integer(_) | Constant::Parameter(_) => 0,
            Constant::Decimal(digits) => digits.len(),
            Constant::Text(text) => text.len(),
        };
        size_of::<Constant>() + apart
    }
}

/// A set of names of columns, in ASCII lower case.
///
/// The names lie behind one another in one buffer: a NUL can't be in a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    text: String,
    count: usize,
    /// Bits of the names' hashes: a name with an unset one isn't there.
    seen: [u64; 4],
    /// Bits of the first names, by their number, that are more than shown. Those for which there is
    /// no bit count as used in any way.
    used: u64,
    /// The numbers of the names, once there are more than [`LISTED_NAMES_MAX`].
    numbers: Option<HashMap<String, usize>>,
}

/// A name that has just been noted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    at: usize,
    /// More was done with it before than to show it.
    was_used: bool,
}

const END_OF_NAME: char = '\0';
/// Enough for a short statement, so that most need one allocation.
const NAMES_BYTES: usize = 48;
/// So many names are looked for one by one. A text of some hundred KiB can have tens of thousands.
const LISTED_NAMES_MAX: usize = 64;

impl ColumnNames {
    /// Whether a name is there, in any ASCII case.
    pub fn contains(&self, name: &str) -> bool {
        self.number_of(Self::place(name), name).is_some()
    }

    /// What is done with what a name, in any ASCII case, can mean; `None` if it isn't there.
    pub fn use_of(&self, name: &str) -> Option<NameUse> {
        let at = self.number_of(Self::place(name), name)?;
        let is_used = Self::bit(at).is_none_or(|bit| self.used & bit != 0);
        Some(if is_used {
            NameUse::Any
        } else {
            NameUse::Shown
        })
    }

    fn number_of(&self, (word, bit): (usize, u64), name: &str) -> Option<usize> {
        if self.seen[word] & bit == 0 {
            return None;
        }
        if let Some(numbers) = &self.numbers {
            return numbers.get(&name.to_ascii_lowercase()).copied();
        }
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        self.iter().position(is_it)
    }

    /// `None`: there is no bit for it.
    fn bit(at: usize) -> Option<u64> {
        1_u64.checked_shl(u32::try_from(at).ok()?)
    }

    /// The names, each once.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split_terminator(END_OF_NAME)
    }

    /// Whether no name is there.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds a name, if it isn't there: as one with which anything is done.
    pub(crate) fn add(&mut self, name: &str) -> Noted {
        let place = Self::place(name);
        let known = self.number_of(place, name);
        let at = known.unwrap_or_else(|| self.push(place, name));
        let bit = Self::bit(at).unwrap_or(0);
        let was_used = self.used & bit != 0;
        self.used |= bit;
        Noted { at, was_used }
    }

    /// What has just been noted is only shown there.
    pub(crate) fn only_shown(&mut self, noted: Noted) {
        if !noted.was_used {
            self.used &= !Self::bit(noted.at).unwrap_or(0);
        }
    }

    /// Anything is done with all of them.
    pub(crate) fn use_all(&mut self) {
        self.used = u64::MAX;
    }

    fn push(&mut self, (word, bit): (usize, u64), name: &str) -> usize {
        self.seen[word] |= bit;
        if self.text.is_empty() {
            self.text.reserve(NAMES_BYTES);
        }
        let start = self.text.len();
        self.text.push_str(name);
        self.text[start..].make_ascii_lowercase();
        if let Some(numbers) = &mut self.numbers {
            numbers.insert(self.text[start..].to_owned(), self.count);
        }
        self.text.push(END_OF_NAME);
        self.count += 1;
        if self.count == LISTED_NAMES_MAX {
            let names = self.iter().map(str::to_owned);
            self.numbers = Some(names.zip(0..).collect());
        }
        self.count - 1
    }

    fn place(name: &str) -> (usize, u64) {
        let hash = crate::fold::hash_folded(name.as_bytes());
        (hash >> 6 & 3, 1 << (hash & 63))
    }
}

/// A write to one table of which the text says which rows it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowedWrite {
    /// The table (or view) as written.
    pub table: TableName,
    /// The rows.
    pub rows: WrittenRows,
    /// The columns that an `UPDATE` assigns, in ASCII lower case, as often as it does; empty for
    /// other statements. Others can change with them: generated ones, those with
    /// `ON UPDATE CURRENT_TIMESTAMP`, and what triggers assign.
    pub assigned: Vec<String>,
}

impl NarrowedWrite {
    /// Whether it only inserts rows: it changes and deletes none.
    pub fn only_inserts(&self) -> bool {
        matches!(self.rows, WrittenRows::Values { .. })
    }

    /// How much memory its constants and the names of its columns take, bytes.
    pub fn constants_bytes(&self) -> usize {
        let names = |names: &[String]| -> usize {
            let bytes = |name: &String| size_of::<String>() + name.len();
            names.iter().map(bytes).sum()
        };
        let rows = match &self.rows {
            WrittenRows::Where(conditions) => conditions
                .iter()
                .map(|one| size_of::<Condition>() + one.constants_bytes())
                .sum(),
            WrittenRows::Values { columns, rows } => {
                let value = |value: &Option<Constant>| {
                    let bytes = value.as_ref().map(Constant::bytes);
                    bytes.unwrap_or(size_of::<Option<Constant>>())
                };
                let values: usize = rows.iter().flatten().map(value).sum();
                values + columns.as_deref().map_or(0, names)
            }
        };
        rows + names(&self.assigned)
    }
}

/// The rows that a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenRows {
    /// `UPDATE`, `DELETE`: only rows that satisfy all of these conditions. Their columns are those
    /// of the written table, whatever it is called there.
    Where(Vec<Condition>),
    /// `INSERT`: these rows and nothing else.
    ///
    /// What is stored can be another value than the constant: it is converted to the column's type,
    /// and cut or clamped without strict mode or with `IGNORE`.
    Values {
        /// The columns, in ASCII lower case; `None` if all are meant, in the table's order.
        columns: Option<Vec<String>>,
        /// Of each row its values, of which `None` is no plain constant. An empty row has default
        /// values only.
        rows: Vec<Vec<Option<Constant>>>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_sources_holds_exactly_its_indices() {
        for (from, to) in [
            (0, 0),
            (0, 1),
            (1, 3),
            (63, 64),
            (0, 64),
            (5, 5),
            (60, 70),
            (64, 70),
        ] {
            let set = SourceSet::range(from, to);
            for index in 0..80 {
                let expected = (from..to).contains(&index) && index < SourceSet::SOURCES_MAX;
                assert_eq!(set.contains(index), expected, "{from}..{to} {index}");
            }
            assert_eq!(set.is_empty(), from >= to || from >= 64);
        }
    }

    #[test]
    fn constants_are_counted_wherever_they_stand() {
        let text = |bytes: usize| Constant::Text(vec![b'x'; bytes]);
        let condition = |test| Condition {
            column: ColumnName {
                schema: None,
                table: None,
                column: "a".to_owned(),
            },
            restricts: SourceSet::range(0, 1),
            scope: SourceSet::range(0, 1),
            test,
        };
        let bound = |value| {
            Some(Bound {
                value,
                inclusive: true,
            })
        };
        let conditions = vec![
            condition(Test::In(vec![text(1_000), Constant::Integer(1)])),
            condition(Test::Range {
                from: bound(text(2_000)),
                to: None,
            }),
            condition(Test::IsNull),
        ];
        let reads = Reads {
            blocks: vec![Block {
                conditions: conditions.clone(),
                ..Block::default()
            }],
            ..Reads::default()
        };
        let counted = reads.constants_bytes();
        assert!((3_000..4_000).contains(&counted), "{counted}");
        let write = |rows, assigned: &[&str]| NarrowedWrite {
            table: TableName {
                schema: None,
                table: "t".to_owned(),
            },
            rows,
            assigned: assigned.iter().map(|name| (*name).to_owned()).collect(),
        };
        let counted = write(WrittenRows::Where(conditions), &["column"]).constants_bytes();
        assert!((3_000..4_000).contains(&counted), "{counted}");
        let rows = WrittenRows::Values {
            columns: Some(vec!["c".repeat(100)]),
            rows: vec![
                vec![Some(text(1_000)), None],
                vec![Some(Constant::Decimal("1".repeat(50)))],
            ],
        };
        let counted = write(rows, &[]).constants_bytes();
        assert!((1_150..1_500).contains(&counted), "{counted}");
    }

    #[test]
    fn names_are_kept_once_in_lower_case() {
        let mut names = ColumnNames::default();
        let many: Vec<String> = (0..300).map(|number| format!("Column{number}")).collect();
        for name in many.iter().chain(&many) {
            names.add(name);
            names.add(&name.to_ascii_uppercase());
        }
        let expected: Vec<String> = many.iter().map(|name| name.to_ascii_lowercase()).collect();
        assert_eq!(names.iter().collect::<Vec<_>>(), expected);
        assert!(names.contains("COLUMN299") && !names.contains("column300"));
        assert!(!names.contains("column") && !names.contains(""));
    }
}
