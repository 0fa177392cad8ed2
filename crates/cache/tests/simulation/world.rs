//! The proxy around the timeline, one small step at a time, in an order that a seed decides.

mod early;
mod processes;
mod transactions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use remora_cache::{
    AsOf, BrokenRules, BrokenSnapshots, Epoch, Fence, FenceBatch, FenceScope, Position, Shapes,
    ShapesLimits, ShapesSnapshot, Tag, Timeline, TimelineLimits,
};

use self::transactions::Transactions;
use crate::Fault;
use crate::server::{
    Answer, Definition, Logged, LoggedCommit, Query, Random, Server, TABLES, Write, answer,
    random_query,
};
use crate::tags::{fences_of, shape_of, table_tags, tags_of_change};

const LAG_MS_MAX: u64 = 40;
const QUERIES: usize = 4;
const IN_FLIGHT_MAX: usize = 3;

/// What happened, over all simulations.
#[derive(Default, Debug)]
pub struct Seen {
    pub hits: u64,
    /// Hits of results whose table has changed since they were read.
    pub hits_kept_by_tags: u64,
    pub refused: u64,
    pub coarse_fills: u64,
    pub restarts: u64,
    /// Results that a new process has taken over.
    pub taken_over: u64,
    pub commits_again: u64,
    /// Reads inside transactions that memory answered, and those of them whose result was read in
    /// another state than theirs.
    pub hits_in_snapshots: u64,
    pub hits_of_another_state: u64,
    /// Those that were refused by the rule for snapshots.
    pub newer_than_snapshot: u64,
    pub snapshot_unproven: u64,
    pub inexact_not_stored: u64,
    /// Hits in transactions of which the server didn't know, and those that were refused because an
    /// earlier one had changed.
    pub early_hits: u64,
    pub earlier_read: u64,
    /// Such transactions that the server opened with their snapshot. Of them, those in which it had
    /// to be asked again and answered as memory had, and those in which it answered otherwise.
    pub opened: u64,
    pub opened_after_change: u64,
    pub conflicts: u64,
}

struct Entry {
    as_of: AsOf,
    tags: Vec<Tag>,
    answer: Answer,
}

/// A fill that has been planned, and perhaps executed.
struct Fill {
    query: usize,
    as_of: AsOf,
    /// Looked up later than `as_of` is taken.
    tags: Option<Vec<Tag>>,
    answer: Option<Answer>,
}

enum Stage {
    Fenced,
    Executed(usize),
    Visible(usize),
    Counted(usize),
}

struct WriteInFlight {
    write: Write,
    stage: Stage,
    is_logged: bool,
    /// None: it doesn't pass through the proxy.
    fence: Option<Fence>,
    facts: Option<Definition>,
}

/// How far the follower is with the next commit.
enum Following {
    Idle,
    HasRows(Vec<Tag>, [ShapesSnapshot<u8>; TABLES]),
    HasBegun(Vec<Tag>, [ShapesSnapshot<u8>; TABLES]),
    HasTouched,
}

enum Watermark {
    Idle,
    Asks(Epoch, FenceBatch, u64),
    Waits(Epoch, FenceBatch, u64, Position),
}

pub struct World<'a> {
    random: Random,
    /// How likely each actor is to make the next step.
    weights: [usize; 10],
    /// Of so many writes one is of a definition.
    definitions: usize,
    /// Whether each step is told: when one seed is run again.
    pub is_told: bool,
    fault: Fault,
    seen: &'a mut Seen,
    now_ms: u64,
    server: Server,
    limits: TimelineLimits,
    shapes_limits: ShapesLimits,
    timeline: Arc<Timeline>,
    shapes: Shapes<u8>,
    queries: Vec<Query>,
    stored: BTreeMap<usize, Entry>,
    fills: Vec<Fill>,
    writes: Vec<WriteInFlight>,
    /// The states that writes through the proxy have made whose clients have the answer.
    answered: BTreeSet<usize>,
    facts: [Option<(AsOf, Definition)>; TABLES],
    next: usize,
    is_lost: bool,
    following: Following,
    watermark: Watermark,
    transactions: Transactions,
}

fn definition_tag(table: usize) -> Tag {
    Tag::definition("shop", ["orders", "lines"][table])
}

