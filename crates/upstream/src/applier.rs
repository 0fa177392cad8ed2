//! What the log's events mean for the timeline. No I/O: bytes come in, tags are touched.

use std::collections::BTreeSet;
use std::ops::Deref;

use remora_binlog::{
    Commit, CommitKind, Decoded, DecoderLimits, Event, FormatDescription, LoggedTable,
    StreamDecoder, Touched, Transactions, event_type,
};
use remora_cache::{Position, TableTags, Tag};
use remora_engine::reason::RestartReason;
use remora_engine::tags::{ChangeTags, Telling};

use super::commits::{is_of_cached_tables, waits_for_transactions};
use super::logged::meaning;
use super::lost::Lost;
use super::place::{FileIdentity, LastEvent, LogName};
use super::progress::Progress;
use super::state::{UpstreamShared, count};

/// Changes here may change what accounts are allowed.
const ACCOUNT_SCHEMA: &str = "mysql";
/// Tables there, or beginnings of their names, that a provider's own programs write every few
/// minutes: Amazon's `rds_heartbeat2`, Google's `heartbeat`, others' `ha_health_check`. They say
/// nothing of accounts, and what is read from this schema isn't cached.
const OF_PROVIDERS: [&str; 3] = ["rds_", "heartbeat", "ha_health_check"];

/// Where a session begins to read.
#[derive(Debug, Clone)]
pub(super) enum Start {
    /// At the beginning of the server's present file. The timeline was restarted there.
    Anew(LogName, u64),
    /// Before the last event that was applied, which must come first and be the same.
    Again(LastEvent),
}

/// How much of one transaction is told apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransactionLimits {
    /// Its tables.
    pub tables_max: usize,
    /// Its tags.
    pub tags_max: usize,
}

/// Applies the commits of one stream, in order. The follower lends `S` and `P`; the simulation owns
/// them.
pub(super) struct Applier<S, P> {
    shared: S,
    progress: P,
    decoder: StreamDecoder,
    transactions: Transactions,
    /// The tags of the open transaction's rows.
    tags: ChangeTags,
    name: LogName,
    identity: Option<FileIdentity>,
    /// The event that must come first.
    expected: Option<LastEvent>,
    /// The last event applied: given back for the next session.
    last: Option<LastEvent>,
    /// The stream has gone from one file to the next.
    crossed: bool,
}

/// Whether the table says what accounts are allowed.
fn is_of_accounts(table: &LoggedTable) -> bool {
    let is_of_provider = OF_PROVIDERS
        .iter()
        .any(|start| table.table.starts_with(start));
    table.schema.eq_ignore_ascii_case(ACCOUNT_SCHEMA) && !is_of_provider
}

