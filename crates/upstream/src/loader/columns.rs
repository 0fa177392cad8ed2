//! Columns and keys, from the rows of `information_schema.COLUMNS` and `STATISTICS`.

use std::collections::HashSet;
use std::sync::Arc;

use remora_engine::facts::{ColumnFacts, ColumnKind, ValueOrigin};
use remora_engine::tags::enumeration;
use remora_sql::Natives;
use remora_wire::rows::Row;

use crate::client::text;

/// The longest text of a column's type that is read, characters, as [`COLUMN_FIELDS`] cuts it. An
/// ENUM of more counts as unknown.
const COLUMN_TYPE_CHARS_MAX: usize = 8_192;
/// Strings and lists that are held once; beyond it the interner begins anew.
const INTERNED_MAX: usize = 4_096;

/// What is asked for of a column, in the order in which [`column`] reads it. Before them stand the
/// schema and the table, and the ordinal.
pub(super) const COLUMN_FIELDS: &str = "COLUMN_NAME, LOWER(DATA_TYPE), LEFT(COLUMN_TYPE, 8192), IS_NULLABLE, EXTRA, \
     NUMERIC_PRECISION, NUMERIC_SCALE, CHARACTER_SET_NAME, COLLATION_NAME, ORDINAL_POSITION";

/// Keeps one copy of what many tables have in common: names of collations, and whole lists of
/// columns.
#[derive(Debug, Default)]
pub(super) struct Interner {
    names: HashSet<Arc<str>>,
    columns: HashSet<Arc<[ColumnFacts]>>,
    keys: HashSet<Arc<[u16]>>,
}

fn intern<T: ?Sized + Eq + std::hash::Hash>(set: &mut HashSet<Arc<T>>, value: Arc<T>) -> Arc<T> {
    if let Some(known) = set.get(&value) {
        return Arc::clone(known);
    }
    if set.len() >= INTERNED_MAX {
        set.clear();
    }
    set.insert(Arc::clone(&value));
    value
}

impl Interner {
    fn name(&mut self, name: &str) -> Arc<str> {
        match self.names.get(name) {
            Some(known) => Arc::clone(known),
            None => intern(&mut self.names, name.into()),
        }
    }

    pub(super) fn columns(&mut self, columns: Vec<ColumnFacts>) -> Arc<[ColumnFacts]> {
        intern(&mut self.columns, columns.into())
    }

    pub(super) fn key(&mut self, key: Vec<u16>) -> Arc<[u16]> {
        intern(&mut self.keys, key.into())
    }
}

/// A column as `information_schema` describes it.
#[derive(Debug)]
pub(super) struct LoadedColumn {
    pub(super) facts: ColumnFacts,
    pub(super) ordinal: u32,
    /// Its type without lengths, in lower case.
    pub(super) data_type: Box<str>,
    /// The expression of a virtual column, if it is known.
    pub(super) expression: Option<Box<str>>,
}

impl LoadedColumn {
    /// It is calculated when it is read.
    pub(super) fn is_virtual(&self) -> bool {
        self.facts.values != ValueOrigin::Stored
    }

    /// Its values are texts, numbers or JSON: not bytes, not moments.
    pub(super) fn holds_text_or_numbers(&self) -> bool {
        const TYPES: [&str; 15] = [
            "tinyint",
            "smallint",
            "mediumint",
            "int",
            "bigint",
            "decimal",
            "float",
            "double",
            "char",
            "varchar",
            "tinytext",
            "text",
            "mediumtext",
            "longtext",
            "json",
        ];
        TYPES.contains(&&*self.data_type)
    }

    /// What its values are to a statement depends on the date or on the time zone.
    pub(super) fn is_time_or_timestamp(&self) -> bool {
        matches!(&*self.data_type, "time" | "timestamp")
    }
}

