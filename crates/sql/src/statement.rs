//! What the analysis of a statement says.

use crate::everything::EverythingReason;
use crate::name::TableName;
use crate::reads::NarrowedWrite;
use crate::refusal::Refusal;
use crate::select::Select;
use remora_reason::reasons;

/// The kinds of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// `SELECT`, also in parentheses, with `WITH` before it, or as set operations.
    Select,
    /// `INSERT`
    Insert,
    /// `REPLACE`
    Replace,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
    /// `LOAD DATA`, `LOAD XML`
    Load,
    /// `CALL`
    Call,
    /// `DO`
    Do,
    /// Statements that create, change or drop objects, and those that maintain tables.
    Ddl,
    /// Accounts, roles and privileges.
    AccountManagement,
    /// `SET`
    Set,
    /// `USE`
    Use,
    /// `SHOW`
    Show,
    /// `EXPLAIN`, `DESCRIBE`, `HELP`
    Explain,
    /// `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`…
    Transaction,
    /// `XA …`
    Xa,
    /// `PREPARE`, `DEALLOCATE PREPARE`
    Prepare,
    /// `EXECUTE`, `EXECUTE IMMEDIATE`
    Execute,
    /// `LOCK TABLES`, `UNLOCK TABLES`
    Lock,
    /// `FLUSH`, `RESET`
    Flush,
    /// `HANDLER`
    Handler,
    /// `GET DIAGNOSTICS`, `SIGNAL`…
    Diagnostics,
    /// Several statements in one text, or a compound statement.
    Multi,
    /// Nothing but white space and comments.
    Empty,
    /// Anything else.
    Other,
}

/// What a statement may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// No table.
    Nothing,
    /// At most these tables, and what their triggers, foreign keys and view definitions lead to
    /// (the catalogue knows those). For [`StatementKind::Ddl`] also their definitions.
    Tables(Vec<TableName>),
    /// Possibly anything.
    Everything(EverythingReason),
}

reasons! {
    /// What may have changed the session in a way that can't be seen.
    UnknownEffect {
        StoredFunction: "stored_function",
            "A stored function may have set variables or created temporary tables.";
        StoredProcedure: "stored_procedure",
            "A stored procedure may have set variables or created temporary tables.";
        DynamicSql: "dynamic_sql", "A prepared text was executed that is not seen here.";
        MultipleStatements: "multiple_statements",
            "The text holds several statements, of which one isn't understood or may change the session; or a compound statement.";
        UnknownVariable: "unknown_variable", "A variable was set whose effect is not known.";
        QueryBesideAutocommit: "query_beside_autocommit",
            "A query ran in a statement that sets autocommit. What it saw may stay, and no flag tells.";
        DroppedSchema: "dropped_schema", "The default schema may have been dropped.";
        DistributedTransaction: "distributed_transaction", "An XA transaction is under way.";
        UnknownStatement: "unknown_statement", "The statement is not known.";
        Unreadable: "unreadable", "The text can't be read with certainty.";
        Ambiguous: "ambiguous", "It would do something else under another sql_mode or character set, and the session's isn't known or hides quotes.";
        Truncated: "truncated", "The statement is too long to be read to its end.";
    }
}

/// What a statement does to the session's state, as far as a cache cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionEffect {
    /// Nothing.
    None,
    /// Variables may have changed that are listed in [`crate::RESULT_SETTINGS`] or
    /// [`crate::CONTACT_SETTINGS`], or the role.
    SettingsChanged,
    /// The same, of what the session's transactions are like, and of nothing else: `SET SESSION
    /// TRANSACTION …`, `SET autocommit = …`. What the settings are now follows from what they were,
    /// and the statement has read nothing.
    TransactionDefaults(TransactionDefaults),
    /// `SET ROLE`.
    Role,
    /// The default schema changed (`USE`), and with it the database's character set variables.
    DefaultSchema,
    /// `SET TRANSACTION` without `SESSION` or `GLOBAL`: for the next transaction only.
    NextTransaction,
    /// A temporary table was created, or dropped as such: names may mean something else from now
    /// on.
    TemporaryTable,
    /// Tables or the whole server were locked by this session.
    LockedTables,
    /// The session's table locks ended.
    UnlockedTables,
    /// Settings were changed that decide whether and how this session's changes are logged.
    BinlogOff,
    /// A user lock was taken or released (`GET_LOCK`): harmless, but never to be answered from
    /// memory.
    UserLock,
    /// Anything: the state isn't known any more. After code ([`SessionEffect::runs_code`]) the
    /// server can tell what matters; else the session must pass through from now on.
    Unknown(UnknownEffect),
}

