//! A server with two small tables: its rows, its log, and what reads of them gave at each moment.

use std::collections::BTreeMap;

/// The columns by name. Their places in the table follow from the definition.
pub const ID: usize = 0;
pub const A: usize = 1;
pub const B: usize = 2;
pub const COLUMNS: usize = 3;
pub const TABLES: usize = 2;

/// The rows that a table has at first: some of the ids that there are.
const IDS: i64 = 5;

/// The values of a row, by the columns' names.
pub type Row = [i64; COLUMNS];

/// Small numbers from a seed: the same seed gives the same simulation.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// One of `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % bound as u64).unwrap()
    }

    pub fn value(&mut self, bound: usize) -> i64 {
        i64::try_from(self.below(bound)).unwrap()
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    /// A value that a column may have: few, so that reads and writes meet; of some intervals.
    pub fn value_of(&mut self, column: usize) -> i64 {
        match column {
            ID => self.value(6),
            _ => 13 + 3 * self.value(4),
        }
    }
}

/// How a table is defined. Each version has other places, or another type, of its columns.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Definition(pub u8);

impl Definition {
    pub fn ordinal(self, column: usize) -> u16 {
        let is_swapped = self.0 >= 2;
        let place = match column {
            A if is_swapped => B,
            B if is_swapped => A,
            other => other,
        };
        u16::try_from(place).unwrap()
    }

    /// How the column's values are hashed.
    pub fn codec(self, column: usize) -> u8 {
        u8::from(column == A && (1..3).contains(&self.0))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    pub definition: Definition,
    pub rows: BTreeMap<i64, Row>,
}

pub type State = [Table; TABLES];

/// What rows a statement is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Condition {
    All,
    /// Each of the columns has one of the values.
    In(Vec<(usize, Vec<i64>)>),
    Between(usize, i64, i64),
}

impl Condition {
    pub fn holds(&self, row: &Row) -> bool {
        match self {
            Condition::All => true,
            Condition::In(columns) => columns
                .iter()
                .all(|(column, values)| values.contains(&row[*column])),
            Condition::Between(column, from, to) => (*from..=*to).contains(&row[*column]),
        }
    }

    pub fn random(random: &mut Random) -> Condition {
        let column = random.below(COLUMNS);
        match random.below(6) {
            0 => Condition::All,
            1 => {
                let from = random.value_of(column);
                Condition::Between(column, from, from + random.value(8))
            }
            2 => Condition::In(vec![
                (A, vec![random.value_of(A)]),
                (B, vec![random.value_of(B), random.value_of(B)]),
            ]),
            _ => {
                let values = (0..=random.below(2)).map(|_| random.value_of(column));
                Condition::In(vec![(column, values.collect())])
            }
        }
    }
}

/// `SELECT` of some columns of the rows of one table for which the condition holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Read {
    pub table: usize,
    pub condition: Condition,
    /// Those that are selected. Rows come in the order of their keys, which needn't be selected.
    pub columns: Vec<usize>,
}

/// A query of one or two tables.
pub type Query = Vec<Read>;

/// What each read gave: the definition and the rows.
pub type Answer = Vec<(Definition, Vec<Vec<i64>>)>;

pub fn random_query(random: &mut Random) -> Query {
    let mut read = || Read {
        table: random.below(TABLES),
        condition: Condition::random(random),
        columns: (0..COLUMNS).filter(|_| random.one_in(2)).collect(),
    };
    let first = read();
    let second = read();
    if random.one_in(5) {
        vec![first, second]
    } else {
        vec![first]
    }
}

pub fn answer(state: &State, query: &Query) -> Answer {
    let of_read = |read: &Read| {
        let table = &state[read.table];
        let rows = table.rows.values().filter(|row| read.condition.holds(row));
        let select = |row: &Row| read.columns.iter().map(|column| row[*column]).collect();
        let mut rows: Vec<Vec<i64>> = rows.map(select).collect();
        // Without an order by what isn't selected: rows of the same values are the same.
        rows.sort_unstable();
        (table.definition, rows)
    };
    query.iter().map(of_read).collect()
}

/// A change of one row.
#[derive(Clone, Debug)]
pub struct RowChange {
    pub table: usize,
    pub before: Option<Row>,
    pub after: Option<Row>,
}

/// What a commit's events say.
#[derive(Clone, Debug)]
pub enum Logged {
    Rows(Vec<RowChange>),
    /// A statement as text, of which only the table is known.
    Text(usize),
    Definition(usize),
}

#[derive(Clone, Debug)]
pub struct LoggedCommit {
    pub logged: Logged,
    /// The definitions in which the rows are written.
    pub definitions: [Definition; TABLES],
    /// The number of the state that it makes.
    pub state: usize,
}

/// What a writer wants.
#[derive(Clone, Debug)]
pub enum Write {
    /// `UPDATE … SET column = value WHERE …`.
    Update(usize, Condition, usize, i64),
    Insert(usize, Row),
    Delete(usize, Condition),
    /// The same as an update, logged as text.
    Text(usize, Condition, usize, i64),
    Define(usize),
}

