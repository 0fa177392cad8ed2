//! What a session knows of a transaction that memory answers before the server knows of it.

use std::sync::Arc;

use remora_sql::{Transaction, TransactionControl, TransactionDefaults};
use remora_wire::walker::Summary;
use remora_wire::{Capabilities, StatusFlags};

use super::super::snapshot::{Evidence, OpenSnapshot, Passed};
use super::{Effects, SessionSettings, SessionState, TableUse, Written};
use crate::reason::Bypass;
use crate::rules::TransactionReads;
use crate::settings::{Border, Fingerprint, Isolation, SetAnswer, SettingsChange};

impl SessionState {
    /// The flags that the answer to a read carries: with autocommit off, those of the transaction
    /// that it opens, if memory may open it.
    pub(super) fn status_inside(&self) -> StatusFlags {
        self.status_of_first_read().unwrap_or(self.status)
    }

    /// Those, if a read sent now opens a transaction and memory may do that.
    fn status_of_first_read(&self) -> Option<StatusFlags> {
        let opens = (self.may_open_early() || self.snapshots_are_asked_for())
            && self.snapshot == OpenSnapshot::NotMade
            && !self.status.has(StatusFlags::AUTOCOMMIT)
            && !self.status.has(StatusFlags::IN_TRANSACTION);
        let known = self.fingerprint().filter(|_| opens)?;
        known
            .transaction_flags
            .after(Border::FirstRead, self.status)
    }

    /// Whether the server doesn't know of the open transaction.
    #[inline]
    pub fn is_early(&self) -> bool {
        self.snapshot == OpenSnapshot::Early
    }

    /// Which reads inside transactions memory may answer from now on.
    #[inline]
    pub fn set_transaction_reads(&mut self, reads: TransactionReads) {
        if self.transaction_reads != reads {
            self.transaction_reads = reads;
            // What was noted under the other rule may be less than this one needs.
            if !self.is_certainly_outside_transaction() {
                self.snapshot = self.snapshot.after(None, Passed::Unsure);
            }
            self.derive_scope();
        }
    }

    /// Whether memory may answer in a transaction of which the server doesn't know.
    #[inline]
    pub fn may_open_early(&self) -> bool {
        self.transaction_reads == TransactionReads::Early
    }

    /// The session's flags outside a transaction.
    #[inline]
    pub fn status_outside(&self) -> StatusFlags {
        let inside = StatusFlags::IN_TRANSACTION.with(StatusFlags::IN_READ_ONLY_TRANSACTION);
        self.status.without(inside)
    }

    /// Whether the server may be told to make a transaction's snapshot when memory could answer the
    /// first read.
    fn snapshots_are_asked_for(&self) -> bool {
        self.transaction_reads == TransactionReads::AfterSnapshot && self.is_repeatable()
    }

    /// Whether a read sent now is a transaction's first, and memory may answer it only when the
    /// server has made the snapshot.
    #[inline]
    pub fn must_have_snapshot(&self) -> bool {
        self.must_have_snapshot
    }

    /// The same, derived anew.
    pub(super) fn find_must_have_snapshot(&self) -> bool {
        self.transaction_reads == TransactionReads::AfterSnapshot && self.reads_first()
    }

    /// Whether a read sent now sees what the transaction's snapshot will show, and perhaps makes
    /// it: nothing that could make it was sent before.
    #[inline]
    pub fn reads_first(&self) -> bool {
        self.transaction_reads != TransactionReads::Off
            && self.is_repeatable()
            && matches!(self.snapshot, OpenSnapshot::NotMade | OpenSnapshot::Early)
            && !self.is_certainly_outside_transaction()
    }

    /// Whether all reads of the open transaction must show one moment.
    #[inline]
    pub fn is_repeatable(&self) -> bool {
        self.fingerprint()
            .is_some_and(|known| known.isolation == Isolation::RepeatableRead)
    }

    /// What the server's answer to such a statement would say, if it needn't be asked: it knows of
    /// no open transaction and holds no locks of one, and each transaction is like the others.
    pub fn answer_to(&self, control: TransactionControl) -> Option<StatusFlags> {
        let is_outside =
            self.snapshot == OpenSnapshot::NotMade && !self.status.has(StatusFlags::IN_TRANSACTION);
        let is_possible = (is_outside || self.is_early()) && !self.may_keep_table_locks;
        if self.transaction_reads == TransactionReads::Off || !is_possible {
            return None;
        }
        let known = self.fingerprint()?;
        let border = Border::from(control);
        if border == Border::End && !known.ends_transactions_plainly {
            return None;
        }
        let flags = known.transaction_flags.after(border, self.status)?;
        // Whether memory could answer in the transaction, now or later.
        let inside = if border == Border::End {
            self.status.with(StatusFlags::IN_TRANSACTION)
        } else {
            flags
        };
        match self.find_scope_at(inside, OpenSnapshot::Early) {
            Ok(_) | Err(Bypass::SnapshotNotMade) => Some(flags),
            Err(_) => None,
        }
    }

