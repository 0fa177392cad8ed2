//! The last ten minutes of each digest, in steps of ten seconds.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use remora_sql::Digest;
use serde::Serialize;

use super::history::unix_ms;
use crate::digests::Tally;

/// The length of a step.
const STEP: Duration = Duration::from_secs(10);
/// Recent that are kept of a digest: ten minutes of them.
const STEPS_MAX: usize = 60;
/// Digests of which steps are kept, a KiB each. One that was not asked for in ten minutes makes
/// room.
const DIGESTS_MAX: usize = 1_000;

/// What became of a digest's statements within a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct HistoryStep {
    hits: u64,
    misses: u64,
}

/// The steps of one digest, the oldest first. The last ended at `ended_ms`.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Recent {
    /// Milliseconds since 1970.
    ended_ms: u64,
    step_ms: u64,
    steps: Vec<HistoryStep>,
}

#[derive(Debug)]
struct Past {
    since_ms: u64,
    before: HistoryStep,
    steps: VecDeque<HistoryStep>,
}

impl Past {
    fn is_idle(&self) -> bool {
        let idle = |step: &HistoryStep| step.hits + step.misses == 0;
        self.steps.len() >= STEPS_MAX && self.steps.iter().all(idle)
    }

    fn push(&mut self, now: HistoryStep) {
        if self.steps.len() >= STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back(HistoryStep {
            hits: now.hits.saturating_sub(self.before.hits),
            misses: now.misses.saturating_sub(self.before.misses),
        });
        self.before = now;
    }
}

/// The steps of all digests.
#[derive(Debug, Default)]
pub(super) struct DigestHistory {
    of: HashMap<Digest, Past>,
    /// The calls when the last step ended, if there are more digests than steps are kept of.
    calls_before: HashMap<Digest, u64>,
    taken_at: Option<Instant>,
    ended_ms: u64,
}

impl DigestHistory {
    /// Whether the next step has ended. If so, it is taken for granted that its tallies come now.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.taken_at.is_none_or(|at| at.elapsed() >= STEP);
        if is_due {
            self.taken_at = Some(Instant::now());
        }
        is_due
    }

    /// Ends a step.
    pub(super) fn take(&mut self, tallies: impl Iterator<Item = Tally>) {
        let tallies: HashMap<Digest, Tally> = tallies.map(|tally| (tally.digest, tally)).collect();
        // A digest that has left, or has come again with counts from 0.
        self.of.retain(|digest, past| {
            tallies
                .get(digest)
                .is_some_and(|tally| tally.since_ms == past.since_ms)
        });
        let is_many = tallies.len() > DIGESTS_MAX;
        let mut is_full = false;
        for (digest, tally) in &tallies {
            let calls_before = self.calls_before.get(digest).copied().unwrap_or(0);
            let now = HistoryStep {
                hits: tally.hits,
                misses: tally.misses,
            };
            if let Some(past) = self.of.get_mut(digest) {
                past.push(now);
            } else if !is_full && now.hits + now.misses > calls_before {
                is_full = !self.has_room();
                if !is_full {
                    self.begin(*digest, tally.since_ms, now);
                }
            }
        }
        self.calls_before.clear();
        if is_many {
            let calls = tallies
                .iter()
                .map(|(digest, tally)| (*digest, tally.hits + tally.misses));
            self.calls_before.extend(calls);
        }
        self.ended_ms = unix_ms();
    }

    fn has_room(&mut self) -> bool {
        if self.of.len() >= DIGESTS_MAX {
            self.of.retain(|_, past| !past.is_idle());
        }
        self.of.len() < DIGESTS_MAX
    }

    /// What was counted before is of no known time.
    fn begin(&mut self, digest: Digest, since_ms: u64, before: HistoryStep) {
        let steps = VecDeque::new();
        let past = Past {
            since_ms,
            before,
            steps,
        };
        self.of.insert(digest, past);
    }

    /// The steps of a digest, if any are kept.
    pub(super) fn of(&self, digest: Digest) -> Option<Recent> {
        let past = self.of.get(&digest)?;
        Some(Recent {
            ended_ms: self.ended_ms,
            step_ms: super::history::whole_ms(STEP),
            steps: past.steps.iter().copied().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn tally(number: u64, since_ms: u64, hits: u64) -> Tally {
        Tally {
            digest: Digest::from_number(number),
            since_ms,
            hits,
            misses: 1,
        }
    }

    fn hits(history: &DigestHistory, number: u64) -> Option<Vec<u64>> {
        let steps = history.of(Digest::from_number(number))?.steps;
        Some(steps.iter().map(|step| step.hits).collect())
    }

    #[test]
    fn steps_tell_what_happened_between() {
        let mut history = DigestHistory::default();
        for hits in [5, 7, 7, 10] {
            history.take([tally(1, 0, hits)].into_iter());
        }
        assert_eq!(hits(&history, 1), Some(vec![2, 0, 3]));
        // It lost its place and got another.
        history.take([tally(1, 9, 4)].into_iter());
        assert_eq!(hits(&history, 1), Some(vec![]));
        history.take(std::iter::empty());
        assert_eq!(hits(&history, 1), None);
    }

    #[test]
    fn no_more_is_kept_than_may_be_and_idle_ones_make_room() {
        let mut history = DigestHistory::default();
        let all = |hits| (0..2 * DIGESTS_MAX as u64).map(move |number| tally(number, 0, hits));
        for step in 0..2 * STEPS_MAX as u64 {
            history.take(all(1 + step));
        }
        assert_eq!(history.of.len(), DIGESTS_MAX);
        assert!(
            history
                .of
                .values()
                .all(|past| past.steps.len() == STEPS_MAX)
        );
        // Nothing happens any more to those that are kept: all make room for others, as those are
        // asked for.
        for _ in 0..=STEPS_MAX {
            history.take(all(1_000));
        }
        let kept: HashSet<Digest> = history.of.keys().copied().collect();
        history.take(all(1_000).map(|tally| {
            let more = u64::from(!kept.contains(&tally.digest));
            let hits = tally.hits + more;
            Tally { hits, ..tally }
        }));
        assert_eq!(history.of.len(), DIGESTS_MAX);
        assert!(history.of.keys().all(|digest| !kept.contains(digest)));
    }
}
