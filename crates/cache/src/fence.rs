//! Fences: from before a write through this Remora can become visible until the follower has
//! passed it, its tables are not served from memory.
//!
//! A fence is raised before the statement goes to the server. When the server has answered, or its
//! connection has ended, the fence is queued. The watermark task takes what is queued *before* it
//! asks the server for a position, waits until the follower has applied the answer, and lowers what
//! it took: the answer is then at or above the position of each write in the batch, so all their
//! touches have been made.
//!
//! A batch taken before a restart may be lowered after it. The timeline isn't live again before a
//! proof asked for after the restart, hence after the batch's writes were answered, and that proof
//! implies that their touches have been made or that their positions lie before the beginning.
//!
//! # Bounds
//!
//! The queue holds each slot at most once: if a slot is queued already, a further answered fence on
//! it is lowered at once, because the queued one keeps the slot raised and will be lowered after a
//! question that is yet to be asked. So the queue has at most `fence_slots` numbers of four bytes
//! (and one flag for "everything"), and a slot's counter is at most the number of writes in flight,
//! plus one queued, plus one for each batch not yet lowered, however long the follower is away.
//!
//! Hits never touch the queue's mutex. Writes take it once, for a few instructions per table.
//!
//! # Definitions in doubt
//!
//! A statement that changes definitions (a trigger, a view, a routine) may change what code other
//! statements run, from the moment when the server executes it; what is known of definitions hears
//! of it from the log. In between they are in doubt: from before the statement is sent until its
//! fence is lowered. So the doubt is a part of the fence ([`Timeline::raise_with`]).
//! [`Timeline::definitions`] tells of it. Whoever finds none before a statement is sent, and none
//! when that is answered, and that nothing which it rests on has changed by the log, knows which
//! definitions the server had all the while: a change that was executed meanwhile was either still
//! in doubt at the end, or its touches have been made.

use std::sync::Arc;

use crate::sync::{Ordering, lock};
use crate::tag::Tag;
use crate::timeline::Timeline;

/// What a write may change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FenceScope {
    /// These tables.
    Tables(Vec<Tag>),
    /// Anything.
    Everything,
}

/// What a write may change of the definitions by which it is known which code statements run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Definitions {
    /// None.
    Kept,
    /// Any: its text can't be seen. Few such statements do change one.
    Perhaps,
    /// Some: it is what the statement is for.
    Changed,
}

/// The kinds of doubt: places in arrays of two.
const DOUBTS: [Definitions; 2] = [Definitions::Perhaps, Definitions::Changed];

impl Definitions {
    /// Its place among the doubts.
    fn place(self) -> Option<usize> {
        DOUBTS.iter().position(|doubt| *doubt == self)
    }
}

/// A raised fence. Dropping it is the same as [`Fence::answered`], but the write counts as cut off:
/// nobody has waited for what becomes of it.
#[must_use = "dropping a fence queues it to be lowered"]
pub struct Fence {
    timeline: Arc<Timeline>,
    scope: FenceScope,
    definitions: Definitions,
    is_answered: bool,
}

/// Fences whose writes the server has answered, for as long as one question to the server takes.
/// Dropping a batch without [`FenceBatch::lower`] queues its fences again.
#[must_use = "dropping a batch queues its fences again"]
pub struct FenceBatch {
    timeline: Arc<Timeline>,
    slots: Vec<u32>,
    everything: bool,
    /// Which kinds of doubt are in it.
    doubts: [bool; 2],
}

impl Timeline {
    /// Raises a fence. From when this returns, no check that begins passes within its scope.
    pub fn raise(self: &Arc<Self>, scope: FenceScope) -> Fence {
        self.raise_with(scope, Definitions::Kept)
    }

