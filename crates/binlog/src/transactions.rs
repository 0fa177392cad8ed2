//! From events to commits: which tables, released at which position.

use std::collections::BTreeSet;

use crate::commit::{Commit, CommitKind};
use crate::decoder::Decoded;
use crate::event::{Event, GroupBegin, GroupShape, Query, XaSide};
use crate::group::Group;
use crate::gtid::Gtid;
use crate::table::LoggedTable;
use crate::touched::Touched;
use crate::xa::{Prepared, PreparedTransactions, Xid};

/// What the caller's reading of a query event's text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryMeaning {
    /// `BEGIN`.
    Begin,
    /// `COMMIT` or `ROLLBACK`: the transaction ends here.
    End,
    /// Changes nothing and ends nothing: `SAVEPOINT`, `ROLLBACK TO`, `XA END`, comments.
    Nothing,
    /// Changes these tables.
    Tables {
        /// Names as the server would resolve them.
        tables: Vec<LoggedTable>,
        /// Their definitions changed.
        definitions: bool,
        /// Foreign keys may have been added, or what they name renamed.
        relations: bool,
    },
    /// A prepared XA transaction was committed or rolled back. Its tables were named at its
    /// prepare; if that wasn't seen, everything may have changed.
    XaEnd,
    /// Accounts or privileges changed.
    Accounts,
    /// Definitions changed, of tables that it doesn't name. No account and no privilege did.
    Definitions,
    /// Anything may have changed.
    Everything,
}

/// Collects the tables of the open group and gives them out at its end.
#[derive(Debug)]
pub struct Transactions {
    tables_max: usize,
    open: Option<Group>,
    over_bound: u64,
    prepared: PreparedTransactions,
}

impl Transactions {
    /// At most `tables_max` tables of one group are told apart; more are [`Touched::Everything`].
    /// So many are also remembered of all prepared XA transactions together; the end of one that
    /// isn't remembered is of everything.
    pub fn new(tables_max: usize) -> Self {
        Self {
            tables_max,
            open: None,
            over_bound: 0,
            prepared: PreparedTransactions::new(tables_max),
        }
    }

    /// How many groups had more tables than are told apart or remembered, since the start.
    pub fn over_bound(&self) -> u64 {
        self.over_bound
    }

    /// Whether a group has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes the next event. `meaning` reads a query event's text. Gives what ends with it: at most
    /// two commits (a leftover group, then the event's own).
    ///
    /// `offset_before` is the decoder's offset before the event (where a leftover ends).
    pub fn apply(
        &mut self,
        decoded: &Decoded,
        offset_before: u64,
        mut meaning: impl FnMut(&Query) -> QueryMeaning,
    ) -> [Option<Commit>; 2] {
        let Some(end) = decoded.end_offset else {
            // Not in the log. It can't end a group and moves nothing on; but a change announced by
            // an event that has no place must not be lost.
            return [None, self.apply_unplaced(&decoded.event, offset_before)];
        };
        if decoded.header.end_offset_low == 0 {
            self.inside(&decoded.event, end, meaning);
            return [None, None];
        }
        match &decoded.event {
            Event::Gtid { gtid, group } => [self.begin(gtid.clone(), *group, offset_before), None],
            Event::Rotate { .. } | Event::FormatDescription(_) | Event::Stop => {
                [self.leftover(offset_before), Some(progress(end))]
            }
            Event::Payload(events) => [None, self.payload(events.as_deref(), end, &mut meaning)],
            event => [None, self.step(event, end, &mut meaning)],
        }
    }

    /// An event that doesn't say where it ends, and so can't end a group.
    fn inside(&mut self, event: &Event, end: u64, mut meaning: impl FnMut(&Query) -> QueryMeaning) {
        let ended = self.step(event, end, &mut meaning);
        if ended.is_some_and(|commit| commit.kind != CommitKind::Progress) {
            // It looks like an end all the same. The next event with a place releases the group.
            self.group().may_be_anything();
        }
    }

