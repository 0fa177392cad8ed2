//! What Remora knows of a session: its settings, its transaction, what it has written.
//!
//! Plain values without I/O. The rule for every field: in doubt it says the thing that makes the
//! statement go to the server, and the fence wider.

mod early;
mod effects;
#[cfg(test)]
mod tests;
mod written;

use std::sync::Arc;

use remora_cache::{AsOf, Scope, Snapshot};
use remora_sql::{SessionEffect, Transaction, TransactionControl, UnknownEffect};
use remora_wire::response::EndMark;
use remora_wire::walker::{Ending, Summary};
use remora_wire::{Capabilities, StatusFlags};

use super::counts::{CreatedCount, SessionCounts, TablesCreated};
use super::snapshot::{Evidence, OpenSnapshot, Passed};
use crate::emulation::{CacheType, OwnValues};
use crate::key::{RowFormat, scope_of, status_bits};
use crate::reason::Bypass;
use crate::rules::TransactionReads;
use crate::settings::SettingsChange;
use crate::settings::TextCharset;
use crate::settings::{Fingerprint, Flavour, Isolation};

pub use self::effects::{Effects, OwnTransaction, TableUse, UnseenCode};
pub use self::written::{WriteScope, Written};

/// The session's settings, if they are known.
#[derive(Debug, Clone)]
pub enum SessionSettings {
    /// They must be asked for before the next look-up.
    Unknown,
    /// They must be asked for. They are those of this fingerprint, changed only by these
    /// statements, which succeeded.
    After(Arc<Fingerprint>, SettingsChange),
    /// The server was asked and didn't tell. It isn't asked again before they change.
    Unavailable,
    /// They are these.
    Known(Arc<Fingerprint>),
}

/// A message that could begin a transaction or read in it.
#[derive(Debug, Clone, Copy)]
struct Sending {
    /// The watermark before it was sent, if it was wanted and known.
    low: Option<AsOf>,
}

/// A session between two statements.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a doubt of its own")]
pub struct SessionState {
    flavour: Flavour,
    settings: SessionSettings,
    /// The number of the mark that the server was asked for with the settings.
    mark_asked_for: u64,
    /// Whether the session has seen that mark.
    sees_mark: bool,
    status: StatusFlags,
    /// Whether `status` is what the server would say now: an error leaves that open.
    status_is_certain: bool,
    /// The server's list of warnings may have some.
    may_have_warnings: bool,
    written: Written,
    /// A setting changed inside the open transaction, whose isolation level is thus not the one
    /// that the server reports.
    changed_in_transaction: bool,
    /// The open transaction may have an access mode of its own: no plain `BEGIN` began it.
    begun_otherwise: bool,
    /// The server may hold table locks until the transaction ends, though its status shows none.
    may_keep_table_locks: bool,
    /// Code that isn't seen ran in the open transaction, and may have changed settings.
    code_ran_inside: bool,
    /// An error may have rolled a transaction back. MySQL 5.6 goes on with `BEGIN` unseen then.
    may_be_begun: bool,
    /// `SET TRANSACTION` was seen: the next transaction isn't like the others.
    next_transaction_differs: bool,
    /// The next one may: code ran, or the last was so and ended without `COMMIT` or `ROLLBACK`.
    next_transaction_in_doubt: bool,
    /// Why the session passes everything through until it is reset.
    pass_through: Option<Bypass>,
    /// The client has sent `COM_SET_OPTION`: multi-statements may be on or off.
    may_have_switched_multi_statements: bool,
    /// It may hold locks of `GET_LOCK()`.
    may_have_user_locks: bool,
    /// Its changes don't reach the binary log, or not as rows.
    writes_are_unlogged: bool,
    /// Something ran that may have turned the log off for the session.
    log_is_doubtful: bool,
    /// Since that was last known, text ran that isn't seen: it may have turned the log off before
    /// it wrote.
    ran_text: bool,
    /// When the settings were last known, the server read a language that Remora doesn't.
    was_foreign: bool,
    /// The open transaction has written while that wasn't known.
    wrote_in_doubt: bool,
    /// Code ran that isn't seen: triggers, functions behind views. It may have created temporary
    /// tables, which would stand in for others.
    code_ran: bool,
    /// That code may also have done what functions and triggers can't: it was a procedure, or text
    /// that is executed.
    procedure_ran: bool,
    tables_created: TablesCreated,
    /// Its own values of the query cache's variables.
    own: OwnValues,
    /// Which reads inside transactions memory may answer at `REPEATABLE READ`.
    transaction_reads: TransactionReads,
    /// The snapshot of the open transaction, if that is one of those.
    snapshot: OpenSnapshot,
    /// The message under way, if it could begin a transaction or read in it.
    sending: Option<Sending>,
    /// Where its look-ups go, or why it has none. Derived from the fields above.
    scope: Result<Scope, Bypass>,
    /// Whether the next read is a transaction's first, and the snapshot must be made before memory
    /// may answer it. Derived likewise.
    must_have_snapshot: bool,
}

