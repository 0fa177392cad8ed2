//! How a worker finds the label of a statement.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use remora_sql::{Dialect, normalise, shape};

use super::{Count, Digests, Label, OutdatedBy, Sketch, WorkerDigests};
use crate::clock::Clock;

/// What one worker needs to count statements by their digests.
#[derive(Debug)]
pub(crate) struct Digester {
    counters: Arc<WorkerDigests>,
    scratch: RefCell<Scratch>,
}

#[derive(Debug, Default)]
struct Scratch {
    /// The normalised text of the statement at hand.
    normal: Vec<u8>,
    sketch: Sketch,
    /// Labels of statements of late, by their shapes: normalising takes ten times as long as
    /// telling the shape.
    memo: Memo,
}

/// How many labels are remembered by shape.
const MEMO: usize = 512;

#[derive(Debug)]
struct Memo(Box<[(u64, Label); MEMO]>);

impl Default for Memo {
    fn default() -> Memo {
        Memo(Box::new([(0, Label::OTHERS); MEMO]))
    }
}

impl Memo {
    fn place(&mut self, shape: u64) -> &mut (u64, Label) {
        #[allow(clippy::cast_possible_truncation)]
        let index = shape as usize % MEMO;
        &mut self.0[index]
    }
}

impl Digester {
    pub(crate) fn new(counters: Arc<WorkerDigests>) -> Digester {
        Digester {
            counters,
            scratch: RefCell::default(),
        }
    }

    /// The label of a statement as text. The clock is only read for one that isn't remembered.
    pub(crate) fn label(
        &self,
        digests: &Digests,
        text: &[u8],
        dialect: Dialect,
        clock: &Clock,
    ) -> Label {
        if digests.count_max() == 0 {
            return Label::OTHERS;
        }
        let Scratch {
            normal,
            sketch,
            memo,
        } = &mut *self.scratch.borrow_mut();
        let shape = shape(text, dialect, normal);
        if let Some(shape) = shape {
            let (known, label) = *memo.place(shape);
            if known == shape && digests.is_current(label) {
                return label;
            }
        }
        let digest = normalise(text, dialect, normal);
        let label = digests.label(digest, normal, sketch, clock.now_ms());
        if let Some(shape) = shape {
            *memo.place(shape) = (shape, label);
        }
        label
    }

    /// How long the misses of a digest took on this worker on average, if there were any.
    pub(crate) fn mean_miss(&self, label: Label) -> Option<Duration> {
        self.counters.mean_miss(label)
    }

    /// Counts on this worker.
    pub(crate) fn count(&self, label: Label, count: Count) {
        self.counters.count(label, count);
    }

    /// Counts what outdated a result, on this worker.
    pub(crate) fn count_outdated_by(&self, label: Label, by: OutdatedBy) {
        self.counters.count_outdated_by(label, by);
    }
}