    /// An event inside a group, or outside any.
    fn step(
        &mut self,
        event: &Event,
        end: u64,
        meaning: &mut impl FnMut(&Query) -> QueryMeaning,
    ) -> Option<Commit> {
        match event {
            Event::TableMap { table, .. } => {
                self.table(Some(&table.table));
                let tables_max = self.tables_max;
                let is_over = self.group().map(table, tables_max);
                self.over_bound += u64::from(is_over);
                None
            }
            Event::Rows {
                table,
                rows,
                statement_ends,
                ..
            } => {
                // A rows event's table was named by its table map. If it wasn't, one is missing.
                self.table(table.as_deref().map(|map| &map.table));
                self.group()
                    .rows(table.as_ref(), rows.is_some(), *statement_ends);
                None
            }
            Event::Xid => Some(self.end(end, CommitKind::Transaction)),
            Event::XaPrepare { one_phase, xid } => Some(self.prepare(*one_phase, xid.clone(), end)),
            Event::Query(query) => self.query(query, meaning(query), end),
            Event::Incident => Some(self.unnamed(end)),
            Event::Unnamed(_) => self.unknown(end),
            // In a payload, or without a place: not what servers write.
            Event::Payload(_) => {
                self.group().may_be_anything();
                None
            }
            // The others don't come here, or change nothing.
            _ => self.quiet(end),
        }
    }

    /// A whole transaction in one event. What it holds ends with it.
    fn payload(
        &mut self,
        events: Option<&[Event]>,
        end: u64,
        meaning: &mut impl FnMut(&Query) -> QueryMeaning,
    ) -> Option<Commit> {
        let Some(events) = events else {
            return Some(self.unnamed(end));
        };
        let mut ended: Option<Commit> = None;
        for event in events {
            if let Some(commit) = self.step(event, end, meaning) {
                ended = Some(match ended {
                    None => commit,
                    // More than one: not what servers write.
                    Some(earlier) => earlier.of_everything(),
                });
            }
        }
        ended
    }

    fn apply_unplaced(&mut self, event: &Event, offset: u64) -> Option<Commit> {
        match event {
            Event::Incident | Event::Unnamed(_) | Event::Payload(_) => Some(self.unnamed(offset)),
            Event::TableMap { .. } | Event::Rows { .. } | Event::Query(_) => {
                self.group().may_be_anything();
                None
            }
            _ => None,
        }
    }

    fn begin(
        &mut self,
        gtid: Option<Gtid>,
        begin: GroupBegin,
        offset_before: u64,
    ) -> Option<Commit> {
        let leftover = self.leftover(offset_before);
        let group = self.open.insert(Group::new(begin.shape));
        group.gtid = gtid;
        group.definitions = begin.ddl;
        group.begins_alter = begin.begins_alter;
        group.ends_prepared = begin.xa == Some(XaSide::Complete);
        leftover
    }

    fn leftover(&mut self, end: u64) -> Option<Commit> {
        let group = self.open.take()?;
        Some(group.release(end, CommitKind::Leftover))
    }

    fn group(&mut self) -> &mut Group {
        self.open
            .get_or_insert_with(|| Group::new(GroupShape::CommitEvent))
    }

    fn table(&mut self, table: Option<&LoggedTable>) {
        let tables_max = self.tables_max;
        let group = self.group();
        if group.shape == GroupShape::ToldByFirstStatement {
            // Rows are only in transactions that end with a commit event.
            group.shape = GroupShape::CommitEvent;
        }
        match table {
            Some(table) => {
                let is_over = group.touch(table, tables_max);
                self.over_bound += u64::from(is_over);
            }
            None => group.may_be_anything(),
        }
    }

    fn end(&mut self, end: u64, kind: CommitKind) -> Commit {
        let group = self.open.take().unwrap_or_else(|| {
            // An end without a beginning: something was missed.
            let mut group = Group::new(GroupShape::CommitEvent);
            group.may_be_anything();
            group
        });
        group.release(end, kind)
    }

