//! What became of the results that the previous process had saved.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use remora_engine::reason::StateOutcome;

/// What became of them; nothing is told without `cache.state_file`, and while Remora waits for the
/// server.
#[derive(Debug, Default)]
pub struct Restored {
    outcome: OnceLock<StateOutcome>,
    results: AtomicU64,
}

impl Restored {
    /// Tells it. What is told first counts.
    pub(crate) fn tell(&self, outcome: StateOutcome) {
        if self.outcome.set(outcome).is_err() {
            return;
        }
        match outcome {
            StateOutcome::Restored => {}
            StateOutcome::NoFile => {
                tracing::info!("cache.state_file: no saved results, memory starts empty");
            }
            other => tracing::warn!(
                reason = other.as_str(),
                "cache.state_file isn't used, memory starts empty: {}",
                other.describe()
            ),
        }
    }

    /// So many were taken over.
    pub(crate) fn count(&self, results: u64) {
        self.results.store(results, Relaxed);
    }

    /// What became of them.
    pub fn outcome(&self) -> Option<StateOutcome> {
        self.outcome.get().copied()
    }

    /// How many were taken over.
    pub fn results(&self) -> u64 {
        self.results.load(Relaxed)
    }
}