impl SessionState {
    /// A session that has just logged in.
    pub fn new(flavour: Flavour, mark: Option<EndMark>, own: OwnValues) -> SessionState {
        let mut state = SessionState {
            flavour,
            settings: SessionSettings::Unknown,
            mark_asked_for: 0,
            sees_mark: false,
            status: mark.unwrap_or_default().status,
            status_is_certain: mark.is_some(),
            may_have_warnings: false,
            written: Written::nothing(),
            changed_in_transaction: false,
            begun_otherwise: false,
            may_keep_table_locks: false,
            code_ran_inside: false,
            may_be_begun: false,
            next_transaction_differs: false,
            next_transaction_in_doubt: false,
            pass_through: None,
            may_have_switched_multi_statements: false,
            may_have_user_locks: false,
            writes_are_unlogged: false,
            // Nobody knows what a login does for this account.
            log_is_doubtful: true,
            ran_text: false,
            was_foreign: false,
            wrote_in_doubt: false,
            code_ran: false,
            procedure_ran: false,
            tables_created: TablesCreated::default(),
            own,
            transaction_reads: TransactionReads::Off,
            snapshot: OpenSnapshot::NotMade,
            sending: None,
            scope: Err(Bypass::SettingsUnknown),
            must_have_snapshot: false,
        };
        state.derive_scope();
        state
    }

    /// The same, with these reads inside transactions.
    #[must_use]
    pub fn with_transaction_reads(self, transaction_reads: TransactionReads) -> SessionState {
        SessionState {
            transaction_reads,
            ..self
        }
    }

    /// The protocol features in use.
    #[inline]
    pub fn capabilities(&self) -> Capabilities {
        self.flavour.capabilities
    }

    /// The flavour that goes into the fingerprint.
    #[inline]
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The settings, if they are known.
    #[inline]
    pub fn fingerprint(&self) -> Option<&Arc<Fingerprint>> {
        match &self.settings {
            SessionSettings::Known(fingerprint) => Some(fingerprint),
            SessionSettings::Unknown
            | SessionSettings::After(..)
            | SessionSettings::Unavailable => None,
        }
    }

    /// Where a `SELECT` sent now is looked up, or why it isn't.
    #[inline]
    pub fn scope(&self) -> Result<Scope, Bypass> {
        self.scope
    }

    /// The same for the execution of a prepared one.
    #[inline]
    pub fn binary_scope(&self) -> Result<Scope, Bypass> {
        self.scope?;
        match &self.settings {
            SessionSettings::Known(known) => {
                scope_of(known.id, self.status_inside(), RowFormat::Binary)
            }
            SessionSettings::Unknown
            | SessionSettings::After(..)
            | SessionSettings::Unavailable => Err(Bypass::SettingsUnknown),
        }
    }

    /// Whether everything is passed through until the session is reset.
    #[inline]
    pub fn passes_through(&self) -> bool {
        self.pass_through.is_some()
    }

    /// Whether asking the server for the settings would make look-ups possible.
    #[inline]
    pub fn wants_settings(&self) -> bool {
        self.lacks_settings() && self.pass_through.is_none() && !self.changed_in_transaction
    }

    /// Whether the server could be asked for the settings, for what they say about anything but
    /// look-ups.
    #[inline]
    pub fn lacks_settings(&self) -> bool {
        matches!(
            self.settings,
            SessionSettings::Unknown | SessionSettings::After(..)
        )
    }

    /// The snapshot that a read sent now, or its answer from memory, must fit; none if each
    /// statement has its own.
    #[inline]
    pub fn snapshot(&self) -> Option<Snapshot> {
        // Elsewhere the snapshot that a transaction may have is of no concern.
        self.snapshot.made().filter(|_| self.is_repeatable())
    }

    /// Whether a row that the server has read would tell of a transaction's snapshot.
    /// It may be known already: then the answer tells whether it would make one.
    #[inline]
    pub fn can_tell_of_snapshot(&self) -> bool {
        self.transaction_reads != TransactionReads::Off && !self.is_certainly_outside_transaction()
    }

    /// Whether the watermark must be taken before a message with these effects is sent, as it may
    /// make the transaction's snapshot.
    #[inline]
    pub fn wants_low(&self, effects: &Effects) -> bool {
        self.transaction_reads != TransactionReads::Off
            && (effects.may_commit()
                || effects.session != SessionEffect::None
                || matches!(self.snapshot, OpenSnapshot::NotMade | OpenSnapshot::Early)
                    && !self.is_certainly_outside_transaction())
    }

    /// The server may take the open transaction's snapshot from now on, without a message of the
    /// client. `low`: the watermark.
    pub fn may_have_snapshot(&mut self, low: Option<AsOf>) {
        self.snapshot = self.snapshot.after(low, Passed::Unsure);
        self.derive_scope();
    }

