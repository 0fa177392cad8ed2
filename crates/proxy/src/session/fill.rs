//! Keeping an answer: the conditions under which it may be stored, checked before its question is
//! sent and again when it has passed.
//!
//! # The order
//!
//! `as_of`, the store's epoch, then facts, then the question is sent. Nothing is locked.
//!
//! - **`as_of` before the question.** Whatever commit the read may have missed has a position above
//!   it, however late its event arrives. The entry then isn't served.
//! - **`as_of` before the facts.** A later commit that replaces a definition or a shape touches a
//!   tag of the result, too.
//! - **The epoch before the facts.** Whoever changes rules or switches something off raises the
//!   epoch afterwards, and the store takes nothing of an earlier one. So what is stored was
//!   allowed.
//!
//! `as_of` and the epoch are one value, [`Taken`]. What looks up facts for a fill asks for it, so
//! no other order can be written. The message is sent when its plan is there
//! ([`Session::forward`]).

use remora_cache::{
    AsOf, BrokenSurroundings, FillPermit, FillRefused, KeyRef, NewEntry, Scope, Snapshot, Stored,
    TableTags, Tag,
};
use remora_engine::emulation::CacheType;
use remora_engine::key::{Label, Note};
use remora_engine::reason::{Bypass, Limit, Outcome};
use remora_engine::rules::{Bounds, Facts, behind_view};
use remora_engine::session::found_rows::may_find_more_than_it_gives;
use remora_engine::session::snapshot::Evidence;
use remora_engine::tags::{Purpose, ReadTables, ReadTags, check_columns, tags_of_read};
use remora_sql::{Select, TableName};
use remora_upstream::catalogue::Lookup;
use remora_wire::StatusFlags;
use remora_wire::execute::BoundValue;
use remora_wire::walker::{Ending, Summary};

use super::Session;
use super::counted_rows::{CountedRows, key_of_count};
use super::look_up::Place;
use crate::config::Storing;
use crate::digests::{Count, Digester, OutdatedBy};
use crate::shared::Shared;

/// A statement that reads, with what its execution binds.
pub(super) struct Read<'a> {
    /// What it reads.
    pub select: &'a Select,
    /// The values of its parameters; none for a statement as text.
    pub bound: &'a [BoundValue<'a>],
    /// What stands for the statement's text, without bound values: its key text.
    pub statement: &'a [u8],
    /// What it is counted under.
    pub label: Label,
}

/// A read whose answer may be kept.
pub(super) struct Fill {
    scope: Scope,
    taken: Taken,
    /// What a rule allows.
    bounds: Bounds,
    /// From when on it may not be served any more, by a rule.
    expires_at_ms: Option<u64>,
    tags: Vec<Tag>,
    /// Whether it reads tables only, and no view.
    reads_tables_only: bool,
    /// What it is counted under.
    pub(super) label: Label,
    /// Whether the answer proves that the server would make a snapshot with it.
    makes_snapshot: bool,
    /// The server counts rows for a later `FOUND_ROWS()`, perhaps more than it gives.
    counts_found_rows: bool,
    /// Warnings that its answer may have.
    warnings_max: u16,
    /// At most one fill per key at a time; none while it waits for a proof.
    permit: Option<FillPermit>,
    /// The answer so far, if it came in several pieces.
    captured: Vec<u8>,
}

/// The state of the tables that a read shows.
#[derive(Clone, Copy)]
enum Shows {
    /// That of the moment: no other read has to fit it.
    Now,
    /// That of the snapshot which it makes, or of the moment: one state between its `as_of` and its
    /// answer. Its result is for transactions in which all reads fit one moment.
    First,
    /// That of the transaction's snapshot.
    Snapshot(Snapshot),
}

/// What was taken before anything was looked up that a fill rests on.
#[derive(Clone, Copy)]
struct Taken {
    /// The watermark.
    looked_up_at: AsOf,
    /// The same, or the bound of the transaction's snapshot.
    as_of: AsOf,
    shows: Shows,
    /// The store's.
    epoch: u64,
}

