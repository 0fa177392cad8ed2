//! The statements of the simulation's clients: what each is, as text and as a value.

use super::random::Random;

/// The tables, each with the columns `id` (its key), `g` and `v`.
pub(super) const TABLES: [&str; 3] = ["a", "b", "c"];
/// How many ids there are.
const IDS: u64 = 5;
/// How far apart they are, so that a range of them covers several intervals.
pub(super) const ID_STEP: u64 = 10;
/// Values of `g` are below this.
const GROUPS: u64 = 2;

fn some_id(random: &mut Random) -> u64 {
    ID_STEP * random.below(IDS)
}

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
    /// `SHOW WARNINGS`. If memory answered the statement before it, the server must run that one
    /// first.
    Warnings,
}

/// The options of `START TRANSACTION`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// The group of a row.
    GroupOf {
        table: usize,
        id: u64,
    },
    /// Two rows of a list.
    ByIds {
        table: usize,
        ids: [u64; 2],
    },
    /// A range of rows, both ends included.
    Between {
        table: usize,
        ids: [u64; 2],
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
    /// A row goes to a group, and may get a value.
    Group {
        table: usize,
        id: u64,
        group: u64,
        value: Option<u64>,
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
    locking_reads: u64,
    writes: u64,
    transactions: u64,
    settings: u64,
    warnings: u64,
    /// In how many of eight cases a statement that can be prepared is.
    prepared: u64,
}

impl Mix {
    /// One by chance: from hardly any change to many.
    pub(super) fn draw(random: &mut Random) -> Mix {
        let count = [2, 2, 3, 6][random.index(4)];
        // Of one table, they often change together.
        let table = (random.below(2) == 0).then(|| random.index(TABLES.len()));
        let popular = (0..count)
            .map(|_| {
                let table = table.unwrap_or_else(|| random.index(TABLES.len()));
                Read::draw(random, table)
            })
            .collect();
        let mut one_of = |weights: [u64; 4]| weights[random.index(weights.len())];
        Mix {
            popular,
            reads: 60,
            locking_reads: one_of([0, 0, 2, 8]),
            writes: one_of([1, 2, 6, 20]),
            transactions: one_of([4, 8, 16, 32]),
            settings: one_of([0, 0, 2, 16]),
            warnings: one_of([0, 0, 1, 4]),
            prepared: one_of([0, 0, 4, 7]),
        }
    }

    /// Whether a statement is sent as a prepared one.
    pub(super) fn prepares(&self, statement: &Statement, random: &mut Random) -> bool {
        let can_be_prepared = match statement {
            // With parameters in the place of its constants the server would look at the table.
            Statement::Read { read, .. } => !matches!(read, Read::Nothing { .. }),
            Statement::Write(_) => true,
            _ => false,
        };
        can_be_prepared && random.below(8) < self.prepared
    }

    fn read(&self, random: &mut Random) -> Read {
        match random.below(8) {
            0 => {
                let table = random.index(TABLES.len());
                Read::draw(random, table)
            }
            _ => self.popular[random.index(self.popular.len())].clone(),
        }
    }

    fn sum(&self) -> u64 {
        self.reads
            + self.locking_reads
            + self.writes
            + self.transactions
            + self.settings
            + self.warnings
    }
}

impl Statement {
    /// A random one for a client that is in a transaction, or isn't. `value` is one that was never
    /// written.
    pub(super) fn draw(
        random: &mut Random,
        mix: &Mix,
        is_in_transaction: bool,
        value: u64,
    ) -> Statement {
        let mut at = random.below(mix.sum());
        let mut is_drawn = |weight: u64| {
            let is_drawn = at < weight;
            at = at.saturating_sub(weight);
            is_drawn
        };
        if is_drawn(mix.reads) {
            return Statement::Read {
                read: mix.read(random),
                lock: Lock::None,
            };
        }
        if is_drawn(mix.locking_reads) {
            return Statement::Read {
                read: mix.read(random),
                lock: Lock::Exclusive,
            };
        }
        if is_drawn(mix.writes) {
            let write = Write::draw(random, mix, value);
            return match random.below(8) {
                0 => Statement::Call {
                    number: value,
                    write,
                },
                _ => Statement::Write(write),
            };
        }
        if is_drawn(mix.transactions) {
            return Statement::draw_of_transactions(random, is_in_transaction);
        }
        if is_drawn(mix.warnings) {
            return Statement::Warnings;
        }
        match random.below(2) {
            0 => Statement::Autocommit(random.below(2) > 0),
            _ => Statement::Isolation(match random.below(3) {
                0 => Isolation::ReadCommitted,
                _ => Isolation::RepeatableRead,
            }),
        }
    }

    /// Whether it reads without locks.
    pub(super) fn is_plain_read(&self) -> bool {
        matches!(
            self,
            Statement::Read {
                lock: Lock::None,
                ..
            }
        )
    }

    /// Whether only the server can answer it.
    pub(super) fn must_run(&self) -> bool {
        match self {
            Statement::Read { lock, .. } => *lock == Lock::Exclusive,
            Statement::Write(_) | Statement::Call { .. } => true,
            _ => false,
        }
    }

    /// Whether it says what the session's transactions are like.
    pub(super) fn sets(&self) -> bool {
        matches!(self, Statement::Autocommit(_) | Statement::Isolation(_))
    }

    fn draw_of_transactions(random: &mut Random, is_in_transaction: bool) -> Statement {
        let begins = if is_in_transaction { 1 } else { 100 };
        match random.below(16 + begins) {
            0..11 => Statement::Commit,
            11..14 => Statement::Rollback,
            14 => Statement::Savepoint,
            15 => Statement::RollbackToSavepoint,
            _ => Statement::Begin(Begin {
                with_snapshot: random.below(8) == 0,
                is_read_only: random.below(8) == 0,
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
            Statement::Warnings => "SHOW WARNINGS".to_owned(),
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
    fn draw(random: &mut Random, table: usize) -> Read {
        let id = some_id(random);
        match random.below(16) {
            0..5 => Read::ById { table, id },
            5 => Read::GroupOf { table, id },
            6 => Read::ByIds {
                table,
                ids: [id, some_id(random)],
            },
            7 | 8 => Read::Between {
                table,
                ids: [id, id + some_id(random)],
            },
            9..12 => Read::ByGroup {
                table,
                group: random.below(GROUPS),
            },
            12 => Read::Totals { table },
            13 | 14 => Read::Nothing { table },
            _ => Read::Join { id },
        }
    }

    /// The place of a row that it may show.
    fn some_place(&self, random: &mut Random) -> (usize, u64) {
        match *self {
            Read::ById { table, id } | Read::GroupOf { table, id } => (table, id),
            Read::ByIds { table, ids } | Read::Between { table, ids } => {
                (table, ids[random.index(ids.len())])
            }
            Read::ByGroup { table, .. } | Read::Totals { table } | Read::Nothing { table } => {
                (table, some_id(random))
            }
            Read::Join { id } => (random.index(2), id),
        }
    }

    fn text(&self) -> String {
        match *self {
            Read::ById { table, id } => format!("SELECT v FROM {} WHERE id = {id}", TABLES[table]),
            Read::GroupOf { table, id } => {
                format!("SELECT g FROM {} WHERE id = {id}", TABLES[table])
            }
            Read::ByIds {
                table,
                ids: [one, other],
            } => format!(
                "SELECT id, v FROM {} WHERE id IN ({one}, {other})",
                TABLES[table]
            ),
            Read::Between {
                table,
                ids: [first, last],
            } => format!(
                "SELECT id, v FROM {} WHERE id BETWEEN {first} AND {last}",
                TABLES[table]
            ),
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
    /// A random one; most change what is read often.
    pub(super) fn draw(random: &mut Random, mix: &Mix, value: u64) -> Write {
        let (table, id) = match random.below(4) {
            0 => (random.index(TABLES.len()), some_id(random)),
            _ => mix.popular[random.index(mix.popular.len())].some_place(random),
        };
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
                value: (random.below(2) == 0).then_some(value),
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
            } => {
                let value = value.map_or(String::new(), |value| format!(", v = {value}"));
                format!(
                    "UPDATE {} SET g = {group}{value} WHERE id = {id}",
                    TABLES[table]
                )
            }
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
