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
//! **Never in the way for long.** The other's statement takes the server as long as one's own
//! would, and nobody waits twice for one statement, whatever became of the result. Nobody waits for
//! a fill that couldn't be served: behind a fence, or outdated. Once an answer comes in pieces, the
//! pace is its client's: then the wait ends soon. After one wait in vain, everybody asks the
//! server until that answer has come.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use remora_cache::{
    AsOf, Entry, FillPermit, FillRefused, FillStage, FillWait, KeyRef, NoWait, NotStored, Tag,
};
use remora_engine::reason::{Bypass, Limit};
use tokio::time::{Instant, timeout_at};

use super::Session;
use super::dispatch::Prerequisite;
use super::look_up::Place;

/// How long to wait for the rest of an answer that has begun.
const REST_WAIT: Duration = Duration::from_millis(50);

impl Session {
    /// A key was looked up, and memory had nothing. What ends from now on is noticed when a fill of
    /// it is to begin.
    pub(super) fn note_fills_ended(&mut self, place: Place) {
        self.fills_ended = Some(self.shared.fills.ended(place.digest));
    }

    /// Begins a fill of a key that was looked up in vain, for a result with these tags. If another
    /// one is in flight or has ended since, [`Session::take_look_again`] says what to do.
    pub(super) fn begin_fill(
        &mut self,
        key: &KeyRef<'_>,
        digest: u128,
        (as_of, tags): (AsOf, &[Tag]),
    ) -> Result<FillPermit, Bypass> {
        let ended = self.fills_ended.take();
        if !self.shared.store.wants(digest) {
            return Err(Bypass::NotStored(NotStored::Unwanted));
        }
        match self.shared.fills.begin(digest, as_of) {
            Ok(permit) => {
                let may_be_filled = ended != Some(self.shared.fills.ended(digest));
                if may_be_filled && self.may_look_again(digest) && self.is_filled(key, digest) {
                    self.looked_again_for = Some(digest);
                    self.look_again = Some(Prerequisite::LookAgain);
                    return Err(Bypass::Fill(FillRefused::InFlight));
                }
                Ok(permit)
            }
            Err(why) => {
                if why == FillRefused::Full {
                    self.shared.metrics.rare.count_limit(Limit::FillsInFlight);
                } else if self.may_look_again(digest) && self.may_wait() {
                    self.wait_for(digest, tags);
                }
                Err(Bypass::Fill(why))
            }
        }
    }

    /// Once for a message, and only if memory could answer then.
    fn may_look_again(&self, digest: u128) -> bool {
        self.looked_again_for != Some(digest)
            && !self.must_contact_server(self.shared.clock.now_ms())
            && !self.must_empty_warnings()
    }

    /// Whether memory has a result that no change has outdated.
    fn is_filled(&self, key: &KeyRef<'_>, digest: u128) -> bool {
        let (store, timeline) = (&self.shared.store, &self.shared.timeline);
        let is_current = |entry: &Arc<Entry>| {
            let outdated = timeline.outdated(entry.as_of(), entry.tags());
            outdated.is_none()
        };
        store.with(key, digest, is_current) == Some(true)
    }

    /// Whether the session may wait for another's fill.
    fn may_wait(&self) -> bool {
        !self.shared.limits.fill_wait.is_zero()
            && self.state.is_certainly_outside_transaction()
            && !self.should_ask_what_ran()
    }

    /// Has the message wait for the fill in flight, if its result could be served: behind a fence,
    /// or after a change since it was begun, it couldn't.
    fn wait_for(&mut self, digest: u128, tags: &[Tag]) {
        match self.shared.fills.wait_for(digest) {
            Ok(wait) => {
                let (timeline, now_ms) = (&self.shared.timeline, self.shared.clock.now_ms());
                match timeline.check(wait.as_of(), tags, now_ms) {
                    Ok(()) => {
                        self.looked_again_for = Some(digest);
                        self.look_again = Some(Prerequisite::AwaitFill(Box::new(wait)));
                    }
                    Err(why) => self.note_turned_away(why),
                }
            }
            Err(NoWait::Nothing) => {}
            Err(NoWait::Full) => self.shared.metrics.rare.count_limit(Limit::FillWaiters),
        }
    }

    /// What must come before the message at hand is looked at again, if memory may have its answer
    /// then.
    pub(super) fn take_look_again(&mut self) -> Option<Prerequisite> {
        self.look_again.take()
    }

    /// How long the session can wait before the server must hear from it.
    fn patience(&self) -> Duration {
        let silent_ms = self
            .shared
            .clock
            .now_ms()
            .saturating_sub(self.server_contact_ms);
        Duration::from_millis(self.server_contact_ms_max.saturating_sub(silent_ms))
    }

    /// Waits until that fill has ended, or for as long as one should.
    pub(super) async fn await_fill(&self, mut wait: FillWait) {
        let rare = &self.shared.metrics.rare;
        let (longest, patience) = (self.shared.limits.fill_wait, self.patience());
        let mut until = Instant::now() + longest.min(patience);
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
                // Nobody begins to wait for it any more; or others have more time.
                Err(_) if is_answering || patience < longest => return,
                Ok(FillStage::GivenUp) => return rare.count_limit(Limit::FillWait),
                Err(_) => {
                    rare.count_limit(Limit::FillWait);
                    return wait.give_up();
                }
            }
        }
    }
}