impl<'a> World<'a> {
    pub fn new(seed: u64, fault: Fault, seen: &'a mut Seen) -> World<'a> {
        let mut random = Random::new(seed);
        let limits = TimelineLimits {
            tag_slots: 1 << 10,
            fence_slots: 1 << 10,
            lag_ms_max: LAG_MS_MAX,
        };
        let broken = BrokenRules {
            watermark: fault == Fault::Watermark,
            fences: fault == Fault::Fences,
            shapes: fault == Fault::LateShapes,
            snapshots: match fault {
                Fault::SnapshotLow | Fault::NewerUntouched => BrokenSnapshots::Low,
                Fault::SnapshotHigh => BrokenSnapshots::High,
                Fault::EarlyHits => BrokenSnapshots::EarlyHits,
                Fault::EarlySnapshot => BrokenSnapshots::EarlySnapshot,
                Fault::OpenedUnderFence => BrokenSnapshots::EarlyFences,
                _ => BrokenSnapshots::Right,
            },
            ..BrokenRules::default()
        };
        let timeline = Arc::new(Timeline::new(limits, broken));
        timeline.restart(Position::new(1, 0).unwrap());
        timeline.prove(timeline.epoch(), 0);
        let shapes_limits = ShapesLimits {
            table_shapes_max: 2 + random.below(20),
            tables_max: TABLES,
        };
        // Which takes many definitions to be found.
        let is_of_definitions = fault == Fault::FencesOfOldDefinition;
        let weights = match random.below(3) {
            _ if is_of_definitions => [12, 10, 2, 8, 12, 10, 0, 0, 1, 0],
            // Mostly transactions, and a follower that lags.
            0 => [4, 4, 1, 5, 2, 8, 40, 20, 1, 0],
            // Few transactions.
            1 => [12, 10, 2, 8, 12, 10, 0, 0, 1, 0],
            _ => [12, 10, 2, 8, 12, 10, 12, 10, 1, 0],
        };
        World {
            queries: (0..QUERIES).map(|_| random_query(&mut random)).collect(),
            server: Server::new(&mut random),
            definitions: [30, 4][usize::from(random.one_in(3) || is_of_definitions)],
            weights: weights.map(|least| least + random.below(least + 3)),
            random,
            is_told: false,
            fault,
            seen,
            now_ms: 0,
            shapes: Shapes::new(Arc::clone(&timeline), shapes_limits),
            limits,
            shapes_limits,
            timeline,
            stored: BTreeMap::new(),
            fills: Vec::new(),
            writes: Vec::new(),
            answered: BTreeSet::new(),
            facts: [None; TABLES],
            next: 0,
            is_lost: false,
            following: Following::Idle,
            watermark: Watermark::Idle,
            transactions: Transactions::default(),
        }
    }

    /// The violation, if a read got what it must not.
    pub fn run(&mut self, steps: usize) -> Result<(), String> {
        for step in 0..steps {
            self.step().map_err(|what| format!("step {step}: {what}"))?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let mut at = self.random.below(self.weights.iter().sum());
        let mut actor = 0;
        while at >= self.weights[actor] {
            at -= self.weights[actor];
            actor += 1;
        }
        match actor {
            0 => self.read()?,
            1 => self.go_on_with_fill(),
            2 => self.begin_write(),
            3 => self.go_on_with_write(),
            4 => self.follow(),
            5 => self.keep_watermark(),
            6 => self.go_on_with_transaction()?,
            7 => self.ask_for_end(),
            8 => self.now_ms += self.random.below(20) as u64,
            _ => self.disturb(),
        }
        Ok(())
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_told {
            eprintln!("{} ms: {}", self.now_ms, what());
        }
    }

    fn position_of(&self, entries: usize) -> Position {
        let offset = entries.saturating_sub(self.server.log_begins_after);
        Position::new(1, offset as u64).unwrap()
    }

    // ---- Reads ---------------------------------------------------------------------------------

    fn read(&mut self) -> Result<(), String> {
        if self.random.one_in(30) {
            self.replace_query();
        }
        let query = self.random.below(QUERIES);
        if let Some(entry) = self.stored.get(&query) {
            match self.timeline.check(entry.as_of, &entry.tags, self.now_ms) {
                Ok(()) => return self.examine_hit(query),
                Err(_) => self.seen.refused += 1,
            }
        }
        if let Some(as_of) = self.timeline.as_of()
            && self.fills.len() < IN_FLIGHT_MAX
        {
            self.fills.push(Fill {
                query,
                as_of,
                tags: None,
                answer: None,
            });
        }
        Ok(())
    }

    /// What was read must be what some state gives that isn't older than the promise.
    fn examine_hit(&mut self, query: usize) -> Result<(), String> {
        let entry = &self.stored[&query];
        self.seen.hits += 1;
        let any = self.queries[query]
            .iter()
            .map(|read| table_tags(read.table).any());
        if self.timeline.outdated(entry.as_of, any).is_some() {
            self.seen.hits_kept_by_tags += 1;
        }
        let since_ms = self.now_ms.saturating_sub(LAG_MS_MAX);
        let is_old_enough = |counted_at: &u64| *counted_at < since_ms;
        let replaced = self.server.counted_at_ms.partition_point(is_old_enough);
        let oldest = replaced.saturating_sub(1);
        let gives = |state: usize| answer(&self.server.states[state], &self.queries[query]);
        // Backwards, as far as no answered write changed what the query gives.
        for state in (oldest..=self.server.visible).rev() {
            if gives(state) == entry.answer {
                return Ok(());
            }
            if self.answered.contains(&state) && gives(state) != gives(state - 1) {
                break;
            }
        }
        Err(format!(
            "STALE: {:?} got {:?} of {:?}; state {} is visible, which gives {:?}, {oldest} is as old as the lag allows",
            self.queries[query],
            entry.answer,
            entry.as_of,
            self.server.visible,
            gives(self.server.visible),
        ))
    }

    /// The definition, as the catalogue knows it.
    fn facts_of(&mut self, table: usize) -> Option<Definition> {
        let tag = [definition_tag(table)];
        let is_valid = |(as_of, _): &(AsOf, Definition)| {
            let is_outdated = self.timeline.outdated(*as_of, tag.into_iter());
            is_outdated.is_none()
        };
        if let Some((_, known)) = self.facts[table].filter(is_valid) {
            return Some(known);
        }
        let as_of = self.timeline.as_of()?;
        let definition = self.server.visible_state()[table].definition;
        self.facts[table] = Some((as_of, definition));
        Some(definition)
    }

    fn tags_of_read(&mut self, query: usize, as_of: AsOf) -> Option<Vec<Tag>> {
        let mut tags = Vec::new();
        for read in self.queries[query].clone() {
            let definition = self.facts_of(read.table)?;
            let table = table_tags(read.table);
            let (wanted, values) = shape_of(&read, definition, self.fault);
            if let Ok(shape) = self.shapes.find(table, &wanted, as_of) {
                tags.push(table.whole());
                let first = shape.columns().first();
                tags.extend(first.map(|first| table.column(first.ordinal)));
                tags.extend(values.iter().map(|values| shape.tag(table, values)));
            } else {
                self.seen.coarse_fills += 1;
                tags.push(table.any());
            }
        }
        Some(tags)
    }

    fn go_on_with_fill(&mut self) {
        if self.fills.is_empty() {
            return;
        }
        let at = self.random.below(self.fills.len());
        let mut fill = self.fills.swap_remove(at);
        let Some(tags) = &fill.tags else {
            fill.tags = self.tags_of_read(fill.query, fill.as_of);
            if let Some(tags) = &fill.tags {
                self.tell(|| format!("query {}, {:?}, {tags:?}", fill.query, fill.as_of));
                self.fills.push(fill);
            }
            return;
        };
        let Some(answer) = fill.answer else {
            let answer = answer(self.server.visible_state(), &self.queries[fill.query]);
            fill.answer = Some(answer);
            self.fills.push(fill);
            return;
        };
        self.tell(|| format!("query {} stored, {answer:?}", fill.query));
        let entry = Entry {
            as_of: fill.as_of,
            tags: tags.clone(),
            answer,
        };
        self.stored.insert(fill.query, entry);
    }

    /// Another query takes the place of one, perhaps of a new shape.
    fn replace_query(&mut self) {
        let query = self.random.below(QUERIES);
        self.queries[query] = random_query(&mut self.random);
        self.stored.remove(&query);
        self.fills.retain(|fill| fill.query != query);
        self.transactions.drop_query(query);
    }

    // ---- Writes --------------------------------------------------------------------------------

    fn begin_write(&mut self) {
        if self.writes.len() >= IN_FLIGHT_MAX {
            return;
        }
        let write = Write::random(&mut self.random, self.definitions);
        let mut in_flight = WriteInFlight {
            write,
            stage: Stage::Fenced,
            is_logged: true,
            fence: None,
            facts: None,
        };
        if !self.random.one_in(4) {
            let write = &in_flight.write;
            in_flight.is_logged = !self.random.one_in(20);
            let table = write.table();
            let facts = self.facts_of(table);
            let fences = match facts {
                Some(definition) => fences_of(write, definition, self.fault),
                None => table_tags(table).fences().to_vec(),
            };
            in_flight.fence = Some(self.timeline.raise(FenceScope::Tables(fences)));
            in_flight.facts = facts;
        }
        self.writes.push(in_flight);
    }

    fn go_on_with_write(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let at = self.random.below(self.writes.len());
        match self.writes[at].stage {
            Stage::Fenced => {
                let is_logged = self.writes[at].is_logged;
                let is_settled = self.server.visible + 1 == self.server.states.len();
                if is_logged || is_settled {
                    let state = self.server.commit(&self.writes[at].write, is_logged);
                    self.tell(|| {
                        format!(
                            "state {state}: {:?}, logged {is_logged}",
                            self.writes[at].write
                        )
                    });
                    self.writes[at].stage = Stage::Executed(state);
                    if !is_logged {
                        // Nothing can come in between in the order of states.
                        self.server.make_visible(state);
                    }
                }
            }
            Stage::Executed(state) => {
                self.server.make_visible(state);
                self.writes[at].stage = Stage::Visible(state);
            }
            Stage::Visible(state) => {
                self.server.count(state, self.now_ms);
                self.writes[at].stage = Stage::Counted(state);
            }
            Stage::Counted(state) => self.answer_write(at, state),
        }
    }

    fn answer_write(&mut self, at: usize, state: usize) {
        let write = self.writes.swap_remove(at);
        let Some(fence) = write.fence else {
            return;
        };
        if !write.is_logged && self.fault != Fault::NotForgotten {
            self.timeline.forget();
        }
        let table = write.write.table();
        let facts = self.facts_of(table);
        if (facts.is_none() || facts != write.facts) && self.fault != Fault::FencesOfOldDefinition {
            // The fence was made for another definition than readers may have gone by.
            let fences = table_tags(table).fences().to_vec();
            self.timeline.raise(FenceScope::Tables(fences)).answered();
        }
        self.tell(|| format!("state {state} answered"));
        self.answered.insert(state);
        fence.answered();
    }

    // ---- The follower --------------------------------------------------------------------------

    fn follow(&mut self) {
        if self.is_lost {
            return;
        }
        let Some(commit) = self.server.log.get(self.next).cloned() else {
            return;
        };
        let at = self.position_of(self.next + 1);
        self.following = match std::mem::replace(&mut self.following, Following::Idle) {
            Following::Idle => {
                let snapshots = [0, 1].map(|table| self.shapes.snapshot(table_tags(table)));
                Following::HasRows(self.tags_of_commit(&commit, &snapshots), snapshots)
            }
            Following::HasRows(tags, snapshots) => {
                self.timeline.begin_commit(at);
                Following::HasBegun(tags, snapshots)
            }
            Following::HasBegun(tags, snapshots) => {
                self.tell(|| {
                    format!(
                        "state {} touches at {at}, {} tags",
                        commit.state,
                        tags.len()
                    )
                });
                self.touch(&commit, at, &tags, &snapshots);
                Following::HasTouched
            }
            Following::HasTouched => {
                if at > self.timeline.applied() {
                    self.timeline.set_applied(at);
                } else {
                    self.seen.commits_again += 1;
                }
                self.next += 1;
                Following::Idle
            }
        };
    }

    fn tags_of_commit(
        &self,
        commit: &LoggedCommit,
        snapshots: &[ShapesSnapshot<u8>; TABLES],
    ) -> Vec<Tag> {
        let Logged::Rows(changes) = &commit.logged else {
            return Vec::new();
        };
        let mut tags = Vec::new();
        for change in changes {
            let definition = commit.definitions[change.table];
            for shape in snapshots[change.table].shapes() {
                tags.extend(tags_of_change(change, definition, shape, self.fault));
            }
        }
        tags
    }

    fn touch(
        &mut self,
        commit: &LoggedCommit,
        at: Position,
        tags: &[Tag],
        snapshots: &[ShapesSnapshot<u8>; TABLES],
    ) {
        for tag in tags {
            self.timeline.touch(*tag, at);
        }
        let (tables, is_whole) = match &commit.logged {
            Logged::Rows(changes) => (changes.iter().map(|change| change.table).collect(), false),
            Logged::Text(table) => (vec![*table], true),
            Logged::Definition(table) => {
                let is_again = self.fault == Fault::RetiresAgain;
                let never_applied = Position::new(2, 0).unwrap();
                let at_or_later = if is_again { never_applied } else { at };
                self.shapes.retire(table_tags(*table), at_or_later);
                self.timeline.touch(definition_tag(*table), at);
                (vec![*table], true)
            }
        };
        for table in tables {
            let tags = table_tags(table);
            self.timeline.touch(tags.any(), at);
            let version = self.shapes.snapshot(tags).version();
            let has_changed = version != snapshots[table].version();
            if is_whole || has_changed && self.fault != Fault::NoSecondLook {
                self.timeline.touch(tags.whole(), at);
            }
        }
    }

    fn disturb(&mut self) {
        // That fault takes so many seeds that nothing else may come in between.
        let kinds = [10, 8][usize::from(self.fault == Fault::FencesOfOldDefinition)];
        match self.random.below(kinds) {
            0..3 => {
                if matches!(self.following, Following::Idle | Following::HasRows(..)) {
                    self.following = Following::Idle;
                    self.timeline.suspend();
                    self.is_lost = true;
                }
            }
            3..6 if self.is_lost => {
                // Some of the log comes again.
                let again = self.random.below(6);
                self.next = self
                    .next
                    .saturating_sub(again)
                    .max(self.server.log_begins_after);
                self.tell(|| format!("goes on at {}", self.next));
                self.timeline.resume();
                self.is_lost = false;
            }
            6 if self.is_lost => self.restart(),
            7 => {
                let query = self.random.below(QUERIES);
                self.stored.remove(&query);
            }
            8..10 => self.replace_process(),
            _ => {}
        }
    }

    /// The server has begun a new log, whose positions are small, when all was visible.
    fn restart(&mut self) {
        self.tell(|| "restart".to_owned());
        self.seen.restarts += 1;
        self.begin_log();
        self.next = self.server.log.len();
        self.timeline.restart(self.position_of(self.next));
        self.is_lost = false;
    }

    fn begin_log(&mut self) {
        let last = self.server.states.len() - 1;
        self.server.make_visible(last);
        self.server.count(last, self.now_ms);
        self.server.log_begins_after = self.server.log.len();
    }

    fn keep_watermark(&mut self) {
        self.watermark = match std::mem::replace(&mut self.watermark, Watermark::Idle) {
            Watermark::Idle => {
                let epoch = self.timeline.epoch();
                Watermark::Asks(epoch, self.timeline.take_answered(), self.now_ms)
            }
            Watermark::Asks(epoch, batch, asked_at_ms) => {
                let answer = self.position_of(self.server.counted_entries());
                self.timeline.advance_visible(epoch, answer);
                Watermark::Waits(epoch, batch, asked_at_ms, answer)
            }
            Watermark::Waits(epoch, batch, asked_at_ms, answer) => {
                if epoch != self.timeline.epoch() {
                    // Its question was about another log.
                    drop(batch);
                    Watermark::Idle
                } else if self.timeline.applied() >= answer {
                    self.tell(|| format!("{answer} proven, its batch lowered"));
                    let proven_for = match self.fault {
                        Fault::ProvenForNow => self.now_ms,
                        _ => asked_at_ms,
                    };
                    self.timeline.prove(epoch, proven_for);
                    batch.lower();
                    Watermark::Idle
                } else {
                    Watermark::Waits(epoch, batch, asked_at_ms, answer)
                }
            }
        };
    }
}
