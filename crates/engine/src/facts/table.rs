//! What is known of a table.

use std::sync::Arc;

use remora_cache::Tag;
use remora_sql::NameUse;

use crate::reason::TableRefusal;

/// The type of a column, as far as its values can be told apart by what the log carries of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// TINYINT (1 byte) to BIGINT (8 bytes).
    Integer {
        /// Width.
        bytes: u8,
        /// UNSIGNED, or ZEROFILL, which implies it.
        unsigned: bool,
    },
    /// DECIMAL.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// CHAR, VARCHAR and the TEXT family.
    Text {
        /// The collation's name.
        collation: Arc<str>,
        /// The character set's name.
        character_set: Arc<str>,
    },
    /// BINARY, VARBINARY and the BLOB family.
    Binary,
    /// DATE.
    Date,
    /// DATETIME; TIMESTAMP, whose text depends on the session's time zone, is
    /// [`ColumnKind::Other`].
    Datetime {
        /// Digits of a second's fraction.
        fraction: u8,
    },
    /// YEAR with four digits.
    Year,
    /// TIME, which the server completes with today's date where it compares it with a date.
    Time,
    /// JSON on MySQL before 8.0.31, which completes a TIME within it with today's date where it
    /// converts it to a date. (Measured on 5.7.22; 8.0.31 warns, and gives NULL.) JSON of other
    /// servers is [`ColumnKind::Other`] or text.
    JsonWithTimes,
    /// ENUM of which no two labels can be equal to one text. [`crate::tags::enumeration`] makes it.
    Enum {
        /// The labels, the first of number 1: printable ASCII.
        labels: Arc<[Box<str>]>,
        /// The collation's name.
        collation: Arc<str>,
    },
    /// BIT.
    Bit {
        /// Width.
        bits: u8,
    },
    /// Every other type, and what couldn't be read with certainty.
    Other,
}

impl ColumnKind {
    /// The same as [`ColumnFacts::refusal`], as far as the type goes.
    pub fn refusal(&self, used: NameUse, makes_dates: bool) -> Option<TableRefusal> {
        match self {
            ColumnKind::Time if used > NameUse::Shown => Some(TableRefusal::TimeColumns),
            ColumnKind::JsonWithTimes if used > NameUse::Shown && makes_dates => {
                Some(TableRefusal::JsonWithTimes)
            }
            _ => None,
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnFacts {
    /// Its name, as the server stores it.
    pub name: Box<str>,
    /// Its type.
    pub kind: ColumnKind,
    /// So many characters of text it can hold at least, or bytes if it is binary; `None`: it holds
    /// neither, or that isn't known.
    pub characters_max: Option<u32>,
    /// NULL is allowed.
    pub is_nullable: bool,
    /// The server gives its value where a statement doesn't.
    pub is_auto_increment: bool,
    /// A statement can change it without naming it: it is generated from others, or set to the time
    /// of an update.
    pub is_computed: bool,
    /// Where the server has its values from.
    pub values: ValueOrigin,
}

/// Where the server has the values of a column from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueOrigin {
    /// The row.
    Stored,
    /// It calculates them when they are read, from the stored columns at these places.
    Calculated(Arc<[u16]>),
    /// It calculates them when they are read, perhaps from more than the row.
    Uncertain,
}

impl ColumnFacts {
    /// A stored column with nothing special about it, which may be NULL.
    pub fn new(name: &str, kind: ColumnKind) -> ColumnFacts {
        ColumnFacts {
            name: name.into(),
            kind,
            characters_max: None,
            is_nullable: true,
            is_auto_increment: false,
            is_computed: false,
            values: ValueOrigin::Stored,
        }
    }

    /// Why a statement's result doesn't depend on rows of tables alone if it does so much with the
    /// column; `makes_dates`: it converts something to dates.
    pub fn refusal(&self, used: Option<NameUse>, makes_dates: bool) -> Option<TableRefusal> {
        let used = used?;
        if self.values == ValueOrigin::Uncertain {
            return Some(TableRefusal::VirtualColumns);
        }
        self.kind.refusal(used, makes_dates)
    }

    /// Whether there is something that a statement may not do with it.
    pub fn is_limited(&self) -> bool {
        self.refusal(Some(NameUse::Any), true).is_some()
    }
}

/// A table whose changes may change another through a foreign key that cascades.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CascadeParent {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// The tag of the whole parent.
    pub tag: Tag,
    /// Its columns that foreign keys on the way refer to, sorted: a row of it that is updated with
    /// none of them changed cascades nowhere, nor does a new row. Empty if they aren't known: then
    /// every change counts, insertions too.
    pub columns: Vec<String>,
}

/// What is known of a table.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFacts {
    /// Whether results from it can be cached.
    pub cacheable: Result<(), TableRefusal>,
    /// The tag of the whole table.
    pub tag: Tag,
    /// A write to it changes it and `cascades_to`, and nothing else: it is a table of its own (no
    /// view, no stand-in for others), and no trigger runs.
    pub writes_are_foreseeable: bool,
    /// Changes stay invisible to others until the commit (InnoDB).
    pub is_transactional: bool,
    /// It consists of partitions.
    pub is_partitioned: bool,
    /// Tables that may change with it through foreign keys, directly or through others.
    pub cascades_to: Vec<(String, String)>,
    /// Of a view: the tables and views that it reads, and the parents of those tables. What is read
    /// from it is outdated with them. Empty for a table.
    pub cascaded_from: Vec<Tag>,
    /// Tables whose changes may change it through foreign keys, directly or through others. The log
    /// need not name it then: MySQL's says nothing of cascades, and MariaDB's leaves some tables
    /// out that are reached through others.
    pub cascade_parents: Vec<CascadeParent>,
    /// The tables and views that a view reads, directly or through others, sorted; empty for a
    /// table.
    pub view_of: Vec<(String, String)>,
    /// Its columns in their order; empty if the table is refused, or a view.
    pub columns: Arc<[ColumnFacts]>,
    /// The columns' places in `columns` are their places in the log's table maps. False for tables
    /// with columns that the server hides: a functional index (MySQL), a unique key kept by hashes
    /// (MariaDB).
    pub columns_match_log: bool,
    /// The places of the primary key's columns, in the key's order; empty if there is none.
    pub key_columns: Arc<[u16]>,
    /// There are unique keys besides the primary key.
    pub has_other_unique_keys: bool,
}

impl TableFacts {
    /// Of a table whose results can't be cached, and of which nothing more needs to be known.
    pub fn refused(schema: &str, table: &str, why: TableRefusal) -> TableFacts {
        TableFacts {
            cacheable: Err(why),
            tag: Tag::table(schema, table),
            writes_are_foreseeable: false,
            is_transactional: false,
            is_partitioned: false,
            cascades_to: Vec::new(),
            cascaded_from: Vec::new(),
            cascade_parents: Vec::new(),
            view_of: Vec::new(),
            columns: Arc::default(),
            columns_match_log: false,
            key_columns: Arc::default(),
            has_other_unique_keys: true,
        }
    }
}
