//! Whether the server could be reached the last time.

use std::sync::{PoisonError, RwLock};

use crate::metrics::Reachability;

/// Whether the server could be reached when it was last needed: for a client, or to follow it.
/// Written only when that changes.
///
/// The follower counts, because it tries again by itself: a balancer that sends no clients to a
/// Remora that isn't ready would never learn that it is again. Only its successes do: that
/// following is refused keeps no client away.
#[derive(Debug)]
pub struct LastAttempt(RwLock<Attempt>);

#[derive(Debug, PartialEq, Eq)]
struct Attempt {
    result: Reachability,
    /// How often the follower had reached the server by then, if it wasn't reached for the client.
    reached: u64,
}

impl LastAttempt {
    /// Before any attempt.
    pub fn none() -> LastAttempt {
        LastAttempt(RwLock::new(Attempt {
            result: Reachability::Untried,
            reached: 0,
        }))
    }

    /// A client's attempt ended like this, when the follower had reached the server `reached`
    /// times.
    pub fn record(&self, result: Reachability, reached: u64) {
        let reached = match result {
            Reachability::Unreachable(_) => reached,
            // How often doesn't matter then, and what doesn't change isn't written.
            Reachability::Untried | Reachability::Reachable => 0,
        };
        let attempt = Attempt { result, reached };
        if *self.0.read().unwrap_or_else(PoisonError::into_inner) != attempt {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = attempt;
        }
    }

    /// The last result, now that the follower has reached the server `reached` times.
    pub fn get(&self, reached: u64) -> Reachability {
        let attempt = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if reached > attempt.reached {
            Reachability::Reachable
        } else {
            attempt.result.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_counts_as_reachable_again_when_the_follower_has_reached_it() {
        let (attempts, failed) = (LastAttempt::none(), || {
            Reachability::Unreachable("refused".into())
        });
        assert_eq!(attempts.get(0), Reachability::Untried);
        assert_eq!(attempts.get(1), Reachability::Reachable);

        attempts.record(failed(), 1);
        assert_eq!(attempts.get(1), failed());
        assert_eq!(attempts.get(2), Reachability::Reachable);

        attempts.record(failed(), 2);
        attempts.record(Reachability::Reachable, 2);
        assert_eq!(attempts.get(2), Reachability::Reachable);
    }
}
