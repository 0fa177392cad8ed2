//! Results that outlive their process: saved when it stops, taken over by the next one.
//!
//! # What is saved
//!
//! Results are saved when no statement is under way any more, no fence stands, the follower has
//! applied everything up to a position `P`, and every commit up to `P` can be seen. Of each result
//! [`Timeline::outlives`] must say that
//!
//! - no commit between its `as_of` and `P` has touched its tags,
//! - it hasn't been forgotten.
//!
//! # Why the next process may serve it
//!
//! The next process begins at `P`: its `changed_at` is empty, and its follower applies every commit
//! behind `P` ([`Timeline::resume_saved`]). So for each commit that concerns the result:
//!
//! - If it lies at or below `as_of`, the result has seen it.
//! - Between `as_of` and `P` there is none.
//! - One behind `P` touches the result's tags in the new timeline. For that the follower must know
//!   the shapes that the tags are made of before it applies anything. So the shapes are saved, too,
//!   and taken over before the results ([`crate::Shapes::restore`]).
//!
//! Nothing is served before the first proof: the timeline is not live until the follower has
//! applied everything that the server had when it was asked. So a process that was away for long
//! serves nothing that has changed meanwhile.
//!
//! A write that the server executes after the end of the first process, because its connection was
//! cut, lies behind `P` if it is logged. If it isn't, nothing may be saved: see
//! [`Timeline::cut_writes`]. Fences are one guard more. The argument doesn't need them: a logged
//! write either has been applied or lies behind `P`, and the simulation found nothing without them.
//!
//! What has no position (`sql_log_bin = 0`, privileges that the log doesn't tell, a command to
//! forget) ends a generation. In the new process that may happen before the results are taken over.
//! So they are taken over only into a timeline that has never forgotten anything, and only once.
//!
//! What the argument can't know is left to the caller: that the log behind `P` is the same log,
//! that the server's settings and the operator's rules are the same, and that a result's key means
//! the same again.

use crate::position::Position;
use crate::sync::{AtomicU32, Ordering};
use crate::tag::Tag;
use crate::timeline::{AsOf, BrokenLiveness, Timeline};

/// The generation that results of an earlier process are taken over into.
#[derive(Copy, Clone, Debug)]
pub struct SavedResults {
    generation: u32,
    end: Position,
    is_broken: bool,
}

impl SavedResults {
    /// The `as_of` of a result that had this position in its `as_of`. `None` if it lies behind the
    /// end of what the earlier process had applied: nothing is known of such a result.
    pub fn as_of(&self, position: Position) -> Option<AsOf> {
        if self.is_broken {
            let newest = Position::from_bits(u64::MAX);
            return Some(AsOf::from_parts(self.generation, newest));
        }
        (position <= self.end).then_some(AsOf::from_parts(self.generation, position))
    }
}

impl Timeline {
    /// Whether a result may be saved for the next process. Only when nothing is under way
    /// any more: no session, and no follower.
    pub fn outlives(&self, as_of: AsOf, tags: impl Iterator<Item = Tag> + Clone) -> bool {
        let is_of_now = as_of.generation() == self.generation();
        let is_seen = as_of.position() <= self.visible();
        let is_unchanged = self.changed_since(as_of.position(), tags.clone()).is_none();
        is_of_now && is_seen && is_unchanged && !self.is_fenced(tags)
    }

    /// Whether any fence stands. It looks at each: for the end of a process only.
    pub fn has_fences(&self) -> bool {
        let stands = |slot: &AtomicU32| slot.load(Ordering::SeqCst) != 0;
        stands(&self.fence_all) || self.fence_slots.iter().any(stands)
    }

    /// Begins where an earlier process had stopped, at `end`, the first time that it begins at all.
    /// Everything at or before `end` had been applied there, and can be seen. Live only after a
    /// [`Timeline::prove`] that was asked for afterwards.
    ///
    /// `None`, and then nothing has been done, if it has begun before or anything has been
    /// forgotten already: what was forgotten may be among the results that would be taken over.
    pub fn resume_saved(&self, end: Position) -> Option<SavedResults> {
        let generation = self.restart_if_new(end)?;
        let is_broken = self.broken().liveness == BrokenLiveness::Saved;
        Some(SavedResults {
            generation,
            end,
            is_broken,
        })
    }
}
