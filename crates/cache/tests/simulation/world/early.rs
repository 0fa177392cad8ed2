//! Transactions that memory answers before the server knows of them.
//!
//! What they get must be what all its queries give on one state; and when the server has opened the
//! transaction, on that which its snapshot shows.

use remora_cache::{EarlyRead, EndQuestion, Snapshot, Unservable};

use super::World;
use super::transactions::Stage;
use crate::Fault;
use crate::server::{Answer, Query, answer};

/// Reads that memory may answer before the server must.
const READS_MAX: usize = 6;

/// What memory has answered so far.
#[derive(Default)]
pub struct Early {
    reads: Vec<Read>,
    opening: Opening,
}

struct Read {
    rests_on: EarlyRead,
    number: usize,
    query: Query,
    answer: Answer,
}

/// How far the server is with opening the transaction.
#[derive(Default)]
enum Opening {
    /// It needn't.
    #[default]
    None,
    /// It has been told, after this watermark was taken.
    Sent(remora_cache::AsOf, EndQuestion),
    /// It has made the snapshot of this state.
    Made(usize, Snapshot),
}

impl Early {
    /// Another query has taken the place of this one. Its answers stay what they were.
    pub fn forget_query(&mut self, number: usize) {
        for read in &mut self.reads {
            if read.number == number {
                read.number = usize::MAX;
            }
        }
    }
}

impl World<'_> {
    pub(super) fn go_on_early(&mut self, at: usize) -> Result<(), String> {
        let Stage::Early(mut early) =
            std::mem::replace(&mut self.transactions.open[at].stage, Stage::Begun)
        else {
            return Ok(());
        };
        // Much may happen between two statements of a transaction.
        let is_idle = !early.reads.is_empty() && !self.random.one_in(6);
        match early.opening {
            Opening::None if is_idle => {}
            Opening::None if self.random.one_in(24) => {
                // It ends, and the server never knew of it.
                self.transactions.open.swap_remove(at);
                return Ok(());
            }
            Opening::None if early.reads.len() < READS_MAX && !self.random.one_in(16) => {
                self.read_early(&mut early)?;
            }
            Opening::None => {
                let Some(low) = self.timeline.as_of() else {
                    self.transactions.open.swap_remove(at);
                    return Ok(());
                };
                early.opening = Opening::Sent(low, self.timeline.end_questions());
            }
            Opening::Sent(low, asked_before) => {
                let made_after = match self.fault {
                    Fault::OpenedEarly => asked_before,
                    _ => self.timeline.end_questions(),
                };
                let snapshot = Snapshot { low, made_after };
                early.opening = Opening::Made(self.server.visible, snapshot);
            }
            Opening::Made(state, snapshot) => {
                let is_proven = self.timeline.covers(snapshot);
                if is_proven || self.random.one_in(4) {
                    return self.open_early(at, &early, state, snapshot);
                }
            }
        }
        self.transactions.open[at].stage = Stage::Early(early);
        Ok(())
    }

    fn read_early(&mut self, early: &mut Early) -> Result<(), String> {
        let number = self.random.below(self.queries.len());
        let found = match self.fault {
            Fault::OutsideEarly => self.stored.get(&number),
            _ => self
                .transactions
                .stored
                .get(&number)
                .map(|exact| &exact.entry),
        };
        let Some(entry) = found else {
            return Ok(());
        };
        let earlier = early.reads.iter().map(|read| &read.rests_on);
        let check = self
            .timeline
            .check(entry.as_of, &entry.tags, self.now_ms)
            .and_then(|()| self.timeline.check_early(earlier));
        match check {
            Ok(()) => self.seen.early_hits += 1,
            Err(Unservable::EarlierRead) => {
                self.seen.earlier_read += 1;
                return Ok(());
            }
            Err(_) => {
                self.seen.refused += 1;
                return Ok(());
            }
        }
        early.reads.push(Read {
            rests_on: EarlyRead {
                as_of: entry.as_of,
                tags: entry.tags.clone().into(),
            },
            number,
            query: self.queries[number].clone(),
            answer: entry.answer.clone(),
        });
        self.tell(|| format!("query {number} early, {}", early.reads.len()));
        self.examine_early(&early.reads)
    }

    /// All of it must be of one state.
    fn examine_early(&self, reads: &[Read]) -> Result<(), String> {
        let shows = |state: &usize| {
            let rows = &self.server.states[*state];
            reads
                .iter()
                .all(|read| answer(rows, &read.query) == read.answer)
        };
        if (0..=self.server.visible).rev().any(|state| shows(&state)) {
            return Ok(());
        }
        let got: Vec<_> = reads
            .iter()
            .map(|read| {
                format!(
                    "{:?}: {:?} of {:?}",
                    read.query, read.answer, read.rests_on.as_of
                )
            })
            .collect();
        Err(format!("TORN before its snapshot: {got:#?}"))
    }

    /// The server has made the snapshot: what memory has answered must hold in it.
    fn open_early(
        &mut self,
        at: usize,
        early: &Early,
        state: usize,
        snapshot: Snapshot,
    ) -> Result<(), String> {
        self.seen.opened += 1;
        let mut has_changed = false;
        for read in &early.reads {
            let right = answer(&self.server.states[state], &read.query);
            if self.timeline.holds_in(&read.rests_on, snapshot) {
                if right != read.answer {
                    return Err(format!(
                        "TORN: {:?} got {:?} of {:?}, and {snapshot:?} is of state {state}, which gives {right:?}",
                        read.query, read.answer, read.rests_on.as_of
                    ));
                }
            } else if right != read.answer {
                self.seen.conflicts += 1;
                self.transactions.open.swap_remove(at);
                return Ok(());
            } else {
                has_changed = true;
            }
        }
        self.seen.opened_after_change += u64::from(has_changed);
        self.transactions.open[at].low = snapshot.low;
        self.transactions.open[at].stage = Stage::Known(state, snapshot);
        Ok(())
    }
}
