//! Transactions at `REPEATABLE READ`: their snapshots, what they read and what is stored of it, and
//! the questions about where the log ends.
//!
//! Whatever such a transaction reads must be what the query gives on the state that its snapshot
//! shows, not on some other.

use std::collections::BTreeMap;

use remora_cache::{AsOf, EndQuestion, Epoch, FenceBatch, Position, Snapshot, Tag, Unservable};

use super::{Entry, World};
use crate::Fault;
use crate::server::answer;

const OPEN_MAX: usize = 4;

#[derive(Default)]
pub struct Transactions {
    open: Vec<Transaction>,
    /// What they have read, apart from what is read outside of them.
    stored: BTreeMap<usize, Exact>,
    question: Question,
}

/// A result, and the state that it was read in.
struct Exact {
    entry: Entry,
    state: usize,
}

struct Transaction {
    /// Taken before the server has heard of the transaction.
    low: AsOf,
    /// The last question about the log's end at that moment.
    asked_before: EndQuestion,
    stage: Stage,
    /// A read that memory couldn't answer: the query and its tags.
    reading: Option<(usize, Vec<Tag>)>,
}

enum Stage {
    Begun,
    /// The server has taken the snapshot, of this state. The session doesn't know yet.
    Made(usize),
    Known(usize, Snapshot),
}

/// The question about where the log ends. It proves as much as the one for the watermark.
#[derive(Default)]
enum Question {
    #[default]
    Idle,
    Asks(Asked),
    Waits(Asked, Position),
}

struct Asked {
    epoch: Epoch,
    batch: FenceBatch,
    at_ms: u64,
    number: EndQuestion,
}

impl Transactions {
    /// Another query has taken the place of this one.
    pub fn drop_query(&mut self, query: usize) {
        self.stored.remove(&query);
        for transaction in &mut self.open {
            transaction
                .reading
                .take_if(|(reading, _)| *reading == query);
        }
    }
}

