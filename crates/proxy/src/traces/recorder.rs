//! What a traced statement carries while it is under way.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime};

use remora_engine::reason::{Outcome, Stage};
use remora_sql::Digest;
use remora_upstream::clock::Instant;

use super::{Parent, Trace, TracedCommand};

/// Notes where the time of one statement goes.
///
/// Whoever ends a stage marks it: the time since the last mark is that stage's. A stage may be
/// marked several times.
#[derive(Debug)]
pub(crate) struct Recorder {
    at: SystemTime,
    began: Instant,
    /// The last mark.
    last: Cell<Instant>,
    /// What recording itself took.
    apart: Cell<Duration>,
    stages: [Cell<Duration>; Stage::ALL.len()],
    has_answer: Cell<bool>,
    outcome: Cell<Option<Outcome>>,
    error: Cell<Option<u16>>,
    bytes: Cell<u64>,
    about: RefCell<Option<About>>,
}

/// What is known of a statement apart from its times.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// How it came.
    pub command: TracedCommand,
    /// Its digest, and its text without values.
    pub statement: Option<(Digest, String)>,
    /// The session's account.
    pub account: Option<String>,
    /// The session's default schema.
    pub schema: Option<String>,
    /// Whether the server is a MariaDB.
    pub is_mariadb: bool,
    /// What the application traces it as.
    pub parent: Option<Parent>,
}

impl Recorder {
    /// For a message whose first bytes have just come.
    pub(crate) fn begin() -> Recorder {
        let began = Instant::now();
        Recorder {
            at: SystemTime::now(),
            began,
            last: Cell::new(began),
            apart: Cell::default(),
            stages: Default::default(),
            has_answer: Cell::new(false),
            outcome: Cell::new(None),
            error: Cell::new(None),
            bytes: Cell::new(0),
            about: RefCell::new(None),
        }
    }

    /// The time since the last mark was this stage's.
    #[cold]
    pub(crate) fn mark(&self, stage: Stage) {
        self.mark_at(stage, Instant::now());
    }

    /// The same for a moment that was read already.
    pub(crate) fn mark_at(&self, stage: Stage, moment: Instant) {
        let of_stage = &self.stages[stage as usize];
        of_stage.set(of_stage.get() + self.advance(moment));
    }

    /// Bytes of the server's answer have come, so many: the time since the last mark was spent
    /// waiting for them.
    pub(crate) fn answered(&self, bytes: usize) {
        let is_first = !self.has_answer.replace(true);
        self.mark(if is_first {
            Stage::Server
        } else {
            Stage::Answer
        });
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// What is known of the statement is looked for. The time that this takes isn't the
    /// statement's.
    pub(crate) fn note(&self, stage: Stage, about: impl FnOnce() -> About) {
        self.mark(stage);
        *self.about.borrow_mut() = Some(about());
        self.apart
            .set(self.apart.get() + self.advance(Instant::now()));
    }

    /// Memory has answered, with so many bytes.
    pub(crate) fn hit(&self, bytes: usize) {
        self.outcome.set(Some(Outcome::Hit));
        self.bytes.set(bytes as u64);
    }

    /// What became of the statement. The last word counts.
    pub(crate) fn has_outcome(&self, outcome: Outcome) {
        self.outcome.set(Some(outcome));
    }

    /// The server answered with this error.
    pub(crate) fn failed(&self, code: u16) {
        self.error.set(Some(code));
    }

    /// What each stage has taken so far, in the order of [`Stage::ALL`].
    pub(crate) fn so_far(&self) -> impl Iterator<Item = (Stage, Duration)> {
        let stages = Stage::ALL.iter().copied().zip(&self.stages);
        stages.map(|(stage, took)| (stage, took.get()))
    }

    /// What became of the statement so far, and the bytes of its answer.
    pub(crate) fn outcome(&self) -> (Option<Outcome>, u64) {
        (self.outcome.get(), self.bytes.get())
    }

    /// The trace, if the message was a statement. What remains of its time is this stage's.
    pub(crate) fn finish(self, stage: Stage) -> Option<Trace> {
        self.mark(stage);
        let about = self.about.into_inner()?;
        let took = self.last.get().duration_since(self.began);
        Some(Trace {
            at: self.at,
            command: about.command,
            statement: about.statement,
            account: about.account,
            schema: about.schema,
            is_mariadb: about.is_mariadb,
            outcome: self.outcome.get()?,
            error: self.error.get(),
            bytes: self.bytes.get(),
            parent: about.parent,
            took: took.saturating_sub(self.apart.get()),
            stages: self.stages.map(Cell::into_inner),
        })
    }

    /// Moves the last mark, never back. Gives how far.
    fn advance(&self, moment: Instant) -> Duration {
        let last = self.last.get();
        self.last.set(last.max(moment));
        moment.saturating_duration_since(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait() {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn stages_sum_up_to_the_time_without_what_recording_took() {
        let recorder = Recorder::begin();
        let earlier = Instant::now();
        for stage in [Stage::Key, Stage::LookUp, Stage::Key, Stage::Plan] {
            wait();
            recorder.mark(stage);
        }
        recorder.mark_at(Stage::Read, earlier);
        recorder.note(Stage::Analysis, || {
            wait();
            About::default()
        });
        recorder.answered(10);
        recorder.answered(5);
        recorder.has_outcome(Outcome::Write);
        let began = recorder.began;
        let trace = recorder.finish(Stage::Settle).unwrap();
        let whole = began.elapsed();
        assert_eq!(trace.stages.iter().sum::<Duration>(), trace.took);
        assert!(trace.took + Duration::from_micros(50) <= whole);
        let of = |stage: Stage| trace.stages[stage as usize];
        assert!(of(Stage::Key) >= 2 * of(Stage::LookUp).min(Duration::from_micros(50)));
        assert_eq!(of(Stage::Read), Duration::ZERO);
        assert_eq!(trace.bytes, 15);
    }

    #[test]
    fn what_is_no_statement_leaves_no_trace() {
        let recorder = Recorder::begin();
        recorder.has_outcome(Outcome::Write);
        assert_eq!(recorder.finish(Stage::Settle), None);
    }
}