    /// A message is about to be sent that could begin a transaction or read in it. `at`: the
    /// watermark, if it was wanted.
    #[inline]
    pub fn sends(&mut self, at: Option<AsOf>) {
        self.sending = Some(Sending { low: at });
    }

    /// What the open transaction has written.
    #[inline]
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Whether the next transaction may be unlike the others. The server doesn't tell. The doubt
    /// lasts until a transaction ends, even that of one statement.
    #[inline]
    pub fn doubts_next_transaction(&self) -> bool {
        self.next_transaction_in_doubt
    }

    /// Whether the session's changes don't reach the log as rows.
    #[inline]
    pub fn writes_are_unlogged(&self) -> bool {
        self.writes_are_unlogged || self.wrote_in_doubt
    }

    /// A statement is about to write, and nobody knows whether that will be logged. Until its
    /// transaction ends it counts as not.
    pub fn writes_in_doubt(&mut self) {
        self.wrote_in_doubt = true;
    }

    /// Whether a statement's changes stay invisible to others until a later commit: a transaction
    /// is certainly open.
    #[inline]
    pub fn is_certainly_in_transaction(&self) -> bool {
        self.status_is_certain && self.status.has(StatusFlags::IN_TRANSACTION)
    }

    /// Whether a response's flags are those that this session's results carry.
    #[inline]
    pub fn has_status_of(&self, mark: EndMark) -> bool {
        status_bits(self.status_inside()) == status_bits(mark.status)
    }

    /// Whether something ran that may have turned the log off: the server must be asked before the
    /// session writes, or what it writes counts as unlogged.
    #[inline]
    pub fn log_is_doubtful(&self) -> bool {
        self.log_is_doubtful
    }

    /// Whether code ran that isn't seen, so that the server must tell how many tables the session
    /// has created.
    #[inline]
    pub fn wants_tables_created(&self) -> bool {
        self.code_ran && self.may_be_looked_up_later()
    }

    /// Whether the server must tell it before such code runs: afterwards nobody could say which of
    /// them the code created.
    #[inline]
    pub fn wants_tables_recounted(&self) -> bool {
        !self.tables_created.is_certain
            && !self.code_ran
            && self.may_be_looked_up_later()
            && !matches!(self.settings, SessionSettings::Unavailable)
    }

    /// Whether a reset of the server's counts now would hide nothing. On MySQL `FLUSH STATUS` in
    /// any session resets them.
    #[inline]
    pub fn is_reset_of_counts_harmless(&self) -> bool {
        !self.code_ran && self.tables_created.is_zero()
    }

    /// Whether look-ups are possible without a reset, now or when the session's locks end.
    fn may_be_looked_up_later(&self) -> bool {
        matches!(self.pass_through, None | Some(Bypass::LockedTables))
    }

    /// Whether text ran that isn't seen, and nobody has asked since what became of the log.
    #[inline]
    pub fn has_run_text(&self) -> bool {
        self.ran_text
    }

    /// The server told whether the session's changes reach the log. Gives whether some may be in
    /// none that were fenced as if they would be: text that isn't seen wrote them, and turned the
    /// log off.
    #[must_use]
    pub fn learn_log(&mut self, logs_changes: bool) -> bool {
        if !logs_changes {
            self.apply(SessionEffect::BinlogOff);
            self.derive_scope();
        }
        self.log_is_doubtful = false;
        std::mem::take(&mut self.ran_text) && !logs_changes
    }

    /// What the settings are after such a statement, which has succeeded.
    fn settings_after(&self, change: SettingsChange) -> SessionSettings {
        let (before, change) = match &self.settings {
            SessionSettings::Known(before) => (before, Some(change)),
            SessionSettings::After(before, earlier) => (before, earlier.then(&change)),
            SessionSettings::Unknown | SessionSettings::Unavailable => {
                return SessionSettings::Unknown;
            }
        };
        let Some(change) = change.filter(|_| before.dialect.is_some()) else {
            return SessionSettings::Unknown;
        };
        match before.after.get(&change, self.mark_asked_for) {
            Some(after) => SessionSettings::Known(after),
            None => SessionSettings::After(Arc::clone(before), change),
        }
    }

    /// Whether the settings after a `SET` to literals can be known without asking.
    #[inline]
    pub fn may_know_settings_after(&self) -> bool {
        matches!(
            self.settings,
            SessionSettings::Known(_) | SessionSettings::After(..)
        )
    }

    /// The server told the settings, with the mark of this number. If they follow from those of
    /// before, it needn't tell the next session.
    ///
    /// The server's settings count, not those of a transaction that is or will be unlike others;
    /// and only the same question has answers that can be compared.
    pub fn learn_with_mark(&mut self, fingerprint: Arc<Fingerprint>, mark_number: u64) {
        let is_usual = !self.changed_in_transaction
            && !self.next_transaction_differs
            && !self.next_transaction_in_doubt;
        let is_same_question = mark_number != 0 && mark_number == self.mark_asked_for;
        if let SessionSettings::After(before, change) = &self.settings
            && is_usual
            && is_same_question
        {
            before.after.learn(change, mark_number, &fingerprint);
        }
        self.learn(fingerprint);
    }

