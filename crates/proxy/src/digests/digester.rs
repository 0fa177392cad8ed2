//! What a worker knows of a statement by its text without values.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use remora_engine::key::Label;
use remora_sql::{Dialect, Statement, ValuePlace, normalise};
use remora_upstream::clock::Clock;

use super::known::{KnownAnalysis, KnownStatements, Skeleton};
use super::{Count, Digests, OutdatedBy, Room, Sketch, WorkerDigests};

/// What one worker needs to count statements by their digests, and to recognise them.
#[derive(Debug)]
pub(crate) struct Digester {
    counters: Arc<WorkerDigests>,
    scratch: RefCell<Scratch>,
}

#[derive(Debug)]
struct Scratch {
    /// The normalised text of the statement at hand.
    normal: Vec<u8>,
    /// Its skeleton, and the hash of that; `None` if it has none.
    skeleton: Vec<u8>,
    hash: Option<u64>,
    /// Where its values stand.
    values: Vec<ValuePlace>,
    sketch: Sketch,
    known: KnownStatements,
}

/// What is known of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Recognised {
    /// What it is counted under.
    pub label: Label,
    /// The analysis that it shares with others, if one with this skeleton was analysed recently.
    pub analysis: Option<KnownAnalysis>,
}

impl Digester {
    /// For a worker that remembers so many statements.
    pub(crate) fn new(counters: Arc<WorkerDigests>, known_max: usize) -> Digester {
        Digester {
            counters,
            scratch: RefCell::new(Scratch {
                normal: Vec::new(),
                skeleton: Vec::new(),
                hash: None,
                values: Vec::new(),
                sketch: Sketch::default(),
                known: KnownStatements::new(known_max),
            }),
        }
    }

    /// Recognises a statement. The caller must be certain where its strings begin and end. The
    /// clock is only read for one that isn't remembered.
    pub(crate) fn recognise(
        &self,
        digests: &Digests,
        text: &[u8],
        dialect: Dialect,
        clock: &Clock,
    ) -> Recognised {
        if digests.count_max() == 0 {
            return Recognised {
                label: Label::OTHERS,
                analysis: None,
            };
        }
        let Scratch {
            normal,
            skeleton,
            hash,
            values,
            sketch,
            known,
        } = &mut *self.scratch.borrow_mut();
        *hash = remora_sql::skeleton(text, dialect, skeleton, values);
        let skeleton = hash.map(|hash| Skeleton {
            hash,
            bytes: skeleton,
            dialect,
        });
        if let Some(skeleton) = skeleton
            && let Some((label, analysis)) = known.find(skeleton)
            && digests.is_current(label)
        {
            return Recognised {
                label,
                analysis: analysis.clone(),
            };
        }
        let digest = normalise(text, dialect, normal);
        let label = digests.label(digest, normal, sketch, clock.now_ms());
        // Whoever has no place is looked for again, as it may get one.
        if let Some(skeleton) = skeleton.filter(|_| label != Label::OTHERS)
            && known.put(skeleton, label)
        {
            self.counters.count_forgotten_statement();
        }
        Recognised {
            label,
            analysis: None,
        }
    }

    /// The analysis of a statement that was just recognised as one of these. `None` if it doesn't
    /// follow from theirs.
    pub(crate) fn analysis_by_template(
        &self,
        known: &KnownAnalysis,
        text: &[u8],
        dialect: Dialect,
    ) -> Option<Statement> {
        let scratch = self.scratch.borrow();
        known.with_values(text, dialect, &scratch.values)
    }

    /// Remembers the template of a statement that was just recognised.
    pub(crate) fn remember(&self, text: &[u8], dialect: Dialect, statement: &Statement) {
        let Scratch {
            skeleton,
            hash: Some(hash),
            values,
            known,
            ..
        } = &mut *self.scratch.borrow_mut()
        else {
            return;
        };
        debug_assert_eq!(
            remora_sql::skeleton(text, dialect, &mut Vec::new(), &mut Vec::new()),
            Some(*hash),
            "another statement was recognised in between"
        );
        let skeleton = Skeleton {
            hash: *hash,
            bytes: skeleton,
            dialect,
        };
        if let Some((_, analysis)) = known.find(skeleton) {
            *analysis = KnownAnalysis::of(statement, text, dialect, values);
        }
    }

    /// Whether the result of a miss is worth storing.
    pub(crate) fn should_store(
        &self,
        digests: &Digests,
        label: Label,
        now_ms: u64,
        room: Room,
    ) -> bool {
        label == Label::OTHERS
            || self
                .counters
                .should_store(label, now_ms, room, || digests.storing_tally(label))
    }

    /// The result of a miss is going to be stored.
    pub(crate) fn note_stored(&self, digests: &Digests, label: Label, room: Room) {
        if label != Label::OTHERS {
            self.counters
                .note_stored(label, room, || digests.storing_tally(label));
        }
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