/// The facts that a fill rests on.
struct LookedUp {
    tables: Vec<ReadTables>,
    bounds: Bounds,
    expires_at_ms: Option<u64>,
    tags: Vec<Tag>,
}

/// A result that may be kept as soon as the follower is proven to have applied everything that it
/// may show.
pub(crate) struct WaitingFill {
    fill: Fill,
    text: Vec<u8>,
    snapshot: Snapshot,
}

/// Status flags that an answer may carry and still be the same for everybody with its key. The
/// session's own are compared apart; a slow query's mark is a matter of the moment.
const STATUS_OF_ANY_RESULT: StatusFlags = StatusFlags::AUTOCOMMIT
    .with(StatusFlags::IN_TRANSACTION)
    .with(StatusFlags::IN_READ_ONLY_TRANSACTION)
    .with(StatusFlags::NO_GOOD_INDEX)
    .with(StatusFlags::NO_INDEX)
    .with(StatusFlags::NO_BACKSLASH_ESCAPES)
    .with(StatusFlags::ANSI_QUOTES);

impl Session {
    /// Plans to keep the answer to `text`, or says why not. Must run before the text is sent.
    /// `worth_storing`: if not, why.
    pub(super) fn plan_fill(
        &mut self,
        place: Place,
        read: &Read<'_>,
        text: &[u8],
        worth_storing: Result<(), Bypass>,
    ) -> Result<Fill, Bypass> {
        self.tell_outdated(place.digest, read);
        worth_storing?;
        self.check_read_of_no_table(read.select)?;
        let taken = self.take(read.label)?;
        self.check_allowed(read, taken)?;
        let LookedUp {
            tables,
            bounds,
            expires_at_ms,
            tags,
        } = self.look_up_facts(read, taken)?;
        let shared = &self.shared;
        if self.has_written(tags.iter().copied()) {
            return Err(Bypass::TransactionHasWritten);
        }
        if shared.timeline.needs_fresher_watermark(&tags) {
            // Such an answer would never be served: a change is known that may not be visible yet.
            shared.upstream.wake();
            return Err(Bypass::WatermarkBehind);
        }
        match taken.shows {
            Shows::Snapshot(snapshot) => self.check_fill_in_snapshot(snapshot, &tags)?,
            // By the time that the next transaction wants it, perhaps.
            Shows::First => shared.upstream.ask_for_end_soon(),
            Shows::Now => {}
        }
        let key = KeyRef {
            scope: place.scope,
            text,
        };
        let permit = self.begin_fill(&key, place.digest, (taken.as_of, &tags));
        let is_counted = !matches!(permit, Err(Bypass::Fill(_)));
        // Counts results that the store refuses, too: by here they have cost nearly as much.
        if is_counted && self.shared.limits.storing == Storing::Adaptive {
            let digests = &self.worker.digests;
            digests.note_stored(&self.shared.digests, read.label, self.room_for(place));
        }
        let permit = permit?;
        self.fill_text.clear();
        self.fill_text.extend_from_slice(text);
        Ok(Fill {
            scope: place.scope,
            taken,
            bounds,
            expires_at_ms,
            tags,
            reads_tables_only: tables.iter().all(|table| table.facts.is_transactional),
            label: read.label,
            makes_snapshot: false,
            counts_found_rows: self.counts_more_than_it_gives(read),
            warnings_max: u16::from(read.select.says_cache && self.warns_of_cache_hint()),
            permit: Some(permit),
            captured: Vec::new(),
        })
    }

    /// Takes what must be taken first.
    fn take(&self, label: Label) -> Result<Taken, Bypass> {
        let looked_up_at = self.shared.timeline.as_of();
        let looked_up_at = looked_up_at.ok_or(Bypass::FollowerNotLive)?;
        let shows = self.shows(label)?;
        // What a transaction reads is no newer than its snapshot.
        let as_of = match shows {
            Shows::Snapshot(snapshot) => snapshot.low,
            Shows::First | Shows::Now => looked_up_at,
        };
        Ok(Taken {
            looked_up_at,
            as_of,
            shows,
            epoch: self.shared.store.epoch(),
        })
    }