    /// The server told the settings.
    pub fn learn(&mut self, fingerprint: Arc<Fingerprint>) {
        self.settings = SessionSettings::Known(fingerprint);
        self.was_foreign = false;
        self.derive_scope();
    }

    /// An answer to a question of Remora's, with these flags. Nobody tells otherwise if a login has
    /// set autocommit: the server says how it went before it runs `init_connect`.
    pub fn learn_autocommit(&mut self, status: StatusFlags) {
        if !self.status_is_certain {
            // Not a login: the statement that has failed may have done it.
            self.notice_autocommit(&Effects::NONE, status);
        }
        let others = self.status.without(StatusFlags::AUTOCOMMIT);
        self.status = others.with(status.within(StatusFlags::AUTOCOMMIT));
        self.derive_scope();
    }

    /// The settings that the server told were asked for with the mark of this number, which the
    /// session has seen or not.
    pub fn asked_for_mark(&mut self, number: u64, is_seen: bool) {
        self.mark_asked_for = number;
        self.sees_mark = is_seen;
    }

    /// Whether the session has seen the mark of this number.
    #[inline]
    pub fn has_seen_mark(&self, number: u64) -> bool {
        self.sees_mark && self.mark_asked_for == number
    }

    /// The number of the mark that the server was last asked for.
    #[inline]
    pub fn mark_asked_for(&self) -> u64 {
        self.mark_asked_for
    }

    /// The server told its counts, or didn't. Functions and triggers can only create temporary
    /// tables; procedures can create any. On MySQL the counts don't tell these apart, so any table
    /// counts: names may mean something else from now on.
    ///
    /// A setting can keep the server from telling (`max_join_size`, `sql_select_limit`). Then
    /// nothing is looked up until the settings have changed, and it is asked again.
    ///
    /// The counts say that something was locked, not whether it was unlocked since. So after a
    /// procedure one such statement is enough to pass everything through.
    pub fn learn_counts(&mut self, counts: Option<SessionCounts>) {
        if let Some(counts) = counts {
            self.compare_counts(counts);
        } else {
            self.was_foreign = self.is_foreign();
            self.settings = SessionSettings::Unavailable;
        }
        self.derive_scope();
    }

    fn compare_counts(&mut self, counts: SessionCounts) {
        if self.wants_tables_recounted() {
            self.tables_created.recount(counts.tables);
        }
        let are_lost = self.code_ran && counts.were_reset == Some(true);
        if !self.tables_created.explains(counts.tables) || are_lost {
            self.pass_from_now_on(Bypass::TemporaryTables);
        }
        if self.procedure_ran && (counts.locks > 0 || counts.were_reset.is_none()) {
            self.pass_from_now_on(Bypass::UnknownSessionState);
        }
        self.code_ran = false;
        self.procedure_ran = false;
    }

    /// The server was asked for the settings and didn't tell. Gives the same as
    /// [`SessionState::learn_log`].
    #[must_use]
    pub fn not_told(&mut self, why: Bypass) -> bool {
        self.settings = SessionSettings::Unavailable;
        if self.log_is_doubtful {
            self.apply(SessionEffect::BinlogOff);
        }
        self.pass_through(why);
        std::mem::take(&mut self.ran_text)
    }

    /// Passes everything through until the session is reset.
    pub fn pass_through(&mut self, why: Bypass) {
        self.pass_from_now_on(why);
        self.derive_scope();
    }

    /// The first reason stays, but for one that ends by itself.
    fn pass_from_now_on(&mut self, why: Bypass) {
        if self.may_be_looked_up_later() {
            self.pass_through = Some(why);
        }
    }

