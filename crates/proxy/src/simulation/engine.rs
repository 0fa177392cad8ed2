//! The simulated server's storage. It keeps the rows after every commit, has transactions like
//! `InnoDB`'s, and a log whose commits become visible some time later.
//!
//! Left out: gap locks (though a missing row can be locked), more than one savepoint, and real
//! detection of deadlocks: a blocked statement fails by chance.

use std::collections::BTreeMap;

use super::statement::{ID_STEP, Isolation, Lock, Read, Statement, TABLES, Write};

/// `ER_LOCK_WAIT_TIMEOUT`: the statement has done nothing.
pub(super) const WAITED_TOO_LONG: u16 = 1205;
/// `ER_LOCK_DEADLOCK`: the transaction was rolled back.
pub(super) const DEADLOCK: u16 = 1213;
/// `ER_DUP_ENTRY`.
pub(super) const DUPLICATE: u16 = 1062;
/// `ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION`.
pub(super) const READ_ONLY: u16 = 1792;
/// `ER_SP_DOES_NOT_EXIST`: no savepoint has the name.
pub(super) const NO_SAVEPOINT: u16 = 1305;

/// A row, but for its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) group: u64,
    pub(super) value: u64,
}

/// The place of a row: its table, its id.
pub(super) type Place = (usize, u64);

/// All rows at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State([BTreeMap<u64, Row>; TABLES.len()]);

/// What a result set shows.
pub(super) type Rows = Vec<Vec<Option<u64>>>;

impl State {
    fn with(&self, changes: &[Change]) -> State {
        let mut state = self.clone();
        for change in changes {
            state.apply(change);
        }
        state
    }

    /// Applies a change. Gives what the log says of it: nothing if the row is as it was.
    fn apply(&mut self, change: &Change) -> Option<RowChange> {
        let rows = &mut self.0[change.place.0];
        let before = match change.row {
            Some(row) => rows.insert(change.place.1, row),
            None => rows.remove(&change.place.1),
        };
        (before != change.row).then_some(RowChange {
            place: change.place,
            before,
            after: change.row,
        })
    }

    /// What a read gives.
    pub(super) fn read(&self, read: &Read) -> Rows {
        let value = |table: usize, id: u64| self.0[table].get(&id).map(|row| Some(row.value));
        match *read {
            Read::ById { table, id } => value(table, id)
                .map(|value| vec![value])
                .into_iter()
                .collect(),
            Read::GroupOf { table, id } => self.0[table]
                .get(&id)
                .map(|row| vec![Some(row.group)])
                .into_iter()
                .collect(),
            Read::ByIds { table, ids } => self.those(table, |id, _| ids.contains(&id)),
            Read::Between {
                table,
                ids: [first, last],
            } => self.those(table, |id, _| (first..=last).contains(&id)),
            Read::ByGroup { table, group } => self.those(table, |_, row| row.group == group),
            Read::Totals { table } => {
                let rows = &self.0[table];
                let sum = rows.values().map(|row| row.value).sum();
                vec![vec![
                    Some(rows.len() as u64),
                    (!rows.is_empty()).then_some(sum),
                ]]
            }
            Read::Join { id } => match (value(0, id), value(1, id)) {
                (Some(a), Some(b)) => vec![vec![a, b]],
                _ => Vec::new(),
            },
            Read::Nothing { .. } => Vec::new(),
        }
    }

    /// The ids and values of rows.
    fn those(&self, table: usize, are_meant: impl Fn(u64, &Row) -> bool) -> Rows {
        let rows = self.0[table].iter();
        let meant = rows.filter(|(id, row)| are_meant(**id, row));
        meant
            .map(|(id, row)| vec![Some(*id), Some(row.value)])
            .collect()
    }

    /// The rows that a read looks at, as far as it must lock them.
    fn places(&self, read: &Read) -> Vec<Place> {
        match *read {
            Read::ById { table, id } | Read::GroupOf { table, id } => vec![(table, id)],
            Read::ByIds { table, ids } => ids.map(|id| (table, id)).to_vec(),
            Read::Between {
                table,
                ids: [first, last],
            } => (first..=last)
                .step_by(usize::try_from(ID_STEP).unwrap_or(1))
                .map(|id| (table, id))
                .collect(),
            Read::ByGroup { table, .. } | Read::Totals { table } => self.all_of(table),
            Read::Join { id } => vec![(0, id), (1, id)],
            Read::Nothing { .. } => Vec::new(),
        }
    }

    fn all_of(&self, table: usize) -> Vec<Place> {
        self.0[table].keys().map(|id| (table, *id)).collect()
    }

