//! When the server was last checked and found good. It bounds the date of each proof.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

use crate::UpstreamConfig;
use crate::state::UpstreamShared;

/// How old the last good check of a session's server is.
#[derive(Debug)]
pub(crate) struct CheckDate {
    age_ms_max: u64,
    lag_ms_max: u64,
    /// The moment before its questions were sent.
    asked_at_ms: Cell<u64>,
    asked_at: Cell<Instant>,
    is_too_old: Cell<bool>,
}

impl CheckDate {
    /// The session's first check began at this moment.
    pub(crate) fn new(config: &UpstreamConfig, asked: AskedAt) -> CheckDate {
        CheckDate::with_bounds(config.check_age_ms_max, config.lag_ms_max, asked)
    }

    pub(crate) fn with_bounds(age_ms_max: u64, lag_ms_max: u64, asked: AskedAt) -> CheckDate {
        CheckDate {
            age_ms_max,
            lag_ms_max,
            asked_at_ms: Cell::new(asked.at_ms),
            asked_at: Cell::new(asked.at),
            is_too_old: Cell::new(false),
        }
    }

    /// The date that a proof may have: hits go by it for `lag_ms_max`, and may not go on for longer
    /// than `check_age_ms_max` after the check.
    pub(crate) fn bound(&self, proved_at_ms: u64) -> u64 {
        let until_ms = self.asked_at_ms.get().saturating_add(self.age_ms_max);
        proved_at_ms.min(until_ms.saturating_sub(self.lag_ms_max))
    }

    /// When the questions of that check were sent.
    pub(crate) fn asked_at(&self) -> Instant {
        self.asked_at.get()
    }

    /// It is too old, until it is renewed.
    pub(crate) fn expire(&self) {
        self.is_too_old.set(true);
    }

    /// Whether nothing can be proven because no check was made in time.
    pub(crate) fn is_too_old(&self) -> bool {
        self.is_too_old.get()
    }

    /// When it will be too old.
    pub(crate) fn expires(&self) -> Instant {
        self.asked_at.get() + Duration::from_millis(self.age_ms_max)
    }

    /// A check found nothing. Gives whether it was too late.
    pub(crate) fn renew(&self, asked: AskedAt) -> bool {
        self.asked_at_ms.set(asked.at_ms);
        self.asked_at.set(asked.at);
        self.is_too_old.replace(false)
    }
}

/// When questions were about to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedAt {
    at_ms: u64,
    at: Instant,
}

impl AskedAt {
    /// Now.
    pub(crate) fn now(shared: &UpstreamShared) -> AskedAt {
        AskedAt {
            at_ms: shared.clock.now_ms(),
            at: Instant::now(),
        }
    }

    /// In milliseconds of the shared clock.
    pub(crate) fn at_ms(self) -> u64 {
        self.at_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(at_ms: u64) -> AskedAt {
        AskedAt {
            at_ms,
            at: Instant::now(),
        }
    }

    #[test]
    fn no_proof_allows_hits_for_longer_than_the_check_counts() {
        // Hits are allowed for `lag_ms_max` after a proof's date.
        for (age_ms_max, lag_ms_max) in [(2_000, 1_000), (1_000, 1_000), (500, 1_000)] {
            let date = CheckDate::with_bounds(age_ms_max, lag_ms_max, asked(10_000));
            for proved_at_ms in [10_000, 10_999, 11_001, 12_000, 50_000] {
                let until_ms = date.bound(proved_at_ms) + lag_ms_max;
                assert!(until_ms <= 10_000 + age_ms_max, "{proved_at_ms}");
                assert!(until_ms <= proved_at_ms + lag_ms_max, "{proved_at_ms}");
            }
        }
        let date = CheckDate::with_bounds(2_000, 1_000, asked(10_000));
        assert_eq!(
            date.bound(10_700),
            10_700,
            "a fresh check takes nothing away"
        );
    }

    #[test]
    fn a_check_that_came_too_late_is_told_once() {
        let date = CheckDate::with_bounds(2_000, 1_000, asked(10_000));
        date.expire();
        assert!(date.renew(asked(13_000)));
        assert!(!date.is_too_old());
        assert!(!date.renew(asked(13_500)));
        assert_eq!(date.bound(20_000), 14_500);
    }
}