    /// A statement with these effects has been answered. `wrote` is what it may have written.
    pub fn after(&mut self, effects: &Effects, wrote: Option<&WriteScope>, summary: &Summary) {
        let before = self.place_of_next_statement();
        let may_end_one = !self.status_is_certain || self.status.has(StatusFlags::IN_TRANSACTION);
        self.learn_flags(effects, summary);
        match summary.mark {
            Some(mark) => {
                self.notice_autocommit(effects, mark.status);
                self.status = mark.status;
                self.status_is_certain = true;
                // A row that was read in no transaction shows that none is begun.
                self.may_be_begun &= !self.status.has(StatusFlags::IN_TRANSACTION)
                    && !matches!(effects.snapshot, Evidence::Seen(_));
            }
            None if matches!(summary.ending, Ending::Err(_)) => {
                self.status_is_certain = false;
                self.may_be_begun |= self.status.has(StatusFlags::IN_TRANSACTION);
            }
            None => {}
        }
        self.note_warnings(effects, summary);
        self.note_locks(effects, summary);
        self.count_created(effects.created, summary);
        if effects.unseen_code != UnseenCode::None {
            self.runs_code();
        }
        if effects.may_turn_log_off {
            self.runs_text();
        }
        match (effects.session, &effects.literal_set) {
            (SessionEffect::SettingsChanged, Some(text)) if summary.succeeded() => {
                self.change_settings(SettingsChange::Statements(text.clone()));
            }
            (SessionEffect::TransactionDefaults(_), _) if !summary.succeeded() => {
                self.apply(SessionEffect::SettingsChanged);
            }
            (effect, _) => self.apply(effect),
        }
        self.doubt_next_transaction(effects, before, summary);
        if let Some(sending) = self.sending.take() {
            let passed = self.passed(effects, summary);
            self.snapshot = self.snapshot.after(sending.low, passed);
        } else if self.status.has(StatusFlags::IN_TRANSACTION)
            && self.snapshot == OpenSnapshot::NotMade
        {
            // It was begun by something that wasn't seen.
            self.snapshot = OpenSnapshot::Perhaps(None);
        }
        self.begun_otherwise |= effects.transaction == Transaction::Begin
            && effects.control != Some(TransactionControl::Begin);
        if self.status_is_certain && !self.status.has(StatusFlags::IN_TRANSACTION) {
            self.no_transaction_is_open(effects, may_end_one);
        } else if let Some(scope) = wrote {
            self.written.add(scope);
        }
        self.derive_scope();
    }

    /// `SHOW WARNINGS` tells of the last statement that left some, until one that uses a table
    /// leaves none.
    fn note_warnings(&mut self, effects: &Effects, summary: &Summary) {
        let leaves_some = match summary.mark {
            Some(mark) => mark.warnings > 0,
            None => matches!(summary.ending, Ending::Err(_)),
        };
        if leaves_some {
            self.may_have_warnings = true;
        } else if effects.table_use == TableUse::Certain {
            self.may_have_warnings = false;
        }
    }

    /// Whether the server's list of warnings may have some. A statement that uses a table empties
    /// it.
    #[inline]
    pub fn may_have_warnings(&self) -> bool {
        self.may_have_warnings
    }

    /// `COMMIT` and `ROLLBACK` restore the session's own isolation level and access mode. After
    /// `SET autocommit = 1`, or `BEGIN` in an open transaction, the next one is like the last,
    /// until a statement on its own has used a table with transactions.
    fn no_transaction_is_open(&mut self, effects: &Effects, one_may_have_ended: bool) {
        let was_unlike_others =
            self.changed_in_transaction || self.code_ran_inside || self.begun_otherwise;
        self.written = Written::nothing();
        self.wrote_in_doubt = false;
        self.changed_in_transaction = false;
        self.begun_otherwise = false;
        self.code_ran_inside = false;
        if matches!(
            effects.transaction,
            Transaction::Commit | Transaction::Rollback
        ) {
            self.next_transaction_differs = false;
            self.next_transaction_in_doubt = false;
            self.may_be_begun = false;
        } else {
            self.next_transaction_in_doubt |= one_may_have_ended && was_unlike_others;
        }
    }

    /// A `SET` turns autocommit off, and Remora has read what else it does. Code that isn't seen
    /// may have read something before: what it saw would stay.
    fn notice_autocommit(&mut self, effects: &Effects, status: StatusFlags) {
        let autocommit = StatusFlags::AUTOCOMMIT;
        let turns_off = self.status.has(autocommit) && !status.has(autocommit);
        let is_seen = matches!(
            effects.session,
            SessionEffect::SettingsChanged | SessionEffect::TransactionDefaults(_)
        );
        if turns_off && !is_seen {
            self.pass_from_now_on(Bypass::UnknownSessionState);
        }
    }

    /// What a message that has been answered means for the open transaction.
    fn passed(&self, effects: &Effects, summary: &Summary) -> Passed {
        if self.status_is_certain && !self.status.has(StatusFlags::IN_TRANSACTION) {
            if effects.transaction == Transaction::Savepoint
                && !self.status.has(StatusFlags::AUTOCOMMIT)
            {
                // It stays until the transaction ends that the next read begins. No flag tells.
                return Passed::Unsure;
            }
            // A statement that turns autocommit off may read before it does. What it has read by
            // stays, and no flag tells.
            let may_have_read = !matches!(
                effects.session,
                SessionEffect::None | SessionEffect::TransactionDefaults(_)
            );
            return if may_have_read && !self.status.has(StatusFlags::AUTOCOMMIT) {
                Passed::NewTransaction
            } else {
                Passed::Outside
            };
        }
        match effects.transaction {
            _ if !summary.succeeded() => Passed::Unsure,
            Transaction::Begin | Transaction::Commit | Transaction::Rollback => {
                Passed::NewTransaction
            }
            Transaction::None | Transaction::Savepoint if effects.is_plain() => {
                Passed::SameTransaction(effects.snapshot)
            }
            _ => Passed::Unsure,
        }
    }

