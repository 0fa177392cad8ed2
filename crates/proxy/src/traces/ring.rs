//! The newest traces.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::Trace;

/// So many traces, the newest. Whoever reads them holds the lock for as long as copying their
/// pointers takes.
#[derive(Debug)]
pub(super) struct Ring {
    count_max: usize,
    traces: Mutex<VecDeque<Arc<Trace>>>,
}

impl Ring {
    pub(super) fn new(count_max: usize) -> Ring {
        Ring {
            count_max,
            traces: Mutex::default(),
        }
    }

    /// Takes one in. Says whether another left for it, or it had no room itself.
    pub(super) fn push(&self, trace: Arc<Trace>) -> bool {
        if self.count_max == 0 {
            return true;
        }
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = if traces.len() == self.count_max {
            traces.pop_front()
        } else {
            None
        };
        traces.push_back(trace);
        drop(traces);
        oldest.is_some()
    }

    /// All of them, the newest first.
    pub(super) fn newest(&self) -> Vec<Arc<Trace>> {
        let traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        traces.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use remora_engine::reason::{Outcome, Stage};

    use super::super::TracedCommand;
    use super::*;

    fn trace(bytes: u64) -> Arc<Trace> {
        Arc::new(Trace {
            at: SystemTime::UNIX_EPOCH,
            command: TracedCommand::Query,
            statement: None,
            account: None,
            schema: None,
            is_mariadb: false,
            outcome: Outcome::Hit,
            error: None,
            bytes,
            parent: None,
            took: Duration::ZERO,
            stages: [Duration::ZERO; Stage::ALL.len()],
        })
    }

    #[test]
    fn the_newest_stay() {
        let ring = Ring::new(3);
        let left: Vec<bool> = (0..5).map(|bytes| ring.push(trace(bytes))).collect();
        assert_eq!(left, [false, false, false, true, true]);
        let kept: Vec<u64> = ring.newest().iter().map(|trace| trace.bytes).collect();
        assert_eq!(kept, [4, 3, 2]);
    }

    #[test]
    fn without_room_none_is_kept() {
        let ring = Ring::new(0);
        assert!(ring.push(trace(1)));
        assert!(ring.newest().is_empty());
    }
}