/// Reads a row whose fields from `at` on are [`COLUMN_FIELDS`]. `None` if one of them can't be
/// read.
pub(super) fn column(
    row: &Row,
    at: usize,
    natives: Natives,
    interner: &mut Interner,
) -> Option<LoadedColumn> {
    let name = text(row, at)?;
    let data_type = text(row, at + 1)?;
    let extra = text(row, at + 4)?.to_ascii_uppercase();
    let column_type = Typed {
        data_type,
        // A type that isn't UTF-8 is no type that is told apart.
        column_type: text(row, at + 2).unwrap_or_default(),
        precision: text(row, at + 5).and_then(|digits| digits.parse().ok()),
        scale: text(row, at + 6).and_then(|digits| digits.parse().ok()),
        character_set: text(row, at + 7),
        collation: text(row, at + 8),
    };
    Some(LoadedColumn {
        facts: ColumnFacts {
            name: name.into(),
            kind: match data_type {
                // However it is stored.
                "time" => ColumnKind::Time,
                // MariaDB has no such type.
                "json" if natives != Natives::MySql80 => ColumnKind::JsonWithTimes,
                _ => column_type.kind(interner).unwrap_or(ColumnKind::Other),
            },
            characters_max: column_type.characters_max(),
            is_nullable: text(row, at + 3) != Some("NO"),
            is_auto_increment: extra.contains("AUTO_INCREMENT"),
            // MySQL's `DEFAULT_GENERATED`, an expression as the default, is taken for one too.
            is_computed: ["GENERATED", "PERSISTENT", "ON UPDATE"]
                .iter()
                .any(|word| extra.contains(word)),
            values: if extra.contains("VIRTUAL") {
                ValueOrigin::Uncertain
            } else {
                ValueOrigin::Stored
            },
        },
        ordinal: text(row, at + 9)?.parse().ok()?,
        data_type: data_type.into(),
        expression: None,
    })
}

/// The columns in their order; the flag is false if their ordinals have gaps.
pub(super) fn in_order(mut columns: Vec<LoadedColumn>) -> (Vec<LoadedColumn>, bool) {
    columns.sort_by_key(|column| column.ordinal);
    let is_dense = (1..).zip(&columns).all(|(at, column)| column.ordinal == at);
    (columns, is_dense)
}

/// What the server says of a column's type.
struct Typed<'a> {
    data_type: &'a str,
    column_type: &'a str,
    precision: Option<u8>,
    scale: Option<u8>,
    character_set: Option<&'a str>,
    collation: Option<&'a str>,
}

impl Typed<'_> {
    fn kind(&self, interner: &mut Interner) -> Option<ColumnKind> {
        // MariaDB marks what is stored in another way: `/*M!100301 COMPRESSED*/`,
        // `/* mariadb-5.3 */`. An ENUM's labels may hold such text; then it is only not told apart.
        if self.column_type.is_empty() || self.column_type.contains("/*") {
            return None;
        }
        let integer = |bytes| {
            let attributes = self.column_type.to_ascii_lowercase();
            let unsigned = attributes.contains("unsigned") || attributes.contains("zerofill");
            Some(ColumnKind::Integer { bytes, unsigned })
        };
        match self.data_type {
            "tinyint" => integer(1),
            "smallint" => integer(2),
            "mediumint" => integer(3),
            "int" => integer(4),
            "bigint" => integer(8),
            "decimal" => Some(ColumnKind::Decimal {
                precision: self.precision?,
                scale: self.scale?,
            }),
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                Some(ColumnKind::Text {
                    collation: interner.name(self.collation?),
                    character_set: interner.name(self.character_set?),
                })
            }
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                Some(ColumnKind::Binary)
            }
            "date" => Some(ColumnKind::Date),
            "datetime" => Some(ColumnKind::Datetime {
                fraction: in_parentheses(self.column_type).map_or(Some(0), |n| n.parse().ok())?,
            }),
            // MySQL 5.6 has YEAR(2) too.
            "year" if matches!(self.column_type, "year" | "year(4)") => Some(ColumnKind::Year),
            "enum" => {
                let labels = enum_labels(self.column_type)?;
                enumeration(labels, interner.name(self.collation?))
            }
            "bit" => Some(ColumnKind::Bit {
                bits: self.precision?,
            }),
            _ => None,
        }
    }
}