    fn place_of_next_statement(&self) -> PlaceOfStatement {
        if self.is_certainly_outside_transaction() {
            PlaceOfStatement::Alone
        } else if self.is_certainly_in_transaction() {
            PlaceOfStatement::InTransaction
        } else {
            PlaceOfStatement::Unknown
        }
    }

    /// Inside a transaction the server refuses `SET TRANSACTION` in functions and triggers; a
    /// procedure can end the transaction first. Outside, it holds until a transaction ends. A
    /// statement on its own also ends one if it uses a table with transactions, even if it is the
    /// statement that runs the code.
    fn doubt_next_transaction(
        &mut self,
        effects: &Effects,
        before: PlaceOfStatement,
        summary: &Summary,
    ) {
        let ran_code = effects.runs_code();
        let stood_alone = before == PlaceOfStatement::Alone
            && !effects.may_commit()
            && summary.succeeded()
            && self.is_certainly_outside_transaction();
        let in_transaction = before == PlaceOfStatement::InTransaction && !effects.may_commit();
        match effects.own_transaction {
            OwnTransaction::Certain if stood_alone => self.next_transaction_in_doubt = false,
            OwnTransaction::IfCodeRan if stood_alone => {}
            _ if ran_code && !in_transaction && !effects.code_leaves_next_transaction => {
                self.next_transaction_in_doubt = true;
            }
            _ => {}
        }
    }

    /// Text ran that isn't seen.
    pub fn runs_text(&mut self) {
        self.log_is_doubtful = true;
        self.ran_text = true;
        self.was_foreign |= self.is_foreign();
        self.settings = SessionSettings::Unknown;
        self.derive_scope();
    }

    fn count_created(&mut self, created: CreatedCount, summary: &Summary) {
        match created {
            CreatedCount::Same => {}
            CreatedCount::OneMore => self.tables_created.one_more(summary.succeeded()),
            CreatedCount::Unknown => {
                self.tables_created.is_certain = false;
                if self.code_ran {
                    // The server could have told what that code did, and now it can't.
                    self.pass_from_now_on(Bypass::TemporaryTables);
                }
            }
        }
    }

    /// Code ran that isn't seen.
    fn runs_code(&mut self) {
        self.forget_settings();
        self.code_ran = true;
        self.code_ran_inside |= !self.is_certainly_outside_transaction();
        // Within the open transaction nothing is looked up, whatever the settings are now.
        self.written = Written::Everything;
    }

    /// All that is said in a language which Remora doesn't read may change settings. It stays that
    /// language.
    fn forget_settings(&mut self) {
        if !self.is_foreign() {
            self.settings = SessionSettings::Unknown;
        }
    }