    /// The rows that a write locks.
    fn written_places(&self, write: &Write) -> Vec<Place> {
        match *write {
            Write::Value { table, id, .. }
            | Write::Group { table, id, .. }
            | Write::Insert { table, id, .. }
            | Write::Delete { table, id } => vec![(table, id)],
            Write::ByGroup { table, .. } => self.all_of(table),
        }
    }

    /// What a write does.
    fn changes(&self, write: &Write) -> Result<Vec<Change>, u16> {
        let row = |table: usize, id: u64| self.0[table].get(&id).copied();
        let one = |table, id, row| Change {
            place: (table, id),
            row,
        };
        Ok(match *write {
            Write::Value { table, id, value } => row(table, id)
                .map(|row| one(table, id, Some(Row { value, ..row })))
                .into_iter()
                .collect(),
            Write::Group {
                table,
                id,
                group,
                value,
            } => row(table, id)
                .map(|row| {
                    let value = value.unwrap_or(row.value);
                    one(table, id, Some(Row { group, value }))
                })
                .into_iter()
                .collect(),
            Write::ByGroup {
                table,
                group,
                value,
            } => self.0[table]
                .iter()
                .filter(|(_, row)| row.group == group)
                .map(|(id, row)| one(table, *id, Some(Row { value, ..*row })))
                .collect(),
            Write::Insert {
                table,
                id,
                group,
                value,
            } => match row(table, id) {
                Some(_) => return Err(DUPLICATE),
                None => vec![one(table, id, Some(Row { group, value }))],
            },
            Write::Delete { table, id } => row(table, id)
                .map(|_| one(table, id, None))
                .into_iter()
                .collect(),
        })
    }
}

/// A changed row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    place: Place,
    /// None: it was deleted.
    row: Option<Row>,
}

/// What the log tells of a changed row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowChange {
    pub(super) place: Place,
    /// None: it was inserted.
    pub(super) before: Option<Row>,
    /// None: it was deleted.
    pub(super) after: Option<Row>,
}

/// What a session's transactions are like, and whether one is open. The server and the model of
/// what a client expects keep one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) autocommit: bool,
    pub(super) isolation: Isolation,
    /// The open transaction's; of no meaning without.
    pub(super) level: Isolation,
    pub(super) is_open: bool,
    pub(super) is_read_only: bool,
}

impl Mode {
    pub(super) fn new() -> Mode {
        Mode {
            autocommit: true,
            isolation: Isolation::RepeatableRead,
            level: Isolation::RepeatableRead,
            is_open: false,
            is_read_only: false,
        }
    }

    /// Whether the statement ends what is open, and whether that is kept.
    pub(super) fn ends(self, statement: &Statement) -> Option<bool> {
        match statement {
            Statement::Begin(_) | Statement::Commit => Some(true),
            Statement::Rollback => Some(false),
            Statement::Autocommit(true) if !self.autocommit => Some(true),
            _ => None,
        }
    }

    /// After a statement that succeeded.
    pub(super) fn take(&mut self, statement: &Statement) {
        if self.ends(statement).is_some() {
            self.is_open = false;
        }
        match statement {
            Statement::Begin(begin) => self.open(begin.is_read_only),
            Statement::Autocommit(on) => self.autocommit = *on,
            Statement::Isolation(level) => self.isolation = *level,
            Statement::Read { .. } | Statement::Write(_) | Statement::Call { .. }
                if !self.autocommit && !self.is_open =>
            {
                self.open(false);
            }
            _ => {}
        }
    }

    fn open(&mut self, is_read_only: bool) {
        self.is_open = true;
        self.level = self.isolation;
        self.is_read_only = is_read_only;
    }
}

/// What a rollback to a savepoint goes back to.
#[derive(Debug, Clone, Copy)]
struct Savepoint {
    changes: usize,
    /// Whether `InnoDB` had a part in the transaction. If not, the rollback undoes that, too, and
    /// the snapshot with it.
    has_joined: bool,
}

/// A session at the server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) mode: Mode,
    /// The state that the open transaction's reads show.
    pub(super) snapshot: Option<usize>,
    /// What the open transaction has changed.
    pub(super) own: Vec<Change>,
    savepoint: Option<Savepoint>,
    /// The snapshot is made when the commit that goes before it is visible.
    wants_snapshot: bool,
    /// The commit that must be visible before the statement is answered.
    committing: Option<usize>,
    /// Its last commit.
    pub(super) committed: usize,
    /// The server has ended it.
    pub(super) is_over: bool,
    /// How many statements it has run.
    pub(super) runs: u64,
    /// How many of those were a `SET`.
    pub(super) sets: u64,
    /// The last one that `SHOW WARNINGS` tells of.
    pub(super) last: Option<Statement>,
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Rows(Rows),
    Done,
    Failed(u16),
    /// Another session has the lock.
    Blocked,
    /// Done once [`Engine::is_committing`] returns false.
    Committing,
}