    /// Whether results may be kept at all: of this statement, and from the server that the session
    /// is on.
    fn check_allowed(&self, read: &Read<'_>, _: Taken) -> Result<(), Bypass> {
        let shared = &self.shared;
        if !shared.query_cache.is_on() {
            return Err(Bypass::QueryCacheOff);
        }
        // What is live now is of the server that the present mark is of.
        self.check_server()?;
        let known = self.state.fingerprint();
        let instance = known.and_then(|known| known.instance.as_ref());
        let is_followed = instance.is_some_and(|instance| shared.upstream.follows(instance));
        if !is_followed && shared.timeline.broken().surroundings != BrokenSurroundings::Instance {
            return Err(Bypass::OtherInstance);
        }
        if self.state.cache_type() == CacheType::Demand && !read.select.says_cache {
            return Err(Bypass::QueryCacheOnDemand);
        }
        if self.is_switched_off(read.statement) {
            return Err(Bypass::DigestSwitchedOff);
        }
        Ok(())
    }

    /// The tables that are read, what rules say of them, and what the result depends on.
    fn look_up_facts(&self, read: &Read<'_>, taken: Taken) -> Result<LookedUp, Bypass> {
        let tables = self.tables_of(read)?;
        // Before the read is sent: a result's age is that of its question.
        let bounds = self.ask_rules(read, &tables)?;
        let expires_at_ms = bounds
            .time_to_live_ms
            .map(|time| self.shared.clock.now_ms().saturating_add(time));
        let tags = self.tags_of(read, &tables, taken.as_of)?;
        Ok(LookedUp {
            tables,
            bounds,
            expires_at_ms,
            tags,
        })
    }

    /// Which state of the tables a read of this digest shows that is sent now.
    fn shows(&self, label: Label) -> Result<Shows, Bypass> {
        Ok(match self.state.snapshot() {
            Some(snapshot) => Shows::Snapshot(snapshot),
            None if self.state.must_have_snapshot() && !self.keeps_first_read(label) => {
                return Err(Bypass::SnapshotNotMade);
            }
            None if self.state.reads_first() => Shows::First,
            None => Shows::Now,
        })
    }

    /// Whether the server counts rows for `FOUND_ROWS()`, and perhaps more than it gives.
    fn counts_more_than_it_gives(&self, read: &Read<'_>) -> bool {
        let known = self.state.fingerprint();
        read.select.counts_found_rows
            && (may_find_more_than_it_gives(read.statement)
                || !known.is_some_and(|known| known.selects_all))
    }

    /// A read of no table neither opens a transaction nor makes a snapshot. An answer from
    /// memory would count as a read that does, so none is kept for a transaction.
    fn check_read_of_no_table(&self, select: &Select) -> Result<(), Bypass> {
        if select.tables.is_empty() && !self.state.is_certainly_outside_transaction() {
            return Err(Bypass::NoTablesInTransaction);
        }
        Ok(())
    }

    /// The tables that a statement reads, or why results of them can't be kept.
    pub(super) fn tables_of(&self, read: &Read<'_>) -> Result<Vec<ReadTables>, Bypass> {
        let tables = read.select.tables.iter();
        let tables: Vec<_> = tables
            .map(|name| self.read_table(name))
            .collect::<Result<_, _>>()?;
        check_columns(read.select, &tables).map_err(|(_, why)| Bypass::Table(why))?;
        Ok(tables)
    }

    /// What the operator's rules say.
    fn ask_rules(&self, read: &Read<'_>, tables: &[ReadTables]) -> Result<Bounds, Bypass> {
        let rules = self.shared.rules.get();
        if rules.is_empty() {
            return Ok(Bounds::default());
        }
        let known = self.state.fingerprint().ok_or(Bypass::SettingsUnknown)?;
        if known.account.is_none() && rules.asks_for_sessions() {
            return Err(Bypass::RuleUncertain);
        }
        let mut names = Vec::new();
        if rules.asks_for_tables() {
            for (name, table) in read.select.tables.iter().zip(tables) {
                names.push(self.qualify(name).ok_or(Bypass::TableUnknown)?);
                names.extend(behind_view(&table.facts));
            }
        }
        let digest = || {
            let dialect = self.dialect()?;
            Some(remora_sql::normalise(
                read.statement,
                dialect,
                &mut Vec::new(),
            ))
        };
        let facts = Facts {
            digest: rules.asks_for_digests().then(digest).flatten(),
            tables: &names,
            names_have_case: self.shared.upstream.catalogue.names_have_case(),
            account: known.account.as_deref(),
            schema: known.schema.as_deref(),
        };
        self.shared.rules.decide(&rules, &facts)
    }