    /// The same for a write that may change definitions: as long as the fence stands, they are in
    /// doubt.
    pub fn raise_with(self: &Arc<Self>, scope: FenceScope, definitions: Definitions) -> Fence {
        if let Some(place) = definitions.place() {
            self.doubts[place].fetch_add(1, Ordering::SeqCst);
        }
        match &scope {
            FenceScope::Everything => {
                self.fence_all.fetch_add(1, Ordering::SeqCst);
            }
            FenceScope::Tables(tags) => {
                for tag in tags {
                    self.fence_slots[self.fence_slot(*tag)].fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        Fence {
            timeline: Arc::clone(self),
            scope,
            definitions,
            is_answered: false,
        }
    }

    /// How many writes were cut off, each of which the server may still run.
    pub fn cut_writes(&self) -> u64 {
        self.cut_writes.load(Ordering::SeqCst)
    }

    /// What writes may be changing of definitions, or have changed without the follower having
    /// passed it: the worst of it.
    pub fn definitions(&self) -> Definitions {
        let mut worst = Definitions::Kept;
        for (doubt, count) in DOUBTS.into_iter().zip(&self.doubts) {
            if count.load(Ordering::SeqCst) != 0 {
                worst = doubt;
            }
        }
        worst
    }

    /// Takes the fences that are answered by now. Call it *before* asking the server for the
    /// position that will allow to lower them.
    pub fn take_answered(self: &Arc<Self>) -> FenceBatch {
        let mut answered = lock(&self.answered);
        let slots = std::mem::take(&mut answered.slots);
        for slot in &slots {
            answered.is_queued[*slot as usize] = false;
        }
        let everything = std::mem::take(&mut answered.everything);
        let doubts = std::mem::take(&mut answered.doubts);
        FenceBatch {
            timeline: Arc::clone(self),
            slots,
            everything,
            doubts,
        }
    }

    /// Whether an answered fence waits to be taken.
    pub fn has_answered(&self) -> bool {
        let answered = lock(&self.answered);
        answered.everything || !answered.slots.is_empty() || answered.doubts.contains(&true)
    }

    fn queue_doubt(&self, place: usize) {
        let mut answered = lock(&self.answered);
        if answered.doubts[place] {
            self.doubts[place].fetch_sub(1, Ordering::SeqCst);
        }
        answered.doubts[place] = true;
    }

    fn queue_everything(&self) {
        let mut answered = lock(&self.answered);
        if answered.everything {
            self.fence_all.fetch_sub(1, Ordering::SeqCst);
        }
        answered.everything = true;
    }

    fn queue_slots(&self, slots: impl Iterator<Item = usize>) {
        let mut answered = lock(&self.answered);
        for slot in slots {
            if answered.is_queued[slot] {
                self.fence_slots[slot].fetch_sub(1, Ordering::SeqCst);
            } else if let Ok(number) = u32::try_from(slot) {
                answered.is_queued[slot] = true;
                answered.slots.push(number);
            }
        }
    }
}

impl Fence {
    /// The server has answered, with `OK` or an error, or its connection has ended.
    pub fn answered(mut self) {
        self.is_answered = true;
    }

    /// Whether it stops all hits, or marks definitions as changing.
    pub fn stops_all(&self) -> bool {
        matches!(self.scope, FenceScope::Everything) || self.definitions.place().is_some()
    }

    /// What it covers.
    pub fn scope(&self) -> &FenceScope {
        &self.scope
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if !self.is_answered {
            self.timeline.cut_writes.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(place) = self.definitions.place() {
            self.timeline.queue_doubt(place);
        }
        match &self.scope {
            FenceScope::Everything => self.timeline.queue_everything(),
            FenceScope::Tables(tags) => {
                let slots = tags.iter().map(|tag| self.timeline.fence_slot(*tag));
                self.timeline.queue_slots(slots);
            }
        }
    }
}

impl FenceBatch {
    /// Whether there is nothing to lower.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && !self.everything && !self.doubts.contains(&true)
    }

    /// Lowers the fences. Call it once the follower has applied a position that the server gave to
    /// a question asked after the batch was taken.
    pub fn lower(mut self) {
        for slot in std::mem::take(&mut self.slots) {
            self.timeline.fence_slots[slot as usize].fetch_sub(1, Ordering::SeqCst);
        }
        if std::mem::take(&mut self.everything) {
            self.timeline.fence_all.fetch_sub(1, Ordering::SeqCst);
        }
        let doubts = std::mem::take(&mut self.doubts);
        for (count, is_in_it) in self.timeline.doubts.iter().zip(doubts) {
            if is_in_it {
                count.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Drop for FenceBatch {
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            self.timeline
                .queue_slots(self.slots.iter().map(|slot| *slot as usize));
        }
        if self.everything {
            self.timeline.queue_everything();
        }
        for (place, is_in_it) in self.doubts.into_iter().enumerate() {
            if is_in_it {
                self.timeline.queue_doubt(place);
            }
        }
    }
}