    /// Whether the server reads the session's text as a language that Remora doesn't, as far as is
    /// known.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        match &self.settings {
            SessionSettings::Known(known) | SessionSettings::After(known, _) => {
                known.dialect.is_none()
            }
            SessionSettings::Unknown | SessionSettings::Unavailable => self.was_foreign,
        }
    }

    /// Statements have succeeded from which the settings follow.
    fn change_settings(&mut self, change: SettingsChange) {
        self.settings = self.settings_after(change);
        self.changed_in_transaction |= !self.is_certainly_outside_transaction();
    }

    fn apply(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::None => {}
            SessionEffect::UserLock => self.may_have_user_locks = true,
            SessionEffect::SettingsChanged | SessionEffect::Role | SessionEffect::DefaultSchema => {
                self.settings = SessionSettings::Unknown;
                self.changed_in_transaction |= !self.is_certainly_outside_transaction();
            }
            SessionEffect::TransactionDefaults(defaults) => {
                self.change_settings(SettingsChange::Transactions(defaults));
            }
            SessionEffect::NextTransaction => self.next_transaction_differs = true,
            SessionEffect::TemporaryTable => self.pass_through = Some(Bypass::TemporaryTables),
            SessionEffect::LockedTables => {
                self.pass_through.get_or_insert(Bypass::LockedTables);
            }
            SessionEffect::UnlockedTables => {
                if self.pass_through == Some(Bypass::LockedTables) {
                    self.pass_through = None;
                }
            }
            SessionEffect::BinlogOff => {
                self.writes_are_unlogged = true;
                self.pass_through = Some(Bypass::WritesUnlogged);
            }
            SessionEffect::Unknown(UnknownEffect::StoredFunction) => self.runs_code(),
            SessionEffect::Unknown(UnknownEffect::StoredProcedure | UnknownEffect::DynamicSql) => {
                self.runs_code();
                self.procedure_ran = true;
                self.may_have_user_locks = true;
            }
            SessionEffect::Unknown(effect) => {
                self.forget_settings();
                self.pass_from_now_on(match effect {
                    UnknownEffect::UnknownVariable => Bypass::UnknownSetting,
                    _ => Bypass::UnknownSessionState,
                });
            }
        }
    }

    /// Whether each statement that the session sends now stands alone: no transaction is open, and
    /// none begins with it.
    #[inline]
    pub fn is_certainly_outside_transaction(&self) -> bool {
        self.status_is_certain
            && !self.may_be_begun
            && !self.status.has(StatusFlags::IN_TRANSACTION)
            && self.status.has(StatusFlags::AUTOCOMMIT)
    }

    /// Whether a transaction is open, as far as the server has last told, or one that the server
    /// doesn't know of yet.
    #[inline]
    pub fn has_open_transaction(&self) -> bool {
        self.status.has(StatusFlags::IN_TRANSACTION) || self.is_early()
    }

    /// Whether the session may hold locks that another statement waits for: of a transaction, of
    /// `LOCK TABLES`, of `GET_LOCK()`, or of something that isn't known.
    #[inline]
    pub fn may_hold_locks(&self) -> bool {
        // The server doesn't know of a transaction that memory has begun.
        let may_be_in_transaction = !self.is_early()
            && (!self.status_is_certain
                || self.may_be_begun
                || self.status.has(StatusFlags::IN_TRANSACTION));
        may_be_in_transaction
            || self.may_keep_table_locks
            || self.pass_through.is_some()
            || self.may_have_user_locks
    }

    /// The default schema was chosen anew, in this epoch of privileges.
    pub fn chose_schema(&mut self, privilege_epoch: u64) {
        self.flavour.schema_epoch = privilege_epoch;
    }

    /// The server may have looked again at the privileges on the default schema and at those of the
    /// role, in this epoch of privileges. If they have changed since it certainly looked, nobody
    /// knows by which it goes now.
    pub fn perhaps_looked_at_privileges(&mut self, privilege_epoch: u64) {
        let looked_in = [self.flavour.schema_epoch, self.flavour.role_epoch];
        if looked_in != [privilege_epoch; 2] {
            self.pass_through(Bypass::UnknownSessionState);
        }
    }

    /// A role was taken up, or the one there was laid down, in this epoch of privileges.
    pub fn chose_role(&mut self, privilege_epoch: u64) {
        self.flavour.role_epoch = privilege_epoch;
    }

    /// Which results of the session are kept.
    #[inline]
    pub fn cache_type(&self) -> CacheType {
        self.own.cache_type
    }

    /// Whether its statements are looked up by their texts without comments. Asked for each one.
    #[inline]
    pub fn strips_comments(&self) -> bool {
        self.own.strip_comments
    }

    /// Its own values of the query cache's variables.
    #[inline]
    pub fn own_values(&self) -> OwnValues {
        self.own
    }

    /// `SET SESSION query_cache_strip_comments`.
    pub fn set_strip_comments(&mut self, strips: bool) {
        self.own.strip_comments = strips;
    }

    /// The login has run statements that the session hasn't sent.
    pub fn login_ran_code(&mut self) {
        self.code_ran = true;
        // It may have begun a transaction, and read in it.
        self.snapshot = OpenSnapshot::Perhaps(None);
        self.may_keep_table_locks = true;
    }

    /// The login may have said what the session's first transaction is like.
    pub fn login_set_next_transaction(&mut self) {
        self.next_transaction_in_doubt = true;
    }

    /// `SET SESSION query_cache_type`.
    pub fn set_cache_type(&mut self, cache_type: CacheType) {
        self.own.cache_type = cache_type;
        self.derive_scope();
    }

    /// `COM_RESET_CONNECTION` succeeded: the session is as after the login.
    pub fn reset(&mut self, mark: Option<EndMark>, own: OwnValues) {
        self.restart(self.flavour, mark, own);
    }

    fn restart(&mut self, flavour: Flavour, mark: Option<EndMark>, own: OwnValues) {
        *self = SessionState {
            // It is the connection's, not the session's.
            may_have_switched_multi_statements: self.may_have_switched_multi_statements,
            // Nobody says that they are gone.
            may_have_warnings: self.may_have_warnings,
            ..SessionState::new(flavour, mark, own).with_transaction_reads(self.transaction_reads)
        };
    }

    /// `COM_CHANGE_USER` succeeded.
    pub fn changed_user(&mut self, privilege_epoch: u64, mark: Option<EndMark>, own: OwnValues) {
        let flavour = Flavour {
            login_epoch: privilege_epoch,
            schema_epoch: privilege_epoch,
            role_epoch: privilege_epoch,
            ..self.flavour
        };
        self.restart(flavour, mark, own);
    }

    /// `COM_CHANGE_USER` was refused, and the server keeps the session: with the account and the
    /// default schema that it had, which is certain. The rest is as after a login if the server got
    /// as far as to look at the password, and as it was if not. So what kept results from being
    /// kept still does, and everything else is unknown.
    pub fn refused_user(&mut self) {
        self.status_is_certain = false;
        self.snapshot = self.snapshot.after(None, Passed::Unsure);
        self.apply(SessionEffect::SettingsChanged);
        self.derive_scope();
    }

    /// `COM_SET_OPTION` succeeded or not: multi-statements may be on or off.
    pub fn option_changed(&mut self) {
        self.settings = SessionSettings::Unknown;
        self.may_have_switched_multi_statements = true;
        self.pass_through(Bypass::UnknownSessionState);
    }

    /// Whether the client has sent `COM_SET_OPTION` since it connected. The server keeps
    /// multi-statements as set when the session is reset or its user changes.
    #[inline]
    pub fn may_have_switched_multi_statements(&self) -> bool {
        self.may_have_switched_multi_statements
    }

    fn derive_scope(&mut self) {
        self.scope = self.find_scope();
        self.must_have_snapshot = self.find_must_have_snapshot();
    }

    fn find_scope(&self) -> Result<Scope, Bypass> {
        self.find_scope_at(self.status_inside(), self.snapshot)
    }

    /// The scope with these flags and this snapshot in place of the session's.
    fn find_scope_at(&self, status: StatusFlags, snapshot: OpenSnapshot) -> Result<Scope, Bypass> {
        if let Some(why) = self.pass_through {
            return Err(why);
        }
        if self.own.cache_type == CacheType::Off {
            return Err(Bypass::QueryCacheOff);
        }
        let SessionSettings::Known(fingerprint) = &self.settings else {
            return Err(Bypass::SettingsUnknown);
        };
        if fingerprint.dialect.is_none() {
            return Err(Bypass::DialectUnknown);
        }
        if !fingerprint.allows_caching {
            return Err(Bypass::SettingValue);
        }
        if fingerprint.charset == TextCharset::Unsafe {
            return Err(Bypass::CharsetUnsafe);
        }
        if fingerprint.isolation == Isolation::Other {
            return Err(Bypass::IsolationLevel);
        }
        if self.next_transaction_differs || self.next_transaction_in_doubt {
            return Err(Bypass::NextTransactionDiffers);
        }
        if !self.status_is_certain || self.may_be_begun {
            return Err(Bypass::StatusUncertain);
        }
        if fingerprint.autocommit != status.has(StatusFlags::AUTOCOMMIT) {
            // MySQL's flag says that it is on in a session that began with `SET GLOBAL autocommit =
            // 0`, and stays so.
            return Err(Bypass::StatusUncertain);
        }
        self.check_transaction(fingerprint, status, snapshot)?;
        scope_of(fingerprint.id, status, RowFormat::Text)
    }

    /// Outside a transaction each statement stands alone, and inside one at `READ COMMITTED`. At
    /// `REPEATABLE READ` all must fit the transaction's snapshot. In both the transaction must see
    /// what it has written itself; [`Written::concerns`] tells which results that is not.
    fn check_transaction(
        &self,
        fingerprint: &Fingerprint,
        status: StatusFlags,
        snapshot: OpenSnapshot,
    ) -> Result<(), Bypass> {
        if status.has(StatusFlags::IN_TRANSACTION) {
            if self.changed_in_transaction {
                return Err(Bypass::InTransaction);
            }
            if fingerprint.isolation != Isolation::ReadCommitted {
                self.check_snapshot(snapshot)?;
            }
            if self.written == Written::Everything {
                return Err(Bypass::TransactionHasWritten);
            }
        } else if !status.has(StatusFlags::AUTOCOMMIT) {
            // The statement would open a transaction; from memory it would not.
            return Err(Bypass::AutocommitOff);
        }
        Ok(())
    }

    /// Whether it is known which snapshot the open transaction has.
    fn check_snapshot(&self, snapshot: OpenSnapshot) -> Result<(), Bypass> {
        if self.transaction_reads == TransactionReads::Off {
            return Err(Bypass::InTransaction);
        }
        match snapshot {
            // Of the last two `must_have_snapshot` says whether memory may answer at once.
            OpenSnapshot::Made(_) | OpenSnapshot::Early => Ok(()),
            OpenSnapshot::NotMade if !self.status.has(StatusFlags::IN_TRANSACTION) => Ok(()),
            OpenSnapshot::Perhaps(Some(_)) | OpenSnapshot::NotMade => Err(Bypass::SnapshotNotMade),
            OpenSnapshot::Perhaps(None) => Err(Bypass::SnapshotUnknown),
        }
    }
}

/// Where a statement stands that is sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceOfStatement {
    /// Certainly in no transaction but its own.
    Alone,
    /// Certainly in one that is open.
    InTransaction,
    /// Perhaps here, perhaps there; or it begins one.
    Unknown,
}
