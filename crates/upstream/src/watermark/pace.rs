//! When a newer watermark that somebody wants may be asked for.
//!
//! Each question costs the server about 100 microseconds, and a server under writes could be asked
//! a thousand times a second although nobody reads what was written. So the pace depends on whether
//! anybody was turned away for want of an answer. If somebody was, the questions come at the
//! shortest interval for a while. If nobody was, the interval doubles with each question, up to the
//! longest.
//!
//! Correctness doesn't depend on this: a fence stands until an answer lowers it.

use std::time::Duration;

use tokio::time::Instant;

use crate::want::Want;

/// The interval that follows one of zero.
const STEP: Duration = Duration::from_millis(1);
/// For how long questions come at the shortest interval after somebody was turned away: reads of
/// what is written may miss ten times a second without being slowed down.
const HURRY: Duration = Duration::from_millis(100);
/// After so many times the longest interval without a question, it begins at the shortest again.
const IDLE_INTERVALS: u32 = 4;

/// The intervals between questions. An asker that was idle for the present interval doesn't wait.
pub(super) struct Pace {
    shortest: Duration,
    longest: Duration,
    interval: Duration,
    asked_at: Option<Instant>,
    hurries_until: Option<Instant>,
}

impl Pace {
    /// With these bounds. If the longest is below the shortest, each interval is the shortest.
    pub(super) fn new(shortest: Duration, longest: Duration) -> Pace {
        Pace {
            shortest,
            longest: longest.max(shortest),
            interval: shortest,
            asked_at: None,
            hurries_until: None,
        }
    }

    /// When the next question may be asked; `None`: at once.
    pub(super) fn due(&self, want: Want) -> Option<Instant> {
        let interval = if want == Want::Soon {
            self.shortest
        } else {
            self.interval
        };
        self.asked_at.map(|asked_at| asked_at + interval)
    }

    /// One was asked, and so it was wanted.
    pub(super) fn asked(&mut self, at: Instant, want: Want) {
        let before = self.asked_at.replace(at);
        let is_idle = |before| at >= before + IDLE_INTERVALS * self.longest;
        let was_idle = before.is_none_or(is_idle);
        if want == Want::Soon {
            self.hurries_until = Some(at + HURRY);
        }
        let hurries = self.hurries_until.is_some_and(|until| at < until);
        if hurries || was_idle {
            self.interval = self.shortest;
        } else if want == Want::InTime {
            self.interval = (2 * self.interval).max(STEP).min(self.longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Asks as soon as it may, once for each of these; gives the waits, milliseconds.
    fn waits(pace: &mut Pace, now: &mut Instant, wants: &[Want]) -> Vec<u128> {
        let mut waits = Vec::new();
        for &want in wants {
            let due = pace.due(want).unwrap_or(*now).max(*now);
            waits.push((due - *now).as_millis());
            *now = due;
            pace.asked(due, want);
        }
        waits
    }

    fn pace() -> (Pace, Instant) {
        (Pace::new(MS, 10 * MS), Instant::now())
    }

    #[test]
    fn while_nobody_is_turned_away_questions_come_ever_more_seldom() {
        let (mut pace, mut now) = pace();
        let waits = waits(&mut pace, &mut now, &[Want::InTime; 8]);
        assert_eq!(waits, [0, 1, 2, 4, 8, 10, 10, 10]);
    }

    #[test]
    fn after_somebody_was_turned_away_they_come_often_for_a_while() {
        let (mut pace, mut now) = pace();
        waits(&mut pace, &mut now, &[Want::InTime; 8]);
        assert_eq!(waits(&mut pace, &mut now, &[Want::Soon]), [1]);
        let often = waits(&mut pace, &mut now, &[Want::InTime; 100]);
        assert_eq!(often, [1; 100]);
        let seldom = waits(&mut pace, &mut now, &[Want::InTime; 5]);
        assert_eq!(seldom, [2, 4, 8, 10, 10]);
    }

    #[test]
    fn an_asker_that_was_idle_begins_at_the_shortest() {
        let (mut pace, mut now) = pace();
        waits(&mut pace, &mut now, &[Want::InTime; 8]);
        now += 40 * MS;
        let waits = waits(&mut pace, &mut now, &[Want::InTime; 4]);
        assert_eq!(waits, [0, 1, 2, 4]);
    }

    #[test]
    fn what_nobody_wants_is_no_reason_to_ask_more_seldom() {
        let (mut pace, mut now) = pace();
        let waits = waits(&mut pace, &mut now, &[Want::Nothing; 4]);
        assert_eq!(waits, [0, 1, 1, 1]);
    }

    #[test]
    fn the_longest_interval_is_not_below_the_shortest() {
        let (mut pace, mut now) = (Pace::new(20 * MS, 10 * MS), Instant::now());
        let waits = waits(&mut pace, &mut now, &[Want::InTime; 4]);
        assert_eq!(waits, [0, 20, 20, 20]);
    }

    #[test]
    fn without_a_shortest_interval_only_what_is_wanted_soon_comes_at_once() {
        let (mut pace, mut now) = (Pace::new(Duration::ZERO, 4 * MS), Instant::now());
        let wants = [Want::InTime, Want::InTime, Want::InTime, Want::Soon];
        assert_eq!(waits(&mut pace, &mut now, &wants), [0, 0, 1, 0]);
    }
}