impl Typed<'_> {
    /// How much text the column can hold at least, characters.
    fn characters_max(&self) -> Option<u32> {
        match self.data_type {
            "char" | "varchar" | "binary" | "varbinary" => {
                in_parentheses(self.column_type)?.parse().ok()
            }
            // 255 bytes, and 65,535 or more, of up to four for a character.
            "tinytext" | "tinyblob" => Some(255 / 4),
            "text" | "blob" | "mediumtext" | "mediumblob" | "longtext" | "longblob" => {
                Some(65_535 / 4)
            }
            _ => None,
        }
    }
}

/// What stands in the first parentheses of a type's text.
fn in_parentheses(column_type: &str) -> Option<&str> {
    Some(column_type.split_once('(')?.1.split_once(')')?.0)
}

/// The labels of `enum('a','b''c')`. `None` if they can't be told with certainty: with a backslash,
/// which some servers write for special characters; with a question mark, which may stand for a
/// character beyond the three bytes that this text is kept in; or if the text was too long.
fn enum_labels(column_type: &str) -> Option<Vec<Box<str>>> {
    if column_type.contains(['\\', '?']) || column_type.chars().count() >= COLUMN_TYPE_CHARS_MAX {
        return None;
    }
    let inner = column_type.strip_prefix("enum(")?.strip_suffix(')')?;
    let mut labels = Vec::new();
    let mut rest = inner;
    loop {
        rest = rest.strip_prefix('\'')?;
        let mut label = String::new();
        loop {
            let (before, after) = rest.split_once('\'')?;
            label.push_str(before);
            rest = after;
            match rest.strip_prefix('\'') {
                Some(after) => {
                    label.push('\'');
                    rest = after;
                }
                None => break,
            }
        }
        labels.push(label.into_boxed_str());
        if rest.is_empty() {
            return Some(labels);
        }
        rest = rest.strip_prefix(',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(data_type: &str, column_type: &str) -> ColumnKind {
        let typed = Typed {
            data_type,
            column_type,
            precision: Some(10),
            scale: Some(2),
            character_set: Some("latin1"),
            collation: Some("latin1_swedish_ci"),
        };
        typed
            .kind(&mut Interner::default())
            .unwrap_or(ColumnKind::Other)
    }

    #[test]
    fn integers_have_width_and_sign() {
        let integer = |bytes, unsigned| ColumnKind::Integer { bytes, unsigned };
        assert_eq!(kind("int", "int(11)"), integer(4, false));
        assert_eq!(kind("bigint", "bigint unsigned"), integer(8, true));
        let zerofill = "mediumint(8) unsigned zerofill";
        assert_eq!(kind("mediumint", zerofill), integer(3, true));
    }

    #[test]
    fn what_is_stored_otherwise_is_not_told_apart() {
        for (data_type, column_type) in [
            ("varchar", "varchar(100) /*M!100301 COMPRESSED*/"),
            ("datetime", "datetime /* mariadb-5.3 */"),
            ("timestamp", "timestamp"),
            ("year", "year(2)"),
            ("varbinary", "varbinary(10) /*M!100301 COMPRESSED*/"),
            ("set", "set('a')"),
            ("float", "float"),
            ("enum", "enum('a\\\\b')"),
            ("enum", "enum('?')"),
        ] {
            assert_eq!(
                kind(data_type, column_type),
                ColumnKind::Other,
                "{column_type}"
            );
        }
        assert_eq!(kind("varbinary", "varbinary(10)"), ColumnKind::Binary);
        assert_eq!(
            kind("datetime", "datetime(3)"),
            ColumnKind::Datetime { fraction: 3 }
        );
    }

    #[test]
    fn labels_may_hold_quotes_and_commas() {
        let labels = enum_labels("enum('a','b''c','','d,e','''')").unwrap();
        let labels: Vec<_> = labels.iter().map(|label| &**label).collect();
        assert_eq!(labels, ["a", "b'c", "", "d,e", "'"]);
        assert_eq!(enum_labels("enum('a'"), None);
        assert_eq!(enum_labels("enum('a','b)"), None);
    }

    #[test]
    fn equal_lists_are_held_once() {
        let mut interner = Interner::default();
        let list = || vec![ColumnFacts::new("id", ColumnKind::Year)];
        let (one, other) = (interner.columns(list()), interner.columns(list()));
        assert!(Arc::ptr_eq(&one, &other));
    }
}
