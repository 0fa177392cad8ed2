//! The group of events that is open.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::column::TableMap;
use crate::commit::{Commit, CommitKind};
use crate::event::GroupShape;
use crate::gtid::Gtid;
use crate::table::LoggedTable;
use crate::touched::Touched;
use crate::xa::{Prepared, Xid};

/// A group of events: a transaction, or a statement by itself.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub(crate) struct Group {
    pub(crate) shape: GroupShape,
    pub(crate) touched: Touched,
    pub(crate) unlogged: BTreeSet<LoggedTable>,
    pub(crate) only_named: BTreeSet<LoggedTable>,
    /// The tables that the open statement has named, without those whose rows it has given.
    pub(crate) mapped: Vec<Arc<TableMap>>,
    pub(crate) definitions: bool,
    pub(crate) relations: bool,
    pub(crate) accounts: bool,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) xid: Option<Xid>,
    /// It says that an `ALTER` has begun.
    pub(crate) begins_alter: bool,
    /// It ends a prepared XA transaction, and nothing has said yet which.
    pub(crate) ends_prepared: bool,
}

impl Group {
    pub(crate) fn new(shape: GroupShape) -> Self {
        Self {
            shape,
            touched: Touched::nothing(),
            unlogged: BTreeSet::new(),
            only_named: BTreeSet::new(),
            mapped: Vec::new(),
            definitions: false,
            relations: false,
            accounts: false,
            gtid: None,
            xid: None,
            begins_alter: false,
            ends_prepared: false,
        }
    }

    pub(crate) fn release(mut self, end_offset: u64, kind: CommitKind) -> Commit {
        if self.ends_prepared {
            self.end_prepared(Prepared::unknown());
        }
        self.end_statement();
        Commit {
            end_offset,
            touched: self.touched,
            unlogged: self.unlogged,
            only_named: self.only_named,
            definitions: self.definitions,
            relations: self.relations,
            accounts: self.accounts,
            kind,
            gtid: self.gtid,
            xid: self.xid,
        }
    }

    /// A table changes. True if it is one too many and all count from here on, with those that
    /// hold accounts.
    pub(crate) fn touch(&mut self, table: &LoggedTable, tables_max: usize) -> bool {
        let is_over = self.touched.add(table.clone(), tables_max);
        self.accounts |= is_over;
        is_over
    }

    /// Not every change of the table is given as rows.
    pub(crate) fn add_unlogged(&mut self, table: &LoggedTable) {
        // It is among those touched, which are bounded.
        if matches!(&self.touched, Touched::Tables(tables) if tables.contains(table)) {
            self.unlogged.insert(table.clone());
        }
    }

    /// The open statement names a table. True if that is too often and all count from here on.
    pub(crate) fn map(&mut self, map: &Arc<TableMap>, tables_max: usize) -> bool {
        if self.touched == Touched::Everything {
            return false;
        }
        let is_over = self.mapped.len() >= tables_max;
        if is_over {
            self.touched = Touched::Everything;
            self.accounts = true;
        } else {
            self.mapped.push(Arc::clone(map));
        }
        is_over
    }

    /// A row event of the open statement. Only the map that its rows are read by is done with: a
    /// table that was named twice is one that a cascade may reach besides.
    pub(crate) fn rows(
        &mut self,
        map: Option<&Arc<TableMap>>,
        is_read: bool,
        statement_ends: bool,
    ) {
        if let Some(map) = map {
            if is_read {
                self.mapped.retain(|mapped| !Arc::ptr_eq(mapped, map));
            } else {
                self.add_unlogged(&map.table);
            }
        }
        if statement_ends {
            self.end_statement();
        }
    }

    pub(crate) fn end_statement(&mut self) {
        for map in std::mem::take(&mut self.mapped) {
            // It is among those touched, which are bounded.
            if matches!(&self.touched, Touched::Tables(tables) if tables.contains(&map.table)) {
                self.only_named.insert(map.table.clone());
            }
        }
    }

    /// Something in it can't be named.
    pub(crate) fn may_be_anything(&mut self) {
        self.touched = Touched::Everything;
        self.definitions = true;
        self.relations = true;
        self.accounts = true;
    }

    /// Takes in what becomes visible with a prepared transaction's end. It touches nothing else.
    pub(crate) fn end_prepared(&mut self, prepared: Prepared) {
        self.ends_prepared = false;
        self.accounts |= prepared.accounts;
        let is_first = self.touched.is_nothing();
        self.touched = if is_first {
            if let Touched::Tables(tables) = &prepared.touched {
                self.unlogged.clone_from(tables);
            }
            prepared.touched
        } else {
            self.accounts = true;
            Touched::Everything
        };
    }
}
