//! What a statement does besides answering.

use remora_cache::Definitions;
use remora_sql::{SessionEffect, Transaction, TransactionControl};

use super::super::counts::CreatedCount;
use super::super::snapshot::Evidence;

/// Whether the server has used a table with transactions for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnTransaction {
    /// Perhaps.
    Unknown,
    /// If code ran with it that may have said what the next transaction is like.
    IfCodeRan,
    /// Certainly.
    Certain,
}

/// Code that runs with a statement and isn't in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnseenCode {
    /// None.
    None,
    /// There may be some, for all that is known.
    Possible,
    /// It is known to be there: a view that calls functions, a trigger.
    Known,
}

/// Whether a statement uses a table. If so, the table's lock stays until the transaction ends, and
/// the server empties its list of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableUse {
    /// Certainly not.
    None,
    /// Perhaps.
    Possible,
    /// Certainly.
    Certain,
}

/// What a statement does besides answering.
#[derive(Debug, Clone)]
pub struct Effects {
    /// To the session's state.
    pub session: SessionEffect,
    /// The statement, if it is a `SET` to literals that determines the settings after it.
    pub literal_set: Option<Box<[u8]>>,
    /// To the transaction.
    pub transaction: Transaction,
    /// That, if it is all that the statement says.
    pub control: Option<TransactionControl>,
    /// The code that runs with it and isn't seen: triggers, functions behind views.
    pub unseen_code: UnseenCode,
    /// To the server's count of the tables that the session has created.
    pub created: CreatedCount,
    /// It may run text that isn't seen, which may turn the log off for the session.
    pub may_turn_log_off: bool,
    /// What it does to the definitions that tell which code other statements run.
    pub definitions: Definitions,
    /// Whether it had a transaction of its own, if it stood alone. Only looked for where it
    /// matters.
    pub own_transaction: OwnTransaction,
    /// The server lets no code that isn't seen say what the next transaction is like. Only looked
    /// for where it matters.
    pub code_leaves_next_transaction: bool,
    /// The server may load a routine for it that the text names. If that is of another schema, the
    /// server chooses that schema and then the session's again: it looks at privileges.
    pub may_load_routine: bool,
    /// Whether it uses a table.
    pub table_use: TableUse,
    /// What it tells of the transaction's snapshot.
    pub snapshot: Evidence,
}

impl Effects {
    /// None.
    pub const NONE: Effects = Effects {
        session: SessionEffect::None,
        literal_set: None,
        transaction: Transaction::None,
        control: None,
        unseen_code: UnseenCode::None,
        created: CreatedCount::Same,
        may_turn_log_off: false,
        definitions: Definitions::Kept,
        own_transaction: OwnTransaction::Unknown,
        code_leaves_next_transaction: false,
        may_load_routine: false,
        table_use: TableUse::None,
        snapshot: Evidence::None,
    };

    /// Whether it is certain that the transaction is the same afterwards.
    pub(super) fn is_plain(&self) -> bool {
        let leaves_session = matches!(self.session, SessionEffect::None | SessionEffect::UserLock);
        leaves_session && self.unseen_code == UnseenCode::None && !self.may_turn_log_off
    }

    /// Whether code runs with it that may say what the next transaction is like. Whatever may run
    /// code for all that is known doesn't count: there is much of that, and each such session would
    /// have to read once more before memory answers it.
    #[inline]
    pub fn runs_code(&self) -> bool {
        self.unseen_code == UnseenCode::Known || self.session.runs_code()
    }

    /// Whether the statement may end the open transaction with a commit.
    #[inline]
    pub fn may_commit(&self) -> bool {
        !matches!(
            self.transaction,
            Transaction::None | Transaction::Savepoint | Transaction::RollbackToSavepoint
        )
    }
}