impl Write {
    /// Of so many one defines its table anew.
    pub fn random(random: &mut Random, definitions: usize) -> Write {
        let table = random.below(TABLES);
        let condition = match random.below(4) {
            0 => Condition::random(random),
            1 => Condition::In(vec![(A, vec![random.value_of(A)])]),
            _ => Condition::In(vec![(ID, vec![random.value_of(ID)])]),
        };
        let assigned = 1 + random.below(2);
        let value = random.value_of(assigned);
        if random.one_in(definitions) {
            return Write::Define(table);
        }
        match random.below(24) {
            0 => Write::Text(table, condition, assigned, value),
            1 | 2 => Write::Delete(table, condition),
            3..7 => Write::Insert(table, [ID, A, B].map(|column| random.value_of(column))),
            _ => Write::Update(table, condition, assigned, value),
        }
    }

    pub fn table(&self) -> usize {
        match self {
            Write::Update(table, ..)
            | Write::Insert(table, _)
            | Write::Delete(table, _)
            | Write::Text(table, ..)
            | Write::Define(table) => *table,
        }
    }
}

pub struct Server {
    /// After each commit.
    pub states: Vec<State>,
    pub visible: usize,
    /// The last state that the server counts as visible when it is asked. Reads see a commit a
    /// moment before that, as with MySQL's `gtid_executed`.
    pub counted: usize,
    /// For each state that was counted, when it became so.
    pub counted_at_ms: Vec<u64>,
    pub log: Vec<LoggedCommit>,
    /// The commits before the log began anew. Positions count from there.
    pub log_begins_after: usize,
}

impl Server {
    pub fn new(random: &mut Random) -> Server {
        let mut state = State::default();
        for table in &mut state {
            for id in 0..IDS {
                let row = [id, random.value_of(A), random.value_of(B)];
                table.rows.insert(id, row);
            }
        }
        Server {
            states: vec![state],
            visible: 0,
            counted: 0,
            counted_at_ms: vec![0],
            log: Vec::new(),
            log_begins_after: 0,
        }
    }

    pub fn visible_state(&self) -> &State {
        &self.states[self.visible]
    }

    pub fn make_visible(&mut self, state: usize) {
        self.visible = self.visible.max(state);
    }

    /// Counts a state that is visible.
    pub fn count(&mut self, state: usize, now_ms: u64) {
        self.counted = self.counted.max(state);
        while self.counted_at_ms.len() <= self.counted {
            self.counted_at_ms.push(now_ms);
        }
    }

    /// The last log entry that counts as visible, as a count of entries.
    pub fn counted_entries(&self) -> usize {
        let is_counted = |commit: &&LoggedCommit| commit.state <= self.counted;
        self.log.iter().filter(is_counted).count()
    }

    /// Executes a write upon the last state. The number of the state that it makes; it isn't
    /// visible yet.
    pub fn commit(&mut self, write: &Write, is_logged: bool) -> usize {
        let mut state = self.states.last().unwrap().clone();
        let at = write.table();
        let table = &mut state[at];
        let logged = match write {
            Write::Define(_) => {
                table.definition = Definition((table.definition.0 + 1) % 4);
                Logged::Definition(at)
            }
            Write::Text(_, condition, column, value) => {
                change_rows(table, at, condition, |row| row[*column] = *value);
                Logged::Text(at)
            }
            Write::Update(_, condition, column, value) => {
                Logged::Rows(change_rows(table, at, condition, |row| {
                    row[*column] = *value;
                }))
            }
            Write::Delete(_, condition) => Logged::Rows(delete_rows(table, at, condition)),
            Write::Insert(_, row) => Logged::Rows(insert_row(table, at, *row)),
        };
        let definitions = [state[0].definition, state[1].definition];
        self.states.push(state);
        let state = self.states.len() - 1;
        if is_logged {
            self.log.push(LoggedCommit {
                logged,
                definitions,
                state,
            });
        }
        state
    }
}

fn change_rows(
    table: &mut Table,
    at: usize,
    condition: &Condition,
    change: impl Fn(&mut Row),
) -> Vec<RowChange> {
    let mut changes = Vec::new();
    for row in table.rows.values_mut().filter(|row| condition.holds(row)) {
        let before = *row;
        change(row);
        if *row != before {
            changes.push(RowChange {
                table: at,
                before: Some(before),
                after: Some(*row),
            });
        }
    }
    changes
}

fn delete_rows(table: &mut Table, at: usize, condition: &Condition) -> Vec<RowChange> {
    let mut changes = Vec::new();
    table.rows.retain(|_, row| {
        let is_deleted = condition.holds(row);
        if is_deleted {
            changes.push(RowChange {
                table: at,
                before: Some(*row),
                after: None,
            });
        }
        !is_deleted
    });
    changes
}

fn insert_row(table: &mut Table, at: usize, row: Row) -> Vec<RowChange> {
    if table.rows.contains_key(&row[ID]) {
        return Vec::new();
    }
    table.rows.insert(row[ID], row);
    vec![RowChange {
        table: at,
        before: None,
        after: Some(row),
    }]
}
