//! What a commit changed.

use std::collections::BTreeSet;

use crate::gtid::Gtid;
use crate::table::LoggedTable;
use crate::touched::Touched;
use crate::xa::Xid;

/// Why [`crate::Transactions`] gives a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitKind {
    /// A transaction ended.
    Transaction,
    /// A transaction ended with the statement `COMMIT` instead of a commit event: an engine without
    /// two-phase commit took part. MariaDB then commits it in all of its engines after it has been
    /// logged, in no order with other commits.
    EndedByStatement,
    /// A single statement.
    Standalone,
    /// The same, an `ALTER` that has only begun, or was given up.
    AlterBegins,
    /// An XA transaction was prepared; its rows become visible later.
    XaPrepare,
    /// A prepared XA transaction ended.
    XaEnd,
    /// An XA transaction was prepared and committed at once, and the log says so.
    XaOnePhase,
    /// A group without an end, closed by what came after it.
    Leftover,
    /// An event between transactions that changes nothing: the log is applied up to here.
    Progress,
    /// The server says that changes may be missing, or an event that isn't known.
    Unnamed,
}

/// Changes that become visible together, and where in the log they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The offset in the decoder's file at which the last event ends.
    pub end_offset: u64,
    /// What was touched.
    pub touched: Touched,
    /// Of those tables, the ones of which not every change was given as rows: a statement's text
    /// changed them, their rows couldn't be read, or the transaction was prepared before. It means
    /// nothing if everything was touched.
    pub unlogged: BTreeSet<LoggedTable>,
    /// Of those tables, the ones that a statement named in a table map without giving rows.
    /// MariaDB does that with tables that a cascade or a trigger may reach; one that the statement
    /// also changes directly is named twice. What triggers write is given as rows; what cascades
    /// change isn't. MySQL names none.
    pub only_named: BTreeSet<LoggedTable>,
    /// Definitions of tables changed too: of those that were touched, if they are named.
    pub definitions: bool,
    /// Foreign keys may have been added, or what they name renamed.
    pub relations: bool,
    /// Accounts or privileges changed too.
    pub accounts: bool,
    /// Why it was released here.
    pub kind: CommitKind,
    /// MySQL's identity of the transaction, if a GTID event that could be read began its group.
    pub gtid: Option<Gtid>,
    /// The name of the XA transaction that was prepared or ended, if it can be read.
    pub xid: Option<Xid>,
}

impl Commit {
    /// The commit, if anything may have changed with it.
    pub(crate) fn of_everything(mut self) -> Self {
        self.touched = Touched::Everything;
        self.definitions = true;
        self.relations = true;
        self.accounts = true;
        self
    }
}