    /// What a result depends on.
    fn tags_of(
        &self,
        read: &Read<'_>,
        tables: &[ReadTables],
        as_of: AsOf,
    ) -> Result<Vec<Tag>, Bypass> {
        let shared = &self.shared;
        let under = ReadTags {
            shapes: &shared.upstream.shapes,
            as_of,
            broken: shared.timeline.broken().tags,
            bound: read.bound,
            conversion: self.string_conversion(),
            purpose: Purpose::Result,
        };
        let catalogue = &shared.upstream.catalogue;
        let mut is_loading = false;
        let tags = tags_of_read(read.select, tables, &under, |parent| {
            match catalogue.lookup(&parent.schema, &parent.table) {
                Lookup::Known(facts) => return Some(facts),
                Lookup::Loading => is_loading = true,
                Lookup::Unavailable => {}
            }
            None
        });
        if is_loading {
            // With what isn't known yet the tags would be coarser than they need be for as long as
            // the result is kept.
            return Err(Bypass::TableLoading);
        }
        Ok(tags)
    }

    /// A table that a statement reads, if results from it can be kept.
    pub(super) fn read_table(&self, name: &TableName) -> Result<ReadTables, Bypass> {
        let (schema, table) = self.qualify(name).ok_or(Bypass::TableUnknown)?;
        match self.shared.upstream.catalogue.lookup(schema, table) {
            Lookup::Known(facts) => {
                facts.cacheable.map_err(Bypass::Table)?;
                let tags = TableTags::of(facts.tag);
                Ok(ReadTables { tags, facts })
            }
            Lookup::Loading => Err(Bypass::TableLoading),
            Lookup::Unavailable => Err(Bypass::TableUnknown),
        }
    }

    /// Takes in a piece that isn't the last; says why if the answer is too large to be kept.
    pub(super) fn capture(&self, mut fill: Fill, piece: &[u8]) -> Result<Fill, Bypass> {
        if fill.captured.is_empty() {
            if let Some(permit) = &fill.permit {
                permit.note_answering();
            }
            fill.captured = self.worker.capture_buffer();
        }
        let bytes_max = self.shared.query_cache.limit_bytes();
        if let Err(why) = fill.check_size(fill.captured.len() + piece.len(), bytes_max) {
            self.worker.keep_capture_buffer(fill.captured);
            return Err(why);
        }
        make_room(&mut fill.captured, piece.len(), bytes_max);
        fill.captured.extend_from_slice(piece);
        Ok(fill)
    }

    /// The whole answer has passed; `last_piece` is what of it wasn't captured before.
    pub(super) fn finish_fill(
        &mut self,
        mut fill: Fill,
        last_piece: &[u8],
        summary: &Summary,
        evidence: Evidence,
    ) {
        let label = fill.label;
        fill.makes_snapshot = evidence.is_given();
        // Before looking for changes.
        let unproven = self.shown_by(&fill);
        let unproven = unproven.filter(|snapshot| !self.shared.timeline.covers(*snapshot));
        let checked = self
            .may_keep(summary, fill.warnings_max)
            .and_then(|()| fill.check(&self.shared, last_piece));
        let kept = match (checked, unproven) {
            (Err(why), _) => Err(why),
            (Ok(()), Some(snapshot)) => return self.keep_later(fill, last_piece, snapshot),
            (Ok(()), None) => fill.keep(
                &self.worker.digests,
                &self.shared,
                &self.fill_text,
                last_piece,
            ),
        };
        let key_of_count = (fill.counts_found_rows && kept.is_ok()).then(|| {
            let response = if fill.captured.is_empty() {
                last_piece
            } else {
                &fill.captured[..]
            };
            key_of_count(&self.fill_text, response)
        });
        if !fill.captured.is_empty() {
            let buffer = std::mem::take(&mut fill.captured);
            self.worker.keep_capture_buffer(buffer);
        }
        match kept {
            Ok(()) => {
                self.count(Some(label), Outcome::Fill);
                self.counted_rows = key_of_count.and_then(|key| fill.of_count(key));
            }
            Err(why) => self.count_bypass(label, why),
        }
    }