/// The number of a session at the server.
pub(super) type Number = usize;

/// The server's storage.
#[derive(Debug)]
pub(super) struct Engine {
    /// After each commit in the log, the first at the start.
    states: Vec<State>,
    /// The rows that each has changed, one after the other.
    changed: Vec<Vec<RowChange>>,
    /// The last commit that reads show.
    visible: usize,
    sessions: Vec<Session>,
    locks: BTreeMap<Place, Number>,
}

impl Engine {
    pub(super) fn new() -> Engine {
        let row = |id: u64| Row {
            group: id % 2,
            value: id,
        };
        let rows = || (0..3).map(|id| (id * ID_STEP, row(id))).collect();
        Engine {
            states: vec![State(std::array::from_fn(|_| rows()))],
            changed: vec![Vec::new()],
            visible: 0,
            sessions: Vec::new(),
            locks: BTreeMap::new(),
        }
    }

    /// How many commits the log has.
    pub(super) fn logged(&self) -> usize {
        self.states.len() - 1
    }

    /// The last commit that reads show.
    pub(super) fn visible(&self) -> usize {
        self.visible
    }

    /// The rows that a commit has changed, one after the other.
    pub(super) fn changed_by(&self, commit: usize) -> &[RowChange] {
        &self.changed[commit]
    }

    /// What a read gives after a commit, in a transaction that has changed rows itself.
    pub(super) fn read_at(&self, commit: usize, read: &Read, own: &[Change]) -> Rows {
        self.states[commit].with(own).read(read)
    }

    pub(super) fn connect(&mut self) -> Number {
        self.sessions.push(Session {
            mode: Mode::new(),
            snapshot: None,
            own: Vec::new(),
            savepoint: None,
            wants_snapshot: false,
            committing: None,
            committed: 0,
            is_over: false,
            runs: 0,
            sets: 0,
            last: None,
        });
        self.sessions.len() - 1
    }

    pub(super) fn session(&self, session: Number) -> &Session {
        &self.sessions[session]
    }

    /// The session is gone; what it was committing stays.
    pub(super) fn disconnect(&mut self, session: Number) {
        self.sessions[session].is_over = true;
        if self.sessions[session].committing.is_none() {
            self.roll_back(session);
        }
    }

    /// The next commit becomes visible, if there is one.
    pub(super) fn show_next(&mut self) {
        if self.visible < self.logged() {
            self.visible += 1;
            let visible = self.visible;
            for number in 0..self.sessions.len() {
                if self.sessions[number].committing == Some(visible) {
                    self.sessions[number].committing = None;
                    self.release(number);
                    let one = &mut self.sessions[number];
                    if std::mem::take(&mut one.wants_snapshot) {
                        one.snapshot = Some(visible);
                    }
                }
            }
        }
    }

    /// Whether the session's commit isn't visible yet.
    pub(super) fn is_committing(&self, session: Number) -> bool {
        self.sessions[session].committing.is_some()
    }

    /// Runs a statement. `Blocked` changes nothing.
    pub(super) fn run(&mut self, session: Number, statement: &Statement) -> Outcome {
        let one = &mut self.sessions[session];
        one.runs += 1;
        one.sets += u64::from(statement.sets());
        if *statement != Statement::Warnings {
            one.last = Some(statement.clone());
        }
        if let Some(keeps) = self.sessions[session].mode.ends(statement) {
            return self.end(session, statement, keeps);
        }
        let outcome = match statement {
            Statement::Read {
                read,
                lock: Lock::None,
            } => Outcome::Rows(self.read(session, read)),
            Statement::Read { read, .. } => {
                let places = self.newest(session).places(read);
                if self.lock(session, &places) {
                    Outcome::Rows(self.newest(session).read(read))
                } else {
                    Outcome::Blocked
                }
            }
            Statement::Write(write) | Statement::Call { write, .. } => self.write(session, write),
            Statement::Warnings => Outcome::Rows(Vec::new()),
            Statement::Savepoint => {
                let has_locks = self.locks.values().any(|owner| *owner == session);
                let one = &mut self.sessions[session];
                let is_in_transaction = one.mode.is_open || !one.mode.autocommit;
                let has_joined = one.snapshot.is_some() || has_locks;
                one.savepoint = is_in_transaction.then_some(Savepoint {
                    changes: one.own.len(),
                    has_joined,
                });
                Outcome::Done
            }
            Statement::RollbackToSavepoint => {
                let one = &mut self.sessions[session];
                let Some(savepoint) = one.savepoint else {
                    let outcome = Outcome::Failed(NO_SAVEPOINT);
                    return self.finish(session, statement, outcome);
                };
                one.own.truncate(savepoint.changes);
                if !savepoint.has_joined {
                    one.snapshot = None;
                    self.release(session);
                }
                Outcome::Done
            }
            _ => Outcome::Done,
        };
        self.finish(session, statement, outcome)
    }

