//! The statements of the simulation's clients: what each is, as text and as a value.

use super::random::Random;

/// The tables, each with the columns `id` (its key), `g` and `v`.
pub(super) const TABLES: [&str; 3] = ["a", "b", "c"];
/// Ids are below this.
pub(super) const IDS: u64 = 5;
/// Values of `g` are below this.
const GROUPS: u64 = 2;

/// A statement of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    Read {
        read: Read,
        lock: Lock,
    },
    Write(Write),
    /// A procedure that changes rows: the text doesn't show which.
    Call {
        number: u64,
        write: Write,
    },
    Begin(Begin),
    Commit,
    Rollback,
    Savepoint,
    RollbackToSavepoint,
    Autocommit(bool),
    Isolation(Isolation),
}

/// The options of `START TRANSACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) with_snapshot: bool,
    pub(super) is_read_only: bool,
}

/// A `SELECT` without locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    ById {
        table: usize,
        id: u64,
    },
    ByGroup {
        table: usize,
        group: u64,
    },
    Totals {
        table: usize,
    },
    Join {
        id: u64,
    },
    /// Nothing, and the server sees that before it looks at a table: it makes no snapshot.
    Nothing {
        table: usize,
    },
}

/// The locks that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    None,
    Exclusive,
}

/// What changes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    Value {
        table: usize,
        id: u64,
        value: u64,
    },
    Group {
        table: usize,
        id: u64,
        group: u64,
        value: u64,
    },
    ByGroup {
        table: usize,
        group: u64,
        value: u64,
    },
    Insert {
        table: usize,
        id: u64,
        group: u64,
        value: u64,
    },
    Delete {
        table: usize,
        id: u64,
    },
}

/// The levels at which memory answers inside transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    ReadCommitted,
    RepeatableRead,
}

/// How often each kind of statement comes.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    /// What is read most often.
    popular: Vec<Read>,
    reads: u64,
    writes: u64,
    transactions: u64,
    settings: u64,
}

impl Mix {
    /// One by chance: from hardly any change to many.
    pub(super) fn draw(random: &mut Random) -> Mix {
        let count = 2 + random.below(6);
        let popular = (0..count).map(|_| Read::draw(random)).collect();
        let mut one_of = |weights: [u64; 3]| weights[random.index(weights.len())];
        Mix {
            popular,
            reads: 60,
            writes: one_of([2, 6, 20]),
            transactions: one_of([4, 16, 32]),
            settings: one_of([0, 0, 2]),
        }
    }

    fn read(&self, random: &mut Random) -> Read {
        match random.below(8) {
            0 => Read::draw(random),
            _ => self.popular[random.index(self.popular.len())].clone(),
        }
    }

    fn sum(&self) -> u64 {
        self.reads + self.writes + self.transactions + self.settings
    }
}

impl Statement {
    /// A random one. `value` is one that was never written.
    pub(super) fn draw(random: &mut Random, mix: &Mix, value: u64) -> Statement {
        let mut at = random.below(mix.sum());
        let mut is_drawn = |weight: u64| {
            let is_drawn = at < weight;
            at = at.saturating_sub(weight);
            is_drawn
        };
        if is_drawn(mix.reads) {
            return Statement::Read {
                read: mix.read(random),
                lock: if random.below(10) == 0 {
                    Lock::Exclusive
                } else {
                    Lock::None
                },
            };
        }
        if is_drawn(mix.writes) {
            let write = Write::draw(random, value);
            return match random.below(8) {
                0 => Statement::Call {
                    number: value,
                    write,
                },
                _ => Statement::Write(write),
            };
        }
        if is_drawn(mix.transactions) {
            return match random.below(20) {
                0..9 => Statement::Begin(Begin {
                    with_snapshot: random.below(5) == 0,
                    is_read_only: random.below(8) == 0,
                }),
                9..16 => Statement::Commit,
                16 | 17 => Statement::Rollback,
                18 => Statement::Savepoint,
                _ => Statement::RollbackToSavepoint,
            };
        }
        match random.below(2) {
            0 => Statement::Autocommit(random.below(3) > 0),
            _ => Statement::Isolation(match random.below(3) {
                0 => Isolation::ReadCommitted,
                _ => Isolation::RepeatableRead,
            }),
        }
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        match self {
            Statement::Read { read, lock } => match lock {
                Lock::None => read.text(),
                Lock::Exclusive => read.text() + " FOR UPDATE",
            },
            Statement::Write(write) => write.text(),
            Statement::Call { number, .. } => format!("CALL p({number})"),
            Statement::Begin(begin) => begin.text().to_owned(),
            Statement::Commit => "COMMIT".to_owned(),
            Statement::Rollback => "ROLLBACK".to_owned(),
            Statement::Savepoint => "SAVEPOINT s".to_owned(),
            Statement::RollbackToSavepoint => "ROLLBACK TO SAVEPOINT s".to_owned(),
            Statement::Autocommit(on) => format!("SET autocommit = {}", u8::from(*on)),
            Statement::Isolation(level) => {
                let level = match level {
                    Isolation::ReadCommitted => "READ COMMITTED",
                    Isolation::RepeatableRead => "REPEATABLE READ",
                };
                format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            }
        }
    }
}