    fn may_keep(&self, summary: &Summary, warnings_max: u16) -> Result<(), Bypass> {
        let Some(mark) = summary.mark else {
            return Err(Bypass::AnswerIsError);
        };
        let is_one = summary.results == 1 && summary.numbered_from_one;
        if summary.ending != Ending::ResultSet || !is_one {
            return Err(Bypass::AnswerIsNotOneResultSet);
        }
        if mark.warnings > warnings_max {
            return Err(Bypass::AnswerHasWarnings);
        }
        let unusual = mark.status.without(STATUS_OF_ANY_RESULT);
        if unusual != StatusFlags::default() || !self.state.has_status_of(mark) {
            return Err(Bypass::AnswerHasStatus);
        }
        Ok(())
    }

    /// The bounds of the state that an answer shows which has arrived, if it must be exact.
    fn shown_by(&self, fill: &Fill) -> Option<Snapshot> {
        match fill.taken.shows {
            Shows::Now => None,
            Shows::First => Some(Snapshot {
                low: fill.taken.as_of,
                made_after: self.shared.timeline.end_questions(),
            }),
            Shows::Snapshot(snapshot) => Some(snapshot),
        }
    }

    /// Keeps an answer aside that is kept when its snapshot is proven to be covered.
    fn keep_later(&mut self, mut fill: Fill, last_piece: &[u8], snapshot: Snapshot) {
        let limit = self.shared.limits.waiting_fills_max;
        // Most others are proven when they come.
        let is_first = matches!(fill.taken.shows, Shows::First);
        if limit == 0 || !(is_first || self.state.may_open_early()) {
            return self.count_bypass(fill.label, Bypass::SnapshotUnproven);
        }
        let mut waiting = self.worker.waiting_fills.borrow_mut();
        let is_same =
            |one: &WaitingFill| one.fill.scope == fill.scope && one.text == self.fill_text;
        if waiting.iter().any(is_same) {
            // That one is proven sooner.
            drop(waiting);
            return self.count_bypass(fill.label, Bypass::Fill(FillRefused::InFlight));
        }
        self.count(Some(fill.label), Outcome::Fill);
        fill.captured.extend_from_slice(last_piece);
        // Nobody may look anything up on this worker for long.
        fill.permit = None;
        if waiting.len() >= limit {
            waiting.pop_front();
            self.shared.metrics.rare.count_limit(Limit::WaitingFills);
        }
        waiting.push_back(WaitingFill {
            fill,
            text: self.fill_text.clone(),
            snapshot,
        });
        self.shared.upstream.ask_for_end_soon();
    }

    /// Keeps what was waiting for a proof that has come.
    pub(super) fn keep_waiting_fills(&self) {
        let (shared, mut waiting) = (&self.shared, self.worker.waiting_fills.borrow_mut());
        waiting.retain_mut(|one| {
            let is_proven = shared.timeline.covers(one.snapshot);
            if is_proven && one.fill.check(shared, &[]).is_ok() {
                // It has been counted. A store that doesn't take it says so itself.
                let _ = one.fill.keep(&self.worker.digests, shared, &one.text, &[]);
            }
            !is_proven
        });
    }
}

impl Fill {
    /// What keeps the answer to the question that may follow, if this one was outside transactions.
    fn of_count(self, key: Vec<u8>) -> Option<CountedRows> {
        matches!(self.taken.shows, Shows::Now).then(|| CountedRows {
            fill: Box::new(Fill {
                counts_found_rows: false,
                makes_snapshot: false,
                reads_tables_only: false,
                warnings_max: 0,
                permit: None,
                captured: Vec::new(),
                ..self
            }),
            key,
        })
    }

