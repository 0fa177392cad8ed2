//! The tables that counters live in, each for another way in which a change reaches other rows.

use crate::client::{Client, ClientError};

/// Counters in each kind of table; their `id` is 0 and up.
pub const ROWS: usize = 8;
/// Where a stored value must be unique, it is `value * SCALE + id`.
const SCALE: u64 = 1_000;

/// A table, or a group of tables, with [`ROWS`] counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An InnoDB table.
    Plain,
    /// Another one, so that joins have two sides.
    Other,
    /// Parents are written, their children change by a cascade of the foreign key.
    Family,
    /// A table is written, a trigger writes a second one.
    Mirrored,
    /// A table without transactions that MySQL's log lets cache.
    Memory,
    /// A table without transactions that can't be cached.
    Isam,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] = [
        Kind::Plain,
        Kind::Other,
        Kind::Family,
        Kind::Mirrored,
        Kind::Memory,
        Kind::Isam,
    ];

    /// The table that statements write.
    pub fn written(self) -> &'static str {
        self.read()[0]
    }

    /// The tables that hold its counters. Each has columns `id` and `value`.
    pub fn read(self) -> &'static [&'static str] {
        match self {
            Kind::Plain => &["plain"],
            Kind::Other => &["other"],
            Kind::Family => &["parent", "child"],
            Kind::Mirrored => &["source", "mirror"],
            Kind::Memory => &["in_memory"],
            Kind::Isam => &["isam"],
        }
    }

    /// Whether its changes can be rolled back.
    pub fn is_transactional(self) -> bool {
        !matches!(self, Kind::Memory | Kind::Isam)
    }

    /// Whether its rows can be deleted and inserted again without harm to other tables.
    pub fn stands_alone(self) -> bool {
        !matches!(self, Kind::Family | Kind::Mirrored)
    }

    /// The number of its counter in this row.
    pub fn counter(self, row: usize) -> usize {
        let kind = Kind::ALL
            .iter()
            .position(|kind| *kind == self)
            .unwrap_or_default();
        kind * ROWS + row
    }

    /// What is stored for a counter's value.
    pub fn stored(self, row: usize, value: u64) -> u64 {
        match self {
            Kind::Family => value * SCALE + row as u64,
            _ => value,
        }
    }

    /// The value, or a sum of values, behind what is stored.
    pub fn value(self, stored: u64) -> u64 {
        match self {
            Kind::Family => stored / SCALE,
            _ => stored,
        }
    }
}

/// How many counters there are in all.
pub const COUNTERS: usize = Kind::ALL.len() * ROWS;

/// Creates all tables, all counters 0, and what writes them on others' behalf.
pub fn create(client: &mut Client) -> Result<(), ClientError> {
    for statement in DEFINITIONS {
        client.query(statement)?;
    }
    for kind in Kind::ALL {
        for table in kind.read() {
            let rows: Vec<String> = (0..ROWS)
                .map(|row| format!("({row}, {})", kind.stored(row, 0)))
                .collect();
            client.query(&format!(
                "INSERT INTO {table} (id, value) VALUES {}",
                rows.join(", ")
            ))?;
        }
    }
    Ok(())
}

const DEFINITIONS: [&str; 11] = [
    "CREATE TABLE plain (id INT PRIMARY KEY, value BIGINT NOT NULL, note VARCHAR(40)) ENGINE=InnoDB",
    "CREATE TABLE other (id INT PRIMARY KEY, value BIGINT NOT NULL, note TEXT) ENGINE=InnoDB",
    "CREATE TABLE in_memory (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=MEMORY",
    "CREATE TABLE isam (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=MyISAM",
    "CREATE TABLE parent (id INT PRIMARY KEY, value BIGINT NOT NULL UNIQUE) ENGINE=InnoDB",
    "CREATE TABLE child (id INT PRIMARY KEY, value BIGINT NOT NULL, \
     FOREIGN KEY (value) REFERENCES parent (value) ON UPDATE CASCADE) ENGINE=InnoDB",
    "CREATE TABLE source (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE mirror (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE TRIGGER mirrored AFTER UPDATE ON source FOR EACH ROW \
     UPDATE mirror SET value = NEW.value WHERE id = NEW.id",
    "CREATE PROCEDURE put(IN counter INT, IN new_value BIGINT) \
     UPDATE plain SET value = new_value WHERE id = counter",
    "CREATE FUNCTION store(counter INT, new_value BIGINT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA \
     BEGIN UPDATE plain SET value = new_value WHERE id = counter; RETURN 1; END",
];
