//! Waiting for another client's answer to the same statement, instead of asking the server for it
//! once more: when many ask at once for what memory doesn't have, one statement reaches the server.
//!
//! **Freshness.** What waited is looked up as if it had come when the wait ended. So it is answered
//! from memory by the rule of every hit, and from a fill that began before it came as from one that
//! ended before.
//!
//! **Nobody waits for itself.** The other client's statement may wait for locks at the server. A
//! session with an open transaction or locked tables could hold them, so it asks the server.
//!
//! **Never in the way for long.** The other's statement takes the server as long as one's own would,
//! and nobody waits twice for one statement, whatever became of the result. Once the answer comes in
//! pieces, the pace is its client's: then the wait ends soon. Who waited in vain has everybody else
//! ask the server, until that answer has come.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use remora_cache::{FillRefused, FillStage, FillWait, NoWait};
use tokio::time::{Instant, timeout_at};

use super::Session;
use super::dispatch::Prerequisite;
use super::query::Place;
use crate::reason::{Bypass, Limit, Outcome};

/// How long to wait for the rest of an answer that has begun.
const REST_WAIT: Duration = Duration::from_millis(50);

impl Session {
    /// The fill to wait for, if one of this key is in flight. At most once for a message.
    pub(super) fn should_await_fill(&mut self, place: Place) -> Option<Box<FillWait>> {
        let is_allowed = self.awaited_fill_of != Some(place.digest)
            && !self.shared.limits.fill_wait.is_zero()
            && self.state.is_certainly_outside_transaction()
            && !self.should_ask_what_ran();
        if !is_allowed {
            return None;
        }
        let wait = self.shared.fills.wait_for(place.digest);
        if matches!(wait, Err(NoWait::Nothing)) {
            return None;
        }
        self.awaited_fill_of = Some(place.digest);
        if matches!(wait, Err(NoWait::Full)) {
            self.shared.metrics.rare.count_limit(Limit::FillWaiters);
        }
        wait.ok().map(Box::new)
    }

    /// What to do first, if another fill of this key has begun or ended since it was looked up.
    pub(super) fn look_again(&mut self, place: Place, outcome: &Outcome) -> Option<Prerequisite> {
        match outcome {
            Outcome::Bypass(Bypass::Fill(FillRefused::InFlight)) => {
                let wait = self.should_await_fill(place);
                wait.map(Prerequisite::AwaitFill)
            }
            Outcome::Bypass(Bypass::Fill(FillRefused::Filled)) => {
                let has_looked = self.awaited_fill_of.replace(place.digest) == Some(place.digest);
                (!has_looked).then_some(Prerequisite::LookAgain)
            }
            _ => None,
        }
    }

    /// Waits until that fill has ended, or for as long as one should.
    pub(super) async fn await_fill(&self, mut wait: FillWait) {
        let rare = &self.shared.metrics.rare;
        let mut until = Instant::now() + self.shared.limits.fill_wait;
        let mut is_answering = false;
        loop {
            match timeout_at(until, wait.next_stage()).await {
                Ok(FillStage::Ended) => {
                    rare.fill_waits.fetch_add(1, Relaxed);
                    return;
                }
                Ok(FillStage::Asked) => {}
                Ok(FillStage::Answering) => {
                    is_answering = true;
                    until = until.min(Instant::now() + REST_WAIT);
                }
                // Nobody begins to wait for it any more.
                Err(_) if is_answering => return,
                Ok(FillStage::GivenUp) => return rare.count_limit(Limit::FillWait),
                Err(_) => {
                    rare.count_limit(Limit::FillWait);
                    return wait.give_up();
                }
            }
        }
    }
}