    /// Whether a `SET` of transaction defaults changes nothing else, so that the server can as well
    /// be told later: no transaction is open, and the next one is like the others.
    pub fn may_defer_set(&self) -> bool {
        let is_outside = self.snapshot == OpenSnapshot::NotMade
            && self.status_is_certain
            && !self.may_be_begun
            && !self.status.has(StatusFlags::IN_TRANSACTION)
            && !self.may_keep_table_locks
            && self.written == Written::nothing();
        let is_like_others = !self.next_transaction_differs
            && !self.next_transaction_in_doubt
            && !self.changed_in_transaction;
        let is_seen = self.pass_through.is_none() && !self.code_ran;
        // What is tracked of a statement whose answer ends in an EOF packet, the next OK tells.
        let capabilities = self.capabilities();
        let is_told_at_once = !capabilities.has(Capabilities::SESSION_TRACK)
            || capabilities.has(Capabilities::DEPRECATE_EOF);
        self.transaction_reads != TransactionReads::Off
            && is_outside
            && is_like_others
            && is_seen
            && is_told_at_once
    }

    /// The settings, if they say what such a `SET` does.
    fn settings_that_tell(&self) -> Option<&Arc<Fingerprint>> {
        self.fingerprint().filter(|known| {
            // In MySQL's sessions that began under `SET GLOBAL autocommit = 0` the flag follows the
            // setting only after a change.
            let flag_follows = known.autocommit == self.status.has(StatusFlags::AUTOCOMMIT);
            self.may_defer_set() && flag_follows && known.allows_caching
        })
    }

    /// The settings before and after such a `SET`, if it may be deferred and both are known.
    pub fn settings_around_deferred_set(
        &self,
        sets: TransactionDefaults,
    ) -> Option<(&Arc<Fingerprint>, Arc<Fingerprint>)> {
        let before = self.settings_that_tell()?;
        match self.settings_after(SettingsChange::Transactions(sets)) {
            SessionSettings::Known(after) => Some((before, after)),
            _ => None,
        }
    }

    /// The server has answered a `SET` of transaction defaults. The next such session gets the same
    /// answer.
    pub fn learn_set_answer(&self, text: &[u8], payload: &[u8]) {
        if let Some(known) = self.settings_that_tell() {
            let capabilities = self.capabilities();
            let (status, mark) = (self.status, self.mark_asked_for);
            known
                .set_answers
                .learn((text, status), mark, payload, capabilities);
        }
    }

    /// What the server would answer to it.
    pub fn set_answer(&self, text: &[u8]) -> Option<Arc<SetAnswer>> {
        let known = self.fingerprint()?;
        known
            .set_answers
            .get(text, self.status, self.mark_asked_for)
    }

    /// Memory has answered a statement that begins a transaction, or with autocommit off the first
    /// that reads in one.
    pub fn opens_early(&mut self, status: StatusFlags) {
        self.status = status;
        self.snapshot = OpenSnapshot::Early;
        self.derive_scope();
    }

    /// The same for the first read. Nothing happens if the transaction is open already.
    #[inline]
    pub fn reads_early(&mut self) {
        if let Some(status) = self.status_of_first_read() {
            self.opens_early(status);
        }
    }

    /// The transaction is over, and the server never knew of it. `status`: the flags of the answer.
    pub fn ends_early(&mut self, status: StatusFlags) {
        self.status = status;
        self.snapshot = OpenSnapshot::NotMade;
        self.derive_scope();
    }

    /// The server has made the snapshot of a transaction that memory had answered before.
    pub fn has_snapshot(&mut self, snapshot: OpenSnapshot) {
        self.snapshot = snapshot;
        self.derive_scope();
    }

    /// Whether the server may hold table locks until the transaction ends, though its status shows
    /// none.
    pub fn may_keep_table_locks(&self) -> bool {
        self.may_keep_table_locks
    }

    /// A statement has been answered. With autocommit off, the server keeps the locks of tables
    /// until the transaction ends, also of a statement that failed. It shows no transaction if
    /// none of the tables is transactional.
    pub(super) fn note_locks(&mut self, effects: &Effects, summary: &Summary) {
        let ends_one = matches!(
            effects.transaction,
            Transaction::Begin | Transaction::Commit | Transaction::Rollback
        );
        if self.status.has(StatusFlags::AUTOCOMMIT) || (ends_one && summary.succeeded()) {
            self.may_keep_table_locks = false;
        } else if !ends_one {
            self.may_keep_table_locks |= effects.table_use != TableUse::None;
        }
    }

    /// Which flags an answer has where a transaction begins or ends. It hasn't been noted yet.
    pub(super) fn learn_flags(&self, effects: &Effects, summary: &Summary) {
        let (Some(known), Some(mark)) = (self.fingerprint(), summary.mark) else {
            return;
        };
        let is_like_others = !self.next_transaction_differs
            && !self.next_transaction_in_doubt
            && !self.changed_in_transaction;
        if self.transaction_reads == TransactionReads::Off
            || !summary.succeeded()
            || !self.status_is_certain
            || !is_like_others
        {
            return;
        }
        let is_outside = !self.status.has(StatusFlags::IN_TRANSACTION);
        let border = match effects.control.map(Border::from) {
            Some(border) if is_outside || border == Border::End => border,
            None if is_outside
                && !self.status.has(StatusFlags::AUTOCOMMIT)
                && effects.is_plain()
                && matches!(effects.snapshot, Evidence::Seen(_)) =>
            {
                Border::FirstRead
            }
            _ => return,
        };
        known.transaction_flags.learn(border, self.status, mark);
    }
}
