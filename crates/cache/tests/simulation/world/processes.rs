//! The end of a proxy's process and the next one, which may take its results over
//! ([`remora_cache::SavedResults`]).

use std::sync::Arc;

use remora_cache::{Position, Shapes, Timeline};

use super::transactions::Transactions;
use super::{Entry, Following, Stage, Watermark, World, WriteInFlight};
use crate::Fault;
use crate::server::{TABLES, Write};
use crate::tags::table_tags;

/// Steps in which an ending process must become settled, or it leaves nothing.
const SETTLING_STEPS_MAX: usize = 60;
/// Steps of other writers while no proxy runs.
const STEPS_WITHOUT: usize = 12;

/// Where a process had stopped following.
struct Left {
    end: Position,
    /// The log that it had followed.
    log_begins_after: usize,
    next: usize,
}

impl World<'_> {
    /// The process ends and another begins.
    pub(super) fn replace_process(&mut self) {
        let left = if self.random.one_in(4) {
            self.tell(|| "the process is killed".to_owned());
            None
        } else {
            self.end_in_order()
        };
        // Often none: what is on its way at the server is so still.
        let steps = self.random.below(STEPS_WITHOUT);
        for _ in 0..steps / (1 + self.random.below(STEPS_WITHOUT)) {
            self.go_on_without_proxy();
        }
        self.begin_process(left);
    }

    /// Everything that the process has under way ends. None if it isn't settled in time.
    fn end_in_order(&mut self) -> Option<Left> {
        self.fills.clear();
        self.transactions.end();
        // Sessions end when their statements have been answered.
        while self.writes.iter().any(|write| write.fence.is_some()) {
            self.go_on_with_write();
        }
        for _ in 0..SETTLING_STEPS_MAX {
            if self.is_settled() {
                return Some(self.leave());
            }
            match self.random.below(3) {
                0 => self.follow(),
                1 => self.keep_watermark(),
                _ => self.go_on_without_proxy(),
            }
        }
        None
    }

    fn is_settled(&self) -> bool {
        let timeline = &self.timeline;
        !self.is_lost
            && timeline.is_live()
            && !timeline.has_fences()
            && timeline.visible() >= timeline.applied()
    }

    /// Drops what may not outlive the process.
    fn leave(&mut self) -> Left {
        let (timeline, fault) = (Arc::clone(&self.timeline), self.fault);
        let outlives = |entry: &Entry| {
            let tags = entry.tags.iter().copied();
            fault == Fault::LeftOutdated || timeline.outlives(entry.as_of, tags)
        };
        self.stored.retain(|_, entry| outlives(entry));
        self.transactions.retain_stored(outlives);
        let left = self.stored.len();
        self.tell(|| format!("the process leaves {left} results"));
        Left {
            end: timeline.visible().min(timeline.applied()),
            log_begins_after: self.server.log_begins_after,
            next: self.next,
        }
    }

    /// Another writer, or time, does something. Nothing that isn't logged.
    fn go_on_without_proxy(&mut self) {
        match self.random.below(4) {
            0 => self.now_ms += self.random.below(20) as u64,
            1 if self.writes.is_empty() => self.writes.push(WriteInFlight {
                write: Write::random(&mut self.random, self.definitions),
                stage: Stage::Fenced,
                is_logged: true,
                fence: None,
                facts: None,
            }),
            _ => self.go_on_with_write(),
        }
    }

    fn begin_process(&mut self, left: Option<Left>) {
        if self.random.one_in(6) {
            self.begin_log();
        }
        let timeline = Arc::new(Timeline::new(self.limits, self.timeline.broken()));
        let shapes = Shapes::new(Arc::clone(&timeline), self.shapes_limits);
        let old_shapes = std::mem::replace(&mut self.shapes, shapes);
        self.timeline = timeline;
        self.facts = [None; TABLES];
        self.following = Following::Idle;
        self.watermark = Watermark::Idle;
        self.is_lost = false;
        // What the process had begun is over. The server finishes it, if it has it.
        for write in &mut self.writes {
            write.fence = None;
        }
        self.writes.retain(|write| write.is_logged);
        self.fills.clear();
        self.transactions.end();
        let is_same_log = |left: &Left| {
            left.log_begins_after == self.server.log_begins_after || self.fault == Fault::AnotherLog
        };
        match left.filter(is_same_log) {
            Some(left) => self.take_over(&left, &old_shapes),
            None => self.begin_with_nothing(),
        }
    }

    fn begin_with_nothing(&mut self) {
        self.stored.clear();
        self.transactions = Transactions::default();
        let last = self.server.states.len() - 1;
        self.server.make_visible(last);
        self.server.count(last, self.now_ms);
        self.next = self.server.log.len();
        self.timeline.restart(self.position_of(self.next));
    }

    fn take_over(&mut self, left: &Left, old_shapes: &Shapes<u8>) {
        self.next = match self.fault {
            Fault::ResumedAtEnd => self.server.log.len(),
            _ => left.next.max(self.server.log_begins_after),
        };
        let Some(results) = self.timeline.resume_saved(left.end) else {
            return;
        };
        if self.fault != Fault::ShapesNotLeft {
            for table in (0..TABLES).map(table_tags) {
                for shape in old_shapes.snapshot(table).shapes() {
                    let restored = self.shapes.restore(table, (**shape).clone());
                    assert_eq!(restored, Ok(()), "the limits are the same");
                }
            }
        }
        let take = |entry: &mut Entry| {
            let as_of = results.as_of(entry.as_of.position());
            as_of.map(|as_of| entry.as_of = as_of).is_some()
        };
        self.stored.retain(|_, entry| take(entry));
        self.transactions.take_over(take);
        self.seen.taken_over += self.stored.len() as u64;
    }
}