    /// What was visible before it was sent, if it reads tables only, and no view.
    pub(super) fn as_of_tables(&self) -> Option<AsOf> {
        self.reads_tables_only.then_some(self.taken.looked_up_at)
    }

    /// Whether the whole answer may be kept, but for what its snapshot may show. `last_piece`: what
    /// of it wasn't captured.
    fn check(&self, shared: &Shared, last_piece: &[u8]) -> Result<(), Bypass> {
        // A fence or a lagging follower may pass; a change doesn't.
        let now_ms = shared.clock.now_ms();
        if let Err(why) = shared.timeline.check(self.taken.as_of, &self.tags, now_ms)
            && why.invalidation().is_some()
        {
            // With a newer watermark the next one is kept.
            shared.upstream.turned_away();
            return Err(Bypass::Outdated(why));
        }
        let bytes = self.captured.len() + last_piece.len();
        self.check_size(bytes, shared.query_cache.limit_bytes())
    }

    /// Keeps the whole answer. What a transaction has read is kept only if the follower has applied
    /// all that it may show, and was looked at for changes afterwards.
    fn keep(
        &mut self,
        digests: &Digester,
        shared: &Shared,
        text: &[u8],
        last_piece: &[u8],
    ) -> Result<(), Bypass> {
        let response = if self.captured.is_empty() {
            last_piece
        } else {
            self.captured.extend_from_slice(last_piece);
            &self.captured
        };
        let entry = NewEntry {
            key: KeyRef {
                scope: self.scope,
                text,
            },
            tags: &self.tags,
            as_of: self.taken.as_of,
            response,
            label: Note {
                label: self.label,
                makes_snapshot: self.makes_snapshot,
                counts_found_rows: self.counts_found_rows,
            }
            .number(),
            epoch: self.taken.epoch,
            expires_at_ms: self.expires_at_ms,
        };
        let mut stored = Stored::default();
        let is_stored = shared.store.insert_noting(&entry, &mut stored);
        for (number, reason) in stored.outdated {
            // Which table it was isn't looked for here: somebody waits for the answer.
            if let Some(by) = OutdatedBy::told_without_tables(reason) {
                let label = Note::from_number(number).label;
                digests.count(label, Count::Outdated);
                digests.count_outdated_by(label, by);
            }
        }
        is_stored.map_err(Bypass::NotStored)
    }

    /// Whether an answer of so many bytes may be kept, with the limit for all of them.
    fn check_size(&self, bytes: usize, bytes_max: usize) -> Result<(), Bypass> {
        let of_rule = self.bounds.result_bytes_max;
        if of_rule.is_some_and(|of_rule| bytes > of_rule) {
            return Err(Bypass::AnswerTooLargeForRule);
        }
        if bytes > bytes_max {
            return Err(Bypass::AnswerTooLarge);
        }
        Ok(())
    }
}

/// Room for `more` bytes: twice as much as before, so that a long answer is seldom moved, but not
/// beyond `bytes_max` for what may turn out larger than is kept. `more` bytes must fit below that.
fn make_room(buffer: &mut Vec<u8>, more: usize, bytes_max: usize) {
    let needed = buffer.len() + more;
    if needed > buffer.capacity() {
        let capacity = (2 * buffer.capacity()).clamp(needed, bytes_max.max(needed));
        buffer.reserve_exact(capacity - buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_grows_in_few_steps_and_not_beyond_what_is_kept() {
        let (bytes_max, piece) = (100_000, [0; 300]);
        let (mut buffer, mut steps) = (Vec::new(), 0);
        while buffer.len() + piece.len() <= bytes_max {
            let before = buffer.capacity();
            make_room(&mut buffer, piece.len(), bytes_max);
            steps += usize::from(buffer.capacity() > before);
            buffer.extend_from_slice(&piece);
        }
        assert!(steps <= 10, "{steps}");
        assert!(buffer.capacity() <= bytes_max, "{}", buffer.capacity());
    }
}
