//! Transactions at `REPEATABLE READ`: their snapshots, what they read and what is stored of it, and
//! the questions about where the log ends.
//!
//! Whatever such a transaction reads must be what the query gives on the state that its snapshot
//! shows, not on some other.

use std::collections::BTreeMap;

use remora_cache::{AsOf, EndQuestion, Epoch, FenceBatch, Position, Snapshot, Tag, Unservable};

use super::early::Early;
use super::{Entry, World};
use crate::Fault;
use crate::server::answer;

const OPEN_MAX: usize = 6;

#[derive(Default)]
pub struct Transactions {
    pub(super) open: Vec<Transaction>,
    /// What they have read, apart from what is read outside of them.
    pub(super) stored: BTreeMap<usize, Exact>,
    question: Question,
}

/// A result, and the state that it was read in.
pub(super) struct Exact {
    pub(super) entry: Entry,
    state: usize,
}

pub(super) struct Transaction {
    /// Taken before the server has heard of the transaction.
    pub(super) low: AsOf,
    /// The last question about the log's end at that moment.
    pub(super) asked_before: EndQuestion,
    pub(super) stage: Stage,
    /// A read that memory couldn't answer: the query and its tags.
    pub(super) reading: Option<(usize, Vec<Tag>)>,
}

pub(super) enum Stage {
    /// The server doesn't know of it.
    Early(Early),
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
    /// All sessions have ended.
    pub(super) fn end(&mut self) {
        self.open.clear();
        self.question = Question::Idle;
    }

    /// Keeps some of what is stored.
    pub(super) fn retain_stored(&mut self, keeps: impl Fn(&Entry) -> bool) {
        self.stored.retain(|_, exact| keeps(&exact.entry));
    }

    /// Keeps what can be taken over, as it is then.
    pub(super) fn take_over(&mut self, take: impl Fn(&mut Entry) -> bool) {
        self.stored.retain(|_, exact| take(&mut exact.entry));
    }

    /// Another query has taken the place of this one.
    pub fn drop_query(&mut self, query: usize) {
        self.stored.remove(&query);
        for transaction in &mut self.open {
            transaction
                .reading
                .take_if(|(reading, _)| *reading == query);
            if let Stage::Early(early) = &mut transaction.stage {
                early.forget_query(query);
            }
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
        if let Stage::Early(_) = self.transactions.open[at].stage {
            return self.go_on_early(at);
        }
        let transaction = &mut self.transactions.open[at];
        match transaction.stage {
            Stage::Early(_) => {}
            // Its first statement may be no read.
            Stage::Begun if self.random.one_in(2) => {
                let query = self.random.below(self.queries.len());
                let low = transaction.low;
                // What memory can't answer is looked up, and then sent.
                let tags = self.tags_of_read(query, low);
                self.transactions.open[at].reading = tags.map(|tags| (query, tags));
            }
            Stage::Begun => {
                let state = self.server.visible;
                transaction.stage = Stage::Made(state);
                self.tell(|| format!("snapshot of state {state}"));
            }
            Stage::Made(state) => self.learn_of_snapshot(at, state),
            Stage::Known(state, snapshot) => {
                let is_proven = self.timeline.covers(snapshot) || self.random.one_in(4);
                if let Some((query, tags)) = transaction.reading.take_if(|_| is_proven) {
                    self.store_exact(query, tags, state, snapshot);
                } else if transaction.reading.is_some() {
                    // The result waits for the proof.
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
            let is_early = self.random.one_in(2);
            self.transactions.open.push(Transaction {
                low,
                asked_before: self.timeline.end_questions(),
                stage: if is_early {
                    Stage::Early(Early::default())
                } else {
                    Stage::Begun
                },
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