impl SessionEffect {
    /// Whether the text runs code that isn't in it: a function, a procedure, a prepared text.
    #[inline]
    pub fn runs_code(self) -> bool {
        self == SessionEffect::Unknown(UnknownEffect::StoredFunction) || self.runs_procedure()
    }

    /// Whether the text may run other statements that aren't seen, even definitions. A stored
    /// function can't change those.
    pub(crate) fn may_run_more(self) -> bool {
        matches!(self, SessionEffect::Unknown(why) if why != UnknownEffect::StoredFunction)
    }

    /// Whether that code can do what functions and triggers can't: end a transaction, lock tables,
    /// take up a role.
    #[inline]
    pub fn runs_procedure(self) -> bool {
        use UnknownEffect::{DynamicSql, StoredProcedure};
        matches!(self, SessionEffect::Unknown(StoredProcedure | DynamicSql))
    }
}

/// What a `SET` says of the session's transactions; what it doesn't name stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TransactionDefaults {
    /// Their isolation level.
    pub isolation: Option<IsolationLevel>,
    /// Whether they only read.
    pub read_only: Option<bool>,
    /// Whether each statement without `BEGIN` is one.
    pub autocommit: Option<bool>,
}

impl TransactionDefaults {
    /// What this and another such statement behind it say together.
    #[must_use]
    pub fn then(self, later: TransactionDefaults) -> TransactionDefaults {
        TransactionDefaults {
            isolation: later.isolation.or(self.isolation),
            read_only: later.read_only.or(self.read_only),
            autocommit: later.autocommit.or(self.autocommit),
        }
    }
}

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "their names are SQL's")]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What a statement does to the session's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transaction {
    /// Nothing: it runs inside the transaction that there is, or in one of its own.
    None,
    /// It begins one (and commits the one before).
    Begin,
    /// It commits, also with `CHAIN` or `RELEASE`.
    Commit,
    /// It rolls back, also with `CHAIN` or `RELEASE`.
    Rollback,
    /// `SAVEPOINT`, `RELEASE SAVEPOINT`.
    Savepoint,
    /// `ROLLBACK TO`. An engine that the transaction had not used when the savepoint was set is
    /// rolled back altogether, and forgets the transaction's snapshot.
    RollbackToSavepoint,
    /// It commits by itself, or may do so.
    ImplicitCommit,
}

/// A statement that begins or ends a transaction in the ordinary way, and says nothing else. What a
/// server answers to it depends on the session's settings alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionControl {
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `START TRANSACTION READ ONLY`.
    BeginReadOnly,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
}

/// The analysis of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// What a cacheable statement reads, or why it can't be cached. If it can be cached, it
    /// writes nothing, leaves the session and the transaction as they are, and depends on no
    /// other statement.
    pub cacheable: Result<Select, Refusal>,
    /// What it may change.
    pub writes: Writes,
    /// Which rows of its one table it changes, if the text says so. Triggers and foreign keys may
    /// change others.
    pub narrowed: Option<NarrowedWrite>,
    /// What it does to the session.
    pub session: SessionEffect,
    /// What it does to the transaction.
    pub transaction: Transaction,
    /// That, if it is all that the statement says.
    pub control: Option<TransactionControl>,
    /// Its result depends on the statement before it (`FOUND_ROWS()`, `ROW_COUNT()`,
    /// `SHOW WARNINGS`, `GET DIAGNOSTICS`, `@@warning_count`…): it must reach a server that has
    /// executed that statement.
    pub diagnostics: bool,
    /// It may change what a read of its tables gives without a trace in the log: it moves rows from
    /// one partition to another, with `LOCAL` or `NO_WRITE_TO_BINLOG`. Or it isn't understood and
    /// has such words.
    pub unlogged: bool,
}

impl Statement {
    /// A statement that can't be cached and does nothing else of note.
    pub(crate) fn harmless(kind: StatementKind, refusal: Refusal) -> Statement {
        Statement {
            kind,
            cacheable: Err(refusal),
            writes: Writes::Nothing,
            narrowed: None,
            session: SessionEffect::None,
            transaction: Transaction::None,
            control: None,
            diagnostics: false,
            unlogged: false,
        }
    }

    /// A statement that may have done anything.
    pub(crate) fn anything(
        kind: StatementKind,
        refusal: Refusal,
        reason: EverythingReason,
        effect: UnknownEffect,
    ) -> Statement {
        Statement {
            kind,
            cacheable: Err(refusal),
            writes: Writes::Everything(reason),
            narrowed: None,
            session: SessionEffect::Unknown(effect),
            transaction: Transaction::ImplicitCommit,
            control: None,
            diagnostics: false,
            unlogged: false,
        }
    }
}