impl Begin {
    /// Every combination.
    pub(super) fn all() -> impl Iterator<Item = Begin> {
        let both = [false, true];
        both.into_iter().flat_map(move |with_snapshot| {
            both.map(|is_read_only| Begin {
                with_snapshot,
                is_read_only,
            })
        })
    }

    pub(super) fn text(self) -> &'static str {
        match (self.with_snapshot, self.is_read_only) {
            (false, false) => "START TRANSACTION",
            (false, true) => "START TRANSACTION READ ONLY",
            (true, false) => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            (true, true) => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        }
    }
}

impl Read {
    fn draw(random: &mut Random) -> Read {
        let table = random.index(TABLES.len());
        match random.below(12) {
            0..5 => Read::ById {
                table,
                id: random.below(IDS),
            },
            5..8 => Read::ByGroup {
                table,
                group: random.below(GROUPS),
            },
            8 => Read::Totals { table },
            9 | 10 => Read::Nothing { table },
            _ => Read::Join {
                id: random.below(IDS),
            },
        }
    }

    fn text(&self) -> String {
        match *self {
            Read::ById { table, id } => format!("SELECT v FROM {} WHERE id = {id}", TABLES[table]),
            Read::ByGroup { table, group } => {
                format!("SELECT id, v FROM {} WHERE g = {group}", TABLES[table])
            }
            Read::Totals { table } => format!("SELECT COUNT(*), SUM(v) FROM {}", TABLES[table]),
            Read::Nothing { table } => format!("SELECT v FROM {} WHERE 1 = 0", TABLES[table]),
            Read::Join { id } => {
                format!("SELECT a.v, b.v FROM a, b WHERE a.id = b.id AND a.id = {id}")
            }
        }
    }
}

impl Write {
    /// A random one.
    pub(super) fn draw(random: &mut Random, value: u64) -> Write {
        let (table, id) = (random.index(TABLES.len()), random.below(IDS));
        let group = random.below(GROUPS);
        match random.below(10) {
            0..5 => Write::Value { table, id, value },
            5 => Write::ByGroup {
                table,
                group,
                value,
            },
            6 => Write::Group {
                table,
                id,
                group,
                value,
            },
            7 | 8 => Write::Insert {
                table,
                id,
                group,
                value,
            },
            _ => Write::Delete { table, id },
        }
    }

    fn text(&self) -> String {
        match *self {
            Write::Value { table, id, value } => {
                format!("UPDATE {} SET v = {value} WHERE id = {id}", TABLES[table])
            }
            Write::Group {
                table,
                id,
                group,
                value,
            } => format!(
                "UPDATE {} SET g = {group}, v = {value} WHERE id = {id}",
                TABLES[table]
            ),
            Write::ByGroup {
                table,
                group,
                value,
            } => format!("UPDATE {} SET v = {value} WHERE g = {group}", TABLES[table]),
            Write::Insert {
                table,
                id,
                group,
                value,
            } => format!(
                "INSERT INTO {} VALUES ({id}, {group}, {value})",
                TABLES[table]
            ),
            Write::Delete { table, id } => {
                format!("DELETE FROM {} WHERE id = {id}", TABLES[table])
            }
        }
    }
}