    /// Begins, commits or rolls back.
    fn end(&mut self, session: Number, statement: &Statement, keeps: bool) -> Outcome {
        let outcome = if keeps {
            self.commit(session)
        } else {
            self.roll_back(session);
            Outcome::Done
        };
        let one = &mut self.sessions[session];
        one.mode.take(statement);
        let makes_snapshot = matches!(statement, Statement::Begin(begin) if begin.with_snapshot);
        if makes_snapshot && one.mode.level == Isolation::RepeatableRead {
            if outcome == Outcome::Committing {
                one.wants_snapshot = true;
            } else {
                one.snapshot = Some(self.visible);
            }
        }
        outcome
    }

    fn finish(&mut self, session: Number, statement: &Statement, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Blocked => return outcome,
            // What opens a transaction does so even if it fails.
            _ => self.sessions[session].mode.take(statement),
        }
        let mode = self.sessions[session].mode;
        if mode.is_open || !mode.autocommit {
            return outcome;
        }
        match self.commit(session) {
            Outcome::Committing => Outcome::Committing,
            _ => outcome,
        }
    }

    fn read(&mut self, session: Number, read: &Read) -> Rows {
        let visible = self.visible;
        let one = &mut self.sessions[session];
        let mode = one.mode;
        let is_in_transaction = mode.is_open || !mode.autocommit;
        let level = if mode.is_open {
            mode.level
        } else {
            mode.isolation
        };
        let at = if matches!(read, Read::Nothing { .. }) {
            visible
        } else if is_in_transaction && level == Isolation::RepeatableRead {
            *one.snapshot.get_or_insert(visible)
        } else {
            visible
        };
        self.read_at(at, read, &self.sessions[session].own)
    }

    /// What writes and locking reads see.
    fn newest(&self, session: Number) -> State {
        self.states[self.visible].with(&self.sessions[session].own)
    }

    fn write(&mut self, session: Number, write: &Write) -> Outcome {
        let mode = self.sessions[session].mode;
        if mode.is_open && mode.is_read_only {
            return Outcome::Failed(READ_ONLY);
        }
        let places = self.newest(session).written_places(write);
        if !self.lock(session, &places) {
            return Outcome::Blocked;
        }
        match self.newest(session).changes(write) {
            Ok(changes) => {
                self.sessions[session].own.extend(changes);
                Outcome::Done
            }
            Err(code) => Outcome::Failed(code),
        }
    }

    /// Locks all of them, or none.
    fn lock(&mut self, session: Number, places: &[Place]) -> bool {
        let is_free = |place: &Place| self.locks.get(place).is_none_or(|owner| *owner == session);
        let are_free = places.iter().all(is_free);
        if are_free {
            self.locks
                .extend(places.iter().map(|place| (*place, session)));
        }
        are_free
    }

    fn commit(&mut self, session: Number) -> Outcome {
        let one = &mut self.sessions[session];
        one.snapshot = None;
        one.savepoint = None;
        let own = std::mem::take(&mut one.own);
        if own.is_empty() {
            self.release(session);
            return Outcome::Done;
        }
        let last = self.states.last().unwrap_or_else(|| unreachable!());
        let mut state = last.clone();
        let changes = own.iter().filter_map(|change| state.apply(change));
        let changes = changes.collect();
        self.states.push(state);
        self.changed.push(changes);
        let number = self.logged();
        let one = &mut self.sessions[session];
        one.committing = Some(number);
        one.committed = number;
        Outcome::Committing
    }

    /// The statement fails in place of running: it waited too long, or is a deadlock's victim.
    pub(super) fn fail(&mut self, session: Number, statement: &Statement, code: u16) -> Outcome {
        if code == DEADLOCK {
            self.roll_back(session);
        } else {
            self.sessions[session].mode.take(statement);
        }
        Outcome::Failed(code)
    }

    /// Rolls the open transaction back.
    pub(super) fn roll_back(&mut self, session: Number) {
        let one = &mut self.sessions[session];
        one.own.clear();
        one.snapshot = None;
        one.savepoint = None;
        one.mode.is_open = false;
        one.wants_snapshot = false;
        self.release(session);
    }

    fn release(&mut self, session: Number) {
        self.locks.retain(|_, owner| *owner != session);
    }
}