impl World<'_> {
    pub(super) fn go_on_with_transaction(&mut self) -> Result<(), String> {
        let open = self.transactions.open.len();
        if open == 0 || open < OPEN_MAX && self.random.one_in(8) {
            self.begin_transaction();
            return Ok(());
        }
        let at = self.random.below(open);
        let transaction = &mut self.transactions.open[at];
        match transaction.stage {
            // Its first statement may be no read.
            Stage::Begun if self.random.one_in(2) => {}
            Stage::Begun => {
                let state = self.server.visible;
                transaction.stage = Stage::Made(state);
                self.tell(|| format!("snapshot of state {state}"));
            }
            Stage::Made(state) => self.learn_of_snapshot(at, state),
            Stage::Known(state, snapshot) => {
                if let Some((query, tags)) = transaction.reading.take() {
                    self.store_exact(query, tags, state, snapshot);
                } else if self.random.one_in(12) {
                    self.transactions.open.swap_remove(at);
                } else if self.timeline.covers(snapshot) || self.random.one_in(4) {
                    // Else it waits for the proof.
                    return self.read_in_snapshot(at, state, snapshot);
                }
            }
        }
        Ok(())
    }

    fn begin_transaction(&mut self) {
        if let Some(low) = self.timeline.as_of() {
            self.transactions.open.push(Transaction {
                low,
                asked_before: self.timeline.end_questions(),
                stage: Stage::Begun,
                reading: None,
            });
        }
    }

    /// A row has come: the snapshot is there.
    fn learn_of_snapshot(&mut self, at: usize, state: usize) {
        let Transaction {
            low, asked_before, ..
        } = self.transactions.open[at];
        let snapshot = Snapshot {
            low: match self.fault {
                Fault::LateLow => self.timeline.as_of().unwrap_or(low),
                _ => low,
            },
            made_after: match self.fault {
                Fault::EarlyMadeAfter => asked_before,
                _ => self.timeline.end_questions(),
            },
        };
        self.tell(|| format!("snapshot of state {state}: {snapshot:?}"));
        self.transactions.open[at].stage = Stage::Known(state, snapshot);
    }

    fn read_in_snapshot(
        &mut self,
        at: usize,
        state: usize,
        snapshot: Snapshot,
    ) -> Result<(), String> {
        let query = self.random.below(self.queries.len());
        let exact = self.transactions.stored.get(&query);
        let found = match self.fault {
            Fault::OutsideInside => self.stored.get(&query),
            _ => exact.map(|exact| &exact.entry),
        };
        if let Some(entry) = found {
            let tags = entry.tags.iter().copied();
            let low = snapshot.low;
            let is_touched = self.fault == Fault::NewerUntouched
                && (self.timeline.has_changed_since(low, tags.clone())
                    || entry.as_of.generation() != low.generation());
            let check = self
                .timeline
                .check_in_snapshot(entry.as_of, tags, self.now_ms, snapshot);
            match check {
                Ok(()) if is_touched => {}
                Ok(()) => {
                    self.seen.hits_in_snapshots += 1;
                    let is_of_another = exact.is_some_and(|exact| exact.state != state);
                    self.seen.hits_of_another_state += u64::from(is_of_another);
                    return self.examine_in_snapshot(query, entry, state, snapshot);
                }
                Err(Unservable::NewerThanSnapshot) => self.seen.newer_than_snapshot += 1,
                Err(Unservable::SnapshotUnproven) => self.seen.snapshot_unproven += 1,
                Err(_) => self.seen.refused += 1,
            }
        }
        // What is looked up for the tags is of now, and is live.
        if self.timeline.as_of().is_some()
            && let Some(tags) = self.tags_of_read(query, snapshot.low)
        {
            self.tell(|| format!("query {query} in state {state}, {tags:?}"));
            self.transactions.open[at].reading = Some((query, tags));
        }
        Ok(())
    }

    fn examine_in_snapshot(
        &self,
        query: usize,
        entry: &Entry,
        state: usize,
        snapshot: Snapshot,
    ) -> Result<(), String> {
        let right = answer(&self.server.states[state], &self.queries[query]);
        if right == entry.answer {
            return Ok(());
        }
        Err(format!(
            "TORN: {:?} got {:?} of {:?} in {snapshot:?} of state {state}, which gives {right:?}",
            self.queries[query], entry.answer, entry.as_of,
        ))
    }

    /// The server has answered a read of a transaction, in its snapshot.
    fn store_exact(&mut self, query: usize, tags: Vec<Tag>, state: usize, snapshot: Snapshot) {
        if !self.timeline.covers(snapshot) && self.fault != Fault::Inexact {
            self.seen.inexact_not_stored += 1;
            return;
        }
        let answer = answer(&self.server.states[state], &self.queries[query]);
        self.tell(|| format!("query {query} of state {state} stored, {answer:?}"));
        let entry = Entry {
            as_of: snapshot.low,
            tags,
            answer,
        };
        self.transactions
            .stored
            .insert(query, Exact { entry, state });
    }

    pub(super) fn ask_for_end(&mut self) {
        self.transactions.question = match std::mem::take(&mut self.transactions.question) {
            Question::Idle => Question::Asks(Asked {
                epoch: self.timeline.epoch(),
                batch: self.timeline.take_answered(),
                at_ms: self.now_ms,
                number: self.timeline.begin_end_question(),
            }),
            Question::Asks(asked) => {
                let end = match self.fault {
                    Fault::CountedEnd => self.server.counted_entries(),
                    _ => self.server.log.len(),
                };
                Question::Waits(asked, self.position_of(end))
            }
            Question::Waits(asked, _) if asked.epoch != self.timeline.epoch() => Question::Idle,
            Question::Waits(asked, end) if self.timeline.applied() >= end => {
                let number = match self.fault {
                    Fault::NumberedLate => self.timeline.begin_end_question(),
                    _ => asked.number,
                };
                self.tell(|| format!("{number:?} proven, the end was {end}"));
                self.timeline.prove(asked.epoch, asked.at_ms);
                self.timeline.prove_end(asked.epoch, number);
                asked.batch.lower();
                Question::Idle
            }
            waits @ Question::Waits(..) => waits,
        };
    }
}