    fn prepare(&mut self, one_phase: bool, xid: Option<Xid>, end: u64) -> Commit {
        if one_phase {
            let mut commit = self.end(end, CommitKind::XaOnePhase);
            commit.xid = xid;
            return commit;
        }
        let mut commit = self.end(end, CommitKind::XaPrepare);
        commit.xid.clone_from(&xid);
        if let Some(xid) = xid {
            let prepared = Prepared {
                touched: commit.touched.clone(),
                accounts: commit.accounts,
            };
            self.over_bound += u64::from(!self.prepared.remember(xid, prepared));
        }
        commit
    }

    fn query(&mut self, query: &Query, meaning: QueryMeaning, end: u64) -> Option<Commit> {
        let single = self.settle_shape(&meaning);
        if let Some(group) = &mut self.open {
            group.end_statement();
        }
        let tables_max = self.tables_max;
        let mut kind = CommitKind::Standalone;
        match meaning {
            QueryMeaning::End => {
                let is_commit = query.text.eq_ignore_ascii_case(b"COMMIT");
                let kind = if is_commit {
                    CommitKind::EndedByStatement
                } else {
                    // Rolled back. What it has is of engines that can't.
                    CommitKind::Transaction
                };
                return Some(self.end(end, kind));
            }
            QueryMeaning::Begin => {
                self.group();
            }
            QueryMeaning::Nothing => {}
            QueryMeaning::Tables {
                tables,
                definitions,
                relations,
            } => {
                let group = self.group();
                group.definitions |= definitions;
                group.relations |= relations;
                let mut is_over = false;
                for table in tables {
                    is_over |= group.touch(&table, tables_max);
                    group.add_unlogged(&table);
                }
                self.over_bound += u64::from(is_over);
            }
            QueryMeaning::Accounts => {
                let group = self.group();
                group.accounts = true;
                group.touched = Touched::Everything;
            }
            QueryMeaning::XaEnd => {
                kind = CommitKind::XaEnd;
                let xid = Xid::of_end(&query.text);
                let prepared = xid.as_ref().and_then(|xid| self.prepared.take(xid));
                let group = self.group();
                group.xid = xid;
                group.end_prepared(prepared.unwrap_or_else(Prepared::unknown));
            }
            QueryMeaning::Definitions => {
                let group = self.group();
                group.definitions = true;
                group.relations = true;
                group.touched = Touched::Everything;
            }
            QueryMeaning::Everything => self.group().may_be_anything(),
        }
        if !single {
            return None;
        }
        let group = self
            .open
            .take()
            .unwrap_or_else(|| Group::new(GroupShape::OneStatement));
        if group.begins_alter && kind == CommitKind::Standalone {
            kind = CommitKind::AlterBegins;
        }
        Some(group.release(end, kind))
    }

    /// Whether the group, or what is outside any, ends with this statement.
    fn settle_shape(&mut self, meaning: &QueryMeaning) -> bool {
        let begins = *meaning == QueryMeaning::Begin;
        match &mut self.open {
            None => !begins,
            Some(group) => match group.shape {
                GroupShape::CommitEvent => false,
                GroupShape::ToldByFirstStatement if begins => {
                    group.shape = GroupShape::CommitEvent;
                    false
                }
                GroupShape::OneStatement | GroupShape::ToldByFirstStatement => true,
            },
        }
    }

    fn unnamed(&mut self, end: u64) -> Commit {
        let mut group = self
            .open
            .take()
            .unwrap_or_else(|| Group::new(GroupShape::CommitEvent));
        group.may_be_anything();
        group.release(end, CommitKind::Unnamed)
    }

    fn unknown(&mut self, end: u64) -> Option<Commit> {
        match &mut self.open {
            Some(group) if group.shape != GroupShape::OneStatement => {
                group.may_be_anything();
                None
            }
            _ => Some(self.unnamed(end)),
        }
    }

    fn quiet(&mut self, end: u64) -> Option<Commit> {
        self.open.is_none().then(|| progress(end))
    }
}

fn progress(end_offset: u64) -> Commit {
    Commit {
        end_offset,
        touched: Touched::nothing(),
        unlogged: BTreeSet::new(),
        only_named: BTreeSet::new(),
        definitions: false,
        relations: false,
        accounts: false,
        kind: CommitKind::Progress,
        gtid: None,
        xid: None,
    }
}