impl<S, P> Applier<S, P>
where
    S: Deref<Target = UpstreamShared>,
    P: Deref<Target = Progress>,
{
    pub(super) fn new(
        shared: S,
        progress: P,
        limits: TransactionLimits,
        start: Start,
    ) -> Applier<S, P> {
        let (name, offset, identity, expected) = match start {
            Start::Anew(name, offset) => (name, offset, None, None),
            Start::Again(last) => (
                last.name.clone(),
                last.start_offset,
                Some(last.identity.clone()),
                Some(last),
            ),
        };
        let tags = ChangeTags::new(limits.tags_max, shared.timeline.broken().tags);
        Applier {
            shared,
            progress,
            decoder: StreamDecoder::new(name.file(), offset, DecoderLimits::default()),
            transactions: Transactions::new(limits.tables_max),
            tags,
            name,
            identity,
            last: expected.clone(),
            expected,
            crossed: false,
        }
    }

    /// The file that is read, and how far.
    pub(super) fn place(&self) -> (&LogName, u64) {
        (&self.name, self.decoder.offset())
    }

    /// What the next session may go on from.
    pub(super) fn into_last(self) -> Option<LastEvent> {
        self.last
    }

    /// Takes the stream's next event, of `event_bytes`. If `is_whole` is false, `bytes` is its
    /// beginning.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        event_bytes: u64,
        is_whole: bool,
    ) -> Result<(), Lost> {
        let offset_before = self.decoder.offset();
        let decoded = if is_whole {
            self.decoder.decode(bytes)
        } else {
            count(&self.shared.counters.events_oversized, 1);
            self.decoder.decode_oversized(bytes, event_bytes)
        };
        let decoded = decoded
            .map_err(|error| Lost::restart(RestartReason::LogUnreadable, error.to_string()))?;
        let is_heartbeat = matches!(decoded.event, Event::Heartbeat { .. });
        if !is_heartbeat {
            self.progress.saw_event();
        }
        if let (Some(expected), Some(_)) = (&self.expected, decoded.end_offset) {
            if !expected.is(&decoded, bytes) {
                let what = "another event lies where the last one was";
                return Err(Lost::restart(RestartReason::LogChanged, what));
            }
            // It was applied before the connection was lost, by this process or by the one before,
            // of which the timeline knows only how far commits could be seen.
            self.expected = None;
            self.advance_to(decoded.end_offset);
            self.progress.verified();
            self.shared.applied_bell.notify_one();
            return Ok(());
        }
        self.check_stream(&decoded)?;
        if matches!(decoded.event, Event::Incident) && self.progress.ledger().is_none() {
            let end = decoded.end_offset.unwrap_or(u64::MAX);
            let at = Position::new(self.name.number, end);
            let at = at.unwrap_or(Position::from_bits(u64::MAX));
            let mut unordered = self.progress.unordered().borrow_mut();
            unordered.fence_for_incident(&self.shared.timeline, at);
        }
        let (over_bound, of_many_tags) = (self.transactions.over_bound(), self.tags.over_bound());
        self.tags.take(&decoded.event, &self.shared.shapes);
        let mut has_committed = false;
        for commit in self
            .transactions
            .apply(&decoded, offset_before, meaning)
            .into_iter()
            .flatten()
        {
            self.apply(&commit)?;
            if let Event::Query(query) = &decoded.event
                && commit.kind == CommitKind::Standalone
                && !decoded.header.is_thread_specific()
                && waits_for_transactions(&query.text)
            {
                let mut unordered = self.progress.unordered().borrow_mut();
                unordered.settle(&commit.touched);
            }
            has_committed |= commit.kind != CommitKind::Progress;
        }
        if has_committed {
            self.tags.clear();
        }
        let more = self.transactions.over_bound() - over_bound;
        count(&self.shared.counters.commits_over_bound, more);
        let more = self.tags.over_bound() - of_many_tags;
        count(&self.shared.counters.transactions_of_many_tags, more);
        self.remember(&decoded, bytes);
        if let Event::Rotate { file, .. } = &decoded.event {
            self.enter(file)?;
        }
        Ok(())
    }

    /// Everything up to here has been applied.
    fn advance_to(&self, end_offset: Option<u64>) {
        let timeline = &self.shared.timeline;
        let end = end_offset.and_then(|offset| Position::new(self.name.number, offset));
        if let Some(end) = end.filter(|end| *end > timeline.applied()) {
            timeline.begin_commit(end);
            timeline.set_applied(end);
        }
    }

    /// Whether the stream is what it must be: the same log, going on without a gap.
    fn check_stream(&mut self, decoded: &Decoded) -> Result<(), Lost> {
        match &decoded.event {
            Event::FormatDescription(description) => self.check_file(description),
            // Each file begins with its description. What comes before would be of another file.
            _ if self.identity.is_none() && decoded.end_offset.is_some() => {
                let what = format!(
                    "an event has a place in {} before it began",
                    self.name.file()
                );
                Err(Lost::restart(RestartReason::LogUnreadable, what))
            }
            Event::Stop => Err(Lost::restart(
                RestartReason::ServerRestarted,
                "the server was shut down",
            )),
            Event::Heartbeat { file } if !self.is_reading(file) => {
                let what = format!("the server reads {file}, not {}", self.name.file());
                Err(Lost::restart(RestartReason::LogChanged, what))
            }
            Event::Checkpoint { file } => {
                self.settle_file(file, decoded.end_offset);
                Ok(())
            }
            Event::PreviousGtids(previous) => {
                if let Some(ledger) = self.progress.ledger() {
                    ledger.borrow_mut().begin_file(previous);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the server can be reading this file. Behind a file's last event it may send a
    /// heartbeat of that file, before the first of the next.
    fn is_reading(&self, file: &str) -> bool {
        let is_between = self.crossed && self.identity.is_none();
        let is_before = |file: &LogName| is_between && file.is_followed_by(&self.name);
        *file == self.name.file() || LogName::parse(file).as_ref().is_some_and(is_before)
    }

    /// All files before `file` hold only what is visible: an event says so that ends here.
    fn settle_file(&self, file: &str, end_offset: Option<u64>) {
        let end = end_offset.and_then(|offset| Position::new(self.name.number, offset));
        let name = LogName::parse(file).filter(|name| name.base == self.name.base);
        if let (Some(name), Some(end)) = (name, end) {
            self.progress.settled(name.number, end);
            self.shared.applied_bell.notify_one();
            self.shared.wake();
        }
    }

    fn check_file(&mut self, description: &FormatDescription) -> Result<(), Lost> {
        if self.crossed && description.created != 0 {
            let what = "the log's next file was begun by a starting server";
            return Err(Lost::restart(RestartReason::ServerRestarted, what));
        }
        let identity = FileIdentity::of(description);
        if self
            .identity
            .as_ref()
            .is_some_and(|known| *known != identity)
        {
            let what = format!("{} isn't the file that it was", self.name.file());
            return Err(Lost::restart(RestartReason::LogChanged, what));
        }
        self.identity = Some(identity);
        if self.expected.is_none() {
            self.progress.verified();
            self.shared.applied_bell.notify_one();
        }
        Ok(())
    }

    /// The stream goes on in `file`, or says what it begins with.
    fn enter(&mut self, file: &str) -> Result<(), Lost> {
        let unplaceable = || {
            let what = format!("the log goes on in {file}");
            Lost::restart(RestartReason::PositionUnplaceable, what)
        };
        let next = LogName::parse(file).ok_or_else(unplaceable)?;
        if next == self.name {
            return Ok(());
        }
        if !self.name.is_followed_by(&next) || self.expected.is_some() {
            let what = format!("the log went from {} to {file}", self.name.file());
            return Err(Lost::restart(RestartReason::LogChanged, what));
        }
        self.name = next;
        self.identity = None;
        self.crossed = true;
        Ok(())
    }

    fn apply(&self, commit: &Commit) -> Result<(), Lost> {
        let Some(at) = Position::new(self.name.number, commit.end_offset) else {
            let what = format!(
                "{} has an offset of {}",
                self.name.file(),
                commit.end_offset
            );
            return Err(Lost::restart(RestartReason::PositionUnplaceable, what));
        };
        let timeline = &self.shared.timeline;
        let counters = &self.shared.counters;
        // Before anything is looked up to make the touches.
        timeline.begin_commit(at);
        let mut everything = commit.accounts || commit.touched == Touched::Everything;
        let mut accounts = commit.accounts;
        if let Touched::Tables(tables) = &commit.touched {
            self.shared.table_changes.begin(tables, at);
            self.touch_tables(commit, tables, at);
            if tables.iter().any(is_of_accounts) {
                accounts = true;
                everything = true;
            }
        }
        if commit.definitions {
            self.touch_definitions(commit, at);
        }
        if accounts {
            self.shared.privileges.changed();
            // One of them may be the follower's own.
            self.shared.check_bell.notify_one();
        }
        if everything {
            timeline.touch_everything(at);
            self.shared.shapes.retire_all(at);
            count(&counters.commits_of_everything, 1);
        }
        if commit.kind != CommitKind::Progress {
            self.progress.changed(at);
            self.enter_into_ledger(commit, at)?;
            count(&counters.commits, 1);
        }
        // After all touches: whoever sees the position sees them. Never back: after a reconnection
        // events that had been skipped may come again.
        if at > timeline.applied() {
            timeline.set_applied(at);
            self.shared.applied_bell.notify_one();
        }
        if let Touched::Tables(tables) = &commit.touched
            && commit.kind != CommitKind::Progress
        {
            self.shared.table_changes.count(tables);
        }
        Ok(())
    }

    /// Touches the tables of a commit: as wholes, or what its rows say.
    fn touch_tables(&self, commit: &Commit, tables: &BTreeSet<LoggedTable>, at: Position) {
        let tables = tables.iter().map(|table| {
            let tags = TableTags::new(&table.schema, &table.table);
            if commit.definitions {
                self.shared.shapes.retire(tags, at);
                return (tags, Telling::Nothing);
            }
            let telling = if commit.unlogged.contains(table) {
                Telling::Nothing
            } else if commit.only_named.contains(table) {
                Telling::RowsIfAny
            } else {
                Telling::Rows
            };
            (tags, telling)
        });
        self.tags
            .touch(&self.shared.timeline, &self.shared.shapes, at, tables);
    }

    /// The definitions that a commit changed: of the tables that it names, or of all if it names
    /// none (MariaDB marks a group as DDL whose text isn't understood, or names no table).
    fn touch_definitions(&self, commit: &Commit, at: Position) {
        let timeline = &self.shared.timeline;
        match &commit.touched {
            Touched::Tables(tables) if !tables.is_empty() && !commit.accounts => {
                for table in tables {
                    timeline.touch(Tag::definition(&table.schema, &table.table), at);
                }
            }
            _ => timeline.touch(Tag::definitions(), at),
        }
        if commit.relations || commit.touched == Touched::Everything {
            timeline.touch(Tag::relations(), at);
        }
        timeline.touch(Tag::any_definition(), at);
    }

    /// Notes the transaction that may not be visible yet.
    fn enter_into_ledger(&self, commit: &Commit, at: Position) -> Result<(), Lost> {
        let Some(ledger) = self.progress.ledger() else {
            self.note_what_is_not_told(commit, at);
            return Ok(());
        };
        let Some(gtid) = &commit.gtid else {
            let what = "a transaction has no GTID, or one that can't be read";
            return Err(Lost::restart(RestartReason::LogUnreadable, what));
        };
        let is_of_xa = matches!(commit.kind, CommitKind::XaEnd | CommitKind::XaOnePhase);
        ledger.borrow_mut().commit(gtid, at, is_of_xa);
        Ok(())
    }

    /// On MariaDB, notes the commits that its position passes before they can be seen.
    fn note_what_is_not_told(&self, commit: &Commit, at: Position) {
        let mut untold = self.progress.untold().borrow_mut();
        match (commit.kind, &commit.xid) {
            (CommitKind::XaEnd | CommitKind::XaOnePhase, xid) => {
                untold.prepared_ended(xid.clone(), at);
            }
            (CommitKind::XaPrepare, Some(xid)) => untold.prepared(xid, at),
            (CommitKind::EndedByStatement, _) if is_of_cached_tables(&self.shared, commit) => {
                if self.progress.sees_idle() {
                    untold.unordered(at);
                } else {
                    let mut unordered = self.progress.unordered().borrow_mut();
                    unordered.fence(&self.shared, &commit.touched);
                }
            }
            _ => {}
        }
    }

    /// Remembers the event if everything up to its end has been applied.
    fn remember(&mut self, decoded: &Decoded, bytes: &[u8]) {
        let header = &decoded.header;
        let is_landmark = decoded.end_offset.is_some()
            && !self.transactions.is_open()
            && !matches!(
                header.event_type,
                event_type::FORMAT_DESCRIPTION | event_type::ROTATE
            );
        let Some(identity) = self.identity.as_ref().filter(|_| is_landmark) else {
            return;
        };
        match &mut self.last {
            Some(last) if last.name == self.name && last.identity == *identity => {
                last.replace(decoded, bytes);
            }
            slot => *slot = LastEvent::new(&self.name, identity, decoded, bytes),
        }
    }
}
