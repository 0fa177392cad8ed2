//! When a newer watermark that somebody wants may be asked for.
//!
//! Each question costs the server about 100 microseconds, and a server under writes could be asked
//! a thousand times a second although nobody reads what was written. So the pace depends on whether
//! anybody was turned away for want of an answer. If somebody was, the next question may come after
//! the shortest interval. If nobody was, the interval doubles with each question, up to the
//! longest.
//!
//! Nothing depends on this for its rightness: a fence stands until an answer lowers it.

use std::time::Duration;

use tokio::time::Instant;

/// The first interval behind one of no length.
const STEP: Duration = Duration::from_millis(1);

/// The intervals between questions. An asker that was idle for the present interval doesn't wait.
pub(super) struct Pace {
    shortest: Duration,
    longest: Duration,
    interval: Duration,
    asked_at: Option<Instant>,
}

impl Pace {
    /// With these bounds. If the longest is below the shortest, each interval is the shortest.
    pub(super) fn new(shortest: Duration, longest: Duration) -> Pace {
        Pace {
            shortest,
            longest: longest.max(shortest),
            interval: shortest,
            asked_at: None,
        }
    }

    /// When the next question may be asked; `None`: at once. `is_missed`: somebody has been turned
    /// away since the last one.
    pub(super) fn due(&self, is_missed: bool) -> Option<Instant> {
        let interval = if is_missed {
            self.shortest
        } else {
            self.interval
        };
        self.asked_at.map(|asked_at| asked_at + interval)
    }

    /// One was asked. `was_missed`: somebody had been turned away since the one before.
    pub(super) fn asked(&mut self, at: Instant, was_missed: bool) {
        let is_first = self.asked_at.replace(at).is_none();
        self.interval = if was_missed || is_first {
            self.shortest
        } else {
            (2 * self.interval).max(STEP).min(self.longest)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Asks as soon as it may, after each of these; gives the waits, milliseconds.
    fn waits(pace: &mut Pace, missed: &[bool]) -> Vec<u128> {
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for &is_missed in missed {
            let due = pace.due(is_missed).unwrap_or(now).max(now);
            waits.push((due - now).as_millis());
            now = due;
            pace.asked(now, is_missed);
        }
        waits
    }

    #[test]
    fn while_nobody_is_turned_away_questions_come_ever_more_seldom() {
        let mut pace = Pace::new(MS, 10 * MS);
        assert_eq!(waits(&mut pace, &[false; 8]), [0, 1, 2, 4, 8, 10, 10, 10]);
    }

    #[test]
    fn whoever_is_turned_away_waits_for_the_shortest_interval() {
        let mut pace = Pace::new(MS, 10 * MS);
        let missed = [false, false, false, false, true, true, false, false];
        assert_eq!(waits(&mut pace, &missed), [0, 1, 2, 4, 1, 1, 1, 2]);
    }

    #[test]
    fn an_asker_that_was_idle_does_not_wait() {
        let mut pace = Pace::new(MS, 10 * MS);
        waits(&mut pace, &[false; 8]);
        let later = Instant::now() + 200 * MS;
        assert!(pace.due(false).is_some_and(|due| due <= later));
    }

    #[test]
    fn the_longest_interval_is_not_below_the_shortest() {
        let mut pace = Pace::new(20 * MS, 10 * MS);
        assert_eq!(waits(&mut pace, &[false; 4]), [0, 20, 20, 20]);
    }

    #[test]
    fn without_a_shortest_interval_only_what_is_missed_comes_at_once() {
        let mut pace = Pace::new(Duration::ZERO, 4 * MS);
        let missed = [false, true, true, false, false, false, false];
        assert_eq!(waits(&mut pace, &missed), [0, 0, 0, 0, 1, 2, 4]);
    }
}
